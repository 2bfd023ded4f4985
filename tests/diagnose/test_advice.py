"""The advice to a reader: by which limit refused, what the pool had, which knobs the engine has, and how far."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from corpus import LOGS, corpus

from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.diagnose.diagnosis import Diagnosis, as_html, diagnose, text
from sheetgen.diagnose.log_facts import MOST, excerpt


def of(name: str, **options: object) -> Diagnosis:
    return diagnose(str(LOGS / name), options, Catalog())


def told(tmp_path: Path, log: str, **options: object) -> Diagnosis:
    path = tmp_path / "server.log"
    path.write_text(log, encoding="utf-8")
    return diagnose(str(path), options, Catalog())


def changes(diagnosis: Diagnosis) -> dict[str, tuple[str, Any]]:
    return {fix.flag: (fix.direction, fix.value) for fix in diagnosis.fixes}


TGI_BOTH = (
    "ValidationError: Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. Given: {prompt} "
    "`inputs` tokens and {answer} `max_new_tokens`\n"
)
TGI_PROMPT = "Input validation error: `inputs` must have less than {limit} tokens. Given: {prompt}\n"


@pytest.mark.parametrize("limit,prompt,answer", [(2048, 1244, 1000), (4096, 4000, 97), (1024, 10, 2000)])
def test_only_the_limit_that_refused_is_raised(tmp_path: Path, limit: int, prompt: int, answer: int) -> None:
    advised = told(tmp_path, TGI_BOTH.format(limit=limit, prompt=prompt, answer=answer))
    moved = changes(advised)
    assert set(moved) == {"--max-total-tokens", "max_new_tokens"}
    assert moved["--max-total-tokens"][0] == "raise" and moved["--max-total-tokens"][1] >= prompt + answer
    assert moved["max_new_tokens"] == ("lower", limit - prompt)
    assert advised.short is not None and advised.short.short_by == prompt + answer - limit


@pytest.mark.parametrize(
    "log,prompt",
    [
        (TGI_BOTH.format(limit=2048, prompt=5000, answer=9), 5000),
        (TGI_PROMPT.format(limit=2048, prompt=5000), 5000),
        (TGI_PROMPT.format(limit=1024, prompt=3072), 3072),
    ],
)
def test_tgi_starts_with_what_is_suggested(tmp_path: Path, log: str, prompt: int) -> None:
    """Its launcher refuses a limit of the prompt that is not below that of prompt and answer."""
    moved = changes(told(tmp_path, log))
    assert prompt <= moved["--max-input-tokens"][1] < moved["--max-total-tokens"][1]
    assert "max_new_tokens" not in moved, "no answer is short enough"


@pytest.mark.parametrize(
    "refusal,length,is_built",
    [
        ("Prompt length (5000) exceeds maximum input length (2048).", 5120, True),
        ("Runtime dimension does not satisfy any optimization profile", None, True),
        ("Prompt length (5000) exceeds maximum sequence length (2048)", None, False),
    ],
)
def test_an_engine_built_for_shorter_prompts_is_built_anew(
    tmp_path: Path, refusal: str, length: int | None, is_built: bool
) -> None:
    advised = told(tmp_path, f"[TensorRT-LLM][ERROR] {refusal}\n")
    assert advised.verdict.cause.label == "prefill_long_prompt"
    assert changes(advised).get("max_input_len") == (("raise", length) if is_built else None)
    if is_built:
        assert advised.fixes[0].flag == "max_input_len"
        assert "rebuild the engine" in advised.fixes[0].reason


def test_the_answer_of_a_request_is_shortened_on_other_engines(tmp_path: Path) -> None:
    log = (
        "INFO vllm\nERROR ValueError: This model's maximum context length is 4096 tokens. However, you requested 4596 "
        "tokens (1596 in the messages, 3000 in the completion). Please reduce the length.\n"
    )
    assert changes(told(tmp_path, log))["max_tokens"] == ("lower", 2500)


EMPTY = {
    "sglang": "[2026-06-11 09:12:05] sglang RuntimeError: Not enough memory. Please try to increase "
    "--mem-fraction-static.\n",
    "vllm": "ERROR vllm/engine ValueError: No available memory for the cache blocks. Try increasing "
    "`gpu_memory_utilization`.\n",
    "below zero": "ERROR ValueError: To serve at least one request with the models's max seq len (8192), (1.00 GiB KV "
    "cache is needed, which is larger than the available KV cache memory (-2.13 GiB). Try increasing "
    "`gpu_memory_utilization`.\n",
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_pool_wants_more_of_the_gpu_and_no_shorter_context(tmp_path: Path, name: str) -> None:
    advised = told(tmp_path, EMPTY[name])
    assert advised.verdict.cause.case == "empty"
    flags = [fix.flag for fix in advised.fixes]
    assert advised.fixes[0].direction == "raise" and flags[0] in ("--mem-fraction-static", "--gpu-memory-utilization")
    assert flags[1] in ("--tp", "--tensor-parallel-size") and flags[2] == "--quantization"
    assert not {"--max-model-len", "--context-length", "--kv-cache-dtype"} & set(flags)


def test_the_log_is_said_to_say_only_what_it_says() -> None:
    for log in corpus():
        advised = of(log.file)
        for fix in advised.fixes:
            if "the log says" in fix.reason:
                assert re.sub(r"\D", "", fix.reason.rpartition("the log says")[2]) in log.path.read_text("utf-8"), (
                    log.file
                )
    length = of("010.log").fixes[0]
    assert length.value == 435200 and "9.97 of 24.00 GiB" in length.reason


def test_a_pool_that_had_room_is_told_from_a_full_one(tmp_path: Path) -> None:
    diagnosis = of("096.log")
    assert diagnosis.numbers["asked_tokens"] == 8192 and diagnosis.numbers["pool_free_tokens"] == 8_070_656
    page = text(diagnosis)
    assert "pool free tokens 8,070,656" in page and "the pool had room" in page and "allocator fault" in page
    assert "--mem-fraction-static" not in changes(diagnosis) and diagnosis.verdict.cause.confidence <= 0.6
    log = (LOGS / "096.log").read_text("utf-8").replace("8070656", "4096")
    short = told(tmp_path, log)
    assert short.verdict.cause.case == "pool" and "--mem-fraction-static" in changes(short)
    assert of("098.log").verdict.cause.case == "pool", "the statistics say that it is full"


def test_ollama_gets_its_own_knobs() -> None:
    diagnosis = of("120.log")
    moved = changes(diagnosis)
    assert {"num_ctx", "num_batch", "OLLAMA_NUM_PARALLEL"} <= set(moved) and not any(f.startswith("--") for f in moved)
    assert moved["num_batch"][1] < 512 and diagnosis.engine == "llama.cpp"
    for log in corpus():
        if log.engine == "llama.cpp" and not re.search("ollama|source=[a-z]+.go:", log.path.read_text("utf-8")):
            assert not {"num_ctx", "num_batch"} & set(changes(of(log.file))), log.file


def test_a_step_is_below_the_default(tmp_path: Path) -> None:
    assert changes(of("046.log"))["--ubatch-size"] == ("lower", 128)
    log = (LOGS / "046.log").read_text("utf-8")
    for set_to, value in ((4096, 2048), (2048, 512), (512, 128)):
        advised = told(tmp_path, f"llama_context: n_ubatch      = {set_to}\n{log}")
        assert changes(advised)["--ubatch-size"] == ("lower", value)


def test_no_symptom_speaks_of_a_line_that_is_not_there() -> None:
    assert "was printed" not in of("120.log").symptom and "was printed" not in of("046.log").symptom
    assert of("104.log").symptom.startswith("Typical: ") and not of("108.log").symptom.startswith("Typical")


def test_a_prompt_far_over_the_limit_is_the_clients(tmp_path: Path) -> None:
    log = (
        "srv send_error: the request (%d tokens) exceeds the available context size (4096 tokens), try increasing it\n"
    )
    far = next(fix for fix in told(tmp_path, log % 900_000).fixes if fix.flag == "--ctx-size")
    assert far.value is None and "220 times the limit" in far.reason
    assert changes(told(tmp_path, log % 5000))["--ctx-size"] == ("raise", 5120)


@pytest.mark.parametrize(
    "name,model,gpu,tp,short",
    [
        ("010.log", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "h100", 8, "measured less"),
        ("016.log", "gpt-oss-120b", "h100", 1, "needed more"),
    ],
)
def test_a_prediction_that_fits_is_told_first(name: str, model: str, gpu: str, tp: int, short: str) -> None:
    diagnosis = of(name, model=model, gpu=gpu, tensor_parallel_size=tp)
    assert diagnosis.replayed is not None and diagnosis.replayed.answer["fits"]
    page = text(diagnosis)
    first = page.partition("REPLAYED\n")[2].splitlines()[0]
    assert re.match(rf"  .*\(.*% sure\); the engine {short}", first), first
    assert "predicted: fits" in page
    record = diagnosis.record()
    assert short in record["replay"]["contradiction"]


def test_the_sampler_is_sized_where_it_died() -> None:
    diagnosis = of("016.log", model="gpt-oss-120b", gpu="h100")
    assert diagnosis.replayed is not None
    row = diagnosis.replayed.rows["sampler"]
    assert (
        row[0].startswith("sampler, 1,024 rows")
        and row[1] > 1024 * 201_000 * 2
        and row[2] is not None
        and row[3] == max(0, row[1] - row[2])
    )


START = (
    "(APIServer pid=1) INFO 11-20 10:00:00 [api_server.py:1896] vLLM API server version 0.19.0\n"
    "(APIServer pid=1) INFO 11-20 10:00:00 [utils.py:253] non-default args: {'model': "
    "'meta-llama/Llama-3.1-70B-Instruct', 'max_model_len': 8192, 'tensor_parallel_size': <TP>}\n"
    "(EngineCore pid=5) INFO Starting to load model\n"
    "  File x/vllm/model_executor/model_loader/base_loader.py, line 1, in load_weights\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has a total capacity of 79.18 GiB "
    "of which 100.00 MiB is free. Of the allocated memory 78.20 GiB is allocated by PyTorch.\n"
)


def test_more_allocated_than_the_weights_are_is_remarked(tmp_path: Path) -> None:
    advised = told(tmp_path, START.replace("<TP>", "2"), gpu="h100")
    assert advised.verdict.cause.label == "startup_weights_do_not_fit" and advised.replayed is not None
    contradiction = advised.replayed.contradiction
    assert contradiction and "78.20 GiB" in contradiction and " 65." in contradiction
    agreed = told(tmp_path, START.replace("<TP>", "1"), gpu="h100").replayed
    assert agreed is not None and agreed.contradiction is None


def test_a_measured_limit_counts_more_than_a_predicted_one(tmp_path: Path) -> None:
    log = START.partition("(EngineCore")[0].replace("<TP>", "4") + (
        "(EngineCore pid=5) INFO 11-20 [kv_cache_utils.py:1087] GPU KV cache size: 365,296 tokens\n"
        "(APIServer pid=1) INFO:     Application startup complete.\n"
    )
    page = text(told(tmp_path, log, gpu="h100"))
    assert "predicted: fits" in page and "it is measured" in page
    assert "by the log: user 45 at 8k" in page


def test_a_pool_without_a_length_is_said_to_be_there() -> None:
    page = text(of("128.log"))
    assert " 367,712 tokens; max_model_len" in page and "states no KV pool" not in page
    asked = text(of("128.log", context_tokens="16k"))
    assert " 367,712 tokens holds 22" in asked


def test_steps_have_values() -> None:
    """A share, a step, a number of GPUs or of requests is never said without how far to go."""
    for log in corpus():
        for fix in of(log.file).fixes:
            match = re.search(
                r"utilization|fraction|num-seqs|batched-tokens|total-tokens|parallel-size|--tp$|num_|layers|graph-max|swap-space|concurrent",
                fix.flag,
            )
            if match and fix.direction in ("raise", "lower") and log.label != "gpu_shared_by_other_process":
                assert fix.value is not None or "(" in fix.reason, (log.file, fix.flag)


def test_one_request_is_not_made_fewer() -> None:
    assert "--max-num-seqs" not in changes(of("086.log"))
    assert changes(of("089.log"))["--max-num-seqs"] == ("lower", 4)


def test_a_step_and_its_switch_are_one_change() -> None:
    diagnosis = of("029.log")
    assert "--enable-chunked-prefill" in diagnosis.fixes[0].reason and diagnosis.fixes[0].value == 2048
    assert "--enable-chunked-prefill" not in changes(diagnosis)
    assert changes(diagnosis)["--gpu-memory-utilization"] == ("lower", "by 0.03")


@pytest.mark.parametrize("tokens,case", [(256, "full"), (512, "full"), (4096, "peak")])
def test_a_small_step_that_fails_means_the_weights(tmp_path: Path, tokens: int, case: str) -> None:
    log = (LOGS / "064.log").read_text("utf-8").replace("256 prefill tokens", f"{tokens} prefill tokens")
    advised = told(tmp_path, log)
    assert advised.verdict.cause.label == "prefill_long_prompt" and advised.verdict.cause.case == case
    assert ("--num-shard" in changes(advised)) == (case == "full")


def test_what_is_no_oom_has_a_next_step() -> None:
    assert "own traceback above" in text(of("145.log"))
    for log in corpus():
        advised = of(log.file)
        if advised.verdict.cause.label == "not_an_oom":
            assert "NEXT" in text(advised), log.file


def test_evidence_is_cut_between_words() -> None:
    for log in corpus():
        lines = log.path.read_text("utf-8").splitlines()
        for evidence in of(log.file).verdict.evidence:
            whole, part = lines[evidence.line_number - 1], evidence.text.strip("…")
            position = whole.find(part)
            if position < 0:
                continue  # a prefix or an escape was taken off
            assert position == 0 or not (whole[position - 1].isalnum() and part[0].isalnum()), (log.file, evidence)
            after = whole[position + len(part) : position + len(part) + 1]
            assert not (after.isalnum() and part[-1].isalnum()), (log.file, evidence)


def test_a_long_line_is_cut_around_what_was_found() -> None:
    line = " ".join(f"word{i:03}" for i in range(200))
    index = line.index("word150")
    part = excerpt(line, index, index + 7)
    assert part.startswith("…word") and part.endswith("…") and "word150" in part and len(part) <= MOST + 2
    assert excerpt(line, 10, 17).startswith("word000 ") and excerpt("short", 0, 5) == "short"
    assert len(excerpt("x" * 5000, 4000, 4001)) <= MOST + 2


def test_the_line_with_the_figure_is_quoted() -> None:
    page = text(of("071.log"))
    assert "line 1:" in page and "180224 tokens" in page
    assert "(9.97 GiB)" in " ".join(text(of("010.log")).split())  # in brackets in the log alone


def test_the_page_of_html_is_for_a_phone_too() -> None:
    page = as_html(of("010.log"))
    assert '<meta name="viewport" content="width=device-width' in page
    assert "padding" in page and "@media(max-width" in page and "overflow-wrap:anywhere" in page


def test_the_exit_status_is_said_and_holds() -> None:
    run = CliRunner()
    text = " ".join(run.invoke(main, ["diagnose", "--help"]).stdout.split())
    assert "Exit status: 0" in text
    for name in ("010.log", "128.log", "145.log"):
        result = run.invoke(main, ["diagnose", str(LOGS / name), "--json"])
        assert result.exit_code == 0 and json.loads(result.stdout)["label"]


def test_what_is_missing_names_the_option() -> None:
    for name in ("108.log", "120.log", "003.log"):
        assert any("Add --model" in reason for reason in of(name).not_replayed_because), name


def test_what_was_short_is_a_sentence() -> None:
    assert (of("003.log").short.short_by, of("003.log").short.needed, of("003.log").short.there) == (
        25_424,
        32_768,
        7_344,
    )
    assert of("010.log").record()["shortfall"]["what"].count("24.00 GiB of KV cache") == 1
    assert "{" not in text(of("010.log"))

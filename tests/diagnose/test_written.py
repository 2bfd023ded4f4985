"""Logs written after the engines' own sources, in every wrapping; and what a log must not be taken for."""

from __future__ import annotations

import random
from pathlib import Path

import perturb
import pytest
from amounts import amount
from corpus import signatures, verdict_on, written

from sheetgen.catalog import Catalog
from sheetgen.diagnose.cause import HEALTHY, UNDETERMINED, Verdict
from sheetgen.diagnose.diagnosis import Diagnosis, diagnose

WRAPPINGS = ("compose", "docker", "kubernetes", "journal", "colours", "unrelated")


def verdict(text: str, tmp_path: Path) -> Verdict:
    path = tmp_path / "x.log"
    path.write_text(text, encoding="utf-8")
    return verdict_on(path)


def told(text: str, tmp_path: Path, **options: str) -> Diagnosis:
    path = tmp_path / "x.log"
    path.write_text(text, encoding="utf-8")
    return diagnose(str(path), options, Catalog())


@pytest.mark.parametrize("name", written())
def test_a_written_log_is_told(name: str, tmp_path: Path) -> None:
    labels, text = written()[name]
    assert verdict(text, tmp_path).cause.label in labels


@pytest.mark.some(30)
@pytest.mark.parametrize("name", written())
def test_a_wrapping_changes_nothing(name: str, tmp_path: Path) -> None:
    """In the gate two wrappings of each log, drawn by its name."""
    labels, text = written()[name]
    for wrapping in random.Random(name).sample(WRAPPINGS, amount(2, len(WRAPPINGS))):
        lines = perturb.PERTURBATIONS[wrapping](text.splitlines(), random.Random(name))
        cause = verdict("\n".join(lines) + "\n", tmp_path).cause
        # Lines of a web server tell that something was served, where the log itself does not say how far it was.
        assert cause.label in labels or (wrapping == "unrelated" and cause.label in (UNDETERMINED, HEALTHY)), wrapping
    assert verdict(text.replace("\n", "\r\n"), tmp_path).cause.label in labels


def test_the_written_logs_are_of_every_engine() -> None:
    names = [name.split("_")[0] for name in written()]
    for engine, least in (("vllm", 25), ("sglang", 15), ("trt", 8), ("tgi", 6), ("lmd", 8), ("lcpp", 8)):
        assert names.count(engine) >= least, engine


BENIGN = (
    "Token indices sequence length is longer than the specified maximum sequence length for this model (139 > 128).",
    "WARNING [scheduler.py:100] max_num_batched_tokens (65536) exceeds max_num_seqs * max_model_len (32768).",
    "INFO [gpu_worker.py:298] The current --gpu-memory-utilization=0.9000 is equivalent to "
    "--gpu-memory-utilization=0.8770 without CUDA graph memory profiling. To maintain the same effective KV cache size "
    "as before, increase --gpu-memory-utilization to 0.9230.",
    "WARNING [TP0] max_total_tokens=8000000 is larger than the profiled value 900000. Use the profiled value instead.",
    "WARNING [arg_utils.py] The model has a long context length (131072). This may cause OOM errors during the initial "
    "memory profiling phase, or result in low performance due to small KV cache space. Consider setting "
    "--max-model-len to a smaller value.",
    "llama_context: n_ctx_per_seq (8192) > n_ctx_train (4096) -- possible training context overflow",
    "[TRT-LLM] [W] `max_seq_len` = 131072 is larger than the model's max position embeddings 32768",
    "CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing "
    "`gpu_memory_utilization` or enforcing eager mode.",
    "warning: failed to mlock 72089600-byte buffer (after previously locking 0 bytes): Cannot allocate memory",
    "WARNING Possibly too large swap space. 4.00 GiB out of the 7.72 GiB total CPU memory is allocated for the swap.",
)


@pytest.mark.parametrize("line", BENIGN)
def test_a_warning_of_a_good_start_is_no_failure(line: str, tmp_path: Path) -> None:
    ready = "INFO:     Application startup complete.\n"
    for text in (f"{line}\n", f"{line}\n{ready}", f"{ready}{line}\n"):
        assert verdict(text, tmp_path).failure is None


READY = (
    "INFO 06-11 09:12:05 [api_server.py:1034] vLLM API server version 0.9.2\nINFO:     Application startup complete.\n"
)
STATS = (
    "INFO 06-11 09:20:10 [loggers.py:118] Engine 000: Avg prompt throughput: 12.0 tokens/s, Avg generation throughput: "
    "20.1 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%, Prefix cache hit rate: 0.0%\n"
)


@pytest.mark.some(20)
@pytest.mark.parametrize(
    "line",
    [
        "INFO [logger.py:43] Received request chatcmpl-9a: prompt: '{}', params: SamplingParams(n=1)",
        'INFO [logger.py:43] Received request chatcmpl-9a: prompt: "{}", params: SamplingParams(n=1)',
        "INFO [logger.py:70] Generated response chatcmpl-9a: output: '{}', output_token_ids: None",
        "[2026-06-11 09:20:00] Receive: obj=GenerateReqInput(rid='1', text='{}', sampling_params=None)",
        "[2026-06-11 09:20:00] Finish: obj=GenerateReqInput(rid='1'), out={{'text': '{}'}}",
        "[2026-06-11 09:20:00] Receive: obj=GenerateReqInput(rid='1', text=None, messages=[{{'content': '{}'}}])",
        "Parsing input with format Content-only: {}",
        '2026/06/11 09:20:00 [info] 7#7: *1 request body: "{}"',
        "ERROR [serving_chat.py:200] messages.0 Input should be a string [input_value=[{{'text': '{}'}}]]",
        "2026-06-11 - lmdeploy - INFO - async_engine.py:1 - prompt='{}', gen_config=GenerationConfig()",
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23 GiB",
        "Out of memory: Killed process 3 (python)",
        "ValueError: No available memory for the cache blocks.",
        "Decode out of memory happened. vllm serve evil/model --max-model-len 7",
        "Traceback (most recent call last): RuntimeError: CUDA error: out of memory",
    ],
)
@pytest.mark.parametrize("length", [0, 300_000])
def test_what_a_user_wrote_is_not_the_engine_speaking(line: str, words: str, length: int, tmp_path: Path) -> None:
    """In a short line, and in one that no block holds whole."""
    verdict = told(READY + line.format("x " * (length // 2) + words) + "\n" + STATS, tmp_path)
    assert verdict.verdict.cause.label == "healthy" and verdict.verdict.failure is None
    assert "evil" not in str(verdict.record())


DEATH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 23.57 GiB"
)


def test_a_death_is_no_quotation(tmp_path: Path) -> None:
    """Its traceback, or the end of the answers, tells it from the words of a client."""
    trace = 'Traceback (most recent call last):\n  File "/opt/vllm/v1/worker/gpu_model_runner.py", line 7, in forward\n'
    assert verdict(READY + DEATH + "\n" + STATS, tmp_path).cause.label == "healthy"
    for text in (READY + STATS + DEATH + "\n", READY + trace + DEATH + "\n" + STATS, DEATH + "\n" + STATS):
        assert verdict(text, tmp_path).cause.label not in ("healthy", "not_an_oom")


BANNER = "INFO [api_server.py:1289] vLLM API server version 0.9.1\nINFO [cli_args.py:309] non-default args: {}\n"
WITH_ADAPTERS = BANNER.format("{'model': 'x/y', 'enable_lora': True, 'gpu_memory_utilization': 0.5}")
WITHOUT = BANNER.format("{'model': 'x/y', 'max_model_len': 8192}")
POOL = "INFO [kv_cache_utils.py:715] GPU KV cache size: 41,920 tokens\n"
UP = "INFO:     Application startup complete.\n"


@pytest.mark.parametrize("measured", ["", POOL])
def test_a_run_answers_for_its_own_arguments(measured: str, tmp_path: Path) -> None:
    """Crash, change the flags, try again."""
    loading = "INFO [gpu_model_runner.py:1531] Starting to load model x/y...\n" + measured + DEATH + "\n"
    died = f"{POOL}{UP}{STATS}{DEATH}\n"
    alone, after = told(WITHOUT + died, tmp_path), told(WITH_ADAPTERS + loading + WITHOUT + died, tmp_path)
    assert (after.verdict.cause, after.fixes) == (alone.verdict.cause, alone.fixes)
    assert after.verdict.cause.label == "prefill_long_prompt"
    again = told(WITHOUT + died + WITH_ADAPTERS, tmp_path)
    assert (again.verdict.cause, again.fixes) == (alone.verdict.cause, alone.fixes)
    second = told(WITH_ADAPTERS + died + WITHOUT + f"{UP}{DEATH}\n", tmp_path)
    assert second.verdict.cause.label == "prefill_long_prompt"


def test_a_thousand_refusals_do_not_hide_a_death(tmp_path: Path) -> None:
    refusal = "ERROR ValueError: This model's maximum context length is 131072 tokens. However, you requested 140000\n"
    death = "RuntimeError: Aborted due to the lack of CPU swap space. Please increase the swap space.\n"
    assert verdict(READY + refusal * 1000 + death, tmp_path).cause.case == "swap"
    assert verdict(READY + refusal * 1000, tmp_path).cause.case == "refused"


def test_what_was_overcome_is_a_note(tmp_path: Path) -> None:
    text = written()["lcpp_retry_ok"][1]
    diagnosis = told(text, tmp_path)
    assert diagnosis.verdict.cause.label == "healthy" and "failed on the way" in diagnosis.notes[0]
    died = text.partition("llama_context: compute buffer allocation failed")[0]
    assert verdict(died, tmp_path).cause.label == "startup_workspace_or_cuda_graph"


def test_a_healthy_run_names_the_death_before_it(tmp_path: Path) -> None:
    death = "ERROR [core.py:396] ValueError: No available memory for the cache blocks. Try increasing it.\n"
    verdict = told(READY + death + READY + STATS, tmp_path)
    assert verdict.verdict.cause.label == "healthy"
    assert "line 3: startup_kv_pool_too_small" in verdict.notes[0]


def test_the_same_error_of_another_program_is_not_judged(tmp_path: Path) -> None:
    for name in ("training", "training2", "diffusion"):
        verdict = told(written()[name][1], tmp_path)
        assert verdict.verdict.cause.label == UNDETERMINED and not verdict.fixes and verdict.verdict.cause.missing


def test_gigabytes_of_the_first_releases_are_gibibytes(tmp_path: Path) -> None:
    verdict = told(written()["vllm_gb_text"][1], tmp_path)
    assert verdict.short is not None and verdict.short.short_by == round(2.00 * 2**30) - round(0.78 * 2**30)


def test_a_message_that_no_rule_knows_is_less_sure(tmp_path: Path) -> None:
    for name in ("unknown_engine_kv", "unknown_engine_queue", "trt_kv_unknown_text"):
        assert verdict(written()[name][1], tmp_path).cause.confidence < 0.6


def test_every_general_rule_is_below_every_known_text() -> None:
    general = [s for s in signatures() if "-general-" in s.id]
    assert general
    for rule in general:
        assert rule.kind == "frame" or (rule.kind == "weak" and rule.confidence < 0.7), rule.id


UP = """INFO 11-20 10:00:00 [api_server.py:1] vLLM API server version 0.11.0
INFO 11-20 10:00:09 [gpu_model_runner.py:2] Model loading took 15.0 GiB and 5.1 seconds
INFO 11-20 10:00:19 [kv_cache_utils.py:3] GPU KV cache size: 400,000 tokens
INFO:     Application startup complete.
"""
ERRORS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB.",
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
    "EngineDeadError: EngineCore encountered an issue", "ValueError: bad form", "Traceback (most recent call last):",
)  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "INFO [logger.py:39] Received request cmpl-1: prompt: 'why %s', params: x",
        'INFO request finished completion="%s" tokens=12',
        "ERROR request failed: completion='%s'",
        '{"level":"info","completion":"%s"}',
        '{"event": "chat", "prompt": "%s", "n": 1}',
        'INFO messages=[{"role": "user", "content": "%s"}]',
        'INFO user asked: "why do I get %s?"',
        "DEBUG answer was '%s'",
        'INFO question="it said: %s',  # cut before the quote ends
    ],
)
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_that_somebody_quotes_is_no_failure(line: str, error: str, tmp_path: Path) -> None:
    """Once the engine is up, also where the quotation ends the file."""
    assert verdict(UP + line % error + "\n", tmp_path).cause.label == HEALTHY


@pytest.mark.parametrize(
    "line",
    [
        "ERROR [core.py:1] EngineCore hit an exception: '%s'",
        '{"level":"error","text":"%s"}',
        '{"msg":"%s"}',
        "%s",
        '{"level":"ERROR","payload":"%s"}',
        '{"severity":"ERROR","error":{"message":"%s"}}',
        "Exception in worker: OutOfMemoryError('%s')",
        'INFO reason="%s"',
    ],
)
def test_an_error_that_the_engine_quotes_is_one(line: str, tmp_path: Path) -> None:
    assert verdict(UP + line % ERRORS[0] + "\n", tmp_path).cause.label == "prefill_long_prompt"

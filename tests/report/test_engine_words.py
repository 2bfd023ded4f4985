"""The page of every engine says only what is that engine's: its flags, its messages, numbers that it has."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import cache

import pytest
from answers import book_for, record_for
from option_values import OptionValue
from solved_pages import MEMORY, answered, catalog, page

from sheetgen.answer.replica_bills import subject
from sheetgen.api import size
from sheetgen.catalog import guidance
from sheetgen.report.fingerprints import Fingerprint, fingerprints_of
from sheetgen.report.page import NONE, formatted
from sheetgen.report.wording import named_size

OTHERS = ("sglang", "tensorrt-llm", "nim", "tgi", "lmdeploy", "llama.cpp")
ENGINES = ("vllm", *OTHERS)
MODELS = "8b,70b"
GRAPHS, SAMPLER, POOL = "startup_workspace_or_cuda_graph", "sampler_logits_peak", "startup_kv_pool_too_small"
PREFILL, WEIGHTS, SPIKE = "prefill_long_prompt", "startup_weights_do_not_fit", "concurrency_spike"


def deaths(engine: str, models: str = MODELS, **options: OptionValue) -> dict[str, Fingerprint]:
    solved = answered(models, engine=engine, **options)
    return {f.label: f for f in fingerprints_of(record_for(solved, ()), solved.question)}


def flags(fingerprint: Fingerprint) -> list[str]:
    return [fix.flag for fix in fingerprint.fixes]


@cache
def flags_of() -> dict[str, set[str]]:
    """Every flag of the catalogs by engine, as typed and as the page has it."""
    flags_by_engine: dict[str, set[str]] = {engine: set() for engine in ENGINES}
    given = [fix.flags for fingerprint in guidance.fingerprints(catalog()) for fix in fingerprint.fixes]
    given += [assumption.flags for assumption in guidance.assumptions(catalog()).values()]
    for some in given:
        for engine, flag in some.items():
            flags_by_engine[engine] |= {flag, guidance.bare(flag)}
    return flags_by_engine


def foreign(engine: str) -> re.Pattern[str]:
    """Any flag that other engines have and this one has not; names that are also plain words only with dashes."""
    others = set().union(*flags_of().values()) - flags_of()[engine]
    names = sorted(n for n in others if "_" in n or n.startswith("--"))
    return re.compile("|".join(rf"(?<![\w-]){re.escape(n)}(?![\w-])" for n in names))


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_no_flag_of_another_engine(engine: str) -> None:
    pattern = foreign(engine)
    assert pattern.search("x --max-model-len y") or engine == "vllm"
    for death in deaths(engine).values():
        texts = asdict(death)
        texts.pop("numbers")
        assert not pattern.search(str(texts)), (death.label, pattern.search(str(texts)))
        assert not pattern.search(death.change)
    drawn = page(MODELS, engine=engine)
    assert not pattern.search(str(drawn.fingerprints))
    sheets = {s.name: s for s in book_for(answered(MODELS, engine=engine), page=drawn).sheets}
    for name in ("OOM guide", "Sources and checks"):
        text = " ".join(str(cell.value) for cell in sheets[name].cells.values())
        assert not pattern.search(text), (name, pattern.search(text))


@pytest.mark.some(1)
@pytest.mark.parametrize("gpu,asked", [("nvidia-h100-sxm5-80gb", {**MEMORY, "gpus": "h100"}), ("", {})])
def test_graphs_are_told_of_what_is_left_out(gpu: str, asked: dict[str, str]) -> None:
    """Of a share of what is free, the part left out is what is free and not in the pool."""
    fit = subject(answered(MODELS, engine="tensorrt-llm", engine_version="0.20.0", **asked))
    assert fit is not None and gpu in fit.candidate.gpu.id
    graphs = deaths("tensorrt-llm", engine_version="0.20.0", **asked)[GRAPHS]
    n = graphs.numbers
    sized = size(
        model=n["model"],
        gpu=fit.candidate.gpu.id,
        engine="tensorrt-llm",
        engine_version="0.20.0",
        tensor_parallel_size=n["tensor_parallel_size"],
        context=n["context_tokens"],
    )
    bills = sum(sized[f"{bill}_bytes_per_gpu"] for bill in ("weights", "activation", "non_torch"))
    left = sized["gpu_memory_bytes"] - bills - sized["kv_pool_bytes_per_gpu"]
    assert 0 < left < 0.1 * sized["gpu_memory_bytes"]
    assert graphs.here.endswith(f"a GPU, of the {named_size(left, 'gib')} left out")
    total = deaths("sglang", **asked)[GRAPHS]
    left = total.numbers["gpu_memory_bytes"] - total.numbers["memory_budget_bytes"]
    assert total.here.endswith(f"of the {named_size(left, 'gib')} left out")
    assert deaths("tensorrt-llm", **asked)[GRAPHS].here.count("1.0 GiB a GPU") == 1
    assert deaths("vllm", engine_version="0.22.0", **asked)[GRAPHS].here.endswith("inside the pool's share")


@pytest.mark.parametrize("engine", ENGINES)
def test_graphs_of_nothing_have_no_numbers(engine: str) -> None:
    graphs = deaths(engine)[GRAPHS]
    captured = answered(MODELS, engine=engine).question.engine.cuda_graph_gib > 0
    assert captured == (engine not in ("lmdeploy", "llama.cpp")) == bool(graphs.here)
    if not captured:
        assert not any("graph" in f.lower() or "eager" in f for f in flags(graphs))
    assert "0.0 GiB" not in graphs.here and graphs.change


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_are_told_of_what_they_are_compared_with(engine: str) -> None:
    weights = deaths(engine)[WEIGHTS]
    free = answered(MODELS, engine=engine).question.engine.fraction_of_free
    assert free == (engine in ("tensorrt-llm", "lmdeploy"))
    whole = weights.numbers["gpu_memory_bytes" if free else "memory_budget_bytes"]
    assert weights.here.endswith(f" of each GPU's {named_size(float(whole), 'gib')}")


@pytest.mark.parametrize(
    "engine,pool,sampler",
    [
        ("vllm", '"larger than the available KV cache memory"', '"warming up sampler with N dummy requests"'),
        ("sglang", '"Not enough memory. Please try to increase"', ""),
        ("tensorrt-llm", '"could not be created: KV cache"', ""),
        ("tgi", '"Not enough memory to handle `max_total_tokens=N`"', ""),
        ("llama.cpp", '"failed to allocate buffer for kv cache"', ""),
        ("lmdeploy", "", ""),
        ("nim", "", ""),
    ],
)
def test_a_message_is_the_engines_own(engine: str, pool: str, sampler: str) -> None:
    by_case = deaths(engine)
    assert (by_case[POOL].looks_like, by_case[SAMPLER].looks_like) == (pool, sampler)
    assert by_case[POOL].on_page(named=False).looks_like == (pool or NONE)
    assert by_case[SAMPLER].on_page(named=False).looks_like == (sampler or NONE)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_quoted_message_stands_in_a_log_line_of_the_engine(engine: str) -> None:
    quoted = [f for f in deaths(engine).values() if f.looks_like.startswith('"')]
    assert quoted or engine in ("nim", "lmdeploy")
    for fingerprint in quoted:
        pieces = re.split(r"\bN\b", fingerprint.looks_like.strip('"'))
        assert any(all(piece in line for piece in pieces) for line in fingerprint.log_lines), fingerprint.looks_like


@pytest.mark.some(7)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("gpus", ["", "l4", "h100"])
def test_a_suggested_value_moves_the_right_way(engine: str, gpus: str) -> None:
    options = {"gpus": gpus} if gpus else {}
    by_label = deaths(engine, "8b", **options)
    for fingerprint in by_label.values():
        used = {
            "prefill_long_prompt": "max_num_batched_tokens",
            SAMPLER: "max_num_seqs",
            GRAPHS: "",
            "long_completion": "max_context_tokens",  # the load's own length, below the model's
            POOL: "max_context_tokens",
        }.get(fingerprint.label)
        for fix in fingerprint.fixes:
            if not (fix.value or "").isdigit():
                continue
            key = "max_num_batched_tokens" if "ubatch" in fix.flag else used
            assert key and fix.direction == ("set" if key == "max_context_tokens" else "lower")
            assert 0 < int(fix.value or "") < int(fingerprint.numbers[key]), (fingerprint.label, fix)


@pytest.mark.long
def test_a_value_that_is_met_is_halved_or_left_out() -> None:
    by_case = deaths("llama.cpp", **MEMORY)
    assert [fix.short for fix in by_case[PREFILL].fixes] == ["ubatch_size ↓ 256", "ctx_size ↑"]
    assert [fix.short for fix in by_case[SAMPLER].fixes] == ["ubatch_size ↓ 256"], "4 requests: fewer free nothing"
    assert "0.2 GiB a GPU" in by_case[SAMPLER].here
    assert "0.2 GiB a GPU" in deaths("llama.cpp")[SAMPLER].here
    tgi = deaths("tgi", "gemma-3-27b")[SAMPLER]  # 262,208 words: half of the requests free more than 0.1 GiB
    assert tgi.fixes[0].short == "requests at once ↓ 64"
    n = tgi.numbers
    assert n["max_num_seqs"] == 128 and n["sampler_bytes_at_fewer_sequences"] == n["sampler_bytes"] / 2  # type: ignore[operator]
    assert tgi.here.endswith("64 take 0.2 GiB")
    small = deaths("vllm", "8b", gpus="l4")
    assert small[PREFILL].fixes[0].short == "max_num_batched_tokens ↓ 1024"
    assert small[SAMPLER].fixes[0].short == "max_num_seqs ↓ 128"


@pytest.mark.long
def test_a_precision_or_a_share_in_use_is_not_suggested() -> None:
    bf16, fp8 = deaths("vllm", "70b"), deaths("vllm", "70b", weight_dtype="fp8", kv_cache_dtype="fp8")
    for label in (SPIKE, POOL, "long_completion"):
        assert "--kv-cache-dtype" in flags(bf16[label]) and "--kv-cache-dtype" not in flags(fp8[label])
    assert "--quantization" in flags(bf16[WEIGHTS]) and "--quantization" not in flags(fp8[WEIGHTS])
    full = deaths("vllm", "70b", gpu_memory_utilization=1.0)
    assert "--gpu-memory-utilization" not in flags(full[POOL])
    assert "--gpu-memory-utilization" in flags(full[GRAPHS]), "it can still be lowered"
    shares = [flag for death in deaths("llama.cpp").values() for flag in flags(death) if flag.startswith("share of")]
    assert not shares, "llama.cpp has no share to set"


def test_an_engine_without_a_flag_keeps_the_general_words() -> None:
    lmdeploy, llama = deaths("lmdeploy"), deaths("llama.cpp")
    assert [fix.short for fix in lmdeploy[PREFILL].fixes] == [
        "tokens in one step ↓ 2048",
        "cache_max_entry_count ↓",
        "the limit itself, where the prompt was refused ↑",
    ]
    assert flags(llama[WEIGHTS]) == ["GPUs of one replica", "precision of the weights", "weights kept in host memory"]
    assert [fix.value for fix in llama[WEIGHTS].fixes][1] == "q8_0", "GGUF has no FP8"
    assert [fix.direction for fix in llama[SPIKE].fixes] == ["add"], "its requests wait before memory ends"
    assert [fix.short for fix in lmdeploy[SPIKE].fixes[:2]] == [
        "cache_max_entry_count ↑",  # which loses no quality
        "precision of the KV cache int8",
    ]


def test_a_request_that_waits_is_told_by_the_engines_limit() -> None:
    fits = deaths("llama.cpp", "8b", gpus="h100")[SPIKE]
    assert "4; request 5 waits" in fits.here
    unnamed = deaths("lmdeploy", "llama-3.2-1b", gpus="b200")
    assert unnamed[SPIKE].here.endswith("; request 129 waits (128 at most)")


@pytest.mark.some(3)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_row_has_something_to_change(engine: str) -> None:
    for models, options in ((MODELS, {}), ("qwen3.8-2.4t-a95b", {"gpus": "l4"})):
        prints = deaths(engine, models, **options).values()
        rows = formatted(tuple(f.on_page(named=i == 0) for i, f in enumerate(prints)))
        assert len(rows) == 7 and all(row.change != NONE and row.looks_like for row in rows)
        assert all(len(row.here) <= 80 and len(row.change) <= 60 for row in rows)

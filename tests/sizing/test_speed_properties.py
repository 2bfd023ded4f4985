"""Properties of speed whatever is deployed: monotone in hardware and load, never beyond physics, Little's law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from amounts import amount
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from measured_rows import deployment

from sheetgen.catalog import Catalog
from sheetgen.question.deployment import complete

CATALOG = Catalog()
MODELS = (
    *("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "qwen2.5-7b"),  # dense
    *("mixtral-8x7b-v0.1", "qwen3-30b-a3b", "llama-4-scout-17b-16e"),  # experts
    *("deepseek-v3", "glm-4.7-flash", "kimi-k2.5"),  # latent attention, experts
    *("nvidia-nemotron-3-nano-30b-a3b-bf16", "qwen3-next-80b-a3b", "falcon-h1-7b", "ai21-jamba-1.5-mini"),  # states
    *("gemma-3-27b", "gemma-2-9b", "mistral-7b-v0.1", "gpt-oss-120b"),  # windows
)
GPUS = (
    "l4",
    "l40s",
    "a10g",
    "a100",
    "h100",
    "h100-pcie",
    "h100-nvl",
    "h200",
    "gh200",
    "b200",
    "b300",
    "rtx-pro-6000",
    "spark",
)
ENGINES = ("vllm", "sglang", "tensorrt-llm", "lmdeploy", "llama.cpp")
LONGEST = 8192  # the shortest max_context_tokens of MODELS
TIMES = ("tpot_seconds", "ttft_seconds")
SLACK = 1e-9
examples = settings(max_examples=amount(8, 60), deadline=None, derandomize=True)

Row = dict[str, Any]


@st.composite
def deployments(draw: Callable[..., Any], ranks: tuple[int, ...] = (1, 2, 8), stages: tuple[int, ...] = (1, 2)) -> Row:
    prompt = draw(st.integers(0, LONGEST - 1))
    return {
        "model": draw(st.sampled_from(MODELS)),
        "gpu": draw(st.sampled_from(GPUS)),
        "engine": draw(st.sampled_from(ENGINES)),
        "tensor_parallel_size": draw(st.sampled_from((1, 2, 4, 8))),
        "data_parallel_size": draw(st.sampled_from(ranks)),
        "pipeline_parallel_size": draw(st.sampled_from(stages)),
        "weight_dtype": draw(st.sampled_from(("auto", "bf16", "fp8"))),
        "kv_cache_dtype": draw(st.sampled_from(("auto", "fp8"))),
        "input_tokens": prompt,
        "output_tokens": draw(st.integers(1, LONGEST - prompt)),
        "context_tokens": LONGEST,
        "concurrent_requests": draw(st.integers(1, 2000)),
        "prefix_cache_hit_fraction": draw(st.sampled_from((0, 0.3, 1))),
    }


def of(*rows: Row) -> list[dict[str, Any]]:
    """All quantities of each row; a combination that cannot be sized is drawn again."""
    values = deployment(completed(rows))
    columns = {name: numpy.broadcast_to(numpy.asarray(c), len(rows)) for name, c in values.items()}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(rows))]


def completed(rows: tuple[Row, ...]) -> Row:
    points = complete({name: [row[name] for row in rows] for name in rows[0]}, len(rows), CATALOG)
    if any(points.errors):
        assume(False)
    return points.values


def whole_answer(row: Row) -> Row:
    """The row with an answer of 16 tokens or more: a prompt waits for some running steps (up to 8, fitted), and where
    an answer is shorter than that wait, the first of several users cost more than they bring."""
    output = max(16, row["output_tokens"])
    return {**row, "output_tokens": output, "input_tokens": min(row["input_tokens"], LONGEST - output)}


def never_slower(slow: Row, fast: Row, *names: str) -> None:
    for name in names or (*TIMES, "output_tokens_per_second"):
        sign = -1 if name == "output_tokens_per_second" else 1
        assert sign * fast[name] <= sign * slow[name] + SLACK * abs(slow[name]), (name, slow[name], fast[name])


def queues(row: Row) -> bool:
    return bool(row["running_requests"] < row["concurrent_requests"])


# Hardware


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "name",
    [
        "memory_bandwidth_bytes_per_second",
        "peak_flops",
        "peak_flops_16_bit",
        "interconnect_bytes_per_second",
        "pair_link_bytes_per_second",
    ],
)
@given(row=deployments(), more=st.floats(1, 10))
@examples
def test_better_hardware_is_never_slower(name: str, row: Row, more: float) -> None:
    values = completed((row,))
    never_slower(deployment(values), deployment({**values, name: values[name] * more}))


def test_a_bridge_speeds_up_the_pair_that_it_joins_and_no_larger_group() -> None:
    """Two H100 NVL exchange at 300 GB/s each way, four at the 64 GB/s of their slots (NVIDIA's data sheet)."""
    for gpus, rate in ((2, 300e9), (4, 64e9)):
        (values,) = of({"model": "llama-3.1-70b", "gpu": "h100-nvl", "tensor_parallel_size": gpus})
        moved = 80 * 2 * 2 * 8192 * (gpus - 1) / gpus  # one all-reduce a layer of 16-bit activations, there and back
        assert values["token_link_seconds"] * rate * values["link_efficiency"] == pytest.approx(moved)


@given(row=deployments())
@examples
def test_no_token_comes_before_its_bytes_are_read_and_its_arithmetic_is_done(row: Row) -> None:
    values = of(row)[0]
    batch, size = values["batch_requests"], values["tensor_parallel_size"]
    group = size * values["data_parallel_size"]
    # At least one expert of each that a token needs is read: the expected number, on the GPU's share of them.
    experts = values["routed_bytes"] * (1 - values["expert_miss_fraction"] ** (batch * values["data_parallel_size"]))
    read = values["dense_read_bytes"] / size + experts / group + values["context_read_bytes"] * batch
    assert values["tpot_seconds"] >= read / values["memory_bandwidth_bytes_per_second"]
    assert values["tpot_seconds"] >= 2 * values["n_params_active"] * batch / (size * values["peak_flops"])


@given(row=deployments())
@examples
def test_no_first_token_comes_before_its_prompt_is_computed(row: Row) -> None:
    values = of(row)[0]
    new = values["input_tokens"] * (1 - values["prefix_cache_hit_fraction"])
    body = values["n_params_active"] - values["n_params_embedding"] - values["n_params_lm_head"]
    gpus = values["tensor_parallel_size"] * values["data_parallel_size"]
    assert values["ttft_seconds"] >= 2 * body * new / (gpus * values["peak_flops"])
    assert values["ttft_seconds"] >= values["prefill_seconds"]


# Load


@given(row=deployments(), more=st.integers(1, 500))
@examples
def test_tpot_never_falls_with_users(row: Row, more: int) -> None:
    few, many = of(row, {**row, "concurrent_requests": row["concurrent_requests"] + more})
    never_slower(many, few, *TIMES)


@given(row=deployments(ranks=(1,), stages=(1,)), more=st.integers(1, 500))
@examples
def test_more_users_never_lower_the_total(row: Row, more: int) -> None:
    row = whole_answer(row)
    few, many = of(row, {**row, "concurrent_requests": row["concurrent_requests"] + more})
    assume(not queues(many))
    never_slower(few, many, "output_tokens_per_second")


@given(row=deployments(ranks=(2, 8)), more=st.integers(1, 3))
@examples
def test_more_users_never_lower_the_total_of_several_batches(row: Row, more: int) -> None:
    """Of ranks that are equally busy: the one request more of an uneven count makes all ranks wait for one."""
    row, ranks = whole_answer(row), row["data_parallel_size"]
    even = -(-row["concurrent_requests"] // ranks) * ranks
    few, many = of(*({**row, "concurrent_requests": even + added} for added in (0, more * ranks)))
    assume(not queues(many))
    never_slower(few, many, "output_tokens_per_second")


@given(row=deployments(stages=(1,)), ranks=st.sampled_from((1, 2, 4, 8)), batch=st.integers(1, 100))
@examples
def test_as_many_users_a_rank_more_ranks_give_more_in_all(row: Row, ranks: int, batch: int) -> None:
    """Every rank as busy as before, the total grows, however much the ranks wait for each other."""
    row_ = {**row, "data_parallel_size": 1, "concurrent_requests": batch}
    few, many = of(row_, {**row_, "data_parallel_size": ranks, "concurrent_requests": batch * ranks})
    assume(not queues(few) and not queues(many))
    never_slower(few, many, "output_tokens_per_second")


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gemma-3-27b", "falcon-h1-7b"])
def test_ranks_of_a_dense_model_are_as_fast_as_one(model: str) -> None:
    row = {"model": model, "gpu": "h200", "context_tokens": 4096, "concurrent_requests": 8}
    alone, ranks = of({**row, "data_parallel_size": 1}, {**row, "data_parallel_size": 8, "concurrent_requests": 64})
    for name in TIMES:
        assert ranks[name] == pytest.approx(alone[name], rel=SLACK)


# Queue


@given(row=deployments(), more=st.integers(1, 10_000))
@examples
def test_a_full_pool_gives_what_littles_law_says(row: Row, more: int) -> None:
    first = of(row)[0]
    assume(first["running_capacity"] >= 1)
    values = of({**row, "concurrent_requests": int(first["running_capacity"]) + more})[0]
    assert queues(values)
    service = values["service_ttft_seconds"] + (values["output_tokens"] - 1) * values["tpot_seconds"]
    rate = values["running_requests"] / service
    assert values["output_tokens_per_second"] == pytest.approx(rate * values["output_tokens"], rel=SLACK)
    assert values["max_requests_per_second"] == pytest.approx(rate, rel=SLACK)


@given(row=deployments(), more=st.integers(1, 10_000))
@examples
def test_who_waits_changes_nothing_for_those_who_run(row: Row, more: int) -> None:
    first = of(row)[0]
    assume(first["running_capacity"] >= 1)
    full = {**row, "concurrent_requests": int(first["running_capacity"])}
    values, waiting = of(full, {**full, "concurrent_requests": full["concurrent_requests"] + more})
    for name in ("running_requests", "tpot_seconds", "service_ttft_seconds", "max_requests_per_second"):
        assert waiting[name] == values[name]
    assert values["queue_seconds"] == 0 < waiting["queue_seconds"]
    # Requests that wait take nothing from the total, but for the last token of a turn.
    last = values["tpot_seconds"] / (values["service_ttft_seconds"] + values["output_tokens"] * values["tpot_seconds"])
    total = values["output_tokens_per_second"]
    assert total * (1 - last) * (1 - SLACK) <= waiting["output_tokens_per_second"] <= total * (1 + SLACK)


# Precisions, contexts, prefixes


@given(row=deployments(), gpu=st.sampled_from([g for g in GPUS if CATALOG.gpu(g).weights_run.get("fp8") == "native"]))
@examples
def test_fp8_weights_are_never_slower_where_the_gpu_computes_in_fp8(row: Row, gpu: str) -> None:
    wide, narrow = of({**row, "gpu": gpu, "weight_dtype": "bf16"}, {**row, "gpu": gpu, "weight_dtype": "fp8"})
    assume(wide["running_requests"] == narrow["running_requests"])  # FP8 leaves room for more at once
    # What measured runs leave over the formulas may say that FP8 is slower: of other models, and by some percent.
    assume(all(narrow[name] <= wide[name] for name in ("tpot_residual", "ttft_residual")))
    never_slower(wide, narrow)


@given(row=deployments())
@examples
def test_an_fp8_cache_is_never_slower(row: Row) -> None:
    wide, narrow = of({**row, "kv_cache_dtype": "bf16"}, {**row, "kv_cache_dtype": "fp8"})
    assume(wide["running_requests"] == narrow["running_requests"])
    never_slower(wide, narrow)


@given(row=deployments(), shorter=st.floats(0, 1))
@examples
def test_a_longer_prompt_is_never_faster(row: Row, shorter: float) -> None:
    long, short = of(row, {**row, "input_tokens": int(row["input_tokens"] * shorter)})
    assume(long["running_requests"] == short["running_requests"])  # else fewer run, and each of them is faster
    never_slower(long, short)


@given(row=deployments(), hit=st.floats(0, 1))
@examples
def test_a_prefix_hit_is_never_slower(row: Row, hit: float) -> None:
    cold, warm = of({**row, "prefix_cache_hit_fraction": 0}, {**row, "prefix_cache_hit_fraction": hit})
    assume((cold["running_capacity"] >= 1) == (warm["running_capacity"] >= 1))
    never_slower(cold, warm, "ttft_seconds", "output_tokens_per_second")
    if cold["running_requests"] == warm["running_requests"]:
        never_slower(cold, warm, "tpot_seconds")


@pytest.mark.parametrize(
    ("model", "gpu", "size"),
    [
        ("llama-3.1-8b", "h100", 1),
        ("llama-3.1-70b", "h100", 8),
        ("qwen3-30b-a3b", "h200", 1),
    ],
)
def test_the_share_of_prompts_is_what_tokens_gain_without_them(model: str, gpu: str, size: int) -> None:
    """A whole prompt in the prefix cache leaves decoding alone: what a token's time loses by it is the prompts' share.
    Of 64 requests a token waits for the prompts of 63, but for those before its own first (the wait factor, 6 %), and a
    hit still computes the prompt's last tokens: 0.09."""
    row: Row = {
        "model": model,
        "gpu": gpu,
        "engine": "vllm",
        "tensor_parallel_size": size,
        "data_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "weight_dtype": "auto",
        "kv_cache_dtype": "auto",
        "input_tokens": 4000,
        "output_tokens": 500,
        "context_tokens": LONGEST,
        "concurrent_requests": 64,
    }
    read, kept = of(*({**row, "prefix_cache_hit_fraction": hits} for hits in (0, 1)))
    assert read["prefill_fraction"] == pytest.approx(1 - kept["tpot_seconds"] / read["tpot_seconds"], abs=0.09)
    assert read["prefill_fraction"] > 0.3 > 0.09 > kept["prefill_fraction"]

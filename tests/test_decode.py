"""Claims read back: what fits, what it comes to elsewhere, cautions, and what `sheetgen.decode` refuses."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import sheetgen
from sheetgen.decode.readings import layouts
from sheetgen.errors import SheetgenError

CLAIM: dict[str, Any] = {
    "model": "70b", "gpu": "h100", "n_gpus": 8, "weight_dtype": "fp8", "tokens_per_second": 12_000, "concurrency": 512,
}  # fmt: skip
SHAPE = {"input_tokens": 1024, "output_tokens": 1024}


def test_what_fits_is_what_size_says() -> None:
    answer = sheetgen.decode(**CLAIM, **SHAPE)
    assert [one["layout"] for one in answer["capacity"]][::2] == ["TP 1 x 8", "TP 2 x 4", "TP 4 x 2", "TP 8"]
    for one, row in zip(answer["capacity"], answer["shapes"][0]["readings"], strict=True):
        deployment = {
            "model": "70b",
            "gpu": "h100",
            "weight_dtype": "fp8",
            "kv_cache_dtype": one["kv_cache_dtype"],
            "tensor_parallel_size": one["tensor_parallel_size"],
            "users": 512 // one["n_replicas"],
        }
        full = sheetgen.size(**deployment, context=131_072)
        shape = sheetgen.size(**deployment, context=2048, input_tokens=1024, output_tokens=1024)
        assert one["longest_context_tokens"] == full["max_context_tokens_that_fit"]
        assert one["kv_pool_bytes_per_gpu"] == full["kv_pool_bytes_per_gpu"]
        assert row["requests_that_fit"] // one["n_replicas"] == math.floor(shape["max_concurrency"])
        assert (row["requests_that_fit"] >= 512) == shape["fits"]
        if row["holds"]:
            assert row["tpot_seconds"] == shape["tpot_seconds"]
            rate = one["n_replicas"] * shape["output_tokens_per_second"]
            assert row["output_tokens_per_second"] == pytest.approx(rate, rel=1e-9)
            assert row["running_requests"] + row["waiting_requests"] == 512
            assert row["ceiling_tokens_per_second"] > row["output_tokens_per_second_high"] or not row["considered"]
    longest = answer["longest_context_tokens"]
    for dtype, tokens in longest.items():
        assert tokens == max(o["longest_context_tokens"] for o in answer["capacity"] if o["kv_cache_dtype"] == dtype)
    assert longest["fp8"] == pytest.approx(2 * longest["bf16"], rel=0.02)
    said = f"at most {longest['bf16']:,} tokens in bf16, {longest['fp8']:,} tokens in fp8"
    assert said in answer["longest_context_words"]


def test_the_longest_context_holds_all_and_a_block_more_does_not() -> None:
    answer = sheetgen.decode(**CLAIM)
    for one in answer["capacity"]:
        longest, replicas = one["longest_context_tokens"], one["n_replicas"]
        for context, fits in ((longest, True), (longest + 16, False)):
            sized = sheetgen.size(
                model="70b",
                gpu="h100",
                weight_dtype="fp8",
                kv_cache_dtype=one["kv_cache_dtype"],
                context=context,
                tensor_parallel_size=one["tensor_parallel_size"],
                users=512 // replicas,
            )
            assert sized["fits"] is fits, one


def test_requests_that_do_not_divide_over_the_replicas() -> None:
    for n in (1, 9, 513):
        answer = sheetgen.decode(**{**CLAIM, "model": "8b", "concurrency": n, **SHAPE})
        for one in answer["shapes"][0]["readings"]:
            fullest = -(-n // one["n_replicas"])
            alone = sheetgen.size(
                model="8b",
                gpu="h100",
                weight_dtype="fp8",
                kv_cache_dtype=one["kv_cache_dtype"],
                context=2048,
                users=fullest,
                tensor_parallel_size=one["tensor_parallel_size"],
                **SHAPE,
            )["output_tokens_per_second"]
            assert one["output_tokens_per_second"] == pytest.approx(alone * n / fullest, rel=1e-9)
            assert one["concurrent_requests"] == n and one["running_requests"] <= n


def test_layouts() -> None:
    words = [one.words for one in layouts(8, is_moe=True)]
    assert words == ["TP 1 x 8", "TP 2 x 4", "TP 4 x 2", "TP 8", "TP 1 DP 2 x 4", "TP 1 DP 4 x 2", "TP 1 DP 8"]
    assert [one.words for one in layouts(3, is_moe=False)] == ["TP 1 x 3"]
    assert [one.words for one in layouts(16, False, 8)] == ["TP 8 x 2"]
    for n in (1, 2, 6, 12, 72, 10_000):
        for one in layouts(n, is_moe=True):
            assert one.tensor_parallel_size * one.data_parallel_size * one.n_replicas == n
    with pytest.raises(SheetgenError, match="does not divide the 8 GPUs"):
        layouts(8, False, 3)


def test_heads_that_tensor_parallelism_does_not_divide_are_left_out() -> None:
    answer = sheetgen.decode(model="qwen2.5-7b", gpu="h100", n_gpus=8, tokens_per_second=9000, concurrency=64)
    assert {one["tensor_parallel_size"] for one in answer["capacity"]} == {1, 2, 4}  # 28 heads


def test_a_rate_per_gpu_is_of_all() -> None:
    each = sheetgen.decode(**{**CLAIM, "tokens_per_second": 1500, "per_gpu": True}, **SHAPE)
    whole = sheetgen.decode(**CLAIM, **SHAPE)
    assert each["claim"]["tokens_per_second"] == 12_000 and each["claim"]["stated_per"] == "gpu"
    assert each["shapes"] == whole["shapes"] and each["verdict"] == whole["verdict"] == "consistent"
    assert whole["per_user"]["tokens_per_second"] == pytest.approx(12_000 / 512)
    assert whole["per_user"]["seconds_per_token"] == pytest.approx(512 / 12_000)


def test_the_pace_of_a_user() -> None:
    for rate, pace in ((12_800, "fast"), (12_799, "readable"), (2_560, "readable"), (2_559, "slow")):
        assert sheetgen.decode(**{**CLAIM, "tokens_per_second": rate})["per_user"]["pace"] == pace


def test_at_your_context() -> None:
    silent = sheetgen.decode(**CLAIM, context="16k", users=200)["at_context"]
    assert silent["scaled_by_claim"] is None and silent["context_tokens"] == 16_384 and silent["users"] == 200
    best = silent["predicted"]
    own = [r for r in silent["readings"] if r["kv_cache_dtype"] == "bf16" and r["holds"]]
    assert best["output_tokens_per_second"] == max(r["output_tokens_per_second"] for r in own)
    assert (best["input_tokens"], best["output_tokens"]) == (15_360, 1024)
    alone = sheetgen.size(
        model="70b",
        gpu="h100",
        weight_dtype="fp8",
        context="16k",
        users=200 // best["n_replicas"],
        tensor_parallel_size=best["tensor_parallel_size"],
    )
    assert best["tpot_seconds"] == alone["tpot_seconds"] and best["ttft_seconds"] == alone["ttft_seconds"]
    three_digits = float(f"{best['output_tokens_per_second']:.3g}")
    assert f"becomes about {three_digits:,.0f} at 16,384 tokens and 200 users" in silent["words"]

    faster = {**CLAIM, **SHAPE, "tokens_per_second": 14_000}
    stated = sheetgen.decode(**faster, context="16k", users=200)["at_context"]
    scaled, names = stated["scaled_by_claim"], ("layout", "kv_cache_dtype")
    same = next(r for r in stated["readings"] if all(r[name] == scaled[name] for name in names))
    assert scaled["factor"] == pytest.approx(14_000 / scaled["predicted_tokens_per_second"])
    ratio = scaled["output_tokens_per_second"] / same["output_tokens_per_second"]
    assert ratio == pytest.approx(scaled["factor"]) and scaled["speed_scope"] == "anchored"
    assert stated["output_tokens_per_second"] == scaled["output_tokens_per_second"]


def test_the_claim_anchored_at_its_own_shape_is_the_claim() -> None:
    answer = sheetgen.decode(**{**CLAIM, "tensor_parallel_size": 8}, **SHAPE, context=2048)
    assert answer["at_context"]["scaled_by_claim"]["output_tokens_per_second"] == pytest.approx(12_000)
    assert sheetgen.decode(**CLAIM)["at_context"] is None


def test_a_claim_that_cannot_be_true_scales_nothing() -> None:
    answer = sheetgen.decode(**{**CLAIM, "tokens_per_second": 1_000_000}, **SHAPE, context="16k")
    assert answer["verdict"] == "impossible" and answer["at_context"]["scaled_by_claim"] is None
    assert answer["at_context"]["words"].startswith("Whatever the claim, these GPUs give about ")


def test_verdicts_are_in_order() -> None:
    order = ["slower", "consistent", "unlikely", "impossible"]
    found = [
        sheetgen.decode(**{**CLAIM, "tokens_per_second": rate}, **SHAPE)["verdict"]
        for rate in (10, 5_000, 11_000, 13_000, 20_000, 40_000, 100_000, 1e9)
    ]
    assert [order.index(one) for one in found] == sorted(order.index(one) for one in found)
    assert set(found) == set(order)


def test_between_two_lengths_is_consistent() -> None:
    answer = sheetgen.decode(**{**CLAIM, "tokens_per_second": 4_000, "kv_cache_dtype": "bf16"})
    kinds = {shape["verdict"] for shape in answer["shapes"]}
    assert answer["verdict"] == "consistent" and "consistent" not in kinds and "slower" in kinds
    assert "lengths between" in answer["verdict_words"]


def kinds(**options: Any) -> set[str]:
    return {one["kind"] for one in sheetgen.decode(**{**CLAIM, **options})["cautions"]}


def test_cautions_are_said_where_the_numbers_suggest_them() -> None:
    assert kinds(**SHAPE) == set()
    assert "unstated_lengths" in kinds() and "unstated_lengths" not in kinds(**SHAPE)
    assert "total_tokens" in kinds(**SHAPE, tokens_per_second=24_000)
    assert "offline" in kinds(input_tokens=8192, output_tokens=1024) and "offline" not in kinds(**SHAPE)
    assert kinds(**SHAPE, tokens_per_second=1_500) == {"per_gpu"}
    assert "all_gpus" in kinds(**SHAPE, per_gpu=True)
    assert "per_user" in kinds(**SHAPE, tokens_per_second=24)
    assert "per_node" in kinds(**SHAPE, n_gpus=16, concurrency=1024, tokens_per_second=8_000)
    assert "sparsity" in kinds(input_tokens=8192, output_tokens=1024, tokens_per_second=14_000)
    assert "sparsity" not in kinds(input_tokens=8192, output_tokens=1024, tokens_per_second=100_000)
    assert "cached_prompts" in kinds(input_tokens=8192, output_tokens=1024, tokens_per_second=6_000, concurrency=128)
    small = {"model": "8b", "n_gpus": 1, "concurrency": 1, **SHAPE}
    assert "speculative_decoding" in kinds(**small, tokens_per_second=450)
    assert "narrower_weights" in kinds(**{**small, "weight_dtype": "bf16"}, tokens_per_second=240)
    short = sheetgen.decode(**{**CLAIM, "input_tokens": 128, "output_tokens": 128}, context="8k")["cautions"]
    assert "It is of requests of only 256 tokens; yours are 32 times as long." in [one["words"] for one in short]


def test_fp4_where_the_gpu_computes_in_it() -> None:
    claim = {"model": "70b", "gpu": "b200", "n_gpus": 8, "concurrency": 16, "weight_dtype": "fp8", **SHAPE}
    readings = sheetgen.decode(**claim, tokens_per_second=1)["shapes"][0]["readings"]
    top = max(one["output_tokens_per_second_high"] for one in readings)
    found = sheetgen.decode(**claim, tokens_per_second=1.02 * top)
    assert any("weights in nvfp4" in one["words"] for one in found["cautions"])


def test_weights_that_do_not_fit() -> None:
    answer = sheetgen.decode(model="405b", gpu="h100", n_gpus=8, tokens_per_second=1500, concurrency=64, context="8k")
    assert answer["verdict"] == "impossible" and "the weights alone need" in answer["verdict_words"]
    assert answer["nearest"] is None and answer["longest_context_tokens"] == {"bf16": None, "fp8": None}
    assert all(not r["holds"] and r["tpot_seconds"] is None for s in answer["shapes"] for r in s["readings"])
    assert "no counterpart" in answer["at_context"]["words"]
    assert [one["kind"] for one in answer["cautions"]] == ["narrower_weights"]


def test_a_share_of_memory_that_must_have_been_raised() -> None:
    # SGLang's default share holds no DeepSeek-R1 in FP8 on 4 B200, where it was measured.
    claim = {"model": "deepseek-r1", "gpu": "b200", "n_gpus": 4, "engine": "sglang", "concurrency": 8, **SHAPE}
    answer = sheetgen.decode(**claim, tokens_per_second=500)
    assert answer["claim"]["gpu_memory_utilization_is_raised"] and answer["nearest"]["holds"]
    assert answer["claim"]["gpu_memory_utilization"] == 0.95
    stated = sheetgen.decode(**claim, tokens_per_second=500, gpu_memory_utilization=0.85)
    assert stated["verdict"] == "impossible" and not stated["claim"]["gpu_memory_utilization_is_raised"]


def test_precisions_that_the_gpu_does_not_take() -> None:
    claim = {"n_gpus": 1, "tokens_per_second": 100, "concurrency": 4}
    assert sheetgen.decode(model="8b", gpu="h100", weight_dtype="nvfp4", **claim)["verdict"] in ("slower", "impossible")
    t4 = sheetgen.decode(model="8b", gpu="t4", **claim)
    assert t4["verdict"] == "impossible" and "does not run bf16 weights" in t4["verdict_words"]


def test_shapes_over_the_limit_of_the_model_are_left_out() -> None:
    answer = sheetgen.decode(model="llama-2-7b", gpu="h100", n_gpus=1, tokens_per_second=2000, concurrency=32)
    shapes = [(one["input_tokens"], one["output_tokens"]) for one in answer["shapes"]]
    assert shapes == [(128, 128), (1024, 1024), (2048, 2048)]


def test_one_length_alone() -> None:
    answer = sheetgen.decode(**CLAIM, output_tokens=1024)
    assert {s["output_tokens"] for s in answer["shapes"]} == {1024} and len(answer["shapes"]) == 4
    assert "unstated_lengths" in {one["kind"] for one in answer["cautions"]}


def test_the_record_is_plain_and_the_same_each_time() -> None:
    first, second = (sheetgen.decode(**CLAIM, context="16k", users=200) for _ in range(2))
    assert json.dumps(first, allow_nan=False) == json.dumps(second, allow_nan=False)
    assert list(first) == [
        "schema_version",
        "claim",
        "per_user",
        "verdict",
        "verdict_words",
        "nearest",
        "longest_context_tokens",
        "longest_context_words",
        "capacity",
        "shapes",
        "at_context",
        "cautions",
    ]


BAD = {
    "tokens_per_second": (0, -1, math.nan, math.inf, 1e30, "many", "", [1], True),
    "concurrency": (0, -1, math.nan, 1e30, 1.5, "x", {}, 1_000_001),
    "n_gpus": (0, -8, math.nan, 1e30, 2.5, 10_001, False),
    "tensor_parallel_size": (0, -1, math.nan, 3, 16, "two"),
    "input_tokens": (0, -1, math.nan, 1e30, "long", "1,6k"),
    "output_tokens": (0, 1e30, "x"),
    "context_tokens": (0, "200k", 1e30, "x"),
    "per_gpu": (1, "yes"),
    "claim": (5, "", " \n", "x" * 2001),
    "gpu": ("h1000", "", 5),
    "model": ("lama-3.1-8b", "", None),
    "weight_dtype": ("fp9", 8),
    "kv_cache_dtype": ("fp9", ""),
    "engine": ("vlm",),
    "gpu_memory_utilization": (1.5, "all"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values_are_told_in_one_line_each(name: str) -> None:
    for value in BAD[name]:
        with pytest.raises(SheetgenError) as caught:
            sheetgen.decode(**{**CLAIM, name: value})
        assert caught.value.problems, (name, value)
        for problem in caught.value.problems:
            assert len(problem.splitlines()) == 1 and problem.endswith((".", "?")), problem


def test_refusals_that_help() -> None:
    for options, expected in (
        ({"modle": "8b"}, "unknown option 'modle'. Did you mean model?"),
        ({"users": 5}, "users is given without context_tokens"),
        ({"context": "8k", "context_tokens": "8k"}, "given twice"),
        ({"gpu": "h1000"}, "Did you mean h100?"),
        ({"tensor_parallel_size": 3}, "does not divide the 8 GPUs"),
        ({"input_tokens": 131_072, "output_tokens": 1024}, "over the 131,072 that llama-3.1-70b allows"),
    ):
        with pytest.raises(SheetgenError, match=expected):
            sheetgen.decode(**{**CLAIM, **options})
    with pytest.raises(SheetgenError) as caught:
        sheetgen.decode(model="71b", gpu="h1000", n_gpus=0, tokens_per_second=math.nan, concurrency=0)
    assert len(caught.value.problems) == 5

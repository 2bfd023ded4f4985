"""Measured runs read back as claims: consistent, never impossible; ten times as fast, not possible."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas
import pytest
from amounts import amount
from measured_rows import DATA

from sheetgen.catalog import Catalog
from sheetgen.decode import decoded

# Public runs on H100 and H200 at fixed concurrency or a fixed batch, all of their configuration stated: id, model, GPU,
# GPUs (= TP), weights, requests, input, output, output tokens/s. trt09, trtov09: TensorRT-LLM 0.9; nim1, nimdoc: NIM.
# Source: github.com/wbing520/ai-performance-engineering (trt09, nim1), tables of TensorRT-LLM and NIM; figures only.
PUBLIC = (
    ("trt09-0022", "llama-2-70b", "h100", 4, "fp8", 1, 128, 128, 82.7),
    ("trt09-0079", "llama-2-13b", "h100", 1, "bf16", 1, 128, 2048, 86.74),
    ("trt09-0183", "llama-2-70b", "h200", 2, "fp8", 16, 128, 2048, 963.91),
    ("trt09-0315", "llama-2-13b", "h200", 1, "fp8", 16, 128, 2048, 1965.47),
    ("trt09-0402", "llama-2-7b", "h200", 1, "fp8", 64, 128, 2048, 7149.36),
    ("trt09-0456", "llama-2-13b", "h200", 1, "fp8", 4, 128, 128, 664.4),
    ("trt09-0536", "llama-2-70b", "h100", 2, "bf16", 128, 128, 128, 2568.6),
    ("trt09-0639", "llama-2-70b", "h200", 1, "fp8", 4, 2048, 2048, 156.84),
    ("trt09-0758", "llama-2-70b", "h200", 1, "fp8", 4, 2048, 128, 128.15),
    ("trt09-0884", "llama-2-70b", "h200", 1, "fp8", 16, 128, 2048, 676.09),
    ("trt09-0996", "llama-2-70b", "h200", 4, "fp8", 256, 128, 128, 7627.45),
    ("trt09-1102", "llama-2-70b", "h100", 8, "bf16", 64, 2048, 2048, 2813.28),
    ("trt09-1208", "llama-2-70b", "h100", 2, "fp8", 1, 2048, 2048, 52.64),
    ("trt09-1326", "llama-2-13b", "h100", 1, "bf16", 4, 128, 128, 339.76),
    ("trt09-1399", "llama-2-70b", "h100", 2, "bf16", 2, 128, 128, 71.18),
    ("trt09-1494", "llama-2-70b", "h100", 8, "fp8", 256, 128, 128, 9073.2),
    ("trt09-1581", "llama-2-70b", "h100", 2, "bf16", 16, 128, 128, 514.58),
    ("trt09-1688", "llama-2-70b", "h100", 4, "fp8", 128, 128, 128, 5297.1),
    ("trt09-1778", "llama-2-7b", "h200", 1, "fp8", 64, 128, 128, 11003.2),
    ("trt09-1857", "llama-2-70b", "h200", 1, "fp8", 16, 2048, 2048, 579.12),
    ("trt09-1930", "llama-2-70b", "h100", 4, "bf16", 16, 2048, 2048, 678.63),
    ("trt09-1996", "llama-2-13b", "h100", 1, "fp8", 16, 2048, 2048, 1066.63),
    ("trt09-2092", "llama-2-70b", "h200", 8, "fp8", 64, 2048, 128, 1457.87),
    ("trt09-2172", "llama-2-13b", "h200", 1, "fp8", 1, 128, 128, 174.36),
    ("nim1-0151", "llama-3-8b", "h100", 2, "bf16", 100, 2000, 2000, 4795.39),
    ("nim1-0245", "llama-3-8b", "h100", 2, "fp8", 10, 2000, 200, 1321.83),
    ("nim1-0281", "llama-3-8b", "h100", 1, "bf16", 200, 2000, 2000, 2588.38),
    ("nim1-0329", "llama-3-8b", "h100", 1, "fp8", 1, 200, 1000, 191.817),
    ("nim1-0544", "llama-3-70b", "h100", 8, "bf16", 25, 2000, 2000, 1145.35),
    ("nim1-0591", "llama-3-70b", "h100", 8, "fp8", 50, 200, 1000, 2742.69),
    ("nim1-0639", "llama-3-70b", "h100", 8, "fp8", 150, 2000, 200, 1823.23),
    ("nim1-0675", "llama-3-70b", "h100", 4, "bf16", 100, 2000, 2000, 1998.66),
    ("nim1-0722", "llama-3-70b", "h100", 4, "fp8", 5, 200, 1000, 337.464),
    ("nim1-0769", "llama-3-70b", "h100", 4, "fp8", 1, 2000, 200, 63.0881),
    ("nimdoc-0009", "llama-3.3-70b", "h100", 2, "fp8", 1, 500, 2000, 52.85),
    ("trtov09-0011", "llama-2-7b", "h200", 1, "fp8", 64, 2048, 128, 2391),
    ("trtov09-0015", "llama-2-70b", "h200", 1, "fp8", 64, 2048, 128, 418),
    ("trtov09-0031", "llama-2-7b", "h100", 1, "fp8", 84, 2048, 128, 2163),
    ("trtov09-0035", "llama-2-70b", "h100", 2, "fp8", 96, 2048, 128, 692),
)
EVERY = amount(32, 16)  # of the serving runs on H100, H200 and B200


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def public_claims() -> list[dict[str, Any]]:
    names = ("model", "gpu", "n_gpus", "weight_dtype", "concurrency", "input_tokens", "output_tokens")
    return [
        dict(zip(names, row[1:8], strict=True))
        | {"tokens_per_second": row[8], "tensor_parallel_size": row[3], "engine": "tensorrt-llm"}
        for row in PUBLIC
    ]


def serving_claims() -> list[dict[str, Any]]:
    rows = pandas.read_csv(DATA / "throughput_serving.csv", dtype={"engine_version": str})
    rows = rows[rows["gpu"].isin(["h100", "h200", "b200"])].sort_values("id").iloc[::EVERY]
    alive = (rows["ttft_ms"] + (rows["output_tokens"] - 1) * rows["tpot_ms"]) / 1e3
    rows["tokens_per_second"] = rows["concurrent_requests"] * rows["output_tokens"] / alive
    rows = rows.rename(columns={"concurrent_requests": "concurrency"})
    names = [
        "model",
        "gpu",
        "n_gpus",
        "weight_dtype",
        "concurrency",
        "input_tokens",
        "output_tokens",
        "engine",
        "tensor_parallel_size",
        "tokens_per_second",
    ]
    return rows[names].to_dict("records")


def verdicts(claims: list[dict[str, Any]], catalog: Catalog, times: float = 1) -> list[str]:
    return [
        decoded(one | {"tokens_per_second": times * one["tokens_per_second"]}, catalog)["verdict"] for one in claims
    ]


def test_measured_serving_runs_are_consistent(catalog: Catalog) -> None:
    # The bands hold 80 % of runs whose configurations took no part; these took part, and the cache's precision is not
    # stated, so that either may match. What is above is mostly prompts from a prefix cache.
    claims = serving_claims()
    found = Counter(verdicts(claims, catalog))
    print(f"serving, {len(claims)} runs:", dict(found))
    assert len(claims) > amount(50, 100)
    assert found["consistent"] >= 0.75 * len(claims)
    assert found["impossible"] <= 0.01 * len(claims)
    assert found["unlikely"] <= 0.08 * len(claims)


def test_public_runs_are_never_called_impossible(catalog: Catalog) -> None:
    # Software of 2024, no part of any fit: NIM 1.0 ran at about three quarters of what today's engines reach
    # ("slower"), static batches of TensorRT-LLM 0.9 mostly within the band.
    each = verdicts(public_claims(), catalog)
    static = [one for one, row in zip(each, PUBLIC, strict=True) if row[0].startswith("trt")]
    found, within = Counter(each), Counter(static)
    print(f"public, {len(each)} runs:", dict(found), f"of which static batches, {len(static)} runs:", dict(within))
    assert found["impossible"] == 0
    assert found["unlikely"] <= 0.1 * len(each)
    assert within["consistent"] > 0.5 * len(static)


def test_ten_times_a_measured_rate_is_not_possible(catalog: Catalog) -> None:
    # At few requests a ceiling without any overhead is far away, and ten times the rate is only "unlikely".
    busy = [one for one in (*serving_claims(), *public_claims()) if one["concurrency"] >= 64]
    busy = busy[:: amount(2, 1)]
    found = Counter(verdicts(busy, catalog, times=10))
    print(f"ten times, {len(busy)} runs:", dict(found))
    assert found["impossible"] >= 0.9 * len(busy)
    assert found["impossible"] + found["unlikely"] == len(busy)

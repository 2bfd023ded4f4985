"""The interface for programs: the keys are a contract, a point equals the row of a frame, the known figures come
out."""

from __future__ import annotations

import datetime
import inspect
import json
import math
import random
import re
import time
from pathlib import Path
from typing import Any

import pandas
import pytest
from amounts import amount
from click.testing import CliRunner
from option_values import Options

import sheetgen
from sheetgen.catalog import Catalog, default_folder
from sheetgen.cli import main
from sheetgen.errors import CatalogError, ScenarioError

INPUTS = [
    "model",
    "gpu",
    "engine",
    "engine_version",
    "weight_dtype",
    "kv_cache_dtype",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "expert_parallel_size",
    "gpu_memory_utilization",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "block_size",
    "context_tokens",
    "concurrent_requests",
    "input_tokens",
    "output_tokens",
    "prefix_cache_hit_fraction",
    "draft_model",
    "kv_cache_memory_bytes",
]
RESULTS = [
    "n_params",
    "n_params_active",
    "weights_bytes",
    "weights_bytes_per_gpu",
    "activation_bytes_per_gpu",
    "non_torch_bytes_per_gpu",
    "cuda_graph_bytes_per_gpu",
    "gpu_memory_bytes",
    "kv_pool_bytes_per_gpu",
    "kv_bytes_per_token",
    "kv_bytes_per_token_per_gpu",
    "state_bytes_per_sequence",
    "kv_bytes_per_sequence",
    "kv_bytes_per_sequence_steady",
    "kv_bytes",
    "kv_admission_bytes",
    "kv_tokens",
    "max_concurrency",
    "max_context_tokens_that_fit",
    "fits",
    "verdict",
    "short_by_bytes",
    "min_gpus",
    "ttft_seconds",
    "tpot_seconds",
    "output_tokens_per_second",
    "output_tokens_per_second_per_gpu",
    "bound_by",
    "error",
]
MORE = (
    "average_context_fraction", "kv_allocation", "hybrid_kv_manager", "enable_prefix_caching", "model_id", "gpu_id",
    "enforce_eager", "skip_mm_profiling",
    "sized_as", "requests_per_second", "speed_factor", "ttft_factor", "network_gbps", "speed_scope", "running_requests",
    "max_requests_per_second", "queue", "chance", "users", "requests_per_user_per_day", "active_fraction",
    "requests_per_day", "tokens_per_day", "peak_hour_share", "history_hit_fraction",
    "burst_factor",
)  # fmt: skip
BANDS = [
    f"{name}_{end}"
    for name in (
        "weights_bytes_per_gpu",
        "activation_bytes_per_gpu",
        "non_torch_bytes_per_gpu",
        "kv_pool_bytes_per_gpu",
        "kv_tokens",
        "max_concurrency",
        "tpot_seconds",
        "ttft_seconds",
        "output_tokens_per_second",
    )
    for end in ("low", "high")
]
SPEED = ("ttft_seconds", "tpot_seconds", "output_tokens_per_second", "output_tokens_per_second_per_gpu", "bound_by")


def test_the_keys_of_size_are_the_contract() -> None:
    answer = sheetgen.size(model="70b")
    assert set(answer) == {*INPUTS, *RESULTS, *MORE, *BANDS, "band_scope"}
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    for name, value in answer.items():
        if "bytes" in name or name.startswith(("n_params", "kv_tokens", "max_context")):
            assert type(value) is int or (name == "short_by_bytes"), name
    assert all(answer[name] > 0 for name in SPEED if name != "bound_by")
    assert answer["error"] is None
    assert type(answer["fits"]) is bool


def test_defaults_used_are_in_the_answer() -> None:
    answer = sheetgen.size(model="70b", context="16k")
    assert answer["gpu"] == "h100" and answer["engine_version"] == "0.33.0"
    assert (answer["weight_dtype"], answer["kv_cache_dtype"]) == ("bf16", "bf16")
    assert (answer["max_model_len"], answer["input_tokens"], answer["output_tokens"]) == (16384, 15360, 1024)
    assert (answer["max_num_seqs"], answer["max_num_batched_tokens"], answer["block_size"]) == (1024, 8192, 16)
    small = sheetgen.size(model="70b", context=1001)
    assert (small["input_tokens"], small["output_tokens"]) == (501, 500)
    assert sheetgen.size(model="deepseek-v3")["weight_dtype"] == "fp8"
    assert sheetgen.size(model="deepseek-v3")["kv_cache_dtype"] == "bf16"


KV_PER_TOKEN = {
    "8b": (131_072, 0),
    "70b": (327_680, 0),
    "405b": (516_096, 0),
    "deepseek-v3": (70_272, 0),
    "qwen3.6-27b": (65_536, 153_944_064),
    "nemotron-3-nano-30b-a3b": (6_144, None),
    "gpt-oss-120b": (36_864, 0),
}


@pytest.mark.parametrize("model", KV_PER_TOKEN)
def test_published_kv_bytes_per_token(model: str) -> None:
    per_token, state = KV_PER_TOKEN[model]
    answer = sheetgen.size(model=model, kv_cache_dtype="bf16")
    assert answer["kv_bytes_per_token"] == per_token
    assert answer["state_bytes_per_sequence"] == state if state is not None else answer["state_bytes_per_sequence"] > 0


def test_published_walk_of_a_70b() -> None:
    def kv(context: int) -> int:
        value = sheetgen.size(
            model="70b", weight_dtype="fp8", kv_cache_dtype="fp8", context=context, concurrent_requests=64
        )["kv_bytes"]
        assert isinstance(value, int)
        return value

    assert kv(6000) == pytest.approx(64e9, rel=0.02)
    assert kv(3008) * 2 == kv(6016) and kv(12032) == 2 * kv(6016)  # whole blocks of 16


@pytest.mark.parametrize(
    ("inputs", "fits", "words"),
    [
        (
            {"concurrent_requests": 27},
            True,
            "memory for 27 requests of 16,384 tokens at once; request 28 does not fit.",
        ),
        (
            {"concurrent_requests": 28},
            False,
            "GiB short on 4x H100 SXM; memory for 27 requests of 16,384 tokens at once, 28 requested.",
        ),
        (
            {"tensor_parallel_size": 1},
            False,
            "the weights alone need 131.4 GiB of each GPU, and the engine may use 72.9",
        ),
        ({"tensor_parallel_size": 2, "context": 4096, "max_model_len": 131072}, False, "the engine does not start"),
        (
            {
                "gpu": "a10",
                "weight_dtype": "nvfp4",
                "kv_cache_dtype": "int8",
            },  # vLLM's Triton kernels, on any NVIDIA GPU
            True,
            "memory for 9 requests of 16,384 tokens at once",
        ),
        (
            {"gpu": "a10", "weight_dtype": "nvfp4", "kv_cache_dtype": "nvfp4", "engine_version": "0.30.0"},
            False,
            "vLLM 0.30.0 keeps no KV cache in nvfp4 on NVIDIA A10, 0.32.0 does. It keeps bf16,",
        ),
        (
            {"model": "gemma-3-27b", "gpu": "a10", "kv_cache_dtype": "nvfp4"},
            False,
            "keeps no KV cache of Gemma 3 27B in nvfp4 on NVIDIA A10. It keeps bf16,",
        ),
        (
            {"gpu": "b300", "context": 64, "concurrent_requests": 1025},
            False,
            "max_num_seqs admits 1,024 of 1,025 requests",
        ),
        (
            {"gpu": "b300", "context": 64, "concurrent_requests": 1024},
            True,
            "which is max_num_seqs; memory for 42,217.",
        ),
        ({"gpu": "gaudi3", "concurrent_requests": 1}, True, "The memory of Gaudi 3 is assumed ("),
        ({"gpu": "mi300x", "weight_dtype": "nvfp4"}, False, "does not run nvfp4 weights. It runs bf16,"),
    ],
)
def test_verdicts_say_why_with_numbers(inputs: Options, fits: bool, words: str) -> None:
    base = {"model": "70b", "gpu": "h100", "tensor_parallel_size": 4, "context": "16k"}
    answer = sheetgen.size(**{**base, **inputs})
    assert answer["fits"] is fits and words in answer["verdict"], answer["verdict"]
    assert (answer["short_by_bytes"] is None) is fits


def test_shortage_is_the_whole_replicas_and_exact() -> None:
    answer = sheetgen.size(model="70b", tensor_parallel_size=4, context="16k", concurrent_requests=28)
    need = 4 * (28 * answer["kv_bytes_per_sequence"] // 4 - answer["kv_pool_bytes_per_gpu"])
    assert answer["short_by_bytes"] == need
    assert sheetgen.size(model="8b", gpu="mi300x", weight_dtype="nvfp4")["min_gpus"] is None
    assert sheetgen.size(model="deepseek-v3", gpu="t4")["fits"] is False


def test_short_and_long_spellings() -> None:
    short = sheetgen.size(model="8b", context="4k", concurrent_requests=3)
    assert short == sheetgen.size(model="8b", context_tokens=4096, concurrent_requests="3")
    tenth = sheetgen.size(model="8b", context="4k", users="3k", active_fraction=0.001)
    assert tenth | {"users": None, "active_fraction": None} == short
    with pytest.raises(ScenarioError, match="Keep one"):
        sheetgen.size(model="8b", users=30, active_fraction=0.1, concurrent_requests=4)
    with pytest.raises(ScenarioError, match="given twice"):
        sheetgen.size(model="8b", context=1, context_tokens=2)
    with pytest.raises(ScenarioError, match="Did you mean tensor_parallel_size"):
        sheetgen.size(model="8b", tensor_parallel=2)
    with pytest.raises(ScenarioError, match="must be text"):
        sheetgen.size(model=["8b"])


def random_rows(n_rows: int, seed: int) -> pandas.DataFrame:
    rng = random.Random(seed)
    models = [
        "70b",
        "8b",
        "gemma-3-27b",
        "deepseek-v3",
        "gpt-oss-120b",
        "qwen3.6-27b",
        "nemotron-3-nano-30b-a3b",
        "nope",
    ]
    gpus = ["h100", "h200", "l4", "b200", "a10", "mi300x", None, "spark", "h1000"]
    rows = [
        {
            "note": f"row {i}",
            "model": rng.choice(models),
            "gpu": rng.choice(gpus),
            "weight_dtype": rng.choice([None, "auto", "fp8", "nvfp4", "int4"]),
            "kv_cache_dtype": rng.choice([None, "fp8", "int8", "bf16"]),
            "engine_version": rng.choice([None, "0.19.0", "0.22.0"]),
            "tensor_parallel_size": rng.choice([1, 2, 4, 8, None]),
            "pipeline_parallel_size": rng.choice([1, 1, 1, 2, 3]),
            "data_parallel_size": rng.choice([1, 1, 1, 2, 3]),
            "context_tokens": rng.choice([None, rng.randint(1, 30_000), rng.randint(1, 200_000), 0, 2.5]),
            "max_model_len": rng.choice([None, None, None, 131_072]),
            "concurrent_requests": rng.choice([None, rng.randint(1, 3_000)]),
            "max_num_seqs": rng.choice([None, None, rng.randint(1, 600)]),
            "gpu_memory_utilization": rng.choice([None, rng.uniform(0.5, 1)]),
            "prefix_cache_hit_fraction": rng.choice([None, rng.random()]),
            "draft_model": rng.choice([None, None, None, None, "eagle3-llama-3.x-70b"]),
            "kv_allocation": rng.choice([None, None, "reserved"]),
        }
        for i in range(n_rows)
    ]
    return pandas.DataFrame(rows, index=[f"i{i // 2}" for i in range(n_rows)])


def same(left: Any, right: Any) -> bool:
    if right is None or (isinstance(right, float) and math.isnan(right)):
        return left is None
    return bool(left == right)


def test_a_frame_equals_its_rows() -> None:
    frame = random_rows(amount(90, 220), 1)
    sized = sheetgen.size_frame(frame)
    assert sized.index.equals(frame.index) and list(sized["note"]) == list(frame["note"])
    assert list(sized.columns)[: len(frame.columns)] == list(frame.columns)
    failed = 0
    for given, row in zip(frame.to_dict("records"), sized.to_dict("records"), strict=True):
        inputs = {str(k): v for k, v in given.items() if k != "note" and v is not None and v == v}
        try:
            answer = sheetgen.size(**inputs)
        except (ScenarioError, CatalogError) as error:
            failed += 1
            assert row["error"] == " ".join(" ".join(error.problems).split("\n"))
            assert row["verdict"] is None and math.isnan(row["weights_bytes"])
            continue
        different = {k: (v, row[k]) for k, v in answer.items() if not same(v, row[k])}
        assert different == {}, inputs
    assert amount(8, 20) < failed < 200
    assert sized["fits"].eq(True).sum() > amount(4, 20)


def test_rows_of_a_large_frame_are_those_of_a_small_one() -> None:
    """Values worked out once for many rows alike, and sentences put together of parts that many rows share."""
    rng, n_rows = random.Random(5), amount(9_000, 30_000)
    many = pandas.concat([random_rows(300, 5)] * (n_rows // 300), ignore_index=True)
    crowd = pandas.Series([rng.random() < 0.8 for _ in range(n_rows)])
    many.loc[crowd, ["gpu", "engine_version", "pipeline_parallel_size", "data_parallel_size", "kv_allocation"]] = None
    many.loc[crowd, ["model", "tensor_parallel_size"]] = "8b", 1
    many["context_tokens"] = [rng.randint(1, 60_000) for _ in range(n_rows)]
    many["concurrent_requests"] = [rng.randint(1, 3_000) for _ in range(n_rows)]
    many["requests_per_second"] = [rng.choice([None, rng.uniform(0, 30)]) for _ in range(n_rows)]
    sized, some = sheetgen.size_frame(many), range(0, n_rows, 71)
    pandas.testing.assert_frame_equal(sized.iloc[some], sheetgen.size_frame(many.iloc[some]), check_exact=True)


def test_columns_asked_for_equal_those_of_all() -> None:
    """Each by itself, so that what it depends on is worked out without what others depend on."""
    rng, models = random.Random(8), ("8b", "deepseek-v3", "gemma-3-12b", "nemotron-h-47b-8k", "nope")
    rows = [
        {
            "note": f"n{i}",
            "model": models[i % len(models)],
            "tensor_parallel_size": rng.choice([1, 4, 8]),
            "context_tokens": rng.randint(1_000, 8_000),
            ("requests_per_second" if i % 3 == 0 else "concurrent_requests"): rng.randint(1, 200),
        }
        for i in range(amount(20, 90))
    ]
    frame = pandas.DataFrame(rows)
    every = sheetgen.size_frame(frame)
    assert every["error"].isna().mean() == 0.8 and {True, False} <= {*every["fits"]} and every["queue"].notna().any()
    for name in ("concurrent_requests", "gpu", *RESULTS, *MORE):
        asked = sheetgen.size_frame(frame, columns=[name])
        pandas.testing.assert_frame_equal(asked, every[[name]], check_exact=True)
    names = ["verdict", "note", "min_gpus", "chance", "max_context_tokens_that_fit"]
    pandas.testing.assert_frame_equal(sheetgen.size_frame(frame, columns=",".join(names)), every[names])
    with pytest.raises(ScenarioError, match=r"'fitz'.* Did you mean fits\?"):
        sheetgen.size_frame(frame, columns=["fitz"])


def test_dtypes_of_a_frame() -> None:
    sized = sheetgen.size_frame(pandas.DataFrame({"model": ["8b", "x"], "keep": [7, 8]}, index=[5, 5]))
    texts = {"model", "gpu", "engine", "engine_version", "weight_dtype", "kv_cache_dtype", "draft_model"}
    texts |= {"kv_allocation", "verdict", "error", "bound_by", "fits", "model_id", "sized_as", "gpu_id"}
    texts |= {"speed_scope", "queue"}
    for name in (*INPUTS, *RESULTS, *MORE):
        assert sized[name].dtype == (object if name in texts else float), name
    assert list(sized["keep"]) == [7, 8] and sized["keep"].dtype == int
    assert list(sized.index) == [5, 5]
    assert sized["max_num_seqs"].iloc[0] == 1024


def test_frames_of_no_rows_of_errors_only_and_of_short_spellings() -> None:
    empty = sheetgen.size_frame(pandas.DataFrame({"model": []}))
    assert len(empty) == 0 and set(RESULTS) <= set(empty.columns)
    failed = sheetgen.size_frame(pandas.DataFrame({"model": ["x"], "context": ["?"]}))
    assert "context_tokens is '?'" in failed["error"].iloc[0] and "'x' is not in" in failed["error"].iloc[0]
    short = sheetgen.size_frame(pandas.DataFrame({"model": ["8b"], "context": ["16k"], "concurrent_requests": [4]}))
    assert short["context_tokens"].iloc[0] == 16384 and short["concurrent_requests"].iloc[0] == 4
    assert short["context"].iloc[0] == "16k"


def test_sizing_what_came_out_changes_nothing() -> None:
    once = sheetgen.size_frame(random_rows(60, 3))
    good = once[once["error"].isna()]
    pandas.testing.assert_frame_equal(sheetgen.size_frame(good), good)


@pytest.mark.long
def test_a_frame_is_much_faster_than_its_rows() -> None:
    frame = random_rows(250, 4)
    many = pandas.concat([frame] * 40, ignore_index=True)
    start = time.perf_counter()
    sheetgen.size_frame(many)
    per_row = (time.perf_counter() - start) / len(many)
    start = time.perf_counter()
    for _ in range(10):
        sheetgen.size(model="70b")
    assert (time.perf_counter() - start) / 10 > 30 * per_row


def test_recommend_is_the_record_of_one_cell() -> None:
    answer = sheetgen.recommend(model="70b", context="16k", concurrent_requests=200, as_of="2026-11-20")
    top = {
        *("schema_version", "as_of", "inputs", "candidates", "cells", "fingerprints", "sources", "models"),
        *("not_in_price", "oldest_price_as_of"),
    }
    assert set(answer) == top | set(answer["cells"][0]) and len(answer["cells"]) == 1
    assert answer["concurrent_requests"] == 200 and answer["inputs"]["users"] is None
    assert answer["n_gpus"] == answer["n_replicas"] * answer["tensor_parallel_size"] * answer["pipeline_parallel_size"]
    assert answer["n_replicas"] * answer["sequences_per_replica"] >= 200
    assert answer["instance"] not in [w["instance"] for w in answer["why_not"]]
    assert len(answer["why_not"]) == len(answer["candidates"]) - 1
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def test_users_are_in_flight_by_the_active_fraction() -> None:
    third = sheetgen.recommend(model="8b", users=10, active_fraction=0.33)
    assert third["concurrent_requests"] == 4 and third["inputs"]["active_fraction"] == 0.33
    assert sheetgen.recommend(model="8b")["context_tokens"] == 4096
    huge = sheetgen.recommend(model="8b", users=50_000_000, active_fraction=1)
    assert huge["verdict"] == "fits" and huge["n_replicas"] * huge["sequences_per_replica"] >= 50_000_000


def test_recommend_says_what_it_does_not_know() -> None:
    with pytest.raises(ScenarioError, match="Did you mean providers"):
        sheetgen.recommend(model="8b", provider="aws")
    with pytest.raises(ScenarioError, match="over the 131,072 that"):
        sheetgen.recommend(model="8b", context="129k")
    with pytest.raises(ScenarioError, match="Name one"):
        sheetgen.recommend(concurrent_requests=3)


def test_recommend_agrees_with_size() -> None:
    """The recommended replica, sized on its own, holds what recommend says, and no more."""
    checked = 0
    for model, context, users in (
        ("8b", "4k", 40),
        ("70b", "16k", 200),
        ("gpt-oss-120b", "32k", 64),
        ("405b", "8k", 9),
    ):
        answer = sheetgen.recommend(model=model, context=context, concurrent_requests=users, confidence=0.5)
        if answer["pipeline_parallel_size"] > 1:
            continue
        point = {
            "model": model,
            "gpu": answer["gpu"],
            "tensor_parallel_size": answer["tensor_parallel_size"],
            "context": context,
            "weight_dtype": answer["weight_dtype"],
        }
        held = answer["sequences_per_replica"]
        assert sheetgen.size(**point, concurrent_requests=held)["fits"] is True
        assert sheetgen.size(**point, concurrent_requests=held + 1)["fits"] is False
        checked += 1
    assert checked >= 3


def test_all_models_can_be_sized() -> None:
    served = [m.id for m in Catalog().models() if m.kind != "draft"]
    sized = sheetgen.size_frame(pandas.DataFrame({"model": served, "context_tokens": [512] * len(served)}))
    assert sized["error"].isna().all() and (sized["kv_bytes_per_token"] > 0).sum() > 100


def test_recommend_takes_lists_of_names() -> None:
    lists = sheetgen.recommend(model=["8b"], gpus=["h100", "l40s"], providers=("aws",), as_of=datetime.date(2026, 1, 2))
    assert lists == sheetgen.recommend(model="8b", gpus="h100,l40s", providers="aws", as_of="2026-01-02")
    assert lists["inputs"]["gpus"] == ["h100", "l40s"] and lists["inputs"]["providers"] == ["aws"]


@pytest.mark.parametrize(
    "options",
    [
        {"gpus": [5]},
        {"gpus": []},
        {"gpus": {"h100"}},
        {"region": 5},
        {"engine": 5},
        {"engine": ["vllm"]},
        {"engine_version": 0.19},
        {"purchase": 3},
        {"weight_dtype": 8},
        {"as_of": 2026},
        {"as_of": datetime.date(1999, 12, 31)},
        {"concurrent_requests": [1]},
        {"concurrent_requests": "1,0"},
        {"context": [1]},
        {"context": 0},
        {"context": ""},
        {"context_tokens": 0},
        {"active_fraction": [1], "users": 9},
        {"active_fraction": 10**400, "users": 9},
        {"hours_per_month": float("nan")},
        {"block_size": {}},
        {"region": " "},
        {"catalogs": 5},
        {"catalogs": [5]},
        {"model": 5},
        {"model": ["8b", "70b"]},
        {"context": 1024, "context_tokens": 2048},
    ],
    ids=str,
)
def test_recommend_refuses_with_a_sentence(options: Options) -> None:
    with pytest.raises(ScenarioError) as error:
        sheetgen.recommend(**{"model": "8b", **options})
    assert len(error.value.problems) == 1 and str(error.value).split()[0] in (*options, "context_tokens")


@pytest.mark.parametrize(
    "inputs",
    [
        {"context_tokens": [1]},
        {"context": ""},
        {"concurrent_requests": float("inf")},
        {"concurrent_requests": "1e400"},
        {"concurrent_requests": {}},
        {"context": 10**400},
        {"gpu": 5},
        {"gpu": ["h100"]},
        {"gpu": " "},
        {"catalogs": None},
    ],
    ids=str,
)
def test_size_refuses_with_a_sentence(inputs: Options) -> None:
    with pytest.raises(ScenarioError, match=r"^\w+ is .*\.$"):
        sheetgen.size(**{"model": "8b", **inputs})


def test_one_folder_of_catalogs(tmp_path: Path) -> None:
    plain = sheetgen.size(model="8b")
    (tmp_path / "tiers.yaml").write_bytes((default_folder() / "tiers.yaml").read_bytes())
    assert sheetgen.size(model="8b", catalogs=str(tmp_path)) == sheetgen.size(model="8b", catalogs=tmp_path) == plain
    with pytest.raises(CatalogError, match=r"/nowhere: cannot be read"):
        sheetgen.recommend(model="8b", catalogs="/nowhere")
    with pytest.raises(CatalogError, match=r"/nowhere: cannot be read"):
        sheetgen.size_frame(pandas.DataFrame({"model": ["8b"]}), catalogs="/nowhere")


def test_a_frame_with_cells_of_any_kind() -> None:
    frame = pandas.DataFrame(
        {
            "model": ["8b", "8b", "8b", ["8b"]],
            "context_tokens": [float("inf"), 4096, float("nan"), float("-inf")],
            "output_tokens": [float("inf"), 1, 2, 3],
            "max_num_seqs": [[1], pandas.NA, None, {}],
            "concurrent_requests": pandas.array([1, None, 3, 4], dtype="Int64"),
        }
    )
    sized = sheetgen.size_frame(frame)
    assert sized["error"].notna().tolist() == [True, False, False, True]
    assert "context_tokens is 'inf'" in sized["error"][0]
    assert sized["context_tokens"].isna().tolist() == [True, False, False, True]
    assert sized["concurrent_requests"].tolist() == [1, 1, 3, 4]
    with pytest.raises(ScenarioError, match="not list"):
        sheetgen.size_frame([1])  # type: ignore[arg-type]


def test_thousands_and_underscores() -> None:
    for text in ("1,024", "1_024", "1024", "1k", " 1024 ", "1,024.0"):
        assert sheetgen.size(model="8b", context=text)["context_tokens"] == 1024
        assert sheetgen.recommend(model="8b", context=text)["context_tokens"] == 1024
    for text in ("10,24", "1,02", ",024", "1,024,", "1,0k", "1,5k", "1_,024", "1__024", "0001,024"):
        with pytest.raises(ScenarioError, match="context_tokens is '"):
            sheetgen.size(model="8b", context=text)
        with pytest.raises(ScenarioError, match="context_tokens is '"):
            sheetgen.recommend(model="8b", context=text)


def test_a_notebook_shows_the_lines_of_an_answer() -> None:
    answer = sheetgen.recommend(model="70b", users=200)
    shown = answer._repr_html_()  # type: ignore[attr-defined]
    assert f"${answer['monthly_usd']:,.0f} a month" in shown and "<th>sure</th>" in shown
    assert f"{answer['n_instances']}x {answer['instance']}, ${answer['monthly_usd']:,.0f} a month" in str(answer)
    assert len(str(answer).splitlines()) < 25
    nothing = sheetgen.recommend(model="kimi-k2", users=20, instances="aws/g6.xlarge", span_machines="never")
    assert nothing["verdict"] in nothing._repr_html_() or "othing" in nothing._repr_html_()  # type: ignore[attr-defined]
    assert {"recommend", "size", "size_frame"} <= set(dir(sheetgen))


SHEET: Options = {"models": ["8b"], "workloads": "rag", "tiers": [32], "as_of": "2026-11-20"}


def test_build_writes_the_files_of_the_command_and_returns_their_paths_and_the_record(tmp_path: Path) -> None:
    built = sheetgen.build(**SHEET, format=["xlsx", "json"], out=tmp_path / "mine", name="a")
    assert built.paths == {ending: tmp_path / "mine" / f"a.{ending}" for ending in ("xlsx", "json")}
    words = ("--models", "8b", "--workloads", "rag", "--tiers", "32", "--as-of", "2026-11-20", "--format", "xlsx,json")
    made = CliRunner().invoke(main, ["build", *words, "--out", str(tmp_path), "--name", "a"])
    assert made.exit_code == 0, made.output
    assert {path.read_bytes() == (tmp_path / path.name).read_bytes() for path in built.paths.values()} == {True}
    assert json.loads(built.paths["json"].read_text("utf-8")) == built
    shown = built._repr_html_()
    assert "a.xlsx" in shown and f"${built['cells'][0]['monthly_usd']:,.0f}" in shown
    assert str(built).endswith("/a.json") and f"${built['cells'][0]['monthly_usd']:,.0f}" in str(built)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"modles": "8b"}, "'modles'"),
        ({"format": "docx"}, "'docx'"),
        ({"flags": "no-such-engine"}, "no-such-engine"),
        ({"models": "no-such-model"}, "no-such-model"),
        ({"users": "many"}, "many"),
        ({"users": {}}, "users"),
        ({"name": "../a"}, "../a"),
        ({"catalogs": 3}, "catalogs"),
    ],
)
def test_build_refuses_before_it_writes(options: Options, named: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=re.escape(named)):
        sheetgen.build(**{**SHEET, "format": "json", "out": tmp_path, **options})
    assert list(tmp_path.iterdir()) == []


def test_completion_shows_the_functions_and_their_options() -> None:
    assert [name for name in dir(sheetgen) if not name.startswith("_")] == ["build", "recommend", "size", "size_frame"]
    of_build = {option.name for option in main.commands["build"].params} - {"as_json", "quiet", "scenario", "catalogs"}
    assert of_build < {*inspect.signature(sheetgen.build).parameters}
    asked = inspect.signature(sheetgen.recommend).parameters
    assert {"catalogs", "model", "users", "context", "discount_fraction", "budget_usd"} < {*asked}
    assert inspect.signature(sheetgen.size).parameters["tensor_parallel_size"].default == 1

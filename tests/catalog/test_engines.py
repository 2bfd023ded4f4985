"""Every engine's accounting: its file, what it makes of four kinds of model, and the public logs of SGLang and
TensorRT-LLM in tests/data/measured/engine_logs.csv."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sheetgen
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import Engine, load_engine
from sheetgen.errors import CatalogError
from sheetgen.question.sheet_question import ask
from sheetgen.sizing import memory

GIB = 2**30
ENGINES = ("vllm", "sglang", "tensorrt-llm", "nim", "tgi", "lmdeploy", "llama.cpp")
MODELS = ("8b", "deepseek-v3", "gemma-3-27b", "qwen3.6-27b")
LOGS = Path(__file__).parents[1] / "data" / "measured" / "engine_logs.csv"
H100_GIB = 79.19


def logs(engine: str) -> dict[str, dict[str, str]]:
    with LOGS.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file) if row["engine"] == engine}


def size(**asked: object) -> dict[str, Any]:
    answer = sheetgen.size(**asked)
    assert answer["error"] is None, answer["error"]
    return answer


# The files --------------------------------------------------------------------------------------------


def order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_all_engines_of_the_interface_have_a_file(catalog: Catalog) -> None:
    assert sorted(n for folder in catalog.folders for n in folder.names("engines")) == sorted(ENGINES)


@pytest.mark.parametrize("name", ENGINES)
def test_versions_come_in_order_and_change_something(catalog: Catalog, name: str) -> None:
    engine = load_engine(catalog, name)
    versions = [order(change.from_version) for change in engine.versions]
    assert versions == sorted(set(versions))
    assert all(change.changed for change in engine.versions)


BUILDS = ("nightly", "main", "nightly-20260216-d3bae71e", "nightly-dev-20260216-d3bae71e", "gpt-oss-dev", "latest")


@pytest.mark.parametrize("name", ENGINES)
def test_a_builds_own_name_is_the_newest_release(catalog: Catalog, name: str) -> None:
    newest, h100 = load_engine(catalog, name, "b999999" if name == "llama.cpp" else "999999.0.0"), catalog.gpu("h100")
    for build in BUILDS:
        engine = load_engine(catalog, name, build)
        assert engine.default_version == build and engine.band_scope(h100) == "other"
        assert engine.model_copy(update={"default_version": ""}) == newest.model_copy(update={"default_version": ""})


NO_VERSIONS = ("new", "x", "", "a b", "-nightly", "nightly-", "1", "0..1", "main_2", "é-dev", "a-" * 9)


@pytest.mark.parametrize("version", NO_VERSIONS)
def test_what_is_no_version_is_refused(catalog: Catalog, version: str) -> None:
    with pytest.raises(CatalogError, match=r"is not a version"):
        load_engine(catalog, "vllm", version or " ")


@pytest.mark.parametrize(("engine", "version"), [("vllm", "b7500"), ("sglang", "b1"), ("llama.cpp", "0.5.9")])
def test_builds_and_releases_are_not_mixed_up(catalog: Catalog, engine: str, version: str) -> None:
    """llama.cpp counts builds, the others releases; b7500 of vLLM was sized as the oldest release read."""
    with pytest.raises(CatalogError, match=f"engine version '{version}' is not a version"):
        load_engine(catalog, engine, version)


def test_a_catalog_names_releases() -> None:
    """A build's own name is accepted of those who ask, not of the rules that change from a version on."""
    columns = load_engine(Catalog(), "vllm").model_dump(mode="json")
    with pytest.raises(ValueError, match="is no version"):
        Engine.model_validate({**columns, "default_version": "nightly"})


@pytest.mark.parametrize("name", ENGINES[1:])
def test_a_file_says_how_many_rows_it_rests_on(catalog: Catalog, name: str) -> None:
    engine = load_engine(catalog, name)
    assert engine.fitted
    if not sum(engine.n_rows for engine in engine.fitted):
        assert "no log" in engine.accounting_source and "no log" in engine.budget_source


def test_a_build_number_is_a_version(catalog: Catalog) -> None:
    assert load_engine(catalog, "llama.cpp", "b4000").default_version == "b4000"
    with pytest.raises(CatalogError, match="not a version"):
        load_engine(catalog, "llama.cpp", "b")


@pytest.mark.parametrize(
    ("nim", "vllm"),
    [
        ("1.8.0", "0.11.0"),
        ("2.0.1", "0.17.1"),
        ("2.0.3", "0.19.0"),
        ("2.0.5", "0.20.2"),
        ("2.1.0", "0.24.0"),
        ("2.1.5", "0.31.0"),
    ],
)
def test_nim_accounts_as_the_vllm_in_its_container(catalog: Catalog, nim: str, vllm: str) -> None:
    ours, theirs = load_engine(catalog, "nim", nim), load_engine(catalog, "vllm", vllm)
    apart = {"engine", "name", "default_version", "checked_on", "vendors", "versions", "fitted", "newest_read"}
    apart |= {"calibrated", "bands"} | {field for field in Engine.model_fields if field.endswith("_source")}
    for field in Engine.model_fields.keys() - apart:
        assert getattr(ours, field) == getattr(theirs, field), field


# What they make of models -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("engine", ENGINES)
def test_each_sizes_every_kind_of_model(engine: str, model: str) -> None:
    ranks = 8 if model == "deepseek-v3" else 1
    answer = size(model=model, gpu="h200", engine=engine, tensor_parallel_size=ranks)
    bills = answer["weights_bytes_per_gpu"] + answer["non_torch_bytes_per_gpu"] + answer["kv_pool_bytes_per_gpu"]
    assert answer["fits"] and answer["kv_tokens"] > 4096
    assert 0.5 * answer["gpu_memory_bytes"] < bills <= answer["gpu_memory_bytes"]


@pytest.mark.some(3)
@pytest.mark.parametrize("engine", ENGINES)
def test_more_utilization_never_shrinks_the_pool(engine: str) -> None:
    shares = (0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
    pools = [
        size(model="8b", gpu="a100", engine=engine, gpu_memory_utilization=u)["kv_pool_bytes_per_gpu"] for u in shares
    ]
    assert pools == sorted(pools) and pools[-1] > pools[0]


@pytest.mark.some(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("limit", ["max_num_seqs", "max_num_batched_tokens"])
def test_larger_batches_never_grow_the_pool(engine: str, limit: str) -> None:
    pools = [
        size(model="8b", gpu="h100", engine=engine, **{limit: n})["kv_pool_bytes_per_gpu"]
        for n in (1, 16, 256, 1024, 4096, 16384)
    ]
    assert pools == sorted(pools, reverse=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_more_ranks_keep_less_memory_outside_the_weights(engine: str) -> None:
    kept = [
        size(model="8b", gpu="h100", engine=engine, tensor_parallel_size=n)["non_torch_bytes_per_gpu"]
        for n in (1, 2, 4, 8)
    ]
    assert kept == sorted(kept)


@pytest.mark.parametrize(
    ("gpu", "share", "chunk"),
    # From sglang/srt/server_args.py on the memory that nvidia-smi shows, at TP 1.
    [("h100", 0.835, 8192), ("h200", 0.907, 8192), ("b200", 0.857, 16384), ("l40s", 0.851, 4096), ("l4", 0.837, 2048)],
)
def test_sglang_takes_the_share_that_its_reserve_leaves(gpu: str, share: float, chunk: int) -> None:
    answer = size(model="8b", gpu=gpu, engine="sglang")
    assert answer["gpu_memory_utilization"] == pytest.approx(share, abs=0.005)
    assert answer["max_num_batched_tokens"] == chunk


def test_a_gpu_smaller_than_the_reserve_keeps_a_little(catalog: Catalog) -> None:
    engine = load_engine(catalog, "sglang")
    assert engine.utilization_on(2, "Turing TU102") == pytest.approx(0.01)


def test_a_sheet_takes_each_gpu_share_of_its_own(catalog: Catalog) -> None:
    question = ask(catalog, {"models": "8b", "engine": "sglang", "gpus": "l4,h200", "as_of": "2026-08-01"})
    solved = solve(question)
    sized = {gpu.id: size(model="8b", gpu=gpu.id, engine="sglang") for gpu in question.gpus}
    shares = dict(zip(sized, solved.gpus["utilization_on_gpu"], strict=True))
    assert shares == {gpu: point["gpu_memory_utilization"] for gpu, point in sized.items()}
    assert len(set(shares.values())) == 2
    asked = solve(replace(question, settings=replace(question.settings, gpu_memory_utilization=0.7)))
    assert set(asked.gpus["utilization_on_gpu"].flat) == {0.7}


def test_no_engine_takes_a_share_of_the_free_memory_by_gpu(catalog: Catalog) -> None:
    """The share by which such an engine pays its parts is the same on all GPUs."""
    engines = [load_engine(catalog, name) for name in ENGINES]
    by_gpu = [engine for engine in engines if any(row.reserve_gib for row in engine.batch_defaults)]
    assert by_gpu and not any(engine.fraction_of_free for engine in by_gpu)


# Public logs ------------------------------------------------------------------------------------------

NOT_PREDICTED = {
    "asc-v32-tp32": "the sparse indexer's keys are stored in 16 bits on this device",
    "asc-qwen3-480b-dp4": "model not in the catalogs",
    "asc-qwen3-480b-dp2": "model not in the catalogs",
    "asc-qwen35-9b-tp2": "model not in the catalogs",
    "asc-qwen3next-tp4": "this build allocates KV for all 48 layers, not for the 12 with full attention",
    "mlperf41-gptj-orin": "model not in the catalogs",
    "longw-qwen15moe": "model not in the catalogs",
}
BYTES_PER_TOKEN = [
    pytest.param(engine, row, id=name)
    for engine, kind in (("sglang", "sglang"), ("tensorrt-llm", "trtllm"))
    for name, row in logs(kind).items()
    if name not in NOT_PREDICTED
]


@pytest.mark.parametrize(("engine", "row"), BYTES_PER_TOKEN)
def test_bytes_per_token_of_public_logs(engine: str, row: dict[str, str]) -> None:
    """Data-parallel attention is TP / DP ranks; the cache's type is the model's where the log says auto."""
    ranks = int(row["tp"] or row["n_gpus"] or 1)
    if engine == "sglang":
        ranks //= int(row["dp"] or 1)
    answer = size(
        model=row["model"].split(" ")[0],
        gpu="h200",
        engine=engine,
        tensor_parallel_size=ranks,
        kv_cache_dtype=row["kv_cache_dtype"] or "auto",
    )
    measured = float(row["kv_pool_gib_per_gpu"]) * GIB / float(row["kv_tokens"])
    error = answer["kv_bytes_per_token_per_gpu"] / measured - 1
    print(f"{row['id']}: {measured:,.0f} B/token measured, {100 * error:+.2f} %")
    assert abs(error) < 0.003  # pools are printed to 0.01 GiB, and hold one page more


def test_no_row_is_left_out_unsaid() -> None:
    names = logs("sglang").keys() | logs("trtllm").keys()
    assert names >= NOT_PREDICTED.keys() and len(names) == len(BYTES_PER_TOKEN) + len(NOT_PREDICTED)


def pool_gib(engine: Engine, total: float, share: float, weights: float, activation: float, ranks: int) -> float:
    """The pool that our budget rule gives with the weights that the log prints, in GiB."""
    graphs = engine.cuda_graph_gib * engine.graphs_in_budget
    values = {**engine.columns(), "is_older_gpu": 0, "shares_host_memory": 0, "tensor_parallel_size": ranks}
    non_torch = float(memory.non_torch_bytes_per_tp.of(values)) / GIB
    bills = weights + activation * engine.activations_in_budget + non_torch + graphs
    budget = (total - engine.context_gib) * share
    return float(budget - bills * memory.paid_share(share, int(engine.fraction_of_free)))


@pytest.mark.parametrize(
    ("name", "version", "share", "within"),
    [  # both had the free memory of an H100 before the load; the share of the first follows from its figures
        ("sglang-4760", "0.4.1", 0.88, 0.3),
        ("file-65802798149", "0.5.0", 0.85, 0.2),
    ],
)
def test_sglang_pools(catalog: Catalog, name: str, version: str, share: float, within: float) -> None:
    row, engine = logs("sglang")[name], load_engine(catalog, "sglang", version)
    predicted = pool_gib(engine, H100_GIB, share, float(row["weights_gib_per_gpu"]), 0, 1)
    error = predicted - float(row["kv_pool_gib_per_gpu"])
    print(f"{name}: pool {row['kv_pool_gib_per_gpu']} GiB, predicted {predicted:.2f} ({error:+.2f})")
    assert abs(error) < within


def test_a_sglang_pool_from_names_alone() -> None:
    """A public log of 2026-04 on B200: 992,896 tokens, 25.26 of 177.57 GiB left beside the pool, no flag for it."""
    answer = size(model="qwen3-8b", gpu="b200", engine="sglang")
    error = answer["kv_tokens"] / 992_896 - 1
    print(f"tokens {answer['kv_tokens']:,} of 992,896 ({100 * error:+.1f} %)")
    assert abs(error) < 0.01


TENSORRT = ("wayne-llama8b-fp8-0.90", "wayne-llama8b-fp8-0.80", "wayne-llama8b-fp8-0.95-OOM", "shaamil-llama70b-a")


@pytest.mark.parametrize("name", TENSORRT)
def test_tensorrt_llm_pools(name: str) -> None:
    """End to end, from names and the batch limits of the log; weights are ours."""
    row = logs("trtllm")[name]
    ranks = int(row["tp"])
    answer = size(
        model=row["model"],
        gpu="h100",
        engine="tensorrt-llm",
        engine_version=row["engine_version"],
        weight_dtype=row["weight_dtype"],
        kv_cache_dtype=row["kv_cache_dtype"],
        tensor_parallel_size=ranks,
        gpu_memory_utilization=float(row["gpu_memory_utilization"]),
        max_num_seqs=int(row["max_num_seqs"]),
        max_num_batched_tokens=int(row["max_num_batched_tokens"]),
        max_model_len=int(row["max_model_len"]),
        context_tokens=256,
    )
    error = answer["kv_pool_bytes_per_gpu"] / GIB - float(row["kv_pool_gib_per_gpu"])
    weights = answer["weights_bytes_per_gpu"] / GIB
    print(
        f"{name}: pool {row['kv_pool_gib_per_gpu']} GiB ({error:+.2f}), tokens {answer['kv_tokens']:,} of"
        f" {float(row['kv_tokens']):,.0f}; activations {answer['activation_bytes_per_gpu'] / GIB:.2f}"
        f" ({row['activation_peak_gib'] or 'not printed'}), weights {weights:.2f}"
    )
    assert abs(error) < 0.5


def test_llama_cpp_compute_buffer() -> None:
    """258.50 MiB in a public log of Llama 3 8B with ubatch 512."""
    answer = size(model="8b", gpu="rtx-4090", engine="llama.cpp", context_tokens=512)
    assert answer["activation_bytes_per_gpu"] / 2**20 == pytest.approx(258.5, abs=10)


def test_memory_that_is_the_hosts_too_has_bands_of_its_own(catalog: Catalog) -> None:
    spark, h100 = catalog.gpu("spark"), catalog.gpu("h100")
    old, new = (load_engine(catalog, "vllm", version) for version in ("0.19.0", None))
    assert [engine.band_scope(gpu) for engine in (old, new) for gpu in (h100, spark)] == [
        "calibrated",
        "shared",
        "other",
        "shared",
    ]
    shared = {band.figure for band in new.bands if band.scope == "shared"}
    assert shared == {"weights", "kv_pool"}, "the other parts are printed in too few logs"

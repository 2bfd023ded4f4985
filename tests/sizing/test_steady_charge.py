"""Bytes that a request keeps while it is served, beside what admission charges it; how many a pool then holds."""

from __future__ import annotations

import math

import numpy
import pandas
import pytest
from answers import document
from option_values import Options

import sheetgen
from sheetgen.api import recommended, sized_point
from sheetgen.catalog import Catalog
from sheetgen.sizing.kv_cache import growing_block_tokens, kv_blocks_per_sequence, steady_windowed_tokens
from sheetgen.sizing.memory import kv_tokens, running_capacity

# Model, requests, context: GB as admitted, with two batches in flight, and as they stay (Gemma's 52
# windowed layers are stored as 60).
FIGURES = [
    ("gemma-3-27b", 16, 32768, 180.0, 51.1), ("gpt-oss-120b", 64, 16384, 77.3, 39.0),
    ("llama-4-scout-17b-16e", 16, 65536, 109.5, 70.9), ("mistral-7b-v0.1", 16, 16384, 34.4, 8.6),
]  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def sized(catalog: Catalog, **inputs: object) -> dict[str, float]:
    values = sized_point(inputs, catalog).known
    return {name: float(column[0]) for name, column in values.items() if numpy.asarray(column).dtype.kind == "f"}


@pytest.mark.parametrize(("model", "users", "context", "admitted", "kept"), FIGURES)
def test_windows_stay_and_the_tokens_in_flight_do_not(
    model: str, users: int, context: int, admitted: float, kept: float
) -> None:
    answer = sheetgen.size(model=model, gpu="h100", context=context, concurrent_requests=users)
    assert (round(answer["kv_admission_bytes"] / 1e9, 1), round(answer["kv_bytes"] / 1e9, 1)) == (admitted, kept)
    assert answer["kv_admission_bytes"] == users * answer["kv_bytes_per_sequence"]
    assert answer["kv_bytes"] == users * answer["kv_bytes_per_sequence_steady"]
    off = sheetgen.size(model=model, gpu="h100", context=context, concurrent_requests=users, hybrid_kv_manager=0)
    assert off["kv_admission_bytes"] == off["kv_bytes"] > answer["kv_bytes"], "nothing slides out"


@pytest.mark.parametrize("version", ["0.19.0", "0.33.0"])
def test_no_model_keeps_more_than_it_was_admitted_with(catalog: Catalog, version: str) -> None:
    models = {model.id: model for model in catalog.models() if model.kind == "model"}
    rows = [
        {"model": model, "gpu": "b200", "context": context, "engine_version": version, "block_size": 32}
        for model, charge in models.items()
        for context in {1, 100, 2000, 4096, charge.max_context_tokens or 4096}
        if context <= (charge.max_context_tokens or 4096)
    ]
    frame = sheetgen.size_frame(pandas.DataFrame(rows))
    admitted, kept = frame["kv_bytes_per_sequence"], frame["kv_bytes_per_sequence_steady"]
    windowed, leaving = (
        frame["model"].map(lambda model, name=name: bool(models[model].shape()[name]))
        for name in ("n_windowed_layers", "state_checkpoint_tokens")
    )
    checkpoints = leaving & (version == "0.33.0")  # a prompt's, given back once it is read
    assert frame["error"].isna().all() and ((kept > 0) & (kept <= admitted)).all()
    assert (kept == admitted)[~windowed & ~checkpoints].all() and (kept < admitted)[windowed].sum() > 50
    assert (kept < admitted)[checkpoints].all() and checkpoints.any() == (version == "0.33.0")


@pytest.mark.some(9)
@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"pipeline_parallel_size": 2},
        {"data_parallel_size": 2},
        {"engine_version": "0.33.0"},
        {"max_num_seqs": 9},
        {"engine": "sglang"},
        {"engine": "tensorrt-llm"},
        {"engine": "llama.cpp"},
        {"kv_allocation": "reserved"},
    ],
)
@pytest.mark.parametrize("model", ["gemma-3-27b", "gpt-oss-120b", "qwen3.6-27b", "llama-4-scout-17b-16e", "8b"])
def test_a_rank_holds_one_as_admitted_and_the_others_as_they_stay(
    catalog: Catalog, model: str, inputs: Options
) -> None:
    point = {"model": model, "gpu": "b200", "tensor_parallel_size": 2, "context": 16384, **inputs}
    sized_ = sized(catalog, **point)
    pool, charge, steady = (
        sized_[n]
        for n in ("kv_pool_bytes_per_gpu", "kv_bytes_per_sequence_per_gpu", "kv_bytes_per_sequence_steady_per_gpu")
    )
    count = min(1 + math.floor((pool - charge) / steady), sized_["max_num_seqs"])
    assert sized_["sequences_per_replica"] == count * sized_["data_parallel_size"] > 0
    fits = [sheetgen.size(**point, concurrent_requests=int(sized_["sequences_per_replica"]) + more) for more in (0, 1)]
    assert [answer["fits"] for answer in fits] == [True, False]


def test_a_pool_without_room_for_one_admission_holds_nothing(catalog: Catalog) -> None:
    """The steady charge of several is free, but no request comes in."""
    point = {"model": "gemma-3-27b", "gpu": "h100", "context": "128k", "gpu_memory_utilization": 0.86}
    sized_ = sized(catalog, **point)
    pool, charge, steady = (
        sized_[n]
        for n in ("kv_budget_bytes_per_gpu", "kv_bytes_per_sequence_per_gpu", "kv_bytes_per_sequence_steady_per_gpu")
    )
    assert steady < pool < charge, "an example of it"
    answer = sheetgen.size(**point)
    assert sized_["sequences_in_pool"] == 0 and not answer["fits"]
    assert answer["short_by_bytes"] == math.ceil(charge - pool)


def test_what_a_cell_keeps_is_the_same_on_every_gpu(catalog: Catalog) -> None:
    load = {"model": "gemma-3-27b", "context": "32k", "concurrent_requests": 16}
    cells = [document(recommended({**load, "gpus": gpu}, catalog))["cells"][0] for gpu in ("l40s", "h100", "b200")]
    assert len({cell["gpu"] for cell in cells}) == 3
    assert {cell["kv_bytes"] for cell in cells} == {sheetgen.size(**load)["kv_bytes"]}


def test_a_window_of_a_request_that_decodes() -> None:
    """By hand: a token reads 1,023 before it, in at most ceil(1,023 / 16) + 1 = 65 blocks; a chunk has its own 512."""
    sliding = steady_windowed_tokens(100_000, 1024, 0, 1, 1, 16, 1)
    assert math.ceil(sliding / 16) + 1 == 65
    assert math.ceil(steady_windowed_tokens(100_000, 8192, 1, 1, 1, 16, 1) / 16) == 512
    assert steady_windowed_tokens(10, 1024, 0, 1, 1, 16, 1) == 0  # the one block of so few tokens is the spare one
    assert steady_windowed_tokens(100_000, 1024, 0, 3, 1, 16, 0) == 1026  # as bytes, and two steps under way
    assert steady_windowed_tokens(100_000, 1024, 0, 1, 0, 16, 1) == 100_000


def test_tokens_as_the_engine_prints_them() -> None:
    """Of one group the blocks say how many, also where several would be printed by concurrency."""
    assert kv_tokens(10, 1, 16, 2.5, 100, 1, 1, 16) == 160
    assert kv_tokens(10, 2, 16, 2.57, 100, 1, 1, 16) == 257
    assert kv_tokens(10, 2, 16, 2.57, 100, 0, 1, 16) == 80
    assert kv_tokens(10, 2, 16, 2.57, 100, 1, 0, 32) == 320


def test_requests_that_run_on_a_stage() -> None:
    """A stage that keeps half the layers has twice the requests' blocks for its bytes."""
    assert [running_capacity(1000, 10, 10, 10, share, 256, 2) for share in (1, 0.5)] == [20, 40]
    assert running_capacity(1000, 10, 10, 10, 0.5, 12, 2) == 24


@pytest.mark.parametrize(
    ("kv_bytes", "ranks", "block", "blocks", "tokens"),
    [(2, 1, 1600, 185, 314_572), (2, 1, 1600, 185, 398_175), (1, 1, 3200, 103, 692_263), (2, 2, 1600, 185, 2_228_932)],
)
def test_blocks_of_a_hybrid_with_an_index(kv_bytes: int, ranks: int, block: int, blocks: int, tokens: int) -> None:
    """Four logs of Qwen3.8-Flash-Next (0.28, 262,144 tokens; autumn-flashnext-a, -b, -c, -pair) print tokens that are
    a whole number of blocks over 185 or 103 a request. So many take three drafted tokens (not in the logs), which
    lengthen convolutions and take a state block each: 164 or 82 blocks of the context, 5 each of three groups of states
    and of the n-grams', and one of raw index keys."""
    drafted, context = 3, 262_144
    model = Catalog().model("qwen3.8-flash-next").shape()
    full, index = (
        model["n_full_layers"] * model["full_kv_heads"] * model["full_kv_width"] * kv_bytes / ranks,
        model["other_bytes_per_token"],
    )
    conv = model["conv_bytes_per_state_layer"] * (1 + drafted / 3)
    state = (conv + model["state_elements_per_layer"] * 4) / ranks
    layers = model["n_full_layers"]
    assert (
        growing_block_tokens((full + index) / layers, 0, state, 16, full + index, index, layers, 0, 64, 0, 0, 0)
        == block
    )
    values = dict.fromkeys(kv_blocks_per_sequence.inputs, 0.0) | {
        "admitted_tokens": context,
        "growing_block_tokens": block,
        "n_growing_groups": 1,
        "shares_pages": 1,
        "n_state_groups": 3,
        "state_blocks": 2 + drafted,
        "side_blocks": model["side_blocks"] + drafted,
        "windowed_block_tokens": 16,
        "block_size": 16,
    }
    assert kv_blocks_per_sequence.of(values) == blocks
    assert tokens in {int(n / blocks * context) for n in range(2000)}
    assert tokens not in {int(n / (blocks - 1) * context) for n in range(2000)} or tokens == 314_572  # 1.2 of a request


def test_index_keys_are_beside_the_pages_that_states_set() -> None:
    """By hand, vLLM 0.33 at TP 2: 1,603,584 bytes of state are 1,566 tokens of 1,024, in chunks of 64 1,600; a block
    has 12 layers of these and of 64 bytes of index keys. A request has 11, three of each group of states, and 3 beside.
    """
    answer = sheetgen.size(model="qwen3.8-flash-next", gpu="b300", tensor_parallel_size=2, context=16_384)
    block, pool = 12 * 1600 * (1024 + 64), answer["kv_pool_bytes_per_gpu"]
    assert answer["max_concurrency"] == pytest.approx(pool // block / (11 + 3 * 3 + 3), rel=1e-9)
    assert answer["kv_tokens"] == int(answer["max_concurrency"] * 16_384)

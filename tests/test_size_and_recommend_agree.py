"""A recommended replica, sized by itself, holds the sequences that the recommendation counts with, and is as fast."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
import pytest
from amounts import amount
from option_values import Options

from sheetgen.answer.solution import Choice, Solution
from sheetgen.answer.solve import solve
from sheetgen.api import recommended, sized_point
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask

MODELS = ("8b", "70b", "405b", "gemma-3-27b", "qwen3.6-27b", "deepseek-v3", "gpt-oss-120b", "llama-4-scout-17b-16e")
ENGINES = (("vllm", "0.19.0"), ("vllm", "0.24.0"), ("vllm", "0.12.0"), ("sglang", None), ("tensorrt-llm", None))
LOADS = [
    (model, context, users, *engine)
    for (model, engine), (context, users) in zip(
        itertools.product(MODELS, ENGINES), itertools.cycle(((4096, 1), (16384, 40), (100_000, 7))), strict=False
    )
]
# What changes how many requests a replica has, or how fast they are.
ASKED: tuple[Options, ...] = (
    {},
    {"tpot_ms": "off", "ttft_ms": "off"},
    {"tpot_ms": "25"},
    {"tpot_ms": "off", "ttft_ms": "off", "gpus": "h100"},
    {"tpot_ms": "off", "ttft_ms": "4000"},
    {"survive": "replica", "extra_headroom_fraction": 0.2},
    {"prefix_cache_hit_fraction": 0.4},
    {"average_context_fraction": 0.6},
    {"kv_allocation": "reserved"},
    {"speed_factor": 1.3, "ttft_factor": 0.8},
    {"weight_dtype": "fp8", "kv_cache_dtype": "fp8"},
)
FIGURES = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
TO_SIZE = (
    "draft_model",
    "prefix_cache_hit_fraction",
    "average_context_fraction",
    "kv_allocation",
    "speed_factor",
    "ttft_factor",
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


@pytest.mark.some(16)
@pytest.mark.parametrize("model,context,users,engine,version", LOADS)
@pytest.mark.parametrize("targets", [{"tpot_ms": "off", "ttft_ms": "off"}, {}], ids=["memory", "speed"])
def test_sequences_are_those_of_size(
    catalog: Catalog, model: str, context: int, users: int, engine: str, version: str | None, targets: dict[str, str]
) -> None:
    """At an even chance, as `size` stays central."""
    asked = {"model": model, "context_tokens": context, "engine": engine, "engine_version": version}
    asked |= {"weight_dtype": "recommended"}
    solved = recommended({**asked, "concurrent_requests": users, "confidence": 0.5, **targets}, catalog)
    choice = solved.choices[0]
    assert choice.offer is not None
    point = sized_point(
        asked
        | {
            "gpu": solved.candidate(choice.offer).gpu.id,
            **solved.layout(choice.offer)._asdict(),
            "pipeline_parallel_size": choice.pipeline_parallel_size,
        },
        catalog,
    )
    assert int(point.known["sequences_per_replica"][0]) == choice.sequences_per_replica


def sized_alone(solved: Solution, row: int, catalog: Catalog, asked: Options) -> dict[str, Any]:
    """All quantities of the fullest replica that serves a cell, as `size` has them."""
    question, choice, cell = solved.question, solved.choices[row], solved.question.loads[row]
    assert choice.offer is not None
    model, workload = question.models[cell.model], question.workloads[cell.workload]
    gpu = solved.profiles[solved.offers[choice.offer].profile].gpu
    given = {
        "model": model.model.id,
        "weight_dtype": model.weight_dtype,
        "kv_cache_dtype": model.kv_cache_dtype,
        "engine": question.engine.engine,
        "engine_version": question.engine.default_version,
        "gpu": question.gpus[gpu].id,
        **solved.layout(choice.offer)._asdict(),
        "pipeline_parallel_size": choice.pipeline_parallel_size,
        "max_num_seqs": int(solved.gpus["max_num_seqs"][gpu]),
        "max_num_batched_tokens": int(solved.gpus["max_num_batched_tokens"][gpu]),
        "max_model_len": cell.context_tokens,
        "context_tokens": cell.context_tokens,
        "input_tokens": workload.input_tokens,
        "output_tokens": workload.output_tokens,
        "concurrent_requests": choice.requests_per_replica,
        **{k: v for k, v in asked.items() if k in TO_SIZE},
    }
    return {name: column[0] for name, column in sized_point(given, catalog).known.items() if getattr(column, "ndim", 0)}


def ends_of(choice: Choice) -> dict[str, float]:
    """The figures of a choice and the ends of their bands, under the names that `size` has."""
    values: dict[str, float] = {}
    for name, (low, high) in zip(FIGURES, choice.bands, strict=True):
        values |= {name: getattr(choice, name), f"{name}_low": low, f"{name}_high": high}
    return values


def check(solved: Solution, row: int, catalog: Catalog, asked: Options) -> None:
    """A cell's speed is that of its fullest replica by `size`; tokens a second are those of all replicas."""
    choice, load = solved.choices[row], int(solved.loads["load_requests"][row])
    serving = choice.n_replicas - solved.question.settings.survive  # of what is asked here, one replica or none
    assert choice.requests_per_replica == -(-load // serving) <= choice.sequences_per_replica
    alone = sized_alone(solved, row, catalog, asked)
    assert alone["running_requests"] == choice.requests_per_replica and alone["queue_seconds"] == 0
    for name, value in ends_of(choice).items():
        if "factor" in "".join(asked) and name not in FIGURES:
            continue  # bands of a measured point hold for its own configuration, a sheet has many
        share = load / choice.requests_per_replica if name.startswith("output") else 1
        assert value == pytest.approx(share * alone[name], rel=1e-9), (name, row)
    assert choice.bound_by == str(alone["bound_by"])
    assert choice.prefill_fraction == pytest.approx(alone["prefill_fraction"], rel=1e-9)


@pytest.mark.some(1)
@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_speed_of_every_cell_is_that_of_size(catalog: Catalog, engine: str, asked: Options) -> None:
    models = "8b,70b,405b,gemma-3-27b,qwen3.6-27b,deepseek-v3,gpt-oss-120b"
    solved = solve(ask(catalog, {"models": models, "engine": engine, "as_of": "2026-11-20", **asked}))
    rows = [row for row, choice in enumerate(solved.choices) if choice.offer is not None]
    assert len(rows) > 40
    for row in rows[:: amount(3, 1)]:
        check(solved, row, catalog, asked)
    stages = {solved.choices[row].pipeline_parallel_size > 1 for row in rows}
    assert stages == {False, True} or "gpus" not in asked, "both kinds of replicas were compared"


def test_replicas_of_data_parallel_ranks_are_as_fast_as_by_size(catalog: Catalog) -> None:
    """With no target: under the default ones one engine over all GPUs is cheaper for every load."""
    asked = {"models": "deepseek-v3", "as_of": "2026-11-20", **ASKED[1]}
    solved = solve(ask(catalog, asked))
    of_ranks = [
        row
        for row, choice in enumerate(solved.choices)
        if choice.offer is not None and solved.layout(choice.offer).data_parallel_size > 1
    ]
    assert len(of_ranks) >= 5
    for row in of_ranks:
        check(solved, row, catalog, asked)


def test_a_replica_with_idle_ranks_is_as_fast_as_by_size(catalog: Catalog) -> None:
    """Five long contexts on eight ranks: at this confidence every other layout of one machine holds four at most."""
    asked = {"model": "glm-5", "context_tokens": 131_072, "confidence": 0.9, **ASKED[1], "gpus": "h200"}
    solved = recommended({**asked, "concurrent_requests": 5}, catalog)
    [choice] = solved.choices
    assert solved.layout(choice.offer or 0).data_parallel_size == 8 > choice.requests_per_replica == 5
    check(solved, 0, catalog, asked)


def test_stages_of_a_model_whose_layers_differ_are_those_of_size(catalog: Catalog) -> None:
    asked = {"models": "49b,253b", "gpus": "l40s", "weight_dtype": "bf16", "confidence": 0.5} | ASKED[1]
    solved = solve(ask(catalog, asked))
    rows = [row for row, choice in enumerate(solved.choices) if choice.offer is not None]
    for row in rows:
        check(solved, row, catalog, asked)
        held = sized_alone(solved, row, catalog, asked)["sequences_per_replica"]
        assert held == solved.choices[row].sequences_per_replica
    assert any(solved.choices[row].pipeline_parallel_size > 1 for row in rows)


# Bytes of one rank, and how its layers stand in groups.
OF_MEMORY = (
    "loaded_weights_bytes_per_gpu", "kv_budget_bytes_per_gpu", "activation_bytes_per_gpu", "kv_bytes_per_token",
    "shard_kv_bytes_per_token", "kv_block_bytes", "group_layers", "n_growing_groups", "growing_block_tokens",
)  # fmt: skip
DRAFTED: tuple[Options, ...] = (
    {"models": "8b,70b,405b", "draft_model": "llama-3.2-1b"},
    {"models": "70b", "draft_model": "eagle3-llama-3.x-70b", "kv_cache_dtype": "fp8", "weight_dtype": "fp8"},
    {"models": "405b", "draft_model": "8b", "gpus": "a100,h100"},  # spans machines
    {"models": "gpt-oss-120b", "draft_model": "eagle3-gpt-oss-120b"},  # windows: the draft's layers join a group
    {"models": "deepseek-v3", "draft_model": "eagle3-deepseek-v3"},  # a latent, and data-parallel ranks
    {"models": "70b", "draft_model": "8b", "engine": "tensorrt-llm"},
)


@pytest.mark.some(1)
@pytest.mark.parametrize("asked", DRAFTED, ids=str)
def test_memory_with_a_draft_is_that_of_size_to_the_byte(catalog: Catalog, asked: Options) -> None:
    options = {**asked, "tpot_ms": "off", "ttft_ms": "off"}
    solved, alone = (solve(ask(catalog, options | more)) for more in ({}, {"draft_model": None}))
    question, compared = solved.question, 0
    for (m, model), (p, profile) in itertools.product(enumerate(question.models), enumerate(solved.profiles)):
        if not solved.pools["runs"][m, p]:
            continue
        inputs = {k: v for k, v in asked.items() if k in ("draft_model", "engine")} | profile.layout._asdict()
        point = sized_point(
            inputs
            | {
                "model": model.model.id,
                "gpu": question.gpus[profile.gpu].id,
                "weight_dtype": model.weight_dtype,
                "kv_cache_dtype": model.kv_cache_dtype,
            },
            catalog,
        )
        for name in OF_MEMORY:
            assert solved.pools[name][m, p] == point.known[name][0], (model.model.id, profile, name)
        for name, sign in (("loaded_weights_bytes_per_gpu", 1), ("kv_budget_bytes_per_gpu", -1)):
            assert sign * (solved.pools[name][m, p] - alone.pools[name][m, p]) > 0
        compared += 1
    assert compared >= 8
    # A replica never takes fewer stages, and on as many never holds more; nor does a load take fewer GPUs or dollars.
    (stages, held), (stages_alone, held_alone) = (
        (numpy.where(sequences["pipeline_stages"] > 0, sequences["pipeline_stages"], math.inf), sequences["sequences"])
        for sequences in (solved.sequences, alone.sequences)
    )
    assert (stages >= stages_alone).all() and (held <= held_alone)[stages == stages_alone].all()
    assert (held < held_alone).any()
    alike = solved.costs["pipeline_stages"] == alone.costs["pipeline_stages"]
    assert not (solved.costs["n_replicas"] < alone.costs["n_replicas"])[alike].any()
    for row, choice in enumerate(solved.choices):
        if choice.offer is not None:
            assert choice.cheapest and alone.choices[row].cheapest
            assert choice.cheapest.usd >= alone.choices[row].cheapest.usd
            check(solved, row, catalog, asked)
    assert any(choice.pipeline_parallel_size > 1 for choice in solved.choices) == ("gpus" in asked)


@pytest.mark.parametrize("context,users,answer", [(512, 3, 256), (16384, 200, 1024), (16384, 32, 1), (100_000, 9, 50)])
def test_the_speed_of_a_load_of_ones_own_is_that_of_size(
    catalog: Catalog, context: int, users: int, answer: int
) -> None:
    asked = {"model": "70b", "context_tokens": context, "concurrent_requests": users, "output_tokens": answer}
    solved = recommended(asked, catalog)
    assert solved.question.workloads[0].output_tokens == answer
    check(solved, 0, catalog, {})

"""The cheapest that holds the load, or the reason nothing does.

Four tables, as in the workbook: shards (model x TP), profiles (GPU x TP), cells (model x workload x tier) and
candidates (instance x TP). What a replica holds is worked out per cell and profile, what it costs per cell and
candidate; the choice is the least of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen import cost
from sheetgen.estimate import CHARGE, MODEL, SHARD, evaluate
from sheetgen.formula import cheapest, first_where, least_where
from sheetgen.scenario.candidates import Candidate
from sheetgen.scenario.deployment import engine_columns, model_columns
from sheetgen.scenario.question import MAX_PIPELINE_PARALLEL_SIZE, TENSOR_PARALLEL_SIZES, Question
from sheetgen.sizing import kv_cache, memory, parallelism, weights
from sheetgen.units import GIB

Columns = dict[str, Any]
# What one replica on a profile takes and holds of a load, and how many replicas the load needs.
LOAD = (
    kv_cache.charge_bytes,
    parallelism.layers_that_fit,
    parallelism.pipeline_stages,
    parallelism.sequences,
    parallelism.shared_replicas,
    parallelism.staged_instances,
)
POOL = (
    memory.activation_bytes_per_gpu,
    memory.overhead_bytes_per_gpu,
    memory.memory_budget_bytes,
    memory.kv_budget_bytes_per_gpu,
    parallelism.layer_budget_bytes,
)


@dataclass(frozen=True)
class Profile:
    """A GPU at a tensor-parallel size: what one replica's rank is."""

    gpu: int
    tensor_parallel_size: int


@dataclass(frozen=True)
class Slot:
    """A candidate instance at a tensor-parallel size."""

    candidate: int
    profile: int


@dataclass(frozen=True)
class Choice:
    """The answer for one cell; `slot` is None where nothing holds it, and `verdict` says why."""

    verdict: str
    slot: int | None = None
    runner_up: int | None = None
    sequences_per_replica: int = 0
    pipeline_parallel_size: int = 1
    n_replicas: int = 0
    n_instances: int = 0
    hourly_usd: float = 0.0
    monthly_usd: float = 0.0
    runner_up_monthly_usd: float | None = None
    headroom_fraction: float = 0.0


@dataclass(frozen=True)
class Solution:
    """Every table of the answer. Matrices are indexed [cell or model, profile or slot]; NaN where none."""

    question: Question
    profiles: tuple[Profile, ...]
    slots: tuple[Slot, ...]
    models: Columns  # by model
    shards: Columns  # [model, position in TENSOR_PARALLEL_SIZES]
    gpus: Columns  # by GPU
    cells: Columns  # by cell
    pools: Columns  # [model, profile]
    sequences: Columns  # [cell, profile]
    costs: Columns  # [cell, slot]
    choices: tuple[Choice, ...]

    def candidate(self, slot: int) -> Candidate:
        """The instance behind a slot."""
        return self.question.candidates[self.slots[slot].candidate]

    def tensor_parallel_size(self, slot: int) -> int:
        """The tensor-parallel size behind a slot."""
        return self.profiles[self.slots[slot].profile].tensor_parallel_size


def solve(question: Question) -> Solution:
    """Work out every cell of `question` on every candidate, and choose."""
    settings, engine = question.settings, question.engine
    gpu_index = {gpu.id: i for i, gpu in enumerate(question.gpus)}
    profiles = tuple(Profile(g, t) for g in range(len(question.gpus)) for t in TENSOR_PARALLEL_SIZES)
    profile_index = {(p.gpu, p.tensor_parallel_size): i for i, p in enumerate(profiles)}
    slots = tuple(
        Slot(c, profile_index[gpu_index[one.gpu.id], t])
        for c, one in enumerate(question.candidates)
        for t in TENSOR_PARALLEL_SIZES
        if t <= one.gpu_count
    )
    inputs: Columns = {
        **engine_columns(engine),
        **{k: float(v) for k, v in vars(settings).items() if isinstance(v, (int, float))},
        "max_pipeline_parallel_size": MAX_PIPELINE_PARALLEL_SIZE,
        "max_tensor_parallel_size": TENSOR_PARALLEL_SIZES[-1],
    }
    rows = [model_columns(m.model, m.weight_dtype, m.kv_cache_dtype) for m in question.models]
    models = evaluate(MODEL, {**inputs, **{k: numpy.array([r[k] for r in rows], float) for k in rows[0]}})
    gpus = _gpus(question)
    shards = evaluate(
        SHARD,
        {**inputs, **_down(models), "tensor_parallel_size": numpy.array([TENSOR_PARALLEL_SIZES], float)},
    )
    pools = _pools(question, profiles, inputs, models, gpus)
    cells, sequences = _sequences(question, profiles, inputs, models, shards, gpus, pools)
    costs = _costs(question, profiles, slots, inputs, models, cells, sequences)
    solved = Solution(question, profiles, slots, models, shards, gpus, cells, pools, sequences, costs, ())
    choices = tuple(_choose(solved))
    cells = _cell_kv(solved, choices)
    return Solution(**{**vars(solved), "choices": choices, "cells": cells})


def _down(columns: Columns) -> Columns:
    """One-dimensional columns as rows of a matrix."""
    return {k: v[:, None] if getattr(v, "ndim", 0) == 1 else v for k, v in columns.items()}


def _gpus(question: Question) -> Columns:
    limits = [
        question.engine.batch_limits(g.memory.engine_bytes / GIB, g.architecture) for g in question.gpus
    ]
    return {
        "gpu_memory_bytes": numpy.array([g.memory.engine_bytes for g in question.gpus], float),
        "max_num_seqs": numpy.array([seqs for seqs, _ in limits], float),
        "max_num_batched_tokens": numpy.array([batched for _, batched in limits], float),
    }


def _pools(
    question: Question, profiles: tuple[Profile, ...], inputs: Columns, models: Columns, gpus: Columns
) -> Columns:
    """What each model leaves on each profile: weights, activations, budget for the cache, and whether it runs."""
    gpu = numpy.array([p.gpu for p in profiles])
    size = numpy.array([p.tensor_parallel_size for p in profiles], float)
    values = {**inputs, **_down(models), **{k: v[gpu][None, :] for k, v in gpus.items()}}
    values["tensor_parallel_size"] = size[None, :]
    values["non_torch_bytes_per_gpu"] = numpy.array([inputs[f"non_torch_bytes_tp{int(t)}"] for t in size])[
        None, :
    ]
    values["layer_bytes_per_gpu"] = parallelism.layer_bytes_per_gpu.of(values)
    values["weights_bytes_per_gpu"] = weights.rank_weights_bytes.of(values)
    values["loaded_weights_bytes_per_gpu"] = values["weights_bytes_per_gpu"]  # no draft model on a sheet
    pools = evaluate(POOL, values)
    of_gpu = [question.gpus[p.gpu] for p in profiles]
    pools["runs_weights"] = numpy.array(
        [[m.weight_dtype in g.weights_run for g in of_gpu] for m in question.models]
    )
    pools["runs_kv"] = numpy.array([[m.kv_cache_dtype in g.kv_run for g in of_gpu] for m in question.models])
    return evaluate((parallelism.runs,), pools)


def _sequences(
    question: Question,
    profiles: tuple[Profile, ...],
    inputs: Columns,
    models: Columns,
    shards: Columns,
    gpus: Columns,
    pools: Columns,
) -> tuple[Columns, Columns]:
    """Per cell its load, and per cell and profile the charge, the pipeline stages and the sequences held."""
    of_model = numpy.array([c.model for c in question.cells])
    cells = {
        **inputs,
        **{k: v[of_model] for k, v in models.items() if getattr(v, "ndim", 0) == 1},
        "context_tokens": numpy.array([c.context_tokens for c in question.cells], float),
        "max_model_len": numpy.array([c.context_tokens for c in question.cells], float),
        "input_tokens": numpy.array([c.input_tokens for c in question.cells], float),
        "concurrent_requests": numpy.array([c.concurrent_requests for c in question.cells], float),
    }
    cells = evaluate(
        (kv_cache.charged_tokens, parallelism.load_requests, parallelism.users, parallelism.within_limit),
        cells,
    )
    gpu = numpy.array([p.gpu for p in profiles])
    position = numpy.array([TENSOR_PARALLEL_SIZES.index(p.tensor_parallel_size) for p in profiles])
    wide = {**_down(cells), **_shard(shards, of_model, position)}
    wide |= {k: v[gpu][None, :] for k, v in gpus.items()}
    full = numpy.ones((len(question.models), len(profiles)))
    for name in ("kv_budget_bytes_per_gpu", "layer_budget_bytes", "layer_bytes_per_gpu", "runs"):
        wide[name] = (pools[name] * full)[of_model]
    return cells, evaluate(LOAD, wide)


def _cell_kv(solved: Solution, choices: tuple[Choice, ...]) -> Columns:
    """The cells with their own KV bill, before division over GPUs.

    A window's charge depends on the batch in flight: the one of the recommended GPU, else the largest.
    """
    default = solved.gpus["max_num_batched_tokens"]
    batched = [
        default.max() if c.slot is None else default[solved.profiles[solved.slots[c.slot].profile].gpu]
        for c in choices
    ]
    of_model = numpy.array([c.model for c in solved.question.cells])
    whole = {k: v[:, 0] for k, v in _shard(solved.shards, of_model, numpy.zeros(1, int)).items()}
    values = {**solved.cells, **whole, "max_num_batched_tokens": numpy.array(batched, float)}
    values = evaluate(CHARGE, values)
    values["unsharded_kv_blocks_per_sequence"] = values["kv_blocks_per_sequence"]
    values["unsharded_kv_block_bytes"] = values["kv_block_bytes"]
    return evaluate((kv_cache.kv_bytes_per_sequence, memory.kv_bytes), values)


def _shard(shards: Columns, of_model: Any, position: Any) -> Columns:
    """The shards of each cell's model at each profile's tensor-parallel size."""
    names = {f.name for f in SHARD}
    full = numpy.ones((1, len(TENSOR_PARALLEL_SIZES)))
    return {k: (v * full)[of_model][:, position] for k, v in shards.items() if k in names}


def _costs(
    question: Question,
    profiles: tuple[Profile, ...],
    slots: tuple[Slot, ...],
    inputs: Columns,
    models: Columns,
    cells: Columns,
    sequences: Columns,
) -> Columns:
    """Per cell and slot: replicas, whole instances, $ an hour and a month; NaN where it cannot hold the load."""
    of_model = numpy.array([c.model for c in question.cells])
    profile = numpy.array([s.profile for s in slots])
    candidates = [question.candidates[s.candidate] for s in slots]
    values = {
        **inputs,
        "n_heads": models["n_heads"][of_model][:, None],
        "load_requests": cells["load_requests"][:, None],
        **{f.name: sequences[f.name][:, profile] for f in LOAD},
        "tensor_parallel_size": numpy.array([profiles[p].tensor_parallel_size for p in profile], float)[
            None, :
        ],
        "gpu_count": numpy.array([c.gpu_count for c in candidates], float)[None, :],
        "price_usd_per_hour": numpy.array([c.usd_per_hour for c in candidates], float)[None, :],
    }
    return evaluate(
        (
            parallelism.replicas_per_instance,
            parallelism.larger_tensor_parallel_size,
            parallelism.n_replicas,
            cost.n_instances,
            cost.hourly_usd,
            cost.monthly_usd,
        ),
        values,
    )


def _choose(solved: Solution) -> list[Choice]:
    """Per cell the least monthly cost; ties: fewer instances, then smaller TP, then catalog order."""
    costs, slots = solved.costs, solved.slots
    monthly, instances = costs["monthly_usd"], costs["n_instances"]
    size = costs["tensor_parallel_size"] + 0 * monthly
    best = cheapest(monthly, numpy.nan)
    fewest = least_where(instances, monthly == best[:, None])
    narrowest = least_where(size, monthly == best[:, None], instances == fewest[:, None])
    position = first_where(monthly == best[:, None], instances == fewest[:, None], size == narrowest[:, None])
    gpu = numpy.array([solved.profiles[s.profile].gpu for s in slots])
    providers = [solved.candidate(i).provider for i in range(len(slots))]
    provider = numpy.array([providers.index(p) for p in providers])
    choices = []
    for row, cell in enumerate(solved.question.cells):
        if cell.over_limit or numpy.isnan(best[row]):
            choices.append(Choice(_verdict_without(solved, row)))
            continue
        slot = int(position[row]) - 1
        other = (gpu != gpu[slot]) | (provider != provider[slot])
        others = numpy.where(other, monthly[row], numpy.nan)
        second = cheapest(others, numpy.nan)
        runner_up = None if numpy.isnan(second) else int(first_where(others == second)) - 1
        replicas = costs["n_replicas"][row, slot]
        held = costs["sequences"][row, slot]
        choices.append(
            Choice(
                verdict="fits",
                slot=slot,
                runner_up=runner_up,
                sequences_per_replica=int(held),
                pipeline_parallel_size=int(costs["pipeline_stages"][row, slot]),
                n_replicas=int(replicas),
                n_instances=int(instances[row, slot]),
                hourly_usd=float(costs["hourly_usd"][row, slot]),
                monthly_usd=float(monthly[row, slot]),
                runner_up_monthly_usd=None if runner_up is None else float(second),
                headroom_fraction=float(
                    parallelism.headroom_fraction(costs["load_requests"][row, 0], held, replicas)
                ),
            )
        )
    return choices


def _verdict_without(solved: Solution, row: int) -> str:
    cell = solved.question.cells[row]
    if cell.over_limit:
        limit = solved.question.models[cell.model].model.max_context_tokens
        return f"over the model's {short_tokens(limit)}"
    return "nothing fits"


def short_tokens(count: int) -> str:
    """131072 as 128k, 4000 as 4,000."""
    return f"{count // 1024}k" if count % 1024 == 0 else f"{count:,}"


def why_not(solved: Solution, row: int) -> list[tuple[str, str]]:
    """For each candidate instance that was not chosen for a cell: the instance, and the reason."""
    choice = solved.choices[row]
    chosen = None if choice.slot is None else solved.slots[choice.slot].candidate
    reasons = []
    for c, candidate in enumerate(solved.question.candidates):
        if c == chosen:
            continue
        mine = [i for i, s in enumerate(solved.slots) if s.candidate == c]
        reasons.append((candidate.instance, _reason(solved, row, mine, choice)))
    return reasons


def _reason(solved: Solution, row: int, mine: list[int], choice: Choice) -> str:
    cell = solved.question.cells[row]
    if cell.over_limit:
        return choice.verdict
    candidate = solved.candidate(mine[0])
    monthly = solved.costs["monthly_usd"][row, mine]
    if not numpy.isnan(monthly).all():
        least = float(numpy.nanmin(monthly))
        if least == choice.monthly_usd:
            return "same price, but more instances, a larger TP or later in the catalog"
        return f"${least:,.0f} a month, {100 * (least / choice.monthly_usd - 1):.0f}% more"
    model = solved.question.models[cell.model]
    if model.weight_dtype not in candidate.gpu.weights_run:
        return f"{candidate.gpu.short_name} does not run {model.weight_dtype} weights"
    if model.kv_cache_dtype not in candidate.gpu.kv_run:
        return f"{candidate.gpu.short_name} does not run a {model.kv_cache_dtype} KV cache"
    runs = [i for i in mine if solved.sequences["runs"][row, solved.slots[i].profile] == 1]
    if not runs:
        return f"the {model.model.n_heads} heads do not divide over its GPUs"
    slot = runs[-1]
    profile = solved.slots[slot].profile
    size = solved.profiles[profile].tensor_parallel_size
    short = (
        solved.sequences["charge_bytes"][row, profile]
        - solved.pools["kv_budget_bytes_per_gpu"][cell.model, profile]
    )
    return f"{size}x {candidate.gpu.short_name}: {short * size / GIB:,.1f} GiB short"

"""Memory of one replica of an answer, and the longest context that the recommended hardware holds in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy

from sheetgen.answer.answer_record import StartupLog
from sheetgen.answer.solution import Fit, Solution, headline_rows
from sheetgen.program.declared import by_name
from sheetgen.program.grid import Column, Columns, evaluate
from sheetgen.program.quantities import CHARGE, PEAK, TOKENS, all_of
from sheetgen.program.sheet_program import SHEET, counted
from sheetgen.sizing import kv_cache, memory, parallelism
from sheetgen.sizing.parallelism import requests_per_replica
from sheetgen.sizing.weights import SHARES, stage_fraction, stage_weights_fraction
from sheetgen.units import STAGES_IN_ORDER

FEWER_TOKENS = 2048  # the smaller step and the fewer sequences that the page compares with, where more are in use
FEWER_SEQUENCES = 256
NEEDS = (kv_cache.UNSTAGED_WINDOWS, kv_cache.UNSTAGED_COMPRESSORS, kv_cache.charge_bytes, kv_cache.steady_bytes)
NEEDS_OF_FIT = {name for formula in (*NEEDS, kv_cache.windows_of_stages) for name in formula.inputs}
HOLDS = (*TOKENS, *NEEDS, counted(parallelism.sequences))  # of the pool that the answer counts on
# What an engine's log says of its pool.
PRINTED = (
    *CHARGE, memory.kv_pool_bytes_per_gpu, memory.n_kv_blocks, memory.max_concurrency, memory.kv_tokens,
)  # fmt: skip
BATCH = {name for formula in PEAK for name in formula.inputs} - {formula.name for formula in PEAK}


def fewer(used: float, proposed: int) -> int:
    """A lower limit: the proposed value, or half of the one in use where that is at or below the proposed value
    already."""
    return proposed if proposed < used else max(1, int(used) // 2)


def subject(solved: Solution) -> Fit | None:
    """The headline load whose numbers are shown, first the one of the model to be approved; None where no model
    fits."""
    fits = [fit for row in headline_rows(solved) if (fit := Fit.of(solved, row))]
    weights = solved.models["weights_bytes"]
    asked = solved.question.ask
    return max(
        fits, key=lambda f: (f.model == asked, f.choice.pipeline_parallel_size == 1, weights[f.model]), default=None
    )


def replica_bills(fit: Fit) -> dict[str, float | int | str]:
    """The raw numbers of the subject: what one GPU of a replica (its fullest stage) has and keeps."""
    question, choice = fit.solved.question, fit.choice
    load, model = question.loads[fit.row], question.models[fit.model]
    stages = choice.pipeline_parallel_size
    staged, (pool, part, weights_part) = stages > 1, _pool(fit, fit)
    layers = fit["layer_bytes_per_gpu"] * weights_part
    ends = fit["stage_ends_bytes"] / fit.layout.tensor_parallel_size + fit["rope_table_bytes"] + fit.draft_bytes_per_gpu
    per_replica = _fullest(fit)
    per_rank = -(-per_replica // fit.layout.data_parallel_size)
    longest_allowed = int(model.model.max_context_tokens or load.context_tokens)
    handed = fit["hand_over_bytes"] if staged else 0
    batch = {name: fit[name] for name in BATCH}
    longest = largest_where(lambda tokens: _needed(fit, per_rank, tokens) <= pool / part, 0, longest_allowed)
    return {
        "model": model.model.id,
        "model_name": model.model.name,
        "instance": fit.candidate.instance,
        "gpu": fit.candidate.gpu.short_name,
        "weight_dtype": model.weight_dtype,
        "n_gpus_per_replica": fit.gpus_per_replica,
        **fit.layout._asdict(),
        "pipeline_parallel_size": stages,
        "n_replicas": choice.n_replicas,
        "context_tokens": load.context_tokens,
        "input_tokens": load.input_tokens,
        "concurrent_requests": load.requests,
        "requests_per_replica": per_replica,
        "sequences_held": choice.sequences_per_replica,
        "next_request": choice.sequences_per_replica + 1,
        "gpu_memory_utilization": fit["utilization_on_gpu"],
        "gpu_memory_bytes": fit.candidate.gpu.memory.engine_bytes,
        "memory_budget_bytes": fit["memory_budget_bytes"],
        "kv_pool_bytes_per_gpu": pool,
        "kv_bytes_per_sequence_per_gpu": _needed(fit, 1, load.context_tokens) * part,
        "kv_bytes_per_sequence_per_gpu_at_limit": _needed(fit, 1, longest_allowed) * part,
        "max_context_tokens": longest_allowed,
        "longest_tokens_at_load": longest,
        "weights_bytes": float(fit.solved.models["weights_bytes"][fit.model]),
        "weights_bytes_per_gpu": layers + ends if staged else fit["loaded_weights_bytes_per_gpu"],
        "activation_bytes_per_gpu": fit["activation_bytes_per_gpu"] + handed,
        "vocab_size": model.model.vocab_size,
        **batch_bills(batch),
        "engines_max_num_seqs": int(batch["max_num_seqs"]),
        "sampler_bytes_at_engines": sampler_bytes(batch),
        "cuda_graph_bytes_per_gpu": fit["cuda_graph_bytes_per_gpu"],
        "graphs_reserved": int(fit.solved.models["graphs_reserved"][fit.model]),
    }


def batch_bills(batch: Mapping[str, float]) -> dict[str, float]:
    """The engine's limits of a batch, and what these and smaller ones take."""
    smaller = {"max_num_batched_tokens": fewer(batch["max_num_batched_tokens"], FEWER_TOKENS)}
    less = {**batch, "max_num_seqs": fewer(batch["max_num_seqs"], FEWER_SEQUENCES)}
    return {
        **{limit: int(batch[limit]) for limit in ("max_num_seqs", "max_num_batched_tokens")},
        "activation_bytes_at_fewer_tokens": float(evaluate(PEAK, {**batch, **smaller})["profile_peak_bytes"]),
        "sampler_bytes": sampler_bytes(batch),
        "sampler_bytes_at_fewer_sequences": sampler_bytes(less),
    }


def sampler_bytes(batch: Mapping[str, float]) -> float:
    """Bytes that the sampler takes for the most requests of a batch, without the hidden states of its tokens."""
    return float(memory.sampler_bytes.of({**batch, "max_num_batched_tokens": 0}))


def bills_as_started(
    bills: Mapping[str, float | int | str], started: Mapping[str, float]
) -> dict[str, float | int | str]:
    """The numbers of a subject without stages whose replica is started with limits of its own."""
    if bills["pipeline_parallel_size"] != 1:
        return dict(bills)
    held = int(started["sequences_in_pool"] * started["data_parallel_size"])
    same = ("kv_pool_bytes_per_gpu", "activation_bytes_per_gpu", "cuda_graph_bytes_per_gpu")
    return {
        **bills,
        **batch_bills({name: started[name] for name in BATCH}),
        **{name: started[name] for name in same},
        "sequences_held": held,
        "next_request": held + 1,
        "longest_tokens_at_load": min(int(started["max_context_tokens_that_fit"]), int(bills["max_context_tokens"])),
    }


def _as_started(fit: Fit) -> Columns:
    """Quantities of the pool of one GPU of a replica whose ranks admit as many requests as they serve within the
    targets."""
    pools = SHEET["pools"].quantities
    values: Columns = {i: fit[i] for _, formula in by_name(pools) for i in formula.inputs if i in fit.numbers}
    values["max_num_seqs"] = fit["paced_requests"] // fit.layout.data_parallel_size
    return evaluate(pools, values)


def _pool(fit: Fit, quantities: Fit | Columns) -> tuple[float, float, float]:
    """The pool of one GPU of a replica (its fullest stage) by these quantities, and that stage's share of the cache and
    of the weights."""
    stages, model = fit.choice.pipeline_parallel_size, fit.solved.question.models[fit.model].model
    of_stages = {name: fit[name] for name in (*STAGES_IN_ORDER, *SHARES)}
    of_stages |= {"n_layers": model.n_layers, "pipeline_parallel_size": stages}
    part, weights_part = stage_fraction.of(of_stages), stage_weights_fraction.of(of_stages)
    staged = quantities["layer_budget_bytes"] - fit["paid_layer_bytes"] * weights_part
    return staged if stages > 1 else quantities["kv_budget_bytes_per_gpu"], part, weights_part


def startup_log(solved: Solution, row: int) -> StartupLog | None:
    """The figures that the engine prints of its pool when a replica of the answer starts as its start command says;
    None where nothing holds the load."""
    fit = Fit.of(solved, row)
    if fit is None:
        return None
    pool, part, _ = _pool(fit, _as_started(fit))
    values: Columns = {name: fit[name] for formula in PRINTED for name in formula.inputs if name in fit.numbers}
    values |= all_of(fit["max_model_len"]) | {"kv_budget_bytes_per_gpu": pool, "stage_fraction": part}
    values["full_kv_blocks_per_sequence"] = evaluate(CHARGE, values)["kv_blocks_per_sequence"]
    log = evaluate(PRINTED, values)
    return StartupLog(int(log["kv_pool_bytes_per_gpu"]), int(log["kv_tokens"]), float(log["max_concurrency"]))


def _needed(fit: Fit, requests: int, tokens: Column) -> Column:
    """Bytes of the pool that one rank needs for so many sequences of so many tokens (one number or several), before the
    stages divide it."""
    values: Columns = {name: fit[name] for name in NEEDS_OF_FIT} | all_of(tokens)
    values = evaluate(NEEDS, values)
    values |= {"pipeline_stages": fit.choice.pipeline_parallel_size}
    charged = values["charge_bytes"] + kv_cache.windows_of_stages.of(values)
    return 1.0 * kv_cache.pool_for(requests, charged, values["steady_bytes"])


def held_per_replica(fit: Fit, contexts: Column) -> list[int]:
    """The sequences that one replica of the recommended hardware holds if all have this many tokens."""
    inputs = {i for formula in HOLDS for i in formula.inputs} - {formula.name for formula in HOLDS}
    values: Columns = {name: fit[name] for name in inputs if name in fit.numbers}
    tokens = numpy.array(contexts, float)
    output = fit["context_tokens"] - fit["input_tokens"]
    values |= {
        "context_tokens": tokens,
        "max_model_len": tokens,
        "input_tokens": numpy.maximum(tokens - output, 0),
        "pipeline_stages": float(fit.choice.pipeline_parallel_size),
    }
    held = numpy.broadcast_to(evaluate(HOLDS, values)["sequences"], tokens.shape)
    return [int(n) * fit.layout.data_parallel_size for n in held]


def _fullest(fit: Fit) -> int:
    """Requests on the fullest replica."""
    quantities = {name: fit[name] for name in requests_per_replica.inputs}
    return int(requests_per_replica.of(quantities))


def longest_context(solved: Solution, row: int) -> int | None:
    """The longest context that the model allows and at which the hardware of a load's answer still holds the load; None
    where nothing holds it."""
    fit = Fit.of(solved, row)
    if fit is None:
        return None
    shortest, needed = solved.question.loads[row].context_tokens, _fullest(fit)
    limit = int(solved.model_of(row).model.max_context_tokens or shortest)
    return largest_where(lambda tokens: numpy.array(held_per_replica(fit, tokens)) >= needed, shortest, limit)


TRIED_AT_ONCE = 64


def largest_where(holds: Callable[[Column], Column], low: int, high: int) -> int:
    """The largest number up to `high` for which `holds` is true, where it is true at `low` and stays false once it is
    false.

    holds: of a column of numbers, where it does.
    """
    while low < high:
        tried = numpy.linspace(low, high, TRIED_AT_ONCE + 1).astype(int)
        tried = tried[1:][numpy.diff(tried) > 0]  # numpy.unique loads numpy.ma, which takes longer
        n_held = int(numpy.count_nonzero(holds(tried)))
        low, high = (
            int(tried[n_held - 1]) if n_held else low,
            int(tried[n_held]) - 1 if n_held < len(tried) else high,
        )
    return low

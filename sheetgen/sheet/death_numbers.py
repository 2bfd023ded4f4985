"""The numbers of one model at the headline load, for the rows on where a deployment dies.

That model is the largest one whose replica needs no pipeline stages, because its GPUs can be read one by one;
the largest of all where every replica has stages.
"""

from __future__ import annotations

from typing import Any

from sheetgen.estimate import PEAK, evaluate
from sheetgen.recommend import Solution
from sheetgen.sheet.fit import Fit, headline_rows
from sheetgen.sizing import activations, admission
from sheetgen.units import GIB

FEWER_TOKENS = 2048  # the smaller step and the fewer sequences that the page compares with, where more are in use
FEWER_SEQUENCES = 256


def fewer(used: float, proposed: int) -> int:
    """What to lower a limit to: the proposed value, or half of what is in use where that is met already."""
    return proposed if proposed < used else max(1, int(used) // 2)


def subject(solved: Solution) -> Fit | None:
    """The headline cell whose numbers are told, or nothing where no model fits."""
    fits = [fit for row in headline_rows(solved) if (fit := Fit.of(solved, row))]
    weights = solved.models["weights_bytes"]
    return max(fits, key=lambda f: (f.choice.pipeline_parallel_size == 1, weights[f.model]), default=None)


def numbers_of(fit: Fit) -> dict[str, float | int | str]:
    """The raw numbers of the subject: what one GPU of a replica (its fullest stage) has and keeps."""
    question, choice = fit.solved.question, fit.choice
    cell, model = question.loads[fit.row], question.models[fit.model]
    stages, n_layers = choice.pipeline_parallel_size, model.model.n_layers
    part = -(-n_layers // stages) / n_layers
    layers = fit.pool("layer_bytes_per_gpu") * part
    staged = stages > 1
    paid = fit.pool("paid_layer_bytes") * part
    pool = fit.pool("layer_budget_bytes") - paid if staged else fit.pool("kv_budget_bytes_per_gpu")
    ends = fit.pool("stage_ends_bytes") / fit.tensor_parallel_size + fit.pool("rope_table_bytes")
    per_replica = -(-int(fit.load("load_requests")) // (choice.n_replicas - question.settings.spare_replicas))
    longest_allowed = int(model.model.max_context_tokens or cell.context_tokens)
    given = {k for one in PEAK for k in one.inputs} - {one.name for one in PEAK}
    batch = {k: fit.pool(k) for k in given}
    smaller = {"max_num_batched_tokens": fewer(batch["max_num_batched_tokens"], FEWER_TOKENS)}
    sampler = batch | {"max_num_batched_tokens": 0}
    less = sampler | {"max_num_seqs": fewer(sampler["max_num_seqs"], FEWER_SEQUENCES)}
    handed = fit.pool("hand_over_bytes") if staged else 0
    return {
        "model": model.model.id,
        "model_name": model.model.name,
        "instance": fit.candidate.instance,
        "gpu": fit.candidate.gpu.short_name,
        "weight_dtype": model.weight_dtype,
        "n_gpus_per_replica": fit.gpus_per_replica,
        "tensor_parallel_size": fit.tensor_parallel_size,
        "pipeline_parallel_size": stages,
        "n_replicas": choice.n_replicas,
        "context_tokens": cell.context_tokens,
        "input_tokens": cell.input_tokens,
        "concurrent_requests": cell.concurrent_requests,
        "requests_per_replica": per_replica,
        "sequences_held": choice.sequences_per_replica,
        "next_request": choice.sequences_per_replica + 1,
        "max_num_seqs": int(batch["max_num_seqs"]),
        "max_num_batched_tokens": int(batch["max_num_batched_tokens"]),
        "gpu_memory_utilization": question.settings.gpu_memory_utilization,
        "gpu_memory_bytes": fit.candidate.gpu.memory.engine_bytes,
        "memory_budget_bytes": fit.pool("memory_budget_bytes"),
        "kv_pool_bytes_per_gpu": pool,
        "kv_bytes_per_sequence_per_gpu": fit.load("charge_bytes") * part,
        "kv_bytes_per_sequence_per_gpu_at_limit": _charge(fit, longest_allowed) * part,
        "max_context_tokens": longest_allowed,
        "longest_tokens_at_load": _longest(fit, per_replica, pool / part, longest_allowed),
        "weights_bytes": float(fit.solved.models["weights_bytes"][fit.model]),
        "weights_bytes_per_gpu": layers + ends if staged else fit.pool("loaded_weights_bytes_per_gpu"),
        "activation_bytes_per_gpu": fit.pool("activation_bytes_per_gpu") + handed,
        "activation_bytes_at_fewer_tokens": float(evaluate(PEAK, batch | smaller)["profile_peak_bytes"]),
        "vocab_size": model.model.vocab_size,
        "sampler_bytes": float(activations.sampler_bytes.of(sampler)),
        "sampler_bytes_at_fewer_sequences": float(activations.sampler_bytes.of(less)),
        "cuda_graph_bytes_per_gpu": question.engine.cuda_graph_gib * GIB,
        "graphs_in_budget": int(question.engine.graphs_in_budget),
    }


def _charge(fit: Fit, tokens: int) -> float:
    """What admission charges a sequence of that many tokens on one rank, without stages."""
    values = {name: fit.load(name) for name in admission.charge_bytes.inputs}
    return float(admission.charge_bytes.of(values | {"charged_tokens": tokens}))


def _longest(fit: Fit, requests: int, pool: float, most: int) -> int:
    """The longest context at which that many requests still fit on a replica."""
    low, high = 0, most
    while low < high:
        middle = -(-(low + high) // 2)
        if _charge(fit, middle) * requests <= pool:
            low = middle
        else:
            high = middle - 1
    return low


def left_out(n: dict[str, Any], fraction_of_free: bool) -> float:
    """What the engine's share leaves of a GPU: of all its memory, or of what the bills leave free."""
    if fraction_of_free:
        return float(n["kv_pool_bytes_per_gpu"] * (1 / n["gpu_memory_utilization"] - 1))
    return float(n["gpu_memory_bytes"] - n["memory_budget_bytes"])

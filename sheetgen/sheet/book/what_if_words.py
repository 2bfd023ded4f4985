"""Formulas of the What-if page: bills of one GPU, GPUs needed, cases, and sentences."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import (
    Expr,
    both,
    cheapest,
    first_where,
    formula,
    is_number,
    join_text,
    largest,
    least_where,
    number_where,
    same_money,
    smallest,
    where,
)
from sheetgen.units import ONE_DECIMAL, PERCENT, PLAIN, TEXT, USD


@formula("GPUs needed", PLAIN)
def gpus_needed(
    shared_replicas: Any, staged_instances: Any, tensor_parallel_size: Any, hardware_gpus: Any,
    max_tensor_parallel_size: Any,
) -> Any:  # fmt: skip
    """GPUs of all replicas at this TP, whole instances not counted; none where it does not hold the load, or the
    hardware has fewer GPUs. Pipeline stages are taken at the largest TP only.

    Source: shared_replicas and staged_instances.
    """
    shared = where(is_number(shared_replicas), shared_replicas, 0)
    staged = where(both(is_number(staged_instances), tensor_parallel_size == max_tensor_parallel_size), 1, 0)
    stages = where(is_number(staged_instances), staged_instances, 0) * staged
    count = (shared + stages) * tensor_parallel_size
    return number_where(both(count >= 1, tensor_parallel_size <= hardware_gpus), count)


@formula("Fewest GPUs", PLAIN)
def fewest_gpus(needed: Any) -> Any:
    """The fewest GPUs among the sizes; none where no size holds the load.

    Source: gpus_needed.
    """
    return cheapest(needed, "-")


@formula("Column of the TP", PLAIN)
def tp_position(asked: Any, fewest: Any, needed: Any, sizes: Any) -> Any:
    """Which of the sizes holds: the one asked for, else the one with the fewest GPUs, else the largest.

    Source: ties go to the smaller TP.
    """
    typed = first_where(sizes == asked)
    best = first_where(needed == fewest)
    last = first_where(sizes == largest_of(sizes))
    # Where no size holds the load all of them are "-", which a spreadsheet finds equal to each other.
    return where(typed > 0, typed, where(is_number(fewest), best, last))


def largest_of(sizes: Any) -> Any:
    """The largest of a row."""
    import numpy

    return Expr(f"MAX({sizes.text})") if isinstance(sizes, Expr) else numpy.nanmax(sizes, initial=-numpy.inf)


@formula("Overhead", ONE_DECIMAL)
def other_bytes(overhead_bytes_per_gpu: Any, activation_bytes_per_gpu: Any, activations_in_budget: Any) -> Any:
    """Memory outside torch and CUDA graphs, in bytes: the overhead without the activations in it.

    Source: overhead_bytes_per_gpu.
    """
    return overhead_bytes_per_gpu - activations_in_budget * activation_bytes_per_gpu


@formula("KV cache in use", ONE_DECIMAL)
def kv_in_use_bytes(load_requests: Any, sequences: Any, charge_bytes: Any, kv_budget_bytes_per_gpu: Any) -> Any:
    """What the requests that one replica holds take of a GPU's pool, in bytes.

    Source: charge per sequence x requests, at most the pool.
    """
    return largest(0, smallest(smallest(load_requests, sequences) * charge_bytes, kv_budget_bytes_per_gpu))


@formula("KV cache free", ONE_DECIMAL)
def kv_free_bytes(kv_budget_bytes_per_gpu: Any, kv_in_use_bytes: Any) -> Any:
    """What is left of a GPU's pool, in bytes.

    Source: the pool less what is in use.
    """
    return largest(0, kv_budget_bytes_per_gpu - kv_in_use_bytes)


@formula("Not used", ONE_DECIMAL)
def kept_back_bytes(
    gpu_memory_bytes: Any, weights_bytes: Any, activation_bytes: Any, other_bytes: Any, kv_in_use_bytes: Any,
    kv_free_bytes: Any,
) -> Any:  # fmt: skip
    """What the engine leaves alone of the memory that it sees, in bytes; 0 where the bills are larger.

    Source: the memory less all bills.
    """
    bills = weights_bytes + activation_bytes + other_bytes + kv_in_use_bytes + kv_free_bytes
    return largest(0, gpu_memory_bytes - bills)


@formula("All users fit", PLAIN)
def all_fit(charged: Any, alone: Any, kv_block_bytes: Any, load_requests: Any, kv_budget_bytes_per_gpu: Any) -> Any:
    """1 where all requests fit one replica at this context, and one of the whole length does.

    Source: blocks x bytes per block x requests <= the pool.
    """
    held = charged * kv_block_bytes * load_requests <= kv_budget_bytes_per_gpu
    return where(both(held, alone * kv_block_bytes <= kv_budget_bytes_per_gpu), 1, 0)


@formula("Where it breaks", TEXT)
def boundary_words(tensor_parallel_size: Any, sequences: Any, context_words: Any, stages: Any) -> Any:
    """How many requests of the context one replica holds, and which one it does not.

    Source: sequences per replica.
    """
    replica = join_text(
        "One replica (TP ", tensor_parallel_size, where(stages > 1, join_text(" x ", stages, " stages"), ""), ")"
    )
    fits = join_text(
        replica, " fits ", sequences, where(sequences == 1, " user of ", " users of "), context_words, "; user ",
        sequences + 1, " does not.",
    )  # fmt: skip
    return where(
        sequences >= 1, fits, join_text("TP ", tensor_parallel_size, " does not hold one user of ", context_words, ".")
    )


@formula("$ per month on it", USD)
def hardware_monthly_usd(hardware: Any, monthly: Any, instances: Any, gpus: Any) -> Any:
    """The least $ per month on the chosen instance, or on any instance with the chosen GPU; none where none holds
    the load.

    Source: the load's row on What-if candidates.
    """
    return least_where(monthly, _is_hardware(hardware, instances, gpus), otherwise="-")


@formula("Column of it", PLAIN)
def hardware_position(hardware: Any, best: Any, monthly: Any, instances: Any, gpus: Any) -> Any:
    """Column of that candidate; 0 where there is none.

    Source: the first in catalog order where prices tie.
    """
    return where(is_number(best), first_where(same_money(monthly, best), _is_hardware(hardware, instances, gpus)), 0)


def _is_hardware(hardware: Any, instances: Any, gpus: Any) -> Any:
    """Cells of that instance, or with that GPU: the OR of an array formula is a sum above 0."""
    if isinstance(instances, Expr):
        return (1 * (instances == hardware) + 1 * (gpus == hardware)) > 0
    return (instances == hardware) | (gpus == hardware)


@formula("$ per month", USD)
def case_monthly_usd(monthly_usd: Any, price_factor: Any) -> Any:
    """A month's cost with all prices times a factor; none where nothing holds the load.

    Source: every price is scaled alike, so the choice stays.
    """
    return number_where(is_number(monthly_usd), monthly_usd * price_factor)


@formula("Moves $ per month by", USD)
def swing_usd(low_usd: Any, high_usd: Any) -> Any:
    """How far a driver moves the month's cost between its low and its high end.

    Source: definition.
    """
    return number_where(both(is_number(low_usd), is_number(high_usd)), largest(low_usd - high_usd, high_usd - low_usd))


@formula("of the base", PERCENT)
def swing_share(swing_usd: Any, base_usd: Any) -> Any:
    """The same as a share of the base.

    Source: definition.
    """
    known = both(is_number(swing_usd), is_number(base_usd))
    return number_where(known, where(known, swing_usd, 0) / where(known, base_usd, 1))


@formula("Which", TEXT)
def swing_word(swing_usd: Any, swings: Any) -> Any:
    """`most` for the driver that moves the month's cost most.

    Source: the largest of the column.
    """
    return where(is_number(swing_usd), where(swing_usd == largest_of(swings), "most", "less"), "-")

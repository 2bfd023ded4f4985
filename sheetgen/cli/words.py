"""A cell's answer in words, for `recommend` and `build`."""

from __future__ import annotations

from sheetgen.recommend import Solution
from sheetgen.sheet.money import month_as_budgeted
from sheetgen.sheet.pace import bought_by, first_token_line, speed_line
from sheetgen.sheet.wording import price_class
from sheetgen.units import GIB


def headline(solved: Solution, row: int, *, with_budget: bool = True) -> str:
    """`2x aws/p5.48xlarge, $80,358 a month`, or why there is none; with what is budgeted for it where that differs."""
    choice = solved.choices[row]
    if choice.offer is None:
        return choice.verdict
    rented = f"{choice.n_instances:,}x {solved.candidate(choice.offer).instance}, ${choice.monthly_usd:,.0f} a month"
    settings = solved.question.settings
    budget = month_as_budgeted(choice.monthly_usd, settings.currency, settings.fx_rate, settings.contingency_fraction)
    return f"{rented}, as budgeted {budget}" if budget and with_budget else rented


def percent(share: float) -> str:
    """A share in whole percent, where neither all nor nothing is said of what is only nearly so."""
    if 0.995 <= share < 1:
        return ">99%"
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def dearer(share: float) -> str:
    """How much more something costs: `+12%`, or words where that would round to nothing."""
    if share == 0:
        return "the same price"
    return "less than 1% more" if 0 < share < 0.005 else f"{share:+.0%}"


def memory_line(solved: Solution, row: int) -> list[str]:
    """How the load sits on the recommended instances, and what comes second."""
    choice = solved.choices[row]
    if choice.offer is None:
        return []
    candidate = solved.candidate(choice.offer)
    size, stages = solved.tensor_parallel_size(choice.offer), choice.pipeline_parallel_size
    cell = solved.question.loads[row]
    weights, kv = solved.models["weights_bytes"][cell.model], solved.cells["kv_bytes"][row]
    replicas = f"{choice.n_replicas:,} replica{'' if choice.n_replicas == 1 else 's'}"
    n_gpus = choice.n_replicas * size * stages
    discount = solved.question.settings.discount_fraction
    shape = f" (TP {size}{f', PP {stages}' if stages > 1 else ''})"
    lines = [
        f"{replicas} of {size * stages}x {candidate.gpu.short_name}{shape}: {n_gpus:,} GPUs at work of "
        f"{choice.n_instances * candidate.gpu_count:,} rented",
        f"{weights / GIB:,.1f} GiB of weights a replica, {kv / GIB:,.1f} GiB of KV cache in all; "
        f"a replica holds {choice.sequences_per_replica:,} requests, "
        f"{percent(choice.sure_headroom_fraction)} of the room is surely free",
        f"{speed_line(solved, row)}, {first_token_line(solved, row)}, indicative; bound by {choice.bound_by}",
        bought_by(solved, row),
        f"${choice.hourly_usd:,.2f} an hour, {price_class(candidate.purchase, discount)} in "
        f"{candidate.region or 'no stated region'}, "
        f"price of {candidate.price_as_of or 'no stated date'}{', assumed shape' if candidate.assumed_shape else ''}",
    ]
    if choice.runner_up is not None and choice.runner_up_monthly_usd is not None:
        second = solved.candidate(choice.runner_up)
        count = int(solved.costs["n_instances"][row, choice.runner_up])
        more = choice.runner_up_monthly_usd / choice.monthly_usd - 1
        lines.append(
            f"runner-up: {count:,}x {second.instance} ({second.gpu_count}x {second.gpu.short_name} each), "
            f"${choice.runner_up_monthly_usd:,.0f} a month ({dearer(more)})"
        )
    return lines

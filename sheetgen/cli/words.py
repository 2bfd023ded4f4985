"""A load's answer in words, for `recommend` and `build`: what to rent, its memory, its money, what a change buys."""

from __future__ import annotations

from sheetgen.cli.output import table
from sheetgen.levers import Lever, best, levers_of
from sheetgen.recommend import Solution
from sheetgen.sheet.build_page import class_costs, facts_of
from sheetgen.sheet.wording import first_token, month_as_budgeted, price_class, saving, sized_by, throughput, token_time
from sheetgen.units import GIB

SHOWN_LEVERS = 3


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
    weights, kv = solved.models["weights_bytes"][cell.model], solved.loads["kv_bytes"][row]
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
        f"{token_time(solved, row)}, {throughput(solved, row)}, {first_token(solved, row)}, indicative; "
        f"bound by {choice.bound_by}",
        str(sized_by(solved, row)),
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


def money_lines(solved: Solution, row: int) -> list[str]:
    """Purchase classes, a user, a million tokens, owning; what is not known is said in one word or left out."""
    if solved.choices[row].offer is None:
        return []
    facts = facts_of(solved, row)
    classes = class_costs(solved, row)
    priced = [f"{name} {usd}" for name, usd in classes.items() if usd]
    unpriced = [name for name, usd in classes.items() if not usd]
    lines = [f"a month: {', '.join(priced)}" + (f"; no price for {', '.join(unpriced)}" if unpriced else "")]
    tokens = f"; {facts.per_million_tokens}" if facts.per_million_tokens else ""
    lines.append(f"{facts.per_year}; {facts.per_user} and month{tokens}")
    if facts.budget:
        lines.append(f"budget: {facts.budget}")
    if facts.owned:
        old = ", an old price" if facts.capex_is_old else ""
        even = f"; {facts.break_even}" if facts.break_even else ""
        lines.append(f"own {facts.owned} a month{old}{even}")
    else:
        lines.append("own: no street price of this GPU is known; give yours with --capex-usd-per-gpu")
    return lines


def lever_lines(solved: Solution, row: int) -> list[str]:
    """The three best levers of a load, then another model with a leaner KV cache, where they have a price."""
    levers = levers_of(solved, row)
    shown = [lever for _, lever in best({row: levers}, SHOWN_LEVERS)]
    rows = [cells for lever in shown if (cells := _lever(lever))]
    lines = [table(rows[0], rows[1:])] if rows else []
    for lever in levers:
        if lever.family == "model" and (cells := _lever(lever)):
            lines.append(f"  another model, quality not compared: {', '.join(cell.strip() for cell in cells)}")
    return lines


def _lever(lever: Lever) -> tuple[str, ...]:
    """A lever as the columns of a line; nothing where it has no price."""
    after = lever.after
    if after is None:
        return ()
    saves = saving(lever)
    rented = f"{after.n_instances:,}x {after.candidate.instance}", f"${after.monthly_usd:,.0f} a month"
    return f"  {lever.words}", *rented, f"saves {saves}" if (lever.saved_usd or 0) > 0 else saves

"""The table of services, a row each, and the table of their owners. Every quarter of a service is in the workbook."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from sheetgen.plan.cells import Heads, Rows, cell, number, usd
from sheetgen.plan.hosted_prices import Hosted
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.supplied import paid_shares
from sheetgen.plan.whole_amounts import in_whole_of_spend
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.report.page import NONE, Cell, Table, Text, joined, table, words
from sheetgen.report.wording import instance_name, sure, three_digits
from sheetgen.units import DTYPES, WHOLE, rate_text

NAMED = 3  # services in a sentence
SHARED = "shared: spare and idle machines, cover of late orders"
WHOLE_PLAN = "the plan, contingency apart"


def short_name(instance: str) -> str:
    """A type of machine as the documents name it; owned GPUs keep their name."""
    return instance_name(instance) if "/" in instance else instance


def machine_name(answer: Answer, instance: str, quarters: Sequence[int]) -> str:
    """The same with the pools whose owned GPUs it is; those alone where nothing of it is rented in these quarters."""
    t, many, plan = answer.place[instance], [*quarters], answer.plan
    of_gpu = (pool for pool in plan.supply.owned if plan.gpus[pool.id].id == answer.types[t].gpu)
    pools = [pool.id for pool in of_gpu if paid_shares(plan, pool)[[*many]].any()]
    counts = {name: answer.supply_counts[name][t, many, answer.case].any() for name in ("owned", "committed", "gap")}
    if not pools or not counts["owned"]:
        return short_name(instance)
    gpu = plan.catalog.gpu(answer.types[t].gpu).short_name
    rented = f"{short_name(instance)} and " if counts["committed"] or counts["gap"] else ""
    return f"{rented}{first_named(pools)} (owned {gpu})"


def first_named(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def services_table(answer: Answer, hosted: Sequence[Hosted]) -> Table:
    """A row for each service, in the plan's order, then what is shared and the plan; with the price of its tokens at a
    host where some service has one."""
    columns = [_parts_in_whole(answer, z) for z in (CASE["p50"], CASE["p90"])]
    at_hosts = {entry.service: usd(entry.usd) for entry in hosted}
    rows: Rows = [
        (
            service.id,
            _whose(answer, s),
            joined("; ", [*_served(answer, s)]),
            _load(answer, s),
            joined("; ", [*_machines(answer, s)]),
            _replicas(answer, s),
            *(usd(column[s]) for column in columns),
            *([at_hosts.get(s, NONE)] if hosted else []),
        )
        for s, service in enumerate(answer.plan.services)
    ]
    for name, spend in (("spare, idle, shared", [column[-1] for column in columns]), (WHOLE_PLAN, map(sum, columns))):
        rows.append((name, *[""] * 5, *map(usd, spend), *([""] if hosted else [])))
    at_plan = answer.plan.policy.plan_at
    heads: Heads = (
        "Service",
        "Owner",
        "Serves, its targets",
        "Peak load at p50 (p10 to p90)",
        f"Machines; longest times at {at_plan}",
        f"Replicas at {at_plan}, set by",
        *(number(f"$ of all quarters, {quantile}") for quantile in ("p50", "p90")),
        *([number("Hosted, p50")] if hosted else []),
    )
    return table("Services, at what their machines cost", heads, rows)


def _parts_in_whole(answer: Answer, z: int) -> list[float]:
    """The part of the spend of each service, in the plan's order, and what is shared."""
    parts = [answer.part_usd(s, z) for s in range(len(answer.plan.services))]
    return in_whole_of_spend(answer, z, [*parts, float(answer.of_owners[None][:, z].sum())])


def owners_table(answer: Answer) -> Table:
    """The cost of each owner's services, and what is shared."""
    rows, services = Rows(), answer.plan.services
    columns = [_parts_in_whole(answer, z) for z in CASE.values()]
    for owner in answer.of_owners:
        of_owner = [s for s, service in enumerate(services) if (service.owner or answer.plan.head.owner) == owner]
        names = first_named([services[s].id for s in of_owner]) if owner is not None else SHARED
        places = of_owner if owner is not None else [len(services)]
        amounts = (usd(math.fsum(column[place] for place in places)) for column in columns)
        rows.append((owner or ("nobody named" if owner is not None else "all"), names, *amounts))
    rows.append((WHOLE_PLAN, "", *(usd(sum(column)) for column in columns)))
    heads: Heads = ("Owner", "Services", *(number(f"$ of all quarters, {quantile}") for quantile in QUANTILES))
    return table("Money by owner", heads, rows)


def _whose(answer: Answer, s: int) -> str:
    service = answer.plan.services[s]
    priority = "" if service.priority is None else f"priority {service.priority}"
    return ", ".join(filter(None, (service.owner or answer.plan.head.owner, priority)))


def _served(answer: Answer, s: int) -> Iterator[str]:
    """The models by their quarters, then the request and the targets."""
    plan, service, quarters = answer.plan, answer.plan.services[s], answer.quarters_of(s)
    if not quarters:
        return

    def model(q: int) -> Sequence[str]:
        (served,) = plan.question_in(service, plan.quarters[q]).models
        weights, kv_cache = (DTYPES[dtype].name for dtype in (served.weight_dtype, served.kv_cache_dtype))
        return served.model.name, weights, f"KV cache {kv_cache}"

    yield from _changing(answer, quarters, model, {})
    (workload,) = plan.question_in(service, plan.quarters[0]).workloads
    yield f"{workload.input_tokens:,} tokens in, {workload.output_tokens:,} out, memory for {workload.context_tokens:,}"
    limits = ((workload.tpot_target_ms, "a token"), (workload.ttft_target_ms, "to the first"))
    yield ", ".join(f"{three_digits(limit)} ms {step}" for limit, step in limits if limit) or "no targets"


def _changing(
    answer: Answer, quarters: Sequence[int], parts_of: Callable[[int], Sequence[str]], days: Mapping[int, datetime.date]
) -> Iterator[str]:
    """The parts of the first quarter, and from each quarter in which some are others, those. days: by quarter the day
    of that, where it is within it."""
    before: Sequence[str] = ()
    for q in quarters:
        parts = parts_of(q)
        changed = [part for part in parts if part not in before]
        if changed:
            yield f"{f'from {days.get(q, answer.plan.quarters[q])} ' if before else ''}{', '.join(changed)}"
        before = parts


def _load(answer: Answer, s: int) -> str:
    """Requests a second, or at once where those were stated, of the first and the last quarter."""
    at_once = answer.plan.services[s].demand.is_at_once
    loads = answer.services["concurrent_requests" if at_once else "requests_per_second"]
    quarters = answer.quarters_of(s)
    parts: dict[str, int] = {}
    for q in dict.fromkeys((*quarters[:1], *quarters[-1:])):
        low, middle, high = (rate_text(float(loads[s, q, z])) for z in CASE.values())
        load = middle if low == high else f"{middle} ({low} to {high})"
        parts.setdefault(load, q)
    ends = [f"{load} in {answer.plan.quarters[q]}" if len(parts) > 1 else load for load, q in parts.items()]
    return f"{'at once' if at_once else 'a second'}: {', '.join(ends)}" if parts else ""


def _machines(answer: Answer, s: int) -> Iterator[Text]:
    """The hardware by its quarters, and the quarters in which it has none."""
    placed, alone, quarters = answer.hardware.placed, answer.hardware.alone, answer.quarters_of(s)

    def hardware(q: int) -> Sequence[str]:
        here = placed[s, q]
        n_gpus = here.layout.n_gpus * here.pipeline_parallel_size
        size = f"{n_gpus} GPUs a replica" if n_gpus > 1 else "a GPU a replica"
        return machine_name(answer, here.instance, [q]), size, f"{here.paced_requests:,.0f} at once on it"

    days = {q: until.day for (service, q), until in answer.hardware.until.items() if service == s}
    yield from _changing(answer, quarters, hardware, days)
    others = dict.fromkeys(short_name(alone[s, q]) for q in quarters if alone[s, q] != placed[s, q].instance)
    if others:
        yield f"by itself it would be on {', '.join(others)}"
    for (service, q), why in sorted(answer.hardware.nothing.items()):
        if service == s:
            yield f"{answer.plan.quarters[q]}: {why}"
    if quarters:
        speeds = [answer.hardware.speed[s, q, answer.case] for q in quarters]
        slowest = max(speed.tpot_seconds for speed in speeds), max(speed.ttft_seconds for speed in speeds)
        times = (Cell(1000 * seconds, WHOLE) for seconds in slowest)
        least, most = (sure(of_all(speed.chance for speed in speeds)) for of_all in (min, max))
        at_least = "" if str(least) == str(most) else "at least "
        yield words(f"{{}} ms a token, {{}} ms to the first; {at_least}{{}}", *times, least)


def _replicas(answer: Answer, s: int) -> Text:
    """Those of the first and the last quarter, and what sets them, where there can be fewer."""
    quarters = answer.quarters_of(s)
    counts = {q: int(answer.services["planned_replicas"][s, q, answer.case]) for q in (*quarters[:1], *quarters[-1:])}
    reasons = dict.fromkeys(answer.set_by(s, q, answer.case) for q, n in counts.items() if n > 1)
    why = f" by {', then '.join(reasons)}" if reasons else ", the fewest"
    are_many = len({*counts.values()}) > 1
    ends = [(cell(n, WHOLE), f" in {answer.plan.quarters[q]}" if are_many else "") for q, n in counts.items()]
    replicas = joined(" to ", [words(f"{{}}{when}", n) for n, when in ends[: 1 + are_many]])
    return words(f"{{}}{why}", replicas) if counts else NONE

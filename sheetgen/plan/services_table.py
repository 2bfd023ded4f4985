"""The table of services, a row each, and the table of their owners. Every quarter of a service is in the workbook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sheetgen.plan.cells import Heads, Rows, cell, number, usd
from sheetgen.plan.hosted_prices import Hosted
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.report.page import NONE, Cell, Table, Text, joined, table, words
from sheetgen.report.wording import instance_name, sure, three_digits
from sheetgen.units import DTYPES, ONE_DECIMAL, WHOLE

NAMED = 3  # services in a sentence
SHARED = "shared: spare and idle machines, cover of late orders"
WHOLE_PLAN = "the plan, contingency apart"


def short_name(instance: str) -> str:
    """A type of machine as the documents name it; owned GPUs keep their name."""
    return instance_name(instance) if "/" in instance else instance


def first_named(names: Sequence[str]) -> str:
    """The first few names, and how many more there are: more than one, as that is as short by its name."""
    n = NAMED if len(names) > NAMED + 1 else len(names)
    return f"{', '.join(names[:n])}{f' and {len(names) - n} more' if names[n:] else ''}"


def services_table(answer: Answer, hosted: Sequence[Hosted]) -> Table:
    """A row for each service, in the plan's order, then what is shared and the plan; with the price of its tokens at a
    host where some service has one."""
    at_hosts = {entry.service: usd(entry.usd) for entry in hosted}
    rows: Rows = [
        (
            service.id,
            _whose(answer, s),
            joined("; ", [*_served(answer, s)]),
            _load(answer, s),
            joined("; ", [*_machines(answer, s)]),
            _replicas(answer, s),
            *(usd(answer.part_usd(s, CASE[quantile])) for quantile in ("p50", "p90")),
            *([at_hosts.get(s, NONE)] if hosted else []),
        )
        for s, service in enumerate(answer.plan.services)
    ]
    shared, plan_usd = answer.of_owners[None].sum(axis=0), answer.money["spend_usd"].sum(axis=0)
    for name, spend in (("spare, idle, shared", shared), (WHOLE_PLAN, plan_usd)):
        amounts = (usd(float(spend[CASE[quantile]])) for quantile in ("p50", "p90"))
        rows.append((name, *[""] * 5, *amounts, *([""] if hosted else [])))
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


def owners_table(answer: Answer) -> Table:
    """The cost of each owner's services, and what is shared."""
    rows: Rows = []
    for owner, spend in answer.of_owners.items():
        ids = [service.id for service in answer.plan.services if (service.owner or answer.plan.head.owner) == owner]
        names = first_named(ids) if owner is not None else SHARED
        amounts = (usd(float(spend[:, CASE[quantile]].sum())) for quantile in QUANTILES)
        rows.append((owner or ("nobody named" if owner is not None else "all"), names, *amounts))
    plan_usd = answer.money["spend_usd"].sum(axis=0)
    rows.append((WHOLE_PLAN, "", *(usd(float(plan_usd[CASE[quantile]])) for quantile in QUANTILES)))
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

    yield from _changing(answer, quarters, model)
    (workload,) = plan.question_in(service, plan.quarters[0]).workloads
    yield f"{workload.input_tokens:,} tokens in, {workload.output_tokens:,} out, memory for {workload.context_tokens:,}"
    limits = ((workload.tpot_target_ms, "a token"), (workload.ttft_target_ms, "to the first"))
    yield ", ".join(f"{three_digits(limit)} ms {step}" for limit, step in limits if limit) or "no targets"


def _changing(answer: Answer, quarters: Sequence[int], parts_of: Callable[[int], Sequence[str]]) -> Iterator[str]:
    """The parts of the first quarter, and from each quarter in which some are others, those."""
    before: Sequence[str] = ()
    for q in quarters:
        parts = parts_of(q)
        changed = [part for part in parts if part not in before]
        if changed:
            yield f"{f'from {answer.plan.quarters[q]} ' if before else ''}{', '.join(changed)}"
        before = parts


def _load(answer: Answer, s: int) -> Text:
    """Requests a second, or at once where those were stated, of the first and the last quarter."""
    at_once = answer.plan.services[s].demand.is_at_once
    loads = answer.services["concurrent_requests" if at_once else "requests_per_second"]
    quarters = answer.quarters_of(s)
    parts: dict[str, tuple[Text, int]] = {}
    for q in dict.fromkeys((*quarters[:1], *quarters[-1:])):
        low, middle, high = (cell(loads[s, q, z], ONE_DECIMAL) for z in CASE.values())
        load = middle if low == high else words("{} ({} to {})", middle, low, high)
        parts.setdefault(str(load), (load, q))
    unit = "at once" if at_once else "a second"
    if len(parts) < 2:
        return joined("", [words(f"{unit}: {{}}", load) for load, _ in parts.values()])
    ends = joined(", ", [words(f"{{}} in {answer.plan.quarters[q]}", load) for load, q in parts.values()])
    return words(f"{unit}: {{}}", ends)


def _machines(answer: Answer, s: int) -> Iterator[Text]:
    """The hardware by its quarters, and the quarters in which it has none."""
    placed, alone, quarters = answer.hardware.placed, answer.hardware.alone, answer.quarters_of(s)

    def hardware(q: int) -> Sequence[str]:
        here = placed[s, q]
        n_gpus = here.layout.n_gpus * here.pipeline_parallel_size
        size = f"{n_gpus} GPUs a replica" if n_gpus > 1 else "a GPU a replica"
        return short_name(here.instance), size, f"{here.paced_requests:,.0f} at once on it"

    yield from _changing(answer, quarters, hardware)
    others = dict.fromkeys(short_name(alone[s, q]) for q in quarters if alone[s, q] != placed[s, q].instance)
    if others:
        yield f"by itself it would be on {', '.join(others)}"
    for (service, q), why in sorted(answer.hardware.nothing.items()):
        if service == s:
            yield f"{answer.plan.quarters[q]}: {why}"
    if quarters:
        speeds = [answer.hardware.speed[s, q, answer.case] for q in quarters]
        slowest = max(speed.tpot_seconds for speed in speeds), max(speed.ttft_seconds for speed in speeds)
        least = min(speed.chance for speed in speeds)
        times = (Cell(1000 * seconds, WHOLE) for seconds in slowest)
        yield words("{} ms a token, {} ms to the first; {}", *times, sure(least))


def _replicas(answer: Answer, s: int) -> Text:
    """Those of the first and the last quarter, and what sets them."""
    quarters = answer.quarters_of(s)
    ends = [*dict.fromkeys((*quarters[:1], *quarters[-1:]))]
    counts = [cell(answer.services["planned_replicas"][s, q, answer.case], WHOLE) for q in ends]
    reasons = dict.fromkeys(answer.set_by(s, q, answer.case) for q in ends)
    return words(f"{{}} by {', then '.join(reasons)}", joined(" to ", [*dict.fromkeys(counts)])) if ends else NONE

"""What the plan says of one service: its demand, what it runs on and why, its money."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from sheetgen.plan.cells import Heads, Rows, cell, number, usd
from sheetgen.plan.charts import Demand
from sheetgen.plan.findings import unit_cost
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.tables import CONSTANTS
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.report.page import NONE, Table, Text, joined, table, words
from sheetgen.units import DTYPES, ONE_DECIMAL, TWO_DECIMALS, USD_CENTS, WHOLE, listed

NAMED = 3  # services in a sentence
SHARED = "shared: spare, idle, and what is paid anyway beyond its price"
MOST = 12  # services with a page; further ones, which cost less, are in the table of all alone


@dataclass(frozen=True)
class ServicePart:
    """A service's page: what it is, its demand as a picture, sentences, tables."""

    title: str
    demand: Demand
    lines: tuple[Text, ...]
    tables: tuple[Table, ...]


def service_parts(answer: Answer) -> tuple[ServicePart, ...]:
    """The services that cost most, in the plan's order."""
    shown = sorted(answer.largest[:MOST])
    return tuple(_part(answer, s) for s in shown)


def services_table(answer: Answer) -> Table:
    """Every service in a line, in the plan's order."""
    paged = {*answer.largest[:MOST]}
    title = "All services, at what their machines cost"
    if len(paged) < len(answer.plan.services):
        title += f"; the {MOST} that cost most have a page above, the others stand here alone"
    rows: Rows = []
    for s, service in enumerate(answer.plan.services):
        at = answer.quarters_of(s)
        last = at[-1] if at else None
        rows.append(
            (
                service.id,
                service.owner or answer.plan.head.owner,
                "not served" if last is None else _span(answer, at[0], last),
                NONE if last is None else answer.hardware.placed[s, last].instance,
                *(
                    NONE if last is None else cell(answer.services[name][s, last, answer.case], display)
                    for name, display in (("at_once", ONE_DECIMAL), ("planned_replicas", WHOLE))
                ),
                "" if last is None else answer.set_by(s, last, answer.case),
                *(usd(answer.part_usd(s, CASE[name])) for name in ("p50", "p90")),
            )
        )
    shared = answer.of_owners[None].sum(axis=0)
    for name, spend in ((SHARED, shared), ("the plan, its contingency apart", answer.money["spend_usd"].sum(axis=0))):
        rows.append((name, "", "", NONE, NONE, NONE, "", *(usd(float(spend[CASE[z]])) for z in ("p50", "p90"))))
    counts = (f"At once at {answer.plan.policy.plan_at}, at the end", "Replicas")
    heads: Heads = (
        "Service",
        "Owner",
        "Served",
        "Machines at the end",
        *map(number, counts),
        "Set by",
        number("$ of all quarters, p50"),
        number("p90"),
    )
    return table(title, heads, rows)


def owners_table(answer: Answer) -> Table:
    """What each owner's services cost, and what is shared."""
    rows: Rows = []
    for owner, spent in answer.of_owners.items():
        mine = [one.id for one in answer.plan.services if (one.owner or answer.plan.head.owner) == owner]
        more = f" and {len(mine) - NAMED} more" if len(mine) > NAMED else ""
        names = f"{', '.join(mine[:NAMED])}{more}" if owner is not None else SHARED
        amounts = (usd(float(spent[:, CASE[z]].sum())) for z in QUANTILES)
        rows.append((owner or ("nobody named" if owner is not None else "all"), names, *amounts))
    spend = answer.money["spend_usd"].sum(axis=0)
    rows.append(("the plan", "its contingency apart", *(usd(float(spend[CASE[z]])) for z in QUANTILES)))
    heads: Heads = ("Owner", "Services", *(number(f"$ of all quarters, {z}") for z in QUANTILES))
    return table("Money by owner", heads, rows)


def _span(answer: Answer, first: int, last: int) -> str:
    quarters = answer.plan.quarters
    return f"{quarters[first]} to {quarters[last]}" if last > first else str(quarters[first])


def _part(answer: Answer, s: int) -> ServicePart:
    service = answer.plan.services[s]
    owner = service.owner or answer.plan.head.owner
    heads = [service.id, f"priority {service.priority}" if service.priority else "", owner]
    tables = [_loads(answer, s), _money(answer, s)]
    lines = (*_served(answer, s), *_runs(answer, s), *_nothing(answer, s))
    return ServicePart(" · ".join(filter(None, heads)), _demand(answer, s), lines, tuple(tables))


def _demand(answer: Answer, s: int) -> Demand:
    """Requests per second, or at once where those were stated."""
    at_once = answer.plan.services[s].demand.at_once
    of = answer.services["concurrent_requests" if at_once else "requests_per_second"]
    bands = tuple(tuple(float(of[s, q, z]) for z in CASE.values()) for q in range(len(answer.plan.quarters)))
    return Demand(
        answer.plan.services[s].id,
        "requests at once at peak" if at_once else "requests per second at peak",
        tuple(map(str, answer.plan.quarters)),
        bands,
    )


def _served(answer: Answer, s: int) -> Iterator[Text]:
    """The models by their days, the request, and the targets."""
    plan, service = answer.plan, answer.plan.services[s]
    said = []
    for (name, weights, kv), many in groupby(answer.quarters_of(s), lambda q: _model(answer, s, q)):
        quarters = [*many]
        said.append(f"{name}, weights {weights}, KV cache {kv}, {_span(answer, quarters[0], quarters[-1])}")
    if not said:
        return
    (one,) = plan.question_in(service, plan.quarters[0]).workloads
    targets = [
        f"{_rounded(limit):,.10g} ms {what}"
        for limit, what in ((one.tpot_target_ms, "a token"), (one.ttft_target_ms, "to the first"))
        if limit
    ]
    lengths = f"{one.input_tokens:,} tokens in and {one.output_tokens:,} out, memory is for {one.context_tokens:,}"
    yield f"Serves {'; '.join(said)}. A request has {lengths}; targets: {', '.join(targets) or 'none'}."


def _rounded(limit: float) -> float:
    """A time to three digits; of more before its point, to whole ones."""
    return round(limit, max(0, 2 - math.floor(math.log10(limit))))


def _model(answer: Answer, s: int, q: int) -> tuple[str, str, str]:
    (one,) = answer.plan.question_in(answer.plan.services[s], answer.plan.quarters[q]).models
    return one.model.name, DTYPES[one.weight_dtype].name, DTYPES[one.kv_cache_dtype].name


def _runs(answer: Answer, s: int) -> Iterator[Text]:
    """What it runs on, quarters with the same in one line, and why it is there, stays or changes."""
    where = answer.hardware.placed
    alike = attrgetter("instance", "layout", "paced_requests")
    for _, run in groupby(answer.quarters_of(s), lambda q: alike(where[s, q])):
        many = [*run]
        first, one = many[0], where[s, many[0]]
        gpus = one.layout.n_gpus * one.pipeline_parallel_size
        size = "a GPU" if gpus == 1 else f"{gpus} GPUs"
        yield words(
            f"{_span(answer, first, many[-1])}: {one.instance} ({one.candidate.gpu_count} x "
            f"{one.candidate.gpu.short_name}), a replica on {size}, which serves {{}} requests at once within the "
            "targets. {}",
            cell(one.paced_requests, WHOLE),
            _why(answer, s, many),
        )


def _why(answer: Answer, s: int, many: Sequence[int]) -> Text:
    """Why a service is on its hardware in these quarters."""
    plan, first = answer.plan, many[0]
    one, before = answer.hardware.placed[s, first], answer.hardware.placed.get((s, first - 1))
    alone = [answer.hardware.alone[s, q] for q in many]
    others = [i for i, instance in enumerate(alone) if instance != one.instance]
    said: list[Text] = []
    if before is not None and before.instance == one.instance:
        said.append("The same machine: the model, its precision or the layout on it is another.")
    elif one.moved and one.saves_usd:
        said.append(words("It moves here, which saves {} until the plan's end.", usd(one.saves_usd)))
    elif before is not None:
        said.append("It moves here: the hardware before cannot serve it any more, or some of this is there anyway.")
    elif not others:
        said.append("Alone the cheapest that holds the load within the targets, or within a near tie of it.")
    if others:
        together = others == [*range(others[0], others[-1] + 1)]
        spans = (
            _span(answer, many[others[0]], many[others[-1]])
            if together
            else ", ".join(str(plan.quarters[many[i]]) for i in others)
        )
        names = ", ".join(dict.fromkeys(alone[i] for i in others))
        why = _why_here(answer, s, many)
        said.append(words(f"Alone {names} would be chosen in {spans}; it is here, as {{}}.", why))
    else:
        said += [f"On the same machines: {names}." for names in _beside(answer, s, many)]
    return joined(" ", said)


def _why_here(answer: Answer, s: int, many: Sequence[int]) -> Text:
    """Why a service is not where it would be chosen alone."""
    where = answer.hardware.placed
    if any(where[s, q].is_together for q in many):
        there = ["on what is owned or committed"] * _is_there(answer, where[s, many[0]].instance, many)
        there += [f"on the same machines as {names}" for names in _beside(answer, s, many)]
        return f"the whole plan costs less with it {' and '.join(there) or 'there'}"
    return "a move there saves no more than it costs"


def _beside(answer: Answer, s: int, many: Sequence[int]) -> Iterator[str]:
    """The services, if any, whose replicas may be on the same machines: where one holds more than a replica."""
    where, services = answer.hardware.placed, answer.plan.services
    beside = [
        services[i].id
        for i in range(len(services))
        if i != s
        and any(
            (i, q) in where
            and where[i, q].instance == where[s, q].instance
            and where[i, q].replicas_per_instance > 1 < where[s, q].replicas_per_instance
            for q in many
        )
    ]
    n = len(beside[NAMED:])
    if beside:
        yield listed(beside[:NAMED] + [f"{n} more"] * bool(n))


def _is_there(answer: Answer, instance: str, many: Sequence[int]) -> bool:
    """Whether some of a type is owned or committed in any of these quarters."""
    t = answer.place[instance]
    return bool((answer.supply["owned_instances"][t, many] + answer.signed_instances[t, many]).any())


def _nothing(answer: Answer, s: int) -> Iterator[Text]:
    for (service, q), why in sorted(answer.hardware.nothing.items()):
        if service == s:
            yield f"{answer.plan.quarters[q]}: {why}."


def _loads(answer: Answer, s: int) -> Table:
    rows: Rows = []
    for q, quarter in enumerate(answer.plan.quarters):
        one, known = answer.hardware.placed.get((s, q)), answer.services
        if one is None:
            rows.append((str(quarter), *[NONE] * 8, answer.hardware.nothing.get((s, q), "not served"), NONE, NONE))
            continue
        rates = (float(known["requests_per_second"][s, q, z]) for z in CASE.values())
        rows.append(
            (
                str(quarter),
                *(cell(rate or None, TWO_DECIMALS) for rate in rates),
                *(cell(known["at_once"][s, q, z], ONE_DECIMAL) for z in CASE.values()),
                *(cell(known["planned_replicas"][s, q, CASE[name]], WHOLE) for name in ("p50", "p90")),
                answer.set_by(s, q, answer.case),
                *(cell(known["own_instances"][s, q, CASE[name]], TWO_DECIMALS) for name in ("p50", "p90")),
            )
        )
    counts = ("Requests/s, p10", "p50", "p90", "At once, p10", "p50", "p90", "Replicas, p50", "p90")
    heads: Heads = ("Quarter", *map(number, counts), "Set by", number("Machines, p50"), number("p90"))
    found = table("Demand, replicas and what sets them", heads, rows, level=3)
    if not answer.plan.services[s].demand.at_once:
        return found
    kept = [0, *range(4, len(heads))]  # no rates where requests at once were stated
    return found._replace(
        columns=tuple(found.columns[i] for i in kept), rows=tuple(tuple(row[i] for i in kept) for row in found.rows)
    )


def _money(answer: Answer, s: int) -> Table:
    """By quarter, with what is owned and committed of its machines."""
    months, rows = CONSTANTS["months_in_a_quarter"], list[tuple[Text, ...]]()
    for q, quarter in enumerate(answer.plan.quarters):
        if (s, q) not in answer.hardware.placed:
            continue
        month = answer.services["service_month_usd"]
        speed = answer.hardware.speed[s, q, answer.case]
        rows.append(
            (
                str(quarter),
                *(usd(months * float(month[s, q, z])) for z in CASE.values()),
                cell(unit_cost(answer, s, q, CASE["p50"]), USD_CENTS),
                cell(1000 * speed.tpot_seconds, ONE_DECIMAL),
                cell(speed.ttft_seconds, TWO_DECIMALS),
            )
        )
    rows.append(("all quarters", *(usd(answer.part_usd(s, z)) for z in CASE.values()), *[NONE] * 3))
    parts = (
        "$, p10",
        "p50",
        "p90",
        "$ per million tokens, p50",
        f"ms a token at {answer.plan.policy.plan_at}",
        "First token, s",
    )
    heads: Heads = ("Quarter", *map(number, parts))
    title = "Its part of the machines, at what they cost, and its speed"
    return table(title, heads, rows, level=3)

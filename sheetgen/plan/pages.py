"""The plan as tables of values, before anyone draws it: the ask, decisions by their days, money; what changed and what
would change our mind; services, supply, commitments, checks. Every document draws these."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sheetgen.catalog.engines import Engine
from sheetgen.plan.bridge import Bridge
from sheetgen.plan.cells import Heads, Rows, cell, number, usd
from sheetgen.plan.charts import Machines, Waterfall, machines, waterfall
from sheetgen.plan.decisions import NOW, Decision, in_lines, kind, owners, served
from sheetgen.plan.draws import quantiles, swings
from sheetgen.plan.findings import FAILS, HOLDS, Findings, spans, spent, unpriced
from sheetgen.plan.orders import CAPACITY_BLOCK, QUARTERS_OF_TERM, allowed_prices, lead_days
from sheetgen.plan.plan_currency import in_currency
from sheetgen.plan.schema import DOLLARS, MIX, QUANTILES, Head
from sheetgen.plan.service_pages import MOST, ServicePart, owners_table, service_parts, services_table
from sheetgen.plan.spending import NO_BUDGET, OVER
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.question.sheet_question import SheetModel
from sheetgen.report.measured_words import unused_lines
from sheetgen.report.notes import own_version, sources_of
from sheetgen.report.page import Cell, Source, Table, Text, joined, table, words
from sheetgen.report.wording import short_money
from sheetgen.units import EXACT_PERCENT, FACTOR, PERCENT, WHOLE, listed

FIRST_DECISIONS = 3  # that the ask names
LINES_ON_FIRST_PAGE = 29  # of money and decisions; further decisions follow on the next page
LINE_OF_WORDS, LINE_OF_OWNERS = 28, 12  # characters, of a decision's
MOST_OF_FACTOR = 5  # services whose part of a factor is said
NAMED = 3  # services that a decision names, and quarters over their budget
MONEY = ("Budget", "p10", "p50", "p90", "Contingency at p90", "Budget left at p90", "p90 of all together")
NOT_FOR_SERVICES = ("move", "release")  # they are not because of what their machines serve


@dataclass(frozen=True)
class Brief:
    """What a message that carries the plan says of it."""

    quarters: str  # "2027-Q1 to 2028-Q2"
    asked: Cell  # with contingency
    p50: Cell
    p90: Cell
    short_asked: Cell  # $6.93M
    short_p50: Cell
    budget: str  # "within budget", "over budget in 2028-Q2"
    approve_by: str  # a day; "" where nothing is due any more
    decisions: tuple[Text, ...]
    request: Text
    answers: Table
    uncertain: tuple[Text, ...]
    prices: str  # of which days


@dataclass(frozen=True)
class PlanPage:
    """What a document of the plan says, in its order: the first page, the second, and what is behind them."""

    title: str
    people: str  # owner and approver; "" where none is named
    approver: str
    owner: str
    as_of: str
    ask: Text
    verdict: Text  # of the budget
    next: Text  # the first decisions
    first: tuple[Table, ...]  # money, decisions to sign now, forecasts
    n_late: int  # lines of decisions that are late; they stand first
    machines: Machines
    since: str  # what the bridge is from, or that there is none
    waterfall: Waterfall | None
    second: tuple[Table, ...]
    services: tuple[ServicePart, ...]
    further: tuple[Table, ...]
    assumptions: tuple[Text, ...]
    sources: tuple[Source, ...]
    brief: Brief
    catalog: str
    version: str
    paper: str

    @property
    def tables(self) -> tuple[Table, ...]:
        of_services = (one for part in self.services for one in part.tables)
        return (*self.first, *self.second, *of_services, *self.further)


def plan_page(found: Findings, paper: str = "a4") -> PlanPage:
    """The tables of a plan, and what stands above and below them."""
    plan, last = found.answer.plan, found.last
    head = plan.head
    people = [f"{what}: {who}" for what, who in (("Owner", head.owner), ("For approval", head.approver)) if who]
    since = "No last plan was named (--since LAST.json, or plan.since): what changed is not said."
    if last is not None:
        changed = "" if found.bridge and found.bridge.parts else " Nothing that it rests on changed."
        since = f"Since the plan of {last.plan.as_of.isoformat()}: spend at p50, all quarters.{changed}"
    in_order = [one for one, is_other in in_lines(found.decisions) if not is_other]
    money = _money(found)
    lines = itertools.accumulate(_lines(_decisions(found, [one], "")) for one in in_order)
    n_first = max(FIRST_DECISIONS, sum(n <= LINES_ON_FIRST_PAGE - len(money.rows) for n in lines))
    first = money, *_apart(found, in_order[:n_first])
    page = PlanPage(
        head.name,
        " · ".join(people),
        head.approver,
        head.owner,
        plan.as_of.isoformat(),
        _ask(found),
        joined(" ", [_verdict(found), *(f"{one}." for one in unpriced(plan))]),
        _next(found, in_order),
        first,
        sum(len(one.ways) for one in in_order if one.late),
        machines(found),
        since,
        waterfall(found),
        tuple(_second(found, in_order, n_first)),
        service_parts(found.answer),
        tuple(_further(found)),
        tuple(_assumptions(found)),
        _sources(found.answer),
        _brief(found, in_order),
        plan.catalog.catalog_sha256()[:8],
        own_version(),
        paper,
    )
    converted: PlanPage = in_currency(page, head)
    brief = replace(converted.brief, request=_beside(converted.brief.request, page.brief, head))
    return replace(converted, ask=_beside(converted.ask, page.brief, head), brief=brief)


def _apart(found: Findings, decisions: Sequence[Decision]) -> Iterator[Table]:
    """Decisions to sign now, and those that the next plan decides."""
    now = [one for one in decisions if kind(found.answer.plan, one) == NOW]
    later = [one for one in decisions if one not in now]
    if now or not later:
        yield _decisions(found, now, "Decisions to sign now, by the day by which each is due")
    if later:
        yield _decisions(found, later, "Forecast decisions, which the next plan decides anew")


def _beside(said: Text, dollars: Brief, head: Head) -> Text:
    """What is to be approved in the plan's currency, with its dollars."""
    if head.currency == DOLLARS:
        return said
    return words(
        "{} In US dollars: {}, at {} {} for one.", said, dollars.asked, cell(head.fx_rate, FACTOR), head.currency
    )


def _for_what(answer: Answer) -> Text:
    """What the sum is for that is to be approved."""
    spend, reserve = answer.asked_usd
    of_machines = words(f"{{}} for the machines at {answer.plan.policy.plan_at} of the demand", usd(spend))
    what = "contingency, on what is not owned or committed already"
    return words(f"{{}} and {{}} of {what}", of_machines, usd(reserve)) if reserve else of_machines


def _ask(found: Findings) -> Text:
    """What is to be approved, in two sentences."""
    answer, plan = found.answer, found.answer.plan
    together = quantiles(found.draws.spend_usd.sum(axis=1))
    months = answer.money["spend_usd"].sum(axis=0)
    bound = _bound(answer)
    less = "no more is ordered than that takes" if bound else "what is not needed then is given back"
    back = f", if {less}" if plan.policy.plan_at != "p50" else ""
    return words(
        f"To approve, {plan.quarters[0]} to {plan.quarters[-1]}: {{}} ({{}}). {{}}{{}} Contingency apart: {{}} at "
        f"p50, the middle case{back}; {{}} where all demand is high (p90); below {{}} in nine of ten cases of demand "
        "and prices.",
        usd(sum(answer.asked_usd)),
        _for_what(answer),
        _sign_now(found),
        words(" {}", bound) if bound else "",
        usd(months[CASE["p50"]]),
        usd(months[CASE["p90"]]),
        usd(together["p90"]),
    )


def _sign_now(found: Findings) -> Text:
    """What is to be signed now, and what is signed already."""
    spend, binds = found.sign_now_usd
    said = words("Sign now {}; binds {}", usd(spend), usd(binds)) if spend or binds else "Nothing is to be signed now"
    return words("{}; of the whole {} is already owned or committed.", said, usd(found.answer.already_usd))


def _bound(answer: Answer) -> Text:
    """What orders of a term bind, and what of that comes after the plan's end; nothing without such orders."""
    bound = sum(answer.bound_usd)
    if not bound:
        return ""
    return words(
        "Its orders bind {}, {} of it after the plan's end, whether used or not.",
        usd(bound),
        usd(answer.bound_after_usd),
    )


def _brief(found: Findings, decisions: Sequence[Decision]) -> Brief:
    """The plan in a message; decisions: those that are late first."""
    answer, plan = found.answer, found.answer.plan
    spend = answer.money["spend_usd"]
    p50, p90 = (float(spend[:, CASE[name]].sum()) for name in ("p50", "p90"))
    asked = sum(answer.asked_usd)
    verdicts = answer.verdicts
    over = [*answer.over]
    stated = any(one != NO_BUDGET for one in verdicts)
    approval = datetime.timedelta(days=plan.policy.approval_days)
    approve_by = max(plan.as_of, min(one.due for one in decisions) + approval) if decisions else None
    rows: Rows = [
        (
            str(quarter),
            "" if verdict == NO_BUDGET else f"budget {verdict}",
            usd(plan.budget.get(quarter)),
            *(usd(spend[q, CASE[name]]) for name in ("p50", "p90")),
            usd(answer.left_usd(q)[1]),
        )
        for q, (quarter, verdict) in enumerate(zip(plan.quarters, verdicts, strict=True))
    ]
    amounts = (
        "Budget",
        "At p50, the middle case",
        "Where all demand is high (p90)",
        "Budget left at p90 and contingency",
    )
    heads: Heads = ("Quarter", "Budget holds", *map(number, amounts))
    days = sorted(filter(None, {one.candidate.price_as_of for one in answer.hardware.placed.values()}))
    return Brief(
        f"{plan.quarters[0]} to {plan.quarters[-1]}",
        usd(asked),
        usd(p50),
        usd(p90),
        short_money(asked),
        short_money(p50),
        f"over budget in {', '.join(over)}" if over else "within budget" if stated else "no budget stated",
        approve_by.isoformat() if approve_by else "",
        tuple(
            words(f"Decide by {one.due.isoformat()}{' (late)' if one.late else ''}: {{}}.", _ways(one))
            for one in decisions[:FIRST_DECISIONS]
        ),
        words(
            "Please approve {} for {} from {} to {} ({}). {}{} At p50, the middle case, it is {}, contingency apart.",
            usd(asked),
            plan.head.name,
            str(plan.quarters[0]),
            str(plan.quarters[-1]),
            _for_what(answer),
            _sign_now(found),
            words(" {}", bound) if (bound := _bound(answer)) else "",
            usd(p50),
        ),
        table("", heads, rows),
        tuple(_uncertain(found)),
        f"{plan.policy.purchase} prices{f', the oldest of {days[0]}' if days else ''}",
    )


def _uncertain(found: Findings) -> Iterator[Text]:
    """How far the money may be off, and what is known of the error of such plans."""
    together, plan = quantiles(found.draws.spend_usd.sum(axis=1)), found.answer.plan
    yield words(
        "All quarters, with demand and prices as they may come: {} in one of ten cases at most, {} in nine of ten.",
        *(usd(together[name]) for name in ("p10", "p90")),
    )
    yield from _measured(plan) or ["No service was measured: times and memory are predicted."]
    for check in found.checks:
        if not check.holds:
            yield f"Not so: {check.what}. {'; '.join(check.found)}."


def _measured(plan: Plan) -> list[str]:
    """What was measured and sets times and memory, and what was read and does not."""
    read = "; ".join(plan.measured)
    of_same = f"Times and memory are as measured where that is of the same deployment: {read}."
    return [*([of_same] if read else []), *unused_lines(plan.unused)]


def _next(found: Findings, decisions: Sequence[Decision]) -> Text:
    """The first decisions with their days, and the change that saves most."""
    first = [
        words(f"{{}} by {one.due.isoformat()}{' (late)' if one.late else ''}", _ways(one))
        for one in decisions[:FIRST_DECISIONS]
    ]
    said: list[Text] = [words("First: {}.", joined("; ", first)) if first else "Nothing is to be decided."]
    for one in found.cheaper[:1]:
        said.append(words(f"Cheaper by {{}}: {one.what}; {one.gives_up}.", usd(one.saves_usd)))
    return joined(" ", said)


def _what(one: Decision) -> Text:
    to = " to" if one.what == "raise quota" else ""
    count = cell(one.n_instances, WHOLE)
    return words(f"{one.what}{to} {{}} x {one.instance}", count)


def _ways(one: Decision) -> Text:
    return joined(" or ", [_what(way) for way in one.ways])


def _verdict(found: Findings) -> Text:
    """Whether the budget holds: each quarter that is over it by how much, the first one first."""
    answer = found.answer
    over: list[Text] = []
    for q, quarter in enumerate(map(str, answer.plan.quarters)):
        if quarter in answer.over:
            at_p50, at_p90 = answer.left_usd(q)
            both = words(" and at p50 by {}", usd(-at_p50)) if answer.over[quarter] == OVER else ""
            over.append(words(f"{quarter} is over at p90 by {{}}{{}}", usd(-at_p90), both))
    n_stated = sum(one != NO_BUDGET for one in answer.verdicts)
    if not n_stated:
        return "No budget is stated."
    if over:
        rest = "; all other quarters with a budget are within it" if len(over) < n_stated else ""
        more = f"; and {len(over) - NAMED} more" if len(over) > NAMED else ""
        return words(f"Budget, contingency counted: {{}}{more}{rest}.", joined("; ", over[:NAMED]))
    return "Budget, contingency counted: every quarter that has one is within it, at p90 too."


def _second(found: Findings, decisions: Sequence[Decision], n_first: int) -> Iterator[Table]:
    """What changed, what would change our mind, and decisions for which the first page has no room."""
    if found.bridge is not None:
        yield _changed(found.bridge)
    if any(one.break_even for one in decisions):
        yield _break_even(found, decisions)
    if moving := swings(found.answer)[:MOST]:
        heads: Heads = ("One alone", *map(number, ("At its p10", "All at p50", "At its p90", "Apart")))
        expected = usd(found.answer.money["spend_usd"][:, CASE["p50"]].sum())
        yield table(
            "What moves the money most: spend of all quarters, US dollars",
            heads,
            [(name, usd(low), expected, usd(high), usd(high - low)) for name, low, high in moving],
        )
    if found.cheaper:
        yield _cheaper(found)
    if more := decisions[n_first:]:
        yield _decisions(found, more, "Further decisions")


def _changed(bridge: Bridge) -> Table:
    """By factor those services of which it changes most, and all others together."""
    rows: Rows = [("last plan", "", usd(bridge.last_usd))]
    for factor in bridge.parts:
        mine = [(s or "what services share", part) for (name, s), part in bridge.of_services.items() if name == factor]
        mine.sort(key=lambda one: -abs(one[1]))
        rest = math.fsum(part for _, part in mine[MOST_OF_FACTOR:])
        more = [(f"{len(mine) - MOST_OF_FACTOR} others", rest)] if len(mine) > MOST_OF_FACTOR else []
        rows += [(factor, s, usd(part)) for s, part in (*mine[:MOST_OF_FACTOR], *more)]
    rows.append(("this plan", "", usd(bridge.usd)))
    return table("What changed since the last plan", ("Factor", "Service", number("$ at p50")), rows)


def _cheaper(found: Findings) -> Table:
    """What one change would save, the plan worked out anew."""
    rows: Rows = [
        (one.what, one.gives_up, usd(one.asked_usd), usd(one.saves_usd), ", ".join(one.over) or "none")
        for one in found.cheaper
    ]
    heads: Heads = ("One change", "Which gives up", *map(number, ("To approve", "Saves")), "Over budget then")
    return table("What would cost less, each by itself", heads, rows)


def _further(found: Findings) -> Iterator[Table]:
    answer = found.answer
    yield services_table(answer)
    yield owners_table(answer)
    yield _gpus(found)
    yield _supply(answer)
    if found.commitments:
        yield _commitments(found)
    if answer.plan.rents_by_hour or answer.plan.base:
        yield _by_hour(answer)
    if found.served:
        yield _served(found)
    rows: Rows = [(one.what, HOLDS if one.holds else FAILS, "; ".join(one.found)) for one in found.checks]
    yield table("Checks", ("Check", "Holds", "What speaks against it"), rows)


def _by_hour(answer: Answer) -> Table:
    """What is rented by the hour, and a mix's base; against the peak held in all hours."""
    hours, rows = answer.plan.prices.hours_per_month, list[tuple[Text, ...]]()
    for q, quarter in enumerate(answer.plan.quarters):
        for t, machine in enumerate(answer.types):
            base, rented = (float(answer.supply[name][t, q, answer.case]) for name in ("base_instances", "gap"))
            if base or rented:
                amounts = (answer.held_usd[t, q], answer.saved_by_hour_usd[t, q])
                counts = (base, rented, float(answer.rented_on_average[t, q]) * hours)
                rows.append(
                    (str(quarter), machine.instance, *(cell(count, WHOLE) for count in counts), *map(usd, amounts))
                )
    counted = ("Base", "Above it at the peak", "Machine-hours a month", "Held all month, $", "Saved, $")
    return table("Rented by the hour", ("Quarter", "Machine", *map(number, counted)), rows)


def _served(found: Findings) -> Table:
    """How much of each service a limit that does not hold is enough for."""
    plan = found.answer.plan
    rows: Rows = [
        (
            str(plan.quarters[one.quarter]),
            one.limit if one.instance is None else f"{one.limit} of {one.instance}",
            plan.services[one.service].id,
            cell(one.share, PERCENT),
            usd(math.nan if one.next_usd is None else one.next_usd),
        )
        for one in found.served
    ]
    heads: Heads = ("Quarter", "Limit", "Service", *map(number, ("Of its demand", "The next step costs, $")))
    return table("What can be served within the limits, by priority", heads, rows)


def _decisions(found: Findings, decisions: Sequence[Decision], title: str) -> Table:
    """What, by when, whose, for how much, what a delay costs, and the rest in words."""
    answer = found.answer
    plan = answer.plan
    rows: Rows = []
    for one, is_other in in_lines(decisions):
        services = [plan.services[s] for s in served(answer, one)]
        names = "" if is_other or one.what in NOT_FOR_SERVICES else ", ".join(each.id for each in services[:NAMED])
        more = f" and {len(services) - NAMED} more" if len(services) > NAMED else ""
        there = f": there on {one.there_on}" if one.there_on else ""
        late = f"late by {(plan.as_of - one.order_by).days} days{there}" if one.late else ""
        until = f", from {one.cover.until_then} on" if one.cover and one.cover.until_then > one.needed_from else ""
        cover = f"until then {one.cover.purchase}{until}" if one.cover else ""
        stuck = "no more can be had without it" if one.what == "raise quota" else ""
        said: tuple[Text, ...] = (
            late or sign(plan, one, is_other),
            one.purchase or "",
            one.about,
            _worth(one),
            stuck,
            cover,
            *_shed(answer, one),
            f"for {names}{more}" if names else "",
        )
        rows.append(
            (
                one.order_by.isoformat(),
                _what(one),
                one.needed_from.isoformat(),
                ", ".join(owners(answer, one)),
                usd(one.usd),
                usd(one.cost_of_waiting_usd),
                joined("; ", [*filter(None, said)]) or "",
            )
        )
    amounts = map(number, ("$", "$ of a quarter's delay"))
    heads: Heads = ("By", "What", "Needed from", "Owner", *amounts, "In words")
    return table(title, heads, rows)


def _lines(decided: Table) -> int:
    """How many lines a table of decisions takes, about; two for the name of a machine."""
    lengths = ((len(str(row[-1])) / LINE_OF_WORDS, len(str(row[3])) / LINE_OF_OWNERS) for row in decided.rows)
    return sum(max(2, *map(math.ceil, one)) for one in lengths)


def sign(plan: Plan, one: Decision, is_other: bool) -> str:
    """When a decision is to be signed; of the other way to the same, that it is one."""
    return "or" if is_other else "late" if one.late else kind(plan, one)


def _worth(one: Decision) -> Text:
    """What a decision binds to the end of its term, and what it is expected to save."""
    said = list[Text]()
    if one.binds_usd:
        said.append(words("binds {}", usd(one.binds_usd)))
    if one.saves_usd is not None:
        says = "save" if one.saves_usd >= 0 else "cost more, by"
        said.append(words(f"expected to {says} {{}}", usd(abs(one.saves_usd))))
        if one.saves_after_usd:
            said[-1] = words("{}, {} of it after the plan's end", said[-1], usd(abs(one.saves_after_usd)))
    return joined(", ", said) if said else ""


def _shed(answer: Answer, one: Decision) -> Iterator[Text]:
    """What has no machine until the order or its cover is there."""
    for each in one.shed[:NAMED]:
        name, share = answer.plan.services[each.service].id, cell(each.share, PERCENT)
        of_it = f"{name} at {answer.plan.policy.plan_at}"
        yield words(f"{{}} of {of_it} not served from {each.first} to {each.last}", share)
    if n := len(one.shed[NAMED:]):
        yield f"and {n} more"
    if one.shed:
        yield "each day of waiting is a day more"


def _break_even(found: Findings, decisions: Sequence[Decision]) -> Table:
    """Of each decision that follows from demand the demand at which it would be another, beside what is expected."""
    answer = found.answer
    at_once, needed = answer.services["at_once"], answer.supply["needed_instances"]
    rows: Rows = []
    for one in decisions:
        quarter = answer.plan.quarter_of(one.needed_from)
        if one.break_even is None or quarter is None:
            continue
        of_it = served(answer, one)
        planned = sum(float(at_once[s, quarter, answer.case]) for s in of_it)
        middle = sum(float(at_once[s, quarter, CASE["p50"]]) for s in of_it)
        rows.append(
            (
                one.order_by.isoformat(),
                _what(one),
                str(answer.plan.quarters[quarter]),
                cell(planned, WHOLE),
                cell(middle / planned if planned else None, PERCENT),
                cell(one.break_even.fewer_below, PERCENT),
                cell(one.break_even.more_above, PERCENT),
                *(cell(needed[answer.place[one.instance], quarter, z], WHOLE) for z in (answer.case, CASE["p50"])),
            )
        )
    heads: Heads = (
        "By",
        "What",
        "In",
        *map(
            number,
            (
                "Planned for, at once",
                "At p50, of it",
                "Fewer do, up to",
                "More are needed, from",
                f"All machines of the type, at {answer.plan.policy.plan_at}",
                "at p50",
            ),
        ),
    )
    return table("What would change our mind: demand, as a share of what is planned for", heads, rows)


def _money(found: Findings) -> Table:
    """Quarters, years where there are several, and all of it."""
    rows: Rows = []
    for name, _, many in spans(found.answer.plan):
        one = spent(found.answer, found.draws, many)
        rows.append(
            (
                name,
                usd(one.budget_usd),
                *map(usd, one.usd.values()),
                usd(one.reserve_p90_usd),
                usd(one.left_p90_usd),
                usd(one.together_p90_usd),
                "" if one.verdict == NO_BUDGET else one.verdict,
            )
        )
    return table("Money by quarter, US dollars", ("Quarter", *map(number, MONEY), "Budget holds"), rows)


def _gpus(found: Findings) -> Table:
    """GPUs by quarter: those needed, by kind and together, and those that are there without buying."""
    drawn = machines(found)
    rows: Rows = []
    for q, quarter in enumerate(drawn.quarters):
        together = quantiles(found.draws.n_gpus[:, q])
        rows.append(
            (
                quarter,
                *(cell(values[q], WHOLE) for _, values in drawn.kinds),
                *(cell(together[name], WHOLE) for name in QUANTILES),
                cell(drawn.supply[q], WHOLE),
            )
        )
    kinds = (f"{name}, p50" for name, _ in drawn.kinds)
    counts = (*kinds, "p10 of all together", "p50", "p90", "Owned and committed")
    return table("GPUs needed by quarter", ("Quarter", *map(number, counts)), rows)


def _supply(answer: Answer) -> Table:
    names = ("needed", "spare", "owned", "committed", "gap", "idle")
    mean, peak = answer.in_use
    rows: Rows = []
    for q, quarter in enumerate(answer.plan.quarters):
        for t, one in enumerate(answer.types):
            counts = [float(answer.supply_counts[name][t, q, answer.case]) for name in names]
            if any(counts):
                in_use = (cell(share, PERCENT) for share in (mean[t, q], peak[t, q]))
                rows.append((str(quarter), one.instance, *(cell(count, WHOLE) for count in counts), *in_use))
    counted = ("Needed", "Spare", "Owned", "Committed", "To buy", "Idle", "Mean use", "Peak")
    title = f"Supply at {answer.plan.policy.plan_at}; spare ones are of those needed; use is of places, at p50"
    return table(title, ("Quarter", "Machine", *map(number, counted)), rows)


def _commitments(found: Findings) -> Table:
    numbers = ("Machines", "$ of the term", "Expected to save", "Worth it where needed")
    regrets = (f"Regret at {name}" for name in QUANTILES)
    heads: Heads = ("Machine, class", "From", *map(number, (*numbers, *regrets)))
    rows: Rows = [
        (
            f"{one.instance}, {one.purchase}",
            str(found.answer.plan.quarters[one.first]),
            cell(one.n_instances, WHOLE),
            usd(one.term_usd),
            usd(one.saves_usd),
            cell(one.critical_share, EXACT_PERCENT),
            *(usd(each.regret_usd) for each in one.regrets),
        )
        for one in found.commitments
    ]
    return table("Commitments worth making (not in the money)", heads, rows)


def _assumptions(found: Findings) -> Iterator[Text]:
    """What the numbers rest on: the policy, prices, and how draws were made."""
    plan = found.answer.plan
    policy, change = plan.policy, plan.prices.expected_change_per_year
    how = "as a mix" if policy.buy == MIX else policy.buy
    yield f"Capacity is for {policy.plan_at} of each service's demand, and bought {how} where it is missing."
    if policy.plan_at != "p50":
        back = "was not to be ordered" if policy.buy in QUARTERS_OF_TERM else "must be given back"
        yield (
            f"Money at p50 is for the machines that p50 takes: what is ordered for {policy.plan_at} and not needed "
            f"then {back}, or it costs as much."
        )
    if n_quarters := QUARTERS_OF_TERM.get(policy.buy):
        yield (
            f"What is bought {policy.buy} is paid for {n_quarters} quarters at the price of its first one, used or "
            "not; orders are placed anew as terms end, for what is short then."
        )
    yield from _hours(found.answer)
    yield words(
        "Headroom {}; what may be lost: {}; {} of approval; quarters of lower need until it is given back: {}.",
        cell(policy.headroom_fraction, PERCENT),
        _survives(plan),
        f"{policy.approval_days} days",
        str(policy.release_after_quarters),
    )
    yield words(
        "Prices are those read until now, less {}, and change by {} a year ({} to {}).",
        cell(plan.prices.discount_fraction, EXACT_PERCENT),
        *(cell(one, EXACT_PERCENT) for one in (change.p50, change.p10, change.p90)),
    )
    mean, peak = found.answer.in_use_of_all
    yield words(
        "Of the places on all machines that are there or bought {} are in use on average at p50, and {} at the peak.",
        cell(mean, PERCENT),
        cell(peak, PERCENT),
    )
    yield from _growth(plan)
    if plan.region:
        yield f"Prices are of the region {plan.region}: {listed(_places(found.answer))}."
    yield words(
        "All together: {} joint draws of demand and prices, correlation {}, seed {}.",
        cell(found.draws.n, WHOLE),
        cell(policy.correlation, FACTOR),
        str(found.draws.seed),
    )
    yield from _measured(plan)
    yield (
        f"What a decision costs is at {policy.plan_at}, until the plan's end; what it binds is of its whole term. "
        "Decisions to sign now are due before the next plan, a quarter after this one."
    )
    yield (
        "Orders are in the money; the other way (a commitment, a renewal, machines of one's own) is not, and does not "
        "add to it."
    )
    yield (
        "Nothing serves before it can be there: an order's lead time and approval count from the day of the plan, "
        "and so do those of what covers it. Until then services take, by priority, idle and spare machines that are "
        "owned or committed and can hold them, and those of the lowest priority wait; nothing is paid for it."
    )
    blocks = [one for one in found.decisions if CAPACITY_BLOCK in (one.purchase, one.cover and one.cover.purchase)]
    if blocks and CAPACITY_BLOCK not in plan.supply.lead_time_days:
        yield f"A capacity block is there after {lead_days(plan, CAPACITY_BLOCK):g} days, as judged: none were stated."
    yield (
        "A quarter's delay has no price where nothing that costs more covers it: then it costs no money as long as "
        "the same can still be had, and service where it cannot."
    )
    yield (
        "What sets the replicas: memory; tpot or ttft, a target; rate, the allowance for chance; prefill, the "
        "prompts; survival, what may be lost; floor, the fewest that are stated."
    )
    if len({one.instance for found in plan.questions.values() for one in found.candidates}) > 1:
        yield words(
            "Services go together to machines on which the whole plan costs less by more than {} of what they "
            "cost by themselves. Within that a plan with more demand may cost less.",
            cell(policy.near_tie_fraction, EXACT_PERCENT),
        )
    yield "Times are predicted, with the bands that sheetgen recommend states; machines are those that it chooses."


def _hours(answer: Answer) -> Iterator[Text]:
    """The hours of services that have some of their own, and what following them saves."""
    plan, saved = answer.plan, float(answer.saved_by_hour_usd.sum())
    profiled = [f"{one.id} in {one.time_zone}" for one in plan.services if one.profile is not None]
    if profiled:
        more = f" and {len(profiled) - NAMED} more" if len(profiled) > NAMED else ""
        yield (
            f"The load follows the hours of {', '.join(profiled[:NAMED])}{more}, with clocks as in mid-quarter; a week "
            "stands for the quarter."
        )
    if plan.rents_by_hour:
        yield words(
            f"Machines are rented for the hours that need them, each from {plan.start_minutes:g} minutes before: "
            "{} less than with the peak held in all hours.",
            usd(saved),
        )
    if plan.policy.buy == MIX:
        yield (
            "The base of the mix is bought for a term: machines whose hours on demand would cost more, in its first "
            f"quarter and over all of it, at {plan.policy.plan_at}. What is above it is on demand."
        )


def _growth(plan: Plan) -> Iterator[Text]:
    """How the bands of growth go on from quarter to quarter, where there are any."""
    banded = [one for one in plan.services if (of := one.growth and one.growth.per_quarter) and of.p10 < of.p90]
    for bands, how in (("renew", "is another one each quarter"), ("persist", "is the same for all quarters")):
        names = [one.id for one in banded if one.growth and one.growth.bands == bands]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        if names:
            yield f"Within its band the growth of {', '.join(names[:NAMED])}{more} {how}."


def _places(answer: Answer) -> list[str]:
    """Each machine with the regions whose prices it has: of what is bought, and of other classes that may be used."""
    bought = answer.plan.policy.purchase
    places = []
    for one in {place.instance: place.candidate for _, place in sorted(answer.hardware.placed.items())}.values():
        prices = [price for purchase in allowed_prices(answer.plan, one) if (price := one.class_price(purchase))]
        others = [f"{each.purchase} in {each.region}" for each in prices if each.region not in ("", one.region)]
        places.append(f"{one.instance} in {one.region}" + (f" ({bought}; {', '.join(others)})" if others else ""))
    return places


def _survives(plan: Plan) -> str:
    """What may be lost of each service, at full load."""
    said = dict[str, list[str]]()
    for s, service in enumerate(plan.services):
        one = plan.redundancy(s)
        parts = [
            "" if one.survive == "none" else f"a {one.survive}" + f" of {one.zones}" * (one.survive == "zone"),
            f"{one.replicas} spare replicas" if one.replicas else "",
        ]
        said.setdefault(" and ".join(filter(None, parts)) or "nothing", []).append(service.id)
    if len(said) == 1:
        return next(iter(said))
    return ", ".join(
        f"{what} of {listed(ids[:NAMED])}{' and others' * (len(ids) > NAMED)}" for what, ids in said.items()
    )


def _sources(answer: Answer) -> tuple[Source, ...]:
    """Where the facts of the hardware and models that serve the plan were read."""
    plan = answer.plan
    models, engines = dict[str, SheetModel](), dict[str, Engine]()
    for s, q in sorted(answer.hardware.placed):
        question = plan.question_in(plan.services[s], plan.quarters[q])
        models |= {one.model.id: one for one in question.models}
        engines[question.engine.name] = question.engine
    used = {one.instance: one.candidate for _, one in sorted(answer.hardware.placed.items())}
    return sources_of(models.values(), used.values(), engines.values())

"""The plan as a document, before anyone draws it: a page to sign, a page of reasons, then services, assumptions and
sources. Its sections hold tables of values and sentences; details that it has no place for are in the workbook."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, product

import numpy

from sheetgen.catalog.engines import Engine
from sheetgen.plan.actuals import UNTAGGED
from sheetgen.plan.bridge import Bridge, Calendar
from sheetgen.plan.cells import Heads, Rows, cell, number, phrase, usd
from sheetgen.plan.charts import Machines, Waterfall, machines, waterfall
from sheetgen.plan.cheaper import A_BIT, CLASS, KINDS, PLACES, SURVIVE, Closing, Lever, best_of_kinds
from sheetgen.plan.decisions import BUDGET, MACHINES, NOW, QUOTA, RAISE_QUOTA, Decision, kind, served
from sheetgen.plan.draws import quantiles, swings
from sheetgen.plan.findings import (
    FAILS,
    HOLDS,
    Changed,
    Findings,
    WithoutMoves,
    answered_at_once,
    cautions,
    changed_now,
    days_text,
    not_charged,
    spans,
    spent,
    warnings,
)
from sheetgen.plan.measuring import ToMeasure
from sheetgen.plan.orders import Unserved, quota_of
from sheetgen.plan.paid_prices import paid_prices
from sheetgen.plan.plan_currency import in_currency
from sheetgen.plan.quarters import QUARTERS_OF_TERM
from sheetgen.plan.schema import DOLLARS, MIX, QUANTILES, Committed, Owned
from sheetgen.plan.served import STEPS, Served
from sheetgen.plan.services_table import NAMED, first_named, machine_name, owners_table, services_table, short_name
from sheetgen.plan.solve_plan import FEW
from sheetgen.plan.spending import A_CENT, NO_BUDGET
from sheetgen.plan.stated_plan import Plan, machine_in, term
from sheetgen.plan.whole_amounts import asked_in_whole, by_quarter_in_whole, in_whole
from sheetgen.plan.worked_plan import BAND, CASE, DAY, RESERVE, SPARE, Answer
from sheetgen.question.sheet_question import SheetModel
from sheetgen.report import sentences
from sheetgen.report.measured_words import unused_lines
from sheetgen.report.notes import price_list, sources_of
from sheetgen.report.page import NONE, Cell, Source, Table, Text, capital, joined, table, words
from sheetgen.report.wording import short_money, sure
from sheetgen.units import CAPACITY_BLOCK, EXACT_PERCENT, FACTOR, PERCENT, WHOLE, count, listed
from sheetgen.version import VERSION

MONEY = ("Budget", "p10", "p50", "p90", "Contingency at p50", "Contingency at p90", "p90 of all together")
MOST_AT_HOSTS = 0.5  # of what its machines cost, under which the first page names a service's host
LINES_ON_FIRST_PAGE = 42  # of facts, warnings, money, levers and decisions
LINE, LINE_OF_TILE, LINE_OF_LEVER = 110, 44, 36  # characters of a whole line, and of columns
MOST_REMARKS = 150  # characters, where the first page has no lines for all of them
CHARACTERS = {1: 16, 2: 14, -1: 50}  # of a line of a decision: of its columns with the most words
MOST_LISTED = 6  # rows of a table of the second page; the workbook has all
NINE_OF_TEN, WHOLE_PERCENT = 0.9, 100
MOST_CUT = 3  # limits of which it is said who waits
MOST_MACHINES = 8  # types on the second page


@dataclass(frozen=True)
class Tile:
    """One of the amounts at the head of the document."""

    name: str
    amount: Text
    facts: tuple[Text, ...]


@dataclass(frozen=True)
class Section:
    """A part of the document under its title: a picture, sentences, a table of whose rows some are late."""

    title: str
    lines: tuple[Text, ...] = ()
    table: Table | None = None
    picture: Machines | Waterfall | None = None
    late: tuple[int, ...] = ()  # rows of the table, by position


@dataclass(frozen=True)
class Brief:
    """The plan in a message that carries it."""

    quarters: str  # "2027-Q1 to 2028-Q2"
    asked: Cell  # with contingency
    p50: Cell
    p90: Cell
    short_asked: Cell  # $6.93M
    short_p50: Cell
    budget: str  # "within budget", "over budget in 2028-Q2"
    points: tuple[tuple[str, Text], ...]  # each with its label
    prices: str  # of which days


@dataclass(frozen=True)
class PlanPage:
    """The document in its order: the first page, which is signed, and the sections behind it. book: the tables that the
    workbook alone has, by name."""

    title: str
    owner: str
    approver: str
    as_of: str
    sign_by: str  # a day; "" where nothing is due any more
    sentence: Text  # that is signed
    tiles: tuple[Tile, ...]
    warnings: tuple[Text, ...]
    first: tuple[Section, ...]
    reasons: tuple[Section, ...]
    behind: tuple[Section, ...]
    sources: tuple[Source, ...]
    book: dict[str, Table]
    brief: Brief
    catalog: str
    version: str
    paper: str

    @property
    def people(self) -> str:
        named = (("Owner", self.owner), ("For approval", self.approver))
        return " · ".join(f"{role}: {name}" for role, name in named if name)

    @property
    def sections(self) -> tuple[Section, ...]:
        return (*self.first, *self.reasons, *self.behind)


def plan_page(findings: Findings, paper: str = "a4") -> PlanPage:
    """The document of a plan, in the plan's currency."""
    answer, plan = findings.answer, findings.answer.plan
    warned = (*warnings(findings), *answered_at_once(findings))
    tiles = tuple(_tiles(findings))
    closing = findings.closing
    named = (*closing.by_itself, *closing.levers) if closing else ()
    shown = dict.fromkeys((*best_of_kinds(findings.cheaper), *named))
    levers = sorted(shown, key=lambda lever: KINDS.index(lever.change.kind))
    budget, less = _budget(findings), _levers(findings, levers)
    n_lines = len([*spans(plan)]) + _n_lines((*warned, *budget.lines, *less.lines), LINE)
    n_lines += max(_n_lines(tile.facts, LINE_OF_TILE) for tile in tiles)
    n_lines += sum(_n_lines(row[2:3], LINE_OF_LEVER) for row in less.table.rows) if less.table else 0
    signing, further = _to_sign(findings, LINES_ON_FIRST_PAGE - n_lines)
    page = PlanPage(
        plan.head.name,
        plan.head.owner,
        plan.head.approver,
        plan.as_of.isoformat(),
        _sign_by(plan, findings.decisions),
        words("Approve {} for {}", usd(sum(answer.asked_usd)), _quarters_of(plan)),
        tiles,
        warned,
        (
            signing,
            budget,
            less,
            Section("GPUs by quarter", picture=machines(answer)),
        ),
        (*further, *_waiting(findings), _supply(answer), _since(findings), *_reasons(findings)),
        (
            _section(services_table(answer, findings.hosted), *_hosted(findings)),
            _section(owners_table(answer)),
            Section("Assumptions", tuple(_assumptions(findings))),
        ),
        _sources(findings),
        _book(findings),
        _brief(findings, levers),
        plan.catalog.catalog_sha256()[:8],
        VERSION,
        paper,
    )
    converted: PlanPage = in_currency(page, plan.head)
    if plan.head.currency == DOLLARS:
        return page
    rate = cell(plan.head.fx_rate, FACTOR)
    in_dollars = words(f"in US dollars {{}}, at {{}} {plan.head.currency} for one", page.brief.asked, rate)
    asked, *others = converted.tiles
    return replace(converted, tiles=(replace(asked, facts=(*asked.facts, in_dollars)), *others))


def _n_lines(texts: Iterable[Text], characters: int) -> int:
    """The lines that texts take, in a column that has the width for so many characters."""
    return sum(math.ceil(len(str(text)) / characters) for text in texts)


def _quarters_of(plan: Plan) -> str:
    return f"{plan.quarters[0]} to {plan.quarters[-1]}"


def _months_of(plan: Plan) -> Iterator[str]:
    """The months of the quarters, where the fiscal year is none of the calendar."""
    if plan.head.fiscal_year_starts != 1:
        first, last = plan.first_day(plan.quarters[0]), plan.last_day(plan.quarters[-1])
        yield f"{_quarters_of(plan)} are {first:%B %Y} to {last:%B %Y}."


def _section(drawn: Table, *lines: Text, late: tuple[int, ...] = ()) -> Section:
    return Section(drawn.title, lines, drawn, late=late)


# The first page


def _sign_by(plan: Plan, decisions: Sequence[Decision]) -> str:
    """The day by which the plan must be approved for its first decision to be in time."""
    if not decisions:
        return ""
    approval = datetime.timedelta(days=plan.policy.approval_days)
    days = (decision.due + approval * (decision.what != "release") for decision in decisions)  # which needs none
    return max(plan.as_of, min(days)).isoformat()


def _tiles(findings: Findings) -> Iterator[Tile]:
    """The amounts to approve, to sign now, and to expect."""
    answer, plan = findings.answer, findings.answer.plan
    spend, reserve = asked_in_whole(answer, answer.case)
    asked = [words(f"{{}} for machines at {plan.policy.plan_at} of the demand", usd(spend))]
    if reserve:
        asked.append(words("{} of contingency, on what is not paid already", usd(reserve)))
    if moves := findings.moves_usd:
        asked.append(words("moves cost {} more, which is in no sum", usd(moves)))
    yield Tile("To approve", usd(spend + reserve), tuple(asked))
    now, binds = findings.sign_now_usd
    facts = [words("binds {} to the terms' ends", usd(binds)) if binds else "binds nothing: it can be given back"]
    facts += _offered(findings)
    if bound := sum(answer.bound_usd):
        after = (
            words(", {} of it after the plan's end", usd(answer.bound_after_usd))
            if answer.bound_after_usd > A_CENT
            else ""
        )
        facts.append(words("all orders bind {}, used or not{}", usd(bound), after))
    others = {
        "owned or committed already": answer.already_usd,
        "for what earlier plans ordered": findings.ordered_before_usd,
        "for what covers late orders": findings.covers_usd,
        "for later plans to decide": findings.forecast_usd,
    }
    adds_up = abs(now + math.fsum(others.values()) - answer.asked_usd[0]) < A_CENT
    rest_usd = spend - in_whole(plan, (now,))[0] if adds_up else None
    amounts = in_whole(plan, [*others.values()], rest_usd)
    if rest := [
        words(f"{{}} {purpose}", usd(amount)) for purpose, amount in zip(others, amounts, strict=True) if amount
    ]:
        facts.append(words("the rest of the whole: {}", joined(", ", rest)))
    yield Tile("Of it to sign now", usd(now), tuple(facts if now else facts[1:]))
    less = "no more is ordered than p50 takes" if bound else "what is not needed is given back"
    condition: Text = f", if {less}" if plan.policy.plan_at != "p50" else ""
    if base_usd := answer.base_usd:  # of the quantile that is bought, whatever the demand
        condition = words(", the terms of the plan paid all the same, {}", usd(base_usd))
    expected_usd = asked_in_whole(answer, CASE["p50"])[0]
    once_signed = words("{} once what is to be signed now is paid to its end", usd(findings.p50_once_signed_usd))
    yield Tile(
        "To expect, without contingency",
        usd(expected_usd),
        (
            words("every demand at its middle case (p50){}", condition),
            *([once_signed] if findings.p50_once_signed_usd > expected_usd + 1 else []),
            words("drawn together, {}", _in_nine_of_ten(findings)),
            words("{} where all demand is at p90", usd(asked_in_whole(answer, CASE["p90"])[0])),
        ),
    )


def _offered(findings: Findings) -> Iterator[Text]:
    """The decisions to sign now that no sum has, and what they bind."""
    for decision in findings.offered_now:
        yield words("offered, in no sum: {}, which binds {}", _decided(decision), usd(decision.binds_usd))


def _in_nine_of_ten(findings: Findings) -> Text:
    """The amount that nine of ten joint draws do not exceed; and in how many the sum to approve is enough, if fewer."""
    below = words("below {} in nine of ten cases", usd(findings.together_p90_usd))
    covered = math.floor(findings.covered_fraction * WHOLE_PERCENT) / WHOLE_PERCENT
    if covered >= NINE_OF_TEN:
        return below
    return words("{}; the sum to approve is enough in {}", below, cell(covered, PERCENT))


def _to_sign(findings: Findings, n_lines: int) -> tuple[Section, tuple[Section, ...]]:
    """The decisions to sign now, the most urgent first; and those for which the first page has no more lines."""
    orders = [order for order in findings.now if order.what == "order"]
    amounts = dict(zip(orders, in_whole(findings.answer.plan, [order.usd or 0.0 for order in orders]), strict=True))
    now = [replace(decision, usd=amounts.get(decision, decision.usd)) for decision in _in_urgency(findings.now)]
    answer, lines = findings.answer, [*_first_of_all(findings)]
    remarks = [_all_remarks(answer, decision) for decision in now]
    whole = shown = [_decision_row(answer, *part) for part in zip(now, remarks, strict=True)]
    n_lines -= _n_lines(lines, LINE)
    if sum(map(_lines_of, whole)) > n_lines:
        shown = [
            _decision_row(answer, decision, _in_short(of_it)) for decision, of_it in zip(now, remarks, strict=True)
        ]
    n_first, used = 0, 0
    for row in shown:
        used += _lines_of(row)
        n_first += used <= n_lines or not n_first
    late = [i for i, decision in enumerate(now) if decision.late]
    of_them = f", {len(late)} of them late" if late else ""
    title = f"Decisions to sign now: {len(now)}{of_them}" if now else "Nothing is to be signed before the next plan"
    first_page = table(title, _DECISION_HEADS, shown[:n_first])
    first = _section(first_page, *lines, *_overleaf(now[n_first:]), late=tuple(i for i in late if i < n_first))
    rest = table("Further decisions to sign now", _DECISION_HEADS, whole[n_first:])
    cut = [(row[1], row[-1]) for row, short in zip(whole[:n_first], shown, strict=False) if row != short]
    further = (
        [_section(table("All remarks on the decisions of the first page", ("Sign", "Remarks"), cut))] if cut else []
    )
    further += [_section(rest, late=tuple(i - n_first for i in late if i >= n_first))] if rest.rows else []
    return first, tuple(further)


def _lines_of(row: Sequence[Text]) -> int:
    """The lines that a decision takes."""
    return max(2, *(_n_lines([row[i]], n) for i, n in CHARACTERS.items()))


def _in_short(remarks: Sequence[Text]) -> list[Text]:
    """The first of some remarks, where the page has no lines for all."""
    used = [*accumulate(len(str(remark)) for remark in remarks)]
    n = max(1, sum(characters <= MOST_REMARKS for characters in used))
    return [*remarks[:n], *(["all remarks overleaf"] if remarks[n:] else [])]


def _first_of_all(findings: Findings) -> Iterator[Text]:
    """The levers that change what is to be signed, and of what binds money the service whose measurement
    decides most."""
    answer = findings.answer
    if (changed := changed_now(findings)) and findings.closing:
        yield _with_levers(findings.closing, changed, best_of_kinds(findings.cheaper))
    if findings.without_moves is not None:
        yield _not_moved(answer.plan, findings.without_moves)
    if idle := [*_idle(answer)]:
        yield words("Idle, though machines are ordered for these quarters: {}.", joined("; ", idle))
    bound = {s for decision in findings.now if decision.binds_usd for s in served(answer, decision)}
    first = next((measured for measured in findings.to_measure if measured.service in bound), None)
    if first is not None:
        which = f"Measure first, of what binds money: {answer.plan.services[first.service].id}"
        yield words(f"{which}, {{}}: {{}}.", _sure_in(answer.plan, first), _day_of(answer, first))


def _idle(answer: Answer) -> Iterator[Text]:
    """The owned or committed machines that are idle though others are ordered for the same quarters, and their cost;
    those of most money first."""
    counts, money = (answer.supply[name][..., answer.case] for name in ("idle_anyway", "idle_usd"))
    every = [(float(money[t, some].sum()), t, some) for t, some in answer.idle_while_buying.items()]
    for cost, t, some in sorted(every, key=lambda row: -row[0])[:NAMED]:
        first, last = (answer.plan.quarters[some[i]] for i in (0, -1))
        machine = f"{short_name(answer.types[t].instance)} ({first}{f' to {last}' if last != first else ''})"
        up_to = "up to " if last != first else ""
        yield words(f"{up_to}{{}} x {machine}, {{}}", cell(float(counts[t, some].max()), WHOLE), usd(cost))


def _not_moved(plan: Plan, without: WithoutMoves) -> Text:
    """The plan without any of the moves to sign, and what is over its budget then."""
    moves = "the move" if without.n_moves == 1 else f"the {without.n_moves} moves"
    over = [words(f"{quarter} by {{}} at p90", usd(more)) for quarter, more in without.over_usd.items()]
    pattern = f"Without {moves} to sign, worked out anew: {{}} to approve, {{}} at p50"
    budget = (
        words("; over budget then: {}", joined(", ", over)) if over else "; no quarter over budget" * bool(plan.budget)
    )
    return words("{}{}.", words(pattern, usd(without.asked_usd), usd(without.p50_usd)), budget)


def _with_levers(closing: Closing, changed: Sequence[Changed], best: Sequence[Lever]) -> Text:
    """The decision that levers change most, and all that is to be signed with them alone. best: levers that are
    shown."""
    kinds, are_many = _kinds(closing.levers, best), len(closing.levers) > 1
    first = f"Decide the {kinds} lever{'s' * are_many} first: with {'them' if are_many else 'it'}"
    if len(closing.by_itself) > 1 and not are_many:
        first = f"Decide on a lever first: with {kinds}"
    kept = [part for part in changed if part.n_instances]
    more = [_decided(part.decision) for part in changed if not part.n_instances]
    parts = [_other_number(part) for part in kept[:1]]
    if more:
        further = f" and {len(more) - NAMED} more" if more[NAMED:] else ""
        parts.append(words(f"{'and ' if kept else ''}{{}}{further}", joined(", ", more[:NAMED])))
    others = f"; {count(len(kept) - 1, 'other decision')} changed too" if kept[1:] else ""
    return words("{} {}{}.", first, joined(", ", parts), others)


def _other_number(changed: Changed) -> Text:
    """A decision with its other number: order 6 x NC80adis, not 7."""
    decision = changed.decision
    if not changed.n_then:
        return words("do not {}", _decided(decision))
    return words(
        "{}, not {}", _decided(replace(decision, n_instances=changed.n_then)), cell(changed.n_instances, WHOLE)
    )


def _kinds(levers: Sequence[Lever], shown: Sequence[Lever]) -> str:
    """Levers by their kinds; with the change of those that are not the only one of their kind that is shown."""
    changes = {name: [lever.change.name for lever in shown if lever.change.kind == name] for name in KINDS}
    return listed(
        [
            change.kind if changes[change.kind] == [change.name] else f"{change.kind} ({change.name})"
            for change in (lever.change for lever in levers)
        ]
    )


def _sure_in(plan: Plan, measured: ToMeasure) -> Text:
    """The chance of a service that is to be measured, in its quarter."""
    return words(f"{{}} in {plan.quarters[measured.quarter]}", sure(measured.chance))


def _day_of(answer: Answer, measured: ToMeasure) -> Text:
    """A measurement with its price, and the money that it decides."""
    name, price = short_name(measured.instance), usd(measured.usd)
    if not measured.usd:
        name = machine_name(
            answer, answer.hardware.placed[measured.service, measured.quarter].instance, [measured.quarter]
        )
    passed, failed = measured.passed_saves_usd, measured.failed_costs_usd
    stakes: list[Text] = [words("saves {} a month if it meets its targets", usd(passed))] if round(passed) else []
    fails = "if not" if stakes else "if it misses its targets"
    stakes += [words(f"{{}} a month more {fails}", usd(failed))] if failed is not None and round(failed) else []
    stakes += ["if not, nothing is 90% sure"] if failed is None else []
    day = words(
        f"{measured.n_instances} x {name} for a day, {{}}", price if measured.usd else "which costs nothing more"
    )
    return words("{} ({})", day, joined(", ", stakes) or "certainty, not money")


def _in_urgency(decisions: Sequence[Decision]) -> list[Decision]:
    """Decisions, those that are late first, then those that bind most, offered in place of others too, then those of
    most money; a quota is of as much as what cannot be had without it."""

    def rank(decision: Decision) -> tuple[bool, float, bool, float, bool]:
        is_quota = decision.what == RAISE_QUOTA
        waiting = [other for other in decisions if other.instance == decision.instance] if is_quota else [decision]
        binds, money = (max(weight) for weight in zip(*((d.binds_usd, d.weight_usd) for d in waiting), strict=True))
        return not decision.late, -binds, decision.is_offered, -money, is_quota

    return sorted(decisions, key=rank)


def _overleaf(further: Sequence[Decision]) -> Iterator[Text]:
    """The number of decisions that are not on the first page, and their money."""
    if further:
        plan_usd = math.fsum(decision.in_plan_usd or 0.0 for decision in further)
        binds_usd = math.fsum(decision.binds_usd for decision in further)
        n_late = sum(decision.late for decision in further)
        late = f", {n_late} of them late" if n_late else ""
        pattern = f"{count(len(further), 'further decision')} overleaf{late}: {{}} in the plan, {{}} bound."
        yield words(pattern, usd(plan_usd), usd(binds_usd))


_DECISION_HEADS: Heads = ("Ask by", "Sign", "For", "Needed from", number("In the plan"), number("Binds"), "Remarks")


def _decision_row(answer: Answer, decision: Decision, remarks: list[Text]) -> tuple[Text, ...]:
    return (
        decision.order_by.isoformat(),
        _placed(answer, decision),
        _for_whom(answer, decision),
        decision.needed_from.isoformat(),
        usd(decision.in_plan_usd),
        usd(decision.binds_usd or None),
        phrase("; ", remarks),
    )


def _all_remarks(answer: Answer, decision: Decision) -> list[Text]:
    """The remarks on a decision, the cost of its delay, the other ways to the same machines, and who waits."""
    waiting = decision.cost_of_waiting_usd
    delay = words("a quarter's delay costs {} more, for what covers it", usd(waiting)) if (waiting or 0) > 0 else ""
    remarks = [*_remarks(answer, decision), delay, *_other_ways(answer, decision), *_shed(answer, decision)]
    return [remark for remark in remarks if remark]


def _other_ways(answer: Answer, decision: Decision) -> list[Text]:
    """The other ways to the same machines, each with its day and its worth, and its region where that is another."""
    ways, here = list[Text](), answer.region_of(decision.instance, decision.purchase)
    for way in decision.ways[1:]:  # a pool that is replaced has neither worth nor cost
        cost: Text = "" if way.usd is None else words("binds nothing, {}", usd(way.usd))
        if way.what == "order" and way.binds_usd:
            cost = words("{} in the plan, binds {}", usd(way.usd), usd(way.binds_usd))
        there = answer.region_of(way.instance, way.purchase)
        decided = _decided(way, there if there != here else "")
        is_order = way.what == "order" and way.p50_usd is None
        worth = phrase(": ", (decided, cost if is_order else _worth(way) or cost))
        told = cautions(answer, way) if way.is_offered else []
        ways.append(words(f"or by {way.order_by} {{}}", phrase("; ", (worth, *told))))
    return ways


def _placed(answer: Answer, decision: Decision) -> Text:
    """A decision in short with the region of its machines, or with the pool that a service moves to."""
    q = answer.plan.quarter_of(decision.needed_from)
    if decision.moves is not None and q is not None and (pools := answer.pools_alone(decision.instance, q)):
        return _decided(decision, f"owned ({', '.join(pools)})")
    return _decided(decision, answer.region_of(decision.instance, decision.purchase))


def _decided(decision: Decision, region: str = "") -> Text:
    """The decision in short: order 16 x NC40ads H100 v5, on-demand."""
    to = " to" if decision.what == RAISE_QUOTA else ""
    instance, purchase = decision.instance, decision.purchase or ""
    if decision.what == "replace owned":
        instance = instance.removeprefix("owned ")
    machine = ", ".join(filter(None, (short_name(machine_in(instance) if purchase else instance), purchase, region)))
    return words(f"{decision.what}{to} {{}} x {{}}", cell(decision.n_instances, WHOLE), machine)


def _for_whom(answer: Answer, decision: Decision) -> str:
    """The services that the machines of a decision are for, or the one that moves to them."""
    if decision.moves is not None:
        return answer.plan.services[decision.moves].id
    if decision.what == "release":  # which is not because of what its machines serve
        return ""
    return first_named([answer.plan.services[s].id for s in served(answer, decision)])


def _remarks(answer: Answer, decision: Decision) -> list[Text]:
    """How late it is, why it is due, and its worth."""
    there = f": there on {decision.there_on}" if decision.there_on else ""
    late = f"late by {count((answer.plan.as_of - decision.order_by).days, 'day')}{there}" if decision.late else ""
    cover = decision.cover
    until = f", from {cover.there_on} on" if cover and cover.there_on > decision.needed_from else ""
    covered = f"{cover.purchase} until then{until}" if cover else ""
    ends = f"paid to {decision.term_ends}" if decision.term_ends else ""
    about: list[Text] = [late, decision.about, ends, _expected(decision), _needed(answer, decision), covered]
    return [*about, *cautions(answer, decision), _cancelled(answer.plan, decision)]


def _cancelled(plan: Plan, decision: Decision) -> str:
    """Machines that are given back before they are there."""
    ordered = plan.ordered(decision.instance) if decision.what == "release" else None
    if ordered is None or ordered[1] <= decision.needed_from:
        return ""
    return f"a cancellation: they are there on {ordered[1]}"


def decision_words(answer: Answer, decision: Decision, is_other: bool) -> Text:
    """The remarks on a decision, or on another way to the same, with its class and the services that it is for."""
    names = "" if is_other or decision.moves is not None else _for_whom(answer, decision)
    remarks = *_remarks(answer, decision), *_shed(answer, decision)
    region = answer.region_of(decision.instance, decision.purchase)
    return phrase("; ", (decision.purchase or "", region, _binds(decision), *remarks, f"for {names}" if names else ""))


def _worth(decision: Decision) -> Text:
    """The amount that a decision binds to the end of its term, and what it is expected to save."""
    return phrase(", ", (_binds(decision), _expected(decision)))


def _binds(decision: Decision) -> Text:
    return words("binds {}", usd(decision.binds_usd)) if decision.binds_usd else ""


def _expected(decision: Decision) -> Text:
    """The amount that a decision is expected to save, or costs where demand is less."""
    if decision.p50_usd is not None:
        at_p50: Text = words("{} where demand is at p50", usd(decision.p50_usd))
        if round(decision.p50_usd) == round(decision.usd or 0.0):
            at_p50 = "as much where demand is at p50"
        return words("binds nothing, {}, and {}", usd(decision.usd), at_p50)
    if decision.saves_usd is None:
        return ""
    if decision.saves_p50_usd is not None:
        return words("expected to save {} by itself, less its move", _saved(decision))
    if decision.saves_after_usd and decision.saves_usd < decision.saves_after_usd:
        within, after = decision.saves_after_usd - decision.saves_usd, decision.saves_after_usd
        return words("expected to cost {} more in the plan and to save {} after its end", usd(within), usd(after))
    saves = "save" if decision.saves_usd >= 0 else "cost more, by"
    expected = words(f"expected to {saves} {{}}", usd(abs(decision.saves_usd)))
    if decision.saves_after_usd:
        expected = words("{}, {} of it after the plan's end", expected, usd(abs(decision.saves_after_usd)))
    return expected


def _shed(answer: Answer, decision: Decision) -> Iterator[Text]:
    """The services that have no machine until the order or its cover is there, with what is there in time: those of
    which that is the same together."""
    alike = dict[Unserved, list[str]]()
    for gap in sorted(decision.shed, key=_days):
        alike.setdefault(replace(gap, service=0, instance=""), []).append(answer.plan.services[gap.service].id)
    for (first, last), gaps in groupby([*alike][:NAMED], _days):
        waiting = []
        for gap in gaps:
            way: Text = "nothing else that it allows is there in time"
            if gap.other is not None:
                n = f"{gap.other.n_instances} x" if gap.other.n_instances else "on what is offered to others of"
                machines = f"{n} {short_name(gap.other.instance)}, {gap.other.purchase}"
                way = words(f"or {machines}: {{}} more", usd(gap.other.usd))
            if gap.on_others:
                way = words(f"{_on_others(gap)}; {{}}", way)
            waiting.append(words(f"{{}} of {first_named(alike[gap])} ({{}})", cell(gap.share, PERCENT), way))
        when = f"{days_text(first, last)}, at {answer.plan.worst_case}"
        yield words(f"not served {when}: {{}}", joined(", ", waiting))
    if more := sum(map(len, [*alike.values()][NAMED:])):
        yield f"and {more} more"
    if sum(gap.other is not None for gap in decision.shed) > 1:
        yield "what is offered until then adds up"


def _days(gap: Unserved) -> tuple[datetime.date, datetime.date]:
    return gap.first, gap.last


def _on_others(gap: Unserved) -> str:
    """The shares of a service that machines of other types serve until its own are there."""
    kinds = {False: "idle ", True: "what was ordered before of "}
    parts = (f"{part.share:.0%} is on {kinds[part.was_ordered]}{short_name(part.instance)}" for part in gap.on_others)
    return " and ".join(parts)


def _budget(findings: Findings) -> Section:
    """Quarters, years where there are several, and all of it, against the budget."""
    answer, plan = findings.answer, findings.answer.plan
    middle, high = (by_quarter_in_whole(answer, CASE[z]) for z in ("p50", "p90"))
    columns = [*middle, *high[1:]]
    rows: Rows = []
    for name, _, many in spans(plan):
        verdict = spent(answer, findings.draws, many).verdict
        amounts = (math.fsum(column[q] for q in many) for column in columns)
        rows.append((name, *map(usd, amounts), "" if verdict == NO_BUDGET else verdict))
    of_case = ("Spend at {}", "its contingency", "left")
    heads = ("Budget", *(head.format(z) for z in ("p50", "p90") for head in of_case))
    drawn = table(_budget_title(answer), ("Quarter", *map(number, heads), "Verdict"), rows)
    return _section(drawn, *_months_of(plan), *_more_than_p90(findings))


def _more_than_p90(findings: Findings) -> Iterator[Text]:
    """The quarters whose spend at p90, with its contingency, is not enough in nine of ten cases."""
    plan, more = findings.answer.plan, list[Text]()
    for q, quarter in enumerate(plan.quarters):
        money = spent(findings.answer, findings.draws, [q])
        if money.together_p90_usd > money.usd["p90"] + money.reserve_usd["p90"]:
            more.append(words(f"{{}} in {quarter}", usd(money.together_p90_usd)))
    if more:
        yield words("Nine of ten cases take more than p90 with its contingency: up to {}.", joined(", ", more))


def _budget_title(answer: Answer) -> str:
    n_stated = sum(verdict != NO_BUDGET for verdict in answer.verdicts)
    if not n_stated:
        return "Money by quarter: no budget is stated"
    if not answer.over:
        return "The budget holds in every quarter, at p90 too"
    quarters = [*answer.over]
    if len(quarters) == 1:
        return f"{quarters[0]} is over its budget"
    return f"{len(quarters)} of {n_stated} quarters are over their budget"


def _verdict(answer: Answer) -> Text:
    """The budget in a sentence: that it holds, or the quarter that exceeds it most."""
    title = _budget_title(answer)
    if not answer.over:
        return f"{title}."
    left = dict(zip(map(str, answer.plan.quarters), by_quarter_in_whole(answer, CASE["p90"]).left, strict=True))
    most = min(answer.over, key=lambda quarter: left[quarter])
    which = f", {most} most" if len(answer.over) > 1 else ""
    return words(f"{title}{which}, by {{}} at p90 with contingency.", usd(-left[most]))


def _levers(findings: Findings, levers: Sequence[Lever]) -> Section:
    """Of policy, class and precision the change that saves most, by itself; and which of them make the budget hold."""
    rows = list[tuple[Text, ...]]()
    for name in KINDS:
        of_kind: list[Lever | None] = [lever for lever in levers if lever.change.kind == name]
        none = [None] if name != PLACES else []
        rows += [_lever_row(findings.answer.plan, name, lever) for lever in of_kind or none]
    saves = f"What would cost less: {len(levers)} levers, each by itself" if levers else "Nothing costs less"
    is_large = bool(levers) and len(findings.answer.plan.services) > FEW
    lines = (*_closing(findings), *([_OF_MANY] if is_large else []), *_at_hosts(findings))
    return _section(table(saves, _LEVER_HEADS, rows if levers else []), *lines)


_OF_MANY = (
    f"Of more than {FEW} services a lever begins with this plan's machines: "
    "a plan that is run with it may save more or less."
)


def _at_hosts(findings: Findings) -> Iterator[Text]:
    """The services whose tokens cost a part of their machines at a host of their model; the largest difference."""
    answer = findings.answer
    own = {entry.service: answer.part_usd(entry.service, CASE["p50"]) for entry in findings.hosted}
    less = [entry for entry in findings.hosted if entry.usd < MOST_AT_HOSTS * own[entry.service]]
    if less:
        most = max(less, key=lambda entry: own[entry.service] - entry.usd)
        others = f"; under half for {count(len(less) - 1, 'other service')} too" if less[1:] else ""
        name = answer.plan.services[most.service].id
        host = f"a host of its model ({first_named(most.hosts)}), to which its data goes"
        pattern = f"At {host}, {name} costs {{}} at p50, its machines {{}}{others}."
        yield words(pattern, usd(most.usd), usd(own[most.service]))


_LEVER_HEADS: Heads = (
    "Lever",
    "Change",
    "Gives up",
    number("To approve"),
    number("Saves"),
    number("At p50"),
    "Still over",
)


def _lever_row(plan: Plan, name: str, lever: Lever | None) -> tuple[Text, ...]:
    if lever is None:
        return (name, "none saves", "", NONE, NONE, NONE, "")
    gives_up: Text = lever.change.gives_up
    if lever.moves_usd:
        gives_up = words(f"{gives_up}; its moves, {{}}, are taken off", usd(lever.moves_usd))
    if binds := _lever_binds(lever):
        gives_up = words("{}; it {}", gives_up, binds)
    if _is_dearer(lever):
        gives_up = words("{}; saves {}", gives_up, _saved(lever))
    over = _named_quarters(plan, lever.over) or "none"
    now_usd = lever.asked_usd + lever.saves_usd + lever.moves_usd
    (saves,), (moves,), (asked,) = (in_whole(plan, (part,)) for part in (lever.saves_usd, lever.moves_usd, now_usd))
    money = asked - moves - saves, saves, lever.saves_p50_usd
    return (name, lever.change.name, gives_up, *map(usd, money), over)


def _is_dearer(lever: Lever) -> bool:
    """True where what is to be approved, or spent at p50, is more with it."""
    return round(lever.saves_usd) < 0 or round(lever.saves_p50_usd) < 0


def _saved(saving: Lever | Closing | Decision) -> Text:
    """The money that levers or a move save of what is to be approved and at p50; what they cost more instead."""
    asked, p50 = saving.saves_usd or 0.0, saving.saves_p50_usd or 0.0
    if round(asked) < 0:
        return words("{} at p50, costs {} more to approve", usd(p50), usd(-asked))
    if round(p50) < 0:
        return words("{} to approve, costs {} more at p50", usd(asked), usd(-p50))
    return words("{} to approve and {} at p50", usd(asked), usd(p50))


def _lever_binds(lever: Lever) -> Text:
    """The amount that another class binds; "" of other levers, whose orders are of the plan's class."""
    if not lever.bound_usd or lever.change.kind != CLASS:
        return ""
    after = words(" ({} after the plan)", usd(lever.bound_after_usd)) if round(lever.bound_after_usd) else ""
    return words("binds {}{}", usd(lever.bound_usd), after)


def _named_quarters(plan: Plan, names: Sequence[str]) -> str:
    return _quarters_in_short(plan, [q for q, quarter in enumerate(plan.quarters) if str(quarter) in names])


def _closing(findings: Findings) -> Iterator[Text]:
    """The levers that make the budget hold together, or those that save most."""
    closing = findings.closing
    if closing is None:
        return
    best = best_of_kinds(findings.cheaper)
    kinds, are_many = _kinds(closing.levers, best), len(closing.levers) > 1
    if closing.by_itself:
        by_itself = f"{_kinds(closing.by_itself, best)} by itself"
        subject = f"Each of {by_itself}" if closing.by_itself[1:] else f"The lever {by_itself}"
        yield f"{subject} brings every quarter within its budget."
    elif not closing.over:
        yield f"With the {kinds} lever{'s together' * are_many} every quarter is within its budget."
    if not closing.over:
        return
    over = _named_quarters(findings.answer.plan, closing.over)
    most = f"{kinds} save most together" if are_many else f"{kinds} by itself saves most"
    pattern = f"No set of these levers makes the budget hold: {most}, {{}}; over even then: {over}."
    yield words(pattern, _saved(closing))


def _waiting(findings: Findings) -> Iterator[Section]:
    """The services that are cut where a budget or a quota is kept, or until an order is there: what cuts most, by what
    the machines of the part that is cut cost, in order of time."""
    answer, plan = findings.answer, findings.answer.plan

    def limit(row: Served) -> tuple[int, str, str]:
        machines = short_name(row.instance or "")
        there = f"what is there of {machines} until {row.until}"
        named = {BUDGET: "the budget", MACHINES: there, QUOTA: f"the quota of {machines}"}
        return [*named].index(row.limit), str(plan.quarters[row.quarter]), named[row.limit]

    def cut_usd(row: Served) -> float:
        months = answer.services["service_month_usd"]
        return (1 - row.share) * float(months[row.service, row.quarter, answer.case])

    cuts = dict[tuple[str, tuple[tuple[int, float], ...]], list[list[Served]]]()  # of limits that cut alike
    for (_, _, subject), group in groupby(sorted(findings.served, key=limit), limit):
        rows = [*group]
        cut = tuple((row.service, row.share) for row in rows if row.share < 1 - A_BIT)
        cuts.setdefault((subject, cut), []).append(rows)
    lines = list[tuple[float, int, Text]]()
    for (subject, _), alike in cuts.items():
        parts: list[Text] = []
        for row in (row for row in alike[0] if A_BIT < row.share < 1 - A_BIT):
            step = words(" (the next {} cost {})", cell(1 / STEPS, PERCENT), usd(row.next_usd)) if row.next_usd else ""
            parts.append(words("{} of {}{}", cell(row.share, PERCENT), plan.services[row.service].id, step))
        if out := [plan.services[row.service].id for row in alike[0] if row.share <= A_BIT]:
            parts.append(f"nothing of {first_named(out)}")
        quarters = _quarters_in_short(plan, [rows[0].quarter for rows in alike])
        usd_cut = math.fsum(cut_usd(row) for rows in alike for row in rows)
        served_then = words(f"In {quarters} {subject} serves {{}}.", joined(", ", parts))
        lines.append((usd_cut, alike[0][0].quarter, served_then))
    elsewhere = [*_elsewhere(findings)]
    if lines or elsewhere:
        worst = sorted(lines, key=lambda cut: -cut[0])[:MOST_CUT]
        in_time = [line for _, _, line in sorted(worst, key=lambda cut: cut[1])]
        n = len(lines) - MOST_CUT
        more = [f"{count(n, 'further limit')} in the JSON, with smaller cuts."] if n > 0 else []
        every = (*in_time, *more, *_kept(findings), *elsewhere, *_keeping(findings))
        yield Section("If the limits are kept: who is cut, by priority", every)


def _kept(findings: Findings) -> Iterator[str]:
    """That a budget or a quota keeps headroom and spare machines; and where services of lower priority than one that is
    cut are served on them."""
    limits, priorities = {row.limit for row in findings.served}, findings.answer.plan.priorities
    if limits <= {MACHINES}:
        return
    before = any(
        other.share < 1 - A_BIT < row.share and priorities[other.service] < priorities[row.service]
        for row, other in product((row for row in findings.served if row.limit != MACHINES), repeat=2)
        if (row.limit, row.quarter, row.instance) == (other.limit, other.quarter, other.instance)
    )
    until = ", until a day they serve" if MACHINES in limits else ""
    place = "; a service that has its place on those is not cut, whatever its priority" if before else ""
    yield f"Under a budget or a quota headroom and spare machines are kept{until}{place}."


def _quarters_in_short(plan: Plan, many: Sequence[int]) -> str:
    """Quarters by position, three and more that follow each other by their ends: 2027-Q1 to 2027-Q4."""
    names = [str(plan.quarters[q]) for q in many]
    if len(many) > 2 and many[-1] - many[0] == len(many) - 1:
        return f"{names[0]} to {names[-1]}"
    return listed(names) if len(names) <= NAMED else first_named(names)


def _elsewhere(findings: Findings) -> Iterator[Text]:
    """The services that machines of other types serve wholly until their own are there."""
    services = findings.answer.plan.services
    for (first, last), gaps in groupby(sorted(findings.on_others, key=_days), _days):
        parts = [f"{services[gap.service].id} ({_on_others(gap)})" for gap in gaps if not gap.share]
        if parts:
            yield f"Machines of other types help {days_text(first, last)}: {', '.join(parts)}."


def _keeping(findings: Findings) -> Iterator[Text]:
    """The services of lower priority that keep machines that are owned or committed and could serve one that waits."""
    answer, keep, wait = findings.answer, dict[str, None](), dict[str, None]()
    plan, counts = answer.plan, answer.supply_counts
    there = (counts["owned"] + counts["committed"])[..., answer.case]
    for gap in findings.unserved:
        same_days = (other for other in findings.unserved if other.first <= gap.last and gap.first <= other.last)
        waits_itself = {other.service for other in same_days if other.share >= 1 - A_BIT}
        for t, machine in enumerate(answer.types):
            can = answer.hardware.on((gap.service, gap.quarter), machine.instance)
            if machine.instance == gap.instance or not there[t, gap.quarter] or can is None:
                continue
            for s in answer.on(machine.instance, gap.quarter):
                if plan.priorities[s] > plan.priorities[gap.service] and s not in waits_itself:
                    keep[plan.services[s].id] = wait[plan.services[gap.service].id] = None
    if keep:
        they = f"{first_named([*keep])} keep{'s' if len(keep) == 1 else ''}"
        yield (
            f"{they} machines that are there and could serve {first_named([*wait])}: priority is among services of one "
            "type, and takes only what is idle of others."
        )


# The second page


def _supply(answer: Answer) -> Section:
    """By machine what is needed, there, bought and in use in each quarter."""
    counts = {name: numbers[..., answer.case] for name, numbers in answer.supply_counts.items()}
    there, bought, needed = counts["owned"] + counts["committed"], counts["gap"], counts["needed"]
    idle = numpy.minimum(there, counts["idle"])
    mean, peak = answer.in_use
    some = [t for t in range(len(answer.types)) if there[t].any() or bought[t].any() or needed[t].any()]
    largest = sorted(some, key=lambda t: -(needed[t] * answer.types[t].gpu_count).sum())
    rows: Rows = []
    for t in sorted(largest[:MOST_MACHINES]):
        lines = {"needed": needed[t], "owned or committed": there[t], "of it idle": idle[t], "to buy": bought[t]}
        lines |= {"lent to other types": counts["lent"][t], "lent by other types": counts["borrowed"][t]}
        if (needed[t] == bought[t]).all():
            del lines["needed"]
        shown = [(name, [cell(count, WHOLE) for count in of_line]) for name, of_line in lines.items() if of_line.any()]
        pairs = [(cell(100 * mean[t, q], WHOLE), cell(peak[t, q], PERCENT)) for q in range(len(answer.plan.quarters))]
        shown.append(("in use", [words("{}–{}", *pair) if pair[0] else NONE for pair in pairs]))
        name = machine_name(answer, answer.types[t].instance, range(len(answer.plan.quarters)))
        rows += [(name if i == 0 else "", line, *cells) for i, (line, cells) in enumerate(shown)]
    more = len(largest) - MOST_MACHINES
    smaller = [f"{count(more, 'smaller type')} of machine in the workbook."] if more > 0 else []
    title = f"Machines by quarter at {answer.plan.policy.plan_at}; in use: mean to peak at p50"
    heads: Heads = ("Machine", "Count", *map(number, map(str, answer.plan.quarters)))
    told = *_utilization(answer), *_regions(answer), *smaller, *_within_quarters(answer)
    return _section(table(title, heads, rows), *told)


def _regions(answer: Answer) -> Iterator[str]:
    """The region of each type of machine that is bought or committed, and that they are several, where they are."""
    regions = answer.regions
    if regions:
        parts = (f"{region} ({listed([*map(short_name, names)])})" for region, names in regions.items())
        yield f"Regions: {'; '.join(parts)}."
    if len(regions) > 1:
        n_providers = len({region.partition(" ")[0] for region in regions})
        of_clouds = f" of {n_providers} providers" if n_providers > 1 else ""
        yield (
            f"The machines are in {len(regions)} regions{of_clouds}, and no traffic between them is counted; "
            "supply.allowed.region holds a plan to one region or area."
        )


def _within_quarters(answer: Answer) -> Iterator[Text]:
    """Owned and committed machines that begin or end within a quarter of the plan."""
    plan, day = answer.plan, datetime.timedelta(days=1)
    parts: tuple[Committed | Owned, ...] = (*plan.supply.owned, *plan.supply.committed)
    for part in parts:
        first, after = term(part)
        days = [f"from {first}"] * (plan.position(first) % 1 > 0) + [f"until {after - day}"] * (
            plan.position(after) % 1 > 0
        )
        if days:
            yield f"{part.id} serves {' and '.join(days)}; of a quarter the table has the most of any day."


def _utilization(answer: Answer) -> Iterator[Text]:
    """The utilization of all machines, the factors that it is the product of, and a way to raise the smallest."""
    parts, plan = answer.in_use_parts, answer.plan
    reasons = {
        DAY: "the mean load over its peak",
        BAND: f"p50 over {plan.policy.plan_at}",
        RESERVE: "headroom, chance and what may be lost",
        SPARE: "whole and spare machines",
    }
    factors = joined(" x ", [words(f"{{}} ({reasons[name]})", cell(share, PERCENT)) for name, share in parts.items()])
    mean, peak = (cell(share, PERCENT) for share in answer.in_use_of_all)
    yield words(
        "Of the places on all machines {} are in use at the peak at p50, and on average {} = {}.", peak, mean, factors
    )
    by_day = "a batch of the night" if plan.rents_by_hour else "a profile for each service, which rents by the hour"
    levers = {
        DAY: by_day,
        BAND: "a narrower band of the demand, or plan_at: p50",
        RESERVE: "survive, hot_share or headroom_fraction",
        SPARE: "smaller machines, or services that share them",
    }
    yield f"What raises it most: {levers[min(parts, key=parts.__getitem__)]}."


def _hosted(findings: Findings) -> Iterator[Text]:
    """The hosts behind the column of the table, and its sum."""
    if findings.hosted:
        hosts = first_named([*dict.fromkeys(host for entry in findings.hosted for host in entry.hosts)])
        oldest = min(entry.read_on for entry in findings.hosted)
        on_machines = (findings.answer.part_usd(entry.service, CASE["p50"]) for entry in findings.hosted)
        amounts = math.fsum(entry.usd for entry in findings.hosted), math.fsum(on_machines)
        sums = f"{count(len(findings.hosted), 'service')}: {{}}, where the machines are {{}}"
        read = f"the tokens at p50 at the cheapest host of the model ({hosts}), prices read from {oldest} on"
        gives_up = "Their data then goes to the host, which chooses the precision and runs no weights of your own"
        yield words(f"Hosted: {read}; {sums}. {gives_up}.", *map(usd, amounts))


def _since(findings: Findings) -> Section:
    """The changes since the last plan, by factor as a picture and by service as a table."""
    title, last = "Since the last plan", findings.last
    if last is None or findings.bridge is None:
        return Section(title, ("No last plan was named (--since LAST.json, or plan.since), so nothing is compared.",))
    unchanged = "" if findings.bridge.rows else " Nothing that it rests on changed."
    line = f"Since the plan of {last.plan.as_of.isoformat()}, all quarters: what is to be approved.{unchanged}"
    lines = (line, *_calendar_words(findings.bridge.calendar), *_anew_words(last.plan, findings.answer.plan))
    table_of_most = _changed(findings.answer.plan, findings.bridge, MOST_LISTED)
    return Section(title, lines, table_of_most, waterfall(findings))


def _calendar_words(calendar: Calendar) -> Iterator[str]:
    """The parts of the calendar's factor, none of which has a sum of its own."""
    parts = {
        "without {}": calendar.left_out,
        "with {}": calendar.added,
        "by when {} ended": calendar.ended,
        "demand as it was planned of {}": calendar.other_demand,
        "what is ordered by now ({})": calendar.ordered,
    }
    if parts_worded := [pattern.format(first_named(names)) for pattern, names in parts.items() if names]:
        yield f"Calendar and orders are all of this together: {', '.join(parts_worded)}."


def _anew_words(last: Plan, plan: Plan) -> Iterator[str]:
    """That a yearly change of prices counts from another quarter."""
    if plan.prices.expected_change_per_year.p50 and last.today != plan.today:
        yield f"Price: the change a year counts from {plan.today} on, where it counted from {last.today} on."


def _changed(plan: Plan, bridge: Bridge, most: int | None = None) -> Table:
    """By factor and service, what changes most first, and all others together."""
    whole = bridge.in_whole(plan.head.fx_rate)
    ranked = sorted(whole.rows, key=lambda row: -max(map(abs, row[1:])))
    last, now = ([usd(getattr(steps, end)) for steps in (whole.asked, whole.p50)] for end in ("last_usd", "usd"))
    parts = [(key, (asked_usd, p50_usd)) for key, p50_usd, asked_usd in ranked]
    rows: Rows = [("last plan", "", *last)]
    rows += [(factor, service or "all together", *map(usd, amounts)) for (factor, service), amounts in parts[:most]]
    if others := [amounts for _, amounts in parts[len(rows) - 1 :]]:
        rows.append((f"{len(others)} others", "", *(usd(math.fsum(column)) for column in zip(*others, strict=True))))
    rows.append(("this plan", "", *now))
    heads: Heads = ("Factor", "Service", number("$ to approve"), number("$ at p50"))
    return table("What changed since the last plan", heads, rows)


def _reasons(findings: Findings) -> Iterator[Section]:
    """What was spent, the demand at which a decision is another, what moves the money, and later decisions; the first
    rows of each."""
    tables = (_spent(findings), _break_even(findings), _swings(findings), _forecast(findings))
    for drawn in tables:
        if drawn.rows:
            more = len(drawn.rows) - MOST_LISTED
            lines = [f"{count(more, 'further row')} in the JSON."] if more > 0 else []
            lines += [*not_charged(findings)] if drawn is tables[0] else []
            yield _section(drawn._replace(rows=drawn.rows[:MOST_LISTED]), *lines)


def _spent(findings: Findings) -> Table:
    """The last plan at p50, and at what was ordered, against what was really spent, where that is given; what differs
    most first."""
    last, names = findings.last, ("planned", "approved", "measured")
    parts = sorted(last.variance if last else (), key=lambda part: -abs(part["measured"] - part["planned"]))
    subjects = [(part["quarter"], part["service"] or UNTAGGED) for part in parts]
    columns = [in_whole(findings.answer.plan, [part[name] for part in parts]) for name in names]
    amounts = [*zip(*columns, strict=True)]
    if parts:
        subjects, amounts = [("all", "all"), *subjects], [tuple(map(math.fsum, columns)), *amounts]
    rows = [
        (*subject, *map(usd, (planned, approved, spent, spent - planned)))
        for subject, (planned, approved, spent) in zip(subjects, amounts, strict=True)
    ]
    ordered = f"Ordered for {last.plan.policy.plan_at if last else ''}"
    heads: Heads = ("Quarter", "Service", *map(number, ("Planned at p50", ordered, "Spent", "More than at p50")))
    return table("What the last plan said, and what was spent", heads, rows)


def _swings(findings: Findings) -> Table:
    heads: Heads = ("One alone", *map(number, ("At its p10", "All at p50", "At its p90", "Spread")))
    answer = findings.answer
    expected, rows = usd(asked_in_whole(answer, CASE["p50"])[0]), list[tuple[Text, ...]]()
    for name, *ends in swings(answer):
        low, high = (in_whole(answer.plan, (end,))[0] for end in ends)
        rows.append((name, usd(low), expected, usd(high), usd(high - low)))
    return table("What moves the money most: spend of all quarters", heads, rows)


def _at_once(answer: Answer, decision: Decision) -> tuple[float, float]:
    """The requests at once of a decision's services for which it is planned, and those at p50."""
    quarter, at_once = answer.plan.quarter_of(decision.needed_from), answer.services["at_once"]
    cases = answer.case, CASE["p50"]
    planned, middle = (sum(float(at_once[s, quarter, case]) for s in served(answer, decision)) for case in cases)
    return planned, middle


def _needed(answer: Answer, decision: Decision) -> Text:
    """The demand from which on all that a decision binds is needed, beside what is expected."""
    if not decision.binds_usd or decision.break_even is None or decision.break_even.fewer_below is None:
        return ""
    planned, middle = _at_once(answer, decision)
    if not planned:  # kept for a quarter in which nothing needs it
        return ""
    shares = cell(decision.break_even.fewer_below, PERCENT), cell(middle / planned, PERCENT)
    return words("with less than {} of the demand planned for, fewer do; p50 is {} of it", *shares)


def _break_even(findings: Findings) -> Table:
    """Of each decision that follows from demand, and of what earlier plans ordered, the demand at which it would be
    another, beside what is expected."""
    answer, rows = findings.answer, list[tuple[Text, ...]]()
    for decision in sorted((*findings.kept, *findings.decisions), key=lambda decision: decision.order_by):
        quarter = answer.plan.quarter_of(decision.needed_from)
        if decision.break_even is None or quarter is None:
            continue
        planned, middle = _at_once(answer, decision)
        shares = (
            middle / planned if planned else None,
            decision.break_even.fewer_below,
            decision.break_even.more_above,
        )
        which = (decision.order_by.isoformat(), _decided(decision), str(answer.plan.quarters[quarter]))
        rows.append((*which, cell(planned, WHOLE), *(cell(share, PERCENT) for share in shares)))
    counts = ("Planned for, at once", "At p50, of it", "Fewer machines do, up to", "More are needed, from")
    title = "What would change our mind: demand, as a share of what is planned for"
    return table(title, ("By", "What", "In", *map(number, counts)), rows)


def _forecast(findings: Findings) -> Table:
    """The decisions of later plans, for the order of magnitude."""
    answer = findings.answer
    rows = [
        (
            decision.order_by.isoformat(),
            phrase(", ", (_placed(answer, decision), _worth(decision), *_other_ways(answer, decision))),
            _for_whom(answer, decision),
            usd(decision.in_plan_usd),
        )
        for decision in findings.decisions
        if kind(answer.plan, decision) != NOW
    ]
    heads: Heads = ("By", "Forecast", "For", number("In the plan"))
    return table("Forecast: the next plan decides these anew", heads, rows)


# The tables that the workbook alone has


def _book(findings: Findings) -> dict[str, Table]:
    checks = [(check.statement, HOLDS if check.holds else FAILS, "; ".join(check.against)) for check in findings.checks]
    named = ((*region.partition(" "), name) for region, names in findings.answer.regions.items() for name in names)
    regions = [(provider, name, region) for provider, _, region, name in named]
    changed = {} if findings.bridge is None else {"changed": _changed(findings.answer.plan, findings.bridge)}
    levers = [_lever_row(findings.answer.plan, lever.change.kind, lever) for lever in findings.cheaper]
    tables = {
        **changed,
        "levers": table("What would cost less, each by itself", _LEVER_HEADS, levers),
        "swings": _swings(findings),
        "break even": _break_even(findings),
        "owners": owners_table(findings.answer),
        "gpus": _gpus(findings),
        "regions": table("Regions of what is bought or committed", ("Provider", "Machine", "Region"), regions),
        "checks": table("Checks", ("Check", "Holds", "What speaks against it"), checks),
    }
    return {name: drawn for name, drawn in tables.items() if drawn.rows}


def _gpus(findings: Findings) -> Table:
    """GPUs by quarter: those needed, by kind and together, and those that are there without buying."""
    drawn = machines(findings.answer)
    rows: Rows = []
    for q, quarter in enumerate(drawn.quarters):
        together = quantiles(findings.draws.n_gpus[:, q])
        counts = (*(values[q] for _, values in drawn.kinds), *(together[name] for name in QUANTILES), drawn.supply[q])
        rows.append((quarter, *(cell(count, WHOLE) for count in counts)))
    kinds = (f"{name}, p50" for name, _ in drawn.kinds)
    heads = (*kinds, "p10 of all together", "p50", "p90", "Owned and committed")
    return table("GPUs needed by quarter", ("Quarter", *map(number, heads)), rows)


# A message


def _brief(findings: Findings, levers: Sequence[Lever]) -> Brief:
    answer, plan = findings.answer, findings.answer.plan
    asked, p50, p90 = sum(answer.asked_usd), *(asked_in_whole(answer, CASE[z])[0] for z in ("p50", "p90"))
    over, is_stated = [*answer.over], any(verdict != NO_BUDGET for verdict in answer.verdicts)
    now, binds = findings.sign_now_usd
    signing = [*([words("{}, binding {}", usd(now), usd(binds))] if now else []), *_offered(findings)]
    first = [
        words(f"{{}}, ask by {decision.order_by.isoformat()}{_late(decision)}", _placed(answer, decision))
        for decision in _in_urgency(findings.now)[:2]
    ]
    saved = ((lever, _saved(lever) if _is_dearer(lever) else usd(lever.saves_usd)) for lever in levers)
    cheaper = [
        phrase(" and ", (words("{} ({}) saves {}", lever.change.kind, lever.change.name, saves), _lever_binds(lever)))
        for lever, saves in saved
    ]
    points: list[tuple[str, Text]] = [
        ("Budget", joined(" ", [_verdict(answer), *_closing(findings)])),
        ("Sign now", words("{}.", joined("; ", signing)) if signing else ""),
        ("First", words("{}.", joined("; ", first)) if first else ""),
        ("To pay less", words("{}.", joined("; ", cheaper)) if cheaper else ""),
        ("Expected", words("{} at p50; {}.", usd(p50), _in_nine_of_ten(findings))),
        ("Before signing", " ".join(warnings(findings))),
    ]
    classes = listed([purchase for purchase, usd in answer.of_classes.items() if usd.any()])
    paid = list(paid_prices(answer, findings.decisions))
    days = sorted(filter(None, {price.price_as_of for price in paid}))
    lists = listed(list(dict.fromkeys(filter(None, (price_list(price.source, price.purchase) for price in paid)))))
    return Brief(
        _quarters_of(plan),
        usd(asked),
        usd(p50),
        usd(p90),
        short_money(asked),
        short_money(p50),
        f"over budget in {', '.join(over)}" if over else "within budget" if is_stated else "no budget stated",
        tuple((label, text) for label, text in points if text),
        f"{classes} prices{f', the oldest of {days[0]}' if days else ''}{f', from {lists}' if lists else ''}",
    )


def _late(decision: Decision) -> str:
    """That a decision is late, and the day on which its machines are there."""
    there = f", there on {decision.there_on}" if decision.there_on else ""
    return f" (late{there})" if decision.late else ""


# Assumptions and sources


def _without_quota(answer: Answer) -> list[str]:
    """The types of machine that are bought and for which no quota is stated, in a plan that states some."""
    if not answer.plan.supply.quota:
        return []
    bought = (machine.instance for t, machine in enumerate(answer.types) if answer.to_buy[t].any())
    return [*dict.fromkeys(short_name(machine_in(name)) for name in bought if quota_of(answer.plan, name) is None)]


def _assumptions(findings: Findings) -> Iterator[Text]:
    """The policy, prices and hours that the numbers rest on, and how they were worked out."""
    answer, plan, policy = findings.answer, findings.answer.plan, findings.answer.plan.policy
    how = "as a mix" if policy.buy == MIX else policy.buy
    kept, days = policy.release_after_quarters, count(policy.approval_days, "day")
    answered = f"{days} from Ask by to the answer" if policy.approval_days else "Ask by is the day of the answer"
    back = f"after {count(kept, 'quarter')} of lower need" if kept else "at once"
    yield f"Capacity is for {policy.plan_at} of each service's demand, and bought {how} where it is missing."
    yield words(
        f"Headroom {{}}; what may be lost: {{}}; {answered}; what is no longer needed is given back {back}.",
        cell(policy.headroom_fraction, PERCENT),
        _survives(plan),
    )
    if profiled := [f"{service.id} in {service.time_zone}" for service in plan.services if service.profile is not None]:
        yield f"The load follows the hours of {first_named(profiled)}; a week stands for the quarter."
    if plan.rents_by_hour:
        held = "all of the peak held on demand" if plan.base else "the peak held in all hours"
        saved_usd = float(answer.saved_by_hour_usd.sum())
        less = words(f": {{}} less than with {held}", usd(saved_usd)) if round(saved_usd) > 0 else ""
        hours = f"Machines are rented for the hours that need them, each from {plan.start_minutes:g} minutes before"
        yield words(f"{hours}{{}}.", less)
    if policy.buy == MIX:
        yield "The mix buys for a term the machines whose hours on demand would cost more, and the rest on demand."
    elif n_quarters := QUARTERS_OF_TERM.get(policy.buy):
        of_term = f"{count(n_quarters, 'quarter')}, used or not, at the price when they are signed"
        yield f"Orders ({policy.buy}) are paid for {of_term}."
    change = plan.prices.expected_change_per_year
    yield words(
        "Prices{} are those read until now, less {}, and change by {} a year ({} to {}).",
        f" of the region {plan.region}" if plan.region else "",
        cell(plan.prices.discount_fraction, EXACT_PERCENT),
        *(cell(fraction, EXACT_PERCENT) for fraction in (change.p50, change.p10, change.p90)),
    )
    if not_stated := _without_quota(answer):
        yield f"No quota is stated for {first_named(not_stated)}: as many can be rented as are ordered."
    growths = [(service.id, service.growth) for service in plan.services if service.growth and service.growth.is_band]
    for bands, how in (("renew", "is drawn anew each quarter"), ("persist", "is the same in all quarters")):
        if ids := [service for service, growth in growths if growth.bands == bands]:
            yield f"Within its band the growth of {first_named(ids)} {how}."
    covers = (decision.cover for decision in findings.decisions if decision.cover)
    bought = {decision.purchase for decision in findings.decisions} | {cover.purchase for cover in covers}
    if CAPACITY_BLOCK in bought:
        judged = "" if CAPACITY_BLOCK in plan.supply.lead_time_days else ", an assumption: no lead time is stated"
        yield f"A capacity block is there after {plan.lead_days(CAPACITY_BLOCK):g} days{judged}."
    without = {*QUARTERS_OF_TERM} - {CAPACITY_BLOCK, *plan.supply.lead_time_days}
    if unstated := [way for way in QUARTERS_OF_TERM if way in bought & without]:
        names = listed(unstated)
        yield f"No lead time of {names} is stated (supply.lead_time_days): there on the day of approval, an assumption."
        yield (
            f"{capital(sentences.BLOCK_ENDS)}. Services go over on that day: the plan counts no day on both, and no "
            "cost of that move."
        )
    yield words(
        "In nine of ten cases: of {} joint draws of demand and prices, correlation {}, seed {}.",
        cell(findings.draws.n, WHOLE),
        cell(policy.correlation, FACTOR),
        str(findings.draws.seed),
    )
    if findings.together_p90_usd > float(answer.money["spend_usd"][:, CASE["p90"]].sum()):
        yield "That is more than with all demand at p90: more often than that, some service is above its own."
    yield (
        f"The money of a decision is at {policy.plan_at}, until the plan's end. Orders are in the money; what may be "
        "signed in place of one is not, and does not add to it."
    )
    if plan.measured:
        yield f"Times and memory are as measured where that is of the same deployment: {'; '.join(plan.measured)}."
    else:
        yield "No service was measured: times are predicted, with the bands that sheetgen recommend states."
    if findings.to_measure:
        services = [
            words(
                f"{plan.services[measured.service].id} ({{}}) {{}}", _sure_in(plan, measured), _day_of(answer, measured)
            )
            for measured in findings.to_measure[:NAMED]
        ]
        n = len(findings.to_measure) - NAMED
        more = f"; {n} more in the JSON" if n > 0 else ""
        yield words(f"Measure first, by the rule of sheetgen recommend: {{}}{more}.", joined("; ", services))
    yield from unused_lines(plan.unused)


def _survives(plan: Plan) -> str:
    """The losses that services survive at full load, and where their replicas are not up at once after one."""
    services = dict[tuple[str, str], list[str]]()
    for s, service in enumerate(plan.services):
        redundancy = plan.redundancy(s)
        spare = f" (with {count(redundancy.replicas, 'spare replica')})" if redundancy.replicas else ""
        loss = {"none": "nothing", "zone": f"a zone of {redundancy.zones}"}.get(redundancy.survive)
        starts = ""
        if SURVIVE.index(redundancy.survive) > SURVIVE.index("replica") and redundancy.hot_share < 1:
            starts = f" ({'some of its' if redundancy.hot_share else 'its'} replicas start anew elsewhere then)"
        services.setdefault((f"{loss or f'a {redundancy.survive}'}{spare}", starts), []).append(service.id)
    if len(services) == 1:
        return "".join(next(iter(services)))
    return ", ".join(f"{loss} of {first_named(ids)}{starts}" for (loss, starts), ids in services.items())


def _sources(findings: Findings) -> tuple[Source, ...]:
    """The sources of the models that serve the plan, and of the prices that it pays or binds."""
    answer, plan = findings.answer, findings.answer.plan
    models, engines = dict[str, SheetModel](), dict[str, Engine]()
    for s, q in sorted(answer.hardware.placed):
        question = plan.question_in(plan.services[s], plan.quarters[q])
        models |= {served.model.id: served for served in question.models}
        engines[question.engine.name] = question.engine
    return sources_of(models.values(), paid_prices(answer, findings.decisions), engines.values())

"""Money of random plans, reckoned again from the rules alone: machine by machine and order by order, in plain loops.

Replicas and where they run are taken from the plan; what is needed, there, ordered, late, covered, paid and bound is
worked out here, and nothing of sheetgen.plan does it.
"""

from __future__ import annotations

import bisect
import datetime
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from amounts import IN_LONG, amount
from option_values import Options

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.decisions import ordered_before_usd, orders
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.tables import OF_SERVICE, before_moves
from sheetgen.plan.worked_plan import Answer

CATALOG = Catalog()
SMALL, LARGE = "azure/Standard_NC40ads_H100_v5", "azure/Standard_NC80adis_H100_v5"  # one H100 NVL, and two
GPUS = {f"{name}{way}": n for name, n in ((SMALL, 1), (LARGE, 2)) for way in ("", " (on-demand)")}
YEARS = {"reserved-1yr": 1, "reserved-3yr": 3}
N_IN_ORDER, SELDOM = 50, (55, 66, 70, 72, 85)  # plans of the gate: the first, and of the next those of seldom kinds
MOVING = (10, 19, 24, 31, 59)  # plans of the gate in which services move within a quarter
HOURS = 730  # of a month, all of which are paid of what is reserved


def random_plan(dice: random.Random, classes: random.Random) -> dict[str, Any]:
    """A plan of services that come, grow, shrink and go, on machines that are there, ordered, late, or in a term; some
    in a class of their own."""
    quarters = dice.randint(2, 8)
    year = [f"{2027 + q // 4}-Q{q % 4 + 1}" for q in range(quarters)]

    def service(name: str) -> dict[str, Any]:
        steps = {
            quarter: round(dice.uniform(0.2, 2.5), 2)
            for quarter in dice.sample(year[1:], dice.randint(0, quarters - 1))
        }
        low = dice.choice((dice.randint(5, 60), dice.randint(300, 2000)))
        stated: Options = {
            "id": name,
            "demand": {"at_once": {"p10": low, "p50": low + low // 2, "p90": 3 * low}},
            "model": dice.choice(["8b", "gpt-oss-20b", "qwen3-32b"]),
            "growth": {"steps": steps},
            "floor_replicas": dice.randint(1, 4),
        }
        if dice.random() < 0.3:
            stated["launch"] = dice.choice(year)
        elif dice.random() < 0.3 and not steps:
            stated["retire"] = dice.choice(year[1:])
        return stated

    buy = dice.choice(["on-demand", "reserved-1yr", "reserved-3yr"])
    supply: dict[str, Any] = {"allowed": {"instances": dice.choice([[SMALL], [LARGE], [SMALL, LARGE]])}}
    if dice.random() < 0.5:
        supply["committed"] = [
            {
                "id": f"c{i}",
                "type": dice.choice(supply["allowed"]["instances"]),
                "count": dice.randint(1, 6),
                "purchase": "reserved-1yr",
                "until": f"{dice.choice((2027, 2028))}-{dice.choice(('03-31', '06-30', '08-15', '12-31'))}",
            }
            | ({"from": dice.choice(("2027-01-01", "2027-02-20"))} if dice.random() < 0.3 else {})
            | ({"usd_per_hour": dice.choice((2.5, 9.0))} if dice.random() < 0.5 else {})
            for i in range(dice.randint(1, 2))
        ]
    if dice.random() < 0.3:
        until = dice.choice(("2027-03-31", "2027-11-30", "2028-06-30"))
        supply["owned"] = [
            {"id": "o", "gpu": "h100-nvl", "count": dice.randint(1, 9), "until": until, "cost_per_quarter": 4000}
        ]
    if dice.random() < 0.5:
        supply["lead_time_days"] = {
            purchase: dice.choice((0, 10, 45.5, 120, 200)) for purchase in ("on-demand", "reserved-1yr", "reserved-3yr")
        }
    if dice.random() < 0.4:
        supply["quota"] = [
            {"type": name, "limit": dice.randint(0, 8), "request_lead_days": dice.choice((0, 20, 90, 130))}
            for name in supply["allowed"]["instances"]
        ]
    if buy == "on-demand" and dice.random() < 0.5:
        supply["ordered"] = [
            {"type": name, "count": dice.randint(1, 9), "from": dice.choice(("2026-12-31", "2027-01-15", "2027-04-20"))}
            for name in dice.sample([SMALL, LARGE], dice.randint(1, 2))
        ]
    data: dict[str, Any] = {
        "plan": {
            "start": "2027-Q1",
            "quarters": quarters,
            "as_of": dice.choice(("2026-11-26", "2026-12-20", "2027-01-31")),
        },
        "policy": {
            "buy": buy,
            "plan_at": dice.choice(("p50", "p90")),
            "release_after_quarters": dice.choice((0, 0, 1, 2)),
            "approval_days": dice.choice((0, 0, 20, 60)),
        },
        "prices": {
            "discount_fraction": dice.choice((0, 0.1)),
            "expected_change_per_year": dice.choice((-0.3, 0, 0.1)),
            "hours_per_month": dice.choice((730, 500)),
        },
        "supply": supply,
        "services": [service(name) for name in ("a", "b", "c")[: dice.randint(1, 3)]],
    }
    if buy in YEARS and classes.random() < 0.8:
        for of_another_class in classes.sample(data["services"], classes.randint(1, len(data["services"]))):
            of_another_class["buy"] = "on-demand"
    return data


@dataclass
class Reckoning:
    """One quantile of a plan: dollars by quarter, and of what is ordered in each the sum to the end of its term."""

    usd: list[float]
    bound: list[float]
    late: list[float]
    orders: dict[str, list[float]] = field(default_factory=dict)
    time: dict[Fraction, float] = field(default_factory=dict)  # by moment from today on
    # By type and moment: machines that are there and that replicas do not fill, those without any on that moment, and
    # those of an earlier order, with what it has no use for.
    idle: dict[str, dict[Fraction, float]] = field(default_factory=dict)
    lacking: dict[str, dict[Fraction, float]] = field(default_factory=dict)
    ordered: dict[str, dict[Fraction, tuple[int, int]]] = field(default_factory=dict)
    n_lent: float = 0  # machines of one class that serve another, times moments


def days_of(quarter: str) -> tuple[datetime.date, datetime.date]:
    """The first day of a quarter, and that of the next."""
    year, number = int(quarter[:4]), int(quarter[-1])
    after = datetime.date(year + number // 4, number % 4 * 3 + 1, 1)
    return datetime.date(year, 3 * number - 2, 1), after


def months_later(day: datetime.date, months: int) -> datetime.date:
    """The same day so many months later, or the last one of that month."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    after = datetime.date(year + (month + 1) // 12, (month + 1) % 12 + 1, 1) - datetime.timedelta(days=1)
    return after if after.day < day.day else after.replace(day=day.day)


def list_price(name: str, purchase: str) -> float:
    price = CATALOG.instance(name).price(purchase)
    assert price is not None
    return float(price.usd_per_hour)


def ends_of(supply: dict[str, Any], place: Callable[[datetime.date], Fraction]) -> list[Fraction]:
    """Where what is owned or committed begins and ends."""
    parts = [*supply.get("owned", ()), *supply.get("committed", ())]
    firsts = [datetime.date.fromisoformat(part["from"]) for part in parts if "from" in part]
    after = [datetime.date.fromisoformat(part["until"]) + datetime.timedelta(days=1) for part in parts]
    return [place(day) for day in (*firsts, *after)]


def machine_and_way(name: str, buy: str) -> tuple[str, str]:
    """The machine of a type, and the class in which it is bought."""
    machine, _, way = name.partition(" (")
    return machine, way.removesuffix(")") or buy


def reckoned(data: dict[str, Any], answer: Answer, z: int, cut: frozenset[Fraction] = frozenset()) -> Reckoning:
    """The rules, moment by moment: a day, or what is left of one when a term ends within it (`cut`). Whole machines
    are needed of each type for all replicas there. What is owned goes to types in the order in which services come to
    them, the last has the rest; with what is committed it serves the days on which it is there. What is still short is
    taken of what is paid and idle: of the same machine in another class, those of a term too, or what is owned of a
    larger one. The rest is bought."""
    head, policy, supply, prices = data["plan"], data["policy"], data["supply"], data["prices"]
    quarters = [f"{2027 + q // 4}-Q{q % 4 + 1}" for q in range(head["quarters"])]
    n, today = len(quarters), datetime.date.fromisoformat(head["as_of"])
    off = 1 - prices["discount_fraction"]
    until = 4 * (2027 - today.year) - (today.month - 1) // 3  # quarters from the one of today to the first
    factors = [(1 + prices["expected_change_per_year"]) ** ((until + q) / 4) for q in range(n)]

    def place(day: datetime.date) -> Fraction:
        """Quarters from the plan's first day to a day."""
        for q, quarter in enumerate(quarters):
            first, after = days_of(quarter)
            if day < after:
                return q + Fraction(max(0, (day - first).days), (after - first).days)
        return Fraction(n)

    now, back = place(today), policy["release_after_quarters"]
    lengths = [(after - first).days for first, after in map(days_of, quarters)]
    days = [q + Fraction(day, length) for q, length in enumerate(lengths) for day in range(length)]
    # What is kept for quarters after a day may end within another.
    parts_of_days = {
        day + back for day in days if back and day % 1 in {now % 1, *(end % 1 for end in ends_of(supply, place))}
    }
    moments = sorted({*days, *(moment for moment in {*parts_of_days, *cut} if moment < n)})
    time = dict(zip(moments, (float(b - a) for a, b in zip(moments, [*moments[1:], n], strict=True)), strict=True))

    # What is needed.
    within, before = answer.hardware.until, before_moves(answer.grid)
    firsts = sorted({*map(Fraction, range(n)), *(moved.start for moved in within.values())})
    ends_on = dict(itertools.pairwise([*firsts, Fraction(n)]))
    first_of = {x: firsts[bisect.bisect_right(firsts, x) - 1] for x in moments}  # from which on services stay
    filled: dict[str, dict[Fraction, float]] = {}
    of_service = dict[tuple[str, int, Fraction], float]()
    for (s, q), x in itertools.product(sorted(answer.hardware.placed), firsts):
        if int(x) != q:
            continue
        there, grid = answer.hardware.placed[s, q], answer.grid
        if (s, q) in within and x < within[s, q].start:
            assert before is not None
            there, grid = within[s, q].place, before
        machines = filled.setdefault(there.instance, dict.fromkeys(firsts, 0.0))
        a_replica = there.layout.n_gpus * there.pipeline_parallel_size
        replicas = float(grid.spread("planned_replicas", OF_SERVICE)[s, q, z])
        of_service[there.instance, s, x] = replicas / (GPUS[there.instance] // a_replica)
        machines[x] += of_service[there.instance, s, x]
    for part in (*supply.get("committed", ()), *supply.get("ordered", ())):
        filled.setdefault(part["type"], dict.fromkeys(firsts, 0.0))
    if supply.get("owned") and not filled:
        return Reckoning([], [], [])
    needed = {name: {x: math.ceil(round(filled[name][first_of[x]], 9)) for x in moments} for name in filled}
    kept = {name: {**counts} for name, counts in needed.items()}
    for name, p, x in itertools.product(needed, firsts, moments):
        if p < first_of[x] and x < ends_on[p] + back:
            # What a service leaves is kept for nobody.
            stay = (
                count
                for (on, s, r), count in of_service.items()
                if (on, r) == (name, p) and (on, s, first_of[x]) in of_service
            )
            kept[name][x] = max(kept[name][x], math.ceil(round(sum(stay), 9)))

    lasting = dict[str, tuple[Fraction, Fraction]]()
    for part in (*supply.get("committed", ()), *supply.get("owned", ())):
        ends = datetime.date.fromisoformat(part["until"]) + datetime.timedelta(days=1)
        lasting[part["id"]] = place(datetime.date.fromisoformat(part.get("from", "2020-01-01"))), place(ends)

    def is_there(part: dict[str, Any], x: Fraction) -> bool:
        begins, ends = lasting[part["id"]]
        return begins <= x < ends

    usd, bound, late, placed = [0.0] * n, [0.0] * n, [0.0] * n, dict[str, list[float]]()
    again = Reckoning(usd, bound, late, placed, {x: time[x] for x in moments if x >= now})
    # What is there on each day, and paid whether used or not.
    supplied, signed, owned = ({name: dict[Fraction, int]() for name in needed} for _ in range(3))
    for x in moments:
        q = int(x)
        counts = dict.fromkeys(needed, 0)
        for part in supply.get("committed", ()):
            hour = part.get("usd_per_hour") or list_price(part["type"], part["purchase"]) * off
            counts[part["type"]] += part["count"] * is_there(part, x)
            usd[q] += part["count"] * hour * HOURS * 3 * time[x] * is_there(part, x)
        for name, count in counts.items():
            signed[name][x] = count
        for pool in supply.get("owned", ()):
            usd[q] += pool["cost_per_quarter"] * time[x] * is_there(pool, x)
            left = pool["count"] * is_there(pool, x)
            for name in needed:
                most = left // GPUS[name]
                taken = most if name == [*needed][-1] else min(most, kept[name][x])
                counts[name] += taken
                owned[name][x] = owned[name].get(x, 0) + taken
                left -= taken * GPUS[name]
        for name, count in counts.items():
            supplied[name][x] = count

    # When something is there that is asked for today.
    def arrives(purchase: str) -> datetime.date:
        days = policy["approval_days"] + math.ceil(supply.get("lead_time_days", {}).get(purchase, 0))
        return today + datetime.timedelta(days=days)

    def factors_of_term(purchase: str) -> list[float]:
        """By quarter the price of a term over today's: that of the quarter in which it is approved, today's where it is
        asked for before the next plan."""
        lead, factors = arrives(purchase) - today, list[float]()
        for q, quarter in enumerate(quarters):
            asked = days_of(quarter)[0] - lead
            approved = asked + datetime.timedelta(days=policy["approval_days"])
            ahead = 4 * (approved.year - today.year) + (approved.month - 1) // 3 - (today.month - 1) // 3
            ahead = 0 if asked < months_later(today, 3) else min(until + q, ahead)
            factors.append((1 + prices["expected_change_per_year"]) ** (ahead / 4))
        return factors

    lent, lent_elsewhere, borrowed = ({name: dict.fromkeys(moments, 0) for name in needed} for _ in range(3))
    cuts, off_days = {*cut}, policy["approval_days"]
    ways = {name: machine_and_way(name, policy["buy"]) for name in needed}
    for name in sorted(needed, key=lambda name: ways[name][1] not in YEARS):
        counts_of, (machine, buy) = needed[name], ways[name]
        for other, x in itertools.product(needed, moments):
            is_same, n_of_it = ways[other][0] == machine, GPUS[other] // GPUS[name]
            lacks = counts_of[x] - supplied[name][x] - borrowed[name][x]
            if other == name or not n_of_it or lacks <= 0:
                continue
            free = max(0, supplied[other][x] - needed[other][x] - lent[other][x])
            if not is_same:
                free = min(free, owned[other].get(x, 0) - lent_elsewhere[other][x])
            loan = min(free, math.ceil(lacks / n_of_it))
            lent[other][x] += loan
            lent_elsewhere[other][x] += 0 if is_same else loan
            borrowed[name][x] += loan * n_of_it
            again.n_lent += loan
        for x in moments:
            supplied[name][x] += borrowed[name][x]
        short = {x: max(0, counts_of[x] - supplied[name][x]) for x in moments}
        hours = HOURS if buy in YEARS else prices["hours_per_month"]
        as_bought = factors_of_term(buy) if buy in YEARS else factors
        quarter_usd = [3 * list_price(machine, buy) * off * hours * factor for factor in as_bought]
        on_demand = 3 * list_price(machine, "on-demand") * off * prices["hours_per_month"]
        placed[name] = [0.0] * n
        # Those within the quota come on the day of their class, those beyond it when it is raised at the earliest.
        quota = next((limit for limit in supply.get("quota", ()) if limit["type"] == name), None)
        raised = today + datetime.timedelta(days=off_days + quota["request_lead_days"]) if quota else today
        earlier = next((order for order in supply.get("ordered", ()) if order["type"] == name), {"count": 0})
        n_ordered = earlier["count"]  # which are within the quota, and have no cover
        comes_then = place(max(today, datetime.date.fromisoformat(earlier.get("from", "2020-01-01"))))
        most = {x: max(n_ordered, quota["limit"] - signed[name][x]) if quota else 10**9 for x in moments}
        comes, asked = list[Fraction](), list[dict[Fraction, int]]()
        lacking = again.lacking[name] = dict.fromkeys(moments, 0.0)
        uncovered = dict.fromkeys(moments, 0)  # and the covered ones, that are not there by themselves
        for first_day, part in (
            (None, {x: min(short[x], n_ordered) for x in moments}),
            (today, {x: max(0, min(short[x], most[x]) - n_ordered) for x in moments}),
            (raised, {x: max(0, short[x] - most[x]) for x in moments}),
        ):
            day, quicker = comes_then, comes_then
            if first_day is not None:
                day, quicker = (place(max(first_day, arrives(way))) for way in (buy, "on-demand"))
            comes.append(day)
            # Before an order can be there nobody orders more than is still short when it is.
            wanted, least = dict[Fraction, int](), 10**9
            for x in reversed(moments):
                least = min(least, part[x]) if now <= x < day else part[x]
                wanted[x] = least
            asked.append(wanted)
            for x in moments:
                uncovered[x] += part[x] * (now <= x < day)
                lacking[x] += part[x] * (now <= x < min(day, quicker))
                if now <= x < day and quicker <= x:
                    late[int(x)] += part[x] * on_demand * factors[int(x)] * time[x]
        if buy not in YEARS:
            before, since, of_all = n_ordered, 0, [sum(of_way[x] for of_way in asked) for x in moments]
            for i, x in enumerate(moments):
                # What was asked for on a day is kept for so many quarters after it.
                while since < i and moments[since + 1] + back <= x:
                    since += 1
                held = max(of_all[since : i + 1])
                held = min(held, max(0, kept[name][x] - supplied[name][x]))
                parts = min(held, n_ordered), max(0, min(held, most[x]) - n_ordered), max(0, held - most[x])
                idle = supplied[name][x] - lent[name][x] + held - uncovered[x] - filled[name][first_of[x]]
                again.idle.setdefault(name, {})[x] = max(0.0, idle)
                if n_ordered and x >= max(now, comes_then):
                    again.ordered.setdefault(name, {})[x] = n_ordered, parts[0]
                gone = [now <= x < day for day in comes]
                there = sum(part for part, is_gone in zip(parts, gone, strict=True) if not is_gone)
                usd[int(x)] += there * quarter_usd[int(x)] * time[x]
                placed[name][int(x)] += max(0, held - before)
                before = held
            continue
        # By order where it begins, where it ends, and its machines: within the quota, and beyond it.
        runs: list[list[tuple[Fraction, Fraction, int]]] = [[], []]
        left = [*moments]
        while left:
            x = left.pop(0)
            day = moments[bisect.bisect_right(moments, x) - 1]
            running = [sum(m for _, end, m in some if end > x) for some in runs]
            new = max(0, asked[1][day] + asked[2][day] - sum(running))
            follows = sum(m for _, end, m in runs[1] if end == x)  # those beyond it, when they end
            more = running[0] + new - most[day] if now <= x < comes[2] else follows
            of_beyond = max(0, min(new, more))
            for some, count, comes_on in zip(runs, (new - of_beyond, of_beyond), comes[1:], strict=True):
                if count:
                    end = x + 4 * YEARS[buy] + max(Fraction(0), comes_on - max(x, now))
                    some.append((x, end, count))
                    placed[name][int(x)] += count
                    bound[int(x)] += count * quarter_usd[int(x)] * 4 * YEARS[buy]
                    if end < n and end not in left:
                        left = sorted([*left, end])
        for some, comes_on in zip(runs, comes[1:], strict=True):
            cuts |= {comes_on, *(end for _, end, _ in some)}
            for begins, end, count in some:
                for x in moments:
                    supplied[name][x] += count * (begins <= x < end and not now <= x < comes_on)
                for q in range(n):
                    there = [max(begins, Fraction(q)), min(end, Fraction(q + 1))]
                    gone = [max(there[0], now), min(there[1], comes_on)]
                    paid = max(Fraction(0), there[1] - there[0]) - max(Fraction(0), gone[1] - gone[0])
                    usd[q] += count * quarter_usd[int(begins)] * float(paid)
    cuts |= {x + back for x in cuts}
    if len(needed) > 1 and not {x for x in cuts if x < n} <= {*moments}:  # where it ends another type may lack it
        return reckoned(data, answer, z, cut | cuts)
    again.usd = [a + b for a, b in zip(usd, late, strict=True)]
    return again


def kept_usd(data: dict[str, Any], answer: Answer, again: Reckoning) -> list[float]:
    """By quarter the cost of machines of earlier orders that are kept while services wait for their own: whole ones, of
    those that nothing gave back before, after all that is idle."""
    usd, left_of = [0.0] * data["plan"]["quarters"], dict[str, int]()
    for x, time in again.time.items():
        q, idle = int(x), {name: counts[x] for name, counts in again.idle.items()}
        ordered = {name: counts[x] for name, counts in again.ordered.items() if x in counts}
        spare = {name: max(0, left_of.get(name, n) - used) for name, (n, used) in ordered.items()}
        taken = dict.fromkeys(spare, 0.0)
        for name, lacking in again.lacking.items():
            services = [s for s in range(len(data["services"])) if (s, q) in answer.hardware.placed]
            mine = {s: there for s in services if (there := answer.hardware.placed[s, q]).instance == name}
            load = {}
            for s in mine:
                requests, paced, of_machine = (
                    float(answer.services[column][s, q, answer.case])
                    for column in ("load_requests", "paced_requests", "replicas_per_instance")
                )
                load[s] = math.ceil(round(requests / paced, 9)) / of_machine
            needed = math.ceil(round(sum(_filled(answer, s, q) for s in mine), 9))
            if not lacking[x] or sum(load.values()) <= (available := needed - lacking[x]) + 1e-9:
                continue
            for s in mine:  # they have no priority: each lacks the same share
                share = 1 - available / sum(load.values())
                for where in (idle, spare):
                    for other in again.idle:
                        there = answer.hardware.on((s, q), other)
                        if other == name or there is None or other not in where:
                            continue
                        n = there.replicas_per_instance
                        whole = math.ceil(there.machines[1] * n - 1e-9)
                        replicas = min(math.floor(where[other] * n + 1e-9), math.ceil(share * whole - 1e-9))
                        where[other] -= replicas / n
                        share = max(0.0, share - replicas / whole)
                        if where is spare:
                            taken[other] += replicas / n
        for name, filled in taken.items():
            machines = math.ceil(filled - 1e-9)
            left_of[name] = ordered[name][1] + machines
            month = list_price(name, "on-demand") * (1 - data["prices"]["discount_fraction"])
            until = 4 * (2027 - int(data["plan"]["as_of"][:4])) - (int(data["plan"]["as_of"][5:7]) - 1) // 3
            factor = (1 + data["prices"]["expected_change_per_year"]) ** ((until + q) / 4)
            usd[q] += machines * month * data["prices"]["hours_per_month"] * factor * 3 * time
    return usd


def _filled(answer: Answer, s: int, q: int) -> float:
    """The machines that a service's replicas fill."""
    there = answer.hardware.placed[s, q]
    of_machine = GPUS[there.instance] // (there.layout.n_gpus * there.pipeline_parallel_size)
    return float(answer.services["planned_replicas"][s, q, answer.case]) / of_machine


def test_money_of_random_plans_is_reckoned_again() -> None:
    dice, classes, seen = (
        random.Random(391),
        random.Random(392),
        dict.fromkeys(
            ("term", "late", "cover", "anew", "idle", "owned", "no term", "quota", "ordered", "held", "lent"), 0
        ),
    )
    for i in range(amount(max(SELDOM) + 1, 400)):
        data = random_plan(dice, classes)
        if not IN_LONG and i >= N_IN_ORDER and i not in SELDOM:
            continue
        answer = solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG), timed=False)
        if answer.hardware.nothing:
            continue
        again = reckoned(data, answer, answer.case)
        held = kept_usd(data, answer, again)
        for z in range(3):
            reckoning = reckoned(data, answer, z)
            for name, parts in (("spend_usd", reckoning.usd), ("late_usd", reckoning.late)):
                usd = [float(usd) for usd in answer.money[name][:, z]]
                assert usd == pytest.approx([a + b for a, b in zip(parts, held, strict=False)], abs=0.005), data
        assert answer.bound_usd == pytest.approx(again.bound, abs=0.005), data
        decided = [*orders(answer, ())]
        ordered = {name: [0.0] * len(counts) for name, counts in again.orders.items()}
        for decision in decided:
            if decision.what == "order":
                quarter = answer.plan.quarter_of(decision.needed_from)
                assert quarter is not None
                ordered[decision.instance][quarter] += decision.n_instances
        assert ordered == again.orders, data
        # Orders, what covers them, and what is paid anyway are all of the money.
        paid = float((answer.money["committed_usd"] + answer.money["owned_usd"])[:, 0].sum())
        in_orders = sum(decision.usd or 0.0 for decision in decided)
        spend = float(answer.money["spend_usd"][:, answer.case].sum())
        assert in_orders + sum(again.late) + paid + ordered_before_usd(answer) == pytest.approx(spend, abs=0.005), data
        has_term = {data["policy"]["buy"], *(service.get("buy") for service in data["services"])} & {*YEARS}
        # What services share is never below 0, and none pays less where the demand of all is higher (on average over
        # machines of a term, of which more may have been signed at a lower price, and of an earlier order, which is not
        # paid until it comes).
        assert (answer.of_owners[None] >= 0).all(), data
        of_services = answer.grid.spread("service_month_usd", OF_SERVICE)
        assert (
            has_term or "ordered" in data["supply"] or (of_services[..., 1:] >= of_services[..., :-1] - 0.005).all()
        ), data
        seen["term"] += any(again.bound)
        seen["lent"] += again.n_lent > 0
        seen["no term"] += not has_term
        seen["late"] += any(decision.late for decision in decided)
        seen["cover"] += any(again.late)
        seen["anew"] += any("from 2027" in decision.about for decision in decided)
        seen["idle"] += bool(has_term) and bool((answer.supply["idle"] > 0).any())
        seen["owned"] += "owned" in data["supply"]
        parts = [part for rented in answer.rented for part in rented.parts]
        seen["ordered"] += "ordered" in data["supply"]
        seen["held"] += sum(held) > 0
        seen["quota"] += any(part.way.quota == math.inf and part.late.any() and part is not parts[0] for part in parts)
    assert min(seen.values()) >= 3, seen


def test_money_is_reckoned_again_where_services_move_within_a_quarter() -> None:
    """Machines that are committed from a day within a quarter on, to which services move where moves cost nothing."""
    dice, classes, days = random.Random(5), random.Random(6), random.Random(7)
    n_moving = 0
    for i in range(60):
        data = random_plan(dice, classes)
        day = f"2027-{days.choice(('02-20', '05-16', '08-10', '11-20'))}"
        name, count = days.choice((SMALL, LARGE)), days.randint(2, 9)
        commitment = {"id": "c", "type": name, "count": count, "purchase": "reserved-1yr", "usd_per_hour": 9.0}
        commitment |= {"from": day, "until": "2028-12-31"}
        data["supply"] = {"allowed": {"instances": [SMALL, LARGE]}, "committed": [commitment]}
        data["policy"] |= {"buy": "on-demand", "moving_cost_usd": 0, "near_tie_fraction": 0}
        for service in data["services"]:
            service.pop("buy", None)
        if not IN_LONG and i not in MOVING:
            continue
        answer = solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG), timed=False)
        n_moving += bool(answer.hardware.until)
        of_services = answer.grid.spread("service_month_usd", OF_SERVICE).sum(axis=0) * 3
        assert (of_services <= answer.money["spend_usd"] + 0.005).all(), data
        for z in range(3):
            usd = [float(usd) for usd in answer.money["spend_usd"][:, z]]
            assert usd == pytest.approx(reckoned(data, answer, z).usd, abs=0.005), data
    assert n_moving >= len(MOVING)

"""Money of random plans, reckoned again from the rules alone: machine by machine and order by order, in plain loops.

Replicas and where they run are taken from the plan; what is needed, there, ordered, late, covered, paid and bound is
worked out here, and nothing of sheetgen.plan does it.
"""

from __future__ import annotations

import datetime
import itertools
import math
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from amounts import amount

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.decisions import orders
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.worked_plan import OF_SERVICE, Answer

CATALOG = Catalog()
SMALL, LARGE = "azure/Standard_NC40ads_H100_v5", "azure/Standard_NC80adis_H100_v5"  # one H100 NVL, and two
GPUS = {SMALL: 1, LARGE: 2}
YEARS = {"reserved-1yr": 1, "reserved-3yr": 3}
HOURS = 730  # of a month, all of which are paid of what is reserved


def random_plan(dice: random.Random) -> dict[str, Any]:
    """A plan of services that come, grow, shrink and go, on machines that are there, ordered, late, or in a term."""
    quarters = dice.randint(2, 8)
    year = [f"{2027 + q // 4}-Q{q % 4 + 1}" for q in range(quarters)]

    def service(name: str) -> dict[str, Any]:
        steps = {
            quarter: round(dice.uniform(0.2, 2.5), 2)
            for quarter in dice.sample(year[1:], dice.randint(0, quarters - 1))
        }
        low = dice.choice((dice.randint(5, 60), dice.randint(300, 2000)))
        stated: dict[str, Any] = {
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
    return {
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


@dataclass
class Reckoning:
    """One quantile of a plan: dollars by quarter, and of what is ordered in each the sum to the end of its term."""

    usd: list[float]
    bound: list[float]
    late: list[float]
    orders: dict[str, list[float]] = field(default_factory=dict)


def days_of(quarter: str) -> tuple[datetime.date, datetime.date]:
    """The first day of a quarter, and that of the next."""
    year, number = int(quarter[:4]), int(quarter[-1])
    after = datetime.date(year + number // 4, number % 4 * 3 + 1, 1)
    return datetime.date(year, 3 * number - 2, 1), after


def list_price(name: str, purchase: str) -> float:
    price = CATALOG.instance(name).price(purchase)
    assert price is not None
    return float(price.usd_per_hour)


def reckoned(data: dict[str, Any], answer: Answer, z: int) -> Reckoning:
    """The rules. Whole machines are needed of each type for all replicas there. What is owned goes to types in the
    order in which services come to them, the last has the rest; with what is committed it serves quarters that it
    lasts through. What is still short is bought."""
    head, policy, supply, prices = data["plan"], data["policy"], data["supply"], data["prices"]
    quarters = [f"{2027 + q // 4}-Q{q % 4 + 1}" for q in range(head["quarters"])]
    n, today = len(quarters), datetime.date.fromisoformat(head["as_of"])
    off = 1 - prices["discount_fraction"]
    until = 4 * (2027 - today.year) - (today.month - 1) // 3  # quarters from the one of today to the first
    factors = [(1 + prices["expected_change_per_year"]) ** ((until + q) / 4) for q in range(n)]

    # What is needed.
    filled: dict[str, list[float]] = {}
    for s, q in sorted(answer.hardware.placed):
        place = answer.hardware.placed[s, q]
        machines = filled.setdefault(place.instance, [0.0] * n)
        a_replica = place.layout.n_gpus * place.pipeline_parallel_size
        machines[q] += float(answer.services["planned_replicas"][s, q, z]) / (GPUS[place.instance] // a_replica)
    for part in supply.get("committed", ()):
        filled.setdefault(part["type"], [0.0] * n)
    if supply.get("owned") and not filled:
        return Reckoning([], [], [])
    needed = {name: [math.ceil(round(count, 9)) for count in counts] for name, counts in filled.items()}
    back = policy["release_after_quarters"]
    kept = {name: [max(counts[max(0, q - back) : q + 1]) for q in range(n)] for name, counts in needed.items()}

    usd = [0.0] * n
    # What is there, and paid by days whether used or not.
    supplied = {name: [0] * n for name in needed}
    signed = {name: [0] * n for name in needed}
    for part in supply.get("committed", ()):
        hour = part.get("usd_per_hour") or list_price(part["type"], part["purchase"]) * off
        for q, quarter in enumerate(quarters):
            first, after = days_of(quarter)
            until = datetime.date.fromisoformat(part["until"]) + datetime.timedelta(days=1)
            lasts = max(0, (min(until, after) - first).days)
            usd[q] += part["count"] * hour * HOURS * 3 * lasts / (after - first).days
            supplied[part["type"]][q] += part["count"] * (until >= after)
            signed[part["type"]][q] += part["count"] * (until >= after)
    for pool in supply.get("owned", ()):
        for q, quarter in enumerate(quarters):
            first, after = days_of(quarter)
            until = datetime.date.fromisoformat(pool["until"]) + datetime.timedelta(days=1)
            lasts = max(0, (min(until, after) - first).days)
            usd[q] += pool["cost_per_quarter"] * lasts / (after - first).days
            left = pool["count"] * (until >= after)
            for name in needed:
                most = left // GPUS[name]
                taken = most if name == [*needed][-1] else min(most, kept[name][q])
                supplied[name][q] += taken
                left -= taken * GPUS[name]

    # When something is there that is asked for today.
    def arrives(purchase: str) -> datetime.date:
        days = policy["approval_days"] + math.ceil(supply.get("lead_time_days", {}).get(purchase, 0))
        return today + datetime.timedelta(days=days)

    def share_before(day: datetime.date, q: int) -> float:
        """Of a quarter's days those from today on and before a day."""
        first, after = days_of(quarters[q])
        begins = max(first, today)
        return max(0, (min(day, after) - begins).days) / (after - first).days

    buy, off_days = policy["buy"], policy["approval_days"]
    bound, late, placed = [0.0] * n, [0.0] * n, dict[str, list[float]]()
    for name, counts in needed.items():
        short = [max(0, counts[q] - supplied[name][q]) for q in range(n)]
        hours = HOURS if buy in YEARS else prices["hours_per_month"]
        month = [list_price(name, buy) * off * hours * factor for factor in factors]
        on_demand = list_price(name, "on-demand") * off * prices["hours_per_month"]
        placed[name] = [0.0] * n
        # Those within the quota come on the day of their class, those beyond it when it is raised at the earliest.
        quota = next((limit for limit in supply.get("quota", ()) if limit["type"] == name), None)
        raised = today + datetime.timedelta(days=off_days + quota["request_lead_days"]) if quota else today
        most = [max(0, quota["limit"] - signed[name][q]) if quota else 10**9 for q in range(n)]
        ways = []
        for first_day, part in (
            (today, [min(short[q], most[q]) for q in range(n)]),
            (raised, [max(0, short[q] - most[q]) for q in range(n)]),
        ):
            day, quicker = max(first_day, arrives(buy)), max(first_day, arrives("on-demand"))
            gone = [share_before(day, q) for q in range(n)]
            first_there = next((q for q in range(n) if gone[q] < 1), n)
            # Before an order can be there nobody orders more than is still short when it is.
            asked = [min(part[q : first_there + 1]) if q < first_there else part[q] for q in range(n)]
            ways.append((gone, first_there, asked))
            for q in range(n):
                covered = gone[q] - min(share_before(quicker, q), gone[q])
                late[q] += part[q] * on_demand * factors[q] * 3 * covered
        if buy not in YEARS:
            asked = [sum(of_way[q] for *_, of_way in ways) for q in range(n)]
            held = [
                min(max(asked[max(0, q - back) : q + 1]), max(0, kept[name][q] - supplied[name][q])) for q in range(n)
            ]
            for q in range(n):
                for (gone, *_), part in zip(ways, (min(held[q], most[q]), max(0, held[q] - most[q])), strict=True):
                    usd[q] += part * month[q] * 3 * (1 - gone[q])
            placed[name] = [float(max(0, now - before)) for before, now in itertools.pairwise([0, *held])]
            continue
        quarters_of_term = 4 * YEARS[buy]
        (_, first_within, within), (gone_beyond, first_beyond, beyond) = ways
        runs: list[list[tuple[int, int]]] = [[], []]  # orders within the quota and beyond it: their quarter, machines
        for q in range(n):
            running = [
                sum(m for p, m in some if q < max(p, first) + quarters_of_term)
                for some, first in zip(runs, (first_within, first_beyond), strict=True)
            ]
            new = max(0, within[q] + beyond[q] - sum(running))
            if gone_beyond[q]:
                more = running[0] + new - most[q]
            else:  # what follows those beyond it, when they end
                more = sum(m for p, m in runs[1] if max(p, first_beyond) + quarters_of_term == q)
            of_beyond = max(0, min(new, more))
            runs[0] += [(q, new - of_beyond)] * (new > of_beyond)
            runs[1] += [(q, of_beyond)] * (of_beyond > 0)
        for some, (gone, first_there, _) in zip(runs, ways, strict=True):
            # Orders in place of those that came late begin when these end, within a quarter.
            came_late = sum(m for p, m in some if p <= first_there)
            for p, machines in some:
                begins = max(p, first_there)
                follows = p > first_there and (p - first_there) % quarters_of_term == 0
                came_late = min(came_late, machines) if follows else came_late
                for part, unpaid in (
                    ((came_late, gone[first_there]), (machines - came_late, 0.0))
                    if follows
                    else ((machines, gone[begins] if begins < n else 1.0),)
                ):
                    left = float(quarters_of_term)
                    for q in range(begins, n):
                        paid = min(left, 1 - unpaid if q == begins else 1.0)
                        usd[q] += part * month[p] * 3 * paid
                        left -= paid
                bound[p] += machines * month[p] * 3 * quarters_of_term
                placed[name][p] += machines
    return Reckoning([a + b for a, b in zip(usd, late, strict=True)], bound, late, placed)


def test_money_of_random_plans_is_reckoned_again() -> None:
    dice, seen = (
        random.Random(391),
        dict.fromkeys(("term", "late", "cover", "anew", "idle", "owned", "no term", "quota"), 0),
    )
    for _ in range(amount(120, 400)):
        data = random_plan(dice)
        answer = solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG), timed=False)
        if answer.hardware.nothing:
            continue
        for z in range(3):
            again = reckoned(data, answer, z)
            assert [float(usd) for usd in answer.money["spend_usd"][:, z]] == pytest.approx(again.usd, abs=0.005), data
            assert list(answer.money["late_usd"][:, z]) == pytest.approx(again.late, abs=0.005), data
        again = reckoned(data, answer, answer.case)
        assert answer.bound_usd == pytest.approx(again.bound, abs=0.005), data
        decided = [*orders(answer, ())]
        for decision in decided:
            if decision.what == "order":
                quarter = answer.plan.quarter_of(decision.needed_from)
                assert quarter is not None and decision.n_instances == again.orders[decision.instance][quarter], data
        # Orders, what covers them, and what is paid anyway are all of the money.
        paid = float((answer.money["committed_usd"] + answer.money["owned_usd"])[:, 0].sum())
        in_orders = sum(decision.usd or 0.0 for decision in decided)
        spend = float(answer.money["spend_usd"][:, answer.case].sum())
        assert in_orders + sum(again.late) + paid == pytest.approx(spend, abs=0.005), data
        has_term = data["policy"]["buy"] in YEARS
        # What services share is never below 0, and none pays less where the demand of all is higher (on average over
        # machines of a term, of which more may have been signed at a lower price).
        assert (answer.of_owners[None] >= 0).all(), data
        of_services = answer.grid.spread("service_month_usd", OF_SERVICE)
        assert has_term or (of_services[..., 1:] >= of_services[..., :-1] - 0.005).all(), data
        seen["term"] += has_term and any(again.bound)
        seen["no term"] += not has_term
        seen["late"] += any(decision.late for decision in decided)
        seen["cover"] += any(again.late)
        seen["anew"] += any("from 2027" in decision.about for decision in decided)
        seen["idle"] += has_term and bool((answer.supply["idle"] > 0).any())
        seen["owned"] += "owned" in data["supply"]
        seen["quota"] += bool(answer.supply["late_beyond_quota"].any())
    assert min(seen.values()) > 3, seen

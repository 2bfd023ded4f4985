"""A quarter of the example, hour by hour: by the calendar and its clocks, with arrivals drawn, on the machines that the
plan has up; what is served and waits, and whether the machines are those that are paid."""

from __future__ import annotations

import datetime
import heapq
import math
import random
import zoneinfo
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
import yaml
from amounts import amount

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.profile import DAYS, SHARES
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.tables import TABLES, work_out
from sheetgen.plan.worked_plan import Answer
from sheetgen.writers.formats import templates_folder

CATALOG = Catalog()
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
HOURS = {"support-chat": NEW_YORK, "code-review": BERLIN}  # the services of business hours
BATCH = {
    "id": "batch",
    "profile": "night",
    "time_zone": NEW_YORK,
    "demand": {"tokens": {"per_day": 4e7, "of": "output", "burst_factor": 1}},
    "like": "support-chat",
    "targets": {"tpot_ms": "off", "ttft_ms": "off"},
}
Q = 0


def example(*others: dict[str, Any]) -> Answer:
    """The example with hours for its services, and others beside them; it keeps no machine for lower need."""
    data = deepcopy(yaml.safe_load((templates_folder() / "plan.yaml").read_text(encoding="utf-8")))
    for service in data["services"]:
        if service["id"] in HOURS:
            service |= {"profile": "business", "time_zone": HOURS[service["id"]]}
            service["demand"].get("users", {}).pop("peak_hour_share", None)
    data["services"] += others
    data["policy"] |= {"plan_at": "p50", "release_after_quarters": 0, "buy": "mix"}
    return solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG))


@pytest.fixture(scope="module")
def plain() -> Answer:
    return example()


@pytest.fixture(scope="module")
def with_batch() -> Answer:
    return example(BATCH)


def hours_of(answer: Answer) -> list[datetime.datetime]:
    """Every hour of the quarter, in UTC."""
    plan = answer.plan
    first, last = plan.first_day(plan.quarters[Q]), plan.last_day(plan.quarters[Q])
    start = datetime.datetime.combine(first, datetime.time(), datetime.UTC)
    return [start + datetime.timedelta(hours=i) for i in range(((last - first).days + 1) * 24)]


def over_peak(profile: str | None, zone: str, hour: datetime.datetime) -> float:
    """The load of an hour over that of the peak, by the service's own clock."""
    if profile is None:
        return 1.0
    local = hour.astimezone(zoneinfo.ZoneInfo(zone))
    shares = SHARES[profile]
    works = profile != "business" or DAYS[local.weekday()] not in ("sat", "sun")
    return (shares[local.hour] if works else min(shares)) / max(shares)


@dataclass(frozen=True)
class Serving:
    """A service of the quarter on its machines."""

    name: str
    rate: float  # requests a second at peak, or at once
    turn_seconds: float
    places: float  # of a replica
    per_machine: float
    is_rate: bool
    profile: str | None
    zone: str
    t: int


def servings(answer: Answer) -> list[Serving]:
    served = []
    for s, service in enumerate(answer.plan.services):
        place = answer.hardware.placed.get((s, Q))
        if place is None:
            continue
        rate, at_once = (
            float(answer.services[name][s, Q, answer.case]) for name in ("requests_per_second", "concurrent_requests")
        )
        seconds = 0.0 if math.isnan(place.full_turn_seconds) else place.full_turn_seconds
        served.append(
            Serving(
                service.id,
                rate or at_once,
                seconds,
                place.paced_requests,
                place.replicas_per_instance,
                rate > 0,
                service.profile if isinstance(service.profile, str) else None,
                service.time_zone,
                answer.place[place.instance],
            )
        )
    return served


def machines_up(answer: Answer, t: int, hour: datetime.datetime) -> float:
    """Those of a type that the plan has up in an hour of the week, with what is there anyway."""
    rented = answer.rented[t]
    owned, committed = (
        float(answer.supply[name][t, Q, answer.case]) for name in ("owned_instances", "committed_instances")
    )
    if rented.counts.shape[-1] == 1:
        return owned + committed + float(rented.counts[Q, answer.case, 0])
    place = hour.weekday() * 24 + hour.hour  # the first of the columns are the hours as such
    return owned + committed + float(rented.counts[Q, answer.case, place])


def share_that_waits(rate: float, seconds: float, places: int, requests: int, seed: int) -> float:
    """Arrivals by chance at so many places, each taken for as long as a full replica takes; the share that waits."""
    random = numpy.random.default_rng(seed)
    arrivals = numpy.cumsum(random.exponential(1 / rate, requests))
    lengths = random.exponential(seconds, requests)
    free = [0.0] * places
    waited = 0
    for arrival, length in zip(arrivals, lengths, strict=True):
        first = heapq.heappop(free)
        waited += first > arrival
        heapq.heappush(free, max(first, arrival) + length)
    return waited / requests


@pytest.mark.parametrize("case", ["plain", "with_batch"])
def test_what_the_hours_of_a_quarter_bring_is_served(case: str, request: pytest.FixtureRequest) -> None:
    """In every hour of the quarter the machines that are up have the replicas of all services on them."""
    answer: Answer = request.getfixturevalue(case)
    every, short, tried = servings(answer), 0, 0
    assert answer.plan.rents_by_hour
    for hour in hours_of(answer):
        for t in {serving.t for serving in every}:
            mine = [serving for serving in every if serving.t == t]
            filled = 0.0
            for serving in mine:
                load = serving.rate * over_peak(serving.profile, serving.zone, hour)
                # Little's law: places that are taken on average, of a rate; the plan adds its own for chance.
                busy = load * serving.turn_seconds if serving.is_rate else load
                filled += math.ceil(busy / serving.places - 1e-9) / serving.per_machine
            short += math.ceil(filled - 1e-9) > machines_up(answer, t, hour)
            tried += 1
    # The week's clock is mid-quarter's; of the quarter's hours those after the change of clocks may be off by one.
    assert short <= 0.02 * tried


def test_requests_wait_no_more_than_they_may(with_batch: Answer) -> None:
    """The busiest hours, and the valley, of a service that arrives by chance."""
    answer = with_batch
    (s,) = [s for s, service in enumerate(answer.plan.services) if service.id == "support-chat"]
    place = answer.hardware.placed[s, Q]
    peak = float(answer.services["requests_per_second"][s, Q, answer.case])
    grid = answer.grid.again({}, case=2)
    loads = numpy.array([1.0, 0.5])
    demand = answer.services["demand"][..., answer.case][..., None] * loads
    grid.put(("service", "quarter", "case"), {"demand": demand})
    grid.evaluate(TABLES["loads"].quantities[1:], ("service", "quarter", "case"))
    work_out(grid, "replicas")
    replicas = grid.spread("planned_replicas", ("service", "quarter", "case"))[s, Q]
    for load, count in zip(loads, replicas, strict=True):
        places = int(count * place.paced_requests)
        waits = share_that_waits(load * peak, place.full_turn_seconds, places, amount(20_000, 200_000), 3)
        assert waits <= 0.06, (load, places)


def test_the_machines_of_the_quarter_are_those_that_are_paid(plain: Answer, with_batch: Answer) -> None:
    """Machine-hours by the calendar against those of the plan, and the same with the batch of the night."""
    for answer in (plain, with_batch):
        days = len(hours_of(answer)) / 24
        for t, rented in enumerate(answer.rented):
            if rented.counts.shape[-1] == 1:
                continue
            by_calendar = sum(float(rented.counts[Q, answer.case, h.weekday() * 24 + h.hour]) for h in hours_of(answer))
            planned = float(answer.rented_on_average[t, Q]) * 24 * days
            # The plan's have the minutes before each start besides.
            assert by_calendar * 0.98 <= planned <= by_calendar * 1.15


def test_a_night_batch_adds_no_machine_to_the_peak(plain: Answer, with_batch: Answer) -> None:
    batch = len(with_batch.plan.services) - 1
    place = with_batch.hardware.placed[batch, Q]
    t = with_batch.place[place.instance]
    others = [s for s in range(batch) if (s, Q) in with_batch.hardware.placed]
    assert any(with_batch.hardware.placed[s, Q].instance == place.instance for s in others)
    peaks = [
        float(answer.supply["needed_instances"][answer.place[place.instance], Q, answer.case])
        for answer in (plain, with_batch)
    ]
    assert peaks[0] == peaks[1]
    usd = [float(answer.money["spend_usd"][Q, answer.case]) for answer in (plain, with_batch)]
    assert usd[0] <= usd[1]
    held = with_batch.held_usd[t, Q] - with_batch.saved_by_hour_usd[t, Q]
    assert held == pytest.approx(float(with_batch.supply["bought_usd"][t, Q, with_batch.case]))


# Money, reckoned again from the rules: quarter hour by quarter hour and machine by machine, in plain loops ------------

SMALL, LARGE = "azure/Standard_NC40ads_H100_v5", "azure/Standard_NC80adis_H100_v5"
ZONES = {"UTC": 0, "America/Phoenix": -7 * 4, "Asia/Kolkata": 22, "Asia/Tokyo": 9 * 4}  # quarter hours ahead
PARTS = 7 * 24 * 4
MONTHS, HOURS_OF_MONTH = 3, 730


def random_plan(dice: random.Random) -> dict[str, Any]:
    quarters = dice.randint(1, 6)
    services = []
    for name in ("a", "b", "c")[: dice.randint(1, 3)]:
        low = dice.choice((20, 200, 900))
        service: dict[str, Any] = {
            "id": name,
            "demand": {"at_once": {"p10": low, "p50": low * 1.3, "p90": low * 2}},
            "model": dice.choice(["8b", "gpt-oss-20b"]),
            "growth": dice.choice((0, 0.2, -0.2)),
            "floor_replicas": dice.randint(1, 3),
        }
        if dice.random() < 0.8:
            own = [dice.choice((0, 1, 2, 5)) for _ in range(23)] + [3]
            service |= {"profile": dice.choice(("business", "night", own)), "time_zone": dice.choice([*ZONES])}
            if dice.random() < 0.5:
                service["working_days"] = dice.sample(DAYS, dice.randint(1, 7))
        services.append(service)
    supply: dict[str, Any] = {"allowed": {"instances": [dice.choice((SMALL, LARGE))]}}
    if dice.random() < 0.5:
        supply["committed"] = [
            {
                "id": "c",
                "type": supply["allowed"]["instances"][0],
                "count": dice.randint(1, 4),
                "until": dice.choice(("2027-03-31", "2027-12-31")),
                "usd_per_hour": 4,
            }
        ]
    return {
        "plan": {"start": "2027-Q1", "quarters": quarters, "as_of": "2026-11-26"},
        "policy": {
            "buy": dice.choice(("mix", "mix", "on-demand", "reserved-1yr")),
            "plan_at": dice.choice(("p50", "p90")),
            "release_after_quarters": dice.choice((0, 0, 1)),
            "start_minutes": dice.choice((0, 15, 60, 90)),
        },
        "prices": {"expected_change_per_year": dice.choice((0, -0.3))},
        "services": services,
        "supply": supply,
    }


def loads_of_week(service: dict[str, Any]) -> list[float]:
    """By quarter hour of the week in UTC, from Monday on, the load of a service over that of its peak."""
    profile = service.get("profile")
    if profile is None:
        return [1.0] * PARTS
    shares = SHARES[profile] if isinstance(profile, str) else profile
    days = service.get("working_days", DAYS[:5] if profile == "business" else DAYS)
    loads = []
    for part in range(PARTS):
        local_part = (part + ZONES[service["time_zone"]]) % PARTS
        share = shares[local_part // 4 % 24] if DAYS[local_part // 96] in days else min(shares)
        loads.append(share / max(shares))
    return loads


def by_parts(data: dict[str, Any], answer: Answer, q: int, z: int) -> list[int]:
    """Machines that are up in each quarter hour of the week; the services are on one type."""
    filled = [0.0] * PARTS
    for s, service in enumerate(data["services"]):
        place, peak = answer.hardware.placed[s, q], float(answer.services["demand"][s, q, z])
        for part, load in enumerate(loads_of_week(service)):
            replicas = math.ceil(round(load * peak / place.paced_requests, 9))
            replicas = max(replicas, service["floor_replicas"]) if load else 0
            filled[part] += replicas / place.replicas_per_instance
    needed = [math.ceil(round(count, 9)) for count in filled]
    ahead = data["policy"]["start_minutes"] // 15
    return [max(needed[(part + i) % PARTS] for i in range(ahead + 1)) for part in range(PARTS)]


def based(
    shares: list[list[float]], on_demand: float, of_term: list[float], factors: list[float], term: int
) -> tuple[list[int], list[float]]:
    """Machines of a base by quarter, and what they cost: each of which the hours on demand would cost more than the
    term, in its first quarter and over all of it."""
    n = len(shares)
    base, usd = [0] * n, [0.0] * n
    for q in range(n):
        if n - q < term / 2:
            break
        worth = 0
        for machine in range(max(map(len, shares))):
            hours = [
                quarter_shares[machine] if machine < len(quarter_shares := shares[min(p, n - 1)]) else 0.0
                for p in range(q, q + term)
            ]
            rented = [on_demand * factors[q + i] * share for i, share in enumerate(hours)]
            a_quarter = of_term[q]
            worth += rented[0] > a_quarter and sum(rented) > term * a_quarter
        more = max(0, worth - base[q])
        for p in range(q, min(n, q + term)):
            base[p] += more
            usd[p] += more * of_term[q] * MONTHS
    return base, usd


def reckoned(data: dict[str, Any], answer: Answer) -> list[list[float]]:
    """By quantile and quarter what the plan costs."""
    policy, n = data["policy"], data["plan"]["quarters"]
    (name,) = data["supply"]["allowed"]["instances"]
    factors = [(1 + data["prices"]["expected_change_per_year"]) ** (q / 4) for q in range(1, 1 + n + 12)]
    signed = [1.0, *factors[1:]]  # of the first quarter it is signed now
    month = {}
    for purchase in ("on-demand", "reserved-1yr", "reserved-3yr"):
        price = CATALOG.instance(name).price(purchase)
        assert price is not None
        month[purchase] = price.usd_per_hour * HOURS_OF_MONTH
    supplied, usd = [0] * n, [0.0] * n
    for part in data["supply"].get("committed", ()):
        for q in range(1 if part["until"] == "2027-03-31" else min(n, 4)):
            supplied[q] += part["count"]
            usd[q] += part["count"] * part["usd_per_hour"] * HOURS_OF_MONTH * MONTHS
    up = [[by_parts(data, answer, q, z) for q in range(n)] for z in range(3)]

    def rented(z: int, q: int, part: int, supplied: list[int]) -> int:
        """Kept as long as policy says, of what was short then, and beyond what is there now."""
        before = range(max(0, q - policy["release_after_quarters"]), q + 1)
        short = max(max(0, up[z][p][part] - supplied[p]) for p in before)
        return min(short, max(0, max(up[z][p][part] for p in before) - supplied[q]))

    base, of_base = [0] * n, [0.0] * n  # machines by quarter, and what they cost
    if policy["buy"] == "mix":
        z = ("p10", "p50", "p90").index(policy["plan_at"])
        counts = [[rented(z, q, part, supplied) for part in range(PARTS)] for q in range(n)]
        shares = [
            [sum(count >= machine for count in of_quarter) / PARTS for machine in range(1, max(of_quarter) + 1)]
            for of_quarter in counts
        ]
        least = sum(sum(shares[q]) * month["on-demand"] * factors[q] * MONTHS for q in range(n))
        for purchase, term in (("reserved-1yr", 4), ("reserved-3yr", 12)):
            of_term = [month[purchase] * factor for factor in signed]
            machines, usd_of = based(shares, month["on-demand"], of_term, factors, term)
            above = sum(sum(shares[q][machines[q] :]) * month["on-demand"] * factors[q] * MONTHS for q in range(n))
            if sum(usd_of) + above < least - 1e-6:
                base, of_base, least = machines, usd_of, sum(usd_of) + above
    with_base = [a + b for a, b in zip(supplied, base, strict=True)]
    by_quantile = []
    for z in range(3):
        of_quarters = []
        running: list[tuple[int, int]] = []
        for q in range(n):
            counts_now = [rented(z, q, part, with_base) for part in range(PARTS)]
            if policy["buy"] == "reserved-1yr":
                short = max(0, max(up[z][q]) - supplied[q])
                running.append((q, max(0, short - sum(m for p, m in running if q < p + 4))))
                paid = sum(m * month["reserved-1yr"] * signed[p] for p, m in running if q < p + 4) * MONTHS
            else:
                paid = sum(counts_now) / PARTS * month["on-demand"] * factors[q] * MONTHS
            of_quarters.append(usd[q] + of_base[q] + paid)
        by_quantile.append(of_quarters)
    return by_quantile


def test_money_by_the_hour_is_reckoned_again() -> None:
    dice, seen = random.Random(77), dict.fromkeys(("base", "hours", "half hours", "peak"), 0)
    for _ in range(amount(40, 400)):
        data = random_plan(dice)
        answer = solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG), timed=False)
        for z, of_quarters in enumerate(reckoned(data, answer)):
            assert list(answer.money["spend_usd"][:, z]) == pytest.approx(of_quarters, abs=0.005), data
        seen["base"] += bool(answer.plan.base)
        seen["hours"] += answer.plan.rents_by_hour
        seen["half hours"] += answer.plan.week.minutes == 30
        seen["peak"] += data["policy"]["buy"] == "reserved-1yr" and not answer.plan.week.is_flat
    assert min(seen.values()) > 3, seen

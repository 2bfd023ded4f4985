"""A quarter of the example, hour by hour: by the calendar and its clocks, with arrivals drawn, on the machines that the
plan has up; what is served and waits, and whether the machines are those that are paid."""

from __future__ import annotations

import datetime
import heapq
import math
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
    for one in data["services"]:
        if one["id"] in HOURS:
            one |= {"profile": "business", "time_zone": HOURS[one["id"]]}
            one["demand"].get("users", {}).pop("peak_hour_share", None)
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
    there = hour.astimezone(zoneinfo.ZoneInfo(zone))
    shares = SHARES[profile]
    works = profile != "business" or DAYS[there.weekday()] not in ("sat", "sun")
    return (shares[there.hour] if works else min(shares)) / max(shares)


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
    found = []
    for s, one in enumerate(answer.plan.services):
        there = answer.hardware.placed.get((s, Q))
        if there is None:
            continue
        rate, at_once = (
            float(answer.services[name][s, Q, answer.case]) for name in ("requests_per_second", "concurrent_requests")
        )
        seconds = 0.0 if math.isnan(there.full_turn_seconds) else there.full_turn_seconds
        found.append(
            Serving(
                one.id,
                rate or at_once,
                seconds,
                there.paced_requests,
                there.replicas_per_instance,
                rate > 0,
                one.profile if isinstance(one.profile, str) else None,
                one.time_zone,
                answer.place[there.instance],
            )
        )
    return found


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
    for at, length in zip(arrivals, lengths, strict=True):
        first = heapq.heappop(free)
        waited += first > at
        heapq.heappush(free, max(first, at) + length)
    return waited / requests


@pytest.mark.parametrize("case", ["plain", "with_batch"])
def test_what_the_hours_of_a_quarter_bring_is_served(case: str, request: pytest.FixtureRequest) -> None:
    """In every hour of the quarter the machines that are up have the replicas of all services on them."""
    answer: Answer = request.getfixturevalue(case)
    every, short, tried = servings(answer), 0, 0
    assert answer.plan.rents_by_hour
    for hour in hours_of(answer):
        for t in {one.t for one in every}:
            mine = [one for one in every if one.t == t]
            filled = 0.0
            for one in mine:
                load = one.rate * over_peak(one.profile, one.zone, hour)
                # Little's law: places that are taken on average, of a rate; the plan adds its own for chance.
                busy = load * one.turn_seconds if one.is_rate else load
                filled += math.ceil(busy / one.places - 1e-9) / one.per_machine
            short += math.ceil(filled - 1e-9) > machines_up(answer, t, hour)
            tried += 1
    # The week's clock is mid-quarter's; of the quarter's hours those after the change of clocks may be off by one.
    assert short <= 0.02 * tried


def test_requests_wait_no_more_than_they_may(with_batch: Answer) -> None:
    """The busiest hours, and the valley, of a service that arrives by chance."""
    answer = with_batch
    (s,) = [s for s, one in enumerate(answer.plan.services) if one.id == "support-chat"]
    there = answer.hardware.placed[s, Q]
    peak = float(answer.services["requests_per_second"][s, Q, answer.case])
    grid = answer.grid.again({}, case=2)
    loads = numpy.array([1.0, 0.5])
    demand = answer.services["demand"][..., answer.case][..., None] * loads
    from sheetgen.plan.tables import TABLES, work_out

    grid.put(("service", "quarter", "case"), {"demand": demand})
    grid.evaluate(TABLES["loads"].quantities[1:], ("service", "quarter", "case"))
    work_out(grid, "replicas")
    replicas = grid.spread("planned_replicas", ("service", "quarter", "case"))[s, Q]
    for load, count in zip(loads, replicas, strict=True):
        places = int(count * there.paced_requests)
        waits = share_that_waits(load * peak, there.full_turn_seconds, places, amount(20_000, 200_000), 3)
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
    there = with_batch.hardware.placed[batch, Q]
    t = with_batch.place[there.instance]
    others = [s for s in range(batch) if (s, Q) in with_batch.hardware.placed]
    assert any(with_batch.hardware.placed[s, Q].instance == there.instance for s in others)
    peaks = [
        float(one.supply["needed_instances"][one.place[there.instance], Q, one.case]) for one in (plain, with_batch)
    ]
    assert peaks[0] == peaks[1]
    usd = [float(one.money["spend_usd"][Q, one.case]) for one in (plain, with_batch)]
    assert usd[0] <= usd[1]
    held = with_batch.held_usd[t, Q] - with_batch.saved_by_hour_usd[t, Q]
    assert held == pytest.approx(float(with_batch.supply["bought_usd"][t, Q, with_batch.case]))

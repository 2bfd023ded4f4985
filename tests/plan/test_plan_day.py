"""The day of a service: its hours in its time zone, machines by the hour, and the base of a mix."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy
import pytest
from amounts import amount
from option_values import OptionValue
from plan_books import workbook_of
from plan_edits import differ
from recalculation import compare, poison, recalculate_with_formualizer
from workbook_cells import values

from sheetgen.api import recommend
from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.errors import ScenarioError
from sheetgen.plan.bridge import Last, bridge, sums_of
from sheetgen.plan.findings import findings
from sheetgen.plan.hours import kept_by_span, missing_by_hour, needed_shares
from sheetgen.plan.profile import SHARES
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.tables import stated_demand
from sheetgen.plan.terms import base_of
from sheetgen.plan.week import profile_of
from sheetgen.plan.worked_plan import Answer

CATALOG = Catalog()
AS_OF = "2026-11-26"
NINE_TO_FIVE = [0] * 9 + [1] * 8 + [0] * 7


def stated(services: list[dict[str, Any]], quarters: int = 1, start: str = "2027-Q1", **more: OptionValue) -> Plan:
    data = {"plan": {"start": start, "quarters": quarters, "as_of": AS_OF}, "services": services, **more}
    return plan_of(Document("plan.yaml", data, {}), CATALOG)


def service(name: str, **more: OptionValue) -> dict[str, Any]:
    return {"id": name, "demand": {"at_once": 8}, "model": "8b", **more}


def by_hour(plan: Plan, s: int, q: int = 0) -> Any:
    """The load of a service over that of its peak, by the part of an hour of the week in UTC."""
    return plan.week.over_peak[s, q][plan.week.kinds[q]]


def test_profiles_are_shares_of_a_day() -> None:
    assert [sum(shares) for shares in SHARES.values()] == pytest.approx([1, 1, 1])
    assert max(SHARES["business"]) == 0.12  # as `peak_hour_share` where no profile is


def test_hours_are_those_of_the_time_zone_in_mid_quarter() -> None:
    """Nine to five from Monday to Friday: in New York from 14 to 22 in winter, in UTC, and from 13 to 21 in summer; in
    Kolkata from 3:30 to 11:30; in Auckland, 13 hours ahead in its summer, from 20 of the day before, 12 in winter."""
    day = {"profile": NINE_TO_FIVE, "working_days": ["mon", "tue", "wed", "thu", "fri"]}
    zones = ("America/New_York", "Asia/Kolkata", "Pacific/Auckland")
    plan = stated([service(f"s{i}", time_zone=zone, **day) for i, zone in enumerate(zones)], 3)
    assert plan.week.minutes == 30  # as Kolkata is ahead by half an hour

    def hours(first: float, days: range) -> list[float]:
        """The half hours of the week from one on, eight hours long, on some days; Monday is 0."""
        return sorted((24 * day + first + i / 2) % 168 for day in days for i in range(16))

    def at_peak(s: int, q: int) -> list[float]:
        return (numpy.flatnonzero(by_hour(plan, s, q) == 1) / 2).tolist()

    assert at_peak(0, 0) == hours(14, range(5)) and at_peak(0, 2) == hours(13, range(5))
    assert at_peak(1, 0) == at_peak(1, 2) == hours(3.5, range(5))
    assert at_peak(2, 0) == hours(20, range(-1, 4)) and at_peak(2, 2) == hours(21, range(-1, 4))
    assert set(by_hour(plan, 0)) == {0, 1}


def test_other_days_have_the_least_hour_of_a_working_one() -> None:
    plan = stated([service("one", profile="business")])
    load = by_hour(plan, 0).reshape(7, 24)
    assert load[:5] == pytest.approx(numpy.tile(numpy.array(SHARES["business"]) / 0.12, (5, 1)))
    assert load[5:] == pytest.approx(0.005 / 0.12)
    day = profile_of(plan.services[0])
    assert day is not None and day.days_of_week == pytest.approx(5 + 2 * 24 * 0.005)
    assert by_hour(stated([service("one", profile="night")]), 0).sum() == 7 * 8


@pytest.mark.parametrize(
    ("demand", "rate"),
    [
        ({"users": 1000}, 1000 * 20 * 0.12 / 3600 * 1.3),
        ({"requests": {"per_day": 200_000, "burst_factor": 1}}, 200_000 * 0.12 / 3600),
        # A month has 30.4 days, of which 5 of 7 and the weekend's 24 hours of 0.5 % are working days.
        ({"requests": {"per_month": 6e6}}, 6e6 / (30.4 * (5 + 0.24) / 7) * 0.12 / 3600 * 1.3),
        ({"requests": {"per_month": 6e6, "days_per_month": 22}}, 6e6 / 22 * 0.12 / 3600 * 1.3),
        ({"requests": 7}, 7),
    ],
)
def test_the_largest_hour_is_the_peak(demand: dict[str, Any], rate: float) -> None:
    plan = stated([{"id": "one", "demand": demand, "model": "8b", "profile": "business"}])
    assert stated_demand(plan.services[0], 100, 100)[0] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        ({"profile": "lunch"}, "must be one of business, flat, night, or 24 shares"),
        ({"profile": [1] * 23}, "24 shares"),
        ({"profile": [0] * 24}, "none above"),
        ({"profile": "night", "time_zone": "Europe/Paradise"}, "is no time zone"),
        ({"time_zone": "Europe/Berlin"}, "time_zone is of a profile, and there is none"),
        ({"working_days": ["mon"]}, "working_days is of a profile, and there is none"),
        ({"profile": "night", "demand": {"requests": {"per_day": 1, "peak_hour_share": 0.1}}}, "peak_hour_share. Keep"),
    ],
)
def test_what_is_no_day_is_refused(wrong: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        stated([service("one") | wrong])
    assert len(refused.value.problems) == 1 and refusal in str(refused.value)


def test_a_start_takes_what_is_judged_unless_stated() -> None:
    assert stated([service("one")]).start_minutes == 15
    assert stated([service("one")], policy={"start_minutes": 0}).start_minutes == 0


def test_machines_are_up_before_they_are_needed() -> None:
    """A machine from 9 to 17 that takes 15 minutes to start is paid for 8.25 hours; 90 minutes, for 9.5."""
    plan = stated([service("one", profile=NINE_TO_FIVE)])
    needed = plan.week.over_peak[0][None, :, None, :] * 2  # two machines
    for minutes, hours in ((0, 8), (15, 8.25), (60, 9), (90, 9.5)):
        up, weights = plan.week.up(needed, minutes, plan.spans.quarters)
        assert (up * weights).sum() == pytest.approx(2 * hours / 24), minutes
        assert up.max() == 2


def test_needed_shares_by_hand() -> None:
    counts, weights = numpy.array([[3, 1, 0, 1]]), numpy.array([0.1, 0.2, 0.3, 0.4])
    assert needed_shares(counts, weights, 4)[0] == pytest.approx([0.7, 0.1, 0.1, 0])


def test_what_is_rented_in_an_hour_is_kept_as_long_as_policy_says() -> None:
    up = numpy.array([[[4, 2]], [[1, 2]], [[1, 1]]], float)  # quarters, one case, two hours
    owned, committed = numpy.array([[1.0], [1], [1]]), numpy.array([[0.0], [1], [0]])
    short, missing = missing_by_hour(up, up, owned, committed, [0, 1, 2])
    assert missing.tolist() == short.tolist() == [[[3, 1]], [[0, 0]], [[0, 0]]]
    since, quarters, none_moves = [0, 0, 1], [0, 1, 2], numpy.zeros(3, bool)
    _, kept = missing_by_hour(up, kept_by_span([up, up], since, quarters, none_moves), owned, committed, since)
    assert kept.tolist() == [[[3, 1]], [[2, 0]], [[0, 0]]]
    # Of four machines in the first hour two are of a service that is not there a quarter later.
    still_there = numpy.array([[[2, 2]], [[1, 2]], [[1, 1]]], float)
    _, kept = missing_by_hour(up, kept_by_span([up, still_there], since, quarters, none_moves), owned, committed, since)
    assert kept.tolist() == [[[3, 1]], [[0, 0]], [[0, 0]]]


def test_a_base_is_what_pays_in_hours() -> None:
    """At $60 and $100 a machine must be needed 438 of 730 hours: of those needed 100, 61, 60 and 8 % of the time two
    are. A third that is worth it from the second quarter on is ordered then; none for half a year that is left."""
    shares = numpy.array([[1, 0.61, 0.6, 0.08]] + [[1, 1, 0.7, 0.08]] * 5)

    def orders(shares: Any, usd: float, purchase: str, change: float = 0, most: int = 9, **supply: Any) -> list[int]:
        prices = {"expected_change_per_year": change}
        plan = stated([service("one")], len(shares), prices=prices, supply=supply)
        counts = [0] * len(shares)
        for base in base_of(
            plan, "machine", shares, 100, {purchase: usd}, numpy.array([most, *[9] * (len(shares) - 1)])
        ):
            counts[base.first] += base.count
        return counts

    assert orders(shares, 60, "reserved-1yr") == [2, 1, 0, 0, 2, 0]
    assert orders(shares, 60, "reserved-1yr", most=1) == [1, 2, 0, 0, 1, 0]  # no more within the quota of the first
    assert orders(shares, 60, "reserved-3yr") == [2, 0, 0, 0, 0, 0]
    late = {"lead_time_days": {"reserved-1yr": 90}}
    assert orders(shares, 60, "reserved-1yr", **late) == [0, 3, 0, 0, 0, 0]
    # Prices that halve every quarter, of a term when it is signed, a quarter before: nothing is worth a year, and what
    # is needed for 0.7 of a quarter is worth a block of it.
    assert orders(shares[1:], 48, "reserved-1yr", 0.5**4 - 1) == [0] * 5
    assert orders(shares[1:], 30, "capacity-block", 0.5**4 - 1) == [3, 3, 3, 3, 3]


# Plans worked out -----------------------------------------------------------------------------------------------------

KIND = "azure/Standard_NC40ads_H100_v5"
ONLY = {"allowed": {"instances": [KIND]}}
LOADS: tuple[dict[str, Any], ...] = (
    {"requests": 12},
    {"requests": {"per_day": 400_000}},
    {"at_once": 150},
    {"users": {"people": 3000, "active_fraction": 0.05}},
    {"tokens": {"per_day": 2e8, "of": "output"}},
)
KINDS = (
    "aws/p5.48xlarge",
    "aws/p5.4xlarge",
    "aws/g6e.12xlarge",
    "aws/g6e.48xlarge",
    KIND,
    "azure/Standard_NC80adis_H100_v5",
    "azure/Standard_ND96isr_H100_v5",
)
ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Sydney")


def worked(services: list[dict[str, Any]], quarters: int = 1, **more: OptionValue) -> Answer:
    return solved_plan(stated(services, quarters, **{"supply": ONLY} | more), timed=False)


def usd(answer: Answer, case: int = 1) -> list[float]:
    return answer.money["spend_usd"][:, case].tolist()


def test_a_flat_day_is_recommend_to_the_cent() -> None:
    for profile in ({}, {"profile": "flat"}, {"profile": "flat", "time_zone": "Asia/Kolkata"}):
        answer = worked([{"id": "one", "demand": {"requests": 12}, "model": "8b", **profile}])
        recommended = recommend(model="8b", requests_per_second=12, instances=KIND, as_of=AS_OF)
        assert usd(answer) == [pytest.approx(3 * recommended["monthly_usd"], rel=1e-12)]
    answer = worked([{"id": "one", "demand": {"requests": {"per_day": 240_000}}, "model": "8b", "profile": "flat"}])
    flat = recommend(model="8b", requests_per_day=240_000, peak_hour_share=1 / 24, instances=KIND, as_of=AS_OF)
    assert usd(answer) == [pytest.approx(3 * flat["monthly_usd"], rel=1e-12)]


def test_three_services_in_three_time_zones_by_hand() -> None:
    """Nine to five, Monday to Friday: New York's hours are 14 to 22 in UTC, Berlin's 8 to 16, Sydney's 22 to 6 of the
    next day (11 ahead in its summer). Berlin and New York meet from 14 to 16, others never."""
    day = {"profile": NINE_TO_FIVE, "working_days": ["mon", "tue", "wed", "thu", "fri"], "model": "8b"}
    zones = {"us": "America/New_York", "eu": "Europe/Berlin", "au": "Australia/Sydney"}
    services = [{"id": name, "demand": {"at_once": 1000}, "time_zone": zone, **day} for name, zone in zones.items()]
    alone = worked(services[:1], policy={"start_minutes": 0})
    (peak,) = alone.supply["needed_instances"][0, :, 1]
    month = alone.types[0].month_usd
    assert peak > 1
    # 8 of 24 hours on 5 of 7 days.
    assert usd(alone) == [pytest.approx(3 * month * peak * 40 / 168)]
    together = worked(services, policy={"start_minutes": 0})
    assert together.supply["needed_instances"][0, 0, 1] == together.supply["gap"][0, 0, 1] == 2 * peak
    assert usd(together) == [pytest.approx(3 * usd(alone)[0])]  # the hours in which two of them work have both
    # Each is asked for 15 minutes before: five times for Berlin's morning, five for New York's beside it, and once for
    # Sydney's Monday, on Sunday; on other days Sydney takes over what New York leaves.
    started = worked(services)
    hours = 3 * 40 * peak + 11 * 0.25 * peak
    assert usd(started) == [pytest.approx(3 * month * hours / 168)]


def test_a_night_batch_fills_the_valley_of_what_is_committed() -> None:
    """Where machines are there anyway the batch takes none of its own, and costs nothing; by day it would."""
    chat = {"id": "chat", "demand": {"at_once": 300}, "model": "8b", "profile": "business"}
    batch = {"id": "batch", "demand": {"at_once": 200}, "model": "8b"}
    n = int(worked([chat]).supply["needed_instances"][0, 0, 1])
    committed = {"id": "c", "type": KIND, "count": n, "until": "2027-12-31", "usd_per_hour": 4}
    supply = {**ONLY, "committed": [committed]}
    without, night, day = (
        worked(services, supply=supply)
        for services in ([chat], [chat, batch | {"profile": "night"}], [chat, batch | {"profile": "business"}])
    )
    assert usd(without) == usd(night) < usd(day)
    assert night.supply["gap"].max() == 0 and night.supply["needed_instances"].max() == n
    # On demand the batch pays for its hours alone, and adds no machine to the peak.
    alone, both = worked([chat]), worked([chat, batch | {"profile": "night"}])
    assert alone.supply["gap"][0, 0, 1] == both.supply["gap"][0, 0, 1]
    assert usd(alone)[0] < usd(both)[0] < usd(worked([chat, batch]))[0]


def plans(rng: random.Random) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Services with days, and the rest of a plan."""
    services = [
        {
            "id": f"s{i}",
            "demand": rng.choice(LOADS),
            "model": rng.choice(("8b", "gpt-oss-120b")),
            "growth": rng.choice((0, 0.3)),
            "profile": rng.choice(("business", "night", "flat", [rng.random() for _ in range(24)])),
            "time_zone": rng.choice(ZONES),
        }
        for i in range(rng.choice((1, 2, 3)))
    ]
    policy = {
        "buy": rng.choice(("on-demand", "mix", "reserved-1yr")),
        "release_after_quarters": rng.choice((0, 1)),
        "redundancy": {"survive": rng.choice(("none", "replica", "machine"))},
        "start_minutes": rng.choice((0, 15, 90)),
        "moving_cost_usd": 0,
    }
    committed = {"id": "c", "type": KIND, "count": 2, "until": "2027-06-30", "usd_per_hour": 4}
    return services, {"policy": policy, "supply": ONLY | rng.choice(({}, {"committed": [committed]}))}


def with_demand(services: list[dict[str, Any]], factor: float) -> list[dict[str, Any]]:
    """The services with so much more of the demand, and no other day."""

    def more(demand: Any) -> Any:
        if not isinstance(demand, dict):
            return demand * factor
        amounts = ("requests", "per_day", "at_once", "people", "tokens")
        return {key: more(value) if key in amounts else value for key, value in demand.items()}

    return [{**row, "demand": more(row["demand"])} for row in services]


def held_all_month(services: list[dict[str, Any]], answer: Answer) -> list[dict[str, Any]]:
    """The services without a day, each with the same peak."""
    peaks = [{name: value for name, value in peak.items() if name not in ("profile", "time_zone")} for peak in services]
    for peak, by_hour in zip(peaks, answer.plan.services, strict=True):
        demand = by_hour.demand.requests or by_hour.demand.tokens
        if demand is not None and demand.per_day is not None:
            (name,) = peak["demand"]
            peak["demand"] = {name: {**peak["demand"][name], "peak_hour_share": demand.peak_hour_share}}
    return peaks


def test_a_profile_never_costs_more_than_its_peak_and_more_demand_never_less() -> None:
    rng = random.Random(9)
    for _ in range(amount(6, 200)):
        services, more = plans(rng)
        answer = worked(services, 4, **more)
        held = worked(held_all_month(services, answer), 4, **more)
        assert usd(answer, 2)[0] <= usd(held, 2)[0] + 0.01, (services, more)
        assert sum(usd(answer, 2)) <= sum(usd(held, 2)) + 0.01, (services, more)
        twice = worked(with_demand(services, 2), 4, **more)
        assert sum(usd(answer, 2)) <= sum(usd(twice, 2)) + 0.01, (services, more)


def test_a_service_pays_no_less_when_its_own_demand_rises() -> None:
    """On machines that it shares, committed, rented by the hour or in a term; and what is shared is no gain."""
    rng = random.Random(3)
    for _ in range(amount(8, 100)):
        services, more = plans(rng)
        grown = [*with_demand(services[:1], rng.choice((1.3, 2, 3))), *services[1:]]
        less, of_more = (worked(served, 4, **more) for served in (services, grown))
        assert all((answer.of_owners[None] >= 0).all() for answer in (less, of_more)), (services, more)
        before, after = (answer.services["service_month_usd"][0] for answer in (less, of_more))
        assert (after >= before - 0.01).all(), (services, more)


def test_nor_on_several_types_of_machines() -> None:
    """Where services go is chosen by the mean of p50 and of what is bought, moves counted, which cost nothing here."""

    def mean(answer: Answer) -> float:
        return sum(usd(answer, 1)) + sum(usd(answer, 2))

    rng, tried = random.Random(5), 0
    for _ in range(amount(5, 100)):
        services, more = plans(rng)
        more["policy"]["buy"] = rng.choice(("on-demand", "mix"))
        more["supply"] = {"allowed": {"instances": rng.sample(KINDS, 3)}}
        answer = worked(services, 3, **more)
        if not answer.hardware.nothing:
            assert mean(answer) <= mean(worked(held_all_month(services, answer), 3, **more)) + 0.01, (services, more)
            tried += 1
    assert tried > amount(2, 50)


@pytest.mark.parametrize("buy", ["mix", "on-demand"])
def test_the_workbook_recalculates(buy: str, tmp_path: Path) -> None:
    services = [
        {"id": "chat", "demand": {"requests": {"per_day": 800_000}}, "model": "8b", "profile": "business"},
        {"id": "api", "demand": {"requests": 20}, "model": "8b"},
        {"id": "batch", "demand": {"tokens": {"per_day": 1e8, "of": "output"}}, "model": "8b", "profile": "night"},
    ]
    whole = findings(solved_plan(stated(services, 3, supply=ONLY, policy={"buy": buy})))
    path = tmp_path / "plan.xlsx"
    path.write_bytes(workbook_of(whole))
    poison(path, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert not differ(whole.answer, values(path))
    record, shown = record_of(whole), values(path)
    of_services = [row["monthly_usd"] for row in record["services"] if row["quantile"] == "p90"]
    assert [shown["Services", f"S{5 + i}"] for i in range(len(of_services))] == pytest.approx(of_services)
    assert sum(row["base"] for row in record["supply"]) > 0 if buy == "mix" else record["cheaper"]
    for money in record["money"]:
        assert math.fsum(money["by_class_usd"].values()) == pytest.approx(money["p50_usd"])
        assert ("mix" not in money["by_class_usd"]) and len(money["by_class_usd"]) == (2 if buy == "mix" else 1)
    # Orders, and what is paid anyway, are the money.
    orders = sum(decision["usd"] for decision in record["decisions"] if decision["what"] == "order")
    assert orders == pytest.approx(sum(row["p90_usd"] for row in record["money"]))
    parts = sum(usd for row in record["services"] if row["quantile"] == "p90" for usd in [3 * row["monthly_usd"]])
    assert parts == pytest.approx(orders)  # nothing is idle or spare


def test_the_bridge_ends_at_a_plan_with_hours() -> None:
    """A day is of the users, and a mix of the classes; together they are all that changed, to the cent."""
    services = [service("chat", demand={"at_once": 900}), service("night", demand={"at_once": 300})]
    days = [row | {"profile": "business" if row["id"] == "chat" else "night"} for row in services]
    old, new = stated(services, 4, supply=ONLY), stated(days, 4, supply=ONLY, policy={"buy": "mix"})
    of_new, of_old = (solved_plan(plan, timed=False) for plan in (new, old))
    now, last = math.fsum(usd(of_new)), math.fsum(usd(of_old))
    parts = bridge(Last(old, sums_of(of_old), "old"), of_new).p50.parts
    assert {*parts} == {"users", "supply and class"} and parts["users"] < 0
    assert round(100 * math.fsum(parts.values())) == round(100 * now) - round(100 * last)


def test_floors_of_the_day_and_of_the_night_share_machines() -> None:
    """By day sixteen GPUs for the one, by night sixteen for the other: two machines of eight, not four. In Berlin's
    hours, one ahead in winter, both run in one hour, and neither in another."""
    chat = service("chat", demand={"at_once": 4}, floor_replicas=16, profile=[0] * 8 + [1] * 16)
    batch = chat | {"id": "batch", "profile": [1] * 8 + [0] * 16}
    only = {"allowed": {"instances": ["aws/p5.48xlarge"]}}
    both = worked([chat, batch], supply=only)
    assert both.supply["needed_instances"][0, 0, 1] == 2
    flat = worked([chat | {"profile": "flat"}, batch | {"profile": "flat"}], supply=only)
    assert flat.supply["needed_instances"][0, 0, 1] == 4
    halves = [chat | {"floor_replicas": 8}, batch | {"floor_replicas": 8, "time_zone": "Europe/Berlin"}]
    rented = worked(halves, supply=only, policy={"start_minutes": 0}).rented[0]
    assert rented.counts[0, 1].reshape(7, 24).tolist() == [[1] * 7 + [0] + [1] * 15 + [2]] * 7

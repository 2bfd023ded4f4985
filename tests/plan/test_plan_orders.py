"""Orders by hand: what a term binds, what is late and who waits for it, and what must be signed now."""

from __future__ import annotations

import datetime
import itertools
import random
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy
import pytest
from option_values import Options, OptionValue
from plan_books import PlanRecord, plan_that_moves_within_a_quarter
from test_plan_arithmetic import ways

import sheetgen
from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.errors import ScenarioError
from sheetgen.plan.bridge import plan_of_record
from sheetgen.plan.cheaper import best_of_kinds
from sheetgen.plan.decisions import BUDGET, MACHINES, BreakEven, unserved
from sheetgen.plan.findings import Findings, answered_at_once, checks, findings
from sheetgen.plan.orders import Buying, Unserved, bought, shed
from sheetgen.plan.pages import _in_urgency, _keeping, _other_ways, decision_words, plan_page
from sheetgen.plan.paid_prices import paid_prices
from sheetgen.plan.quarters import QUARTERS_OF_TERM
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.served import Served
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.spans import Spans
from sheetgen.plan.worked_plan import Answer
from sheetgen.units import USD

CATALOG = Catalog()
CLASSES = ("reserved-1yr", "capacity-block")
NC40 = "azure/Standard_NC40ads_H100_v5"  # of which one serves 145 of the requests below
NC80 = "azure/Standard_NC80adis_H100_v5"  # and one of these 290
A100 = "azure/Standard_NC24ads_A100_v4"
ON_DEMAND, ONE_YEAR, THREE_YEARS = (usd * 730 * 3 for usd in (6.98, 5.8067, 4.306))  # a quarter of one
SERVICE = {"id": "one", "demand": {"at_once": 400}, "model": "8b"}  # three machines
FIRST = "2027-Q1", "p90"
FALLING = {"expected_change_per_year": -0.2}


def plan_answer(services: list[dict[str, Any]], quarters: int = 3, **more: OptionValue) -> Answer:
    supply = {"allowed": {"instances": [NC40]}, **more.pop("supply", {})}
    head = {"start": "2027-Q1", "quarters": quarters, "as_of": more.pop("as_of", "2026-11-26")}
    data = {"plan": head, "services": services, "supply": supply, **more}
    return solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG))


def whole_plan(services: list[dict[str, Any]], quarters: int = 3, **more: OptionValue) -> Findings:
    return findings(plan_answer(services, quarters, **more))


def solved(services: list[dict[str, Any]], quarters: int = 3, **more: OptionValue) -> dict[str, Any]:
    return PlanRecord(plan_answer(services, quarters, **more))


def of_all(record: dict[str, Any], name: str, rows: str = "money") -> list[Any]:
    return [row[name] for row in record[rows]]


def test_a_term_is_paid_to_its_end_when_nothing_needs_it() -> None:
    """Three machines of three years are needed for a quarter, and one from then on. Two were given back at no cost."""
    falling = SERVICE | {"growth": {"steps": {"2027-Q2": 0.3}}}
    record = solved([falling], policy={"buy": "reserved-3yr"})
    assert of_all(record, "needed", "supply") == [3, 1, 1] and of_all(record, "gap", "supply") == [3, 3, 3]
    assert of_all(record, "idle", "supply") == [0, 2, 2]
    assert of_all(record, "p50_usd") == pytest.approx([3 * THREE_YEARS] * 3)
    assert of_all(record, "bound_usd") == pytest.approx([3 * THREE_YEARS * 12, 0, 0])
    (order,) = record["decisions"]  # and nothing is released
    assert (order["what"], order["n_instances"]) == ("order", 3)
    assert order["usd"] == pytest.approx(9 * THREE_YEARS) and order["binds_usd"] == pytest.approx(36 * THREE_YEARS)
    assert record["totals"]["bound_usd"] == pytest.approx(36 * THREE_YEARS)
    assert record["totals"]["bound_after_plan_usd"] == pytest.approx(27 * THREE_YEARS)
    elastic = solved([falling])
    assert of_all(elastic, "p50_usd") == pytest.approx([n * ON_DEMAND for n in (3, 1, 1)])
    assert of_all(elastic, "bound_usd") == [0, 0, 0]


def test_signed_prices_stay_and_a_term_that_ends_is_ordered_anew() -> None:
    """A year of three machines, one more from the second quarter, prices that fall by a fifth a year from the plan's
    day on, 26 November. What is signed now, for January, costs what it does today: a fall of a quarter was counted."""
    record = solved(
        [SERVICE | {"growth": {"steps": {"2027-Q2": 1.2, "2028-Q1": 0.5}}}],
        6,
        policy={"buy": "reserved-1yr"},
        prices={"expected_change_per_year": -0.2},
    )
    assert of_all(record, "needed", "supply") == [3, 4, 4, 4, 2, 2]
    # Of the fourth machine's year a quarter is left in 2028-Q1, when the three end: one is ordered then, and one after.
    assert of_all(record, "gap", "supply") == [3, 4, 4, 4, 2, 2]
    first, second, fifth, sixth = (ONE_YEAR * 0.8 ** (q / 4) for q in (0, 2, 5, 6))
    paid = [3 * first, *[3 * first + second] * 3, second + fifth, fifth + sixth]
    assert of_all(record, "p50_usd") == pytest.approx(paid)
    orders = [(decision["n_instances"], decision["needed_from"], decision["about"]) for decision in record["decisions"]]
    assert orders == [
        (3, "2027-01-01", None),
        (1, "2027-04-01", None),
        (1, "2028-01-01", "as the term of 3 from 2027-Q1 ends"),
        (1, "2028-04-01", "as the term of 1 from 2027-Q2 ends"),
    ]
    assert of_all(record, "bound_usd") == pytest.approx([12 * first, 4 * second, 0, 0, 4 * fifth, 4 * sixth])


PAIR = [SERVICE | {"id": "batch", "demand": {"at_once": 200}, "priority": 2}, SERVICE | {"id": "chat", "tier": 1}]
LATE = {"lead_time_days": {"on-demand": 60}}


def committed(count: int) -> dict[str, Any]:
    commitment = {"id": "c", "type": NC40, "count": count, "until": "2028-12-31", "usd_per_hour": 5}
    return {"committed": [commitment], **LATE}


def test_what_waits_has_the_cheapest_other_machine_that_is_there_in_time() -> None:
    """The machines on demand are there on 15 February. A capacity block, of 7 days, is there on 24 December: four of
    another type for 45 days, at $5.191 an hour. Where nothing else is allowed there is none."""
    late = {"approval_days": 21}
    assert [lack["or"] for lack in solved([SERVICE], 2, supply=LATE, policy=late)["unserved"]] == [None]
    supply = LATE | {"allowed": {"instances": [NC40, "aws/p5.4xlarge"]}}
    (lost,) = solved([SERVICE], 2, supply=supply, policy=late)["unserved"]
    alternative = lost["or"]
    assert (lost["instance"], lost["share"], lost["until"]) == (NC40, 1, "2027-02-14")
    assert (alternative["instance"], alternative["purchase"]) == ("aws/p5.4xlarge", "capacity-block")
    assert (alternative["n_instances"], alternative["there_on"]) == (4, "2026-12-24")
    assert alternative["usd"] == pytest.approx(4 * 5.191 * 45 * 24)


def test_what_was_ordered_before_serves_who_waits_and_is_paid_until_then() -> None:
    """Nothing that is ordered today is there before 15 February; of three machines of an earlier order, which the plan
    has no other use for, two hold the load, from 20 January on, for 26 days: they are paid for these, and released
    after them. All three were released at once, and the load waited."""
    ordered = {"type": NC80, "count": 3, "purchase": "on-demand", "from": "2027-01-20"}
    supply = LATE | {"allowed": {"instances": [NC40, NC80]}, "ordered": [ordered]}
    record = solved([SERVICE], 2, supply=supply, policy={"approval_days": 21})
    (lost,) = record["unserved"]
    assert (lost["instance"], lost["share"], lost["from"], lost["until"]) == (NC40, 1, "2027-01-01", "2027-01-19")
    (served,) = record["on_others"]
    assert (served["share"], served["from"], served["until"]) == (0, "2027-01-20", "2027-02-14")
    assert served["on_others"] == [{"instance": NC80, "share": 1, "was_ordered": True}]
    large = 13.96 * 730 * 3
    for name in ("p10_usd", "p50_usd", "p90_usd"):
        assert of_all(record, name) == pytest.approx([2 * large * 26 / 90 + 3 * ON_DEMAND / 2, 3 * ON_DEMAND])
    assert record["totals"]["ordered_before_usd"] == pytest.approx(2 * large * 26 / 90)
    whole = whole_plan([SERVICE], 2, supply=supply, policy={"approval_days": 21})
    parts = whole.sign_now_usd[0], whole.answer.already_usd, whole.ordered_before_usd, whole.covers_usd
    assert whole.covers_usd == pytest.approx(0)  # what was kept stood among what covers late orders, too
    assert sum(parts) + whole.forecast_usd == pytest.approx(whole.answer.asked_usd[0])
    released = [(row["n_instances"], row["needed_from"]) for row in record["decisions"] if row["what"] == "release"]
    assert released == [(1, "2027-01-01"), (2, "2027-02-15")]
    # What is kept is paid in every draw, and those of an order that come after the days of waiting are given back.
    assert record["totals"]["usd"]["p10"] == pytest.approx(2 * large * 26 / 90 + 4.5 * ON_DEMAND)
    later = [ordered | {"from": "2027-02-15"}]
    record = solved([SERVICE], 2, supply=supply | {"ordered": later}, policy={"approval_days": 21})
    assert record["on_others"] == [] and record["totals"]["ordered_before_usd"] == 0
    assert [row["until"] for row in record["unserved"]] == ["2027-02-14"]
    # The plan puts the batch on one of two: the other is two of the chat's three machines.
    two = supply | {"ordered": [ordered | {"count": 2, "from": "2027-01-01"}]}
    record = solved(PAIR, 2, supply=two, policy={"approval_days": 21})
    for name in ("on_others", "unserved"):
        assert [(row["service"], row["share"]) for row in record[name]] == [("chat", pytest.approx(1 / 3))]


def test_the_spare_machine_of_an_earlier_order_is_paid_from_its_day_and_by_the_hour() -> None:
    """Three machines by day, of them a spare one, and one by night; two are ordered in time, the third comes on 20
    January. Until then two are rented in the hours that need two or three, and a loss takes capacity."""
    day = [2.0 if 8 <= hour < 20 else 1.0 for hour in range(24)]
    service = SERVICE | {"demand": {"at_once": 250}, "profile": day}
    policy = {"redundancy": {"survive": "machine"}, "start_minutes": 0}
    late = [{"type": NC40, "count": 1, "purchase": "on-demand", "from": "2027-01-20"}]
    record = solved([service], 1, supply={"ordered": late}, policy=policy)
    in_time = solved([service], 1, policy=policy)
    counts = of_all(in_time, "machine_hours", "supply")
    assert of_all(in_time, "needed", "supply") == [3] and counts == [pytest.approx(730 * (3 + 2) / 2)]
    (less,) = [a - b for a, b in zip(of_all(in_time, "p50_usd"), of_all(record, "p50_usd"), strict=True)]
    assert less == pytest.approx(ON_DEMAND * 19 / 90 / 2)  # the third, by day
    (check,) = [line for line in record["checks"] if line["check"].startswith("what was ordered is there")]
    assert "until 2027-01-19 a loss takes capacity" in check["found"][0] and record["unserved"] == []


def test_what_ends_within_a_quarter_serves_until_its_last_day() -> None:
    """Two of three machines are committed until 15 May, 45 of 91 days: what replaces them is needed, and paid, from the
    next day on. They served nothing of the quarter, and an order was for its first day."""
    commitment = {"id": "c", "type": NC40, "count": 2, "until": "2027-05-15", "usd_per_hour": 5}
    record = solved([SERVICE], supply={"committed": [commitment]})
    assert of_all(record, "gap", "supply") == [1, 3, 3] and of_all(record, "committed", "supply") == [2, 2, 0]
    assert of_all(record, "idle", "supply") == [0, 0, 0]
    first, second = [row for row in record["decisions"] if row["what"] == "order"]
    assert [(order["n_instances"], order["needed_from"]) for order in (first, second)] == [
        (1, "2027-01-01"),
        (2, "2027-05-16"),
    ]
    assert second["about"] == "as c ends" and second["usd"] == pytest.approx(2 * ON_DEMAND * (46 / 91 + 1))
    assert ("renew", "2027-05-16") in [(way["what"], way["needed_from"]) for way in ways(second)]
    paid = 2 * 5 * 730 * 3
    assert of_all(record, "p50_usd") == pytest.approx(
        [paid + ON_DEMAND, (paid * 45 + 2 * ON_DEMAND * 46) / 91 + ON_DEMAND, 3 * ON_DEMAND]
    )
    shared = [row["p50_usd"] for row in record["owners"] if row["owner"] is None]
    assert shared == pytest.approx([0, 0, 0], abs=1e-6)  # all is its service's
    # A year of three machines that begins in May has half of a quarter in 2028, when it is ordered anew.
    term = solved([SERVICE], 6, supply={"committed": [commitment]}, policy={"buy": "reserved-1yr"})
    orders = [(row["n_instances"], row["needed_from"]) for row in term["decisions"] if row["what"] == "order"]
    assert orders == [(1, "2027-01-01"), (2, "2027-05-16"), (1, "2028-01-01"), (2, "2028-05-16")]
    assert of_all(term, "p50_usd")[4:] == pytest.approx([3 * ONE_YEAR] * 2)


P5 = "aws/p5.48xlarge"


def test_what_is_offered_until_late_machines_are_there_adds_up() -> None:
    """Two replicas of the one and three of the other are machines of one GPU each: on eight GPUs both have one."""
    supply = LATE | {"allowed": {"instances": [NC40, P5]}}
    offers = [lost["or"] for lost in solved(PAIR, 2, supply=supply, policy={"approval_days": 21})["unserved"]]
    assert [(offer["instance"], offer["n_instances"]) for offer in offers] == [(P5, 1), (P5, 0)]
    assert offers[0]["usd"] > 0 == offers[1]["usd"]


def test_machines_that_are_ordered_in_time_serve_who_waits_for_others() -> None:
    """Six replicas and one fill seven of eight GPUs, and a machine more is ordered for the loss of one: there the three
    replicas run that wait for a quota of other machines, where a third machine would cost more than those."""
    large = {"id": "large", "demand": {"at_once": 700}, "model": "8b", "allowed": {"instances": [P5]}}
    small = large | {"id": "small", "demand": {"at_once": 20}}
    quota = [{"type": NC40, "limit": 0, "request_lead_days": 30}]
    supply = {"allowed": {"instances": [NC40, P5]}, "quota": quota}
    policy = {"approval_days": 14, "redundancy": {"survive": "machine"}}
    with_spare = solved([SERVICE, large, small], 1, supply=supply, policy=policy)
    assert {(row["instance"], row["needed"], row["owned"]) for row in with_spare["supply"]} == {
        (NC40, 4, 0),
        (P5, 2, 0),
    }
    (raised,) = [decision for decision in with_spare["decisions"] if decision["what"] == "raise quota"]
    assert raised["late"] and with_spare["unserved"] == []
    without_spare = solved([SERVICE, large, small], 1, supply=supply, policy={"approval_days": 14})
    assert [lack["service"] for lack in without_spare["unserved"]] == ["one"]
    # What saves most is said, with who waits for it.
    (best,) = [lever for lever in with_spare["cheaper"] if lever["what"] == "survive: none"]
    usd = [sum(of_all(record, "p90_usd")) for record in (with_spare, without_spare)]
    assert best["usd"] == pytest.approx(usd[0] - usd[1])
    assert best["gives_up"].endswith(f"until {without_spare['unserved'][0]['until']} not all of one is served")


def test_a_term_of_a_mix_has_the_demand_at_which_it_would_be_another() -> None:
    """Three machines for 400 requests: two hold 290, which is 72 % of them, and a fourth is needed above 435."""
    (order,) = solved([SERVICE], policy={"buy": "mix"})["decisions"]
    assert (order["purchase"], order["n_instances"]) == ("reserved-1yr", 3)
    assert order["break_even"] == {"fewer_below": pytest.approx(0.72), "more_above": pytest.approx(1.09)}


def test_until_an_order_is_there_a_loss_takes_capacity() -> None:
    """Two of three machines are committed, and hold what is asked; the spare one is there on 15 February."""
    service = SERVICE | {"demand": {"at_once": 250}}
    policy = {"approval_days": 21, "redundancy": {"survive": "machine"}}
    record = solved([service], supply=committed(2), policy=policy)
    (order,) = [decision for decision in record["decisions"] if decision["what"] == "order"]
    assert (order["n_instances"], order["late"], record["unserved"]) == (1, True, [])
    assert order["about"] == "until 2027-02-14 a loss takes capacity"
    check = record["checks"][0]
    assert (check["check"], check["ok"]) == ("every service is served", True)
    # Without those two nothing is served until then, and there is no machine that could be lost.
    record = solved([service], supply=committed(2) | {"committed": []}, policy=policy)
    (order,) = [decision for decision in record["decisions"] if decision["what"] == "order"]
    assert (order["about"], [gap["share"] for gap in record["unserved"]]) == (None, [1])


def test_an_order_that_comes_later_than_a_spare_is_needed_speaks_against_signing() -> None:
    """Two of three machines are committed, and hold what is asked; the third was ordered, for 20 January."""
    ordered = [{"type": NC40, "count": 1, "purchase": "on-demand", "from": "2027-01-20"}]
    service, policy = SERVICE | {"demand": {"at_once": 250}}, {"redundancy": {"survive": "machine"}}
    record = solved([service], supply=committed(2) | {"ordered": ordered}, policy=policy)
    assert record["unserved"] == [] and all(decision["what"] != "order" for decision in record["decisions"])
    (check,) = [line for line in record["checks"] if line["check"].startswith("what was ordered is there")]
    assert check["found"] == [f"{NC40}: until 2027-01-19 a loss takes capacity, as what was ordered comes later"]
    in_time = [ordered[0] | {"from": "2027-01-01"}]
    (check,) = [
        line
        for line in solved([service], supply=committed(2) | {"ordered": in_time}, policy=policy)["checks"]
        if line["check"].startswith("what was ordered is there")
    ]
    assert check["ok"]


@pytest.mark.parametrize(
    ("n_committed", "lost"), [(0, {"batch": 1, "chat": 1}), (3, {"batch": 1}), (4, {"batch": 0.5})]
)
def test_a_late_order_leaves_a_gap(n_committed: int, lost: dict[str, float]) -> None:
    """Five machines from 1 January; what is asked for on 26 November is there on 15 February, after 21 days of
    approval and 60 of lead time: 45 of 90 days without it. All 90 days were paid."""
    supply = committed(n_committed) if n_committed else LATE
    record = solved(PAIR, supply=supply, policy={"approval_days": 21})
    (order,) = [decision for decision in record["decisions"] if decision["what"] == "order"]
    assert (order["late"], order["kind"], order["order_by"]) == (True, "now", "2026-10-12")
    assert (order["there_on"], order["cover"]) == ("2027-02-15", None)
    assert {lack["service"]: lack["share"] for lack in order["shed"]} == pytest.approx(lost)
    assert {(lack["from"], lack["until"]) for lack in order["shed"]} == {("2027-01-01", "2027-02-14")}
    assert record["unserved"] == order["shed"] and order["about"] is None  # nothing is to survive a loss
    paid = n_committed * 5 * 730 * 3
    assert of_all(record, "p50_usd") == pytest.approx(
        [paid + (5 - n_committed) * ON_DEMAND * share for share in (0.5, 1, 1)], rel=1e-12
    )
    (check,) = [check for check in record["checks"] if check["check"] == "every service is served"]
    assert len(check["found"]) == len(lost)


def test_a_batch_of_the_night_waits_in_no_hour_that_it_has_for_itself() -> None:
    """Three machines, of which two are there: the day lacks one, the night's batch fills two and lacks none."""
    night = [0.0 if 8 <= hour < 20 else 1.0 for hour in range(24)]
    day = [1.0 - share for share in night]
    services = [service | {"profile": shares} for service, shares in zip(PAIR, (night, day), strict=True)]
    record = solved(services, supply=committed(2), policy={"approval_days": 21})
    assert of_all(record, "needed", "supply") == [3, 3, 3]
    assert {lack["service"]: lack["share"] for lack in record["unserved"]} == {"chat": pytest.approx(1 / 3)}


def test_who_waits_in_an_hour_that_is_not_the_busiest() -> None:
    """Five machines by night, three by day, of which two are there: the day lacks one of its own. It was said to lack
    nothing, as it fills none in the busiest hour of the machines."""
    night = [0.0 if 8 <= hour < 20 else 1.0 for hour in range(24)]
    batch, chat = PAIR
    services = [
        batch | {"demand": {"at_once": 700}, "profile": night},
        chat | {"profile": [1.0 - share for share in night]},
    ]
    record = solved(services, supply=committed(2), policy={"approval_days": 21})
    assert of_all(record, "needed", "supply") == [5, 5, 5]
    lost = {lack["service"]: lack["share"] for lack in record["unserved"]}
    assert lost == {"batch": pytest.approx(3 / 5), "chat": pytest.approx(1 / 3)}


def test_on_demand_covers_from_the_day_on_which_it_can_be_there() -> None:
    """A year is there on 15 February, on demand on 16 January: 15 days without any, 30 covered."""
    lead = {"lead_time_days": {"reserved-1yr": 60, "on-demand": 30}}
    record = solved([SERVICE], supply=lead, policy={"approval_days": 21, "buy": "reserved-1yr"})
    (order,) = record["decisions"]
    assert order["cover"] == {"purchase": "on-demand", "monthly_usd": 6.98 * 730, "there_on": "2027-01-16"}
    (lost,) = record["unserved"]
    assert (lost["from"], lost["until"], lost["share"]) == ("2027-01-01", "2027-01-15", 1)
    first = 3 * (ONE_YEAR * 45 / 90 + ON_DEMAND * 30 / 90)
    assert of_all(record, "p50_usd") == pytest.approx([first, *[3 * ONE_YEAR] * 2])
    assert record["money"][0]["late_usd"] == pytest.approx(3 * ON_DEMAND * 30 / 90)
    assert of_all(record, "bound_usd") == pytest.approx([3 * ONE_YEAR * 4, 0, 0])


def test_nobody_orders_for_days_before_an_order_can_be_there() -> None:
    """Five machines for a quarter in which none can be there, two afterwards: two are ordered."""
    falling = SERVICE | {"demand": {"at_once": 700}, "growth": {"steps": {"2027-Q2": 0.4}}}
    record = solved([falling], supply={"lead_time_days": {"on-demand": 126}})  # there on 1 April
    orders = [
        (decision["n_instances"], decision["needed_from"])
        for decision in record["decisions"]
        if decision["what"] == "order"
    ]
    assert orders == [(2, "2027-01-01")] and {decision["what"] for decision in record["decisions"]} == {"order"}
    assert of_all(record, "p50_usd") == pytest.approx([0, 2 * ON_DEMAND, 2 * ON_DEMAND])
    assert [(lack["quarter"], lack["share"]) for lack in record["unserved"]] == [("2027-Q1", 1)]


def test_a_quarter_that_runs_is_ordered_for_today() -> None:
    record = solved([SERVICE], as_of="2027-02-15")
    (order,) = [decision for decision in record["decisions"] if decision["what"] == "order"]
    assert (order["order_by"], order["needed_from"], order["late"]) == ("2027-02-15", "2027-02-15", False)
    late = solved([SERVICE], as_of="2027-02-15", policy={"approval_days": 30})
    assert [(lack["from"], lack["until"]) for lack in late["unserved"]] == [("2027-02-15", "2027-03-16")]
    assert late["money"][0]["p50_usd"] == pytest.approx(3 * ON_DEMAND * (90 - 30) / 90)


def test_a_decision_is_due_before_the_next_plan_or_a_forecast() -> None:
    growing = SERVICE | {"growth": 0.5}
    record = solved([growing], 4, policy={"approval_days": 30})
    due = [(decision["order_by"], decision["kind"]) for decision in record["decisions"]]
    assert due[:3] == [("2026-12-02", "now"), ("2027-03-02", "forecast"), ("2027-06-01", "forecast")]
    assert all((day < "2027-02-26") == (kind == "now") for day, kind in due)


def test_the_reply_is_due_when_the_first_decision_is() -> None:
    """A quota is late already, and its reply is due before that of the order: the page named the order's day."""
    quota = {"quota": [{"type": NC40, "limit": 1, "request_lead_days": 21}]}
    data = {
        "plan": {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"},
        "services": [SERVICE],
        "supply": {"allowed": {"instances": [NC40]}, **quota},
        "policy": {"approval_days": 30},
    }
    whole = findings(solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG)))
    first = whole.decisions[0]
    assert (first.what, first.late, first.order_by) == ("raise quota", True, datetime.date(2026, 11, 11))
    assert plan_page(whole).sign_by == "2026-12-11"


def test_of_a_saving_it_is_said_what_lies_after_the_plan() -> None:
    """Three machines at once and always: a year of each saves a quarter's difference four times, of which the plan has
    three."""
    record = solved([SERVICE], 3, supply={"allowed": {"instances": [NC40], "exclude": ["reserved-3yr", "spot"]}})
    (order,) = record["decisions"]
    _, commit = ways(order)
    saved = 3 * (ON_DEMAND - ONE_YEAR)
    assert (commit["what"], commit["n_instances"], commit["order_by"]) == ("commit", 3, order["order_by"])
    assert commit["expected_saving_usd"] == pytest.approx(4 * saved)
    assert commit["saving_after_plan_usd"] == pytest.approx(saved)
    assert commit["binds_usd"] == pytest.approx(12 * ONE_YEAR) and commit["usd"] == pytest.approx(9 * ONE_YEAR)


def test_more_demand_is_never_for_less_in_a_term() -> None:
    """Of machines with a fixed term, at prices that do not rise: whatever is needed when."""
    dice = random.Random(8)
    for _ in range(200):
        n = dice.randint(1, 9)
        there, purchase = (
            Fraction(dice.randint(0, min(2, n - 1))) + dice.choice((0, Fraction(2, 5))),
            dice.choice(CLASSES),
        )
        spans = Spans.cut(n, [there], Fraction(0), [(there, QUARTERS_OF_TERM[purchase])])
        buying = Buying(purchase, spans, datetime.date.max, Fraction(0), there, (None,) * len(spans))
        less = numpy.array([[float(dice.randint(0, 5))] for _ in range(n)])
        more = less + numpy.array([[float(dice.choice((0, 0, 1, 3)))] for _ in range(n)])
        prices = numpy.array(sorted((dice.uniform(1, 2) for _ in range(n)), reverse=True))[spans.quarters, None, None]
        none, flat = numpy.zeros(len(spans)), numpy.ones((len(spans), 1))
        needed = [short[spans.quarters][..., None] for short in (less, more)]
        (few,), (many,) = (bought(buying, short, short, none, flat, numpy.ones(1)) for short in needed)
        usd = [float((part.machine_months * prices).sum()) for part in (few, many)]
        assert usd[0] <= usd[1] + 1e-9, (buying, less, more)
        for s in numpy.flatnonzero(buying.missing == 0):  # what is short is there
            assert few.gap[s] >= needed[0][s] and many.gap[s] >= needed[1][s]


def test_a_move_that_leaves_a_term_behind_saves_nothing() -> None:
    """Two services whose demand falls, on machines of a year: against all ways of keeping each on one type. By the
    price of each quarter alone they moved to smaller machines, and the plan cost $548,770; and $467,184 where a search
    went by what machines would cost, not by whole plans."""
    types = ("aws/g6e.12xlarge", "aws/p4d.24xlarge")
    steps = {"2027-Q2": 0.5, "2027-Q3": 3}, {"2027-Q2": 0.5, "2027-Q3": 0.3}
    services = [
        {"id": model, "demand": {"at_once": 40}, "model": model, "growth": {"steps": step}}
        for model, step in zip(("gpt-oss-120b", "llama-3.1-70b"), steps, strict=True)
    ]

    def spend(services: list[dict[str, Any]]) -> float:
        data = {
            "plan": {"start": "2027-Q1", "quarters": 3, "as_of": "2026-11-26"},
            "policy": {
                "buy": "reserved-1yr",
                "redundancy": {"survive": "machine", "hot_share": 1},
                "near_tie_fraction": 0,
                "moving_cost_usd": 0,
            },
            "supply": {"allowed": {"instances": list(types)}},
            "services": services,
        }
        answer = solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG), timed=False)
        return float("inf") if answer.hardware.nothing else float(answer.money["spend_usd"][:, 1].sum())

    every = [
        spend([service | {"allowed": {"instances": [name]}} for service, name in zip(services, names, strict=True)])
        for names in itertools.product(types, repeat=2)
    ]
    assert spend(services) <= min(every) * (1 + 1e-12)
    assert spend(services) == pytest.approx(452_707, abs=1)


def test_services_of_the_lowest_priority_wait() -> None:
    filled = {0: 2.0, 1: 1.0, 2: 0.5, 3: 0.5}
    priorities = [1, 2, 3, 3]
    lost = {available: shed(filled, priorities, available) for available in (4, 3.5, 3, 1, 0)}
    assert lost[4] == {} and lost[3.5] == {2: 0.5, 3: 0.5} and lost[3] == {2: 1, 3: 1}
    assert lost[1] == {0: 0.5, 1: 1, 2: 1, 3: 1} and {*lost[0].values()} == {1}
    shares = [sum(share * filled[s] for s, share in shares_lost.items()) for shares_lost in lost.values()]
    assert all(less <= more for less, more in itertools.pairwise(shares))


def test_what_is_to_be_signed_now_and_what_is_signed_already() -> None:
    """Of two machines more a quarter those of the first must be signed before the next plan, on 26 February."""
    services = [SERVICE | {"growth": {"series": [1, 1.7, 2.4, 3.1]}}]
    supply = {
        "committed": [{"id": "c", "type": NC40, "count": 1, "until": "2027-12-31", "usd_per_hour": 5}],
        "lead_time_days": {"reserved-1yr": 30},
    }
    more = {"prices": {"hours_per_month": 730}, "policy": {"buy": "reserved-1yr"}}
    record = solved(services, 4, supply=supply, **more)
    orders = [decision for decision in record["decisions"] if decision["what"] == "order"]
    now = [order for order in orders if order["kind"] == "now"]
    assert [order["needed_from"] for order in now] == ["2027-01-01"] and len(orders) > len(now)
    totals = record["totals"]
    assert totals["sign_now_usd"] == pytest.approx(now[0]["n_instances"] * 4 * ONE_YEAR)
    assert totals["sign_now_binds_usd"] == pytest.approx(sum(order["binds_usd"] for order in now))
    assert totals["already_usd"] == pytest.approx(4 * 5 * 730 * 3)
    data = {"plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"}, "services": services, **more}
    allowed = {"allowed": {"instances": [NC40]}}
    page = plan_page(findings(solved_plan(plan_of(Document("p", {**data, "supply": supply | allowed}, {}), CATALOG))))
    _, to_sign, _ = page.tiles
    assert to_sign.amount == f"${totals['sign_now_usd']:,.0f}"
    assert any(f"${totals['already_usd']:,.0f}" in str(fact) for fact in to_sign.facts)
    tables = [section.table for section in (page.first[0], page.reasons[-1])]
    to_sign_days, forecast_days = ([str(row[0]) for row in table.rows] for table in tables if table)
    assert to_sign_days == [now[0]["order_by"]] and len(forecast_days) == len(orders) - 1


def test_an_offered_commitment_is_in_no_sum_and_binds() -> None:
    """Four machines that run on demand may be committed: the head said that what is to be signed binds nothing, and
    the row that its money is in the plan."""
    supply = {"allowed": {"instances": ["aws/p5.4xlarge"]}, "ordered": [{"type": "aws/p5.4xlarge", "count": 4}]}
    whole = whole_plan([SERVICE], 1, supply=supply, as_of="2026-12-20")
    record, page = record_of(whole), plan_page(whole)
    (commit,) = record["decisions"]
    assert (commit["what"], commit["n_instances"], commit["kind"]) == ("commit", 4, "now")
    totals = record["totals"]
    assert totals["sign_now_usd"] == totals["sign_now_binds_usd"] == 0
    assert totals["offered_now_binds_usd"] == commit["binds_usd"] > 0
    assert totals["ordered_before_usd"] == pytest.approx(sum(of_all(record, "p90_usd")))
    binds = f"${commit['binds_usd']:,.0f}"
    table = next(section.table for section in page.first if section.table)  # of the decisions to sign
    assert [str(text) for text in table.rows[0][4:6]] == ["–", binds]
    assert any(binds in str(fact) for fact in page.tiles[1].facts)
    assert any(binds in str(text) for _, text in page.brief.points)


IN_EUROPE = {
    "allowed": {"region": "eu"},
    "committed": [
        {
            "id": "c",
            "type": NC40,
            "count": 4,
            "purchase": "reserved-1yr",
            "until": "2027-12-31",
            "usd_per_hour": 4.9,
        }
    ],
}


@pytest.mark.parametrize(
    ("prices", "purchase", "fifth_usd", "bound_usd"),
    [
        ({}, "on-demand", 8.376 * 730 * 3, 0),
        ({"hours_per_month": 200}, "on-demand", 8.376 * 200 * 3, 0),
        ({"usd_per_hour": {NC40: 5}}, "reserved-1yr", 5 * 730 * 3, 5 * 730 * 12),
    ],
)
@pytest.mark.parametrize("named", [{}, {"allowed": {"instances": [NC40]}}])
def test_machines_that_are_paid_serve_though_their_class_is_not_sold(
    named: Options, prices: dict[str, Any], purchase: str, fifth_usd: float, bound_usd: float
) -> None:
    """In Europe they are sold on demand alone: the fifth is bought so, or as the plan states its price. Four were idle
    beside others for a year, and a service that named them was refused."""
    service = SERVICE | {"demand": {"at_once": 700}} | named
    record = solved([service], 2, supply=IN_EUROPE, policy={"buy": "reserved-1yr"}, prices=prices)
    assert [(row["instance"], row["committed"], row["needed"], row["gap"]) for row in record["supply"]] == [
        (NC40, 4, 5, 1)
    ] * 2
    assert of_all(record, "p50_usd") == pytest.approx([4 * 4.9 * 730 * 3 + fifth_usd] * 2)
    assert of_all(record, "bound_usd") == pytest.approx([bound_usd, 0])
    (order,) = record["decisions"]
    assert (order["n_instances"], order["purchase"]) == (1, purchase)


def test_who_names_machines_that_are_not_sold_in_a_class_is_told_the_key_of_the_plan() -> None:
    service, supply = SERVICE | {"allowed": {"instances": [NC40]}}, {"allowed": {"region": "eu"}}
    for own, key, buy in (({}, "policy.buy", "reserved-1yr"), ({"buy": "spot"}, "services.buy", "on-demand")):
        with pytest.raises(ScenarioError, match=f"Classes with prices: on-demand. Name one with {key}"):
            solved([service | own], 1, supply=supply, policy={"buy": buy})


def test_owned_and_committed_machines_serve_whatever_class_is_bought() -> None:
    """Owned ones whose kind is not sold for a year in Europe; committed ones that are not sold there at all; and of a
    batch on spot."""
    owned = {"id": "o", "gpu": "h100-nvl", "count": 4, "gpus_per_machine": 1, "cost_per_quarter": 100}
    supply = {"allowed": {"region": "eu"}, "owned": [owned]}
    record = solved([SERVICE], 1, supply=supply, policy={"buy": "reserved-1yr"})
    assert [(row["instance"], row["owned"], row["gap"]) for row in record["supply"]] == [(NC40, 4, 0)]
    large = "aws/p6-b200.48xlarge"
    committed = {"id": "c", "type": large, "count": 1, "until": "2027-12-31", "usd_per_hour": 60}
    supply = {"allowed": {"region": "eu"}, "committed": [committed]}
    record = solved([SERVICE], 1, supply=supply, policy={"buy": "reserved-1yr"})
    assert [(row["instance"], row["committed"], row["gap"]) for row in record["supply"]] == [(large, 1, 0)]
    record = solved([SERVICE | {"buy": "spot"}], 1, supply=IN_EUROPE)
    assert [(row["instance"], row["committed"], row["gap"]) for row in record["supply"]] == [(NC40, 4, 0)]


def test_a_commitment_serves_who_names_its_type_and_who_could_have_a_cheaper_one() -> None:
    """Six are committed, of which the search needs four and the chat, which names none, two. They went by the name of
    the cheaper machine with the same GPU that the chat could buy, and the search bought four more."""
    committed = {
        "id": "c",
        "type": "aws/g6e.2xlarge",
        "count": 6,
        "purchase": "reserved-1yr",
        "until": "2027-12-31",
        "usd_per_hour": 1.5,
    }
    search = {
        "id": "search",
        "demand": {"requests": {"peak_per_second": 18}},
        "request": {"input_tokens": 1000, "output_tokens": 100},
        "model": {"id": "llama-3.1-8b", "weight_dtype": "fp8"},
        "targets": {"tpot_ms": 40, "ttft_ms": 800},
        "allowed": {"instances": ["aws/g6e.2xlarge"]},
    }
    chat = {
        "id": "chat",
        "demand": {"users": {"people": 1500}},
        "request": {"context_tokens": 4096, "output_tokens": 512},
        "model": "gpt-oss-20b",
        "targets": {"tpot_ms": 50, "ttft_ms": 2000},
    }
    record = solved([search, chat], 1, supply={"allowed": {"region": "eu"}, "committed": [committed]})
    (supply,) = record["supply"]
    assert (supply["instance"], supply["needed"], supply["gap"], supply["idle"]) == ("aws/g6e.2xlarge", 6, 0, 0)
    assert of_all(record, "p50_usd") == pytest.approx([6 * 1.5 * 730 * 3])


def test_a_commitment_without_a_price_is_said_on_the_first_page() -> None:
    def warnings(**price: float) -> str:
        commitment = {
            "id": "c-1",
            "type": NC40,
            "count": 1,
            "purchase": "capacity-block",
            "until": "2027-12-31",
            **price,
        }
        data = {
            "plan": {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"},
            "services": [SERVICE],
            "supply": {"allowed": {"instances": [NC40]}, "committed": [commitment]},
        }
        return " ".join(map(str, plan_page(findings(solved_plan(plan_of(Document("p", data, {}), CATALOG)))).warnings))

    assert "c-1" in warnings() and "usd_per_hour" in warnings()
    assert not warnings(usd_per_hour=4)


def test_machines_of_a_decision_are_whole_ones() -> None:
    """Also of a move to machines that services share, and of a pool that is no whole number of machines."""
    chat = {"id": "chat", "demand": {"at_once": 20}, "request": {"context_tokens": 8192}}
    models = [{"id": "8b"}, {"from": "2027-Q2", "id": "70b"}]
    services = [
        chat | {"model": models},
        {"id": "rag", "launch": "2027-Q2", "demand": {"at_once": 30}, "model": "70b"},
    ]
    allowed = {"instances": ["aws/g6e.xlarge", "aws/p5.48xlarge"]}
    record = solved(services, supply={"allowed": allowed})
    (move,) = [decision for decision in record["decisions"] if decision["what"] == "move"]
    assert move["usd"] is None  # what it saves is in the orders' money, of which it is no part
    share = next(
        row["n_instances"] for row in record["services"] if row["id"] == "chat" and row["quarter"] == "2027-Q2"
    )
    assert 0 < share < 1 and move["n_instances"] == 1
    pool = {"id": "o", "gpu": "h100", "count": 12, "until": "2027-03-31"}
    rag = {"id": "rag", "demand": {"at_once": 30}, "model": "70b"}
    record = solved([rag], supply={"allowed": {"instances": ["aws/p5.48xlarge"]}, "owned": [pool]})
    lines = [*record["decisions"]]
    lines += (line["or"] for line in lines if line["or"])  # and the other ways of those
    assert [line["n_instances"] for line in lines if line["what"] == "replace owned"] == [2]


def test_contingency_is_of_what_is_not_owned_or_committed_already() -> None:
    """Of three machines one is committed; a tenth of the price of the two others."""
    commitment = {"id": "c", "type": NC40, "count": 1, "until": "2027-12-31", "usd_per_hour": 5}
    pool = {"id": "idle", "gpu": "l40s", "count": 4, "cost_per_quarter": 1000}
    prices = {"contingency_fraction": 0.1}
    record = solved([SERVICE], 2, supply={"committed": [commitment], "owned": [pool]}, prices=prices)
    assert of_all(record, "contingency_p90_usd") == pytest.approx([0.1 * 2 * ON_DEMAND] * 2)
    spend = 5 * 730 * 3 + 1000 + 2 * ON_DEMAND
    assert of_all(record, "p90_usd") == pytest.approx([spend] * 2)
    whole = spend + 0.1 * 2 * ON_DEMAND
    for more, verdict in ((1, "within"), (-1, "over at p50")):
        budget = {f"2027-Q{q}": whole + more for q in (1, 2)}
        again = solved([SERVICE], 2, supply={"committed": [commitment], "owned": [pool]}, prices=prices, budget=budget)
        assert of_all(again, "verdict") == [verdict] * 2
        assert {row["service"] for row in again["served"]} == ({"one"} if more < 0 else set())


def test_who_waits_first_takes_idle_machines_that_are_committed() -> None:
    """Both lack all their machines until orders are there; on the other type of machine the load of each takes five, of
    which so many are committed and idle."""
    other_type = "aws/g6e.xlarge"
    demand = {"demand": {"at_once": 150}, "model": "8b"}

    def shares(count: int, first: str = "chat") -> dict[str, float]:
        commitment = {"id": "c", "type": other_type, "count": count, "until": "2027-12-31", "usd_per_hour": 5}
        supply = {**LATE, "committed": [commitment], "allowed": {"instances": [NC40, other_type]}}
        services = [{"id": name, "priority": 1 if name == first else 2, **demand} for name in ("batch", "chat")]
        record = solved(services, 1, supply=supply, policy={"redundancy": {"survive": "machine"}})
        return {lack["service"]: lack["share"] for lack in record["unserved"]}

    for count in (1, 2, 3):
        assert shares(count) == pytest.approx({"chat": 1 - count / 5, "batch": 1})
    assert shares(2, "batch") == pytest.approx({"batch": 0.6, "chat": 1})


def test_renewals_of_a_quarter_are_one_decision() -> None:
    """Three machines are needed when two commitments of two end: the two cheaper ones and one more are renewed. Each of
    them was a decision, and both together were four."""
    terms = [
        {"id": f"c{usd}", "type": NC40, "count": 2, "usd_per_hour": usd, "purchase": "reserved-1yr", "until": until}
        for usd, until in ((6, "2027-06-30"), (5, "2027-07-15"))
    ]
    record = solved([SERVICE], 4, supply={"committed": terms, "allowed": {"instances": [NC40], "exclude": ["spot"]}})
    lines = [way for decision in record["decisions"] for way in ways(decision)]
    (renewal,) = [line for line in lines if line["what"] == "renew"]
    assert renewal["n_instances"] == 3 and renewal["needed_from"] == "2027-07-01"
    assert "c6" in renewal["about"] and "c5" in renewal["about"]
    assert renewal["binds_usd"] == pytest.approx((2 * 5 + 6) * 730 * 12)


def test_a_renewal_of_which_most_lies_after_the_plan_has_a_cost_of_waiting() -> None:
    """It was an array, and a plan whose renewal is no order's other way ended with a traceback."""
    signed = {"id": "c", "type": NC40, "count": 3, "usd_per_hour": 5, "purchase": "reserved-1yr", "until": "2027-09-30"}
    decided = whole_plan([SERVICE], 4, supply={"committed": [signed]}).decisions
    (renewal,) = [way for decision in decided for way in decision.ways if way.what == "renew"]
    assert renewal.saves_usd is None and type(renewal.cost_of_waiting_usd) is float and hash(renewal)
    assert renewal.cost_of_waiting_usd == pytest.approx(3 * (ON_DEMAND - 5 * 730 * 3))


def test_nothing_is_bound_for_machines_whose_need_ends() -> None:
    """The commitment ends a month before the last quarter that needs its machines: they were renewed for a year."""
    signed = {"id": "c", "type": NC40, "count": 3, "usd_per_hour": 5, "purchase": "reserved-1yr", "until": "2027-05-31"}
    supply = {"committed": [signed], "allowed": {"instances": [NC40], "exclude": ["spot"]}}
    policy = {"release_after_quarters": 1}
    kinds = {}
    for name, more in (("retires", {"retire": "2027-Q3"}), ("falls", {"growth": {"steps": {"2027-Q3": 0.1}}})):
        record = solved([SERVICE | more], 4, supply=supply, policy=policy)
        lines = [way for decision in record["decisions"] for way in ways(decision)]
        kinds[name] = [(line["what"], line["n_instances"]) for line in lines if "commitment" in (line["about"] or "")]
    assert kinds == {"retires": [("let end", 3)], "falls": [("renew", 1)]}


def test_nothing_is_committed_for_what_is_kept_idle() -> None:
    """Of three machines one is needed from the second quarter on, and three are kept for another one, in case demand
    returns: a block of all of them was offered for that."""
    falls = {"id": "one", "demand": {"at_once": 2600}, "model": "8b", "growth": {"steps": {"2027-Q2": 0.3}}}
    supply = {"allowed": {"instances": ["aws/p5.48xlarge"], "exclude": ["spot"]}}
    record = solved([falls], 2, supply=supply, policy={"release_after_quarters": 1}, as_of="2027-02-01")
    (needed, fewer), (_, kept) = of_all(record, "needed", "supply"), of_all(record, "kept", "supply")
    assert fewer < needed == kept
    lines = [way for decision in record["decisions"] for way in ways(decision)]
    later = [line for line in lines if line["what"] == "commit" and line["needed_from"] == "2027-04-01"]
    assert [line["n_instances"] for line in later] == [fewer]


def test_a_block_of_days_covers_a_late_order() -> None:
    """Where it is sold and its lead time allows; not where it is excluded, and no term of a year covers."""
    records = {}
    block = {"capacity-block": 5}
    for name, allowed, lead in (("all", {}, block), ("none", {"exclude": [*block]}, block), ("judged", {}, {})):
        supply = {
            "allowed": {"instances": ["aws/p5en.48xlarge"], **allowed},
            "lead_time_days": {"on-demand": 60, **lead},
        }
        services = [{"id": "one", "demand": {"at_once": 400}, "model": "70b"}]
        records[name] = solved(services, 1, supply=supply)
    # Without a stated lead time it was there at once.
    (covered,), (late,), (judged,) = (
        [decision for decision in record["decisions"] if decision["late"]] for record in records.values()
    )
    assert covered["cover"]["purchase"] == "capacity-block" and covered["cover"]["there_on"] == "2026-12-01"
    assert records["all"]["unserved"] == [] and records["all"]["money"][0]["late_usd"] > 0
    assert judged["cover"]["there_on"] == "2026-12-03"
    assert late["cover"] is None and records["none"]["unserved"][0]["share"] == 1


def test_a_machine_of_gpus_priced_one_by_one_is_committed_as_answers_name_it() -> None:
    """What a plan orders is its commitment's type word for word; of GPUs alone nobody knows how many machines they
    are."""
    service, allowed = SERVICE | {"model": "llama-3.3-70b", "demand": {"at_once": 100}}, {"providers": ["verda"]}
    head = {"start": "2027-Q1", "quarters": 1, "as_of": "2026-11-28"}

    def planned(**supply: Any) -> dict[str, Any]:
        data = {"plan": head, "services": [service], "supply": {"allowed": allowed, **supply}}
        return PlanRecord(solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG)))

    (order,) = planned()["decisions"]
    name, n = order["instance"], order["n_instances"]
    assert re.fullmatch(r"verda/.+ x[1248]", name)
    part = {"id": "c", "count": n, "until": "2028-12-31"}
    assert planned(committed=[part | {"type": name}])["decisions"] == []
    over = planned(quota=[{"type": name, "limit": n - 1}])["decisions"]
    assert ("raise quota", name) in {(decision["what"], decision["instance"]) for decision in over}
    with pytest.raises(ScenarioError, match=r"is priced by the GPU\. Name a machine: '.+ x1', or x2, x4, x8"):
        planned(committed=[part | {"type": name.rpartition(" x")[0]}])


FULL = SERVICE | {"demand": {"at_once": 16 * 145}}  # sixteen machines
TEN = {"quota": [{"type": NC40, "limit": 10, "request_lead_days": 21}]}  # raised on 4 January, with 14 days of approval


def test_a_quota_limits_what_is_rented_until_it_is_raised() -> None:
    """Sixteen machines ran on the first three days of the quarter, of which ten are allowed, and nothing was unserved.
    Three of 90 days the six others are not there, nor paid."""
    record = solved([FULL], 2, supply=TEN, policy={"approval_days": 14}, as_of="2026-11-30")
    assert of_all(record, "needed", "supply") == [16, 16]
    (lost,) = record["unserved"]
    assert (lost["from"], lost["until"], lost["limit"]) == ("2027-01-01", "2027-01-03", "quota")
    assert lost["share"] == pytest.approx(6 / 16)
    assert of_all(record, "p90_usd") == pytest.approx([(16 - 6 * 3 / 90) * ON_DEMAND, 16 * ON_DEMAND])
    order, quota = (
        [decision for decision in record["decisions"] if decision["what"] == kind] for kind in ("order", "raise quota")
    )
    assert [(line["late"], line["shed"]) for line in order] == [(False, [])]
    assert order[0]["usd"] == pytest.approx(sum(of_all(record, "p90_usd")))
    assert [(line["late"], line["there_on"], line["shed"]) for line in quota] == [(True, "2027-01-04", [lost])]
    served = {cut["limit"]: (cut["until"], cut["share"]) for cut in record["served"] if cut["quarter"] == "2027-Q1"}
    assert served == {"machines": ("2027-01-03", pytest.approx(10 / 16)), "quota": (None, 0.6)}
    (check,) = [check for check in record["checks"] if check["check"] == "every service is served"]
    assert not check["ok"]


def test_a_quota_limits_what_covers_a_late_order() -> None:
    """Sixteen machines of a year are there on 12 February; until then ten are rented on demand, from 4 January on all
    sixteen. The quota is in time for the second quarter's two."""
    growing = FULL | {"growth": {"steps": {"2027-Q2": 18 / 16}}}
    supply = TEN | {"lead_time_days": {"reserved-1yr": 60}}
    policy = {"approval_days": 14, "buy": "reserved-1yr"}
    record = solved([growing], 2, supply=supply, policy=policy, as_of="2026-11-30")
    assert [(lack["until"], lack["share"]) for lack in record["unserved"]] == [("2027-01-03", pytest.approx(6 / 16))]
    covered = 10 * 42 / 90 + 6 * (42 - 3) / 90
    first = covered * ON_DEMAND + 16 * ONE_YEAR * 48 / 90
    assert of_all(record, "p90_usd") == pytest.approx([first, 18 * ONE_YEAR])
    assert record["money"][0]["late_usd"] == pytest.approx(covered * ON_DEMAND)


def test_the_lowest_priority_waits_for_a_quota() -> None:
    """Of five machines four are allowed: the batch of two lacks one. One that is committed counts."""
    supply = {"quota": [{"type": NC40, "limit": 4, "request_lead_days": 60}]}
    for contracts in (
        {},
        {"committed": [{"id": "c", "type": NC40, "count": 1, "until": "2028-12-31", "usd_per_hour": 5}]},
    ):
        record = solved(PAIR, supply=supply | contracts)
        assert {lack["service"]: lack["share"] for lack in record["unserved"]} == {"batch": pytest.approx(0.5)}
        (days,) = {(lack["from"], lack["until"]) for lack in record["unserved"]}
        assert days == ("2027-01-01", "2027-01-24")


def test_a_term_that_costs_more_than_on_demand_is_said() -> None:
    """At $9 an hour for a year, and $6.98 on demand: the page said nothing of it."""
    dear = {"policy": {"buy": "reserved-1yr"}, "prices": {"usd_per_hour": {NC40: 9}}}
    for more, holds in ((dear, False), ({"policy": {"buy": "reserved-1yr"}}, True)):
        record = solved([SERVICE], 4, **more)
        (check,) = [check for check in record["checks"] if check["check"].startswith("every term costs less")]
        assert check["ok"] == holds and all(NC40 in line for line in check["found"])
        saved = {lever["what"]: (lever["usd"], lever["p50_usd"]) for lever in record["cheaper"]}
        assert ("buy: on-demand" in saved) != holds
        if not holds:  # demand has no band
            assert saved["buy: on-demand"] == pytest.approx([3 * 4 * (9 - 6.98) * 730 * 3] * 2)


def test_old_prices_are_said() -> None:
    """That of the machine was read on 18 June 2026, 226 days before the day of the plan; of one that is stated nothing
    is old."""
    for more, holds in (({}, False), ({"prices": {"usd_per_hour": {NC40: 7}}}, True)):
        record = solved([SERVICE], as_of="2027-01-30", **more)
        (check,) = [check for check in record["checks"] if check["check"] == "no price is older than 180 days"]
        assert check["ok"] == holds and (holds or NC40 in check["found"][0])


def test_the_class_lever_is_the_best_of_all_classes() -> None:
    """A year was named for a load that lasts a quarter; a block of its days costs less and binds nothing after it."""
    short = SERVICE | {"growth": {"series": [0.1, 1, 0.1, 0.1]}}
    supply = {"allowed": {"instances": ["aws/p5.4xlarge"]}}
    whole = whole_plan([short], 4, supply=supply)
    (lever,) = [lever for lever in best_of_kinds(whole.cheaper) if lever.change.kind == "class"]
    assert lever.change.name == "buy: capacity-block" and lever.bound_after_usd == 0
    block = solved([short], 4, supply=supply, policy={"buy": "capacity-block"})
    p50, p90 = (sum(of_all(block, f"{case}_usd")) for case in ("p50", "p90"))
    assert lever.asked_usd == pytest.approx(p90)
    assert lever.saves_p50_usd == pytest.approx(float(whole.answer.money["spend_usd"][:, 1].sum()) - p50)


def test_prices_that_are_bound_or_paid_are_those_whose_age_and_source_is_said() -> None:
    """A year's orders are paid at reserved-1yr prices, read on another day and from another list than those on demand;
    a commitment without a price of its own at the catalog's, used or not: the check said yes, and the mail the day of
    the prices on demand."""
    contract = {"id": "idle", "type": NC80, "count": 1, "until": "2028-12-31", "purchase": "reserved-1yr"}
    for more, subject, day in (
        ({"policy": {"buy": "reserved-1yr"}}, NC40, "2026-06-15"),
        ({"supply": {"committed": [contract]}}, "commitment idle", "2026-06-15"),
    ):
        whole = whole_plan([SERVICE], as_of="2026-12-28", **more)
        prices = {price.subject: price for price in paid_prices(whole.answer, whole.decisions)}
        price = next(price for name, price in prices.items() if name.startswith(subject))
        assert (price.price_as_of, price.purchase) == (day, "reserved-1yr")
        # The JSON of a plan has every price that it compared: they counted as stated in it, and had no day.
        again = plan_of_record(record_of(whole), "last", CATALOG)
        assert [*paid_prices(solved_plan(again), whole.decisions)] == [*prices.values()]
        page = plan_page(whole)
        assert day in page.brief.prices and any(day in source.text for source in page.sources)
        (check,) = [check for check in whole.checks if check.statement == "no price is older than 180 days"]
        assert any(line.startswith(subject) for line in check.against)


def test_what_an_answer_on_the_plans_day_avoids() -> None:
    """Machines are there at once, and 42 days of approval are counted from 26 November on, to 7 January: the first six
    days of the year nobody is served. An answer by the first of them avoids that, and was not said; without days of
    approval, or where nothing is late, there is nothing to say."""
    late, in_time = (whole_plan([SERVICE], 2, policy={"approval_days": days}) for days in (42, 30))
    assert [str(gap.last) for gap in late.unserved] == ["2027-01-06"] and late.at_once is not None
    assert unserved(late.at_once) == [] and in_time.at_once is None
    (sentence,) = answered_at_once(late)
    assert sentence in record_of(late)["warnings"] and "2027-01-07" in sentence
    assert "on 2027-01-01 nothing is late" in sentence and "no service waits" in sentence
    # Machines that are not there are not paid: with them six days more are.
    more_usd = sum(late.at_once.asked_usd) - sum(late.answer.asked_usd)
    assert more_usd == pytest.approx(3 * ON_DEMAND * 6 / 90) and "less is" not in sentence


def test_a_term_that_lies_mostly_after_the_plan_has_the_hours_beside_it() -> None:
    """Two machines more in the last of four quarters: three quarters of their year come after the plan. A forecast had
    the order for the year alone; that of the first quarter, whose year is the plan's, has no such way."""
    record = solved(
        [SERVICE | {"growth": {"steps": {"2027-Q4": 1.5}}}], 4, policy={"buy": "reserved-1yr"}, prices=FALLING
    )
    first, last = [decision for decision in record["decisions"] if decision["what"] == "order"]
    fall = 0.8 ** (4 / 4)
    assert (last["n_instances"], last["usd"]) == (2, pytest.approx(2 * ONE_YEAR * fall)) and first["or"] is None
    assert last["binds_usd"] == pytest.approx(4 * last["usd"])
    by_hour = last["or"]
    assert (by_hour["what"], by_hour["purchase"], by_hour["n_instances"]) == ("order", "on-demand", 2)
    assert by_hour["usd"] == pytest.approx(2 * ON_DEMAND * fall) and by_hour["binds_usd"] == 0
    # On the page the way ended at a colon, and a pool that is replaced as well.
    whole = whole_plan(
        [SERVICE | {"growth": {"steps": {"2027-Q4": 1.5}}}], 4, policy={"buy": "reserved-1yr"}, prices=FALLING
    )
    (order,) = [order for order in whole.decisions if order.other]
    (way,) = map(str, _other_ways(whole.answer, order))
    assert way.endswith(f": binds nothing, {USD.text(by_hour['usd'])}")
    assert order.other is not None
    pool = replace(order.other, what="replace owned", usd=None)
    assert not str(_other_ways(whole.answer, replace(order, other=pool))[0]).endswith(":")


def test_machines_that_a_move_leaves_are_released_when_it_is_over() -> None:
    """A load moves to another type with the second quarter, and both run for a day: the first ones were released on
    the day of the move. What that costs is in no sum: it is said, and how much."""
    growing = {"id": "one", "demand": {"at_once": 20}, "model": "8b", "growth": {"steps": {"2027-Q2": 40}}}
    supply = {"allowed": {"instances": ["aws/g6.xlarge", "aws/p5.4xlarge", NC40]}}
    policy = {"near_tie_fraction": 0, "move_days": 0.1}
    for more, day in (({}, "2027-04-02"), ({"moving_cost_usd": 100}, "2027-04-01")):
        record = solved([growing], 8, supply=supply, policy=policy | more)
        (move,) = [decision for decision in record["decisions"] if decision["what"] == "move"]
        (release,) = [decision for decision in record["decisions"] if decision["what"] == "release"]
        assert (move["needed_from"], release["needed_from"]) == ("2027-04-01", day)
        assert release["instance"] != move["instance"]
        order_usd = sum(decision["usd"] for decision in record["decisions"] if decision["what"] == "order")
        assert order_usd == pytest.approx(sum(of_all(record, "p90_usd")))
        # The machine that runs on is the one that is left, at its price: it was what the new ones cost.
        (month_usd,) = [row["monthly_usd"] for row in record["services"] if (row["quarter"], row["quantile"]) == FIRST]
        runs_on = month_usd * 0.1 / (730 / 24) * release["n_instances"]
        assert move["moving_usd"] == pytest.approx(more.get("moving_cost_usd", runs_on))
        whole = whole_plan([growing], 8, supply=supply, policy=policy | more)  # the forecast named no service
        tables = [section.table for section in plan_page(whole).reasons if section.title.startswith("Forecast")]
        assert [str(row[2]) for row in tables[0].rows if "move" in str(row[1])] == ["one"]
        assert record["totals"]["moves_usd"] == pytest.approx(move["moving_usd"])


def test_machines_that_were_ordered_for_who_moves_run_on_to_one_day_and_serve_nobody_else() -> None:
    """Three small machines were ordered for a service that moves to an owned one with the plan; another waits for an
    order until 14 February. They were paid until it came, released 30 days after that, and served both."""
    ordered = {"type": NC40, "count": 3, "services": ["one"]}
    waits = SERVICE | {"id": "waits", "allowed": {"instances": [NC80]}}
    supply = LATE | {"allowed": {"instances": [NC40, NC80, "aws/p5.48xlarge"]}, "ordered": [ordered]}
    supply |= {"owned": [{"id": "dgx", "gpu": "h100", "count": 8, "cost_per_quarter": 1000}]}
    record = solved([SERVICE, waits], 2, supply=supply, policy={"approval_days": 21})
    (move,) = [row for row in record["decisions"] if row["what"] == "move"]
    (release,) = [row for row in record["decisions"] if row["what"] == "release"]
    assert (release["instance"], release["n_instances"], release["needed_from"]) == (NC40, 3, "2027-01-31")
    assert record["totals"]["ordered_before_usd"] == 0 and record["on_others"] == []
    assert move["moving_usd"] == pytest.approx(3 * 6.98 * 24 * 30)


def test_what_would_give_back_machines_of_an_earlier_order() -> None:
    """Of five machines of 145 for 600 at once three were ordered before: two do up to 48 %, and of those that are
    ordered now four in all up to 96 %. The largest sum of a plan had no row of what would change it."""
    load = SERVICE | {"demand": {"at_once": 600}}
    whole = whole_plan([load], supply={"ordered": [{"type": NC40, "count": 3, "from": "2026-12-01"}]})
    (keep,) = whole.kept
    (order,) = [decision for decision in whole.decisions if decision.what == "order"]
    assert (keep.what, keep.n_instances, order.n_instances) == ("keep", 3, 2)
    assert (keep.break_even, order.break_even) == (BreakEven(0.48, 1.21), BreakEven(0.96, 1.21))
    page = plan_page(whole)
    (drawn,) = [part.table for part in page.sections if part.table and part.table.title.startswith("What would change")]
    assert [str(row[1]).split()[0] for row in drawn.rows] == ["keep", "order"]
    assert whole_plan([load]).kept == ()


def test_replicas_are_said_with_their_quarters() -> None:
    """Three in the first quarter and nine in the last; it was 3 to 9, and one had to look for when."""
    for growth, words_of in (({"2027-Q3": 3}, "3 in 2027-Q1 to 9 in 2027-Q3"), ({}, "3")):
        page = plan_page(whole_plan([SERVICE | {"growth": {"steps": growth}}]))
        (drawn,) = [part.table for part in page.sections if part.table and part.table.title.startswith("Services,")]
        assert str(drawn.rows[0][5]).startswith(f"{words_of} by ")


def test_what_survives_a_loss_is_priced_on_the_machines_that_are_best_without() -> None:
    """Two loads of NC40 take three of them, one of which may be lost, and without one of NC80 at $13 an hour: it was
    priced on two of NC40 at $6.98."""
    supply, prices = {"allowed": {"instances": [NC40, NC80]}}, {"usd_per_hour": {NC80: 13}}
    more = {
        "supply": supply,
        "prices": prices,
        "policy": {"near_tie_fraction": 0, "redundancy": {"survive": "machine"}},
    }
    levers = solved([SERVICE | {"demand": {"at_once": 280}}], 1, **more)["cheaper"]
    (saved,) = [lever["usd"] for lever in levers if lever["what"] == "survive: none"]
    assert saved == pytest.approx((3 * 6.98 - 13) * 730 * 3)


def test_headroom_is_priced_on_the_machines_that_are_best_without() -> None:
    """A load that one NC40 just holds takes NC80 with 10 % above it: without headroom it was priced on NC80 too, and
    saved nothing."""
    more = {
        "supply": {"allowed": {"instances": [NC40, NC80]}},
        "prices": {"usd_per_hour": {NC80: 13}},
        "policy": {"near_tie_fraction": 0, "headroom_fraction": 0.1},
    }
    levers = solved([SERVICE | {"demand": {"at_once": 138}}], 1, **more)["cheaper"]
    (saved,) = [lever["usd"] for lever in levers if lever["what"] == "headroom_fraction: 0"]
    assert saved == pytest.approx((13 - 6.98) * 730 * 3)


def test_what_a_near_tie_and_moves_keep_in_the_plan_is_a_lever() -> None:
    """A load that grows forty times moves from small machines to large ones, where that is no near tie and costs
    nothing. What a lever saves is less its moves; where they cost more, stated or judged, it does not stand. It was
    offered to save $12,982 with moves of $28,363."""
    growing = {"id": "one", "demand": {"at_once": 20}, "model": "8b", "growth": {"series": [1, 10, 40]}}
    supply = {"allowed": {"instances": ["aws/g6.xlarge", "aws/p5.4xlarge", NC40]}}

    def offered(**policy: float) -> tuple[float, list[dict[str, Any]]]:
        record = solved([growing], supply=supply, policy=policy)
        return sum(of_all(record, "p90_usd")), [lever for lever in record["cheaper"] if lever["kind"] == "machines"]

    kept_usd, levers = offered(moving_cost_usd=100)
    cheapest, none = offered(moving_cost_usd=0, near_tie_fraction=0)
    assert not none and kept_usd > cheapest
    best = max(levers, key=lambda lever: lever["usd"])
    assert [best["usd"], best["p50_usd"]] == pytest.approx([kept_usd - cheapest - 100] * 2) and best["moves_usd"] == 100
    assert best["asked_usd"] == pytest.approx(cheapest)
    assert offered(moving_cost_usd=10**6)[1] == []
    assert offered()[1] == []


def test_machines_that_were_ordered_before_wait_for_no_approval() -> None:
    """In the quarter that runs: of five machines three were ordered, the last of them there on 15 February; with 30
    days of approval two more are there on 3 March. The three are on no list to sign; of seven that were ordered two are
    given back."""
    services, policy = [SERVICE | {"demand": {"at_once": 5 * 145}}], {"approval_days": 30}
    supply = {"ordered": [{"type": NC40, "count": 3, "from": "2027-02-15"}]}
    record = solved(services, 1, supply=supply, policy=policy, as_of="2027-02-01")
    lost = [(lack["from"], lack["until"], lack["share"]) for lack in record["unserved"]]
    assert lost == [("2027-02-01", "2027-02-14", 1), ("2027-02-15", "2027-03-02", pytest.approx(2 / 5))]
    # On 14 and 30 of the quarter's 90 days they are not there.
    assert of_all(record, "p50_usd") == pytest.approx([(3 * (1 - 14 / 90) + 2 * (1 - 30 / 90)) * ON_DEMAND])
    decided = [(decision["what"], decision["n_instances"], decision["late"]) for decision in record["decisions"]]
    assert decided == [("order", 2, True)]
    assert record["decisions"][0]["usd"] == pytest.approx(2 * (1 - 30 / 90) * ON_DEMAND)
    totals = record["totals"]
    assert totals["ordered_before_usd"] == pytest.approx(3 * (1 - 14 / 90) * ON_DEMAND)
    named = ("sign_now_usd", "already_usd", "ordered_before_usd", "forecast_usd")
    assert sum(totals[name] for name in named) == pytest.approx(sum(of_all(record, "p90_usd")))
    record = solved(services, 1, supply={"ordered": [{"type": NC40, "count": 7}]}, policy=policy, as_of="2027-02-01")
    assert record["unserved"] == [] and of_all(record, "p50_usd") == pytest.approx([5 * ON_DEMAND])
    assert [(decision["what"], decision["n_instances"]) for decision in record["decisions"]] == [("release", 2)]


def test_machines_that_nothing_uses_any_more_are_given_back() -> None:
    """Two machines run that were ordered for another service; nothing uses them now. No decision named them."""
    left_over = {"ordered": [{"type": "aws/p5.48xlarge", "count": 2}, {"type": NC40, "count": 3}]}
    record = solved([SERVICE], 1, supply=left_over)
    assert [(decision["what"], decision["instance"], decision["n_instances"]) for decision in record["decisions"]] == [
        ("release", "aws/p5.48xlarge", 2)
    ]
    assert of_all(record, "p50_usd") == pytest.approx([3 * ON_DEMAND])


def after_order(machine: str, count: int, at_once: int, quarters: int, usd: float) -> dict[tuple[str, str], Any]:
    """What a plan decides, but for commitments, of a service for which machines were ordered, by kind and type. One of
    NC80, with two GPUs, costs two of NC40 and holds what two hold."""
    ordered = {"type": machine, "count": count, "services": ["one"]}
    supply, service = {"allowed": {"instances": [NC40, NC80]}, "ordered": [ordered]}, {"demand": {"at_once": at_once}}
    record = solved([SERVICE | service], quarters, supply=supply, policy={"moving_cost_usd": usd})
    decided = {(decision["what"], decision["instance"]): decision for decision in record["decisions"]}
    return {key: decision for key, decision in decided.items() if key[0] != "commit"}


def test_a_service_stays_on_what_was_ordered_for_it_unless_a_move_saves_more_than_it_costs() -> None:
    """Three machines of one GPU would do in place of two of two GPUs: a quarter of one is saved."""
    assert 2 * ON_DEMAND > 20_000 > ON_DEMAND
    assert after_order(NC80, 2, 400, 1, 20_000) == {}
    decided = after_order(NC80, 2, 400, 2, 20_000)
    counts = {("move", NC40): 3, ("order", NC40): 3, ("release", NC80): 2}
    assert {key: decision["n_instances"] for key, decision in decided.items()} == counts
    move = decided["move", NC40]
    assert [move["expected_saving_usd"], move["moving_usd"]] == pytest.approx([2 * ON_DEMAND - 20_000, 20_000])


@pytest.mark.parametrize(("machine", "count"), [(NC40, 2), (NC80, 1)])
@pytest.mark.parametrize("usd", [0, 20_000])
def test_of_an_exact_tie_what_was_ordered_stays(machine: str, count: int, usd: float) -> None:
    assert after_order(machine, count, 290, 2, usd) == {}


H200 = {"id": "h200", "gpu": "h100-nvl", "count": 2, "from": "2027-04-01", "until": "2031-07-31"}


def test_a_term_for_a_quarter_has_the_hours_of_it_beside_it() -> None:
    """One's own machines come with the second quarter; a year was bound for the first, three times what it costs by the
    hour, without a word."""
    service = SERVICE | {"demand": {"at_once": 100}}
    record = solved([service], 4, supply={"owned": [H200]}, policy={"buy": "reserved-1yr"})
    (order,) = record["decisions"]
    assert (order["n_instances"], order["binds_usd"]) == (1, pytest.approx(4 * ONE_YEAR))
    assert order["or"]["purchase"] == "on-demand" and order["or"]["binds_usd"] == 0
    assert order["or"]["usd"] == pytest.approx(ON_DEMAND)


def test_a_term_for_a_quarter_has_the_next_order_beside_it() -> None:
    """Of four machines in the second quarter the last is needed again when the term of three ends: one more then, and a
    quarter by the hour, is less than a year from the second quarter on. The three are needed all the time."""
    steps = {"2027-Q2": 1.4, "2027-Q3": 0.7}
    grown = SERVICE | {"growth": {"steps": steps | {"2028-Q1": 1.4}}}
    orders = solved([grown], 5, policy={"buy": "reserved-1yr"})["decisions"]
    three, one, anew = orders
    assert [order["n_instances"] for order in orders] == [3, 1, 3] and three["or"] is None
    assert (one["usd"], one["binds_usd"]) == (pytest.approx(4 * ONE_YEAR), pytest.approx(4 * ONE_YEAR))
    assert one["or"]["usd"] == pytest.approx(ON_DEMAND + ONE_YEAR)
    assert (
        one["or"]["binds_usd"] == pytest.approx(4 * ONE_YEAR)
        and "1 more in the order of 2028-01-01" in one["or"]["about"]
    )
    assert anew["or"]["usd"] == pytest.approx(3 * ON_DEMAND)  # three quarters of its year are after the plan


def test_a_service_of_another_class_goes_to_paid_machines_while_they_are_idle() -> None:
    """Of two machines of a year one is idle in the second quarter alone: what is cheaper on others by itself is on that
    for the quarter."""
    steps = {"2027-Q2": 0.5, "2027-Q3": 2}
    falling = SERVICE | {"demand": {"at_once": 280}, "growth": {"steps": steps}, "allowed": {"instances": [NC40]}}
    apart = {"id": "apart", "demand": {"at_once": 20}, "model": "8b", "buy": "on-demand"}
    supply = {"allowed": {"instances": [NC40, A100]}}
    policy = {"buy": "reserved-1yr", "moving_cost_usd": 500}
    record = solved([falling, apart], 3, supply=supply, policy=policy)
    rows = [row for row in record["services"] if (row["id"], row["quantile"]) == ("apart", "p90")]
    names = [f"{A100} (on-demand)", f"{NC40} (on-demand)", f"{A100} (on-demand)"]
    assert [row["instance"] for row in rows] == names
    a100 = 3.673 * 730 * 3
    assert of_all(record, "p50_usd") == pytest.approx([2 * ONE_YEAR + a100, 2 * ONE_YEAR, 2 * ONE_YEAR + a100])


def test_the_first_page_says_what_is_idle_while_machines_are_ordered() -> None:
    """Two machines that are owned, and one that is committed, come where two of a year are paid already."""
    owned = H200 | {"cost_per_quarter": 900}
    signed = {"id": "c", "type": NC40, "count": 1, "from": "2027-04-01", "until": "2027-12-31", "usd_per_hour": 1}
    supply = {"owned": [owned], "committed": [signed]}
    whole = whole_plan([SERVICE | {"demand": {"at_once": 280}}], 3, supply=supply, policy={"buy": "reserved-1yr"})
    record, idle_usd = record_of(whole), 900 + 2190
    assert [(row["idle"], row["idle_usd"]) for row in record["supply"]] == [(0, 0), (3, idle_usd), (3, idle_usd)]
    assert record["totals"]["idle_while_ordering_usd"] == pytest.approx(2 * idle_usd)
    (line,) = [str(line) for line in plan_page(whole).first[0].lines if "idle" in str(line).lower()]
    assert "3 x NC40ads H100 v5 (2027-Q2 to 2027-Q3)" in line and USD.text(2 * idle_usd) in line
    enough = whole_plan([SERVICE | {"demand": {"at_once": 140}}], 2, supply={"owned": [owned | {"from": "2026-01-01"}]})
    assert record_of(enough)["totals"]["idle_while_ordering_usd"] == 0  # nothing is ordered
    assert not any("idle" in str(line).lower() for line in plan_page(enough).first[0].lines)


def test_paid_machines_serve_a_service_of_another_class() -> None:
    """Two machines of a year are needed for a quarter, then one. The other serves what buys on demand, which rented
    one beside it; what is owned and idle serves it, too."""
    falling = SERVICE | {"demand": {"at_once": 280}, "growth": {"steps": {"2027-Q2": 0.5}}}
    apart = {"id": "apart", "demand": {"at_once": 100}, "model": "8b", "buy": "on-demand"}
    record = solved([falling, apart], 2, policy={"buy": "reserved-1yr"})
    rows = {(row["quarter"], row["instance"]): row for row in record["supply"]}
    names = "needed", "gap", "idle", "borrowed", "lent"
    of_term, of_hours = NC40, f"{NC40} (on-demand)"
    assert [rows["2027-Q1", of_term][name] for name in names] == [2, 2, 0, 0, 0]
    assert [rows["2027-Q1", of_hours][name] for name in names] == [1, 1, 0, 0, 0]
    assert [rows["2027-Q2", of_term][name] for name in names] == [1, 2, 0, 0, 1]
    assert [rows["2027-Q2", of_hours][name] for name in names] == [1, 0, 0, 1, 0]
    assert of_all(record, "p50_usd") == pytest.approx([2 * ONE_YEAR + ON_DEMAND, 2 * ONE_YEAR])
    # Each pays for the machine that it is on.
    shares = [row["monthly_usd"] * 3 for row in record["services"] if row["quantile"] == "p50"]
    assert shares == pytest.approx([2 * ONE_YEAR, ONE_YEAR, ON_DEMAND, ONE_YEAR])
    owned = {"owned": [H200 | {"cost_per_quarter": 500}]}
    with_own = solved([SERVICE | {"demand": {"at_once": 140}}, apart], 2, supply=owned, policy={"buy": "reserved-1yr"})
    assert of_all(with_own, "p50_usd") == pytest.approx([ONE_YEAR + ON_DEMAND, ONE_YEAR + 500])


@pytest.mark.parametrize(("usd", "moves"), [(60_000, []), (0, [NC40])])
def test_a_service_leaves_what_is_committed_for_it_by_a_decision(usd: float, moves: list[str]) -> None:
    """A machine of two GPUs ends on 15 January, and three requests at once need one of one GPU: a service left it
    without a word."""
    committed = {"id": "c", "type": NC80, "count": 1, "until": "2027-01-15", "usd_per_hour": 4, "services": ["one"]}
    supply = {"allowed": {"instances": [NC40, NC80]}, "committed": [committed]}
    service = SERVICE | {"demand": {"at_once": 3}}
    record = solved([service], 2, supply=supply, policy={"moving_cost_usd": usd})
    moved = [decision for decision in record["decisions"] if decision["what"] == "move"]
    assert [(move["instance"], move["needed_from"]) for move in moved] == [(name, "2027-01-01") for name in moves]
    assert all(move["expected_saving_usd"] > usd for move in moved)


@pytest.mark.parametrize("part", [{"ordered": {}}, {"committed": {"id": "c", "until": "2027-12-31"}}])
def test_the_services_of_an_earlier_order_are_those_of_the_plan(part: dict[str, Any]) -> None:
    supply = {name: [{"type": NC40, "count": 3, "services": ["won"], **more}] for name, more in part.items()}
    with pytest.raises(ScenarioError, match="'won', which is no service of the plan"):
        solved([SERVICE], 1, supply=supply)


def test_of_what_is_expected_it_is_said_that_terms_are_bought_for_more() -> None:
    """Five machines hold 700 requests, and three 400: the terms of five are in the money of p50, too."""
    data = {
        "plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"},
        "services": [SERVICE | {"demand": {"at_once": {"p10": 400, "p50": 400, "p90": 700}}}],
        "supply": {"allowed": {"instances": [NC40]}},
        "policy": {"buy": "mix"},
    }
    whole = findings(solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG)))
    _, _, expected = plan_page(whole).tiles
    assert expected.amount == f"${5 * 4 * ONE_YEAR:,.0f}" and str(expected.amount) in str(expected.facts[0])
    # What they are by the hour, at p90 and at p50, and from which demand on all five are needed: four hold 580.
    (order,) = record_of(whole)["decisions"]
    way = order["or"]
    assert (order["purchase"], way["purchase"], way["n_instances"], way["binds_usd"]) == (
        "reserved-1yr",
        "on-demand",
        5,
        0,
    )
    assert (way["usd"], way["p50_usd"]) == (pytest.approx(20 * ON_DEMAND), pytest.approx(12 * ON_DEMAND))
    assert order["break_even"]["fewer_below"] == pytest.approx(580 / 700, abs=0.01)


def test_the_price_of_a_term_is_stated_by_its_class() -> None:
    """Three machines for a year at 5 an hour, beside the price on demand as listed."""
    prices = {"usd_per_hour": {f"{NC40} (reserved-1yr)": 5}}
    record = solved([SERVICE], 4, policy={"buy": "mix"}, prices=prices)
    (order,) = record["decisions"]
    assert order["binds_usd"] == pytest.approx(3 * 4 * 5 * 730 * 3)
    assert order["or"]["usd"] == pytest.approx(3 * 4 * ON_DEMAND)


def test_machines_are_given_back_without_approval() -> None:
    """Seven run and three do: the plan is answered on its day, not 30 days of approval later."""
    data = {
        "plan": {"start": "2027-Q1", "quarters": 1, "as_of": "2027-02-01"},
        "services": [SERVICE],
        "supply": {"allowed": {"instances": [NC40]}, "ordered": [{"type": NC40, "count": 7}]},
        "policy": {"approval_days": 30},
    }
    page = plan_page(findings(solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG))))
    assert page.sign_by == "2027-02-01"


def test_limits_that_cut_alike_are_one_line() -> None:
    """A quota of one machine in two quarters that need three."""
    data = {
        "plan": {"start": "2027-Q1", "quarters": 2, "as_of": "2026-06-01"},
        "services": [SERVICE],
        "supply": {"allowed": {"instances": [NC40]}, "quota": [{"type": NC40, "limit": 1, "request_lead_days": 21}]},
    }
    whole = findings(solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG)))
    assert [row.quarter for row in whole.served] == [0, 1]
    (section,) = [section for section in plan_page(whole).reasons if "who is cut" in section.title]
    first, *others = map(str, section.lines)
    assert first.startswith("In 2027-Q1 and 2027-Q2 the quota of") and not any("quota of" in line for line in others)


def test_an_order_says_what_recommend_says_of_its_machines() -> None:
    """Machines of spot: they may be taken away, and more than eight are to be asked for. Three on demand need no word;
    the page had none of either."""
    spot, at_once = "gcp/g2-standard-4", 200
    batch = SERVICE | {"id": "batch", "demand": {"at_once": at_once}, "buy": "spot", "allowed": {"instances": [spot]}}
    allowed = {"instances": [NC40, spot], "purchase": ["on-demand", "spot"]}
    record = solved([batch, SERVICE | {"allowed": {"instances": [NC40]}}], 1, supply={"allowed": allowed})
    orders = {decision["purchase"]: decision for decision in record["decisions"] if decision["what"] == "order"}
    alone = sheetgen.recommend(model="8b", instances=spot, purchase="spot", concurrent_requests=at_once)
    n = orders["spot"]["n_instances"]
    assert alone["needs_reservation"] and alone["n_instances"] == n > 8
    told = " ".join(orders["spot"]["cautions"])
    assert "taken away" in told and f"{n} machines" in told
    assert orders["on-demand"]["n_instances"] == 3 and orders["on-demand"]["cautions"] == []


def test_what_is_given_back_before_it_is_there_is_cancelled() -> None:
    """Three machines were ordered for 15 January, and nothing needs them: the row said "release", from 1 January on."""
    for day, is_cancelled in (("2027-01-15", True), ("2026-12-15", False)):
        supply = {"ordered": [{"type": "aws/p5.48xlarge", "count": 2, "from": day}]}
        whole = whole_plan([SERVICE], 1, supply=supply)
        (release,) = [decision for decision in whole.decisions if decision.what == "release"]
        assert release.n_instances == 2
        assert (day in str(decision_words(whole.answer, release, is_other=False))) == is_cancelled


def test_later_decisions_have_their_other_ways_on_the_page() -> None:
    """The forecast had the order of three machines as a commitment ends, and not its renewal, which is due before."""
    committed = [{"id": "c", "type": NC40, "count": 3, "purchase": "reserved-1yr", "until": "2027-06-30"}]
    whole = whole_plan([SERVICE], 4, supply={"committed": committed})
    (order,) = [decision for decision in whole.decisions if decision.what == "order"]
    renewal = order.ways[1]
    assert renewal.what == "renew"
    (forecast,) = [section for section in plan_page(whole).reasons if section.title.startswith("Forecast")]
    assert forecast.table is not None
    (text,) = [str(row[1]) for row in forecast.table.rows if "order" in str(row[1])]
    assert f"by {renewal.order_by} renew 3" in text


def test_quarters_of_a_fiscal_year_have_their_months() -> None:
    data = {"plan": {"start": "2028-Q1", "quarters": 2, "as_of": "2026-11-26"}, "services": [SERVICE]}
    for starts, months in ((2, ["February 2027", "July 2027"]), (1, [])):
        head = data["plan"] | {"fiscal_year_starts": starts}
        whole = findings(solved_plan(plan_of(Document("p", data | {"plan": head}, {}), CATALOG)))
        (lines,) = [section.lines for section in plan_page(whole).first if section.title.startswith("Money by quarter")]
        assert [month for line in lines for month in re.findall(r"[A-Z][a-z]+ 20\d\d", str(line))] == months


def test_a_mail_says_what_a_class_binds() -> None:
    """It had what another class saves alone: $60,278, of $362,316 that it binds."""
    whole = whole_plan([SERVICE], 4)
    lever, *_ = [lever for lever in best_of_kinds(whole.cheaper) if lever.change.kind == "class"]
    assert lever.bound_usd > lever.saves_usd and lever.bound_after_usd == 0
    for after_usd, words in ((0.0, ""), (4321.0, " ($4,321 after the plan)")):
        page = plan_page(replace(whole, cheaper=(replace(lever, bound_after_usd=after_usd),)))
        (text,) = [str(text) for label, text in page.brief.points if label == "To pay less"]
        assert text.endswith(f"binds ${lever.bound_usd:,.0f}{words}.")


def test_of_who_waits_those_of_high_priority_are_named_first() -> None:
    """A mail named one that lacked a seventh of its load, and not one of priority 1 that had no machine at all."""
    services = [SERVICE | {"id": name, "priority": n} for n, name in ((2, "low"), (1, "high"))]
    whole = whole_plan(services, 1, supply=LATE)
    low, high = (replace(whole.unserved[0], service=s, share=share) for s, share in ((0, 0.1), (1, 1.0)))
    (check, *_) = checks(whole.answer, whole.decisions, [low, high])
    assert [reason.partition(" ")[0] for reason in check.against] == ["high", "low"]


def test_who_waits_itself_keeps_no_machines() -> None:
    """A service without a machine on some days was said to keep machines that could serve another on the same days."""
    services = [SERVICE | {"id": "chat", "priority": 1}, SERVICE | {"id": "batch", "priority": 2}]
    commitment = {"id": "c", "type": NC80, "count": 2, "until": "2028-12-31", "usd_per_hour": 5}
    supply = {"allowed": {"instances": [NC40, NC80]}, "committed": [commitment], **LATE}
    whole = whole_plan([services[0], services[1] | {"allowed": {"instances": [NC80]}}], 1, supply=supply)
    t, q = whole.answer.place[NC80], 0
    assert whole.answer.on(NC80, q) and t >= 0
    waits = [
        Unserved(s, q, NC40 if s == 0 else NC80, datetime.date(2027, 1, 1), datetime.date(2027, 1, 6), share, MACHINES)
        for s, share in ((0, 1.0), (1, 1.0))
    ]
    keeping = [*_keeping(replace(whole, unserved=tuple(waits[:1])))]
    assert any("batch" in str(line) for line in keeping)
    assert not any("batch" in str(line) for line in _keeping(replace(whole, unserved=tuple(waits))))


def test_an_offer_that_binds_comes_before_what_binds_nothing() -> None:
    """Three rows of a move and releases were on the first page, and the only one that binds overleaf."""
    whole = whole_plan([SERVICE], 4)
    order = next(decision for decision in whole.decisions if decision.what == "order")
    small = replace(order, binds_usd=0, late=False, usd=1000)
    offer = replace(order, what="commit", binds_usd=342_783, late=False)
    assert _in_urgency([small, offer]) == [offer, small]
    assert offer.in_plan_usd is None


def test_a_service_that_is_not_cut_before_one_of_higher_priority_has_its_reason() -> None:
    services = [SERVICE | {"id": name, "priority": priority} for priority, name in ((1, "one"), (2, "two"))]
    whole = whole_plan(services, 1)
    for shares, told in (((0.5, 1.0), True), ((1.0, 0.5), False)):
        rows = (Served(s, 0, BUDGET, None, None, share, None) for s, share in enumerate(shares))
        page = plan_page(replace(whole, served=tuple(rows)))
        (lines,) = (section.lines for section in page.reasons if section.title.startswith("If the limits are kept"))
        assert any("whatever its priority" in str(line) for line in lines) == told
        assert any("headroom and spare machines are kept" in str(line) for line in lines)


def test_quarters_whose_p90_is_not_enough_in_nine_of_ten_cases_are_named() -> None:
    whole = whole_plan([SERVICE], 2)
    twice = replace(whole, draws=replace(whole.draws, spend_usd=whole.draws.spend_usd * 2))
    for of_plan, amounts in ((whole, []), (twice, [f"${2 * 3 * ON_DEMAND:,.0f}"] * 2)):
        lines = [str(line) for line in plan_page(of_plan).first[1].lines]
        assert [amount for line in lines for amount in re.findall(r"\$[\d,]+\d", line)] == amounts


def test_a_service_moves_on_the_day_on_which_its_machines_come() -> None:
    """`small` moves on 16 May, the 46th day of 91: it moved on 1 April, to a larger machine that was rented until then,
    or on 1 July, while two were idle."""
    record = PlanRecord(solved_plan(plan_of(Document("plan.yaml", plan_that_moves_within_a_quarter(), {}), CATALOG)))
    first, second, *_ = (row for row in record["services"] if (row["id"], row["quantile"]) == ("small", "p90"))
    assert (first["instance"], first["moves_on"], first["instance_until"]) == (NC40, None, None)
    assert (second["instance"], second["moves_on"], second["instance_until"]) == (NC80, "2027-05-16", NC40)
    usd = of_all(record, "p90_usd")
    a_quarter = 4 * 9 * 730 * 3
    assert usd[0] == pytest.approx(ON_DEMAND + 2 * 13.96 * 730 * 3)
    assert usd[1:] == pytest.approx([usd[0] * 45 / 91 + a_quarter * 46 / 91, a_quarter, a_quarter])
    moves = [(move["instance"], move["needed_from"]) for move in record["decisions"] if move["what"] == "move"]
    assert (NC80, "2027-05-16") in moves
    back = [row for row in record["decisions"] if (row["what"], row["instance"]) == ("release", NC40)]
    assert [row["needed_from"] for row in back] == ["2027-06-05"]  # both run for 20 days
    rows = [row for row in record["services"] if (row["quarter"], row["quantile"]) == ("2027-Q2", "p90")]
    assert sum(row["monthly_usd"] for row in rows) * 3 <= usd[1]
    assert all(check["ok"] for check in record["checks"] if "add up" in check["check"])


def test_a_mix_has_its_base_from_the_day_on_which_it_can_be_there() -> None:
    """A year is there on 15 February: until then its three machines are rented. The base began a quarter later, and the
    plan took three years in its place, which were there in time."""
    lead = {"lead_time_days": {"reserved-1yr": 60}, "allowed": {"instances": [NC40], "exclude": ["reserved-3yr"]}}
    record = solved([SERVICE], 4, supply=lead, policy={"approval_days": 21, "buy": "mix"})
    first = 3 * (ONE_YEAR + ON_DEMAND) / 2
    assert of_all(record, "p90_usd") == pytest.approx([first, *[3 * ONE_YEAR] * 3])
    assert of_all(record, "bound_usd") == pytest.approx([3 * ONE_YEAR * 4, 0, 0, 0])
    (order,) = [row for row in record["decisions"] if row["purchase"] == "reserved-1yr"]
    assert (order["n_instances"], order["late"], order["there_on"]) == (3, True, "2027-02-15")
    assert order["usd"] == pytest.approx(3 * ONE_YEAR * 3.5) and order["cover"]["purchase"] == "on-demand"
    (rented,) = [row for row in record["decisions"] if row["what"] == "order" and row["purchase"] == "on-demand"]
    assert rented["usd"] == pytest.approx(3 * ON_DEMAND / 2)
    assert order["usd"] + rented["usd"] == pytest.approx(sum(of_all(record, "p90_usd")))


def test_what_is_signed_for_p90_is_paid_at_p50() -> None:
    """Three machines of a year at p90, two at p50: the third is paid too once it is signed. Expected was two."""
    band = SERVICE | {"demand": {"at_once": {"p10": 150, "p50": 250, "p90": 400}}}
    whole = whole_plan([band], 4, policy={"buy": "reserved-1yr"})
    assert whole.answer.money["spend_usd"][:, 1].sum() == pytest.approx(4 * 2 * ONE_YEAR)
    assert whole.p50_once_signed_usd == pytest.approx(4 * 3 * ONE_YEAR)
    later = band | {"growth": {"steps": {"2027-Q3": 2}}}  # of five at p50 three are signed now
    whole = whole_plan([later], 4, policy={"buy": "reserved-1yr"})
    n_then = float(whole.answer.supply["needed_instances"][0, 2, 1])
    assert whole.p50_once_signed_usd == pytest.approx((4 * 3 + 2 * (n_then - 3)) * ONE_YEAR)
    for_hours = whole_plan([band], 4)  # on demand, which is given back
    assert for_hours.p50_once_signed_usd == pytest.approx(4 * 2 * ON_DEMAND)

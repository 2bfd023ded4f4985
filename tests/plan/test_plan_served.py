"""What can be served within a budget or a quota: by priority, and what the next step costs."""

from __future__ import annotations

from typing import Any

import pytest

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.charts import machines
from sheetgen.plan.findings import findings
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import solved_plan

KIND = "azure/Standard_NC40ads_H100_v5"
SERVICES: list[dict[str, Any]] = [
    {"id": "late", "priority": 3, "demand": {"at_once": 400}, "model": "8b"},
    {"id": "first", "priority": 1, "demand": {"at_once": 400}, "model": "8b"},
    {"id": "none", "demand": {"at_once": 400}, "model": "8b"},
    {"id": "second", "priority": 2, "demand": {"at_once": 800}, "model": "8b"},
]


def record(services: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    data = {
        "plan": {"start": "2027-Q1", "quarters": 1, "as_of": "2026-11-26"},
        "services": services,
        "supply": {"allowed": {"instances": [KIND]}},
    }
    supply = data["supply"] | more.pop("supply", {})  # type: ignore[operator]
    return record_of(
        findings(solved_plan(plan_of(Document("plan.yaml", {**data, **more, "supply": supply}, {}), Catalog())))
    )


def usd(services: list[dict[str, Any]]) -> float:
    return float(record(services)["money"][0]["p90_usd"])


def at(share: float, one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "demand": {"at_once": share * one["demand"]["at_once"]}}


def test_a_budget_serves_by_priority() -> None:
    _, first, _, second = SERVICES
    budget = (usd([first]) + usd([first, second])) / 2
    found = record(SERVICES, budget={"2027-Q1": budget})
    assert [one["service"] for one in found["served"]] == ["first", "second", "late", "none"]
    assert {one["limit"] for one in found["served"]} == {"budget"}
    shares = [one["share"] for one in found["served"]]
    assert shares[0] == 1 and 0 < shares[1] < 1 and shares[2:] == [0, 0]
    # As much as the budget pays for, and the next twentieth is beyond it.
    now, more = (usd([first, at(share, second)]) for share in (shares[1], shares[1] + 0.05))
    assert now <= budget < more
    assert found["served"][1]["next_usd"] == pytest.approx(more - now)
    assert [one["next_usd"] for one in found["served"] if one["service"] != "second"] == [None] * 3


def test_a_quota_serves_by_priority() -> None:
    found = record(SERVICES, supply={"quota": [{"type": KIND, "limit": 3}]})
    needed = found["supply"][0]["needed"]
    assert needed > 3 and {one["limit"] for one in found["served"]} == {"quota"}
    shares = {one["service"]: one["share"] for one in found["served"]}
    kept = [at(shares[one["id"]], one) for one in SERVICES if shares[one["id"]]]
    assert record(kept)["supply"][0]["needed"] <= 3
    assert shares["none"] == 0 and shares["first"] > 0


def test_the_machines_of_a_date_serve_by_priority() -> None:
    """Four machines are there until an order is, on 25 January: the first service takes three of them, one is left for
    the second, which fills six, and none for the others."""
    there = [{"id": "c", "type": KIND, "count": 4, "until": "2027-12-31", "usd_per_hour": 5}]
    supply = {"committed": there, "lead_time_days": {"on-demand": 60}}
    found = record(SERVICES, supply=supply)
    assert {(one["limit"], one["until"]) for one in found["served"]} == {("machines", "2027-01-24")}
    shares = {one["service"]: one["share"] for one in found["served"]}
    assert shares == {"first": 1, "second": pytest.approx(1 / 6), "late": 0, "none": 0}
    # Who waits is decided once.
    waiting = {one["service"]: 1 - one["share"] for one in found["unserved"]}
    assert waiting == {name: share for name, share in shares.items() if share < 1}
    assert {one["next_usd"] for one in found["served"]} == {None}


def test_a_small_service_has_what_a_larger_one_before_it_leaves() -> None:
    """Three machines of the first, none for the second, which takes half a replica of it alone; and the last one, on a
    machine of another type, still fits. It had nothing, as the one before it had not all."""
    small = {"id": "small", "priority": 9, "demand": {"at_once": 4}, "model": "8b"}
    small |= {"allowed": {"instances": ["aws/g6.xlarge"]}}
    _, first, _, second = SERVICES
    services = [first, second, small]
    budget = usd([first]) + usd([small]) * 1.5
    assert budget < usd([first, at(0.05, second)])
    found = record(services, budget={"2027-Q1": budget})["served"]
    assert {one["service"]: one["share"] for one in found} == {"first": 1, "second": 0, "small": 1}


def test_what_is_paid_anyway_serves_beyond_a_budget_too() -> None:
    """It was said to serve nothing, where the machines that are committed are over the budget by themselves."""
    there = [{"id": "c", "type": KIND, "count": 4, "until": "2027-12-31", "usd_per_hour": 5}]
    found = record(SERVICES, supply={"committed": there}, budget={"2027-Q1": 1})
    shares = {one["service"]: one["share"] for one in found["served"]}
    assert shares["first"] == 1 and 0 < shares["second"] < 1 and shares["late"] == shares["none"] == 0


def test_limits_that_hold_say_nothing() -> None:
    assert record(SERVICES, budget={"2027-Q1": 10**9})["served"] == []


def test_a_smaller_plan_may_have_no_base() -> None:
    """A budget below what the base of the whole plan binds is enough for some of it on demand."""
    services = [one | {"profile": "business"} for one in SERVICES]
    whole = record(services, policy={"buy": "mix"}, plan={"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"})
    base = whole["supply"][0]["base"]
    assert base
    paid = sum(one["usd"] for one in whole["decisions"] if one["purchase"] == "reserved-1yr") / 4
    found = record(
        services,
        policy={"buy": "mix"},
        plan={"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"},
        budget={"2027-Q1": 0.9 * paid},
    )
    shares = {one["service"]: one["share"] for one in found["served"]}
    assert shares["first"] > 0 and shares["none"] == 0


def test_a_quota_is_said_of_the_services_on_its_machines_alone() -> None:
    kinds = {"first": KIND, "second": "aws/g6e.xlarge"}
    services = [one | {"allowed": {"instances": [kinds.get(one["id"], KIND)]}} for one in SERVICES]
    quota = [{"type": KIND, "limit": 3}, {"type": "aws/g6e.xlarge", "limit": 2}]
    found = record(services, supply={"quota": quota, "allowed": {}})["served"]
    on = {(one["service"], one["instance"]) for one in found}
    assert on == {("late", KIND), ("first", KIND), ("none", KIND), ("second", "aws/g6e.xlarge")}
    shares = {one["service"]: one["share"] for one in found}
    assert shares["first"] > 0 and shares["second"] > 0  # each the first on its machines


def test_what_is_bought_is_what_is_ordered_and_nothing_of_it_is_committed() -> None:
    """Orders that have no signature yet are none of what is owned and committed, in the table and in the picture."""
    services = [
        one | {"profile": "business", "growth": {"series": [1, 1.4, 1, 0.6]}} if one["id"] == "second" else one
        for one in SERVICES
    ]
    data = {
        "plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-06-26"},
        "policy": {"buy": "mix"},
        "services": services,
        "supply": {
            "allowed": {"instances": [KIND]},
            "committed": [{"id": "c", "type": KIND, "count": 2, "until": "2027-09-30"}],
        },
    }
    whole = findings(solved_plan(plan_of(Document("plan.yaml", data, {}), Catalog())))
    found = record_of(whole)
    supply = {one["quarter"]: one for one in found["supply"]}
    assert [supply[one]["committed"] for one in sorted(supply)] == [2, 2, 2, 0]
    assert machines(whole.answer).supply == (2, 2, 2, 0)
    assert any(one["base"] for one in found["supply"])
    terms = {"reserved-1yr": 4, "reserved-3yr": 12, "capacity-block": 1, "on-demand": 4}
    for q, quarter in enumerate(one["quarter"] for one in found["quarters"]):
        bought = 0
        for one in found["decisions"]:
            first = (int(one["needed_from"][5:7]) - 1) // 3
            if first <= q < first + terms.get(one["purchase"], 0):
                bought += {"order": 1, "release": -1}.get(one["what"], 0) * one["n_instances"]
        assert supply[quarter]["gap"] == bought
        there = sum(supply[quarter][name] for name in ("owned", "committed", "gap"))
        assert there == supply[quarter]["needed"] + supply[quarter]["idle"]

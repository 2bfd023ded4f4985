"""What can be served within a budget or a quota: by priority, and what the next step costs."""

from __future__ import annotations

from typing import Any

import pytest
from option_values import OptionValue
from plan_books import PlanRecord

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.charts import machines
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.solve_plan import solved_plan

KIND = "azure/Standard_NC40ads_H100_v5"
SERVICES: list[dict[str, Any]] = [
    {"id": "late", "priority": 3, "demand": {"at_once": 400}, "model": "8b"},
    {"id": "first", "priority": 1, "demand": {"at_once": 400}, "model": "8b"},
    {"id": "none", "demand": {"at_once": 400}, "model": "8b"},
    {"id": "second", "priority": 2, "demand": {"at_once": 800}, "model": "8b"},
]


def record(services: list[dict[str, Any]], **more: OptionValue) -> dict[str, Any]:
    data = {
        "plan": {"start": "2027-Q1", "quarters": 1, "as_of": "2026-11-26"},
        "services": services,
        "supply": {"allowed": {"instances": [KIND]}},
    }
    supply = data["supply"] | more.pop("supply", {})  # type: ignore[operator]
    return PlanRecord(solved_plan(plan_of(Document("plan.yaml", {**data, **more, "supply": supply}, {}), Catalog())))


def usd(services: list[dict[str, Any]]) -> float:
    return float(record(services)["money"][0]["p90_usd"])


def scaled(share: float, service: dict[str, Any]) -> dict[str, Any]:
    return {**service, "demand": {"at_once": share * service["demand"]["at_once"]}}


def test_a_budget_serves_by_priority() -> None:
    _, first, _, second = SERVICES
    budget = (usd([first]) + usd([first, second])) / 2
    planned = record(SERVICES, budget={"2027-Q1": budget})
    assert [row["service"] for row in planned["served"]] == ["first", "second", "late", "none"]
    assert {row["limit"] for row in planned["served"]} == {"budget"}
    shares = [row["share"] for row in planned["served"]]
    assert shares[0] == 1 and 0 < shares[1] < 1 and shares[2:] == [0, 0]
    # As much as the budget pays for, and the next twentieth is beyond it.
    now, more = (usd([first, scaled(share, second)]) for share in (shares[1], shares[1] + 0.05))
    assert now <= budget < more
    assert planned["served"][1]["next_usd"] == pytest.approx(more - now)
    assert [row["next_usd"] for row in planned["served"] if row["service"] != "second"] == [None] * 3


def test_a_quota_serves_by_priority() -> None:
    planned = record(SERVICES, supply={"quota": [{"type": KIND, "limit": 3}]})
    needed = planned["supply"][0]["needed"]
    assert needed > 3 and {row["limit"] for row in planned["served"]} == {"quota"}
    shares = {row["service"]: row["share"] for row in planned["served"]}
    kept = [scaled(shares[service["id"]], service) for service in SERVICES if shares[service["id"]]]
    assert record(kept)["supply"][0]["needed"] <= 3
    assert shares["none"] == 0 and shares["first"] > 0


def test_the_machines_of_a_date_serve_by_priority() -> None:
    """Four machines are there until an order is, on 25 January: the first service takes three of them, one is left for
    the second, which fills six, and none for the others."""
    committed = [{"id": "c", "type": KIND, "count": 4, "until": "2027-12-31", "usd_per_hour": 5}]
    supply = {"committed": committed, "lead_time_days": {"on-demand": 60}}
    planned = record(SERVICES, supply=supply)
    assert {(row["limit"], row["until"]) for row in planned["served"]} == {("machines", "2027-01-24")}
    shares = {row["service"]: row["share"] for row in planned["served"]}
    assert shares == {"first": 1, "second": pytest.approx(1 / 6), "late": 0, "none": 0}
    # Who waits is decided once.
    waiting = {lack["service"]: 1 - lack["share"] for lack in planned["unserved"]}
    assert waiting == {name: share for name, share in shares.items() if share < 1}
    assert {row["next_usd"] for row in planned["served"]} == {None}


def test_a_small_service_has_what_a_larger_one_before_it_leaves() -> None:
    """Three machines of the first, none for the second, which takes half a replica of it alone; and the last one, on a
    machine of another type, still fits. It had nothing, as the one before it had not all."""
    small = {"id": "small", "priority": 9, "demand": {"at_once": 4}, "model": "8b"}
    small |= {"allowed": {"instances": ["aws/g6.xlarge"]}}
    _, first, _, second = SERVICES
    services = [first, second, small]
    budget = usd([first]) + usd([small]) * 1.5
    assert budget < usd([first, scaled(0.05, second)])
    served = record(services, budget={"2027-Q1": budget})["served"]
    assert {row["service"]: row["share"] for row in served} == {"first": 1, "second": 0, "small": 1}


def test_what_is_paid_anyway_serves_beyond_a_budget_too() -> None:
    """It was said to serve nothing, where the machines that are committed are over the budget by themselves."""
    committed = [{"id": "c", "type": KIND, "count": 4, "until": "2027-12-31", "usd_per_hour": 5}]
    planned = record(SERVICES, supply={"committed": committed}, budget={"2027-Q1": 1})
    shares = {row["service"]: row["share"] for row in planned["served"]}
    assert shares["first"] == 1 and 0 < shares["second"] < 1 and shares["late"] == shares["none"] == 0


def test_limits_that_hold_say_nothing() -> None:
    assert record(SERVICES, budget={"2027-Q1": 10**9})["served"] == []


def test_a_smaller_plan_may_have_no_base() -> None:
    """A budget below what the base of the whole plan binds is enough for some of it on demand."""
    services = [service | {"profile": "business"} for service in SERVICES]
    whole = record(services, policy={"buy": "mix"}, plan={"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"})
    base = whole["supply"][0]["base"]
    assert base
    paid = sum(decision["usd"] for decision in whole["decisions"] if decision["purchase"] == "reserved-1yr") / 4
    planned = record(
        services,
        policy={"buy": "mix"},
        plan={"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"},
        budget={"2027-Q1": 0.9 * paid},
    )
    shares = {row["service"]: row["share"] for row in planned["served"]}
    assert shares["first"] > 0 and shares["none"] == 0


def test_a_quota_is_said_of_the_services_on_its_machines_alone() -> None:
    kinds = {"first": KIND, "second": "aws/g6e.xlarge"}
    services = [service | {"allowed": {"instances": [kinds.get(service["id"], KIND)]}} for service in SERVICES]
    quota = [{"type": KIND, "limit": 3}, {"type": "aws/g6e.xlarge", "limit": 2}]
    served = record(services, supply={"quota": quota, "allowed": {}})["served"]
    on = {(row["service"], row["instance"]) for row in served}
    assert on == {("late", KIND), ("first", KIND), ("none", KIND), ("second", "aws/g6e.xlarge")}
    shares = {row["service"]: row["share"] for row in served}
    assert shares["first"] > 0 and shares["second"] > 0  # each the first on its machines


def test_what_is_bought_is_what_is_ordered_and_nothing_of_it_is_committed() -> None:
    """Orders that have no signature yet are none of what is owned and committed, in the table and in the picture."""
    services = [
        service | {"profile": "business", "growth": {"series": [1, 1.4, 1, 0.6]}}
        if service["id"] == "second"
        else service
        for service in SERVICES
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
    answer = solved_plan(plan_of(Document("plan.yaml", data, {}), Catalog()))
    planned = PlanRecord(answer)
    supply = {row["quarter"]: row for row in planned["supply"]}
    assert [supply[quarter]["committed"] for quarter in sorted(supply)] == [2, 2, 2, 0]
    assert machines(answer).supply == (2, 2, 2, 0)
    assert any(row["base"] for row in planned["supply"])
    terms = {"reserved-1yr": 4, "reserved-3yr": 12, "capacity-block": 1, "on-demand": 4}
    for q, quarter in enumerate(row["quarter"] for row in planned["quarters"]):
        bought = 0
        for decision in planned["decisions"]:
            first = (int(decision["needed_from"][5:7]) - 1) // 3
            if first <= q < first + terms.get(decision["purchase"], 0):
                bought += {"order": 1, "release": -1}.get(decision["what"], 0) * decision["n_instances"]
        assert supply[quarter]["gap"] == bought
        n_machines = sum(supply[quarter][name] for name in ("owned", "committed", "gap"))
        assert n_machines == supply[quarter]["needed"] + supply[quarter]["idle"]

"""What changed since the last plan: parts that sum to the difference, to the cent, on random pairs of plans."""

from __future__ import annotations

import itertools
import json
import random
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from amounts import IN_LONG, amount
from click.testing import CliRunner
from plan_books import PlanRecord, spend_usd

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.cli import main
from sheetgen.cli.plan_commands import record_of_file
from sheetgen.errors import ScenarioError
from sheetgen.plan.bridge import (
    CENTS,
    FACTORS,
    OF_DEMAND,
    OF_POLICY,
    OF_SERVICE,
    Bridge,
    Last,
    Steps,
    bridge,
    changes,
    in_cents,
    last_of,
    listed_prices,
    mixed,
    moved_calendar,
    shapley,
    sums_of,
)
from sheetgen.plan.hardware_by_quarter import Loads
from sheetgen.plan.next_plan import next_plan
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.schema import Policy, Service
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan

CATALOG = Catalog()
N_PAIRS = amount(4, 300)


def plan(data: dict[str, Any]) -> Plan:
    return plan_of(Document("plan.yaml", data, {}), CATALOG)


def between(old: Plan, new: Plan) -> Bridge:
    return bridge(Last(old, sums_of(solved_plan(old, timed=False)), "old"), solved_plan(new, timed=False))


def since(old: Plan, new: Plan) -> tuple[Steps, float, float]:
    """The bridge at p50, and what both plans cost then."""
    return between(old, new).p50, spend_usd(old), spend_usd(new)


def some_plan(dice: random.Random) -> dict[str, Any]:
    """A small plan in which every factor may be another."""
    services = [
        {
            "id": name,
            "demand": {"requests": round(dice.uniform(0.5, 20), 2)},
            "growth": dice.choice([0.1, {"per_quarter": {"p10": 0, "p50": 0.2, "p90": 0.4}}]),
            "request": {"input_tokens": dice.choice([1000, 4000]), "output_tokens": dice.choice([200, 500])},
            "model": [{"id": dice.choice(["8b", "70b"]), "weight_dtype": dice.choice(["auto", "fp8"])}],
            "targets": {"tpot_ms": dice.choice([30, 60])},
            **dice.choice(
                [{}, {"launch": "2027-Q2"}, {"launch": "2027-Q3", "ramp": [0.5, 1]}, {"stated_for": "2026-Q4"}]
            ),
        }
        for name in dice.sample(["chat", "rag"], dice.randint(1, 2))
    ]
    start, as_of = dice.choice([("2027-Q1", "2026-11-26"), ("2027-Q2", "2027-02-20"), ("2027-Q2", "2026-11-26")])
    return {
        "plan": {"start": start, "quarters": dice.choice([3, 4]), "as_of": as_of},
        "policy": {
            "approval_days": dice.choice([0, 50]),
            "buy": dice.choice(["on-demand", "reserved-1yr"]),
            "headroom_fraction": dice.choice([0, 0.2]),
            "redundancy": {"survive": dice.choice(["none", "replica"])},
        },
        "prices": {"discount_fraction": dice.choice([0, 0.1]), "expected_change_per_year": dice.choice([0, -0.2])},
        "supply": {
            "allowed": {"gpus": ["h100"]},
            "lead_time_days": dice.choice([{}, {"reserved-1yr": 60}]),
            "committed": dice.choice(
                [
                    [],
                    [
                        {"id": "c", "type": "aws/p5.48xlarge", "count": 1, "until": "2027-12-31", "usd_per_hour": 30},
                    ],
                ]
            ),
        },
        "services": services,
    }


def some_pair(dice: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two plans of which some parts are others."""
    old, new = some_plan(dice), some_plan(dice)
    same = dice.sample([*old], dice.randint(0, 3))
    return old, {name: (old if name in same else new)[name] for name in old}


def test_the_parts_sum_to_the_difference() -> None:
    dice = random.Random(19)
    seen: set[str] = set()
    for _ in range(N_PAIRS):
        old, new = map(plan, some_pair(dice))
        asked = {*new.questions}
        differences = between(old, new)
        assert {*new.questions} == asked  # what others ask is none of its candidates
        ends = [sums_of(solved_plan(plan, timed=False)) for plan in (old, new)]
        for steps, last_usd, now in zip((differences.p50, differences.asked), *ends, strict=True):
            for parts in (steps.parts, steps.of_services):
                cents = [round(usd * CENTS) for usd in parts.values()]
                assert [part / CENTS for part in cents] == [*parts.values()]
                assert sum(cents) == round(now * CENTS) - round(last_usd * CENTS)
        # The ends of the mixtures are the plans themselves: nothing is left for facts that are known today alone.
        assert spend_usd(mixed(old, new, frozenset())) == pytest.approx(ends[0][0], abs=0.005)
        changed = frozenset(name for name in FACTORS if changes(name, old, new).is_any)
        assert spend_usd(mixed(old, new, changed)) == pytest.approx(ends[1][0], abs=0.005)
        assert "engine facts and speed" in changed or "engine facts and speed" not in differences.p50.parts
        seen |= {*differences.p50.parts}
    assert seen >= {*FACTORS} if IN_LONG else len(seen) > 5


def test_one_change_is_all_of_the_difference() -> None:
    base = some_plan(random.Random(3))
    discounted = base | {"prices": {"discount_fraction": 0.5}}
    difference, last_usd, now = since(plan(base | {"prices": {}}), plan(discounted))
    assert [*difference.parts] == ["price"]
    assert difference.parts["price"] == pytest.approx(now - last_usd, abs=0.01)
    same, *_ = since(plan(base), plan(base))
    assert same.parts == {}


def test_the_calendar_moves_and_the_demand_keeps_its_day() -> None:
    """The same demand, written a quarter later as it has grown by then: nothing but the calendar changed."""
    service = {"id": "one", "demand": {"at_once": 100}, "growth": 0.5, "model": "8b"}
    data = {"plan": {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"}, "services": [service]}
    later = {
        "plan": {"start": "2027-Q2", "quarters": 2, "as_of": "2026-11-26"},
        "services": [service | {"stated_for": "2027-Q1"}],
    }
    shifted = PlanRecord(solved_plan(plan(later)))["services"]
    first = PlanRecord(solved_plan(plan(data)))["services"]
    assert shifted[0]["concurrent_requests"] == first[3]["concurrent_requests"] == pytest.approx(150)
    difference, *_ = since(plan(data), plan(later))
    assert difference.parts["calendar and orders"] > 0
    assert difference.parts.get("users", 0) == 0


NC40, NC80 = 6.98 * 730 * 3, 13.96 * 730 * 3  # a quarter of a machine with one H100 NVL, and with two


def on(instance: str) -> dict[str, Any]:
    return {"model": "8b", "allowed": {"instances": [f"azure/Standard_{instance}_H100_v5"]}}


def test_a_start_that_moves_a_quarter_ends_at_the_plan() -> None:
    """The same file a quarter later says 400 for 2027-Q2, for which the last plan had 600. By hand, 400 take three
    machines, 600 five and 900 seven: 3 + 5 in both plans, 3 + 3 of the old calendar and the new demand, 5 + 7 the other
    way round. It ended at 12 machine-quarters, all of it the calendar's, although the plan has 8."""
    service = {"id": "one", "demand": {"at_once": 400}, "growth": 0.5, **on("NC40ads")}
    old, new = (
        plan({"plan": {"start": start, "quarters": 2, "as_of": as_of}, "services": [service]})
        for start, as_of in (("2027-Q1", "2026-11-26"), ("2027-Q2", "2027-02-26"))
    )
    difference, last_usd, now = since(old, new)
    assert difference.usd == now == last_usd == pytest.approx(8 * NC40)
    users, calendar = ((6 - 8) + (8 - 12)) / 2 * NC40, ((12 - 8) + (8 - 6)) / 2 * NC40
    assert difference.of_services == {
        ("users", "one"): pytest.approx(users),
        ("calendar and orders", None): pytest.approx(calendar),
    }


def test_a_year_of_falling_prices_that_begins_anew_is_a_price() -> None:
    """Two quarters of one machine at prices that fall by 19 % a year, and the same file a quarter later: what falls
    begins anew at the prices of that day, and both plans cost the same. The calendar alone has the second and the third
    quarter of the first plan's prices, the price alone the quarter before and the first one. All of it was the
    calendar's, and nothing changed. Of the next two quarters on the same day no price is another."""
    service = {"id": "one", "demand": {"at_once": 100}, **on("NC40ads")}
    old, new, same_day = (
        plan(
            {
                "plan": {"start": start, "quarters": 2, "as_of": as_of},
                "services": [service],
                "prices": {"expected_change_per_year": -0.19},
            }
        )
        for start, as_of in (("2027-Q1", "2026-11-26"), ("2027-Q2", "2027-02-26"), ("2027-Q2", "2026-11-26"))
    )
    difference, last_usd, now = since(old, new)
    fall = 0.81 ** (1 / 4)
    assert now == last_usd == pytest.approx(NC40 * (fall + fall**2))
    calendar = ((fall**2 + fall**3) - (fall + fall**2) + (fall + fall**2) - (1 + fall)) / 2 * NC40
    assert difference.of_services == {
        ("price", None): pytest.approx(-calendar, abs=0.01),
        ("calendar and orders", None): pytest.approx(calendar, abs=0.01),
    }
    assert calendar < 0
    difference, *_ = since(old, same_day)
    assert difference.of_services == {("calendar and orders", None): pytest.approx(NC40 * (fall**3 - fall), abs=0.01)}


def test_more_users_and_a_launch_that_slips_do_not_hide_each_other() -> None:
    """Three machines more of one service in four quarters, and two of the other for a quarter less; it was all
    "users"."""
    head = {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"}
    chat = {"id": "chat", "demand": {"at_once": 400}, **on("NC40ads")}
    agents = {"id": "agents", "demand": {"at_once": 400}, "launch": "2027-Q2", **on("NC80adis")}
    old = plan({"plan": head, "services": [chat, agents]})
    new = plan({"plan": head, "services": [chat | {"demand": {"at_once": 800}}, agents | {"launch": "2027-Q3"}]})
    difference, *_ = since(old, new)
    assert difference.of_services == {
        ("users", "chat"): pytest.approx(3 * 4 * NC40),
        ("launches and ends", "agents"): pytest.approx(-2 * NC80),
    }


def test_a_service_that_shares_machines_has_the_part_of_its_own_change() -> None:
    """One more user base on machines that another fills: the other's bill changes too, and not because of itself."""
    head = {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"}
    services = [{"id": name, "demand": {"at_once": 70}, **on("NC40ads")} for name in ("a", "b")]
    more = [services[0] | {"demand": {"at_once": 300}}, services[1]]
    difference, last_usd, now = since(*(plan({"plan": head, "services": served}) for served in (services, more)))
    assert difference.of_services == {("users", "a"): pytest.approx(now - last_usd, abs=0.01)} and now > last_usd


def test_more_of_one_service_and_less_of_the_other_are_their_own() -> None:
    """Both are on machines of which two are owned and cost nothing. Of what (a, b) need, (4, 2) buy four, (1, 3) two,
    (4, 3) five, (1, 2) one. So b, which grew, adds one machine, and a leaves three. As parts of what machines cost on
    average b had a sixth of a machine more: the rest of its own stood as less of a's."""
    head = {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"}
    owned = {"owned": [{"id": "o", "gpu": "h100-nvl", "count": 4, "cost_per_quarter": 0, "gpus_per_machine": 2}]}
    stated = [
        plan(
            {
                "plan": head,
                "supply": owned,
                "services": [
                    {"id": name, "demand": {"at_once": n}, **on("NC80adis")}
                    for name, n in zip("ab", counts, strict=True)
                ],
            }
        )
        for counts in ((1200, 600), (300, 900), (1200, 900), (300, 600))
    ]
    assert [spend_usd(entry) / (2 * NC80) for entry in stated] == [pytest.approx(n) for n in (4, 2, 5, 1)]
    difference, *_ = since(*stated[:2])
    assert difference.of_services == {
        ("users", "a"): pytest.approx(-3 * 2 * NC80),
        ("users", "b"): pytest.approx(2 * NC80),
    }


def test_less_headroom_and_machines_of_earlier_orders() -> None:
    """What was ordered in between belongs to the calendar, not to the classes; and less headroom costs no more, of what
    is approved neither: the plan between the two was on machines of neither."""
    head = {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"}
    services = [
        {"id": name, "demand": {"at_once": {"p10": n / 2, "p50": n, "p90": 2 * n}}, "growth": 0.2, "model": model}
        for name, n, model in (("chat", 300, "70b"), ("help", 120, "8b"))
    ]
    data: dict[str, Any] = {"plan": head, "policy": {"headroom_fraction": 0.3}, "services": services}
    last = PlanRecord(solved_plan(plan(data)))
    later = next_plan(last, "last.json", date(2027, 2, 26))
    later["policy"]["headroom_fraction"] = 0
    assert later["supply"]["ordered"]
    new = solved_plan(plan(later), timed=False)
    steps = bridge(last_of(last, "last.json", CATALOG), new)
    keys = {("headroom and survival", None), ("calendar and orders", None)}
    assert {key for key, *_ in steps.rows} == keys
    for of_sum in (steps.p50, steps.asked):
        assert of_sum.parts["headroom and survival"] < 0
    assert steps.asked.usd == pytest.approx(sum(new.asked_usd)) and steps.asked.usd > steps.p50.usd


def test_growth_that_the_next_plan_says_anew_is_no_change_of_users() -> None:
    """One service has 300 instead of 70 at once; on its machines another has a series of 1, 2, 2 that the plan of the
    next quarter writes as 2, 2, a third grows and says for which quarter it is stated, and a fourth has ended by then.
    Of the users all is the first one's: the others' demand is what it was. They had $3,436 of $16,000."""
    head = {"start": "2027-Q1", "quarters": 3, "as_of": "2026-11-26"}
    services: list[dict[str, Any]] = [
        {"id": "care", "demand": {"at_once": 70}, **on("NC40ads")},
        {"id": "finder", "demand": {"at_once": 60}, "growth": {"series": [1, 2, 2]}, **on("NC40ads")},
        {"id": "chat", "demand": {"at_once": 60}, "growth": 0.5, **on("NC40ads")},
        {"id": "over", "demand": {"at_once": 60}, "retire": "2027-Q2", **on("NC40ads")},
    ]
    last = PlanRecord(solved_plan(plan({"plan": head, "services": services})))
    data = next_plan(last, "last.json", date(2027, 2, 26))
    assert [entry["id"] for entry in data["services"]] == ["care", "finder", "chat"]
    assert [entry["growth"] for entry in data["services"][1:]] == [{"series": [2, 2, 2]}, 0.5]
    data["services"][0]["demand"] = {"at_once": 300}
    new = plan(data)
    steps = bridge(last_of(last, "last.json", CATALOG), solved_plan(new, timed=False)).p50
    assert {service for factor, service in steps.of_services if factor == "users"} == {"care"}
    assert sum(steps.of_services.values()) == pytest.approx(steps.usd - steps.last_usd, abs=0.005)
    # Another series is another demand.
    data["services"][1]["growth"] = {"series": [2, 3, 3]}
    assert changes("users", new, plan(data)).services == {"finder"}


def test_the_parts_of_the_calendar_are_named() -> None:
    """A quarter on a pool has ended, one service's ramp and another's series are further, and a third stands: all of it
    was "calendar", and nobody could tell."""
    head = {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"}
    pool = {"gpu": "h100", "count": 8, "cost_per_quarter": 1000}
    data: dict[str, Any] = {
        "plan": head,
        "supply": {
            "owned": [{"id": "ends", "until": "2027-04-30", **pool}, {"id": "stays", "until": "2028-12-31", **pool}]
        },
        "services": [
            {"id": "ramps", "demand": {"at_once": 70}, "launch": "2027-Q1", "ramp": [0.5, 1], "model": "8b"},
            {"id": "grows", "demand": {"at_once": 70}, "growth": {"series": [1, 2]}, "model": "8b"},
            {"id": "stands", "demand": {"at_once": 70}, "model": "8b"},
        ],
    }
    later = data | {"plan": head | {"start": "2027-Q2"}}
    later["supply"] = data["supply"] | {"ordered": [{"type": "azure/Standard_NC40ads_H100_v5", "count": 3}]}
    of_later = {"left_out": ("2027-Q1",), "added": ("2027-Q3",), "ended": ("ends",), "other_demand": ("ramps", "grows")}
    of_later["ordered"] = ("3 x azure/Standard_NC40ads_H100_v5",)
    assert vars(moved_calendar(plan(data), plan(later))) == of_later
    assert not any(vars(moved_calendar(plan(data), plan(data))).values())


def test_every_field_of_a_plan_is_of_a_factor_or_of_none() -> None:
    """A field that is of no factor would be a part that nothing explains."""
    of_money = {*OF_DEMAND, "growth", "stated_for", *(name for names in OF_SERVICE.values() for name in names)}
    assert {*Service.model_fields} - of_money == {"id", "priority", "owner", "like"}
    assert {*Policy.model_fields} - {name for names in OF_POLICY.values() for name in names} == {"correlation"}


def test_shapley_of_a_known_game() -> None:
    value = {frozenset(): 10, frozenset("a"): 12, frozenset("b"): 15, frozenset("ab"): 21}
    parts, before, after = shapley("ab", lambda taken: float(value[taken]))
    assert (parts, before, after) == ({"a": 4.0, "b": 7.0}, 10.0, 21.0)
    assert in_cents({"a": 1.006, "b": 2.006}, 301) == {"a": 1.01, "b": 2.0}


def test_old_prices_are_a_part(tmp_path: Path) -> None:
    data = some_plan(random.Random(4)) | {"prices": {}, "supply": {}}
    last_record = PlanRecord(solved_plan(plan(data)))
    dearer = {
        name: {purchase: 2 * usd for purchase, usd in prices.items()} for name, prices in last_record["prices"].items()
    }
    money = [row | {name: 2 * row[name] for name in ("p50_usd", "p90_usd")} for row in last_record["money"]]
    file = tmp_path / "last.json"
    file.write_text(json.dumps(last_record | {"prices": dearer, "money": money}))
    new = plan(data)
    difference = bridge(last_of(record_of_file(file), str(file), CATALOG), solved_plan(new, timed=False)).p50
    assert [*difference.parts] == ["price"]
    assert difference.parts["price"] == pytest.approx(-difference.usd, abs=0.01)
    assert listed_prices(new) == last_record["prices"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"inputs": 3, "money": [], "as_of": "x", "prices": {}}'])
def test_what_is_no_plan(text: str, tmp_path: Path) -> None:
    file = tmp_path / "last.json"
    file.write_text(text)
    with pytest.raises(ScenarioError, match="is no plan"):
        last_of(record_of_file(file), str(file), CATALOG)


def test_the_command_says_what_changed(tmp_path: Path) -> None:
    run, file, last = CliRunner(), tmp_path / "plan.yaml", tmp_path / "last.json"
    head = "plan: {start: 2027-Q1, quarters: 2, as_of: 2026-11-26}\n"
    text = head + "services: [{id: a, demand: {users: %s}, model: 8b}]\n"
    file.write_text(text % 200)
    assert (
        run.invoke(main, ["plan", str(file), "--out", str(tmp_path), "--name", "last", "--format", "json"]).exit_code
        == 0
    )
    file.write_text(text % 2000)
    made = run.invoke(
        main, ["plan", str(file), "--out", str(tmp_path), "--since", str(last), "--format", "json", "--json"]
    )
    assert made.exit_code == 0, made.output
    record = json.loads(made.stdout)
    assert [part["factor"] for part in record["bridge"]] == ["users"]
    assert record["since"]["now_p50_usd"] - record["since"]["p50_usd"] == pytest.approx(record["bridge"][0]["usd"])
    assert record["variance"] == []
    spent = tmp_path / "spent.csv"
    spent.write_text("quarter,service,usd\n2027-Q1,a,500\n")
    with_actuals = ["plan", str(file), "--out", str(tmp_path), "--json", "--actuals", str(spent)]
    refused = run.invoke(main, with_actuals)
    assert refused.exit_code == 1 and "--since" in refused.stderr
    compared = json.loads(run.invoke(main, [*with_actuals, "--since", str(last)]).stdout)
    planned = json.loads(last.read_text())["money"][0]["p50_usd"]
    (row,) = compared["variance"]
    usd = {"planned": pytest.approx(planned), "approved": pytest.approx(planned), "measured": 500}
    assert row.pop("in_flight_peak") is None and row.pop("planned_at_once") > 0
    assert row == {"quarter": "2027-Q1", "service": "a", **usd}


@pytest.mark.long
def test_loads_that_are_kept_give_the_same_plans() -> None:
    """Every mixture of two plans costs the same with what other mixtures left, on owned and committed machines too."""
    dice = random.Random(29)
    data = [some_plan(dice) for _ in range(2)]
    for stated, count in zip(data, (8, 16), strict=True):
        stated["supply"] = {
            "owned": [{"id": "o", "gpu": "h100", "count": count, "cost_per_quarter": 1000}],
            "committed": [{"id": "c", "type": "aws/p5.48xlarge", "count": 1, "until": "2027-06-30", "usd_per_hour": 9}],
        }
    old, new = map(plan, data)
    kept: Loads = {}
    for taken in itertools.chain.from_iterable(itertools.combinations(FACTORS, n) for n in (0, 1, 2, 8)):
        mix = mixed(old, new, frozenset(taken))
        assert spend_usd(mix, kept) == spend_usd(mix), taken
    assert len(kept) > 10

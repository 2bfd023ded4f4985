"""What changed since the last plan: parts that sum to the difference, to the cent, on random pairs of plans."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from amounts import amount
from click.testing import CliRunner

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.cli import main
from sheetgen.cli.plan_commands import record_of_file
from sheetgen.errors import ScenarioError
from sheetgen.plan.bridge import (
    CENTS,
    FACTORS,
    Bridge,
    Last,
    bridge,
    in_cents,
    last_of,
    listed_prices,
    mixed,
    shapley,
    spend_usd,
)
from sheetgen.plan.findings import findings
from sheetgen.plan.hardware_by_quarter import Loads
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan

CATALOG = Catalog()
N_PAIRS = amount(4, 200)


def plan(data: dict[str, Any]) -> Plan:
    return plan_of(Document("plan.yaml", data, {}), CATALOG)


def since(old: Plan, new: Plan) -> tuple[Bridge, float, float]:
    """The bridge, and what both plans cost at p50."""
    said, now = (spend_usd(each) for each in (old, new))
    return bridge(Last(old, said, "old"), new), said, now


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
        }
        for name in dice.sample(["chat", "rag"], dice.randint(1, 2))
    ]
    return {
        "plan": {"start": dice.choice(["2027-Q1", "2027-Q2"]), "quarters": 2, "as_of": "2026-11-26"},
        "policy": {
            "headroom_fraction": dice.choice([0, 0.2]),
            "redundancy": {"survive": dice.choice(["none", "replica"])},
        },
        "prices": {"discount_fraction": dice.choice([0, 0.1]), "expected_change_per_year": dice.choice([0, -0.2])},
        "supply": {
            "allowed": {"gpus": ["h100"]},
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


def test_the_parts_sum_to_the_difference() -> None:
    dice = random.Random(19)
    seen: set[str] = set()
    for _ in range(N_PAIRS):
        found, said, now = since(plan(some_plan(dice)), plan(some_plan(dice)))
        cents = [round(usd * CENTS) for usd in found.parts.values()]
        assert [one / CENTS for one in cents] == [*found.parts.values()]
        assert sum(cents) == round(now * CENTS) - round(said * CENTS)
        seen |= {*found.parts}
    assert seen == {*FACTORS}


def test_one_change_is_all_of_the_difference() -> None:
    base = some_plan(random.Random(3))
    other = base | {"prices": {"discount_fraction": 0.5}}
    found, said, now = since(plan(base | {"prices": {}}), plan(other))
    assert [*found.parts] == ["price"]
    assert found.parts["price"] == pytest.approx(now - said, abs=0.01)
    same, *_ = since(plan(base), plan(base))
    assert same.parts == {}


def test_the_calendar_moves_and_the_demand_keeps_its_day() -> None:
    """The same demand, written a quarter later as it has grown by then: nothing but the calendar changed."""
    service = {"id": "one", "demand": {"in_flight": 100}, "growth": 0.5, "model": "8b"}
    data = {"plan": {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"}, "services": [service]}
    later = {
        "plan": {"start": "2027-Q2", "quarters": 2, "as_of": "2026-11-26"},
        "services": [service | {"stated_for": "2027-Q1"}],
    }
    shifted = record_of(findings(solved_plan(plan(later))))["services"]
    first = record_of(findings(solved_plan(plan(data))))["services"]
    assert shifted[0]["concurrent_requests"] == first[3]["concurrent_requests"] == pytest.approx(150)
    found, *_ = since(plan(data), plan(later))
    assert found.parts["calendar"] > 0
    assert found.parts.get("users", 0) == 0


def test_shapley_of_a_known_game() -> None:
    value = {frozenset(): 10, frozenset("a"): 12, frozenset("b"): 15, frozenset("ab"): 21}
    parts, before, after = shapley("ab", lambda taken: float(value[taken]))
    assert (parts, before, after) == ({"a": 4.0, "b": 7.0}, 10.0, 21.0)
    assert in_cents({"a": 1.006, "b": 2.006}, 301) == {"a": 1.01, "b": 2.0}


def test_old_prices_are_a_part(tmp_path: Path) -> None:
    data = some_plan(random.Random(4)) | {"prices": {}, "supply": {}}
    known = record_of(findings(solved_plan(plan(data))))
    dearer = {name: {each: 2 * usd for each, usd in of.items()} for name, of in known["prices"].items()}
    money = [one | {"p50_usd": 2 * one["p50_usd"]} for one in known["money"]]
    file = tmp_path / "last.json"
    file.write_text(json.dumps(known | {"prices": dearer, "money": money}))
    new = plan(data)
    found = bridge(last_of(record_of_file(file), str(file), CATALOG), new)
    assert [*found.parts] == ["price"]
    assert found.parts["price"] == pytest.approx(-found.usd, abs=0.01)
    assert listed_prices(new) == known["prices"]


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
    assert run.invoke(main, ["plan", str(file), "--out", str(tmp_path), "--name", "last"]).exit_code == 0
    file.write_text(text % 2000)
    made = run.invoke(main, ["plan", str(file), "--out", str(tmp_path), "--since", str(last), "--json"])
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    assert [one["factor"] for one in found["bridge"]] == ["users"]
    assert found["since"]["now_p50_usd"] - found["since"]["p50_usd"] == pytest.approx(found["bridge"][0]["usd"])


@pytest.mark.long
def test_loads_that_are_kept_give_the_same_plans() -> None:
    """Every mixture of two plans costs the same with what other mixtures left, on owned and committed machines too."""
    dice = random.Random(29)
    data = [some_plan(dice) for _ in range(2)]
    for one, count in zip(data, (8, 16), strict=True):
        one["supply"] = {
            "owned": [{"id": "o", "gpu": "h100", "count": count, "cost_per_quarter": 1000}],
            "committed": [{"id": "c", "type": "aws/p5.48xlarge", "count": 1, "until": "2027-06-30", "usd_per_hour": 9}],
        }
    old, new = map(plan, data)
    kept: Loads = {}
    for taken in itertools.chain.from_iterable(itertools.combinations(FACTORS, n) for n in (0, 1, 2, 8)):
        one = mixed(old, new, frozenset(taken))
        assert spend_usd(one, kept) == spend_usd(one), taken
    assert len(kept) > 10

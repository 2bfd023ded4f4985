"""What a lever or a move is said to save is what the plan gives with that change written into it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from amounts import IN_LONG, amount
from option_values import Options
from plan_books import findings_without_levers
from test_plan_cheapest import some_plan

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.cheaper import Lever, Trials, best_of_kinds, closing
from sheetgen.plan.findings import Findings, findings
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import FEW, solved_plan
from sheetgen.plan.worked_plan import Answer, moves_usd

CATALOG = Catalog()
SAAS: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "data/saas_plan.yaml").read_text())
OF_SMALL_PLAN = ("support-chat", "copilot", "search-embed", "agents", "moderation")
TIGHT = {"2027-Q1": 630_000, "2027-Q2": 1_300_000}
A_CENT = 0.01
WIDTHS = {"weights": "weight_dtype", "KV cache": "kv_cache_dtype"}
SMALL = {
    "id": "chat",
    "model": "llama-3.1-8b",
    "demand": {"at_once": {"p10": 200, "p50": 300, "p90": 450}},
    "request": {"input_tokens": 1000, "output_tokens": 300},
}


def solved(data: dict[str, Any]) -> Answer:
    return solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG), timed=False)


def findings_of(data: dict[str, Any]) -> Findings:
    return findings(solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG)))


def with_change(data: dict[str, Any], lever: Lever) -> dict[str, Any]:
    """The plan as it is written, with what a lever's name says."""
    if lever.change.kind == "precision":
        parts, _, names = lever.change.name.partition(" in FP8: ")
        dtypes = {WIDTHS[part]: "fp8" for part in parts.split(" and ")}
        models = {service["id"]: service.get("model") for service in data["services"]}
        with_models = [{"model": models.get(s.get("like"))} | s for s in data["services"]]  # which `like` would follow
        return data | {"services": [in_fp8(s, dtypes) if s["id"] in names.split(", ") else s for s in with_models]}
    update: Options = yaml.safe_load("{" + lever.change.name + "}")
    supply, policy = dict(data.get("supply", {})), dict(data.get("policy", {}))
    if "exclude" in update:
        allowed = supply.get("allowed", {})
        supply["allowed"] = allowed | {"exclude": [*allowed.get("exclude", []), *update.pop("exclude")]}
    services = data["services"]
    for key in ("survive", "hot_share"):
        if key in update:
            lost = {key: update.pop(key)}
            policy["redundancy"] = policy.get("redundancy", {}) | lost
            services = [s | {"redundancy": s["redundancy"] | lost} if is_more(s, lost) else s for s in services]
    return data | {"policy": policy | update, "supply": supply, "services": services}


def is_more(service: dict[str, Any], lost: dict[str, Any]) -> bool:
    levels = ["none", "replica", "machine", "zone"]
    survive = service.get("redundancy", {}).get("survive", "none")
    return levels.index(survive) > levels.index(lost.get("survive", "none"))


def in_fp8(service: dict[str, Any], dtypes: dict[str, str]) -> dict[str, Any]:
    models = service["model"] if isinstance(service["model"], list) else [service["model"]]
    whole = ({"id": model} if isinstance(model, str) else model for model in models)
    return service | {"model": [model | dtypes for model in whole]}


def as_printed(lever: Lever, data: dict[str, Any], whole: Findings) -> None:
    """The lever is what its plan gives, to the cent."""
    other = solved(with_change(data, lever))
    assert sum(other.asked_usd) == pytest.approx(lever.asked_usd, abs=A_CENT), lever.change.name
    at_p50 = float((whole.answer.money["spend_usd"] - other.money["spend_usd"])[:, 1].sum()) - lever.moves_usd
    assert at_p50 == pytest.approx(lever.saves_p50_usd, abs=A_CENT), lever.change.name
    assert [*other.over] == [*lever.over] and other.bound_after_usd == pytest.approx(lever.bound_after_usd, abs=A_CENT)


@pytest.fixture(scope="module")
def saas_data() -> dict[str, Any]:
    """A plan over its budget; in the gate of five services and two quarters, whose levers take a fifth of the time."""
    services = [service for service in SAAS["services"] if service["id"] in OF_SMALL_PLAN]
    return SAAS if IN_LONG else SAAS | {"plan": SAAS["plan"] | {"quarters": 2}, "budget": TIGHT, "services": services}


@pytest.fixture(scope="module")
def saas(saas_data: dict[str, Any]) -> Findings:
    return findings_of(saas_data)


def test_a_lever_is_what_the_plan_gives_with_it(saas: Findings, saas_data: dict[str, Any]) -> None:
    """One that kept the hardware printed $4,923,318; who wrote its change into the plan had $5,010,812."""
    assert saas.cheaper
    for lever in saas.cheaper[: amount(2, 20)]:
        as_printed(lever, saas_data, saas)


@pytest.mark.parametrize("seed", range(amount(3, 40)))
def test_levers_of_any_plan_are_what_it_gives_with_them(seed: int) -> None:
    dice = random.Random(seed)
    data = some_plan(dice)
    data["policy"] |= dice.choice([{}, {"release_after_quarters": 1}, {"headroom_fraction": 0.2}])
    whole = findings_of(data)
    for lever in dice.sample(whole.cheaper, min(len(whole.cheaper), amount(2, 20))):
        if lever.change.kind != "machines":
            as_printed(lever, data, whole)


def test_a_lever_of_a_large_plan_begins_with_its_machines() -> None:
    """It is a plan that can be had: on the machines it comes to, its money is that of the plan with the change. And no
    service moves for a lever that changes nothing of it."""
    data = {
        "plan": {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-26"},
        "services": [
            SMALL | {"id": f"s{i}", "demand": {"at_once": 40 + 30 * i}, "redundancy": {"survive": "machine"}}
            for i in range(FEW + 1)
        ],
        "supply": {"allowed": {"providers": ["aws"]}},
        "policy": {"headroom_fraction": 0.2},
    }
    whole = findings_of(data)
    trials = Trials(whole.answer, whole.unserved)
    assert {lever.change.kind for lever in whole.cheaper} >= {"policy", "class", "precision"}
    for lever in whole.cheaper:
        plan = plan_of(Document("plan.yaml", with_change(data, lever), {}), CATALOG)
        trial = trials.changed([lever.change])
        assert trial is not None
        again = solved_plan(plan, timed=False, hardware=trial.hardware)
        assert sum(again.asked_usd) == pytest.approx(lever.asked_usd, abs=A_CENT), lever.change.name
        if lever.change.kind == "precision":
            narrowed = lever.change.name.partition(" in FP8: ")[2].split(", ")
            others = {slot: p for slot, p in trial.hardware.placed.items() if f"s{slot[0]}" not in narrowed}
            assert others.items() <= whole.answer.hardware.placed.items()
    near = f"Of more than {FEW} services a lever begins with this plan's machines"
    assert any(near in str(line) for section in plan_page(whole).first for line in section.lines)


def test_what_a_move_saves_is_the_plan_without_it() -> None:
    """It was the service alone on its machines of before, nothing laid out anew: $192,702 for $85,797 of what is to be
    approved, and staying is cheaper at p50."""
    whole = findings_without_levers(solved_plan(plan_of(Document("plan.yaml", SAAS, {}), CATALOG)))
    answer = whole.answer
    moves = {answer.plan.services[move.moves].id: move for move in whole.decisions if move.moves is not None}
    assert "doc-extract" in moves
    move, spend = moves["doc-extract"], answer.money["spend_usd"][:, 1].sum()
    stays = {"allowed": {"instances": ["aws/p5en.48xlarge"]}}
    other = solved(SAAS | {"services": [s | (stays if s["id"] == "doc-extract" else {}) for s in SAAS["services"]]})
    near = 0.002 * sum(answer.asked_usd)  # the move itself
    assert move.saves_usd == pytest.approx(sum(other.asked_usd) - sum(answer.asked_usd), abs=near)
    assert move.saves_p50_usd == pytest.approx(float(other.money["spend_usd"][:, 1].sum() - spend), abs=near)
    assert move.saves_p50_usd < 0


def test_moves_that_save_nothing_are_not_in_the_plan() -> None:
    """No move of a plan, and not all of them, can be left undone for less; the cost of a move is its own."""
    n_moves = 0
    for seed in range(amount(8, 80)):
        data = some_plan(random.Random(seed))
        data["services"] = [s | {"growth": 0.5} for s in data["services"]]
        answer = solved(data)
        n_moves += len(answer.hardware.moves)
        for moves, other in answer.without_moves.items():
            if other is not None:
                moves_more_usd = moves_usd(other, answer.plan) - moves_usd(answer, answer.plan)
                assert sum(answer.more_usd(other)) + 2 * moves_more_usd > 0 or other.hardware.nothing, (seed, moves)
                assert not moves & other.hardware.moves
    assert n_moves


def test_a_class_that_nothing_is_sold_in_is_no_lever() -> None:
    """Azure and GCP sell no capacity blocks: what that lever ordered was on demand, and stood for a third time."""
    data = {
        "plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-30"},
        "policy": {"buy": "reserved-1yr"},
        "services": [SMALL | {"growth": {"series": [1, 0.2, 0.2, 0.2]}}],
        "supply": {"allowed": {"providers": ["azure", "gcp"]}},
    }
    levers = [lever for lever in findings_of(data).cheaper if lever.change.kind == "class"]
    assert levers and not any("capacity-block" in lever.change.name for lever in levers)
    for lever in levers:
        other, buy = solved(with_change(data, lever)), lever.change.name.removeprefix("buy: ").split(",")[0]
        bought = {part.buying.purchase for t, part in enumerate(other.types) if other.to_buy[t].any()}
        assert other.plan.base if buy == "mix" else buy in bought
    results = {(round(lever.asked_usd), round(lever.saves_p50_usd), round(lever.bound_usd)) for lever in levers}
    assert len(results) == len(levers)


def test_a_mix_has_a_lever_that_binds_nothing_after_the_plan() -> None:
    """A mix of 3-year terms alone was tried, and dropped, as what is paid after the plan counted as lost: page 1 had a
    lever that saved less."""
    data = {
        "plan": {"start": "2027-Q1", "quarters": 8, "as_of": "2026-11-30"},
        "policy": {"buy": "on-demand"},
        "services": [SMALL | {"demand": {"requests": {"per_day": 4_000_000}}, "profile": "business"}],
        "supply": {"allowed": {"providers": ["azure"]}},
    }
    whole = findings_of(data)
    classes = [lever for lever in best_of_kinds(whole.cheaper) if lever.change.kind == "class"]
    unbound, *bound = classes
    every = [lever for lever in whole.cheaper if lever.change.kind == "class"]
    assert unbound.bound_after_usd == pytest.approx(0, abs=1) and "mix" in unbound.change.name
    assert unbound.mean_usd == max(lever.mean_usd for lever in every if not lever.binds_after)
    assert [lever.mean_usd for lever in bound] == [max(lever.mean_usd for lever in every)] and bound[0].binds_after
    as_printed(unbound, data, whole)


def test_one_lever_that_holds_the_budget_comes_before_two_together(saas: Findings) -> None:
    """Policy and precision were named together, though a class that no line of page 1 had held every quarter alone."""
    alone = [lever for lever in saas.cheaper if not lever.over]
    assert alone and saas.closing is not None and len(saas.closing.levers) == 1 and not saas.closing.over
    best = best_of_kinds(saas.cheaper)
    hidden = [lever for lever in alone if lever not in best]
    trials = Trials(saas.answer, saas.unserved)
    without = [lever for lever in saas.cheaper if lever.over or lever in hidden]
    found_alone = closing(trials, without)
    best_hidden = max(hidden, key=lambda lever: (not lever.binds_after, lever.worth_usd))
    assert found_alone is not None and found_alone.levers == (best_hidden,)


def test_the_plan_without_the_moves_to_sign_is_said() -> None:
    """Page 1 had a budget that is over beside moves to sign, and did not say what the plan is without them."""
    nc40, box = "azure/Standard_NC40ads_H100_v5", {"id": "dgx", "gpu": "h100", "count": 8, "cost_per_quarter": 1000}
    service = SMALL | {"demand": {"at_once": 300}}
    supply = {
        "allowed": {"instances": [nc40, "aws/p5.48xlarge"]},
        "ordered": [{"type": nc40, "count": 3, "services": ["chat"]}],
        "owned": [box],
    }
    data = {
        "plan": {"start": "2027-Q1", "quarters": 2, "as_of": "2026-12-20"},
        "services": [service],
        "supply": supply,
        "budget": {"2027-Q1": 10_000, "2027-Q2": 1_000_000},
    }
    whole = findings_of(data)
    stays = solved(data | {"services": [service | {"allowed": {"instances": [nc40]}}]})
    without = whole.without_moves
    assert without is not None and without.n_moves == 1
    assert without.asked_usd == pytest.approx(sum(stays.asked_usd)) and without.asked_usd > sum(whole.answer.asked_usd)
    assert [*without.over_usd] == [*stays.over] == ["2027-Q1"] and not whole.answer.over
    assert without.over_usd["2027-Q1"] == pytest.approx(-stays.left_usd(0)[1])
    assert f"${without.over_usd['2027-Q1']:,.0f}" in str(plan_page(whole).first[0].lines[0])
    record = record_of(whole)
    assert record["without_moves"]["asked_usd"] == without.asked_usd
    (move,) = [row for row in record["decisions"] if row["what"] == "move"]
    assert move["expected_saving_usd"] + sum(whole.answer.asked_usd) < without.asked_usd  # less the move
    assert record["totals"]["moves_usd"] > 0

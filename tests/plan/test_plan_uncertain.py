"""Joint draws agree with the closed form, and commitments with a brute force over all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest
from option_values import OptionValue
from plan_books import PlanRecord, findings_without_levers

from sheetgen import recommend
from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.commitments import commitments
from sheetgen.plan.draws import correlated, drawn, quantiles, swings
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.services_table import services_table
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.terms import worth_a_term
from sheetgen.plan.worked_plan import Answer

CATALOG = Catalog()
BAND = {"p10": 40, "p50": 100, "p90": 300}
# One type, which all services share.
ALLOWED = {"allowed": {"instances": ["azure/Standard_NC80adis_H100_v5"]}}


def answer(services: list[dict[str, Any]], **more: OptionValue) -> Answer:
    data = {
        "plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"},
        "services": services,
        "supply": ALLOWED,
        **more,
    }
    return solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG))


def service(name: str, **more: OptionValue) -> dict[str, Any]:
    return {
        "id": name,
        "demand": {"requests": {"p10": 2, "p50": 6, "p90": 14}},
        "model": "70b",
        "growth": {"per_quarter": {"p10": -0.1, "p50": 0.1, "p90": 0.3}},
        **more,
    }


def test_what_is_measured_first_is_what_recommend_measures_first() -> None:
    """On the machines of the plan: all that was less than 0.9 sure was, of whatever recommend said nothing."""
    tight = {"tpot_ms": 10, "ttft_ms": 1500, "confidence": 0.95}
    services = [
        {
            "id": "tight",
            "demand": {"at_once": 8},
            "model": "70b",
            "request": {"context_tokens": "16k"},
            "targets": tight,
        },
        {"id": "easy", "demand": {"at_once": 16}, "model": "8b"},
    ]
    record = PlanRecord(answer(services, supply={}))
    rows = {row["id"]: row for row in record["services"] if row["quantile"] == "p90" and row["quarter"] == "2027-Q1"}

    def on(name: str) -> dict[str, str]:
        return {"instances": rows[name]["instance"], "as_of": "2026-11-26"}

    alone = {
        "tight": recommend(model="70b", context="16k", concurrent_requests=8, **tight, **on("tight")),
        "easy": recommend(model="8b", context="4k", concurrent_requests=16, **on("easy")),
    }
    assert {name: row["measure_first"] for name, row in rows.items()} == {
        name: recommended["measure_first"] for name, recommended in alone.items()
    }
    assert alone["tight"]["measure_first"][0] == "impossible" and rows["easy"]["chance"] < 0.9
    assert [row["service"] for row in record["measure_first"]] == [
        name for name, recommended in alone.items() if recommended["measure"]["is_worth_it"]
    ]
    first = record["measure_first"][0]
    assert (first["service"], first["quarter"], first["measure_first"]) == (
        "tight",
        "2027-Q1",
        alone["tight"]["measure_first"],
    )


def test_spare_machines_for_a_loss_hide_no_measurement() -> None:
    """90 requests at once: a machine at an even chance, two at 0.7. With a spare one these are two and three, which is
    no more than half as much again, and the plan named nothing; a day decides a machine's month all the same."""
    tight = {"targets": {"tpot_ms": 50, "ttft_ms": 3000}, "allowed": {"instances": ["gcp/a3-highgpu-8g"]}}
    request = {"context_tokens": "8k", "input_tokens": 6000, "output_tokens": 600}
    chat = {"id": "chat", "demand": {"at_once": 90}, "model": "llama-3.3-70b", "request": request, **tight}
    policy = {"redundancy": {"survive": "machine"}, "headroom_fraction": 0.1}
    supply = {"allowed": {"region": "germany"}}
    record = PlanRecord(answer([chat], supply=supply, policy=policy))
    alone = recommend(
        model="llama-3.3-70b", context="8k", input_tokens=6000, output_tokens=600, concurrent_requests=90, tpot_ms=50,
        ttft_ms=3000, instances="gcp/a3-highgpu-8g", region="germany", extra_headroom_fraction=0.1, as_of="2026-11-26",
    )  # fmt: skip
    assert [level["n_instances"] for level in alone["by_confidence"][:2]] == [1, 2]
    (measured,) = record["measure_first"]
    assert measured["passed_saves_usd"] == pytest.approx(alone["monthly_usd"] / 2) and measured["usd"] > 0
    assert measured["passed_saves_usd"] == pytest.approx(alone["measure"]["passed_saves_usd"])


def test_measuring_on_a_machine_that_is_there_costs_nothing_more() -> None:
    """A day was priced at a cloud's list price where the company's own machine does."""
    tight = {"targets": {"tpot_ms": 50, "ttft_ms": 3000}, "allowed": {"instances": ["gcp/a3-highgpu-8g"]}}
    request = {"context_tokens": "8k", "input_tokens": 6000, "output_tokens": 600}
    chat = {"id": "chat", "demand": {"at_once": 90}, "model": "llama-3.3-70b", "request": request, **tight}
    owned = [{"id": "o", "gpu": "h100", "count": 16, "cost_per_quarter": 1000}]
    term = {"id": "c", "type": "gcp/a3-highgpu-8g", "count": 2, "until": "2028-12-31", "purchase": "reserved-1yr"}

    def measured(**supply: Any) -> tuple[float, str, int]:
        (row,) = PlanRecord(answer([chat], supply=supply))["measure_first"]
        return row["usd"], row["purchase"], row["n_instances"]

    assert measured(owned=owned) == (0, "owned", 1)
    assert measured(committed=[term]) == (0, "committed", 1)


def test_nothing_is_said_to_be_100_percent_sure() -> None:
    planned = answer([service("one")])
    speed = {slot: replace(speed, chance=0.99) for slot, speed in planned.hardware.speed.items()}
    drawn = services_table(replace(planned, hardware=replace(planned.hardware, speed=speed)), ())
    assert "over 95% sure" in " ".join(str(cell) for row in drawn.rows for cell in row)


def test_draws_of_one_service_are_its_quantiles() -> None:
    planned = answer([service("one")], policy={"redundancy": {"survive": "machine"}, "release_after_quarters": 1})
    draws = drawn(planned)
    for q in range(4):
        assert [*quantiles(draws.spend_usd[:, q]).values()] == pytest.approx(list(planned.money["spend_usd"][q]))
    assert [*quantiles(draws.spend_usd.sum(axis=1)).values()] == pytest.approx(
        list(planned.money["spend_usd"].sum(axis=0))
    )


def test_what_moves_the_money_is_each_service_at_its_own_band() -> None:
    planned = answer([service("one")])  # its price has no band
    assert swings(planned) == [
        ("demand of one", *(pytest.approx(planned.money["spend_usd"][:, z].sum()) for z in (0, 2)))
    ]
    two = answer(
        [service("one"), service("large", demand={"at_once": 90}, growth=0.1)],
        prices={"expected_change_per_year": {"p10": -0.4, "p50": -0.1, "p90": 0}},
    )
    names = [name for name, *_ in swings(two)]
    assert sorted(names) == ["demand of one", "price of what is bought"]  # one number moves nothing
    assert all(low < two.money["spend_usd"][:, 1].sum() < high for _, low, high in swings(two))


def test_the_p90_of_a_sum_is_below_the_sum_of_p90s() -> None:
    many = [service(f"s{i}") for i in range(6)]
    apart, together = (answer(many, policy={"correlation": rho}) for rho in (0, 1))
    alone = list(apart.money["spend_usd"].sum(axis=0))
    spread, same = (quantiles(drawn(planned).spend_usd.sum(axis=1)) for planned in (apart, together))
    assert spread["p90"] < 0.9 * alone[2]
    assert [*same.values()] == pytest.approx(alone, rel=1e-9)  # all move as one


def test_draws_have_the_correlation_that_was_asked_for_and_a_fixed_seed() -> None:
    z, price = correlated(3, 0.6)
    assert numpy.corrcoef(z)[0, 1:] == pytest.approx([0.6, 0.6], abs=0.02)
    assert abs(numpy.corrcoef(price, z[0])[0, 1]) < 0.03
    assert (z == correlated(3, 0.6)[0]).all()
    for draws in z:
        assert (draws.mean(), draws.std()) == pytest.approx((0, 1), abs=2e-3)


def test_the_newsvendor_is_the_best_of_all_numbers() -> None:
    random = numpy.random.default_rng(19)
    kinds = set()
    for _ in range(200):
        n_quarters = int(random.integers(1, 5))
        wanted = random.poisson(random.uniform(0, 8), (int(random.integers(1, 30)), n_quarters)).astype(float)
        bought, committed = random.uniform(1, 3, n_quarters), float(random.uniform(0.1, 3))
        shares = numpy.array([(wanted >= k).mean(axis=0) for k in range(1, int(wanted.max()) + 2)]).T
        usd = [
            float((count * committed + numpy.maximum(0, wanted - count) * bought).mean(axis=0).sum())
            for count in range(int(wanted.max()) + 2)
        ]
        count = int(worth_a_term(shares, bought, committed).sum())
        assert usd[count] == pytest.approx(min(usd), rel=1e-12)
        kinds.add(min(count, 2))
    assert kinds == {0, 1, 2}


def test_a_commitment_is_recommended_for_what_it_saves() -> None:
    (best,) = commitments(planned := answer([service("one"), service("two")]), drawn(planned))
    assert (best.instance, best.purchase) == ("azure/Standard_NC80adis_H100_v5", "reserved-1yr")
    assert best.n_instances > 0 and (best.saves_usd or 0) > 0
    first = planned.plan.quarter_of(best.needed_from)
    assert first is not None  # of four quarters those until the plan's end
    assert best.usd == pytest.approx(best.binds_usd * (len(planned.plan.quarters) - first) / 4)


def test_a_sum_to_approve_that_covers_fewer_than_nine_of_ten_cases_is_said() -> None:
    """Of one service bought at p50 half of the draws cost more. The page gave nine of ten cases a larger sum than that
    to approve, and did not say that it is less."""
    for plan_at, contingency, is_less in (("p50", 0.0, True), ("p90", 1.0, False)):
        policy, prices = {"plan_at": plan_at}, {"contingency_fraction": contingency}
        whole = findings_without_levers(answer([service("one")], policy=policy, prices=prices))
        asked = sum(whole.answer.asked_usd)
        covered = record_of(whole)["totals"]["covered_fraction"]
        assert covered == (whole.draws.spend_usd.sum(axis=1) <= asked).mean()
        assert is_less == (covered < 0.9) == (whole.together_p90_usd > asked)
        tile = " ".join(map(str, plan_page(whole).tiles[2].facts))
        (mail,) = [str(text) for label, text in plan_page(whole).brief.points if label == "Expected"]
        for text in (tile, mail):
            assert (f"enough in {int(covered * 100)}%" in text) == is_less

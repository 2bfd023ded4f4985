"""The money of a recommendation: purchase classes, providers, owning, budget; and the JSON that carries it."""

from __future__ import annotations

import dataclasses
import functools
import math

import pytest
from amounts import amount
from answers import document
from hypothesis import given, settings
from hypothesis import strategies as st

import sheetgen
from sheetgen.answer import ways_to_pay
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask
from sheetgen.units import PURCHASES

P5 = {
    "model": "70b",
    "context": "16k",
    "concurrent_requests": 32,
    "instances": "aws/p5.48xlarge",
    "as_of": "2026-11-20",
}
INSTANCES = "aws/g6e.12xlarge,aws/p5.48xlarge,aws/p5en.48xlarge,gcp/a3-highgpu-8g,azure/Standard_ND96isr_H200_v5"


@functools.cache
def catalog() -> Catalog:
    return Catalog()


def one(**options: object) -> Solution:
    return recommended({**P5, **options}, catalog())


def classes(solved: Solution) -> dict[str, ways_to_pay.ClassCost]:
    return {c.purchase: c for c in ways_to_pay.purchase_classes(solved, 0)}


def test_classes_of_p5_48xlarge_by_hand() -> None:
    by_class = classes(one())
    assert list(by_class) == ["on-demand", "reserved-1yr", "reserved-3yr", "spot", "capacity-block"]
    demand, three = by_class["on-demand"], by_class["reserved-3yr"]
    assert (demand.hourly_usd, demand.price_as_of) == (55.04, "2026-07-20")
    assert demand.monthly_usd == pytest.approx(55.04 * 730) and demand.annual_usd == pytest.approx(55.04 * 730 * 12)
    assert three.hourly_usd == 23.7773 and three.terms == "Standard RI, No Upfront"
    assert three.three_year_usd == pytest.approx(23.7773 * 730 * 36) and three.commitment_waste_usd == 0
    assert math.isnan(by_class["spot"].hourly_usd) and math.isnan(by_class["spot"].commitment_waste_usd)


def test_a_committed_month_is_paid_in_full() -> None:
    by_class = classes(one(hours_per_month=200))
    assert by_class["on-demand"].monthly_usd == pytest.approx(55.04 * 200)
    assert by_class["reserved-3yr"].monthly_usd == pytest.approx(23.7773 * 730)
    assert by_class["reserved-3yr"].commitment_waste_usd == pytest.approx(23.7773 * 530)
    declined = one(purchase="reserved-3yr", hours_per_month=200)  # on demand 200 hours are cheaper than all of them
    assert declined.choices[0].monthly_usd == pytest.approx(55.04 * 200)
    chosen = one(purchase="reserved-3yr", hours_per_month=500)
    assert chosen.choices[0].monthly_usd == pytest.approx(23.7773 * 730)
    assert classes(chosen)["reserved-3yr"].monthly_usd == chosen.choices[0].monthly_usd
    assert classes(chosen)["on-demand"].monthly_usd == pytest.approx(55.04 * 500)


def test_the_class_in_use_is_the_recommendation() -> None:
    solved = solve(ask(catalog(), {"models": "8b,70b,405b", "as_of": "2026-11-20"}))
    for row, choice in enumerate(solved.choices):
        if choice.offer is not None:
            first = ways_to_pay.purchase_classes(solved, row)[0]
            assert first.hourly_usd == pytest.approx(choice.hourly_usd)
            assert first.monthly_usd == pytest.approx(choice.monthly_usd)
            assert first.annual_usd == ways_to_pay.unit_costs(solved, row)["annual_usd"]
            best = ways_to_pay.providers(solved)[row]
            assert choice.cheapest is not None and choice.cheapest.usd <= choice.monthly_usd
            lowest = min(p.monthly_usd for p in best if p.instance is not None)
            assert choice.cheapest.usd <= lowest <= choice.monthly_usd * 1.05, "each provider's best by the same rule"


def test_a_provider_s_best_is_the_answer_where_only_it_is_asked() -> None:
    """With near ties, too: its best is then not its cheapest."""
    options = {"models": "8b,70b", "near_tie_fraction": "0.2", "as_of": "2026-11-20"}
    solved = solve(ask(catalog(), options))
    alone = {name: solve(ask(catalog(), {**options, "providers": name})) for name in ("aws", "azure", "gcp")}
    n_ties = 0
    for row in range(len(solved.choices)):
        for best in ways_to_pay.providers(solved)[row]:
            other = alone[best.provider]
            choice = other.choices[row]
            assert best.instance is not None and choice.offer is not None and choice.cheapest is not None
            assert best.instance == other.candidate(choice.offer).instance
            assert (best.n_instances, best.monthly_usd) == (choice.n_instances, pytest.approx(choice.monthly_usd))
            assert best.hourly_usd == pytest.approx(choice.hourly_usd)
            n_ties += choice.cheapest.offer != choice.offer
    assert n_ties >= 5


def test_every_class_is_answered_alike_whichever_is_shown() -> None:
    """A class may be answered with GPUs for which the class shown has no price. A commitment that saves nothing on
    demand is an answer only where it is asked for."""
    mixed = "aws/p5.48xlarge,aws/p4d.24xlarge,aws/g6e.xlarge,aws/u-p6e-gb200x36,gcp/a4-highgpu-8g"
    azure = "azure/Standard_NC40ads_H100_v5,azure/Standard_NC80adis_H100_v5,azure/Standard_ND96isr_H100_v5"
    options = {"models": "8b,49b,70b,100b,405b", "instances": f"{mixed},{azure}", "as_of": "2026-11-20"}
    options |= {"confidence": "0.5"}  # which each class is answered at; a higher one may be beyond one of them
    shown = {purchase: solve(ask(catalog(), {**options, "purchase": purchase})) for purchase in PURCHASES}

    def rented(solved: Solution, purchase: str) -> list[tuple[str, int, float] | None]:
        return [
            rental and (rental.instance, rental.n_instances, rental.monthly_usd)
            for rental in solved.by_purchase[purchase]
        ]

    plain, n_declined = rented(shown["on-demand"], "on-demand"), 0
    for purchase, own in shown.items():
        assert any(rented(own, purchase))
        declined = [
            purchase.startswith("reserved") and rental is not None and usual is not None and rental[2] >= usual[2]
            for rental, usual in zip(rented(own, purchase), plain, strict=True)
        ]
        n_declined += sum(declined)
        for other, solved in shown.items():
            expected = [
                None if no and other != purchase else rental
                for rental, no in zip(rented(own, purchase), declined, strict=True)
            ]
            assert rented(solved, purchase) == expected, f"{purchase} where {other} is shown"
    assert n_declined


def test_the_cheapest_of_a_provider_is_of_that_provider() -> None:
    solved = recommended({"model": "70b", "context": "16k", "concurrent_requests": 32}, Catalog())
    providers = ways_to_pay.providers(solved)[0]
    assert [provider.provider for provider in providers] == ["aws", "gcp", "azure"] and all(
        provider.instance is not None for provider in providers
    )
    assert all(str(provider.instance).startswith(f"{provider.provider}/") for provider in providers)
    assert min(provider.monthly_usd for provider in providers) == solved.choices[0].monthly_usd


def test_owning_by_hand() -> None:
    """Eight H100 at $30,000 x 1.54 over 5 years, 1.73 kW each at $0.08 and $194.95: against $55.04 an hour."""
    ends = ways_to_pay.owned(one(), 0)
    assert ends is not None and ends["base"]["owned_capex_usd"] == 8 * ends["base"]["installed_usd_per_gpu"]
    base = ends["base"]
    month = 8 * (30_000 * 1.54 / 60 + 1.73 * 730 * 0.08 + 1.73 * 194.95)
    assert base["monthly_owned_usd"] == pytest.approx(month)
    assert base["break_even_utilization"] == pytest.approx(month / (55.04 * 730))
    running = 8 * (1.73 * 730 * 0.08 + 1.73 * 194.95)
    assert base["owning_pays_off_month"] == math.ceil(8 * 30_000 * 1.54 / (55.04 * 730 - running)) == 11
    assert ends["low"]["monthly_owned_usd"] < month < ends["high"]["monthly_owned_usd"]
    quote = ways_to_pay.owned(one(capex_usd_per_gpu="39375", usd_per_kwh=0, colo_usd_per_kw_month=0), 0)
    assert quote is not None
    assert quote["low"] == quote["high"] and quote["base"]["owned_usd_per_gpu_hour"] == pytest.approx(0.90, abs=0.005)


def test_break_even_is_against_the_on_demand_price_whatever_is_rented() -> None:
    demand, reserved = ways_to_pay.owned(one(), 0), ways_to_pay.owned(one(purchase="reserved-3yr"), 0)
    assert demand is not None and reserved is not None
    for end, figures in demand.items():  # when it pays off hangs on what is paid
        paid, later = (ends.pop("owning_pays_off_month") for ends in (figures, reserved[end]))
        assert paid < later and figures == reserved[end]


def test_a_gpu_without_a_price_is_a_dash() -> None:
    ends = ways_to_pay.owned(one(instances="azure/Standard_NC80adis_H100_v5"), 0)
    assert ends is not None
    assert math.isnan(ends["base"]["monthly_owned_usd"]) and math.isnan(ends["high"]["break_even_utilization"])
    with_quote = ways_to_pay.owned(one(instances="azure/Standard_NC80adis_H100_v5", capex_usd_per_gpu=30_000), 0)
    assert with_quote is not None and with_quote["base"]["break_even_utilization"] > 0


def test_the_budget_has_its_contingency_apart_and_the_currency_last() -> None:
    solved = one(contingency_fraction=0.1, currency="EUR", fx_rate=0.92)
    budget = ways_to_pay.budget(solved, 0)
    assert budget is not None
    usd, extra, total = budget.annual
    assert usd == pytest.approx(55.04 * 730 * 12) and extra == pytest.approx(0.1 * usd)
    assert total == pytest.approx(1.1 * usd * 0.92)
    plain = one()
    assert solved.choices[0] == plain.choices[0]  # neither is inside a price
    assert ways_to_pay.unit_costs(solved, 0) == pytest.approx(ways_to_pay.unit_costs(plain, 0), nan_ok=True)


@functools.cache
def small() -> Solution:
    asked = {"models": "8b,70b", "workloads": "chat,rag", "tiers": "1,64", "headline": "rag:64", "instances": INSTANCES}
    return solve(ask(catalog(), {**asked, "as_of": "2026-11-20"}))


@settings(max_examples=amount(20, 40), deadline=None)
@given(st.integers(0, 4), st.floats(0.05, 1))
def test_a_cheaper_price_never_makes_an_instance_lose(which: int, factor: float) -> None:
    before = small()
    question = before.question
    candidate = question.candidates[which]
    cheaper = dataclasses.replace(candidate, usd_per_hour=candidate.usd_per_hour * factor)
    candidates = (*question.candidates[:which], cheaper, *question.candidates[which + 1 :])
    after = solve(dataclasses.replace(question, candidates=candidates))
    for old, new in zip(before.choices, after.choices, strict=True):
        if old.cheapest is not None and before.offers[old.cheapest.offer].candidate == which:
            assert new.cheapest is not None and after.offers[new.cheapest.offer].candidate == which
        if old.cheapest is not None:
            assert new.cheapest is not None and new.cheapest.usd <= old.cheapest.usd * (1 + 1e-9)
            assert new.monthly_usd <= new.cheapest.usd * 1.05 * (1 + 1e-9)


KEYS = (
    "annual_usd", "three_year_usd", "usd_per_user_per_month", "usd_per_million_input_tokens",
    "usd_per_million_output_tokens", "usd_per_million_tokens",
)  # fmt: skip
CLASS_KEYS = {
    "purchase", "hourly_usd", "monthly_usd", "annual_usd", "three_year_usd", "price_as_of", "source", "terms",
    "commitment_waste_usd", "region",
}  # fmt: skip


def test_the_json_of_every_cell() -> None:
    answer = document(small())
    assert answer["inputs"]["money"] == {
        "currency": "USD",
        "fx_rate": 1.0,
        "fx_date": "2026-11-20",
        "utilization": 0.7,
        "contingency_fraction": 0.0,
    }
    assert answer["inputs"]["owning"]["owned_years"] == 5
    assert "utilization" not in answer["inputs"]
    for cell in answer["cells"]:
        assert all(cell[key] > 0 for key in KEYS), cell["model"]
        assert cell["annual_usd"] == pytest.approx(12 * cell["monthly_usd"])
        assert cell["three_year_usd"] == pytest.approx(36 * cell["monthly_usd"])
        assert len(cell["purchase_classes"]) == 5 and all(set(c) == CLASS_KEYS for c in cell["purchase_classes"])
        assert {p["provider"] for p in cell["providers"]} == {"aws", "gcp", "azure"}
        assert cell["owned"]["base"]["break_even_utilization"] > 0 and cell["owned"]["n_gpus"] == cell["n_gpus"]
        assert cell["budget"]["annual"]["total"] == pytest.approx(cell["annual_usd"])


def test_the_json_where_nothing_fits() -> None:
    cell = sheetgen.recommend(model="405b", instances="aws/g6e.xlarge", as_of="2026-11-20")
    assert cell["instance"] is None
    assert all(cell[key] is None for key in KEYS)
    assert cell["purchase_classes"] == [] and cell["owned"] is None and cell["budget"] is None
    assert cell["providers"] == [
        {
            "provider": "aws",
            **dict.fromkeys(("instance", "gpu", "tensor_parallel_size", "n_instances", "hourly_usd", "monthly_usd")),
        }
    ]

"""A discount: one formula, in the same order of operations wherever a price is counted."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.answer import ways_to_pay
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.formula import Expr
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.sheet_question import ask
from sheetgen.sizing import cost

TWO = {"models": "8b,70b", "as_of": "2026-11-20", "providers": "aws,gcp"}


def test_by_hand_and_as_it_is_written() -> None:
    assert cost.discounted_usd_per_hour(55.04, 0.2) == pytest.approx(44.032)
    assert math.isnan(cost.discounted_usd_per_hour(math.nan, 0.2))
    assert cost.discounted_usd_per_hour(Expr("a"), Expr("b")).text == "a*(1-b)"


@given(st.floats(0.001, 1e6), st.floats(0, BY_NAME["discount_fraction"].kind.high))
def test_what_is_paid_is_above_nothing_and_up_to_the_list(price: float, discount: float) -> None:
    assert 0 < cost.discounted_usd_per_hour(price, discount) <= price
    assert cost.discounted_usd_per_hour(price, 0) == price  # to the bit: no discount changes no answer


def test_every_figure_of_a_choice_is_less_and_the_hardware_the_same() -> None:
    catalog = Catalog()
    listed, less = (solve(ask(catalog, {**TWO, "discount_fraction": d})) for d in (None, "0.35"))
    assert [c.usd_per_hour for c in less.question.candidates] == [c.usd_per_hour for c in listed.question.candidates]
    for row, (a, b) in enumerate(zip(listed.choices, less.choices, strict=True)):
        assert (a.offer, a.runner_up, a.n_instances, a.sized_by) == (b.offer, b.runner_up, b.n_instances, b.sized_by)
        assert b.monthly_usd == pytest.approx(0.65 * a.monthly_usd)
        assert b.hourly_usd == pytest.approx(0.65 * a.hourly_usd)
        units = ways_to_pay.unit_costs(listed, row), ways_to_pay.unit_costs(less, row)
        for name in ("usd_per_million_input_tokens", "usd_per_million_output_tokens", "usd_per_user_per_month"):
            assert units[1][name] == pytest.approx(0.65 * units[0][name], nan_ok=True)
        for x, y in zip(
            ways_to_pay.purchase_classes(listed, row), ways_to_pay.purchase_classes(less, row), strict=True
        ):
            assert y.monthly_usd == pytest.approx(0.65 * x.monthly_usd, nan_ok=True)
        for p, q in zip(ways_to_pay.providers(listed)[row], ways_to_pay.providers(less)[row], strict=True):
            assert p.instance == q.instance and q.monthly_usd == pytest.approx(0.65 * p.monthly_usd, nan_ok=True)


def test_contingency_and_currency_are_of_what_is_paid() -> None:
    more = {"discount_fraction": "0.2", "contingency_fraction": "0.1", "currency": "EUR", "fx_rate": "0.92"}
    solved = solve(ask(Catalog(), {**TWO, **more}))
    budget = ways_to_pay.budget(solved, 0)
    assert budget is not None
    usd, extra, total = budget.monthly
    assert usd == solved.choices[0].monthly_usd
    assert extra == pytest.approx(0.1 * usd) and total == pytest.approx(1.1 * usd * 0.92)


def test_a_typed_price_and_a_commitment_are_less_too() -> None:
    typed = {"instances": {"aws/p5.48xlarge": {"price_usd_per_hour": 10}}}
    options = {"models": "70b", "instances": "aws/p5.48xlarge", "discount_fraction": 0.2}
    assert solve(ask(Catalog(), {**options, "typed": typed})).choices[0].hourly_usd == 8
    solved = solve(ask(Catalog(), {**options, "purchase": "reserved-3yr", "hours_per_month": 200}))
    listed = solved.question.candidates[0].usd_per_hour
    assert solved.choices[0].monthly_usd == pytest.approx(0.8 * listed * 730)
    by_purchase = {c.purchase: c for c in ways_to_pay.purchase_classes(solved, 0)}
    assert by_purchase["reserved-3yr"].commitment_waste_usd == pytest.approx(0.8 * listed * 530)


@pytest.mark.parametrize("value", ["20", "1", "-0.1", "nan", "", "100%", "0.995"])
def test_what_is_no_discount(value: str) -> None:
    with pytest.raises(ScenarioError, match=r" from 0 to 0\.99"):
        ask(Catalog(), {**TWO, "discount_fraction": value})


def test_prices_that_tie_at_the_list_tie_when_paid() -> None:
    """One instance of two GPUs for twice the price of one of one GPU: which is chosen must not move with rounding."""
    for discount in numpy.linspace(0.001, 0.98, 40):
        for price in (0.1, 0.7, 1 / 3, 4.1, 12.2895):
            first, two = (cost.discounted_usd_per_hour(n * price, discount) for n in (1, 2))
            assert cost.hourly_usd(2, first) == pytest.approx(cost.hourly_usd(1, two), rel=1e-15)

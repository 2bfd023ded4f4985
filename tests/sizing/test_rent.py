"""Hours, months, years: hand-computed bills, commitments, and what is not known."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.sizing import cost

HOURS = st.floats(1, 744)
PRICES = st.floats(0.01, 500)


def test_p5_48xlarge_by_hand() -> None:
    hour = cost.hourly_usd(1, 55.04)
    month = cost.monthly_usd(hour, 730)
    assert hour == 55.04
    assert month == pytest.approx(40_179.20)
    assert cost.annual_usd(month, cost.CONSTANTS["months_in_a_year"]) == pytest.approx(482_150.40)
    assert cost.three_year_usd(month, cost.CONSTANTS["months_in_three_years"]) == pytest.approx(1_446_451.20)
    assert cost.monthly_usd(cost.hourly_usd(3, 55.04), 730) == pytest.approx(3 * 40_179.20)
    assert cost.monthly_usd(cost.hourly_usd(3, 55.04), 730) == pytest.approx(3 * 40_179.20)


def test_a_commitment_is_paid_for_whether_it_runs_or_not() -> None:
    month = cost.HOURS_IN_A_MONTH
    assert cost.paid_hours_per_month(200, month, 1) == 730 and cost.paid_hours_per_month(200, month, 0) == 200
    assert cost.paid_hours_per_month(744, month, 1) == 744  # never less than what was run
    assert cost.commitment_waste_usd(23.7773, 200, month, 1) == pytest.approx(530 * 23.7773)
    assert cost.commitment_waste_usd(23.7773, 200, month, 0) == 0
    assert cost.commitment_waste_usd(23.7773, 730, month, 1) == 0
    assert cost.monthly_usd(23.7773, cost.paid_hours_per_month(200, month, 1)) == pytest.approx(730 * 23.7773)


def test_what_is_not_known_is_none_and_never_free() -> None:
    none = math.nan
    for value in (
        cost.hourly_usd(none, 1.0),
        cost.hourly_usd(1, none),
        cost.monthly_usd(none, 730),
        cost.annual_usd(none, 12),
        cost.three_year_usd(none, 36),
        cost.commitment_waste_usd(none, 730, 730, 1),
        cost.contingency_usd(none, 0.1),
        cost.total_usd(none, 1),
        cost.in_currency(none, 0.9),
    ):
        assert math.isnan(value)
    column = cost.hourly_usd(numpy.array([1.0, 2.0, none]), numpy.array([2.0, none, 2.0]))
    assert column[0] == 2 and numpy.isnan(column[1:]).all()


@given(PRICES, HOURS, st.booleans())
def test_a_bill_is_the_hours_run_and_those_that_were_not(price: float, hours: float, committed: bool) -> None:
    paid = cost.paid_hours_per_month(hours, 730, int(committed))
    month = cost.monthly_usd(price, paid)
    waste = cost.commitment_waste_usd(price, hours, 730, int(committed))
    assert month == pytest.approx(price * hours + waste) and waste >= 0
    assert waste == 0 or committed


@given(st.floats(0, 1e7), st.floats(0, 1), st.floats(0.01, 1e5))
def test_contingency_and_currency_come_last(usd: float, share: float, rate: float) -> None:
    extra = cost.contingency_usd(usd, share)
    total = cost.in_currency(cost.total_usd(usd, extra), rate)
    assert total == pytest.approx(usd * (1 + share) * rate)
    assert cost.in_currency(cost.total_usd(usd, 0), 1) == usd


def test_instances_of_a_machine_that_holds_nothing_are_none_and_not_0() -> None:
    """0 is a machine that holds the load, and is too slow at any count."""
    held = {"n_replicas": 5, "load_requests": 1, "price_usd_per_hour": 5.0}
    assert cost.n_instances(paced_requests=1, replicas_per_instance=2, **held) == 3
    assert cost.n_instances(paced_requests=0, replicas_per_instance=2, **held) == 0
    for paced_requests in (0, 1):
        assert math.isnan(cost.n_instances(paced_requests=paced_requests, replicas_per_instance=0, **held))

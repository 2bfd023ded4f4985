"""Owning: figures worked out by hand, and where it pays."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.catalog import Catalog
from sheetgen.sizing import cost

YEARS, SHARES = st.floats(1, 20), st.floats(0, 0.9)
RATES = st.sampled_from((0.0, 5e-324)) | st.floats(1e-6, 0.5)
FILE = Catalog().owning()
TERMS = {term.id: term.value for term in FILE.terms}


def per_gpu_hour(price: float, kw: float, *, module: int = 1, own_draw: int = 0) -> float:
    """$ per GPU and hour of one GPU with the catalog's terms."""
    t = TERMS
    share = cost.purchase_share_per_year(t["owned_years"], t["residual_fraction"], t["cost_of_capital_fraction"])
    capex = cost.owned_capex_usd(1, cost.installed_usd_per_gpu(price, module, t["installed_multiplier"]))
    monthly = cost.monthly_owned_usd(
        cost.owned_hardware_usd(capex, share, 12),
        cost.owned_support_usd(capex, t["support_fraction"], 12),
        cost.owned_energy_usd(1, cost.metered_kw_per_gpu(kw, own_draw, t["pue"]), t["usd_per_kwh"], 730),
        cost.owned_site_usd(1, kw, t["colo_usd_per_kw_month"]),
    )
    return float(cost.owned_usd_per_gpu_hour(monthly, 1, 730))


@pytest.mark.parametrize(("years", "usd"), [(3, 1.50), (4, 1.12), (5, 0.90), (6, 0.75)])
def test_a_server_of_eight_h200_by_hand(years: int, usd: float) -> None:
    """$315,000 for eight, hardware only, a straight line."""
    capex = cost.owned_capex_usd(8, cost.installed_usd_per_gpu(315_000 / 8, 0, 1.54))
    assert capex == 315_000
    month = cost.owned_hardware_usd(capex, cost.purchase_share_per_year(years, 0, 0), 12)
    assert cost.owned_usd_per_gpu_hour(month, 8, 730) == pytest.approx(usd, abs=0.005)


def test_the_site_by_hand() -> None:
    """CBRE's $194.95 by the kW and month: $0.46 an hour for an H100, $0.58 for a B200."""
    assert cost.owned_site_usd(1, 1.73, 194.95) / 730 == pytest.approx(0.46, abs=0.005)
    assert cost.owned_site_usd(1, 2.17, 194.95) / 730 == pytest.approx(0.58, abs=0.005)


def test_power_by_hand() -> None:
    assert cost.owned_energy_usd(8, 1.73, 0.08, 730) == pytest.approx(808.256)
    assert cost.metered_kw_per_gpu(1.0, 1, 1.54) == 1.54 and cost.metered_kw_per_gpu(1.73, 0, 1.54) == 1.73
    assert cost.kw_per_gpu(math.nan, 1000, 1.79, 1000) == pytest.approx(14.3 / 8, abs=0.005)  # DGX B200
    assert cost.kw_per_gpu(1.73, 700, 1.79, 1000) == 1.73


@pytest.mark.parametrize(
    ("gpu", "low", "high"),
    [
        ("nvidia-h100-sxm5-80gb", 1.30, 1.69),
        ("nvidia-h200-sxm5-141gb", 1.41, 1.74),
        ("nvidia-b200-sxm6-180gb", 1.95, 2.34),
    ],
)
def test_the_catalogs_figures_land_by_semianalysis(gpu: str, low: float, high: float) -> None:
    """Its cost of owning for a hyperscaler and a neocloud; ours lies between them, or within 6 % of the dearer."""
    gpus = next(g for g in FILE.gpus if g.gpu == gpu)
    assert gpus.capex_usd and gpus.power
    assert low < per_gpu_hour(gpus.capex_usd.base, gpus.power.kw) < 1.06 * high


@given(YEARS, SHARES, RATES)
def test_interest_and_worth_at_the_end(years: float, residual: float, rate: float) -> None:
    share = cost.purchase_share_per_year(years, residual, rate)
    straight = cost.purchase_share_per_year(years, residual, 0)
    assert straight == pytest.approx((1 - residual) / years)
    assert share >= straight * (1 - 1e-9)
    assert cost.purchase_share_per_year(years, residual, 1e-7) == pytest.approx(straight, rel=1e-3, abs=1e-6)


def test_an_annuity_by_hand() -> None:
    """100 over 3 years at 10 %: 40.21 a year."""
    assert 100 * cost.purchase_share_per_year(3, 0, 0.10) == pytest.approx(40.2115, abs=1e-4)


@given(st.floats(100, 1e6), st.floats(0.01, 1000))
def test_break_even_is_where_both_cost_the_same(monthly: float, hourly: float) -> None:
    share = cost.break_even_utilization(monthly, hourly, 730)
    assert share > 0 and share * 730 * hourly == pytest.approx(monthly)
    assert cost.break_even_utilization(2 * monthly, hourly, 730) == pytest.approx(2 * share)


@pytest.mark.parametrize("rent", [2.11, 3.99, 6.88, 12.29])
def test_break_even_of_an_h100_lies_in_a_sensible_range(rent: float) -> None:
    """From SF Compute to Azure: an owned H100 pays above 13 to 80 % of the hours, by what renting costs."""
    monthly = per_gpu_hour(30_000, 1.73) * 730
    share = float(cost.break_even_utilization(monthly, rent, 730))
    assert share == pytest.approx(1.655 / rent, rel=0.01) and 0.1 < share < 0.85


def test_what_is_not_known_is_none() -> None:
    none = math.nan
    for value in (
        cost.installed_usd_per_gpu(none, 1, 1.54),
        cost.kw_per_gpu(none, none, 1.79, 1000),
        cost.metered_kw_per_gpu(none, 1, 1.5),
        cost.owned_capex_usd(8, none),
        cost.owned_hardware_usd(none, 0.2, 12),
        cost.owned_energy_usd(8, none, 0.08, 730),
        cost.monthly_owned_usd(none, none, 1.0, 1.0),
        cost.monthly_owned_usd(1.0, 0.0, none, none),
        cost.break_even_utilization(none, 1.0, 730),
        cost.break_even_utilization(1.0, none, 730),
    ):
        assert math.isnan(value)


def test_cash_to_date_is_what_is_paid_up_front_and_each_month() -> None:
    assert [cost.cash_to_month_usd(month, 1000.0, 10.0) for month in (1, 2, 36)] == [1010.0, 1020.0, 1360.0]

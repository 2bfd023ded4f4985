"""Implausible prices: the ranges are made of the shipped prices, and all of these lie inside."""

from __future__ import annotations

from sheetgen.catalog import Catalog
from sheetgen.catalog.plausible import Plausible
from sheetgen.units import PURCHASES

H100, T4 = "nvidia-h100-sxm5-80gb", "nvidia-t4-16gb"


def test_shipped_prices_are_inside(catalog: Catalog) -> None:
    plausible = Plausible(catalog)
    assert [doubt for row in catalog.instances() for doubt in plausible.doubts_of(row)] == []


def test_the_range_is_that_of_all_providers(catalog: Catalog) -> None:
    plausible = Plausible(catalog)
    rows = [row for row in catalog.instances() if row.gpu == H100]
    each = {
        purchase: [p.usd_per_hour / row.gpu_count for row in rows for p in row.prices if p.purchase == purchase]
        for purchase in PURCHASES
    }
    most = max(max(prices) for prices in each.values() if prices)
    assert plausible.taken(H100, "on-demand") == (min(each["on-demand"]), most)
    assert plausible.taken(H100, "spot") == (min(each["spot"]), most)  # its own, which is below every other class
    assert min(each["spot"]) < min(each["on-demand"])
    assert plausible.taken("no-gpu", "spot") is None


def test_a_class_without_a_price_of_the_gpu_follows_from_on_demand(catalog: Catalog) -> None:
    """No T4 has a spot price: the usual share of on demand that spot costs says what one may be."""
    plausible = Plausible(catalog)
    assert not any(row.price("spot") for row in catalog.instances() if row.gpu == T4)
    (low, high), (spot, most) = plausible.taken(T4, "on-demand"), plausible.taken(T4, "spot")  # type: ignore[misc]
    assert 0.3 * low < spot < 0.8 * low and most == high
    assert plausible.doubt(T4, 4, "spot", 4 * spot / 2, None) == ""
    assert plausible.doubt(T4, 4, "spot", 4 * spot / 4, None).startswith(f"{spot / 4:,.4g} a GPU-hour, where providers")


def test_a_factor_of_three_is_allowed_and_more_is_not(catalog: Catalog) -> None:
    plausible = Plausible(catalog)
    assert plausible.far_from(0.3, 0.1) == plausible.far_from(0.1, 0.3) == plausible.far_from(1, 1) == ""
    assert plausible.far_from(3.01, 1) == "3.01 times more than 1"
    assert plausible.far_from(0, 2) == "any times less than 2"

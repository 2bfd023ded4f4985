"""Implausible prices: the ranges are made of the shipped prices, and each of these is held against the others."""

from __future__ import annotations

import shutil
from pathlib import Path

from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.check import remarks_of
from sheetgen.catalog.plausible import Plausible
from sheetgen.units import ON_DEMAND, PURCHASES

H100 = "nvidia-h100-sxm5-80gb"


def test_check_remarks_on_a_shipped_price_far_from_all_others(catalog: Catalog, tmp_path: Path) -> None:
    """A price by the GPU for a machine of eight, and one of a region with its decimals moved."""
    assert not list(catalog.folders[1:])
    before = {remark for *_, remark in remarks_of(catalog)}
    shutil.copytree(default_folder(), tmp_path / "catalogs")
    edits = {
        "instances/aws.yaml": ("usd_per_hour: 55.04", "usd_per_hour: 0.688"),
        "regions/gcp.yaml": ("europe-west1: 8", "europe-west1: 88888"),
    }
    for name, (old, new) in edits.items():
        text = (tmp_path / "catalogs" / name).read_text(encoding="utf-8")
        assert old in text
        (tmp_path / "catalogs" / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    remarks = {
        file: remark for _, file, remark in remarks_of(Catalog(base=tmp_path / "catalogs")) if remark not in before
    }
    assert remarks.keys() == edits.keys()
    assert " is 0.688 $/h, 0.086 a GPU-hour" in remarks["instances/aws.yaml"]
    assert " in europe-west1 is 88888" in remarks["regions/gcp.yaml"].replace(",", "")


def test_the_range_is_that_of_all_providers(catalog: Catalog) -> None:
    plausible = Plausible(catalog)
    rows = [row for row in catalog.instances() if row.gpu == H100]
    outside = {
        purchase: [p.usd_per_hour / row.gpu_count for row in rows for p in row.prices if p.purchase == purchase]
        for purchase in PURCHASES
    }
    most = max(max(prices) for prices in outside.values() if prices)
    assert plausible.taken(H100, "on-demand") == (min(outside["on-demand"]), most)
    assert plausible.taken(H100, "spot") == (min(outside["spot"]), most)  # its own, which is below every other class
    assert min(outside["spot"]) < min(outside["on-demand"])
    assert plausible.taken("no-gpu", "spot") is None


def test_a_class_without_a_price_of_the_gpu_follows_from_on_demand(catalog: Catalog) -> None:
    """The usual share of on demand that spot costs says what one may be."""
    plausible = Plausible(catalog)
    classes: dict[str, set[str]] = {}
    for row in catalog.instances():
        classes.setdefault(row.gpu, set()).update(price.purchase for price in row.prices)
    gpu = next(gpu for gpu, sold in classes.items() if sold == {ON_DEMAND})
    (low, high), (spot, most) = plausible.taken(gpu, ON_DEMAND), plausible.taken(gpu, "spot")  # type: ignore[misc]
    assert 0.3 * low < spot < 0.8 * low and most == high
    assert plausible.doubt(gpu, 4, "spot", 4 * spot / 2, None) == ""
    assert plausible.doubt(gpu, 4, "spot", spot, None).startswith(f"{spot / 4:,.4g} a GPU-hour")


def test_a_factor_of_three_is_allowed_and_more_is_not(catalog: Catalog) -> None:
    plausible = Plausible(catalog)
    assert plausible.far_from(0.3, 0.1) == plausible.far_from(0.1, 0.3) == plausible.far_from(1, 1) == ""
    assert plausible.far_from(3.01, 1) == "3.01 times more than 1"
    assert plausible.far_from(0, 2) == "any times less than 2"


def test_a_price_of_another_region_says_where_the_other_one_is(catalog: Catalog) -> None:
    plausible, row = Plausible(catalog), next(row for row in catalog.instances() if row.id == "gcp/a3-highgpu-8g")
    of_row = row.id, row.gpu, row.gpu_count, "spot", 10.2055
    assert plausible.doubt_in("europe-north1", *of_row) == f"4.96 times less than 50.6095 in {row.region}"
    assert plausible.doubt_in(row.region, *of_row) == "4.96 times less than 50.6095 before"

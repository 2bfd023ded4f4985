"""`catalog prices` and the files of regions: what it reads for them, what it leaves, and the files that come of it."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

import sheetgen
from sheetgen.catalog import Catalog, default_folder, read_document, validate
from sheetgen.catalog.check import faults_of
from sheetgen.catalog.prices.refresh import Refresh, read_lists, refresh
from sheetgen.catalog.prices.region_files import region_files
from sheetgen.catalog.regions import RegionFile
from sheetgen.errors import CatalogError

REGIONS = default_folder() / "regions"
PROVIDERS = sorted(path.stem for path in REGIONS.iterdir())
TERMS = "provider,instance_type,region,purchase,usd_per_hour,kind,source,source_date"
AWS = (
    "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name,reserved_1yr_no_upfront_usd_hr,"
    "source,source_date"
)
GCP = "region,machine_type,on_demand_usd_hr,spot_usd_hr,month_1y_cud_usd,month_3y_cud_usd,source,source_date"


def a_list(folder: Path, head: str, *lines: str, name: str = "list.csv") -> Path:
    path = folder / name
    path.write_text("\n".join((head, *lines)) + "\n", encoding="utf-8")
    return path


def read(catalog: Catalog, *places: Path, **how: object) -> Refresh:
    return refresh(catalog, read_lists(map(str, places)), **how)  # type: ignore[arg-type]


def shown(refresh: Refresh) -> list[tuple[object, ...]]:
    return [(row.instance, row.new_region, row.purchase, row.what, row.new_usd) for row in refresh.of_regions]


def prices_of(file: RegionFile) -> dict[tuple[str, str, str], tuple[object, ...]]:
    """Of each class, type and region the price, its day, its terms and its source."""
    return {
        (block.purchase, kind, region): (usd, block.as_of, block.kind, block.source)
        for block in file.prices
        for kind, by_region in block.usd_per_hour.items()
        for region, usd in by_region.items()
    }


def laid_over(catalog: Catalog, folder: Path, refresh: Refresh) -> Catalog:
    for path, text in region_files(catalog, folder, refresh.of_regions).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Catalog(folder)


def test_the_shipped_files_come_of_a_list_of_their_prices(catalog: Catalog, tmp_path: Path) -> None:
    """Every price, day, term and source, onto catalogs that have the regions and no price of them."""
    shutil.copytree(default_folder(), tmp_path / "catalogs")
    lines: list[tuple[object, ...]] = []
    for provider in PROVIDERS:
        file = catalog.folders[0].entry(f"regions/{provider}.yaml", RegionFile)
        for block in file.prices:
            for kind, by_region in block.usd_per_hour.items():
                same = (block.kind or "", block.source, block.as_of)
                lines += [(provider, kind, region, block.purchase, usd, *same) for region, usd in by_region.items()]
        text = (REGIONS / f"{provider}.yaml").read_text(encoding="utf-8")
        (tmp_path / "catalogs" / "regions" / f"{provider}.yaml").write_text(text[: text.index("prices:\n")])
    with (tmp_path / "all.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([TERMS.split(","), *reversed(lines)])
    bare = Catalog(base=tmp_path / "catalogs")
    assert len(lines) > 3000 and not any(file.prices for file in bare.folders[0].entries("regions", RegionFile))
    price_list = read(bare, tmp_path / "all.csv")
    assert not price_list.changes and not price_list.left and all(row.what == "added" for row in price_list.of_regions)
    written = region_files(bare, tmp_path / "catalogs", price_list.of_regions)
    for provider in PROVIDERS:
        path = tmp_path / "catalogs" / "regions" / f"{provider}.yaml"
        path.write_text(written[path], encoding="utf-8")
        made = validate(read_document(path), RegionFile)
        shipped = validate(read_document(REGIONS / path.name), RegionFile)
        assert (made.regions, prices_of(made)) == (shipped.regions, prices_of(shipped)), provider


def test_a_price_of_a_region_is_the_one_that_recommend_uses(catalog: Catalog, tmp_path: Path) -> None:
    place = a_list(tmp_path, AWS, "eu-north-1,p5.48xlarge,50,8,h100,,our contract,2026-10-02")
    price_list = read(catalog, place)
    assert shown(price_list) == [("aws/p5.48xlarge", "eu-north-1", "on-demand", "changed", 50)]
    (tmp_path / "own").mkdir()
    over = laid_over(catalog, tmp_path / "own", price_list)
    assert faults_of(over) == []
    asked = {"model": "70b", "users": 10, "instances": "aws/p5.48xlarge", "as_of": "2026-11-20"}
    (cell,) = sheetgen.recommend(**asked, region="eu", catalogs=tmp_path / "own")["cells"]
    told = tuple(cell[name] for name in ("region", "hourly_usd", "price_as_of"))
    assert told == ("eu-north-1", 50 * cell["n_instances"], "2026-10-02")
    row = next(row for row in over.regions.rows_in("eu") if row.id == "aws/p5.48xlarge")
    assert row.source.startswith("our contract; ")
    assert shown(read(over, place)) == [("aws/p5.48xlarge", "eu-north-1", "on-demand", "unchanged", 50)]


@pytest.mark.parametrize(
    ("day", "usd", "name"),
    [
        ("2026-01-20", 50, "older"),
        ("2026", 50, "older"),
        ("2026-01-21", 58.8928, "unchanged"),
        ("2026-02", 58.8928, "confirmed"),
        ("2026 (of the commit; after 2026-02)", 50, "older"),
    ],
)
def test_the_newest_price_holds(catalog: Catalog, tmp_path: Path, day: str, usd: float, name: str) -> None:
    price_list = read(catalog, a_list(tmp_path, AWS, f"eu-north-1,p5.48xlarge,{usd},8,h100,,s,{day}"))
    assert [row.what for row in price_list.of_regions] == [name]
    written = region_files(catalog, tmp_path, price_list.of_regions)
    assert bool(written) is (name == "confirmed")


def test_of_two_lists_the_newer_one_and_never_two_of_one_day(catalog: Catalog, tmp_path: Path) -> None:
    days = {"2026-03-01": 50, "2026-04-01": 51}
    lists = [
        a_list(tmp_path, AWS, f"eu-north-1,p5.48xlarge,{usd},8,h100,,s,{day}", name=f"{day}.csv")
        for day, usd in days.items()
    ]
    for order in (lists, lists[::-1]):
        assert shown(read(catalog, *order)) == [("aws/p5.48xlarge", "eu-north-1", "on-demand", "changed", 51)]
    other = a_list(tmp_path, AWS, "eu-north-1,p5.48xlarge,52,8,h100,,s,2026-04-01", name="other.csv")
    with pytest.raises(CatalogError, match=r"in eu-north-1 is 52 here and 51 in .*2026-04-01"):
        read(catalog, *lists, other)


def test_what_the_catalogs_do_not_have_is_told(catalog: Catalog, tmp_path: Path) -> None:
    """A type that they do not have in a region is a new pair: GCP's price list has 600 of machines that are not there.
    A class in which a type is not sold is none, and a region without a country is named."""
    gcp = a_list(
        tmp_path,
        GCP,
        "europe-west8,a3-highgpu-8g,90,30,,,s,2026-11-01",
        "europe-west1,a3-megagpu-8g,110,,,,s,2026-11-01",
        "europe-west1,a3-highgpu-8g,97,,,,s,2026-11-01",
        "europe-mars1,a3-highgpu-8g,97,,,,s,2026-11-01",
        name="gcp.csv",
    )
    price_list = read(catalog, gcp)
    new = {(row.instance, row.new_region) for row in price_list.of_regions if row.is_new_pair}
    assert new == {("gcp/a3-highgpu-8g", "europe-west8")}
    assert ("gcp/a3-highgpu-8g", "europe-west1", "on-demand", "changed", 97) in shown(price_list)
    left = {row_left.offer.region: row_left.why for row_left in price_list.left}
    assert left == {
        "europe-mars1": "in regions that regions/gcp.yaml does not list: add their ids, countries and areas there",
        "europe-west1": "priced in classes in which it is not sold",
    }


def test_one_region_asked_for_moves_rows_and_writes_no_file_of_regions(catalog: Catalog, tmp_path: Path) -> None:
    lines = [f"{region},p5.48xlarge,50,8,h100,,s,2026-10-02" for region in ("eu-north-1", "eu-west-2")]
    price_list = read(catalog, a_list(tmp_path, AWS, *lines), region="eu-north-1")
    assert [(change.instance, change.what) for change in price_list.changes] == [("aws/p5.48xlarge", "moved")]
    assert not price_list.of_regions and price_list.n_other_regions == 1


def test_a_row_that_moved_has_its_own_price_where_it_is_now(catalog: Catalog, tmp_path: Path) -> None:
    """The shipped file of regions has another price of that place, of a day before."""
    (tmp_path / "regions").mkdir()
    (tmp_path / "instances").mkdir()
    shipped = (default_folder() / "instances" / "aws.yaml").read_text(encoding="utf-8")
    _, _, rest = shipped.partition("  - type: p5.48xlarge\n")
    row = "  - type: p5.48xlarge\n" + rest[: rest.index("  - type:")]
    moved = row.replace("region: us-east-1", "region: eu-north-1").replace("usd_per_hour: 55.04", "usd_per_hour: 44")
    (tmp_path / "instances" / "aws.yaml").write_text(f"provider: aws\ninstances:\n{moved}")
    (offer,) = (row for row in Catalog(tmp_path).regions.rows_in("eu") if row.id == "aws/p5.48xlarge")
    assert offer.price("on-demand") == Catalog(tmp_path).instance("aws/p5.48xlarge").price("on-demand")

"""Prices by region: what a region's name, an area or a country means, at whose prices, and what a region lacks."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from amounts import amount
from brute_force import AREAS

import sheetgen
from sheetgen.catalog import Catalog
from sheetgen.catalog.check import faults_of, overlays
from sheetgen.catalog.hardware import Instance
from sheetgen.errors import ScenarioError
from sheetgen.units import PURCHASES

# Rows of azure_n_series_on_demand.csv (Azure/karpenter-provider-azure@352646f5, generated 2026-06-18): $ an hour of
# Standard_NC80adis_H100_v5 in every region of four areas, and the month of 730 hours at the least of them.
NC80 = {
    "eu": (
        {
            "northeurope": 16.752, "germanywestcentral": 18.148, "spaincentral": 18.148, "swedencentral": 18.148,
            "westeurope": 18.16,
        },
        12228.96,
    ),
    "uk": ({"uksouth": 17.45}, 12738.50),
    "ap": (
        {
            "indonesiacentral": 16.333, "malaysiawest": 16.333, "koreasouth": 17.45, "southeastasia": 18.148,
            "koreacentral": 18.846, "centralindia": 19.544, "jioindiacentral": 19.544, "jioindiawest": 19.544,
            "australiaeast": 20.242, "japaneast": 20.242,
        },
        11923.09,
    ),
    "us": (
        {
            "eastus": 13.96, "eastus2": 13.96, "westus2": 13.96, "westus3": 13.96, "northcentralus": 16.752,
            "southcentralus": 16.76, "centralus": 17.17, "westus": 18.148,
        },
        10190.80,
    ),
}  # fmt: skip
# By area the cheapest row of lists, and in how many of the area's regions the type is: aws_gpu_regions.csv
# (tsaol/aws-gpu@77fcd9fe, 2026-01-21), gcp_accelerator_regions.csv (cloudpilot-ai/karpenter-provider-gcp@373e2baa,
# 2026-08-03) and azure_nd_2026-09-19.csv over azure_n_series_on_demand.csv. None: no row of the type in the area.
CHEAPEST: dict[str, dict[str, tuple[str, float, str] | None]] = {
    "aws/p5.48xlarge": {
        "eu": ("eu-north-1", 58.8928, "2026-01-21"),  # the only one
        "uk": ("eu-west-2", 71.552, "2026-01-21"),
        "ap": ("ap-south-1", 66.048, "2026-01-21"),  # 68.8 to 75.9552 in four more
    },
    "aws/p5en.48xlarge": {
        "eu": ("eu-north-1", 67.72672, "2026-01-21"),  # 68.35968 in eu-south-2
        "uk": None,
        "ap": ("ap-south-1", 75.9552, "2026-01-21"),
    },
    "aws/p4d.24xlarge": {"uk": ("eu-west-2", 28.54493, "2026-01-21"), "ap": ("ap-south-1", 26.3444, "2026-01-21")},
    "aws/g6e.12xlarge": {
        "eu": ("eu-south-2", 11.05645, "2026-01-21"),  # 11.12975 in eu-north-1, 13.12002 in eu-central-1
        "uk": None,
        "ap": ("ap-northeast-2", 12.90014, "2026-01-21"),
        "us": ("us-east-1", 10.49264, "2026-07-20"),  # the row's own, and the same in two more
    },
    "gcp/a3-highgpu-8g": {
        "eu": ("europe-west1", 97.3698, "2026-08-03"),  # 97.369847
        "uk": None,
        "ap": ("asia-south1", 92.1348, "2026-08-03"),
    },
    "azure/Standard_ND96isr_H200_v5": {
        "eu": ("northeurope", 101.76, "2026-06-18"),
        "uk": ("uksouth", 106.0, "2026-06-18"),
        "swedencentral": ("swedencentral", 114.688, "2026-09-19"),  # 110.272 on 2026-06-18
    },
}
# Of 70B for 200 people, by class and area: the machine, and its $ an hour in every region of the area that the lists
# have: aws_gpu_regions.csv, gcp_accelerator_regions.csv (27,199.8 a month), the row of Azure,
# aws_capacity_blocks_2026-07-22.csv.
IN_A_CLASS: list[tuple[str, str, str, dict[str, float]]] = [
    ("reserved-1yr", "eu", "aws/p4d.24xlarge", {"eu-west-1": 15.08188, "eu-central-1": 17.392445}),
    ("reserved-1yr", "uk", "gcp/g4-standard-96", {"europe-west2": 7 * 7.452}),  # seven, at an even chance
    (
        "reserved-1yr",
        "ap",
        "aws/p4d.24xlarge",
        {
            "ap-southeast-1": 16.705312, "ap-south-1": 17.02575, "ap-southeast-2": 18.097419,
            "ap-northeast-2": 19.280046, "ap-northeast-1": 19.579678,
        },
    ),
    ("reserved-1yr", "us", "azure/Standard_NC80adis_H100_v5", {"eastus": 11.6133}),
    ("capacity-block", "eu", "aws/p5.48xlarge", {"eu-north-1": 37.76, "eu-west-2": 37.76}),
    ("capacity-block", "uk", "aws/p5.48xlarge", {"eu-west-2": 37.76}),
    (
        "capacity-block",
        "ap",
        "aws/p5.48xlarge",
        dict.fromkeys(("ap-northeast-1", "ap-south-1", "ap-southeast-2", "ap-southeast-3"), 37.76),
    ),
    ("capacity-block", "us", "aws/p4d.24xlarge", dict.fromkeys(("us-east-1", "us-east-2", "us-west-2"), 11.8)),
]  # fmt: skip
# $ an hour in other classes: aws_capacity_blocks_2026-07-22.csv, commitments.csv, gcp_a3ultra_a4.csv.
OTHER_CLASSES = [
    ("aws/p5.48xlarge", "capacity-block", "eu", 37.76),
    ("aws/p5en.48xlarge", "capacity-block", "uk", 49.928),
    ("aws/p6-b200.48xlarge", "capacity-block", "ap", 98.84),
    ("aws/p5.48xlarge", "reserved-3yr", "ap", 28.5327),
    ("aws/p4d.24xlarge", "reserved-1yr", "eu", 15.08188),  # in eu-west-1: eu-north-1 has none
    ("gcp/a3-ultragpu-8g", "spot", "eu", 55.092),  # europe-west4, where it has no other price
]


@functools.cache
def catalog() -> Catalog:
    return Catalog()


@functools.cache
def recommended(region: str, **more: object) -> dict[str, Any]:
    return sheetgen.recommend(model="70b", users=200, region=region, as_of="2026-11-20", **more)


def row(instance: str, region: str) -> Instance | None:
    return next((row for row in catalog().regions.rows_in(region) if row.id == instance), None)


DOUBTED = "$10.2055 an hour in europe-north1, 4.96 times less than 50.6095 in us-central1"


@pytest.mark.parametrize(
    ("options", "region", "usd"),
    [
        ({}, "europe-west9", 23.4318),  # the next region: a third of what the others take
        ({"region": "europe-north1", "gpus": "h100,rtx-pro-6000"}, "europe-north1", None),  # no other has a price there
        ({"instances": "gcp/a3-highgpu-8g"}, "europe-north1", 10.2055),  # named
    ],
    ids=str,
)
def test_an_implausible_price_of_a_region_chooses_no_hardware(
    options: dict[str, str], region: str, usd: float | None
) -> None:
    """Spot of 8 H100 in europe-north1 is a fifth of that in us-central1."""
    load = {"model": "kimi-k2", "context": "8k", "tokens_per_day": "300M", "survive": "replica", "purchase": "spot"}
    answer = sheetgen.recommend(**{**load, "region": "eu", "confidence": "0.7", **options})
    is_h100 = answer["instance"] == "gcp/a3-highgpu-8g"
    assert (is_h100, answer["region"]) == (usd is not None, region)
    if usd:
        assert answer["hourly_usd"] == pytest.approx(usd * answer["n_instances"], rel=1e-12)
    why = [reason["reason"] for reason in answer["why_not"] if reason["instance"] == "gcp/a3-highgpu-8g"]
    left_out = {reason["reason"]: reason["count"] for reason in answer["left_out"]}
    if "instances" in options:
        assert not why and "at an implausible price" not in left_out
    else:
        assert any(DOUBTED in reason and reason.endswith("--instances gcp/a3-highgpu-8g takes it") for reason in why)
        assert left_out.get("at an implausible price", 0) == (0 if usd else 4)


def problem(**options: object) -> str:
    with pytest.raises(ScenarioError) as raised:
        recommended(**options)
    return "\n".join(raised.value.problems)


@pytest.mark.some(2)
@pytest.mark.parametrize("area", NC80)
def test_70b_for_200_people_in_four_areas_by_hand(area: str) -> None:
    """The machine is the brute force's (test_choice_brute_force); its price is worked out from the list's rows here."""
    prices, month = NC80[area]
    (cell,) = recommended(area)["cells"]
    assert (cell["instance"], cell["n_instances"]) == ("azure/Standard_NC80adis_H100_v5", 1)
    assert cell["hourly_usd"] == min(prices.values()) == prices[cell["region"]]
    assert cell["monthly_usd"] == pytest.approx(month, rel=1e-12)
    assert cell["price_as_of"] == "2026-06-18"


@pytest.mark.some(4)
@pytest.mark.parametrize(("purchase", "area", "instance", "prices"), IN_A_CLASS)
def test_70b_for_200_people_in_a_class_by_hand(
    purchase: str, area: str, instance: str, prices: dict[str, float]
) -> None:
    """A class that costs no less than on demand is no answer, and its month is told beside that of NC80."""
    least, (_, on_demand) = min(prices.values()), NC80[area]
    (cell,) = recommended(area, purchase=purchase)["cells"]
    if 730 * least < on_demand:
        assert (cell["purchase"], cell["instance"], cell["n_instances"]) == (purchase, instance, 1)
        assert cell["hourly_usd"] == least == prices[cell["region"]]
        assert cell["monthly_usd"] == pytest.approx(730 * least, rel=1e-12)
    else:
        assert (cell["purchase"], cell["monthly_usd"]) == ("on-demand", pytest.approx(on_demand, rel=1e-12))
        assert cell["declined"]["monthly_usd"] == pytest.approx(730 * least, rel=1e-12)
        assert purchase == "reserved-1yr" or cell["by_purchase"][purchase]["instance"] == instance


@pytest.mark.some(6)
@pytest.mark.parametrize(("instance", "area"), [(name, area) for name, areas in CHEAPEST.items() for area in areas])
def test_a_type_stands_once_at_its_cheapest_price_of_the_area(instance: str, area: str) -> None:
    taking_part = recommended(area, instances=instance)["candidates"] if CHEAPEST[instance][area] else []
    assert [(candidate["region"], candidate["hourly_usd"], candidate["price_as_of"]) for candidate in taking_part] == [
        expected for expected in [CHEAPEST[instance][area]] if expected
    ]
    if not taking_part:
        assert "no instance is left in region" in problem(region=area, instances=instance)


@pytest.mark.parametrize(("instance", "purchase", "area", "usd"), OTHER_CLASSES)
def test_each_class_has_its_own_cheapest_region(instance: str, purchase: str, area: str, usd: float) -> None:
    placed = row(instance, area)
    assert placed is not None
    price = placed.price(purchase)
    assert price is not None and price.usd_per_hour == usd


def test_every_region_of_an_area_takes_part_and_no_other() -> None:
    for area, regions in [*AREAS.items()][:: amount(2, 1)]:
        named = {candidate["region"] for candidate in recommended(area, providers="aws,azure,gcp")["candidates"]}
        assert named and named <= regions, area
    assert {"eu-south-2", "northeurope", "europe-west4"} <= {
        candidate["region"] for candidate in recommended("eu")["candidates"]
    }


def test_a_frankfurt_without_p5en_and_a_milan_without_h100() -> None:
    """europe-west8 has only G4: 600 pairs of GCP's price list are of machines that Google does not have there."""
    frankfurt = {candidate["instance"] for candidate in recommended("eu-central-1")["candidates"]}
    assert "aws/p4de.24xlarge" in frankfurt and not frankfurt & {"aws/p5en.48xlarge", "aws/p5.48xlarge"}
    assert {row.type.split("-")[0] for row in catalog().regions.rows_in("europe-west8") if row.provider == "gcp"} == {
        "g4"
    }
    words = problem(region="eu-central-1", instances="aws/p5en.48xlarge")
    assert "Regions: ap-northeast-1, " in words and "eu-north-1, eu-south-2, " in words and "Areas" not in words


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("eastus", {"eastus"}),  # a region's whole name is that region, not eastus2 as well
        ("West Europe", {"westeurope"}),
        ("EU-West", {"eu-west-1", "eu-west-2", "eu-west-3"}),
        ("germany", {"eu-central-1", "europe-west3", "europe-west10", "germanywestcentral", "germanynorth"}),
        ("us-gov", {"us-gov-east-1", "us-gov-west-1"}),
        ("Frankfurt", {"eu-central-1", "europe-west3", "germanywestcentral"}),
        ("Zürich", {"eu-central-2", "europe-west6", "switzerlandnorth"}),
        ("são paulo", {"sa-east-1", "brazilsouth"}),
        ("london", {"eu-west-2", "europe-west2", "uksouth"}),
        ("tokyo", {"ap-northeast-1", "asia-northeast1", "japaneast"}),
    ],
)
def test_what_a_text_means(text: str, regions: set[str]) -> None:
    rows = [row for row in catalog().regions.rows_in(text) if row.prices]
    assert rows and {row.region_of(p.purchase) for row in rows for p in row.prices} <= regions


def test_an_area_of_regions_that_no_file_lists_goes_by_the_words_of_their_names() -> None:
    by_text = {text: {row.id for row in catalog().regions.rows_in(text)} for text in ("eu", "us", "ap")}
    ids = [instance.id for instance in catalog().instances() if instance.region == "eu/us"]
    assert ids and set(ids) <= by_text["eu"] & by_text["us"] and not set(ids) & by_text["ap"]


def test_an_unknown_region_is_refused_with_areas_and_with_regions_where_they_are_few() -> None:
    words = problem(region="us-est-1")
    assert "region 'us-est-1'. Areas: " in words and "Regions" not in words
    assert "Regions: ap-south-1, us-east-1, " in problem(region="us-est-1", instances="aws/p6-b200.48xlarge")
    assert f" Areas: {', '.join(catalog().regions.areas)}." in words and "Did you mean us-" in words
    assert problem(region="frankfrut").endswith("Did you mean Frankfurt?")


@pytest.mark.some(2)
@pytest.mark.parametrize("purchase", PURCHASES)
def test_an_answer_in_a_class_is_that_of_the_class_asked_for(purchase: str) -> None:
    told = recommended("eu")["cells"][0]["by_purchase"][purchase]
    (cell,) = recommended("eu", purchase=purchase)["cells"]
    assert told is not None
    if cell["declined"]:  # it costs no less than on demand
        assert cell["declined"]["monthly_usd"] == told["monthly_usd"] >= cell["monthly_usd"]
    else:
        assert {name: cell[name] for name in told} == told


def test_without_a_region_no_file_of_regions_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(Catalog, "regions", property(lambda _: read.append(1)))
    sheetgen.recommend(model="8b", users=10)
    assert not read


def test_a_source_is_of_the_price_in_use() -> None:
    placed = row("aws/p5.48xlarge", "ap")
    assert placed is not None
    first, *others = placed.source.split("; ")
    assert first.startswith("tsaol/aws-gpu@77fcd9fe ")
    assert [other.split("@")[0] for other in others[:2]] == [
        "reserved: sooddvs/gpu-pricing",
        "capacity: koyakimu/ec2-capacity-blocks-for-ml-pricing-json",
    ]


OWN = """provider: aws
regions:
  - {id: eu-mars-1, country: Mars, areas: [eu, mars]}
prices:
  - purchase: on-demand
    as_of: '2026-11-01'
    source: our contract
    usd_per_hour:
      p5.48xlarge: {eu-mars-1: 9.5, eu-north-1: 60}
"""


def test_a_folder_laid_over_adds_regions_and_prices(tmp_path: Path) -> None:
    (tmp_path / "regions").mkdir()
    file = tmp_path / "regions" / "aws.yaml"
    file.write_text(OWN.replace("eu-north-1: 60", "eu-mars-1: 60"))
    assert any("given twice" in fault for *_, fault in faults_of(Catalog(tmp_path)))
    file.write_text(OWN)
    assert any("eu-north-1 is none of" in fault for *_, fault in faults_of(Catalog(tmp_path)))
    file.write_text(OWN.replace(", eu-north-1: 60", "").replace("p5.48x", "p55.48x"))
    (fault,) = faults_of(Catalog(tmp_path))
    assert "p55.48xlarge is no type" in fault[2]
    file.write_text(OWN.replace(", eu-north-1: 60", ""))
    over = Catalog(tmp_path)
    assert not faults_of(over) and "mars" in over.regions.areas
    assert [overlay.prices for overlay in overlays(over)] == [{"added": 1}]
    for text in ("mars", "eu", "eu-mars-1"):
        (mine,) = (row for row in over.regions.rows_in(text) if row.id == "aws/p5.48xlarge")
        assert (mine.region, mine.prices[0].usd_per_hour) == ("eu-mars-1", 9.5)


@pytest.mark.parametrize("text", ["de", "no", "es", "in"])
def test_a_few_letters_are_no_part_of_a_name(text: str) -> None:
    """`de` is within swedencentral, `es` within us-west-2, `no` within eu-north-1: other countries than were meant."""
    with pytest.raises(ScenarioError, match=f"region '{text}'"):
        recommended(text)


@pytest.mark.parametrize("area, is_sold", [("us", True), ("eu", True), ("uk", True), ("ap", True), ("us-gov", False)])
def test_one_list_price_for_all_commercial_regions_is_of_every_area(area: str, is_sold: bool) -> None:
    """Oracle's list has one price: its types take part wherever a question asks, but in government regions."""
    regions = Catalog().regions
    everywhere = {row.id for row in regions.rows if row.region.startswith("all commercial")}
    there = {row.id: row.prices for row in regions.rows_in(area) if row.id in everywhere}
    assert len(everywhere) > 10 and set(there) == (everywhere if is_sold else set())
    assert all(row.prices == there[row.id] for row in regions.rows if row.id in there)

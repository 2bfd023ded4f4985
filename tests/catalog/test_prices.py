"""`sheetgen.catalog.prices`: lists that are read, matched and laid into rows, and the file that comes of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sheetgen.catalog import Catalog, Instance, default_folder, read_document, validate
from sheetgen.catalog.check import faults_of
from sheetgen.catalog.hardware import InstanceFile
from sheetgen.catalog.prices.offers import Offer
from sheetgen.catalog.prices.refresh import Refresh, file_text, files, read_lists, refresh
from sheetgen.catalog.prices.rows import (
    MOST_HISTORY,
    Reading,
    by_core,
    changed_row,
    gpus_named,
    list_of,
    taken_apart,
    with_list,
    words,
)
from sheetgen.errors import CatalogError

LISTS = Path(__file__).parents[1] / "data" / "prices"
AWS = LISTS / "aws_gpu_on_demand.csv"
AZURE = LISTS / "azure_n_series_on_demand.csv"
GCP = LISTS / "gcp_accelerator_prices.csv"
NEOCLOUD = LISTS / "neocloud_offerings_2026-05-24.csv"
AWS_HEAD = "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name"
NEO_HEAD = "provider_id,gpu_model,vram_gb,interconnect,tier,is_spot,price_usd_hour,vcpu,ram_gb,collected_at"


def read(catalog: Catalog, *places: Path, **how: object) -> Refresh:
    return refresh(catalog, read_lists(map(str, places)), **how)  # type: ignore[arg-type]


def a_list(folder: Path, *lines: str, name: str = "aws.csv", head: str = AWS_HEAD) -> Path:
    path = folder / name
    path.write_text("\n".join((head, *lines)) + "\n")
    return path


def counts(refresh: Refresh) -> dict[str, int]:
    whats = [change.what for change in refresh.changes]
    return {fromkey: whats.count(fromkey) for fromkey in dict.fromkeys(whats)}


def assert_only_unchanged(refresh: Refresh, least: int) -> None:
    """A list says what the rows have, of so many prices that were there; a row may have been entered since."""
    assert counts(refresh).keys() == {"unchanged"} and len(refresh.changes) >= least and refresh.changed == ()


def laid_over(catalog: Catalog, folder: Path, refresh: Refresh, add_new: bool = False) -> Catalog:
    """The catalogs with what was found written into `folder`."""
    for path, text in files(catalog, folder, [*refresh.changed, *(refresh.new if add_new else ())]).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Catalog(folder, base=catalog.folders[0].path)


# The shipped prices, from the lists that they cite


def test_aws_list_reproduces_the_shipped_prices(catalog: Catalog) -> None:
    price_list = read(catalog, AWS, as_of="2026-07-20")
    assert_only_unchanged(price_list, 58)
    assert len(price_list.lists[0].without_price) == 2  # p5e and trn2 are sold otherwise
    read_there = "aws/karpenter-provider-aws@1d927085 zz_generated.pricing_aws"
    rows = [r for r in catalog.instances() if r.provider == "aws" and r.source.startswith(read_there)]
    assert {change.instance for change in price_list.changes} == {r.id for r in rows if r.price("on-demand")}


def test_azure_list_reproduces_the_shipped_prices(catalog: Catalog) -> None:
    price_list = read(catalog, AZURE, as_of="2026-06-18")
    assert_only_unchanged(price_list, 22)
    # the list calls it Standard_ND96asr_A100_v4: another name is another type
    assert "azure/Standard_ND96asr_v4" in price_list.not_in_lists


def test_gcp_list_reproduces_the_shipped_prices(catalog: Catalog) -> None:
    price_list = read(catalog, GCP, as_of="2026-07-30")
    assert_only_unchanged(price_list, 96)
    by_purchase = [change.purchase for change in price_list.changes]
    least = {"on-demand": 26, "spot": 26, "reserved-1yr": 22, "reserved-3yr": 22}
    assert set(by_purchase) == least.keys() and all(by_purchase.count(name) >= n for name, n in least.items())


def test_neocloud_list_reproduces_the_shipped_prices(catalog: Catalog) -> None:
    price_list = read(catalog, NEOCLOUD)
    count = counts(price_list)
    assert count.keys() <= {"older", "added", "unchanged"} and count["unchanged"] >= 63 and count["older"] >= 14
    cited = {r.id for r in catalog.instances() if "offerings.json" in r.source}
    other = {change.instance for change in price_list.changes if change.what != "unchanged"}
    assert other & cited == {"thunder-compute/A100 80GB"}  # the list calls it spot, the catalog does not
    same = {change.instance for change in price_list.changes if change.what == "unchanged"}
    assert cited - same == {"thunder-compute/A100 80GB", "packet.ai/B200"}  # the list's B200 NVL is no SXM


def test_gcp_at_a_later_date_is_confirmed(catalog: Catalog, tmp_path: Path) -> None:
    price_list = read(catalog, GCP, as_of="2026-11-20")
    assert counts(price_list).keys() == {"confirmed"} and len(price_list.changes) >= 96
    row = laid_over(catalog, tmp_path, price_list).instance("gcp/a3-highgpu-8g")
    price = row.price("reserved-3yr")
    assert price is not None and (price.usd_per_hour, price.as_of, price.history) == (38.8644, "2026-11-20", ())
    assert price.kind == "resource CUD (month/730)"
    equivalent = laid_over(catalog, tmp_path, price_list).instance("gcp/a3-highgpu-1g").price("on-demand")
    assert equivalent is not None and equivalent.kind == "list equivalent; sold as Spot or Flex-start only"


# History


def test_the_replaced_price_is_history(catalog: Catalog, tmp_path: Path) -> None:
    price_list = read(catalog, a_list(tmp_path, "us-east-1,p5.48xlarge,60,8,h100"), as_of="2026-11-20")
    assert counts(price_list) == {"changed": 1}
    over = laid_over(catalog, tmp_path / "o", price_list)
    assert faults_of(over) == []
    row = over.instance("aws/p5.48xlarge")
    price = row.price("on-demand")
    assert price is not None and (price.usd_per_hour, price.as_of) == (60, "2026-11-20")
    assert [(p.usd_per_hour, p.as_of, p.source) for p in price.history] == [(55.04, "2026-07-20", None)]
    assert row.price("reserved-3yr") == catalog.instance("aws/p5.48xlarge").price("reserved-3yr")
    assert "aws/karpenter-provider-aws@1d927085" in row.source and "aws.csv" in row.source
    later = a_list(tmp_path, "us-east-1,p5.48xlarge,66,8,h100", name="later.csv")
    again = laid_over(over, tmp_path / "o", read(over, later, as_of="2026-12-01")).instance("aws/p5.48xlarge")
    price = again.price("on-demand")
    assert price is not None and price.usd_per_hour == 66
    assert [(p.usd_per_hour, p.source) for p in price.history] == [(60, "price list aws.csv"), (55.04, None)]
    assert again.source.count("price list") == 1 and again.source.startswith("price list later.csv (on-demand); aws/")


def test_the_same_list_twice_changes_nothing(catalog: Catalog, tmp_path: Path) -> None:
    for place, as_of in ((a_list(tmp_path, "us-east-1,p5.48xlarge,60,8,h100"), "2026-11-20"), (NEOCLOUD, None)):
        over = laid_over(catalog, tmp_path / "o", read(catalog, place, as_of=as_of), add_new=True)
        again = read(over, place, as_of=as_of)
        assert again.changed == () and again.new == () and set(counts(again)) <= {"unchanged", "older"}


@pytest.mark.parametrize("first", ["2026-11-20", "2026-01-05"])
def test_an_older_price_does_not_win(catalog: Catalog, tmp_path: Path, first: str) -> None:
    """Whatever the order in which two lists come, together or one after the other: the newest price holds."""
    new = a_list(tmp_path, "us-east-1,p5.48xlarge,60,8,h100", name="new.csv")
    old = a_list(tmp_path, "us-east-1,p5.48xlarge,98.32,8,h100", name="old.csv")
    dated = {"2026-11-20": new, "2026-01-05": old}
    second = next(day for day in dated if day != first)
    over = laid_over(catalog, tmp_path / "o", read(catalog, dated[first], as_of=first))
    price_list = read(over, dated[second], as_of=second)
    price = laid_over(over, tmp_path / "o", price_list).instance("aws/p5.48xlarge").price("on-demand")
    assert price is not None and (price.usd_per_hour, price.as_of) == (60, "2026-11-20")
    assert [(p.usd_per_hour, p.as_of) for p in price.history] == [(55.04, "2026-07-20"), (98.32, "2026-01-05")]
    assert counts(price_list) == ({"older": 1} if first == "2026-11-20" else {"changed": 1})


def test_lists_with_days_of_their_own_come_in_any_order(catalog: Catalog, tmp_path: Path) -> None:
    line = "verda,H100 SXM5,80,SXM,on-demand,False,{},,,{}"
    lines = (line.format(3, "2026-11-01"), line.format(4, "2026-10-01"))
    both = [a_list(tmp_path, line, name=f"{i}.csv", head=NEO_HEAD) for i, line in enumerate(lines)]
    for places in (both, both[::-1]):
        row = read(catalog, *places).changed[0]
        price = row.price("on-demand")
        assert price is not None and (price.usd_per_hour, price.as_of) == (3, "2026-11-01")
        assert [(p.usd_per_hour, p.as_of) for p in price.history] == [(4, "2026-10-01"), (2.29, "2026-05-24")]


def test_a_date_that_says_only_the_year_is_its_first_day(catalog: Catalog, tmp_path: Path) -> None:
    row = next(instance for instance in catalog.instances() if [price.as_of for price in instance.prices] == ["2026"])
    head = "provider,instance_type,region,purchase,usd_per_hour,kind"
    place = a_list(tmp_path, f"{row.provider},{row.type},{row.region},on-demand,80,", head=head)
    assert counts(read(catalog, place, as_of="2025-12-31")) == {"older": 1}
    (price,) = read(catalog, place, as_of="2026-01-02").changed[0].prices
    assert (price.usd_per_hour, len(price.history)) == (80, 1)


def test_history_is_bounded_and_in_order(catalog: Catalog) -> None:
    row = catalog.instance("aws/p5.48xlarge")
    days = [f"2027-{i // 28 + 1:02}-{i % 28 + 1:02}" for i in range(MOST_HISTORY + 5)]
    for i, day in enumerate(days):
        offer = Offer("a.csv", 2, "a.csv", "aws", "p5.48xlarge", {"on-demand": 60.0 + i}, "us-east-1", day)
        row, _ = changed_row(row, [Reading(row, "on-demand", 60.0 + i, offer)])
    price = row.price("on-demand")
    assert price is not None and price.usd_per_hour == 64 + MOST_HISTORY and len(price.history) == MOST_HISTORY
    assert [p.usd_per_hour for p in price.history] == [63.0 + MOST_HISTORY - i for i in range(MOST_HISTORY)]


def test_history_is_checked(tmp_path: Path) -> None:
    text = (default_folder() / "instances" / "scaleway.yaml").read_text()
    price = "      - {purchase: on-demand, usd_per_hour: 3.7969, as_of: '2026-10-24'}\n"
    assert price in text
    past = "\n          - ".join(
        ("        history:", "{usd_per_hour: 3, as_of: '2024'}", "{usd_per_hour: 4, as_of: 2025-01}\n")
    )
    block = price.replace("{", "").replace("}", "").replace(", ", "\n        ") + past
    (tmp_path / "instances").mkdir()
    (tmp_path / "instances" / "scaleway.yaml").write_text(text.replace(price, block))
    with pytest.raises(CatalogError, match=r"scaleway\.yaml:20: history is not in order"):
        Catalog(tmp_path).instances()
    (tmp_path / "instances" / "scaleway.yaml").write_text(text.replace(price, block.replace("hour: 3,", "hour: 0,")))
    with pytest.raises(CatalogError, match=r"usd_per_hour is 0"):
        Catalog(tmp_path).instances()


# What prices which row


def test_rows_are_priced_in_their_own_region(catalog: Catalog, tmp_path: Path) -> None:
    place = a_list(tmp_path, "us-west-2,p5.48xlarge,70,8,h100", "US-EAST-1,P5.48XLARGE,71,8,h100")
    price_list = read(catalog, place, as_of="2026-11-20")
    assert [(change.instance, change.new_usd) for change in price_list.changes] == [("aws/p5.48xlarge", 71)]
    assert [(row.new_region, row.new_usd) for row in price_list.of_regions] == [("us-west-2", 70)]


def test_another_region_takes_the_row_with_it(catalog: Catalog, tmp_path: Path) -> None:
    price_list = read(catalog, AWS, as_of="2026-07-20", region="US-Gov-West-1")
    assert {change.what for change in price_list.changes} == {
        "moved"
    } and "aws/p5.48xlarge reserved-3yr" in price_list.dropped
    over = laid_over(catalog, tmp_path, price_list)
    row = over.instance("aws/p5.48xlarge")
    assert row.region == "us-gov-west-1"
    assert [(p.purchase, p.usd_per_hour, p.history) for p in row.prices] == [("on-demand", 66.048, ())]
    assert over.instance("aws/p4de.24xlarge").region == "us-east-1"  # not sold there
    assert counts(read(over, AWS, as_of="2026-07-20", region="us-gov-west-1")) == {"unchanged": len(price_list.changes)}
    with pytest.raises(CatalogError, match=r"region is 'us-gov-wst-1'"):
        read(catalog, AWS, as_of="2026-07-20", region="us-gov-wst-1")
    with pytest.raises(CatalogError, match="none of the lists names regions"):
        read(catalog, NEOCLOUD, region="us-east-1")


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("vast-ai,NVIDIA A100 SXM,80,SXM,on-demand,False,1,,", "vast.ai/A100 SXM 80GB"),
        ("verda,NVIDIA A100 SXM4 80GB,80,SXM,on-demand,False,1,,", "verda/A100 SXM4 80GB"),
        ("runpod,NVIDIA H100 SXM,80,SXM,secure,False,1,,", "runpod-secure/H100 SXM"),
        ("runpod,NVIDIA H100 SXM,80,SXM,community,False,1,,", "runpod-community/H100 SXM"),
        ("digitalocean,NVIDIA HGX H100,80,SXM,on-demand,False,1,,", "digitalocean/H100"),
        ("akash,B300,288,,marketplace,False,1,,", "akash/B300 SXM6"),  # one B300 in the catalogs, one in its rows
        ("runpod,NVIDIA H100 SXM,80,SXM,spot,True,1,,", None),  # which of two providers?
        ("verda,NVIDIA A100 SXM4,40,SXM,on-demand,False,1,,", None),  # only 80 GB there
        ("digitalocean,NVIDIA H100,80,PCIe,on-demand,False,1,,", None),  # its H100 is the SXM part
        ("packet-ai,NVIDIA B200 NVL,180,NVL,on-demand,False,1,,", None),
        ("akash,NVIDIA H100,80,,marketplace,True,1,,", None),  # SXM or PCIe?
        ("hyperstack,NVIDIA A100 NVLink,80,NVLink,on-demand,False,1,,", None),
        ("coreweave,NVIDIA HGX H100 SXM,80,SXM,on-demand,False,1,,", None),  # one GPU against a machine of eight
        ("civo,NVIDIA H100 SXM,80,SXM,on-demand,False,1,,", None),  # an average is no price of one offer
        ("nobody,RTX 4090,24,,spot,True,1,,", None),
    ],
)
def test_offers_by_the_gpu(catalog: Catalog, tmp_path: Path, line: str, row: str | None) -> None:
    price_list = read(catalog, a_list(tmp_path, line + ",2026-11-20", head=NEO_HEAD))
    assert [change.instance for change in price_list.changes] == ([row] if row else [])
    assert len(price_list.left) + len(price_list.new) == (0 if row else 1)


def test_an_offer_of_the_rows_own_size_is_meant(catalog: Catalog, tmp_path: Path) -> None:
    line = "vultr,NVIDIA L40S,48,PCIe,on-demand,False,{},{},2026-11-20"
    lines = (line.format(1, ","), line.format(2, "16,180"))
    text = read(catalog, a_list(tmp_path, *lines, head=NEO_HEAD))
    assert [(change.instance, change.new_usd) for change in text.changes] == [("vultr/L40S", 2)]
    text = read(catalog, a_list(tmp_path, *(line.replace("16,180", "8,90") for line in lines), head=NEO_HEAD))
    assert text.changes == () and {row_left.why for row_left in text.left} == {
        "could be vultr/L40S, which has 2 prices here: 1 and 2"
    }


@pytest.mark.parametrize(
    ("name", "bus", "memory", "ids"),
    [
        ("NVIDIA H100 SXM5", "", 80, ["nvidia-h100-sxm5-80gb"]),
        ("NVIDIA H100", "PCIe", 80, ["nvidia-h100-pcie-80gb"]),
        ("NVIDIA H100", "", 80, ["nvidia-h100-pcie-80gb", "nvidia-h100-sxm5-80gb"]),
        ("NVIDIA H100 NVL", "NVL", 94, ["nvidia-h100-nvl-94gb"]),
        ("Tesla T4", "PCIe", 16, ["nvidia-t4-16gb"]),
        ("t4g", "", 16, []),
        ("NVIDIA A10", "", 24, ["nvidia-a10-24gb"]),
        ("L40", "PCIe", 40, []),
        ("RTX PRO 6000 SE", "PCIe", 96, ["nvidia-rtx-pro-6000-server-96gb"]),
        ("RTX PRO 6000 WE", "PCIe", 96, ["nvidia-rtx-pro-6000-ws-96gb"]),
        ("rtx-pro-server-6000", "", 96, ["nvidia-rtx-pro-6000-server-96gb"]),
        ("RTX 4090 (48 GB mod)", "PCIe", 48, []),
        ("NVIDIA GH200", "", 96, ["nvidia-gh200-96gb"]),
        ("B300 SXM6", "SXM", 262, ["nvidia-b300-sxm6-288gb"]),
        ("AMD MI300X", "", 192, ["amd-mi300x-192gb"]),
    ],
)
def test_gpus_by_name(catalog: Catalog, name: str, bus: str, memory: float, ids: list[str]) -> None:
    assert sorted(gpu.id for gpu in gpus_named(words(name, bus, memory), by_core(catalog.gpus()))) == ids


# New rows


def test_new_types(catalog: Catalog, tmp_path: Path) -> None:
    """The list's own line of a p3dn, under a name that nobody enters."""
    head, *lines = AWS.read_text().splitlines()
    lines += [line.replace("p3dn.", "p3dn9.") for line in lines if line.startswith("us-east-1,p3dn.")]
    price_list = read(catalog, a_list(tmp_path, *lines, head=head, name=AWS.name), as_of="2026-07-20")
    assert "aws/p3dn9.24xlarge" in [row.id for row in price_list.new]
    assert {row_left.why for row_left in price_list.left} == {
        "new, with a GPU that is in no catalog",
        "new, with 0 GPUs by the list, which is no whole number from 1",
        "new, but the list does not say its GPU and how many",
    }
    over = laid_over(catalog, tmp_path / "over", price_list, add_new=True)
    assert faults_of(over) == []
    row = over.instance("aws/p3dn9.24xlarge")
    assert (row.gpu, row.gpu_count, row.vcpu, row.ram_gib) == ("nvidia-v100-sxm2-32gb", 8, 96, 768)
    assert (row.local_nvme_gb, row.network_gbps, row.unit, row.region) == (1800, 100, "instance", "us-east-1")
    assert row.source == "price list aws_gpu_on_demand.csv (on-demand)" and row.checked_on == "2026-07-20"


def test_new_rows_by_the_gpu(tmp_path: Path) -> None:
    """Onto catalogs that have no row of Verda, and of Akash one that the list changes."""
    shutil.copytree(default_folder(), tmp_path / "catalogs")
    (tmp_path / "catalogs" / "instances" / "verda.yaml").unlink()
    akash = tmp_path / "catalogs" / "instances" / "akash.yaml"
    text = akash.read_text(encoding="utf-8")
    rows = text.split("  - type: ")
    akash.write_text(rows[0] + "".join(f"  - type: {row}" for row in rows[1:] if row.startswith("B200\n")))
    catalog = Catalog(base=tmp_path / "catalogs")
    price_list = read(catalog, NEOCLOUD)
    over = laid_over(catalog, tmp_path / "over", price_list, add_new=True)
    assert faults_of(over) == [] and len(over.instances()) == len(catalog.instances()) + len(price_list.new)
    assert len(price_list.new) > 10 and not {row.id for row in price_list.new} & {row.id for row in catalog.instances()}
    row = over.instance("verda/A100 40GB SXM")  # named by the catalog's name of the GPU, not by the list's
    assert [(p.purchase, p.usd_per_hour) for p in row.prices] == [("on-demand", 0.72), ("spot", 0.25)]
    assert (row.unit, row.gpu_count, row.region, row.offer) == ("per_gpu", 1, "mixed", "list")
    assert over.instance("akash/RTX 4090").offer == "marketplace"
    akash = over.instance("akash/B200").price("spot")  # of the same file, a row that changed
    assert akash is not None and akash.usd_per_hour == 5


def test_a_new_type_that_is_not_whole(catalog: Catalog, tmp_path: Path) -> None:
    lines = (
        "us-east-1,x1.large,5,2.5,l4",
        "us-east-1,x2.large,5,1,a100",
        "us-west-1,x3.large,5,1,l4",
        "us-east-1,x4.large,5,9999,l4",
    )
    text = read(catalog, a_list(tmp_path, *lines), as_of="2026-11-20")
    assert text.new == () and [row_left.why.split(",")[1] for row_left in text.left] == [
        " with 2.5 GPUs by the list",
        " but its GPU could be nvidia-a100-pcie-40gb or nvidia-a100-pcie-80gb or "
        "nvidia-a100-sxm4-40gb or nvidia-a100-sxm4-80gb",
        " but not sold in us-east-1",
        " with 9999 GPUs by the list",
    ]
    text = read(catalog, a_list(tmp_path, *lines), as_of="2026-11-20", region="us-west-1")
    assert [(row.id, row.region) for row in text.new] == [("aws/x3.large", "us-west-1")]


# The files


def shipped_file(path: Path) -> InstanceFile:
    return validate(read_document(path), InstanceFile)


@pytest.mark.parametrize("provider", sorted(path.stem for path in (default_folder() / "instances").iterdir()))
def test_the_writer_writes_what_the_shipped_files_say(provider: str, tmp_path: Path) -> None:
    """And of what it wrote the same bytes; a row that is entered by hand need not be laid out so."""
    path, entry = tmp_path / f"{provider}.yaml", shipped_file(default_folder() / "instances" / f"{provider}.yaml")
    path.write_text(file_text(provider, entry.order, entry.instances, "x"), encoding="utf-8")
    written = shipped_file(path)
    assert written == entry
    assert file_text(provider, written.order, written.instances, "x") == path.read_text(encoding="utf-8")


def test_the_writer_changes_no_byte_of_what_it_wrote() -> None:
    """The file of azure, which came of it: comments, quotes and empty fields as they were."""
    path = default_folder() / "instances" / "azure.yaml"
    text, entry = path.read_text(encoding="utf-8"), shipped_file(path)
    rows = entry.instances[:5]
    whole = file_text("azure", entry.order, rows, "x")
    assert text.startswith(whole)


def test_what_is_in_the_folder_stays(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "o" / "instances").mkdir(parents=True)
    mine = catalog.instance("aws/p4d.24xlarge").model_dump(mode="json", exclude={"provider"})
    row = validate_row(
        {**mine, "type": "mine.large", "gpu": "a100-40gb", "notes": ["=1 is no formula: 'x'"[1:], "a\nb"]}
    )
    text = file_text("aws", 7, [row], "x")
    (tmp_path / "o" / "instances" / "aws.yaml").write_text("# ours\n" + text)
    over = Catalog(tmp_path / "o")
    place = a_list(tmp_path, "us-east-1,p5.48xlarge,60,8,h100", "us-east-1,mine.large,9,8,a100")
    after = laid_over(over, tmp_path / "o", read(over, place, as_of="2026-11-20"))
    written = (tmp_path / "o" / "instances" / "aws.yaml").read_text()
    assert written.startswith("# ours\nprovider: aws\norder: 7\ninstances:\n  - type: mine.large\n")
    assert written.count("  - type: ") == 2
    price = after.instance("aws/mine.large").price("on-demand")
    assert price is not None and (price.usd_per_hour, price.history[0].usd_per_hour) == (9, 21.957642)
    assert after.instance("aws/mine.large").notes == ("1 is no formula: 'x'", "a\nb")


def validate_row(fields: dict[str, object]) -> Instance:
    return Instance.model_validate({**fields, "provider": "aws"})


def test_too_much_for_one_file(catalog: Catalog, tmp_path: Path) -> None:
    row = catalog.instance("aws/p5.48xlarge")
    rows = [row.model_copy(update={"type": f"t{i}", "notes": ("x" * 1900,)}) for i in range(500)]
    with pytest.raises(CatalogError, match=r"aws\.yaml: .* 1,000,000 bytes"):
        files(catalog, tmp_path, rows)


def test_the_lists_of_a_row_in_its_source() -> None:
    made = "aws/karpenter@1d927085 a.go (2026-07-20); shape b.md (2026-07-11)"
    first = with_list(made, "price list a.csv", "spot")
    assert first == f"{made}; price list a.csv (spot)"  # the sheet cites what stands first, for on-demand prices
    both = with_list(first, "price list a.csv", "on-demand")
    assert both == f"price list a.csv (spot, on-demand); {made}"
    assert (
        with_list(both, "price list b.csv", "on-demand")
        == f"price list b.csv (on-demand); {made}; price list a.csv (spot)"
    )
    assert (
        with_list(with_list(both, "price list b.csv", "on-demand"), "price list b.csv", "spot")
        == f"price list b.csv (on-demand, spot); {made}"
    )
    assert list_of(both, "spot") == "price list a.csv" and list_of(both, "reserved-1yr") is None
    assert taken_apart(both)[1] == made and with_list("", "price list a.csv", "spot") == "price list a.csv (spot)"


def test_nothing_but_prices_regions_and_sources_changes(catalog: Catalog, tmp_path: Path) -> None:
    over = laid_over(catalog, tmp_path, read(catalog, GCP, as_of="2026-11-20"))
    for old, new in zip(catalog.instances(), over.instances(), strict=True):
        same = set(type(old).model_fields) - {"prices", "source"}
        assert old.model_dump(include=same) == new.model_dump(include=same)
        assert new.source.endswith(old.source) or new.source.startswith("price list") or old == new


# Lines of aws_gpu_regions.csv, aws_capacity_blocks_2026-07-22.csv and commitments.csv; of these two at a later day.
FORMS = {
    "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name,reserved_1yr_no_upfront_usd_hr\n"
    "us-east-1,g5.12xlarge,5.672,4,a10g,3.57336\n"
    "us-east-1,p5.48xlarge,55.04,8,h100,\n": [
        ("aws/g5.12xlarge", "reserved-1yr", 3.57336, "2026-12-01", "Standard RI, No Upfront"),
    ],
    "instance_type,region,accelerator,accelerator_count,capacity_block_usd_hr,source_date\n"
    "p5.48xlarge,us-east-1,H100,8,41.528,2026-12-01\n"
    "p5.48xlarge,eu-north-1,H100,8,37.76,2026-12-01\n": [
        ("aws/p5.48xlarge", "capacity-block", 41.528, "2026-12-01", None)
    ],
    "provider,instance_type,region,purchase,usd_per_hour,kind,source_date\n"
    'azure,Standard_ND96isr_H100_v5,eastus,reserved-1yr,62.928,"reservation, 1 year (month / 760)",2026-12-01\n'
    'azure,Standard_ND96isr_H100_v5,eastus,reserved-3yr,43.16,"reservation, 3 years (month / 760)",2026-12-01\n'
    "aws,p5en.48xlarge,us-east-1,reserved-1yr,,none sold,2026-09-19\n"
    "hyperstack,L40,mixed,reserved (term not stated),0.7,a GPU,2026-09-19\n": [
        ("azure/Standard_ND96isr_H100_v5", "reserved-1yr", 62.928, "2026-12-01", "reservation, 1 year (month / 760)"),
        ("azure/Standard_ND96isr_H100_v5", "reserved-3yr", 43.16, "2026-12-01", "reservation, 3 years (month / 760)"),
    ],
}


@pytest.mark.parametrize("text", FORMS, ids=("reserved", "blocks", "commitments"))
def test_prices_for_a_term(catalog: Catalog, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    price_list = read(catalog, tmp_path / "a.csv", as_of="2026-12-01")
    rows = {row.id: row for row in price_list.changed}
    for instance, purchase, usd, day, kind in FORMS[text]:
        price = rows[instance].price(purchase)
        assert price is not None and (price.usd_per_hour, price.as_of, price.kind) == (usd, day, kind)
    assert not price_list.skipped and len(price_list.changes) >= len(FORMS[text])
    named = {(change.instance, change.purchase) for change in price_list.changes if change.purchase != "on-demand"}
    assert named == {(instance, purchase) for instance, purchase, *_ in FORMS[text]}

"""Price lists that are broken, or none: what is refused, by which line, in which words."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sheetgen.catalog import Catalog
from sheetgen.catalog.prices.list_files import read_list
from sheetgen.catalog.prices.list_tables import MAX_LINES
from sheetgen.catalog.prices.refresh import read_lists, refresh
from sheetgen.errors import CatalogError

AWS_HEAD = "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name"
GCP_HEAD = "region,machine_type,on_demand_usd_hr,spot_usd_hr,month_1y_cud_usd,month_3y_cud_usd"
NEO_HEAD = "provider_id,gpu_model,vram_gb,interconnect,tier,is_spot,price_usd_hour,collected_at"
GOOD = "us-east-1,p5.48xlarge,60,8,h100"


def problems(place: Path, catalog: Catalog, as_of: str | None = "2026-11-20") -> list[str]:
    """The problems of the list at `place`, without its folder."""
    with pytest.raises(CatalogError) as caught:
        refresh(catalog, read_lists([str(place)]), as_of)
    told = [problem.replace(f"{place.parent}/", "") for problem in caught.value.problems]
    assert all(line.isprintable() and len(line) < 700 for line in told)
    return told


def written(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("head", "line", "told"),
    [
        (AWS_HEAD, "us-east-1,p5.48xlarge,abc,8,h100", "on_demand_usd_hr is 'abc'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,-1,8,h100", "on_demand_usd_hr is '-1'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,0,8,h100", "on_demand_usd_hr is '0'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,0.0,8,h100", "on_demand_usd_hr is '0.0'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,nan,8,h100", "on_demand_usd_hr is 'nan'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,inf,8,h100", "on_demand_usd_hr is 'inf'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,1e999,8,h100", "on_demand_usd_hr is '1e999'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,1_0,8,h100", "on_demand_usd_hr is '1_0'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,٣,8,h100", "on_demand_usd_hr is '٣'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,=1+1,8,h100", "on_demand_usd_hr is '=1+1'. It must be a price above 0."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,1000001,8,h100", "must be a price from 0.0001 to 1,000,000 USD an hour."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,1e-9,8,h100", "must be a price from 0.0001 to 1,000,000 USD an hour."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,60,x,h100", "accelerator_count is 'x'. It must be a number, 0 or more."),
        (AWS_HEAD, "us-east-1,,60,8,h100", "instance_type is empty."),
        (AWS_HEAD, ",p5.48xlarge,60,8,h100", "region is empty."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,60", "has 3 cells under a header of 5 columns."),
        (AWS_HEAD, "us-east-1,p5.48xlarge,60,8,h100,9", "has 6 cells under a header of 5 columns."),
        (AWS_HEAD, "us-east-1,=cmd|' /C calc'!A0,60,8,h100", "which is no name: letters, digits"),
        (AWS_HEAD, "us-east-1,<b>p5</b>,60,8,h100", "instance_type is '<b>p5</b>', which is no name"),
        (AWS_HEAD, "us-east-1,p5\x1b[31m,60,8,h100", "instance_type is 'p5\\x1b[31m', which is no name"),
        (AWS_HEAD, 'us-east-1,"p5\n48",60,8,h100', "instance_type is 'p5\\n48', which is no name"),
        (AWS_HEAD, f"us-east-1,{'x' * 2000},60,8,h100", "2,000 characters. A name has at most 120."),
        (AWS_HEAD, "javascript:alert(1),p5.48xlarge,60,8,h100", "region is 'javascript:alert(1)', which is no name"),
        (GCP_HEAD, "us-central1,a2-highgpu-1g,3,x,,", "spot_usd_hr is 'x'. It must be a price above 0."),
        (
            GCP_HEAD,
            "us-central1,a2-highgpu-1g,3,1,9e8,",
            "must be a price from 0.073 to 730,000,000 USD for 730 hours.",
        ),
        (NEO_HEAD, "verda,H100 SXM5,80,SXM,a,maybe,2,2026-11-20", "is_spot is 'maybe'. It must be True or False."),
        (NEO_HEAD, "verda,H100 SXM5,80,SXM,a,True,2,20.11.2026", "collected_at is '20.11.2026'. It must be a day such"),
        (NEO_HEAD, "verda,H100 SXM5,80,SXM,a,True,2,2026-02-31", "collected_at is '2026-02-31'. It must be a day such"),
        (NEO_HEAD, "verda,H100 SXM5,-80,SXM,a,True,2,2026-11-20", "vram_gb is '-80'. It must be a number, 0 or more."),
    ],
)
def test_a_line_is_refused_by_its_number(catalog: Catalog, tmp_path: Path, head: str, line: str, told: str) -> None:
    good = {
        AWS_HEAD: GOOD,
        GCP_HEAD: "us-central1,a2-highgpu-2g,7,4,,",
        NEO_HEAD: "verda,L40S,48,PCIe,a,no,1,2026-11-20",
    }
    place = written(tmp_path, f"{head}\n{good[head]}\n\n{line}\n")
    faults = problems(place, catalog)
    assert len(faults) == 1 and faults[0].startswith("a.csv:4: ") and told in faults[0], faults
    kept = refresh(catalog, read_lists([str(place)]), "2026-11-20", skip_broken=True)
    assert [fault.line for fault in kept.skipped] == [4] and {change.at for change in kept.changes} == {f"{place}:2"}


def test_every_problem_in_one_run(catalog: Catalog, tmp_path: Path) -> None:
    first = written(tmp_path, f"{AWS_HEAD}\n{GOOD}\nus-east-1,g5.xlarge,x,y,a10g\n", "1.csv")
    two = written(tmp_path, f"{GCP_HEAD}\nus-central1,a2-highgpu-1g,0,,,\n", "2.csv")
    with pytest.raises(CatalogError) as caught:
        refresh(catalog, read_lists([str(first), str(two)]), "2026-11-20")
    assert [p.removeprefix(f"{tmp_path}/").split(". ")[0] for p in caught.value.problems] == [
        "1.csv:3: on_demand_usd_hr is 'x'",
        "1.csv:3: accelerator_count is 'y'",
        "2.csv:2: on_demand_usd_hr is '0'",
        "3 problems",
    ]
    assert "--skip-broken" in caught.value.problems[-1]
    many = written(tmp_path, AWS_HEAD + "\nus-east-1,g5.xlarge,x,1,a10g" * 1000)
    assert problems(many, catalog)[-1].startswith("800 more ")


def test_one_thing_at_two_prices(catalog: Catalog, tmp_path: Path) -> None:
    place = written(
        tmp_path, f"{AWS_HEAD}\n{GOOD}\nUS-EAST-1,P5.48xlarge,61,8,h100\nus-east-1,g6.xlarge,1,1,l4\n{GOOD}\n"
    )
    assert problems(place, catalog) == [
        "a.csv:3: P5.48xlarge in US-EAST-1 is priced twice: 60 on line 2, 61 here. Keep one."
    ]
    kept = refresh(catalog, read_lists([str(place)]), "2026-11-20", skip_broken=True)
    assert {change.instance for change in kept.changes} == {
        "aws/p5.48xlarge",
        "aws/g6.xlarge",
    }  # line 5 says it once more
    offer = "verda,H100 SXM5,80,SXM,a,False,{},2026-11-20\n"
    place = written(tmp_path, f"{NEO_HEAD}\n{offer.format(2)}{offer.format(3)}")
    assert "a.csv:3: H100 SXM5 of verda" in problems(place, catalog)[0]


def test_two_lists_that_disagree(catalog: Catalog, tmp_path: Path) -> None:
    first = written(tmp_path, f"{AWS_HEAD}\n{GOOD}\n", "1.csv")
    two = written(tmp_path, f"{AWS_HEAD}\n{GOOD.replace('60', '61')}\nus-east-1,g6.xlarge,1,1,l4\n", "2.csv")
    lists = read_lists([str(first), str(two)])
    with pytest.raises(CatalogError, match=r"2\.csv:2: .* 61 here and 60 in .*1\.csv:2"):
        refresh(catalog, lists, "2026-11-20")
    kept = refresh(catalog, lists, "2026-11-20", skip_broken=True)
    assert [change.instance for change in kept.changes] == ["aws/g6.xlarge"]


def test_two_lists_that_disagree_where_one_has_a_day_of_its_own(catalog: Catalog, tmp_path: Path) -> None:
    line = f"{NEO_HEAD}\nverda,H100 SXM5,80,SXM,a,False,{{}},{{}}\n"
    texts = (line.format(2, "2026-11-20"), line.format(3, ""))
    lists = read_lists([str(written(tmp_path, text, f"{i}.csv")) for i, text in enumerate(texts)])
    with pytest.raises(CatalogError, match=r"1\.csv:2: .* 3 here and 2 in .*0\.csv:2"):
        refresh(catalog, lists, "2026-11-20")


def test_an_empty_price_is_no_fault(catalog: Catalog, tmp_path: Path) -> None:
    place = written(tmp_path, f"{AWS_HEAD}\n{GOOD}\nus-east-1,g6.xlarge,,1,l4\n,p5e.48xlarge,  ,8,h200\n")
    refresh_ = refresh(catalog, read_lists([str(place)]), "2026-11-20")
    assert (refresh_.lists[0].n_lines, refresh_.lists[0].without_price, len(refresh_.changes)) == (3, (3, 4), 1)


def test_a_list_without_a_date(catalog: Catalog, tmp_path: Path) -> None:
    place = written(tmp_path, f"{AWS_HEAD}\n{GOOD}\n")
    assert problems(place, catalog, as_of=None) == [
        "a.csv: says no date. Give the day when its prices were read, such as --as-of 2026-11-20."
    ]
    lines = "verda,H100 SXM5,80,SXM,a,True,2,\nverda,H200 SXM5,141,SXM,a,True,2,2026-11-20T10:00:00Z\n"
    place = written(tmp_path, f"{NEO_HEAD}\n{lines}")
    assert problems(place, catalog, as_of=None) == [
        "a.csv:2: collected_at is empty. Write the day, or give one by --as-of."
    ]
    dated = {c.instance: c.new_as_of for c in refresh(catalog, read_lists([str(place)]), "2026-11-19").changes}
    assert dated == {"verda/H100 SXM5": "2026-11-19", "verda/H200 SXM5": "2026-11-20"}  # a line's own day holds


KNOWN = "Known: AWS on demand, Azure on demand, GCP accelerators, neocloud offerings, AWS Capacity Blocks, commitments."


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("region,instance_type,on_demand_usd", f"no column on_demand_usd_hr. Did you mean on_demand_usd? {KNOWN}"),
        ("region,instance_type,price", "no column says whose prices these are. Add a column provider, or give --pro"),
        (
            AWS_HEAD.replace("accelerator_name", "acelerator_name"),
            "looks like AWS on demand, but has no column accelerator_name.",
        ),
        (
            GCP_HEAD.replace("machine_type", "type"),
            "looks like GCP accelerators, but has no column machine_type. Is it type?",
        ),
        (NEO_HEAD.replace("price_usd_hour", "usd"), "looks like neocloud offerings, but has no column price_usd_hour."),
        ("a,b,c", "begins with 'a, b, c', which is no price list that sheetgen knows. A list of your own has a column"),
        ("region,region,instance_type", "column region is there twice. Keep one."),
        (",".join(f"c{i}" for i in range(300)), "has 300 columns. A price list has at most 200."),
        ("\x1b[31m,b", "begins with '\\x1b[31m, b', which is no price list"),
    ],
)
def test_headers(catalog: Catalog, tmp_path: Path, head: str, told: str) -> None:
    faults = problems(written(tmp_path, f"{head}\n1,2,3\n"), catalog)
    assert len(faults) == 1 and faults[0].startswith("a.csv:1: ") and told in faults[0], faults


@pytest.mark.parametrize(
    "head",
    [AWS_HEAD.upper(), AWS_HEAD.replace(",", " , "), "\ufeff" + AWS_HEAD, "\n\n" + AWS_HEAD, "Prices\n" + AWS_HEAD],
)
def test_headers_that_are_as_good(catalog: Catalog, tmp_path: Path, head: str) -> None:
    refresh_ = refresh(catalog, read_lists([str(written(tmp_path, f"{head}\r\n{GOOD}\r\n"))]), "2026-11-20")
    assert [change.new_usd for change in refresh_.changes] == [60]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "a.csv: is empty."),
        (b"\xef\xbb\xbf", "a.csv: is empty."),
        (b" \n\n", "a.csv: is empty."),
        (AWS_HEAD.encode(), "a.csv: has a header and no line under it."),
        (gzip.compress(b"region", mtime=0), "a.csv: is compressed (gzip). Unpack it first."),
        (b"PK\x03\x04rest", "a.csv: is no Excel workbook that can be read (BadZipFile: File is not a zip file)."),
        (b"\n <!doctype html><html>", "a.csv: is a web page or XML, not CSV. Name the file itself."),
        (b'{"a": 1}', "a.csv: is JSON without a list of records. Save its table as CSV."),
        (b'{"a": ', "a.csv: is no valid JSON (Expecting value"),
        (b"%PDF-1.7", "a.csv: is a PDF. Copy its table into a sheet, and save that as .xlsx or CSV."),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "a.csv: is an old or locked Excel file. Save it as .xlsx without a password"),
        (AWS_HEAD.encode("utf-16")[:-1], "a.csv: is UTF-16 text that breaks off. Save it as UTF-8."),
        (AWS_HEAD.encode() + b"\nus-east-1,p\x815,1,1,l4\n", "a.csv:2: is not UTF-8 text. Save it as UTF-8."),
        (AWS_HEAD.encode() + b"\nus-east-1,p\x005,1,1,l4\n", "a.csv:2: holds a NUL byte, so it is no text."),
        (bytes(range(256)) * 9, "a.csv:"),
        (AWS_HEAD.encode() + b'\n"us-east-1,p5,1,1,l4\n', "a.csv:2: is not valid CSV (unexpected end of data)."),
        (AWS_HEAD.encode() + b'\nus-east-1,"p"5,1,1,l4\n', "a.csv:2: is not valid CSV ("),
        (AWS_HEAD.encode() + b"\n" + b"x" * 200_000 + b",p5,1,1,l4\n", "a.csv:2: is not valid CSV (field larger than"),
        (AWS_HEAD.encode() + b"\na,b,1,1,l4" * (MAX_LINES + 1), f"a.csv: has more than {MAX_LINES:,} lines."),
        (
            b"region,instance_type,on_demand_usd_hr\nus-east-1,p5.48xlarge,5\n",
            "a.csv:1: has the columns of Azure on demand, but",
        ),
        (b" " * (32 * 2**20 + 1), "a.csv: is larger than 33,554,432 bytes, the most that is read."),
    ],
)
def test_files_that_are_no_price_list(catalog: Catalog, tmp_path: Path, data: bytes, told: str) -> None:
    faults = problems(written(tmp_path, data), catalog)
    assert len(faults) == 1 and faults[0].startswith(told), faults


def test_an_aws_type_in_an_azure_list(catalog: Catalog, tmp_path: Path) -> None:
    lines = "region,instance_type,on_demand_usd_hr\neastus,Standard_NC8as_T4_v3,1\nus-east-1,p5.48xlarge,5\n"
    assert problems(written(tmp_path, lines), catalog) == [
        "a.csv:3: instance_type is 'p5.48xlarge'. Every type of Azure on demand begins Standard_."
    ]


def test_places_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="embedded null") as nul:  # in the words of this Python
        Path("a\0b").stat()
    for place, told in (
        ("folder", "folder: is a folder. Name a CSV or Excel file."),
        ("/dev/zero", "/dev/zero: is larger than 33,554,432 bytes, the most that is read."),
        ("none.csv", "none.csv: cannot be read (No such file or directory)."),
        ("a\0b", f"a\\x00b: cannot be read ({nul.value})."),
        ("x" * 5000, "cannot be read (File name too long)."),
        ("file:///etc/passwd", "file:///etc/passwd: is neither a file nor an address of http or https."),
        ("FTP://host/a.csv", "FTP://host/a.csv: is neither a file nor an address of http or https."),
        ("data:text/csv,a", "data:text/csv,a: cannot be read (No such file or directory)."),
    ):
        with pytest.raises(CatalogError) as caught:
            read_list(place)
        assert len(caught.value.problems) == 1 and caught.value.problems[0].endswith(told)

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "secret.csv").write_text(AWS_HEAD)
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(CatalogError, match=r"secret\.csv: .*\(Permission denied\)"):
        read_list("secret.csv")


@pytest.mark.parametrize(
    "name",
    ["=cmd.csv", "-x.csv", "a; b (on-demand).csv", "<b>.csv", "javascript:x.csv", "\x1b[31m.csv", "é" * 90 + ".csv"],
)
def test_a_file_name_becomes_no_markup(catalog: Catalog, tmp_path: Path, name: str) -> None:
    place = written(tmp_path, f"{AWS_HEAD}\n{GOOD}\n", name)
    row = refresh(catalog, read_lists([str(place)]), "2026-11-20").changed[0]
    cited = row.source.split("; ")[0]
    assert (
        cited.startswith("price list ") and cited.endswith(" (on-demand)") and cited.isascii() and cited.isprintable()
    )
    assert not set(cited.removesuffix(" (on-demand)")) & set("=;:<>()'\"|{}")

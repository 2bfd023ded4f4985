"""Price lists as other hands write them: each is answered, or one line says what to add, which works.

The files are in data/price_files; where each is from stands in its README. Workbooks are written here.
"""

from __future__ import annotations

import datetime
import io
import json
import random
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import openpyxl
import pytest
from amounts import IN_LONG, amount
from command_lines import Run

from sheetgen.catalog import Catalog
from sheetgen.catalog.prices.own_list import Stated
from sheetgen.catalog.prices.price_lists import read_prices
from sheetgen.catalog.prices.refresh import files, read_lists, refresh
from sheetgen.errors import CatalogError

FILES = Path(__file__).parents[1] / "data" / "price_files"
DAY = ("--as-of", "2026-11-20")
H100, H200, L40S = "nvidia-h100-sxm5-80gb", "nvidia-h200-sxm5-141gb", "nvidia-l40s-48gb"
Edit = tuple[str, str]


@dataclass(frozen=True)
class File:
    """A list: what is said of it, and by which options or edit it is mended (nothing where it is answered at once);
    then its prices by instance, with the GPUs of those that it brings.

    left: of the report, what else it says."""

    name: str
    told: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    edit: tuple[Edit, ...] = ()
    prices: dict[str, dict[str, float]] = field(default_factory=dict)
    gpus: dict[str, tuple[str, int]] = field(default_factory=dict)
    left: str = ""


PIECES = (
    *(b'"', b";", b",", b"\n", b"\t", b"-", b"=", b"1e999", b"1.234", b"<b>", b"\x1b[31m", b"{", b"8x", b"EUR"),
    *("€".encode(), "\u202e".encode(), b"\xff", b"\0", b"javascript:x"),
)
WHOSE = "no column says whose prices these are. Add a column provider, or give --provider NAME."


def rate(code: str, n_lines: str) -> str:
    give = f"Give your own rate: --usd-per {code}=RATE, the US dollars for 1 {code}."
    return f"has {n_lines} in {code}. {give}"


CASES = [
    File(
        "skypilot_lambda.csv",
        (WHOSE,),
        ("--provider", "lambda"),
        prices={"lambda/gpu_8x_v100_n": {"on-demand": 6.32}, "lambda/gpu_4x_a6000": {"on-demand": 4.36}},
        gpus={
            "lambda/gpu_8x_v100_n": ("nvidia-v100-sxm2-32gb", 8),
            "lambda/gpu_4x_a6000": ("nvidia-rtx-a6000-48gb", 4),
        },
        left="2 lines: without a GPU (lambda cpu_4x_generalx)",
    ),
    File(
        "skypilot_runpod.csv",
        (WHOSE,),
        ("--provider", "runpod-secure"),
        prices={"runpod-secure/2x_A100-80GB_SECURE": {"on-demand": 2.78, "spot": 2.78}},
    ),
    File(
        "skypilot_vast.csv",
        (WHOSE,),
        ("--provider", "Vast"),
        prices={"vast.ai/4x-H200-32-65536": {"on-demand": 10.59}, "vast.ai/1x-H100_NVL-32-65536": {"on-demand": 2.08}},
        gpus={"vast.ai/4x-H200-32-65536": (H200, 4), "vast.ai/1x-H100_NVL-32-65536": ("nvidia-h100-nvl-94gb", 1)},
        left="1 line: with a GPU that is in no catalog (vast.ai 2x-RTX_4070S_Ti-32-65536)",
    ),
    File(
        "skypilot_nebius.csv",
        (WHOSE,),
        ("--provider", "nebius"),
        prices={"nebius/gpu-h200-sxm_8gpu-128vcpu-1600gb": {"on-demand": 28, "spot": 11.6}},
        gpus={"nebius/gpu-b200-sxm_8gpu-160vcpu-1792gb": ("nvidia-b200-sxm6-180gb", 8)},
    ),
    File(
        "gpuhunt.csv",
        (WHOSE,),
        ("--provider", "nebius"),
        prices={"nebius/gpu-h100-sxm 8gpu-128vcpu-1600gb": {"on-demand": 23.6, "spot": 10}},
    ),
    File(
        "vantage_aws.csv",
        (WHOSE,),
        ("--provider", "Amazon Web Services"),
        prices={"aws/p5.48xlarge": {"on-demand": 55.04}, "aws/trn1.32xlarge": {"on-demand": 21.5}},
    ),
    File(
        "vantage_azure.csv",
        (WHOSE,),
        ("--provider", "azure"),
        prices={"azure/Standard_ND96isr_H100_v5": {"on-demand": 98.32}, "azure/ND40rs v2": {"on-demand": 22.032}},
        gpus={"azure/ND40rs v2": ("nvidia-v100-sxm2-32gb", 8)},
    ),
    File(
        "aws_price_list.csv",
        (WHOSE,),
        ("--provider", "aws"),
        prices={"aws/p5.48xlarge": {"on-demand": 55.04}},
        left="1 line: of another product (operating system: Windows) (aws p5.48xlarge)",
    ),
    File(
        "azure_retail.json",
        (WHOSE,),
        ("--provider", "azure"),
        prices={"azure/Standard_ND96isr_H100_v5": {"on-demand": 98.32, "spot": 39.5}},
        left="1 line: for a commitment: the form `commitments` takes its price by the hour",
    ),
    File(
        "azure_retail.csv",
        (WHOSE,),
        ("--provider", "azure"),
        prices={"azure/Standard_ND96isr_H100_v5": {"on-demand": 98.32, "spot": 39.5}},
    ),
    File(
        "lambda_api.json",
        (WHOSE,),
        ("--provider", "Lambda Labs"),
        prices={"lambda/gpu_8x_h100_sxm5": {"on-demand": 23.92}, "lambda/gpu_1x_a100": {"on-demand": 1.99}},
        gpus={"lambda/gpu_8x_h100_sxm5": (H100, 8), "lambda/gpu_1x_a100": ("nvidia-a100-sxm4-40gb", 1)},
    ),
    File(
        "runpod_gputypes.json",
        ("columns secureprice and communityprice could both be the on-demand price. Take one out, or name its class",),
        ("--provider", "our-pods"),
        (("communityPrice", "community"),),
        prices={"our-pods/H100 SXM": {"on-demand": 2.69}, "our-pods/L40S": {"on-demand": 0.86}},
    ),
    File(
        "gpuprices.json",
        prices={"replicate/4x Nvidia A100 (40GB)": {"on-demand": 16.56}, "ori.co/H100 SXM": {"on-demand": 2.75}},
        gpus={"replicate/4x Nvidia A100 (40GB)": ("nvidia-a100-sxm4-40gb", 4), "ori.co/H100 SXM": (H100, 1)},
        left="5 lines, 1 without a price",
    ),
    File(
        "gcp_sku.csv",
        ("A list of your own has a column of instances or GPUs and one of prices, such as gpu and price_per_hour.",),
        ("--provider", "gcp"),
        (
            ("SKU description", "Instance type"),
            ("List price ($)", "List price per hour ($)"),
            ("Nvidia H100 80GB Plus GPU attached to A3 Instance running in Americas", "a3-highgpu-8g"),
            ("hour,1,9.796", "hour,1,88.49"),
        ),
        prices={"gcp/a3-highgpu-8g": {"on-demand": 88.49}},
        left="1 line: of a type that is in no catalog: add columns gpu and gpu_count",
    ),
    File(
        "coreweave_page.csv",
        (WHOSE,),
        ("--provider", "our-weave"),
        prices={"our-weave/H100 SXM": {"on-demand": 4.76}, "our-weave/H100 PCIe": {"on-demand": 4.25}},
    ),
    File("gpu_summary.md.csv", prices={"vultr-metal/H200 SXM": {"on-demand": 1.99}}),
    File(
        "haendler.csv",
        (rate("EUR", "2 lines"),),
        ("--usd-per", "EUR=1.16"),
        prices={"mueller-rechenzentrum-gmbh/GPU-Server XL": {"on-demand": 18.444}},
        gpus={"mueller-rechenzentrum-gmbh/GPU-Server S": (L40S, 1)},
    ),
    File(
        "ohne_waehrung.csv",
        (WHOSE, "no column says the currency. Add a column currency, such as EUR or USD."),
        ("--provider", "Haus", "--usd-per", "eur=1.16"),
        (
            ("Preis pro Monat\r\n", "Preis pro Monat;Währung\r\n"),
            ('"11.607,00"', '"11.607,00";EUR'),
            ('"795,70"', "795,70;€"),
        ),
        prices={"haus/GEX-8": {"on-demand": 18.444}, "haus/GEX-1": {"on-demand": 1.2644}},
        gpus={"haus/GEX-8": (H100, 8)},
    ),
    File(
        "excel_unicode.txt",
        (rate("GBP", "1 line"),),
        ("--usd-per", "GBP=1.3"),
        prices={"british-racks-ltd/BR-H200": {"on-demand": 22.1}},
        left="2 lines, 1 without a price",
    ),
    File(
        "suisse.csv",
        (rate("CHF", "2 lines"),),
        ("--usd-per", "CHF=1.25"),
        prices={"alpenrechner-ag/A-8": {"on-demand": 18.75}, "alpenrechner-ag/A-1": {"on-demand": 0.625}},
    ),
    File(
        "tarifs.csv",
        (rate("EUR", "2 lines"),),
        ("--usd-per", "EUR=1.16", "--accept-large-changes"),
        prices={"nuage-sa/n-h100-8": {"on-demand": 19.488}, "nuage-sa/n-l40s-4": {"on-demand": 1432.0896}},
    ),
    File(
        "mixed_currencies.csv",
        (rate("NOK", "1 line"),),
        ("--usd-per", "NOK=0.1"),
        prices={"nordic/nd-8": {"on-demand": 19.05}, "nordic/nd-8-us": {"on-demand": 17.9}},
    ),
    File("data_centre.csv", prices={"own/dgx-h100": {"on-demand": 14.4}}, gpus={"own/hgx-l40s": (L40S, 8)}),
    File(
        "unknown_types.csv",
        ("no line can be used: 2 lines of a type that is in no catalog: add columns gpu and gpu_count (me",),
        edit=(
            ("price per hour", "gpu,gpu_count,price per hour"),
            ("eu-1,16", "eu-1,H100 SXM,8,16"),
            ("eu-1,3", "eu-1,L40S,4,3"),
        ),
        prices={"mycloud/metal.h100x8": {"on-demand": 16}},
        gpus={"mycloud/metal.l40sx4": (L40S, 4)},
    ),
    File(
        "no_count.csv",
        ("no line can be used: 1 line of a type that is in no catalog: add a column gpu_count (metal.big).",),
        edit=(("gpu,", "gpu,gpu_count,"), ("H100 SXM,", "H100 SXM,8,")),
        prices={"mycloud/metal.big": {"on-demand": 16}},
    ),
    File(
        "thousands.csv",
        ("2: price per month (usd) is '11,680'. It must be clear about its thousands: write 11.6800 or 11680.00.",),
        edit=(("11,680", "11680.00"),),
        prices={"mycloud/metal.h100x8": {"on-demand": 16}},
    ),
    File(
        "broken_cell.csv",
        ("3: gpu count is 'four'. It must be a whole number from 1.",),
        edit=(("four", "4"),),
        prices={"mycloud/metal.h100x8": {"on-demand": 16}, "mycloud/metal.l40sx4": {"on-demand": 3.2}},
    ),
    File(
        "formulas.csv",
        ("2: instance type is '=HYPERLINK(\"http://x\")'. It must be a name of letters, digits and",),
        edit=(('"=HYPERLINK(""http://x"")"', "metal.h100x8"),),
        prices={"mycloud/metal.h100x8": {"on-demand": 16}},
    ),
]


def priced(folder: str | Path, instance: str) -> dict[str, float]:
    return {price.purchase: price.usd_per_hour for price in Catalog(folder).instance(instance).prices}


def decoded(raw: bytes) -> tuple[str, str]:
    encoding = "utf-16" if raw.startswith(b"\xff\xfe") else "utf-8-sig" if raw.startswith(b"\xef\xbb\xbf") else "utf-8"
    try:
        return raw.decode(encoding), encoding
    except UnicodeDecodeError:
        return raw.decode("cp1252"), "cp1252"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_of_other_hands(run: Run, workdir: Path, case: File) -> None:
    raw = (FILES / case.name).read_bytes()
    (workdir / case.name).write_bytes(raw)
    asked = ("catalog", "prices", case.name, *DAY, "--to", "mine")
    if case.told:
        refused = run(*asked)
        assert refused.exit_code == 1 and refused.stdout == "" and not (workdir / "mine").exists()
        lines = refused.stderr.splitlines()
        lines = lines if len(case.told) > 1 else lines[:1] if "problems." in refused.stderr else lines
        assert len(lines) == len(case.told), lines
        assert all(line.startswith(case.name) and told in line for line, told in zip(lines, case.told, strict=True))
    if case.edit:
        text, encoding = decoded(raw)
        for old, new in case.edit:
            assert old in text
            text = text.replace(old, new)
        (workdir / case.name).write_bytes(text.encode(encoding))
    result = run(*asked, *case.options)
    assert result.exit_code == 0, result.output
    assert " ".join(case.left.split()) in " ".join(result.stdout.split())
    for instance, prices in case.prices.items():
        got = priced("mine", instance)
        assert {purchase: got[purchase] for purchase in prices} == pytest.approx(prices), instance
    for instance, gpu in case.gpus.items():
        row = Catalog("mine").instance(instance)
        assert (row.gpu, row.gpu_count) == gpu
        assert row.source.startswith("own price list ") and row.checked_on == (row.prices[0].as_of or "")
    if not IN_LONG and CASES.index(case) % 4:  # in the gate what is written is looked at of every fourth
        return
    checked = run("check", "mine")
    assert checked.exit_code == 0, checked.output
    again = run(*asked, *case.options)  # the same list once more changes nothing
    assert again.exit_code == 0 and again.stdout.endswith("Nothing to write.\n"), again.stdout


def test_the_rate_stands_in_the_source(run: Run, workdir: Path) -> None:
    (workdir / "a.csv").write_bytes((FILES / "haendler.csv").read_bytes())
    run("catalog", "prices", "a.csv", *DAY, "--to", "mine", "--usd-per", "EUR=1.16")
    row = Catalog("mine").instance("mueller-rechenzentrum-gmbh/GPU-Server XL")
    assert row.source == "own price list a.csv at 1.16 USD per EUR (on-demand)" and row.region == "Frankfurt, Germany"
    for text in ("EUR", "EUR=", "EUR=0", "EUR=1,16", "XXX=1", "USD=1", "EUR=nan", "EUR=-1"):
        result = run("catalog", "prices", "a.csv", *DAY, "--usd-per", text)
        assert result.exit_code == 1 and result.stderr.startswith("usd-per is '") and "EUR=1.1." in result.stderr


@pytest.mark.parametrize("name", ["availability", "engine_memory", "fp8_checkpoints", "hosted_fixes"])
def test_a_table_that_is_no_price_list(run: Run, workdir: Path, name: str) -> None:
    result = run("catalog", "prices", FILES / f"turn3_{name}.csv", *DAY, "--to", "mine", "--provider", "x")
    assert result.exit_code == 1 and result.stderr.count("\n") == 1 and not (workdir / "mine").exists()
    assert "which is no price list" in result.stderr


def test_damaged_files_are_refused_in_plain_lines(tmp_path: Path) -> None:
    """Bytes lost, doubled or put in: a list is read, or refused in lines that a terminal can print."""
    catalog, draw, n_read = Catalog(), random.Random(20261129), 0
    stated = Stated("own", None, dict.fromkeys(("EUR", "CHF", "GBP", "NOK"), 1.2))
    places, n = sorted(FILES.iterdir()), amount(60, 3000)
    for _ in range(n):
        place = draw.choice(places)
        raw = bytearray(place.read_bytes())
        for _ in range(draw.randint(1, 4)):
            position = draw.randrange(len(raw))
            doubled = raw[draw.randrange(len(raw)) :][:30]
            raw[position : position + draw.choice((0, 0, 9))] = draw.choice((draw.choice(PIECES), doubled, b""))
        (tmp_path / place.name).write_bytes(raw)
        try:
            lists = read_lists([str(tmp_path / place.name)], stated)
            refresh_ = refresh(catalog, lists, "2026-11-20", skip_broken=draw.random() < 0.5)
            files(catalog, tmp_path / "o", [*refresh_.changed, *refresh_.brought])
            n_read += 1
        except CatalogError as error:
            assert all(problem.isprintable() for problem in error.problems)
    assert 0 < n_read < n


# Workbooks


HEAD = ["Machine", "GPU", "GPUs", "Region", "Price per month", "as of"]
ROWS = [
    ["DGX H100", "H100 SXM 80GB", 8, "Frankfurt, Germany", 11_000, datetime.date(2026, 11, 1)],
    ["HGX L40S", "L40S", 8, "Frankfurt, Germany", 4321.5, datetime.date(2026, 11, 1)],
]


def write_book(path: Path, *sheets: str, number_format: str = "General", price: object = None) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Notes"  # type: ignore[union-attr]
    book["Notes"].append(["Our prices", "2026"])
    for name in sheets:
        sheet = book.create_sheet(name)
        for row in (["Price list"], [], HEAD, *ROWS):
            sheet.append(row)
        for line in (4, 5):
            sheet.cell(line, 5).number_format = number_format
        if price is not None:
            sheet.cell(5, 5).value = price  # type: ignore[assignment]
    book.save(path)


@pytest.mark.parametrize(
    ("number_format", "code"),
    [
        ('#,##0.00 [$€-407];[Red]-#,##0.00 [$€-407]', "EUR"), ('#,##0.00 "€"', "EUR"), ("[$CHF] #,##0", "CHF"),
        ("[$£-809]#,##0.00", "GBP"), ('"$"#,##0.00', ""), ("[$-409]#,##0.00", ""), ("General", ""),
    ],
)  # fmt: skip
def test_a_workbook(run: Run, workdir: Path, number_format: str, code: str) -> None:
    """Its title, blank rows and other sheets are passed over; what a number is in stands in its format."""
    write_book(workdir / "a.xlsx", "Prices", number_format=number_format)
    asked = ("catalog", "prices", "a.xlsx", "--provider", "Haus", "--to", "mine")
    if code:
        refused = run(*asked)
        assert refused.stderr == f"a.xlsx[Prices]: {rate(code, '2 lines')}\n" and not (workdir / "mine").exists()
    usd = 1.25 if code else 1
    result = run(*asked, *(("--usd-per", f"{code}=1.25") if code else ()))
    assert result.exit_code == 0, result.output
    row = Catalog("mine").instance("haus/DGX H100")
    assert (row.gpu, row.gpu_count, row.region) == (H100, 8, "Frankfurt, Germany")
    assert row.prices[0].usd_per_hour == pytest.approx(11_000 / 730 * usd, abs=1e-6)
    assert row.prices[0].as_of == "2026-11-01"
    assert priced("mine", "haus/HGX L40S") == pytest.approx({"on-demand": 4321.5 / 730 * usd}, abs=1e-6)


def test_a_workbook_with_prices_on_two_sheets(run: Run, workdir: Path) -> None:
    write_book(workdir / "a.xlsx", "EU", "US")
    asked = ("catalog", "prices", "a.xlsx", "--provider", "haus", "--to", "mine")
    assert run(*asked).stderr.startswith("a.xlsx: has prices on 2 sheets: EU, US. ")
    assert run(*asked, "--sheet", "Asia").stderr.startswith("a.xlsx: has no sheet 'Asia'. ")
    assert run(*asked, "--sheet", "eu").exit_code == 0 and priced("mine", "haus/DGX H100")
    (workdir / "a.csv").write_text("gpu,price\nH100,2\n")
    assert "a.csv: has no sheets." in run("catalog", "prices", "a.csv", "--sheet", "EU").stderr


def test_formulas_of_a_workbook_are_their_stored_values(run: Run, workdir: Path) -> None:
    write_book(workdir / "a.xlsx", "Prices", price="=4000*1.1")
    result = run("catalog", "prices", "a.xlsx", "--provider", "haus", "--to", "mine")
    assert result.exit_code == 1 and not (workdir / "mine").exists()
    mend = "cell E5 is a formula without a stored value. Open it in Excel, save it and try again."
    assert result.stderr == f"a.xlsx[Prices]:5: {mend}\n"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-2", "@SUM(A1)", "<b>2</b>", "javascript:2", "2; DROP"])
def test_a_cell_never_becomes_a_formula_or_markup(run: Run, workdir: Path, text: str) -> None:
    line = ["mycloud", "metal", "H100 SXM", "8", "16", "eu"]
    for column_number, column in enumerate(
        ("provider", "instance type", "gpu", "gpu count", "price per hour", "region")
    ):
        cells = [*line[:column_number], text, *line[column_number + 1 :]]
        (workdir / "a.csv").write_text(
            f"provider,instance type,gpu,gpu count,price per hour,region\n{','.join(cells)}\n"
        )
        result = run("catalog", "prices", "a.csv", *DAY, "--to", "mine")
        assert result.exit_code == 1 and not (workdir / "mine").exists(), (column, result.output)
        assert result.stderr.count("\n") == 1


def test_days_that_people_write(run: Run, workdir: Path) -> None:
    for text, day in (
        ("2026-11-01", "2026-11-01"),
        ("1.11.2026", "2026-11-01"),
        ("2026-11-01T10:00:00Z", "2026-11-01"),
    ):
        (workdir / "a.csv").write_text(f"provider,gpu,price per hour,date\nmycloud,H100 SXM,2.5,{text}\n")
        assert run("catalog", "prices", "a.csv", "--to", "mine").exit_code == 0
        assert Catalog("mine").instance("mycloud/H100 SXM").checked_on == day
    for text in ("11/01/2026", "November", "31.2.2026"):
        (workdir / "a.csv").write_text(f"provider,gpu,price per hour,date\nmycloud,H100 SXM,2.5,{text}\n")
        told = f"a.csv:2: date is '{text}'. It must be a day such as 2026-05-24.\n"
        assert run("catalog", "prices", "a.csv", "--to", "mine").stderr == told


def test_one_type_in_several_regions(run: Run, workdir: Path) -> None:
    """One row where it costs the same, one more where it does not; --region finds each."""
    lines = "".join(
        f"mycloud,m8,H100 SXM,8,{region},{usd}\n" for region, usd in (("oslo", 16), ("paris", 16), ("us-x", 15))
    )
    (workdir / "a.csv").write_text(f"provider,instance type,gpu,gpu count,region,price per hour\n{lines}")
    for _ in range(2):
        assert run("catalog", "prices", "a.csv", *DAY, "--to", "mine").exit_code == 0
    own = {
        row.id: (row.region, row.prices[0].usd_per_hour) for row in Catalog("mine").instances() if "mycloud" in row.id
    }
    assert own == {"mycloud/m8": ("oslo, paris", 16), "mycloud/m8 (us-x)": ("us-x", 15)}
    regions = Catalog("mine").regions
    for asked, instance in (("paris", "mycloud/m8"), ("us", "mycloud/m8 (us-x)")):
        assert [row.id for row in regions.rows_in(asked) if row.provider == "mycloud"] == [instance]


def test_what_takes_no_part_by_default_is_said_with_its_option(run: Run, workdir: Path) -> None:
    (workdir / "a.csv").write_text(
        "provider,gpu,gpu count,price per hour\nown,RTX 4090,8,4\nown,MI300X,8,16\nown,L4,1,0.6\n"
    )
    text = " ".join(run("catalog", "prices", "a.csv", *DAY).stdout.split())
    assert "--gpus rtx-4090: own/8x RTX 4090" in text
    assert "--vendors amd: own/8x MI300X" in text and text.count("Asked only") == 2


def test_an_own_row_is_chosen_and_the_answer_says_whose_list(run: Run, workdir: Path) -> None:
    (workdir / "ours.csv").write_bytes((FILES / "data_centre.csv").read_bytes())
    assert run("catalog", "prices", "ours.csv", "--to", "mine").exit_code == 0
    asked = ("recommend", "--model", "70b", "--users", "2000", "--as-of", "2026-11-20", "--catalogs", "mine")
    text = " ".join(run(*asked).stdout.split())
    assert "1x own/dgx-h100, $10,512" in text
    assert "Frankfurt, Germany, 2026-11-01" in text and "ours.csv" in text
    assert "own/" not in run(*asked, "--providers", "aws,azure,gcp").stdout
    assert "own/" not in run(*asked, "--region", "us").stdout
    page = run("build", "--models", "70b", "--workloads", "rag", *asked[-4:], "--region", "eu", "--format", "json")
    assert page.exit_code == 0, page.output
    record = (workdir / "output" / "sizing-sheet.json").read_text("utf-8")
    assert "nvidia-h100-sxm5-80gb" in record and "price list ours.csv" in record


def test_a_city_alone_is_said_to_be_in_no_area(run: Run, workdir: Path) -> None:
    lines = 'own,H100 SXM,8,16,Frankfurt\nown,L40S,4,4,"Frankfurt, Germany"\n'
    (workdir / "a.csv").write_text(f"provider,gpu,gpu count,price per hour,region\n{lines}")
    text = " ".join(run("catalog", "prices", "a.csv", *DAY).stdout.split())
    assert "as in Frankfurt, Germany." in text


COLUMNS = "provider,instance type,gpu,gpu count,region,price"
AMOUNTS = {  # a list's columns and line, its one price, of on demand but where stated
    "a unit for one GPU": (f"{COLUMNS},unit", "own,h4,H100 SXM,4,fra,5,per GPU hour", 20.0),
    "ten hours": (f"{COLUMNS},unit of measure", "own,h4,H100 SXM,4,fra,160,10 Hours", 16.0),
    "730 hours": (f"{COLUMNS} per 730 hours", "own,h4,H100 SXM,4,fra,11680", 16.0),
    "cards": (f"{COLUMNS} per card per hour", "own,h4,H100 SXM,4,fra,4", 16.0),
    "a GPU server": (COLUMNS.replace("price", "GPU server price per hour"), "own,h4,H100 SXM,4,fra,16", 16.0),
    "spot as x": (f"{COLUMNS},spot", "own,h4,H100 SXM,4,fra,9,x", {"spot": 9.0}),
    "a year's term": (f"{COLUMNS},term", "own,h4,H100 SXM,4,fra,12,1 year", {"reserved-1yr": 12.0}),
    "a year in the head": (
        COLUMNS.replace("price", "price 1y per hour"),
        "own,h4,H100 SXM,4,fra,12",
        {"reserved-1yr": 12.0},
    ),
}


@pytest.mark.parametrize("case", AMOUNTS)
def test_of_what_and_for_how_long_a_price_is(case: str, run: Run, workdir: Path) -> None:
    head, line, expected = AMOUNTS[case]
    (workdir / "a.csv").write_text(f"{head}\n{line}\n")
    told = run("catalog", "prices", "a.csv", *DAY, "--to", "mine")
    assert told.exit_code == 0, told.output
    prices = {price.purchase: price.usd_per_hour for price in Catalog("mine").instance("own/h4").prices}
    assert prices == (expected if isinstance(expected, dict) else {"on-demand": expected})


def test_a_price_by_the_gpu_of_a_type_that_the_catalogs_know(run: Run, workdir: Path) -> None:
    """Azure's NC80 has two; a line that says another number of GPUs is not believed."""
    list_ = "provider,instance type,region,price per GPU hour\nazure,Standard_NC80adis_H100_v5,eastus,6.5\n"
    (workdir / "a.csv").write_text(list_)
    assert run("catalog", "prices", "a.csv", *DAY, "--to", "mine").exit_code == 0
    assert Catalog("mine").instance("azure/Standard_NC80adis_H100_v5").prices[0].usd_per_hour == 13.0
    (workdir / "b.csv").write_text(f"{COLUMNS} per hour\nAWS,p5.48xlarge,H100 SXM,4,us-east-1,28\n")
    told = run("catalog", "prices", "b.csv", *DAY, "--to", "other")
    assert told.exit_code == 1 and "aws/p5.48xlarge has 8" in " ".join(told.output.split())


@pytest.mark.parametrize(
    "column", ["price NZ$/hr", "price ¥ per hour", "price kr per hour", "price EUR or USD per hour"]
)
def test_a_currency_in_the_head_is_never_taken_for_dollars(column: str, run: Run, workdir: Path) -> None:
    (workdir / "a.csv").write_text(f"{COLUMNS.replace('price', column)}\nown,h4,H100 SXM,4,fra,20\n")
    told = run("catalog", "prices", "a.csv", *DAY, "--to", "mine")
    assert told.exit_code != 0 and not (workdir / "mine").exists(), told.output


def test_an_empty_currency_is_not_dollars(run: Run, workdir: Path) -> None:
    lines = "own,h4,H100 SXM,4,fra,12,EUR\nown,l4,L40S,4,fra,12,\n"
    (workdir / "a.csv").write_text(f"{COLUMNS} per hour,currency\n{lines}")
    told = run("catalog", "prices", "a.csv", *DAY, "--usd-per", "EUR=1.1", "--to", "mine")
    assert told.exit_code == 1 and "currency is empty" in " ".join(told.output.split()).replace("'", "")


# What stands around a table, beside its prices, or out of sight ------------------------------------------------------

OWN_HEAD, OWN_LINE = "provider;instance type;gpu;gpu count;region;price", "acme;h4;H100 SXM;4;fra;1000"
RATED = Stated(usd_per={"EUR": 1.1})
TITLES = {  # of a machine with 4 GPUs at 1000: dollars an hour
    "Offer 2026": 1000.0,
    "valid 1 year": 1000.0,
    "Traffic 1 TB/month included, 24/7 support, and more for every customer": 1000.0,
    "Try our GPU prices": 1000.0,
    "per month, excl. VAT": 1000 / 730,
    "All prices in EUR, per GPU and month, excl. VAT": 1000 * 1.1 * 4 / 730,
    "USD per GPU-hour": 4000.0,
    "EUR/GPU/h": 4400.0,
    "Preise pro Stunde und GPU in Euro": 4400.0,
    "Monthly prices, net": 1000 / 730,
}


def own_prices(text: str, place: Path) -> tuple[dict[str, float], str]:
    """The prices of a list of one line, and what is said of it."""
    place.write_text(text)
    read = read_prices(str(place), RATED)
    assert not read.faults, read.faults
    return dict(read.offers[0].prices), " ".join(read.notes)


@pytest.mark.parametrize("title", TITLES)
def test_a_title_says_what_prices_are_for(title: str, tmp_path: Path) -> None:
    for text in (f"{title};;;;;\n;;;;;\n{OWN_HEAD}\n{OWN_LINE}\n", f"{OWN_HEAD}\n{OWN_LINE}\n{title};;;;;\n"):
        place = tmp_path / "a.csv"
        prices, notes = own_prices(text, place)
        assert prices == {"on-demand": pytest.approx(TITLES[title], abs=1e-5)}  # each GPU's price is rounded to 1e-6
        assert (title in notes) == (TITLES[title] != 1000)


@pytest.mark.parametrize(
    ("title", "told"),
    [
        ("Prices incl. VAT", "Give prices without tax"),
        ("Preise inkl. 19 % MwSt.", "Give prices without tax"),
        ("Prices in thousands of USD", "Give whole dollars"),
        ("All prices in cents", "Give whole dollars"),
        ("Prices in USD and EUR", "several currencies"),
        ("per month or per year", "several times"),
        ("Spot prices", "Name the column by its class"),
        ("Reserved prices, 1 year commitment", "Name the column by its class"),
    ],
)
def test_a_title_that_the_columns_do_not_carry_is_refused(title: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as refused:
        own_prices(f"{title};;;;;\n{OWN_HEAD}\n{OWN_LINE}\n", tmp_path / "a.csv")
    [problem] = refused.value.problems
    assert told in problem and problem.startswith(f"{tmp_path / 'a.csv'}:1: ")


@pytest.mark.parametrize("title", ["per month", "prices in EUR"])
def test_a_title_that_contradicts_a_column_is_refused(title: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"another (time|currency)"):
        own_prices(f"{title};;;;;\n{OWN_HEAD} per hour in USD\n{OWN_LINE}\n", tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("columns", "cells", "usd"),
    [
        ("price per hour;list price", "12;12", 12.0),
        ("price per hour;list price", "12;16", None),
        ("price;promo price per hour", "16;9", None),
        ("price per hour;price per month", "12;8760", 12.0),
        ("price per hour;price per month", "12;12", None),
        ("price per hour;price per month", ";8760", 12.0),
        ("price per hour;price per GPU hour", "12;3", 12.0),
        ("price per hour;price per GPU hour", "12;4", None),
        ("price USD per hour;price EUR per hour", "11;10", 11.0),
        ("price USD per hour;price EUR per hour", "12;10", None),
    ],
)
def test_two_columns_of_one_price_agree_or_are_refused(
    columns: str, cells: str, usd: float | None, tmp_path: Path
) -> None:
    place = tmp_path / "a.csv"
    place.write_text(f"{OWN_HEAD.removesuffix('price')}{columns}\n{OWN_LINE.removesuffix('1000')}{cells}\n")
    read = read_prices(str(place), RATED)
    assert any(f", not of {word.lower()}." in " ".join(read.notes) for word in columns.split(";"))
    if usd is None:
        [fault] = read.faults
        assert "differ: " in fault.problem and "Take one of the columns out." in fault.problem and not read.offers
    else:
        assert read.offers[0].prices == {"on-demand": usd} and not read.faults


def test_hidden_sheets_are_not_read_and_said(tmp_path: Path) -> None:
    place = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (OWN_HEAD.split(";"), [*OWN_LINE.split(";")[:5], 12]):
        book.active.append(row)
    for name, state in (("old", "hidden"), ("older", "veryHidden")):
        sheet = book.create_sheet(name)
        sheet.sheet_state = state
        for row in (OWN_HEAD.split(";"), [*OWN_LINE.split(";")[:5], 16]):
            sheet.append(row)
    book.save(place)
    read = read_prices(str(place))
    assert read.offers[0].prices == {"on-demand": 12} and "hidden: old, older." in " ".join(read.notes)
    assert read_prices(str(place), Stated(sheet="old")).offers[0].prices == {"on-demand": 16}
    book.active.delete_rows(1, 2)
    book.save(place)
    with pytest.raises(CatalogError, match=r"hidden: old, older\. --sheet NAME"):
        read_prices(str(place))


@pytest.mark.parametrize("usd", [12.345, 2.5, 1.234, 12, 1234.5])
def test_a_number_of_json_is_never_thousands(usd: float, tmp_path: Path) -> None:
    names = ["provider", "instance type", "gpu", "gpu count", "price per hour"]
    place = tmp_path / "a.json"
    place.write_text(json.dumps([dict(zip(names, ["acme", "h4", "H100 SXM", 4, usd], strict=True))]))
    assert read_prices(str(place)).offers[0].prices == {"on-demand": usd}


# Files that would take all memory ------------------------------------------------------------------------------------


def stuffed(member: str, before: bytes, stuffing: bytes) -> bytes:
    """A workbook with more in one of its members."""
    book, source, out = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    assert book.active is not None
    book.active.title = "Prices"
    book.create_sheet("Other")
    for row in (OWN_HEAD.split(";"), OWN_LINE.split(";")):
        book.active.append(row)
    book.save(source)
    with zipfile.ZipFile(source) as package, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as stuffed_package:
        for entry in package.infolist():
            data = package.read(entry)
            is_member = entry.filename == member
            stuffed_package.writestr(entry.filename, data.replace(before, stuffing + before) if is_member else data)
        if member not in package.namelist():
            stuffed_package.writestr(member, stuffing + before)
    return out.getvalue()


CELL = b"<c t='inlineStr'><is><t>a</t></is></c>"
TOO_MUCH: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a row": (
        "xlsx",
        lambda: stuffed("xl/worksheets/sheet1.xml", b"</sheetData>", b"<row r='9'>" + CELL * 2_000_000 + b"</row>"),
        r"\[Prices\]: has a row of more than 200 cells",
    ),
    "rows": (
        "xlsx",
        lambda: stuffed("xl/worksheets/sheet1.xml", b"</sheetData>", (b"<row>" + CELL * 200 + b"</row>") * 2_600),
        r"\[Prices\]: has more than 500,000 cells",
    ),
    "a row with a prefix": (
        "xlsx",
        lambda: stuffed("xl/worksheets/sheet1.xml", b"</sheetData>", b"<x:row>" + b"<x:c/>" * 300 + b"</x:row>"),
        r"\[Prices\]: has a row of more than 200 cells",
    ),
    "shared texts": (
        "xlsx",
        lambda: stuffed("xl/sharedStrings.xml", b"</sst>", b"<si><t>a</t></si>" * 600_000),
        "has more than 500,000 texts",
    ),
    "columns": ("csv", lambda: b"provider,gpu,price\n" + b"a," * 5_000_000, ":2: has 5,000,001 columns"),
    "fields": (
        "json",
        lambda: json.dumps([{f"a{i}": 1 for i in range(300_000)}] * 2).encode(),
        "has records with more than 200 fields",
    ),
    "fields of each record": (
        "json",
        lambda: json.dumps([{f"a{i}": 1} for i in range(40_000)]).encode(),
        "has records with more than 200 fields",
    ),
}


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_a_file_that_would_take_all_memory_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    ending, write, told = TOO_MUCH[kind]
    place = tmp_path / f"a.{ending}"
    place.write_bytes(write())
    began = time.process_time()
    with pytest.raises(CatalogError, match=f"a.{ending}.*{told}"):
        read_prices(str(place))
    assert time.process_time() - began < 10  # about 1 here; without the bound a minute


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("1e19", "gpu_count is '1e19'. It must be a number below 1,000,000,000."),
        ("1e400", "gpu_count is '1e400'. It must be a plain number"),
        ("١٢", "gpu_count is '١٢'. It must be a plain number"),
        ("1.5", "with 1.5 GPUs, which is no whole number from 1"),
    ],
)
def test_a_number_of_gpus_that_no_machine_has(run: Run, workdir: Path, typed: str, words: str) -> None:
    (workdir / "prices.csv").write_text(
        f"instance,gpu,gpu_count,price per hour\nx1,H100 80GB SXM,{typed},20\n", "utf-8"
    )
    result = run("catalog", "prices", "prices.csv", *DAY, "--provider", "mine")
    assert result.exit_code == 1 and words in result.stderr

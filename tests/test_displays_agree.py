"""The text that the PDF and the CSV print is the text that the workbook shows."""

import csv
import datetime
import io
from typing import Any

import pytest
import xlsxwriter
from recalculation import CSV_AS_SHOWN, convert_all, needs_libreoffice

from sheetgen import units
from sheetgen.units import DATE, PERCENT, PRICE_DATE, TEXT, Display

DISPLAYS = {name: d for name, d in vars(units).items() if isinstance(d, Display)}
NUMBERS = {name: d for name, d in DISPLAYS.items() if d not in (TEXT, DATE, PRICE_DATE)}

# Excel text that Python reads as the same number: a constant in the file would keep 16 digits, of 17.
AWKWARD = [
    *("12.25", "1.005", "0.5", "1.5", "2.5", "2.675", "8.345", "1.115", "0.045", "0.005", "0.995", "999.5"),
    *("-12.25", "-0.5", "-2.5", "-1.005", "-999.995", "999999.995", "0.29*100", "1.15*100", "4.35*100"),
    *("0", "0*-1", "-0.001", "-0.004", "-0.005", "-0.4", "-0.0000001", "0.0000001", "0.1+0.2", "1.1*1.1"),
    *("1/3", "2/3", "10/3", "22/7", "1000000/7", "-1/3", "5/9", "1/1024", "0.51953125", "0.0001", "0.00005"),
    *(
        "5/2-1/2251799813685248",
        "49/4-1/562949953421312",
        "1/2-1/9007199254740992",
        "(1.1-1)*5",
        "(0.3-0.2)*25",
    ),
    *(
        "1000000000000000",
        "100000000000000+1/2",
        "123456789012345+3/5",
        "987654321098765",
        "123456789.12345678",
    ),
    *(
        "85520809984",
        "81559*1048576",
        "79.19",
        "4.29",
        "98.32*730",
        "98.32*730/12",
        "1/1000000000",
        "0.9",
        "0.333",
    ),
]
# Half a percent that has no exact binary form: LibreOffice 7.4 multiplies by 100 in binary (28.49...96).
# Half up on the number as typed is what we promise; a spreadsheet reader can see one percent less.
PERCENT_TIES = ["0.285", "0.575", "0.145", "1.005", "-1.005", "57/200", "201/200"]


def number(text: str) -> float:
    return float(eval(text))  # our own constants, in the notation that both languages share


def apart_in_percent(text: str) -> bool:
    return text in PERCENT_TIES or abs(number(text)) > 1e12  # 15 digits of a percent above 1e15: not ours


def as_shown(display: Display, value: float) -> set[str]:
    """LibreOffice 7.4 rounds the number that it has, 26.8 its 15 digits: they differ by the last bit of a half."""
    return {display.text(value), display.text(float(f"{value:.15g}"))}


Shown = dict[str, list[list[str]]]
DAY = datetime.date(2026, 2, 28)
# By name the cells of a sheet: (value or =formula, display).
SHEETS: dict[str, list[list[tuple[Any, Display]]]] = {
    "awkward": [[(f"={x}", d) for d in NUMBERS.values()] for x in AWKWARD],
    "texts": [[*(("-", d) for d in DISPLAYS.values()), ("0.50 as text", TEXT), (DAY, DATE)]],
    "ties": [[(f"={x}", PERCENT)] for x in PERCENT_TIES],
    "half": [[("=12.25", units.ONE_DECIMAL)]],
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The text that LibreOffice shows for each sheet."""
    folder = tmp_path_factory.mktemp("shown")
    for name, rows in SHEETS.items():
        with xlsxwriter.Workbook(folder / f"{name}.xlsx") as book:
            sheet = book.add_worksheet()
            formats = {d: book.add_format({"num_format": d.excel}) for d in DISPLAYS.values()}
            for i, row in enumerate(rows):
                for j, (value, display) in enumerate(row):
                    sheet.write(i, j, value, formats[display])
    files = convert_all([folder / f"{name}.xlsx" for name in SHEETS], folder, CSV_AS_SHOWN)
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {name: list(csv.reader(io.StringIO(text))) for name, text in zip(SHEETS, texts, strict=True)}


@needs_libreoffice
def test_numbers_are_shown_as_we_print_them(shown: Shown) -> None:
    rows = shown["awkward"]
    wrong = [
        (name, text, f"LibreOffice {cell}", f"Display {display.text(number(text))}")
        for text, row in zip(AWKWARD, rows, strict=True)
        for (name, display), cell in zip(NUMBERS.items(), row, strict=True)
        if cell not in as_shown(display, number(text)) and not (display.percent and apart_in_percent(text))
    ]
    assert not wrong
    assert len(rows) * len(NUMBERS) == sum(len(row) for row in rows)


@needs_libreoffice
def test_texts_and_dates_are_shown_as_we_print_them(shown: Shown) -> None:
    assert shown["texts"] == [[display.text(value) for value, display in SHEETS["texts"][0]]]


@needs_libreoffice
def test_the_one_known_difference_is_half_a_percent(shown: Shown) -> None:
    ours = [PERCENT.text(number(x)) for x in PERCENT_TIES]
    assert ours == ["29%", "58%", "15%", "101%", "-101%", "29%", "101%"]
    apart = [int(a[:-1]) - int(row[0][:-1]) for a, row in zip(ours, shown["ties"], strict=True)]
    assert all(abs(x) <= 1 for x in apart)  # a later LibreOffice may well agree


@needs_libreoffice
def test_the_comparison_can_fail(shown: Shown) -> None:
    """Python's own format rounds half to even, and on the binary value: the referee sees it."""
    assert shown["half"] == [["12.3"]] != [[f"{12.25:,.1f}"]]


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_nothing_is_a_dash(nothing):
    assert {display.text(nothing) for display in DISPLAYS.values()} == {"–"}


@pytest.mark.parametrize(
    ("display", "value", "text"),
    [
        (units.FACTOR, 2, "2.00"),
        (units.FACTOR, 0.51953125, "0.51953125"),
        (units.PERCENT, 12.25, "1225%"),
        (units.WHOLE, 2**30, "1,073,741,824"),
        (units.PLAIN, 2**30, "1073741824"),
        (units.USD, -1234.5, "-$1,235"),
        (units.WHOLE, -0.4, "0"),
        (units.DATE, datetime.datetime(2026, 2, 28, 23, 59), "2026-02-28"),
    ],
)
def test_by_hand(display, value, text):
    assert display.text(value) == text

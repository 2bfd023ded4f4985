"""The workbook as people see it: six tabs, of which four are printed, with nothing too wide for its column."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from pathlib import Path

import books
import openpyxl
import pdfplumber
import pytest
from amounts import IN_LONG
from cells_of import FEW
from recalculation import convert_all, needs_libreoffice

EIGHT = f"{books.FAMILIES},70b,405b,49b"
TABS_PRINTED = ("Sizing sheet", "Decision", "Inputs", "Money")
READ = 6.2  # points of the first sheet's text on paper
SIZES = {"a4": (595, 842), "letter": (612, 792)}

needs_poppler = pytest.mark.skipif(not shutil.which("pdftotext"), reason="pdftotext is not installed")


def run(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def shown_text(page: pdfplumber.page.Page) -> str:
    """The text that a page shows: LibreOffice draws the hidden columns too, and cuts them off at the last rule."""
    right = max(edge["x1"] for edge in page.edges)
    return str(page.filter(lambda drawn: drawn["object_type"] != "char" or drawn["x0"] < right).extract_text())


def test_no_way_to_pay_less_is_cut_off_on_decision(tmp_path: Path) -> None:
    """The rent and the losses stand beside cells that are filled: they shrink where they are long."""
    book, _ = books.build(tmp_path, "ways", {**books.SMALL, "models": "8b", "instances": FEW})
    sheet = openpyxl.load_workbook(book)["Decision"]
    (top,) = (cell.row for (cell,) in sheet.iter_rows(max_col=1) if cell.value == "Ways to pay less")
    beside = [sheet[f"{column}{row}"] for row in range(top + 1, top + 6) for column in "DG"]
    assert all(cell.value and cell.alignment.shrink_to_fit for cell in beside)


FOUR = "8b,70b,405b,gemma-3-27b"
PRINTED = [  # paper and models of each: LibreOffice starts once for them
    (("letter", FOUR),),
    pytest.param((("a4", "8b"), ("a4", books.DEFAULT), ("a4", EIGHT), ("a4", books.FAMILIES)), marks=pytest.mark.long),
    pytest.param((("letter", "8b"), ("letter", books.DEFAULT), ("letter", EIGHT)), marks=pytest.mark.long),
    pytest.param((("letter", books.FAMILIES),), marks=pytest.mark.long),
]


@pytest.mark.parametrize("sheets", PRINTED)
@needs_poppler
@needs_libreoffice
def test_four_sheets_are_printed_and_nothing_is_too_wide(sheets: tuple[tuple[str, str], ...], tmp_path: Path) -> None:
    paths = []
    for paper, models in sheets:
        options = {"models": models, "as_of": books.AS_OF, "paper": paper}
        if not (IN_LONG and models == books.DEFAULT):
            options["instances"] = books.INSTANCES
        if not IN_LONG:
            options |= {"workloads": "chat,long-doc", "tiers": "32", "instances": FEW}
        paths.append(books.build(tmp_path, f"{paper}-{len(models.split(','))}", options)[0])
    for path, pdf in zip(paths, convert_all(paths, tmp_path, "pdf", timeout=300), strict=True):
        pages = run("pdftotext", "-layout", pdf, "-").split("\f")
        with pdfplumber.open(pdf) as drawn:
            text = "\n".join(shown_text(page) for page in drawn.pages)
        for sign in ("###", "Err:", "#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!"):
            assert sign not in text, f"{path.name} shows {sign}"
        feet = (re.search(r" (\S.+\S) {2,}Page \d+ of \d+", page) for page in pages)
        printed = [foot[1].split("  ")[-1].strip() for foot in feet if foot]
        assert list(dict.fromkeys(printed)) == list(TABS_PRINTED), printed
        n_first, n_models = printed.count("Sizing sheet"), int(path.stem.partition("-")[2])
        # Five models are one page; of more the first page has four, as six could not be read.
        assert n_first == (1 if n_models <= 5 else 2), f"{path.name}: {n_first} pages"
        with pdfplumber.open(pdf) as drawn:
            sizes = [statistics.median(char["size"] for char in page.chars) for page in drawn.pages[:n_first]]
        assert min(sizes) > READ, f"{path.name}: {sizes}"
        assert printed.count("Decision") == 1
        assert "LLM serving sizing sheet" in pages[0]
        assert "Cost by workload and load" in pages[0] and "Sheet's date" in pages[n_first - 1]
        width, height = (float(n) for n in re.findall(r"Page size:\s+([\d.]+) x ([\d.]+)", run("pdfinfo", pdf))[0])
        assert sorted((round(width), round(height))) == sorted(SIZES[path.stem.partition("-")[0]])


@pytest.mark.long
def test_of_many_models_the_first_page_has_four(tmp_path: Path) -> None:
    """The grid breaks above the band of the fifth."""
    options = {**books.SMALL, "models": "8b,70b,405b,49b,gemma-3-27b,gpt-oss-20b", "workloads": "chat", "tiers": "32"}
    book, _ = books.build(tmp_path, "six", options | {"title": "Six models"}, with_decision=False)
    sheet = openpyxl.load_workbook(book)["Sizing sheet"]
    assert sheet["A1"].value == "Six models"
    (_, band) = (cell.row for (cell,) in sheet.iter_rows(max_col=1) if cell.value == "=Models!$A9")
    assert [line.id for line in sheet.row_breaks.brk] == [band - 1]

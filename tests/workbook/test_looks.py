"""The workbook as LibreOffice prints it: the first sheet on one page, nothing too wide for its column."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import books
import pytest
from amounts import IN_LONG
from recalculation import convert_all, needs_libreoffice

EIGHT = f"{books.FAMILIES},70b,405b,49b"
SIZES = {"a4": (595, 842), "letter": (612, 792)}

needs_poppler = pytest.mark.skipif(not shutil.which("pdftotext"), reason="pdftotext is not installed")


def run(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


PRINTED = [
    ("a4", ("8b", books.FAMILIES)), ("letter", (books.DEFAULT, EIGHT)),
    pytest.param("a4", (books.DEFAULT, EIGHT), marks=pytest.mark.long),
    pytest.param("letter", ("8b", books.FAMILIES), marks=pytest.mark.long),
]  # fmt: skip


@pytest.mark.parametrize(("paper", "sheets"), PRINTED)
@needs_poppler
@needs_libreoffice
def test_the_first_sheet_is_one_page_and_nothing_is_too_wide(
    paper: str, sheets: tuple[str, ...], tmp_path: Path
) -> None:
    paths = []
    for models in sheets:
        options = {"models": models, "as_of": books.AS_OF, "paper": paper}
        if not (IN_LONG and models == books.DEFAULT):
            options["instances"] = books.INSTANCES  # fewer pages of Candidates
        paths.append(books.build(tmp_path, f"{paper}-{len(models.split(','))}", options)[0])
    for path, pdf in zip(paths, convert_all(paths, tmp_path, "pdf", timeout=300), strict=True):
        pages = run("pdftotext", "-layout", pdf, "-").split("\f")
        text = "\n".join(pages)
        for sign in ("###", "Err:", "#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!"):
            assert sign not in text, f"{path.name} shows {sign}"
        first = [i for i, page in enumerate(pages) if re.search(r"Page \d+ of \d+", page) and "Sizing sheet  " in page]
        assert first == [0], f"{path.name}: the first sheet is on pages {first}"
        assert "LLM serving sizing sheet" in pages[0] and "Weights and KV cache at the load above" in pages[0]
        assert "Choose any model and hardware in the yellow cells" in pages[1]
        assert "Change any yellow cell; memory, fit" in pages[2]  # so What-if is one page, too
        width, height = (float(n) for n in re.findall(r"Page size:\s+([\d.]+) x ([\d.]+)", run("pdfinfo", pdf))[0])
        assert sorted((round(width), round(height))) == sorted(SIZES[paper])


def test_wide_sheets_are_printed_large_enough_to_read(default_book: Path) -> None:
    with zipfile.ZipFile(default_book) as package:
        sheets = sorted(n for n in package.namelist() if n.startswith("xl/worksheets/sheet"))
        setups = [re.search(r"<pageSetup [^>]*>", package.read(n).decode()) for n in sheets]
        names = package.read("xl/workbook.xml").decode()
    assert len(setups) == names.count("<sheet ") and all(setups)
    scales = [re.search(r'scale="(\d+)"', s[0]) for s in setups if s]
    assert all(int(s[1]) >= 50 for s in scales if s)
    assert sum(s is not None for s in scales) >= 3  # Models, Workings, Profiles, Candidates: over several pages
    assert names.count("_xlnm.Print_Titles") >= 8  # heads and first columns on each of them

"""What somebody changed by hand is kept when its file is written anew; what nobody touched is replaced."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import openpyxl
import pypdf
import pytest
from command_lines import Run
from pypdf.annotations import FreeText

import sheetgen
from sheetgen.readback.read_book import read_workbook

BUILD = ("build", "--models", "8b", "--workloads", "chat", "--tiers", "1", "--as-of", "2026-11-20")
SHEET = Path("output/sizing-sheet.xlsx")


def typed(path: Path) -> None:
    book = openpyxl.load_workbook(path)
    book["Inputs"][book.defined_names["in_hours_per_month"].attr_text.partition("!")[2].replace("$", "")] = 220
    book.save(path)


def renamed(path: Path) -> None:
    """One letter of one part, with all else of the archive as it was."""
    with zipfile.ZipFile(path) as package:
        parts = {info: package.read(info) for info in package.infolist()}
    with zipfile.ZipFile(path, "w") as package:
        for info, data in parts.items():
            package.writestr(info, data.replace(b"Rarely changed", b"Seldom changed"))


def annotated(path: Path) -> None:
    """A note behind the old end, as readers of PDFs add it."""
    _with_a_note(pypdf.PdfWriter(path, incremental=True), path)


def saved_by_another(path: Path) -> None:
    _with_a_note(pypdf.PdfWriter(clone_from=path), path)


def _with_a_note(pdf: pypdf.PdfWriter, path: Path) -> None:
    pdf.add_annotation(0, FreeText(text="Approved", rect=(50, 50, 200, 100)))
    pdf.write(path)


def written_in(path: Path) -> None:
    document = docx.Document(str(path))
    document.add_paragraph("Approved.")
    document.save(str(path))


@pytest.mark.parametrize(
    ("ending", "edit"),
    [("xlsx", typed), ("xlsx", renamed), ("pdf", annotated), ("pdf", saved_by_another)],
)
def test_an_edited_sheet_is_kept(ending: str, edit: Callable[[Path], None], run: Run, workdir: Path) -> None:
    path = SHEET.with_suffix(f".{ending}")
    words = (*BUILD, "--format", ending)
    assert run(*words).exit_code == 0
    built = path.read_bytes()
    kept = []
    for name in ("sizing-sheet.edited", "sizing-sheet.edited-2"):
        edit(path)
        edited = path.read_bytes()
        assert edited != built
        result = run(*words, "--quiet")
        kept.append(path.with_name(f"{name}.{ending}"))
        assert result.exit_code == 0 and str(kept[-1]) in result.stderr
        assert path.read_bytes() == built and kept[-1].read_bytes() == edited
    assert {*path.parent.iterdir()} == {path, *kept}
    if ending == "xlsx" and edit is typed:
        pulled = run("pull", str(kept[-1]))
        assert pulled.exit_code == 0 and "220" in pulled.stdout


def test_what_nobody_touched_is_replaced_without_a_word(run: Run, workdir: Path) -> None:
    for price in ("0", "0.1"):
        result = run(*BUILD, "--discount-fraction", price)
        assert result.exit_code == 0 and result.stderr == ""
    assert len({*SHEET.parent.iterdir()}) == 2
    assert read_workbook(str(SHEET))


def test_a_workbook_of_another_program_is_kept(run: Run, workdir: Path) -> None:
    SHEET.parent.mkdir()
    openpyxl.Workbook().save(SHEET)
    budget = SHEET.read_bytes()
    assert run(*BUILD, "--format", "xlsx").exit_code == 0
    assert SHEET.with_name("sizing-sheet.edited.xlsx").read_bytes() == budget


def test_a_plan_is_kept_too(run: Run, workdir: Path) -> None:
    assert run("plan", "init").exit_code == 0
    words = ("plan", "plan.yaml", "--format", "docx", "--out", ".", "--name", "q1")
    assert run(*words).stderr == run(*words).stderr == ""
    written_in(Path("q1.docx"))
    assert "q1.edited.docx" in run(*words).stderr and Path("q1.edited.docx").exists()


def test_python_keeps_it_too(workdir: Path) -> None:
    build = {"models": "8b", "workloads": "chat", "tiers": "1", "format": "xlsx"}
    assert sheetgen.build(**build).kept == {}
    typed(SHEET)
    assert sheetgen.build(**build).kept == {SHEET: SHEET.with_name("sizing-sheet.edited.xlsx")}

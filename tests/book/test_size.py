"""How large workbooks are: people mail them, and open them on phones."""

from __future__ import annotations

import base64
import datetime
import re
import zipfile
import zlib
from io import BytesIO
from typing import Any

import books
import pytest
import xlsxwriter
from workbook_cells import sheet_parts

from sheetgen.answer.solve import solve
from sheetgen.question.sheet_question import ask
from sheetgen.writers.hand_edits import CORE
from sheetgen.writers.xlsx_library import Packing

DOT = base64.b64decode(  # a picture of one point
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
N_MODELS = 369  # of the catalogs, any of which Decision may show, when the limits were set
BYTES_OF_A_MODEL = 120  # twenty more made the workbook of 8b on Azure 1,629 bytes larger
MIXTURES = "deepseek-v3,gpt-oss-120b"
# Of mixtures Decision has its sixteen loads on each of 300 candidates, which in bytes is little: a row shares its text.
LOCAL_HEADER, CENTRAL_HEADER = 30, 46  # bytes of a zip file for each part, beside its name


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(
    "models,providers,n_columns,at_most_formulas,at_most_bytes",
    [
        (books.DEFAULT, None, 170, 60_000, 680_000),
        (f"{MIXTURES},8b", None, 300, 80_000, 800_000),
        (f"{MIXTURES},llama-4-scout", None, 300, 80_000, 800_000),
        (f"{books.DEFAULT},qwen3-32b,mixtral-8x7b", "azure", 100, 70_000, 750_000),
    ],
)
def test_a_workbook_is_small(
    models: str,
    providers: str | None,
    n_columns: int,
    at_most_formulas: int,
    at_most_bytes: int,
    packed_as_shipped: None,
) -> None:
    """n_columns: of candidates, up to which this is promised."""
    solved = solve(ask(books.catalog(), {"models": models, "providers": providers, "as_of": books.AS_OF}))
    package = books.book_bytes(solved)
    spare_columns = 3 * len(solved.question.layouts)  # three rows for instances of one's own
    assert 50 < len(solved.offers) + spare_columns <= n_columns
    with zipfile.ZipFile(BytesIO(package)) as parts:
        n_formulas = sum(len(re.findall(rb"<f[\s>/]", parts.read(part))) for part in sheet_parts(parts).values())
        by_zlib = sum(len(zlib.compress(parts.read(n), 6)) - 6 for n in parts.namelist())
        heads = sum(LOCAL_HEADER + CENTRAL_HEADER + 2 * len(n) for n in parts.namelist())
    print(f"{models} on {providers}: {n_formulas:,} formulas, {len(package):,} bytes; by zlib {by_zlib + heads:,}")
    assert n_formulas <= at_most_formulas
    entered_since = len(books.catalog().models()) - N_MODELS
    assert len(package) <= at_most_bytes + BYTES_OF_A_MODEL * max(entered_since, 0)
    assert len(package) < 0.94 * (by_zlib + heads)  # or libdeflate was not asked


MARK = re.compile(rb"<dc:identifier>sheetgen:[0-9a-f]{32}</dc:identifier>")


class Ours(xlsxwriter.Workbook):  # type: ignore[misc]  # the library has no types
    """A workbook with our packing in place of the library's."""

    def _get_packager(self) -> Packing:
        self.packing = Packing()
        return self.packing


def filled(workbook: Any) -> Any:
    """With parts of each kind: sheets, texts, notes, a chart, a picture."""
    for name in ("One", "Two", "Empty"):
        sheet = workbook.add_worksheet(name)
        if name != "Empty":
            sheet.write_column(0, 0, [1.5, "a & b", "é" * 5_000])
            sheet.write_comment(0, 0, "a note")
            chart = workbook.add_chart({"type": "bar"})
            chart.add_series({"values": [name, 0, 0, 1, 0]})
            sheet.insert_chart("C3", chart)
            sheet.insert_image("C20", "dot.png", {"image_data": BytesIO(DOT)})
    workbook.set_properties({"created": datetime.datetime(2026, 1, 1)})
    workbook.close()
    return workbook


def test_the_parts_are_those_of_the_library() -> None:
    theirs = BytesIO()
    filled(xlsxwriter.Workbook(theirs, {"in_memory": True}))
    ours = filled(Ours(BytesIO(), {"in_memory": True})).packing.package
    with zipfile.ZipFile(theirs) as given, zipfile.ZipFile(BytesIO(ours)) as made:
        assert made.testzip() is None and made.namelist()[-1] == CORE
        assert sorted(made.namelist()) == sorted(given.namelist())
        assert any(n.endswith(".png") for n in made.namelist()) and any("comments" in n for n in made.namelist())
        for entry in given.infolist():
            other = made.getinfo(entry.filename)
            if entry.filename == CORE:  # it has a mark of all others
                assert MARK.sub(b"", made.read(other)) == given.read(entry) != made.read(other)
            else:
                assert given.read(entry) == made.read(other), entry.filename
            for about in ("date_time", "external_attr", "compress_type", "flag_bits", "create_system"):
                assert getattr(entry, about) == getattr(other, about), (entry.filename, about)

"""Same input, same bytes: whatever the order of hashes and the clock of the machine."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import books
import pytest
from workbook_cells import cells

from sheetgen.question.sheet_question import Question
from sheetgen.writers.xlsx_library import digits

OPTIONS = {**books.LEAST, "models": "8b,gpt-oss-120b"}
PROGRAM = """
import sys
sys.path[:0] = sys.argv[2:]
import books, test_bytes
from pathlib import Path
books.build(Path(sys.argv[1]).parent, Path(sys.argv[1]).stem, test_bytes.OPTIONS)
"""


def test_two_builds_are_byte_identical(tmp_path: Path, packed_as_shipped: None) -> None:
    """One of this process, whose hashes have an order of their own; the other elsewhere, in another order."""
    here, path = Path(__file__).parent, tmp_path / "other.xlsx"
    folders = [str(folder) for folder in (here, here.parent, here.parent / "typed")]
    environment = {"PYTHONHASHSEED": "4711", "TZ": "Pacific/Kiritimati", "LC_ALL": "C"}
    command = [sys.executable, "-c", PROGRAM, str(path), *folders]
    subprocess.run(command, check=True, env={**os.environ, **environment})
    first, _ = books.build(tmp_path, "one", OPTIONS)
    assert hashlib.sha256(first.read_bytes()).hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.long
def test_no_part_carries_the_time_of_the_build(small_book: tuple[Path, object]) -> None:
    with zipfile.ZipFile(small_book[0]) as package:
        assert {item.date_time for item in package.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        core = package.read("docProps/core.xml").decode()
    assert core.count("2026-11-20T00:00:00Z") == 2  # created and modified: the sheet's date


def test_numbers_are_written_whole(lean_book: tuple[Path, Question]) -> None:
    """LibreOffice reckons array formulas as it opens a book, from the cached values beside them: of values in 12 digits
    none was equal to its twin, and what is cheapest had no machines."""
    numbers = (1 / 3, 0.1 + 0.2, 40179.2 * 12.3, 2e-7 / 3, 1e22 / 7, 1234567890123456768.0)
    assert [float(digits(number)) for number in numbers] == list(numbers)
    cached = [cell.value for cell in cells(lean_book[0]) if cell.formula and isinstance(cell.value, float)]
    assert any(number != float(f"{number:.15g}") for number in cached)

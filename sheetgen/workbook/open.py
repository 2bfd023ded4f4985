"""A sheet's facts out of a file, be it a workbook or JSON: what it is, is seen by its first bytes."""

from __future__ import annotations

from pathlib import Path

from sheetgen.errors import SheetgenError, shown
from sheetgen.workbook.package import WorkbookError, read_file
from sheetgen.workbook.sheet_facts import SheetFacts

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_sheet(path: Path | str) -> SheetFacts:
    """What a workbook, or the JSON of one, says. Raises WorkbookError."""
    where, data = shown(path, 200), read_file(Path(path))
    if data[:1000].removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"["):
        from sheetgen.workbook.from_json import facts_of_json

        return facts_of_json(data, str(path), where)
    from sheetgen.workbook.from_workbook import facts_of_workbook
    from sheetgen.workbook.read import read_workbook_bytes

    return facts_of_workbook(read_workbook_bytes(data, str(path), where))


def read_sheets(*paths: Path | str) -> list[SheetFacts]:
    """Several; what is wrong with any of them is told in one go."""
    found: list[SheetFacts] = []
    problems: list[str] = []
    for path in paths:
        try:
            found.append(read_sheet(path))
        except SheetgenError as error:
            problems += error.problems
    if problems:
        raise WorkbookError(*dict.fromkeys(problems))
    return found

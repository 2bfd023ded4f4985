"""What changed since an earlier sheet, in the few lines that a message has room for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from sheetgen.cli.diff_text import parts
from sheetgen.mail.letter import Changes, Money
from sheetgen.workbook.bridge import NO_EFFECT, bridges
from sheetgen.workbook.compare import Comparison, compare
from sheetgen.workbook.words import ARROW, usd

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

SHOWN = 8
SECTIONS = ("recommendation", "load", "inputs", "prices", "models", "gpus", "precisions")


def changes_since(before: str, workbook: bytes, name: str, catalog: Catalog) -> Changes:
    """From the sheet in the file `before` (workbook or JSON) to the workbook that is sent. Raises WorkbookError."""
    from sheetgen.workbook.from_workbook import facts_of_workbook
    from sheetgen.workbook.open import read_sheet
    from sheetgen.workbook.read import read_workbook_bytes

    found = compare(read_sheet(before), facts_of_workbook(read_workbook_bytes(workbook, name, name)))
    money = () if found.is_equal else bridges(found, catalog)
    lines = [line.replace(ARROW, " → ") for line in _lines(found)]
    return Changes(
        since=f"{PurePath(found.a.path).name}, as of {found.a.as_of or 'no date'}",
        money=tuple(
            Money(
                f"{one.name}, {one.load}".replace(ARROW, " → "), _usd(one.before_usd), _usd(one.after_usd), parts(one)
            )
            for one in money
        ),
        lines=tuple(lines[:SHOWN]),
        more=max(len(lines) - SHOWN, 0),
    )


def _usd(amount: float | None) -> str:
    return "nothing fits" if amount is None else usd(amount)


def _lines(found: Comparison) -> Iterator[str]:
    """First what is not known, for it puts the rest in its place."""
    yield from (f"not compared: {reason}" for reason in found.not_compared)
    for section in SECTIONS:
        for change in found.sections[section]:
            is_date = section == "prices" and change.more.get("what") == "date"
            is_empty = change.before is None is change.after and section in ("inputs", "models", "gpus", "precisions")
            if not is_date and not is_empty and not (section == "inputs" and change.name in NO_EFFECT):
                yield str(change)

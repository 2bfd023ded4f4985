"""What changed since an earlier sheet, in the few lines that a message has room for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from sheetgen.cli.diff_kinds import by_kind
from sheetgen.cli.diff_text import parts
from sheetgen.mail.letter import Changes, Money
from sheetgen.workbook.bridge import bridges
from sheetgen.workbook.change import Bridge, Change
from sheetgen.workbook.compare import Comparison, compare
from sheetgen.workbook.words import ARROW, usd

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

SHOWN = 5  # of each kind, so that many prices do not hide a setting


def changes_since(before: str, workbook: bytes, name: str, catalog: Catalog) -> Changes:
    """From the sheet in the file `before` (workbook or JSON) to the workbook that is sent. Raises WorkbookError."""
    from sheetgen.workbook.from_workbook import facts_of_workbook
    from sheetgen.workbook.open import read_sheet
    from sheetgen.workbook.read import read_workbook_bytes

    found = compare(read_sheet(before), facts_of_workbook(read_workbook_bytes(workbook, name, name)))
    kinds = [list(filter(_is_told, changes)) for changes in by_kind(found).values()]
    return Changes(
        since=f"{PurePath(found.a.path).name}, as of {found.a.as_of or 'no date'}",
        money=() if found.is_equal else tuple(_money(one, found) for one in bridges(found, catalog)),
        lines=tuple(line.replace(ARROW, " → ") for line in _lines(found, kinds)),
        more=sum(max(len(changes) - SHOWN, 0) for changes in kinds),
    )


def _money(one: Bridge, found: Comparison) -> Money:
    """A model's dollars before and now, what is rented where that is another, and what moved them."""
    rented = (c for c in found.sections["recommendation"] if c.more.get("model") == one.model)
    words = [f"{c.before['words']} → {c.after['words']}" for c in rented if c.before["words"] != c.after["words"]]
    return Money(
        f"{one.name}, {one.load}".replace(ARROW, " → "), _usd(one.before_usd), _usd(one.after_usd),
        "; ".join([*words, parts(one)]),
    )  # fmt: skip


def _usd(amount: float | None) -> str:
    return "nothing fits" if amount is None else usd(amount)


def _is_told(change: Change) -> bool:
    """Inputs and facts that one of the sheets alone has, and leaves blank, say nothing; a removed line does."""
    return "what" in change.more or not (change.before is None is change.after)


def _lines(found: Comparison, kinds: list[list[Change]]) -> Iterator[str]:
    """First what is not known, for it puts the rest in its place."""
    yield from (f"not compared: {reason}" for reason in found.not_compared)
    for changes in kinds:
        yield from map(str, changes[:SHOWN])

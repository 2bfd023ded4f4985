"""Formula texts as a template and the cells that it names, so that two can be compared though rows have moved."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sheetgen.sheet.model import column_number

_TOKEN = re.compile(
    r"""
    "(?:[^"]|"")*"                                       # a text
    | (?<![\w.$])
      (?:(?:'(?P<quoted>(?:[^']|'')+)'|(?P<sheet>[^\W\d][\w.]*))!)?
      (?P<column_fixed>\$?)(?P<column>[A-Z]{1,3})(?P<row_fixed>\$?)(?P<row>[1-9]\d{0,6})
      (?![\w.(!])
    """,
    re.VERBOSE,
)
_BLANKS = re.compile(r"\s+")
MARK = "\0"


class Target(NamedTuple):
    """A cell that a formula names. Rows and columns count from 1; `moves` where a copy of the formula names another."""

    sheet: str
    row: int
    column: int
    row_moves: bool
    column_moves: bool

    def moved(self, rows: int, columns: int) -> Target:
        row, column = self.row + rows * self.row_moves, self.column + columns * self.column_moves
        return Target(self.sheet, row, column, self.row_moves, self.column_moves)


@dataclass(frozen=True)
class Parsed:
    """A formula: its text with a mark for each cell, and the cells."""

    template: str
    targets: tuple[Target, ...]

    def at(self, rows: int, columns: int) -> tuple[Target, ...]:
        """The cells of a copy so many rows and columns away."""
        return self.targets if not rows and not columns else tuple(t.moved(rows, columns) for t in self.targets)


@functools.lru_cache(maxsize=100_000)
def parsed(text: str, here: str) -> Parsed:
    """The formula `text` of a cell on sheet `here`. Blanks and capital letters outside of texts count for nothing."""
    targets: list[Target] = []
    template = "".join(_parts(text.strip().removeprefix("{").removeprefix("=").removesuffix("}"), here, targets))
    return Parsed(template, tuple(targets))


def _parts(text: str, here: str, targets: list[Target]) -> Iterator[str]:
    end, sheet = 0, here
    for match in _TOKEN.finditer(text):
        between = _plain(text[end : match.start()])
        end = match.end()
        yield between
        if match["column"] is None:
            yield match[0]
            continue
        if named := match["quoted"] or match["sheet"]:
            sheet = named.replace("''", "'")
        elif between != ":":  # no second corner of an area
            sheet = here
        at = int(match["row"]), 1 + column_number(match["column"])
        targets.append(Target(sheet, *at, not match["row_fixed"], not match["column_fixed"]))
        yield MARK
    yield _plain(text[end:])


def _plain(text: str) -> str:
    return _BLANKS.sub("", text).lower()

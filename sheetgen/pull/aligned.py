"""Which row and column of an edited sheet is which of the sheet as built: by what stands in them, not by number."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

Mark = Hashable  # what tells a cell's place: a label, or the form of its formula
Marks = Mapping[tuple[int, int], Mark]


@dataclass(frozen=True)
class Alignment:
    """By each row and column as built, where it is now; what is gone is not there."""

    rows: Mapping[int, int]
    columns: Mapping[int, int]

    def at(self, row: int, column: int) -> tuple[int, int] | None:
        """Where a cell is now, or nothing."""
        here = self.rows.get(row), self.columns.get(column)
        return None if here[0] is None or here[1] is None else (here[0], here[1])

    def moved(self, row: int, column: int) -> tuple[int, int]:
        """Where a formula that named a cell names it now; past the table as built, as far off as before."""
        return _moved(self.rows, row), _moved(self.columns, column)

    @property
    def is_still(self) -> bool:
        """Whether nothing moved."""
        return all(a == b for found in (self.rows, self.columns) for a, b in found.items())


def _moved(places: Mapping[int, int], at: int) -> int:
    if at in places or not places:
        return places.get(at, at)
    before = max((p for p in places if p < at), default=None)
    return at if before is None else places[before] + at - before


def align(built: Marks, found: Marks) -> Alignment:
    """Rows by what stands in them from left to right, columns by what stands in them from top to bottom."""
    return Alignment(_places(_lines(built, 0), _lines(found, 0)), _places(_lines(built, 1), _lines(found, 1)))


def _lines(marks: Marks, axis: int) -> dict[int, tuple[Mark, ...]]:
    """By row (axis 0) or column (axis 1) its marks, in their order; lines without any are left out."""
    lines: dict[int, list[tuple[int, Mark]]] = {}
    for at, mark in marks.items():
        lines.setdefault(at[axis], []).append((at[1 - axis], mark))
    return {n: tuple(mark for _, mark in sorted(lines[n], key=lambda one: one[0])) for n in sorted(lines)}


def _places(built: Mapping[int, Mark], found: Mapping[int, Mark]) -> dict[int, int]:
    """Where each line is now: the same lines in their order; of those that differ, as many in a row as before."""
    old, new = list(built), list(found)
    a, b = _numbered([built[n] for n in old], [found[n] for n in new])
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    places = dict(zip(old[:head], new[:head], strict=True))
    if tail:
        places |= dict(zip(old[-tail:], new[-tail:], strict=True))
    a, b, old, new = (one[head : len(one) - tail] for one in (a, b, old, new))
    for what, i, j, k, n in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what in ("equal", "replace"):
            places |= dict(zip(old[i:j], new[k:n], strict=False))
    return places


def _numbered(a: Sequence[Mark], b: Sequence[Mark]) -> tuple[list[int], list[int]]:
    """Both with a number for each different line: numbers compare faster than long lines."""
    known: dict[Mark, int] = {}
    numbers = [known.setdefault(one, len(known)) for one in (*a, *b)]
    return numbers[: len(a)], numbers[len(a) :]

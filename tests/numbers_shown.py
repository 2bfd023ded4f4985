"""The numbers that a workbook shows, by place, and whether a number of another format is one of its figures.

A figure elsewhere may be rounded further (`$80.4k` of $80,358) or in another unit (`1.9 s` of 1881 ms); it has to be
what one cell *of its own place* (the row of its load, model, instance) comes to at the figure's own decimals.
"""

from __future__ import annotations

import datetime
import functools
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import openpyxl

from sheetgen import units
from sheetgen.units import GB, GIB, MIB, Display

HEAD = 4  # the row of a table's head
DISPLAYS = {d.excel: d for d in vars(units).values() if isinstance(d, Display)}
FIGURE = re.compile(r"\$?\d[\d,]*(?:\.\d+)?(?: ?(?:GiB|MiB|KiB|GB|MB|KB|ms|[kMBs%])(?![A-Za-z]))?")
SCALES = {
    "": (1.0,),
    "k": (1e3, 1024.0),
    "M": (1e6, 2.0**20),
    "B": (1e9, 1.0),
    "%": (0.01,),
    "ms": (1e-3, 1.0),
    "s": (1.0, 1e3),
    "GiB": (GIB, 1.0),
    "MiB": (MIB,),
    "KiB": (1024.0,),
    "GB": (GB, 1.0),
    "MB": (1e6,),
    "KB": (1e3,),
}


@dataclass(frozen=True)
class Place:
    """The cells that a figure may come from: their values, and what they show as text."""

    numbers: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()

    def __add__(self, other: Place) -> Place:
        return Place(self.numbers + other.numbers, self.texts + other.texts)

    def has(self, value: float) -> bool:
        """True where a cell has this very value, to nine digits."""
        return any(abs(number - value) <= 1e-9 * max(abs(value), abs(number), 1e-9) for number in self.numbers)

    @functools.cached_property
    def _units_of_texts(self) -> dict[str, set[str]]:
        """By the number of each figure within a text the units that it has there."""
        units_of: dict[str, set[str]] = {}
        for number, unit in (_parts(figure) for text in self.texts for figure in figures(text)):
            units_of.setdefault(number, set()).add(unit)
        return units_of

    def shows(self, figure: str) -> bool:
        """True where a cell, or a figure within a text, comes to `figure` at its decimals."""
        number, unit = _parts(figure)
        for other in self._units_of_texts.get(number, ()):  # a unit may stand in a table's head, a thousand may not
            if unit == other or not {unit, other} & {"k", "M"}:
                return True
        decimals = len(number.partition(".")[2])
        display, value, unit_of_last = Display("", decimals=decimals), float(number.replace(",", "")), 10.0**-decimals
        scales = SCALES[unit][:1] if figure.startswith("$") else SCALES[unit]  # no dollars in powers of two
        near = (n / scale for n in self.numbers for scale in scales if abs(abs(n / scale) - value) <= unit_of_last)
        return any(display.text(scaled).lstrip("-") == number for scaled in near)


@functools.cache
def _parts(figure: str) -> tuple[str, str]:
    """The number of a figure and its unit."""
    number = re.match(r"\$?([\d,.]+)", figure)
    assert number, figure
    return number[1], figure[number.end() :].strip()


@functools.cache
def figures(text: str) -> tuple[str, ...]:
    """The numbers of a text with their units; not those within a name (H100, p5.48xlarge, 2026-11-20)."""
    numbers = []
    for match in FIGURE.finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        part_of_name = re.search(r"[A-Za-z_@#/-]$|\d\.$", before) or re.match(r"[A-Za-z_]|[.-]\w", after)
        if not part_of_name:
            numbers.append(match[0].rstrip(","))
    return tuple(numbers)


class Book:
    """A workbook's cached values, as a viewer shows them."""

    def __init__(self, data: bytes) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.places: dict[str, list[Place]] = {}
        self._sheets: dict[tuple[str, ...], Place] = {}  # whole ones that were read before
        for sheet in openpyxl.load_workbook(io.BytesIO(data), data_only=True):
            heads = {c.column: str(c.value) for c in sheet[HEAD] if c.value is not None}
            named, places = [], []
            for row in sheet.iter_rows():
                cells = _filled(row)
                named.append({heads[c.column]: c.value for c in cells if c.column in heads})
                places.append(_place_of(cells))
            self.rows[sheet.title], self.places[sheet.title] = named, places

    def row(self, sheet: str, n: int) -> Place:
        """The nth row below the head, from 0."""
        return self.places[sheet][HEAD + n]

    def cells(self, sheet: str, n: int, *heads: str) -> Place:
        """Some cells of the nth row below the head."""
        cells = [self.rows[sheet][HEAD + n].get(head) for head in heads]
        numbers = tuple(float(v) for v in cells if isinstance(v, int | float))
        return Place(numbers, tuple(v for v in cells if isinstance(v, str)))

    def where(self, sheet: str, **wanted: Any) -> Place:
        """All rows of a table with these values (`_` in a name for a space)."""
        keys = {name.replace("_", " "): value for name, value in wanted.items()}
        pairs = zip(self.rows[sheet], self.places[sheet], strict=True)
        return sum((p for row, p in pairs if all(row.get(k) == v for k, v in keys.items())), Place())

    def sheet(self, *names: str) -> Place:
        """All cells of some sheets."""
        if names not in self._sheets:
            places = [place for name in names for place in self.places[name]]
            chain = itertools.chain.from_iterable
            self._sheets[names] = Place(tuple(chain(p.numbers for p in places)), tuple(chain(p.texts for p in places)))
        return self._sheets[names]

    def texts(self) -> set[str]:
        """Every text that a cell holds."""
        return {t for places in self.places.values() for place in places for t in place.texts}


def read_sheet(data: bytes, name: str) -> list[Place]:
    """The rows of one sheet of a workbook alone."""
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    return [_place_of(_filled(row)) for row in book[name].iter_rows()]


def _filled(row: Iterable[Any]) -> list[Any]:
    return [cell for cell in row if cell.value is not None and not isinstance(cell.value, bool)]


def _place_of(cells: Iterable[Any]) -> Place:
    numbers = tuple(float(cell.value) for cell in cells if isinstance(cell.value, int | float))
    return Place(numbers, tuple(_shown(cell) for cell in cells))


def _shown(cell: Any) -> str:
    if isinstance(cell.value, datetime.datetime | datetime.date):
        return cell.value.isoformat()[:10]
    if isinstance(cell.value, int | float) and cell.number_format in DISPLAYS:
        return DISPLAYS[cell.number_format].text(cell.value)
    return str(cell.value)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every number and text of a nested value, with its place."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    items: Iterable[tuple[str | int, Any]]
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        if value is not None and not isinstance(value, bool):
            yield path, value
        return
    for key, entry in items:
        yield from leaves(entry, (*path, key))


def named(path: tuple[str | int, ...]) -> str:
    """A place as one writes it, without its counts: cells.levers.monthly_usd."""
    return ".".join(part for part in path if isinstance(part, str))

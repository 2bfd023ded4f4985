"""CSV text as lines with their numbers; what is wrong with a line is kept beside it, not raised."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from sheetgen.catalog.prices.fetch import ListText
from sheetgen.errors import CatalogError, shown

MAX_LINES = 50_000
MAX_COLUMNS = 200


@dataclass(frozen=True)
class Fault:
    """Why one line of a list cannot be used."""

    where: str
    line: int
    what: str  # one sentence or two, with their full stops
    is_pair: bool = False  # another line, which `what` names, cannot be used either

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Line:
    """One line under the header: its number in the file, and its cells by column."""

    number: int
    cells: dict[str, str]


@dataclass(frozen=True)
class Table:
    where: str
    cited: str
    header: tuple[str, ...]
    header_line: int
    lines: tuple[Line, ...]
    faults: tuple[Fault, ...]


def read_table(source: ListText) -> Table:
    """`source` as a table. Raises CatalogError where it is no CSV, or has a header only."""
    records = _records(source)
    first, head = next(records, (1, []))
    header = tuple(cell.lower() for cell in head)
    if len(header) > MAX_COLUMNS:
        raise CatalogError(
            f"{source.where}:{first}: has {len(header):,} columns. A price list has at most {MAX_COLUMNS}."
        )
    if twice := next((name for i, name in enumerate(header) if name and name in header[:i]), None):
        raise CatalogError(f"{source.where}:{first}: column {shown(twice)} is there twice. Keep one.")
    lines: list[Line] = []
    faults: list[Fault] = []
    for number, cells in records:
        if len(lines) + len(faults) >= MAX_LINES:
            raise CatalogError(f"{source.where}: has more than {MAX_LINES:,} lines. Keep the GPU rows.")
        if len(cells) == len(header):
            lines.append(Line(number, dict(zip(header, cells, strict=True))))
        else:
            columns = f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"
            faults.append(Fault(source.where, number, f"has {columns} under a header of {len(header)} columns."))
    return Table(source.where, source.cited, header, first, tuple(lines), tuple(faults))


def _records(source: ListText) -> Iterator[tuple[int, list[str]]]:
    """The records that hold anything, each with the number of the line where it begins."""
    reader = csv.reader(io.StringIO(source.text, newline=""), strict=True)
    while True:
        begins = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise CatalogError(f"{source.where}:{begins}: is not valid CSV ({shown(error, 80)}).") from error
        if any(cell.strip() for cell in record):
            yield begins, [cell.strip() for cell in record]

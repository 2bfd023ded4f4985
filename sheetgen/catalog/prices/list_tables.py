"""Price list files as tables of text cells: CSV with any separator and encoding, an Excel workbook, JSON records.
Faults of single lines are collected, not raised."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.base import RawMapping, RawValue, decoded
from sheetgen.catalog.prices.amounts import AmountError, currency_in
from sheetgen.errors import CatalogError, shown
from sheetgen.units import count

MAX_LINES = 50_000
MAX_COLUMNS = 200
MAX_CELLS = 500_000  # of a sheet; also the most shared texts of a workbook
MAX_UNPACKED = 128 * 2**20  # bytes of a workbook
_STARTS = (  # the first bytes of files that people mistake for a price list
    (b"\x1f\x8b", "is compressed (gzip). Unpack it first"),
    (b"\xd0\xcf\x11\xe0", "is an old or locked Excel file. Save it as .xlsx without a password, or as CSV"),
    (b"%PDF", "is a PDF. Copy its table into a sheet, and save that as .xlsx or CSV"),
    (b"<", "is a web page or XML, not CSV. Name the file itself"),
)

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SEPARATORS = (";", "\t", "|", ",")
_NO_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")


@dataclass(frozen=True)
class Table:
    """The non-empty records of one table, each with its line number; `where` is the table's name in messages."""

    where: str
    records: tuple[tuple[int, tuple[str, ...]], ...]
    sheet: str = ""
    separator: str = ""  # between the columns of a text file
    is_hidden: bool = False  # a hidden sheet, which is read only by name

    def at(self, line: int) -> str:
        """`where:line`, for messages; the header of JSON records has no line."""
        return f"{self.where}:{line}" if line else self.where


def tables_of(raw: bytes, name: str, sheet: str | None = None) -> tuple[Table, ...]:
    """The tables of a file: one per sheet of a workbook, or that of the named sheet.

    Raises CatalogError with one problem where the file holds none.
    """
    start = raw.lstrip()[:8]
    if start.startswith(b"PK\x03\x04"):
        return tuple(_sheets(raw, name, sheet))
    if sheet is not None:
        raise CatalogError(f"{name}: has no sheets. --sheet names one of an Excel workbook (.xlsx).")
    for first, problem in _STARTS:
        if start.startswith(first):
            raise CatalogError(f"{name}: {problem}.")
    text = _text(raw, name)
    if not text.strip():
        raise CatalogError(f"{name}: is empty.")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise CatalogError(f"{name}:{line}: holds a NUL byte, so it is no text. Name a CSV or Excel file.")
    if text.lstrip()[0] in "{[":
        return (_json(text, name),)
    separator, text = _separator(text)
    return (Table(name, tuple(_records(name, text, separator)), separator=separator),)


def _text(raw: bytes, name: str) -> str:
    """The text of a file in UTF-8, UTF-16 (Excel's "Unicode text") or Windows-1252."""
    if raw.startswith(_UTF_16):
        try:
            return raw.decode("utf-16")
        except UnicodeDecodeError:
            raise CatalogError(f"{name}: is UTF-16 text that breaks off. Save it as UTF-8.") from None
    try:
        return decoded(raw, name)
    except CatalogError:
        if _NO_CP1252.search(raw):
            raise
        return raw.decode("cp1252")


def _separator(text: str) -> tuple[str, str]:
    """The column separator, and the text without Excel's `sep=` line.

    Without that line it is the sign that splits the most lines into equal numbers of cells.
    """
    first, _, rest = text.partition("\n")
    if stated := re.fullmatch(r'"?sep=(.)"?\s*', first):
        return stated[1], f"\n{rest}"
    lines = [line for line in text.splitlines()[:200] if line.strip()]

    def score(separator: str) -> int:
        n_cells = [_n_cells(line, separator) for line in lines]
        usual = Counter(n for n in n_cells if n > 1).most_common(1)
        return sum(n for n in n_cells if usual and n == usual[0][0])

    best = max(_SEPARATORS, key=score)
    return (best if score(best) else ","), text


def _n_cells(line: str, separator: str) -> int:
    return re.sub(r'"[^"]*"', "", line).count(separator) + 1


def _records(where: str, text: str, separator: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The non-empty records of a CSV text, each with the number of its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    begins = 1
    try:
        for record in reader:
            if len(record) > MAX_COLUMNS:
                raise CatalogError(_too_wide(f"{where}:{begins}", len(record)))
            cells = tuple(cell.strip() for cell in record)
            if any(cells):
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise CatalogError(f"{where}:{begins}: is not valid CSV ({shown(error, 80)}).") from error


def _too_wide(where: str, n_columns: int) -> str:
    return f"{where}: has {n_columns:,} columns. A price list has at most {MAX_COLUMNS}."


def _sheets(raw: bytes, name: str, sheet: str | None) -> Iterator[Table]:
    """The sheets of a workbook with the displayed text of their cells; a formula has its stored value."""
    import openpyxl

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as package:
            members = package.infolist()
            if sum(member.file_size for member in members) > MAX_UNPACKED:
                raise CatalogError(f"{name}: unpacks to more than {MAX_UNPACKED // 2**20} MiB. Keep the GPU rows.")
            if "xl/workbook.xml" not in {member.filename for member in members}:
                raise CatalogError(f"{name}: is a zip archive, but no Excel workbook. Unpack it, or save it as .xlsx.")
            if any(b"<!DOCTYPE" in package.read(part)[:2000] for part in members if part.filename.endswith(".xml")):
                raise CatalogError(f"{name}: holds a document type, which no workbook needs. Save it anew as .xlsx.")
            for member in members:
                _hold_to(
                    package, member.filename, b"(?:si|xf)", MAX_CELLS, f"{name}: has more than {MAX_CELLS:,} texts"
                )
        values, formulas = (
            openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=data_only) for data_only in (True, False)
        )
        names = values.sheetnames
        if sheet is not None and sheet.strip().lower() not in (low := [title.lower() for title in names]):
            raise CatalogError(f"{name}: has no sheet {shown(sheet)!r}. It has {', '.join(map(shown, names))}.")
        wanted = names if sheet is None else [names[low.index(sheet.strip().lower())]]
        for title in wanted:
            where = f"{name}[{shown(title, 31)}]" if len(names) > 1 else name
            if sheet is None and values[title].sheet_state != "visible":
                yield Table(where, (), sheet=title, is_hidden=True)
            elif hasattr(values[title], "iter_rows"):  # a chart sheet has no rows
                _hold_sheet(raw, values[title], where)
                rows = zip(_rows(values[title]), _rows(formulas[title]), strict=False)
                yield Table(where, tuple(_shown_rows(rows, where)), sheet=title)
    except CatalogError:
        raise
    except Exception as error:  # openpyxl raises many kinds of errors for damaged files
        damage = shown(f"{type(error).__name__}: {error}", 80)
        raise CatalogError(f"{name}: is no Excel workbook that can be read ({damage}). Save it anew.") from error


def _hold_to(package: zipfile.ZipFile, member: str, tag: bytes, most: int, told: str, until: bytes = b"") -> None:
    """Raise CatalogError (`told`) if a member of a workbook has more than `most` elements of a tag, or, with `until`,
    more than that inside one `until` element. The member is read in pieces."""
    marks = re.compile(
        rb"<(?:\w{1,20}:)?" + tag + rb"(?=[\s/>])" + (rb"|(</)(?:\w{1,20}:)?" + until + rb">" if until else rb"")
    )
    n_elements, rest = 0, b""
    with package.open(member) as file:
        while piece := file.read(2**20):
            text, end = rest + piece, 0
            for mark in marks.finditer(text):
                n_elements = 0 if mark.lastindex else n_elements + 1
                end = mark.end()
                if n_elements > most:
                    raise CatalogError(f"{told}. Keep the GPU rows.")
            rest = text[max(end, len(text) - _LONGEST_MARK) :]


_LONGEST_MARK = 64  # bytes of a tag with its prefix, which may be split between two pieces of a file


def _hold_sheet(raw: bytes, sheet: Any, where: str) -> None:
    """Raise CatalogError for a sheet with too many cells in a row or in all."""
    with zipfile.ZipFile(io.BytesIO(raw)) as package:
        member = sheet._worksheet_path.lstrip("/")
        wide = f"{where}: has a row of more than {MAX_COLUMNS} cells"
        _hold_to(package, member, b"c", MAX_COLUMNS, wide, until=b"row")
        _hold_to(package, member, b"c", MAX_CELLS, f"{where}: has more than {MAX_CELLS:,} cells")


def _rows(sheet: Any) -> Iterator[Sequence[Any]]:
    sheet.reset_dimensions()  # those that the file states may be wrong
    yield from sheet.iter_rows()


def _shown_rows(
    rows: Iterable[tuple[Sequence[Any], Sequence[Any]]], where: str
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The non-empty rows as text with their numbers, of rows of cells with values and the same cells with formulas.

    Raises CatalogError for a formula without a stored value, and for too many rows or columns.
    """
    for number, (values, formulas) in enumerate(rows, start=1):
        if number > MAX_LINES or len(values) > MAX_COLUMNS:
            raise CatalogError(
                f"{where}: has more than {MAX_LINES:,} rows or {MAX_COLUMNS} columns. Keep the GPU rows."
            )
        for cell, formula in zip(values, formulas, strict=False):
            if cell.value is None and formula.value is not None:
                cell_name, mend = formula.coordinate, "Open it in Excel, save it and try again"
                raise CatalogError(f"{where}:{number}: cell {cell_name} is a formula without a stored value. {mend}.")
        cells = tuple(_cell_text(cell) for cell in values)
        if any(cells):
            yield number, cells


def _cell_text(cell: Any) -> str:
    """A cell's value as text, with the currency that its number format shows."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()[:10]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return " ".join(filter(None, [_number_text(value), _currency_of(cell.number_format or "")]))
    return str(value).strip()


def _number_text(value: float) -> str:
    """A number as text that cannot be mistaken for grouped thousands: 12.345 is 12.3450."""
    if not math.isfinite(value):
        return ""
    text = repr(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.12g}"
    return f"{text}0" if re.fullmatch(r"-?[0-9]+\.[0-9]{3}", text) else text


def _currency_of(number_format: str) -> str:
    """The currency of a number format such as `#,##0.00 [$€-407]`; empty for none."""
    text = re.sub(r"\[\$([^\]-]*)(-[^\]]*)?\]", r" \1 ", number_format.split(";")[0])
    try:
        return next((code for word in re.findall(r"[^\d#0.,;\s\"\\_()*-]+", text) if (code := currency_in(word))), "")
    except AmountError:
        return ""


def _json(text: str, name: str) -> Table:
    """The records of a JSON file as a table: those of its longest list or mapping of objects."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"{name}: is no valid JSON ({shown(error, 80)}).") from error
    records = max(_lists_in(data), key=len, default=[])
    if not records:
        raise CatalogError(f"{name}: is JSON without a list of records. Save its table as CSV.")
    if len(records) > MAX_LINES:
        raise CatalogError(f"{name}: has more than {MAX_LINES:,} records. Keep the GPU rows.")
    flat, paths = list[dict[str, str]](), dict[str, None]()
    for record in records:
        flat.append(dict(itertools.islice(_leaves(record), MAX_COLUMNS + 1)))
        paths |= dict.fromkeys(flat[-1])
        if len(paths) > MAX_COLUMNS:
            raise CatalogError(f"{name}: has records with more than {MAX_COLUMNS} fields. Keep the GPU rows.")
    last = Counter(path.rpartition(".")[2] for path in paths)
    header = tuple(path if last[end := path.rpartition(".")[2]] > 1 else end for path in paths)
    lines = [tuple(record.get(path, "") for path in paths) for record in flat]
    return Table(name, tuple(enumerate((header, *lines))))


def _lists_in(data: RawValue, depth: int = 0) -> Iterator[list[RawMapping]]:
    """Every list of objects, and the values of every object with only objects in it, down to five levels."""
    values = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
    if values and all(isinstance(entry, dict) for entry in values) and (isinstance(data, list) or len(values) > 1):
        yield values
    if depth < 4:
        for value in values[:MAX_LINES]:
            yield from _lists_in(value, depth + 1)


def _leaves(record: RawMapping, path: str = "") -> Iterator[tuple[str, str]]:
    """The scalar values of a record as text under their dotted names; a list counts as its first item."""
    for key, value in record.items():
        name = f"{path}{key}"
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, dict) and path.count(".") < 4:
            yield from _leaves(value, f"{name}.")
        elif isinstance(value, (str, bool)):
            yield name, str(value).strip()
        elif isinstance(value, (int, float)):
            yield name, _number_text(value)


@dataclass(frozen=True)
class Fault:
    """A problem of one line of a price list."""

    where: str
    line: int
    problem: str  # one sentence or two, with their full stops
    is_pair: bool = False  # the other line that `problem` names cannot be used either

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.problem}"


@dataclass(frozen=True)
class Lines:
    """A table with its header: the columns' names, the lines by number (cells by lower-case column), and the faults of
    lines with too many or too few cells."""

    place: str
    header: tuple[str, ...]
    lines: dict[int, dict[str, str]]
    faults: tuple[Fault, ...]


def read_table(table: Table, head: int = 0) -> Lines:
    """The lines below the record `head`, which is the header. Raises CatalogError for too many or duplicate columns."""
    first, names = table.records[head] if table.records else (1, ())
    place = table.at(first)
    header = tuple(cell.lower() for cell in names)
    if len(header) > MAX_COLUMNS:
        raise CatalogError(_too_wide(place, len(header)))
    if twice := next((name for i, name in enumerate(header) if name and name in header[:i]), None):
        raise CatalogError(f"{place}: column {shown(twice)} is there twice. Keep one.")
    lines: dict[int, dict[str, str]] = {}
    faults: list[Fault] = []
    for number, cells in table.records[head + 1 :]:
        if len(lines) + len(faults) >= MAX_LINES:
            raise CatalogError(f"{table.where}: has more than {MAX_LINES:,} lines. Keep the GPU rows.")
        padded = (*cells, *[""] * (len(header) - len(cells))) if not table.separator else cells
        if len(padded) == len(header):
            lines[number] = dict(zip(header, padded, strict=True))
        else:
            problem = f"has {count(len(cells), 'cell')} under a header of {len(header)} columns."
            faults.append(Fault(table.where, number, problem))
    return Lines(place, tuple(names), lines, tuple(faults))

"""Tables of cells, as text, of a file that holds prices: CSV with any separator and encoding, an Excel workbook, JSON
records. What is wrong with a line is kept beside it, not raised."""

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.base import decoded
from sheetgen.catalog.prices.amounts import AmountError, currency_in
from sheetgen.errors import CatalogError, shown
from sheetgen.units import count

MAX_LINES = 50_000
MAX_COLUMNS = 200
MAX_CELLS = 500_000  # of a sheet, and texts that a workbook's sheets share
MAX_UNPACKED = 128 * 2**20  # of a workbook
_STARTS = (  # the first bytes of what people take for a price list
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
    """The records of one table that hold anything, each with the number of its line; `where` names it in messages."""

    where: str
    records: tuple[tuple[int, tuple[str, ...]], ...]
    sheet: str = ""
    separator: str = ""  # between its columns, where it is text
    is_hidden: bool = False  # a sheet that nobody sees, which is read where it is named

    def at(self, line: int) -> str:
        """A line's place in messages; the header of JSON records has none."""
        return f"{self.where}:{line}" if line else self.where


def tables_of(raw: bytes, name: str, sheet: str | None = None) -> tuple[Table, ...]:
    """The tables of a file, of a workbook one a sheet, or that of one sheet where that is named. Raises CatalogError,
    one line, where it holds none."""
    start = raw.lstrip()[:8]
    if start.startswith(b"PK\x03\x04"):
        return tuple(_sheets(raw, name, sheet))
    if sheet is not None:
        raise CatalogError(f"{name}: has no sheets. --sheet names one of an Excel workbook (.xlsx).")
    for first, what in _STARTS:
        if start.startswith(first):
            raise CatalogError(f"{name}: {what}.")
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
    """The text of a file: in UTF-8, UTF-16 (Excel's "Unicode text") or the Windows code page of Western Europe."""
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
    """The sign between columns, and the text without the line in which Excel states it: the sign that parts most lines
    into as many cells as most others have."""
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
    """The records that hold anything, each with the number of the line where it begins."""
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
    """The sheets of a workbook with their cells as they are shown; a formula is the value that is stored with it."""
    import openpyxl

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as package:
            members = package.infolist()
            if sum(one.file_size for one in members) > MAX_UNPACKED:
                raise CatalogError(f"{name}: unpacks to more than {MAX_UNPACKED // 2**20} MiB. Keep the GPU rows.")
            if "xl/workbook.xml" not in {one.filename for one in members}:
                raise CatalogError(f"{name}: is a zip archive, but no Excel workbook. Unpack it, or save it as .xlsx.")
            if any(b"<!DOCTYPE" in package.read(one)[:2000] for one in members if one.filename.endswith(".xml")):
                raise CatalogError(f"{name}: holds a document type, which no workbook needs. Save it anew as .xlsx.")
            for member in members:
                _hold_to(
                    package, member.filename, b"(?:si|xf)", MAX_CELLS, f"{name}: has more than {MAX_CELLS:,} texts"
                )
        values, formulas = (
            openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=data_only) for data_only in (True, False)
        )
        names = values.sheetnames
        if sheet is not None and sheet.strip().lower() not in (low := [one.lower() for one in names]):
            raise CatalogError(f"{name}: has no sheet {shown(sheet)!r}. It has {', '.join(map(shown, names))}.")
        wanted = names if sheet is None else [names[low.index(sheet.strip().lower())]]
        for one in wanted:
            where = f"{name}[{shown(one, 31)}]" if len(names) > 1 else name
            if sheet is None and values[one].sheet_state != "visible":
                yield Table(where, (), sheet=one, is_hidden=True)
            elif hasattr(values[one], "iter_rows"):  # which a sheet with only a chart has not
                _hold_sheet(raw, values[one], where)
                rows = zip(_rows(values[one]), _rows(formulas[one]), strict=False)
                yield Table(where, tuple(_shown_rows(rows, where)), sheet=one)
    except CatalogError:
        raise
    except Exception as error:  # openpyxl raises what the damage makes it raise
        what = shown(f"{type(error).__name__}: {error}", 80)
        raise CatalogError(f"{name}: is no Excel workbook that can be read ({what}). Save it anew.") from error


def _hold_to(package: zipfile.ZipFile, member: str, tag: bytes, most: int, told: str, until: bytes = b"") -> None:
    """Refuse a member of a workbook with more elements of a tag, between two of `until` where that is given, before
    anything holds them in memory."""
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


_LONGEST_MARK = 64  # bytes of a tag and its prefix, which two pieces of a file may part


def _hold_sheet(raw: bytes, sheet: Any, where: str) -> None:
    """Refuse a sheet with a row of too many cells, or with too many in all."""
    with zipfile.ZipFile(io.BytesIO(raw)) as package:
        member = sheet._worksheet_path.lstrip("/")
        wide = f"{where}: has a row of more than {MAX_COLUMNS} cells"
        _hold_to(package, member, b"c", MAX_COLUMNS, wide, until=b"row")
        _hold_to(package, member, b"c", MAX_CELLS, f"{where}: has more than {MAX_CELLS:,} cells")


def _rows(sheet: Any) -> Iterator[Sequence[Any]]:
    sheet.reset_dimensions()  # as stated by the program that wrote it, which may be wrong
    yield from sheet.iter_rows()


def _shown_rows(
    rows: Iterable[tuple[Sequence[Any], Sequence[Any]]], where: str
) -> Iterator[tuple[int, tuple[str, ...]]]:
    for number, (values, formulas) in enumerate(rows, start=1):
        if number > MAX_LINES or len(values) > MAX_COLUMNS:
            raise CatalogError(
                f"{where}: has more than {MAX_LINES:,} rows or {MAX_COLUMNS} columns. Keep the GPU rows."
            )
        for cell, formula in zip(values, formulas, strict=False):
            if cell.value is None and formula.value is not None:
                at, mend = formula.coordinate, "Open it in Excel, save it and try again"
                raise CatalogError(f"{where}:{number}: cell {at} is a formula without a stored value. {mend}.")
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
    """A number as text that nobody reads as thousands: 12.345 is 12.3450."""
    if not math.isfinite(value):
        return ""
    text = repr(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.12g}"
    return f"{text}0" if re.fullmatch(r"-?[0-9]+\.[0-9]{3}", text) else text


def _currency_of(number_format: str) -> str:
    """The currency of a number format such as `#,##0.00 [$€-407]`, or `` for none."""
    text = re.sub(r"\[\$([^\]-]*)(-[^\]]*)?\]", r" \1 ", number_format.split(";")[0])
    try:
        return next((code for word in re.findall(r"[^\d#0.,;\s\"\\_()*-]+", text) if (code := currency_in(word))), "")
    except AmountError:
        return ""


def _json(text: str, name: str) -> Table:
    """The records of a JSON file: its longest list of mappings, or its longest mapping of them, each a line."""
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


def _lists_in(data: Any, depth: int = 0) -> Iterator[list[Mapping[str, Any]]]:
    """Every list of mappings, and the values of every mapping that has only such."""
    values = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
    if values and all(isinstance(one, dict) for one in values) and (isinstance(data, list) or len(values) > 1):
        yield values
    if depth < 4:
        for value in values[:MAX_LINES]:
            yield from _lists_in(value, depth + 1)


def _leaves(record: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """The plain values of a record under their dotted names; of a list the first of them."""
    for key, value in record.items():
        at = f"{path}{key}"
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, dict) and path.count(".") < 4:
            yield from _leaves(value, f"{at}.")
        elif isinstance(value, (str, bool)):
            yield at, str(value).strip()
        elif isinstance(value, (int, float)):
            yield at, _number_text(value)


@dataclass(frozen=True)
class Fault:
    where: str
    line: int
    what: str  # one sentence or two, with their full stops
    is_pair: bool = False  # another line, which `what` names, cannot be used either

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Lines:
    """A table under its header: the columns as they are called, the lines by their numbers, each with its cells by
    column in lower case, and the lines that have more or fewer cells."""

    at: str
    header: tuple[str, ...]
    lines: dict[int, dict[str, str]]
    faults: tuple[Fault, ...]


def read_table(table: Table, head: int = 0) -> Lines:
    """The lines below the record number `head`, which is the header. Raises CatalogError where it is none."""
    first, names = table.records[head] if table.records else (1, ())
    at = table.at(first)
    header = tuple(cell.lower() for cell in names)
    if len(header) > MAX_COLUMNS:
        raise CatalogError(_too_wide(at, len(header)))
    if twice := next((name for i, name in enumerate(header) if name and name in header[:i]), None):
        raise CatalogError(f"{at}: column {shown(twice)} is there twice. Keep one.")
    lines: dict[int, dict[str, str]] = {}
    faults: list[Fault] = []
    for number, cells in table.records[head + 1 :]:
        if len(lines) + len(faults) >= MAX_LINES:
            raise CatalogError(f"{table.where}: has more than {MAX_LINES:,} lines. Keep the GPU rows.")
        padded = (*cells, *[""] * (len(header) - len(cells))) if not table.separator else cells
        if len(padded) == len(header):
            lines[number] = dict(zip(header, padded, strict=True))
        else:
            what = f"has {count(len(cells), 'cell')} under a header of {len(header)} columns."
            faults.append(Fault(table.where, number, what))
    return Lines(at, tuple(names), lines, tuple(faults))

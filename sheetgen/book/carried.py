"""The record that a workbook carries, JSON packed into hidden cells of text, and the digest of its yellow cells."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import json
import lzma
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sheetgen.answer.answer_record import Json, Record, as_json
from sheetgen.book.sheets import NONE, Cell, CellValue, Range, Ref, Sheet
from sheetgen.book.wiring import HEAD_ROWS, titled

RECORD = "meta_record_"  # of the names of its cells, with a number behind
IN_A_CELL = 32_767  # characters
MOST_BYTES, MOST_MEMORY = 50_000_000, 100_000_000
KEY_COLUMNS = {"models": "model_id", "gpus": "gpu", "instances": "instance", "precisions": "dtype"}
YELLOW_NAMES = ("in_", "cat_")
COMPARED = (  # of the JSON of a load
    "model", "workload", "tier", "verdict", "instance", "n_instances", "monthly_usd", "weights_bytes", "weight_dtype",
    "kv_cache_dtype", "tensor_parallel_size", "pipeline_parallel_size", "n_replicas", "n_gpus", "sized_by",
)  # fmt: skip


def packed(record: Mapping[str, object]) -> list[str]:
    """A record as texts that fit into cells."""
    data = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str).encode()
    text = base64.b64encode(lzma.compress(data)).decode()
    return [text[i : i + IN_A_CELL] for i in range(0, len(text), IN_A_CELL)]


def unpacked(texts: Iterable[str]) -> Any:
    """The object that was given to `packed`. Raises ValueError where a text is missing, was changed, or unpacks to more
    than MOST_BYTES."""
    try:
        unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
        data = unpacking.decompress(base64.b64decode("".join(texts), validate=True), MOST_BYTES)
        if not unpacking.eof:
            raise ValueError("it is cut short or too large")
        return json.loads(data)
    except (binascii.Error, lzma.LZMAError, EOFError, RecursionError) as error:
        raise ValueError(str(error)) from error


def put_record(
    names: dict[str, Ref | Range], sheet: Sheet, row: int, column: int, record: Mapping[str, object]
) -> None:
    """Place a record below a cell, each of its texts under a name."""
    for i, text in enumerate(packed(record)):
        name = f"{RECORD}{i + 1}"
        names[name] = sheet.put(row + i, column, Cell(text, "off_page"), name)


def record_sheet(names: dict[str, Ref | Range], record: Mapping[str, object]) -> Sheet:
    """A sheet with a record and nothing else."""
    about = "What this workbook answers as JSON has it, packed; sheetgen diff reads it."
    sheet = titled("Record", "Record", about, freeze=(HEAD_ROWS, 0))
    sheet.widths[0] = 60  # the title ends in its own column: text that runs over is printed
    put_record(names, sheet, HEAD_ROWS, 0, record)
    return sheet


def compared_part(record: Record) -> Json:
    """The part of a sheet's JSON that `diff` compares: its reasons, speeds and alternatives stand on other sheets."""
    document = as_json(record)
    facts = {name: document[name] for name in ("schema_version", "as_of", "inputs", "candidates")}
    return {**facts, "cells": [{name: _held(cell.get(name)) for name in COMPARED} for cell in document["cells"]]}


def results_beside_loads(names: Mapping[str, Ref | Range]) -> Json:
    """The results of Decision and of its cases, by name without rec_."""
    results = {name: ref for name, ref in names.items() if name.startswith(("rec_decision", "rec_case"))}
    return {name.removeprefix("rec_"): _held(ref.value) for name, ref in results.items() if isinstance(ref, Ref)}


LEVERS = "Levers"  # the sheet that `pull` does not build


def formula_digests(sheets: Iterable[Sheet]) -> dict[str, str]:
    """By sheet the digest of its formulas and their places: another build of sheetgen writes others."""
    digests: dict[str, str] = {}
    for sheet in sheets:
        lines = [f"{cell.formula.text}@{place}" for place, cell in sheet.cells.items() if cell.formula is not None]
        lines += [
            f"{row.formula.text}@{row.row},{row.left},{len(row)}" for row in sheet.rows if row.formula is not None
        ]
        if lines and sheet.name != LEVERS:
            digests[sheet.name] = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]
    return digests


def count_formulas(sheets: Iterable[Sheet]) -> dict[str, int]:
    """By sheet the number of its formulas that nobody is meant to type over."""
    return {
        sheet.name: sum(cell.formula is not None and cell.role != "input" for cell in sheet.cells.values())
        + sum(len(row) for row in sheet.rows if row.formula is not None)
        for sheet in sheets
    }


def yellow_digest(names: Mapping[str, Ref | Range]) -> str:
    """The digest of the values of a book's yellow cells."""
    yellow = {name: refs for name, refs in names.items() if name.startswith(YELLOW_NAMES)}
    columns = {name: [ref.value for ref in refs.refs] for name, refs in yellow.items() if isinstance(refs, Range)}
    return digest_of({name: refs.value for name, refs in yellow.items() if isinstance(refs, Ref)}, columns)


def digest_of(inputs: Mapping[str, CellValue], columns: Mapping[str, Sequence[CellValue]]) -> str:
    """One digest for values of inputs by name (in_...) and columns of tables (cat_...), however rows are ordered.

    The key of an instance is left out: it is a formula over its provider and type.
    """
    lines = [f"{name}={_text(inputs[name])}" for name in sorted(inputs)]
    tables: dict[str, list[str]] = defaultdict(list)
    for name in sorted(columns):
        table, _, column = name.removeprefix("cat_").partition("_")
        if (table, column) != ("instances", KEY_COLUMNS["instances"]):
            tables[table].append(name)
    for table, of_table in tables.items():
        rows = ("|".join(map(_text, row)) for row in zip(*(columns[name] for name in of_table), strict=True))
        lines += [table, *of_table, *sorted(row for row in rows if row.strip("|"))]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()


def _held(value: CellValue) -> CellValue:
    """A number rounded to the 15 digits that a cell of the workbook keeps; any other value unchanged."""
    if not isinstance(value, float):
        return value
    number = float(f"{value:.15g}")
    return int(number) if number.is_integer() else number


def _text(value: CellValue) -> str:
    """A value as text that every program keeps: numbers to the 15 digits that spreadsheets write, of which 12 count."""
    if isinstance(value, bool | int | float):
        return "" if math.isnan(value) else f"{float(f'{value:.15g}'):.12g}"
    if isinstance(value, datetime.date):
        return value.isoformat()[:10]
    return "" if value in (None, NONE) else str(value).strip()

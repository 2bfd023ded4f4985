"""The record: plain data that says all, prints as the JSON, and stands between the solution and whoever reads it."""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from answers import record_for

import sheetgen
from sheetgen.answer.answer_record import CellRecord, ChosenRecord, Record, as_json, keys_of
from sheetgen.answer.levers import levers_of_sheet
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask
from sheetgen.writers.csv import COLUMNS
from sheetgen.writers.formats import Options
from sheetgen.writers.json import write_json

ASKED = {"models": "8b,405b", "workloads": "rag", "tiers": "32", "gpus": "l4,h100", "as_of": "2026-11-20"}
OF_A_SOLUTION = {"Solution", "Fit", "Choice", "Pick", "solve", "tables", "pick", "why_not", "not_asked", "hosts_of"}
# Rooms that may have one: those that make the answer, the workbook's formulas, the hardware of many quarters, the
# derivation of any number; and who puts a question anew.
ROOMS = ("answer", "book", "plan/hardware_by_quarter", "explain", "api", "readback/pulled", "readback/month_bridge")


@functools.cache
def record(**more: str) -> Record:
    solved = solve(ask(Catalog(), ASKED | more))
    return record_for(solved, levers_of_sheet(solved))


def leaves(part: Any) -> Iterator[Any]:
    if is_dataclass(part):
        for field in fields(part):
            yield from leaves(getattr(part, field.name))
    elif isinstance(part, Mapping):
        yield from (*part, *(leaf for value in part.values() for leaf in leaves(value)))
    elif isinstance(part, (list, tuple)):
        yield from (leaf for value in part for leaf in leaves(value))
    else:
        yield part


@pytest.mark.parametrize("more", [{}, {"requests_per_second": "2"}, {"survive": "replica"}])
def test_it_is_plain_data(more: dict[str, str]) -> None:
    """No number of numpy, no object of the catalogs or of a solution is left in it, in what is not printed either."""
    assert {type(leaf) for leaf in leaves(record(**more))} <= {str, int, float, bool, type(None)}


@pytest.mark.parametrize("more", [{}, {"requests_per_second": "2"}])
def test_its_json_is_read_as_it_was_written(more: dict[str, str]) -> None:
    text = write_json(record(**more), Options())
    read = json.loads(text)
    assert read == as_json(record(**more)) and write_json(read, Options()) == text


def test_what_is_not_printed_has_no_key() -> None:
    fits, *_ = record().cells
    printed = set(as_json(fits))
    hidden = {
        field.name for part in (CellRecord, ChosenRecord) for field in fields(part) if "printed" in field.metadata
    }
    assert hidden and not printed & hidden and not printed & {"chosen", "units", "launch"}
    assert printed >= {*keys_of(ChosenRecord), "annual_usd"}


def test_a_load_that_nothing_holds_has_every_key_and_no_answer() -> None:
    cells = as_json(record(gpus="l4").cells)
    keys, fits = [list(cell) for cell in cells], [cell["verdict"] == "fits" for cell in cells]
    assert keys[0] == keys[-1] and fits == [True, False]
    assert {cells[-1][key] for key in keys_of(ChosenRecord)} == {None}
    assert set(keys[0]) >= set(COLUMNS) - {column for column in COLUMNS if column.startswith(("runner_up_", "budget_"))}


def test_nobody_but_who_makes_it_reads_a_solution() -> None:
    root, outside = Path(sheetgen.__file__).parent, dict[str, set[str]]()
    for file in root.rglob("*.py"):
        place = file.relative_to(root).with_suffix("").as_posix()
        if place.startswith(ROOMS):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("sheetgen.answer"):
                continue
            if names := {name.name for name in node.names} & OF_A_SOLUTION:
                outside.setdefault(place, set()).update(names)
    assert outside == {}

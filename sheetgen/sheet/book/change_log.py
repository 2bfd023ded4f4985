"""The Change log: which version and which catalog made the workbook, blank lines for those who change it next, and
what is no longer as built."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen.recommend import Solution
from sheetgen.scenario.inputs import LOG, LOG_LINES
from sheetgen.scenario.kinds import Kind
from sheetgen.sheet.accepts import accepts
from sheetgen.sheet.book.baseline import AsBuilt
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, titled
from sheetgen.sheet.model import Cell, Sheet
from sheetgen.sheet.page import Page
from sheetgen.units import DATE, PLAIN, TEXT

SCHEMA = 2
HEADS = ("What was changed, and why", "Where", "Was", "Is", "Who", "Date")
WIDTHS = (56, 22, 36, 36, 14, 12, 12, 13)


def build_log(solved: Solution, page: Page, wiring: Wiring, others: Sequence[Sheet] = ()) -> Sheet:
    """The sheet; `sheetgen pull` and `diff` read its names. others: sheets with choices of their own."""
    sheet = titled(
        "Change log",
        "Change log",
        "What made this workbook, and what was changed since: in words by people, and live by comparison.",
        freeze=(HEAD_ROWS, 0),
    )
    sheet.widths = dict(enumerate(WIDTHS))
    question = solved.question
    row = HEAD_ROWS
    for name, label, value, display in (
        ("meta_schema", "Layout of the workbook", SCHEMA, PLAIN),
        ("meta_version", "sheetgen", page.version, TEXT),
        ("meta_catalog_sha256", "Catalog, SHA-256", question.catalog_sha256, TEXT),
        ("meta_date", "Sheet's date, as built", question.as_of, DATE),
        ("", "Built with", options_words(question.options), TEXT),
        ("meta_options", "The same, as sheetgen pull reads it", options_text(question.options), TEXT),
    ):
        sheet.text(row, 0, label, "label")
        ref = sheet.put(row, 1, Cell(value, "small" if name == "meta_options" else "fixed", display), name or None)
        wiring.names |= {name: ref} if name else {}
        row += 1
    row += 1
    for column, head in enumerate(HEADS):
        sheet.text(row, column, head, "head")
    for line in range(LOG_LINES):
        for column, head in enumerate(HEADS):
            is_day, name = head == "Date", f"log_{line + 1}_{LOG[column]}"
            check = accepts(Kind("date"), head, "The day of the change.") if is_day else None
            cell = Cell(question.overrides.input(name, None), "input", DATE if is_day else TEXT, validation=check)
            wiring.names[f"in_{name}"] = sheet.put(row + 1 + line, column, cell, f"in_{name}")
    if wiring.baseline is None:
        return sheet
    rest = AsBuilt(sheet, row + LOG_LINES + 2, wiring)
    rest.changed_inputs()
    if others:
        rest.choices(others)
    rest.columns()
    return sheet


def options_words(options: Mapping[str, Any]) -> str:
    """The options of a build in words; what was typed over is told cell by cell below."""
    told = (f"{name.replace('_', ' ')} {options[name]}" for name in sorted(options) if name != "typed")
    return "; ".join(told) + ("; values typed over" if options.get("typed") else "")


def options_text(options: Mapping[str, Any]) -> str:
    """The options of a build as JSON, the same for the same options."""
    return json.dumps({k: options[k] for k in sorted(options)}, ensure_ascii=False, default=str)

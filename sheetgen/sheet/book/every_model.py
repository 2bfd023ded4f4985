"""Catalog: every model that What-if offers. Those of this workbook and the spare rows are read from Models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from sheetgen.catalog.model import Model
from sheetgen.formula import Expr, is_text, where
from sheetgen.recommend import Solution
from sheetgen.sheet.block import Down, Row
from sheetgen.sheet.book.catalogs import SHAPE
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, named, titled
from sheetgen.sheet.model import Cell, Range, Ref, Sheet, plain
from sheetgen.sheet.what_if import WhatIf
from sheetgen.sheet.what_if_state import NO_MODEL
from sheetgen.units import DTYPES, TEXT, WHOLE

TEXTS = ("model", "own_weight_dtype", "own_kv_dtype")
NUMBERS = (*(name for name, _, _ in SHAPE), *(f"checkpoint_{d}" for d in DTYPES))
_LABELS = {"model": "Model", "own_weight_dtype": "Own weights", "own_kv_dtype": "Own KV"}


def build_every_model(solved: Solution, one: WhatIf, wiring: Wiring) -> tuple[Sheet, dict[str, Range]]:
    """The sheet, and its columns by name: first the workbook's models, then the spare rows, then the catalog."""
    sheet = titled(
        "Catalog",
        "Catalog",
        "Every model that What-if offers, with the facts that sizing reads; sources: `sheetgen show NAME`.",
        freeze=(HEAD_ROWS + 1, 1),
    )
    labels = {**_LABELS, **{name: label for name, label, _ in SHAPE}}
    names = (*TEXTS, *NUMBERS)
    for column, name in enumerate(names):
        sheet.text(HEAD_ROWS, column, labels.get(name, name.replace("_", " ").capitalize()), "head")
        sheet.widths[column] = 30 if column == 0 else 13
    sheet.heights[HEAD_ROWS] = 32
    own = wiring.tables["models"]
    columns: dict[str, Sequence[Ref]] = {
        name: [
            _own(sheet, HEAD_ROWS + 1 + i, column, name, ref)
            for i, ref in enumerate([*own.columns[name], *own.spare[name]])
        ]
        for column, name in enumerate(names)
    }
    top = HEAD_ROWS + 1 + len(columns["model"])
    listed = [m for m in one.models if m.id not in {x.model.id for x in solved.question.models}]
    for i, model in enumerate(listed):
        _facts(sheet, top + i, model, columns)
    for k, name in enumerate(NUMBERS):
        first, facts = columns[name], [r for r in sheet.rows if r.formula is None]
        columns[name] = (*first, *Down(facts, k))
    return sheet, {name: named(wiring.names, f"tbl_every_model_{name}", refs) for name, refs in columns.items()}


def _own(sheet: Sheet, row: int, column: int, name: str, ref: Ref) -> Ref:
    """A cell of Models; a blank one of a spare row says so."""
    expr: Expr = ref.expr(sheet.name)
    if name == "model":
        expr = where(is_text(expr), expr, NO_MODEL)
        value: Any = ref.value or NO_MODEL
    elif name in TEXTS:
        expr = where(is_text(expr), expr, "bf16")
        value = ref.value or "bf16"
    else:
        value = plain(ref.value or 0)
    return sheet.formula(
        row, column, value, expr, TEXT if name in TEXTS else WHOLE, "link" if name not in TEXTS else "computed"
    )


def _facts(sheet: Sheet, row: int, model: Model, columns: dict[str, Any]) -> None:
    """A row of the catalog: texts, and numbers; a fact that is 0 is left blank, as its look-up is 0."""
    texts = (model.name, model.weight_dtype, model.kv_cache_dtype)
    for column, (name, text) in enumerate(zip(TEXTS, texts, strict=True)):
        columns[name].append(sheet.put(row, column, Cell(text, "label")))
    shape = model.shape()
    values = [shape.get(name) or None for name, _, _ in SHAPE] + [model.checkpoint_bytes(d) or None for d in DTYPES]
    facts = numpy.array(values, object)
    sheet.rows.append(Row(sheet.name, row, len(TEXTS), facts, None, "fixed", WHOLE, "both"))

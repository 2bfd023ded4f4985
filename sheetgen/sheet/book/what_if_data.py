"""What-if data: the chosen model, engine and GPUs, looked up, in the tables that the workings of a load read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.formula import Expr
from sheetgen.sheet.book.catalogs import SHAPE, derive_models
from sheetgen.sheet.book.every_engine import DEFAULTS, OF_GPU, EveryEngine, constants_of
from sheetgen.sheet.book.speed_inputs import CONSTANTS
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, titled
from sheetgen.sheet.model import Range, Ref, Sheet, index, plain, position
from sheetgen.sheet.what_if import ENGINE_ON_GPU, WhatIf
from sheetgen.units import FACTOR, PLAIN, TEXT, WHOLE


def build_data(
    one: WhatIf, picked: Mapping[str, Ref], every_model: Mapping[str, Range], every: EveryEngine,
    of: Wiring, wiring: Wiring,
) -> Sheet:  # fmt: skip
    """The sheet. picked: the page's dropdowns by name. of: the workbook's wiring; wiring: What-if's, filled here."""
    sheet = titled("What-if data", "What-if data", "What the choices on What-if stand for.", freeze=(HEAD_ROWS, 2))
    sheet.widths = {0: 34, 1: 20}
    wiring.inputs = {
        **of.inputs,
        "asked_weight_dtype": picked["weight_dtype"],
        "asked_kv_dtype": picked["kv_cache_dtype"],
    }
    wiring.lists = dict(of.lists)
    wiring.names = of.names
    wiring.tables["instances"] = of.tables["instances"]
    row = _engine(sheet, HEAD_ROWS, one, picked["engine"], every, wiring)
    row = _model(sheet, row + 1, one, picked["model"], every_model, wiring)
    _gpus(sheet, row + 1, one, picked["hardware"], every, of, wiring)
    return sheet


def at_row(sheet: Sheet, row: int, label: str, refs: Range, key: Ref, otherwise: int = 1) -> Ref:
    """Where a choice stands in its list, with its label; the first place where it stands nowhere."""
    sheet.text(row, 0, label, "label")
    value, expr = position(refs, key, sheet.name)
    return sheet.formula(row, 1, value, Expr(f"IFERROR({expr.text},{otherwise})"), PLAIN)


def _engine(sheet: Sheet, row: int, one: WhatIf, asked: Ref, every: EveryEngine, wiring: Wiring) -> int:
    """The chosen engine's constants, under the names that formulas read."""
    engine = one.solved.question.engine
    at = at_row(sheet, row, "Engine's column on Engines", every.constants["engine"], asked)
    wiring.inputs["engine_row"] = at
    names = [name for name in every.constants if name != "engine"]
    settings = one.solved.question.settings
    values = dict(zip(names, constants_of(engine, names), strict=True))
    values |= {name: getattr(settings, name) for name in DEFAULTS}
    apart: list[Ref] = []
    for name in names:
        row += 1
        sheet.text(row, 0, name.replace("_", " ").capitalize(), "label")
        value = plain(every.constants[name].refs[int(at.value) - 1].value)
        ref = sheet.formula(row, 1, value, index(every.constants[name], at, sheet.name), FACTOR)
        wiring.inputs[name] = ref
        if name.startswith(("non_torch_bytes_tp", "older_non_torch_bytes_tp")):
            apart.append(ref)
    wiring.lists["non_torch"] = Range(tuple(apart))
    return row + 1


def _model(sheet: Sheet, row: int, one: WhatIf, asked: Ref, every_model: Mapping[str, Range], wiring: Wiring) -> int:
    """A table of one row: the chosen model's facts, and what follows from them."""
    at = at_row(sheet, row, "Model's row on Catalog", every_model["model"], asked)
    wiring.inputs["model_row"] = at
    table = Table(sheet, row + 1, 0, 1, key=f"{wiring.prefix}models", names=wiring.names)
    wiring.tables["models"] = table
    labels = {name: label for name, label, _ in SHAPE}
    for name, refs in every_model.items():
        text = name in ("model", "model_id", "own_weight_dtype", "own_kv_dtype")

        def find(i: int, refs: Range = refs, text: bool = text) -> tuple[Any, Expr]:
            value = refs.refs[int(at.value) - 1].value
            return (value if text else plain(value or 0)), index(refs, at, sheet.name)

        label = labels.get(name, name.replace("_", " ").capitalize())
        table.looked_up(name, label, find, TEXT if text else WHOLE, width=14)
    derive_models(table, wiring)
    return row + 3


def _gpus(sheet: Sheet, row: int, one: WhatIf, asked: Ref, every: EveryEngine, of: Wiring, wiring: Wiring) -> None:
    """A row per GPU: first the chosen one, then those of the candidates, under the chosen engine."""
    instances = of.tables["instances"]
    chosen_gpu = one.solved.question.gpus[0].id
    here = sheet.name
    known, rows = every.of_gpu["gpu"], instances.range("instance")
    sheet.text(row, 0, "GPU of the chosen hardware", "label")
    at = f"MATCH({asked.expr(here).text},{rows.expr(here).text},0)"
    of_instance = f"INDEX({instances.range('instance_gpu').expr(here).text},{at})"
    gpu = sheet.formula(row, 1, chosen_gpu, Expr(f"IFERROR({of_instance},{asked.expr(here).text})"), TEXT)
    wiring.inputs["chosen_gpu"] = gpu
    table = Table(sheet, row + 1, 0, len(one.solved.question.gpus), key=f"{wiring.prefix}gpus", names=wiring.names)
    wiring.tables["gpus"] = table
    ids = [gpu, *of.tables["gpus"].columns["gpu"]]

    def find_gpu(i: int) -> tuple[Any, Expr]:
        return ids[i].value, ids[i].expr(here)

    table.looked_up("gpu", "GPU", find_gpu, TEXT, width=34)
    places = [r.value for r in known.refs]

    def find_row(i: int) -> tuple[Any, Expr]:
        key = table.columns["gpu"][i]
        expr = Expr(f"IFERROR(MATCH({key.expr(here).text},{known.expr(here).text},0),1)")
        return (places.index(key.value) + 1 if key.value in places else 1), expr

    table.looked_up("list_row", "Row among the GPUs", find_row, PLAIN, width=20)
    engine = wiring.inputs["engine_row"]

    def find_both(i: int) -> tuple[Any, Expr]:
        at = table.columns["list_row"][i]
        text = f"INDEX({every.both_row.expr(here).text},{at.expr(here).text},{engine.expr(here).text})"
        return every.row_of_both(int(at.value), int(engine.value)), Expr(text)

    table.looked_up("engine_and_gpu_row", "Row of limits and speed", find_both, PLAIN)

    def look(name: str, refs: Range, key: str) -> None:
        def find(i: int) -> tuple[Any, Expr]:
            at = table.columns[key][i]
            value = refs.refs[int(at.value) - 1].value
            return plain(value or 0) if name != "gpu_name" else value, index(refs, at, here)

        display = TEXT if name == "gpu_name" else FACTOR if name in CONSTANTS else WHOLE
        table.looked_up(name, name.replace("_", " ").capitalize(), find, display, width=14)

    for name in ("gpu_name", *OF_GPU):
        look(name, every.of_gpu[name], "list_row")
    for name in ENGINE_ON_GPU:
        look(name, every.of_both[name], "engine_and_gpu_row")

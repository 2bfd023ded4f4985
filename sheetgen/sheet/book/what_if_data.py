"""What-if data: the chosen model, engine and GPUs, looked up, in the tables that the workings of a load read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen.formula import Expr, formula, largest, where
from sheetgen.sheet.book.catalogs import SHAPE, derive_models
from sheetgen.sheet.book.every_engine import DEFAULTS, OF_GPU, EveryEngine, constants_of
from sheetgen.sheet.book.every_model import TEXTS
from sheetgen.sheet.book.speed_columns import CONSTANTS
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, titled
from sheetgen.sheet.model import NONE, Range, Ref, Sheet, index, place_of, plain
from sheetgen.sheet.what_if import AUTO, ENGINE_ON_GPU, WhatIf
from sheetgen.sheet.what_if_state import CHOICES, OK, choices_state, model_lacks
from sheetgen.units import AS_IT_IS, DTYPE_CHOICES, FACTOR, PLAIN, TENSOR_PARALLEL_SIZES, TEXT, WHOLE

LISTED = ("max_context_tokens", "n_layers")  # what is listed is not what is used where the choices cannot be answered
LISTS = {  # the defined name of each dropdown's list
    "model": "list_whatif_model", "hardware": "list_whatif_hardware", "tensor_parallel_size": "list_whatif_tp",
    "weight_dtype": "list_dtype", "kv_cache_dtype": "list_dtype", "engine": "list_whatif_engine",
}  # fmt: skip


def build_data(
    one: WhatIf, picked: Mapping[str, Ref], every_model: Mapping[str, Range], every: EveryEngine,
    of: Wiring, wiring: Wiring,
) -> Sheet:  # fmt: skip
    """The sheet. picked: the page's dropdowns by name. of: the workbook's wiring; wiring: What-if's, filled here."""
    sheet = titled("What-if data", "What-if data", "What the choices on What-if stand for.", freeze=(HEAD_ROWS, 2))
    sheet.widths = {0: 34, 1: 20}
    wiring.inputs = {
        **of.inputs,
    }
    wiring.lists = dict(of.lists)
    wiring.names = of.names
    wiring.tables["instances"] = of.tables["instances"]
    hardware = [*every.of_gpu["gpu"].refs, *of.tables["instances"].columns["instance"]]
    known = _known(sheet, HEAD_ROWS, picked, {
        "model": [r.value for r in every_model["model"].refs], "hardware": [r.value for r in hardware],
        "tensor_parallel_size": [AUTO, *TENSOR_PARALLEL_SIZES], "weight_dtype": DTYPE_CHOICES,
        "kv_cache_dtype": DTYPE_CHOICES, "engine": [r.value for r in every.constants["engine"].refs],
    })  # fmt: skip
    for asked, name in (("asked_weight_dtype", "weight_dtype"), ("asked_kv_dtype", "kv_cache_dtype")):
        at = known[name]
        wiring.inputs[asked] = sheet.compute(
            at.row, 2, dtype_or_auto, {"dtype": picked[name], "known": at}, display=TEXT
        )
    row = _engine(sheet, HEAD_ROWS + 1 + len(known), one, picked["engine"], every, wiring)
    row = _model(sheet, row + 1, one, picked, every_model, wiring, known)
    _gpus(sheet, row + 1, one, picked["hardware"], every, of, wiring)
    return sheet


@formula("Longest context in use")
def limit_in_use(max_context_tokens: Any, state: Any) -> Any:
    """The model's longest context; 0 where the choices cannot be answered.

    Source: the state beside.
    """
    return where(state == OK, max_context_tokens, 0)


@formula("Layers in use")
def layers_in_use(n_layers: Any) -> Any:
    """The model's layers, 1 at least: much is divided by them.

    Source: the column listed.
    """
    return largest(n_layers, 1)


def at_row(sheet: Sheet, row: int, label: str, refs: Range, key: Ref, otherwise: int = 1) -> Ref:
    """Where a choice stands in its list, with its label; the first place where it stands nowhere."""
    sheet.text(row, 0, label, "label")
    text = f"IFERROR(MATCH({key.expr(sheet.name).text},{refs.expr(sheet.name).text},0),{otherwise})"
    return sheet.formula(row, 1, place_of(refs, key.value) or otherwise, Expr(text), PLAIN)


def _known(sheet: Sheet, row: int, picked: Mapping[str, Ref], lists: Mapping[str, Sequence[Any]]) -> dict[str, Ref]:
    """A line for each choice that has a list: 1 where it stands there. A pattern (Lla*) does not."""
    found = {}
    for k, (name, listed) in enumerate(lists.items()):
        area, ref = LISTS[name], picked[name]
        asked = ref.expr(sheet.name).text
        text = f'IF(OR({asked}="{NONE}",{asked}=""),0,MIN(1,SUMPRODUCT(1*({area}={asked}))))'
        sheet.text(row + k, 0, f"{name.replace('_', ' ').capitalize()}: known (0 or 1)", "label")
        value = int(ref.value in listed and ref.value not in (NONE, None))
        found[name] = sheet.formula(row + k, 1, value, Expr(text), PLAIN)
    return found


@formula("Precision asked for", TEXT)
def dtype_or_auto(dtype: Any, known: Any) -> Any:
    """The precision chosen; auto where there is none of that name.

    Source: the list of precisions on Inputs.
    """
    return where(known == 1, dtype, AUTO)


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
        ref = sheet.formula(row, 1, value, index(every.constants[name], at, sheet.name), AS_IT_IS)
        wiring.inputs[name] = ref
        if name.startswith(("non_torch_bytes_tp", "older_non_torch_bytes_tp")):
            apart.append(ref)
    wiring.lists["non_torch"] = Range(tuple(apart))
    return row + 1


def _model(
    sheet: Sheet, row: int, one: WhatIf, picked: Mapping[str, Ref], every_model: Mapping[str, Range], wiring: Wiring,
    known: Mapping[str, Ref],
) -> int:  # fmt: skip
    """A table of one row: the chosen model's facts, and what follows from them.

    Where the choices cannot be answered the model takes no context at all, so that nothing is recommended.
    """
    at = at_row(sheet, row, "Model's row on Catalog", every_model["model"], picked["model"])
    wiring.inputs["model_row"] = at
    table = Table(sheet, row + 1, 0, 1, key=f"{wiring.prefix}models", names=wiring.names)
    wiring.tables["models"] = table
    labels = {name: label for name, label, _ in SHAPE}
    for name, refs in every_model.items():
        text = name in TEXTS

        def find(i: int, refs: Range = refs, text: bool = text) -> tuple[Any, Expr]:
            value = refs.refs[int(at.value) - 1].value
            return (value if text else plain(value or 0)), index(refs, at, sheet.name)

        label = labels.get(name, name.replace("_", " ").capitalize())
        name = f"listed_{name}" if name in LISTED else name
        table.looked_up(name, label, find, TEXT if text else WHOLE, width=14)
    listed = {name: table.columns[f"listed_{name}"][0] for name in LISTED}
    table.computed(model_lacks, lambda i: listed, name="facts")
    choices = {name: picked[name] for name in (*CHOICES, "users", "context_tokens", "answer_tokens", "tpot_ms")}
    choices |= {f"{name}_known": ref for name, ref in known.items()}
    table.computed(choices_state, lambda i: {**choices, "facts": table.columns["facts"][i]}, name="state")
    table.computed(limit_in_use, lambda i: listed | {"state": table.columns["state"][i]}, name="max_context_tokens")
    table.computed(layers_in_use, lambda i: listed, name="n_layers")
    wiring.inputs["choices_state"] = table.columns["state"][0]
    derive_models(table, wiring)
    return row + 3


def _gpus(sheet: Sheet, row: int, one: WhatIf, asked: Ref, every: EveryEngine, of: Wiring, wiring: Wiring) -> None:
    """A row per GPU: first the chosen one, then those of the candidates, under the chosen engine."""
    instances = of.tables["instances"]
    here = sheet.name
    known, rows = every.of_gpu["gpu"], instances.range("instance")
    sheet.text(row, 0, "GPU of the chosen hardware", "label")
    at = f"MATCH({asked.expr(here).text},{rows.expr(here).text},0)"
    of_instance = f"INDEX({instances.range('instance_gpu').expr(here).text},{at})"
    listed = place_of(rows, asked.value)
    chosen_gpu = asked.value if listed is None else instances.range("instance_gpu").refs[listed - 1].value or 0
    gpu = sheet.formula(row, 1, chosen_gpu, Expr(f"IFERROR({of_instance},{asked.expr(here).text})"), TEXT)
    wiring.inputs["chosen_gpu"] = gpu
    table = Table(sheet, row + 1, 0, len(one.solved.question.gpus), key=f"{wiring.prefix}gpus", names=wiring.names)
    wiring.tables["gpus"] = table
    ids = [gpu, *of.tables["gpus"].columns["gpu"]]

    def find_gpu(i: int) -> tuple[Any, Expr]:
        return ids[i].value, ids[i].expr(here)

    table.looked_up("gpu", "GPU", find_gpu, TEXT, width=34)

    def find_row(i: int) -> tuple[Any, Expr]:
        key = table.columns["gpu"][i]
        expr = Expr(f"IFERROR(MATCH({key.expr(here).text},{known.expr(here).text},0),1)")
        return place_of(known, key.value) or 1, expr

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

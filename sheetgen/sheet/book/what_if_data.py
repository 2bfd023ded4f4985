"""What-if behind its page: every model and GPU of the catalogs, and those chosen, in the tables that sizing reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy

from sheetgen.formula import Expr, formula, is_text, join_text, largest, where
from sheetgen.recommend import Solution
from sheetgen.recommend.solve import gpu_columns
from sheetgen.scenario.overrides import Overrides
from sheetgen.sheet.block import BlockColumn
from sheetgen.sheet.book import what_if_words
from sheetgen.sheet.book.catalogs import SHAPE, derive_models
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, named, titled
from sheetgen.sheet.book.words import prompt_tokens
from sheetgen.sheet.model import NONE, Cell, Range, Ref, Row, Sheet, Source, index, place_of, plain
from sheetgen.sheet.what_if import AUTO, WhatIf
from sheetgen.sheet.what_if_state import CHOICES, NO_MODEL, OK, choices_state, model_lacks
from sheetgen.sizing import admission
from sheetgen.units import AS_IT_IS, DTYPE_CHOICES, DTYPES, PLAIN, TENSOR_PARALLEL_SIZES, TEXT, WHOLE

LISTED = ("max_context_tokens", "n_layers")  # what is listed is not what is used where the choices cannot be answered
LISTS = {  # the defined name of each dropdown's list
    "model": "list_whatif_model", "hardware": "list_whatif_hardware", "tensor_parallel_size": "list_whatif_tp",
    "weight_dtype": "list_dtype", "kv_cache_dtype": "list_dtype",
}  # fmt: skip
DTYPES_OF_MODEL = ("own_weight_dtype", "own_kv_dtype")
FACTS = (*(name for name, _, _ in SHAPE), *(f"checkpoint_{d}" for d in DTYPES))
LABELS = {name: label for name, label, _ in SHAPE}


def _label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " ").capitalize())


def build_lists(solved: Solution, one: WhatIf, wiring: Wiring) -> Sheet:
    """Catalog: what the dropdowns offer. First the workbook's own models and the spare rows, whose facts are read
    from Models, then the catalog's; below them the GPUs, and the instances of Instances."""
    sheet = titled(
        "Catalog",
        "Catalog",
        "Every model and GPU that What-if offers, with the facts that sizing reads; sources: `sheetgen show NAME`.",
        freeze=(HEAD_ROWS + 1, 1),
    )
    own = wiring.tables["models"]
    names: list[Ref] = []
    for ref in (*own.columns["model"], *own.spare["model"]):
        expr = ref.expr(sheet.name)
        words = where(is_text(expr), expr, NO_MODEL)
        names.append(sheet.formula(HEAD_ROWS + 1 + len(names), 0, ref.value or NO_MODEL, words, TEXT))
    listed = [m for m in one.models if m.id not in {x.model.id for x in solved.question.models}]
    shapes = [m.shape() for m in listed]
    numbers = [
        [*(shape.get(name) for name, _, _ in SHAPE), *(m.checkpoint_bytes(d) for d in DTYPES)]
        for m, shape in zip(listed, shapes, strict=True)
    ]
    texts = [(m.name, m.weight_dtype, m.kv_cache_dtype) for m in listed]
    _facts(sheet, wiring, "model", HEAD_ROWS, ("model", *DTYPES_OF_MODEL), FACTS, texts, numbers, names)
    # GPUs of this workbook, too: where a reader changes one on GPUs, that row is read.
    values = gpu_columns(replace(solved.question, gpus=one.gpus, overrides=Overrides()))
    for what, runs in (("weights", "weights_run"), ("kv", "kv_run")):
        values |= {f"{what}_{d}": numpy.array([float(d in getattr(g, runs)) for g in one.gpus]) for d in DTYPES}
    of_gpu = [name for name in wiring.tables["gpus"].given_columns if name in values]
    top = HEAD_ROWS + len(names) + len(listed) + 2
    rows = [[float(values[name][i]) for name in of_gpu] for i in range(len(one.gpus))]
    gpu_texts = [(g.id, g.short_name) for g in one.gpus]
    gpus = _facts(sheet, wiring, "gpu", top, ("gpu", "gpu_name"), of_gpu, gpu_texts, rows, [])
    instances = wiring.tables["instances"].columns["instance"]
    hardware = [sheet.link(gpus[-1].row + 1 + i, 0, ref, TEXT) for i, ref in enumerate(instances)]
    wiring.names["list_whatif_hardware"] = Range((*gpus, *hardware))
    wiring.names["list_whatif_model"] = wiring.names["tbl_every_model_model"]
    return sheet


def _facts(
    sheet: Sheet, wiring: Wiring, key: str, top: int, texts: Sequence[str], numbers: Sequence[str],
    rows_of_texts: Sequence[Sequence[str]], rows: Sequence[Sequence[float | None]], before: list[Ref],
) -> list[Ref]:  # fmt: skip
    """A table of facts below its heads at `top`, and defined names for its columns; gives the first column.

    A fact that is 0 is left blank, as its look-up is 0. before: rows of which the first column alone is filled.
    """
    for column, name in enumerate((*texts, *numbers)):
        sheet.text(top, column, _label(name), "head")
        sheet.widths[column] = max(sheet.widths.get(column, 0), 30 if column == 0 else 13)
    sheet.heights[top] = 32
    first = top + 1 + len(before)
    found = []
    for i, (words, values) in enumerate(zip(rows_of_texts, rows, strict=True)):
        found.append([sheet.put(first + i, column, Cell(text, "label")) for column, text in enumerate(words)])
        blanks = numpy.array([v or None for v in values], object)
        sheet.rows.append(Row(sheet.name, first + i, len(texts), blanks, None, "fixed", AS_IT_IS, "both"))
    facts = sheet.rows[len(sheet.rows) - len(rows) :]
    empty = [Ref(sheet.name, top + 1 + i, 0, None) for i in range(len(before))]
    for column, name in enumerate((*texts, *numbers)):
        above = before if column == 0 else [ref._replace(column=column) for ref in empty]
        refs = [row[column] for row in found] if column < len(texts) else BlockColumn(facts, column - len(texts))
        named(wiring.names, f"tbl_every_{key}_{name}", (*above, *refs))
    return [*before, *(row[0] for row in found)]


def build_data(picked: Mapping[str, Ref], of: Wiring, wiring: Wiring) -> Sheet:
    """The sheet. picked: the page's dropdowns by name. of: the workbook's wiring, whose GPUs get a row for the chosen
    one; wiring: What-if's, filled here."""
    sheet = titled("What-if data", "What-if data", "What the choices on What-if stand for.", freeze=(HEAD_ROWS, 2))
    sheet.widths = {0: 34, 1: 20}
    wiring.inputs, wiring.lists, wiring.names = dict(of.inputs), dict(of.lists), of.names
    wiring.tables |= {name: of.tables[name] for name in ("instances", "gpus")}
    listed = {name: [r.value for r in _by_name(of, LISTS[name]).refs] for name in ("model", "hardware")}
    known = _known(sheet, HEAD_ROWS, picked, listed | {
        "tensor_parallel_size": [AUTO, *TENSOR_PARALLEL_SIZES], "weight_dtype": DTYPE_CHOICES,
        "kv_cache_dtype": DTYPE_CHOICES,
    })  # fmt: skip
    for asked, name in (("asked_weight_dtype", "weight_dtype"), ("asked_kv_dtype", "kv_cache_dtype")):
        at = known[name]
        wiring.inputs[asked] = sheet.compute(
            at.row, 2, dtype_or_auto, {"dtype": picked[name], "known": at}, display=TEXT
        )
    row = _model(sheet, HEAD_ROWS + 1 + len(known), picked, of, wiring, known)
    _gpu(sheet, row + 1, picked["hardware"], of, wiring)
    return sheet


def _by_name(of: Wiring, name: str) -> Range:
    refs = of.names[name]
    assert isinstance(refs, Range)
    return Range(refs.refs, name=name)


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


def _of_either(own: Range, own_at: Ref, every: Range, every_at: Ref, here: str, text: bool = False) -> tuple[Any, Expr]:
    """A fact of what was chosen: from the workbook's own rows where it is among them, else from Catalog."""
    first = index(own, own_at, here)
    if text:
        first = where(is_text(first), first, "bf16")
    expr: Expr = where(own_at.expr(here) > 0, first, index(every, every_at, here))
    value = own.refs[own_at.value - 1].value if own_at.value else every.refs[every_at.value - 1].value
    return (value or "bf16") if text else plain(value or 0), expr


def _model(
    sheet: Sheet, row: int, picked: Mapping[str, Ref], of: Wiring, wiring: Wiring, known: Mapping[str, Ref]
) -> int:
    """A table of one row: the chosen model's facts, and what follows from them.

    Where the choices cannot be answered the model takes no context at all, so that nothing is recommended.
    """
    here, models, names = sheet.name, of.tables["models"], _by_name(of, "list_whatif_model")
    n_own = len(models.columns["model"]) + len(models.spare["model"])
    at = at_row(sheet, row, "Model's row on Catalog", names, picked["model"])
    sheet.text(row + 1, 0, "Rows of Models, spare ones too", "label")
    rows = sheet.put(row + 1, 1, Cell(n_own, "fixed", PLAIN))
    sheet.text(row + 2, 0, "Its row on Models; 0: of Catalog alone", "label")
    expr = where(at.expr(here) <= rows.expr(here), at.expr(here), 0)
    own_at = sheet.formula(row + 2, 1, at.value if at.value <= n_own else 0, expr, PLAIN)
    table = Table(wiring, sheet, 1, "models", top=row + 3)
    words = f"What-if: {names.refs[at.value - 1].value}", join_text("What-if: ", index(names, at, here))
    table.looked_up("model", "Model", lambda i: words, TEXT)
    for name in (*DTYPES_OF_MODEL, *FACTS):
        own = Range([*models.columns[name], *models.spare[name]], name=f"cat_models_{name}")
        text = name in DTYPES_OF_MODEL
        found = _of_either(own, own_at, _by_name(of, f"tbl_every_model_{name}"), at, here, text)
        called = f"listed_{name}" if name in LISTED else name
        table.looked_up(called, _label(name), lambda i, f=found: f, TEXT if text else WHOLE, width=14)  # type: ignore[misc]
    listed = {name: table.columns[f"listed_{name}"] for name in LISTED}
    table.computed(model_lacks, listed, name="facts")
    choices = {name: picked[name] for name in (*CHOICES, "users", "context_tokens", "answer_tokens", "tpot_ms")}
    choices |= {f"{name}_known": ref for name, ref in known.items()}
    table.computed(choices_state, choices, name="state")
    table.computed(limit_in_use, listed, name="max_context_tokens")
    table.computed(layers_in_use, listed, name="n_layers")
    wiring.inputs["choices_state"] = table.columns["state"][0]
    derive_models(table)
    return row + 5


def at_instance(of: Wiring, column: str, asked: Ref, otherwise: Ref, here: str) -> tuple[Any, Expr]:
    """What Instances says of the one that was chosen, or something else where a GPU was."""
    rows, held = (of.tables["instances"].range(name) for name in ("instance", column))
    listed = place_of(rows, asked.value)
    at = f"INDEX({held.expr(here).text},MATCH({asked.expr(here).text},{rows.expr(here).text},0))"
    value = otherwise.value if listed is None else held.refs[listed - 1].value or 0
    return value, Expr(f"IFERROR({at},{otherwise.expr(here).text})")


def _gpu(sheet: Sheet, row: int, asked: Ref, of: Wiring, wiring: Wiring) -> None:
    """The chosen GPU's facts: a row below the others on GPUs."""
    gpus = of.tables["gpus"]
    gpu = sheet.formula(row, 1, *at_instance(of, "instance_gpu", asked, asked, sheet.name), TEXT,
                        label="GPU of the chosen hardware")  # fmt: skip
    every = {name.removeprefix("tbl_every_gpu_"): _by_name(of, name) for name in of.names if "tbl_every_gpu_" in name}
    own_at = at_row(sheet, row + 1, "Its row on GPUs; 0: of Catalog alone", gpus.range("gpu"), gpu, 0)
    every_at = at_row(sheet, row + 2, "Its row among the GPUs of Catalog", every["gpu"], gpu)
    for name, refs in every.items():
        last = gpus.columns[name][-1]
        look = gpus.sheet.cells[last.row, last.column]
        value, expr = _of_either(gpus.range(name), own_at, refs, every_at, gpus.sheet.name)
        gpus.below[name] = gpus.sheet.formula(last.row + 1, last.column, value, expr, look.display, lock="column")
    basis = gpus.columns["basis"][-1]
    gpus.sheet.text(basis.row + 1, basis.column, "What-if", "label")


STEPS = 25  # halvings: 2^24 tokens is beyond every model's context
HEADS = ("Fits up to", "Not beyond", "Tried", "Prompt", "Charged", "In windows", "Blocks", "Charged, alone",
         "In windows, alone", "Blocks, alone", "Fits (0 or 1)", "Fits up to then", "Not beyond then")  # fmt: skip


def add_longest_context(sheet: Sheet, env: Mapping[str, Source], answer_tokens: Ref, limit: Source) -> Ref:
    """The longest context at which one replica of the chosen size holds all users, step by step below all that stands
    on the sheet; gives the last step's cell. `env` has what the charge of a sequence reads."""
    row = below(sheet)
    for column, head in enumerate(HEADS, 1):
        sheet.text(row, column, head, "head")
    sheet.text(row, 0, "Longest context for all users, by halving", "section")
    sheet.text(row, len(HEADS) + 1, "Halves", "head")
    halves = sheet.put(row + 1, len(HEADS) + 1, Cell(2, "fixed", PLAIN))
    env = _beside(sheet, row, len(HEADS) + 2, env)
    low: Source = what_if_words.ZERO
    high: Source = limit
    put = partial(sheet.compute, lock="column")
    for step in range(STEPS):
        r = row + 1 + step
        a = sheet.formula(r, 1, low.value, low.expr(sheet.name), WHOLE, lock="column")
        b = sheet.formula(r, 2, high.value, high.expr(sheet.name), WHOLE, lock="column")
        tried = put(r, 3, what_if_words.middle_tokens, {"low": a, "high": b, "halves": halves})
        prompt = put(r, 4, prompt_tokens, {"context_tokens": tried, "answer_tokens": answer_tokens})
        asked = {**env, "context_tokens": tried, "max_model_len": tried, "input_tokens": prompt}
        charged = put(r, 5, admission.charged_tokens, asked)
        asked |= {"charged_tokens": charged}
        asked |= {"windowed_tokens": put(r, 6, admission.windowed_tokens, asked)}
        blocks = put(r, 7, admission.kv_blocks_per_sequence, asked)
        alone = {**env, "charged_tokens": put(r, 8, what_if_words.at_least_one, {"tried": tried})}
        alone |= {"windowed_tokens": put(r, 9, admission.windowed_tokens, alone)}
        alone_blocks = put(r, 10, admission.kv_blocks_per_sequence, alone)
        fits = put(r, 11, what_if_words.all_fit, {**env, "charged": blocks, "alone": alone_blocks})
        state = {"fits": fits, "tried": tried, "low": a, "high": b}
        low = put(r, 12, what_if_words.next_low, state)
        high = put(r, 13, what_if_words.next_high, state)
    assert isinstance(low, Ref)
    return low


def _beside(sheet: Sheet, row: int, column: int, env: Mapping[str, Source]) -> dict[str, Source]:
    """`env` with what has no name of its own brought into cells beside the steps: these then share their formulas."""
    read = {name for one in (admission.charged_tokens, admission.windowed_tokens, admission.kv_blocks_per_sequence,
                             what_if_words.all_fit) for name in one.inputs}  # fmt: skip
    apart = sorted(name for name in read & env.keys() if not getattr(env[name], "name", None))
    sheet.text(row, column, "Read by all steps", "head")
    sheet.text(row, column + 1, "", "head")
    found = dict(env)
    for r, name in enumerate(apart, row + 1):
        sheet.text(r, column, name.replace("_", " ").capitalize(), "label")
        found[name] = sheet.formula(r, column + 1, env[name].value, env[name].expr(sheet.name), WHOLE)
    return found


def below(sheet: Sheet) -> int:
    """The row after all that stands on a sheet, and a blank one."""
    return 2 + max(row for row, _ in sheet.cells)

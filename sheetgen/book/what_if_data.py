"""What-if behind its page: every model and GPU of the catalogs, and those chosen, in the tables that sizing reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy

from sheetgen.answer.sheet_facts import gpu_columns, runs_kv, runs_weights
from sheetgen.answer.solution import Solution
from sheetgen.book import figures
from sheetgen.book.catalogs import FIXED, SHAPE, derive_models, has_experts
from sheetgen.book.catalogs import LABELS as OF_MODELS
from sheetgen.book.lookups import ZERO, constant, entry_of, position_in, written
from sheetgen.book.sheets import (
    NONE,
    BlockColumn,
    Cell,
    Lookup,
    Range,
    Ref,
    Row,
    Sheet,
    Source,
    derived,
    lookup,
    worked_out,
)
from sheetgen.book.what_if_choices import AUTO, CHOICES, NO_MODEL, WhatIf
from sheetgen.book.wiring import HEAD_ROWS, Table, Wiring, in_words, named, titled
from sheetgen.formula import Expr, count_where, either, formula, is_text, largest, smallest, where
from sheetgen.program.quantities import CHARGE, TOKENS
from sheetgen.question.overrides import Overrides
from sheetgen.report import sentences
from sheetgen.units import AS_IT_IS, DTYPES, FACTOR, PLAIN, TENSOR_PARALLEL_SIZES, TEXT, WHOLE

LISTED = ("max_context_tokens", "n_layers")  # what is listed is not what is used where the choices cannot be answered
LISTS = {  # the defined name of each dropdown's list
    "model": "list_whatif_model", "hardware": "list_whatif_hardware", "tensor_parallel_size": "list_whatif_tp",
    "weight_dtype": "list_weight_dtype", "kv_cache_dtype": "list_dtype",
}  # fmt: skip
DTYPES_OF_MODEL = ("own_weight_dtype", "recommended_weight_dtype", "own_kv_dtype")
LABELS = {  # by fact of a model
    **{name: in_words(name) for name in DTYPES_OF_MODEL},
    **{name: label for name, label, _ in SHAPE},
    **{name: in_words(name) for name in (f"checkpoint_{d}" for d in DTYPES)},
}


def build_lists(solved: Solution, one: WhatIf, wiring: Wiring) -> Sheet:
    """Catalog: what the dropdowns offer. First the workbook's own models and the spare rows, whose facts are read
    from Models, then the catalog's; below them the GPUs, and the instances of Prices and hardware."""
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
        shown = where(is_text(expr), expr, NO_MODEL)
        names.append(sheet.formula(HEAD_ROWS + 1 + len(names), 0, ref.value or NO_MODEL, shown, TEXT))
    listed = [m for m in one.models if m.id not in {x.model.id for x in solved.question.models}]
    shapes = [solved.question.engine.as_kept(m).shape() | m.stage_shares() for m in listed]
    _facts(
        sheet,
        wiring,
        "model",
        HEAD_ROWS,
        {
            "model": [m.name for m in listed],
            "own_weight_dtype": [m.weight_dtype for m in listed],
            "recommended_weight_dtype": [solved.question.recommended_weights(m) for m in listed],
            "own_kv_dtype": [m.kv_cache_dtype for m in listed],
        },
        {name: [shape.get(name) for shape in shapes] for name in (*(name for name, _, _ in SHAPE), *FIXED)}
        | {f"checkpoint_{d}": [m.checkpoint_bytes(d) for m in listed] for d in DTYPES},
        names,
    )
    # GPUs of this workbook, too: where a reader changes one on GPUs, that row is read.
    values = gpu_columns(replace(solved.question, gpus=one.gpus, overrides=Overrides()))
    values |= {f"weights_{d}": numpy.array([float(runs_weights(g, d)) for g in one.gpus]) for d in DTYPES}
    values |= {f"kv_{d}": numpy.array([float(runs_kv(solved.question, g, d)) for g in one.gpus]) for d in DTYPES}
    of_gpu = [name for name in wiring.tables["gpus"].given_columns if name in values]
    gpus = _facts(
        sheet,
        wiring,
        "gpu",
        HEAD_ROWS + len(names) + len(listed) + 2,
        {"gpu": [g.id for g in one.gpus], "gpu_name": [g.short_name for g in one.gpus]},
        {name: [float(v) for v in values[name]] for name in of_gpu},
        [],
    )
    instances = wiring.tables["instances"].columns["instance"]
    hardware = [sheet.link(gpus[-1].row + 1 + i, 0, ref, TEXT) for i, ref in enumerate(instances)]
    wiring.names["list_whatif_hardware"] = Range((*gpus, *hardware))
    wiring.names["list_whatif_model"] = wiring.names["tbl_every_model_model"]
    return sheet


def _facts(
    sheet: Sheet,
    wiring: Wiring,
    key: str,
    top: int,
    texts: Mapping[str, Sequence[str]],
    numbers: Mapping[str, Sequence[float | None]],
    before: list[Ref],
) -> list[Ref]:
    """A table of facts below its heads at `top`, and defined names for its columns; gives the first column.

    A fact that is 0 is left blank, as its look-up is 0. before: rows of which the first column alone is filled.
    """
    first, left = top + 1 + len(before), len(texts)
    blanks = [(*(None for _ in before), *(v or None for v in values)) for values in numbers.values()]
    facts = [
        Row(sheet.name, top + 1 + i, left, row, None, "fixed", AS_IT_IS, "both")
        for i, row in enumerate(numpy.array(blanks, object).T)
    ]
    sheet.rows += facts[len(before) :]
    sheet.heights[top] = 32
    above, first_column = before, before
    for column, name in enumerate((*texts, *numbers)):
        sheet.text(top, column, LABELS.get(name, in_words(name)), "head")
        sheet.widths[column] = max(sheet.widths.get(column, 0), 30 if column == 0 else 13)
        refs: Sequence[Ref] = BlockColumn(facts, column - left)  # whose cells are made when they are read
        if name in texts:
            refs = [*above, *(sheet.put(first + i, column, Cell(text, "label")) for i, text in enumerate(texts[name]))]
            above = [Ref(sheet.name, ref.row, column + 1, None) for ref in before]
        if column == 0:
            first_column = list(refs)
        named(wiring.names, f"tbl_every_{key}_{name}", refs)
    return first_column


@formula("Longest context in use")
def limit_in_use(max_context_tokens: Any, state: Any) -> Any:
    """The model's longest context; 0 where the choices cannot be answered."""
    return where(state == sentences.OK, max_context_tokens, 0)


@formula("Layers in use")
def layers_in_use(n_layers: Any) -> Any:
    """The model's layers, 1 at least: much is divided by them."""
    return largest(n_layers, 1)


@formula("Precision requested", TEXT)
def dtype_or_auto(dtype: Any, known: Any) -> Any:
    """The precision chosen; auto where there is none of that name."""
    return where(known == 1, dtype, AUTO)


def build_data(picked: Mapping[str, Ref], of: Wiring, wiring: Wiring) -> Sheet:
    """The sheet. picked: the page's dropdowns by name. of: the workbook's wiring, whose GPUs get a row for the chosen
    one; wiring: What-if's, filled here."""
    sheet = titled("What-if data", "What-if data", "What the choices on What-if stand for.", freeze=(HEAD_ROWS, 2))
    sheet.widths = {0: 34, 1: 20}
    wiring.inputs, wiring.lists, wiring.names = dict(of.inputs), dict(of.lists), of.names
    wiring.tables |= {name: of.tables[name] for name in ("instances", "gpus")}
    # A line for each choice that has a list: 1 where it stands there. A pattern (Lla*) does not.
    known: dict[str, Ref] = {}
    for row, (name, area) in enumerate(LISTS.items(), HEAD_ROWS):
        sizes = [AUTO, *TENSOR_PARALLEL_SIZES] if name == "tensor_parallel_size" else None  # whose list comes below
        choices = sizes or [r.value for r in of.area(area).refs]
        value = int(picked[name].value in choices and picked[name].value not in (NONE, None))
        found = written(value, _stands_in, picked[name], Range((), name=area))
        known[name] = sheet.link(row, 1, found, PLAIN, "computed", label=f"{in_words(name)}: known (0 or 1)")
    for asked, name in (("asked_weight_dtype", "weight_dtype"), ("asked_kv_dtype", "kv_cache_dtype")):
        env = {"dtype": picked[name], "known": known[name]}
        wiring.inputs[asked] = sheet.compute(known[name].row, 2, dtype_or_auto, env, display=TEXT)
    row = _model(sheet, HEAD_ROWS + 1 + len(known), picked, of, wiring, known)
    _gpu(sheet, row + 1, picked["hardware"], of)
    return sheet


def _stands_in(choice: Expr, listed: Expr) -> Any:
    """1 where a choice is one of a list, else 0."""
    return where(either(choice == NONE, choice == ""), 0, smallest(1, count_where(listed == choice)))


def at_row(sheet: Sheet, row: int, label: str, refs: Range, key: Ref, otherwise: int = 1) -> Ref:
    """Where a choice stands in its list, with its label; the first place where it stands nowhere."""
    return sheet.link(row, 1, position_in(refs, key, constant(otherwise)), PLAIN, "computed", label=label)


def _of_either(own: Range, own_at: Ref, every: Range, every_at: Ref, is_text_: bool = False) -> Lookup:
    """A fact of what was chosen: from the workbook's own rows where it is among them, else from Catalog."""
    here, there = lookup(own, own_at), lookup(every, every_at)
    if is_text_:
        here = derived(lambda text: where(is_text(text), text, "bf16"), here)
    found = here.value if own_at.value else there.value
    return Lookup(
        found or ("bf16" if is_text_ else 0),
        lambda on: where(own_at.expr(on) > 0, here.expr(on), there.expr(on)),
    )


def _model(
    sheet: Sheet, row: int, picked: Mapping[str, Ref], of: Wiring, wiring: Wiring, known: Mapping[str, Ref]
) -> int:
    """A table of one row: the chosen model's facts, and what follows from them; gives the row after it.

    Where the choices cannot be answered the model takes no context at all, so that nothing is recommended.
    """
    models, names = of.tables["models"], of.area("list_whatif_model")
    n_own = len(models.columns["model"]) + len(models.spare["model"])
    at = at_row(sheet, row, "Model's row on Catalog", names, picked["model"])
    rows = sheet.put(row + 1, 1, Cell(n_own, "fixed", PLAIN), label="Rows of Models, spare ones too")
    own = derived(lambda at, rows: where(at <= rows, at, 0), at, rows)
    own_at = sheet.link(row + 2, 1, own, PLAIN, "computed", label="Its row on Models; 0: of Catalog alone")
    table = Table(wiring, sheet, 1, "models", top=row + 3)
    table.looked_up("model", "Model", [worked_out(sentences.what_if_model, {"model": lookup(names, at)})], TEXT)
    for name, label in LABELS.items():
        facts = Range([*models.columns[name], *models.spare[name]], name=f"cat_models_{name}")
        text = name in DTYPES_OF_MODEL
        found = _of_either(facts, own_at, of.area(f"tbl_every_model_{name}"), at, text)
        called = f"listed_{name}" if name in LISTED else name
        table.looked_up(called, label, [found], TEXT if text else WHOLE, width=14)
    of_own = _of_either(of.area("tbl_models_mixtures"), own_at, of.area("tbl_every_model_n_experts"), at)
    table.computed(has_experts, {"n_experts": of_own}, name="is_mixture", label=OF_MODELS["is_mixture"], width=14)
    for name in FIXED:
        found = _of_either(of.area(f"tbl_models_and_spare_{name}"), own_at, of.area(f"tbl_every_model_{name}"), at)
        table.looked_up(name, OF_MODELS[name], [found], FACTOR, width=14)
    listed = {name: table.columns[f"listed_{name}"] for name in LISTED}
    table.computed(sentences.model_lacks, listed, name="facts")
    of_load = ("users", "context_tokens", "answer_tokens", "tpot_ms", "ttft_ms")
    choices = {name: picked[name] for name in (*CHOICES, *of_load)}
    table.computed(
        sentences.choices_state, choices | {f"{name}_known": ref for name, ref in known.items()}, name="state"
    )
    table.computed(limit_in_use, listed, name="max_context_tokens")
    table.computed(layers_in_use, listed, name="n_layers")
    wiring.inputs["choices_state"] = table.columns["state"][0]
    derive_models(table)
    return row + 5


def at_instance(of: Wiring, column: str, asked: Ref, otherwise: Ref) -> Lookup:
    """What Prices and hardware says of the one that was chosen, or something else where a GPU was."""
    rows, held = (of.tables["instances"].range(name) for name in ("instance", column))
    return entry_of(held, rows, asked, otherwise)


def _gpu(sheet: Sheet, row: int, asked: Ref, of: Wiring) -> None:
    """The chosen GPU's facts: a row below the others on GPUs."""
    gpus = of.tables["gpus"]
    chosen = at_instance(of, "instance_gpu", asked, asked)
    gpu = sheet.link(row, 1, chosen, TEXT, "computed", label="GPU of the chosen hardware")
    every = {name.removeprefix("tbl_every_gpu_"): of.area(name) for name in of.names if "tbl_every_gpu_" in name}
    own_at = at_row(sheet, row + 1, "Its row on GPUs; 0: of Catalog alone", gpus.range("gpu"), gpu, 0)
    every_at = at_row(sheet, row + 2, "Its row among the GPUs of Catalog", every["gpu"], gpu)
    for name, refs in every.items():
        last = gpus.columns[name][-1]
        display = gpus.sheet.cells[last.row, last.column].display
        found = _of_either(gpus.range(name), own_at, refs, every_at)
        gpus.below[name] = gpus.sheet.link(last.row + 1, last.column, found, display, "computed", lock="column")
    basis = gpus.columns["basis"][-1]
    gpus.sheet.text(basis.row + 1, basis.column, "What-if", "label")


STEPS = 25  # halvings: 2^24 tokens is beyond every model's context
HEADS = (
    "Fits up to", "Not beyond", "Tried", "Prompt", "Charged", "At admission", "In windows", "Of compressors", "Blocks",
    "Kept in windows", "Kept of compressors", "Blocks kept", "Fits (0 or 1)", "Fits up to then", "Not beyond then",
)  # fmt: skip
FITS = len(HEADS) - 2  # the column of what fits, before the two of the next step
CHARGES = {"charged": "kv_blocks_per_sequence", "kept": "kv_blocks_per_sequence_steady"}


def add_longest_context(sheet: Sheet, env: Mapping[str, Source], answer_tokens: Ref, limit: Source) -> Ref:
    """The longest context at which one replica of the chosen size holds all requests, step by step below all that
    stands on the sheet; gives the last step's cell. `env` has what the charge of a sequence reads."""
    row = below(sheet)
    sheet.text(row, 0, "Longest context for all requests, by halving", "section")
    sheet.texts(row, 1, (*HEADS, "Halves"))
    halves = sheet.put(row + 1, len(HEADS) + 1, Cell(2, "fixed", PLAIN))
    env = _beside(sheet, row, len(HEADS) + 2, {**env, "pipeline_parallel_size": env["pipeline_stages"]})
    low: Source = ZERO
    high: Source = limit
    put = partial(sheet.compute, lock="column")
    for r in range(row + 1, row + 1 + STEPS):
        a = sheet.formula(r, 1, low.value, low.expr(sheet.name), WHOLE, lock="column")
        b = sheet.formula(r, 2, high.value, high.expr(sheet.name), WHOLE, lock="column")
        tried = put(r, 3, figures.middle_tokens, {"low": a, "high": b, "halves": halves})
        prompt = put(r, 4, *figures.prompt_of(env, tried, answer_tokens))
        asked = {**env, "context_tokens": tried, "max_model_len": tried, "input_tokens": prompt}
        for column, one in enumerate((*TOKENS, *CHARGE), 5):
            asked |= {one.name: put(r, column, one, asked)}
        charges = {name: asked[of] for name, of in CHARGES.items()}
        state = {"fits": put(r, FITS, figures.all_fit, env | charges), "tried": tried, "low": a, "high": b}
        low = put(r, FITS + 1, figures.next_low, state)
        high = put(r, FITS + 2, figures.next_high, state)
    assert isinstance(low, Ref)
    return low


def _beside(sheet: Sheet, row: int, column: int, env: Mapping[str, Source]) -> dict[str, Source]:
    """`env` with what has no name of its own brought into cells beside the steps: these then share their formulas."""
    read = {name for one in (*TOKENS, *CHARGE, figures.all_fit) for name in one.inputs}
    apart = sorted(name for name in read & env.keys() if not getattr(env[name], "name", None))
    sheet.texts(row, column, ("Read by all steps", ""))
    brought = {
        name: sheet.formula(r, column + 1, env[name].value, env[name].expr(sheet.name), WHOLE, label=in_words(name))
        for r, name in enumerate(apart, row + 1)
    }
    return {**env, **brought}


def below(sheet: Sheet) -> int:
    """The row after all that stands on a sheet, and a blank one."""
    return 2 + max(row for row, _ in sheet.cells)

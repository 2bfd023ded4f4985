"""The data behind Decision: every model of the catalogs, and the chosen model, in the tables that sizing reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy

from sheetgen.answer.solution import Solution
from sheetgen.book.catalogs import FIXED, SHAPE, derive_models, has_experts
from sheetgen.book.catalogs import LABELS as OF_MODELS
from sheetgen.book.decision_choices import (
    ANY,
    AS_TYPED,
    AUTO,
    CHOICES,
    NO_MODEL,
    Choices,
    n_table_rows,
    providers,
    regions,
)
from sheetgen.book.inputs_sheet import CLASSES
from sheetgen.book.lookups import constant, position_in, written
from sheetgen.book.sheets import (
    NONE,
    BlockColumn,
    Cell,
    Lookup,
    Range,
    Ref,
    Row,
    Sheet,
    derived,
    lookup,
    worked_out,
)
from sheetgen.book.wiring import HEAD_ROWS, Table, Wiring, in_words, named, titled
from sheetgen.formula import Expr, Quantity, Value, count_where, either, formula, is_text, largest, smallest, where
from sheetgen.question.inputs import ASKS
from sheetgen.report import sentences
from sheetgen.report.wording import mixed_name
from sheetgen.units import AS_IT_IS, DTYPES, FACTOR, PLAIN, TEXT, WHOLE

LISTED = ("max_context_tokens", "n_layers")  # listed values are not used where the choices cannot be answered
LISTS = {  # the defined name of each dropdown's list
    "model": "list_decision_model", "workload": "list_decision_workload",
    "weight_dtype": "list_weight_dtype", "kv_cache_dtype": "list_dtype",
    "purchase": CLASSES, "provider": "list_decision_provider", "region": "list_decision_region",
}  # fmt: skip
# By row of the table of the chosen model its differences from the choices: precision of weights, of the cache.
PRECISIONS = ((None, None), ("published", None), (None, "fp8"), ("int4", None))
DTYPES_OF_MODEL = ("own_weight_dtype", "recommended_weight_dtype", "own_kv_dtype")
LABELS = {  # by fact of a model
    **{name: in_words(name) for name in DTYPES_OF_MODEL},
    **{name: label for name, label, _ in SHAPE},
    **{name: in_words(name) for name in (f"checkpoint_{d}" for d in DTYPES)},
}


def build_lists(solved: Solution, choices: Choices, wiring: Wiring) -> Sheet:
    """Catalog: what the dropdowns offer. First the workbook's own models and the spare rows, whose facts are read
    from Models, then the catalog's."""
    sheet = titled(
        "Catalog",
        "Catalog",
        "Every model that Decision offers, with the facts that sizing reads; sources: `sheetgen show NAME`.",
        freeze=(HEAD_ROWS + 1, 1),
    )
    own = wiring.tables["models"]
    names: list[Ref] = []
    for ref in (*own.columns["model"], *own.spare["model"]):
        expr = ref.expr(sheet.name)
        shown = where(is_text(expr), expr, NO_MODEL)
        names.append(sheet.formula(HEAD_ROWS + 1 + len(names), 0, ref.value or NO_MODEL, shown, TEXT))
    listed = [m for m in choices.models if m.id not in {x.model.id for x in solved.question.models}]
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
            "mixed_weights": [mixed_name(m, m.weight_dtype) for m in listed],
        },
        {name: [shape.get(name) for shape in shapes] for name in (*(name for name, _, _ in SHAPE), *FIXED)}
        | {f"checkpoint_{d}": [m.checkpoint_bytes(d) for m in listed] for d in DTYPES},
        names,
    )
    wiring.names["list_decision_model"] = wiring.names["tbl_every_model_model"]
    question = solved.question
    for name, used in (("provider", providers(question)), ("region", regions(question))):
        n_rows = n_table_rows(used, (getattr(candidate, name) for candidate in question.rows))
        _list(sheet, wiring, name, ANY, wiring.tables["instances"].range(f"{name}_in_order").refs[:n_rows])
    _list(sheet, wiring, "workload", AS_TYPED, wiring.area("list_workload").refs)
    return sheet


def _facts(
    sheet: Sheet,
    wiring: Wiring,
    key: str,
    top: int,
    texts: Mapping[str, Sequence[str | None]],
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
        refs: Sequence[Ref] = BlockColumn(facts, column - left)  # its cells are made when they are read
        if name in texts:
            refs = [*above, *(_label(sheet, first + i, column, text) for i, text in enumerate(texts[name]))]
            above = [Ref(sheet.name, ref.row, column + 1, None) for ref in before]
        if column == 0:
            first_column = list(refs)
        named(wiring.names, f"tbl_every_{key}_{name}", refs)
    return first_column


def _label(sheet: Sheet, row: int, column: int, text: str | None) -> Ref:
    """A cell with a text; none where there is no text."""
    return Ref(sheet.name, row, column, None) if text is None else sheet.put(row, column, Cell(text, "label"))


@formula("Longest context in use")
def limit_in_use(max_context_tokens: Quantity, state: Value) -> Value:
    """The model's longest context; 0 where the choices cannot be answered."""
    return where(state == sentences.OK, max_context_tokens, 0)


@formula("Layers in use")
def layers_in_use(n_layers: Quantity) -> Value:
    """The model's layers, 1 at least: much is divided by them."""
    return largest(n_layers, 1)


@formula("Precision requested", TEXT)
def dtype_or_auto(dtype: Value, known: Quantity) -> Value:
    """The precision chosen; auto where there is none of that name."""
    return where(known == 1, dtype, AUTO)


def build_data(picked: Mapping[str, Ref], book: Wiring, wiring: Wiring) -> Sheet:
    """The sheet Decision data. picked: the page's choices by name. book: the workbook's wiring; wiring: Decision's,
    filled here."""
    sheet = titled("Decision data", "Decision data", "What the choices on Decision stand for.", freeze=(HEAD_ROWS, 2))
    sheet.widths = {0: 34, 1: 20}
    wiring.inputs, wiring.lists, wiring.names = dict(book.inputs), dict(book.lists), book.names
    wiring.tables |= {name: book.tables[name] for name in ("instances", "gpus")}
    # A line for each choice that has a list: 1 where it stands there. A pattern (Lla*) does not.
    listed_flags: dict[str, Ref] = {}
    for row, (name, area) in enumerate(LISTS.items(), HEAD_ROWS):
        offers = {ref.value for ref in book.area(area).refs} - {None, NONE}  # a list's spare rows hold no name
        value = int(picked[name].value in offers)
        flag = written(value, _stands_in, picked[name], Range((), name=area))
        listed_flags[name] = sheet.link(row, 1, flag, PLAIN, "computed", label=f"{in_words(name)}: known (0 or 1)")
    for asked, name in (("asked_weight_dtype", "weight_dtype"), ("asked_kv_dtype", "kv_cache_dtype")):
        env = {"dtype": picked[name], "known": listed_flags[name]}
        wiring.inputs[asked] = sheet.compute(listed_flags[name].row, 2, dtype_or_auto, env, display=TEXT)
    _model(sheet, HEAD_ROWS + 1 + len(listed_flags), picked, book, wiring, listed_flags)
    return sheet


def _list(sheet: Sheet, wiring: Wiring, name: str, first: str, listed: Sequence[Ref]) -> None:
    """The entries of a choice's dropdown: a first entry of its own, then the cells `listed`."""
    column = 2 + max(sheet.widths)
    sheet.text(HEAD_ROWS, column, f"{name.capitalize()}s", "head")
    sheet.widths[column] = 20
    own = sheet.text(HEAD_ROWS + 1, column, first, "label")
    rows = [sheet.link(HEAD_ROWS + 2 + i, column, ref, TEXT) for i, ref in enumerate(listed)]
    wiring.names[LISTS[name]] = Range((own, *rows))


def _stands_in(choice: Expr, listed: Expr) -> Value:
    """1 where a choice is one of a list, else 0."""
    return where(either(choice == NONE, choice == ""), 0, smallest(1, count_where(listed == choice)))


def at_row(sheet: Sheet, row: int, label: str, refs: Range, key: Ref, otherwise: int = 1) -> Ref:
    """The position of a choice in its list, with a label; the first position where the list lacks it."""
    return sheet.link(row, 1, position_in(refs, key, constant(otherwise)), PLAIN, "computed", label=label)


def _of_either(own: Range, own_at: Ref, every: Range, every_at: Ref, is_text_: bool = False) -> Lookup:
    """A fact of the chosen model: from the workbook's own rows where it is among them, else from Catalog."""
    here, there = lookup(own, own_at), lookup(every, every_at)
    if is_text_:
        here = derived(lambda text: where(is_text(text), text, "bf16"), here)
    value = here.value if own_at.value else there.value
    return Lookup(
        value or ("bf16" if is_text_ else 0),
        lambda on: where(own_at.expr(on) > 0, here.expr(on), there.expr(on)),
    )


def _model(
    sheet: Sheet, row: int, picked: Mapping[str, Ref], book: Wiring, wiring: Wiring, listed_flags: Mapping[str, Ref]
) -> None:
    """A table of the chosen model's facts, and what follows from them, in each precision in which it is answered.

    Where the choices cannot be answered the model takes no context at all, so that nothing is recommended.
    """
    models, names = book.tables["models"], book.area("list_decision_model")
    n_own = len(models.columns["model"]) + len(models.spare["model"])
    catalog_row = at_row(sheet, row, "Model's row on Catalog", names, picked["model"])
    rows = sheet.put(row + 1, 1, Cell(n_own, "fixed", PLAIN), label="Rows of Models, spare ones too")
    own = derived(lambda place, rows: where(place <= rows, place, 0), catalog_row, rows)
    own_at = sheet.link(row + 2, 1, own, PLAIN, "computed", label="Its row on Models; 0: of Catalog alone")
    wiring.inputs["own_model_row"] = own_at
    n_rows = len(PRECISIONS)
    table = Table(wiring, sheet, n_rows, "models", top=row + 3)
    table.looked_up(
        "model", "Model", [worked_out(sentences.decision_model, {"model": lookup(names, catalog_row)})] * n_rows, TEXT
    )
    for name, label in LABELS.items():
        facts = Range([*models.columns[name], *models.spare[name]], name=f"cat_models_{name}")
        text = name in DTYPES_OF_MODEL
        fact = _of_either(facts, own_at, book.area(f"tbl_every_model_{name}"), catalog_row, text)
        called = f"listed_{name}" if name in LISTED else name
        table.looked_up(called, label, [fact] * n_rows, TEXT if text else WHOLE, width=14)
    mixed = book.area("tbl_models_and_spare_mixed_weights"), book.area("tbl_every_model_mixed_weights")
    fact = _of_either(mixed[0], own_at, mixed[1], catalog_row)
    table.looked_up("mixed_weights", "Mixed weights", [fact] * n_rows, TEXT, width=22)
    of_own = _of_either(book.area("tbl_models_mixtures"), own_at, book.area("tbl_every_model_n_experts"), catalog_row)
    table.computed(has_experts, {"n_experts": of_own}, name="is_mixture", label=OF_MODELS["is_mixture"], width=14)
    for name in FIXED:
        fact = _of_either(
            book.area(f"tbl_models_and_spare_{name}"), own_at, book.area(f"tbl_every_model_{name}"), catalog_row
        )
        table.looked_up(name, OF_MODELS[name], [fact] * n_rows, FACTOR, width=14)
    listed = {name: table.columns[f"listed_{name}"] for name in LISTED}
    table.computed(sentences.model_lacks, listed, name="facts")
    lengths = "context_tokens", "answer_tokens"
    of_load = ("users", ASKS, "concurrent_requests", *lengths, "tpot_ms", "ttft_ms", "confidence")
    choices = {name: picked[name] for name in (*CHOICES, *of_load)}
    table.computed(
        sentences.choices_state, choices | {f"{name}_known": ref for name, ref in listed_flags.items()}, name="state"
    )
    table.computed(limit_in_use, listed, name="max_context_tokens")
    table.computed(layers_in_use, listed, name="n_layers")
    wiring.inputs["choices_state"] = table.columns["state"][0]
    for which, place in (("weight_dtype", 0), ("kv_dtype", 1)):
        asked = wiring.inputs[f"asked_{which}"]
        choice = [precisions[place] for precisions in PRECISIONS]
        refs = [asked if dtype is None else constant(dtype) for dtype in choice]
        table.looked_up(f"choice_{which}", f"Asked here, {in_words(which)}", refs, TEXT)
    derive_models(table)


def below(sheet: Sheet) -> int:
    """The row below the last one of a sheet, after a blank one."""
    return 2 + max(row for row, _ in sheet.cells)

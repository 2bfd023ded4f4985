"""The Sizing sheet: the one page of the workbook. Everything on it is looked up; nothing is worked out here."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Expr
from sheetgen.recommend import Solution
from sheetgen.sheet.book.words import cell_position, dearer_by, in_unit, rent_words, short_tokens
from sheetgen.sheet.book.wiring import Wiring
from sheetgen.sheet.model import Cell, Found, Range, Ref, Sheet, Validation, found, position
from sheetgen.sheet.one_page import OnePage
from sheetgen.units import DATE, ONE_DECIMAL, PERCENT, PLAIN, TEXT, UNIT_NAMES, USD, WHOLE, Display

LOAD_COLUMNS = 3  # workload, in flight, then a group of columns per model
GROUP = ("KV", "Fit", "Recommended", "$ / month")


def build_sizing(solved: Solution, page: OnePage, wiring: Wiring) -> Sheet:
    """The first sheet: the headline per model, weights, the matrix, assumptions in use, dates, legend."""
    n_models = len(solved.question.models)
    sheet = Sheet("Sizing sheet", one_page=True, about="the page")
    sheet.widths = {0: 15, 1: 11, 2: 2}
    for m in range(n_models):
        for k, width in enumerate((10, 10, 33, 13)):
            sheet.widths[_group(m) + k] = width
        sheet.widths[_group(m) + 4] = 1.5
    sheet.text(0, 0, page.title, "title")
    sheet.text(1, 0, "Change any yellow cell here or on Inputs, Models, GPUs, Instances: everything recomputes. "
               f"Amounts in {UNIT_NAMES[solved.question.settings.units]}.", "subtitle")
    row = _headline(solved, wiring, sheet)
    row = _weights(solved, wiring, sheet, row + 1)
    row = _matrix(solved, wiring, sheet, row + 1)
    _foot(solved, page, wiring, sheet, row + 1)
    return sheet


def _group(model: int) -> int:
    """The first column of a model's group; a narrow blank column stands between groups."""
    return LOAD_COLUMNS + model * (len(GROUP) + 1)


def _bar(sheet: Sheet, row: int, first: str, texts: list[Ref]) -> None:
    """A dark bar with the models' names over their groups."""
    for column in (0, 1):
        sheet.text(row, column, first if column == 0 else "", "section")
    for m, ref in enumerate(texts):
        sheet.link(row, _group(m), ref, TEXT, "section")
        for k in range(1, len(GROUP)):
            sheet.text(row, _group(m) + k, "", "section")


def _headline(solved: Solution, wiring: Wiring, sheet: Sheet) -> int:
    """Two dropdowns choose the load; below them, per model, what to rent."""
    question, cells = solved.question, wiring.tables["cells"]
    w, t = question.headline
    names = [x.name for x in question.workloads]
    top = 3
    _bar(sheet, top, "Headline", wiring.tables["models"].columns["model"])
    choose = Validation("Workload", "One of the workloads of this sheet.", source="list_workload")
    tier = Validation("In flight", "One of the tiers on Inputs.", source="list_tier")
    sheet.text(top + 1, 0, "Workload", "label")
    workload_ref = sheet.put(top + 1, 1, Cell(names[w], "input", TEXT, validation=choose), "in_headline_workload")
    sheet.text(top + 2, 0, "In flight", "label")
    tier_ref = sheet.put(top + 2, 1, Cell(question.tiers[t], "input", WHOLE, validation=tier), "in_headline_tier")
    wiring.names |= {"in_headline_workload": workload_ref, "in_headline_tier": tier_ref}
    listed, tiers, contexts = wiring.names["list_workload"], wiring.lists["tiers"], wiring.lists["contexts"]
    wp = sheet.formula(top + 3, 1, *_at(listed, workload_ref, sheet), PLAIN, "small")
    tp = sheet.formula(top + 4, 1, *_at(tiers, tier_ref, sheet), PLAIN, "small")
    sheet.text(top + 3, 0, "their positions", "small")
    counts = {
        "n_workloads": Found(len(names), lambda here: Expr(f"COUNT({contexts.expr(here).text})")),
        "n_tiers": Found(len(question.tiers), lambda here: Expr(f"COUNT({tiers.expr(here).text})")),
    }
    for m in range(len(question.models)):
        left = _group(m)
        model_row = Found(m + 1, lambda here, m=m: Expr(f"MATCH({wiring.tables['models'].columns['model'][m].expr(here).text},"
                                                       f"{wiring.tables['models'].range('model').expr(here).text},0)"))
        at = sheet.compute(top + 5, left + 3, cell_position, {"model_row": model_row, "workload_position": wp,
                           "tier_position": tp, **counts}, role="small")  # fmt: skip
        sheet.text(top + 5, left + 2, "row on Workings", "small")

        def of(name: str, at: Ref = at) -> Found:
            return found(cells.range(name), at)

        sheet.compute(top + 1, left, rent_words, {"n_instances": of("n_instances"), "instance": of("instance")}, role="answer")
        _found(sheet, top + 2, left, of("monthly_usd"), USD, "answer")
        sheet.text(top + 2, left + 2, "per month", "label")
        for k, (label, name, display) in enumerate(
            (("GPUs", "n_gpus", WHOLE), ("GPU", "gpu_name", TEXT), ("TP", "tensor_parallel_size", PLAIN),
             ("PP", "pipeline_stages", PLAIN), ("replicas", "n_replicas", WHOLE), ("headroom", "headroom", PERCENT))
        ):  # fmt: skip
            sheet.text(top + 3 + k, left, label, "label")
            _found(sheet, top + 3 + k, left + 1, of(name), display)
        sheet.text(top + 3, left + 2, "then:", "label")
        _found(sheet, top + 4, left + 2, of("runner_up"), TEXT)
        sheet.compute(top + 4, left + 3, dearer_by, {"monthly_usd": of("monthly_usd"),
                      "runner_up_monthly_usd": _none_if_zero(of("second"))})
        sheet.text(top + 6, left + 2, "the load's KV", "label")
        _found(sheet, top + 6, left + 3, of("kv_in_unit"), ONE_DECIMAL)
    return top + 9


def _none_if_zero(second: Found) -> Found:
    """The runner-up's cost, or the sign for none where there is no other GPU or provider."""
    return Found(second.value or "-", lambda here: Expr(f'IF({second.expr(here).text}=0,"-",{second.expr(here).text})'))


def _at(refs: Any, key: Ref, sheet: Sheet) -> tuple[int, Expr]:
    return position(refs, key, sheet.name)


def _found(sheet: Sheet, row: int, column: int, what: Found, display: Display, role: str = "computed") -> Ref:
    return sheet.formula(row, column, what.value, what.expr(sheet.name), display, role)


def _weights(solved: Solution, wiring: Wiring, sheet: Sheet, top: int) -> int:
    """Weights at BF16 and FP8, KV per token."""
    models = wiring.tables["models"]
    unit = UNIT_NAMES[solved.question.settings.units]
    _bar(sheet, top, "Weights and KV", models.columns["model"])
    lines = (
        (f"Weights BF16, {unit}", "weights_bf16_in_unit", ONE_DECIMAL),
        (f"Weights FP8, {unit}", "weights_fp8_in_unit", ONE_DECIMAL),
        ("KV bytes per token", "kv_bytes_per_token", WHOLE),
    )
    for k, (label, name, display) in enumerate(lines):
        sheet.text(top + 1 + k, 0, label, "label")
        for m in range(len(solved.question.models)):
            sheet.link(top + 1 + k, _group(m) + 1, models.columns[name][m], display)
    for m in range(len(solved.question.models)):
        for k, (label, name) in enumerate((("weights in use", "weight_dtype"), ("KV cache in use", "kv_dtype"))):
            sheet.text(top + 1 + k, _group(m) + 2, label, "right_label")
            sheet.link(top + 1 + k, _group(m) + 3, models.columns[name][m], TEXT)
    return top + 1 + len(lines)


def _matrix(solved: Solution, wiring: Wiring, sheet: Sheet, top: int) -> int:
    """Models x tiers within workloads: KV, fit, what to rent, $ per month."""
    question, cells = solved.question, wiring.tables["cells"]
    n_w, n_t = len(question.workloads), len(question.tiers)
    unit = UNIT_NAMES[question.settings.units]
    _bar(sheet, top, "Load", wiring.tables["models"].columns["model"])
    sheet.text(top + 1, 0, "Workload", "head")
    sheet.text(top + 1, 1, "In flight", "head")
    for m in range(len(question.models)):
        for k, label in enumerate(GROUP):
            sheet.text(top + 1, _group(m) + k, f"KV, {unit}" if k == 0 else label, "head")
    for w, workload in enumerate(question.workloads):
        for t in range(n_t):
            row = top + 2 + w * n_t + t
            rule = "_last" if t == n_t - 1 else ""
            if t == 0:
                sheet.text(row, 0, workload.name, "workload")
            elif t == 1:
                env = {**wiring.inputs, "tokens": wiring.lists["contexts"].refs[w]}
                sheet.compute(row, 0, short_tokens, env, role="context" + rule)
            else:
                sheet.text(row, 0, "", "context" + rule)
            sheet.link(row, 1, wiring.lists["tiers"].refs[t], WHOLE, "tier" + rule)
            for m in range(len(question.models)):
                at, left = (m * n_w + w) * n_t + t, _group(m)
                sheet.link(row, left, cells.columns["kv_in_unit"][at], ONE_DECIMAL, "kv" + rule)
                sheet.link(row, left + 1, cells.columns["fit_word"][at], TEXT, "fit" + rule)
                sheet.status_cells.append((row, left + 1))
                sheet.compute(row, left + 2, rent_words, cells.row(at), role="rent" + rule)
                sheet.link(row, left + 3, cells.columns["monthly_usd"][at], USD, "money" + rule)
                _name_results(wiring, solved, at, m, w, t)
    return top + 2 + n_w * n_t


def _name_results(wiring: Wiring, solved: Solution, at: int, m: int, w: int, t: int) -> None:
    """Defined names of a load's results: rec_<model>_<workload>_<tier number>_..."""
    from sheetgen.sheet.book.inputs import excel_name

    question = solved.question
    stem = f"rec_{excel_name(question.models[m].model.id)}_{excel_name(question.workloads[w].id)}_{t + 1}"
    columns = wiring.tables["cells"].columns
    for name in ("instance", "n_instances", "monthly_usd"):
        wiring.names[f"{stem}_{name}"] = columns[name][at]


def _foot(solved: Solution, page: OnePage, wiring: Wiring, sheet: Sheet, top: int) -> None:
    """Legend, checks, the assumptions in use, dates."""
    for k, word in enumerate(("fits", "tight", "none fits", "over limit")):
        sheet.text(top, 3 + k if k < 2 else 3 + k, word, "legend_" + word.split()[0])
    sheet.text(top, 0, "Fit", "label")
    dates = wiring.tables["instances"].range("price_date")
    sheet.text(top + 1, 0, "Checks", "label")
    sheet.link(top + 1, 1, wiring.inputs["all_checks"], TEXT, "light")
    sheet.text(top + 2, 0, "Oldest price", "label")
    oldest = [r.value for r in dates.refs if r.value]
    sheet.formula(top + 2, 1, min(oldest) if oldest else "-", _oldest(dates, sheet.name), DATE)
    sheet.text(top + 3, 0, "Sheet's date", "label")
    sheet.link(top + 3, 1, wiring.inputs["as_of"], DATE)
    for k, line in enumerate(page.assumptions[:7]):
        sheet.text(top + 1 + k, 3, line, "remark")
    sheet.text(top + 4, 0, f"sheetgen {page.version}", "small")
    sheet.text(top + 5, 0, f"catalog {page.catalog}", "small")


def _oldest(dates: Range, here: str) -> Expr:
    area = dates.expr(here).text
    return Expr(f'IF(COUNT({area})=0,"-",MIN({area}))')



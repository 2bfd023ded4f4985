"""The Sizing sheet: the one page of the workbook. Everything on it is looked up; nothing is worked out here."""

from __future__ import annotations

from sheetgen.formula import Expr, where
from sheetgen.recommend import Solution
from sheetgen.scenario.parse import name_part
from sheetgen.sheet.book.wiring import Wiring, put_light
from sheetgen.sheet.book.words import cell_position, headline_words, in_unit, rent_words
from sheetgen.sheet.model import Cell, Chart, Lookup, Range, Ref, Sheet, Source, Validation, lookup, place_of
from sheetgen.sheet.page import Page
from sheetgen.sizing.kv_cache import short_tokens
from sheetgen.units import DATE, ONE_DECIMAL, PLAIN, TEXT, UNIT_NAMES, USD, WHOLE

LOAD_COLUMNS = 3  # workload, in flight, a narrow blank; then a group of columns per model
GROUP = (("KV", 9.0), ("Fit", 8.5), ("Recommended", 22.0), ("$ / month", 11.0))
RENT_WIDTHS = (20.0, 29.0)  # of the column that names instances: by the longest name on the sheet
WIDE = 4  # models from which the picture takes two groups of columns
GAP = 1.2
CHART_ROWS = 9
PAGE_SHAPE = 0.64  # height of a landscape page over its width, margins and footer taken off
PIXELS_PER_WIDTH = 7
POINTS_PER_WIDTH = 5.6  # points of one unit of column width in Arial 10


def build_sizing(solved: Solution, page: Page, wiring: Wiring) -> Sheet:
    """The first sheet: the headline per model, weights, the matrix, a picture, assumptions, dates, legend."""
    n_models = len(solved.question.models)
    sheet = Sheet("Sizing sheet", landscape=n_models > 1, one_page=True, about="The answers on one page.")
    sheet.widths = {0: 17, 1: 11, 2: GAP}
    for m in range(n_models):
        for k, (_, width) in enumerate(GROUP):
            sheet.widths[_group(m) + k] = width if k != 2 else _rent_width(solved)
        sheet.widths[_group(m) + len(GROUP)] = GAP
    unit = UNIT_NAMES[solved.question.settings.units]
    sheet.text(0, 0, page.title, "title")
    how = "Change a yellow cell here or on Inputs, Models, GPUs, Instances: everything recomputes."
    sheet.text(1, 0, f"{sheet.kind}. {how}", "subtitle")
    sheet.text(2, 0, f"Memory in {unit}; prices in US dollars.", "subtitle")
    sheet.heights |= {0: 30, 1: 17, 2: 20}
    row, positions = _headline(solved, wiring, sheet)
    row = _weights(solved, wiring, sheet, row + 1)
    row = _matrix(solved, wiring, sheet, row + 1)
    last = _foot(solved, page, wiring, sheet, row + 1, positions)
    _fill_page(sheet, last)
    return sheet


def _rent_width(solved: Solution) -> float:
    words = (f"{c.n_instances} {_type(solved, c.offer)}" for c in solved.choices if c.offer is not None)
    longest = max((len(w) for w in words), default=0)
    return min(RENT_WIDTHS[1], max(RENT_WIDTHS[0], longest + 2.0))


def _type(solved: Solution, offer: int) -> str:
    return solved.candidate(offer).instance.split("/", 1)[1]


def _fill_page(sheet: Sheet, last: int) -> None:
    """Stretch the rows so that the page, scaled to its width, is full: more models make it wider, not emptier."""
    if not sheet.landscape:
        return
    width = sum(sheet.widths.values()) * POINTS_PER_WIDTH
    heights = {row: sheet.heights.get(row, 15.0) for row in range(last + 1)}
    stretch = min(1.7, max(1.0, width * PAGE_SHAPE / sum(heights.values())))
    sheet.heights |= {row: round(h * stretch, 1) for row, h in heights.items()}
    for chart in sheet.charts:
        chart.height = int(chart.height * stretch)


def _group(model: int) -> int:
    """The first column of a model's group; a narrow blank column stands between groups."""
    return LOAD_COLUMNS + model * (len(GROUP) + 1)


def _bar(sheet: Sheet, row: int, first: str, names: list[Ref]) -> None:
    """A dark bar with the models' names over their groups."""
    sheet.heights[row] = 20
    for column in (0, 1):
        sheet.text(row, column, first if column == 0 else "", "section")
    for m, ref in enumerate(names):
        sheet.link(row, _group(m), ref, TEXT, "section")
        for k in range(1, len(GROUP)):
            sheet.text(row, _group(m) + k, "", "section")


def _headline(solved: Solution, wiring: Wiring, sheet: Sheet) -> tuple[int, list[Ref]]:
    """Two dropdowns choose the load; beside them, per model, what to rent and what it costs."""
    question, cells = solved.question, wiring.tables["loads"]
    w, t = question.headline
    names = [x.name for x in question.workloads]
    top = 3
    _bar(sheet, top, "The answer at", wiring.tables["models"].columns["model"])
    choose = Validation("Workload", "One of the workloads of this sheet.", source="list_workload")
    tier = Validation("In flight", "One of the tiers on Inputs.", source="list_tier")
    sheet.text(top + 1, 0, "Workload", "label")
    wiring.names["in_headline_workload"] = sheet.put(
        top + 1, 1, Cell(names[w], "input", TEXT, validation=choose), "in_headline_workload"
    )
    sheet.text(top + 2, 0, "In flight", "label")
    asked = question.overrides.input("headline_tier", question.tiers[t])
    chosen_tier = sheet.put(top + 2, 1, Cell(asked, "input", WHOLE, validation=tier), "in_headline_tier")
    wiring.names["in_headline_tier"] = chosen_tier
    places, shown = _positions(solved, wiring, sheet, 60)
    of_load: dict[str, Source] = {"load_words": shown, "asked": chosen_tier,
               "concurrent_requests": lookup(cells.range("concurrent_requests"), places[0])}  # fmt: skip
    sheet.compute(top + 3, 0, headline_words, of_load, role="shown")
    sheet.heights |= {top + 1: 26, top + 2: 24, top + 3: 17, top + 4: 17, top + 5: 17, top + 6: 17, top + 7: 17}
    for m, at in enumerate(places):
        left = _group(m)

        def of(name: str, at: Ref = at) -> Lookup:
            return lookup(cells.range(name), at)

        env = {"n_instances": of("n_instances"), "instance": of("type")}
        sheet.compute(top + 1, left, rent_words, env, role="answer")
        sheet.text(top + 2, left, "$ per month", "label")
        monthly = sheet.link(top + 2, left + 2, of("monthly_usd"), USD, "answer_money")
        wiring.headline_usd.append(monthly)
        sheet.link(top + 3, left, of("hardware_words"), TEXT, "computed")
        sheet.link(top + 4, left, of("room_words"), TEXT, "computed")
        sheet.link(top + 5, left, of("speed_words"), TEXT, "computed")
        sheet.link(top + 6, left, of("ttft_words"), TEXT, "computed")
        sheet.link(top + 7, left, of("runner_up_words"), TEXT, "computed")
        sheet.link(top + 3, left + 3, of("provider"), TEXT, "right_label")
    return top + 8, places


def _positions(solved: Solution, wiring: Wiring, sheet: Sheet, row: int) -> tuple[list[Ref], Lookup]:
    """Where the headline's load of each model stands on Workings, and that load in words.

    Small figures under the page's print area. A headline that is no load of the sheet any more, after a tier
    was changed, stays with the tier at the same place.
    """
    question = solved.question
    workloads, tiers = wiring.names["list_workload"], wiring.lists["tiers"]
    assert isinstance(workloads, Range)
    sheet.text(row, 0, "Positions of the headline's load on Workings, and those as built", "off_page")
    chosen, tier = wiring.names["in_headline_workload"], wiring.names["in_headline_tier"]
    assert isinstance(chosen, Ref) and isinstance(tier, Ref)
    w, t = question.headline
    built = [sheet.put(row + 2, k, Cell(at + 1, "off_page", PLAIN)) for k, at in enumerate((w, t))]

    def or_as_built(refs: Range, key: Ref, otherwise: Ref) -> tuple[int, Expr]:
        match = f"MATCH({key.expr(sheet.name).text},{refs.expr(sheet.name).text},0)"
        at = place_of(refs, key.value) or int(otherwise.value)
        return at, Expr(f"IFERROR({match},{otherwise.expr(sheet.name).text})")

    wp = sheet.formula(row + 1, 0, *or_as_built(workloads, chosen, built[0]), PLAIN, "off_page")
    tp = sheet.formula(row + 1, 1, *or_as_built(tiers, tier, built[1]), PLAIN, "off_page")
    models, cells = wiring.tables["models"], wiring.tables["loads"]
    # The largest position there is, not a count of the inputs: an input that is emptied must not shift the rows.
    counts = {"n_workloads": _greatest(cells.range("workload_row")), "n_tiers": _greatest(cells.range("tier_row"))}
    places = []
    for m in range(len(question.models)):
        which = _row_of(models.columns["model"][m], models.range("model"), m + 1)
        env: dict[str, Source] = {"model_row": which, "workload_position": wp, "tier_position": tp, **counts}
        places.append(sheet.compute(row + 1, _group(m), cell_position, env, role="off_page"))
    wiring.lists["headline_rows"] = Range(tuple(places))
    return places, lookup(wiring.tables["loads"].range("load_words"), places[0])


def _greatest(refs: Range) -> Lookup:
    return Lookup(max(r.value for r in refs.refs), lambda here: Expr(f"MAX({refs.expr(here).text})"))


def _row_of(name: Ref, names: Range, value: int) -> Lookup:
    return Lookup(value, lambda here: Expr(f"MATCH({name.expr(here).text},{names.expr(here).text},0)"))


def _weights(solved: Solution, wiring: Wiring, sheet: Sheet, top: int) -> int:
    """Weights at BF16 and FP8, KV per token, and the precisions in use."""
    models = wiring.tables["models"]
    unit = UNIT_NAMES[solved.question.settings.units]
    _bar(sheet, top, "Weights and KV", models.columns["model"])
    lines = (
        (f"Weights BF16, {unit}", "weights_bf16_in_unit", ONE_DECIMAL),
        (f"Weights FP8, {unit}", "weights_fp8_in_unit", ONE_DECIMAL),
        ("KV per token, bytes", "kv_bytes_per_token", WHOLE),
    )
    for k, (label, name, display) in enumerate(lines):
        sheet.text(top + 1 + k, 0, label, "label")
        sheet.heights[top + 1 + k] = 17
        for m in range(len(solved.question.models)):
            sheet.link(top + 1 + k, _group(m), models.columns[name][m], display)
    for m in range(len(solved.question.models)):
        for k, (label, name) in enumerate((("weights in use", "weight_dtype"), ("KV cache in use", "kv_dtype"))):
            sheet.text(top + 1 + k, _group(m) + 2, label, "right_label")
            sheet.link(top + 1 + k, _group(m) + 3, models.columns[name][m], TEXT, "right_link")
    return top + 1 + len(lines)


def _matrix(solved: Solution, wiring: Wiring, sheet: Sheet, top: int) -> int:
    """Models x tiers within workloads: KV, fit, what to rent, $ per month."""
    question, cells = solved.question, wiring.tables["loads"]
    n_w, n_t = len(question.workloads), len(question.tiers)
    unit = UNIT_NAMES[question.settings.units]
    _bar(sheet, top, "Every load", wiring.tables["models"].columns["model"])
    sheet.text(top + 1, 0, "Workload", "head")
    sheet.text(top + 1, 1, "In flight", "head")
    sheet.heights[top + 1] = 18
    for m in range(len(question.models)):
        for k, (label, _) in enumerate(GROUP):
            sheet.text(top + 1, _group(m) + k, f"KV, {unit}" if k == 0 else label, "head")
    for w, workload in enumerate(question.workloads):
        for t in range(n_t):
            row = top + 2 + w * n_t + t
            sheet.heights[row] = 18.5
            rule = "_last" if t == n_t - 1 else ""
            if t == 0:
                sheet.text(row, 0, workload.name, "workload" + rule)
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
                env_of = {**cells.row(at), "instance": cells.columns["type"][at]}
                sheet.compute(row, left + 2, rent_words, env_of, role="rent" + rule)
                sheet.link(row, left + 3, cells.columns["monthly_usd"][at], USD, "money" + rule)
                _name_results(wiring, solved, at, (m, w, t))
    return top + 2 + n_w * n_t


def _name_results(wiring: Wiring, solved: Solution, at: int, load: tuple[int, int, int]) -> None:
    """Defined names of a load's results: rec_<model>_<workload>_<tier number>_..."""
    (m, w, t), question = load, solved.question
    stem = f"rec_{name_part(question.models[m].model.id)}_{name_part(question.workloads[w].id)}_{t + 1}"
    columns = wiring.tables["loads"].columns
    for name in ("instance", "n_instances", "monthly_usd"):
        wiring.names[f"{stem}_{name}"] = columns[name][at]


def _foot(solved: Solution, page: Page, wiring: Wiring, sheet: Sheet, top: int, positions: list[Ref]) -> int:
    """Legend, checks, dates, the assumptions in use, and the picture of weights against KV; gives the last row."""
    if len(positions) == 1:
        sheet.text(top, LOAD_COLUMNS + 2, "words for fit: fits, tight, none fits, over limit", "remark")
    else:
        for k, word in enumerate(("fits", "tight", "none fits", "over limit")):
            sheet.text(top, LOAD_COLUMNS + k, word, "legend_" + word.split()[0])
    sheet.text(top, 0, "Fit", "label")
    dates = wiring.tables["instances"].range("price_date")
    sheet.text(top + 1, 0, "Checks", "label")
    put_light(wiring, sheet, top + 1, 1)
    sheet.text(top + 2, 0, "Oldest price", "label")
    oldest = [r.value for r in dates.refs if r.value]
    area = dates.expr(sheet.name).text
    written = where(Expr(f"COUNT({area})") == 0, "-", Expr(f"MIN({area})"))
    sheet.formula(top + 2, 1, min(oldest) if oldest else "-", written, DATE)
    sheet.text(top + 3, 0, "Sheet's date", "label")
    sheet.link(top + 3, 1, wiring.inputs["as_of"], DATE)
    sheet.text(top + 4, 0, f"sheetgen {page.version}", "small")
    sheet.text(top + 5, 0, f"catalog {page.catalog}", "small")
    rows = len(wiring.assumptions)
    for k, (label, value, display) in enumerate(wiring.assumptions):
        sheet.link(top + 1 + k, LOAD_COLUMNS, label, TEXT, "assumption")
        sheet.link(top + 1 + k, LOAD_COLUMNS + 3, value, display, "right_link")
    for line in page.assumptions:
        if not any(c.isdigit() for c in line):  # a sentence with a number could go stale here: it is on Notes
            rows += 1
            sheet.text(top + rows + 1, 0, line, "remark")
    # The picture stands in the last group, beside the assumptions; below them where there is one model only.
    last = _picture(solved, wiring, sheet, top + (0 if len(positions) > 1 else rows + 3), positions)
    return max(last, top + rows + 1)


def _picture(solved: Solution, wiring: Wiring, sheet: Sheet, top: int, positions: list[Ref]) -> int:
    """A stacked bar per model at the headline's load; its figures stand beside it."""
    models, cells = wiring.tables["models"], wiring.tables["loads"]
    unit = UNIT_NAMES[solved.question.settings.units]
    wide = len(positions) >= WIDE
    left = _group(len(positions) - (2 if wide else 1))
    for k, label in enumerate(("Weights", "KV", f"At the load above, {unit}")):
        sheet.text(top, left + k, label, "head")
    refs: list[list[Ref]] = [[], [], []]
    for m, at in enumerate(positions):
        row = top + 1 + m
        env = {"amount_bytes": models.columns["weights_bytes"][m], "unit_bytes": wiring.inputs["unit_bytes"]}
        refs[0].append(sheet.compute(row, left, in_unit, env))
        kv = lookup(cells.range("kv_in_unit"), at)
        refs[1].append(sheet.link(row, left + 1, kv, ONE_DECIMAL, "computed"))
        refs[2].append(sheet.link(row, left + 2, models.columns["model"][m], TEXT))
    widths = [sheet.widths[left + k] for k in range(len(GROUP))]
    place = (top, _group(len(positions) - 1)) if wide else (top + 2 + len(positions), left)
    sheet.charts.append(
        Chart(
            *place,
            f"Weights and KV cache at the load above, {unit}",
            "Stacked bars: weights and KV cache of each model at the chosen load.",
            (refs[2][0], refs[2][-1]),
            [("Weights", refs[0][0], refs[0][-1], "#1D4ED8"), ("KV cache", refs[1][0], refs[1][-1], "#F59E0B")],
            int(sum(widths) * PIXELS_PER_WIDTH), 20 * CHART_ROWS - 4, unit,
        )
    )  # fmt: skip
    if wide:
        return top + max(1 + len(positions), CHART_ROWS)
    return top + 2 + len(positions) + CHART_ROWS

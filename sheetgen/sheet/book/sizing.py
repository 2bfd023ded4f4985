"""The Sizing sheet: the one page of the workbook. Everything on it is looked up; nothing is worked out here."""

from __future__ import annotations

import itertools

from sheetgen.recommend import Solution, headline_rows, needs_reservation
from sheetgen.scenario.demand import RATE
from sheetgen.scenario.parse import name_part
from sheetgen.sheet.book.wiring import Wiring, put_light
from sheetgen.sheet.book.words import cell_position, headline_words, in_unit, rent_words
from sheetgen.sheet.model import NONE, Cell, Chart, Lookup, Range, Ref, Sheet, Source, Validation, lookup, place_of
from sheetgen.sheet.page import Page
from sheetgen.sizing.kv_cache import short_tokens
from sheetgen.units import DATE, ONE_DECIMAL, PLAIN, TEXT, UNIT_NAMES, USD, WHOLE

LOAD_COLUMNS = 3  # workload, at once, a narrow blank; then a group of columns per model
GROUP = (("KV", 9.0), ("Fit", 8.5), ("Recommended", 22.0), ("$ / month", 11.0))
RENT_WIDTHS = (20.0, 29.0)  # of the column that names instances: by the longest name on the sheet
WIDE = 4  # models from which the picture takes two groups of columns
GAP = 1.2
CHART_ROWS = 9
HEADLINE_ROW, AS_BUILT_ROW = 3, 8  # where the headline begins, and in it what is worked out when the sheet is built
PAGE_SHAPE = 0.64  # height of a landscape page over its width, margins and footer taken off
PIXELS_PER_WIDTH = 7
POINTS_PER_WIDTH = 5.6  # points of one unit of column width in Arial 10


def build_sizing(solved: Solution, page: Page, wiring: Wiring) -> Sheet:
    """The first sheet: the headline per model, weights, the matrix, a picture, assumptions, dates, legend."""
    one = SizingSheet(solved, wiring)
    sheet = one.sheet
    sheet.text(0, 0, page.title, "title")
    how = "Change a yellow cell here or on Inputs, Models, GPUs, Instances: everything recomputes."
    sheet.text(1, 0, f"{sheet.kind}. {how}", "subtitle")
    sheet.text(2, 0, f"Memory in {one.unit}; prices in US dollars.", "subtitle")
    sheet.heights |= {0: 30, 1: 17, 2: 20}
    one.headline(HEADLINE_ROW)
    one.weights(15)
    last = one.foot(page, one.matrix(20) + 1)
    if sheet.landscape:
        # Stretch the rows so that the page, scaled to its width, is full: more models make it wider, not emptier.
        width = sum(sheet.widths.values()) * POINTS_PER_WIDTH
        heights = {row: sheet.heights.get(row, 15.0) for row in range(last + 1)}
        stretch = min(1.7, max(1.0, width * PAGE_SHAPE / sum(heights.values())))
        sheet.heights |= {row: round(h * stretch, 1) for row, h in heights.items()}
        for chart in sheet.charts:
            chart.height = int(chart.height * stretch)
    return sheet


def put_state(sheet: Sheet, wiring: Wiring) -> None:
    """Beside what was worked out when the sheet was built: as built, or inputs changed, as on Levers."""
    sheet.link(HEADLINE_ROW + AS_BUILT_ROW, 1, wiring.ref("chk_levers"), TEXT, "light")


class SizingSheet:
    """The sheet, filled from the top; a group of columns per model, with a narrow blank one between groups."""

    def __init__(self, solved: Solution, wiring: Wiring) -> None:
        self.question, self.wiring = solved.question, wiring
        self.models, self.loads = wiring.tables["models"], wiring.tables["loads"]
        self.groups = [LOAD_COLUMNS + m * (len(GROUP) + 1) for m in range(len(self.question.models))]
        self.fp8_is_large = any(needs_reservation(solved, row) for row in headline_rows(solved))
        self.unit = UNIT_NAMES[self.question.settings.units]
        self.positions: list[Ref] = []  # by model, where the headline's load stands on Workings
        rented = (
            f"{c.n_instances} {solved.candidate(c.offer).instance.split('/', 1)[1]}"
            for c in solved.choices
            if c.offer is not None
        )
        rent_width = min(RENT_WIDTHS[1], max(RENT_WIDTHS[0], max(map(len, rented), default=0) + 2.0))
        self.sheet = Sheet("Sizing sheet", landscape=len(self.groups) > 1, one_page=True,
                           about="The answers on one page.")  # fmt: skip
        self.sheet.widths = {0: 17, 1: 11, 2: GAP}
        for left in self.groups:
            self.sheet.widths |= {left + k: width for k, (_, width) in enumerate((*GROUP, ("", GAP)))}
            self.sheet.widths[left + 2] = rent_width

    def _bar(self, row: int, first: str) -> None:
        """A dark bar with the models' names over their groups."""
        self.sheet.heights[row] = 20
        self.sheet.texts(row, 0, (first, ""), "section")
        for left, name in zip(self.groups, self.models.columns["model"], strict=True):
            self.sheet.link(row, left, name, TEXT, "section")
            self.sheet.texts(row, left + 1, [""] * (len(GROUP) - 1), "section")

    def headline(self, top: int) -> None:
        """Two dropdowns choose the load; beside them, per model, what to rent and what it costs."""
        question, sheet, names = self.question, self.sheet, self.wiring.names
        w, t = question.headline
        self._bar(top, "The answer at")
        choose = Validation("Workload", "One of the workloads of this sheet.", source="list_workload")
        workload = question.overrides.input("headline_workload", question.workloads[w].name)
        workload = Cell(workload, "input", TEXT, validation=choose)
        names["in_headline_workload"] = sheet.put(top + 1, 1, workload, "in_headline_workload", label="Workload")
        asked = question.overrides.input("headline_tier", RATE if question.tiers[t] is None else question.tiers[t])
        listed = Validation("At once", "One of the tiers on Inputs.", source="list_tier")
        tier = sheet.put(top + 2, 1, Cell(asked, "input", WHOLE, validation=listed), "in_headline_tier",
                         label="At once")  # fmt: skip
        names["in_headline_tier"] = tier
        self._find_positions(63)
        of_load: dict[str, Source] = {
            "load_words": lookup(self.loads.range("load_words"), self.positions[0]), "asked": tier,
            "concurrent_requests": lookup(
                self.loads.range("tier" if question.rate else "concurrent_requests"), self.positions[0]
            ),
        }  # fmt: skip
        sheet.compute(top + 3, 0, headline_words, of_load, role="shown")
        sheet.heights |= {top + 1: 26, top + 2: 24, **dict.fromkeys(range(top + 3, top + 11), 17)}
        for left, at in zip(self.groups, self.positions, strict=True):

            def of(name: str, at: Ref = at) -> Lookup:
                return lookup(self.loads.range(name), at)

            env = {"n_instances": of("n_instances"), "instance": of("type")}
            sheet.compute(top + 1, left, rent_words, env, role="answer")
            sheet.text(top + 2, left, "$ per month", "label")
            monthly = sheet.link(top + 2, left + 2, of("monthly_usd"), USD, "answer_money")
            self.wiring.headline_usd.append(monthly)
            lines = ("hardware_words", "room_words", "speed_words", "ttft_words", "runner_up_words")
            for row, name in enumerate(lines, top + 3):
                sheet.link(row, left, of(name), TEXT, "computed")
            sheet.link(top + 3, left + 3, of("provider"), TEXT, "right_label")
            sheet.link(top + AS_BUILT_ROW, left, of("sized_words"), TEXT, "computed")
            sheet.link(top + AS_BUILT_ROW + 1, left, of("band_words"), TEXT, "small")
            # As large as the answer, where an answer takes more machines than one may expect to find free.
            roles = ("answer", "answer_money") if self.fp8_is_large else ("computed", "left_number")
            sheet.link(top + AS_BUILT_ROW + 2, left, of("rent_fp8"), TEXT, roles[0])
            sheet.link(top + AS_BUILT_ROW + 2, left + 2, of("usd_fp8"), USD, roles[1])
        sheet.text(top + AS_BUILT_ROW, 0, "Worked out", "label")
        sheet.text(top + AS_BUILT_ROW + 2, 0, "at FP8, as built", "label")
        if self.fp8_is_large:
            sheet.heights[top + AS_BUILT_ROW + 2] = 26

    def _find_positions(self, row: int) -> None:
        """Where the headline's load of each model stands on Workings.

        Small figures under the page's print area. A headline that is no load of the sheet any more, after a tier
        was changed, stays with the tier at the same place.
        """
        wiring, sheet, loads = self.wiring, self.sheet, self.loads
        sheet.text(row, 0, "Positions of the headline's load on Workings, and those as built", "off_page")
        built = [sheet.put(row + 2, k, Cell(at + 1, "off_page", PLAIN)) for k, at in enumerate(self.question.headline)]
        # The largest position there is, not a count of the inputs: an input that is emptied must not shift the rows.
        env: dict[str, Source] = {
            name: Lookup.of(max(ref.value for ref in loads.columns[key]), "MAX({0})", loads.range(key))
            for name, key in (("n_workloads", "workload_row"), ("n_tiers", "tier_row"))
        }
        workloads = wiring.names["list_workload"]
        assert isinstance(workloads, Range)
        for k, (name, refs) in enumerate((("workload", workloads), ("tier", wiring.lists["tiers"]))):
            key = wiring.ref(f"in_headline_{name}")
            at = place_of(refs, key.value) or int(built[k].value)
            found = Lookup.of(at, "IFERROR(MATCH({0},{1},0),{2})", key, refs, built[k])
            env[f"{name}_position"] = sheet.link(row + 1, k, found, PLAIN, "off_page")
        names = self.models.range("model")
        for m, left in enumerate(self.groups):
            env["model_row"] = Lookup.of(m + 1, "MATCH({0},{1},0)", names.refs[m], names)
            self.positions.append(sheet.compute(row + 1, left, cell_position, env, role="off_page"))
        wiring.lists["headline_rows"] = Range(tuple(self.positions))

    def weights(self, top: int) -> None:
        """Weights at BF16 and FP8, KV per token, and the precisions in use."""
        sheet, columns = self.sheet, self.models.columns
        self._bar(top, "Weights and KV")
        for row, (label, name, display) in enumerate((
            (f"Weights BF16, {self.unit}", "weights_bf16_in_unit", ONE_DECIMAL),
            (f"Weights FP8, {self.unit}", "weights_fp8_in_unit", ONE_DECIMAL),
            ("KV per token, bytes", "kv_bytes_per_token", WHOLE),
        ), top + 1):  # fmt: skip
            sheet.text(row, 0, label, "label")
            sheet.heights[row] = 17
            for m, left in enumerate(self.groups):
                sheet.link(row, left, columns[name][m], display)
        for m, left in enumerate(self.groups):
            for row, (label, name) in enumerate((("weights", "weight_dtype"), ("KV cache", "kv_dtype")), top + 1):
                sheet.text(row, left + 2, f"{label} in use", "right_label")
                sheet.link(row, left + 3, columns[name][m], TEXT, "right_link")

    def matrix(self, top: int) -> int:
        """Models x tiers within workloads: KV, fit, what to rent, $ per month; gives the row below."""
        question, wiring, sheet, columns = self.question, self.wiring, self.sheet, self.loads.columns
        n_w, n_t = len(question.workloads), len(question.tiers)
        self._bar(top, "Cost by workload and load")
        sheet.texts(top + 1, 0, ("Workload", "At once"))
        sheet.heights[top + 1] = 18
        for left in self.groups:
            sheet.texts(top + 1, left, (f"KV, {self.unit}", *(label for label, _ in GROUP[1:])))
        for w, t in itertools.product(range(n_w), range(n_t)):
            row = top + 2 + w * n_t + t
            sheet.heights[row] = 18.5
            rule = "_last" if t == n_t - 1 else ""
            if t == 1:
                env = {**wiring.inputs, "tokens": wiring.lists["contexts"].refs[w]}
                sheet.compute(row, 0, short_tokens, env, role="context" + rule)
            else:
                name, role = (question.workloads[w].name, "workload") if t == 0 else ("", "context")
                sheet.text(row, 0, name, role + rule)
            sheet.link(row, 1, wiring.lists["tiers"].refs[t], WHOLE, "tier" + rule)
            for m, left in enumerate(self.groups):
                at = (m * n_w + w) * n_t + t
                sheet.link(row, left, columns["kv_in_unit"][at], ONE_DECIMAL, "kv" + rule)
                sheet.link(row, left + 1, columns["fit_word"][at], TEXT, "fit" + rule)
                sheet.status_cells.append((row, left + 1))
                rented = {"n_instances": columns["n_instances"][at], "instance": columns["type"][at]}
                sheet.compute(row, left + 2, rent_words, rented, role="rent" + rule)
                sheet.link(row, left + 3, columns["monthly_usd"][at], USD, "money" + rule)
                stem = f"rec_{name_part(question.models[m].model.id)}_{name_part(question.workloads[w].id)}_{t + 1}"
                for name in ("instance", "n_instances", "monthly_usd"):
                    wiring.names[f"{stem}_{name}"] = columns[name][at]
        return top + 2 + n_w * n_t

    def foot(self, page: Page, top: int) -> int:
        """Legend, checks, dates, the assumptions in use, and the picture of weights against KV; gives the last row."""
        sheet, wiring, several = self.sheet, self.wiring, len(self.groups) > 1
        if several:
            for column, word in enumerate(("fits", "little headroom", "none fits", "over limit"), LOAD_COLUMNS):
                sheet.text(top, column, word, "legend_" + word.split()[0])
        else:
            sheet.text(top, LOAD_COLUMNS + 2, "words for fit: fits, little headroom, none fits, over limit", "remark")
        sheet.text(top, 0, "Fit", "label")
        put_light(wiring, sheet, top + 1, 1, "Checks")
        dates = wiring.tables["instances"].range("date_in_use")
        oldest = min((r.value for r in dates.refs if r.value != NONE), default=NONE)
        written = Lookup.of(oldest, 'IF(COUNT({0})=0,"-",MIN({0}))', dates)
        sheet.link(top + 2, 1, written, DATE, "computed", label="Oldest price")
        sheet.link(top + 3, 1, wiring.inputs["as_of"], DATE, label="Sheet's date")
        sheet.text(top + 4, 0, f"sheetgen {page.version}", "small")
        sheet.text(top + 5, 0, f"catalog {page.catalog}", "small")
        for row, (label, value, display) in enumerate(wiring.assumptions, top + 1):
            sheet.link(row, LOAD_COLUMNS, label, TEXT, "assumption")
            sheet.link(row, LOAD_COLUMNS + 3, value, display, "right_link")
        last = top + 1 + len(wiring.assumptions)
        for line in page.assumptions:
            if not any(c.isdigit() for c in line):  # a sentence with a number could go stale here: it is on Notes
                last += 1
                sheet.text(last, 0, line, "remark")
        # The picture stands in the last group, beside the assumptions; below them where there is one model only.
        return max(last, self._picture(top if several else last + 2))

    def _picture(self, top: int) -> int:
        """A stacked bar per model at the headline's load; its figures stand beside it."""
        columns, sheet, n_models = self.models.columns, self.sheet, len(self.groups)
        wide = n_models >= WIDE
        left = self.groups[-2 if wide else -1]
        sheet.texts(top, left, ("Weights", "KV", f"At the load above, {self.unit}"))
        bars = []
        for m, at in enumerate(self.positions):
            row = top + 1 + m
            env = {"amount_bytes": columns["weights_bytes"][m], "unit_bytes": self.wiring.inputs["unit_bytes"]}
            kv = lookup(self.loads.range("kv_in_unit"), at)
            bars.append((
                sheet.compute(row, left, in_unit, env), sheet.link(row, left + 1, kv, ONE_DECIMAL, "computed"),
                sheet.link(row, left + 2, columns["model"][m], TEXT),
            ))  # fmt: skip
        (first_weights, first_kv, first), (last_weights, last_kv, last) = bars[0], bars[-1]
        place = (top, self.groups[-1]) if wide else (top + 2 + n_models, left)
        width = sum(sheet.widths[left + k] for k in range(len(GROUP)))
        sheet.charts.append(Chart(
            *place, f"Weights and KV cache at the load above, {self.unit}",
            "Stacked bars: weights and KV cache of each model at the chosen load.", (first, last),
            [("Weights", first_weights, last_weights, "#1D4ED8"), ("KV cache", first_kv, last_kv, "#F59E0B")],
            int(width * PIXELS_PER_WIDTH), 20 * CHART_ROWS - 4, self.unit,
        ))  # fmt: skip
        return top + max(1 + n_models, CHART_ROWS) if wide else top + 2 + n_models + CHART_ROWS

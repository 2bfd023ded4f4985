"""The Sizing sheet: the one page of the workbook. Everything on it is looked up; nothing is worked out here."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

from sheetgen.answer.market_notes import needs_reservation
from sheetgen.answer.solution import Fit, Solution, headline_rows
from sheetgen.book.catalogs import class_stem
from sheetgen.book.figures import in_unit, place_in_table, tier_key
from sheetgen.book.inputs_sheet import AS_BUILT
from sheetgen.book.lookups import NO_VALUE, call, greatest, position_in, written
from sheetgen.book.sheets import (
    NONE,
    Cell,
    Chart,
    Lookup,
    Range,
    Ref,
    Sheet,
    Source,
    Validation,
    derived,
    lookup,
    place_of,
)
from sheetgen.book.wiring import Wiring, put_light
from sheetgen.formula import Expr, both, cheapest, function, is_number, join_text, remainder, round_down, where
from sheetgen.question.parse import Kind, name_part
from sheetgen.question.sheet_question import MOST_TYPED
from sheetgen.question.stated_load import RATE
from sheetgen.report.page import AT_FP8, Page
from sheetgen.report.sentences import FIT_WORDS, RESERVE, headline_words, load_in_table, rent_or_reserve, rent_words
from sheetgen.report.wording import instance_name
from sheetgen.units import COMMITTED, DATE, ONE_DECIMAL, PLAIN, PURCHASES, SMALL_UNITS, TEXT, UNIT_NAMES, USD, WHOLE

LOAD_COLUMNS = 3  # workload, at once, a narrow blank; then a group of columns per model
RENTED = ("Recommended", 22.0)
GROUP = (("KV", 9.0), ("Fit", 8.5), RENTED, ("$ / month", 11.0))
RENT_WIDTHS = (20.0, 29.0)  # of the column that names instances: by the longest name on the sheet
PER_PAGE, OF_SEVERAL = 3, 2  # models side by side on one printed page, and on each of several: as can be read
WIDE = PER_PAGE + 1  # models from which the picture takes two groups of columns
GAP = 1.2
DATE_ROWS = 5  # checks, dates and versions, below the legend
CHART_ROWS, BARS_APART = 9, 6  # of the picture at least; and those beside its bars
NAME = "Sizing sheet"
BUILT_ROW = 99  # below the page: where the load as built is kept
BUILT, IN_USE = (tuple(f"calc_{of}_{name}" for name in ("workload", "requests")) for of in ("built", "headline"))
HEADLINE_ROW, AS_BUILT_ROW = 3, 8  # where the headline begins, and in it what is worked out when the sheet is built
PAGE_SHAPE = 0.64  # height of a landscape page over its width, margins and footer taken off
PIXELS_PER_WIDTH = 7
POINTS_PER_WIDTH = 5.6  # points of one unit of column width in Arial 10


def build_sizing(solved: Solution, page: Page, wiring: Wiring, others: Sequence[str] = ()) -> Sheet:
    """The first sheet: the headline per model, weights, the matrix, a picture, assumptions, dates, legend.

    others: the sheets that it has a link to.
    """
    one = SizingSheet(solved, wiring)
    sheet = one.sheet
    # Of several printed pages each repeats the first columns, and would cut what runs on out of them.
    head = LOAD_COLUMNS if sheet.column_breaks else 0
    if head:
        sheet.text(0, 0, sheet.name, "title")
    sheet.text(0, head, page.title, "title")
    how = "Change a yellow cell here, on Inputs or on Prices and hardware: everything recomputes."
    sheet.text(1, head, " · ".join(page.heads) or f"{sheet.kind}. {how}", "subtitle")
    sheet.text(2, head, f"Memory in {one.unit}; prices in US dollars.", "subtitle")
    for column, name in enumerate(others, one.groups[1] if head else LOAD_COLUMNS + GROUP.index(RENTED)):
        sheet.text(2, column, f"to {name}", "link_text", url=f"internal:'{name}'!A1")
    sheet.heights |= {0: 26, 1: 15, 2: 17}
    one.headline(HEADLINE_ROW)
    below = HEADLINE_ROW + AS_BUILT_ROW + 3 + len(one.otherwise)
    one.weights(below)
    sheet.rows_printed = one.foot(page, one.matrix(below + 5) + 1)
    if sheet.landscape:
        # Stretch the rows so that the page, scaled to its width, is full: more models make it wider, not emptier.
        parts = itertools.pairwise([LOAD_COLUMNS, *sheet.column_breaks, len(sheet.widths)])
        widest = max(sum(sheet.widths[column] for column in range(*part)) for part in parts)
        width = (sum(sheet.widths[column] for column in range(LOAD_COLUMNS)) + widest) * POINTS_PER_WIDTH
        heights = {row: sheet.heights.get(row, 15.0) for row in range(sheet.rows_printed)}
        stretch = min(1.7, max(1.0, width * PAGE_SHAPE / sum(heights.values())))
        sheet.heights |= {row: round(h * stretch, 1) for row, h in heights.items()}
    return sheet


def headline_cells(solved: Solution, wiring: Wiring) -> dict[str, Ref]:
    """The cells that say the load on this sheet, before it stands: as typed, and as built."""
    question, (w, t) = solved.question, solved.question.headline
    workload = question.overrides.input("headline_workload", question.workloads[w].name)
    number = RATE if question.numbers[t] is None else question.numbers[t]
    cells = {
        "workload": Ref(NAME, HEADLINE_ROW + 1, 1, workload, "in_headline_workload"),
        "tier": Ref(NAME, HEADLINE_ROW + 2, 1, number, "in_headline_tier"),
        "built_workload": Ref(NAME, BUILT_ROW + 1, 0, w + 1, "calc_built_workload"),
        "built_requests": Ref(NAME, BUILT_ROW + 1, 1, number, "calc_built_requests"),
        "workload_row": Ref(
            NAME, BUILT_ROW + 2, 0, place_of(wiring.area("list_workload"), workload) or w + 1, "calc_headline_workload"
        ),
        "requests": Ref(NAME, BUILT_ROW + 2, 1, number, "calc_headline_requests"),
    }
    state = Ref(NAME, HEADLINE_ROW + AS_BUILT_ROW, 1, AS_BUILT, "calc_built_state")
    wiring.names |= {str(ref.name): ref for ref in (*cells.values(), state)}
    return cells


def built_entry(refs: Range, at: Ref) -> Lookup:
    """The entry of a column of Workings; none where there is no row: of a load of which nothing was worked out when
    the sheet was built, or beside the last load of the table."""
    return derived(lambda at, one: where(is_number(at), one, NONE), at, lookup(refs, at))


def put_state(sheet: Sheet, wiring: Wiring) -> None:
    """Beside what was worked out when the sheet was built: as built, or inputs changed, as on Levers; as `pull` builds
    it, without levers, it is what was built."""
    row, column = HEADLINE_ROW + AS_BUILT_ROW, 1
    if "chk_levers" in wiring.names:
        sheet.link(row, column, wiring.ref("chk_levers"), TEXT, "light")
    else:
        sheet.text(row, column, AS_BUILT, "light")


class SizingSheet:
    """The sheet, filled from the top; a group of columns per model, with a narrow blank one between groups."""

    def __init__(self, solved: Solution, wiring: Wiring) -> None:
        self.question, self.wiring = solved.question, wiring
        self.models, self.loads = wiring.tables["models"], wiring.tables["loads"]
        self.groups = [LOAD_COLUMNS + m * (len(GROUP) + 1) for m in range(len(self.question.models))]
        self.fp8_is_large = any(needs_reservation(solved, row) for row in headline_rows(solved))
        # What else the load could be answered with, as Workings names it, and in words; in any class in use the same
        # rows, which stand where they stood.
        terms = {class_stem(purchase): f"{PURCHASES[purchase].words} term" for purchase in COMMITTED}
        self.otherwise = {**terms, "fp8": AT_FP8, **{f"fp8_{stem}": f"FP8, {said}" for stem, said in terms.items()}}
        self.unit = UNIT_NAMES[self.question.settings.units]
        self.small_unit = SMALL_UNITS[self.question.settings.units][1]
        self.positions: list[Ref] = []  # by model, where the headline's load stands on Workings
        rented = (
            f"{fit.choice.n_instances} {instance_name(fit.candidate.instance)}"
            + " " * 2 * needs_reservation(solved, row)
            for row in range(len(solved.choices))
            if (fit := Fit.of(solved, row))
        )
        rent_width = min(RENT_WIDTHS[1], max(RENT_WIDTHS[0], max(map(len, rented), default=0) + 2.0))
        n_models = len(self.groups)
        n_pages = 1 if n_models <= PER_PAGE else -(-n_models // OF_SEVERAL)
        self.sheet = Sheet(NAME, landscape=n_models > 1, one_page=n_pages == 1, about="The answers on one page.")
        if n_pages > 1:
            self.sheet.freeze = 0, LOAD_COLUMNS
        self.sheet.column_breaks = [self.groups[-(-k * n_models // n_pages)] for k in range(1, n_pages)]
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
        """A dropdown and a number choose the load; beside them, per model, what to rent and what it costs."""
        question, sheet, wiring = self.question, self.sheet, self.wiring
        self._bar(top, "The answer at")
        cells = {name: wiring.ref(f"in_headline_{name}") for name in ("workload", "tier")}
        choose = Validation("Workload", "One of the workloads of this sheet.", source="list_workload")
        kind = Kind("whole", 1, MOST_TYPED) if question.rate is None else Kind("text")
        said = "Any number from 1." if question.rate is None else f"Any number from 1, or {RATE}."
        number = Validation("Requests at once", said, kind=kind)
        sheet.put(top + 1, 1, Cell(cells["workload"].value, "input", TEXT, validation=choose), label="Workload")
        sheet.put(top + 2, 1, Cell(cells["tier"].value, "input", WHOLE, validation=number), label="At once")
        self._put_built(BUILT_ROW)
        tiers = self.loads.columns["tier" if question.rate else "concurrent_requests"]
        of_load: dict[str, Source] = {
            "load_words": self._of("load_words", 0),
            "asked": cells["tier"],
            "concurrent_requests": tiers[self.loads.n_fixed],
        }
        sheet.compute(top + 3, 0, headline_words, of_load, role="shown")
        sheet.heights |= {top + 1: 26, top + 2: 24, **dict.fromkeys(range(top + 3, top + AS_BUILT_ROW + 2), 15)}
        for m, left in enumerate(self.groups):
            of, built = partial(self._of, m=m), partial(self._as_built, m=m)
            env = {"n_instances": of("n_instances"), "instance": of("type")}
            sheet.compute(top + 1, left, rent_words, env, role="answer")
            sheet.text(top + 2, left, "Rent, $ per month", "link_text", url="internal:'Money'!A1")
            self.wiring.to_money.append(sheet.cells[top + 2, left])
            monthly = sheet.link(top + 2, left + 2, of("monthly_usd"), USD, "answer_money")
            self.wiring.headline_usd.append(monthly)
            lines = ("hardware_words", "room_words", "speed_words", "ttft_words", "runner_up_words")
            for row, name in enumerate(lines, top + 3):
                sheet.link(row, left, of(name), TEXT, "computed")
            sheet.link(top + 3, left + 3, of("provider_name"), TEXT, "right_label")
            sheet.link(top + AS_BUILT_ROW, left, built("sized_words"), TEXT, "computed")
            sheet.link(top + AS_BUILT_ROW + 1, left, of("sure_words"), TEXT, "computed")
            # As large as the answer, where an answer takes more machines than one may expect to find free.
            roles = ("answer", "answer_money") if self.fp8_is_large else ("computed", "left_number")
            for row, stem in enumerate(self.otherwise, top + AS_BUILT_ROW + 2):
                sheet.link(row, left, built(f"rent_{stem}"), TEXT, roles[0])
                sheet.link(row, left + 2, built(f"usd_{stem}"), USD, roles[1])
        sheet.text(top + AS_BUILT_ROW, 0, "Worked out", "label")
        for row, words in enumerate(self.otherwise.values(), top + AS_BUILT_ROW + 2):
            sheet.text(row, 0, f"{words}, as built", "label")
            sheet.heights[row] = 24 if self.fp8_is_large else 15

    def _of(self, name: str, m: int) -> Ref:
        """What Workings says of the load on this sheet, by model."""
        ref = self.loads.columns[name][self.loads.n_fixed + m]
        assert isinstance(ref, Ref)
        return ref

    def _as_built(self, name: str, m: int) -> Lookup:
        """What was worked out for it when the sheet was built; none where it was not."""
        return built_entry(self.loads.range(name), self.wiring.lists["built_rows"].refs[m])

    def _put_built(self, row: int) -> None:
        """Small figures under the page's print area: the load as built, which stands where a cell above says none, and
        by model the rows of Workings with the load, and with what was worked out for it when the sheet was built."""
        sheet, wiring = self.sheet, self.wiring
        sheet.text(row, 0, "Position of the workload, requests: as built, then in use; rows on Workings", "off_page")
        built = [
            sheet.put(row + 1, column, Cell(wiring.ref(name).value, "off_page", PLAIN))
            for column, name in enumerate(BUILT)
        ]
        most = self.question.reference.assumption("reservation_above_instances")
        self.most_free = sheet.put(row + 1, LOAD_COLUMNS - 1, Cell(most, "off_page", PLAIN))
        workload, requests = map(wiring.ref, IN_USE)
        found = position_in(wiring.area("list_workload"), wiring.ref("in_headline_workload"), built[0])
        sheet.link(workload.row, workload.column, found, PLAIN, "off_page")

        def in_use(typed: Any, built: Any) -> Any:
            is_whole = both(typed >= 1, round_down(typed) == typed)
            none = built if self.question.rate is None else where(typed == RATE, typed, built)
            return where(is_number(typed), where(is_whole, typed, built), none)

        found = written(requests.value, in_use, wiring.ref("in_headline_tier"), built[1])
        sheet.link(requests.row, requests.column, found, PLAIN, "off_page")
        at = position_in(wiring.lists["tiers"], requests, NO_VALUE)
        self.tier_place = sheet.link(row + 3, 0, at, PLAIN, "off_page")
        for m, left in enumerate(self.groups, 1):
            self.positions.append(sheet.put(row + 1, left, Cell(self.loads.n_fixed + m, "off_page", PLAIN)))
        wiring.lists["headline_rows"] = Range(tuple(self.positions))
        wiring.lists["built_rows"] = Range(
            tuple(
                sheet.link(row + 2, left, self._built_row(m), PLAIN, "off_page") for m, left in enumerate(self.groups)
            )
        )

    def _built_row(self, m: int) -> Lookup:
        """The row of Workings whose values as built are of the load on this sheet: that of the tier of its number, or
        its own where it is still the one as built; none once an input was changed, whose answers they are not."""
        columns, at, own = self.loads.columns, self.loads.n_fixed + m, self.positions[m]
        number = columns["tier" if self.question.rate else "concurrent_requests"][at]
        # By their names: `pull` knows by them what follows no edit.
        state, *built = map(self.wiring.ref, ("calc_built_state", *BUILT))
        tiers = self.wiring.lists["tiers"]
        place, pace, workload = place_of(tiers, number.value), columns["pace_row"][at], columns["workload_row"][at]
        value = own.value if place is None else (pace.value - 1) * len(self.question.tiers) + place

        def row_as_built(
            state: Any,
            pace: Any,
            tier_rows: Any,
            number: Any,
            tiers: Any,
            workload: Any,
            of: Any,
            requests: Any,
            own: Any,
        ) -> Any:
            listed = (pace - 1) * function("MAX", tier_rows) + function("MATCH", number, tiers, 0)
            unlisted = where((workload == of) * (number == requests) > 0, own, NONE)
            return where(state == AS_BUILT, function("IFERROR", listed, unlisted), NONE)

        read = state, pace, self.loads.range("tier_row"), number, tiers, workload, *built, own
        return written(value, row_as_built, *read)

    def weights(self, top: int) -> None:
        """Weights at BF16 and FP8, KV per token, and the precisions in use."""
        sheet, columns = self.sheet, self.models.columns
        self._bar(top, "Weights and KV")
        for row, (label, name, display) in enumerate(
            (
                (f"Weights BF16, {self.unit}", "weights_bf16_in_unit", ONE_DECIMAL),
                (f"Weights FP8, {self.unit}", "weights_fp8_in_unit", ONE_DECIMAL),
                (f"KV per token, {self.small_unit}", "kv_per_token_in_unit", ONE_DECIMAL),
            ),
            top + 1,
        ):
            sheet.text(row, 0, label, "label")
            sheet.heights[row] = 17
            for m, left in enumerate(self.groups):
                sheet.link(row, left, columns[name][m], display)
        for m, left in enumerate(self.groups):
            for row, (label, name) in enumerate((("weights", "weight_dtype"), ("KV cache", "kv_dtype")), top + 1):
                sheet.text(row, left + 2, f"{label} in use", "right_label")
                sheet.link(row, left + 3, columns[name][m], TEXT, "right_link")

    def matrix(self, top: int) -> int:
        """A row per workload and number at once, in their order: KV, fit, what to rent, $ per month; gives the row
        below."""
        sheet, loads, wiring = self.sheet, self.loads, self.wiring
        self._bar(top, "Cost by workload and load")
        sheet.texts(top + 1, 0, ("Workload", "At once"))
        sheet.heights[top + 1] = 18
        for left in self.groups:
            sheet.texts(top + 1, left, (f"KV, {self.unit}", *(label for label, _ in GROUP[1:])))
        shown = self._order(BUILT_ROW + 4)
        asked: dict[str, Source] = dict(zip(("asked_workload", "asked_requests"), map(wiring.ref, IN_USE), strict=True))
        tiers = loads.range("tier" if self.question.rate else "concurrent_requests")
        for row, positions in enumerate(shown, top + 2):
            sheet.heights[row] = 15.5
            rule = "_last" if row == top + 1 + len(shown) else ""
            number = built_entry(tiers, positions[0])
            of_load = {
                name: built_entry(loads.range(name), positions[0])
                for name in ("workload", "context_words", "workload_row")
            }
            env = {**asked, **of_load, "at_once": number}
            sheet.compute(row, 0, load_in_table, env, role="workload" + rule)
            sheet.link(row, 1, number, WHOLE, "tier" + rule)
            for left, at in zip(self.groups, positions, strict=True):
                self._load(row, left, at, rule)
        self._name_results()
        return top + 2 + len(shown)

    def _load(self, row: int, left: int, at: Ref, rule: str) -> None:
        """What a load takes, in a model's group of a row of the table. at: its row on Workings."""
        sheet = self.sheet

        def of(name: str) -> Lookup:
            return built_entry(self.loads.range(name), at)

        sheet.link(row, left, of("kv_in_unit"), ONE_DECIMAL, "kv" + rule)
        sheet.link(row, left + 1, of("fit_word"), TEXT, "fit" + rule)
        sheet.status_cells.append((row, left + 1))
        sheet.compute(
            row,
            left + 2,
            rent_or_reserve,
            {
                "n_instances": of("n_instances"),
                "instance": of("type"),
                "reservation_above_instances": self.most_free,
            },
            role="rent" + rule,
        )
        sheet.link(row, left + 3, of("monthly_usd"), USD, "money" + rule)

    def _name_results(self) -> None:
        """Names of each load's answer: by the place of its tier, and of the load above."""
        columns, models, workloads = self.loads.columns, self.question.models, self.question.workloads
        keys = zip(*(columns[f"{of}_row"] for of in ("model", "workload", "tier")), strict=True)
        for i, (m, w, t) in enumerate(keys):
            of = "headline" if i >= self.loads.n_fixed else f"{name_part(workloads[w.value - 1].id)}_{t.value}"
            for name in ("instance", "n_instances", "monthly_usd", "chance"):
                self.wiring.names[f"rec_{name_part(models[m.value - 1].model.id)}_{of}_{name}"] = columns[name][i]

    def _order(self, top: int) -> list[list[Ref]]:
        """By row of the table and model, the row of Workings that is shown there, kept under the page: workloads in
        their order, in each the tiers by their numbers, and the load above in its place among them. Where it is one of
        the tiers, nothing is left for the last row."""
        sheet, wiring, tiers, question = self.sheet, self.wiring, self.wiring.lists["tiers"], self.question
        n_w, n_t = len(question.workloads), len(question.tiers)
        workload, requests = map(wiring.ref, IN_USE)
        numbers = [ref.value for ref in tiers.refs if isinstance(ref.value, int | float)]
        n_tiers = written(n_t, call("MAX"), self.loads.range("tier_row"))
        largest = greatest(tiers)
        keys = Range(
            tuple(
                sheet.compute(
                    top + t,
                    1,
                    tier_key,
                    {
                        "tier": tier,
                        "largest_tier": largest,
                        "n_tiers": n_tiers,
                        "tier_place": sheet.put(top + t, 0, Cell(t + 1, "off_page", PLAIN)),
                    },
                    role="off_page",
                )
                for t, tier in enumerate(tiers.refs)
            )
        )
        top += n_t
        places = [sheet.put(top + k, 0, Cell(k + 1, "off_page", PLAIN)) for k in range(n_w * n_t + 1)]
        below = sum(n < requests.value for n in numbers) if isinstance(requests.value, int | float) else 0
        own_place = sheet.compute(
            self.tier_place.row,
            1,
            place_in_table,
            {
                "tier_place": self.tier_place,
                "n_rows": places[-1],
                "workload_row": workload,
                "n_tiers": n_tiers,
                "n_smaller": written(
                    below, lambda tiers, of: function("COUNTIFS", tiers, join_text("<", of)), tiers, requests
                ),
            },
            role="off_page",
        )
        order, shown = sorted(range(n_t), key=lambda t: keys.refs[t].value), list[list[Ref]]()
        for place in places:
            k = place.value - 1 - (place.value > own_place.value)
            at = None if place.value == own_place.value else k // n_t * n_t + order[k % n_t] + 1
            shown_here = written(at or NONE, _row_shown, place, own_place, n_tiers, keys)
            found = sheet.link(place.row, 1, shown_here, PLAIN, "off_page")
            shown.append([])
            for m, (left, own) in enumerate(zip(self.groups, self.positions, strict=True)):
                none = NONE if self.tier_place.value != NONE else own.value
                value = none if at is None else m * n_w * n_t + at
                what = written(value, _row_of_model, found, own, self.positions[0], places[-1], self.tier_place)
                shown[-1].append(sheet.link(place.row, left, what, PLAIN, "off_page"))
        return shown

    def foot(self, page: Page, top: int) -> int:
        """Legend, checks and dates; below what is printed, the assumptions in use, and the picture of weights against
        KV. Gives the rows that are printed."""
        sheet, wiring, several = self.sheet, self.wiring, len(self.groups) > 1
        if several:
            for column, word in enumerate(FIT_WORDS, LOAD_COLUMNS):
                sheet.text(top, column, word, "legend_" + word.split()[0])
        else:
            sheet.text(top, LOAD_COLUMNS, f"words for fit: {', '.join(FIT_WORDS)}", "remark")
        many = f"{RESERVE} more than {self.most_free.value:,.0f} machines: reserve them first."
        sheet.text(top + 1, LOAD_COLUMNS, many, "remark")
        sheet.text(top, 0, "Fit", "label")
        put_light(wiring, sheet, top + 1, 1, "Checks")
        dates = wiring.tables["instances"].range("date_in_use")
        oldest = min((r.value for r in dates.refs if r.value != NONE), default=NONE)
        first = written(oldest, lambda dates: cheapest(dates, NONE), dates)
        sheet.link(top + 2, 1, first, DATE, "computed", label="Oldest of all prices")
        sheet.link(top + 3, 1, wiring.inputs["as_of"], DATE, label="Sheet's date")
        sheet.text(top + 4, 0, f"sheetgen {page.version}", "small")
        sheet.text(top + 5, 0, f"catalog {page.catalog}", "small")
        # A sentence with the value of an input could go stale here: it is on Notes, and the input below.
        lines = [line for line in page.assumptions if not any(c.isdigit() for c in line) and ": " not in line]
        for row, line in enumerate(lines, top + 2):
            sheet.text(row, LOAD_COLUMNS, line, "remark")
        below = top + 1 + max(DATE_ROWS, 1 + len(lines))
        for row, (label, value, display) in enumerate(wiring.assumptions, below + 1):
            sheet.link(row, LOAD_COLUMNS, label, TEXT, "assumption")
            sheet.link(row, LOAD_COLUMNS + 3, value, display, "right_link")
        # The picture stands in the last group, beside the assumptions; below them where there is one model only.
        self._picture(below + 1 if several else below + len(wiring.assumptions) + 2)
        return below

    def _picture(self, top: int) -> None:
        """A stacked bar per model at the headline's load; its figures stand beside it."""
        columns, sheet, n_models = self.models.columns, self.sheet, len(self.groups)
        wide = n_models >= WIDE
        left = self.groups[-2 if wide else -1]
        sheet.texts(top, left, ("Weights", "KV", f"At the load above, {self.unit}"))
        bars = []
        for m in range(n_models):
            row = top + 1 + m
            env = {"amount_bytes": columns["weights_bytes"][m], "unit_bytes": self.wiring.inputs["unit_bytes"]}
            kv = self._of("kv_in_unit", m)
            bars.append(
                (
                    sheet.compute(row, left, in_unit, env),
                    sheet.link(row, left + 1, kv, ONE_DECIMAL, "computed"),
                    sheet.link(row, left + 2, columns["model"][m], TEXT),
                )
            )
        (first_weights, first_kv, first), (last_weights, last_kv, last) = bars[0], bars[-1]
        place = (top, self.groups[-1]) if wide else (top + 2 + n_models, left)
        width, rows = sum(sheet.widths[left + k] for k in range(len(GROUP))), max(CHART_ROWS, n_models + BARS_APART)
        sheet.charts.append(
            Chart(
                *place,
                f"Weights and KV cache at the load above, {self.unit}",
                "Stacked bars: weights and KV cache of each model at the chosen load.",
                (first, last),
                [("Weights", first_weights, last_weights, "#1D4ED8"), ("KV cache", first_kv, last_kv, "#F59E0B")],
                int(width * PIXELS_PER_WIDTH),
                20 * rows - 4,
                self.unit,
            )
        )


def _row_shown(place: Expr, own_place: Expr, n_tiers: Expr, keys: Expr) -> Any:
    """The row of Workings that a row of the table shows; none where that is the load above."""
    passed = place - 1 - where(place > own_place, 1, 0)  # rows of the table above, without that of the load above
    tier = function("MATCH", function("SMALL", keys, remainder(passed, n_tiers) + 1), keys, 0)
    return where(place == own_place, NONE, round_down(passed / n_tiers) * n_tiers + tier)


def _row_of_model(row: Expr, own: Expr, first: Expr, n_rows: Expr, tier_place: Expr) -> Any:
    """The same for a model: its row of the load above where that is none of the tiers."""
    return where(is_number(row), (own - first) * (n_rows - 1) + row, where(is_number(tier_place), NONE, own))

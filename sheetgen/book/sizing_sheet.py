"""The Sizing sheet: page 1 of the PDF, live. A row for each model, then the grid: its columns are loads, its rows
workloads, its bands models. Everything on it is looked up; nothing is worked out here.
"""

from __future__ import annotations

from collections.abc import Sequence

from sheetgen.answer.solution import Solution
from sheetgen.book.figures import hour_of_people, pace_each, tier_key, together_usd
from sheetgen.book.lookups import (
    ZERO,
    call,
    count_filled,
    count_numbers,
    greatest,
    least,
    position_in,
    total,
    written,
)
from sheetgen.book.sheets import (
    BLANK,
    NONE,
    Cell,
    CellValue,
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
from sheetgen.book.wiring import Wiring, put_light, put_reason
from sheetgen.formula import Expr, Quantity, Value, both, function, is_number, least_number, round_down, where
from sheetgen.question.parse import Kind, name_part
from sheetgen.question.sheet_question import MOST_TYPED, Question
from sheetgen.question.stated_load import RATE
from sheetgen.report import sentences
from sheetgen.report.page import NOT_SURE_OF, Page
from sheetgen.report.wording import plain
from sheetgen.sizing import cost
from sheetgen.units import DATE, NARROW, ONE_DECIMAL, PLAIN, PRICE_DATE, SMALL_UNITS, TEXT, UNIT_NAMES, USD, WHOLE

NAME = "Sizing sheet"
# The title, the yellow cells, the reason for a verdict of the checks, the question of Decision, and the heads of the
# first table.
TITLE_ROW, QUESTION_ROW, WHY_ROW, OTHER_ROW, ANSWERS_ROW = range(2, 7)
USD_AT, YEAR_AT, SURE_AT, WORD_AT, PACE_AT = 3, 4, 5, 6, 7  # columns of the first table
N_COLUMNS = 9  # at least; a load takes two of them
LABEL_WIDTH, KV_WIDTH, USD_WIDTH = 20.7, 8.5, 11.5
N_DEATHS = 5
COSTS = "Cost by workload and load"  # the head of the grid
SURE_IN_FULL = f"Sure: that these machines are fast enough for this load; {NOT_SURE_OF}."


def build_sizing(solved: Solution, page: Page, wiring: Wiring, others: Sequence[str] = ()) -> Sheet:
    """The first sheet. others: the sheets that it has a link to."""
    sizing = SizingSheet(solved, wiring)
    sizing.head(page, others)
    sizing.answers()
    sizing.grid()
    sizing.foot(page)
    return sizing.sheet


def _first_hidden(question: Question) -> int:
    """The first column that is not printed, a blank; those to its right hold results of look-ups."""
    return max(N_COLUMNS, 1 + 2 * len(question.tiers))


def headline_cells(solved: Solution, wiring: Wiring) -> dict[str, Ref]:
    """The cells of the load on this sheet, before the sheet is built: as typed, as built, and in use."""
    question, (w, t) = solved.question, solved.question.headline
    workload = question.overrides.input("headline_workload", question.workloads[w].name)
    number = RATE if question.numbers[t] is None else question.numbers[t]
    hidden = _first_hidden(question) + 1
    in_use = place_of(wiring.area("list_workload"), workload) or w + 1
    cells = {
        "workload": Ref(NAME, QUESTION_ROW, 1, workload, "in_headline_workload"),
        "tier": Ref(NAME, QUESTION_ROW, 3, number, "in_headline_tier"),
        "built_workload": Ref(NAME, 1, hidden, w + 1, "calc_built_workload"),
        "built_requests": Ref(NAME, 2, hidden, number, "calc_built_requests"),
        "workload_row": Ref(NAME, 3, hidden, in_use, "calc_headline_workload"),
        "requests": Ref(NAME, 4, hidden, number, "calc_headline_requests"),
    }
    wiring.names |= {str(ref.name): ref for ref in cells.values()}
    return cells


def _both_rows(before: Quantity, place: Value) -> Value:
    """The row of Workings of a load: those before its workload's, and its place among these."""
    return before + place


def _place_of_nth(keys: Expr, nth: Expr) -> Expr:
    return function("MATCH", function("SMALL", keys, nth), keys, 0)


class SizingSheet:
    """The sheet, filled from the top."""

    def __init__(self, solved: Solution, wiring: Wiring) -> None:
        self.question, self.wiring, self.row = solved.question, wiring, 0
        self.models, self.loads = wiring.tables["models"], wiring.tables["loads"]
        self.hidden = _first_hidden(self.question)
        self.unit = UNIT_NAMES[self.question.settings.units]
        self.of_band = sentences.weights_of_band.saying(
            unit=self.unit, small_unit=SMALL_UNITS[self.question.settings.units][1]
        ).formula("weights_of_band", "Weights and KV cache")
        n_models = len(self.question.models)
        self.sheet = Sheet(NAME, landscape=False, about="The answers on one page.", currency=wiring.currency)
        self.sheet.n_printed = self.hidden
        self.sheet.widths = {0: LABEL_WIDTH}
        for left in range(1, self.hidden, 2):
            self.sheet.widths |= {left: USD_WIDTH, left + 1: KV_WIDTH}
        # The weights of a band begin where the longest name of a model ends.
        name, beside, width = max(len(m.model.name) for m in self.question.models), 1, LABEL_WIDTH
        while width < name and beside < self.hidden - 1:
            width, beside = width + self.sheet.widths[beside], beside + 1
        self.beside_name = beside
        wiring.lists["headline_rows"] = Range(
            tuple(self._hide(1 + m, 1, self.loads.n_fixed + m + 1) for m in range(n_models))
        )

    def _hide(self, row: int, column: int, value: CellValue) -> Ref:
        """A number that look-ups read, among the hidden columns."""
        return self.sheet.put(row, self.hidden + 1 + column, Cell(value, "off_page", PLAIN))

    def _of(self, name: str, m: int) -> Ref:
        """A column of Workings for the load on this sheet, by model."""
        ref = self.loads.columns[name][self.loads.n_fixed + m]
        assert isinstance(ref, Ref)
        return ref

    def _bar(self, *texts: str) -> None:
        blanks = [""] * (self.hidden - len(texts))
        self.sheet.texts(self.row, 0, [*texts, *blanks], "rule")
        self.row += 1

    def head(self, page: Page, others: Sequence[str]) -> None:
        """The title, a finding; the load in yellow cells; and links."""
        sheet, question, wiring = self.sheet, self.question, self.wiring
        sheet.text(0, 0, page.title, "quiet")
        how = "Change a yellow cell here, on Inputs or on Prices and hardware: everything recomputes."
        sheet.text(1, 0, " · ".join(page.heads) or f"{sheet.kind}. {how}", "quiet")
        months = Range(self.loads.columns["monthly_usd"][self.loads.n_fixed :])
        names = Range(
            tuple(
                sheet.text(1 + w, self.hidden + 3, workload.request_name, "off_page")
                for w, workload in enumerate(question.workloads)
            )
        )
        cells = {name: wiring.ref(f"in_headline_{name}") for name in ("workload", "tier")}
        self._put_load_in_use()
        env: dict[str, Source] = {
            "load": self._of("tier" if question.rate else "concurrent_requests", 0),
            "load_words": self._of("load_words", 0),
            "name": lookup(names, wiring.ref("calc_headline_workload")),
            "asked": cells["tier"],
            "stated_users": self._of("stated_users", 0) if "stated_users" in self.loads.columns else ZERO,
            "low": least(months),
            "high": greatest(months),
        }
        sheet.compute(TITLE_ROW, 0, sentences.finding_words, env, role="finding")
        sheet.cells[TITLE_ROW, 0].span = self.hidden
        choose = Validation("Workload", "One of the workloads of this sheet.", source="list_workload")
        kind = Kind("whole", 1, MOST_TYPED) if question.rate is None else Kind("text")
        told = "Any number from 1." if question.rate is None else f"Any number from 1, or {RATE}."
        number = Validation("Requests at once", told, kind=kind)
        row = QUESTION_ROW
        sheet.put(row, 1, Cell(cells["workload"].value, "input", TEXT, validation=choose))
        sheet.text(row, 0, "Workload", "plain")
        sheet.put(row, 3, Cell(cells["tier"].value, "input", WHOLE, validation=number), label="At once")
        put_light(wiring, sheet, row, 5, "Checks")
        put_reason(wiring, sheet, WHY_ROW, 0, self.hidden)
        for column, name in zip(range(7, self.hidden), others, strict=False):
            sheet.text(row, column, f"to {name}", "link_text", url=f"internal:'{name}'!A1")
        sheet.heights |= {0: 15, 1: 15, TITLE_ROW: 26, row: 18, WHY_ROW: 13}

    def _put_load_in_use(self) -> None:
        """Hidden: the load as built, which stands where a yellow cell says none, and the one in use."""
        sheet, wiring = self.sheet, self.wiring
        built = []
        for name in ("workload", "requests"):
            ref = wiring.ref(f"calc_built_{name}")
            built.append(sheet.put(ref.row, ref.column, Cell(ref.value, "off_page", PLAIN)))
        workload, requests = wiring.ref("calc_headline_workload"), wiring.ref("calc_headline_requests")
        shown = position_in(wiring.area("list_workload"), wiring.ref("in_headline_workload"), built[0])
        sheet.link(workload.row, workload.column, shown, PLAIN, "off_page")

        def in_use(typed: Value, built: Value) -> Value:
            is_whole = both(typed >= 1, round_down(typed) == typed)
            none = built if self.question.rate is None else where(typed == RATE, typed, built)
            return where(is_number(typed), where(is_whole, typed, built), none)

        shown = written(requests.value, in_use, wiring.ref("in_headline_tier"), built[1])
        sheet.link(requests.row, requests.column, shown, PLAIN, "off_page")

    def answers(self) -> None:
        """A row for each model, at the load above."""
        sheet, inputs, n_models = self.sheet, self.wiring.inputs, len(self.question.models)
        self.row = ANSWERS_ROW
        heads = ("$ a month", "$ a year", "sure", "first word, s", "tokens a second")
        sheet.texts(self.row, 0, ("Model", "Rent", ""), "rule_head")
        sheet.texts(self.row, USD_AT, (*heads, *[""] * (self.hidden - PACE_AT - 1)), "rule_head_right")
        sheet.heights[self.row] = 28
        self.row += 1
        months, years = list[Ref](), list[Ref]()
        for m, model in enumerate(self.models.columns["model"]):
            load = {name: self._of(name, m) for name in self.loads.columns}
            sheet.link(self.row, 0, model, TEXT, "bold")
            sheet.compute(self.row, 1, sentences.rent_words, {**load, "instance": load["type"]}, role="plain")
            months.append(sheet.link(self.row, USD_AT, load["monthly_usd"], USD, "large"))
            years.append(sheet.compute(self.row, YEAR_AT, cost.annual_usd, {**inputs, "monthly_usd": months[-1]}))
            sheet.compute(self.row, SURE_AT, sentences.chance_words, {**inputs, **load}, role="right_text")
            sheet.link(self.row, WORD_AT, load["ttft_seconds"], ONE_DECIMAL, "computed")
            sheet.compute(self.row, PACE_AT, pace_each, load)
            sheet.heights |= {self.row: 18, self.row + 1: 13}
            sheet.compute(self.row + 1, 0, sentences.people_of_answer, load, role="quiet_last")
            sheet.compute(self.row + 1, 1, sentences.gpus_at, load, role="quiet_last")
            sheet.texts(self.row + 1, 2, [""] * (self.hidden - 2), "quiet_last")
            self.row += 2
        self.wiring.headline_usd += months
        if n_models > 1:
            sheet.compute(self.row, 0, sentences.together_words, inputs, role="quiet")
            for column, refs in ((USD_AT, months), (YEAR_AT, years)):
                area = Range(tuple(refs))
                env: dict[str, Source] = {
                    "together": inputs["together"],
                    "sum_usd": total(area),
                    "n_known": count_numbers(area),
                    "n_models": count_filled(area),
                }
                sheet.compute(self.row, column, together_usd, env, role="light")
            together = inputs["together"].expr(sheet.name).text
            sheet.marked.append(([(self.row, USD_AT), (self.row, YEAR_AT)], f'{together}<>"yes"', "blank"))
            self.row += 1
        asked = self.question.ask or 0
        of_load: dict[str, Source] = {name: self._of(name, asked) for name in self.loads.columns}
        of_asked = {**inputs, "stated_users": ZERO, **of_load, "model": self.models.columns["model"][asked]}
        of_asked["per_hour"] = sheet.compute(self.row, self.hidden + 1, hour_of_people, of_asked, role="off_page")
        sheet.compute(self.row, 0, sentences.people_in_numbers, of_asked, role="line")
        sheet.heights[self.row] = 13
        self.row += 1
        beyond = {**inputs, "input_tokens": of_load["input_tokens"]}
        sheet.compute(self.row, 0, sentences.word_beyond_runs, beyond, role="line")
        sheet.heights[self.row] = 13
        self.row += 1
        most = plain(self.question.reference.assumption("reservation_above_instances"))
        reserved = f"More than {most} machines: ask the provider first."
        sheet.text(self.row, 0, f"{SURE_IN_FULL} {reserved}", "line")
        sheet.heights[self.row] = 13
        sheet.compute(self.row + 1, 0, sentences.not_in_the_price, inputs, role="line")
        sheet.heights |= {self.row + 1: 13, self.row + 2: BLANK}
        for row in range(self.row - 2, self.row + 2):
            sheet.cells[row, 0].span = self.hidden
        self.row += 3

    def grid(self) -> None:
        """Columns are loads, rows workloads, bands models."""
        sheet, question, wiring = self.sheet, self.question, self.wiring
        self._bar(f"{COSTS}: $ a month, what to rent, {self.unit} of KV cache")
        top, columns = self.row, [1 + 2 * t for t in range(len(question.tiers))]
        self.listed = self.wiring.area("list_workload").refs
        self.groups = list(zip(columns, *self._tiers_in_order(), strict=True))
        for left, tier, _ in self.groups:
            of_load = {"tier": tier, "stated_users": wiring.inputs.get("stated_users", ZERO)}
            sheet.compute(self.row, left, sentences.tier_words, of_load, role="bold")
        self.row += 1
        for w in range(len(question.workloads)):
            self._people(w)
        head = sentences.kv_head.saying(unit=self.unit).formula("kv_head", "KV cache of a column")
        sheet.text(self.row, 0, "", "quiet_right")
        for left, tier, _ in self.groups:
            sheet.text(self.row, left, "$ a month", "quiet")
            sheet.compute(self.row, left + 1, head, {"tier": tier}, role="quiet_right")
            if tier.value == RATE:  # its head is longer, and has no other beside it
                cell = sheet.cells[self.row, left + 1]
                cell.role, cell.wraps = "small_value", True
        sheet.rows_repeated = top, self.row
        self.row += 1
        self.asked: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by workload and column, the cells
        for m in range(len(question.models)):
            sheet.page_breaks.append(self.row)
            self._band(m)
        self._mark_asked()
        self._name_results()
        sheet.last_headed = self.row
        sheet.heights[self.row] = BLANK
        self.row += 1

    def _people(self, w: int) -> None:
        """The number of people that each load of a workload is enough for, on the hardware of every model."""
        sheet = self.sheet
        sheet.link(self.row, 0, self.listed[w], TEXT, "quiet")
        before = [self._hide(self.row, 10 + m, self._before(m, w)) for m in range(len(self.question.models))]
        for left, _, place in self.groups:
            counts = [lookup(self.loads.range("users"), derived(_both_rows, base, place)) for base in before]
            numbers = [users.value for users in counts if isinstance(users.value, int | float)]
            env = {"users": written(min(numbers, default=0), call("MIN"), *counts)}
            sheet.compute(self.row, left, sentences.enough_for, env, role="quiet")
        sheet.heights[self.row] = 12.5
        self.row += 1

    def _before(self, m: int, w: int) -> int:
        """The number of rows of Workings before a model's workload."""
        return (m * len(self.question.workloads) + w) * len(self.question.tiers)

    def _band(self, m: int) -> None:
        """A model's band: its weights and KV cache, then two lines for each workload."""
        sheet, columns = self.sheet, self.models.columns
        of_model = {
            "bf16": columns["weights_bf16_in_unit"][m],
            "fp8": columns["weights_fp8_in_unit"][m],
            "kv": columns["kv_per_token_in_unit"][m],
            **{name: columns[name][m] for name in ("weights_words", "kv_words")},
        }
        sheet.link(self.row, 0, columns["model"][m], TEXT, "band")
        beside = self.beside_name
        sheet.texts(self.row, 1, [""] * (beside - 1), "band")
        sheet.compute(self.row, beside, self.of_band, of_model, role="band_quiet")
        sheet.texts(self.row, beside + 1, [""] * (self.hidden - beside - 1), "band")
        sheet.heights[self.row] = 15
        self.row += 1
        for w, workload in enumerate(self.listed):
            base = self._hide(self.row, 2, self._before(m, w))
            sheet.link(self.row, 0, workload, TEXT, "plain")
            first = derived(_both_rows, base, self.groups[0][2])
            env = {"context_words": lookup(self.loads.range("context_words"), first)}
            sheet.compute(self.row + 1, 0, sentences.tokens_words, env, role="quiet_last")
            for t, (left, _, place) in enumerate(self.groups):
                self.asked.setdefault((w, t), []).append((self.row, left))
                self._load(self.row, left, derived(_both_rows, base._replace(lock="column"), place))
            after = 1 + 2 * len(self.groups)
            sheet.texts(self.row + 1, after, [""] * (self.hidden - after), "quiet_last")
            sheet.heights |= {self.row: 13.2, self.row + 1: 12.8}
            self.row += 2

    def _mark_asked(self) -> None:
        """The price of the load above is blue wherever it stands."""
        workload, requests = (self.wiring.ref(f"calc_headline_{name}") for name in ("workload", "requests"))
        numbers = [self._hide(1 + w, 9, w + 1) for w in range(len(self.listed))]
        for (w, t), cells in self.asked.items():
            number, tier = numbers[w], self.groups[t][1]
            texts = (ref._replace(name=None).expr(NAME).text for ref in (workload, number, requests, tier))
            self.sheet.marked.append((cells, "AND({}={},{}={})".format(*texts), "asked"))

    def _load(self, row: int, left: int, place: Lookup) -> None:
        """The price and the KV cache of a load, and below them the instances to rent."""

        def figure(name: str) -> Lookup:
            return lookup(self.loads.range(name), place)

        self.sheet.link(row, left, figure("monthly_usd"), USD, "grid_money")
        self.sheet.link(row, left + 1, figure("kv_in_unit"), NARROW, "quiet_right")
        env = {"n_instances": figure("n_instances"), "instance": figure("type")}
        self.sheet.compute(row + 1, left, sentences.rent_words, env, role="rent")
        self.sheet.cells[row + 1, left].span = 2  # below both

    def _tiers_in_order(self) -> tuple[list[Ref], list[Ref]]:
        """By column of the grid its load, and that load's place among the tiers on Inputs, in increasing order;
        hidden."""
        tiers, left = self.wiring.lists["tiers"], self.hidden + 5
        n_tiers = written(len(tiers.refs), call("MAX"), self.loads.range("tier_row"))
        places = [self._hide(1 + t, 4, t + 1) for t in range(len(tiers.refs))]
        keys: list[Ref] = []
        for t, (tier, place) in enumerate(zip(tiers.refs, places, strict=True), 1):
            env: dict[str, Source] = {
                "tier": tier,
                "largest_tier": greatest(tiers),
                "n_tiers": n_tiers,
                "tier_place": place,
            }
            keys.append(self.sheet.compute(t, left + 1, tier_key, env, role="off_page"))
        order = sorted(range(len(places)), key=lambda t: keys[t].value)
        numbers, ordered = list[Ref](), list[Ref]()
        for row, (t, place) in enumerate(zip(order, places, strict=True), 1):
            nth = written(t + 1, _place_of_nth, Range(tuple(keys)), place)
            ordered.append(self.sheet.link(row, left + 2, nth, PLAIN, "off_page"))
            numbers.append(self.sheet.link(row, left + 3, lookup(tiers, ordered[-1]), PLAIN, "off_page"))
        return numbers, ordered

    def _name_results(self) -> None:
        """Names of each load's answer: by the place of its tier, and of the load above."""
        columns, models, workloads = self.loads.columns, self.question.models, self.question.workloads
        keys = zip(*(columns[f"{axis}_row"] for axis in ("model", "workload", "tier")), strict=True)
        for i, (m, w, t) in enumerate(keys):
            load_name = "headline" if i >= self.loads.n_fixed else f"{name_part(workloads[w.value - 1].id)}_{t.value}"
            for name in ("instance", "n_instances", "monthly_usd", "chance"):
                self.wiring.names[f"rec_{name_part(models[m.value - 1].model.id)}_{load_name}_{name}"] = columns[name][
                    i
                ]

    def foot(self, page: Page) -> None:
        """The settings to change where memory runs out, the assumptions, and dates."""
        sheet, wiring = self.sheet, self.wiring
        sheet.page_breaks.append(self.row)
        self._bar("If it runs out of memory", "runs out", "", "change first", "", "", "and the log says")
        for death in page.deaths[:N_DEATHS]:
            for column, span, text in (
                (0, 1, death.where),
                (1, 2, death.bill),
                (3, 3, death.lasting_change),
                (6, self.hidden - 6, death.looks_like),
            ):
                sheet.put(self.row, column, Cell(str(text), "quiet", span=span, wraps=True))
            sheet.heights[self.row] = 13
            self.row += 1
        sheet.heights[self.row] = BLANK
        self.row += 1
        self._bar("Assumed; change it on Inputs")
        half = -(-len(wiring.assumptions) // 2)
        for k, (label, value, display) in enumerate(wiring.assumptions):
            row, left = self.row + k % half, 5 * (k // half)
            sheet.link(row, left, label, TEXT, "quiet")
            sheet.link(row, left + 3, value, display, "small_value")
            sheet.heights[row] = 13
        self.row += half + 1
        dates = self.loads.range("price_date")
        oldest = min((r.value for r in dates.refs if r.value != NONE), default=NONE)
        sheet.link(
            self.row,
            1,
            written(oldest, lambda dates: least_number(dates, otherwise=NONE), dates),
            PRICE_DATE,
            "computed",
            label="Oldest price in use",
        )
        sheet.link(self.row, 4, wiring.inputs["as_of"], DATE, label="Sheet's date")
        sheet.text(self.row, 5, f"sheetgen {page.version}, catalog {page.catalog}", "remark")

"""Decision: one model and any load, live: the instances to rent, the certainty, the inputs that move the price, ways to
pay less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sheetgen.answer.pay_less import MONTHS
from sheetgen.answer.solution import Solution
from sheetgen.answer.ways_to_pay import HOSTED_TOKENS, OF_OWNING, PAYBACK
from sheetgen.book import figures
from sheetgen.book.catalogs import provider_names
from sheetgen.book.contexts_sheet import build_contexts
from sheetgen.book.decision_choices import (
    AS_TYPED,
    BASE,
    CASES,
    CONTEXTS,
    ENDS,
    EVEN,
    FOUR_BITS,
    HIGH,
    KV_FP8,
    LOADS,
    LOW,
    OUTER,
    PUBLISHED,
    SHOWN,
    SURE,
    Choices,
    Context,
    case_context_tokens,
    case_load,
    case_rate,
    case_requests,
    load_of,
    loop_of_choice,
    n_table_rows,
    people_or_none,
    providers,
    requests_of_choice,
)
from sheetgen.book.decision_data import LISTS, below, build_data, build_lists
from sheetgen.book.lookups import NO_VALUE, ZERO, constant, entry_of, position_or_after
from sheetgen.book.money_block import above_zero, entry
from sheetgen.book.sheets import (
    BLANK,
    LINE,
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
    held_where,
    rows_of,
    worked_out,
)
from sheetgen.book.wiring import Wiring, in_words, name_all
from sheetgen.book.workings import add_choices, add_otherwise, build_loads
from sheetgen.formula import Formula, Quantity, Value, is_number, is_text, join_text, where
from sheetgen.question.inputs import ASKS, BY_NAME
from sheetgen.question.sheet_question import TARGETS
from sheetgen.report import sentences
from sheetgen.report.headline_table import TERMS_OF_US, terms_of_us
from sheetgen.report.page import Text, capital
from sheetgen.report.pay_less_words import TERMS, WAYS
from sheetgen.report.wording import regions_of_prices
from sheetgen.sizing import certainty, cost, parallelism, people, rates, targets
from sheetgen.units import COMMITTED, FACTOR, PERCENT, PLAIN, PURCHASES, TEXT, TWO_DECIMALS, USD, WHOLE, Display

CHOICE, ANSWER, LOW_AT = 1, 3, 1
WIDTHS = {0: 20.4, 1: 13, 2: 1, 3: 17, 4: 9.5, 5: 10.5, 6: 23}  # 700 pixels
N_COLUMNS = len(WIDTHS)
AT_EVEN_CHANCE = "At least an even chance to be fast enough"
HIDDEN = N_COLUMNS + 1  # where charts find their figures
FIRST_ROW = 4  # of the choices, and of the answer beside them
CHART_WIDTH, CHART_HEIGHT, RANGES_LEFT = 344, 160, 96  # pixels; of both charts; of the second after its column
TWO_LINES, THREE_LINES = 25.5, 36.0  # points, of a row
_FOLLOWS = "Milliseconds; as the tokens have it until you type over it; blank: no target."
# Choices: name, label, display; the cell's message, and its bounds.
CHOICES_SHOWN: tuple[tuple[str, str, Display, str, dict[str, str]], ...] = (
    ("model", "Model", TEXT, "A model of Catalog, or one that you typed on Models.", {}),
    ("workload", "Workload", TEXT, "One of this sheet, for the questions and tokens below; or: as typed.", {}),
    ("users", "People", WHOLE, "They ask over the day as stated below. Blank: the requests at once below count.", {}),
    ("requests_per_user_per_day", "Questions a day, each", FACTOR,
     "Of one person, every day; counts only with people.", {}),
    ("concurrent_requests", "or requests at once", WHOLE, "A whole number from 1; counts only without people.", {}),
    ("context_tokens", "Tokens of each", WHOLE,
     "Prompt and answer together, a whole number from 1; not below the answer.",
     {"at_least": "in_decision_answer_tokens"}),
    ("answer_tokens", "of them the answer", WHOLE, "A whole number from 0; not above the tokens of each.",
     {"at_most": "in_decision_context_tokens"}),
    ("weight_dtype", "Weights", TEXT, "recommended, published or a precision of the list.", {}),
    ("kv_cache_dtype", "KV cache", TEXT, "auto or a precision of the list.", {}),
    ("purchase", "Pay", TEXT, f"{', '.join(PURCHASES)}.", {}),
    ("provider", "Provider", TEXT, "any, or one of Prices and hardware.", {}),
    ("region", "Region", TEXT, "any, or one of Prices and hardware.", {}),
    ("confidence", "Sure to be fast enough", PERCENT, "A share from 1% to 99%; 50% is the central prediction.", {}),
    ("tpot_ms", "Time per token, ms", WHOLE, _FOLLOWS, {}),
    ("ttft_ms", "First token, ms", WHOLE, _FOLLOWS, {}),
)  # fmt: skip
OF_WORKLOAD = {ASKS: ASKS, "context_tokens": "contexts", "answer_tokens": "answers"}  # and their list on Inputs
SPEED = "Speed"
OF_FACTORS: dict[str, tuple[str, Formula | None]] = {  # the title of the cells, and the label where it varies
    "users": ("Load multiplier", sentences.times_of_load),
    "context": ("Length multiplier", None),
    "price": ("Price multiplier", sentences.times_of_price),
}


def _change(kind: str, **slots: object) -> str:
    """The change that a way to pay less makes, in the words of the request."""
    return capital(str(WAYS[kind].change.fill(**slots)))


def _loses(kind: str, **slots: object) -> str:
    """The loss that comes with a way to pay less, in the words of the request."""
    return str(WAYS[kind].loses.fill(**slots))


def _with_others(provider: Value, name: Value, before: Value) -> Value:
    """A list of providers with one more behind it, where there is one."""
    longer = join_text(before, ", ", name)
    return where(is_text(provider), where(provider == NONE, before, longer), before)


def _or_none(target_ms: Quantity) -> Value:
    """A target; 0, which is none, where the cell is blank."""
    return where(is_number(target_ms), target_ms, 0)


class DecisionSheets:
    """The page, and the sheets behind it: first the choices, which the workings read; then the answer, once Profiles
    and Candidates stand. book: the workbook's own wiring, whose names it adds to.

    What is sized for it stands in rows of its own below those of the workbook's models and loads, on Profiles and
    Candidates.
    """

    def __init__(self, solved: Solution, choices: Choices, book: Wiring) -> None:
        self.choices, self.book, self.wiring = choices, book, Wiring(prefix="wi_")
        about = "One model and any load, live."
        self.sheet = Sheet("Decision", landscape=False, one_page=True, about=about, currency=book.currency)
        self.sheet.widths, self.sheet.n_printed, self.sheet.keeps_widths = dict(WIDTHS), N_COLUMNS, True
        self.inputs: dict[str, Ref] = {}  # by defined name
        catalog = build_lists(solved, choices, book)
        n_providers = n_table_rows(providers(solved.question), (row.provider for row in solved.question.rows))
        self.is_of_region, values = bool(solved.question.filters.region), solved.question.owning.values
        self.us_terms = {name: values[name] for name in terms_of_us(solved.question)}
        self.picked = self._choices(regions_of_prices(solved.question), n_providers)
        self.data = build_data(self.picked, book, self.wiring)
        self._load()
        self._cases()
        for sheet in (self.data, self.sheet):
            name_all(self.wiring, sheet.name)
        levels = {"asked": "own_confidence_z", EVEN: "own_even_z", SURE: "own_sure_z"}
        contexts = build_contexts(
            self.wiring,
            CASES,
            "Decision contexts",
            pairs=[(context.precision, context.case) for context in CONTEXTS],
            levels=[self.wiring.inputs[levels[context.level]] for context in CONTEXTS],
        )
        loads = [(context.precision, context.case, size) for context, size in LOADS]
        paces = [CONTEXTS.index(context) for context, _ in LOADS]
        names = [self._called(context, size) for context, size in LOADS]
        workings = build_loads(self.wiring, CASES, loads, "Decision loads", names, paces=paces)
        self.behind = [catalog, self.data, contexts, workings]

    @staticmethod
    def _called(context: Context, size: int) -> str:
        """A load of Decision, as its row of workings has it."""
        precision = ("", "as published", "FP8 KV cache", "4 bits")[context.precision]
        words = precision, f"context {CASES[context.case]}", f"level {context.level}", f"size {size + 1}"
        return ", ".join(word for word in words if word)

    def _choices(self, regions: Text, n_providers: int) -> dict[str, Ref]:
        """The yellow cells, with names in_decision_...; returns those that count: the workload's where one is
        chosen."""
        sheet, picked, counted = self.sheet, dict[str, Ref](), dict[str, Ref]()
        sheet.text(1, 0, f"{sheet.kind}. Change a yellow cell: everything on this page follows.", "quiet")
        sheet.texts(FIRST_ROW - 1, 0, ("The question", ""), "rule")
        sheet.texts(FIRST_ROW - 1, ANSWER, ("The answer", *[""] * (N_COLUMNS - ANSWER - 1)), "rule")
        for row, (name, label, display, message, more) in enumerate(CHOICES_SHOWN, FIRST_ROW):
            kind = None if name in LISTS else BY_NAME[f"decision_{name}"].kind
            validation = Validation(label, message, source=LISTS.get(name), kind=kind, **more)
            cell = Cell(self.choices.picked[name], "input", display, validation=validation, wraps=name == "model")
            if name in self.choices.follows:
                usual = self._target(name, counted["context_tokens"], counted["answer_tokens"])
                cell = replace(cell, value=usual.value, formula=usual.expr(sheet.name))
            if name == "concurrent_requests":
                sheet.compute(row, CHOICE - 1, sentences.at_once_label, picked, role="plain")
            else:
                sheet.text(row, CHOICE - 1, label, "plain")
            picked[name] = sheet.put(row, CHOICE, cell, f"in_decision_{name}")
            if name in OF_WORKLOAD:
                listed, names = self.book.lists[OF_WORKLOAD[name]], self.book.area("list_workload")
                of_workload = entry_of(listed, names, picked["workload"], picked[name])
                counted[name] = sheet.link(row, HIDDEN + 3, of_workload, display, "off_page")
                self.book.names[f"calc_decision_{name}"] = counted[name]
        self._mark_unused(picked)
        self.row = FIRST_ROW + len(CHOICES_SHOWN)
        in_order = self.book.tables["instances"].range("provider_in_order").refs[:n_providers]
        first, *others = zip(in_order, provider_names(in_order), strict=True)
        so_far = sheet.link(FIRST_ROW, HIDDEN + 9, first[1], TEXT, "off_page")
        for row, (ref, called) in enumerate(others, FIRST_ROW + 1):
            so_far = sheet.link(row, HIDDEN + 9, derived(_with_others, ref, called, so_far), TEXT, "off_page")
        any_of = derived(lambda so_far: join_text(f"{regions}. Any provider: ", so_far), so_far)
        sheet.link(self.row, 0, any_of, TEXT, "quiet")
        self.inputs |= {f"in_decision_{name}": ref for name, ref in picked.items()}
        return picked | counted

    def _mark_unused(self, picked: Mapping[str, Ref]) -> None:
        """Grey the cells that do not count: requests at once beside people, questions a day without people, and lengths
        that the workload sets."""
        people, workload = (
            picked[name]._replace(name=None).expr(self.sheet.name).text for name in ("users", "workload")
        )
        by_workload = f'{workload}<>"{AS_TYPED}"'
        for name, rule in (
            ("concurrent_requests", f"AND(ISNUMBER({people}),{people}>0)"),
            (ASKS, f"IF(AND(ISNUMBER({people}),{people}>0),{by_workload},TRUE)"),
            ("context_tokens", by_workload),
            ("answer_tokens", by_workload),
        ):
            self.sheet.marked.append(([(picked[name].row, picked[name].column)], rule, "unused"))

    def _target(self, name: str, context: Source, answer: Source) -> Lookup:
        """The target that follows a context and its answer."""
        inputs, default = self.book.inputs, dict(zip(TARGETS, targets.DEFAULTS, strict=True))[name]
        env: dict[str, Source] = {**inputs, "context_tokens": context, "answer_tokens": answer}
        env["input_tokens"] = worked_out(*figures.prompt_of(inputs, context, answer))
        env["cached_fraction"] = inputs["prefix_cache_hit_fraction"]
        return worked_out(figures.followed(default), env)

    def _target_of_case(self, name: str, context: Source, answer: Source, *, is_base: bool) -> Source:
        """The target of a case: the page's, or, where that follows its tokens, the one that follows the case's."""
        target = self.picked[name]
        if is_base or name not in self.choices.follows:
            return target
        usual = self._target(name, self.picked["context_tokens"], answer)
        env: dict[str, Source] = {
            "target_ms": target,
            "followed_ms": usual,
            "case_followed_ms": self._target(name, context, answer),
        }
        return worked_out(figures.case_target_ms, env)

    def _put(self, name: str, label: str, quantity: Formula, env: Mapping[str, Source]) -> Ref:
        """A line of Decision data, read under that name."""
        row, read = below(self.data) - 1, {**self.wiring.inputs, **env}
        ref = self.data.compute(row, 1, quantity, read, label=label)
        if self.data.is_search(ref):
            ref = self.data.pass_on(row, 2, ref, quantity, read)
        self.wiring.inputs[name] = ref
        return ref

    def _load(self) -> None:
        """The class, the confidence and the hours of Decision, and the requests at once of its people."""
        data, inputs, picked = self.data, self.wiring.inputs, self.picked
        self._put("own_confidence_z", certainty.confidence_z.label, certainty.confidence_z, picked)
        levels = (("own_even_z", 0, "of an even chance"), ("own_sure_z", certainty.SURE_Z, "of 90 %"))
        for name, deviations, label in levels:
            inputs[name] = data.put(below(data) - 1, 1, Cell(deviations, "fixed", TWO_DECIMALS), label=label)
        survive = Cell(parallelism.MACHINE, "fixed", PLAIN)
        inputs["own_survive"] = data.put(below(data) - 1, 1, survive, label="Where a machine may fail")
        names, committed = Range(self.book.area(LISTS["purchase"]).refs), self.book.lists["committed"]
        place = position_or_after(names, picked["purchase"])
        inputs["own_purchase_row"] = data.link(below(data) - 1, 1, place, PLAIN, "computed", label="Row of the class")
        flag = entry_of(committed, names, picked["purchase"], ZERO)
        hours = cost.paid_hours_per_month
        self._put("own_paid_hours_per_month", "Hours paid a month", hours, {"is_committed": flag})
        for name in ("provider", "region"):
            row = below(data) - 1
            inputs[f"own_{name}"] = data.link(row, 1, picked[name], TEXT, "computed", label=f"{in_words(name)} chosen")
        users = self._put("own_users", people_or_none.label, people_or_none, picked)
        inputs["own_cached_fraction"] = inputs["prefix_cache_hit_fraction"]
        inputs[ASKS] = picked[ASKS]
        limits: dict[str, Source] = {
            f"{figure}_limit_seconds": self._put(f"own_{figure}_limit", f"{figure.upper()} in force, s", quantity, env)
            for figure, quantity, env in (
                (
                    figure,
                    parallelism.limit_seconds,
                    {"target_ms": derived(_or_none, self.picked[f"{figure}_ms"])},
                )
                for figure in ("tpot", "ttft")
            )
        }
        answer: dict[str, Source] = {"output_tokens": picked["answer_tokens"]}
        self._put(
            "own_target_turn_seconds", people.target_turn_seconds.label, people.target_turn_seconds, limits | answer
        )
        # People ask over the day; the rate is their requests per second in the busiest hour.
        of_day: dict[str, Source] = {
            "users": users,
            "input_tokens": ZERO,
            **answer,
            "requests_per_day": ZERO,
            "tokens_per_day": ZERO,
        }
        day = self._put("own_day_requests", people.day_requests.label, people.day_requests, of_day)
        peak = rates.peak_requests_per_second
        self.rate = self._put("own_peak", peak.label, peak, {"day_requests": day, "requests_per_second": ZERO})
        stated = {**picked, "stated_users": users}
        self.at_once = self._put("own_requests", requests_of_choice.label, requests_of_choice, stated)
        self._put("closed_loop", loop_of_choice.label, loop_of_choice, stated)

    def _cases(self) -> None:
        """The factors of the ends, in yellow cells further down, and the requests and contexts that follow from
        them."""
        sheet, data, lists, inputs = self.sheet, self.data, self.wiring.lists, self.wiring.inputs
        self.factors_row = FIRST_ROW + len(CHOICES_SHOWN) + 2
        factors: dict[str, list[Ref]] = {}
        for row, (name, (title, _)) in enumerate(OF_FACTORS.items(), self.factors_row + 1):
            check = Validation(title, "A factor above 0.", kind=BY_NAME[f"case_{name}_low"].kind)
            ends = zip((LOW_AT, ANSWER), ENDS, self.choices.factors[name], strict=True)
            factors[name] = [
                sheet.put(row, column, Cell(f, "input", FACTOR, validation=check), f"in_case_{name}_{end}")
                for column, end, f in ends
            ]
            self.inputs |= {str(ref.name): ref for ref in factors[name]}
        self.price_factors = factors["price"]
        row = below(data)
        data.texts(row, 1, (*CASES, *("of the chart" for _ in OUTER)))
        outer = [data.put(row + 1, 4 + k, Cell(share, "fixed", FACTOR)) for k, share in enumerate(OUTER)]
        sizes: tuple[Source, ...] = (constant(1), *factors["users"], *outer)
        own: dict[str, Source] = {
            "requests": self.at_once,
            "requests_per_second": self.rate,
            "stated_users": inputs["own_users"],
        }
        for name, quantity in (("tiers", case_requests), ("rates", case_rate), ("sizes", case_load)):
            row += 2 if name == "tiers" else 1
            data.text(row, 0, quantity.label, "label")
            cells = (
                data.compute(row, 1 + k, quantity, {**own, "case_factor": factor}) for k, factor in enumerate(sizes)
            )
            lists[name] = Range(tuple(cells))
        row -= 2
        limit = self.wiring.tables["models"].columns["max_context_tokens"][0]
        data.text(row + 3, 0, case_context_tokens.label, "label")
        contexts = [
            data.compute(
                row + 3,
                1 + k,
                case_context_tokens,
                {**self.picked, "case_factor": factor, "max_context_tokens": limit},
            )
            for k, factor in enumerate((sizes[BASE], *factors["context"]))
        ]
        lists["contexts"] = Range(tuple(contexts))
        answer = self.picked["answer_tokens"]
        of_cases = {
            name: [self._target_of_case(name, context, answer, is_base=k == 0) for k, context in enumerate(contexts)]
            for name in TARGETS
        }
        lines: tuple[tuple[str, str, Sequence[Source]], ...] = (
            ("answers", "Answer, tokens", [answer] * len(CASES)),
            ("tpot_targets", "Target: time per token, ms", of_cases["tpot_ms"]),
            ("ttft_targets", "Target: first token, ms", of_cases["ttft_ms"]),
        )
        for data_row, (name, label, read) in enumerate(lines, row + 4):
            data.text(data_row, 0, label, "label")
            cells = (
                data.formula(data_row, 1 + k, source.value or 0, source.expr(data.name), WHOLE)
                for k, source in enumerate(read)
            )
            lists[name] = Range(tuple(cells))
        data_row = row + 4 + len(lines)
        data.text(data_row, 0, "Prompt, tokens", "label")
        lists["prompts"] = Range(
            tuple(
                data.compute(data_row, k, *figures.prompt_of(inputs, context, answer))
                for k, context in enumerate(contexts, 1)
            )
        )

    def answer(self) -> None:
        """Add the choices of Decision's loads, once Profiles and Candidates stand, and the rest of the page."""
        self.book.names |= self.inputs
        beside = {EVEN: 1, SURE: 2}
        levels = [beside.get(context.level, 0) for context, _ in LOADS]
        add_choices(self.wiring, takes_cheapest=levels, n_shown=len(SHOWN))
        self.terms, self.survivor = add_otherwise(self.wiring, COMMITTED)
        table = self.wiring.tables["loads"]
        self.rows = [table.row(i) for i in range(table.n_rows)]
        self._answer()
        self._ranges()
        self._chart_of_people()
        self._ways()
        for sheet in self.behind[1:]:
            for cell in sheet.cells.values():
                cell.note = ""  # the same as on the workbook's own sheets

    def title(self) -> Ref:
        """The cell that says what is asked here, and its month."""
        return Ref(self.sheet.name, 0, 0, self.sheet.cells[0, 0].value)

    def point_to(self, other: str, other_title: Ref) -> None:
        """Say below the title what another sheet asks, with a link to it."""
        self.sheet.compute(2, 0, sentences.sheet_asks, {"other_title": other_title}, role="line")
        self.sheet.cells[2, 0].span = N_COLUMNS
        self.sheet.text(1, ANSWER + 1, f"to {other}", "link_text", url=f"internal:'{other}'!A1")

    def _in_force(self, name: str) -> Lookup:
        """A column of the answer: at the confidence asked for, or at an even chance where no hardware is so sure."""
        asked, even = self.rows[load_of()], self.rows[load_of(Context(level=EVEN))]
        return held_where(asked["n_instances"], asked[name], even[name])

    def _answer(self) -> None:
        """The answer beside the choices: instances, certainty, speed."""
        sheet, inputs = self.sheet, self.wiring.inputs
        read = (
            "n_instances", "type", "instance", "monthly_usd", "n_gpus", "gpu_name", "provider_name",
            "served_at_target", "memory_holds", "replicas_per_instance",
            "chance", "ttft_seconds", "tpot_seconds", "context_words", "gpu_row", "concurrent_requests", "users",
        )  # fmt: skip
        shown: dict[str, Ref] = {}
        for row, name in enumerate(read, FIRST_ROW):
            held, last = self._in_force(name), self.wiring.tables["loads"].columns[name][0]
            display = self.behind[3].cells[last.row, last.column].display
            shown[name] = sheet.link(row, HIDDEN, held, display, "off_page")
        named = {"in_flight": shown.pop("concurrent_requests"), "enough_for": shown.pop("users")}
        env: dict[str, Source] = {**inputs, **self.picked, **shown, **named}
        env |= {"choices_state": inputs["choices_state"], "input_tokens": self._in_force("input_tokens")}
        env |= {f"{figure}_limit_seconds": inputs[f"own_{figure}_limit"] for figure in ("tpot", "ttft")}
        env["requests_per_second"] = self.rate
        rent = {**env, "instance": shown["type"]}
        sheet.compute(0, 0, sentences.decision_title, rent, role="finding")
        sheet.cells[0, 0].span = N_COLUMNS
        sheet.heights |= dict.fromkeys(range(1, self.factors_row + len(OF_FACTORS) + 4), LINE)
        sheet.heights |= {0: 28, FIRST_ROW: 24, self.factors_row - 1: BLANK}
        row = FIRST_ROW
        monthly = sheet.link(row, ANSWER, shown["monthly_usd"], USD, "answer_large")
        self.monthly = env["monthly_usd"] = monthly
        annual = sheet.compute(row + 1, HIDDEN + 1, cost.annual_usd, env, role="off_page")
        lines: list[tuple[Formula, Mapping[str, Source], str]] = [
            (sentences.a_year, {**env, "annual_usd": annual}, "plain"),
            (sentences.cheapest_answer, rent, "strong"),
            (sentences.gpus_at, env, "plain"),
            (sentences.sure_of_answer, env, "plain"),
            (sentences.at_sure, self._beside(SURE), "plain"),
            (sentences.at_even, self._beside(EVEN), "plain"),
            (sentences.in_published, self._of_precision(PUBLISHED), "plain"),
            (sentences.where_one_fails, {**self.survivor, **inputs, "instance": self.survivor["type"]}, "plain"),
            (sentences.first_word, env, "plain"),
            (sentences.pace_of_answer, env, "plain"),
            (sentences.asked_in_words, env, "plain"),
            (sentences.serves_words, env, "plain"),
            (sentences.up_to_people, env, "plain"),
            (sentences.memory_words, env, "plain"),
        ]
        for line, (quantity, given, role) in enumerate(lines, row + 1):
            sheet.compute(line, ANSWER, quantity, given, role=role)
        self.shown = shown
        own = entry(self.book.tables["instances"].range("is_own_price"), self._in_force("instance_row"), is_number)
        flag = derived(lambda own: where(own == 1, 1, 0), own)
        self.own_price = sheet.link(FIRST_ROW + len(read), HIDDEN, flag, PLAIN, "off_page")
        self.book.names |= {
            "rec_decision_instance": shown["instance"],
            "rec_decision_n_instances": shown["n_instances"],
            "rec_decision_monthly_usd": monthly,
            "rec_decision_chance": shown["chance"],
            "rec_decision_survivor_monthly_usd": self.survivor["monthly_usd"],
        }

    def _of_load(self, load: int) -> dict[str, Source]:
        row = self.rows[load]
        return {**self.wiring.inputs, **row, "instance": row["type"], "base_usd": self.monthly}

    def _beside(self, level: str) -> dict[str, Source]:
        return self._of_load(load_of(Context(level=level)))

    def _of_precision(self, precision: int) -> dict[str, Source]:
        words = self.wiring.tables["models"].columns["weights_words"]
        return {**self._of_load(load_of(Context(precision))), "weights_words": words[precision]}

    def _chart_of_people(self) -> None:
        """A chart of the cost of fewer and more requests; this load in blue."""
        sheet, top = self.sheet, self.charts_row
        heads, others, this = list[Ref](), list[Ref](), list[Ref]()
        smaller, larger = (1 + HIGH + k for k in range(len(OUTER)))
        for row, size in enumerate((smaller, LOW, BASE, HIGH, larger), top):
            heads.append(sheet.link(row, HIDDEN + 4, self.wiring.lists["sizes"].refs[size], WHOLE, "off_page"))
            usd = self.monthly if size == BASE else self.rows[load_of(size=size)]["monthly_usd"]
            shown = derived(lambda usd: where(is_number(usd), usd, 0), usd)
            blank = constant(0)
            others.append(sheet.link(row, HIDDEN + 5, blank if size == BASE else shown, USD, "off_page"))
            this.append(sheet.link(row, HIDDEN + 6, shown if size == BASE else blank, USD, "off_page"))
        sheet.draw(
            Chart(
                top,
                0,
                "$ a month by people, or requests at once",
                "Columns: what a quarter, the low end, the high end and four times the load cost a month; this load is "
                "blue.",
                (heads[0], heads[-1]),
                [
                    ("other loads", others[0], others[-1], "#B8C2CC"),
                    ("this load", this[0], this[-1], "#1B5A8A"),
                ],
                CHART_WIDTH,
                CHART_HEIGHT,
                "$",
                upright=True,
            )
        )

    def _ranges(self) -> None:
        """The range of the month's cost over the ends of requests, context and prices, in yellow, with bars."""
        sheet, top = self.sheet, self.factors_row
        heads = ("What would change it", "low", "", "high", "$ low", "$ now", "$ high")
        sheet.texts(top, 0, heads[:1], "rule")
        sheet.texts(top, 1, heads[1:], "rule_head_right")
        names = ("users", "context", "price", "speed")
        loads = {"users": (load_of(size=LOW), load_of(size=HIGH))}
        loads["context"] = load_of(Context(case=LOW)), load_of(Context(case=HIGH))
        loads["speed"] = load_of(Context(level=EVEN)), load_of(Context(level=SURE))
        for column, end in ((LOW_AT, "faster"), (ANSWER, "slower")):
            sheet.text(top + len(names), column, end, "right_text")
        labels, bars, moved = list[Ref](), [list[Ref](), list[Ref](), list[Ref]()], list[dict[str, Ref]]()
        env = self._words_of_cases()
        for row, name in enumerate(names, top + 1):
            now = sheet.link(row, 5, self.monthly, USD, "computed", lock="column")
            ends: list[Ref] = []
            for k, column in enumerate((4, 6)):
                if name in loads:
                    usd = self.rows[loads[name][k]]["monthly_usd"]
                    ends.append(sheet.link(row, column, usd, USD, "computed", lock="column"))
                else:
                    read = {**env, "monthly_usd": self.monthly, "price_factor": self.price_factors[k]}
                    ends.append(sheet.compute(row, column, figures.case_monthly_usd, read, lock="column"))
            low, high = ends
            title, label = OF_FACTORS.get(name, (SPEED, None))
            if label:
                labels.append(sheet.compute(row, 0, label, env, role="plain"))
            else:
                labels.append(sheet.text(row, 0, title, "plain"))
            moved.append(self._moved(row, {"low_usd": low, "now_usd": now, "high_usd": high}))
            for column, (bar, given) in enumerate(
                (
                    (figures.bar_start, {"low_usd": low, "now_usd": now}),
                    (figures.bar_length, {"from_usd": low, "to_usd": now}),
                    (figures.bar_length, {"from_usd": now, "to_usd": high}),
                )
            ):
                ref = sheet.compute(row, HIDDEN + 1 + column, bar, given, role="off_page")
                bars[column].append(ref)
            self.book.names |= {f"rec_case_{name}_{end}_monthly_usd": ref for end, ref in zip(ENDS, ends, strict=True)}
        both = {**self._of_load(load_of(Context(case=HIGH), HIGH)), **env}
        row = top + 2 + len(names)
        sheet.compute(row - 1, 0, sentences.largest_uncertainty, self._largest(row - 1, moved), role="strong")
        sheet.cells[row - 1, 0].span = N_COLUMNS
        sheet.compute(row, 0, sentences.both_high, both, role="plain")
        self.charts_row = row + 1
        sheet.draw(
            Chart(
                self.charts_row,
                ANSWER,
                "$ a month: black below now, blue above",
                "Bars: from what the low end costs to what the high end costs, around this month.",
                (labels[0], labels[-1]),
                [
                    ("up to there", bars[0][0], bars[0][-1], ""),
                    ("below this month", bars[1][0], bars[1][-1], "#17212B"),
                    ("above it", bars[2][0], bars[2][-1], "#1B5A8A"),
                ],
                CHART_WIDTH,
                CHART_HEIGHT,
                "$",
                left=RANGES_LEFT,
                labelled=True,
            )
        )
        self.row = self.charts_row + 1 + rows_of(CHART_HEIGHT)
        sheet.heights[self.row - 1] = BLANK

    def _moved(self, row: int, env: dict[str, Ref]) -> dict[str, Ref]:
        """How far the month falls and rises over a range, beside the page."""
        read: dict[str, Source] = {**env}
        for column, quantity in enumerate(
            (figures.falls_usd, figures.rises_usd, figures.swing_usd, figures.is_open), 4
        ):
            read[quantity.name] = self.sheet.compute(row, HIDDEN + column, quantity, read, role="off_page")
        return {name: ref for name, ref in read.items() if isinstance(ref, Ref)}

    def _largest(self, row: int, moved: Sequence[Mapping[str, Ref]]) -> dict[str, Source]:
        """The inputs of the sentence on the largest uncertainty: which range it is, and how far the month moves over
        it."""
        sheet = self.sheet
        ranges = {"swings": "swing_usd", "rises": "rises_usd", "opens": "is_open"}
        env: dict[str, Source] = {name: Range(tuple(move[key] for move in moved)) for name, key in ranges.items()}
        searches = (figures.largest_swing_usd, figures.largest_rise_usd, figures.any_open)
        for place, quantity in enumerate(searches):
            column = HIDDEN + 4 + 2 * place
            # Without a sign: in another currency an amount would be shown beside it by a cell that reads the search.
            searched = sheet.compute(row, column, quantity, env, role="off_page", display=PLAIN)
            env[quantity.name] = sheet.pass_on(row, column + 1, searched, quantity, env, "off_page")
        for place, move in enumerate(moved):
            row_of_move, read = move["swing_usd"].row, {**env, **move}
            flag = sheet.compute(row_of_move, HIDDEN + 8, figures.is_largest, read, role="off_page")
            env[f"largest_{place}"] = flag
        state = self.wiring.inputs["choices_state"]
        return {**env, **self._words_of_cases(), "choices_state": state, "n_instances": self.shown["n_instances"]}

    def _words_of_cases(self) -> dict[str, Source]:
        """The names of the ranges: whether the load is people, and the price is the reader's own."""
        inputs = self.wiring.inputs
        return {
            "users": inputs["own_users"],
            "is_own_price": self.own_price,
        }

    def _ways(self) -> None:
        """Ways to pay less, mildest first, with what each commits to and gives up."""
        sheet, inputs = self.sheet, self.wiring.inputs
        sheet.texts(self.row, 0, ("Ways to pay less", "", ""), "rule")
        sheet.text(self.row, ANSWER, "rent", "rule_head")
        sheet.texts(self.row, ANSWER + 1, ("$ a month", "commits to"), "rule_head_right")
        sheet.text(self.row, N_COLUMNS - 1, "we give up", "rule_beside_number")
        usd = self.monthly
        is_by_hour = derived(
            lambda row: where(row == 1, 1, 0), inputs["own_purchase_row"]
        )  # on demand, the first class
        working = self._put(
            "own_working_usd", "In working hours", figures.working_usd, {"monthly_usd": usd, "is_by_hour": is_by_hour}
        )
        rent, term = sentences.rent_of_way, sentences.term_gives_up
        ways: list[tuple[str | Formula, Formula, Mapping[str, Source], str | Formula]] = [
            (AT_EVEN_CHANCE, rent, self._beside(EVEN), _loses("less_sure")),
            (
                _change("hours"),
                rent,
                {**self.shown, "instance": self.shown["type"], "monthly_usd": working},
                sentences.hours_give_up,
            ),
            (_change("kv_fp8"), rent, self._of_load(load_of(Context(KV_FP8))), _loses("kv_fp8")),
            (
                _change("four_bits"),
                rent,
                {**self._of_load(load_of(Context(FOUR_BITS))), "is_already": self._is_in_four_bits()},
                _loses("four_bits"),
            ),
            *(
                (_change("term", term=TERMS[purchase]), rent, {**way, "n_months": self._months(purchase)}, term)
                for purchase, way in self.terms.items()
            ),
            (
                _change("own"),
                sentences.owned_words,
                self._owning(),
                sentences.own_gives_up,
            ),
            (
                sentences.host_for,
                sentences.cheapest_host,
                self._hosted(),
                _loses("hosted", told=False),
            ),
        ]
        people = derived(lambda users: where(is_number(users), users, 0), self._in_force("users"))
        for line, (label, words, way, gives_up) in enumerate(ways, self.row + 1):
            if isinstance(label, str):
                sheet.text(line, 0, label, "plain_last")
            else:
                sheet.compute(line, 0, label, {**inputs, "users": people}, role="plain_last")
            sheet.texts(line, 1, ("", ""), "plain_last")
            env: dict[str, Source] = {**inputs, "n_months": ZERO, "is_already": ZERO, **way, "base_usd": usd}
            env["base_instances"] = self.shown["n_instances"]
            env["instance"] = way.get("type", NO_VALUE)
            env |= {"chance": way.get("chance", NO_VALUE), "base_chance": self.shown["chance"]}
            env["way_usd"] = sheet.compute(line, 4, figures.usd_of_way, env, role="grid_number")
            sheet.compute(line, ANSWER, words, env, role="rent")
            commits = figures.commits_usd if "owned_capex_usd" not in way else figures.purchase_of_way
            env["commits_usd"] = sheet.compute(line, 5, commits, env, role="grid_number")
            if isinstance(gives_up, str) and "chance" in way:
                env["gives_up"] = constant(gives_up)
                sheet.compute(line, 6, sentences.way_gives_up, env, role="beside_number")
            elif isinstance(gives_up, str):
                sheet.text(line, 6, gives_up, "beside_number")
            else:
                sheet.compute(line, 6, gives_up, env, role="beside_number")
        for line in range(self.row + 1, self.row + 1 + len(ways)):  # the rent and the losses may take two lines
            sheet.heights[line] = TWO_LINES
            for column in (ANSWER, N_COLUMNS - 1):
                sheet.cells[line, column].wraps = True
        if self.is_of_region:  # and that its place is unknown; and that owning has prices of the US
            sheet.heights[self.row + len(ways)] = sheet.heights[self.row + len(ways) - 1] = THREE_LINES
        row = self.row + 2 + len(ways)
        sheet.text(
            row - 1,
            0,
            "A dash: it saves nothing, or has no price. Cash by month, other hosts: Money, at Sizing sheet's load.",
            "quiet",
        )
        for column, name in ((0, "Sizing sheet"), (1, "Inputs"), (3, "Money"), (4, "Prices and hardware")):
            sheet.text(row, column, name, "link_text", url=f"internal:'{name}'!A1")

    def _is_in_four_bits(self) -> Lookup:
        """1 where the weights asked for have 4 bits or fewer as they are."""
        weight_bytes = self.wiring.tables["models"].columns["linear_bytes"][0]
        return derived(lambda weight_bytes: where(weight_bytes < 1, 1, 0), weight_bytes)

    def _months(self, purchase: str) -> Ref:
        """The number of months of a class of commitment."""
        label = f"Months of {purchase}"
        return self.data.put(below(self.data) - 1, 1, Cell(MONTHS[purchase], "fixed", PLAIN), label=label)

    def _owning(self) -> dict[str, Source]:
        """Monthly cost and purchase price of owning the answer's GPUs, at the base price of GPUs; in Decision data."""
        gpus, shown = self.book.tables["gpus"], self.shown
        env: dict[str, Source] = {"n_gpus": shown["n_gpus"], "gpu_name": shown["gpu_name"]}
        for fact in ("kw_per_gpu", "is_it_power", "is_module_price", "sold_together", "capex_base_usd"):
            named = "capex_usd_per_gpu" if fact == "capex_base_usd" else fact
            held = entry(gpus.range(fact), shown["gpu_row"], above_zero if named != fact else is_number)
            label = f"Of the GPU of the answer: {in_words(fact)}"
            env[named] = self.data.link(below(self.data) - 1, 1, held, FACTOR, "computed", label=label)
        mark, label = (
            entry(gpus.range("capex_mark"), shown["gpu_row"], is_text),
            "Of the GPU of the answer: age of price",
        )
        env["capex_mark"] = self.data.link(below(self.data) - 1, 1, mark, TEXT, "computed", label=label)
        for name in TERMS_OF_US:
            env[f"us_{name}"] = NO_VALUE
            if name in self.us_terms:
                listed = Cell(self.us_terms[name], "fixed", FACTOR)
                label = f"{in_words(name)}, in the United States"
                env[f"us_{name}"] = self.data.put(below(self.data) - 1, 1, listed, label=label)
        env["monthly_usd"] = self.monthly
        for quantity in (*OF_OWNING[: 1 + OF_OWNING.index(cost.monthly_owned_usd)], *PAYBACK):
            if quantity.name not in {**self.wiring.inputs, **env}:  # which the GPUs sheet and Constants have
                env[quantity.name] = self._put(f"own_{quantity.name}", f"Owning: {quantity.label}", quantity, env)
        return {**env, "monthly_usd": env["monthly_owned_usd"]}

    def _hosted(self) -> dict[str, Source]:
        """The cheapest live host of the model for the tokens of the load; of a model of this workbook."""
        hosts, picked = self.book.tables["hosts"], self.picked
        if not hosts.n_rows:
            return {"host": NO_VALUE, "hosted_monthly_usd": NO_VALUE, "monthly_usd": NO_VALUE}
        env: dict[str, Source] = {
            "output_tokens_per_second": self._in_force("output_tokens_per_second"),
            "input_tokens": self._in_force("input_tokens"),
            "output_tokens": picked["answer_tokens"],
            "users": self._in_force("users"),
            "requests_per_second": ZERO,
            "cached_fraction": self.wiring.inputs["prefix_cache_hit_fraction"],
        }
        for quantity in (cost.million_output_tokens_per_month, *HOSTED_TOKENS):
            env[quantity.name] = self._put(f"own_{quantity.name}", quantity.label, quantity, env)
        hosts.computed(cost.hosted_monthly_usd, env, name="usd_on_decision", label="$ per month on Decision", width=14)
        rows = {"hosted": hosts.range("usd_on_decision"), "model_rows": hosts.range("model_row")}
        env = {**rows, "own_model_row": self.wiring.inputs["own_model_row"]}
        usd = self._put("own_hosted_usd", figures.least_hosted_usd.label, figures.least_hosted_usd, env)
        place = self._put("own_host_row", figures.row_of_host.label, figures.row_of_host, {**env, "hosted_usd": usd})
        host = entry(hosts.range("host"), place, is_text)
        return {"host": host, "hosted_monthly_usd": usd, "monthly_usd": usd}

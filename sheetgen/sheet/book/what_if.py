"""What-if: one model on one kind of hardware, chosen from dropdowns, all live: bills, users, context, price, cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sheetgen.formula import Expr, Formula, formula, largest, round_up, where
from sheetgen.recommend import Solution
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.sheet.book.speed import build_latency
from sheetgen.sheet.book.what_if_data import build_data, build_lists
from sheetgen.sheet.book.what_if_words import (
    all_fit,
    bill_in_unit,
    boundary_words,
    case_monthly_usd,
    cheapest_words,
    fewest_gpus,
    gpus_needed,
    hardware_answer,
    kept_back_bytes,
    kv_free_bytes,
    kv_in_use_bytes,
    longest_words,
    other_bytes,
    size_in_use,
    swing_share,
    swing_usd,
    swing_word,
    tp_position,
    users_held,
)
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, name_all, named, titled
from sheetgen.sheet.book.words import prompt_tokens
from sheetgen.sheet.book.workings import add_choices, build_loads
from sheetgen.sheet.model import (
    Cell,
    Chart,
    Lookup,
    Range,
    Ref,
    RepeatedRow,
    Sheet,
    Source,
    Validation,
    lookup,
    place_of,
    worked_out,
)
from sheetgen.sheet.what_if import AUTO, BASE, CASES, LOADS, WhatIf, case_context_tokens, case_requests
from sheetgen.sizing import kv_cache
from sheetgen.sizing.kv_cache import short_tokens
from sheetgen.units import (
    DTYPES,
    FACTOR,
    ONE_DECIMAL,
    PLAIN,
    TENSOR_PARALLEL_SIZES,
    TEXT,
    UNIT_NAMES,
    USD,
    WHOLE,
    Display,
)

CHOICE, ANSWER, LAST = 1, 4, 10  # the columns of the choices and of the answer, and the last one
PARTS = (("Weights", "#1D4ED8"), ("Activations", "#0F766E"), ("Overhead", "#6B7280"), ("KV cache in use", "#F59E0B"),
         ("KV cache free", "#FDE68A"), ("Not used", "#E5E7EB"))  # fmt: skip


OF_GPU = ("overhead_bytes_per_gpu", "kv_budget_bytes_per_gpu")
HELD = ("sequences", "charge_bytes", "pipeline_stages", "batch_limit")  # of a replica
BILLS_ROW, CASES_ROW = HEAD_ROWS + 12, HEAD_ROWS + 25


@dataclass(frozen=True)
class Chosen:
    """The size that the answer is for, and rows over the sizes."""

    place: Ref
    needed: Range
    held: Range
    sizes: Range


@dataclass(frozen=True)
class Machine:
    """The workings of What-if as the page reads them."""

    wiring: Wiring
    hardware_gpus: Ref
    first_profile: int  # of the chosen GPU, among the columns of Profiles
    rented: Mapping[str, Ref]  # the load on the chosen hardware, with the columns of Workings

    @property
    def inputs(self) -> Mapping[str, Source]:
        return self.wiring.inputs

    def at(self, k: int) -> dict[str, Source]:
        """What the workings say of the chosen hardware at its k-th size and the base load."""
        of_model, load = self.wiring.blocks, self.wiring.tables["loads"].row(BASE)
        activation = self.of_sizes(of_model["activation_bytes_per_gpu"][0])[k]
        return {
            "gpu_memory_bytes": self.wiring.tables["gpus"].below["gpu_memory_bytes"],
            "weights_bytes": self.of_sizes(of_model["loaded_weights_bytes_per_gpu"][0])[k],
            "activation_bytes": activation,
            "activation_bytes_per_gpu": activation,
            **{name: self.of_sizes(of_model[name][0])[k] for name in OF_GPU},
            **{name: self.first(name).refs[k] for name in HELD},
            **{name: load[name] for name in ("load_requests", "within_limit")},
            "hardware_gpus": self.hardware_gpus,
        }

    def runs(self) -> dict[str, Source]:
        """Whether the chosen hardware runs the precisions in use, and which these are."""
        gpus, model = self.wiring.tables["gpus"].below, self.wiring.tables["models"].columns
        of_first = {what: Range(tuple(gpus[f"{what}_{d}"] for d in DTYPES)) for what in ("weights", "kv")}
        return {
            "runs_weights": lookup(of_first["weights"], model["weight_dtype_row"][0]),
            "runs_kv": lookup(of_first["kv"], model["kv_dtype_row"][0]),
            "weight_dtype": model["weight_dtype"][0],
            "kv_dtype": model["kv_dtype"][0],
        }

    def first(self, name: str) -> Range:
        """A row of what a replica holds at the base context, over the sizes of the chosen hardware."""
        return Range(self.of_sizes(self.wiring.blocks[name][1]))

    def of_sizes(self, row: Sequence[Ref]) -> tuple[Ref, ...]:
        """The cells of a row of Profiles that are of the chosen GPU; where all GPUs are alike, those of any."""
        first = 0 if isinstance(row, RepeatedRow) else self.first_profile
        return tuple(row[first : first + len(TENSOR_PARALLEL_SIZES)])


class WhatIfPage:
    """Fills the page: first the choices, which the workings read; then the answer, once these stand."""

    def __init__(self, one: WhatIf, of: Wiring) -> None:
        self.one, self.of = one, of
        self.sheet = titled(
            "What-if",
            "What-if",
            "Choose any model and hardware in the yellow cells: bills, users, context, price and speed follow. "
            "Prices and rules are those of this workbook.",
            one_page=True,
        )
        self.sheet.widths = {0: 26, 1: 36, 2: 9, 3: 1.2, 4: 38, 5: 24, 6: 24, 7: 24, 8: 15, 9: 13, 10: 9}
        self.picked: dict[str, Ref] = {}
        self.inputs: dict[str, Ref] = {}  # by defined name
        self.row = HEAD_ROWS

    def bar(self, title: str, first: int = 0, last: int = LAST) -> None:
        for column in range(first, last + 1):
            self.sheet.text(self.row, column, title if column == first else "", "section")
        self.sheet.heights[self.row] = 20
        self.row += 1

    def choices(self) -> None:
        """The yellow cells, with names in_whatif_...; the cases' factors stand further down."""
        self.sheet.text(self.row, ANSWER, "The answer, on the hardware chosen", "section")
        for column in range(ANSWER + 1, LAST + 1):
            self.sheet.text(self.row, column, "", "section")
        for column in range(3):
            self.sheet.text(self.row, column, "Choose" if column == 0 else "", "section")
        self.row += 1
        kinds = {name.removeprefix("whatif_"): one.kind for name, one in BY_NAME.items() if name.startswith("whatif_")}
        for name, label, display, unit, validation in (
            ("model", "Model", TEXT, "",
             Validation("Model", "A model of Catalog, or one that you typed on Models.", "list_whatif_model")),
            ("hardware", "GPU or instance", TEXT, "",
             Validation("Hardware", "A GPU, or an instance of the Instances sheet.", "list_whatif_hardware")),
            ("tensor_parallel_size", "Tensor-parallel size", TEXT, "GPUs",
             Validation("TP", "auto takes the size with the fewest GPUs.", "list_whatif_tp")),
            ("weight_dtype", "Weights' precision", TEXT, "",
             Validation("Weights' precision", "auto or a precision on Inputs.", "list_dtype")),
            ("kv_cache_dtype", "KV cache precision", TEXT, "",
             Validation("KV cache precision", "auto or a precision on Inputs.", "list_dtype")),
            ("users", "Users", WHOLE, "people",
             Validation("Users", "A whole number from 1.", kind=kinds["users"])),
            ("context_tokens", "Context of each", WHOLE, "tokens",
             Validation("Context", "Prompt and answer together, a whole number from 1; not below the answer.",
                        kind=kinds["context_tokens"], at_least="in_whatif_answer_tokens")),
            ("answer_tokens", "of it the answer", WHOLE, "tokens",
             Validation("Answer", "A whole number from 0; not above the context.",
                        kind=kinds["answer_tokens"], at_most="in_whatif_context_tokens")),
            ("tpot_ms", "Target: time per token", WHOLE, "ms",
             Validation("Target", "Milliseconds; blank: memory alone decides.", kind=kinds["tpot_ms"])),
        ):  # fmt: skip
            self.sheet.text(self.row, 0, label, "label")
            cell = Cell(self.one.picked[name], "input", display, validation=validation)
            ref = self.sheet.put(self.row, CHOICE, cell, f"in_whatif_{name}")
            self.sheet.text(self.row, 2, unit, "unit")
            self.sheet.heights[self.row] = 18
            self.picked[name] = self.inputs[f"in_whatif_{name}"] = ref
            self.row += 1

    def cases(self, max_context: Ref) -> dict[str, Range]:
        """The cases' factors, and what they make of users and context; gives the workings' tiers and contexts."""
        self.row = CASES_ROW
        self.bar("Cases: what low, base and high users, context and prices take together")
        self.heads = self._head("", *CASES)[1:]
        users = self._factors("users", "Users, times")
        contexts = self._factors("context", "Context, times")
        self.price_factors = self._factors("price", "Prices, times")
        picked, inputs = self.picked, self.of.inputs
        self.tiers = self._line("Requests in flight", lambda k: self._compute(
            k, case_requests, {**inputs, "users": picked["users"], "case_factor": users[k]}))  # fmt: skip
        self.contexts = self._line("Context, tokens", lambda k: self._compute(
            k, case_context_tokens, {"context_tokens": picked["context_tokens"], "case_factor": contexts[k],
                                     "max_context_tokens": max_context,
                                     "answer_tokens": picked["answer_tokens"]}))  # fmt: skip
        return {"tiers": Range(tuple(self.tiers)), "contexts": Range(tuple(self.contexts))}

    def _head(self, *labels: str) -> list[Ref]:
        self.row += 1
        return [self.sheet.text(self.row - 1, ANSWER + k, label, "head") for k, label in enumerate(labels)]

    def _factors(self, name: str, label: str) -> list[Ref]:
        check = Validation(label, "A factor above 0; the base is 1.", kind=BY_NAME[f"case_{name}_base"].kind)

        def put(k: int) -> Ref:
            full = f"in_case_{name}_{CASES[k]}"
            ref = self.sheet.put(
                self.row, ANSWER + 1 + k, Cell(self.one.factors[name][k], "input", FACTOR, validation=check), full
            )
            self.inputs[full] = ref
            return ref

        return self._line(label, put)

    def _line(self, label: str, put: Callable[[int], Ref], n: int = len(CASES)) -> list[Ref]:
        """A row of the tables on the right: its label, and a cell for each column."""
        self.sheet.text(self.row, ANSWER, label, "label")
        refs = [put(k) for k in range(n)]
        self.row += 1
        return refs

    def _compute(self, k: int, one: Formula, env: Mapping[str, Source], display: Display | None = None) -> Ref:
        return self.sheet.compute(self.row, ANSWER + 1 + k, one, env, display=display)

    def _show(self, k: int, what: Ref, display: Display, role: str = "link") -> Ref:
        return self.sheet.link(self.row, ANSWER + 1 + k, what, display, role)

    def bills(self, sizes: Sequence[Ref], machine: Machine, unit: str, data: Sheet, at: int) -> Chosen:
        """The bills of one GPU at each tensor-parallel size; on the row `at` of the data which size the page is for."""
        self.row = BILLS_ROW
        self.bar(f"The bills of one GPU of the chosen hardware, by tensor-parallel size, {unit}")
        columns = self._bill_table(sizes, machine)
        n = len(sizes)
        needed = self._line("GPUs for all users", lambda k: self._compute(
            k, gpus_needed, {**machine.inputs, **machine.at(k), "tensor_parallel_size": sizes[k]}), n)  # fmt: skip
        self._line("Users that one replica holds", lambda k: self._compute(
            k, users_held, {**machine.inputs, **machine.at(k), "tensor_parallel_size": sizes[k]}), n)  # fmt: skip
        row, choices = (
            named(self.of.names, "tbl_whatif_needed", needed),
            named(self.of.names, "tbl_whatif_sizes", sizes),
        )
        env: dict[str, Source] = {"needed": row, "sizes": choices, "asked": self.picked["tensor_parallel_size"],
                                  "rented": machine.rented["tensor_parallel_size"]}  # fmt: skip
        for k, (name, one) in enumerate((("asked", size_in_use), ("fewest", fewest_gpus), ("place", tp_position))):
            data.text(at + k, 0, one.label, "label")
            env[name] = ref = data.compute(at + k, 1, one, env)
            if data.is_search(ref):
                env[name] = data.pass_on(at + k, 2, ref, one, env)
        self._chart(sizes, columns, unit)
        place = env["place"]
        assert isinstance(place, Ref)
        return Chosen(place, row, machine.first("sequences"), choices)

    def _bill_table(self, sizes: Sequence[Ref], machine: Machine) -> list[list[Ref]]:
        labels = [self._show(k, size, PLAIN, "head") for k, size in enumerate(sizes)]
        self.sheet.text(self.row, ANSWER, "Tensor-parallel size", "head")
        self.row += 1
        parts: list[list[Ref]] = [labels]
        inputs = machine.inputs
        bytes_of: list[dict[str, Source]] = [{} for _ in sizes]

        def put(name: str, one: Formula | None) -> Callable[[int], Ref]:
            def cell(k: int) -> Ref:
                env = {**inputs, **machine.at(k), **bytes_of[k], "tensor_parallel_size": sizes[k]}
                env["amount_bytes"] = bytes_of[k][name] = env[name] if one is None else worked_out(one, env)
                return self._compute(k, bill_in_unit, env, ONE_DECIMAL)

            return cell

        for (label, _), (name, one) in zip(PARTS, (
            ("weights_bytes", None), ("activation_bytes", None), ("other_bytes", other_bytes),
            ("kv_in_use_bytes", kv_in_use_bytes), ("kv_free_bytes", kv_free_bytes),
            ("kept_back_bytes", kept_back_bytes),
        ), strict=True):  # fmt: skip
            parts.append(self._line(label, put(name, one), len(sizes)))
        return parts

    def _chart(self, sizes: Sequence[Ref], parts: list[list[Ref]], unit: str) -> None:
        self.sheet.charts.append(
            Chart(
                BILLS_ROW + 1, 0,
                f"Memory of one GPU by tensor-parallel size, {unit}",
                "Stacked bars: weights, activations, overhead, KV cache in use and free, and what is not used, of one "
                "GPU of the chosen hardware, at tensor-parallel sizes 1, 2, 4 and 8.",
                (parts[0][0], parts[0][-1]),
                [(title, line[0], line[-1], colour) for (title, colour), line in zip(PARTS, parts[1:], strict=True)],
                505, 215, unit,
            )
        )  # fmt: skip

    def answer(self, chosen: Chosen, machine: Machine, wiring: Wiring, longest: Ref) -> None:
        """The sentences beside the choices: of the hardware chosen, then of the cheapest of all."""
        cells, rented, inputs = wiring.tables["loads"].columns, machine.rented, machine.inputs
        self.row = HEAD_ROWS + 1
        sheet = self.sheet

        def found_at(refs: Range) -> Lookup:
            return lookup(refs, chosen.place)

        def line(label: str, what: Ref | Lookup, display: Display, role: str = "link") -> Ref:
            sheet.text(self.row, ANSWER, label, "label")
            self.row += 1
            return sheet.link(self.row - 1, ANSWER + 1, what, display, role)

        def computed(label: str, one: Formula, env: Mapping[str, Source], role: str = "computed") -> Ref:
            sheet.text(self.row, ANSWER, label, "label")
            self.row += 1
            return sheet.compute(self.row - 1, ANSWER + 1, one, env, role=role)

        context = worked_out(short_tokens, {**inputs, "tokens": self.picked["context_tokens"]})
        sequences, needed, runs = found_at(chosen.held), found_at(chosen.needed), machine.runs()
        computed("To rent", hardware_answer, {
            **self.picked, **inputs, "n_instances": rented["n_instances"], "instance": rented["type"],
            "needed": needed, "sequences": sequences, "hardware_gpus": machine.hardware_gpus,
            "within_limit": cells["within_limit"][BASE], "limit_words": cells["limit_words"][BASE], **runs,
        }, "answer")  # fmt: skip
        monthly = line("$ per month", rented["monthly_usd"], USD, "answer_money")
        line("which is", rented["hardware_words"], TEXT)
        line("Speed", rented["speed_words"], TEXT)
        computed("Where it breaks", boundary_words, {
            **inputs, "tensor_parallel_size": found_at(chosen.sizes), "sequences": sequences, "context_words": context,
            "stages": found_at(machine.first("pipeline_stages")), "hardware": self.picked["hardware"], **runs,
        })  # fmt: skip
        gpus = line("GPUs for all users", needed, PLAIN, "left_number")
        computed("Longest context for them on one replica", longest_words, {**inputs, **runs, "longest": longest},
                 "left_number")  # fmt: skip
        computed("Cheapest of all hardware", cheapest_words, {
            **inputs, "n_instances": cells["n_instances"][BASE], "instance": cells["type"][BASE],
        })  # fmt: skip
        recommended = line("its $ per month", cells["monthly_usd"][BASE], USD, "left_number")
        line("its speed", cells["speed_words"][BASE], TEXT)
        self.of.names |= {
            "rec_whatif_instance": cells["instance"][BASE],
            "rec_whatif_n_instances": cells["n_instances"][BASE],
            "rec_whatif_monthly_usd": recommended, "rec_whatif_hardware_gpus": gpus,
            "rec_whatif_hardware_monthly_usd": monthly,
        }  # fmt: skip

    def results(self, wiring: Wiring) -> None:
        """What each case takes, and what moves the cost most."""
        cells = wiring.tables["loads"]
        of_case = [LOADS.index((k, k)) for k in range(len(CASES))]
        self.row = CASES_ROW + 7

        def at(name: str, k: int) -> Ref:
            return cells.row(of_case[k])[name]

        self._line("Cheapest to rent", lambda k: self.sheet.compute(
            self.row, ANSWER + 1 + k, cheapest_words,
            {**wiring.inputs, "n_instances": at("n_instances", k), "instance": at("type", k)}, role="rent",
        ))  # fmt: skip
        self._line("GPUs", lambda k: self._show(k, at("n_gpus", k), PLAIN))
        monthly = self._line("$ per month", lambda k: self._compute(
            k, case_monthly_usd, {"monthly_usd": at("monthly_usd", k), "price_factor": self.price_factors[k]},
        ))  # fmt: skip
        self._line("Time per token, ms", lambda k: self._show(k, at("tpot_ms", k), WHOLE))
        self.of.names |= {f"rec_case_{case}_monthly_usd": ref for case, ref in zip(CASES, monthly, strict=True)}
        self.sheet.charts.append(
            Chart(
                CASES_ROW + 1, 0, "$ per month by case",
                "Bars: what the recommended hardware costs a month in the low, the base and the high case.",
                (self.heads[0], self.heads[-1]), [("$ per month", monthly[0], monthly[-1], "#1D4ED8")], 505, 215, "$",
            )
        )  # fmt: skip
        self._sensitivity(cells)

    def _sensitivity(self, cells: Table) -> None:
        self.row += 1
        self.bar("What moves $ per month most: each by itself, between its low and its high case")
        self._head("", *CASES, "moves by", "of the base", "")
        base = cells.columns["monthly_usd"][BASE]
        first = self.row
        swings: list[Ref] = []
        for label, low, high in (
            ("Users", LOADS.index((1, 0)), LOADS.index((1, 2))),
            ("Context", LOADS.index((0, 1)), LOADS.index((2, 1))),
            ("Prices", BASE, BASE),
        ):
            self.sheet.text(self.row, ANSWER, label, "label")
            ends = []
            for k, load in ((0, low), (1, BASE), (2, high)):
                usd = cells.columns["monthly_usd"][load]
                if label == "Prices":
                    env = {"monthly_usd": usd, "price_factor": self.price_factors[k]}
                    ends.append(self._compute(k, case_monthly_usd, env))
                else:
                    ends.append(self._show(k, usd, USD))
            swings.append(self._compute(3, swing_usd, {"low_usd": ends[0], "high_usd": ends[2]}))
            self._compute(4, swing_share, {"swing_usd": swings[-1], "base_usd": base})
            self.row += 1
        for i, swing in enumerate(swings):
            self.row = first + i
            self._compute(5, swing_word, {"swing_usd": swing, "swings": Range(tuple(swings))})
        self.row = first + len(swings)


STEPS = 25  # halvings: 2^24 tokens is beyond every model's context
HEADS = ("Fits up to", "Not beyond", "Tried", "Prompt", "Charged", "In windows", "Blocks", "Charged, alone",
         "In windows, alone", "Blocks, alone", "Fits (0 or 1)", "Fits up to then", "Not beyond then")  # fmt: skip


@formula("Tried")
def middle_tokens(low: Any, high: Any, halves: Any) -> Any:
    """The context half-way between what fits and what may not.

    Source: bisection.
    """
    return round_up((low + high) / halves)


@formula("Fits up to")
def next_low(fits: Any, tried: Any, low: Any) -> Any:
    """The longest context that is known to fit.

    Source: bisection.
    """
    return where(fits == 1, tried, low)


@formula("Not beyond")
def next_high(fits: Any, tried: Any, low: Any, high: Any) -> Any:
    """The longest context that may fit.

    Source: bisection.
    """
    return where(fits == 1, high, largest(tried - 1, low))


@formula("Charged, alone")
def at_least_one(tried: Any) -> Any:
    """A request of the whole length, 1 token at least.

    Source: the engine starts only where one request of its longest context fits.
    """
    return largest(tried, 1)


def add_longest_context(
    sheet: Sheet, row: int, env: Mapping[str, Source], answer_tokens: Ref, zero: Source, limit: Source
) -> Ref:
    """The steps below `row`; gives the last one's cell. `env` has what the charge of a sequence reads."""
    for column, head in enumerate(HEADS, 1):
        sheet.text(row, column, head, "head")
    sheet.text(row, 0, "Longest context for all users, by halving", "section")
    sheet.text(row, len(HEADS) + 1, "Halves", "head")
    halves = sheet.put(row + 1, len(HEADS) + 1, Cell(2, "fixed", PLAIN))
    env = _beside(sheet, row, len(HEADS) + 2, env)
    low: Source = zero
    high: Source = limit
    put = partial(sheet.compute, lock="column")
    for step in range(STEPS):
        r = row + 1 + step
        a = sheet.formula(r, 1, low.value, low.expr(sheet.name), WHOLE, lock="column")
        b = sheet.formula(r, 2, high.value, high.expr(sheet.name), WHOLE, lock="column")
        tried = put(r, 3, middle_tokens, {"low": a, "high": b, "halves": halves})
        prompt = put(r, 4, prompt_tokens, {"context_tokens": tried, "answer_tokens": answer_tokens})
        asked = {**env, "context_tokens": tried, "max_model_len": tried, "input_tokens": prompt}
        charged = put(r, 5, kv_cache.charged_tokens, asked)
        asked |= {"charged_tokens": charged}
        asked |= {"windowed_tokens": put(r, 6, kv_cache.windowed_tokens, asked)}
        blocks = put(r, 7, kv_cache.kv_blocks_per_sequence, asked)
        alone = {**env, "charged_tokens": put(r, 8, at_least_one, {"tried": tried})}
        alone |= {"windowed_tokens": put(r, 9, kv_cache.windowed_tokens, alone)}
        alone_blocks = put(r, 10, kv_cache.kv_blocks_per_sequence, alone)
        fits = put(r, 11, all_fit, {**env, "charged": blocks, "alone": alone_blocks})
        state = {"fits": fits, "tried": tried, "low": a, "high": b}
        low = put(r, 12, next_low, state)
        high = put(r, 13, next_high, state)
    assert isinstance(low, Ref)
    return low


def _beside(sheet: Sheet, row: int, column: int, env: Mapping[str, Source]) -> dict[str, Source]:
    """`env` with what has no name of its own brought into cells beside the steps: these then share their formulas."""
    read = {name for one in (kv_cache.charged_tokens, kv_cache.windowed_tokens, kv_cache.kv_blocks_per_sequence,
                             all_fit) for name in one.inputs}  # fmt: skip
    apart = sorted(name for name in read & env.keys() if not getattr(env[name], "name", None))
    sheet.text(row, column, "Read by all steps", "head")
    sheet.text(row, column + 1, "", "head")
    found = dict(env)
    for r, name in enumerate(apart, row + 1):
        sheet.text(r, column, name.replace("_", " ").capitalize(), "label")
        found[name] = sheet.formula(r, column + 1, env[name].value, env[name].expr(sheet.name), WHOLE)
    return found


OF_SHARD = (
    "growing_block_tokens", "windowed_block_tokens", "kv_block_bytes", "shard_kv_bytes_per_token",
    "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer", "kv_budget_bytes_per_gpu", "layer_budget_bytes",
    "paid_layer_bytes",
)  # fmt: skip
ON_HARDWARE = "base, on the hardware chosen"  # the last load: the base again, with the candidates of that hardware


class WhatIfSheets:
    """The page, and the sheets behind it. of: the workbook's own wiring, whose names it adds to.

    What is sized for it stands in rows of its own below those of the workbook's models and loads, on Profiles and
    Candidates; and its GPU in a row below the others on GPUs.
    """

    def __init__(self, solved: Solution, one: WhatIf, of: Wiring) -> None:
        self.of, self.wiring, self.page = of, Wiring(prefix="wi_"), WhatIfPage(one, of)
        self.n_profiles, self.unit = len(solved.profiles), UNIT_NAMES[solved.question.settings.units]
        page, wiring = self.page, self.wiring
        page.choices()
        catalog = build_lists(solved, one, of)
        self.data = data = build_data(page.picked, of, wiring)
        of.names["list_whatif_tp"] = _sizes(data, _below(data), of)
        wiring.lists |= page.cases(wiring.tables["models"].columns["max_context_tokens"][0])
        _lines(data, _below(data), page, wiring)
        for sheet in (data, page.sheet):
            name_all(wiring, sheet.name)
        contexts = build_latency(wiring, CASES, "What-if contexts")
        loads = [(0, *load) for load in (*LOADS, LOADS[BASE])]
        names = [CASES[w] for _, w, _ in loads[:-1]] + [ON_HARDWARE]
        workings = build_loads(wiring, CASES, loads, "What-if loads", names)
        self.behind = [catalog, data, contexts, workings]

    def answer(self, heads: Mapping[str, Range]) -> None:
        """The choices of its loads, once Profiles and Candidates stand, and the rest of its page."""
        page, data, wiring = self.page, self.data, self.wiring
        self.of.names |= page.inputs
        add_choices(wiring, heads, alone=True)
        gpus = _hardware_gpus(data, _below(data), page, self.of)
        machine = Machine(wiring, gpus, self.n_profiles, wiring.tables["loads"].row(len(LOADS)))
        chosen = page.bills(self.of.lists["tp"].refs, machine, self.unit, data, _below(data))
        page.answer(chosen, machine, wiring, _longest(data, page, chosen, machine))
        page.results(wiring)
        for sheet in self.behind[1:]:
            for cell in sheet.cells.values():
                cell.note = ""  # the same as on the workbook's own sheets


def _below(sheet: Sheet) -> int:
    """The row after all that stands on a sheet, and a blank one."""
    return 2 + max(row for row, _ in sheet.cells)


def _sizes(sheet: Sheet, row: int, of: Wiring) -> Range:
    """The tensor-parallel sizes, and the word that leaves the choice to the workbook."""
    sheet.text(row, 0, "Tensor-parallel size", "section")
    first = sheet.put(row + 1, 0, Cell(AUTO, "label"))
    sizes = [sheet.link(row + 2 + i, 0, ref, PLAIN) for i, ref in enumerate(of.lists["tp"].refs)]
    return Range((first, *sizes))


def _lines(sheet: Sheet, row: int, page: WhatIfPage, wiring: Wiring) -> None:
    """By case its prompt and answer, and the targets: what the workings read beside context and requests."""
    sheet.text(row, 0, "By case", "section")
    for k, case in enumerate(CASES):
        sheet.text(row, 1 + k, case, "head")
    none = Lookup(0, lambda here: Expr("0"))
    lines: tuple[tuple[str, str, Source], ...] = (("answers", "Answer, tokens", page.picked["answer_tokens"]),
                 ("tpot_targets", "Target: time per token, ms", page.picked["tpot_ms"]), ("ttft_targets",
                 "Target: first token, ms", none))  # fmt: skip
    for i, (name, label, what) in enumerate(lines, 1):
        sheet.text(row + i, 0, label, "label")
        value = what.value or 0
        wiring.lists[name] = Range(tuple(
            sheet.formula(row + i, 1 + k, value, what.expr(sheet.name), WHOLE) for k in range(len(CASES))
        ))  # fmt: skip
    sheet.text(row + 4, 0, "Prompt, tokens", "label")
    wiring.lists["prompts"] = Range(tuple(
        sheet.compute(row + 4, 1 + k, prompt_tokens,
                      {"context_tokens": page.contexts[k], "answer_tokens": page.picked["answer_tokens"]})
        for k in range(len(CASES))
    ))  # fmt: skip


def _hardware_gpus(sheet: Sheet, row: int, page: WhatIfPage, of: Wiring) -> Ref:
    """GPUs of the chosen instance; the largest TP where a GPU was chosen."""
    instances, asked, most = of.tables["instances"], page.picked["hardware"], of.inputs["max_tensor_parallel_size"]
    here, names, counts = sheet.name, instances.range("instance"), instances.range("gpu_count")
    listed = place_of(names, asked.value)
    value = most.value if listed is None else counts.refs[listed - 1].value or 0
    sheet.text(row, 0, "GPUs of the chosen instance", "label")
    at = f"INDEX({counts.expr(here).text},MATCH({asked.expr(here).text},{names.expr(here).text},0))"
    return sheet.formula(row, 1, value, Expr(f"IFERROR({at},{most.expr(here).text})"), PLAIN)


def _longest(sheet: Sheet, page: WhatIfPage, chosen: Chosen, machine: Machine) -> Ref:
    """The longest context at which one replica of the chosen size holds all users."""
    of_model, tables = machine.wiring.blocks, machine.wiring.tables
    env: dict[str, Source] = {
        **machine.inputs,
        **{name: refs[0] for name, refs in tables["models"].columns.items()},
        **{name: lookup(Range(machine.of_sizes(of_model[name][0])), chosen.place) for name in OF_SHARD},
        "pipeline_stages": lookup(machine.first("pipeline_stages"), chosen.place),
        "max_num_batched_tokens": tables["gpus"].below["max_num_batched_tokens"],
        "load_requests": machine.at(0)["load_requests"],
    }
    limit = tables["models"].columns["max_context_tokens"][0]
    zero = Lookup(0, lambda here: Expr("0"))
    return add_longest_context(sheet, _below(sheet), env, page.picked["answer_tokens"], zero, limit)

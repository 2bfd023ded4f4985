"""What-if: one model on all hardware, and on the kind chosen from dropdowns, live: memory, people, price, cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sheetgen.answer.confidences import is_fallback, paces_at_even_chance
from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.book import figures
from sheetgen.book.sheets import (
    Cell,
    Chart,
    Lookup,
    Range,
    Ref,
    RepeatedRow,
    Source,
    Validation,
    derived,
    lookup,
    worked_out,
)
from sheetgen.book.speed_sheet import build_latency
from sheetgen.book.what_if_choices import AUTO, BASE, CASES, LOADS, WhatIf, case_context_tokens, case_requests
from sheetgen.book.what_if_data import add_longest_context, at_instance, below, build_data, build_lists
from sheetgen.book.wiring import HEAD_ROWS, Wiring, name_all, named, profile_columns, titled
from sheetgen.book.workings import add_choices, build_loads
from sheetgen.formula import Formula
from sheetgen.question.inputs import BY_NAME
from sheetgen.report import sentences
from sheetgen.sizing.kv_cache import short_tokens
from sheetgen.sizing.parallelism import attention_runs, cache_runs
from sheetgen.units import (
    DTYPES,
    FACTOR,
    ONE_DECIMAL,
    PLAIN,
    PLAIN_LAYOUTS,
    TENSOR_PARALLEL_SIZES,
    TEXT,
    UNIT_NAMES,
    USD,
    WHOLE,
    Display,
)

CHOICE, ANSWER, LAST = 1, 4, 10  # the columns of the choices and of the answer, and the last one
PARTS = (  # of a GPU's memory: a label, a colour, and what it is with the formula that gives it
    ("Weights", "#1D4ED8", "weights_bytes", None),
    ("Activations", "#0F766E", "activation_bytes", None),
    ("Overhead", "#6B7280", "other_bytes", figures.other_bytes),
    ("KV cache in use", "#F59E0B", "kv_in_use_bytes", figures.kv_in_use_bytes),
    ("KV cache free", "#FDE68A", "kv_free_bytes", figures.kv_free_bytes),
    ("Not used", "#E5E7EB", "kept_back_bytes", figures.kept_back_bytes),
)
# What the page reads of the chosen hardware at each size, and what the longest context does.
OF_SIZE = (
    "overhead_bytes_per_gpu", "kv_budget_bytes_per_gpu", "sequences", "steady_bytes", "pipeline_stages", "batch_limit",
    "activation_bytes_per_gpu",
)  # fmt: skip
OF_SHARD = (
    "growing_block_tokens", "windowed_block_tokens", "kv_block_bytes", "shard_kv_bytes_per_token",
    "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer", "kv_budget_bytes_per_gpu", "layer_budget_bytes",
    "paid_layer_bytes", "pipeline_stages",
)  # fmt: skip
BILLS_ROW, CASES_ROW = HEAD_ROWS + 16, HEAD_ROWS + 29
NO_RANKS = "Experts are tried on tensor-parallel layouts alone, as none of its models has any."
ON_HARDWARE = "base, on the hardware chosen"  # the last load: the base again, with the candidates of that hardware
ANSWER_HEAD = "The answer of all hardware here: the cheapest, or of a near tie (Inputs) the fewest machines"


# Choices: name, label, display, unit; what the cell says, and what bounds it.
CHOICES_SHOWN: tuple[tuple[str, str, Display, str, str, str, dict[str, str]], ...] = (
    ("model", "Model", TEXT, "", "Model", "A model of Catalog, or one that you typed on Models.",
     {"source": "list_whatif_model"}),
    ("hardware", "Hardware to compare with", TEXT, "", "Hardware", "A GPU, or an instance of Prices and hardware.",
     {"source": "list_whatif_hardware"}),
    ("tensor_parallel_size", "Tensor-parallel size", TEXT, "GPUs", "TP", "auto takes the size with the fewest GPUs.",
     {"source": "list_whatif_tp"}),
    ("weight_dtype", "Weights' precision", TEXT, "", "Weights' precision",
     "recommended, published or a precision of the list.", {"source": "list_weight_dtype"}),
    ("kv_cache_dtype", "KV cache precision", TEXT, "", "KV cache precision", "auto or a precision of the list.",
     {"source": "list_dtype"}),
    ("users", "Requests at once", WHOLE, "requests", "Requests at once", "A whole number from 1.", {}),
    ("context_tokens", "Context of each", WHOLE, "tokens", "Context",
     "Prompt and answer together, a whole number from 1; not below the answer.",
     {"at_least": "in_whatif_answer_tokens"}),
    ("answer_tokens", "of it the answer", WHOLE, "tokens", "Answer", "A whole number from 0; not above the context.",
     {"at_most": "in_whatif_context_tokens"}),
    *((f"{figure}_ms", f"Target: {said}", WHOLE, "ms", "Target",
       "Milliseconds; blank: none. Without any, memory alone decides.", {})
      for figure, said in (("tpot", "time per token"), ("ttft", "first token"))),
)  # fmt: skip


class WhatIfSheets:
    """The page, and the sheets behind it: first the choices, which the workings read; then the answer, once Profiles
    and Candidates stand. of: the workbook's own wiring, whose names it adds to.

    What is sized for it stands in rows of its own below those of the workbook's models and loads, on Profiles and
    Candidates; and its GPU in a row below the others on GPUs.
    """

    def __init__(self, solved: Solution, one: WhatIf, of: Wiring) -> None:
        self.one, self.of, self.wiring = one, of, Wiring(prefix="wi_")
        self.first_profile = len(profile_columns(solved.question))
        self.unit = UNIT_NAMES[solved.question.settings.units]
        # Columns of data-parallel ranks stand on Candidates only where a model of the workbook has experts.
        layouts = "" if len(solved.question.layouts) > len(PLAIN_LAYOUTS) else NO_RANKS
        self.sheet = titled(
            "What-if",
            "What-if",
            "Choose any model, load and hardware in the yellow cells; all else follows. "
            "People online x share active = requests at once. Prices and rules are those of this workbook.",
            one_page=True,
        )
        self.sheet.text(HEAD_ROWS - 1, 0, layouts, "subtitle")
        self.sheet.widths = {0: 26, 1: 36, 2: 9, 3: 1.2, 4: 38, 5: 24, 6: 24, 7: 24, 8: 15, 9: 13, 10: 9}
        self.inputs: dict[str, Ref] = {}  # by defined name
        self.picked = self._choices()
        catalog = build_lists(solved, one, of)
        self.data = data = build_data(self.picked, of, self.wiring)
        self.env: dict[str, Source] = {**self.picked, **self.wiring.inputs}  # what all formulas of the page may read
        row = below(data)
        data.text(row, 0, "Tensor-parallel size", "section")
        first = data.put(row + 1, 0, Cell(AUTO, "label"))
        plain = of.lists["tp"].refs[: len(TENSOR_PARALLEL_SIZES)]
        sizes = [data.link(row + 2 + i, 0, ref, PLAIN) for i, ref in enumerate(plain)]
        of.names["list_whatif_tp"] = Range((first, *sizes))
        self._cases()
        self._lengths_and_targets()
        for sheet in (data, self.sheet):
            name_all(self.wiring, sheet.name)
        self.env |= self.wiring.inputs  # by their names
        is_even = [is_fallback(solved, headline_rows(solved)[solved.question.ask or 0])] * len(CASES)
        any_even = any(paces_at_even_chance(solved))
        contexts = build_latency(self.wiring, CASES, "What-if contexts", is_even if any_even else ())
        loads = [(0, *load) for load in (*LOADS, LOADS[BASE])]
        names = [CASES[w] for _, w, _ in loads[:-1]] + [ON_HARDWARE]
        workings = build_loads(self.wiring, CASES, loads, "What-if loads", names)
        self.behind = [catalog, data, contexts, workings]

    def _bar(self, title: str, left: int = 0) -> None:
        self.sheet.texts(self.row, left, [title, *[""] * (LAST - left)], "section")
        if not left:
            self.sheet.heights[self.row] = 20
        self.row += 1

    def _head(self, *labels: str) -> list[Ref]:
        self.row += 1
        return self.sheet.texts(self.row - 1, ANSWER, labels)

    def _line(self, label: str, role: str = "label") -> int:
        self.sheet.text(self.row, ANSWER, label, role)
        self.row += 1
        return self.row - 1

    def _computed(
        self,
        label: str,
        one: Formula,
        *given: Mapping[str, Source],
        role: str = "computed",
        display: Display | None = None,
    ) -> list[Ref]:
        """A line of what a formula gives, a cell for each `given`."""
        row = self._line(label)
        return [
            self.sheet.compute(row, ANSWER + 1 + k, one, {**self.env, **env}, role=role, display=display)
            for k, env in enumerate(given)
        ]

    def _shown(
        self, label: str, *cells: Ref | Lookup, display: Display, role: str = "link", label_role: str = "label"
    ) -> list[Ref]:
        """A line of what stands elsewhere."""
        row = self._line(label, label_role)
        return [self.sheet.link(row, ANSWER + 1 + k, what, display, role) for k, what in enumerate(cells)]

    def _choices(self) -> dict[str, Ref]:
        """The yellow cells, with names in_whatif_...; the cases' factors stand further down."""
        self.row = row = HEAD_ROWS
        sheet, picked = self.sheet, dict[str, Ref]()
        sheet.texts(row, 0, ("Choose", "", ""), "section")
        self._bar(ANSWER_HEAD, ANSWER)
        kinds = {name.removeprefix("whatif_"): one.kind for name, one in BY_NAME.items() if name.startswith("whatif_")}
        for name, label, display, unit, title, message, more in CHOICES_SHOWN:
            kind = None if "source" in more else kinds[name]
            validation = Validation(title, message, kind=kind, **more)
            row += 1
            cell = Cell(self.one.picked[name], "input", display, validation=validation)
            picked[name] = sheet.put(row, CHOICE, cell, f"in_whatif_{name}", label=label)
            sheet.text(row, CHOICE + 1, unit, "unit")
            sheet.heights[row] = 18
        self.inputs |= {f"in_whatif_{name}": ref for name, ref in picked.items()}
        return picked

    def _cases(self) -> None:
        """The cases' factors, and what they make of users and context: the workings' tiers and contexts."""
        self.row = CASES_ROW
        self._bar("Cases: what fewer and more requests, context and prices take together")
        self.heads = self._head("", *CASES)[1:]
        factors: dict[str, list[Ref]] = {}
        for name, label in (
            ("users", "Requests at once, multiplier"),
            ("context", "Context, multiplier"),
            ("price", "Prices, multiplier"),
        ):
            check = Validation(label, "A factor above 0; the base is 1.", kind=BY_NAME[f"case_{name}_base"].kind)
            row, cells = self._line(label), [Cell(f, "input", FACTOR, validation=check) for f in self.one.factors[name]]
            factors[name] = [
                self.sheet.put(row, column, cell, f"in_case_{name}_{case}")
                for column, (case, cell) in enumerate(zip(CASES, cells, strict=True), ANSWER + 1)
            ]
            self.inputs |= {str(ref.name): ref for ref in factors[name]}
        users, contexts, self.price_factors = factors.values()
        tiers = self._computed("Requests at once", case_requests, *({"case_factor": factor} for factor in users))
        limit = self.wiring.tables["models"].columns["max_context_tokens"][0]
        tokens = self._computed(
            "Context, tokens",
            case_context_tokens,
            *({"case_factor": factor, "max_context_tokens": limit} for factor in contexts),
        )
        self.wiring.lists |= {"tiers": Range(tuple(tiers)), "contexts": Range(tuple(tokens))}

    def _lengths_and_targets(self) -> None:
        """By case its prompt and answer, and the targets: what the workings read beside context and requests."""
        data, row, lists, answer = self.data, below(self.data), self.wiring.lists, self.picked["answer_tokens"]
        data.texts(row, 0, ("By case",), "section")
        data.texts(row, 1, CASES)
        lines: tuple[tuple[str, str, Source], ...] = (
            ("answers", "Answer, tokens", answer),
            ("tpot_targets", "Target: time per token, ms", self.picked["tpot_ms"]),
            ("ttft_targets", "Target: first token, ms", self.picked["ttft_ms"]),
        )
        for name, label, what in lines:
            row += 1
            data.text(row, 0, label, "label")
            cells = (data.formula(row, 1 + k, what.value or 0, what.expr(data.name), WHOLE) for k in range(len(CASES)))
            lists[name] = Range(tuple(cells))
        row += 1
        data.text(row, 0, "Prompt, tokens", "label")
        lists["prompts"] = Range(
            tuple(
                data.compute(row, k, *figures.prompt_of(self.wiring.inputs, context, answer))
                for k, context in enumerate(lists["contexts"].refs, 1)
            )
        )

    def answer(self) -> None:
        """The choices of its loads, once Profiles and Candidates stand, and the rest of its page."""
        self.of.names |= self.inputs
        add_choices(self.wiring, alone=True)
        tables, lists, data = self.wiring.tables, self.of.lists, self.data
        plain = lists["tp"].refs[: len(TENSOR_PARALLEL_SIZES)]
        most = plain[-1]
        hardware_gpus, machine_gpus = (
            data.link(
                below(data),
                1,
                at_instance(self.of, column, self.picked["hardware"], most),
                PLAIN,
                "computed",
                label=label,
            )
            for column, label in (
                ("linked_gpus", "GPUs linked in the chosen hardware"),
                ("gpu_count", "GPUs of the chosen instance"),
            )
        )
        gpu, model, load = tables["gpus"].below, tables["models"].row(0), tables["loads"].row(BASE)
        runs = {what: Range(tuple(gpu[f"{what}_{d}"] for d in DTYPES)) for what in ("weights", "kv")}
        self.env |= {
            "hardware_gpus": hardware_gpus,
            "machine_gpus": machine_gpus,
            "gpu_memory_bytes": gpu["gpu_memory_bytes"],
            **{name: load[name] for name in ("load_requests", "within_limit", "limit_words")},
            # Whether the chosen hardware runs the precisions in use, and which these are.
            **{name: model[name] for name in ("weight_dtype", "kv_dtype")},
            "runs_weights": lookup(runs["weights"], model["weight_dtype_row"]),
            "cache_runs": derived(
                cache_runs.function, lookup(runs["kv"], model["kv_dtype_row"]), model["n_mla_layers"]
            ),
            "attention_runs": derived(
                attention_runs.function,
                model["speed_kind"],
                self.wiring.inputs["n_model_kinds"],
                gpu["runs_sparse_attention"],
            ),
        }
        rented = tables["loads"].row(len(LOADS))
        place, needed = self._bills(plain, rented["tensor_parallel_size"])
        of_shard = {name: lookup(Range(self._of_sizes(name)), place) for name in OF_SHARD}
        longest = add_longest_context(
            data,
            {
                **self.wiring.inputs,
                **model,
                **of_shard,
                "max_num_batched_tokens": gpu["max_num_batched_tokens"],
                "load_requests": load["load_requests"],
            },
            self.picked["answer_tokens"],
            model["max_context_tokens"],
        )
        self._sentences(place, needed, load, rented, longest)
        self._results()
        self._sensitivity()
        for sheet in self.behind[1:]:
            for cell in sheet.cells.values():
                cell.note = ""  # the same as on the workbook's own sheets

    def _of_sizes(self, name: str) -> tuple[Ref, ...]:
        """What a block of Profiles says of the model, or of the base context, on the chosen GPU at each size; where
        all GPUs are alike, on any."""
        block = self.wiring.blocks[name]
        row = block.rows[0 if block.down == "models" else CASES.index("base")]
        first = 0 if isinstance(row, RepeatedRow) else self.first_profile
        return tuple(row[first : first + len(TENSOR_PARALLEL_SIZES)])

    def _bills(self, sizes: Sequence[Ref], rented: Ref) -> tuple[Ref, Range]:
        """The memory of one GPU by part at each tensor-parallel size, and the GPUs that are needed; gives the place of
        the size that the page is for, and the row of GPUs needed."""
        self.row = BILLS_ROW
        self._bar(f"Memory of one GPU of the hardware to compare with, by tensor-parallel size, {self.unit}")
        labels = self._shown("Tensor-parallel size", *sizes, display=PLAIN, role="head", label_role="head")
        weights = self._of_sizes("loaded_weights_bytes_per_gpu")
        of_size = {name: self._of_sizes(name) for name in OF_SIZE}
        envs: list[dict[str, Source]] = [
            {
                **self.env,
                **{name: refs[k] for name, refs in of_size.items()},
                "tensor_parallel_size": size,
                "weights_bytes": weights[k],
                "activation_bytes": of_size["activation_bytes_per_gpu"][k],
            }
            for k, size in enumerate(sizes)
        ]
        series = []
        for label, colour, name, one in PARTS:
            for env in envs:
                if one is not None:
                    env[name] = worked_out(one, env)
                env["amount_bytes"] = env[name]
            line = self._computed(label, figures.bill_in_unit, *envs, display=ONE_DECIMAL)
            series.append((label, line[0], line[-1], colour))
        needed = self._computed("GPUs for all of them", figures.gpus_needed, *envs)
        self._computed("Requests at once that one replica holds", figures.requests_held, *envs)
        row = named(self.of.names, "tbl_whatif_needed", needed)
        env = {
            "needed": row,
            "sizes": named(self.of.names, "tbl_whatif_sizes", sizes),
            "rented": rented,
            "asked": self.picked["tensor_parallel_size"],
        }
        data = self.data
        for at, (name, one) in enumerate(
            (
                ("asked", figures.size_in_use),
                ("fewest", figures.fewest_gpus),
                ("place", figures.tp_position),
            ),
            below(data),
        ):
            ref = data.compute(at, 1, one, env, label=one.label)
            env[name] = ref = data.pass_on(at, 2, ref, one, env) if data.is_search(ref) else ref
        self.sheet.charts.append(
            Chart(
                BILLS_ROW + 1,
                0,
                f"Memory of one GPU by tensor-parallel size, {self.unit}",
                "Stacked bars: weights, activations, overhead, KV cache in use and free, and what is not used, of one "
                "GPU of the chosen hardware, at tensor-parallel sizes 1, 2, 4 and 8.",
                (labels[0], labels[-1]),
                series,
                505,
                215,
                self.unit,
            )
        )
        return ref, row

    def _sentences(
        self, place: Ref, needed: Range, load: Mapping[str, Ref], rented: Mapping[str, Ref], longest: Ref
    ) -> None:
        """Beside the choices: the cheapest of all, then the hardware chosen, which may cost many times that."""
        self.row = HEAD_ROWS + 1
        sequences, stages = (lookup(Range(self._of_sizes(name)), place) for name in ("sequences", "pipeline_stages"))
        n_needed = lookup(needed, place)
        self._computed(
            "To rent",
            sentences.cheapest_answer,
            {"n_instances": load["n_instances"], "instance": load["type"]},
            role="answer",
        )
        [cheapest] = self._shown("$ per month", load["monthly_usd"], display=USD, role="answer_money")
        self._shown("which is", load["hardware_words"], display=TEXT)
        self._shown("Speed", load["speed_words"], display=TEXT)
        self._shown("Serves", load["room_words"], display=TEXT)
        self._bar("The same load on the hardware to compare with", ANSWER)
        self._computed(
            "Rent",
            sentences.hardware_answer,
            {
                "n_instances": rented["n_instances"],
                "instance": rented["type"],
                "needed": n_needed,
                "sequences": sequences,
            },
            role="light",
        )
        [monthly] = self._shown("Its $ per month", rented["monthly_usd"], display=USD, role="left_number")
        self._shown("Its speed", rented["speed_words"], display=TEXT)
        self._shown("It serves", rented["room_words"], display=TEXT)
        self._computed(
            "Where it breaks",
            sentences.boundary_words,
            {
                "tensor_parallel_size": lookup(self.of.area("tbl_whatif_sizes"), place),
                "sequences": sequences,
                "context_words": worked_out(short_tokens, {**self.env, "tokens": self.picked["context_tokens"]}),
                "stages": stages,
            },
        )
        [gpus] = self._shown("GPUs for all of them", n_needed, display=PLAIN, role="left_number")
        self._computed(
            "Longest context for all on one replica", figures.longest_words, {"longest": longest}, role="left_number"
        )
        self.of.names |= {
            "rec_whatif_instance": load["instance"],
            "rec_whatif_n_instances": load["n_instances"],
            "rec_whatif_monthly_usd": cheapest,
            "rec_whatif_hardware_gpus": gpus,
            "rec_whatif_hardware_monthly_usd": monthly,
        }

    def _results(self) -> None:
        """What each case takes."""
        cases = [self.wiring.tables["loads"].row(LOADS.index((k, k))) for k in range(len(CASES))]
        self.row = CASES_ROW + 7
        self._computed(
            "To rent",
            sentences.cheapest_words,
            *({"n_instances": case["n_instances"], "instance": case["type"]} for case in cases),
            role="rent",
        )
        self._shown("GPUs", *(case["n_gpus"] for case in cases), display=PLAIN)
        monthly = self._computed(
            "$ per month",
            figures.case_monthly_usd,
            *(
                {"monthly_usd": case["monthly_usd"], "price_factor": factor}
                for case, factor in zip(cases, self.price_factors, strict=True)
            ),
        )
        self._shown("Time per token, ms", *(case["tpot_ms"] for case in cases), display=WHOLE)
        self.of.names |= {f"rec_case_{case}_monthly_usd": ref for case, ref in zip(CASES, monthly, strict=True)}
        self.sheet.charts.append(
            Chart(
                CASES_ROW + 1,
                0,
                "$ per month by case",
                "Bars: what the recommended hardware costs a month in the low, the base and the high case.",
                (self.heads[0], self.heads[-1]),
                [("$ per month", monthly[0], monthly[-1], "#1D4ED8")],
                505,
                215,
                "$",
            )
        )

    def _sensitivity(self) -> None:
        """What moves the cost most."""
        self.row += 1
        self._bar("What changes $ per month most: each by itself, between its low and its high case")
        self._head("", *CASES, "swing", "of the base", "")
        usd, swings = self.wiring.tables["loads"].columns["monthly_usd"], []
        drivers = [
            self._shown(label, usd[LOADS.index(low)], usd[BASE], usd[LOADS.index(high)], display=USD)
            for label, low, high in (("People online", (1, 0), (1, 2)), ("Context", (0, 1), (2, 1)))
        ]
        prices = ({"monthly_usd": usd[BASE], "price_factor": factor} for factor in self.price_factors)
        drivers.append(self._computed("Prices", figures.case_monthly_usd, *prices))
        for low, _, high in drivers:
            env: dict[str, Source] = {"low_usd": low, "high_usd": high, "base_usd": usd[BASE]}
            env["swing_usd"] = swing = self.sheet.compute(high.row, high.column + 1, figures.swing_usd, env)
            self.sheet.compute(high.row, high.column + 2, figures.swing_share, env)
            swings.append(swing)
        for swing in swings:
            env = {"swing_usd": swing, "swings": Range(tuple(swings))}
            self.sheet.compute(swing.row, swing.column + 2, figures.swing_word, env)

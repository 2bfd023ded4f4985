"""Inputs: first the three questions that decide a sizing, then the other choices, then the constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.formula import Expr, join_text, where
from sheetgen.recommend import Solution
from sheetgen.scenario import parse
from sheetgen.scenario.deployment import engine_columns
from sheetgen.scenario.override_kinds import TABLES, input_kind
from sheetgen.scenario.question import MAX_PIPELINE_PARALLEL_SIZE
from sheetgen.sheet.accepts import MOST_TITLE, PRECISIONS, Within, accepts, day, number, share, whole
from sheetgen.sheet.book.input_state import (
    AS_BUILT,
    CHANGED,
    OUT_OF_RANGE,
    beside,
    bound_display,
    has_bounds,
    place_in_list,
    state_formula,
    state_now,
)
from sheetgen.sheet.book.money_inputs import add_money_inputs
from sheetgen.sheet.book.speed_inputs import add_speed_constants, add_speed_targets
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, put_light, titled
from sheetgen.sheet.book.words import prompt_tokens
from sheetgen.sheet.kinds import legend
from sheetgen.sheet.model import Cell, Range, Ref, Sheet, Validation
from sheetgen.sizing.tokens import TOKENS_PER_K
from sheetgen.units import (
    DATE,
    DTYPE_ALIASES,
    DTYPES,
    EXACT_PERCENT,
    FACTOR,
    PERCENT,
    PLAIN,
    TENSOR_PARALLEL_SIZES,
    TEXT,
    TWO_DECIMALS,
    UNIT_BYTES,
    UNIT_NAMES,
    WHOLE,
    Display,
)

LABEL, VALUE, UNIT, LEAST, MOST, BUILT, STATE, NOTE, NTH = range(9)
HEADS = {LEAST: "from", MOST: "to", BUILT: "as built", STATE: "state", NOTE: "why"}  # in each section's bar
NOT_ZERO = Display("0;;")
NOTE_CHARACTERS = 96  # of a line in the last column
ON_FIRST_SHEET = (
    "gpu_memory_utilization", "block_size", "kv_reserved", "average_context_fraction", "prefix_cache_hit_fraction",
    "active_fraction", "extra_headroom_fraction", "spare_replicas", "hours_per_month", "discount_fraction",
    "tight_below", "stale_after_days",
)  # fmt: skip
TIGHT_BELOW = 0.10
STALE_AFTER_DAYS = 180


def excel_name(text: str) -> str:
    """A catalog id as part of a defined name: dots and dashes become underscores."""
    return "".join(c if c.isalnum() else "_" for c in text)


class InputsSheet:
    """Fills the sheet from the top, and remembers each input under its name."""

    excel_name = staticmethod(excel_name)

    def __init__(self, solved: Solution, wiring: Wiring) -> None:
        self.solved, self.wiring = solved, wiring
        self.sheet = titled(
            "Inputs",
            "Inputs",
            "Change any yellow cell; memory, fit, hardware and price follow. "
            f"Blue on yellow: input. Black: formula. Green: taken from another sheet. {legend()}",
            freeze=(HEAD_ROWS, 2),
        )
        self.sheet.widths = {
            LABEL: 44,
            VALUE: 16,
            UNIT: 12,
            LEAST: 11,
            MOST: 11,
            BUILT: 15,
            STATE: 12,
            NOTE: 76,
            NTH: 4,
        }
        self.row = HEAD_ROWS
        self.states: list[Ref] = []

    def section(self, title: str, heads: Mapping[int, str] = HEADS) -> None:
        if self.row > HEAD_ROWS:
            self.row += 1
        for column in range(NOTE + 1):
            self.sheet.text(self.row, column, heads.get(column, title if column == LABEL else ""), "section")
        self.row += 1

    def put(
        self,
        name: str,
        label: str,
        value: Any,
        display: Display,
        unit: str,
        note: str,
        validation: Validation | None = None,
        *,
        read_as: str | None = None,
        role: str = "input",
        may_be_blank: bool = False,
    ) -> Ref:
        """One input with its label, unit and reason, its bounds and its state; its defined name is in_<name>."""
        row = self.row
        self.row += 1
        value = self.solved.question.overrides.input(name, value)
        kind = input_kind(name)
        if validation is None and kind is not None and role == "input":
            validation = accepts(kind, label)
        named = self.sheet.text(row, LABEL, label, "label")
        self.sheet.text(row, UNIT, unit, "unit")
        self.sheet.text(row, NOTE, note, "remark_wrapped")
        self.sheet.heights[row] = 15.0 * max(1, -(-len(note) // NOTE_CHARACTERS))
        ref = self.sheet.put(row, VALUE, Cell(value, role, display, validation=validation), f"in_{name}")
        self.wiring.names[f"in_{name}"] = ref
        self.wiring.inputs[read_as or name] = ref
        if role == "input" and self.wiring.baseline is not None:
            self._watch(f"in_{name}", ref, validation, display, may_be_blank)
        if name in ON_FIRST_SHEET:
            self.wiring.assumptions.append((named, ref, display))
        return ref

    def _watch(self, name: str, ref: Ref, check: Validation | None, display: Display, may_be_blank: bool) -> None:
        """Beside an input its bounds, its value as built, and what became of it."""
        sheet, row, here = self.sheet, ref.row, self.sheet.name
        built = (self.wiring.baseline or {}).get(name, ref.value)
        one = state_formula(check, may_be_blank)
        env = {
            n: beside(here, row, c) for n, c in (("value", VALUE), ("built", BUILT), ("least", LEAST), ("most", MOST))
        }
        if check is not None and has_bounds(check):
            for column, bound in ((LEAST, check.low), (MOST, check.high)):
                sheet.put(row, column, Cell(bound, "fixed", bound_display(check, display)))
        elif check is not None and check.source is not None:
            env["place"] = place_in_list(env["value"], check)
        if built is not None:
            sheet.put(row, BUILT, Cell(built, "fixed", display))
        state = state_now(one, ref.value, built, check)
        self.states.append(sheet.formula(row, STATE, state, one.written(env), TEXT, "told"))


def build_inputs(solved: Solution, wiring: Wiring) -> Sheet:
    """The sheet, with every input registered in `wiring`."""
    page = InputsSheet(solved, wiring)
    _questions(page)
    _choices(page)
    add_speed_targets(page)
    add_money_inputs(page)
    _constants(page)
    add_speed_constants(page)
    _precisions(page)
    _watch(page)
    wiring.inputs_sheet = page.sheet
    wiring.inputs_cells = page.sheet.cells
    return page.sheet


def _watch(page: InputsSheet) -> None:
    """What the Change log and the checks read of all inputs, and in the frozen rows the word for all of it."""
    sheet, lists = page.sheet, page.wiring.lists
    row = HEAD_ROWS - 1
    sheet.text(row, LABEL, "All checks", "label")
    put_light(page.wiring, sheet, row, VALUE)
    if not page.states:
        return
    first, last = page.states[0].row, page.states[-1].row
    for name, column in (("labels", LABEL), ("values", VALUE), ("built", BUILT), ("states", STATE), ("nth", NTH)):
        lists[f"input_{name}"] = Range(tuple(Ref(sheet.name, row, column, None) for row in (first, last)))
    top = Ref(sheet.name, first, STATE, None).expr(sheet.name).text
    n_apart = 0
    for state in page.states:
        own = beside(sheet.name, state.row, STATE)
        counted = "+".join(f'COUNTIFS({top}:{own.text},"{word}")' for word in (CHANGED, OUT_OF_RANGE))
        n_apart += state.value != AS_BUILT
        nth = n_apart if state.value != AS_BUILT else 0
        sheet.formula(state.row, NTH, nth, where(own == AS_BUILT, 0, Expr(counted)), NOT_ZERO, "told")
        sheet.status_cells.append((state.row, state.column))
    page.wiring.input_states = list(page.states)
    states = lists["input_states"].expr(sheet.name).text
    for column, word, words in ((UNIT, CHANGED, " changed since built"), (BUILT, OUT_OF_RANGE, " out of range")):
        n = sum(state.value == word for state in page.states)
        counted = join_text(Expr(f'COUNTIFS({states},"{word}")'), words)
        sheet.formula(row, column, f"{n}{words}", counted, TEXT, "told")


def _questions(page: InputsSheet) -> None:
    question = page.solved.question
    page.section("1  What is the longest context? (prompt and answer together, in tokens)")
    page.wiring.lists["contexts"] = Range(tuple(
        page.put(
            f"context_{excel_name(w.id)}", w.name, w.context_tokens, WHOLE, "tokens",
            f"{w.about}. A request is charged all of it.",
            Within(f"Context of {w.name}"[:MOST_TITLE], "A whole number of tokens from 1; not below the answer.", low=1,
                   high=parse.MAX_TOKENS, whole=True, at_least=f"in_output_{excel_name(w.id)}"),
        )
        for w in question.workloads
    ))  # fmt: skip
    page.section("2  How many requests are in flight at the peak?")
    page.wiring.lists["tiers"] = Range(tuple(
        page.put(f"tier_{i}", f"Tier {i}", n, WHOLE, "requests",
                 "Loads are alternatives; they are never added up.", whole(f"Tier {i}", 1, 1_000_000))
        for i, n in enumerate(question.tiers, 1)
    ))  # fmt: skip
    page.section("3  Which precision does the KV cache have?")
    page.put(
        "kv_cache_dtype", "KV cache precision", question.settings.kv_cache_dtype, TEXT, "",
        "auto is the model's own 16-bit type, unless its checkpoint carries another. "
        "FP8 weights never imply FP8 KV.",
        Validation("KV cache precision", "auto or one of the precisions below.", source="list_dtype"),
        read_as="asked_kv_dtype",
    )  # fmt: skip


def _choices(page: InputsSheet) -> None:
    s, q = page.solved.question.settings, page.solved.question
    page.section("Other choices")
    page.put("weight_dtype", "Weights' precision", s.weight_dtype, TEXT, "",
             "auto is the checkpoint's own (Llama bf16, DeepSeek-V3 fp8, gpt-oss mxfp4).",
             Validation("Weights' precision", "auto or one of the precisions below.", source="list_dtype"),
             read_as="asked_weight_dtype")  # fmt: skip
    answers = []
    for w in q.workloads:
        answers.append(
            page.put(
                f"output_{excel_name(w.id)}",
                f"{w.name}: answer",
                w.output_tokens,
                WHOLE,
                "tokens",
                "Part of the context; the rest is the prompt.",
                Within(
                    f"{w.name}: answer"[:MOST_TITLE],
                    "A whole number of tokens from 0; not above the context.",
                    low=0,
                    high=parse.MAX_TOKENS,
                    whole=True,
                    at_most=f"in_context_{excel_name(w.id)}",
                ),
            )
        )
    prompts = []
    for w, answer, context in zip(q.workloads, answers, page.wiring.lists["contexts"].refs, strict=True):
        page.sheet.text(page.row, LABEL, f"{w.name}: prompt", "label")
        page.sheet.text(page.row, UNIT, "tokens", "unit")
        env = {"context_tokens": context, "answer_tokens": answer}
        prompts.append(page.sheet.compute(page.row, VALUE, prompt_tokens, env))
        page.row += 1
    page.wiring.lists |= {"prompts": Range(tuple(prompts)), "answers": Range(tuple(answers))}
    page.put(
        "gpu_memory_utilization",
        "GPU memory utilization",
        s.gpu_memory_utilization,
        PERCENT,
        "",
        "Share of the memory that the engine sees which it may take (gpu_memory_utilization).",
        share("GPU memory utilization", above_zero=True),
    )
    page.put(
        "hours_per_month",
        "Hours per month",
        s.hours_per_month,
        WHOLE,
        "hours",
        "8,760 hours a year / 12.",
        number("Hours per month", 1, 744),
    )
    page.put(
        "discount_fraction",
        "Discount on rental prices",
        s.discount_fraction,
        EXACT_PERCENT,
        "",
        "What your contract takes off every rental price: of each purchase class, listed or typed. Instances keeps "
        "the list prices; Candidates, Money and all else count what is paid.",
        number("Discount on rental prices", 0, 0.99, "Of every rental price, your own too. Owning keeps its."),
    )
    page.put(
        "active_fraction",
        "Active fraction of users",
        s.active_fraction,
        PERCENT,
        "",
        "Users = requests in flight / this. At 100 % every user counts as in flight.",
        share("Active fraction of users", above_zero=True),
    )
    page.put(
        "extra_headroom_fraction",
        "Extra headroom",
        s.extra_headroom_fraction,
        PERCENT,
        "",
        "Added to every load before replicas are counted. Off by default.",
        share("Extra headroom"),
    )
    page.put(
        "spare_replicas",
        "Spare replicas (N+1)",
        s.spare_replicas,
        WHOLE,
        "replicas",
        "1 keeps the load served after one replica is lost. Off by default.",
        whole("Spare replicas", 0, 100),
    )
    page.put(
        "average_context_fraction",
        "Average fill of the context",
        s.average_context_fraction,
        PERCENT,
        "",
        "Scales what paged KV charges. At 100 % every request is charged its full context.",
        share("Average fill of the context", above_zero=True),
    )
    page.put(
        "prefix_cache_hit_fraction",
        "Prefix cache hits",
        s.prefix_cache_hit_fraction,
        PERCENT,
        "",
        "Share of prompt tokens found in the prefix cache. 30-40 % is typical of RAG; 0 is safe.",
        share("Prefix cache hits"),
    )
    page.put(
        "kv_reserved",
        "Reserved KV (0 paged, 1 reserved)",
        s.kv_reserved,
        PLAIN,
        "",
        "Reserved KV charges the longest context always.",
        whole("Reserved KV", 0, 1),
    )
    page.put(
        "hybrid_kv_manager",
        "Hybrid KV manager (1 on, 0 off)",
        s.hybrid_kv_manager,
        PLAIN,
        "",
        "Off: windowed layers are stored like full attention.",
    )
    page.put(
        "block_size",
        "KV block size",
        s.block_size,
        WHOLE,
        "tokens",
        "The engine's default is 16.",
        whole("KV block size", about="Tokens."),
    )
    page.put("as_of", "Sheet's date", q.as_of, DATE, "", "Ages of prices count from this date.", day("Sheet's date"))
    page.put(
        "stale_after_days",
        "Days until a price is old",
        STALE_AFTER_DAYS,
        WHOLE,
        "days",
        "Older prices are marked.",
    )
    page.put(
        "tight_below",
        "Fit is tight below",
        TIGHT_BELOW,
        PERCENT,
        "",
        "Headroom under which a fit is called tight.",
        share("Fit is tight below"),
    )


_ENGINE = (
    ("context_bytes", "Memory gone before the share is taken", WHOLE, "bytes", ""),
    ("fraction_of_free", "The share is of what is free (0 or 1)", PLAIN, "",
     "0: of all memory, as vLLM counts. 1: of what is free after the bills, as TensorRT-LLM counts."),
    ("activations_in_budget", "Activations count in the budget (0 or 1)", PLAIN, "",
     "0 where the engine leaves them to the memory outside its share (SGLang)."),
    ("sampler_bytes_per_logit", "Sampler, beside the 16-bit logits", TWO_DECIMALS, "bytes/logit", ""),
    ("sampler_bytes_per_vocabulary_entry", "Sampler's rows of the vocabulary", WHOLE, "bytes/entry",
     "132 multiprocessors x 4 bytes on H100."),
    ("forward_hidden_copies", "Hidden states held in the forward pass", TWO_DECIMALS, "copies",
     "Fitted on runs whose forward pass is the peak."),
    ("expert_workspace_share", "Share of the experts' workspace held", TWO_DECIMALS, "", "1: both buffers."),
    ("matmul_workspace_bytes", "Matrix multiplication's workspace", WHOLE, "bytes", "cuBLAS, and small buffers."),
    ("allocation_step_bytes", "Allocation step of large tensors", WHOLE, "bytes", "torch's own."),
    ("large_allocation_bytes", "A tensor is large from", WHOLE, "bytes", "torch's own."),
)  # fmt: skip
_ENGINE_SOURCES = {"context_bytes": "budget_source", "sampler_bytes_per_logit": "activation_source"}


def _constants(page: InputsSheet) -> None:
    e, columns = page.solved.question.engine, engine_columns(page.solved.question.engine)
    page.section(f"Engine: {e.name} {e.default_version}")
    for name, label, display, unit, note in _ENGINE:
        page.put(name, label, columns[name], display, unit, note or getattr(e, _ENGINE_SOURCES[name]))
    for older, whose in (("", ""), ("older_", ", older GPUs")):
        for size in TENSOR_PARALLEL_SIZES:
            name = f"{older}non_torch_bytes_tp{size}"
            source = e.non_torch_source if size == 1 and not older else "The same sources."
            page.put(name, f"Non-torch memory at TP {size}{whose}", columns[name], WHOLE, "bytes", source)
    page.put(
        "staged_non_torch_bytes_tp1", "Non-torch memory of a stage at TP 1", columns["staged_non_torch_bytes_tp1"],
        WHOLE, "bytes", "With pipeline stages; at a larger TP the figure above holds.",
    )  # fmt: skip
    apart = [page.wiring.inputs[f"{o}non_torch_bytes_tp{t}"] for o in ("", "older_") for t in TENSOR_PARALLEL_SIZES]
    page.wiring.lists["non_torch"] = Range(tuple(apart))
    page.put(
        "cuda_graph_bytes_per_gpu",
        "CUDA graphs",
        columns["cuda_graph_bytes_per_gpu"],
        WHOLE,
        "bytes",
        e.cuda_graph_source,
    )
    page.put(
        "graphs_in_budget",
        "CUDA graphs count in the budget (0 or 1)",
        columns["graphs_in_budget"],
        PLAIN,
        "",
        "1 where the engine takes an estimate of them from its share.",
    )
    page.put(
        "in_flight_batches",
        "Batches in flight (windows)",
        columns["in_flight_batches"],
        PLAIN,
        "",
        "Tokens in flight that a window is charged; 2 in releases with asynchronous scheduling.",
    )
    page.put(
        "shares_pages",
        "One pool of equal pages (0 or 1)",
        columns["shares_pages"],
        PLAIN,
        "",
        "1: windows and states take pages of the same pool (vLLM). 0: each kind of layer has a pool of its own.",
    )
    page.put(
        "state_blocks",
        "Blocks of a recurrent group",
        columns["state_blocks"],
        PLAIN,
        "blocks",
        "Charged to each sequence; 2 in releases that align states with the prefix cache.",
    )
    page.put(
        "group_stretch",
        "Group stretch",
        columns["group_stretch"],
        FACTOR,
        "",
        "KV groups take the larger layer count where kinds differ by less than this factor.",
    )
    page.put(
        "max_pipeline_parallel_size",
        "Most pipeline stages",
        MAX_PIPELINE_PARALLEL_SIZE,
        PLAIN,
        "stages",
        "A replica may span at most this many instances.",
    )
    page.put(
        "calibrated_tensor_parallel_size",
        "Largest TP among measured runs",
        columns["calibrated_tensor_parallel_size"],
        PLAIN,
        "GPUs",
        "Beyond it the wider error band of other logs holds.",
    )
    page.put(
        "max_tensor_parallel_size",
        "Largest TP",
        TENSOR_PARALLEL_SIZES[-1],
        PLAIN,
        "GPUs",
        "The largest of the sizes below.",
        role="fixed",
    )
    page.wiring.lists["tp"] = Range(tuple(
        page.put(f"tp_{i}", f"TP size {i}", size, PLAIN, "GPUs", "Tensor-parallel sizes that are tried.",
                 role="fixed")
        for i, size in enumerate(TENSOR_PARALLEL_SIZES, 1)
    ))  # fmt: skip
    unit = page.solved.question.settings.units
    page.put(
        "unit_bytes",
        f"Bytes in a {UNIT_NAMES[unit]}",
        UNIT_BYTES[unit],
        WHOLE,
        "bytes",
        "The page shows amounts in this unit.",
        role="fixed",
    )
    page.put("tokens_per_k", "Tokens in 1k", TOKENS_PER_K, WHOLE, "tokens", "16k is 16,384.", role="fixed")


def _precisions(page: InputsSheet) -> None:
    tables = (
        ("Precisions of weights: bytes for each element", ("linear_bytes", "other_bytes"),
         ("quantized", "other"), [(d.linear_bytes, d.other_bytes) for d in DTYPES.values()]),
        ("Precisions of weights: bytes for each element of the copy that a quantized layer makes of its input",
         ("activation_copy_bytes",), ("copy",), [(d.activation_copy_bytes,) for d in DTYPES.values()]),
        ("Precisions of the KV cache: bytes for each element, and for a scale per token and head",
         ("kv_dtype_bytes", "kv_scale_bytes"), ("element", "scale"),
         [(d.kv_bytes, d.kv_scale_bytes) for d in DTYPES.values()]),
    )  # fmt: skip
    for title, keys, heads, rows in tables:
        page.section(title, {NOTE: "what"})
        for column, head in enumerate(("precision", *heads)):
            page.sheet.text(page.row, column, head, "head")
        columns: dict[str, list[Ref]] = {k: [] for k in ("dtype", *keys)}
        for d, values in zip(DTYPES.values(), rows, strict=True):
            page.row += 1
            columns["dtype"].append(page.sheet.put(page.row, LABEL, Cell(d.name, "label", TEXT)))
            for k, (key, value) in enumerate(zip(keys, values, strict=True)):
                value = page.solved.question.overrides.value("precisions", d.name, key, value)
                accepted = accepts(TABLES["precisions"][key], f"Bytes, {heads[k]}")
                cell = Cell(value, "input", FACTOR, validation=accepted)
                columns[key].append(page.sheet.put(page.row, 1 + k, cell))
            page.sheet.text(page.row, NOTE, d.about, "remark")
        page.row += 1
        page.wiring.lists |= {f"dtypes_{k}": Range(tuple(v)) for k, v in columns.items()}
    aliases, meant = [], []
    for alias, name in DTYPE_ALIASES.items():
        aliases.append(page.sheet.put(page.row, LABEL, Cell(alias, "label", TEXT)))
        meant.append(page.sheet.put(page.row, VALUE, Cell(name, "label", TEXT)))
        page.sheet.text(page.row, NOTE, f"another name of {name}", "remark")
        page.row += 1
    auto = page.sheet.put(page.row, LABEL, Cell("auto", "label", TEXT))
    page.sheet.text(page.row, NOTE, "the checkpoint's own precision", "remark")
    page.wiring.lists |= {"dtype_aliases": Range(tuple(aliases)), "dtypes_meant": Range(tuple(meant))}
    page.wiring.names[PRECISIONS] = Range((*columns["dtype"], *aliases))
    page.wiring.names["list_dtype"] = Range((*columns["dtype"], *aliases, auto))

"""Every input, described once: what it takes, its default, its option, and its row on the Inputs sheet.

Options, scenario files, `Settings`, the Inputs sheet, `pull`, `diff`, `explain` and the JSON all read this table. What
holds for a whole sheet is a field of `Settings`; the other inputs stand in `INPUTS` around them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from sheetgen.errors import ScenarioError
from sheetgen.question.parse import (
    AUTO_DTYPE,
    COUNT,
    FLAG,
    LEAST,
    MOST,
    PEOPLE,
    SHARE,
    SHARE_ABOVE_0,
    TEXT,
    TOKENS,
    WEIGHTS_DTYPE,
    Kind,
    Raw,
)
from sheetgen.shipped import words_in
from sheetgen.units import (
    DATE,
    DEFAULT_WEIGHTS,
    EXACT_PERCENT,
    FACTOR,
    ON_DEMAND,
    OWNING_TERMS,
    PERCENT,
    PLAIN,
    PURCHASES,
    TWO_DECIMALS,
    WHOLE,
    Display,
)
from sheetgen.units import TEXT as AS_TEXT

# Sections of the Inputs sheet: three questions, money, targets, and below them what is folded away.
CONTEXT = "1  What is the longest context? (prompt and answer together, in tokens)"
LOAD = "2  How many requests come at once at the peak?"
PRECISION = "3  Which precision do the weights and the KV cache have?"
MONEY, TARGETS = "Money", "Targets: how long may a token take, and what must be survived?"
RARE = "Rarely changed"
OWNING = "Owning instead of renting (purchase prices and power stand on GPUs)"
WORDS = "inputs.toml"
LOG_LINES, LOG = 12, ("what", "where", "was", "is", "who", "date")  # lines of the Change log that people fill in
DATE_OF_SHEET = Kind("date")
ASKS = "requests_per_user_per_day"
HISTORY = "history_hit_fraction"
OF_WORKLOAD = (ASKS, HISTORY)  # options that are fields of a workload
BY_WORKLOAD = ("tpot_ms", "ttft_ms", *OF_WORKLOAD)  # those that may differ by workload, with a cell for each
TARGET_MS = Kind(low=0.01, high=3_600_000, blank=True)
CONFIDENCE = Kind("share", 0.01, 0.99, percent=True)
FACTOR_OF_TIME = Kind(low=0.01, high=100)
PARALLEL = Kind("whole", 1, 1024)
PER_GPU_USD, PER_GPU_KW = Kind(low=LEAST, high=10_000_000), Kind(low=LEAST, high=100)


class _Words:
    """A text of an input in templates/inputs.toml, under the attribute's name; "" where it has none."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._part = name

    def __get__(self, described: Option | Row, owner: type) -> str:
        return words_in(WORDS).get(described.input_name, {}).get(self._part, "")


@dataclass(frozen=True)
class Option:
    """How an input is asked for on the command line and in scenario files; its words stand in templates/inputs.toml.

    group: options that commands take together. name: where it is not the input's. words: of a flag, what is said for 0
    and for 1. pairs: an example where the value differs by workload or GPU. repeated: it may be given several times.
    input_name: the input, which fills that in.
    """

    group: str
    metavar: str
    name: str = ""
    words: tuple[str, ...] = ()
    pairs: str = ""
    repeated: bool = False
    input_name: str = ""

    help = _Words()
    in_size = _Words()  # the help in `size`, where it differs
    hint = _Words()  # added after a refusal


@dataclass(frozen=True)
class Row:
    """How an input stands on the Inputs sheet: in its section, in the order of the table, or below another input; its
    words stand in templates/inputs.toml.

    repeated: shown on the first sheet too. read_as: what formulas call it, where not by its name. input_name: the
    input, which fills that in.
    """

    section: str
    display: Display
    below: str = ""
    repeated: bool = False
    read_as: str = ""
    input_name: str = ""

    label = _Words()
    unit = _Words()
    note = _Words()
    title = _Words()  # of the cell's message, where it is not the label
    about = _Words()  # in the cell's message, after what the cell accepts


@dataclass(frozen=True)
class Input:
    """One input. It may be changed by its option, in its row on the Inputs sheet, and without an option by `typed` of
    a scenario file, under its name.

    default: nothing where it follows from others. engine: the field of the engine that is the default. shown: it
    decides words and marks, and no answer.
    """

    name: str
    kind: Kind
    default: Raw = None
    option: Option | None = None
    row: Row | None = None
    engine: str = ""
    shown: bool = False

    def __post_init__(self) -> None:
        for part in ("option", "row"):
            if (stated := getattr(self, part)) is not None:
                object.__setattr__(self, part, replace(stated, input_name=self.name))

    @property
    def asked_as(self) -> str:
        """The name of its option; "" where it has none."""
        return (self.option.name or self.name) if self.option else ""

    @property
    def words(self) -> tuple[str, ...]:
        """The words for 0 and for 1 where the option of a flag is a word; else none."""
        return self.option.words if self.option else ()

    def parse(self, value: Raw, called: str = "") -> Raw:
        """The value of the option's text, or the input's default where it is blank. `called` names it in problems,
        where it is not the option's name. Raises ScenarioError with what is allowed."""
        option = self.option
        if value is None or option is None or (value == "" and not self.kind.is_number):
            return self.default
        if self.words:
            return self.words.index(Kind("word", words=self.words).parse(value or self.words[0], self.asked_as))
        try:
            parsed = self.kind.parse(value, called or self.asked_as)
        except ScenarioError as error:
            raise ScenarioError(*(f"{line}{option.hint}" for line in error.problems)) from None
        return int(parsed) if isinstance(self.default, int) and parsed == int(parsed) else parsed


def entry(default: Raw, kind: Kind, option: Option | None = None, row: Row | None = None, **more: Any) -> Any:
    """A field of `Settings` with its description."""
    return field(default=default, metadata={"input": Input("", kind, default, option, row, **more)})


@dataclass(frozen=True)
class Settings:
    """The inputs that hold for the whole sheet, in the order of the JSON."""

    utilization: float = entry(
        0.7,
        Kind(low=0.01, high=1),  # below it the price of a token means nothing
        Option("money", "SHARE"),
        Row(MONEY, PERCENT, below="hours_per_month"),
    )
    contingency_fraction: float = entry(0.0, SHARE, Option("money", "SHARE"), Row(MONEY, PERCENT, below="utilization"))
    currency: str = entry(
        "USD", Kind("currency"), Option("money", "CODE"), Row(MONEY, AS_TEXT, below="contingency_fraction")
    )
    fx_rate: float = entry(
        1.0, Kind(low=LEAST, high=10_000_000), Option("money", "RATE"), Row(MONEY, FACTOR, below="currency")
    )
    fx_date: str | None = entry(
        None,  # the sheet's own date
        DATE_OF_SHEET,
        Option("money", "DATE"),
        Row(MONEY, DATE, below="fx_rate"),
    )
    weight_dtype: str = entry(
        DEFAULT_WEIGHTS,
        WEIGHTS_DTYPE,
        Option("precision", "DTYPE"),
        Row(PRECISION, AS_TEXT, read_as="asked_weight_dtype"),
    )
    kv_cache_dtype: str = entry(
        "auto", AUTO_DTYPE, Option("precision", "DTYPE"), Row(PRECISION, AS_TEXT, read_as="asked_kv_dtype")
    )
    gpu_memory_utilization: float = entry(
        None,
        SHARE_ABOVE_0,
        Option("engine", "SHARE"),
        Row(RARE, PERCENT, repeated=True),
        engine="gpu_memory_utilization",
    )
    kv_cache_memory_bytes: float = entry(
        0.0,
        Kind("whole", 0, 1e13, decimal=True),
        Option("engine", "BYTES"),
        Row(RARE, WHOLE, below="gpu_memory_utilization"),
    )
    block_size: int = entry(
        None,
        COUNT,
        Option("engine", "TOKENS"),
        Row(RARE, WHOLE, below="hybrid_kv_manager", repeated=True),
        engine="block_size",
    )
    kv_reserved: int = entry(
        0,
        FLAG,
        Option("engine", "HOW", name="kv_allocation", words=("paged", "reserved")),
        Row(RARE, PLAIN, below="kv_cache_memory_bytes", repeated=True),
    )
    hours_per_month: float = entry(
        730,
        Kind(low=1, high=744),
        Option("billing", "HOURS"),
        Row(MONEY, WHOLE, below="discount_fraction", repeated=True),
    )
    discount_fraction: float = entry(
        0,
        Kind(low=0, high=0.99),  # more is in no contract: 20 was meant as 20 %
        Option("billing", "SHARES", pairs="aws=0.1,azure:reserved-1yr=0.2"),
        Row(MONEY, EXACT_PERCENT, below="purchase", repeated=True),
    )
    active_fraction: float | None = entry(None, SHARE_ABOVE_0, Option("active", "SHARE"))
    peak_hour_share: float = entry(
        0.12, SHARE_ABOVE_0, Option("rate", "SHARE"), Row(LOAD, EXACT_PERCENT, below="max_wait_fraction")
    )
    burst_factor: float = entry(
        1.3, Kind(low=1, high=100), Option("rate", "FACTOR"), Row(LOAD, FACTOR, below="peak_hour_share")
    )
    max_wait_fraction: float = entry(
        0.05, Kind("share", 0.0001, 1), Option("chance", "SHARE"), Row(LOAD, EXACT_PERCENT)
    )
    max_prefill_utilization: float = entry(
        0.8, Kind("share", 0.01, 1), Option("chance", "SHARE"), Row(LOAD, EXACT_PERCENT, below="max_wait_fraction")
    )
    confidence: float = entry(
        0.7, CONFIDENCE, Option("chance", "SHARE"), Row(TARGETS, PERCENT, below="speed_targets", repeated=True)
    )
    extra_headroom_fraction: float = entry(
        0.0, SHARE, Option("headroom", "SHARE"), Row(TARGETS, PERCENT, below="zones", repeated=True)
    )
    survive: int = entry(
        0,
        Kind("whole", 0, 3),
        Option("headroom", "LOSS", words=("none", "replica", "machine", "zone")),
        Row(TARGETS, PLAIN, below="speed_targets", repeated=True),
    )
    zones: int = entry(3, Kind("whole", 2, 20), Option("headroom", "NUMBER"), Row(TARGETS, WHOLE, below="survive"))
    near_tie_fraction: float = entry(
        0.05, SHARE, Option("market", "SHARE"), Row(MONEY, PERCENT, below="fx_date", repeated=True)
    )
    least_network_gbps: float = entry(
        400,
        Kind(low=1, high=100_000),  # at 0 a stage would wait for ever
        Option("market", "GBPS"),
        Row(RARE, WHOLE),
    )
    span_machines: int = entry(1, FLAG, Option("market", "WHEN", words=("never", "auto")), Row(RARE, PLAIN))
    average_context_fraction: float = entry(
        1.0, SHARE_ABOVE_0, Option("engine", "SHARE"), Row(CONTEXT, PERCENT, repeated=True)
    )
    prefix_cache_hit_fraction: float = entry(
        0.0, SHARE, Option("engine", "SHARE"), Row(CONTEXT, PERCENT, repeated=True)
    )
    hybrid_kv_manager: int = entry(None, FLAG, Option("caches", "0|1"), Row(RARE, PLAIN), engine="frees_windows")
    purchase: str = entry(
        ON_DEMAND, Kind("word", words=tuple(PURCHASES)), Option("market", "CLASS"), Row(MONEY, AS_TEXT, repeated=True)
    )
    speed_factor: float = entry(1.0, FACTOR_OF_TIME, Option("factors", "FACTOR"), Row(RARE, FACTOR))
    ttft_factor: float = entry(1.0, FACTOR_OF_TIME, Option("factors", "FACTOR"), Row(RARE, FACTOR))
    speed_targets: int = entry(1, FLAG, None, Row(TARGETS, PLAIN))  # 0: memory alone decides
    units: str = entry("gib", Kind("word", words=("gib", "gb")), Option("sheet", "UNIT"))
    paper: str = entry("a4", Kind("word", words=("a4", "letter")), Option("sheet", "SIZE"))

    @property
    def is_committed(self) -> int:
        """1 where the purchase class pays for every hour of the month, run or not."""
        return int(PURCHASES[self.purchase].committed)


def _text(name: str, option: Option | None, default: Raw = None) -> Input:
    return Input(name, TEXT, default, option)


def _term(name: str, metavar: str, display: Display) -> Input:
    """A term of owning; the catalog has its default and the reason for it."""
    kind = Kind("number", *OWNING_TERMS[name])
    return Input(name, kind, None, Option("money", metavar), Row(OWNING, display))


INPUTS: tuple[Input, ...] = (
    # What a sheet is of.
    _text("models", Option("sheet", "NAMES")),
    _text("workloads", Option("sheet", "NAMES")),
    _text("contexts", Option("sheet", "LIST", pairs="rag=32k,chat=8k")),
    _text("tiers", Option("sheet", "NUMBERS")),
    _text("headline", Option("sheet", "LOAD")),
    # What the page says of the decision.
    _text("ask", Option("sheet", "MODEL")),
    Input(
        "together",
        Kind("word", words=("no", "yes")),
        "no",
        Option("sheet", ""),
        Row(MONEY, AS_TEXT, below="near_tie_fraction"),
    ),
    *(Input(name, Kind("line"), "", Option("sheet", "TEXT")) for name in ("title", "owner", "approver")),
    Input("valid_until", DATE_OF_SHEET, None, Option("sheet", "DATE")),
    Input("pages", Kind("word", words=("1", "2")), "2", Option("sheet", "1|2")),
    Input("tpot_ms", TARGET_MS, None, Option("targets", "MS", pairs="chat=40,rag=off"), Row("", WHOLE)),
    Input("ttft_ms", TARGET_MS, None, Option("targets", "MS", pairs="chat=500,rag=off"), Row("", WHOLE)),
    # What may be rented.
    _text("gpus", Option("market", "NAMES")),
    _text("providers", Option("market", "NAMES")),
    _text("vendors", Option("market", "NAMES")),
    _text("instances", Option("market", "NAMES")),
    _text("region", Option("market", "TEXT")),
    # One deployment.
    _text("model", None),
    _text("gpu", Option("gpu", "NAME"), "h100"),
    _text("engine", Option("engine", "NAME"), "vllm"),
    _text("engine_version", Option("engine", "VERSION")),
    *(
        Input(f"{parallelism}_parallel_size", PARALLEL, 1, Option("parallel", "NUMBER"))
        for parallelism in ("tensor", "pipeline", "data", "expert")
    ),
    Input("network_gbps", Kind(low=0.001, high=1_000_000), 400, Option("parallel", "NUMBER")),
    Input("context_tokens", TOKENS, 4096, Option("load", "TOKENS")),
    Input("users", PEOPLE, None, Option("rate", "NUMBER")),
    Input(
        "requests_per_user_per_day",
        Kind(low=0.001, high=100_000),
        20,
        Option("rate", "NUMBER", pairs="chat=30,rag=10"),
        Row("", FACTOR),
    ),
    Input("history_hit_fraction", SHARE, 0, Option("engine", "SHARE", pairs="agent=0.9,chat=0.5"), Row("", PERCENT)),
    Input("concurrent_requests", replace(COUNT, decimal=True), None, Option("at_once", "NUMBER")),
    Input("input_tokens", Kind("tokens", 0, TOKENS.high), None, Option("split", "TOKENS")),
    Input("output_tokens", Kind("tokens", 0, TOKENS.high), None, Option("split", "TOKENS")),
    Input("max_model_len", TOKENS, None, Option("limits", "TOKENS")),
    Input("max_num_seqs", COUNT, None, Option("limits", "NUMBER")),
    Input("max_num_batched_tokens", Kind("tokens", 1, COUNT.high), None, Option("limits", "TOKENS")),
    _text("draft_model", Option("engine", "NAME")),
    Input("enable_prefix_caching", FLAG, 1, Option("caches", "0|1")),
    Input("enforce_eager", FLAG, 0, Option("caches", "0|1")),
    Input("skip_mm_profiling", FLAG, 0, Option("caches", "0|1")),
    Input("requests_per_second", Kind(low=0, high=1_000_000, decimal=True), 0.0, Option("rate", "RATE")),
    Input("requests_per_day", Kind(low=0, high=1_000_000_000_000, decimal=True), 0.0, Option("rate", "NUMBER")),
    Input("tokens_per_day", Kind(low=0, high=1_000_000_000_000_000, decimal=True), 0.0, Option("rate", "NUMBER")),
    _text("measured", Option("measured", "FILE", repeated=True)),
    # Settings of a whole sheet, and the day it counts from.
    *(replace(setting.metadata["input"], name=setting.name) for setting in fields(Settings)),
    Input("as_of", DATE_OF_SHEET, None, Option("billing", "DATE"), Row(RARE, DATE)),
    # The catalogs' assumptions have its default.
    Input("stale_after_days", Kind("whole", 1, 10_000), None, None, Row(RARE, WHOLE, repeated=True), shown=True),
    # Owning.
    Input("capex_usd_per_gpu", PER_GPU_USD, None, Option("money", "AMOUNTS", pairs="h100=39375,b200=60000")),
    Input("kw_per_gpu", PER_GPU_KW, None, Option("money", "AMOUNTS", pairs="h100=1.7")),
    _term("owned_years", "YEARS", TWO_DECIMALS),
    _term("residual_fraction", "SHARE", PERCENT),
    _term("cost_of_capital_fraction", "SHARE", PERCENT),
    _term("support_fraction", "SHARE", PERCENT),
    _term("installed_multiplier", "FACTOR", FACTOR),
    _term("system_power_multiplier", "FACTOR", FACTOR),
    _term("usd_per_kwh", "AMOUNT", FACTOR),
    _term("pue", "FACTOR", FACTOR),
    _term("colo_usd_per_kw_month", "AMOUNT", TWO_DECIMALS),
    # Cells of other sheets: where they point, and what people note.
    *(
        Input(name, kind, shown=True)
        for name, kind in (
            # Only where they are no workload or no tier of the sheet.
            ("headline_workload", Kind("text")),
            ("headline_tier", Kind("whole", 1, MOST)),
            ("money_model", Kind("text")),
            *((f"decision_{name}", Kind("text")) for name in ("model", "weight_dtype", "kv_cache_dtype")),
            *((f"decision_{name}", Kind("text")) for name in ("workload", "purchase", "provider", "region")),
            ("decision_users", Kind("whole", 0, COUNT.high, blank=True)),
            (f"decision_{ASKS}", Kind(low=0.001, high=1e6, blank=True)),  # it counts with people
            ("decision_concurrent_requests", replace(COUNT, blank=True)),  # it counts without people
            ("decision_context_tokens", Kind("whole", 1, TOKENS.high)),
            ("decision_answer_tokens", Kind("whole", 0, TOKENS.high)),
            ("decision_confidence", Kind("share", 0.01, 0.99)),
            *((f"decision_{figure}_ms", Kind(high=TARGET_MS.high, blank=True)) for figure in ("tpot", "ttft")),
            *(
                (f"log_{i}_{column}", Kind("date" if column == "date" else "any", low=-MOST, blank=True))
                for i in range(1, LOG_LINES + 1)
                for column in LOG
            ),
            *(
                (f"case_{name}_{case}", Kind(low=0.001, high=1000))
                for name in ("users", "context", "price")
                for case in ("low", "high")
            ),
        )
    ),
)

BY_NAME = {item.name: item for item in INPUTS}
BY_OPTION = {item.asked_as: item for item in INPUTS if item.option}
REPEATED = tuple(item.asked_as for item in INPUTS if item.option and item.option.repeated)
OF_SETTINGS = tuple(BY_NAME[setting.name] for setting in fields(Settings))
OF_TERMS = tuple(item for item in INPUTS if item.name in OWNING_TERMS)
# The inputs of one deployment, in the order of its JSON.
OF_A_POINT = tuple(
    {**BY_NAME, **BY_OPTION}[name]
    for name in (
        "model",
        "gpu",
        "engine",
        "engine_version",
        "weight_dtype",
        "kv_cache_dtype",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "expert_parallel_size",
        "gpu_memory_utilization",
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "block_size",
        "context_tokens",
        "users",
        "requests_per_user_per_day",
        "active_fraction",
        "concurrent_requests",
        "input_tokens",
        "output_tokens",
        "prefix_cache_hit_fraction",
        "history_hit_fraction",
        "draft_model",
        "kv_cache_memory_bytes",
        "average_context_fraction",
        "kv_allocation",
        "hybrid_kv_manager",
        "enable_prefix_caching",
        "enforce_eager",
        "skip_mm_profiling",
        "requests_per_second",
        "requests_per_day",
        "tokens_per_day",
        "peak_hour_share",
        "burst_factor",
        "speed_factor",
        "ttft_factor",
        "network_gbps",
    )
)
OPTION_GROUPS = (
    "market", "engine", "precision", "rate", "active", "chance", "headroom", "billing", "targets", "factors",
    "measured", "money",
)  # fmt: skip


def asked_in(*groups: str) -> tuple[Input, ...]:
    """The inputs whose options stand in these groups, group by group."""
    return tuple(asked for group in groups for asked in INPUTS if asked.option and asked.option.group == group)


def rows_in(section: str) -> list[Input]:
    """The inputs of a section of the Inputs sheet, in the order of their rows."""

    def after(name: str) -> list[Input]:
        following: list[Input] = []
        for candidate in INPUTS:
            if candidate.row and candidate.row.section == section and candidate.row.below == name:
                following += [candidate, *after(candidate.name)]
        return following

    return after("")

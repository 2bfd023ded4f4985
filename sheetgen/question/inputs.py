"""Every input, described once: what it takes, its default, its option, and its row on the Inputs sheet.

Options, scenario files, `Settings`, the Inputs sheet, `pull`, `diff`, `explain` and the JSON all read this table. What
holds for a whole sheet is a field of `Settings`; the other inputs stand in `INPUTS` around them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

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
)
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
OF_FX_RATE = "How many of that currency one US dollar is"
MONEY, TARGETS = "Money", "Targets: how long may a token take, and what must be survived?"
RARE = "Rarely changed"
OWNING = "Owning instead of renting (purchase prices and power stand on GPUs)"
DTYPES = "bf16 fp16 fp32 fp8 fp8_e5m2 int8 int4 nvfp4 mxfp4"
LOG_LINES, LOG = 12, ("what", "where", "was", "is", "who", "date")  # lines of the Change log that people fill
DATE_OF_SHEET = Kind("date")
ASKS = "requests_per_user_per_day"
HISTORY = "history_hit_fraction"
OF_WORKLOAD = (ASKS, HISTORY)  # options that are fields of a workload
BY_WORKLOAD = ("tpot_ms", "ttft_ms", *OF_WORKLOAD)  # those that may differ by workload, and have a cell for each
TARGET_MS = Kind(low=0.01, high=3_600_000, blank=True)
CONFIDENCE = Kind("share", 0.01, 0.99)
FACTOR_OF_TIME = Kind(low=0.01, high=100)
PARALLEL = Kind("whole", 1, 1024)
PER_GPU_USD, PER_GPU_KW = Kind(low=LEAST, high=10_000_000), Kind(low=LEAST, high=100)


class Option(NamedTuple):
    """How an input is asked for on the command line and in scenario files.

    group: options that commands take together. words: of a flag, what is said for 0 and for 1. in_size: other help in
    `size`. pairs: an example where the value differs by workload or GPU. hint: said after a refusal. repeated: it may
    be given several times.
    """

    group: str
    metavar: str
    help: str
    name: str = ""  # where it is not the input's
    words: tuple[str, ...] = ()
    in_size: str = ""
    pairs: str = ""
    hint: str = ""
    repeated: bool = False


class Row(NamedTuple):
    """How an input stands on the Inputs sheet: in its section, in the order of the table, or below another input.

    title: of the cell's message, where it is not the label. about: said there after what the cell accepts. repeated:
    shown on the first sheet too. read_as: what formulas call it, where not by its name.
    """

    section: str
    label: str
    unit: str
    display: Display
    note: str = ""
    title: str = ""
    about: str = ""
    below: str = ""
    repeated: bool = False
    read_as: str = ""


@dataclass(frozen=True)
class Input:
    """One input. It may be changed by its option, in its row on the Inputs sheet, and without an option by `typed` of
    a scenario file, under its name.

    default: nothing where it follows from others. engine: the field of the engine that is the default. shown: it
    decides words and marks, and no answer.
    """

    name: str
    kind: Kind
    default: Any = None
    option: Option | None = None
    row: Row | None = None
    engine: str = ""
    shown: bool = False

    @property
    def asked_as(self) -> str:
        """The name of its option; "" where it has none."""
        return (self.option.name or self.name) if self.option else ""

    @property
    def words(self) -> tuple[str, ...]:
        """Of a flag whose option is a word: what is said for 0 and for 1."""
        return self.option.words if self.option else ()

    def parse(self, value: Any, called: str = "") -> Any:
        """The option's value, its default where blank. Raises ScenarioError with what is allowed; `called` is its name
        there, where it is not the option's."""
        option = self.option
        if value is None or option is None or (value == "" and not self.kind.is_number):
            return self.default
        if self.words:
            return self.words.index(Kind("word", words=self.words).parse(value or self.words[0], self.asked_as))
        try:
            found = self.kind.parse(value, called or self.asked_as)
        except ScenarioError as error:
            raise ScenarioError(*(f"{line}{option.hint}" for line in error.problems)) from None
        return int(found) if isinstance(self.default, int) and found == int(found) else found


def entry(default: Any, kind: Kind, option: Option | None = None, row: Row | None = None, **more: Any) -> Any:
    """A field of `Settings` with its description."""
    return field(default=default, metadata={"input": Input("", kind, default, option, row, **more)})


@dataclass(frozen=True)
class Settings:
    """The inputs that hold for the whole sheet, in the order of the JSON."""

    utilization: float = entry(
        0.7,
        Kind(low=0.01, high=1),  # below it a price of a token says nothing
        Option(
            "money",
            "SHARE",
            "Share of the hours in which the hardware does its load, for $ per token. Default 0.7; of a day's "
            "requests what their mean is of their peak.",
        ),
        Row(
            MONEY,
            "Utilization",
            "",
            PERCENT,
            "Share of the hours run in which the hardware does the load: what a million tokens costs is at this share.",
            below="hours_per_month",
        ),
    )
    contingency_fraction: float = entry(
        0.0,
        SHARE,
        Option("money", "SHARE", "Contingency, in a line of its own under the sums. Default 0."),
        Row(
            MONEY,
            "Contingency",
            "",
            PERCENT,
            "A line of its own under the sums; it is in no price of an hour, a user or a token.",
            below="utilization",
        ),
    )
    currency: str = entry(
        "USD",
        Kind("currency"),
        Option("money", "CODE", "Currency of the totals, such as EUR; needs --fx-rate. Default USD."),
        Row(
            MONEY,
            "Currency of the totals",
            "",
            AS_TEXT,
            "Its three letters. Prices are in US dollars; totals are converted at the rate below.",
            title="Currency",
            below="contingency_fraction",
        ),
    )
    fx_rate: float = entry(
        1.0,
        Kind(low=LEAST, high=10_000_000),
        Option("money", "RATE", f"{OF_FX_RATE}: 0.92 of EUR where 1 EUR is 1.09 US dollars."),
        Row(MONEY, "Exchange rate", "per $", FACTOR, f"{OF_FX_RATE}.", below="currency"),
    )
    fx_date: str | None = entry(
        None,
        DATE_OF_SHEET,  # None: the sheet's own date
        Option("money", "DATE", "Day of that rate. Default: the sheet's date."),
        Row(MONEY, "Day of the exchange rate", "", DATE, "The sheet's date unless said.", below="fx_rate"),
    )
    weight_dtype: str = entry(
        DEFAULT_WEIGHTS,
        WEIGHTS_DTYPE,
        Option(
            "precision",
            "DTYPE",
            "Precision of the weights: recommended (FP8 where an FP8 checkpoint of 16-bit weights is known), "
            f"published (the checkpoint's own, or auto), or {DTYPES}. Default {DEFAULT_WEIGHTS}; of size published.",
        ),
        Row(
            PRECISION,
            "Weights' precision",
            "",
            AS_TEXT,
            "published is the checkpoint's own (Llama bf16, DeepSeek-V3 fp8, gpt-oss mxfp4); recommended is FP8 "
            "where an FP8 checkpoint of 16-bit weights is known, else as published.",
            read_as="asked_weight_dtype",
        ),
    )
    kv_cache_dtype: str = entry(
        "auto",
        AUTO_DTYPE,
        Option(
            "precision",
            "DTYPE",
            "Precision of the KV cache: auto, or the same precisions; int8 and int4 keep a scale for each token and "
            "head. Default auto, 16 bits for most models.",
        ),
        Row(
            PRECISION,
            "KV cache precision",
            "",
            AS_TEXT,
            "auto is the model's own 16-bit type, unless its checkpoint "
            "carries another. FP8 weights never imply FP8 KV.",
            read_as="asked_kv_dtype",
        ),
    )
    gpu_memory_utilization: float = entry(
        None,
        SHARE_ABOVE_0,
        Option("engine", "SHARE", "Share of the memory that the engine may use. Default: the engine's."),
        Row(
            RARE,
            "GPU memory utilization",
            "",
            PERCENT,
            "Share of the memory that the engine sees which it may take (gpu_memory_utilization).",
            repeated=True,
        ),
        engine="gpu_memory_utilization",
    )
    kv_cache_memory_bytes: float = entry(
        0.0,
        Kind("whole", 0, 1e13, decimal=True),
        Option(
            "engine",
            "BYTES",
            "KV pool of each GPU, set outright as vLLM's --kv-cache-memory-bytes does, whatever "
            "the share leaves; for TensorRT-LLM a limit (max_gpu_total_bytes). Default 0: not set.",
        ),
        Row(
            RARE,
            "KV pool of a GPU, set outright",
            "bytes",
            WHOLE,
            "0: what the share leaves. Else the engine takes so much, and does not start where less is left, or takes "
            "what is left (a limit, below).",
            below="gpu_memory_utilization",
        ),
    )
    block_size: int = entry(
        None,
        COUNT,
        Option("engine", "TOKENS", "Tokens in a block of the KV cache. Default 16."),
        Row(
            RARE,
            "KV block size",
            "tokens",
            WHOLE,
            "The engine's default is 16.",
            about="Tokens.",
            below="hybrid_kv_manager",
            repeated=True,
        ),
        engine="block_size",
    )
    kv_reserved: int = entry(
        0,
        FLAG,
        Option(
            "engine",
            "HOW",
            "paged, or reserved: every request is charged max_model_len. Default paged.",
            "kv_allocation",
            ("paged", "reserved"),
        ),
        Row(
            RARE,
            "Reserved KV (0 paged, 1 reserved)",
            "",
            PLAIN,
            "Reserved KV charges the longest context always.",
            title="Reserved KV",
            below="kv_cache_memory_bytes",
            repeated=True,
        ),
    )
    hours_per_month: float = entry(
        730,
        Kind(low=1, high=744),
        Option("billing", "HOURS", "Hours that a month is billed. Default 730."),
        Row(
            MONEY,
            "Hours per month",
            "hours",
            WHOLE,
            "8,760 hours a year / 12.",
            below="discount_fraction",
            repeated=True,
        ),
    )
    discount_fraction: float = entry(
        0,
        Kind(low=0, high=0.99),  # beyond it is no contract: 20 was meant as 20 %
        Option(
            "billing",
            "SHARES",
            "What your contracts take off rental prices: 0.2 for all, or by provider, purchase "
            "class or both: 0.05,aws=0.1,reserved-1yr=0.15,azure:reserved-1yr=0.2. Default 0.",
            pairs="aws=0.1,azure:reserved-1yr=0.2",
            hint=" A share: 0.2 is 20 %.",
        ),
        Row(
            MONEY,
            "Discount on rental prices",
            "",
            EXACT_PERCENT,
            "What your contract takes off; by provider and class on Prices and hardware.",
            about="Of every rental price, your own too. Owning keeps its.",
            below="purchase",
            repeated=True,
        ),
    )
    active_fraction: float | None = entry(
        None,
        SHARE_ABOVE_0,
        Option(
            "active",
            "SHARE",
            "Share of the people who wait for an answer at the same moment: the load is then --users x this at once, "
            "in place of the rate of their requests. No default.",
        ),
    )
    peak_hour_share: float = entry(
        0.12,
        SHARE_ABOVE_0,
        Option("rate", "SHARE", "Share of a day's requests in its busiest hour. Default 0.12."),
        Row(
            LOAD,
            "Busiest hour's share of a day",
            "",
            EXACT_PERCENT,
            "Of a day's requests, those in its busiest hour.",
            below="max_wait_fraction",
        ),
    )
    burst_factor: float = entry(
        1.3,
        Kind(low=1, high=100),
        Option("rate", "FACTOR", "Rate of the busiest minutes over that of the busiest hour. Default 1.3."),
        Row(
            LOAD,
            "Burst within the busiest hour",
            "",
            FACTOR,
            "Rate of the busiest minutes over that of the hour.",
            below="peak_hour_share",
        ),
    )
    max_wait_fraction: float = entry(
        0.05,
        Kind("share", 0.0001, 1),
        Option(
            "chance",
            "SHARE",
            "Of people and rates: the share of requests that may find no place free. Default 0.05.",
        ),
        Row(
            LOAD,
            "Share that may find no place free",
            "",
            EXACT_PERCENT,
            "A place is a request that a replica serves within all targets. Sets the allowance for chance.",
        ),
    )
    max_prefill_utilization: float = entry(
        0.8,
        Kind("share", 0.01, 1),
        Option(
            "chance",
            "SHARE",
            "Of people and rates: the share of its time that a replica may spend on prompts. Default 0.8.",
        ),
        Row(
            LOAD,
            "Share of a replica's time for prompts",
            "",
            EXACT_PERCENT,
            "The rest is left for answers, and for chance.",
            below="max_wait_fraction",
        ),
    )
    confidence: float = entry(
        0.7,
        CONFIDENCE,
        Option(
            "chance",
            "SHARE",
            "How sure the answer is to be: the targets hold, and memory suffices, with this chance, by the errors of "
            "measured predictions. 0.5 takes predictions at their word. Default 0.7.",
        ),
        Row(
            TARGETS,
            "Confidence",
            "",
            PERCENT,
            "The chance with which times are within the targets and memory suffices, by the 80 % bands below.",
            below="speed_targets",
            repeated=True,
        ),
    )
    extra_headroom_fraction: float = entry(
        0.0,
        SHARE,
        Option("headroom", "SHARE", "Room to leave above the load. Default 0."),
        Row(
            TARGETS,
            "Extra headroom",
            "",
            PERCENT,
            "Added to each load before replicas are counted. Off by default.",
            below="zones",
            repeated=True,
        ),
    )
    survive: int = entry(
        0,
        Kind("whole", 0, 3),
        Option(
            "headroom",
            "LOSS",
            "none, replica, machine or zone: the load is still served within its targets after it. Default none.",
            "survive",
            ("none", "replica", "machine", "zone"),
        ),
        Row(
            TARGETS,
            "Survive the loss of (0 to 3)",
            "",
            PLAIN,
            "0 nothing, 1 a replica, 2 a machine, 3 a zone: so "
            "many more are rented that the load is served within its targets after the loss.",
            title="Survive",
            about="0 nothing, 1 a replica, 2 a machine, 3 a zone.",
            below="speed_targets",
            repeated=True,
        ),
    )
    zones: int = entry(
        3,
        Kind("whole", 2, 20),
        Option("headroom", "NUMBER", "Zones over which machines are spread, for --survive zone. Default 3."),
        Row(
            TARGETS,
            "Zones",
            "zones",
            WHOLE,
            "Machines are spread over them evenly. They count where a zone may be lost.",
            below="survive",
        ),
    )
    near_tie_fraction: float = entry(
        0.05,
        SHARE,
        Option(
            "market",
            "SHARE",
            "Within so much of the lowest price, and with no more GPUs, the fewest machines win. "
            "Default 0.05; 0 takes the very cheapest.",
        ),
        Row(
            MONEY,
            "Near tie",
            "",
            PERCENT,
            "Of candidates that cost at most so much more than the cheapest, and "
            "rent no more GPUs, the fewest machines win, then hardware that computes in the weights' precision, then "
            "the most requests within the targets, then the price.",
            below="fx_date",
            repeated=True,
        ),
    )
    least_network_gbps: float = entry(
        400,
        Kind(low=1, high=100_000),  # at 0 a stage would wait for ever
        Option(
            "market",
            "GBPS",
            "Network that a machine needs to hold a stage of a replica which no single machine holds. Default 400.",
        ),
        Row(
            RARE,
            "Network to span machines",
            "Gb/s",
            WHOLE,
            "A replica stays inside one machine. Where no "
            "candidate holds it there, it spans whole machines with at least this network, one pipeline stage each.",
        ),
    )
    span_machines: int = entry(
        1,
        FLAG,
        Option(
            "market",
            "WHEN",
            "auto, or never: whether a replica that no machine holds may span several. Default auto.",
            "span_machines",
            ("never", "auto"),
        ),
        Row(
            RARE,
            "Span machines (1 where needed, 0 never)",
            "",
            PLAIN,
            "0: what no single machine holds has no answer.",
            title="Span machines",
        ),
    )
    average_context_fraction: float = entry(
        1.0,
        SHARE_ABOVE_0,
        Option("engine", "SHARE", "Share of the context that is filled on average. Default 1."),
        Row(
            CONTEXT,
            "Average fill of the context",
            "",
            PERCENT,
            "Scales what paged KV charges and what a step reads. At 100 % every request is charged its full context.",
            repeated=True,
        ),
    )
    prefix_cache_hit_fraction: float = entry(
        0.0,
        SHARE,
        Option(
            "engine",
            "SHARE",
            "Share of the prompt that is found in the prefix cache, of a prefix that all "
            "requests share: one copy of it is counted. Default 0.",
        ),
        Row(
            CONTEXT,
            "Prefix cache hits",
            "",
            PERCENT,
            "Share of prompt tokens found in the prefix cache, of a prefix that all requests share (one copy is "
            "counted). 30-40 % is typical of RAG; 0 is safe.",
            repeated=True,
        ),
    )
    hybrid_kv_manager: int = entry(
        None,
        FLAG,
        Option("caches", "0|1", "1 where the engine keeps windows and states apart. Default: the engine's own."),
        Row(RARE, "Hybrid KV manager (1 on, 0 off)", "", PLAIN, "Off: windowed layers are stored like full attention."),
        engine="frees_windows",
    )
    purchase: str = entry(
        ON_DEMAND,
        Kind("word", words=tuple(PURCHASES)),
        Option(
            "market", "CLASS", f"{', '.join(tuple(PURCHASES)[:-1])} or {tuple(PURCHASES)[-1]}. Default {ON_DEMAND}."
        ),
        Row(
            MONEY,
            "Purchase class",
            "",
            AS_TEXT,
            "The prices that everything follows. An instance without a price "
            "in the class takes no part; a commitment is paid for all hours.",
            repeated=True,
        ),
    )
    speed_factor: float = entry(
        1.0,
        FACTOR_OF_TIME,
        Option(
            "factors",
            "FACTOR",
            "What every predicted time per output token is multiplied by, on all hardware alike; --measured sets "
            "that of one. Default 1.",
        ),
        Row(
            RARE,
            "Measured / predicted time per token",
            "",
            FACTOR,
            "1: as predicted. A run of your own gives a better one.",
            title="Factor",
        ),
    )
    ttft_factor: float = entry(
        1.0,
        FACTOR_OF_TIME,
        Option(
            "factors",
            "FACTOR",
            "The same for the time to the first token. Default 1.",
        ),
        Row(
            RARE,
            "Measured / predicted time to first token",
            "",
            FACTOR,
            "1: as predicted. A run of your own gives a better one.",
            title="Factor",
        ),
    )
    speed_targets: int = entry(
        1,
        FLAG,
        None,  # 0: memory alone decides
        Row(
            TARGETS,
            "Targets drive the count (1 on, 0 off)",
            "",
            PLAIN,
            "On: replicas are as many as memory or speed asks for, whichever is more. Off: memory alone.",
        ),
    )
    units: str = entry("gib", Kind("word", words=("gib", "gb")), Option("sheet", "UNIT", "gib or gb. Default gib."))
    paper: str = entry("a4", Kind("word", words=("a4", "letter")), Option("sheet", "SIZE", "a4 or letter. Default a4."))

    @property
    def is_committed(self) -> int:
        """1 where the purchase class pays for every hour of the month, run or not."""
        return int(PURCHASES[self.purchase].committed)


def _text(name: str, option: Option | None, default: Any = None) -> Input:
    return Input(name, TEXT, default, option)


def _term(name: str, metavar: str, help_: str, label: str, unit: str, display: Display) -> Input:
    """A term of owning; the catalog has its default, and why."""
    kind = Kind("number", *OWNING_TERMS[name])
    return Input(name, kind, None, Option("money", metavar, help_), Row(OWNING, label, unit, display))


INPUTS: tuple[Input, ...] = (
    # What a sheet is of.
    _text("models", Option("sheet", "NAMES", "Models by catalog id, alias or Hugging Face id: 8b,70b,405b.")),
    _text(
        "workloads", Option("sheet", "NAMES", "Up to three of `sheetgen list workloads`. Default chat,rag,long-doc.")
    ),
    _text(
        "contexts",
        Option(
            "sheet",
            "LIST",
            "Other contexts for them, such as rag=32k,chat=8k (prompt and answer together).",
            pairs="rag=32k,chat=8k",
        ),
    ),
    _text("tiers", Option("sheet", "NUMBERS", "One to four numbers of requests at once. Default 1,32,128,1024.")),
    _text(
        "headline",
        Option(
            "sheet",
            "LOAD",
            "The load of the large answer per model, such as rag:32, or any other "
            "number of requests at once, which then has a row of its own. Default: RAG, "
            "or the first workload, at the rate where one is given, else at 32 at once where that is a tier, else at "
            "the middle one (the lower of two).",
        ),
    ),
    # What the page says of the decision.
    _text(
        "ask",
        Option(
            "sheet",
            "MODEL",
            "The model that is to be approved: its month and year stand large at the "
            "head of the page. Default: each model has a sentence.",
        ),
    ),
    Input(
        "together",
        Kind("word", words=("no", "yes")),
        "no",
        Option("sheet", "", "The models are meant together: the page adds them up."),
        Row(
            MONEY,
            "Models are meant together (yes or no)",
            "",
            AS_TEXT,
            "yes: Money adds them up. no: they are alternatives, and no sum of them is shown.",
            below="near_tie_fraction",
        ),
    ),
    *(
        Input(name, Kind("line"), "", Option("sheet", "TEXT", help_))
        for name, help_ in (
            ("title", "Title of the page. Default: LLM serving sizing sheet."),
            ("owner", "Who owns the sheet, named at its head."),
            ("approver", "Who is to approve it, named there too."),
        )
    ),
    Input("valid_until", DATE_OF_SHEET, None, Option("sheet", "DATE", "Day until which the prices hold, at its head.")),
    Input(
        "pages",
        Kind("word", words=("1", "2")),
        "2",
        Option("sheet", "1|2", "1: the PDF without its part for engineers. Default 2."),
    ),
    Input(
        "tpot_ms",
        TARGET_MS,
        None,
        Option(
            "targets",
            "MS",
            "Time per output token to size for: 40, off, or chat=40,rag=off. Default 50 up to a context of 16k, "
            "growing smoothly beyond: 63 at 32k, 100 at 128k.",
            pairs="chat=40,rag=off",
        ),
        Row(
            "",
            "time per output token",
            "ms",
            WHOLE,
            "Follows the context until you type over it. 50 ms is 20 tokens a second, faster than people read, 100 ms "
            "10. Blank: no target.",
            title="Target",
            about="Milliseconds. Blank: no target.",
        ),
    ),
    Input(
        "ttft_ms",
        TARGET_MS,
        None,
        Option(
            "targets",
            "MS",
            "Time to first token to size for, too: 2000, off, or rag=3000. Default 1000, and 0.4 for each prompt token "
            "that no cache holds: 2.2 s for chat, 7.1 s for RAG, 53 s for a long document.",
            pairs="chat=500,rag=off",
        ),
        Row(
            "",
            "time to first token",
            "ms",
            WHOLE,
            "Follows the prompt until you type over it. Indicative under load. Blank: no target.",
            title="Target",
            about="Milliseconds. Blank: no target.",
        ),
    ),
    # What may be rented.
    _text("gpus", Option("market", "NAMES", "Only instances with these GPUs: h100,l40s.")),
    _text("providers", Option("market", "NAMES", "Only these providers, or all. Default aws,azure,gcp.")),
    _text(
        "vendors",
        Option(
            "market",
            "NAMES",
            "Data-centre GPUs of these vendors, or all, where no GPU or instance is named: nvidia,amd. Default nvidia.",
        ),
    ),
    _text("instances", Option("market", "NAMES", "Only these instances: aws/p5.48xlarge.")),
    _text(
        "region",
        Option("market", "TEXT", "Prices of this region, part of its name, a country or an area: eu, uk, us, ap."),
    ),
    # One deployment.
    _text("model", None),
    _text("gpu", Option("gpu", "NAME", "GPU by id or alias. Default h100."), "h100"),
    _text("engine", Option("engine", "NAME", "Serving engine. Default vllm."), "vllm"),
    _text(
        "engine_version",
        Option(
            "engine",
            "VERSION",
            "Its version, whose accounting rules hold; a build's own name (nightly, gpt-oss-dev) is the newest.",
        ),
    ),
    *(
        Input(f"{what}_parallel_size", PARALLEL, 1, Option("parallel", "NUMBER", help_))
        for what, help_ in (
            ("tensor", "Default 1."),
            ("pipeline", "Default 1."),
            ("data", "Default 1. A replica has TP x PP x DP GPUs."),
            ("expert", "Default 1. Adds no GPUs."),
        )
    ),
    Input(
        "network_gbps",
        Kind(low=0.001, high=1_000_000),
        400,
        Option(
            "parallel",
            "NUMBER",
            "Network of a machine in Gb/s, over which pipeline stages pass their activations: each stage is a machine. "
            "Default 400.",
        ),
    ),
    Input(
        "context_tokens", TOKENS, 4096, Option("load", "TOKENS", "Tokens of a request: 16k, or 16384. Default 4096.")
    ),
    Input(
        "users",
        PEOPLE,
        None,
        Option(
            "rate",
            "NUMBER",
            "People to serve, such as 200 or 200k: their requests of a day x --peak-hour-share / 3600 x "
            "--burst-factor arrive in a second at peak.",
        ),
    ),
    Input(
        "requests_per_user_per_day",
        Kind(low=0.001, high=100_000),
        20,
        Option(
            "rate",
            "NUMBER",
            "Requests of each of them a day: 30, or chat=30,rag=10. Default: the workload's (20 for chat and RAG, 5 "
            "for long documents, 200 for agents), 20 for a load of your own.",
            in_size="Requests of each of them a day. Default 20.",
            pairs="chat=30,rag=10",
        ),
        Row(
            "",
            "requests of a person a day",
            "requests",
            FACTOR,
            "Puts people into requests, and requests into people.",
            title="Requests of a person a day",
        ),
    ),
    Input(
        "history_hit_fraction",
        SHARE,
        0,
        Option(
            "engine",
            "SHARE",
            "Share of the prompt that is the request's own history and found in the prefix cache: it is not computed "
            "again, and its memory is charged in full. Default the workload's: 0.9 for agents, else 0.",
            pairs="agent=0.9,chat=0.5",
        ),
        Row(
            "",
            "own history in the cache",
            "",
            PERCENT,
            "Share of the prompt that is not computed again; its memory is charged in full.",
            title="Own history",
        ),
    ),
    Input(
        "concurrent_requests",
        replace(COUNT, decimal=True),
        None,
        Option("at_once", "NUMBER", "Requests at once, in place of people or a rate. Default 1."),
    ),
    Input(
        "input_tokens",
        Kind("tokens", 0, TOKENS.high),
        None,
        Option("split", "TOKENS", "Tokens of the prompt. Default: the context less 1,024, or half of a small one."),
    ),
    Input(
        "output_tokens",
        Kind("tokens", 0, TOKENS.high),
        None,
        Option("split", "TOKENS", "Tokens of the answer. Default: the rest of the context."),
    ),
    Input(
        "max_model_len",
        TOKENS,
        None,
        Option("limits", "TOKENS", "Longest context that the engine admits. Default: the context."),
    ),
    Input(
        "max_num_seqs",
        COUNT,
        None,
        Option("limits", "NUMBER", "Most requests in one batch. Default: the engine's own on this GPU."),
    ),
    Input(
        "max_num_batched_tokens",
        Kind("tokens", 1, COUNT.high),
        None,
        Option("limits", "TOKENS", "Most tokens in one step. Default: the engine's own on this GPU."),
    ),
    _text(
        "draft_model",
        Option(
            "engine",
            "NAME",
            "Draft model for speculative decoding, or mtp for the model's own layers: its weights and KV cache are "
            "counted, not what it gains and costs in time.",
        ),
    ),
    Input(
        "enable_prefix_caching",
        FLAG,
        1,
        Option("caches", "0|1", "0 where prefixes are not kept: recurrent layers then take one block less."),
    ),
    Input(
        "enforce_eager",
        FLAG,
        0,
        Option(
            "caches",
            "0|1",
            "1 where the engine runs without CUDA graphs and compiles nothing: it keeps neither, and is slower.",
        ),
    ),
    Input(
        "skip_mm_profiling",
        FLAG,
        0,
        Option(
            "caches", "0|1", "1 where the engine keeps nothing back for images: as --skip-mm-profiling, or of text."
        ),
    ),
    Input(
        "requests_per_second",
        Kind(low=0, high=1_000_000, decimal=True),
        0.0,
        Option(
            "rate",
            "RATE",
            "Requests that arrive in a second at peak, in place of people: how many there are at once follows.",
        ),
    ),
    Input(
        "requests_per_day",
        Kind(low=0, high=1_000_000_000_000, decimal=True),
        0.0,
        Option(
            "rate", "NUMBER", "The same by the day, such as 200k: at peak x --peak-hour-share / 3600 x --burst-factor."
        ),
    ),
    Input(
        "tokens_per_day",
        Kind(low=0, high=1_000_000_000_000_000, decimal=True),
        0.0,
        Option("rate", "NUMBER", "The same in tokens, prompts and answers together, such as 300M."),
    ),
    _text(
        "measured",
        Option(
            "measured",
            "FILE",
            "A benchmark's result, which sets the times of its model, GPU, engine and layout: of vllm bench serve, "
            "SGLang's bench_serving, GuideLLM or AIPerf; or a start-up log, which sets their KV pool. What it does "
            "not say stands behind it: result.json,gpu=h100,tp=2. Several: repeat it.",
            repeated=True,
        ),
    ),
    # What holds for a whole sheet, and what it counts from.
    *(replace(one.metadata["input"], name=one.name) for one in fields(Settings)),
    Input(
        "as_of",
        DATE_OF_SHEET,
        None,
        Option(
            "billing", "DATE", "Day from which the age of prices counts. Default today (UTC), or SOURCE_DATE_EPOCH."
        ),
        Row(RARE, "Sheet's date", "", DATE, "Ages of prices count from this date."),
    ),
    Input(
        "stale_after_days",
        Kind("whole", 1, 10_000),
        None,
        None,  # the catalogs' assumptions have both defaults
        Row(RARE, "Days until a price is old", "days", WHOLE, "Older prices are marked.", repeated=True),
        shown=True,
    ),
    # Owning.
    Input(
        "capex_usd_per_gpu",
        PER_GPU_USD,
        None,
        Option(
            "money",
            "AMOUNTS",
            "Your quote for owning, of one GPU as installed: 39375, or h100=39375,b200=60000. Default: street prices.",
            pairs="h100=39375,b200=60000",
        ),
    ),
    Input(
        "kw_per_gpu",
        PER_GPU_KW,
        None,
        Option(
            "money", "AMOUNTS", "Its power with the server and the cooling, in kW: 1.7, or h100=1.7.", pairs="h100=1.7"
        ),
    ),
    _term(
        "owned_years",
        "YEARS",
        "Years that an owned GPU is used. Default 5.",
        "Years that a GPU is used",
        "years",
        TWO_DECIMALS,
    ),
    _term(
        "residual_fraction",
        "SHARE",
        "What it is worth at the end, of its purchase. Default 0.",
        "Worth at the end, of the purchase",
        "",
        PERCENT,
    ),
    _term(
        "cost_of_capital_fraction", "SHARE", "Cost of capital a year. Default 0.", "Cost of capital a year", "", PERCENT
    ),
    _term(
        "support_fraction",
        "SHARE",
        "Support and maintenance a year, of the purchase. Default 0.",
        "Support a year, of the purchase",
        "",
        PERCENT,
    ),
    _term(
        "installed_multiplier",
        "FACTOR",
        "Price installed over the price of the GPU module. Default 1.54.",
        "Installed price over the module's",
        "",
        FACTOR,
    ),
    _term(
        "system_power_multiplier",
        "FACTOR",
        "Power of a server over the rated power of its GPUs. Default 1.79.",
        "Server's power over its GPUs' rated power",
        "",
        FACTOR,
    ),
    _term("usd_per_kwh", "AMOUNT", "Electricity. Default 0.08.", "Electricity", "$ per kWh", FACTOR),
    _term("pue", "FACTOR", "Power of the site over the power of its machines. Default 1.54.", "PUE", "", FACTOR),
    _term(
        "colo_usd_per_kw_month",
        "AMOUNT",
        "Rent of the site by the kW and month, without power. Default 194.95.",
        "Colocation rent",
        "$/kW-month",
        TWO_DECIMALS,
    ),
    # Cells of other sheets: where they point, and what people note.
    *(
        Input(name, kind, shown=True)
        for name, kind in (
            # Only where they are no workload or no tier of the sheet.
            ("headline_workload", Kind("text")),
            ("headline_tier", Kind("whole", 1, MOST)),
            ("money_model", Kind("text")),
            *((f"decision_{name}", Kind("text")) for name in ("model", "weight_dtype", "kv_cache_dtype")),
            *((f"decision_{name}", Kind("text")) for name in ("purchase", "provider", "region")),
            ("decision_users", Kind("whole", 0, COUNT.high, blank=True)),
            (f"decision_{ASKS}", Kind(low=0.001, high=1e6, blank=True)),  # it counts with people
            ("decision_concurrent_requests", replace(COUNT, blank=True)),  # it counts without people
            ("decision_context_tokens", Kind("whole", 1, TOKENS.high)),
            ("decision_answer_tokens", Kind("whole", 0, TOKENS.high)),
            ("decision_confidence", Kind("share", 0.01, 0.99)),
            *((f"decision_{figure}_ms", Kind(high=TARGET_MS.high, blank=True)) for figure in ("tpot", "ttft")),
            *(
                (f"log_{i}_{what}", Kind("date" if what == "date" else "any", low=-MOST, blank=True))
                for i in range(1, LOG_LINES + 1)
                for what in LOG
            ),
            *(
                (f"case_{name}_{case}", Kind(low=0.001, high=1000))
                for name in ("users", "context", "price")
                for case in ("low", "high")
            ),
        )
    ),
)

BY_NAME = {one.name: one for one in INPUTS}
BY_OPTION = {one.asked_as: one for one in INPUTS if one.option}
REPEATED = tuple(one.asked_as for one in INPUTS if one.option and one.option.repeated)
OF_SETTINGS = tuple(BY_NAME[one.name] for one in fields(Settings))
OF_TERMS = tuple(one for one in INPUTS if one.name in OWNING_TERMS)
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
    return tuple(one for group in groups for one in INPUTS if one.option and one.option.group == group)


def rows_in(section: str) -> list[Input]:
    """The inputs of a section of the Inputs sheet, in the order of their rows."""

    def after(name: str) -> list[Input]:
        found: list[Input] = []
        for one in INPUTS:
            if one.row and one.row.section == section and one.row.below == name:
                found += [one, *after(one.name)]
        return found

    return after("")

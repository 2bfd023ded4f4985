"""Every input, described once: what it takes, its default, its option, and its row on the Inputs sheet.

Options, scenario files, `Settings`, the Inputs sheet, `pull`, `diff`, `explain` and the JSON all read this table, which
is templates/inputs.toml. What holds for a whole sheet is a field of `Settings` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from sheetgen import units
from sheetgen.question.parse import COUNT, FLAG, MOST, PEOPLE, SHARE, SHARE_ABOVE_0, TEXT, TOKENS, Kind, Raw
from sheetgen.shipped import shipped_table
from sheetgen.units import OWNING_TERMS, PURCHASES, Display

# Sections of the Inputs sheet: three questions, money, targets, and below them what is folded away.
CONTEXT = "1  What is the longest context? (prompt and answer together, in tokens)"
LOAD = "2  How many requests come at once at the peak?"
PRECISION = "3  Which precision do the weights and the KV cache have?"
MONEY, TARGETS = "Money", "Targets: how long may a token take, and what must be survived?"
RARE = "Rarely changed"
OWNING = "Owning instead of renting (purchase prices and power stand on GPUs)"
_SECTIONS = {
    "context": CONTEXT,
    "load": LOAD,
    "precision": PRECISION,
    "money": MONEY,
    "targets": TARGETS,
    "rare": RARE,
    "owning": OWNING,
    "": "",
}
TABLE = "inputs.toml"
LOG_LINES, LOG = 12, ("what", "where", "was", "is", "who", "date")  # lines of the Change log that people fill in
ASKS = "requests_per_user_per_day"
HISTORY = "history_hit_fraction"
OF_WORKLOAD = (ASKS, HISTORY)  # options that are fields of a workload
BY_WORKLOAD = ("tpot_ms", "ttft_ms", *OF_WORKLOAD)  # those that may differ by workload, with a cell for each
_KINDS = {  # by the name that the table calls each by; of a single word, a kind of that name without bounds
    "text": TEXT,
    "flag": FLAG,
    "share": SHARE,
    "share above 0": SHARE_ABOVE_0,
    "count": COUNT,
    "people": PEOPLE,
    "tokens": TOKENS,
    "purchase": Kind("word", words=tuple(PURCHASES)),
}
_DISPLAYS: dict[str, Display] = {
    "percent": units.PERCENT,
    "exact_percent": units.EXACT_PERCENT,
    "factor": units.FACTOR,
    "whole": units.WHOLE,
    "plain": units.PLAIN,
    "two_decimals": units.TWO_DECIMALS,
    "date": units.DATE,
    "text": units.TEXT,
}


@dataclass(frozen=True)
class Option:
    """How an input is asked for on the command line and in scenario files.

    group: options that commands take together. name: where it is not the input's. words: of a flag, what is said for 0
    and for 1. pairs: an example where the value differs by workload or GPU. repeated: it may be given several times.
    in_size: the help in `size`, where it differs.
    """

    group: str
    metavar: str
    name: str = ""
    words: tuple[str, ...] = ()
    pairs: str = ""
    repeated: bool = False
    help: str = ""
    in_size: str = ""


@dataclass(frozen=True)
class Row:
    """How an input stands on the Inputs sheet: in its section, in the order of the table, or below another input.

    repeated: shown on the first sheet too. read_as: what formulas call it, where not by its name. title: of the cell's
    message, where it is not the label. about: in the cell's message, after what the cell accepts.
    """

    section: str
    display: Display
    below: str = ""
    repeated: bool = False
    read_as: str = ""
    label: str = ""
    unit: str = ""
    note: str = ""
    title: str = ""
    about: str = ""


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
        parsed = self.kind.parse(value, called or self.asked_as)
        return int(parsed) if isinstance(self.default, int) and parsed == int(parsed) else parsed


_OF_OPTION, _OF_ROW = ("help", "in_size"), ("label", "unit", "note", "title", "about")


def _kind(stated: str | Mapping[str, Raw], name: str) -> Kind:
    """The kind that an input's section states, by name or by its parts."""
    if stated == "owning term":
        return Kind("share" if name.endswith("_fraction") else "number", *OWNING_TERMS[name])
    if isinstance(stated, str):
        return _KINDS.get(stated) or Kind(stated)
    parts: dict[str, Raw] = {**stated, "words": tuple(stated.get("words", ()))}
    return Kind(**parts)


def _input(name: str, section: Mapping[str, Raw]) -> Input:
    """The input of a section of the table. Raises TypeError for a part that no input has."""
    parts = dict(section)
    option, row = parts.pop("option", None), parts.pop("row", None)
    if option is not None:
        words = {word: parts.pop(word) for word in _OF_OPTION if word in parts}
        option = Option(**{**option, "words": tuple(option.get("words", ())), **words})
    if row is not None:
        words = {word: parts.pop(word) for word in _OF_ROW if word in parts}
        places = {"section": _SECTIONS[row["section"]], "display": _DISPLAYS[row["display"]]}
        row = Row(**{**row, **places, **words})
    return Input(name, _kind(parts.pop("kind", "text"), name), option=option, row=row, **parts)


_STATED = {name: _input(name, section) for name, section in shipped_table(TABLE).items()}


@dataclass(frozen=True)
class Settings:
    """The inputs that hold for the whole sheet, in the order of the JSON; `settings_of` completes them."""

    utilization: float
    contingency_fraction: float
    currency: str
    fx_rate: float
    fx_date: str | None
    weight_dtype: str
    kv_cache_dtype: str
    gpu_memory_utilization: float
    kv_cache_memory_bytes: float
    block_size: int
    kv_reserved: int
    hours_per_month: float
    discount_fraction: float
    active_fraction: float | None
    peak_hour_share: float
    burst_factor: float
    max_wait_fraction: float
    max_prefill_utilization: float
    confidence: float
    extra_headroom_fraction: float
    survive: int
    zones: int
    near_tie_fraction: float
    least_network_gbps: float
    span_machines: int
    average_context_fraction: float
    prefix_cache_hit_fraction: float
    hybrid_kv_manager: int
    purchase: str
    speed_factor: float
    ttft_factor: float
    speed_targets: int
    units: str
    paper: str

    @property
    def is_committed(self) -> int:
        """1 where the purchase class pays for every hour of the month, run or not."""
        return int(PURCHASES[self.purchase].committed)


INPUTS: tuple[Input, ...] = (
    *_STATED.values(),
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
            *(
                (f"decision_{figure}_ms", Kind(high=_STATED[f"{figure}_ms"].kind.high, blank=True))
                for figure in ("tpot", "ttft")
            ),
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
CONFIDENCE = BY_NAME["confidence"].kind
OF_SETTINGS = tuple(BY_NAME[setting.name] for setting in fields(Settings))
OF_TERMS = tuple(item for item in INPUTS if item.name in OWNING_TERMS)
OF_A_POINT = tuple({**BY_NAME, **BY_OPTION}[name] for name in shipped_table("deployment.toml")["inputs"])
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

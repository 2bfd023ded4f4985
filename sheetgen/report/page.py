"""The page as tables of values, which all writers draw.

A cell holds a number with its Display, or words with the cells that they name. It is formatted last, by the writers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from sheetgen.units import TEXT, Display

# Of a page: a number, a text, a cell, a record of these, or None.
PagePart: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Cell:
    """A number as it is to be shown, or words with a {} for each of their parts; a dash where nothing is known."""

    value: PagePart
    display: Display = TEXT
    parts: tuple[PagePart, ...] = ()

    def __str__(self) -> str:
        return str(self.value).format(*self.parts) if self.parts else self.display.text(self.value)

    def __bool__(self) -> bool:
        return self.value is not None

    def __eq__(self, other: object) -> bool:
        """Cells are equal where they show the same, and a text is what it shows."""
        return str(self) == str(other) if isinstance(other, Cell | str) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


Text = Cell | str


def capital(text: str) -> str:
    """`text` as the beginning of a line."""
    return f"{text[:1].upper()}{text[1:]}"


NOT_SURE_OF = "not that the load is right, nor that no machine fails"
COMMON_DEATHS = (
    "startup_weights_do_not_fit",
    "startup_kv_pool_too_small",
    "startup_workspace_or_cuda_graph",
    "concurrency_spike",
    "prefill_long_prompt",
)
# Ways to pay less, those that are asked for most first.
ASKED_FOR_MOST = (
    "term", "hosted", "less_sure", "kv_fp8", "provider", "unbound", "own", "fp8_weights", "four_bits", "hours",
)  # fmt: skip
_FEW_MODELS, _WAYS_OF_FEW, _WAYS_OF_MANY = 4, 4, 2  # models of a sheet, and how many ways it has of each
MOST_SPARES = 3  # models whose spare machine is priced among the risks
THE_SAME = "the same"
NONE = Cell(None)  # shown where there is no number; never 0


def most_ways(n_models: int) -> int:
    """The ways to pay less that a sheet of so many models has of each."""
    return _WAYS_OF_FEW if n_models <= _FEW_MODELS else _WAYS_OF_MANY


def words(pattern: str, *parts: PagePart) -> Cell:
    """Words with cells in them: `words("{} a month", usd)`."""
    return Cell(pattern, parts=parts)


def joined(between: str, parts: tuple[PagePart, ...] | list[PagePart]) -> Cell:
    """Cells one after another; none where there are none."""
    return Cell(between.join("{}" for _ in parts), parts=tuple(parts)) if parts else NONE


def with_parts(value: PagePart, change: Callable[[PagePart], PagePart]) -> PagePart:
    """A part of a page with `change` applied to each of its own parts; unchanged where it has none."""
    if isinstance(value, tuple):
        inside = map(change, value)
        return type(value)(*inside) if hasattr(value, "_fields") else tuple(inside)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: change(getattr(value, part.name)) for part in fields(value)})
    return value


def formatted(value: PagePart) -> PagePart:
    """A part of the page with the text of each cell in its place."""
    return str(value) if isinstance(value, Cell) else with_parts(value, formatted)


_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")


def day_of(text: str | None) -> date | None:
    """The first day that a date such as 2026, 2026-01 or 2026-01-20 may mean; None without a date."""
    shown = _DATE.fullmatch(text or "")
    return date(*(int(part or 1) for part in shown.groups())) if shown else None


def age_in_words(shown: str, as_of: date) -> str:
    """The age of a price with a date such as 2026-01-20; of one such as 2026 the most, "up to 333 days old"."""
    first = day_of(shown)
    assert first is not None, "asked of prices with a date"
    is_rough = first.isoformat() != shown
    return f"{'up to ' * is_rough}{(as_of - first).days} days old"


class Column(NamedTuple):
    """A column of a table that has no layout of its own. `right`: of numbers."""

    head: str
    right: bool = False


class Table(NamedTuple):
    """A table of the page under its title, for writers that draw one table like another."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]
    level: int = 2  # of the title


@dataclass(frozen=True, kw_only=True)
class Rented:
    """The hardware and cost of one answer, or of all together; `NONE` where something is not known."""

    model: str  # "Llama 3.1 70B", or all of them: "Llama 3.1 8B + Llama 3.1 70B"
    rent: Text = NONE  # "2 × p5.48xlarge", or "nothing fits"; NONE of all together
    monthly: Text  # "$80,358"
    per_year: Text = NONE  # "$480,872 a year"
    in_dollars: Cell = NONE  # "in US dollars $40,179 a month, $482,150 a year": beside another currency
    approve: tuple[Text, ...] = ()  # "$44,197", "$530,365 a year": with contingency, where there is one


@dataclass(frozen=True, kw_only=True)
class Total(Rented):
    """The answers of all models together."""


@dataclass(frozen=True, kw_only=True)
class MoneyFacts:
    """One model's money at one load; `NONE` where something is not known."""

    per_user: Text = NONE  # "$159 per user"; "$159 per request at once" where the load is not people
    per_million_tokens: Text = NONE  # "$0.21 prompt, $3.40 answer per million tokens at 70% utilization"
    owned: Cell = NONE  # "8× H100 SXM: $8,640 to $11,720": owned instead, a month
    break_even: Cell = NONE  # "cheaper than renting on demand above 24% of the hours (22% to 29%)"
    budget: Cell = NONE  # "EUR 40,554 a month, EUR 486,643 a year, with 10% contingency"; NONE where it is nothing new
    capex_is_old: bool = False


@dataclass(frozen=True, kw_only=True)
class HostedFacts:
    """One model's hosts at one load; `NONE` where nothing holds the load, or there is nothing to say."""

    hosts: Text = NONE  # "Nebius $3,259 (precision unknown), Lambda $4,100 (fp8) a month ..."; that nobody hosts it
    hosts_rent: Text = NONE  # "renting is cheaper than Nebius by utilization: on-demand above 55%, ..."
    not_given: Text = NONE  # "your own weights, data at home, a known precision (Nebius)"


@dataclass(frozen=True, kw_only=True)
class HeadlineRow:
    """One model in the first table of the sizing sheet, beside what its card has."""

    people: Text = ""  # "for 460 people"; "up to 243 people" where people are asked for
    year: Text = NONE  # "$482,150"
    sure: str = ""  # "85%"
    at_margin: Text = NONE  # "$44,100": the month at the confidence beside the answer's own; "the same"
    is_margin_open: bool = False  # whether that margin is out of reach or too expensive to sign before a measurement
    as_published: Text = NONE  # "$40,179": the month with the weights as published, where others are in use
    first_word: Text = NONE  # "1.5 s"
    pace: Text = NONE  # "24": tokens a second of one request
    hourly: Text = NONE  # "$55.04": of one machine
    measure_first: tuple[Text, ...] = ()  # why one should measure before renting


NO_ROW = HeadlineRow()


@dataclass(frozen=True)
class WayRow:
    """A way to pay less for the same load."""

    change: str
    rent: Text
    monthly: Text
    commits: Text
    loses: str  # the losses; "" where there are none
    needs: str = ""  # the steps needed first
    gpus: Text = NONE  # "4× H100 NVL"
    short: Text = NONE  # "$33,960 one-year term"
    kind: str = ""
    is_elsewhere: bool = False  # another provider or a host takes less, on a condition
    place: str = ""  # "at Azure": where another supplier has it
    year: Text = ""  # "$150,880 a year": of a term that is longer
    pays_after: Text = ""  # "10.1": months after which it pays off
    pays_off: str = ""  # "pays off in 10.1 months"
    is_brief: bool = False  # on a full page: without its working hours, and without the year of a term that has several

    @property
    def lost(self) -> str:
        """The losses of a way, what it costs a year, and what has to be done first."""
        loses = self.loses.partition(":")[0] if self.is_brief and self.kind == "hours" else self.loses
        return "; ".join(filter(None, (loses, str(self.year) * (not self.is_brief), self.needs)))

    @property
    def gives_up(self) -> str:
        """The same, and when the way pays off."""
        return "; ".join(filter(None, (self.lost, self.pays_off)))

    @property
    def binds(self) -> bool:
        """True where the way commits to an amount."""
        return isinstance(self.commits, Cell)


@dataclass(frozen=True, kw_only=True)
class Card(Rented):
    """The answer for one model at the headline load."""

    fits: bool
    provider: str  # "AWS, us-east-1"
    gpus: Text = NONE  # "8× H100 SXM"
    why: Text = ""  # why nothing fits
    is_short: bool = False  # whether it is least sure of memory
    spare: Text = ""  # "33, asked 32": serves hardly more than the load
    survivor: Text = ""  # "$40,179": a month of what survives the loss of a machine, where none is survived yet
    unmeasured: str = ""  # "H100 NVL": the GPU, where its memory was not measured
    reserved: bool = False  # more machines than one may expect to find free
    row: HeadlineRow = NO_ROW
    ways: tuple[WayRow, ...] = ()

    @property
    def provider_name(self) -> str:
        return self.provider.partition(",")[0]

    @property
    def place(self) -> str:
        """The provider and its region: "AWS us-east-1"."""
        return self.provider.replace(",", "")

    def cheaper(self, most: int) -> Cell:
        """The ways to pay less in a line, the mildest first, of many those that are asked for most: "at an even chance
        $20,382, one-year term $33,960"."""
        return joined("; ", [way.short for way in self.shown_ways(most)])

    def shown_ways(self, most: int) -> tuple[WayRow, ...]:
        """The ways of that line."""
        kept = sorted(self.ways, key=lambda way: ASKED_FOR_MOST.index(way.kind))[:most]
        return tuple(way for way in self.ways if way in kept)


@dataclass(frozen=True)
class MatrixCell:
    """One load on the matrix."""

    status: str  # fits | none | over: the word and the colour
    word: str  # the status in words: "fits", "nothing fits", "over 32k"
    kv: Text = NONE  # "160.0"  (unit in the head)
    rent: Cell = NONE  # "2 × p5.48xlarge": number and type
    monthly: Text = NONE  # "$80,358"; "$1.25M"
    even: Text = NONE  # "$833.0k": the month at an even chance, where one should measure first
    published: Cell = NONE  # "$166,342": the month with the weights as published
    published_rent: Text = NONE  # "4 × p6-b200.48xlarge"
    why: Text = ""  # why the model cannot serve it: "this model reads at most 32k tokens"

    @property
    def dead(self) -> bool:
        """True where there is nothing to rent for the load."""
        return self.status in ("none", "over")


@dataclass(frozen=True)
class MatrixRow:
    """One tier of one workload, a cell per model."""

    tier: Text  # "32"
    headline: bool
    cells: tuple[MatrixCell, ...]
    requests: int = 0  # at once; 0 for a rate, of which they follow
    load: Text = ""  # "32 at once"
    people: Text = ""  # "460 people": whom the hardware of every model that holds the load is enough for


@dataclass(frozen=True)
class MatrixBlock:
    """One workload."""

    workload: str  # "RAG"
    context: str  # "16k"
    rows: tuple[MatrixRow, ...]


@dataclass(frozen=True)
class ModelFacts:
    """The head of a model's part of the grid."""

    name: str
    weights_in: Text  # "131.4 GiB in BF16, 67.7 GiB in FP8, 39.8 GiB in INT4": those that there are
    kv_per_token: Cell  # "320.0 KiB": the figure and its unit
    note: str


@dataclass(frozen=True)
class Bar:
    """Weights and KV cache of one load, "2 × 131.4" where its GPUs keep a thing twice, and the memory that the engine
    may use on them."""

    weights: Text
    kv: Text
    overhead: Text = NONE
    limit: Text = NONE  # "570.1"


@dataclass(frozen=True)
class FingerprintRow:
    """A row on a kind of failure: where a deployment dies, which part ran out, and which setting to change in which
    direction."""

    where: str
    bill: str
    looks_like: Text
    change: Text
    here: Text  # with this sheet's numbers; the first row names their model, and then what it says
    label: str = ""
    first_change: str = ""  # "lower max_model_len to 2048"
    lasting_change: str = ""  # "lower max_model_len": without the numbers of this sheet

    @property
    def said(self) -> Text:
        """`here` without the model's name."""
        return self.here.parts[-1] if isinstance(self.here, Cell) and self.here.parts else self.here


@dataclass(frozen=True)
class InstanceRow:
    """An instance that the page recommends somewhere."""

    name: str  # of its kind, in short
    provider: str
    gpus: Text  # "8× H100 SXM"
    hourly: Text
    region: str
    price_date: str
    stale: bool


@dataclass(frozen=True)
class Source:
    """A line of the sources; `url` only where it is http or https."""

    text: str
    url: str | None = None

    @property
    def web_url(self) -> str | None:
        """`url` where it is a plain http or https address, else None: what a writer may make a link of."""
        if not self.url or any(c.isspace() or not c.isprintable() for c in self.url):
            return None
        try:
            parts = urlsplit(self.url)
        except ValueError:
            return None
        return self.url if parts.scheme in ("http", "https") and parts.netloc else None


class Option(NamedTuple):
    """A box to tick on the request."""

    name: str  # "Approve as sized"
    reply: str  # the reply to a mail: "approved"; "" where it cannot be had
    price: Text
    per: str  # "a month", "once"
    facts: tuple[Text, ...]  # "$366,869 a year, cancel any day.", "70% sure."
    rent: Text = ""  # "3 × NC80adis H100 v5, Azure"
    step: Text = NONE  # what lies between this and the option before it
    is_advised: bool = False  # whether to do this before all else

    @property
    def told(self) -> tuple[Text, ...]:
        """The facts, and that step."""
        return (*self.facts, *([self.step] if self.step else []))


class Mover(NamedTuple):
    """An input that moves the month: its two ends, and the month at both; NONE where nothing serves an end."""

    name: str  # "People"
    span: Text  # "235 to 940, not 470"
    low: Cell
    high: Cell
    ends: tuple[Text, Text]  # "235 people", "940 people"


@dataclass(frozen=True)
class Request:
    """The request for approval; without options where there is nothing to approve."""

    what: Text  # "Llama 3.1 70B for 470 people's document questions"
    sentence: Text  # "Run Llama 3.1 70B for 470 people's document questions: $30,572 a month"
    subject: Text = ""  # "For approval: $30,572 a month to run Llama 3.1 70B"; "" where one is to be chosen
    options: tuple[Option, ...] = ()
    why: Text = ""  # "The cheapest of 52 offers by AWS, Azure and GCP that is 70% sure"
    reasons: tuple[Text, ...] = ()  # the price of what was not taken
    less_only: Text = NONE  # under which conditions others take less
    warnings: tuple[Text, ...] = ()  # why one should measure first
    sure_of: Text = NONE  # "75% sure of first words in 7.1 s and 20 tokens a second; not of load or failures."
    certain: Text = NONE  # the same without what that is not
    sure: Text = NONE  # "75% sure to be fast enough."
    sized: Cell = NONE  # the rent of a month as sized, and with a margin: lines through the bars
    margin: Cell = NONE
    uncertainty: Cell = NONE  # the input that moves the month most: "pages, $19,797 less to $42,992 more"
    finding: Text = ""  # the bars' title
    together: Text = NONE  # the cost of several of them together
    movers: tuple[Mover, ...] = ()
    ways: tuple[WayRow, ...] = ()
    owning: Text = NONE  # that no price to own is known
    enough: Text = NONE  # "243 people; 244 need $30,572": how many the machines serve, and the cost of one more
    serves: tuple[Text, ...] = ()
    per_person: Text = NONE  # among what is served, the cost of a person
    risks: tuple[Text, ...] = ()
    failure: Text = NONE  # among the risks, what a failed machine does, and what survives that
    excluded: Text = ""  # "tax, storage, network, staff and a spare machine": costs that are not in the price
    basis: Text = ""  # of which days the prices are, and what the machines cost in Europe
    prices: Text = NONE  # the oldest day alone, for a mail


class Band(NamedTuple):
    """A time with the ends of its 80 % band and its target, in the unit that it is shown in."""

    time: float
    low: float
    high: float
    target: float | None
    text: Text  # "43 (31 to 71); full 58"
    aim: str  # the target: "50"
    full: float | None  # with every place taken, of a rate


class GpuParts(NamedTuple):
    """The parts of one GPU's memory. shares: weights, overhead, the load's KV cache and free cache, as shares of it."""

    shares: tuple[float, ...]
    sizes: tuple[Text, ...]  # weights, activations, outside torch, graphs, the load's KV cache, free cache
    limit: Text  # "85.3": all of these
    total: Text  # "92.7"


@dataclass(frozen=True, kw_only=True)
class ReplicaRow:
    """The fullest replica of one model's answer as it is started."""

    model: str
    replicas: Text  # "2 × 4 H100 SXM, TP 4"
    requests: int  # at once, of the load
    in_target: int  # the most within the targets
    held: int  # the most by memory
    context_tokens: int
    longest_tokens: int  # at which its requests of the load still have their cache
    pool: Text  # "75.36": as in the engine's log, like the next two
    pool_band: Text  # "72.7 to 75.9": where four of five starts lay; NONE where too few are known
    kv_tokens: Text  # "617,360"
    max_concurrency: Text  # "37.68"
    parts: GpuParts
    token: Band | None  # milliseconds; None without tokens after the first
    first_token: Band  # seconds
    log_note: Text  # that the pool holds more than the log's maximum concurrency; NONE where it does not
    breaks: Text  # "16; too slow from 26, memory for 42"
    lengths: Text  # "16,384 of 43,120"


class Start(NamedTuple):
    """The start of the replicas: shell lines that can be pasted, and the replica that they start."""

    lines: tuple[str, ...] = ()
    note: Text = ""


NOT_STARTED = Start()


@dataclass(frozen=True)
class Page:
    """The page."""

    title: str
    request: Request  # the request for approval
    finding: Text  # "32 document questions at once: $5,095 to $166,342 a month"
    question: str  # "RAG (16k tokens), 32 requests at once"
    precision: str  # "weights FP8 · KV cache bf16 · vLLM 0.33.0"
    engine: str  # "vLLM"
    weights_in_short: Text  # under the first table: the precisions in use, with publisher and licence
    load_note: tuple[Text, ...]  # under the first table: the load in people and an hour, a day of measuring
    as_of: str
    price_banner: str
    oldest_price: str  # date of the oldest price in the answers; "" where none has one
    version: str
    catalog: str  # first 8 of its hash
    unit: str  # GiB or GB
    paper: str  # a4 | letter
    cards: tuple[Card, ...]
    matrix: tuple[MatrixBlock, ...]
    models: tuple[ModelFacts, ...]
    bars: tuple[tuple[Bar, ...], ...]  # by model, a bar for each workload at the headline's requests
    longest_fits: tuple[Text, ...]  # by model: "32 requests of 27,648 tokens fit"; NONE where nothing holds the load
    fingerprints: tuple[FingerprintRow, ...]
    instances: tuple[InstanceRow, ...]
    subject: str  # the model whose numbers the fingerprints have
    left_out: str
    discounted: str  # a discount; a workbook has it in its inputs alone
    level: str  # "70%": how sure every answer is at least
    sources: tuple[Source, ...]
    sources_in_use: tuple[Source, ...]  # those of the models, the engine, and the prices of the machines rented
    purchase: str = ""  # the class of the prices: "on demand", "1 yr"
    owner: str = ""
    approver: str = ""
    valid_until: str = ""  # a date
    ask: int | None = None  # the model that is to be approved; None: each
    is_asked: bool = False  # whether the request for that model was asked for
    total: Total | None = None  # where the models are meant together
    sure_of: Text = NONE  # what the chances of all answers are of; the request has it of its own
    confidence: tuple[Text, ...] = ()  # how well memory, speed and prices are known
    as_measured: tuple[Text, ...] = ()  # deployments whose times and memory are as measured; included above
    assumed: tuple[Text, ...] = ()  # the assumptions that matter most, in words
    published_dtype: str = ""  # "BF16", where the published weights of all models that use others have that precision
    pages: int = 2  # 1: without the part for engineers
    # Fields that `launch`, a floor above, fills in.
    replicas: tuple[ReplicaRow, ...] = ()  # of each answer
    start: Start = NOT_STARTED
    sized_by: tuple[str, ...] = ()  # `sheetgen size` of each replica, or of the subject's where there are many
    memory_note: Text = NONE  # the requests for which the sizing counts memory, of each answer
    drive: Text = NONE  # the load with which the model that is asked for is measured
    drive_alone: Text = NONE  # the same where the command of `bench` does not stand below it
    bench: tuple[str, ...] = ()  # the command that sends it
    findings: tuple[Text, ...] = ()  # of the replicas: on memory, speed and limits
    beyond_measured: tuple[str, ...] = ()  # conditions of the replicas that no measured run had
    started_deaths: tuple[FingerprintRow, ...] = ()  # `fingerprints` with the numbers of the replica as started
    contingency: str = ""  # "with 10% contingency", included in the amount to approve; all else is rent
    sign: str = "$"  # of the currency of every amount; of most others than dollars their code: CHF

    @property
    def has_request(self) -> bool:
        """True where the request stands before the sheet: it is asked for, and there is something to approve."""
        return self.is_asked and bool(self.request.options)

    @property
    def heads(self) -> tuple[str, ...]:
        """The owner of the page, the approver, and the last day of its prices, as far as they are stated."""
        until = f"prices valid to {self.valid_until}" if self.valid_until else ""
        people = (("Owner", self.owner), ("For approval", self.approver))
        return (*(f"{role}: {who}" for role, who in people if who), *filter(None, (until,)))

    @property
    def asked_for(self) -> tuple[Rented, ...]:
        """The answers to be approved: the total, the chosen one, or each."""
        if self.total is not None:
            return (self.total,)
        return self.cards if self.ask is None else (self.cards[self.ask],)

    @property
    def as_published_head(self) -> str:
        """The head of what the answers cost with published weights: these in one precision, or as they are."""
        return f"in {self.published_dtype}" if self.published_dtype else "as published"

    @property
    def grid_loads(self) -> tuple[MatrixRow, ...]:
        """A row for each load of the grid, whatever workloads have it; rates last."""
        loads = {row.load: row for block in self.matrix for row in block.rows}
        return tuple(sorted(loads.values(), key=lambda row: (not row.requests, row.requests)))

    @property
    def machines(self) -> tuple[InstanceRow, ...]:
        """The machines of the page, the most expensive first."""
        return tuple(sorted(self.instances, key=lambda row: -_amount(row.hourly)))

    @property
    def price_lists(self) -> str:
        """Origin and date of the machines' prices, by provider, and the age of the oldest: "AWS us-east-1 of
        2026-07-20, the oldest 132 days old"."""
        days: dict[str, list[str]] = {}
        for row in self.instances:
            days.setdefault(f"{row.provider} {row.region}".strip(), []).append(row.price_date)
        places = [f"{place} of {' to '.join(dict.fromkeys((min(d), max(d))))}" for place, d in days.items()]
        first = day_of(self.oldest_price)  # None as of a price that was typed in
        if first is None:
            return ", ".join(places)
        return ", ".join([*places, f"the oldest {age_in_words(self.oldest_price, date.fromisoformat(self.as_of))}"])

    @property
    def most_ways(self) -> int:
        return most_ways(len(self.models))

    @property
    def case(self) -> MatrixBlock:
        """The workload of the case."""
        return next((b for b in self.matrix if any(row.headline for row in b.rows)), self.matrix[0])

    @property
    def all_deaths(self) -> tuple[FingerprintRow, ...]:
        """The fingerprints, with the numbers of the replica as it is started where these are known."""
        return self.started_deaths or self.fingerprints

    @property
    def deaths(self) -> tuple[FingerprintRow, ...]:
        """The commonest failures, in the order in which a deployment meets them."""
        by_label = {row.label: row for row in self.all_deaths}
        return tuple(by_label[label] for label in COMMON_DEATHS if label in by_label)

    @property
    def risks(self) -> tuple[Text, ...]:
        """Risks of the answers: hardly more served than asked, no spare machine, machines that are hard to find."""
        fit = [c for c in self.cards if c.fits]
        lines: list[Text] = []
        if spare := [words("{} serves {}", c.model, c.spare) for c in fit if c.spare]:
            lines.append(words("Hardly any room: {}.", joined(", ", spare)))
        machines = [words("{} {}", c.model, c.survivor) for c in self.cards if c.survivor]
        if 0 < len(machines) <= MOST_SPARES:
            failed = "No spare machine if one fails; surviving that, a month: {}."
            lines.append(words(failed, joined(", ", machines)))
        if unmeasured := dict.fromkeys(c.unmeasured for c in fit if c.unmeasured):
            lines.append(f"GPU memory not measured: {', '.join(unmeasured)}.")
        if reserved := [c.model for c in fit if c.reserved]:
            lines.append(f"Reserve capacity first: {', '.join(reserved)}.")
        return (*lines, f"On offer: {self.price_banner}.")

    @property
    def headline_requests(self) -> Text:
        """The requests at once of the case; "" where it is none of the loads."""
        return next((row.tier for block in self.matrix for row in block.rows if row.headline), "")


def _amount(text: Text) -> float:
    is_number = isinstance(text, Cell) and isinstance(text.value, int | float)
    return float(text.value) if is_number else 0.0  # type: ignore[union-attr]


def table(title: str, heads: Iterable[str | Column], rows: Iterable[Iterable[Text]], level: int = 2) -> Table:
    """Heads of numbers are Columns; a plain one is of words."""
    columns = tuple(head if isinstance(head, Column) else Column(head) for head in heads)
    return Table(title, columns, tuple(map(tuple, rows)), level)

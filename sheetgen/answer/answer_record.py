"""The record: an answer as data. Its JSON is what is printed of it; all that a reader sees is drawn from it and the
question.

Fields stand in the order of the JSON's keys. What pages need beyond these is UNPRINTED. A part that is `flat` has its
keys among those of the whole: all of them None where there is no such part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple

SCHEMA_VERSION = 1
# Kinds whose amount says how far it is, the nearest first.
DOUBTED = "doubted"  # its price is implausible
SERVES = ("near_tie", "as_dear", "dearer")  # the load within its targets, for the amount
NEAR = (DOUBTED, *SERVES, "late", "slow", "short")

Json = dict[str, Any]
UNPRINTED = {"printed": False}


@dataclass(frozen=True)
class CandidateRecord:
    """An instance that took part, at its price less the discount. `sold_as`: every class in which it is sold at a known
    price."""

    instance: str
    provider: str
    gpu: str
    gpu_count: int
    purchase: str
    sold_as: tuple[str, ...]
    hourly_usd: float
    price_as_of: str | None
    region: str
    assumed_shape: bool


@dataclass(frozen=True)
class PublishedRecord:
    """Machines rented for the weights as published, and $ a month; None where nothing serves them. is_held: True where
    some memory holds the load, so that only the targets are missed. chance: how sure the machines are to serve the
    load. served_at_target: as of the answer."""

    weight_dtype: str
    instance: str | None
    n_instances: int | None
    monthly_usd: float | None
    chance: float | None = field(default=None, metadata=UNPRINTED)
    is_held: bool = field(default=True, metadata=UNPRINTED)
    served_at_target: float | None = field(default=None, metadata=UNPRINTED)


@dataclass(frozen=True)
class OtherWeights:
    """Machines rented in the recommended precision of weights, where another precision was named and this one is
    cheaper, or surer: at the confidence asked for where the one named is only an even chance."""

    weight_dtype: str
    instance: str
    n_instances: int
    monthly_usd: float
    chance: float


@dataclass(frozen=True)
class StartupLog:
    """Figures that the engine prints about its pool when a replica starts, for requests of the longest length that it
    takes."""

    kv_pool_bytes_per_gpu: int
    kv_tokens: int
    max_concurrency: float


OF_SEARCH = 0.01  # step of a chance to which the level of a rate is searched
RATE = "rate"


def limit_of(chance_of: Mapping[str, float], chance: float) -> str:
    """The least certain part of an answer: memory or a time; or, where each of these alone is surer than the answer,
    the rate that replicas keep up with."""
    least = min(chance_of, key=lambda name: chance_of[name])
    return least if chance_of[least] <= chance + OF_SEARCH else RATE


@dataclass(frozen=True)
class RentalRecord:
    """Machines that are rented, and $ a month. chance: how sure they are to serve the load, where a way to pay less
    states it."""

    instance: str
    n_instances: int
    monthly_usd: float
    chance: float | None = field(default=None, compare=False, metadata=UNPRINTED)


@dataclass(frozen=True)
class AtConfidence:
    """The cheapest machines of any hardware that serve a load at a confidence; measured: as of the answer; chance: how
    sure they actually are; limit: the part that keeps them from being surer, from `limit_of`."""

    confidence: float
    instance: str
    n_instances: int
    monthly_usd: float
    measured: bool
    chance: float = field(metadata=UNPRINTED)
    limit: str = field(metadata=UNPRINTED)
    gpus_per_replica: int = field(metadata=UNPRINTED)


@dataclass(frozen=True)
class AllAtOnceRecord:
    """Machines rented if all people of a load wait for an answer at the same moment."""

    concurrent_requests: int
    instance: str
    n_instances: int
    monthly_usd: float


@dataclass(frozen=True)
class SameMoment:
    """All people of a load who ask at the same moment, on the answer's machines; turn_seconds: how long each keeps a
    place; last_ttft_seconds, last_answer_seconds: when the last of them has the first token and the whole answer, None
    where a place is free for each."""

    people: int
    turn_seconds: float
    last_ttft_seconds: float | None
    last_answer_seconds: float | None


@dataclass(frozen=True)
class WaitsRecord:
    """Predicted times on the answer's machines beside the usual ones: the first token of a request alone, first and
    further tokens with every place taken, the requests at once that have a place, and of people all at the same moment.
    Of a rate, at the answer's confidence: the mean wait of those that come when no place is free and their mean time to
    first token, the time to first token of 99 in 100, and the requests an hour that the other machines clear when one
    fails."""

    ttft_alone_seconds: float
    ttft_full_seconds: float
    tpot_full_seconds: float
    places: int
    mean_wait_seconds: float | None
    late_ttft_seconds: float | None
    p99_ttft_seconds: float | None
    cleared_per_hour_less_machine: float | None
    same_moment: SameMoment | None


@dataclass(frozen=True)
class AskingRecord:
    """Machines rented if each person asks so often a day."""

    requests_per_user_per_day: float
    instance: str
    n_instances: int
    monthly_usd: float


@dataclass(frozen=True)
class MorePeopleRecord:
    """The most people whom the answer's machines serve within the targets, and the machines rented for one person more;
    None where nothing serves these."""

    most_users: int
    instance: str | None
    n_instances: int | None
    monthly_usd: float | None


@dataclass(frozen=True)
class ReadAnewRecord:
    """Machines rented if each prompt is read in full, and what they serve."""

    instance: str
    n_instances: int
    monthly_usd: float
    chance: float
    ttft_seconds: float
    served_at_target: float  # requests a second


@dataclass(frozen=True)
class HistoryRecord:
    """How long GPU memory keeps a person's history, which is shorter than the time until that person asks again; and
    the answer where the history is read anew, None where nothing serves that."""

    kept_seconds: float
    asks_again_seconds: float
    read_anew: ReadAnewRecord | None


@dataclass(frozen=True)
class MemoryRecord:
    """Bytes on all GPUs at work: what lies beside weights and KV cache, the cache on every rank that keeps it, and what
    the engine may use."""

    overhead_bytes: float
    kv_bytes: float
    limit_bytes: float


@dataclass(frozen=True)
class SureAt:
    """The load of a replica that a chance is of: the requests at once of the fullest one, of a rate all places that it
    needs where the load is only just served; and its predicted times."""

    requests: int
    ttft_seconds: float
    tpot_seconds: float


@dataclass(frozen=True, kw_only=True)
class ChosenRecord:
    """The recommendation of a cell and what users get from it, with 80 % bands."""

    instance: str
    region: str
    price_as_of: str | None
    gpu: str
    purchase: str
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    spans_machines: bool
    measured: bool
    sequences_per_replica: int
    n_replicas: int
    n_gpus: int
    n_instances: int
    hourly_usd: float
    monthly_usd: float
    chance: float
    chance_of: Mapping[str, float]
    sure_at: SureAt
    served_at_target: float
    memory_holds: int
    headroom_fraction: float
    sized_by: str
    bound_by: str
    requests_per_replica: int
    tpot_seconds: float
    tpot_seconds_low: float
    tpot_seconds_high: float
    ttft_seconds: float
    ttft_seconds_low: float
    ttft_seconds_high: float
    output_tokens_per_second: float
    output_tokens_per_second_low: float
    output_tokens_per_second_high: float
    replicas_held: int = field(metadata=UNPRINTED)  # how many fit on what is rented
    paced_requests: float = field(metadata=UNPRINTED)  # the most of a replica within the targets
    # For a rate, requests at once if every replica were as slow as a full one.
    offered_requests: float = field(metadata=UNPRINTED)
    memory: MemoryRecord = field(metadata=UNPRINTED)

    @property
    def gpus_per_replica(self) -> int:
        return self.tensor_parallel_size * self.data_parallel_size * self.pipeline_parallel_size

    @property
    def sequences_of_rank(self) -> int:
        """The most requests of a data-parallel rank within the targets, with which a replica is started."""
        return int(self.paced_requests) // self.data_parallel_size

    @property
    def limit(self) -> str:
        """The part of the answer that keeps it from being surer."""
        return limit_of(self.chance_of, self.chance)


@dataclass(frozen=True)
class DeciderRecord:
    """The measurement on which the month depends: one replica of what would be rented if it proved as good as
    predicted, on so many machines for a day; and the month's cost if it does. limit: what has to be proved, memory or a
    time. measured: as of the answer."""

    instance: str
    n_instances: int
    usd: float
    purchase: str
    monthly_usd: float
    limit: str
    measured: bool


@dataclass(frozen=True)
class MeasureRecord:
    """Cost and worth of measuring the answer: the machines of one replica for a day, the commands, and the month's
    money that the measurement decides. The commands are filled in by launch, on request. decider: where the month
    depends on cheaper hardware, the measurement of that. purchase: the class of the day's price, on demand where there
    is one. is_worth_it: whether it comes before the machines: where a reason to measure first says so, or it decides
    more money of a month than it costs. passed_saves_usd, failed_costs_usd: what a month costs less than the answer if
    it passes, and what the answer at 0.9 costs more if it fails; of the second None where nothing is sure.
    """

    instance: str
    hours: float
    usd: float
    purchase: str
    serve: str | None
    bench: str | None
    decides_usd: float | None
    passed_saves_usd: float
    failed_costs_usd: float | None
    is_worth_it: bool
    n_instances: int
    decider: DeciderRecord | None

    @property
    def run(self) -> MeasureRecord | DeciderRecord:
        """The measurement to make: of the hardware on which the month depends."""
        return self.decider or self


@dataclass(frozen=True)
class NotAskedRecord:
    """Machines that were not requested and are clearly cheaper, or hold a load that nothing else does; kind: a vendor,
    a cloud that takes part by default, another provider or a GPU that was not requested; chance: how sure they are;
    gpu_name: in short; region: of GPUs that are priced one by one, whose machine is assumed, else ""."""

    instance: str
    vendor: str
    kind: str
    n_instances: int
    monthly_usd: float
    measured: bool
    chance: float = field(metadata=UNPRINTED)
    gpu_name: str = field(metadata=UNPRINTED)
    region: str = field(metadata=UNPRINTED)


@dataclass(frozen=True)
class HostedRecord:
    """One host of the model: its lowest price for the load, and what it charges a month, in US dollars.

    break_even: by purchase class that has an answer, its rent over what the host takes where the hardware is never
    idle, so the utilization above which renting is cheaper; above 1 the host is cheaper at any.
    """

    host: str
    model: str
    input_usd_per_million: float
    cached_usd_per_million: float | None
    output_usd_per_million: float
    precision: str | None
    source: str | None
    read_on: str
    deprecation_date: str | None
    monthly_usd: float
    cheaper_above: Mapping[str, float | None]
    break_even: Mapping[str, float] = field(metadata=UNPRINTED)


@dataclass(frozen=True)
class UnitCosts:
    """Cost of a year, three years, a user, a million tokens; NaN where not known."""

    annual_usd: float
    three_year_usd: float
    usd_per_user_per_month: float
    usd_per_million_input_tokens: float
    usd_per_million_output_tokens: float
    usd_per_million_tokens: float


@dataclass(frozen=True)
class ClassCost:
    """Cost of the recommended instances in one purchase class."""

    purchase: str
    hourly_usd: float
    monthly_usd: float
    annual_usd: float
    three_year_usd: float
    commitment_waste_usd: float
    region: str | None
    price_as_of: str | None
    terms: str | None
    source: str | None


@dataclass(frozen=True)
class SmallerModel:
    """The next smaller model of the same series and publisher in the catalog, and what it rents for the load, by the
    rule of the answer. Its quality is not compared."""

    model: str
    name: str
    instance: str
    n_instances: int
    monthly_usd: float
    chance: float


@dataclass(frozen=True)
class EuropeRecord:
    """The answer's machines at their cheapest price in Europe, in the same class; None where they are not sold there in
    it."""

    region: str | None = None
    price_as_of: str | None = None
    hourly_usd: float | None = None
    monthly_usd: float | None = None


@dataclass(frozen=True)
class ProviderCost:
    """The cheapest of one provider for a load; None where nothing of the provider holds the load."""

    provider: str
    instance: str | None = None
    gpu: str | None = None
    tensor_parallel_size: int | None = None
    n_instances: int | None = None
    hourly_usd: float = math.nan
    monthly_usd: float = math.nan


@dataclass(frozen=True)
class OwnedRecord:
    """The recommended GPUs owned instead, as many as are sold together: every figure at the low, base and high price
    of one."""

    gpu: str
    n_gpus: int
    capex_as_of: str | None
    capex_source: str | None
    kw_source: str | None
    confidence: str | None
    low: Mapping[str, float]
    base: Mapping[str, float]
    high: Mapping[str, float]


class Sum(NamedTuple):
    """An amount and the same with its contingency: both in dollars, and the total in the budget's currency."""

    usd: float
    contingency_usd: float
    total: float


@dataclass(frozen=True)
class Budget:
    """The sums of a month, a year and three years."""

    currency: str
    monthly: Sum
    annual: Sum
    three_year: Sum


@dataclass(frozen=True)
class RunnerUp:
    """The cheapest with another GPU or from another provider; measured: as of the answer."""

    instance: str
    provider: str
    gpu: str
    tensor_parallel_size: int
    data_parallel_size: int
    pipeline_parallel_size: int
    n_replicas: int
    n_gpus: int
    n_instances: int
    hourly_usd: float
    monthly_usd: float
    measured: bool


@dataclass(frozen=True)
class PassedOver:
    """An instance that costs no more than the answer and is not chosen: the first rule of near ties by which it loses,
    with its own figure and the answer's. lost_by: gpus, machines, precision, ranks, served, tp, dp, or the order of the
    list; has, answer_has: None where that is no number."""

    instance: str
    n_instances: int
    monthly_usd: float
    lost_by: str
    has: float | None = None
    answer_has: float | None = None


class Reason(NamedTuple):
    """The reason why an instance was not chosen. `amount` is $ a month for what is dearer, milliseconds for what is
    slow (of the first token, or of each), bytes of GPU memory for what is short of it. passed_over: for what costs no
    more, with words filled in by report."""

    kind: str  # of NEAR; "over" the model's limit, or what does "not_run"
    words: str
    amount: float = 0.0
    passed_over: PassedOver | None = None

    @property
    def distance(self) -> tuple[int, float]:
        """Sort key, nearest to the answer first: by price, else by the time it takes, or the memory it lacks."""
        return (NEAR.index(self.kind), self.amount) if self.kind in NEAR else (len(NEAR), 0.0)


@dataclass(frozen=True)
class NotChosen:
    """An instance that is not the answer, and the reason."""

    instance: str
    reason: str
    why: Reason = field(metadata=UNPRINTED)


@dataclass(frozen=True)
class LeverRecord:
    """A change that has a price: what is rented with it, what that saves a month, and what it costs besides money.

    saved_usd is None where nothing holds the load without the change, 0 where the months differ by the near tie alone.
    """

    lever: str
    words: str
    changed: str
    instance: str
    n_instances: int
    n_gpus: int
    monthly_usd: float
    saved_usd: float | None
    saved_fraction: float | None
    cost: str
    note: str
    further: bool
    family: str = field(metadata=UNPRINTED)
    is_near_tie: bool = field(metadata=UNPRINTED)
    is_even_chance: bool = field(metadata=UNPRINTED)
    chance: float | None = field(default=None, metadata=UNPRINTED)  # of a lower precision, or of more memory

    @property
    def now_fits(self) -> bool:
        """True where something holds the load only with the change."""
        return self.saved_usd is None


@dataclass(frozen=True)
class PayLess:
    """A way to pay less for the same load. what, gives_up: filled in by report, which has their words. chance: how sure
    what is rented is. detail: the checkpoint, class, GPUs, host or kind that words name. other: what nobody requested;
    further: what is cheaper still at a provider that takes no part by default."""

    kind: str
    monthly_usd: float
    instance: str | None = None
    n_instances: int | None = None
    commits_usd: float | None = None
    pays_after_months: float | None = None
    what: str = ""
    gives_up: str = ""
    chance: float | None = None
    detail: str = field(default="", metadata=UNPRINTED)
    other: NotAskedRecord | None = field(default=None, metadata=UNPRINTED)
    further: NotAskedRecord | None = field(default=None, metadata=UNPRINTED)


@dataclass(frozen=True)
class MoveRecord:
    """An input that moves the month's cost: two values of it, and the month at each; None where nothing holds the load
    then.

    input: requests_per_second, concurrent_requests, context_tokens, confidence, or price_factor of all list prices; of
    several together load_and_context, whose ends are factors of both, and everything.
    """

    input: str
    low: float
    high: float
    low_usd: float | None
    high_usd: float | None


@dataclass(frozen=True)
class LongerContext:
    """Cost of the load at a longer context where it is lower, because the targets in force there are looser."""

    context_tokens: int
    instance: str
    n_instances: int
    monthly_usd: float
    tpot_target_ms: float | None  # None where a target is off
    ttft_target_ms: float | None


@dataclass(frozen=True)
class SureRental:
    """Machines that are rented, $ a month, and how sure they are to serve the load; measured: as of the answer."""

    instance: str
    n_instances: int
    monthly_usd: float
    chance: float
    measured: bool


@dataclass(frozen=True)
class SurvivorRental(SureRental):
    """The same of machines of which one may fail: chance after that, chance_before while all of them run."""

    chance_before: float


@dataclass(frozen=True)
class LeftOut:
    """The number of instances that took no part, and the reason."""

    reason: str
    count: int


@dataclass(frozen=True, kw_only=True)
class CellRecord:
    """The answer for one load. `chosen` is None where nothing holds it, and `verdict` says why."""

    model: str
    workload: str
    tier: int | None
    context_tokens: int
    input_tokens: int
    output_tokens: int
    tpot_target_seconds: float | None  # None for a target that is off
    ttft_target_seconds: float | None
    # The load in all three words; NaN where a target is off, by which requests at once are put in people.
    users: float
    requests_per_second: float
    requests_per_hour: float
    concurrent_requests: float | None  # those that follow, of a rate
    n_places: int | None
    wait_fraction: float | None
    weight_dtype: str
    kv_cache_dtype: str
    weights_bytes: int
    kv_bytes: int
    checkpoint: str | None  # the Hugging Face id that a launch names
    kv_bytes_by_dtype: Mapping[str, int]
    as_published: PublishedRecord | None  # None where the published weights are in use
    as_recommended: OtherWeights | None
    log: StartupLog | None
    verdict: str
    chosen: ChosenRecord | None = field(metadata={"flat": ChosenRecord})
    by_confidence: tuple[AtConfidence | None, ...]
    measure_first: tuple[str, ...]  # why one should measure before renting
    by_purchase: Mapping[str, RentalRecord | None]
    declined: Mapping[str, Any] | None  # a class that was requested and saves nothing: see `DeclinedClass`
    cheapest: RentalRecord | None  # the very cheapest
    waits: WaitsRecord | None
    all_at_once: AllAtOnceRecord | None  # these three of people
    by_requests_per_day: tuple[AskingRecord, ...]
    more_people: MorePeopleRecord | None
    history: HistoryRecord | None  # of people whose history is lost before they ask again
    without_targets: RentalRecord | None  # these three where they are cheaper
    without_ttft: RentalRecord | None
    without_survival: RentalRecord | None
    survives_machine: SurvivorRental | None  # the cheapest that survives the loss of one, where no loss is survived yet
    needs_reservation: bool
    fewer_machines: RentalRecord | None  # of very many machines: the cheapest on far fewer
    not_asked: tuple[NotAskedRecord, ...]
    hosted: tuple[HostedRecord, ...]
    units: UnitCosts = field(metadata={"flat": UnitCosts})
    purchase_classes: tuple[ClassCost, ...]
    providers: tuple[ProviderCost, ...]
    in_europe: EuropeRecord | None  # of a sheet's headline whose prices are of no region that was asked for
    smaller_model: SmallerModel | None  # of the model to approve, where the sheet has none that costs less
    owned: OwnedRecord | None
    budget: Budget | None
    measure: MeasureRecord | None
    runner_up: RunnerUp | None
    passed_over: tuple[PassedOver, ...]  # what costs no more, the cheapest first
    why_not: tuple[NotChosen, ...]
    fp8: RentalRecord | None
    levers: tuple[LeverRecord, ...]
    measured_hardware: SureRental | None  # the cheapest with measured runs of its own, where the answer has none
    moves: tuple[MoveRecord, ...]  # these two of a headline
    cheaper_longer: LongerContext | None
    left_out: tuple[LeftOut, ...]
    pay_less: tuple[PayLess, ...]
    other_terms: tuple[PayLess, ...]  # commitments that save less than the best, which is in pay_less
    as_sure: tuple[PayLess, ...]  # as sure as the answer, where the way of the same kind in pay_less is less sure
    cheapest_same: PayLess | None  # the cheapest with the same answers, as sure, at all hours, of what was requested
    host_memory: Mapping[str, float | str] | None
    # Flags and stack, which `launch` fills in on request.
    launch: Mapping[str, Any] = field(default_factory=dict, metadata={"flat": dict})
    row: int = field(metadata=UNPRINTED)  # the load's position in the question
    # The class in use, and commitments.
    longest_context: int | None = field(default=None, metadata=UNPRINTED)  # of a headline, that its hardware holds

    @property
    def is_rate(self) -> bool:
        """True where the load was stated as people or a rate, from which the requests at once follow."""
        return self.tier is None

    @property
    def requests(self) -> int:
        """Whole requests at once; 0 for a rate that nothing serves."""
        return math.ceil(self.concurrent_requests or 0)

    def at_level(self, confidence: float) -> AtConfidence | None:
        """The cheapest at one of the confidences in the record; None where nothing holds the load there."""
        return next((level for level in self.by_confidence if level and level.confidence == confidence), None)

    @property
    def answer(self) -> ChosenRecord:
        """The recommendation; only for a load that something holds."""
        assert self.chosen is not None, "nothing holds this load"
        return self.chosen


@dataclass(frozen=True)
class CheckpointRecord:
    """A known quantized checkpoint; kv_cache_dtype where its files state one, license where it is known."""

    hf_id: str | None
    weight_dtype: str
    kv_cache_dtype: str | None
    publisher: str | None
    license: str | None


@dataclass(frozen=True)
class ModelRecord:
    """A model, its sizes by precision, and its checkpoints. sized_as: for weights other than an entry's own, the entry
    whose architecture they have.

    kept_bytes_per_token, state_bytes_per_sequence: what it keeps of each request in the precision in use, with a
    draft's share: bytes of a token, and of what does not grow.
    """

    id: str
    name: str
    sized_as: str | None
    n_params: int
    weights_bytes: Mapping[str, int]
    kv_bytes_per_token: Mapping[str, int]
    max_context_tokens: int | None
    checkpoints: tuple[CheckpointRecord, ...]
    kept_bytes_per_token: float = field(metadata=UNPRINTED)
    state_bytes_per_sequence: float = field(metadata=UNPRINTED)


@dataclass(frozen=True)
class SourceRecord:
    """The source of a figure."""

    kind: str
    id: str
    source: str
    date: str | None


def not_in_price(survive: float) -> tuple[str, ...]:
    """Costs beside the rent; a spare machine is one where no loss is survived."""
    return ("tax", "storage", "network", "staff", *(() if survive else ("a spare machine",)))


@dataclass(frozen=True)
class Record:
    """The whole answer. `fingerprints` are filled in by report, which has their words.

    oldest_price_as_of: the oldest date of the prices in the answers; None where none has a date. not_in_price: costs
    beside the rent.
    """

    schema_version: int
    as_of: str
    oldest_price_as_of: str | None
    not_in_price: tuple[str, ...]
    inputs: Mapping[str, Any]
    candidates: tuple[CandidateRecord, ...]
    cells: tuple[CellRecord, ...]
    fingerprints: tuple[Mapping[str, Any], ...]
    sources: tuple[SourceRecord, ...]
    headline: tuple[int, ...] = field(metadata=UNPRINTED)  # rows of its cells, one for each model
    models: tuple[ModelRecord, ...]
    # The bills of one GPU: see `replica_bills.subject`.
    of_replica: Mapping[str, float | int | str] = field(metadata=UNPRINTED)

    @property
    def headline_cells(self) -> tuple[CellRecord, ...]:
        return tuple(self.cells[row] for row in self.headline)


@cache
def printed(part: type) -> tuple[tuple[str, type | None], ...]:
    """The names under which a part of the record is printed, each with the part whose keys replace it."""
    return tuple((key.name, key.metadata.get("flat")) for key in fields(part) if key.metadata.get("printed", True))


@cache
def keys_of(part: type) -> tuple[str, ...]:
    """The printed keys of a part of the record that has no flat part."""
    return tuple(name for name, _ in printed(part))


def as_json(value: object) -> Any:
    """A part of the record as plain values: lists for tuples, None for NaN."""
    if is_dataclass(value) and not isinstance(value, type):
        keys: Json = {}
        for name, flat in printed(type(value)):
            part = getattr(value, name)
            if flat is None:
                keys[name] = as_json(part)
            else:
                keys |= dict.fromkeys(keys_of(flat)) if part is None else as_json(part)
        return keys
    if isinstance(value, Sum):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: as_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(as_json, value))
    return None if isinstance(value, float) and value != value else value

"""The schema of plan.yaml: services, supply, prices, budget and policy. What a key means stands in templates/plan.yaml.

A band is {p10, p50, p90}, or one number, which has no band.
"""

from __future__ import annotations

import math
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AliasChoices, BeforeValidator, Field, PlainValidator, model_validator

from sheetgen.catalog.base import Entry, Id, Many, Problem, Some
from sheetgen.catalog.hardware import PurchaseId
from sheetgen.errors import ScenarioError, did_you_mean
from sheetgen.formula import is_number
from sheetgen.plan.profile import HOURS_OF_DAY, SHARES
from sheetgen.plan.quarters import Quarter
from sheetgen.question.inputs import CONFIDENCE
from sheetgen.question.parse import SHARE, day, tokens
from sheetgen.units import DEFAULT_WEIGHTS, ON_DEMAND, PURCHASES, SPOT

if TYPE_CHECKING:
    LeadOf = str
    BuyOf = str
else:
    LeadOf = Literal[(*PURCHASES, "owned")]  # of what there is a lead time
    BuyOf = Literal[(*PURCHASES, "mix")]

QUANTILES = ("p10", "p50", "p90")
OWNED, COMMITTED = "owned", "committed"  # classes of what is paid anyway
OF_BAND = "must be a number, or a band such as {p10: 80, p50: 100, p90: 130}"
OF_TOKENS = "must say which tokens are counted: {peak_per_second: 900, of: output}, or of: input, or of: all"
DOLLARS = "USD"
MIX = "mix"  # of a base with a term, and what is above it on demand
REGIONS = {"EUR": "eu", "GBP": "uk"}  # whose prices a plan in that currency has, where it names no region
MAX_QUARTERS, MAX_SERVICES = 24, 500


def _shorthand(instead: Callable[[Any], Any], or_else: str) -> BeforeValidator:
    """Takes a shorter way to write a mapping; all that is neither is refused with `or_else`."""

    def read(value: Any) -> Any:
        mapping = instead(value)
        if mapping is None and not isinstance(value, (dict, Entry)):
            raise ValueError(or_else)
        return value if mapping is None else mapping

    return BeforeValidator(read)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and bool(is_number(value))


def _share(value: Any) -> Any:
    """A share as options take it: 20% is 0.2."""
    number = SHARE.number(value) if isinstance(value, str) else math.nan
    return value if math.isnan(number) else number


def _tokens(value: Any) -> Any:
    """Tokens as options take them: 16k is 16384. Raises ValueError."""
    if _is_number(value) and value == 0:
        raise ValueError("must be at least 1. Of a model that writes nothing, as for embeddings, write 1")
    try:
        return tokens(value) if isinstance(value, str) or _is_number(value) else value
    except ScenarioError:
        raise ValueError("is no number of tokens. Write one such as 16k (16,384) or 20000") from None


def _day(value: Any) -> Any:
    """Raises ValueError for what is no day."""
    try:
        return day(value, "")
    except ScenarioError:
        raise ValueError("is no day of a plan. Write one such as 2027-01-31") from None


def _milliseconds(value: Any) -> Any:
    """Raises ValueError for what is no time of a target; false is the off of a program that writes YAML."""
    if value is False:
        return "off"
    if value == "off" or (_is_number(value) and LEAST_MS <= value <= MOST_MS):
        return value
    raise ValueError(f"must be a number of milliseconds, from {LEAST_MS:g} to {MOST_MS:,}, or off")


LEAST_MS, MOST_MS = 0.01, 3_600_000
MAX_LINE = 200  # characters
MAX_POINT = 1000  # of a measured point, written out


def one_line(value: Any, most: int = MAX_LINE) -> str:
    """A text of one line. It may look like a spreadsheet's formula: it is only ever written as text."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.isprintable() or not text.strip() or len(text) > most:
        raise ValueError(f"must be text of one line, of at most {most:,} characters")
    return text


Line = Annotated[str, PlainValidator(one_line)]
StatedPoint = Annotated[str, PlainValidator(lambda value: one_line(value, MAX_POINT))]
Day = Annotated[Any, PlainValidator(_day)]
InQuarter = Annotated[Quarter, PlainValidator(Quarter.parse)]
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
_AS_OPTION = BeforeValidator(_share)
Share = Annotated[float, _AS_OPTION, Field(ge=0, le=1, allow_inf_nan=False)]
ShareAbove0 = Annotated[float, _AS_OPTION, Field(gt=0, le=1, allow_inf_nan=False)]
Change = Annotated[float, Field(gt=-1, le=100, allow_inf_nan=False)]
LeadDays = Annotated[float, Field(ge=0, le=3650, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0, le=10**9)]
AboveZero = Annotated[int, Field(ge=1, le=10**9)]
Tokens = Annotated[int, BeforeValidator(_tokens)]
Confidence = Annotated[  # 90, too, is 0.9
    float,
    BeforeValidator(lambda value: CONFIDENCE.number(value) if isinstance(value, str) or _is_number(value) else value),
    Field(ge=CONFIDENCE.low, le=CONFIDENCE.high),
]
Milliseconds = Annotated[float | Literal["off"], PlainValidator(_milliseconds)]


class Band(Entry):
    """An expected amount: in one of ten cases at most p10, in nine of ten at most p90."""

    p10: float
    p50: float
    p90: float

    @model_validator(mode="after")
    def in_order(self) -> Self:
        if not self.p10 <= self.p50 <= self.p90:
            raise ValueError("is out of order: p10 may not be above p50, nor p50 above p90")
        return self


class Amounts(Band):
    p10: Positive
    p50: Positive
    p90: Positive


class Changes(Band):
    p10: Change
    p50: Change
    p90: Change


class Days(Band):
    p10: LeadDays = 0
    p50: LeadDays
    p90: LeadDays


_Band = _shorthand(lambda value: dict.fromkeys(QUANTILES, value) if _is_number(value) else None, OF_BAND)
AmountBand = Annotated[Amounts, _Band]
ChangeBand = Annotated[Changes, _Band]
DayBand = Annotated[Days, _Band]


class _OneOf(Entry):
    """A mapping that has exactly one of some keys."""

    one_of: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def exactly_one(self) -> Self:
        given = [name for name in self.one_of if getattr(self, name) is not None]
        if len(given) != 1:
            those = " and ".join(given) if given else "none"
            raise ValueError(f"must have exactly one of {', '.join(self.one_of)}, and has {those}")
        return self


class Head(Entry):
    name: Line = "Serving capacity plan"
    start: InQuarter
    quarters: Annotated[int, Field(ge=1, le=MAX_QUARTERS)]
    as_of: Day | None = None
    fiscal_year_starts: Annotated[int, Field(ge=1, le=12)] = 1
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = DOLLARS
    fx_rate: Annotated[float, Field(ge=1e-9, le=1e9)] = 1  # units of the currency for a dollar
    since: Line | None = None
    owner: Line = ""
    approver: Line = ""

    @property
    def every_quarter(self) -> tuple[Quarter, ...]:
        return tuple(self.start.after(i) for i in range(self.quarters))


class Redundancy(Entry):
    replicas: Whole = 0
    zones: Annotated[int, Field(ge=2, le=20)] = 3
    survive: Literal["none", "replica", "machine", "zone"] = "none"
    hot_share: Share = 0  # of the replicas that a load needs: those that are up after a loss without a restart


class Policy(Entry):
    plan_at: Literal["p10", "p50", "p90"] = "p90"
    headroom_fraction: Share = 0
    redundancy: Redundancy = Redundancy()
    release_after_quarters: Annotated[int, Field(ge=0, le=8)] = 0
    approval_days: Annotated[int, Field(ge=0, le=730)] = 0
    correlation: Share = 0.5
    moving_cost_usd: Amount | None = None  # else that of the replicas, which run twice for move_days
    move_days: LeadDays = 30
    near_tie_fraction: Share = 0.05
    buy: BuyOf = ON_DEMAND
    start_minutes: Annotated[float, Field(ge=0, le=1440)] | None = None  # of a machine of the hour, before it is needed
    measured: Many[StatedPoint] = ()  # results of benchmarks, as --measured has them, for every service

    @property
    def purchase(self) -> str:
        """The class of what is bought, of a mix of that above its base."""
        return ON_DEMAND if self.buy == MIX else self.buy


OF_DAY = ("peak_hour_share", "burst_factor")


class _OfADay(_OneOf):
    """An amount, in one of several forms, and how the requests of a day fall upon its busiest minutes."""

    # By the key that makes a form, the keys that are read beside it; the first of several that are given.
    forms: ClassVar[Mapping[str, tuple[str, ...]]]

    peak_hour_share: ShareAbove0 = 0.12
    burst_factor: Annotated[float, Field(ge=1, le=100)] = 1.3

    @classmethod
    def form_of(cls, given: Mapping[str, Any]) -> tuple[str, ...]:
        """The keys of the form that is given; none where none is."""
        return next(((key, *beside) for key, beside in cls.forms.items() if given.get(key) is not None), ())

    @property
    def read(self) -> dict[str, Any]:
        """The amounts that the demand follows from, by key."""
        return {name: getattr(self, name) for name in self.form_of(dict(self))}

    def problems(self) -> Iterator[Problem]:
        """Keys that the form which is given does not read, so that none is ignored."""
        form = self.form_of(dict(self))
        for key in type(self).model_fields:
            if key in self.model_fields_set and key not in (*form, *self.forms):
                yield (key,), f"{key} is not read beside {form[0]}. Its keys are {', '.join(form)}"


class Users(_OfADay):
    one_of = ("people", "dau")
    forms: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "active_fraction": ("people",),
        "people": (*OF_DAY, "requests_per_user_per_day"),
        "dau": ("sessions_per_user_day", "requests_per_session", *OF_DAY),
    }

    people: AmountBand | None = None
    active_fraction: ShareAbove0 | None = None
    requests_per_user_per_day: Annotated[float, Field(gt=0, le=100_000)] = 20
    dau: AmountBand | None = None
    sessions_per_user_day: AmountBand = Amounts(p10=1, p50=1, p90=1)
    requests_per_session: AmountBand = Amounts(p10=1, p50=1, p90=1)

    @model_validator(mode="after")
    def of_people(self) -> Self:
        if self.active_fraction is not None and self.people is None:
            raise ValueError("active_fraction is of people, who are not given")
        return self


class Requests(_OfADay):
    one_of = ("peak_per_second", "per_day", "per_month")
    forms: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "peak_per_second": (),
        "per_day": OF_DAY,
        "per_month": (*OF_DAY, "days_per_month"),
    }

    days_per_month: Annotated[float, Field(ge=1, le=31)] = 30.4
    peak_per_second: AmountBand | None = None
    per_day: AmountBand | None = None
    per_month: AmountBand | None = None


class TokenRate(Requests):
    forms: ClassVar[Mapping[str, tuple[str, ...]]] = {key: (*beside, "of") for key, beside in Requests.forms.items()}

    of: Literal["output", "input", "all"]


def _or_band(name: str, example: str) -> BeforeValidator:
    """A number or a band stands for the field `name` of a mapping."""

    def mapping(value: Any) -> dict[str, Any] | None:
        is_band = _is_number(value) or (isinstance(value, dict) and {*value} & {*QUANTILES})
        return {name: value} if is_band else None

    return _shorthand(mapping, f"{OF_BAND}, or a mapping such as {example}")


class Demand(_OneOf):
    one_of = ("users", "requests", "tokens", "at_once")

    users: Annotated[Users, _or_band("people", "{dau: 100000}")] | None = None
    requests: Annotated[Requests, _or_band("peak_per_second", "{per_day: 200000}")] | None = None
    tokens: Annotated[TokenRate, _shorthand(lambda _: None, OF_TOKENS)] | None = None
    at_once: AmountBand | None = Field(
        default=None,
        validation_alias=AliasChoices("at_once", "in_flight"),  # its old name
    )

    @property
    def is_at_once(self) -> bool:
        """True where requests at once were stated, not a rate from which they follow."""
        return self.at_once is not None or (self.users is not None and self.users.active_fraction is not None)


class Growth(_OneOf):
    one_of = ("per_quarter", "steps", "series")

    per_quarter: ChangeBand | None = None
    bands: Literal["renew", "persist"] = "renew"  # of per_quarter: each quarter anew, or one for all quarters
    steps: dict[InQuarter, AmountBand] | None = None
    series: Some[AmountBand] | None = None

    @model_validator(mode="after")
    def of_per_quarter(self) -> Self:
        if "bands" in self.model_fields_set and self.per_quarter is None:
            raise ValueError("bands is of per_quarter, which is not given")
        return self

    @property
    def is_band(self) -> bool:
        """True where the growth of a quarter is uncertain."""
        return self.per_quarter is not None and self.per_quarter.p10 < self.per_quarter.p90


class Length(Entry):
    mean: Tokens
    p95: Tokens

    @model_validator(mode="after")
    def in_order(self) -> Self:
        if self.mean > self.p95:
            raise ValueError("is out of order: the mean may not be above p95")
        return self


LengthOf = Annotated[
    Length,
    _shorthand(
        lambda value: {"mean": value, "p95": value} if isinstance(value, str) or _is_number(value) else None,
        "must be a number of tokens, or {mean: 1800, p95: 9000}",
    ),
]


class Request(Entry):
    context_tokens: Tokens | None = None
    input_tokens: LengthOf | None = None
    output_tokens: LengthOf | None = None
    prefix_hit_fraction: Share = 0
    history_hit_fraction: Share = 0


class Served(Entry):
    """A model at its precisions, from a quarter on."""

    starts: InQuarter | None = Field(default=None, alias="from")
    id: Line
    weight_dtype: Line = DEFAULT_WEIGHTS
    kv_cache_dtype: Line = "auto"


class Targets(Entry):
    tpot_ms: Milliseconds | None = None
    ttft_ms: Milliseconds | None = None
    max_wait_probability: Annotated[float, _AS_OPTION, Field(ge=0.0001, le=1)] | None = None
    confidence: Confidence | None = None


class EngineOf(Entry):
    """The engine, and what is set or was measured of it; nothing said, as `recommend` has it."""

    name: Line = "vllm"
    version: Line | None = None
    gpu_memory_utilization: ShareAbove0 | None = None
    block_size: AboveZero | None = None
    speed_factor: Annotated[float, Field(ge=0.01, le=100)] | None = None
    ttft_factor: Annotated[float, Field(ge=0.01, le=100)] | None = None
    measured: Many[StatedPoint] = ()  # results of benchmarks, as --measured has them


OF_ENGINE = ("gpu_memory_utilization", "block_size", "speed_factor", "ttft_factor")  # its numbers


class Places(Entry):
    """The machines that a service may be on: nothing named, as `recommend` has it."""

    providers: Many[Line] = ()
    vendors: Many[Line] = ()
    gpus: Many[Line] = ()
    instances: Many[Line] = ()
    region: Line | None = None


class Allowed(Places):
    """Machines that may be rented, and the classes."""

    purchase: Many[PurchaseId] = ()
    exclude: Many[PurchaseId] = ()

    def may_buy(self, purchase: str) -> bool:
        """True for a class that may be used: those listed, or all but spot, which may be taken away."""
        listed = purchase in self.purchase if self.purchase else purchase != SPOT
        return listed and purchase not in self.exclude


def _models(value: Any) -> Any:
    if isinstance(value, str):
        return [{"id": value}]
    return [value] if isinstance(value, dict) else value


def _zone(value: Any) -> str:
    """Raises ValueError for what is no time zone."""
    try:
        return zoneinfo.ZoneInfo(value).key
    except (ValueError, TypeError, OSError, zoneinfo.ZoneInfoNotFoundError):
        near = did_you_mean(str(value), zoneinfo.available_timezones())
        raise ValueError(f"is no time zone. Write one such as Europe/Berlin or UTC.{near}") from None


OF_PROFILE = f"must be one of {', '.join(SHARES)}, or {HOURS_OF_DAY} shares of the day, by the hour from midnight"


def _profile(value: Any) -> Any:
    """Raises ValueError for what is no profile."""
    numbers = isinstance(value, (list, tuple)) and len(value) == HOURS_OF_DAY and all(map(_is_number, value))
    if not numbers and not (isinstance(value, str) and value in SHARES):
        raise ValueError(f"{OF_PROFILE}.{did_you_mean(str(value), SHARES)}")
    if numbers and (min(value) < 0 or not max(value) > 0):
        raise ValueError("has shares below 0, or none above it")
    return tuple(map(float, value)) if numbers else value


class Service(Entry):
    id: Id
    priority: Annotated[int, Field(ge=1, le=10**9)] | None = Field(
        default=None,
        validation_alias=AliasChoices("priority", "tier"),  # its old name
    )  # the lowest number is served first; of none last
    owner: Line = ""
    like: Id | None = None
    demand: Demand
    # By the hour: else its peak is held all month.
    profile: Annotated[str | tuple[float, ...] | None, BeforeValidator(_profile)] = None
    working_days: Many[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = ()
    time_zone: Annotated[str, PlainValidator(_zone)] = "UTC"
    stated_for: InQuarter | None = None
    growth: (
        Annotated[
            Growth,
            _shorthand(
                lambda value: {"per_quarter": value} if _is_number(value) else None,
                "must be a number a quarter, such as 0.12, or one of {per_quarter: 0.12}, {steps: {2027-Q3: 1.5}}, "
                "{series: [1, 1.2]}",
            ),
        ]
        | None
    ) = None
    launch: InQuarter | None = None
    ramp: Many[ShareAbove0] = ()
    retire: InQuarter | None = None
    request: Request | None = None
    model: Annotated[Some[Served], BeforeValidator(_models)] | None = None
    targets: Targets | None = None
    engine: EngineOf | None = None
    floor_replicas: AboveZero | None = None
    redundancy: Redundancy | None = None  # in place of the policy's
    buy: PurchaseId | None = None  # the same
    allowed: Places | None = None


# What `like` takes from another service.
OF_LIKE = ("request", "model", "targets", "engine", "floor_replicas", "redundancy", "allowed")


class Owned(Entry):
    """GPUs of one's own, in whole machines; paid whatever they do."""

    id: Line
    gpu: Line
    count: AboveZero
    gpus_per_machine: AboveZero | None = None  # else as many as its boards have, or those of the type that it serves as
    starts: Day | None = Field(default=None, alias="from")
    until: Day | None = None
    cost_per_quarter: Amount = 0  # in the plan's currency

    @model_validator(mode="after")
    def whole_machines(self) -> Self:
        if self.gpus_per_machine and self.count % self.gpus_per_machine:
            raise ValueError(f"has {self.count} GPUs, which are no whole machines of {self.gpus_per_machine}")
        return self


class Committed(Entry):
    """Instances that are paid until the end of their term, used or not."""

    id: Line
    type: Line
    count: AboveZero
    purchase: PurchaseId = ON_DEMAND
    starts: Day | None = Field(default=None, alias="from")
    until: Day | None = None
    days: Annotated[int, Field(ge=1, le=3650)] | None = None
    services: Many[Line] = ()  # that run on them, and stay unless the plan saves more than their move costs
    usd_per_hour: Positive | None = None

    def problems(self) -> Iterator[Problem]:
        if self.until is not None and self.days is not None:
            yield ("days",), "until and days are both given. Keep one"
        elif self.until is None and self.days is None:
            yield (), f"{self.id} has no end. Give until, or from and days"
        if self.days is not None and self.starts is None:
            yield ("days",), "days count from a first day, which is missing. Give from"
        if self.until is not None and self.starts is not None and self.until < self.starts:
            yield ("until",), f"until {self.until} is before from {self.starts}"


class Ordered(Entry):
    """Instances of a class without a term that were ordered by an earlier plan: they need no approval any more, and can
    be given back."""

    type: Line
    count: AboveZero
    services: Many[Line] = ()  # that stay on them unless the plan saves more than their move costs
    purchase: PurchaseId | None = None  # else the plan's class
    starts: Day | None = Field(default=None, alias="from")  # the day on which they are there


class Quota(Entry):
    provider: Line | None = None
    type: Line
    limit: Whole
    request_lead_days: Annotated[int, Field(ge=0, le=730)] = 0


class Supply(Entry):
    owned: Many[Owned] = ()
    committed: Many[Committed] = ()
    ordered: Many[Ordered] = ()
    allowed: Allowed = Allowed()
    quota: Many[Quota] = ()
    lead_time_days: dict[LeadOf, DayBand] = Field(default_factory=dict)

    def problems(self) -> Iterator[Problem]:
        yield from (*self.twice("owned", "id"), *self.twice("committed", "id"))


class Prices(Entry):
    discount_fraction: Annotated[float, _AS_OPTION, Field(ge=0, le=0.99)] = 0
    expected_change_per_year: ChangeBand = Changes(p10=0, p50=0, p90=0)
    contingency_fraction: Share = 0
    hours_per_month: Annotated[float, Field(ge=1, le=744)] = 730
    usd_per_hour: dict[Line, Positive] = Field(default_factory=dict)  # by machine, in the class that is bought


class Budget(Entry):
    """By quarter, in the plan's currency."""

    quarters: dict[InQuarter, Amount] = Field(default_factory=dict)

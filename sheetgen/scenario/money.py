"""The money of a sheet: how busy the hardware is, the contingency, the currency, and the terms of owning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.owning import TERMS, Term, owning
from sheetgen.catalog.owning import OwnedGpu as KnownGpu
from sheetgen.errors import ScenarioError, SheetgenError, shown
from sheetgen.scenario import parse

MONEY_OPTIONS = (
    "utilization", "contingency_fraction", "currency", "fx_rate", "fx_date",
    *TERMS, "capex_usd_per_gpu", "kw_per_gpu",
)  # fmt: skip
MOST_CAPEX_USD, MOST_KW, MOST_FX_RATE = 10_000_000, 100, 10_000_000
YOUR_QUOTE = "your quote"


LEAST_UTILIZATION = 0.01  # below it a price of a token says nothing


def _utilization(value: Any, name: str) -> float:
    share = parse.fraction(value, name)
    if share < LEAST_UTILIZATION:
        raise ScenarioError(f"{name} is {shown(value)!r}. It must be a number from {LEAST_UTILIZATION} to 1.")
    return share


@dataclass(frozen=True)
class Money:
    """The inputs about money that hold for the whole sheet. `fx_date` None: the sheet's own date."""

    utilization: float = 0.7
    contingency_fraction: float = 0.0
    currency: str = "USD"
    fx_rate: float = 1.0
    fx_date: str | None = None


@dataclass(frozen=True)
class OwnedGpu:
    """One GPU as it would be owned, as far as the figures are known."""

    capex_usd: tuple[float, float, float] | None = None  # low, base, high
    capex_as_of: str | None = None
    capex_source: str = ""
    is_module_price: int = 0
    stated_kw_per_gpu: float | None = None
    is_it_power: int = 1
    rated_watts: float | None = None
    kw_source: str = "rated power of the GPU"
    confidence: str = ""


@dataclass(frozen=True)
class Owning:
    """The terms of owning by their names, as given or from the catalog, and the GPUs of the sheet.

    What the user gave of GPUs stands by their id, or by "all".
    """

    values: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, Term] = field(default_factory=dict)
    gpus: Mapping[str, OwnedGpu] = field(default_factory=dict)
    capex_usd_per_gpu: Mapping[str, float] = field(default_factory=dict)
    kw_per_gpu: Mapping[str, float] = field(default_factory=dict)


def money_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of Money behind the options; all problems at once.

    Raises ScenarioError for a currency other than US dollars without its rate, and for a rate without a currency.
    """
    default = Money()
    problems: list[str] = []

    def read(name: str, parser: Any, *arguments: Any) -> Any:
        value = options.get(name)
        if value is None:
            return getattr(default, name)
        try:
            return parser(value, name, *arguments)
        except SheetgenError as error:
            problems.extend(error.problems)
            return getattr(default, name)

    found = {
        "utilization": read("utilization", _utilization),
        "contingency_fraction": read("contingency_fraction", parse.fraction, False),
        "currency": read("currency", parse.currency),
        "fx_rate": read("fx_rate", parse.positive, MOST_FX_RATE),
        "fx_date": read("fx_date", lambda value, name: parse.day(value, name).isoformat()),
    }
    has_rate, foreign = options.get("fx_rate") is not None, found["currency"] != "USD"
    if foreign and not has_rate:
        problems.append(
            f"currency is {found['currency']!r}, but no fx_rate is given. "
            "Add --fx-rate, such as 0.92: how many of it one USD is."
        )
    elif has_rate and not foreign and found["fx_rate"] != 1:
        problems.append(f"fx_rate is {found['fx_rate']:g}, but currency is USD, whose rate is 1. Name the currency.")
    if problems:
        raise ScenarioError(*problems)
    return found


def owning_of(catalog: Catalog, options: Mapping[str, Any], gpus: tuple[Gpu, ...]) -> Owning:
    """The terms of owning: the catalog's, with what the user gives instead. A quote is of a GPU as installed."""
    file = owning(catalog)
    terms = {term.id: term for term in file.terms}
    problems: list[str] = []

    def attempt(parser: Any, *arguments: Any) -> Any:
        try:
            return parser(*arguments)
        except SheetgenError as error:
            problems.extend(error.problems)
            return None

    values = {
        name: terms[name].value
        if options.get(name) is None
        else attempt(parse.number_between, options[name], name, low, high)
        for name, (low, high) in TERMS.items()
    }
    quotes = attempt(parse.per_gpu, options.get("capex_usd_per_gpu"), "capex_usd_per_gpu", catalog, MOST_CAPEX_USD)
    powers = attempt(parse.per_gpu, options.get("kw_per_gpu"), "kw_per_gpu", catalog, MOST_KW)
    if problems:
        raise ScenarioError(*problems)
    known = {one.gpu: one for one in file.gpus}
    owned = {
        gpu.id: _as_quoted(
            _owned(gpu, known.get(gpu.id)),
            quotes.get(gpu.id, quotes.get(parse.ALL_GPUS)),
            powers.get(gpu.id, powers.get(parse.ALL_GPUS)),
        )
        for gpu in gpus
    }
    return Owning(values, terms, owned, quotes, powers)


def _owned(gpu: Gpu, known: KnownGpu | None) -> OwnedGpu:
    """What the catalog says of one GPU; power that nobody stated will follow from the GPU's rated power."""
    capex, power = (known.capex_usd, known.power) if known else (None, None)
    owned = OwnedGpu(rated_watts=gpu.tdp_watts, confidence=known.confidence if known else "")
    if capex is not None:
        owned = replace(
            owned,
            capex_usd=(capex.low, capex.base, capex.high),
            capex_as_of=capex.as_of,
            capex_source=capex.source,
            is_module_price=int(capex.price_of == "module"),
        )
    if power is not None:
        is_it_power = int(power.kw_of == "it")
        owned = replace(owned, stated_kw_per_gpu=power.kw, is_it_power=is_it_power, kw_source=power.source)
    return owned


def _as_quoted(owned: OwnedGpu, capex_usd: float | None, kw: float | None) -> OwnedGpu:
    """`owned` with the user's own figures: of an installed GPU, and of its power with the cooling."""
    if capex_usd is not None:
        owned = replace(owned, capex_usd=(capex_usd,) * 3, capex_as_of=None, capex_source=YOUR_QUOTE, is_module_price=0)
    if kw is not None:
        owned = replace(owned, stated_kw_per_gpu=kw, is_it_power=0, kw_source=YOUR_QUOTE)
    return owned

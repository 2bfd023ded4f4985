"""The terms of owning, and what each GPU of a sheet costs to buy and to power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sheetgen.catalog.hardware import Gpu, Term
from sheetgen.catalog.hardware import OwnedGpu as KnownGpu
from sheetgen.catalog.load import Catalog
from sheetgen.errors import Problems, ScenarioError, shown
from sheetgen.scenario import parse
from sheetgen.scenario.inputs import BY_NAME, OF_TERMS, Input

ALL_GPUS = "all"
YOUR_QUOTE = "your quote"


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


def owning_of(catalog: Catalog, options: Mapping[str, Any], gpus: tuple[Gpu, ...]) -> Owning:
    """The terms of owning: the catalog's, with what the user gives instead. A quote is of a GPU as installed."""
    file = catalog.owning()
    terms = {term.id: term for term in file.terms}
    problems = Problems()
    attempt = problems.attempt
    values = {
        one.name: terms[one.name].value if options.get(one.name) is None else attempt(one.parse, options[one.name])
        for one in OF_TERMS
    }
    quotes, powers = (
        attempt(_per_gpu, BY_NAME[name], options.get(name), catalog) for name in ("capex_usd_per_gpu", "kw_per_gpu")
    )
    if problems:
        raise ScenarioError(*problems)
    known = {one.gpu: one for one in file.gpus}
    owned = {
        gpu.id: _as_quoted(
            _owned(gpu, known.get(gpu.id)), *(of.get(gpu.id, of.get(ALL_GPUS)) for of in (quotes, powers))
        )
        for gpu in gpus
    }
    return Owning(values, terms, owned, quotes, powers)


def _per_gpu(one: Input, value: Any, catalog: Catalog) -> dict[str, float]:
    """An amount for all GPUs, or for some of them by name, under their ids: `h100=39375,b200=55000`."""
    if value is None:
        return {}
    name, kind = one.name, one.kind
    if "=" not in str(value):
        return {ALL_GPUS: kind.parse(value, name)}
    found: dict[str, float] = {}
    for part in parse.words(str(value)):
        gpu, equals, figure = part.partition("=")
        if not equals:
            raise ScenarioError(f"{name} has {shown(part)!r}. Write a GPU and its amount, such as h100=39375.")
        key = catalog.gpu(gpu).id
        if key in found:
            raise ScenarioError(f"{name} names {key} twice. Keep one.")
        found[key] = kind.parse(figure.strip(), f"{name} of {shown(gpu.strip())}")
    return found


def _owned(gpu: Gpu, known: KnownGpu | None) -> OwnedGpu:
    """What the catalog says of one GPU; power that nobody stated will follow from the GPU's rated power."""
    capex, power = (known.capex_usd, known.power) if known else (None, None)
    owned = OwnedGpu(rated_watts=gpu.tdp_watts, confidence=known.confidence if known else "")
    if capex is not None:
        owned = replace(
            owned, capex_usd=(capex.low, capex.base, capex.high), capex_as_of=capex.as_of, capex_source=capex.source,
            is_module_price=int(capex.price_of == "module"),
        )  # fmt: skip
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

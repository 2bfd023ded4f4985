"""The schema of owning.yaml: what GPUs cost to buy, power and house, each figure with its source and its day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from sheetgen.catalog.base import Date, Entry, Id, Label, Many, Text, validate
from sheetgen.catalog.hardware import Confidence
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.reader import Document, Loc
from sheetgen.errors import CatalogError, did_you_mean
from sheetgen.units import OWNING_TERMS

OWNING = "owning.yaml"
Usd = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Kilowatt = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]


class Term(Entry):
    """One figure that holds for every GPU: its value, its unit, why, where it is from, and the day it is of."""

    id: Id
    value: Annotated[float, Field(allow_inf_nan=False)]
    unit: Label
    as_of: Date | None
    reason: Text
    source: Text
    confidence: Confidence


class Capex(Entry):
    """What one GPU sells for, in US dollars: a range, for no maker publishes a price."""

    low: Usd
    base: Usd
    high: Usd
    price_of: Literal["module", "installed"]
    as_of: Date
    source: Text

    def problems(self) -> Iterator[tuple[Loc, str]]:
        if not self.low <= self.base <= self.high:
            yield (), f"low {self.low:,.0f}, base {self.base:,.0f}, high {self.high:,.0f} are not in this order"


class Power(Entry):
    """kW of one GPU with its share of the server: what the machine draws, or all-in with the cooling."""

    kw: Kilowatt
    kw_of: Literal["it", "all-in"]
    as_of: Date
    source: Text


class OwnedGpu(Entry):
    """One kind of GPU, as far as anything is known of owning it."""

    gpu: Id
    capex_usd: Capex | None = None
    power: Power | None = None
    confidence: Confidence
    notes: Many[Text] = ()

    def problems(self) -> Iterator[tuple[Loc, str]]:
        if self.capex_usd is not None:
            for loc, what in self.capex_usd.problems():
                yield ("capex_usd", *loc), what


class OwningFile(Entry):
    checked_on: Date
    terms: Annotated[tuple[Term, ...], Field(strict=False, min_length=1)]
    gpus: Many[OwnedGpu]

    def problems(self) -> Iterator[tuple[Loc, str]]:
        seen: set[str] = set()
        for i, term in enumerate(self.terms):
            if term.id not in OWNING_TERMS:
                near = did_you_mean(term.id, OWNING_TERMS)
                yield ("terms", i, "id"), f"id {term.id} is no term of owning.{near}".rstrip(".")
            else:
                low, high = OWNING_TERMS[term.id]
                if not low <= term.value <= high:
                    yield ("terms", i, "value"), f"{term.id} is {term.value:g}, but must be from {low:,g} to {high:,g}"
            if term.id in seen:
                yield ("terms", i, "id"), f"id {term.id} is given twice. Keep one"
            seen.add(term.id)
        for name in OWNING_TERMS:
            if name not in seen:
                yield ("terms",), f"the term {name} is missing"
        owned: set[str] = set()
        for i, one in enumerate(self.gpus):
            if one.gpu in owned:
                yield ("gpus", i, "gpu"), f"gpu {one.gpu} is given twice. Keep one"
            owned.add(one.gpu)
            for loc, what in one.problems():
                yield ("gpus", i, *loc), what


def gpu_faults(catalog: Catalog, document: Document, file: OwningFile) -> Iterator[str]:
    """Entries whose GPU is in no catalog."""
    known = catalog.ids("gpus")
    for i, one in enumerate(file.gpus):
        if one.gpu not in known:
            near = did_you_mean(one.gpu, known)
            yield f"{document.at(('gpus', i, 'gpu'))}: gpu is {one.gpu!r}, which is not in catalogs/gpus.{near}"


def owning(catalog: Catalog) -> OwningFile:
    """What the catalogs say of owning; the last folder that has the file wins.

    Raises CatalogError with every problem of the file.
    """
    document = catalog.read_document(OWNING)
    file = validate(document, OwningFile)
    faults = list(gpu_faults(catalog, document, file))
    if faults:
        raise CatalogError(*faults)
    return file

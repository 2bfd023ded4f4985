"""Offers beside the catalog's rows: which row each one prices, by the words of a GPU's name, its memory and its form.

What is not certain is named, never guessed, and nothing goes by likeness.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sheetgen.catalog.hardware import Gpu, Instance
from sheetgen.catalog.prices.offers import Offer

# A list and a catalog count the memory of one GPU differently (what is sold, what is left: 192 and 180 for a
# B200); 40 and 48, or 80 and 94, are two GPUs.
MEMORY_TOLERANCE = 0.1

_MEMORY = re.compile(r"\b([0-9]{2,3}) ?gb?\b")
_SPARE = {"nvidia", "amd", "intel", "google", "aws", "hgx", "geforce", "tesla", "blackwell", "edition", "hbm3", "hbm3e"}
_FORMS = ({"sxm", "pcie", "nvl"}, {"server", "workstation"})  # of each, a GPU is one
_SAME = {"se": "server", "ws": "workstation", "we": "workstation"}


@dataclass(frozen=True)
class GpuWords:
    """A GPU's name taken apart: `NVIDIA A100 SXM4 80GB` is {a100}, {sxm}, 80."""

    core: frozenset[str]
    forms: frozenset[str]
    memory_gb: float | None


def words(name: str, interconnect: str = "", memory_gb: float | None = None) -> GpuWords:
    """The words of a name, with the form and the memory that other columns state."""
    low = re.sub(r"[-_]", " ", name.lower())
    stated = _MEMORY.search(low)
    parts = {_SAME.get(w, w) for w in re.findall(r"[a-z0-9.]+", _MEMORY.sub(" ", low))}
    parts = {"sxm" if re.fullmatch(r"sxm[0-9]?", w) else w for w in parts} - _SPARE
    forms = parts & set().union(*_FORMS)
    bus = interconnect.lower()
    return GpuWords(
        core=frozenset(parts - forms),
        forms=frozenset(forms | ({bus} & _FORMS[0] if not forms & _FORMS[0] else set())),
        memory_gb=float(stated[1]) if stated else memory_gb,
    )


def could_be(found: GpuWords, gpu: Gpu) -> bool:
    """Whether nothing that `found` states of form and memory speaks against `gpu`."""
    own = words(gpu.id).forms | words(gpu.form_factor).forms
    for group in _FORMS:
        stated, has = found.forms & group, own & group
        if stated and has and not stated & has:
            return False
    if not found.memory_gb:
        return True
    return abs(found.memory_gb / gpu.memory.marketed_gb - 1) <= MEMORY_TOLERANCE


def by_core(gpus: Iterable[Gpu]) -> dict[frozenset[str], list[Gpu]]:
    """The GPUs of the catalogs by the words that every one of their names leads to."""
    found: dict[frozenset[str], list[Gpu]] = {}
    for gpu in gpus:
        for core in {words(name).core for name in (gpu.id, gpu.name, gpu.short_name, *gpu.aliases)}:
            found.setdefault(core, []).append(gpu)
    return found


def gpus_named(found: GpuWords, known: dict[frozenset[str], list[Gpu]]) -> list[Gpu]:
    """All GPUs that these words may mean: one, where they are enough."""
    return [gpu for gpu in known.get(found.core, ()) if could_be(found, gpu)]


NO_ROW = "no row of the catalogs"


@dataclass(frozen=True)
class Reading:
    """One price of one catalog row, as a list has it."""

    row: Instance
    purchase: str
    usd_per_hour: float
    offer: Offer


@dataclass(frozen=True)
class Unmatched:
    """An offer that prices no row of the catalogs, and why; `gpu` where it is known."""

    offer: Offer
    why: str
    provider: str = ""  # as the catalogs spell it; empty where it is in none
    gpu: Gpu | None = None


@dataclass(frozen=True)
class Matches:
    readings: tuple[Reading, ...]
    unmatched: tuple[Unmatched, ...]
    n_other_regions: int


def match(offers: Iterable[Offer], rows: Sequence[Instance], gpus: Sequence[Gpu], region: str | None) -> Matches:
    """Every offer with its row: by type and region, or by provider and GPU where it has no type.

    A row is priced in its own region, or in `region` where one is given.
    """
    readings: list[Reading] = []
    unmatched: list[Unmatched] = []
    by_gpu: list[Offer] = []
    by_type = {(row.provider, row.type.lower()): row for row in rows}
    n_other_regions = 0
    for offer in offers:
        row = by_type.get((offer.provider, offer.name.lower()))
        if offer.per_gpu:
            by_gpu.append(offer)
        elif row is None:
            unmatched.append(Unmatched(offer, NO_ROW, offer.provider))
        elif (offer.region or "").lower() == (region or row.region).lower():
            readings += [Reading(row, purchase, usd, offer) for purchase, usd in offer.prices.items()]
        else:
            n_other_regions += 1
    found, left = _by_gpu(by_gpu, rows, gpus)
    return Matches((*readings, *found), (*unmatched, *left), n_other_regions)


def _by_gpu(
    offers: Iterable[Offer], rows: Sequence[Instance], gpus: Sequence[Gpu]
) -> tuple[list[Reading], list[Unmatched]]:
    sold: dict[str, list[Instance]] = defaultdict(list)
    for row in rows:
        sold[row.provider].append(row)
    claims: dict[tuple[str, str, str | None], list[tuple[bool, Reading]]] = defaultdict(list)
    unmatched: list[Unmatched] = []
    known, by_id = by_core(gpus), {gpu.id: gpu for gpu in gpus}
    spelt: dict[str, list[str]] = defaultdict(list)
    for provider in sold:
        spelt[_letters(provider)].append(provider)
    for offer in offers:
        named = next(filter(None, (spelt.get(_letters(n)) for n in (offer.provider, offer.provider + offer.tier))), [])
        if len(named) != 1:
            unmatched.append(Unmatched(offer, "of a provider that is in no catalog"))
            continue
        could = gpus_named(words(offer.name, offer.interconnect, offer.gpu_memory_gb), known)
        found, by_name, why = _row(offer, sold[named[0]], could, by_id)
        if found is None:
            unmatched.append(Unmatched(offer, why, named[0], could[0] if len(could) == 1 else None))
            continue
        for purchase, usd in offer.prices.items():
            claims[found.id, purchase, offer.as_of].append((by_name, Reading(found, purchase, usd, offer)))
    readings: list[Reading] = []
    for claim in claims.values():
        chosen, left = _one_price(claim)
        readings += chosen
        unmatched += left
    return readings, unmatched


def _letters(provider: str) -> str:
    """`vast-ai` is vast.ai; and `runpod` with the tier `secure` is runpod-secure."""
    return re.sub(r"[^a-z0-9]", "", provider.lower())


def _row(
    offer: Offer, rows: Sequence[Instance], could: Sequence[Gpu], gpus: dict[str, Gpu]
) -> tuple[Instance | None, bool, str]:
    """The provider's row of that GPU, whether by its name, and why there is none.

    Only rows that are priced by the GPU take a price by the GPU: a whole machine costs more than its parts.
    """
    stated = words(offer.name, offer.interconnect, offer.gpu_memory_gb)
    named = words(offer.name)
    single = [row for row in rows if row.unit == "per_gpu" and row.gpu_count == 1 and row.offer != "average"]
    fits = [row for row in single if _same_name(named, stated, words(row.type)) and could_be(stated, gpus[row.gpu])]
    by_name = bool(fits)
    if not fits:
        if not could:
            return None, False, "with a GPU that is in no catalog"
        if len(could) > 1:
            return None, False, f"could be {' or '.join(gpu.id for gpu in could)}"
        fits = [row for row in single if row.gpu == could[0].id]
    if len(fits) == 1:
        return fits[0], by_name, ""
    if fits:
        return None, False, f"could be {' or '.join(row.id for row in fits)}"
    if any(row.gpu == could[0].id and row.unit == "instance" for row in rows):
        return None, False, "priced by the GPU, where the catalogs have whole instances"
    return None, False, NO_ROW


def _same_name(named: GpuWords, stated: GpuWords, row: GpuWords) -> bool:
    """Whether a row is called what the offer is; a row that names no memory takes that of its GPU."""
    return (row.core, row.forms) == (named.core, named.forms) and row.memory_gb in (None, stated.memory_gb)


def _one_price(claim: list[tuple[bool, Reading]]) -> tuple[list[Reading], list[Unmatched]]:
    """The readings that price one row in one class on one day: all of one price, or those of its very machine."""
    best = [reading for by_name, reading in claim if by_name] or [reading for _, reading in claim]
    row = best[0].row
    if len({reading.usd_per_hour for reading in best}) > 1 and row.vcpu is not None:
        best = [r for r in best if (r.offer.vcpu, r.offer.ram_gib) == (row.vcpu, row.ram_gib)] or best
    prices = sorted({reading.usd_per_hour for reading in best})
    if len(prices) > 1:
        why = f"could be {row.id}, which has {len(prices)} prices here: {' and '.join(f'{p:g}' for p in prices)}"
        return [], [Unmatched(reading.offer, why, row.provider) for reading in best]
    return best, []

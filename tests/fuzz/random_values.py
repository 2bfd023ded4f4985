"""Random values for a yellow cell: near what stands there, far from it, and at the ends of what it may hold."""

from __future__ import annotations

import datetime
import math
import random

from workbook_cells import CellValue, number
from yellow_cells import Spot, Yellow

from sheetgen.question.inputs import ASKS, BY_NAME, HISTORY
from sheetgen.question.market import LEAST_LINK_BYTES_PER_SECOND
from sheetgen.question.overrides import TABLES, input_kind
from sheetgen.question.parse import MOST, Kind
from sheetgen.units import OWNING_TERMS as TERMS
from sheetgen.units import PURCHASES

MILD, BOLD, ABSURD = "mild", "bold", "absurd"

# What an option takes; what has none is in `typed_cells`.
_SHARE, _SHARE_ABOVE_0 = Kind(low=0, high=1), Kind(low=0.001, high=1)
_OPTIONS: dict[str, Kind] = {
    "gpu_memory_utilization": _SHARE_ABOVE_0,
    "hours_per_month": Kind(low=1, high=744),
    "peak_hour_share": _SHARE_ABOVE_0,
    "extra_headroom_fraction": _SHARE,
    "survive": Kind("whole", 0, 3),
    "zones": Kind("whole", 2, 20),
    "average_context_fraction": _SHARE_ABOVE_0,
    "prefix_cache_hit_fraction": _SHARE,
    "kv_reserved": Kind("whole", 0, 1),
    "kv_cache_memory_bytes": Kind("whole", 0, 1e13),
    "block_size": Kind("whole", 1, 10_000_000),
    "as_of": Kind("date"),
    "fx_date": Kind("date"),
    "speed_factor": Kind(low=0.01, high=100),
    "ttft_factor": Kind(low=0.01, high=100),
    "utilization": Kind(low=0.01, high=1),
    "discount_fraction": Kind(low=0, high=0.99),
    "contingency_fraction": _SHARE,
    "fx_rate": Kind(low=1e-6, high=10_000_000),
    **{name: Kind(low=low, high=high) for name, (low, high) in TERMS.items()},
}
_CONTEXT = Kind("whole", 1, 100_000_000)
_TARGET = Kind(low=0.01, high=3_600_000, blank=True)
_CONTEXTS = (1, 2, 100, 512, 1500, 4096, 4097, 8192, 33_000, 65_536, 131_072, 131_073, 500_000, 2_000_000, 100_000_000)
_TIERS = (1, 2, 5, 16, 65, 100, 256, 1000, 5000, 100_000, 1_000_000)
_TARGETS = (None, 0.01, 1, 5, 12.5, 20, 33.5, 50, 200, 5000, 3_600_000)
# Prices of one GPU of which counts make ties; the same of a whole instance.
UNITS = (0.1, 0.7, 1.0, 1 / 3, 2.5, 4.1)
_PRICES = (0.35, 1, 1, 2, 2, 2.1, 0.7, 4, 8, 55.04, 0, None)
DISCOUNTS = (0, 0.2, 0.35, 0.1, 1 / 3, 0.125, 0.01, 0.99)
_NAMES = ("aws", "gcp", "azure", "acme", "ACME", "Rück & Söhne <1>", "x" * 60)


def value_for(rng: random.Random, spot: Spot, yellow: Yellow, level: str) -> CellValue:
    """A value that the cell takes."""
    if spot.validation is not None and spot.validation.source is not None:
        return _of_list(rng, spot, yellow)
    name = spot.key[-1]
    if spot.key[0] == "inputs":
        return _input(rng, name, spot, yellow, level)
    if name == "gpu_count":
        high = spot.validation.kind.high if spot.validation is not None and spot.validation.kind else 8
        return rng.choice([n for n in (1, 2, 3, 4, 6, 7, 8, 16, 1024) if n <= high])
    if name == "provider":
        return rng.choice(_NAMES)
    if name == "type":
        return f"{spot.old or 'box'}.{rng.randint(1, 9)}{rng.choice(('', '', ' ß&<'))}"
    if name == "price_usd_per_hour" or name in {f"price_{p.replace('-', '_')}" for p in PURCHASES}:
        return rng.choice(_PRICES) if level != ABSURD else rng.choice((*_PRICES, 1e-6, 1e6))
    kind = TABLES[spot.key[0].removeprefix("own_")][name]
    value = number_for(rng, kind, spot.old, level)
    is_link = name == "interconnect_bytes_per_second" and value is not None
    if is_link and number(spot.old or 0) < LEAST_LINK_BYTES_PER_SECOND:
        # Links that become fast enough for ranks have no columns for them in a workbook built before (test_edits).
        value = min(number(value), LEAST_LINK_BYTES_PER_SECOND - 1)
    return round(value) if isinstance(value, float) and spot.key[0] == "models" else value  # of bytes and parameters


def _input(rng: random.Random, name: str, spot: Spot, yellow: Yellow, level: str) -> CellValue:
    if (name.startswith("context_") and name != "context_bytes") or name == "decision_context_tokens":
        return number_for(rng, _CONTEXT, spot.old, level) if rng.random() < 0.5 else rng.choice(_CONTEXTS)
    if name.startswith("tier_"):
        free = [n for n in _TIERS if n not in yellow.inputs.values()]
        return rng.choice(free)
    if name.startswith(("tpot_ms_", "ttft_ms_")) or name in ("decision_tpot_ms", "decision_ttft_ms"):
        return number_for(rng, _TARGET, spot.old, level) if rng.random() < 0.4 else rng.choice(_TARGETS)
    if (name.startswith("output_") and "_band_" not in name) or name == "decision_answer_tokens":
        return rng.choice((0, 1, 2, 500, 1024, 4096, 150_000, rng.randint(0, 10_000)))
    if name == "currency":
        return rng.choice(("EUR", "JPY", "CHF"))
    if name == "discount_fraction" and rng.random() < 0.7:
        return rng.choice(DISCOUNTS)
    if name.startswith("discount_of_"):
        return rng.choice((None, *DISCOUNTS))
    if name.startswith(f"{ASKS}_"):
        name = ASKS
    if name.startswith(f"{HISTORY}_"):
        name = HISTORY
    kind = _OPTIONS.get(name) or (BY_NAME[name].kind if name in BY_NAME else input_kind(name))
    assert kind is not None, f"in_{name}: nobody knows what it takes"
    if name == "decision_users":
        return rng.choice((1, 3, 32, 200, 5000, 1_000_000, number_for(rng, kind, spot.old, level)))
    return number_for(rng, kind, spot.old, level)


def _of_list(rng: random.Random, spot: Spot, yellow: Yellow) -> CellValue:
    """One of a dropdown's entries; a GPU may be typed that no list has."""
    assert spot.validation is not None and spot.validation.source is not None
    offered = [value for value in yellow.lists(spot.validation.source) if value not in (None, "")]
    if spot.key[-1] == "instance_gpu" and rng.random() < 0.15:
        return rng.choice(("h1000", None))
    value = rng.choice(offered)
    return value.upper() if isinstance(value, str) and rng.random() < 0.03 else value


def number_for(rng: random.Random, kind: Kind, old: CellValue, level: str) -> CellValue:
    """A number or a date of a kind."""
    if kind.blank and rng.random() < 0.15:
        return None
    if kind.what == "date":
        year = rng.choice((2024, 2025, 2026)) if level != ABSURD else rng.choice((2000, 2099))
        return datetime.date(year, rng.randint(1, 12), rng.randint(1, 28))
    if kind.what == "text":
        return f"text {rng.randint(1, 9)}"
    whole, (low, high) = kind.what == "whole", (kind.low, kind.high)
    if whole and high - low <= 8:
        return rng.randint(int(low), int(high))
    number = _number(rng, low, high, old if isinstance(old, (int, float)) else 0, level)
    number = min(max(number, low), high)
    if whole:
        return max(math.ceil(low), min(round(number), math.floor(high)))
    return float(f"{number:.12g}" if number < 1000 else round(number))


def _number(rng: random.Random, low: float, high: float, old: float, level: str) -> float:
    if level == ABSURD and rng.random() < 0.4:
        # Where anything goes, products of ends would be past what doubles hold, and no two programs agree.
        return rng.choice((low, high)) if high < MOST else low
    if rng.random() < 0.1:
        return max(low, 0)
    base = old or rng.choice((1, 2, 64, 4096, 1e9) if high > 1 else (0.1, 0.5, 0.9))
    if level == MILD:
        return base * rng.choice((0.5, 0.8, 0.9, 1.1, 1.25, 2, 3))
    wide = 2 if level == BOLD else 4
    return base * 10 ** rng.uniform(-wide, wide)

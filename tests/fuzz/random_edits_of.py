"""A trial: random edits of a workbook's cells, some one by one, some that belong together."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from random_values import ABSURD, BOLD, DISCOUNTS, MILD, UNITS, value_for
from workbook_cells import CellValue, number
from yellow_cells import MODEL_NAME, Key, Yellow

from sheetgen.catalog import Catalog
from sheetgen.units import DTYPES

Edits = dict[Key, CellValue]
LEVELS = (MILD, MILD, MILD, BOLD, BOLD, ABSURD)
Dealt = TypeVar("Dealt")
OWN = ("own_instances", "own_models")


class Dealer:
    """Deals kinds of cells, and groups, in a random order: every one once before any comes again."""

    def __init__(self, rng: random.Random, yellow: Yellow) -> None:
        self.rng = rng
        self.places: dict[Key, list[Key]] = {}
        for key, spot in yellow.spots.items():
            if key[0] not in OWN:
                self.places.setdefault(spot.kind, []).append(key)
        self.kinds: deque[Key] = deque()
        self.groups: deque[Group] = deque()

    def cell(self) -> Key:
        """One cell of the next kind."""
        return self.rng.choice(self.places[self._next(self.kinds, self.places)])

    def group(self) -> Group:
        """The next group."""
        return self._next(self.groups, GROUPS)

    def _next(self, left: deque[Dealt], every: Iterable[Dealt]) -> Dealt:
        if not left:
            shuffled = list(every)
            self.rng.shuffle(shuffled)
            left.extend(shuffled)
        return left.popleft()


def trial(rng: random.Random, yellow: Yellow, dealer: Dealer, catalog: Catalog) -> Edits:
    """From a few edits to some eighty: cells of any kind, and mostly a group of those that belong together."""
    level, edits = rng.choice(LEVELS), Edits()
    for _ in range(rng.choice((2, 8, 24, 48, 72))):
        key = dealer.cell()
        edits[key] = value_for(rng, yellow.spots[key], yellow, level)
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        edits |= dict(dealer.group()(rng, yellow, catalog))
    return consistent(edits, yellow)


def consistent(edits: Edits, yellow: Yellow) -> Edits:
    """The same without what Python refuses for two cells together: equal tiers, a rate of no currency, a headline
    that is no tier. And with one new provider at most: the Money sheet has one spare row for them."""
    providers = {c.provider for c in yellow.question.rows}
    new = [key for key, value in edits.items() if key[-1] == "provider" and str(value).lower() not in providers]
    for key in new[1:]:
        if str(edits[key]).lower() != str(edits[new[0]]).lower():
            edits[key] = edits[new[0]]
    names = [key for key in yellow.spots if key[0] == "inputs" and str(key[1]).startswith("tier_")]
    seen: set[float] = set()
    for key in names:
        value = number(edits.get(key, yellow.spots[key].old))
        while value in seen:
            value += 1
            edits[key] = value
        seen.add(value)
    for key in [key for key in yellow.spots if key[0] == "inputs"]:  # an answer is not longer than its context
        context = (
            "inputs",
            {"decision_answer_tokens": "decision_context_tokens"}.get(
                str(key[1]), str(key[1]).replace("output_", "context_", 1)
            ),
        )
        if context != key and context in yellow.spots:
            most = number(edits.get(context, yellow.spots[context].old))
            if number(edits.get(key, yellow.spots[key].old)) > most:
                edits[key] = most
    headline = ("inputs", "headline_tier")  # a dropdown does not follow its list
    if edits.get(headline, yellow.spots[headline].old) not in seen:
        edits[headline] = sorted(seen)[0]
    currency, rate = ("inputs", "currency"), ("inputs", "fx_rate")
    if rate in edits and edits.get(currency, "USD") == "USD":
        edits[currency] = "EUR"
    if edits.get(currency, "USD") != "USD":
        edits.setdefault(rate, 0.9)
    return edits


# Edits that belong together -----------------------------------------------------------------------------


def ties(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """Prices by the GPU: instances of many counts cost the same in the end."""
    units = rng.sample(UNITS, rng.choice((1, 1, 2)))
    share = rng.choice((0.5, 1.0))
    for row in yellow.rows("instances"):
        if rng.random() < share:
            count = number(yellow.spots["instances", row, "gpu_count"].old)
            yield ("instances", row, "price_usd_per_hour"), rng.choice(units) * count


def discounts(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """A contract's discount, mostly on prices that tie: what is cheapest must not move with how it is rounded."""
    yield ("inputs", "discount_fraction"), rng.choice(DISCOUNTS)
    for key in (spot for spot in yellow.spots if str(spot[1]).startswith("discount_of_")):
        if rng.random() < 0.2:
            yield key, rng.choice(DISCOUNTS)
    if rng.random() < 0.7:
        yield from ties(rng, yellow, catalog)


def blanked(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """Nearly all prices blank or 0."""
    rows = yellow.rows("instances")
    kept = rng.sample(rows, rng.choice((1, 2, 4)))
    for row in rows:
        if row not in kept:
            yield ("instances", row, "price_usd_per_hour"), rng.choice((None, 0))


def own_instances(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """Spare rows of Instances, filled whole or in part."""
    for i in yellow.rows("own_instances")[: rng.choice((1, 2, 3))]:
        row = {"provider": rng.choice(("acme", "aws", "ACME")), "type": f"box.{i}"}
        part = {
            column: value_for(rng, yellow.spots[key], yellow, MILD)
            for key in yellow.spots
            if key[:2] == ("own_instances", i) and (column := key[2]) not in row
        }
        part["price_usd_per_hour"] = rng.choice((0.5, 1.0, 2.0, 10.0))
        lacks = rng.sample(sorted(part), rng.choice((0, 0, 1, 4)))
        for column, value in {**row, **part}.items():
            if column not in lacks:
                yield ("own_instances", i, column), value


def own_models(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """Spare rows of Models: a catalog's model under another name, whole or in part; Decision points at one."""
    served = [m for m in catalog.models() if m.kind != "draft"]
    for i in yellow.rows("own_models")[: rng.choice((1, 1, 1, 2))]:
        model = rng.choice(served)
        facts: dict[str, CellValue] = {
            MODEL_NAME: f"Our own {i}",
            **model.shape(),
            "own_weight_dtype": rng.choice((*DTYPES, "fp8_e4m3")),
            "own_kv_dtype": rng.choice(("bf16", "fp8", "fp8_e4m3")),
            **{f"checkpoint_{d}": model.checkpoint_bytes(d) or None for d in DTYPES},
        }
        lacks = rng.sample(sorted(facts), rng.choice((0, 0, 2, 10)))
        for column, value in facts.items():
            if ("own_models", i, column) in yellow.spots and (column == MODEL_NAME or column not in lacks):
                yield ("own_models", i, column), value
        yield ("inputs", "decision_model"), facts[MODEL_NAME]


def nothing_fits(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """Memory so small, or loads so large, that little or nothing holds them."""
    choice = rng.choice(("memory", "context", "load", "weights"))
    if choice == "memory":
        for row in yellow.rows("gpus"):
            yield ("gpus", row, "gpu_memory_bytes"), rng.choice((1, 1e9, 8e9, 2e10))
    elif choice == "weights":
        for row in yellow.rows("models"):
            yield ("models", row, "n_params"), rng.choice((1e12, 1e13, 1e15))
    names = {"context": ("context_", (400_000, 5_000_000)), "load": ("tier_", (40_000, 999_999))}
    for key in yellow.spots if choice in names else ():
        if key[0] == "inputs" and str(key[1]).startswith(names[choice][0]):
            yield key, rng.choice(names[choice][1])
    if choice == "context":
        for row in yellow.rows("models"):
            yield ("models", row, "max_context_tokens"), rng.choice((10_000_000, 400_000))


def over_limit(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """Models that accept less than is asked of them."""
    for row in yellow.rows("models"):
        yield ("models", row, "max_context_tokens"), rng.choice((1, 4095, 4096, 8192, 131_071))


def targets(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """Targets tight, blank, or off."""
    for key in yellow.spots:
        if key[0] == "inputs" and str(key[1]).startswith(("tpot_ms_", "ttft_ms_")):
            yield key, rng.choice((None, 0.01, 4, 15, 30, 300, 2000))
    if rng.random() < 0.3:
        yield ("inputs", "speed_targets"), 0


def picks(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """All choices of Decision."""
    for key, spot in yellow.spots.items():
        name = str(key[1])
        if key[0] == "inputs" and name.startswith("decision_"):
            yield key, value_for(rng, spot, yellow, BOLD)
        if key[0] == "inputs" and name.startswith("case_") and rng.random() < 0.3:
            yield key, rng.choice((0.001, 0.1, 0.5, 1, 1.5, 3, 1000))


def precisions(rng: random.Random, yellow: Yellow, catalog: Catalog) -> Iterator[tuple[Key, CellValue]]:
    """Precisions, another name of one among them."""
    for name in ("kv_cache_dtype", "weight_dtype"):
        yield ("inputs", name), rng.choice(("auto", *DTYPES, "fp8_e4m3", "FP8"))


Group = Callable[[random.Random, Yellow, Catalog], Iterator[tuple[Key, CellValue]]]
GROUPS: tuple[Group, ...] = (
    ties,
    discounts,
    blanked,
    own_instances,
    own_models,
    nothing_fits,
    over_limit,
    targets,
    picks,
    precisions,
)

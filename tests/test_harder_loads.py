"""A harder question never has a cheaper very cheapest answer: more of the load, tighter targets, more confidence, a
longer context under stated targets; and a commitment is never dearer than on demand (INTERFACE, targets and purchase).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from amounts import amount

from sheetgen.answer.confidences import is_fallback
from sheetgen.answer.solve import solve
from sheetgen.api import question_of, recommended
from sheetgen.catalog import Catalog

CATALOG = Catalog()
N_LOADS = amount(6, 3000)
LONGEST = 2**16 + 5000
MODELS = [m.id for m in CATALOG.models() if m.kind == "model" and (m.max_context_tokens or 0) >= LONGEST]
CLASSES = ("reserved-1yr", "reserved-3yr", "spot", "capacity-block")
ALMOST = 1 - 1e-9

Load = dict[str, Any]


def drawn_load(pick: random.Random) -> Load:
    """A model, lengths, targets as they are or stated, and people, a rate or requests at once."""
    context = int(2 ** pick.uniform(11, 16))
    load: Load = {
        "model": pick.choice(MODELS),
        "context_tokens": str(context),
        "output_tokens": str(pick.choice((1, 128, 512, 1024))),
        "confidence": pick.choice((0.5, 0.7, 0.7, 0.7, 0.9)),
        "weight_dtype": pick.choice(("recommended", "recommended", "published")),
    }
    if pick.random() < 0.5:
        load |= {"tpot_ms": str(pick.randint(20, 120)), "ttft_ms": str(pick.randint(500, 60_000))}
    kind = pick.choice(("users", "requests_per_second", "concurrent_requests"))
    size = 10 ** pick.uniform(0, 3.5)
    return load | {kind: round(size / 30, 3) if kind == "requests_per_second" else round(size)}


def more_load(load: Load, pick: random.Random) -> Load:
    kind = next(name for name in ("users", "requests_per_second", "concurrent_requests") if name in load)
    return {
        kind: load[kind] + 1 if kind != "requests_per_second" and pick.random() < 0.3 else int(load[kind] * 1.3) + 1
    }


def targets_of(load: Load) -> dict[str, float]:
    """Milliseconds of both targets, stated or not; none of one that is off."""
    workload = question_of(load, CATALOG).workloads[0]
    targets = {"tpot_ms": workload.tpot_target_ms, "ttft_ms": workload.ttft_target_ms}
    return {name: ms for name, ms in targets.items() if ms}


def tighter_targets(load: Load, pick: random.Random) -> Load:
    return {name: str(ms * pick.uniform(0.6, 1)) for name, ms in targets_of(load).items()}


def more_confidence(load: Load, pick: random.Random) -> Load:
    return {"confidence": min(0.95, load["confidence"] + pick.uniform(0.01, 0.2))}


def longer_context(load: Load, pick: random.Random) -> Load:
    """A longer prompt for the same answer, under the targets that hold at the shorter context."""
    longer = int(load["context_tokens"]) + pick.choice((1, 512, 5000))
    targets = {name: str(ms) for name, ms in targets_of(load).items()}
    return targets | {"context_tokens": str(longer)}


HARDER: tuple[Callable[[Load, random.Random], Load], ...] = (
    more_load,
    tighter_targets,
    more_confidence,
    longer_context,
)


def lowest(load: Load) -> tuple[float, bool]:
    """$ a month of the very cheapest, without end where there is none; and whether it is an even chance's."""
    solved = solve(question_of(load, CATALOG))
    choice = solved.choices[0]
    return (choice.cheapest.usd if choice.cheapest else float("inf")), is_fallback(solved, 0)


@pytest.mark.parametrize("block", range(N_LOADS // 12))
def test_a_harder_question_never_has_a_cheaper_answer(block: int) -> None:
    n_dearer = 0
    for draw in range(12):
        pick = random.Random(f"harder {block} {draw}")
        load = drawn_load(pick)
        usd, fell_back = lowest(load)
        for harden in HARDER:
            harder = load | harden(load, pick)
            harder_usd, harder_fell_back = lowest(harder)
            if fell_back or harder_fell_back:  # answers at an even chance are apart
                continue
            assert harder_usd >= usd * ALMOST, (harden.__name__, load, harder, usd, harder_usd)
            n_dearer += harder_usd > usd / ALMOST
    assert n_dearer, "nothing was harder"


@pytest.mark.parametrize("block", range(N_LOADS // 12))
def test_a_commitment_never_costs_more_than_on_demand(block: int) -> None:
    for draw in range(4):
        pick = random.Random(f"commitment {block} {draw}")
        load = drawn_load(pick)
        on_demand = solve(question_of(load, CATALOG)).choices[0]
        committed = recommended(load | {"purchase": pick.choice(CLASSES)}, CATALOG).choices[0]
        if on_demand.offer is not None and committed.offer is not None:
            assert committed.monthly_usd <= on_demand.monthly_usd / ALMOST, load

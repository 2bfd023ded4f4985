"""A 70B at FP8 with 64 in flight at 3,000, 6,000 and 12,000 tokens: KV halves and doubles, the GPUs move."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from decimal import Decimal
from typing import Any

import pytest
from brute_force import Plan, plans, read
from walk import CONTEXTS, DOCS, Step, files, steps

from sheetgen.catalog import Catalog

KV_BYTES_PER_TOKEN = 2 * 80 * 8 * 128 * 1
USERS = 64


@pytest.fixture(scope="module")
def walk() -> list[Step]:
    return steps(Catalog())


def test_the_kv_cache_halves_and_doubles(walk: list[Step]) -> None:
    less, base, more = (step.kv_bytes for step in walk)
    assert base == USERS * 6_000 * KV_BYTES_PER_TOKEN  # 375 whole blocks of 16 tokens
    assert more == 2 * base
    assert less == USERS * 3_008 * KV_BYTES_PER_TOKEN  # 3,000 tokens take 188 blocks
    assert less == pytest.approx(base / 2, rel=0.003)
    assert len({step.weights_bytes for step in walk}) == 1


def test_the_recommended_gpus_move(walk: list[Step]) -> None:
    money = [step.monthly_usd for step in walk]
    assert money[0] < money[1] < money[2]
    assert len({step.fit.candidate.instance for step in walk}) == 3
    gpus = [step.fit.gpus_used for step in walk]
    assert gpus[0] <= gpus[1] < gpus[2]


def chosen(plans: list[Plan]) -> Plan:
    """The choice in plain words: near the cheapest and with no more GPUs the fewest machines, then FP8 at full rate,
    then the most requests held, then the price, then the smaller TP, then the list."""
    inside = [one for one in plans if one.pp == 1]
    least = min(inside, key=lambda one: (one.monthly, one.instances * one.offer.count))
    n_gpus, most = least.instances * least.offer.count, least.monthly * Decimal("1.05")
    near = [one for one in inside if one.monthly <= most and one.instances * one.offer.count <= n_gpus]

    def rank(one: Plan) -> tuple[Any, ...]:
        native = read(f"gpus/{one.offer.gpu}.yaml")["weights_run"]["fp8"] == "native"
        held = one.instances * (one.offer.count // one.tp) * one.sequences
        return one.instances, not native, -held, one.monthly, one.tp, one.order

    return min(near, key=rank)


@pytest.mark.parametrize("position", range(3))
def test_each_step_equals_the_brute_force(walk: list[Step], position: int) -> None:
    found, _ = plans("llama-3.1-70b", CONTEXTS[position], USERS, "fp8", "fp8", targets=False)
    best, step = chosen(found), walk[position]
    assert (best.offer.instance, best.tp, best.replicas, best.instances) == (
        step.fit.candidate.instance,
        step.fit.layout.n_gpus,
        step.fit.choice.n_replicas,
        step.fit.choice.n_instances,
    )
    asked = step.fit.solved.question.workloads[0]
    assert step.fit.choice.sized_by == "memory" and asked.tpot_target_ms is asked.ttft_target_ms is None


def test_the_docs_are_fresh() -> None:
    for name, text in files(Catalog()).items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name} is old: python tests/walk.py"
    ElementTree.fromstring((DOCS / "walk.svg").read_text(encoding="utf-8"))

"""A 70B at FP8 with 64 at once at 3,000, 6,000 and 12,000 tokens: KV halves and doubles, the GPUs move."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest
from brute_force import Load, answer
from walk import CONTEXTS, DOCS, Step, files, steps

from sheetgen.catalog import Catalog

KV_BYTES_PER_TOKEN = 2 * 80 * 8 * 128 * 1
USERS = 80


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


@pytest.mark.parametrize("position", range(3))
def test_each_step_equals_the_brute_force(walk: list[Step], position: int) -> None:
    load = Load("llama-3.1-70b", CONTEXTS[position], USERS, "fp8", "fp8", True, math.inf, math.inf)
    cells = answer(load)
    assert not isinstance(cells, str)
    best, step = cells.best, walk[position]
    assert (best.offer.instance, best.replica.tp, best.replicas, best.instances) == (
        step.fit.candidate.instance,
        step.fit.layout.tensor_parallel_size,
        step.fit.choice.n_replicas,
        step.fit.choice.n_instances,
    )
    assert step.fit.choice.sized_by == "memory" and step.fit.solved.question.workloads[0].tpot_target_ms is None


def test_the_docs_are_fresh() -> None:
    for name, text in files(Catalog()).items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name} is old: python tests/walk.py"
    ElementTree.fromstring((DOCS / "walk.svg").read_text(encoding="utf-8"))

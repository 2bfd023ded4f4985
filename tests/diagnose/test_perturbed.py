"""The label stays when everything else of a log changes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from amounts import amount
from corpus import Labelled, corpus, more, verdict_on
from perturb import PERTURBATIONS

from sheetgen.diagnose.cause import UNDETERMINED

# Told by figures that other numbers do not keep: two that agree, and how small the contexts of its own ranks are
# (1.62 GiB: twice as much is no context).
BY_FIGURES = ("m426.log", "m060.log")


def every() -> tuple[Labelled, ...]:
    return tuple(log for log in corpus() + more() if log.file not in BY_FIGURES)


def logs() -> tuple[Labelled, ...]:
    """In the gate every second."""
    return every()[:: amount(2, 1)]


@pytest.fixture(scope="module")
def labels() -> dict[str, str]:
    return {log.file: verdict_on(log.path).cause.label for log in logs()}


@pytest.mark.long  # in the gate all of them at once
@pytest.mark.parametrize("name", PERTURBATIONS)
def test_the_label_stays(name: str, labels: dict[str, str], tmp_path: Path) -> None:
    dice = random.Random(name)
    path, changed, moved = tmp_path / "perturbed.log", 0, []
    for log in logs():
        before = log.path.read_text(encoding="utf-8").splitlines()
        after = PERTURBATIONS[name](before, dice)
        changed += after != before
        path.write_text("\n".join(after) + "\n", encoding="utf-8")
        label = verdict_on(path).cause.label
        if label != labels[log.file]:
            moved.append((log.file, labels[log.file], label))
    print(f"\n{name}: {changed} logs changed, {len(moved)} labels")
    assert not moved
    assert changed >= (3 if name in ("ranks", "models") else 10)


def test_all_at_once(labels: dict[str, str], tmp_path: Path) -> None:
    """Two may lose their claim (a rank's line came first of all, a message of two lines), none may get another."""
    dice = random.Random(7)
    path, lost = tmp_path / "perturbed.log", []
    for log in logs():
        lines = log.path.read_text(encoding="utf-8").splitlines()
        for name in ("numbers", "times", "paths", "models", "ranks", "unrelated", "colours", "docker"):
            lines = PERTURBATIONS[name](lines, dice)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        label = verdict_on(path).cause.label
        assert label in (labels[log.file], UNDETERMINED), log.file
        if label != labels[log.file]:
            lost.append(log.file)
    assert len(lost) <= 2, lost


def test_the_wrong_words_change_the_label(tmp_path: Path) -> None:
    """That the test above can fail: without its message a log is no longer what it was."""
    path = tmp_path / "x.log"
    path.write_text("INFO llm_engine.py:70] ValueError: something else went wrong\n", encoding="utf-8")
    assert verdict_on(path).cause.label not in ("startup_kv_pool_too_small", "healthy")

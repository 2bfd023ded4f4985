"""Random edits of a workbook's yellow cells: Python and the workbook agree in every formula cell.

A trial types some edits into a copy of a workbook, lets a spreadsheet calculate it, and holds every formula against
the book that Python makes of the same inputs, and that book against `solve`. SHEETGEN_FUZZ_EDITS says how many edits
at least (1,000 where CI is set, else 100), a tenth of them in LibreOffice too; SHEETGEN_FUZZ_SEED repeats a run. What
fails is shrunk to the fewest edits.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import books
import pytest
from agreement import Compared
from random_edits_of import Dealer, Edits
from recalculation import convert_all, needs_libreoffice, tamper
from workbook_trials import After, Refused, Workbook, n_edits, reached, shrunk

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")
IN_FULL = IN_CI or "SHEETGEN_FUZZ_EDITS" in os.environ
N_EDITS = int(os.environ.get("SHEETGEN_FUZZ_EDITS") or (1000 if IN_CI else 100))
BASE_SEED = 20_261_120
SEED = int(os.environ.get("SHEETGEN_FUZZ_SEED") or time.time_ns() % 1_000_000)  # another one each time
TINY = {**books.SMALL, "models": "8b,gemma-3-27b,gpt-oss-20b", "tiers": "1,64", "headline": "chat:64"}
DEFAULT = {"models": books.DEFAULT, "as_of": books.AS_OF}
FILES_A_START = 6  # of LibreOffice
SHARES = {"fixed": 0.6, "rotating": 0.38, "default": 0.02}  # of the edits
REFUSED_AT_MOST = 0.2


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Workbook:
    return Workbook(TINY, tmp_path_factory.mktemp("tiny"))


def trials(workbook: Workbook, seed: int, n: int) -> Iterator[tuple[Edits, After]]:
    """Trials until `n` edits were made that Python sizes."""
    tried = sized = done = 0
    for edits in workbook.trials(seed):
        tried += 1
        try:
            after = workbook.after(edits)
        except Refused:
            continue
        except Exception:
            pytest.fail(f"seed {seed}: {workbook.told(edits)}")
        sized += 1
        yield edits, after
        done += n_edits(edits)
        if done >= n:
            break
    assert tried - sized <= max(2, REFUSED_AT_MOST * tried), f"Python refuses {tried - sized} of {tried} trials"


class Tally:
    """What was tried: edits, trials, formula cells, and what the trials reached."""

    def __init__(self) -> None:
        self.n_trials = self.n_edits = self.n_formulas = self.n_respelled = 0
        self.reached: Counter[str] = Counter()
        self.began = time.process_time()

    def add(self, edits: Edits, after: After, result: Compared) -> None:
        self.n_trials += 1
        self.n_edits += n_edits(edits)
        self.n_formulas += result.n_formulas
        self.n_respelled += result.n_respelled
        self.reached.update(set(reached(after.solved)))

    def __str__(self) -> str:
        seen = ", ".join(f"{word} {n}" for word, n in sorted(self.reached.items()))
        return (
            f"{self.n_edits:,} random edits in {self.n_trials} workbooks ({seen}): 0 mismatches in "
            f"{self.n_formulas:,} formula cells, {self.n_respelled} of them spelled otherwise; "
            f"{time.process_time() - self.began:.0f} s"
        )


def test_every_yellow_cell_is_dealt(tiny: Workbook) -> None:
    """A new input of the workbook must be one that the trials edit."""
    yellow = tiny.yellow
    assert not list(yellow.unnamed())
    dealer = Dealer(random.Random(BASE_SEED), yellow)
    kinds = {spot.kind for key, spot in yellow.spots.items() if not key[0].startswith("own_")}
    assert {yellow.spots[dealer.cell()].kind for _ in kinds} == kinds
    assert len(kinds) > 240


@pytest.mark.parametrize("which", list(SHARES))
def test_python_and_workbook_agree_in_every_formula_cell(
    which: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    workbook = Workbook(DEFAULT if which == "default" else TINY, tmp_path)
    seed, tally = BASE_SEED if which == "fixed" else SEED, Tally()
    for edits, after in trials(workbook, seed, math.ceil(SHARES[which] * N_EDITS)):
        result = workbook.compared(after, workbook.recalculated(edits))
        if result.wrong or after.against_solve:
            pytest.fail(f"SHEETGEN_FUZZ_SEED={seed}: {workbook.told(edits)}")
        tally.add(edits, after, result)
    record_property("counted", f"fuzz, {which} (seed {seed}), formualizer: {tally}")
    if which == "fixed" and IN_FULL:
        assert tally.reached.keys() >= {"fits", "tight", "none fits", "over limit", "ties"}


@needs_libreoffice
@pytest.mark.skipif(not IN_FULL, reason="LibreOffice takes its share in CI, or with SHEETGEN_FUZZ_EDITS")
def test_libreoffice_agrees_too(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    workbook, tally = Workbook(TINY, tmp_path), Tally()
    batches = iter(lambda: list(itertools.islice(tried, FILES_A_START)), [])
    tried = trials(workbook, SEED + 1, -(-N_EDITS // 10))
    for batch in batches:
        files = [workbook.edited(edits, f"trial-{i}") for i, (edits, _) in enumerate(batch)]
        for (edits, after), file in zip(batch, convert_all(files, tmp_path), strict=True):
            result = workbook.compared(after, file)
            if result.wrong:
                told = workbook.told(edits, lambda some: convert_all([workbook.edited(some)], tmp_path)[0])
                pytest.fail(f"SHEETGEN_FUZZ_SEED={SEED}: {told}")
            tally.add(edits, after, result)
    record_property("counted", f"fuzz (seed {SEED + 1}), LibreOffice: {tally} of Python")


def test_a_wrong_formula_is_found(tiny: Workbook, tmp_path: Path) -> None:
    """The proof can fail: one slip in one formula, and the same comparison tells its place."""
    slipped = tmp_path / "slipped.xlsx"
    sheet, cell, _, _ = tamper(tiny.path, slipped)
    edits: Edits = {("inputs", "context_chat"): 8192}
    result = tiny.compared(tiny.after(edits), tiny.recalculated(edits, of=slipped))
    assert (sheet, cell) in {one.place for one in result.wrong}


def test_failing_edits_are_shrunk_to_the_fewest() -> None:
    edits: Edits = {("inputs", f"input_{i}"): i for i in range(40)}
    guilty = {("inputs", "input_7"), ("inputs", "input_31")}
    few = shrunk(edits, lambda some: "both" if guilty <= some.keys() else "")
    assert few.keys() == guilty

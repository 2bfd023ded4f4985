"""Random edits of a workbook's yellow cells: Python and the workbook agree in every formula cell.

A trial types some edits into a copy of a workbook, lets a spreadsheet calculate it, and holds every formula against
the book that Python makes of the same inputs, and that book against `solve`. SHEETGEN_FUZZ_EDITS says how many edits
at least (20, with --long 1,000), and there are more until all verdicts were seen; a tenth of them in LibreOffice too.
The seed is fixed; SHEETGEN_FUZZ_SEED names another one. What fails is shrunk to the fewest edits.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Set
from pathlib import Path

import books
import pytest
from agreement import Compared, formula_values
from amounts import IN_LONG, amount
from random_edits_of import Dealer, Edits
from recalculation import convert_all, needs_libreoffice, tamper
from workbook_trials import After, Refused, Workbook, n_edits, reached, shrunk

from sheetgen.readback.audit import AS_BUILT

N_EDITS = int(os.environ.get("SHEETGEN_FUZZ_EDITS") or amount(20, 1000))
SEED = int(os.environ.get("SHEETGEN_FUZZ_SEED") or 1)  # in the gate two trials of it reach all verdicts
TINY = {**books.SMALL, "models": "8b,gemma-3-27b,gpt-oss-20b", "tiers": "1,64", "headline": "chat:64"}
DEFAULT = {"models": books.DEFAULT, "as_of": books.AS_OF}
FILES_A_START = 6  # of LibreOffice
# All of which the trials have to reach; ties are rare.
VERDICTS = {"fits", "none fits", "over limit", *(("ties",) if IN_LONG else ())}
LATEST = 15  # times as many edits as were asked for: some trials have 70, and two of those may fit everywhere
REFUSED_AT_MOST = 0.2


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Workbook:
    return Workbook(TINY, tmp_path_factory.mktemp("tiny"))


def trials(workbook: Workbook, seed: int, n: int) -> Iterator[tuple[Edits, After]]:
    """Trials until `n` edits were made that Python sizes."""
    refused = done = 0
    for tried, edits in enumerate(workbook.trials(seed), 1):
        try:
            after = workbook.after(edits)
        except Refused:
            refused += 1
            assert refused <= max(3, REFUSED_AT_MOST * tried), f"Python refuses {refused} of {tried} trials"
            continue
        except Exception:
            pytest.fail(f"seed {seed}: {workbook.told(edits)}")
        yield edits, after
        done += n_edits(edits)
        if done >= n:
            break


class Tally:
    """Counts of a run: edits, trials, formula cells, and what the trials reached."""

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
    dealer = Dealer(random.Random(SEED), yellow)
    kinds = {spot.kind for key, spot in yellow.spots.items() if not key[0].startswith("own_")}
    assert {yellow.spots[dealer.cell()].kind for _ in kinds} == kinds
    assert len(kinds) > 240


def tried(workbook: Workbook, n: int, verdicts: Set[str] = frozenset()) -> Tally:
    """`n` edits, or some more until all these verdicts were reached: every formula of Python's and of formualizer's."""
    tally = Tally()
    for edits, after in trials(workbook, SEED, LATEST * n):
        result = workbook.compared(after, workbook.recalculated(edits))
        if result.wrong or after.against_solve:
            pytest.fail(f"SHEETGEN_FUZZ_SEED={SEED}: {workbook.told(edits)}")
        tally.add(edits, after, result)
        if tally.n_edits >= n and verdicts <= tally.reached.keys():
            return tally
    raise AssertionError(f"{tally.n_edits} edits do not reach {verdicts - tally.reached.keys()}")


def test_python_and_workbook_agree_in_every_formula_cell(
    tiny: Workbook, record_property: Callable[[str, object], None]
) -> None:
    tally = tried(tiny, N_EDITS, VERDICTS)
    record_property("counted", f"fuzz (seed {SEED}), formualizer: {tally}")


@pytest.mark.long
def test_python_and_a_workbook_of_experts_agree(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Layouts of data-parallel ranks, and a model that spans machines."""
    tally = tried(Workbook(books.EXPERTS, tmp_path), N_EDITS // 8)
    record_property("counted", f"fuzz, mixtures of experts (seed {SEED}), formualizer: {tally}")


@pytest.mark.long
def test_python_and_a_large_workbook_agree(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    tally = tried(Workbook(DEFAULT, tmp_path), N_EDITS // 20)
    record_property("counted", f"fuzz, three models (seed {SEED}), formualizer: {tally}")


@pytest.mark.long  # in the gate LibreOffice has edits of workbook/test_edits and Money
@needs_libreoffice
def test_libreoffice_agrees_too(tiny: Workbook, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    workbook, tally = tiny, Tally()
    chosen = trials(workbook, SEED + 1, -(-N_EDITS // 10))
    batches = iter(lambda: list(itertools.islice(chosen, FILES_A_START)), [])
    for batch in batches:
        files = [workbook.edited(edits, f"trial-{i}") for i, (edits, _) in enumerate(batch)]
        for (edits, after), file in zip(batch, convert_all(files, tmp_path), strict=True):
            result = workbook.compared(after, formula_values(file))
            if result.wrong:
                told = workbook.told(
                    edits, lambda some: formula_values(convert_all([workbook.edited(some)], tmp_path)[0])
                )
                pytest.fail(f"SHEETGEN_FUZZ_SEED={SEED}: {told}")
            tally.add(edits, after, result)
    record_property("counted", f"fuzz (seed {SEED + 1}), LibreOffice: {tally} of Python")


def test_a_wrong_formula_is_found(tmp_path: Path) -> None:
    """The proof can fail: one slip in one formula, and the same comparison tells its place."""
    least, slipped = Workbook(books.LEAST, tmp_path), tmp_path / "slipped.xlsx"
    sheet, cell, _, _ = tamper(least.path, slipped, AS_BUILT)
    edits: Edits = {("inputs", "context_chat"): 8192}
    result = least.compared(least.after(edits), least.recalculated(edits, path=slipped))
    assert (sheet, cell) in {difference.place for difference in result.wrong}


def test_failing_edits_are_shrunk_to_the_fewest() -> None:
    edits: Edits = {("inputs", f"input_{i}"): i for i in range(40)}
    guilty = {("inputs", "input_7"), ("inputs", "input_31")}
    few = shrunk(edits, lambda some: "both" if guilty <= some.keys() else "")
    assert few.keys() == guilty

"""LibreOffice as a person uses it: after an edit it works out what that touches, nothing else, and saves.

It does not pass on what an array formula gives, so all others read the plain cell beside it (Sheet.pass_on).
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from agreement import compare, formula_values
from amounts import IN_LONG, amount
from office_edits import Job, Step, edit_in_libreoffice, needs_uno
from random_edits_of import Edits
from test_fuzz import SEED, TINY, trials
from workbook_trials import Workbook
from yellow_cells import as_cell

ON_DECISION: list[Edits] = [
    {("inputs", "decision_provider"): "gcp", ("inputs", "decision_confidence"): 0.8},
    {("inputs", "decision_purchase"): "reserved-3yr"},
    {("inputs", "decision_model"): "DeepSeek-V3", ("inputs", "decision_weight_dtype"): "published"},
    {("inputs", "decision_users"): 500, ("inputs", "decision_context_tokens"): 64_000},
    {("inputs", "decision_tpot_ms"): None, ("inputs", "decision_kv_cache_dtype"): "fp8"},
    {("inputs", "decision_concurrent_requests"): 200, ("inputs", "case_users_high"): 3},
    {("inputs", "discount_fraction"): 0.35},
]
IN_GATE = (3, 6)  # of these: the load, all prices
N_RANDOM = amount(1, 6)
MANY = 10**6  # edits: the trials are stopped by their number


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Workbook:
    return Workbook({**TINY, "instances": f"{TINY['instances']},aws/p5.48xlarge"}, tmp_path_factory.mktemp("touched"))


def steps(workbook: Workbook, edits: Edits) -> list[Step]:
    steps: list[Step] = []
    for key, value in edits.items():
        sheet, cell = workbook.yellow.spots[key].place
        typed = as_cell(value)
        change = "clear" if typed is None else "text" if isinstance(typed, str) else "number"
        steps.append((change, sheet, cell, *([] if typed is None else [str(typed)])))
    return steps


@pytest.mark.long
@needs_uno
def test_what_an_edit_does_not_touch_is_still_right(tiny: Workbook, tmp_path: Path) -> None:
    random = itertools.islice(trials(tiny, SEED, MANY), N_RANDOM)
    chosen = ON_DECISION if IN_LONG else [ON_DECISION[i] for i in IN_GATE]
    tried = [*((edits, tiny.after(edits)) for edits in chosen), *random]
    jobs = [
        Job(tiny.path, tmp_path / f"{i}.xlsx", steps(tiny, edits), calculate="touched")
        for i, (edits, _) in enumerate(tried)
    ]
    n_cells = 0
    for (edits, after), saved in zip(tried, edit_in_libreoffice(jobs, tmp_path), strict=True):
        result = compare(after.written, formula_values(saved))
        told = {str(tiny.yellow.spots[key]): value for key, value in edits.items()}
        assert not result.wrong, f"SHEETGEN_FUZZ_SEED={SEED}: {told}: {result}"
        n_cells += result.n_formulas
    assert n_cells > 5_000

"""Each yellow cell of a visible sheet, typed over by itself: every cell of the workbook is then what a build of the
same inputs has, by formualizer and by LibreOffice."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agreement import formula_values
from amounts import amount
from random_edits_of import Edits
from random_values import MILD, value_for
from recalculation import convert_all, needs_libreoffice
from test_fuzz import TINY
from workbook_trials import Refused, Workbook
from yellow_cells import Key

from sheetgen.book.sheets import TABS_SHOWN

N_EDITS, N_IN_LIBREOFFICE = amount(4, 200), amount(1, 24)
TRIES = 20  # for a value that is not the one in the cell, and that Python does not refuse


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Workbook:
    return Workbook(TINY, tmp_path_factory.mktemp("yellow"))


def edits_of(workbook: Workbook) -> list[Edits]:
    """An edit of each yellow cell of a visible sheet; of a column of a table that of one row."""
    rng, found = random.Random(37), dict[Key, Edits]()
    spots = [spot for spot in workbook.yellow.spots.values() if spot.place[0] in TABS_SHOWN]
    rng.shuffle(spots)
    for spot in spots:
        if spot.kind in found or spot.key[0].startswith("own_"):
            continue
        for _ in range(TRIES):
            edits = {spot.key: value_for(rng, spot, workbook.yellow, MILD)}
            if edits[spot.key] == spot.old:
                continue
            try:
                workbook.after(edits)
            except Refused:
                continue
            found[spot.kind] = edits
            break
    return list(found.values())


@pytest.mark.long
def test_every_yellow_cell_by_itself(tiny: Workbook) -> None:
    edits = edits_of(tiny)
    sheets = {tiny.yellow.spots[key].place[0] for one in edits for key in one}
    assert len(edits) >= 60 and sheets == {"Sizing sheet", "Decision", "Inputs", "Money", "Prices and hardware"}
    faults = [
        f"{tiny.yellow.spots[key]}: {value!r}\n{fault}"
        for one in edits[:N_EDITS]
        for key, value in one.items()
        if (fault := tiny.fault(one))
    ]
    assert not faults, f"{len(faults)} of {len(edits)}\n" + "\n".join(faults[:12])


@pytest.mark.long
@needs_libreoffice
def test_libreoffice_says_the_same(tiny: Workbook, tmp_path: Path) -> None:
    edits = edits_of(tiny)[::3][:N_IN_LIBREOFFICE]
    files = [tiny.edited(one, f"edited-{i}") for i, one in enumerate(edits)]
    for one, file in zip(edits, convert_all(files, tmp_path, timeout=600), strict=True):
        found: Mapping[Any, Any] = formula_values(file)
        fault = tiny.fault(one, lambda _, found=found: found)  # type: ignore[misc]
        assert not fault, f"{one}\n{fault}"

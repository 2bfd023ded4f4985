"""Each yellow cell of a visible sheet, typed over by itself: every cell of the workbook is then what a build of the
same inputs has, by formualizer and by LibreOffice."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from agreement import formula_values
from amounts import amount
from random_edits_of import Edits
from random_values import MILD, value_for
from recalculation import convert_all, needs_libreoffice
from test_fuzz import TINY
from workbook_trials import Workbook
from yellow_cells import Key

from sheetgen.answer.levers import EveryLever
from sheetgen.book.sheets import TABS_SHOWN

N_IN_LIBREOFFICE = amount(1, 24)
VISIBLE = {"Sizing sheet", "Decision", "Inputs", "Money", "Prices and hardware"}


class Plain(Workbook):
    """Without levers, which are those of the loads as built: a load that is no tier adds another."""

    levers: EveryLever = ()  # type: ignore[assignment]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return Plain(TINY, tmp_path_factory.mktemp("yellow"))


def edits_of(workbook: Workbook) -> Iterator[Edits]:
    """An edit of each yellow cell of a visible sheet; of a column of a table that of one row."""
    rng, found = random.Random(37), set[Key]()
    spots = [spot for spot in workbook.yellow.spots.values() if spot.place[0] in TABS_SHOWN]
    rng.shuffle(spots)
    for spot in spots:
        if spot.kind not in found and not spot.key[0].startswith("own_"):
            values = (value_for(rng, spot, workbook.yellow, MILD) for _ in range(20))
            value = next((value for value in values if value != spot.old), spot.old)
            if value != spot.old:
                found.add(spot.kind)
                yield {spot.key: value}


@pytest.mark.long
def test_every_yellow_cell_by_itself(tiny: Plain) -> None:
    edits = list(edits_of(tiny))
    assert len(edits) >= 60 and {tiny.yellow.spots[key].place[0] for one in edits for key in one} == VISIBLE
    faults = {str(one): fault for one in edits if (fault := tiny.fault(one))}
    assert not faults, f"{len(faults)} of {len(edits)}: {faults}"


@pytest.mark.long
@needs_libreoffice
def test_libreoffice_says_the_same(tiny: Plain, tmp_path: Path) -> None:
    edits = list(edits_of(tiny))[::3][:N_IN_LIBREOFFICE]
    files = [tiny.edited(one, f"edited-{i}") for i, one in enumerate(edits)]
    for one, file in zip(edits, convert_all(files, tmp_path, timeout=600), strict=True):
        found: Mapping[Any, Any] = formula_values(file)
        places = {tiny.yellow.spots[key].place for key in one}
        held = {place: value for place, value in found.items() if place not in places}
        fault = tiny.fault(one, lambda _, held=held: held)  # type: ignore[misc]
        assert not fault, f"{one}\n{fault}"

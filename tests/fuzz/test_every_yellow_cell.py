"""Each yellow cell of a visible sheet, typed over by itself: every cell of the workbook is then what a build of the
same inputs has, by formualizer; several at once, by LibreOffice and Gnumeric."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from agreement import formula_values
from amounts import amount
from random_edits_of import Edits
from random_values import MILD, value_for
from readers import recalculate_with_gnumeric
from recalculation import convert_all, needs_libreoffice
from test_fuzz import TINY
from workbook_cells import CellValue, Place
from workbook_trials import Refused, Workbook
from yellow_cells import Key

from sheetgen.answer.levers import EveryLever
from sheetgen.book.sheets import TABS_SHOWN

N_EDITS, A_FILE = amount(12, 60), 6  # of those that other programs calculate, six in a file
VISIBLE = {"Sizing sheet", "Decision", "Inputs", "Money", "Prices and hardware"}


class Plain(Workbook):
    """Without levers, which are those of the loads as built: a load that is no tier adds another."""

    levers: EveryLever = ()  # type: ignore[assignment]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return Plain(TINY, tmp_path_factory.mktemp("yellow"))


def edits_of(workbook: Workbook) -> Iterator[Edits]:
    """An edit of each yellow cell of a visible sheet; of a column of a table that of one row."""
    rng, keys = random.Random(37), set[Key]()
    spots = [spot for spot in workbook.yellow.spots.values() if spot.place[0] in TABS_SHOWN]
    rng.shuffle(spots)
    for spot in spots:
        if spot.kind not in keys and not spot.key[0].startswith("own_"):
            values = (value_for(rng, spot, workbook.yellow, MILD) for _ in range(20))
            value = next((value for value in values if value != spot.old), spot.old)
            if value != spot.old:
                keys.add(spot.kind)
                yield {spot.key: value}


@pytest.mark.long
def test_every_yellow_cell_by_itself(tiny: Plain) -> None:
    edits = list(edits_of(tiny))
    assert len(edits) >= 60 and {tiny.yellow.spots[key].place[0] for edit in edits for key in edit} == VISIBLE
    faults = {str(edit): fault for edit in edits if (fault := tiny.fault(edit))}
    assert not faults, f"{len(faults)} of {len(edits)}: {faults}"


def together(workbook: Workbook, edits: list[Edits]) -> Iterator[Edits]:
    """The edits, several of them in one: those that Python refuses together are taken apart."""
    whole = {key: value for edit in edits for key, value in edit.items()}
    try:
        workbook.after(whole)
        yield whole
    except Refused:
        half = len(edits) // 2
        if half:
            yield from together(workbook, edits[:half])
            yield from together(workbook, edits[half:])


def in_gnumeric(files: Sequence[Path], folder: Path) -> list[Path]:
    """Copies that Gnumeric calculated."""
    outs = [folder / f"gnumeric-{file.name}" for file in files]
    for file, out in zip(files, outs, strict=True):
        recalculate_with_gnumeric(file, out)
    return outs


def in_libreoffice(files: Sequence[Path], folder: Path) -> list[Path]:
    """Copies that LibreOffice calculated, in one run of it."""
    return convert_all(files, folder, timeout=1500)


@pytest.mark.long
@needs_libreoffice
@pytest.mark.parametrize("program", [in_libreoffice, in_gnumeric])
def test_other_programs_say_the_same(
    tiny: Plain, tmp_path: Path, program: Callable[[Sequence[Path], Path], list[Path]]
) -> None:
    if program is in_gnumeric and not shutil.which("ssconvert"):
        pytest.skip("Gnumeric is not installed")
    every = list(edits_of(tiny))
    some = every[:: max(1, len(every) // N_EDITS)]
    parts = [edit for i in range(0, len(some), A_FILE) for edit in together(tiny, some[i : i + A_FILE])]
    files = [tiny.edited(part, f"edited-{i}") for i, part in enumerate(parts)]
    assert sum(map(len, parts)) >= 0.9 * N_EDITS
    for part, file in zip(parts, program(files, tmp_path), strict=True):
        values: Mapping[Place | str, CellValue] = formula_values(file)
        places = {tiny.yellow.spots[key].place for key in part}
        held = {place: value for place, value in values.items() if place not in places}
        fault = tiny.fault(part, lambda _, held=held: held)  # type: ignore[misc]
        assert not fault, f"{part}\n{fault}"

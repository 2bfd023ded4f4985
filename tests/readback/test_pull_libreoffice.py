"""A workbook that LibreOffice edited and saved, its rows and columns moved: all is read right, and faults are found."""

from __future__ import annotations

from pathlib import Path

import books
import pytest
from amounts import IN_LONG
from cells_of import LEAN, Places, without_picks
from office_edits import Job, Step, edit_in_libreoffice, needs_uno
from readers import needs_gnumeric, recalculate_with_gnumeric
from workbook_cells import formulas

from sheetgen.readback.pulled import Pulled, pull
from sheetgen.readback.pulled_words import lines

MOVED: list[Step] = [
    ("insert", "Inputs", "1", "2"), ("insert", "Prices and hardware", "2", "3"), ("insert", "Workings", "1", "1"),
    ("insert", "Candidates", "1", "2"), ("insert", "Profiles", "30", "2"), ("columns", "GPUs", "1", "1"),
    ("insert", "Sizing sheet", "1", "1"),
]  # fmt: skip


# LibreOffice opens, recalculates and saves it for each job.
OPTIONS = {
    **LEAN,
    "models": "8b",
    "workloads": "chat",
    "tiers": "1",
    "headline": "chat:1",
    "instances": "aws/g6e.12xlarge,aws/p5.48xlarge",
}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("pull"), "tiny", OPTIONS)[0]


@pytest.fixture(scope="module")
def places(book: Path) -> Places:
    return Places(book)


TYPED = {"Workings": ("number", "5"), "Candidates": ("formula", "=1+1"), "Money": ("text", "")}
OWN = {"type": "box.1", "provider": "acme", "instance_gpu": "nvidia-l40s-48gb"}


def typing(places: Places) -> list[Step]:
    """A context, a price, and an instance of one's own."""
    spare = places.spare("instances")[0]
    return [
        ("number", "Inputs", places.columns["in_context_chat"][0][1], "8192"),
        ("number", *price_of(places), "12.5"),
        *(("text", *spare[column], text) for column, text in OWN.items()),
        ("number", *spare["gpu_count"], "2"),
        ("number", *spare["price_usd_per_hour"], "1.5"),
    ]


def price_of(places: Places) -> tuple[str, str]:
    return places.rows("instances")["aws/p5.48xlarge"]["price_usd_per_hour"]


def overwritten(book: Path) -> tuple[dict[str, str], dict[str, str]]:
    """By sheet a cell that holds a formula, as built, and where it stands once rows were inserted."""
    cells = {sheet: next(c.cell for c in formulas(book) if c.sheet == sheet and c.cell > "C") for sheet in TYPED}
    moved = {"Workings": 1, "Candidates": 2, "Money": 0}
    return cells, {sheet: down((sheet, cell), moved[sheet])[1] for sheet, cell in cells.items()}


@pytest.fixture(scope="module")
def saved(book: Path, places: Places, tmp_path_factory: pytest.TempPathFactory) -> list[Pulled]:
    """Read back: one with rows moved and formulas overwritten, and in --long one with cells typed into."""
    folder, now = tmp_path_factory.mktemp("saved"), overwritten(book)[1]
    faults: list[Step] = [(kind, sheet, now[sheet], text) for sheet, (kind, text) in TYPED.items()]
    steps = [MOVED + faults, *([typing(places) + MOVED] if IN_LONG else [])]
    jobs = [Job(book, folder / f"saved-{i}.xlsx", edits) for i, edits in enumerate(steps)]
    return [pull(path, books.catalog()) for path in edit_in_libreoffice(jobs, folder)]


def down(place: tuple[str, str], rows: int) -> tuple[str, str]:
    """A cell so many rows below."""
    letters = place[1].rstrip("0123456789")
    return place[0], f"{letters}{int(place[1][len(letters) :]) + rows}"


@pytest.mark.long
@needs_uno
def test_rows_inserted_a_price_changed_and_a_row_added_are_read_right(places: Places, saved: list[Pulled]) -> None:
    pulled, price = saved[1], price_of(places)
    sheet, cell = down(price, 3)
    assert [(change.part, change.row, change.name, change.new, str(change.place)) for change in pulled.changed[:2]] == [
        ("inputs", None, "context_chat", 8192, "Inputs!B7"),
        ("instances", "aws/p5.48xlarge", "price_usd_per_hour", 12.5, f"'{sheet}'!{cell}"),
    ]
    assert len(pulled.changed) == 3
    assert without_picks(pulled.overrides) == {
        "instances": {"aws/p5.48xlarge": {"price_usd_per_hour": 12.5}},
        "own_instances": [{**OWN, "gpu_count": 2, "price_usd_per_hour": 1.5}],
    }
    assert pulled.audit is not None and pulled.audit.verdict == "agrees" and not pulled.audit.overwritten
    assert pulled.audit.n_formulas > 2_000 and not pulled.other_results


@needs_gnumeric
def test_what_gnumeric_spells_otherwise_is_no_edit(book: Path, tmp_path: Path) -> None:
    """It writes NORMSINV as _xlfn.NORM.S.INV, and 99.95 as 99.9499999999999999972."""
    saved = tmp_path / "saved.xlsx"
    recalculate_with_gnumeric(book, saved)
    pulled = pull(str(saved), books.catalog())
    assert not pulled.changed and not pulled.fixed and not pulled.other_results
    assert pulled.audit is not None and not pulled.audit.overwritten and pulled.audit.n_formulas > 2_000


@needs_uno
def test_overwritten_formulas_are_named_where_they_stand_now(book: Path, saved: list[Pulled]) -> None:
    pulled, (overwritten_, places) = saved[0], overwritten(book)
    assert pulled.audit is not None
    values = {str(cell.place): cell.now for cell in pulled.audit.overwritten}
    now = {"Workings": 5, "Candidates": "=1+1", "Money": None}
    assert values == {f"{sheet}!{places[sheet]}": now[sheet] for sheet in TYPED}
    assert not pulled.changed
    was = next(c.formula for c in formulas(book) if (c.sheet, c.cell) == ("Workings", overwritten_["Workings"]))
    text = "\n".join(lines(pulled))
    assert f"Workings!{places['Workings']}" in text and f"was overwritten by 5; it was ={was}"[:60] in text

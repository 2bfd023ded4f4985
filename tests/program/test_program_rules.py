"""The rules that a program keeps: every input can be read on its table's axes, and a name means one quantity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import pytest

from sheetgen.answer.solve import tables
from sheetgen.catalog import Catalog
from sheetgen.formula import Formula
from sheetgen.program.declared import Again, Axes, Program, Repeat, Table, by_name, is_same
from sheetgen.program.grid import Grid
from sheetgen.program.row_program import DEPLOYMENT
from sheetgen.program.sheet_program import AGAIN, CHOSEN, SHEET, WITH_DRAFT
from sheetgen.question.deployment import complete
from sheetgen.question.sheet_question import ask

Facts = dict[str, list[Axes]]
# Quantities that a fact becomes where something else is known: of a rate, beside a draft, without prefixes to keep,
# without graphs.
REFINED = {
    "other_bytes_per_token", "n_other_layers", "speed_kind", "state_blocks", "checkpoint_blocks", "concurrent_requests",
    "cuda_graph_base_bytes", "cuda_graph_layer_bytes", "heavier_cuda_graph_layer_bytes",
    "apart_cuda_graph_layer_bytes", "cold_start_embeddings", "encoder_item_tokens", "encoder_item_patches",
    "seconds_per_layer",
}  # fmt: skip


def facts_of(grid: Grid, program: Program) -> Facts:
    """By name the axes of the columns that no table of the program works out."""
    made = {name for table in all_tables(program) for name, _ in quantities_of(table)}
    made |= {name for table in program.tables if isinstance(table, Again) for name in table.keeps}
    return {
        name: [axes for axes, _ in columns]
        for name, columns in grid.columns.items()
        if name not in made or name in REFINED
    }


def unreadable(program: Program, facts: Mapping[str, Iterable[Axes]]) -> list[str]:
    """Every input that cannot be read on the axes of its table, with the table and the formula that reads it.

    facts: by name the axes of what is given.
    """
    axes_of = {name: set(axes) for name, axes in facts.items()}
    problems: list[str] = []

    def reach(axis: str) -> set[str]:
        on = next((axis_.on for axis_ in program.axes if axis_.name == axis), ())
        return {axis}.union(*map(reach, on))

    def read(name: str, table: Table | Repeat, under: Mapping[str, Iterable[Axes]] = MappingProxyType({})) -> None:
        within = {end for axis in (*table.axes, *((table.rows,) if table.rows else ())) for end in reach(axis)}
        for quantity, formula in quantities_of(table):
            for input_ in formula.inputs:
                if not any(within.issuperset(own) for own in (*axes_of.get(input_, ()), *under.get(input_, ()))):
                    problems.append(
                        f"{name}: {formula.name} reads {input_}, which is nowhere on {', '.join(table.axes)}"
                    )
            axes_of.setdefault(quantity, set()).add(table.axes)

    for table in program.tables:
        if isinstance(table, Again):
            under = {
                name: axes_of.get(value, set()) if isinstance(value, str) else {()}
                for name, value in table.under.items()
            }
            for again in table.tables_of(program):
                read(f"{table.name} ({again.name})", again, under)
            for name, quantity in table.keeps.items():
                axes_of.setdefault(name, set()).update(axes_of.get(quantity, ()))
        else:
            read(table.name, table)
    return problems


def all_tables(program: Program) -> list[Table | Repeat]:
    return [table for table in (*program.tables, *program.parts) if not isinstance(table, Again)]


def quantities_of(table: Table | Repeat) -> Iterable[tuple[str, Formula]]:
    declared = table.quantities if isinstance(table, Table) else (*table.start, *table.step)
    return by_name(declared)


@pytest.fixture(scope="module")
def sheet_grid() -> Grid:
    """A sheet with a mixture, a rate, a measured deployment and a draft's kin: everything that its program may read."""
    measured = "model=70b,gpu=h100,tp=4,concurrent_requests=8,input_tokens=1k,output_tokens=1k,tpot_ms=20"
    options = {"models": "70b,deepseek-v3", "requests_per_second": 3, "survive": "replica", "measured": measured}
    return tables(ask(Catalog(), options)).grid


@pytest.fixture(scope="module")
def row_grid() -> Grid:
    given = {"model": ["70b", "deepseek-v3"], "tensor_parallel_size": [4, 8]}
    return complete(given, 2, Catalog()).grid


def test_every_input_can_be_read_on_the_axes_of_its_table(sheet_grid: Grid, row_grid: Grid) -> None:
    facts = facts_of(sheet_grid, SHEET)
    whole = Program(SHEET.axes, (*SHEET.tables, *CHOSEN.tables))
    assert unreadable(whole, facts) == []
    once_more = Program(AGAIN.axes, (*SHEET.tables, *AGAIN.tables), AGAIN.parts)
    assert unreadable(once_more, facts) == []
    assert unreadable(DEPLOYMENT, facts_of(row_grid, DEPLOYMENT)) == []


def test_a_table_that_reads_what_nothing_provides_is_named(sheet_grid: Grid) -> None:
    facts = facts_of(sheet_grid, SHEET)
    del facts["n_layers"]
    assert any("n_layers" in problem and "shards" in problem for problem in unreadable(SHEET, facts))
    # A load has no GPU before something is chosen for it.
    misplaced = Program(SHEET.axes, (Table("wrong", ("load",), (SHEET["shards"].named()["layer_bytes_per_gpu"],)),))
    assert "tensor_parallel_size" in unreadable(misplaced, facts_of(sheet_grid, SHEET))[-1]


def test_what_stands_in_place_of_a_quantity_is_a_quantity_that_is_read() -> None:
    """A limit that no table reads would change nothing, unseen."""
    for program in (AGAIN, DEPLOYMENT):
        for again in program.tables:
            if isinstance(again, Again):
                read = {
                    name
                    for table in again.tables_of(program)
                    for formula in table.named().values()
                    for name in formula.inputs
                }
                assert again.under.keys() <= read, again.name


def test_axes_stand_where_the_grid_has_them(sheet_grid: Grid) -> None:
    declared = {(axis.name, other) for axis in SHEET.axes for other in axis.on}
    assert declared - {("chosen", "load"), ("chosen", "offer")} <= {*sheet_grid.places}


@pytest.mark.parametrize(
    "program", [SHEET, CHOSEN, AGAIN, WITH_DRAFT, DEPLOYMENT], ids=["sheet", "chosen", "again", "draft", "row"]
)
def test_one_name_means_one_quantity(program: Program) -> None:
    meant = defaultdict(set)
    for table in all_tables(program):
        for name, formula in quantities_of(table):
            refines = isinstance(table, Table) and table.where is not None
            if not is_same(formula) and not refines:
                meant[name].add(formula.label)
    assert {name: labels for name, labels in meant.items() if len(labels) > 1} == {}


def test_no_fact_of_a_sheet_is_a_quantity_too(sheet_grid: Grid) -> None:
    worked_out = {name for table in all_tables(SHEET) for name, _ in quantities_of(table)}
    twice = {name for name in worked_out if len(sheet_grid.columns[name]) > 1} - REFINED
    # Of a rate: in places, by its share of the rate, and as it was stated.
    assert twice == {"load_requests", "ranked_requests", "load_requests_per_second"}

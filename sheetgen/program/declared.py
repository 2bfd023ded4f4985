"""The words in which a program is declared: axes, tables of quantities, and tables read again under other values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sheetgen.formula import Formula, Quantity
from sheetgen.units import PLAIN

Axes = tuple[str, ...]
Named = Formula | tuple[str, Formula]  # with a name where a formula is used for another quantity


@dataclass(frozen=True)
class Axis:
    """A kind of thing that quantities differ by: models, GPUs, loads.

    on: the axes on which each of its positions has a place, as an offer has a GPU and a layout.
    """

    name: str
    on: Axes = ()


@dataclass(frozen=True)
class Table:
    """Quantities in the order in which they are worked out, on the axes by which they may differ.

    rows: the axis of which formulas read all positions at once, as a choice reads all offers.
    where: a fact without which the table is left out, as the rate of loads that have none.
    """

    name: str
    axes: Axes
    quantities: tuple[Named, ...]
    rows: str | None = None
    where: str | None = None

    def along(self, places: Mapping[str, Axes]) -> Table:
        """The same quantities with some axes replaced, as for a few loads on what was chosen for them."""
        axes = (axis for own in self.axes for axis in places.get(own, (own,)))
        return replace(self, axes=tuple(dict.fromkeys(axes)))

    def named(self) -> dict[str, Formula]:
        """The quantities by name."""
        return dict(by_name(self.quantities))


@dataclass(frozen=True)
class Again:
    """Tables read once more under other values.

    under: by quantity, the number or the quantity that stands in its place. keeps: by its name here, the quantity of
    the second reading that is kept. along: by axis, those that stand in its place.
    """

    name: str
    under: Mapping[str, float | str]
    tables: tuple[str, ...]
    keeps: Mapping[str, str] = field(default_factory=dict)
    along: Mapping[str, Axes] = field(default_factory=dict)

    def tables_of(self, program: Program) -> list[Table]:
        """The tables, on the axes on which they are read again."""
        return [program[name].along(self.along) for name in self.tables]


@dataclass(frozen=True)
class Repeat:
    """A search in a fixed number of steps, each worked out from the results of the one before it.

    start: the quantities that the first step reads. step: those of a step. carry: by quantity of the start, the one of
    a step that stands in its place for the next. rows: the axis of which a step's formulas read all positions at once.
    answer: the quantity, 1 or 0, by which alone a step decides what the next one tries: what is tried after either
    answer is known before the answer, and numpy works out some steps together.
    """

    name: str
    axes: Axes
    times: int
    start: tuple[Named, ...]
    step: tuple[Named, ...]
    carry: Mapping[str, str]
    where: str | None = None
    rows: str | None = None
    answer: str | None = None

    def parts(self) -> tuple[tuple[Named, ...], tuple[Named, ...]]:
        """The quantities of a step up to its answer, and those after it."""
        names = [name for name, _ in by_name(self.step)]
        end = len(names) if self.answer is None else names.index(self.answer) + 1
        return self.step[:end], self.step[end:]


Declared = Table | Again | Repeat


@dataclass(frozen=True)
class Program:
    """Axes, and tables in the order in which they are worked out; parts: tables that are only read again."""

    axes: tuple[Axis, ...]
    tables: tuple[Declared, ...]
    parts: tuple[Table, ...] = ()

    def __getitem__(self, name: str) -> Table:
        """The table of that name."""
        tables = (*self.tables, *self.parts)
        return next(table for table in tables if isinstance(table, Table) and table.name == name)

    def again(self, name: str) -> Again:
        """The tables that are read again under that name."""
        return next(table for table in self.tables if isinstance(table, Again) and table.name == name)

    def needed(self, quantities: Iterable[str], *tables: Declared) -> tuple[list[Declared], set[str]]:
        """The tables, by default all, with no more formulas than these quantities depend on; and the facts that they
        read. Tables that are read again stay whole."""
        reads, kept = set(quantities), list[Declared]()
        for table in reversed(tables or self.tables):
            if isinstance(table, Again):
                keeps = {name: quantity for name, quantity in table.keeps.items() if name in reads}
                if keeps:
                    again = table.tables_of(self)
                    _, inner = self.needed([name for part in again for name in part.named()], *again)
                    instead = {value for value in table.under.values() if isinstance(value, str)}
                    reads = (reads - keeps.keys()) | (inner - table.under.keys()) | instead
                    kept.append(replace(table, keeps=keeps))
                continue
            assert isinstance(table, Table), "the steps of a search depend on one another"
            formulas = list[Named]()
            for name, formula in reversed(list(by_name(table.quantities))):
                if name in reads:
                    reads = (reads - {name}) | set(formula.inputs)
                    formulas.append((name, formula))
            if formulas:
                kept.append(replace(table, quantities=tuple(reversed(formulas))))
        return kept[::-1], reads

    def replacing(self, formulas: Mapping[str, Iterable[Formula]]) -> Program:
        """The same program with other formulas of the same names in some tables."""

        def replaced(table: Declared) -> Declared:
            others = {formula.name: formula for formula in formulas.get(table.name, ())}
            if not isinstance(table, Table) or not others:
                return table
            named = by_name(table.quantities)
            return replace(table, quantities=tuple((name, others.get(name, formula)) for name, formula in named))

        return replace(self, tables=tuple(map(replaced, self.tables)))


def by_name(quantities: Iterable[Named]) -> Iterator[tuple[str, Formula]]:
    """Quantities with the names that they go by."""
    return ((named.name, named) if isinstance(named, Formula) else named for named in quantities)


def same_as(name: str, quantity: str) -> Formula:
    """A quantity that equals another one, under the name by which further formulas read it."""

    return Formula(name, name.replace("_", " "), PLAIN, (quantity,), _unchanged)


def is_same(formula: Formula) -> bool:
    """True for a formula that `same_as` made."""
    return formula.function is _unchanged


def _unchanged(value: Quantity) -> Quantity:
    return value

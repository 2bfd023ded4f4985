"""A recalculated workbook held against the book that Python makes of the same inputs, formula by formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from recalculation import half_percent, same
from workbook_cells import CellValue, ErrorValue, Place, formulas
from yellow_cells import Written

from sheetgen.readback.audit import AS_BUILT
from sheetgen.units import AUTO, DTYPE_ALIASES, PUBLISHED

# The sheets in the order in which they read each other: the first difference is the nearest to its cause.
DEPENDENCE = (
    "Inputs", "Constants", "Models", "Catalog", "Decision data", "GPUs", "Prices and hardware", "Contexts",
    "Decision contexts", "Profiles", "Candidates", "Workings", "Decision loads",
)  # fmt: skip


class Difference(NamedTuple):
    place: Place
    formula: str
    expected: CellValue
    got: CellValue

    def __str__(self) -> str:
        formula = self.formula if len(self.formula) < 160 else f"{self.formula[:160]}..."
        return f"{'!'.join(self.place)}: Python says {self.expected!r}, the workbook {self.got!r} (={formula})"


@dataclass(frozen=True)
class Compared:
    """n_formulas: those of the file, all of which were compared. n_respelled: those whose texts are two spellings of
    one name, or differ by a rounded half percent."""

    n_formulas: int
    wrong: tuple[Difference, ...]
    n_respelled: int

    def __str__(self) -> str:
        order = sorted(self.wrong, key=lambda difference: (*DEPENDENCE, difference.place[0]).index(difference.place[0]))
        lines = "\n".join(f"  {difference}" for difference in order[:12])
        return f"{len(self.wrong)} of {self.n_formulas} formula cells differ\n{lines}"


def formula_values(path: Path) -> dict[Place, CellValue]:
    """The values beside each formula of a file."""
    return {cell.place: cell.value for cell in formulas(path)}


def compare(after: Written, values: Mapping[Place, CellValue]) -> Compared:
    """Every formula's value in a file against `after`, the book of the edited inputs."""
    apart = after.formulas.keys() ^ values.keys()
    assert not apart, f"{len(apart)} formulas stand on one side alone: {sorted(apart)[:5]}"
    expected = {place: after.values[place] for place in after.formulas}
    unequal = [
        Difference(p, after.formulas[p], v, values[p])
        for p, v in expected.items()
        if not same(v, values[p]) and not AS_BUILT.search(str(after.formulas[p]))
    ]
    wrong = [
        d for d in unequal if not one_name(d) and not half_percent(d.place[0], d.formula, d.expected, d.got, values)
    ]
    return Compared(len(values), tuple(wrong), len(unequal) - len(wrong))


def one_name(difference: Difference) -> bool:
    """Two names of one precision (auto, of the weights, is what is published), or a name in capitals: where a cell
    repeats what was typed, Python has the name that the list has."""
    if (
        not isinstance(difference.expected, str)
        or not isinstance(difference.got, str)
        or isinstance(difference.got, ErrorValue)
    ):
        return False
    meant = {**DTYPE_ALIASES, AUTO: PUBLISHED}
    first, second = (meant.get(text.lower(), text.lower()) for text in (difference.expected, difference.got))
    return first == second

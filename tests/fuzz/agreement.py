"""A recalculated workbook held against the book that Python makes of the same inputs, formula by formula."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from recalculation import ErrorValue, _sheets, _value, shared_strings
from yellow_cells import Place, Written

from sheetgen.units import DTYPE_ALIASES

TOLERANCE = 1e-9
# The sheets in the order in which they read each other: the first difference is the nearest to its cause.
DEPENDENCE = (
    "Inputs", "Models", "GPUs", "Instances", "Contexts", "Profiles", "Candidates", "Workings", "Catalog", "Engines",
    "What-if data", "What-if contexts", "What-if profiles", "What-if candidates", "What-if loads",
)  # fmt: skip
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


class Difference(NamedTuple):
    place: Place
    formula: str
    expected: Any
    got: Any

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
        order = sorted(self.wrong, key=lambda one: (*DEPENDENCE, one.place[0]).index(one.place[0]))
        lines = "\n".join(f"  {one}" for one in order[:12])
        return f"{len(self.wrong)} of {self.n_formulas} formula cells differ\n{lines}"


def formula_values(path: Path) -> dict[Place, Any]:
    """What stands beside each formula of a file."""
    found: dict[Place, Any] = {}
    with zipfile.ZipFile(path) as package:
        shared = shared_strings(package)
        for sheet, member in _sheets(package).items():
            for cell in ElementTree.fromstring(package.read(member)).iter(f"{_MAIN}c"):
                if cell.find(f"{_MAIN}f") is not None:
                    found[sheet, cell.get("r", "")] = _value(cell, shared)
    return found


def compare(after: Written, found: Mapping[Place, Any]) -> Compared:
    """Every formula's value in a file against `after`, the book of the edited inputs."""
    apart = after.formulas.keys() ^ found.keys()
    assert not apart, f"{len(apart)} formulas stand on one side alone: {sorted(apart)[:5]}"
    expected = {place: after.values[place] for place in after.formulas}
    unequal = [Difference(p, after.formulas[p], v, found[p]) for p, v in expected.items() if not same(v, found[p])]
    wrong = [d for d in unequal if not one_name(d) and not half_percent(d, found)]
    return Compared(len(found), tuple(wrong), len(unequal) - len(wrong))


def same(expected: Any, got: Any) -> bool:
    """Equal in type and value; an error or an infinite number equals nothing. Next to a 0, 1e-12 counts as 0."""
    if type(expected) is not type(got) or isinstance(got, ErrorValue) or expected is None:
        return False
    if isinstance(expected, float):
        nothing = 1e-12 if expected == 0 or got == 0 else 0.0
        return math.isfinite(expected) and math.isclose(expected, got, rel_tol=TOLERANCE, abs_tol=nothing)
    return bool(expected == got)


def one_name(one: Difference) -> bool:
    """Two names of one precision, or a name in capitals: where a cell repeats what was typed, Python has the name that
    the list has."""
    if not isinstance(one.expected, str) or not isinstance(one.got, str) or isinstance(one.got, ErrorValue):
        return False
    first, second = (DTYPE_ALIASES.get(text.lower(), text.lower()) for text in (one.expected, one.got))
    return first == second


def half_percent(one: Difference, found: Mapping[Place, Any]) -> bool:
    """Two texts that differ by one percent alone, of a share that is half a percent to 15 digits."""
    if not isinstance(one.expected, str) or not isinstance(one.got, str) or isinstance(one.got, ErrorValue):
        return False
    texts = (one.expected, one.got)
    percents = [[int(x) for x in re.findall(r"(\d+)%", text)] for text in texts]
    if len({re.sub(r"\d+%", "", text) for text in texts}) > 1 or [len(p) for p in percents] != [1, 1]:
        return False
    named = (cell.replace("$", "") for cell in re.findall(r'TEXT\(([$A-Z0-9]+),"0%"\)', one.formula))
    shares = [found.get((one.place[0], cell)) for cell in named]
    half = any(isinstance(share, float) and abs(100 * share % 1 - 0.5) < 1e-9 for share in shares)
    return half and abs(percents[0][0] - percents[1][0]) == 1

"""What became of an input: as built, changed since, or out of what the cell accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sheetgen.formula import Expr, Formula, either, formula, is_number, where
from sheetgen.sheet.model import Ref, Validation, number
from sheetgen.units import DATE, TEXT, Display

AS_BUILT, CHANGED, OUT_OF_RANGE = "as built", "changed", "out of range"
BOUND = Display("[>=10000000]0E+0;[<=-10000000]0E+0;General")


@formula("State", TEXT)
def text_state(value: Any, built: Any) -> Any:
    """Whether a text is the one that the workbook was built with.

    Source: the text as built, beside it.
    """
    return where(value == built, AS_BUILT, CHANGED)


@formula("State", TEXT)
def listed_state(value: Any, built: Any, place: Any) -> Any:
    """Whether a choice is the one that the workbook was built with; of another, whether it is in its list.

    Source: the choice as built beside it, and its place in the list.
    """
    return where(value == built, AS_BUILT, where(is_number(place), CHANGED, OUT_OF_RANGE))


@formula("State", TEXT)
def number_state(value: Any, built: Any, least: Any, most: Any) -> Any:
    """Whether a number is the one that the workbook was built with, and within its bounds; a text is above all bounds.

    Source: the number as built and the bounds, beside it.
    """
    return where(either(value < least, value > most), OUT_OF_RANGE, where(value == built, AS_BUILT, CHANGED))


@formula("State", TEXT)
def optional_state(value: Any, built: Any, least: Any, most: Any) -> Any:
    """The same of a number that may be blank.

    Source: the number as built and the bounds, beside it.
    """
    known = where(either(value < least, value > most), OUT_OF_RANGE, where(value == built, AS_BUILT, CHANGED))
    return where(value == "", where(built == "", AS_BUILT, CHANGED), known)


def state_formula(check: Validation | None, may_be_blank: bool = False) -> Formula:
    """The formula that tells the state of a cell which accepts that."""
    if check is not None and check.source is not None:
        return listed_state
    if not has_bounds(check):
        return text_state
    return optional_state if may_be_blank else number_state


def state_now(
    one: Formula, value: Any, built: Any, check: Validation | None, listed: Sequence[Any] | None = None
) -> str:
    """What the formula gives: a blank cell is 0 to a number, and a text is told by its letters, large or small.

    listed: the choices, where the cell may hold another one.
    """
    known = listed is None or str(value).lower() in {str(choice).lower() for choice in listed}
    env: dict[str, Any] = {"value": value, "built": built, "place": 1 if known else float("nan")}
    if one in (number_state, optional_state):
        if one is optional_state and value is None:
            return AS_BUILT if built is None else CHANGED
        if isinstance(value, str):
            return OUT_OF_RANGE
        env = {name: 0 if env[name] is None else number(env[name]) for name in ("value", "built")}
        env |= dict(zip(("least", "most"), check.bounds if check else (0, 0), strict=True))
    elif isinstance(value, str) and isinstance(built, str):
        env |= {"value": value.lower(), "built": built.lower()}
    return str(one.of(env))


def has_bounds(check: Validation | None) -> bool:
    """Whether a cell accepts numbers between two bounds."""
    return check is not None and check.source is None and check.kind is not None and check.kind.holds != "text"


def bound_display(check: Validation, display: Display) -> Display:
    """How the bounds of an input are shown: days and shares as the input is."""
    return display if display.percent else DATE if check.kind and check.kind.what == "date" else BOUND


def place_in_list(value: Expr, check: Validation) -> Expr:
    """Where a choice stands in its list."""
    return Expr(f"MATCH({value.text},{check.source},0)")


def beside(sheet: str, row: int, column: int) -> Expr:
    """A cell of the same row, as a formula that runs down the column names it."""
    return Ref(sheet, row, column, None, lock="column").expr(sheet)

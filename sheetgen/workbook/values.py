"""What the cell of an input may hold: a number, a text or a date, and never what stands there by mistake."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

from sheetgen.errors import shown
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.scenario.override_kinds import TABLES, input_kind
from sheetgen.workbook.cells import Cell, is_number

_NUMBERS = re.compile(r"(context|tier|output|tpot_ms|ttft_ms)_.*")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # tab and line breaks may stand in a cell
_KIND = {"n": "number", "s": "text", "b": "yes or no", "d": "date", "e": "error"}
OPEN_AND_SAVE = "Open the workbook in Excel or LibreOffice, save it once, and try again."


def input_holds(name: str, number_format: str) -> str:
    """What an input takes (number, text, date), as far as it is known by its name or its format; or any."""
    if name == "headline_workload":
        return "text"
    kind = BY_NAME[name].kind if name in BY_NAME else input_kind(name)
    if kind is not None:
        return kind.holds
    return "number" if _NUMBERS.fullmatch(name) else _by_format(number_format)


def column_holds(table: str, column: str, number_format: str) -> str:
    """The same for a table's column."""
    kind = TABLES.get(table, {}).get(column)
    return kind.holds if kind else _by_format(number_format)


def _by_format(number_format: str) -> str:
    if number_format in ("General", "@"):
        return "text" if number_format == "@" else "any"
    return "date" if re.search(r"y{2}", number_format, re.IGNORECASE) else "number"


def value_of(found: Cell, holds: str, from_1904: bool = False) -> tuple[Any, str]:
    """The value that a cell gives, and "" or what is wrong with it. A blank cell gives None."""
    value = found.value
    if value is None:
        return None, f"holds a formula without a value. {OPEN_AND_SAVE}" if found.formula is not None else ""
    if found.kind == "e":
        return None, f"holds the error {shown(value)}. Mend it, or type a value."
    if isinstance(value, str):
        if _CONTROL.search(value):
            return None, f"holds a control character in {shown(value)!r}. Type it anew."
        if not value.strip():
            return None, ""
    if holds == "date":
        return _date(value, from_1904)
    if holds == "number":
        if not is_number(value):
            return None, f"holds {_described(found)}, where a number belongs. Type a number."
        return (value, "") if math.isfinite(value) else (None, f"holds {value}, which is no number. Type a number.")
    if holds == "text" and is_number(value):
        return f"{value:.15g}", ""  # a name of digits alone
    if holds == "text" and not isinstance(value, str):
        return None, f"holds {_described(found)}, where a text belongs. Type a text."
    return value, ""


def _described(found: Cell) -> str:
    text = found.value.isoformat() if hasattr(found.value, "isoformat") else found.value
    return f"the {_KIND.get(found.kind, 'value')} {shown(text)!r}"


def _date(value: Any, from_1904: bool) -> tuple[Any, str]:
    if isinstance(value, datetime.date):
        return value, ""
    if is_number(value) and 0 < value < 2_958_466:
        zero = datetime.date(1904, 1, 1) if from_1904 else datetime.date(1899, 12, 30)
        return zero + datetime.timedelta(days=int(value)), ""
    try:
        return datetime.date.fromisoformat(str(value).strip()), ""
    except ValueError:
        return None, f"holds {shown(value)!r}, where a date belongs. Type a date such as 2026-11-20."

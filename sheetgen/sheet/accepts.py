"""What a yellow cell accepts: what `build` and `pull` accept, so that all say no to the same values."""

from __future__ import annotations

from sheetgen.scenario.parse import MOST, Kind
from sheetgen.sheet.model import Validation

PRECISIONS = "list_precision"  # the defined name of the precisions, without auto
AND_AUTO = "list_dtype"  # of the same with auto
MOST_MESSAGE, MOST_TITLE = 225, 32  # characters that Excel allows


def accepts(kind: Kind, title: str, about: str = "") -> Validation:
    """What a cell of that kind accepts; `about` is said after it."""
    blank = " Blank: none." if kind.blank and "Blank:" not in about else ""
    message = f"{_said(kind)}{blank}{' ' if about else ''}{about}"
    message = message if len(message) <= MOST_MESSAGE else f"{_said(kind)}{blank}"
    title = title if len(title) <= MOST_TITLE else title[: MOST_TITLE + 1].rpartition(" ")[0]
    return Validation(title, message, {"dtype": PRECISIONS, "auto dtype": AND_AUTO}.get(kind.what), kind)


def _said(kind: Kind) -> str:
    """`Kind` in a sentence; bounds that nobody meets are left out."""
    if kind.what == "share":
        return f"A share {'above' if kind.low else 'from'} 0% and up to 100%."
    if kind.what == "auto dtype":
        return "auto or one of the precisions below."
    if kind.what == "currency":
        return "Its three letters, such as EUR."
    if kind.is_whole and (kind.low, kind.high) == (0, 1):
        return "0 or 1."
    if kind.is_number and kind.high >= MOST:
        return f"A {'whole ' if kind.is_whole else ''}number, {kind.low:,g} or more."
    text = str(kind)
    return f"{text[0].upper()}{text[1:]}."

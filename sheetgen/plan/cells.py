"""Cells and columns of the plan's tables."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sheetgen.report.page import NONE, Cell, Column, Text, joined
from sheetgen.units import USD, Display

Heads = tuple[str | Column, ...]
Rows = list[tuple[Text, ...]]


def number(head: str) -> Column:
    return Column(head, right=True)


def cell(value: float | None, display: Display) -> Cell:
    return NONE if value is None or math.isnan(float(value)) else Cell(float(value), display)


def usd(value: float | None) -> Cell:
    return cell(value, USD)


def phrase(between: str, parts: Iterable[Text]) -> Text:
    """The parts that say something, one after another; "" where none does."""
    return joined(between, [part for part in parts if part]) or ""

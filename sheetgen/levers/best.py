"""Which levers a reader sees first: those that save most, one of each family and load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from sheetgen.levers.lever import Lever

ANOTHER_MODEL = "model"  # a family that no ranking by dollars holds: quality is not compared


def rank(lever: Lever) -> float:
    """Sorts levers: what makes a load fit comes first, then by dollars saved, where 12 digits tell them apart."""
    return -math.inf if lever.now_fits else -float(f"{lever.saved_usd or 0.0:.12g}")


def in_order(levers: Iterable[Lever]) -> list[Lever]:
    """The levers that have a price, those that save most first; where they tie, as the catalog has them."""
    return sorted((one for one in levers if one.priced), key=rank)


def best(by_row: Mapping[int, Sequence[Lever]], count: int) -> list[tuple[int, Lever]]:
    """The `count` best levers of some loads, with their rows: one of each family and load, none that costs more.

    Where fewer save anything, those that change nothing follow: that they do not is worth knowing. Another model is
    never among them.
    """
    order = {
        (row, place): (rank(one), place)
        for row, levers in by_row.items()
        for place, one in enumerate(levers)
        if one.priced and one.family != ANOTHER_MODEL and rank(one) <= 0
    }
    chosen: dict[tuple[int, str], tuple[int, Lever]] = {}
    for row, place in sorted(order, key=lambda key: order[key]):
        lever = by_row[row][place]
        chosen.setdefault((row, lever.family), (row, lever))
    return list(chosen.values())[:count]

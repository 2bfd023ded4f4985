"""The choice for loads among offers: the steps of `sizing.choice` on a grid of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy

from sheetgen.program.declared import Again
from sheetgen.program.grid import Column, Grid
from sheetgen.program.sheet_program import AGAIN, CHOICE, CHOSEN, RATE

Picks = list[tuple["Pick", "Pick"] | None]  # by load the chosen and the cheapest; None where nothing holds it


class Pick(NamedTuple):
    """The candidate chosen for a load: its offer, the number of instances, and $ a month."""

    offer: int
    n_instances: int
    usd: float


def pick(grid: Grid, among: Column | bool = True, loads: str = "load") -> Picks:
    """By load, the offer chosen and the cheapest one; None where no offer holds the load in time.

    among: which offers take part, for all loads or each. loads: the axis of the loads.
    """
    chosen = grid.again({})
    chosen.put((loads, "offer") if numpy.ndim(among) > 1 else ("offer",), {"among": among})
    chosen.work_out(CHOICE.along({"load": (loads,)}))
    return picks_of(chosen, loads)


def with_other_requests(
    grid: Grid, rows: Sequence[int], at_once: Sequence[float], arriving: Sequence[float], among: Column | bool = True
) -> Grid:
    """The grid for these loads, given by their rows, with other requests: so many at once or, for a rate, so many a
    second. Where no load of the grid is a rate, none of these may be. among: as in `pick`."""
    other = grid.along("chosen", {"load": rows})
    rates = {RATE: arriving} if RATE in other.columns else {}
    other.put(("chosen",), {"concurrent_requests": at_once, **rates})
    other.put(("chosen", "offer") if numpy.ndim(among) > 1 else (), {"among": among})
    return other.read_again(AGAIN.again("of_other_requests"), AGAIN)


def picks_of(chosen: Grid, loads: str = "load") -> Picks:
    """By load, the offer chosen and the cheapest one, from a grid in which the steps of the choice are worked out.

    loads: the axis of the loads.
    """
    columns = chosen.table(loads)
    usd, cheapest_usd, instances = (columns[name] for name in ("chosen_usd", "cheapest_usd", "fewest_instances"))
    positions, cheapest = columns["chosen_position"], columns["cheapest_position"]
    months = chosen.spread("instance_month_usd", ("offer",))
    picks: Picks = [None] * len(usd)
    for row in numpy.flatnonzero(~numpy.isnan(usd)).tolist():
        first = int(cheapest[row]) - 1
        least = Pick(first, round(float(cheapest_usd[row]) / float(months[first])), float(cheapest_usd[row]))
        picks[row] = Pick(int(positions[row]) - 1, int(instances[row]), float(usd[row])), least
    return picks


class Chances:
    """How sure each pick is to serve its load, worked out for all loads when one is first asked for.

    grid: as `with_other_requests` gives it.
    """

    def __init__(self, grid: Grid, picks: Picks) -> None:
        self._grid, self._picks = grid, picks

    def of(self, place: int) -> float:
        """The chance for the load in this place, for which something was picked."""
        return self._by_place[place]

    @cached_property
    def _by_place(self) -> dict[int, float]:
        offers = {place: pair[0].offer for place, pair in enumerate(self._picks) if pair is not None}
        picked = self._grid.along("picked", {"chosen": list(offers), "offer": list(offers.values())})
        tables = (table for table in CHOSEN.tables if not isinstance(table, Again))
        picked.work_out(*(replace(table, axes=("picked",)) for table in tables))
        return dict(zip(offers, map(float, picked.spread("chance", ("picked",))), strict=True))

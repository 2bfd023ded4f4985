"""What is chosen for loads among offers: the steps of `sizing.choice` on a grid of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from sheetgen.program.grid import Grid
from sheetgen.program.sheet_program import AGAIN, CHOICE, RATE

Picks = list[tuple["Pick", "Pick"] | None]


class Pick(NamedTuple):
    """The chosen of a load's candidates: its offer, how many of its instances, and $ a month."""

    offer: int
    n_instances: int
    usd: float


def pick(grid: Grid, among: Any = True, loads: str = "load") -> Picks:
    """By load the chosen of its offers and the very cheapest, or nothing where no offer holds it in time.

    among: which offers take part, for all loads or each. loads: the axis of the loads.
    """
    chosen = grid.again({})
    chosen.put((loads, "offer") if numpy.ndim(among) > 1 else ("offer",), {"among": among})
    chosen.work_out(CHOICE.along({"load": (loads,)}))
    return picks_of(chosen, loads)


def with_other_requests(
    grid: Grid, rows: Sequence[int], at_once: Sequence[float], arriving: Sequence[float], among: Any = True
) -> Grid:
    """The grid in which loads, by their rows, are chosen for with other requests: so many at once, or of a rate so many
    a second. Where no load of the grid is a rate, none of these may be. among: as in `pick`."""
    other = grid.along("chosen", {"load": rows})
    rates = {RATE: arriving} if RATE in other.columns else {}
    other.put(("chosen",), {"concurrent_requests": at_once, **rates})
    other.put(("chosen", "offer") if numpy.ndim(among) > 1 else (), {"among": among})
    return other.read_again(AGAIN.again("of_other_requests"), AGAIN)


def picks_of(chosen: Grid, loads: str = "load") -> Picks:
    """The same, where the steps of the choice are worked out."""
    found = chosen.table(loads)
    usd, cheapest_usd, instances = (found[name] for name in ("chosen_usd", "cheapest_usd", "fewest_instances"))
    positions, cheapest = found["chosen_position"], found["cheapest_position"]
    months = chosen.spread("instance_month_usd", ("offer",))
    picks: Picks = [None] * len(usd)
    for row in numpy.flatnonzero(~numpy.isnan(usd)).tolist():
        first = int(cheapest[row]) - 1
        least = Pick(first, round(float(cheapest_usd[row]) / float(months[first])), float(cheapest_usd[row]))
        picks[row] = Pick(int(positions[row]) - 1, int(instances[row]), float(usd[row])), least
    return picks

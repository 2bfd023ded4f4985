"""What one change of a load buys, for `recommend`."""

from __future__ import annotations

from sheetgen.cli.output import table
from sheetgen.levers import Lever, best, levers_of
from sheetgen.recommend import Solution
from sheetgen.sheet.wording import saving

SHOWN = 3


def lever_lines(solved: Solution, row: int) -> list[str]:
    """The three best levers of a load, then another model with a leaner KV cache, where they have a price."""
    levers = levers_of(solved, row)
    shown = [lever for _, lever in best({row: levers}, SHOWN)]
    rows = [cells for lever in shown if (cells := _cells(lever))]
    lines = [table(rows[0], rows[1:])] if rows else []
    for lever in levers:
        if lever.family == "model" and (cells := _cells(lever)):
            lines.append(f"  another model, quality not compared: {', '.join(cell.strip() for cell in cells)}")
    return lines


def _cells(lever: Lever) -> tuple[str, ...]:
    """A lever as the columns of a line; nothing where it has no price."""
    after = lever.after
    if after is None:
        return ()
    saves = saving(lever)
    return (
        f"  {lever.words}",
        f"{after.n_instances:,}x {after.candidate.instance}",
        f"${after.monthly_usd:,.0f} a month",
        f"saves {saves}" if (lever.saved_usd or 0) > 0 else saves,
    )

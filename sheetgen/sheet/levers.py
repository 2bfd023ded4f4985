"""The page's levers: the three changes that save most at the headline load, over all models."""

from __future__ import annotations

from sheetgen.levers import EveryLever, Lever, best
from sheetgen.recommend import Solution
from sheetgen.sheet.fit import headline_rows
from sheetgen.sheet.one_page import LeverLine
from sheetgen.sheet.wording import NONE, money, rent, saved_money, saved_share

SHOWN = 3


def lever_lines(solved: Solution, every_lever: EveryLever) -> tuple[LeverLine, ...]:
    """The lines, the best first; none where no change has a price."""
    chosen = best({row: every_lever[row] for row in headline_rows(solved)}, SHOWN)
    return tuple(_line(solved, row, lever) for row, lever in chosen)


def _line(solved: Solution, row: int, lever: Lever) -> LeverLine:
    name = solved.question.models[solved.question.loads[row].model].model.name
    after = lever.after
    if after is None:
        return LeverLine(name, lever.words, NONE, NONE, saved_money(lever))
    return LeverLine(
        model=name,
        change=lever.words,
        rent=rent(after.n_instances, after.candidate),
        monthly=money(after.monthly_usd),
        saving=saved_money(lever),
        share=saved_share(lever),
    )

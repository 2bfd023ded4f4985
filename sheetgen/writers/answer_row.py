"""How the row of an answer is shared out: the name, what to rent, $ a month, users; how fast has the rest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sheetgen.sheet.one_page import OnePage
from sheetgen.writers.density import Density
from sheetgen.writers.fonts import width_em

LEAST_ANSWER = 15.0  # points: what to rent, what it costs, for how many users
_SHARES = ((0.17, 0.345, 0.17, 0.105), (0.155, 0.33, 0.16, 0.06))  # of the page's width; roomy and compact
_LEAST_PACE = 0.2  # of the page's width: what how fast keeps where what to rent takes more than its share
_PADDING = 7.0  # points, in one_page.css
_BAR = 4.0  # points: the green one at the left


@dataclass(frozen=True)
class Answers:
    """Points: the size of the print, the width of each column, and what the names have."""

    size: float
    widths: tuple[float, ...]

    @property
    def name(self) -> float:
        """The width that the names have."""
        return self.widths[0] - _PADDING


def answers_of(page: OnePage, density: Density, content: float, bold: Path) -> Answers:
    """The density's print, or less where a name or a sum is too long for its column, never below 15 points.

    There the columns of sums and users take what they need: they never break. So does that of what to rent, while
    there is room.
    """
    name, rent, money, users = (share * content for share in _SHARES[density.compact])
    found = [c for c in page.cards if c.fits]
    rents, sums, people, verdicts = (
        max((width_em(text, bold) - 0.02 * len(text) for text in texts), default=0.0)  # set that much closer
        for texts in (
            [c.rent for c in found], [c.monthly for c in found], [c.users for c in page.cards],
            [c.rent for c in page.cards if not c.fits],
        )
    )  # fmt: skip
    pairs = ((rents, rent), (sums, money), (people, users), (verdicts, rent + money))  # a verdict has both columns
    fitting = [(width - _PADDING) / ems for ems, width in pairs if ems > 0]
    size = max(LEAST_ANSWER, min([density.answer, *fitting]))
    money, users = max(money, sums * size + _PADDING), max(users, people * size + _PADDING)
    most = content * (1 - _LEAST_PACE) - name - money - users
    return Answers(size, (name - _BAR, max(rent, min(rents * size + _PADDING, most)), money, users))

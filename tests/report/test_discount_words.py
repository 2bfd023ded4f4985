"""The page's words about prices: a discount is said where there is one, and nothing is said where there is none."""

from __future__ import annotations

import pytest
from answers import record_for
from solved_pages import catalog

from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.question.sheet_question import ask
from sheetgen.report import notes
from sheetgen.report.wording import price_class

SMALL = {"models": "70b", "workloads": "chat", "tiers": "32", "as_of": "2026-11-20"}


def answered(**options: str) -> Solution:
    return solve(ask(catalog(), {**SMALL, **options}))


def test_of_which_prices() -> None:
    assert price_class("on-demand", 0) == "on-demand"
    assert price_class("spot", 0.2) == "spot less 20%" and price_class("spot", 0.125) == "spot less 12.5%"


@pytest.mark.parametrize(
    ("options", "banner"),
    [
        ({}, "on-demand prices, the oldest"),
        ({"discount_fraction": "0.2"}, "on-demand prices less 20%, the oldest"),
        ({"purchase": "reserved-3yr"}, "reserved-3yr prices, the oldest"),
        ({"purchase": "reserved-3yr", "discount_fraction": "0.075"}, "reserved-3yr prices less 7.5%, the oldest"),
    ],
)
def test_the_date_line(options: dict[str, str], banner: str) -> None:
    assert notes.price_banner(answered(**options).question, 180, "2026-06-18").startswith(banner)


def test_the_table_of_instances_has_list_prices_and_says_so() -> None:
    listed, less = answered(), answered(discount_fraction="0.2")
    first, second = (notes.instance_rows(record_for(solved, ()), solved.question, 180) for solved in (listed, less))
    assert first == second
    assert notes.left_out(less.question) == notes.left_out(listed.question)
    assert not notes.discounted(listed.question) and "20% less" in notes.discounted(less.question)

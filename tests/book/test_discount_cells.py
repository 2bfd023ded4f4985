"""Yellow cells of discounts by provider and purchase class: typed into a workbook they give what the option gives."""

from __future__ import annotations

from pathlib import Path

import books
import pytest
from books import Sheets, differences
from recalculation import values_after
from workbook_cells import PRICES_SHEET, CellValue, ErrorValue, areas

from sheetgen.answer.solve import solve
from sheetgen.question.sheet_question import Question, ask
from sheetgen.units import PURCHASES

CASES = [
    ({"in_discount_of_aws": 0.4}, "aws=0.4"),
    ({"in_discount_fraction": 0.05, "in_discount_of_azure": 0.5, "in_discount_of_on_demand": 0.1,
      "in_discount_of_azure_on_demand": 0.6, "in_discount_of_gcp_on_demand": 0},
     "0.05,azure=0.5,on-demand=0.1,azure:on-demand=0.6,gcp:on-demand=0"),
    ({"in_purchase": "reserved-1yr", "in_discount_of_azure_reserved_1yr": 0.7, "in_discount_of_reserved_1yr": 0.02},
     "azure:reserved-1yr=0.7,reserved-1yr=0.02"),
]  # fmt: skip


@pytest.mark.some(1)
@pytest.mark.parametrize(("typed", "option"), CASES, ids=[option for _, option in CASES])
def test_an_edit_gives_what_the_option_gives(
    typed: dict[str, CellValue], option: str, lean_book: tuple[Path, Question]
) -> None:
    path, _ = lean_book
    by_place = values_after(path, typed)
    options = {**books.SMALL, "discount_fraction": option, "purchase": typed.get("in_purchase")}
    solved = solve(ask(books.catalog(), options))
    n, wrong = differences(by_place, Sheets(path), solved)
    assert n > 100 and not wrong, wrong[:5]
    assert not [place for place, value in by_place.items() if isinstance(value, ErrorValue)]
    assert books.expected(solved) != books.expected(solve(ask(books.catalog(), {**options, "discount_fraction": "0"})))


@pytest.mark.long
def test_what_is_in_force_is_what_python_says(tmp_path: Path) -> None:
    """Beside a provider of the reader's own, who has what holds for all others."""
    option = "0.05,aws=0.1,spot=0.2,aws:spot=0"
    options = {**books.SMALL, "tiers": "32", "discount_fraction": option}
    path, question = books.build(tmp_path, "less", options, with_decision=False)
    sheets = Sheets(path)
    by_place = values_after(path, {sheets.at(PRICES_SHEET, sheets.spare(), "Provider"): "acme"})
    rows = ["-", *dict.fromkeys(row.provider for row in question.rows)]
    for purchase in PURCHASES:
        area = areas(path)[f"tbl_discounts_{purchase.replace('-', '_')}"]
        assert [by_place[place] for place in area] == [question.discount(provider, purchase) for provider in rows]
    assert by_place[sheets.at(PRICES_SHEET, sheets.spare(), "Discount in use")] == 0.05

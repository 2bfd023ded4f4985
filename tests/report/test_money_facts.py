"""Money in words, per model at the headline load."""

from __future__ import annotations

import re

from answers import record_for
from option_values import OptionValue
from solved_pages import catalog

from sheetgen.answer import ways_to_pay
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.question.sheet_question import ask
from sheetgen.report.build_page import facts_of
from sheetgen.report.page import NONE, MoneyFacts

P5 = {"models": "70b", "workloads": "rag", "tiers": "32", "instances": "aws/p5.48xlarge", "as_of": "2026-11-20"}


def solved(**options: OptionValue) -> Solution:
    return solve(ask(catalog(), {**P5, **options}))


def facts(**options: OptionValue) -> MoneyFacts:
    answer = solved(**options)
    return facts_of(answer.question, record_for(answer).cells[0])


def test_a_model_by_hand() -> None:
    money = facts()
    assert str(money.per_user) == "$87.35 per user"  # of 460 people
    assert money.owned == "8× H100 SXM: $8,640 to $11,720" and not money.capex_is_old
    assert re.findall(r"\d+%", str(money.break_even)) == ["24%", "22%", "29%"]
    assert money.budget == NONE


def test_tokens_are_said_at_their_utilization() -> None:
    money = facts(utilization=0.35)
    units = ways_to_pay.unit_costs(solved(utilization=0.35), 0)
    assert money.per_million_tokens == (
        f"${units['usd_per_million_input_tokens']:.2f} prompt, ${units['usd_per_million_output_tokens']:.2f} answer "
        "per million tokens at 35% utilization"
    )


def test_a_budget_of_its_own() -> None:
    money = facts(contingency_fraction=0.1, currency="EUR", fx_rate=0.92)
    assert str(money.budget).startswith("EUR 40,661 a month, EUR 487,936 a year")
    assert "USD 42,188" in str(facts(contingency_fraction=0.05).budget)


def test_a_quote_and_an_old_price() -> None:
    quoted = facts(capex_usd_per_gpu=39_375)
    assert quoted.owned == "8× H100 SXM: $8,756" and "(" not in str(quoted.break_even)
    assert facts(as_of="2027-03-01").capex_is_old and not facts(as_of="2027-03-01", capex_usd_per_gpu=1).capex_is_old


def test_a_high_price_that_never_pays() -> None:
    assert facts(discount_fraction=0.73).break_even == (
        "cheaper than renting on demand above 89% of the hours (80% to never)"
    )


def test_renting_that_always_pays() -> None:
    money = facts(capex_usd_per_gpu=1_000_000)
    assert str(str(money.break_even)).startswith("renting on demand is cheaper at any use (owning costs ")


def test_nothing_is_said_where_nothing_fits() -> None:
    money = facts(models="405b", instances="aws/g6e.xlarge")
    assert {money.owned, money.break_even, money.per_user, money.per_million_tokens} == {NONE}
    assert facts(instances="azure/Standard_NC80adis_H100_v5", workloads="chat", tiers="1").owned == NONE

"""A cheaper way that is less sure than the answer hides none that is as sure; and the best way has the same answers."""

from __future__ import annotations

from typing import Any

import pytest

from sheetgen.api import recommend

RAG = {"input_tokens": 15_360, "output_tokens": 1024, "as_of": "2026-11-30"}


def answered(**asked: object) -> Any:
    [cell] = recommend(**RAG, **asked)["cells"]
    return cell


def of_kind(ways: list[Any], kind: str) -> Any:
    [way] = [way for way in ways if way["kind"] == kind]
    return way


def rented(way: Any) -> tuple[Any, ...]:
    return way["instance"], way["n_instances"], round(way["monthly_usd"], 4)


def test_what_nobody_asked_for_is_offered_as_sure_as_the_answer() -> None:
    """It is what is rented there by itself at the confidence as which the answer's chance is said."""
    cell = answered(model="70b", users=20)
    less_sure, as_sure = of_kind(cell["pay_less"], "provider"), of_kind(cell["as_sure"], "provider")
    assert less_sure["chance"] < 0.95 < cell["chance"] and as_sure["chance"] >= 0.95
    assert less_sure["monthly_usd"] < as_sure["monthly_usd"] < cell["monthly_usd"]
    there = answered(model="70b", users=20, confidence=0.95, providers="lambda")
    assert rented(as_sure) == rented(there)


def test_a_term_is_offered_as_sure_as_the_answer() -> None:
    cell = answered(model="8b", users=100)
    less_sure, as_sure = of_kind(cell["pay_less"], "term"), of_kind(cell["as_sure"], "term")
    assert less_sure["chance"] < 0.85 <= cell["chance"] < 0.9 and as_sure["chance"] >= 0.85
    there = answered(model="8b", users=100, confidence=0.85, purchase="reserved-3yr")
    assert rented(as_sure) == rented(there)
    assert as_sure["commits_usd"] == pytest.approx(36 * as_sure["monthly_usd"], rel=1e-9)
    assert rented(cell["cheapest_same"]) == rented(as_sure)


def test_the_best_way_keeps_answers_certainty_and_hours() -> None:
    """Of 640 people three years cost less than one, and more than working hours."""
    cell = answered(model="70b", users=640)
    best, hours = cell["cheapest_same"], of_kind(cell["pay_less"], "hours")
    assert best["kind"] == "term" and best["chance"] >= 0.8 and not cell["as_sure"]
    assert hours["monthly_usd"] < best["monthly_usd"] < min(way["monthly_usd"] for way in cell["other_terms"])
    assert best["commits_usd"] == pytest.approx(36 * best["monthly_usd"], rel=1e-9)
    bound = answered(model="70b", users=640, purchase="reserved-3yr")
    assert bound["cheapest_same"] is None

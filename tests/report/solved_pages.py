"""Questions answered and drawn as pages, for the tests of the page."""

from __future__ import annotations

from functools import cache

from answers import page_for
from option_values import OptionValue

from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask
from sheetgen.report.page import Page, formatted

THREE = "8b,70b,405b"
FIVE = "8b,70b,405b,qwen3.6-27b,gpt-oss-120b"
AS_OF = "2026-11-20"
CENTRAL = {"weight_dtype": "published", "confidence": "0.5"}  # of each model's own weights, predictions at their word
MEMORY = {"tpot_ms": "off", "ttft_ms": "off"}  # size set by memory, as the question without targets


@cache
def catalog() -> Catalog:
    return Catalog()


@cache
def answered(models: str = THREE, **options: OptionValue) -> Solution:
    return solve(ask(catalog(), {"models": models, "as_of": AS_OF, **CENTRAL, **options}))


@cache
def page(models: str = THREE, **options: OptionValue) -> Page:
    """The page with the texts of its cells."""
    shown: Page = formatted(page_for(answered(models, **options)))
    return shown

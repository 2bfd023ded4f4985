"""Pages of up to eight models for the tests of the writers: real answers, some of their models renamed."""

from __future__ import annotations

from functools import cache
from typing import Any

from answers import printed_page

from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask
from sheetgen.report.page import Cell, Page, with_parts

MODELS = (
    "llama-3.1-8b",
    "llama-3.1-70b",
    "llama-3.1-405b",
    "qwen3.6-27b",
    "gpt-oss-120b",
    "deepseek-v3",
    "qwen3-30b-a3b",
    "nemotron-3-nano-30b-a3b",
)


@cache
def _answered(n_models: int, paper: str, **more: str) -> Page:
    asked = {"models": ",".join(MODELS[:n_models]), "paper": paper, "as_of": "2026-11-20", **more}
    return printed_page(solve(ask(Catalog(), asked)))


def page_of(n_models: int, paper: str = "a4", names: dict[str, str] | None = None, **more: str) -> Page:
    """The page of the first `n_models` models, some of them renamed; more: options of `build`."""

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            return (names or {}).get(value, value)
        if isinstance(value, Cell):
            return Cell(renamed(value.value), value.display, tuple(map(renamed, value.parts)))
        return with_parts(value, renamed)

    page: Page = renamed(_answered(n_models, paper, **more))
    return page

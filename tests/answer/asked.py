"""Questions answered with their levers, for the tests of levers: each is solved once."""

from __future__ import annotations

from functools import cache
from typing import Any

from option_values import Options, OptionValue

import sheetgen
from sheetgen.answer.levers import EveryLever, Lever, levers_of_sheet
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask

AS_OF = "2026-11-20"
THREE = "8b,70b,405b"
FAMILIES = "llama-3.1-8b,gemma-3-27b,qwen3.6-27b,gpt-oss-120b,deepseek-v3"
# Weights as published, for which FP8 is a change, and an even chance, at which speeds are those predicted.
STATED: Options = {"weight_dtype": "published", "confidence": 0.5, "as_of": AS_OF}


@cache
def catalog() -> Catalog:
    return Catalog()


@cache
def answered(models: str = THREE, **options: OptionValue) -> Solution:
    return solve(ask(catalog(), {"models": models, **STATED, **options}))


@cache
def every(models: str = THREE, **options: OptionValue) -> EveryLever:
    return levers_of_sheet(answered(models, **options))


@cache
def load(model: str, context: str = "16k", users: int = 32, **options: OptionValue) -> Solution:
    """One load, as `sheetgen.recommend` asks it."""
    asked = {"models": model, "context_tokens": context, "concurrent_requests": users}
    return solve(ask(catalog(), {**asked, **STATED, **options}))


@cache
def of_load(model: str, context: str = "16k", users: int = 32, **options: OptionValue) -> dict[str, Lever]:
    """The levers of one load by their ids, without further steps."""
    (levers,) = levers_of_sheet(load(model, context, users, **options))
    return {lever.id: lever for lever in levers if not lever.further}


def alone(**options: OptionValue) -> dict[str, Any]:
    """The answer of `recommend` to a question that is asked for itself."""
    stated: Options = {**STATED, **options}
    return sheetgen.recommend(catalogs=(), **stated)


def same(lever: Lever, answer: dict[str, Any]) -> bool:
    """True where a lever's answer is the same as that of a question of its own."""
    after = lever.after
    if after is None or answer["monthly_usd"] is None:
        return after is None and answer["monthly_usd"] is None
    return (after.candidate.instance, after.n_instances, after.n_gpus, after.monthly_usd) == (
        answer["instance"],
        answer["n_instances"],
        answer["n_gpus"],
        answer["monthly_usd"],
    )

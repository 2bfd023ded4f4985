"""Fewer bits: FP8 KV cache, FP8 weights, both, and FP4 weights where a candidate runs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sheetgen.levers.ask_again import Change
from sheetgen.levers.facts import Facts
from sheetgen.levers.lever import Lever
from sheetgen.levers.plan import Planned
from sheetgen.recommend import Solution
from sheetgen.scenario.question import SheetModel
from sheetgen.units import DTYPES

FP8 = "fp8"
FP4 = ("nvfp4", "mxfp4")  # the first wins where both cost the same
KV, WEIGHTS = "KV cache", "weights"


def precisions(solved: Solution, row: int, facts: Facts) -> Iterator[Planned]:
    """The levers of a load that lower a precision; both FP4 formats are asked for, and `one_fp4` keeps the better."""
    question = solved.question
    model = question.models[question.loads[row].model]
    kv = _why_not_kv(solved, model, FP8, facts)
    weights = _why_not_weights(solved, model, FP8, facts)
    yield _planned("fp8-kv-cache", row, model, kv, kv_cache_dtype=FP8)
    yield _planned("fp8-weights", row, model, weights, weight_dtype=FP8)
    yield _planned("fp8-both", row, model, kv or weights, kv_cache_dtype=FP8, weight_dtype=FP8)
    for dtype in FP4:
        why_not = _why_not_weights(solved, model, dtype, facts)
        yield _planned("fp4-weights", row, model, why_not, weight_dtype=dtype)


def _planned(lever: str, row: int, model: SheetModel, why_not: str, **dtypes: str) -> Planned:
    other = replace(model, **dtypes)  # type: ignore[arg-type]
    changed = [
        f"{what} {before} to {after}"
        for what, before, after in (
            (WEIGHTS, model.weight_dtype, other.weight_dtype),
            (KV, model.kv_cache_dtype, other.kv_cache_dtype),
        )
        if before != after
    ]
    words = f"{dtypes['weight_dtype'].upper()} weights" if lever == "fp4-weights" else ""
    if why_not:
        return Planned(lever, row, words=words, why_not=why_not)
    return Planned(lever, row, Change(row, model=other), words=words, changed=", ".join(changed))


def _why_not_kv(solved: Solution, model: SheetModel, dtype: str, facts: Facts) -> str:
    if DTYPES[model.kv_cache_dtype].kv_bytes <= DTYPES[dtype].kv_bytes:
        return f"the KV cache is {model.kv_cache_dtype} already"
    if lacks := facts.engine_lacks(solved.question.engine, KV, dtype):
        return lacks
    runs = any(dtype in gpu.kv_run for gpu in solved.question.gpus)
    return "" if runs else f"no candidate's GPU keeps a KV cache in {dtype}"


def _why_not_weights(solved: Solution, model: SheetModel, dtype: str, facts: Facts) -> str:
    if DTYPES[model.weight_dtype].linear_bytes <= DTYPES[dtype].linear_bytes:
        return f"the weights are {model.weight_dtype} already"
    if lacks := facts.engine_lacks(solved.question.engine, WEIGHTS, dtype):
        return lacks
    runs = any(dtype in gpu.weights_run for gpu in solved.question.gpus)
    return "" if runs else f"no candidate's GPU runs {dtype} weights"


def one_fp4(first: Lever, second: Lever) -> Lever:
    """The better of two FP4 formats; the first where they tie, or where neither applies."""
    if second.after is None or first.after is None:
        return second if first.after is None and second.after is not None else first
    return second if second.after.monthly_usd < first.after.monthly_usd else first

"""Levers that ask for less: fewer bits, a shared prefix, fewer tokens, fewer users, and the next step down of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

import numpy

from sheetgen.catalog.hardware import Workload
from sheetgen.formula import round_down, same_money
from sheetgen.levers.lever import Lever, Rented
from sheetgen.levers.plan import Change, Facts, Loads, Planned
from sheetgen.recommend import Solution, short_tokens
from sheetgen.scenario.question import SheetModel
from sheetgen.units import DTYPES, PERCENT

FP8 = "fp8"
FP4 = ("nvfp4", "mxfp4")  # the first wins where both cost the same
KV, WEIGHTS = "KV cache", "weights"


def precisions(solved: Solution, row: int, facts: Facts) -> Iterator[Planned]:
    """The levers of a load that lower a precision; both FP4 formats are tried, and `one_fp4` keeps the better."""
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


LEAST_CONTEXT = 2  # tokens: one of the prompt, one of the answer


def smaller_loads(solved: Solution, row: int, facts: Facts) -> Iterator[Planned]:
    """The levers of a load that ask for less by a stated share."""
    yield _prefix(solved, row, facts)
    cell = solved.question.loads[row]
    workload = solved.question.workloads[cell.workload]
    shorter = int(round_down(workload.context_tokens * facts.context_fraction))
    if shorter < LEAST_CONTEXT:
        yield Planned("half-context", row, why_not="no shorter context has room for a prompt and an answer")
    else:
        yield at_context("half-context", row, workload, shorter)
    fewer = int(round_down(cell.concurrent_requests * (1 - facts.fewer_users_fraction)))
    if fewer < 1:
        yield Planned("fewer-users", row, why_not="one request in flight is the least")
    else:
        yield at_requests("fewer-users", row, cell.concurrent_requests, fewer)


def _prefix(solved: Solution, row: int, facts: Facts) -> Planned:
    settings, share = solved.question.settings, facts.prefix_hit_fraction
    words = f"prefix cache, {PERCENT.text(share)} hits"
    if settings.prefix_cache_hit_fraction >= share:
        why_not = f"{PERCENT.text(settings.prefix_cache_hit_fraction)} hits are counted already"
    elif settings.kv_reserved:
        why_not = "reserved KV keeps the longest context of each request, whatever they share"
    elif facts.not_run is not None and not facts.not_run.shared_prefix:
        why_not = f"requests share no cache on {solved.question.engine.name}: {facts.not_run.instead}"
    else:
        before = PERCENT.text(settings.prefix_cache_hit_fraction)
        changed = f"prompt tokens found in the prefix cache {before} to {PERCENT.text(share)}"
        other = replace(settings, prefix_cache_hit_fraction=share)
        return Planned("prefix-cache", row, Change(row, settings=other), words=words, changed=changed)
    return Planned("prefix-cache", row, words=words, why_not=why_not)


def with_context(workload: Workload, context_tokens: int) -> Workload:
    """A workload at another context: the answer's length stays, the prompt takes the rest, as `--contexts` has it."""
    answer = workload.output_tokens if context_tokens > workload.output_tokens else context_tokens // 2
    prompt = min(workload.input_tokens, context_tokens - answer)
    sizes = {"input_tokens": prompt, "output_tokens": answer}
    if "context" in type(workload).model_fields:  # a load of the user's own, which may leave a part of it unused
        sizes["context"] = context_tokens
    return workload.model_copy(update=sizes)


def at_context(lever: str, row: int, workload: Workload, context_tokens: int) -> Planned:
    """The lever of a load at a shorter context."""
    before, after = _tokens(workload.context_tokens, context_tokens)
    return Planned(
        lever,
        row,
        Change(row, workload=with_context(workload, context_tokens)),
        words=f"context {after}, not {before}",
        changed=f"context {workload.context_tokens:,} to {context_tokens:,} tokens",
    )


def at_requests(lever: str, row: int, before: int, requests: int) -> Planned:
    """The lever of a load with fewer requests in flight than `before`."""
    return Planned(
        lever,
        row,
        Change(row, requests=requests),
        words=f"{requests:,} in flight, not {before:,}",
        changed=f"requests in flight {before:,} to {requests:,} ({PERCENT.text(1 - requests / before)} fewer)",
    )


def _tokens(*counts: int) -> list[str]:
    """128k where all are so many k, else 131,072."""
    short = [short_tokens(count) for count in counts]
    return short if all(one.endswith("k") for one in short) else [f"{count:,}" for count in counts]


CONTEXT_STEPS = 128  # a context is sought in steps of this part of it, in whole blocks: within 0.8 %


def next_steps(loads: Loads, rows: Sequence[int]) -> Iterator[Planned]:
    """Both levers of each load, found by halving: all loads are worked out together in each round."""
    searches = [search for row in rows for search in (_Context(loads.solved, row), _Requests(loads.solved, row))]
    first = [one for one in searches if one.high > 1]
    loads.work_out([one.change(n) for one in first for n in (1, (1 + one.high) // 2)])  # two rounds in one
    _ask(loads, first, [1] * len(first))
    while open_ones := [one for one in searches if one.low and one.high - one.low > 1]:
        _ask(loads, open_ones, [(one.low + one.high) // 2 for one in open_ones])
    for one in searches:
        yield one.planned()


class _Search:
    """A number of steps: `low` of them cost less than the load as it is (0: none was found), `high` do not."""

    lever = ""

    def __init__(self, solved: Solution, row: int, step: int, now: int) -> None:
        self.row, self.step = row, step
        before = Rented.of(solved, row)
        self.monthly_usd = inf if before is None else before.monthly_usd
        self.low, self.high = 0, -(-now // step)  # the first multiple of the step that is not below the load as it is

    def change(self, steps: int) -> Change:
        """The load with so many steps."""
        raise NotImplementedError

    def planned(self) -> Planned:
        raise NotImplementedError


class _Context(_Search):
    lever = "shorter-context"

    def __init__(self, solved: Solution, row: int) -> None:
        question = solved.question
        self.workload = question.workloads[question.loads[row].workload]
        context, block = self.workload.context_tokens, max(LEAST_CONTEXT, question.settings.block_size)
        super().__init__(solved, row, max(block, context // CONTEXT_STEPS // block * block), context)

    def change(self, steps: int) -> Change:
        return Change(self.row, workload=with_context(self.workload, self.step * steps))

    def planned(self) -> Planned:
        if not self.low:
            return Planned(self.lever, self.row, why_not="no shorter context costs less")
        return at_context(self.lever, self.row, self.workload, self.step * self.low)


class _Requests(_Search):
    lever = "users-for-less"

    def __init__(self, solved: Solution, row: int) -> None:
        self.now = solved.question.loads[row].concurrent_requests
        super().__init__(solved, row, 1, self.now)

    def change(self, steps: int) -> Change:
        return Change(self.row, requests=steps)

    def planned(self) -> Planned:
        if not self.low:
            return Planned(self.lever, self.row, why_not="no smaller number of requests costs less")
        return at_requests(self.lever, self.row, self.now, self.low)


def _ask(loads: Loads, searches: Sequence[_Search], steps: Sequence[int]) -> None:
    """Narrow the bounds of each search by what a load of so many steps takes."""
    answers = loads.ask([one.change(n) for one, n in zip(searches, steps, strict=True)])
    after = numpy.array([inf if one is None else one.monthly_usd for one in answers])
    before = numpy.array([one.monthly_usd for one in searches])
    for one, n, is_less in zip(searches, steps, (after < before) & ~same_money(after, before), strict=True):
        if is_less:
            one.low = n
        else:
            one.high = n

"""Where each recommendation breaks: the requests that its hardware holds at every context, by memory alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from sheetgen.estimate import evaluate
from sheetgen.recommend import Columns, Solution, short_tokens
from sheetgen.sheet.fit import Fit, headline_rows, largest_where
from sheetgen.sheet.page import BreakPoint, Breaks, words
from sheetgen.sheet.wording import plural_does, whole
from sheetgen.sizing import kv_cache, parallelism

SHORTEST, SHOWN_TO = 1024, 131_072  # tokens: the axis; longer where a load is
STEPS_PER_DOUBLING = 2
HOLDS = (kv_cache.charged_tokens, kv_cache.charge_bytes, parallelism.sequences)  # as `recommend.solve` has them


def breaks(solved: Solution) -> tuple[Breaks, ...]:
    """One for each model, at the headline load."""
    return tuple(_breaks(solved, row) for row in headline_rows(solved))


def held_per_replica(fit: Fit, contexts: Sequence[int]) -> list[int]:
    """The sequences that one replica of the recommended hardware holds if all have that many tokens."""
    inputs = {i for one in HOLDS for i in one.inputs} - {one.name for one in HOLDS}
    values: Columns = {name: fit.load(name) for name in inputs if name in fit.solved.sequences}
    tokens = numpy.array(contexts, float)
    output = fit.load("context_tokens") - fit.load("input_tokens")
    values |= {
        "context_tokens": tokens, "max_model_len": tokens, "input_tokens": numpy.maximum(tokens - output, 0),
        "pipeline_stages": float(fit.choice.pipeline_parallel_size),
    }  # fmt: skip
    return [int(n) for n in numpy.broadcast_to(evaluate(HOLDS, values)["sequences"], tokens.shape)]


def _breaks(solved: Solution, row: int) -> Breaks:
    question = solved.question
    cell = question.loads[row]
    model = question.models[cell.model].model
    asked = BreakPoint(cell.context_tokens, cell.concurrent_requests)
    fit = Fit.of(solved, row)
    if fit is None:
        nothing = BreakPoint(cell.context_tokens, 0)
        return Breaks(model.name, (), asked, nothing, nothing, solved.choices[row].verdict)
    limit = int(model.max_context_tokens or cell.context_tokens)
    loads = [w.context_tokens for w in question.workloads]
    contexts = _contexts(min(limit, max(SHOWN_TO, *loads)), [c for c in loads if c <= limit])
    replicas = fit.choice.n_replicas
    curve = tuple(BreakPoint(c, n * replicas) for c, n in zip(contexts, held_per_replica(fit, contexts), strict=True))
    held = fit.choice.sequences_per_replica * replicas
    longest = _longest(fit, limit)
    capped = fit.choice.sequences_per_replica == fit.load("max_num_seqs")
    requests_fit = plural_does(cell.concurrent_requests, "request", "fit")
    if longest >= limit:
        longest_fit = words("{} even at the model's {}", requests_fit, short_tokens(limit))
    else:
        longest_fit = words("{} up to {} tokens each", requests_fit, whole(longest))
    return Breaks(
        model=model.name, curve=tuple(p for p in curve if p.requests), asked=asked,
        held=BreakPoint(cell.context_tokens, held), longest=BreakPoint(longest, cell.concurrent_requests),
        next_request=words("request {} {}", whole(held + 1), "waits" if capped else "does not fit"),
        next_short=whole(held + 1), longest_fit=longest_fit, longest_short=whole(longest),
    )  # fmt: skip


def _contexts(longest: int, loads: list[int]) -> list[int]:
    """Contexts evenly spaced on a logarithmic axis, and those of the sheet's loads."""
    shortest = min(SHORTEST, longest, *loads)
    n = int(numpy.ceil(numpy.log2(longest / shortest) * STEPS_PER_DOUBLING)) + 1
    return sorted({*(int(c) for c in numpy.geomspace(shortest, longest, n).round()), *loads})


def _longest(fit: Fit, limit: int) -> int:
    """The longest context that the model allows and at which the hardware still holds the load."""
    n_serving = fit.choice.n_replicas - fit.solved.question.settings.spare_replicas
    needed = -(-int(fit.load("load_requests")) // max(1, n_serving))
    shortest = fit.solved.question.loads[fit.row].context_tokens
    return largest_where(lambda tokens: held_per_replica(fit, [tokens])[0] >= needed, shortest, limit)

"""A smaller load: half the context, a shared prefix in the cache, fewer users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sheetgen.catalog.hardware import Workload
from sheetgen.formula import round_down
from sheetgen.levers.ask_again import Change
from sheetgen.levers.facts import Facts
from sheetgen.levers.plan import Planned
from sheetgen.recommend import Solution, short_tokens
from sheetgen.units import PERCENT

LEAST_CONTEXT = 2  # tokens: one asked, one answered


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

"""The workloads of a sheet: which of the catalog's, and at which contexts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, shown
from sheetgen.scenario import parse
from sheetgen.scenario.override_kinds import name_part


def workloads_of(catalog: Catalog, options: Mapping[str, Any]) -> tuple[Workload, ...]:
    """The workloads asked for, or all of the catalog, at the contexts asked for.

    Raises ScenarioError for a name that is none, and for more than three.
    """
    known = {w.id: w for w in catalog.workloads()}
    names = parse.words(options.get("workloads")) or tuple(known)
    chosen = tuple(known[parse.one_of(name, "workload", known)] for name in names)
    if len({w.id for w in chosen}) != len(chosen) or len(chosen) > 3:
        raise ScenarioError(f"workloads are {shown(','.join(names))!r}. Name up to three, each once.")
    return tuple(_with_contexts(chosen, parse.words(options.get("contexts"))))


def _with_contexts(chosen: tuple[Workload, ...], asked: tuple[str, ...]) -> Iterator[Workload]:
    """The workloads at the contexts asked for (`rag=32k`); the answer's length stays, the prompt takes the rest.

    A context shorter than the answer is refused by `too_long_answers`, once what was typed is known.
    """
    known = {w.id: w for w in chosen}
    wanted: dict[str, int] = {}
    for one in asked:
        name, equals, length = one.partition("=")
        if not equals:
            raise ScenarioError(f"contexts has {shown(one)!r}. Write a workload and its tokens, such as rag=32k.")
        workload = parse.one_of(name, "contexts", known)
        if workload in wanted:
            raise ScenarioError(f"contexts names {workload} twice. Keep one.")
        wanted[workload] = parse.tokens(length, f"context of {workload}")
    for w in chosen:
        context = wanted.get(w.id, w.context_tokens)
        yield sized(w, context, w.output_tokens)


class _Short(Workload):
    """A workload whose context does not hold its answer: only until `too_long_answers` sees it."""

    context: int

    @property
    def context_tokens(self) -> int:
        return self.context


def sized(workload: Workload, context: int, answer: int) -> Workload:
    """`workload` with this context and answer; the prompt takes what the answer leaves."""
    fields = {"input_tokens": max(0, context - answer), "output_tokens": answer}
    if answer <= context:
        return workload.model_copy(update=fields)
    return _Short.model_construct(**{**dict(workload), **fields, "context": context})


def too_long_answers(workloads: Iterable[Workload]) -> Iterator[str]:
    """A line for each answer longer than its context: no prompt would be left, and the hardware too cheap."""
    for w in workloads:
        if w.output_tokens > w.context_tokens:
            yield (
                f"{w.id}: the answer of {w.output_tokens:,} tokens is longer than the context of "
                f"{w.context_tokens:,}, which holds prompt and answer. Lengthen the context, or shorten the answer "
                f"(output_{name_part(w.id)} on Inputs, or of a scenario file's typed inputs)."
            )


def headline_of(text: str | None, workloads: tuple[Workload, ...], tiers: tuple[int, ...]) -> tuple[int, int]:
    """Positions of the headline's workload and tier: RAG at 32 in flight, or the middle of what there is."""
    ids = [w.id for w in workloads]
    usual = tiers.index(32) if 32 in tiers else (len(tiers) - 1) // 2
    if not text:
        return ids.index("rag") if "rag" in ids else 0, usual
    name, _, tier = str(text).partition(":")
    workload = parse.one_of(name, "headline", tuple(ids))
    number = parse.whole(tier, "headline tier", most=1_000_000) if tier else tiers[usual]
    if number not in tiers:
        raise ScenarioError(f"headline is {shown(text)!r}. Its tier must be one of {', '.join(map(str, tiers))}.")
    return ids.index(workload), tiers.index(number)

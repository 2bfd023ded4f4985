"""The workloads of a sheet: which of the catalog's, and at which contexts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, shown
from sheetgen.scenario import parse


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
    """The workloads at the contexts asked for (`rag=32k`); the answer's length stays, the prompt takes the rest."""
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
        output = w.output_tokens if context > w.output_tokens else context // 2
        yield w.model_copy(update={"input_tokens": context - output, "output_tokens": output})


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

"""The loads of a sheet: which of the catalog's workloads, at which contexts, and what a token may take; or one load of
the user's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, shown
from sheetgen.formula import round_up
from sheetgen.scenario import parse
from sheetgen.scenario.amounts import DEFAULTS, OUTPUT_TOKENS
from sheetgen.scenario.inputs import TARGET_MS
from sheetgen.scenario.kinds import name_part

MOST_USERS = 1_000_000_000
OFF = "off"
TARGETS = {"tpot_ms": "tpot_target_ms", "ttft_ms": "ttft_target_ms"}  # option: field of a workload
_EXAMPLE = "Write milliseconds from 0.01 to 3,600,000, or off, for all workloads or by name: 50, or chat=40,rag=off."


def workloads_of(catalog: Catalog, options: Mapping[str, Any]) -> tuple[Workload, ...]:
    """The workloads requested, or all of the catalog, at the contexts requested.

    Raises ScenarioError for a name that is none, and for more than three.
    """
    known = {w.id: w for w in catalog.workloads()}
    names = parse.words(options.get("workloads")) or tuple(known)
    chosen = tuple(known[parse.one_of(name, "workload", known)] for name in names)
    if len({w.id for w in chosen}) != len(chosen) or len(chosen) > 3:
        raise ScenarioError(f"workloads are {shown(','.join(names))!r}. Name up to three, each once.")
    return tuple(_with_contexts(chosen, parse.words(options.get("contexts"))))


def _with_contexts(chosen: tuple[Workload, ...], stated: tuple[str, ...]) -> Iterator[Workload]:
    """The workloads at the contexts requested (`rag=32k`); the answer's length stays, the prompt takes the rest.

    A context shorter than the answer is refused by `too_long_answers`, once overrides are known.
    """
    known = {w.id: w for w in chosen}
    wanted: dict[str, int] = {}
    for one in stated:
        name, equals, length = one.partition("=")
        if not equals:
            raise ScenarioError(f"contexts has {shown(one)!r}. Write a workload and its tokens, such as rag=32k.")
        workload = parse.one_of(name, "contexts", known)
        if workload in wanted:
            raise ScenarioError(f"contexts names {workload} twice. Keep one.")
        wanted[workload] = parse.tokens(length, f"context of {workload}")
    for w in chosen:
        yield sized(w, wanted.get(w.id, w.context_tokens), w.output_tokens)


class _WithContext(Workload):
    """A workload whose input and output do not make up its context: they leave a part of it unused, or do not fit in
    it, until `too_long_answers` sees that."""

    context: int

    @property
    def context_tokens(self) -> int:
        return self.context


def sized(workload: Workload, context: int, answer: int) -> Workload:
    """`workload` with this context and answer; the prompt takes what the answer leaves."""
    fields = {"input_tokens": max(0, context - answer), "output_tokens": answer}
    if answer <= context:
        return workload.model_copy(update=fields)
    return _WithContext.model_construct(**{**dict(workload), **fields, "context": context})


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


def one_workload(options: Mapping[str, Any]) -> tuple[Workload]:
    """The workload behind `context_tokens`, `input_tokens` and `output_tokens`, split as in `size`."""

    def given(name: str, least: int = 0) -> int | None:
        value = options.get(name)
        if value is None:
            return None
        return 0 if str(value).strip() == "0" and least == 0 else parse.tokens(value, name)

    context = given("context_tokens", 1) or int(DEFAULTS["context_tokens"])
    prompt, answer = given("input_tokens"), given("output_tokens")
    if answer is None:
        answer = min(OUTPUT_TOKENS, context // 2) if prompt is None else context - prompt
    prompt = context - answer if prompt is None else prompt
    if min(prompt, answer) < 0 or prompt + answer > context:
        raise ScenarioError(
            f"input_tokens and output_tokens do not fit in the context of {context:,} tokens. Together they "
            f"may be {context:,} at most."
        )
    words = f"{context:,} tokens of context"
    workload = _WithContext.model_construct(
        id="asked", name=words, input_tokens=prompt, output_tokens=answer, about=words, source="the question",
        context=context,
    )  # fmt: skip
    return (workload,)


def requests_in_flight(options: Mapping[str, Any], active_fraction: float) -> tuple[int]:
    """Requests in flight at the peak: users x the share of them that is active, rounded up."""
    users = options.get("users")
    people = 1 if users is None else parse.whole(users, "users", most=MOST_USERS)
    return (int(round_up(people * active_fraction)),)


def with_targets(
    workloads: Sequence[Workload], known: Sequence[Workload], options: Mapping[str, Any]
) -> tuple[Workload, ...]:
    """The workloads with the targets in force: as stated, else the catalog's.

    A load of the user's own takes the targets of the shortest workload of the catalog that reaches its context, or of
    the longest one. Raises ScenarioError for what is no target.
    """
    stated = {option: _stated(options.get(option), option, workloads) for option in TARGETS}
    return tuple(w.model_copy(update=_targets(w, known, stated)) for w in workloads)


def _targets(workload: Workload, known: Sequence[Workload], stated: Mapping[str, Any]) -> dict[str, float | None]:
    like = _like(workload, known)
    defaults = {field: getattr(like, field) if like else None for field in TARGETS.values()}
    return {
        field: stated[option].get(workload.id, stated[option].get("", defaults[field]))
        for option, field in TARGETS.items()
    }


def _like(workload: Workload, known: Sequence[Workload]) -> Workload | None:
    by_length = sorted(known, key=lambda w: w.context_tokens)
    same = next((w for w in by_length if w.id == workload.id), None)
    reaching = (w for w in by_length if w.context_tokens >= workload.context_tokens)
    return same or next(reaching, by_length[-1] if by_length else None)


def _stated(text: Any, option: str, workloads: Sequence[Workload]) -> dict[str, float | None]:
    """By workload (or "" for all) milliseconds, None for off."""
    if text is None:
        return {}
    names = {w.id: w for w in workloads}
    found: dict[str, float | None] = {}
    for part in parse.words(str(text)):
        name, equals, value = part.rpartition("=")
        key = parse.one_of(name, option, names) if equals else ""
        if key in found:
            raise ScenarioError(f"{option} is {shown(text)!r}, which says {key or 'all workloads'} twice. Keep one.")
        found[key] = _milliseconds(value.strip(), part, option)
    if not found:
        raise ScenarioError(f"{option} is {shown(text)!r}. {_EXAMPLE}")
    return found


def _milliseconds(text: str, part: str, option: str) -> float | None:
    if text.lower() == OFF:
        return None
    number = parse.number(text)
    if not (math.isfinite(number) and TARGET_MS.low <= number <= TARGET_MS.high):
        raise ScenarioError(f"{option} is {shown(part)!r}. {_EXAMPLE}")
    return number

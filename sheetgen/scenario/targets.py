"""What a token may take: targets of speed by workload, from the catalog or as asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen.catalog.hardware import Workload
from sheetgen.errors import ScenarioError, shown
from sheetgen.scenario import parse

OFF = "off"
LEAST_MS, MOST_MS = 0.01, 3_600_000
TARGETS = {"tpot_ms": "tpot_target_ms", "ttft_ms": "ttft_target_ms"}  # option: field of a workload
_EXAMPLE = "Write milliseconds from 0.01 to 3,600,000, or off, for all workloads or by name: 50, or chat=40,rag=off."


def with_targets(
    workloads: Sequence[Workload], known: Sequence[Workload], options: Mapping[str, Any]
) -> tuple[Workload, ...]:
    """The workloads with the targets in force: as asked for, else the catalog's.

    A load of the user's own takes the targets of the shortest workload of the catalog that reaches its context, or of
    the longest one. Raises ScenarioError for what is no target.
    """
    asked = {option: _asked(options.get(option), option, workloads) for option in TARGETS}
    return tuple(w.model_copy(update=_targets(w, known, asked)) for w in workloads)


def _targets(workload: Workload, known: Sequence[Workload], asked: Mapping[str, Any]) -> dict[str, float | None]:
    like = _like(workload, known)
    found = {}
    for option, field in TARGETS.items():
        own = asked[option]
        default = getattr(like, field) if like else None
        found[field] = own.get(workload.id, own.get("", default))
    return found


def _like(workload: Workload, known: Sequence[Workload]) -> Workload | None:
    by_length = sorted(known, key=lambda w: w.context_tokens)
    same = next((w for w in by_length if w.id == workload.id), None)
    reaching = (w for w in by_length if w.context_tokens >= workload.context_tokens)
    return same or next(reaching, by_length[-1] if by_length else None)


def _asked(text: Any, option: str, workloads: Sequence[Workload]) -> dict[str, float | None]:
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
    if not (math.isfinite(number) and LEAST_MS <= number <= MOST_MS):
        raise ScenarioError(f"{option} is {shown(part)!r}. {_EXAMPLE}")
    return number

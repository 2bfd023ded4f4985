"""What changed between two sheets, as data: a list for each section."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SECTIONS = {
    "recommendation": "Recommendation at the headline",
    "load": "Load",
    "inputs": "Inputs",
    "prices": "Prices",
    "models": "Models",
    "gpus": "GPUs",
    "precisions": "Precisions",
    "results": "Results of every load",
    "what_if": "What-if and its cases",
}


@dataclass(frozen=True)
class Change:
    """One thing that changed. `name` is for programs, `words` for people; `more` has its figures."""

    name: str
    label: str
    words: str
    before: Any = None
    after: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.label}: {self.words}"

    def data(self) -> dict[str, Any]:
        """The change as JSON has it."""
        values = {"before": _plain(self.before), "after": _plain(self.after)}
        return {"name": self.name, "label": self.label, **values, **_plain(self.more), "words": str(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.isoformat()[:10] if isinstance(value, (datetime.date, datetime.datetime)) else value


@dataclass(frozen=True)
class Step:
    """What one cause did to a month's cost."""

    cause: str
    usd: float


@dataclass(frozen=True)
class Bridge:
    """How a model's cost a month went from one sheet to the other, at one load.

    how: `solved again` (each cause by itself, in the order of `steps`), `one cause`, or `not separated`, and then
    `steps` is empty and `causes` says what changed at once.
    """

    model: str
    name: str
    load: str
    before_usd: float | None
    after_usd: float | None
    steps: tuple[Step, ...]
    causes: tuple[str, ...]
    how: str
    why: str = ""

    def data(self) -> dict[str, Any]:
        """The bridge as JSON has it."""
        return {**{k: v for k, v in vars(self).items() if k not in ("steps", "causes")},
                "steps": [vars(step) for step in self.steps], "causes": list(self.causes)}  # fmt: skip

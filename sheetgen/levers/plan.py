"""What a lever is before it is worked out: its words, and a changed load or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sheetgen.levers.ask_again import Change, Loads
from sheetgen.levers.facts import Facts
from sheetgen.levers.lever import Lever
from sheetgen.levers.rented import Rented
from sheetgen.recommend import Solution

WEIGHT_ONLY = "weight_only"  # as a GPU's file says it


@dataclass(frozen=True)
class Planned:
    """A lever of one load; `change` is nothing where it does not apply, and `why_not` says why.

    `words` stand in place of the usual ones.
    """

    id: str
    row: int
    change: Change | None = None
    words: str = ""
    changed: str = ""
    why_not: str = ""


def work_out(loads: Loads, planned: Sequence[Planned], facts: Facts) -> list[Lever]:
    """Every planned lever with its answer, solved together."""
    asked = [one.change for one in planned if one.change is not None]
    answers = iter(loads.ask(asked))
    return [finished(loads.solved, one, None if one.change is None else next(answers), facts) for one in planned]


def finished(solved: Solution, one: Planned, after: Rented | None, facts: Facts) -> Lever:
    """A planned lever with its answer."""
    known = facts.words[one.id]
    why_not = one.why_not or ("" if after is not None else "nothing that may be rented holds it then")
    return Lever(
        id=one.id,
        family=known.family,
        words=one.words or known.words,
        changed=one.changed,
        note=". ".join(filter(None, (_weights_only(solved, one, after), known.cost))),
        before=Rented.of(solved, one.row),
        after=after,
        why_not=why_not,
    )


def _weights_only(solved: Solution, one: Planned, after: Rented | None) -> str:
    """A word on a GPU that keeps other weights than before in fewer bits than it computes in."""
    model = one.change.model if one.change else None
    if model is None or after is None:
        return ""
    before = solved.question.models[solved.question.loads[one.row].model]
    dtype, gpu = model.weight_dtype, after.candidate.gpu
    if (model.model.id, dtype) == (before.model.id, before.weight_dtype) or gpu.weights_run.get(dtype) != WEIGHT_ONLY:
        return ""
    return f"{gpu.short_name} keeps {dtype} and computes in 16 bits"

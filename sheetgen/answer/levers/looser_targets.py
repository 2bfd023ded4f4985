"""The next steps of a load's targets of speed: the looser ones at which its month falls, and the best among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sheetgen.answer.levers.lever import Rented, is_less, saved_usd
from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.stacks import TriedTargets

JUST_ABOVE, ROUNDING = 1 + 1e-9, 1e-12
TPOT, TTFT = "tpot_target_ms", "ttft_target_ms"
LOOSER = {"slower-tokens": (TPOT,), "later-first-token": (TTFT,), "slower-and-later": (TPOT, TTFT)}  # lever: targets
NAMES = {TPOT: "time a token", TTFT: "time to the first token"}
WORDS = {
    "slower-tokens": "{} a token, not {now}", "later-first-token": "first token in {}, not {now}",
    "slower-and-later": "{} a token, the first in {}",
}  # fmt: skip


class Step(NamedTuple):
    """A workload at looser targets, and what it takes at them."""

    workload: Workload
    after: Rented


def looser(workload: Workload, lever: str, tried: TriedTargets) -> Iterator[Workload]:
    """A workload at each looser target that is tried, the tightest first; none where it has no target.

    Where both targets are loosened, the first token's is by at least as much as the other, to the next one tried.
    """
    tried_ms = {TPOT: tried.tpot_ms, TTFT: tried.ttft_ms}
    now = {field: getattr(workload, field) for field in LOOSER[lever]}
    if not all(now.values()):
        return
    first, usual = next(iter(now.items()))
    for ms in tried_ms[first]:
        then = {
            field: next((limit for limit in tried_ms[field] if limit * usual >= now[field] * ms), None) for field in now
        }
        if ms > usual and all(then.values()):
            yield workload.model_copy(update={field: float(target or 0) for field, target in then.items()})


def steps_down(least: Rented | None, answers: Iterable[tuple[Workload, Rented | None]], share: float) -> list[Step]:
    """The steps at which the month falls below `least`: the first that falls at all, then each that falls by at least
    this share of the one before."""
    steps: list[Step] = []
    for workload, after in answers:
        if after is None or not is_less(steps[-1].after if steps else least, after):
            continue
        if not steps or saved_usd(steps[-1].after, after) >= share * steps[-1].after.monthly_usd:
            steps.append(Step(workload, after))
    return steps


def up_to_two_figures(milliseconds: float) -> float:
    """A time rounded up as somebody would promise it: 7,144 ms is 7,200, 51.3 ms is 52; whole milliseconds."""
    unit = max(1.0, 10.0 ** (math.floor(math.log10(milliseconds)) - 1))
    return math.ceil(milliseconds / unit - ROUNDING) * unit


def tighter(workload: Workload, lever: str, step: Workload, tried: TriedTargets) -> list[Workload]:
    """A workload at each target, in two figures, above the one tried before a step and up to the step, the tightest
    first. Where both targets are loosened, the first token's is loosened as much as the other."""
    first, *others = LOOSER[lever]
    usual, most = getattr(workload, first), getattr(step, first)
    before = max((ms for ms in (tried.tpot_ms if first == TPOT else tried.ttft_ms) if ms < most), default=usual)
    targets, ms = list[Workload](), up_to_two_figures(max(usual, before) * JUST_ABOVE)
    while ms <= most:
        then = {field: up_to_two_figures(getattr(workload, field) * ms / usual) for field in others}
        targets.append(workload.model_copy(update={first: ms, **then}))
        ms = up_to_two_figures(ms * JUST_ABOVE)
    return [*targets, step] if others else [*targets[:-1], step]


class Narrowing:
    """The search for the tightest of some targets at which a load costs as little as at the last of them."""

    def __init__(self, targets: Sequence[Workload], before: Rented | None, step: Step) -> None:
        self.targets, self.before, self.step = targets, before, step
        self.first, self.last = 0, len(targets) - 1  # among these it is

    @property
    def is_open(self) -> bool:
        return self.first < self.last

    @property
    def middle(self) -> int:
        return (self.first + self.last) // 2

    def take(self, after: Rented | None) -> None:
        """Narrow the search by what the middle target takes."""
        if after is not None and is_less(self.before, after) and not is_less(after, self.step.after):
            self.last, self.step = self.middle, Step(self.targets[self.middle], after)
        else:
            self.first = self.middle + 1


def best_step(before: Rented | None, steps: Sequence[Step], field: str, now: float) -> Step:
    """The step that saves most for each percent by which the target is looser; the tightest step where nothing holds
    the load as it is."""
    if before is None:
        return steps[0]
    return max(steps, key=lambda step: saved_usd(before, step.after) / (getattr(step.workload, field) / now - 1))

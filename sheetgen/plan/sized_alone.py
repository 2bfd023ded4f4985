"""The command that sizes a service of the plan by itself: a reader can check its hardware, and see its levers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sheetgen.plan.answer import Answer
from sheetgen.plan.hardware import served_in
from sheetgen.scenario.inputs import BY_NAME

OF_LOAD = ("requests_per_second", "concurrent_requests")


def options(answer: Answer, s: int, q: int) -> dict[str, str]:
    """What `recommend` is asked for a service in a quarter, at the quantile that is bought, less what it takes anyway.
    Where the service is on other hardware than alone, that is named."""
    plan, service = answer.plan, answer.plan.services[s]
    found = dict(plan.key(service, served_in(service, plan.quarters[q]))) | {name: "" for name in OF_LOAD}
    rate, at_once = (float(answer.services[name][s, q, answer.case]) for name in OF_LOAD)
    found["requests_per_second" if rate else "concurrent_requests"] = f"{rate or at_once:.12g}"
    asked = answer.hardware.asked[s, q]
    here, alone = (asked.solved.candidate(one).instance for one in (asked.offer, asked.pick))
    if here != alone:
        found["instances"] = here
    said = {name: BY_NAME[name].default for name in found if name in BY_NAME}
    return {name: one for name, one in found.items() if one and one != str(said.get(name))}


def commands(answer: Answer) -> Iterator[str]:
    """A command for each service, in the first quarter in which it is served."""
    for s, service in enumerate(answer.plan.services):
        q = next((q for q in range(len(answer.plan.quarters)) if (s, q) in answer.hardware.asked), None)
        if q is not None:
            given = options(answer, s, q)
            flags = [part for name, one in given.items() if name != "models"
                     for part in (f"--{name.replace('_', '-')}", one)]  # fmt: skip
            words = shlex.join(["sheetgen", "recommend", "--model", given["models"], *flags])
            n = answer.services["planned_replicas"][s, q, answer.case]
            yield (f"{service.id}, {answer.plan.quarters[q]}, {n:g} replicas on "
                   f"{answer.hardware.placed[s, q].instance}: {words}")  # fmt: skip

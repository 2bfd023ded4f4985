"""Each service of the plan sized by itself, in the first quarter in which it is served, by the command of `recommend`
that a reader can run."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from sheetgen.plan.stated_plan import machine_in, options_of, served_in
from sheetgen.plan.worked_plan import Answer
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.stated_load import A_LOAD
from sheetgen.units import number_text

SURVIVAL = ("survive", "zones")  # its options


def commands(answer: Answer) -> Iterator[str]:
    """A line for each service: its replicas and machine in the plan, and the command of `recommend` for its load at the
    quantile that is bought, without options at their defaults."""
    for s, service in enumerate(answer.plan.services):
        q = next(iter(answer.quarters_of(s)), None)
        if q is None:
            continue
        options = _options(answer, s, q)
        defaults = {name: str(BY_NAME[name].default) for name in options if name in BY_NAME}
        flags = [
            part
            for name, value in options.items()
            if name != "models" and value != defaults.get(name)
            for value in ((value,) if isinstance(value, str) else value)
            for part in (f"--{name.replace('_', '-')}", value)
        ]
        command = shlex.join(["sheetgen", "recommend", "--model", options["models"], *flags])
        n, where = answer.services["planned_replicas"][s, q, answer.case], answer.hardware.placed[s, q].instance
        yield f"{service.id}, {answer.plan.quarters[q]}, {number_text(n)} replicas on {where}: {command}"


def _options(answer: Answer, s: int, q: int) -> dict[str, str]:
    """The options of `recommend` for a service on the machine that the plan has it on, which is named: by itself, with
    its spare machines or without them, it may be cheaper on another."""
    plan = answer.plan
    options: dict[str, str] = options_of(plan.key(plan.services[s], served_in(plan.services[s], plan.quarters[q])))
    rate, at_once = load_alone(answer, s, q)
    load = {"requests_per_second": f"{rate:.12g}"} if rate else {"concurrent_requests": str(at_once)}
    shared = (*A_LOAD, *SURVIVAL) if starts_elsewhere(answer, s, q) else A_LOAD
    others = {name: value for name, value in options.items() if name not in shared}
    instance = answer.hardware.placed[s, q].instance
    return others | load | {"instances": machine_in(instance), "purchase": plan.class_of(instance)}


def load_alone(answer: Answer, s: int, q: int) -> tuple[float, int]:
    """The requests a second and at once of a service, at the quantile that is bought."""
    rate, at_once = (
        float(answer.services[name][s, q, answer.case]) for name in ("requests_per_second", "concurrent_requests")
    )
    return rate, math.ceil(round(at_once, 9))


def starts_elsewhere(answer: Answer, s: int, q: int) -> bool:
    """True where what a service loses starts anew on spare machines that it shares with others."""
    return not (answer.plan.redundancy(s).hot_share or answer.services["is_alone"][s, q, answer.case])

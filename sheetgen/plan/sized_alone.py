"""Each service of the plan sized by itself, in the first quarter in which it is served: by the command of `recommend`
that a reader can run, and by a sizing sheet of its own, which the workbook links to."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sheetgen.plan.schema import DOLLARS
from sheetgen.plan.stated_plan import machine_in, served_in
from sheetgen.plan.worked_plan import Answer
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.sheet_question import ASKED
from sheetgen.question.stated_load import A_LOAD
from sheetgen.units import number_text

SURVIVAL = ("survive", "zones")  # its options


class Alone(NamedTuple):
    """A service by itself, at the quantile that is bought. options: what `recommend` is asked; where the service is on
    other hardware than alone, that is named."""

    service: int
    quarter: int
    options: Mapping[str, str]


def alone(answer: Answer) -> Iterator[Alone]:
    plan = answer.plan
    for s, service in enumerate(plan.services):
        q = next(iter(answer.quarters_of(s)), None)
        if q is None:
            continue
        options: dict[str, str] = dict(plan.key(service, served_in(service, plan.quarters[q])))
        rate, at_once = (
            float(answer.services[name][s, q, answer.case]) for name in ("requests_per_second", "concurrent_requests")
        )
        whole = math.ceil(round(at_once, 9))
        load = {"requests_per_second": f"{rate:.12g}"} if rate else {"concurrent_requests": str(whole)}
        here, by_itself = answer.hardware.placed[s, q].instance, answer.hardware.alone[s, q]
        shared = (*A_LOAD, *SURVIVAL) if _starts_elsewhere(answer, s, q) else A_LOAD
        others = {name: value for name, value in options.items() if name not in shared}
        yield Alone(s, q, others | load | ({"instances": machine_in(here)} if here != by_itself else {}))


def _starts_elsewhere(answer: Answer, s: int, q: int) -> bool:
    """True where what a service loses starts anew on spare machines that it shares with others."""
    return not (answer.plan.redundancy(s).hot_share or answer.services["is_alone"][s, q, answer.case])


def commands(answer: Answer) -> Iterator[tuple[str, str]]:
    """Of each service its name, and in words what the plan has of it and the command, less what that takes anyway."""
    for s, q, options in alone(answer):
        defaults = {name: str(BY_NAME[name].default) for name in options if name in BY_NAME}
        flags = [
            part
            for name, value in options.items()
            if name != "models" and value != defaults.get(name)
            for value in ((value,) if isinstance(value, str) else value)
            for part in (f"--{name.replace('_', '-')}", value)
        ]
        command = shlex.join(["sheetgen", "recommend", "--model", options["models"], *flags])
        service, n = answer.plan.services[s].id, answer.services["planned_replicas"][s, q, answer.case]
        where = answer.hardware.placed[s, q].instance
        yield service, f"{service}, {answer.plan.quarters[q]}, {number_text(n)} replicas on {where}: {command}"


def sheet_options(answer: Answer, alone_: Alone) -> dict[str, str]:
    """The options of `build` for the sizing sheet of a service, in the plan's currency and with its names."""
    head, service = answer.plan.head, answer.plan.services[alone_.service]
    named = {
        "title": f"{service.id}, {answer.plan.quarters[alone_.quarter]}",
        "approver": head.approver,
        "owner": service.owner or head.owner,
        "headline": ASKED,
    }
    money = {} if head.currency == DOLLARS else {"currency": head.currency, "fx_rate": f"{head.fx_rate:.12g}"}
    load = dict(alone_.options)
    if at_once := load.pop("concurrent_requests", None):
        load["tiers"] = at_once
    return load | money | {name: value for name, value in named.items() if value}

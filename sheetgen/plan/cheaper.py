"""What would cost less, and what it gives up: a service in FP8, the whole plan worked out anew; or another policy, on
the machines of the plan, so that it may save still more on others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sheetgen.errors import SheetgenError
from sheetgen.plan.orders import QUARTERS_OF_TERM
from sheetgen.plan.schema import MIX, Policy, Redundancy, Service
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import Answer
from sheetgen.question.inputs import BY_NAME
from sheetgen.units import ON_DEMAND

MOST = 4  # services that are tried: those that cost most
WIDE = ("bf16", "fp16", "fp32")
SURVIVE = BY_NAME["survive"].words  # from nothing to a zone
GIVES_UP = {
    "none": "a loss takes capacity until it is replaced",
    "replica": "the loss of a machine takes capacity until it is replaced",
    "machine": "the loss of a zone takes capacity until it is replaced",
}


@dataclass(frozen=True)
class Cheaper:
    """A plan with one thing changed, all else as planned."""

    what: str
    gives_up: str
    asked_usd: float  # to approve
    saves_usd: float  # of what is to be approved now
    over: tuple[str, ...]  # quarters that are over their budget then


def cheaper(answer: Answer) -> tuple[Cheaper, ...]:
    """The changes that make the plan cheaper, what saves most first."""
    kept = dict(answer.hardware.loads)
    tried = [_worth(answer, *way, kept=kept) for s in answer.largest[:MOST] for way in _at_fp8(answer, s)]
    for what, gives_up, plan in _policies(answer.plan):
        same = plan.policy.purchase == answer.plan.policy.purchase  # machines have its price
        hardware = answer.hardware if same else None
        tried.append(_worth(answer, what, gives_up, plan, hardware=hardware))
    return tuple(sorted(filter(None, tried), key=lambda one: -one.saves_usd))


def _worth(answer: Answer, what: str, gives_up: str, plan: Plan, **how: Any) -> Cheaper | None:
    """What another plan saves; none where it saves nothing, or something is not served then."""
    try:
        other = solved_plan(replace(plan, questions={**plan.questions}), timed=False, **how)
    except SheetgenError:
        return None
    asked = sum(other.asked_usd)
    saves = sum(answer.asked_usd) - asked
    if saves <= 0 or len(other.hardware.nothing) > len(answer.hardware.nothing):
        return None
    return Cheaper(what, gives_up, asked, saves, tuple(other.over))


def _at_fp8(answer: Answer, s: int) -> Iterator[tuple[str, str, Plan]]:
    """The plan with one service in FP8 from its first quarter on, where some of it is wider."""
    plan = answer.plan
    if not (wide := _wide(answer, plan.services[s])):
        return
    models = tuple(one.model_copy(update=dict.fromkeys(wide, "fp8")) for one in plan.services[s].model or ())
    changed = plan.services[s].model_copy(update={"model": models})
    what = " and ".join({"weight_dtype": "weights", "kv_cache_dtype": "KV cache"}[name] for name in wide)
    services = (*plan.services[:s], changed, *plan.services[s + 1 :])
    yield f"{changed.id} with its {what} in FP8", "answers may change", replace(plan, services=services)


def _policies(plan: Plan) -> Iterator[tuple[str, str, Plan]]:
    """The plan with another policy: less that survives, no headroom, nothing that is kept longer than it is needed."""
    levels = [SURVIVE.index(plan.redundancy(s).survive) for s in range(len(plan.services))]
    for level in range(max(levels)):
        yield (
            f"survive: {SURVIVE[level]}",
            GIVES_UP[SURVIVE[level]],
            _survives(plan, {"survive": SURVIVE[level]}, level),
        )
    if any(plan.redundancy(s).hot_share and levels[s] for s in range(len(plan.services))):
        yield "hot_share: 0", "after a loss replicas start anew elsewhere", _survives(plan, {"hot_share": 0.0})
    for name, gives_up in (
        ("headroom_fraction", "no reserve above the load"),
        ("release_after_quarters", "machines may have to be had again a quarter later"),
    ):
        if getattr(plan.policy, name):
            policy: Policy = plan.policy.model_copy(update={name: type(getattr(plan.policy, name))(0)})
            yield f"{name}: 0", gives_up, replace(plan, policy=policy)
    if not plan.week.is_flat and plan.policy.buy in (ON_DEMAND, *QUARTERS_OF_TERM):
        gives_up = "its base is bound for a term, and what is above it may be sold out in an hour that needs it"
        yield f"buy: {MIX}", gives_up, replace(plan, policy=plan.policy.model_copy(update={"buy": MIX}))


def _survives(plan: Plan, update: dict[str, str | float], level: int = 0) -> Plan:
    """The plan with another redundancy of all services that survive more than a level."""

    def changed(one: Redundancy | None) -> Redundancy | None:
        return one and (one.model_copy(update=update) if SURVIVE.index(one.survive) > level else one)

    services = tuple(one.model_copy(update={"redundancy": changed(one.redundancy)}) for one in plan.services)
    policy = plan.policy.model_copy(update={"redundancy": changed(plan.policy.redundancy)})
    return replace(plan, services=services, policy=policy)


def _wide(answer: Answer, service: Service) -> list[str]:
    """The precisions of a service that are wider than 8 bits in some quarter."""
    plan = answer.plan
    served = [one for quarter in plan.quarters for one in plan.question_in(service, quarter).models]
    return [name for name in ("weight_dtype", "kv_cache_dtype") if any(getattr(one, name) in WIDE for one in served)]

"""What would cost less: a service in FP8 from its first quarter on, the whole plan worked out anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sheetgen.errors import SheetgenError
from sheetgen.plan.hardware_by_quarter import Loads
from sheetgen.plan.schema import Service
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.worked_plan import Answer

MOST = 4  # services that are tried: those that cost most
WIDE = ("bf16", "fp16", "fp32")


@dataclass(frozen=True)
class Cheaper:
    """A plan in which one service is in FP8, all else as planned."""

    service: str
    what: str  # weights, KV cache, or both
    asked_usd: float  # to approve
    saves_usd: float  # of what is to be approved now
    over: tuple[str, ...]  # quarters that are over their budget then


def cheaper(answer: Answer) -> tuple[Cheaper, ...]:
    """Of the services that cost most those whose change to FP8 makes the plan cheaper, what saves most first."""
    kept: Loads = {}
    found = [one for s in answer.largest[:MOST] if (one := _at_fp8(answer, s, kept)) and one.saves_usd > 0]
    return tuple(sorted(found, key=lambda one: -one.saves_usd))


def _at_fp8(answer: Answer, s: int, kept: Loads) -> Cheaper | None:
    """The plan with one service in FP8; none where it is already, or nothing serves it so."""
    plan = answer.plan
    wide = _wide(answer, plan.services[s])
    if not wide:
        return None
    models = tuple(one.model_copy(update=dict.fromkeys(wide, "fp8")) for one in plan.services[s].model or ())
    services = (*plan.services[:s], plan.services[s].model_copy(update={"model": models}), *plan.services[s + 1 :])
    try:
        other = solved_plan(replace(plan, services=services, questions={**plan.questions}), timed=False, kept=kept)
    except SheetgenError:
        return None
    if len(other.hardware.nothing) > len(answer.hardware.nothing):
        return None
    what = " and ".join({"weight_dtype": "weights", "kv_cache_dtype": "KV cache"}[name] for name in wide)
    asked = sum(other.asked_usd)
    return Cheaper(plan.services[s].id, what, asked, sum(answer.asked_usd) - asked, tuple(other.over))


def _wide(answer: Answer, service: Service) -> list[str]:
    """The precisions of a service that are wider than 8 bits in some quarter."""
    plan = answer.plan
    served = [one for quarter in plan.quarters for one in plan.question_in(service, quarter).models]
    return [name for name in ("weight_dtype", "kv_cache_dtype") if any(getattr(one, name) in WIDE for one in served)]

"""Changes that would cost less, and what they give up: another policy, another class, FP8, or other machines. Each is
worked out by itself; where the budget does not hold, the fewest of them that make it hold together, or those that save
most.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sheetgen.errors import SheetgenError
from sheetgen.plan.decisions import Decision, decisions, unserved
from sheetgen.plan.hardware_by_quarter import Beginning
from sheetgen.plan.orders import Unserved
from sheetgen.plan.quarters import QUARTERS_OF_TERM
from sheetgen.plan.schema import MIX, Policy, Redundancy, Served, Service
from sheetgen.plan.services_table import first_named, short_name
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.spending import A_CENT
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import CASE, Answer, moves_usd
from sheetgen.question.inputs import BY_NAME
from sheetgen.report import sentences
from sheetgen.units import CAPACITY_BLOCK, ON_DEMAND

POLICY, CLASS, PRECISION, PLACES = KINDS = ("policy", "class", "precision", "machines")
MOST_SEEN = 1  # plan with changes that is kept
LOST_AFTER_FRACTION = 0.5  # of what a lever binds after the plan: its demand is not known, and may still be there
MOST = 4  # services that are tried in FP8 by themselves: those that cost most
WIDE = ("bf16", "fp16", "fp32")
SURVIVE = BY_NAME["survive"].words  # from nothing to a zone
GIVES_UP = {
    "none": "a loss takes capacity until it is replaced",
    "replica": "the loss of a machine takes capacity until it is replaced",
    "machine": "the loss of a zone takes capacity until it is replaced",
}
PARTS = {"weight_dtype": "weights", "kv_cache_dtype": "KV cache"}
A_BIT = 1e-9  # of a service
A_DOLLAR = 1.0  # a lever that adds no more to others adds nothing


@dataclass(frozen=True)
class Change:
    """A change of the plan that may make it cheaper. buy: of a class, what is bought in it then; orders in it are what
    makes it one."""

    kind: str
    name: str
    gives_up: str
    make: Callable[[Plan], Plan]
    buy: str | None = None


@dataclass(frozen=True)
class Lever:
    """A change that makes the plan cheaper, all else as planned."""

    change: Change
    asked_usd: float  # to approve
    saves_usd: float  # of what is to be approved now, less its moves
    saves_p50_usd: float  # of what is spent at p50, less its moves; below 0 where it costs more
    moves_usd: float  # the cost of its moves over those of the plan, as the plan counts them, which no budget has
    bound_usd: float  # by its orders, to the end of their terms
    bound_after_usd: float  # of that what is paid after the plan's end
    over: tuple[str, ...]  # quarters that are over their budget then

    @property
    def mean_usd(self) -> float:
        """The saving on average at p50 and of what is to be approved."""
        return (self.saves_usd + self.saves_p50_usd) / 2

    @property
    def worth_usd(self) -> float:
        """That saving less the share of what is bound after the plan's end that counts as lost."""
        return self.mean_usd - LOST_AFTER_FRACTION * self.bound_after_usd

    @property
    def binds_after(self) -> bool:
        """True where orders are paid after the plan's end."""
        return self.bound_after_usd > A_DOLLAR


@dataclass(frozen=True)
class Closing:
    """Levers that are pulled together, the quarters that are over their budget even then, and what is to be decided
    then; by_itself: of each kind, other machines too, the best that makes the budget hold by itself."""

    levers: tuple[Lever, ...]
    by_itself: tuple[Lever, ...]
    saves_usd: float
    saves_p50_usd: float
    over: tuple[str, ...]
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Trials:
    """The plan with changes; lost: what the plan itself does not serve. seen: the last set of changes, worked out, as
    a large plan takes too much memory to keep all."""

    answer: Answer
    lost: Sequence[Unserved]
    seen: dict[tuple[str, ...], Answer | None] = field(default_factory=dict)

    def changed(self, changes: Sequence[Change]) -> Answer | None:
        """The plan with changes; None where it cannot be worked out."""
        names = tuple(change.name for change in changes)
        if names not in self.seen:
            while len(self.seen) >= MOST_SEEN:
                del self.seen[next(iter(self.seen))]
            self.seen[names] = self._solved(changes)
        return self.seen[names]

    def more_moves_usd(self, other: Answer) -> float:
        """The cost of the moves of a changed plan over that of the plan's own; 0 where it is no more."""
        return max(0.0, moves_usd(other, self.answer.plan) - moves_usd(self.answer, self.answer.plan))

    def _solved(self, changes: Sequence[Change]) -> Answer | None:
        plan = functools.reduce(lambda changed, change: change.make(changed), changes, self.answer.plan)
        fresh = replace(plan, questions={**plan.questions})
        try:
            only_changed = all(change.kind in (POLICY, PRECISION) for change in changes)
            begin = Beginning(self.answer.hardware, only_changed)
            return solved_plan(fresh, timed=False, kept=begin.hardware.loads, begin=begin)
        except SheetgenError:
            return None


def cheaper(trials: Trials) -> tuple[Lever, ...]:
    """The changes that make the plan cheaper, what saves most first; of classes one of those with the same result."""
    answer = trials.answer
    changes = (*_policies(answer.plan), *_in_fp8(answer))
    tried = (*(_worked_out(trials, [change]) for change in changes), *_classes(trials), *_elsewhere(trials))
    unlike = dict[tuple[str, tuple[int, ...]], Lever]()
    for lever in sorted(filter(None, tried), key=lambda lever: -round(lever.mean_usd / A_CENT)):
        money = lever.asked_usd, lever.saves_p50_usd, lever.moves_usd, lever.bound_usd
        name = lever.change.kind if lever.change.kind == CLASS else lever.change.name
        unlike.setdefault((name, tuple(round(usd / A_CENT) for usd in money)), lever)
    return tuple(unlike.values())


def best_of_kinds(levers: Sequence[Lever]) -> list[Lever]:
    """By kind the lever that saves most, on average at p50 and of what is to be approved; of classes the best that
    binds nothing after the plan's end, and the best of all where that is worth more."""
    best = []
    for kind in KINDS:
        of_kind = sorted((lever for lever in levers if lever.change.kind == kind), key=lambda lever: -lever.worth_usd)
        if kind == CLASS:
            unbound = next((lever for lever in of_kind if not lever.binds_after), None)
            of_kind = [lever for lever in (unbound, *of_kind[:1]) if lever]
            best += [*dict.fromkeys(of_kind)]
        else:
            best += of_kind[:1]
    return best


def closing(trials: Trials, levers: Sequence[Lever]) -> Closing | None:
    """The fewest levers, of each kind but other machines, with which every quarter is within its budget: any of them by
    itself, or the best of each kind together; of as many those that bind nothing after the plan's end, then those that
    are worth most. Where no set of them does, the set that is worth most, without a lever that adds nothing to it. None
    where the budget holds, or nothing saves."""
    of_kinds, most_usd = best_of_kinds(levers), 0.0
    together: tuple[tuple[Lever, ...], Lever] | None = None
    for n in range(1, len(KINDS)) if trials.answer.over else ():
        sets = []
        for chosen in itertools.combinations(levers if n == 1 else of_kinds, n):
            kinds = {lever.change.kind for lever in chosen}
            if PLACES in kinds or len(kinds) < n:
                continue
            result = chosen[0] if n == 1 else _worked_out(trials, [lever.change for lever in chosen])
            if result is not None:
                holds = not result.over
                sets.append((holds, holds and not result.binds_after, result.worth_usd, chosen, result))
        if sets:
            holds, _, worth_usd, chosen, result = max(sets, key=lambda ranked: ranked[:3])
            if holds or together is None or worth_usd > most_usd + A_DOLLAR:
                together, most_usd = (chosen, result), worth_usd
            if holds:
                break
    if together is None:
        return None
    chosen, result = together
    other = trials.changed([lever.change for lever in chosen])
    decided = decisions(other, unserved(other)) if other else ()
    by_itself = tuple(_of_kinds_by_itself(levers))
    return Closing(chosen, by_itself, result.saves_usd, result.saves_p50_usd, result.over, decided)


def _of_kinds_by_itself(levers: Sequence[Lever]) -> Iterator[Lever]:
    """Of each kind the best lever that makes the budget hold, of classes one that binds nothing after the plan's end
    first."""
    for kind in KINDS:
        of_kind = [lever for lever in levers if lever.change.kind == kind and not lever.over]
        if of_kind:
            yield max(of_kind, key=lambda lever: (not (kind == CLASS and lever.binds_after), lever.worth_usd))


def _worked_out(trials: Trials, changes: Sequence[Change]) -> Lever | None:
    """The savings of changes that are made together; None where on average at p50 and of what is to be approved they
    save no more than their moves cost, or leave more without machines: of a policy, for longer than some days."""
    answer, other = trials.answer, trials.changed(changes)
    if other is None:
        return None
    asked, moves = sum(other.asked_usd), trials.more_moves_usd(other)
    saves = sum(answer.asked_usd) - asked - moves
    at_p50 = float((answer.money["spend_usd"] - other.money["spend_usd"])[:, CASE["p50"]].sum()) - moves
    if any(change.buy not in (None, *_bought_as(other)) for change in changes):
        return None
    if saves + at_p50 <= 0 or len(other.hardware.nothing) > len(answer.hardware.nothing):
        return None
    waits = _waits_more(other.plan, trials.lost, unserved(other))
    if waits and all(change.kind != POLICY for change in changes):
        return None
    base = _of_term(other.plan)
    then, now = ({part.purchase for part in plan.base} for plan in (other.plan, answer.plan))
    ends = sentences.BLOCK_ENDS if CAPACITY_BLOCK in then - now else ""
    given = changes[0].gives_up, f"the base is then {base}" if base else "", ends, waits
    gives_up = "; ".join(filter(None, given))
    bound = sum(other.bound_usd), other.bound_after_usd
    return Lever(replace(changes[0], gives_up=gives_up), asked, saves, at_p50, moves, *bound, tuple(other.over))


def _waits_more(plan: Plan, lost: Sequence[Unserved], then: Sequence[Unserved]) -> str:
    """The services that wait for machines longer than before, and until when; "" where none does."""
    before, after = _waiting(lost), _waiting(then)
    more = [gap for gap in then if after[gap.service] > before[gap.service] + A_BIT]
    names = first_named([*dict.fromkeys(plan.services[gap.service].id for gap in more)])
    return f"until {max(gap.last for gap in more)} not all of {names} is served" if more else ""


def _waiting(lost: Sequence[Unserved]) -> defaultdict[int, float]:
    """By service the days in which it has no machine yet."""
    days = defaultdict[int, float](float)
    for gap in lost:
        days[gap.service] += gap.share * ((gap.last - gap.first).days + 1)
    return days


def _of_term(plan: Plan) -> str:
    """The machines of a mix that are paid for a term, in the quarters in which there are some."""
    counts = defaultdict[tuple[str, str], Counter[int]](Counter)
    for base in plan.base:
        for q, share in enumerate(base.shares(len(plan.quarters))):
            counts[base.instance, base.purchase] += Counter({q: base.count}) if share else Counter()
    return ", ".join(
        f"{' to '.join(map(str, sorted({min(of_quarters.values()), max(of_quarters.values())})))} x "
        f"{short_name(instance)}, {purchase}"
        for (instance, purchase), of_quarters in counts.items()
    )


def _policies(plan: Plan) -> Iterator[Change]:
    """Less that survives, no headroom, nothing that is kept longer than it is needed."""
    redundancies = [plan.redundancy(s) for s in range(len(plan.services))]
    levels = [SURVIVE.index(redundancy.survive) for redundancy in redundancies]
    for level in reversed(range(max(levels))):
        word = SURVIVE[level]
        less = functools.partial(_surviving, update={"survive": word}, level=level)
        yield Change(POLICY, f"survive: {word}", GIVES_UP[word], less)
    if any(redundancy.hot_share and level for redundancy, level in zip(redundancies, levels, strict=True)):
        none_hot = functools.partial(_surviving, update={"hot_share": 0.0})
        yield Change(POLICY, "hot_share: 0", "after a loss replicas start anew elsewhere", none_hot)
    for name, gives_up in (
        ("headroom_fraction", "no reserve above the load"),
        ("release_after_quarters", "machines may have to be had again a quarter later"),
    ):
        if value := getattr(plan.policy, name):
            without = functools.partial(_with_policy, update={name: type(value)(0)})
            yield Change(POLICY, f"{name}: 0", gives_up, without)


def _classes(trials: Trials) -> Iterator[Lever | None]:
    """Everything that is bought in the plan's class in another one that may be used, where something is sold in it. Of
    a mix again without the longest term of its base, until that binds nothing after the plan's end."""
    plan = trials.answer.plan
    ways = {ON_DEMAND: "prices and machines that are not bound"} | {
        purchase: f"{quarters} quarters are paid, used or not"
        if quarters > 1
        else "whole quarters are paid, used or not"
        for purchase, quarters in QUARTERS_OF_TERM.items()
    }
    ways[CAPACITY_BLOCK] += f"; {sentences.BLOCK_ENDS}"
    for buy, gives_up in ways.items():
        if buy != plan.policy.buy and plan.supply.allowed.may_buy(buy):
            change = functools.partial(_with_policy, update={"buy": buy})
            yield _worked_out(trials, [Change(CLASS, f"buy: {buy}", gives_up, change, buy)])
    without: tuple[str, ...] = ()
    while True:
        mix = Change(CLASS, *_mix_without(without), functools.partial(_mixed, without=without), MIX)
        if without or plan.policy.buy != MIX:
            yield _worked_out(trials, [mix])
        answer = trials.changed([mix]) if without or plan.policy.buy != MIX else trials.answer
        if answer is None or not answer.plan.base or answer.bound_after_usd <= A_DOLLAR:
            return
        longest = max({base.purchase for base in answer.plan.base}, key=QUARTERS_OF_TERM.__getitem__)
        without = (*without, *(way for way in ways if QUARTERS_OF_TERM.get(way) == QUARTERS_OF_TERM[longest]))


def _mix_without(classes: Sequence[str]) -> tuple[str, str]:
    """A mix without some classes as it is written, and what it gives up."""
    excluded = f", exclude: [{', '.join(classes)}]" if classes else ""
    return f"buy: {MIX}{excluded}", "its base is paid for its terms, used or not"


def _mixed(plan: Plan, without: Sequence[str]) -> Plan:
    """The plan with a mix that has no orders in some classes."""
    allowed = plan.supply.allowed
    allowed = allowed.model_copy(update={"exclude": (*dict.fromkeys((*allowed.exclude, *without)),)})
    supply = plan.supply.model_copy(update={"allowed": allowed})
    return replace(_with_policy(plan, {"buy": MIX}), supply=supply)


def _bought_as(answer: Answer) -> set[str]:
    """The classes of what is ordered; with a base, a mix of them."""
    bought = {machine.buying.purchase for t, machine in enumerate(answer.types) if answer.to_buy[t].any()}
    return bought | ({MIX} if answer.plan.base else set())


def _elsewhere(trials: Trials) -> Iterator[Lever]:
    """The cheapest machines without what keeps services where they are: a near tie and the cost of a move, which is
    judged where the plan does not state it; and where moves come of that, without a near tie alone."""
    policy = trials.answer.plan.policy
    near = {"near_tie_fraction": 0.0} if policy.near_tie_fraction else {}
    stays = {"moving_cost_usd": 0.0} if policy.moving_cost_usd != 0 else {}
    for update in (near | stays, near if stays else {}):
        if update:
            name = ", ".join(f"{key}: 0" for key in update)
            gives_up = " and ".join(_STAYING[key] for key in update)
            change = Change(PLACES, name, gives_up, functools.partial(_with_policy, update=update))
            if (lever := _worked_out(trials, [change])) is not None:
                yield lever
            other = trials.changed([change])
            if other is None or not trials.more_moves_usd(other):
                return


_STAYING = {
    "near_tie_fraction": "machines of more kinds, for less than a near tie",
    "moving_cost_usd": "more moves",
}


def _with_policy(plan: Plan, update: Mapping[str, float | str]) -> Plan:
    policy: Policy = plan.policy.model_copy(update=update)
    return replace(plan, policy=policy)


def _in_fp8(answer: Answer) -> Iterator[Change]:
    """The services that cost most in FP8 from their first quarter on, where some of it is wider: all, and each."""
    plan = answer.plan
    wide = {plan.services[s].id: names for s in answer.largest[:MOST] if (names := _wide(plan, plan.services[s]))}
    sets = [wide] if len(wide) > 1 else []
    for chosen in (*({service: names} for service, names in wide.items()), *sets):
        parts = " and ".join(part for name, part in PARTS.items() if any(name in names for names in chosen.values()))
        name = f"{parts} in FP8: {', '.join(chosen)}"
        yield Change(PRECISION, name, "answers may change", functools.partial(_narrowed, wide=chosen))


def _narrowed(plan: Plan, wide: dict[str, list[str]]) -> Plan:
    """The plan with these precisions of these services in FP8."""

    def served(model: Served, names: list[str]) -> Served:
        return model.model_copy(update=dict.fromkeys(names, "fp8"))

    services = [
        service.model_copy(update={"model": tuple(served(model, wide[service.id]) for model in service.model or ())})
        if service.id in wide
        else service
        for service in plan.services
    ]
    return replace(plan, services=tuple(services))


def _wide(plan: Plan, service: Service) -> list[str]:
    """The precisions of a service that are wider than 8 bits in some quarter."""
    served = [model for quarter in plan.quarters for model in plan.question_in(service, quarter).models]
    return [name for name in PARTS if any(getattr(model, name) in WIDE for model in served)]


def _surviving(plan: Plan, update: dict[str, str | float], level: int = 0) -> Plan:
    """The plan with another redundancy of all services that survive more than a level."""

    def changed(redundancy: Redundancy | None) -> Redundancy | None:
        if redundancy is None or SURVIVE.index(redundancy.survive) <= level:
            return redundancy
        return redundancy.model_copy(update=update)

    services = tuple(
        service.model_copy(update={"redundancy": changed(service.redundancy)}) for service in plan.services
    )
    return replace(_with_policy(plan, {"redundancy": changed(plan.policy.redundancy)}), services=services)  # type: ignore[dict-item]

"""Why an instance was not chosen: too small, not able to run the precision, or dearer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy

from sheetgen.answer.answer_record import DOUBTED, PassedOver, Reason
from sheetgen.answer.solution import Choice, Solution
from sheetgen.formula import Formula, same_money
from sheetgen.program.grid import Column
from sheetgen.program.sheet_program import ANSWERED
from sheetgen.sizing.parallelism import attention_runs, cache_runs
from sheetgen.sizing.speed import service_ttft_seconds, tpot_seconds, untouched_fraction
from sheetgen.units import EVEN, GIB, PERCENT, USD


@dataclass(frozen=True)
class _LoneTimes:
    """Both times of a lone request at the confidence in use, by the positions of offers, and their limits."""

    places: dict[int, int]
    tpot_seconds: list[float]
    ttft_seconds: list[float]
    distances: list[float]  # the time that is further above its limit, in such limits
    tpot_limit: float


@dataclass(frozen=True)
class _Offers:
    """The columns of one load by offer."""

    solved: Solution
    row: int

    @cached_property
    def monthly_usd(self) -> list[float]:
        return self.solved.costs["monthly_usd"][self.row].tolist()  # type: ignore[no-any-return]

    @cached_property
    def n_instances(self) -> list[float]:
        return self.solved.costs["n_instances"][self.row].tolist()  # type: ignore[no-any-return]

    @cached_property
    def has_kernel(self) -> Column:
        return self._runs(attention_runs)

    @cached_property
    def keeps_cache(self) -> Column:
        return self._runs(cache_runs)

    def _runs(self, part: Formula) -> Column:
        """By offer, True where this part of what it must run is 1."""
        grid = self.solved.grid.along("chosen", {"load": [self.row]})
        grid.evaluate((part,), ("chosen", "offer"))
        return grid.spread(part.name, ("chosen", "offer"))[0] == 1

    @cached_property
    def lone_times(self) -> _LoneTimes:
        """Times on the offers that hold the load in memory and on which a lone request misses a target."""
        held = [i for i, n_instances in enumerate(self.n_instances) if n_instances == 0]
        grid = self.solved.grid.along("chosen", {"load": [self.row] * len(held), "offer": held})
        grid.put((), {"batch_requests": 1.0})
        grid.evaluate((untouched_fraction, tpot_seconds, service_ttft_seconds), ("chosen",))
        times = grid.table("chosen")
        tpot = times["tpot_seconds"] * times["tpot_level_factor"]
        ttft = times["service_ttft_seconds"] * times["ttft_level_factor"]
        tpot_limits, ttft_limits = times["tpot_limit_seconds"], times["ttft_limit_seconds"]
        return _LoneTimes(
            {offer: place for place, offer in enumerate(held)},
            tpot.tolist(),
            ttft.tolist(),
            numpy.maximum(tpot / tpot_limits, ttft / ttft_limits).tolist(),
            float(tpot_limits[0]),
        )

    def served(self, offers: Sequence[int]) -> list[float]:
        """By offer, the requests at once (or a second) that as many instances as the load takes serve within the
        targets."""
        chosen = self.solved.grid.along("chosen", {"load": [self.row] * len(offers), "offer": list(offers)})
        chosen.work_out(ANSWERED)
        is_rate = self.solved.question.loads[self.row].requests_per_second
        name = "served_requests_per_second" if is_rate else "served_at_target"
        return [float(served) for served in chosen.spread(name, ("chosen",))]

    @cached_property
    def runs(self) -> Column:
        return self.solved.sequences["runs"][self.row, [offer.profile for offer in self.solved.offers]] == 1


def why_not(solved: Solution, row: int) -> list[tuple[str, Reason]]:
    """For each candidate instance that was not chosen for a cell, and each that is none for its price: the instance,
    and the reason."""
    choice, offers_of_load = solved.choices[row], _Offers(solved, row)
    chosen = None if choice.offer is None else solved.offers[choice.offer].candidate
    offers = defaultdict[int, list[int]](list)
    for i, offer in enumerate(solved.offers):
        offers[offer.candidate].append(i)
    candidates = solved.question.candidates
    reasons = [(candidates[c].instance, _reason(offers_of_load, offers[c], choice)) for c in offers if c != chosen]
    doubts = [
        (instance, Reason(DOUBTED, f"an implausible price, {why}; --instances {instance} takes it"))
        for instance, why in solved.question.doubted
    ]
    return [*reasons, *doubts]


def _reason(offers: _Offers, mine: list[int], choice: Choice) -> Reason:
    solved, row = offers.solved, offers.row
    cell = solved.question.loads[row]
    if cell.over_limit:
        return Reason("over", choice.verdict)
    candidate = solved.candidate(mine[0])
    priced = {i: usd for i in mine if not math.isnan(usd := offers.monthly_usd[i])}
    if priced:
        least = min(priced.values())
        cheapest = [i for i, usd in priced.items() if usd == least or same_money(usd, least)]
        is_same = same_money(offers.monthly_usd[cheapest[0]], choice.monthly_usd)
        if is_same or least < choice.monthly_usd:
            kind = "as_dear" if is_same else "near_tie"
            return Reason(kind, "", least, _passed_over(offers, cheapest, choice, is_same))
        dearer = 100 * (least / choice.monthly_usd - 1)
        words = f"{USD.text(least)} a month, {f'{dearer:.0f}%' if dearer >= 0.5 else 'less than 1%'} more"
        return Reason("dearer", words, least)
    if slow := _too_slow(offers, [i for i in mine if offers.n_instances[i] == 0]):
        return slow
    model = solved.model_of(row)
    if model.weight_dtype not in candidate.gpu.weights_run:
        return Reason("not_run", f"{candidate.gpu.short_name} does not run {model.weight_dtype} weights")
    if not offers.keeps_cache[mine[0]]:
        engine, cache = solved.question.engine.name, f"the model's KV cache in {model.kv_cache_dtype}"
        return Reason("not_run", f"{engine} does not keep {cache} on {candidate.gpu.short_name}")
    if not offers.has_kernel[mine[0]]:
        words = f"{solved.question.engine.name} has no kernel for its sparse attention on {candidate.gpu.short_name}"
        return Reason("not_run", words)
    runs = [i for i in mine if offers.runs[i]]
    if not runs:
        return Reason("not_run", f"the {model.model.n_heads} heads do not divide over its GPUs")
    offer = runs[-1]
    profile = solved.offers[offer].profile
    size = solved.profiles[profile].layout.n_gpus
    needed, left = (solved.sequences[name] for name in ("charge_bytes", "counted_kv_budget_bytes"))
    short = size * (needed[row, profile] - left[row, profile])
    return Reason("short", f"{size}x {candidate.gpu.short_name}: {short / GIB:,.1f} GiB short", float(short))


def _passed_over(offers_of_load: _Offers, offers: list[int], choice: Choice, is_same: bool) -> PassedOver:
    """The rule of near ties by which an instance that costs no more loses, in its cheapest layout that comes nearest.
    is_same: whether it costs the same."""
    solved, row = offers_of_load.solved, offers_of_load.row
    assert choice.offer is not None and choice.cheapest is not None, "something is cheaper than nothing only"
    mine = solved.candidate(offers[0])
    most_gpus = choice.cheapest.n_instances * solved.candidate(choice.cheapest.offer).gpu_count
    n_machines = int(offers_of_load.n_instances[offers[0]])
    runs_weights, suits, served = (
        dict(zip((*offers, choice.offer), column, strict=True))
        for column in (
            *(solved.costs[name][row, [*offers, choice.offer]].tolist() for name in ("runs_weights", "suitability")),
            offers_of_load.served((*offers, choice.offer)),
        )
    )
    layouts = {i: solved.layout(i) for i in (*offers, choice.offer)}
    sizes = {i: (layout.tensor_parallel_size, layout.data_parallel_size) for i, layout in layouts.items()}
    best = min(offers, key=lambda i: (-suits[i], -served[i], *sizes[i]))
    rules: tuple[tuple[str, bool, float | None, float | None], ...] = (
        ("gpus", n_machines * mine.gpu_count > most_gpus, n_machines * mine.gpu_count, most_gpus),
        ("machines", n_machines > choice.n_instances, n_machines, choice.n_instances),
        ("precision", runs_weights[best] < runs_weights[choice.offer], None, None),
        ("ranks", suits[best] < suits[choice.offer], None, None),
        ("served", not is_same or served[best] < served[choice.offer], served[best], served[choice.offer]),
        ("tp", sizes[best][0] > sizes[choice.offer][0], sizes[best][0], sizes[choice.offer][0]),
        ("dp", sizes[best][1] > sizes[choice.offer][1], sizes[best][1], sizes[choice.offer][1]),
        ("order", True, None, None),
    )
    lost_by, has, answer_has = next((name, has, answer) for name, loses, has, answer in rules if loses)
    return PassedOver(mine.instance, n_machines, offers_of_load.monthly_usd[best], lost_by, has, answer_has)


def passed_over(reasons: Iterable[tuple[str, Reason]]) -> tuple[PassedOver, ...]:
    """The instances that cost no more than the answer, the cheapest first."""
    cheaper = (reason.passed_over for _, reason in reasons if reason.passed_over)
    return tuple(sorted(cheaper, key=lambda other: other.monthly_usd))


def _too_slow(offers: _Offers, held: list[int]) -> Reason | None:
    """How far a lone request is from the targets on the size of the candidate that holds it and comes nearest; None
    where memory does not hold it."""
    if not held:
        return None
    question, workload, times = offers.solved.question, offers.solved.workload_of(offers.row), offers.lone_times
    nearest = min((times.places[i] for i in held), key=times.distances.__getitem__)
    tpot, ttft = times.tpot_seconds[nearest], times.ttft_seconds[nearest]
    confidence = question.settings.confidence
    lone = "for a lone request" if confidence == EVEN else f"for a lone request, {PERCENT.text(confidence)} sure"
    if tpot > times.tpot_limit:
        target, ms = workload.tpot_target_ms or 0, 1e3 * tpot
        return Reason("slow", f"too slow: {_excess(ms, target)} ms a token {lone}, target {target:,.10g}", ms)
    target, ms = workload.ttft_target_ms or 0, 1e3 * ttft
    return Reason("late", f"too slow: first token after {_excess(ms, target)} ms {lone}, target {target:,.10g}", ms)


def _excess(ms: float, target_ms: float) -> str:
    """Milliseconds above a target, with as many decimals as it takes to show the difference."""
    texts = [f"{ms:,.{digits}f}" for digits in range(4)]
    return next((text for text in texts if float(text.replace(",", "")) > target_ms), "a little over")

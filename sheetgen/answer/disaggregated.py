"""Prefill and decode apart: two pools, each with its own hardware and layout, and the KV cache on the fabric between
them.

Both pools are sized for one rate: the requests a second as stated, or as many as the answer of a single pool finishes.
They are chosen as a pair by the rule of `choice`. A loss that is to be survived may strike either, so each has its own
spares, by the rule of a single pool. The predictions are held to no measurement of such a deployment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from sheetgen.answer.answer_record import Json
from sheetgen.answer.picks import pick
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import OF_CHOSEN
from sheetgen.errors import ScenarioError
from sheetgen.formula import round_up
from sheetgen.program.grid import Column, Columns, Grid
from sheetgen.program.sheet_program import AGAIN, CELL_KV, FURTHER_TOKENS
from sheetgen.question.market import Candidate
from sheetgen.sizing import parallelism, rates
from sheetgen.units import GBPS, Layout

NO_PROMPT_SECONDS = 1e-9  # of prompts on a replica that reads none: they limit nothing then


@dataclass(frozen=True)
class Pool:
    """One of the two pools; pools on the same type of instance share machines: see `Apart.n_instances`."""

    candidate: Candidate
    layout: Layout
    n_replicas: int
    requests_per_replica: int  # prompts, or requests that decode, at once at most
    seconds: float  # of a prompt to its first token; of each further token

    @property
    def n_gpus(self) -> int:
        return self.n_replicas * self.layout.n_gpus

    def record(self) -> Json:
        return {
            "instance": self.candidate.instance,
            "gpu": self.candidate.gpu.id,
            "region": self.candidate.region,
            "purchase": self.candidate.purchase,
            **self.layout._asdict(),
            "pipeline_parallel_size": 1,
            "n_replicas": self.n_replicas,
            "n_gpus": self.n_gpus,
            "requests_per_replica": self.requests_per_replica,
        }


@dataclass(frozen=True)
class Apart:
    """The cheapest pair of pools for a load.

    served_at_target: the most requests a second, the extra headroom left and after the loss that is to be survived,
    that both pools on the rented machines and the way between them serve within the targets.
    """

    requests_per_second: float
    served_at_target: float
    prefill: Pool
    decode: Pool
    n_instances: dict[str, int]  # by type of instance
    monthly_usd: float
    kv_transfer_bytes: float
    kv_transfer_seconds: float

    @property
    def ttft_seconds(self) -> float:
        """Seconds to the first token: the prompt, and its cache on the way to the other pool."""
        return self.prefill.seconds + self.kv_transfer_seconds


def pools_record(pools: Apart | None) -> Json:
    """Both pools as JSON has them, and the fabric between them; None where no pair meets the targets."""
    if pools is None:
        return dict.fromkeys(("prefill", "decode", "kv_transfer_bytes", "kv_transfer_seconds", "disaggregated"))
    return {
        "prefill": pools.prefill.record() | {"ttft_seconds": pools.ttft_seconds},
        "decode": pools.decode.record() | {"tpot_seconds": pools.decode.seconds},
        "kv_transfer_bytes": round(pools.kv_transfer_bytes),
        "kv_transfer_seconds": pools.kv_transfer_seconds,
        "disaggregated": {
            "requests_per_second": pools.requests_per_second,
            "served_at_target": pools.served_at_target,
            "n_instances": pools.n_instances,
            "monthly_usd": pools.monthly_usd,
            "measured": False,
        },
    }


def disaggregated(solved: Solution, row: int) -> Apart | None:
    """The cheapest pair of pools that serves a load's requests a second within its targets; None where there is none.

    Of requests at once: those a second that the answer for one pool finishes; where it has none, those of requests
    that each take exactly their targets. Both pools have allowance for chance, as a rate has.
    """
    if solved.workload_of(row).output_tokens < 2:
        raise ScenarioError("disaggregated: an answer of one token is its prompt alone. Give 2 output_tokens or more.")
    rate = requests_per_second(solved, row)
    inside = _inside_one_machine(solved, row)
    if not len(inside):
        return None
    prompts, answers = _prefill_pool(solved, row, inside, rate), _decode_pool(solved, row, inside, rate)
    limit = float(solved.grid.spread("ttft_limit_seconds", ("load",))[row])
    candidates = [solved.candidate(int(i)) for i in inside]
    first, second, regions, dearer = _pairs(candidates, prompts.turn_seconds <= limit, answers.places > 0)
    if not len(first):
        return None
    moved = kv_transfer_bytes(solved, row)
    columns = _of_offers(solved, row, inside)
    is_of_zone = solved.question.settings.survive == parallelism.ZONE
    machines, shared = _machines(columns, prompts, answers, first, second, shares=not is_of_zone)
    slowest, sums = _fabric(solved, columns, machines, first, second)
    with numpy.errstate(divide="ignore"):
        transfer = numpy.where(rate * moved < sums, moved / slowest / (1 - rate * moved / sums), numpy.inf)
    ttft = prompts.turn_seconds[first] + transfer
    months = (columns["instance_month_usd"][side] * times for side, times in zip((first, second), dearer, strict=True))
    usd = sum(n * month for n, month in zip(machines, months, strict=True))
    gpus = machines[0] * columns["gpu_count"][first] + machines[1] * columns["gpu_count"][second]
    monthly = numpy.where(ttft <= limit, usd, numpy.nan)
    pairs = solved.grid.along("offer", {}, len(first))
    pairs.put(
        ("offer",),
        {
            "monthly_usd": monthly,
            "instance_month_usd": usd / machines.sum(axis=0),
            "gpu_month_usd": usd / gpus,
            "suitability": numpy.minimum(columns["runs_weights"][first], columns["runs_weights"][second]),
            "ranked_requests": numpy.ones(len(first)),
            "gpu_count": columns["gpu_count"][second],
            "tensor_parallel_size": columns["tensor_parallel_size"][second],
            "data_parallel_size": columns["data_parallel_size"][second],
        },
    )
    pairs = pairs.along("chosen", {"load": [row]})
    pairs.put((), {"survive": 0.0})
    best = pick(pairs, loads="chosen")[0]
    if best is None:
        return None
    pair = best[0].offer
    prefill, decode = (
        Pool(
            candidates[i].in_region(regions[pair]),
            solved.layout(int(inside[i])),
            int(sized.n_replicas[i]),
            int(sized.places[i]),
            float(sized.seconds[i]),
        )
        for sized, i in ((prompts, first[pair]), (answers, second[pair]))
    )
    spare = solved.question.settings.extra_headroom_fraction
    by_fabric = (
        sums[pair] / moved * (1 - moved / slowest[pair] / (limit - prompts.turn_seconds[first[pair]])) / (1 + spare)
    )
    holds = columns["replicas_per_instance"]
    splits = [[float(n * holds[i]) for n, i in zip(machines[:, pair], (first[pair], second[pair]), strict=True)]]
    if shared[pair]:  # the rest of the last machine can go to either pool
        free = int(machines[0][pair]) * prefill.candidate.gpu_count - prefill.n_gpus - decode.n_gpus
        splits = [
            [
                prefill.n_replicas + more,
                decode.n_replicas + (free - more * prefill.layout.n_gpus) // decode.layout.n_gpus,
            ]
            for more in range(free // prefill.layout.n_gpus + 1)
        ]
    served = max(
        min(
            _served(solved, columns, prompts, int(first[pair]), n),
            _served(solved, columns, answers, int(second[pair]), n_decode),
        )
        for n, n_decode in splits
    )
    counts = Counter({prefill.candidate.instance: int(machines[0][pair])})
    counts[decode.candidate.instance] += int(machines[1][pair])
    return Apart(rate, min(by_fabric, served), prefill, decode, dict(counts), best[0].usd, moved, float(transfer[pair]))


def _of_offers(solved: Solution, row: int, offers: Column) -> Columns:
    """The quantities of each offer that the search for pairs reads."""
    names = ("instance_month_usd", "gpu_count", "replicas_per_instance", "network_gbps", "runs_weights",
             "tensor_parallel_size", "data_parallel_size", "interconnect_bytes_per_second",
             "link_efficiency")  # fmt: skip
    columns = {name: solved.costs[name][row][offers] for name in names}
    return columns | {"candidate": numpy.array([solved.offers[i].candidate for i in offers])}


def _pairs(
    candidates: Sequence[Candidate], prefills: Column, decodes: Column
) -> tuple[Column, Column, list[str], Column]:
    """Pairs of candidates that can be the two pools in one region of one provider: the region where both are at their
    cheapest, otherwise every region that they share. Returns the positions of both, the regions, and what both cost
    there as a multiple of their own prices."""
    places = [(candidate.provider, candidate.region) for candidate in candidates]
    place = numpy.array(list(map(places.index, places)), int)
    own = numpy.array([candidate.usd_per_hour for candidate in candidates])
    can = prefills[:, None] & decodes[None, :]
    groups = [(*numpy.nonzero((place[:, None] == place[None, :]) & can), own)]
    regions = [places[i][1] for i in place[groups[0][0]]]
    others = {(candidate.provider, region) for candidate in candidates for region, _ in candidate.by_region}
    for provider, region in sorted(others):
        usd = numpy.array([c.usd_in(region) if c.provider == provider else numpy.nan for c in candidates])
        sold = ~numpy.isnan(usd)
        pairs = numpy.nonzero(can & (place[:, None] != place[None, :]) & sold[:, None] & sold[None, :])
        groups.append((*pairs, usd))
        regions += [region] * len(pairs[0])
    first, second = (numpy.concatenate([pairs[side] for pairs in groups]) for side in (0, 1))
    dearer = [numpy.concatenate([(usd / own)[pairs[side]] for *pairs, usd in groups]) for side in (0, 1)]
    return first, second, regions, dearer


def _machines(
    columns: Columns, prompts: _Sized, answers: _Sized, first: Column, second: Column, shares: bool
) -> tuple[Column, Column]:
    """Machines of both pools (2 x pairs), and whether the pools share them; shared machines are counted as prefill's.

    Replicas whose sizes are powers of two leave no gap on a machine whose number of GPUs is one. shares: whether pools
    on the same type of instance may share machines; they may not where a zone is to be survived, as the replicas of
    each pool then stand evenly over the zones.
    """
    replica_gpus = columns["tensor_parallel_size"] * columns["data_parallel_size"]
    gpus, holds = columns["gpu_count"], columns["replicas_per_instance"]
    apart = numpy.stack(
        [
            round_up(prompts.n_replicas[first] / holds[first]),
            round_up(answers.n_replicas[second] / holds[second]),
        ]
    )
    whole = prompts.n_replicas[first] * replica_gpus[first] + answers.n_replicas[second] * replica_gpus[second]
    together = numpy.stack([round_up(whole / gpus[first]), 0 * whole])
    fills = shares & (numpy.log2(gpus) % 1 == 0)
    shared = (columns["candidate"][first] == columns["candidate"][second]) & fills[first]
    return numpy.where(shared, together, apart), shared


def _fabric(
    solved: Solution, columns: Columns, machines: Column, first: Column, second: Column
) -> tuple[Column, Column]:
    """For each pair, bytes a second for one prompt's cache, and for all prompts together on the replicas left after the
    loss.

    Inside one machine over one GPU's link, else over the network: a replica has its GPUs' share of its machine's, and
    the slower side counts. Transfers share the fabric: one takes bytes / rate / (1 - utilization). Source: mean time of
    a processor-sharing queue.
    """
    network = columns["network_gbps"] * GBPS
    replica = network * columns["tensor_parallel_size"] * columns["data_parallel_size"] / columns["gpu_count"]
    link = (columns["interconnect_bytes_per_second"] * columns["link_efficiency"])[first]
    settings = solved.question.settings
    left = machines
    if settings.survive >= parallelism.MACHINE:
        left = parallelism.surviving_replicas(machines, 1, settings.survive, settings.zones)
    theirs = numpy.where(machines[1] == 0, left[0], left[1])  # shared machines count as prefill's
    inside = machines.sum(axis=0) == 1
    slowest = numpy.where(inside, link, numpy.minimum(replica[first], replica[second]))
    return slowest, numpy.where(inside, link, numpy.minimum(left[0] * network[first], theirs * network[second]))


def _served(solved: Solution, columns: Columns, sized: _Sized, i: int, n_replicas: float) -> float:
    """The most requests a second that so many replicas of one pool serve, after the loss that is to be survived."""
    per_instance = float(columns["replicas_per_instance"][i])
    return float(
        rates.served_requests_per_second.of(
            {
                **vars(solved.question.settings),
                "wait_z": _wait_z(solved),
                "replicas_per_instance": per_instance,
                "n_instances": n_replicas / per_instance,
                "paced_requests": float(sized.places[i]),
                "full_turn_seconds": float(sized.turn_seconds[i]),
                "replica_prefill_seconds": NO_PROMPT_SECONDS,  # a place of the prompts' pool is one prompt's
            }
        )
    )


def _wait_z(solved: Solution) -> float:
    return float(solved.grid.read("wait_z", ()))


def requests_per_second(solved: Solution, row: int) -> float:
    """Requests a second of a load, with the extra headroom: as stated, or from its requests at once by Little's law."""
    choice, grid = solved.choices[row], solved.grid
    if rate := solved.question.loads[row].requests_per_second:
        return rate * (1 + solved.question.settings.extra_headroom_fraction)
    numbers = {name: float(grid.spread(name, ("load",))[row]) for name in ("load_requests", "output_tokens")}
    if choice.offer is not None:
        return choice.output_tokens_per_second / max(1.0, numbers["output_tokens"])
    ttft, tpot = (float(grid.spread(f"{time}_limit_seconds", ("load",))[row]) for time in ("ttft", "tpot"))
    return numbers["load_requests"] / (ttft + (numbers["output_tokens"] - 1) * tpot)


def kv_transfer_bytes(solved: Solution, row: int) -> float:
    """KV cache of one prompt, in bytes, not divided over GPUs: it has to reach the other pool."""
    whole = solved.grid.along("chosen", {"load": [row], "profile": [solved.undivided_profile(row)]})
    whole.put(OF_CHOSEN, {"charged_tokens": whole.spread("input_tokens", OF_CHOSEN)})
    whole.work_out(CELL_KV)
    return float(whole.spread("kv_bytes_per_sequence_steady", OF_CHOSEN)[0])


def _inside_one_machine(solved: Solution, row: int) -> Column:
    """Positions of the offers that hold a request of the load inside one machine and whose network is known."""
    costs = solved.costs
    held = (costs["pipeline_stages"][row] == 1) & (costs["sequences"][row] >= 1) & (costs["network_gbps"][row] > 0)
    return numpy.flatnonzero(held & (costs["instance_month_usd"][row] > 0))


@dataclass(frozen=True)
class _Sized:
    """The size of a pool by offer."""

    seconds: Column  # predicted, of a prompt or of a token
    places: Column  # requests at once on a replica
    turn_seconds: Column  # for which a request has its place on a full replica, at the confidence
    n_replicas: Column  # for the rate and for the loss that is to be survived


def _replicas(grid: Grid, places: Column, per_replica: Column) -> Column:
    """Replicas of a pool for so many places, so many on each, with those that may be lost."""
    quantities = {name: grid.spread(name, OF_CHOSEN) for name in ("replicas_per_instance", "survive", "zones")}
    return parallelism.n_replicas.of(quantities | {"load_requests": places, "paced_requests": per_replica})


def _prefill_pool(solved: Solution, row: int, offers: Column, rate: float) -> _Sized:
    """The prefill pool: a replica takes one prompt at a time, with no decoding in its way."""
    grid = solved.grid.along("chosen", {"load": [row] * len(offers), "offer": offers})
    grid = grid.read_again(AGAIN.again("prompts_alone"), AGAIN)
    prompts, seconds = numpy.ones(len(offers)), grid.spread("service_ttft_seconds", OF_CHOSEN)
    sure = seconds * grid.spread("ttft_level_factor", OF_CHOSEN)
    alone = grid.spread("data_parallel_size", OF_CHOSEN) == 1  # other ranks would only wait for a prompt's steps
    n_places = rates.places.of({"offered_requests": rate * sure, "wait_z": _wait_z(solved)})
    return _Sized(seconds, prompts, numpy.where(alone, sure, numpy.inf), _replicas(grid, n_places, prompts))


def _decode_pool(solved: Solution, row: int, offers: Column, rate: float) -> _Sized:
    """The decode pool: a replica has no prompts among its steps."""
    grid = solved.grid.along("chosen", {"load": [row] * len(offers), "offer": offers})
    grid = grid.read_again(AGAIN.again("answers_alone"), AGAIN)
    places = grid.spread("paced_requests", OF_CHOSEN)
    answer = grid.spread("output_tokens", OF_CHOSEN) - 1
    at_once = numpy.maximum(1, places)
    full = answer * _token_seconds(grid, at_once) * grid.spread("tpot_level_factor", OF_CHOSEN)
    n_places = rates.places.of({"offered_requests": rate * full, "wait_z": _wait_z(solved)})
    serving = parallelism.needed_replicas(n_places, at_once)
    busy = numpy.minimum(at_once, numpy.maximum(1, round_up(rate * full / serving)))  # at once, on the fullest one
    return _Sized(_token_seconds(grid, busy), places, full, _replicas(grid, n_places, at_once))


def _token_seconds(grid: Grid, requests: Column) -> Column:
    grid.put(OF_CHOSEN, {"running_requests": requests})
    grid.work_out(FURTHER_TOKENS)
    return grid.spread("tpot_seconds", OF_CHOSEN)

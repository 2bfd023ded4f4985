"""The reverse question: what a sum a month, or machines that one owns, serve at most within the targets.

Machines of several kinds serve side by side, each kind in the layout that makes the most of all of them. A failure is
one in all, wherever it takes most: one replica, one machine, or the machines of one zone. Each kind is spread evenly
over the zones, by the rule of `parallelism.surviving_replicas`.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy

from sheetgen.answer.answer_record import Json, RentalRecord, as_json
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import OF_CHOSEN, tables
from sheetgen.catalog.hardware import GPUS_OF_A_MACHINE, Gpu, Instance
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, shown
from sheetgen.formula import Formula
from sheetgen.program.grid import Column
from sheetgen.program.sheet_program import CHOSEN, SHEET
from sheetgen.question.market import Candidate, shares_experts
from sheetgen.question.parse import Options
from sheetgen.question.sheet_question import Question
from sheetgen.sizing import parallelism, rates, speed
from sheetgen.units import Layout, count

MOST_GPUS = 100_000
_HAVE = re.compile(r"(?P<gpu>[^:]+):(?:(?P<machines>[0-9]{1,6})x)?(?P<gpus>[0-9]{1,6})")
EXAMPLE = "Write GPU:NUMBER, such as h100:16, or GPU:MACHINESxGPUS, such as l40s:8x4; several by commas."
OWN = "own"  # the provider of one's own machines


@dataclass(frozen=True)
class Most:
    """The most that machines of one kind serve; with several kinds, this kind's part of the most that all serve, after
    the loss."""

    candidate: Candidate
    layout: Layout
    n_instances: int
    n_replicas: int
    monthly_usd: float | None  # None of one's own machines
    served_at_target: int  # requests at once
    requests_per_second: float  # with allowance for chance
    memory_holds: int
    ttft_seconds: float
    tpot_seconds: float
    of_one_more: int  # requests at once of all kinds with one machine more of this, or as many as a replica spans
    pipeline_parallel_size: int = 1

    def record(self) -> Json:
        """The answer as JSON has it."""
        return {
            "instance": self.candidate.instance,
            "gpu": self.candidate.gpu.id,
            **self.layout._asdict(),
            "pipeline_parallel_size": self.pipeline_parallel_size,
            "n_instances": self.n_instances,
            "n_gpus": self.n_instances * self.candidate.gpu_count,
            "n_replicas": self.n_replicas,
            "monthly_usd": self.monthly_usd,
            "served_at_target": self.served_at_target,
            "requests_per_second": self.requests_per_second,
            "memory_holds": self.memory_holds,
            "ttft_seconds": self.ttft_seconds,
            "tpot_seconds": self.tpot_seconds,
            "served_at_target_with_one_more": self.of_one_more,
        }


@dataclass(frozen=True)
class Reverse:
    """The most requests at once and the most a second: not always in the same layouts, nor on the same hardware.

    Both lists have an entry for each kind of machines, None where it takes no part; a budget is one kind.
    `next_rent` is the rental that serves one more request at once; beside one's own machines, a rental for that one.
    """

    question: Question
    asked: Options  # budget_usd or have, as stated
    machines: tuple[tuple[Candidate, int], ...]  # one's own, by kind
    in_flight: tuple[Most | None, ...]
    per_second: tuple[Most | None, ...]
    next_rent: RentalRecord | None = None
    next_verdict: str = ""  # why nothing serves the next step
    held: tuple[bool, ...] = ()  # by kind, whether memory holds one request, however slow

    @property
    def served_at_target(self) -> int:
        return sum(most.served_at_target for most in self.in_flight if most)

    @property
    def requests_per_second(self) -> float:
        return sum(most.requests_per_second for most in self.per_second if most)

    def with_step(self, solved: Solution) -> Reverse:
        """The same with the next step solved."""
        choice, more = solved.choices[0], solved.choices[0].cheapest
        rent = more and RentalRecord(solved.candidate(more.offer).instance, more.n_instances, more.usd)
        return replace(self, next_rent=rent, next_verdict=choice.verdict)

    def record(self) -> Json:
        """The answer as JSON has it."""
        rent = self.next_rent
        return {
            "model": self.question.models[0].model.id,
            "context_tokens": self.question.loads[0].context_tokens,
            **self.asked,
            "served_at_target": self.served_at_target,
            "requests_per_second": self.requests_per_second,
            "answers": [most.record() for most in self.in_flight if most],
            "answers_per_second": [most.record() for most in self.per_second if most],
            "next_step": rent
            and {
                "concurrent_requests": self.served_at_target + 1,
                **as_json(rent),
                "beside": bool(self.machines),
            },
        }


def within_budget(question: Question, usd: float) -> Reverse:
    """The most that a sum a month rents: the most served, then the lower price, then fewer machines.

    question: of one model and workload.
    """
    solved = tables(question)
    months = solved.costs["instance_month_usd"][0]
    affordable = numpy.where(months > 0, numpy.floor(usd / numpy.where(months > 0, months, 1) * (1 + 1e-12)), 0)
    in_flight, per_second = _Machines(solved, affordable, (numpy.arange(len(solved.offers)),)).answers()
    return Reverse(question, {"budget_usd": usd}, (), in_flight, per_second)


def with_machines(question: Question, have: str, catalog: Catalog) -> Reverse:
    """The most that one's own machines serve; `have` is text for `machines_of`.

    They have the network of the best such machine that is rented: a replica spans them by the rule of `recommend`.
    Raises ScenarioError or CatalogError for what cannot be read.
    """
    machines = machines_of(have, catalog)
    own = tuple(
        Candidate(
            instance=f"{size}x {gpu.short_name}",
            provider=OWN,
            gpu=gpu,
            gpu_count=size,
            purchase=question.settings.purchase,
            usd_per_hour=1.0,
            price_as_of=None,
            region="",
            source="stated",
            network_gbps=network_gbps(catalog, gpu, size),
            tries_ranks=shares_experts(gpu),
            nvlink_domain_gpus=nvlink_domain_gpus(catalog, gpu, size, count),
        )
        for gpu, size, count in machines
    )
    solved = tables(replace(question, candidates=own, gpus=tuple({gpu.id: gpu for gpu, _, _ in machines}.values())))
    kind = numpy.array([offer.candidate for offer in solved.offers], int)
    counts = numpy.array([float(count) for _, _, count in machines])
    kinds = tuple(numpy.flatnonzero(kind == i) for i in range(len(own)))
    machines_held = _Machines(solved, counts[kind], kinds)
    in_flight, per_second = machines_held.answers()
    stated = tuple((candidate, count) for candidate, (_, _, count) in zip(own, machines, strict=True))
    return Reverse(question, {"have": have}, stated, in_flight, per_second, held=tuple(machines_held.hold()))


def network_gbps(catalog: Catalog, gpu: Gpu, gpu_count: int) -> float:
    """The fastest network of machines with so many of a GPU that are rented, in Gbit/s; 0 where none is stated."""
    return max((instance.network_gbps or 0.0 for instance in _same_machines(catalog, gpu, gpu_count)), default=0.0)


def nvlink_domain_gpus(catalog: Catalog, gpu: Gpu, gpu_count: int, n_machines: int) -> int:
    """GPUs that NVLink joins where so many such machines stand in racks as rented ones do."""
    domains = (instance.nvlink_domain_gpus or 0 for instance in _same_machines(catalog, gpu, gpu_count))
    return min(gpu_count * n_machines, max(domains, default=0))


def _same_machines(catalog: Catalog, gpu: Gpu, gpu_count: int) -> Iterator[Instance]:
    return (instance for instance in catalog.instances() if instance.gpu == gpu.id and instance.gpu_count == gpu_count)


def machines_of(text: str, catalog: Catalog) -> list[tuple[Gpu, int, int]]:
    """`h100:16` as two machines of eight; `l40s:8x4` as eight of four; a remainder of eights as one machine.

    Raises ScenarioError for what cannot be read, CatalogError for a GPU that is not known.
    """
    machines: list[tuple[Gpu, int, int]] = []
    for part in text.split(","):
        read = _HAVE.fullmatch(part.strip())
        if read is None:
            raise ScenarioError(f"have is {shown(part.strip())!r}. {EXAMPLE}")
        gpu, gpus = catalog.gpu(read["gpu"]), int(read["gpus"])
        count = int(read["machines"] or 1)
        if not 1 <= gpus * count <= MOST_GPUS:
            raise ScenarioError(f"have is {shown(part.strip())!r}. It must be 1 to {MOST_GPUS:,} GPUs.")
        most = gpu.most_of_a_machine or GPUS_OF_A_MACHINE
        if read["machines"] is None and gpus > most:
            count, left = divmod(gpus, most)
            machines += [(gpu, most, count), *([(gpu, left, 1)] if left else [])]
        else:
            machines.append((gpu, gpus, count))
    alike = Counter[tuple[str, int]]()
    for gpu, size, count in machines:
        alike[gpu.id, size] += count
    return [(catalog.gpu(name), size, count) for (name, size), count in alike.items()]


IN_FLIGHT, PER_SECOND = parallelism.served_at_target, rates.served_requests_per_second
_READ = tuple(
    dict.fromkeys(
        n for formula in (IN_FLIGHT, PER_SECOND) for n in formula.inputs if n not in ("n_instances", "survive")
    )
)


class _Machines:
    """How many machines there are of each offer. Each kind of machine runs one of its offers: what they serve together,
    and what a loss takes.

    A loss takes whole parts: a replica, or a machine with all on it; of replicas that span machines whole ones.
    """

    def __init__(self, solved: Solution, counts: Column, kinds: Sequence[Column]) -> None:
        self.solved, self.kinds = solved, kinds
        self.survive, self.zones = (int(solved.grid.read(name, ())) for name in ("survive", "zones"))
        of_rate = (rates.full_batch_requests, rates.full_turn_seconds, rates.replica_prefill_seconds)
        solved.grid.evaluate(of_rate, SHEET["rates"].axes)
        self.known = {name: solved.costs[name][0] for name in (*_READ, "instance_month_usd")}
        per_machine = self.known["replicas_per_instance"]
        replica = numpy.where(per_machine > 0, 1 / numpy.where(per_machine > 0, per_machine, 1), 1)  # in machines
        self.spanned = numpy.maximum(1, numpy.round(replica))
        self.part = replica if self.survive == parallelism.REPLICA else self.spanned
        self.counts = numpy.floor(counts / self.spanned) * self.spanned  # a part of a replica serves nothing

    def hold(self) -> Iterator[bool]:
        """By kind, whether memory on the machines that there are holds one request."""
        places = self.known["replicas_per_instance"] * self.counts
        sequences = self.solved.sequences["sequences"][0, [offer.profile for offer in self.solved.offers]]
        yield from (bool(((places >= 1) & (sequences >= 1))[offers].any()) for offers in self.kinds)

    def serves(self, formula: Formula, offers: Column, lost: Column = 0, more: Column = 0) -> Column:
        """The load that these offers serve after losing so many parts, with so many machines more."""
        quantities = {name: column[offers] for name, column in self.known.items()}
        left = numpy.maximum(0, self.counts[offers] + more - lost * self.part[offers])
        served = formula.of(quantities | {"n_instances": left, "survive": 0})
        return numpy.where(quantities["paced_requests"] > 0, served, 0)  # without the rounding error of the root of 0

    def losses(self, offers: Column, more: Column) -> Column:
        """Every loss to be survived where these offers serve side by side: parts of each, loss x offer."""
        parts = numpy.round((self.counts[offers] + more) / self.part[offers])
        if not self.survive:
            return 0 * parts[None]
        if self.survive < parallelism.ZONE:
            return numpy.minimum(numpy.eye(len(offers)), parts)
        return numpy.ceil(parts / self.zones)[None]

    def worst(self, formula: Formula, offers: Column, more: Column = 0) -> tuple[Column, float]:
        """The loss after which these offers serve least, and how much they serve then."""
        losses = self.losses(offers, more)
        served = [float(self.serves(formula, offers, lost, more).sum()) for lost in losses]
        least = int(numpy.argmin(served))
        return losses[least], served[least]

    def best(self, formula: Formula) -> list[int | None]:
        """By kind, the offer with which all together serve the most after the loss; None for a kind that serves
        nothing.

        A loss of one part strikes the kind that loses most by it. So each amount that may be the greatest loss is tried
        as a limit: each kind runs its best offer that loses no more, and the best of these combinations is the answer.
        A zone takes its share of each kind, whatever the others are.
        """
        every = numpy.arange(len(self.counts))
        full, usd = self.serves(formula, every), self.counts * self.known["instance_month_usd"]
        of_zone = self.survive == parallelism.ZONE
        parts = numpy.round(self.counts / self.part)
        alone = self.serves(formula, every, numpy.ceil(parts / self.zones) if of_zone else min(1, self.survive))
        rank = numpy.lexsort((self.counts, usd, -full, -alone) if of_zone else (self.counts, usd, -full))
        place = numpy.argsort(rank)
        ranked = [offers[numpy.argsort(place[offers])] for offers in self.kinds]
        ranked = [offers[full[offers] > 0] for offers in ranked]
        loss = full - alone
        best_picks: list[int | None] = [None] * len(self.kinds)
        most = (0.0, 0.0, 0.0)

        for limit in (numpy.inf,) if of_zone else numpy.unique(loss):
            picks = [next(iter(offers[loss[offers] <= limit].tolist()), None) for offers in ranked]
            taken = numpy.array([i for i in picks if i is not None], int)
            if len(taken):
                served = self.worst(formula, taken)[1], -float(usd[taken].sum()), -float(self.counts[taken].sum())
                if served > most:
                    best_picks, most = picks, served
        return best_picks

    def answers(self) -> Iterator[tuple[Most | None, ...]]:
        """By kind, the most at once, then the most a second."""
        for formula in (IN_FLIGHT, PER_SECOND):
            picks = self.best(formula)
            taken = numpy.array([i for i in picks if i is not None], int)
            lost, _ = self.worst(formula, taken) if len(taken) else ((), 0)
            left = itertools.count()
            yield tuple(None if i is None else self._most(taken, lost, next(left)) for i in picks)

    def _most(self, taken: Column, lost: Column, place: int) -> Most:
        """The answer of one kind: times are those of the replicas that are left, as full as the served load makes
        them."""
        offer = int(taken[place])
        count, offers = int(self.counts[offer]), [offer]
        served = int(self.serves(IN_FLIGHT, offers, lost[place])[0])
        per_machine, paced = (float(self.known[name][offer]) for name in ("replicas_per_instance", "paced_requests"))
        left = round((count - lost[place] * self.part[offer]) * per_machine)
        full = min(paced, numpy.ceil(served / left)) if left and served else paced
        grid = self.solved.grid.along("chosen", {"load": [0], "offer": offers})
        grid.put(OF_CHOSEN, {"n_instances": [count], "running_requests": [full], "requests_per_replica": [full]})
        grid.evaluate((parallelism.memory_holds, speed.batch_requests), OF_CHOSEN)
        grid.work_out(CHOSEN["pace"])
        columns = grid.table(*OF_CHOSEN)
        more = numpy.where(numpy.arange(len(taken)) == place, self.spanned[taken], 0)
        months = count * float(self.known["instance_month_usd"][offer])
        candidate = self.solved.candidate(offer)
        return Most(
            candidate,
            self.solved.layout(offer),
            count,
            round(count * per_machine),
            None if candidate.provider == OWN else months,
            served,
            float(self.serves(PER_SECOND, offers, lost[place])[0]),
            int(columns["memory_holds"][0]),
            float(columns["ttft_seconds"][0]),
            float(columns["tpot_seconds"][0]),
            int(self.worst(IN_FLIGHT, taken, more)[1]),
            int(columns["pipeline_stages"][0]),
        )


def in_words(most: Most) -> Iterator[str]:
    """An answer in words, without its cost."""
    stages = most.pipeline_parallel_size
    gpus = f"{most.layout.n_gpus * stages}x {most.candidate.gpu.short_name} ({most.layout.words(stages)})"
    yield (
        f"{count(most.n_replicas, 'replica')} of {gpus}, {1000 * most.tpot_seconds:.0f} ms a token, first token "
        f"{most.ttft_seconds:.1f} s; memory for at least {most.memory_holds:,} at once"
    )
    if stages > 1 and most.candidate.provider == OWN:
        yield (
            f"machines are taken to have {most.candidate.network_gbps:,.0f} Gbit/s between them as rented ones have; "
            "--span-machines never where yours do not"
        )

"""The reverse question: what a sum a month, or machines that one has, serve at most within the targets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, shown
from sheetgen.estimate import PACE
from sheetgen.recommend.solution import Axes, Solution, Table
from sheetgen.recommend.solve import tables
from sheetgen.scenario.market import Candidate, shares_experts
from sheetgen.scenario.question import Question
from sheetgen.sizing import parallelism, rates
from sheetgen.units import Layout

GPUS_OF_A_MACHINE = 8  # where only a number of GPUs is stated
MOST_GPUS = 100_000
_HAVE = re.compile(r"(?P<gpu>[^:]+):(?:(?P<machines>\d{1,6})x)?(?P<gpus>\d{1,6})")
EXAMPLE = "Write GPU:NUMBER, such as h100:16, or GPU:MACHINESxGPUS, such as l40s:8x4; several by commas."


@dataclass(frozen=True)
class Most:
    """What machines of one kind serve at most."""

    candidate: Candidate
    layout: Layout
    n_instances: int
    n_replicas: int
    monthly_usd: float | None  # None of one's own machines
    served_at_target: int  # requests in flight
    requests_per_second: float  # with room for chance
    memory_holds: int
    ttft_seconds: float
    tpot_seconds: float
    of_one_more: int  # requests in flight with one machine more, or as many as a replica spans
    pipeline_parallel_size: int = 1


def within_budget(question: Question, usd: float) -> Most | None:
    """The most that a sum a month rents: most requests in flight, then the lower price, then fewer machines. None where
    it rents nothing that serves a request. question: of one model and workload."""
    solved = tables(question)
    months = solved.costs["instance_month_usd"][0]
    affordable = numpy.where(months > 0, numpy.floor(usd / numpy.where(months > 0, months, 1) * (1 + 1e-12)), 0)
    return _best(solved, affordable, months)


def with_machines(question: Question, machines: Sequence[tuple[Gpu, int, int]]) -> list[tuple[Candidate, Most | None]]:
    """What each kind of machine serves at most, by itself. machines: its GPU, GPUs of a machine, and machines."""
    found = []
    for gpu, size, count in machines:
        own = Candidate(
            instance=f"{size}x {gpu.short_name}", provider="own", gpu=gpu, gpu_count=size,
            purchase=question.settings.purchase, usd_per_hour=1.0, price_as_of=None, region="", source="stated",
            tries_ranks=shares_experts(gpu),
        )  # fmt: skip
        solved = tables(replace(question, candidates=(own,), gpus=(gpu,)))
        most = _best(solved, numpy.full(len(solved.offers), float(count)), numpy.ones(len(solved.offers)))
        found.append((own, most and replace(most, monthly_usd=None)))
    return found


def machines_of(text: str, catalog: Catalog) -> list[tuple[Gpu, int, int]]:
    """`h100:16` as two machines of eight; `l40s:8x4` as eight of four; what is left of eights as one machine.

    Raises ScenarioError for what cannot be read, CatalogError for a GPU that is not known.
    """
    found: list[tuple[Gpu, int, int]] = []
    for part in text.split(","):
        read = _HAVE.fullmatch(part.strip())
        if read is None:
            raise ScenarioError(f"have is {shown(part.strip())!r}. {EXAMPLE}")
        gpu, gpus = catalog.gpu(read["gpu"]), int(read["gpus"])
        count = int(read["machines"] or 1)
        if not 1 <= gpus * count <= MOST_GPUS:
            raise ScenarioError(f"have is {shown(part.strip())!r}. It must be 1 to {MOST_GPUS:,} GPUs.")
        if read["machines"] is None and gpus > GPUS_OF_A_MACHINE:
            count, left = divmod(gpus, GPUS_OF_A_MACHINE)
            found += [(gpu, GPUS_OF_A_MACHINE, count), *([(gpu, left, 1)] if left else [])]
        else:
            found.append((gpu, gpus, count))
    alike: dict[tuple[str, int], tuple[Gpu, int, int]] = {}
    for gpu, size, count in found:
        alike[gpu.id, size] = (gpu, size, count + alike.get((gpu.id, size), (gpu, size, 0))[2])
    return list(alike.values())


def _best(solved: Solution, counts: Any, months: Any) -> Most | None:
    """Of all offers, so many machines each, what serves the most."""
    costs = solved.costs
    known = {name: costs[name][0] for name in (*_OF_SERVED, "data_parallel_size")}
    each = known["replicas_per_instance"]
    spanned = numpy.where((each > 0) & (each < 1), numpy.round(1 / numpy.where(each > 0, each, 1)), 1)
    counts = numpy.floor(counts / spanned) * spanned  # machines in which no replica is whole serve nothing
    serves = parallelism.served_at_target.of(known | {"n_instances": counts})
    # Data-parallel ranks are for loads that give each a request.
    serves = numpy.where(known["paced_requests"] >= known["data_parallel_size"], serves, 0)
    best = max(range(len(serves)), key=lambda i: (serves[i], -counts[i] * months[i], -counts[i]), default=None)
    if best is None or serves[best] < 1:
        return None
    return _most(solved, best, int(counts[best]), float(counts[best] * months[best]), int(serves[best]))


_OF_SERVED = tuple(name for name in parallelism.served_at_target.inputs if name != "n_instances")


def _most(solved: Solution, offer: int, count: int, usd: float, served: int) -> Most:
    """What is said of so many machines: as many are rented as serve it, and times are those of full replicas."""
    one: Axes = ("chosen",)
    at = solved.grid.along("chosen", {"load": [0], "offer": [offer]})
    at.put(one, {"pipeline_parallel_size": at.read("pipeline_stages", one), "n_instances": [count]})
    of_rate = (rates.full_batch_requests, rates.full_turn_seconds, rates.served_requests_per_second)
    held = at.evaluate((parallelism.memory_holds, *of_rate), one)
    known = {name: float(column[0]) for name, column in Table(at, one, (1,)).items() if name in _OF_SERVED}
    left = parallelism.surviving_replicas(count, *(known[n] for n in ("replicas_per_instance", "survive", "zones")))
    full = [min(known["paced_requests"], numpy.ceil(served / max(1, left)))]
    at.put(one, {"running_requests": full, "concurrent_requests": full})
    pace = at.evaluate(PACE, one)
    stages = int(at.read("pipeline_stages", one)[0])
    more = int(parallelism.served_at_target.of(known | {"n_instances": count + stages}))
    return Most(
        solved.candidate(offer), solved.layout(offer), count, round(count * known["replicas_per_instance"]), usd,
        served, float(held["served_requests_per_second"][0]), int(held["memory_holds"][0]),
        float(pace["ttft_seconds"][0]), float(pace["tpot_seconds"][0]), more, stages,
    )  # fmt: skip


def record(most: Most) -> dict[str, Any]:
    """An answer as JSON has it."""
    return {
        "instance": most.candidate.instance, "gpu": most.candidate.gpu.id, **most.layout._asdict(),
        "pipeline_parallel_size": most.pipeline_parallel_size,
        "n_instances": most.n_instances, "n_gpus": most.n_instances * most.candidate.gpu_count,
        "n_replicas": most.n_replicas, "monthly_usd": most.monthly_usd, "served_at_target": most.served_at_target,
        "requests_per_second": most.requests_per_second, "memory_holds": most.memory_holds,
        "ttft_seconds": most.ttft_seconds, "tpot_seconds": most.tpot_seconds,
        "served_at_target_with_one_more": most.of_one_more,
    }  # fmt: skip


def in_words(most: Most) -> Iterator[str]:
    """An answer in words, without what it costs."""
    gpus = f"{most.layout.n_gpus * most.pipeline_parallel_size}x {most.candidate.gpu.short_name}"
    ranks = f", PP {most.pipeline_parallel_size}" if most.pipeline_parallel_size > 1 else ""
    ranks += f", DP {most.layout.data_parallel_size}" if most.layout.data_parallel_size > 1 else ""
    yield (
        f"{most.n_replicas:,} replica{'' if most.n_replicas == 1 else 's'} of {gpus} "
        f"(TP {most.layout.tensor_parallel_size}{ranks}), {1000 * most.tpot_seconds:.0f} ms a token, first token "
        f"{most.ttft_seconds:.1f} s; memory alone holds {most.memory_holds:,}"
    )

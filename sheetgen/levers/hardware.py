"""Levers of hardware: bigger GPUs, and weights in host memory.

Host memory is an indication, never a price: each step of decoding reads the bytes again, so every token waits.
"""

from __future__ import annotations

from dataclasses import replace

from sheetgen.levers.lever import Lever, Offload
from sheetgen.levers.plan import Change, Facts, Planned, finished
from sheetgen.recommend import Solution
from sheetgen.units import GB, GIB, ONE_DECIMAL, TENSOR_PARALLEL_SIZES


def bigger_gpus(solved: Solution, row: int) -> Planned:
    """The lever of a load; what is bigger is known when it is worked out, see `named`."""
    offer = solved.choices[row].offer
    if offer is None:
        return Planned("bigger-gpus", row, why_not="no GPU is chosen to be bigger than")
    gpu = solved.candidate(offer).gpu
    if not any(one.memory.engine_bytes > gpu.memory.engine_bytes for one in solved.question.gpus):
        return Planned("bigger-gpus", row, why_not=f"no candidate's GPU has more memory than the {gpu.short_name}")
    return Planned("bigger-gpus", row, Change(row, memory_above=gpu.memory.engine_bytes))


def named(lever: Lever) -> Lever:
    """The lever with the names of both GPUs and their memory."""
    if lever.before is None or lever.after is None:
        return lever
    old, new = lever.before.candidate.gpu, lever.after.candidate.gpu
    memory = [f"{one.short_name} ({ONE_DECIMAL.text(one.memory.engine_bytes / GIB)} GiB)" for one in (old, new)]
    return replace(lever, words=f"bigger GPUs: {new.short_name}", changed=f"{memory[0]} to {memory[1]}")


ID = "host-memory"


def host_memory(solved: Solution, row: int, facts: Facts) -> Lever:
    """The lever of a load: one replica fewer, else one pipeline stage, else half the tensor-parallel size."""
    found = _smaller(solved, row, facts)
    if isinstance(found, str):
        return finished(solved, Planned(ID, row, why_not=found), None, facts)
    lever = finished(solved, Planned(ID, row, changed=_changed(found)), None, facts)
    return replace(lever, why_not="", offload=found, note=f"{_note(found, facts)}. {lever.note}")


def _smaller(solved: Solution, row: int, facts: Facts) -> Offload | str:
    """What the smaller deployment would read from the host, or why there is none."""
    choice = solved.choices[row]
    if choice.offer is None:
        return "nothing is chosen to make smaller"
    profile = solved.offers[choice.offer].profile
    size, stages, replicas = (
        solved.tensor_parallel_size(choice.offer),
        choice.pipeline_parallel_size,
        choice.n_replicas,
    )
    if replicas > 1:
        replicas -= 1
    elif stages > 1:
        stages -= 1
    elif size > 1:
        size //= 2
        profile -= TENSOR_PARALLEL_SIZES.index(2 * size) - TENSOR_PARALLEL_SIZES.index(size)
    else:
        return "one GPU is the least"
    cell = solved.question.loads[row]
    gpu = solved.candidate(choice.offer).gpu
    link = facts.file.link(gpu.id)
    if link is None:
        return f"the {gpu.short_name}'s link to its host is not known here"

    at = solved.at(row, profile)

    def of(name: str) -> float:
        return float(at[name][0])

    if of("runs") != 1:
        return f"the heads do not divide over {size} GPUs"
    requests = -(-int(solved.cells["load_requests"][row]) // replicas)
    layers = solved.question.models[cell.model].model.n_layers
    share = -(-layers // stages) / layers
    parked = of("charge_bytes") * share
    weights = of("paid_layer_bytes") * share
    if stages == 1:
        short = requests * parked - of("kv_budget_bytes_per_gpu")
    else:
        short = requests * parked + weights - of("layer_budget_bytes")
    if short > weights:
        return f"{replicas * size * stages:,} GPUs would lack {short / GIB:,.1f} GiB each, more than their layers weigh"
    if short <= 0:
        return "it is not memory that asks for the last replica"
    return Offload(
        n_gpus=replicas * size * stages,
        bytes_per_gpu=short,
        link=link.name,
        link_bytes_per_second=link.bytes_per_second,
        seconds_per_token=short / link.bytes_per_second,
        nvme_seconds_per_token=short / facts.file.nvme_bytes_per_second,
        parked_kv_bytes_per_gpu=parked,
        parked_kv_seconds=parked / link.bytes_per_second,
    )


def _changed(found: Offload) -> str:
    gpus = f"{found.n_gpus:,} GPU{'' if found.n_gpus == 1 else 's'}"
    return f"{gpus}, {found.bytes_per_gpu / GIB:,.1f} GiB of weights of each in host memory"


def _note(found: Offload, facts: Facts) -> str:
    speed = f"{found.link}, {ONE_DECIMAL.text(found.link_bytes_per_second / GB)} GB/s one way"
    drive = f"{ONE_DECIMAL.text(facts.file.nvme_bytes_per_second / GB)} GB/s"
    return (
        f"Every token reads {found.bytes_per_gpu / GB:,.1f} GB over the host link ({speed}) on each GPU and waits at "
        f"least {_time(found.seconds_per_token)} more; from an NVMe drive ({drive}) "
        f"{_time(found.nvme_seconds_per_token)}. The KV cache of a parked request, "
        f"{found.parked_kv_bytes_per_gpu / GIB:,.2f} GiB a GPU, is back in {_time(found.parked_kv_seconds)}"
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"

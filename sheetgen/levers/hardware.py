"""Bigger GPUs: the cheapest candidate whose GPU has more memory than the one that was chosen."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.levers.ask_again import Change
from sheetgen.levers.lever import Lever
from sheetgen.levers.plan import Planned
from sheetgen.recommend import Solution
from sheetgen.units import GIB, ONE_DECIMAL


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

"""Why an instance was not chosen: too small, not able to run the precision, or dearer."""

from __future__ import annotations

import numpy

from sheetgen.recommend.solution import Choice, Solution
from sheetgen.units import GIB


def why_not(solved: Solution, row: int) -> list[tuple[str, str]]:
    """For each candidate instance that was not chosen for a cell: the instance, and the reason."""
    choice = solved.choices[row]
    chosen = None if choice.slot is None else solved.slots[choice.slot].candidate
    reasons = []
    for c, candidate in enumerate(solved.question.candidates):
        if c == chosen:
            continue
        mine = [i for i, s in enumerate(solved.slots) if s.candidate == c]
        reasons.append((candidate.instance, _reason(solved, row, mine, choice)))
    return reasons


def _reason(solved: Solution, row: int, mine: list[int], choice: Choice) -> str:
    cell = solved.question.cells[row]
    if cell.over_limit:
        return choice.verdict
    candidate = solved.candidate(mine[0])
    monthly = solved.costs["monthly_usd"][row, mine]
    if not numpy.isnan(monthly).all():
        least = float(numpy.nanmin(monthly))
        if least == choice.monthly_usd:
            return "same price, but more instances, a larger TP or later in the catalog"
        dearer = 100 * (least / choice.monthly_usd - 1)
        return f"${least:,.0f} a month, {f'{dearer:.0f}%' if dearer >= 0.5 else 'less than 1%'} more"
    model = solved.question.models[cell.model]
    if model.weight_dtype not in candidate.gpu.weights_run:
        return f"{candidate.gpu.short_name} does not run {model.weight_dtype} weights"
    if model.kv_cache_dtype not in candidate.gpu.kv_run:
        return f"{candidate.gpu.short_name} does not run a {model.kv_cache_dtype} KV cache"
    runs = [i for i in mine if solved.sequences["runs"][row, solved.slots[i].profile] == 1]
    if not runs:
        return f"the {model.model.n_heads} heads do not divide over its GPUs"
    slot = runs[-1]
    profile = solved.slots[slot].profile
    size = solved.profiles[profile].tensor_parallel_size
    short = (
        solved.sequences["charge_bytes"][row, profile] - solved.pools["kv_budget_bytes_per_gpu"][cell.model, profile]
    )
    return f"{size}x {candidate.gpu.short_name}: {short * size / GIB:,.1f} GiB short"

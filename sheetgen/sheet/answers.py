"""The answers of the page beside the cards: every load in a matrix, and what its memory goes to as bars."""

from __future__ import annotations

import math

from sheetgen.recommend import Solution, short_tokens
from sheetgen.sheet.fit import Fit, headline_rows
from sheetgen.sheet.one_page import Bar, MatrixBlock, MatrixCell, MatrixRow
from sheetgen.sheet.wording import (
    NONE,
    named_size,
    plural,
    rent,
    rented_gpus,
    short_money,
    size,
)


def matrix(solved: Solution, tight_below: float) -> tuple[MatrixBlock, ...]:
    question = solved.question
    rows = {(c.workload, c.tier, c.model): i for i, c in enumerate(question.loads)}
    return tuple(
        MatrixBlock(
            workload=workload.name,
            context=short_tokens(workload.context_tokens),
            split=f"{workload.input_tokens:,} in + {workload.output_tokens:,} out",
            rows=tuple(
                MatrixRow(
                    tier=f"{requests:,}",
                    requests=requests,
                    headline=(w, t) == question.headline,
                    cells=tuple(_cell(solved, rows[w, t, m], tight_below) for m in range(len(question.models))),
                )
                for t, requests in enumerate(question.tiers)
            ),
            context_tokens=workload.context_tokens,
        )
        for w, workload in enumerate(question.workloads)
    )


def _cell(solved: Solution, row: int, tight_below: float) -> MatrixCell:
    question, choice = solved.question, solved.choices[row]
    cell = question.loads[row]
    kv = float(solved.cells["kv_bytes"][row])
    text = size(kv, question.settings.units)
    if cell.over_limit:
        limit = short_tokens(int(question.models[cell.model].model.max_context_tokens or 0))
        return MatrixCell("over", f"over {limit}", NONE, kv, NONE, NONE, NONE, None)
    fit = Fit.of(solved, row)
    if fit is None:
        return MatrixCell("none", choice.verdict, text, kv, NONE, NONE, NONE, None)
    status = "tight" if choice.sure_headroom_fraction < tight_below else "fits"
    return MatrixCell(
        status,
        status,
        text,
        kv,
        rented_gpus(choice.n_instances, fit.candidate),
        rent(choice.n_instances, fit.candidate),
        short_money(choice.monthly_usd),
        choice.monthly_usd,
        choice.sized_by == "speed",
    )


def bars(solved: Solution) -> tuple[tuple[Bar, ...], ...]:
    """By model, a bar for each workload at the requests of the headline."""
    question = solved.question
    tier = question.headline[1]
    found: dict[int, list[Bar]] = {m: [] for m in range(len(question.models))}
    for row, cell in enumerate(question.loads):
        if cell.tier == tier:
            found[cell.model].append(_bar(solved, row))
    return tuple(tuple(one) for one in found.values())


def _bar(solved: Solution, row: int) -> Bar:
    """What the GPUs hold: the weights on each replica, and the KV cache as often as ranks keep it."""
    question = solved.question
    cell, units = question.loads[row], question.settings.units
    workload, headline = question.workloads[cell.workload].name, cell.workload == question.headline[0]
    context = short_tokens(cell.context_tokens)
    name = question.models[cell.model].model.name
    weights, kv = float(solved.models["weights_bytes"][cell.model]), float(solved.cells["kv_bytes"][row])
    fit = Fit.of(solved, row)
    if fit is None:
        texts = (size(weights, units), size(kv, units), NONE, solved.choices[row].verdict)
        return Bar(name, weights, kv, 0.0, None, *texts, NONE, workload, context, headline)
    overhead = fit.pool("overhead_bytes_per_gpu") * fit.gpus_used
    replicas = fit.choice.n_replicas
    held = fit.load("charge_bytes") * fit.tensor_parallel_size * cell.concurrent_requests
    capacity = fit.pool("memory_budget_bytes") * fit.gpus_used
    gpus = f"{fit.gpus_used:,}× {fit.candidate.gpu.short_name}"
    return Bar(
        model=name,
        weights_bytes=weights * replicas,
        kv_bytes=held,
        overhead_bytes=overhead,
        capacity_bytes=capacity,
        weights=_times(replicas, weights, units),
        kv=_copies(held, kv, units),
        overhead=size(overhead, units),
        capacity=f"{named_size(capacity, units)} on {gpus}",
        limit=size(capacity, units),
        workload=workload,
        context=context,
        headline=headline,
    )


def _times(count: int, n_bytes: float, units: str) -> str:
    return size(n_bytes, units) if count == 1 else f"{count:,} × {size(n_bytes, units)}"


def _copies(held: float, kv: float, units: str) -> str:
    """KV on all ranks: a whole number of copies is said as one (an MLA cache is kept by every rank)."""
    copies = held / kv if kv else 1.0
    whole = math.isclose(copies, round(copies), rel_tol=0.01)
    return _times(round(copies), kv, units) if whole else size(held, units)


def used_instances(solved: Solution) -> dict[int, list[int]]:
    """Candidates that the page recommends, each with its cells; those of the headline load first."""
    found: dict[int, list[int]] = {}
    for row in (*headline_rows(solved), *range(len(solved.choices))):
        fit = Fit.of(solved, row)
        if fit is not None and row not in found.setdefault(solved.offers[fit.offer].candidate, []):
            found[solved.offers[fit.offer].candidate].append(row)
    return found


def used_for(solved: Solution, rows: list[int]) -> str:
    """One load by its name, or how many."""
    if len(rows) > 1:
        return plural(len(rows), "load")
    cell = solved.question.loads[rows[0]]
    workload = solved.question.workloads[cell.workload].name
    return f"{solved.question.models[cell.model].model.name}, {workload} {cell.concurrent_requests:,}"

"""Candidates: a matrix with a column per instance x TP: what each load costs a month there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from sheetgen.cost import discounted_usd_per_hour, n_instances
from sheetgen.formula import Expr, both, either, formula, is_number, is_text, number_or_none, number_where, where
from sheetgen.recommend import Solution
from sheetgen.sheet.block import RowValues, row_values
from sheetgen.sheet.book.matrix import LEFT, Head, RowLookup, env_of, matrix
from sheetgen.sheet.book.profiles import OF_REPLICA, SERVED
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, named, titled
from sheetgen.sheet.book.words import profile_position
from sheetgen.sheet.model import Lookup, Range, Ref, Sheet, Source, pick
from sheetgen.sheet.what_if import BASE
from sheetgen.sizing import parallelism
from sheetgen.units import PLAIN, TENSOR_PARALLEL_SIZES, TEXT, USD, USD_CENTS, Display

USD_OR_SLOW = Display(f'{USD.excel};{USD.excel};"too slow"')  # what a reader sees of 0


@formula("$ per month", USD_OR_SLOW)
def monthly_usd_of_load(
    pipeline_stages: Any, sequences: Any, batch_limit: Any, load_requests: Any, spare_replicas: Any,
    replicas_per_instance: Any, n_heads: Any, full_kv_heads: Any, windowed_kv_heads: Any,
    larger_tensor_parallel_size: Any, price_usd_per_hour: Any, paid_hours_per_month: Any,
) -> Any:  # fmt: skip
    """What the whole instances for all replicas cost a month; none where the instance cannot hold the load or has no
    price, 0 (shown as: too slow) where it holds it but no count meets the targets of speed.

    Source: n_instances, of shared_replicas and staged_instances, x price x hours.
    """
    of_replicas = pipeline_stages, sequences, batch_limit, load_requests, spare_replicas
    shared, staged = (one(*of_replicas) for one in SERVED)
    of_model = n_heads, full_kv_heads, windowed_kv_heads, larger_tensor_parallel_size
    count = n_instances(shared, staged, replicas_per_instance, *of_model, price_usd_per_hour)
    return number_or_none(count * price_usd_per_hour * paid_hours_per_month)


def _counts(solved: Solution, instances: Table) -> list[Any]:
    """The most GPUs of each row as built or as typed; None for a spare row, also for one that is filled."""
    rows = solved.question.rows
    overrides = [r.value for r in instances.columns["gpu_count"]]
    of_rows = [max(one.gpu_count, count or 0) for one, count in zip(rows, overrides, strict=False)]
    return [*of_rows, *[None] * (len(overrides) - len(rows))]


def build_candidates(
    solved: Solution, wiring: Wiring, what_if: Wiring | None, picked: Mapping[str, Ref]
) -> tuple[Sheet, Head]:
    """The sheet, and its head; `wiring.monthly` has a row per load of what each candidate costs a month.

    what_if: gets rows of its own below; the last is of the candidates alone that `picked` on What-if names.
    """
    instances, gpus = wiring.tables["instances"], wiring.tables["gpus"]
    counts = _counts(solved, instances)
    # A spare row has every size: a reader may give it any number of GPUs.
    offers = [(c, t) for c, count in enumerate(counts) for t in TENSOR_PARALLEL_SIZES if count is None or t <= count]
    sheet = titled("Candidates", "Candidates",
                   "A column per instance and tensor-parallel size: $ per month for each load. "
                   "A dash: it cannot hold the load, or has no price.", freeze=(HEAD_ROWS + 4, LEFT))  # fmt: skip
    sheet.widths = {0: 30.0, 1: 26.0} | {c: 18.0 for c in range(LEFT, LEFT + len(offers))}
    here = sheet.name
    head = Head(sheet, HEAD_ROWS, len(offers), "candidates", wiring.names)
    head.given("instance_row", "Instance row", [c + 1 for c, _ in offers])

    def of_instance(fact: str, test: Callable[[Any], Any], blank: Any) -> Callable[[int], tuple[Any, Expr]]:
        """A field of the instance, or `blank` in a spare row: the look-up of an empty cell would be 0."""

        def find(i: int) -> tuple[Any, Expr]:
            value, expr = pick(instances.range(fact), head.columns["instance_row"][i], here)
            return (blank if value is None else value), where(test(expr), expr, blank)

        return find

    head.looked_up("instance", "Instance", of_instance("instance", is_text, "-"), TEXT)
    head.looked_up("provider", "Provider", of_instance("provider", is_text, "-"), TEXT)
    head.given("tp_position", "TP row", [TENSOR_PARALLEL_SIZES.index(t) + 1 for _, t in offers])
    head.picked("tp", "TP", wiring.lists["tp"], "tp_position", PLAIN)
    head.looked_up("gpu", "GPU", of_instance("instance_gpu", is_text, "-"), TEXT)
    head.looked_up("gpu_count", "GPUs", of_instance("gpu_count", is_number, 0), PLAIN)

    names, discount = gpus.range("gpu"), wiring.inputs["discount_fraction"]

    def price(i: int) -> tuple[Any, Expr]:
        """What is paid of a price above 0 of a GPU that the GPUs sheet knows: nothing else can be rented."""
        value, expr = pick(instances.range("price_usd_per_hour"), head.columns["instance_row"][i], here)
        gpu = head.columns["gpu"][i]
        known = Expr(f"ISNUMBER(MATCH({gpu.expr(here).text},{names.expr(here).text},0))")
        less = discount.expr(here)
        usable = both(is_number(expr), expr > 0, known, is_number(less), less >= 0, less < 1)
        rented = isinstance(value, (int, float)) and value > 0 and gpu.value in [r.value for r in names.refs]
        paid = discounted_usd_per_hour(value, discount.value) if rented else "-"
        return paid, where(usable, discounted_usd_per_hour(expr, less), "-")

    head.looked_up("price_usd_per_hour", "$ per hour", price, USD_CENTS, note=discounted_usd_per_hour.documentation)

    def gpu_row(i: int) -> tuple[Any, Expr]:
        key = head.columns["gpu"][i]
        known = [r.value for r in names.refs]
        expr = Expr(f"IFERROR(MATCH({key.expr(here).text},{names.expr(here).text},0),1)")
        return (known.index(key.value) + 1 if key.value in known else 1), expr

    head.looked_up("gpu_row", "GPU row", gpu_row, PLAIN)
    sizes = wiring.lists["tp"]
    n_sizes = Lookup(len(sizes.refs), lambda at: Expr(f"COUNT({sizes.expr(at).text})"))
    head.computed(profile_position, lambda i: {"n_tensor_parallel_sizes": n_sizes}, name="profile")
    tp = lambda i: {**wiring.inputs, "tensor_parallel_size": head.columns["tp"][i]}  # noqa: E731
    head.computed(parallelism.replicas_per_instance, tp)
    head.computed(parallelism.larger_tensor_parallel_size, tp)

    top = head.row + 1
    for of in (wiring,) if what_if is None else (wiring, what_if):
        cells = of.tables["cells"]
        # A load's context is part of the sheet's structure, so its row of a block is named directly.
        latency = [int(ref.value) - 1 for ref in cells.columns["pace_row"]]
        held = {what: _held(of, what, latency, head) for what in OF_REPLICA}
        env = env_of(monthly_usd_of_load, held, head.columns, cells.columns, wiring.inputs)
        labels, words, widths = cells.columns["model"], cells.columns["load_words"], [len(offers)] * len(latency)
        if of is wiring:
            rows = matrix(sheet, top, monthly_usd_of_load, labels, widths, env, words)
        else:
            rows = matrix(sheet, top, monthly_usd_of_load, labels[:-1], widths, env, words)
            on_it: dict[str, Source | RowValues] = {n: row_values(head.columns[n]) for n in ("instance", "gpu", "tp")}
            on_it |= {**picked, "monthly_usd": row_values(rows[BASE])}
            last = top + len(rows)
            rows += matrix(sheet, last, on_hardware, labels[-1:], widths, lambda r: on_it, words[-1:], headed=False)  # noqa: B023
        of.monthly = [Range(row, lock="columns") for row in rows]
        top += len(rows) + 2
    return sheet, head


@formula("$ per month on the hardware chosen", USD_OR_SLOW)
def on_hardware(monthly_usd: Any, instance: Any, gpu: Any, tp: Any, hardware: Any, tensor_parallel_size: Any) -> Any:
    """The load's $ per month where the candidate is the chosen instance, or has the chosen GPU, at the size asked for.

    Source: the load's row above.
    """
    auto = tensor_parallel_size == "auto"
    of_it = both(either(instance == hardware, gpu == hardware), either(auto, tp == tensor_parallel_size))
    return number_where(both(is_number(monthly_usd), of_it), monthly_usd)


def _held(wiring: Wiring, what: str, latency: Sequence[int], head: Head) -> list[RowLookup]:
    """By load, what a block of Profiles says of its context at each candidate's profile."""
    rows = wiring.blocks[what]
    block = named(wiring.names, f"tbl_{wiring.prefix}profiles_{what}", (rows[0][0], rows[-1][-1]))
    places = head.columns["profile"]
    at = [int(p.value) - 1 for p in places]

    def write(row: Expr, here: str) -> Expr:
        return Expr(f"INDEX({block.expr(here).text},{row.text},{places[0].expr(here).text})")

    values = [numpy.asarray(row.values)[at] for row in rows]
    return [RowLookup(list(values[pace]), write, pace + 1) for pace in latency]

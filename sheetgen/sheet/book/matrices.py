"""Profiles and Candidates: what a model leaves on each GPU, and what each load costs a month on each instance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from sheetgen.cost import discounted_usd_per_hour, n_instances
from sheetgen.formula import Formula, both, either, formula, is_number, is_text, number_or_none, number_where, where
from sheetgen.recommend import Solution
from sheetgen.recommend.solution import TABLES
from sheetgen.sheet.book.catalogs import CONSTANTS, OF_GPU
from sheetgen.sheet.book.speed import OF_PROFILE, SUMS
from sheetgen.sheet.book.wiring import HEAD_ROWS, LEFT, Head, RowLookup, Table, Wiring, in_words, matrix, named, titled
from sheetgen.sheet.book.words import non_torch_position, profile_position
from sheetgen.sheet.model import NONE, Lookup, Range, Ref, RepeatedRow, RowValues, Sheet, derived, lookup, place_of
from sheetgen.sheet.what_if import BASE
from sheetgen.sizing import memory, parallelism
from sheetgen.units import DTYPES, FACTOR, PLAIN, TENSOR_PARALLEL_SIZES, TEXT, USD, USD_CENTS, WHOLE, Display

# What a load's own KV bill, before any division, reads of one undivided rank.
WHOLE_OF = (
    "growing_block_tokens", "windowed_block_tokens", "kv_block_bytes", "shard_kv_bytes_per_token",
    "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer",
)  # fmt: skip
SERVED = (parallelism.shared_replicas, parallelism.staged_instances)  # a part of the instances on Candidates
OF_REPLICA = ("pipeline_stages", "sequences", "batch_limit")
ALIKE = ("tensor_parallel_size", "tp_position")  # rows of the head that are alike on every GPU
ELSEWHERE = ("prompt_attention_flops", "weights_bytes_per_gpu")  # on Contexts; no sheet has a draft model
# Worked out within the formulas that read them: sums of a few cells, and a step that nobody looks for.
NOT_WRITTEN = (
    *SUMS, memory.encoder_bytes, memory.hand_over_bytes, memory.stage_overhead_bytes,
    parallelism.layers_that_fit,
)  # fmt: skip


def build_profiles(solved: Solution, wiring: Wiring, what_if: Wiring | None) -> Sheet:
    """The sheet; `blocks` of a wiring has a row per model, or per context, of what each profile leaves and holds.

    what_if: gets rows of its own below those of the sheet's models, and, at the right, the columns of its GPU.
    """
    gpus = wiring.tables["gpus"]
    every = [wiring] if what_if is None else [wiring, what_if]
    n_profiles, n_models = len(solved.profiles), len(solved.question.models)
    profiles = [(p.gpu, p.tensor_parallel_size) for p in solved.profiles]
    if what_if is not None:
        profiles += [(len(solved.question.gpus), size) for size in TENSOR_PARALLEL_SIZES]
    models = _together([w.tables["models"].columns for w in every])
    contexts = _together([w.tables["contexts"].columns for w in every])
    ranges = _together([w.ranges for w in every])
    model_of = [int(r.value) - 1 for r in wiring.tables["contexts"].columns["model_row"]]
    model_of += [n_models] * (len(contexts["model"]) - len(model_of))  # the row below those of the sheet's models
    widths = [n_profiles] * n_models + [len(profiles)] * (len(every) - 1)
    sheet = titled("Profiles", "Profiles",
                   "A column per GPU and tensor-parallel size: what a model leaves for the cache "
                   "on one GPU, and how many sequences one replica holds of each load.", freeze=(HEAD_ROWS + 3,
                   LEFT))  # fmt: skip
    sheet.widths = {0: 30, 1: 26}
    head = Head(wiring, sheet, len(profiles), "profiles")
    sizes = wiring.lists["tp"]
    positions = [TENSOR_PARALLEL_SIZES.index(size) + 1 for _, size in profiles]
    head.given("gpu_row", "GPU row", [gpu + 1 for gpu, _ in profiles], PLAIN, role="fixed")
    head.picked("gpu_name", "GPU", gpus.with_below("gpu_name"), "gpu_row", TEXT)
    head.given("tp_position", "TP row", positions, PLAIN, role="fixed")
    head.picked("tensor_parallel_size", "TP", sizes, "tp_position", PLAIN)
    for fact, label in (
        ("gpu_memory_bytes", "Memory, bytes"),
        ("max_num_seqs", "Most sequences"),
        ("max_num_batched_tokens", "Batched tokens"),
    ):
        head.picked(fact, label, gpus.with_below(fact), "gpu_row")
    for fact in ("pool_error_bytes_measured", "pool_error_bytes_elsewhere", "is_older_gpu", *OF_GPU):
        if fact not in OF_PROFILE:  # no row of its own: who reads it looks it up on GPUs
            head.columns[fact] = [lookup(gpus.with_below(fact), at) for at in head.columns["gpu_row"]]
    n_sizes = Lookup.of(len(sizes.refs), "COUNT({0})", sizes)
    head.computed(non_torch_position, {"n_tensor_parallel_sizes": n_sizes})
    head.picked("non_torch_bytes_per_gpu", "Non-torch memory", wiring.lists["non_torch"], "non_torch_position")
    own = head.columns["non_torch_bytes_per_gpu"]
    head.computed(memory.staged_non_torch_bytes_per_gpu, {"non_torch_bytes_per_tp": own})
    head.computed(parallelism.pool_error_bytes, name="kv_pool_error_bytes_low")
    head.computed(memory.memory_budget_bytes)
    for fact in (*OF_PROFILE, "measured_kinds"):
        head.picked(fact, in_words(fact), gpus.with_below(fact), "gpu_row", FACTOR if fact in CONSTANTS else WHOLE)
    for column in range(LEFT, LEFT + len(profiles)):
        sheet.widths[column] = 23
    # By model, what GPUs says at its precisions; by model, or by model and workload, what stands in the blocks below.
    of_gpu = {
        f"runs_{what}": _by_precision(wiring, head, what, models[key])
        for what, key in (("weights", "weight_dtype_row"), ("kv", "kv_dtype_row"))
    } | {"peak_flops": _by_precision(wiring, head, "peak_flops", models["weight_dtype_row"])}
    of_head = {name: RowValues.of(refs) for name, refs in head.columns.items()}
    blocks: dict[str, Any] = {}
    by_model: set[str] = set()
    short: set[str] = set(ALIKE)
    written: dict[str, str] = {}
    of_workload = {*contexts, *ranges} - models.keys()
    n_contexts, top = wiring.tables["contexts"].n_rows, head.top + 1
    for name, quantity in _quantities():
        if quantity.name in written:  # once, where the grid has it under two names
            blocks[name] = blocks[written[quantity.name]]
            by_model.add(name)
            continue
        one = quantity.with_parts(NOT_WRITTEN, first=True)
        one = one.with_parts(NOT_WRITTEN, first=True)  # a stage's overhead holds what it hands over
        known = {n: v for n, v in {**of_gpu, **blocks}.items() if n in one.inputs}
        of_context = bool({*one.inputs} & {*of_workload, *(known.keys() - by_model - of_gpu.keys())})
        if of_context:
            known = {n: [v[m] for m in model_of] if n in by_model or n in of_gpu else v for n, v in known.items()}
        rows_of = {**contexts, **ranges} if of_context else models
        labels, columns = rows_of["model"], [widths[m] for m in model_of] if of_context else widths
        if name == "sure_sequences":  # What-if, whose rows are the last, shows no room
            labels = labels[:n_contexts]
        # What depends on the tensor-parallel size alone stands in the first GPU's columns, which have all of them.
        alike = not {*one.inputs} & ({*head.columns, *known} - short)
        columns = [len(sizes.refs)] * len(columns) if alike else columns
        given = {**wiring.inputs, **rows_of, **of_head, **known}
        rows = matrix(sheet, top, one, labels, columns, given, rows_of["workload"] if of_context else None)
        blocks[name] = [RepeatedRow(row, head.columns["tp_position"]) for row in rows] if alike else rows
        short |= {name} if alike else set()
        by_model |= set() if of_context else {name}
        written[quantity.name] = name
        if name == "pipeline_stages":
            blocks["pipeline_parallel_size"] = blocks[name]
        top += len(labels) + 2
    # The first profile's column (TP 1) of the shard blocks, as a table with a row per model.
    undivided = Table(wiring, gpus.sheet, n_models, "undivided")
    undivided.columns = {name: [row[0] for row in blocks[name][:n_models]] for name in WHOLE_OF}
    for of, models_of, contexts_of in zip(
        every, (slice(n_models), slice(n_models, None)), (slice(n_contexts), slice(n_contexts, None)), strict=False
    ):
        of.tables["profiles"], of.by_model = head, by_model
        of.blocks = {k: v[models_of if k in by_model else contexts_of] for k, v in blocks.items()}
    return sheet


def _quantities() -> Iterator[tuple[str, Formula]]:
    """By name, what is written on the sheet, in the order in which the grid has it.

    What a replica holds is the same for every number of requests, so it stands here once for each context.
    """
    for table in ("shards", "pools", "stages", "steps", "sequences"):
        for one in TABLES[table][1]:
            name, quantity = (one.name, one) if isinstance(one, Formula) else one
            if quantity not in (*NOT_WRITTEN, *SERVED) and name not in ELSEWHERE:
                yield name, quantity


def _together(columns: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """The rows of several tables one below the other, of the columns that all of them have."""
    return {name: [ref for of in columns for ref in of[name]] for name in columns[-1] if name in columns[0]}


def _by_precision(wiring: Wiring, head: Head, what: str, dtype_rows: Sequence[Ref]) -> list[RowLookup]:
    """By model, what the columns of all precisions on GPUs hold at the model's one, for each profile's GPU."""
    columns = [wiring.tables["gpus"].with_below(f"{what}_{d}").refs for d in DTYPES]
    block = named(wiring.names, f"tbl_gpus_by_precision_{what}", (columns[0][0], columns[-1][-1]))
    gpu_rows = head.columns["gpu_row"]
    by_dtype = [[column[int(g.value) - 1].value for g in gpu_rows] for column in columns]
    read = (block, gpu_rows[0])
    return [RowLookup(by_dtype[int(at.value) - 1], at, "INDEX({0},{1},{2})", read) for at in dtype_rows]


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


@formula("$ per month on the hardware chosen", USD_OR_SLOW)
def on_hardware(monthly_usd: Any, instance: Any, gpu: Any, tp: Any, hardware: Any, tensor_parallel_size: Any) -> Any:
    """The load's $ per month where the candidate is, or has, what was chosen, at the size asked for."""
    auto = tensor_parallel_size == "auto"
    of_it = both(either(instance == hardware, gpu == hardware), either(auto, tp == tensor_parallel_size))
    return number_where(both(is_number(monthly_usd), of_it), monthly_usd)


def build_candidates(
    solved: Solution, wiring: Wiring, what_if: Wiring | None, picked: Mapping[str, Ref]
) -> tuple[Sheet, dict[str, Range]]:
    """The sheet, and by name the rows of its head; `wiring.monthly` has by load what each candidate costs a month.

    what_if: gets rows of its own below; the last is of the candidates alone that `picked` on What-if names.
    """
    instances, gpus = wiring.tables["instances"], wiring.tables["gpus"]
    # Up to the most GPUs of a row, as built or as typed. A spare row has every size: a reader may give it any number.
    built = [one.gpu_count for one in solved.question.rows]
    typed = [r.value for r in instances.columns["gpu_count"]]
    counts = [max(built[c], count or 0) if c < len(built) else math.inf for c, count in enumerate(typed)]
    offers = [(c, t) for c, count in enumerate(counts) for t in TENSOR_PARALLEL_SIZES if t <= count]
    sheet = titled("Candidates", "Candidates",
                   "A column per instance and tensor-parallel size: $ per month for each load. "
                   "A dash: it cannot hold the load, or has no price.", freeze=(HEAD_ROWS + 4, LEFT))  # fmt: skip
    sheet.widths = {0: 30.0, 1: 26.0} | {c: 18.0 for c in range(LEFT, LEFT + len(offers))}
    head = Head(wiring, sheet, len(offers), "candidates")
    head.given("instance_row", "Instance row", [c + 1 for c, _ in offers], PLAIN, role="fixed")

    places = head.columns["instance_row"]

    def of_instance(fact: str, test: Callable[[Any], Any], blank: Any) -> Iterator[Lookup]:
        """A field of the instance, or `blank` in a spare row: the look-up of an empty cell would be 0."""
        refs = instances.range(fact)
        return (derived(lambda value: where(test(value), value, blank), lookup(refs, at)) for at in places)

    head.looked_up("instance", "Instance", of_instance("instance", is_text, "-"), TEXT)
    head.looked_up("provider", "Provider", of_instance("provider", is_text, "-"), TEXT)
    positions = [TENSOR_PARALLEL_SIZES.index(t) + 1 for _, t in offers]
    head.given("tp_position", "TP row", positions, PLAIN, role="fixed")
    head.picked("tp", "TP", wiring.lists["tp"], "tp_position", PLAIN)
    head.looked_up("gpu", "GPU", of_instance("instance_gpu", is_text, "-"), TEXT)
    head.looked_up("gpu_count", "GPUs", of_instance("gpu_count", is_number, 0), PLAIN)

    names, prices = gpus.range("gpu"), instances.range("price_usd_per_hour")

    def paid(listed: Any, known: Any, less: Any) -> Any:
        """What is paid of a price above 0 of a GPU that the GPUs sheet knows: nothing else can be rented."""
        usable = both(is_number(listed), listed > 0, known, is_number(less), less >= 0, less < 1)
        return where(usable, discounted_usd_per_hour(listed, less), NONE)

    gpu_rows = [place_of(names, gpu.value) for gpu in head.columns["gpu"]]
    head.looked_up("price_usd_per_hour", "$ per hour", (
        derived(paid, lookup(prices, at), Lookup.of(row is not None, "ISNUMBER(MATCH({0},{1},0))", gpu, names),
                wiring.inputs["discount_fraction"])
        for at, gpu, row in zip(places, head.columns["gpu"], gpu_rows, strict=True)
    ), USD_CENTS, note=discounted_usd_per_hour.documentation)  # fmt: skip
    head.looked_up("gpu_row", "GPU row", (
        Lookup.of(row or 1, "IFERROR(MATCH({0},{1},0),1)", gpu, names)
        for gpu, row in zip(head.columns["gpu"], gpu_rows, strict=True)
    ), PLAIN)  # fmt: skip
    sizes = wiring.lists["tp"]
    n_sizes = Lookup.of(len(sizes.refs), "COUNT({0})", sizes)
    head.computed(profile_position, {"n_tensor_parallel_sizes": n_sizes}, name="profile")
    for one in (parallelism.replicas_per_instance, parallelism.larger_tensor_parallel_size):
        head.computed(one, {"tensor_parallel_size": head.columns["tp"]})

    top = head.top + 1
    of_head = {name: RowValues.of(refs) for name, refs in head.columns.items()}
    for of in (wiring,) if what_if is None else (wiring, what_if):
        cells = of.tables["loads"]
        # A load's context is part of the sheet's structure, so its row of a block is named directly.
        latency = [int(ref.value) - 1 for ref in cells.columns["pace_row"]]
        held = {what: _held(of, what, latency, head) for what in OF_REPLICA}
        given = {**wiring.inputs, **cells.columns, **of_head, **held}
        labels, words, widths = cells.columns["model"], cells.columns["load_words"], [len(offers)] * len(latency)
        n = len(labels) - (of is what_if)  # the last of What-if's is of the chosen hardware alone
        rows = matrix(sheet, top, monthly_usd_of_load, labels[:n], widths, given, words)
        if of is what_if:
            given = {**picked, **of_head, "monthly_usd": RowValues.of(rows[BASE])}
            rows += matrix(sheet, top + n, on_hardware, labels[n:], widths, given, words[n:], headed=False)
        of.monthly = [Range(row, lock="columns") for row in rows]
        top += len(rows) + 2
    return sheet, {name: head.range(name) for name in head.columns}


def _held(wiring: Wiring, what: str, latency: Sequence[int], head: Head) -> list[RowLookup]:
    """By load, what a block of Profiles says of its context at each candidate's profile."""
    rows = wiring.blocks[what]
    block = named(wiring.names, f"tbl_{wiring.prefix}profiles_{what}", (rows[0][0], rows[-1][-1]))
    places = head.columns["profile"]
    at = [int(p.value) - 1 for p in places]
    values, read = [numpy.asarray(row.values)[at] for row in rows], (block, places[0])
    return [RowLookup(list(values[pace]), pace + 1, "INDEX({0},{2},{1})", read) for pace in latency]

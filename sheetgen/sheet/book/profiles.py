"""Profiles: a matrix with a column per GPU x TP: what a model leaves there, and how many sequences a replica holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen.estimate import PEAK, SHARD, STEP
from sheetgen.formula import Expr, Formula
from sheetgen.recommend import LOAD, TARGETS, Solution
from sheetgen.sheet.block import Row, Spread
from sheetgen.sheet.book.matrix import LEFT, Across, Head, env_of, inline, matrix
from sheetgen.sheet.book.speed import OF_PROFILE, SUMS
from sheetgen.sheet.book.speed_columns import CONSTANTS, OF_GPU
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, named, titled
from sheetgen.sheet.book.words import non_torch_position
from sheetgen.sheet.model import Found, Range, Sheet, found, pick
from sheetgen.sizing import activations, memory, parallelism, steps, weights
from sheetgen.units import DTYPES, FACTOR, PLAIN, TENSOR_PARALLEL_SIZES, TEXT, WHOLE

# What a load's own KV bill, before any division, reads of one undivided rank.
WHOLE_OF = (
    "growing_block_tokens", "windowed_block_tokens", "kv_block_bytes", "shard_kv_bytes_per_token",
    "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer",
)  # fmt: skip
SERVED = (parallelism.shared_replicas, parallelism.staged_instances)  # a part of the instances on Candidates
OF_REPLICA = ("pipeline_stages", "sequences", "batch_limit")
OF_WORKLOAD = (
    "context_tokens", "input_tokens", "output_tokens", "prompt_attention_flops", "tpot_limit_seconds",
    "ttft_limit_seconds",
)  # fmt: skip
OF_TP = (steps.context_read_bytes,)  # the same on every GPU
HELD = tuple(one for one in LOAD if one not in SERVED)


def build_profiles(solved: Solution, wiring: Wiring, name: str = "Profiles") -> Sheet:
    """The sheet; `wiring.held` has a row per context of what each profile holds."""
    gpus, models = wiring.tables["gpus"], wiring.tables["models"]
    profiles = solved.profiles
    sheet = titled(
        name,
        name,
        "A column per GPU and tensor-parallel size: what a model leaves for the cache "
        "on one GPU, and how many sequences one replica holds of each load.",
        freeze=(HEAD_ROWS + 3, LEFT),
    )
    sheet.widths = {0: 30, 1: 26}
    head = Head(sheet, HEAD_ROWS, len(profiles), f"{wiring.prefix}profiles", wiring.names)
    sizes = wiring.lists["tp"]
    here = sheet.name
    gpu_rows = [p.gpu + 1 for p in profiles]
    positions = [TENSOR_PARALLEL_SIZES.index(p.tensor_parallel_size) + 1 for p in profiles]
    head.given("gpu_row", "GPU row", gpu_rows)
    head.looked_up("gpu_name", "GPU", lambda i: pick(gpus.range("gpu_name"), head.columns["gpu_row"][i], here), TEXT)
    head.given("tp_position", "TP row", positions)
    head.looked_up("tensor_parallel_size", "TP", lambda i: pick(sizes, head.columns["tp_position"][i], here), PLAIN)
    for fact, label in (
        ("gpu_memory_bytes", "Memory, bytes"),
        ("max_num_seqs", "Most sequences"),
        ("max_num_batched_tokens", "Batched tokens"),
    ):
        head.looked_up(
            fact,
            label,
            lambda i, n=fact: pick(gpus.range(n), head.columns["gpu_row"][i], here),  # type: ignore[misc]
            WHOLE,
        )
    for fact in ("pool_error_bytes_measured", "pool_error_bytes_elsewhere", "is_older_gpu", *OF_GPU):
        if fact not in OF_PROFILE:  # no row of its own: who reads it looks it up on GPUs
            head.columns[fact] = [found(gpus.range(fact), at) for at in head.columns["gpu_row"]]  # type: ignore[misc]
    n_sizes = Found(len(sizes.refs), lambda at: Expr(f"COUNT({sizes.expr(at).text})"))
    head.computed(non_torch_position, lambda i: {"n_tensor_parallel_sizes": n_sizes})
    head.looked_up(
        "non_torch_bytes_per_gpu",
        "Non-torch memory",
        lambda i: pick(wiring.lists["non_torch"], head.columns["non_torch_position"][i], here),
        WHOLE,
    )
    own = head.columns["non_torch_bytes_per_gpu"]
    head.computed(memory.staged_non_torch_bytes_per_gpu, lambda i: {**wiring.inputs, "non_torch_bytes_per_tp": own[i]})
    head.computed(parallelism.pool_error_bytes, lambda i: wiring.inputs, name="kv_pool_error_bytes_low")
    head.computed(memory.memory_budget_bytes, lambda i: wiring.inputs)
    for fact in (*OF_PROFILE, "speed_is_fitted"):
        head.looked_up(
            fact,
            fact.replace("_", " ").capitalize(),
            lambda i, n=fact: pick(gpus.range(n), head.columns["gpu_row"][i], here),  # type: ignore[misc]
            FACTOR if fact in CONSTANTS else WHOLE,
        )
    for column in range(LEFT, LEFT + len(profiles)):
        sheet.widths[column] = 23
    wiring.tables["profiles"] = head  # type: ignore[assignment]
    n_models = len(solved.question.models)
    top = head.row + 1
    blocks: dict[str, list[Row]] = {}

    def block(one: Formula, called: str | None = None, grids: Mapping[str, Sequence[Across]] | None = None) -> None:
        nonlocal top
        env = env_of(one, {**blocks, **(grids or {})}, head.columns, models.columns, wiring.inputs)
        # A rank's share depends on the tensor-parallel size alone: the first GPU's columns have them all.
        width = len(sizes.refs) if one in SHARD else len(profiles)
        rows = matrix(sheet, top, one, models.columns["model"], width, env)
        at = head.columns["tp_position"]
        blocks[called or one.name] = [Spread(row, at) for row in rows] if one in SHARD else rows  # type: ignore[misc]
        top += n_models + 2

    for one in SHARD:
        block(one)
    block(weights.rank_weights_bytes, "loaded_weights_bytes_per_gpu")
    for one in PEAK:
        block(one, "activation_bytes_per_gpu" if one is activations.profile_peak_bytes else None)
    block(memory.overhead_bytes_per_gpu)
    block(memory.stage_overhead_bytes)
    block(memory.kv_budget_bytes_per_gpu)
    block(parallelism.layer_budget_bytes)
    block(parallelism.runs, grids=_runs(wiring, head, n_models))
    wiring.tables["whole"] = _whole(wiring, blocks, sheet)
    latency = wiring.tables["paces"]
    n_workloads = len(solved.question.workloads)
    of_pace = {k: [v[r // n_workloads] for r in range(latency.n_rows)] for k, v in blocks.items()}
    peaks = _by_precision(wiring, head, "peak_flops", "weight_dtype_row", n_models)
    of_pace["peak_flops"] = [peaks[r // n_workloads] for r in range(latency.n_rows)]  # type: ignore[misc]
    timed: dict[str, Any] = {}
    of_model = {name: refs for name, refs in models.columns.items() if name in latency.columns}
    for one in (*STEP, *TARGETS):
        if one.name == "prompt_attention_flops":  # the same on every profile: it stands on Contexts
            continue
        if not {*one.inputs} & {*OF_WORKLOAD, *(n for n in timed if n not in wiring.by_model)}:
            known: dict[str, Any] = {**blocks, "peak_flops": peaks, **{n: timed[n] for n in wiring.by_model}}
            env = env_of(one, known, head.columns, {**models.columns, **of_model}, wiring.inputs)
            if one in SUMS:
                timed[one.name] = inline(one, n_models, env)
            else:
                timed[one.name] = matrix(sheet, top, one, models.columns["model"], len(profiles), env)
                top += n_models + 2
            of_pace[one.name] = [timed[one.name][r // n_workloads] for r in range(latency.n_rows)]
            wiring.by_model.add(one.name)
            continue
        near = {**of_pace, **{n: v for n, v in timed.items() if n not in wiring.by_model}}
        env = env_of(one, near, head.columns, {**latency.columns, **wiring.ranges}, wiring.inputs)
        if one in SUMS:
            timed[one.name] = inline(one, latency.n_rows, env)
            continue
        width = len(sizes.refs) if one in OF_TP else len(profiles)
        rows = matrix(sheet, top, one, latency.columns["model"], width, env, loads=latency.columns["workload"])
        at = head.columns["tp_position"]
        timed[one.name] = [Spread(row, at) for row in rows] if one in OF_TP else rows
        top += latency.n_rows + 2
    wiring.blocks, wiring.of_model = timed, blocks
    # What a replica holds is the same for every number of requests, so it stands here once for each context.
    held: dict[str, list[Row]] = {}
    of_pace |= {"batch_limit": timed["batch_limit"]}
    for one in HELD:
        if wiring.prefix and one is parallelism.sure_sequences:
            continue  # What-if shows no room
        env = env_of(one, {**of_pace, **held}, head.columns, latency.columns, wiring.inputs)
        held[one.name] = matrix(
            sheet, top, one, latency.columns["model"], len(profiles), env, loads=latency.columns["workload"]
        )
        top += latency.n_rows + 2
    wiring.held = {k: [Range(r) for r in v] for k, v in {**held, "batch_limit": timed["batch_limit"]}.items()}
    return sheet


def _runs(wiring: Wiring, head: Head, n_models: int) -> dict[str, list[Across]]:
    """Whether the column's GPU runs the model's precisions: look-ups into the GPUs sheet."""
    return {
        f"runs_{what}": _by_precision(wiring, head, what, key, n_models)
        for what, key in (("weights", "weight_dtype_row"), ("kv", "kv_dtype_row"))
    }


def _by_precision(wiring: Wiring, head: Head, what: str, key: str, n_models: int) -> list[Across]:
    """By model, what the columns of all precisions on GPUs hold at the model's one, for each profile's GPU."""
    gpus, models = wiring.tables["gpus"], wiring.tables["models"]
    columns = [gpus.columns[f"{what}_{d}"] for d in DTYPES]
    name = f"tbl_{wiring.prefix}gpus_by_precision_{what}"
    block = named(wiring.names, name, (columns[0][0], columns[-1][-1]))
    gpu_rows = head.columns["gpu_row"]

    def write(dtype_row: Expr, here: str) -> Expr:
        return Expr(f"INDEX({block.expr(here).text},{gpu_rows[0].expr(here).text},{dtype_row.text})")

    return [
        Across([columns[int(at.value) - 1][int(g.value) - 1].value for g in gpu_rows], write, at)
        for at in models.columns[key][:n_models]
    ]


def _whole(wiring: Wiring, blocks: Mapping[str, list[Row]], sheet: Sheet) -> Table:
    """The first profile's column (TP 1) of the shard blocks, as a table with a row per model."""
    table = Table(sheet, 0, 0, len(wiring.tables["models"].columns["model"]), key=f"{wiring.prefix}undivided",
                  names=wiring.names)  # fmt: skip
    for name in WHOLE_OF:
        table.columns[name] = [row[0] for row in blocks[name]]
    return table

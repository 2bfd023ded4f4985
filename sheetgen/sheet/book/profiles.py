"""Profiles and Candidates: matrices with a column per GPU x TP, and per instance x TP.

Profiles says what a model leaves on a GPU and how many sequences a replica holds of each load; Candidates
says how many whole instances that takes, and what they cost in a month.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sheetgen.cost import monthly_usd_of_instances, n_instances
from sheetgen.estimate import PEAK, SHARD, STEP
from sheetgen.formula import Expr, Formula, both, is_number, is_text, where
from sheetgen.recommend import LOAD, Solution
from sheetgen.recommend.paces import TARGETS
from sheetgen.scenario.question import TENSOR_PARALLEL_SIZES
from sheetgen.sheet.book.speed_inputs import CONSTANTS, OF_GPU, SMALL
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, titled
from sheetgen.sheet.book.words import non_torch_position, profile_position
from sheetgen.sheet.model import Cell, Found, Range, Ref, Sheet, Source, found, pick
from sheetgen.sizing import activations, memory, parallelism, weights
from sheetgen.units import DTYPES, FACTOR, PLAIN, TEXT, USD, USD_CENTS, WHOLE, Display

# What a load's own KV bill, before any division, reads of one undivided rank.
WHOLE_OF = (
    "growing_block_tokens", "windowed_block_tokens", "kv_block_bytes", "shard_kv_bytes_per_token",
    "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer",
)  # fmt: skip
LEFT = 2  # columns before the matrix: what the row is
Env = Mapping[str, Source]
Grid = Sequence[Sequence[Source]]  # by row and column


class Head:
    """Rows above a matrix: each says one thing of every column. It reads like a table by `columns`."""

    def __init__(self, sheet: Sheet, top: int, n_columns: int) -> None:
        self.sheet, self.row, self.n_columns = sheet, top, n_columns
        self.columns: dict[str, list[Ref]] = {}

    def _label(self, label: str, note: str) -> int:
        self.sheet.text(self.row, 0, label, "head", note=note)
        self.sheet.text(self.row, 1, "", "head")
        self.row += 1
        return self.row - 1

    def given(self, name: str, label: str, values: list[Any], note: str = "") -> None:
        """Fixed values: the structure of the matrix."""
        row = self._label(label, note)
        self.columns[name] = [
            self.sheet.put(row, LEFT + i, Cell(v, "fixed", PLAIN), lock="row") for i, v in enumerate(values)
        ]

    def looked_up(
        self, name: str, label: str, find: Callable[[int], tuple[Any, Expr]], display: Display, note: str = ""
    ) -> None:
        """Values from another sheet."""
        row = self._label(label, note)
        refs = []
        for i in range(self.n_columns):
            value, expr = find(i)
            refs.append(self.sheet.formula(row, LEFT + i, value, expr, display, "computed", lock="row"))
        self.columns[name] = refs

    def computed(self, one: Formula, env: Callable[[int], Env], name: str | None = None) -> None:
        """Values that a formula gives."""
        row = self._label(one.label, one.documentation)
        self.columns[name or one.name] = [
            self.sheet.compute(row, LEFT + i, one, {**{k: v[i] for k, v in self.columns.items()}, **env(i)}, lock="row")
            for i in range(self.n_columns)
        ]

    def range(self, name: str) -> Range:
        """A whole row of the head."""
        return Range(tuple(self.columns[name]))


def _matrix(
    sheet: Sheet,
    top: int,
    one: Formula,
    labels: list[Ref],
    n_columns: int,
    env: Callable[[int, int], Env],
    display: Display | None = None,
    lock: str = "none",
    loads: list[Ref] | None = None,
) -> list[list[Ref]]:
    """A block of rows below `top`: the formula's name, then a row per label.

    loads: what a row is beside its label, where the rows are loads.
    lock: "row" where other blocks name one row of this one, "none" where they read it row by row.
    """
    sheet.text(top, 0, one.label, "section", note=one.documentation)
    sheet.text(top, 1, one.name, "section")
    out = []
    for r, label in enumerate(labels):
        sheet.link(top + 1 + r, 0, label, TEXT, role="computed")
        if loads is not None:
            sheet.link(top + 1 + r, 1, loads[r], TEXT, role="computed")
        out.append(
            [sheet.compute(top + 1 + r, LEFT + c, one, env(r, c), display=display, lock=lock) for c in range(n_columns)]
        )
    return out


def _env(
    one: Formula,
    grids: Mapping[str, Grid],
    columns: Mapping[str, Sequence[Source]],
    rows: Mapping[str, Sequence[Source]],
    shared: Mapping[str, Source],
) -> Callable[[int, int], Env]:
    """What a formula reads in row r and column c: cells of other blocks, of the head, of the row's table,
    of Inputs, the nearest first. Which is which is settled once, not for every cell.
    """
    in_grid = {n: grids[n] for n in one.inputs if n in grids}
    in_column = {n: columns[n] for n in one.inputs if n in columns and n not in in_grid}
    near = {*in_grid, *in_column}
    in_row = {n: rows[n] for n in one.inputs if n in rows and n not in near}
    fixed = {n: shared[n] for n in one.inputs if n in shared and n not in {*near, *in_row}}

    def env(r: int, c: int) -> Env:
        found = fixed.copy()
        for n, by_row in in_row.items():
            found[n] = by_row[r]
        for n, by_column in in_column.items():
            found[n] = by_column[c]
        for n, grid in in_grid.items():
            found[n] = grid[r][c]
        return found

    return env


def build_profiles(solved: Solution, wiring: Wiring) -> tuple[Sheet, dict[str, list[Range]]]:
    """The sheet, and by name a row per load of what each profile gives it."""
    gpus, models, cells = wiring.tables["gpus"], wiring.tables["models"], wiring.tables["cells"]
    profiles = solved.profiles
    sheet = titled(
        "Profiles",
        "Profiles",
        "A column per GPU and tensor-parallel size: what a model leaves for the cache "
        "on one GPU, and how many sequences one replica holds of each load.",
        freeze=(HEAD_ROWS + 3, LEFT),
    )
    sheet.widths = {0: 30, 1: 26}
    head = Head(sheet, HEAD_ROWS, len(profiles))
    sizes = wiring.lists["tp"]
    here = sheet.name
    gpu_rows = [p.gpu + 1 for p in profiles]
    positions = [TENSOR_PARALLEL_SIZES.index(p.tensor_parallel_size) + 1 for p in profiles]
    head.given("gpu_row", "GPU row", gpu_rows)
    head.looked_up("gpu_name", "GPU", lambda i: pick(gpus.range("gpu_name"), head.columns["gpu_row"][i], here), TEXT)
    head.given("tp_position", "TP row", positions)
    head.looked_up("tensor_parallel_size", "TP", lambda i: pick(sizes, head.columns["tp_position"][i], here), PLAIN)
    for name, label in (
        ("gpu_memory_bytes", "Memory, bytes"),
        ("max_num_seqs", "Most sequences"),
        ("max_num_batched_tokens", "Batched tokens"),
        ("pool_error_bytes_measured", "Pool's error, measured TP"),
        ("pool_error_bytes_elsewhere", "Pool's error, other TP"),
    ):
        head.looked_up(
            name,
            label,
            lambda i, n=name: pick(gpus.range(n), head.columns["gpu_row"][i], here),  # type: ignore[misc]
            WHOLE,
        )
    head.looked_up(
        "is_older_gpu", "Older GPU", lambda i: pick(gpus.range("is_older_gpu"), head.columns["gpu_row"][i], here), PLAIN
    )
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
    for name in (*OF_GPU, "speed_is_fitted"):
        head.looked_up(
            name,
            name.replace("_", " ").capitalize(),
            lambda i, n=name: pick(gpus.range(n), head.columns["gpu_row"][i], here),  # type: ignore[misc]
            SMALL if name.startswith("seconds_per") else FACTOR if name in CONSTANTS else WHOLE,
        )
    for column in range(LEFT, LEFT + len(profiles)):
        sheet.widths[column] = 23
    wiring.tables["profiles"] = head  # type: ignore[assignment]
    n_models = len(solved.question.models)
    top = head.row + 1
    blocks: dict[str, list[list[Ref]]] = {}

    def block(one: Formula, name: str | None = None, grids: Mapping[str, Grid] | None = None) -> None:
        nonlocal top
        env = _env(one, {**blocks, **(grids or {})}, head.columns, models.columns, wiring.inputs)
        blocks[name or one.name] = _matrix(sheet, top, one, models.columns["model"], len(profiles), env, lock="row")
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
    paces = wiring.tables["paces"]
    n_workloads = len(solved.question.workloads)
    of_pace = {k: [v[r // n_workloads] for r in range(paces.n_rows)] for k, v in blocks.items()}
    peaks = _peaks(wiring, head, n_models)
    of_pace["peak_flops"] = [peaks[r // n_workloads] for r in range(paces.n_rows)]  # type: ignore[misc]
    steps: dict[str, list[list[Ref]]] = {}
    for one in (*STEP, *TARGETS):
        if one.name == "prompt_attention_flops":  # the same on every profile: it stands on Speed
            continue
        env = _env(one, {**of_pace, **steps}, head.columns, {**paces.columns, **wiring.ranges}, wiring.inputs)
        steps[one.name] = _matrix(
            sheet, top, one, paces.columns["model"], len(profiles), env, lock="row", loads=paces.columns["workload"]
        )
        top += paces.n_rows + 2
    wiring.blocks = steps
    rows: dict[str, list[list[Ref]]] = {}

    # A load's model is part of the sheet's structure, so its row of a block is named directly.
    of_load = {k: [v[cell.model] for cell in solved.question.cells] for k, v in blocks.items()}
    of_load["batch_limit"] = [steps["batch_limit"][solved.question.pace(cell)] for cell in solved.question.cells]
    for one in LOAD:
        env = _env(one, {**of_load, **rows}, head.columns, cells.columns, wiring.inputs)
        rows[one.name] = _matrix(
            sheet, top, one, cells.columns["model"], len(profiles), env, loads=cells.columns["load_words"]
        )
        top += len(solved.question.cells) + 2
    return sheet, {k: [Range(tuple(r), lock="columns") for r in v] for k, v in rows.items()}


def _runs(wiring: Wiring, head: Head, n_models: int) -> dict[str, Grid]:
    """Whether the column's GPU runs the model's precisions: look-ups into the GPUs sheet."""
    gpus, models = wiring.tables["gpus"], wiring.tables["models"]

    def flag(what: str, dtype_row: Ref, gpu_row: Ref) -> Found:
        columns = [gpus.columns[f"{what}_{d}"] for d in DTYPES]
        block = Range((columns[0][0], columns[-1][-1]))
        value = columns[int(dtype_row.value) - 1][int(gpu_row.value) - 1].value
        return Found(
            value,
            lambda here: Expr(f"INDEX({block.expr(here).text},{gpu_row.expr(here).text},{dtype_row.expr(here).text})"),
        )

    return {
        f"runs_{what}": [
            [flag(what, models.columns[key][r], gpu_row) for gpu_row in head.columns["gpu_row"]]
            for r in range(n_models)
        ]
        for what, key in (("weights", "weight_dtype_row"), ("kv", "kv_dtype_row"))
    }


def _peaks(wiring: Wiring, head: Head, n_models: int) -> Grid:
    """The peak that a model's weights meet on the column's GPU: look-ups into the GPUs sheet."""
    gpus, models = wiring.tables["gpus"], wiring.tables["models"]
    columns = [gpus.columns[f"peak_flops_{d}"] for d in DTYPES]
    block = Range((columns[0][0], columns[-1][-1]))

    def peak(dtype_row: Ref, gpu_row: Ref) -> Found:
        return Found(
            columns[int(dtype_row.value) - 1][int(gpu_row.value) - 1].value,
            lambda here: Expr(f"INDEX({block.expr(here).text},{gpu_row.expr(here).text},{dtype_row.expr(here).text})"),
        )

    return [
        [peak(models.columns["weight_dtype_row"][r], gpu_row) for gpu_row in head.columns["gpu_row"]]
        for r in range(n_models)
    ]


def _whole(wiring: Wiring, blocks: Mapping[str, list[list[Ref]]], sheet: Sheet) -> Table:
    """The first profile's column (TP 1) of the shard blocks, as a table with a row per model."""
    table = Table(sheet, 0, 0, len(wiring.tables["models"].columns["model"]))
    for name in WHOLE_OF:
        table.columns[name] = [row[0] for row in blocks[name]]
    return table


def build_candidates(
    solved: Solution, wiring: Wiring, of_profile: Mapping[str, list[Range]]
) -> tuple[Sheet, dict[str, list[Range]], Head]:
    """The sheet, by name a row per load of what each candidate takes and costs, and the head."""
    instances, cells, gpus = wiring.tables["instances"], wiring.tables["cells"], wiring.tables["gpus"]
    # Every instance at every size, also where it has too few GPUs: a reader may give it more.
    slots = [(c, t) for c in range(instances.n_rows) for t in TENSOR_PARALLEL_SIZES]
    sheet = titled(
        "Candidates",
        "Candidates",
        "A column per instance and tensor-parallel size: whole instances for each "
        "load, and $ per month. A dash: it cannot hold the load, or has no price.",
        freeze=(HEAD_ROWS + 4, LEFT),
    )
    sheet.widths = {0: 30.0, 1: 26.0} | {c: 18.0 for c in range(LEFT, LEFT + len(slots))}
    here = sheet.name
    head = Head(sheet, HEAD_ROWS, len(slots))
    head.given("instance_row", "Instance row", [c + 1 for c, _ in slots])

    def of_instance(name: str, test: Callable[[Any], Any], blank: Any) -> Callable[[int], tuple[Any, Expr]]:
        """A field of the instance, or `blank` in a spare row: the look-up of an empty cell would be 0."""

        def find(i: int) -> tuple[Any, Expr]:
            value, expr = pick(instances.range(name), head.columns["instance_row"][i], here)
            return (blank if value is None else value), where(test(expr), expr, blank)

        return find

    head.looked_up("instance", "Instance", of_instance("instance", is_text, "-"), TEXT)
    head.looked_up("type", "Type", of_instance("type", is_text, "-"), TEXT)
    head.looked_up("age_word", "Price age", of_instance("age_word", is_text, "-"), TEXT)
    head.given("tp_position", "TP row", [TENSOR_PARALLEL_SIZES.index(t) + 1 for _, t in slots])
    head.looked_up("tp", "TP", lambda i: pick(wiring.lists["tp"], head.columns["tp_position"][i], here), PLAIN)
    head.looked_up("provider", "Provider", of_instance("provider", is_text, "-"), TEXT)
    head.looked_up("gpu", "GPU", of_instance("instance_gpu", is_text, "-"), TEXT)
    head.looked_up("gpu_count", "GPUs", of_instance("gpu_count", is_number, 0), PLAIN)

    names = gpus.range("gpu")

    def price(i: int) -> tuple[Any, Expr]:
        """A price above 0 of a GPU that the GPUs sheet knows: nothing else can be rented."""
        value, expr = pick(instances.range("price_usd_per_hour"), head.columns["instance_row"][i], here)
        gpu = head.columns["gpu"][i]
        known = Expr(f"ISNUMBER(MATCH({gpu.expr(here).text},{names.expr(here).text},0))")
        usable = both(is_number(expr), expr > 0, known)
        return ("-" if value is None else value), where(usable, expr, "-")

    head.looked_up("price_usd_per_hour", "$ per hour", price, USD_CENTS)

    def gpu_row(i: int) -> tuple[Any, Expr]:
        key = head.columns["gpu"][i]
        known = [r.value for r in names.refs]
        expr = Expr(f"IFERROR(MATCH({key.expr(here).text},{names.expr(here).text},0),1)")
        return (known.index(key.value) + 1 if key.value in known else 1), expr

    head.looked_up("gpu_row", "GPU row", gpu_row, PLAIN)
    head.looked_up(
        "gpu_name",
        "GPU, short",
        lambda i: pick(gpus.range("gpu_name"), head.columns["gpu_row"][i], here),
        TEXT,
    )
    sizes = wiring.lists["tp"]
    n_sizes = Found(len(sizes.refs), lambda at: Expr(f"COUNT({sizes.expr(at).text})"))
    head.computed(profile_position, lambda i: {"n_tensor_parallel_sizes": n_sizes}, name="profile")
    tp = lambda i: {**wiring.inputs, "tensor_parallel_size": head.columns["tp"][i]}  # noqa: E731
    head.computed(parallelism.replicas_per_instance, tp)
    head.computed(parallelism.larger_tensor_parallel_size, tp)
    rows: dict[str, list[list[Ref]]] = {}

    held: dict[str, Grid] = {
        name: [[found(row, place) for place in head.columns["profile"]] for row in of_profile[name]]
        for name in ("shared_replicas", "staged_instances")
    }
    top = head.row + 1
    for name, one, display in (
        ("n_instances", n_instances, WHOLE),
        ("monthly_usd", monthly_usd_of_instances, USD),
    ):
        env = _env(one, {**held, **rows}, head.columns, cells.columns, wiring.inputs)
        rows[name] = _matrix(
            sheet, top, one, cells.columns["model"], len(slots), env, display, loads=cells.columns["load_words"]
        )
        top += len(solved.question.cells) + 2
    return sheet, {k: [Range(tuple(r), lock="columns") for r in v] for k, v in rows.items()}, head

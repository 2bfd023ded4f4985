"""What a recommended deployment is launched with: the point that one replica of an answer is, its flags and stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sheetgen.answer.answer_record import CellRecord, ChosenRecord, Record
from sheetgen.api import record, size_columns
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.launch.bench_command import bench_command
from sheetgen.launch.commands import WRITERS, command
from sheetgen.launch.flags import Advice, Flags, advice_record, flags_for, flags_record
from sheetgen.question import parse
from sheetgen.question.deployment import DEFAULTS, engine_defaults
from sheetgen.question.inputs import OF_A_POINT, OF_SETTINGS
from sheetgen.question.market import Candidate
from sheetgen.question.sheet_question import Question
from sheetgen.report.page import LaunchRow, Page, words
from sheetgen.report.wording import gpus, plural, whole
from sheetgen.units import GIB

FIRST_PORT = 8000  # of the first replica on a machine: any that is free will do


class Launch(NamedTuple):
    """Flags by engine, the stack that suits, and how the answer is measured."""

    flags: dict[str, Flags]
    advice: Advice
    serve: str | None = None  # the command under the answer's own engine, and its benchmark
    bench: str | None = None

    def record(self) -> dict[str, Any]:
        """The start commands, and flags and stack as `size --flags --json` has them; no flags where none were asked
        for."""
        return {
            "launch": [self.serve] if self.serve else None,
            "flags": flags_record(self.flags) if self.flags else None,
            "stack": advice_record(self.advice),
        }


def launches(answer: Record, question: Question, engines: tuple[str, ...], catalog: Catalog) -> dict[int, Launch]:
    """The flags for these engines of each headline's answer, by its load; none where nothing holds it."""
    points = {cell.row: fullest_replica(question, cell) for cell in answer.headline_cells if cell.chosen}
    if not points:
        return {}
    columns = {name: [point.get(name) for point in points.values()] for name in DEFAULTS}
    columns |= {name: [point[name] for point in points.values()] for name in ("model", "gpu")}
    sized = size_columns(columns, len(points), catalog)
    if errors := [line for error in sized.points.errors if error is not None for line in error.splitlines()]:
        raise ScenarioError(*errors)
    pairs = [(point, record(sized, place)) for place, point in enumerate(points.values())]
    own = question.engine.engine
    every = tuple(dict.fromkeys((*engines, *((own,) if own in WRITERS else ()))))
    return {
        row: _launch({engine: flags[engine] for engine in engines}, advice, flags.get(own), point)
        for (row, point), (flags, advice) in zip(points.items(), flags_for(every, pairs, catalog), strict=True)
    }


def _launch(flags: dict[str, Flags], advice: Advice, own: Flags | None, point: Mapping[str, Any]) -> Launch:
    """The launch of an answer; `own` are the flags of its own engine, by which it is measured."""
    if own is None or own.written is None:
        return Launch(flags, advice)
    serve = command(own.written.groups, " ")
    return Launch(flags, advice, serve, bench_command(own.launcher.engine, own.checkpoint.word, point))


def with_launch_rows(
    page: Page, answer: Record, question: Question, launched: Mapping[int, Launch], catalog: Catalog
) -> Page:
    """`page` with how each answer is launched under the sheet's engine, and the stack that suits it, and why. Nothing
    for an engine that no flags are kept for, or where a model or GPU of a workbook is not in the catalogs any more."""
    engine = question.engine.engine
    known = (engine,) if engine in WRITERS else ()
    if not known or any(engine not in one.flags for one in launched.values()) or not launched:
        try:
            launched = launches(answer, question, known, catalog)
        except SheetgenError:
            return page
    rows = [_row(question, answer.cells[row], launch, engine) for row, launch in launched.items()]
    return replace(page, launches=tuple(rows))


def _row(question: Question, cell: CellRecord, launch: Launch, engine: str) -> LaunchRow:
    flags = launch.flags.get(engine)
    if flags is None:
        text = "no flags are kept for this engine"
    elif flags.written is None:
        text = flags.checked.verdict
    else:
        files = f"  (with {', '.join(flags.written.files)}: --flags {engine} writes it)" if flags.written.files else ""
        text = command(flags.written.groups, " ") + files
    one, candidate = cell.answer, question.instances[cell.answer.instance]
    each, most = gpus(one.gpus_per_replica, candidate), one.paced_requests
    parts = plural(one.n_replicas, "replica"), each, whole(one.requests_per_replica), whole(most)
    limit = "within the targets" if most < one.sequences_per_replica else "by memory"
    replicas = "{}, each" if one.n_replicas > 1 else "{}"
    on = words(f"{replicas} on {{}} with {{}} at once, up to {{}} {limit}", *parts)
    if beside := _side_by_side(one, candidate):
        on = words("{}; {}", on, beside)
    stack = launch.advice.line
    if launch.advice.engine not in (None, engine):
        stack = f"The command is of {question.engine.name}, as the sheet is. By its pool: {stack}"
    return LaunchRow(question.model_of(cell.row).model.name, on, text, stack)


def _side_by_side(one: ChosenRecord, candidate: Candidate) -> str:
    """How replicas share a machine, and the requests: the GPUs and the port of the first and the last one on it."""
    n_gpus, n_replicas = one.gpus_per_replica, one.n_replicas
    on_one = min(candidate.gpu_count // n_gpus, n_replicas)
    balanced = "a load balancer before them" if n_replicas > 1 else ""
    if on_one <= 1:
        return balanced
    ends = [(i, ",".join(map(str, range(i * n_gpus, (i + 1) * n_gpus)))) for i in (0, on_one - 1)]
    to = " and " if on_one == len(ends) else " to "
    ports, devices = (to.join(texts) for texts in zip(*((f"{FIRST_PORT + i}", of) for i, of in ends), strict=True))
    own = "HIP" if candidate.gpu.vendor == "amd" else "CUDA"
    return f"side by side with {own}_VISIBLE_DEVICES={devices}, ports {ports}, {balanced}"


def with_launches(record: Record, launched: Mapping[int, Launch]) -> Record:
    """The record with the launch of those loads, and none for others."""
    nothing = {"launch": None, "flags": None, "stack": None}

    def filled(cell: CellRecord) -> CellRecord:
        launch = launched.get(cell.row)
        if launch is None:
            return replace(cell, launch=nothing)
        commands = cell.measure and replace(cell.measure, serve=launch.serve, bench=launch.bench)
        return replace(cell, launch=launch.record(), measure=commands)

    return replace(record, cells=tuple(map(filled, record.cells)))


def fullest_replica(question: Question, cell: CellRecord) -> dict[str, Any]:
    """The inputs of `size` for the replica of an answer that has the most requests. What is the engine's own choice
    stays out, so that every engine launches with its own."""
    load, one, engine = question.loads[cell.row], cell.answer, question.engine
    gpu, n_ranks = question.instances[one.instance].gpu, one.data_parallel_size
    memory = gpu.memory.engine_bytes / GIB, gpu.architecture
    own = engine_defaults(engine) | {"gpu_memory_utilization": engine.utilization_on(*memory)}
    chosen = {
        one.asked_as: one.words[value] if one.words else value
        for one in OF_SETTINGS
        if one in OF_A_POINT
        and one.name != "active_fraction"  # the requests at once say it
        and (value := getattr(question.settings, one.name)) != own.get(one.name, one.default)
    }
    return chosen | {
        "model": parse.words(question.options["models"])[load.model],
        "gpu": one.gpu,
        "engine": engine.engine,
        "engine_version": engine.default_version,
        "weight_dtype": cell.weight_dtype,
        "kv_cache_dtype": cell.kv_cache_dtype,
        "draft_model": question.options.get("draft_model"),
        "tensor_parallel_size": one.tensor_parallel_size,
        "data_parallel_size": n_ranks,
        "pipeline_parallel_size": one.pipeline_parallel_size,
        "expert_parallel_size": one.tensor_parallel_size * n_ranks if n_ranks > 1 else 1,
        "context_tokens": load.context_tokens,
        "input_tokens": load.input_tokens,
        "output_tokens": question.workload_of(cell.row).output_tokens,
        "concurrent_requests": one.requests_per_replica,
    }

"""The launch of a recommended deployment: the point of one replica of an answer, its flags, and the advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from sheetgen.answer.answer_record import CellRecord, Record
from sheetgen.answer.replica_bills import bills_as_started
from sheetgen.api import record, size_columns
from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.launch.bench_command import bench_command
from sheetgen.launch.commands import WRITERS, command
from sheetgen.launch.flags import Advice, Flags, advice_record, flags_for, flags_record
from sheetgen.launch.manifests import Deployment, image_of, manifest
from sheetgen.launch.size_command import Replica, size_commands
from sheetgen.launch.start_lines import PORT_FLAGS, ROOMY, Started, start_lines
from sheetgen.question import parse
from sheetgen.question.deployment import DEFAULTS, engine_defaults
from sheetgen.question.inputs import OF_A_POINT, OF_SETTINGS
from sheetgen.question.sheet_question import Question
from sheetgen.report.fingerprints import fingerprints_of
from sheetgen.report.measured_words import beyond_measured
from sheetgen.report.page import FingerprintRow, Page
from sheetgen.report.replica_rows import (
    breaks_finding,
    drive_words,
    is_measured_itself,
    memory_finding,
    memory_note,
    replica_row,
    speed_finding,
)
from sheetgen.units import GIB


class Launch(NamedTuple):
    """The flags by engine, the engine that suits, and the commands that start and measure a replica."""

    flags: dict[str, Flags]
    advice: Advice | None  # where it was asked for
    started: Mapping[str, float]  # all quantities of a replica, as its command starts it if there is one
    serve: str | None = None  # the answer's own engine: start command, benchmark, and `sheetgen size` of the replica
    bench: str | None = None
    size: str | None = None
    own: Flags | None = None  # under the answer's own engine

    def record(self) -> RawRecord:
        """The launch as JSON: start command, and flags and advice as in `size --flags --json`; flags only on
        request."""
        return {
            "launch": [self.serve] if self.serve else None,
            "flags": flags_record(self.flags) if self.flags else None,
            "stack": advice_record(self.advice) if self.advice else None,
        }


def launches(
    answer: Record, question: Question, engines: tuple[str, ...], catalog: Catalog, is_advised: bool = True
) -> dict[int, Launch]:
    """The launch of each headline's answer for these engines, by load; none where no candidate serves the load.

    is_advised: as `flags_for` has it.
    """
    points = {cell.row: fullest_replica(question, cell) for cell in answer.headline_cells if cell.chosen}
    if not points:
        return {}
    columns = {name: [point.get(name) for point in points.values()] for name in DEFAULTS}
    columns |= {name: [point[name] for point in points.values()] for name in ("model", "gpu")}
    sized = size_columns(columns, len(points), catalog, longest=False)
    if errors := [line for error in sized.points.errors if error is not None for line in error.splitlines()]:
        raise ScenarioError(*errors)
    pairs = [(point, record(sized, place)) for place, point in enumerate(points.values())]
    numbers = {name: column for name, column in sized.known.items() if getattr(column, "ndim", 0)}
    own = question.engine.engine
    every = tuple(dict.fromkeys((*engines, *((own,) if own in WRITERS else ()))))
    launched = {
        row: _launch(
            {engine: flags[engine] for engine in engines},
            advice,
            flags.get(own),
            pairs[place],
            answer.cells[row].answer.sure_at.requests,
            {name: column[place] for name, column in numbers.items()},
        )
        for place, (row, (flags, advice)) in enumerate(
            zip(points, flags_for(every, pairs, catalog, is_advised), strict=True)
        )
    }
    replicas = {
        row: Replica(points[row], launch.own.checked.printed, launch.own.launcher)
        for row, launch in launched.items()
        if launch.serve and launch.own and launch.own.checked.printed
    }
    sizes = zip(replicas, size_commands([*replicas.values()], catalog), strict=True)
    return launched | {row: launched[row]._replace(size=size) for row, size in sizes}


def _launch(
    flags: dict[str, Flags],
    advice: Advice | None,
    own: Flags | None,
    pair: tuple[RawMapping, RawMapping],
    n_measured: int,
    numbers: Mapping[str, float],
) -> Launch:
    """The launch of an answer, without its `sheetgen size`.

    own: the flags of its own engine, with which it is measured. pair: the inputs of its replica, and their record.
    n_measured: the requests at once that a measurement sends to a replica.
    """
    point, sized = pair
    printed = own.checked.printed if own else None
    if own is None or printed is None or own.written is None:
        return Launch(flags, advice, {**numbers, **sized}, own=own)
    measured = {**point, "concurrent_requests": n_measured}
    serve, bench = command(own.written.groups, " "), bench_command(own.launcher.engine, own.checkpoint.word, measured)
    return Launch(flags, advice, {**printed.quantities, **printed.answer}, serve, bench, own=own)


def with_launch_rows(
    page: Page, answer: Record, question: Question, launched: Mapping[int, Launch], catalog: Catalog
) -> Page:
    """`page` with the launch of each answer under the sheet's engine, and the figures of the started replicas.

    The page is unchanged where a model or GPU of a workbook is no longer in the catalogs.
    """
    engine = question.engine.engine
    own = (engine,) if engine in WRITERS else ()
    if any(engine_id not in launch.flags for launch in launched.values() for engine_id in own) or not launched:
        try:
            launched = launches(answer, question, own, catalog, is_advised=False)
        except SheetgenError:
            return page
    if not launched:
        return page
    cells = {row: answer.cells[row] for row in launched}
    rows = tuple(replica_row(question, cells[row], launch.started) for row, launch in launched.items())
    models = [
        Started(row.model, engine, flags.written, cell.answer, question.instances[cell.answer.instance])
        for row, cell, launch in zip(rows, cells.values(), launched.values(), strict=True)
        if (flags := launch.flags.get(engine)) and flags.written
    ]
    subject = next(row for row, cell in cells.items() if cell.model == answer.of_replica["model"])
    beyond = dict.fromkeys(
        line
        for row, launch in launched.items()
        for line in beyond_measured(
            launch.started,
            question.instances[cells[row].answer.instance].gpu,
            cells[row].weight_dtype,
            question.draft is not None,
            question.speed,
        )
    )
    bench = launched[subject].bench if is_measured_itself(cells[subject]) else None
    sized = launched if len(launched) + bool(bench) <= ROOMY else (subject,)  # the other command takes their place
    return replace(
        page,
        replicas=rows,
        sized_by=tuple(filter(None, (launched[row].size for row in sized))),
        start=start_lines(models),
        memory_note=memory_note(cells.values()),
        drive=drive_words(question, cells[subject], bench),
        drive_alone=drive_words(question, cells[subject], None),
        bench=(bench,) if bench else (),
        findings=(memory_finding(rows), speed_finding(rows, cells[subject].is_rate), breaks_finding(rows)),
        beyond_measured=tuple(beyond),
        started_deaths=_failure_rows(answer, question, launched[subject]),
    )


def manifests_of(kinds: Iterable[str], cell: CellRecord, question: Question, launch: Launch | None) -> dict[str, str]:
    """The manifests of an answer by their kind; none where nothing holds the load.

    Raises ScenarioError where the answer's engine has no start command or container image, or reads a local folder.
    """
    kinds = tuple(kinds)
    if not kinds or launch is None:
        return {}
    engine, flags, chosen = question.engine.engine, launch.own, cell.answer
    if engine not in PORT_FLAGS or flags is None or flags.written is None or flags.written.files:
        raise ScenarioError(
            f"flags has {kinds[0]!r}, which starts vllm or sglang, and this answer's engine is {engine}."
        )
    if flags.checkpoint.is_folder:
        raise ScenarioError(
            f"flags has {kinds[0]!r}, and the weights lie in the folder {flags.checkpoint.word}, which no container"
            " sees. Name the model by its Hugging Face id."
        )
    candidate = question.instances[chosen.instance]
    started = Started(
        question.models[question.loads[cell.row].model].model.name, engine, flags.written, chosen, candidate
    )
    image = image_of(flags.launcher, question.engine.default_version, candidate.gpu.vendor)
    deployment = Deployment(started, image, cell.model, cell.weights_bytes / GIB)
    return {kind: manifest(kind, deployment) for kind in kinds}


def _failure_rows(answer: Record, question: Question, launch: Launch) -> tuple[FingerprintRow, ...]:
    """The page's rows on failures of the subject's replica, with the figures of the started replica."""
    numbers = bills_as_started(answer.of_replica, launch.started)
    prints = fingerprints_of(replace(answer, of_replica=numbers), question)
    return tuple(fingerprint.on_page(named=False) for fingerprint in prints)


def with_launches(record: Record, launched: Mapping[int, Launch]) -> Record:
    """The record with these launches by load; other loads have none."""
    nothing = {"launch": None, "flags": None, "stack": None}

    def filled(cell: CellRecord) -> CellRecord:
        launch = launched.get(cell.row)
        if launch is None:
            return replace(cell, launch=nothing)
        commands = cell.measure and replace(cell.measure, serve=launch.serve, bench=launch.bench)
        return replace(cell, launch=launch.record(), measure=commands)

    return replace(record, cells=tuple(map(filled, record.cells)))


def fullest_replica(question: Question, cell: CellRecord) -> RawRecord:
    """The inputs of `sheetgen size` for the answer's replica with the most requests, started for as many as it serves
    within the targets. The engine's defaults are left out, so that every engine launches with its own."""
    load, answer, engine = question.loads[cell.row], cell.answer, question.engine
    n_ranks, own = answer.data_parallel_size, engine_defaults(engine)
    chosen = {
        setting.asked_as: setting.words[value] if setting.words else value
        for setting in OF_SETTINGS
        if setting in OF_A_POINT
        and setting.name != "active_fraction"  # included in the concurrent requests
        and (value := getattr(question.settings, setting.name)) != own.get(setting.name, setting.default)
    }
    return chosen | {
        "model": parse.words(question.options["models"])[load.model],
        "gpu": answer.gpu,
        "engine": engine.engine,
        "engine_version": engine.default_version,
        "weight_dtype": cell.weight_dtype,
        "kv_cache_dtype": cell.kv_cache_dtype,
        "draft_model": question.options.get("draft_model"),
        "tensor_parallel_size": answer.tensor_parallel_size,
        "data_parallel_size": n_ranks,
        "pipeline_parallel_size": answer.pipeline_parallel_size,
        "expert_parallel_size": answer.tensor_parallel_size * n_ranks if n_ranks > 1 else 1,
        "context_tokens": load.context_tokens,
        "input_tokens": load.input_tokens,
        "output_tokens": question.workload_of(cell.row).output_tokens,
        "concurrent_requests": answer.requests_per_replica,
        "max_num_seqs": answer.sequences_of_rank,
    }

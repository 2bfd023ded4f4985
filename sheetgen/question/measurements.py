"""Measurements beside their predictions: factors and bytes that correct the predicted times and KV pool of a
deployment.

One point of a deployment (model, precision, GPU, engine, parallel sizes) sets all its times by one factor each. Points
at different loads set two constants of its time per token: what all of it is multiplied by, and what each request adds
to a step beside that. Bounded as here, the two predict runs that were left out best of five such pairs
(tests/test_measured_left_out.py).

A start-up log sets the pool by a difference in bytes, not by a factor: what a prediction errs by is a part of what lies
beside the pool, and stays where the engine is given more or less memory (tests/test_measured_memory.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy

from sheetgen.catalog.engines import load_engine, release_of
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.importer.model_names import resolve_model
from sheetgen.measured.measured_point import (
    NAMES,
    OF_LOAD,
    SIZES,
    MeasuredPoint,
    MeasuredPool,
    Measurement,
    Reading,
    Unusable,
)
from sheetgen.program.grid import Column, Columns, Grid
from sheetgen.program.row_program import ROW, evaluate_tables
from sheetgen.question import parse
from sheetgen.question.deployment import Points, complete
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.parse import Options, Raw
from sheetgen.units import DTYPES, GIB, PUBLISHED

T = TypeVar("T")
REQUEST_FACTORS = (0.7, 1.4)  # bounds of the second factor: what a few runs say beyond them is noise
NO_REQUEST_FACTOR = 1e-9  # the second factor of a step in which requests add nothing; 0 stands for not measured
HELD_SLACK = 0.02  # of a GPU's memory, by which weights and pool may pass the engine's share: SGLang's by 0.3 %
PRINTED = 0.01 * GIB  # what a log rounds its pool to
MOST_OFF = 0.1  # of a GPU's memory, by which a pool may be off where its log does not say its share of the memory
# Sizes as they are spelled after a file of --measured.
SPELLED = {"tensor_parallel_size": "tp", "pipeline_parallel_size": "pp", "data_parallel_size": "dp"}


class Served(NamedTuple):
    """A deployment by the names and sizes that its speed depends on, in the catalogs' spelling."""

    model: str
    gpu: str
    engine: str
    weight_dtype: str
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int


@dataclass(frozen=True)
class Run:
    """A measured point beside its prediction; waiting_requests: how many of its requests wait for memory by the
    prediction."""

    point: MeasuredPoint
    predicted_tpot_seconds: float
    predicted_ttft_seconds: float
    waiting_requests: float = 0.0


@dataclass(frozen=True)
class Start:
    """A start-up log beside its prediction, at the log's own settings; bytes of one GPU."""

    pool: MeasuredPool
    kv_pool_bytes: float
    predicted_kv_pool_bytes: float

    @property
    def more_bytes(self) -> float:
        return self.kv_pool_bytes - self.predicted_kv_pool_bytes


@dataclass(frozen=True)
class MeasuredDeployment:
    """Corrections that the runs and start-up logs of a deployment set; 0 for a figure that they do not set.

    pool_more_bytes: by which its KV pool is larger than predicted, below 0 smaller. pool_error_bytes: by which it may
    be off then, where that is known.
    """

    served: Served
    runs: tuple[Run, ...] = ()
    tpot_factor: float = 0
    ttft_factor: float = 0
    request_factor: float = 0
    starts: tuple[Start, ...] = ()
    pool_more_bytes: float = 0
    pool_error_bytes: float = 0

    @property
    def columns(self) -> dict[str, float]:
        """The corrections by the names that formulas read."""
        return self.factors | self.pool

    @property
    def factors(self) -> dict[str, float]:
        """The factors that the runs set."""
        return {
            "measured_tpot_factor": self.tpot_factor,
            "measured_ttft_factor": self.ttft_factor,
            "measured_request_factor": self.request_factor,
        }

    @property
    def pool(self) -> dict[str, float]:
        """The bytes of the KV pool that the start-up logs set."""
        return {
            "measured_pool_more_bytes": max(0.0, self.pool_more_bytes),
            "measured_pool_less_bytes": max(0.0, -self.pool_more_bytes),
            "measured_pool_error_bytes": self.pool_error_bytes,
        }

    @property
    def sources(self) -> list[str]:
        """The files from which the deployment's runs and logs were read."""
        return [*(run.point.source for run in self.runs), *(start.pool.source for start in self.starts)]


@dataclass(frozen=True)
class Measurements:
    """Measured deployments, and the readings that correct nothing, each with the reason."""

    deployments: tuple[MeasuredDeployment, ...] = ()
    unused: tuple[Unusable, ...] = ()

    def of(self, served: Served) -> MeasuredDeployment | None:
        """The measurements of a deployment; None where there are none."""
        return next((deployment for deployment in self.deployments if deployment.served == served), None)


NOTHING_MEASURED = Measurements()


def measurements_of(
    readings: Sequence[Reading],
    asked: Options,
    settings: Options,
    catalog: Catalog,
) -> Measurements:
    """The measured points and start-up logs beside their predictions, by deployment.

    asked: names and sizes that are the same in the whole question, for points that do not state theirs. settings:
    the other inputs of the deployments. Raises ScenarioError for a point whose deployment is not known, or that lies
    beyond all reason.
    """
    unused = [reading for reading in readings if isinstance(reading, Unusable)]
    problems: list[str] = []

    def attempt(source: str, read: Callable[..., T], *arguments: object) -> T | None:
        try:
            return read(*arguments)
        except SheetgenError as error:
            problems.extend(f"{source}: {line}" for line in error.problems)
            return None

    points: dict[Served, list[MeasuredPoint]] = {}
    starts: dict[Served, list[Start]] = {}
    for reading in readings:
        if isinstance(reading, Unusable):
            continue
        if isinstance(reading, MeasuredPool) and settings.get("draft_model"):
            unused.append(Unusable(reading.source, "it is of a start without a draft model"))
            continue
        served = attempt(reading.source, _served, reading, asked, catalog)
        if served and isinstance(reading, MeasuredPoint):
            points.setdefault(served, []).append(reading)
        elif served and (start := attempt(reading.source, _start_beside_prediction, served, reading, catalog)):
            starts.setdefault(served, []).append(start)
    deployments: list[MeasuredDeployment] = []
    for served in {**points, **starts}:
        measured = MeasuredDeployment(served)
        if runs := points.get(served):
            measured = attempt(runs[0].source, _with_runs, measured, runs, settings, catalog) or measured
        if served in starts:
            measured = _with_starts(measured, starts[served], settings, catalog)
        deployments.append(measured)
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))
    return Measurements(tuple(deployments), tuple(unused))


def refuse_factors(given: Options, readings: Iterable[Reading]) -> None:
    """Refuse a factor of speed beside measured points, which set it."""
    if not any(isinstance(reading, MeasuredPoint) for reading in readings):
        return
    if twice := [name for name in ("speed_factor", "ttft_factor") if given.get(name) is not None]:
        raise ScenarioError(*(f"{name} is given, and measured sets it. Leave one of them out." for name in twice))


def _served(measured: Measurement, asked: Options, catalog: Catalog) -> Served:
    """The deployment that was measured, in the catalogs' names. Raises ScenarioError for a name or size that nothing
    states."""
    stated = {name: getattr(measured, name) for name in (*NAMES, *SIZES)}
    completed = {name: asked.get(name) if value is None else value for name, value in stated.items()}
    missing = [name for name in ("model", "gpu", "engine", "tensor_parallel_size") if completed[name] is None]
    if missing:
        keys = ",".join(f"{SPELLED.get(name, name)}=..." for name in missing)
        names = " and ".join(name.replace("_", " ") for name in missing)
        raise ScenarioError(f"does not say its {names}. Add it after the file: FILE,{keys}.")
    model, named_dtype = resolve_model(str(completed["model"]), catalog)
    weight = completed["weight_dtype"] if stated["weight_dtype"] or not stated["model"] else None
    weight = parse.dtype(weight or PUBLISHED, "weight_dtype")
    return Served(
        model.id,
        catalog.gpu(str(completed["gpu"])).id,
        str(completed["engine"]).lower(),
        (named_dtype or model.weight_dtype) if weight not in DTYPES else weight,
        *(int(completed[name] or 1) for name in SIZES),
    )


def _with_runs(
    measured: MeasuredDeployment, points: Sequence[MeasuredPoint], settings: Options, catalog: Catalog
) -> MeasuredDeployment:
    """A deployment with the factors that its measured points set."""
    n = len(points)
    deployment = {**settings, **measured.served._asdict()}
    context = [point.input_tokens + point.output_tokens for point in points]
    given = {
        **{name: [value] * n for name, value in deployment.items() if value is not None},
        "context_tokens": context,
        "max_model_len": numpy.fmax(context, settings.get("max_model_len") or 0).tolist(),
        "input_tokens": [point.input_tokens for point in points],
        "output_tokens": [point.output_tokens for point in points],
        "concurrent_requests": [math.ceil(point.concurrent_requests) for point in points],
    }
    rows = complete(given, n, catalog)
    if refused := [error for error in rows.errors if error]:
        raise ScenarioError(*refused[0].splitlines())
    plain = _predicted(rows.grid, 0)
    runs = tuple(
        Run(point, *map(float, figures))
        for point, *figures in zip(
            points, plain["tpot_seconds"], plain["service_ttft_seconds"], plain["waiting_requests"], strict=True
        )
    )
    for run in runs:
        _check(run)
    seconds = numpy.array([point.tpot_seconds for point in points])
    if len({point.concurrent_requests for point in points}) > 1:
        without = _predicted(rows.grid, NO_REQUEST_FACTOR)["tpot_seconds"]
        tpot_factor, request_factor = both_factors(without, plain["tpot_seconds"] - without, seconds)
    else:
        tpot_factor, request_factor = _mean_ratio(seconds, plain["tpot_seconds"]), 0.0
    ttft = _predicted(rows.grid, request_factor)["service_ttft_seconds"]
    answered = [i for i, run in enumerate(runs) if run.point.ttft_seconds and not run.waiting_requests]
    first = numpy.array([points[i].ttft_seconds for i in answered], float)
    ttft_factor = _mean_ratio(first, ttft[answered]) if answered else 0.0
    tpot_factor, ttft_factor, request_factor = map(_rounded, (tpot_factor, ttft_factor, request_factor))
    return replace(measured, runs=runs, tpot_factor=tpot_factor, ttft_factor=ttft_factor, request_factor=request_factor)


def _with_starts(
    measured: MeasuredDeployment, starts: Sequence[Start], settings: Options, catalog: Catalog
) -> MeasuredDeployment:
    """A deployment with the pool that its start-up logs set: the mean of several."""
    more = _rounded(sum(start.more_bytes for start in starts) / len(starts))
    if catalog.gpu(measured.served.gpu).memory.shared_with_host:  # what is free there moves with all that runs
        return replace(measured, starts=tuple(starts), pool_more_bytes=more)
    asked = load_engine(catalog, measured.served.engine, settings.get("engine_version")).default_version
    releases = {_minor(version) for version in (asked, *(start.pool.engine_version for start in starts))}
    name = "measured_pool_error_gib" if len(releases) == 1 else "measured_pool_error_elsewhere_gib"
    from sheetgen.catalog import guidance

    error = guidance.number(guidance.assumptions(catalog), name) * GIB
    differences = [start.more_bytes for start in starts]
    error = max(error, (max(differences) - min(differences)) / 2)  # several logs that differ are no surer than that
    return replace(measured, starts=tuple(starts), pool_more_bytes=more, pool_error_bytes=error)


def _minor(version: str | None) -> tuple[int, ...] | None:
    """The minor release of a version: 0.31 for 0.31.2; None for what is no release."""
    return (release_of(version or "") or ())[:2] or None


OF_START = (
    "kv_budget_bytes_per_gpu", "kv_pool_bytes_per_gpu", "kv_tokens", "weights_bytes_per_gpu", "gpu_memory_bytes",
    "memory_budget_bytes", "loaded_weights_bytes_per_gpu",
)  # fmt: skip


def _start_beside_prediction(served: Served, pool: MeasuredPool, catalog: Catalog) -> Start:
    """A start-up log beside its prediction. Raises ScenarioError where the log cannot come from that deployment."""
    longest = pool.max_model_len or catalog.model(served.model).max_context_tokens  # as engines take it
    inputs = {**pool.settings, **served._asdict(), "max_model_len": longest, "context_tokens": longest}
    rows = complete({name: [value] for name, value in inputs.items() if value is not None}, 1, catalog)
    if refused := rows.errors[0]:
        raise ScenarioError(*refused.splitlines())
    evaluate_tables(rows.grid, OF_START)
    predicted = {name: float(rows.grid.spread(name, ROW)[0]) for name in OF_START}
    printed = pool.kv_pool_bytes_per_gpu
    if pool.kv_tokens and predicted["kv_tokens"]:  # finer than GiB to two places
        of_tokens = predicted["kv_pool_bytes_per_gpu"] * pool.kv_tokens / predicted["kv_tokens"]
        printed = of_tokens if printed is None or abs(of_tokens - printed) < PRINTED else printed
    if printed is None:
        raise ScenarioError("it says its tokens alone, and none are predicted to fit. Add kv_pool_gib=... to it.")
    start = Start(pool, printed, predicted["kv_budget_bytes_per_gpu"])
    seen = {name: value for name in OF_START if (value := getattr(pool, name, None))}
    from sheetgen.startup.log_inputs import contradictions

    if wrong := list(contradictions(served.model, served.gpu, {**seen, "kv_pool_bytes_per_gpu": printed}, predicted)):
        raise ScenarioError(*wrong)
    most = predicted["memory_budget_bytes"] - predicted["loaded_weights_bytes_per_gpu"]
    if printed > most + HELD_SLACK * predicted["gpu_memory_bytes"]:
        raise ScenarioError(
            f"its KV pool of {printed / GIB:,.2f} GiB is more than the {most / GIB:,.2f} GiB that its share of the"
            " memory holds beside the weights."
        )
    if pool.gpu_memory_utilization is None and abs(start.more_bytes) > MOST_OFF * predicted["gpu_memory_bytes"]:
        sizes = (f"{size / GIB:,.2f} GiB" for size in (printed, start.predicted_kv_pool_bytes))
        raise ScenarioError(
            "it does not say its gpu_memory_utilization, at whose default {1} are predicted for its KV pool of {0}."
            " Add it after the file: FILE,gpu_memory_utilization=0.9.".format(*sizes)
        )
    return start


def _predicted(grid: Grid, request_factor: float) -> Columns:
    """Both predicted times of deployments where each request adds this factor more to a step."""
    again = grid.again({"measured_request_factor": request_factor})
    evaluate_tables(again)
    names = ("tpot_seconds", "service_ttft_seconds", "concurrent_requests", "running_requests")
    columns = {name: numpy.array(again.spread(name, ROW), float) for name in names}
    columns["waiting_requests"] = columns["concurrent_requests"] - columns["running_requests"]
    return columns


def _mean_ratio(measured: Column, predicted: Column) -> float:
    """Measured over predicted; the geometric mean of several."""
    return float(numpy.exp(numpy.log(measured / predicted).mean()))


def both_factors(without: Column, of_requests: Column, measured: Column) -> tuple[float, float]:
    """The factor of the whole time per token and, within it, that of what requests add: the fit with the least squared
    relative errors, the second factor kept within its bounds."""
    parts = numpy.stack([without / measured, of_requests / measured], 1)
    (whole, request), *_ = numpy.linalg.lstsq(parts, numpy.ones(len(measured)), rcond=None)
    low, high = REQUEST_FACTORS
    if whole > 0 and low <= request / whole <= high:
        return float(whole), float(request / whole)

    def within(factor: float) -> tuple[float, float, float]:
        """The squared relative errors of the best fit with this second factor, and both of its factors."""
        ratios = parts @ [1, factor]  # predicted over measured
        best = ratios.sum() / (ratios**2).sum()
        return float(((best * ratios - 1) ** 2).sum()), float(best), factor

    return min(within(low), within(high))[1:]


def _rounded(factor: float) -> float:
    """To 12 digits: more would differ from machine to machine."""
    return float(f"{factor:.12g}")


def _check(run: Run) -> None:
    """Refuse a point that is too far from the prediction to correct it."""
    for name, called, measured, predicted in (
        ("speed_factor", "time per output token", run.point.tpot_seconds, run.predicted_tpot_seconds),
        ("ttft_factor", "time to first token", run.point.ttft_seconds, run.predicted_ttft_seconds),
    ):
        kind = BY_NAME[name].kind
        if measured is None or (name == "ttft_factor" and run.waiting_requests):
            continue
        if not kind.low <= measured / predicted <= kind.high:
            raise ScenarioError(
                f"its {called} of {1000 * measured:,.6g} ms is {measured / predicted:,.3g} times what is predicted"
                f" ({1000 * predicted:,.3g} ms). Check its unit, and what served."
            )


def with_measured(record: Mapping[str, Raw], measurements: Measurements) -> dict[str, Raw]:
    """A record with its measurements: the points that set times and the start-up logs that set memory, beside their
    predictions, and those that set nothing; unchanged where nothing was given."""
    if measurements == NOTHING_MEASURED:
        return dict(record)
    used = [
        {
            "source": run.point.source,
            **measured.served._asdict(),
            **{name: getattr(run.point, name) for name in OF_LOAD},
            "tpot_seconds": run.point.tpot_seconds,
            "predicted_tpot_seconds": run.predicted_tpot_seconds,
            "ttft_seconds": run.point.ttft_seconds,
            "predicted_ttft_seconds": run.predicted_ttft_seconds,
            **measured.factors,
        }
        for measured in measurements.deployments
        for run in measured.runs
    ]
    memory = [
        {
            "source": start.pool.source,
            **measured.served._asdict(),
            **start.pool.settings,
            "kv_pool_bytes_per_gpu": round(start.kv_pool_bytes),
            "predicted_kv_pool_bytes_per_gpu": round(start.predicted_kv_pool_bytes),
            "kv_tokens": start.pool.kv_tokens,
            **measured.pool,
        }
        for measured in measurements.deployments
        for start in measured.starts
    ]
    unused = [vars(reading) for reading in measurements.unused]
    return {**record, "measured": {"used": used, "memory": memory, "unused": unused}}


def served_rows(points: Points) -> Iterator[tuple[int, Served]]:
    """For each row that can be sized, the deployment that it serves."""
    sizes = {name: points.values[name] for name in SIZES}
    for i, names in enumerate(points.names):
        of_row = (int(sizes[name][i]) for name in SIZES)
        yield i, Served(names.model.id, names.gpu.id, names.engine.engine, names.weight_dtype, *of_row)


def asked_of(points: Points) -> dict[str, Raw]:
    """Names and sizes that are the same in all rows, for measured points that do not state them."""
    return asked_once([served for _, served in served_rows(points)])


def asked_once(served: Sequence[Served]) -> dict[str, Raw]:
    """Names and sizes that are the same in all deployments, for measured points that do not state them."""
    columns = {name: {getattr(deployment, name) for deployment in served} for name in Served._fields}
    return {name: next(iter(values)) for name, values in columns.items() if len(values) == 1}


def put_measured(points: Points, measurements: Measurements) -> Measurements:
    """Put the corrections of the rows into their grid. Returns the measurements that correct some row; the others are
    among the unused."""
    columns: Columns = {}
    used: set[Served] = set()
    rows = dict(served_rows(points))
    for i, served in rows.items():
        if measured := measurements.of(served):
            used.add(served)
            has_draft = points.names[i].draft is not None
            for name, value in (measured.factors if has_draft else measured.columns).items():
                columns.setdefault(name, numpy.zeros(len(rows)))[i] = value
    if columns:
        points.grid.put(ROW, columns)
    return split_used(measurements, used, list(dict.fromkeys(rows.values())))


def split_used(measurements: Measurements, used: set[Served], asked: Sequence[Served]) -> Measurements:
    """The measurements with those that correct nothing moved to the unused, each with what sets it apart."""
    apart = [
        Unusable(source, _why_unused(measured.served, asked))
        for measured in measurements.deployments
        if measured.served not in used
        for source in measured.sources
    ]
    return replace(
        measurements,
        deployments=tuple(deployment for deployment in measurements.deployments if deployment.served in used),
        unused=(*measurements.unused, *apart),
    )


def _why_unused(served: Served, asked: Sequence[Served]) -> str:
    """The sentence on why a measured deployment is none of those requested: its first name that none of them has."""
    near = list(asked)
    for name in Served._fields:
        same = [deployment for deployment in near if getattr(deployment, name) == getattr(served, name)]
        if not same:
            others = list(dict.fromkeys(str(getattr(deployment, name)) for deployment in near))
            word = SPELLED.get(name, name.replace("_", " ")).replace("weight dtype", "weights")
            more = f", not {others[0]}" if len(others) == 1 else ", which nothing requested has"
            mend = f"; --weight-dtype {served.weight_dtype} requests them" if name == "weight_dtype" else ""
            return f"it is of {word} {getattr(served, name)}{more}{mend}"
        near = same
    return "nothing requested is that deployment"

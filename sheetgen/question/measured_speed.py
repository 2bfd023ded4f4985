"""Measured points beside their predictions: by how much the predicted times of a deployment are set right.

One point of a deployment (model, precision, GPU, engine, parallel sizes) sets all its times by one factor each. Points
at different loads set two constants of its time per token: what all of it is multiplied by, and what each request adds
to a step beside that. Bounded as here, the two predict runs that were left out best of five such pairs
(tests/test_measured_left_out.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy

from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.importer.model_names import resolve_model
from sheetgen.measured.measured_point import NAMES, OF_LOAD, SIZES, MeasuredPoint, Reading, Unusable
from sheetgen.program.grid import Columns, Grid
from sheetgen.program.row_program import ROW, evaluate_deployments
from sheetgen.question import parse
from sheetgen.question.deployment import Points, complete
from sheetgen.question.inputs import BY_NAME
from sheetgen.units import DTYPES, PUBLISHED

REQUEST_FACTORS = (0.7, 1.4)  # beyond, what a few runs say is more noise than news
NO_REQUEST_FACTOR = 1e-9  # of a step in which requests add nothing
SPELLED = {"tensor_parallel_size": "tp", "pipeline_parallel_size": "pp", "data_parallel_size": "dp"}


class Served(NamedTuple):
    """A deployment by what its speed depends on, in the catalogs' names."""

    model: str
    gpu: str
    engine: str
    weight_dtype: str
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int


@dataclass(frozen=True)
class Run:
    """A measured point beside its prediction; waiting_requests: those of it that wait for memory by the prediction."""

    point: MeasuredPoint
    predicted_tpot_seconds: float
    predicted_ttft_seconds: float
    waiting_requests: float = 0.0


@dataclass(frozen=True)
class MeasuredSpeed:
    """The factors that the runs of a deployment set; 0 of what they do not say."""

    served: Served
    runs: tuple[Run, ...]
    tpot_factor: float
    ttft_factor: float
    request_factor: float

    @property
    def columns(self) -> dict[str, float]:
        """The factors by the names that formulas read."""
        return {
            "measured_tpot_factor": self.tpot_factor,
            "measured_ttft_factor": self.ttft_factor,
            "measured_request_factor": self.request_factor,
        }


@dataclass(frozen=True)
class Measurements:
    """What measured points set, and those that set nothing, each with its reason."""

    speeds: tuple[MeasuredSpeed, ...] = ()
    unused: tuple[Unusable, ...] = ()

    def of(self, served: Served) -> MeasuredSpeed | None:
        """What was measured of a deployment; None where nothing was."""
        return next((one for one in self.speeds if one.served == served), None)


NOTHING_MEASURED = Measurements()


def measurements_of(
    readings: Sequence[Reading],
    asked: Mapping[str, Any],
    settings: Mapping[str, Any],
    catalog: Catalog,
) -> Measurements:
    """The points beside their predictions, by deployment.

    asked: what the question has one value of, for points that do not say it. settings: of the deployments, beside
    their names and sizes. Raises ScenarioError for a point whose deployment is not known, or that lies beyond all
    reason.
    """
    unused = [one for one in readings if isinstance(one, Unusable)]
    problems: list[str] = []
    by_served: dict[Served, list[MeasuredPoint]] = {}
    for one in readings:
        if isinstance(one, MeasuredPoint):
            try:
                by_served.setdefault(_served(one, asked, catalog), []).append(one)
            except SheetgenError as error:
                problems += (f"{one.source}: {line}" for line in error.problems)
    speeds: list[MeasuredSpeed] = []
    for served, points in by_served.items():
        try:
            speeds.append(_speed_of(served, points, settings, catalog))
        except SheetgenError as error:
            problems += (f"{points[0].source}: {line}" for line in error.problems)
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))
    return Measurements(tuple(speeds), tuple(unused))


def refuse_factors(given: Mapping[str, Any]) -> None:
    """Refuse a factor of speed beside measured points, which set it."""
    if twice := [name for name in ("speed_factor", "ttft_factor") if given.get(name) is not None]:
        raise ScenarioError(*(f"{name} is given, and measured sets it. Leave one of them out." for name in twice))


def _served(point: MeasuredPoint, asked: Mapping[str, Any], catalog: Catalog) -> Served:
    """The deployment of a point, in the catalogs' names. Raises ScenarioError for what nobody says."""
    stated = {name: getattr(point, name) for name in (*NAMES, *SIZES)}
    known = {name: asked.get(name) if value is None else value for name, value in stated.items()}
    missing = [name for name in ("model", "gpu", "engine", "tensor_parallel_size") if known[name] is None]
    if missing:
        keys = ",".join(f"{SPELLED.get(name, name)}=..." for name in missing)
        names = " and ".join(name.replace("_", " ") for name in missing)
        raise ScenarioError(f"does not say its {names}. Add it after the file: FILE,{keys}.")
    model, named_dtype = resolve_model(str(known["model"]), catalog)
    weight = known["weight_dtype"] if stated["weight_dtype"] or not stated["model"] else None
    weight = parse.dtype(weight or PUBLISHED, "weight_dtype")
    return Served(
        model.id,
        catalog.gpu(str(known["gpu"])).id,
        str(known["engine"]).lower(),
        (named_dtype or model.weight_dtype) if weight not in DTYPES else weight,
        *(int(known[name] or 1) for name in SIZES),
    )


def _speed_of(
    served: Served, points: Sequence[MeasuredPoint], settings: Mapping[str, Any], catalog: Catalog
) -> MeasuredSpeed:
    """The factors of a deployment that its points set."""
    n = len(points)
    deployment = {**settings, **served._asdict()}
    context = [one.input_tokens + one.output_tokens for one in points]
    given = {
        **{name: [value] * n for name, value in deployment.items() if value is not None},
        "context_tokens": context,
        "max_model_len": numpy.fmax(context, settings.get("max_model_len") or 0).tolist(),
        "input_tokens": [one.input_tokens for one in points],
        "output_tokens": [one.output_tokens for one in points],
        "concurrent_requests": [math.ceil(one.concurrent_requests) for one in points],
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
    measured = numpy.array([one.tpot_seconds for one in points])
    if len({one.concurrent_requests for one in points}) > 1:
        without = _predicted(rows.grid, NO_REQUEST_FACTOR)["tpot_seconds"]
        tpot_factor, request_factor = both_factors(without, plain["tpot_seconds"] - without, measured)
    else:
        tpot_factor, request_factor = _mean_ratio(measured, plain["tpot_seconds"]), 0.0
    ttft = _predicted(rows.grid, request_factor)["service_ttft_seconds"]
    answered = [i for i, run in enumerate(runs) if run.point.ttft_seconds and not run.waiting_requests]
    first = numpy.array([points[i].ttft_seconds for i in answered], float)
    ttft_factor = _mean_ratio(first, ttft[answered]) if answered else 0.0
    return MeasuredSpeed(served, runs, *map(_rounded, (tpot_factor, ttft_factor, request_factor)))


def _predicted(grid: Grid, request_factor: float) -> Columns:
    """Both times of deployments whose requests add so much more to a step."""
    again = grid.again({"measured_request_factor": request_factor})
    evaluate_deployments(again)
    names = ("tpot_seconds", "service_ttft_seconds", "concurrent_requests", "running_requests")
    columns = {name: numpy.array(again.spread(name, ROW), float) for name in names}
    columns["waiting_requests"] = columns["concurrent_requests"] - columns["running_requests"]
    return columns


def _mean_ratio(measured: Any, predicted: Any) -> float:
    """Measured over predicted, of several the geometric mean."""
    return float(numpy.exp(numpy.log(measured / predicted).mean()))


def both_factors(without: Any, of_requests: Any, measured: Any) -> tuple[float, float]:
    """The factor of the whole time per token, and within it that of what requests add: the least relative squares,
    the second within its bounds."""
    parts = numpy.stack([without / measured, of_requests / measured], 1)
    (whole, request), *_ = numpy.linalg.lstsq(parts, numpy.ones(len(measured)), rcond=None)
    low, high = REQUEST_FACTORS
    if whole > 0 and low <= request / whole <= high:
        return float(whole), float(request / whole)

    def within(factor: float) -> tuple[float, float, float]:
        share = parts @ [1, factor]
        best = share.sum() / (share**2).sum()
        return float(((best * share - 1) ** 2).sum()), float(best), factor

    return min(within(low), within(high))[1:]


def _rounded(factor: float) -> float:
    return float(f"{factor:.12g}")


def _check(run: Run) -> None:
    """Refuse a point that cannot set predictions right: it lies beyond all reason."""
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


def with_measured(record: Mapping[str, Any], found: Measurements) -> dict[str, Any]:
    """A record with its measured points: those that set times, beside what was predicted, and those that do not;
    as it is where none was given."""
    if found == NOTHING_MEASURED:
        return dict(record)
    used = [
        {
            "source": run.point.source,
            **speed.served._asdict(),
            **{name: getattr(run.point, name) for name in OF_LOAD},
            "tpot_seconds": run.point.tpot_seconds,
            "predicted_tpot_seconds": run.predicted_tpot_seconds,
            "ttft_seconds": run.point.ttft_seconds,
            "predicted_ttft_seconds": run.predicted_ttft_seconds,
            **speed.columns,
        }
        for speed in found.speeds
        for run in speed.runs
    ]
    return {**record, "measured": {"used": used, "unused": [vars(one) for one in found.unused]}}


def served_rows(points: Points) -> Iterator[tuple[int, Served]]:
    """By row that can be sized what it serves."""
    sizes = {name: points.values[name] for name in SIZES}
    for i, names in enumerate(points.names):
        of_row = (int(sizes[name][i]) for name in SIZES)
        yield i, Served(names.model.id, names.gpu.id, names.engine.engine, names.weight_dtype, *of_row)


def asked_of(points: Points) -> dict[str, Any]:
    """What all rows have one value of, for measured points that do not say it."""
    return asked_once([one for _, one in served_rows(points)])


def asked_once(served: Sequence[Served]) -> dict[str, Any]:
    """What all deployments have one value of, for measured points that do not say it."""
    columns = {name: {getattr(one, name) for one in served} for name in Served._fields}
    return {name: next(iter(values)) for name, values in columns.items() if len(values) == 1}


def put_measured(points: Points, found: Measurements) -> Measurements:
    """Put in the factors of the rows that were measured; gives what sets some row, with the rest among the unused."""
    columns: dict[str, Any] = {}
    used: set[Served] = set()
    rows = dict(served_rows(points))
    for i, served in rows.items():
        if speed := found.of(served):
            used.add(served)
            for name, factor in speed.columns.items():
                columns.setdefault(name, numpy.zeros(len(rows)))[i] = factor
    if columns:
        points.grid.put(ROW, columns)
    return split_used(found, used, list(dict.fromkeys(rows.values())))


def split_used(found: Measurements, used: set[Served], asked: Sequence[Served]) -> Measurements:
    """The measurements with those that set nothing among the unused, each with what sets it apart."""
    apart = [
        Unusable(run.point.source, _apart(speed.served, asked))
        for speed in found.speeds
        if speed.served not in used
        for run in speed.runs
    ]
    return replace(
        found,
        speeds=tuple(one for one in found.speeds if one.served in used),
        unused=(*found.unused, *apart),
    )


def _apart(served: Served, asked: Sequence[Served]) -> str:
    """What sets a measured deployment apart from those requested: the first of its names that none of them has."""
    near = list(asked)
    for name in Served._fields:
        same = [one for one in near if getattr(one, name) == getattr(served, name)]
        if not same:
            others = list(dict.fromkeys(str(getattr(one, name)) for one in near))
            word = SPELLED.get(name, name.replace("_", " ")).replace("weight dtype", "weights")
            more = f", not {others[0]}" if len(others) == 1 else ", which nothing requested has"
            return f"it is of {word} {getattr(served, name)}{more}"
        near = same
    return "nothing requested is that deployment"

"""The prediction of a measured point, and the factors that set all predictions of its configuration right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.calibration.read import Anchor, read_anchor
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.estimate import point
from sheetgen.scenario.amounts import DEFAULTS
from sheetgen.scenario.deployment import Points, complete
from sheetgen.scenario.inputs import BY_NAME

# Inputs of a load: the point has its own. All others are of the deployment, which is the same.
LOAD = (
    "context_tokens", "concurrent_requests", "input_tokens", "output_tokens", "prefix_cache_hit_fraction",
    "average_context_fraction", "requests_per_second", "speed_factor", "ttft_factor",
)  # fmt: skip
SETTINGS = tuple(name for name in DEFAULTS if name not in LOAD)
PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "expert_parallel_size")


@dataclass(frozen=True)
class Anchored:
    """A point beside its prediction, a column entry per deployment; 1 and NaN where a deployment cannot be sized.

    waiting_requests: those of the point that wait for their turn by the prediction.
    """

    anchor: Anchor
    speed_factor: Any
    ttft_factor: Any
    predicted_tpot_seconds: Any
    predicted_ttft_seconds: Any
    waiting_requests: Any

    @property
    def inputs(self) -> dict[str, Any]:
        """What the point sets: the factors on predicted times."""
        factors = {"speed_factor": self.speed_factor}
        return factors if self.anchor.ttft_seconds is None else {**factors, "ttft_factor": self.ttft_factor}


def anchored(value: Any, given: Mapping[str, Any], n_rows: int, catalog: Catalog) -> Anchored:
    """The point of `value` beside the prediction of its load on the deployments of `given` (columns by input name).

    Raises ScenarioError where a factor is given as well, where the deployments are not of one configuration, or where
    the point cannot set them right: it cannot be run, it lies beyond all reason, or its time to first token is one of
    waiting.
    """
    anchor = read_anchor(value)
    sets = ("speed_factor",) if anchor.ttft_seconds is None else ("speed_factor", "ttft_factor")
    twice = [name for name in sets if name in given]
    if twice:
        raise ScenarioError(*(f"{name} is given, and anchor sets it. Leave one of them out." for name in twice))
    settings = {name: given[name] for name in SETTINGS if name in given}
    own = complete({**settings, "context_tokens": [1] * n_rows}, n_rows, catalog)  # which can be sized at all
    context = anchor.input_tokens + anchor.output_tokens
    load = {
        "context_tokens": context,
        "concurrent_requests": anchor.concurrent_requests,
        "input_tokens": anchor.input_tokens,
        "output_tokens": anchor.output_tokens,
        "prefix_cache_hit_fraction": anchor.prefix_cache_hit_fraction,
    }
    columns = {name: [value] * n_rows for name, value in load.items()}
    lengths = numpy.fmax(own.inputs["max_model_len"], context)
    at = complete({**settings, **columns, "max_model_len": lengths}, n_rows, catalog)
    refused = next((at.errors[i] for i in own.good.tolist() if at.errors[i]), None)
    if refused:
        raise ScenarioError(*(f"anchor: {line}" for line in refused.splitlines()))
    _one_configuration(at)
    tpot, ttft, waiting = (numpy.full(n_rows, numpy.nan) for _ in range(3))
    if len(at.good):
        known = point(at.values)
        tpot[at.good], ttft[at.good] = known["tpot_seconds"], known["service_ttft_seconds"]
        waiting[at.good] = known["concurrent_requests"] - known["running_requests"]
    _check(anchor, tpot[at.good], ttft[at.good], waiting[at.good])
    return Anchored(anchor, _factor(anchor.tpot_seconds, tpot), _factor(anchor.ttft_seconds, ttft), tpot, ttft, waiting)


def frame_factors(value: Any, given: Mapping[str, Any], n_rows: int, catalog: Catalog) -> dict[str, Any]:
    """The factors of all rows of a frame, predicted once for each of their different settings."""
    import pandas

    settings = {name: numpy.asarray(given[name], object) for name in SETTINGS if name in given}
    keys = pandas.DataFrame({name: pandas.Series(column).astype(str) for name, column in settings.items()})
    if keys.empty:
        return anchored(value, given, n_rows, catalog).inputs
    code = keys.groupby(list(keys), sort=False, dropna=False).ngroup().to_numpy()
    first = numpy.unique(code, return_index=True)[1]
    distinct = {name: numpy.asarray(column)[first] for name, column in given.items()}
    return {name: factor[code] for name, factor in anchored(value, distinct, len(first), catalog).inputs.items()}


def _factor(measured: float | None, predicted: Any) -> Any:
    """Measured over predicted, to 12 digits; 1 where nothing is predicted."""
    found = numpy.where(numpy.isnan(predicted), 1.0, (measured or math.nan) / predicted)
    return numpy.array([float(f"{one:.12g}") for one in found])


def _one_configuration(points: Points) -> None:
    names = [
        (n.model.id, n.gpu.id, n.engine.engine, n.weight_dtype, n.kv_cache_dtype, n.draft and n.draft.id)
        for n in points.names
    ]
    sizes = zip(*(points.values[name].tolist() for name in PARALLEL), strict=True) if names else ()
    different = set(zip(names, sizes, strict=True))
    if len(different) > 1:
        raise ScenarioError(
            "anchor is a measured point of one model, GPU, engine, precision and parallel sizes; the rows have"
            f" {len(different):,} of these. Give columns speed_factor and ttft_factor."
        )


def _check(anchor: Anchor, tpot: Any, ttft: Any, waiting: Any) -> None:
    """Refuse a point that cannot set predictions right."""
    if anchor.ttft_seconds is not None and (waiting > 0).any():
        raise ScenarioError(
            f"anchor: {waiting.max():,.0f} of its {anchor.concurrent_requests:,} requests wait for their turn by the"
            " prediction, so its time to first token is one of waiting. Leave ttft_ms out."
        )
    for name, called, measured, predicted in (
        ("speed_factor", "tpot_ms", anchor.tpot_seconds, tpot),
        ("ttft_factor", "ttft_ms", anchor.ttft_seconds, ttft),
    ):
        kind = BY_NAME[name].kind
        for one in predicted.tolist():
            if measured is not None and not kind.low <= measured / one <= kind.high:
                raise ScenarioError(
                    f"anchor: {called} is {1000 * measured:,.6g}: the measured point is {measured / one:,.3g} times"
                    f" what is predicted ({1000 * one:,.3g} ms). Check its unit (ms)."
                )

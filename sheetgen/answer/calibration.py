"""One measured point of a deployment, beside its prediction: by how much all its predicted times are set right.

The point is a run of the same model, GPU, engine, precisions and parallel sizes: how many requests ran at once, how
long they were, and the milliseconds per output token (and to the first one) that a benchmark reported. What ships is
off by some 12 % (median); with one point of its configuration by 9 %: docs/speed.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from sheetgen.catalog import Catalog, read_document
from sheetgen.catalog.base import is_file
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown, shown_key
from sheetgen.program.row_program import ROW, evaluate_deployments
from sheetgen.question import parse
from sheetgen.question.deployment import DEFAULTS, Points, complete
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.parse import SHARE
from sheetgen.units import count

NEEDED = ("concurrent_requests", "input_tokens", "output_tokens", "tpot_ms")
KEYS = (*NEEDED, "ttft_ms", "prefix_cache_hit_fraction")
EXAMPLE = "concurrent_requests=64,input_tokens=1024,output_tokens=1024,tpot_ms=22.4"


@dataclass(frozen=True)
class Anchor:
    """A measured point: requests at once on the replica, tokens of each, mean seconds. TTFT where it was measured."""

    concurrent_requests: int
    input_tokens: int
    output_tokens: int
    tpot_seconds: float
    ttft_seconds: float | None = None
    prefix_cache_hit_fraction: float = 0.0

    @property
    def words(self) -> str:
        """The load of the point."""
        return f"{count(self.concurrent_requests, 'request')} of {self.input_tokens:,} + {self.output_tokens:,} tokens"


def read_anchor(value: Any) -> Anchor:
    """A point as a mapping of KEYS, as `name=value,name=value`, or in a JSON or YAML file.

    Raises ScenarioError with every key that is unknown, missing, given twice or out of bounds.
    """
    found, problems = dict[str, Any](), list[str]()
    for place, name, given in _pairs(value):
        key = {"users": "concurrent_requests"}.get(name, name)
        if given is None and key in KEYS and key not in NEEDED:
            continue
        if key not in KEYS:
            problems.append(f"{place}: unknown key {shown_key(name)!r}.{did_you_mean(name, KEYS)}")
        elif key in found:
            problems.append(f"{place}: {key} is given twice. Keep one.")
        else:
            wrong = Problems()
            found[key] = wrong.attempt(_read, key, given)
            problems += (f"{place}: {problem}" for problem in wrong)
    missing = [name for name in NEEDED if name not in found]
    if missing and not problems:
        lacks = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        problems.append(f"anchor: {lacks}. Write the whole point, such as {EXAMPLE}.")
    if problems:
        raise ScenarioError(*problems)
    times = {f"{name}_seconds": found.pop(f"{name}_ms") / 1000 for name in ("tpot", "ttft") if f"{name}_ms" in found}
    return Anchor(**found, **times)


def _pairs(value: Any) -> Iterator[tuple[str, str, Any]]:
    """Where it stands, name and value of everything that the point states."""
    if isinstance(value, Mapping):
        yield from (("anchor", str(name).replace("-", "_"), given) for name, given in value.items())
        return
    if not isinstance(value, (str, Path)):
        raise ScenarioError(f"anchor is {shown(repr(value))}. Give a mapping such as {EXAMPLE}, or a file of one.")
    text = str(value).strip()
    if "=" in text and not is_file(text):
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, equals, given = item.partition("=")
            if not equals:
                raise ScenarioError(f"anchor has {shown(item)!r}. Write name=value, such as {EXAMPLE}.")
            yield "anchor", name.strip().replace("-", "_"), given.strip()
        return
    if not is_file(text):
        raise ScenarioError(f"anchor is {shown(text)!r}, which is no file. Write a point such as {EXAMPLE}.")
    document = read_document(Path(text).expanduser())
    if not isinstance(document.data, dict):
        raise ScenarioError(f"{document.at(())}: holds no point. Write lines such as tpot_ms: 22.4.")
    for key, given in document.data.items():
        yield document.at((key,)), key.replace("-", "_"), given


def _read(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        raise ScenarioError(f"{key} is {shown(repr(value))}. It must be a number.")
    if key == "concurrent_requests":
        return parse.whole(value, key)
    if key == "prefix_cache_hit_fraction":
        return SHARE.parse(value, key)
    if key.endswith("_tokens"):
        n_tokens = parse.tokens(value, key)
        if key == "output_tokens" and n_tokens < 2:
            raise ScenarioError(f"{key} is {shown(value)!r}. There is a time between tokens from 2 on.")
        return n_tokens
    milliseconds = parse.number(value)
    if not 0 < milliseconds < math.inf:
        raise ScenarioError(f"{key} is {shown(value)!r}. It must be a number of milliseconds above 0.")
    return milliseconds


# Inputs of a load: the point has its own. All others are of the deployment, which is the same.
LOAD = (
    "context_tokens", "concurrent_requests", "input_tokens", "output_tokens", "prefix_cache_hit_fraction",
    "average_context_fraction", "requests_per_second", "speed_factor", "ttft_factor", "users", "active_fraction",
    "requests_per_user_per_day", "requests_per_day", "tokens_per_day", "peak_hour_share", "burst_factor",
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
    predicted_ttft_seconds: Any  # `explain` reads these two by name
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
    if twice := [name for name in sets if name in given]:
        raise ScenarioError(*(f"{name} is given, and anchor sets it. Leave one of them out." for name in twice))
    settings = {name: given[name] for name in SETTINGS if name in given}
    own = complete({**settings, "context_tokens": [1] * n_rows}, n_rows, catalog)  # which can be sized at all
    context = anchor.input_tokens + anchor.output_tokens
    of_load = ("concurrent_requests", "input_tokens", "output_tokens", "prefix_cache_hit_fraction")
    load = {"context_tokens": context, **{name: getattr(anchor, name) for name in of_load}}
    columns = {name: [value] * n_rows for name, value in load.items()}
    lengths = numpy.fmax(own.inputs["max_model_len"], context)
    at = complete({**settings, **columns, "max_model_len": lengths}, n_rows, catalog)
    if refused := next((at.errors[i] for i in own.good.tolist() if at.errors[i]), None):
        raise ScenarioError(*(f"anchor: {line}" for line in refused.splitlines()))
    _one_configuration(at)
    tpot, ttft, waiting = (numpy.full(n_rows, numpy.nan) for _ in range(3))
    if len(at.good):
        grid = at.grid.again({})
        evaluate_deployments(grid)
        known = grid.table(*ROW)
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
        what = "anchor is a measured point of one model, GPU, engine, precision and parallel sizes"
        have = f"the rows have {len(different):,} of these"
        raise ScenarioError(f"{what}; {have}. Give columns speed_factor and ttft_factor.")


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

"""The prediction beside what the engine measured, quantity by quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.api import record, sized_point
from sheetgen.catalog.load import Catalog
from sheetgen.errors import CatalogError, SheetgenError
from sheetgen.startup.inputs import Asked, ask, tell_defaults
from sheetgen.startup.read import QUANTITIES, Measured, StartupLog, measure

_RATIOS = ("max_concurrency",)


@dataclass(frozen=True)
class Compared:
    """`predicted` is empty where nothing could be sized, for the reasons in `unsized`."""

    log: StartupLog
    inputs: dict[str, Any]
    predicted: dict[str, float | int | None]
    measured: Measured
    not_stated: tuple[str, ...]
    notes: tuple[str, ...]
    unsized: tuple[str, ...] = ()

    def difference(self, name: str) -> float | int | None:
        """Prediction less measurement; None where one of them is missing."""
        predicted, figure = self.predicted.get(name), self.measured.figures.get(name)
        if predicted is None or figure is None:
            return None
        return predicted - _plain(name, figure.value)

    def percent(self, name: str) -> float | None:
        """The same as a percentage of the measurement."""
        difference, figure = self.difference(name), self.measured.figures.get(name)
        return None if difference is None or figure is None or not figure.value else 100 * difference / figure.value


def compare(log: StartupLog, options: Mapping[str, Any], catalog: Catalog) -> Compared:
    """Size what the log and the options say, beside the log's own figures.

    An engine without accounting, or a deployment that cannot be sized, leaves the prediction empty. Raises
    ScenarioError where the engine could be sized but model or GPU cannot be told.
    """
    measured = measure(log)
    starts = [f"the log holds {log.n_starts} starts; the last, from line {log.line_number:,}, was taken."]
    notes = [*(starts if log.n_starts > 1 else []), *measured.notes]
    try:
        asked = ask(log, measured, options, catalog)
    except SheetgenError:
        from sheetgen.catalog.engines import load_engine

        reason = _without_accounting(str(options.get("engine") or log.engine), load_engine, catalog)
        if reason is None:
            raise
        return Compared(log, {"engine": log.engine}, {}, measured, (), tuple(notes), (reason,))
    try:
        sized = sized_point(asked.inputs, catalog)
    except SheetgenError as error:
        return _compared(log, asked, asked.inputs, {}, measured, notes, error.problems)
    answer = record(sized)
    answer["n_gpu_blocks"] = int(sized.known["n_kv_blocks"][0]) if "n_kv_blocks" in sized.known else None
    tell_defaults(asked, answer)
    inputs = {name: answer[name] for name in (*sized.inputs, "model_id", "gpu_id")}
    return _compared(log, asked, inputs, {name: answer[name] for name in QUANTITIES}, measured, notes, ())


def _compared(
    log: StartupLog, asked: Asked, inputs: Mapping[str, Any], predicted: Mapping[str, Any], measured: Measured,
    notes: list[str], unsized: tuple[str, ...],
) -> Compared:  # fmt: skip
    told = (*notes, *asked.notes)
    return Compared(log, dict(inputs), dict(predicted), measured, tuple(asked.not_stated), told, unsized)


def _without_accounting(engine: str, load: Any, catalog: Catalog) -> str | None:
    try:
        load(catalog, engine)
    except CatalogError as error:
        return error.problems[0]
    return None


def _plain(name: str, value: float) -> float | int:
    return value if name in _RATIOS else round(value)


def compared_record(compared: Compared) -> dict[str, Any]:
    """The comparison as plain values: bytes whole, what is missing None; `difference` is predicted less measured."""
    figures = compared.measured.figures
    return {
        "engine": compared.log.engine,
        "engine_version": compared.log.version,
        "inputs": compared.inputs,
        "predicted": {name: compared.predicted.get(name) for name in QUANTITIES},
        "measured": {name: _plain(name, figures[name].value) if name in figures else None for name in QUANTITIES},
        "difference": {name: compared.difference(name) for name in QUANTITIES},
        "difference_percent": {name: _rounded(compared.percent(name)) for name in QUANTITIES},
        "not_stated": list(compared.not_stated),
        "notes": list(compared.notes),
        "not_sized_because": list(compared.unsized),
        "evidence": {
            name: {"line_number": f.line_number, "rank": f.rank, "text": f.text} for name, f in figures.items()
        },
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)

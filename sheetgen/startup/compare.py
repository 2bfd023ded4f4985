"""The prediction beside what the engine measured, quantity by quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.api import record, sized_point
from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.load import Catalog
from sheetgen.errors import CatalogError, SheetgenError
from sheetgen.startup.inputs import inputs_of, name_defaults
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
    ScenarioError where the engine could be sized but model or GPU cannot be determined.
    """
    measured = measure(log)
    starts = [f"the log holds {log.n_starts} starts; the last, from line {log.line_number:,}, was taken."]
    notes = [*(starts if log.n_starts > 1 else []), *measured.notes]
    try:
        stated = inputs_of(log, measured, options, catalog)
    except SheetgenError:
        try:
            load_engine(catalog, str(options.get("engine") or log.engine))
        except CatalogError as error:
            return Compared(log, {"engine": log.engine}, {}, measured, (), tuple(notes), error.problems[:1])
        raise
    inputs, predicted = stated.inputs, dict[str, Any]()
    unsized: tuple[str, ...] = ()
    try:
        sized = sized_point(stated.inputs, catalog)
    except SheetgenError as error:
        unsized = error.problems
    else:
        answer = record(sized)
        answer["n_gpu_blocks"] = int(sized.known["n_kv_blocks"][0]) if "n_kv_blocks" in sized.known else None
        name_defaults(stated, answer)
        inputs = {name: answer[name] for name in (*sized.inputs, "model_id", "gpu_id")}
        predicted = {name: answer[name] for name in QUANTITIES}
    return Compared(log, inputs, predicted, measured, tuple(stated.not_stated), (*notes, *stated.notes), unsized)


def _plain(name: str, value: float) -> float | int:
    return value if name in _RATIOS else round(value)


def compared_record(compared: Compared) -> dict[str, Any]:
    """The comparison as plain values: bytes whole, what is missing None; `difference` is predicted less measured."""
    figures, percent = compared.measured.figures, {name: compared.percent(name) for name in QUANTITIES}
    return {
        "engine": compared.log.engine, "engine_version": compared.log.version, "inputs": compared.inputs,
        "predicted": {name: compared.predicted.get(name) for name in QUANTITIES},
        "measured": {name: _plain(name, figures[name].value) if name in figures else None for name in QUANTITIES},
        "difference": {name: compared.difference(name) for name in QUANTITIES},
        "difference_percent": {name: None if of is None else round(of, 4) for name, of in percent.items()},
        "not_stated": list(compared.not_stated), "notes": list(compared.notes),
        "not_sized_because": list(compared.unsized),
        "evidence": {
            name: {"line_number": f.line_number, "rank": f.rank, "text": f.text} for name, f in figures.items()
        },
    }  # fmt: skip

"""A start-up log sized by its arguments and the user's options, beside the engine's own measurements."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.api import record, sized_point
from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.load import Catalog
from sheetgen.diagnose.stated_parts import OF_POOL, pool_of_parts
from sheetgen.errors import CatalogError, SheetgenError
from sheetgen.report.precision_words import sized_as_words
from sheetgen.startup.log_inputs import SizingInputs, contradictions, inputs_of
from sheetgen.startup.startup_log import QUANTITIES, Measured, StartupLog, measure

_NAMED = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "gpu_memory_utilization",
    "max_model_len", "max_num_seqs", "max_num_batched_tokens", "kv_cache_dtype", "engine_version",
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """Prediction and measurement of one start; `predicted` is empty where sizing failed, with reasons in `unsized`."""

    log: StartupLog
    inputs: RawRecord
    predicted: dict[str, float | int | None]
    measured: Measured
    not_stated: tuple[str, ...]
    notes: tuple[str, ...]
    unsized: tuple[str, ...] = ()

    def difference(self, name: str) -> tuple[float | int | None, float | None]:
        """Prediction less measurement, and that in percent of the measurement; None where either is missing."""
        predicted, figure = self.predicted.get(name), self.measured.figures.get(name)
        if predicted is None or figure is None:
            return None, None
        difference = predicted - _plain(name, figure.value)
        return difference, 100 * difference / figure.value if figure.value else None


def compare(log: StartupLog, options: RawMapping, catalog: Catalog) -> Compared:
    """The prediction for the log's arguments and the options, beside the log's own figures.

    The prediction is empty for an engine without accounting, or a deployment that cannot be sized. Raises ScenarioError
    where the engine could be sized but model or GPU cannot be determined.
    """
    measured = measure(log)
    starts = f"the log holds {log.n_starts} starts; the last, from line {log.line_number:,}, was taken."
    notes = ((starts,) if log.n_starts > 1 else ()) + measured.notes
    try:
        stated = inputs_of(log, measured, options, catalog)
    except SheetgenError:
        try:
            load_engine(catalog, str(options.get("engine") or log.engine))
        except CatalogError as error:
            return Compared(log, {"engine": log.engine}, {}, measured, (), notes, error.problems[:1])
        raise
    notes += notes_of(stated)
    try:
        sized = sized_point(stated.inputs, catalog)
    except SheetgenError as error:
        return Compared(log, stated.inputs, {}, measured, tuple(stated.not_stated.values()), notes, error.problems)
    answer = record(sized)
    caution = sized.points.names[0].engine.caution
    notes += (caution,) if caution else ()
    answer["consumed_bytes_per_gpu"] = answer["weights_bytes_per_gpu"] + answer["non_torch_bytes_per_gpu"]
    pool, used = pool_of_parts(sized, answer, measured, log.figures)
    if used:  # the log's figures take precedence over those that follow from the arguments
        sized = sized_point({**stated.inputs, "kv_cache_memory_bytes": max(1, pool)}, catalog)
        answer |= {name: record(sized)[name] for name in OF_POOL}
        notes = (f"The KV pool is predicted with what the log states: {', '.join(used)}.", *notes)
    answer["n_gpu_blocks"] = int(sized.known["n_kv_blocks"][0]) if "n_kv_blocks" in sized.known else None
    for name in _NAMED:
        if name not in stated.inputs:
            stated.not_stated.setdefault(name, f"{name} is not in the log; {answer[name]} was taken.")
    inputs = {name: answer[name] for name in (*sized.inputs, "model_id", "gpu_id")}
    predicted = {name: answer[name] for name in QUANTITIES}
    seen = {name: figure.value for name, figure in measured.figures.items()}
    notes = (*contradictions(inputs["model_id"], inputs["gpu_id"], seen, predicted), *notes)
    return Compared(log, inputs, predicted, measured, tuple(stated.not_stated.values()), notes)


def notes_of(stated: SizingInputs) -> tuple[str, ...]:
    """The notes on a log's inputs: the weights that are sized, and the parts that are not."""
    sized_as = [sized_as_words(stated.named)] if stated.named and stated.named.sized_as else []
    return (*sized_as, *stated.notes, *stated.not_sized.values())


def _plain(name: str, value: float) -> float | int:
    return value if name == "max_concurrency" else round(value)


def compared_record(compared: Compared) -> RawRecord:
    """The comparison as JSON: whole bytes, None for missing values; `difference` is predicted less measured."""
    figures, differences = compared.measured.figures, {name: compared.difference(name) for name in QUANTITIES}
    return {
        "engine": compared.log.engine,
        "engine_version": compared.log.version,
        "inputs": compared.inputs,
        "predicted": {name: compared.predicted.get(name) for name in QUANTITIES},
        "measured": {name: _plain(name, figures[name].value) if name in figures else None for name in QUANTITIES},
        "difference": {name: difference for name, (difference, _) in differences.items()},
        "difference_percent": {name: percent and round(percent, 4) for name, (_, percent) in differences.items()},
        "not_stated": list(compared.not_stated),
        "notes": list(compared.notes),
        "not_sized_because": list(compared.unsized),
        "evidence": {
            name: {"line_number": f.line_number, "rank": f.rank, "text": f.text} for name, f in figures.items()
        },
    }

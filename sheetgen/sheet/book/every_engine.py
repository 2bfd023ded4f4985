"""Engines: what What-if needs of every engine, and of every GPU under it.

The columns of the engine that the workbook was built for, and its GPUs, are read from Inputs and GPUs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Gpu
from sheetgen.recommend import Solution
from sheetgen.recommend.solve import gpu_columns
from sheetgen.scenario.deployment import engine_columns
from sheetgen.scenario.overrides import Overrides
from sheetgen.sheet.block import Down, Row
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, named, titled
from sheetgen.sheet.model import Cell, Range, Ref, Sheet, plain
from sheetgen.sheet.what_if import ENGINE_ON_GPU, WhatIf
from sheetgen.units import AS_IT_IS, DTYPES, PLAIN, TEXT, WHOLE

LEFT = 2  # columns before the facts: what a row is of
OF_GPU = (
    "gpu_memory_bytes", "memory_bandwidth_bytes_per_second", "interconnect_bytes_per_second", "peak_flops_16_bit",
    *(f"peak_flops_{d}" for d in DTYPES), *(f"weights_{d}" for d in DTYPES), *(f"kv_{d}" for d in DTYPES),
)  # fmt: skip
DEFAULTS = ("gpu_memory_utilization", "hybrid_kv_manager", "block_size")


@dataclass(frozen=True)
class EveryEngine:
    """Ranges to look up in: constants by engine, facts by GPU, and both, a row per engine and GPU."""

    constants: dict[str, Range]
    of_gpu: dict[str, Range]
    of_both: dict[str, Range]
    both_row: Range  # by GPU and engine, the row of `of_both`
    places: Sequence[Row]

    def row_of_both(self, gpu: int, engine: int) -> int:
        """The row of `of_both`, from 1, of a GPU and an engine by their positions from 1."""
        return int(self.places[gpu - 1][engine - 1].value)


def constants_of(engine: Engine, names: Sequence[str]) -> list[float]:
    """The numbers of an engine in the order of `names`, its defaults among them."""
    values = {
        **engine_columns(engine),
        "gpu_memory_utilization": engine.gpu_memory_utilization,
        "hybrid_kv_manager": int(engine.frees_windows),
        "block_size": engine.block_size,
    }
    return [values[name] for name in names]


def build_every_engine(solved: Solution, one: WhatIf, wiring: Wiring) -> tuple[Sheet, EveryEngine]:
    """The sheet, and what is looked up in it."""
    sheet = titled(
        "Engines",
        "Engines",
        "What-if reads here what engines and GPUs are. The workbook's own engine and GPUs stand on Inputs and GPUs.",
        freeze=(HEAD_ROWS + 1, LEFT),
    )
    sheet.widths = {0: 40, 1: 30}
    own = next(i for i, e in enumerate(one.engines) if e.engine == solved.question.engine.engine)
    constants, row = _constants(sheet, one, wiring, own)
    of_gpu, row = _of_gpu(sheet, row + 2, solved, one, wiring)
    of_both, block, places = _of_both(sheet, row + 2, solved, one, wiring, own)
    tables = (
        {name: named(wiring.names, f"tbl_{what}_{name}", refs.refs) for name, refs in columns.items()}
        for what, columns in (("engines", constants), ("every_gpu", of_gpu), ("engine_gpu", of_both))
    )
    by_engine, by_gpu, by_both = tables
    return sheet, EveryEngine(by_engine, by_gpu, by_both, block, places)


def _heads(sheet: Sheet, row: int, labels: Sequence[str]) -> None:
    for column, label in enumerate(labels):
        sheet.text(row, column, label, "head")
        sheet.widths[column] = max(sheet.widths.get(column, 0), 15)
    sheet.heights[row] = 46


def _constants(sheet: Sheet, one: WhatIf, wiring: Wiring, own: int) -> tuple[dict[str, Range], int]:
    """A row per constant, a column per engine; the own engine's are those on Inputs."""
    names = [name for name in engine_columns(one.engines[own]) if name in wiring.inputs] + list(DEFAULTS)
    top = HEAD_ROWS
    _heads(sheet, top, ["Constant", "Name", *(e.engine for e in one.engines)])
    heads = [Ref(sheet.name, top, LEFT + k, e.engine) for k, e in enumerate(one.engines)]
    columns = [constants_of(e, names) for e in one.engines]
    found = {"engine": Range(tuple(heads))}
    for i, name in enumerate(names):
        row = top + 1 + i
        sheet.text(row, 0, name.replace("_", " ").capitalize(), "label")
        sheet.text(row, 1, name, "remark")
        refs = []
        for k, values in enumerate(columns):
            if k == own:
                refs.append(sheet.link(row, LEFT + k, wiring.inputs[name], AS_IT_IS))
            else:
                refs.append(sheet.put(row, LEFT + k, Cell(plain(values[i]), "fixed", AS_IT_IS)))
        found[name] = Range(tuple(refs))
    return found, top + 1 + len(names)


def _of_gpu(sheet: Sheet, top: int, solved: Solution, one: WhatIf, wiring: Wiring) -> tuple[dict[str, Range], int]:
    """A row per GPU: memory, rates, peaks, and the precisions that run."""
    _heads(sheet, top, ["GPU", "Short name", *(n.replace("_", " ").capitalize() for n in OF_GPU)])
    gpus = wiring.tables["gpus"]
    listed = {g.id: i for i, g in enumerate(solved.question.gpus)}
    values = _columns(solved, one, one.gpus)
    for what, runs in (("weights", "weights_run"), ("kv", "kv_run")):
        for d in DTYPES:
            values[f"{what}_{d}"] = numpy.array([float(d in getattr(g, runs)) for g in one.gpus])
    texts: dict[str, list[Ref]] = {"gpu": [], "gpu_name": []}
    rows: list[Sequence[Ref]] = []
    for i, gpu in enumerate(one.gpus):
        row = top + 1 + i
        texts["gpu"].append(sheet.put(row, 0, Cell(gpu.id, "label")))
        texts["gpu_name"].append(sheet.put(row, 1, Cell(gpu.short_name, "label")))
        if gpu.id in listed:
            rows.append([
                sheet.link(row, LEFT + k, gpus.columns[name][listed[gpu.id]], WHOLE) for k, name in enumerate(OF_GPU)
            ])  # fmt: skip
        else:
            rows.append(_facts(sheet, row, [values[name][i] for name in OF_GPU], WHOLE))
    found = {name: Range(tuple(refs)) for name, refs in texts.items()}
    return found | {name: Range(Down(rows, k)) for k, name in enumerate(OF_GPU)}, top + 1 + len(one.gpus)


def _of_both(
    sheet: Sheet, top: int, solved: Solution, one: WhatIf, wiring: Wiring, own: int
) -> tuple[dict[str, Range], Range, Sequence[Row]]:
    """A row for each set of limits, error bands and constants that some engine has on some GPU, and by GPU and
    engine which row it is: most GPUs of a generation are alike."""
    sets: dict[tuple[float, ...], int] = {}
    which: list[list[int]] = []
    for engine in one.engines:
        values = _columns(solved, one, one.gpus, engine)
        rows = zip(*(values[name].tolist() for name in ENGINE_ON_GPU), strict=True)
        which.append([sets.setdefault(row, len(sets)) for row in rows])
    gpus = wiring.tables["gpus"]
    listed = {g.id: i for i, g in enumerate(solved.question.gpus)}
    _heads(sheet, top, ["GPU", "Row of the table below, by engine", *(e.engine for e in one.engines)])
    places: list[Row] = []
    for i, gpu in enumerate(one.gpus):
        row = top + 1 + i
        sheet.put(row, 0, Cell(gpu.short_name, "label"))
        # The own engine's GPUs on this workbook have their rows first: they are read from GPUs.
        at = [
            1 + (listed[gpu.id] if e == own and gpu.id in listed else len(listed) + which[e][i])
            for e in range(len(one.engines))
        ]
        places.append(Row(sheet.name, row, LEFT, numpy.array(at), None, "fixed", PLAIN, "both"))
    sheet.rows += places
    top = top + len(one.gpus) + 2
    _heads(sheet, top, ["Limits and speed", "", *(n.replace("_", " ").capitalize() for n in ENGINE_ON_GPU)])
    found: list[Sequence[Ref]] = []
    for i in range(len(listed)):
        row = top + 1 + i
        sheet.link(row, 0, gpus.columns["gpu_name"][i], TEXT)
        found.append(
            [sheet.link(row, LEFT + k, gpus.columns[name][i], AS_IT_IS) for k, name in enumerate(ENGINE_ON_GPU)]
        )
    for i, values_of in enumerate(sets, top + 1 + len(listed)):
        found.append(_facts(sheet, i, list(values_of), AS_IT_IS))
    block = named(wiring.names, "tbl_engine_gpu_row", (places[0][0], places[-1][len(one.engines) - 1]))
    return {name: Range(Down(found, k)) for k, name in enumerate(ENGINE_ON_GPU)}, block, places


def _facts(sheet: Sheet, row: int, values: Sequence[float], display: Any) -> Row:
    """A row of numbers; one that is 0 is left blank, as its look-up is 0."""
    facts = Row(sheet.name, row, LEFT, numpy.array([v or None for v in values], object), None, "fixed", display, "both")
    sheet.rows.append(facts)
    return facts


def _columns(solved: Solution, one: WhatIf, gpus: tuple[Gpu, ...], engine: Engine | None = None) -> dict[str, Any]:
    overrides = (
        solved.question.overrides if engine is None else Overrides()
    )  # those of the own engine are read from GPUs
    question = dataclasses.replace(
        solved.question, gpus=gpus, engine=engine or solved.question.engine, overrides=overrides
    )
    return gpu_columns(question)

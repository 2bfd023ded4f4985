"""Speed in both readings: numbers as columns, Excel's text as Python's value; for every model on every GPU."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import xlsxwriter
from amounts import amount
from measured_rows import deployment
from recalculation import ALLOWED_FUNCTIONS, compare, functions_used, poison, recalculate_with_formualizer
from test_speed_properties import CATALOG, ENGINES, GPUS, MODELS, TIMES, Row
from xlsxwriter.utility import xl_rowcol_to_cell

from sheetgen.formula import Expr
from sheetgen.program.grid import evaluate
from sheetgen.program.quantities import SPEED
from sheetgen.question.deployment import complete
from sheetgen.sizing import speed


def test_every_model_has_a_speed_on_every_gpu() -> None:
    models = [m.id for m in CATALOG.models() if m.kind != "draft"]
    gpus = [g.id for g in CATALOG.gpus() if g.vendor == "nvidia" and g.data_center]
    pairs = [(m, g) for m in models for g in gpus]
    assert len(pairs) > 200 * 20
    step = amount(10, 1)  # in the gate a tenth of the pairs with one request, another with many
    for users, some in ((1, pairs[::step]), (1000, pairs[step - 1 :: step])):
        rows = {"model": [m for m, _ in some], "gpu": [g for _, g in some], "context_tokens": [512] * len(some)}
        points = complete({**rows, "concurrent_requests": [users] * len(some)}, len(some), CATALOG)
        assert not any(points.errors)
        values = deployment(points.values)
        for name in (*(f.name for f in SPEED), "max_requests_per_second", "tpot_seconds_low", "ttft_seconds_high"):
            column = numpy.asarray(values[name])
            assert column.dtype.kind in "US" or numpy.isfinite(column).all(), name
        for name in (*TIMES, "output_tokens_per_second", "max_requests_per_second"):
            assert (values[name] > 0).all(), name
        assert ((values["prefill_fraction"] >= 0) & (values["prefill_fraction"] <= 1)).all()


# Both readings

N_ROWS = 60
OUTPUTS = [f.name for f in SPEED if f.name != "max_requests_per_second"]  # deployment() has that of a full house
ALONE = (speed.full_house, speed.grows, speed.max_requests_per_second, speed.at_speed_band)


def sample() -> Row:
    """Deployments of every kind, some with a queue, as columns."""
    draw = numpy.random.default_rng(1)
    prompts, answers = draw.integers(0, 6000, N_ROWS), draw.integers(1, 2000, N_ROWS)
    rows = {
        "model": [MODELS[i % len(MODELS)] for i in range(N_ROWS)],
        "gpu": list(draw.choice(GPUS, N_ROWS)),
        "engine": list(draw.choice(ENGINES, N_ROWS)),
        "tensor_parallel_size": list(draw.choice((1, 2), N_ROWS)),
        "data_parallel_size": list(draw.choice((1, 2, 8), N_ROWS)),
        "input_tokens": prompts,
        "output_tokens": answers,
        "context_tokens": prompts + answers,
        "concurrent_requests": draw.integers(1, 2000, N_ROWS),
    }
    points = complete(rows, N_ROWS, CATALOG)
    assert not any(points.errors)
    return points.values


def test_columns_are_the_numbers() -> None:
    values = sample()
    values_ = deployment(values)
    assert {"queue", "bandwidth", "compute"} <= set(values_["bound_by"].tolist())
    inputs = {name for f in SPEED for name in f.inputs}
    for i in range(N_ROWS):
        start = {name: float(numpy.broadcast_to(values_[name], N_ROWS)[i]) for name in inputs if name not in OUTPUTS}
        numbers = evaluate(SPEED, start)
        for name in OUTPUTS:
            column, own = values_[name][i], numbers[name]
            assert own == column if isinstance(own, str) else own == pytest.approx(column, rel=1e-12), name
        assert not isinstance(numbers["tpot_seconds"], numpy.ndarray)


def test_excel_says_the_same(tmp_path: Path) -> None:
    """The text of every formula of speed, on cells that hold its inputs."""
    values = sample()
    values_ = deployment(values)
    values_ |= {"requests_per_second": values_["max_requests_per_second"] * numpy.resize([0.5, 1, 2], N_ROWS)}
    values_ |= {"predicted": values_["tpot_seconds"], "band_factor": values_["tpot_band_high"]}
    formulas = [f for f in SPEED if f.name not in {a.name for a in ALONE}] + list(ALONE)
    inputs = sorted({name for f in formulas for name in f.inputs})
    columns = {name: numpy.broadcast_to(values_[name], N_ROWS) for name in inputs}
    path = tmp_path / "speed.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet, answers = book.add_worksheet("Inputs"), book.add_worksheet("Speed")
        for i in range(N_ROWS):
            for j, name in enumerate(inputs):
                sheet.write_number(i, j, float(columns[name][i]))
            cells = {name: Expr(f"Inputs!{xl_rowcol_to_cell(i, j)}") for j, name in enumerate(inputs)}
            for j, formula in enumerate(formulas):
                value = formula.of({name: columns[name][i].item() for name in formula.inputs})
                answers.write_formula(i, j, f"={formula.written(cells).text}", None, value)
    assert poison(path, tmp_path / "poisoned.xlsx") == N_ROWS * len(formulas)
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert result.n_compared == N_ROWS * len(formulas)
    assert functions_used(path) <= ALLOWED_FUNCTIONS

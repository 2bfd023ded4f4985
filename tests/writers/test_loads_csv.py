"""The loads as CSV: the JSON's cells, line by line, documented, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from answers import document, record_for
from books import SMALL, catalog

from sheetgen.answer.answer_record import SCHEMA_VERSION
from sheetgen.answer.solve import solve
from sheetgen.question.sheet_question import ask
from sheetgen.writers.csv import COLUMNS, RUNNER_UP, field, write_loads
from sheetgen.writers.formats import Options

FORMATS = Path(__file__).parents[2] / "docs" / "formats.md"


def test_it_is_the_cells_of_the_json() -> None:
    solved = solve(ask(catalog(), SMALL | {"models": "8b,llama-2-7b"}))
    cells = document(solved)["cells"]
    rows = list(csv.DictReader(io.StringIO(write_loads(record_for(solved, ()), Options()).decode())))
    assert len(rows) == len(cells) == 12 and tuple(rows[0]) == COLUMNS
    for row, cell in zip(rows, cells, strict=True):
        second, budget = cell["runner_up"] or {}, cell["budget"] or {"currency": None}
        told = {name: second.get(RUNNER_UP[name]) if name in RUNNER_UP else cell.get(name) for name in COLUMNS}
        told |= {f"budget_{key}": sums if key == "currency" else sums["total"] for key, sums in budget.items()}
        for name, value in told.items():
            if isinstance(value, float):
                assert float(row[name]) == pytest.approx(value, rel=1e-11) and len(row[name].strip("0.")) < 14
            else:
                assert row[name] == ("" if value is None else str(value))
    assert {row["instance"] for row in rows if row["verdict"].startswith("over")} == {""}


def test_numbers_are_without_the_noise_of_fractions_and_in_full() -> None:
    shown = {254478.00000000003: "254478", 0.1 + 0.2: "0.3", 1e15: "1000000000000000", 2e-9: "0.000000002", 7: 7}
    assert {value: field(value) for value in shown} == shown
    budget = {"currency": "EUR", "fx_rate": "0.5", "contingency_fraction": "0.1"}
    solved = solve(ask(catalog(), SMALL | {"models": "8b", **budget}))
    rows = list(csv.DictReader(io.StringIO(write_loads(record_for(solved, ()), Options()).decode())))
    (row, *_) = [row for row in rows if row["instance"]]
    assert row["budget_currency"] == "EUR"
    assert float(row["budget_monthly"]) == pytest.approx(float(row["monthly_usd"]) * 1.1 * 0.5)
    assert float(row["budget_annual"]) == pytest.approx(12 * float(row["budget_monthly"]))


def test_a_text_is_never_a_formula() -> None:
    for text in ("=1+1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＠x"):
        assert field(text) == f"'{text}"
    assert field("llama-3.1-8b") == "llama-3.1-8b" and field(-1.5) == "-1.5" and field(None) is None
    assert field("-1.5") == "-1.5" and field("+1e3") == "+1e3"  # a number of a user's own column


def test_every_column_and_key_is_documented() -> None:
    text = FORMATS.read_text(encoding="utf-8")
    answer = document(solve(ask(catalog(), SMALL | {"models": "8b"})))
    keys = {*answer, *answer["inputs"], *answer["candidates"][0], *answer["cells"][0], *answer["cells"][0]["runner_up"]}
    assert [name for name in sorted({*keys, *COLUMNS}) if f"`{name}`" not in text] == []
    assert f"`schema_version` {SCHEMA_VERSION}" in text

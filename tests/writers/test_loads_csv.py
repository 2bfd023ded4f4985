"""The loads as CSV: the JSON's cells, line by line, documented, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from pathlib import Path

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
        second = cell["runner_up"] or {}
        told = {name: second.get(RUNNER_UP[name]) if name in RUNNER_UP else cell[name] for name in COLUMNS}
        assert row == {name: "" if value is None else str(value) for name, value in told.items()}
    assert {row["instance"] for row in rows if row["verdict"].startswith("over")} == {""}


def test_a_text_is_never_a_formula() -> None:
    for text in ("=1+1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＠x"):
        assert field(text) == f"'{text}"
    assert field("llama-3.1-8b") == "llama-3.1-8b" and field(-1.5) == -1.5 and field(None) is None
    assert field("-1.5") == "-1.5" and field("+1e3") == "+1e3"  # a number of a user's own column


def test_every_column_and_key_is_documented() -> None:
    text = FORMATS.read_text(encoding="utf-8")
    answer = document(solve(ask(catalog(), SMALL | {"models": "8b"})))
    keys = {*answer, *answer["inputs"], *answer["candidates"][0], *answer["cells"][0], *answer["cells"][0]["runner_up"]}
    assert [name for name in sorted({*keys, *COLUMNS}) if f"`{name}`" not in text] == []
    assert f"`schema_version` {SCHEMA_VERSION}" in text

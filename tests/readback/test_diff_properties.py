"""Random edits of any named cell: all of them are read, and `compare` names them and nothing else."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import books
import pytest
from amounts import amount
from answers import document
from packages import TINY
from recalculation import edit

from sheetgen.answer.solve import solve
from sheetgen.book.sheets import column_name
from sheetgen.question.overrides import input_kind
from sheetgen.question.sheet_question import ask
from sheetgen.readback.compare import compare
from sheetgen.readback.compared_facts import facts_of_workbook, read_sheet
from sheetgen.readback.month_bridge import bridges
from sheetgen.readback.package import Place, WorkbookError
from sheetgen.readback.read_book import Snapshot, column_holds, input_holds, read_workbook
from sheetgen.units import PURCHASES
from sheetgen.writers.formats import json_text

N_ROUNDS = amount(4, 24)
DAY_ZERO = datetime.date(1899, 12, 30)
OF_LOAD = ("context_chat", "context_long_doc", "output_chat", "output_long_doc")
LEFT = ("headline_workload", "headline_tier", "tier_1", "tier_2")  # loads are those of the record
CLASSES = {p.replace("-", "_"): p for p in PURCHASES}
Cell = tuple[str, str, Place, str, Any]  # section, the change's name, where, what it holds, the value


def cells_of(snapshot: Snapshot) -> Iterator[Cell]:
    """Every cell that an edit of one changes one thing."""
    for name, value in snapshot.inputs.items():
        if name not in LEFT:
            cell = snapshot.cells[f"in_{name}"]
            section = "load" if name in OF_LOAD else "inputs"
            yield section, name, cell.place, input_holds(name, cell.number_format), value
    for table in (snapshot.tables[n] for n in ("models", "gpus", "precisions")):
        for key, row in table.items():
            for column, value in row.items():
                holds = column_holds(table.name, column, table.formats[column])
                yield table.name, f"{key}.{column}", table.place(key, column), holds, value
    instances = snapshot.tables["instances"]
    for key, row in instances.items():
        yield "prices", f"{key}.gpu_count", instances.place(key, "gpu_count"), "number", row["gpu_count"]
        yield "prices", f"{key}.gpu", instances.place(key, "instance_gpu"), "text", row["instance_gpu"]
        price = instances.place(key, "price_usd_per_hour")
        yield "prices", f"{key}.on-demand", price, "number", row["price_usd_per_hour"]
        for stem, purchase in CLASSES.items():
            column = f"price_{stem}"
            if column in row:
                yield "prices", f"{key}.{purchase}", instances.place(key, column), "number", row[column]


def another(rng: random.Random, holds: str, name: str, old: object) -> Any:
    if holds == "date":
        return (datetime.date(2027, 1, 1) - DAY_ZERO).days + rng.randrange(1000)
    if holds == "text":
        return next(d for d in rng.sample(["bf16", "fp8", "int4", "int8"], 4) if d != old)
    if isinstance(old, str):  # a tensor-parallel size may be a word
        return rng.choice((1, 2, 4, 8))
    kind = input_kind(name)
    if kind is not None and kind.high == 1 and kind.what == "whole":
        return 1 - old
    return rng.randrange(10_000, 10**9) + rng.choice((0, 0.5)) if not old else old * rng.choice((0.5, 1.5, 3))


def test_random_edits_are_read_and_named_each_of_them(book: Path, tmp_path: Path) -> None:
    rng, was = random.Random(11), read_workbook(book)
    facts, every, n = facts_of_workbook(was), list(cells_of(was)), 0
    for _ in range(N_ROUNDS):
        chosen = rng.sample(every, rng.choice((1, 3, 30, 200)))
        values = {cell[2]: another(rng, cell[3], cell[1], cell[4]) for cell in chosen}
        typed = {(p.sheet, f"{column_name(p.column - 1)}{p.row}"): v for p, v in values.items()}
        now = read_workbook(edit(book, tmp_path / "edited.xlsx", typed))
        comparison = compare(facts, facts_of_workbook(now))
        want = sorted((section, name) for section, name, *_ in chosen)
        got = sorted(
            (section, change.name)
            for section, changes in comparison.sections.items()
            if section not in ("results", "recommendation")
            for change in changes
        )
        assert got == want
        back = compare(facts_of_workbook(now), facts)
        assert {
            (c.name, c.before, c.after) for s in comparison.sections.values() for c in s if c.after is not None
        } == {(c.name, c.after, c.before) for s in back.sections.values() for c in s if c.before is not None}
        n += len(chosen)
    print(f"{n} edits of {len(every)} cells in {N_ROUNDS} workbooks, each named")


def test_the_same_sheet_is_equal_to_itself(book: Path) -> None:
    facts = facts_of_workbook(read_workbook(book))
    assert compare(facts, facts).is_equal
    with pytest.raises(AttributeError):
        facts.kind = "JSON"  # type: ignore[misc]


JUNK = (
    None,
    True,
    -1,
    0,
    1e300,
    "",
    "x",
    "\x1b[2J",
    [],
    {},
    [1],
    {"a": 1},
    "2026-11",
    "rag:32",
    3.5,
    "9" * 400,
    10**400,
)


def leaves(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON document that can be written to."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield node, key
        if isinstance(value, (dict, list)):
            yield from leaves(value)


def test_junk_in_json_is_one_line_or_a_difference(tmp_path: Path) -> None:
    """Any value of the record put out of place: a WorkbookError, or a comparison that JSON can hold."""
    whole = document(solve(ask(books.catalog(), {**TINY, "models": "8b"})))
    before = tmp_path / "before.json"
    before.write_text(json_text(whole))
    facts, rng, told = read_sheet(before, books.catalog()), random.Random(3), 0
    places = [p for name in ("inputs", "candidates") for p in leaves(whole[name])]
    cells = [(cell, key) for cell in whole["cells"] for key in cell]
    for i in range(150):
        node, key = rng.choice(cells if i % 3 == 0 else places)
        kept, node[key] = node[key], rng.choice(JUNK)
        path = tmp_path / "junk.json"
        path.write_text(json.dumps(whole))
        node[key] = kept
        try:
            comparison = compare(facts, read_sheet(path, books.catalog()))
        except WorkbookError as error:
            told += 1
            assert all("\n" not in line and line.isprintable() and len(line) < 600 for line in error.problems)
            continue
        made = bridges(comparison, books.catalog())
        json_text([c.data() for s in comparison.sections.values() for c in s] + [asdict(b) for b in made])
        assert all(
            abs(b.before_usd + sum(s.usd for s in b.steps) - b.after_usd) < 1e-6 * max(1, abs(b.after_usd))
            for b in made
            if b.steps
        )
    print(f"150 changes, {told} refused")
    assert 20 < told < 140

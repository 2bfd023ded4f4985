"""Levers in the JSON, in `recommend`, in the workbook, and the faults of levers.yaml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answers import book_for, document
from asked import AS_OF, THREE, answered, catalog, every, load, of_load
from click.testing import CliRunner
from command_lines import LOAD
from recalculation import edit, poison, recalculate_with_formualizer
from workbook_cells import cells

from sheetgen.answer.levers import levers_of_sheet
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.catalog.stacks import LeverFile
from sheetgen.cli import main
from sheetgen.errors import CatalogError
from sheetgen.question.sheet_question import ask
from sheetgen.writers.xlsx import write_xlsx

SMALL = {
    "models": "8b,70b",
    "workloads": "chat,rag",
    "tiers": "1,32",
    "as_of": AS_OF,
    "instances": "aws/g6.xlarge,aws/g6e.xlarge,aws/p5.48xlarge,gcp/a2-ultragpu-8g",
}


def test_every_cell_of_the_json_has_its_levers_in_order() -> None:
    answer = document(answered(THREE), every(THREE))
    for cell in answer["cells"]:
        saved = [lever["saved_usd"] for lever in cell["levers"]]
        assert len(saved) >= 4 and saved == sorted(saved, reverse=True)
        for lever in cell["levers"]:
            less = cell["monthly_usd"] - lever["monthly_usd"]
            if lever["saved_usd"] == 0:
                assert abs(less) <= 0.05 * cell["monthly_usd"]  # what the choice within the near tie may differ by
            else:
                assert lever["saved_usd"] == pytest.approx(less, abs=1e-6)
            assert lever["saved_fraction"] == pytest.approx(lever["saved_usd"] / cell["monthly_usd"])
            assert lever["n_gpus"] >= 1 and lever["note"] and lever["words"] and lever["cost"]
        assert "host-memory" not in {lever["lever"] for lever in cell["levers"]}
        if cell["host_memory"]:
            assert isinstance(cell["host_memory"]["bytes_per_gpu"], int)
            assert cell["host_memory"]["seconds_per_token"] > 0
    json.dumps(answer, allow_nan=False)


def test_a_load_that_nothing_holds_has_levers_without_savings() -> None:
    solved = load("70b", "4k", 1, instances="aws/p5.4xlarge")
    (cell,) = document(solved, levers_of_sheet(solved))["cells"]
    assert cell["monthly_usd"] is None and cell["levers"]
    assert all(lever["saved_usd"] is None and lever["monthly_usd"] > 0 for lever in cell["levers"])


def test_recommend_prints_the_three_best_and_another_model_apart() -> None:
    arguments = [
        "recommend",
        *LOAD,
        "--weight-dtype",
        "published",
        "--confidence",
        "0.5",
        "--ttft-ms",
        "5000",
        "--details",
        "--as-of",
        AS_OF,
    ]
    text = CliRunner(env={"COLUMNS": "1000"}).invoke(main, arguments).output
    block = text.split("WHAT ONE CHANGE BUYS\n")[1].split("\n\n")[0].splitlines()
    levers = of_load("70b", ttft_ms=5000)
    assert block[3] == "  other targets of speed:" and levers["slower-and-later"].words in block[4]
    assert len(block) == 7 and "another model" in block[5]
    costs = ("8 bits lose little", "what is beyond it is not seen", "needs prompts that begin alike")
    assert all(line.endswith(cost) for line, cost in zip(block[:3], costs, strict=True))
    answer = json.loads(CliRunner(env={"COLUMNS": "1000"}).invoke(main, [*arguments, "--json"]).output)
    most = next(lever for lever in answer["levers"] if lever["lever"] != "leaner-model")
    assert most["words"] in block[0] and f"saves ${most['saved_usd']:,.0f} (" in block[0]
    assert f"{most['n_instances']:,}x {most['instance']}" in block[0]
    assert all(
        levers[lever["lever"]].saved_usd == lever["saved_usd"] for lever in answer["levers"] if not lever["further"]
    )


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    solved = solve(ask(catalog(), SMALL))
    levers = levers_of_sheet(solved)
    path = tmp_path_factory.mktemp("levers") / "small.xlsx"
    path.write_bytes(write_xlsx(book_for(solved, levers)))
    return path


def sheet_of(path: Path) -> dict[str, object]:
    return {c.cell: c.value for c in cells(path) if c.sheet == "Levers"}


def column(values: dict[str, object], head: str) -> str:
    return next(cell[:-1] for cell, value in values.items() if value == head and cell[-1] == "4" and len(cell) == 2)


def test_the_workbook_has_every_lever_as_values(book: Path) -> None:
    values = sheet_of(book)
    every = levers_of_sheet(solve(ask(catalog(), SMALL)))
    applies = [[lever for lever in load if not lever.why_not] for load in every]
    idle = [[lever for lever in load if lever.saved_usd == 0 and not lever.is_near_tie] for load in applies]
    told = [  # by load: those that change the cost, and one line for all that do not
        (lever.words, lever.saved_usd, lever.note)
        for load, same in zip(applies, idle, strict=True)
        for lever in load
        if len(same) < 2 or lever not in same
    ]
    told += [(f"{len(same)} that save nothing, each by itself", 0, "") for same in idle if len(same) > 1]
    assert len(told) < sum(map(len, applies)) and any(len(same) > 1 for same in idle)
    refused = {f"Does not apply: {lever.why_not}." for load in every for lever in load if lever.why_not}
    words, saves, costs, changes = (
        column(values, h)
        for h in ("Lever", "Saves, $ per month", "What it costs, or why it does not apply", "What changes")
    )
    rows = range(5, 5 + len(told))
    shown = [(values[f"{words}{row}"], values[f"{saves}{row}"], str(values[f"{costs}{row}"])) for row in rows]
    for name, saved, note in told:
        usd = "-" if saved is None else pytest.approx(saved, abs=0.005)
        assert any(name == w and s == usd and note in c for w, s, c in shown), name
    for row, alike in zip(
        (row for row in rows if "save nothing" in str(values[f"{words}{row}"])),
        (same for same in idle if len(same) > 1),
        strict=True,
    ):
        assert values[f"{changes}{row}"] == "; ".join(lever.words for lever in alike)
    starts = [row for row in rows if row == 5 or values[f"B{row}"] != values[f"B{row - 1}"]]
    for top, end in zip(starts, [*starts[1:], rows.stop], strict=True):
        amounts = [float(str(values[f"{saves}{row}"])) for row in range(top, end) if values[f"{saves}{row}"] != "-"]
        assert amounts == sorted(amounts, reverse=True)
    below = {values[cell] for cell in values if cell.startswith(costs) and int(cell[len(costs) :]) >= rows.stop}
    assert below == refused and refused
    formulas = [
        c for c in cells(book) if c.sheet == "Levers" and c.formula and c.cell.startswith((words, saves, costs))
    ]
    assert not formulas and "do not follow edits" in str(values["A2"])


@pytest.mark.long
def test_a_workbook_as_built_says_so_and_an_edit_is_seen(book: Path, tmp_path: Path) -> None:
    values = sheet_of(book)
    now = column(values, "This load now")
    rows = [int(cell.removeprefix(now)) for cell in values if cell.startswith(now) and cell != f"{now}4"]
    assert values["B3"] == "as built" and {values[f"{now}{row}"] for row in rows} == {"as built"}

    def after(**changes: object) -> dict[str, object]:
        edited, poisoned, out = tmp_path / "edited.xlsx", tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"
        edit(book, edited, changes)
        poison(edited, poisoned)
        return sheet_of(recalculate_with_formualizer(poisoned, out))

    same = after(in_context_rag=16384)
    assert same["B3"] == "as built" and {same[f"{now}{row}"] for row in rows} == {"as built"}
    changed = after(in_context_rag=131072)
    assert changed["B3"] == "inputs changed"
    load = column(values, "The load")
    states = {(str(values[f"{load}{row}"]).split(",")[0], changed[f"{now}{row}"]) for row in rows}
    assert ("Chat", "inputs changed") not in states and ("RAG", "inputs changed") in states
    assert after(in_confidence=0.6)["B3"] == "inputs changed"


@pytest.mark.parametrize(
    "old,new,words",
    [
        ("  - id: fp8-weights\n", "  - id: fp9-weights\n", "fp8-kv-cache"),
        ("  - id: fp8-weights\n", "  - id: fp8-kv-cache\n", "given twice"),
        ("  - name: PCIe 4 x8\n", "  - name: PCIe 3 x16\n", "given twice"),
        ("nvme_bytes_per_second: 7000000000", "nvme_bytes_per_second: 0", "greater than 0"),
        ("tokens come slower: {then} a second", "tokens come slower: {soon} a second", "name {now} and {then}"),
        ("[5, 10, 15, 20,", "[5, 15, 10, 20,", "tpot_ms must grow"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = (catalog().folders[0].path / "levers.yaml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "levers.yaml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(CatalogError, match=words):
        Catalog(tmp_path).file(LeverFile)

"""The sizing sheet of each service beside the plan: linked, and of the plan's machines to the dollar."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from amounts import IN_LONG
from click.testing import CliRunner
from plan_books import example

from sheetgen.catalog import Catalog, read_document
from sheetgen.cli import main
from sheetgen.plan.sized_alone import alone, sheet_options
from sheetgen.readback.pulled import Pulled, pull
from sheetgen.writers.formats import templates_folder

NAME = "q 1#a"  # links are escaped
DATA = read_document(templates_folder() / "plan.yaml").data
SERVICES = ("support-chat", "agents", "code-review", "legacy-rag") if IN_LONG else ("support-chat",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sheets")
    data = deepcopy(DATA)
    data["services"] = [one for one in data["services"] if one["id"] in SERVICES]
    plan = target.parent / "plan.yaml"
    plan.write_text(json.dumps(data, default=str))
    done = CliRunner().invoke(
        main, ["plan", str(plan), "--sheets", "--format", "xlsx,json", "--out", str(target), "--name", NAME, "-q"]
    )
    assert done.exit_code == 0, done.output
    return target


@pytest.fixture(scope="module")
def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{NAME}.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def sheets(folder: Path, record: dict[str, Any]) -> dict[str, Pulled]:
    services = dict.fromkeys(one["id"] for one in record["services"])
    return {one: pull(folder / f"{NAME}.{one}.xlsx", Catalog()) for one in services}


def test_the_workbook_links_to_each_sheet_that_there_is(folder: Path) -> None:
    book = openpyxl.load_workbook(folder / f"{NAME}.xlsx")
    for name in ("Services", "Checks"):
        cells = (cell for row in book[name].iter_rows() for cell in row if cell.hyperlink and cell.hyperlink.target)
        targets = [cell.hyperlink.target for cell in cells if not cell.hyperlink.target.startswith("http")]
        assert targets == [f"q%201%23a.{one}.xlsx" for one in SERVICES]
    files = {one.name for one in folder.iterdir()}
    assert files == {f"{NAME}.xlsx", f"{NAME}.json"} | {
        f"{NAME}.{one}.{ending}" for one in SERVICES for ending in ("xlsx", "pdf")
    }


@pytest.mark.long
def test_a_sheet_is_of_the_plans_machine_to_the_dollar(sheets: dict[str, Pulled], record: dict[str, Any]) -> None:
    """A service's replicas and machine; of a type that no other shares its month, of all in a quarter their sum."""
    planned = {
        one["id"]: one
        for one in reversed(record["services"])
        if one["quantile"] == record["plan_at"] and one["instance"]
    }
    usd: dict[str, float] = {}
    for name, sheet in sheets.items():
        (choice,), one = sheet.solved.choices, planned[name]
        (stem,) = {name.removesuffix("_instance") for name in sheet.snapshot.results if name.endswith("_1_instance")}
        assert sheet.snapshot.results[f"{stem}_instance"] == one["instance"]
        assert math.isclose(sheet.snapshot.results[f"{stem}_monthly_usd"], choice.monthly_usd)
        assert choice.n_replicas == one["n_replicas"]
        layout = sheet.solved.layout(choice.offer)
        assert layout.tensor_parallel_size == one["tensor_parallel_size"]
        usd[name] = choice.monthly_usd
    assert math.isclose(usd["support-chat"], planned["support-chat"]["monthly_usd"], abs_tol=0.005)
    first = [one for one in planned if planned[one]["quarter"] == record["quarters"][0]["quarter"]]
    assert first == ["legacy-rag", "code-review", "support-chat"]
    assert math.isclose(sum(usd[one] for one in first), sum(planned[one]["monthly_usd"] for one in first), abs_tol=0.01)


@pytest.mark.long
def test_a_sheet_can_be_pulled(sheets: dict[str, Pulled]) -> None:
    for sheet in sheets.values():
        assert not sheet.changed
        assert sheet.other_results == ()


def test_a_sheet_speaks_the_plans_currency_and_names_its_people() -> None:
    answer = example().answer
    head = answer.plan.head.model_copy(update={"currency": "EUR", "fx_rate": 0.92})
    answer = replace(answer, plan=replace(answer.plan, head=head))
    options = [sheet_options(answer, one) for one in alone(answer)]
    assert [(one["currency"], one["fx_rate"], one["title"], one["owner"]) for one in options[:2]] == [
        ("EUR", "0.92", "support-chat, 2027-Q1", "cx-platform"),
        ("EUR", "0.92", "agents, 2027-Q2", "ml-platform"),
    ]
    assert {one["approver"] for one in options} == {"vp-engineering"}
    assert [one.get("tiers") for one in options] == [None, "100", None, None]

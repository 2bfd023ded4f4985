"""A plan that begins from a sheet: the same models, loads, targets and prices, so the same month."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sheetgen.cli import main


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def months(tmp_path: Path, sheet: str) -> dict[str, Any]:
    """By model the month of the first quarter of a plan that begins from a sheet."""
    run("plan", "init", "--from", sheet, "--out", str(tmp_path), "--force")
    found = json.loads(run("plan", str(tmp_path / "plan.yaml"), "--out", str(tmp_path), "--format", "json", "--json"))
    return {one["gpu"] and f"{one['instance']} {one['n_instances']}": one["monthly_usd"] for one in found["services"]}


OPTIONS = (
    ("recommend", "--model", "70b", "--context", "16k", "--users", "200", "--survive", "zone", "--zones", "4"),
    ("recommend", "--model", "8b", "--requests-per-second", "6", "--discount-fraction", "0.1", "--tpot-ms", "off",
     "--max-wait-fraction", "0.01", "--gpu-memory-utilization", "0.8", "--weight-dtype", "fp8"),
    ("recommend", "--model", "gpt-oss-120b", "--concurrent-requests", "64", "--providers", "azure", "--purchase",
     "reserved-1yr", "--near-tie-fraction", "0", "--hours-per-month", "200"),
    ("recommend", "--model", "8b", "--users", "400", "--requests-per-user-per-day", "35", "--burst-factor", "2"),
)  # fmt: skip


@pytest.mark.some(2)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options[2])
def test_a_plan_of_an_answer_costs_what_it_says(options: tuple[str, ...], tmp_path: Path) -> None:
    text = run(*options, "--json")
    answer = json.loads(text)
    (tmp_path / "answer.json").write_text(text)
    found = months(tmp_path, str(tmp_path / "answer.json"))
    assert found == {f"{answer['instance']} {answer['n_instances']}": pytest.approx(answer["monthly_usd"])}


@pytest.mark.some(1)
@pytest.mark.parametrize("models", ["70b", "8b,70b"])
def test_a_plan_of_a_workbook(models: str, tmp_path: Path) -> None:
    """A model by itself costs what the sheet says; two may share machines, and then cost less."""
    run(
        "build",
        "--models",
        models,
        "--workloads",
        "rag",
        "--tiers",
        "8,64",
        "--providers",
        "gcp",
        "--headline",
        "rag:64",
        "--format",
        "xlsx,json",
        "--out",
        str(tmp_path),
        "--name",
        "s",
    )
    of_json, of_book = (months(tmp_path, str(tmp_path / f"s.{ending}")) for ending in ("json", "xlsx"))
    cells = json.loads((tmp_path / "s.json").read_text())["cells"]
    wanted = [one for one in cells if (one["workload"], one["tier"]) == ("rag", 64)]
    assert of_json == of_book
    of_sheet = sum(one["monthly_usd"] for one in wanted)
    assert len(of_book) == len(wanted)
    if "," in models:
        assert sum(of_book.values()) < of_sheet
    else:
        assert sum(of_book.values()) == pytest.approx(of_sheet)


@pytest.mark.parametrize("text", ["", "[]", '{"inputs": {}}', "[" * 100_000], ids=len)
def test_what_is_no_sheet(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    result = CliRunner().invoke(main, ["plan", "init", "--from", str(tmp_path / "x.json"), "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "is no sheet" in result.output
    assert not (tmp_path / "plan.yaml").exists()

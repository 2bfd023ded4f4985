"""The output of commands with --json is as `sheetgen schema` says, to the last key."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from sheetgen.cli import main
from sheetgen.cli.schema_command import OF_COMMANDS
from sheetgen.schemas import SCHEMAS

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "tests" / "diagnose" / "logs"
P5 = ("--instances", "aws/p5.48xlarge,aws/g6e.12xlarge,gcp/a3-highgpu-8g", "--as-of", "2026-11-20")
CASES = {
    "size": (
        "--model 70b --tensor-parallel-size 4 --context 16k --concurrent-requests 32",
        "--model 405b",
        "--model 8b --requests-per-second 1000",
        "--model deepseek-v3 --users 20 --engine sglang --gpu h200 --tensor-parallel-size 8",
    ),
    "recommend": (
        "--model 70b --context 16k --users 200",
        "--model 8b --requests-per-second 4.5 --purchase reserved-3yr --contingency-fraction 0.1",
        "--model 405b --concurrent-requests 32 --tpot-ms 1",
        "--model 70b --concurrent-requests 3000 --currency EUR --fx-rate 0.9",
    ),
    "build": ("--models 8b,405b --workloads rag,chat --tiers 32,1024 --format json",),
    "plan": ("{templates}/plan.yaml --format json",),
    "diagnose": tuple(f"{{logs}}/{number}.log" for number in ("001", "016", "021", "029", "065", "076")),
    "diff": ("{a} {b}", "{a} {a}"),
}


def closed(schema: Any) -> Any:
    """The schema without leave for further keys, where it names some."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if schema.get("type") == "object" and "properties" in schema else {}
    return {**more, **{name: closed(part) for name, part in schema.items()}}


@cache
def of(command: str) -> jsonschema.Draft202012Validator:
    schema = SCHEMAS[command]()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(closed(schema))


def faults(command: str, printed: Any) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in of(command).iter_errors(printed)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two sheets as JSON, the logs and the templates, by their names in CASES."""
    folder = tmp_path_factory.mktemp("sheets")
    for name, tier in (("a", "32"), ("b", "64")):
        made = ("build", "--models", "8b", "--workloads", "rag", "--tiers", tier, "--format", "json", *P5)
        assert CliRunner().invoke(main, [*made, "--out", str(folder), "--name", name]).exit_code == 0
    shutil.copy(ROOT / "templates" / "plan.yaml", folder / "plan.yaml")
    named = {name: str(folder / f"{name}.json") for name in ("a", "b")}
    return {**named, "logs": str(LOGS), "templates": str(folder), "out": str(folder)}


@pytest.mark.parametrize(("command", "line"), [(name, line) for name, lines in CASES.items() for line in lines])
def test_what_is_printed_is_as_its_schema_says(command: str, line: str, files: dict[str, str]) -> None:
    words = line.format(**files).split()
    words += P5 if command in ("recommend", "build") else ()
    words += ["--out", files["out"]] if command in ("build", "plan") else []
    result = CliRunner().invoke(main, [command, *words, "--json"])
    assert result.exit_code == 0, result.output
    assert faults(command, json.loads(result.stdout)) == []


@pytest.mark.parametrize("command", OF_COMMANDS)
def test_the_command_prints_the_schema(command: str) -> None:
    assert json.loads(CliRunner().invoke(main, ["schema", command]).stdout) == SCHEMAS[command]()


def test_another_key_or_type_is_found() -> None:
    printed = json.loads(CliRunner().invoke(main, ["size", "--model", "8b", "--json"]).stdout)
    assert faults("size", printed) == []
    for changed in ({"kv_bytes": "many"}, {"kv_bits": 1}, {"fits": 1}):
        assert len(faults("size", {**printed, **changed})) == 1
    del printed["kv_tokens"]
    assert len(faults("size", printed)) == 1

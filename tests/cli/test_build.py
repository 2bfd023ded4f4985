"""`build`: its JSON is the contract, scenario files are read strictly, files are whole or absent."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from command_lines import Run

from sheetgen.cli import main
from sheetgen.errors import MissingLibraryError, PageError
from sheetgen.question.sheet_question import OF_ASKED, OPTIONS, SHEET_OPTIONS

TOP = {
    *("schema_version", "as_of", "inputs", "candidates", "cells", "fingerprints", "sources", "models"),
    *("not_in_price", "oldest_price_as_of"),
}
CANDIDATE = {"instance", "provider", "gpu", "gpu_count", "purchase", "sold_as", "hourly_usd", "price_as_of"}
SPEEDS = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
CELL = set(
    [
        "model",
        "workload",
        "tier",
        "context_tokens",
        *("users", "requests_per_second", "requests_per_hour", "concurrent_requests"),
        *("all_at_once", "by_requests_per_day"),
        "n_places",
        "wait_fraction",
        "weight_dtype",
        "kv_cache_dtype",
        "weights_bytes",
        "kv_bytes",
        "checkpoint",
        "kv_bytes_by_dtype",
        "as_published",
        "log",
        "verdict",
        "instance",
        "gpu",
        "purchase",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "spans_machines",
        "sequences_per_replica",
        "n_replicas",
        "n_gpus",
        "n_instances",
        "hourly_usd",
        "monthly_usd",
        *("chance", "chance_of", "served_at_target", "memory_holds"),
        *(
            "by_confidence",
            "measure_first",
            "cheapest",
            "by_purchase",
            "fp8",
            "without_ttft",
            "without_survival",
            "hosted",
        ),
        "headroom_fraction",
        *("annual_usd", "three_year_usd", "usd_per_user_per_month", "usd_per_million_input_tokens"),
        *("usd_per_million_output_tokens", "usd_per_million_tokens", "purchase_classes"),
        *("providers", "in_europe", "owned", "budget"),
        *("sized_by", "bound_by", "requests_per_replica", "without_targets"),
        *(f"{name}{end}" for name in SPEEDS for end in ("", "_low", "_high")),
        "runner_up",
        "why_not",
        *("levers", "host_memory"),
        *("measured", "needs_reservation", "history", "not_asked"),
        *("region", "price_as_of", "input_tokens", "output_tokens", "tpot_target_seconds", "ttft_target_seconds"),
        *("declined", "measure", "left_out", "cheaper_longer", "moves", "measured_hardware", "pay_less", "passed_over"),
        "other_terms",
        *("as_sure", "cheapest_same", "waits", "survives_machine", "more_people"),
        *("as_recommended", "fewer_machines", "smaller_model", "sure_at"),
    ]
)
JSON = ("--format", "json", "--as-of", "2026-11-20")
LEAN = ("--models", "8b", "--workloads", "chat", "--tiers", "32", "--instances", "aws/g6e.xlarge,aws/p5.48xlarge")
BOTH = ("--models", "8b,70b", "--workloads", "chat", "--tiers", "32")


def built(run: Run, workdir: Path, *arguments: str) -> dict[str, Any]:
    result = run("build", "--out", "o", *JSON, *arguments)
    assert result.exit_code == 0, result.stderr
    answer = json.loads((workdir / "o" / "sizing-sheet.json").read_text())
    assert isinstance(answer, dict)
    return answer


def test_json_keys_are_the_contract(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    answer = built(run, workdir, "--models", "8b,llama-2-7b,405b")
    targets = {w["id"]: (w["tpot_target_ms"], w["ttft_target_ms"]) for w in answer["inputs"]["workloads"]}
    assert targets == {"chat": (50, 2228.8), "rag": (50, 7144), "long-doc": (100, pytest.approx(52_609.6))}
    assert set(answer) == TOP and answer["schema_version"] == 1 and answer["as_of"] == "2026-11-20"
    assert all(set(c) == CANDIDATE | {"region", "assumed_shape"} for c in answer["candidates"])
    assert len(answer["cells"]) == 3 * 3 * 4
    ids = [c["instance"] for c in answer["candidates"]]
    for cell in answer["cells"]:
        assert set(cell) == CELL
        over = cell["model"] == "llama-2-7b" and cell["workload"] != "chat"
        assert cell["verdict"] == ("over the model's 4k" if over else "fits")
        assert (cell["instance"] is None) is over and (cell["monthly_usd"] is None) is over
        assert [w["instance"] for w in cell["why_not"]] == [i for i in ids if i != cell["instance"]]
        speeds = [cell[f"{name}{end}"] for name in SPEEDS for end in ("_low", "", "_high")]
        if over:
            assert {*speeds, *(cell[k] for k in ("sized_by", "bound_by", "requests_per_replica", "cheapest"))} == {None}
            assert {*cell["by_purchase"].values(), cell["served_at_target"], cell["memory_holds"]} == {None}
        else:
            alone = -(-cell["tier"] // cell["sequences_per_replica"])
            by_speed = cell["n_replicas"] != alone or cell["without_targets"] is not None
            assert (cell["sized_by"] in ("tpot", "ttft")) is by_speed and (cell["sized_by"] == "memory") is not by_speed
            least = cell["cheapest"]["monthly_usd"]
            assert cell["n_replicas"] >= alone
            assert cell["runner_up"] is None or cell["runner_up"]["monthly_usd"] >= least
            assert least <= cell["monthly_usd"] <= 1.05 * least
            assert cell["by_purchase"]["on-demand"]["monthly_usd"] == cell["monthly_usd"]
            assert cell["tier"] <= cell["served_at_target"] <= cell["memory_holds"]
            assert 0.5 <= cell["chance"] <= min(cell["chance_of"].values()) <= 1
            assert cell["spans_machines"] is (cell["pipeline_parallel_size"] > 1)
            sizes = [cell[f"{kind}_parallel_size"] for kind in ("tensor", "pipeline", "data")]
            assert cell["n_gpus"] == cell["n_replicas"] * math.prod(sizes)
            assert cell["n_replicas"] * cell["sequences_per_replica"] >= cell["tier"]
            assert cell["requests_per_replica"] == -(-cell["tier"] // cell["n_replicas"])
            assert all(speeds[i] < speeds[i + 1] for i in (0, 1, 3, 4, 6, 7)) and min(speeds) > 0
            tpot, ttft = targets[cell["workload"]]
            assert cell["tpot_seconds"] <= tpot / 1000 and cell["ttft_seconds"] <= ttft / 1000
            assert cell["bound_by"] in ("bandwidth", "KV reads", "compute", "communication")
    assert {c["sized_by"] for c in answer["cells"]} == {"memory", "tpot", "ttft", None}
    # Told at the top, and within workloads:
    of_workloads = {"contexts", "tpot_ms", "ttft_ms", "requests_per_user_per_day", "history_hit_fraction"}
    asked = {*OPTIONS, *SHEET_OPTIONS} - {"as_of", "measured"} - of_workloads
    inputs = answer["inputs"]
    assert asked <= {*inputs, *inputs["money"], *inputs["owning"]}
    assert {s["kind"] for s in answer["sources"]} == {"model", "gpu", "instance", "workload", "engine", "hosted prices"}


def test_every_option_of_a_question_is_a_flag() -> None:
    def flags(name: str) -> set[str]:
        command = main.commands[name]
        return {p.name for p in command.params if isinstance(p, click.Option) and p.name}

    common = {"as_json", "catalogs", "quiet"}
    files = {"format", "attach", "out", "name", "scenario", "brand", "flags"}
    assert flags("build") - common - files == {*OPTIONS, *SHEET_OPTIONS, *OF_ASKED}
    load = {
        "model",
        "context_tokens",
        "concurrent_requests",
        "input_tokens",
        "output_tokens",
        "show_all",
        "details",
        "flags",
        "budget_usd",
        "have",
        "disaggregated",
        "scenario",
    }
    assert flags("recommend") - common - load == set(OPTIONS)


def test_a_scenario_file_and_flags_that_win(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "s.yaml").write_text(
        "models: [8b, 70b]\nworkloads: chat\ntiers: [4, 8]\nweight-dtype: fp8\ngpu_memory_utilization: 0.8\n"
        "as_of: 2026-01-02\nformat: json\nname: mine\n"
    )
    result = run("build", "--scenario", "s.yaml", "--out", "o", "--tiers", "16", "--headline", "chat:16")
    assert result.exit_code == 0, result.stderr
    answer = json.loads((workdir / "o" / "mine.json").read_text())
    assert answer["inputs"]["models"] == ["llama-3.1-8b", "llama-3.1-70b"] and answer["inputs"]["tiers"] == [16]
    assert answer["as_of"] == "2026-01-02" and answer["inputs"]["gpu_memory_utilization"] == 0.8
    assert {c["weight_dtype"] for c in answer["cells"]} == {"fp8"}
    assert "at least 220 people" in result.stdout and "wrote o/mine.json" in result.stdout


def test_a_scenario_of_recommend(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    """Its keys are the options, in either number and spelling; a load that is typed stands in place of the file's."""
    (workdir / "s.yaml").write_text("models: 8b\ncontext: 8k\nusers: 20\nprovider: aws\n")
    stated = run("recommend", "--model", "8b", "--context", "8k", "--users", "20", "--providers", "aws", "--json")
    assert run("recommend", "--scenario", "s.yaml", "--json").stdout == stated.stdout
    cell = json.loads(run("recommend", "--scenario", "s.yaml", "--requests-per-second", "2", "--json").stdout)
    assert cell["requests_per_second"] == 2 and cell["context_tokens"] == 8192
    (workdir / "s.yaml").write_text("model: 8b\nformat: json\n")
    assert "s.yaml:2: unknown option format." in run("recommend", "--scenario", "s.yaml").stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("modls: 8b\n", "s.yaml:1: unknown option modls. Did you mean models?"),
        ("models: 8b\ntiers:\n  a: 1\n", "s.yaml:2: tiers must be text, a number, or a list of these."),
        ("models: 8b\nmodels: 70b\n", "s.yaml:2: models is given twice"),
        ("models: [\n", "is not valid YAML"),
        ("models: 8b\nas_of: 2026-01-01\nas-of: 2026-01-02\n", "s.yaml:3: as_of is given twice"),
        ("- 8b\n", "s.yaml:1: holds no options."),
        ("models: true\n", "s.yaml:1: models must be text"),
    ],
)
def test_scenario_files_that_are_refused(text: str, expected: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "s.yaml").write_text(text)
    result = run("build", "--scenario", "s.yaml", "--format", "json")
    assert result.exit_code == 1 and expected in result.stderr and len(result.stderr.splitlines()) == 1
    assert [p.name for p in workdir.iterdir()] == ["s.yaml"]


def test_json_on_stdout_is_the_file(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("build", *LEAN, "--json", *JSON, "--out", "o")
    assert result.stdout == (workdir / "o" / "sizing-sheet.json").read_text() and result.stderr == ""


def test_quiet_says_nothing(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("build", *LEAN, "--quiet", *JSON)
    assert result.exit_code == 0 and result.output == "" and (workdir / "output" / "sizing-sheet.json").exists()


@pytest.mark.long
def test_same_question_same_bytes(workdir: Path) -> None:
    made = []
    for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "SOURCE_DATE_EPOCH": "1763600000"}
        command = [sys.executable, "-m", "sheetgen", "build", *BOTH, "--format", "json", "--name", seed]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        made.append((workdir / "output" / f"{seed}.json").read_bytes())
    assert made[0] == made[1] and b'"as_of": "2025-11-20"' in made[0]


def test_an_old_file_survives_a_failed_build(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "output").mkdir()
    (workdir / "output" / "sizing-sheet.json").write_text("old")
    assert run("build", "--models", "8b,zzz", *JSON).exit_code == 1
    assert (workdir / "output" / "sizing-sheet.json").read_text() == "old"
    assert run("build", *LEAN, *JSON).exit_code == 0
    assert [p.name for p in (workdir / "output").iterdir()] == ["sizing-sheet.json"]
    assert (workdir / "output" / "sizing-sheet.json").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.fixture
def drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other process can be started, so what is patched in this one holds."""

    def refuse() -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("sheetgen.writers.apart.PdfProcess", refuse)


@pytest.fixture
def no_pango(monkeypatch: pytest.MonkeyPatch, drawn_here: None) -> None:
    from sheetgen.writers import pdf

    def refuse(*_: object, **__: object) -> bytes:
        raise MissingLibraryError("Pango is missing. Install it with: apt-get install libpangoft2-1.0-0")

    monkeypatch.setattr(pdf, "write_pdf", refuse)


@pytest.mark.long
def test_without_pango_there_is_a_workbook(run, workdir: Path, no_pango: None) -> None:  # type: ignore[no-untyped-def]
    result = run("build", *LEAN)
    assert result.exit_code == 0 and result.stderr.startswith("Pango ")
    assert len(result.stderr.splitlines()) == 1
    assert [p.name for p in (workdir / "output").iterdir()] == ["sizing-sheet.xlsx"]


@pytest.mark.parametrize(("formats", "written"), [("json,pdf", ["sizing-sheet.json"]), ("pdf", [])])
def test_without_pango_what_else_was_asked_for_is_written(
    formats: str, written: list[str], run: Callable[..., Any], workdir: Path, no_pango: None
) -> None:
    result = run("build", *LEAN, "--format", formats)
    assert result.exit_code == 1 and result.stderr.startswith("Pango is missing.")
    assert len(result.stderr.splitlines()) == 1 and [p.name for p in workdir.rglob("*.*")] == written


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch, drawn_here: None) -> None:
    from sheetgen.writers import pdf

    def refuse(*_: object, **__: object) -> bytes:
        raise PageError("The page is too full. Ask for less.")

    monkeypatch.setattr(pdf, "write_pdf", refuse)


@pytest.mark.long
def test_where_the_page_cannot_hold_it_there_is_a_workbook(run, workdir: Path, no_room: None) -> None:  # type: ignore[no-untyped-def]
    result = run("build", *LEAN)
    assert result.exit_code == 0
    assert "The page is too full. Ask for less." in result.stderr
    assert [p.name for p in (workdir / "output").iterdir()] == ["sizing-sheet.xlsx"]


def test_where_the_page_cannot_hold_it_what_else_was_asked_for_is_written(run, workdir: Path, no_room: None) -> None:  # type: ignore[no-untyped-def]
    result = run("build", *LEAN, "--format", "csv,json,pdf")
    assert result.exit_code == 1 and "The page is too full. Ask for less." in result.stderr
    assert sorted(p.name for p in (workdir / "output").iterdir()) == ["sizing-sheet.csv", "sizing-sheet.json"]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("tiers", "headline", "expected"),
    [
        ("1,32,128", "rag", "rag:32"),
        ("1,32,128", "chat:128", "chat:128"),
        ("1,8,9,100", "rag", "rag:8"),
        ("4", "chat", "chat:4"),
    ],
)
def test_the_tier_of_a_headline(tiers: str, headline: str, expected: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    answer = built(run, workdir, "--models", "8b", *LEAN[-2:], "--tiers", tiers, "--headline", headline)
    assert answer["inputs"]["headline"] == expected


def test_hours_of_a_month_may_be_a_fraction(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    answer = built(run, workdir, *LEAN, "--hours-per-month", "730.5")
    assert answer["inputs"]["hours_per_month"] == 730.5
    assert answer["cells"][0]["monthly_usd"] == pytest.approx(answer["cells"][0]["hourly_usd"] * 730.5)
    assert built(run, workdir, *LEAN)["inputs"]["hours_per_month"] == 730


def test_a_context_over_one_models_limit_is_an_error_only_when_none_is_left(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("build", "--models", "llama-2-7b", "--workloads", "rag,long-doc", *JSON)
    assert result.exit_code == 1 and "every context" in result.stderr
    assert list(workdir.iterdir()) == []

"""`--tpot-ms` and `--ttft-ms`: what `build` and `recommend` print, and the same in a scenario file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_lines import Run

LOAD = (
    "recommend",
    "--model",
    "405b",
    "--context",
    "16k",
    "--concurrent-requests",
    "32",
    "--gpus",
    "b200",
    "--as-of",
    "2026-11-20",
)
TPOT = (*LOAD, "--ttft-ms", "off")
SHEET = ("build", "--models", "405b", "--workloads", "rag", "--tiers", "32", "--as-of", "2026-11-20")


def built(run: Run, workdir: Path, *arguments: str) -> dict[str, Any]:
    result = run(*SHEET, *arguments, "--format", "json", "--out", "o")
    assert result.exit_code == 0, result.stderr
    record: dict[str, Any] = json.loads((workdir / "o" / "sizing-sheet.json").read_text())
    return record


@pytest.mark.some(1)
@pytest.mark.parametrize("target", ["200", "off", "50"])
def test_recommend_says_what_was_bought(target: str, run) -> None:  # type: ignore[no-untyped-def]
    text = " ".join(run(*TPOT, "--tpot-ms", target, "--details").stdout.split())
    answer = json.loads(run(*TPOT, "--tpot-ms", target, "--json").stdout)
    assert f"{answer['n_replicas']} replica" in text
    assert answer["sized_by"] == ("tpot" if target == "50" else "memory")
    assert (answer["n_replicas"] > 1) == (answer["sized_by"] == "tpot")
    assert target == "off" or answer["tpot_seconds"] <= float(target) / 1000
    aimed = "" if target == "off" else f" (target {1000 / float(target):.0f})"
    first, pace = f"{answer['ttft_seconds']:.1f}", f"{1 / answer['tpot_seconds']:.0f}"
    assert f" after {first} s, then {pace} tokens/s{aimed}." in text
    low, mean, high = (answer[f"output_tokens_per_second{end}"] for end in ("_low", "", "_high"))
    assert f"{mean:,.0f} tokens/s ({low:,.0f}–{high:,.0f})" in text
    assert f"; bound by {answer['bound_by']} " in text
    workload = answer["inputs"]["workloads"][0]
    assert workload["tpot_target_ms"] == (None if target == "off" else float(target))


def test_the_first_token_is_asked_for_by_its_own_option(run) -> None:  # type: ignore[no-untyped-def]
    memory = json.loads(run(*TPOT, "--tpot-ms", "off", "--json").stdout)
    half = round(500 * memory["ttft_seconds"])
    tight = (*LOAD, "--tpot-ms", "off", "--ttft-ms", str(half))
    answer = json.loads(run(*tight, "--json").stdout)
    assert memory["sized_by"] == "memory" and answer["sized_by"] == "ttft" and answer["ttft_seconds"] <= half / 1000
    text = run(*tight, "--details").stdout
    assert f"after {answer['ttft_seconds']:.1f} s (target {half / 1000:.1f}), then " in " ".join(text.split())
    assert ": 1x aws/p6-b200.48xlarge, $83,171" in text


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "asked", [("--tpot-ms", "2"), ("--tpot-ms", "off", "--ttft-ms", "20"), ("--tpot-ms", "2", "--survive", "replica")]
)
def test_what_no_count_meets_is_an_answer(asked: tuple[str, ...], run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    memory, result = run(*TPOT, "--tpot-ms", "off"), run(*LOAD, *asked, "--details")
    assert result.exit_code == 0 and "1x aws/p6-b200.48xlarge, " in memory.stdout
    assert "no count meets the target" in result.stdout.split("\n")
    why_not = " ".join(result.stdout.split())  # the line may wrap
    assert re.search(r" aws/p6-b200\.48xlarge too slow: [^:]* for a lone request,( 70% sure,)? target \d+ ", why_not)
    answer = json.loads(run(*LOAD, *asked, "--json").stdout)
    assert answer["verdict"] == "no count meets the target" and answer["instance"] is None
    assert answer["sized_by"] is None and answer["tpot_seconds"] is None and answer["monthly_usd"] is None
    (cell,) = built(run, workdir, *asked)["cells"]
    assert cell["verdict"] == "no count meets the target" and cell["n_replicas"] is None
    output = run(*SHEET, *asked, "--format", "md", "--out", "o")
    people = r"(, enough for at least [\d,]+ people)?"
    assert re.search(rf"RAG at 32 requests at once{people}: no count meets the target[;\n]", output.stdout)
    assert "no count meets the target" in (workdir / "o" / "sizing-sheet.md").read_text()


@pytest.mark.parametrize("asked", [("--tpot-ms", "2"), ("--tpot-ms", "off", "--ttft-ms", "20")])
def test_of_what_is_too_slow_the_nearest_stands_first(asked: tuple[str, ...], run) -> None:  # type: ignore[no-untyped-def]
    """Then what lacks memory, the least lack first."""
    load = ("--model", "70b", "--context", "16k", "--concurrent-requests", "32")
    stdout = run("recommend", *load, "--as-of", "2026-11-20", *asked, "--all").stdout
    slow = re.findall(r"too slow: (?:first token after )?([\d,.]+) ms", stdout)
    short = re.findall(r"([\d,.]+) GiB short\n", stdout)
    times, lacks = ([float(t.replace(",", "")) for t in texts] for texts in (slow, short))
    assert len(set(times)) > 5 and times == sorted(times) and lacks == sorted(lacks)


@pytest.mark.long
def test_factors_of_a_measured_point_scale_every_time(run) -> None:  # type: ignore[no-untyped-def]
    plain, scaled = (
        json.loads(run(*TPOT, "--tpot-ms", "off", *more, "--json").stdout)
        for more in ((), ("--speed-factor", "1.5", "--ttft-factor", "2"))
    )
    assert scaled["tpot_seconds"] == pytest.approx(1.5 * plain["tpot_seconds"], rel=1e-12)
    assert scaled["ttft_seconds"] == pytest.approx(2 * plain["ttft_seconds"], rel=1e-12)
    assert scaled["inputs"]["speed_factor"] == 1.5 and scaled["inputs"]["ttft_factor"] == 2
    slow, fast = (
        json.loads(run(*TPOT, "--tpot-ms", "50", "--speed-factor", factor, "--json").stdout)
        for factor in ("1.3", "0.7")
    )
    assert slow["n_replicas"] > fast["n_replicas"], "what is slower than predicted takes more of it"


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("tpot_ms: 40", (40, 7144)),
        ("tpot-ms: 40.5\nttft-ms: 3000", (40.5, 3000)),
        ("tpot_ms: off", (None, 7144)),
        ("ttft_ms: off", (50, None)),
        ("tpot_ms: off\nttft_ms: off", (None, None)),
        ("tpot_ms: rag=60", (60, 7144)),
        ("tpot_ms: [off, rag=60]\nttft_ms: ['rag=2500']", (60, 2500)),
        ("", (50, 7144)),
    ],
)
def test_targets_in_a_scenario_file(lines: str, expected: tuple[float | None, ...], run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "s.yaml").write_text(f"models: 405b\n{lines}\n")
    answer = built(run, workdir, "--scenario", "s.yaml")
    (workload,) = answer["inputs"]["workloads"]
    assert (workload["tpot_target_ms"], workload["ttft_target_ms"]) == expected
    typed = built(run, workdir, "--scenario", "s.yaml", "--tpot-ms", "77")
    assert typed["inputs"]["workloads"][0]["tpot_target_ms"] == 77, "flags win"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "tpot_ms: {rag: 40}",
            "s.yaml:2: tpot_ms must be text, a number, or a list of these, such as chat=40,rag=off.",
        ),
        ("tpot_ms: true", "s.yaml:2: tpot_ms must be text"),
        ("tpot: 40", "s.yaml:2: unknown option tpot. Did you mean tpot_ms?"),
        ("tpot_ms: 40\ntpot-ms: 50", "s.yaml:3: tpot_ms is given twice"),
        ("tpot_ms: -3", "tpot_ms is '-3'. Write milliseconds from 0.01"),
        ("tpot_ms: .inf", "tpot_ms is '"),
        ("tpot_ms: [rag=1, 2, 3]", "which says all workloads twice. Keep one."),
    ],
)
def test_targets_of_a_file_that_are_refused(lines: str, expected: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "s.yaml").write_text(f"models: 405b\n{lines}\n")
    result = run("build", "--workloads", "rag", "--scenario", "s.yaml", "--format", "json")
    assert result.exit_code == 1 and expected in result.stderr and len(result.stderr.splitlines()) == 1
    assert [p.name for p in workdir.iterdir()] == ["s.yaml"]


def test_a_version_in_a_scenario_file_is_written_in_quotes(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    """YAML reads 0.10 as 0.1, another version."""
    (workdir / "s.yaml").write_text("models: 405b\nengine-version: 0.10\n")
    result = run("build", "--scenario", "s.yaml")
    assert result.exit_code == 1 and "Write it in quotes: '0.10'" in result.output

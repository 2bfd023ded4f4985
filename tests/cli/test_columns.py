"""Every command keeps to the terminal's width: what it prints is folded, and wide tables choose their columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

import sheetgen
from sheetgen.cli import main
from sheetgen.cli.bills import AS_IF_IT_FITTED
from sheetgen.cli.output import folded, table
from sheetgen.writers.formats import templates_folder

TESTS = Path(__file__).parents[1]
DATA, LOGS, STARTUP = TESTS / "data", TESTS / "diagnose" / "logs", TESTS / "startup" / "logs"
PLAN = templates_folder() / "plan.yaml"
LOAD = ("--models", "8b", "--workloads", "rag", "--tiers", "32", "--gpus", "h100", "--as-of", "2026-11-20")
# Each as it is run, in a folder where `a.json` and `b.json` are sheets and `a.xlsx` is a workbook.
COMMANDS = (
    *(f"list {kind}" for kind in ("models", "gpus", "instances", "workloads", "engines")),
    "list models llama 70b",
    "explain",
    "explain monthly_usd --model 70b",
    "explain n_instances --model 8b --depth 9",
    "explain tpot_seconds --model deepseek-v3 --gpu h200 --tensor-parallel-size 8",
    "show 70b",
    "show h100",
    "show aws/p5.48xlarge",
    "show vllm",
    "show rag",
    "check",
    "size --model 70b --gpu h100 --concurrent-requests 32 --context 16k",
    "size --model gpt-oss-120b --gpu a100 --tensor-parallel-size 2 --concurrent-requests 9 --weight-dtype mxfp4",
    "size --model 8b --gpu spark --kv-budget NIM_KVCACHE_PERCENT=0.75",
    "size --model 8b --gpu l40s --context 8k --concurrent-requests 16 --flags all",
    "size --model 8b --users 64 --measured concurrent_requests=32,input_tokens=1k,output_tokens=1k,tpot_ms=9.8",
    f"size --from-log {STARTUP / 'vllm-0.8.3.log'} --gpu a100 --model deepseek-r1-distill-qwen-1.5b",
    "recommend --model 70b --context 16k --concurrent-requests 200 --flags vllm",
    "recommend --model 405b --context 128k --concurrent-requests 32 --tpot-ms 2 --all",
    *(f"diagnose {LOGS / name}" for name in ("001.log", "058.log", "064.log")),
    f"build {' '.join(LOAD)} --format json --flags vllm --out .",
    "diff a.json b.json",
    "pull a.xlsx --name pulled --out .",
    f"catalog import {DATA / 'configs' / 'llama-3_3-nemotron-super-49b-v1.json'}",
    f"catalog prices {DATA / 'prices' / 'neocloud_offerings_2026-05-24.csv'}",
    "mail a.xlsx --to a@b.example --dry-run",
    "live --models 8b --out live.html",
    "plan init --out plans",
    f"plan check {PLAN}",
    f"plan {PLAN} --out plans",
)


def helps(group: click.Group, *path: str) -> Iterator[str]:
    yield " ".join((*path, "--help"))
    for name, command in group.commands.items():
        yield from (
            helps(command, *path, name) if isinstance(command, click.Group) else [" ".join((*path, name, "--help"))]
        )


def ran(command: str, columns: int) -> str:
    parts = re.findall(r"@([^@]*)@|(\S+)", command)
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(main, [quoted or plain for quoted, plain in parts])
    assert result.exit_code == 0, (command, result.output)
    return result.stdout


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("columns")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, formats, more in (("a", "json,xlsx", ()), ("b", "json", ("--purchase", "spot"))):
            options = ("--format", formats, "--out", ".", "--name", name, *more)
            assert CliRunner().invoke(main, ["build", *LOAD, *options]).exit_code == 0
        yield folder


def too_long(text: str, columns: int) -> list[str]:
    """Lines that could have been broken between two words, and are no command to be pasted or typed."""
    lines = (line for line in text.split("\n") if len(line) > columns)
    return [line for line in lines if len(line.split()) > 1 and not re.match(r"\s+(sheetgen |-\S+ .*\\$)", line)]


@pytest.mark.some(6)
@pytest.mark.parametrize("command", (*COMMANDS, *helps(main)))
def test_no_line_is_wider_than_the_terminal(command: str, workdir: Path) -> None:
    assert too_long(ran(command, 80), 80) == []


def test_every_command_is_among_them() -> None:
    assert {command.split()[0] for command in COMMANDS} == set(main.commands) - {"schema"}  # which prints JSON alone


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize(
    "command", ["list models", "size --model 70b --concurrent-requests 32", "show h100", "explain"]
)
def test_the_width_is_the_terminals(command: str, columns: int) -> None:
    text = ran(command, columns)
    assert too_long(text, columns) == []
    if columns == 100:  # it is used
        assert max(map(len, text.split("\n"))) > 70


@pytest.mark.parametrize("kind", ["models", "gpus", "instances", "workloads", "engines"])
def test_a_list_has_every_column_where_there_is_the_width_or_it_is_asked_for(kind: str) -> None:
    rows = json.loads(ran(f"list {kind} --json", 80))
    heads = [name.replace("_", " ") for name in rows[0]]
    for text in (ran(f"list {kind}", 1000), ran(f"list {kind} --wide", 80)):
        first, *lines = text.strip().split("\n")
        assert re.split(r"  +", first) == heads and len(lines) == len(rows)
    narrow = ran(f"list {kind}", 80)
    assert all(row["id"] in narrow for row in rows) and len(narrow.split("\n")) < 1.2 * len(rows) + 8


def test_a_price_list_on_a_narrow_terminal_keeps_the_day_of_the_new_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It left out the new day, and kept the old one."""
    monkeypatch.chdir(tmp_path)
    rows = ["provider,instance,purchase,usd_per_hour", "azure,Standard_NC80adis_H100_v5,on-demand,12"]
    Path("own.csv").write_text("\n".join(rows))
    text = ran("catalog prices own.csv --as-of 2026-11-20", 80)
    (line,) = [line for line in text.split("\n") if line.startswith("azure/Standard_NC80adis_H100_v5")]
    assert line.endswith("2026-11-20") and "old date" not in text


def test_a_derivation_has_a_depth() -> None:
    command = "explain monthly_usd --model 70b"
    text = ran(command, 200)
    assert "    n_instances = 1  [computed]" in text and "      n_replicas" not in text
    assert "--depth 3" in text
    assert "      n_replicas" in (deeper := ran(f"{command} --depth 3", 200)) and len(deeper) > len(text)
    assert "Not shown" not in ran(f"{command} --depth 99", 200) and "FROM" not in ran(f"{command} --depth 0", 200)
    assert text.count("\n") < 25 < 200 < ran(f"{command} --depth 99", 200).count("\n")

    def depth_of(step: dict) -> int:  # type: ignore[type-arg]
        return 1 + max(map(depth_of, step["inputs"]), default=-1)

    whole, cut = (json.loads(ran(f"{command} --json{more}", 80)) for more in ("", " --depth 1"))
    assert depth_of(cut) == 1 < 5 < depth_of(whole)
    assert {step["see"] for step in cut["inputs"]} == {"--depth 2"}


@pytest.mark.parametrize("depth", range(2, 8))
def test_what_is_cut_is_not_said_to_stand_above(depth: int) -> None:
    text = ran(f"explain monthly_usd --model 70b --depth {depth}", 100_000)
    cut = re.search(r"Not shown: what (.*) came from", text)
    above = set(re.findall(r"(\w+) = .*\[computed, see above\]", text))
    assert cut is not None and above.isdisjoint(cut[1].split(", "))


@pytest.mark.parametrize(
    "model,gpu,options",
    [
        ("70b", "h100", {"concurrent_requests": 32, "context": "16k"}),
        ("405b", "h200", {"concurrent_requests": 4}),
        ("8b", "l4", {"concurrent_requests": 64}),
        ("gpt-oss-120b", "a100", {"concurrent_requests": 64, "context": "16k"}),
        ("qwen2.5-72b", "l40s", {"concurrent_requests": 20}),
    ],
)
def test_the_fewest_gpus_are_a_layout_that_can_be_asked_for(model: str, gpu: str, options: dict[str, object]) -> None:
    asked = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    line = next(row for row in ran(f"size --model {model} --gpu {gpu} {asked}", 80).split("\n") if "fewest" in row)
    match = re.search(r"(\d+) \(TP (\d+)(?:, PP (\d+))?\)$", line)
    assert match is not None, line
    n_gpus, tensor, pipeline = (int(group or 1) for group in match.groups())
    sized = sheetgen.size(model=model, gpu=gpu, tensor_parallel_size=tensor, pipeline_parallel_size=pipeline, **options)
    assert sized["fits"] and sized["min_gpus"] == n_gpus == tensor * pipeline


def test_what_does_not_fit_says_so_before_any_speed() -> None:
    verdict = sheetgen.size(model="70b", gpu="h100", concurrent_requests=32, context="16k")["verdict"]
    text = ran("size --model 70b --gpu h100 --concurrent-requests 32 --context 16k", 1000)
    caveat = text.index(f"\n{AS_IF_IT_FITTED}")
    assert text.index(verdict) < caveat < text.index("\nSPEED ") < text.index("tokens/s")


def test_words_are_folded_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    url = "https://example.com/" + "x" * 60
    assert folded("  a b " + url + " c") == f"  a b\n    {url}\n    c"
    assert folded("# note: " + "word " * 9) == "# note: word word word word word word\n#   word word word"
    rows = [("head", "n", "words"), ("first", "1", "some words that are longer than the place for them")]
    assert table(rows, right=[1]) == (
        "head   n  words\nfirst  1  some words that are longer\n          than the place for them"
    )
    wide = table([(*row[:2], "x" * 30, row[2]) for row in rows], optional=[2])
    assert wide == table(rows)
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr("shutil.get_terminal_size", lambda: SimpleNamespace(columns=200))
    assert "\n" not in table(rows[1:])


@pytest.mark.parametrize("command", ["recommend", "size", "build"])
def test_a_long_help_stands_under_headings(command: str) -> None:
    """Every option once, those of a kind together; nothing but the few of output is left over."""
    text = CliRunner(env={"COLUMNS": "80"}).invoke(main, [command, "--help"]).stdout
    headings = re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE)
    wanted = ["Model and load", "Targets", "Hardware and provider", "Money", "Engine", "Output"]
    assert headings[headings.index(wanted[0]) :] == [
        heading for heading in wanted if heading != "Money" or command != "size"
    ]
    sections = dict(re.findall(r"^([A-Z][a-z ]+):\n((?:  .*\n|\n(?!\w))+)", text, re.MULTILINE))
    placed = {name: re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", body, re.MULTILINE) for name, body in sections.items()}
    options = [param for param in main.commands[command].params if isinstance(param, click.Option)]
    every = ["--help", *(next(name for name in option.opts if name[:2] == "--") for option in options)]
    assert sorted(name for heading in wanted for name in placed.get(heading, [])) == sorted(every)
    assert {"--requests-per-second", "--active-fraction"} <= {*placed["Model and load"]}
    assert "--weight-dtype" in placed["Engine"] and "--tpot-ms" not in placed["Output"]
    assert len(placed["Output"]) <= 20

"""Errors that a user can mend: one clear line per problem on stderr, exit 1, nothing written. Usage errors exit 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sheetgen.errors import ScenarioError
from sheetgen.question.inputs import BY_OPTION

SIZE = ("size", "--model", "8b")
ONE_LINE = {
    "unknown model": (("size", "--model", "lama-3.1-8b"), "llama-3.1-8b"),
    "ambiguous model": (("size", "--model", "llama"), "It could be "),
    "no such model": (("recommend", "--model", "qqqq"), "is not in the catalogs."),
    "unknown gpu": ((*SIZE, "--gpu", "h1000"), "Did you mean h100?"),
    "zero context": ((*SIZE, "--context", "0"), "context_tokens is 0."),
    "negative context": ((*SIZE, "--context=-5"), "context_tokens is -5."),
    "context in words": ((*SIZE, "--context", "long"), "context_tokens is 'long'"),
    "context over the limit": ((*SIZE, "--context", "200k"), "over the 131,072 that llama-3.1-8b allows"),
    "zero users": ((*SIZE, "--users", "0"), "users is 0."),
    "users in words": ((*SIZE, "--users", "many"), "users is 'many'"),
    "users nan": ((*SIZE, "--users", "nan"), "users is 'nan'"),
    "users infinite": ((*SIZE, "--users", "inf"), "users is 'inf', which is not"),
    "half a GPU": ((*SIZE, "--tensor-parallel-size", "1.5"), "must be a whole number"),
    "TP that does not divide": ((*SIZE, "--tensor-parallel-size", "3"), "does not divide the 32 heads"),
    "more stages than layers": ((*SIZE, "--pipeline-parallel-size", "64"), "more than the 32 layers"),
    "utilization": ((*SIZE, "--gpu-memory-utilization", "1.5"), "gpu_memory_utilization is 1.5."),
    "dtype": ((*SIZE, "--weight-dtype", "fp9"), "Did you mean fp8?"),
    "split": ((*SIZE, "--output-tokens", "5000"), "do not fit in the context of 4,096"),
    "engine": ((*SIZE, "--engine", "vlm"), "Did you mean vllm?"),
    "engine version": ((*SIZE, "--engine-version", "new"), "is not a version"),
    "engine version in other digits": ((*SIZE, "--engine-version", "٠.19.0"), "is not a version"),
    "machines in other digits": (
        ("recommend", "--model", "8b", "--context", "4k", "--have", "h100:١٦"),
        "have is 'h100:١٦'",
    ),
    "engine version like a flag": ((*SIZE, "--engine-version", "-nightly"), "is not a version"),
    "engine version in words": ((*SIZE, "--engine-version", "the newest"), "is not a version"),
    "measured": ((*SIZE, "--measured", "tpot=3,input_tokens=9"), "Did you mean tpot_ms?"),
    "measured in seconds": (
        (*SIZE, "--measured", "concurrent_requests=1,input_tokens=1k,output_tokens=1k,tpot_ms=0.006"),
        "Check its unit, and what served.",
    ),
    "measured file": ((*SIZE, "--measured", "nowhere.json"), "nowhere.json: cannot be read"),
    "measured with a control character": ((*SIZE, "--measured", "a,tpot\x1b=3"), r"unknown key 'tpot\x1b'"),
    "measured in nobody's home": ((*SIZE, "--measured", "~nobody-here/x.json"), "~nobody-here/x.json: cannot be read"),
    "a budget in nobody's home": ((*SIZE, "--kv-budget", "~nobody-here/x.json"), "~nobody-here/x.json: cannot be read"),
    "a table of a name that no file has": (("size", "--batch", "x\0y"), "cannot be read (embedded null byte)"),
    "blank measured": ((*SIZE, "--measured", ""), "measured is blank"),
    "arrivals": ((*SIZE, "--requests-per-second=-1"), "requests_per_second is '-1'. It must be a number from 0"),
    "arrivals in words": ((*SIZE, "--requests-per-second", "many"), "requests_per_second is 'many'"),
    "speed factor": ((*SIZE, "--speed-factor", "0"), "It must be a number from 0.01 to 100."),
    "explain with measured": (("explain", "tpot_seconds", "--model", "8b", "--measured", "x,a=b"), "unknown key 'a'"),
    "a draft as the model": (("size", "--model", "eagle3-llama-3.x-70b"), "is a draft of another model"),
    "recommend over the limit": (("recommend", "--model", "8b", "--context", "200k"), "over the 131,072"),
    "recommend zero users": (("recommend", "--model", "8b", "--users", "0"), "users is '0'"),
    "recommend provider": (("recommend", "--model", "8b", "--providers", "amazon"), "provider 'amazon'"),
    "recommend nothing left": (("recommend", "--model", "8b", "--region", "mars"), "region 'mars'"),
    "two models": (("recommend", "--model", "8b,70b"), "Name one"),
    "tiers": (("build", "--models", "8b", "--tiers", "1,x"), "tier is 'x'"),
    "no tier": (("build", "--models", "8b", "--tiers", ","), "tiers are ','"),
    "workload": (("build", "--models", "8b", "--workloads", "chats"), "Did you mean chat?"),
    "headline": (("build", "--models", "8b", "--headline", "rag:0"), "It must be a whole number from 1 to"),
    "format": (
        ("build", "--models", "8b", "--format", "docx"),
        "Allowed: xlsx, pdf, html, json, csv, md.",
    ),
    "name": (("build", "--models", "8b", "--name", "../x"), "without a folder"),
    "as of": (("build", "--models", "8b", "--as-of", "soon"), "as_of is 'soon'"),
    "as of too early": (("build", "--models", "8b", "--as-of", "0001-01-01"), "from 2000-01-01 to 2100-01-01"),
    "as of too late": (("recommend", "--model", "8b", "--as-of", "2100-01-02"), "from 2000-01-01 to 2100-01-01"),
    "blank context": ((*SIZE, "--context", ""), "context_tokens is blank."),
    "recommend blank context": (("recommend", "--model", "8b", "--context", " "), "context_tokens is blank."),
    "blank gpu": ((*SIZE, "--gpu", ""), "gpu is blank."),
    "comma for a point": ((*SIZE, "--context", "1,6k"), "context_tokens is '1,6k'"),
    "recommend comma for a point": (("recommend", "--model", "8b", "--context", "1,5k"), "context_tokens is '1,5k'"),
    "a point that parts thousands": ((*SIZE, "--users", "1.000"), "users is '1.000'. Write 1000."),
    "recommend a point that parts thousands": (
        ("recommend", "--model", "8b", "--users", "1.000"),
        "users is '1.000'. Write 1000.",
    ),
    "points that part thousands of tokens": (
        (*SIZE, "--context", "16.384"),
        "context_tokens is '16.384'. Write 16384.",
    ),
    "commas anywhere": ((*SIZE, "--users", "1,0,0"), "users is '1,0,0'"),
    "recommend commas anywhere": (("recommend", "--model", "8b", "--users", "1,0,0"), "users is '1,0,0'"),
    "underscores anywhere": ((*SIZE, "--users", "1__0"), "users is '1__0'"),
    "underscores in tokens": ((*SIZE, "--context", "_16k"), "context_tokens is '_16k'"),
    "hours": (("recommend", "--model", "8b", "--hours-per-month", "745"), "a number from 1 to 744"),
    "target of 0": (
        ("build", "--models", "8b", "--tpot-ms", "0"),
        "tpot_ms is '0'. Write milliseconds from 0.01",
    ),
    "target below 0": (("recommend", "--model", "8b", "--tpot-ms=-1"), "tpot_ms is '-1'. Write milliseconds from 0.01"),
    "target nan": (("build", "--models", "8b", "--tpot-ms", "nan"), "tpot_ms is 'nan'. Write milliseconds from 0.01"),
    "target infinite": (
        ("build", "--models", "8b", "--ttft-ms", "inf"),
        "ttft_ms is 'inf'. Write milliseconds from 0.01",
    ),
    "target in words": (("build", "--models", "8b", "--tpot-ms", "fast"), "tpot_ms is 'fast'. Write milliseconds"),
    "target without a number": (("build", "--models", "8b", "--tpot-ms", "rag="), "tpot_ms is 'rag='. Write"),
    "target of no workload": (("build", "--models", "8b", "--tpot-ms", "chatt=50"), "Did you mean chat?"),
    "target of another workload": (
        ("build", "--models", "8b", "--workloads", "rag", "--tpot-ms", "chat=50"),
        "tpot_ms is 'chat'. Allowed: rag.",
    ),
    "two targets": (("build", "--models", "8b", "--tpot-ms", "50,60"), "which says all workloads twice. Keep one."),
    "a workload's two targets": (
        ("build", "--models", "8b", "--ttft-ms", "rag=1,rag=off"),
        "ttft_ms is 'rag=1,rag=off', which says rag twice. Keep one.",
    ),
    "blank target": (("build", "--models", "8b", "--tpot-ms", ""), "tpot_ms is ''. Write milliseconds from 0.01"),
    "target with a control character": (("build", "--models", "8b", "--tpot-ms", "\x1b"), r"tpot_ms is '\x1b'. Write"),
    "speed factor of a sheet": (("build", "--models", "8b", "--speed-factor", "0"), "from 0.01 to 100."),
    "ttft factor of a sheet": (("recommend", "--model", "8b", "--ttft-factor", "x"), "ttft_factor is 'x'."),
    "currency": (("build", "--models", "8b", "--currency", "EUR"), "currency is 'EUR', but no fx_rate is given"),
    "utilization of money": (("recommend", "--model", "8b", "--utilization", "2"), "utilization is '2'."),
    "contingency": (("build", "--models", "8b", "--contingency-fraction=-0.1"), "contingency_fraction is '-0.1'."),
    "quote": (("recommend", "--model", "8b", "--capex-usd-per-gpu", "h1000=5"), "Did you mean h100?"),
    "exchange rate": (("recommend", "--model", "8b", "--currency", "EUR", "--fx-rate", "nan"), "fx_rate is 'nan'."),
    "name with a control character": (("build", "--models", "8b", "--name", "a\x1b[31mb"), r"name is 'a\x1b[31mb'"),
    "blank name": (("build", "--models", "8b", "--name", " "), "It must not be blank"),
    "no name": (("build", "--models", "8b", "--name", ""), "It must not be blank"),
    "hidden name": (("build", "--models", "8b", "--name", ".x"), "must not begin with a dot or a dash"),
    "name like a flag": (("build", "--models", "8b", "--name=-x"), "must not begin with a dot or a dash"),
    "blank folder": (("build", "--models", "8b", "--out", ""), "out is blank."),
    "blank page": (("diagnose", "-", "--html", " "), "html is blank. Name a file, or leave it out."),
    "blank brand": (("build", "--models", "8b", "--brand", " "), "brand is blank. Name a file, or leave it out."),
    "blank batch": (("size", "--batch", ""), "batch is blank. Name a file, or leave it out."),
    "quantity": (("explain", "kv_bytes_per_tokens", "--model", "8b"), "Did you mean kv_bytes_per_token?"),
    "show": (("show", "h1000"), "is in no catalog"),
    "check": (("check", "nowhere"), "nowhere: cannot be read"),
    "catalogs": ((*SIZE, "--catalogs", "nowhere"), "nowhere: cannot be read"),
    "batch": (("size", "--batch", "nowhere.csv", "--out", "out.csv"), "nowhere.csv: cannot be read"),
    "scenario": (("build", "--models", "8b", "--scenario", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
}


@pytest.mark.parametrize("case", ONE_LINE)
def test_one_line_and_exit_1(case: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    arguments, expected = ONE_LINE[case]
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert expected in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.strip().endswith((".", "?")) and "Traceback" not in result.stderr
    assert list(workdir.iterdir()) == []


def test_source_date_epoch_is_bounded(run, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    for epoch in ("0", "946684799", "4102531200", "9" * 30, "abc", "-1", "1e9", " 1763600000", "1_763_600_000", "²"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        result = run("recommend", "--model", "8b")
        assert result.exit_code == 1 and result.stderr.startswith("SOURCE_DATE_EPOCH is '") and result.stdout == ""
    for epoch, day in (("946684800", "2000-01-01"), ("4102531199", "2100-01-01")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        assert f'"as_of": "{day}"' in run("recommend", "--model", "8b", "--json").stdout


@pytest.mark.some(2)
@pytest.mark.parametrize("arguments", ["size --model 8b", "size --model 8b --json", "list models", "--help"])
@pytest.mark.parametrize(("stdout", "expected"), [("/dev/full", "No space left on device"), ("&-", "closed")])
def test_a_stdout_that_takes_nothing(arguments: str, stdout: str, expected: str) -> None:
    command = ["sh", "-c", f'"$0" -m sheetgen {arguments} >{stdout}', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("the result cannot be written") and expected in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.some(1)
@pytest.mark.parametrize("stderr", ["/dev/full", "&-"])
def test_a_stderr_that_takes_nothing(stderr: str) -> None:
    for model, code in (("8b", 0), ("zzz", 1)):
        command = ["sh", "-c", f'"$0" -m sheetgen size --model {model} 2>{stderr}', sys.executable]
        assert subprocess.run(command, capture_output=True).returncode == code


def test_all_problems_in_one_run(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    bad = ("--model", "71b", "--gpu", "h1000", "--context", "0", "--users", "abc", "--kv-cache-dtype", "fp9")
    assert len(run("size", *bad).stderr.splitlines()) == 5
    many = ("--models", "71b,72bb", "--tiers", "x", "--workloads", "y", "--gpus", "z", "--as-of", "w")
    assert len(run("build", *many).stderr.splitlines()) == 6
    wrong = ("--model", "8b", "--block-size", "x", "--hours-per-month", "0", "--survive", "no", "--pue", "y")
    assert len(run("recommend", *wrong).stderr.splitlines()) == 4
    assert list(workdir.iterdir()) == []


USAGE = [
    ("size",),
    ("recommend",),
    ("build",),
    ("explain", "weights_bytes"),
    ("size", "--model", "8b", "--nonsense"),
    ("size", "--model", "8b", "--out", "x.csv"),
    ("list", "cats"),
    ("list",),
    ("show",),
    ("nonsense",),
    ("build", "--models", "8b", "--tpot", "50"),
    ("size", "--model", "8b", "--ttft-ms", "500"),
    ("explain", "weights_bytes", "--model", "8b", "--tpot-ms", "50"),
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_usage_errors_exit_2(arguments: tuple[str, ...], run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run(*arguments)
    assert result.exit_code == 2 and result.stdout == "" and "Usage: " in result.stderr
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize(
    ("spelled", "right"),
    [
        ("size --models 8b --gpus l40s", "size --model 8b --gpu l40s"),
        ("size --model 8b --weight_dtype fp8 --user=4", "size --model 8b --weight-dtype fp8 --users=4"),
        ("recommend --models 8b --user 3 --gpu l4", "recommend --model 8b --users 3 --gpus l4"),
        ("list gpu h100", "list gpus h100"),
        (
            "recommend --model 8b --users 9 --request-per-users-per-day 3",
            "recommend --model 8b --users 9 --requests-per-user-per-day 3",
        ),
    ],
)
def test_an_option_in_the_other_number_is_understood(spelled: str, right: str, run) -> None:  # type: ignore[no-untyped-def]
    result = run(*spelled.split())
    assert result.exit_code == 0 and result.stdout == run(*right.split()).stdout


def test_a_value_that_looks_like_another_spelling_stays(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("build", "--models", "8b", "--title", "--model", "--format", "json", "--json")
    assert json.loads(result.stdout)["inputs"]["title"] == "--model"


@pytest.mark.parametrize(
    ("spelled", "hint"),
    [
        ("size --model 8b --tp 4", "Did you mean '--tensor-parallel-size'?"),
        ("size --model 8b -tp 4", "No such option '-tp'. Did you mean '--tensor-parallel-size'?"),
        ("size --model 8b -gpu h100", "No such option '-gpu'. Did you mean '--gpu'?"),
        ("size --model 8b --kv-dtype fp8", "Did you mean '--kv-cache-dtype'?"),
        ("size --model 8b --kv_dtype fp8", "Did you mean '--kv-cache-dtype'?"),
        ("size --model 8b --quantization fp8", "Did you mean '--weight-dtype'?"),
        ("size --model 8b --batch-size 4", "Did you mean '--concurrent-requests'?"),
        ("recommend --model 8b --precision fp8", "Did you mean '--weight-dtype'?"),
        ("build --ask --users 200", "Option '--ask' requires an argument, not '--users'."),
        ("build --models 70b --ask", "Option '--ask' requires an argument: --ask MODEL."),
        ("size --model --gpu=h100", "Option '--model' requires an argument, not '--gpu=h100'."),
    ],
)
def test_an_option_of_another_tool_and_a_value_left_out(spelled: str, hint: str, run) -> None:  # type: ignore[no-untyped-def]
    result = run(*spelled.split())
    assert result.exit_code == 2 and hint in result.stderr


@pytest.mark.parametrize("value", ["missing.file", "", " "])
@pytest.mark.parametrize(
    "line",
    [
        "build --models 8b --scenario FILE",
        "catalog import FILE",
        "catalog prices FILE",
        "check FILE",
        "diagnose FILE",
        "diff FILE FILE",
        "mail FILE --to a@b.c",
        "plan FILE",
        "plan actuals FILE",
        "plan check FILE",
        "plan init --from FILE",
        "pull FILE",
        "size --batch FILE",
        "size --from-log FILE",
        "size --model 8b --catalogs FILE",
        "size --model 8b --measured FILE",
    ],
)
def test_a_file_that_is_not_there_or_has_no_name_is_said_in_the_same_words(
    line: str,
    value: str,
    run,  # type: ignore[no-untyped-def]
    workdir: Path,
) -> None:
    result = run(*(value if word == "FILE" else word for word in line.split()))
    expected = f"{value}: cannot be read (No such file or directory)." if value.strip() else " is blank. Name a f"
    assert result.exit_code == 1 and expected in result.stderr


@pytest.mark.parametrize("typed", ["90", "90%", "90 %"])
def test_percent_for_a_share(typed: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    """A confidence is a percentage without the sign, too, and stderr says so."""
    result = run("recommend", "--model", "8b", "--confidence", typed, "--json")
    answer = json.loads(result.stdout)
    assert ("confidence: 90 is read as 90%" in result.stderr) == (typed == "90")
    assert answer["inputs"]["confidence"] == 0.9
    Path("s.yaml").write_text(f"models: 8b\nworkloads: chat\ntiers: 32\nconfidence: {typed}\nformat: json\nout: .\n")
    assert run("build", "--scenario", "s.yaml").exit_code == 0
    assert json.loads(Path("sizing-sheet.json").read_text())["inputs"]["confidence"] == 0.9


SHARES = [item.asked_as for item in BY_OPTION.values() if item.kind.what == "share"]


def test_every_fraction_is_a_share() -> None:
    assert {name for name in BY_OPTION if name.endswith(("_fraction", "_share", "utilization"))} <= {*SHARES}
    assert "discount_fraction" in SHARES and len(SHARES) > 10


@pytest.mark.parametrize("option", SHARES)
@pytest.mark.parametrize("typed", ["20%", "20 %"])
def test_a_percentage_is_taken_of_every_share(option: str, typed: str) -> None:
    """With the sign it is the share; 1.5 is refused with both spellings."""
    assert BY_OPTION[option].parse(typed) == pytest.approx(BY_OPTION[option].parse("0.2")) == pytest.approx(0.2)
    with pytest.raises(ScenarioError, match=r"Write 0\.015 or 1\.5%"):
        BY_OPTION[option].parse("1.5")


def test_a_percentage_by_workload_and_by_provider(run) -> None:  # type: ignore[no-untyped-def]
    words = ("recommend", "--model", "8b", "--users", "50", "--json")
    shares, percentages = (
        json.loads(run(*words, "--discount-fraction", off, "--history-hit-fraction", kept).stdout)
        for off, kept in (("0.05,aws=0.2", "0.3"), ("5%,aws=20%", "30%"))
    )
    assert shares == percentages


@pytest.mark.parametrize("typed", ["1", "49", "100", "100%", "%", "٩٠", "nan%", "-1"])
def test_what_is_no_confidence(typed: str, run) -> None:  # type: ignore[no-untyped-def]
    result = run("recommend", "--model", "8b", f"--confidence={typed}")
    assert result.exit_code == 1 and "confidence is" in result.stderr
    assert ("Write" in result.stderr) == (typed == "49")


NO_NUMBERS = ("1e400", "١٢", "１２", "1_0", "0x10", "NaN", "1.5", "-3")


@pytest.mark.parametrize("typed", NO_NUMBERS)
def test_a_count_is_whole_and_in_plain_digits_at_every_door(typed: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    """Typed as an option, in a table of deployments, in a scenario, beside a benchmark's file."""
    Path("batch.csv").write_text(f"model,gpu,users\n8b,h100,{typed}\n", "utf-8")
    Path("s.yaml").write_text(f"models: [8b]\nusers: '{typed}'\nformat: json\nout: .\n", "utf-8")
    for arguments in (
        (*SIZE, f"--users={typed}"),
        ("recommend", "--model", "8b", f"--users={typed}"),
        ("size", "--batch", "batch.csv"),
        ("build", "--scenario", "s.yaml"),
        (*SIZE, "--measured", f"kv_pool_gib=30,max_num_seqs={typed}"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1, arguments
        assert typed in result.output and ("users is" in result.output or "max_num_seqs is" in result.output)


@pytest.mark.some(1)
@pytest.mark.parametrize("options", [("--format", "json"), ("--format", "json", "--name", "x" * 300)])
def test_unwritable_output(options: tuple[str, ...], run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "taken").write_text("a file, no folder")
    out = "taken" if "--name" not in options else "fresh/new"
    result = run("build", "--models", "8b", "--out", out, *options)
    assert result.exit_code == 1 and "cannot be written (" in result.stderr and "--out" in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert [p for p in workdir.rglob("*") if p.is_file()] == [workdir / "taken"]


def test_nothing_of_several_files_is_written_when_one_cannot_be(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "s.md").mkdir()
    result = run("build", "--models", "8b", "--out", workdir, "--name", "s", "--format", "json,md")
    assert result.exit_code == 1 and "is a folder" in result.stderr
    assert sorted(p.name for p in workdir.iterdir()) == ["s.md"]


BROKEN = {
    "models/x.yaml": ("id: [", "x.yaml:2: is not valid YAML"),
    "gpus/x.yaml": ("id: x\nid: x\n", "x.yaml:2: id is given twice"),
}


@pytest.mark.parametrize("file", BROKEN)
@pytest.mark.parametrize("command", ["size", "recommend"])
def test_a_broken_catalog_is_told_with_its_line(file: str, command: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    text, expected = BROKEN[file]
    (workdir / "c" / file).parent.mkdir(parents=True)
    (workdir / "c" / file).write_text(text)
    result = run(command, "--model", "8b", "--catalogs", "c")
    assert result.exit_code == 1 and expected in result.stderr and result.stderr.startswith("c/")
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""


def test_control_characters_do_not_reach_the_terminal(run) -> None:  # type: ignore[no-untyped-def]
    result = run("size", "--model", "a\x1b[31mb\n\rc" + "z" * 10_000)
    assert r"model 'a\x1b[31mb\n\rczzz" in result.stderr  # escaped once
    assert result.exit_code == 1 and "\x1b" not in result.stderr and len(result.stderr) < 400
    assert len(result.stderr.splitlines()) == 1


def test_no_echo_of_control_characters(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "c\x1b" / "models").mkdir(parents=True)
    (workdir / "c\x1b" / "models" / "a.yaml").write_text("id: [\n")
    for arguments in (
        ("list", "models", "a\x1b"),
        ("show", "a\x1b"),
        ("check", "c\x1b"),
        ("size", "--a\x1b"),
        ("--a\x1b",),
        ("list", "a\x1b"),
        ("build", "--models", "8b", "--format", "json", "--out", "o\x1b\u202e", "--as-of", "2026-11-20"),
        ("explain", "weights_bytes", "--model", "8b", "--context", "4k\x1c"),
    ):
        result = run(*arguments)
        assert not {"\x1b", "\u202e", "\x1c"} & set(result.output), arguments
        assert r"\x1" in result.output or result.exit_code == 0, arguments


def test_json_spells_what_a_terminal_could_obey() -> None:
    from sheetgen.writers.formats import json_text

    hostile = "a\x1b\x7f\x9b\u202e\ud800é×"
    written = json_text({"a": hostile})
    assert json.loads(written) == {"a": hostile} and written.replace("\n", "").isprintable() and "é×" in written
    assert written.encode()


def test_a_link_in_place_of_a_target_is_followed_and_stays(workdir: Path) -> None:
    from sheetgen.errors import ScenarioError
    from sheetgen.writers.safe_files import write_files

    (workdir / "real").mkdir()
    (workdir / "real" / "a.txt").write_text("old")
    (workdir / "link.txt").symlink_to("real/a.txt")
    (workdir / "new.txt").symlink_to("real/b.txt")  # leads to no file yet
    write_files({workdir / "link.txt": b"one", workdir / "new.txt": b"two"})
    assert (workdir / "link.txt").is_symlink() and (workdir / "new.txt").is_symlink()
    assert (workdir / "real" / "a.txt").read_bytes() == b"one" and (workdir / "real" / "b.txt").read_bytes() == b"two"
    (workdir / "loop").symlink_to("loop")
    (workdir / "null").symlink_to("/dev/null")
    os.mkfifo(workdir / "pipe")
    for name, why in (("loop", "leads to itself"), ("null", "is not a file"), ("pipe", "is not a file")):
        with pytest.raises(ScenarioError, match=f"{name}: cannot be written .*{why}"):
            write_files({workdir / "z.txt": b"z", workdir / name: b"x"})
        assert not (workdir / "z.txt").exists()
    assert not Path("/dev/null").is_file()


def test_too_little_memory_is_one_line(run, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """With libraries that cannot be loaded, and with nothing left after they are."""
    import resource

    def too_much(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("sheetgen.api.recommended", too_much)
    result = run("recommend", "--model", "8b")
    assert result.exit_code == 1 and result.stderr.count("500 MB") == 1
    limit = 60 * 2**20
    started = subprocess.run(
        [sys.executable, "-m", "sheetgen", "recommend", "--model", "8b"],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert (started.returncode, started.stdout, started.stderr) == (1, "", result.stderr)

"""What a user can mend: one clear line per problem on stderr, exit 1, nothing written. Usage errors exit 2."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    "zero users": ((*SIZE, "--users", "0"), "concurrent_requests is 0."),
    "users in words": ((*SIZE, "--users", "many"), "concurrent_requests is 'many'"),
    "users nan": ((*SIZE, "--users", "nan"), "concurrent_requests is 'nan'"),
    "users infinite": ((*SIZE, "--users", "inf"), "concurrent_requests is 'inf', which is not"),
    "half a GPU": ((*SIZE, "--tensor-parallel-size", "1.5"), "must be a whole number"),
    "TP that does not divide": ((*SIZE, "--tensor-parallel-size", "3"), "does not divide the 32 heads"),
    "more stages than layers": ((*SIZE, "--pipeline-parallel-size", "64"), "more than the 32 layers"),
    "utilization": ((*SIZE, "--gpu-memory-utilization", "1.5"), "gpu_memory_utilization is 1.5."),
    "dtype": ((*SIZE, "--weight-dtype", "fp9"), "Did you mean fp8?"),
    "split": ((*SIZE, "--output-tokens", "5000"), "do not fit in the context of 4,096"),
    "engine": ((*SIZE, "--engine", "vlm"), "Did you mean vllm?"),
    "engine version": ((*SIZE, "--engine-version", "new"), "is not a version"),
    "a draft as the model": (("size", "--model", "eagle3-llama-3.x-70b"), "is a draft of another model"),
    "recommend over the limit": (("recommend", "--model", "8b", "--context", "200k"), "over the 131,072"),
    "recommend zero users": (("recommend", "--model", "8b", "--users", "0"), "users is '0'"),
    "recommend provider": (("recommend", "--model", "8b", "--providers", "amazon"), "provider 'amazon'"),
    "recommend nothing left": (("recommend", "--model", "8b", "--region", "mars"), "no instance is left"),
    "two models": (("recommend", "--model", "8b,70b"), "Name one"),
    "tiers": (("build", "--models", "8b", "--tiers", "1,x"), "tier is 'x'"),
    "no tier": (("build", "--models", "8b", "--tiers", ","), "tiers are ','"),
    "workload": (("build", "--models", "8b", "--workloads", "chats"), "Did you mean chat?"),
    "headline": (("build", "--models", "8b", "--headline", "rag:33"), "Its tier must be one of"),
    "format": (("build", "--models", "8b", "--format", "docx"), "Allowed: xlsx, pdf, json, md."),
    "name": (("build", "--models", "8b", "--name", "../x"), "without a folder"),
    "as of": (("build", "--models", "8b", "--as-of", "soon"), "as_of is 'soon'"),
    "quantity": (("explain", "kv_bytes_per_tokens", "--model", "8b"), "Did you mean kv_bytes_per_token?"),
    "show": (("show", "h1000"), "is in no catalog"),
    "check": (("check", "nowhere"), "nowhere: does not exist"),
    "catalogs": ((*SIZE, "--catalogs", "nowhere"), "nowhere: is no folder"),
    "batch": (("size", "--batch", "nowhere.csv", "--out", "out.csv"), "nowhere.csv: cannot be read"),
    "scenario": (("build", "--models", "8b", "--scenario", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
}


@pytest.mark.parametrize("case", ONE_LINE)
def test_one_line_and_exit_1(case: str, run, here: Path) -> None:  # type: ignore[no-untyped-def]
    arguments, expected = ONE_LINE[case]
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert expected in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.strip().endswith((".", "?")) and "Traceback" not in result.stderr
    assert list(here.iterdir()) == []


def test_all_problems_in_one_run(run, here: Path) -> None:  # type: ignore[no-untyped-def]
    bad = ("--model", "71b", "--gpu", "h1000", "--context", "0", "--users", "abc", "--kv-cache-dtype", "fp9")
    assert len(run("size", *bad).stderr.splitlines()) == 5
    many = ("--models", "71b,72bb", "--tiers", "x", "--workloads", "y", "--gpus", "z", "--as-of", "w")
    assert len(run("build", *many).stderr.splitlines()) == 6
    assert list(here.iterdir()) == []


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
    ("build", "--models", "8b", "--ttft-ms", "500"),
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_usage_errors_exit_2(arguments: tuple[str, ...], run, here: Path) -> None:  # type: ignore[no-untyped-def]
    result = run(*arguments)
    assert result.exit_code == 2 and result.stdout == "" and "Usage: " in result.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("options", [("--format", "json"), ("--format", "json", "--name", "x" * 300)])
def test_unwritable_output(options: tuple[str, ...], run, here: Path) -> None:  # type: ignore[no-untyped-def]
    (here / "taken").write_text("a file, no folder")
    out = "taken" if "--name" not in options else "fresh/new"
    result = run("build", "--models", "8b", "--out", out, *options)
    assert result.exit_code == 1 and "cannot be written (" in result.stderr and "--out" in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert [p for p in here.rglob("*") if p.is_file()] == [here / "taken"]


def test_nothing_of_several_files_is_written_when_one_cannot_be(run, here: Path) -> None:  # type: ignore[no-untyped-def]
    (here / "s.md").mkdir()
    result = run("build", "--models", "8b", "--out", here, "--name", "s", "--format", "json,md")
    assert result.exit_code == 1 and "is a folder" in result.stderr
    assert sorted(p.name for p in here.iterdir()) == ["s.md"]


BROKEN = {
    "models/x.yaml": ("id: [", "x.yaml:2: is not valid YAML"),
    "gpus/x.yaml": ("id: x\nid: x\n", "x.yaml:2: id is given twice"),
}


@pytest.mark.parametrize("file", BROKEN)
@pytest.mark.parametrize("command", ["size", "recommend"])
def test_a_broken_catalog_is_told_with_its_line(file: str, command: str, run, here: Path) -> None:  # type: ignore[no-untyped-def]
    text, expected = BROKEN[file]
    (here / "c" / file).parent.mkdir(parents=True)
    (here / "c" / file).write_text(text)
    result = run(command, "--model", "8b", "--catalogs", "c")
    assert result.exit_code == 1 and expected in result.stderr and result.stderr.startswith("c/")
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""


def test_control_characters_do_not_reach_the_terminal(run) -> None:  # type: ignore[no-untyped-def]
    result = run("size", "--model", "a\x1b[31mb\n\rc" + "z" * 10_000)
    assert result.exit_code == 1 and "\x1b" not in result.stderr and len(result.stderr) < 400
    assert len(result.stderr.splitlines()) == 1

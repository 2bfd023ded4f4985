"""A wrong word is answered with the right one: an option that was left out, a list without commas, a name nearby."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import Run

from sheetgen.cli import main
from sheetgen.cli.options import LISTS, Command
from sheetgen.cli.output import say
from sheetgen.errors import did_you_mean

CONFIG = Path(__file__).parents[1] / "data" / "configs" / "ai21-jamba-1.5-large.json"


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("recommend 70b", "--model 70b"),
        ("recommend qwen/none-such", "--model qwen/none-such"),
        ("size 70b h100", "--model 70b --gpu h100"),
        ("size --model 70b 200", "--users 200"),
        ("explain kv_tokens 70b l40s", "--model 70b --gpu l40s"),
        ("build 8b 70b", "--models 8b,70b"),
        ("build --models 8b 70b --users 5", "--models 8b,70b"),
        ("build --models 8b, 70b, 405b", "--models 8b,70b,405b"),
        ("build --models 8b --tiers 1 32 128", "--tiers 1,32,128"),
        ("build --models 8b --title Acme in May --tiers 1", "--title 'Acme in May'"),
        ("recommend --model 8b --gpus h100 l40s", "--gpus h100,l40s"),
        ("70b", "recommend --model 70b"),
    ],
)
def test_a_word_too_much_is_given_its_place(line: str, meant: str, run: Run) -> None:
    result = run(*line.split())
    assert result.exit_code == 2 and result.stderr.rstrip().endswith(f"Did you mean {meant}?")


def test_the_suggested_line_runs(run: Run, workdir: Path) -> None:
    hint = run("build", "--models", "8b", "70b", "--tiers", "1").stderr.partition("Did you mean ")[2].rstrip("?\n")
    assert run("build", *hint.split(), "--tiers", "1", "--format", "json").exit_code == 0
    models = json.loads(Path("output/sizing-sheet.json").read_text())["models"]
    assert [model["id"] for model in models] == ["llama-3.1-8b", "llama-3.1-70b"]


def test_a_word_that_could_be_nothing_is_refused_without_a_guess(run: Run) -> None:
    for line in ("explain kv_tokens nonsense", "plan check a.yaml b.yaml"):
        result = run(*line.split())
        assert result.exit_code == 2 and "unexpected extra" in result.stderr and "Did you mean" not in result.stderr


def test_every_option_of_a_list_is_one_of_those_that_take_commas() -> None:
    metavars = {option.metavar for command in main.commands.values() for option in command.params}
    assert {"NAMES", "NUMBERS", "SHARES", "AMOUNTS"} <= metavars & {*LISTS}


@pytest.mark.parametrize("name", [name for name, command in main.commands.items() if isinstance(command, Command)])
def test_no_option_may_be_abbreviated(name: str, run: Run) -> None:
    """A script that abbreviates breaks on the day when another option begins so; the whole one is named."""
    options = sorted({o for parameter in main.commands[name].params for o in parameter.opts if o.startswith("--")})
    for option in options:
        short = option[:-1]
        if short in options or any(other == f"{short}s" for other in options) or len(option) < 6:
            continue
        result = run(name, short, "1")
        assert result.exit_code == 2 and f"No such option '{short}'" in result.stderr and option in result.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("--disc", "'--discount-fraction'"), ("--mo", "'--model'"), ("--max-w", "'--max-wait-fraction'")],
)
def test_a_short_beginning_names_the_option(typed: str, meant: str, run: Run) -> None:
    assert run("recommend", typed, "1").stderr.rstrip().endswith(f"Did you mean {meant}?")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("reserved", "reserved-1yr or reserved-3yr"),
        ("reservd", "reserved-1yr or reserved-3yr"),
        ("on", ""),
        ("spt", "spot"),
        ("capacity", "capacity-block"),
    ],
)
def test_all_that_are_equally_near_are_named(word: str, meant: str) -> None:
    classes = ("on-demand", "reserved-1yr", "reserved-3yr", "spot", "capacity-block")
    assert did_you_mean(word, classes) == (f" Did you mean {meant}?" if meant else "")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("lama-70b", "It could be llama-3.3-70b, llama-3.1-70b, llama-3-70b, llama-2-70b."),
        ("8c", "Did you mean llama-3.1-8b?"),
        ("70d", "Did you mean llama-3.1-70b?"),
        ("lama-3-8c", "llama-3-8b"),
    ],
)
def test_a_model_nearby_and_of_a_family_the_newest_first(name: str, first: str, run: Run) -> None:
    assert first in run("recommend", "--model", name).stderr


@pytest.mark.parametrize(
    ("line", "there"),
    [
        ("plan plan.yml", "plan.yaml"),
        ("plan check plan.yml", "plan.yaml"),
        ("build --scenario fleet.yml", "fleet.yaml"),
        ("pull sizing-shet.xlsx", "sizing-sheet.xlsx"),
        ("pull sizing-sheet", "sizing-sheet.xlsx"),
        ("diff sizing-sheet.xls sizing-sheet.xlsx", "sizing-sheet.xlsx"),
        ("diagnose sever.log", "server.log"),
        ("size --batch loads.cvs", "loads.csv"),
        ("recommend --model ./jamba-big.json", "jamba.json"),
        ("recommend --model 8b --catalogs our-price", "our-prices"),
        ("check our-price", "our-prices"),
    ],
)
def test_a_file_that_is_not_there_names_the_one_beside_it(line: str, there: str, run: Run, workdir: Path) -> None:
    for name in ("plan.yaml", "fleet.yaml", "sizing-sheet.xlsx", "server.log", "loads.csv", "jamba.json"):
        Path(name).touch()
    Path("our-prices").mkdir()
    result = run(*line.split())
    assert result.exit_code == 1 and f"; {there} is there)" in result.stderr


@pytest.mark.parametrize("name", ["./mine", "./mine/", "mine", "mine/", "mine/config.json"])
def test_a_folder_with_a_config_is_a_model(name: str, run: Run, workdir: Path) -> None:
    Path("mine").mkdir()
    Path("mine/config.json").write_bytes(CONFIG.read_bytes())
    assert run("recommend", "--model", name).exit_code == 0


def test_a_folder_without_one_says_which_file_to_name(run: Run, workdir: Path) -> None:
    for folder in ("empty", "other", "hub/snapshot"):
        Path(folder).mkdir(parents=True)
    for file in ("other/jamba.json", "hub/snapshot/config.json"):
        Path(file).write_bytes(CONFIG.read_bytes())
    for folder, near in (("other", "other/jamba.json"), ("hub", "hub/snapshot/config.json"), ("empty", "")):
        stated = run("recommend", "--model", f"./{folder}").stderr
        assert "has no config.json." in stated and near in stated
        assert "has no config.json." in run("build", "--models", folder).stderr
        if near:
            assert run("recommend", "--model", near).exit_code == 0


@pytest.mark.parametrize(
    ("line", "meant", "others"),
    [
        ("size --model 8b --gpu h100", "NVIDIA H100 SXM5 80GB", {"h100-pcie", "h100-nvl"}),
        ("size --model 8b --gpu A100", "NVIDIA A100 SXM4 80GB", {"a100-40gb", "a100-pcie"}),
        ("recommend --model 8b --gpus l40s,h200", "NVIDIA H200 SXM5 141GB", {"h200-nvl"}),
        ("recommend --model 8b --have h100:2", "NVIDIA H100 SXM5 80GB", {"h100-pcie", "h100-nvl"}),
        ("size --model 8b --gpu h100-sxm", "", set()),
        ("size --model 8b --gpu nvidia-h100-sxm5-80gb", "", set()),
        ("size --model 8b --gpu h100-nvl", "", set()),
        ("size --model 8b --gpu l40s", "", set()),
        ("size --model 8b", "", set()),
        ("size --model 8b --gpu h100 --quiet", "", set()),
    ],
)
def test_a_name_of_several_gpus_says_which_is_taken(
    line: str, meant: str, others: set[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a person, on a terminal."""
    monkeypatch.setattr("sheetgen.cli.options.note", lambda words, quiet: None if quiet else say(words, err=True))
    result = run(*line.split())
    assert result.exit_code == 0 and (meant in result.stderr if meant else result.stderr == "")
    assert others <= {*result.stderr.replace(",", " ").replace(".", " ").split()}


def test_the_head_of_an_answer_names_the_gpu_in_full(run: Run) -> None:
    text = run("recommend", "--model", "8b", "--gpus", "h100,l40s").stdout.partition(":")[0]
    assert "on H100 SXM, L40S" in text


def test_the_columns_of_the_help_are_those_of_any_table(run: Run, workdir: Path) -> None:
    """The example of `size --help` runs on a table that has a model alone."""
    Path("in.csv").write_text("model\n8b\n")
    lines = [line.split() for line in run("size", "--help").stdout.splitlines() if " --batch in.csv " in line]
    assert len(lines) == 2
    for words in lines:
        assert run(*words[1:]).exit_code == 0 and Path("out.csv").read_text().count("\n") == 2


@pytest.mark.parametrize(
    "line",
    [
        "build --models 8b --out file/sheets",
        "build --models 8b --out closed",
        "build --models 8b --name taken --out .",
        "build --scenario fleet.yaml",
        "pull ../edited.xlsx --out file",
        "plan plan.yaml --out file",
        "live --out file/live.html",
        "live --out closed/live.html",
        "diagnose server.log --html closed/page.html",
        "size --batch in.csv --out closed/out.csv",
        "mail --to vp@acme.com --models 8b --out closed",
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    line: str, run: Run, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is worked out: neither the models nor the file that is read exist. `closed` may not be written to, which
    the superuser, as whom tests may run, never meets."""
    import os

    Path("file").touch()
    Path("closed").mkdir()
    Path("taken.xlsx").mkdir()
    Path("fleet.yaml").write_text("models: 8b\nout: file\n")
    plain = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed" and plain(path, mode))
    result = run(*line.replace("8b", "none-such").split())
    assert result.exit_code == 1 and "cannot be written (" in result.stderr, result.stderr
    assert "none-such" not in result.stderr and "cannot be read" not in result.stderr

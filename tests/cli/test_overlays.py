"""`--catalogs`: a folder that adds nothing is refused, and what one changes is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import Run

from sheetgen.catalog import default_folder

ASKED = ("size", "--model", "8b")
AWS = (default_folder() / "instances" / "aws.yaml").read_text(encoding="utf-8")


@pytest.fixture
def over(workdir: Path) -> Path:
    """A price replaced, a row with one price less, a model added and a GPU as it was; all one level deep."""
    for part in ("instances", "models", "gpus"):
        (workdir / "over" / "contract" / part).mkdir(parents=True)
    assert AWS.count("usd_per_hour: 55.04,") == 1 and AWS.count("reserved-3yr, usd_per_hour: 23.7773") == 1
    changed = AWS.replace("usd_per_hour: 55.04,", "usd_per_hour: 44.04,")
    line = next(line for line in changed.splitlines(keepends=True) if "23.7773" in line)
    (workdir / "over/contract/instances/aws.yaml").write_text(changed.replace(line, ""))
    model = (default_folder() / "models" / "llama-3.1-8b.yaml").read_text(encoding="utf-8")
    own = model.replace("id: llama-3.1-8b", "id: ours").replace("aliases: [8b", "aliases: [ours-8b")
    (workdir / "over/contract/models/ours.yaml").write_text(own)
    gpu = "gpus/nvidia-h100-sxm5-80gb.yaml"
    (workdir / "over/contract" / gpu).write_bytes((default_folder() / gpu).read_bytes())
    return workdir / "over"


def test_what_a_folder_changes_is_said(run: Run, over: Path) -> None:
    result = run(*ASKED, "--catalogs", "over/contract", "--json")
    n_before = AWS.count("purchase:") - 2
    words = f"prices 1 replaced, 1 taken away, {n_before} as before; models 1 added; GPUs 1 as before."
    assert result.stderr == f"over/contract: {words}\n" and json.loads(result.stdout)["fits"]
    assert run(*ASKED, "--catalogs", "over/contract", "-q").stderr == "" == run(*ASKED).stderr
    (over / "contract" / "tiers.yaml").write_bytes((default_folder() / "tiers.yaml").read_bytes())
    assert run(*ASKED, "--catalogs", "over/contract").stderr.endswith("; tiers.yaml read instead.\n")
    both = run(*ASKED, "--catalogs", "over/contract", "--catalogs", "over/contract").stderr.splitlines()
    assert "GPUs 1 as before" in both[1] and "replaced" not in both[1]  # the second lies over the first


def test_a_folder_that_adds_nothing_is_refused(run: Run, over: Path, workdir: Path) -> None:
    (workdir / "empty" / "models").mkdir(parents=True)
    (workdir / "none" / "instances").mkdir(parents=True)
    (workdir / "none" / "instances" / "aws.yaml").write_text("provider: aws\ninstances: []\n")
    (workdir / "misnamed" / "gpus").mkdir(parents=True)
    (workdir / "misnamed" / "gpus" / "h100.yml").write_text("id: h100\n")
    expected = (
        "adds nothing: it has neither models/*.yaml, gpus/*.yaml, instances/*.yaml, regions/*.yaml, "
        "engines/*.yaml nor a file such as workloads.yaml. "
    )
    for folder, told in (
        ("over", f"over: {expected}Did you mean over/contract?"),
        ("over/contract/models", f"over/contract/models: {expected}Did you mean over/contract?"),
        ("empty", f"empty: {expected}--catalogs takes a folder like catalogs/."),
        ("misnamed", f"misnamed: {expected}Name h100.yml h100.yaml."),
        ("none", "none: adds nothing: its files have no entry."),
        ("", "catalogs is blank. Name a folder like catalogs/, or leave it out."),
        ("/proc", f"/proc: {expected}--catalogs takes a folder like catalogs/."),
    ):
        result = run(*ASKED, "--catalogs", folder)
        assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{told}\n")
    result = run(*ASKED, "--catalogs", "a" * 300)  # no folder to Python 3.14, which does not say why
    assert result.exit_code == 1 and result.stderr.count("\n") == 1
    assert result.stderr.startswith(tuple(f"{'a' * 59}…: {why}" for why in ("is no folder.", "cannot be read (F")))


def test_a_refused_folder_can_still_be_written_to_and_checked(run: Run, workdir: Path) -> None:
    (workdir / "mine").mkdir()
    (workdir / "aws.csv").write_text(
        "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name\nus-east-1,p5.48xlarge,60,8,h100\n"
    )
    written = run("catalog", "prices", "aws.csv", "--as-of", "2026-11-20", "--to", "mine")
    assert written.exit_code == 0 and (workdir / "mine" / "instances" / "aws.yaml").is_file()
    (workdir / "misnamed" / "gpus").mkdir(parents=True)
    (workdir / "misnamed" / "gpus" / "h100.yml").write_text("id: h100\n")
    assert "h100.yml: " in run("check", "misnamed").stderr


def test_a_folder_is_checked_whole_whatever_the_command_reads(run: Run, over: Path) -> None:
    for part, text in (("instances", "provider: [\n"), ("engines", "engine: vllm\n")):
        broken = over / "contract" / part / "broken.yaml"
        broken.parent.mkdir(exist_ok=True)
        broken.write_text(text)
        result = run(*ASKED, "--catalogs", "over/contract")
        assert result.exit_code == 1 and result.stdout == ""
        assert result.stderr.startswith(f"over/contract/{part}/broken.yaml")
        checked = run("check", "--catalogs", "over/contract")
        assert checked.stderr.startswith(result.stderr) and "in 1 file." in checked.stderr
        broken.unlink()
    (over / "contract" / "models" / "more.yml").write_text("id: more\n")
    result = run(*ASKED, "--catalogs", "over/contract")
    assert result.exit_code == 0
    assert result.stderr.startswith("over/contract/models/more.yml: ")
    assert run(*ASKED, "--catalogs", "over/contract", "-q").stderr == ""
    assert run("check", "--catalogs", "over/contract").stderr.count("more.yml") == 1


def test_a_file_that_is_no_mapping_is_not_repeated(run: Run, workdir: Path) -> None:
    (workdir / "over" / "models").mkdir(parents=True)
    (workdir / "over" / "models" / "a.yaml").write_text("a-secret\n")
    assert run(*ASKED, "--catalogs", "over").stderr.startswith("over/models/a.yaml:1: ")

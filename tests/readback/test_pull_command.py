"""`sheetgen pull` as it is typed: the files that it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import books
import pytest
from cells_of import LEAN, without_picks
from command_lines import run_command
from recalculation import edit_and_recalculate

DRAWN = ("q3.pdf", "q3.json", "q3.scenario.yaml")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("pull"), "q3", {**LEAN, "models": "8b", "tiers": "64"})[0]


@pytest.fixture(scope="module")
def recalculated(book: Path) -> Path:
    cells = {"in_context_chat": 8192, "in_cuda_graph_base_bytes": 3e9, "in_output_long_doc": 500}
    return edit_and_recalculate(book, book.with_name("edited.xlsx"), cells)


@pytest.fixture
def edited(recalculated: Path, tmp_path: Path) -> Path:
    (tmp_path / "mail").mkdir()
    return Path(shutil.copy(recalculated, tmp_path / "mail" / "q3.xlsx"))


@pytest.mark.long
def test_it_writes_the_pdf_and_a_scenario_that_builds_the_same(edited: Path, tmp_path: Path) -> None:
    before, out = edited.read_bytes(), tmp_path / "out"
    result = run_command("pull", edited, "--out", out, "--format", "json")
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in out.iterdir()) == sorted(DRAWN)
    assert (out / "q3.pdf").read_bytes().startswith(b"%PDF")
    assert edited.read_bytes() == before, "the user's own file was touched"
    assert "(Inputs!B5): 4,096 -> 8,192 tokens" in result.stdout
    assert "CUDA graphs (Inputs!B" in result.stdout and "the workbook agrees" in result.stdout
    assert f"wrote {out / 'q3.scenario.yaml'}" in result.stdout

    again = run_command(
        "build", "--scenario", out / "q3.scenario.yaml", "--out", out, "--name", "again", "--format", "json"
    )
    assert again.exit_code == 0, again.output
    assert (out / "again.json").read_bytes() == (out / "q3.json").read_bytes()


def test_json_has_all_and_nothing_else_on_stdout(edited: Path, tmp_path: Path) -> None:
    result = run_command("pull", edited, "--out", tmp_path, "--name", "x", "--json", "--quiet")
    record: dict[str, Any] = json.loads(result.stdout)
    assert {c["name"]: (c["before"], c["after"], c["place"].split("!")[0]) for c in record["changes"]} == {
        "context_chat": (4096, 8192, "Inputs"),
        "output_long_doc": (2048, 500, "Inputs"),
        "cuda_graph_base_bytes": (53_687_091, 3_000_000_000, "Inputs"),
    }
    assert record["changes"][0]["change_fraction"] == 1
    assert record["recalculation"] == "agrees" and record["overwritten"] == [] and record["other_results"] == []
    assert record["options"]["contexts"] == "chat=8192,long-doc=131072"
    assert without_picks(record["typed"]) == {
        "inputs": {"cuda_graph_base_bytes": 3_000_000_000, "output_long_doc": 500}
    }
    assert record["sheet"]["cells"][0]["context_tokens"] == 8192
    assert record["files"] == [str(tmp_path / f"x.{ending}") for ending in ("pdf", "scenario.yaml")]


@pytest.mark.long
def test_it_never_writes_over_the_workbook(edited: Path) -> None:
    before = edited.read_bytes()
    result = run_command("pull", edited, "--out", edited.parent, "--format", "xlsx")
    assert result.exit_code == 1 and "another --out or --name" in result.stderr
    assert edited.read_bytes() == before
    assert sorted(p.name for p in edited.parent.iterdir()) == ["q3.xlsx"], "something was left behind"


def test_a_folder_to_write_to_that_is_a_link_to_itself_is_told(edited: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    result = run_command("pull", edited, "--out", tmp_path / "loop", "--format", "json")
    assert result.exit_code == 1 and "cannot be written" in result.stderr


def test_what_is_no_workbook_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "plan.xlsx").write_text("a,b\n")
    result = run_command("pull", tmp_path / "plan.xlsx", "--out", tmp_path / "out")
    assert result.exit_code == 1 and len(result.stderr.splitlines()) == 1
    assert str(tmp_path / "plan.xlsx") in result.stderr and not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_workbook_of_a_model_from_a_file_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workbook comes from anybody's mail: it does not say which files of this machine are read."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
        "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
    }  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text(json.dumps(config))
    books.build(tmp_path, "mine", {**LEAN, "models": "./mine.json", "tiers": "64"})
    result = run_command("pull", "mine.xlsx")
    assert result.exit_code == 1 and "./mine.json. Name its models with --models" in result.stderr
    result = run_command("pull", "mine.xlsx", "--models", "./mine.json", "--out", "out")
    assert result.exit_code == 0 and "nothing was changed" in result.stdout


def test_another_model_is_not_pulled_under_its_name(edited: Path) -> None:
    result = run_command("pull", str(edited), "--models", "405b")
    assert result.exit_code == 1 and not result.stdout
    assert "models names llama-3.1-405b" in result.stderr and result.stderr.count("\n") == 1

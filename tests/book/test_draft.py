"""A draft model beside every model of a sheet: in the workbook, in its words, back out of it, and between two."""

from __future__ import annotations

import json
from pathlib import Path

import books
import pytest
from amounts import IN_LONG, amount
from answers import document, page_for
from click.testing import CliRunner
from command_lines import LOAD
from option_values import Options
from recalculation import assert_recalculates, edit_and_recalculate, needs_libreoffice
from workbook_cells import cells, formulas

import sheetgen
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.question.sheet_question import ask
from sheetgen.readback.pulled import pull
from sheetgen.readback.pulled_words import data

DRAFT = "llama-3.2-1b"
TIERS, INSTANCES = ("1,64", "aws/g6.xlarge,gcp/a3-highgpu-8g,") if IN_LONG else ("64", "")
ASKED: Options = {
    "models": "8b,70b",
    "workloads": "chat,rag",
    "tiers": TIERS,
    "headline": "rag:64",
    "draft_model": DRAFT,
    "instances": f"{INSTANCES}aws/g6e.12xlarge,aws/p5.48xlarge",
    "as_of": books.AS_OF,
}
WITHOUT = {name: value for name, value in ASKED.items() if name != "draft_model"}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("draft"), "draft", ASKED)[0]


@pytest.mark.long
@needs_libreoffice
def test_libreoffice_recalculates_every_formula(book: Path, tmp_path: Path) -> None:
    assert_recalculates(book, tmp_path)


@pytest.mark.long
def test_only_a_sheet_with_a_draft_reads_one(book: Path, tmp_path: Path) -> None:
    plain, _ = books.build(tmp_path, "plain", WITHOUT)
    reads = {path: [formula for formula in formulas(path) if "draft" in formula.formula] for path in (book, plain)}
    assert len(reads[book]) > amount(30, 100) and not reads[plain]
    assert len(formulas(book)) == len(formulas(plain)) + 2  # its label and its name on the first sheet
    values = [cell.value for cell in cells(book) if cell.place[0] == "Inputs"]
    assert "Llama 3.2 1B" in values


def test_the_page_says_which_draft_and_what_it_adds() -> None:
    drafted, plain = (page_for(solve(ask(books.catalog(), asked))) for asked in (ASKED, WITHOUT))
    assert "draft model" not in plain.precision
    assert "Llama 3.2 1B" in drafted.precision
    for a, b in zip(plain.models, drafted.models, strict=True):
        assert a.kv_per_token != b.kv_per_token
        assert b.note == "32.0 KiB of it the draft's" and not a.note  # 16 layers x 8 heads x 128 x 2 bytes


@pytest.mark.long
def test_an_edited_workbook_with_a_draft_is_pulled_with_it(book: Path, tmp_path: Path) -> None:
    """The draft's cache follows the KV precision that a reader types."""
    pulled = pull(book, books.catalog())
    assert not pulled.changed and pulled.audit is not None and pulled.audit.verdict == "agrees"
    edited = edit_and_recalculate(book, tmp_path / "edited.xlsx", {"in_kv_cache_dtype": "fp8"})
    back = pull(edited, books.catalog())
    assert [(change.name, change.new) for change in back.changed] == [("kv_cache_dtype", "fp8")]
    assert back.audit is not None and back.audit.verdict == "agrees" and not back.other_results
    assert back.options["draft_model"] == DRAFT and json.dumps(data(back))
    asked = ask(books.catalog(), {**ASKED, "kv_cache_dtype": "fp8"})
    assert document(back.solved)["cells"] == document(solve(asked))["cells"]


@pytest.mark.long
def test_diff_names_the_draft_and_what_it_costs(book: Path, tmp_path: Path) -> None:
    plain, _ = books.build(tmp_path, "plain", WITHOUT)
    result = CliRunner().invoke(main, ["diff", str(plain), str(book)])
    assert result.exit_code == 0 and f": default -> {DRAFT}" in result.output.replace("→", "->")


def test_the_answer_says_that_no_draft_was_measured() -> None:
    answer = sheetgen.recommend(model="70b", context="16k", concurrent_requests=32, draft_model=DRAFT, gpus="h100")
    assert answer["inputs"]["draft_model"] == DRAFT and answer["measured"] is False
    plain = sheetgen.recommend(model="70b", context="16k", concurrent_requests=32, gpus="h100")
    assert plain["inputs"]["draft_model"] is None and plain["measured"] is True
    asked = ["recommend", *LOAD, "--draft-model", DRAFT, "--details"]
    output = CliRunner().invoke(main, asked).output
    words = " ".join(output.split())
    assert ": Llama 3.2 1B as a draft" in words


@pytest.mark.parametrize(
    "models,draft,why",
    [
        ("70b", "70b", "draft_model llama-3.1-70b cannot serve llama-3.1-70b: it is the model itself"),
        ("70b", "qwen3-0.6b", "its vocabulary has 151,936 tokens, the model's 128,256"),
        ("70b", "llama-3.1-8b-speculator.eagle3", "hidden states of 4,096 elements, the model's have 8,192"),
        ("8b", "70b", "it has 70,553,706,496 parameters, the model 8,030,261,248"),
        ("70b", "gemma-3-1b", "only drafts with full attention"),
        ("70b", "llama-3.2-1bb", "is not in the catalogs"),
    ],
)
def test_a_draft_that_cannot_serve_is_refused_alike(models: str, draft: str, why: str) -> None:
    with pytest.raises(SheetgenError, match=why):
        ask(Catalog(), {"models": models, "draft_model": draft})
    with pytest.raises(SheetgenError, match=why):
        sheetgen.size(model=models, draft_model=draft)


def test_each_model_that_it_cannot_serve_is_named() -> None:
    with pytest.raises(ScenarioError) as refused:
        ask(Catalog(), {"models": "70b,8b,qwen3-8b", "draft_model": "8b"})
    assert [problem.split(":")[0] for problem in refused.value.problems] == [
        f"draft_model llama-3.1-8b cannot serve {name}" for name in ("llama-3.1-8b", "qwen3-8b")
    ]

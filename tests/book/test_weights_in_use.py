"""The weights' precision as an input: a workbook with another word typed in says what `build` says of that word."""

from __future__ import annotations

from pathlib import Path

import books
import pytest
from recalculation import values_after

from sheetgen.answer.other_precisions import as_published
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import ask

ASKED = {
    "models": "8b,70b,gpt-oss-120b", "workloads": "chat", "tiers": "1,32", "as_of": books.AS_OF,
    "instances": "aws/g6e.xlarge,aws/p5.48xlarge,azure/Standard_NC80adis_H100_v5",
}  # fmt: skip


def answered(word: str) -> Solution:
    return solve(ask(books.catalog(), {**ASKED, "weight_dtype": word}))


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    return books.build(folder, "recommended", {**ASKED, "weight_dtype": "recommended"}, with_decision=False)[0]


@pytest.mark.some(1)
@pytest.mark.parametrize("word", ["recommended", "published", "auto", "fp8"])
def test_the_workbook_says_what_python_says(book: Path, word: str) -> None:
    after, solved = values_after(book, {"in_weight_dtype": word}), answered(word)
    for load, choice in zip(solved.question.loads, solved.choices, strict=True):
        model = solved.question.models[load.model].model.id
        stem = f"rec_{name_part(model)}_chat_{load.tier + 1}"
        got = tuple(after[f"{stem}_{name}"] for name in ("instance", "n_instances", "monthly_usd"))
        want = solved.candidate(choice.offer).instance, choice.n_instances, choice.monthly_usd
        assert all(map(books.same, got, want)), (stem, got, want)


def test_published_typed_in_is_the_answer_as_published(book: Path) -> None:
    after, solved = values_after(book, {"in_weight_dtype": "published"}), answered("recommended")
    beside = as_published(solved)
    assert sum(model is not None for model in beside) == 4, "of two of the three models"
    for load, model in zip(solved.question.loads, beside, strict=True):
        if model is not None:
            stem = f"rec_{name_part(solved.question.models[load.model].model.id)}_chat_{load.tier + 1}"
            assert after[f"{stem}_instance"] == model.instance
            assert books.same(after[f"{stem}_monthly_usd"], model.monthly_usd)

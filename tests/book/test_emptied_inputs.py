"""An input that somebody empties, or pastes text into, never shows another load's answer as if all were well."""

from __future__ import annotations

import books
import pytest
from amounts import IN_LONG
from recalculation import convert_all, edit, needs_libreoffice, values_after
from workbook_cells import Values, values

from sheetgen.book.sizing_sheet import ANSWERS_ROW

EDITS: dict[str, Values] = {
    "a context emptied": {"in_context_long_doc": None},
    "a tier emptied": {"in_tier_4": None},
    "the first tier emptied": {"in_tier_1": None},
    "a context as text": {"in_context_chat": "4k"},
    "an unknown precision": {"in_kv_cache_dtype": "fp-8"},
    "the utilization emptied": {"in_gpu_memory_utilization": None},
}


FEW = "aws/g6e.xlarge,aws/p5.48xlarge,gcp/a3-highgpu-8g"
IN_LIBREOFFICE = ("a context emptied",)  # in the gate; formualizer has the others typed into it
OPTIONS = {"models": "8b", "instances": FEW, "as_of": books.AS_OF}  # all workloads and tiers


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Values]:
    work = tmp_path_factory.mktemp("emptied")
    book, _ = books.build(work, "built", OPTIONS, with_decision=False)
    typed = {"as built": {}, **EDITS}
    some = [kind for kind in typed if IN_LONG or kind in IN_LIBREOFFICE]
    files = [edit(book, work / f"edit{i}.xlsx", typed[kind]) for i, kind in enumerate(some)]
    done = dict(zip(some, map(values, convert_all(files, work / "out")), strict=True))
    return {kind: done.get(kind) or values_after(book, changes) for kind, changes in typed.items()}


@pytest.mark.some(1)
@needs_libreoffice
@pytest.mark.parametrize("kind", list(EDITS))
def test_the_checks_see_it(answers: dict[str, Values], kind: str) -> None:
    assert answers["as built"]["chk_all"] == "OK"
    assert answers[kind]["chk_all"] == "CHECK"


@needs_libreoffice
@pytest.mark.parametrize("kind", ["a context emptied", "a tier emptied", "the first tier emptied", "a context as text"])
def test_the_headline_stays_with_its_load(answers: dict[str, Values], kind: str) -> None:
    """RAG at 32 at once is not what was edited: what stands on the first sheet must not move."""
    head = [
        ("Sizing sheet", f"{column}{row}") for column in "ABDEFGH" for row in range(ANSWERS_ROW + 2, ANSWERS_ROW + 8)
    ]
    before = {k: answers["as built"].get(k) for k in head}
    assert any(isinstance(v, str) and "×" in v for v in before.values())
    for key, value in before.items():  # a file keeps 15 digits
        same = pytest.approx(value, rel=1e-14) if isinstance(value, float) else value
        assert answers[kind].get(key) == same, key


@needs_libreoffice
def test_no_load_is_not_free(answers: dict[str, Values]) -> None:
    assert answers["a tier emptied"]["rec_llama_3_1_8b_chat_4_monthly_usd"] == "-"
    assert answers["a tier emptied"]["rec_llama_3_1_8b_chat_4_instance"] == "nothing fits"

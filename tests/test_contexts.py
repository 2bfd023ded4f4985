"""`--contexts rag=32k` sizes the workload at another context; its answer keeps its length."""

import pytest

from sheetgen.answer.solve import solve
from sheetgen.book.decision_choices import decision
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.question.sheet_question import ask


def _workloads(contexts: str) -> dict[str, tuple[int, int]]:
    question = ask(Catalog(), {"models": "8b", "contexts": contexts, "as_of": "2026-11-20"})
    return {w.id: (w.input_tokens, w.output_tokens) for w in question.workloads}


def test_the_prompt_takes_the_rest():
    workloads = _workloads("rag=32k,chat=1025")
    assert workloads == {"chat": (1, 1_024), "rag": (31_744, 1_024), "long-doc": (129_024, 2_048)}


@pytest.mark.parametrize("wrong", ["rag", "rag=", "rag=0", "rga=1k", "rag=1k,rag=2k"])
def test_a_wrong_context_is_a_line(wrong):
    with pytest.raises(ScenarioError):
        _workloads(wrong)


def _asked(**options):
    return ask(Catalog(), {"models": "8b", "as_of": "2026-11-20", **options})


def test_a_context_shorter_than_the_answer_is_refused():
    with pytest.raises(ScenarioError) as refused:
        _asked(contexts="rag=512,chat=1000")
    assert [str(p).partition(" of")[0] for p in refused.value.problems] == ["chat: the answer", "rag: the answer"]
    assert "context of 512" in refused.value.problems[1]
    with pytest.raises(ScenarioError, match=r"long-doc: .* 131,073 tokens"):
        _asked(typed={"inputs": {"output_long_doc": 131_073}})


def test_a_shorter_answer_makes_room_for_a_short_context():
    question = _asked(contexts="rag=512", typed={"inputs": {"output_rag": 100}})
    rag = next(w for w in question.workloads if w.id == "rag")
    assert (rag.input_tokens, rag.output_tokens, rag.context_tokens) == (412, 100, 512)


def test_an_answer_longer_than_its_context_is_refused_on_decision():
    typed = {"inputs": {"decision_context_tokens": 1000, "decision_answer_tokens": 1001}}
    with pytest.raises(ScenarioError, match=r"Decision: .* 1,001 tokens .* 1,000"):
        decision(solve(_asked(typed=typed)))

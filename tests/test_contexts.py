"""`--contexts rag=32k` sizes the workload at another context; its answer keeps its length."""

import pytest

from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.scenario.question import ask


def _workloads(contexts: str) -> dict[str, tuple[int, int]]:
    question = ask(Catalog(), {"models": "8b", "contexts": contexts, "as_of": "2026-11-20"})
    return {w.id: (w.input_tokens, w.output_tokens) for w in question.workloads}


def test_the_prompt_takes_the_rest():
    found = _workloads("rag=32k,chat=1000")
    assert found == {"chat": (500, 500), "rag": (31_744, 1_024), "long-doc": (129_024, 2_048)}


@pytest.mark.parametrize("wrong", ["rag", "rag=", "rag=0", "rga=1k", "rag=1k,rag=2k"])
def test_a_wrong_context_is_a_line(wrong):
    with pytest.raises(ScenarioError):
        _workloads(wrong)

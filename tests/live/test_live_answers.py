"""The page's program, run in node, answers random questions as `sheetgen recommend` does."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_questions import differences, in_node, in_python, random_questions, source

# Of the default run: people, at once, a rate; dense, mixture, MLA, hybrid.
FEW = [
    {"model": "70b", "users": 640, "input_tokens": 15_360, "output_tokens": 1024},
    {"model": "DeepSeek-V3", "concurrent_requests": 32, "input_tokens": 3072, "output_tokens": 1024, "confidence": 0.9},
    {"model": "8b", "requests_per_second": 4.5, "input_tokens": 3072, "output_tokens": 256, "purchase": "reserved-1yr"},
    {"model": "qwen3-next-80b-a3b", "users": 200, "input_tokens": 7000, "output_tokens": 1024, "region": "eu"},
    {
        "model": "gpt-oss-120b",
        "users": 3000,
        "input_tokens": 3072,
        "output_tokens": 1024,
        "providers": ["aws", "lambda"],
    },
    {"model": "70b", "concurrent_requests": 1, "input_tokens": 200_000, "output_tokens": 1024},
]


FEW_MODELS = tuple(dict.fromkeys(str(question["model"]) for question in FEW))


def compared(questions: list[dict[str, object]], folder: Path, code: str = "") -> list[str]:
    """What is not the same of all that Python and the page answer."""
    wrong: list[str] = []
    for question, page in zip(questions, in_node(folder, questions, code), strict=True):
        python = in_python(question)
        assert "error" not in page, page["error"]
        if isinstance(page.get("declined"), dict):
            page["declined"] = page["declined"]["purchase"]
        if "refused" in python or "refused" in page:
            both = "refused" in python and "refused" in page
            wrong += (
                [] if both else [f"{question}: {python.get('refused')} in Python, {page.get('refused')} on the page"]
            )
        else:
            wrong += [f"{question}{text}" for text in differences(python, page)]
    return wrong


def test_a_few_of_every_kind(tmp_path: Path) -> None:
    assert compared(FEW, tmp_path, source(FEW_MODELS)) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_random_questions(seed: int, tmp_path: Path) -> None:
    assert compared(list(random_questions(seed, 100)), tmp_path) == []


def test_another_formula_is_seen(tmp_path: Path) -> None:
    """The twin that must fail: replicas are rounded down, and a year has eleven months."""
    code = source(FEW_MODELS)
    for right, wrong in (
        ("roundUp(ratioOr(load_requests,paced_requests,0))", "Math.floor(ratioOr(load_requests,paced_requests,0))"),
        ('"months_in_a_year",12', '"months_in_a_year",11'),
    ):
        assert right in code
        assert compared(FEW[:1], tmp_path, code.replace(right, wrong)) != []

"""The page's program, run in node, answers random questions as `sheetgen recommend` does."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from live_questions import Question, differences, in_node, in_python, random_questions, source

from sheetgen.question.sheet_question import DeclinedReason
from sheetgen.report.pay_less_words import WAYS
from sheetgen.report.sentences import MEASURE_FIRST

LARGE: Question = {
    "model": "70b",
    "users": 500,
    "requests_per_user_per_day": 20,
    "input_tokens": 15_360,
    "output_tokens": 1024,
}
# Of the default run: people, at once, a rate; dense, mixture, MLA, hybrid.
FEW: list[Question] = [
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
    {"model": "qwen3-embedding-8b", "concurrent_requests": 10, "input_tokens": 4096, "output_tokens": 1},
    # Nothing meets the targets: one of them, or each alone.
    {"model": "70b", "users": 640, "input_tokens": 3072, "output_tokens": 1024, "ttft_ms": 10},
    {"model": "70b", "users": 640, "input_tokens": 15_360, "output_tokens": 1024, "ttft_ms": 20, "tpot_ms": 3},
    # The same machines are surer at a step between in another layout.
    {
        "model": "mathstral-7b-v0.1",
        "users": 640,
        "requests_per_user_per_day": 60,
        "input_tokens": 3072,
        "output_tokens": 8,
        "weight_dtype": "bf16",
    },
    # A way that is less sure than the answer beside one that is as sure: another provider's, and a term.
    {"model": "70b", "users": 20, "input_tokens": 15_360, "output_tokens": 1024},
    {"model": "8b", "users": 100, "input_tokens": 15_360, "output_tokens": 1024},
    # A term, beside which others sell on demand for less, less sure and surer.
    {**LARGE, "purchase": "reserved-3yr"},
    # The cheapest at another provider is on very many machines, and its near tie is on few.
    {
        "model": "gemma-2-27b",
        "requests_per_second": 60.0,
        "input_tokens": 3072,
        "output_tokens": 2048,
        "weight_dtype": "nvfp4",
        "confidence": 0.5,
    },
]


Faults = tuple[tuple[str, str], ...]
# What stands in the page's program, and what is put in its place: in formulas, facts, and the rules around them.
FAULTS: Faults = (
    ("roundUp(ratioOr(load_requests,paced_requests,0))", "Math.floor(ratioOr(load_requests,paced_requests,0))"),
    ('"months_in_a_year",12', '"months_in_a_year",11'),
    ('"near_tie_fraction",0.05', '"near_tie_fraction",0.5'),
    ('"gpu_memory_utilization",0.92', '"gpu_memory_utilization",0.9'),
    ('"peak_hour_share",0.12', '"peak_hour_share",0.2'),
    ('"wait_z",1.7', '"wait_z",2.7'),
    ('"max_prefill_utilization",0.8', '"max_prefill_utilization",0.02'),
    ('"band_end_z",1.2816', '"band_end_z",0.6'),
    ('"burst_factor",1.3', '"burst_factor",1.0'),
    ("isRate: !asked.concurrent_requests", "isRate: true"),
    ("* layouts.length + layout }", "* layouts.length }"),
    ("confidence: question.confidence,", "confidence: 0.5,"),
    ('"at_sure_chance"', '"at_even_chance"'),
    ("FACTS.layouts[place][1] === 1", "FACTS.layouts[place][0] === 1"),
    ("purchases[name].months * rental.monthly_usd", "rental.monthly_usd"),
    ("* judged.working_hours_per_month) / CONSTANTS", ") / CONSTANTS"),
    ("one.cents - other.cents", "other.cents - one.cents"),
    ('read("steady_bytes") * sizes.tensor_parallel_size', 'read("steady_bytes")'),
    ("!taken.has(key) && isSaving", "isSaving"),
    ("lower.deploys && model.deploys && runs", "false"),
)
FEW_MODELS = tuple(dict.fromkeys(str(question["model"]) for question in FEW))


def compared(questions: list[Question], code: str = "", in_words: list[dict[str, Any]] | None = None) -> list[str]:
    """The differences between Python's answers and the page's. in_words: Python's answers, where they are known."""
    wrong: list[str] = []
    expected = in_words or [in_python(question) for question in questions]
    for question, python, page in zip(questions, expected, in_node(questions, code), strict=True):
        if "error" in page:
            wrong.append(f"{question}: {page['error']}")
        elif "refused" in python or "refused" in page:
            if "refused" not in python or "refused" not in page:
                wrong.append(f"{question}: {python.get('refused')} in Python, {page.get('refused')} on the page")
        else:
            wrong += [f"{question}{text}" for text in differences(python, page)]
    return wrong


def test_a_few_of_every_kind() -> None:
    assert compared(FEW, source(FEW_MODELS)) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_random_questions(seed: int) -> None:
    assert compared(list(random_questions(seed, 100))) == []


@pytest.mark.long
def test_every_rule_that_is_written_twice_is_walked() -> None:
    """The order of ways to pay less, those as sure as the answer, the reasons to measure first and those that decline a
    class, the replicas of a machine and the larger machine are written in both languages: the random questions reach
    each."""
    answers = [in_python(question) for seed in range(1, 6) for question in random_questions(seed, 100)]
    answers_given = [answer for answer in answers if "refused" not in answer]
    assert {way["kind"] for answer in answers_given for way in answer["pay_less"] or ()} == set(WAYS)
    assert {reason for answer in answers_given for reason in answer.get("measure_first", ())} == set(MEASURE_FIRST)
    assert {way["kind"] for answer in answers_given for way in answer["as_sure"] or ()} == {"term", "provider"}
    answered = [answer for answer in answers_given if answer["waits"]]
    for name in ("larger", "cheapest_same", "is_worth_it"):
        assert {bool(answer[name]) for answer in answered} == {True, False}, name
    assert {answer["replicas_of_machine"] > 1 for answer in answered} == {True, False}
    assert {bool(answer["waits"]["same_moment"]) for answer in answered} == {True, False}
    assert {answer["declined"]["reason"] for answer in answers_given if answer["declined"]} == set(
        get_args(DeclinedReason)
    )


def noticed(faults: Faults) -> list[bool]:
    """Of each fault, planted in the page's program by itself, whether a question of the few is answered otherwise."""
    code, asked = source(FEW_MODELS), FEW[:5]
    expected = [in_python(question) for question in asked]
    assert compared(asked, code, expected) == []
    answers = []
    for right, wrong in faults:
        assert right in code, right
        answers.append(compared(asked, code.replace(right, wrong), expected) != [])
    return answers


def test_another_formula_is_seen() -> None:
    """Twins that must fail: replicas are rounded down, and a year has eleven months."""
    assert noticed(FAULTS[:2]) == [True, True]


@pytest.mark.long
def test_planted_faults_are_noticed() -> None:
    assert noticed(FAULTS) == [True] * len(FAULTS)

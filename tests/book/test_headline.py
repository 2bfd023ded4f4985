"""The load on the first sheet: any number typed there is answered; the grid below has the tiers, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import books
import pytest
from amounts import IN_LONG, amount
from cells_of import FEW
from option_values import Options
from recalculation import values_after
from workbook_cells import Values, values

from sheetgen.answer.solution import headline_rows
from sheetgen.answer.solve import solve
from sheetgen.book.sizing_sheet import COSTS
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import ask

FEWER = {"models": "8b,gemma-3-27b,gpt-oss-20b"} if IN_LONG else {"models": "8b,gpt-oss-20b", "instances": FEW}
SMALL = {**books.SMALL, **FEWER}  # whose headline is Chat at 32
N_MODELS, N_WORKLOADS = amount(2, 3), 2
RATE = {**SMALL, "requests_per_second": "3", "headline": "chat"}
TITLE = ("Sizing sheet", "A3")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("headline"), "small", SMALL, with_decision=False)[0]


@pytest.fixture(scope="module")
def rate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("headline"), "rate", RATE, with_decision=False)[0]


def answers(options: Options) -> dict[str, Any]:
    """The answers of solve for the headline, under the names of the workbook."""
    solved = solve(ask(books.catalog(), options))
    answers = {}
    for row in headline_rows(solved):
        choice = solved.choices[row]
        stem = f"rec_{name_part(solved.model_of(row).model.id)}_headline"
        fits = choice.offer is not None
        answers[f"{stem}_instance"] = solved.candidate(choice.offer).instance if fits else choice.verdict
        answers[f"{stem}_n_instances"] = choice.n_instances if fits else "-"
        answers[f"{stem}_monthly_usd"] = choice.monthly_usd if fits else "-"
    return answers


def grid(values: Values) -> list[tuple[str, str, Any]]:
    """The cells of the first model's band on the first sheet: workload, load, $ per month."""
    labels = {int(key[1][1:]): value for key, value in values.items() if key[0] == "Sizing sheet" and key[1][0] == "A"}
    [top] = [row for row, label in labels.items() if str(label).startswith(COSTS)]
    heads = {column: values["Sizing sheet", f"{column}{top + 1}"] for column in "BDF"}
    rows = [top + 3 + N_WORKLOADS + 1 + 2 * w for w in range(N_WORKLOADS)]
    return [(labels[row], load, values["Sizing sheet", f"{c}{row}"]) for row in rows for c, load in heads.items()]


def agree(values: Values, want: dict[str, Any]) -> None:
    assert len(want) == 3 * N_MODELS
    for name, value in want.items():
        assert values[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("workload", "number", "headline"),
    [
        ("Chat", 200, "chat:200"),
        ("Long document", 7, "long-doc:7"),
        ("chat", 32, "chat:32"),
        ("Chat", 5000, "chat:5000"),
    ],
)
def test_any_number_is_answered(book: Path, workload: str, number: int, headline: str) -> None:
    by_place = values_after(book, {"in_headline_workload": workload, "in_headline_tier": number})
    agree(by_place, answers({**SMALL, "headline": headline}))
    assert str(by_place[TITLE]).startswith(f"{number:,} ") and by_place["chk_all"] == "OK"


def test_a_tier_changed_on_inputs_leaves_the_answer_with_its_number(book: Path) -> None:
    by_place = values_after(book, {"in_tier_2": 200})
    agree(by_place, answers(SMALL))
    assert str(by_place[TITLE]).startswith("32 chats at once: $") and by_place["in_headline_tier"] == 32
    assert by_place["chk_all"] == "OK"


@pytest.mark.parametrize("tiers", [{}, {"in_tier_1": 300, "in_tier_3": 20}])
def test_the_grid_has_every_tier_in_order_at_the_price_of_the_headline(book: Path, tiers: dict[str, int]) -> None:
    by_place = values_after(book, tiers)
    numbers = sorted(by_place[f"in_tier_{n}"] for n in (1, 2, 3))
    cells = grid(by_place)
    assert [(w, load) for w, load, _ in cells] == [
        (workload, f"{n:,.0f} at once") for workload in ("Chat", "Long document") for n in numbers
    ]
    for (workload, _, usd), number in list(zip(cells, numbers * N_WORKLOADS, strict=True))[:: amount(2, 1)]:
        headline = {**tiers, "in_headline_workload": workload, "in_headline_tier": number}
        assert usd == values_after(book, headline)["rec_llama_3_1_8b_headline_monthly_usd"], (workload, number)


@pytest.mark.some(1)
@pytest.mark.parametrize("typed", ["many", 0, -5, 2.5, None])
def test_what_is_no_number_leaves_the_load_as_built_and_says_so(book: Path, typed: object) -> None:
    by_place = values_after(book, {"in_headline_tier": typed})
    agree(by_place, answers(SMALL))
    assert str(by_place[TITLE]).startswith("32 chats at once; ") and " is no whole number from 1: $" in by_place[TITLE]
    assert by_place["chk_all"] == "CHECK"


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(("typed", "headline"), [("rate", "chat"), (7, "chat:7"), (32, "long-doc:32")])
def test_of_a_rate_numbers_are_answered_too(rate: Path, typed: object, headline: str) -> None:
    workload = {"chat": "Chat", "long-doc": "Long document"}[headline.partition(":")[0]]
    by_place = values_after(rate, {"in_headline_workload": workload, "in_headline_tier": typed})
    agree(by_place, answers({**RATE, "headline": headline}))


@pytest.mark.long
def test_a_number_of_no_tier_is_built(tmp_path: Path) -> None:
    path, question = books.build(tmp_path, "typed", {**SMALL, "headline": "chat:200"}, with_decision=False)
    by_place = values(path)
    assert question.typed == 200 and question.numbers[question.headline[1]] == 200
    agree(by_place, answers({**SMALL, "headline": "chat:200"}))
    assert by_place["in_headline_tier"] == 200 and str(by_place[TITLE]).startswith("200 chats at once")
    assert len(question.loads) == N_MODELS * (2 * 3 + 1)

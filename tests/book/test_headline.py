"""The load on the first sheet: any number typed there is answered, in a row of its own, and never beside another."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import books
import pytest
from amounts import IN_LONG, amount
from cells_of import FEW
from recalculation import values_after
from workbook_cells import values

from sheetgen.answer.solution import headline_rows
from sheetgen.answer.solve import solve
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import ask

FEWER = {"models": "8b,gemma-3-27b,gpt-oss-20b"} if IN_LONG else {"models": "8b,gpt-oss-20b", "instances": FEW}
SMALL = {**books.SMALL, **FEWER}  # whose headline is Chat at 32
N_MODELS = amount(2, 3)
RATE = {**SMALL, "requests_per_second": "3", "headline": "chat"}
WORDS, AS_BUILT = ("Sizing sheet", "A7"), ("Sizing sheet", "D12")  # the answer's load; what drove its size
FIRST_ROW = 27  # of the table
OTHER = "any other: type it above"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("headline"), "small", SMALL, with_what_if=False)[0]


@pytest.fixture(scope="module")
def rate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("headline"), "rate", RATE, with_what_if=False)[0]


def answers(options: dict[str, Any]) -> dict[str, Any]:
    """What solve says of the headline, under the names of the workbook."""
    solved = solve(ask(books.catalog(), options))
    found = {}
    for row in headline_rows(solved):
        choice = solved.choices[row]
        stem = f"rec_{name_part(solved.model_of(row).model.id)}_headline"
        fits = choice.offer is not None
        found[f"{stem}_instance"] = solved.candidate(choice.offer).instance if fits else choice.verdict
        found[f"{stem}_n_instances"] = choice.n_instances if fits else "-"
        found[f"{stem}_monthly_usd"] = choice.monthly_usd if fits else "-"
    return found


def table(found: dict[Any, Any]) -> list[tuple[str, Any, Any]]:
    """The rows of the table on the first sheet: load, at once, and the first model's $ per month."""
    rows = itertools.takewhile(lambda r: ("Sizing sheet", f"A{r}") in found, itertools.count(FIRST_ROW))
    return [tuple(found["Sizing sheet", f"{column}{row}"] for column in "ABG") for row in rows]  # type: ignore[misc]


def marked(found: dict[Any, Any]) -> Any:
    """The number of the one row that is marked as the case above."""
    [number] = [at_once for load, at_once, _ in table(found) if load.startswith("◆")]
    return number


def agree(found: dict[Any, Any], want: dict[str, Any]) -> None:
    assert len(want) == 3 * N_MODELS
    for name, value in want.items():
        assert found[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name


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
    found = values_after(book, {"in_headline_workload": workload, "in_headline_tier": number})
    agree(found, answers({**SMALL, "headline": headline}))
    assert found[WORDS].lower() == f"{workload}, {number} at once".lower() and marked(found) == number
    assert found["chk_all"] == "OK"


def as_built(book: Path) -> list[Any]:
    """What drives the size at each tier of Chat on the first model, as built."""
    built = books.Sheets(book)
    head = built.columns["Workings", "As built: what drives the size"]
    return [built.values["Workings", f"{head}{books.HEAD + n}"] for n in (1, 2, 3)]


def test_what_was_worked_out_when_it_was_built_is_that_of_the_load_or_a_dash(book: Path) -> None:
    """What set the size, of a tier: the words of its row; of a number for which nothing was worked out none."""
    for number, words in zip((1, 32, 256, 200), (*as_built(book), "-"), strict=True):
        assert values_after(book, {"in_headline_tier": number})[AS_BUILT] == words


def test_what_was_worked_out_never_stands_beside_a_changed_input(book: Path) -> None:
    """What drives the size and what FP8 takes, on the first sheet and on Money: gone after an edit, and
    back with the input."""
    built = books.Sheets(book).values
    tops = [int(cell[1:]) for (_, cell), value in built.items() if value == "Each class answered anew"]
    stale = [("Sizing sheet", cell) for cell in ("D12", "D14", "F14")]
    stale += [("Money", f"{column}{top + n}") for top in tops for n in range(1, 6) for column in "BE"]
    assert any(built[one] not in ("-", None) for one in stale[-10:])
    for edit in ({"in_tier_2": 200}, {"in_hours_per_month": 700}, {"in_context_chat": 8192}):
        found = values_after(book, edit)
        assert {found[one] for one in stale} == {"-"}, edit
    assert values_after(book, {"in_headline_tier": 32})[AS_BUILT] == as_built(book)[1]


def test_a_tier_changed_on_inputs_leaves_the_answer_with_its_number(book: Path) -> None:
    found = values_after(book, {"in_tier_2": 200})
    agree(found, answers(SMALL))
    assert found[WORDS] == "Chat, 32 at once" and found["in_headline_tier"] == marked(found) == 32
    assert found["chk_all"] == "OK"


@pytest.mark.some(1)
@pytest.mark.parametrize("typed", [1, 20, 32, 200, 5000])
@pytest.mark.parametrize("tiers", [{}, {"in_tier_1": 300, "in_tier_3": 20}])
def test_the_table_has_every_load_once_in_order(book: Path, typed: int, tiers: dict[str, int]) -> None:
    found = values_after(book, {**tiers, "in_headline_workload": "Long document", "in_headline_tier": typed})
    numbers = sorted(found[f"in_tier_{n}"] for n in (1, 2, 3))
    want = [("Chat 4k", n) for n in numbers] + [("Long document 128k", n) for n in sorted({*numbers, typed})]
    rows = [(load.removeprefix("◆ "), at_once) for load, at_once, _ in table(found)]
    assert rows == [*want, *([(OTHER, "-")] if typed in numbers else [])]
    assert marked(found) == typed
    for load, at_once, usd in table(found)[:: amount(2, 1)]:
        if load != OTHER:
            headline = {"in_headline_workload": load.removeprefix("◆ ").rpartition(" ")[0], "in_headline_tier": at_once}
            assert usd == values_after(book, headline)["rec_llama_3_1_8b_headline_monthly_usd"], (load, at_once)


@pytest.mark.some(1)
@pytest.mark.parametrize("typed", ["many", 0, -5, 2.5, None])
def test_what_is_no_number_leaves_the_load_as_built_and_says_so(book: Path, typed: Any) -> None:
    found = values_after(book, {"in_headline_tier": typed})
    agree(found, answers(SMALL))
    assert found[WORDS].startswith("Chat, 32 at once; ") and found[WORDS].endswith(" is no whole number from 1")
    assert marked(found) == 32 and found["chk_all"] == "CHECK"


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(("typed", "headline"), [("rate", "chat"), (7, "chat:7"), (32, "long-doc:32")])
def test_of_a_rate_numbers_are_answered_too(rate: Path, typed: Any, headline: str) -> None:
    workload = {"chat": "Chat", "long-doc": "Long document"}[headline.partition(":")[0]]
    found = values_after(rate, {"in_headline_workload": workload, "in_headline_tier": typed})
    agree(found, answers({**RATE, "headline": headline}))


@pytest.mark.long
def test_a_number_of_no_tier_is_built_and_has_its_row(tmp_path: Path) -> None:
    path, question = books.build(tmp_path, "typed", {**SMALL, "headline": "chat:200"}, with_what_if=False)
    found = values(path)
    assert question.typed == 200 and question.numbers[question.headline[1]] == 200
    agree(found, answers({**SMALL, "headline": "chat:200"}))
    assert marked(found) == found["in_headline_tier"] == 200
    assert len(question.loads) == N_MODELS * (2 * 3 + 1)

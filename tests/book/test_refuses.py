"""A workbook says what it cannot refuse: no such name, facts missing, an answer longer than its context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import books
import pytest
from amounts import IN_LONG
from cells_of import FEW
from recalculation import compare, edit, recalculate_with_formualizer, values_after
from workbook_cells import PRICES_SHEET, CellValue, ErrorValue, Values, values

from sheetgen.book.sizing_sheet import WHY_ROW
from sheetgen.errors import SheetgenError
from sheetgen.readback.pulled import pull

INSTANCES = books.INSTANCES if IN_LONG else FEW
OPTIONS = {"models": "8b", "workloads": "rag", "tiers": "32", "instances": INSTANCES, "as_of": books.AS_OF}
TO_RENT = ("Decision", "D7")
OWN = 6  # the first spare row of Models
BEGUN = {"model": "Ours", "n_layers": 40, "n_heads": 40, "n_params": 14e9}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("refuses"), "one", OPTIONS)[0]


def _after(book: Path, cells: Values) -> Values:
    by_place = values_after(book, cells)
    errors = [key for key, value in by_place.items() if isinstance(value, ErrorValue)]
    assert not errors, f"errors in {errors[:5]}"
    return by_place


def _begun(book: Path, facts: dict[str, CellValue]) -> Values:
    """The first spare row of Models with these facts."""
    from sheetgen.book.catalogs import LABELS

    columns = books.Sheets(book).columns
    return {("Models", f"{columns['Models', {**LABELS, 'model': 'Model'}[k]]}{OWN}"): v for k, v in facts.items()}


def _numbers_beside_choices(values: Values) -> list[float]:
    """The numbers in the columns of Decision that hold answers alone: its cases and ways to pay less."""
    cells = [values.get(("Decision", f"{column}{row}")) for column in "EFG" for row in range(1, 100)]
    return [value for value in cells if isinstance(value, (int, float))]


REASONS = (("Sizing sheet", f"A{WHY_ROW + 1}"), ("Inputs", "E3"))  # beside the word for all checks


def _line_of(book: Path, by_place: Values, check: str) -> str:
    """The words of a check's line."""
    ((sheet, cell),) = books.opened(book).defined_names[check].destinations
    return str(by_place[sheet.strip("'"), f"A{cell.rpartition('$')[2]}"])


def test_an_old_price_is_a_remark_and_no_fault(book: Path) -> None:
    """In two years every price is old: the workbook says so, and still adds up."""
    built = _after(book, {})
    after = _after(book, {"in_as_of": built["in_as_of"] + 730})
    assert after["chk_all"] == built["chk_all"] == "OK"
    days = f"older than {built['in_stale_after_days']:g} days"
    assert days in after["chk_why"] and days not in built["chk_why"]
    assert {after[place] for place in REASONS} == {after["chk_why"]}


def test_as_built_all_checks_hold(book: Path) -> None:
    by_place = _after(book, {})
    assert len(_numbers_beside_choices(by_place)) > 15
    assert by_place["chk_all"] == "OK" and by_place["chk_decision"] == by_place["chk_answers_fit"] == "OK"


@pytest.mark.parametrize(
    ("typed", "check"),
    [
        ({"in_currency": "EUR"}, "chk_currency"),
        ({"in_currency": None, "in_fx_rate": 0.9}, "chk_currency"),
        ({"in_fx_rate": 0.9}, "chk_currency"),
        ({"in_tier_1": 32.5}, "chk_inputs_in_range"),
        ({"in_zones": 2.5}, "chk_inputs_in_range"),
        ({"in_hours_per_month": 0}, "chk_inputs_in_range"),
    ],
)
def test_what_pull_refuses_the_checks_say(book: Path, typed: dict[str, CellValue], check: str, tmp_path: Path) -> None:
    by_place = _after(book, typed)
    assert (by_place["chk_all"], by_place[check]) == ("CHECK", "CHECK")
    reason, line = by_place["chk_why"], _line_of(book, by_place, check)
    assert reason.startswith(line.replace(": none", ":")), "the reason is that line"
    assert {by_place[place] for place in REASONS} == {reason}
    with pytest.raises(SheetgenError):
        pull(str(edit(book, tmp_path / "edited.xlsx", typed)), books.catalog())


def test_a_currency_with_its_rate_is_right(book: Path) -> None:
    assert _after(book, {"in_currency": "EUR", "in_fx_rate": 0.9})["chk_all"] == "OK"


def test_an_answer_longer_than_its_context_turns_the_light_off(book: Path) -> None:
    after = _after(book, {"in_output_rag": 16_385})
    assert (after["chk_all"], after["chk_answers_fit"]) == ("CHECK", "CHECK")
    after = _after(book, {"in_decision_answer_tokens": 16_385})
    assert after["chk_all"] == "CHECK" and "longer than" in after[TO_RENT]
    assert after["rec_decision_monthly_usd"] == "-"


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("choice", "typed", "words"),
    [
        ("model", "Llama 9", "no such model: Llama 9"),
        ("model", "Llama*", "no such model: Llama*"),
        ("provider", "acme", "no such provider: acme"),
        ("provider", "-", "no such provider: -"),
        ("purchase", "rent", "no such purchase class: rent"),
        ("confidence", 2, "the confidence must be a share"),
        ("weight_dtype", "fp-8", "no such precision of weights: fp-8"),
        ("kv_cache_dtype", "fp-8", "no such precision of the KV cache: fp-8"),
        ("concurrent_requests", None, "requests at once must be a whole number from 1"),
        ("concurrent_requests", 1.5, "requests at once must be a whole number from 1"),
        ("concurrent_requests", "many", "requests at once must be a whole number from 1"),
        ("context_tokens", "16k", "the context must be a whole number from 1"),
        ("answer_tokens", -5, "the answer must be a whole number from 0"),
        ("tpot_ms", "fast", "the target must be a number of milliseconds, or blank"),
        ("requests_per_user_per_day", None, "the questions a day of each must be a number above 0"),
    ],
)
def test_a_name_of_no_list_gives_words_and_no_numbers(book: Path, choice: str, typed: object, words: str) -> None:
    beside: dict[str, dict[str, Any]] = {
        "requests_per_user_per_day": {"in_decision_users": 460},
    }
    blank = beside.get(choice, {})
    by_place = _after(book, {f"in_decision_{choice}": typed, **blank})
    assert by_place[TO_RENT] == words and str(by_place["Decision", "A1"]).endswith(words)
    assert (by_place["chk_decision_choices"], by_place["chk_all"]) == ("CHECK", "CHECK")
    names = [name for name in by_place if isinstance(name, str) and name.startswith(("rec_decision", "rec_case"))]
    shown = {by_place[name] for name in names if name != "rec_decision_instance"}
    assert shown == {"-"} and not _numbers_beside_choices(by_place), f"{choice} {typed}: {shown}"


def test_a_half_filled_model_has_no_price_and_its_facts_are_named(book: Path) -> None:
    by_place = _after(book, {**_begun(book, BEGUN), "in_decision_model": "Ours"})
    assert by_place[TO_RENT].startswith("Ours: ") and "hidden size · vocabulary" in by_place[TO_RENT]
    assert "layers of some kind" in by_place[TO_RENT] and "query heads" not in by_place[TO_RENT]
    assert (by_place["chk_own_models"], by_place["chk_decision_choices"], by_place["chk_all"]) == ("CHECK",) * 3
    assert by_place["rec_decision_monthly_usd"] == "-"


def test_a_row_without_a_name_is_unfinished(book: Path) -> None:
    by_place = _after(book, _begun(book, {"n_layers": 40}))
    assert by_place["chk_own_models"] == "CHECK" and "a name is missing" in by_place.values()


def test_a_name_that_the_catalog_has_is_no_name_for_ones_own(book: Path) -> None:
    shape = {k: v for k, v in books.catalog().model("8b").shape().items() if v}
    facts = {**shape, "model": "llama 3.1 70B"}
    after = _after(book, _begun(book, facts))
    assert after["chk_own_models"] == "CHECK" and "another row has this name" in after.values()
    after = _after(book, _begun(book, {**facts, "model": "Ours 70B"}))
    assert after["chk_own_models"] == "OK"


def test_every_model_of_the_catalog_has_its_facts() -> None:
    from sheetgen.report.sentences import LACKS, model_lacks

    lacks = {m.id: model_lacks.of(m.shape()) for m in books.catalog().models() if m.kind != "draft"}
    assert not {k: v for k, v in lacks.items() if v != LACKS}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"Type": "box"}, "facts missing: · provider · GPU · GPUs · $ per hour"),
        (
            {"Type": "box", "Provider": "acme", "GPU": "h1000", "GPUs": 8, "$ per hour": 2.0},
            "facts missing: · a GPU of the GPUs sheet",
        ),
        (
            {"Type": "box", "Provider": "acme", "GPU": "nvidia-l4-24gb", "GPUs": 8, "$ per hour": 0},
            "facts missing: · $ per hour",
        ),
        ({"Type": "box", "Provider": "acme", "GPU": "nvidia-l4-24gb", "GPUs": 8, "$ per hour": 2.0}, "OK"),
        (
            {"Type": "G6.xlarge", "Provider": "aws", "GPU": "nvidia-l4-24gb", "GPUs": 1, "$ per hour": 2.0},
            "another row has this name",
        ),
    ],
)
def test_an_unfinished_instance_of_ones_own_is_named(book: Path, typed: dict[str, CellValue], words: str) -> None:
    sheets = books.Sheets(book)
    row = sheets.spare()
    by_place = _after(book, {sheets.at(PRICES_SHEET, row, head): value for head, value in typed.items()})
    assert by_place["chk_own_instances"] == ("OK" if words == "OK" else "CHECK")
    assert words in {
        value for key, value in by_place.items() if isinstance(key, tuple) and key[0] == "Sources and checks"
    }


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "typed",
    [
        {"inputs": {"decision_model": "Llama 9"}},
        {"inputs": {"decision_provider": "acme", "decision_kv_cache_dtype": "fp8"}},
        {"inputs": {"decision_weight_dtype": "fp-8", "decision_purchase": "spot", "decision_confidence": 0.9}},
        {"inputs": {"decision_model": "(your own model)"}},
        {"inputs": {"decision_model": "Llama 3.1 405B", "decision_users": 9000}},
        {"inputs": {"decision_model": "Ours"}, "own_models": [BEGUN]},
        {"own_instances": [{"provider": "acme", "type": "box"}]},
        {"inputs": {"decision_provider": "acme"}, "own_instances": [{"provider": "acme", "type": "box"}]},
    ],
    ids=lambda typed: str(list(typed.get("inputs", {"own": 1}))),
)
def test_python_says_the_same_in_every_cell(tmp_path: Path, typed: dict[str, CellValue]) -> None:
    """A workbook built with these values has beside its formulas what they give."""
    path = books.build(tmp_path, "typed", {**OPTIONS, "typed": typed})[0]
    result = compare(path, recalculate_with_formualizer(path, tmp_path / "r.xlsx"))
    assert not result.mismatches, str(result)


def test_replicas_hold_what_all_their_ranks_hold(tmp_path: Path) -> None:
    """A rank of a data-parallel layout holds a share of its replica's load: the check counts the replica's ranks."""
    options = {
        **OPTIONS,
        "models": "deepseek-v3",
        "workloads": "long-doc",
        "tiers": "100,128",
        "instances": "aws/p6-b200.48xlarge",
    }
    path, _ = books.build(tmp_path, "ranks", options, with_decision=False)
    after, sheets = values(path), books.Sheets(path)
    heads = "DP", "Sequences per rank", "Replicas"
    ranks, held, replicas = (sheets.values["Workings", f"{sheets.columns['Workings', head]}5"] for head in heads)
    assert ranks > 1 and held * replicas < 100
    assert after["chk_loads_held"] == after["chk_all"] == "OK"

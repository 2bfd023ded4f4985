"""One truth: a figure or a risk of the record stands on every output that speaks of it, and is drawn from its key.

A key of the record is changed, and every output drawn anew. Which of them change, and say the new figure, is written
down here by key: an output that has the figure from elsewhere, or a new one that forgets it, fails.
"""

from __future__ import annotations

import functools
import html
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from answers import book_for, record_for

from sheetgen.answer.answer_record import CellRecord, Record, as_json
from sheetgen.answer.solve import solve
from sheetgen.book.decision_choices import decision
from sheetgen.catalog import Catalog
from sheetgen.mail.message import Letter, bodies
from sheetgen.question.sheet_question import Question, ask
from sheetgen.report.answer_lines import Shown, answer_lines, answer_words
from sheetgen.report.build_page import build_page
from sheetgen.units import listed
from sheetgen.writers.csv import write_loads
from sheetgen.writers.formats import Options, templates_folder
from sheetgen.writers.html import render_html
from sheetgen.writers.markdown import write_brief

ASKED = {"models": "70b", "ask": "70b", "users": "320", "as_of": "2026-11-20"}  # an answer whose risks are many
REQUEST, SHEET, ENGINEERS, MAIL, MARKDOWN, CSV, JSON, TERMINAL = OUTPUTS = (
    *("request", "sheet", "engineers", "mail", "markdown", "csv", "json", "terminal"),
)
ALL = {*OUTPUTS}
PAPERS = {REQUEST, SHEET, MAIL, MARKDOWN}
EXCEL_EPOCH = date(1899, 12, 30)
FACTOR = 1.0371  # which no other figure of the answer is of another


@functools.cache
def answered() -> tuple[Record, Question]:
    question = ask(Catalog(), ASKED)
    return record_for(solve(question)), question


def seen(text: str) -> str:
    """The text of HTML as a reader sees it, in one line."""
    return " ".join(html.unescape(re.sub(r"<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)).split())


def drawn(record: Record, question: Question) -> dict[str, str]:
    """Every output of a record as text."""
    page, options = build_page(record, question), Options(templates_folder())
    (cell,) = record.headline_cells
    printed = render_html(page, templates=options.templates)
    request, sheet, engineers = re.split(r'<main class="first">|<aside class="engineers"[^>]*>', printed)
    return {
        REQUEST: seen(request.partition('<section class="request"')[2]),
        SHEET: seen(sheet),
        ENGINEERS: seen(engineers),
        MAIL: bodies(Letter(page, "sheet"), options.templates)[0],
        MARKDOWN: write_brief(page, options).decode().replace("\\", ""),
        CSV: write_loads(record, options).decode(),
        JSON: json.dumps(as_json(cell)),
        TERMINAL: "\n".join(
            (answer_words(question, cell), *(line.text for line in answer_lines(question, cell, Shown(n_ways=9))))
        ),
    }


def changed(part: Any, path: tuple[str | int, ...], change: Callable[[Any], Any]) -> Any:
    """A part of the record with the value at a path of its keys changed."""
    key, *rest = path
    inside = part[key] if isinstance(key, int) else getattr(part, key)
    value = changed(inside, tuple(rest), change) if rest else change(inside)
    if isinstance(key, int):
        return (*part[:key], value, *part[key + 1 :])
    return replace(part, **{key: value})


def said_by(path: tuple[str | int, ...], change: Callable[[Any], Any]) -> dict[str, tuple[str, str]]:
    """The outputs that differ where a key of the asked load does: before and after."""
    record, question = answered()
    (row,) = record.headline
    other = changed(record, ("cells", row, *path), change)
    before, after = drawn(record, question), drawn(other, question)
    return {name: (before[name], after[name]) for name in OUTPUTS if before[name] != after[name]}


def cell_now() -> CellRecord:
    (cell,) = answered()[0].headline_cells
    return cell


def at(kind: str) -> int:
    """The place of a way to pay less in the record."""
    return [way.kind for way in cell_now().pay_less].index(kind)


def figures_of(usd: float) -> set[str]:
    """How outputs write an amount."""
    return {f"${usd:,.0f}", f"{usd:.10g}"[:9]}


FIGURES: dict[str, tuple[tuple[str | int, ...], set[str]]] = {  # a key, and who says it
    "a year": (("units", "annual_usd"), {*PAPERS, CSV, JSON, TERMINAL}),
    "with a margin": (("by_confidence", -1, "monthly_usd"), {*PAPERS, JSON, TERMINAL}),
    "a day of measuring": (("measure", "usd"), {*PAPERS, JSON, TERMINAL}),
    "as published": (("as_published", "monthly_usd"), {REQUEST, SHEET, MARKDOWN, JSON, TERMINAL}),
    "measured hardware": (("measured_hardware", "monthly_usd"), {REQUEST, MARKDOWN, JSON, TERMINAL}),
    "surviving a machine": (("survives_machine", "monthly_usd"), {REQUEST, ENGINEERS, MAIL, MARKDOWN, JSON, TERMINAL}),
    "another GPU or supplier": (("runner_up", "monthly_usd"), {REQUEST, MARKDOWN, CSV, JSON}),
    "one more than it serves": (("more_people", "monthly_usd"), {REQUEST, MAIL, MARKDOWN, JSON, TERMINAL}),
    "all at once": (("all_at_once", "monthly_usd"), {REQUEST, MARKDOWN, JSON, TERMINAL}),
    "a term": (("pay_less", "term", "monthly_usd"), {REQUEST, SHEET, MAIL, MARKDOWN, JSON, TERMINAL}),
    "what it binds": (("pay_less", "term", "commits_usd"), {REQUEST, SHEET, MAIL, MARKDOWN, JSON}),
}


def path_of(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """A path with the places that are named in it."""
    (first, *rest) = path
    if first == "pay_less":
        return (first, at(str(rest[0])), *rest[1:])
    return tuple(len(cell_now().by_confidence) - 1 if step == -1 else step for step in path)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_stands_on_all_that_speak_of_it(name: str) -> None:
    named, speaks = FIGURES[name]
    path = path_of(named)
    usd = functools.reduce(
        lambda part, key: part[key] if isinstance(key, int) else getattr(part, key), path, cell_now()
    )
    assert isinstance(usd, float)
    differs = said_by(path, lambda value: value * FACTOR)
    assert {*differs} == speaks
    answer = cell_now().answer.monthly_usd
    new = figures_of(usd * FACTOR) | figures_of(usd * FACTOR - answer)  # a risk says how much more it is
    assert [output for output, (_, after) in differs.items() if not any(figure in after for figure in new)] == []
    assert all(figure not in before for before, _ in differs.values() for figure in figures_of(usd * FACTOR))


def test_the_month_and_how_sure_it_is_stand_everywhere() -> None:
    month = said_by(("chosen", "monthly_usd"), lambda usd: usd * FACTOR)
    usd = cell_now().answer.monthly_usd * FACTOR
    assert {*month} == ALL - {ENGINEERS}
    silent = {name for name, (_, after) in month.items() if not any(figure in after for figure in figures_of(usd))}
    assert not silent
    sure = said_by(("chosen", "chance"), lambda chance: 0.6123)
    shown = {name for name, (_, after) in sure.items() if "60%" in after or "0.6123" in after}
    assert shown == {*sure} == ALL - {ENGINEERS}


RISKS: dict[str, tuple[tuple[str, ...], Callable[[Any], Any], str, set[str]]] = {  # a key, its other value, a word
    "a reservation": (
        ("needs_reservation",),
        lambda _: True,
        "reserv|ask the provider|ask for capacity",
        {REQUEST, SHEET, ENGINEERS, MARKDOWN, JSON, TERMINAL},
    ),
    "measure first": (
        ("measure_first",),
        lambda _: ("impossible",),
        "measure first: nothing is|impossible",
        {*PAPERS, JSON, TERMINAL},
    ),
    "the next unmeasured": (
        ("runner_up", "measured"),
        lambda is_measured: not is_measured,
        "",
        {REQUEST, MARKDOWN, JSON},
    ),
    "the survivor unmeasured": (("survives_machine", "measured"), lambda is_measured: not is_measured, "", {JSON}),
    "never measured": (
        ("chosen", "measured"),
        lambda measured: not measured,
        "",
        {REQUEST, MARKDOWN, JSON, TERMINAL},
    ),
}


@pytest.mark.parametrize("name", RISKS)
def test_a_risk_stands_on_all_that_speak_of_it(name: str) -> None:
    path, change, word, speaks = RISKS[name]
    differs = said_by(path, change)
    told = re.compile(word, re.IGNORECASE)
    assert {output for output, (_, after) in differs.items() if told.search(after)} == speaks
    assert {*differs} - speaks <= {CSV}  # which has it as a value


def test_machines_without_runs_of_their_own_say_so_wherever_they_are_named() -> None:
    record, question = answered()
    (row,) = record.headline
    cell = record.cells[row]
    assert cell.survives_machine is not None and cell.runner_up is not None
    other = replace(cell.survives_machine, instance=cell.runner_up.instance)  # which the request calls the next
    mail: dict[bool, str] = {}
    for is_measured in (True, False):
        spared = changed(
            record, ("cells", row, "survives_machine"), lambda _, m=is_measured: replace(other, measured=m)
        )
        texts = drawn(spared, question)
        assert f"{other.n_instances} of the next" in texts[REQUEST] and "of the next" not in texts[MAIL]
        mail[is_measured] = texts[MAIL].partition("surviving")[2].partition("\n")[0]
    assert "unmeasured" in mail[False] and "unmeasured" not in mail[True]


def test_the_largest_uncertainty_is_named_as_such_with_its_dollars() -> None:
    move = next(i for i, move in enumerate(cell_now().moves) if move.input == "context_tokens")
    differs = said_by(("moves", move, "high_usd"), lambda usd: 3 * usd)
    more = 3 * round(cell_now().moves[move].high_usd or 0) - round(cell_now().answer.monthly_usd)
    assert {*differs} == {REQUEST, MAIL, MARKDOWN, JSON}
    for output in (REQUEST, MAIL, MARKDOWN):
        after = differs[output][1].lower()
        told = after.partition("largest uncertainty")[2][:60]
        assert "length" in told and re.search(rf"\${more // 1000},\d{{3}} more", told)


def test_a_figure_that_is_not_the_records_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("approval", "wait_words"):
        monkeypatch.setattr(f"sheetgen.report.{module}.sure", lambda chance: "80% sure")
    for limit in ("MOST_WORDS", "MOST_NUMBERS"):  # so that nothing gives way to the words of ways to pay less
        monkeypatch.setattr(f"sheetgen.report.approval.{limit}", math.inf)
    told = said_by(("chosen", "chance"), lambda chance: 0.6123)
    assert "60%" not in told.get(MAIL, ("", ""))[1]  # of other words, others may give way
    for before, after in (told[output] for output in (REQUEST, MARKDOWN) if output in told):
        # Ways to pay less, which are compared; and the next type, which gives way to their words.
        beside = r"; \d+% sure| \(\d+% sure\)|\s*Next type: .*? fails\."
        assert re.sub(beside, "", after) == re.sub(beside, "", before)


def test_that_no_run_had_such_a_prompt_stands_beside_its_first_word() -> None:
    differs = said_by(("input_tokens",), lambda tokens: 1000)
    told = {
        name for name, texts in differs.items() if ["this long unmeasured" in text for text in texts] == [True, False]
    }
    assert told == {SHEET, TERMINAL}  # the request and its Markdown leave it to their sheet where words are short


OF_WHOLE: dict[str, tuple[str, Callable[[Any], Any], str, set[str]]] = {  # a key of the whole record, its other value
    "not in the price": (
        "not_in_price",
        lambda costs: (*costs, "a lawyer"),
        "a lawyer",
        {REQUEST, SHEET, MAIL, MARKDOWN},
    ),
    "the oldest price": ("oldest_price_as_of", lambda _: "2026-10-21", "30 days old|2026-10-21", {SHEET, ENGINEERS}),
}


@pytest.mark.parametrize("name", OF_WHOLE)
def test_what_holds_of_all_prices_is_one_list_and_one_day(name: str) -> None:
    key, change, word, speaks = OF_WHOLE[name]
    record, question = answered()
    before, after = drawn(record, question), drawn(replace(record, **{key: change(getattr(record, key))}), question)
    assert {output for output in OUTPUTS if re.search(word, after[output])} == speaks
    assert {output for output in OUTPUTS if before[output] != after[output]} == speaks
    assert as_json(record)[key] == as_json(getattr(record, key))


def test_the_workbook_has_the_day_and_the_list_of_the_record() -> None:
    record, question = answered()
    solved = solve(question)
    sheets = {sheet.name: sheet for sheet in book_for(solved, choices=decision(solved)).sheets}
    cells = {str(cell.value): place for place, cell in sheets["Sizing sheet"].cells.items()}
    row, column = cells["Oldest price in use"]
    assert (
        sheets["Sizing sheet"].cells[row, column + 1].value
        == (date.fromisoformat(str(record.oldest_price_as_of)) - EXCEL_EPOCH).days
    )
    assert any(listed(record.not_in_price) in text for text in cells)
    told = {str(cell.value) for cell in sheets["Decision"].cells.values()}
    [largest] = [text for text in told if text.startswith("Largest uncertainty")]
    request = build_page(record, question).request
    assert re.findall(r"\$[\d,]+", largest) == re.findall(r"\$[\d,]+", str(request.uncertainty))
    [hours] = [way.loses for way in request.ways if way.kind == "hours"]  # a full page leaves their number to the book
    [lost] = [text for text in told if text.startswith(hours)]
    assert hours and re.search(r"\d+ of 730 h", lost)

"""A workbook of a budget in another currency: what its sheets of answers show is dollars at the rate on Inputs."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import books
import money_cells
import pytest
import rules_cells
import rules_features
import rules_package
import rules_workbook
from amounts import amount
from answers import page_for, record_for
from package import Package
from readers import needs_gnumeric, recalculate_with_gnumeric
from recalculation import assert_recalculates, compare, convert_all, edit, needs_libreoffice, poison, values_after
from workbook_cells import cells, formulas, names, values

from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.answer.solve import solve
from sheetgen.book.sizing_sheet import ANSWERS_ROW, OTHER_ROW
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import Question
from sheetgen.readback.pulled import pull
from sheetgen.sizing.cost import annual_usd
from sheetgen.units import USD, USD_CENTS

RATE = 0.92
ASKED = {
    **books.SMALL,
    "models": "8b,70b",
    "workloads": "chat,rag",
    "tiers": "1,32",
    "headline": "rag:32",
    "instances": "aws/g6e.xlarge,aws/p5.48xlarge,gcp/a3-highgpu-8g",
    "contingency_fraction": "0.1",
    "ask": "70b",
}
EURO = {"currency": "EUR", "fx_rate": str(RATE), "fx_date": "2026-11-01"}
RULES = (*rules_package.RULES, *rules_workbook.RULES, *rules_cells.RULES, *rules_features.RULES)
SHOWN = ("Sizing sheet", "Decision", "Money")
NAMES_DOLLARS = {"per $, of", "Total, US dollars"}  # of the rate, and of the total beside that in euros


@pytest.fixture(scope="module")
def euro(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Question]:
    return books.build(tmp_path_factory.mktemp("euro"), "euro", ASKED | EURO)


@pytest.fixture(scope="module")
def dollar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("dollar"), "dollar", ASKED)[0]


def amounts(path: Path, sign: str) -> dict[tuple[str, str], str]:
    """The cells of the sheets of answers whose number format has a sign, by place: the format."""
    workbook = books.opened(path)
    return {
        (name, cell.coordinate): cell.number_format
        for name in SHOWN
        for row in workbook[name].iter_rows()
        for cell in row
        if f'"{sign}' in cell.number_format
    }


def test_every_amount_is_that_of_a_book_in_dollars_at_the_rate(euro: tuple[Path, Question], dollar: Path) -> None:
    in_euros, in_dollars = values(euro[0]), values(dollar)
    formats = amounts(euro[0], "€")
    assert {place: text.replace("€", "$") for place, text in formats.items()} == amounts(dollar, "$")
    n_numbers = 0
    for place in formats:
        usd, there = in_dollars[place], in_euros[place]
        if isinstance(usd, float):
            n_numbers += 1
            assert there == pytest.approx(usd * RATE, rel=1e-9), place
            assert in_euros[f"{place[0]} in US dollars", place[1]] == usd
        else:
            assert there == usd == "-", place
    assert n_numbers > 150
    others = {place for place in in_dollars if isinstance(place, tuple) and place[0] in SHOWN} - formats.keys()
    numbers = [place for place in others if isinstance(in_dollars[place], float)]
    apart = {place for place in numbers if in_euros[place] != in_dollars[place]}
    assert {sheet for sheet, _ in apart} == {"Money"} and len(numbers) > 100
    assert {in_euros[place] for place in apart} == {0.92, 46327.0}  # the rate, and its day


def test_amounts_are_those_of_the_record_and_of_the_page(euro: tuple[Path, Question]) -> None:
    path, question = euro
    solved, shown = solve(question), values(path)
    record, page = record_for(solved), page_for(solved)
    rows = {shown["Sizing sheet", f"A{row}"]: row for row in range(ANSWERS_ROW + 2, ANSWERS_ROW + 7)}
    for card, headline in zip(page.cards, headline_rows(solved), strict=True):
        load = record.cells[headline]
        row = rows[question.models[question.loads[headline].model].model.name]
        assert shown["Sizing sheet", f"D{row}"] == pytest.approx(load.answer.monthly_usd * RATE, rel=1e-9)
        assert shown["Sizing sheet", f"E{row}"] == pytest.approx(annual_usd(load.answer.monthly_usd, 12) * RATE)
        assert str(card.monthly) == f"€{shown['Sizing sheet', f'D{row}']:,.0f}"
    asked = page.cards[question.ask or 0]
    assert shown["Decision", "D5"] == pytest.approx(asked.monthly.value, rel=1e-9)
    assert f": {asked.monthly} a month" in shown["Decision", "A1"]
    held, formats = money_cells.block(shown), amounts(path, "€")
    cell_rows = {value: place[1][1:] for place, value in shown.items() if is_label(place)}
    money = {**money_cells.expected(solved, money_cells.chosen(shown, solved))}
    n_money = 0
    for (label, column), want in money.items():
        if label.startswith("Total, ") or not isinstance(want, int | float) or want != want:
            continue
        is_money = ("Money", f"{column}{cell_rows[label]}") in formats
        n_money += is_money
        assert books.same(held[label][column], want * RATE if is_money else want), (label, column)
    assert n_money > 60
    for column, usd in zip("CDE", (1, 12, 36), strict=True):
        month = month_of_ask(solved)
        assert held["Total, US dollars"][column] == pytest.approx(month * usd * 1.1)
        assert held["Total with contingency"][column] == pytest.approx(month * usd * 1.1 * RATE)


def is_label(place: Any) -> bool:
    return isinstance(place, tuple) and place[0] == "Money" and place[1].startswith("A")


def month_of_ask(solved: Solution) -> float:
    """The month of the model that is asked for, in dollars."""
    headline = headline_rows(solved)[solved.question.ask or 0]
    return float(record_for(solved).cells[headline].answer.monthly_usd)


def test_no_sign_of_dollars_is_left_on_the_sheets_of_answers(euro: tuple[Path, Question], dollar: Path) -> None:
    assert [*dollars_named(euro[0])] == []
    assert len([*dollars_named(dollar)]) > 200
    for path, sign, word in ((euro[0], "€", "EUR"), (dollar, "$", "US dollars")):
        titles = chart_titles(path)
        assert len(titles) == 3
        assert all(title.startswith(f"{sign} a month") or title.endswith(word) for title in titles), titles


def dollars_named(path: Path) -> Iterator[tuple[str, str]]:
    """The cells that show dollars, by a number format, in words, or in the text of a formula."""
    yield from amounts(path, "$")
    for cell in cells(path):
        texts = [str(cell.value)] if isinstance(cell.value, str) else []
        texts += re.findall('"([^"]*)"', cell.formula)
        if cell.sheet in SHOWN and not NAMES_DOLLARS.issuperset(texts):
            yield from (cell.place for text in texts if re.search(r"\$|dollar|USD", text))


def chart_titles(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as package:
        charts = [
            package.read(name).decode() for name in package.namelist() if re.search(r"charts/chart\d+\.xml", name)
        ]
    return ["".join(re.findall("<a:t>(.*?)</a:t>", chart)) for chart in charts]


def test_charts_are_of_the_amounts_that_are_shown(euro: tuple[Path, Question]) -> None:
    with zipfile.ZipFile(euro[0]) as package:
        charts = [
            package.read(name).decode() for name in package.namelist() if re.search(r"charts/chart\d+\.xml", name)
        ]
    assert {area.partition("!")[0] for chart in charts for area in re.findall("<c:f>(.*?)</c:f>", chart)} <= {*SHOWN}


def test_amounts_follow_the_rate_and_nothing_else_does(euro: tuple[Path, Question]) -> None:
    path, _ = euro
    built, after = values_after(path, {}), values_after(path, {"in_fx_rate": 2 * RATE})
    for place in amounts(path, "€"):
        if isinstance(built[place], float):
            assert after[place] == pytest.approx(2 * built[place], rel=1e-9), place
    twice = f"€{2 * built['Decision', 'D5']:,.0f} a month"
    assert twice in after["Decision", "A1"] and twice in after["Sizing sheet", f"A{OTHER_ROW + 1}"]
    results = [name for name in names(path) if name.startswith("rec_")]
    assert len(results) > 40 and {name: after[name] for name in results} == {name: built[name] for name in results}
    assert after["chk_all"] == built["chk_all"] == "OK"


def test_the_sign_is_of_the_currency_or_the_checks_say_so(euro: tuple[Path, Question]) -> None:
    for typed in ({"in_currency": "CHF"}, {"in_currency": "USD", "in_fx_rate": 1}, {"in_fx_rate": 1}):
        after = values_after(euro[0], typed)
        assert (after["chk_currency"], after["chk_all"]) == ("CHECK", "CHECK"), typed
    assert values_after(euro[0], {"in_currency": "eur"})["chk_all"] == "OK"


def test_results_stay_in_dollars_for_those_who_compare(euro: tuple[Path, Question], dollar: Path) -> None:
    in_euros, in_dollars = values(euro[0]), values(dollar)
    results = {name for name in names(dollar) if name.startswith("rec_")}
    assert results == {name for name in names(euro[0]) if name.startswith("rec_")}
    assert {name: in_euros[name] for name in results} == {name: in_dollars[name] for name in results}
    month = in_euros[f"rec_{name_part('llama-3.1-70b')}_headline_monthly_usd"]
    assert in_euros["Sizing sheet", f"D{ANSWERS_ROW + 4}"] == pytest.approx(month * RATE)


def test_a_book_in_dollars_has_no_sheet_for_them(euro: tuple[Path, Question], dollar: Path) -> None:
    hidden = {f"{name} in US dollars" for name in SHOWN}
    assert {*books.opened(euro[0]).sheetnames} - {*books.opened(dollar).sheetnames} == hidden
    assert {books.opened(euro[0])[name].sheet_state for name in hidden} == {"hidden"}
    assert len(formulas(euro[0])) == len(formulas(dollar)) + len(amounts(dollar, "$")) - 1  # a label


def test_a_currency_without_a_sign_goes_by_its_code_and_has_its_width(tmp_path: Path) -> None:
    path, question = books.build(tmp_path, "won", ASKED | {"currency": "KRW", "fx_rate": "1410"})
    shown, formats, sheets = values(path), amounts(path, "KRW "), books.opened(path)
    assert {*formats.values()} == {f.excel.replace("$", "KRW ") for f in (USD, USD_CENTS)}
    assert f"KRW {shown['Decision', 'D5']:,.0f} a month" in shown["Decision", "A1"]
    assert shown["Sizing sheet", f"D{ANSWERS_ROW + 1}"] == "KRW a month"
    assert [*dollars_named(path)] == []
    assert shown["Decision", "D5"] == pytest.approx(1410 * month_of_ask(solve(question)))
    for sheet, cell in (("Sizing sheet", f"D{ANSWERS_ROW + 4}"), ("Decision", "D5")):
        text = f"KRW {shown[sheet, cell]:,.0f}"
        font, column = sheets[sheet][cell].font, sheets[sheet].column_dimensions[cell[0]]
        assert len(text) >= 14 and column.width > 0.8 * len(text) * font.size / 10


def test_excel_has_nothing_to_repair(euro: tuple[Path, Question]) -> None:
    package = Package.read(euro[0])
    assert {rule.__name__: broken for rule in RULES if (broken := list(rule(package)))} == {}


@pytest.mark.long
@needs_libreoffice
def test_pull_of_an_edited_book_agrees_whatever_currency_was_typed(
    euro: tuple[Path, Question], dollar: Path, tmp_path: Path
) -> None:
    """Its formulas keep the signs that it was built with; what is drawn anew has those of what was typed."""
    poison(euro[0], tmp_path / "euro.xlsx")
    poison(dollar, tmp_path / "dollar.xlsx")
    typed = {
        "francs": ("euro", {"in_currency": "CHF", "in_fx_rate": 0.8}, "CHF"),
        "euros": ("dollar", {"in_currency": "EUR", "in_fx_rate": 0.8}, "EUR"),
        "dollars": ("euro", {"in_currency": "USD", "in_fx_rate": 1}, "USD"),
        "rate": ("euro", {"in_fx_rate": 0.8, "in_contingency_fraction": 0.2}, "EUR"),
    }
    some = [*typed.items()][: amount(2, 4)]
    files = [edit(tmp_path / f"{book}.xlsx", tmp_path / f"{name}.xlsx", cells) for name, (book, cells, _) in some]
    for file, (_, _, code) in zip(convert_all(files, tmp_path), (edited for _, edited in some), strict=True):
        pulled = pull(file, books.catalog())
        assert pulled.audit is not None and pulled.audit.verdict == "agrees", file
        assert not pulled.audit.overwritten and not pulled.other_results
        assert pulled.solved.question.settings.currency == code
        assert page_for(pulled.solved).sign == {"EUR": "€", "USD": "$"}.get(code, code)
    untouched = pull(euro[0], books.catalog())
    assert not untouched.changed and untouched.audit is not None and untouched.audit.verdict == "agrees"


@needs_libreoffice
def test_libreoffice_finds_every_value(euro: tuple[Path, Question], tmp_path: Path) -> None:
    assert assert_recalculates(euro[0], tmp_path).n_compared > 5_000


@needs_gnumeric
def test_gnumeric_finds_every_value(euro: tuple[Path, Question], tmp_path: Path) -> None:
    poisoned, out = tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"
    n_poisoned = poison(euro[0], poisoned)
    recalculate_with_gnumeric(poisoned, out)
    result = compare(euro[0], out)
    assert not result.mismatches and result.n_poisoned == 0, str(result)
    assert result.n_compared == n_poisoned

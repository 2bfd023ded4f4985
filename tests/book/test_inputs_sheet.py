"""Inputs as people meet it: three questions, money and targets; what is rarely changed is folded away, and what nobody
chooses is on a sheet of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import books
import openpyxl
import pytest
from openpyxl.utils import column_index_from_string
from recalculation import edit, values_after
from workbook_cells import Values

from sheetgen import size
from sheetgen.answer.solution import headline_rows
from sheetgen.answer.solve import solve
from sheetgen.question.inputs import BY_NAME, CONTEXT, INPUTS, LOAD, MONEY, PRECISION, RARE, TARGETS
from sheetgen.question.sheet_question import ask
from sheetgen.readback.pulled import pull
from sheetgen.units import DTYPES, PURCHASES

SMALL = {**books.SMALL, "models": "8b,gemma-3-27b", "workloads": "chat", "tiers": "1,32", "headline": "chat:32"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("inputs"), "small", SMALL, with_decision=False)[0]


@pytest.fixture(scope="module")
def sheet(path: Path) -> Any:
    return books.opened(path)["Inputs"]


def test_every_input_has_its_words() -> None:
    """An option its help, a row its label; what may be chosen is named."""
    for setting in INPUTS:
        assert not setting.option or setting.option.help.endswith("."), setting.name
        assert not setting.row or setting.row.label, setting.name
    purchases, dtypes = (BY_NAME[name].option for name in ("purchase", "weight_dtype"))
    assert purchases and all(purchase in purchases.help for purchase in PURCHASES)
    assert dtypes and all(re.search(rf"\b{dtype}\b", dtypes.help) for dtype in DTYPES)


@pytest.mark.long
def test_sections_come_in_the_order_of_their_use_and_the_last_is_folded(sheet: Any) -> None:
    bars = [(c.row, c.value) for (c,) in sheet.iter_rows(max_col=1) if c.fill.fill_type and c.value]
    titles = [str(title) for _, title in bars]
    assert titles[:5] == [CONTEXT, LOAD, PRECISION, MONEY, TARGETS] and titles[5].startswith(RARE)
    first = bars[5][0] + 1
    rows = sheet.row_dimensions
    hidden = [row for row in range(1, sheet.max_row + 1) if rows[row].hidden]
    assert hidden == list(range(first, sheet.max_row + 1))
    assert all(rows[row].outlineLevel == 1 for row in hidden) and rows[first - 1].collapsed
    assert not sheet.sheet_properties.outlinePr.summaryBelow and not sheet.protection.sheet


def test_no_constant_is_among_the_inputs(sheet: Any) -> None:
    """Beside each label an input or what follows from inputs: no number that is neither."""
    fixed = [
        c.coordinate
        for (c,) in sheet.iter_rows(min_row=4, min_col=2, max_col=2)
        if isinstance(c.value, int | float) and c.protection.locked
    ]
    assert not fixed


def test_workings_of_inputs_and_money_are_in_hidden_columns(path: Path) -> None:
    for sheet in (books.opened(path)[name] for name in ("Inputs", "Money")):
        last = sheet.print_area.split(":")[1].strip("$").partition("$")[0]
        spans = [(d.min, d.max) for d in sheet.column_dimensions.values() if d.hidden]
        assert spans and min(spans)[0] == column_index_from_string(last) + 1
        assert max(spans)[1] == sheet.max_column


def test_constants_have_a_hidden_sheet(path: Path) -> None:
    book = books.opened(path)
    assert book["Constants"].sheet_state == "hidden"
    for name in ("in_hours_in_a_month", "in_unit_bytes", "cat_precisions_linear_bytes", "list_purchase"):
        assert book.defined_names[name].attr_text.startswith("Constants!"), name


def test_a_price_is_two_clicks_from_the_first_sheet(path: Path) -> None:
    """First sheet, Money: there the price in use with its provider, and its source in full."""
    book = openpyxl.load_workbook(path, data_only=True)
    targets = {c.hyperlink.location for row in book["Sizing sheet"].iter_rows() for c in row if c.hyperlink}
    assert any("Money" in str(target) for target in targets)
    money, prices = book["Money"], book["Prices and hardware"]
    heads = {c.value: c.column for c in prices[books.HEAD]}
    labels = {c.value: c.row for (c,) in money.iter_rows(max_col=1) if c.value}
    listed, source = labels["List price in use"], str(money.cell(labels["Source"], 2).value)
    names = {prices.cell(r, heads["Instance"]).value: r for r in range(books.HEAD + 1, prices.max_row)}
    row = names[source.partition(":")[0]]
    assert source.endswith(str(prices.cell(row, heads["Source"]).value))
    assert money.cell(listed, 2).value == prices.cell(row, heads["$ per hour in use"]).value
    assert money.cell(listed, 6).value == prices.cell(row, heads["Provider's name"]).value


@pytest.mark.long
def test_together_and_the_model_of_money_are_pulled(path: Path, tmp_path: Path) -> None:
    last = [m.model.name for m in ask(books.catalog(), SMALL).models][-1]
    typed = {"in_together": "yes", "in_money_model": last}
    by_place = values_after(path, typed)
    rec = [v for k, v in by_place.items() if str(k).startswith("rec_") and str(k).endswith("headline_monthly_usd")]
    row = next(
        cell[1:] for (sheet, cell), v in by_place.items() if (sheet, v) == ("Sizing sheet", "All models together")
    )
    assert by_place["Sizing sheet", f"D{row}"] == pytest.approx(sum(rec)) and by_place["Money", "A4"] == last
    pulled = pull(edit(path, tmp_path / "typed.xlsx", typed), books.catalog())
    assert pulled.options["together"] == "yes"
    assert pulled.overrides["inputs"] == {"money_model": last}


def test_the_discount_links_to_its_table(path: Path) -> None:
    book = books.opened(path)
    (note,) = (c for row in book["Inputs"].iter_rows() for c in row if c.hyperlink)
    place = note.hyperlink.location.rpartition("!")[2]
    assert book["Prices and hardware"][place].value.startswith("Discounts of your contracts")


def test_what_has_no_price_has_no_purchase_and_owning_says_when_it_has_paid_off(path: Path) -> None:
    workbook = books.opened(path)
    ((sheet, area),) = workbook.defined_names["cat_instances_price_spot"].destinations
    spot = {(sheet, cell.coordinate): None for (cell,) in workbook[sheet][area.replace("$", "")] if cell.value}
    by_place = values_after(path, spot)
    top = next(int(cell[1:]) for (sheet, cell), v in by_place.items() if (sheet, v) == ("Money", "Up front"))
    ahead, per_month, month = ([by_place.get(("Money", f"{c}{top + k}"), "-") for c in "BCDEFG"] for k in (0, 1, 3))
    assert "-" in per_month and [lead == "-" for lead in ahead] == [month == "-" for month in per_month]
    assert isinstance(month[0], int | float)
    for monthly, paid in zip(per_month[:-1], month, strict=False):
        if "-" in (monthly, paid):
            assert paid == "-"
        else:
            to_date = [(monthly - per_month[-1]) * n - ahead[-1] for n in (paid - 1, paid)]
            assert to_date[0] < 0 <= to_date[1]


def test_the_change_log_names_the_cells_of_a_table_in_words(path: Path) -> None:
    labels = [c.value for c in books.opened(path)["Change log"]["A"] if c.value]
    assert "Discount, aws, spot" in labels and "Discount, all other providers, reserved-1yr" in labels
    assert not [label for label in labels if re.search(r"\(\w+_\w+\)", str(label))]


def test_a_factor_that_was_measured_narrows_the_band_as_size_does(path: Path) -> None:
    """The workbook, the answer and `size` have the band of runs that one point set right."""
    solved = solve(ask(books.catalog(), {**SMALL, "speed_factor": "0.9"}))
    row = headline_rows(solved)[0]
    sheets, choice = books.Sheets(path), solved.choices[row]
    shown = values_after(path, {"in_speed_factor": 0.9})
    tpots = [shown[sheets.at("Workings", books.HEAD + 1 + row, f"tpot{end} ms")] for end in ("", " low", " high")]
    low, high = (1000 * seconds for seconds in choice.bands[0])
    assert tpots == pytest.approx([1000 * choice.tpot_seconds, low, high], rel=1e-9)
    alone = size(model="8b", gpu="l40s", speed_factor=0.9), size(model="8b", gpu="l40s")
    ends = [[answer[f"tpot_seconds_{end}"] / answer["tpot_seconds"] for end in ("low", "high")] for answer in alone]
    assert [low, high] == pytest.approx([1000 * choice.tpot_seconds * end for end in ends[0]])
    assert ends[0][1] - ends[0][0] < ends[1][1] - ends[1][0]


def test_a_band_that_is_typed_moves_the_chance_and_the_ends_as_in_solve(path: Path) -> None:
    """Of GPUs on their sheet, those of measured points on Inputs: they are read for the confidence and the chance."""
    sheets, question = books.Sheets(path), ask(books.catalog(), SMALL)
    heads = {
        "tpot_band_high_fitted": "tpot high fitted, own runs",
        "tpot_band_high_other_dense": "tpot high other dense, others' runs",
        "ttft_band_high_other_windowed": "ttft high other windowed, others' runs",
    }
    of_gpus = {sheets.at("GPUs", gpu.id, head): 9.0 for gpu in question.gpus for head in heads.values()}
    by_gpu = {gpu.id: dict.fromkeys(heads, 9.0) for gpu in question.gpus}
    anchored = {"tpot_band_high_anchored_dense": 3.0}
    trials: list[tuple[Values, dict[str, Any]]] = [
        (of_gpus, {"typed": {"gpus": by_gpu}}),
        ({"in_speed_factor": 1.1, **{f"in_{name}": end for name, end in anchored.items()}},
         {"typed": {"inputs": anchored}, "speed_factor": "1.1"}),
    ]  # fmt: skip
    as_built = [choice.chance for choice in solve(question).choices]
    for changes, options in trials:
        solved = solve(ask(books.catalog(), {**SMALL, **options}))
        n_compared, lines = books.differences(values_after(path, changes), sheets, solved)
        assert n_compared and not lines, "\n".join(lines)
        assert [choice.chance for choice in solved.choices] != as_built

"""The Money sheet after edits: two engines agree on every cell, and on what Python says of the same question."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import books
import money_cells
import openpyxl
import pytest
from amounts import amount
from books import Sheets, with_instance
from option_values import OptionValue
from recalculation import Changes, convert_all, edit, needs_libreoffice, poison, values_after
from workbook_cells import PRICES_SHEET, CellValue, ErrorValue, Place, Values, values

from sheetgen import recommend
from sheetgen.answer.hosts import hosts_of
from sheetgen.answer.solve import solve
from sheetgen.question.market import ClassPrice
from sheetgen.question.sheet_question import Question, ask

OPTIONS = {
    **books.SMALL,
    "models": "8b,70b",
    "workloads": "chat,rag",
    "tiers": "1,32",
    "headline": "rag:32",
    "instances": "aws/g6e.xlarge,aws/p5.48xlarge,gcp/a3-highgpu-8g,azure/Standard_ND96isr_H200_v5",
}
DAY_ZERO = datetime.datetime(1899, 12, 30)
H100, L40S = "nvidia-h100-sxm5-80gb", "nvidia-l40s-48gb"


@dataclass(frozen=True)
class Edit:
    """Cells to type into, and how Python is asked for the same thing."""

    name: str
    cells: Changes | Callable[[Sheets], Mapping[Place | str, CellValue]]
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    change: Callable[[Question], Question] = lambda question: question


def at(sheet: str, key: str, head: str, value: object) -> Callable[[Sheets], Mapping[Place | str, CellValue]]:
    return lambda sheets: {sheets.at(sheet, key, head): value}


def priced(name: str, purchase: str, usd: float | None) -> Callable[[Question], Question]:
    """The question with one more price of an instance, or without it."""

    def change(question: Question) -> Question:
        old = next(c for c in question.candidates if c.instance == name)
        mine = old.class_price(purchase)
        day, kind = (mine.price_as_of, mine.price_kind) if mine else (None, "")
        prices = tuple(p for p in old.prices if p.purchase != purchase)
        new = () if usd is None else (ClassPrice(purchase, usd, day, kind),)
        return with_instance(question, name, prices=(*prices, *new))

    return change


def owning(gpu: str, **fields: object) -> Callable[[Question], Question]:
    def change(question: Question) -> Question:
        gpus = {**question.owning.gpus, gpu: dataclasses.replace(question.owning.gpus[gpu], **fields)}
        return dataclasses.replace(question, owning=dataclasses.replace(question.owning, gpus=gpus))

    return change


def in_spare_row(values: Mapping[str, Any]) -> Callable[[Sheets], Mapping[Place | str, CellValue]]:
    return lambda sheets: {sheets.at(PRICES_SHEET, sheets.spare(), head): v for head, v in values.items()}


def with_acme(question: Question) -> Question:
    old = next(c for c in question.candidates if c.gpu.id == H100)
    new = dataclasses.replace(
        old,
        instance="acme/box.1",
        provider="acme",
        region="",
        gpu_count=8,
        usd_per_hour=9.0,
        price_as_of=None,
        prices=(),
        source="",
    )
    return dataclasses.replace(question, candidates=(*question.candidates, new))


ACME = {"Type": "box.1", "Provider": "acme", "GPU": H100, "GPUs": 8, "$ per hour": 9.0}
TERMS = {
    "owned_years": 3, "residual_fraction": 0.1, "cost_of_capital_fraction": 0.08, "support_fraction": 0.05,
    "installed_multiplier": 1.3, "system_power_multiplier": 2.5, "usd_per_kwh": 0.25, "pue": 1.2,
    "colo_usd_per_kw_month": 120,
}  # fmt: skip
# The first model is on L40S, whose power is derived from its rated watts; that of H100 is stated, cooling and all.
ON_L40S = {"in_money_model": "Llama 3.1 8B"}
OF_DERIVED_POWER = ("system_power_multiplier", "pue")
EDITS = [
    Edit("as built", {}),
    Edit("prefix cache hits", {"in_prefix_cache_hit_fraction": 0.4}, {"prefix_cache_hit_fraction": 0.4}),
    Edit("utilization", {"in_utilization": 0.35}, {"utilization": 0.35}),
    Edit("a discount", {"in_discount_fraction": 0.2}, {"discount_fraction": 0.2}),
    Edit(
        "a discount, in another currency with contingency",
        {"in_discount_fraction": 0.35, "in_currency": "EUR", "in_fx_rate": 0.92, "in_contingency_fraction": 0.1},
        {"discount_fraction": 0.35, "currency": "EUR", "fx_rate": 0.92, "contingency_fraction": 0.1},
    ),
    Edit(
        "discounts by provider and class",
        {
            "in_discount_fraction": 0.05,
            "in_discount_of_aws": 0.3,
            "in_discount_of_spot": 0.02,
            "in_discount_of_aws_reserved_3yr": 0.4,
        },
        {"discount_fraction": "0.05,aws=0.3,spot=0.02,aws:reserved-3yr=0.4"},
    ),
    Edit("contingency", {"in_contingency_fraction": 0.15}, {"contingency_fraction": 0.15}),
    Edit(
        "currency",
        {"in_currency": "EUR", "in_fx_rate": 0.92, "in_fx_date": 46_300, "in_contingency_fraction": 0.1},
        {"currency": "EUR", "fx_rate": 0.92, "contingency_fraction": 0.1},
    ),
    Edit("another model", {"in_money_model": "Llama 3.1 8B"}),
    Edit(
        "another model, with a discount",
        {"in_money_model": "Llama 3.1 8B", "in_discount_fraction": 0.2},
        {"discount_fraction": 0.2},
    ),
    Edit(
        "another class",
        {"in_purchase": "reserved-3yr", "in_hours_per_month": 200},
        {"purchase": "reserved-3yr", "hours_per_month": 200},
    ),
    Edit("hours", {"in_hours_per_month": 200}, {"hours_per_month": 200}),
    Edit("busiest hour", {"in_peak_hour_share": 0.2}, {"peak_hour_share": 0.2}),
    *(
        Edit(name, {f"in_{name}": value, **(ON_L40S if name in OF_DERIVED_POWER else {})}, {name: value})
        for name, value in TERMS.items()
    ),
    Edit("all terms", {f"in_{name}": value for name, value in TERMS.items()}, TERMS),
    Edit(
        "a reserved price",
        at(PRICES_SHEET, "p5.48xlarge", "$ per hour, reserved-3yr", 9.5),
        change=priced("aws/p5.48xlarge", "reserved-3yr", 9.5),
    ),
    Edit(
        "a spot price that was none",
        at(PRICES_SHEET, "p5.48xlarge", "$ per hour, spot", 3.25),
        change=priced("aws/p5.48xlarge", "spot", 3.25),
    ),
    Edit(
        "a price gone",
        at(PRICES_SHEET, "p5.48xlarge", "$ per hour, reserved-3yr", None),
        change=priced("aws/p5.48xlarge", "reserved-3yr", None),
    ),
    Edit(
        "a price of 0",
        at(PRICES_SHEET, "p5.48xlarge", "$ per hour, reserved-3yr", 0),
        change=priced("aws/p5.48xlarge", "reserved-3yr", None),
    ),
    Edit(
        "an on-demand price",
        at(PRICES_SHEET, "p5.48xlarge", "$ per hour", 9.75),
        change=lambda q: with_instance(q, "aws/p5.48xlarge", usd_per_hour=9.75),
    ),
    Edit("another headline", {"in_headline_workload": "Chat", "in_headline_tier": 1}, {"headline": "chat:1"}),
    Edit("another provider", in_spare_row(ACME), change=with_acme),
    Edit(
        "a purchase price",
        at("GPUs", H100, "Purchase, base, $", 27_500.0),
        change=owning(H100, capex_usd=(25_000, 27_500.0, 40_000)),
    ),
    Edit(
        "no purchase price",
        at("GPUs", H100, "Purchase, low, $", None),
        change=owning(H100, capex_usd=(float("nan"), 30_000, 40_000)),
    ),
    Edit(
        "an installed price",
        at("GPUs", H100, "Price of the module (1) or installed (0)", 0),
        change=owning(H100, is_module_price=0),
    ),
    Edit("power stated", at("GPUs", H100, "kW per GPU, stated", 0.9), change=owning(H100, stated_kw_per_gpu=0.9)),
    Edit(
        "rated power",
        lambda sheets: {sheets.at("GPUs", L40S, "Rated power, W"): 500, **ON_L40S},
        change=owning(L40S, rated_watts=500),
    ),
    Edit(
        "the machine's own draw",
        at("GPUs", H100, "Machine's own draw (1) or all-in (0)", 1),
        change=owning(H100, is_it_power=1),
    ),
]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Question]:
    return books.build(tmp_path_factory.mktemp("money"), "money", OPTIONS, with_decision=False)


def typed(edit: Edit, sheets: Sheets) -> Values:
    """With the second model, unless the edit is to say another one."""
    return {"in_money_model": "Llama 3.1 70B"} | dict(edit.cells(sheets) if callable(edit.cells) else edit.cells)


def held(edit: Edit, values: Mapping[Place | str, CellValue], sheets: Sheets) -> int:
    """The number of cells that agree with Python after an edit."""
    question = edit.change(ask(books.catalog(), {**OPTIONS, **edit.options}))
    bad = [key for key, value in values.items() if isinstance(value, ErrorValue)]
    assert not bad, f"{edit.name}: errors in {bad[:5]}"
    n, wrong = money_cells.differences(values, sheets, solve(question))
    assert not wrong, f"{edit.name}: {len(wrong)} of {n} differ\n" + "\n".join(wrong[:12])
    return n


def test_formualizer_and_python_agree_after_each_edit(book: tuple[Path, Question]) -> None:
    sheets, first, n = Sheets(book[0]), None, 0
    for change in EDITS[:: amount(3, 1)]:
        by_place = values_after(book[0], typed(change, sheets))
        n += held(change, by_place, sheets)
        shown = {key: value for key, value in by_place.items() if isinstance(key, tuple) and key[0] == "Money"}
        assert shown != first, f"{change.name} changes nothing on Money: it tests nothing"
        first = first or shown
    print(f"{len(EDITS)} edits: {n} cells against Python")


@needs_libreoffice
def test_libreoffice_and_python_agree_after_some_edits(book: tuple[Path, Question], tmp_path: Path) -> None:
    sheets, some = Sheets(book[0]), EDITS[amount(4, 0) :: amount(40, 3)]
    poison(book[0], tmp_path / "poisoned.xlsx")
    files = [
        edit(tmp_path / "poisoned.xlsx", tmp_path / f"edit-{i}.xlsx", typed(change, sheets))
        for i, change in enumerate(some)
    ]
    for change, file in zip(some, convert_all(files, tmp_path, timeout=300), strict=True):
        held(change, values(file), sheets)


@pytest.mark.long
def test_what_was_built_is_what_python_says(book: tuple[Path, Question], default_book: Path) -> None:
    """The cached values: p5.48xlarge's own class, and the two sheets' sums."""
    n, wrong = money_cells.differences(values(book[0]), Sheets(book[0]), solve(book[1]))
    assert not wrong and n > 200, wrong[:5]
    question = ask(books.catalog(), books.USUAL)
    n, wrong = money_cells.differences(values(default_book), Sheets(default_book), solve(question))
    assert not wrong and n > 200, wrong[:5]


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(
    "options",
    [
        {"purchase": "reserved-3yr", "hours_per_month": 200},
        {"models": "405b", "instances": "aws/g6e.xlarge"},
        {"providers": "lambda,nebius,aws", "gpus": "h100", "instances": "", "discount_fraction": "0.35"},
        {"purchase": "spot", "instances": "", "providers": "gcp"},
        {"models": "8b,llama-7b,deepseek-v3.2", "instances": "", "workloads": "chat", "headline": "chat:1"},
        {"workloads": "long-doc", "headline": "long-doc:1"},
    ],
)
def test_other_books(options: dict[str, str], tmp_path: Path) -> None:
    """A committed class, nothing that fits, providers by the GPU, spot, a model that nobody hosts beside one with
    cached prices, prompts that most hosts do not take: cached and recalculated values agree."""
    path, question = books.build(tmp_path, "other", {**OPTIONS, "models": "8b,70b", **options}, with_decision=False)
    by_place = values_after(path, {})
    n, wrong = money_cells.differences(by_place, Sheets(path), solve(question))
    assert not wrong, wrong[:8]
    assert not [k for k, v in by_place.items() if isinstance(v, ErrorValue)] and n > 20


def test_a_class_on_other_machines_stands_in_its_row_with_them_and_in_the_cash(tmp_path: Path) -> None:
    """Two g7e.2xlarge at AWS on demand, which has no term and no spot; one g4-standard-96 at GCP so, in euros."""
    asked = {
        "model": "gpt-oss-120b", "users": 500, "region": "eu", "instances": "aws/g7e.2xlarge,gcp/g4-standard-96",
        "as_of": books.AS_OF,
    }  # fmt: skip
    options = {key: value for key, value in asked.items() if key != "model"}
    options |= {"models": "gpt-oss-120b", "workloads": "rag", "currency": "EUR", "fx_rate": 0.92}
    path, _ = books.build(tmp_path, "terms", options)
    cell = recommend(**asked)
    assert cell["instance"] == "aws/g7e.2xlarge"
    # Its price was read with its year alone, which is what is shown; the cell holds the first day of it.
    money, first = books.opened(path)["Money"], datetime.datetime(2026, 1, 1)
    assert money["H7"].value.startswith("=") and values(path)["Money", "H7"] in (first, (first - DAY_ZERO).days)
    shown = {
        rule.dxf.numFmt.formatCode: rule.formula
        for area in money.conditional_formatting
        if str(area.sqref).startswith("H7")
        for rule in area.rules
        if rule.dxf.numFmt
    }
    assert shown == {"yyyy": ["AND(MONTH(H7)=1,DAY(H7)=1)"], "yyyy-mm": ["DAY(H7)=1"]}
    for by_place in (values(path), values_after(path, {})):
        rows = money_cells.block(by_place)
        for purchase, column in (("reserved-1yr", "C"), ("reserved-3yr", "D"), ("spot", "E")):
            term = cell["by_purchase"][purchase]
            assert term["instance"] == "gcp/g4-standard-96"
            assert (
                rows[purchase]["C"] == rows["Each month"][column] == pytest.approx(0.92 * term["monthly_usd"], rel=1e-9)
            )
            assert rows[purchase]["J"] == f"{term['n_instances']} × g4-standard-96, GCP"


NAMES = (
    "in_discount_fraction", "in_utilization", "in_contingency_fraction", "in_currency", "in_fx_rate", "in_fx_date",
    "in_owned_years",
    "in_residual_fraction", "in_cost_of_capital_fraction", "in_support_fraction", "in_installed_multiplier",
    "in_system_power_multiplier", "in_usd_per_kwh", "in_pue", "in_colo_usd_per_kw_month",
)  # fmt: skip


@pytest.mark.long
def test_inputs_are_named_unlocked_and_checked(default_book: Path) -> None:
    workbook = books.opened(default_book)
    sheet = workbook["Inputs"]
    checked = {str(v.sqref) for v in sheet.data_validations.dataValidation}
    for name in NAMES:
        ((where, cell),) = workbook.defined_names[name].destinations
        place = cell.replace("$", "")
        assert where == "Inputs" and sheet[place].protection.locked is False, name
        assert place in checked or name in ("in_currency", "in_fx_date"), f"{name} takes anything"
        assert sheet[f"F{sheet[place].row}"].value, f"{name} does not say why"


@pytest.mark.long
def test_the_sheet_is_landscape_one_page_wide_and_two_pages(default_book: Path) -> None:
    sheet = books.opened(default_book)["Money"]
    assert sheet.page_setup.orientation == "landscape" and 80 <= sheet.page_setup.scale <= 100
    printed = sheet.print_area.split(":")[1].strip("$").partition("$")[0]
    columns = sheet.column_dimensions
    spans = ((columns[c].min, columns[c].max, columns[c].width) for c in columns)
    last = openpyxl.utils.column_index_from_string(printed)
    width = sum(w * (min(high, last) - low + 1) for low, high, w in spans if low <= last)
    assert width * 5.54 * sheet.page_setup.scale / 100 <= 784  # a landscape page of A4
    sizes = {c.font.sz for row in sheet.iter_rows(max_col=last) for c in row if c.value is not None}
    assert min(sizes) * sheet.page_setup.scale / 100 >= 8.5
    assert len(sheet.row_breaks.brk) == 1  # renting, then owning, hosts and months
    assert sheet.max_row <= 60


def test_hosts_on_money_are_those_of_the_answer(book: tuple[Path, Question]) -> None:
    """By rank, also where two hosts take the same (70B)."""
    solved = solve(book[1])
    for model in ("Llama 3.1 8B", "Llama 3.1 70B"):
        by_place = values_after(book[0], {"in_money_model": model})
        assert by_place["chk_all"] == "OK", model
        cells = money_cells.block(by_place)
        ranked = {cell["O"]: label for label, cell in cells.items() if cell.get("O") in (1, 2, 3) and "P" in cell}
        hosts = hosts_of(solved, money_cells.chosen(by_place, solved))
        assert [ranked[k].rpartition(", ")[0] for k in (1, 2, 3)] == [
            solved.question.reference.hosted.host_name(host.host) for host in hosts
        ]


@pytest.mark.long
def test_formulas_for_hosts_are_few(default_book: Path) -> None:
    workbook = books.opened(default_book)
    n = sum(isinstance(cell.value, str) and cell.value.startswith("=") for row in workbook["Hosts"] for cell in row)
    assert 0 < n <= 3 * 120, f"{n} formulas on Hosts for three models"


def test_a_million_tokens_of_the_people_is_priced_beside_the_one_at_the_utilization(tmp_path: Path) -> None:
    """RAG for 460 people: 20 questions of 16,384 tokens a day each, 730 / 24 days a month."""
    book, _ = books.build(tmp_path, "one", OPTIONS)
    by_place = values(book)
    shown = {key[1]: value for key, value in by_place.items() if isinstance(key, tuple) and key[0] == "Money"}
    head = next(int(place[1:]) for place, value in shown.items() if place[0] == "A" and value == "Unit costs")
    row = {str(shown[f"{column}{head}"]): shown[f"{column}{head + 1}"] for column in "BCDEFGHIJ"}
    people = row["People: as stated, or at least so many by the targets"]
    month = row["$ per user and month"] * people
    millions = people * 20 * 730 / 24 * 16_384 / 1e6
    of_people = next(usd for label, usd in row.items() if "these people" in label)
    assert of_people == pytest.approx(month / millions, rel=1e-9) and of_people > row["$ per million tokens"]

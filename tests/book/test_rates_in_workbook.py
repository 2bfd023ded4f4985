"""A rate is live in the workbook: an edit of it, or of the allowance for chance, gives what `build` gives."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import pytest
from amounts import IN_LONG
from answers import record_for
from books import AS_OF, catalog
from books import build as built
from cells_of import FEW
from option_values import Options
from recalculation import ALLOWED_FUNCTIONS, edit, functions_used, needs_libreoffice, poison, recalculate, values_after
from workbook_cells import CellValue, Values, values

from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.answer.solve import solve
from sheetgen.book.decision_choices import headline_choices
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import ask
from sheetgen.readback.pulled import pull

OPTIONS = {
    "models": "70b,gpt-oss-120b" if IN_LONG else "70b",
    "workloads": "chat,rag",
    "instances": FEW,
    "as_of": AS_OF,
    "requests_per_second": 4.5,
    "tiers": "8",
}
# What is typed, and the options that ask for the same.
EDITS: list[tuple[dict[str, CellValue], Options]] = [
    ({"requests_per_second": 11.25}, {"requests_per_second": 11.25}),
    ({"requests_per_second": 0.01}, {"requests_per_second": 0.01}),
    ({"max_wait_fraction": 0.001}, {"max_wait_fraction": 0.001}),
    ({"confidence": 0.9, "max_prefill_utilization": 0.1}, {"confidence": 0.9, "max_prefill_utilization": 0.1}),
    (
        {"requests_per_day": 200_000, "peak_hour_share": 0.2, "burst_factor": 1.5},
        {"requests_per_second": None, "requests_per_day": 200_000, "peak_hour_share": 0.2, "burst_factor": 1.5},
    ),
    ({"survive": 1, "extra_headroom_fraction": 0.3}, {"survive": "replica", "extra_headroom_fraction": 0.3}),
    ({"survive": 3, "zones": 2}, {"survive": "zone", "zones": 2}),
    ({"tier_1": 40, "tpot_ms_rag": 30, "max_wait_fraction": 0.3},
     {"tiers": "40", "tpot_ms": "rag=30", "max_wait_fraction": 0.3}),
]  # fmt: skip
BY_DAY = next(i for i, (typed, _) in enumerate(EDITS) if "requests_per_day" in typed)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("rates"), "rates", OPTIONS)[0]


@functools.cache
def asked(index: int) -> Solution:
    options = {**OPTIONS, **EDITS[index][1]}
    return solve(ask(catalog(), {name: value for name, value in options.items() if value is not None}))


def unlike(solved: Solution, values: Values, heads: dict[str, str]) -> list[str]:
    """The cells of Workings that differ from Python's, of each load."""
    wrong = []
    question = solved.question
    for row, (load, choice) in enumerate(zip(question.loads, solved.choices, strict=True), 5):
        fits = choice.offer is not None
        stem = f"{question.models[load.model].model.id}, {question.workloads[load.workload].id}, {load.tier}"
        for head, value in {
            "$ per month": choice.monthly_usd,
            "Replicas": choice.n_replicas,
            "At once": load.concurrent_requests,
            "Served within the targets": choice.served_at_target,
            "Time per output token": choice.tpot_seconds,
            "Time to first token": choice.ttft_seconds,
            "Instances": choice.n_instances,
            "Output tokens per second": choice.output_tokens_per_second,
            "People": solved.loads["users"][row - 5],
            "KV for all requests": solved.loads["kv_bytes"][row - 5],
            "Headroom": choice.headroom_fraction,
            "Chance": choice.chance,
        }.items():
            cell = values["Workings", f"{heads[head]}{row}"]
            same = isinstance(cell, float) and math.isclose(cell, float(value), rel_tol=1e-9, abs_tol=1e-12)
            if fits and not same:
                wrong.append(f"{stem}, {head}: {cell} for {value}")
    return wrong


def heads_of(path: Path) -> dict[str, str]:
    by_edit = {}
    for (sheet, cell), value in ((key, value) for key, value in values(path).items() if isinstance(key, tuple)):
        if sheet == "Workings" and cell.rstrip("0123456789") + "4" == cell and isinstance(value, str):
            by_edit.setdefault(value, cell[:-1])
    return by_edit


def test_as_built_it_is_what_python_says(book: Path) -> None:
    solved = solve(ask(catalog(), OPTIONS))
    assert unlike(solved, values(book), heads_of(book)) == []
    assert any(choice.served_at_target != int(choice.served_at_target) for choice in solved.choices)


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize("stated", [{"users": "600"}, {"tokens_per_day": "30M"}])
def test_what_is_stated_by_the_day_is_a_rate_of_each_workload(stated: dict[str, str], tmp_path: Path) -> None:
    of_both = {name: OPTIONS[name] for name in ("models", "instances", "as_of")} | {"workloads": "chat,long-doc"}
    path, question = built(tmp_path, "by_day", {**of_both, **stated})
    solved = solve(question)
    assert unlike(solved, values(path), heads_of(path)) == []
    assert len({float(rate) for rate in solved.loads["load_requests_per_second"]}) == 2


@pytest.mark.some(1)
@pytest.mark.parametrize("index", range(len(EDITS)))
def test_an_edit_gives_what_build_gives(book: Path, index: int) -> None:
    solved = asked(index)
    by_place = values_after(book, {f"in_{name}": value for name, value in EDITS[index][0].items()})
    assert unlike(solved, by_place, heads_of(book)) == []
    for load, choice in zip(solved.question.loads, solved.choices, strict=True):
        model, workload = solved.question.models[load.model].model.id, solved.question.workloads[load.workload].id
        stem = f"rec_{name_part(model)}_{name_part(workload)}_{load.tier + 1}"
        if choice.offer is not None:
            assert by_place[f"{stem}_instance"] == solved.candidate(choice.offer).instance
            assert by_place[f"{stem}_monthly_usd"] == pytest.approx(choice.monthly_usd, rel=1e-9)


def test_the_utilization_follows_how_the_rate_is_stated_until_somebody_types_it(book: Path, tmp_path: Path) -> None:
    """It was as built after an edit of the day's hours, and a million tokens cost a quarter of what `build` says."""
    edited = tmp_path / "edited.xlsx"
    for typed, use, is_change in (
        (EDITS[BY_DAY][0], 1 / (24 * 0.2 * 1.5), False),
        ({"requests_per_day": 200_000, "peak_hour_share": 0.01}, 1, False),
        ({"utilization": 0.5}, 0.5, True),
    ):
        cells = {f"in_{name}": value for name, value in typed.items()}
        assert values_after(book, cells)["in_utilization"] == pytest.approx(use, rel=1e-9)
        if use == 1 and not IN_LONG:
            continue
        edit(book, edited, cells)
        pulled = pull(str(edited), catalog(), None)
        assert pulled.solved.question.settings.utilization == pytest.approx(use, rel=1e-9)
        assert ("utilization" in {change.name for change in pulled.changed}) == is_change


def test_it_calls_no_function_that_spreadsheets_lack(book: Path) -> None:
    functions = functions_used(book)
    assert {"LN", "NORMSDIST", "NORMDIST"} <= functions <= ALLOWED_FUNCTIONS


@pytest.mark.long
@needs_libreoffice
def test_libreoffice_gives_the_same(book: Path, tmp_path: Path) -> None:
    edited, broken = tmp_path / "edited.xlsx", tmp_path / "broken.xlsx"
    typed, _ = EDITS[BY_DAY]
    edit(book, edited, {f"in_{name}": value for name, value in typed.items()})
    poison(edited, broken)
    assert unlike(asked(BY_DAY), values(recalculate(broken, tmp_path)), heads_of(book)) == []


@pytest.mark.long
def test_what_was_typed_is_carried_back(book: Path, tmp_path: Path) -> None:
    edited = tmp_path / "edited.xlsx"
    typed, options = EDITS[BY_DAY]
    edit(book, edited, {f"in_{name}": value for name, value in typed.items()})
    pulled = pull(str(edited), catalog(), None)
    assert {name: pulled.options.get(name) for name in options} == {
        "requests_per_second": None,
        "requests_per_day": "200000",
        "peak_hour_share": "0.2",
        "burst_factor": "1.5",
    }
    asked_again = solve(ask(catalog(), pulled.options))
    assert [c.monthly_usd for c in asked_again.choices] == [c.monthly_usd for c in asked(BY_DAY).choices]
    same = pull(str(book), catalog(), None)
    assert not same.changed and not same.other_results and same.audit is not None


def test_decision_opens_with_the_stated_rate(book: Path) -> None:
    """As the page's people at that rate, since Decision asks for no rate: its answer is the headline's."""
    solved = solve(ask(catalog(), OPTIONS))
    picked, choice = headline_choices(solved), solved.choices[headline_rows(solved)[0]]
    settings = solved.question.settings
    of_a_day = picked["users"] * picked["requests_per_user_per_day"] * settings.peak_hour_share * settings.burst_factor
    assert of_a_day / 3600 == pytest.approx(OPTIONS["requests_per_second"], rel=1e-5)
    cells = values(book)
    assert cells["rec_decision_monthly_usd"] == pytest.approx(choice.monthly_usd, rel=1e-9)
    assert cells["in_decision_users"] == record_for(solved).headline_cells[0].users

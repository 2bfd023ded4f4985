"""A plan's workbook carried back: what was typed is in the plan.yaml, what cannot be is refused with its cell."""

from __future__ import annotations

import copy
import datetime
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner
from plan_books import PlanRecord, example, example_record, example_workbook, without_levers
from plan_edits import edited as with_typed
from readers import needs_gnumeric, recalculate_with_gnumeric
from recalculation import edit, tamper

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document, read_text
from sheetgen.cli import main
from sheetgen.errors import MissingLibraryError
from sheetgen.plan.bridge import last_of
from sheetgen.plan.read_plan import plan_of, read_plan
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.yellow import listed_prices_of, price_name, yellow_rows
from sheetgen.readback import plan_book
from sheetgen.readback.package import WorkbookError
from sheetgen.readback.plan_book import is_plan_book, read_plan_book
from sheetgen.readback.pulled_plan import lines, plan_text, pull_plan
from sheetgen.writers import plan_page as plan_page_writer
from sheetgen.writers.formats import templates_folder

CATALOG = Catalog()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("plan") / "plan.xlsx"
    target.write_bytes(example_workbook())
    return target


def test_untouched_it_gives_the_plan_that_it_was_built_of(path: Path) -> None:
    pulled = pull_plan(str(path), CATALOG)
    assert not pulled.edits and not pulled.notes and not pulled.overwritten
    assert [line.partition(" was")[0] for line in lines(pulled, {})] == ["nothing"]
    again = plan_of(read_text(plan_text(pulled, "1"), "plan.yaml"), CATALOG)
    built = read_plan(templates_folder() / "plan.yaml", CATALOG)
    assert (again.services, again.policy, again.supply, again.prices, again.budget, again.as_of) == (
        built.services,
        built.policy,
        built.supply,
        built.prices,
        built.budget,
        built.as_of,
    )
    assert read_plan_book(path).record == example_record()


def test_what_was_typed_is_in_the_plan(path: Path, tmp_path: Path) -> None:
    edited = edit(
        path,
        tmp_path / "edited.xlsx",
        {
            "in_plan_at": "P50",
            "in_service_1_dau_p90": 150_000,
            "in_budget_2027_q1": None,
            "in_as_of": 46400,
            "in_service_2_at_once_p50": 160,
            "in_lead_days_owned": 100,
            "in_committed_1_usd_per_hour": 12.5,
            "in_service_1_floor_replicas": 3,
            "in_price_change_p10": -0.5,
            "in_quota_1_limit": 9,
        },
    )
    pulled = pull_plan(str(edited), CATALOG)
    plan = plan_of(read_text(plan_text(pulled, "1"), "plan.yaml"), CATALOG)
    assert len(pulled.edits) == 10
    assert (plan.policy.plan_at, plan.as_of) == ("p50", datetime.date(2027, 1, 13))
    users, requests = plan.services[0].demand.users, plan.services[1].demand.at_once
    assert users is not None and users.dau is not None and requests is not None
    assert (users.dau.p50, users.dau.p90, requests.p10, requests.p50) == (100_000, 150_000, 50, 160)
    assert [service.floor_replicas for service in plan.services] == [3, 3, None, None]  # agents is like support-chat
    assert plan.quarters[0] not in plan.budget and len(plan.budget) == 5
    assert (plan.supply.lead_time_days["owned"].p50, plan.supply.lead_time_days["owned"].p90) == (100, 100)
    assert (plan.supply.committed[0].usd_per_hour, plan.supply.quota[0].limit) == (12.5, 9)
    assert plan.prices.expected_change_per_year.p10 == -0.5
    text = "\n".join(lines(pulled, {"p50": 1.0, "p90": 2.0}))
    assert " (Inputs!D39): 130,000 -> 150,000" in text
    assert "it was not recalculated" in text


def test_pull_gives_what_plan_gives(path: Path, tmp_path: Path) -> None:
    """Of a price, a quantity and demand typed into the workbook, as of the same plan.yaml."""
    machine, listed = next(iter(listed_prices_of(example().answer.plan, example_record()).items()))
    price = round(0.9 * listed, 2)  # cheaper: it is rented still
    typed = {
        price_name(machine): price,
        "committed_1_count": 9,
        "service_1_dau_p10": 160_000,
        "service_1_dau_p50": 200_000,
        "service_1_dau_p90": 260_000,
    }
    edited = edit(path, tmp_path / "edited.xlsx", {f"in_{name}": value for name, value in typed.items()})
    asked = ["pull", str(edited), "--format", "json", "--out", str(tmp_path), "--name", "q1"]
    with without_levers():
        pulled = CliRunner().invoke(main, asked)
    assert pulled.exit_code == 0, pulled.output
    data = copy.deepcopy(dict(example().answer.plan.data))
    data["prices"]["usd_per_hour"] = {machine: price}
    data["supply"]["committed"][0]["count"] = 9
    data["services"][0]["demand"]["users"]["dau"] = {"p10": 160_000, "p50": 200_000, "p90": 260_000}
    wanted = PlanRecord(solved_plan(plan_of(Document("plan.yaml", data, {}), CATALOG)))
    record = json.loads((tmp_path / "q1.json").read_text())
    for name in ("services", "supply", "decisions", "money", "totals", "prices"):
        if name == "totals":
            record[name].pop("inputs_sha256"), wanted[name].pop("inputs_sha256")
        assert record[name] == json.loads(json.dumps(wanted[name])), name
    assert record["prices"][machine]["on-demand"] == price != listed


def test_a_workbook_of_the_older_layout_says_how_to_build_it_anew(path: Path, tmp_path: Path) -> None:
    old = edit(path, tmp_path / "old.xlsx", {"meta_plan_schema": 1})
    for command in (("pull", str(old)), ("plan", "init", "--from", str(old), "--out", str(tmp_path / "no"))):
        refused = CliRunner(env={"COLUMNS": "1000"}).invoke(main, command)
        assert refused.exit_code == 1 and len(refused.stderr.splitlines()) == 1
        assert "its layout is 1" in refused.stderr and "plan PLAN.yaml --format xlsx" in refused.stderr


def test_what_no_cell_can_hold_is_refused_with_its_cell(path: Path, tmp_path: Path) -> None:
    edited = edit(
        path,
        tmp_path / "bad.xlsx",
        {
            "in_plan_at": "p95",
            "in_service_1_dau_p90": 1,
            "in_headroom_fraction": "x",
            "in_approval_days": None,
            "in_zones": 2.5,
            "in_as_of": "soon",
            "in_survive": "everything",
        },
    )
    with pytest.raises(WorkbookError) as refused:
        pull_plan(str(edited), CATALOG)
    text = "\n".join(refused.value.problems)
    assert len(refused.value.problems) == 7
    for words in (
        "Inputs!B6: Policy: Capacity is bought for: is 'p95'. Allowed: p10, p50, p90.",
        "Did you mean p90?",
        "Headroom: holds the text 'x'",
        "Approval: is blank. Type a value.",
        "Zones: is '2.5'",
        "Users of a day, p10: is out of order",
        "'soon', where a date belongs",
        "is 'everything'. Allowed: none,",
    ):
        assert words in text


@needs_gnumeric
def test_what_gnumeric_spells_otherwise_is_no_edit(path: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.xlsx"
    recalculate_with_gnumeric(path, saved)
    pulled = pull_plan(str(saved), CATALOG)
    assert not pulled.edits and not pulled.overwritten


def test_an_overwritten_formula_is_named(path: Path, tmp_path: Path) -> None:
    sheet, cell, right, _ = tamper(path, tmp_path / "twin.xlsx")
    pulled = pull_plan(str(tmp_path / "twin.xlsx"), CATALOG)
    assert [(str(cell.place), cell.was) for cell in pulled.overwritten] == [(f"{sheet}!{cell}", right)]
    assert "the formula was overwritten by =" in "\n".join(lines(pulled, {}))


def test_the_workbook_of_the_last_plan(path: Path) -> None:
    assert is_plan_book(path)
    book = read_plan_book(path)
    last = last_of(book.record, "plan.xlsx", CATALOG)
    rows = example_record()["money"]
    p50_usd, asked_usd = (sum(row[f"{name}_usd"] for row in rows) for name in ("p50", "p90"))
    contingency_usd = sum(row["contingency_p90_usd"] for row in rows)
    assert last.said_usd == pytest.approx((p50_usd, asked_usd + contingency_usd)) and contingency_usd > 0


@pytest.mark.long
def test_mail_and_init_take_a_workbook_with_what_was_typed(path: Path, tmp_path: Path) -> None:
    edited = edit(path, tmp_path / "edited.xlsx", {"in_headroom_fraction": 0.5})
    run = CliRunner().invoke
    refused = run(main, ["diff", str(path), str(edited)])
    assert refused.exit_code == 1 and "--since LAST`" in refused.stderr
    made = run(main, ["plan", "init", "--from", str(edited), "--out", str(tmp_path)])
    assert made.exit_code == 0 and "headroom_fraction: 0.5" in (tmp_path / "plan.yaml").read_text()
    mailed = run(main, ["mail", str(edited), "--to", "vp@acme.com", "--since", str(path), "--dry-run", "--json"])
    told = json.loads(mailed.stdout)
    assert set(told["attachments"]) == {"edited.pdf", "edited.docx"} and "headroom and survival +$" in str(told)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("meta_record_1", "no plan", "the record that it carries is damaged"),
        ("meta_record_1", None, "the record that it carries is damaged"),
        (
            "meta_plan_schema",
            99,
            "its layout is 99, of another sheetgen; this one reads 7. Build it anew: sheetgen",
        ),
    ],
)
def test_a_damaged_record_is_refused(path: Path, tmp_path: Path, name: str, value: object, words: str) -> None:
    edited = edit(path, tmp_path / "damaged.xlsx", {name: value})
    with pytest.raises(WorkbookError, match=words):
        read_plan_book(edited)


def test_what_is_stated_in_the_currency_of_the_plan_is_typed_in_it() -> None:
    data = {"plan": {"start": "2027-Q1", "quarters": 1, "currency": "EUR", "fx_rate": 0.5}, "budget": {"2027-Q1": 100},
            "services": [{"id": "one", "demand": {"at_once": 4}, "model": "llama-3.1-8b"}],
            "supply": {"owned": [{"id": "o", "gpu": "h100", "count": 8, "cost_per_quarter": 100}]}}  # fmt: skip
    plan = plan_of(Document("plan.yaml", data, {}), CATALOG)
    rows = {row.name: row for row in yellow_rows(plan, {})}
    assert {name: rows[name].value for name in ("budget_2027_q1", "owned_1_cost", "fx_rate")} == {
        "budget_2027_q1": 100,
        "owned_1_cost": 100,
        "fx_rate": 0.5,
    }
    assert rows["budget_2027_q1"].display.prefix == "€"
    written = with_typed([*rows.values()], data, {"budget_2027_q1": 150, "owned_1_cost": 37.5, "fx_rate": 0.4})
    assert (written["budget"], written["supply"]["owned"][0]["cost_per_quarter"]) == ({"2027-Q1": 150}, 37.5)
    assert plan_of(Document("plan.yaml", written, {}), CATALOG).budget[plan.quarters[0]] == 375


@pytest.mark.parametrize(
    ("shorthand", "name", "value", "written"),
    [
        ({"at_once": 40}, "service_1_at_once_p90", 60, {"at_once": {"p10": 40, "p50": 40, "p90": 60}}),
        ({"users": 500}, "service_1_people_p10", 300, {"users": {"people": {"p10": 300, "p50": 500, "p90": 500}}}),
        (
            {"users": 500},
            "service_1_requests_per_user_per_day",
            30,
            {"users": {"people": 500, "requests_per_user_per_day": 30}},
        ),
        (
            {"users": {"people": 500, "active_fraction": 0.4}},
            "service_1_active_fraction",
            0.5,
            {"users": {"people": 500, "active_fraction": 0.5}},
        ),
        (
            {"requests": {"p10": 1, "p50": 2, "p90": 3}},
            "service_1_peak_per_second_p50",
            2.5,
            {"requests": {"peak_per_second": {"p10": 1, "p50": 2.5, "p90": 3}}},
        ),
    ],
)
def test_what_was_written_in_short_is_written_out(shorthand: Any, name: str, value: object, written: object) -> None:
    data = {
        "plan": {"start": "2027-Q1", "quarters": 2},
        "services": [{"id": "one", "demand": shorthand, "growth": 0.1, "model": "llama-3.1-8b"}],
    }
    plan = plan_of(Document("plan.yaml", copy.deepcopy(data), {}), CATALOG)
    typed = with_typed(
        [*yellow_rows(plan, {})],
        plan.data,
        {
            name: value,
            "service_1_growth_per_quarter_p90": 0.3,
            "lead_days_on_demand": 3,
            "discount_fraction": 0.2,
            "budget_2027_q2": 7,
        },
    )
    assert typed["services"][0]["demand"] == written
    assert typed["services"][0]["growth"] == {"per_quarter": {"p10": 0.1, "p50": 0.1, "p90": 0.3}}
    assert typed["supply"] == {"lead_time_days": {"on-demand": 3}} and typed["budget"] == {"2027-Q2": 7}
    assert plan.data == data, "what was written stays as it is"
    assert plan_of(Document("plan.yaml", typed, {}), CATALOG).prices.discount_fraction == 0.2


@pytest.mark.long
def test_the_commands(path: Path, tmp_path: Path) -> None:
    edited = edit(path, tmp_path / "edited.xlsx", {"in_headroom_fraction": 0.3})
    pulled = CliRunner().invoke(main, ["pull", str(edited), "--format", "md", "--out", str(tmp_path), "--name", "q1"])
    assert pulled.exit_code == 0, pulled.output
    assert " (Inputs!B7): 0.1 -> 0.3" in pulled.output
    assert {"q1.md", "q1.plan.yaml"} < {file.name for file in tmp_path.iterdir()}
    since = CliRunner().invoke(
        main,
        [
            "plan",
            str(tmp_path / "q1.plan.yaml"),
            "--since",
            str(path),
            "--format",
            "json",
            "--out",
            str(tmp_path),
            "--json",
        ],
    )
    assert since.exit_code == 0, since.output
    assert [part["factor"] for part in json.loads(since.stdout)["bridge"]] == ["headroom and survival"]
    bad = edit(path, tmp_path / "bad.xlsx", {"in_approval_days": "x"})
    refused = CliRunner().invoke(main, ["pull", str(bad), "--out", str(tmp_path), "--name", "no"])
    assert refused.exit_code == 1 and not [*tmp_path.glob("no*")]


@pytest.mark.long
def test_without_pango_pull_writes_what_there_is(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise MissingLibraryError("Pango is missing.")

    monkeypatch.setattr(plan_page_writer, "write_plan_pdf", refuse)
    asked = ("--format", "pdf,md", "--out", str(tmp_path), "--name", "q1", "-q")
    made = CliRunner().invoke(main, ["pull", str(path), *asked])
    assert (made.exit_code, made.stderr) == (1, "Pango is missing.\n")
    assert {file.name for file in tmp_path.iterdir()} == {"q1.md", "q1.plan.yaml"}


def test_a_workbook_that_is_no_plan_or_damaged_is_said_so(path: Path, tmp_path: Path) -> None:
    """`--since` and `actuals` read it as JSON, and named a byte that no UTF-8 begins with."""
    broken, other, spent = tmp_path / "broken.xlsx", tmp_path / "other.xlsx", tmp_path / "spent.csv"
    broken.write_bytes(path.read_bytes()[:4000])
    openpyxl.Workbook().save(other)
    spent.write_text("quarter,usd\n2027-Q1,10\n")
    plan = str(templates_folder() / "plan.yaml")
    for file, says in ((broken, "broken.xlsx: "), (other, "other.xlsx: is no plan's workbook, or lost the plan")):
        for command in (
            ("actuals", str(spent), "--plan", str(file)),
            ("plan", plan, "--since", str(file), "--out", str(tmp_path)),
        ):
            command = ("plan", *command) if command[0] == "actuals" else command
            refused = CliRunner(env={"COLUMNS": "1000"}).invoke(main, command)
            assert refused.exit_code == 1, refused.output
            assert says in refused.stderr
            assert "codec" not in refused.stderr and "JSON" not in refused.stderr


@pytest.mark.long
def test_mail_reads_the_last_plan_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def counted(file: Path) -> Any:
        seen.append(file)
        return read_plan_book(file)

    monkeypatch.setattr(plan_book, "read_plan_book", counted)
    told = CliRunner().invoke(
        main, ["mail", str(templates_folder() / "plan.yaml"), "--to", "vp@acme.com", "--since", str(path), "--dry-run"]
    )
    assert told.exit_code == 0, told.output
    assert seen == [path]

"""What changed since the last plan, and a plan in a message: the words, signs and limits of sheets."""

from __future__ import annotations

import email
import email.policy
import json
import re
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from plan_books import example, findings_without_levers, without_levers

from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.errors import ScenarioError
from sheetgen.mail.message import USUAL_CHARACTERS, Letter, bodies
from sheetgen.plan.bridge import read_record
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import read_plan
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.writers.formats import templates_folder

CATALOG = Catalog()
OLD = """\
plan: {name: NAME, start: 2027-Q1, quarters: 2, as_of: 2026-11-26, approver: vp}
budget: {2027-Q1: 1000}
services:
  - {id: chat, demand: {at_once: 100}, model: 8b, growth: 0.1}
  - {id: rag, demand: {at_once: 40}, model: 70b}
""".replace("NAME", "Serving plan")
NEW = (
    OLD.replace("at_once: 100", "at_once: 400")
    .replace("as_of: 2026-11-26", "as_of: 2026-11-27")
    .replace("budget: {2027-Q1: 1000}", "prices: {discount_fraction: 0.1}")
    .replace("{id: rag, ", "{id: code, ")
)


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two plans, and the JSON of each."""
    made = tmp_path_factory.mktemp("plans")
    for name, text in (("old", OLD), ("new", NEW)):
        (made / f"{name}.yaml").write_text(text)
        with without_levers():
            assert run("plan", made / f"{name}.yaml", "--out", made, "--name", name, "--format", "json").exit_code == 0
    return made


def test_diff_names_the_way_to_compare_plans(folder: Path) -> None:
    (folder / "sheet.json").write_text('{"inputs": {}, "cells": []}')
    for arguments in (("old", "new"), ("sheet", "new"), ("old", "sheet")):
        refused = run("diff", *(folder / f"{name}.json" for name in arguments))
        assert refused.exit_code == 1
        assert "plan PLAN.yaml --since LAST`" in refused.stderr


def test_since_says_what_changed(folder: Path, tmp_path: Path) -> None:
    made = ("plan", folder / "new.yaml", "--since", folder / "old.json", "--out", tmp_path, "--format", "json")
    record = json.loads(run(*made, "--json").stdout)
    old = json.loads((folder / "old.json").read_text())
    totals = [sum(money["p50_usd"] for money in stated["money"]) for stated in (old, record)]
    assert sum(round(100 * part["usd"]) for part in record["bridge"]) == round(100 * totals[1]) - round(100 * totals[0])
    assert {part["factor"] for part in record["bridge"]} == {"users", "price"}


def test_a_plan_and_what_is_none(folder: Path) -> None:
    (folder / "sheet.json").write_text('{"inputs": {}, "cells": []}')
    with pytest.raises(ScenarioError, match=r"sheet\.json: is no plan: as_of is missing"):
        read_record(folder / "sheet.json")
    (folder / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ScenarioError, match=r"deep\.json: is no plan"):
        read_record(folder / "deep.json")


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        (("inputs", "plan"), "text", "inputs.plan"),
        (("inputs", "policy", "buy"), ["on-demand"], "inputs.policy.buy"),
        (("as_of",), ["2026"], "as_of"),
        (("money", 0, "p50_usd"), float("nan"), "money.0.p50_usd"),
        (("prices", "azure/Standard_NC40ads_H100_v5"), "6.98", "prices"),
        (("services", 0, "monthly_usd"), {}, "services.0.monthly_usd"),
        (("supply",), [{"quarter": "2027-Q1", "instance": "aws/p5.48xlarge"}], "supply.0.p50_usd is missing"),
    ],
)
def test_a_wrong_value_in_a_plans_json_is_named(folder: Path, tmp_path: Path, place, value, named: str) -> None:  # type: ignore[no-untyped-def]
    record = part = json.loads((folder / "old.json").read_text())
    for key in place[:-1]:
        part = part.setdefault(key, {}) if isinstance(part, dict) else part[key]
    part[place[-1]] = value
    (tmp_path / "wrong.json").write_text(json.dumps(record))
    with pytest.raises(ScenarioError, match=re.escape(f"wrong.json: is no plan: {named}")):
        read_record(tmp_path / "wrong.json")


@pytest.mark.long
def test_a_draft_of_a_plan(folder: Path, tmp_path: Path) -> None:
    made = run("mail", folder / "new.yaml", "--to", "vp@acme.com", "--since", folder / "old.json", "--out", tmp_path)
    assert made.exit_code == 0, made.output
    letter = email.message_from_bytes((tmp_path / "new.eml").read_bytes(), policy=email.policy.default)
    assert isinstance(letter, EmailMessage)
    assert [attachment.get_filename() for attachment in letter.iter_attachments()] == ["new.pdf", "new.docx"]
    text = letter.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    for phrase in (
        "Dear vp,",
        "TO PAY LESS",
        "WHAT CHANGED SINCE old.json",
        "users +$",
        "1 approved: $",
        ", by 20",
        "new.pdf (page 1 is the request)",
    ):
        assert phrase in text, phrase
    assert len(letter["Subject"]) <= USUAL_CHARACTERS


def test_the_message_of_the_example_has_180_words_at_most() -> None:
    page = plan_page(example())
    text, _ = bodies(Letter(page, "capacity-plan", attached=("pdf", "docx")), templates_folder())
    assert "BUDGET" in text and len(text.split()) <= 180


@pytest.mark.long
def test_a_dry_run_of_the_json(folder: Path) -> None:
    told = json.loads(run("mail", folder / "new.json", "--to", "vp@acme.com", "--dry-run", "--json").stdout)
    assert told["status"] == "dry run" and set(told["attachments"]) == {"new.pdf", "new.docx"}
    wrong = run("mail", folder / "new.json", "--to", "vp@acme.com", "--models", "8b", "--dry-run")
    assert wrong.exit_code == 2 and "--models does not go" in wrong.output
    changed = json.loads((folder / "new.json").read_text())
    changed["money"][0]["p50_usd"] += 1
    (folder / "other.json").write_text(json.dumps(changed))
    refused = run("mail", folder / "other.json", "--to", "vp@acme.com", "--dry-run")
    assert refused.exit_code == 1 and "give other money than it says" in refused.output


@pytest.mark.some(1)
@pytest.mark.parametrize("title", ["Plan", "Serving capacity of all products in every region of the world, fiscal"])
def test_a_subject_keeps_its_limit(title: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(OLD.replace("Serving plan", f'"{title}"'))
    page = plan_page(findings_without_levers(solved_plan(read_plan(tmp_path / "plan.yaml", CATALOG))))
    line = Letter(page, "q1").subject()
    assert len(line) <= USUAL_CHARACTERS and "to approve" in line and line.startswith(title[:33])
    assert Letter(page, "q1").subject("{budget}: {p50}").startswith("over budget in 2027-Q1: $")


def keys(value: Any) -> set[str]:
    return {*value} if isinstance(value, dict) else set()


def test_the_json_says_what_it_was_made_with(folder: Path) -> None:
    assert keys(read_record(folder / "new.json")) >= {"version", "catalog_sha256"}

"""Two plans compared, and a plan in a message: the words, signs and limits of sheets."""

from __future__ import annotations

import email
import email.policy
import json
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.errors import ScenarioError
from sheetgen.mail.message import USUAL_CHARACTERS, Letter
from sheetgen.plan.bridge import read_record
from sheetgen.plan.findings import findings
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read import read_plan
from sheetgen.plan.solve import solved_plan
from sheetgen.workbook.compare_plans import compare_records

CATALOG = Catalog()
OLD = """\
plan: {name: NAME, start: 2027-Q1, quarters: 2, as_of: 2026-11-26, approver: vp}
budget: {2027-Q1: 50000}
services:
  - {id: chat, demand: {in_flight: 100}, model: 8b, growth: 0.1}
  - {id: rag, demand: {in_flight: 40}, model: 70b}
""".replace("NAME", "Serving plan")
NEW = (
    OLD.replace("in_flight: 100", "in_flight: 400")
    .replace("as_of: 2026-11-26", "as_of: 2026-11-27")
    .replace("budget: {2027-Q1: 50000}", "prices: {discount_fraction: 0.1}")
    .replace("{id: rag, ", "{id: code, ")
)


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two plans, and the JSON of each."""
    made = tmp_path_factory.mktemp("plans")
    for name, text in (("old", OLD), ("new", NEW)):
        (made / f"{name}.yaml").write_text(text)
        assert run("plan", made / f"{name}.yaml", "--out", made, "--name", name).exit_code == 0
    return made


def test_what_changed(folder: Path) -> None:
    found = json.loads(run("diff", folder / "old.json", folder / "new.json", "--json").stdout)
    old, new = (json.loads((folder / f"{name}.json").read_text()) for name in ("old", "new"))
    said = [sum(one["p50_usd"] for one in each["money"]) for each in (old, new)]
    assert sum(round(100 * one["usd"]) for one in found["bridge"]) == round(100 * said[1]) - round(100 * said[0])
    assert {one["factor"] for one in found["bridge"]} == {"users", "price"}
    assert (found["a"]["kind"], found["equal"], found["not_compared"]) == ("plan", False, [])
    words = {one["name"]: one["words"] for one in found["inputs"]}
    assert words["services.chat.demand.in_flight"] == "services.chat.demand.in_flight: 100 -> 400 (+300 %)"
    assert words["prices.discount_fraction"].endswith("0.1 added") and words["budget.2027-Q1"].endswith("removed")
    assert "plan.as_of" not in words
    alone = [one["words"] for one in found["services"] if not one["name"].startswith("chat")]
    assert [one.rpartition(" ")[2] for one in alone] == ["added", "added", "removed", "removed"]
    change = next(one for one in found["money"] if one["name"] == "2027-Q1.p50_usd")
    assert change["change_usd"] == pytest.approx(new["money"][0]["p50_usd"] - old["money"][0]["p50_usd"])


def test_the_same_plan_is_equal(folder: Path) -> None:
    same = run("diff", folder / "old.json", folder / "old.json", "--exit-code")
    assert same.exit_code == 0 and "nothing changed" in same.output
    assert "Nothing changed." in run("diff", folder / "old.json", folder / "old.json", "--block", "md").output


def test_words_and_block(folder: Path) -> None:
    words = run("diff", folder / "old.json", folder / "new.json", "--exit-code")
    assert words.exit_code == 1
    for said in ("MONEY BY QUARTER", "SPEND OF ALL QUARTERS AT P50", "users +$", "price -$"):
        assert said in words.output
    block = run("diff", folder / "old.json", folder / "new.json", "--block", "md").output
    assert "| Price | −$" in block and "| This plan | $" in block


def test_a_plan_and_what_is_none(folder: Path) -> None:
    (folder / "sheet.json").write_text('{"inputs": {}, "cells": []}')
    with pytest.raises(ScenarioError, match=r"sheet\.json: is no plan"):
        read_record(folder / "sheet.json")
    (folder / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ScenarioError, match=r"deep\.json: is no plan"):
        read_record(folder / "deep.json")


def test_a_plan_that_cannot_be_worked_out_again(folder: Path) -> None:
    old, new = (read_record(folder / f"{name}.json") for name in ("old", "new"))
    gone = json.loads(json.dumps(old))
    gone["inputs"]["services"][0]["model"] = "no-such-model"
    found = compare_records("old.json", gone, "new.json", new, CATALOG)
    assert found.bridge is None and "no-such-model" in found.not_compared[0]
    assert any(one.name == "services.chat.model" for one in found.sections["inputs"])


def test_a_draft_of_a_plan(folder: Path, tmp_path: Path) -> None:
    made = run("mail", folder / "new.yaml", "--to", "vp@acme.com", "--since", folder / "old.json", "--out", tmp_path)
    assert made.exit_code == 0, made.output
    found = email.message_from_bytes((tmp_path / "new.eml").read_bytes(), policy=email.policy.default)
    assert isinstance(found, EmailMessage)
    assert [one.get_filename() for one in found.iter_attachments()] == ["new.pdf", "new.docx"]
    text = found.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    for said in (
        "Hello vp,",
        "Please approve $",
        "WHAT IS UNCERTAIN",
        "WHAT CHANGED SINCE old.json",
        "users +$",
        "Reply with your approval, by 20",
        "Read new.pdf, attached",
    ):
        assert said in text, said
    assert len(found["Subject"]) <= USUAL_CHARACTERS


def test_a_dry_run_of_the_json(folder: Path) -> None:
    told = json.loads(run("mail", folder / "new.json", "--to", "vp@acme.com", "--dry-run", "--json").stdout)
    assert told["status"] == "dry run" and set(told["attachments"]) == {"new.pdf", "new.docx"}
    wrong = run("mail", folder / "new.json", "--to", "vp@acme.com", "--models", "8b", "--dry-run")
    assert wrong.exit_code == 2 and "--models does not go with a plan" in wrong.output
    other = json.loads((folder / "new.json").read_text())
    other["money"][0]["p50_usd"] += 1
    (folder / "other.json").write_text(json.dumps(other))
    refused = run("mail", folder / "other.json", "--to", "vp@acme.com", "--dry-run")
    assert refused.exit_code == 1 and "give other money than it says" in refused.output


@pytest.mark.parametrize("title", ["Plan", "Serving capacity of all products in every region of the world, fiscal"])
def test_subject_and_table_keep_their_limits(title: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(OLD.replace("Serving plan", f'"{title}"'))
    page = plan_page(findings(solved_plan(read_plan(tmp_path / "plan.yaml", CATALOG))))
    line = Letter(page, "q1").subject()
    assert len(line) <= USUAL_CHARACTERS and "expected" in line and line.startswith(title[:11])
    assert len(page.brief.answers.columns) <= 6
    assert Letter(page, "q1").subject("{budget}: {p50}").startswith("over budget in 2027-Q1: $")


def keys(value: Any) -> set[str]:
    return {*value} if isinstance(value, dict) else set()


def test_the_json_says_what_it_was_made_with(folder: Path) -> None:
    assert keys(read_record(folder / "new.json")) >= {"version", "catalog_sha256"}

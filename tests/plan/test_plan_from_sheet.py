"""A plan that begins from a sheet: the same models, loads, targets and prices, so the same month."""

from __future__ import annotations

import json
import shlex
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from option_values import OptionValue

from sheetgen.cli import main
from sheetgen.plan.next_plan import next_plan


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def months(tmp_path: Path, sheet: str, *models: str) -> dict[str, Any]:
    """By machine the month of the first quarter of a plan that begins from models of a sheet."""
    run("plan", "init", "--from", sheet, "--out", str(tmp_path), "--force", *models)
    record = json.loads(run("plan", str(tmp_path / "plan.yaml"), "--out", str(tmp_path), "--format", "json", "--json"))
    return {
        service["gpu"] and f"{service['instance']} {service['n_instances']}": service["monthly_usd"]
        for service in record["services"]
    }


OPTIONS = (
    ("recommend", "--model", "70b", "--context", "16k", "--users", "200", "--survive", "zone", "--zones", "4"),
    ("recommend", "--model", "8b", "--requests-per-second", "6", "--discount-fraction", "0.1", "--tpot-ms", "off",
     "--max-wait-fraction", "0.01", "--gpu-memory-utilization", "0.8", "--weight-dtype", "fp8"),
    ("recommend", "--model", "gpt-oss-120b", "--concurrent-requests", "64", "--providers", "azure", "--purchase",
     "reserved-1yr", "--near-tie-fraction", "0", "--hours-per-month", "200"),
    ("recommend", "--model", "8b", "--users", "400", "--requests-per-user-per-day", "35", "--burst-factor", "2"),
)  # fmt: skip


@pytest.mark.some(2)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options[2])
def test_a_plan_of_an_answer_costs_what_it_says(options: tuple[str, ...], tmp_path: Path) -> None:
    text = run(*options, "--json")
    answer = json.loads(text)
    (tmp_path / "answer.json").write_text(text)
    by_machine = months(tmp_path, str(tmp_path / "answer.json"))
    assert by_machine == {f"{answer['instance']} {answer['n_instances']}": pytest.approx(answer["monthly_usd"])}


@pytest.mark.some(1)
@pytest.mark.parametrize("models", ["70b", "8b,70b"])
def test_a_plan_of_a_workbook(models: str, tmp_path: Path) -> None:
    """A model by itself costs what the sheet says; two may share machines, and then cost less."""
    run(
        "build",
        "--models",
        models,
        "--workloads",
        "rag",
        "--tiers",
        "8,64",
        "--providers",
        "gcp",
        "--headline",
        "rag:64",
        "--format",
        "xlsx,json",
        "--out",
        str(tmp_path),
        "--name",
        "s",
    )
    of_json, of_book = (
        months(tmp_path, str(tmp_path / f"s.{ending}"), "--models", models) for ending in ("json", "xlsx")
    )
    cells = json.loads((tmp_path / "s.json").read_text())["cells"]
    wanted = [cell for cell in cells if (cell["workload"], cell["tier"]) == ("rag", 64)]
    assert of_json == of_book
    of_sheet = sum(cell["monthly_usd"] for cell in wanted)
    assert len(of_book) == len(wanted)
    if "," in models:
        assert sum(of_book.values()) < of_sheet
    else:
        assert sum(of_book.values()) == pytest.approx(of_sheet)


BOTH = ("llama-3.1-8b", "llama-3.1-70b")


def sheet_of_two(tmp_path: Path, *options: str) -> str:
    """The JSON of a sheet of two models for one load."""
    load = ("--models", "8b,70b", "--workloads", "chat", "--tiers", "32")
    run("build", *load, "--format", "json", "--out", str(tmp_path), "--name", "s", *options)
    return str(tmp_path / "s.json")


def begun(sheet: str, out: Path, *options: str) -> tuple[str, list[Any], list[str]]:
    """The words of `plan init`, the models of the plan, and the comments at its head."""
    words = run("plan", "init", "--from", sheet, "--out", str(out), "--force", *options)
    text = (out / "plan.yaml").read_text()
    comments = list(takewhile(lambda line: line.startswith("#"), text.splitlines()))
    return " ".join(words.split()), [service["model"]["id"] for service in yaml.safe_load(text)["services"]], comments


def test_alternatives_of_a_sheet_are_not_added_up(tmp_path: Path) -> None:
    """Three models of a sheet, each with the whole load, made a request to approve all three. A sheet that prefers none
    is refused with the commands that choose, and each of these runs."""
    sheet = sheet_of_two(tmp_path)
    result = CliRunner().invoke(main, ["plan", "init", "--from", sheet, "--out", str(tmp_path)])
    assert result.exit_code == 2 and not (tmp_path / "plan.yaml").exists()
    commands = [shlex.split(line, comments=True) for line in result.stderr.splitlines() if "  sheetgen plan" in line]
    planned = []
    for _, *arguments in commands:
        run(*arguments, "--force")
        planned.append(
            [service["model"]["id"] for service in yaml.safe_load((tmp_path / "plan.yaml").read_text())["services"]]
        )
    assert planned == [[BOTH[0]], [BOTH[1]], [*BOTH]]


def test_the_model_that_a_sheet_asks_to_approve_is_planned(tmp_path: Path) -> None:
    sheet = sheet_of_two(tmp_path, "--ask", "70b")
    cells = json.loads(Path(sheet).read_text())["cells"]
    (wanted,) = (cell["monthly_usd"] for cell in cells if cell["model"] == BOTH[1])
    assert list(months(tmp_path, sheet).values()) == [pytest.approx(wanted)]
    words, models, comments = begun(sheet, tmp_path)
    assert models == [BOTH[1]]
    assert f"--models {BOTH[0]}" in words
    for text in (words, comments[1]):
        assert "alternatives" in text and all(model in text for model in BOTH)
    assert begun(sheet, tmp_path, "--models", "8b")[1] == [BOTH[0]]  # what is named wins


@pytest.mark.parametrize("options", [(("--together",), ()), ((), ("--models", "70b,8b"))], ids=["together", "named"])
def test_several_models_of_a_sheet_serve_the_whole_load_each(
    options: tuple[tuple[str, ...], tuple[str, ...]], tmp_path: Path
) -> None:
    of_sheet, of_plan = options
    words, models, comments = begun(sheet_of_two(tmp_path, *of_sheet), tmp_path, *of_plan)
    assert models == [*BOTH]
    assert all("whole load" in text and "2 times" in text for text in (words, comments[1]))


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--from", "SHEET", "--models", "405b"), 1, "one of the sheet's models: llama-3.1-8b, llama-3.1-70b."),
        (("--from", "SHEET", "--models", "8b,lama"), 1, "models is 'lama'"),
        (("--models", "8b"), 2, "--models goes with --from SHEET"),
        (("--from", "PLAN", "--models", "8b"), 2, "--models goes with --from SHEET"),
    ],
)  # fmt: skip
def test_a_model_that_a_plan_cannot_begin_from(options: tuple[str, ...], code: int, words: str, tmp_path: Path) -> None:
    files = {"SHEET": "s.json", "PLAN": "q1.json"}
    if "SHEET" in options:
        sheet_of_two(tmp_path)
    elif "PLAN" in options:
        (tmp_path / "q1.yaml").write_text(json.dumps(PLAN))
        run("plan", str(tmp_path / "q1.yaml"), "--out", str(tmp_path), "--name", "q1", "--format", "json", "-q")
    named = (str(tmp_path / files[option]) if option in files else option for option in options)
    result = CliRunner().invoke(main, ["plan", "init", "--out", str(tmp_path), *named])
    assert result.exit_code == code and words in result.stderr
    assert not (tmp_path / "plan.yaml").exists()


@pytest.mark.parametrize("text", ["", "[]", '{"inputs": {}}', "[" * 100_000], ids=len)
def test_what_is_no_sheet(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    result = CliRunner().invoke(main, ["plan", "init", "--from", str(tmp_path / "x.json"), "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "is no sheet" in result.output
    assert not (tmp_path / "plan.yaml").exists()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("as_of",), "soon", "as_of 'soon' is no day"),
        (("inputs", "zones"), 1.5, "inputs.zones is"),
        (("inputs", "purchase"), "gift", "inputs.purchase is"),
        (("inputs", "headline"), "chat", "inputs.headline is"),
        (("inputs", "providers"), ["aws", "a\n- id: evil"], "inputs.providers.1 is"),
        (("inputs", "workloads"), [], "has no workload chat"),
        (("cells",), [], "has no cell of its headline"),
        (("cells",), [{"model": "8b"}], "cells.0.workload is missing"),
    ],
)
def test_a_sheet_with_a_wrong_value_is_refused_by_its_key(
    path: tuple[str, ...], value: object, words: str, tmp_path: Path
) -> None:
    run("build", "--models", "8b", "--headline", "chat:32", "--format", "json", "--out", str(tmp_path), "--name", "s")
    sheet = json.loads((tmp_path / "s.json").read_text())
    part = sheet[path[0]] if len(path) > 1 else sheet
    assert path[-1] in part
    part[path[-1]] = value
    (tmp_path / "x.json").write_text(json.dumps(sheet))
    result = CliRunner().invoke(main, ["plan", "init", "--from", str(tmp_path / "x.json"), "--out", str(tmp_path)])
    assert result.exit_code == 1 and words in " ".join(result.output.split()), result.output
    assert not (tmp_path / "plan.yaml").exists()


NC40 = "azure/Standard_NC40ads_H100_v5"  # of which one serves 145 of the requests below
NC80 = "azure/Standard_NC80adis_H100_v5"
PLAN: dict[str, Any] = {
    "plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"},
    "policy": {"approval_days": 30},
    "supply": {"allowed": {"instances": [NC40], "exclude": ["spot"]}},
    "services": [
        {"id": "one", "demand": {"at_once": 400}, "model": "8b", "growth": 0.5},
        {"id": "two", "demand": {"at_once": 145}, "model": "8b", "growth": {"series": [1, 2, 3, 4]}},
        {"id": "three", "demand": {"at_once": 145}, "model": "8b", "growth": {"steps": {"2027-Q2": 2, "2027-Q4": 3}}},
        {"id": "four", "demand": {"at_once": 145}, "model": "8b", "retire": "2027-Q2"},
    ],
    "budget": {"2027-Q1": 100000, "2027-Q2": 150000},
}


def followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **policy: OptionValue
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A plan, and the one that follows it on 26 February 2027, as their JSON."""
    first, folder = tmp_path / "q1.yaml", str(tmp_path)
    first.write_text(json.dumps({**PLAN, "policy": {"approval_days": 30, **policy}}))
    run("plan", str(first), "--out", folder, "--name", "q1", "--format", "json", "-q")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1803600000")
    run("plan", "init", "--from", str(tmp_path / "q1.json"), "--out", folder, "--force")
    run("plan", str(tmp_path / "plan.yaml"), "--out", folder, "--name", "q2", "--format", "json", "-q")
    last, now = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("q1", "q2"))
    return last, now


def test_the_next_plan_has_what_the_last_one_ordered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six machines were ordered for the first quarter, and the second needs nine: three more are to be ordered. All
    nine were."""
    last, now = followed(tmp_path, monkeypatch)
    assert [row["needed"] for row in last["supply"]] == [6, 9, 12, 20]
    assert (now["as_of"], now["inputs"]["plan"]["start"]) == ("2027-02-26", "2027-Q2")
    assert now["inputs"]["supply"]["ordered"] == [
        {"type": NC40, "count": 6, "purchase": "on-demand", "from": "2027-01-01", "services": ["one", "two", "three"]}
    ]
    assert [row["needed"] for row in now["supply"]][:3] == [9, 12, 20]  # as the last plan said of those quarters
    first = now["decisions"][0]
    assert (first["what"], first["n_instances"], first["late"]) == ("order", 3, False)
    assert now["unserved"] == [] and now["since"]["file"] == "q1.json"
    assert now["inputs"]["budget"] == {"2027-Q2": 150000}
    assert [row["id"] for row in now["inputs"]["services"]] == ["one", "two", "three"]


def test_orders_of_a_term_are_commitments_of_the_next_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last, now = followed(tmp_path, monkeypatch, buy="reserved-1yr")
    (committed,) = now["inputs"]["supply"]["committed"]
    order = last["decisions"][0]
    assert (committed["type"], committed["count"], committed["purchase"]) == (NC40, 6, "reserved-1yr")
    assert (committed["from"], committed["until"]) == ("2027-01-01", "2027-12-31")
    assert committed["services"] == ["one", "two", "three"]
    assert committed["usd_per_hour"] * 6 * 730 * 12 == pytest.approx(order["binds_usd"])
    assert [row["committed"] for row in now["supply"]][:4] == [6, 6, 6, 0]
    # What they cost is what the last plan said of those quarters.
    assert now["money"][0]["p90_usd"] == pytest.approx(last["money"][1]["p90_usd"])


def test_what_was_ordered_keeps_its_days() -> None:
    """Eight of 4 January and one of the 20th were nine of the 20th; what is given back is of the last."""

    def signed(kind: str, n: int, day: str | None) -> dict[str, Any]:
        about = {"instance": NC40, "purchase": "on-demand", "needed_from": "2027-01-01", "there_on": day}
        return {"what": kind, "kind": "now", "n_instances": n, **about}

    before = {"type": NC40, "count": 1, "purchase": "on-demand", "from": "2027-01-20"}
    supply = {**PLAN["supply"], "ordered": [before]}
    last: dict[str, Any] = {"inputs": {**PLAN, "supply": supply}, "as_of": "2026-11-26"}

    def ordered(*decisions: dict[str, Any]) -> dict[str, int]:
        following = next_plan({**last, "decisions": decisions}, "q1.json", date(2027, 2, 26))
        return {row["from"]: row["count"] for row in following["supply"]["ordered"]}

    order = signed("order", 8, "2027-01-04")
    assert ordered(order) == {"2027-01-20": 1, "2027-01-04": 8}
    assert ordered(order, signed("release", 3, None)) == {"2027-01-04": 6}


def test_the_next_plan_has_services_where_they_run_and_not_where_a_forecast_has_them() -> None:
    """A service whose move was a forecast was put on the machines of its forecast, and moved back for a saving of
    $248,173. A move that was to be signed is made; of two orders each has its own day."""
    first, second = ("2027-01-01", "2027-03-31"), ("2027-04-01", "2027-06-30")
    quarters = [
        {"quarter": name, "from": days[0], "until": days[1]} for name, days in (("2027-Q1", first), ("2027-Q2", second))
    ]
    on = {"one": (NC40, NC40), "two": (NC40, NC80), "three": (NC40, None)}
    rows = [
        {"id": name, "quarter": quarter["quarter"], "instance": instances[i]}
        for i, quarter in enumerate(quarters)
        for name, instances in on.items()
    ]
    orders = [
        {"type": machine, "count": 3, "purchase": "on-demand", "from": day}
        for machine, day in ((NC40, first[0]), (NC80, first[0]), (NC80, second[0]))
    ]
    signed = {"id": "c", "type": NC40, "count": 1, "until": "2027-09-30"}
    move = {"what": "move", "instance": NC80, "needed_from": second[0], "n_instances": 1, "purchase": None}

    def services(kind: str) -> list[list[str] | None]:
        last = {
            "inputs": {**PLAN, "supply": {**PLAN["supply"], "ordered": orders, "committed": [signed]}},
            "as_of": "2026-11-26",
            "quarters": quarters,
            "services": rows,
            "decisions": [move | {"kind": kind}],
        }
        following = next_plan(last, "q1.json", date(2027, 2, 26))
        parts = [*following["supply"]["committed"], *following["supply"]["ordered"]]
        return [part.get("services") for part in parts]

    # What is committed has them as what was ordered.
    assert services("forecast") == [["one", "two", "three"], ["one", "two", "three"], None, ["two"]]
    assert services("now") == [["one", "three"], ["one", "three"], ["two"], ["two"]]

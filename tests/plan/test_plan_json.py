"""The plan's JSON is as templates/plan.schema.json says, and its years and owners follow from the rest."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from plan_books import example
from pydantic import BaseModel

from sheetgen import recommend
from sheetgen.catalog import Catalog, read_document
from sheetgen.catalog.base import Document
from sheetgen.cli.plan_commands import solved_file, summary
from sheetgen.errors import ScenarioError
from sheetgen.plan.bridge import Last, PlanRecord, sums_of
from sheetgen.plan.charts import Waterfall
from sheetgen.plan.findings import Findings, findings
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.writers.formats import Options
from sheetgen.writers.plan_text import plan_markdown

ROOT = Path(__file__).parents[2]
CATALOG = Catalog()
SCHEMA: dict[str, Any] = json.loads((ROOT / "templates" / "plan.schema.json").read_text(encoding="utf-8"))
DATA: dict[str, Any] = read_document(ROOT / "templates" / "plan.yaml").data


def faults(value: Any) -> list[str]:
    """The places of a value that are not as the schema says."""
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(SCHEMA).iter_errors(value)]


def plan(data: dict[str, Any]) -> Plan:
    return plan_of(Document("plan.yaml", data, {}), CATALOG)


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    before = deepcopy(DATA)
    before["policy"]["headroom_fraction"] = 0.05
    old = plan(before)
    return record_of(findings(example().answer, Last(old, sums_of(solved_plan(old, timed=False)), "last.json")))


def test_the_json_is_as_its_schema_says(record: dict[str, Any]) -> None:
    assert faults(json.loads(json.dumps(record))) == []
    nothing = record_of(
        findings(
            solved_plan(
                plan(
                    {
                        "plan": {"start": "2027-Q1", "quarters": 1},
                        "supply": {"allowed": {"gpus": ["l4"]}},
                        "services": [{"id": "a", "demand": {"at_once": 4}, "model": "deepseek-v3"}],
                    }
                )
            )
        )
    )
    assert faults(json.loads(json.dumps(nothing))) == []
    # Replicas that prompts set; three of five machines are there when the quarter begins.
    kind = "azure/Standard_NC40ads_H100_v5"
    prompts = {
        "id": "a",
        "demand": {"requests": 20},
        "model": "8b",
        "request": {"input_tokens": 8000, "output_tokens": 1},
    }
    supply = {
        "allowed": {"instances": [kind]},
        "committed": [{"id": "c", "type": kind, "count": 3, "until": "2027-12-31"}],
        "lead_time_days": {"on-demand": 60},
    }
    head = {"start": "2027-Q1", "quarters": 1, "as_of": "2026-11-26"}
    late = record_of(findings(solved_plan(plan({"plan": head, "supply": supply, "services": [prompts]}))))
    assert {row["set_by"] for row in late["services"]} == {"prefill"} and late["served"][0]["limit"] == "machines"
    assert faults(json.loads(json.dumps(late))) == []


def test_the_schema_finds_faults(record: dict[str, Any]) -> None:
    wrong = json.loads(json.dumps(record))
    wrong["money"][0]["verdict"], wrong["services"][0]["quarter"] = "fine", "2027"
    wrong["more"] = 1
    del wrong["decisions"][0]["late"]
    assert len(faults(wrong)) == 4


def test_years_and_owners(record: dict[str, Any]) -> None:
    first, second = record["years"]
    assert (first["fiscal_year"], first["quarters"]) == (2027, [f"2027-Q{n}" for n in (1, 2, 3, 4)])
    for year in (first, second):
        mine = [money for money in record["money"] if money["quarter"] in year["quarters"]]
        for name in ("budget_usd", "p10_usd", "p50_usd", "p90_usd", "contingency_p90_usd"):
            assert year[name] == pytest.approx(math.fsum(money[name] for money in mine))
    assert {row["id"]: row["owner"] for row in record["services"]} == {
        "support-chat": "cx-platform",
        "agents": "ml-platform",
        "code-review": "ml-platform",
        "legacy-rag": "ml-platform",
    }
    assert all(decision["owners"] for decision in record["decisions"])
    for money in record["money"]:
        assert math.fsum(money["by_class_usd"].values()) == pytest.approx(money["p50_usd"] - money["owned_usd"])


@pytest.mark.long
def test_a_plan_in_another_currency_speaks_it_throughout() -> None:
    euros, rate = deepcopy(DATA), 0.92
    euros["plan"] |= {"currency": "EUR", "fx_rate": rate}
    euros["supply"]["allowed"]["region"] = "us"
    dollars = deepcopy(DATA)
    dollars["supply"]["allowed"]["region"] = "us"
    dollars["budget"] = {quarter: usd / rate for quarter, usd in DATA["budget"].items()}
    dollars["supply"]["owned"][0]["cost_per_quarter"] /= rate
    a, b = (solved_plan(plan(stated)) for stated in (euros, dollars))
    assert record_of(findings(a))["money"] == record_of(findings(b))["money"]
    old = plan(DATA)
    page, of_dollars = (
        plan_page(findings(answer, Last(old, sums_of(solved_plan(old, timed=False)), "last.json"))) for answer in (a, b)
    )
    spent = sum(money["p50_usd"] for money in record_of(findings(a))["money"])
    assert page.tiles[2].amount == f"€{spent * rate:,.0f}"
    asked = sum(money["p90_usd"] + money["contingency_p90_usd"] for money in record_of(findings(a))["money"])
    (*facts, in_dollars) = page.tiles[0].facts
    assert str(in_dollars).startswith(f"in US dollars ${asked:,.0f}, at")
    tiles = (replace(page.tiles[0], facts=tuple(facts)), *page.tiles[1:])
    body = plan_markdown(replace(page, tiles=tiles), Options()).decode()
    assert "$" not in body and "US dollars" not in body
    (waterfall,) = [section.picture for section in page.sections if isinstance(section.picture, Waterfall)]
    assert (waterfall.currency, waterfall.prefix) == ("EUR", "€")
    printed = "\n".join(summary(record_of(findings(a, Last(old, sums_of(solved_plan(old, timed=False)), "last.json")))))
    assert "$" not in printed and f"{DATA['budget']['2027-Q1']:,}" in printed and "p50 €" in printed
    of_same = plan_markdown(of_dollars, Options()).decode()
    assert body.count("€") >= len(re.findall(r"\$\d", of_same)) > 100


def test_a_confidence_that_no_hardware_reaches_is_said_everywhere() -> None:
    """At 9 ms a token one type is an even chance, as `recommend` says of it; it stood in a cell of the third page
    alone, and every check held. What no table says is said by the terminal too."""
    instance, rate = "aws/g7e.2xlarge", 20
    request = {"input_tokens": 1200, "output_tokens": 40, "prefix_hit_fraction": 0.6}

    def solved(confidence: float) -> Findings:
        targets = {"tpot_ms": 9, "ttft_ms": 150, "confidence": confidence}
        service = {"id": "autocomplete", "model": "qwen2.5-3b", "request": request, "targets": targets}
        data = {
            "plan": {"start": "2027-Q1", "quarters": 2, "as_of": "2026-11-30"},
            "supply": {"allowed": {"instances": [instance]}},
            "services": [service | {"demand": {"requests": {"peak_per_second": rate}}}],
        }
        return findings(solved_plan(plan(data)))

    sure = recommend(
        model="qwen2.5-3b",
        instances=instance,
        requests_per_second=rate,
        input_tokens=1200,
        output_tokens=40,
        prefix_cache_hit_fraction=0.6,
        tpot_ms=9,
        ttft_ms=150,
        confidence=0.85,
    )
    assert "impossible" in sure["measure_first"]
    for confidence, holds in ((0.85, False), (0.5, True)):
        whole = solved(confidence)
        record, page = record_of(whole), plan_page(whole)
        (check,) = [check for check in record["checks"] if check["check"] == "every service is as sure as requested"]
        chances = {row["chance"] for row in record["services"] if row["quantile"] == record["plan_at"]}
        assert check["ok"] == holds == (min(chances) >= confidence) == (record["warnings"] == [])
        assert page.warnings == tuple(record["warnings"])
        mail = " ".join(str(text) for label, text in page.brief.points if label == "Before signing")
        assert mail == " ".join(record["warnings"])
        printed = " ".join(" ".join(summary(record)).split())
        assert all(warning in printed and "autocomplete" in warning for warning in record["warnings"])


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"currency": "EUR"}, "currency is 'EUR', but no fx_rate is given"),
        ({"fx_rate": 0.92}, "fx_rate is 0.92, but currency is USD"),
    ],
)
def test_a_currency_without_a_rate(head: dict[str, Any], message: str) -> None:
    data = deepcopy(DATA)
    data["plan"] |= head
    with pytest.raises(ScenarioError, match=message):
        plan(data)


def test_a_plan_that_is_named_by_its_json_is_not_called_the_last_one(tmp_path: Path) -> None:
    inputs = deepcopy(DATA)
    inputs["services"][0]["model"] = "no-such-model"
    file = tmp_path / "q1.json"
    record = {"inputs": inputs, "prices": {}, "as_of": "2026-10-01", "money": [], "services": [], "supply": []}
    file.write_text(json.dumps(record, default=str), encoding="utf-8")
    with pytest.raises(ScenarioError, match="no-such-model") as error:
        solved_file(str(file), CATALOG)
    assert "last plan" not in str(error.value)


def undeclared(model: type[BaseModel], schema: dict[str, Any], place: str = "$") -> Iterator[str]:
    """The keys that are read of a plan's JSON and that its schema does not have, or does not require."""
    schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    schema = schema.get("items", schema)
    schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for name, field in model.model_fields.items():
        path = f"{place}.{name}"
        if name not in schema["properties"] or (field.is_required() and name not in schema["required"]):
            yield path
            continue
        parts = (field.annotation, *get_args(field.annotation))
        for part in parts if name != "inputs" else ():
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from undeclared(part, schema["properties"][name], path)


def test_what_a_later_plan_reads_is_in_the_schema() -> None:
    assert [*undeclared(PlanRecord, SCHEMA)] == []

    class More(PlanRecord):
        unknown: str

    assert [*undeclared(More, SCHEMA)] == ["$.unknown"]


def test_the_terminal_has_the_amounts_of_the_page() -> None:
    """Whole ones that add up to what is asked for; each was rounded by itself, a dollar off the page's."""
    whole = example()
    (budget,) = [
        section.table
        for section in plan_page(whole).sections
        if section.table and section.table.columns[1].head == "Budget"
    ]
    shown = {str(row[0]): [str(cell) for cell in row] for row in budget.rows}
    lines = [line.split() for line in "\n".join(summary(record_of(whole))).splitlines()]
    printed = {line[0]: line[1:6] for line in lines if line and line[0] in shown}
    assert printed.keys() == {str(quarter) for quarter in whole.answer.plan.quarters}

    def number(text: str) -> int:
        return int(re.sub(r"[^\d-]", "", text.replace("−", "-")) or 0)

    for quarter, (_, p50, _, p90, left) in printed.items():
        spend50, reserve50, _, spend90, reserve90, left90 = (number(cell) for cell in shown[quarter][2:8])
        assert (number(p50), number(p90)) == (spend50 + reserve50, spend90 + reserve90)
        assert abs(number(left)) == abs(left90)

"""What was really spent: FOCUS columns or our own, by quarter, against what a plan said."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.cli.plan_commands import solved_file
from sheetgen.errors import ScenarioError
from sheetgen.plan.actuals import against, by_quarter, measured, not_in_plan, of_services, read_actuals, variance
from sheetgen.plan.findings import above_planned, not_charged
from sheetgen.plan.plan_currency import currency_of
from sheetgen.plan.quarters import Quarter, quarter_of

FOCUS = """\
ChargePeriodStart,EffectiveCost,BilledCost,ChargeCategory,CommitmentDiscountStatus,PricingCategory,Tags
2027-01-03T00:00:00Z,100.5,0,Usage,Used,Committed,"{""service"": ""chat""}"
2027-02-03,20,0,Usage,Unused,Committed,
2027-03-31T23:00:00Z,"1,000",7,Usage,,Standard,"{""service"": ""rag""}"
2027-03-31T23:00:00Z,,30,Usage,,Dynamic,
2027-03-31,99,99,Tax,,,
2027-04-01,5,5,Usage,,Standard,
"""
OWN = """\
quarter,service,usd,in_flight_peak,replicas
2027-Q1,chat,500,120,6
2027-Q1,chat,400,212,9
2027-Q2,rag,50,,
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "actuals.csv"
    path.write_text(text)
    return path


def test_focus_columns(tmp_path: Path) -> None:
    actuals = read_actuals(write(tmp_path, FOCUS))
    first, second = by_quarter(actuals)
    assert actuals.left_out == 1
    assert (first["quarter"], first["usd"], first["unused_usd"]) == ("2027-Q1", 1150.5, 20)
    assert first["by_purchase"] == {"committed": 120.5, "on-demand": 1000, "spot": 30}
    assert first["by_service"] == {"chat": 100.5, "rag": 1000}
    assert (second["quarter"], second["usd"]) == ("2027-Q2", 5)


def test_our_own_columns_and_the_load_that_they_measured(tmp_path: Path) -> None:
    actuals = read_actuals(write(tmp_path, OWN))
    assert [row["usd"] for row in by_quarter(actuals)] == [900, 50]
    assert list(measured(actuals)) == [{"id": "chat", "quarter": "2027-Q1", "in_flight_peak": 212, "replicas": 9}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "neither the column quarter"),
        ("month,service,usd\n2027-01,a,3\n", "neither the column quarter"),
        ("quater,usd\n2027-Q1,3\n", "Did you mean quarter?"),
        ("quarter,dollars\n2027-Q1,3\n", "unknown column dollars. Ours are quarter, from,"),
        ("quarter,usd\n2027-Q5,3\n2027-Q1,x\n", "2: quarter '2027-Q5' is no quarter"),
        ("quarter,usd\n2027-Q1,3,4\n", "2: has more cells"),
        (f"quarter,{','.join(map(str, range(20_000)))}\n", "1: has 20,001 columns. 500 are the most."),
        ("quarter,usd\n2027-Q1,1.7e308\n2027-Q1,1.7e308\n", "2: usd is '1.7e308'. It must be a number of at most"),
        ("quarter,usd\n2027-Q1,nan\n", "2: usd is 'nan'"),
        ("quarter,usd\n", "holds no line of capacity"),
        ("EffectiveCost,Tags\n3,x\n", "ChargePeriodStart is missing"),
        (
            "EffectiveCost,ChargePeriodStart,BillingCurrency\n3,2027-01-01,EUR\n",
            "Only USD, and the currency of a plan, are read",
        ),
        ("EffectiveCost,ChargePeriodStart\n3,01/31/2027\n", "must be a day such as 2027-01-31"),
        ("EffectiveCost,ChargePeriodStart,Tags\n3,2027-01-01,chat\n", "are no JSON that can be read"),
        (f"EffectiveCost,ChargePeriodStart,Tags\n3,2027-01-01,{'[' * 100_000}\n", "are no JSON that can be read"),
        ('quarter,service,usd\n2027-Q1,"a\n- id: evil",5\n', "must be text of one line"),
        (
            'EffectiveCost,ChargePeriodStart,Tags\n3,2027-01-01,"{""service"": ""a\\n- id: evil""}"\n',
            "must be text of one line",
        ),
        ("quarter,service,in_flight_peak,replicas\n2027-Q1,a,5,-3\n", "replicas is '-3'. It must be a number from 0"),
        ("quarter,service,in_flight_peak,replicas\n2027-Q1,a,5,1.5\n", "replicas is '1.5'. It must be a whole number"),
        ("quarter,service,in_flight_peak,replicas\n2027-Q1,a,٥,1\n", "in_flight_peak is '٥'. It must be a number"),
    ],
)
def test_what_cannot_be_read(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_actuals(write(tmp_path, text))
    assert words in str(caught.value) and "Did you mean service" not in str(caught.value)


def test_a_million_is_written_out(tmp_path: Path) -> None:
    csv = write(tmp_path, "quarter,service,in_flight_peak,replicas\n2027-Q1,chat,1234567,1234567\n")
    assert CliRunner().invoke(main, ["plan", "actuals", str(csv)]).stdout.count("1,234,567") == 2


def test_every_broken_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_actuals(write(tmp_path, "quarter,usd\n" + "2027-Q1,x\n" * 30))
    assert len(caught.value.problems) == 21
    assert "10 lines more" in caught.value.problems[-1]


def test_days_lie_in_their_quarters() -> None:
    for starts in (1, 2, 4, 7, 10):
        for quarter in (Quarter(2027, n) for n in (1, 2, 3, 4)):
            for day in (quarter.first_day(starts), quarter.last_day(starts)):
                assert quarter_of(day, starts) == quarter
    assert quarter_of(datetime.date(2026, 7, 1), 7) == Quarter(2027, 1)


def test_against_a_plan(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("plan: {start: 2027-Q1, quarters: 2}\nservices: [{id: chat, demand: {users: 200}, model: 8b}]\n")
    run = CliRunner()
    assert (
        run.invoke(main, ["plan", str(file), "--out", str(tmp_path), "--name", "q1", "--format", "json"]).exit_code == 0
    )
    planned_usd = json.loads((tmp_path / "q1.json").read_text())["money"][0]["p50_usd"]
    csv = str(write(tmp_path, f"quarter,usd\n2027-Q1,{2 * planned_usd}\n"))
    made = run.invoke(main, ["plan", "actuals", csv, "--plan", str(tmp_path / "q1.json"), "--json"])
    assert made.exit_code == 0, made.output
    (compared,) = json.loads(made.stdout)["against"]
    assert (compared["difference_usd"], compared["error_fraction"], compared["inside_band"]) == (
        pytest.approx(planned_usd),
        -0.5,
        False,
    )
    words = run.invoke(main, ["plan", "actuals", csv, "--plan", str(tmp_path / "q1.json")]).output
    assert "-50.0%" in words and "owned" not in words
    assert "service" not in words and "class" not in words  # the file says neither
    csv = str(write(tmp_path, f"quarter,service,usd\n2027-Q1,chat,{2 * planned_usd}\n"))
    words = run.invoke(main, ["plan", "actuals", csv, "--plan", str(tmp_path / "q1.json")]).output
    assert "service  chat" in words and "class" not in words


PLANNED = {
    "inputs": {},
    "money": [
        {
            "quarter": "2027-Q1",
            "p10_usd": 5000,
            "p50_usd": 9900,
            "p90_usd": 18900,
            "owned_usd": 900,
            "committed_usd": 2700,
            "by_class_usd": {"on-demand": 6300, "reserved-1yr": 2700},
        }
    ],
    "supply": [
        {"quarter": "2027-Q1", "instance": instance, "p50_usd": usd}
        for instance, usd in (("aws/p5.48xlarge", 6600), ("aws/g6e.xlarge (spot)", 2400))
    ],
    "services": [
        {"id": name, "quarter": "2027-Q1", "quantile": "p50", "instance": instance, "n_instances": n}
        for name, instance, n in (
            ("chat", "aws/p5.48xlarge", 1.5),
            ("night", "aws/p5.48xlarge", 0.5),
            ("rag", "aws/g6e.xlarge (spot)", 1),
        )
    ],
}


def test_a_part_of_a_quarter_is_compared_with_its_days_and_what_is_owned_stands_apart(tmp_path: Path) -> None:
    """30 of 90 days: a third of what is planned; half a quarter's charges read as half the plan."""
    charges = """\
ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,CommitmentDiscountStatus,SkuId,Tags
2027-01-01,2027-01-16,1500,Usage,,p5.48xlarge,"{""service"": ""chat""}"
2027-01-16,2027-01-31,900,Usage,Used,p5.48xlarge,"{""service"": ""chat""}"
2027-01-16,2027-01-31,100,Usage,,g6e.xlarge,
"""
    actuals = read_actuals(write(tmp_path, charges))
    (compared,) = against(PLANNED, actuals)
    assert (compared["days"], compared["of_days"], compared["p50_usd"], compared["actual_usd"]) == (
        30,
        90,
        pytest.approx(3000),
        2500,
    )
    assert (compared["owned_planned_usd"], compared["owned_actual_usd"]) == (pytest.approx(300), 0)
    parts = {
        (part["by"], part["name"]): (part["planned_usd"], part["actual_usd"]) for part in variance(PLANNED, actuals)
    }
    assert parts == {
        ("service", "chat"): (pytest.approx(1650), 2400),  # three quarters of what its machine costs
        ("service", "night"): (pytest.approx(550), 0),
        ("service", "rag"): (pytest.approx(800), 0),
        ("service", None): (0, 100),
        ("purchase", "committed"): (pytest.approx(900), 900),
        ("purchase", "on-demand"): (pytest.approx(2100), 1600),
        ("instance", "aws/p5.48xlarge"): (pytest.approx(2200), 2400),
        ("instance", "aws/g6e.xlarge"): (pytest.approx(800), 100),  # of any class
    }
    for by in ("service", "purchase", "instance"):
        mine = [amounts for (kind, _), amounts in parts.items() if kind == by]
        assert [sum(of_it) for of_it in zip(*mine, strict=True)] == [pytest.approx(3000), 2500]


def test_a_charge_is_of_its_class_and_services_outside_the_plan_are_named(tmp_path: Path) -> None:
    """A commitment of before was planned as `committed` and billed as reserved-1yr: 2,700 missing, and 2,700 more."""
    text = """\
quarter,service,instance,purchase,usd
2027-Q1,chat,p5.48xlarge,reserved-1yr,2700
2027-Q1,chatt,g6e.xlarge (spot),on-demand,40
"""
    parts = [*variance(PLANNED, actuals := read_actuals(write(tmp_path, text)))]
    spent = {part["name"]: (part["planned_usd"], part["actual_usd"]) for part in parts if part["by"] == "purchase"}
    assert spent == {"reserved-1yr": (2700, 2700), "on-demand": (6300, 40)}
    assert {part["name"] for part in parts if part["by"] == "instance"} == {"aws/p5.48xlarge", "aws/g6e.xlarge"}
    assert not_in_plan(PLANNED, actuals) == ["chatt"]


def test_a_mix_is_compared_by_the_classes_that_it_buys(tmp_path: Path) -> None:
    """Its part of the money stood under `mix`, a class that no invoice has."""
    of_quarter = PLANNED["money"][0] | {"by_class_usd": {"reserved-1yr": 6300, "on-demand": 1800, "spot": 900}}
    planned = PLANNED | {"money": [of_quarter], "inputs": {"policy": {"buy": "mix"}}}
    own = """\
quarter,purchase,usd
2027-Q1,reserved-1yr,6200
2027-Q1,on-demand,2000
"""
    focus = """\
ChargePeriodStart,ChargePeriodEnd,EffectiveCost,CommitmentDiscountStatus
2027-01-01,2027-04-01,6200,Used
2027-01-01,2027-04-01,2000,
"""

    def classes(text: str) -> dict[str, tuple[float, float]]:
        parts = variance(planned, read_actuals(write(tmp_path, text)))
        return {part["name"]: (part["planned_usd"], part["actual_usd"]) for part in parts if part["by"] == "purchase"}

    told = {"on-demand": (1800, 2000), "spot": (900, 0)}
    assert classes(own) == {"reserved-1yr": (6300, 6200), **told}
    assert classes(focus) == {"committed": (6300, 6200), **told}


def test_charges_of_a_month_cover_it(tmp_path: Path) -> None:
    text = "BillingPeriodStart,EffectiveCost\n2027-01-01,5\n2027-02-01,5\n"
    assert [(row["days"], row["of_days"]) for row in by_quarter(read_actuals(write(tmp_path, text)))] == [(59, 90)]


def test_a_part_of_a_quarter_in_our_own_columns(tmp_path: Path) -> None:
    text = "quarter,until,purchase,usd\n2027-Q1,2027-02-14,on-demand,4500\n2027-Q1,2027-02-14,owned,450\n"
    (compared,) = against(PLANNED, read_actuals(write(tmp_path, text)))
    assert (compared["days"], compared["difference_usd"], compared["owned_actual_usd"]) == (45, pytest.approx(0), 450)
    with pytest.raises(ScenarioError, match="2027-04-01 is not in 2027-Q1"):
        read_actuals(write(tmp_path, "quarter,until,usd\n2027-Q1,2027-04-01,3\n"))


SMALL = """\
plan: {start: 2027-Q1, quarters: 1, as_of: 2026-11-30, currency: EUR, fx_rate: 0.5}
policy: {redundancy: {survive: machine}}
supply:
  committed:
    - {id: c, type: aws/p5.48xlarge, count: 1, purchase: reserved-1yr, until: 2027-02-14, usd_per_hour: 30}
services: [{id: chat, demand: {users: 200}, model: 8b}, {id: rag, demand: {users: 100}, model: 8b}]
"""


def test_what_was_spent_as_planned_differs_nowhere(tmp_path: Path) -> None:
    """Bills in euros of machines tagged whole: their spare ones, and a commitment that ends within the quarter, too."""
    (tmp_path / "plan.yaml").write_text(SMALL)
    run, place = CliRunner(), ["--out", str(tmp_path), "--name", "q1", "--format", "json"]
    assert run.invoke(main, ["plan", str(tmp_path / "plan.yaml"), *place]).exit_code == 0
    record = json.loads((tmp_path / "q1.json").read_text())
    (money,) = record["money"]
    assert sum(money["by_class_usd"].values()) == pytest.approx(money["p50_usd"])
    machines = {row["instance"]: row["p50_usd"] for row in record["supply"]}
    assert sum(machines.values()) == pytest.approx(money["p50_usd"])
    assert machines["aws/p5.48xlarge"] == money["committed_usd"] == pytest.approx(30 * 730 * 3 * 45 / 90)
    lines = ["ChargePeriodStart,ChargePeriodEnd,EffectiveCost,BillingCurrency,SkuId,CommitmentDiscountStatus,Tags"]
    for name, usd in machines.items():
        tag, status = ("", "Unused") if "p5" in name else ("chat", "")
        tags = f'"{{""service"": ""{tag}""}}"' if tag else ""
        lines.append(f"2027-01-01,2027-04-01,{usd / 2},EUR,{name.rpartition('/')[2]},{status},{tags}")
    csv, plan = str(write(tmp_path, "\n".join(lines))), str(tmp_path / "q1.json")
    made = run.invoke(main, ["plan", "actuals", csv, "--plan", plan, "--json"])
    assert made.exit_code == 0, made.output
    parts = json.loads(made.stdout)["variance"]
    assert all(abs(part["difference_usd"]) < 0.01 for part in parts if part["by"] != "service")
    of_p50 = {part["name"]: part["planned_usd"] for part in parts if part["by"] == "service"}
    assert of_p50.pop(None) == pytest.approx(money["committed_usd"])
    assert set(of_p50) == {"chat", "rag"}
    assert sum(of_p50.values()) == pytest.approx(money["p50_usd"] - money["committed_usd"])
    rows = of_services(record, read_actuals(Path(csv), currency=currency_of(record)))
    approved = {row["service"]: row["approved"] for row in rows}
    assert math.fsum(approved.values()) == pytest.approx(money["p90_usd"])  # all of the quarter's days
    printed = run.invoke(main, ["plan", "actuals", csv, "--plan", plan]).output
    assert "€" in printed and "$" not in printed


def test_a_service_that_was_ordered_for_and_neither_planned_nor_charged_has_its_row(tmp_path: Path) -> None:
    """At p50 it has no machine, and nothing was spent: what was ordered for it was missing among all."""
    at_p90 = [
        {"id": name, "quarter": "2027-Q1", "quantile": "p90", "instance": "aws/p5.48xlarge", "monthly_usd": usd}
        for name, usd in (("chat", 4000), ("summaries", 1000))
    ]
    planned = PLANNED | {"services": [*PLANNED["services"], *at_p90]}
    csv = "quarter,service,usd\n2027-Q1,chat,900\n"
    rows = {row["service"]: row for row in of_services(planned, read_actuals(write(tmp_path, csv)))}
    assert rows["summaries"] == {
        "quarter": "2027-Q1", "service": "summaries", "planned": 0, "approved": 3000, "measured": 0,
        "planned_at_once": None, "in_flight_peak": None,
    }  # fmt: skip
    assert math.fsum(row["approved"] for row in rows.values()) == pytest.approx(18900 - 900)
    assert math.fsum(row["planned"] for row in rows.values()) == pytest.approx(9000)


def test_a_measured_peak_above_what_was_bought_for_is_said(tmp_path: Path) -> None:
    """120 requests at once where 26 were planned stood in no page: only dollars were compared. What chance makes of the
    plan is none: 110 where 100 were planned. And the mail of the plan's JSON has what was spent, as the plan has."""
    run, file = CliRunner(), tmp_path / "plan.yaml"
    services = "".join(
        f"  - {{id: {name}, model: 8b, demand: {{at_once: 100}}}}\n" for name in ("busy", "usual", "rest")
    )
    head = "plan: {start: 2027-Q1, quarters: 2, as_of: 2026-11-26}\nservices:\n"
    file.write_text(head + services)
    place = ["--out", str(tmp_path), "--format", "json"]
    assert run.invoke(main, ["plan", str(file), *place, "--name", "q1"]).exit_code == 0
    csv = "quarter,service,usd,in_flight_peak\n2027-Q1,busy,900,150\n2027-Q1,usual,900,110\n"
    spent = ["--since", str(tmp_path / "q1.json"), "--actuals", str(write(tmp_path, csv))]
    assert run.invoke(main, ["plan", str(file), *place, "--name", "q2", *spent]).exit_code == 0
    rows = {row["service"]: row for row in json.loads((tmp_path / "q2.json").read_text())["variance"]}
    assert {name: (row["planned_at_once"], row["in_flight_peak"]) for name, row in rows.items()} == {
        "busy": (100, 150), "usual": (100, 110), "rest": (100, None)
    }  # fmt: skip
    again = solved_file(str(tmp_path / "q2.json"), Catalog(), str(tmp_path / "q1.json"))
    assert again.record["variance"] == [*rows.values()]
    (above,) = above_planned(again.whole)
    assert "busy 150, planned 100" in above and "usual" not in above and "1 of 2" in above
    assert [*not_charged(again.whole)] and "rest" in next(not_charged(again.whole))


def test_the_mail_of_a_plan_says_what_changed_and_what_was_spent_in_its_currency(tmp_path: Path) -> None:
    run, file = CliRunner(), tmp_path / "plan.yaml"
    file.write_text(SMALL)
    place = ["--out", str(tmp_path), "--name", "q1", "--format", "json"]
    assert run.invoke(main, ["plan", str(file), *place]).exit_code == 0
    file.write_text(SMALL.replace("users: 200", "users: 20000"))
    csv = str(write(tmp_path, "quarter,service,usd\n2027-Q1,chat,300\n"))
    since = ["--since", str(tmp_path / "q1.json"), "--actuals", csv]
    made = run.invoke(main, ["mail", str(file), "--to", "a@b.example", "--dry-run", *since])
    assert made.exit_code == 0, made.output
    text = made.stdout.partition("WHAT CHANGED")[2]
    assert text.count("€") > 2 and "$" not in text
    assert run.invoke(main, ["mail", "--to", "a@b.example", "--models", "8b", "--actuals", csv]).exit_code == 2

"""plan.yaml is read strictly: every problem of a file in one run, each with its line; and the example runs."""

from __future__ import annotations

import csv
import datetime
import json
from pathlib import Path

import pytest
from amounts import amount
from click.testing import CliRunner
from plan_books import decided, without_levers

from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.errors import ScenarioError
from sheetgen.plan.quarters import Quarter
from sheetgen.plan.read_plan import read_plan
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.tables import commitment_month_usd
from sheetgen.writers.formats import templates_folder

HEAD = "plan: {start: 2027-Q1, quarters: 4}\n"
SERVICE = "  - {id: chat, demand: {at_once: 32}, model: llama-3.1-8b}\n"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def problems(text: str, tmp_path: Path, catalog: Catalog) -> list[str]:
    """What is wrong with a plan, without the file's name."""
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    try:
        read_plan(path, catalog)
    except ScenarioError as error:
        return [line.removeprefix(f"{path}:") for line in error.problems]
    return []


@pytest.mark.parametrize("typed", ["90", "90%", "'90 %'", "0.9"])
def test_the_confidence_may_be_a_percentage(typed: str, tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "plan.yaml").write_text(
        f"{HEAD}services:\n{SERVICE.rstrip()[:-1]}, targets: {{confidence: {typed}}}}}\n"
    )
    [question] = read_plan(tmp_path / "plan.yaml", catalog).questions.values()
    assert question.settings.confidence == 0.9


@pytest.mark.parametrize("typed", ["20%", "'20 %'", "0.2"])
def test_every_share_of_a_plan_may_be_a_percentage(typed: str, tmp_path: Path, catalog: Catalog) -> None:
    text = f"{HEAD}prices: {{discount_fraction: {typed}, contingency_fraction: {typed}}}\n"
    text += f"policy: {{headroom_fraction: {typed}}}\nservices:\n"
    text += f"{SERVICE.rstrip()[:-1]}, targets: {{max_wait_probability: {typed}}}}}\n"
    (tmp_path / "plan.yaml").write_text(text)
    [question] = read_plan(tmp_path / "plan.yaml", catalog).questions.values()
    settings = question.settings
    assert (settings.discount_fraction, settings.extra_headroom_fraction, settings.max_wait_fraction) == (0.2,) * 3
    assert problems(text.replace(typed, "1.5"), tmp_path, catalog)


def test_a_confidence_that_is_left_out_is_none(tmp_path: Path, catalog: Catalog) -> None:
    text = f"{HEAD}services:\n{SERVICE.rstrip()[:-1]}, targets: {{confidence: null}}}}\n"
    assert problems(text, tmp_path, catalog) == []


def test_every_problem_of_a_bad_plan_in_one_run(tmp_path: Path, catalog: Catalog) -> None:
    text = """\
plan: {start: 2027-Q1, quarters: 4}
budget:
  2027-Q1: 100
  2027-Q1: 200
  2029-Q1: 300
services:
  - {id: text-grows, demand: {at_once: 32}, growth: lots, model: llama-3.1-8b}
  - {id: disorder, demand: {at_once: {p10: 5, p50: 3, p90: 9}}, model: llama-3.1-8b}
  - {id: gone, demand: {at_once: 3}, growth: {per_quarter: 0.1}, retire: 2027-Q3, model: llama-3.1-8b}
  - {id: too-late, demand: {at_once: 3}, launch: 2028-Q1, model: llama-3.1-8b}
  - {id: a, demand: {at_once: 3}, like: b}
  - {id: b, demand: {at_once: 3}, like: a}
  - {id: unknown, demand: {at_once: 3}, model: lama-3.1-8b}
  - {id: twice, demand: {at_once: 3, requests: 2}, model: llama-3.1-8b, modell: x}
supply:
  committed: [{id: c, type: aws/p5.48xlarg, count: 1, until: 2027-06-30}]
"""
    faults = problems(text, tmp_path, catalog)
    assert [line.split(": ")[0] for line in faults] == [
        "4",
        "5",
        "7",
        "8",
        "9",
        "10",
        "11",
        "12",
        "13",
        "14",
        "14",
        "16",
    ]
    by_line = dict(zip((line.split(": ")[0] for line in faults), faults, strict=True))
    for line, words in (
        ("4", "2027-Q1 is given twice (first on line 3). Keep one."),
        ("5", "2027-Q1 to 2027-Q4"),
        ("7", "growth is 'lots'. It must be a number a quarter, such as 0.12"),
        ("8", "out of order"),
        ("9", "retired in 2027-Q3, and its growth has no end"),
        ("10", "after the plan's end, 2027-Q4"),
        ("11", "in a circle: a -> b -> a"),
        ("13", "Did you mean llama-3.1-8b?"),
        ("16", "Did you mean aws/p5.48xlarge?"),
    ):
        assert words in by_line[line], line
    assert any("has requests and at_once" in x for x in faults)
    assert any("unknown field modell" in x for x in faults)


def test_many_services_with_three_faults_each(tmp_path: Path, catalog: Catalog) -> None:
    """All of them in one run; a band out of order hid what else was wrong with its service."""
    band = "{{p10: 5, p50: 3, p90: 9}}"
    service_line = f"  - {{{{id: s{{}}, demand: {{{{at_once: {band}}}}}, launch: 2029-Q1, model: lama-3.1-8b}}}}\n"
    n = amount(40, 200)
    faults = problems(HEAD + "services:\n" + "".join(map(service_line.format, range(n))), tmp_path, catalog)
    assert len(faults) == 3 * n
    for i in range(n):
        mine = [line for line in faults if line.startswith(f"{i + 3}: ")]
        pairs = zip(("out of order", "after the plan's end", "Did you mean llama-3.1-8b?"), mine, strict=True)
        assert all(words in line for words, line in pairs), mine


def test_a_fault_of_one_entry_hides_none_of_another(tmp_path: Path, catalog: Catalog) -> None:
    text = (
        HEAD
        + """\
services:
  - {id: '=HYPERLINK(1)', demand: {at_once: 3}, model: '=1+1'}
  - {id: <script>, demand: {at_once: 3}, model: llama-3.1-8b}
supply:
  committed:
    - {id: c, type: aws/p5.48xlarg, count: 1, until: 2027-06-30}
    - {id: d, type: aws/p5.48xlarge, count: 0, until: 2027-06-30}
  owned: [{id: o, gpu: h100, count: 8}, {id: o, gpu: l4, count: 8}]
"""
    )
    faults = problems(text, tmp_path, catalog)
    assert [line.split(": ")[0] for line in faults] == ["3", "3", "4", "7", "8", "9"]
    assert "id o is given twice" in faults[-1]


@pytest.mark.parametrize(
    "service",
    [
        "demand: {users: {dau: 1e12, sessions_per_user_day: 1e12, requests_per_session: 1e12}}",
        "demand: {at_once: 3}, growth: {per_quarter: {p10: 0, p50: 1, p90: 100}}",
    ],
)
def test_a_demand_that_is_none(service: str, tmp_path: Path, catalog: Catalog) -> None:
    head = HEAD.replace("4", "24")
    (fault,) = problems(f"{head}services:\n  - {{id: a, {service}, model: 8b}}\n", tmp_path, catalog)
    assert fault.startswith("3: comes to ") and "1,000,000,000,000 are the most" in fault


def test_requests_at_once_have_an_old_name(tmp_path: Path, catalog: Catalog) -> None:
    demands = []
    for name in ("at_once", "in_flight"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"{HEAD}services:\n{SERVICE.replace('at_once', name)}")
        demands.append(read_plan(path, catalog).services[0].demand)
    assert demands[0] == demands[1] and demands[0].at_once is not None


def test_two_hundred_sound_services(tmp_path: Path, catalog: Catalog) -> None:
    service_line = "  - {{id: s{}, demand: {{at_once: 3}}, model: llama-3.1-8b}}\n"
    assert problems(HEAD + "services:\n" + "".join(map(service_line.format, range(200))), tmp_path, catalog) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("budget: {2027-Q5: 3}\n", " '2027-Q5' is no quarter. Write one such as 2027-Q1"),
        ("supply: {lead_time_days: {reserved1yr: 30}}\n", " 'reserved1yr' must be one of on-demand, reserved-1yr"),
        ("policy: {headroom: 0.1}\n", "Did you mean headroom_fraction? Known: approval_days, buy, "),
        ("policy: {buy: reserved}\n", "capacity-block, mix. Did you mean reserved-"),
        ("prices: {usd_per_hour: {aws/p5.48xlarge (spt): 50}}\n", "'spt' is no class. Allowed: on-demand, "),
        ("servces: 3\n", "Did you mean services? Known: plan, policy, supply, prices, budget, services."),
        ("prices: {discount_fraction: 20}\n", "should be less than or equal to 0.99"),
        ("supply: {committed: [{id: c, type: aws/p5.48xlarge, count: 1}]}\n", "has no end"),
        ("supply: {owned: [{id: o, gpu: h1000, count: 8}]}\n", "gpu 'h1000' is not in the catalogs"),
        ("supply: {owned: [{id: o, gpu: h100, count: 12, gpus_per_machine: 8}]}\n", "no whole machines of 8"),
        ("supply: {quota: [{type: azure/Standard_ND128isr_GB300_v6, limit: 4}]}\n", "has no price in the catalogs"),
        (
            "  - {id: x, demand: {at_once: 3}, like: chat, request: {input_tokens: 500, output_tokens: 0}}\n",
            "as for embeddings, write 1",
        ),
        ("  - {id: chat, demand: {at_once: 3}, model: llama-3.1-8b}\n", "service chat stands twice"),
        ("  - {id: x, demand: {at_once: 3}}\n", "service x has no model"),
        ("  - {id: x, demand: {at_once: 3}, like: chap}\n", "Did you mean chat?"),
        ("prices: {usd_per_hour: {aws/p5.49xlarge: 50}}\n", "p5.49xlarge"),
        ("prices: {usd_per_hour: {aws/p5.48xlarge: 0}}\n", "greater than 0"),
        ("prices: {usd_per_hour: {lambda/8x h100 sxm: 1}}\n", "is no candidate for any service"),
        ("  - {id: x, demand: {at_once: -3}, like: chat}\n", "greater than 0"),
        ("  - {id: x, demand: {at_once: true}, like: chat}\n", "must be a number, or a band"),
        (
            "  - {id: x, demand: {at_once: 3}, like: chat, buy: reserved-1yr}\n",
            "has a term, which is of the whole plan",
        ),
        ("  - {id: x, demand: {tokens: 900}, like: chat}\n", "must say which tokens are counted"),
        ("  - {id: x, demand: {tokens: {per_day: 900}}, like: chat}\n", "field 'of' is missing"),
        ("  - {id: x, demand: {at_once: 3}, like: chat, allowed: {purchase: [spot]}}\n", "write it in supply.allowed"),
        ("  - {id: x, demand: {at_once: 3}, like: chat, budget: 3}\n", "whole plan: write it beside services"),
        ("  - {id: x, demand: {at_once: 3}, like: chat, ownr: cx}\n", "Did you mean owner? Known: allowed, buy, "),
        ("  - {id: x, demand: {at_once: 3}, model: {id: 8b, weights: fp8}}\n", "Did you mean weight_dtype? Known: "),
        ("  - {id: x, demand: {requests: 3}, like: chat, profile: busines}\n", "Did you mean business?"),
        (
            "  - {id: x, demand: {requests: 3}, like: chat, profile: night, time_zone: Europe/Berln}\n",
            "Did you mean Europe/Berlin?",
        ),
        ("  - {id: x, demand: {rps: 3}, like: chat}\n", "rps. Known: at_once, requests, tokens, users."),
        (
            "  - {id: x, demand: {at_once: 3}, like: chat, growth: {series: [1, 1, 1, 1], bands: persist}}\n",
            "bands is of per_quarter",
        ),
        ("  - {id: x, demand: {at_once: 3}, like: chat, ramp: [0.5]}\n", "ramp is of a launch"),
        ("  - {id: x, demand: {at_once: 3}, like: chat, request: {context_tokens: 9m}}\n", "over the 131,072"),
        ("  - {id: x, demand: {at_once: 3}, like: chat, engine: {name: vlm}}\n", "Did you mean vllm?"),
        (
            "  - {id: x, demand: {at_once: 3}, model: [{id: 8b}, {from: 2027-Q2, id: 8b, weight_dtype: fp9}]}\n",
            "weight_dtype",
        ),
        ("  - {id: x, demand: {at_once: 3}, model: [{id: 8b}, {id: 70b}]}\n", "a second model needs from"),
        ("  - {id: x, demand: {at_once: 3}, model: [{from: 2027-Q2, id: 8b}]}\n", "no model is served in 2027-Q1"),
        ("  - {id: x, demand: {at_once: 3}, like: chat, growth: {series: [1, 2]}}\n", "series has 2 numbers"),
        *(
            (f"  - {{id: x, demand: {{{demand}}}, like: chat}}\n", words)
            for demand, words in (
                ("users: {dau: 2, requests_per_user_per_day: 8}", "keys are dau, sessions_per_user_day, requests_per_"),
                ("users: {dau: 2, request_per_user_per_day: 8}", "Did you mean requests_per_user_per_day? Known: act"),
                ("users: {dau: 2, days_per_month: 8}", "unknown field days_per_month. "),
                ("users: {people: 2, sessions_per_user_day: 8}", "is not read beside people. Its keys are people, "),
                ("users: {people: 2, active_fraction: 0.1, burst_factor: 2}", "keys are active_fraction, people."),
                ("users: {dau: 2, active_fraction: 0.1}", "active_fraction"),
                ("requests: {peak_per_second: 2, burst_factor: 2}", "keys are peak_per_second."),
                ("requests: {per_day: 2, days_per_month: 8}", "is not read beside per_day"),
                ("tokens: {per_day: 2, of: output, days_per_month: 8}", "is not read beside per_day"),
                ("tokens: {peak_per_second: 2, of: output, peak_hour_share: 0.1}", "keys are peak_per_second, of."),
            )
        ),
    ],
)
def test_what_is_refused(more: str, words: str, tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + "services:\n" + SERVICE + more if more.startswith(" ") else HEAD + more + "services:\n" + SERVICE
    faults = problems(text, tmp_path, catalog)
    assert len(faults) == 1, faults
    assert words in faults[0], faults


MISTAKES = (
    ("start: 2027-Q1 ", "start: 2025-Q1 "),  # all that lies outside of such a plan was told besides
    ("  quarters: 6", "  quarters: 4"),
    ("like: support-chat", "like: supprt-chat"),
    ("like: support-chat", "likes: support-chat"),
    ("- id: agents", "- id: support-chat"),
    ("weight_dtype: fp8}", "weight_dtype: fp9}"),
    ("engine: {name: vllm}", "engine: {name: vlm}"),
    ("engine: {name: vllm}", "engine: {name: vllm, version: 9}"),
    ("providers: [azure]", "providers: [azur]"),
    ("tpot_ms: 50", "tpot_ms: -50"),
    ("model: gpt-oss-120b", "modle: gpt-oss-120b"),
    ("services:", "service:"),
    ("lead_time_days: {on-demand", "lead_time_days: {ondemand"),
    ("retire: 2027-Q3", "retire: 2026-Q3"),
    ("p50: 100000", "p50: 10000"),
    ("at_once: {p10: 50", "inflight: {p10: 50"),
    ("budget: {2027-Q1:", "budget: {2027:"),
)


@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_one_mistake_is_one_error_on_its_line(right: str, wrong: str, tmp_path: Path, catalog: Catalog) -> None:
    text = (templates_folder() / "plan.yaml").read_text(encoding="utf-8")
    line = text[: text.index(right)].count("\n") + 1
    faults = problems(text.replace(right, wrong, 1), tmp_path, catalog)
    assert len(faults) == 1, faults
    if wrong == "  quarters: 4":  # the budget has quarters that are no more of the plan
        line = text[: text.index("budget:")].count("\n") + 1
    assert faults[0].startswith(f"{line}: ")


def test_quarters_that_are_over_are_refused(tmp_path: Path, catalog: Catalog) -> None:
    """A plan of five quarters of which two are over was put up for approval."""
    text = "plan: {start: 2026-Q3, quarters: 5, as_of: 2027-01-01}\nservices:\n" + SERVICE
    (told,) = problems(text, tmp_path, catalog)
    assert told.startswith("1: 2026-Q3 ") and told.endswith("Start with 2027-Q1.")
    fiscal = "plan: {start: 2027-Q1, quarters: 1, fiscal_year_starts: 7, as_of: 2026-09-30}\nservices:\n" + SERVICE
    assert problems(fiscal, tmp_path, catalog) == []
    assert problems(fiscal.replace("09-30", "10-01"), tmp_path, catalog)[0].endswith("Start with 2027-Q2.")


def test_a_plan_in_euros_has_prices_of_europe(tmp_path: Path, catalog: Catalog) -> None:
    """It had those of a US region, converted."""
    text = "plan: {start: 2027-Q1, quarters: 1, as_of: 2026-11-26, currency: EUR, fx_rate: 0.92}\nservices:\n"
    (tmp_path / "plan.yaml").write_text(text + SERVICE)
    answer = solved_plan(read_plan(tmp_path / "plan.yaml", catalog))
    (place,) = answer.hardware.placed.values()
    assert "europe" in catalog.regions.areas_of(place.candidate.provider, place.candidate.region)
    (tmp_path / "plan.yaml").write_text(text.replace("services", "supply: {allowed: {region: us}}\nservices") + SERVICE)
    (place_in_us,) = solved_plan(read_plan(tmp_path / "plan.yaml", catalog)).hardware.placed.values()
    assert "us" in catalog.regions.areas_of(place_in_us.candidate.provider, place_in_us.candidate.region)


def test_a_plan_of_defaults_is_right(tmp_path: Path, catalog: Catalog) -> None:
    assert problems(HEAD + "services:\n" + SERVICE, tmp_path, catalog) == []


def test_the_false_of_a_program_is_a_target_that_is_off(tmp_path: Path, catalog: Catalog) -> None:
    service = "{id: a, demand: {at_once: 8}, model: 8b, targets: {tpot_ms: false, ttft_ms: off}}"
    path = tmp_path / "plan.yaml"
    path.write_text(f"plan: {{start: 2027-Q1, quarters: 1}}\nservices: [{service}]\n")
    targets = read_plan(path, catalog).services[0].targets
    assert targets is not None and (targets.tpot_ms, targets.ttft_ms) == ("off", "off")


def test_text_that_looks_like_a_formula_is_text(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD.replace("{start", "{name: '=HYPERLINK(1)', start") + "services:\n" + SERVICE
    assert problems(text, tmp_path, catalog) == []


def test_quarters_of_a_fiscal_year() -> None:
    first = Quarter.parse("2027-Q1")
    assert str(first.after(5)) == "2028-Q2"
    assert first.after(5).since(first) == 5
    assert first.first_day(1).isoformat() == "2027-01-01"
    assert first.first_day(7).isoformat() == "2026-07-01"
    assert Quarter(2027, 3).first_day(7).isoformat() == "2027-01-01"
    assert first.last_day(7).isoformat() == "2026-09-30"


def test_init_writes_an_example_that_runs(tmp_path: Path) -> None:
    run = CliRunner(env={"SOURCE_DATE_EPOCH": "1795737600"})
    assert run.invoke(main, ["plan", "init", "--out", str(tmp_path)]).exit_code == 0
    assert run.invoke(main, ["plan", "init", "--out", str(tmp_path)]).exit_code == 0
    file = str(tmp_path / "plan.yaml")
    written = (tmp_path / "plan.yaml").read_text()
    (tmp_path / "plan.yaml").write_text(f"{written}# mine\n")
    again = run.invoke(main, ["plan", "init", "--out", str(tmp_path)])
    assert again.exit_code == 1 and "is there already, and other" in again.output
    (tmp_path / "plan.yaml").write_text(written)
    assert read_plan(Path(file), Catalog()).as_of == datetime.date(2026, 11, 27)
    checked = run.invoke(main, ["plan", "check", file])
    assert (checked.exit_code, "nothing wrong" in checked.output) == (0, True)
    with without_levers():
        made = run.invoke(main, ["plan", file, "--out", str(tmp_path), "--name", "q1", "--format", "json", "--json"])
    assert made.exit_code == 0, made.output
    record = json.loads(made.stdout)
    assert record == json.loads((tmp_path / "q1.json").read_text())
    # What the example is to show.
    assert {money["verdict"] for money in record["money"]} == {"within", "over at p90"}
    assert sum(money["verdict"] != "within" for money in record["money"]) == 1
    ways = [way for decision in record["decisions"] for way in (decision, decision["or"]) if way]
    kinds = {way["what"] for way in ways}
    assert {"order", "raise quota", "commit", "let end", "replace owned"} <= kinds  # a service ends with its commitment
    assert any(decision["late"] for decision in record["decisions"])
    assert len({row["id"] for row in record["services"]}) == 4


def test_a_bad_plan_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("plan: {start: 2027, quarters: 0}\n")
    run = CliRunner().invoke(main, ["plan", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out")])
    assert run.exit_code == 1
    assert not (tmp_path / "out").exists()
    assert "plan.yaml:1: start" in run.output
    assert "services must be a list" in run.output


@pytest.mark.long
def test_the_plan_as_markdown_and_csv(tmp_path: Path) -> None:
    """Every number of a document is of the JSON, as its display has it; and no text can be markup or a formula."""
    run, file = CliRunner(), tmp_path / "plan.yaml"
    assert run.invoke(main, ["plan", "init", "--out", str(tmp_path)]).exit_code == 0
    file.write_text(file.read_text().replace("name: Serving plan", "name: '=1+1 <b>[x](http://y)'"))
    made = run.invoke(main, ["plan", str(file), "--out", str(tmp_path), "--format", "json,md,csv"])
    assert made.exit_code == 0, made.output
    record = json.loads((tmp_path / "capacity-plan.json").read_text())
    text = (tmp_path / "capacity-plan.md").read_text()
    assert text.startswith("# \\=1+1 \\<b\\>\\[x\\](http\\://y)\n")
    for money in record["money"]:
        line = next(line for line in text.split("\n") if line.startswith(f"| {money['quarter']} | $"))
        for name in ("budget_usd", "p50_usd", "p90_usd", "contingency_p90_usd"):
            assert f"| ${money[name]:,.0f} |" in line, name
    for decision in record["decisions"]:
        assert f"| {decision['order_by']} | {decided(decision)} {decision['instance']} |" in text
    rows = list(csv.DictReader((tmp_path / "capacity-plan.csv").read_text().splitlines()))
    assert len(rows) == len(record["services"]) == 4 * 6 * 3
    for row, service in zip(rows, record["services"], strict=True):
        assert row == {name: "" if service.get(name) is None else str(service.get(name)) for name in row}


PLACES = """\
plan: {{start: 2027-Q1, quarters: 2, as_of: 2026-11-20}}
supply: {{allowed: {{region: {region}}}, committed: [{committed}]}}
services:
  - {{id: chat, demand: {{users: 200}}, model: 70b}}
  - {{id: other, demand: {{users: 200}}, model: 70b, allowed: {{region: {other}}}}}
"""
COMMITTED = "{id: c, type: aws/p5.48xlarge, count: 1, until: 2027-12-31}"


def test_a_plan_is_of_one_region_and_at_its_prices(tmp_path: Path, catalog: Catalog) -> None:
    """In the United Kingdom p5 is sold in eu-west-2 at 71.552, not at 55.04."""
    (tmp_path / "plan.yaml").write_text(PLACES.format(region="uk", other="UK", committed=COMMITTED))
    answer = solved_plan(read_plan(tmp_path / "plan.yaml", catalog))
    places = {(place.instance, place.candidate.region) for place in answer.hardware.placed.values()}
    assert places <= {("aws/p5.48xlarge", "eu-west-2"), ("azure/Standard_NC80adis_H100_v5", "uksouth")}
    (committed,) = answer.plan.supply.committed
    assert commitment_month_usd(answer.plan, committed) == pytest.approx(730 * 71.552, rel=1e-12)


@pytest.mark.parametrize(
    ("region", "other_region", "committed", "told"),
    [
        ("eu", "uk", "", "5: other asks for region 'uk', chat for region 'eu': all machines of a plan stand in"),
        ("eu", "null", "", None),
        ("null", "uk", "", "5: other asks for region 'uk', chat for no region: all machines of a plan stand in one"),
        ("uk", "uk", COMMITTED.replace("p5", "p5en"), "2: aws/p5en.48xlarge has no price for on-demand"),
        ("mars", "mars", "", "region 'mars'"),
    ],
)  # fmt: skip
def test_services_of_two_regions_are_refused(
    region: str, other_region: str, committed: str, told: str | None, tmp_path: Path, catalog: Catalog
) -> None:
    faults = problems(PLACES.format(region=region, other=other_region, committed=committed), tmp_path, catalog)
    assert told in faults[0] if told else not faults

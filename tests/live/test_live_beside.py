"""Words beside an answer of the page are Python's: the request, the next step of cost, the log, the start
command, a day of measuring, the grid of loads."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from live_questions import (
    AS_OF,
    Question,
    answer_in_python,
    catalog,
    facts,
    in_python,
    options_of,
    program_of,
    random_questions,
)
from node import run

from sheetgen.answer.answer_record import Record
from sheetgen.answer.levers import levers_of_sheet
from sheetgen.answer.recording import record_of
from sheetgen.answer.solve import solve
from sheetgen.api import recommended, sheet_record, size
from sheetgen.errors import SheetgenError
from sheetgen.explain import ChoiceDerivation
from sheetgen.launch.recommended import launches
from sheetgen.live.live_facts import facts_of_sheet
from sheetgen.live.live_program import plain_source
from sheetgen.question.sheet_question import Question as Asked
from sheetgen.question.sheet_question import ask
from sheetgen.report import approval
from sheetgen.report.answer_lines import Shown, answer_lines
from sheetgen.report.build_page import build_page
from sheetgen.report.wording import provider_name, rent, seconds

SCRIPT = Path(__file__).with_name("answer_beside.js")
USERS: Question = {"model": "70b", "users": 320, "input_tokens": 15_360, "output_tokens": 1024}
LARGE: Question = {**USERS, "users": 500, "requests_per_user_per_day": 20}
# At TP 8 tensor parallelism would cut the blocks that share a scale.
WHOLE_EXPERTS: Question = {
    "model": "qwen3-coder-480b-a35b",
    "concurrent_requests": 24,
    "input_tokens": 1500,
    "output_tokens": 200,
}
FEW: list[Question] = [
    USERS,
    {"model": "deepseek-v3", "concurrent_requests": 32, "input_tokens": 3072, "output_tokens": 1024},
    {"model": "8b", "requests_per_second": 4.5, "input_tokens": 3072, "output_tokens": 256},
    {"model": "8b", "users": 60, "input_tokens": 7000, "output_tokens": 1},
    WHOLE_EXPERTS,
    {"model": "70b", "users": 640, "input_tokens": 3072, "output_tokens": 1024},  # on hardware without runs
    {"model": "8b", "concurrent_requests": 3, "input_tokens": 15_360, "output_tokens": 1, "ttft_ms": 0},  # of no people
]
NAMES = ("70b", "deepseek-v3", "8b", "qwen3-coder-480b-a35b")


def plainly_called(page_facts: Any) -> Any:
    """Facts in which the requests of a usual workload are called requests, as those of a load of one's own are."""
    return {**page_facts, "workloads": [{**workload, "called": "request"} for workload in page_facts["workloads"]]}


def beside(questions: list[Question], page_facts: Any = None) -> list[Any]:
    """The page's words for each question, with these facts or with those of NAMES, of which each is asked once."""
    if page_facts is not None:
        return words_of_page(questions, page_facts)
    fresh = [question for question in questions if json.dumps(question) not in _of_names]
    if fresh:
        pages = words_of_page(fresh, facts(NAMES))
        _of_names.update(zip(map(json.dumps, fresh), pages, strict=True))
    return [_of_names[json.dumps(question)] for question in questions]


_of_names: dict[str, Any] = {}


def words_of_page(questions: list[Question], page_facts: Any) -> list[Any]:
    answers: list[Any] = run(SCRIPT, program_of(plainly_called(page_facts)), questions)
    return answers


def in_full(question: Question) -> tuple[Record, Asked] | None:
    try:
        solved = recommended(options_of(question), catalog())
    except SheetgenError:
        return None
    return sheet_record(solved, levers_of_sheet(solved)), solved.question


def wrong_beside(question: Question, page: Any) -> list[str]:
    """The differences from Python beside an answer of the page."""
    answered = in_full(question)
    if answered is None or answered[0].cells[0].chosen is None:
        return [] if page is None else [f"{question}: Python has no answer"]
    record, asked = answered
    [cell] = record.cells
    with mock.patch.multiple(approval, MOST_WORDS=10_000, MOST_NUMBERS=10_000):  # the page leaves nothing out
        request = build_page(record, asked).request
    [launch] = launches(record, asked, (), catalog()).values()
    measure = cell.measure
    options = [
        (
            option.name,
            f"{option.price} {option.per}" if option.price else "",
            str(option.rent or ""),
            [*map(str, option.facts)],
        )
        for option in request.options
    ]
    shown = [
        (option["name"], option["price"], option["rent"], option["facts"]) for option in page["request"]["options"]
    ]
    log = cell.log
    pairs = {
        "limit": (cell.answer.limit, page["limit"]),
        "sentence": (str(request.sentence), page["request"]["sentence"]),
        "options": (options, shown),
        "serves": ([*map(str, request.serves)], page["request"]["serves"]),
        "risks": (
            # The page names the machines that survive a loss in full, as a mail does: it has no next cheapest beside.
            [str(request.failure if "fails: " in str(risk) else risk) for risk in request.risks],
            page["request"]["risks"][:-1],
        ),
        "excluded": (f"Not in the price: {request.excluded}.", page["request"]["risks"][-1]),
        "start": (launch.serve if page["start"] else "", page["start"]),
        "log": (log and as_printed(asdict(log)), as_printed(page["log"])) if page["log"] else ((), ()),
        "log of the command": (as_printed(launch.started), as_printed(page["log"])) if page["start"] else ((), ()),
        "measure": (measure and day_of(asdict(measure)), day_of(page["measure"])),
    }
    return [
        f"{question}, {name}: {python} in Python, {on_page} on the page"
        for name, (python, on_page) in pairs.items()
        if python != on_page
    ]


def as_printed(log: Any) -> list[float]:
    """The figures of a log: bytes to the MiB."""
    return [round(log["kv_pool_bytes_per_gpu"] / 2**20), int(log["kv_tokens"]), round(log["max_concurrency"], 6)]


def day_of(measure: Any) -> list[float]:
    """The price of a day of measuring, of the answer and of what decides; the money that it decides, and its worth."""
    prices = [round(day["usd"], 6) for day in (measure, measure["decider"]) if day]
    moneys = [measure[name] for name in ("decides_usd", "passed_saves_usd", "failed_costs_usd")]
    return [*prices, *(-1 if usd is None else round(usd, 6) for usd in moneys), float(measure["is_worth_it"])]


def test_beside_a_few() -> None:
    pages = beside(FEW)
    assert [text for question, page in zip(FEW, pages, strict=True) for text in wrong_beside(question, page)] == []
    assert [bool(page["start"]) for page in pages] == [True] * len(FEW)
    assert all(page["log"] for page in pages)
    whole = pages[FEW.index(WHOLE_EXPERTS)]["start"]
    assert "--tensor-parallel-size 8 --enable-expert-parallel" in whole


@pytest.mark.long
@pytest.mark.parametrize("seed", [11, 12])
def test_beside_random_questions(seed: int) -> None:
    questions = list(random_questions(seed, 40))
    pages = beside(questions, facts())
    assert [
        text for question, page in zip(questions, pages, strict=True) for text in wrong_beside(question, page)
    ] == []
    assert sum(bool(page and page["start"]) for page in pages) > 15


def test_the_checkpoint_of_a_way_is_the_one_that_is_started() -> None:
    """Of Llama 3.1 70B two in FP8 are known."""
    published, recommended_ = ({**USERS, "weight_dtype": dtype} for dtype in ("published", "recommended"))
    [started] = beside([recommended_])
    [way] = [way for way in in_python(published)["pay_less"] if way["kind"] == "fp8_weights"]
    assert way["detail"] == started["start"].split()[2]
    own = catalog().model("llama-3.1-70b").own_checkpoints
    assert len({checkpoint.hf_id for checkpoint in own if checkpoint.weight_dtype == "fp8"}) > 1


def test_the_next_step_is_where_python_has_it() -> None:
    """Up to the last of them the month stays; with one more person it does not."""
    [page] = beside([USERS])
    steps = page["steps"]
    same, beyond = (answer_in_python({**USERS, "users": steps["upTo"] + more})["monthly_usd"] for more in (0, 1))
    assert same == pytest.approx(page["month"], rel=1e-9)
    assert beyond == pytest.approx(steps["next"]["monthly_usd"], rel=1e-9) and beyond != same
    next_step = in_python({**USERS, "users": steps["next"]["amount"]})
    assert steps["next"]["amount"] == steps["upTo"] + 1
    assert steps["next"]["chance"] == pytest.approx(next_step["chance"], rel=1e-9)
    for point in steps["points"][7::24]:
        assert answer_in_python({**USERS, "users": point["amount"]})["monthly_usd"] == pytest.approx(
            point["monthly_usd"], rel=1e-9
        )


def test_a_month_above_that_of_the_next_step_has_its_reason() -> None:
    """A near tie of the very cheapest, on fewer machines: in the United Kingdom, and of a small model."""
    uk: Question = {**USERS, "users": 1100, "region": "uk"}
    small: Question = {"model": "8b", "users": 4000, "input_tokens": 15_360, "output_tokens": 1024}
    for question, page in zip((uk, small, USERS), beside([uk, small, USERS]), strict=True):
        [cell] = record_of(recommended(options_of(question), catalog())).cells
        assert cell.cheapest
        is_tie = cell.cheapest.monthly_usd < cell.answer.monthly_usd - 0.01
        assert (f"${cell.cheapest.monthly_usd:,.0f} a month" in page["near_tie"]) == bool(page["near_tie"]) == is_tie
        if page["steps"]["next"]["monthly_usd"] < page["month"]:
            assert is_tie, question
    assert beside([uk])[0]["near_tie"] and not beside([USERS])[0]["near_tie"]


def test_the_ends_of_a_step_of_a_rate_are_apart() -> None:
    rate: Question = {"model": "70b", "requests_per_second": 0.4333, "input_tokens": 15_360, "output_tokens": 1024}
    [page] = beside([rate])
    steps, (up_to, begins) = page["steps"], page["step_ends"]
    assert float(up_to) <= steps["upTo"] < steps["next"]["amount"] <= float(begins)
    assert float(begins) - float(up_to) < 0.01 * steps["upTo"]


def test_the_replicas_that_fit_and_those_that_are_needed_are_said_alike() -> None:
    """Of eight GPUs four replicas of two, of which three are enough: on the page, for engineers, and in Africa."""
    questions: list[Question] = [{**LARGE, "confidence": 0.9}, {**LARGE, "region": "af"}, LARGE]
    for question, page in zip(questions, beside(questions), strict=True):
        answer, words = answer_in_python(question), page["words"]
        held, needed = page["replicas_held"], answer["n_replicas"]
        assert held == answer["replicas_held"]
        n_gpus = held * answer["tensor_parallel_size"] * answer["data_parallel_size"]
        assert words["hardware"].startswith(f"{n_gpus}× ") and f" {held} replicas" in words["hardware"]
        assert f"each of the {n_gpus} GPUs" in words["memory_words"]
        assert page["replicas"].startswith(f"{held} replicas")
        is_spare = held > needed
        assert (f"({needed} are enough)" in words["hardware"]) == is_spare == (f"{needed} needed" in page["replicas"])
        assert (f"on the {answer['n_gpus']} that are enough" in words["memory_words"]) == is_spare
    assert {page["replicas_held"] for page in beside(questions)} == {3, 4}


def test_those_who_wait_for_a_place_are_no_part_of_the_first_word() -> None:
    """The request says who waits and for how long, and the latest first word; the terminal where more than a hundredth
    waits."""
    often, seldom = {**LARGE, "requests_per_user_per_day": 6}, {**LARGE, "confidence": 0.9}
    for question, is_told in ((often, True), (seldom, False)):
        [page] = beside([question])
        record, asked = in_full(question) or pytest.fail("no answer")
        [cell] = record.cells
        assert cell.waits and cell.waits.mean_wait_seconds and cell.waits.late_ttft_seconds
        assert ((cell.wait_fraction or 0) > 0.01) is is_told
        share, mean = cell.wait_fraction or 0, seconds(cell.waits.mean_wait_seconds)
        planned = " (5% planned)" if share > 0.05 else ""  # by an approximation, which the share is not
        told = f"{100 * share:.2g}%{planned} wait {mean} s for a place"
        assert any(told in text for _, text in answer_lines(asked, cell, Shown())) is is_told
        speed = next(text for text in page["request"]["serves"] if text.startswith("First word"))
        full = cell.waits.late_ttft_seconds - cell.waits.mean_wait_seconds
        latest = f"99% within {seconds(cell.waits.p99_ttft_seconds or 0)} s"
        assert f"; {100 * share:.2g}% queue first, {mean} s on average" in speed and latest in speed
        assert (f"every place taken {seconds(full)} s " in speed) is is_told
        assert "requests that have a place" in page["words"]["waits"]


def test_an_fp8_cache_that_saves_nothing_but_is_surer_says_so() -> None:
    surer = answer_in_python({**LARGE, "kv_cache_dtype": "fp8"})
    [page] = beside([LARGE])
    [way] = [way for way in page["absent"] if way["kind"] == "kv_fp8"]
    assert (way["reason"], surer["monthly_usd"]) == ("surer", pytest.approx(page["month"], rel=1e-9))
    assert way["rental"]["chance"] == pytest.approx(surer["chance"], rel=1e-9)
    assert surer["chance"] > answer_in_python(LARGE)["chance"] + 0.05


def test_the_use_that_is_known_of_enterprises_is_priced() -> None:
    [page] = beside([LARGE])
    [usual] = [question_beside for question_beside in page["others"] if question_beside["kind"] == "usual_asks"]
    often = answer_in_python({**LARGE, **usual["changes"]})
    assert usual["monthly_usd"] == pytest.approx(often["monthly_usd"], rel=1e-9)
    lines = {line["way"]: line for line in csv.DictReader(io.StringIO(page["csv"]))}
    assert (lines["if_usual_asks"]["requests_per_user_per_day"], lines["answer"]["requests_per_user_per_day"]) == (
        "6",
        "20",
    )


def test_owning_has_its_parts_and_its_gpu() -> None:
    """The purchase spread over its years and what runs make the month; where there is no price, of which GPU."""
    term, usual = beside([{**LARGE, "purchase": "reserved-3yr"}, LARGE])
    [own] = [way for way in term["way_words"] if way["kind"] == "own"]
    record, _ = in_full({**LARGE, "purchase": "reserved-3yr"}) or pytest.fail("no answer")
    owned = record.cells[0].owned
    assert owned
    parts = [owned.base[f"owned_{name}_usd"] for name in ("hardware", "support", "energy", "site")]
    assert math.fsum(parts) == pytest.approx(owned.base["monthly_owned_usd"], rel=1e-9)
    for usd in (owned.base["owned_capex_usd"], parts[0]):
        assert f"${usd:,.0f}" in own["gives_up"]
    assert any("H100 NVL" in text and "H100 SXM" in text for text in usual["absent_words"] if "Owning" in text)


def test_working_hours_say_how_sure_they_are_where_the_answer_is_not_as_sure() -> None:
    term, usual = beside([{**LARGE, "purchase": "reserved-3yr"}, LARGE])
    for page, is_unlike in ((term, True), (usual, False)):
        hours = page["words"]["cheapest"].partition("working hours only")[2].partition("bound to nothing")[0]
        assert ("75% sure" in hours) is is_unlike


def test_a_class_that_can_end_says_so_by_the_month() -> None:
    classes = {"spot": "taken away", "capacity-block": "paid ahead", "on-demand": "cancel any day"}
    for purchase, words in classes.items():
        [page] = beside([{**LARGE, "purchase": purchase}])
        for word in classes.values():
            assert (word in page["words"]["year"]) == (word == words), purchase
            assert (word in page["request"]["options"][0]["facts"][0]) == (word == words), purchase


def test_a_step_beyond_the_curve_is_said() -> None:
    """Of one person, whom the smallest machine serves with many others."""
    question: Question = {"model": "8b", "users": 1, "input_tokens": 3072, "output_tokens": 1024}
    [page] = beside([question])
    up_to = page["steps"]["upTo"]
    assert up_to > page["steps"]["points"][-1]["amount"] == 4
    months = [answer_in_python({**question, "users": up_to + more})["monthly_usd"] for more in (0, 1)]
    assert months == pytest.approx([page["month"], page["steps"]["next"]["monthly_usd"]], rel=1e-9)
    assert months[0] < months[1]


@pytest.mark.long
def test_every_step_of_the_list_is_where_python_has_it() -> None:
    """Each month holds up to its amount, and not for one person more."""
    [page] = beside([USERS])
    *steps, last = page["every_step"]
    assert len(steps) > 2 and last["amount"] == 4 * USERS["users"]
    assert all(step["is_exact"] for step in steps)
    for step, following in zip(steps, [*steps[1:], last], strict=True):
        for users, month in ((step["amount"], step["monthly_usd"]), (step["amount"] + 1, following["monthly_usd"])):
            assert answer_in_python({**USERS, "users": users})["monthly_usd"] == pytest.approx(month, rel=1e-9)


def test_the_days_of_the_prices_are_said() -> None:
    """Of all that was compared and of what is cheaper: never the day of the page alone."""
    [page] = beside([USERS])
    answer = in_python(USERS)
    assert answer["price_as_of"] in page["about"]
    compared = recommended(options_of(USERS), catalog()).question.candidates
    for provider in {candidate.provider for candidate in compared}:
        dates = [candidate.price_as_of or "" for candidate in compared if candidate.provider == provider]
        of_provider = page["about"].partition(f"{provider_name(provider)} ")[2].partition(", ")[0]
        assert min(dates) in of_provider and max(dates) in of_provider, provider
    days = re.findall(r"20\d\d-\d\d-\d\d", page["about"])
    assert days[-1] == AS_OF and len(set(days)) > 2
    age = (date.fromisoformat(AS_OF) - date.fromisoformat(min(days[:-1]))).days
    assert f"the oldest {age} days old on {AS_OF}" in page["about"]


PEOPLE: Question = {**USERS, "users": 500, "requests_per_user_per_day": 20}


def test_a_measurement_has_its_part_of_the_load_and_the_best_way_a_cheaper_provider() -> None:
    """One machine of the two that would do takes half of the requests; what another provider takes, as sure, is named
    beside the best way of those that were asked for."""
    at_once: Question = {**USERS, "concurrent_requests": 500}
    del at_once["users"]
    page, at_once_page = beside([PEOPLE, at_once])
    answered = in_python(PEOPLE)
    assert "A day: passes if" in page["words"]["measure"]
    even = in_python(at_once)["by_confidence"][0]
    assert f"A day at {math.ceil(500 / even['n_instances'])} requests at once" in at_once_page["words"]["measure"]
    [surer] = [way for way in answered["as_sure"] if way["kind"] == "provider"]
    assert surer["chance"] >= answered["chance"] and surer["monthly_usd"] < answered["cheapest_same"]["monthly_usd"]
    assert f"${surer['monthly_usd']:,.0f} a month" in page["words"]["cheapest"]
    assert at_once_page["words"]["load_words"].startswith("always 500 at once")


def test_passing_saves_money_or_buys_certainty() -> None:
    """And who comes when no place is free, or that nobody does."""
    questions = [USERS, PEOPLE, *FEW[1:3]]
    pages = beside(questions, facts(NAMES))
    for question, page in zip(questions, pages, strict=True):
        answer, words = in_python(question), page["words"]
        isnt_money = answer["is_worth_it"] and not page["measure"]["passed_saves_usd"]
        assert ("for certainty" in words["measure"]) == isnt_money, question
        wait = answer["waits"]["mean_wait_seconds"]
        assert ("nobody waits" in words["waits"]) == (wait is None) == ("concurrent_requests" in question)
        assert wait is None or f"{seconds(wait)} s longer on average" in words["waits"]
    assert {bool(page["measure"]["passed_saves_usd"]) for page in pages} == {True, False}


def test_a_class_that_binds_names_what_others_sell_on_demand() -> None:
    """At least as sure for less, and bound to nothing, beside a term and a capacity block."""
    purchases = ("reserved-3yr", "reserved-1yr", "capacity-block", "spot")
    *bound, spot = beside([{**LARGE, "purchase": purchase} for purchase in purchases])
    on_demand = in_python({**LARGE, "providers": ["lambda"], "confidence": 0.85})
    for page in bound:
        surer = max((way for way in page["way_words"] if way["kind"] == "unbound"), key=lambda way: way["chance"])
        assert surer["chance"] > 0.85
        [line] = [
            line
            for line in csv.DictReader(io.StringIO(page["csv"]))
            if line["way"] == "unbound" and float(line["chance"]) == pytest.approx(surer["chance"])
        ]
        assert float(line["monthly_usd"]) == pytest.approx(on_demand["monthly_usd"], rel=1e-9)
        assert on_demand["monthly_usd"] < page["month"]
        assert (line["purchase"], line["commits_usd"]) == ("on-demand", "")
        assert f"${on_demand['monthly_usd']:,.0f}" in page["words"]["cheapest"]
    assert not [way for way in spot["way_words"] if way["kind"] == "unbound"]


def test_only_certainty_that_was_asked_for_is_given_up() -> None:
    """Of 90% an answer is over 95% sure: a way that is 90% sure gives up nothing; one below does."""
    [page] = beside([{**PEOPLE, "confidence": 0.9}])
    told = [way for way in page["way_words"] if way["chance"] is not None]
    lower = [way for way in told if 0.9 <= way["chance"] < 0.95]
    assert lower and page["words"]["chance"] > 0.95
    for way in lower:
        assert way["keeps"].endswith(", 90% sure") and "certainty" not in way["gives_up"]
    assert any(way["chance"] < 0.9 for way in told)
    for way in (way for way in told if way["chance"] < 0.9):
        assert "only " in way["keeps"] and "certainty" in way["gives_up"]


def test_a_class_or_region_that_is_less_sure_says_so_by_the_month() -> None:
    bound: Question = {**PEOPLE, "region": "eu", "purchase": "reserved-3yr"}
    page, plain = beside([bound, PEOPLE])
    usual = in_python({**bound, "purchase": "on-demand"})["chance"]
    assert in_python(bound)["chance"] < 0.75 <= usual < 0.8
    assert re.findall(r"[\d]+%", page["words"]["certainty"]) == ["70%", "75%"]
    assert re.findall(r"[\d]+%", plain["words"]["certainty"]) == ["75%"]


def test_weights_without_a_checkpoint_say_so_and_are_beside_the_recommended_ones() -> None:
    """INT4 costs no less than FP8: what it saves beside BF16 is no gain of its own."""
    [page] = beside([{**PEOPLE, "weight_dtype": "int4"}])
    assert "int4" not in catalog().model("llama-3.1-70b").checkpoint_ids
    assert page["month"] == pytest.approx(in_python(PEOPLE)["monthly_usd"])
    quality = page["words"]["quality"]
    assert quality.startswith("A checkpoint in INT4: none in our catalog") and "FP8, as recommended" in quality
    assert "saves" not in quality and "BF16" not in quality


def test_a_price_of_a_year_alone_is_no_day() -> None:
    [page] = beside([{**PEOPLE, "region": "eu"}])
    assert not re.search(r"of \d{4} to", page["about"]) and "without a day" in page["about"]


def test_the_grid_of_loads_is_that_of_the_build() -> None:
    question = ask(catalog(), {"models": "8b", "as_of": "2026-08-01"})
    page_facts = json.loads(json.dumps(facts_of_sheet(question)))
    [page] = beside([{"model": "8b", "users": 20, "input_tokens": 3072, "output_tokens": 1024}], page_facts)
    record = sheet_record(solve(question))
    months = [cell.chosen.monthly_usd if cell.chosen else None for cell in record.cells]
    assert [usd for row in page["loads"] for usd in row["rented"]] == pytest.approx(months, rel=1e-9)


def test_a_derivation_is_that_of_explain() -> None:
    [page] = beside([USERS])
    options = options_of(USERS)
    derived = ChoiceDerivation(recommended(options, catalog()), options)
    for step in page["derived"]:
        assert step["text"] or step["name"] in (
            "paced_requests",
            "chance",
            "ttft_seconds",
            "tpot_seconds",
            "n_replicas",
        ), step
    for name in ("monthly_usd", "n_instances"):
        [shown] = [step for step in page["derived"] if step["name"] == name]
        python = derived.step(name)
        assert (shown["text"], shown["label"], shown["source"]) == (
            python.formula,
            python.label,
            plain_source(python.source),
        )
        assert float(shown["value"].replace(",", "")) == pytest.approx(python.value, rel=1e-5)


def test_the_parts_of_the_first_word_make_the_time() -> None:
    """Each with what it is known by; a question's hardware has numbers where a part of memory runs out."""
    for page in beside(FEW):
        parts = {part["part"]: part["seconds"] for part in page["parts_of_time"]}
        assert sum(parts.values()) == pytest.approx(page["ttft_seconds"], rel=1e-9)
        assert {"prompt", "overhead"} <= set(parts) and all(seconds > 0 for seconds in parts.values())
        [seqs] = re.findall(r"--max-num-seqs (\d+)", page["start"])
        deaths, changes = page["deaths"]["deaths"], page["deaths"]["changes"]
        *_, sampler = deaths
        assert sampler["here"].replace(",", "").startswith(f"{seqs} ")
        lowered = [int(n) for row in deaths for n in re.findall(r"max_num_seqs (\d+)", row["changes"])]
        assert all(n < int(seqs) for n in lowered)
        names = [change["change"] for change in changes]
        assert {name for row in deaths for name in row["changes"].split(" · ") if name} == set(names)
        assert len(set(names)) == len(names) and all(change["costs"] for change in changes)


@pytest.mark.parametrize(("users", "is_whole_machine"), [(320, True), (640, False)])
def test_what_a_change_of_a_setting_buys_is_what_python_sizes(users: int, is_whole_machine: bool) -> None:
    """Of the replica as it is started: the memory of one GPU, and the requests that it holds; where it has all GPUs of
    its machine, a machine with more memory."""
    question: Question = {**USERS, "users": users}
    [page] = beside([question])
    answer = in_python(question)
    [seqs] = re.findall(r"--max-num-seqs (\d+)", page["start"])
    replica = {
        "model": "70b", "gpu": answer["gpu"], "weight_dtype": answer["weight_dtype"], "max_num_seqs": int(seqs),
        "tensor_parallel_size": answer["tensor_parallel_size"], "context_tokens": 16_384, "concurrent_requests": 1,
    }  # fmt: skip

    def sized(**others: object) -> tuple[float, int]:
        sized_point = size(**{**replica, **others})
        return sized_point["kv_pool_bytes_per_gpu"] / 2**30, int(sized_point["max_concurrency"])

    (pool, held), told = sized(), {change["change"]: change for change in page["deaths"]["changes"]}
    assert any(f" {held} of 16,384 tokens" in row["here"] for row in page["deaths"]["deaths"])
    for setting, others in {
        "kv_cache_dtype fp8": {"kv_cache_dtype": "fp8"},
        "gpu_memory_utilization 0.93": {"gpu_memory_utilization": 0.93},
        "gpu_memory_utilization 0.91": {"gpu_memory_utilization": 0.91},
        "max_num_batched_tokens 2048": {"max_num_batched_tokens": 2048},
    }.items():
        other_pool, other_held = sized(**others)
        holds = f"{held} as now" if other_held == held else f"{other_held}, not {held}"
        assert told[setting]["holds"] == holds, (setting, others)
        if abs(other_pool - pool) > 0.01:
            [gib] = re.findall(r"^([\d.]+) GiB", told[setting]["buys"])
            assert float(gib) == pytest.approx(abs(other_pool - pool), abs=0.01)
    assert not any(change.startswith("max_model_len") for change in told)  # it would refuse the load's own requests
    n_wider = 2 * answer["tensor_parallel_size"]
    if is_whole_machine:
        assert f"tensor_parallel_size {n_wider}" not in told
        assert any(re.match(r"machines with \d+× .+, \d+ × ", change) for change in told)
    else:
        weights = size(**{**replica, "tensor_parallel_size": n_wider})["weights_bytes_per_gpu"]
        assert f"weights take {weights / 2**30:.2f} GiB" in told[f"tensor_parallel_size {n_wider}"]["buys"]


@pytest.mark.parametrize("question", [USERS, FEW[1], FEW[2]])
def test_other_questions_are_answered_as_python_answers_them(question: Question) -> None:
    """Twice and half of the load and the lengths, and all people at the same moment."""
    [page] = beside([question])
    kinds = [question_beside["kind"] for question_beside in page["others"]]
    assert ("same_moment" in kinds) == ("users" in question) and {"more_load", "more_prompt", "more_of_both"} <= set(
        kinds
    )
    for question_beside in page["others"]:
        changed = {**question, **question_beside["changes"]}
        if question_beside["kind"] == "same_moment":
            assert changed.pop("users") == changed["concurrent_requests"]
        python = answer_in_python(changed)
        assert [question_beside[name] for name in ("instance", "n_instances")] == [
            python["instance"],
            python["n_instances"],
        ]
        for name in ("monthly_usd", "chance", "ttft_seconds"):
            assert question_beside[name] == pytest.approx(python[name], rel=1e-9), (question_beside["kind"], name)
    lines = {line["way"]: line for line in csv.DictReader(io.StringIO(page["csv"]))}
    prompt = lines["if_more_prompt"]
    assert (
        int(prompt["input_tokens"]) == 2 * question["input_tokens"]
        and f"${float(prompt['monthly_usd']):,.0f} |" in page["markdown"]
    )


def test_what_is_longer_than_the_model_reads_is_said() -> None:
    [page] = beside([{"model": "70b", "users": 20, "input_tokens": 100_000, "output_tokens": 1024}])
    [message] = [
        question_beside["message"] for question_beside in page["others"] if question_beside["kind"] == "more_prompt"
    ]
    assert "131,072" in message


def test_the_parts_of_memory_that_are_shown_make_what_is_shown_in_all() -> None:
    """Also where each rounded by itself would not: 92.6 GiB of 92.7."""
    questions: list[Question] = [
        {"model": "70b", "users": users, "input_tokens": 3072, "output_tokens": 1024} for users in (100, 640, 909)
    ]
    for question, page in zip(questions, beside(questions), strict=True):
        parts = [float(re.findall(r"([\d.]+) GiB", words)[0]) for words in page["memory_words"]]
        memory = next(
            gpu.memory.engine_bytes for gpu in catalog().gpus() if gpu.id == answer_in_python(question)["gpu"]
        )
        assert round(sum(parts), 1) == round(memory / 2**30, 1)


def test_a_way_that_is_not_listed_says_why() -> None:
    """Europe's machines without a price of a commitment; what is in use; what saves nothing."""
    in_europe: Question = {"model": "70b", "users": 640, "input_tokens": 3072, "output_tokens": 1024, "region": "eu"}
    in_africa: Question = {**in_europe, "model": "deepseek-v3", "region": "af"}
    in_4_bits: Question = {**in_europe, "weight_dtype": "int4"}
    on_spot: Question = {"model": "70b", "users": 500, "requests_per_user_per_day": 20, "input_tokens": 15_360,
                         "output_tokens": 1024, "purchase": "spot"}  # fmt: skip
    europe, africa, int4, spot = beside([in_europe, in_africa, in_4_bits, on_spot])
    assert {way["reason"] for way in int4["absent"] if way["kind"] == "fp8_weights"} == {"as_few"}
    cheapest = spot["words"]["cheapest"].partition("Without nights")[0]
    assert "renting at" in cheapest and "may be taken away" in cheapest and "bound to nothing" not in cheapest
    reasons = {way["kind"]: way for way in europe["absent"]}
    assert reasons["fp8_weights"]["reason"] == "in_use"
    for purchase in ("reserved-1yr", "reserved-3yr"):
        declined = in_python({**in_europe, "purchase": purchase})  # which answers on demand, as it costs no less
        assert reasons[purchase]["reason"] == "dearer" and declined["declined"]["reason"] == "no_saving"
        assert reasons[purchase]["rental"]["monthly_usd"] > europe["month"]
    for page in (europe, africa):  # what costs no less is not said to save too little
        for way in (way for way in page["absent"] if way["reason"] in ("costs_more", "no_less")):
            assert (way["rental"]["monthly_usd"] >= page["month"]) == (way["reason"] == "costs_more"), way
    assert reasons["less_sure"]["reason"] == "costs_more"
    listed = {line["way"] for line in csv.DictReader(io.StringIO(europe["csv"]))}
    assert not listed & set(reasons)
    assert {way["kind"] for way in africa["absent"] if way["reason"] == "no_price"} >= {"reserved-1yr", "reserved-3yr"}


def test_what_is_served_has_a_name_for_each_quantity() -> None:
    """Requests at once, of a rate beside the requests a second."""
    for question, page in zip(FEW[:3], beside(FEW[:3]), strict=True):
        first = next(csv.DictReader(io.StringIO(page["csv"])))
        assert "served_at_target" not in first and float(first["served_requests_at_once"]) == page["served"]
        python = in_python(question)
        served = first["served_requests_at_once" if "concurrent_requests" in question else "served_requests_per_second"]
        assert float(served) == pytest.approx(python["served_at_target"], rel=1e-9)
        assert bool(first["served_requests_per_second"]) == ("concurrent_requests" not in question)


def test_no_source_names_a_file_of_the_project() -> None:
    explained = re.findall(r"const EXPLAINED=(.*?);\n", program_of(facts(NAMES)))
    for label, _, source, _ in json.loads(explained[0]).values():
        assert not re.search(r"INTERFACE|\.md|\.yaml|catalogs/|^as [a-z]+_", source), (label, source)


def test_markdown_and_csv_say_the_answer() -> None:
    [page] = beside([USERS])
    month = f"${page['month']:,.0f}"
    assert "320 people" in page["markdown"].partition("\n")[0] and month in page["markdown"]
    assert "| To approve | Price |" in page["markdown"] and page["markdown"].rstrip().endswith("<https://a.example/#x>")
    asked, answered = "prompts of 15,360 tokens, answers of 1,024", in_python(USERS)
    assert asked in page["markdown"] and "in FP8" in page["markdown"]
    lines = [*csv.DictReader(io.StringIO(page["csv"]))]
    first, sure, survivor, measured, *ways, compared = (line for line in lines if not line["way"].startswith("if_"))
    hosts = [way for way in ways if way["way"] == "hosted"]
    assert {row["link"] for row in (first, sure, *ways, compared)} == {"https://a.example/#x"}
    assert [first[name] for name in ("region", "price_as_of")] == [answered[name] for name in ("region", "price_as_of")]
    assert survivor["way"] == "survives_machine"
    assert (sure["way"], float(sure["monthly_usd"])) == ("sure", answered["by_confidence"][-1]["monthly_usd"])
    survives = answered["survives_machine"]
    assert float(survivor["monthly_usd"]) == pytest.approx(survives["monthly_usd"], rel=1e-9)
    assert (survivor["instance"], int(survivor["n_instances"])) == (survives["instance"], survives["n_instances"])
    assert (measured["way"], float(measured["once_usd"])) == (
        "measure_first",
        (page["measure"]["decider"] or page["measure"])["usd"],
    )
    assert not measured["monthly_usd"]
    assert (compared["way"], compared["model"]) == ("compared", "llama-3.1-8b")
    assert f"| Llama 3.1 8B, FP8 | ${float(compared['monthly_usd']):,.0f} |" in page["markdown"]
    assert all(len(row["monthly_usd"].replace(".", "").lstrip("0")) <= 12 for row in (first, *ways))
    assert float(first["monthly_usd"]) == pytest.approx(page["month"], rel=1e-9) and first["way"] == "answer"
    prices = [float(way["monthly_usd"]) for way in ways if way not in hosts]
    assert prices == sorted(prices) and ways[-len(hosts) :] == hosts and len(hosts) == len(answered["hosted"]) == 3
    assert {way["way"] for way in ways} - {"spot"} == {way["kind"] for way in answered["pay_less"]}
    terms = {way["purchase"]: float(way["monthly_usd"]) for way in ways if way["way"] in ("term", "spot")}
    for purchase in ("reserved-1yr", "reserved-3yr", "spot"):
        assert terms[purchase] == pytest.approx(answered["by_purchase"][purchase]["monthly_usd"], rel=1e-9)
    for row, host in zip(hosts, answered["hosted"], strict=True):
        assert float(row["monthly_usd"]) == pytest.approx(host["monthly_usd"], rel=1e-9)
        for name in ("input_usd_per_million", "cached_usd_per_million", "output_usd_per_million"):
            assert row[name] == ("" if host[name] is None else f"{host[name]:g}")
        assert (row["model"], row["users"]) == (first["model"], first["users"])
        assert (row["price_source"], row["price_as_of"]) == (host["source"], host["read_on"])
        assert (
            f"| {row['host']} | ${host['monthly_usd']:,.0f} | ${host['input_usd_per_million']:.2f}" in page["markdown"]
        )
        assert f"| {host['read_on']} | <{host['source']}> |" in page["markdown"]
    assert all(row["price_source"] for row in (first, sure))
    [measured_row] = [line for line in page["markdown"].splitlines() if line.startswith("| Measure first")]
    is_same = measured["instance"] == first["instance"]
    if is_same:
        assert f"A day on {measured['n_instances']} machine" in measured_row
    else:
        assert str(rent(int(measured["n_instances"]), measured["instance"])) in measured_row.split("|")[-2]


def test_a_line_of_csv_says_what_is_paid_for() -> None:
    """Of a term its class, of GPUs that one owns these, of a host its name, which holds no verdict."""
    question: Question = {"model": "8b", "users": 60, "input_tokens": 7000, "output_tokens": 1}
    [page] = beside([question])
    every = [*csv.DictReader(io.StringIO(page["csv"]))]
    lines = {line["way"]: line for line in every}
    details = {way["kind"]: way["detail"] for way in in_python(question)["pay_less"]}
    term, own, hosted = (lines[kind] for kind in ("term", "own", "hosted"))  # of the hosts the last
    commits = {way["kind"]: way["commits_usd"] for way in in_python(question)["pay_less"]}
    assert float(own["commits_usd"]) == pytest.approx(commits["own"], rel=1e-9)
    assert any(float(line["commits_usd"] or 0) == pytest.approx(commits["term"], rel=1e-9) for line in every)
    assert all(line["keeps"] and line["gives_up"] for line in (term, own))
    hosts = [host["host"] for host in in_python(question)["hosted"]]
    terms = [line["purchase"] for line in every if line["way"] == "term"]
    assert details["term"] in terms and term["verdict"] == "fits"
    assert f"{own['n_gpus']} {own['gpu']}" == details["own"]
    assert hosted["host"].lower() == hosts[-1] and details["hosted"] == hosts[0] and not hosted["instance"]
    assert own["verdict"] == hosted["verdict"] == ""

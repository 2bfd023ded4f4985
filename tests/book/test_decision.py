"""Decision: any model, load, precision, class, provider and confidence typed there gives what Python gives."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import books
import pytest
from amounts import IN_LONG, amount
from cells_of import FEW
from option_values import OptionValue
from recalculation import compare, poison, recalculate_with_formualizer, values_after
from workbook_cells import values

from sheetgen.answer.recording import record_of
from sheetgen.answer.solve import solve
from sheetgen.api import answered, recommend
from sheetgen.book.decision_choices import decision
from sheetgen.book.decision_sheet import AT_EVEN_CHANCE
from sheetgen.question.sheet_question import Load, Question, ask
from sheetgen.report.sentences import LOST_WITH_IT
from sheetgen.report.wording import sure
from sheetgen.units import COMMITTED, PLAIN_LAYOUTS

OPTIONS = {"models": "8b", "workloads": "rag", "tiers": "32", "instances": books.INSTANCES, "as_of": books.AS_OF}
N_CHOICES = amount(3, 40)
DTYPES = ("recommended", "published", "bf16", "fp8", "int8", "int4")
PROVIDERS = ("any", "any", "any", *sorted({word.partition("/")[0] for word in books.INSTANCES.split(",")}))


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("decision"), "one", OPTIONS)[0]


def picks(rng: random.Random) -> dict[str, str | float]:
    """Choices on the page, from usual to odd."""
    served = [m for m in books.catalog().models() if m.kind != "draft"]
    return {
        "model": rng.choice(served).name,
        "weight_dtype": rng.choice(DTYPES),
        "kv_cache_dtype": rng.choice(("auto", "auto", "fp8")),
        "purchase": rng.choice(("on-demand", "on-demand", "reserved-1yr", "reserved-3yr", "spot")),
        "provider": rng.choice(PROVIDERS),
        "confidence": rng.choice((0.5, 0.7, 0.7, 0.85)),
        "users": rng.choice((None, None, 3, 200, 9000)),
        "requests_per_user_per_day": rng.choice((5, 20)),
        "concurrent_requests": rng.choice((1, 3, 32, 200, 5000)),
        "context_tokens": rng.choice((500, 4096, 16_384, 32_768, 131_072, 1_000_000)),
        "answer_tokens": rng.choice((1, 100, 400)),
        "tpot_ms": rng.choice((None, 30, 50, 100)),
        "ttft_ms": rng.choice((None, 3000, 60_000)),
    }


def per_second(question: Question, picked: Mapping[str, str | float]) -> float:
    """Requests a second of the people that are asked for; 0 of requests at once."""
    settings = question.settings
    a_day = (picked["users"] or 0) * picked["requests_per_user_per_day"]
    return float(a_day * settings.peak_hour_share / 3600 * settings.burst_factor)


def asked(picked: Mapping[str, str | float]) -> Question:
    """The question of the page, for `solve`: of the workbook's own candidates and layouts."""
    own = ask(books.catalog(), OPTIONS)
    model = next(m for m in decision(solve(own)).models if m.name == picked["model"])
    names = ("weight_dtype", "kv_cache_dtype", "purchase", "confidence")
    question = ask(books.catalog(), {**OPTIONS, "models": model.id, **{name: str(picked[name]) for name in names}})
    rate = per_second(question, picked)
    requests = 0 if rate else int(picked["concurrent_requests"])
    context, answer = picked["context_tokens"], picked["answer_tokens"]
    workload = question.workloads[0].model_copy(
        update={
            "input_tokens": context - answer,
            "output_tokens": answer,
            "tpot_target_ms": picked["tpot_ms"],
            "ttft_target_ms": picked["ttft_ms"],
        }
    )
    has_ranks = len(own.layouts) > len(PLAIN_LAYOUTS)
    over = context > (question.models[0].model.max_context_tokens or 0)
    return replace(
        question,
        workloads=(workload,),
        tiers=(None if rate else requests,),
        loads=(Load(0, 0, 0, context, context - answer, requests, over, rate, picked["users"]),),
        headline=(0, 0),
        candidates=tuple(
            replace(candidate, tries_ranks=candidate.tries_ranks and has_ranks)
            for candidate in question.candidates
            if picked["provider"] in ("any", candidate.provider)
        ),
    )


@pytest.mark.parametrize("seed", range(N_CHOICES))
def test_random_choices_give_what_solve_gives(book: Path, seed: int) -> None:
    picked = picks(random.Random(seed))
    question = asked(picked)
    cell = record_of(solve(question)).cells[0] if question.candidates else None
    by_place = values_after(book, {f"in_decision_{name}": value for name, value in picked.items()})
    if cell is None or cell.chosen is None:
        assert (by_place["rec_decision_n_instances"], by_place["rec_decision_monthly_usd"]) == ("-", "-"), picked
        return
    answer = cell.answer
    assert (by_place["rec_decision_instance"], by_place["rec_decision_n_instances"]) == (
        answer.instance,
        answer.n_instances,
    )
    assert by_place["rec_decision_monthly_usd"] == pytest.approx(answer.monthly_usd, rel=1e-9), picked
    assert by_place["rec_decision_chance"] == pytest.approx(answer.chance, abs=1e-9), picked
    shown = {key[1]: value for key, value in by_place.items() if key[0] == "Decision"}
    for line, level in (("D10", 0.9), ("D11", 0.5)):
        at_level = cell.at_level(level)
        assert (f"${at_level.monthly_usd:,.0f} on {at_level.n_instances} × " if at_level else "n") in str(shown[line])
    survivor, usd = cell.survives_machine, by_place["rec_decision_survivor_monthly_usd"]
    assert survivor is not None
    if "impossible" in cell.measure_first:  # nothing is as sure as was asked
        assert usd == "-" and "measure first" in str(shown["D13"])
    else:
        assert usd == pytest.approx(survivor.monthly_usd, rel=1e-9), picked
        words = f"${survivor.monthly_usd:,.0f} on {survivor.n_instances} × "
        assert words in str(shown["D13"]) and str(sure(survivor.chance)) in str(shown["D13"]), picked


def test_what_survives_a_loss_already_says_so(book: Path) -> None:
    built, spared = values_after(book, {}), values_after(book, {"in_survive": 2})
    assert spared["rec_decision_monthly_usd"] == built["rec_decision_survivor_monthly_usd"]
    assert "in the price" in str(spared["Decision", "D13"]) and "$" in str(built["Decision", "D13"])


def test_what_is_built_is_what_the_record_says(default_book: Path) -> None:
    """The levels, the published weights and both terms beside the answer of the first model's headline."""
    shown = {key[1]: value for key, value in values(default_book).items() if key[0] == "Decision"}
    solved = solve(ask(books.catalog(), books.USUAL if IN_LONG else {**books.USUAL, "instances": FEW}))
    record = record_of(solved)
    cell = record.headline_cells[0]
    assert shown["D5"] == pytest.approx(cell.answer.monthly_usd)
    published = cell.as_published
    assert published is not None and f"${published.monthly_usd:,.0f} on" in shown["D12"]
    rows = {value: int(place[1:]) for place, value in shown.items() if place[0] == "A"}
    for purchase, label in zip(COMMITTED, ("One-year term", "Three-year term"), strict=False):
        term = cell.by_purchase[purchase]
        if term is not None and term.monthly_usd < 0.98 * cell.answer.monthly_usd:
            assert shown[f"E{rows[label]}"] == pytest.approx(term.monthly_usd, rel=1e-9)


FOLLOW = ("in_decision_tpot_ms", "in_decision_ttft_ms")


def test_targets_follow_the_tokens_typed_until_somebody_types_over_them(book: Path) -> None:
    """By hand: 50 ms x 2^(1/3) and 1 s + 0.4 ms x (32,768 - 1,024) at twice the tokens."""
    alone = {"in_decision_users": None}
    built, twice = values_after(book, alone), values_after(book, {**alone, "in_decision_context_tokens": 32_768})
    assert [built[name] for name in FOLLOW] == [50, 7144]
    assert [twice[name] for name in FOLLOW] == pytest.approx([50 * 2 ** (1 / 3), 1000 + 0.4 * 31_744], rel=1e-12)
    assert twice["rec_decision_monthly_usd"] == built["rec_case_context_high_monthly_usd"]
    typed = values_after(book, {**alone, "in_decision_tpot_ms": 30, "in_decision_context_tokens": 32_768})
    assert typed["in_decision_tpot_ms"] == 30
    stated = values_after(book, {**alone, "in_decision_tpot_ms": 30})
    assert typed["rec_decision_monthly_usd"] == stated["rec_case_context_high_monthly_usd"]


def test_a_workload_fills_questions_and_tokens_in_place_of_those_typed(tmp_path: Path) -> None:
    """Chat by hand: 3,072 + 1,024 tokens, a first token in 1 s + 0.4 ms x 3,072; typed ones count again without it."""
    given = {**OPTIONS, "models": "70b", "workloads": "chat,rag", "headline": "rag:32"}
    built, _ = books.build(tmp_path, "two", given)
    chat = {"context_tokens": 4096, "answer_tokens": 1024}
    typed = values_after(built, {"in_decision_users": 460, **{f"in_decision_{n}": v for n, v in chat.items()}})
    filled = values_after(built, {"in_decision_users": 460, "in_decision_workload": "Chat"})
    assert filled["in_decision_ttft_ms"] == pytest.approx(1000 + 0.4 * 3072)
    answer = [name for name in filled if str(name).startswith(("rec_decision", "rec_case"))]
    assert len(answer) > 8 and {name: filled[name] for name in answer} == {name: typed[name] for name in answer}
    assert filled["in_decision_context_tokens"] == 16_384 and "4k tokens" in str(filled["Decision", "A1"])
    wrong = values_after(built, {"in_decision_workload": "banana"})
    assert "no such workload: banana" in str(wrong["Decision", "A1"]) and wrong["rec_decision_monthly_usd"] == "-"


@pytest.mark.some(1)
@pytest.mark.parametrize("options", [{"models": "8b"}, {"models": "70b"}])
def test_twice_the_context_costs_what_the_record_says(tmp_path: Path, options: Mapping[str, OptionValue]) -> None:
    given = {**OPTIONS, **options}
    built, _ = books.build(tmp_path, "one", given)
    cell = answered(ask(books.catalog(), given)).record.headline_cells[0]
    move = next(move for move in cell.moves if move.input == "context_tokens")
    by_place = values(built)
    ends = [by_place[f"rec_case_context_{end}_monthly_usd"] for end in ("low", "high")]
    assert ends == pytest.approx([move.low_usd, move.high_usd], rel=1e-9)


def test_it_opens_with_the_load_of_the_headline_beside_which_people_count_first(book: Path) -> None:
    built = values_after(book, {})
    assert (built["in_decision_users"], built["in_decision_concurrent_requests"]) == (None, 32)
    cell = record_of(solve(ask(books.catalog(), OPTIONS))).headline_cells[0]
    assert built["rec_decision_monthly_usd"] == pytest.approx(cell.answer.monthly_usd, rel=1e-9)
    assert f"{cell.users:,.0f} people" in str(built["Decision", "D16"])
    by_place = values_after(book, {"in_decision_users": 460})
    answer = [name for name in built if str(name).startswith(("rec_decision", "rec_case"))]
    for change in ({"concurrent_requests": None}, {"concurrent_requests": 200}):
        beside = values_after(book, {"in_decision_users": 460, **{f"in_decision_{n}": v for n, v in change.items()}})
        assert {name: beside[name] for name in answer} == {name: by_place[name] for name in answer}, change
    asks_not = values_after(book, {"in_decision_requests_per_user_per_day": None})
    assert {name: asks_not[name] for name in answer} == {name: built[name] for name in answer}
    labels = (str(shown["Decision", "A9"]) for shown in (by_place, built))
    assert ["not used" in label for label in labels] == [True, False], "beside people the requests do not count"


@pytest.mark.parametrize(("users", "context_tokens"), [(460, 32_768), (920, 32_768), (9000, 16_384)])
def test_people_are_answered_as_recommend_answers_them(book: Path, users: int, context_tokens: int) -> None:
    """At the hardware's own speed: 460 people at 32k on Llama 3.1 70B are $46,206 a month among all machines, not the
    $61,145 of requests that take as long as their targets allow."""
    cell = recommend(model="70b", context=context_tokens, users=users, instances=books.INSTANCES, as_of=books.AS_OF)
    question = {"model": "Llama 3.1 70B", "users": users, "context_tokens": context_tokens}
    by_place = values_after(book, {f"in_decision_{name}": value for name, value in question.items()})
    assert (by_place["rec_decision_instance"], by_place["rec_decision_n_instances"]) == (
        cell["instance"],
        cell["n_instances"],
    )
    assert by_place["rec_decision_monthly_usd"] == pytest.approx(cell["monthly_usd"], rel=1e-9)
    assert by_place["rec_decision_chance"] == pytest.approx(cell["chance"], abs=1e-9)
    load, context = (
        [by_place[f"rec_case_{name}_{end}_monthly_usd"] for end in ("low", "high")] for name in ("users", "context")
    )
    by_input = {move["input"]: [move["low_usd"], move["high_usd"]] for move in cell["moves"]}
    assert load == pytest.approx(by_input["requests_per_second"], rel=1e-9)
    assert context == pytest.approx(by_input["context_tokens"], rel=1e-9)
    terms = {str(by_place.get(("Decision", f"A{r}"))): by_place.get(("Decision", f"E{r}")) for r in range(30, 80)}
    for purchase, label in zip(COMMITTED, ("One-year term", "Three-year term"), strict=True):
        term = cell["by_purchase"][purchase]
        if term is not None and term["monthly_usd"] < 0.98 * cell["monthly_usd"]:
            assert terms[label] == pytest.approx(term["monthly_usd"], rel=1e-9)


def test_of_a_sheet_of_people_it_opens_with_them_and_has_the_first_sheets_cost(tmp_path: Path) -> None:
    """The checks see that it asks the same: in every pair, people and how often they ask among them."""
    given = {**OPTIONS, "models": "70b", "tiers": None, "users": 460}
    built, _ = books.build(tmp_path, "people", given)
    by_place = values(built)
    assert by_place["in_decision_users"] == 460 and by_place["rec_decision_monthly_usd"] > 0
    assert by_place["rec_decision_monthly_usd"] == by_place["rec_llama_3_1_70b_headline_monthly_usd"]
    rows = {str(value): int(place[1][1:]) for place, value in by_place.items() if place[0] == "Sources and checks"}
    asked = range(rows["Decision asks"] + 1, rows["Decision answers"] - 1)
    assert len(asked) == 13
    assert [by_place["Sources and checks", f"D{row}"] for row in asked] == [1] * len(asked)


def test_people_up_to_whom_the_machines_serve_and_what_one_more_costs(book: Path) -> None:
    """At most what one more of the same machines costs; asked for the most people, the same answer holds."""
    by_place = values_after(book, {"in_decision_users": 460})
    line = str(by_place["Decision", "D18"])
    most = int(line.split()[2].replace(",", ""))
    month, count = by_place["rec_decision_monthly_usd"], by_place["rec_decision_n_instances"]
    assert f"${month / count * (count + 1):,.0f}" in line
    at_most, beyond = (values_after(book, {"in_decision_users": users}) for users in (most, most + 1))
    assert at_most["rec_decision_monthly_usd"] == month < beyond["rec_decision_monthly_usd"]
    assert beyond["rec_decision_monthly_usd"] <= month / count * (count + 1) * (1 + 1e-9)
    spared = values_after(book, {"in_decision_users": 460, "in_survive": 3})
    assert "more" not in str(spared["Decision", "D18"]), "a further machine may not serve more where a zone may be lost"


def test_a_commitment_says_how_sure_it_is_where_that_is_another_chance(book: Path) -> None:
    """460 people at 32k on Llama 3.1 8B: on demand 80% sure, on nine smaller machines of a term 70%."""
    cell = recommend(model="8b", context="32k", users=460, instances=books.INSTANCES, as_of=books.AS_OF)
    term = next(way for way in cell["pay_less"] if way["kind"] == "term")
    assert sure(term["chance"]) != sure(cell["chance"])
    by_place = values_after(book, {"in_decision_users": 460, "in_decision_context_tokens": 32_768})
    gives_up = {str(by_place.get(("Decision", f"A{r}"))): by_place.get(("Decision", f"G{r}")) for r in range(30, 80)}
    assert f"; {sure(term['chance'])};" in str(gives_up["Three-year term"])


def test_levels_beside_the_answer_are_the_very_cheapest_as_in_the_record(tmp_path: Path) -> None:
    """8b at 90%: $9,820 on four machines; the near tie, as of the answer itself, would take one for $10,191."""
    machines = "aws/g7e.2xlarge,azure/Standard_NC40ads_H100_v5,azure/Standard_NC80adis_H100_v5"
    given = {**OPTIONS, "instances": machines}
    built, _ = books.build(tmp_path, "one", given)
    cell = record_of(solve(ask(books.catalog(), given))).cells[0]
    for changes, line, level in (({}, "D10", 0.9), ({}, "D11", 0.5), ({"in_decision_confidence": 0.9}, "D10", 0.9)):
        at_level = cell.at_level(level)
        assert at_level is not None
        shown = str(values_after(built, changes)["Decision", line])
        assert f"${at_level.monthly_usd:,.0f} on {at_level.n_instances} × " in shown
    surest = record_of(solve(ask(books.catalog(), {**given, "confidence": "0.9"}))).cells[0].answer
    by_place = values_after(built, {"in_decision_confidence": 0.9})
    assert by_place["rec_decision_monthly_usd"] == pytest.approx(surest.monthly_usd, rel=1e-9)
    assert surest.monthly_usd > cell.at_level(0.9).monthly_usd  # type: ignore[union-attr]


def test_a_way_that_is_less_sure_than_the_answer_says_how_sure(book: Path) -> None:
    cell = record_of(solve(ask(books.catalog(), OPTIONS))).headline_cells[0]
    shown = values_after(book, {})
    gives_up = {str(shown.get(("Decision", f"A{r}"))): shown.get(("Decision", f"G{r}")) for r in range(30, 90)}
    even = cell.at_level(0.5)
    assert even is not None and even.chance < cell.answer.chance
    assert str(sure(even.chance)) in str(gives_up[AT_EVEN_CHANCE])
    assert "sure" not in str(gives_up["Working hours only"]), "it rents what the answer rents"


def test_a_host_on_it_is_priced_for_its_people(book: Path) -> None:
    """At 20 a day each: twice the people, twice the tokens; without people those whom the requests are enough for."""

    def host(**typed: object) -> tuple[Any, Any]:
        shown = values_after(book, {f"in_decision_{name}": value for name, value in typed.items()})
        row = next(r for r in range(30, 90) if str(shown.get(("Decision", f"A{r}"))).startswith("The cheapest live"))
        return shown["Decision", f"A{row}"], shown["Decision", f"E{row}"]

    label, usd = host()
    cell = record_of(solve(ask(books.catalog(), OPTIONS))).headline_cells[0]
    assert "460 people" in label and usd == pytest.approx(cell.hosted[0].monthly_usd, rel=1e-9)
    assert host(users=460) == (label, pytest.approx(usd, rel=1e-9))
    assert host(users=920)[1] == pytest.approx(2 * usd, rel=1e-9)


def test_every_cell_is_worked_out(book: Path, tmp_path: Path) -> None:
    poison(book, tmp_path / "poisoned.xlsx")
    comparison = compare(book, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "recalculated.xlsx"))
    assert not comparison.mismatches and comparison.n_compared > 10_000, comparison.mismatches[:5]


def test_a_way_that_saves_nothing_rents_nothing_and_four_bits_are_not_offered_twice(tmp_path: Path) -> None:
    """gpt-oss-120b is published in MXFP4; 500 people in Europe take two machines, and one of a term."""
    options = {
        "models": "gpt-oss-120b", "users": 500, "region": "eu", "workloads": "rag", "as_of": books.AS_OF,
        "instances": "aws/g7e.2xlarge,gcp/g4-standard-96",
    }  # fmt: skip
    path, _ = books.build(tmp_path, "ways", options)
    by_place = values_after(path, {})
    rows = {str(by_place.get(("Decision", f"A{r}"))): r for r in range(35, 80)}
    cells = {label: [by_place.get(("Decision", f"{c}{r}")) for c in "DEG"] for label, r in rows.items()}
    assert cells["The model in 4 bits"] == ["already so", "-", "-"]
    for label in ("Conversations in 8 bits", AT_EVEN_CHANCE):
        rented, usd, lost = cells[label]
        assert (usd == "-") == (rented in ("saves nothing", "already so")) == (lost == "-"), label
    assert by_place["rec_decision_n_instances"] == 2 and cells["One-year term"][0].startswith("1 ×")
    assert LOST_WITH_IT in cells["One-year term"][2] and "pays off" in cells["One-year term"][2]
    assert "Any provider: AWS, GCP" in {str(value).partition(". ")[2] for value in by_place.values()}

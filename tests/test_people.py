"""People, a rate and requests at once: each answer in all three, by the targets and by Little's law."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from amounts import amount
from option_values import Options

import sheetgen
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask
from sheetgen.sizing.rates import z_of

CATALOG = Catalog()
# By workload: the longest times that INTERFACE's smooth targets allow, in ms, and what a person asks a day.
SMOOTH = {
    "chat": (3072, 1024, 20, 50.0, 1000 + 0.4 * 3072),
    "rag": (15_360, 1024, 20, 50.0, 1000 + 0.4 * 15_360),
    "long-doc": (129_024, 2048, 5, 50 * (131_072 / 16_384) ** (1 / 3), 1000 + 0.4 * 129_024),
}


def solved(**options: object) -> Solution:
    return solve(ask(CATALOG, options))


def two_figures(number: float) -> float:
    """Rounded down to two figures, by its digits."""
    digits = str(math.floor(number))
    return float(digits[:2] + "0" * (len(digits) - 2))


def people_at(at_once: int, answer: int, asks: float, tpot_ms: float, ttft_ms: float) -> float:
    """People whose requests fill so many places, found by trying: one by one, while the next still fits."""
    z, turn = z_of(0.05), (ttft_ms + (answer - 1) * tpot_ms) / 1000

    def places(people: float) -> float:
        mean = people * asks * 0.12 / 3600 * 1.3 * turn
        return mean + z * math.sqrt(mean)

    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if places(middle) <= at_once else (low, middle)
    return two_figures(low)


@pytest.mark.parametrize("at_once", [1, 32, 1024])
def test_a_tier_is_so_many_people_by_its_targets(at_once: int) -> None:
    targets = {
        f"{figure}_ms": ",".join(f"{name}={times[place]}" for name, times in SMOOTH.items())
        for place, figure in ((3, "tpot"), (4, "ttft"))
    }
    answer = solved(models="8b", tiers=str(at_once), instances="aws/p5.48xlarge", **targets)
    for row, (_, output, asks, tpot, ttft) in enumerate(SMOOTH.values()):
        assert answer.loads["users"][row] == people_at(at_once, output, asks, tpot, ttft)
        rate = answer.loads["load_requests_per_second"][row]
        mean = rate * (ttft + (output - 1) * tpot) / 1000
        assert mean + z_of(0.05) * math.sqrt(mean) == pytest.approx(at_once, rel=1e-12)
        assert answer.loads["requests_per_hour"][row] == pytest.approx(3600 * rate)
    if at_once == 32:
        assert answer.loads["users"].tolist() == [500, 460, 420]


def test_two_hundred_people_are_a_rate() -> None:
    answer = sheetgen.recommend(model="70b", context="16k", users=200)
    assert answer["users"] == 200 and answer["tier"] is None
    assert answer["requests_per_second"] == pytest.approx(200 * 20 * 0.12 / 3600 * 1.3)
    turn = answer["ttft_seconds"] + 1023 * answer["tpot_seconds"]
    assert answer["concurrent_requests"] == pytest.approx(answer["requests_per_second"] * turn)
    at_once = sheetgen.recommend(model="70b", context="16k", users=200, active_fraction=0.05)
    assert at_once["users"] == 200 and at_once["concurrent_requests"] == at_once["tier"] == 10


def test_without_a_target_nobody_says_how_many_people_requests_at_once_are() -> None:
    for off in ({"tpot_ms": "off"}, {"ttft_ms": "off"}):
        answer = sheetgen.recommend(model="8b", concurrent_requests=32, **off)
        assert answer["users"] is answer["requests_per_second"] is answer["requests_per_hour"] is None
        assert answer["verdict"] == "fits"


def test_size_takes_people_as_a_rate() -> None:
    usual = {"model": "70b", "gpu": "h100", "tensor_parallel_size": 4, "context": "16k"}
    people = sheetgen.size(**usual, users=200)
    rate = sheetgen.size(**usual, requests_per_second=200 * 20 * 0.12 / 3600 * 1.3)
    assert people == rate | {"users": 200}
    assert sheetgen.size(**people_columns(people)) == people  # what it writes, it reads
    twice = sheetgen.size(**usual, users=100, requests_per_user_per_day=40)
    assert twice == people | {"users": 100, "requests_per_user_per_day": 40}


def people_columns(answer: dict[str, Any]) -> dict[str, Any]:
    """The inputs of an answer of `size`."""
    from sheetgen.question.deployment import DEFAULTS

    return {name: answer[name] for name in DEFAULTS if answer[name] is not None}


@pytest.mark.some(6)
@pytest.mark.parametrize("draw", range(amount(12, 60)))
def test_people_of_a_cell_never_cost_more_than_the_cell(draw: int) -> None:
    """By the very cheapest: the choice may take a near tie, on either side."""
    pick = random.Random(f"people of a cell {draw}")
    load = {
        "models": pick.choice(("8b", "70b", "gpt-oss-120b", "qwen3-32b", "gemma-3-27b")),
        "context_tokens": str(pick.choice((2048, 4096, 16_384, 32_768))),
        "output_tokens": str(pick.choice((128, 512, 1024))),
        "near_tie_fraction": "0",
    }
    cell = solved(**load, concurrent_requests=pick.choice((1, 4, 32, 128, 700)))
    users = int(cell.loads["users"][0])
    if not users:
        return
    people = solved(**load, users=users)
    if cell.choices[0].offer is not None:
        assert people.choices[0].monthly_usd <= cell.choices[0].monthly_usd * (1 + 1e-12)


@pytest.mark.parametrize("model,context,at_once", [("gpt-oss-120b", "32k", 200), ("qwen3-32b", "16k", 32)])
def test_people_are_no_more_than_the_hardware_reads_prompts_of(model: str, context: str, at_once: int) -> None:
    """Nor more than the targets let ask: a round of requests at once is no shorter than their prompts."""
    load = {"models": model, "context_tokens": context, "output_tokens": "1", "near_tie_fraction": "0"}
    cell = solved(**load, concurrent_requests=at_once)
    people = solved(**load, users=int(cell.loads["users"][0]))
    assert people.choices[0].monthly_usd <= cell.choices[0].monthly_usd * (1 + 1e-12)
    by_targets = people_at(at_once, 1, 20, 0, cell.workload_of(0).ttft_target_ms or 0)
    assert 0.7 * by_targets < cell.loads["users"][0] <= by_targets


def test_a_sheet_shows_the_default_workloads_and_agents_when_they_are_named() -> None:
    assert [w.id for w in ask(CATALOG, {"models": "8b"}).workloads] == ["chat", "rag", "long-doc"]
    (agent,) = ask(CATALOG, {"models": "70b", "workloads": "agent", "tiers": "32"}).workloads
    assert (agent.requests_per_user_per_day, agent.history_hit_fraction) == (200, 0.9)
    # The first token by what is new of the prompt: a tenth.
    assert agent.ttft_target_ms == pytest.approx(1000 + 0.4 * 10_137.6)


def test_what_is_stated_of_workloads() -> None:
    asked = {"models": "8b", "requests_per_user_per_day": "30,rag=7", "history_hit_fraction": "chat=0.5"}
    chat, rag, long = ask(CATALOG, asked).workloads
    assert [w.requests_per_user_per_day for w in (chat, rag, long)] == [30, 7, 30]
    assert [w.history_hit_fraction for w in (chat, rag, long)] == [0.5, 0, 0]


@pytest.mark.some(1)
@pytest.mark.parametrize("tokens", ["0", "1"])
def test_an_embedding_has_no_time_per_token(tokens: str) -> None:
    load = {"model": "qwen3-embedding-8b", "context": 513, "input_tokens": 512, "output_tokens": tokens}
    usual = {**load, "requests_per_second": 5, "ttft_ms": 500}
    answer, off, tight = (sheetgen.recommend(**usual, **more) for more in ({}, {"tpot_ms": "off"}, {"tpot_ms": 1}))
    for name in ("monthly_usd", "n_replicas", "users", "served_at_target", "sized_by"):
        assert answer[name] == off[name] == tight[name], name
    assert answer["concurrent_requests"] == pytest.approx(5 * answer["ttft_seconds"])


def test_all_at_once_wait_for_the_prompts_of_all_where_answers_have_one_token() -> None:
    usual = {"model": "llama-4-scout-17b-16e", "input_tokens": 3000, "output_tokens": 1}
    all_at_once = sheetgen.recommend(**usual, users=20)["all_at_once"]
    alone = sheetgen.recommend(**usual, concurrent_requests=20)
    for name in ("instance", "n_instances", "monthly_usd"):
        assert all_at_once[name] == alone[name]


@pytest.mark.long
def test_what_people_take_who_ask_otherwise() -> None:
    usual = {"model": "70b", "context": "16k", "near_tie_fraction": 0}
    answer = sheetgen.recommend(**usual, users=200)
    for answer_, asks in zip(answer["by_requests_per_day"], (10, 40), strict=True):
        alone = sheetgen.recommend(**usual, users=200, requests_per_user_per_day=asks)
        assert answer_ == {"requests_per_user_per_day": asks} | {
            name: alone[name] for name in ("instance", "n_instances", "monthly_usd")
        }
    alone = sheetgen.recommend(**usual, concurrent_requests=200)
    assert answer["all_at_once"] == {"concurrent_requests": 200} | {
        name: alone[name] for name in ("instance", "n_instances", "monthly_usd")
    }
    assert alone["all_at_once"] is None and alone["by_requests_per_day"] == []
    assert sheetgen.recommend(**usual, users=501)["all_at_once"] is None


def test_a_context_that_nobody_states_is_prompt_and_answer() -> None:
    """So memory is charged for 513 tokens of an embedding of 512, not for the default context."""
    asked: Options = {"model": "qwen3-embedding-8b", "requests_per_second": 50, "as_of": "2026-11-20"}
    lengths: Options = {"input_tokens": 512, "output_tokens": 1}
    alone = sheetgen.recommend(**asked, **lengths, instances="aws/p5.4xlarge")
    stated = sheetgen.recommend(**asked, **lengths, instances="aws/p5.4xlarge", context=513)
    wide = sheetgen.recommend(**asked, **lengths, instances="aws/p5.4xlarge", context=4096)
    assert alone == stated and alone["context_tokens"] == 513
    assert alone["sequences_per_replica"] > 4 * wide["sequences_per_replica"]

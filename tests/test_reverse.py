"""The reverse question (what a budget, or machines of one's own, serve) agrees with the question asked forward."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
from click.testing import CliRunner
from option_values import Options

import sheetgen
from sheetgen.answer.reverse import machines_of, network_gbps, with_machines, within_budget
from sheetgen.answer.solve import tables
from sheetgen.api import question_of, recommended
from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.errors import ScenarioError
from sheetgen.sizing import rates
from sheetgen.sizing.rates import z_of

QUESTIONS: list[Options] = [
    {"model": "70b", "context": "16k"}, {"model": "8b", "context": "4k"}, {"model": "405b", "context": "16k"},
    {"model": "deepseek-v3", "context": "16k"}, {"model": "gpt-oss-120b", "context": "32k"},
    {"model": "70b", "context": "128k", "survive": "machine"}, {"model": "70b", "context": "16k", "providers": "aws"},
    {"model": "8b", "context": "16k", "purchase": "spot", "extra_headroom_fraction": 0.2},
]  # fmt: skip
AS_PREDICTED: Options = {"weight_dtype": "published", "confidence": 0.5}


@pytest.mark.some(5)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: " ".join(map(str, q.values())))
@pytest.mark.parametrize("usd", [6_000.0, 50_000.0, 400_000.0])
def test_a_budget_is_the_question_the_other_way_round(question: dict[str, Any], usd: float) -> None:
    """The load that a budget serves costs no more than the budget at the very cheapest; one request more costs more."""
    catalog = Catalog()
    (most,) = within_budget(question_of(question, catalog), usd).in_flight

    def cheapest(n: int) -> float | None:
        choice = recommended({**question, "concurrent_requests": n}, catalog).choices[0]
        return choice.cheapest.usd if choice.cheapest else None

    served = most.served_at_target if most else 0
    if most:
        assert most.monthly_usd is not None and most.monthly_usd <= usd
        held = cheapest(served)
        assert held is not None and held <= usd
    more = cheapest(served + 1)
    assert more is None or more > usd


def test_machines_serve_what_the_same_ones_serve_when_rented() -> None:
    catalog = Catalog()
    (most,) = with_machines(question_of(QUESTIONS[0], catalog), "h100:16", catalog).in_flight
    assert most is not None and most.n_instances == 2 and most.monthly_usd is None
    choice = recommended(
        {**QUESTIONS[0], "instances": "aws/p5.48xlarge", "concurrent_requests": most.served_at_target}, catalog
    ).choices[0]
    assert (choice.n_instances, choice.served_at_target) == (2, most.served_at_target)
    assert most.tpot_seconds == pytest.approx(choice.tpot_seconds) and most.memory_holds == choice.memory_holds
    alone = sheetgen.size(
        **QUESTIONS[0],
        weight_dtype="recommended",
        gpu="h100",
        tensor_parallel_size=most.layout.tensor_parallel_size,
        concurrent_requests=most.served_at_target // most.n_replicas,
    )
    assert most.ttft_seconds == pytest.approx(alone["ttft_seconds"]) and alone["fits"]
    assert most.of_one_more == 3 * most.served_at_target // 2


def test_replicas_span_machines_of_ones_own_by_the_rule_of_recommend() -> None:
    """405B in bf16 fits no eight H100; two such machines hold it over their network, as two that are rented do."""
    catalog, question = Catalog(), {"model": "405b", "context": "16k", **AS_PREDICTED}
    with_more = with_machines(question_of(question, catalog), "h100:16", catalog)
    (most,) = with_more.in_flight
    assert most is not None and (most.pipeline_parallel_size, most.n_replicas, most.n_instances) == (2, 1, 2)
    rented = {**question, "instances": "aws/p5.48xlarge", "concurrent_requests": with_more.served_at_target}
    choice = recommended(rented, catalog).choices[0]
    assert (choice.n_instances, choice.served_at_target) == (2, with_more.served_at_target)
    # A machine less holds none; neither do two without a network, nor any where replicas may not span machines.
    assert not with_machines(question_of(question, catalog), "h100:8", catalog).served_at_target
    assert not with_machines(question_of(question, catalog), "h100:4x4", catalog).served_at_target
    apart = question_of({**question, "span_machines": "never"}, catalog)
    assert not with_machines(apart, "h100:16", catalog).served_at_target
    # Beside eight H200, which hold a replica inside one machine, no replica spans machines.
    beside = with_machines(question_of(question, catalog), "h100:16,h200:8", catalog)
    assert [answer is None for answer in beside.in_flight] == [True, False]


def test_trays_of_ones_own_rack_are_joined_by_nvlink() -> None:
    catalog, question = Catalog(), {"model": "405b", "context": "16k", **AS_PREDICTED}
    with_more = with_machines(question_of(question, catalog), "gb200:4x4", catalog)
    (most,) = with_more.in_flight
    assert most is not None and (most.layout.tensor_parallel_size, most.n_replicas, most.n_instances) == (8, 2, 4)
    assert most.pipeline_parallel_size == 1
    # One tray has no other to be joined with.
    assert not with_machines(question_of(question, catalog), "gb200:1x4", catalog).served_at_target


def test_the_network_of_ones_own_is_that_of_rented_machines_of_as_many_of_that_gpu() -> None:
    catalog = Catalog()
    networks = {
        name: [network_gbps(catalog, catalog.gpu(name), n) for n in (1, 8)] for name in ("h100", "l40s", "a100")
    }
    assert networks == {"h100": [100, 3200], "l40s": [35, 400], "a100": [24, 1600]}


def test_sixteen_gh200_are_as_many_machines() -> None:
    assert [(size, count) for _, size, count in machines_of("gh200:16", Catalog())] == [(1, 16)]


def test_the_most_a_second_is_that_of_the_layout_with_the_most() -> None:
    """8B on eight H100: at once two replicas of four lead, a second four of two; each rate as `recommend` has it."""
    catalog, question = Catalog(), {"model": "8b", "context": "4k"}
    with_more = with_machines(question_of(question, catalog), "h100:8", catalog)
    (most,), (fastest,) = with_more.in_flight, with_more.per_second
    assert most is not None and fastest is not None and most.layout != fastest.layout
    assert most.requests_per_second < 0.95 * fastest.requests_per_second == 0.95 * with_more.requests_per_second
    assert fastest.served_at_target < most.served_at_target == with_more.served_at_target
    rented = {**question, "instances": "aws/p5.48xlarge"}
    held = recommended({**rented, "requests_per_second": 0.999 * with_more.requests_per_second}, catalog).choices[0]
    assert held.cheapest and held.cheapest.n_instances == 1
    more = recommended({**rented, "requests_per_second": 1.001 * with_more.requests_per_second}, catalog).choices[0]
    assert more.cheapest and more.cheapest.n_instances == 2
    (rent,) = within_budget(question_of(rented, catalog), most.monthly_usd or 50_000).per_second
    assert rent is not None and rent.requests_per_second == pytest.approx(fastest.requests_per_second)


def left_of(rate: str, machines: list[tuple[int, dict[str, float]]], lost: list[float], wait_z: float) -> float:
    """The rate that replicas serve after so many of each kind are lost, by hand."""
    total = 0.0
    for (replicas, machine), gone in zip(machines, lost, strict=True):
        places = (replicas - gone) * machine["paced_requests"]
        root = (math.sqrt(wait_z**2 + 4 * places) - wait_z) / 2
        total += places if rate == "at once" else root**2 / machine["full_turn_seconds"]
    return total


@pytest.mark.some(4)
@pytest.mark.parametrize("survive", ["replica", "machine", "zone"])
@pytest.mark.parametrize("have", ["h100:20", "h100:12,h200:8", "h100:8,h100:4x4,h200:16"])
@pytest.mark.parametrize("context", ["16k", "128k"])
def test_of_all_machines_one_loss_is_survived_and_that_the_worst(survive: str, have: str, context: str) -> None:
    """Every layout of every kind with every loss that there can be, one by one."""
    catalog = Catalog()
    question = question_of({"model": "70b", "context": context, "survive": survive}, catalog)
    kept, machines = with_machines(question, have, catalog), machines_of(have, catalog)
    layouts: list[list[tuple[int, int, dict[str, float]]]] = []  # by kind: machines, replicas of one, its figures
    for gpu, size, n in machines:
        name = "h100" if "h100" in gpu.id else "h200"
        alone = _alone(context, f"{name}:{n}x{size}", catalog)
        layouts.append([(n, size // tp, name) for tp, name in alone.items()])
    for rate, best in (("at once", kept.served_at_target), ("a second", kept.requests_per_second)):
        most = 0.0
        for picks in itertools.product(*layouts):
            replicas = [(n * per_pick, name) for n, per_pick, name in picks]
            losses: list[list[float]] = []
            for i, (_, per_pick, _) in enumerate(picks):
                part = 1.0 if survive == "replica" else per_pick
                losses.append([part * (i == k) for k in range(len(picks))])
            if survive == "zone":  # a third of the machines of each kind, rounded up
                losses = [[per_pick * math.ceil(n / 3) for n, per_pick, _ in picks]]
            most = max(most, min(left_of(rate, replicas, lost, _WAIT_Z) for lost in losses))
        assert best == pytest.approx(most, rel=1e-6), rate


_WAIT_Z = z_of(0.05)


def _alone(context: str, have: str, catalog: Catalog) -> dict[int, dict[str, float]]:
    """By TP what a replica serves and how long a request takes on a full one, as `tables` has them."""
    question = question_of({"model": "70b", "context": context, "gpus": have.partition(":")[0]}, catalog)
    solved = tables(question)
    solved.grid.evaluate((rates.full_batch_requests, rates.full_turn_seconds), ("load", "profile"))
    size, gpu = int(have.rpartition("x")[2]), catalog.gpu(have.partition(":")[0])
    solutions: dict[int, dict[str, float]] = {}
    names = ("paced_requests", "full_turn_seconds", "pipeline_stages")
    for i, profile in enumerate(solved.profiles):
        figures = {name: float(solved.sequences[name][0][i]) for name in names}
        is_of_it = question.gpus[profile.gpu].id == gpu.id and profile.layout.n_gpus <= size
        if is_of_it and figures["pipeline_stages"] == 1 and figures["paced_requests"] >= 1:
            solutions[profile.layout.tensor_parallel_size] = figures
    return solutions


def test_a_machine_that_is_lost_takes_no_other_with_it() -> None:
    """By hand: 20 H100 are two machines of eight and one of four, 21 requests on each four: one machine of eight is
    the worst loss, and the rest serve 3 x 21."""
    asked = {"model": "70b", "context": "16k", "have": "h100:20", **AS_PREDICTED}
    answer = sheetgen.recommend(**asked, survive="machine")
    assert answer["served_at_target"] == 63
    assert sum(part["served_at_target"] for part in answer["answers"]) == 63
    assert sheetgen.recommend(**asked)["served_at_target"] == 5 * 21


def test_from_python_as_the_command_says_it() -> None:
    words = ["recommend", "--model", "70b", "--context", "16k", "--json"]
    for flag, value, name in (("--budget-usd", "50k", "budget_usd"), ("--have", "h100:16", "have")):
        record = json.loads(CliRunner().invoke(main, [*words, flag, value]).stdout)
        assert sheetgen.recommend(model="70b", context="16k", **{name: value}) == record
    assert sheetgen.recommend(model="70b", context="16k", budget_usd=50_000)["budget_usd"] == 50_000
    wrong: list[dict[str, Any]] = [
        {"budget_usd": 1, "have": "h100:8"}, {"budget_usd": 1, "users": 3}, {"have": 16}, {"budget_usd": "much"},
        {"budget_usd": 0}, {"budget_usd": True}, {"have": "h100"},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(ScenarioError, match=r"budget_usd|have"):
            sheetgen.recommend(model="70b", context="16k", **options)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("h100:16", [(8, 2)]),
        ("h100:4", [(4, 1)]),
        ("h100:20", [(8, 2), (4, 1)]),
        ("l40s:8x4", [(4, 8)]),
        ("h100:8,l40s:2", [(8, 1), (2, 1)]),
    ],
)
def test_machines_as_they_are_written(text: str, shape: list[tuple[int, int]]) -> None:
    assert [(size, count) for _, size, count in machines_of(text, Catalog())] == shape


@pytest.mark.parametrize("text", ["h100", "h100:", "h100:0", "h100:8x", "h100:-8", "h100:8;l40s:2", "h100:999999x9"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(ScenarioError, match="have is"):
        machines_of(text, Catalog())


def test_the_command() -> None:
    words = ["recommend", "--model", "70b", "--context", "16k"]
    result = CliRunner().invoke(main, [*words, "--budget-usd", "50k"])
    assert result.exit_code == 0 and "$50,000 a month: serves" in result.stdout and "one more at once" in result.stdout
    record = json.loads(CliRunner().invoke(main, [*words, "--have", "h100:16,l40s:8x4", "--json"]).stdout)
    assert record["served_at_target"] == sum(answer["served_at_target"] for answer in record["answers"]) > 0
    wide = [*words, "--have", "l40s:8x4", "--weight-dtype", "published"]
    assert "8 machines of 4x L40S" in CliRunner().invoke(main, wide).stdout
    assert "Gbit/s between them" not in CliRunner().invoke(main, [*words, "--have", "h100:16"]).stdout
    for wrong in (["--budget-usd", "1", "--have", "h100:8"], ["--budget-usd", "1", "--users", "3"]):
        assert CliRunner().invoke(main, [*words, *wrong]).exit_code == 2
    assert CliRunner().invoke(main, [*words, "--budget-usd", "much"]).exit_code == 1

"""The choice's promises for every load, over random loads: what never gets cheaper, what is still served, and which
hardware is never passed over (INTERFACE, the choice)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
from amounts import amount
from option_values import Options

from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question import market
from sheetgen.question.sheet_question import ask
from sheetgen.sizing import parallelism

N_LOADS = amount(400, 2000)
TIE = 1.05
LEAST = 1 - 1e-9  # money is a product of three numbers, each rounded
MODELS = (
    "8b", "70b", "405b", "deepseek-v3", "gpt-oss-120b", "gemma-3-27b", "qwen3.6-27b", "mixtral-8x22b-v0.1",
    "qwen3-235b-a22b", "kimi-k2", "llama-4-scout-17b-16e", "phi-4", "deepseek-v2-lite", "minimax-text-01",
)  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def _question(chance: random.Random) -> dict[str, Any]:
    chat, rag = chance.randint(1500, 8000), chance.randint(8001, 32_000)
    options: Options = {
        "models": ",".join(chance.sample(MODELS, 3)),
        "workloads": "chat,rag",
        "contexts": f"chat={chat},rag={rag}",
        "tiers": ",".join(map(str, sorted([*chance.sample(range(1, 400), 3), chance.randint(400, 3000)]))),
        "as_of": "2026-11-24",
    }
    if chance.random() < 0.3:
        options["providers"] = chance.choice(("aws", "gcp", "azure", "aws,gcp"))
    if chance.random() < 0.3:
        options["tpot_ms"] = str(chance.choice((20, 30, 80, 150, "off")))
    if chance.random() < 0.3:
        options["ttft_ms"] = str(chance.choice((1000, 10_000, "off")))
    if chance.random() < 0.2:
        options["weight_dtype"] = "fp8"
    return options


@pytest.fixture(scope="module")
def sheets(catalog: Catalog) -> list[tuple[dict[str, Any], Solution]]:
    chance, problems, n = random.Random(15), [], 0
    while n < N_LOADS:
        options = _question(chance)
        problems.append((options, solve(ask(catalog, options))))
        n += len(problems[-1][1].choices)
    return problems


def _lowest(solved: Solution) -> numpy.ndarray:
    """By load the lowest price; infinite where nothing serves it."""
    return numpy.array([c.cheapest.usd if c.cheapest else numpy.inf for c in solved.choices])


def _kept(sheets: list[tuple[dict[str, Any], Solution]]) -> Iterator[tuple[Solution, int]]:
    for _, solved in sheets:
        for row, choice in enumerate(solved.choices):
            if choice.offer is not None:
                yield solved, row


def test_there_is_something_to_promise(sheets: list[Any]) -> None:
    offers = [(s.layout(s.choices[r].offer or 0), s.choices[r]) for s, r in _kept(sheets)]
    assert len(offers) > N_LOADS / 2
    assert {layout.data_parallel_size > 1 for layout, _ in offers} == {True, False}
    assert {c.sized_by for _, c in offers} == {"memory", "tpot", "ttft"}
    assert any(c.cheapest and c.cheapest.usd < c.monthly_usd * LEAST for _, c in offers), "no near tie was decided"


def test_more_requests_never_lower_the_lowest_price(sheets: list[Any]) -> None:
    for options, solved in sheets:
        by_tier = _lowest(solved).reshape(-1, len(solved.question.tiers))  # the tiers are sorted
        assert (by_tier[:, 1:] >= by_tier[:, :-1] * LEAST).all(), options


@pytest.mark.some(2)
@pytest.mark.parametrize("harder", ["context", "tpot_ms", "ttft_ms"])
def test_a_harder_load_never_lowers_the_lowest_price(sheets: list[Any], catalog: Catalog, harder: str) -> None:
    for options, solved in sheets[:: amount(3, 1)]:
        asked = dict(options)
        if harder == "context":
            chat, rag = (w.context_tokens for w in solved.question.workloads)
            asked["contexts"] = f"chat={chat + 777},rag={rag + 5000}"
            asked.setdefault("ttft_ms", "chat=2000,rag=5000")
        else:
            ms = [getattr(w, harder.replace("_ms", "_target_ms")) for w in solved.question.workloads]
            asked[harder] = ",".join(f"{w}={x * 0.7 if x else 500}" for w, x in zip(("chat", "rag"), ms, strict=True))
        before, after = _lowest(solved), _lowest(solve(ask(catalog, asked)))
        assert (after >= before * LEAST).all(), (options, asked)


def test_what_is_served_is_served(sheets: list[Any], catalog: Catalog) -> None:
    """Asked for `served_at_target`, the hardware and count still hold it at the price, and the answer costs at most the
    tie more; for one request more the very cheapest is never cheaper."""
    n = 0
    for options, solved in sheets[:: amount(2, 1)]:
        rows = [r for r, c in enumerate(solved.choices) if c.offer is not None][:: amount(5, 1)]
        for row in rows:
            choice, load = solved.choices[row], solved.question.loads[row]
            assert choice.served_at_target >= load.concurrent_requests
            asked = {**options, "models": solved.question.models[load.model].model.id, "tiers": choice.served_at_target}
            tiers = (choice.served_at_target, choice.served_at_target + 1)
            again = solve(ask(catalog, {**asked, "tiers": ",".join(map(str, tiers))}))
            same, more = (load.workload * 2 + k for k in (0, 1))
            chosen = solved.candidate(choice.offer), solved.layout(choice.offer)
            places = range(len(again.offers))
            own = next(i for i in places if (again.candidate(i), again.layout(i)) == chosen)
            assert again.costs["n_instances"][same, own] == choice.n_instances, (options, row)
            assert again.choices[same].monthly_usd <= choice.monthly_usd * TIE / LEAST, (options, row)
            assert _lowest(again)[more] >= _lowest(solved)[row] * LEAST, (options, row)
            n += 1
    assert n > 30


@pytest.mark.parametrize("spare", [0, 0.01, 0.07, 0.1, 0.25, 1 / 3, 0.35, 1])
def test_served_at_target_is_the_most_whose_load_has_places(spare: float) -> None:
    """By the load itself, for every number of places: 33 hold the load of 30 and a tenth."""
    places = numpy.arange(1.0, 20_001)
    ones_per_place = numpy.ones_like(places)
    served = parallelism.served_at_target.of(
        {
            "n_instances": places,
            "replicas_per_instance": ones_per_place,
            "paced_requests": ones_per_place,
            "survive": 0 * ones_per_place,
            "zones": 3 * ones_per_place,
            "extra_headroom_fraction": spare * ones_per_place,
        }
    )
    assert (parallelism.load_requests(served, spare) <= places).all()
    assert (parallelism.load_requests(served + 1, spare) > places).all()


def test_no_answer_spans_machines_while_one_holds_it(sheets: list[Any]) -> None:
    for solved, row in _kept(sheets):
        stages = solved.costs["pipeline_stages"][row]
        if (stages == 1).any():
            assert solved.choices[row].pipeline_parallel_size == 1


def test_no_more_machines_than_another_as_cheap(sheets: list[Any]) -> None:
    """Within the tie of the very cheapest and with no more GPUs nobody has fewer machines; and nothing that is not."""
    for solved, row in _kept(sheets):
        choice, costs = solved.choices[row], solved.costs
        assert choice.cheapest is not None
        monthly, count = costs["monthly_usd"][row], costs["n_instances"][row]
        gpus = count * costs["gpu_count"][row]
        most = choice.cheapest.n_instances * solved.candidate(choice.cheapest.offer).gpu_count
        assert choice.cheapest.usd == pytest.approx(numpy.nanmin(numpy.where(monthly > 0, monthly, numpy.nan)))
        near = (monthly > 0) & (monthly <= choice.cheapest.usd * TIE) & (gpus <= most)
        assert near[choice.offer] and choice.n_instances == count[near].min()
        alike = near & (count == choice.n_instances)
        assert costs["suitability"][row, choice.offer] == costs["suitability"][row][alike].max()


@pytest.mark.usefixtures("nothing_is_kept")
@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b", "deepseek-r1"])
def test_as_many_as_a_workbook_carries_hold_the_choice_of_all(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """Of more instances than a workbook carries those are left out that cost more than others with the same GPUs:
    DeepSeek-R1 once fitted on nothing, as the dearest GPUs were left out."""
    load = {"models": model, "providers": "all", "users": 2000, "context_tokens": 8192, "as_of": "2026-11-20"}
    carried, answers = ask(catalog, load), []
    monkeypatch.setattr(market, "MAX_CANDIDATES", 1000)
    every = ask(catalog, load | {"title": "All of them"})  # a question that the process has not kept
    assert len(carried.candidates) == 120 < len(every.candidates)
    for question in (carried, every):
        solved = solve(question)
        choice = solved.choices[0]
        assert choice.offer is not None
        answers.append((solved.candidate(choice.offer).instance, choice.n_instances, choice.monthly_usd))
    assert answers[0] == answers[1]

"""Every choice equals a brute force over all instances, TPs, DPs and PPs (tests/brute_force.py)."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import brute_force
import pytest
from amounts import IN_LONG, amount
from answers import document
from brute_force import (
    CLASSES,
    EVEN,
    Answer,
    Load,
    Offer,
    OwnRow,
    Plan,
    Replica,
    Start,
    answer,
    answer_in_class,
    batch_limits,
    candidates,
    cheapest_at,
    choose,
    layouts,
    owning_pays_off,
    plans,
    predicted_pool,
    rate_in_words,
    rate_of_people,
    read,
    replica,
    runs,
    serves,
    weights_in_use,
)
from option_values import Options, OptionValue

import sheetgen
from sheetgen.answer.solve import solve
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask

THREE = "8b,70b,405b"
FIVE = "8b,70b,405b,qwen3.6-27b,gpt-oss-120b"
WITH_MLA = "8b,70b,405b,deepseek-v3,gemma-3-27b"
SURE = 0.9
N_ASKED, N_SHEETS = amount(48, 400), amount(1, 12)  # loads of one's own; sheets of 24 loads
MODELS = (
    "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-2-7b", "llama-2-13b", "falcon-7b", "falcon-40b",
    "qwen2.5-7b", "qwen3-0.6b", "qwen3-235b-a22b", "mixtral-8x22b-v0.1", "phi-4", "c4ai-command-r-plus",
    "gemma-2-27b", "gemma-3-27b", "gemma-3-1b", "gpt-oss-120b", "gpt-oss-20b", "mistral-7b-v0.1",
    "llama-4-scout-17b-16e", "llama-4-maverick-17b-128e", "deepseek-v2-lite", "deepseek-v3", "deepseek-v3.2",
    "kimi-k2", "deepseek-v4-pro", "qwen3.6-27b", "qwen3-next-80b-a3b", "falcon-h1-0.5b",
    "nvidia-nemotron-3-nano-30b-a3b-bf16", "ai21-jamba-1.5-mini", "granite-4.0-h-small", "minimax-text-01",
    "llama-3_3-nemotron-super-49b-v1", "reference-100b", "kimi-k3", "gemma-3n-e4b",
)  # fmt: skip

# Often with data-parallel ranks, or over machines.
LARGE = (
    "deepseek-v3", "kimi-k2", "qwen3-235b-a22b", "deepseek-v3.2", "deepseek-v2-lite", "qwen3.8-2.4t-a95b", "kimi-k3",
    "deepseek-v4-pro", "llama-3.1-405b",
)  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


class Kinds(Counter[str]):
    """How many answers of each kind there were."""

    def __str__(self) -> str:
        return ", ".join(f"{n} {kind}" for kind, n in sorted(self.items()))


def rented(rental: Plan | None) -> tuple[str, int, Any] | None:
    if rental is None:
        return None
    return rental.offer.instance, rental.instances, pytest.approx(float(rental.monthly), rel=1e-12)


def told(record: dict[str, Any] | None) -> tuple[str, int, float] | None:
    return None if record is None else (record["instance"], record["n_instances"], record["monthly_usd"])


def check(
    cell: dict[str, Any],
    kinds: Kinds | None = None,
    discount: str = "0",
    over: bool = False,
    limits: Mapping[str, OptionValue] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> None:
    """Compare one record of the JSON with the brute force, and count what kinds of answer it was. limits: what was
    asked beside the load. dtypes: the precisions that were."""
    kinds, dtypes = Kinds() if kinds is None else kinds, dtypes or {}
    kv_dtype = dtypes.get("kv_cache_dtype", "auto")
    load = Load(
        cell["model"],
        cell["context_tokens"],
        cell["concurrent_requests"],
        weights_in_use(cell["model"], dtypes.get("weight_dtype", "recommended")),
        read(f"models/{cell['model']}.yaml")["kv_cache_dtype"] if kv_dtype == "auto" else kv_dtype,
        cell["workload"] == "asked",
        **(limits or {}),
        rate=0 if cell["tier"] else cell["requests_per_second"],
    )
    assert (cell["weight_dtype"], cell["kv_cache_dtype"]) == (load.weight_dtype, load.kv_dtype), load
    rental = "over the model's" if over else answer(load, discount)
    if not load.rate:
        check_people(load, cell)
    if isinstance(rental, str):
        assert cell["instance"] is None and cell["monthly_usd"] is None, load
        assert cell["verdict"].startswith(rental), load
        kinds["over" if over else "too slow" if rental.startswith("no count") else "nothing fits"] += 1
        return
    best, in_force = rental.best, rental.load
    got = {k: cell[k] for k in EXPECTED}
    assert got == {k: read(best) for k, read in EXPECTED.items()}, load
    assert cell["purchase"] == in_force.purchase, load
    assert (cell["declined"] is not None) is (in_force.purchase != load.purchase), load
    assert ("impossible" in cell["measure_first"]) is (in_force.confidence != load.confidence), load
    assert cell["served_at_target"] == pytest.approx(best.served, rel=1e-9), load
    assert told(cell) == rented(best), load
    assert told(cell["cheapest"]) == rented(rental.cheapest), load
    assert {k: told(rental) for k, rental in cell["by_purchase"].items()} == {
        k: rented(rental) for k, rental in rental.by_purchase.items()
    }, load
    check_chance(in_force, best, cell["chance"])
    check_survivor(in_force, cell, discount)
    check_other_answers(replace(load, purchase=in_force.purchase), cell, discount)
    assert cell["sized_by"] == rental.sized_by, load
    assert cell["headroom_fraction"] == pytest.approx(
        1 - best.places / (best.replicas * best.replica.dp * best.replica.sequences), abs=1e-12
    ), load
    second, runner_up = rental.runner_up, cell["runner_up"]
    assert told(runner_up) == rented(second), load
    if second is not None:
        assert runner_up["tensor_parallel_size"] == second.replica.tp, load
    kinds.update(kinds_of(load, rental))


def check_survivor(load: Load, cell: dict[str, Any], discount: str) -> None:
    """The rental so that a machine may fail, if no loss is survived yet."""
    survivor = cell["survives_machine"]
    if load.survive != "none":
        assert survivor is None, load
        return
    after = replace(load, survive="machine")
    best, _ = choose(plans(after, brute_force.candidates(discount, after.purchase), *after.targets)[0])
    assert told(survivor) == rented(best), load
    check_chance(after, best, survivor["chance"])
    check_chance(load, replace(best, load=load), survivor["chance_before"])  # while all of its machines run


def check_people(load: Load, cell: dict[str, Any]) -> None:
    """Requests at once in people and as a rate."""
    words = rate_in_words(load)
    load_ = cell["requests_per_second"], cell["users"]
    assert load_ == ((None, None) if words is None else (pytest.approx(words[0], rel=1e-9), words[1])), load


def check_other_answers(load: Load, cell: dict[str, Any], discount: str) -> None:
    """The cheapest at an even chance, at the confidence asked for and at 0.9; and what is rented as published."""
    levels = sorted({EVEN, load.confidence, SURE})
    assert [told(rental) for rental in cell["by_confidence"]] == [
        rented(cheapest_at(load, level, discount)) for level in levels
    ], load
    assert [level["confidence"] for level in cell["by_confidence"] if level] == [
        level for level, rental in zip(levels, cell["by_confidence"], strict=True) if rental
    ], load
    check_people_otherwise(load, cell, discount)
    published = weights_in_use(load.model, "published")
    if cell["weight_dtype"] == published:
        assert cell["as_published"] is None, load
        return
    other = answer_in_class(replace(load, weight_dtype=published), discount)
    assert cell["as_published"]["weight_dtype"] == published, load
    if isinstance(other, str):
        assert cell["as_published"]["instance"] is None, load
    else:
        assert told(cell["as_published"]) == rented(other.best), load


def check_people_otherwise(load: Load, cell: dict[str, Any], discount: str) -> None:
    """The hardware for people who ask half and twice as often, for one more than the machines serve, and, up to 500,
    all at the same moment."""
    if not (load.rate and load.people):
        assert not cell["by_requests_per_day"] and cell["all_at_once"] is cell["more_people"] is None, load
        return
    most = cell["more_people"]["most_users"]
    of_one = load.rate / load.people  # requests a second
    assert most * of_one <= cell["served_at_target"] * (1 + 1e-12) < (most + 1) * of_one * (1 + 2e-12), load
    beyond = answer_in_class(replace(load, rate=of_one * (most + 1)), discount)
    rented_beyond = None if cell["more_people"]["instance"] is None else cell["more_people"]
    assert told(rented_beyond) == (None if isinstance(beyond, str) else rented(beyond.best)), load
    often = [answer_in_class(replace(load, rate=load.rate * times), discount) for times in (0.5, 2)]
    assert [told(rental) for rental in cell["by_requests_per_day"]] == [
        rented(answer.best) for answer in often if isinstance(answer, Answer)
    ], load
    at_once = answer_in_class(replace(load, rate=0, requests=load.people), discount) if load.people <= 500 else ""
    assert told(cell["all_at_once"]) == (None if isinstance(at_once, str) else rented(at_once.best)), load


def check_chance(load: Load, best: Plan, chance: float) -> None:
    """At levels a little below the chance what is rented still serves the load, a little above it does not. Of a rate
    the level is searched, to 0.01 standard deviations, and up to 99 %."""
    around = 0.005 if load.rate else 1e-5
    assert chance >= load.confidence - 1e-12, load
    if chance - around > 0.01:
        assert serves(load, best, min(chance - around, 0.99)), (load, chance)
    if chance + around < 0.99:
        assert not serves(load, best, chance + around), (load, chance)


def kinds_of(load: Load, answer: Answer) -> Iterator[str]:
    best = answer.best
    if answer.load.confidence != load.confidence:
        yield "at an even chance"
    if answer.load.purchase != load.purchase:
        yield "on demand for a commitment"
    elif load.purchase != "on-demand":
        yield "for a term"
    if load.weight_dtype != weights_in_use(load.model, "published"):
        yield "in other weights"
    yield f"at {load.confidence}"
    yield "data-parallel" if best.replica.dp > 1 else "stages" if best.replica.pp > 1 else "one rank"
    yield "several replicas" if best.replicas > 1 else "one replica"
    yield f"by {answer.sized_by}"
    if rented(best) != rented(answer.cheapest):
        yield "not the very cheapest"
    yield from (f"in {purchase}" for purchase, rental in answer.by_purchase.items() if rental)


EXPECTED: dict[str, Callable[[Plan], Any]] = {
    "verdict": lambda plan: "fits",
    "instance": lambda plan: plan.offer.instance,
    "gpu": lambda plan: plan.offer.gpu,
    "tensor_parallel_size": lambda plan: plan.replica.tp,
    "pipeline_parallel_size": lambda plan: plan.replica.pp,
    "data_parallel_size": lambda plan: plan.replica.dp,
    "spans_machines": lambda plan: plan.offer.machines(plan.replica) > 1,
    "sequences_per_replica": lambda plan: plan.replica.dp * plan.replica.sequences,
    "n_replicas": lambda plan: plan.replicas,
    "n_gpus": lambda plan: plan.replicas * plan.replica.tp * plan.replica.pp * plan.replica.dp,
    "n_instances": lambda plan: plan.instances,
    "memory_holds": lambda plan: plan.memory_holds,
}


def test_the_candidates_are_those_of_the_rules(catalog: Catalog) -> None:
    chosen = ask(catalog, {"models": "8b"}).candidates
    assert [(c.instance, c.provider, c.gpu.id, c.gpu_count) for c in chosen] == [
        (c.instance, c.provider, c.gpu, c.count) for c in candidates()
    ]
    assert [c.usd_per_hour for c in chosen] == [float(c.price) for c in candidates()]
    assert len(chosen) > 40


@pytest.mark.some(1)
@pytest.mark.parametrize("models", [THREE, FIVE, WITH_MLA])
def test_every_cell_of_a_build(catalog: Catalog, models: str) -> None:
    cells = document(solve(ask(catalog, {"models": models})))["cells"]
    assert len(cells) == 12 * len(models.split(","))
    kinds = Kinds()
    for cell in cells:
        check(cell, kinds)
    print(f"{len(cells)} cells of {models}: {kinds}")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("models", "draft"),
    [
        pytest.param("8b,70b,405b", "llama-3.2-1b", marks=pytest.mark.long),
        ("gpt-oss-120b", "eagle3-gpt-oss-120b"),  # windows
        ("deepseek-v3", "eagle3-deepseek-v3"),  # a latent, data-parallel ranks
    ],
)
def test_every_cell_of_a_build_with_a_draft(catalog: Catalog, models: str, draft: str) -> None:
    for more in ({}, {"tpot_ms": math.inf, "ttft_ms": math.inf}):
        asked = {"models": models, "draft_model": draft, "tiers": "1,64,1024", **_options(more)}
        kinds = Kinds()
        for cell in document(solve(ask(catalog, asked)))["cells"]:
            check(cell, kinds, limits={**more, "draft": draft})
        print(f"{models} with {draft}: {kinds}")


@pytest.mark.some(1)
@pytest.mark.parametrize("discount", ["0.2", "0.35", "0.99"])
def test_every_cell_under_a_contract_with_a_discount(catalog: Catalog, discount: str) -> None:
    """The same hardware as at list prices, for less; prices, of runner-ups too, times (1 - discount)."""
    listed = document(solve(ask(catalog, {"models": THREE, "support_fraction": "0.05"})))["cells"]
    cells = document(solve(ask(catalog, {"models": THREE, "discount_fraction": discount, "support_fraction": "0.05"})))[
        "cells"
    ]
    n_paid_off = 0
    for before, cell in zip(listed, cells, strict=True):
        check(cell, discount=discount)
        assert {k: before[k] for k in EXPECTED} == {k: cell[k] for k in EXPECTED}
        owned = cell["owned"]["base"]
        beside_rent = ("break_even_utilization", "owning_pays_off_month")
        assert {k: v for k, v in owned.items() if k not in beside_rent} == {
            k: v for k, v in before["owned"]["base"].items() if k not in beside_rent
        }
        parts = [owned[f"owned_{part}_usd"] for part in ("support", "energy", "site")]
        running = None if None in parts else sum(parts)
        assert running is owned["owned_running_usd"] or owned["owned_running_usd"] == pytest.approx(running, rel=1e-12)
        month = owning_pays_off(owned["owned_capex_usd"], running or 0, cell["monthly_usd"])
        assert owned["owning_pays_off_month"] == month
        n_paid_off += month is not None
        broken_even = before["owned"]["base"]["break_even_utilization"]
        if broken_even is not None:
            assert owned["break_even_utilization"] * (1 - float(discount)) == pytest.approx(broken_even, rel=1e-12)
    assert (n_paid_off > 0) is (
        discount != "0.99"
    )  # at a hundredth of the rent, support, power and site alone cost more


def _limits(draw: random.Random) -> dict[str, Any]:
    """Now and then targets other than the workload's, and that a replica may not span machines."""
    tpot_ms = draw.choice((4, 8, 15, 25, 40, 80, 200, math.inf))
    ttft_ms = draw.choice((50, 200, 1000, 10_000, math.inf))
    loss, zones = draw.choice(("replica", "machine", "zone")), draw.choice((2, 3, 4))
    every = {"tpot_ms": tpot_ms, "ttft_ms": ttft_ms, "may_span": False, "survive": loss, "zones": zones}
    drawn = {name: limit for name, limit in every.items() if draw.random() < 0.3}
    if draw.random() < 0.6:
        drawn["confidence"] = draw.choice((0.3, 0.5, 0.9))
    if draw.random() < 0.25:
        drawn["purchase"] = draw.choice(("reserved-1yr", "reserved-3yr"))
    if drawn.get("survive") != "zone":  # zones alone are refused
        drawn.pop("zones", None)
    return drawn


def _options(limits: Mapping[str, OptionValue]) -> dict[str, str]:
    options = {name: "off" if ms == math.inf else str(ms) for name, ms in limits.items() if name != "may_span"}
    return options if limits.get("may_span", True) else {**options, "span_machines": "never"}


def _dtypes(draw: random.Random, *models: str) -> dict[str, str]:
    own = {read(f"models/{model}.yaml")["weight_dtype"] for model in models}
    narrow = "int4" if own == {"bf16"} else "auto"
    weight_dtype = draw.choice(("recommended", "recommended", "published", "bf16", "fp8", narrow))
    return {"weight_dtype": weight_dtype, "kv_cache_dtype": draw.choice(("auto", "auto", "fp8"))}


def random_loads(seed: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Loads of any model, context, users, precisions and limits, up to the model's longest context."""
    draw = random.Random(seed)
    for i in range(N_ASKED):
        model = LARGE[i // 4 % len(LARGE)] if i % 4 == 0 else MODELS[i % len(MODELS)]
        longest = int(read(f"models/{model}.yaml")["max_context_tokens"])
        context, users = min(longest, round(2 ** draw.uniform(6, 17.5))), round(2 ** draw.uniform(0, 12))
        yield {"model": model, "context": context, "concurrent_requests": users, **_dtypes(draw, model)}, _limits(draw)


def random_sheets(seed: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Sheets of three models, two workloads and four tiers."""
    draw = random.Random(seed)
    long = [name for name in MODELS if int(read(f"models/{name}.yaml")["max_context_tokens"]) >= 131072]
    for _ in range(N_SHEETS):
        models, workloads = draw.sample(long, 3), draw.sample(("chat", "rag", "long-doc"), 2)
        tiers = sorted([1, *draw.sample(range(2, 3000), 2), draw.randint(3000, 5000)])
        options = {"models": ",".join(models), "workloads": ",".join(workloads), "tiers": ",".join(map(str, tiers))}
        limits = {name: limit for name, limit in _limits(draw).items() if name != "purchase"}  # that recommend declines
        yield {**options, **_dtypes(draw, *models)}, limits


def test_random_loads(catalog: Catalog) -> None:
    kinds, n = Kinds(), 0
    for sheet, limits in random_sheets(20261124):
        for cell in document(solve(ask(catalog, {**sheet, **_options(limits)})))["cells"]:
            check(cell, kinds, limits=limits, dtypes=sheet)
            n += 1
    for load, limits in random_loads(20261120):
        if n >= amount(50, 1000) and has_every(kinds):  # in the gate no more than it takes to see all kinds
            break
        (cell,) = document(recommended({**load, **_options(limits)}, catalog))["cells"]
        check(cell, kinds, limits=limits, dtypes=load)
        n += 1
    print(f"{n} random loads of {len(MODELS)} models: {kinds}")
    assert n >= amount(50, 400)
    assert has_every(kinds), kinds


@pytest.mark.some(2)
@pytest.mark.parametrize("area", brute_force.AREAS)
def test_random_loads_in_other_regions(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, area: str) -> None:
    """In each purchase class every type at its cheapest price of the area, and no type that the area lacks."""
    monkeypatch.setattr(brute_force, "candidates", functools.partial(brute_force.candidates, area=area))
    kinds, n = Kinds(), amount(6, 120)
    for i, (load, limits) in enumerate(itertools.islice(random_loads(20261129 + len(area)), n)):
        if i % 3 == 0:
            limits["purchase"] = ("capacity-block", "spot")[i // 3 % 2]
        (cell,) = document(recommended({**load, **_options(limits), "region": area}, catalog))["cells"]
        check(cell, kinds, limits=limits, dtypes=load)
        assert cell["region"] is None or cell["region"] in brute_force.AREAS[area]
    sheet = {"models": THREE, "workloads": "rag", "tiers": "1,32,400", "region": area}
    for cell in document(solve(ask(catalog, sheet)))["cells"]:
        check(cell, kinds)
    print(f"{area}: {kinds}")
    assert kinds["in on-demand"] and ((kinds["in spot"] and kinds["in capacity-block"]) or area == "eu-central-1"), (
        kinds
    )


@pytest.mark.parametrize(
    ("load", "limits", "area"),
    [
        # 208 of gemma-3-1b on an L4 take 49.9992 ms a token at 0.9, and 50.0004 at the end of the band, 0.900009.
        ({"model": "gemma-3-1b", "context": 593, "concurrent_requests": 1864, "weight_dtype": "int4"}, {}, ""),
        # A Capacity Block that is 3 % dearer than on demand, and surer than the even chance that was asked for.
        (
            {"model": "mistral-7b-v0.1", "context": 455, "concurrent_requests": 2, "weight_dtype": "published"},
            {"tpot_ms": 15, "confidence": 0.5, "purchase": "capacity-block"},
            "uk",
        ),
    ],
    ids=("a batch at the limit at 0.9", "a dearer class"),
)
def test_loads_that_once_differed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, load: Options, limits: Options, area: str
) -> None:
    monkeypatch.setattr(brute_force, "candidates", functools.partial(brute_force.candidates, area=area))
    asked = {**load, **_options(limits), **({"region": area} if area else {})}
    (cell,) = document(recommended(asked, catalog))["cells"]
    check(cell, limits=limits, dtypes=load)


ERRORS = {"0.33.0": 0.1 * 2**30, "0.34.0": 0.2 * 2**30}  # by the release of a log: the default, one with the same rules


def random_starts(draw: random.Random, model: str, weight_dtype: str) -> Iterator[tuple[str, Start]]:
    """Start-up logs of a model, as an option says them: pools from 3 GiB smaller than predicted to half a GiB larger,
    which the memory holds."""
    gpus = sorted({candidate.gpu for candidate in candidates()})
    sizes = [tp for tp, dp in layouts(model) if dp == 1]
    for gpu, tp in itertools.product(gpus, sizes):
        pool = predicted_pool(model, weight_dtype, gpu, tp) if runs(gpu, weight_dtype, "bf16") else 0
        quarters = round(4 * (pool / 2**30 + draw.uniform(-3, 0.5)))  # of a GiB, which an option says exactly
        if pool > 2**30 and quarters > 0 and draw.random() < 0.7:
            version, error = draw.choice(list(ERRORS.items()))
            named = f"model={model},weight_dtype={weight_dtype},gpu={gpu},tp={tp},engine=vllm"
            start = f"{named},engine_version={version},gpu_memory_utilization=0.92,kv_pool_gib={quarters / 4}"
            yield start, Start(model, weight_dtype, gpu, tp, quarters * 2**28, error)


def test_random_loads_with_start_up_logs(catalog: Catalog) -> None:
    """Memory as the logs have it, on their deployments alone, in answers at every confidence and their chances."""
    kinds, draw, n_used, n_otherwise = Kinds(), random.Random(20261201), 0, 0
    for load, limits in itertools.islice(random_loads(20261130), amount(10, 200)):
        model = load["model"]
        dtypes = {weights_in_use(model, load["weight_dtype"]), weights_in_use(model, "published")}
        logs = [log for dtype in sorted(dtypes) for log in random_starts(draw, model, dtype)]
        if not logs:
            continue
        printed, starts = zip(*logs, strict=True)
        plain, cell = (
            document(recommended({**load, **_options(limits), **more}, catalog))["cells"][0]
            for more in ({}, {"measured": list(printed)})
        )
        check(cell, kinds, limits={**limits, "starts": starts}, dtypes=load)
        where = (model, cell["weight_dtype"], cell["gpu"], cell["tensor_parallel_size"])
        n_used += any(start[:4] == where for start in starts)
        n_otherwise += cell["sequences_per_replica"] != plain["sequences_per_replica"]
    print(f"start-up logs: {kinds}; {n_used} answers on a measured deployment, {n_otherwise} other ones")
    assert n_used > 3 and n_otherwise >= 1


@pytest.mark.parametrize("confidence", [pytest.param(0.7, marks=pytest.mark.long), 0.9])
def test_what_nothing_serves_at_the_confidence_is_answered_at_an_even_chance(
    catalog: Catalog, confidence: float
) -> None:
    """Targets from those that only nothing meets to those that all meet: some are met at an even chance alone, on which
    nobody binds money."""
    kinds, draw = Kinds(), random.Random(20261129)
    for model, tpot_ms in itertools.product(("llama-3.1-70b", "deepseek-v3"), (4, 6, 8, 10, 13, 17)):
        limits = {"tpot_ms": tpot_ms, "confidence": confidence, "purchase": draw.choice(CLASSES)}
        load = {"model": model, "context": 16384, "concurrent_requests": 8, **_options(limits)}
        (cell,) = document(recommended(load, catalog))["cells"]
        check(cell, kinds, limits=limits)
    print(f"{confidence}: {kinds}")
    assert all(kinds[kind] > 0 for kind in ("at an even chance", "too slow", f"at {confidence}")), kinds


NEAR = {"model": "qwen3-30b-a3b", "context": 4096, "tokens_per_day": 3e8}
FOUR_BITS = {"model": "llama-3.1-405b", "context": 65536, "requests_per_second": 0.5, "weight_dtype": "int4"}
SPARE = {"model": "gemma-3-12b", "context": 16384, "users": 20, "survive": "replica"}


@pytest.mark.parametrize(
    ("load", "confidence", "purchase", "reason", "instance"),
    [
        (NEAR, 0.5, "capacity-block", "no_saving", "aws/g7e.2xlarge"),  # surer, and 3 % dearer than on demand
        (NEAR, 0.5, "on-demand", None, "aws/g7e.2xlarge"),
        (NEAR, 0.9, "capacity-block", "no_saving", "azure/Standard_NC80adis_H100_v5"),
        (SPARE, 0.9, "capacity-block", "no_saving", "aws/g6e.xlarge"),
        (FOUR_BITS, 0.9, "reserved-1yr", "even_chance", "aws/p5.48xlarge"),
        (FOUR_BITS, 0.5, "reserved-1yr", None, "azure/Standard_ND96isr_H200_v5"),  # which was asked for
        ({**NEAR, "providers": "lambda,nebius"}, 0.7, "reserved-1yr", "unsold", "nebius/HGX H200 x1"),
    ],
)
def test_a_class_that_is_no_answer_says_why(
    catalog: Catalog, load: Options, confidence: float, purchase: str, reason: str | None, instance: str
) -> None:
    """Money is bound at the confidence asked for or not at all, and never for more than on demand costs at it."""
    (cell,) = document(recommended({**load, "confidence": confidence, "purchase": purchase}, catalog))["cells"]
    declined = cell["declined"] or {"reason": None}
    assert (declined["reason"], cell["instance"]) == (reason, instance)
    assert cell["purchase"] == ("on-demand" if reason else purchase)
    if reason == "unsold":
        assert declined["unpriced"] == declined["instances"] > 10
    if reason == "even_chance":
        assert "impossible" in cell["measure_first"] and cell["by_purchase"]["reserved-1yr"] is None
        assert "term" not in [way["kind"] for way in cell["pay_less"]]


def test_weights_that_were_named_name_the_recommended_ones_where_these_are_surer(catalog: Catalog) -> None:
    """405B in 4 bits has no answer at 0.9, and in FP8 one; at 0.5 FP8 is cheaper, as its arithmetic is faster. Of one
    request at a time 4 bits are."""
    for confidence in (0.9, 0.5):
        cell = sheetgen.recommend(**FOUR_BITS, confidence=confidence, catalogs=catalog)["cells"][0]
        load = Load("llama-3.1-405b", 65536, 0, "fp8", "bf16", True, rate=0.5, confidence=confidence)
        best, other = answer_in_class(load, "0"), cell["as_recommended"]
        assert isinstance(best, Answer) and told(other) == rented(best.best)
        assert (other["weight_dtype"], best.load.confidence) == ("fp8", confidence) and other["chance"] >= confidence
        assert ("impossible" in cell["measure_first"]) is (confidence == 0.9)
        assert confidence == 0.9 or other["monthly_usd"] < cell["monthly_usd"]
    lone = {"model": "llama-3.1-70b", "context": 4096, "concurrent_requests": 1, "weight_dtype": "int4"}
    assert sheetgen.recommend(**lone, catalogs=catalog)["cells"][0]["as_recommended"] is None


def test_very_many_machines_name_the_cheapest_on_a_quarter_of_them(catalog: Catalog) -> None:
    load = {"model": "qwen3-embedding-8b", "context": 4096, "output_tokens": 1, "providers": "gcp"}
    few, many = (
        sheetgen.recommend(**load, requests_per_second=rate, catalogs=catalog)["cells"][0] for rate in (40, 400)
    )
    assert few["n_instances"] <= 64 and few["fewer_machines"] is None
    assert (many["instance"], many["n_instances"] > 500) == ("gcp/g2-standard-4", True)
    other = many["fewer_machines"]
    assert other["instance"] == "gcp/g2-standard-96" and other["n_instances"] <= many["n_instances"] / 4
    months = {offer["instance"]: offer["reason"] for offer in many["why_not"]}
    assert months[other["instance"]].startswith(f"${other['monthly_usd']:,.0f} a month")


CLEARLY, LEAST = (
    Decimal("0.25"),
    Decimal("0.1"),
)  # of the month: what a step of certainty saves, what an even chance does


def cheapest_less_sure(load: Load, usd: Decimal) -> Plan | None:
    """The cheapest at the surest step of a twentieth at which the month is a quarter less; else at an even chance,
    where that saves a tenth."""
    levels = [step / 20 for step in range(19, 10, -1) if step / 20 < load.confidence]
    plans = [plan for level in levels if (plan := cheapest_at(load, level)) and plan.monthly <= (1 - CLEARLY) * usd]
    even = cheapest_at(load, EVEN)
    return next(iter(plans), even if even and even.monthly <= (1 - LEAST) * usd else None)


IN_405B = {"model": "llama-3.1-405b", "context": 16384, "concurrent_requests": 3}


def test_less_sure_is_the_surest_step_at_which_the_month_falls(catalog: Catalog) -> None:
    steps: Counter[bool | None] = Counter()
    for load, limits in [(IN_405B, {"confidence": 0.9}), *itertools.islice(random_loads(20261202), amount(10, 200))]:
        limits = {**limits, "confidence": 0.9, "purchase": "on-demand"}
        cell = sheetgen.recommend(**load, **_options(limits), catalogs=catalog)["cells"][0]
        if cell["instance"] is None or "impossible" in cell["measure_first"]:
            continue
        key = cell["model"], cell["context_tokens"], cell["concurrent_requests"]
        asked = Load(*key, cell["weight_dtype"], cell["kv_cache_dtype"], True, **limits)
        less_sure = cheapest_less_sure(asked, Decimal(repr(cell["monthly_usd"])))
        ways = {way["kind"]: way for way in cell["pay_less"]}
        if not (
            less_sure and "fp8_weights" in ways and told(ways["fp8_weights"]) == rented(less_sure)
        ):  # as sure as the answer
            assert told(ways.get("less_sure")) == rented(less_sure), asked
            steps[less_sure and rented(less_sure) != rented(cheapest_at(asked, EVEN))] += 1
    print(f"less sure: {steps[True]} steps, {steps[False]} even chances, {steps[None]} none")
    assert min(steps[True], steps[False], steps[None]) > 0


def test_random_rates(catalog: Catalog) -> None:
    kinds, draw = Kinds(), random.Random(20261125)
    of_rates = ("data-parallel", "one rank", "stages", "one replica", "several replicas", "by memory", "by tpot")
    for n, (load, limits) in enumerate(random_loads(20261125)):
        if n >= amount(8, 400) and all(kinds[kind] > 0 for kind in of_rates):
            break
        del load["concurrent_requests"]
        rate, wait = 10 ** draw.uniform(-2.5, 2.5), draw.choice((0.05, 0.05, 0.2, 0.001))
        stated: dict[str, float] = {"requests_per_second": rate}
        if draw.random() < 0.5:
            people, asks = round(2 ** draw.uniform(0, 17)), draw.choice((20.0, 20.0, 4.0, 200.0))
            stated = {"users": people, **({"requests_per_user_per_day": asks} if asks != 20 else {})}
            rate = rate_of_people(people, asks)
        options = {**load, **_options(limits), **stated, "max_wait_fraction": wait}
        (cell,) = document(recommended(options, catalog))["cells"]
        assert cell["requests_per_second"] == pytest.approx(rate, rel=1e-12) and cell["tier"] is None
        assert cell["users"] == stated.get("users", cell["users"])
        people = int(stated.get("users", 0))
        check(cell, kinds, limits=limits | {"wait": wait, "people": people}, dtypes=load)
    print(f"rates: {kinds}")
    assert all(kinds[kind] > 0 for kind in of_rates), kinds


@pytest.mark.parametrize(
    ("load", "limits"),
    [
        ({"model": "kimi-k2", "context": 4096}, {}),
        ({"model": "deepseek-v3", "context": 16384}, {"confidence": 0.5}),
        ({"model": "minimax-m2.5", "context": 16384}, {"tpot_ms": 16, "ttft_ms": 14625}),
    ],
    ids=str,
)
def test_fewer_requests_than_ranks(catalog: Catalog, load: Options, limits: Options) -> None:
    """A layout whose ranks are partly idle is never rented where another one of the same machines serves the load."""
    kinds, usd = Kinds(), []
    for n in range(1, 10):
        (cell,) = document(recommended({**load, **_options(limits), "concurrent_requests": n}, catalog))["cells"]
        check(cell, kinds, limits=limits, dtypes={"weight_dtype": "recommended", "kv_cache_dtype": "auto"})
        usd.append(cell["cheapest"]["monthly_usd"])
        assert n >= cell["data_parallel_size"]
    assert usd == sorted(usd) and kinds["data-parallel"] and kinds["one rank"], kinds


def test_ranks_on_hardware_without_runs_are_no_surer_than_one_rank(catalog: Catalog) -> None:
    """On 8 A100 of 40 GB the low end is that of mixtures of experts on GPUs without runs (0.713), the high end that of
    ranks (1.607): each is the wider of both."""
    load = {"model": "qwen3-235b-a22b", "context": 16384, "concurrent_requests": 32, "instances": "aws/p4d.24xlarge"}
    (cell,) = document(recommended({**load, "confidence": 0.7}, catalog))["cells"]
    assert (cell["instance"], cell["tensor_parallel_size"], cell["data_parallel_size"]) == ("aws/p4d.24xlarge", 4, 2)
    low, high = (cell[f"tpot_seconds_{end}"] / cell["tpot_seconds"] for end in ("low", "high"))
    assert (low, high) == (pytest.approx(0.713), pytest.approx(1.607))


OFTEN = (
    "by survival",
    "data-parallel",
    "one rank",
    "one replica",
    "several replicas",
    "by memory",
    "by tpot",
    "by ttft",
    "not the very cheapest",
    "too slow",
    *(f"in {class_}" for class_ in CLASSES),
)
SELDOM = (
    "stages",
    "for a term",
    "in other weights",
    *(f"at {level}" for level in (0.3, 0.5, 0.7, 0.9)),
    *(("nothing fits", "on demand for a commitment") if IN_LONG else ()),
)


def has_every(kinds: Kinds) -> bool:
    return all(kinds[kind] > 1 for kind in OFTEN) and all(kinds[kind] > 0 for kind in SELDOM)


@pytest.mark.parametrize("model", ["llama-3_1-nemotron-ultra-253b-v1", "llama-3_3-nemotron-super-49b-v1"])
@pytest.mark.parametrize("weight_dtype", ["bf16", "fp8"])
def test_stages_of_a_model_whose_layers_differ(catalog: Catalog, model: str, weight_dtype: str) -> None:
    """On every GPU and size on which one machine's ranks are too small: how many stages, and what they hold."""
    asked = {"models": model, "weight_dtype": weight_dtype, "workloads": "chat,long-doc", "confidence": "0.5"}
    solved = solve(ask(catalog, asked))
    sequences, counts = solved.sequences, Counter[int]()
    for row, load in enumerate(solved.question.loads):
        for number, (gpu, layout) in enumerate(solved.profiles):
            gpu_id = solved.question.gpus[gpu].id
            key = (model, load.context_tokens, weight_dtype, "bf16", False, "", gpu_id, layout.tensor_parallel_size, 1)
            if not runs(gpu_id, weight_dtype, "bf16"):
                continue
            replica_ = replica(*key, False) or replica(*key, True)
            stages, held = (int(sequences[name][row, number]) for name in ("pipeline_stages", "sequences"))
            assert (stages, held) == ((replica_.pp, replica_.sequences) if replica_ else (0, 0)), key
            counts[stages] += 1
    print(f"{model} in {weight_dtype}: by stages {dict(counts)}")
    assert counts[2] and counts[3] + counts[4]


OWN_GPUS = (
    "nvidia-h100-sxm5-80gb", "nvidia-h200-sxm5-141gb", "nvidia-a100-sxm4-80gb", "nvidia-l40s-48gb", "nvidia-l4-24gb",
    "nvidia-b200-sxm6-180gb",
)  # fmt: skip
USUAL_USD = dict(zip(OWN_GPUS, (5.0, 6.0, 3.0, 1.8, 0.8, 10.0), strict=True))  # a GPU-hour


def own_rows(draw: random.Random) -> tuple[OwnRow, ...]:
    """Price lists of one's own, at a fifth to thrice of what such GPUs cost."""
    rows = []
    for i in range(draw.randint(1, 4)):
        gpu, count = draw.choice(OWN_GPUS), draw.choice((0, 1, 2, 4, 8))
        usd = draw.choice((0.2, 0.5, 0.9, 1.1, 3)) * USUAL_USD[gpu] * max(1, count)
        rows.append(OwnRow(f"own{i}", f"own-{i}", gpu, count, f"{usd:.4f}", draw.choice(("eu", "us"))))
    return tuple(rows)


def write_own(folder: Path, rows: tuple[OwnRow, ...]) -> Catalog:
    """The catalogs with these rows laid over them, a provider each."""
    (folder / "instances").mkdir(parents=True, exist_ok=True)
    for row in rows:
        shape = ("instance", row.n_gpus) if row.n_gpus else ("per_gpu", 1)
        (folder / "instances" / f"{row.provider}.yaml").write_text(
            f"provider: {row.provider}\ninstances:\n  - type: {row.type}\n    gpu: {row.gpu}\n"
            f"    gpu_count: {shape[1]}\n    unit: {shape[0]}\n    region: {row.area}-own\n    prices:\n"
            f"      - {{purchase: on-demand, usd_per_hour: {row.price}, as_of: '2026-11-01'}}\n"
            "    source: our list\n    confidence: high\n    checked_on: '2026-11-01'\n"
        )
    return Catalog(folder)


@pytest.mark.some(1)
@pytest.mark.parametrize("area", ["", "eu"])
def test_own_providers_take_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, area: str) -> None:
    """Rows of a folder of one's own are asked without --providers; one that is cheapest is chosen, a dearer one is
    not, and in a region only those that are there."""
    kinds, chosen, n, draw = Kinds(), Counter[str](), amount(7, 240), random.Random(20261130)
    every = brute_force.candidates
    for i, (load, limits) in enumerate(itertools.islice(random_loads(20261201), n)):
        rows = own_rows(draw)
        monkeypatch.setattr(brute_force, "candidates", functools.partial(every, area=area, own=rows))
        if not brute_force.candidates(purchase=limits.get("purchase", "on-demand")):
            del limits["purchase"]
        catalog = write_own(tmp_path / str(i), rows)
        asked = {**load, **_options(limits), **({"region": area} if area else {})}
        (cell,) = document(recommended(asked, catalog))["cells"]
        check(cell, kinds, limits=limits, dtypes=load)
        if cell["instance"]:
            chosen["own" if cell["instance"].startswith("own") else "of the clouds"] += 1
    print(f"{area or 'anywhere'}: {kinds}; {dict(chosen)}")
    assert chosen["own"] > 1 and chosen["of the clouds"] > 1


def test_replicas_over_the_trays_of_a_rack(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """GB200 alone: 8 GPUs are two trays of an NVL72, at the links of one machine; survived, too. As a Capacity Block
    they are rented by the UltraServer of 36 or 72."""
    every = brute_force.candidates

    def of_racks(*asked: str) -> tuple[Offer, ...]:
        return tuple(offer for offer in every(*asked) if offer.gpu == "nvidia-gb200-192gb")

    monkeypatch.setattr(brute_force, "candidates", of_racks)
    kinds, spanning, stages = Kinds(), 0, set()
    losses: tuple[dict[str, Any], ...] = (
        {},
        {"survive": "replica", "confidence": 0.5},
        {"survive": "machine"},
        {"survive": "zone", "zones": 3, "confidence": 0.5},
    )
    models = (("llama-3.1-405b", "auto"), ("kimi-k2", "bf16"), ("deepseek-v3", "auto"), ("llama-3.1-70b", "auto"))
    for i, ((model, weight_dtype), limits) in enumerate(itertools.product(models, losses)):
        loads = ((16384, 32), (131072, 5), (4096, 300))
        for context, users in loads if IN_LONG else loads[i % len(loads) :][:1]:
            load = {"model": model, "context": context, "concurrent_requests": users, "weight_dtype": weight_dtype}
            (cell,) = document(recommended({**load, "gpus": "gb200", **limits}, catalog))["cells"]
            check(cell, kinds, limits=limits, dtypes=load)
            spanning += bool(cell["spans_machines"])
            stages.add((weight_dtype, cell["tensor_parallel_size"], cell["pipeline_parallel_size"]))
    print(f"racks: {kinds}, {spanning} over trays, {stages}")
    assert spanning > amount(1, 5) and kinds["data-parallel"]
    # Stages only where 8 GPUs hold none, and then of two trays each, too.
    assert {pp for dtype, _, pp in stages if dtype == "auto"} <= {1, None} and ("bf16", 8, 2) in stages


def test_a_context_over_the_limit_and_a_model_that_nothing_holds(catalog: Catalog) -> None:
    cells = document(solve(ask(catalog, {"models": "llama-2-7b,8b"})))["cells"]
    over = [c for c in cells if c["model"] == "llama-2-7b" and c["context_tokens"] > 4096]
    assert len(over) == 8
    for cell in over:
        check(cell, over=True)
    huge = document(solve(ask(catalog, {"models": "qwen3.8-2.4t-a95b", "gpus": "l4"})))["cells"]
    assert all(c["verdict"] == "nothing fits" and c["instance"] is None for c in huge)


def test_the_brute_force_can_fail(catalog: Catalog) -> None:
    cell = document(solve(ask(catalog, {"models": "70b"})))["cells"][5]
    check(cell)
    wrong: dict[str, Any] = {name: 99 for name in EXPECTED} | {"monthly_usd": 1.0, "chance": cell["chance"] - 1e-3}
    wrong |= {"cheapest": None, "runner_up": None, "by_purchase": {**cell["by_purchase"], "spot": None}}
    wrong |= {"weight_dtype": "bf16", "kv_cache_dtype": "fp8", "users": cell["users"] + 10, "requests_per_second": 0.5}
    published = {**cell["as_published"], "n_instances": 99}
    wrong |= {"by_confidence": cell["by_confidence"][:2], "as_published": published, "measure_first": ["impossible"]}
    for name, value in wrong.items():
        with pytest.raises(AssertionError):
            check({**cell, name: value})


def one_way(**other: object) -> Plan:
    """A way to serve 8 requests on one instance of 2 GPUs for $100 an hour, with what is other about it."""
    instances, price, order = (other.pop(name, usual) for name, usual in (("n", 1), ("price", 100), ("order", 5)))
    n_gpus = other.pop("count", 2)
    offer = Offer("x/a", "x", "nvidia-l4-24gb", n_gpus, Decimal(price), Decimal(0), order, n_gpus)
    layout = Replica(other.pop("tp", 2), other.pop("dp", 1), 1, 8, {})
    load = Load("llama-3.1-8b", 4096, 8, "bf16", "bf16")
    usual = {"requests": 8, "replicas": 1, "instances": instances, "native": False, "places": 8, "needed": 1}
    return Plan(load, offer, layout, **{**usual, **other})


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"price": 104, "n": 1, "count": 4}, {"price": 50, "n": 2, "count": 2}),
        ({"price": 105, "n": 1, "count": 4}, {"price": 50, "n": 2, "count": 2}),
        ({"price": 104, "native": True}, {"price": 100}),
        ({"price": 104, "requests": 9}, {"price": 100}),
        ({"price": 104, "requests": 8, "native": True}, {"price": 100, "requests": 9}),
        ({"price": 104, "places": 1}, {"price": 100, "places": 1, "dp": 2, "requests": 16}),  # an idle rank
        ({"places": 1, "dp": 2}, {"places": 1, "tp": 1, "dp": 8, "requests": 64}),
        ({"places": 1, "dp": 2, "native": True}, {"places": 1}),
        ({"price": 99}, {"price": 100, "tp": 1, "dp": 1, "requests": 4}),
        ({"tp": 1, "requests": 4, "order": 9}, {"tp": 2, "requests": 8}),
        ({"dp": 1, "tp": 1, "requests": 4, "order": 9}, {"dp": 2, "tp": 1, "requests": 8}),
        ({"order": 4}, {"order": 5}),
        ({"price": 50, "n": 2, "count": 2}, {"price": 106, "n": 1, "count": 4}),  # more than 5 % dearer
        ({"price": 50, "n": 2, "count": 2}, {"price": 100, "n": 1, "count": 8}),  # as cheap, but more GPUs
        ({"price": 50, "n": 2, "count": 2}, {"price": 104, "n": 1, "count": 8}),
    ],
    ids=str,
)
def test_ties_are_broken_as_the_rules_say(better: Options, worse: Options) -> None:
    ways = [one_way(**better), one_way(**worse)]
    assert choose(ways)[0] is ways[0] and choose(ways[::-1])[0] is ways[0]


def test_the_limits_of_a_batch() -> None:
    assert batch_limits("nvidia-h100-sxm5-80gb") == (1024, 8192)

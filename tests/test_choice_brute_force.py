"""Every choice equals a brute force over all instances, TPs and PPs (tests/brute_force.py)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from brute_force import Offer, Plan, answer, batch_limits, candidates, read

from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.recommend import solve
from sheetgen.scenario.question import ask
from sheetgen.writers.json import document

THREE = "8b,70b,405b"
FIVE = "8b,70b,405b,qwen3.6-27b,gpt-oss-120b"
WITH_MLA = "8b,70b,405b,deepseek-v3,gemma-3-27b"
N_RANDOM = 240
MODELS = (
    "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-2-7b", "llama-2-13b", "falcon-7b", "falcon-40b",
    "qwen2.5-7b", "qwen3-0.6b", "qwen3-235b-a22b", "mixtral-8x22b-v0.1", "phi-4", "c4ai-command-r-plus",
    "gemma-2-27b", "gemma-3-27b", "gemma-3-1b", "gpt-oss-120b", "gpt-oss-20b", "mistral-7b-v0.1",
    "llama-4-scout-17b-16e", "llama-4-maverick-17b-128e", "deepseek-v2-lite", "deepseek-v3", "deepseek-v3.2",
    "kimi-k2", "deepseek-v4-pro", "qwen3.6-27b", "qwen3-next-80b-a3b", "falcon-h1-0.5b",
    "nvidia-nemotron-3-nano-30b-a3b-bf16", "ai21-jamba-1.5-mini", "granite-4.0-h-small", "minimax-text-01",
    "llama-3_3-nemotron-super-49b-v1", "reference-100b", "kimi-k3", "gemma-3n-e4b",
)  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def check(cell: dict[str, Any], over: bool = False, discount: str = "0") -> str:
    """Compare one record of the JSON with the brute force; what kind of answer it was."""
    load = (
        cell["model"], cell["context_tokens"], cell["concurrent_requests"], cell["weight_dtype"],
        cell["kv_cache_dtype"],
    )  # fmt: skip
    found = "over the model's" if over else answer(*load, asked=cell["workload"] == "asked", discount=discount)
    if isinstance(found, str):
        assert cell["instance"] is None and cell["monthly_usd"] is None, load
        assert cell["verdict"].startswith(found), load
        return "over" if over else "too slow" if found.startswith("no count") else "nothing"
    best, seconds = found
    got = {k: cell[k] for k in EXPECTED}
    assert got == {k: of(best) for k, of in EXPECTED.items()}, load
    assert cell["monthly_usd"] == pytest.approx(float(best.monthly), rel=1e-12), load
    held = best.replicas * best.sequences
    assert cell["headroom_fraction"] == pytest.approx(1 - cell["concurrent_requests"] / held, abs=1e-12), load
    runner_up = cell["runner_up"]
    if not seconds:
        assert runner_up is None, load
    else:
        assert runner_up["monthly_usd"] == pytest.approx(float(seconds[0].monthly), rel=1e-12), load
        shape = (runner_up["instance"], runner_up["tensor_parallel_size"], runner_up["n_instances"])
        assert shape in [(s.offer.instance, s.tp, s.instances) for s in seconds], load
    return "stages" if best.pp > 1 else "replicas" if best.replicas > 1 else "one replica"


EXPECTED: dict[str, Any] = {
    "verdict": lambda plan: "fits",
    "instance": lambda plan: plan.offer.instance,
    "gpu": lambda plan: plan.offer.gpu,
    "tensor_parallel_size": lambda plan: plan.tp,
    "pipeline_parallel_size": lambda plan: plan.pp,
    "sequences_per_replica": lambda plan: plan.sequences,
    "n_replicas": lambda plan: plan.replicas,
    "n_gpus": lambda plan: plan.replicas * plan.tp * plan.pp,
    "n_instances": lambda plan: plan.instances,
    "sized_by": lambda plan: "speed" if plan.by_speed else "memory",
}


def test_the_candidates_are_those_of_the_rules(catalog: Catalog) -> None:
    chosen = ask(catalog, {"models": "8b"}).candidates
    assert [(c.instance, c.provider, c.gpu.id, c.gpu_count) for c in chosen] == [
        (c.instance, c.provider, c.gpu, c.count) for c in candidates()
    ]
    assert [c.usd_per_hour for c in chosen] == [float(c.price) for c in candidates()]
    assert len(chosen) > 40


@pytest.mark.parametrize("models", [THREE, FIVE, WITH_MLA])
def test_every_cell_of_a_build(catalog: Catalog, models: str) -> None:
    cells = document(solve(ask(catalog, {"models": models})))["cells"]
    assert len(cells) == 12 * len(models.split(","))
    kinds = [check(cell) for cell in cells]
    print(f"{len(cells)} cells of {models}:", {kind: kinds.count(kind) for kind in sorted(set(kinds))})


@pytest.mark.parametrize("discount", ["0.2", "0.35", "0.99"])
def test_every_cell_under_a_contract_with_a_discount(catalog: Catalog, discount: str) -> None:
    """The same hardware as at list prices, for less; prices, of runner-ups too, times (1 - discount)."""
    listed = document(solve(ask(catalog, {"models": THREE})))["cells"]
    cells = document(solve(ask(catalog, {"models": THREE, "discount_fraction": discount})))["cells"]
    for before, cell in zip(listed, cells, strict=True):
        check(cell, discount=discount)
        assert {k: before[k] for k in EXPECTED} == {k: cell[k] for k in EXPECTED}
        owned = cell["owned"]["base"]
        assert {k: v for k, v in owned.items() if k != "break_even_utilization"} == {
            k: v for k, v in before["owned"]["base"].items() if k != "break_even_utilization"
        }
        broken_even = before["owned"]["base"]["break_even_utilization"]
        if broken_even is not None:
            assert owned["break_even_utilization"] * (1 - float(discount)) == pytest.approx(broken_even, rel=1e-12)


def random_loads(seed: int) -> list[dict[str, Any]]:
    """Loads of any model, context, users and precisions, up to the model's longest context."""
    draw = random.Random(seed)
    loads = []
    for i in range(N_RANDOM):
        model = MODELS[i % len(MODELS)]
        longest = int(read(f"models/{model}.yaml")["max_context_tokens"])
        own = read(f"models/{model}.yaml")["weight_dtype"]
        small = own == "bf16"
        loads.append(
            {
                "model": model,
                "context": min(longest, round(2 ** draw.uniform(6, 17.5))),
                "users": round(2 ** draw.uniform(0, 12)),
                "weight_dtype": draw.choice(["auto", "auto", "bf16", "fp8", "int4" if small else own]),
                "kv_cache_dtype": draw.choice(["auto", "auto", "fp8"]),
            }
        )
    return loads


def test_random_loads(catalog: Catalog) -> None:
    kinds = []
    for load in random_loads(20261120):
        kinds.append(check(document(recommended(load, catalog))["cells"][0]))
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    print(f"{len(kinds)} random loads of {len(MODELS)} models:", counts)
    assert len(kinds) >= 200 and min(counts[kind] for kind in ("one replica", "replicas", "stages")) > 10


def test_a_context_over_the_limit_and_a_model_that_nothing_holds(catalog: Catalog) -> None:
    cells = document(solve(ask(catalog, {"models": "llama-2-7b,8b"})))["cells"]
    over = [c for c in cells if c["model"] == "llama-2-7b" and c["context_tokens"] > 4096]
    assert len(over) == 8 and {check(c, over=True) for c in over} == {"over"}
    huge = document(solve(ask(catalog, {"models": "qwen3.8-2.4t-a95b", "gpus": "l4"})))["cells"]
    assert all(c["verdict"] == "nothing fits" and c["instance"] is None for c in huge)


def test_the_brute_force_can_fail(catalog: Catalog) -> None:
    cell = document(solve(ask(catalog, {"models": "70b"})))["cells"][5]
    for name, value in (("tensor_parallel_size", 99), ("n_instances", 99), ("monthly_usd", 1.0)):
        with pytest.raises(AssertionError):
            check({**cell, name: value})


def test_ties_are_broken_as_the_rules_say() -> None:
    offer = Offer("x/a", "x", "nvidia-l4-24gb", 1, candidates()[0].price)
    base = {"offer": offer, "pp": 1, "sequences": 1, "replicas": 1}
    fewer = Plan(order=9, tp=8, instances=1, **base)
    more = Plan(order=0, tp=1, instances=2, **base)
    assert fewer.rank < more.rank
    assert batch_limits("nvidia-h100-sxm5-80gb") == (1024, 8192)

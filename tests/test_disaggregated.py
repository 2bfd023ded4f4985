"""Prefill and decode apart: both pools worked out again by hand, and where two pools cost less than one."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from typing import Any

import pytest
from brute_force import BYTES
from brute_speed import parts, read, step
from click.testing import CliRunner

import sheetgen
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.recommend import Solution
from sheetgen.recommend.disaggregated import Apart, disaggregated

GIB = 2**30
Z = 1.74  # of 5 % that wait, to three digits
# Model, context, requests a second. Long answers in large batches pay: prompts would hold up their steps. Few requests
# do not fill two pools.
PAYS = (("70b", "16k", 19.0), ("405b", "16k", 2.35))
DOES_NOT = (("8b", "4k", 3.5), ("70b", "4k", 0.02), ("8b", "16k", 0.76), ("70b", "16k", 2.4))


@cache
def asked(model: str, context: str, rate: float, **options: Any) -> tuple[Solution, Apart]:
    catalog = Catalog()
    solved = recommended({"model": model, "context": context, "requests_per_second": rate, **options}, catalog)
    found = disaggregated(solved, 0)
    assert found is not None
    return solved, found


@pytest.mark.parametrize("load", PAYS, ids=str)
def test_two_pools_that_cost_less(load: tuple[str, str, float]) -> None:
    solved, found = asked(*load)
    assert found.monthly_usd < 0.97 * solved.choices[0].monthly_usd


@pytest.mark.parametrize("load", DOES_NOT, ids=str)
def test_two_pools_that_cost_more(load: tuple[str, str, float]) -> None:
    solved, found = asked(*load)
    assert found.monthly_usd > 1.05 * solved.choices[0].monthly_usd


@pytest.mark.parametrize("load", (*PAYS, *DOES_NOT), ids=str)
def test_both_pools_by_hand(load: tuple[str, str, float]) -> None:
    """Dense models at bf16, so that a step is a line: seconds, places, machines, money, targets."""
    solved, found = asked(*load)
    (workload,), rate, model = solved.question.workloads, load[2], solved.question.models[0].model.id
    prompt, answer = workload.input_tokens, workload.output_tokens
    for pool, seconds in ((found.prefill, found.prefill.seconds), (found.decode, found.decode.seconds)):
        assert pool.layout.data_parallel_size == 1
        weights = float(solved.models["weights_bytes"][0])
        part = parts(model, pool.candidate.gpu.id, pool.layout.tensor_parallel_size, "bf16", "bf16", prompt, answer,
                     weights, BYTES)  # fmt: skip
        if pool is found.prefill:
            assert seconds == pytest.approx(part["ttft_left"] * (part["base"] + part["first"]), rel=1e-6)
            each, busy = 1, rate * seconds
        else:
            each = pool.requests_per_replica
            busy = rate * (answer - 1) * part["tpot_left"] * step(part, each)
            on_one = min(each, max(1, math.ceil(busy / pool.n_replicas)))
            assert seconds == pytest.approx(part["tpot_left"] * step(part, on_one), rel=1e-6)
            assert part["tpot_left"] * step(part, each) <= workload.tpot_target_ms / 1000
        assert pool.n_replicas == pytest.approx((busy + Z * math.sqrt(busy)) / each, abs=1 + 0.01 * busy / each)
        assert pool.n_replicas * each >= busy
    assert found.ttft_seconds <= workload.ttft_target_ms / 1000
    months = {c.instance: 730 * c.usd_per_hour for c in solved.question.candidates}
    assert found.monthly_usd == pytest.approx(sum(n * months[one] for one, n in found.n_instances.items()))
    gpus = {c.instance: c.gpu_count for c in solved.question.candidates}
    for pool in (found.prefill, found.decode):
        assert pool.n_gpus <= found.n_instances[pool.candidate.instance] * gpus[pool.candidate.instance]
    assert found.prefill.candidate.provider == found.decode.candidate.provider
    assert found.prefill.candidate.region == found.decode.candidate.region


def test_what_goes_over_the_fabric() -> None:
    """70B, a prompt of 15,360 tokens: 327,680 bytes a token; the slower side's share of its network, in use."""
    _, found = asked("70b", "16k", 2.4)
    assert found.kv_transfer_bytes == 327_680 * 15_360
    shares = []
    for pool in (found.prefill, found.decode):
        network = pool.candidate.network_gbps * 1e9 / 8
        count = found.n_instances[pool.candidate.instance]
        use = 2.4 * found.kv_transfer_bytes / (count * network)
        shares.append((network * pool.layout.n_gpus / pool.candidate.gpu_count, use))
    slowest, busiest = min(one for one, _ in shares), max(use for _, use in shares)
    assert found.prefill.candidate.instance != found.decode.candidate.instance
    assert found.kv_transfer_seconds == pytest.approx(found.kv_transfer_bytes / slowest / (1 - busiest))


def test_the_prompt_is_that_of_a_lone_request_of_size() -> None:
    _, found = asked("70b", "16k", 2.4)
    alone = sheetgen.size(
        model="70b", gpu=found.prefill.candidate.gpu.id, context="16k",
        tensor_parallel_size=found.prefill.layout.tensor_parallel_size,
    )  # fmt: skip
    assert found.prefill.seconds == pytest.approx(alone["ttft_seconds"], rel=1e-9)


def test_a_window_sends_its_window() -> None:
    """Gemma 3 27B: 52 of 62 layers keep 1,024 tokens."""
    _, found = asked("gemma-3-27b", "16k", 2.0)
    every = read("models/gemma-3-27b.yaml")["attention"]
    whole = sum(g["n_layers"] * g["n_kv_heads"] * (g["key_width"] + g["value_width"]) * 2 for g in every) * 15_360
    assert found.kv_transfer_bytes < 0.3 * whole


def test_more_requests_never_cost_less_than_the_tie_allows() -> None:
    months = [asked("70b", "16k", rate)[1].monthly_usd for rate in (0.5, 2.4, 5.0, 19.0)]
    assert all(after >= before / 1.05 for before, after in itertools.pairwise(months))


def test_the_command_and_its_json() -> None:
    words = ["recommend", "--model", "70b", "--context", "16k", "--users", "128", "--disaggregated"]
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0 and "PREFILL AND DECODE APART, never measured by us" in said.stdout
    assert "state the load as a rate" in said.stdout
    answer = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    cell = answer["cells"][0]
    assert cell["prefill"]["instance"] and cell["decode"]["tpot_seconds"] < 0.05 and cell["kv_transfer_seconds"] > 0
    assert cell["disaggregated"]["measured"] is False
    alone = cell["output_tokens_per_second"] / 1024
    assert cell["disaggregated"]["requests_per_second"] == pytest.approx(alone)
    refused = CliRunner().invoke(main, [*words, "--survive", "machine"])
    assert refused.exit_code == 2 and "--survive" in refused.stderr


def test_without_a_network_that_is_known_there_is_no_pair() -> None:
    solved = recommended({"model": "70b", "context": "16k", "users": 32, "providers": "lambda"}, Catalog())
    assert disaggregated(solved, 0) is None or all(
        solved.candidate(i).network_gbps > 0 for i in range(len(solved.offers))
    )

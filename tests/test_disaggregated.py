"""Prefill and decode apart: both pools worked out again by hand, and where two pools cost less than one."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from pathlib import Path

import pytest
from brute_force import BYTES
from brute_speed import parts, read, step
from click.testing import CliRunner

import sheetgen
from sheetgen.answer.disaggregated import Apart, disaggregated, requests_per_second
from sheetgen.answer.solution import Solution
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.sizing.rates import z_of

GIB = 2**30
Z = 1.74  # of 5 % that wait, to three digits
# Model, context, requests a second. Long answers in large batches pay: prompts would hold up their steps. Few requests
# do not fill two pools.
PAYS = (("70b", "16k", 19.0), ("405b", "16k", 2.35))
DOES_NOT = (("8b", "4k", 3.5), ("70b", "4k", 0.02), ("8b", "16k", 1.1), ("70b", "16k", 1.2))


@cache
def asked(model: str, context: str, rate: float, **options: object) -> tuple[Solution, Apart]:
    """By default as published and at an even chance, whose times are those predicted."""
    usual = {"weight_dtype": "published", "confidence": 0.5}
    load = {"model": model, "context": context, "requests_per_second": rate}
    solved = recommended({**usual, **load, **options}, Catalog())
    answer = disaggregated(solved, 0)
    assert answer is not None
    return solved, answer


@pytest.mark.parametrize("load", PAYS, ids=str)
def test_two_pools_that_cost_less(load: tuple[str, str, float]) -> None:
    solved, answer = asked(*load)
    assert answer.monthly_usd < 0.97 * solved.choices[0].monthly_usd


@pytest.mark.parametrize("load", DOES_NOT, ids=str)
def test_two_pools_that_cost_more(load: tuple[str, str, float]) -> None:
    solved, answer = asked(*load)
    assert answer.monthly_usd > 1.05 * solved.choices[0].monthly_usd


@pytest.mark.parametrize("load", (*PAYS, *DOES_NOT), ids=str)
def test_both_pools_by_hand(load: tuple[str, str, float]) -> None:
    """Dense models at bf16, so that a step is a line: seconds, places, machines, money, targets."""
    solved, record = asked(*load)
    (workload,), rate, model = solved.question.workloads, load[2], solved.question.models[0].model.id
    prompt, answer = workload.input_tokens, workload.output_tokens
    for pool, seconds in ((record.prefill, record.prefill.seconds), (record.decode, record.decode.seconds)):
        assert pool.layout.data_parallel_size == 1
        weights = float(solved.models["weights_bytes"][0])
        part = parts(
            model,
            pool.candidate.gpu.id,
            pool.layout.tensor_parallel_size,
            "bf16",
            "bf16",
            prompt,
            answer,
            weights,
            BYTES,
        )
        if pool is record.prefill:
            assert seconds == pytest.approx(part["ttft_left"] * (part["base"] + part["first"]), rel=1e-6)
            per_replica, busy = 1, rate * seconds
        else:
            per_replica = pool.requests_per_replica
            busy = rate * (answer - 1) * part["tpot_left"] * step(part, per_replica)
            on_one = min(per_replica, max(1, math.ceil(busy / pool.n_replicas)))
            assert seconds == pytest.approx(part["tpot_left"] * step(part, on_one), rel=1e-6)
            assert part["tpot_left"] * step(part, per_replica) <= workload.tpot_target_ms / 1000
        assert pool.n_replicas == pytest.approx(
            (busy + Z * math.sqrt(busy)) / per_replica, abs=1 + 0.01 * busy / per_replica
        )
        assert pool.n_replicas * per_replica >= busy
    assert record.ttft_seconds <= workload.ttft_target_ms / 1000
    months = {c.instance: 730 * c.usd_per_hour for c in solved.question.candidates}
    assert record.monthly_usd == pytest.approx(sum(n * months[name] for name, n in record.n_instances.items()))
    gpus = {c.instance: c.gpu_count for c in solved.question.candidates}
    for pool in (record.prefill, record.decode):
        assert pool.n_gpus <= record.n_instances[pool.candidate.instance] * gpus[pool.candidate.instance]
    assert record.prefill.candidate.provider == record.decode.candidate.provider
    assert record.prefill.candidate.region == record.decode.candidate.region


def left(n_replicas: int, per_machine: int, survive: str, zones: int = 3) -> tuple[int, int]:
    """Replicas and machines that are left of those packed on machines, these dealt out over zones, after the worst."""
    machines = [per_machine] * (n_replicas // per_machine) + [n_replicas % per_machine] * (n_replicas % per_machine > 0)
    dealt = [machines[zone::zones] for zone in range(zones)]
    lost, gone = {
        "none": (0, 0),
        "replica": (1, 0),
        "machine": (max(machines), 1),
        "zone": (max(map(sum, dealt)), max(map(len, dealt))),
    }[survive]
    return n_replicas - lost, len(machines) - gone


@pytest.mark.some(10)
@pytest.mark.parametrize("survive", ["none", "replica", "machine", "zone"])
@pytest.mark.parametrize("load", [*PAYS[:2], *DOES_NOT[:2], ("70b", "16k", 60.0), ("70b", "16k", 5.0)], ids=str)
def test_what_two_pools_serve_and_what_they_survive_by_hand(load: tuple[str, str, float], survive: str) -> None:
    """After the worst loss of each pool both still take the rate; at most what is said, and no pool has a replica too
    many."""
    options = {"survive": survive, "near_tie_fraction": 0.05 * (load[2] < 50), "extra_headroom_fraction": 0.1}
    solved, record = asked(*load, **options)
    (workload,), answer = solved.question.workloads, solved.question.workloads[0].output_tokens
    model, weights = solved.question.models[0].model.id, float(solved.models["weights_bytes"][0])
    share = record.prefill.candidate, record.decode.candidate
    shared = share[0] == share[1] and survive != "zone" and math.log2(share[0].gpu_count) % 1 == 0
    pools: list[
        tuple[int, float, int, int, int, int]
    ] = []  # places of a replica, seconds, replicas of a machine, sized, held; machines
    for pool in (record.prefill, record.decode):
        part = parts(
            model,
            pool.candidate.gpu.id,
            pool.layout.tensor_parallel_size,
            "bf16",
            "bf16",
            workload.input_tokens,
            answer,
            weights,
            BYTES,
        )
        is_first, places = pool is record.prefill, pool.requests_per_replica
        seconds = (
            part["ttft_left"] * (part["base"] + part["first"])
            if is_first
            else part["tpot_left"] * (answer - 1) * step(part, places)
        )
        per_machine = pool.candidate.gpu_count // pool.layout.n_gpus
        room = pool.n_replicas if shared else math.ceil(pool.n_replicas / per_machine) * per_machine
        pools.append((places, seconds, per_machine, pool.n_replicas, room, left(room, per_machine, survive)[1]))
    machines = [pool[5] for pool in pools]
    if shared:
        rented = record.n_instances[share[0].instance]
        machines = [rented - (survive == "machine")] * 2
        assert rented == math.ceil((record.prefill.n_gpus + record.decode.n_gpus) / share[0].gpu_count)
    else:
        assert sum(record.n_instances.values()) == sum(math.ceil(n / per_machine) for _, _, per_machine, n, *_ in pools)

    def serves(rate: float, *replicas: int) -> bool:
        """True where so many replicas that are left of each pool take the rate, 10 % more of it, and the fabric,
        too."""
        rate *= 1.1
        for (places, seconds, *_), n in zip(pools, replicas, strict=True):
            busy = rate * seconds
            if n * places < math.ceil(busy + z_of(0.05) * math.sqrt(busy)):
                return False
        moved = rate * record.kv_transfer_bytes
        if sum(record.n_instances.values()) == 1:
            return True  # one machine's links, far from full here
        shares, use = zip(
            *(
                (
                    share.network_gbps * 1e9 / 8 * pool.layout.n_gpus / share.gpu_count,
                    moved / (n * share.network_gbps * 1e9 / 8),
                )
                for share, pool, n in zip(share, (record.prefill, record.decode), machines, strict=True)
            ),
            strict=True,
        )
        wait = record.kv_transfer_bytes / min(shares) / (1 - max(use)) if max(use) < 1 else math.inf
        return pools[0][1] + wait <= workload.ttft_target_ms / 1000

    sized = [left(n, per_machine, survive)[0] for _, _, per_machine, n, *_ in pools]
    splits = [[n for *_, n, _ in pools]]
    if shared:  # what is left on the machines of both goes to either
        free = rented * share[0].gpu_count - record.prefill.n_gpus - record.decode.n_gpus
        prefill_gpus, other = record.prefill.layout.n_gpus, record.decode.layout.n_gpus
        splits = [
            [pools[0][3] + k, pools[1][3] + (free - k * prefill_gpus) // other] for k in range(free // prefill_gpus + 1)
        ]
    held = [[left(n, pool[2], survive)[0] for n, pool in zip(split, pools, strict=True)] for split in splits]
    assert serves(load[2], *sized)
    assert record.served_at_target >= load[2]
    assert any(serves(record.served_at_target * 0.999, *machines) for machines in held)
    assert not any(serves(record.served_at_target * 1.001, *machines) for machines in held)
    for i, (_, _, per_machine, n, *_) in enumerate(pools):
        fewer = [*sized]
        fewer[i] = left(n - 1, per_machine, survive)[0] if n > 1 else 0
        assert fewer[i] == sized[i] or not serves(load[2], *fewer)


def test_a_loss_to_survive_costs_more_and_the_pools_that_it_needs() -> None:
    months = [asked("70b", "16k", 19.0, survive=loss)[1].monthly_usd for loss in ("none", "replica", "machine", "zone")]
    assert months[0] < months[1] <= months[2] * 1.05 and months[2] < months[3]


def test_what_goes_over_the_fabric() -> None:
    """70B, a prompt of 15,360 tokens: 327,680 bytes a token; the slower side's share of its network, in use."""
    rate = 8.0  # at which the pools are on two types
    _, answer = asked("70b", "16k", rate)
    assert answer.kv_transfer_bytes == 327_680 * 15_360
    shares = []
    for pool in (answer.prefill, answer.decode):
        network = pool.candidate.network_gbps * 1e9 / 8
        count = answer.n_instances[pool.candidate.instance]
        use = rate * answer.kv_transfer_bytes / (count * network)
        shares.append((network * pool.layout.n_gpus / pool.candidate.gpu_count, use))
    slowest, busiest = min(share for share, _ in shares), max(use for _, use in shares)
    assert answer.prefill.candidate.instance != answer.decode.candidate.instance
    assert answer.kv_transfer_seconds == pytest.approx(answer.kv_transfer_bytes / slowest / (1 - busiest))


def test_the_prompt_is_that_of_a_lone_request_of_size() -> None:
    _, answer = asked("70b", "16k", 2.4)
    alone = sheetgen.size(
        model="70b",
        gpu=answer.prefill.candidate.gpu.id,
        context="16k",
        tensor_parallel_size=answer.prefill.layout.tensor_parallel_size,
    )
    assert answer.prefill.seconds == pytest.approx(alone["ttft_seconds"], rel=1e-9)


def test_a_load_that_nothing_meets_is_a_rate_by_the_times_of_its_targets() -> None:
    """Little's law: 30 at once of 1 s and 49 tokens of 1 ms after the first are 28.6 a second."""
    asked = {
        "model": "70b",
        "context": "4k",
        "concurrent_requests": 30,
        "tpot_ms": 1,
        "ttft_ms": 1000,
        "output_tokens": 50,
    }
    solved = recommended(asked, Catalog())
    assert solved.choices[0].offer is None
    assert requests_per_second(solved, 0) == pytest.approx(30 / (1 + 49 * 0.001), rel=1e-12)


def test_a_window_sends_its_window() -> None:
    """Gemma 3 27B: 52 of 62 layers keep 1,024 tokens."""
    _, answer = asked("gemma-3-27b", "16k", 2.0)
    every = read("models/gemma-3-27b.yaml")["attention"]
    whole = sum(g["n_layers"] * g["n_kv_heads"] * (g["key_width"] + g["value_width"]) * 2 for g in every) * 15_360
    assert answer.kv_transfer_bytes < 0.3 * whole


def test_two_pools_that_are_surer_never_cost_less() -> None:
    """Times longer by the band: as many machines or more, and the predicted times leave room to the targets."""
    answers = [asked("70b", "16k", 5.0, near_tie_fraction=0, confidence=level)[1] for level in (0.3, 0.5, 0.7, 0.9)]
    months = [answer.monthly_usd for answer in answers]
    assert months == sorted(months) and months[-1] > months[0]
    assert answers[-1].ttft_seconds < answers[0].ttft_seconds


def test_more_requests_never_cost_less_than_the_tie_allows() -> None:
    months = [asked("70b", "16k", rate)[1].monthly_usd for rate in (0.5, 2.4, 5.0, 19.0)]
    assert all(after >= before / 1.05 for before, after in itertools.pairwise(months))


def test_the_command_and_its_json() -> None:
    words = ["recommend", "--model", "70b", "--context", "16k", "--concurrent-requests", "128", "--disaggregated"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0 and "PREFILL AND DECODE APART" in result.stdout
    assert "state the load as a rate" in " ".join(result.stdout.split())
    answer = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    cell = answer["cells"][0]
    assert cell["prefill"]["instance"] and cell["decode"]["tpot_seconds"] < 0.05 and cell["kv_transfer_seconds"] > 0
    assert cell["disaggregated"]["measured"] is False
    alone = cell["output_tokens_per_second"] / 1024
    assert cell["disaggregated"]["requests_per_second"] == pytest.approx(alone)
    assert cell["disaggregated"]["served_at_target"] >= alone
    survived = CliRunner().invoke(main, [*words, "--survive", "machine"]).stdout
    assert "at most" in survived and "after the loss of a machine" in survived


def test_without_a_network_that_is_known_there_is_no_pair() -> None:
    solved = recommended(
        {"model": "70b", "context": "16k", "concurrent_requests": 32, "providers": "lambda"}, Catalog()
    )
    assert disaggregated(solved, 0) is None or all(
        solved.candidate(i).network_gbps > 0 for i in range(len(solved.offers))
    )


CHEAPER_IRELAND = """provider: aws
regions:
  - {id: eu-west-1, country: Ireland, areas: [eu, europe]}
prices:
  - {purchase: on-demand, as_of: '2026-11-01', source: a contract, usd_per_hour: {p4d.24xlarge: {eu-west-1: 23}}}
"""


def test_two_pools_of_an_area_stand_in_one_region_at_its_prices(tmp_path: Path) -> None:
    """p5 is sold in eu-north-1 alone, p4d is cheaper in eu-west-1: both stand in eu-north-1, by hand 2 x 58.8928 and
    4 x 23.71569 an hour."""
    (tmp_path / "regions").mkdir()
    (tmp_path / "regions" / "aws.yaml").write_text(CHEAPER_IRELAND)
    load = {"model": "70b", "context": "16k", "requests_per_second": 3.0, "confidence": 0.5, "near_tie_fraction": 0}
    options = {**load, "region": "eu", "instances": "aws/p5.48xlarge,aws/p4d.24xlarge"}
    solved = recommended(options, Catalog(tmp_path))
    assert {candidate.instance: candidate.region for candidate in solved.question.candidates} == {
        "aws/p5.48xlarge": "eu-north-1",
        "aws/p4d.24xlarge": "eu-west-1",
    }
    answer = disaggregated(solved, 0)
    assert answer is not None and answer.n_instances == {"aws/p5.48xlarge": 2, "aws/p4d.24xlarge": 4}
    assert {pool.record()["region"] for pool in (answer.prefill, answer.decode)} == {"eu-north-1"}
    assert answer.monthly_usd == pytest.approx(730 * (2 * 58.8928 + 4 * 23.71569), rel=1e-12)

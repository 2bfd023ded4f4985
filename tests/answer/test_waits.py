"""The waits of an answer are those of one of its replicas, sized by itself."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import pytest

from sheetgen.api import recommend, size

ASKED = {"model": "70b", "users": 640, "input_tokens": 15_360, "output_tokens": 1024, "as_of": "2026-08-01"}


def test_waits_are_those_of_a_replica() -> None:
    """A request alone; every place taken; and half of the people at each of two replicas, of whom the last waits for
    all others."""
    [cell] = recommend(**ASKED)["cells"]
    waits, n_replicas = cell["waits"], cell["n_replicas"]
    places, rest = divmod(waits["places"], n_replicas)
    assert rest == 0 and n_replicas == 2

    def sized(requests: int) -> dict[str, float]:
        names = ("gpu", "weight_dtype", "tensor_parallel_size")
        lengths = {name: ASKED[name] for name in ("input_tokens", "output_tokens")}
        return size(
            model="70b", context_tokens=16_384, concurrent_requests=requests, max_num_seqs=places,
            **{name: cell[name] for name in names}, **lengths,
        )  # fmt: skip

    assert waits["ttft_alone_seconds"] == pytest.approx(sized(1)["ttft_seconds"], rel=1e-9)
    full = sized(places)
    assert waits["ttft_full_seconds"] == pytest.approx(full["ttft_seconds"], rel=1e-9)
    assert waits["tpot_full_seconds"] == pytest.approx(full["tpot_seconds"], rel=1e-9)
    last = sized(ASKED["users"] // n_replicas)["ttft_seconds"]
    turn = full["ttft_seconds"] + (ASKED["output_tokens"] - 1) * full["tpot_seconds"]
    assert waits["same_moment"] == {
        "people": 640,
        "turn_seconds": pytest.approx(turn, rel=1e-9),
        "last_ttft_seconds": pytest.approx(last, rel=1e-9),
        "last_answer_seconds": pytest.approx(last + turn - full["ttft_seconds"], rel=1e-9),
    }
    assert waits["ttft_alone_seconds"] < cell["ttft_seconds"] < waits["ttft_full_seconds"] < last


def test_the_mean_wait_is_by_the_lengths_of_the_queue() -> None:
    """Each further request that waits is so much rarer than the one before it; by Little's law their number is the rate
    times the wait."""
    [cell] = recommend(model="8b", requests_per_second=4.5, input_tokens=3072, output_tokens=256)["cells"]
    places, wait, share = cell["n_places"], cell["waits"]["mean_wait_seconds"], cell["wait_fraction"]
    turn = cell["waits"]["ttft_full_seconds"] + 255 * cell["waits"]["tpot_full_seconds"]
    busy = 4.5 * turn / places
    waiting = sum(length * share * (1 - busy) * busy**length for length in range(2000))
    assert 0 < busy < 1 and wait * share * 4.5 == pytest.approx(waiting, rel=0.02)
    [at_once] = recommend(model="8b", concurrent_requests=3)["cells"]
    assert at_once["waits"]["mean_wait_seconds"] is None


def test_nobody_waits_where_there_are_places_for_all() -> None:
    [cell] = recommend(model="70b", users=10, input_tokens=3072, output_tokens=1024)["cells"]
    assert cell["waits"]["places"] >= 10 and cell["waits"]["same_moment"]["last_ttft_seconds"] is None


def test_the_latest_first_word_is_with_the_wait_at_the_confidence() -> None:
    """A full replica's first token, as much slower as the confidence allows, after the wait for a place."""
    [cell] = recommend(**ASKED)["cells"]
    [even] = recommend(**ASKED, confidence=0.5, instances=cell["instance"])["cells"]
    waits, low, high = cell["waits"], cell["ttft_seconds"], cell["ttft_seconds_high"]
    slower = (high / low) ** (NormalDist().inv_cdf(0.7) / NormalDist().inv_cdf(0.9))
    late = waits["mean_wait_seconds"] + slower * waits["ttft_full_seconds"]
    assert waits["late_ttft_seconds"] == pytest.approx(late, rel=1e-4)
    central = even["waits"]
    assert central["late_ttft_seconds"] - central["mean_wait_seconds"] == pytest.approx(central["ttft_full_seconds"])


@pytest.mark.parametrize("users", [200, 640])
def test_a_chance_is_of_the_load_that_is_measured(users: int) -> None:
    """At the level of the chance a replica with so many requests just keeps its targets, and all replicas have the
    places of the load."""
    [cell] = recommend(**ASKED | {"users": users})["cells"]
    at, target = cell["sure_at"], cell["tpot_target_seconds"]
    spread = math.log(cell["tpot_seconds_high"] / cell["tpot_seconds"]) / NormalDist().inv_cdf(0.9)
    chance = NormalDist().cdf(math.log(target / at["tpot_seconds"]) / spread)
    assert chance == pytest.approx(cell["chance_of"]["tpot"], abs=1e-3)
    names = ("gpu", "weight_dtype", "tensor_parallel_size", "data_parallel_size")
    alone = size(
        model="70b", context_tokens=16_384, input_tokens=15_360, output_tokens=1024,
        concurrent_requests=at["requests"], **{name: cell[name] for name in names},
    )  # fmt: skip
    assert alone["tpot_seconds"] == pytest.approx(at["tpot_seconds"], rel=1e-9)
    assert at["requests"] <= cell["n_places"] / cell["n_replicas"]


def test_the_first_word_of_99_in_100_is_by_the_lengths_of_the_queue() -> None:
    """A request that finds every place taken and so many before it waits for as many to end, each after as long as the
    places share a turn: no more than one in a hundred waits longer; where hardly any waits, that is a full replica's
    first word."""
    asked = {"model": "8b", "requests_per_second": 4.5, "input_tokens": 3072, "output_tokens": 256}
    [cell] = recommend(**asked, max_wait_fraction=0.3)["cells"]
    waits, share = cell["waits"], cell["wait_fraction"]
    full = waits["late_ttft_seconds"] - waits["mean_wait_seconds"]
    assert share > 0.02
    # Of those who wait the ends before their turn are of Poisson's law; each further one is as much rarer as busy.
    ends = cell["n_places"] / _turn_at_the_confidence(cell, 4.5)
    busy = 4.5 / ends
    wait = waits["p99_ttft_seconds"] - full

    def longer(queue: int) -> float:
        """That at most so many of the ends come in that time."""
        mean = ends * wait
        return sum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(queue + 1))

    exceed = share * sum((1 - busy) * busy**queue * longer(queue) for queue in range(400))
    assert exceed == pytest.approx(0.01, rel=1e-3)
    [rare] = recommend(**asked, max_wait_fraction=0.0001)["cells"]
    assert rare["wait_fraction"] < 0.01
    at_once = rare["waits"]["late_ttft_seconds"] - rare["waits"]["mean_wait_seconds"]
    assert rare["waits"]["p99_ttft_seconds"] == pytest.approx(at_once)


def _turn_at_the_confidence(cell: dict[str, Any], rate: float) -> float:
    """From the mean wait, which is a turn over the places that the load leaves free."""
    wait, places = cell["waits"]["mean_wait_seconds"], cell["n_places"]
    return wait * places / (1 + rate * wait)


@pytest.mark.parametrize(("users", "is_enough"), [(200, True), (640, False)])
def test_the_machines_that_are_left_clear_a_turn_a_place(users: int, is_enough: bool) -> None:
    """A full replica's places, each for a turn at the confidence, an hour; and beside it what the peak brings."""
    [cell] = recommend(**ASKED | {"users": users}, confidence=0.5)["cells"]
    waits, n_replicas = cell["waits"], cell["n_replicas"]
    places = cell["n_places"] / n_replicas
    turn = waits["ttft_full_seconds"] + (ASKED["output_tokens"] - 1) * waits["tpot_full_seconds"]
    left = n_replicas * (cell["n_instances"] - 1) / cell["n_instances"]
    assert waits["cleared_per_hour_less_machine"] == pytest.approx(left * places * 3600 / turn, rel=1e-6)
    [surer] = recommend(**ASKED | {"users": users}, instances=cell["instance"])["cells"]
    of_one = [c["waits"]["cleared_per_hour_less_machine"] / max(1, c["n_instances"] - 1) for c in (cell, surer)]
    assert cell["n_instances"] == 1 or of_one[1] < of_one[0]
    [at_once] = recommend(model="8b", concurrent_requests=3)["cells"]
    assert at_once["waits"]["cleared_per_hour_less_machine"] is None

"""The waits of an answer are those of one of its replicas, sized by itself."""

from __future__ import annotations

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

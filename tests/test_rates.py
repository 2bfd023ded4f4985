"""Loads as people have them: people, requests at once, or a rate; and what follows from a rate."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pandas
import pytest
from amounts import amount
from answers import document
from hypothesis import given, settings
from hypothesis import strategies as st
from option_values import Options

import sheetgen
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.question.sheet_question import ask
from sheetgen.sizing.rates import (
    exact_wait_fraction,
    first_z,
    loaded_replicas,
    mean_batch_requests,
    mean_wait_seconds,
    next_in_flight,
    next_z,
    replica_requests_per_second,
    z_of,
)

MODELS = ("8b", "70b", "gpt-oss-120b")
CONTEXTS = ("4k", "16k", "128k")


def answer(**options: object) -> dict[str, Any]:
    return sheetgen.recommend(as_of="2026-11-20", **options)


def closes(answer: dict[str, Any], answer_tokens: int) -> bool:
    """True where Little's law holds of what an answer says."""
    turn = answer["ttft_seconds"] + (answer_tokens - 1) * answer["tpot_seconds"]
    return math.isclose(answer["concurrent_requests"], answer["requests_per_second"] * turn, rel_tol=1e-9)


def erlang_c(n: int, a: float) -> float:
    """The share that waits, by the definition: from a sum of weights, each over its largest."""
    logs = [k * math.log(a) - math.lgamma(k + 1) for k in range(n)]
    logs.append(n * math.log(a) - math.lgamma(n + 1) + math.log(n / (n - a)))
    most = max(logs)
    return math.exp(logs[-1] - most) / sum(math.exp(log - most) for log in logs)


@pytest.mark.parametrize("n,a", [(1, 0.5), (2, 1.0), (5, 3.0), (40, 33.0), (1000, 950.0), (20_000, 19_800.0)])
def test_exact_erlang_c(n: int, a: float) -> None:
    assert exact_wait_fraction(n, a) == pytest.approx(erlang_c(n, a), rel=1e-9)
    queue = sum(k * (a / n) ** k * (1 - a / n) for k in range(round(40 / (1 - a / n))))  # where every place is taken
    assert mean_wait_seconds(7.0, n, a) == pytest.approx(queue * 7 / a, rel=1e-6)  # by Little's law
    assert exact_wait_fraction(n, n) == 1 and exact_wait_fraction(n, 0) == 0
    assert exact_wait_fraction(1, a) == pytest.approx(min(a, 1))  # one place: who comes waits as long as it is taken


@given(st.floats(0.0001, 0.999))
def test_room_for_chance_is_that_of_the_rule(share: float) -> None:
    z = z_of(share)
    below, density = math.erfc(-z / math.sqrt(2)) / 2, math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    assert 1 / (1 + z * below / density) == pytest.approx(share, rel=1e-9)
    assert float(first_z(share)) >= float(next_z(float(first_z(share)), share)) >= z * (1 - 1e-12)


@pytest.mark.parametrize("share,most_off", [(0.05, 0.004), (0.2, 0.02)])
def test_the_rule_comes_near_to_exact_erlang_c(share: float, most_off: float) -> None:
    """With many places within half a point; with few, more requests wait than the rule says."""
    z = z_of(share)
    for load in (100, 1_000, 10_000):
        places = math.ceil(load + z * math.sqrt(load))
        assert exact_wait_fraction(places, load) == pytest.approx(share, abs=most_off)
    assert exact_wait_fraction(math.ceil(2 + z * math.sqrt(2)), 2) < 2 * share


LOADS_OF_TABLE = (0.5, 1, 2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000)
SHARES_OF_TABLE = (0.2, 0.05, 0.01)


def table() -> str:
    """The table of docs/rates.md: places by the rule, and what share waits by exact Erlang-C."""
    rows = [
        f"| {load:,} |"
        + "".join(
            f" {n:,}: {100 * exact_wait_fraction(n, load):.1f} % |"
            for share in SHARES_OF_TABLE
            for n in [math.ceil(load + z_of(share) * math.sqrt(load))]
        )
        for load in LOADS_OF_TABLE
    ]
    head = "| Offered load, erlangs |" + "".join(f" {100 * share:g} % asked |" for share in SHARES_OF_TABLE)
    return "\n".join([head, "|" + " ---: |" * (1 + len(SHARES_OF_TABLE)), *rows])


def test_the_table_of_the_docs() -> None:
    page = (Path(__file__).parent.parent / "docs" / "rates.md").read_text(encoding="utf-8")
    assert table() in page, f"docs/rates.md should have this table:\n{table()}"


@pytest.mark.long
def test_users_are_people_and_what_is_in_flight_is_said() -> None:
    people = answer(model="70b", context="16k", users=200, active_fraction=0.1)
    stated = answer(model="70b", context="16k", concurrent_requests=20)
    assert people["concurrent_requests"] == stated["concurrent_requests"] == 20
    assert people["monthly_usd"] == stated["monthly_usd"]
    assert people["usd_per_user_per_month"] == pytest.approx(people["monthly_usd"] / 200)
    assert people["inputs"]["users"] == 200 and stated["inputs"]["users"] is None
    assert answer(model="8b", users="200k", active_fraction=0.01)["concurrent_requests"] == 2000
    assert answer(model="8b", users=201, active_fraction=0.1)["concurrent_requests"] == 21


def test_a_day_is_one_formula() -> None:
    by_day = answer(model="8b", requests_per_day="200k", peak_hour_share=0.2, burst_factor=1.5)
    assert by_day["requests_per_second"] == pytest.approx(200_000 * 0.2 / 3600 * 1.5)
    usual = {"model": "8b", "peak_hour_share": 0.2, "burst_factor": 1.5}
    rate = by_day["requests_per_second"]
    assert answer(**usual, requests_per_second=rate, utilization=1 / (24 * 0.2 * 1.5))["cells"] == by_day["cells"]
    people = answer(**usual, users=20_000, requests_per_user_per_day=10)["cells"][0]
    names = ("users", "usd_per_user_per_month", "by_requests_per_day", "more_people", "waits")
    of_people = {name: people[name] for name in names}
    assert people["waits"] | {"same_moment": None} == by_day["cells"][0]["waits"]
    assert people == by_day["cells"][0] | of_people and people["users"] == 20_000
    tokens = answer(**usual, tokens_per_day=200_000 * 4096)["cells"][0]
    assert tokens == by_day["cells"][0]
    usual = answer(model="8b", requests_per_day=200_000)
    assert usual["requests_per_second"] == pytest.approx(200_000 * 0.12 / 3600 * 1.3)


@pytest.mark.parametrize(
    "options,problem",
    [
        ({"users": 3, "requests_per_second": 1}, "users and requests_per_second are given together"),
        ({"users": 3, "concurrent_requests": 3}, "concurrent_requests and users are given together"),
        ({"users": 3, "requests_per_user_per_day": 0}, "requests_per_user_per_day is '0'. Write a number from 0.001"),
        ({"users": 3, "requests_per_user_per_day": "off"}, "requests_per_user_per_day is 'off'. Write a number"),
        ({"active_fraction": 0.5}, "active_fraction is of users, and users are not given"),
        ({"requests_per_second": 1, "requests_per_day": 100}, "Keep one"),
        ({"requests_per_second": 0}, "must be above 0"),
        ({"requests_per_second": "-1"}, "It must be a number from 0"),
        ({"users": "1.5"}, "users is '1.5'. It must be a whole number"),
        ({"requests_per_day": "many"}, "requests_per_day is 'many'"),
        ({"requests_per_second": 1, "max_wait_fraction": 0}, "max_wait_fraction"),
    ],
)
def test_what_is_no_load_is_refused(options: Options, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        answer(model="8b", **options)


LOADS = st.tuples(st.sampled_from(MODELS), st.sampled_from(CONTEXTS), st.floats(-2, 2.5))


CATALOG = Catalog()


def solved(model: str, context: str, **options: object) -> Solution:
    return solve(ask(CATALOG, {"models": model, "context_tokens": context, **options}))


@settings(max_examples=amount(4, 60), deadline=None)
@given(
    LOADS, st.sampled_from([0.3, 0.02]), st.sampled_from([{}, {"survive": "replica"}, {"extra_headroom_fraction": 0.3}])
)
def test_what_follows_from_a_rate(load: tuple[str, str, float], share: float, more: Options) -> None:
    model, context, exponent = load
    rate, usual = 10**exponent, {"model": model, "context": context, "max_wait_fraction": 0.1, **more}
    answered = solved(**usual, requests_per_second=rate)
    choice, tokens = answered.choices[0], answered.question.workloads[0].output_tokens
    assert choice.offer is not None and choice.cheapest is not None
    turn = choice.ttft_seconds + (tokens - 1) * choice.tpot_seconds
    assert math.isclose(answered.question.loads[0].concurrent_requests, rate * turn, rel_tol=1e-9)
    assert choice.tpot_seconds <= 0.1 and choice.served_at_target >= rate and choice.in_flight <= choice.memory_holds
    with_headroom = rate * (1 + more.get("extra_headroom_fraction", 0))
    assert choice.output_tokens_per_second == pytest.approx(with_headroom * tokens)
    # Asked for what it serves, the same hardware still holds it; for more, or fewer that wait, nothing is cheaper.
    instance = answered.candidate(choice.offer).instance
    served = solved(**usual, requests_per_second=choice.served_at_target, instances=instance).choices[0]
    assert served.n_instances <= choice.n_instances
    assert served.served_at_target >= choice.served_at_target * (1 - 1e-12)
    for harder in ({"requests_per_second": rate * 1.05}, {"requests_per_second": rate, "max_wait_fraction": share / 4}):
        dearer = solved(**(usual | harder)).choices[0]
        assert dearer.cheapest and dearer.cheapest.usd >= choice.cheapest.usd * (1 - 1e-12)


@pytest.mark.some(3)
@pytest.mark.parametrize("index", range(amount(6, 40)))
def test_the_operating_point_is_where_arrivals_and_speed_agree(index: int) -> None:
    """Never below it, and at most 0.1 % above, however much of a step is shared experts."""
    draw = random.Random(f"operating point {index}")
    model, context = draw.choice(("gpt-oss-120b", "deepseek-v3", "70b")), draw.choice(CONTEXTS)
    answered = solved(model, context, requests_per_second=10 ** draw.uniform(-2, 2))
    choice = answered.choices[0]
    assert choice.offer is not None
    at_chosen = answered.grid.along("chosen", {"load": [0], "offer": [choice.offer]})
    at_chosen.put(("chosen",), {"n_replicas": [choice.n_replicas]})
    at_chosen.evaluate((loaded_replicas, replica_requests_per_second), ("chosen",))
    in_flight = at_chosen.spread("paced_requests", ("chosen",))
    for _ in range(1000):  # slow, but sure
        at_chosen.put(("chosen",), {"in_flight": in_flight})
        at_chosen.evaluate((mean_batch_requests, next_in_flight), ("chosen",))
        in_flight = at_chosen.spread("next_in_flight", ("chosen",))
    assert 1 - 1e-9 <= choice.in_flight / (float(in_flight[0]) * choice.n_replicas) <= 1.001


def test_a_frame_of_rates_is_what_each_alone_is() -> None:
    rows = [{"requests_per_second": 3.0}, {"requests_per_day": 50_000}, {"users": 700}, {"requests_per_second": 900.0}]
    rows += [{"users": 700, "active_fraction": 0.01}, {"concurrent_requests": 7}, {"tokens_per_day": 1e7}]
    rows = [{"model": "8b", "gpu": "h100", **row} for row in rows]
    frame = sheetgen.size_frame(pandas.DataFrame(rows))
    for i, row in enumerate(rows):
        alone = sheetgen.size(**row)
        for name in ("concurrent_requests", "tpot_seconds", "kv_bytes", "output_tokens_per_second", "queue"):
            value = frame[name][i]
            assert value == alone[name] or (alone[name] is None and pandas.isna(value)), (row, name)


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.44, 0.6])
@pytest.mark.parametrize("layout", [{"gpu": "h100", "tensor_parallel_size": 4}, {"gpu": "b200"}])
def test_size_says_what_a_rate_has_in_flight(rate: float, layout: Options) -> None:
    answer = sheetgen.size(model="70b", context="16k", requests_per_second=rate, **layout)
    if answer["requests_per_second"] >= answer["max_requests_per_second"]:
        assert answer["queue"] and answer["ttft_seconds"] is None
        assert answer["concurrent_requests"] == answer["running_requests"]
    else:
        assert closes(answer, 1024) and answer["queue"] is None
        whole = sheetgen.size(
            model="70b", context="16k", concurrent_requests=math.ceil(answer["concurrent_requests"]), **layout
        )
        assert answer["tpot_seconds"] == whole["tpot_seconds"] and answer["kv_bytes"] == whole["kv_bytes"]
        assert answer["output_tokens_per_second"] == pytest.approx(rate * 1024)


def test_a_days_requests_are_what_a_host_is_paid_for() -> None:
    """200,000 a day in 730 hours: their tokens at the host's prices, whatever the peak is."""
    catalog = Catalog()
    for more in ({}, {"peak_hour_share": 0.2, "burst_factor": 2}):
        solved = recommended({"model": "70b", "context": "16k", "requests_per_day": "200k", **more}, catalog)
        (cell,) = document(solved)["cells"]
        host, requests = cell["hosted"][0], 200_000 * 730 / 24
        tokens = 15_360 * host["input_usd_per_million"] + 1024 * host["output_usd_per_million"]
        assert host["monthly_usd"] == pytest.approx(requests * tokens / 1e6, rel=1e-9)

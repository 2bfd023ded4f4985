"""Supply and money of the example, counted again from its services' rows in plain loops."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from typing import Any

import pytest
from plan_books import example, example_record

from sheetgen.catalog import Catalog

CATALOG = Catalog()
QUANTILES = ("p10", "p50", "p90")


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return example_record()


COMMITTED, OWNED_GPU = "azure/Standard_NC40ads_H100_v5", "nvidia-h100-nvl-94gb"
N_COMMITTED, LAST_COMMITTED = 7, 1  # machines, and the last quarter in which they are there
OWNED_GPUS, LAST_OWNED = 16, 4
LIMITED, QUOTA = "azure/Standard_NC80adis_H100_v5", 20


def needed(record: dict[str, Any], quantile: str, stay: bool = False) -> dict[str, list[int]]:
    """By instance and quarter the whole machines for all replicas there. The loss of one replica is to be survived: of
    services that share machines it starts anew on a spare part that holds the largest replica, and the second replica
    of a floor is such a part; a service that has its machines alone has one replica more itself. stay: of those alone
    that are there in the next quarter too."""
    quarters = [quarter["quarter"] for quarter in record["quarters"]]
    filled: dict[str, list[list[tuple[int, int, int]]]] = {}
    there = {(row["id"], row["instance"], row["quarter"]) for row in record["services"]}
    n_services = Counter((name, quarter) for _, name, quarter in there)
    for row in record["services"]:
        if row["quantile"] == quantile and row["instance"]:
            per_machine = CATALOG.instance(row["instance"]).gpu_count // (
                row["tensor_parallel_size"] * row["data_parallel_size"]
            )
            machines = filled.setdefault(row["instance"], [[] for _ in quarters])
            floor = row["set_by"] == "floor"
            assert not floor or row["n_replicas"] == 2
            q = quarters.index(row["quarter"])
            if not stay or (row["id"], row["instance"], quarters[min(q + 1, len(quarters) - 1)]) in there:
                machines[q].append((row["n_replicas"] - floor, per_machine, row["n_replicas"]))

    def whole(services: list[tuple[int, int, int]], n_there: int) -> int:
        up = sum(n / per_machine for _, per_machine, n in services)
        safe = sum(n / per_machine for n, per_machine, _ in services) + max(
            (1 / per_machine for _, per_machine, _ in services), default=0
        )
        return math.ceil((up if n_there == 1 else max(up, safe)) - 1e-9)

    return {
        name: [whole(services, n_services[name, quarter]) for quarter, services in zip(quarters, machines, strict=True)]
        for name, machines in filled.items()
    }


def there_already(record: dict[str, Any], name: str) -> list[int]:
    """By quarter the machines of a type that are committed, and those that the pool serves: all of it is one type's."""
    (pooled,) = {supply["instance"] for supply in record["supply"] if supply["owned"]}
    assert CATALOG.instance(pooled).gpu == OWNED_GPU
    owned = OWNED_GPUS // CATALOG.instance(pooled).gpu_count * (name == pooled)
    committed = N_COMMITTED * (name == COMMITTED)
    return [owned * (q <= LAST_OWNED) + committed * (q <= LAST_COMMITTED) for q in range(len(record["quarters"]))]


def bought(supplied: list[int], many: list[int], stay: list[int]) -> list[int]:
    """What must be bought: what is short, and for a quarter more if it is still idle then and its service is still
    there."""
    short = [max(0, count - free) for count, free in zip(many, supplied, strict=True)]
    return [
        max(short[q], min(short[q - 1], max(0, stay[q - 1] - supplied[q]))) if q else short[q] for q in range(len(many))
    ]


def test_supply_and_money(record: dict[str, Any]) -> None:
    """The pool of 16 GPUs serves to 2028-Q1, the commitment of 7 machines to 2027-Q2; prices fall by 10 % a year
    from the quarter of the plan's day on, which is the one before the first."""
    discount = 0.9
    price = {name: CATALOG.instance(name).price("on-demand").usd_per_hour for name in needed(record, "p90")}  # type: ignore[union-attr]
    reserved = CATALOG.instance(COMMITTED).price("reserved-1yr").usd_per_hour  # type: ignore[union-attr]
    for quantile in QUANTILES:
        stay = needed(record, quantile, stay=True)
        buys = {
            name: bought(there_already(record, name), many, stay[name])
            for name, many in needed(record, quantile).items()
        }
        for q, money in enumerate(record["money"]):
            usd = (N_COMMITTED * reserved * discount * 730 * 3 if q <= LAST_COMMITTED else 0) + (
                90000 if q <= LAST_OWNED else 0
            )
            for name, many in buys.items():
                # Of those beyond the quota 15 of the first quarter's 90 days are not there: it is raised on 16 January.
                late = max(0, many[q] - QUOTA) * 15 / 90 if q == 0 and name == LIMITED else 0
                usd += (many[q] - late) * price[name] * discount * 0.9 ** ((1 + q) / 4) * 730 * 3
            assert money[f"{quantile}_usd"] == pytest.approx(usd, rel=1e-12), (quantile, q)
    machines, stay = needed(record, "p90"), needed(record, "p90", stay=True)
    quarters = [quarter["quarter"] for quarter in record["quarters"]]
    for supply in record["supply"]:
        name, q = supply["instance"], quarters.index(supply["quarter"])
        assert supply["needed"] == machines[name][q]
        assert supply["kept"] == max(machines[name][q], *stay[name][max(0, q - 1) : q], 0)
        assert supply["gap"] == bought(there_already(record, name), machines[name], stay[name])[q]
        assert supply["owned"] + supply["committed"] == there_already(record, name)[q]
        assert supply["idle"] == supply["owned"] + supply["committed"] + supply["gap"] - supply["needed"]


def test_services_add_up_to_the_machines(record: dict[str, Any]) -> None:
    whole = {(supply["quarter"], supply["instance"]): supply["needed"] - supply["spare"] for supply in record["supply"]}
    shares: dict[tuple[str, str], float] = {}
    for row in record["services"]:
        if row["quantile"] == "p90" and row["instance"]:
            key = row["quarter"], row["instance"]
            shares[key] = shares.get(key, 0) + row["n_instances"]
    assert shares == {key: pytest.approx(whole[key]) for key in shares}


def test_services_and_what_is_shared_sum_to_the_plan(record: dict[str, Any]) -> None:
    """They came to another sum than the plan, and nothing said why."""
    for money in record["money"]:
        owners = [owner for owner in record["owners"] if owner["quarter"] == money["quarter"]]
        for name in QUANTILES:
            of_it = [row for row in record["services"] if (row["quarter"], row["quantile"]) == (money["quarter"], name)]
            by_owner = {owner["owner"]: owner[f"{name}_usd"] for owner in owners}
            for owner in {row["owner"] for row in of_it}:
                mine = math.fsum(3 * row["monthly_usd"] for row in of_it if row["owner"] == owner)
                assert by_owner[owner] == pytest.approx(mine)
            assert math.fsum(by_owner.values()) == pytest.approx(money[f"{name}_usd"], abs=1e-6)
    # The first quarter at p90, by hand: what is shared is a spare machine of two GPUs, at what those of its type cost
    # on average, 8 of them owned. It was below 0, by what owned and committed machines cost less than on demand.
    (shared,) = [
        owner["p90_usd"] for owner in record["owners"] if owner["owner"] is None and owner["quarter"] == "2027-Q1"
    ]
    (kind,) = [
        supply for supply in record["supply"] if supply["instance"] == LIMITED and supply["quarter"] == "2027-Q1"
    ]
    assert (kind["spare"], kind["owned"], kind["idle"]) == (1, 8, 0)
    price = CATALOG.instance(LIMITED).price("on-demand").usd_per_hour  # type: ignore[union-attr]
    late = (kind["gap"] - QUOTA) * 15 / 90  # of those beyond the quota
    quarter = 0.9 * 730 * 3 * price * 0.9 ** (1 / 4)
    assert shared == pytest.approx((90000 + quarter * (kind["gap"] - late)) / kind["needed"])


def test_utilization_is_the_load_over_the_places(record: dict[str, Any]) -> None:
    """At p50 on what is bought for p90: on average a tenth of it, which the plan did not say. Of services whose prompts
    set the replicas it was the share of the places alone."""
    quarters = [quarter["quarter"] for quarter in record["quarters"]]
    services = [service["id"] for service in record["inputs"]["services"]]
    for supply in record["supply"]:
        machines = supply["owned"] + supply["committed"] + supply["gap"]
        peak = mean = 0.0
        for row in record["services"]:
            if (row["quarter"], row["quantile"], row["instance"]) == (supply["quarter"], "p50", supply["instance"]):
                gpus = CATALOG.instance(row["instance"]).gpu_count
                n = gpus // row["tensor_parallel_size"]
                busy = row["concurrent_requests"] / row["requests_per_replica"] / n
                s = services.index(row["id"])
                prefill = example().answer.hardware.placed[s, quarters.index(row["quarter"])].replica_prefill_seconds
                if row["requests_per_second"]:  # the prompts, which fill at most 0.8 of the time
                    busy = max(busy, row["requests_per_second"] * prefill / 0.8 / n)
                peak += busy
                # A day's requests, 12 % of them in the busiest hour and 1.3 times that in its busiest minutes.
                is_mean = row["requests_per_second"] and row["id"] != "legacy-rag"
                mean += busy / (24 * 0.12 * 1.3 if is_mean else 1)
        assert supply["peak_utilization"] == pytest.approx(peak / machines)
        if supply["quarter"] >= "2027-Q3":
            assert supply["utilization"] == pytest.approx(mean / machines)
    assert max(supply["utilization"] for supply in record["supply"]) < 0.17


def test_orders_add_up_to_the_gap(record: dict[str, Any]) -> None:
    bought: dict[str, float] = {}
    for quarter in record["quarters"]:
        for decision in record["decisions"]:
            if decision["needed_from"] == quarter["from"] and decision["what"] in ("order", "release"):
                sign = 1 if decision["what"] == "order" else -1
                bought[decision["instance"]] = bought.get(decision["instance"], 0) + sign * decision["n_instances"]
                lead = datetime.date.fromisoformat(decision["needed_from"]) - datetime.date.fromisoformat(
                    decision["order_by"]
                )
                assert lead.days == (30 if sign == 1 else 0)
        for supply in record["supply"]:
            if supply["quarter"] == quarter["quarter"]:
                assert bought.get(supply["instance"], 0) == supply["gap"]


def test_the_ramp_and_the_retirement(record: dict[str, Any]) -> None:
    at_once = {
        (row["id"], row["quarter"]): row["concurrent_requests"]
        for row in record["services"]
        if row["quantile"] == "p50"
    }
    quarters = [quarter["quarter"] for quarter in record["quarters"]]
    assert [at_once["agents", quarter] for quarter in quarters] == pytest.approx([0, 30, 90, 150, 150, 150])
    assert [at_once["legacy-rag", quarter] > 0 for quarter in quarters] == [True, True, False, False, False, False]
    rates = [
        row["requests_per_second"]
        for row in record["services"]
        if row["id"] == "support-chat" and row["quantile"] == "p50"
    ]
    first = 100000 * 1.6 * 6 * 0.12 / 3600 * 1.3
    assert rates == pytest.approx([first * 1.12**q for q in range(6)])

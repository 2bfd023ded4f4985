"""A load's tokens at hosts of the same model, beside renting hardware for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from sheetgen.answer.answer_record import HostedRecord
from sheetgen.answer.solution import Solution
from sheetgen.answer.ways_to_pay import hosted_tokens, unit_costs
from sheetgen.catalog.hosted import HostedPrice
from sheetgen.sizing import cost

SHOWN_HOSTS = 3


def hosts_of(solved: Solution, row: int) -> tuple[HostedRecord, ...]:
    """The three cheapest live hosts for a load; none where the model has no hosts, or nothing holds the load, as the
    number of tokens in a month follows from its people."""
    question, tokens = solved.question, hosted_tokens(solved, row)
    best = by_host(
        question.live_hosts(solved.model_of(row).model),
        tokens["hosted_million_input_tokens"],
        tokens["hosted_million_output_tokens"],
        question.loads[row].input_tokens,
        float(solved.at(row)["cached_fraction"][0]),
    )
    day_of = question.reference.hosted.day_of
    return tuple(hosted(price, day_of(price), usd, _break_even(solved, row, usd)) for usd, price in best[:SHOWN_HOSTS])


def hosted(price: HostedPrice, read_on: str, usd: float, break_even: Mapping[str, float]) -> HostedRecord:
    """The record of a host that charges so many dollars a month, at a price that was read on a day."""
    return HostedRecord(
        price.host,
        price.name,
        price.input_usd_per_million,
        price.cached_usd_per_million,
        price.output_usd_per_million,
        price.precision,
        price.source,
        read_on,
        price.deprecation_date,
        usd,
        {purchase: share if share <= 1 else None for purchase, share in break_even.items()},
        break_even,
    )


def by_host(
    prices: Iterable[HostedPrice],
    million_input_tokens: float,
    million_output_tokens: float,
    input_tokens: float,
    cached_fraction: float = 0.0,
) -> list[tuple[float, HostedPrice]]:
    """By host that accepts the prompt, its charge for a month's tokens in US dollars at its lowest price for them; the
    cheapest host first, compared in whole cents."""
    best: dict[str, tuple[float, float, HostedPrice]] = {}
    for host_price in prices:
        usd = float(
            cost.hosted_monthly_usd(
                million_input_tokens,
                million_output_tokens,
                input_tokens,
                cached_fraction,
                host_price.input_usd_per_million,
                _number(host_price.cached_usd_per_million),
                host_price.output_usd_per_million,
                _number(host_price.max_input_tokens),
            )
        )
        cents = float(cost.hosted_monthly_cents(usd, cost.CONSTANTS["cents_in_a_dollar"]))
        if not math.isnan(usd) and (host_price.host not in best or cents < best[host_price.host][0]):
            best[host_price.host] = cents, usd, host_price
    return [(usd, price) for _, usd, price in sorted(best.values(), key=lambda entry: (entry[0], entry[2].host))]


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _break_even(solved: Solution, row: int, usd: float) -> dict[str, float]:
    quantities = {
        **unit_costs(solved, row),
        **hosted_tokens(solved, row),
        "utilization": solved.question.settings.utilization,
        "hosted_monthly_usd": usd,
    }
    return {
        purchase: float(cost.hosted_break_even_utilization.of({**quantities, "monthly_usd": rental.monthly_usd}))
        for purchase, rentals in solved.by_purchase.items()
        if (rental := rentals[row])
    }

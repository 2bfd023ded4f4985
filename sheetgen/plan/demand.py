"""The demand that each service is expected to serve: by quarter, and by quantile in closed form.

A band {p10, p50, p90} is a lognormal on either side of its p50, so that all three numbers come out as they were
written; spreads of several bands add as squares. Growth is another band each quarter, and independent of the last, or
the same for all quarters.
"""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, exponential, formula, natural_log, power, ratio, where
from sheetgen.units import FACTOR, TWO_DECIMALS


@formula("Spread below", FACTOR)
def spread_below(p10: Quantity, p50: Quantity, z_of_p90: Quantity) -> Any:
    """How far a band reaches down, as the standard deviation of a logarithm.

    Source: the quantiles of a lognormal. Check: 80 to 100 is 0.174.
    """
    return natural_log(p50 / p10) / z_of_p90


@formula("Spread above", FACTOR)
def spread_above(p50: Quantity, p90: Quantity, z_of_p90: Quantity) -> Any:
    """How far a band reaches up, as the standard deviation of a logarithm.

    Source: the quantiles of a lognormal. Check: 100 to 130 is 0.205.
    """
    return natural_log(p90 / p50) / z_of_p90


def combined(*spreads: Any) -> Any:
    """The spread of a product of independent factors: squares add."""
    return power(sum(spread * spread for spread in spreads), 1 / 2)


@formula("Requests of a day", TWO_DECIMALS)
def requests_of_users(dau: Quantity, sessions_per_user_day: Quantity, requests_per_session: Quantity) -> Any:
    """Requests of a day: users of a day x sessions of each x requests of a session.

    Source: definition.
    """
    return dau * sessions_per_user_day * requests_per_session


@formula("Requests of a day", TWO_DECIMALS)
def requests_of_month(per_month: Quantity, days_per_month: Quantity) -> Any:
    """A day's share of what comes in a month.

    Source: definition.
    """
    return per_month / days_per_month


@formula("Requests", TWO_DECIMALS)
def requests_of_tokens(tokens: Quantity, tokens_per_request: Quantity) -> Any:
    """Requests behind so many tokens.

    Source: tokens over those of a mean request.
    """
    return ratio(tokens, tokens_per_request)


@formula("Growth since the start", FACTOR)
def grown(growth_fraction: Quantity, quarters_grown: Quantity) -> Any:
    """Demand over that of the first quarter, after so many quarters of the same growth.

    Source: compound growth. Check: 12 % over five quarters is 1.76.
    """
    return power(1 + growth_fraction, quarters_grown)


@formula("Spread of the growth", FACTOR)
def grown_spread(growth_spread: Quantity, quarters_grown: Quantity, persists: Quantity) -> Any:
    """The spread of so many quarters' growth: of one that persists, or of as many that are independent.

    Source: variances of independent logarithms add; those of one logarithm add as it does itself. Check: 0.1 over four
            quarters is 0.4 where it persists, else 0.2.
    """
    return growth_spread * where(persists == 1, quarters_grown, power(quarters_grown, 1 / 2))


@formula("Demand", TWO_DECIMALS)
def demand(
    stated_demand: Quantity,
    growth: Quantity,
    share_live: Quantity,
    z: Quantity,
    spread_below_p50: Quantity,
    spread_above_p50: Quantity,
) -> Any:
    """The load that a service is to take at peak in a quarter, at a quantile: requests per second, or requests at once
    where those were stated. share_live: 0 before the launch and from the retirement on, the ramp's share after the
    launch.

    Source: a quantile of a lognormal, with a spread on either side of its median.
    """
    spread = where(z < 0, spread_below_p50, spread_above_p50)
    return stated_demand * growth * share_live * exponential(z * spread)

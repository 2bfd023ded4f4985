"""What one user and one million tokens cost, from a month's bill and the speed of the hardware at its load."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, both, formula, is_number, number_where, ratio
from sheetgen.units import ONE_DECIMAL, USD_CENTS

SECONDS_IN_AN_HOUR = 3600
TOKENS_IN_A_MILLION = 10**6


@formula("$ per user and month", USD_CENTS)
def usd_per_user_per_month(monthly_usd: Quantity, users: Quantity) -> Any:
    """A month's cost over the people served, in US dollars.

    Source: users = requests in flight / the share of users active at the peak.
    """
    return number_where(both(is_number(monthly_usd), users > 0), ratio(monthly_usd, users))


@formula("Million answer tokens a month", ONE_DECIMAL)
def million_output_tokens_per_month(
    output_tokens_per_second: Quantity, utilization: Quantity, hours_per_month: Quantity, seconds_in_an_hour: Quantity,
    tokens_in_a_million: Quantity,
) -> Any:  # fmt: skip
    """Tokens of answers that all replicas write in a month, in millions.

    They do this load in `utilization` of the hours that they run, and nothing in the rest.

    Source: tokens per second x seconds of the hours run x utilization.
    """
    seconds = seconds_in_an_hour * hours_per_month * utilization
    return number_where(is_number(output_tokens_per_second), output_tokens_per_second * seconds / tokens_in_a_million)


@formula("Million prompt tokens a month", ONE_DECIMAL)
def million_input_tokens_per_month(
    million_output_tokens_per_month: Quantity, input_tokens: Quantity, output_tokens: Quantity
) -> Any:
    """Tokens of prompts that all replicas take in beside those answers, in millions; cached ones too.

    Source: each request brings its prompt once and its answer once.
    """
    known = both(is_number(million_output_tokens_per_month), output_tokens > 0)
    return number_where(known, million_output_tokens_per_month * ratio(input_tokens, output_tokens))


def _per_million(usd: Quantity, millions: Quantity, *known: Quantity) -> Any:
    return number_where(both(*known, is_number(millions), millions > 0), ratio(usd, millions))


@formula("$ per million prompt tokens", USD_CENTS)
def usd_per_million_input_tokens(
    monthly_usd: Quantity, prefill_fraction: Quantity, million_input_tokens_per_month: Quantity
) -> Any:
    """The part of the bill that pays for reading prompts, over the prompts' tokens of a month, in US dollars.

    Source: the bill is split by GPU time: the share of it that prefill takes.
    """
    known = is_number(monthly_usd), is_number(prefill_fraction)
    return _per_million(monthly_usd * prefill_fraction, million_input_tokens_per_month, *known)


@formula("$ per million answer tokens", USD_CENTS)
def usd_per_million_output_tokens(
    monthly_usd: Quantity, prefill_fraction: Quantity, million_output_tokens_per_month: Quantity
) -> Any:
    """The rest of the bill, over the answers' tokens of a month, in US dollars.

    Source: the bill is split by GPU time: what prefill does not take, writing the answers takes.
    """
    known = is_number(monthly_usd), is_number(prefill_fraction)
    return _per_million(monthly_usd * (1 - prefill_fraction), million_output_tokens_per_month, *known)


@formula("$ per million tokens", USD_CENTS)
def usd_per_million_tokens(
    monthly_usd: Quantity, million_input_tokens_per_month: Quantity, million_output_tokens_per_month: Quantity
) -> Any:
    """The whole bill over all tokens of a month, prompts and answers together, in US dollars.

    Source: definition. Check: prompts and answers at their own rates add up to the bill.
    """
    millions = million_input_tokens_per_month + million_output_tokens_per_month
    known = (
        is_number(monthly_usd),
        is_number(million_input_tokens_per_month),
        is_number(million_output_tokens_per_month),
    )
    return number_where(both(*known, million_output_tokens_per_month > 0), ratio(monthly_usd, millions))

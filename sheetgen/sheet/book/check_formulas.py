"""Formulas of the Checks sheet: 1 where something holds, 0 where it does not."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import both, either, formula, is_number, where
from sheetgen.units import PLAIN


@formula("A load is classified", PLAIN)
def classified(fit_word: Any) -> Any:
    """1 where the load has one of the four words.

    Source: definition.
    """
    return where(
        either(fit_word == "fits", fit_word == "tight", fit_word == "none fits", fit_word == "over limit"),
        1,
        0,
    )


@formula("A load is held", PLAIN)
def load_is_held(n_instances: Any, sequences: Any, n_replicas: Any, load_requests: Any) -> Any:
    """1 where the replicas hold the load, or nothing was recommended.

    Source: sequences per replica x replicas >= load.
    """
    replicas = where(is_number(n_replicas), n_replicas, 0)
    return where(is_number(n_instances), where(sequences * replicas >= load_requests, 1, 0), 1)


@formula("Money adds up", PLAIN)
def money_adds_up(n_instances: Any, hourly_price: Any, paid_hours_per_month: Any, monthly_usd: Any) -> Any:
    """1 where instances x price x hours is the month's cost, or nothing was recommended.

    Source: definition.
    """
    count = where(is_number(n_instances), n_instances, 0)
    price = where(is_number(hourly_price), hourly_price, 0)
    month = where(is_number(monthly_usd), monthly_usd, 0)
    return where(count * price * paid_hours_per_month == month, 1, 0)


@formula("Tokens add up", PLAIN)
def tokens_add_up(
    usd_per_million_input_tokens: Any, million_input_tokens_per_month: Any, usd_per_million_output_tokens: Any,
    million_output_tokens_per_month: Any, monthly_usd: Any, tolerance: Any,
) -> Any:  # fmt: skip
    """1 where prompt and answer tokens at their prices are the month's cost, or a price of them is not known.

    Source: the tolerance below the checks; rounding alone may differ.
    """
    prompts = usd_per_million_input_tokens * million_input_tokens_per_month
    gap = prompts + usd_per_million_output_tokens * million_output_tokens_per_month - monthly_usd
    near = where(gap * gap <= tolerance * monthly_usd * (tolerance * monthly_usd), 1, 0)
    return where(both(is_number(usd_per_million_input_tokens), is_number(usd_per_million_output_tokens)), near, 1)


@formula("The same", PLAIN)
def same_amount(amount: Any, other: Any, tolerance: Any) -> Any:
    """1 where two amounts are the same but for rounding, or neither is known.

    Source: the tolerance below the checks.
    """
    gap = amount - other
    near = where(gap * gap <= tolerance * other * (tolerance * other), 1, 0)
    apart = where(either(is_number(amount), is_number(other)), 0, 1)
    return where(both(is_number(amount), is_number(other)), near, apart)


@formula("The same", PLAIN)
def same_value(value: Any, other: Any) -> Any:
    """1 where two cells hold the same.

    Source: definition.
    """
    return where(value == other, 1, 0)


@formula("What-if agrees", PLAIN)
def what_if_agrees(n_same: Any, n_choices: Any, same_cost: Any) -> Any:
    """1 where What-if has the cost that Workings has, or its choices ask for another load.

    Source: the choices compared above.
    """
    return where(n_same == n_choices, same_cost, 1)

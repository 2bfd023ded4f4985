"""From whole instances to money: hourly, monthly. Money rounds once, when it is shown."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import both, formula, is_number, number_where, ratio, round_up, where
from sheetgen.sizing import parallelism
from sheetgen.units import USD, USD_CENTS


def _spend(n_instances: Any, price_usd_per_hour: Any) -> Any:
    return n_instances * price_usd_per_hour


@formula("Instances")
def n_instances(
    shared_replicas: Any,
    staged_instances: Any,
    replicas_per_instance: Any,
    n_heads: Any,
    full_kv_heads: Any,
    windowed_kv_heads: Any,
    larger_tensor_parallel_size: Any,
    price_usd_per_hour: Any,
) -> Any:
    """Whole instances for all replicas; none where the instance cannot hold the load or has no price.

    A replica without stages never spans instances: each instance carries floor(GPUs / TP) of them. A
    replica with stages takes one whole instance a stage, and only at the largest TP of the instance.

    Source: INTERFACE: ceil(n_replicas / floor(gpu_count / TP)).
    """
    shared = round_up(ratio(shared_replicas, replicas_per_instance))
    may_span = parallelism.may_span_instances(n_heads, full_kv_heads, windowed_kv_heads, larger_tensor_parallel_size)
    staged = number_where(both(is_number(staged_instances), may_span), staged_instances)
    held = where(is_number(shared_replicas), shared, staged)
    return number_where(both(replicas_per_instance >= 1, is_number(price_usd_per_hour)), held)


@formula("$ per month", USD)
def monthly_usd_of_instances(n_instances: Any, price_usd_per_hour: Any, hours_per_month: Any) -> Any:
    """What these instances cost in a month, in US dollars; none where there are none.

    Source: hourly_usd and monthly_usd.
    """
    return number_where(is_number(n_instances), _spend(n_instances, price_usd_per_hour) * hours_per_month)


@formula("$ per hour", USD_CENTS)
def hourly_usd(n_instances: Any, price_usd_per_hour: Any) -> Any:
    """What all instances cost in an hour, in US dollars; none where there are none.

    Source: the provider's price of one instance.
    """
    return number_where(is_number(n_instances), _spend(n_instances, price_usd_per_hour))


@formula("$ per month", USD)
def monthly_usd(hourly_usd: Any, hours_per_month: Any) -> Any:
    """What all instances cost in a month, in US dollars, run all the time; none where there are none.

    Source: 730 hours a month (8,760 / 12), as cloud price lists count.
    """
    return number_where(is_number(hourly_usd), hourly_usd * hours_per_month)

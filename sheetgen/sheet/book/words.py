"""Small formulas of the workbook that are words or look-ups of the page, not sizing."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import both, formula, is_number, is_text, join_text, number_where, percent_text, ratio, where
from sheetgen.sizing.parallelism import headroom_fraction, sure_headroom_fraction
from sheetgen.units import ONE_DECIMAL, PERCENT, PLAIN, TEXT, WHOLE


@formula("Precision in use", TEXT)
def dtype_in_use(asked_dtype: Any, own_dtype: Any) -> Any:
    """The precision asked for, or the checkpoint's own where that is `auto`.

    Source: INTERFACE (dtypes).
    """
    return where(asked_dtype == "auto", own_dtype, asked_dtype)


@formula("Amount", ONE_DECIMAL)
def in_unit(amount_bytes: Any, unit_bytes: Any) -> Any:
    """Bytes in the unit of the page: GiB (2^30 bytes) or GB (10^9 bytes).

    Source: definition.
    """
    return amount_bytes / unit_bytes


@formula("Prompt tokens")
def prompt_tokens(context_tokens: Any, answer_tokens: Any) -> Any:
    """Tokens of the prompt: the context less the answer.

    Source: definition.
    """
    return where(context_tokens > answer_tokens, context_tokens - answer_tokens, 0)


@formula("Load in words", TEXT)
def load_words(workload: Any, concurrent_requests: Any) -> Any:
    """A load in words: its workload, and the requests in flight.

    Source: the tiers on Inputs.
    """
    return join_text(workload, ", ", concurrent_requests, " in flight")


@formula("Position of a profile", PLAIN)
def profile_position(gpu_row: Any, tp_position: Any, n_tensor_parallel_sizes: Any) -> Any:
    """The column of a GPU and tensor-parallel size among the profiles, from 1.

    Source: the order of the Profiles sheet.
    """
    return (gpu_row - 1) * n_tensor_parallel_sizes + tp_position


@formula("Row of non-torch memory", PLAIN)
def non_torch_position(tp_position: Any, is_older_gpu: Any, n_tensor_parallel_sizes: Any) -> Any:
    """The row of a tensor-parallel size among the figures on Inputs: those of older GPUs stand below.

    Source: the order of the Inputs sheet.
    """
    return tp_position + is_older_gpu * n_tensor_parallel_sizes


@formula("Position of a load", PLAIN)
def cell_position(model_row: Any, workload_position: Any, tier_position: Any, n_workloads: Any, n_tiers: Any) -> Any:
    """The row of a model, workload and tier among the loads, from 1.

    Source: the order of the Workings sheet.
    """
    return ((model_row - 1) * n_workloads + workload_position - 1) * n_tiers + tier_position


@formula("What to rent", TEXT)
def rent_words(n_instances: Any, instance: Any) -> Any:
    """The number of instances and their name, or the reason why there are none.

    Source: the choice on Workings.
    """
    return where(is_number(n_instances), join_text(n_instances, " × ", instance), instance)


@formula("Fit", TEXT)
def fit_word(n_instances: Any, sure_headroom: Any, tight_below: Any, within_limit: Any) -> Any:
    """fits, tight (little headroom), none fits, or over limit.

    Source: sure headroom against the share on Inputs.
    """
    held = where(is_number(n_instances), where(sure_headroom < tight_below, "tight", "fits"), "none fits")
    return where(within_limit == 1, held, "over limit")


@formula("GPUs of the replicas")
def n_gpus(n_replicas: Any, tensor_parallel_size: Any, pipeline_stages: Any) -> Any:
    """GPUs that the replicas use: replicas x TP x PP.

    Source: INTERFACE (GPUs of one replica).
    """
    return number_where(is_number(n_replicas), n_replicas * tensor_parallel_size * pipeline_stages)


@formula("Headroom", PERCENT)
def headroom(load_requests: Any, sequences: Any, n_replicas: Any) -> Any:
    """The share of what the replicas could hold that the load leaves free.

    Source: 1 - load / (replicas x sequences per replica).
    """
    return number_where(is_number(n_replicas), headroom_fraction(load_requests, sequences, n_replicas))


@formula("Sure headroom", PERCENT)
def sure_headroom(load_requests: Any, sure_sequences: Any, n_replicas: Any) -> Any:
    """The same where every KV pool comes out at the low end of its 80 % error band; a fit is tight by it.

    Source: 1 - load / (replicas x sequences at the band's low end), at least 0.
    """
    return number_where(is_number(n_replicas), sure_headroom_fraction(load_requests, sure_sequences, n_replicas))


@formula("Dearer by", PERCENT)
def dearer_by(monthly_usd: Any, runner_up_monthly_usd: Any) -> Any:
    """By how much the runner-up costs more.

    Source: definition.
    """
    return number_where(is_number(runner_up_monthly_usd), ratio(runner_up_monthly_usd - monthly_usd, monthly_usd))


@formula("Instance", TEXT)
def instance_id(provider: Any, type: Any) -> Any:
    """The name of an instance in the catalogs: provider/type; none in a spare row.

    Source: INTERFACE (instance names).
    """
    return where(is_text(type), join_text(provider, "/", type), "-")


@formula("Age in days", WHOLE)
def age_days(as_of: Any, price_date: Any) -> Any:
    """Days from a price's date to the sheet's date.

    Source: definition.
    """
    return number_where(is_number(price_date), as_of - price_date)


@formula("Price age", TEXT)
def age_word(age_days: Any, stale_after_days: Any, price_usd_per_hour: Any, listed_usd_per_hour: Any) -> Any:
    """`old` where the price is older than the sheet allows; `typed here` where it is not the one that was listed, whose
    date and source then say nothing of it.

    Source: the limit on Inputs, and the price as listed.
    """
    age = where(is_number(age_days), where(age_days > stale_after_days, "old", "ok"), "-")
    overrides = both(is_number(price_usd_per_hour), price_usd_per_hour != listed_usd_per_hour)
    return where(overrides, "typed here", age)


@formula("The answer's load", TEXT)
def headline_words(load_words: Any, asked: Any, concurrent_requests: Any) -> Any:
    """The load that the answer is for; where the number chosen is no tier any more, that it is not.

    Source: the load's row on Workings.
    """
    return where(asked == concurrent_requests, load_words, join_text(load_words, "; ", asked, " is no tier now"))


@formula("Hardware in words", TEXT)
def hardware_words(
    n_instances: Any, n_gpus: Any, gpu_name: Any, tensor_parallel_size: Any, pipeline_stages: Any, n_replicas: Any
) -> Any:
    """GPUs, parallel sizes and replicas of the recommended hardware.

    Source: the choice on Workings.
    """
    stages = where(pipeline_stages > 1, join_text(", PP ", pipeline_stages), "")
    replicas = join_text(n_replicas, where(n_replicas == 1, " replica", " replicas"))
    words = join_text(n_gpus, "× ", gpu_name, ", TP ", tensor_parallel_size, stages, ", ", replicas)
    return where(is_number(n_instances), words, "-")


@formula("Room in words", TEXT)
def room_words(n_instances: Any, n_replicas: Any, sequences: Any, sure_headroom: Any) -> Any:
    """How many requests the recommended hardware holds, and what is free.

    Source: sequences per replica x replicas.
    """
    words = join_text("holds ", sequences * n_replicas, " requests, ", percent_text(sure_headroom), " surely free")
    return where(is_number(n_instances), words, "-")


@formula("Runner-up in words", TEXT)
def runner_up_words(runner_up: Any, dearer_by: Any) -> Any:
    """The cheapest with another GPU or provider, and by how much it is dearer.

    Source: the runner-up on Workings.
    """
    percent = percent_text(dearer_by)
    by = where(dearer_by > 0, join_text(where(percent == "0%", "under 1%", percent), " dearer"), "at the same price")
    return where(is_number(dearer_by), join_text("then ", runner_up, ", ", by), "no other GPU or provider")


@formula("Check", TEXT)
def check_word(holds: Any) -> Any:
    """OK, or CHECK where a check fails.

    Source: definition.
    """
    return where(holds == 1, "OK", "CHECK")

"""Figures of the workbook that are those of a page, not sizing; below them those of Money and What-if."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.book.sheets import Source
from sheetgen.formula import (
    Formula,
    both,
    cheapest,
    either,
    first_where,
    formula,
    greatest_number,
    is_blank,
    is_number,
    largest,
    number_where,
    ratio,
    round_down,
    round_nearest,
    round_up,
    smallest,
    where,
)
from sheetgen.report.sentences import OK
from sheetgen.sizing import choice, kv_cache, parallelism, rates
from sheetgen.units import AUTO, ONE_DECIMAL, PERCENT, PLAIN, PUBLISHED, RECOMMENDED, TEXT, TWO_DECIMALS, USD, WHOLE


@formula("Precision in use", TEXT)
def kv_dtype_in_use(asked_dtype: Any, own_dtype: Any) -> Any:
    """The precision requested of the KV cache, or the model's own where that is `auto`.

    Source: INTERFACE (dtypes).
    """
    return where(asked_dtype == AUTO, own_dtype, asked_dtype)


@formula("Precision in use", TEXT)
def weight_dtype_in_use(asked_dtype: Any, own_dtype: Any, recommended_dtype: Any) -> Any:
    """The precision requested of the weights; the published one where that is `published` (or `auto`, its old name),
    and the one recommended where it is `recommended` and the model has one.

    Source: INTERFACE (dtypes).
    """
    recommended = where(is_blank(recommended_dtype), own_dtype, recommended_dtype)
    is_own = either(asked_dtype == PUBLISHED, asked_dtype == AUTO)
    return where(asked_dtype == RECOMMENDED, recommended, where(is_own, own_dtype, asked_dtype))


@formula("Amount", ONE_DECIMAL)
def in_unit(amount_bytes: Any, unit_bytes: Any) -> Any:
    """Bytes in the unit of the page: GiB (2^30 bytes) or GB (10^9 bytes).

    Source: definition.
    """
    return amount_bytes / unit_bytes


@formula("Prompt tokens")
def prompt_tokens(context_tokens: Any, answer_tokens: Any) -> Any:
    """Tokens of the prompt: the context less the answer."""
    return where(context_tokens > answer_tokens, context_tokens - answer_tokens, 0)


@formula("Prompt tokens")
def stated_prompt_tokens(context_tokens: Any, answer_tokens: Any, prompt_tokens: Any) -> Any:
    """Tokens of the prompt where it is stated: at most what the answer leaves of the context, which may be that of
    longer requests."""
    return smallest(prompt_tokens, where(context_tokens > answer_tokens, context_tokens - answer_tokens, 0))


def prompt_of(inputs: Mapping[str, Source], context: Source, answer: Source) -> tuple[Formula, dict[str, Source]]:
    """The formula of a prompt, and what it reads. inputs: those of the workbook, with the prompt where it is stated."""
    env = {"context_tokens": context, "answer_tokens": answer}
    stated = inputs.get("prompt_asked")
    return (prompt_tokens, env) if stated is None else (stated_prompt_tokens, env | {"prompt_tokens": stated})


@formula("Stated at once")
def stated_requests(tier: Any) -> Any:
    """Requests at once that were stated; 0 where the load is a rate.

    Source: the tiers on Inputs.
    """
    return where(is_number(tier), tier, 0)


@formula("Requests per second", TWO_DECIMALS)
def requests_per_second(tier: Any, peak_requests_per_second: Any) -> Any:
    """Requests that arrive in a second at peak; 0 where requests at once were stated.

    Source: Inputs.
    """
    return where(is_number(tier), 0, peak_requests_per_second)


@formula("People, stated")
def stated_people(requests_per_second: Any, users: Any) -> Any:
    """People as they were stated; 0 of requests at once.

    Source: Inputs.
    """
    return where(requests_per_second > 0, users, 0)


@formula("At once")
def in_flight(
    n_instances: Any,
    requests_per_second: Any,
    stated_requests: Any,
    ttft_seconds: Any,
    output_tokens: Any,
    tpot_seconds: Any,
) -> Any:
    """Requests at once: as stated, or of a rate what follows on the recommended hardware; 0 where there is none.

    Source: Little's law.
    """
    rate = rates.in_flight_at_peak(requests_per_second, ttft_seconds, output_tokens, tpot_seconds)
    return where(requests_per_second > 0, where(is_number(n_instances), rate, 0), stated_requests)


@formula("Served within the targets", TWO_DECIMALS)
def served_of_load(requests_per_second: Any, served_at_target: Any, served_requests_per_second: Any) -> Any:
    """The most requests at once within all targets, of a rate those per second.

    Source: served_at_target, served_requests_per_second.
    """
    return where(requests_per_second > 0, served_requests_per_second, served_at_target)


@formula("Requests of one instance, as the choice ranks them", TWO_DECIMALS)
def ranked_of_candidate(
    monthly_usd: Any,
    instance_month_usd: Any,
    requests_per_second: Any,
    replicas_per_instance: Any,
    requests_per_instance: Any,
    survive: Any,
    zones: Any,
    extra_headroom_fraction: Any,
    full_turn_seconds: Any,
    wait_z: Any,
    replica_prefill_seconds: Any,
    max_prefill_utilization: Any,
    tensor_parallel_size: Any,
    data_parallel_size: Any,
    gpu_count: Any,
) -> Any:
    """What one instance of the candidate serves within the targets: requests at once, of a rate its share of those
    per second; 0 where it cannot hold the load.

    Source: ranked_requests, with the instances that the month pays for.
    """
    count = round_nearest(ratio(monthly_usd, instance_month_usd))
    paced_requests = round_nearest(ratio(requests_per_instance, replicas_per_instance))
    served = rates.served_requests_per_second(
        count,
        replicas_per_instance,
        paced_requests,
        survive,
        zones,
        extra_headroom_fraction,
        full_turn_seconds,
        wait_z,
        replica_prefill_seconds,
        max_prefill_utilization,
    )
    ranked = rates.ranked_requests(
        requests_per_second,
        served,
        requests_per_instance,
        count,
        survive,
        tensor_parallel_size,
        data_parallel_size,
        gpu_count,
    )
    return where(is_number(monthly_usd), ranked, 0)


@formula("Position of a profile", PLAIN)
def profile_position(gpu_row: Any, layout_position: Any, n_plain_layouts: Any, plain_columns: Any) -> Any:
    """The column of a GPU and layout among the profiles, from 1: data-parallel layouts stand after all plain ones.

    In:     plain_columns, those before the data-parallel layouts of this GPU; 0 where it has none.
    Out:    1 where it has none: Candidates has 0 GPUs for them.
    Source: the order of the Profiles sheet.
    """
    plain = (gpu_row - 1) * n_plain_layouts + layout_position
    ranked = where(plain_columns > 0, plain_columns + layout_position - n_plain_layouts, 1)
    return where(layout_position <= n_plain_layouts, plain, ranked)


@formula("Row of non-torch memory", PLAIN)
def non_torch_position(tp_position: Any, is_older_gpu: Any, n_tensor_parallel_sizes: Any) -> Any:
    """The row of a tensor-parallel size among the figures on Inputs: those of older GPUs stand below.

    Source: the order of the Inputs sheet.
    """
    return tp_position + is_older_gpu * n_tensor_parallel_sizes


@formula("GPUs of the replicas")
def n_gpus(n_replicas: Any, tensor_parallel_size: Any, data_parallel_size: Any, pipeline_stages: Any) -> Any:
    """GPUs that the replicas use: replicas x TP x DP x PP.

    Source: INTERFACE (GPUs of one replica).
    """
    each = tensor_parallel_size * data_parallel_size * pipeline_stages
    return number_where(is_number(n_replicas), n_replicas * each)


@formula("Headroom", PERCENT)
def headroom(load_requests: Any, sequences: Any, data_parallel_size: Any, n_replicas: Any) -> Any:
    """The share of what the replicas could hold that the load leaves free.

    Source: 1 - load / (replicas x ranks x sequences of a rank).
    """
    free = parallelism.headroom_fraction(load_requests, sequences, data_parallel_size, n_replicas)
    return number_where(is_number(n_replicas), free)


@formula("More expensive by", PERCENT, within=[choice.is_alternative])
def dearer_by(monthly_usd: Any, second_usd: Any, is_alternative: Any) -> Any:
    """By how much the next cheapest costs more, where it is one that somebody would rent instead.

    Source: definition.
    """
    return number_where(is_alternative, ratio(second_usd - monthly_usd, monthly_usd))


@formula("Age in days", WHOLE)
def age_days(as_of: Any, price_date: Any) -> Any:
    """Days from a price's date to the sheet's date.

    Source: definition.
    """
    return number_where(is_number(price_date), as_of - price_date)


@formula("Order of a tier", PLAIN)
def tier_key(tier: Any, tier_place: Any, largest_tier: Any, n_tiers: Any) -> Any:
    """A number that orders the tiers: by requests at once, and where those are alike by place; the rate is the last."""
    return where(is_number(tier), tier, largest_tier + 1) * n_tiers + tier_place


@formula("Tokens a second, of each request")
def pace_each(tpot_seconds: Any, output_tokens: Any) -> Any:
    """Tokens a second that each request gets; none of an answer of one token, which has no time per token.

    Source: definition.
    """
    return number_where(both(is_number(tpot_seconds), output_tokens > 1), ratio(1, tpot_seconds))


# The Money sheet.


@formula("All models together", USD)
def together_usd(together: Any, sum_usd: Any, n_known: Any, n_models: Any) -> Any:
    """The sum over the models where they are meant together and each has an amount; else none."""
    return number_where(both(together == "yes", n_known == n_models), sum_usd)


# The What-if page: parts of one GPU, GPUs needed, cases, and sentences.


@formula("GPUs needed", PLAIN)
def gpus_needed(
    pipeline_stages: Any,
    sequences: Any,
    batch_limit: Any,
    load_requests: Any,
    survive: Any,
    zones: Any,
    tensor_parallel_size: Any,
    hardware_gpus: Any,
    machine_gpus: Any,
    within_limit: Any,
) -> Any:
    """GPUs of all replicas at this TP, whole instances not counted; none where it does not hold the load, the
    hardware has fewer GPUs, or the context is over the model's limit. Pipeline stages take whole machines.
    """
    paced = smallest(sequences, batch_limit * pipeline_stages)
    carried = where(pipeline_stages <= 1, round_down(machine_gpus / tensor_parallel_size), 1)
    count = parallelism.n_replicas(load_requests, paced, carried, survive, zones) * pipeline_stages
    whole = either(pipeline_stages <= 1, tensor_parallel_size == machine_gpus)
    known = both(paced >= 1, load_requests >= 1, whole, tensor_parallel_size <= hardware_gpus, within_limit == 1)
    return number_where(known, count * tensor_parallel_size)


@formula("Fewest GPUs", PLAIN, rows=["needed"])
def fewest_gpus(needed: Any) -> Any:
    """The fewest GPUs among the sizes; none where no size holds the load."""
    return cheapest(needed, "-")


@formula("Column of the TP", PLAIN, rows=["needed", "sizes"])
def tp_position(asked: Any, fewest: Any, needed: Any, sizes: Any) -> Any:
    """Which size the page tells of: the one rented or requested, else that with the fewest GPUs, else the largest."""
    overrides = first_where(sizes == asked)
    best = first_where(needed == fewest)
    last = first_where(sizes == greatest_number(sizes))
    # Where no size holds the load all of them are "-", which a spreadsheet finds equal to each other.
    return where(overrides > 0, overrides, where(is_number(fewest), best, last))


@formula("Overhead", ONE_DECIMAL)
def other_bytes(overhead_bytes_per_gpu: Any, activation_bytes_per_gpu: Any, activations_in_budget: Any) -> Any:
    """Memory outside torch and CUDA graphs, in bytes: the overhead without the activations in it."""
    return overhead_bytes_per_gpu - activations_in_budget * activation_bytes_per_gpu


@formula("KV cache in use", ONE_DECIMAL)
def kv_in_use_bytes(load_requests: Any, sequences: Any, steady_bytes: Any, kv_budget_bytes_per_gpu: Any) -> Any:
    """What the requests that one replica holds keep of a GPU's pool, in bytes; at most the pool."""
    return largest(0, smallest(smallest(load_requests, sequences) * steady_bytes, kv_budget_bytes_per_gpu))


@formula("KV cache free", ONE_DECIMAL)
def kv_free_bytes(kv_budget_bytes_per_gpu: Any, kv_in_use_bytes: Any) -> Any:
    """What is left of a GPU's pool, in bytes."""
    return largest(0, kv_budget_bytes_per_gpu - kv_in_use_bytes)


@formula("Not used", ONE_DECIMAL)
def kept_back_bytes(
    gpu_memory_bytes: Any,
    weights_bytes: Any,
    activation_bytes: Any,
    other_bytes: Any,
    kv_in_use_bytes: Any,
    kv_free_bytes: Any,
) -> Any:
    """What the engine leaves alone of the memory that it sees, in bytes; 0 where the parts are larger."""
    parts = weights_bytes + activation_bytes + other_bytes + kv_in_use_bytes + kv_free_bytes
    return largest(0, gpu_memory_bytes - parts)


@formula("All requests fit", PLAIN, within=parallelism.SHARES_OF_A_STAGE)
def all_fit(
    stage_weights_fraction: Any,
    stage_fraction: Any,
    charged: Any,
    kept: Any,
    kv_block_bytes: Any,
    load_requests: Any,
    pipeline_stages: Any,
    kv_budget_bytes_per_gpu: Any,
    layer_budget_bytes: Any,
    paid_layer_bytes: Any,
    n_layers: Any,
    kv_cache_memory_bytes: Any,
    set_pool_is_limit: Any,
) -> Any:
    """1 where all requests fit one replica at this context, on its fullest stage."""
    pool, share = parallelism.fullest_stage(
        stage_weights_fraction,
        stage_fraction,
        pipeline_stages,
        kv_budget_bytes_per_gpu,
        layer_budget_bytes,
        paid_layer_bytes,
        n_layers,
        kv_cache_memory_bytes,
        set_pool_is_limit,
    )
    block = kv_block_bytes * share
    needed = kv_cache.pool_for(load_requests, charged * block, kept * block)
    return where(both(pipeline_stages >= 1, needed <= pool), 1, 0)


@formula("Tried")
def middle_tokens(low: Any, high: Any, halves: Any) -> Any:
    """The context half-way between what fits and what may not."""
    return round_up((low + high) / halves)


@formula("Fits up to")
def next_low(fits: Any, tried: Any, low: Any) -> Any:
    """The longest context that is known to fit."""
    return where(fits == 1, tried, low)


@formula("Not beyond")
def next_high(fits: Any, tried: Any, low: Any, high: Any) -> Any:
    """The longest context that may fit."""
    return where(fits == 1, high, largest(tried - 1, low))


@formula("Size in use", PLAIN)
def size_in_use(rented: Any, asked: Any) -> Any:
    """The tensor-parallel size of what is rented of the chosen hardware, else the one requested."""
    return where(is_number(rented), rented, asked)


@formula("Amount", ONE_DECIMAL)
def bill_in_unit(
    amount_bytes: Any, unit_bytes: Any, tensor_parallel_size: Any, hardware_gpus: Any, choices_state: Any
) -> Any:
    """A part of the memory in the unit of the page; none at a size that the hardware does not have."""
    return number_where(both(choices_state == OK, tensor_parallel_size <= hardware_gpus), amount_bytes / unit_bytes)


@formula("Requests at once that one replica holds")
def requests_held(
    sequences: Any, pipeline_stages: Any, tensor_parallel_size: Any, hardware_gpus: Any, choices_state: Any
) -> Any:
    """Sequences of a replica on these GPUs; none at a size that the hardware does not have, or that needs stages."""
    known = both(choices_state == OK, tensor_parallel_size <= hardware_gpus, pipeline_stages <= 1)
    return number_where(known, sequences)


@formula("Longest context")
def longest_words(longest: Any, choices_state: Any, runs_weights: Any, cache_runs: Any, attention_runs: Any) -> Any:
    """The longest context for all requests; none where the choices have no answer, or the hardware runs none of it."""
    return number_where(both(choices_state == OK, runs_weights >= 1, cache_runs == 1, attention_runs == 1), longest)


@formula("$ per month", USD)
def case_monthly_usd(monthly_usd: Any, price_factor: Any) -> Any:
    """A month's cost with all prices times a factor, which leaves the choice; none where nothing holds the load."""
    return number_where(is_number(monthly_usd), monthly_usd * price_factor)


@formula("Moves $ per month by", USD)
def swing_usd(low_usd: Any, high_usd: Any) -> Any:
    """How far a driver moves the month's cost between its low and its high end."""
    return number_where(both(is_number(low_usd), is_number(high_usd)), largest(low_usd - high_usd, high_usd - low_usd))


@formula("of the base", PERCENT)
def swing_share(swing_usd: Any, base_usd: Any) -> Any:
    """The same as a share of the base."""
    known = both(is_number(swing_usd), is_number(base_usd))
    return number_where(known, where(known, swing_usd, 0) / where(known, base_usd, 1))


@formula("Which", TEXT, rows=["swings"])
def swing_word(swing_usd: Any, swings: Any) -> Any:
    """`most` for the driver that moves the month's cost most."""
    return where(is_number(swing_usd), where(swing_usd == greatest_number(swings), "most", "less"), "-")

"""Figures of the workbook that are those of a page, not sizing; below them those of Money and Decision."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from sheetgen.book.sheets import Source
from sheetgen.formula import (
    Formula,
    Quantity,
    Value,
    both,
    either,
    first_where,
    formula,
    greatest_where,
    is_blank,
    is_number,
    is_number_in_row,
    is_text,
    largest,
    least_where,
    number_where,
    ratio,
    round_nearest,
    round_up,
    smallest,
    where,
)
from sheetgen.sizing import choice, parallelism, rates
from sheetgen.units import AUTO, ONE_DECIMAL, PERCENT, PLAIN, PUBLISHED, RECOMMENDED, TEXT, TWO_DECIMALS, USD, WHOLE


@formula("Precision in use", TEXT)
def kv_dtype_in_use(asked_dtype: Value, own_dtype: Value) -> Value:
    """The precision requested of the KV cache, or the model's own where that is `auto`.

    Source: INTERFACE (dtypes).
    """
    return where(asked_dtype == AUTO, own_dtype, asked_dtype)


@formula("Precision in use", TEXT)
def weight_dtype_in_use(asked_dtype: Value, own_dtype: Value, recommended_dtype: Value) -> Value:
    """The precision requested of the weights; the published one where that is `published` (or `auto`, its old name),
    and the one recommended where it is `recommended` and the model has one.

    Source: INTERFACE (dtypes).
    """
    recommended = where(is_blank(recommended_dtype), own_dtype, recommended_dtype)
    is_own = either(asked_dtype == PUBLISHED, asked_dtype == AUTO)
    return where(asked_dtype == RECOMMENDED, recommended, where(is_own, own_dtype, asked_dtype))


@formula("Weights as they are said", TEXT)
def weights_in_words(mixed_weights: Value, weight_dtype: Value, own_weight_dtype: Value, dtype_words: Value) -> Value:
    """The name of the weights' precision: FP8; as published of a checkpoint that mixes two, FP4 experts, FP8 rest.

    Source: the checkpoints of the catalog.
    """
    is_mixed = both(is_text(mixed_weights), weight_dtype == own_weight_dtype)
    return where(is_mixed, mixed_weights, dtype_words)


@formula("Amount", ONE_DECIMAL)
def in_unit(amount_bytes: Quantity, unit_bytes: Quantity) -> Quantity:
    """Bytes in the unit of the page: GiB (2^30 bytes) or GB (10^9 bytes).

    Source: definition.
    """
    return amount_bytes / unit_bytes


@formula("Prompt tokens")
def prompt_tokens(context_tokens: Quantity, answer_tokens: Quantity) -> Value:
    """Tokens of the prompt: the context less the answer."""
    return where(context_tokens > answer_tokens, context_tokens - answer_tokens, 0)


@formula("Prompt tokens")
def stated_prompt_tokens(context_tokens: Quantity, answer_tokens: Quantity, prompt_tokens: Quantity) -> Value:
    """Tokens of the prompt where it is stated: at most what the answer leaves of the context, which may be that of
    longer requests."""
    return smallest(prompt_tokens, where(context_tokens > answer_tokens, context_tokens - answer_tokens, 0))


def prompt_of(inputs: Mapping[str, Source], context: Source, answer: Source) -> tuple[Formula, dict[str, Source]]:
    """The formula of a prompt, and what it reads. inputs: those of the workbook, with the prompt where it is stated."""
    env = {"context_tokens": context, "answer_tokens": answer}
    stated = inputs.get("prompt_asked")
    return (prompt_tokens, env) if stated is None else (stated_prompt_tokens, env | {"prompt_tokens": stated})


def followed(default: Formula) -> Formula:
    """A default target as Decision has it: none where the tokens typed there are no numbers."""

    @functools.wraps(default.function)
    def read(context_tokens: Quantity, answer_tokens: Quantity, *values: Quantity) -> Value:
        return number_where(both(is_number(context_tokens), is_number(answer_tokens)), default.function(*values))

    return replace(default, inputs=("context_tokens", "answer_tokens", *default.inputs), function=read)


@formula("Near tie in force", PERCENT)
def near_tie_in_force(takes_cheapest: Quantity, asked_cheapest_usd: Value, near_tie_fraction: Quantity) -> Value:
    """The near tie of a load's choice; 0 of the levels beside the answer, whose very cheapest is shown, but of an even
    chance where that is the answer.

    takes_cheapest: 0 the answer's own, 1 an even chance, above it another level.

    Source: INTERFACE (by_confidence: what is cheapest at each level).
    """
    is_beside = where(takes_cheapest > 1, 1, where(both(takes_cheapest == 1, is_number(asked_cheapest_usd)), 1, 0))
    return where(is_beside == 1, 0, near_tie_fraction)


@formula("Target of the case, ms", WHOLE)
def case_target_ms(target_ms: Quantity, followed_ms: Quantity, case_followed_ms: Quantity) -> Value:
    """The target of a case: that of its own tokens, where nobody typed over the one that follows the tokens.

    Source: INTERFACE (targets).
    """
    return where(target_ms == followed_ms, case_followed_ms, target_ms)


@formula("Stated at once")
def stated_requests(tier: Value) -> Value:
    """Requests at once that were stated; 0 where the load is a rate.

    Source: the tiers on Inputs.
    """
    return where(is_number(tier), tier, 0)


@formula("Requests per second", TWO_DECIMALS)
def requests_per_second(tier: Value, peak_requests_per_second: Quantity) -> Value:
    """Requests that arrive in a second at peak; 0 where requests at once were stated.

    Source: Inputs.
    """
    return where(is_number(tier), 0, peak_requests_per_second)


@formula("People, stated")
def stated_people(requests_per_second: Quantity, users: Quantity) -> Value:
    """People as they were stated; 0 of requests at once.

    Source: Inputs.
    """
    return where(requests_per_second > 0, users, 0)


@formula("At once")
def in_flight(
    n_instances: Quantity,
    requests_per_second: Quantity,
    stated_requests: Quantity,
    ttft_seconds: Quantity,
    output_tokens: Quantity,
    tpot_seconds: Quantity,
) -> Value:
    """Requests at once: as stated, or of a rate what follows on the recommended hardware; 0 where there is none.

    Source: Little's law.
    """
    rate = rates.in_flight_at_peak(requests_per_second, ttft_seconds, output_tokens, tpot_seconds)
    return where(requests_per_second > 0, where(is_number(n_instances), rate, 0), stated_requests)


@formula("Served within the targets", TWO_DECIMALS)
def served_of_load(
    requests_per_second: Quantity, served_at_target: Quantity, served_requests_per_second: Quantity
) -> Value:
    """The most requests at once within all targets, of a rate those per second.

    Source: served_at_target, served_requests_per_second.
    """
    return where(requests_per_second > 0, served_requests_per_second, served_at_target)


@formula("Requests of one instance, as the choice ranks them", TWO_DECIMALS)
def ranked_of_candidate(
    load_requests: Quantity,
    requests_per_second: Quantity,
    replicas_per_instance: Quantity,
    paced_requests: Quantity,
    survive: Quantity,
    zones: Quantity,
    extra_headroom_fraction: Quantity,
    full_turn_seconds: Quantity,
    wait_z: Quantity,
    replica_prefill_seconds: Quantity,
    max_prefill_utilization: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    gpu_count: Quantity,
) -> Value:
    """Load that one instance of the candidate serves within the targets: requests at once, of a rate its share of those
    per second.

    Source: ranked_requests; what ranks a candidate that cannot hold the load is never read.
    """
    replicas = parallelism.n_replicas(load_requests, paced_requests, replicas_per_instance, survive, zones)
    count = round_up(ratio(replicas, replicas_per_instance))
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
    return rates.ranked_requests(
        requests_per_second,
        served,
        parallelism.requests_per_instance(paced_requests, replicas_per_instance),
        count,
        survive,
        tensor_parallel_size,
        data_parallel_size,
        gpu_count,
    )


@formula("Suits the model and the load (2 in full)", TWO_DECIMALS)
def suitability_of_load(weights_on_candidate: Quantity, stated_load: Quantity, data_parallel_size: Quantity) -> Value:
    """How a candidate suits the model and the load; the places of a rate are those of whole replicas at least, whose
    prompts keep them busy, so that each of their ranks has a request.

    Source: suitability, rate_places.
    """
    requests = where(stated_load > 0, stated_load, data_parallel_size)
    return choice.suitability(weights_on_candidate, requests, data_parallel_size)


@formula("Position of a profile", PLAIN)
def profile_position(
    gpu_row: Quantity, layout_position: Quantity, n_plain_layouts: Quantity, plain_columns: Quantity
) -> Value:
    """The column of a GPU and layout among the profiles, from 1: data-parallel layouts stand after all plain ones.

    In:     plain_columns, those before the data-parallel layouts of this GPU; 0 where it has none.
    Out:    1 where it has none: Candidates has 0 GPUs for them.
    Source: the order of the Profiles sheet.
    """
    plain = (gpu_row - 1) * n_plain_layouts + layout_position
    ranked = where(plain_columns > 0, plain_columns + layout_position - n_plain_layouts, 1)
    return where(layout_position <= n_plain_layouts, plain, ranked)


@formula("Position by latents", PLAIN)
def latent_position(tp_position: Quantity, plain_fp8_latent: Quantity, n_tensor_parallel_sizes: Quantity) -> Value:
    """The place of a tensor-parallel size among those of GPUs that pack FP8 latents, and of those that keep them as
    they are, which stand behind.

    Source: the order of the columns at the right of Profiles.
    """
    return tp_position + where(plain_fp8_latent == 0, 0, n_tensor_parallel_sizes)


@formula("Row of non-torch memory", PLAIN)
def non_torch_position(tp_position: Quantity, is_older_gpu: Quantity, n_tensor_parallel_sizes: Quantity) -> Quantity:
    """The row of a tensor-parallel size among the figures on Inputs: those of older GPUs stand below.

    Source: the order of the Inputs sheet.
    """
    return tp_position + is_older_gpu * n_tensor_parallel_sizes


@formula("GPUs of the replicas")
def n_gpus(
    n_replicas: Quantity, tensor_parallel_size: Quantity, data_parallel_size: Quantity, pipeline_stages: Quantity
) -> Value:
    """GPUs that the replicas use: replicas x TP x DP x PP.

    Source: INTERFACE (GPUs of one replica).
    """
    gpus_per_replica = tensor_parallel_size * data_parallel_size * pipeline_stages
    return number_where(is_number(n_replicas), n_replicas * gpus_per_replica)


@formula("Headroom", PERCENT)
def headroom(load_requests: Quantity, sequences: Quantity, data_parallel_size: Quantity, n_replicas: Quantity) -> Value:
    """The share of what the replicas could hold that the load leaves free.

    Source: 1 - load / (replicas x ranks x sequences of a rank).
    """
    free = parallelism.headroom_fraction(load_requests, sequences, data_parallel_size, n_replicas)
    return number_where(is_number(n_replicas), free)


@formula("Requests of people in the busiest hour")
def hour_of_people(
    users: Quantity, requests_per_user_per_day: Quantity, peak_hour_share: Quantity, burst_factor: Quantity
) -> Value:
    """Requests of an hour in which people ask as in the busiest minutes; none where people are not known.

    Source: definition. Check: 460 people who ask 20 times a day, 12 % of it in the busiest hour with a burst of 1.3,
    ask 1,435 times.
    """
    return number_where(is_number(users), users * requests_per_user_per_day * peak_hour_share * burst_factor)


@formula("Age in days", WHOLE)
def age_days(as_of: Value, price_date: Value) -> Value:
    """Days from a price's date to the sheet's date.

    Source: definition.
    """
    return number_where(is_number(price_date), as_of - price_date)


@formula("Order of a tier", PLAIN)
def tier_key(tier: Value, tier_place: Quantity, largest_tier: Quantity, n_tiers: Quantity) -> Value:
    """A number that orders the tiers: by requests at once, and where those are alike by place; the rate is the last."""
    return where(is_number(tier), tier, largest_tier + 1) * n_tiers + tier_place


@formula("Tokens a second, of each request")
def pace_each(tpot_seconds: Quantity, output_tokens: Quantity) -> Value:
    """Tokens a second that each request gets; none of an answer of one token, which has no time per token.

    Source: definition.
    """
    return number_where(both(is_number(tpot_seconds), output_tokens > 1), ratio(1, tpot_seconds))


# The Money sheet.


@formula("All models together", USD)
def together_usd(together: Value, sum_usd: Quantity, n_known: Quantity, n_models: Quantity) -> Value:
    """The sum over the models where they are meant together and each has an amount; else none."""
    return number_where(both(together == "yes", n_known == n_models), sum_usd)


# The Decision page.


@formula("$ per month", USD)
def case_monthly_usd(monthly_usd: Quantity, price_factor: Quantity, is_own_price: Quantity) -> Value:
    """The cost of the hardware of a case in a month; a price of the reader's own list stays as it is.

    Source: monthly_usd x the case's factor.
    """
    return number_where(is_number(monthly_usd), monthly_usd * where(is_own_price == 1, 1, price_factor))


@formula("Start of a bar", USD)
def bar_start(low_usd: Quantity, now_usd: Quantity) -> Value:
    """The beginning of the bar of a range; 0 where an end is none.

    Source: the lesser end.
    """
    return where(both(is_number(low_usd), is_number(now_usd)), smallest(low_usd, now_usd), 0)


@formula("Length of a bar", USD)
def bar_length(from_usd: Quantity, to_usd: Quantity) -> Value:
    """How far a bar reaches from one amount to the other; 0 where one is none.

    Source: their difference.
    """
    return where(both(is_number(from_usd), is_number(to_usd)), largest(to_usd - from_usd, 0), 0)


def _printed_more(end_usd: Quantity, now_usd: Quantity) -> Value:
    """How much an end of a range is above this month, both in whole dollars; 0 where one is none."""
    return where(both(is_number(end_usd), is_number(now_usd)), round_nearest(end_usd) - round_nearest(now_usd), 0)


@formula("Most it falls, $", USD)
def falls_usd(low_usd: Quantity, now_usd: Quantity, high_usd: Quantity) -> Value:
    """The most by which the month falls at an end of a range, in whole dollars.

    Source: the difference of the amounts as they are shown.
    """
    return largest(0, 0 - _printed_more(low_usd, now_usd), 0 - _printed_more(high_usd, now_usd))


@formula("Most it rises, $", USD)
def rises_usd(low_usd: Quantity, now_usd: Quantity, high_usd: Quantity) -> Value:
    """The most by which the month rises at an end of a range, in whole dollars; none where nothing serves the high end.

    Source: the difference of the amounts as they are shown.
    """
    rises = largest(0, _printed_more(low_usd, now_usd), _printed_more(high_usd, now_usd))
    return number_where(both(is_number(now_usd), is_number(high_usd)), rises)


@formula("Swing, $", USD)
def swing_usd(falls_usd: Quantity, rises_usd: Quantity) -> Value:
    """How far the month moves over a range.

    Source: how far it falls + how far it rises.
    """
    return number_where(is_number(rises_usd), falls_usd + rises_usd)


@formula("Open (1 or 0)", PLAIN)
def is_open(now_usd: Quantity, rises_usd: Quantity) -> Value:
    """1 where nothing serves the high end of a range, though something serves the load.

    Source: rises_usd.
    """
    return where(is_number(now_usd), where(is_number(rises_usd), 0, 1), 0)


@formula("Largest of all, $", USD, rows=["swings"])
def largest_swing_usd(swings: Quantity) -> Value:
    """How far the month moves over the range that moves it most.

    Source: swing_usd.
    """
    return greatest_where(swings, is_number_in_row(swings))


@formula("How far that one rises, $", USD, rows=["swings", "rises"])
def largest_rise_usd(swings: Quantity, rises: Quantity, largest_swing_usd: Quantity) -> Value:
    """How far the month rises over the range that moves it most; of equals the most.

    Source: rises_usd.
    """
    return greatest_where(rises, swings == largest_swing_usd, is_number_in_row(rises))


@formula("Any open (1 or 0)", PLAIN, rows=["opens"])
def any_open(opens: Quantity) -> Value:
    """1 where nothing serves the high end of some range.

    Source: is_open.
    """
    return greatest_where(opens, is_number_in_row(opens))


@formula("The largest (1 or 0)", PLAIN)
def is_largest(
    rises_usd: Quantity,
    swing_usd: Quantity,
    is_open: Quantity,
    largest_swing_usd: Quantity,
    largest_rise_usd: Quantity,
    any_open: Quantity,
) -> Value:
    """1 for the range that moves the month most: one whose high end nothing serves, else the widest, of equals the one
    over which the month rises most.

    Source: swing_usd.
    """
    is_widest = where(swing_usd == largest_swing_usd, where(rises_usd == largest_rise_usd, 1, 0), 0)
    return where(any_open == 1, is_open, is_widest)


@formula("$ per month", USD)
def usd_of_way(monthly_usd: Quantity, base_usd: Quantity, least_saving_fraction: Quantity) -> Value:
    """A month of a way to pay less; none where it saves less than is worth a line.

    Source: INTERFACE (ways to pay less: none that saves less than 2 %).
    """
    most = where(is_number(base_usd), base_usd, 0) * (1 - least_saving_fraction)
    return number_where(both(is_number(monthly_usd), monthly_usd <= most), monthly_usd)


@formula("$ per month in working hours", USD)
def working_usd(
    monthly_usd: Quantity, own_paid_hours_per_month: Quantity, working_hours_per_month: Quantity, is_by_hour: Quantity
) -> Value:
    """A month of the same machines in working hours alone, where they are paid by the hour.

    Source: INTERFACE (ways to pay less: 220 of 730 hours).
    """
    hours = ratio(working_hours_per_month, own_paid_hours_per_month)
    return number_where(both(is_number(monthly_usd), is_by_hour == 1), monthly_usd * hours)


@formula("Commits to", USD)
def commits_usd(way_usd: Quantity, n_months: Quantity) -> Value:
    """The money that a commitment of so many months binds; none of a way that binds nothing, or saves nothing.

    Source: definition.
    """
    return number_where(both(is_number(way_usd), n_months > 0), way_usd * n_months)


@formula("To buy, $", USD)
def purchase_of_way(way_usd: Quantity, owned_capex_usd: Quantity) -> Value:
    """The payment up front to own; none where owning saves nothing.

    Source: definition.
    """
    return number_where(is_number(way_usd), owned_capex_usd)


@formula("Cheapest host, $ per month", USD, rows=["hosted", "model_rows"])
def least_hosted_usd(hosted: Quantity, model_rows: Quantity, own_model_row: Quantity) -> Value:
    """The least that a live host of the model takes for the load's tokens; none where nobody hosts it.

    Source: INTERFACE (ways to pay less: the cheapest live hosted API).
    """
    return least_where(hosted, model_rows == own_model_row, is_number_in_row(hosted), otherwise="-")


@formula("Row of the cheapest host", PLAIN, rows=["hosted", "model_rows"])
def row_of_host(hosted: Quantity, model_rows: Quantity, own_model_row: Quantity, hosted_usd: Quantity) -> Value:
    """The row of Hosts with that price; none where nobody hosts the model.

    Source: least_hosted_usd.
    """
    return number_where(is_number(hosted_usd), first_where(model_rows == own_model_row, hosted == hosted_usd))

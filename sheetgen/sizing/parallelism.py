"""From memory and target times to hardware: requests of a batch, pipeline stages, replicas, instances."""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.formula import (
    Quantity,
    Value,
    both,
    count_of_places,
    count_steps,
    either,
    formula,
    largest,
    number_where,
    ratio,
    remainder,
    round_down,
    round_nearest,
    round_up,
    smallest,
    where,
)
from sheetgen.sizing.kv_cache import batches_beside, held_sequences, most_windows, windows_of_stages
from sheetgen.sizing.memory import paid_share, pool_as_set, pool_error_as_set
from sheetgen.sizing.speed import TPOT_OF_BATCH, service_ttft_seconds, tpot_seconds, untouched_fraction
from sheetgen.sizing.weights import stage_fraction, stage_weights_fraction
from sheetgen.units import FACTOR, PERCENT, PLAIN, SECONDS, TEXT


@formula("Target in force", SECONDS)
def limit_seconds(
    target_ms: Quantity, speed_targets: Quantity, milliseconds_per_second: Quantity, no_limit_seconds: Quantity
) -> Quantity:
    """The longest time allowed for a token, in seconds; very long where no target is set or targets are off.

    Source: INTERFACE: both drive the count by default.
    """
    return where(both(speed_targets == 1, target_ms > 0), target_ms / milliseconds_per_second, no_limit_seconds)


@formula("Target of a token in force", SECONDS, within=[limit_seconds])
def token_limit_seconds(limit_seconds: Quantity, output_tokens: Quantity, no_limit_seconds: Quantity) -> Quantity:
    """The longest time allowed for each further token, in seconds; very long where there are no further tokens: for
    embeddings, and for a prompt that is only judged.

    Source: INTERFACE: no time per token where the answer has one token or none.
    """
    return where(output_tokens > 1, limit_seconds, no_limit_seconds)


@formula("Meets both targets", within=[tpot_seconds, service_ttft_seconds])
def meets_targets(
    tpot_seconds: Quantity,
    service_ttft_seconds: Quantity,
    tpot_allowed_seconds: Quantity,
    ttft_allowed_seconds: Quantity,
) -> Quantity:
    """1 where a batch of this many requests, which leaves this share of the experts untouched, meets both targets, else
    0.

    Source: tpot_seconds, service_ttft_seconds.
    """
    return (tpot_seconds <= tpot_allowed_seconds) * (service_ttft_seconds <= ttft_allowed_seconds)


_OF_BATCH = meets_targets.as_function_of("batch_requests", "untouched_fraction")


@formula("Strides within the targets", within=[_OF_BATCH], rows=["steps", "untouched_by_stride"])
def strides_within_targets(
    meets_targets: Callable[..., Quantity],
    steps: Quantity,
    untouched_by_stride: Quantity,
    requests_per_stride: Quantity,
) -> Quantity:
    """The number of batches of 64, 128, ... 4,096 requests that meet both targets: both times only grow with the batch.

    In:     steps, the numbers from 1 to 64; untouched_by_stride, the share of experts that each stride leaves alone.
    Source: tpot_seconds, service_ttft_seconds.
    """

    def meets(stride: Quantity, untouched: Quantity) -> Quantity:
        return meets_targets(batch_requests=stride * requests_per_stride, untouched_fraction=untouched)

    return count_steps(meets, steps, untouched_by_stride)


@formula(
    "Most requests of a batch within the targets",
    within=[_OF_BATCH, untouched_fraction.as_function_of("batch_requests")],
    rows=["steps", "untouched_by_request"],
)
def batch_limit(
    meets_targets: Callable[..., Quantity],
    untouched_fraction: Callable[..., Quantity],
    strides_within_targets: Quantity,
    steps: Quantity,
    untouched_by_request: Quantity,
    requests_per_stride: Quantity,
) -> Quantity:
    """The largest batch that meets both targets: the strides that do, then single requests of the next stride.

    In:     untouched_by_request, the share of experts that 1 to 64 requests leave alone.
    Out:    0 where a lone request already misses a target. 4,160 where no batch that an engine runs does.
    Source: tpot_seconds, service_ttft_seconds.
    """
    begun = strides_within_targets * requests_per_stride
    left = untouched_fraction(batch_requests=begun)

    def meets(more: Quantity, untouched: Quantity) -> Quantity:
        return meets_targets(batch_requests=begun + more, untouched_fraction=left * untouched)

    return begun + count_steps(meets, steps, untouched_by_request)


@formula("Requests of one replica within the targets")
def paced_requests(
    sequences: Quantity, batch_limit: Quantity, pipeline_stages: Quantity, data_parallel_size: Quantity
) -> Quantity:
    """Requests that one replica may serve: on each data-parallel rank what memory holds, at most one batch within the
    targets for each stage.

    Out:    0 where it holds none, or a lone request misses a target of speed.
    Source: sequences, batch_limit.
    """
    return smallest(sequences, batch_limit * pipeline_stages) * data_parallel_size


@formula("Requests of one replica")
def requests_per_replica(load_requests: Quantity, paced_requests: Quantity) -> Quantity:
    """Requests at once on the fullest replica where only as many replicas serve as the load needs: after the loss to be
    survived, if any.

    Source: ceil(load / serving replicas).
    """
    return round_up(ratio(load_requests, needed_replicas(load_requests, paced_requests)))


@formula("Time per token with one request more", SECONDS, within=[TPOT_OF_BATCH])
def next_tpot_seconds(tpot_seconds: Callable[..., Quantity], batch_limit: Quantity) -> Quantity:
    """Seconds between two tokens in the smallest batch that misses a target; it tells which of the two is missed first.

    Source: tpot_seconds, batch_limit.
    """
    return tpot_seconds(batch_requests=batch_limit + 1)


@formula("What set the replicas", TEXT)
def sized_by(
    load_requests: Quantity,
    sequences: Quantity,
    paced_requests: Quantity,
    data_parallel_size: Quantity,
    next_tpot_seconds: Quantity,
    tpot_allowed_seconds: Quantity,
) -> Value:
    """The limit that set the number of replicas: the target of a token (tpot) or of the first token (ttft), where it
    needs more replicas than memory does; else memory.

    Source: n_replicas.
    """
    target = where(next_tpot_seconds > tpot_allowed_seconds, "tpot", "ttft")
    held = round_up(ratio(load_requests, sequences * data_parallel_size))
    return where(round_up(ratio(load_requests, paced_requests)) > held, target, "memory")


@formula("Left for layers on a stage", within=[paid_share])
def layer_budget_bytes(
    memory_budget_bytes: Quantity,
    stage_overhead_bytes: Quantity,
    stage_ends_bytes: Quantity,
    rope_table_bytes: Quantity,
    tensor_parallel_size: Quantity,
    paid_share: Quantity,
) -> Quantity:
    """Memory of one GPU of a pipeline stage that is left for layers and their cache, in bytes.

    Source: the KV pool's accounting, the layers' weights not yet paid.
    """
    bills = stage_overhead_bytes + stage_ends_bytes / tensor_parallel_size + rope_table_bytes
    return memory_budget_bytes - bills * paid_share


@formula("Layers' share of the budget", within=[paid_share])
def paid_layer_bytes(layer_bytes_per_gpu: Quantity, paid_share: Quantity) -> Quantity:
    """Part of one rank's budget that the weights of all layers take, in bytes.

    Source: the KV pool's accounting.
    """
    return layer_bytes_per_gpu * paid_share


@formula("Held inside a machine (1 or 0)", PLAIN, rows=["pipeline_stages", "instance_month_usd"])
def held_inside(pipeline_stages: Quantity, instance_month_usd: Quantity) -> Quantity:
    """1 where some instance with a price holds weights and one request without pipeline stages.

    In:     rows of both along what is offered.
    Source: INTERFACE (spanning machines).
    """
    offered = count_of_places(lambda stages, usd: (stages == 1) * (usd > 0), pipeline_stages, instance_month_usd)
    return where(offered > 0, 1, 0)


@formula("Within the model's limit")
def within_limit(context_tokens: Quantity, max_context_tokens: Quantity) -> Quantity:
    """1 where the model accepts this context, else 0.

    Source: the model's config (max_position_embeddings).
    """
    return where(context_tokens <= max_context_tokens, 1, 0)


@formula("Layers that fit on a stage", within=[most_windows])
def layers_that_fit(
    most_windows: Callable[..., Quantity],
    in_flight_batches: Quantity,
    layer_budget_bytes: Quantity,
    n_layers: Quantity,
    paid_layer_bytes: Quantity,
    charge_bytes: Quantity,
    kv_cache_memory_bytes: Quantity,
    set_pool_is_limit: Quantity,
) -> Quantity:
    """Whole layers, with their weights and the cache of one sequence, that one GPU of a stage holds.

    A pool that is set outright is taken first, whatever of it the cache fills; one that is a limit as far as it goes.
    Each further stage brings a batch, and a stage keeps the windows of its own layers: of one batch of all at most.

    Source: vLLM pipeline parallelism: a stage keeps the weights and the cache of its own layers.
    """
    outright = kv_cache_memory_bytes * (1 - set_pool_is_limit)
    windows = most_windows(batches=where(in_flight_batches > 1, 1, 0))
    left = largest(0, layer_budget_bytes - where(outright > 0, outright, windows)) * n_layers
    fit = ratio(left, paid_layer_bytes + where(outright > 0, 0, charge_bytes))
    held = ratio(largest(0, kv_cache_memory_bytes - windows) * n_layers, charge_bytes)
    return round_down(smallest(fit, where(kv_cache_memory_bytes == 0, n_layers, held)))


@formula("Pipeline stages", within=[most_windows, pool_as_set])
def pipeline_stages(
    two_stages: Quantity,
    three_stages: Quantity,
    four_stages: Quantity,
    eight_stages: Quantity,
    weights_share_of_2: Quantity,
    weights_share_of_3: Quantity,
    weights_share_of_4: Quantity,
    weights_share_of_8: Quantity,
    cache_share_of_2: Quantity,
    cache_share_of_3: Quantity,
    cache_share_of_4: Quantity,
    cache_share_of_8: Quantity,
    most_windows: Callable[..., Quantity],
    in_flight_batches: Quantity,
    on_second_runner: Quantity,
    runs: Quantity,
    within_limit: Quantity,
    kv_budget_bytes_per_gpu: Quantity,
    charge_bytes: Quantity,
    layers_that_fit: Quantity,
    n_layers: Quantity,
    max_pipeline_parallel_size: Quantity,
    layer_budget_bytes: Quantity,
    paid_layer_bytes: Quantity,
    pool_as_set: Callable[..., Quantity],
) -> Quantity:
    """Pipeline stages that a replica needs to hold the weights and one sequence: 1 where it needs none.

    Out:    0 where the GPU cannot run the precision, the context is over the limit, or more stages than
            allowed would be needed. Else the fewest whose fullest one holds ceil(layers / stages) layers; of a model
            whose layers differ, the fewest of 2, 3, 4 and 8 at which the heaviest fits.
    Source: INTERFACE (PP above 1 only where a whole instance is too small); vLLM pipeline parallelism.
    """

    def holds(stages: Quantity, weights_share: Quantity, cache_share: Quantity) -> Quantity:
        """True where the heaviest of so many stages holds its part of the weights and of one sequence's cache."""
        pool = pool_as_set(left_bytes=layer_budget_bytes - paid_layer_bytes * weights_share)
        windows = most_windows(batches=batches_beside(stages, in_flight_batches, on_second_runner))
        return both(stages <= max_pipeline_parallel_size, pool >= (charge_bytes + windows) * cache_share)

    # Too many stages count as one more than are allowed, and these as none; nothing long stands twice in the text.
    most = max_pipeline_parallel_size + 1
    even = remainder(largest(2, round_up(n_layers / largest(layers_that_fit, n_layers / most))), most)
    in_order: Quantity = 0  # the fewest stages that hold it, by the order of the layers
    for stages, weights_share, cache_share in (
        (eight_stages, weights_share_of_8, cache_share_of_8),
        (four_stages, weights_share_of_4, cache_share_of_4),
        (three_stages, weights_share_of_3, cache_share_of_3),
        (two_stages, weights_share_of_2, cache_share_of_2),
    ):
        in_order = where(holds(stages, weights_share, cache_share), stages, in_order)
    staged = where(weights_share_of_2 > 0, in_order, even)
    return where(both(runs == 1, within_limit == 1), where(kv_budget_bytes_per_gpu >= charge_bytes, 1, staged), 0)


def fullest_stage(
    stage_weights_fraction: Callable[..., Quantity],
    stage_fraction: Callable[..., Quantity],
    pipeline_stages: Quantity,
    kv_budget_bytes_per_gpu: Quantity,
    layer_budget_bytes: Quantity,
    paid_layer_bytes: Quantity,
    n_layers: Quantity,
    pool_as_set: Callable[..., Quantity],
) -> tuple[Quantity, Quantity]:
    """The pool of the fullest stage, in bytes, and its share of the layers that keep a cache."""
    weights, share = (
        fraction(n_layers=n_layers, pipeline_parallel_size=pipeline_stages)
        for fraction in (stage_weights_fraction, stage_fraction)
    )
    staged = pool_as_set(left_bytes=layer_budget_bytes - paid_layer_bytes * weights)
    return where(pipeline_stages == 1, kv_budget_bytes_per_gpu, staged), share


POOL_OF_A_STAGE = (
    fullest_stage,
    pool_as_set,
    stage_weights_fraction.as_function_of("n_layers", "pipeline_parallel_size"),
    stage_fraction.as_function_of("n_layers", "pipeline_parallel_size"),
    windows_of_stages,
)


@formula("Sequences per replica", within=POOL_OF_A_STAGE)
def sequences(
    fullest_stage: tuple[Quantity, Quantity],
    windows_of_stages: Quantity,
    pipeline_stages: Quantity,
    charge_bytes: Quantity,
    steady_bytes: Quantity,
    max_num_seqs: Quantity,
) -> Quantity:
    """Sequences that one replica holds on its pipeline stages, at most max_num_seqs; 0 where it cannot hold the model.

    One more never fits where all others are at their last token when its prompt is read: it waits, or one is sent back
    to the queue. So many never send one back, whenever they arrive, for prompts share the tokens of a step; of two
    that arrive at once the second may wait until the first one's prompt is read.

    Source: INTERFACE: 1 + floor((pool - admission charge) / steady charge), on the fullest stage; vLLM 0.33's block
    manager, simulated in tests/test_block_manager.py.
    """
    pool, share = fullest_stage
    charged = charge_bytes + windows_of_stages
    held = held_sequences(pool, charged * share, steady_bytes * share)
    return where(pipeline_stages >= 1, smallest(held, max_num_seqs), 0)


@formula("Constants set on runs of this TP", PLAIN)
def is_calibrated(tensor_parallel_size: Quantity, calibrated_tensor_parallel_size: Quantity) -> Quantity:
    """True where the constants were set on runs of this tensor-parallel size.

    Source: catalogs/engines (calibrated).
    """
    return tensor_parallel_size <= calibrated_tensor_parallel_size


@formula("Pool's error at an end of its band", within=[is_calibrated, pool_error_as_set])
def pool_error_bytes(
    pool_error_bytes_measured: Quantity,
    pool_error_bytes_elsewhere: Quantity,
    is_calibrated: Quantity,
    pool_error_as_set: Callable[..., Quantity],
) -> Quantity:
    """Bytes by which the KV pool may be larger (smaller where below 0) than predicted: from the runs on this GPU up to
    the largest tensor-parallel size that was measured, from all other logs beyond; 0 where the pool is set outright.

    Source: docs/fidelity.md; catalogs/engines, bands.
    """
    return pool_error_as_set(error_bytes=where(is_calibrated, pool_error_bytes_measured, pool_error_bytes_elsewhere))


@formula("GPUs of a replica", PLAIN)
def gpus_of_replica(
    pipeline_stages: Quantity, tensor_parallel_size: Quantity, data_parallel_size: Quantity
) -> Quantity:
    """GPUs of one replica on the stages that it needs; none where no number of stages would do.

    Source: INTERFACE (TP x PP x DP).
    """
    return number_where(pipeline_stages > 0, pipeline_stages * tensor_parallel_size * data_parallel_size)


@formula("Load")
def load_requests(concurrent_requests: Quantity, extra_headroom_fraction: Quantity) -> Quantity:
    """Requests at once to plan for: those at peak plus the extra headroom requested.

    Source: definition; the default headroom is 0.
    """
    return round_up(concurrent_requests * (1 + extra_headroom_fraction))


@formula("Heads divide over the ranks")
def heads_divide(
    n_heads: Quantity, full_kv_heads: Quantity, windowed_kv_heads: Quantity, tensor_parallel_size: Quantity
) -> Quantity:
    """1 where each rank gets whole query heads, and whole KV heads or a copy of one that a whole number of ranks share;
    else 0.

    Source: vLLM get_num_kv_heads.
    """
    size = largest(1, tensor_parallel_size)
    every = [remainder(n_heads, size) == 0]
    for kv_heads in (full_kv_heads, windowed_kv_heads):
        heads = largest(1, kv_heads)
        every.append(either(kv_heads == 0, remainder(heads, size) == 0, remainder(size, heads) == 0))
    return where(both(*every), 1, 0)


@formula("Ranks share experts")
def shares_experts(
    data_parallel_size: Quantity,
    is_mixture: Quantity,
    n_experts: Quantity,
    interconnect_bytes_per_second: Quantity,
    least_link_bytes_per_second: Quantity,
) -> Quantity:
    """1 where the layout has one data-parallel rank, or several that share experts over links made for that; else 0.

    A checkpoint is a mixture of experts or is none: experts typed over a dense model's make no layouts for it.

    Source: INTERFACE (layouts for mixtures of experts).
    """
    linked = both(is_mixture == 1, n_experts > 0, interconnect_bytes_per_second >= least_link_bytes_per_second)
    return where(either(data_parallel_size == 1, linked), 1, 0)


@formula("Attention runs")
def attention_runs(speed_kind: Quantity, n_model_kinds: Quantity, runs_sparse_attention: Quantity) -> Quantity:
    """1 where the engine has kernels for the model's attention on the GPU, else 0: on some architectures there are none
    for sparse attention (the last kind of model).

    Source: sparse_attention_source of the engine's file.
    """
    return where(either(speed_kind < n_model_kinds, runs_sparse_attention == 1), 1, 0)


@formula("KV precision runs")
def cache_runs(runs_kv: Quantity, n_mla_layers: Quantity) -> Quantity:
    """1 where the engine keeps the model's KV cache in this precision on the GPU, else 0.

    runs_kv is 1 where it keeps any cache so, 2 where it keeps keys and values of heads, and no latents.

    Source: kv_run of the GPU's file, kv_kernels of the engine's.
    """
    return where(either(runs_kv == 1, both(runs_kv > 1, n_mla_layers == 0)), 1, 0)


@formula("Runs", within=[heads_divide, shares_experts, cache_runs, attention_runs])
def runs(
    heads_divide: Quantity,
    runs_weights: Quantity,
    cache_runs: Quantity,
    shares_experts: Quantity,
    attention_runs: Quantity,
) -> Quantity:
    """1 where the GPU runs both precisions and the model's attention, and the layout suits the model; else 0.

    KV heads divide over the ranks, or the ranks over them: engines refuse 10 KV heads at TP 4. runs_weights is 2 where
    the GPU computes in that precision, 1 where it keeps weights in it alone.

    Source: INTERFACE (layouts: TP divides the query heads); vLLM get_num_kv_heads, issues 5951 and 16021.
    """
    layout = both(heads_divide == 1, shares_experts == 1)
    return where(both(layout, runs_weights >= 1, cache_runs == 1, attention_runs == 1), 1, 0)


REPLICA, MACHINE, ZONE = 1, 2, 3  # what may be lost (survive)


def needed_replicas(load_requests: Quantity, paced_requests: Quantity) -> Value:
    """Replicas that hold the load and serve it within the targets of speed, whichever asks for more."""
    return round_up(ratio(load_requests, paced_requests))


@formula("Replicas")
def n_replicas(
    load_requests: Quantity,
    paced_requests: Quantity,
    replicas_per_instance: Quantity,
    survive: Quantity,
    zones: Quantity,
) -> Quantity:
    """Replicas that hold the load and serve it within the targets of speed, plus those that may be lost: one, or all of
    a machine, or of the machines of a zone, over which they are spread evenly. Where replicas span machines, a loss
    takes whole replicas.

    Source: INTERFACE (survive). With m machines needed, m + ceil(m / (zones - 1)) spread over the zones leave m.
    Check: 10 replicas, 8 to a machine, need 2 machines; 3 over 3 zones leave 2 after the loss of one: 18 replicas.
    """
    needed, per_instance = needed_replicas(load_requests, paced_requests), largest(1, replicas_per_instance)
    machines = where(survive - REPLICA > 1, round_up(ratio(round_up(needed / per_instance), zones - 1)), 1)
    return needed + where(survive > REPLICA, per_instance * machines, survive)


@formula("GPUs linked", PLAIN)
def linked_gpus(gpu_count: Quantity, nvlink_domain_gpus: Quantity) -> Quantity:
    """GPUs that a replica without pipeline stages may have: those of the instance, or of the rack whose machines one
    NVLink switch joins.

    Source: catalogs/instances. Check: a tray of 4 in an NVL72 rack has 72.
    """
    return largest(gpu_count, nvlink_domain_gpus)


@formula("Replicas in one instance", FACTOR)
def replicas_per_instance(
    pipeline_stages: Quantity,
    gpu_count: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    held_inside: Quantity,
    network_gbps: Quantity,
    least_network_gbps: Quantity,
    span_machines: Quantity,
    linked_gpus: Quantity,
) -> Quantity:
    """Replicas of this layout that one instance carries: a fraction where a replica takes several instances of a rack
    that NVLink joins, with stages or without; 1/stages where it spans other instances, one whole instance for each
    stage.

    Out:    0 where the instance cannot take part. A replica has stages only where no candidate holds it without; then
            it takes a rack's, or whole instances whose network is made for it.
    Source: INTERFACE (layouts, spanning machines). Check: 8 GPUs at TP 2 carry 4; 4 of an NVL72 at TP 8 half of one,
            and an eighth at TP 8 and PP 4.
    """
    size = tensor_parallel_size * data_parallel_size
    beyond = where(size <= linked_gpus, gpu_count / size, 0)
    inside = where(size <= gpu_count, round_down(gpu_count / size), beyond)
    in_rack = both(linked_gpus > gpu_count, size * pipeline_stages <= linked_gpus)
    joined = either(in_rack, both(gpu_count == size, network_gbps >= least_network_gbps))
    spans = both(pipeline_stages > 1, held_inside == 0, span_machines == 1, data_parallel_size == 1, joined)
    spanned = where(spans, ratio(gpu_count, size * pipeline_stages), 0)
    return where(pipeline_stages == 1, inside, spanned)


@formula("Requests of one instance within the targets", FACTOR)
def requests_per_instance(paced_requests: Quantity, replicas_per_instance: Quantity) -> Quantity:
    """Requests that the replicas of one instance serve within the targets; a share of a replica's where it spans
    several instances.

    Source: paced_requests, replicas_per_instance.
    """
    return paced_requests * replicas_per_instance


def surviving_replicas(
    n_instances: Quantity, replicas_per_instance: Quantity, survive: Quantity, zones: Quantity
) -> Quantity:
    """Replicas on the rented instances that are left after the loss to be survived."""
    held = round_nearest(n_instances * replicas_per_instance)
    replicas_per_loss = where(survive > REPLICA, largest(1, replicas_per_instance), 1)
    lost = where(survive - REPLICA > 1, round_up(held / replicas_per_loss / zones), where(survive > 0, 1, 0))
    return largest(0, held - replicas_per_loss * lost)


def instances_less_replica(
    n_instances: Quantity,
    survive: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    gpu_count: Quantity,
) -> Quantity:
    """Instances, less the share of one that a replica takes where the loss of a replica is to be survived."""
    share = ratio(tensor_parallel_size * data_parallel_size, gpu_count)
    return n_instances - where(survive == REPLICA, share, 0)


@formula("Requests served within the targets", within=[surviving_replicas])
def served_at_target(
    surviving_replicas: Quantity, paced_requests: Quantity, extra_headroom_fraction: Quantity
) -> Quantity:
    """The most requests at once that all rented replicas serve within all targets, after the loss to be survived, with
    the extra headroom left.

    A quotient a bit below a whole number, as of 33 places and a headroom of a tenth, is that number: one more is
    counted where its load still has room.

    Source: INTERFACE (served_at_target): load_requests, solved for the requests.
    """
    places = surviving_replicas * paced_requests
    served = round_down(places / (1 + extra_headroom_fraction))
    return served + where(load_requests(served + 1, extra_headroom_fraction) <= places, 1, 0)


@formula("Requests that memory holds")
def memory_holds(
    n_instances: Quantity, replicas_per_instance: Quantity, sequences: Quantity, data_parallel_size: Quantity
) -> Quantity:
    """Requests at once that memory alone would hold on all rented replicas.

    Source: INTERFACE (memory_holds).
    """
    return round_nearest(n_instances * replicas_per_instance) * sequences * data_parallel_size


@formula("Headroom", PERCENT)
def headroom_fraction(
    load_requests: Quantity, sequences: Quantity, data_parallel_size: Quantity, n_replicas: Quantity
) -> Quantity:
    """The share of the requests that the replicas could hold which the load leaves free.

    Source: 1 - load / (replicas x ranks x sequences of a rank).
    """
    return 1 - ratio(load_requests, sequences * data_parallel_size * n_replicas, 1)

"""From memory and target times to hardware: requests of a batch, pipeline stages, replicas, instances."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import (
    Quantity,
    both,
    count_steps,
    either,
    fading,
    formula,
    largest,
    number_where,
    ratio,
    remainder,
    round_down,
    round_up,
    smallest,
    where,
)
from sheetgen.sizing.kv_cache import held_sequences
from sheetgen.sizing.memory import paid_share
from sheetgen.sizing.speed import service_ttft_seconds, tpot_seconds
from sheetgen.units import PERCENT, SECONDS, TEXT


@formula("Target in force", SECONDS)
def limit_seconds(
    target_ms: Quantity, speed_targets: Quantity, milliseconds_per_second: Quantity, no_limit_seconds: Quantity
) -> Any:
    """The time that a token may take, in seconds; very long where no target is set or targets are off.

    Source: INTERFACE: TPOT drives the count by default, TTFT only where it is asked for.
    """
    return where(both(speed_targets == 1, target_ms > 0), target_ms / milliseconds_per_second, no_limit_seconds)


@formula("Meets both targets", within=[tpot_seconds, service_ttft_seconds])
def meets_targets(
    tpot_seconds: Quantity, service_ttft_seconds: Quantity, tpot_limit_seconds: Quantity, ttft_limit_seconds: Quantity
) -> Any:
    """1 where a batch of this many requests, which leaves this share of the experts alone, meets both targets, else 0.

    Source: tpot_seconds, service_ttft_seconds.
    """
    return (tpot_seconds <= tpot_limit_seconds) * (service_ttft_seconds <= ttft_limit_seconds)


# What is the same of batches of any size.
_OF_ANY_BATCH = tuple(n for n in meets_targets.inputs if n not in ("batch_requests", "untouched_fraction"))


@formula("Strides within the targets", passed_on=_OF_ANY_BATCH)
def strides_within_targets(
    steps: Quantity, untouched_by_stride: Quantity, requests_per_stride: Quantity, **known: Quantity
) -> Any:
    """Of batches of 64, 128, ... 4,096 requests, how many meet both targets: both times only grow with the batch.

    In:     steps, the numbers from 1 to 64; untouched_by_stride, the share of experts that each stride leaves alone.
    Source: tpot_seconds, service_ttft_seconds.
    """

    def meets(stride: Quantity, untouched: Quantity) -> Any:
        batch = {"batch_requests": stride * requests_per_stride, "untouched_fraction": untouched}
        return meets_targets.of(known | batch)

    return count_steps(meets, steps, untouched_by_stride)


@formula("Most requests of a batch within the targets", passed_on=_OF_ANY_BATCH)
def batch_limit(
    strides_within_targets: Quantity, steps: Quantity, untouched_by_request: Quantity, expert_miss_fraction: Quantity,
    requests_per_stride: Quantity, **known: Quantity,
) -> Any:  # fmt: skip
    """The largest batch that meets both targets: the strides that do, and of the next one every single request.

    In:     untouched_by_request, the share of experts that 1 to 64 requests leave alone.
    Out:    0 where a lone request already misses a target. 4,160 where no batch that an engine runs does.
    Source: tpot_seconds, service_ttft_seconds.
    """
    begun = strides_within_targets * requests_per_stride
    left = fading(expert_miss_fraction, begun)

    def meets(one: Quantity, untouched: Quantity) -> Any:
        return meets_targets.of(known | {"batch_requests": begun + one, "untouched_fraction": left * untouched})

    return begun + count_steps(meets, steps, untouched_by_request)


@formula("Sequences within the targets")
def paced_sequences(sequences: Quantity, batch_limit: Quantity, pipeline_stages: Quantity) -> Any:
    """Sequences that one replica may serve: what memory holds, at most one batch within the targets a stage.

    Source: sequences, batch_limit.
    """
    return smallest(sequences, batch_limit * pipeline_stages)


@formula("Requests of one replica")
def requests_per_replica(load_requests: Quantity, n_replicas: Quantity, spare_replicas: Quantity) -> Any:
    """Requests in flight on the fullest of the replicas that serve; spare ones wait.

    Source: ceil(load / serving replicas).
    """
    return round_up(ratio(load_requests, largest(0, n_replicas - spare_replicas)))


@formula("Sized by", TEXT)
def sized_by(load_requests: Quantity, sequences: Quantity, paced_requests: Quantity) -> Any:
    """What asked for the replicas: speed where its targets need more of them than memory does, else memory.

    Source: n_replicas.
    """
    by_speed = round_up(ratio(load_requests, smallest(sequences, paced_requests)))
    return where(by_speed > round_up(ratio(load_requests, sequences)), "speed", "memory")


@formula("Left for layers on a stage", within=[paid_share])
def layer_budget_bytes(
    memory_budget_bytes: Quantity, stage_overhead_bytes: Quantity, stage_ends_bytes: Quantity,
    rope_table_bytes: Quantity, tensor_parallel_size: Quantity, paid_share: Quantity,
) -> Any:  # fmt: skip
    """What one GPU of a pipeline stage has left for layers and their cache, in bytes.

    Source: the KV pool's accounting, the layers' weights not yet paid.
    """
    bills = stage_overhead_bytes + stage_ends_bytes / tensor_parallel_size + rope_table_bytes
    return memory_budget_bytes - bills * paid_share


@formula("Layers' share of the budget", within=[paid_share])
def paid_layer_bytes(layer_bytes_per_gpu: Quantity, paid_share: Quantity) -> Any:
    """What the weights of all layers take from one rank's budget, in bytes.

    Source: the KV pool's accounting.
    """
    return layer_bytes_per_gpu * paid_share


@formula("Within the model's limit")
def within_limit(context_tokens: Quantity, max_context_tokens: Quantity) -> Any:
    """1 where the model accepts this context, else 0.

    Source: the model's config (max_position_embeddings).
    """
    return where(context_tokens <= max_context_tokens, 1, 0)


@formula("Layers that fit on a stage")
def layers_that_fit(
    layer_budget_bytes: Quantity, n_layers: Quantity, paid_layer_bytes: Quantity, charge_bytes: Quantity
) -> Any:
    """Whole layers, their weights and the cache of one sequence, that one GPU of a stage holds.

    Source: vLLM pipeline parallelism: a stage keeps the weights and the cache of its own layers.
    """
    return round_down(ratio(largest(0, layer_budget_bytes) * n_layers, paid_layer_bytes + charge_bytes))


@formula("Pipeline stages")
def pipeline_stages(
    runs: Quantity, within_limit: Quantity, kv_budget_bytes_per_gpu: Quantity, charge_bytes: Quantity,
    layers_that_fit: Quantity, n_layers: Quantity, max_pipeline_parallel_size: Quantity,
) -> Any:  # fmt: skip
    """Pipeline stages that a replica needs to hold the weights and one sequence: 1 where it needs none.

    Out:    0 where the GPU cannot run the precision, the context is over the limit, or more stages than
            allowed would be needed. Else the fewest whose fullest one holds ceil(layers / stages) layers.
    Source: INTERFACE (PP above 1 only where a whole instance is too small); vLLM pipeline parallelism.
    """
    needed = largest(2, round_up(ratio(n_layers, layers_that_fit)))
    staged = where(both(layers_that_fit >= 1, needed <= max_pipeline_parallel_size), needed, 0)
    return where(both(runs == 1, within_limit == 1), where(kv_budget_bytes_per_gpu >= charge_bytes, 1, staged), 0)


@formula("Sequences per replica")
def sequences(
    pipeline_stages: Quantity, kv_budget_bytes_per_gpu: Quantity, charge_bytes: Quantity, steady_bytes: Quantity,
    layer_budget_bytes: Quantity, paid_layer_bytes: Quantity, n_layers: Quantity, max_num_seqs: Quantity,
) -> Any:  # fmt: skip
    """Sequences that one replica holds on its pipeline stages, at most max_num_seqs; 0 where it cannot.

    One more never fits where all others are at their last token when its prompt is read: it waits, or one is sent back
    to the queue. So many never send one back, whenever they arrive, for prompts share the tokens of a step; of two
    that arrive at once the second may wait until the first one's prompt is read.

    Source: INTERFACE: 1 + floor((pool - admission charge) / steady charge), on the fullest stage; vLLM 0.33's block
    manager, simulated in tests/test_block_manager.py.
    """
    pool, layers = fullest_stage(
        pipeline_stages, kv_budget_bytes_per_gpu, layer_budget_bytes, paid_layer_bytes, n_layers
    )
    held = held_sequences(pool, charge_bytes * layers / n_layers, steady_bytes * layers / n_layers)
    return where(pipeline_stages >= 1, smallest(held, max_num_seqs), 0)


def fullest_stage(
    pipeline_stages: Quantity, kv_budget_bytes_per_gpu: Quantity, layer_budget_bytes: Quantity,
    paid_layer_bytes: Quantity, n_layers: Quantity,
) -> tuple[Quantity, Quantity]:  # fmt: skip
    """The pool of the stage with the most layers, in bytes, and how many layers these are."""
    layers = round_up(ratio(n_layers, pipeline_stages, 0))
    staged = layer_budget_bytes - paid_layer_bytes * layers / n_layers
    return where(pipeline_stages == 1, kv_budget_bytes_per_gpu, staged), layers


@formula("Pool's error, low end")
def pool_error_bytes(
    pool_error_bytes_measured: Quantity, pool_error_bytes_elsewhere: Quantity, tensor_parallel_size: Quantity,
    calibrated_tensor_parallel_size: Quantity,
) -> Any:  # fmt: skip
    """Bytes by which the KV pool may be smaller: by the runs on this GPU up to the largest tensor-parallel size
    that was measured, by all other logs beyond.

    Source: docs/fidelity.md; catalogs/engines, bands.
    """
    measured = is_measured(tensor_parallel_size, calibrated_tensor_parallel_size)
    return where(measured, pool_error_bytes_measured, pool_error_bytes_elsewhere)


def is_measured(tensor_parallel_size: Quantity, calibrated_tensor_parallel_size: Quantity) -> Any:
    """Whether runs of this tensor-parallel size are among those that the constants were set on."""
    return tensor_parallel_size <= calibrated_tensor_parallel_size


@formula("Sequences at the band's low end", passed_on=sequences.inputs)
def sure_sequences(kv_pool_error_bytes_low: Quantity, **known: Quantity) -> Any:
    """Sequences that one replica still holds where its pool comes out at the low end of the 80 % error band.

    Source: sequences, with the pool less what nine of ten predictions of its kind err by at most.
    """
    budgets = ("kv_budget_bytes_per_gpu", "layer_budget_bytes")
    return sequences.of(known | {name: known[name] + kv_pool_error_bytes_low for name in budgets})


@formula("Users")
def users(concurrent_requests: Quantity, active_fraction: Quantity) -> Any:
    """People that these requests in flight stand for: requests / the share of users active at the peak.

    Source: definition; with the default of 1 every user counts as in flight.
    """
    return ratio(concurrent_requests, active_fraction)


@formula("Load")
def load_requests(concurrent_requests: Quantity, extra_headroom_fraction: Quantity) -> Any:
    """Requests in flight to plan for: those at peak, and the extra headroom asked for.

    Source: definition; the default headroom is 0.
    """
    return round_up(concurrent_requests * (1 + extra_headroom_fraction))


@formula("Heads divide over the ranks")
def heads_divide(
    n_heads: Quantity, full_kv_heads: Quantity, windowed_kv_heads: Quantity, tensor_parallel_size: Quantity
) -> Any:
    """1 where a rank gets whole query heads, and whole KV heads or whole ranks one of them; else 0.

    Source: vLLM get_num_kv_heads.
    """
    size = largest(1, tensor_parallel_size)
    every = [remainder(n_heads, size) == 0]
    for kv_heads in (full_kv_heads, windowed_kv_heads):
        heads = largest(1, kv_heads)
        every.append(either(kv_heads == 0, remainder(heads, size) == 0, remainder(size, heads) == 0))
    return where(both(*every), 1, 0)


@formula("Runs", within=[heads_divide])
def runs(heads_divide: Quantity, runs_weights: Quantity, runs_kv: Quantity) -> Any:
    """1 where the GPU runs both precisions and the heads divide over the ranks, else 0.

    KV heads divide over the ranks, or the ranks over them: engines refuse 10 KV heads at TP 4.

    Source: INTERFACE (TP divides the query heads); vLLM get_num_kv_heads, issues 5951 and 16021.
    """
    return where(both(heads_divide == 1, runs_weights == 1, runs_kv == 1), 1, 0)


@formula("Replicas", within=[paced_sequences])
def n_replicas(load_requests: Quantity, paced_sequences: Quantity, spare_replicas: Quantity) -> Any:
    """Replicas that hold the load and serve it within the targets of speed, and the spare ones asked for (N+1).

    Source: ceil(load / sequences per replica), by memory or by speed, whichever asks for more.
    """
    return round_up(ratio(load_requests, paced_sequences)) + spare_replicas


@formula("Replicas that share instances", within=[n_replicas])
def shared_replicas(
    pipeline_stages: Quantity, sequences: Quantity, batch_limit: Quantity, load_requests: Quantity, n_replicas: Quantity
) -> Any:
    """Replicas without pipeline stages that serve the load; none where a replica needs stages or holds nothing.

    Out:    0 where memory holds it but a lone request misses a target of speed: no count would meet it.
    Source: n_replicas.
    """
    known = both(pipeline_stages == 1, sequences >= 1, load_requests >= 1)
    return number_where(known, where(batch_limit >= 1, n_replicas, 0))


@formula("Instances of staged replicas", within=[n_replicas])
def staged_instances(
    pipeline_stages: Quantity, sequences: Quantity, batch_limit: Quantity, load_requests: Quantity, n_replicas: Quantity
) -> Any:
    """Whole instances of replicas with pipeline stages: one a stage; none where a replica needs no stages.

    Out:    0 where a lone request misses a target of speed, as in shared_replicas.
    Source: n_replicas x pipeline_stages.
    """
    known = both(pipeline_stages > 1, sequences >= 1, load_requests >= 1)
    return number_where(known, where(batch_limit >= 1, n_replicas * pipeline_stages, 0))


@formula("Replicas per instance")
def replicas_per_instance(gpu_count: Quantity, tensor_parallel_size: Quantity) -> Any:
    """Replicas of this TP that one instance carries.

    Source: floor(GPUs / TP); a replica without pipeline stages never spans instances.
    """
    return round_down(gpu_count / tensor_parallel_size)


@formula("Next larger TP")
def larger_tensor_parallel_size(
    tensor_parallel_size: Quantity, gpu_count: Quantity, max_tensor_parallel_size: Quantity
) -> Any:
    """Twice this TP where the instance could still carry it, else 0.

    Source: INTERFACE: TP is 1, 2, 4 or 8, at most the instance's GPUs.
    """
    doubled = tensor_parallel_size + tensor_parallel_size
    return where(doubled <= smallest(gpu_count, max_tensor_parallel_size), doubled, 0)


@formula("May span instances")
def may_span_instances(
    n_heads: Quantity, full_kv_heads: Quantity, windowed_kv_heads: Quantity, larger_tensor_parallel_size: Quantity
) -> Any:
    """True at the largest TP that instance and heads allow: only there may stages take whole instances.

    Source: INTERFACE: PP above 1 only where a whole instance at its largest TP is too small.
    """
    larger_divides = heads_divide(n_heads, full_kv_heads, windowed_kv_heads, larger_tensor_parallel_size)
    return either(larger_tensor_parallel_size == 0, larger_divides == 0)


@formula("Headroom", PERCENT)
def headroom_fraction(load_requests: Quantity, sequences: Quantity, n_replicas: Quantity) -> Any:
    """The share of the requests that the replicas could hold which the load leaves free.

    Source: 1 - load / (replicas x sequences per replica).
    """
    return 1 - ratio(load_requests, sequences * n_replicas, 1)


@formula("Sure headroom", PERCENT)
def sure_headroom_fraction(load_requests: Quantity, sure_sequences: Quantity, n_replicas: Quantity) -> Any:
    """The same where every KV pool comes out at the low end of its 80 % error band; 0 where the load is above
    what the replicas then hold. A fit is called tight by it.

    Source: headroom_fraction, with the sequences at the band's low end.
    """
    return largest(0, headroom_fraction(load_requests, sure_sequences, n_replicas))

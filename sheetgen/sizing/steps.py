"""What a step of decoding and a prompt have to do, and how long each part takes on a GPU.

A replica works in steps. A step reads the weights that its tokens need, reads every sequence's cache, computes, and
pays overhead for each layer; prompts take steps of their own. All quantities are of one rank of data-parallel
attention and of one batch in a pipeline: `batch_requests` = requests / (data_parallel_size x pipeline_parallel_size).
The constants (efficiencies, seconds of overhead) are fitted for each engine and generation of GPUs; docs/speed.md.
"""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, fading, formula, largest, power, ratio, smallest, where
from sheetgen.units import PERCENT, SECONDS, TWO_DECIMALS

# What a model makes a step read and compute ---------------------------------------------------------


@formula("Dense weights read in a step")
def dense_read_bytes(
    loaded_weights_bytes: Quantity, n_params_routed: Quantity, linear_bytes: Quantity, n_params_embedding: Quantity,
    n_params_lm_head: Quantity, n_params_per_layer_embedding: Quantity, other_bytes: Quantity,
) -> Any:  # fmt: skip
    """Weights that every step reads whatever its tokens are, in bytes: all but the routed experts and the tables of
    which a step reads a few rows: the embedding, where the output head is a matrix of its own, and embeddings of
    layers.

    Source: model architecture. Check: Llama 3.1 8B in bf16 is 15,009,849,344.
    """
    tables = (where(n_params_lm_head > 0, n_params_embedding, 0) + n_params_per_layer_embedding) * other_bytes
    return largest(0, loaded_weights_bytes - n_params_routed * linear_bytes - tables)


@formula("Routed experts' weights")
def expert_read_bytes(n_params_routed: Quantity, linear_bytes: Quantity) -> Any:
    """All routed experts, in bytes: what a step reads of them grows with the number of its tokens.

    Source: model architecture.
    """
    return n_params_routed * linear_bytes


@formula("Chance that a token leaves an expert alone", TWO_DECIMALS)
def expert_miss_fraction(n_experts: Quantity, experts_per_token: Quantity) -> Any:
    """The chance that one token is not routed to one expert: 1 - top_k / experts; 1 for a dense model.

    Source: uniform routing; fits of skewed routing come out uniform.
    """
    return 1 - ratio(experts_per_token, n_experts)


@formula("Active parameters in experts")
def active_expert_params(n_params_routed: Quantity, expert_miss_fraction: Quantity) -> Any:
    """Parameters of the routed experts that one token uses.

    Source: model architecture.
    """
    return n_params_routed * (1 - expert_miss_fraction)


# One step of decoding ------------------------------------------------------------------------------


@formula("Cache read for one sequence and rank")
def context_read_bytes(
    shard_kv_bytes_per_token: Quantity, shard_windowed_bytes_per_token: Quantity, window_tokens: Quantity,
    shard_state_bytes_per_layer: Quantity, n_state_layers: Quantity, input_tokens: Quantity, output_tokens: Quantity,
    average_answer_share: Quantity, state_passes: Quantity,
) -> Any:  # fmt: skip
    """What one step reads of a sequence's cache on one rank, in bytes, half of its answer written: growing layers
    whole, windows at most their width, states twice (read and written). MLA's latent is not divided over ranks.

    Source: attention reads every key and value once a step. Check: one sequence of 4,096 tokens of Llama 3.1 8B in
    bf16 is 512 MiB, 0.160 ms at 3.35 TB/s.
    """
    tokens = input_tokens + output_tokens * average_answer_share
    grows = shard_kv_bytes_per_token * tokens + shard_windowed_bytes_per_token * smallest(tokens, window_tokens)
    return grows + state_passes * shard_state_bytes_per_layer * n_state_layers


@formula("Step: dense weights", SECONDS)
def dense_seconds(
    dense_read_bytes: Quantity, tensor_parallel_size: Quantity, memory_bandwidth_bytes_per_second: Quantity,
    weight_bandwidth_efficiency: Quantity,
) -> Any:  # fmt: skip
    """Seconds in which one rank reads its share of the dense weights.

    Source: bytes / (bandwidth x fitted efficiency).
    """
    return dense_read_bytes / tensor_parallel_size / (memory_bandwidth_bytes_per_second * weight_bandwidth_efficiency)


@formula("Step: all experts", SECONDS)
def expert_seconds(
    expert_read_bytes: Quantity, tensor_parallel_size: Quantity, data_parallel_size: Quantity,
    memory_bandwidth_bytes_per_second: Quantity, expert_bandwidth_efficiency: Quantity,
) -> Any:  # fmt: skip
    """Seconds in which one GPU reads its share of all routed experts; they divide over data-parallel ranks too.

    Source: bytes / (bandwidth x fitted efficiency).
    """
    share = expert_read_bytes / (tensor_parallel_size * data_parallel_size)
    return share / (memory_bandwidth_bytes_per_second * expert_bandwidth_efficiency)


@formula("Step: overhead of layers", SECONDS)
def layer_overhead_seconds(n_layers: Quantity, seconds_per_layer: Quantity) -> Any:
    """Seconds that launching and finishing the kernels of all layers takes, whatever the batch.

    Source: fitted.
    """
    return n_layers * seconds_per_layer


def _group(n_experts: Quantity, tensor_parallel_size: Quantity, data_parallel_size: Quantity) -> Any:
    """GPUs that exchange activations: data-parallel ranks do only where they share experts."""
    return tensor_parallel_size * where(n_experts > 0, data_parallel_size, 1)


@formula("Step: latency of all-reduces", SECONDS)
def all_reduce_seconds(
    n_layers: Quantity, n_experts: Quantity, tensor_parallel_size: Quantity, data_parallel_size: Quantity,
    seconds_per_all_reduce: Quantity, nvlink_gpus: Quantity, all_reduce_growth: Quantity,
    all_reduces_per_layer: Quantity,
) -> Any:  # fmt: skip
    """Seconds of latency of two all-reduces a layer; 0 on one GPU. It grows slowly with the GPUs that take part.

    Source: fitted, for 8 GPUs of a node; (GPUs / 8) ^ 0.3 between 2 and 8.
    """
    gpus = _group(n_experts, tensor_parallel_size, data_parallel_size)
    return where(
        gpus > 1,
        all_reduces_per_layer * n_layers * seconds_per_all_reduce * power(gpus / nvlink_gpus, all_reduce_growth),
        0,
    )


@formula("One token through the links", SECONDS)
def token_link_seconds(
    n_layers: Quantity, n_experts: Quantity, hidden_size: Quantity, tensor_parallel_size: Quantity,
    data_parallel_size: Quantity, interconnect_bytes_per_second: Quantity, link_efficiency: Quantity,
    all_reduces_per_layer: Quantity, activation_element_bytes: Quantity, ring_passes: Quantity,
) -> Any:  # fmt: skip
    """Seconds that the all-reduces of one token's 16-bit activations keep the links busy; 0 on one GPU.

    Source: ring all-reduce: 2 x (n - 1) / n of the bytes, twice a layer, at the fitted share of the link's rate.
    """
    gpus = _group(n_experts, tensor_parallel_size, data_parallel_size)
    moved = all_reduces_per_layer * n_layers * hidden_size * activation_element_bytes * ring_passes * (gpus - 1) / gpus
    return where(gpus > 1, moved / (interconnect_bytes_per_second * link_efficiency), 0)


@formula("Step: each request's cache", SECONDS)
def kv_read_seconds(
    context_read_bytes: Quantity, memory_bandwidth_bytes_per_second: Quantity, kv_bandwidth_efficiency: Quantity
) -> Any:
    """Seconds that each request of the batch adds to a step by reading its cache.

    Source: bytes / (bandwidth x fitted efficiency).
    """
    return context_read_bytes / (memory_bandwidth_bytes_per_second * kv_bandwidth_efficiency)


@formula("Step: each request's arithmetic", SECONDS)
def decode_compute_seconds(
    n_params_active: Quantity, active_expert_params: Quantity, tensor_parallel_size: Quantity, peak_flops: Quantity,
    decode_compute_efficiency: Quantity, expert_decode_factor: Quantity, operations_per_parameter: Quantity,
) -> Any:  # fmt: skip
    """Seconds that each request of the batch adds to a step by its arithmetic, two operations a parameter.

    Source: 2 x active parameters / (GPUs x peak x fitted efficiency); experts at a fitted fraction of it.
    """
    dense = n_params_active - active_expert_params
    work = operations_per_parameter * (dense + active_expert_params / expert_decode_factor)
    return work / (tensor_parallel_size * peak_flops * decode_compute_efficiency)


@formula("Step: what does not grow with the batch", SECONDS)
def fixed_step_seconds(dense_seconds: Quantity, layer_overhead_seconds: Quantity, all_reduce_seconds: Quantity) -> Any:
    """Seconds of a step however few requests it serves, the experts aside.

    Source: the sum of its parts, not the largest: that halves the errors of the worst tenth.
    """
    return dense_seconds + layer_overhead_seconds + all_reduce_seconds


@formula("Step: what each request adds", SECONDS)
def request_step_seconds(
    kv_read_seconds: Quantity, decode_compute_seconds: Quantity, token_link_seconds: Quantity
) -> Any:
    """Seconds that each request of the batch adds to a step.

    Source: the sum of its parts.
    """
    return kv_read_seconds + decode_compute_seconds + token_link_seconds


@formula("Experts that a step leaves alone", PERCENT)
def untouched_fraction(batch_requests: Quantity, expert_miss_fraction: Quantity, data_parallel_size: Quantity) -> Any:
    """The share of the experts that no token of a step is routed to; 1 for a dense model, which has none.

    Source: expected distinct experts, 1 - (1 - k/E) ^ tokens; data-parallel ranks share the experts.
    """
    return fading(expert_miss_fraction, batch_requests * data_parallel_size)


def experts_read_seconds(expert_seconds: Quantity, untouched_fraction: Quantity) -> Any:
    """Seconds of a step that go into reading the experts that at least one of its tokens is routed to."""
    return expert_seconds * (1 - untouched_fraction)


@formula("One step", SECONDS)
def step_seconds(
    batch_requests: Quantity, fixed_step_seconds: Quantity, request_step_seconds: Quantity, expert_seconds: Quantity,
    untouched_fraction: Quantity,
) -> Any:  # fmt: skip
    """Seconds of one decoding step of a batch: one token for each of its requests.

    Source: docs/speed.md.
    """
    experts = experts_read_seconds(expert_seconds, untouched_fraction)
    return fixed_step_seconds + request_step_seconds * batch_requests + experts


# A prompt ------------------------------------------------------------------------------------------


@formula("Attention of a prompt, operations")
def prompt_attention_flops(
    input_tokens: Quantity, prefix_cache_hit_fraction: Quantity, attention_elements: Quantity,
    windowed_attention_elements: Quantity, window_tokens: Quantity,
) -> Any:  # fmt: skip
    """Operations of a prompt's causal attention, all layers: each new token looks at all before it, or at its window.

    Source: two operations for each pair and element of keys and values, half of the pairs by causality.
    """
    new = 1 - prefix_cache_hit_fraction
    full = attention_elements * input_tokens * input_tokens * new * (1 + prefix_cache_hit_fraction)
    seen = smallest(input_tokens, window_tokens + window_tokens)
    return full + windowed_attention_elements * input_tokens * new * seen


@formula("Prefill of one prompt", SECONDS)
def prefill_seconds(
    input_tokens: Quantity, prefix_cache_hit_fraction: Quantity, n_params_active: Quantity,
    active_expert_params: Quantity, tensor_parallel_size: Quantity, data_parallel_size: Quantity, peak_flops: Quantity,
    prefill_compute_efficiency: Quantity, expert_prefill_factor: Quantity, dense_seconds: Quantity,
    expert_seconds: Quantity, prefill_weight_reads: Quantity, prompt_attention_flops: Quantity,
    peak_flops_16_bit: Quantity, attention_compute_efficiency: Quantity, token_link_seconds: Quantity,
    layer_overhead_seconds: Quantity, operations_per_parameter: Quantity,
) -> Any:  # fmt: skip
    """Seconds of work that one prompt makes; what the prefix cache holds is not computed again.

    Source: arithmetic, attention, all-reduces of every token, one (fitted share of a) reading of all weights.
    """
    tokens = input_tokens * (1 - prefix_cache_hit_fraction)
    dense = (n_params_active - active_expert_params) / tensor_parallel_size
    experts = active_expert_params / (tensor_parallel_size * data_parallel_size * expert_prefill_factor)
    arithmetic = operations_per_parameter * tokens * (dense + experts) / (peak_flops * prefill_compute_efficiency)
    attention = prompt_attention_flops / (tensor_parallel_size * peak_flops_16_bit * attention_compute_efficiency)
    reads = prefill_weight_reads * (dense_seconds + expert_seconds)
    return arithmetic + attention + reads + tokens * token_link_seconds + layer_overhead_seconds

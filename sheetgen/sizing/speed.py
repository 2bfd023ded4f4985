"""Speed as users see it: time to the first token, time for each further one, tokens a second, and what bounds them.

A replica works in steps. A step reads the weights that its tokens need, reads every sequence's cache, computes, and
pays overhead for each layer; prompts take steps of their own. All quantities are of one rank of data-parallel
attention and of one batch in a pipeline: `batch_requests` = requests / (data_parallel_size x pipeline_parallel_size).
The constants (efficiencies, seconds of overhead) are fitted for each engine and generation of GPUs; docs/speed.md.
"""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.formula import (
    Quantity,
    Value,
    both,
    called_with,
    either,
    fading,
    formula,
    greatest_of_places,
    largest,
    power,
    ratio,
    remainder,
    round_down,
    round_up,
    smallest,
    where,
)
from sheetgen.units import FACTOR, PERCENT, PLAIN, SECONDS, TEXT, TWO_DECIMALS

# Whole columns that `of_measurements` reads: what each run or log is of, and what it sets.
MEASUREMENTS = (
    "measured_models", "measured_weight_dtypes", "measured_gpus", "measured_tensor_parallel_sizes",
    "measured_data_parallel_sizes", "measured",
)  # fmt: skip

# What a model makes a step read and compute ---------------------------------------------------------


@formula("Dense weights read in a step")
def dense_read_bytes(
    loaded_weights_bytes: Quantity,
    routed_bytes: Quantity,
    n_params_embedding: Quantity,
    n_params_lm_head: Quantity,
    n_params_per_layer_embedding: Quantity,
    other_bytes: Quantity,
) -> Quantity:
    """Weights that every step reads whatever its tokens are, in bytes: all but the routed experts and the tables of
    which a step reads only a few rows (the embedding, where the output head is a matrix of its own, and embeddings of
    layers).

    Source: model architecture. Check: Llama 3.1 8B in bf16 is 15,009,849,344.
    """
    tables = (where(n_params_lm_head > 0, n_params_embedding, 0) + n_params_per_layer_embedding) * other_bytes
    return largest(0, loaded_weights_bytes - routed_bytes - tables)


@formula("Chance that a token leaves an expert alone", TWO_DECIMALS)
def expert_miss_fraction(n_experts: Quantity, experts_per_token: Quantity) -> Quantity:
    """The chance that one token is not routed to one expert: 1 - top_k / experts; 1 for a dense model.

    Source: uniform routing; fits of skewed routing come out uniform.
    """
    return 1 - ratio(experts_per_token, n_experts)


@formula("Active parameters in experts")
def active_expert_params(n_params_routed: Quantity, expert_miss_fraction: Quantity) -> Quantity:
    """Parameters of the routed experts that one token uses.

    Source: model architecture.
    """
    return n_params_routed * (1 - expert_miss_fraction)


@formula("Kind of model", PLAIN)
def speed_kind(
    n_experts: Quantity,
    n_windowed_layers: Quantity,
    n_state_layers: Quantity,
    n_other_layers: Quantity,
    other_bytes_per_token: Quantity,
    n_model_kinds: Quantity,
) -> Quantity:
    """Kind of model, as the errors of predicted speed distinguish them: 5 with sparse attention (an indexer or
    compressed entries), else 4 with recurrent states, else 3 with windows, else 2 with experts, else 1 (dense).

    Source: docs/speed.md.
    """
    sparse = n_other_layers + other_bytes_per_token > 0
    plain = where(n_windowed_layers > 0, n_model_kinds - 1 - 1, 1 + where(n_experts > 0, 1, 0))
    return where(sparse, n_model_kinds, where(n_state_layers > 0, n_model_kinds - 1, plain))


# One step of decoding ------------------------------------------------------------------------------


@formula("Cache read for one sequence and rank")
def context_read_bytes(
    shard_kv_bytes_per_token: Quantity,
    shard_windowed_bytes_per_token: Quantity,
    window_tokens: Quantity,
    shard_state_bytes_per_layer: Quantity,
    n_state_layers: Quantity,
    input_tokens: Quantity,
    output_tokens: Quantity,
    average_answer_share: Quantity,
    average_context_fraction: Quantity,
    state_passes: Quantity,
) -> Quantity:
    """Cache of a sequence that one step reads on one rank, in bytes, with half of its answer written and the context
    filled as on average: growing layers whole, windows at most their width, states twice (read and written). MLA's
    latent is not divided over ranks.

    Source: attention reads every key and value once a step. Check: one sequence of 4,096 tokens of Llama 3.1 8B in
    bf16 is 512 MiB, 0.160 ms at 3.35 TB/s.
    """
    tokens = (input_tokens + output_tokens * average_answer_share) * average_context_fraction
    grows = shard_kv_bytes_per_token * tokens + shard_windowed_bytes_per_token * smallest(tokens, window_tokens)
    return grows + state_passes * shard_state_bytes_per_layer * n_state_layers


@formula("Step: dense weights", SECONDS)
def dense_seconds(
    dense_read_bytes: Quantity,
    tensor_parallel_size: Quantity,
    memory_bandwidth_bytes_per_second: Quantity,
    weight_bandwidth_efficiency: Quantity,
) -> Quantity:
    """Seconds in which one rank reads its share of the dense weights.

    Source: bytes / (bandwidth x fitted efficiency).
    """
    return dense_read_bytes / tensor_parallel_size / (memory_bandwidth_bytes_per_second * weight_bandwidth_efficiency)


@formula("Step: all experts", SECONDS)
def expert_seconds(
    routed_bytes: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    memory_bandwidth_bytes_per_second: Quantity,
    expert_bandwidth_efficiency: Quantity,
) -> Quantity:
    """Seconds in which one GPU reads its share of all routed experts; they divide over data-parallel ranks too.

    Source: bytes / (bandwidth x fitted efficiency).
    """
    share = routed_bytes / (tensor_parallel_size * data_parallel_size)
    return share / (memory_bandwidth_bytes_per_second * expert_bandwidth_efficiency)


@formula("Layers, counted by their kernels", TWO_DECIMALS)
def kernel_layers(
    n_layers: Quantity,
    n_experts: Quantity,
    n_state_layers: Quantity,
    speed_kind: Quantity,
    n_model_kinds: Quantity,
    expert_kernels: Quantity,
    state_kernels: Quantity,
    sparse_kernels: Quantity,
) -> Quantity:
    """The number of plain layers that would launch as many kernels as the model does: layers with experts also route,
    sort and add up, recurrent states are scanned, sparse attention looks up an index.

    Source: fitted, shares of a plain layer that hold for every engine (catalogs/speed.yaml). Check: Llama 3.1 8B is 32.
    """
    more = where(n_experts > 0, expert_kernels, 0) + where(speed_kind == n_model_kinds, sparse_kernels, 0)
    return n_layers * (1 + more) + n_state_layers * state_kernels


@formula("Overhead of a layer, as it is run", SECONDS)
def layer_seconds_as_run(
    seconds_per_layer: Quantity, eager_seconds_per_layer: Quantity, enforce_eager: Quantity
) -> Quantity:
    """Seconds of overhead that a plain layer adds to a step: without CUDA graphs the host launches each kernel anew.

    Source: vLLM --enforce-eager; catalogs/speed.yaml, eager_seconds_per_layer.
    """
    return where(enforce_eager == 1, largest(seconds_per_layer, eager_seconds_per_layer), seconds_per_layer)


@formula("Step: overhead of layers", SECONDS)
def layer_overhead_seconds(kernel_layers: Quantity, seconds_per_layer: Quantity) -> Quantity:
    """Seconds that launching and finishing the kernels of all layers takes, whatever the batch: no step is shorter.

    Source: fitted.
    """
    return kernel_layers * seconds_per_layer


@formula("Data-parallel ranks that step together")
def busy_ranks(running_requests: Quantity, data_parallel_size: Quantity, n_experts: Quantity) -> Quantity:
    """Ranks of data-parallel attention that have a request and share experts: they wait for each other in each step.

    Out:    1 for a dense model, whose ranks have nothing in common.
    Source: vLLM data-parallel deployment; TensorRT-LLM attention DP.
    """
    return where(n_experts > 0, largest(1, smallest(running_requests, data_parallel_size)), 1)


def all_gpus(n_experts: Quantity, tensor_parallel_size: Quantity, data_parallel_size: Quantity) -> Quantity:
    """GPUs that exchange activations: data-parallel ranks take part only where they share experts."""
    return tensor_parallel_size * where(n_experts > 0, data_parallel_size, 1)


@formula("Step: latency of all-reduces", SECONDS, within=[all_gpus])
def all_reduce_seconds(
    n_layers: Quantity,
    tensor_parallel_size: Quantity,
    all_gpus: Quantity,
    seconds_per_all_reduce: Quantity,
    nvlink_gpus: Quantity,
    all_reduce_growth: Quantity,
) -> Quantity:
    """Seconds of latency of the two all-reduces of each layer, one after attention over its tensor-parallel ranks, one
    after the feed-forward part over all GPUs that share it; 0 on one GPU. It grows slowly with the number of GPUs.

    Source: fitted, for 8 GPUs of a node; (GPUs / 8) ^ 0.3 between 2 and 8.
    """
    parts = [
        where(gpus > 1, power(gpus / nvlink_gpus, all_reduce_growth), 0) for gpus in (tensor_parallel_size, all_gpus)
    ]
    return n_layers * seconds_per_all_reduce * (parts[0] + parts[1])


@called_with("gpus")
def ring_seconds(
    gpus: Quantity,
    n_layers: Quantity,
    hidden_size: Quantity,
    interconnect_bytes_per_second: Quantity,
    pair_link_bytes_per_second: Quantity,
    link_efficiency: Quantity,
    activation_element_bytes: Quantity,
    ring_passes: Quantity,
) -> Quantity:
    """Seconds of one all-reduce in each layer of one token's 16-bit activations over so many GPUs; 0 on one GPU. A ring
    is as fast as its slowest link: a bridge serves only the two GPUs that it joins."""
    moved = n_layers * hidden_size * activation_element_bytes * ring_passes * (1 - 1 / gpus)
    bridge = where(gpus <= 2, pair_link_bytes_per_second, 0)
    return moved / (largest(interconnect_bytes_per_second, bridge) * link_efficiency)


@formula("One token's all-reduces of attention", SECONDS, within=[ring_seconds])
def token_link_seconds(ring_seconds: Callable[..., Quantity], tensor_parallel_size: Quantity) -> Quantity:
    """Seconds for which one token's all-reduces after attention, over the tensor-parallel ranks, keep the links busy.

    Source: ring all-reduce: 2 x (n - 1) / n of the bytes, at the fitted share of the link's rate.
    """
    return ring_seconds(gpus=tensor_parallel_size)


@formula("One token's exchange for the feed-forward part", SECONDS, within=[ring_seconds, all_gpus])
def token_exchange_seconds(ring_seconds: Callable[..., Quantity], all_gpus: Quantity) -> Quantity:
    """Seconds for which one token's all-reduces after the feed-forward part keep the links of all GPUs that share it
    busy.

    Source: as token_link_seconds. Where data-parallel ranks share experts, an all-gather before and a reduce-scatter
    after them move as much, of the tokens of all ranks (vLLM allgather_reducescatter).
    """
    return ring_seconds(gpus=all_gpus)


def _hops(pipeline_parallel_size: Quantity) -> Quantity:
    """Transfers from one pipeline stage to the next, each stage on a machine of its own."""
    return largest(0, pipeline_parallel_size - 1)


@formula("One token between stages", SECONDS)
def token_hop_seconds(
    hidden_size: Quantity,
    pipeline_parallel_size: Quantity,
    data_parallel_size: Quantity,
    activation_element_bytes: Quantity,
    network_bytes_per_second: Quantity,
) -> Quantity:
    """Seconds for which the 16-bit activations of one token of each data-parallel rank are on the network between
    machines, all hops together; 0 without pipeline stages.

    Source: hidden size x 2 bytes a hop, at the machine's rate. Check: a token of Llama 3.1 405B at 400 Gb/s is
    0.66 microseconds, a prompt of 129,024 tokens 85 ms.
    """
    moved = _hops(pipeline_parallel_size) * data_parallel_size * hidden_size * activation_element_bytes
    return moved / network_bytes_per_second


@formula("Network of a machine")
def network_bytes_per_second(least_network_gbps: Quantity, bytes_per_gigabit: Quantity) -> Quantity:
    """Network rate that a sheet assumes between the machines of a replica, in bytes a second: the least that machines
    must have to hold a stage, on the safe side where they have more.

    Source: INTERFACE (spanning machines).
    """
    return least_network_gbps * bytes_per_gigabit


@formula("Step: latency between stages", SECONDS)
def stage_hop_seconds(pipeline_parallel_size: Quantity, network_hop_seconds: Quantity) -> Quantity:
    """Seconds of latency of a step's hops from machine to machine; 0 without pipeline stages.

    A token passes all stages one after the other, each reading its own layers' weights: in a step all of them.

    Source: catalogs/speed.yaml, network_hop_seconds.
    """
    return _hops(pipeline_parallel_size) * network_hop_seconds


@formula("Step: each request's cache", SECONDS)
def kv_read_seconds(
    context_read_bytes: Quantity, memory_bandwidth_bytes_per_second: Quantity, kv_bandwidth_efficiency: Quantity
) -> Quantity:
    """Seconds that each request of the batch adds to a step by reading its cache.

    Source: bytes / (bandwidth x fitted efficiency).
    """
    return context_read_bytes / (memory_bandwidth_bytes_per_second * kv_bandwidth_efficiency)


@formula("Step: each request's arithmetic and overhead", SECONDS)
def decode_compute_seconds(
    n_params_active: Quantity,
    active_expert_params: Quantity,
    tensor_parallel_size: Quantity,
    peak_flops: Quantity,
    decode_compute_efficiency: Quantity,
    expert_decode_factor: Quantity,
    operations_per_parameter: Quantity,
    seconds_per_request: Quantity,
) -> Quantity:
    """Seconds that each request of the batch adds to a step by its arithmetic (two operations for each parameter) and
    by being scheduled and sampled.

    Source: 2 x active parameters / (GPUs x peak x fitted efficiency); experts at a fitted fraction of it.
    """
    dense = n_params_active - active_expert_params
    work = operations_per_parameter * (dense + active_expert_params / expert_decode_factor)
    return work / (tensor_parallel_size * peak_flops * decode_compute_efficiency) + seconds_per_request


@formula("Step: what does not grow with the batch", SECONDS)
def fixed_step_seconds(
    dense_seconds: Quantity,
    layer_overhead_seconds: Quantity,
    all_reduce_seconds: Quantity,
    stage_hop_seconds: Quantity,
    least_step_seconds: Quantity,
) -> Quantity:
    """Seconds that a step takes however few requests it serves, without the experts; for the smallest models on the
    fastest GPUs, the time of the engine's scheduler.

    Source: the sum of its parts, not the largest: that halves the errors of the worst tenth. The least: no measured
    run has a shorter step (catalogs/speed.yaml, least_step_seconds).
    """
    parts = dense_seconds + layer_overhead_seconds + all_reduce_seconds + stage_hop_seconds
    return where(parts < least_step_seconds, least_step_seconds, parts)


def links_seconds(
    token_link_seconds: Quantity, token_exchange_seconds: Quantity, busy_ranks: Quantity, token_hop_seconds: Quantity
) -> Quantity:
    """Seconds for which one token of each request keeps links and network busy."""
    return token_link_seconds + token_exchange_seconds * busy_ranks + token_hop_seconds


@formula("Step: what each request adds", SECONDS, within=[links_seconds])
def request_step_seconds(
    kv_read_seconds: Quantity,
    decode_compute_seconds: Quantity,
    links_seconds: Quantity,
    measured_request_factor: Quantity,
) -> Quantity:
    """Seconds that each request of the batch adds to a step; measured where runs of this deployment at several loads
    were given.

    Source: the sum of its parts.
    """
    return (kv_read_seconds + decode_compute_seconds + links_seconds) * _where_measured(measured_request_factor)


@formula("Experts that a step leaves alone", PERCENT)
def untouched_fraction(
    batch_requests: Quantity, expert_miss_fraction: Quantity, data_parallel_size: Quantity
) -> Quantity:
    """The share of the experts that no token of a step is routed to; 1 for a dense model, which has none.

    Source: expected distinct experts, 1 - (1 - k/E) ^ tokens; data-parallel ranks share the experts.
    """
    return fading(expert_miss_fraction, batch_requests * data_parallel_size)


def experts_read_seconds(expert_seconds: Quantity, untouched_fraction: Quantity) -> Quantity:
    """Seconds of a step spent reading the experts that at least one of its tokens is routed to."""
    return expert_seconds * (1 - untouched_fraction)


@formula("One step", SECONDS, within=[experts_read_seconds])
def step_seconds(
    batch_requests: Quantity,
    fixed_step_seconds: Quantity,
    request_step_seconds: Quantity,
    experts_read_seconds: Quantity,
) -> Quantity:
    """Seconds of one decoding step of a batch: one token for each of its requests.

    Source: docs/speed.md.
    """
    return fixed_step_seconds + request_step_seconds * batch_requests + experts_read_seconds


def _where_measured(factor: Quantity) -> Quantity:
    """The factor that runs of a deployment set, 1 where there are none."""
    return where(factor > 0, factor, 1)


@formula("What was measured of a deployment", FACTOR, rows=MEASUREMENTS)
def of_measurements(
    model_name: Quantity,
    weight_dtype_row: Quantity,
    gpu_name: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    measured_models: Quantity,
    measured_weight_dtypes: Quantity,
    measured_gpus: Quantity,
    measured_tensor_parallel_sizes: Quantity,
    measured_data_parallel_sizes: Quantity,
    measured: Quantity,
) -> Quantity:
    """The value that runs or start-up logs of this model, precision, GPU and layout set: a factor on predicted times,
    or bytes of the pool; 0 where none was given.

    In:     measured, by deployment what its runs or logs set.
    Source: --measured.
    """

    def is_of_runs(model: Quantity, dtype: Quantity, gpu: Quantity, tensor: Quantity, data: Quantity) -> Quantity:
        names = (model == model_name) * (gpu == gpu_name) * (dtype == weight_dtype_row)
        return names * (tensor == tensor_parallel_size) * (data == data_parallel_size) == 1

    return greatest_of_places(
        measured,
        is_of_runs,
        measured_models,
        measured_weight_dtypes,
        measured_gpus,
        measured_tensor_parallel_sizes,
        measured_data_parallel_sizes,
    )


# A prompt ------------------------------------------------------------------------------------------


@formula("Share of the prompt in the cache", PERCENT)
def cached_fraction(prefix_cache_hit_fraction: Quantity, history_hit_fraction: Quantity) -> Quantity:
    """Share of the prompt that is not computed again: the prefix that all requests share, and each request's own
    history.

    Source: INTERFACE; of the two the shared part alone is kept once, see charged_tokens.
    """
    return smallest(1, prefix_cache_hit_fraction + history_hit_fraction)


@formula("Attention of a prompt, operations")
def prompt_attention_flops(
    input_tokens: Quantity,
    cached_fraction: Quantity,
    attention_elements: Quantity,
    windowed_attention_elements: Quantity,
    window_tokens: Quantity,
) -> Quantity:
    """Operations of a prompt's causal attention in all layers: each new token looks at all tokens before it, or at its
    window.

    Source: two operations for each pair and element of keys and values, half of the pairs by causality.
    """
    new = 1 - cached_fraction
    full = attention_elements * input_tokens * input_tokens * new * (1 + cached_fraction)
    seen = smallest(input_tokens, window_tokens + window_tokens)
    return full + windowed_attention_elements * input_tokens * new * seen


@formula("Prefill: what ranks share", SECONDS)
def shared_prefill_seconds(
    input_tokens: Quantity,
    cached_fraction: Quantity,
    active_expert_params: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    peak_flops: Quantity,
    prefill_compute_efficiency: Quantity,
    expert_prefill_factor: Quantity,
    token_exchange_seconds: Quantity,
    operations_per_parameter: Quantity,
) -> Quantity:
    """Seconds of work of one prompt in experts and links, which all data-parallel ranks share.

    Source: arithmetic of the routed experts, and the exchange of every token.
    """
    tokens = input_tokens * (1 - cached_fraction)
    pace = tensor_parallel_size * data_parallel_size * peak_flops * prefill_compute_efficiency * expert_prefill_factor
    return tokens * (operations_per_parameter * active_expert_params / pace + token_exchange_seconds)


@formula("Prefill of one prompt", SECONDS)
def prefill_seconds(
    input_tokens: Quantity,
    cached_fraction: Quantity,
    n_params_active: Quantity,
    active_expert_params: Quantity,
    tensor_parallel_size: Quantity,
    peak_flops: Quantity,
    prefill_compute_efficiency: Quantity,
    dense_seconds: Quantity,
    expert_seconds: Quantity,
    prefill_weight_reads: Quantity,
    prompt_attention_flops: Quantity,
    peak_flops_16_bit: Quantity,
    attention_compute_efficiency: Quantity,
    shared_prefill_seconds: Quantity,
    layer_overhead_seconds: Quantity,
    token_link_seconds: Quantity,
    token_hop_seconds: Quantity,
    stage_hop_seconds: Quantity,
    operations_per_parameter: Quantity,
) -> Quantity:
    """Seconds of work of one prompt; what the prefix cache holds is not computed again.

    Source: arithmetic, attention, all-reduces of every token, one (fitted share of a) reading of all weights, and the
    way between machines.
    """
    tokens = input_tokens * (1 - cached_fraction)
    dense = operations_per_parameter * tokens * (n_params_active - active_expert_params)
    arithmetic = dense / (tensor_parallel_size * peak_flops * prefill_compute_efficiency)
    attention = prompt_attention_flops / (tensor_parallel_size * peak_flops_16_bit * attention_compute_efficiency)
    reads = prefill_weight_reads * (dense_seconds + expert_seconds)
    links = tokens * (token_link_seconds + token_hop_seconds) + stage_hop_seconds
    return arithmetic + attention + reads + layer_overhead_seconds + shared_prefill_seconds + links


@formula("Prefill of a prompt on every rank", SECONDS)
def prefill_round_seconds(
    prefill_seconds: Quantity, shared_prefill_seconds: Quantity, busy_ranks: Quantity, gather_steps: Quantity
) -> Quantity:
    """Seconds of one prompt on each busy rank of data-parallel attention: side by side, except for what the ranks
    share, where the engine gathers prompts; else one after the other, as a step with a prompt on one rank holds up all
    others.

    Source: ranks step together. TensorRT-LLM gathers prompts (attention_dp_config), vLLM does not.
    """
    return prefill_seconds + (busy_ranks - 1) * where(gather_steps > 0, shared_prefill_seconds, prefill_seconds)


@formula("Rounds of others' prompts", TWO_DECIMALS)
def other_rounds(batch_requests: Quantity, busy_ranks: Quantity, gather_steps: Quantity) -> Quantity:
    """Prompts of other requests that are read while a request is answered, each once; one on each busy rank counts as
    one.

    Source: those of other ranks come with one's own where the engine gathers them, else at other times.
    """
    return batch_requests - where(gather_steps > 0, 1, 1 / busy_ranks)


@formula("Rounds of prompts waited for", TWO_DECIMALS, within=[other_rounds])
def prompts_waited_for(
    other_rounds: Quantity, wait_factor: Quantity, output_tokens: Quantity, closed_loop: Quantity
) -> Quantity:
    """Prompts of other requests that a new request waits for before its first token, on average; one on each busy rank
    counts as one. With requests at once, at least those that are at their first token, one for each token of an answer:
    all of them where answers have one token, as no gap in an answer takes a prompt then. At a rate, the prompts' share
    of the time bounds their queue (prefill_replicas).

    In:     closed_loop: 1 where a request follows each answer at once, 0 where requests arrive at a rate.
    Source: fitted, a share of the others; powers of their number fit no better. For short answers arithmetic: in a
            closed loop a round is no shorter than all of its prompts.
    """
    return other_rounds * largest(wait_factor, closed_loop / largest(1, output_tokens))


@formula("Running steps before a prompt", TWO_DECIMALS)
def steps_before_prompt(
    steps_before_prefill: Quantity,
    input_tokens: Quantity,
    cached_fraction: Quantity,
    max_num_batched_tokens: Quantity,
    chunks_power: Quantity,
) -> Quantity:
    """Steps of the running requests that come before a prompt's first token, shared among its chunks: the steps before
    a whole chunk times a power of the prompt's number of chunks.

    Source: chunked prefill, a chunk of at most max_num_batched_tokens a step; fitted (docs/speed.md).
    """
    tokens = largest(1, input_tokens * (1 - cached_fraction))
    return steps_before_prefill * power(tokens / max_num_batched_tokens, chunks_power)


@formula("Left of the time per token", TWO_DECIMALS)
def tpot_residual(tpot_of_kind: Quantity, tpot_of_dtype: Quantity, measured_tpot_factor: Quantity) -> Quantity:
    """Factor on the time per output token that measurements on this engine and generation of GPUs leave unexplained: of
    this kind of model and this precision of weights, 1 where none were made; and of runs of this deployment, where some
    were given.

    Source: fitted, drawn to 1 where runs are few (docs/speed.md); --measured.
    """
    return tpot_of_kind * tpot_of_dtype * _where_measured(measured_tpot_factor)


@formula("Left of the time to first token", TWO_DECIMALS)
def ttft_residual(ttft_of_kind: Quantity, ttft_of_dtype: Quantity, measured_ttft_factor: Quantity) -> Quantity:
    """Factor on the time to first token that measurements leave unexplained, of the same parts as tpot_residual.

    Source: as tpot_residual.
    """
    return ttft_of_kind * ttft_of_dtype * _where_measured(measured_ttft_factor)


@formula("Time per output token", SECONDS, within=[step_seconds, prefill_round_seconds, other_rounds])
def tpot_seconds(
    output_tokens: Quantity,
    step_seconds: Quantity,
    prefill_round_seconds: Quantity,
    other_rounds: Quantity,
    wait_factor: Quantity,
    speed_factor: Quantity,
    tpot_residual: Quantity,
) -> Quantity:
    """Seconds between two tokens of one answer (TPOT), including the prompts of other requests among the steps.

    While a request is answered, each other one of its batch is prefilled once. Those that it waited for before its
    first token do not come again; the others lengthen its answer.

    Source: one step and the share of others' prompts; docs/speed.md.
    """
    prompts = prefill_round_seconds * other_rounds * (1 - wait_factor)
    return speed_factor * tpot_residual * (step_seconds + prompts / where(output_tokens > 1, output_tokens, 1))


@formula(
    "Time to first token, once its turn comes",
    SECONDS,
    within=[step_seconds, prefill_round_seconds, prompts_waited_for],
)
def service_ttft_seconds(
    batch_requests: Quantity,
    busy_ranks: Quantity,
    output_tokens: Quantity,
    step_seconds: Quantity,
    prefill_seconds: Quantity,
    prefill_round_seconds: Quantity,
    prompts_waited_for: Quantity,
    base_ttft_seconds: Quantity,
    busy_ttft_seconds: Quantity,
    steps_before_prompt: Quantity,
    gather_steps: Quantity,
    ttft_factor: Quantity,
    ttft_residual: Quantity,
) -> Quantity:
    """Seconds from a request's turn to its first token: overhead (more of it beside other requests), the running steps,
    the prompts before it and its own. Where the engine gathers prompts, those of other ranks come with its own, which
    takes steps for each other rank. Beside answers of one token no steps run.

    Source: fitted; indicative under load.
    """
    steps = steps_before_prompt + gather_steps * (busy_ranks - 1)
    alone = 1 / (batch_requests * busy_ranks)  # a lone request waits for no other request's steps
    others = where(output_tokens > 1, 1 - alone, 0)
    prompts = where(gather_steps > 0, prefill_round_seconds, prefill_seconds)
    waited = prompts + prefill_round_seconds * prompts_waited_for
    beside = (busy_ttft_seconds + steps * step_seconds) * others
    return ttft_factor * ttft_residual * (base_ttft_seconds + beside + waited)


# The times of a request, as functions of the batch that it is served in.
TPOT_OF_BATCH, TTFT_OF_BATCH = (
    times.with_parts([untouched_fraction]).as_function_of("batch_requests")
    for times in (tpot_seconds, service_ttft_seconds)
)

# How many run at once, and what waiting for a turn costs -------------------------------------------------


@formula("Tokens of a running request")
def filled_tokens(
    charged_tokens: Quantity,
    input_tokens: Quantity,
    output_tokens: Quantity,
    prefix_cache_hit_fraction: Quantity,
    average_answer_share: Quantity,
    average_context_fraction: Quantity,
    kv_reserved: Quantity,
) -> Quantity:
    """Tokens of cache that a running request holds on average: its prompt and half of its answer, as far as they are
    filled, at most what it is charged; the whole charge where the cache is reserved.

    Source: paged engines let a request in by what is filled now, and preempt when that was too much.
    """
    written = (input_tokens + output_tokens * average_answer_share) * average_context_fraction
    filled = round_up(largest(0, written - input_tokens * prefix_cache_hit_fraction))
    return where(kv_reserved == 1, charged_tokens, largest(1, smallest(charged_tokens, filled)))


@formula("Requests running")
def running_requests(concurrent_requests: Quantity, running_capacity: Quantity) -> Quantity:
    """Requests of the replica that are being answered; the others wait. Where memory holds none at all, the speed is
    that of a GPU with more memory, on which all run.

    Source: the smaller of the two.
    """
    return where(running_capacity >= 1, smallest(concurrent_requests, running_capacity), concurrent_requests)


@formula("Requests of one batch", TWO_DECIMALS)
def batch_requests(
    running_requests: Quantity, data_parallel_size: Quantity, pipeline_parallel_size: Quantity
) -> Quantity:
    """Requests that take their steps together: data-parallel ranks and pipeline stages each have a batch of their own,
    and the fullest rank sets the pace.

    Source: vLLM runs one batch a rank, and one a stage.
    """
    return largest(1, round_up(running_requests / data_parallel_size) / pipeline_parallel_size)


def turn_seconds(service_ttft_seconds: Quantity, output_tokens: Quantity, tpot_seconds: Quantity) -> Quantity:
    """Seconds from a request's turn to its last token."""
    return service_ttft_seconds + largest(0, output_tokens - 1) * tpot_seconds


@formula("Waiting for a turn", SECONDS, within=[turn_seconds])
def queue_seconds(concurrent_requests: Quantity, running_requests: Quantity, turn_seconds: Quantity) -> Quantity:
    """Seconds that a request waits until the pool has room; 0 where all run at once.

    Source: Little's law: those that wait, over the rate at which the running ones finish.
    """
    return ratio(concurrent_requests - running_requests, running_requests) * turn_seconds


@formula("Time to first token", SECONDS)
def ttft_seconds(service_ttft_seconds: Quantity, queue_seconds: Quantity) -> Quantity:
    """Seconds from the moment a request has a place to its first token (TTFT), with the wait for its turn among the
    running requests; the wait for a place comes before. Under load indicative.

    Source: the sum of its parts.
    """
    return service_ttft_seconds + queue_seconds


@formula("Output tokens per second", TWO_DECIMALS)
def output_tokens_per_second(
    concurrent_requests: Quantity, output_tokens: Quantity, ttft_seconds: Quantity, tpot_seconds: Quantity
) -> Quantity:
    """Output tokens that all requests of the replica together get in a second; prompts are not counted.

    Source: requests x output tokens / (TTFT + (output tokens - 1) x TPOT).
    """
    alive = turn_seconds(ttft_seconds, output_tokens, tpot_seconds)
    return ratio(concurrent_requests * output_tokens, alive)


@formula("Most requests per second", TWO_DECIMALS, within=[turn_seconds])
def max_requests_per_second(running_requests: Quantity, turn_seconds: Quantity) -> Quantity:
    """Requests that the running ones finish in a second: where more arrive, the queue grows without bound.

    Source: Little's law.
    """
    return ratio(running_requests, turn_seconds)


@formula("Requests running when the pool is full")
def full_house(running_requests: Quantity, running_capacity: Quantity) -> Quantity:
    """Requests that run while others are always waiting: as many as the pool holds.

    Source: running_capacity; where not one fits, as many as requested.
    """
    return largest(running_requests, running_capacity)


@formula("Queue grows")
def grows(requests_per_second: Quantity, max_requests_per_second: Quantity) -> Quantity:
    """1 where requests arrive at least as fast as a full pool finishes them: their queue grows without bound.

    Source: queueing theory; a stable queue needs arrivals below what is served.
    """
    return where(requests_per_second >= max_requests_per_second, 1, 0)


@formula("Has runs of its own (1 or 0)", PLAIN)
def has_own_runs(speed_kind: Quantity, measured_kinds: Quantity, kinds_base: Quantity) -> Quantity:
    """1 where runs of this engine on this GPU with models of this kind took part in the fit, else 0.

    In:     measured_kinds: kinds of models measured on this engine and GPU; the kinds' powers of 2 added up.
    Source: docs/speed.md.
    """
    of_kind = round_down(measured_kinds / power(kinds_base, speed_kind - 1))
    return where(remainder(of_kind, kinds_base) == 1, 1, 0)


@formula("Scope of the bands", PLAIN)
def measured_scope(
    has_own_runs: Quantity,
    n_experts: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    pipeline_parallel_size: Quantity,
    nvlink_gpus: Quantity,
) -> Quantity:
    """Which runs the bands of speed come from: 0 this engine, GPU and kind of model, 1 others, 2 ranks of data-parallel
    attention that share experts, 3 pipeline stages or more GPUs than a node has.

    Source: docs/speed.md.
    """
    shared = both(n_experts > 0, data_parallel_size > 1)
    beyond = either(pipeline_parallel_size > 1, tensor_parallel_size * data_parallel_size > nvlink_gpus)
    return 1 + where(either(shared, beyond), 1, -has_own_runs) + where(beyond, 1, 0)


@formula("At one end of the band")
def at_speed_band(predicted: Quantity, band_factor: Quantity) -> Quantity:
    """A time or a rate at one end of its 80 % band, in its own unit.

    Source: catalogs/speed.yaml, bands; docs/speed.md.
    """
    return predicted * band_factor


@formula("Share of time in prompts", PERCENT, within=[step_seconds, prefill_round_seconds])
def prefill_fraction(
    batch_requests: Quantity, prefill_round_seconds: Quantity, output_tokens: Quantity, step_seconds: Quantity
) -> Quantity:
    """The share of a busy GPU's time that goes into prompts; the rest goes into answers.

    Source: prompts / (prompts + steps), for one answer of every request of the batch.
    """
    prompts = prefill_round_seconds * batch_requests
    return ratio(prompts, prompts + output_tokens * step_seconds)


@formula("Bound by", TEXT, within=[prefill_round_seconds, other_rounds, experts_read_seconds, links_seconds])
def bound_by(
    batch_requests: Quantity,
    concurrent_requests: Quantity,
    running_requests: Quantity,
    output_tokens: Quantity,
    dense_seconds: Quantity,
    experts_read_seconds: Quantity,
    kv_read_seconds: Quantity,
    decode_compute_seconds: Quantity,
    prefill_round_seconds: Quantity,
    other_rounds: Quantity,
    all_reduce_seconds: Quantity,
    stage_hop_seconds: Quantity,
    links_seconds: Quantity,
) -> Value:
    """The largest part of the time between two tokens: bandwidth (reading weights), KV reads, compute (arithmetic and
    the prompts of other requests) or communication; queue where requests wait for memory.

    Source: the largest part of tpot_seconds.
    """
    weights = dense_seconds + experts_read_seconds
    cache = kv_read_seconds * batch_requests
    prompts = prefill_round_seconds * other_rounds / where(output_tokens > 1, output_tokens, 1)
    compute = decode_compute_seconds * batch_requests + prompts
    links = all_reduce_seconds + stage_hop_seconds + links_seconds * batch_requests
    most = largest(weights, cache, compute, links)
    named = where(cache == most, "KV reads", where(compute == most, "compute", "communication"))
    waits = both(running_requests < concurrent_requests, concurrent_requests >= 1)
    return where(waits, "queue", where(weights == most, "bandwidth", named))


@formula("Runs that a band is from", PLAIN)
def scope_of_factor(
    factor: Quantity, measured_factor: Quantity, measured_scope: Quantity, anchored_scope: Quantity
) -> Quantity:
    """Which runs the band of a figure comes from: for a figure with a factor of its own, or with runs of this
    deployment, those corrected by one measured point.

    Source: docs/speed.md.
    """
    return where(either(factor != 1, measured_factor > 0), anchored_scope, measured_scope)


@formula("End of a band", FACTOR)
def band_of_scope(
    scope: Quantity,
    has_own_runs: Quantity,
    fitted: Quantity,
    other: Quantity,
    ranks: Quantity,
    stages: Quantity,
    anchored: Quantity,
) -> Quantity:
    """The factor of a prediction at one end of its 80 % band, for the scope as numbered by `measured_scope`. Ranks on a
    GPU, or of a kind of model, without runs of its own are known no better than one rank there.

    Source: catalogs/speed.yaml, bands.
    """
    low = smallest(ranks, other)
    ranks_elsewhere = where(low < 1, low, largest(ranks, other))
    above_ranks = where(scope < 2 + 2, stages, anchored)
    above_other = where(scope < 2 + 1, where(has_own_runs == 1, ranks, ranks_elsewhere), above_ranks)
    return where(scope < 1, fitted, where(scope < 2, other, above_other))


@formula("Output tokens a second of a GPU", TWO_DECIMALS)
def output_tokens_per_second_per_gpu(
    output_tokens_per_second: Quantity,
    tensor_parallel_size: Quantity,
    pipeline_parallel_size: Quantity,
    data_parallel_size: Quantity,
) -> Quantity:
    """Output tokens a second for each GPU of the replica.

    Source: definition.
    """
    return output_tokens_per_second / (tensor_parallel_size * pipeline_parallel_size * data_parallel_size)


@formula("Waiting requests")
def waiting_requests(concurrent_requests: Quantity, running_requests: Quantity) -> Quantity:
    """Requests at once that wait for their turn.

    Source: running_requests.
    """
    return concurrent_requests - running_requests

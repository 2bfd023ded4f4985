"""Activations, the third part, and overhead, the fourth; the KV pool that is left, and what fits in it.

Activations are the peak of the engine's profile run, which is charged on every GPU before the KV pool. The engine feeds
its largest batch once. Two moments can be the peak: the widest feed-forward layer while the batch goes through, and the
sampler on the logits of max_num_seqs requests, with the batch's hidden states still held. Workspaces of experts and the
outputs of an image encoder stay allocated through both.
"""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.formula import Quantity, both, called_with, formula, largest, ratio, round_down, round_up, smallest, where
from sheetgen.sizing.kv_cache import held_sequences, pool_for
from sheetgen.units import FACTOR, PERCENT, PLAIN, TENSOR_PARALLEL_SIZES, TWO_DECIMALS


@formula("On the second runner (1 or 0)", PLAIN)
def on_second_runner(second_runner: Quantity, n_experts: Quantity, n_state_layers: Quantity) -> Quantity:
    """1 where the engine's second model runner serves the model, as it does by default; else 0. It reserves other
    amounts of memory than the first one.

    second_runner: 0 there is none, 1 it serves dense models whose layers all attend, 2 all.

    Source: vLLM config/vllm.py, use_v2_model_runner; drafts that it does not support are not looked at.
    """
    dense = where(n_experts + n_state_layers == 0, 1, 0)
    return where(second_runner > 1, 1, where(second_runner == 1, dense, 0))


@formula("CUDA graphs reserved (1 or 0)", PLAIN)
def graphs_reserved(
    on_second_runner: Quantity, second_runner_graphs_in_budget: Quantity, graphs_in_budget: Quantity
) -> Quantity:
    """1 where the model's runner takes an estimate of the CUDA graphs from the budget before the pool, else 0.

    Source: vLLM v1/worker: profile_cudagraph_memory of each runner.
    """
    return where(on_second_runner == 1, second_runner_graphs_in_budget, graphs_in_budget)


@formula("Sampler, beside the 16-bit logits", TWO_DECIMALS)
def runner_bytes_per_logit(
    on_second_runner: Quantity, second_runner_sampler_bytes_per_logit: Quantity, sampler_bytes_per_logit: Quantity
) -> Quantity:
    """Bytes that the sampler of the model's runner holds beside each 16-bit logit while the engine profiles.

    Source: vLLM v1/worker: _dummy_sampler_run of each runner.
    """
    return where(on_second_runner == 1, second_runner_sampler_bytes_per_logit, sampler_bytes_per_logit)


@formula("Sampler's peak")
def sampler_bytes(
    max_num_seqs: Quantity,
    vocab_size: Quantity,
    max_num_batched_tokens: Quantity,
    hidden_size: Quantity,
    other_bytes: Quantity,
    runner_bytes_per_logit: Quantity,
    sampler_bytes_per_vocabulary_entry: Quantity,
) -> Quantity:
    """Memory of the sampler on the logits of max_num_seqs requests, in bytes, with the batch's hidden states still
    held.

    A logit is kept in the model's 16 bits and, in vLLM 0.17 to 0.21, three times in 32 (the logits, their
    probabilities, the random numbers): 12 bytes more. The top-k kernel has a row of the vocabulary per
    multiprocessor (132 x 4 bytes on H100). It follows the vocabulary, not the model's size.

    Source: vLLM v1/sample/sampler.py, ops/topk_topp_sampler.py; agrees with 32 runs of 0.19 to 0.02 GiB.
    Check:  Llama 3.1 8B with 1,024 requests in bf16: 1.85 GiB of the 1.89 logged.
    """
    logits = max_num_seqs * vocab_size * (other_bytes + runner_bytes_per_logit)
    hidden = (max_num_batched_tokens + max_num_seqs) * hidden_size * other_bytes
    return logits + vocab_size * sampler_bytes_per_vocabulary_entry + hidden


@formula("Forward peak")
def forward_bytes(
    max_num_batched_tokens: Quantity,
    hidden_size: Quantity,
    intermediate_size: Quantity,
    ffn_matrices: Quantity,
    other_bytes: Quantity,
    activation_copy_bytes: Quantity,
    forward_hidden_copies: Quantity,
    tensor_parallel_size: Quantity,
) -> Quantity:
    """Memory of the batch inside the widest feed-forward layer, in bytes: gate, up and their product, a quantized copy
    of that product where the precision makes one, and some copies of the hidden states.

    Source: vLLM's compiled forward pass; forward_hidden_copies is fitted, the rest are shapes.
    Check:  Mistral Small 24B in w8a8, 8,192 tokens at TP 1: 2.04 GiB.
    """
    ffn = (ffn_matrices * other_bytes + activation_copy_bytes) * intermediate_size / tensor_parallel_size
    return max_num_batched_tokens * (ffn + forward_hidden_copies * hidden_size * other_bytes)


@formula("Experts' workspace")
def expert_workspace_bytes(
    max_num_batched_tokens: Quantity,
    hidden_size: Quantity,
    experts_per_token: Quantity,
    expert_intermediate_size: Quantity,
    other_bytes: Quantity,
    expert_workspace_share: Quantity,
    tensor_parallel_size: Quantity,
) -> Quantity:
    """Two buffers that the fused experts keep, in bytes: a row for each token and chosen expert, as wide as the hidden
    size or the experts' own width. 0 for dense models.

    Source: vLLM fused_moe workspace shapes. Check: Qwen3-30B-A3B, 8,192 tokens at TP 1: 0.50 GiB.
    """
    width = expert_intermediate_size / tensor_parallel_size
    rows = max_num_batched_tokens * experts_per_token
    both = largest(width, hidden_size) + largest(width + width, hidden_size)
    return rows * both * other_bytes * expert_workspace_share


@formula("Encoder's images")
def encoder_bytes(
    max_num_batched_tokens: Quantity,
    hidden_size: Quantity,
    encoder_item_tokens: Quantity,
    encoder_item_elements: Quantity,
    other_bytes: Quantity,
) -> Quantity:
    """Memory of the images of the largest size that fill one batch, as input and as encoded tokens, in bytes. They stay
    in memory while the language model is profiled. 0 for models that read only text.

    Source: vLLM gpu_model_runner.profile_run. Check: Gemma 3 27B, 8,192 tokens: 32 images, 0.23 GiB.
    """
    images = largest(1, round_down(ratio(max_num_batched_tokens, encoder_item_tokens)))
    image_bytes = (encoder_item_tokens * hidden_size + encoder_item_elements) * other_bytes
    return where(encoder_item_tokens > 0, images * image_bytes, 0)


@formula("Encoder's peak")
def encoder_peak_bytes(
    max_num_batched_tokens: Quantity,
    encoder_item_tokens: Quantity,
    encoder_item_elements: Quantity,
    encoder_item_patches: Quantity,
    encoder_hidden_size: Quantity,
    encoder_ffn_elements: Quantity,
    encoder_hidden_copies: Quantity,
    other_bytes: Quantity,
    tensor_parallel_size: Quantity,
) -> Quantity:
    """Memory of images of the largest size inside the encoder's feed-forward layer, in bytes: their patches in the
    residual stream and its copies, and in the layer itself, which tensor parallelism divides. The language model runs
    after it.

    Source: vLLM qwen3_vl.py, Qwen3_VisionTransformer: at the activation a block holds its input, the sum after
        attention, the normalized one and the position embeddings, and two widths of the feed-forward layer.
    Check:  Qwen3.5-9B, an image of 16,384 tokens: 1.80 GiB; a start of 0.19 on an L40S lost 2.03 in all.
    """
    images = largest(1, round_down(ratio(max_num_batched_tokens, encoder_item_tokens)))
    of_patch = encoder_hidden_copies * encoder_hidden_size + encoder_ffn_elements / tensor_parallel_size
    held = (encoder_item_patches * of_patch + encoder_item_elements) * other_bytes
    return where(encoder_item_patches > 0, images * held, 0)


@formula("Held by a cold start")
def cold_start_bytes(
    on_second_runner: Quantity,
    cold_start_embeddings: Quantity,
    vocab_size: Quantity,
    hidden_size: Quantity,
    other_bytes: Quantity,
    tensor_parallel_size: Quantity,
) -> Quantity:
    """Peak memory of compiling the model on a cold start on the second runner, in bytes: as much as the embedding. A
    warm start finds the compiled model on disk and has this memory for its pool.

    Source: start-up logs of vLLM 0.28 and 0.31, of which two are of one engine, cold and warm; its code says nothing.
    Check:  Qwen2.5-7B on an L4 with 0.28: 1.02 GiB of the 1.04 logged.
    """
    embedding = vocab_size * hidden_size * other_bytes / tensor_parallel_size
    return on_second_runner * cold_start_embeddings * embedding


@formula("Sampler's tables")
def sampler_table_bytes(
    on_second_runner: Quantity,
    second_runner_table_bytes_per_logit: Quantity,
    max_num_seqs: Quantity,
    vocab_size: Quantity,
) -> Quantity:
    """Table that the second runner keeps for penalties, in bytes, whether or not a request asks for them: for each of
    max_num_seqs requests, how often it has seen each entry of the vocabulary. Logs count it as consumed, not in the
    peak.

    Source: vLLM v1/worker/gpu/sample/penalties.py: a count of 4 bytes, and a bit of the prompt.
    Check:  Qwen3-14B with 256 requests: 0.15 GiB.
    """
    return on_second_runner * second_runner_table_bytes_per_logit * max_num_seqs * vocab_size


@formula("Profile peak")
def profile_peak_bytes(
    sampler_bytes: Quantity,
    forward_bytes: Quantity,
    expert_workspace_bytes: Quantity,
    encoder_bytes: Quantity,
    encoder_peak_bytes: Quantity,
    matmul_workspace_bytes: Quantity,
    cold_start_bytes: Quantity,
    sampler_table_bytes: Quantity,
) -> Quantity:
    """The peak of the engine's profile run on one GPU, in bytes, without pipeline stages.

    It does not depend on the context. Where the sampler is the peak it does not depend on TP either.

    Source: vLLM gpu_worker.determine_available_memory. Check: Llama 3.1 8B, 1,024 requests: 1.89 GiB (logged: 1.89).
    """
    language = largest(sampler_bytes, forward_bytes, cold_start_bytes) + expert_workspace_bytes + encoder_bytes
    return round_up(largest(language, encoder_peak_bytes) + matmul_workspace_bytes + sampler_table_bytes)


@formula("Hand-over between stages")
def hand_over_bytes(max_num_batched_tokens: Quantity, hidden_size: Quantity, other_bytes: Quantity) -> Quantity:
    """Buffers for the hidden states and the residual that a pipeline stage receives, in bytes.

    Source: vLLM make_empty_intermediate_tensors. Check: Llama 3.1 8B, 8,192 tokens: 0.13 GiB.
    """
    return max_num_batched_tokens * (hidden_size + hidden_size) * other_bytes


@formula("Activations per GPU")
def activation_bytes_per_gpu(
    profile_peak_bytes: Quantity, hand_over_bytes: Quantity, pipeline_parallel_size: Quantity
) -> Quantity:
    """The peak of the profile run on the GPU with the least memory left, in bytes: the pipeline stage with the output
    head also samples, and receives the batch from the stage before.

    Source: profile_peak_bytes; the tokens of two PP runs of Llama 3.1 8B follow from 2.02 GiB.
    Check:  stages without the head log 1.10 and 1.05 GiB.
    """
    return profile_peak_bytes + where(pipeline_parallel_size > 1, hand_over_bytes, 0)


@formula("Share of this GPU's memory", PERCENT)
def utilization_on_gpu(
    gpu_memory_utilization: Quantity, usual_utilization: Quantity, own_utilization: Quantity
) -> Quantity:
    """Share of the memory of this GPU that the engine may take: where the setting is the engine's default, the default
    on this GPU, which differs where the engine leaves a number of bytes free (SGLang).

    Source: catalogs/engines (gpu_memory_utilization, reserve_gib).
    """
    return where(gpu_memory_utilization == usual_utilization, own_utilization, gpu_memory_utilization)


@formula("Memory the engine may use")
def memory_budget_bytes(
    gpu_memory_bytes: Quantity,
    context_bytes: Quantity,
    gpu_memory_utilization: Quantity,
    kv_cache_memory_bytes: Quantity,
    set_pool_is_limit: Quantity,
) -> Quantity:
    """Memory of one GPU that the engine may take, in bytes: a share of the memory it sees (not the marketed size), less
    what was used before where the engine counts from the free memory (SGLang). All of it where the pool is set outright
    rather than as a limit, whatever the share.

    Source: vLLM; H100 SXM shows 79.19 GiB. Check: 0.90 of that is 71.27 GiB.
    """
    share = where(kv_cache_memory_bytes * (1 - set_pool_is_limit) > 0, 1, gpu_memory_utilization)
    return round_down((gpu_memory_bytes - context_bytes) * share)


@called_with("left_bytes")
def pool_as_set(left_bytes: Quantity, kv_cache_memory_bytes: Quantity, set_pool_is_limit: Quantity) -> Quantity:
    """The pool that the engine takes of what is left: all of it, or as much as is set outright. Where less than that is
    left: all that is left if the setting is a limit, otherwise a negative number, as the engine runs out of memory at
    its start."""
    taken = both(kv_cache_memory_bytes > 0, left_bytes >= kv_cache_memory_bytes)
    return where(taken, kv_cache_memory_bytes, left_bytes - kv_cache_memory_bytes * (1 - set_pool_is_limit))


@called_with("error_bytes")
def pool_error_as_set(error_bytes: Quantity, kv_cache_memory_bytes: Quantity, set_pool_is_limit: Quantity) -> Quantity:
    """Bytes by which the pool may be off its prediction: 0 where it is set outright rather than as a limit."""
    return where(kv_cache_memory_bytes * (1 - set_pool_is_limit) > 0, 0, error_bytes)


def narrowed(error_bytes: Quantity, measured_pool_error_bytes: Quantity, most_bytes: Quantity) -> Quantity:
    """A pool's error limited, in both directions, to that of a start-up log; unchanged where no log was given."""
    within = largest(-most_bytes, smallest(most_bytes, error_bytes))
    return where(measured_pool_error_bytes > 0, within, error_bytes)


@formula("Pool's error as set", within=[pool_error_as_set])
def set_pool_error_bytes(
    kv_pool_error_bytes: Quantity, measured_pool_error_bytes: Quantity, pool_error_as_set: Callable[..., Quantity]
) -> Quantity:
    """Bytes by which the KV pool may be off its prediction; 0 where it is set outright.

    Source: docs/fidelity.md; --measured.
    """
    error = narrowed(kv_pool_error_bytes, measured_pool_error_bytes, measured_pool_error_bytes)
    return pool_error_as_set(error_bytes=error)


@formula("Weights' error")
def weights_error_bytes(weights_bytes_per_gpu: Quantity, weights_error_share: Quantity) -> Quantity:
    """Bytes by which the weights of one GPU may be off their prediction.

    Source: docs/fidelity.md.
    """
    return weights_bytes_per_gpu * weights_error_share


@formula("Error in scope")
def error_in_scope(is_calibrated: Quantity, error_here: Quantity, error_elsewhere: Quantity) -> Quantity:
    """The error of a prediction in measurements: on this GPU and version where its constants were set on runs of this
    tensor-parallel size, else in all other logs.

    Source: catalogs/engines, bands.
    """
    return where(is_calibrated, error_here, error_elsewhere)


@formula("Requests of one rank")
def requests_per_rank(concurrent_requests: Quantity, data_parallel_size: Quantity) -> Quantity:
    """Requests at once on the fullest data-parallel rank.

    Source: an even share.
    """
    return round_up(concurrent_requests / data_parallel_size)


@formula("KV of one rank's requests")
def charge_of_rank(
    requests_per_rank: Quantity,
    kv_blocks_per_sequence: Quantity,
    kv_blocks_per_sequence_steady: Quantity,
    kv_block_bytes: Quantity,
) -> Quantity:
    """The smallest pool of an undivided rank that holds its requests, in bytes.

    Source: INTERFACE (1 + floor((pool - admission charge) / steady charge)), solved for the pool.
    """
    charged, steady = kv_blocks_per_sequence * kv_block_bytes, kv_blocks_per_sequence_steady * kv_block_bytes
    return pool_for(requests_per_rank, charged, steady)


@formula("Non-torch memory at this TP")
def non_torch_bytes_per_tp(
    tensor_parallel_size: Quantity,
    shares_host_memory: Quantity,
    is_older_gpu: Quantity,
    non_torch_bytes_tp1: Quantity,
    non_torch_bytes_tp2: Quantity,
    non_torch_bytes_tp4: Quantity,
    non_torch_bytes_tp8: Quantity,
    older_non_torch_bytes_tp1: Quantity,
    older_non_torch_bytes_tp2: Quantity,
    older_non_torch_bytes_tp4: Quantity,
    older_non_torch_bytes_tp8: Quantity,
) -> Quantity:
    """Memory outside torch on a rank without pipeline stages, in bytes: the engine's figure at the next smaller
    tensor-parallel size that was measured; older GPUs have figures of their own. GPUs that share the host's memory are
    one to a machine: their ranks reduce over the network without such buffers, so each has the figure of one rank.

    Source: catalogs/engines, whose constants are the difference of used memory and torch's own count; vLLM
            custom_all_reduce.py (disabled where a group spans nodes).
    """
    ranks = where(shares_host_memory == 1, 1, tensor_parallel_size)
    eight = where(is_older_gpu == 1, older_non_torch_bytes_tp8, non_torch_bytes_tp8)
    four = where(is_older_gpu == 1, older_non_torch_bytes_tp4, non_torch_bytes_tp4)
    two = where(is_older_gpu == 1, older_non_torch_bytes_tp2, non_torch_bytes_tp2)
    one_rank = where(is_older_gpu == 1, older_non_torch_bytes_tp1, non_torch_bytes_tp1)
    above_two = where(ranks < TENSOR_PARALLEL_SIZES[3], four, eight)
    above_one = where(ranks < TENSOR_PARALLEL_SIZES[2], two, above_two)
    return where(ranks < TENSOR_PARALLEL_SIZES[1], one_rank, above_one)


@formula("Share of a part in the budget", FACTOR)
def paid_share(gpu_memory_utilization: Quantity, fraction_of_free: Quantity) -> Quantity:
    """Share of a part that the budget pays: all of it, or the budget's own share where the budget is a share of what is
    free after the part (TensorRT-LLM).

    Source: catalogs/engines (fraction_of_free).
    """
    return where(fraction_of_free == 1, gpu_memory_utilization, 1)


def captured_sizes(
    most_requests: Quantity, largest_graph: Quantity, largest_dense_graph: Quantity, graph_step: Quantity
) -> Quantity:
    """The number of batch sizes up to a limit at which CUDA graphs are captured: 1, 2, 4, then every step, and above
    the largest dense size every other step."""
    batch = smallest(most_requests, largest_graph)
    small = 1 + where(batch > 1, 1, 0) + where(batch + batch >= graph_step, 1, 0)
    wide = round_down(largest(0, batch - largest_dense_graph) / (graph_step + graph_step))
    return small + round_down(smallest(batch, largest_dense_graph) / graph_step) + wide


@formula("CUDA graphs per GPU")
def cuda_graph_bytes_per_gpu(
    cuda_graph_base_bytes: Quantity,
    cuda_graph_layer_bytes: Quantity,
    heavier_cuda_graph_layer_bytes: Quantity,
    apart_cuda_graph_layer_bytes: Quantity,
    n_layers: Quantity,
    max_num_seqs: Quantity,
    tensor_parallel_size: Quantity,
    has_heavier_graphs: Quantity,
    shares_host_memory: Quantity,
    largest_graph: Quantity,
    largest_dense_graph: Quantity,
    graph_step: Quantity,
) -> Quantity:
    """The CUDA graphs of one GPU, in bytes, as the engine estimates them: a base, and for each layer the same amount
    for each batch size that it captures. Ranks on machines of their own communicate over the network within each graph;
    GPUs that share the host's memory are one to a machine.

    Source: vLLM profile_cudagraph_memory: graphs of decoding up to max_num_seqs and mixed ones up to twice that, at the
        cost of the second of each kind; config/vllm.py has the sizes, 51 and 35 of them with 256 requests.
    Check:  Qwen2.5-32B, 64 layers: 1.5 GiB of the 1.59 estimated.
    """
    sizes = captured_sizes(max_num_seqs, largest_graph, largest_dense_graph, graph_step)
    sizes = sizes + captured_sizes(max_num_seqs + max_num_seqs, largest_graph, largest_dense_graph, graph_step)
    in_one = where(has_heavier_graphs == 1, heavier_cuda_graph_layer_bytes, cuda_graph_layer_bytes)
    apart = both(shares_host_memory == 1, tensor_parallel_size > 1)
    layer_graph_bytes = where(apart, apart_cuda_graph_layer_bytes, in_one)
    return round_up(cuda_graph_base_bytes + n_layers * sizes * layer_graph_bytes)


@formula("Left out where it is switched off")
def unless_off(amount: Quantity, is_off: Quantity) -> Quantity:
    """An amount, or 0 where a setting of the engine switches its cause off.

    Source: vLLM --enforce-eager (no graphs, nothing compiled), --skip-mm-profiling (no image is profiled).
    """
    return where(is_off == 1, 0, amount)


@formula("Activations and overhead")
def overhead_bytes_per_gpu(
    activation_bytes_per_gpu: Quantity,
    non_torch_bytes_per_gpu: Quantity,
    cuda_graph_bytes_per_gpu: Quantity,
    activations_in_budget: Quantity,
    graphs_reserved: Quantity,
) -> Quantity:
    """Memory outside torch, and activations and CUDA graphs where the engine counts them in its budget, in bytes.

    Source: vLLM: graphs lie outside the budget up to 0.19; SGLang leaves both to what its share does not take.
    """
    graphs = graphs_reserved * cuda_graph_bytes_per_gpu
    return activations_in_budget * activation_bytes_per_gpu + non_torch_bytes_per_gpu + graphs


@formula("Non-torch on a stage")
def staged_non_torch_bytes_per_gpu(
    non_torch_bytes_per_tp: Quantity, staged_non_torch_bytes_tp1: Quantity, tensor_parallel_size: Quantity
) -> Quantity:
    """Memory outside torch of a pipeline stage, in bytes: less than without stages at TP 1, the same beyond.

    Source: two PP runs of vLLM 0.19 on H100, logged 0.07 GiB; stages of several ranks were not measured.
    """
    return where(tensor_parallel_size == 1, staged_non_torch_bytes_tp1, non_torch_bytes_per_tp)


@formula("Non-torch per GPU")
def non_torch_bytes_per_gpu(
    non_torch_bytes_per_tp: Quantity, staged_non_torch_bytes_per_gpu: Quantity, pipeline_parallel_size: Quantity
) -> Quantity:
    """Memory outside torch, in bytes per GPU: NCCL's and the custom all-reduce's buffers, CUDA's own.

    Source: the engine's figure at this tensor-parallel size (catalogs/engines).
    """
    return where(pipeline_parallel_size > 1, staged_non_torch_bytes_per_gpu, non_torch_bytes_per_tp)


@formula("Overhead on a stage")
def stage_overhead_bytes(
    overhead_bytes_per_gpu: Quantity,
    non_torch_bytes_per_gpu: Quantity,
    staged_non_torch_bytes_per_gpu: Quantity,
    hand_over_bytes: Quantity,
    activations_in_budget: Quantity,
) -> Quantity:
    """Activations and overhead of one GPU of a pipeline stage, in bytes: it also receives the batch from the stage
    before.

    Source: hand_over_bytes; non-torch memory of two PP runs, logged 0.07 GiB.
    """
    less = non_torch_bytes_per_gpu - staged_non_torch_bytes_per_gpu
    return overhead_bytes_per_gpu - less + activations_in_budget * hand_over_bytes


@formula("Left for the KV cache", within=[paid_share, pool_as_set])
def kv_budget_bytes_per_gpu(
    memory_budget_bytes: Quantity,
    loaded_weights_bytes_per_gpu: Quantity,
    overhead_bytes_per_gpu: Quantity,
    paid_share: Quantity,
    measured_pool_more_bytes: Quantity,
    measured_pool_less_bytes: Quantity,
    pool_as_set: Callable[..., Quantity],
) -> Quantity:
    """Memory of one GPU that weights, activations and overhead leave for the KV cache, as start-up logs of this
    deployment have it, or the part of it that the pool is set to, in bytes; negative where they do not fit.

    Source: vLLM's accounting, checked on 90 start-up logs (median difference 0.000 GiB); --measured.
    """
    bills = (loaded_weights_bytes_per_gpu + overhead_bytes_per_gpu) * paid_share
    left = memory_budget_bytes - bills + (measured_pool_more_bytes - measured_pool_less_bytes)
    return pool_as_set(left_bytes=left)


@formula("KV pool per GPU")
def kv_pool_bytes_per_gpu(kv_budget_bytes_per_gpu: Quantity) -> Quantity:
    """The KV cache pool of one GPU, in bytes; 0 where the weights leave nothing.

    Source: "Available KV cache memory" of the engine's log.
    """
    return largest(0, kv_budget_bytes_per_gpu)


@formula("At one end of the band")
def at_band_end(predicted_bytes: Quantity, error_bytes: Quantity) -> Quantity:
    """A part of the memory or the pool of one GPU, in bytes, at one end of the 80 % band of its prediction.

    Source: cross-validated runs (docs/fidelity.md); catalogs/engines, bands.
    """
    return round_down(largest(0, predicted_bytes + error_bytes))


@formula("KV blocks in the pool")
def n_kv_blocks(kv_pool_bytes_per_gpu: Quantity, kv_block_bytes: Quantity, stage_fraction: Quantity) -> Quantity:
    """Whole KV blocks in the pool of one GPU, all groups together.

    Source: vLLM: pool / bytes of a block.
    """
    return round_down(ratio(kv_pool_bytes_per_gpu, kv_block_bytes * stage_fraction))


@formula("Max concurrency", TWO_DECIMALS)
def max_concurrency(n_kv_blocks: Quantity, full_kv_blocks_per_sequence: Quantity) -> Quantity:
    """Requests of max_model_len tokens that the pool of one engine holds, as its log prints it.

    Source: "Maximum concurrency for N tokens per request". Check: Gemma 3 27B on H100 at 0.95, 8k: 4.46.
    """
    return ratio(n_kv_blocks, full_kv_blocks_per_sequence)


@formula("KV tokens")
def kv_tokens(
    n_kv_blocks: Quantity,
    n_kv_groups: Quantity,
    growing_block_tokens: Quantity,
    max_concurrency: Quantity,
    max_model_len: Quantity,
    tokens_by_concurrency: Quantity,
    shares_pages: Quantity,
    block_size: Quantity,
) -> Quantity:
    """ "GPU KV cache size" as the engine prints it: whole blocks, shared by the KV groups.

    Later releases of vLLM print max_concurrency x max_model_len for models with several groups; engines that keep
    each kind of layer in a pool of its own print the tokens of the growing one.

    Source: reference engine_rules.md. Check: Gemma 3 27B on H100 at 0.95: 36,560.
    """
    by_blocks = round_down(n_kv_blocks / n_kv_groups) * growing_block_tokens
    by_concurrency = round_down(max_concurrency * max_model_len)
    shared = where(tokens_by_concurrency * (n_kv_groups - 1) > 0, by_concurrency, by_blocks)
    return where(shares_pages == 1, shared, n_kv_blocks * block_size)


@formula("Sequences the pool holds")
def sequences_in_pool(
    kv_budget_bytes_per_gpu: Quantity,
    kv_bytes_per_sequence_per_gpu: Quantity,
    kv_bytes_per_sequence_steady_per_gpu: Quantity,
) -> Quantity:
    """Sequences that the pool of one GPU holds at once: one at its admission charge, the others at what they keep.

    Out:    0 where the pool does not hold one admission charge.
    Source: INTERFACE: 1 + floor((pool - admission charge) / steady charge).
    """
    return held_sequences(kv_budget_bytes_per_gpu, kv_bytes_per_sequence_per_gpu, kv_bytes_per_sequence_steady_per_gpu)


@formula("Sequences per replica")
def sequences_per_replica(
    sequences_in_pool: Quantity, max_num_seqs: Quantity, data_parallel_size: Quantity
) -> Quantity:
    """Requests that one replica holds at once: what the pool holds, at most max_num_seqs, per rank.

    Source: INTERFACE: DP x min(sequences_in_pool, max_num_seqs).
    """
    return data_parallel_size * smallest(sequences_in_pool, max_num_seqs)


@formula("Requests that can run at once")
def running_capacity(
    kv_budget_bytes_per_gpu: Quantity,
    filled_kv_blocks_per_sequence: Quantity,
    filled_kv_blocks_per_sequence_steady: Quantity,
    kv_block_bytes: Quantity,
    stage_fraction: Quantity,
    max_num_seqs: Quantity,
    data_parallel_size: Quantity,
) -> Quantity:
    """Requests that one replica runs at once: what the pool holds at their average length, at most max_num_seqs.

    Source: sequences_in_pool, per rank, with the cache of a running request.
    """
    block = kv_block_bytes * stage_fraction
    charge, steady = filled_kv_blocks_per_sequence * block, filled_kv_blocks_per_sequence_steady * block
    held = held_sequences(kv_budget_bytes_per_gpu, charge, steady)
    return data_parallel_size * smallest(held, max_num_seqs)


@formula("KV for all requests")
def kv_bytes(concurrent_requests: Quantity, kv_bytes_per_sequence_steady: Quantity) -> Quantity:
    """The KV cache of all requests at once, in bytes, as it stays in memory, before any replication.

    Source: requests x steady charge. Check: Llama 3.1 70B in bf16, 32 x 4,000 tokens: 41.9 GB.
    """
    return concurrent_requests * kv_bytes_per_sequence_steady


@formula("KV for all requests, as admitted")
def kv_admission_bytes(concurrent_requests: Quantity, kv_bytes_per_sequence: Quantity) -> Quantity:
    """KV cache that the engine charges for admitting the requests, all together, in bytes, before any replication.

    Source: requests x admission charge. They are not admitted at once, so it is never needed at once.
    """
    return concurrent_requests * kv_bytes_per_sequence


@formula("KV that these requests take")
def kv_needed_bytes_per_gpu(
    requests_per_rank: Quantity,
    kv_bytes_per_sequence_per_gpu: Quantity,
    kv_bytes_per_sequence_steady_per_gpu: Quantity,
) -> Quantity:
    """The smallest pool of the fullest GPU that holds these requests at once, in bytes.

    Source: sequences_in_pool: what all of them keep, and what the last is charged above that when it is admitted.
    """
    return pool_for(requests_per_rank, kv_bytes_per_sequence_per_gpu, kv_bytes_per_sequence_steady_per_gpu)


@formula("Short by, per GPU")
def shortage_bytes_per_gpu(kv_budget_bytes_per_gpu: Quantity, kv_needed_bytes_per_gpu: Quantity) -> Quantity:
    """Bytes that the fullest GPU lacks for these requests; 0 where they fit.

    Source: kv_needed_bytes_per_gpu less what is left.
    """
    return largest(0, kv_needed_bytes_per_gpu - kv_budget_bytes_per_gpu)

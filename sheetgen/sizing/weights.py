"""The first part: the weights, by precision, and what one GPU of a replica keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sheetgen.formula import Quantity, both, called_with, formula, largest, ratio, round_up, smallest, where
from sheetgen.sizing.kv_cache import full_kv_heads_per_gpu, windowed_kv_heads_per_gpu
from sheetgen.units import STAGES_IN_ORDER, TWO_DECIMALS


def counted_bytes(
    n_params: Quantity, n_params_quantizable: Quantity, linear_bytes: Quantity, other_bytes: Quantity
) -> Quantity:
    """Bytes of all parameters at the precision of quantized linears and of the rest, without scales."""
    return n_params_quantizable * linear_bytes + (n_params - n_params_quantizable) * other_bytes


@formula("Weights", within=[counted_bytes])
def weights_bytes(counted_bytes: Quantity, checkpoint_bytes: Quantity) -> Quantity:
    """All weights of one copy of the model, in bytes. A known checkpoint's size beats the formula.

    In:     parameters [count]; bytes per element of quantized linears and of the rest; a checkpoint's
            size [bytes], 0 where none is known.
    Out:    bytes, before any division over GPUs. Quantization leaves embeddings, lm_head and vision alone.
    Source: Hugging Face checkpoints. Check: Llama 3.1 70B in bf16 is 141,107,412,992.
    """
    return where(checkpoint_bytes > 0, checkpoint_bytes, round_up(counted_bytes))


@formula("Weights as loaded", within=[counted_bytes])
def loaded_weights_bytes(
    counted_bytes: Quantity,
    linear_bytes: Quantity,
    other_bytes: Quantity,
    weights_bytes: Quantity,
    n_params_mtp: Quantity,
    ends_bytes: Quantity,
) -> Quantity:
    """Weights that an engine loads to serve, in bytes: without the layers for multi-token prediction, which a
    checkpoint includes (often with a second embedding and head) and which only speculative decoding uses.

    A checkpoint in 4 bits leaves them in 16, and has no second embedding and head.
    Source: vLLM skips them on loading the model; NVIDIA's NVFP4 and Qwen's GPTQ checkpoints name them as exceptions.
    Check: DeepSeek-R1 in fp8 at TP 8: 79.4 to 79.7 GiB a GPU (a public log: 79.41), 81.3 with them. RedHatAI's
    Qwen3.6-35B-A3B in nvfp4: 21.7 GiB of 23.3 (a public log: 21.86 of 23.32).
    """
    mtp_bytes = n_params_mtp * where(linear_bytes < 1, other_bytes, linear_bytes)
    without = weights_bytes - mtp_bytes - where(linear_bytes < 1, 0, ends_bytes)
    return where(n_params_mtp > 0, largest(smallest(weights_bytes, round_up(counted_bytes)), without), weights_bytes)


@formula("Embedding and output head")
def ends_bytes(n_params_embedding: Quantity, n_params_lm_head: Quantity, other_bytes: Quantity) -> Quantity:
    """The token embedding and the output head (lm_head) together, in bytes.

    Source: model architecture; a tied head counts once.
    """
    return (n_params_embedding + n_params_lm_head) * other_bytes


@formula("Head on the heaviest stage")
def stage_ends_bytes(n_params_embedding: Quantity, n_params_lm_head: Quantity, other_bytes: Quantity) -> Quantity:
    """The larger of embedding and head, which the heaviest pipeline stage keeps, in bytes.

    Source: vLLM puts the embedding on the first stage and the head on the last one.
    """
    return largest(n_params_embedding, n_params_lm_head) * other_bytes


@formula("Routed experts")
def routed_bytes(
    n_params: Quantity,
    n_params_quantizable: Quantity,
    n_params_routed: Quantity,
    linear_bytes: Quantity,
    other_bytes: Quantity,
    loaded_weights_bytes: Quantity,
) -> Quantity:
    """Routed experts of all layers, in bytes: at the precision of the weights, or what a checkpoint leaves for them
    when all else is at that precision, where that is less. They are divided over data-parallel ranks.

    Source: vLLM data-parallel attention: attention is copied to each rank, experts are not.
    Check:  DeepSeek-V4-Flash, fp8 with experts in fp4: 150.76 GB of 159.52 GB; all else is 8.76 GB.
    """
    rest = (n_params_quantizable - n_params_routed) * linear_bytes + (n_params - n_params_quantizable) * other_bytes
    return largest(0, smallest(n_params_routed * linear_bytes, loaded_weights_bytes - rest))


def _shares(part: str) -> tuple[str, ...]:
    """The names of the share of the weights, or of the cache, on the heaviest stage at each number of stages."""
    return tuple(f"{part}_share_of_{n}" for n in STAGES_IN_ORDER.values())


WEIGHTS_SHARES, CACHE_SHARES = _shares("weights"), _shares("cache")
SHARES = (*WEIGHTS_SHARES, *CACHE_SHARES)


def _share_of_stage(
    n_layers: Quantity, pipeline_parallel_size: Quantity, stages: Sequence[Quantity], shares: Sequence[Quantity]
) -> Quantity:
    """The share at this number of stages where the order of layers gives one, else that of the layers."""
    even = in_order = round_up(ratio(n_layers, pipeline_parallel_size)) / n_layers
    for n_stages, share in zip(stages, shares, strict=True):
        in_order = where(pipeline_parallel_size == n_stages, share, in_order)
    return where(shares[0] > 0, in_order, even)


@formula("Share of the cache on a stage", TWO_DECIMALS)
def stage_fraction(
    two_stages: Quantity,
    three_stages: Quantity,
    four_stages: Quantity,
    eight_stages: Quantity,
    cache_share_of_2: Quantity,
    cache_share_of_3: Quantity,
    cache_share_of_4: Quantity,
    cache_share_of_8: Quantity,
    n_layers: Quantity,
    pipeline_parallel_size: Quantity,
) -> Quantity:
    """The share of the layers with a cache that the pipeline stage with most of them has.

    Out:    1 without pipeline parallelism; layers do not split, so 126 layers on 4 stages give 32/126. Of a model whose
            layers differ, by their order, at 2, 3, 4 and 8 stages. 0 where there is no stage.
    Source: vLLM divides layers over stages as evenly as whole layers allow.
    Check:  Nemotron Super 49B at 2 stages: 37 of its 49 layers with attention are in the first half.
    """
    stages = two_stages, three_stages, four_stages, eight_stages
    shares = cache_share_of_2, cache_share_of_3, cache_share_of_4, cache_share_of_8
    return _share_of_stage(n_layers, pipeline_parallel_size, stages, shares)


@formula("Share of the weights on a stage", TWO_DECIMALS)
def stage_weights_fraction(
    two_stages: Quantity,
    three_stages: Quantity,
    four_stages: Quantity,
    eight_stages: Quantity,
    weights_share_of_2: Quantity,
    weights_share_of_3: Quantity,
    weights_share_of_4: Quantity,
    weights_share_of_8: Quantity,
    n_layers: Quantity,
    pipeline_parallel_size: Quantity,
) -> Quantity:
    """The share of the layers' weights on the heaviest pipeline stage.

    Out:    the share of the layers where they are alike; of a model whose layers differ, by their order.
    Source: vLLM get_pp_indices. Check: Nemotron Super 49B in bf16 at 2 stages: 60.4 of 89.0 GiB in the first half.
    """
    stages = two_stages, three_stages, four_stages, eight_stages
    shares = weights_share_of_2, weights_share_of_3, weights_share_of_4, weights_share_of_8
    return _share_of_stage(n_layers, pipeline_parallel_size, stages, shares)


@formula("Rotary tables")
def rope_table_bytes(rope_table_elements: Quantity, other_bytes: Quantity) -> Quantity:
    """Sine and cosine tables of the rotary embedding, one row per position, in bytes on every GPU.

    Source: vLLM rotary_embedding. Check: Llama 3.1 8B is 32 MiB; Llama 4 Scout, with 10 M positions, 2.5 GiB.
    """
    return rope_table_elements * other_bytes


@formula("KV projections copied")
def copied_kv_weights_bytes(
    n_full_layers: Quantity,
    full_kv_heads: Quantity,
    full_kv_width: Quantity,
    n_windowed_layers: Quantity,
    windowed_kv_heads: Quantity,
    windowed_kv_width: Quantity,
    hidden_size: Quantity,
    linear_bytes: Quantity,
    tensor_parallel_size: Quantity,
) -> Quantity:
    """Extra copies of key and value projections that the ranks of a replica together keep, in bytes: the projections
    are copied with the KV heads once there are more ranks than heads.

    Source: vLLM QKVParallelLinear. Check: 8 KV heads at TP 8 is 0.
    """
    full = full_kv_heads_per_gpu(full_kv_heads, tensor_parallel_size) * tensor_parallel_size - full_kv_heads
    windowed = windowed_kv_heads_per_gpu(windowed_kv_heads, tensor_parallel_size) * tensor_parallel_size
    rows = n_full_layers * full * full_kv_width + n_windowed_layers * (windowed - windowed_kv_heads) * windowed_kv_width
    return rows * hidden_size * linear_bytes


@called_with("tensor_bytes")
def rounded_off(tensor_bytes: Quantity, allocation_step_bytes: Quantity, large_allocation_bytes: Quantity) -> Quantity:
    """Bytes that the allocator adds to one tensor: a large one takes whole steps, and a remainder of more than half a
    step is given to another tensor."""
    rest = round_up(ratio(tensor_bytes, allocation_step_bytes)) * allocation_step_bytes - tensor_bytes
    return where(both(tensor_bytes >= large_allocation_bytes, rest + rest <= allocation_step_bytes), rest, 0)


@formula("Rounding of large tensors", within=[rounded_off])
def tensor_rounding_bytes(
    n_layers: Quantity,
    hidden_size: Quantity,
    intermediate_size: Quantity,
    ffn_matrices: Quantity,
    experts_per_token: Quantity,
    linear_bytes: Quantity,
    tensor_parallel_size: Quantity,
    rounded_off: Callable[..., Quantity],
) -> Quantity:
    """Bytes that torch's allocator adds to the feed-forward matrices of all dense layers on one rank: tensors of 10 MiB
    and more take whole steps of 2 MiB. 0 for models whose layers are experts.

    Source: PyTorch CUDACachingAllocator (kLargeBuffer, kMinLargeAlloc, kRoundLarge).
    Check:  Qwen 72B shapes in bf16 at TP 2: 80 MiB (logged 67.82 GiB, 67.75 without).
    """
    down = hidden_size * intermediate_size * linear_bytes / tensor_parallel_size
    layer = rounded_off(tensor_bytes=down * (ffn_matrices - 1)) + rounded_off(tensor_bytes=down)
    return where(experts_per_token > 0, 0, n_layers * layer)


@formula("Layers' weights per GPU, unstaged")
def layer_bytes_per_gpu(
    loaded_weights_bytes: Quantity,
    ends_bytes: Quantity,
    n_params_copied: Quantity,
    linear_bytes: Quantity,
    copied_kv_weights_bytes: Quantity,
    mla_absorbed_elements: Quantity,
    other_bytes: Quantity,
    tensor_rounding_bytes: Quantity,
    tensor_parallel_size: Quantity,
) -> Quantity:
    """Weights of all layers that one tensor-parallel rank keeps without pipeline stages, in bytes.

    Matrices are divided; norms, routers and the down-projections of latent attention are on every rank. The
    up-projections of latent attention are kept a second time, absorbed into the queries and the output.

    Source: reference models.md section 5; vLLM MLA process_weights_after_loading.
    Check:  DeepSeek-V2-Lite in bf16 at TP 1: 0.11 GiB of absorbed projections (29.43 GiB logged in all).
    """
    copied = n_params_copied * linear_bytes
    absorbed = mla_absorbed_elements * other_bytes
    divided = loaded_weights_bytes - ends_bytes - copied + copied_kv_weights_bytes + absorbed
    return divided / tensor_parallel_size + copied + tensor_rounding_bytes


def kept_layer_bytes(
    layer_bytes_per_gpu: Quantity, routed_bytes: Quantity, tensor_parallel_size: Quantity, data_parallel_size: Quantity
) -> Quantity:
    """Bytes of the layers that a rank keeps: experts are divided over data-parallel ranks, all else is on each rank."""
    return layer_bytes_per_gpu - routed_bytes / tensor_parallel_size * (1 - 1 / data_parallel_size)


@formula("Weights per GPU", within=[kept_layer_bytes])
def weights_bytes_per_gpu(
    kept_layer_bytes: Quantity,
    ends_bytes: Quantity,
    stage_ends_bytes: Quantity,
    rope_table_bytes: Quantity,
    stage_weights_fraction: Quantity,
    tensor_parallel_size: Quantity,
    pipeline_parallel_size: Quantity,
) -> Quantity:
    """Weights that the fullest GPU of a replica keeps, in bytes, as the engine loads them.

    Tensor parallelism divides every matrix, pipeline parallelism the layers, data parallelism only the
    routed experts.

    Source: reference models.md section 5. Check: Llama 3.1 8B in bf16 is 14.99 GiB at TP 1, 7.51 at TP 2 (logged).
    """
    ends = where(pipeline_parallel_size == 1, ends_bytes, stage_ends_bytes)
    return round_up(kept_layer_bytes * stage_weights_fraction + ends / tensor_parallel_size + rope_table_bytes)


@formula("Weights loaded per GPU")
def loaded_weights_bytes_per_gpu(weights_bytes_per_gpu: Quantity, draft_weights_bytes_per_gpu: Quantity) -> Quantity:
    """The model's and the draft model's weights on the fullest GPU, in bytes.

    Source: a speculative-decoding draft brings its own weights.
    """
    return weights_bytes_per_gpu + draft_weights_bytes_per_gpu


@formula("Weights per rank", within=[kept_layer_bytes])
def rank_weights_bytes(
    kept_layer_bytes: Quantity, ends_bytes: Quantity, rope_table_bytes: Quantity, tensor_parallel_size: Quantity
) -> Quantity:
    """Weights that one GPU of a replica keeps without pipeline stages, in bytes.

    Source: weights_bytes_per_gpu at one stage.
    """
    return round_up(kept_layer_bytes + ends_bytes / tensor_parallel_size + rope_table_bytes)

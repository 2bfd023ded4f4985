"""The second part: what a token and a sequence keep in the KV cache, and what the engine charges a request for it.

Every model fits one set of columns: layers whose cache grows with the context (full attention, MLA, other),
layers that keep a window of it, and layers that keep a fixed state. Each kind has its own sharding rule.
Quantities named `shard_` are what one tensor-parallel rank keeps of all layers. Admission then charges a request whole
blocks, windows with the tokens of steps under way, and states. That is a gate at one moment: while it is served a
request keeps the windows alone, for blocks that slid out of them are freed before each step.
"""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.formula import (
    Formula,
    Quantity,
    Value,
    both,
    called_with,
    formula,
    join_text,
    largest,
    ratio,
    remainder,
    round_down,
    round_up,
    smallest,
    where,
)
from sheetgen.units import PLAIN, TEXT


def heads_of_a_rank(kv_heads: Quantity, tensor_parallel_size: Quantity) -> Quantity:
    """KV heads of one rank: they are split over the ranks until each has one, then copied."""
    return where(kv_heads > 0, largest(1, round_up(kv_heads / tensor_parallel_size)), 0)


@formula("Full-attention KV heads per GPU")
def full_kv_heads_per_gpu(full_kv_heads: Quantity, tensor_parallel_size: Quantity) -> Quantity:
    """KV heads of full-attention layers that one rank keeps: they are split over the ranks until each has one, then
    copied.

    Source: vLLM get_num_kv_heads: max(1, heads / TP). Check: 8 heads at TP 16 is 1, not one half.
    """
    return heads_of_a_rank(full_kv_heads, tensor_parallel_size)


@formula("Windowed KV heads per GPU")
def windowed_kv_heads_per_gpu(windowed_kv_heads: Quantity, tensor_parallel_size: Quantity) -> Quantity:
    """KV heads of windowed layers that one rank keeps: they are split over the ranks until each has one, then copied.

    Source: vLLM get_num_kv_heads, applied per group of layers.
    """
    return heads_of_a_rank(windowed_kv_heads, tensor_parallel_size)


@formula("Growing KV per token and rank")
def shard_kv_bytes_per_token(
    n_full_layers: Quantity,
    full_kv_heads_per_gpu: Quantity,
    full_kv_width: Quantity,
    n_mla_layers: Quantity,
    mla_width: Quantity,
    mla_fp8_entry_bytes: Quantity,
    plain_fp8_latent: Quantity,
    other_elements_per_token: Quantity,
    other_bytes_per_token: Quantity,
    kv_dtype_bytes: Quantity,
    kv_scale_bytes: Quantity,
) -> Quantity:
    """KV cache that one more token of context takes on one rank, in bytes, in all layers whose cache keeps growing.

    Full attention: layers x heads x (key + value width) x bytes, and a scale for keys and one for values
    where the precision stores them. MLA: one latent per token, copied on every rank; in FP8 an entry of
    the kernel's own, with scales, where the GPU's kernel does not take the plain latent. Other: compressed
    entries at the KV precision, and index keys of fixed size.

    Source: arXiv:2305.13245 (GQA), arXiv:2405.04434 (MLA), vLLM platforms/cuda.py (_get_backend_priorities).
    Check:  Llama 3.1 70B in bf16 at TP 1 is 327,680; DeepSeek-V3 is 70,272; GLM-5.2 in FP8 is 53,940 on an H200 and
            47,700 on a B200 (a log of 0.26: 47,701).
    """
    full = n_full_layers * full_kv_heads_per_gpu * (full_kv_width * kv_dtype_bytes + 2 * kv_scale_bytes)
    packed = both(mla_fp8_entry_bytes > 0, kv_dtype_bytes == 1, plain_fp8_latent == 0)
    entry = where(packed, mla_fp8_entry_bytes, mla_width * kv_dtype_bytes)
    return full + n_mla_layers * entry + other_elements_per_token * kv_dtype_bytes + other_bytes_per_token


@formula("Windowed KV per token and rank")
def shard_windowed_bytes_per_token(
    n_windowed_layers: Quantity,
    windowed_kv_heads_per_gpu: Quantity,
    windowed_kv_width: Quantity,
    kv_dtype_bytes: Quantity,
    kv_scale_bytes: Quantity,
) -> Quantity:
    """KV cache that one token inside the window takes on one rank, in bytes, in all windowed layers.

    Source: reference models.md section 3. Check: gpt-oss-120b in bf16 at TP 1 is 36,864.
    """
    return n_windowed_layers * windowed_kv_heads_per_gpu * (windowed_kv_width * kv_dtype_bytes + 2 * kv_scale_bytes)


@formula("State of one layer and rank")
def shard_state_bytes_per_layer(
    n_state_layers: Quantity,
    conv_bytes_per_state_layer: Quantity,
    state_elements_per_layer: Quantity,
    state_element_bytes: Quantity,
    tensor_parallel_size: Quantity,
) -> Quantity:
    """Convolution and recurrent state that one sequence keeps in one recurrent layer, in bytes per rank.

    Source: vLLM mamba_utils. Check: Qwen3.6-27B (fp32 state) at TP 1 is 3,207,168.
    """
    layer = conv_bytes_per_state_layer + state_elements_per_layer * state_element_bytes
    return where(n_state_layers > 0, round_up(layer / tensor_parallel_size), 0)


@formula("KV per token", within=[shard_kv_bytes_per_token.as_function_of("full_kv_heads_per_gpu")])
def kv_bytes_per_token(shard_kv_bytes_per_token: Callable[..., Quantity], full_kv_heads: Quantity) -> Quantity:
    """Keys and values that one token of context keeps in GPU memory, all growing layers together, in bytes.

    Out:    bytes per token beyond every window, before division by tensor_parallel_size.
    Source: arXiv:2305.13245 (GQA), arXiv:2405.04434 (MLA).
    Check:  Llama 3.1 8B, 70B, 405B in bf16: 131,072, 327,680, 516,096.
    """
    return shard_kv_bytes_per_token(full_kv_heads_per_gpu=full_kv_heads)


@formula("KV per token and GPU")
def kv_bytes_per_token_per_gpu(shard_kv_bytes_per_token: Quantity, stage_fraction: Quantity) -> Quantity:
    """KV cache that one more token of context takes on the fullest GPU, in bytes, beyond every window.

    Source: KV heads split over TP and then replicate; MLA is replicated; layers divide over PP.
    """
    return shard_kv_bytes_per_token * stage_fraction


@formula("State per sequence")
def state_bytes_per_sequence(
    n_state_layers: Quantity,
    conv_bytes_per_state_layer: Quantity,
    state_elements_per_layer: Quantity,
    state_element_bytes: Quantity,
) -> Quantity:
    """Fixed state of one sequence in all recurrent layers, in bytes, before division over ranks.

    Source: reference models.md section 3. Check: Qwen3.6-27B is 153,944,064 with its fp32 state.
    """
    return n_state_layers * (conv_bytes_per_state_layer + state_elements_per_layer * state_element_bytes)


# How an engine lays the cache out: layers in groups of equal size, and blocks of equal bytes for all kinds.


def packs_pages(n_indexed_layers: Quantity, packed_block_tokens: Quantity) -> Quantity:
    """True where the engine packs pages of several sizes into the model's blocks: some of its layers keep index keys
    beside their entries."""
    return n_indexed_layers * packed_block_tokens > 0


def padding(group_layers: Quantity, *counts: Quantity) -> Quantity:
    """Padding layers that groups of that size add to these counts of layers."""
    padded: Quantity = 0
    for count in counts:
        padded = padded + round_up(ratio(count, group_layers)) * group_layers - count
    return padded


def packed_group_layers(n_windowed_layers: Quantity, n_indexed_layers: Quantity, n_pooled_layers: Quantity) -> Quantity:
    """Layers in a group where pages are packed: as many as have index keys, half of the windowed layers (no fewer than
    have index keys) or all of them, whichever pads the fewest layers."""
    counts = (n_windowed_layers, n_indexed_layers, n_pooled_layers)
    half = largest(n_indexed_layers, round_up(n_windowed_layers / 2))
    of_least, of_half, of_all = (padding(n, *counts) for n in (n_indexed_layers, half, n_windowed_layers))
    is_least = both(of_least < of_half, of_least < of_all)
    return where(is_least, n_indexed_layers, where(of_half < of_all, half, n_windowed_layers))


@formula("Layers in a KV group", within=[packs_pages, packed_group_layers])
def group_layers(
    n_full_layers: Quantity,
    n_mla_layers: Quantity,
    n_other_layers: Quantity,
    n_windowed_layers: Quantity,
    n_state_layers: Quantity,
    group_stretch: Quantity,
    packs_pages: Quantity,
    packed_group_layers: Quantity,
) -> Quantity:
    """Layers that share one KV block: the smallest kind's count, so that all groups are equal.

    Where the kinds differ by less than `group_stretch` (1.25) the larger count is taken: less padding. Where pages of
    several sizes are packed, it is the count that pads the fewest layers of windows and compressors.

    Source: vLLM hybrid KV cache manager; kv_cache_planning.py (_get_packed_kv_cache_groups, _approximate_gcd).
    Check:  Gemma 3 27B (10 full, 52 windowed) is 10: 7 groups; DeepSeek-V4-Flash (43 windowed, 21 and 20) is 22.
    """
    growing = n_full_layers + n_mla_layers + n_other_layers
    most = largest(growing, n_windowed_layers, n_state_layers)
    least = smallest(
        where(growing > 0, growing, most),
        where(n_windowed_layers > 0, n_windowed_layers, most),
        where(n_state_layers > 0, n_state_layers, most),
    )
    equal = where(most < least * group_stretch, most, least)
    return where(packs_pages, packed_group_layers, equal)


@formula("Groups of growing layers", within=[packs_pages])
def n_growing_groups(
    group_layers: Quantity,
    n_full_layers: Quantity,
    n_mla_layers: Quantity,
    n_other_layers: Quantity,
    packs_pages: Quantity,
) -> Quantity:
    """KV groups of layers whose cache grows, rounded up to whole groups (the engine adds padding layers); one where
    their pages are packed.

    Source: vLLM hybrid KV cache manager.
    """
    groups = round_up(ratio(n_full_layers + n_mla_layers + n_other_layers, group_layers))
    return where(packs_pages, 1, groups)


@formula("Groups of windowed layers")
def n_windowed_groups(group_layers: Quantity, n_windowed_layers: Quantity) -> Quantity:
    """KV groups of windowed layers, rounded up to whole groups (the engine adds padding layers).

    Source: vLLM hybrid KV cache manager. Check: Gemma 3 27B is 6 (52 layers stored as 60).
    """
    return round_up(ratio(n_windowed_layers, group_layers))


@formula("Groups of recurrent layers")
def n_state_groups(group_layers: Quantity, n_state_layers: Quantity) -> Quantity:
    """KV groups of recurrent layers, rounded up to whole groups.

    Source: vLLM hybrid KV cache manager. Check: Qwen3.6-27B is 3 (48 layers in groups of 16).
    """
    return round_up(ratio(n_state_layers, group_layers))


@formula("Groups of compressors that overlap", within=[packs_pages])
def n_indexed_groups(packs_pages: Quantity) -> Quantity:
    """KV groups of tokens that layers with index keys have not compressed yet: one where pages are packed, else none.

    Source: vLLM kv_cache_planning.py (_get_packed_kv_cache_groups: its pages have two sizes).
    """
    return where(packs_pages, 1, 0)


@formula("Groups of other compressors")
def n_pooled_groups(group_layers: Quantity, n_pooled_layers: Quantity, n_indexed_groups: Quantity) -> Quantity:
    """KV groups of tokens that compressed layers without index keys have not compressed yet, rounded up to whole
    groups.

    Source: vLLM kv_cache_planning.py (_get_packed_kv_cache_groups).
    """
    return n_indexed_groups * round_up(ratio(n_pooled_layers, group_layers))


@formula("Blocks by which a block of windows adds")
def window_like_groups(
    n_windowed_groups: Quantity,
    n_indexed_groups: Quantity,
    n_pooled_groups: Quantity,
    compressor_element_bytes: Quantity,
) -> Quantity:
    """Blocks that the tokens of one block of windows take, in windows and in tokens that wait to be compressed.

    Source: compressor_blocks. Check: DeepSeek-V4 is 2 + 16 + 8.
    """
    waiting = 2 * n_indexed_groups + n_pooled_groups
    return n_windowed_groups + compressor_element_bytes * waiting


@formula("KV groups")
def n_kv_groups(
    n_growing_groups: Quantity,
    n_windowed_groups: Quantity,
    n_state_groups: Quantity,
    n_indexed_groups: Quantity,
    n_pooled_groups: Quantity,
) -> Quantity:
    """All KV groups of the model.

    Source: vLLM hybrid KV cache manager. Check: Gemma 3 27B is 7; DeepSeek-V4-Flash is 5.
    """
    return n_growing_groups + n_windowed_groups + n_state_groups + n_indexed_groups + n_pooled_groups


@formula("Growing KV of one layer, token and rank")
def growing_layer_bytes(
    shard_kv_bytes_per_token: Quantity, n_full_layers: Quantity, n_mla_layers: Quantity, n_other_layers: Quantity
) -> Quantity:
    """Growing cache of one layer, in bytes per token and rank, on average over those layers.

    Source: definition.
    """
    return ratio(shard_kv_bytes_per_token, n_full_layers + n_mla_layers + n_other_layers)


@formula("Windowed KV of one layer, token and rank")
def windowed_layer_bytes(shard_windowed_bytes_per_token: Quantity, n_windowed_layers: Quantity) -> Quantity:
    """Windowed cache of one layer, in bytes per token and rank.

    Source: definition.
    """
    return ratio(shard_windowed_bytes_per_token, n_windowed_layers)


def blocks_in_a_page(page_bytes: Quantity, layer_bytes: Quantity, n_full_layers: Quantity) -> Quantity:
    """Blocks of a layer that fill the page of a larger layer; one with padding behind it where whole blocks of keys and
    values leave a remainder."""
    blocks = ratio(page_bytes, layer_bytes, 1)
    is_padded = both(n_full_layers > 0, blocks > round_down(blocks))
    return where(is_padded, 1, largest(1, round_down(blocks)))


@formula("Tokens in a block of growing layers")
def growing_block_tokens(
    growing_layer_bytes: Quantity,
    windowed_layer_bytes: Quantity,
    shard_state_bytes_per_layer: Quantity,
    block_size: Quantity,
    shard_kv_bytes_per_token: Quantity,
    other_bytes_per_token: Quantity,
    n_full_layers: Quantity,
    n_mla_layers: Quantity,
    state_checkpoint_tokens: Quantity,
    checkpoint_blocks: Quantity,
    n_indexed_groups: Quantity,
    packed_block_tokens: Quantity,
) -> Quantity:
    """Tokens that one block of a growing layer holds, once all kinds have one page size, or pages of several sizes are
    packed into it.

    The block grows until it is as large as a windowed layer's, where that is a whole number of blocks, or until its
    keys and values alone, without index keys and a draft's, are as large as one layer's state. Where a prompt leaves
    states in the prefix cache from within it, the block is a whole number of the tokens between these.

    Source: vLLM unify_kv_cache_spec_page_size; platforms/interface.py (_align_hybrid_block_size), from 0.33 on with
            get_mamba_prefill_checkpoint_alignment (model_executor/layers/mamba/abstract.py).
    Check:  Qwen3.6-27B in bf16 at TP 1 is 784, in 0.33 on a Hopper GPU 832; Qwen3.8-Flash-Next with three drafted
            tokens 1,600, as in four logs.
    """
    windows = blocks_in_a_page(windowed_layer_bytes, growing_layer_bytes, n_full_layers)
    own = ratio(shard_kv_bytes_per_token - other_bytes_per_token, n_full_layers + n_mla_layers)
    step = largest(block_size, where(checkpoint_blocks > 0, state_checkpoint_tokens, 0))
    states = round_up(ratio(shard_state_bytes_per_layer, own * step))
    return where(n_indexed_groups > 0, packed_block_tokens, largest(block_size * windows, step * states))


@formula("Tokens in a block of windowed layers")
def windowed_block_tokens(
    growing_layer_bytes: Quantity,
    windowed_layer_bytes: Quantity,
    block_size: Quantity,
    n_full_layers: Quantity,
    n_indexed_groups: Quantity,
    packed_window_tokens: Quantity,
) -> Quantity:
    """Tokens that one block of a windowed layer holds, once all kinds have one page size, or pages of several sizes are
    packed into it.

    Source: vLLM unify_kv_cache_spec_page_size.
    """
    equal = block_size * blocks_in_a_page(growing_layer_bytes, windowed_layer_bytes, n_full_layers)
    return where(n_indexed_groups > 0, packed_window_tokens, equal)


@formula("KV block of packed pages")
def packed_block_bytes(
    n_indexed_layers: Quantity,
    n_pooled_layers: Quantity,
    indexed_entry_tokens: Quantity,
    pooled_entry_tokens: Quantity,
    packed_entry_bytes: Quantity,
    index_entry_bytes: Quantity,
    windowed_kv_width: Quantity,
    kv_dtype_bytes: Quantity,
    group_layers: Quantity,
    n_pooled_groups: Quantity,
    packed_block_tokens: Quantity,
    packed_window_tokens: Quantity,
    packed_alignment_bytes: Quantity,
    packs_tuples: Quantity,
    other_bytes_per_token: Quantity,
) -> Quantity:
    """Size of one block whose layers have pages of several sizes, in bytes per rank, at every tensor-parallel size: the
    pages of the largest group's layers, or as many pages of each size as a group has layers.

    Source: vLLM kv_cache_planning.py (_get_packed_kv_cache_groups), releases before 0.30 kv_cache_utils.py
            (_max_memory_usage_bytes_from_groups).
    Check:  DeepSeek-V4-Flash in 0.33 is 21 x (37,440 + 8,640) + 20 x 1,728 = 1,002,240; Pro is 1,435,968.
    """

    def page(content_bytes: Quantity) -> Quantity:
        return round_up(content_bytes / packed_alignment_bytes) * packed_alignment_bytes

    entry = where(kv_dtype_bytes == 1, packed_entry_bytes, windowed_kv_width * kv_dtype_bytes)
    entries = ratio(packed_block_tokens, indexed_entry_tokens)
    indexed = page(entries * entry) + page(entries * index_entry_bytes)
    pooled = page(ratio(packed_block_tokens, pooled_entry_tokens) * entry)
    growing = n_indexed_layers * indexed + n_pooled_layers * pooled
    windowed = group_layers * page(packed_window_tokens * entry)
    waiting = round_up(ratio(n_pooled_layers, n_pooled_groups)) * page(packed_window_tokens * windowed_kv_width)
    packed = where(packs_tuples == 1, group_layers * (indexed + pooled), largest(growing, windowed, waiting))
    return packed + packed_block_tokens * other_bytes_per_token


def windows_in_own_pool(
    window_pool_ratio: Quantity, hybrid_kv_manager: Quantity, shard_kv_bytes_per_token: Quantity
) -> Quantity:
    """Tokens of windowed layers that have room for each token of the other layers, where the two pools are cut by
    ratio; else 0."""
    return where(both(hybrid_kv_manager == 1, shard_kv_bytes_per_token > 0), window_pool_ratio, 0)


def states_in_own_pool(
    state_pool_ratio: Quantity, n_state_layers: Quantity, shard_kv_bytes_per_token: Quantity
) -> Quantity:
    """Bytes kept for states for each byte of keys and values, where the two pools are cut by ratio; else 0."""
    return where(both(n_state_layers > 0, shard_kv_bytes_per_token > 0), state_pool_ratio, 0)


@formula("KV block", within=[packed_block_bytes, windows_in_own_pool, states_in_own_pool])
def kv_block_bytes(
    group_layers: Quantity,
    growing_block_tokens: Quantity,
    growing_layer_bytes: Quantity,
    windowed_block_tokens: Quantity,
    windowed_layer_bytes: Quantity,
    shard_state_bytes_per_layer: Quantity,
    shares_pages: Quantity,
    hybrid_kv_manager: Quantity,
    block_size: Quantity,
    shard_kv_bytes_per_token: Quantity,
    shard_windowed_bytes_per_token: Quantity,
    n_state_layers: Quantity,
    windows_in_own_pool: Quantity,
    states_in_own_pool: Quantity,
    n_indexed_groups: Quantity,
    packed_block_bytes: Quantity,
) -> Quantity:
    """Size of one block of one KV group, in bytes per rank, with all layers of the model on one pipeline stage.

    Where each kind of layer has a pool of its own: block_size tokens of all layers that keep every token; and where
    the pools are cut by ratio, what is kept for windows and states beside them.

    Source: vLLM hybrid KV cache manager; SGLang 0.5.23, pool_configurator.py, kv_cache_configurator.py.
    Check:  Qwen3.6-27B in bf16 at TP 1 is 51,380,224.
    """
    kept = shard_kv_bytes_per_token + (1 - hybrid_kv_manager + windows_in_own_pool) * shard_windowed_bytes_per_token
    own = where(kept > 0, block_size * kept * (1 + states_in_own_pool), block_size * shard_windowed_bytes_per_token)
    own = where(own > 0, own, n_state_layers * shard_state_bytes_per_layer)
    growing = growing_block_tokens * growing_layer_bytes
    windowed = windowed_block_tokens * windowed_layer_bytes
    state = where(growing_layer_bytes > 0, 0, shard_state_bytes_per_layer)
    equal = where(shares_pages == 1, group_layers * largest(growing, windowed, state), own)
    return where(n_indexed_groups > 0, packed_block_bytes, equal)


TOKENS_PER_K = 1024


@formula("Tokens charged per sequence")
def charged_tokens(
    context_tokens: Quantity,
    max_model_len: Quantity,
    input_tokens: Quantity,
    average_context_fraction: Quantity,
    prefix_cache_hit_fraction: Quantity,
    kv_reserved: Quantity,
) -> Quantity:
    """Tokens of cache that one request is charged.

    Paged KV: the context times the average share of it that is filled, less the prompt tokens of a prefix in the
    cache that all requests share; a request's own history is charged in full. Reserved KV: always the longest allowed
    context.

    Source: PagedAttention, arXiv:2309.06180; prefix reuse, arXiv:2312.07104.
    """
    paged = context_tokens * average_context_fraction - input_tokens * prefix_cache_hit_fraction
    return where(kv_reserved == 1, max_model_len, largest(1, round_up(paged)))


@formula("Tokens charged at admission")
def admitted_tokens(context_tokens: Quantity, max_model_len: Quantity, kv_reserved: Quantity) -> Quantity:
    """Tokens that a request may be charged when it is admitted: all of its context, whatever the average.

    The first of its prefix finds nothing in the prefix cache, an engine starts only where one request of the whole
    length fits, and one copy of a prefix that others share stays with it.

    Source: vLLM check_enough_kv_cache_memory; prefix reuse, arXiv:2312.07104.
    """
    return where(kv_reserved == 1, max_model_len, context_tokens)


def batches_under_way(
    in_flight_batches: Quantity, on_second_runner: Quantity, pipeline_parallel_size: Quantity
) -> Quantity:
    """Batches that an engine which overlaps batches has under way at once: enough to fill the pipeline stages, and one
    more on the second runner."""
    return where(
        in_flight_batches > 1, largest(in_flight_batches, pipeline_parallel_size + on_second_runner), in_flight_batches
    )


@formula("Tokens a windowed layer is charged", within=[batches_under_way])
def windowed_tokens(
    admitted_tokens: Quantity,
    window_tokens: Quantity,
    window_is_chunked: Quantity,
    max_num_batched_tokens: Quantity,
    batches_under_way: Quantity,
    hybrid_kv_manager: Quantity,
) -> Quantity:
    """Tokens that admission charges for a windowed layer: the window and the tokens of the batches under way.

    A window saves nothing while these reach the context, and nothing at all where the hybrid KV manager is off.

    Source: reference engine_rules.md (admission rule); vLLM config/vllm.py (max_concurrent_batches) from 0.26 on: 2
            without pipeline stages; with them as many as stages, on Model Runner V2 one more.
    """
    window = window_tokens - 1 + window_is_chunked + batches_under_way * max_num_batched_tokens
    return where(hybrid_kv_manager == 1, smallest(admitted_tokens, window), admitted_tokens)


@called_with("context_tokens", "tokens_beside", "within_context")
def blocks_of_compressors(
    context_tokens: Quantity,
    tokens_beside: Quantity,
    within_context: Quantity,
    n_indexed_groups: Quantity,
    n_pooled_groups: Quantity,
    indexed_entry_tokens: Quantity,
    pooled_entry_tokens: Quantity,
    packed_window_tokens: Quantity,
    compressor_element_bytes: Quantity,
) -> Quantity:
    """Blocks of tokens that wait to be compressed: all but the last token of an entry (of two where entries overlap)
    and `tokens_beside` more, in blocks with pages as large as those of windows. Each kind has a spare block, as windows
    have; where `within_context` is 1 never more than the blocks of the context."""
    blocks: Quantity = 0
    for n_groups, tokens, share in (
        (n_indexed_groups, 2 * indexed_entry_tokens, 2 * compressor_element_bytes),
        (n_pooled_groups, pooled_entry_tokens, compressor_element_bytes),
    ):
        of_block = packed_window_tokens / share
        kept = largest(0, smallest(context_tokens - within_context * of_block, tokens - 1 + tokens_beside))
        waiting = round_up(ratio(kept, of_block)) + 1
        blocks = blocks + n_groups * waiting
    return blocks


@formula("Compressors' blocks at admission", within=[batches_under_way, blocks_of_compressors])
def compressor_blocks(
    blocks_of_compressors: Callable[..., Quantity],
    admitted_tokens: Quantity,
    max_num_batched_tokens: Quantity,
    batches_under_way: Quantity,
) -> Quantity:
    """Blocks that admission charges a sequence for tokens that wait to be compressed, including the tokens of the
    batches under way. They do not grow with the context beyond these.

    Source: vLLM models/deepseek_v4/compressor.py (CompressorStateCache.get_kv_cache_spec), SlidingWindowSpec.
    Check:  DeepSeek-V4 with two batches of 8,192: 4,099 + 2,065 blocks, of 256 tokens of context each.
    """
    tokens = batches_under_way * max_num_batched_tokens
    return blocks_of_compressors(context_tokens=admitted_tokens, tokens_beside=tokens, within_context=0)


# For use before the stages are known: their number follows from what is charged.
UNSTAGED_WINDOWS, UNSTAGED_COMPRESSORS = (
    charged.with_parts([Formula("pipeline_parallel_size", "", PLAIN, (), lambda: 1)])
    for charged in (windowed_tokens, compressor_blocks)
)


@formula("Compressors' blocks kept", within=[blocks_of_compressors])
def steady_compressor_blocks(
    blocks_of_compressors: Callable[..., Quantity], charged_tokens: Quantity, in_flight_batches: Quantity
) -> Quantity:
    """Blocks of tokens that wait to be compressed which a sequence keeps while it decodes, with one token for each
    further step under way.

    Source: steady_windowed_tokens. Check: DeepSeek-V4 keeps 3 and 17.
    """
    return blocks_of_compressors(context_tokens=charged_tokens, tokens_beside=in_flight_batches - 1, within_context=1)


@formula("Tokens a windowed layer keeps")
def steady_windowed_tokens(
    charged_tokens: Quantity,
    window_tokens: Quantity,
    window_is_chunked: Quantity,
    in_flight_batches: Quantity,
    hybrid_kv_manager: Quantity,
    windowed_block_tokens: Quantity,
    shares_pages: Quantity,
) -> Quantity:
    """Tokens of a windowed layer that a request keeps while it decodes: the window that a step reads and one token for
    each further step under way, never more than the context.

    Where blocks are counted (a pool of equal pages), without the spare block of a sliding window: n tokens touch at
    most ceil((n - 1) / block) + 1 blocks, wherever the window begins, and never more than the context's own.

    Source: vLLM 0.33, SlidingWindowManager.get_num_skipped_tokens, KVCacheManager.allocate_slots (it frees first).
    Check:  a window of 1,024 in blocks of 16 keeps at most 65; a chunk of 8,192 keeps 512.
    """
    spare = shares_pages * (1 - window_is_chunked)
    read = window_tokens - 1 + in_flight_batches - spare
    kept = largest(0, smallest(read, charged_tokens - spare * windowed_block_tokens))
    return where(hybrid_kv_manager == 1, kept, charged_tokens)


@formula("KV blocks per sequence", within=[windows_in_own_pool, states_in_own_pool])
def kv_blocks_per_sequence(
    admitted_tokens: Quantity,
    windowed_tokens: Quantity,
    compressor_blocks: Quantity,
    window_is_chunked: Quantity,
    hybrid_kv_manager: Quantity,
    growing_block_tokens: Quantity,
    windowed_block_tokens: Quantity,
    n_growing_groups: Quantity,
    n_windowed_groups: Quantity,
    n_state_groups: Quantity,
    state_blocks: Quantity,
    checkpoint_blocks: Quantity,
    state_checkpoint_tokens: Quantity,
    side_blocks: Quantity,
    shares_pages: Quantity,
    block_size: Quantity,
    shard_kv_bytes_per_token: Quantity,
    shard_windowed_bytes_per_token: Quantity,
    n_state_layers: Quantity,
    shard_state_bytes_per_layer: Quantity,
    kv_block_bytes: Quantity,
    windows_in_own_pool: Quantity,
    states_in_own_pool: Quantity,
) -> Quantity:
    """Blocks that admission charges one sequence, over all KV groups.

    Growing groups take whole blocks of the context; sliding windows one block more than their tokens; a state takes one
    block, or two in releases that align states with the prefix cache and keep one, and one more in those that leave the
    prefix cache a state from within a prompt, of layers that can. What a model keeps beside these in groups of its own
    (raw keys of a pool of tokens that is not full yet, an n-gram's convolution, what waits to be compressed) takes
    whole blocks, too. Where an engine keeps each kind of layer in a pool of its own, it is what each kind takes, as a
    number of blocks of the growing one. Where these pools are cut by ratio, a sequence takes the share of the whole
    that it takes of the pool which it fills first: of the tokens, windows in their ratio beside them, or of the states.

    Source: reference engine_rules.md (admission rule), models.md section 4; SGLang 0.5.23, kv_cache_configurator.py.
    """
    spare = hybrid_kv_manager * (1 - window_is_chunked)
    shared = (
        n_growing_groups * round_up(admitted_tokens / growing_block_tokens)
        + n_windowed_groups * (round_up(windowed_tokens / windowed_block_tokens) + spare)
        + n_state_groups * (state_blocks + where(state_checkpoint_tokens > 0, checkpoint_blocks, 0))
        + side_blocks
        + compressor_blocks
    )
    admitted = round_up(admitted_tokens / block_size)
    by_ratio, of_states = windows_in_own_pool, states_in_own_pool
    windowed = where(by_ratio > 0, by_ratio * admitted, round_up(windowed_tokens / block_size))
    cache = (admitted * shard_kv_bytes_per_token + windowed * shard_windowed_bytes_per_token) * block_size
    state = n_state_layers * shard_state_bytes_per_layer
    first_full = largest(cache * (1 + of_states), ratio(state_blocks * state * (1 + of_states), of_states))
    own = where(of_states > 0, first_full, cache + state)
    return where(shares_pages == 1, shared, ratio(own, kv_block_bytes))


@formula(
    "Steady KV blocks per sequence",
    within=[
        # The checkpoint's block is given back once the prompt is read.
        kv_blocks_per_sequence.as_function_of(
            "admitted_tokens", "windowed_tokens", "compressor_blocks", "checkpoint_blocks"
        )
    ],
)
def kv_blocks_per_sequence_steady(
    kv_blocks_per_sequence: Callable[..., Quantity],
    charged_tokens: Quantity,
    steady_windowed_tokens: Quantity,
    steady_compressor_blocks: Quantity,
) -> Quantity:
    """Blocks that a sequence holds while it decodes, over all KV groups: those of admission, but only the part of the
    windows that stays.

    States stay as admission charges them. Where states are kept for the prefix cache, each prefill step, and each
    decoded token that opens a new block, writes a second state before the first is freed, and all requests may do so
    in one step. It is never more than admission charges.

    Source: vLLM 0.33, single_type_kv_cache_manager.py (remove_skipped_blocks; MambaManager.allocate_new_blocks).
    Check:  Gemma 3 27B, 32,768 tokens: 2,048 + 6 x 65 = 2,438 blocks; admission charges 2,048 + 6 x 577.
    """
    return kv_blocks_per_sequence(
        admitted_tokens=charged_tokens,
        windowed_tokens=steady_windowed_tokens,
        compressor_blocks=steady_compressor_blocks,
        checkpoint_blocks=0,
    )


@formula("Charge per sequence and rank", within=[kv_blocks_per_sequence])
def charge_bytes(kv_blocks_per_sequence: Quantity, kv_block_bytes: Quantity) -> Quantity:
    """KV cache that admission charges one sequence on one rank, in bytes, without pipeline stages.

    Source: kv_blocks_per_sequence x kv_block_bytes.
    """
    return kv_blocks_per_sequence * kv_block_bytes


@formula("Windows of further batches")
def windows_of_stages(
    windowed_tokens: Quantity,
    windowed_block_tokens: Quantity,
    admitted_tokens: Quantity,
    max_num_batched_tokens: Quantity,
    window_like_groups: Quantity,
    kv_block_bytes: Quantity,
    in_flight_batches: Quantity,
    on_second_runner: Quantity,
    pipeline_stages: Quantity,
) -> Quantity:
    """KV cache that admission charges in addition for the windows of all layers on this many stages, in bytes, before
    the stages divide it: for the batches under way beyond those of one stage.

    Source: windowed_tokens.
    """
    tokens = batches_beside(pipeline_stages, in_flight_batches, on_second_runner) * max_num_batched_tokens
    blocks = round_up(smallest(admitted_tokens, windowed_tokens + tokens) / windowed_block_tokens)
    return window_like_groups * kv_block_bytes * (blocks - round_up(windowed_tokens / windowed_block_tokens))


@called_with("batches")
def most_windows(
    batches: Quantity,
    windowed_block_tokens: Quantity,
    admitted_tokens: Quantity,
    max_num_batched_tokens: Quantity,
    window_like_groups: Quantity,
    kv_block_bytes: Quantity,
    in_flight_batches: Quantity,
    hybrid_kv_manager: Quantity,
) -> Quantity:
    """An upper bound of `windows_of_stages` for so many batches beyond those of one stage, from the context beyond the
    batches alone: short enough for the formula of the stages, as Excel limits a formula's length."""
    beyond = admitted_tokens - in_flight_batches * max_num_batched_tokens
    tokens = hybrid_kv_manager * largest(0, smallest(batches * max_num_batched_tokens, beyond))
    return window_like_groups * kv_block_bytes * round_up(tokens / windowed_block_tokens)


def batches_beside(pipeline_stages: Quantity, in_flight_batches: Quantity, on_second_runner: Quantity) -> Quantity:
    """Batches under way on so many stages beyond those of one stage."""
    return batches_under_way(in_flight_batches, on_second_runner, pipeline_stages) - in_flight_batches


@formula(
    "Steady KV per sequence and rank",
    within=[kv_blocks_per_sequence_steady.with_parts([steady_windowed_tokens, steady_compressor_blocks])],
)
def steady_bytes(kv_blocks_per_sequence_steady: Quantity, kv_block_bytes: Quantity) -> Quantity:
    """KV cache that one sequence holds on one rank while it decodes, in bytes, before pipeline stages divide it.

    Source: kv_blocks_per_sequence_steady x kv_block_bytes.
    """
    return kv_blocks_per_sequence_steady * kv_block_bytes


def held_sequences(pool_bytes: Quantity, charge_bytes: Quantity, steady_bytes: Quantity) -> Quantity:
    """Sequences that a pool holds at once: 1 + floor((pool - charge) / steady charge); 0 where it does not hold one
    charge.

    The last one comes in while all others hold their full context. It needs its charge free for that moment, and is
    given it back but for the steady charge when its prompt is read.
    """
    return round_down(ratio(largest(0, pool_bytes - (charge_bytes - steady_bytes)), steady_bytes))


def pool_for(n_sequences: Quantity, charge_bytes: Quantity, steady_bytes: Quantity) -> Value:
    """The smallest pool that holds so many sequences (1 or more) at once, by the same rule."""
    return n_sequences * steady_bytes + (charge_bytes - steady_bytes)


@formula("KV per sequence and GPU")
def kv_bytes_per_sequence_per_gpu(
    kv_blocks_per_sequence: Quantity, kv_block_bytes: Quantity, stage_fraction: Quantity
) -> Quantity:
    """KV cache that admission charges one sequence on the fullest GPU, in bytes.

    Source: blocks x bytes per block x the share of layers on a pipeline stage.
    """
    return kv_blocks_per_sequence * kv_block_bytes * stage_fraction


@formula("Steady KV per sequence and GPU")
def kv_bytes_per_sequence_steady_per_gpu(
    kv_blocks_per_sequence_steady: Quantity, kv_block_bytes: Quantity, stage_fraction: Quantity
) -> Quantity:
    """KV cache that one sequence holds on the fullest GPU while it decodes, in bytes.

    Source: blocks x bytes per block x the share of layers on a pipeline stage.
    """
    return kv_blocks_per_sequence_steady * kv_block_bytes * stage_fraction


@formula("KV per sequence")
def kv_bytes_per_sequence(unsharded_kv_blocks_per_sequence: Quantity, unsharded_kv_block_bytes: Quantity) -> Quantity:
    """The engine's admission charge for one sequence, in bytes, before any division over GPUs.

    It holds whole blocks, windows with the tokens of steps under way, padding layers and state blocks.

    Source: reference engine_rules.md (admission rule). Check: Llama 3.1 8B in bf16, 4,096 tokens: 512 MiB.
    """
    return unsharded_kv_blocks_per_sequence * unsharded_kv_block_bytes


@formula("Steady KV per sequence")
def kv_bytes_per_sequence_steady(
    unsharded_kv_blocks_per_sequence_steady: Quantity, unsharded_kv_block_bytes: Quantity
) -> Quantity:
    """KV cache that one sequence holds while it decodes, in bytes, before any division over GPUs.

    It has whole blocks, the window and the block at its edge, padding layers and state blocks.

    Source: kv_blocks_per_sequence_steady. Check: Gemma 3 27B in bf16, 32,768 tokens: 2,438 blocks of 1.25 MiB.
    """
    return unsharded_kv_blocks_per_sequence_steady * unsharded_kv_block_bytes


@formula("Short form of a token count", TEXT)
def short_tokens(tokens: Quantity, tokens_per_k: Quantity) -> Value:
    """A token count as text: 131,072 as 128k; a number that is no multiple of 1,024 as it is.

    Source: 1k is 1,024 tokens.
    """
    return where(remainder(tokens, tokens_per_k) == 0, join_text(tokens / tokens_per_k, "k"), join_text(tokens))


@formula("State blocks kept")
def kept_state_blocks(state_blocks: Quantity, enable_prefix_caching: Quantity) -> Quantity:
    """Blocks that a recurrent group holds for one sequence: one in every release where no prefixes are cached.

    Source: vLLM MambaManager.
    """
    return where(enable_prefix_caching == 1, state_blocks, 1)


@formula("Checkpoint blocks kept")
def kept_checkpoint_blocks(checkpoint_blocks: Quantity, enable_prefix_caching: Quantity) -> Quantity:
    """Additional blocks that admission charges for a recurrent group; none where no prefixes are cached.

    Source: vLLM MambaManager.
    """
    return where(enable_prefix_caching == 1, checkpoint_blocks, 0)

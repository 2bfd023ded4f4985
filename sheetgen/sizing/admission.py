"""What the engine charges a request before it lets it in: whole blocks, windows with the tokens in flight, states."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import formula, largest, ratio, round_up, smallest, where


@formula("Tokens charged per sequence")
def charged_tokens(
    context_tokens: Any, max_model_len: Any, input_tokens: Any, average_context_fraction: Any,
    prefix_cache_hit_fraction: Any, kv_reserved: Any,
) -> Any:  # fmt: skip
    """Tokens of cache that one request is charged.

    Paged KV: the context times the average share of it that is filled, less the prompt tokens found in the
    prefix cache. Reserved KV: always the longest allowed context.

    Source: PagedAttention, arXiv:2309.06180; prefix reuse, arXiv:2312.07104.
    """
    paged = context_tokens * average_context_fraction - input_tokens * prefix_cache_hit_fraction
    return where(kv_reserved == 1, max_model_len, largest(1, round_up(paged)))


@formula("Tokens a windowed layer is charged")
def windowed_tokens(
    charged_tokens: Any, window_tokens: Any, window_is_chunked: Any, max_num_batched_tokens: Any,
    in_flight_batches: Any, hybrid_kv_manager: Any,
) -> Any:  # fmt: skip
    """Tokens that admission charges a windowed layer: the window and the tokens of a batch in flight.

    A window saves nothing while max_num_batched_tokens reaches the context, and nothing at all where the
    hybrid KV manager is off.

    Source: reference engine_rules.md (admission rule).
    """
    in_flight = in_flight_batches * max_num_batched_tokens
    window = window_tokens - 1 + window_is_chunked + in_flight
    return where(hybrid_kv_manager == 1, smallest(charged_tokens, window), charged_tokens)


@formula("KV blocks per sequence")
def kv_blocks_per_sequence(
    charged_tokens: Any, windowed_tokens: Any, window_is_chunked: Any, hybrid_kv_manager: Any,
    growing_block_tokens: Any, windowed_block_tokens: Any, n_growing_groups: Any, n_windowed_groups: Any,
    n_state_groups: Any, state_blocks: Any, shares_pages: Any, block_size: Any, shard_kv_bytes_per_token: Any,
    shard_windowed_bytes_per_token: Any, n_state_layers: Any, shard_state_bytes_per_layer: Any, kv_block_bytes: Any,
) -> Any:  # fmt: skip
    """Blocks that admission charges one sequence, over all KV groups.

    Growing groups take whole blocks of the context; sliding windows one block more than their tokens;
    a state takes one block, or two in releases that align states with the prefix cache and keep one. Where an
    engine keeps each kind of layer in a pool of its own, it is what each kind takes, as a number of blocks of the
    growing one.

    Source: reference engine_rules.md (admission rule), models.md section 4.
    """
    spare = hybrid_kv_manager * (1 - window_is_chunked)
    shared = (
        n_growing_groups * round_up(charged_tokens / growing_block_tokens)
        + n_windowed_groups * (round_up(windowed_tokens / windowed_block_tokens) + spare)
        + n_state_groups * state_blocks
    )
    own = (
        round_up(charged_tokens / block_size) * block_size * shard_kv_bytes_per_token
        + round_up(windowed_tokens / block_size) * block_size * shard_windowed_bytes_per_token
        + n_state_layers * shard_state_bytes_per_layer
    )
    return where(shares_pages == 1, shared, ratio(own, kv_block_bytes))


@formula("Charge per sequence and rank")
def charge_bytes(
    charged_tokens: Any, window_tokens: Any, window_is_chunked: Any, max_num_batched_tokens: Any,
    in_flight_batches: Any, hybrid_kv_manager: Any, growing_block_tokens: Any, windowed_block_tokens: Any,
    n_growing_groups: Any, n_windowed_groups: Any, n_state_groups: Any, state_blocks: Any, shares_pages: Any,
    block_size: Any, shard_kv_bytes_per_token: Any, shard_windowed_bytes_per_token: Any, n_state_layers: Any,
    shard_state_bytes_per_layer: Any, kv_block_bytes: Any,
) -> Any:  # fmt: skip
    """What admission charges one sequence on one rank, in bytes, before pipeline stages divide it.

    Source: kv_blocks_per_sequence x kv_block_bytes.
    """
    windowed = windowed_tokens(
        charged_tokens, window_tokens, window_is_chunked, max_num_batched_tokens, in_flight_batches, hybrid_kv_manager
    )
    blocks = kv_blocks_per_sequence(
        charged_tokens, windowed, window_is_chunked, hybrid_kv_manager, growing_block_tokens, windowed_block_tokens,
        n_growing_groups, n_windowed_groups, n_state_groups, state_blocks, shares_pages, block_size,
        shard_kv_bytes_per_token, shard_windowed_bytes_per_token, n_state_layers, shard_state_bytes_per_layer,
        kv_block_bytes,
    )  # fmt: skip
    return blocks * kv_block_bytes


@formula("KV per sequence and GPU")
def kv_bytes_per_sequence_per_gpu(kv_blocks_per_sequence: Any, kv_block_bytes: Any, stage_fraction: Any) -> Any:
    """What admission charges one sequence on the fullest GPU, in bytes.

    Source: blocks x bytes per block x the share of layers on a pipeline stage.
    """
    return kv_blocks_per_sequence * kv_block_bytes * stage_fraction


@formula("KV per sequence")
def kv_bytes_per_sequence(unsharded_kv_blocks_per_sequence: Any, unsharded_kv_block_bytes: Any) -> Any:
    """The engine's admission charge for one sequence, in bytes, before any division over GPUs.

    It holds whole blocks, windows with the tokens in flight, padding layers and state blocks.

    Source: reference engine_rules.md (admission rule). Check: Llama 3.1 8B in bf16, 4,096 tokens: 512 MiB.
    """
    return unsharded_kv_blocks_per_sequence * unsharded_kv_block_bytes


@formula("Steady KV per sequence")
def kv_bytes_per_sequence_steady(
    charged_tokens: Any, kv_bytes_per_token: Any, shard_windowed_bytes_per_token: Any, state_bytes_per_sequence: Any,
    window_tokens: Any, n_windowed_layers: Any, hybrid_kv_manager: Any, block_size: Any,
) -> Any:  # fmt: skip
    """What a decoding sequence holds, in bytes, before division over ranks: whole blocks of the growing
    layers, the window and one block of the windowed ones, and the state.

    Source: vLLM hybrid KV cache manager (steady decode).
    """
    whole = round_up(charged_tokens / block_size) * block_size
    window = where(hybrid_kv_manager == 1, round_up(window_tokens / block_size) * block_size + block_size, whole)
    windowed = where(n_windowed_layers > 0, smallest(whole, window), 0)
    return whole * kv_bytes_per_token + windowed * shard_windowed_bytes_per_token + state_bytes_per_sequence

"""What the engine charges a request before it lets it in: whole blocks, windows with the tokens in flight, states."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, formula, join_text, largest, ratio, remainder, round_up, smallest, where
from sheetgen.units import TEXT

TOKENS_PER_K = 1024


@formula("Tokens charged per sequence")
def charged_tokens(
    context_tokens: Quantity, max_model_len: Quantity, input_tokens: Quantity, average_context_fraction: Quantity,
    prefix_cache_hit_fraction: Quantity, kv_reserved: Quantity,
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
    charged_tokens: Quantity, window_tokens: Quantity, window_is_chunked: Quantity, max_num_batched_tokens: Quantity,
    in_flight_batches: Quantity, hybrid_kv_manager: Quantity,
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
    charged_tokens: Quantity, windowed_tokens: Quantity, window_is_chunked: Quantity, hybrid_kv_manager: Quantity,
    growing_block_tokens: Quantity, windowed_block_tokens: Quantity, n_growing_groups: Quantity,
    n_windowed_groups: Quantity, n_state_groups: Quantity, state_blocks: Quantity, shares_pages: Quantity,
    block_size: Quantity, shard_kv_bytes_per_token: Quantity, shard_windowed_bytes_per_token: Quantity,
    n_state_layers: Quantity, shard_state_bytes_per_layer: Quantity, kv_block_bytes: Quantity,
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
    charged_tokens: Quantity, window_tokens: Quantity, window_is_chunked: Quantity, max_num_batched_tokens: Quantity,
    in_flight_batches: Quantity, hybrid_kv_manager: Quantity, growing_block_tokens: Quantity,
    windowed_block_tokens: Quantity, n_growing_groups: Quantity, n_windowed_groups: Quantity, n_state_groups: Quantity,
    state_blocks: Quantity, shares_pages: Quantity, block_size: Quantity, shard_kv_bytes_per_token: Quantity,
    shard_windowed_bytes_per_token: Quantity, n_state_layers: Quantity, shard_state_bytes_per_layer: Quantity,
    kv_block_bytes: Quantity,
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
def kv_bytes_per_sequence_per_gpu(
    kv_blocks_per_sequence: Quantity, kv_block_bytes: Quantity, stage_fraction: Quantity
) -> Any:
    """What admission charges one sequence on the fullest GPU, in bytes.

    Source: blocks x bytes per block x the share of layers on a pipeline stage.
    """
    return kv_blocks_per_sequence * kv_block_bytes * stage_fraction


@formula("KV per sequence")
def kv_bytes_per_sequence(unsharded_kv_blocks_per_sequence: Quantity, unsharded_kv_block_bytes: Quantity) -> Any:
    """The engine's admission charge for one sequence, in bytes, before any division over GPUs.

    It holds whole blocks, windows with the tokens in flight, padding layers and state blocks.

    Source: reference engine_rules.md (admission rule). Check: Llama 3.1 8B in bf16, 4,096 tokens: 512 MiB.
    """
    return unsharded_kv_blocks_per_sequence * unsharded_kv_block_bytes


@formula("Steady KV per sequence")
def kv_bytes_per_sequence_steady(
    charged_tokens: Quantity, kv_bytes_per_token: Quantity, shard_windowed_bytes_per_token: Quantity,
    state_bytes_per_sequence: Quantity, window_tokens: Quantity, n_windowed_layers: Quantity,
    hybrid_kv_manager: Quantity, block_size: Quantity,
) -> Any:  # fmt: skip
    """What a decoding sequence holds, in bytes, before division over ranks: whole blocks of the growing
    layers, the window and one block of the windowed ones, and the state.

    Source: vLLM hybrid KV cache manager (steady decode).
    """
    whole = round_up(charged_tokens / block_size) * block_size
    window = where(hybrid_kv_manager == 1, round_up(window_tokens / block_size) * block_size + block_size, whole)
    windowed = where(n_windowed_layers > 0, smallest(whole, window), 0)
    return whole * kv_bytes_per_token + windowed * shard_windowed_bytes_per_token + state_bytes_per_sequence


@formula("Short form of a token count", TEXT)
def short_tokens(tokens: Quantity, tokens_per_k: Quantity) -> Any:
    """131,072 as 128k; a number that is no multiple of 1,024 as it is.

    Source: 1k is 1,024 tokens.
    """
    return where(remainder(tokens, tokens_per_k) == 0, join_text(tokens / tokens_per_k, "k"), join_text(tokens))

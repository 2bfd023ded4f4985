"""How an engine lays the KV cache out: layers in groups of equal size, and blocks of equal bytes for all kinds."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, formula, largest, ratio, round_down, round_up, smallest, where


@formula("Layers in a KV group")
def group_layers(
    n_full_layers: Quantity, n_mla_layers: Quantity, n_other_layers: Quantity, n_windowed_layers: Quantity,
    n_state_layers: Quantity, group_stretch: Quantity,
) -> Any:  # fmt: skip
    """How many layers share one KV block: the smallest kind's count, so that all groups are equal.

    Where the kinds differ by less than `group_stretch` (1.25) the larger count is taken: less padding.

    Source: vLLM hybrid KV cache manager. Check: Gemma 3 27B (10 full, 52 windowed) is 10: 7 groups.
    """
    growing = n_full_layers + n_mla_layers + n_other_layers
    most = largest(growing, n_windowed_layers, n_state_layers)
    least = smallest(
        where(growing > 0, growing, most),
        where(n_windowed_layers > 0, n_windowed_layers, most),
        where(n_state_layers > 0, n_state_layers, most),
    )
    return where(most < least * group_stretch, most, least)


@formula("Groups of growing layers")
def n_growing_groups(
    group_layers: Quantity, n_full_layers: Quantity, n_mla_layers: Quantity, n_other_layers: Quantity
) -> Any:
    """KV groups of layers whose cache grows, rounded up to whole groups (the engine adds padding layers).

    Source: vLLM hybrid KV cache manager.
    """
    return round_up(ratio(n_full_layers + n_mla_layers + n_other_layers, group_layers))


@formula("Groups of windowed layers")
def n_windowed_groups(group_layers: Quantity, n_windowed_layers: Quantity) -> Any:
    """KV groups of windowed layers, rounded up to whole groups (the engine adds padding layers).

    Source: vLLM hybrid KV cache manager. Check: Gemma 3 27B is 6 (52 layers stored as 60).
    """
    return round_up(ratio(n_windowed_layers, group_layers))


@formula("Groups of recurrent layers")
def n_state_groups(group_layers: Quantity, n_state_layers: Quantity) -> Any:
    """KV groups of recurrent layers, rounded up to whole groups.

    Source: vLLM hybrid KV cache manager. Check: Qwen3.6-27B is 3 (48 layers in groups of 16).
    """
    return round_up(ratio(n_state_layers, group_layers))


@formula("KV groups")
def n_kv_groups(n_growing_groups: Quantity, n_windowed_groups: Quantity, n_state_groups: Quantity) -> Any:
    """All KV groups of the model.

    Source: vLLM hybrid KV cache manager. Check: Gemma 3 27B is 7.
    """
    return n_growing_groups + n_windowed_groups + n_state_groups


@formula("Growing KV of one layer, token and rank")
def growing_layer_bytes(
    shard_kv_bytes_per_token: Quantity, n_full_layers: Quantity, n_mla_layers: Quantity, n_other_layers: Quantity
) -> Any:
    """Growing cache of one layer, in bytes per token and rank, on average over those layers.

    Source: definition.
    """
    return ratio(shard_kv_bytes_per_token, n_full_layers + n_mla_layers + n_other_layers)


@formula("Windowed KV of one layer, token and rank")
def windowed_layer_bytes(shard_windowed_bytes_per_token: Quantity, n_windowed_layers: Quantity) -> Any:
    """Windowed cache of one layer, in bytes per token and rank.

    Source: definition.
    """
    return ratio(shard_windowed_bytes_per_token, n_windowed_layers)


@formula("Tokens in a block of growing layers")
def growing_block_tokens(
    growing_layer_bytes: Quantity, windowed_layer_bytes: Quantity, shard_state_bytes_per_layer: Quantity,
    block_size: Quantity,
) -> Any:  # fmt: skip
    """Tokens that one block of a growing layer holds, after all kinds were given one page size.

    The block grows until it is as large as a windowed layer's, or as one layer's state.

    Source: vLLM hybrid KV cache manager. Check: Qwen3.6-27B in bf16 at TP 1 is 784.
    """
    windows = round_down(ratio(windowed_layer_bytes, growing_layer_bytes, 1))
    states = round_up(ratio(shard_state_bytes_per_layer, growing_layer_bytes * block_size))
    return block_size * largest(1, windows, states)


@formula("Tokens in a block of windowed layers")
def windowed_block_tokens(growing_layer_bytes: Quantity, windowed_layer_bytes: Quantity, block_size: Quantity) -> Any:
    """Tokens that one block of a windowed layer holds, after all kinds were given one page size.

    Source: vLLM hybrid KV cache manager.
    """
    return block_size * largest(1, round_down(ratio(growing_layer_bytes, windowed_layer_bytes, 1)))


@formula("KV block")
def kv_block_bytes(
    group_layers: Quantity, growing_block_tokens: Quantity, growing_layer_bytes: Quantity,
    windowed_block_tokens: Quantity, windowed_layer_bytes: Quantity, shard_state_bytes_per_layer: Quantity,
    shares_pages: Quantity, hybrid_kv_manager: Quantity, block_size: Quantity, shard_kv_bytes_per_token: Quantity,
    shard_windowed_bytes_per_token: Quantity, n_state_layers: Quantity,
) -> Any:  # fmt: skip
    """One block of one KV group, in bytes per rank, all layers of the model on one pipeline stage.

    Where each kind of layer has a pool of its own: block_size tokens of all layers that keep every token.

    Source: vLLM hybrid KV cache manager. Check: Qwen3.6-27B in bf16 at TP 1 is 51,380,224.
    """
    kept = shard_kv_bytes_per_token + (1 - hybrid_kv_manager) * shard_windowed_bytes_per_token
    own = where(kept > 0, block_size * kept, block_size * shard_windowed_bytes_per_token)
    own = where(own > 0, own, n_state_layers * shard_state_bytes_per_layer)
    growing = growing_block_tokens * growing_layer_bytes
    windowed = windowed_block_tokens * windowed_layer_bytes
    state = where(growing_layer_bytes > 0, 0, shard_state_bytes_per_layer)
    return where(shares_pages == 1, group_layers * largest(growing, windowed, state), own)

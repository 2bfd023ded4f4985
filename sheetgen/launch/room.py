"""What an engine's share leaves on a GPU outside its KV pool, and what has to fit in it."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import formula, ratio, round_down, round_up


@formula("Left outside the pool")
def left_outside_bytes_per_gpu(
    gpu_memory_bytes: Any,
    context_bytes: Any,
    loaded_weights_bytes_per_gpu: Any,
    overhead_bytes_per_gpu: Any,
    kv_pool_bytes_per_gpu: Any,
) -> Any:
    """Memory of one GPU that neither the bills in the engine's budget nor its KV pool take, in bytes.

    Source: the KV pool's accounting (sizing/memory.py), read from the other side.
    """
    taken = loaded_weights_bytes_per_gpu + overhead_bytes_per_gpu + kv_pool_bytes_per_gpu
    return gpu_memory_bytes - context_bytes - taken


@formula("Needed outside the pool")
def needed_outside_bytes_per_gpu(
    activation_bytes_per_gpu: Any,
    cuda_graph_bytes_per_gpu: Any,
    activations_in_budget: Any,
    graphs_in_budget: Any,
    uncharged_bytes: Any,
) -> Any:
    """What the engine takes on one GPU outside its budget: activations and CUDA graphs where it does not count them,
    and memory that it counts nowhere, in bytes.

    Source: catalogs/engines (activations_in_budget, graphs_in_budget); catalogs/stacks.yaml (uncharged_gib).
    """
    activations = (1 - activations_in_budget) * activation_bytes_per_gpu
    return activations + (1 - graphs_in_budget) * cuda_graph_bytes_per_gpu + uncharged_bytes


@formula("Ceiling of a KV budget")
def kv_ceiling_bytes(n_sequences: Any, max_model_len: Any, kv_bytes_per_token: Any) -> Any:
    """What an engine's limits let the growing KV cache become: every sequence at its full length, in bytes, before any
    division over GPUs, without windows, states and the rounding to whole blocks.

    Source: TensorRT-LLM, max_batch_size x max_seq_len. Check: Llama 3.1 8B in FP8, 8 x 4,096: 2,147,483,648.
    """
    return n_sequences * max_model_len * kv_bytes_per_token


@formula("Sequences in a limit of tokens")
def sequences_in_tokens(limit_tokens: Any, max_model_len: Any, block_size: Any) -> Any:
    """Sequences of full length, in whole blocks, that a pool limited to so many tokens holds.

    Source: TensorRT-LLM, max_tokens of KvCacheConfig. Check: 24,000 tokens, 2,048 each, blocks of 64: 11.
    """
    return round_down(ratio(limit_tokens, round_up(max_model_len / block_size) * block_size))

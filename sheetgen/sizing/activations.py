"""The third bill: the peak of the engine's profile run, which is charged on every GPU before the KV pool.

The engine feeds its largest batch once. Two moments can be the peak: the widest feed-forward layer while the
batch goes through, and the sampler on the logits of max_num_seqs requests, with the batch's hidden states still
held. Workspaces of experts and the outputs of an image encoder stay allocated through both.
"""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, formula, largest, ratio, round_down, round_up, where


@formula("Sampler's peak")
def sampler_bytes(
    max_num_seqs: Quantity, vocab_size: Quantity, max_num_batched_tokens: Quantity, hidden_size: Quantity,
    other_bytes: Quantity, sampler_bytes_per_logit: Quantity, sampler_bytes_per_vocabulary_entry: Quantity,
) -> Any:  # fmt: skip
    """The sampler on the logits of max_num_seqs requests, in bytes, the batch's hidden states still held.

    A logit is kept in the model's 16 bits and, in vLLM 0.17 to 0.21, three times in 32 (the logits, their
    probabilities, the random numbers): 12 bytes more. The top-k kernel has a row of the vocabulary per
    multiprocessor (132 x 4 bytes on H100). It follows the vocabulary, not the model's size.

    Source: vLLM v1/sample/sampler.py, ops/topk_topp_sampler.py; agrees with 32 runs of 0.19 to 0.02 GiB.
    Check:  Llama 3.1 8B with 1,024 requests in bf16: 1.85 GiB of the 1.89 logged.
    """
    logits = max_num_seqs * vocab_size * (other_bytes + sampler_bytes_per_logit)
    hidden = (max_num_batched_tokens + max_num_seqs) * hidden_size * other_bytes
    return logits + vocab_size * sampler_bytes_per_vocabulary_entry + hidden


@formula("Forward peak")
def forward_bytes(
    max_num_batched_tokens: Quantity, hidden_size: Quantity, intermediate_size: Quantity, ffn_matrices: Quantity,
    other_bytes: Quantity, activation_copy_bytes: Quantity, forward_hidden_copies: Quantity,
    tensor_parallel_size: Quantity,
) -> Any:  # fmt: skip
    """The batch inside the widest feed-forward layer, in bytes: gate, up and their product, a quantized copy of
    that product where the precision makes one, and some copies of the hidden states.

    Source: vLLM's compiled forward pass; forward_hidden_copies is fitted, the rest are shapes.
    Check:  Mistral Small 24B in w8a8, 8,192 tokens at TP 1: 2.04 GiB.
    """
    ffn = (ffn_matrices * other_bytes + activation_copy_bytes) * intermediate_size / tensor_parallel_size
    return max_num_batched_tokens * (ffn + forward_hidden_copies * hidden_size * other_bytes)


@formula("Experts' workspace")
def expert_workspace_bytes(
    max_num_batched_tokens: Quantity, hidden_size: Quantity, experts_per_token: Quantity,
    expert_intermediate_size: Quantity, other_bytes: Quantity, expert_workspace_share: Quantity,
    tensor_parallel_size: Quantity,
) -> Any:  # fmt: skip
    """Two buffers that the fused experts keep: a row per token and chosen expert, each as wide as the hidden
    size or the experts' own width, in bytes. 0 for dense models.

    Source: vLLM fused_moe workspace shapes. Check: Qwen3-30B-A3B, 8,192 tokens at TP 1: 0.50 GiB.
    """
    width = expert_intermediate_size / tensor_parallel_size
    rows = max_num_batched_tokens * experts_per_token
    both = largest(width, hidden_size) + largest(width + width, hidden_size)
    return rows * both * other_bytes * expert_workspace_share


@formula("Encoder's images")
def encoder_bytes(
    max_num_batched_tokens: Quantity, hidden_size: Quantity, encoder_item_tokens: Quantity,
    encoder_item_elements: Quantity, other_bytes: Quantity,
) -> Any:  # fmt: skip
    """Images of the largest size that fill one batch, as input and as encoded tokens, in bytes. They stay in
    memory while the language model is profiled. 0 for models that read text alone.

    Source: vLLM gpu_model_runner.profile_run. Check: Gemma 3 27B, 8,192 tokens: 32 images, 0.23 GiB.
    """
    images = largest(1, round_down(ratio(max_num_batched_tokens, encoder_item_tokens)))
    each = (encoder_item_tokens * hidden_size + encoder_item_elements) * other_bytes
    return where(encoder_item_tokens > 0, images * each, 0)


@formula("Profile peak")
def profile_peak_bytes(
    sampler_bytes: Quantity, forward_bytes: Quantity, expert_workspace_bytes: Quantity, encoder_bytes: Quantity,
    matmul_workspace_bytes: Quantity,
) -> Any:  # fmt: skip
    """The peak of the engine's profile run on one GPU, in bytes, without pipeline stages.

    It does not depend on the context. Where the sampler is the peak it does not depend on TP either.

    Source: vLLM gpu_worker.determine_available_memory. Check: Llama 3.1 8B, 1,024 requests: 1.89 GiB (logged: 1.89).
    """
    peak = largest(sampler_bytes, forward_bytes)
    return round_up(peak + expert_workspace_bytes + encoder_bytes + matmul_workspace_bytes)


@formula("Hand-over between stages")
def hand_over_bytes(max_num_batched_tokens: Quantity, hidden_size: Quantity, other_bytes: Quantity) -> Any:
    """Buffers for the hidden states and the residual that a pipeline stage is handed, in bytes.

    Source: vLLM make_empty_intermediate_tensors. Check: Llama 3.1 8B, 8,192 tokens: 0.13 GiB.
    """
    return max_num_batched_tokens * (hidden_size + hidden_size) * other_bytes


@formula("Activations per GPU")
def activation_bytes_per_gpu(
    profile_peak_bytes: Quantity, hand_over_bytes: Quantity, pipeline_parallel_size: Quantity
) -> Any:
    """The peak of the profile run on the GPU with the least left, in bytes: the pipeline stage with the output
    head samples too, and is handed the batch by the stage before.

    Source: profile_peak_bytes; the tokens of two PP runs of Llama 3.1 8B follow from 2.02 GiB.
    Check:  stages without the head log 1.10 and 1.05 GiB.
    """
    return profile_peak_bytes + where(pipeline_parallel_size > 1, hand_over_bytes, 0)

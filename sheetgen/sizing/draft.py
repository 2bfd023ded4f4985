"""A draft model for speculative decoding: weights and a KV cache of its own, beside those of the model that it drafts
for.

The formulas of both parts read its share as more of what they read anyway (OF_A_RANK, OF_A_MODEL), so that none of them
is written twice, and none names a draft where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sheetgen.formula import Formula, Quantity, formula, round_up
from sheetgen.sizing.kv_cache import heads_of_a_rank
from sheetgen.sizing.weights import rank_weights_bytes
from sheetgen.units import PLAIN


@formula("Draft's KV per token and rank")
def draft_bytes_per_token(
    draft_layers: Quantity,
    draft_kv_heads: Quantity,
    draft_kv_width: Quantity,
    kv_dtype_bytes: Quantity,
    kv_scale_bytes: Quantity,
    tensor_parallel_size: Quantity,
) -> Quantity:
    """KV cache that a speculative-decoding draft adds to each token of context, in bytes per rank: it keeps a full
    cache of its own, at the target's KV precision, and follows the target's tensor parallelism.

    Source: reference models.md section 7. Check: the EAGLE-3 head of Llama 3.1 8B in bf16 is 4,096.
    """
    head = draft_kv_width * kv_dtype_bytes + 2 * kv_scale_bytes
    return draft_layers * heads_of_a_rank(draft_kv_heads, tensor_parallel_size) * head


@formula("Draft's weights per GPU")
def draft_weights_bytes_per_gpu(draft_weights_bytes: Quantity, tensor_parallel_size: Quantity) -> Quantity:
    """The draft's weights on one GPU, in bytes: divided over the target's tensor-parallel ranks.

    Source: vLLM draft_tensor_parallel_size: the target's unless stated.
    """
    return round_up(draft_weights_bytes / tensor_parallel_size)


@formula("Other KV per token, the draft's with it", within=[draft_bytes_per_token])
def other_bytes_beside_draft(other_bytes_per_token: Quantity, draft_bytes_per_token: Quantity) -> Quantity:
    """Bytes of each token that do not depend on the model's own KV precision, plus what the draft keeps of the token,
    per rank.

    Source: vLLM keeps the draft's layers in the target's KV groups.
    """
    return other_bytes_per_token + draft_bytes_per_token


@formula("Other layers that keep every token, the draft's with them")
def layers_beside_draft(n_other_layers: Quantity, draft_layers: Quantity) -> Quantity:
    """The model's layers with compressed entries plus those of the draft: both keep something of every token.

    Source: vLLM keeps the draft's layers in the target's KV groups.
    """
    return n_other_layers + draft_layers


@formula("Overhead on a stage, the draft with it", within=[draft_weights_bytes_per_gpu])
def overhead_beside_draft(stage_overhead_bytes: Quantity, draft_weights_bytes_per_gpu: Quantity) -> Quantity:
    """Memory that a pipeline stage keeps beside the model, in bytes, with the draft's weights, which the stages do not
    divide.

    Source: loaded_weights_bytes_per_gpu.
    """
    return stage_overhead_bytes + draft_weights_bytes_per_gpu


ONE_RANK = Formula("tensor_parallel_size", "", PLAIN, (), lambda: 1)


def _named(name: str, quantity: Formula) -> Formula:
    return replace(quantity, name=name)


# Quantities with the draft's share, by the names that formulas read: on a rank of any layout, and for a whole model.
OF_A_RANK = (
    _named("other_bytes_per_token", other_bytes_beside_draft),
    _named("n_other_layers", layers_beside_draft),
    _named("stage_overhead_bytes", overhead_beside_draft),
    _named("weights_bytes_per_gpu", rank_weights_bytes),
    draft_weights_bytes_per_gpu,
)
OF_A_MODEL = (
    _named("other_bytes_per_token", other_bytes_beside_draft.with_parts([ONE_RANK])),
    _named("n_other_layers", layers_beside_draft),
)


def beside(formulas: Iterable[Formula]) -> tuple[Formula, ...]:
    """The same formulas of a rank that serves with a draft."""
    return tuple(quantity.with_parts(OF_A_RANK) for quantity in formulas)

"""The formulas in groups, each in the order in which its quantities come about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sheetgen.formula import Formula, Quantity
from sheetgen.program.declared import Named
from sheetgen.sizing import draft, kv_cache, memory, parallelism, speed, weights
from sheetgen.units import ENDS

# How an engine puts a model's layers into groups of equal size.
GROUPS: tuple[Formula, ...] = (
    kv_cache.group_layers,
    kv_cache.n_growing_groups,
    kv_cache.n_windowed_groups,
    kv_cache.n_state_groups,
    kv_cache.n_indexed_groups,
    kv_cache.n_pooled_groups,
    kv_cache.window_like_groups,
    kv_cache.n_kv_groups,
)
# Quantities of a model and its precisions on any hardware.
MODEL: tuple[Formula, ...] = (
    weights.weights_bytes,
    weights.ends_bytes,
    weights.loaded_weights_bytes,
    weights.stage_ends_bytes,
    weights.routed_bytes,
    weights.rope_table_bytes,
    kv_cache.kv_bytes_per_token,
    kv_cache.state_bytes_per_sequence,
    *GROUPS,
    memory.on_second_runner,
    memory.graphs_reserved,
    memory.runner_bytes_per_logit,
)
# The share of one tensor-parallel rank: of the cache (KV_SHARD), and of cache and weights (SHARD).
KV_SHARD: tuple[Formula, ...] = (
    kv_cache.full_kv_heads_per_gpu,
    kv_cache.windowed_kv_heads_per_gpu,
    kv_cache.shard_kv_bytes_per_token,
    kv_cache.shard_windowed_bytes_per_token,
    kv_cache.shard_state_bytes_per_layer,
    kv_cache.growing_layer_bytes,
    kv_cache.windowed_layer_bytes,
    kv_cache.growing_block_tokens,
    kv_cache.windowed_block_tokens,
    kv_cache.kv_block_bytes,
)
SHARD: tuple[Formula, ...] = (
    *KV_SHARD,
    weights.copied_kv_weights_bytes,
    weights.tensor_rounding_bytes,
    weights.layer_bytes_per_gpu,
    parallelism.paid_layer_bytes,
)
# One sequence on that rank: kept while it decodes (STEADY), charged at admission (CHARGE).
STEADY: tuple[Formula, ...] = (
    kv_cache.steady_windowed_tokens,
    kv_cache.steady_compressor_blocks,
    kv_cache.kv_blocks_per_sequence_steady,
)
TOKENS: tuple[Formula, ...] = (kv_cache.charged_tokens, kv_cache.admitted_tokens)
CHARGE: tuple[Formula, ...] = (
    kv_cache.windowed_tokens,
    kv_cache.compressor_blocks,
    kv_cache.kv_blocks_per_sequence,
    *STEADY,
)
# The peak of the engine's profile run on one GPU.
PEAK: tuple[Formula, ...] = (
    memory.sampler_bytes,
    memory.forward_bytes,
    memory.expert_workspace_bytes,
    memory.encoder_bytes,
    memory.encoder_peak_bytes,
    memory.cold_start_bytes,
    memory.sampler_table_bytes,
    memory.profile_peak_bytes,
    memory.hand_over_bytes,
)
# The memory of a GPU less weights and the engine's own: the pool for the cache.
POOL: tuple[Formula, ...] = (
    weights.stage_fraction,
    weights.stage_weights_fraction,
    weights.weights_bytes_per_gpu,
    draft.draft_weights_bytes_per_gpu,
    weights.loaded_weights_bytes_per_gpu,
    *PEAK,
    memory.activation_bytes_per_gpu,
    memory.staged_non_torch_bytes_per_gpu,
    memory.non_torch_bytes_per_gpu,
    memory.cuda_graph_bytes_per_gpu,
    memory.overhead_bytes_per_gpu,
    memory.memory_budget_bytes,
    memory.kv_budget_bytes_per_gpu,
    memory.kv_pool_bytes_per_gpu,
    memory.n_kv_blocks,
)
# The part of the pool that the requests take on the fullest GPU.
NEEDED: tuple[Formula, ...] = (
    kv_cache.kv_bytes_per_sequence_per_gpu,
    kv_cache.kv_bytes_per_sequence_steady_per_gpu,
    memory.kv_needed_bytes_per_gpu,
)
# Requests beside the pool: how many fit, and what is short.
FIT: tuple[Formula, ...] = (
    kv_cache.kv_bytes_per_token_per_gpu,
    kv_cache.kv_bytes_per_sequence,
    kv_cache.kv_bytes_per_sequence_steady,
    *NEEDED,
    memory.max_concurrency,
    memory.kv_tokens,
    memory.sequences_in_pool,
    memory.sequences_per_replica,
    memory.kv_bytes,
    memory.kv_admission_bytes,
    memory.shortage_bytes_per_gpu,
)
# Bytes read and layers run by a step and a prompt of a model, on any GPU.
WORK: tuple[Formula, ...] = (
    speed.dense_read_bytes,
    speed.expert_miss_fraction,
    speed.active_expert_params,
    speed.speed_kind,
    speed.kernel_layers,
)
# Seconds of the parts of a step, and of a prompt, for a workload on a GPU.
PARTS_OF_STEP: tuple[Formula, ...] = (
    speed.context_read_bytes,
    speed.dense_seconds,
    speed.expert_seconds,
    speed.layer_overhead_seconds,
    speed.all_reduce_seconds,
    speed.token_link_seconds,
    speed.token_exchange_seconds,
    speed.kv_read_seconds,
    speed.decode_compute_seconds,
)
STEP: tuple[Formula, ...] = (
    *PARTS_OF_STEP,
    speed.token_hop_seconds,
    speed.stage_hop_seconds,
    speed.fixed_step_seconds,
    speed.request_step_seconds,
    speed.prompt_attention_flops,
    speed.shared_prefill_seconds,
    speed.prefill_seconds,
    speed.steps_before_prompt,
    speed.tpot_residual,
    speed.ttft_residual,
)
# Times and throughput of a batch, as its users see them.
PACE: tuple[Formula, ...] = (
    speed.batch_requests,
    speed.untouched_fraction,
    speed.tpot_seconds,
    speed.service_ttft_seconds,
    speed.queue_seconds,
    speed.ttft_seconds,
    speed.output_tokens_per_second,
    speed.max_requests_per_second,
    speed.prefill_fraction,
    speed.bound_by,
)
# Quantities that depend on how many requests run: read again for a full pool.
OF_RUNNING: tuple[Formula, ...] = (speed.busy_ranks, speed.request_step_seconds, *PACE)
RUNNING: tuple[Formula, ...] = (
    speed.filled_tokens,
    memory.running_capacity,
    speed.running_requests,
    speed.busy_ranks,
)
BANDS_OF = {
    "tpot": "tpot_seconds", "ttft": "ttft_seconds", "output_tokens_per_second": "output_tokens_per_second",
}  # fmt: skip
# The runs that bands of speed are from; a measured point says nothing of the figure that it does not give.
SPEED_SCOPES: tuple[Named, ...] = (
    speed.has_own_runs,
    speed.measured_scope,
    ("speed_scope", speed.scope_of_factor.reading(factor="speed_factor", measured_factor="measured_tpot_factor")),
    (
        "ttft_scope",
        replace(
            speed.scope_of_factor.reading(factor="ttft_factor", measured_factor="measured_ttft_factor"),
            label=f"{speed.scope_of_factor.label}, first token",
        ),
    ),
)


SCOPES_OF_BANDS = tuple(name for name in speed.band_of_scope.inputs if name not in ("scope", "has_own_runs"))


def speed_band(figure: str) -> Iterator[Named]:
    """Both ends of the 80 % band of a figure of speed, as factors, in the scope of its runs."""
    scope = "ttft_scope" if figure == "ttft" else "speed_scope"
    for end in ENDS:
        name = f"{figure}_band_{end}"
        scopes = {scope_of_band: f"{name}_{scope_of_band}" for scope_of_band in SCOPES_OF_BANDS}
        factor = speed.band_of_scope.reading(scope=scope, **scopes)
        yield name, replace(factor, label=f"{figure}, {end} end of its band".replace("_", " "))


def speed_ends(**quantities: str) -> Iterator[Named]:
    """Both ends of the band of each figure of speed; `quantities`: the predicted quantities that have another name."""
    for figure, name in BANDS_OF.items():
        for end in ENDS:
            reads = {"predicted": quantities.get(name, name), "band_factor": f"{figure}_band_{end}"}
            at_end = speed.at_speed_band.reading(**reads)
            yield f"{name}_{end}", replace(at_end, label=f"{figure}, {end}".replace("_", " "))


SPEED_BANDS = (*SPEED_SCOPES, *(end for figure in BANDS_OF for end in speed_band(figure)))
SPEED: tuple[Formula, ...] = (*WORK, *RUNNING, *STEP, *PACE)
POINT: tuple[Formula, ...] = (*TOKENS, *MODEL, *SHARD, *CHARGE, *POOL, *FIT)


def all_of(tokens: Quantity) -> dict[str, Quantity]:
    """A sequence of so many tokens, each charged to it, as the formulas of CHARGE read it."""
    return {formula.name: tokens for formula in TOKENS}

"""`vllm serve` for one point."""

from __future__ import annotations

import json
from typing import Any

from sheetgen.launch.plan import Plan, Written, is_eagle, paired
from sheetgen.launch.shell import flag_groups


def write(plan: Plan) -> Written:
    flags = engine_flags(plan)
    return Written([("vllm", "serve", plan.served.word), *flag_groups(flags)], flags, notes=notes(plan))


def engine_flags(plan: Plan) -> dict[str, Any]:
    """Every argument of `vllm serve` that bears on the memory of the point."""
    flags = plan.flags(("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"))
    names = plan.launcher.flags
    if plan.value("expert_parallel_size") > 1 or plan.shares_experts:
        flags[names["expert_parallel_size"]] = True
    flags |= plan.flags(("max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization"))
    flags[names["kv_cache_dtype"]] = cache_word(plan)
    flags |= plan.flags(("block_size",))
    caching = names["enable_prefix_caching"]
    flags[caching if plan.prefixes else caching.replace("--", "--no-", 1)] = True
    if not plan.value("hybrid_kv_manager") and plan.trial.names.engine.frees_windows and _has_kinds(plan):
        flags[names["hybrid_kv_manager"]] = True
    flags |= plan.dtype_flag() | paired(plan.served.words)
    if plan.draft is not None:
        flags[names["draft_model"]] = json.dumps(speculation(plan))
    return flags


def cache_word(plan: Plan) -> str:
    """`auto`, but where the engine itself would choose FP8: for sparse attention over a latent cache it does."""
    chooses = plan.trial.known["mla_fp8_entry_bytes"] > 0 and plan.value("kv_cache_dtype") in ("bf16", "fp16")
    return "bfloat16" if chooses else plan.cache_word


def speculation(plan: Plan) -> dict[str, Any]:
    draft = plan.trial.names.draft
    assert draft is not None and plan.draft is not None
    method = "eagle3" if is_eagle(draft) else "draft_model"
    return {"method": method, "model": plan.draft.word, "num_speculative_tokens": plan.speculative_tokens}


def notes(plan: Plan) -> list[str]:
    size = plan.value("expert_parallel_size")
    ranks = plan.value("tensor_parallel_size") * plan.value("data_parallel_size")
    if size > 1 and size != ranks:
        return [f"vLLM spreads experts over all {ranks:,} ranks; expert_parallel_size {size:,} has no flag of its own"]
    return []


def _has_kinds(plan: Plan) -> bool:
    """Whether the model has windows or states that a KV manager could keep apart."""
    return plan.trial.known["n_windowed_layers"] + plan.trial.known["n_state_layers"] > 0

"""`python -m sglang.launch_server` for one point."""

from __future__ import annotations

from sheetgen.launch.plan import Plan, Written, is_eagle, paired
from sheetgen.launch.shell import flag_groups

EAGLE = {"--speculative-eagle-topk": 1}  # a chain of drafted tokens, as in the other engines


def write(plan: Plan) -> Written:
    names = plan.launcher.flags
    size, ranks = plan.value("tensor_parallel_size"), plan.value("data_parallel_size")
    flags = plan.flags(("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "expert_parallel_size"))
    limits = plan.flags(("max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization"))
    notes = []
    if plan.shares_experts:  # its TP counts all ranks, of which attention takes TP / DP, and its limit is all ranks'
        flags[names["tensor_parallel_size"]] = size * ranks
        flags["--enable-dp-attention"] = True
        limits[names["max_num_seqs"]] = plan.value("max_num_seqs") * ranks
        notes.append(f"DP attention: --tp-size counts all {size * ranks:,} ranks, {size:,} in each attention group")
    flags |= limits
    flags[names["kv_cache_dtype"]] = plan.cache_word
    flags |= plan.flags(("block_size",))
    if not plan.prefixes:
        flags[names["enable_prefix_caching"]] = True
    flags |= plan.dtype_flag() | paired(plan.served.words)
    draft = plan.trial.names.draft
    if draft is not None and plan.draft is not None:
        flags["--speculative-algorithm"] = "EAGLE3" if is_eagle(draft) else "STANDALONE"
        flags[names["draft_model"]] = plan.draft.word
        flags["--speculative-num-steps"] = plan.speculative_tokens
        flags |= EAGLE
        flags["--speculative-num-draft-tokens"] = plan.speculative_tokens + 1
    groups = [("python", "-m", "sglang.launch_server"), ("--model-path", plan.served.word), *flag_groups(flags)]
    return Written(groups, flags, notes=notes)

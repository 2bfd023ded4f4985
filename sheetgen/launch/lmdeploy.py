"""`lmdeploy serve api_server` for one point, on TurboMind."""

from __future__ import annotations

from sheetgen.launch.plan import Plan, Written, paired
from sheetgen.launch.served import known_checkpoint
from sheetgen.launch.shell import flag_groups


def write(plan: Plan) -> Written:
    names = plan.launcher.flags
    flags = {"--backend": "turbomind"} | plan.flags(
        ("tensor_parallel_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization")
    )
    flags[names["kv_cache_dtype"]] = plan.cache_word
    flags |= plan.flags(("block_size",))
    if plan.prefixes:
        flags[names["enable_prefix_caching"]] = True
    flags |= plan.dtype_flag() | paired(_format(plan))
    groups = [("lmdeploy", "serve", "api_server", plan.served.word), *flag_groups(flags)]
    return Written(groups, flags, notes=copies(plan))


def copies(plan: Plan) -> list[str]:
    """Data parallelism of a model without experts is so many servers, each with all weights."""
    ranks = plan.value("data_parallel_size")
    if ranks == 1:
        return []
    n = plan.n_gpus // ranks
    return [f"start it {ranks:,} times, each on its own {n:,} GPU{'' if n == 1 else 's'} and port, behind a balancer"]


def _format(plan: Plan) -> tuple[str, ...]:
    """The words for quantized weights; 4-bit integers are told apart by how they were made."""
    known = known_checkpoint(plan.trial.names.model, plan.value("weight_dtype"))
    is_gptq = "gptq" in (plan.served.word if plan.served.is_known else known or "").lower()
    return tuple("gptq" if word == "awq" and is_gptq else word for word in plan.served.words)

"""`trtllm-serve` with its YAML (PyTorch backend), and `trtllm-build` for a compiled engine, for one point."""

from __future__ import annotations

from typing import Any

import yaml

from sheetgen.launch.lmdeploy import copies
from sheetgen.launch.plan import Plan, Written, is_eagle
from sheetgen.launch.shell import flag_groups

OPTIONS = "llm_api_options.yaml"
CHECKPOINT, ENGINE = "trtllm_checkpoint", "trtllm_engine"


def write(plan: Plan) -> Written:
    names = plan.launcher.flags
    sizes = plan.flags(("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size"))
    notes = [] if plan.shares_experts else copies(plan)
    options = _options(plan)
    if plan.shares_experts:
        sizes[names["tensor_parallel_size"]] = plan.value("data_parallel_size")
        sizes.setdefault(names["expert_parallel_size"], plan.value("data_parallel_size"))
        options[names["data_parallel_size"]] = True
        notes.append("attention DP: every rank of --tp_size serves requests of its own; --max_batch_size is one rank's")
    flags = {"--backend": "pytorch"} | sizes | plan.flags(("max_num_seqs", "max_num_batched_tokens", "max_model_len"))
    flags["--config"] = OPTIONS
    groups = [("trtllm-serve", plan.served.word), *flag_groups(flags)]
    files = {OPTIONS: yaml.safe_dump(options, sort_keys=False, allow_unicode=True, width=10_000)}
    hinders = (
        "attention DP" if plan.shares_experts else "MXFP4 weights" if plan.value("weight_dtype") == "mxfp4" else ""
    )
    if hinders:
        notes.append(f"no trtllm-build: a compiled engine knows no {hinders}")
    other = {} if hinders else {"trtllm-build": _build(plan)}
    return Written(groups, flags | _flat(options), files=files, notes=notes, other=other)


def _options(plan: Plan) -> dict[str, Any]:
    """The YAML that trtllm-serve lays over its flags."""
    cache: dict[str, Any] = {
        "free_gpu_memory_fraction": round(plan.value("gpu_memory_utilization"), 4),
        "dtype": plan.cache_word,
        "enable_block_reuse": plan.prefixes,
    }
    if plan.value("block_size") != plan.default_block_size:
        cache["tokens_per_block"] = plan.value("block_size")
    # Without chunks a prompt longer than max_num_tokens is refused.
    options: dict[str, Any] = {"kv_cache_config": cache, "enable_chunked_prefill": _needs_chunks(plan)}
    if plan.served.dtype:
        options["dtype"] = plan.served.dtype
    draft = plan.trial.names.draft
    if draft is not None and plan.draft is not None:
        options["speculative_config"] = {
            "decoding_type": "Eagle" if is_eagle(draft) else "DraftTarget",  # Eagle reads EAGLE 3 heads in all of 1.x
            "max_draft_len": plan.speculative_tokens,
            "speculative_model_dir": plan.draft.word,
        }
    return options


def _needs_chunks(plan: Plan) -> bool:
    return bool(plan.value("max_model_len") > plan.value("max_num_batched_tokens"))


def _build(plan: Plan) -> Written:
    """A compiled engine with the same limits; the share is the server's, at run time."""
    flags: dict[str, Any] = {
        "--checkpoint_dir": CHECKPOINT,
        "--output_dir": ENGINE,
        "--max_batch_size": plan.value("max_num_seqs"),
        "--max_seq_len": plan.value("max_model_len"),
        "--max_num_tokens": plan.value("max_num_batched_tokens"),
        "--max_beam_width": 1,
        "--kv_cache_type": "paged",
        "--remove_input_padding": "enable",
        "--gemm_plugin": "auto",
        "--workers": plan.value("tensor_parallel_size") * plan.value("pipeline_parallel_size"),
    }
    is_fp8 = plan.value("kv_cache_dtype") == "fp8"
    in_fp8 = is_fp8 and plan.value("weight_dtype") == "fp8"
    if in_fp8 or (not is_fp8 and (plan.prefixes or _needs_chunks(plan))):
        flags["--use_paged_context_fmha"] = "enable"  # reuse and chunks read paged blocks
    if in_fp8:
        flags["--use_fp8_context_fmha"] = "enable"
    if plan.value("block_size") != plan.default_block_size:
        flags["--tokens_per_block"] = plan.value("block_size")
    size = f"TP {plan.value('tensor_parallel_size')}, PP {plan.value('pipeline_parallel_size')}"
    kept = "--kv_cache_dtype fp8 " if is_fp8 else ""
    notes = [
        f"{CHECKPOINT} is {plan.served.word} converted for {size} (examples/quantization/quantize.py {kept}or the"
        " model's convert_checkpoint.py), which fixes weights, cache precision and ranks",
        f"serve it with kv_cache_free_gpu_memory_fraction {round(plan.value('gpu_memory_utilization'), 4):g}; decoder"
        " and runtime buffers grow with max_batch_size x max_seq_len and were counted as the PyTorch backend's",
    ]
    if is_fp8 and not in_fp8:
        notes.append(
            "FP8 context attention needs FP8 weights: this engine reuses no blocks, and takes prompts of up to"
            " max_num_tokens"
        )
    if plan.draft is not None:
        notes.append("without the draft: a compiled engine is built with its own --speculative_decoding_mode")
    return Written([("trtllm-build",), *flag_groups(flags)], flags, notes=notes)


def _flat(options: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Nested options under dotted names."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        found |= _flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value}
    return found

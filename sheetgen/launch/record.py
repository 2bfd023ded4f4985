"""Flags and advice as plain values, for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.launch.advise import CAVEAT, Advice
from sheetgen.launch.flags import Flags
from sheetgen.launch.shell import command

_INPUTS = (
    "engine", "engine_version", "model_id", "gpu_id", "weight_dtype", "kv_cache_dtype", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "expert_parallel_size", "gpu_memory_utilization", "max_model_len",
    "max_num_seqs", "max_num_batched_tokens", "block_size", "context_tokens", "concurrent_requests", "input_tokens",
    "output_tokens", "prefix_cache_hit_fraction", "average_context_fraction", "draft_model", "kv_allocation",
    "hybrid_kv_manager", "enable_prefix_caching",
)  # fmt: skip


def flags_record(flags: Mapping[str, Flags]) -> dict[str, Any]:
    """The flags as plain values: by engine its command, settings, files, environment, check and notes."""
    return {engine: _record(one) for engine, one in flags.items()}


def _record(one: Flags) -> dict[str, Any]:
    written = one.written
    found: dict[str, Any] = {
        "command": None if written is None else command(written.groups, " "),
        "settings": {} if written is None else written.settings,
        "files": {} if written is None else written.files,
        "env": {} if written is None else written.env,
        "checked": _checked(one),
        "notes": list(one.notes),
        "other_commands": {},
    }
    for name, other in (written.other if written else {}).items():
        found["other_commands"][name] = {
            "command": command(other.groups, " "),
            "settings": other.settings,
            "files": other.files,
            "notes": other.notes,
        }
    return found


def _checked(one: Flags) -> dict[str, Any]:
    """The prediction beside the flags; what a command holds is null where none is printed."""
    checked, printed = one.checked, one.checked.printed
    answer = printed.answer if printed else None
    known = printed.known if printed else {}
    engine = checked.asked.names.engine
    return {
        "engine": engine.engine,
        "engine_version": engine.default_version,
        "fits": checked.fits,
        "verdict": checked.verdict,
        "holds": printed is not None,
        "inputs": None if answer is None else {n: answer[n] for n in _INPUTS},
        "kv_pool_bytes_per_gpu": answer and answer["kv_pool_bytes_per_gpu"],
        "kv_tokens": answer and answer["kv_tokens"],
        "max_num_seqs": answer and answer["max_num_seqs"],
        "sequences_in_pool": int(known["sequences_in_pool"]) if known else None,
        "max_concurrency": answer and answer["max_concurrency"],
        "left_outside_bytes_per_gpu": round(printed.left_outside_bytes) if printed else None,
        "needed_outside_bytes_per_gpu": round(printed.needed_outside_bytes) if printed else None,
        "would_fit": [
            {"setting": o.setting, "value": o.value, "flag": one.flag(o), "holds": o.says} for o in checked.offers
        ],
    }


def advice_record(advice: Advice) -> dict[str, Any]:
    """The advice as plain values."""
    rule = advice.rule
    return {
        "engine": advice.engine,
        "line": advice.line,
        "rule": rule and rule.id,
        "suits": list(rule.suits) if rule else [],
        "reason": rule and rule.reason,
        "sources": list(rule.sources) if rule else [],
        "sequences_held": dict(advice.room),
        "caveat": CAVEAT,
    }

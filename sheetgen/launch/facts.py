"""What the rules of stacks.yaml may ask of a point: its GPU, its load, its layers, its precisions."""

from __future__ import annotations

from collections.abc import Mapping

from sheetgen.launch.trial import Trial
from sheetgen.units import GIB, MIB

Facts = dict[str, float | str]


def facts_of(trial: Trial) -> Facts:
    """Every fact of a sized point, under the names that `catalog.stacks.FACTS` lists."""
    point, known, names = trial.answer, trial.known, trial.names
    sizes = [point[f"{one}_parallel_size"] for one in ("tensor", "pipeline", "data")]
    hit = known["prefix_cache_hit_fraction"]
    return {
        "vendor": names.gpu.vendor,
        "gpu": names.gpu.short_name,
        "data_center": int(names.gpu.data_center),
        "gpu_memory_gib": known["gpu_memory_bytes"] / GIB,
        "n_gpus": sizes[0] * sizes[1] * sizes[2],
        "tensor_parallel_size": sizes[0],
        "data_parallel_size": sizes[2],
        "context_tokens": known["context_tokens"],
        "input_tokens": known["input_tokens"],
        "concurrent_requests": known["concurrent_requests"],
        "prefix_cache_hit_fraction": hit,
        "prefix_tokens": hit * known["input_tokens"],
        "n_layers": known["n_layers"],
        "n_full_layers": known["n_full_layers"],
        "n_windowed_layers": known["n_windowed_layers"],
        "window_tokens": known["window_tokens"],
        "context_beyond_window": max(0, known["context_tokens"] - known["window_tokens"]),
        "windows_freed": point["hybrid_kv_manager"],
        "n_mla_layers": known["n_mla_layers"],
        "n_state_layers": known["n_state_layers"],
        "state_mib_per_sequence": known["state_bytes_per_sequence"] / MIB,
        "is_moe": int(known["n_params_routed"] > 0),
        "has_draft": int(names.draft is not None),
        "weight_dtype": names.weight_dtype,
        "kv_cache_dtype": names.kv_cache_dtype,
        "kv_bytes_per_token": known["kv_bytes_per_token"],
    }


def shown_facts(facts: Mapping[str, float | str]) -> dict[str, str]:
    """The same as a sentence has them: whole numbers with commas, shares in percent."""
    return {name: value if isinstance(value, str) else _shown(name, value) for name, value in facts.items()}


def _shown(name: str, value: float) -> str:
    if name.endswith("_fraction"):
        return f"{100 * value:.4g}%"
    return f"{value:,.1f}" if name.endswith(("_gib", "_mib_per_sequence")) else f"{value:,.0f}"

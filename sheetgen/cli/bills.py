"""A sized deployment as a person reads it: bill by bill, in GiB with the bytes beside."""

from __future__ import annotations

from typing import Any

from sheetgen.api import Sized, record
from sheetgen.cli.output import table
from sheetgen.cli.pace import pace
from sheetgen.units import GIB

KIB = 1024

PER_GPU = (
    ("memory that the engine sees", "gpu_memory_bytes"), ("the engine may use", "memory_budget_bytes"),
    ("weights", "weights_bytes_per_gpu"), ("draft model's weights", "draft_weights_bytes_per_gpu"),
    ("activations", "activation_bytes_per_gpu"), ("non-torch (NCCL, CUDA)", "non_torch_bytes_per_gpu"),
    ("CUDA graphs", "cuda_graph_bytes_per_gpu"), ("left for the KV pool", "kv_pool_bytes_per_gpu"),
)  # fmt: skip
BAND_WORDS = {
    "calibrated": "Four of five models measured on this GPU, engine version and up to this TP lay within such bands,\n"
    "each predicted by constants that were set without it (docs/fidelity.md).",
    "other": "Four of five models in public logs of other GPUs and versions lay within such bands; this GPU,\n"
    "version, TP or draft is not among the runs that the constants were set on (docs/fidelity.md).",
}
NO_BAND = "No error band: too few measured runs of this engine were seen (docs/fidelity.md)."
WHOLE = (
    ("weights", "weights_bytes"), ("KV per token", "kv_bytes_per_token"),
    ("state per sequence", "state_bytes_per_sequence"), ("KV per request, as admitted", "kv_bytes_per_sequence"),
    ("KV per request, while decoding", "kv_bytes_per_sequence_steady"), ("KV of all requests", "kv_bytes"),
)  # fmt: skip


def bills(sized: Sized) -> str:
    """The text of `sheetgen size` for the one deployment of `sized`."""
    answer = record(sized)
    names = sized.points.names[0]
    numbers = {**{k: v[0] for k, v in sized.known.items() if getattr(v, "ndim", 0)}, **_numbers(answer)}
    parallel = [
        f"{short} {answer[f'{long}_parallel_size']}"
        for short, long in (("TP", "tensor"), ("PP", "pipeline"), ("DP", "data"))
        if short == "TP" or answer[f"{long}_parallel_size"] > 1
    ]
    n_gpus = answer["tensor_parallel_size"] * answer["pipeline_parallel_size"] * answer["data_parallel_size"]
    head = [
        f"{names.model.name} on {n_gpus}x {names.gpu.name} ({', '.join(parallel)}), "
        f"{names.engine.name} {answer['engine_version']}",
        f"weights {names.weight_dtype}, KV cache {names.kv_cache_dtype}; "
        f"{answer['concurrent_requests']:,} in flight at {answer['context_tokens']:,} tokens "
        f"({answer['input_tokens']:,} in + {answer['output_tokens']:,} out)",
        "",
        answer["verdict"],
        "",
    ]
    inside = bool(numbers["graphs_in_budget"])
    scope = answer["band_scope"]
    rows: list[tuple[str, ...]] = [("EACH GPU", "GiB", "bytes", "80 % band, GiB" if scope else "")]
    rows += [
        _row("  " + label + _remark(name, numbers, inside), numbers[name], _band(name, answer))
        for label, name in PER_GPU
        if name != "draft_weights_bytes_per_gpu" or numbers[name]
    ]
    needed = numbers["kv_bytes_per_sequence_per_gpu"] * numbers["requests_per_rank"]
    rows.append(_row("  KV that these requests take", needed))
    rows += [("", "", "", ""), ("THE REPLICA, BEFORE DIVISION", "GiB", "bytes", "")]
    rows += [
        _row("  " + label, numbers[name])
        for label, name in WHOLE
        if name != "state_bytes_per_sequence" or numbers[name]
    ]
    bands = f"\n{BAND_WORDS[scope] if scope else NO_BAND}\n"
    memory = table(*_split(rows), right=(1, 2)) + "\n" + bands + "\n" + _limits(answer)
    return "\n".join(head) + "\n" + memory + "\n\n" + pace(sized, answer)


def _numbers(answer: dict[str, Any]) -> dict[str, float]:
    return {k: v for k, v in answer.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


def _split(rows: list[tuple[str, ...]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    return rows[0], rows[1:]


def _remark(name: str, numbers: dict[str, float], inside: bool) -> str:
    if name == "memory_budget_bytes":
        return f" ({100 * numbers['gpu_memory_utilization']:.4g}%)" if numbers["gpu_memory_utilization"] else ""
    if name == "cuda_graph_bytes_per_gpu":
        return "" if inside else ", outside the budget"
    return ""


def _row(label: str, count: float, band: str = "") -> tuple[str, ...]:
    gib = count / GIB
    size = f"{gib:,.2f}"
    if 0 < gib < 0.01:  # a token's share: no reader counts zeros
        size = f"{count / KIB:,.1f} KiB" if count < KIB * KIB else f"{count / KIB / KIB:,.1f} MiB"
    return label, size, f"{count:,.0f}", band


def _band(name: str, answer: dict[str, Any]) -> str:
    """Both ends of a figure's error band, where one is known."""
    low, high = answer.get(f"{name}_low"), answer.get(f"{name}_high")
    return "" if low is None or high is None else f"{low / GIB:,.2f} to {high / GIB:,.2f}"


def _limits(answer: dict[str, Any]) -> str:
    rows = [
        ("KV cache size that the engine prints", f"{answer['kv_tokens']:,} tokens"),
        (f"maximum concurrency at {answer['max_model_len']:,} tokens", f"{answer['max_concurrency']:,.2f}"),
        (f"longest context for {_requests(answer)}", f"{answer['max_context_tokens_that_fit']:,} tokens"),
        ("fewest of these GPUs that hold it", "none" if answer["min_gpus"] is None else f"{answer['min_gpus']:,}"),
    ]
    return table(rows[0], rows[1:])


def _requests(answer: dict[str, Any]) -> str:
    count = answer["concurrent_requests"]
    return f"{count:,} request{'' if count == 1 else 's'}"

"""Speed worked out again in plain Python, one batch after the other, from the words of docs and the raw YAML files."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CATALOGS = Path(__file__).parent.parent / "catalogs"
NETWORK = 400e9 / 8  # bytes a second of every machine


@cache
def read(relative: str) -> Any:
    return yaml.load((CATALOGS / relative).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def cell_of(engine: str, architecture: str) -> dict[str, Any]:
    file = read("speed.yaml")
    name = file["same_as"].get(engine, engine)
    for cell in file["cells"]:
        if cell["engine"] == name and architecture in cell["architectures"]:
            return dict(cell)
    return {"constants": file["default"]}


def left(engine: str, architecture: str, kind: str, weight_dtype: str) -> dict[str, float]:
    """Residuals of both times on measured runs, as factors."""
    cell = cell_of(engine, architecture)
    cells = [cell.get("of_kind", {}).get(kind, {}), cell.get("of_dtype", {}).get(weight_dtype, {})]
    return {f"{time}_left": cells[0].get(time, 1) * cells[1].get(time, 1) for time in ("tpot", "ttft")}


def peak(gpu: Any, dtype: str) -> float:
    """Operations a second that weights of a precision meet."""
    p = gpu["peak_dense_flops"]
    fp8 = p["fp8"] or (p["fp4"] and p["fp4"] // 2)
    own = {"fp8": fp8, "int8": p["int8"], "nvfp4": p["fp4"], "mxfp4": p["fp4"] and fp8}.get(dtype)
    return float(own or p["bf16"] or p["fp16"] or fp8 // 2)


def expert_bytes(params: Any, bytes_of: Any, weights: Any) -> Any:
    """All routed experts: at the precision of the weights, or narrower where a checkpoint leaves less for them."""
    linear, other = bytes_of[:2]
    routed = int(params.get("routed_experts", 0))
    quantized = int(params["body"]) + routed - int(params.get("unquantized", 0))
    rest = (quantized - routed) * linear + (int(params["total"]) - quantized) * other
    return max(0, min(routed * linear, weights - rest))


def chunk_tokens(engine: str, gpu: Any) -> int:
    """The most tokens of a step, by default."""
    memory = int(gpu["memory"]["engine_bytes"]) / 2**30
    if engine == "tensorrt-llm":
        return 8192
    if memory >= 160:
        return 16384
    return 8192 if memory >= 70 and not gpu["architecture"].startswith("Ampere") else 2048


def parts(
    model: str,
    gpu_id: str,
    tp: int,
    weight_dtype: str,
    kv_dtype: str,
    prompt: int,
    answer: int,
    weights: float,
    bytes_of: dict[str, Any],
    stages: int = 1,
    dp: int = 1,
    engine: str = "vllm",
    draft: str = "",
) -> dict[str, float]:
    """Seconds of a step that do not grow with the batch, that each request adds, that all experts take, of a prompt.

    dp: ranks of data-parallel attention, every one of which has requests. draft: its cache is read like the model's.
    """
    entry, gpu = read(f"models/{model}.yaml"), read(f"gpus/{gpu_id}.yaml")
    c, p = cell_of(engine, gpu["architecture"])["constants"], entry["params"]
    other, kv = (float(x) for x in bytes_of[weight_dtype][1:2] + bytes_of[kv_dtype][2:])
    layers, heads, hidden = entry["n_layers"], entry["n_heads"], entry["hidden_size"]
    experts = entry.get("experts") or {"n": 1, "top_k": 0}
    routed = p.get("routed_experts", 0)
    used = routed * experts["top_k"] / experts["n"]
    bandwidth = gpu["memory_bandwidth_bytes_per_second"]
    tables = (p["embedding"] if p.get("lm_head") else 0) + p.get("per_layer_embedding", 0)
    all_experts = float(expert_bytes(p, bytes_of[weight_dtype], weights))
    dense_bytes = max(0.0, weights - all_experts - tables * other)
    dense = dense_bytes / tp / (bandwidth * c["weight_bandwidth_efficiency"])
    expert = all_experts / tp / dp / (bandwidth * c["expert_bandwidth_efficiency"])
    seen = prompt + answer / 2
    cache_bytes, pairs, windowed_pairs, window = 0.0, 0.0, 0.0, 0
    for g in entry["attention"]:
        n, kind = g["n_layers"], g["kind"]
        if kind in ("full", "windowed", "chunked"):
            width = g["key_width"] + g["value_width"]
            kv_elements = n * max(1, -(-g["n_kv_heads"] // tp)) * width * kv
            if kind == "full":
                cache_bytes, pairs = cache_bytes + kv_elements * seen, pairs + n * heads * width
            else:
                window = g["window_tokens"]
                cache_bytes += kv_elements * min(seen, window)
                windowed_pairs += n * heads * width
        elif kind == "mla":
            plain = gpu["architecture"] in ("Blackwell", "Blackwell Ultra")
            entry_bytes = g.get("fp8_entry_bytes", 0) if kv == 1 and not plain else 0
            cache_bytes += n * (entry_bytes or g["latent_width"] * kv) * seen
            pairs += n * (g["absorbed_elements"] / 512 + heads * 64 if g.get("absorbed_elements") else heads * 320)
        elif kind == "indexer":
            cache_bytes += n * g["entry_bytes"] * seen
        elif kind == "compressed":
            cache_bytes += n * (g["width"] + g.get("index_width", 0)) / g["tokens_per_entry"] * kv * seen
        elif kind == "recurrent":
            size = {"fp32": 4, "bf16": 2, "fp16": 2}[g["state_dtype"]]
            cache_bytes += 2 * n * -(-(g["conv_elements"] * 2 + g["state_elements"] * size) // tp)
    for g in read(f"models/{draft}.yaml")["attention"] if draft else []:
        cache_bytes += (
            g["n_layers"] * max(1, -(-g["n_kv_heads"] // tp)) * (g["key_width"] + g["value_width"]) * kv * seen
        )
    flops, flops16 = peak(gpu, weight_dtype), peak(gpu, "bf16")
    ranks = dp if routed else 1  # that share experts, so that they wait for each other
    n_all = tp * ranks

    def ring(n: int) -> float:  # seconds of one all-reduce of a token in each layer over n GPUs
        bridged = gpu.get("pair_link_bytes_per_second", 0) if n == 2 else 0
        rate = max(gpu["interconnect_bytes_per_second"], bridged) * c["link_efficiency"]
        return float(layers * 2 * 2 * hidden / rate * (n - 1) / n)

    own_ring, shared_ring = ring(tp), ring(n_all)
    away = (stages - 1) * dp * hidden * 2 / NETWORK  # a token between machines
    latency = (stages - 1) * read("speed.yaml")["network_hop_seconds"]
    decode = 2 * (p["active"] - used + used / c["expert_decode_factor"]) / tp / (flops * c["decode_compute_efficiency"])
    attention = pairs * prompt**2 + windowed_pairs * prompt * min(prompt, 2 * window)
    overhead = kernel_layers(entry) * c["seconds_per_layer"]
    node, growth = read("speed.yaml")["nvlink_gpus"], read("speed.yaml")["all_reduce_growth"]
    reduces = sum((n / node) ** growth for n in (tp, n_all) if n > 1)
    per_flop = 2 * prompt / tp / (flops * c["prefill_compute_efficiency"])
    alone = (
        per_flop * (p["active"] - used)
        + attention / tp / (flops16 * c["attention_compute_efficiency"])
        + c["prefill_weight_reads"] * (dense + expert)
        + overhead
        + prompt * (own_ring + away)
        + latency
    )
    shared = per_flop * used / c["expert_prefill_factor"] / dp + prompt * shared_ring
    gathers = c["gather_steps"] > 0
    chunks = (max(1, prompt) / chunk_tokens(engine, gpu)) ** read("speed.yaml")["chunks_power"]
    least = read("speed.yaml")["least_step_seconds"]  # of any engine, however small the model
    return {
        "fixed": max(least, dense + overhead + layers * c["seconds_per_all_reduce"] * reduces + latency),
        "each": cache_bytes / (bandwidth * c["kv_bandwidth_efficiency"])
        + decode
        + own_ring
        + ranks * shared_ring
        + away
        + c["seconds_per_request"],
        "experts": expert,
        "missed": (1 - experts["top_k"] / experts["n"]) ** dp,
        "prompt": alone + ranks * shared if gathers else ranks * (alone + shared),
        "first": alone + ranks * shared if gathers else alone + shared,
        "own": 1.0 if gathers else 1 / ranks,
        "before": c["wait_factor"],
        "ranks": float(ranks),
        "base": c["base_ttft_seconds"],
        "beside": c["busy_ttft_seconds"],
        "steps": c["steps_before_prefill"] * chunks + c["gather_steps"] * (ranks - 1),
        "answer": float(max(1, answer)),
        **left(engine, gpu["architecture"], kind_of(model), weight_dtype),
    }


def kernel_layers(entry: Any) -> float:
    """Plain layers that would launch as many kernels: experts in every layer of a mixture, each recurrent
    layer, and sparse attention in every layer add shares of a plain one."""
    file, layers = read("speed.yaml"), entry["n_layers"]
    total = float(layers)
    if entry.get("experts"):
        total += layers * file["expert_kernels"]
    if any(g["kind"] in ("indexer", "compressed") for g in entry["attention"]):
        total += layers * file["sparse_kernels"]
    for g in entry["attention"]:
        total += g["n_layers"] * (file["state_kernels"] if g["kind"] == "recurrent" else 0)
    return total


def step(part: dict[str, float], batch: float) -> float:
    """Seconds of one step of a batch."""
    return float(part["fixed"] + part["each"] * batch + part["experts"] * (1 - part["missed"] ** batch))


def tpot(part: dict[str, float], batch: float) -> float:
    """Seconds between two tokens of an answer."""
    others = part["prompt"] * (1 - part["before"]) * (batch - part["own"])
    return part["tpot_left"] * (step(part, batch) + others / part["answer"])


def ttft(part: dict[str, float], batch: float) -> float:
    """Seconds to the first token of a request whose turn has come."""
    in_the_way = (part["beside"] + part["steps"] * step(part, batch)) * (1 - 1 / (batch * part["ranks"]))
    if part["answer"] == 1:
        in_the_way = 0  # nobody decodes
    waited = max(part["before"], 1 / part["answer"])  # of requests at once
    others = part["prompt"] * waited * (batch - part["own"])
    return part["ttft_left"] * (part["base"] + in_the_way + part["first"] + others)


def largest_batch(
    part: dict[str, float], time: Callable[[dict[str, float], int], float], seconds: float, enough: int
) -> int:
    """The largest batch whose time meets the target, of at most `enough`: 0 where a lone request is too slow."""
    batch = enough if seconds == math.inf else 0  # without a target none is too slow
    while batch < enough and time(part, batch + 1) <= seconds:
        batch += 1
    return batch


def kind_of(model: str) -> str:
    """The kind of model by which speed is predicted well or badly; the last that holds of dense, experts, windows,
    recurrent states and sparse attention (an indexer or compressed entries)."""
    entry = read(f"models/{model}.yaml")
    has = {g["kind"] for g in entry["attention"]}
    if has & {"indexer", "compressed"}:
        return "sparse"
    if "recurrent" in has:
        return "linear"
    if has & {"windowed", "chunked"}:
        return "windowed"
    return "moe" if entry.get("experts") else "dense"


def band(figure: str, model: str, gpu_id: str, tp: int, stages: int, dp: int, drafted: bool) -> tuple[float, float]:
    """Between which factors of the prediction 80 % of measurements lie: with pipeline stages or more GPUs than a node
    has, with data-parallel ranks that share experts (no narrower than without them, where no run was of this kind on
    this GPU), of this GPU where it has bands and runs of this kind of model, of
    the engine's generation of GPUs and the kind, or of the kind on any; no run had a draft. Never narrower than what
    was measured on the GPU."""
    file, kind = read("speed.yaml"), kind_of(model)
    cell = cell_of("vllm", read(f"gpus/{gpu_id}.yaml")["architecture"])
    measured = kind in cell.get("kinds", [])
    of_figure = [b for b in file["bands"] if b["figure"] == figure]
    own = [b for b in of_figure if b.get("gpu") == gpu_id]
    others = [b for b in of_figure if b["scope"] == "other" and b["kind"] == kind and b.get("engine") in (None, "vllm")]
    on_any = [b for b in others if "generation" not in b]
    on_any = [b for b in on_any if "engine" in b] or on_any
    held_for = [b for b in others if measured and b.get("generation") == cell["generation"]] or on_any
    has_runs = own and measured and gpu_id in cell["measured_gpus"] and not drafted
    if has_runs:
        held_for = own
    if dp > 1 and read(f"models/{model}.yaml").get("experts"):
        held_for = [*([] if has_runs else held_for), *(b for b in of_figure if b["scope"] == "ranks")]
    if stages > 1 or tp * dp > file["nvlink_gpus"]:
        held_for = [b for b in of_figure if b["scope"] == "stages"]
    return min(b["low"] for b in (*held_for, *own)), max(b["high"] for b in (*held_for, *own))

"""The value of a change: by the figures of the log, else by the replay, else a first step to try."""

from __future__ import annotations

import math

from sheetgen.catalog.guidance import Fix as Advice
from sheetgen.diagnose.replay import MOST_SHARE, NOT_ENOUGH
from sheetgen.diagnose.told import USELESS, Situation, Told, current, from_log
from sheetgen.diagnose.verdict import Verdict

SHARE_STEP = "by 0.02 to 0.05"
_MOST_STEP = 0.1  # of the card: what is short of more does not go beside a pool
_LAYERS = ("num_gpu", "n_gpu_layers", "n_gpu_layers_draft")
_TWICE = (
    "ctx_size", "num_ctx", "swap_space", "max_concurrent_requests", "max_queued_requests", "max_queue_size",
)  # fmt: skip
_HALF = (
    "cudagraph_capture_sizes", "cuda_graph_sizes", "cuda_graph_max_bs", "cuda_graph_max_bs_decode", "cpu_offload_gb",
    "predict", "num_predict", "hicache_ratio", "max_loras", "max_loras_per_batch",
)  # fmt: skip
_AT_START = ("startup_kv_pool_too_small", "startup_workspace_or_cuda_graph")
_FULL_SHARES = ("cuda_memory_fraction",)  # whose default is all of the GPU


def value_of(fix: Advice, name: str, plain: str, known: Situation) -> Told:
    """The value to set (`USELESS`: leave the change out), and what is known of its effect.

    `plain` is the engine's flag without dashes, `name` our input that it sets.
    """
    replayed = known.replayed
    outcome = replayed.outcomes.get(name, "") if replayed else ""
    told = from_log(fix, name, plain, known)
    if told is not None:
        value, said = told
        same = replayed is not None and value is not None and replayed.values.get(name) == value
        return value, "; ".join(filter(None, (said, outcome if same else "")))
    now = current(name, known)
    if replayed and name in replayed.values:
        value = replayed.values[name]
        before = replayed.answer.get(name)
        if fix.direction not in ("raise", "lower") or before is None or (value > before) == (fix.direction == "raise"):
            return value, outcome
    if outcome.startswith(NOT_ENOUGH):
        return None, outcome
    given = fix.values.get(known.engine or "", fix.value)
    if given and given.isdigit():
        return _number(fix, int(given), now, known.default, outcome)
    value, said = _first_step(fix, name, plain, now, known)
    return (given if value is None else value), outcome or said


def _number(fix: Advice, number: int, now: float | None, default: float | None, outcome: str) -> Told:
    """A number of the catalog; where no more than that was set, a quarter of what was."""
    before = now or default
    said = f"{default:,.0f} is the default" if default and not now else ""
    if before and fix.direction == "lower" and number >= before:
        number = max(1, int(before) // 4)
        if number >= before:
            return USELESS, ""
    return number, "; ".join(filter(None, (outcome, said)))


def _first_step(fix: Advice, name: str, plain: str, now: float | None, known: Situation) -> Told:
    """Where neither the log nor a replay names a value: how far to go first."""
    if name == "gpu_memory_utilization":
        return _share_step(fix.direction, plain, now, known)
    if name == "tensor_parallel_size" and fix.direction == "raise":
        return (int(2 * now) if now else "twice as many"), ""
    if plain in _LAYERS:
        return "by a few at a time", ""
    if fix.direction == "raise":
        return ("twice as much" if plain in _TWICE else None), ""
    if fix.direction != "lower":
        return None, ""
    if plain in _HALF:
        return "half", ""
    if name in ("max_num_seqs", "max_num_batched_tokens") or (
        name == "max_model_len" and known.verdict.bill.label in _AT_START
    ):
        if now == 1:
            return USELESS, ""
        return (int(now) // 2 if now else "half"), ""
    return None, ""


def _share_step(direction: str, plain: str, now: float | None, known: Situation) -> Told:
    if known.verdict.bill.label == "gpu_shared_by_other_process":
        return None, ""
    if direction == "raise":
        if plain in _FULL_SHARES and (now or known.default) == known.default:
            return int(known.default or 1), "its default: it helps only where it was set lower"
        if now is None:
            return SHARE_STEP, ""
        return (round(min(MOST_SHARE, now + 0.05), 2), "") if now < MOST_SHARE else (None, f"{NOT_ENOUGH}: it is {now}")
    if direction == "lower" and _short_share(known.verdict) > _MOST_STEP:
        return USELESS, ""
    if direction == "lower" and now and now > 0.2:
        return _share_that_leaves(now, known.verdict), ""
    step = _short_share(known.verdict) if direction == "lower" else 0.0
    return (f"by {max(0.02, step):.2f}" if step else SHARE_STEP), ""


def _short_share(verdict: Verdict) -> float:
    """What the failed allocation was short of, as a share of the card, and a hundredth; 0 where it is not known."""
    amounts = verdict.failure.amounts if verdict.failure else {}
    short, total = amounts.get("tried_bytes", 0) - amounts.get("free_bytes", 0), amounts.get("gpu_memory_bytes", 0)
    return math.ceil(100 * short / total) / 100 + 0.01 if short > 0 and total else 0.0


def _share_that_leaves(now: float, verdict: Verdict) -> float:
    """A share that leaves what the failed allocation was short of, and a hundredth; three hundredths at least."""
    return round(max(0.1, now - max(0.03, _short_share(verdict))), 2)

"""The bills of a replay, and where they contradict what the log says did not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen.api import Sized
from sheetgen.diagnose.rules import POOL, PREFILL, SAMPLER, WEIGHTS, WORKSPACE
from sheetgen.diagnose.verdict import Verdict
from sheetgen.startup.read import StartupLog
from sheetgen.units import GIB

Row = tuple[str, int, int | None, int]  # a bill of one GPU in bytes: name, needed, there, short (0 where it fits)
OTHER_WEIGHTS = 0.15  # of the weights: beyond it another model, precision or parallelism was replayed
_BILLS = (
    ("weights", "weights_bytes_per_gpu"),
    ("activations", "activation_bytes_per_gpu"),
    ("non-torch (NCCL, CUDA)", "non_torch_bytes_per_gpu"),
    ("CUDA graphs", "cuda_graph_bytes_per_gpu"),
)
_ROW_OF = {WEIGHTS: "weights", POOL: "KV pool", WORKSPACE: "CUDA graphs", SAMPLER: "sampler", PREFILL: "activations"}
CONTRADICTS = (
    "Our prediction says {what}; the engine {did}, so the GPU, TP or a setting differs, or something else held memory."
)
_LEFT = ("weights", "KV pool")  # what is left for them is measured; the others are peaks
_BESIDE = 1.1  # times the predicted bill: what was allocated beyond is told


def rows(sized: Sized, answer: Mapping[str, Any], sampler: bool = False) -> list[Row]:
    """In the order in which an engine pays them: each bill against what those before it left.

    The sampler runs last, in what the activations had and what is outside the budget beside the graphs.
    """
    known = {name: column[0] for name, column in sized.known.items() if getattr(column, "ndim", 0)}
    left = float(known.get("memory_budget_bytes", answer["gpu_memory_bytes"]))
    found: list[Row] = []
    for label, name in _BILLS:
        needed = answer[name] or 0
        if label == "CUDA graphs" and not known.get("graphs_in_budget"):
            outside = answer["gpu_memory_bytes"] - float(known.get("memory_budget_bytes", 0))
            found.append((f"{label}, outside the budget", needed, int(outside), max(0, int(needed - outside))))
            continue
        found.append((label, needed, int(left), max(0, int(needed - left))))
        left = max(0.0, left - needed)
    one = float(known.get("kv_bytes_per_sequence_per_gpu", 0)) * float(known.get("requests_per_rank", 1))
    pool = answer["kv_pool_bytes_per_gpu"] or 0
    found.append((f"KV pool: {answer['concurrent_requests']:,} of {answer['context_tokens']:,} tokens",
                 int(one), max(0, pool), max(0, int(one - max(0, pool)))))  # fmt: skip
    if sampler and (logits := float(known.get("sampler_bytes", 0))):
        budget = float(known.get("memory_budget_bytes", 0))
        graphs = 0 if known.get("graphs_in_budget") else answer["cuda_graph_bytes_per_gpu"] or 0
        there = (answer["activation_bytes_per_gpu"] or 0) + max(0.0, answer["gpu_memory_bytes"] - budget - graphs)
        found.append((f"sampler, {answer['max_num_seqs']:,} rows of the vocabulary", int(logits), int(there),
                         max(0, int(logits - there))))  # fmt: skip
    return found


def contradiction(verdict: Verdict, found: Sequence[Row]) -> str | None:
    """One sentence where the bill that overran in the log fits in the prediction; None where both agree."""
    word = _ROW_OF.get(verdict.bill.label)
    if word is None or verdict.failure is None or verdict.bill.case in ("refused", "state"):
        return None
    row = next((row for row in found if row[0].startswith(word)), None)
    if row is None or row[3]:
        return None
    what = "this fits" if not any(short for *_, short in found) else f"the {word} fit" + "s" * (not word.endswith("s"))
    said = CONTRADICTS.format(what=what, did="measured less" if row[0].startswith(_LEFT) else "needed more")
    held = verdict.failure.amounts.get("allocated_bytes", 0.0)
    if verdict.bill.label == WEIGHTS and held > _BESIDE * row[1]:
        said += f" When it failed {held / GIB:,.2f} GiB were allocated, and the weights are {row[1] / GIB:,.2f}."
    return said


def weights_differ(startup: StartupLog | None, answer: Mapping[str, Any]) -> tuple[str, ...]:
    """The weights are known before anything is run: where the log has others, what was replayed is not what ran."""
    seen = startup.figures.get("weights_bytes_per_gpu") if startup else None
    taken = answer["weights_bytes_per_gpu"] or 0
    if not seen or not taken:
        return ()
    measured = max(figure.value for figure in seen.values())
    if abs(measured - taken) <= OTHER_WEIGHTS * taken:
        return ()
    return (f"the log measured {measured / GIB:,.2f} GiB of weights a GPU, the replay takes {taken / GIB:,.2f}: model, "
            "precision or parallelism are not those of the log.",)  # fmt: skip

"""The bill of an allocation that failed on the GPU without an engine's own message: frame, phase, then numbers.

"CUDA out of memory" closes logs of seven labels. What decides is the deepest frame of the engine, else how far the
start had come, else the numbers of the line; where these do not decide, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sheetgen.diagnose.facts import Failure, Run
from sheetgen.units import GIB

UNDETERMINED, NOT_AN_OOM, HEALTHY = "undetermined", "not_an_oom", "healthy"
POOL, WEIGHTS = "startup_kv_pool_too_small", "startup_weights_do_not_fit"
WORKSPACE = "startup_workspace_or_cuda_graph"
PREFILL, SAMPLER, ENCODER = "prefill_long_prompt", "sampler_logits_peak", "multimodal_encoder_profile"
ADDED, SHARED, FRAGMENTED = "lora_draft_model", "gpu_shared_by_other_process", "fragmentation"
HOST = "host_ram_oom"
MANY, LONG = "concurrency_spike", "long_completion"
STARTING = ("loading", "loaded", "sized", "capturing", "captured", "failed-start")
SERVING = ("ready", "serving", "died-serving")
FRAMES_MISSING = "the traceback above the error line: its deepest engine frame names the bill"
LINES_MISSING = "the lines above the error: what was being made, and whether an image was being processed"
PHASE_MISSING = "the log from the engine's first line, which says how far the start had come"
_MOSTLY_OTHERS, _PARTLY_OTHERS = 0.25, 0.05  # of the card
_OVER_ANY_BUDGET = 0.93  # of the card in this process's tensors: more than a pool within the budget leaves


@dataclass(frozen=True)
class Bill:
    """A label, how sure it is, the form of the death, other labels that would look the same, and what is missing."""

    label: str
    confidence: float
    case: str | None = None
    also: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """A line of the log and why it was looked at."""

    line_number: int
    text: str


@dataclass(frozen=True)
class Verdict:
    """The bill, the run that it is of, the failure that decided it (none where nothing failed), and the evidence."""

    bill: Bill
    run: Run
    failure: Failure | None
    phase: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()


# What the deepest frame says; `None` says nothing by itself.
_OF_STAGE = {
    "sampler": Bill(SAMPLER, 0.87), "logprobs": Bill(SAMPLER, 0.85, also=(PREFILL,)), "encoder": Bill(ENCODER, 0.85),
    "lora": Bill(ADDED, 0.82, "lora"), "draft": Bill(ADDED, 0.8, "draft"), "graphs": Bill(WORKSPACE, 0.88),
    "weights": Bill(WEIGHTS, 0.88), "pinned": Bill(HOST, 0.85), "cache": Bill(WORKSPACE, 0.5, also=(SHARED, POOL)),
    "slots": Bill(MANY, 0.6, "pool", (LONG,)),
}  # fmt: skip
# Frames below which others say more: a run of the model, and whether the engine starts or serves.
WIDE = ("profile", "forward", "compile", "serving", "starting")


def bill_of(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    """The bill of an allocation failure; `added` are "lora" and "draft" where the arguments have them."""
    amounts, stages = failure.amounts, failure.stages
    total = amounts.get("gpu_memory_bytes", 0.0)
    others = amounts.get("other_bytes", 0.0)
    if total and others > max(GIB, _MOSTLY_OTHERS * total):
        return Bill(SHARED, 0.7, also=(WEIGHTS,))
    found = _by_frame(stages, run) or _by_phase(failure, run, added)
    if failure.match.signature.engine == "llama.cpp":  # which prints no traceback
        missing = tuple(LINES_MISSING if one == FRAMES_MISSING else one for one in found.missing)
        found = replace(found, missing=missing)
    if total and others > max(GIB, _PARTLY_OTHERS * total) and found.confidence < 0.7:
        return Bill(SHARED, 0.55, also=(found.label,) if found.label != UNDETERMINED else ())
    return found


def is_crowded(amounts: Mapping[str, float]) -> bool:
    """Whether several processes share the GPU, and much of it is not this one's."""
    others, total = amounts.get("other_bytes", 0.0), amounts.get("gpu_memory_bytes", 0.0)
    return amounts.get("n_processes", 0) > 1 and total > 0 and others > _MOSTLY_OTHERS * total


def _by_frame(stages: list[str], run: Run) -> Bill | None:
    for word in ("draft", "lora", "pinned"):
        if word in stages:
            return _OF_STAGE[word]
    deep = [s for s in stages if s not in WIDE]
    if deep:
        return _OF_STAGE.get(deep[-1])
    if "profile" in stages:
        if "images" in run.clues:
            return Bill(ENCODER, 0.75, also=(WORKSPACE,))
        return Bill(WORKSPACE, 0.65, "profile", (ENCODER,))
    if "compile" in stages and not {"forward", "serving"} & set(stages):
        return Bill(WORKSPACE, 0.65, also=(SAMPLER,))
    return None


def _by_phase(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    phase = failure.phase
    if "serving" in failure.stages and "starting" not in failure.stages:
        return _while_serving(failure, run, added)
    starting = run.seen("failed-start") or "starting" in failure.stages
    if phase in ("unknown", "captured") and run.seen("died-serving") and not starting:
        phase = "died-serving"
    if "images" in run.clues and phase not in ("loading", "sized", "capturing"):
        return Bill(ENCODER, 0.75, also=(WORKSPACE, PREFILL))
    if phase == "loading":
        return Bill(ADDED, 0.65, "draft", (WEIGHTS,)) if "draft" in run.clues else Bill(WEIGHTS, 0.8)
    if phase == "loaded":
        return Bill(WORKSPACE, 0.6, "profile", (ENCODER,))
    if phase in ("sized", "capturing"):
        return Bill(WORKSPACE, 0.87) if phase == "capturing" else Bill(WORKSPACE, 0.7, also=(SAMPLER,))
    if phase == "captured":
        return Bill(SAMPLER, 0.5, also=(WORKSPACE,))
    if (phase in SERVING and "starting" not in failure.stages) or "forward" in failure.stages:
        return _while_serving(failure, run, added)
    return _by_numbers(failure, run, added)


def _while_serving(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    """The pool was allocated long before, so that a peak of one step overran: a prompt, an image, an adapter."""
    if failure.match.signature.engine == "llama.cpp":
        # Its compute buffers were reserved at the start: what a request allocates is an image's, or scratch.
        return Bill(ENCODER, 0.5, also=(WORKSPACE,), missing=(FRAMES_MISSING,))
    if "lora" in added:
        return Bill(ADDED, 0.55, "lora", (PREFILL,))
    images = (ENCODER,) if "images" in run.clues else ()
    return Bill(PREFILL, 0.55 if images else 0.62, "peak", (*images, SAMPLER), (FRAMES_MISSING,))


def _by_numbers(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    """Before the pool is made only weights can take nearly all of the card; graphs show as private pools."""
    amounts = failure.amounts
    total, held = amounts.get("gpu_memory_bytes", 0.0), amounts.get("allocated_bytes", 0.0)
    alone = total and held / total > _OVER_ANY_BUDGET and "private_pool_bytes" not in amounts
    if alone and (run.seen("failed-start") or "starting" in failure.stages):
        return Bill(WEIGHTS, 0.55, also=(WORKSPACE,), missing=(FRAMES_MISSING, PHASE_MISSING))
    likely = (WEIGHTS, PREFILL) if alone else (WORKSPACE, PREFILL)
    if added:
        return Bill(ADDED, 0.45, next(iter(added)), likely, (FRAMES_MISSING, PHASE_MISSING))
    return Bill(UNDETERMINED, 0.3, also=likely, missing=(FRAMES_MISSING, PHASE_MISSING))

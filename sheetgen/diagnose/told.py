"""Values that follow from the figures of the log alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.guidance import Fix as Advice
from sheetgen.diagnose.replay import MOST_SHARE, Replay, whole
from sheetgen.diagnose.verdict import Verdict
from sheetgen.startup.read import StartupLog
from sheetgen.startup.words import RENAMED
from sheetgen.units import GIB

USELESS: Any = object()  # a change that does not help: it is left out
Told = tuple[Any, str]  # a value, None where there is none, and what is known of it
_LEAST_SHARE = 0.1  # below it no model is served: only the other process can give way
_SAFETY = 0.3 * GIB  # beside what another process holds: the context of this one
_ROUND = 1024  # tokens: a limit is raised to whole thousands of them
# TGI limits the prompt alone by the first, prompt and answer by the second, which must be the larger.
_OF_PROMPT, _OF_BOTH = ("max_input_tokens", "max_input_length"), "max_total_tokens"
_FAR = 8  # times a limit: no prompt that was meant
_UNDER_THE_CONTEXT = ("max_prefill_tokens",)  # SGLang takes the larger of it and the context length
_OF_STEP = ("max_num_batched_tokens",)
_BELOW_PREEMPTION = 0.9  # of the requests that ran when some were preempted, whatever the statistics showed by then
_OF_ANSWER = ("max_tokens", "max_new_tokens")  # what a request asks for


@dataclass(frozen=True)
class Situation:
    """What is known of a log: the verdict, the start, the replay; `default` is the flag's where nobody sets it."""

    verdict: Verdict
    engine: str | None
    startup: StartupLog | None
    replayed: Replay | None
    default: float | None = None

    @property
    def figures(self) -> dict[str, float]:
        """Of the whole run; the line that failed outranks the rest."""
        return {**self.verdict.run.figures, **self.of_failure}

    @property
    def of_failure(self) -> Mapping[str, float]:
        return self.verdict.failure.match.figures if self.verdict.failure else {}


def current(name: str, known: Situation) -> float | None:
    """What an input was set to, as far as the log says."""
    told = known.of_failure.get(name)
    if told is None and name == "max_num_batched_tokens":
        told = known.of_failure.get("prefill_tokens")
    if told:
        return told
    startup = known.startup
    if startup is not None:
        for theirs, ours in RENAMED[startup.engine].items():
            argument = startup.arguments.get(theirs)
            if ours == name and argument and isinstance(argument.value, (int, float)) and argument.value > 0:
                return float(argument.value)
    return known.verdict.run.figures.get(name)


def from_log(fix: Advice, name: str, plain: str, known: Situation) -> Told | None:
    """A value that follows from the figures of the log alone; None where none does."""
    label, case, figures = known.verdict.bill.label, known.verdict.bill.case, known.figures
    if label == "startup_kv_pool_too_small":
        return _of_pool(fix, name, known)
    if label == "gpu_shared_by_other_process" and name == "gpu_memory_utilization":
        free, total = figures.get("free_at_start_gib"), figures.get("gpu_memory_gib")
        if free and total:
            share = math.floor(100 * (free * GIB - _SAFETY) / (total * GIB)) / 100
            return (share if share >= _LEAST_SHARE else USELESS), ""
    if label == "prefill_long_prompt" and case == "refused":
        if plain in _OF_STEP and known.verdict.failure and "context length" in known.verdict.failure.match.text:
            return USELESS, ""  # the message names the limit, and it is another
        return _of_refusal(fix, plain, figures)
    if label in ("concurrency_spike", "long_completion") and case != "room" and fix.direction == "lower":
        return _of_full_pool(label, name, known)
    return None


def _of_pool(fix: Advice, name: str, known: Situation) -> Told | None:
    figures = known.figures
    if name == "max_num_seqs" and "mamba_blocks" in figures:
        return int(figures["mamba_blocks"]), ""
    if name == "gpu_memory_utilization":
        share = _share_that_fits(figures, known)
        return None if share is None else (share, "")
    if fix.direction != "lower":
        return None
    if name == "max_model_len" and (told := _length_that_fits(figures)):
        return told
    asked = known.of_failure.get("asked_tokens", 0)
    if asked > 1 and name in ("max_model_len", "max_batch_total_tokens"):
        return int(asked) // 2, f"{asked:,.0f} did not fit: half, and half again until it starts"
    return None


def _of_refusal(fix: Advice, plain: str, figures: Mapping[str, float]) -> Told | None:
    """Which limit refused: that of the prompt, or that of prompt and answer together."""
    prompt, answer = figures.get("prompt_tokens", 0), figures.get("completion_tokens", 0)
    limit, both = figures.get("limit_tokens", 0), figures.get("requested_tokens", 0) or prompt + answer
    answer_is_over = 0 < prompt < limit < both
    if plain in _OF_ANSWER:
        return (int(limit - prompt), f"the limit is {limit:,.0f}, the prompt has {prompt:,.0f}") if (
            answer_is_over) else (USELESS, "")  # fmt: skip
    if plain in _UNDER_THE_CONTEXT and limit:
        return USELESS, ""
    if fix.direction != "raise":
        return None
    if plain in _OF_PROMPT:
        if answer_is_over or not limit < prompt < 10**7:
            return (USELESS, "") if answer_is_over else (None, "")
        return _up(prompt), "--max-batch-prefill-tokens must not be below it"
    if plain == _OF_BOTH:
        if both <= limit or both >= 10**7:
            return None, "it must be above the limit of the prompt"
        if answer_is_over:
            return _up(both), f"the limit of the prompt must stay below it, at {prompt:,.0f} or more"
        answer = max(answer, _ROUND)
        return _up(_up(prompt) + answer), f"above the limit of the prompt, with {answer:,.0f} tokens for the answer"
    if 0 < _FAR * limit < both:
        return None, f"it is {both / limit:,.0f} times the limit: look first at what the client sends"
    return (_up(both), "") if limit < both < 10**7 else None


def _up(tokens: float) -> int:
    return math.ceil(tokens / _ROUND) * _ROUND


def _of_full_pool(label: str, name: str, known: Situation) -> Told | None:
    """By the statistics of the fullest moment before the end: how many ran, and how full the pool was."""
    failure, usage = known.verdict.failure, known.verdict.run.usage
    seen = [s for s in usage.until(failure.match.line_number if failure else None) if s.usage]
    last = max(reversed(seen), key=lambda s: s.usage or 0.0, default=None)
    if name == "max_num_seqs":
        if last is None:
            return None
        running = int(last.running)
        if running <= 1:
            return USELESS, ""
        if label == "long_completion":
            return running // 2, f"{running:,} ran: half as many may each grow to twice the length"
        most = _BELOW_PREEMPTION if failure and "preempt" in failure.match.text else 1.0
        return max(1, int(running * min(most, 0.95 / (last.usage or 1)))), f"{running:,} ran"
    if name == "max_model_len" and last is not None and last.running >= 1:
        pool = known.figures.get("kv_tokens") or (last.tokens / last.usage if last.tokens and last.usage else 0)
        for figure in (known.startup.figures.get("kv_tokens", {}) if known.startup else {}).values():
            pool = pool or figure.value
        if pool:
            return whole(
                pool / last.running
            ) or None, f"the pool's {pool:,.0f} tokens over the {last.running:,.0f} that ran"
        return None, f"to the pool's tokens over the {last.running:,.0f} that ran; the log does not print the pool"
    return None


def _length_that_fits(figures: Mapping[str, float]) -> Told | None:
    if (longest := figures.get("longest_max_model_len", 0)) > 0:
        return int(longest), f"the log says that {longest:,.0f} would fit"
    if (held := figures.get("kv_tokens_available", 0)) > 0:
        return int(held), f"the log says that the pool holds {held:,.0f}"
    needed, there = figures.get("kv_needed_gib", 0), figures.get("kv_available_gib", 0)
    if needed > 0 and there > 0 and figures.get("max_model_len"):
        length = whole(figures["max_model_len"] * there / needed)
        return (length, f"worked out from {there:,.2f} of {needed:,.2f} GiB") if length else None
    return None


def _share_that_fits(figures: Mapping[str, float], known: Situation) -> float | None:
    """The share in use and what was short of one request, as far as that stays below what any engine starts with."""
    now = current("gpu_memory_utilization", known)
    seen = known.startup.figures.get("gpu_memory_bytes", {}) if known.startup else {}
    total = next(iter(seen.values())).value if seen else 0
    short = figures.get("kv_needed_gib", 0) - figures.get("kv_available_gib", 0)
    if not (now and total and short > 0):
        return None
    share = math.ceil(100 * (now + short * GIB / total)) / 100
    return share if share <= MOST_SHARE else None

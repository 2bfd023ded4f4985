"""The KV cache over time: how full, by how many requests, and whether prompts still came in."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from sheetgen.diagnose.excerpt import excerpt
from sheetgen.startup.lines import Line

_N = r"(\d{1,12}(?:\.\d{1,6})?)"
_VLLM = re.compile(
    rf"Avg prompt throughput: {_N} tokens/s, Avg generation throughput: {_N} tokens/s, Running: {_N} reqs, "
    rf"(?:Swapped: {_N} reqs, )?(?:Waiting|Pending): {_N} reqs(?:.{{0,120}}?KV cache usage: {_N}%)?"
)
_SGLANG = re.compile(r"(Prefill|Decode) batch")
_RUNNING, _QUEUE = re.compile(rf"#running-req: {_N}"), re.compile(rf"#queue-req: {_N}")
_USAGE = re.compile(rf"full token usage: {_N}|(?<!swa )token usage: {_N}")
_TOKENS = re.compile(rf"#(?:full )?token: {_N}")
_GENERATED = re.compile(rf"gen throughput \(token/s\): {_N}")
_NEW = re.compile(rf"#new-token: {_N}")
WORDS = ("Avg prompt throughput", "Prefill batch", "Decode batch")
NEARLY_FULL = 0.95
FULL = 0.985  # the fullest of the last samples, where requests were thrown out again
LONG_REQUEST = 65_536  # tokens of one request, beyond which a few of them fill a pool
FEW = 8  # requests
_HIGH = 0.9
_LOOKED_AT = 12  # samples before the end


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of an engine's statistics; `usage` is a share of the pool."""

    line_number: int
    running: float
    waiting: float
    usage: float | None
    prompt_rate: float | None = None
    generation_rate: float | None = None
    tokens: float | None = None
    text: str = ""


@dataclass
class Usage:
    """The first samples and the last, in bounded memory."""

    first: list[Sample] = field(default_factory=list)
    last: deque[Sample] = field(default_factory=lambda: deque(maxlen=200))
    n_samples: int = 0

    def put(self, sample: Sample) -> None:
        self.n_samples += 1
        if len(self.first) < 20:
            self.first.append(sample)
        self.last.append(sample)

    def until(self, line_number: int | None) -> list[Sample]:
        """The samples just before a line; the last ones without one."""
        chosen = [s for s in self.last if line_number is None or s.line_number <= line_number]
        chosen = chosen or [s for s in self.first if line_number is None or s.line_number <= line_number]
        return chosen[-_LOOKED_AT:]


def sample_of(line: Line) -> Sample | None:
    """The sample that a line holds."""
    text = line.text
    if "Avg prompt throughput" in text and (match := _VLLM.search(text)):
        prompt, generated, running, _, waiting, used = match.groups()
        usage = None if used is None else float(used) / 100
        return Sample(
            line.number, float(running), float(waiting), usage, float(prompt), float(generated), None, match[0]
        )
    if match := _SGLANG.search(text):
        part = text[match.start() : match.start() + 600]
        running, queue, used, new = (p.search(part) for p in (_RUNNING, _QUEUE, _USAGE, _NEW))
        if running is None:
            return None
        tokens, generated = _TOKENS.search(part), _GENERATED.search(part)
        return Sample(
            line.number,
            float(running[1]),
            float(queue[1]) if queue else 0.0,
            float(used[1] or used[2]) if used else None,
            (float(new[1]) if new else 1.0) if match[1] == "Prefill" else 0.0,
            float(generated[1]) if generated else None,
            float(tokens[1]) if tokens else None,
            excerpt(part),
        )
    return None


def soon_full(samples: Sequence[Sample]) -> bool:
    """Whether few requests, and nobody new, fill what is left as fast as they filled what was seen."""
    known = [s.usage for s in samples if s.usage is not None]
    rises = len(known) > 2 and all(later > earlier for earlier, later in itertools.pairwise(known))
    return rises and known[-1] >= _HIGH and FULL - known[-1] <= 2 * (known[-1] - known[0])


def filled_by(samples: Sequence[Sample]) -> Literal["length", "number"] | None:
    """Whether the length of few requests fills the pool, or their number; None where the samples do not say.

    Prompts no longer come in, nobody waits and as many run as before, while the pool fills: length. A queue, new
    prompts or more and more running: number, unless a few requests hold very many tokens each.
    """
    known = [s for s in samples if s.usage is not None]
    if not known:
        return None
    last = known[-1]
    if last.tokens and 0 < last.running <= FEW and last.tokens / last.running >= LONG_REQUEST:
        return "length"
    if max(s.running + s.waiting for s in known) <= 1:
        return "length"
    if last.waiting > 0:
        return "number"
    if len(known) < 2:
        return None
    running = [s.running for s in known]
    flat = max(running) - min(running) <= max(0.0, 0.1 * max(running))
    rising = (last.usage or 0) > (known[0].usage or 0)
    prompts = sum(s.prompt_rate or 0 for s in known)
    made = sum(s.generation_rate or 0 for s in known)
    if flat and rising and prompts <= 0.02 * max(made, 1):
        return "length"
    return "number" if running[-1] > running[0] or prompts > 0.02 * max(made, 1) else None

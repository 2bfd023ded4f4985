"""By how much the bill was short, from the figures of the log alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# What was needed, what there was, and what both are of; the first pair that the log holds is told.
_PAIRS = (
    ("kv_needed_bytes", "kv_available_bytes", "KV cache of one request", "bytes"),
    ("wanted_bytes", "free_at_start_bytes", "memory that the share asks for, of what was free", "bytes"),
    ("host_needed_bytes", "host_free_bytes", "host memory", "bytes"),
    ("max_num_seqs", "mamba_blocks", "sequences, each with a state", "sequences"),
    ("max_model_len", "kv_tokens_available", "tokens of one request, of those in the pool", "tokens"),
    ("requested_tokens", "limit_tokens", "tokens of prompt and answer, of those allowed", "tokens"),
    ("prompt_tokens", "limit_tokens", "tokens of the prompt, of those allowed", "tokens"),
    ("tried_bytes", "free_bytes", "one allocation, of what was free on the GPU", "bytes"),
)


@dataclass(frozen=True)
class Shortfall:
    """`what` needed so much and had so much, in `unit`."""

    what: str
    needed: float | int
    there: float | int
    short_by: float | int
    unit: str


def shortfall(numbers: Mapping[str, float | int]) -> Shortfall | None:
    """The first pair of figures of which less was there than needed."""
    for needed, there, what, unit in _PAIRS:
        if needed in numbers and there in numbers and numbers[needed] > numbers[there]:
            asked, had = numbers[needed], numbers[there]
            return Shortfall(what, asked, had, asked - had, unit)
    return None

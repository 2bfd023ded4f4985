"""By how much the bill was short, from the figures of the log alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sheetgen.units import GIB

# What was needed, what there was, and the words for both; the first pair that the log holds is told.
_PAIRS = (
    ("kv_needed_bytes", "kv_available_bytes", "one request needs {} of KV cache, the pool has {}", "bytes"),
    ("wanted_bytes", "free_at_start_bytes", "the share asks for {}, {} were free at the start", "bytes"),
    ("host_needed_bytes", "host_free_bytes", "{} of host memory are needed, {} are free", "bytes"),
    ("max_num_seqs", "mamba_blocks", "{} sequences need a state each, there are {} states", "sequences"),
    ("max_model_len", "kv_tokens_available", "one request needs {} tokens, the pool holds {}", "tokens"),
    ("requested_tokens", "limit_tokens", "prompt and answer have {} tokens, {} are allowed", "tokens"),
    ("prompt_tokens", "limit_tokens", "the prompt has {} tokens, {} are allowed", "tokens"),
    ("tried_bytes", "free_bytes", "one allocation asked for {}, {} were free on the GPU", "bytes"),
)


@dataclass(frozen=True)
class Shortfall:
    """So much was needed and so much there, in `unit`; `what` says it, with {} for each of the two."""

    what: str
    needed: float | int
    there: float | int
    short_by: float | int
    unit: str

    @property
    def said(self) -> str:
        """The sentence with plain numbers, of bytes in GiB."""
        if self.unit == "bytes":
            return self.what.format(*(f"{n / GIB:,.2f} GiB" for n in (self.needed, self.there)))
        return self.what.format(f"{self.needed:,}", f"{self.there:,}")


def shortfall(numbers: Mapping[str, float | int]) -> Shortfall | None:
    """The first pair of figures of which less was there than needed."""
    answer = numbers.get("completion_tokens", 0)
    both = {"requested_tokens": numbers.get("prompt_tokens", 0) + answer} if answer else {}
    known = {**both, **numbers}
    for needed, there, what, unit in _PAIRS:
        if needed in known and there in known and known[needed] > known[there]:
            asked, had = known[needed], known[there]
            return Shortfall(what, asked, had, asked - had, unit)
    return None

"""Counted parameters: how many, how many of them every rank keeps whole, and how many stay in 16 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Tally:
    """Of `total`, `copied` are kept whole by every tensor-parallel rank, `unquantized` are never quantized."""

    total: int = 0
    copied: int = 0
    unquantized: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.total + other.total, self.copied + other.copied, self.unquantized + other.unquantized)

    def __mul__(self, times: int) -> Tally:
        return Tally(self.total * times, self.copied * times, self.unquantized * times)


NOTHING = Tally()


def linear(n_in: int, n_out: int, bias: bool = False, split: Literal["out", "in", "none"] = "out") -> Tally:
    """A quantizable matrix. Split over its outputs its bias is split too; split over its inputs the bias is copied."""
    weight, n_bias = n_in * n_out, n_out * bias
    copied = {"out": 0, "in": n_bias, "none": weight + n_bias}[split]
    return Tally(weight + n_bias, copied, n_bias)


def whole(n: int) -> Tally:
    """Copied to every rank and left in 16 bits: norms, routers."""
    return Tally(n, n, n)


def plain(n: int) -> Tally:
    """Split over the ranks but left in 16 bits: convolutions, decay rates, sinks."""
    return Tally(n, 0, n)


Shape = dict[str, Any]  # an attention group of the catalog without its number of layers


@dataclass(frozen=True)
class Layer:
    """One decoder layer: its parameters (of them the mixer's), its routed experts apart, and what it caches."""

    body: Tally
    groups: tuple[Shape, ...]
    mixer: Tally = NOTHING
    routed: int = 0
    dense_width: int = 0
    moe_width: int = 0


@dataclass(frozen=True)
class Mixer:
    """What moves information between tokens: attention or a recurrence."""

    tally: Tally
    groups: tuple[Shape, ...]


@dataclass(frozen=True)
class FeedForward:
    tally: Tally
    routed: int = 0
    dense_width: int = 0
    moe_width: int = 0


def no_cache(reason: str) -> Shape:
    return {"kind": "no_cache", "reason": reason}

"""Where one number is from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """Where a number is from: a word, a sentence or place, that place's own source, what it follows from."""

    kind: str
    about: str
    inputs: tuple[str, ...] = ()
    source: str = ""

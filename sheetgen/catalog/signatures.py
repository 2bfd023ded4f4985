"""The schema of what a failing log is told by: the texts that engines print, and the flags that engines have.

A signature is one text. `word` must be in the line before `match` is tried; `<name>` in `match` stands for a number
that is kept under that name. What it `says` depends on its kind:

typed    a label: the engine's own message names the bill. `lasting` ones are no death: a refusal, a preemption
weak     a label, by a message that has several causes
trap     a label that outranks all others: a message whose words mislead
oom      where: an allocation on the GPU failed, but the text does not name the bill
frame    a stage: a function or file of a traceback
phase    how far the start had come
clue     something that tips the scale: a draft model, adapters, images, several slots
engine   nothing but the engine
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from sheetgen.catalog.base import Entry, Id, Label, Many, Text

Kind = Literal["typed", "weak", "trap", "oom", "frame", "phase", "clue", "engine"]
NUMBER = r"(-?\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,6})?)"


def _pattern(value: str) -> str:
    if not value.strip() or len(value) > 300:
        raise ValueError("is empty or longer than 300 characters")
    try:
        compiled(value)
    except re.error as error:
        raise ValueError(f"is no regular expression ({error})") from error
    return value


def grouped(pattern: str) -> str:
    """`<name>` as a group of that name that holds a number."""
    return re.sub(r"(?<!\(\?)(?<!\(\?P)<(\w{1,40})>", lambda m: f"(?P<{m[1]}>{NUMBER[1:]}", pattern)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression of a match."""
    return re.compile(grouped(pattern))


def _release(version: str) -> tuple[int, ...]:
    """`0.11.0rc1+cu128` as (0, 11, 0): what follows the number is of the same release."""
    return tuple(int(part) for part in re.findall(r"\d{1,6}", re.split(r"[^\d.]", version.strip().lstrip("v"))[0]))


def _word(value: str) -> str:
    if len(value.strip()) < 3 or len(value) > 80 or not value.isascii():
        raise ValueError("must be 3 to 80 characters of ASCII: a plain part of the line")
    return value


Version = Annotated[str, Field(pattern=r"^\d{1,4}(\.\d{1,4}){0,3}$")]


class EngineFlag(Entry):
    """A flag, argument or variable that an engine has, and where that was read.

    `since` and `until` are the first and the last release in which it does what the fixes say, where that is known;
    an older name has the one that took its place in `instead`; `default` is its value where nobody sets it.
    """

    flag: Annotated[str, Field(pattern=r"^-{0,2}[A-Za-z][\w-]{0,59}$")]
    since: Version | None = None
    until: Version | None = None
    instead: str | None = None
    default: Annotated[float, Field(ge=0)] | None = None
    source: Text

    def serves(self, version: str | None) -> bool:
        """Whether a release has it. Of an unknown one the newest is taken, but what went without a heir stays."""
        release = _release(version or "")
        if not release:
            return self.instead is None
        return (self.since is None or _release(self.since) <= release) and (
            self.until is None or release[: self.until.count(".") + 1] <= _release(self.until)
        )


class Signature(Entry):
    """One text of an engine. `seen` are versions whose logs were read, not the first and the last that print it."""

    id: Id
    kind: Kind
    engine: Id | None = None
    word: Annotated[str, AfterValidator(_word)]
    match: Annotated[str, AfterValidator(_pattern)] | None = None
    says: Id
    case: Id | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.9
    lasting: bool = False
    also: Many[Id] = ()
    seen: Label | None = None
    source: Label

    @property
    def says_label(self) -> bool:
        """Whether `says` is a label."""
        return self.kind in ("typed", "weak", "trap")

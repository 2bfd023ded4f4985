"""Schemas of signatures.yaml, the log lines that identify failures, and of startup_lines.yaml (documented at its top).

A signature matches a log line: `word`, or one of several, must be in the line before `match` is tried; all patterns of
`match` must be found, in any order, and `unless` must not. `<name>` in `match` captures a number under that name.
The meaning of `says` depends on the kind:

typed    a label: the engine's own message names the cause. `lasting` ones are no failure: a refusal, a preemption
weak     a label, by a message that has several causes
trap     a label that outranks all others: a message whose words mislead
oom      a place: an allocation on the GPU failed, but the text does not name the cause
frame    a stage: a function or file of a traceback
phase    the progress of the start
clue     evidence that decides between causes: a draft model, adapters, images, several slots
engine   the engine alone
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from sheetgen.catalog.base import Date, Entry, Id, Label, Many, Problem, Some, must
from sheetgen.catalog.guidance import LABELS
from sheetgen.errors import shown

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


_VERSION = r"v?(\d{1,4}\.\d{1,4}(?:\.\d{1,8})?(?:(?:\.?(?:rc|post|dev|a|b))\d{1,12}){0,3})"


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The compiled pattern, with `<name>` as a group of that name for a number, and `<V>` as a group for a version."""
    pattern = pattern.replace("<V>", _VERSION)
    return re.compile(re.sub(r"(?<!\(\?)(?<!\(\?P)<(\w{1,40})>", lambda m: f"(?P<{m[1]}>{NUMBER[1:]}", pattern))


Word = Annotated[
    str,
    must(
        lambda text: len(text.strip()) >= 3 and len(text) <= 80 and text.isascii(),
        "must be 3 to 80 characters of ASCII: a plain part of the line",
    ),
]


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Pattern = Annotated[str, AfterValidator(_pattern)]


class Signature(Entry):
    """One log text of an engine. `seen` has versions whose logs were read, not the first and last that print it."""

    id: Id
    kind: Kind
    engine: Id | None = None
    word: Annotated[Some[Word], BeforeValidator(_listed)]
    match: Annotated[Many[Pattern], BeforeValidator(_listed)] = ()
    unless: Pattern | None = None
    says: Id
    case: Id | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.9
    lasting: bool = False
    also: Many[Id] = ()
    seen: Label | None = None
    source: Label


class SignatureFile(Entry):
    file_name: ClassVar[str] = "signatures.yaml"
    checked_on: Date
    signatures: Many[Signature] = ()

    def problems(self) -> Iterator[Problem]:
        for i, signature in enumerate(self.signatures):
            if signature.kind in ("typed", "weak", "trap") and signature.says not in LABELS:
                yield ("signatures", i, "says"), f"says {shown(signature.says)}, which is no label"
        yield from self.twice("signatures", "id")


class StartupLine(Entry):
    """A line of a start-up log."""

    engine: Literal["vllm", "sglang", "tensorrt-llm"]
    word: Word
    match: Pattern


class StartupFigure(StartupLine):
    """A line with figures; those that are sizes are in `unit`."""

    unit: Literal["GiB", "MiB", "none"] = "GiB"
    keep: Literal["first", "last", "sum"] = "last"
    seen: Label


class StartupFile(Entry):
    file_name: ClassVar[str] = "startup_lines.yaml"
    checked_on: Date
    figures: Some[StartupFigure]
    versions: Some[StartupLine]
    settings: Some[StartupLine]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of all lines; a log line with none of them says nothing about a start."""
        return tuple(dict.fromkeys(line.word for line in (*self.figures, *self.versions, *self.settings)))

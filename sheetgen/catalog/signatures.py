"""The schemas of what a log is told by: signatures.yaml, and startup_lines.yaml, whose head says what stands there.

A signature is one text that engines print, or what such a text means, told by its parts: `word`, or one of several,
must be in the line before `match` is tried; of several patterns each must be found, in whatever order, and `unless`
must not. `<name>` in `match` stands for a number that is kept under that name. What it `says` depends on its kind:

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
    """With `<name>` as a group of that name that holds a number, and `<V>` as a version's."""
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
    """One text of an engine. `seen` are versions whose logs were read, not the first and the last that print it."""

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
    """One that says figures; those that are sizes in this unit."""

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
        """What a line holds that may say something of a start."""
        return tuple(dict.fromkeys(one.word for one in (*self.figures, *self.versions, *self.settings)))

"""Read one catalog file: strict YAML 1.2, with the line of every field.

PyYAML splits the text into events; the values are built here, so that nothing is guessed: `no`, `12:30`,
`1_000` and `2026-11-20` stay text, `8e9` is a number, `010` is ten. Refused, with file and line:
duplicate keys, anchors and aliases, tags, control characters, very long strings, deep or large files.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from sheetgen.errors import CatalogError, shown

MAX_FILE_BYTES = 1_000_000
MAX_STRING = 2_000
MAX_DEPTH = 20

Loc = tuple[str | int, ...]  # ("attention", 0, "n_kv_heads")

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/()+-]*")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # Unicode categories that do not show on a page


@dataclass(frozen=True)
class Document:
    """One file as plain data (dict, list, str, int, float, bool, None) and the line of every field."""

    where: str
    data: Any
    lines: dict[Loc, int] = field(repr=False)

    def at(self, loc: Loc) -> str:
        """`file:line` of a field; of what holds it where the field itself is not in the file.

        The file alone where no lines are known, as of an imported config.
        """
        if not self.lines:
            return self.where
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return f"{self.where}:{self.lines.get(loc, 1)}"


def read_document(path: Path, where: str | None = None) -> Document:
    """Read `path`; `where` is its name in messages."""
    name = shown(where if where is not None else path, 300)
    if path.exists() and not path.is_file():
        raise CatalogError(f"{name}: is not a file.")  # a pipe would be waited for without end
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CatalogError(f"{name}: cannot be read ({error.strerror or error}).") from error
    if len(raw) > MAX_FILE_BYTES:
        raise CatalogError(f"{name}: is larger than {MAX_FILE_BYTES:,} bytes, the most a catalog file may have.")
    return read_text(decoded(raw, name), name)


def decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CatalogError(f"{name}:{line}: is not UTF-8 text. Save it as UTF-8.") from error


def read_text(text: str, where: str) -> Document:
    """The same for text at hand."""
    builder = _Builder(where)
    try:
        events = yaml.parse(text, Loader=_LOADER)
        data = builder.document(events)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise CatalogError(f"{where}:{line}: is not valid YAML ({shown(error.problem or error, 100)}).") from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1 if isinstance(error.position, int) else 1
        raise CatalogError(f"{where}:{line}: holds a control character. Take it out.") from error
    except yaml.YAMLError as error:
        raise CatalogError(f"{where}:1: is not valid YAML ({shown(error, 100)}).") from error
    return Document(where, data, builder.lines)


def plain_value(text: str) -> Any:
    """What an unquoted scalar means in YAML 1.2's core schema, less its octal, hex, inf and nan."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) and len(text) < 40:
        return int(text)
    if _FLOAT.fullmatch(text) and len(text) < 40:
        number = float(text)
        return number if abs(number) < float("inf") else text
    return text


def scalar(value: object, plain: re.Pattern[str] = _PLAIN) -> str:
    """A scalar that reads back as this value: `plain` says what stands without quotes."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    if plain.fullmatch(text) and isinstance(plain_value(text), str) and text == text.strip():
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


class _Builder:
    """Builds plain data from parser events and notes the line of each field on the way."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.lines: dict[Loc, int] = {(): 1}

    def document(self, events: Iterator[yaml.Event]) -> Any:
        data = None
        n_documents = 0
        for event in events:
            if isinstance(event, (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent)):
                continue
            if isinstance(event, yaml.DocumentStartEvent):
                n_documents += 1
                if n_documents > 1:
                    self.refuse(event, "starts a second document (---). One file holds one entry")
                continue
            data = self.node(event, events, ())
        return data

    def refuse(self, event: yaml.Event, what: str) -> NoReturn:
        raise CatalogError(f"{self.where}:{_line(event)}: {what}.")

    def node(self, event: yaml.Event, events: Iterator[yaml.Event], loc: Loc) -> Any:
        self.lines.setdefault(loc, _line(event))
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            self.refuse(event, "uses an anchor or alias (& or *). Write the value out")
        if getattr(event, "tag", None):
            self.refuse(event, "uses a tag (!). Write a plain value")
        if len(loc) > MAX_DEPTH:
            self.refuse(event, f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(child := next(events), yaml.SequenceEndEvent):
                items.append(self.node(child, events, (*loc, len(items))))
            return items
        return self.mapping(events, loc)

    def mapping(self, events: Iterator[yaml.Event], loc: Loc) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.anchor or event.tag:
                self.refuse(event, "has a key that is not plain text")
            key = str(self.scalar(event, key=True))
            if key in found:
                first = self.lines[(*loc, key)]
                self.refuse(event, f"{shown(key)} is given twice (first on line {first}). Keep one")
            self.lines[(*loc, key)] = _line(event)
            found[key] = self.node(next(events), events, (*loc, key))
        return found

    def scalar(self, event: yaml.ScalarEvent, key: bool = False) -> Any:
        text = event.value
        if len(text) > MAX_STRING:
            self.refuse(event, f"holds a string of {len(text):,} characters; {MAX_STRING:,} is the most")
        if not text.isprintable() and any(unicodedata.category(c) in _HIDDEN and c not in "\n\t" for c in text):
            self.refuse(event, f"holds a control character in {shown(text)}. Take it out")
        is_plain = event.style is None or event.style == ""
        return plain_value(text) if is_plain and not key else text

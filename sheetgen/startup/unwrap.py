"""What wraps a line of a log: JSON objects, container runtimes, colours; and lines that were cut in pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from sheetgen.errors import escaped

_COLOURS = re.compile(
    r"\x1b\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|\x1b\[[0-?]{0,40}[ -/]{0,8}[@-~]|(?<!u001[bB])\[(?:\d{1,3};)*\d{1,3}m"
)  # the last without its escape; in JSON the escape is written \u001b, and both go once it is decoded
_CRI = re.compile(r"\d{4}-\d\d-\d\dT\S{1,40} (stdout|stderr) ([PF])(?: |$)")
_MESSAGE_KEYS = ("log", "message", "msg", "MESSAGE", "text", "textPayload", "line", "event")
_DEPTH = 3  # a container's record of an engine's JSON record of a text


class Joiner:
    """Texts of physical lines, with what was cut in pieces put together again.

    Container runtimes cut a line at 16 KiB, and a command line goes on after a backslash.
    """

    def __init__(self, longest: int, patience: int = 64) -> None:
        self._longest, self._patience = longest, patience
        self._held: dict[str, tuple[int, str, int]] = {}

    @property
    def waiting(self) -> bool:
        return bool(self._held)

    def texts(self, number: int, raw: bytes) -> Iterator[tuple[int, str]]:
        """The clean texts of one physical line, each with the number of the line where it began."""
        plain = _COLOURS.sub("", raw[: self._longest].decode("utf-8", "replace").rstrip("\r\n"))
        text, stream, cut = unwrapped(plain)
        held = self._held.pop(stream, None)
        pieces = 1
        if held is not None:
            number, text, pieces = held[0], held[1] + text, held[2] + 1
        goes_on = not cut and text.rstrip().endswith("\\")
        if (cut or goes_on) and len(text) < self._longest and pieces < self._patience:
            self._held[stream] = (number, text.rstrip().removesuffix("\\") + " " if goes_on else text, pieces)
            return
        yield from _clean(number, text)

    def rest(self) -> Iterator[tuple[int, str]]:
        """What still waits when the log ends."""
        for number, text, _ in self._held.values():
            yield from _clean(number, text)


def unwrapped(text: str) -> tuple[str, str, bool]:
    """The engine's own text, the stream it went to, and whether the line was cut in the middle."""
    stream, cut = "", False
    for _ in range(_DEPTH):
        if match := _CRI.match(text):
            stream, cut, text = match[1], match[2] == "P", text[match.end() :]
        elif (inner := _json_message(text)) is not None:
            message, key, named = inner
            stream, cut = named or stream, key == "log" and bool(named) and not message.endswith("\n")
            text = _COLOURS.sub("", message.rstrip("\n"))
        else:
            break
    return text, stream, cut


def _json_message(text: str) -> tuple[str, str, str] | None:
    """The message of a JSON record, its key, and the record's stream."""
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return None
    try:
        record = json.loads(bare)
    except (ValueError, RecursionError, MemoryError):
        return None
    for key in _MESSAGE_KEYS if isinstance(record, dict) else ():
        if isinstance(record.get(key), str):
            stream = record.get("stream")
            return record[key], key, stream if stream in ("stdout", "stderr") else ""
    return None


def _clean(number: int, text: str) -> Iterator[tuple[int, str]]:
    """Each piece of a text with line breaks (progress bars overwrite theirs), without control characters."""
    for piece in re.split(r"[\r\n]+", text):
        if piece.strip():
            yield number, escaped(piece.strip().replace("\t", " "))

"""A log as clean lines, in bounded memory: plain, .gz, UTF-8 or UTF-16, wrapped by Docker, Kubernetes or JSON."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import methodcaller
from pathlib import Path
from typing import Any, AnyStr, BinaryIO, Generic, TypeVar

from sheetgen.errors import ScenarioError, escaped, shown

Answer = TypeVar("Answer")
BLOCK = 1 << 20
LONGEST = 1 << 18  # bytes of one line; what is beyond is dropped
MOST = 4 << 30  # bytes of one log, unpacked
_FEW_WORDS = 120
_SHAPED, _MOST_SHAPES = 2048, 50_000  # the longest line that is known by its shape; shapes that are remembered
_HEX = r"(?=[0-9a-f-]{0,11}[0-9])[0-9a-f][0-9a-f-]{7,}"  # a request's name: letters only are a word
# How a line loses its digits, and its hexadecimal names.
_SHAPING: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    bytes: (methodcaller("translate", None, b"0123456789"), partial(re.compile(_HEX.encode()).sub, b"\x00")),
    str: (methodcaller("translate", dict.fromkeys(map(ord, "0123456789"))), partial(re.compile(_HEX).sub, "\x00")),
}
_GZIP = b"\x1f\x8b"
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its wrapping: where it stands in the file, what it says, and which rank says it."""

    number: int
    text: str
    rank: str = ""


@contextlib.contextmanager
def open_log(name: str) -> Iterator[BinaryIO]:
    """The bytes of a log, unpacked; `-` is stdin. Raises ScenarioError where it cannot be read."""
    called = "stdin" if name == "-" else shown(name, 200)
    try:
        with contextlib.ExitStack() as stack:
            raw: BinaryIO = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
            head = raw.read(2)
            whole = io.BufferedReader(_Chain(head, raw), BLOCK)
            yield gzip.GzipFile(fileobj=whole) if head == _GZIP else whole  # type: ignore[misc]
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or ("a damaged .gz" if not isinstance(error, OSError) else str(error))
        raise ScenarioError(f"{called}: cannot be read ({shown(reason)}).") from error


class _Chain(io.RawIOBase):
    """The first bytes of a stream, which were looked at, and then the rest: a pipe cannot be wound back."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._head or self._rest.read(len(buffer))
        self._head = b""
        buffer[: len(data)] = data
        return len(data)


def log_lines(stream: BinaryIO, words: Collection[str] = ()) -> Iterator[Line]:
    """Clean lines of `stream`; with `words` only those that hold one of them, which is much faster."""
    parts = _fewest(frozenset(words))

    def holds(raw: bytes) -> bool:
        return not parts or any(part in raw for part in parts)

    # A block without any of the words is passed over; to look for many takes longer than to look at the lines.
    by_block, passes = 0 < len(parts) <= _FEW_WORDS, ByShape(bytes, holds)
    joiner = Joiner(LONGEST)
    number = 1
    for block in _whole_lines(_blocks(stream)):
        if by_block and not joiner.waiting and not holds(block):
            number += block.count(b"\n")
            continue
        pieces = block.split(b"\n")
        for i, raw in enumerate(pieces):
            if passes(raw) or joiner.waiting:
                for at, text in joiner.texts(number + i, raw):
                    yield Line(at, text, rank_of(text))
        number += len(pieces) - 1
    for at, text in joiner.rest():
        yield Line(at, text, rank_of(text))


class ByShape(Generic[AnyStr, Answer]):
    """What `look_at` finds in a line, remembered for lines that differ in digits or long hexadecimal names alone.

    A long log says the same again and again but for its numbers. So of a word with digits the longest part without
    them is looked for (`without_digits`).
    """

    def __init__(self, kind: type[AnyStr], look_at: Callable[[AnyStr], Answer]) -> None:
        self._look_at: Callable[[AnyStr], Answer] = look_at
        self._known: dict[AnyStr, Answer] = {}
        self._bare, self._hexless = _SHAPING[kind]

    def __call__(self, line: AnyStr) -> Answer:
        if len(line) > _SHAPED:
            return self._look_at(line)
        found = self._known.get(self._bare(line))
        if found is None:
            shape = self._bare(self._hexless(line))
            found = self._known.get(shape)
            if found is None:
                found = self._look_at(line)
                if len(self._known) < _MOST_SHAPES:
                    self._known[shape] = found
        return found


def without_digits(word: str) -> str:
    """The longest part of a word without digits."""
    return max(re.split(r"\d+", word), key=len)


@lru_cache(maxsize=8)
def _fewest(words: frozenset[str]) -> tuple[bytes, ...]:
    """The words without digits and without those that hold another one."""
    plain = {without_digits(word).encode() for word in words}
    return tuple(w for w in plain if not any(other != w and other in w for other in plain))


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The stream as UTF-8, about a MiB at a time."""
    total, decoder = 0, None
    while block := stream.read(BLOCK):
        if not total:
            if block[:2] in _WIDE:
                decoder = codecs.getincrementaldecoder(_WIDE[block[:2]])("replace")
                block = block[2:]
            block = block.removeprefix(codecs.BOM_UTF8)
        total += BLOCK
        if total > MOST:
            raise ScenarioError("the log is larger than 4 GiB. Cut out the part up to the line that says it is ready.")
        yield decoder.decode(block).encode("utf-8", "replace") if decoder else block


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks that end where a line ends; of an endless line only its beginning."""
    rest, overlong = b"", False
    for block in blocks:
        end = block.rfind(b"\n")
        if end < 0:
            overlong = overlong or len(rest) + len(block) > LONGEST
            rest = (rest + block[: max(0, LONGEST - len(rest))])[:LONGEST] if overlong else rest + block
            continue
        if overlong:
            first = block.find(b"\n")
            rest, block, end = rest + b"\n", block[first + 1 :], end - first - 1
        yield rest + block[: end + 1]
        rest, overlong = block[end + 1 :], False
    if rest:
        yield rest


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


# (Worker_TP0_EP0 pid=770)  (VllmWorker rank=1 pid=7)  (VllmWorkerProcess pid=9)  (EngineCore_DP0 pid=5)
_VLLM = re.compile(r"\((?:Vllm|Ray)?(Worker|EngineCore)(\w{0,40})(?: rank=(\d{1,4}))?(?: pid=(\d{1,10}))?[,)]")
# [2025-03-08 12:29:21 TP1]  [2026-09-11 23:34:13 DP0 TP0 EP0]
_SGLANG = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d((?: [A-Z]{2,8}\d{1,4}){1,6})\]")
# [TRT-LLM] [RANK 1] [I]  [1,3]<stdout>:
_MPI = re.compile(r"\[RANK (\d{1,4})\]|\[\d,(\d{1,4})\]<std")
_PLACE = re.compile(r"(?:TP|PP|DP|EP|CP)\d{1,4}")


def rank_of(text: str) -> str:
    """`TP1`, `PP0 TP1`, `rank 3`, `process 770`; empty where a line names none."""
    head = text[:300]
    if match := _VLLM.search(head):
        places = _PLACE.findall(match[2])
        if places:
            return " ".join(places)
        if match[3]:
            return f"rank {match[3]}"
        return f"process {match[4]}" if match[1] == "Worker" and match[4] else ""
    if match := _SGLANG.search(head):
        return match[1].strip()
    if match := _MPI.search(head):
        return f"rank {match[1] or match[2]}"
    return ""

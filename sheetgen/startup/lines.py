"""A log as clean lines, in bounded memory: plain, .gz, UTF-8 or UTF-16, wrapped by Docker, Kubernetes or JSON."""

from __future__ import annotations

import codecs
import contextlib
import functools
import gzip
import io
import re
import sys
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sheetgen.errors import ScenarioError, shown
from sheetgen.startup.ranks import rank_of
from sheetgen.startup.unwrap import Joiner

BLOCK = 1 << 20
LONGEST = 1 << 18  # bytes of one line; what is beyond is dropped
MOST = 4 << 30  # bytes of one log, unpacked
_DIGITS = b"0123456789"
HEX = r"(?=[0-9a-f-]{0,11}[0-9])[0-9a-f][0-9a-f-]{7,}"  # a request's name: letters only are a word
_HEX = re.compile(HEX.encode())
_SHAPED = 2048  # bytes of a line that is told by its shape
_MOST_SHAPES = 50_000
_FEW_WORDS = 120
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
    sieve = _Sieve(words)
    joiner = Joiner(LONGEST)
    number = 1
    for block in _whole_lines(_blocks(stream)):
        if not joiner.waiting and not sieve.may_pass(block):
            number += block.count(b"\n")
            continue
        pieces = block.split(b"\n")
        for i, raw in enumerate(pieces):
            if sieve.passes(raw) or joiner.waiting:
                for at, text in joiner.texts(number + i, raw):
                    yield Line(at, text, rank_of(text))
        number += len(pieces) - 1
    for at, text in joiner.rest():
        yield Line(at, text, rank_of(text))


class _Sieve:
    """Which lines may hold one of the words.

    A long log says the same again and again but for its numbers: lines that differ in digits (or in long hexadecimal
    names) alone are looked at once. So of a word with digits the longest part without them is looked for.
    """

    def __init__(self, words: Collection[str]) -> None:
        self._words = _fewest(frozenset(words))
        self._known: dict[bytes, bool] = {b"": not words}

    def may_pass(self, block: bytes) -> bool:
        """A block without any of the words; to look for many takes longer than to look at the lines."""
        return not 0 < len(self._words) <= _FEW_WORDS or self._holds(block)

    def passes(self, raw: bytes) -> bool:
        if not self._words or len(raw) > _SHAPED:
            return not self._words or self._holds(raw)
        shape = raw.translate(None, _DIGITS)
        known = self._known.get(shape)
        return self._look_at(raw, shape) if known is None else known

    def _look_at(self, raw: bytes, shape: bytes) -> bool:
        bare = _HEX.sub(b"\x00", raw).translate(None, _DIGITS)
        known = self._known.get(bare) if bare != shape else None
        if known is None:
            known = self._holds(raw)
            if len(self._known) < _MOST_SHAPES:
                self._known[bare] = known
        return known

    def _holds(self, raw: bytes) -> bool:
        return any(word in raw for word in self._words)


@functools.lru_cache(maxsize=8)
def _fewest(words: frozenset[str]) -> tuple[bytes, ...]:
    """The words without digits and without those that hold another one."""
    plain = {max(re.split(rb"[0-9]+", word.encode()), key=len) for word in words}
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

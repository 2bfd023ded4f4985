"""A log as clean lines, in bounded memory: plain, .gz, UTF-8 or UTF-16, wrapped by Docker, Kubernetes or JSON."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import json
import re
import sys
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import methodcaller
from pathlib import Path
from typing import Any, AnyStr, BinaryIO, Generic, TypeVar

from sheetgen.catalog.base import RawRecord
from sheetgen.errors import ScenarioError, escaped, shown
from sheetgen.input_files import open_input
from sheetgen.units import MIB

Answer = TypeVar("Answer")
BLOCK = 1 << 20
LONGEST = 1 << 18  # bytes of one line; the rest is dropped
_HEAD = 1 << 16  # bytes that are looked at for binary data
_BINARY_SHARE = 0.05
MOST = 4 << 30  # bytes of one log, unpacked
_FREE_SECONDS, _SECONDS_PER_BYTE = 40.0, 100e-9  # CPU seconds that any log may take, and more by its length
_LOOKED_UP = 1000  # lines between two checks of the clock
_GRAM = 4  # letters of a word that are searched first
_LONG = 1000  # characters; in longer lines a search for every word is faster than one by grams
_SHAPED, _MOST_SHAPES = 2048, 50_000  # characters of the longest line cached by its shape; the most cached shapes
_HEX = r"(?=[0-9a-f-]{0,11}[0-9])[0-9a-f][0-9a-f-]{7,}"  # a request's id, which has a digit; letters alone are a word
# By type, the functions that remove the digits and the hexadecimal ids of a line.
_SHAPING: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    bytes: (methodcaller("translate", None, b"0123456789"), partial(re.compile(_HEX.encode()).sub, b"\x00")),
    str: (methodcaller("translate", dict.fromkeys(map(ord, "0123456789"))), partial(re.compile(_HEX).sub, "\x00")),
}
_GZIP = b"\x1f\x8b"
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its wrapping: its number in the file, its text, and the rank that printed it."""

    number: int
    text: str
    rank: str = ""


class LogError(ValueError):
    """A log is no text, or takes too long; `open_log` puts its name before the message."""


@contextlib.contextmanager
def open_log(name: str) -> Iterator[BinaryIO]:
    """A stream of a log's bytes, unpacked; `-` is stdin. Raises ScenarioError where it cannot be read or is no text,
    and for a LogError raised while it is open."""
    called = "stdin" if name == "-" else shown(name, 200)
    if name == "-" and sys.stdin is None:
        raise ScenarioError("stdin: is closed. Name a file, or pipe it: docker logs vllm 2>&1 | sheetgen diagnose -")
    try:
        raw: Any = sys.stdin.buffer if name == "-" else open_input(Path(name), pipes=True)
    except ValueError as error:
        raise ScenarioError(f"{called}: {error}.") from error
    try:
        with contextlib.ExitStack() as stack:
            if name != "-":
                stack.enter_context(raw)
            whole = io.BufferedReader(raw, BLOCK)
            stack.callback(whole.detach)  # stdin stays open
            unpacked: Any = gzip.GzipFile(fileobj=whole) if whole.peek(2)[:2] == _GZIP else whole
            _check_is_text(unpacked.peek(_HEAD)[:_HEAD])
            yield unpacked
    except LogError as error:
        raise ScenarioError(f"{called}: {error}") from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or ("a damaged .gz" if not isinstance(error, OSError) else str(error))
        raise ScenarioError(f"{called}: cannot be read ({shown(reason)}).") from error


def _check_is_text(head: bytes) -> None:
    """Raise LogError for binary data, and for UTF-16 without a byte order mark, in which every other byte is 0."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return
    noughts = head[::2].count(0), head[1::2].count(0)
    if min(noughts) < 0.2 * len(head) / 2 and 0.8 * len(head) / 2 <= max(noughts) and len(head) > 3:
        order = "le" if head[1::2].count(0) > head[::2].count(0) else "be"
        cure = f"Convert it: iconv -f utf-16{order} -t utf-8."
        raise LogError(f"is UTF-16 without its mark. {cure}")
    odd = sum(head.count(bytes([code])) for code in range(32) if code not in b"\t\n\v\f\r\x1b\x08")
    if odd > _BINARY_SHARE * len(head):
        raise LogError("is no text but binary data. Give the engine's log, plain or as .gz.")


def blocks_of(stream: BinaryIO) -> Iterator[bytes]:
    """The content of a stream in blocks of a MiB."""
    return iter(partial(stream.read, BLOCK), b"")


def log_lines(blocks: Iterable[bytes], words: Collection[str] = ()) -> Iterator[Line]:
    """The clean lines of `blocks`; with `words` only those that contain one of them, which is much faster.

    Lines that container runtimes cut at 16 KiB, and command lines continued after a backslash, are rejoined.
    """
    passes, work = ByShape(bytes, _search_of(frozenset(words)).finds), _Work()
    number = 1
    held: dict[str, tuple[int, str, int]] = {}  # incomplete lines by stream: first line's number, text, pieces
    for block in _whole_lines(_in_utf_8(blocks)):
        work.n_bytes += len(block)
        for line_number, raw in enumerate(block.removesuffix(b"\n").split(b"\n"), number):
            if line_number % _LOOKED_UP == 0:
                work.check(line_number)
            if not held and not (raw and passes(raw)):
                continue
            plain = _COLOURS.sub("", raw[:LONGEST].decode("utf-8", "replace").rstrip("\r\n"))
            piece, source, is_cut = unwrapped(plain)
            began, before, n_pieces = held.pop(source, (line_number, "", 1))
            text = before + piece
            goes_on = not is_cut and text.rstrip().endswith("\\")
            if (is_cut or goes_on) and len(text) < LONGEST and n_pieces < _MOST_PIECES:
                held[source] = (began, text.rstrip().removesuffix("\\") + " " if goes_on else text, n_pieces + 1)
            else:
                yield from _clean(began, text)
        number += block.count(b"\n")
    for began, text, _ in held.values():
        yield from _clean(began, text)


class _Work:
    """Limits the CPU time that a log takes: one that is built to take hours is refused, with the line reached."""

    def __init__(self) -> None:
        self._began, self.n_bytes = time.process_time(), 0

    def check(self, line_number: int) -> None:
        if time.process_time() - self._began > _FREE_SECONDS + _SECONDS_PER_BYTE * self.n_bytes:
            where = f"line {line_number:,} ({self.n_bytes / MIB:,.0f} MiB)"
            raise LogError(
                f"was read as far as {where}: its lines take longer than those of a log may. "
                "Cut out the part from the engine's start to its error."
            )


class Search:
    """Tells if one of many words is in a line, by the rarest four letters of each word first; every line for none."""

    def __init__(self, words: Collection[bytes]) -> None:
        self._words = words
        self._short = [word for word in words if len(word) < _GRAM]
        self._by_gram: dict[bytes, list[bytes]] = {}
        for word in words:
            if len(word) >= _GRAM:
                self._by_gram.setdefault(_rarest_gram(word), []).append(word)

    def finds(self, line: bytes) -> bool:
        if not self._words or len(line) > _LONG:
            return not self._words or any(word in line for word in self._words)
        grams = self._by_gram.keys() & {line[i : i + _GRAM] for i in range(len(line) - _GRAM + 1)}
        return any(word in line for word in (*self._short, *(w for gram in grams for w in self._by_gram[gram])))


@lru_cache(maxsize=8)  # every log is read for the same words
def _search_of(words: frozenset[str]) -> Search:
    """The search for the words without digits, and without those that contain another."""
    plain = {without_digits(word).encode() for word in words}
    return Search([w for w in plain if not any(other != w and other in w for other in plain)])


_COMMON = b" etaoinsrlhdcumfpgybwvkxzjq"  # letters by their frequency in logs; all others are rarer


def _rarest_gram(word: bytes) -> bytes:
    """The rarest consecutive letters of a word."""
    rank = [frequency if (frequency := _COMMON.find(letter)) >= 0 else len(_COMMON) for letter in word]
    begin = max(range(len(rank) - _GRAM + 1), key=lambda begin: sum(rank[begin : begin + _GRAM]))
    return word[begin : begin + _GRAM]


class ByShape(Generic[AnyStr, Answer]):
    """Calls `look_at` for a line, and caches its result for lines that differ only in digits or hexadecimal ids.

    Long logs repeat lines with other numbers. `look_at` must therefore search words without their digits
    (`without_digits`).
    """

    def __init__(self, kind: type[AnyStr], look_at: Callable[[AnyStr], Answer]) -> None:
        self._look_at: Callable[[AnyStr], Answer] = look_at
        self._answers: dict[AnyStr, Answer] = {}
        self._bare, self._hexless = _SHAPING[kind]

    def __call__(self, line: AnyStr) -> Answer:
        if len(line) > _SHAPED:
            return self._look_at(line)
        answer = self._answers.get(self._bare(line))
        if answer is None:
            shape = self._bare(self._hexless(line))
            answer = self._answers.get(shape)
            if answer is None:
                answer = self._look_at(line)
                if len(self._answers) < _MOST_SHAPES:
                    self._answers[shape] = answer
        return answer


@lru_cache(maxsize=4096)  # the words of code and catalogs, for every log anew
def without_digits(word: str) -> str:
    """The longest part of a word without digits."""
    return max(re.split(r"\d+", word), key=len)


def _in_utf_8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks in UTF-8 without a byte order mark. Raises LogError after MOST bytes."""
    total, decoder = 0, None
    for block in blocks:
        if not total:
            if block[:2] in _WIDE:
                decoder = codecs.getincrementaldecoder(_WIDE[block[:2]])("replace")
                block = block[2:]
            block = block.removeprefix(codecs.BOM_UTF8)
        total += len(block)
        if total > MOST:
            raise LogError("is larger than 4 GiB. Cut out the part up to the line that says it is ready.")
        yield decoder.decode(block).encode("utf-8", "replace") if decoder else block


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks that end at a line's end; overlong lines are cut."""
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
)  # the last form lacks its escape; in JSON it is written \u001b, and both are removed after decoding
_CRI = re.compile(r"\d{4}-\d\d-\d\dT\S{1,40} (stdout|stderr) ([PF])(?: |$)")
_MESSAGE_KEYS = ("log", "message", "msg", "MESSAGE", "text", "textPayload", "line", "event")
_DEPTH = 3  # nested records: a container's record of an engine's JSON record of a text
_MOST_PIECES = 64  # of one line


def unwrapped(text: str) -> tuple[str, str, bool]:
    """The engine's own text in a line, its stream (stdout, stderr or ""), and whether the line was cut."""
    stream, is_cut = "", False
    for _ in range(_DEPTH):
        if match := _CRI.match(text):
            stream, is_cut, text = match[1], match[2] == "P", text[match.end() :]
            continue
        record = _json_record(text.strip())
        key = next((key for key in _MESSAGE_KEYS if isinstance(record.get(key), str)), None)
        if key is None:
            break
        message, named = record[key], record.get("stream") in ("stdout", "stderr")
        stream = record["stream"] if named else stream
        is_cut = key == "log" and named and not message.endswith("\n")
        text = _COLOURS.sub("", message.rstrip("\n"))
    return text, stream, is_cut


def _json_record(text: str) -> RawRecord:
    """The JSON object on a line; empty for any other text."""
    try:
        record = json.loads(text) if text.startswith("{") and text.endswith("}") else None
    except (ValueError, RecursionError, MemoryError):
        return {}
    return record if isinstance(record, dict) else {}


def _clean(number: int, text: str) -> Iterator[Line]:
    """The lines of a text, of which progress bars make several, without control characters."""
    for piece in re.split(r"[\r\n]+", text):
        if piece.strip():
            plain = escaped(piece.strip().replace("\t", " "))
            yield Line(number, plain, rank_of(plain))


# (Worker_TP0_EP0 pid=770)  (VllmWorker rank=1 pid=7)  (VllmWorkerProcess pid=9)  (EngineCore_DP0 pid=5)
_VLLM = re.compile(r"\((?:Vllm|Ray)?(Worker|EngineCore)(\w{0,40})(?: rank=(\d{1,4}))?(?: pid=(\d{1,10}))?[,)]")
# [2025-03-08 12:29:21 TP1]  [2026-09-11 23:34:13 DP0 TP0 EP0]
_SGLANG = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d((?: [A-Z]{2,8}\d{1,4}){1,6})\]")
# [TRT-LLM] [RANK 1] [I]  [1,3]<stdout>:
_MPI = re.compile(r"\[RANK (\d{1,4})\]|\[\d,(\d{1,4})\]<std")
_PLACE = re.compile(r"(?:TP|PP|DP|EP|CP)\d{1,4}")


def rank_of(text: str) -> str:
    """The rank in a line: `TP1`, `PP0 TP1`, `rank 3`, `process 770`; empty for none."""
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

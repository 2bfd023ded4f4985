"""A log of any size -> facts, in one pass and bounded memory; the start-up reader gets the same lines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.signatures import Signature
from sheetgen.diagnose import prose
from sheetgen.diagnose.log_facts import USAGE_WORDS, WORDS, Facts, Matcher
from sheetgen.errors import ScenarioError, shown
from sheetgen.startup.log_lines import blocks_of, log_lines, open_log, unwrapped
from sheetgen.startup.startup_log import read_lines, startup_words

_SURE = ("weak", "oom", "trap", "typed")  # kinds of messages, the surest last
# Users' texts may contain any engine's error, and are most of a long log. They are removed before anything is searched;
# where a block boundary splits a line, the matcher removes the rest.
_OF_USERS = (b"Received request", b"Generated response", b"Receive: obj=", b"Finish: obj=")
_USERS_TEXT = re.compile(
    rb"((?:Received request|Generated response)[^\n]{0,200}?(?:\bprompt: ?|\boutput: ?)[\"'{\[]"
    rb"|(?:Receive|Finish): obj=)[^\n]{2,}"
)
MOST = 1 << 16  # bytes of the longest log that is read again with its lines rejoined
_SHORTEST = 30  # characters of the shortest line that may have been broken by a display's width
_QUOTED = re.compile(r"^(?:[>▎│|] ?)+")
# The beginning of a log line; any other line may be the rest of the one above.
_BEGINS = re.compile(
    r"\s(?![a-z\d(])|\((?!\d)|[\[{#*<$\\'\"`-]|\d{4}[-/]\d\d|\d{1,2}[:.]\d\d|[A-Z]\d{4}\b|time=|Traceback|File \""
    r"|\w+(?:\.\w+)*(?:Error|Exception)\b|(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL|FATAL|TRACE)\b"
    r"|[\w./-]{1,40}[:|] |[\w.-]{1,40} +\| "
)
# Sentences of torch's message that some programs print on lines of their own.
_OF_THE_SAME = re.compile(r"(?:Tried to allocate|GPU \d+ has a total|Including non-PyTorch|Of the allocated|and \d)")
_GOES_ON = re.compile(r"[\w,(=+/`-]$")


def read(name: str, signatures: Sequence[Signature], catalog: Catalog) -> Facts:
    """The facts of the log called `name` (`-`: stdin). Raises ScenarioError where it is empty or no text."""
    called = "stdin" if name == "-" else str(shown(name, 200))
    words = {*startup_words(catalog), *USAGE_WORDS, *WORDS, *(word for s in signatures for word in s.word)}

    def read_facts(blocks: Iterable[bytes]) -> Facts:
        matcher = Matcher(signatures, catalog)
        facts, lines = matcher.facts, map(matcher.take, log_lines(map(_without_users_text, blocks), words))
        facts.startup = read_lines((line for line in lines if line is not None), catalog, lambda: facts.n_runs)
        return facts

    with open_log(name) as raw:
        head = raw.read(MOST + 1)
        is_short = len(head) <= MOST
        facts = read_facts(itertools.chain([head], () if is_short else blocks_of(raw)))
    facts.is_text = is_short and prose.is_text(head.decode("utf-8", "replace"))
    if not head:
        raise ScenarioError(f"{called}: is empty. Give the log of a serving engine, with what was printed to stderr.")
    for text in rejoined(head) if is_short else ():
        again = read_facts([text])
        again.is_text = facts.is_text
        if _sureness(again) > _sureness(facts):
            return again
    return facts


def _sureness(facts: Facts) -> tuple[int, int]:
    """The rank of the best kind of message and the number of amounts, by which readings of one log are compared."""
    failures = [failure for run in facts.runs for failure in run.failures]
    kinds = {failure.match.signature.kind for failure in failures}
    return max((_SURE.index(kind) for kind in kinds), default=-1), sum(len(failure.amounts) for failure in failures)


def _without_users_text(block: bytes) -> bytes:
    return _USERS_TEXT.sub(rb"\1", block) if any(word in block for word in _OF_USERS) else block


def _goes_on(line: str) -> bool:
    return bool(line) and not _BEGINS.match(line)


def rejoined(data: bytes) -> Iterator[bytes]:
    """The text with broken lines rejoined, once with a space and once without; nothing if no line looks broken.

    A rejoined line is at the place of its first part; empty lines keep the numbers of the others.
    """
    cut = [_QUOTED.sub("", unwrapped(line)[0]) for line in data.decode("utf-8", "replace").splitlines()]
    lines = [line.rstrip() for line in cut]
    broken = {
        i
        for i in range(1, len(lines))
        if _OF_THE_SAME.match(lines[i])
        or (len(lines[i - 1]) >= _SHORTEST and _GOES_ON.search(lines[i - 1]) and _goes_on(lines[i]))
    }
    for between, pieces in ((" ", lines), ("", cut)) if broken else ():
        joined = list(pieces)
        for i in sorted(broken, reverse=True):
            joined[i - 1] += between + joined[i]
            joined[i] = ""
        yield "\n".join(joined).encode()

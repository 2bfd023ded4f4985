"""Lines that a terminal, a chat or a form broke in two, put together again: for short logs, as people paste them."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST = 1 << 16  # bytes of a log that is looked at again
_SHORTEST = 30  # characters of a line that a width may have cut
_QUOTED = re.compile(r"^(?:[>▎│|] ?)+")
# How a line of a log begins; what begins otherwise may be the rest of the line above.
_BEGINS = re.compile(
    r"\s(?![a-z\d(])|\((?!\d)|[\[{#*<$\\'\"`-]|\d{4}[-/]\d\d|\d{1,2}[:.]\d\d|[A-Z]\d{4}\b|time=|Traceback|File \""
    r"|\w+(?:\.\w+)*(?:Error|Exception)\b|(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL|FATAL|TRACE)\b"
    r"|[\w./-]{1,40}[:|] |[\w.-]{1,40} +\| "
)
_GOES_ON = re.compile(r"[\w,(=+/`-]$")


def rejoined(data: bytes) -> Iterator[bytes]:
    """The text with what was broken joined, by a space and as it stands; nothing where no line looks broken.

    What was joined stands where its first line stood, and empty lines keep the numbers of the rest.
    """
    cut = [_QUOTED.sub("", line) for line in data.decode("utf-8", "replace").splitlines()]
    lines = [line.rstrip() for line in cut]
    broken = {
        i
        for i in range(1, len(lines))
        if len(lines[i - 1]) >= _SHORTEST and lines[i] and _GOES_ON.search(lines[i - 1]) and not _BEGINS.match(lines[i])
    }
    for between, pieces in ((" ", lines), ("", cut)) if broken else ():
        joined = list(pieces)
        for i in sorted(broken, reverse=True):
            joined[i - 1] += between + joined[i]
            joined[i] = ""
        yield "\n".join(joined).encode()

"""The family of errors that a user can cause and mend.

SheetgenError                 one or more problems, one line each
├── CatalogError              a catalog file is wrong, a name is not in the catalogs, or a brand's file is wrong
│   └── UnknownNameError      a name is in no catalog
├── ScenarioError             the question asked cannot be put (a bad context, tier, option)
├── PageError                 the answer does not fit on the page
├── WorkbookError             a workbook, or the JSON of one, cannot be read back (sheetgen.readback)
├── MailError                 a message cannot be made or sent (sheetgen.mail)
└── MissingLibraryError       a system library that the PDF needs is not installed

The command line prints `problems`, one a line, and exits 1. Anything else is a bug and keeps its traceback.
"Does not fit" is not here: it is a verdict, and it is drawn on the sheet.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

MOST_FILES = 10_000  # of a folder that are looked at for the file that was meant


class SheetgenError(Exception):
    """Problems that the user can mend. `problems` holds one full sentence each."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class CatalogError(SheetgenError):
    """A catalog file does not say what it must, or a name is in no catalog."""


class UnknownNameError(CatalogError):
    """A name is in no catalog; `near`: a sentence on what it could have meant, or nothing."""

    def __init__(self, problem: str, near: str) -> None:
        super().__init__(problem)
        self.near = near


class ScenarioError(SheetgenError):
    """The question asked cannot be put."""


class PageError(SheetgenError):
    """The answer does not fit on the page it must fit on."""


class MissingLibraryError(SheetgenError):
    """A system library is missing; the message says what to install."""


class Problems(list[str]):
    """The problems of several parts, gathered to be raised together."""

    def attempt(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `make`; None where it raises, and its problems are kept."""
        try:
            return make(*arguments)
        except SheetgenError as error:
            self.extend(error.problems)
            return None


# What engines and other tools call an option.
ELSEWHERE = {
    "batch_size": "concurrent_requests",
    "concurrency": "concurrent_requests",
    "cloud": "providers",
    "ctx": "context_tokens",
    "dp": "data_parallel_size",
    "dtype": "weight_dtype",
    "kv_dtype": "kv_cache_dtype",
    "pp": "pipeline_parallel_size",
    "precision": "weight_dtype",
    "qps": "requests_per_second",
    "quant": "weight_dtype",
    "quantization": "weight_dtype",
    "rate": "requests_per_second",
    "rps": "requests_per_second",
    "tp": "tensor_parallel_size",
}


MEANT, MOST_MEANT = " Did you mean {}?", 3
A_TYPO = 2  # letters that are left out of a word


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """`MEANT` for what other tools call so, for those of `allowed` that begin so, where they are few, or for the
    nearest; nothing where none is near."""
    spelled = {one.lower(): one for one in allowed}
    if (meant := ELSEWHERE.get(word.lower(), "")) in spelled:
        return MEANT.format(spelled[meant])
    near = [spelled[name] for name in spelled if len(word) > 2 and name.startswith(word.lower())]
    near.sort(key=len)
    if near and len(near[0]) <= len(word) + A_TYPO:
        near = near[:1]
    if not 0 < len(near) <= MOST_MEANT:
        near = [spelled[name] for name in _nearest(word.lower(), spelled)]
    return MEANT.format(" or ".join(near)) if near else ""


def _nearest(word: str, allowed: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The most similar of `allowed`; of those that are equally so and begin alike, as reserved-1yr and reserved-3yr,
    all."""
    import difflib

    likeness = {name: difflib.SequenceMatcher(None, name, word).ratio() for name in allowed}
    most = max(likeness.values(), default=0.0)
    near = [name for name, ratio in likeness.items() if ratio == most >= cutoff]
    return near[:MOST_MEANT] if len({name[:4] for name in near}) == 1 else near and [max(near)]


class _Shown(str):
    """Text that is escaped already: its repr only adds the quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        quote = '"' if "'" in self else "'"
        return f"{quote}{self}{quote}"


def shown(text: object, limit: int = 60) -> str:
    """`text` made safe to print: control characters escaped, and cut at `limit` characters.

    In a message `{shown(text)!r}` is the same in quotes, not escaped once more.
    """
    return _Shown(cut(escaped(str(text)), limit))


def cut(text: str, most: int) -> str:
    """`text`, of which so many characters stay at most."""
    return text if len(text) <= most else text[: most - 1] + "…"


def as_stated(value: object) -> str:
    """A value of a file as a message repeats it: text in quotes, all else without."""
    return repr(shown(value)) if isinstance(value, str) else shown(value)


def unreadable(error: Exception) -> str:
    """The words that a file cannot be read, with the system's reason; of one that is not there with the file beside it
    that has the nearest name."""
    near = _file_like(str(error.filename)) if isinstance(error, FileNotFoundError) and error.filename else ""
    there = f"; {shown(near)} is there" if near else ""
    return f"cannot be read ({shown(getattr(error, 'strerror', None) or error)}{there})"


def _file_like(path: str) -> str:
    """The name in the folder of `path` that differs from its own by the ending alone, or is nearest to it; "" where
    none is near."""
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
        names = sorted(entry.name for entry in itertools.islice(entries, MOST_FILES))
        same = [other for other in names if Path(other).stem == Path(name).stem]
        return next(iter(same or _nearest(name, names, 0.75)), "")
    return ""


def shown_key(key: object) -> str:
    """A file's key, as a message may repeat it. What has a colon is a line of a file of another kind, such as
    /etc/shadow, and its text stays out."""
    return shown("with a colon" if ":" in str(key) else key)


def escaped(text: str) -> str:
    """`text` with every character that a terminal could obey, line breaks too, written out as `\\x1b`."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)

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

from collections.abc import Callable, Iterable
from typing import Any


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


MEANT = " Did you mean {}?"


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """`MEANT` for what other tools call so, or the nearest of `allowed`; nothing where none is near."""
    import difflib

    spelled = {one.lower(): one for one in allowed}
    if (meant := ELSEWHERE.get(word.lower(), "")) in spelled:
        return MEANT.format(spelled[meant])
    near = difflib.get_close_matches(word.lower(), spelled, n=1, cutoff=0.6)
    return MEANT.format(spelled[near[0]]) if near else ""


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
    """The words that a file cannot be read, with the system's reason."""
    return f"cannot be read ({shown(getattr(error, 'strerror', None) or error)})"


def shown_key(key: object) -> str:
    """A file's key, as a message may repeat it. What has a colon is a line of a file of another kind, such as
    /etc/shadow, and its text stays out."""
    return shown("with a colon" if ":" in str(key) else key)


def escaped(text: str) -> str:
    """`text` with every character that a terminal could obey, line breaks too, written out as `\\x1b`."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)

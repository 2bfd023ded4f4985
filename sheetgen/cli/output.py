"""Output of the commands: results on stdout, notes on a terminal's stderr, files whole or not at all."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import sys
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sheetgen.errors import MissingLibraryError, ScenarioError, escaped, shown

if TYPE_CHECKING:
    from sheetgen.answer.answer_record import CellRecord
    from sheetgen.brand import Brand
    from sheetgen.question.sheet_question import Question

LEAST_COLUMNS = 40
_LEAST_CELL = 24  # columns of a table's last cell that is folded; a narrower one is hard to read


_LOOKS_LIKE = {
    "×": "x", "–": "-", "—": "-", "−": "-", "·": ".", "─": "-", "│": "|", "├": "|", "└": "`", "→": "->", "←": "<-",
    "↓": "down", "↑": "up", "✓": "yes", "✗": "no", "≥": ">=", "≤": "<=", "≈": "~", "±": "+-", "’": "'", "‘": "'",
    "“": '"', "”": '"', "€": "EUR", "£": "GBP", "¥": "JPY", "ß": "ss",
}  # fmt: skip
_NEAREST = "sheetgen.nearest"


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """Plain letters for those that a stream cannot encode: similar ones, else without accents, else a question mark."""
    import unicodedata

    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = [
        _LOOKS_LIKE.get(letter) or unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"
        for letter in error.object[error.start : error.end]
    ]
    return "".join(letters), error.end


def take_any_text() -> None:
    """From now on stdout and stderr accept every character, whatever their encoding."""
    codecs.register_error(_NEAREST, _nearest)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # closed, or no stream of text
            stream.reconfigure(errors=_NEAREST)  # type: ignore[union-attr]


CALLED_AS = "SHEETGEN_CALLED_AS"  # in the environment: the command of those that call it by another, as `run` does
_COMMAND = re.compile(r"(^ *|`|\| )sheetgen (?=[a-z]|COMMAND)", re.MULTILINE)


def program() -> str:
    """The command as it was called: `sheetgen`, or `./run` in a clone."""
    return os.environ.get(CALLED_AS) or "sheetgen"


def as_called(text: str) -> str:
    """A help or a message whose commands can be pasted: `./run build` in a clone, for `sheetgen build`."""
    return _COMMAND.sub(lambda match: f"{match[1]}{program()} ", text)


def print_text(text: str, err: bool = False) -> None:
    """Print `text` unchanged. The stream is named, as click would write UTF-8 to one that is ASCII."""
    if (stream := sys.stderr if err else sys.stdout) is not None:
        click.echo(text, file=stream, nl=False)


def columns() -> int:
    """The terminal's width; in a pipe the value of COLUMNS, else 80."""
    import shutil

    return max(LEAST_COLUMNS, shutil.get_terminal_size().columns)


def say(text: str, err: bool = False, verbatim: bool = False) -> None:
    """Print lines for a person: no control character in them, from a user's text or a catalog, reaches the terminal.

    They keep to its width, unless they are to be pasted (`verbatim`) or are errors, of which each is one line.
    """
    lines = map(escaped, (as_called(text) if err else text).split("\n"))
    print_text("\n".join(lines if err or verbatim else map(folded, lines)) + "\n", err)


def say_measured(question: Question, cells: Sequence[CellRecord] = (), err: bool = False) -> None:
    """Say which measured points set times of an answer, and which were read and set none; nothing where none was given.
    cells: the answers, of which one may rent what was measured."""
    from sheetgen.report.measured_words import measured_lines

    if lines := list(measured_lines(question.measurements, [cell for cell in cells if cell.chosen])):
        say("\n".join(lines if err else ("", *lines)), err=err)


def folded(line: str, width: int | None = None) -> str:
    """A line broken between words where it is wider than the terminal (or `width`); its continuation is indented."""
    width = width or columns()
    if len(line) <= width:
        return line
    words = line.lstrip(" ") if line[0] == " " else line.removeprefix("# ")  # of a comment every line is one
    start = line[: len(line) - len(words)][: width // 2]
    return _filled(words, start, f"{start}  ", width)


def _filled(words: str, first: str, rest: str, width: int) -> str:
    """Words in lines of a width that begin with these."""
    import textwrap

    return textwrap.fill(
        words, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def print_json(value: object) -> None:
    """Print the result and nothing else on stdout; in ASCII where stdout cannot encode one of its letters."""
    from sheetgen.writers.formats import json_text

    text = json_text(value)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json_text(value, in_ascii=True)
    print_text(text)


def answer(as_json: bool, record: object, words: Callable[[], str]) -> None:
    """Print the result: its record as JSON, or its words."""
    if as_json:
        print_json(record)
    else:
        say(words())


def note(message: str, quiet: bool = False) -> None:
    """Print a remark for a person who watches: on stderr, and only on a terminal."""
    if not quiet and sys.stderr is not None and sys.stderr.isatty():
        say(message, err=True)


def warn_of_letters(question: Question, files: Collection[str], brand: Brand | None, quiet: bool = False) -> None:
    """Say on stderr which letters of the page's head its drawn formats (among `files`) lack and print as `?`."""
    from sheetgen.writers.formats import templates_folder
    from sheetgen.writers.layout import FONTS, undrawable

    if quiet or "pdf" not in files:
        return
    heads = {name: str(question.options.get(name) or "") for name in ("title", "owner", "approver")}
    heads |= {"brand": brand.name} if brand else {}
    for name, text in heads.items():
        if lacks := undrawable(text, templates_folder() / "fonts" / FONTS[400]):
            problem = f"{name} is {shown(text)!r}: the PDF's font lacks {shown(' '.join(lacks))} and has ? there"
            say(f"{problem}. The workbook, HTML and Markdown have them.", err=True)


_STEPS = [""]  # what is done now, in words
FIRST_SECONDS, NEXT_SECONDS = 2.0, 5.0


def step(words: str) -> None:
    """Set the words for the next step of the command, which a waiting person is shown."""
    _STEPS[0] = words


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[None]:
    """While the work runs, print a line for a person who watches, after two seconds and then every five."""
    import threading
    import time

    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    step("working")
    began, ended = time.monotonic(), threading.Event()

    def tell() -> None:
        wait = FIRST_SECONDS
        while not ended.wait(wait):
            say(f"{_STEPS[0]} ... {time.monotonic() - began:.0f} s", err=True)
            wait = NEXT_SECONDS

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def warn(question: Question, quiet: bool = False) -> None:
    """Say on stderr what part of a question is out of the known range: the engine's version, the day of prices."""
    from sheetgen.question.parse import as_of_date
    from sheetgen.report.page import day_of
    from sheetgen.sizing.parallelism import ZONE

    if quiet:
        return
    if question.engine.caution and question.options.get("engine_version"):
        say(question.engine.caution, err=True)
    for remark in question.fp8_remarks:
        say(remark, err=True)
    days = [day for candidate in question.candidates if (day := day_of(candidate.price_as_of))]
    if days and question.as_of < min(days):
        say(f"as_of {question.as_of} is before every price was read, the first on {min(days)}.", err=True)
    if question.options.get("zones") is not None and question.settings.survive != ZONE:
        say("zones is given, and counts only with --survive zone.", err=True)
    if question.as_of > (today := as_of_date(None)):
        say(f"as_of {question.as_of} is after today, {today}: prices are those read until now.", err=True)


def write_drawn(targets: Mapping[Path, bytes], missing: Sequence[str], spared: Path | None = None) -> None:
    """Write what could be drawn, and say what could not. Raises MissingLibraryError where nothing could be drawn,
    ScenarioError where a file would replace the edited workbook (`spared`)."""
    from sheetgen.writers.safe_files import write_files

    if not targets:
        raise MissingLibraryError(*missing)
    for target in targets:
        if spared is not None and os.path.realpath(target) == os.path.realpath(spared):
            raise ScenarioError(f"{shown(target, 200)}: is the edited workbook. Choose another --out or --name.")
    for target, kept in write_files(targets).items():
        pulls = f" `sheetgen pull {shown(kept, 200)}` reads what was typed." if kept.suffix == ".xlsx" else ""
        say(f"{shown(target, 200)}: was changed since it was written; kept as {shown(kept, 200)}.{pulls}", err=True)
    for line in missing:
        say(line, err=True)


def table(
    lines: Iterable[Sequence[str]],
    right: Container[int] = (),
    folds: bool = True,
    below: Iterable[int] = (),
    width: int | None = None,
) -> str:
    """Columns of text aligned by spaces; those in `right` are aligned to the right.

    Where they are wider than the terminal (or `width`), the columns in `below`, the first of them first, stand under
    their row with their head, and then the last column is folded if it `folds`.
    """
    rows, width = [tuple(line) for line in lines], width or columns()
    aligned: dict[int, list[str]] = {}
    for i, column in enumerate(zip(*rows, strict=True)):
        widest = max(map(len, column))
        aligned[i] = [cell.rjust(widest) if i in right else cell.ljust(widest) for cell in column]
    moved: list[int] = []
    for i in below:
        if sum(len(column[0]) + 2 for column in aligned.values()) - 2 > width:
            del aligned[i]
            moved.append(i)
    *others, last = aligned or (0,)
    start = sum(len(aligned[i][0]) + 2 for i in others)
    drawn = ["  ".join(cells).rstrip() for cells in zip(*aligned.values(), strict=True)]
    is_folded = folds and max(map(len, drawn), default=0) > width and width - start >= _LEAST_CELL
    text = []
    for n, (row, line) in enumerate(zip(rows, drawn, strict=True)):
        is_long = is_folded and len(line) > width
        text.append(_filled(row[last].strip(), line[:start], " " * start, width) if is_long else line)
        if n and (under := ", ".join(f"{rows[0][i]} {row[i]}" for i in sorted(moved) if row[i])):
            text.append(f"    {under}")
    return "\n".join(text)

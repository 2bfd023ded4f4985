"""The formats of a sheet and a plan. A new one is a module with a writer, and a line here.

A writer takes its input (the page, the book or the record) and `Options`, and returns the file's bytes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sheetgen.errors import MissingLibraryError, PageError, SheetgenError
from sheetgen.shipped import shipped_folder

if TYPE_CHECKING:
    from sheetgen.brand import Brand


@dataclass(frozen=True)
class Format:
    """One format: its writer, and the writer's input."""

    writer: str  # room.module.function
    draws: str = "page"  # its input: page, book, record, or facts (of the live page)
    may_lack: tuple[type[SheetgenError], ...] = ()  # errors for which the file is left out with a note

    def write(self, drawn: object, options: Options) -> bytes:
        """The bytes of `drawn` in this format."""
        module, _, function = self.writer.rpartition(".")
        written: bytes = getattr(importlib.import_module(f"sheetgen.{module}"), function)(drawn, options)
        return written


FORMATS = {  # of a sheet, by file extension
    "xlsx": Format("writers.xlsx.write_xlsx", draws="book"),
    "pdf": Format("writers.pdf.write_pdf", may_lack=(MissingLibraryError, PageError)),
    "html": Format("live.live_page.write_live", draws="facts"),
    "json": Format("writers.json.write_json", draws="record"),
    "csv": Format("writers.csv.write_loads", draws="record"),
    "md": Format("writers.markdown.write_brief"),
}
DEFAULT_FORMATS = ("xlsx", "pdf")
PLAN_FORMATS = {
    "xlsx": Format("writers.xlsx.write_xlsx", draws="book", may_lack=(PageError,)),
    "pdf": Format("writers.plan_page.write_plan_pdf", may_lack=(MissingLibraryError, PageError)),
    "docx": Format("writers.docx.write_plan_docx"),
    "md": Format("writers.plan_text.plan_markdown"),
    "csv": Format("writers.plan_text.plan_csv", draws="record"),
    "json": Format("writers.json.write_json", draws="record"),
}
DEFAULT_OF_PLAN = ("xlsx", "pdf")


def templates_folder() -> Path:
    """The shipped templates."""
    return shipped_folder("templates")


@dataclass(frozen=True)
class Archive:
    """The attachments of the PDF: the workbook's file name and bytes, if it is to be attached; the catalogs' hash."""

    name: str = ""
    workbook: bytes = b""
    catalog_sha256: str = ""


def _nothing(*_: str) -> NoReturn:
    raise LookupError("this sheet has no such file")


@dataclass(frozen=True)
class Options:
    """The options of a writer."""

    templates: Path = field(default_factory=templates_folder)
    brand: Brand | None = None
    archive: Archive = field(default=Archive())  # for the PDF
    file: Callable[[str], bytes] = _nothing  # makes the same sheet in another format, by extension


def write_each(
    formats: Iterable[str], table: Mapping[str, Format], file: Callable[[str], bytes]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files of these formats by extension, and a line for each file that had to be left out."""
    files: dict[str, bytes] = {}
    missing: dict[str, None] = {}
    for ending in formats:
        try:
            files[ending] = file(ending)
        except table[ending].may_lack as error:
            lines = (f"No {ending.upper()} is written.",) if isinstance(error, PageError) else ()
            missing[" ".join((*lines, *error.problems))] = None
    return files, tuple(missing)


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """A context without garbage collection, which takes up to a sixth of a command's time and finds next to nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# Characters that could control a terminal or that UTF-8 does not allow; JSON may write them by their numbers.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")


def json_text(value: object, in_ascii: bool = False) -> str:
    """A record as the JSON text that all commands print: without NaN; letters are escaped only with `in_ascii`."""
    text = json.dumps(value, indent=2, ensure_ascii=in_ascii, allow_nan=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"

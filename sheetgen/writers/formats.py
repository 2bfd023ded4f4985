"""The formats that a sheet and a plan are written in. A new one is a module with a writer, and a line here.

A writer takes what it draws (the page, the book or the record) and `Options`, and gives the file's bytes.
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
from typing import TYPE_CHECKING, Any

from sheetgen.errors import MissingLibraryError, PageError, SheetgenError
from sheetgen.shipped import shipped_folder

if TYPE_CHECKING:
    from sheetgen.brand import Brand


@dataclass(frozen=True)
class Format:
    """Where its writer is, and what it needs."""

    writer: str  # room.module.function
    draws: str = "page"  # or the book, the record, or the facts of the live page
    may_lack: tuple[type[SheetgenError], ...] = ()  # it is left out, with a word why, where it cannot be drawn

    def write(self, drawn: Any, options: Options) -> bytes:
        """`drawn` in this format."""
        module, _, function = self.writer.rpartition(".")
        written: bytes = getattr(importlib.import_module(f"sheetgen.{module}"), function)(drawn, options)
        return written


FORMATS = {  # of a sheet by name, which is the ending of the file's name
    "xlsx": Format("writers.xlsx.write_xlsx", draws="book"),
    "pdf": Format("writers.pdf.write_pdf", may_lack=(MissingLibraryError, PageError)),
    "html": Format("live.live_page.write_live", draws="facts"),
    "json": Format("writers.json.write_json", draws="record"),
    "csv": Format("writers.csv.write_loads", draws="record"),
    "md": Format("writers.markdown.write_brief"),
}
DEFAULT_FORMATS = ("xlsx", "pdf")
PLAN_FORMATS = {
    "xlsx": Format("writers.xlsx.write_xlsx", draws="book"),
    "pdf": Format("writers.plan_page.write_plan_pdf", may_lack=(MissingLibraryError,)),
    "docx": Format("writers.docx.write_plan_docx", may_lack=(MissingLibraryError,)),
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
    """What the PDF carries: the workbook's file name and bytes where that is to be attached; the catalogs' hash."""

    name: str = ""
    workbook: bytes = b""
    catalog_sha256: str = ""


def _nothing(*_: str) -> Any:
    raise LookupError("this sheet has no such file")


@dataclass(frozen=True)
class Options:
    """What a writer may need beside what it draws; what takes long is made when it is called for."""

    templates: Path = field(default_factory=templates_folder)
    brand: Brand | None = None
    archive: Archive = field(default=Archive())  # what the PDF carries
    file: Callable[[str], bytes] = _nothing  # the same sheet in another format, by its ending


def write_each(
    formats: Iterable[str], table: Mapping[str, Format], file: Callable[[str], bytes]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files of these formats by their names; and why where one that may lack had to be left out, a line each."""
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
    """Garbage collection paused: of the million objects of a layout or a workbook none is garbage, and to look at them
    again and again takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# What a terminal could obey, or no UTF-8 file can hold: JSON may spell these by their numbers.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")


def json_text(value: Any, in_ascii: bool = False) -> str:
    """Any record as the JSON text that all commands print: no NaN, no escapes of plain letters unless requested."""
    text = json.dumps(value, indent=2, ensure_ascii=in_ascii, allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"

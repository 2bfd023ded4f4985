"""A written file that somebody changed by hand is told from one that nobody touched, so that it is not overwritten.

Workbooks and Word documents carry a mark of their other parts as the identifier among their core properties: any
program that saves them writes other parts. A PDF that was signed or annotated has a second trailer, or identifiers in
another form.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import re
import zipfile
from pathlib import Path

from sheetgen.input_files import read_bounded

CORE = "docProps/core.xml"
_END = b"</cp:coreProperties>"
_MOST_BYTES, _MOST_OF_CORE = 64_000_000, 100_000  # a larger file is none of ours
_PDF_ID = re.compile(rb"/ID \[\(([0-9a-f]{32})\) \(\1\)\]")
PACKAGES, PDF = (".xlsx", ".docx"), ".pdf"


def marked(core: bytes, written: zipfile.ZipFile) -> bytes:
    """The core properties of a package, with the mark of its other parts, which are written already."""
    return core.replace(_END, b"<dc:identifier>" + _mark(written) + b"</dc:identifier>" + _END)


def _mark(package: zipfile.ZipFile) -> bytes:
    parts = "\n".join(f"{part.filename} {part.CRC:08x}" for part in package.infolist() if part.filename != CORE)
    return f"sheetgen:{hashlib.sha256(parts.encode()).hexdigest()[:32]}".encode()


def kept_as(target: Path) -> Path | None:
    """The free name for a file that must not be overwritten, `sizing-sheet.edited.xlsx`; None where there is no file,
    or the one that we wrote."""
    if target.suffix not in (*PACKAGES, PDF) or not target.exists() or _is_as_written(target):
        return None
    endings = ("edited" if n == 1 else f"edited-{n}" for n in itertools.count(1))
    names = (target.with_name(f"{target.stem}.{ending}{target.suffix}") for ending in endings)
    return next(name for name in names if not name.exists())


def _is_as_written(path: Path) -> bool:
    """True for a file as it was written by this program. What cannot be read is not."""
    try:
        data = read_bounded(path, _MOST_BYTES)
        if path.suffix == PDF:
            return data.count(b"startxref") == 1 and _PDF_ID.search(data) is not None
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            return package.getinfo(CORE).file_size <= _MOST_OF_CORE and _mark(package) in package.read(CORE)
    except (OSError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zipfile.LargeZipFile):
        return False

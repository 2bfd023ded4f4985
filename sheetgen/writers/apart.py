"""Draws the PDF in another process while this one makes the workbook: loading WeasyPrint takes as long as drawing.

If it is loaded already, there is one processor, or the other process fails, the PDF is drawn in this process.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sheetgen.errors import SheetgenError
from sheetgen.writers.formats import Archive, Options

if TYPE_CHECKING:
    from sheetgen.brand import Brand
    from sheetgen.report.page import Page

# Without garbage collection, as any command: it would begin while the library loads.
_COMMAND = "import gc; gc.disable(); from sheetgen.writers.apart import serve; serve()"


class PdfProcess:
    """A process that draws one PDF: send it the page, and fetch the file later."""

    def __init__(self) -> None:
        # It imports from the same paths as this process, never from the current folder.
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _COMMAND],
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def send(self, page: Page, brand: Brand | None, archive: Archive) -> None:
        assert self._process.stdin
        with contextlib.suppress(OSError), self._process.stdin as pipe:
            pickle.dump((page, brand, archive), pipe)

    def fetch(self) -> bytes | None:
        """The PDF; None if the process ended without one. Raises the errors of the writer."""
        assert self._process.stdout
        try:
            drawn: bytes | SheetgenError = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            return None
        if isinstance(drawn, SheetgenError):
            raise drawn
        return drawn

    def end(self) -> None:
        self._process.kill()
        with self._process:  # closes its pipes, and waits
            pass


@contextlib.contextmanager
def pdf_apart(formats: Sequence[str], archive: Archive) -> Iterator[PdfProcess | None]:
    """A context with the process, or None where it saves no time; the process ends with the context."""
    process = None
    waits = "pdf" not in formats or len(formats) == 1 or archive.name  # a PDF that carries the workbook waits for it
    if not waits and "weasyprint" not in sys.modules and (os.cpu_count() or 1) > 1:
        with contextlib.suppress(OSError):
            process = PdfProcess()
    try:
        yield process
    finally:
        if process:
            process.end()


def serve() -> None:
    """Run the other process: load the library, read the page from stdin, and write the PDF or an error to stdout."""
    from sheetgen.writers.pdf import write_pdf
    from sheetgen.writers.weasyprint_boxes import imported

    drawn: bytes | SheetgenError
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # prints of libraries stay out of the answer
        try:
            imported()
            page, brand, archive = pickle.load(sys.stdin.buffer)
            drawn = write_pdf(page, Options(brand=brand, archive=archive))
        except SheetgenError as error:
            drawn = error
        pickle.dump(drawn, answer)

"""The page as a picture, for slides: the first page of the PDF, drawn by PDFium (pypdfium2, optional)."""

from __future__ import annotations

import io

from sheetgen.errors import MissingLibraryError
from sheetgen.sheet.page import Page
from sheetgen.writers.formats import Options

DPI = 150  # an A4 page becomes 1,240 x 1,754 pixels
_MISSING = "The picture (png) needs pypdfium2, which is not installed. pip install pypdfium2"


def write_png(page: Page, options: Options) -> bytes:
    """The PDF's first page as a PNG. Raises MissingLibraryError where pypdfium2 is not installed."""
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingLibraryError(_MISSING) from error
    document = pypdfium2.PdfDocument(options.file("pdf"))
    try:
        bitmap = document[0].render(scale=DPI / 72)
        out = io.BytesIO()
        bitmap.to_pil().save(out, "PNG", dpi=(DPI, DPI), optimize=True)
    finally:
        document.close()
    return out.getvalue()

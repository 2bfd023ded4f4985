"""The page as a picture, for slides: the first page of the PDF, drawn by PDFium (pypdfium2, optional)."""

from __future__ import annotations

import io

from sheetgen.errors import MissingLibraryError

DPI = 150  # an A4 page becomes 1,240 x 1,754 pixels
_MISSING = "The picture (png) needs pypdfium2, which is not installed. pip install pypdfium2"


def write_png(pdf: bytes) -> bytes:
    """The first page of a PDF as a PNG. Raises MissingLibraryError where pypdfium2 is not installed."""
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingLibraryError(_MISSING) from error
    document = pypdfium2.PdfDocument(pdf)
    try:
        page = document[0]
        bitmap = page.render(scale=DPI / 72)
        out = io.BytesIO()
        bitmap.to_pil().save(out, "PNG", dpi=(DPI, DPI), optimize=True)
    finally:
        document.close()
    return out.getvalue()

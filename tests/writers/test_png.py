"""The picture of the page: the first page of the PDF, and one line where its library is not installed."""

from __future__ import annotations

import io
import sys

import pytest
from PIL import Image
from test_pdf_hostile import drawn, little

from sheetgen.errors import MissingLibraryError
from sheetgen.writers.formats import Options
from sheetgen.writers.pdf import write_png


def test_it_is_the_page() -> None:
    pytest.importorskip("pypdfium2")
    pdf = drawn(little())
    data = write_png(little(), Options(file=lambda ending: pdf))
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.size in {(1240, 1754), (1241, 1754), (1241, 1755)} and picture.format == "PNG"
        colours = picture.convert("RGB").getcolors(maxcolors=1 << 24)
        assert colours and len(colours) > 50 and max(colours)[1] == (255, 255, 255)
    assert data == write_png(little(), Options(file=lambda ending: pdf))


def test_without_its_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(MissingLibraryError, match="pip install pypdfium2") as caught:
        write_png(little(), Options(file=lambda ending: b""))
    assert len(caught.value.problems) == 1

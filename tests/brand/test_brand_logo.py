"""A logo is known by its content, decoded within limits and written anew; an SVG holds shapes and nothing else."""

from __future__ import annotations

import io
import os
import struct
import time
import zlib
from pathlib import Path

import pytest
from brands import picture
from PIL import Image, ImageFile, PngImagePlugin

from sheetgen.brand import KEPT, MAX_BYTES, MAX_SVG_BYTES, logo_of, read_logo

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 {} {}">{}</svg>'
RECT = '<rect width="90" height="90" fill="#0B5FFF"/>'


def svg(inside: str = RECT, width: object = 100, height: object = 100) -> bytes:
    return SVG.format(width, height, inside).encode()


def clips(levels: int) -> str:
    """Clip paths within clip paths: the work is eight times more with each level."""
    chain = "".join(
        f'<clipPath id="c{i}">' + f'<rect width="90" height="90" clip-path="url(#c{i + 1})"/>' * 8 + "</clipPath>"
        for i in range(levels)
    )
    return f'{chain}<rect width="90" height="90" clip-path="url(#c0)"/>'


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is huge."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "kind,mode",
    [
        ("PNG", "RGB"),
        ("PNG", "RGBA"),
        ("PNG", "P"),
        ("PNG", "L"),
        ("PNG", "1"),
        ("JPEG", "RGB"),
        ("JPEG", "L"),
        ("JPEG", "CMYK"),
    ],
)
def test_every_usual_kind_becomes_a_png_of_its_shape(kind: str, mode: str) -> None:
    logo = logo_of(picture(300, 100, kind, mode))
    opened = Image.open(io.BytesIO(logo.png))
    assert (
        (opened.format, opened.mode, opened.size)
        == ("PNG", "RGBA", (300, 100))
        == ("PNG", "RGBA", (logo.width, logo.height))
    )
    assert len({pixel for _, pixel in opened.getcolors(40_000) or []}) >= 2


def test_a_large_picture_is_made_smaller_and_an_svg_as_large_as_is_kept() -> None:
    assert (logo_of(picture(2000, 1000)).width, logo_of(picture(2000, 1000)).height) == (480, 240)
    logo = logo_of(svg(width=400, height=50))
    assert (logo.width, logo.height) == (KEPT[0], 120)
    assert logo.within(120, 20) == (120, 15) and logo.within(500, 20) == (160, 20)


def test_nothing_of_the_file_but_its_picture_is_kept() -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "a secret name")
    out = io.BytesIO()
    Image.open(io.BytesIO(picture(50, 50))).save(out, "PNG", pnginfo=info, icc_profile=b"a profile " * 20, dpi=(9, 9))
    logo = logo_of(out.getvalue() + b"<script>hidden behind</script>")
    chunks = logo.png
    assert b"secret" not in chunks and b"hidden" not in chunks and b"iCCP" not in chunks and b"pHYs" not in chunks
    assert logo == logo_of(out.getvalue())  # and the same bytes each time


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no PNG, JPEG or SVG"),
        (b"GIF89a" + bytes(100), "is no PNG, JPEG or SVG"),
        (b"MZ\x90\x00" + bytes(100), "is no PNG, JPEG or SVG"),
        (b"\x89PNG\r\n\x1a\n", "cannot be read as a picture"),
        (picture(90, 90)[:150], "cannot be read as a picture"),
        (picture(90, 90, "JPEG")[:300], "cannot be read as a picture"),
        (b"\xff\xd8\xff" + bytes(500), "cannot be read as a picture"),
        (bomb(50_000, 50_000), "has far more than 4,000,000 pixels"),
        (bomb(3_000, 3_000), "3,000 x 3,000 pixels; 4,000,000 in all is the most"),
        (bomb(0, 100), "cannot be read|is the least"),
        (picture(4, 40), "8 each way is the least"),
        (picture(900, 40), "is 900 by 40; a logo may be at most 20 times as wide as high, or 5 times as high as wide"),
        (picture(10, 60), "is 10 by 60"),
        (picture(90, 90, "JPEG") + b"\xff\xda" * 200, "more than 100 scans"),
        (svg(width=2500, height=100), "is 2500 by 100"),
    ],
)
def test_what_is_no_logo_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        logo_of(data)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_half_a_picture_is_refused_though_the_pdf_library_takes_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)  # as WeasyPrint leaves it
    data = picture(300, 300, kind)
    with pytest.raises(ValueError, match="cannot be read as a picture"):
        logo_of(data[: len(data) // 2])
    assert ImageFile.LOAD_TRUNCATED_IMAGES


@pytest.mark.parametrize("color", [(255, 255, 255, 255), (0, 0, 0, 0), (255, 255, 240, 90)])
def test_what_cannot_be_seen_on_paper_is_refused(color: tuple[int, int, int, int]) -> None:
    out = io.BytesIO()
    Image.new("RGBA", (50, 50), color).save(out, "PNG")
    with pytest.raises(ValueError, match="would not be seen on white paper"):
        logo_of(out.getvalue())
    with pytest.raises(ValueError, match="would not be seen"):
        logo_of(svg(""))


def test_large_files_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "large.png").write_bytes(picture(9, 9) + bytes(MAX_BYTES))
    os.mkfifo(tmp_path / "pipe.png")
    for name, words in (("large.png", "larger than 2,000,000 bytes"), ("pipe.png", "not a file"), (".", "a folder")):
        with pytest.raises(ValueError, match=words):
            read_logo(tmp_path / name)


GRADIENT = (
    '<defs><linearGradient id="a"><stop stop-color="#0B5FFF"/></linearGradient>'
    '<linearGradient id="b" xlink:href="#a"/><clipPath id="c"><rect width="50" height="50"/></clipPath></defs>'
    '<style>.s{fill:url(#b)}</style><g clip-path="url(#c)"><path class="s" d="M0 0h80v80z"/></g>'
)


@pytest.mark.parametrize(
    "data",
    [
        svg(GRADIENT),
        b"\xef\xbb\xbf" + svg(),
        b'<?xml version="1.0" encoding="UTF-8"?>\n<!-- made by hand -->\n' + svg(),
        svg().replace(b'viewBox="0 0 100 100"', b'width="100px" height="100"'),
        svg('<metadata><x xmlns="urn:x"/></metadata><n:view xmlns:n="urn:n" n:zoom="1"/>' + RECT),
    ],
)
def test_an_ordinary_svg_is_drawn(data: bytes) -> None:
    logo = logo_of(data)
    assert (logo.width, logo.height) == (240, 240)
    seen = {pixel for _, pixel in Image.open(io.BytesIO(logo.png)).getcolors(100_000) or []}
    assert (11, 95, 255, 255) in seen


HOSTILE = {
    "<script>alert(1)</script>" + RECT: "holds <script>",
    '<rect width="9" height="9" onload="alert(1)"/>': r"holds a script \(onload\)",
    '<foreignObject><b xmlns="http://www.w3.org/1999/xhtml">x</b></foreignObject>': "holds <foreignObject>",
    '<image href="file:///etc/passwd" width="9" height="9"/>': "holds <image>",
    '<image xlink:href="http://example.com/x.png" width="9" height="9"/>': "holds <image>",
    '<use href="#a"/>': "holds <use>",
    '<use href="other.svg#a"/>': "holds <use>",
    '<a href="https://example.com">' + RECT + "</a>": "holds <a>",
    "<text>Acme</text>": "holds <text>.*Convert text to paths",
    '<filter id="f"><feImage href="/etc/passwd"/></filter>': "holds <filter>",
    '<animate attributeName="x"/>': "holds <animate>",
    "<svg><rect/></svg>": "holds <svg>",
    '<linearGradient href="http://example.com/g"/>': "refers to 'http://example.com/g'",
    '<rect width="9" height="9" fill="url(http://example.com/#a)"/>': "may refer to what is not in the picture",
    '<rect width="9" height="9" style="fill: URL( \'file:///etc/passwd\')"/>': "may refer to what is not",
    '<rect width="9" height="9" style="fill: u\\72l(x)"/>': "may refer to what is not",
    "<style>@import 'http://example.com/x.css';</style>": "holds an @ rule",
    "<style>rect{clip-path:url(#c)}</style>": "clip-path in <style>",
    clips(5): "a clip path within a clip path",
    RECT * 501: "has 502 elements; 500 is the most",
    "<g>" * 40 + RECT + "</g>" * 40: "nested deeper than 30 levels",
    "<rect": "is no well-formed SVG",
}


@pytest.mark.parametrize("inside", HOSTILE)
def test_an_active_or_reaching_svg_is_refused_at_once(inside: str) -> None:
    start = time.monotonic()
    with pytest.raises(ValueError, match=HOSTILE[inside]):
        logo_of(svg(inside))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + svg("<title>&a;</title>"), "holds a DOCTYPE"),
        (svg().decode().encode("utf-16"), "is no PNG, JPEG or SVG"),
        (svg("<title>\xff</title>").decode().encode("latin-1"), "is not UTF-8"),
        (b"<html><body>not found</body></html>", "is no SVG"),
        (b"<svg viewBox='0 0 9 9'><rect width='9' height='9'/></svg>", "first element must be <svg xmlns="),
        (svg(width="nan"), "its width and height must be above 0|has the viewBox"),
        (svg(width=0), "must be above 0"),
        (svg(width="1e300"), "must be above 0"),
        (svg(width="wide"), "has no viewBox of four numbers"),
        (svg().replace(b'viewBox="0 0 100 100"', b'width="10mm" height="10mm"'), "Add viewBox"),
        (svg(f"<desc>{'x' * MAX_SVG_BYTES}</desc>"), "SVG larger than 200,000 bytes"),
    ],
)
def test_a_broken_svg_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        logo_of(data)


def test_the_size_is_ours_whatever_the_svg_asks_for() -> None:
    huge = svg().replace(b"<svg ", b'<svg width="9999999" height="9999999" preserveAspectRatio="none" ')
    assert logo_of(huge) == logo_of(svg())

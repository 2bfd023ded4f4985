"""A logo: read from PNG, JPEG or SVG, and kept as one clean PNG, whatever it came from.

The picture is known by its content, never by the ending of its name. It is decoded within limits and written anew, so
that nothing of the file itself (metadata, profiles, what hides behind the picture) gets into a workbook or a PDF.
Everything here raises ValueError with the end of a sentence; `read` says where.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sheetgen.brand.svg_logo import svg_to_png

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES = 2_000_000
MAX_PIXELS = 4_000_000
LEAST_SIDE = 8  # pixels
WIDEST, TALLEST = 20, 5  # times as wide as high, as high as wide
KEPT = (960, 240)  # pixels to keep, width and height: 700 dots an inch where the page draws it
_MOST_SCANS = 100  # of a progressive JPEG; each is a pass over the whole picture
_PALE = 235  # of 255: a picture with nothing darker than this cannot be seen on white


@dataclass(frozen=True)
class Logo:
    """A picture as PNG, and its size in pixels."""

    png: bytes
    width: int
    height: int

    def within(self, most_width: float, most_height: float) -> tuple[float, float]:
        """Width and height of the picture where it fills a box, its shape kept."""
        scale = min(most_width / self.width, most_height / self.height)
        return self.width * scale, self.height * scale


def read_logo(path: Path) -> Logo:
    """The picture in a file."""
    if not path.is_file():
        raise ValueError("is not a file")  # a pipe would be waited for without end
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror or error})") from error
    if len(data) > MAX_BYTES:
        raise ValueError(f"is larger than {MAX_BYTES:,} bytes. Save it smaller")
    return logo_of(data)


def logo_of(data: bytes) -> Logo:
    """The picture in the bytes of a file."""
    if data.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")):
        picture = _decoded(data)
    elif data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        picture = _decoded(svg_to_png(data, KEPT, check_shape))
    else:
        raise ValueError("is no PNG, JPEG or SVG. Export it as one of these")
    if _unseen(picture):
        raise ValueError("would not be seen on white paper. Take the version for light grounds")
    kept = io.BytesIO()
    picture.thumbnail(KEPT)
    picture.info.clear()
    picture.save(kept, "PNG")
    return Logo(kept.getvalue(), *picture.size)


def check_shape(width: float, height: float) -> None:
    """Refuse a shape that no box of the page suits."""
    if width > WIDEST * height or height > TALLEST * width:
        most = f"at most {WIDEST} times as wide as high, or {TALLEST} times as high as wide"
        raise ValueError(f"is {width:g} by {height:g}; a logo may be {most}. Cut it to the mark itself")


def _decoded(data: bytes) -> Image:
    from PIL import Image, ImageFile, ImageOps

    if data.count(b"\xff\xda") > _MOST_SCANS and data.startswith(b"\xff\xd8"):
        raise ValueError(f"is a JPEG of more than {_MOST_SCANS} scans. Export it as PNG")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pillow's own limit, which is looser than ours
        try:
            opened = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
            width, height = opened.size
        except Image.DecompressionBombError as error:
            raise ValueError(f"has far more than {MAX_PIXELS:,} pixels. Save it smaller") from error
        except Exception as error:  # a decoder meets hostile bytes with whatever comes up
            raise ValueError("cannot be read as a picture. Export it again") from error
        if width * height > MAX_PIXELS:
            raise ValueError(f"has {width:,} x {height:,} pixels; {MAX_PIXELS:,} in all is the most. Save it smaller")
        if min(width, height) < LEAST_SIDE:
            raise ValueError(f"has {width:,} x {height:,} pixels; {LEAST_SIDE} each way is the least")
        check_shape(width, height)
        lenient, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, False  # WeasyPrint sets it
        try:
            return ImageOps.exif_transpose(opened).convert("RGBA")
        except Exception as error:
            raise ValueError("cannot be read as a picture. Export it again") from error
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = lenient


def _unseen(picture: Image) -> bool:
    from PIL import Image

    paper = Image.new("RGBA", picture.size, "white")
    darkest = Image.alpha_composite(paper, picture).convert("L").getextrema()[0]
    return isinstance(darkest, (int, float)) and darkest > _PALE

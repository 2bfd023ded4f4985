"""A logo: read from PNG, JPEG or SVG, and kept as one clean PNG, whatever it came from.

The picture is known by its content, never by the ending of its name. It is decoded within limits and written anew, so
that nothing of the file itself (metadata, profiles, what hides behind the picture) gets into a workbook or a PDF.
Everything here raises ValueError with the end of a sentence; `read` says where.

An SVG may hold shapes, gradients and clip paths only, nothing active, nothing from outside. Refused rather than mended:
a logo that needs more is exported as plain paths or as PNG in a minute. What is left is written anew without the
elements of drawing programs, in a size that we set, and drawn by resvg, which runs no scripts. The limits keep the
worst file to seconds: a clip path within a clip path multiplies the work.
"""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from sheetgen.errors import shown

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES = 2_000_000
MAX_PIXELS = 4_000_000
LEAST_SIDE = 8  # pixels
WIDEST, TALLEST = 20, 5  # times as wide as high, as high as wide
KEPT = (960, 240)  # pixels to keep, width and height: 700 dots an inch where the page draws it
_MOST_SCANS = 100  # of a progressive JPEG; each is a pass over the whole picture
_PALE = 235  # of 255: a picture with nothing darker than this cannot be seen on white
MAX_SVG_BYTES = 200_000
MAX_ELEMENTS = 500
MAX_DEPTH = 30
_SHAPES = {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon"}
_PAINT = {"linearGradient", "radialGradient", "stop", "clipPath", "style"}
ALLOWED = {"svg", "g", "defs", "title", "desc"} | _SHAPES | _PAINT
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = ("href", "{http://www.w3.org/1999/xlink}href")
_OUTSIDE = re.compile(r"url\(\s*['\"]?\s*(?!['\"#\s])", re.IGNORECASE)
_WAY_OUT = "Export it as plain paths, or as PNG"


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
        picture = _decoded(svg_to_png(data))
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


def svg_to_png(data: bytes) -> bytes:
    """The picture as PNG, as large as may be kept."""
    try:
        import resvg_py
    except ImportError as error:
        raise ValueError("is an SVG, which needs a library: pip install resvg-py. Or give a PNG") from error
    root = _checked(data)
    box = _view_box(root)
    check_shape(*box[2:])
    scale = min(KEPT[0] / box[2], KEPT[1] / box[3])
    size = [max(1, round(side * scale)) for side in box[2:]]
    root.attrib.pop("preserveAspectRatio", None)
    root.attrib |= {"viewBox": " ".join(map(repr, box)), "width": str(size[0]), "height": str(size[1])}
    try:
        return resvg_py.svg_to_bytes(svg_string=ElementTree.tostring(root, "unicode"), skip_system_fonts=True)
    except Exception as error:  # the library raises its own kinds
        raise ValueError(f"cannot be drawn ({shown(error, 80)}). {_WAY_OUT}") from error


def _checked(data: bytes) -> ElementTree.Element:
    """The picture's tree, without what is not SVG; refuses what a logo may not hold."""
    if len(data) > MAX_SVG_BYTES:
        raise ValueError(f"is an SVG larger than {MAX_SVG_BYTES:,} bytes. {_WAY_OUT}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8 text. Save it as UTF-8") from error
    if "<!DOCTYPE" in text or "<!ENTITY" in text:  # where entities are declared, and other files named
        raise ValueError("holds a DOCTYPE. Delete that line")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"is no well-formed SVG ({shown(error, 80)})") from error
    if root.tag != _SVG + "svg":
        raise ValueError('is no SVG: its first element must be <svg xmlns="http://www.w3.org/2000/svg">')
    n_elements = sum(1 for _ in root.iter())
    if n_elements > MAX_ELEMENTS:
        raise ValueError(f"has {n_elements:,} elements; {MAX_ELEMENTS} is the most. {_WAY_OUT}")
    _check(root, depth=0, in_clip=False)
    return root


def _check(element: ElementTree.Element, depth: int, in_clip: bool) -> None:
    name = element.tag.removeprefix(_SVG)
    if name not in ALLOWED or (name == "svg" and depth):
        hint = "Convert text to paths" if name in ("text", "tspan", "textPath") else _WAY_OUT
        raise ValueError(f"holds <{shown(name)}>, and a logo may hold only shapes, gradients and clip paths. {hint}")
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested deeper than {MAX_DEPTH} levels. {_WAY_OUT}")
    for attribute, value in list(element.attrib.items()):
        if attribute in _HREF:
            if not (name.endswith("Gradient") and value.startswith("#")):
                raise ValueError(f"refers to {shown(value)!r}, which is not in the picture. {_WAY_OUT}")
        elif attribute.startswith("{"):
            del element.attrib[attribute]  # of a drawing program
        elif attribute.lower().startswith("on"):
            raise ValueError(f"holds a script ({shown(attribute)}). {_WAY_OUT}")
        else:
            _check_style(value)
            if in_clip and (attribute == "clip-path" or "clip-path" in value):
                raise ValueError(f"holds a clip path within a clip path. {_WAY_OUT}")
    if name == "style":
        css = "".join(element.itertext())
        _check_style(css)
        if "@" in css or "clip-path" in css:
            raise ValueError(f"holds an @ rule or clip-path in <style>. {_WAY_OUT}")
    for child in list(element):
        if child.tag == _SVG + "metadata" or (child.tag.startswith("{") and not child.tag.startswith(_SVG)):
            element.remove(child)  # of a drawing program: nothing to draw
        else:
            _check(child, depth + 1, in_clip or name == "clipPath")


def _check_style(value: str) -> None:
    if "\\" in value or _OUTSIDE.search(value):
        raise ValueError(f"holds {shown(value)!r}, which may refer to what is not in the picture. {_WAY_OUT}")


def _view_box(root: ElementTree.Element) -> list[float]:
    """Left, top, width and height of the drawing."""
    given = root.get("viewBox")
    words = given.replace(",", " ").split() if given else ["0", "0", root.get("width", ""), root.get("height", "")]
    try:
        left, top, width, height = (float(word.removesuffix("px")) for word in words)
    except ValueError as error:
        raise ValueError("has no viewBox of four numbers, nor a width and a height in pixels. Add viewBox") from error
    if not (all(abs(x) < 1e6 for x in (left, top)) and all(1e-3 < x < 1e6 for x in (width, height))):
        raise ValueError(f"has the viewBox {shown(' '.join(words))!r}. Its width and height must be above 0")
    return [left, top, width, height]

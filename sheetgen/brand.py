"""A company's template: name, logo, two colours and a footer line, from one small file, for workbook and PDF.

```
name: Acme GmbH
logo: logo.png              # beside the file or in a folder below it; PNG, JPEG or SVG
colors: {heading: "#12263F", accent: "#0B5FFF"}
footer: Confidential. Planning only.
```

The file is read as strictly as catalogs are, every problem with its line. Words must be readable in its colours: WCAG 2
level AA asks a contrast of 4.5. Grounds, and what carries meaning (fits and none, the blue on yellow of inputs),
keep the sheet's own colours.

A logo is read from PNG, JPEG or SVG, known by its content, never by the ending of its name. It is decoded within limits
and written anew as one clean PNG, so that nothing of the file itself (metadata, profiles, what hides behind the
picture) gets into a workbook or a PDF. An SVG may hold shapes, gradients and clip paths only, nothing active, nothing
from outside. Refused rather than mended: a logo that needs more is exported as plain paths or as PNG in a minute. What
is left is written anew without the elements of drawing programs, in a size that we set, and drawn by resvg, which runs
no scripts. The limits keep the worst file to seconds: a clip path within a clip path multiplies the work.
"""

from __future__ import annotations

import colorsys
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated
from xml.etree import ElementTree

from pydantic import AfterValidator, BeforeValidator

from sheetgen.catalog.base import Entry, Label, Loc, read_document, validate
from sheetgen.errors import CatalogError, shown, unreadable
from sheetgen.input_files import read_bounded

if TYPE_CHECKING:
    from PIL.Image import Image

LEAST_CONTRAST = 4.5
WHITE = "#FFFFFF"
TINT = "#F3F6F9"  # the background of the answers, in one_page.css
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")


def _color(value: object) -> str:
    if not isinstance(value, str) or not _COLOR.fullmatch(value):
        example = 'such as "#0B5FFF" (without quotes # begins a comment)'
        raise ValueError(f"is no colour: write # and six hex digits in quotes, {example}")
    return value.upper()


Color = Annotated[str | None, BeforeValidator(_color)]


class Colors(Entry):
    """A brand's colours as #RRGGBB; None where the sheet's own colour stays."""

    heading: Color = None  # the title, the sections' headings (white words on it in the workbook), the page's rules
    accent: Color = None  # the answers, and the links of the page

    def wrong(self) -> Iterator[tuple[str, str]]:
        """Each colour that cannot be read on the page, with a sentence that gives its contrast and a darker colour that
        would do."""
        for name, color in self.model_dump(exclude_none=True).items():
            if contrast(color, TINT) < LEAST_CONTRAST:
                yield name, _too_pale(name, color)


def contrast(color: str, other: str) -> float:
    """The contrast of two colours as WCAG defines it: 1 to 21."""
    light, dark = sorted((_luminance(color), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _too_pale(name: str, color: str) -> str:
    """The sentence that `color` cannot be read on the page, with the first darker colour of its hue that can."""
    where, ground = ("white", WHITE) if contrast(color, WHITE) < LEAST_CONTRAST else (f"the tint {TINT}", TINT)
    hue, light, saturation = colorsys.rgb_to_hls(*(part / 255 for part in bytes.fromhex(color[1:])))
    darker = color
    while contrast(darker, TINT) < LEAST_CONTRAST:
        light = max(light - 0.01, 0)
        darker = "#{:02X}{:02X}{:02X}".format(*(round(p * 255) for p in colorsys.hls_to_rgb(hue, light, saturation)))
    ratio = int(contrast(color, ground) * 100) / 100  # rounded down: 4.46 must not read as 4.5
    return f"{name} is {color!r}: its contrast with {where} is {ratio}, and words need {LEAST_CONTRAST}. Try {darker!r}"


def _luminance(color: str) -> float:
    parts = (x / 255 for x in bytes.fromhex(color[1:]))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


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
        """Width and height of the picture where it fills a box with its shape kept."""
        scale = min(most_width / self.width, most_height / self.height)
        return self.width * scale, self.height * scale


def read_logo(path: Path) -> Logo:
    data = read_bounded(path, MAX_BYTES)
    return logo_of(data)


def logo_of(data: bytes) -> Logo:
    """The picture in the bytes of a file."""
    from PIL import Image

    if data.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")):
        picture = _decoded(data)
    elif data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        picture = _decoded(svg_to_png(data))
    else:
        raise ValueError("is no PNG, JPEG or SVG. Export it as one of these")
    on_paper = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("L")
    darkest = on_paper.getextrema()[0]
    if isinstance(darkest, (int, float)) and darkest > _PALE:
        raise ValueError("would not be seen on white paper. Take the version for light grounds")
    kept = io.BytesIO()
    picture.thumbnail(KEPT)
    picture.info.clear()
    picture.save(kept, "PNG")
    return Logo(kept.getvalue(), *picture.size)


def check_shape(width: float, height: float) -> None:
    """Refuse a picture's shape that suits no box of the page."""
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
        except Exception as error:  # on hostile bytes a decoder raises anything
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


def svg_to_png(data: bytes) -> bytes:
    """The picture as PNG, as large as allowed."""
    try:
        import resvg_py
    except ImportError as error:
        raise ValueError("is an SVG, which needs a library: python -m pip install resvg-py. Or give a PNG") from error
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
    """The picture's tree without anything that is not SVG; refuses what a logo may not contain."""
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


MAX_NAME, MAX_FOOTER = 60, 120  # a print footer in Excel holds 255 characters, codes and page numbers among them


@dataclass(frozen=True)
class Brand:
    """A company's template, checked and ready to draw."""

    name: str
    footer: str = ""
    colors: Colors = field(default_factory=Colors)
    logo: Logo | None = None


def read_brand(path: Path | str) -> Brand:
    """The brand that a file describes.

    Raises CatalogError, one line per problem, for what the file or its logo must not be. A scenario that came from
    elsewhere may name any file of the reader's, so nothing of it but keys is repeated.
    """
    path = Path(path)
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise CatalogError(f"{shown(path, 300)}: is no brand file. Name one that ends in .yaml.")
    document = read_document(path)
    entry = validate(document, BrandFile, repeats_values=False)
    logo = None
    if entry.logo is not None:
        try:
            logo = read_logo(_logo_path(path.parent, entry.logo))
        except ValueError as error:
            raise CatalogError(f"{document.at(('logo',))}: logo {shown(entry.logo)!r} {error}.") from error
    return Brand(entry.name, entry.footer or "", entry.colors, logo)


def _line(most: int, field: str) -> AfterValidator:
    def check(value: str) -> str:
        line = " ".join(value.split())
        length = len(line.encode("utf-16-le")) // 2 + 3 * line.count("&")  # as a print footer of Excel counts
        if length > most:
            raise ValueError(f"takes {length} characters (an & counts as 4); {field} may take {most}. Shorten it")
        return line

    return AfterValidator(check)


def _path_below(value: str) -> str:
    """A path below the file's folder, checked by its words alone: no file is touched before that."""
    if ":" in value:
        raise ValueError("is a web address or a drive. Save the picture beside the file, and name it")
    if "\\" in value or not value.strip():
        raise ValueError("is no path: write folders with /, such as pictures/logo.png")
    parts = PurePosixPath(value)
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError("leaves the file's folder. Put the picture beside the file, or in a folder below it")
    return value


def _logo_path(folder: Path, logo: str) -> Path:
    """The logo's file. A brand is handed around: no link in it may put another file of the reader's onto a page."""
    try:
        path = (folder / logo).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ValueError(unreadable(error)) from error
    if not path.is_relative_to(folder.resolve()):
        raise ValueError("is a link that leaves the file's folder. Put the picture itself there")
    return path


class BrandFile(Entry):
    """The content of a brand file."""

    name: Annotated[Label, _line(MAX_NAME, "a name")]
    logo: Annotated[str, AfterValidator(_path_below)] | None = None
    colors: Colors = Colors()
    footer: Annotated[Label, _line(MAX_FOOTER, "a footer")] | None = None

    def problems(self) -> Iterator[tuple[Loc, str]]:
        """Colours that cannot be read."""
        for name, sentence in self.colors.wrong():
            yield ("colors", name), sentence

"""An SVG logo, checked and drawn as PNG: shapes, gradients and clip paths only, nothing active, nothing from outside.

Refused rather than mended: a logo that needs more is exported as plain paths or as PNG in a minute. What is left is
written anew without the elements of drawing programs, in a size that we set, and drawn by resvg, which runs no
scripts. The limits keep the worst file to seconds: a clip path within a clip path multiplies the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

from sheetgen.errors import shown

MAX_BYTES = 200_000
MAX_ELEMENTS = 500
MAX_DEPTH = 30
_SHAPES = {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon"}
_PAINT = {"linearGradient", "radialGradient", "stop", "clipPath", "style"}
ALLOWED = {"svg", "g", "defs", "title", "desc"} | _SHAPES | _PAINT
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = ("href", "{http://www.w3.org/1999/xlink}href")
_OUTSIDE = re.compile(r"url\(\s*['\"]?\s*(?!['\"#\s])", re.IGNORECASE)
_WAY_OUT = "Export it as plain paths, or as PNG"


def svg_to_png(data: bytes, most: tuple[int, int], check_shape: Callable[[float, float], None]) -> bytes:
    """The picture as PNG, as large as fits into `most` pixels; `check_shape` refuses a width and height."""
    try:
        import resvg_py
    except ImportError as error:
        raise ValueError("is an SVG, which needs a library: pip install resvg-py. Or give a PNG") from error
    root = _checked(data)
    box = _view_box(root)
    check_shape(*box[2:])
    scale = min(most[0] / box[2], most[1] / box[3])
    size = [max(1, round(side * scale)) for side in box[2:]]
    root.attrib.pop("preserveAspectRatio", None)
    root.attrib |= {"viewBox": " ".join(map(repr, box)), "width": str(size[0]), "height": str(size[1])}
    try:
        return resvg_py.svg_to_bytes(svg_string=ElementTree.tostring(root, "unicode"), skip_system_fonts=True)
    except Exception as error:  # the library raises its own kinds
        raise ValueError(f"cannot be drawn ({shown(error, 80)}). {_WAY_OUT}") from error


def _checked(data: bytes) -> ElementTree.Element:
    """The picture's tree, without what is not SVG; refuses what a logo may not hold."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"is an SVG larger than {MAX_BYTES:,} bytes. {_WAY_OUT}")
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

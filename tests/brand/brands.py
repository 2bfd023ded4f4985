"""Brands for these tests: files, pictures and the shapes that are hard on a page."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image, ImageDraw

from sheetgen.brand import Brand, Colors, logo_of, read_brand

TEMPLATES = Path(__file__).parents[2] / "templates"
EXAMPLE = TEMPLATES / "brand" / "brand.yaml"
LONG_NAME = "Gesellschaft für angewandte Sprachmodelle mbH & Co. KG, Ulm"
LONG_FOOTER = "Vertraulich. Nur für die Planung, keine Zusage. Acme GmbH, Musterstraße 1, 10115 Berlin, HRB 12345 B."
COLORS = Colors(heading="#4A148C", accent="#8E24AA")


def picture(width: int, height: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    """A drawn picture as the bytes of a file."""
    image = Image.new("RGB", (width, height), "#0B5FFF")
    ImageDraw.Draw(image).ellipse([width // 4, height // 4, width // 2, height // 2], fill="white")
    out = io.BytesIO()
    image.convert(mode).save(out, kind)
    return out.getvalue()


def written(folder: Path, text: str, **files: bytes) -> Path:
    """A brand file in `folder`, with pictures beside it: `logo_png` is logo.png."""
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    path = folder / "brand.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def named(name: str) -> Brand | None:
    """The brands that the page and the workbook are drawn in."""
    wide, tall = logo_of(picture(1200, 80)), logo_of(picture(100, 480))
    return {
        "none": None,
        "example": read_brand(EXAMPLE),
        "wide": Brand(LONG_NAME, LONG_FOOTER, COLORS, wide),
        "tall": Brand(LONG_NAME, "Confidential.", COLORS, tall),
        "name": Brand(LONG_NAME, LONG_FOOTER),
        "unbroken": Brand("W" * 60, "W" * 120, COLORS, wide),
        "codes": Brand('R&G & "A&T" 2026', "2026 &P &[Picture] &K00FF00 &G", COLORS, wide),
    }[name]

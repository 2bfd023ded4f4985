"""A letter as plain text and as HTML: templates/mail/ filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sheetgen.brand import Brand
from sheetgen.brand.colors import PAGE
from sheetgen.mail.letter import Letter, clean


def bodies(letter: Letter, templates: Path, brand: Brand | None = None) -> tuple[str, str]:
    """The text and the HTML. All that a catalog or a workbook says is one line of text; in HTML it is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=FileSystemLoader(templates / "mail"),
        autoescape=lambda name: name is not None and ".html" in name,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    colors = PAGE | (brand.colors.model_dump(exclude_none=True) if brand else {})
    shown = {"page": letter.page, "name": letter.name, "changes": letter.changes, "brand": brand, "colors": colors}
    text, html = (environment.get_template(f"message.{kind}.j2").render(**shown) for kind in ("txt", "html"))
    return text, html

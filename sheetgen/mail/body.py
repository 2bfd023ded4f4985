"""A letter as plain text and as HTML: templates/mail/ filled in."""

from __future__ import annotations

from pathlib import Path

from sheetgen.brand import Brand
from sheetgen.brand.colors import page_colors
from sheetgen.mail.letter import Letter, clean
from sheetgen.writers.strict import strict_environment


def bodies(letter: Letter, templates: Path, brand: Brand | None = None) -> tuple[str, str]:
    """The text and the HTML. All that a catalog or a workbook says is one line of text; in HTML it is escaped."""
    environment = strict_environment(
        templates / "mail",
        clean,
        autoescape=lambda name: name is not None and ".html" in name,
        keep_trailing_newline=True,
    )
    colors = page_colors(brand.colors if brand else None)
    shown = {"page": letter.page, "name": letter.name, "changes": letter.changes, "brand": brand, "colors": colors}
    text, html = (environment.get_template(f"message.{kind}.j2").render(**shown) for kind in ("txt", "html"))
    return text, html

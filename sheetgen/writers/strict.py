"""Jinja2 as every page and letter needs it: what anybody says is text, and a name that is unknown is an error."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sheetgen.sheet.page import Cell

if TYPE_CHECKING:
    from jinja2 import Environment


def strict_environment(folder: Path, clean: Callable[[str], str], **more: Any) -> Environment:
    """The templates of a folder. Every text goes through `clean`, and is escaped unless `more` says otherwise."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        if isinstance(value, Cell):
            value = str(value)
        return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    # Each template is filled in once or twice: to optimize it takes longer than that saves.
    usual = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, "optimized": False}
    options: dict[str, Any] = {**usual, **more}
    return Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, finalize=finalize, **options)


def style(templates: Path, name: str) -> Any:
    """A page's style sheet, after the inks that all pages share."""
    from markupsafe import Markup

    return Markup("".join((templates / part).read_text(encoding="utf-8") for part in ("inks.css", name)))


def breakable(text: str, after: str = "_") -> Any:
    """`text`, escaped, that may break after an underscore (Standard_ND96isr_H100_v5), or what `after` has, and nowhere
    odd."""
    from markupsafe import Markup, escape

    parts = (part for part in re.split(f"([{after}])", text) if part)
    return Markup("").join(escape(part) + Markup("<wbr>") * (part in after) for part in parts)


def visible(text: str) -> str:
    """`text` without what has no shape (controls, turned writing, lone surrogates); any space is a plain one."""
    return "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")


def tied(text: str) -> str:
    """`text` with its arrows and dots kept on the line of the word before them."""
    return re.sub(r" ([↑↓·])", "\u00a0\\1", text)

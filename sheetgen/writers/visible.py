"""Text that a reader sees, for the writers that have no fonts of their own."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """`text` without what has no shape (controls, turned writing, lone surrogates); any space is a plain one."""
    return "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")

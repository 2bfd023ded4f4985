"""The page as Markdown, to be pasted into a planning document. Texts from a catalog stay plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sheetgen.report.page import Page, Source, Table, Text, glance
from sheetgen.writers.formats import Options
from sheetgen.writers.html import visible

_SPECIAL = re.compile(r"([\\`*\[\]<>|~&]|\$(?=[^\s\d])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_LEADING = re.compile(r"^([#+\-=]|\d+[.)](?=\s|$))")
_AUTOLINK = re.compile(r"(:(?=//))|((?<=www)\.)|((?<=mailto):)", re.IGNORECASE)


def write_brief(page: Page, options: Options) -> bytes:
    """The ask, one table and the assumptions, for a planning document."""
    brand, bodies = options.brand, [one.sentence for one in page.asks if one.per_year and one.sentence]
    parts = (
        plain(brand.name) if brand else "",
        f"# {plain(page.title)}",
        plain(" · ".join((page.as_of, *page.heads))),
        f"**{plain(page.request)}**",
        plain(bodies[0]) if len(page.asks) == 1 and bodies else "",
        table_text(glance(page)),
        plain(page.weights_note) if page.weights_note else "",
        plain(page.elsewhere) if page.elsewhere else "",
        plain(page.hosted_instead) if page.hosted_instead else "",
        "## Uncertain",
        bullets(map(plain, page.uncertain)),
        "## Assumptions",
        bullets(map(plain, page.assumed or page.assumptions)),
        f"sheetgen {plain(page.version)}, catalog {plain(page.catalog)}.",
        plain(brand.footer) if brand else "",
    )
    return document(parts)


def document(parts: Iterable[str]) -> bytes:
    """The parts that say something, each a paragraph."""
    return ("\n\n".join(filter(None, parts)) + "\n").encode()


def tables_text(tables: Iterable[Table]) -> Iterator[str]:
    """Each table under its title."""
    for one in tables:
        yield f"{'#' * one.level} {plain(one.title)}" if one.title else ""
        yield table_text(one)


def table_text(one: Table) -> str:
    """A table. Nothing where there are no rows."""
    if not one.rows:
        return ""
    heads, rule = [plain(c.head) for c in one.columns], ["---:" if c.right else "---" for c in one.columns]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *(map(plain, row) for row in one.rows)))


def plain(text: Text) -> str:
    """`text` on one line as Markdown that shows just that: no cell, markup, HTML or link can come of it."""
    line = _SPECIAL.sub(r"\\\1", " ".join(visible(str(text)).split()))
    line = _AUTOLINK.sub(r"\\\g<0>", line)
    return _LEADING.sub(lambda m: f"{m[1][:-1]}\\{m[1][-1]}", line)


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def source_text(source: Source) -> str:
    text = plain(source.text)
    url = source.web_url
    # Angle brackets and backslashes would let the address out of its own brackets.
    return f"[{text}](<{url}>)" if url and not any(c in "<>\\" for c in url) else text

"""The page as Markdown, to be pasted into a planning document. Texts from a catalog stay plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sheetgen.report.page import Column, Page, Source, Table, Text, capital, joined, table, words
from sheetgen.writers.formats import Options
from sheetgen.writers.html import visible

_WAYS = (
    "To pay less",
    "Rent",
    Column("A month", right=True),
    Column("Commits to", right=True),
    "What we give up",
)
_SPECIAL = re.compile(r"([\\`*\[\]<>|~&]|\$(?=[^\s\d])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_LEADING = re.compile(r"^([#+\-=]|\d+[.)](?=\s|$))")
_AUTOLINK = re.compile(r"(:(?=//))|((?<=www)\.)|((?<=mailto):)", re.IGNORECASE)


def write_brief(page: Page, options: Options) -> bytes:
    """The request's sentences and two tables, what may be approved and ways to pay less, for a planning document."""
    brand, asked = options.brand, page.request
    may_be = [(one.name, words("{} {}", one.price, one.per), joined(" ", one.facts), one.rent) for one in asked.options]
    ways = [(capital(one.change), one.rent, one.monthly, one.commits, one.gives_up) for one in asked.ways]
    lines = (*asked.serves, *asked.risks, *([f"Not in the price: {asked.excluded}."] if asked.excluded else []))
    parts = (
        plain(brand.name) if brand else "",
        f"# {plain(page.title)}",
        plain(" · ".join((page.as_of, *page.heads))),
        f"**{plain(asked.sentence)}.**",
        table_text(table("", ("To approve", Column("Price", right=True), "What that is", "Rent"), may_be)),
        *map(plain, asked.warnings),
        plain(asked.less_only) if asked.less_only else "",
        plain(page.sure_of),
        f"{plain(asked.finding)}. {plain(asked.together)}".strip() if asked.finding else "",
        table_text(table("", _WAYS, ways)),
        bullets(map(plain, lines)),
        plain(joined(" ", page.as_measured)),
        plain(asked.basis) if asked.basis else "",
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

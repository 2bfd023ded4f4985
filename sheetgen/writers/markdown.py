"""The page as Markdown for a planning document. Texts from a catalog stay plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
# Characters that Markdown reads: & and < only where an entity, a tag or an address may begin.
_SPECIAL = re.compile(
    r"([\\`*\[\]|~]|&(?=#?[A-Za-z0-9]+;)|<(?=[A-Za-z/!?])|\$(?=[^\s\d])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))"
)
_LEADING = re.compile(r"^([#+\-=>]|\d+[.)](?=\s|$))")
_AUTOLINK = re.compile(r"(:(?=//))|((?<=www)\.)|((?<=mailto):)", re.IGNORECASE)


def write_brief(page: Page, options: Options) -> bytes:
    """The request as Markdown: its sentences, and tables of the options to approve and of ways to pay less."""
    brand, asked = options.brand, page.request
    may_be = [
        (
            option.name,
            words("{} {}", option.price, option.per),
            joined(" ", option.told),
            option.rent,
        )
        for option in asked.options
    ]
    ways = [(capital(way.change), way.rent, way.monthly, way.commits, way.gives_up) for way in asked.ways]
    moved = [words("{}, {}: {} to {}", mover.name, mover.span, mover.low, mover.high) for mover in asked.movers]
    lines = (*asked.serves, *asked.risks, *([f"Not in the price: {asked.excluded}."] if asked.excluded else []))
    parts = (
        plain(brand.name) if brand else "",
        f"# {plain(page.title)}",
        plain(" · ".join((page.as_of, *page.heads))),
        f"**{plain(asked.sentence)}.**",
        table_text(table("", ("To approve", Column("Price", right=True), "What that is", "Rent"), may_be)),
        *map(plain, asked.warnings),
        plain(asked.sure_of),
        plain(joined(" ", [words("{}.", asked.why), *asked.reasons])) if asked.why else "",
        plain(asked.less_only) if asked.less_only else "",
        f"{plain(asked.finding)}. {plain(joined('; ', moved))}." if moved else "",
        plain(asked.together) if asked.together else "",
        table_text(table("", _WAYS, ways)),
        plain(asked.owning) if asked.owning else "",
        bullets(map(plain, lines)),
        plain(joined(" ", page.as_measured)) if page.as_measured else "",
        plain(asked.basis) if asked.basis else "",
        f"sheetgen {plain(page.version)}, catalog {plain(page.catalog)}.",
        plain(brand.footer) if brand else "",
    )
    return document(parts)


def document(parts: Iterable[str]) -> bytes:
    """The non-empty parts, each a paragraph, as UTF-8."""
    return ("\n\n".join(filter(None, parts)) + "\n").encode()


def table_text(content: Table) -> str:
    """A table in Markdown; empty without rows."""
    if not content.rows:
        return ""
    heads, rule = [plain(c.head) for c in content.columns], ["---:" if c.right else "---" for c in content.columns]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *(map(plain, row) for row in content.rows)))


def plain(text: Text) -> str:
    """`text` on one line, escaped so that it shows as it is: no cells, markup, HTML or links."""
    line = _SPECIAL.sub(r"\\\1", " ".join(visible(str(text)).split()))
    line = _AUTOLINK.sub(r"\\\g<0>", line)
    return _LEADING.sub(lambda m: f"{m[1][:-1]}\\{m[1][-1]}", line)


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def source_text(source: Source) -> str:
    text = plain(source.text)
    url = source.web_url
    # Angle brackets and backslashes would end the address early.
    return f"[{text}](<{url}>)" if url and not any(c in "<>\\" for c in url) else text

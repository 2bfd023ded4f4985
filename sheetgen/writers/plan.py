"""The plan as Markdown and as CSV: the tables of its page, and a line for each service, quarter and quantile."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sheetgen.plan.pages import PlanPage
from sheetgen.sheet.page import Table
from sheetgen.writers.csv import field
from sheetgen.writers.markdown import bullets, plain, source_text, table_text


def plan_markdown(page: PlanPage) -> bytes:
    """The plan as GitHub-flavoured Markdown, to be pasted into a planning document."""
    return ("\n\n".join(part for part in _parts(page) if part) + "\n").encode()


def _parts(page: PlanPage) -> Iterator[str]:
    yield f"# {plain(page.title)}"
    yield plain(" · ".join(filter(None, (page.people, f"as of {page.as_of}"))))
    yield f"**{plain(page.ask)}**"
    yield plain(page.verdict)
    yield plain(page.next)
    yield from _tables(page.first)
    yield f"## Since the last plan\n\n{plain(page.since)}"
    yield from _tables(page.second)
    for part in page.services:
        yield f"## {plain(part.title)}"
        yield bullets(map(plain, part.lines))
        yield from _tables(part.tables)
    yield from _tables(page.further)
    yield "## Assumptions"
    yield bullets(map(plain, page.assumptions))
    yield "## Sources"
    yield bullets(map(source_text, page.sources))
    yield f"sheetgen {plain(page.version)}, catalog {plain(page.catalog)}."


def _tables(found: Iterable[Table]) -> Iterator[str]:
    for one in found:
        yield f"{'#' * one.level} {plain(one.title)}"
        yield table_text(one)


def plan_csv(record: Mapping[str, Any]) -> bytes:
    """Every service, quarter and quantile as a line, with the names and values of the JSON's `services`."""
    rows = record["services"]
    heads = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([field(row.get(name)) for name in heads] for row in rows)
    return out.getvalue().encode()

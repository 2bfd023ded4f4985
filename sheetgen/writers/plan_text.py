"""The plan as Markdown (the tables of its page) and as CSV (a line for each service, quarter and quantile)."""

from __future__ import annotations

from collections.abc import Iterator

from sheetgen.catalog.base import RawMapping
from sheetgen.plan.pages import PlanPage
from sheetgen.writers.csv import lines_of
from sheetgen.writers.formats import Options
from sheetgen.writers.markdown import bullets, document, plain, source_text, tables_text


def plan_markdown(page: PlanPage, options: Options) -> bytes:
    """The plan as GitHub-flavoured Markdown for a planning document."""
    return document(_parts(page))


def _parts(page: PlanPage) -> Iterator[str]:
    yield f"# {plain(page.title)}"
    yield plain(" · ".join(filter(None, (page.people, f"as of {page.as_of}"))))
    yield f"**{plain(page.ask)}**"
    yield plain(page.verdict)
    yield plain(page.next)
    yield from tables_text(page.first)
    yield f"## Since the last plan\n\n{plain(page.since)}"
    yield from tables_text(page.second)
    for part in page.services:
        yield f"## {plain(part.title)}"
        yield bullets(map(plain, part.lines))
        yield from tables_text(part.tables)
    yield from tables_text(page.further)
    yield "## Assumptions"
    yield bullets(map(plain, page.assumptions))
    yield "## Sources"
    yield bullets(map(source_text, page.sources))
    yield f"sheetgen {plain(page.version)}, catalog {plain(page.catalog)}."


def plan_csv(record: RawMapping, options: Options) -> bytes:
    """The services, quarters and quantiles as CSV, with the names and values of the JSON's `services`."""
    rows = record["services"]
    return lines_of(dict.fromkeys(name for row in rows for name in row), rows)

"""The plan as Markdown (the tables of its page) and as CSV (a line for each service, quarter and quantile)."""

from __future__ import annotations

from collections.abc import Iterator

from sheetgen.catalog.base import RawMapping
from sheetgen.plan.pages import PlanPage
from sheetgen.writers.csv import lines_of
from sheetgen.writers.formats import Options
from sheetgen.writers.markdown import bullets, document, plain, source_text, table_text


def plan_markdown(page: PlanPage, options: Options) -> bytes:
    """The plan as GitHub-flavoured Markdown for a planning document."""
    return document(_parts(page))


def _parts(page: PlanPage) -> Iterator[str]:
    yield f"# {plain(page.title)}"
    by = f"answer by {page.sign_by}" if page.sign_by else ""
    yield plain(" · ".join(filter(None, (page.people, f"as of {page.as_of}", by))))
    yield f"**{plain(page.sentence)}**"
    yield bullets(
        f"{plain(tile.name)} **{plain(tile.amount)}**{': ' if tile.facts else ''}{'; '.join(map(plain, tile.facts))}."
        for tile in page.tiles
    )
    yield from map(plain, page.warnings)
    for section in page.sections:
        if section.lines or section.table is not None:  # a picture is not of text
            yield f"## {plain(section.title)}"
        yield (bullets if len(section.lines) > 1 else "".join)(map(plain, section.lines))
        yield table_text(section.table) if section.table else ""
    yield "## Sources"
    yield bullets(map(source_text, page.sources))
    yield f"sheetgen {plain(page.version)}, catalog {plain(page.catalog)}."


def plan_csv(record: RawMapping, options: Options) -> bytes:
    """The services, quarters and quantiles as CSV, with the names and values of the JSON's `services`."""
    rows = record["services"]
    return lines_of(dict.fromkeys(name for row in rows for name in row), rows)

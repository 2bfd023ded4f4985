"""The plan as Markdown and as CSV: the tables of its page, and a line for each service, quarter and quantile."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from sheetgen.plan.pages import PlanPage
from sheetgen.writers.csv import field
from sheetgen.writers.markdown import bullets, plain, table_text


def plan_markdown(page: PlanPage) -> bytes:
    """The plan as GitHub-flavoured Markdown, to be pasted into a planning document."""
    return ("\n\n".join(part for part in _parts(page) if part) + "\n").encode()


def _parts(page: PlanPage) -> Iterator[str]:
    yield f"# {plain(page.title)}"
    yield plain(" · ".join(filter(None, (page.people, f"as of {page.as_of}"))))
    yield f"**{plain(page.ask)}**"
    for one in page.tables:
        yield f"{'#' * one.level} {plain(one.title)}"
        yield table_text(one)
    yield "## Assumptions"
    yield bullets(map(plain, page.assumptions))


def plan_csv(record: Mapping[str, Any]) -> bytes:
    """Every service, quarter and quantile as a line, with the names and values of the JSON's `services`."""
    rows = record["services"]
    heads = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([field(row.get(name)) for name in heads] for row in rows)
    return out.getvalue().encode()

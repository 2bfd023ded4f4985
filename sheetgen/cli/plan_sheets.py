"""The sizing sheet of each service of a plan, beside it: workbook and PDF, as `build` makes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sheetgen.cli.output import step

if TYPE_CHECKING:
    from sheetgen.brand import Brand
    from sheetgen.errors import Problems
    from sheetgen.plan.answer import Answer
    from sheetgen.writers.formats import Archive

OF_SHEET = ("xlsx", "pdf")


def sheet_names(answer: Answer, place: Path) -> dict[str, str]:
    """By service the name of its workbook, which stands in the plan's own folder."""
    from sheetgen.plan.sized_alone import alone

    services = (answer.plan.services[one.service].id for one in alone(answer))
    return {service: f"{place.name}.{service}.xlsx" for service in services}


def draw_sheets(
    answer: Answer, place: Path, names: Mapping[str, str], brand: Brand | None, archive: Archive, problems: Problems
) -> dict[Path, bytes]:
    """Workbook and PDF of every service by their files; what could not be drawn is added to the problems."""
    from sheetgen.cli.build import draw
    from sheetgen.plan.sized_alone import alone, sheet_options
    from sheetgen.recommend import solve
    from sheetgen.scenario.question import ask

    files: dict[Path, bytes] = {}
    catalog = answer.plan.catalog
    for one in alone(answer):
        service = answer.plan.services[one.service].id
        step(f"the sizing sheet of {service}")
        solved = solve(ask(catalog, sheet_options(answer, one)))
        found, missing = draw(solved, OF_SHEET, catalog, brand=brand, archive=archive)
        workbook = place.with_name(names[service])
        files |= {workbook.with_suffix(f".{ending}"): data for ending, data in found.items()}
        problems.extend(f"{service}: {line}" for line in missing)
    return files

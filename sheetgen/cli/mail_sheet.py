"""The sheet that a message carries: built by options, or a workbook that is there already."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sheetgen.errors import ScenarioError, shown

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog
    from sheetgen.recommend import Solution

NOT_OF_THE_SHEET = ("brand", "models")  # options that go with a workbook, too
BUILD_ONLY = ("format", "pdf_variant", "attach")


@dataclass(frozen=True)
class Sheet:
    """What is solved, and the workbook's bytes where it is there already."""

    solved: Solution
    catalog: Catalog
    workbook: bytes | None
    name: str | None
    folder: str | None
    brand: str | None


def sheet_of(workbook: str | None, catalogs: tuple[str, ...], options: dict[str, Any]) -> Sheet:
    """The sheet of these options, or of this workbook. Raises a SheetgenError."""
    from sheetgen.catalog import Catalog

    if workbook is None:
        return _built(Catalog, catalogs, options)
    given = [name for name, value in options.items() if value is not None and name not in NOT_OF_THE_SHEET]
    if given:
        flag = given[0].replace("_", "-")
        raise click.UsageError(f"--{flag} does not go with a workbook: that is attached as it is.")
    from sheetgen.pull import pull
    from sheetgen.workbook.package import read_file

    catalog, data = Catalog(*catalogs), read_file(Path(workbook))
    pulled = pull(workbook, catalog, options["models"])
    if other := pulled.other_results:
        raise ScenarioError(
            f"{shown(workbook, 200)}: {len(other):,} of its {len(pulled.found.results):,} results are not what its "
            "inputs give: it was not recalculated, or formulas were overwritten. Open and save it once; "
            "`sheetgen pull` names them, and with --format xlsx writes a workbook that agrees."
        )
    return Sheet(pulled.solved, catalog, data, Path(workbook).stem, None, options["brand"])


def _built(open_catalog: type[Catalog], catalogs: tuple[str, ...], options: dict[str, Any]) -> Sheet:
    from sheetgen.cli.scenario_file import TYPED, with_scenario
    from sheetgen.recommend import solve
    from sheetgen.scenario.question import ask

    asked = with_scenario(options.pop("scenario"), options, also=(TYPED, "out", "name", *BUILD_ONLY))
    for name in BUILD_ONLY:
        asked.pop(name, None)
    if not asked.get("models"):
        raise click.UsageError("Name a workbook, or what to build, such as --models 8b,70b,405b.")
    name, folder, brand = (asked.pop(key, None) for key in ("name", "out", "brand"))
    catalog = open_catalog(*catalogs)
    return Sheet(solve(ask(catalog, asked)), catalog, None, name, folder, brand)

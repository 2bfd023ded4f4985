"""`sheetgen diff`: what changed between two sheets."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import common
from sheetgen.cli.output import print_json, say

if TYPE_CHECKING:
    from sheetgen.workbook.bridge import Bridge
    from sheetgen.workbook.compare import Comparison
    from sheetgen.workbook.facts import SheetFacts

DIFF_SCHEMA = 1


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--block", type=click.Choice(["md"]),
              help="A short block to paste: what changed since A, with a money bridge per model.")  # fmt: skip
@click.option("--all", "show_all", is_flag=True, help="Every change, not the first ones of each section.")
@click.option("--exit-code", is_flag=True, help="Exit 1 where something changed, as git diff does.")
@common
def diff(
    before: str, after: str, block: str | None, show_all: bool, exit_code: bool, as_json: bool,
    catalogs: tuple[str, ...], quiet: bool,
) -> None:  # fmt: skip
    """What changed from sheet A to sheet B: load, inputs, prices, facts of models and GPUs, results.

    Each is a workbook of `sheetgen build`, edited or not, or the JSON of `build --format json` or `recommend --json`;
    of two kinds, what both say is compared. A workbook is read by its defined names, so rows may have moved. Numbers
    that are equal to 1e-9 are equal.

    \b
    --json      a, b (file, kind, as_of, version, catalog_sha256), equal; then a list each for recommendation, load,
                inputs, prices, models, gpus, precisions, results (of loads), what_if, every
                entry with name, label, before, after, words and, where it applies, change_fraction,
                change_usd, instance, purchase, row, column, tier; bridge (by
                model: load, before_usd, after_usd, steps of cause and usd, causes, how, why); not_compared; notes.
    bridge      how: "solved again" (each cause by itself: prices, then load, then facts and settings), "one cause",
                "unchanged", or "not separated", with the causes named and no figures made up.

    \b
    Examples:
      sheetgen diff last-quarter.xlsx this-quarter.xlsx
      sheetgen diff output/sizing-sheet.json edited.xlsx --json
      sheetgen diff q3.xlsx q4.xlsx --block md
    """
    if as_json and block:
        raise click.UsageError("--json and --block do not go together.")
    from sheetgen.catalog import Catalog
    from sheetgen.workbook.bridge import bridges
    from sheetgen.workbook.compare import compare
    from sheetgen.workbook.facts import read_sheets

    a, b = read_sheets(before, after)
    found = compare(a, b)
    bridge = () if found.is_equal else bridges(found, Catalog(*catalogs))
    if as_json:
        print_json(_document(found, bridge))
    elif block:
        from sheetgen.cli.diff_text import block_text

        say(block_text(found, bridge))
    else:
        from sheetgen.cli.diff_text import text

        say(text(found, bridge, show_all, quiet))
    if exit_code and not found.is_equal:
        raise SystemExit(1)


def _document(found: Comparison, bridge: tuple[Bridge, ...]) -> dict[str, Any]:
    return {
        "schema_version": DIFF_SCHEMA, "a": _side(found.a), "b": _side(found.b), "equal": found.is_equal,
        **{name: [change.data() for change in changes] for name, changes in found.sections.items()},
        "bridge": [asdict(one) for one in bridge], "not_compared": list(found.not_compared),
        "notes": [f"{side.path}: {note}" for side in (found.a, found.b) for note in side.notes],
    }  # fmt: skip


def _side(side: SheetFacts) -> dict[str, Any]:
    return {
        "file": side.path, "kind": side.kind, "as_of": side.as_of.isoformat() if side.as_of else None,
        "version": side.version or None, "catalog_sha256": side.catalog_sha256,
    }  # fmt: skip

"""`sheetgen schema`: the JSON Schema of what a command prints with --json."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sheetgen.cli.options import command as own_command
from sheetgen.cli.options import common
from sheetgen.cli.output import print_json

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

OF_COMMANDS = ("size", "recommend", "build", "plan", "diagnose", "diff")


@own_command()
@click.argument("command", type=click.Choice(OF_COMMANDS))
@common
def schema(command: str, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """The JSON Schema of what COMMAND prints with --json: every key, with its type and what it means.

    That of `recommend` is not for --budget-usd and --have, which turn the question round.

    \b
    Examples:
      sheetgen schema recommend
      sheetgen schema plan > plan.schema.json
    """
    from sheetgen.schemas import SCHEMAS

    print_json(SCHEMAS[command]())

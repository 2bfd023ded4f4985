"""`sheetgen schema`: the JSON Schema of what a command prints with --json."""

from __future__ import annotations

import click

from sheetgen.cli.options import command as own_command

OF_COMMANDS = ("size", "recommend", "build", "plan", "diagnose", "diff")


@own_command()
@click.argument("command", type=click.Choice(OF_COMMANDS))
def schema(command: str) -> None:
    """The JSON Schema of what COMMAND prints with --json: every key, with its type and what it means.

    That of `recommend` is not for --budget-usd and --have, which turn the question round.

    \b
    Examples:
      sheetgen schema recommend
      sheetgen schema plan > plan.schema.json
    """
    from sheetgen.cli.output import print_json
    from sheetgen.schemas import SCHEMAS

    print_json(SCHEMAS[command]())

"""The command line. Importing it loads click alone: each command loads what it needs when it runs."""

from __future__ import annotations

from typing import Any

import click

from sheetgen import __version__
from sheetgen.cli.build import build
from sheetgen.cli.check import check
from sheetgen.cli.explain import explain
from sheetgen.cli.listing import list_entries
from sheetgen.cli.recommend import recommend
from sheetgen.cli.show import show
from sheetgen.cli.size import size
from sheetgen.errors import SheetgenError


class Commands(click.Group):
    """Commands in the order of a day's work; what a user can mend is told in one line each, and exits 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SheetgenError as error:
            for problem in error.problems:
                click.echo(problem, err=True)
            ctx.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="sheetgen", message="%(prog)s %(version)s")
def main() -> None:
    """What it takes to serve a language model: GPU memory, the cheapest instance that fits, $ a month.

    \b
    Examples:
      sheetgen build --models 8b,70b,405b
      sheetgen recommend --model 70b --context 16k --users 200
      sheetgen size --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --users 32
      sheetgen COMMAND --help
    """


for command in (build, recommend, size, explain, list_entries, show, check):
    main.add_command(command)

"""Commands in this process, and options that those of several files of tests are given."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.testing import CliRunner, Result

from sheetgen.cli import main

Run = Callable[..., Result]

LOAD = ("--model", "70b", "--context", "16k", "--concurrent-requests", "32")
REPLICA = ("--model", "70b", "--gpu", "h100", "--tensor-parallel-size", "4", "--context", "16k")
POINT = (*REPLICA, "--concurrent-requests", "32")


def run_command(
    *arguments: object, command: click.Command = main, stdin: str | bytes | None = None, **environment: str
) -> Result:
    """The result of `sheetgen ARGUMENTS`, with whole sentences where no COLUMNS is given; a bug is raised."""
    runner = CliRunner(env={"COLUMNS": "1000", **environment})
    result = runner.invoke(command, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


class Ran:
    """The result of a command: exit code, stdout, stderr."""

    def __init__(self, result: Result) -> None:
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr


RunOfSome = Callable[..., Ran]  # of the commands that a folder of tests runs

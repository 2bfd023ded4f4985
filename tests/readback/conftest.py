from __future__ import annotations

from pathlib import Path

import books
import pytest
from click.testing import Result
from command_lines import run_command
from packages import TINY

from sheetgen.cli import Commands
from sheetgen.cli.build import diff

COMMANDS = Commands("sheetgen", commands={"diff": diff})


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small workbook of two models, two workloads, two tiers and twelve instances."""
    return books.build(tmp_path_factory.mktemp("book"), "tiny", TINY)[0]


class Ran:
    """The result of a command: exit code, stdout, stderr."""

    def __init__(self, result: Result) -> None:
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr


@pytest.fixture
def sheetgen():  # type: ignore[no-untyped-def]
    return lambda *arguments: Ran(run_command(*arguments, command=COMMANDS))

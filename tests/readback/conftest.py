from __future__ import annotations

from pathlib import Path

import books
import pytest
from command_lines import Ran, RunOfSome, run_command
from packages import TINY

from sheetgen.cli import Commands
from sheetgen.cli.build import diff

COMMANDS = Commands("sheetgen", commands={"diff": diff})


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small workbook of two models, two workloads, two tiers and twelve instances."""
    return books.build(tmp_path_factory.mktemp("book"), "tiny", TINY)[0]


@pytest.fixture
def sheetgen() -> RunOfSome:
    return lambda *arguments: Ran(run_command(*arguments, command=COMMANDS))

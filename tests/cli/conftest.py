from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sheetgen.cli import main

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Run `sheetgen ARGUMENTS` in this process; a bug's traceback is raised, not swallowed.

    Sentences are whole: how they are folded is in test_columns.py.
    """

    def call(*arguments: object) -> Result:
        result = CliRunner(env={"COLUMNS": "1000"}).invoke(main, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder: whatever a command leaves behind is seen there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path

from __future__ import annotations

from pathlib import Path

import pytest
from command_lines import Run, run_command


@pytest.fixture
def run() -> Run:
    """Run `sheetgen ARGUMENTS`. Sentences are whole: how they are folded is in test_columns.py."""
    return run_command


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder: whatever a command leaves behind is seen there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path

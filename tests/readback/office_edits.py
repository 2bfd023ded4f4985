"""Edits as a person makes them in LibreOffice: rows inserted, cells typed into, all saved by LibreOffice itself.

It is driven over UNO by a Python that has it (Debian: python3-uno, whose Python is the system's; another one by
SHEETGEN_UNO_PYTHON). Without one the tests that need it are skipped, or fail where CI requires LibreOffice.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from recalculation import Test, needs_libreoffice, soffice

Step = tuple[str, ...]


@functools.cache
def uno_python() -> str:
    """A Python that can drive LibreOffice, or ""."""
    for program in (os.environ.get("SHEETGEN_UNO_PYTHON", ""), "/usr/bin/python3", sys.executable):
        if program and Path(program).exists():
            done = subprocess.run([program, "-c", "import uno"], capture_output=True)
            if done.returncode == 0:
                return program
    return ""


def needs_uno(test: Test) -> Test:
    """Mark a test that edits with LibreOffice."""
    required = os.environ.get("SHEETGEN_REQUIRE_LIBREOFFICE") == "1"
    absent = pytest.mark.skipif(not uno_python() and not required, reason="no Python with LibreOffice's uno module")
    marked: Test = needs_libreoffice(absent(test))
    return marked


@dataclass(frozen=True)
class Job:
    """A file that LibreOffice opens, edits step by step, recalculates and saves as xlsx.

    calculate: all, or touched, which is what LibreOffice itself works out after an edit.
    Steps: clear SHEET CELL, insert SHEET ROW COUNT, columns SHEET COLUMN COUNT, delete SHEET ROW COUNT,
    rename SHEET NAME, remove SHEET, copy SHEET NAME, number SHEET CELL VALUE, text SHEET CELL VALUE,
    formula SHEET CELL FORMULA. Rows count from 1.
    """

    source: Path
    target: Path
    steps: Sequence[Step]
    calculate: str = "all"


def edit_in_libreoffice(jobs: Sequence[Job], folder: Path, timeout: float = 300) -> list[Path]:
    """All jobs in one run of LibreOffice, whose start takes longer than an edit. A hang is tried once more."""
    todo = folder / "jobs.json"
    todo.write_text(json.dumps([vars(job) for job in jobs], default=str))
    command = [uno_python(), str(Path(__file__).parent / "drive_libreoffice.py"), soffice()]
    text = ""
    for attempt in (0, 1):
        process = subprocess.Popen(
            [*command, str(folder / f"profile-{attempt}"), str(todo)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # soffice is its child
            text, _ = process.communicate()
        if process.returncode == 0 and all(job.target.exists() for job in jobs):
            return [job.target for job in jobs]
    names = ", ".join(job.target.name for job in jobs)
    raise AssertionError(f"LibreOffice did not save {names}: {text.strip() or 'it said nothing'}")

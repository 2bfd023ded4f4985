"""Same input, same bytes: whatever the order of hashes and the clock of the machine."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROGRAM = """
import sys
sys.path[:0] = sys.argv[2:]
import books
from pathlib import Path
books.build(Path(sys.argv[1]).parent, Path(sys.argv[1]).stem, {**books.LEAST, "models": "8b,gpt-oss-120b"})
"""


def built(path: Path, **environment: str) -> bytes:
    here = Path(__file__).parent
    command = [sys.executable, "-c", PROGRAM, str(path), str(here), str(here.parent)]
    subprocess.run(command, check=True, env={**os.environ, **environment})
    return path.read_bytes()


def test_two_builds_are_byte_identical(tmp_path: Path) -> None:
    one = built(tmp_path / "one.xlsx", PYTHONHASHSEED="1", TZ="Pacific/Kiritimati", LC_ALL="C")
    other = built(tmp_path / "other.xlsx", PYTHONHASHSEED="4711", TZ="America/Los_Angeles", LC_ALL="C.UTF-8")
    assert hashlib.sha256(one).hexdigest() == hashlib.sha256(other).hexdigest()


@pytest.mark.long
def test_no_part_carries_the_time_of_the_build(small_book: tuple[Path, object]) -> None:
    with zipfile.ZipFile(small_book[0]) as package:
        assert {item.date_time for item in package.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        core = package.read("docProps/core.xml").decode()
    assert core.count("2026-11-20T00:00:00Z") == 2  # created and modified: the sheet's date

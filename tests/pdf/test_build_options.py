"""`build --attach`: from the command line and from a scenario file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pypdf
import pytest
from click.testing import CliRunner, Result
from sheets import page_of, pdf_of

from sheetgen.cli import main
from sheetgen.errors import PageError
from sheetgen.writers.apart import PdfProcess
from sheetgen.writers.formats import Archive, Options
from sheetgen.writers.pdf import write_pdf
from sheetgen.writers.weasyprint_boxes import imported

FEW = ("--workloads", "chat", "--tiers", "32", "--instances", "aws/g6e.xlarge,aws/p5.48xlarge")
LEAST = ("--models", "8b", "--as-of", "2026-11-20", *FEW)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["build", *arguments])

    return run


@pytest.mark.long
def test_the_workbook_inside_is_the_one_beside(build: Any) -> None:
    done = build(*LEAST, "--name", "fleet", "--attach")
    assert done.exit_code == 0, done.stderr
    reader = pypdf.PdfReader("output/fleet.pdf")
    assert reader.attachments == {"fleet.xlsx": [Path("output/fleet.xlsx").read_bytes()]}
    (attachment,) = reader.trailer["/Root"]["/AF"]
    assert attachment.get_object()["/AFRelationship"] == "/Source"
    assert attachment.get_object()["/EF"]["/F"]["/Subtype"].endswith("spreadsheetml.sheet")


def test_a_scenario_may_say_it(build: Any) -> None:
    Path("fleet.yaml").write_text("models: 8b\nattach: true\nformat: pdf\n")
    assert build("--scenario", "fleet.yaml", *LEAST[2:]).exit_code == 0
    reader = pypdf.PdfReader("output/sizing-sheet.pdf")
    assert list(reader.attachments) == ["sizing-sheet.xlsx"]
    Path("fleet.yaml").write_text("models: 8b\nattach: perhaps\n")
    refused = build("--scenario", "fleet.yaml")
    assert refused.exit_code == 1 and refused.stderr.startswith("attach is 'perhaps'. ")


def test_attach_without_a_pdf_is_refused(build: Any) -> None:
    done = build(*LEAST, "--format", "xlsx", "--attach")
    assert done.exit_code == 1 and not Path("output").exists()
    assert done.stderr.startswith("attach ")


@pytest.fixture
def process() -> Iterator[PdfProcess]:
    process = PdfProcess()
    yield process
    process.end()
    assert process._process.returncode is not None


@pytest.mark.long
def test_a_process_apart_draws_the_same_file(process: PdfProcess) -> None:
    process.send(page_of("8b"), None, Archive())
    assert process.fetch() == pdf_of("8b")


def test_a_process_apart_raises_what_the_writer_raises(process: PdfProcess) -> None:
    page = replace(page_of("8b"), title="many words " * 9000)
    process.send(page, None, Archive())
    with pytest.raises(PageError) as there:
        process.fetch()
    with pytest.raises(PageError) as workdir:
        write_pdf(page, Options())
    assert there.value.problems == workdir.value.problems


def test_a_process_that_dies_gives_nothing(process: PdfProcess) -> None:
    process._process.kill()
    process.send(page_of("8b"), None, Archive())
    assert process.fetch() is None


@pytest.mark.long
def test_a_build_from_the_shell_writes_the_same_pdf(build: Any, tmp_path: Path) -> None:
    """There it is drawn apart; here, where WeasyPrint is loaded, it is not."""
    command = [sys.executable, "-m", "sheetgen", "build", *LEAST, "--out", str(tmp_path / "there")]
    subprocess.run(command, capture_output=True, check=True)
    imported()
    assert build(*LEAST).exit_code == 0
    there, workdir = (tmp_path / folder / "sizing-sheet.pdf" for folder in ("there", "output"))
    assert there.read_bytes() == workdir.read_bytes()

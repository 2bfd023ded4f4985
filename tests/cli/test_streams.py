"""Results on any stdout: what its encoding cannot hold is written as near as it can be, and JSON stays whole."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from sheetgen.cli import main, output
from sheetgen.cli.output import print_json, print_text, say, take_any_text

ENCODINGS = ["ascii", "cp1252", "latin-1", "cp437", "koi8-r", "shift_jis", "gbk", "utf-16", "utf-8"]
TEXT = "3 × 2 – 1 €, Müller … → ↓ 🙂"
PLAIN = "3 x 2 - 1 EUR, Muller ... -> down ?"


@pytest.mark.some(1)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_command_prints_on_any_stdout(encoding: str) -> None:
    """The commands whose words or JSON hold letters beyond ASCII."""
    runner = CliRunner(charset=encoding)
    for arguments in ("show h100", "recommend --model 8b --json", "recommend --model 8b", "list models"):
        result = runner.invoke(main, arguments.split())
        assert result.exception is None and result.exit_code == 0, arguments
        if "--json" in arguments:
            assert json.loads(result.stdout_bytes.decode(encoding))["cells"]
    usage = runner.invoke(main, ["show", "x100 × 🙂"])
    assert usage.exit_code == 1 and usage.stderr_bytes.decode(encoding).startswith("'x100 ")


def written(encoding: str, monkeypatch: pytest.MonkeyPatch, write: Callable[[], None]) -> str:
    raw = io.BytesIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding))
        take_any_text()
        write()
        sys.stdout.flush()
        return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_a_stream_cannot_hold_is_written_plainly(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (
        written(encoding, monkeypatch, lambda: print_text(TEXT)),
        written(encoding, monkeypatch, lambda: say(TEXT)).rstrip("\n"),
    ):
        if encoding in ("ascii", "utf-8", "utf-16"):
            assert text == (PLAIN if encoding == "ascii" else TEXT)
        else:
            assert text.startswith("3 ") and text.endswith("?") and len(text) >= len(TEXT)
    document = written(encoding, monkeypatch, lambda: print_json({TEXT: [TEXT]}))
    assert json.loads(document) == {TEXT: [TEXT]}
    assert document.isascii() == (not encoding.startswith("utf"))


def test_a_closed_stdin_is_one_line() -> None:
    command = ["sh", "-c", '"$0" -m sheetgen diagnose - <&-', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("stdin: is closed.")
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_leaves_is_no_failure_to_show() -> None:
    command = ["sh", "-c", '"$0" -m sheetgen recommend --model 8b --json | head -c 1', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "{" and done.stderr == ""


class Watched(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_person_who_waits_is_shown_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_SECONDS", "NEXT_SECONDS"):
        monkeypatch.setattr(output, name, 0.05)
    for quiet, watches, expected in ((False, True, True), (True, True, False), (False, False, False)):
        seen = Watched() if watches else io.StringIO()
        monkeypatch.setattr(sys, "stderr", seen)
        with output.progress(quiet):
            output.step("drawing pdf")
            time.sleep(0.2)
        assert ("drawing pdf ... 0 s\n" in seen.getvalue()) == expected and (expected or not seen.getvalue())
    with output.progress(False):
        pass  # work that is done at once says nothing
    assert seen.getvalue() == ""

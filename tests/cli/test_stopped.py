"""A command that is stopped leaves the old files or the new ones; what a killed one left is swept by the next."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sheetgen.errors import ScenarioError
from sheetgen.writers import safe_files
from sheetgen.writers.safe_files import write_files

WRITES = """
import signal
import sys
from pathlib import Path
from sheetgen.cli import main
from sheetgen.writers.safe_files import write_files
import click

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # in the background, or by nohup, some are ignored
    signal.signal(number, signal.SIG_DFL)

@main.command()
def again():
    print("ready", flush=True)
    for i in range(1, 10_000):
        write_files({Path(f"s.{kind}"): f"{i}".encode() * 30_000 for kind in ("xlsx", "pdf", "json", "md")})

main(["again"])
"""
KINDS = ("xlsx", "pdf", "json", "md")


def contents(folder: Path) -> list[bytes]:
    return [(folder / f"s.{kind}").read_bytes()[:1000] for kind in KINDS if (folder / f"s.{kind}").exists()]


def stopped_by(number: int, after: float, folder: Path) -> subprocess.CompletedProcess[str]:
    with subprocess.Popen(
        [sys.executable, "-c", WRITES], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout and child.stdout.readline() == "ready\n"
        time.sleep(after)
        child.send_signal(number)
        out, err = child.communicate(timeout=20)
    return subprocess.CompletedProcess([], child.returncode, out, err)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_clears_away_and_says_so(number: signal.Signals, tmp_path: Path) -> None:
    done = stopped_by(number, 0.05, tmp_path)
    assert done.returncode == 128 + number and done.stderr.startswith(f"stopped by {number.name}.")
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr
    assert len({data[:1] for data in contents(tmp_path)}) <= 1 and not list(tmp_path.glob(".*"))


def test_the_next_run_sweeps_what_a_kill_left(tmp_path: Path) -> None:
    chance = random.Random(1)
    for _ in range(4):
        stopped_by(signal.SIGKILL, chance.uniform(0.01, 0.05), tmp_path)
        write_files({tmp_path / f"s.{kind}": b"new" for kind in KINDS})
        assert contents(tmp_path) == [b"new"] * 4 and not list(tmp_path.glob(".*"))


def test_a_stop_that_waited_for_the_files_says_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from sheetgen.cli import main

    replace = Path.replace

    def stopped_there(part: Path, target: Path) -> Path:
        os.kill(os.getpid(), signal.SIGTERM)  # in the middle of the set: it is held back until the last is in place
        return replace(part, target)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "replace", stopped_there)
    result = CliRunner().invoke(main, ["plan", "init"])
    assert result.exit_code == 128 + signal.SIGTERM
    assert result.stderr == "stopped by SIGTERM. plan.yaml: written before.\n"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.yaml"]


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    return child.pid


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    mine = safe_files.part_of(tmp_path / "s.xlsx")  # of a process that lives
    mine.write_text("x")
    for other in (".bashrc", ".s.xlsx.part", f".s.xlsx.00000000-{dead_process()}-abcdefgh.part"):
        (tmp_path / other).write_text("x")
    before = sorted(tmp_path.iterdir())
    safe_files.sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    assert mine in before


@pytest.mark.parametrize("after", [0.02, 0.06, 0.12, 0.2])
def test_an_early_interrupt_is_no_traceback(after: float, tmp_path: Path) -> None:
    """From the first line of ours on; before that Python itself is starting."""
    code = (
        "import sys; print('up', flush=True); sys.argv[1:] = ['list', 'gpus']; from sheetgen.__main__ import run; run()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout and child.stdout.readline() == "up\n"
        time.sleep(after)
        child.send_signal(signal.SIGINT)
        err = child.communicate(timeout=20)[1]
    assert child.returncode in (-signal.SIGINT, 128 + signal.SIGINT, 0)
    # The second is click's own word, in the few lines between parsing and the command.
    assert err in ("", "\nAborted!\n", "stopped by SIGINT. Nothing was written.\n")


@pytest.mark.parametrize(("step", "said_by_click"), [("parse_args", ""), ("invoke", "\nAborted!\n")])
def test_an_interrupt_beside_a_command_has_its_exit_code(step: str, said_by_click: str) -> None:
    """Before the command click ended with 1, as for a wrong option."""
    code = (
        "import os, signal, sys; from sheetgen import cli; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # a job in the background begins without
        f"cli.Commands.{step} = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT); "
        "sys.argv[1:] = ['list', 'gpus']; cli.main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) == (128 + signal.SIGINT, said_by_click)


def test_an_interrupt_within_a_destructor_ends_the_command() -> None:
    """Python drops what a destructor raises, and the command went on to its end, with further signals ignored."""
    code = (
        "import os, signal, sys, time\nfrom sheetgen.cli import main\n"
        "class Dying:\n    def __del__(self): os.kill(os.getpid(), signal.SIGTERM)\n"
        "@main.command()\ndef again():\n    dying = Dying()\n    del dying\n    time.sleep(30)\n"
        "main(['again'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False)
    assert (run.returncode, run.stderr) == (128 + signal.SIGTERM, "stopped by SIGTERM. Nothing was written.\n")


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with safe_files.stops_cleanly():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_set_that_cannot_be_renamed_leaves_no_parts(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(ScenarioError):
        write_files({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b"]


def test_a_signal_within_the_making_of_a_class_is_no_traceback() -> None:
    """Python 3.11 makes a RuntimeError of what `__set_name__` raises, as while pydantic is imported."""
    code = (
        "import os, signal, sys; from sheetgen import cli; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "Named = type('Named', (), {'__set_name__': lambda *a: os.kill(os.getpid(), signal.SIGINT)}); "
        "cli.Commands.invoke = lambda *a, **k: type('Owner', (), {'part': Named()}); "
        "sys.argv[1:] = ['list', 'gpus']; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 128 + signal.SIGINT and "Traceback" not in done.stderr

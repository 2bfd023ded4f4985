"""A pipe stands for a file wherever a command line names one; a device, a log without an end or a file of any size
ends in one line; and what another file names is never waited for."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_lines import Run

from sheetgen.catalog import Catalog
from sheetgen.errors import CatalogError, ScenarioError
from sheetgen.input_files import read_bounded
from sheetgen.mail import MailError
from sheetgen.mail.smtp import server
from sheetgen.plan import actuals

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PLAN = "templates/plan.yaml"
# Commands with the file that each reads in place of {}.
DOORS = {
    "build --scenario {} --models 8b --format json": "examples/scenario.yaml",
    "recommend --model 8b --context 8k --users 4 --measured {},gpu=h100,tp=1": "examples/result.json",
    "size --model 8b --gpu h100 --context 8k --users 4 --measured {}": "examples/startup.log",
    "size --from-log {}": "examples/startup.log",
    "size --batch {}": "examples/points.csv",
    "size --model 8b --gpu spark --kv-budget {}": "kv.env",
    "plan check {}": PLAN,
    "plan actuals {}": "actuals.csv",
    "diff {} {}": "examples/edited-sheet.xlsx",
    "diagnose {}": "examples/server.log",
    "catalog prices {} --as-of 2026-11-20": "examples/prices.csv",
}
WRITTEN = {"kv.env": "max_batch_size=8\nmax_seq_len=4096\n", "actuals.csv": "quarter,usd\n2027-Q1,1000\n"}


@pytest.fixture(autouse=True)
def _not_for_ever() -> Iterator[None]:
    """A command that waits is ended, and its test fails."""

    def ended(*_: object) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def content(file: str) -> bytes:
    return WRITTEN[file].encode() if file in WRITTEN else (ROOT / file).read_bytes()


def piped(data: bytes) -> int:
    """A descriptor from which the data can be read once."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(data)

    threading.Thread(target=write).start()
    return reading


@pytest.mark.parametrize("line", DOORS)
def test_a_pipe_answers_as_its_file(line: str, run: Run, workdir: Path) -> None:
    data, words = content(DOORS[line]), line.split()
    (workdir / "f").write_bytes(data)
    of_file = run(*(word.replace("{}", "f") for word in words))
    written = {path.name: path.read_bytes() for path in workdir.glob("output/*")}
    reading = piped(data)
    try:
        of_pipe = run(*(word.replace("{}", f"/dev/fd/{reading}") for word in words))
    finally:
        os.close(reading)
    assert of_file.exit_code == 0, of_file.output
    assert of_pipe.exit_code == 0, of_pipe.output
    assert of_pipe.stdout.replace(f"/dev/fd/{reading}", "f") == re.sub(r"\bf\b", "f", of_file.stdout)
    assert {path.name: path.read_bytes() for path in workdir.glob("output/*")} == written


@pytest.mark.parametrize("line", DOORS)
def test_a_device_without_an_end_is_one_line(line: str, run: Run, workdir: Path) -> None:
    result = run(*(word.replace("{}", "/dev/zero") for word in line.split()))
    assert result.exit_code == 1 and result.stderr.startswith("/dev/zero: ") and result.stderr.count("\n") == 1
    assert re.search("larger than|more than|binary data", result.stderr), result.stderr
    assert not list(workdir.iterdir())


def test_a_config_comes_through_a_pipe(run: Run, workdir: Path) -> None:
    config = (ROOT / "tests/data/configs/qwen3-8b.json").read_bytes()
    reading = piped(config)
    piped_entry = run("catalog", "import", f"/dev/fd/{reading}", "--id", "mine", "--name", "Mine", "--json")
    os.close(reading)
    (workdir / "c.json").write_bytes(config)
    entry = run("catalog", "import", "c.json", "--id", "mine", "--name", "Mine", "--json")
    assert piped_entry.exit_code == entry.exit_code == 0
    assert piped_entry.stdout.replace("config.json of model", "c.json of c") == entry.stdout


def test_files_that_a_piped_plan_names_are_found_from_here(run: Run, workdir: Path) -> None:
    (workdir / "result.json").write_bytes(content("examples/result.json"))
    plan = content(PLAN).decode().replace("\npolicy:\n", "\npolicy:\n  measured: ['result.json,gpu=h100,tp=1']\n")
    assert "result.json" in plan
    reading = piped(plan.encode())
    result = run("plan", "check", f"/dev/fd/{reading}")
    os.close(reading)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("key", ["measured", "brand"])
def test_a_pipe_that_a_scenario_names_is_not_waited_for(key: str, run: Run, workdir: Path) -> None:
    os.mkfifo(workdir / "pipe.yaml")
    for name in ("pipe.yaml", "/dev/zero", "/dev/stdin"):
        (workdir / "s.yaml").write_text(f"models: 8b\n{key}: {name}\n")
        result = run("build", "--scenario", "s.yaml")
        assert result.exit_code == 1 and "is not a file" in result.stderr, result.output


@pytest.mark.parametrize("line", ["policy:\n  measured: pipe.json\n", "plan:\n  since: pipe.json\n"])
def test_a_pipe_that_a_plan_names_is_not_waited_for(line: str, run: Run, workdir: Path) -> None:
    os.mkfifo(workdir / "pipe.json")
    section = line.split("\n")[0]
    (workdir / "p.yaml").write_text(content(PLAN).decode().replace(f"\n{section}\n", f"\n{line}", 1))
    result = run("plan", "build", "p.yaml", "--format", "json")
    assert result.exit_code == 1 and "pipe.json: is not a file" in result.stderr, result.output


def test_a_folder_of_catalogs_with_a_pipe_or_a_huge_file(run: Run, workdir: Path) -> None:
    (workdir / "mine" / "other").mkdir(parents=True)
    (workdir / "mine" / "workloads.yaml").write_bytes((ROOT / "catalogs" / "workloads.yaml").read_bytes())
    before = Catalog(workdir / "mine").catalog_sha256()
    os.mkfifo(workdir / "mine" / "other" / "pipe.yaml")
    (workdir / "mine" / "folder.yaml").mkdir()
    assert Catalog(workdir / "mine").catalog_sha256() == before
    with (workdir / "mine" / "other" / "huge.yaml").open("wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(CatalogError, match=r"other/huge\.yaml: is larger than 1,000,000 bytes"):
        Catalog(workdir / "mine").catalog_sha256()


def test_a_pipe_in_place_of_an_output_is_not_read(run: Run, workdir: Path) -> None:
    os.mkfifo(workdir / "plan.yaml")
    result = run("plan", "init", "--out", ".")
    assert result.exit_code == 1 and "plan.yaml" in result.stderr
    result = run("catalog", "import", ROOT / "tests/data/configs/qwen3-8b.json", "--out", "plan.yaml")
    assert result.exit_code == 1 and "plan.yaml" in result.stderr


def test_a_file_in_place_of_a_folder_is_said(run: Run, workdir: Path) -> None:
    (workdir / "file").write_text("")
    for folder in ("file", "file/below", "/dev/null"):
        result = run("plan", "init", "--out", folder)
        assert result.exit_code == 1 and "cannot be written (its folder is a file)" in result.stderr, result.output


def test_a_table_of_any_size_is_read_within_bounds(run: Run, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (workdir / "sparse.csv").open("wb") as file:
        file.truncate(5 << 30)
    result = run("size", "--batch", "sparse.csv")
    assert result.exit_code == 1 and "line 1 has more than 1,000,000 characters" in result.stderr
    monkeypatch.setattr("sheetgen.cli.batch.MOST_LINES", 3)
    (workdir / "in.csv").write_text("model,gpu\n8b,h100\n8b,h100\n")
    assert run("size", "--batch", "in.csv").exit_code == 0
    (workdir / "in.csv").write_text("model,gpu\n8b,h100\n8b,h100\n8b,h100\n")
    result = run("size", "--batch", "in.csv")
    assert result.exit_code == 1 and "has more than 3 lines" in result.stderr and result.stdout == ""


def test_money_spent_is_never_cut_at_a_limit(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "quarter,usd\n2027-Q1,1000\n2027-Q1,2000\n"
    (workdir / "a.csv").write_text(text)
    assert sum(line.usd or 0 for line in actuals.read_actuals(workdir / "a.csv").lines) == 3000
    monkeypatch.setattr(actuals, "MOST_BYTES", text.index("2000"))  # a whole first line, and half of the second
    with pytest.raises(ScenarioError, match="is larger than"):
        actuals.read_actuals(workdir / "a.csv")


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="no /proc")
def test_a_file_that_hides_its_size_is_read_whole() -> None:
    assert read_bounded(Path("/proc/version"), 10_000) == Path("/proc/version").read_bytes() != b""


def test_a_login_through_a_pipe(workdir: Path) -> None:
    reading = piped(b'machine smtp.acme.com login ann password "two words"\n')
    notes: list[str] = []
    login = server("smtp.acme.com", None, f"/dev/fd/{reading}", {}, notes).credentials
    os.close(reading)
    assert login is not None and (login.user, notes) == ("ann", [])
    with pytest.raises(MailError, match="/dev/zero: is larger than"):
        server("smtp.acme.com", None, "/dev/zero", {}, [])

"""Every text that one command renews is today's: the approved outputs, docs/reference/, and what commands print in
README.md and docs/, where each runs as it is written and every link leads somewhere.

A change of wording fails here alone. In the gate, commands of the docs that draw a workbook or a PDF, and those that
read what these write, are only parsed, and so are two thirds of the answers whose print no page shows.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from approved import FOLDER, OUTPUTS, RENEW, output
from click.testing import CliRunner
from docs_pages import (
    NOT_RUN,
    PAGES,
    PARSED_PAGES,
    READERS_FILES,
    ROOT,
    Command,
    as_shown,
    commands,
    name,
    parse,
    run,
    set_up,
    without_fingerprints,
)
from reference_pages import DOCUMENTS
from reference_pages import FOLDER as REFERENCE

from sheetgen.cli import main
from sheetgen.cli.answer_text import _no_hardware
from sheetgen.question.inputs import BY_OPTION
from sheetgen.report.answer_lines import answer_lines

RENEWED = f"`{RENEW}` writes it anew: read the difference."
MOST_WORDS = 900  # of README.md, which is read in a quarter of an hour with its commands


def is_one_of_many(command: Command) -> bool:
    """True where it is an answer like others of its page, and the page does not show what it prints: in the gate every
    third of these lines is run."""
    return command.words[:1] == ["recommend"] and not command.printed and command.line % 3 != 0


def did(command: Command, page: Path, whole: bool) -> str:
    """The fault of a command; "" where there was none."""
    where = f"{name(page)}:{command.line}: {command.typed}"
    if not command.words:
        return f"{where}: is no command of ours, nor in NOT_RUN."
    lacks = command.lacks()
    may_lack = not whole or name(page) in READERS_FILES
    is_left_out = ((command.is_slow() or is_one_of_many(command)) and not whole) or (lacks and may_lack)
    if name(page) in PARSED_PAGES or command.only_parsed() or is_left_out:
        status, output = parse(command)
        return f"{where}\n{output}" if status else ""
    if lacks:
        return f"{where}: there is no {', '.join(lacks)}."
    status, output = run(command)
    if status:
        return f"{where}\n{output}"
    shown = as_shown(command.printed, output)
    is_other = without_fingerprints(shown) != without_fingerprints(command.printed)
    return f"{where} prints\n{shown}{RENEWED}" if command.printed and is_other else ""


def wrong(page: Path, whole: bool) -> list[str]:
    return [problem for command in commands(page) if command.is_run() if (problem := did(command, page, whole))]


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(set_up(tmp_path))
    return tmp_path


@pytest.mark.parametrize("file", OUTPUTS)
def test_approved_output(file: str) -> None:
    assert output(file) == (FOLDER / file).read_text("utf-8"), RENEWED


@pytest.mark.parametrize("file", DOCUMENTS)
def test_reference_page(file: str) -> None:
    assert DOCUMENTS[file]() == (REFERENCE / file).read_text("utf-8"), RENEWED


@pytest.mark.some(8)
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands(page: Path, workdir: Path) -> None:
    assert wrong(page, whole=False) == []


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if any(c.is_run() for c in commands(page))], ids=name)
def test_commands_that_draw(page: Path, workdir: Path) -> None:
    assert wrong(page, whole=True) == []


def test_the_python_of_the_reference_runs(workdir: Path) -> None:
    (code,) = re.findall(
        r"^```python\n(.*?)^```", (REFERENCE / "python.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["point"]["fits"] and names["answer"]["chance"] > 0.5
    assert [path.is_file() for path in names["sheet"].paths.values()] == [True, True]


def test_a_wrong_command_is_found(workdir: Path) -> None:
    page = ROOT / "README.md"
    for typed in ("./run sise --model 70b", "./run build --modle 70b", "./run size --model no-such-model", "make test"):
        assert did(Command(typed, 1), page, whole=False), typed
    assert did(Command("./run list engines", 1, printed="nothing\n"), page, whole=False)
    assert did(Command("./run diagnose examples/none.log", 1), page, whole=True)
    assert not Command("pipx install .", 1).is_run() and all(NOT_RUN.values())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [script for script in re.findall(r"`python (\S+\.py)", text) if not (ROOT / script).is_file()] == []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            file, _, heading = target.partition("#")
            linked = page.parent / file if file else page
            assert linked.exists(), f"{name(page)}: {target}"
            headings = re.findall(r"^#+ (.*)", linked.read_text("utf-8"), re.MULTILINE) if heading else []
            slugs = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert not heading or heading in slugs, f"{name(page)}: {target}"


def test_every_row_of_an_answer_is_explained() -> None:
    source = inspect.getsource(answer_lines) + inspect.getsource(_no_hardware)
    rows = {*re.findall(r'\("([a-z ]+)", _', source), *re.findall(r'yield "([a-z ]+)", ', source)}
    page = (ROOT / "docs/how-to/read-the-answer.md").read_text("utf-8")
    assert len(rows) > 15 and [row for row in rows if f"`{row}`" not in page] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= MOST_WORDS


def test_completion_as_documented() -> None:
    env = {"_SHEETGEN_COMPLETE": "bash_complete", "COMP_WORDS": "sheetgen si", "COMP_CWORD": "1"}
    assert CliRunner(env=env).invoke(main, prog_name="sheetgen").output == "plain,size\n"


def test_defaults_in_the_readme() -> None:
    """Of each option in the list of defaults, the value beside it is the input's."""
    listed = (ROOT / "README.md").read_text("utf-8").split("## What is assumed")[1].split("\n## ")[0]
    pairs = re.findall(r"`--([\w-]+) ([^`]+)`", listed)
    assert len(pairs) > 5
    for option, value in pairs:
        setting = BY_OPTION[{"context": "context_tokens"}.get(option, option.replace("-", "_"))]
        if setting.default is not None:
            assert setting.parse(value) == setting.default, option

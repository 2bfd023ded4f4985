"""The commands of README.md and docs/: each is run as it is written, and its output stands below it as it is printed.

python tests/docs_pages.py     writes the outputs anew
"""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import click
from click.testing import Result
from command_lines import run_command

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")), ROOT / "CONTRIBUTING.md"]
DAY = "1795132800"  # 2026-11-20
WIDTH = "100"
CALLS = ("./run ", "sheetgen ", "python -m sheetgen ")
# What is not run, by how it begins, and why.
NOT_RUN = {
    "git clone": "needs the network",
    "./run test": "is this",
    "./run lint": "is a part of it",
    "python -m venv": "sets up a machine",
    "python -m pip": "sets up a machine",
    "pip install": "sets up a machine",
    "pipx": "sets up a machine",
    "uv": "sets up a machine",
    "cp ": "is the shell's",
    'eval "$(': "is the shell's",
    "docker ": "needs an engine",
    "vllm-env/": "needs an engine",
}
PARSED = {"--smtp": "needs a server", "https://": "needs the network"}
PARSED_PAGES = ("docs/reference/commands.md",)  # examples of --help: they name files of the reader's
READERS_FILES = (
    "docs/how-to/plan-a-quarter.md",
)  # pages whose commands may name files of the reader's; those are only parsed
SLOW = ("build", "mail", "plan")
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"`((?:\./run|sheetgen) [^`]+)`")  # within a sentence
_FILE = re.compile(r"[\w.-]+(/[\w.-]+)*\.(xlsx|json|yaml|csv|log|eml|pdf|gz)")


@dataclass
class Command:
    """One command of a page, without its comment; `words` is what it says to sheetgen, without the file that takes its
    output. stdin: the file that `cat` gives it. printed: what the page says
    that the last command of a block prints, "" where it says nothing; it stands at `span`. is_named: it
    stands in a sentence, and is only parsed."""

    typed: str
    line: int
    printed: str = ""
    span: tuple[int, int] = (-1, -1)
    stdin: str = ""
    is_named: bool = False
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        call = self.typed
        if piped := re.match(r"cat (\S+) \| (.*)", call):
            self.stdin, call = piped[1], piped[2]
        call = re.sub(r" > \S+$", "", call)
        call = next((call.removeprefix(start) for start in CALLS if call.startswith(start)), "")
        self.words = shlex.split(call)

    def is_run(self) -> bool:
        return not self.typed.startswith(tuple(NOT_RUN))

    def is_slow(self) -> bool:
        """True where it draws a workbook or a PDF."""
        return self.words[0] in SLOW

    def only_parsed(self) -> bool:
        return self.is_named or any(mark in self.typed for mark in PARSED)

    def lacks(self) -> list[str]:
        """Its files that are not there; those that it writes are not meant."""
        writes = ("--to", "--out", "--name")
        pairs = zip(["", *self.words], self.words, strict=False)
        return [w for before, w in pairs if _FILE.fullmatch(w) and before not in writes and not Path(w).exists()]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands(page: Path) -> Iterator[Command]:
    text = page.read_text("utf-8")
    for block in _BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 2
        lines = block[1].replace("\\\n", "  ").splitlines()
        typed = [re.sub(r"(^|\s+)#.*", "", line).strip() for line in lines]
        for i, command in enumerate(typed):
            if command:
                printed = (block[2] or "", block.span(2)) if i == len(typed) - 1 else ()
                yield Command(" ".join(command.split()), line + i, *printed)
    if name(page) not in PARSED_PAGES:
        for match in _NAMED.finditer(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
            yield Command(match[1], 0, is_named=True)


def run(command: Command) -> tuple[int, str]:
    """Its exit status, and its result, of one that failed what it says, too."""
    stdin = Path(command.stdin).read_text("utf-8") if command.stdin else None
    result = invoke(command.words, stdin)
    return result.exit_code, result.output if result.exit_code else result.stdout


def invoke(words: Sequence[str], stdin: str | None = None) -> Result:
    """The result of a command on the day of the docs, in their width; a bug keeps its traceback."""
    return run_command(*words, stdin=stdin, COLUMNS=WIDTH, SOURCE_DATE_EPOCH=DAY)


def parse(command: Command) -> tuple[int, str]:
    """The same, but no command does anything."""
    with patch.object(click.Command, "invoke"):
        return run(command)


def as_shown(printed: str, output: str) -> str:
    """The output as a page shows it: to where it breaks off, if it ends with dots."""
    *shown, last = printed.splitlines() or [""]
    if last == "...":
        return "\n".join([*output.splitlines()[: len(shown)], last]) + "\n"
    return output.rstrip("\n") + "\n"


def without_fingerprints(text: str) -> str:
    """The output of a command without the fingerprints of the catalogs, which an entry more changes."""
    return re.sub(r"\b(catalog|today's is) [0-9a-f]{8}\b", r"\1 ...", text)


def set_up(folder: Path) -> Path:
    """Copy the files that the commands of the docs find where they are run."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(ROOT / "templates" / "brand", folder / "templates" / "brand")
    return folder


def write() -> None:
    """Write the outputs in the pages of docs anew."""
    for page in PAGES:
        text, outputs = page.read_text("utf-8"), list[tuple[int, int, str]]()
        with tempfile.TemporaryDirectory() as folder, chdir(set_up(Path(folder))):
            for command in commands(page):
                if command.is_run() and not command.only_parsed() and name(page) not in PARSED_PAGES:
                    output = run(command)[1]
                    if command.printed:
                        outputs.append((*command.span, as_shown(command.printed, output)))
        for start, end, shown in reversed(outputs):
            text = text[:start] + shown + text[end:]
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    write()

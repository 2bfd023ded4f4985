"""The labelled logs of two folders, and what the rules make of a text."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sheetgen.catalog import Catalog
from sheetgen.catalog.signatures import Signature, SignatureFile
from sheetgen.diagnose.cause import HEALTHY, NOT_AN_OOM, UNDETERMINED, Verdict, verdict_of
from sheetgen.diagnose.reading import read

LOGS = Path(__file__).parent / "logs"
MORE = Path(__file__).parent / "more_logs"
WRITTEN = Path(__file__).parent / "written.txt"
QUIET = Path(__file__).parent / "quiet.txt"
PROJECT = Path(__file__).parents[2]
STARTS = PROJECT / "tests" / "startup" / "logs"
CATALOG = Catalog()


@dataclass(frozen=True)
class Labelled:
    """One excerpt; `thread` is the public thread that it is from, several excerpts may share one.

    `part` is of the second set: `mended` (seen when rules were mended), `held_out` (not seen until after that), `later`
    and `last` (collected and run after the first and after all mends), `fresh` and `fresh_held_out` (of 2026-11-29).
    """

    file: str
    engine: str
    label: str
    decidable: str
    thread: str
    part: str = ""

    @property
    def path(self) -> Path:
        return (MORE if self.part else LOGS) / self.file

    def is_right(self, verdict: Verdict) -> bool:
        """The label, or where the file cannot decide no claim to know."""
        if self.decidable == "no":
            return verdict.cause.label == UNDETERMINED or verdict.cause.confidence < 0.5
        return verdict.cause.label == self.label


@cache
def corpus() -> tuple[Labelled, ...]:
    """The reference's set: the rules were written with these logs in sight."""
    return _labelled(LOGS)


@cache
def more() -> tuple[Labelled, ...]:
    """The second set, of other threads: each was labelled before it was run."""
    return _labelled(MORE)


def _labelled(folder: Path) -> tuple[Labelled, ...]:
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Labelled(
            r["file"],
            r["engine"].replace("_", "-"),
            r["label"],
            r["decidable_from_file"],
            r["source"],
            r.get("part", ""),
        )
        for r in rows
    )


def _parts(path: Path) -> Iterator[tuple[str, str, str]]:
    """The texts of a file with several: name, the rest of its head, text."""
    for part in path.read_text(encoding="utf-8").split("\n=== ")[1:]:
        head, _, text = part.partition("\n")
        name, _, rest = head.partition(" ")
        yield name, rest, text


@cache
def written() -> dict[str, tuple[set[str], str]]:
    """Logs written after the engines' sources, by name: the labels that would be right, and the text."""
    return {name: (set(labels.split("|")), text) for name, labels, text in _parts(WRITTEN)}


_OF_MEMORY = re.compile(r"(?i)out of memory|\boom\b|not fit|kv cache|too small|exceed|killed|no space")


@cache
def quiet() -> dict[str, tuple[str, str]]:
    """Texts in which nothing of memory failed, by name: of what kind they are, and the text.

    `healthy` and `other` (failed for another reason) and `quoted` (prose about such errors, of public pages and of our
    own documentation), and the healthy starts of tests/startup/logs, whole and cut.
    """
    texts = {name: (rest.partition(" ")[0], text) for name, rest, text in _parts(QUIET)}
    for path in sorted(STARTS.glob("*.log")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for quarters in range(1, 5):
            part = lines[: max(1, len(lines) * quarters // 4)]
            texts[f"{path.stem}, {quarters} of 4"] = ("healthy", "\n".join(part) + "\n")
    pages = [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")]
    for path in sorted(page for page in pages if page.name not in ("models.md", "diagnose.md")):
        for n, paragraph in enumerate(re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))):
            if _OF_MEMORY.search(paragraph) and len(paragraph) < 3000:
                texts[f"{path.name}, paragraph {n}"] = ("quoted", paragraph + "\n")
    return texts


def is_alarm(verdict: Verdict) -> bool:
    """True where a verdict claims that a part of memory ran out."""
    return verdict.cause.label not in (UNDETERMINED, NOT_AN_OOM, HEALTHY) and verdict.cause.confidence >= 0.5


@cache
def signatures() -> tuple[Signature, ...]:
    return Catalog().file(SignatureFile).signatures


def verdict_on(path: Path, rules: tuple[Signature, ...] | None = None) -> Verdict:
    return verdict_of(read(str(path), signatures() if rules is None else rules, CATALOG))

"""The labelled logs of two folders, and what the rules make of a text."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sheetgen.catalog import Catalog
from sheetgen.catalog.signatures import Signature, SignatureFile
from sheetgen.diagnose.cause import UNDETERMINED, Verdict, verdict_of
from sheetgen.diagnose.reading import read

LOGS = Path(__file__).parent / "logs"
MORE = Path(__file__).parent / "more_logs"
WRITTEN = Path(__file__).parent / "written.txt"
DEVICES = Catalog().devices


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
            return verdict.bill.label == UNDETERMINED or verdict.bill.confidence < 0.5
        return verdict.bill.label == self.label


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


@cache
def written() -> dict[str, tuple[set[str], str]]:
    """Logs written after the engines' sources, by name: the labels that would be right, and the text."""
    found = {}
    for part in WRITTEN.read_text(encoding="utf-8").split("\n=== ")[1:]:
        head, _, text = part.partition("\n")
        name, _, labels = head.partition(" ")
        found[name] = (set(labels.split("|")), text)
    return found


@cache
def signatures() -> tuple[Signature, ...]:
    return Catalog().file(SignatureFile).signatures


def verdict_on(path: Path, rules: tuple[Signature, ...] | None = None) -> Verdict:
    return verdict_of(read(str(path), signatures() if rules is None else rules, DEVICES))

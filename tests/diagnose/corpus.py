"""The labelled logs of this folder, and what the rules make of a text."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sheetgen.catalog import Catalog, guidance
from sheetgen.catalog.signatures import Signature
from sheetgen.diagnose.decide import decide
from sheetgen.diagnose.reader import read
from sheetgen.diagnose.rules import UNDETERMINED
from sheetgen.diagnose.verdict import Verdict

LOGS = Path(__file__).parent / "logs"
WRITTEN = Path(__file__).parent / "written.txt"


@dataclass(frozen=True)
class Labelled:
    """One excerpt; `thread` is the public thread that it is from, several excerpts may share one."""

    file: str
    engine: str
    label: str
    decidable: str
    thread: str

    @property
    def path(self) -> Path:
        return LOGS / self.file

    def is_right(self, verdict: Verdict) -> bool:
        """The label, or where the file cannot decide no claim to know."""
        if self.decidable == "no":
            return verdict.bill.label == UNDETERMINED or verdict.bill.confidence < 0.5
        return verdict.bill.label == self.label


@cache
def corpus() -> tuple[Labelled, ...]:
    with (LOGS / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Labelled(r["file"], r["engine"].replace("_", "-"), r["label"], r["decidable_from_file"], r["source"])
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
    return guidance.fingerprint_file(Catalog()).signatures


def verdict_on(path: Path, rules: tuple[Signature, ...] | None = None) -> Verdict:
    found = read(str(path), signatures() if rules is None else rules)
    return decide(found.facts, found.startup)

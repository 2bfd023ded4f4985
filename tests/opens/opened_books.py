"""The workbooks that have to open, by a key: several sizes, families and papers."""

from __future__ import annotations

from pathlib import Path

import books
from plan_books import example_workbook

LEAST = {"models": "8b", "workloads": "chat", "tiers": "1", "headline": "chat:1", "instances": "aws/p5.4xlarge"}
OPTIONS = {
    "least": LEAST,
    "large": {"models": books.DEFAULT},
    "three models": {"models": books.DEFAULT, "instances": books.INSTANCES},
    "five families": {"models": books.FAMILIES, "instances": books.INSTANCES},
    "letter": {"models": "8b", "paper": "letter", "workloads": "chat,rag"},
}
BOOKS = (*OPTIONS, "hostile", "plan")  # the large one is for the rules alone: other programs take long to read it


def build(built: dict[str, Path], key: str) -> Path:
    if key == "plan" and key not in built:
        built[key] = built[""] / "plan.xlsx"
        built[key].write_bytes(example_workbook())
    elif key not in built:
        options = {"as_of": books.AS_OF, **OPTIONS[key]}
        built[key] = books.build(built[""], key.replace(" ", "-"), options)[0]
    return built[key]

"""The workbooks that have to open, by a key: several sizes, families and papers."""

from __future__ import annotations

from pathlib import Path

import books
from amounts import IN_LONG
from cells_of import FEW as FEW_INSTANCES
from plan_books import example_workbook

FEW = {
    "instances": books.INSTANCES if IN_LONG else FEW_INSTANCES,
    "workloads": "chat,rag",
    "tiers": "1,32" if IN_LONG else "32",
}  # more loads are more rows of the same
OPTIONS = {
    "least": books.LEAST,
    "large": {"models": books.DEFAULT},
    "three models": {"models": books.DEFAULT, **FEW},
    "five families": {"models": books.FAMILIES, **FEW},
    "mixture": {
        **books.LEAST,
        "models": "gpt-oss-120b",
        "tiers": "1,64",
        "instances": "aws/p5.4xlarge,aws/p5.48xlarge",
    },
    "letter": {"models": "8b", "paper": "letter", **FEW},
}
BOOKS = (
    *(key for key in OPTIONS if key != "mixture"),
    "hostile",
    "plan",
)  # the large one is for the rules alone: other programs take long to read it


def build(built: dict[str, Path], key: str) -> Path:
    if key == "plan" and key not in built:
        built[key] = built[""] / "plan.xlsx"
        built[key].write_bytes(example_workbook())
    elif key not in built:
        options = {"as_of": books.AS_OF, **OPTIONS[key]}
        built[key] = books.build(built[""], key.replace(" ", "-"), options)[0]
    return built[key]

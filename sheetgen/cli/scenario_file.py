"""`--scenario FILE.yaml`: the options of a command in a file. What is typed on the command line wins.

The file of a sheet may hold one thing more, `typed`: what its reader typed over a workbook's cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.scenario.inputs import INPUTS

if TYPE_CHECKING:
    from sheetgen.catalog.base import Document

TYPED = "typed"
FILES = ("brand",)  # options that name a file: in a scenario it stands beside that
FLAGS = ("attach",)  # options that are true or false
# Options of an amount for each name, which a file may be expected to nest.
PAIRS = {one.asked_as: one.option.pairs for one in INPUTS if one.option and one.option.pairs}


def with_scenario(path: str | None, options: Mapping[str, Any], also: Iterable[str] = ()) -> dict[str, Any]:
    """`options` on top of those in the file. `also` names more keys that the file may have; `typed` among them may
    hold anything, for `ask` to read.

    Raises ScenarioError with file and line for a key that is no option, or a value that is no plain one.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if path is None:
        return given
    from sheetgen.catalog import read_document

    document = read_document(Path(path))
    if not isinstance(document.data, dict):
        raise ScenarioError(f"{document.at(())}: holds no options. Write lines such as models: [8b, 70b].")
    allowed = (*options, *also)
    problems = []
    found: dict[str, Any] = {}
    for key, value in document.data.items():
        at = document.at((key,))
        name = key.replace("-", "_")
        if name not in allowed:
            problems.append(f"{at}: unknown option {shown(key)}.{did_you_mean(name, allowed)}")
        elif name == TYPED:
            found[name] = _typed(document, key)
        elif not _is_plain(value) and not (name in FLAGS and isinstance(value, bool)):
            pairs = f", such as {PAIRS[name]}" if isinstance(value, dict) and name in PAIRS else ""
            problems.append(f"{at}: {shown(key)} must be text, a number, or a list of these{pairs}.")
        elif name in found:
            problems.append(f"{at}: {shown(name)} is given twice, with a dash and with an underscore. Keep one.")
        elif value is not None:
            found[name] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            if name in FILES:
                found[name] = str(Path(path).parent / found[name])
    if problems:
        raise ScenarioError(*problems)
    return {**found, **given}


def _typed(document: Document, key: str) -> Any:
    from sheetgen.scenario.overrides import Written

    return Written(document.data[key], lambda loc: document.at((key, *loc)))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(v, (str, int, float)) and not isinstance(v, bool) for v in value)
    return value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool))

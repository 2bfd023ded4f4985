"""The pages of docs/reference/ are of these commands, inputs and formulas."""

from __future__ import annotations

import click
import pytest
from reference_pages import FOLDER, documents, tree

from sheetgen.cli import main
from sheetgen.explain import quantities
from sheetgen.question.inputs import BY_OPTION, INPUTS

PAGES = documents()


@pytest.mark.parametrize("file", PAGES)
def test_the_page_is_of_this_code(file: str) -> None:
    assert (FOLDER / file).read_text("utf-8") == PAGES[file], "old: python tests/reference_pages.py"


def test_nothing_is_left_out() -> None:
    options = {
        option
        for _, one in tree(main, "sheetgen")
        for part in one.params
        if isinstance(part, click.Option)
        for option in part.opts
        if option.startswith("--")
    }
    assert len(options) > 90 and [one for one in options if one not in PAGES["commands.md"]] == []
    inputs = [one.name for one in INPUTS if not one.name.startswith(("log_", "case_", "model"))]
    assert len(BY_OPTION) > 70 and [one for one in inputs if f"| `{one}` |" not in PAGES["inputs.md"]] == []
    assert [name for name, *_ in quantities() if name not in PAGES["quantities.md"]] == []

"""The pages of docs/reference/ leave out no command, input, quantity or key of a plan."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from option_values import Options
from reference_pages import DOCUMENTS, SECTIONS, key_of, plan_keys, tree

from sheetgen.catalog import read_document
from sheetgen.cli import main
from sheetgen.explain import quantities
from sheetgen.question.inputs import BY_OPTION, INPUTS


def test_nothing_is_left_out() -> None:
    options = {
        option
        for _, command in tree(main, "sheetgen")
        for part in command.params
        if isinstance(part, click.Option)
        for option in part.opts
        if option.startswith("--")
    }
    of_commands, of_inputs, of_quantities = (DOCUMENTS[f"{name}.md"]() for name in ("commands", "inputs", "quantities"))
    assert len(options) > 90 and [option for option in options if option not in of_commands] == []
    inputs = [setting.name for setting in INPUTS if not setting.name.startswith(("log_", "case_", "model"))]
    assert len(BY_OPTION) > 70 and [name for name in inputs if f"| `{name}` |" not in of_inputs] == []
    assert [name for name, *_ in quantities() if name not in of_quantities] == []


# The keys that an example leaves to its reader.
MUST_BE_GIVEN: dict[str, Options] = {
    "plan": {"start": "2027-Q1", "quarters": 4},
    "services": {"id": "chat", "demand": {"at_once": 1}, "model": "8b"},
    "model": {"id": "8b"},
    "owned": {"id": "pool", "gpu": "h100", "count": 8},
    "committed": {"id": "term", "type": "aws/p5.48xlarge", "count": 1},
    "ordered": {"type": "aws/p5.48xlarge", "count": 1},
    "quota": {"type": "aws/p5.48xlarge", "limit": 1},
}


def test_every_key_of_a_plan_has_its_meaning() -> None:
    for section, (_, _, model) in SECTIONS.items():
        assert {key_of(name, field) for name, field in model.model_fields.items()} == {*plan_keys()[section]}, section


@pytest.mark.parametrize("section", SECTIONS)
def test_the_example_of_a_key_is_taken(section: str, tmp_path: Path) -> None:
    model = SECTIONS[section][2]
    for key, (_, _, example) in plan_keys()[section].items():
        (tmp_path / "example.yaml").write_text(f"{{{example}}}")
        stated = read_document(tmp_path / "example.yaml").data
        assert key in stated
        model.model_validate({**MUST_BE_GIVEN.get(section, {}), **stated})

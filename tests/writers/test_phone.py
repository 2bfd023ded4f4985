"""The mail on a phone: a headless Chromium draws it 320 and 390 px wide, and nothing is cut at an edge."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path

import pytest
from browser import BROWSER, REQUIRED, headless
from page_sample import page_of
from pages import TEMPLATES

from sheetgen.mail.message import Changes, Letter, Money, bodies
from sheetgen.report.page import Page

WIDTHS, SCHEMES = (320, 390), ("light", "dark")

# In each frame: which texts and pictures reach over its edges, and what would have to be scrolled sideways. A frame
# takes the colours that the element around it has.
MEASURE = """
const found = [];
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, root = page.documentElement, width = frame.clientWidth, cut = [];
  const over = (box, what) => {
    if (box.width && (box.right > width + 0.5 || box.left < -0.5)) cut.push(what + " to " + Math.round(box.right));
  };
  if (root.scrollWidth > width) cut.push("the page is " + root.scrollWidth + " px wide");
  for (const one of page.querySelectorAll("svg, img, table")) over(one.getBoundingClientRect(), one.tagName);
  for (const one of page.body.querySelectorAll("*"))
    if (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX != "visible")
      cut.push("scrolls: " + one.textContent.trim().slice(0, 40));
  const texts = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT), range = page.createRange();
  while (texts.nextNode()) {
    range.selectNodeContents(texts.currentNode);
    for (const box of range.getClientRects()) over(box, texts.currentNode.data.trim().slice(0, 40));
  }
  const dark = frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  found.push([frame.title, width, dark, page.body.textContent.length, cut]);
}
document.body.textContent = JSON.stringify(found);
"""


def measured(documents: dict[str, str], folder: Path) -> list[tuple[str, int, str, int, list[str]]]:
    """Each document in each width and colour scheme: its name, width and scheme, the length of its text, and the parts
    that are cut."""
    frames = [
        f'<iframe title="{name}" style="width:{width}px;height:800px;border:0;color-scheme:{scheme}" '
        f'srcdoc="{html.escape(text)}"></iframe>'
        for name, text in documents.items()
        for width in WIDTHS
        for scheme in SCHEMES
    ]
    script = f'<script>addEventListener("load", () => {{{MEASURE}}})</script>'
    drawn = folder / "phone.html"
    drawn.write_text(f'<!DOCTYPE html><meta charset="utf-8"><body>{"".join(frames)}{script}', encoding="utf-8")
    command = headless(folder, "--dump-dom", drawn.as_uri())
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    body = re.search(r"<body>(.*)</body>", dumped, re.DOTALL)
    assert body is not None, dumped[:300]
    return [(name, width, scheme, n, cut) for name, width, scheme, n, cut in json.loads(html.unescape(body[1]))]


def mail_of(page: Page) -> str:
    changes = Changes(
        "q2-finance.xlsx, as of 2026-08-01", (Money("Llama 3.1 70B", "$40,179", "$71,540", "load +$31,361"),), ("a: b",)
    )
    return bodies(Letter(page, "sizing-sheet-of-the-third-quarter", changes), TEMPLATES)[1]


@pytest.mark.skipif(BROWSER is None and not REQUIRED, reason="no Chromium is installed: ./run test installs it")
def test_nothing_is_cut_at_the_edge(tmp_path: Path) -> None:
    three, eight = page_of(3), page_of(8, "letter")
    names = dict.fromkeys((card.model for card in three.cards), "A-model-whose-name-is-long-and-unbroken-70B")
    named = page_of(3, names=names, ask="llama-3.1-70b", approver="Jane Doe")
    documents = {
        "mail": mail_of(three),
        "mail of one": mail_of(named),
        "mail of 8": mail_of(eight),
    }
    planted = "<p style='width:500px'>Wider than a phone, which is what this test is to find, in one long line</p>"
    sizes = measured({**documents, "planted": planted}, tmp_path)
    assert {(name, width, scheme) for name, width, scheme, *_ in sizes} == {
        (name, width, scheme) for name in (*documents, "planted") for width in WIDTHS for scheme in SCHEMES
    }
    assert all(length > 60 for *_, length, _ in sizes)
    assert all(cut for name, *_, cut in sizes if name == "planted")
    assert [(name, cut) for name, *_, cut in sizes if cut and name != "planted"] == []

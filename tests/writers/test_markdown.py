"""The answer as Markdown: the ask, one table and the assumptions are there, and hostile text stays text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from page_sample import page_of
from pages import markdown_of

from sheetgen.report.page import Page, Source
from sheetgen.writers.markdown import plain, source_text

HOSTILE = (
    "a | b | c",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    "`rm -rf /`",
    "**bold** _under_ ~~gone~~ __more__",
    "https://evil.example/path",
    "www.evil.example",
    "# heading",
    "- item",
    "+ item",
    "1. item",
    "1) item",
    "===",
    "> quote",
    "&lt;b&gt; &amp;",
    "back\\slash\\",
    "line\nbreak\r\nand\ttab",
    "<!-- comment -->",
    "bell\x07 and\u202eright to left\u200b",
    "{{ jinja }} {% raw %}",
    "=cmd()",
    "$x$",
    "$$\\href{javascript:alert(1)}{x}$$",
)


def rendered(text: str) -> Any:
    """The tokens of GitHub-flavoured Markdown, links in plain text recognised."""
    markdown_it = pytest.importorskip("markdown_it")
    return markdown_it.MarkdownIt("gfm-like", {"linkify": False}).parse(text)


def kinds(tokens: Any) -> set[str]:
    return {t.type for token in tokens for t in (token, *(token.children or ()))}


@pytest.fixture(scope="module")
def page() -> Page:
    return page_of(3)


def test_tables_have_as_many_cells_as_heads(page: Page) -> None:
    for part in markdown_of(page).split("\n\n"):
        if part.startswith("|"):
            assert len({line.replace("\\|", "").count("|") for line in part.splitlines()}) == 1


def test_the_brief_is_the_ask_one_table_and_the_assumptions(page: Page) -> None:
    asked = replace(page, ask=1)
    text = markdown_of(asked)
    assert text.startswith(f"# {page.title}\n") and text.endswith("\n") and "\n\n\n" not in text
    assert text.count("\n| --- |") == 1 and len(text) < 4000
    (head, *_, last) = [line for line in text.splitlines() if line.startswith("|")]
    assert head.count("|") - 1 <= 6 and last.startswith(f"| {page.cards[-1].model} |")
    one = page.cards[1]
    assert f"**Please approve {one.monthly} a month, {one.per_year}" in text
    assert all(f"\n- {plain(said)}" in text for said in (*asked.assumed, *asked.risks))
    assert "do not add their costs" in markdown_of(page)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_it_is(text: str) -> None:
    line = plain(text)
    assert "\n" not in line and "\r" not in line
    tokens = rendered(line)
    assert kinds(tokens) <= {"paragraph_open", "paragraph_close", "inline", "text", "text_special"}, kinds(tokens)
    visible = "".join(t.content for token in tokens for t in token.children or ())
    wanted = "".join(c for c in text if c not in "\x07\u202e\u200b")
    assert visible == " ".join(wanted.split())


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_in_its_cell(page: Page, text: str) -> None:
    cards = (replace(page.cards[0], model=text, rent=text), *page.cards[1:])
    hostile = replace(page, title=text, cards=cards, assumed=(text,) * len(page.assumed))
    hold_the_form(markdown_of(hostile), markdown_of(page))
    assert links_in(markdown_of(hostile)) == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_sources(text: str) -> None:
    links = links_in("\n".join(map(source_text, (Source(text, text), Source(text)))))
    assert links == ([text] if text == "https://evil.example/path" else [])


def links_in(text: str) -> list[str]:
    return [t.attrs["href"] for token in rendered(text) for t in token.children or () if t.type == "link_open"]


def hold_the_form(hostile: str, as_it_was: str) -> None:
    """Nothing but words differs."""
    tokens, clean = rendered(hostile), rendered(as_it_was)
    assert kinds(tokens) <= kinds(clean) | {"text_special"}
    assert sum(t.type == "tr_open" for t in tokens) == sum(t.type == "tr_open" for t in clean)
    assert sum(t.type == "td_open" for t in tokens) == sum(t.type == "td_open" for t in clean)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://a b", "https://a>b", "data:x", "//evil", "https://"]
)
def test_only_web_addresses_become_links(url: str) -> None:
    assert source_text(Source("a source", url)) == "a source"
    source = Source("GQA: arXiv:2305.13245", "https://arxiv.org/abs/2305.13245")
    assert source_text(source) == "[GQA: arXiv:2305.13245](<https://arxiv.org/abs/2305.13245>)"


@pytest.mark.parametrize(
    "text,shown",
    [
        ("gpu_memory_utilization", "gpu_memory_utilization"),
        ("131.4 GiB", "131.4 GiB"),
        ("azure/Standard_NC96ads_A100_v4", "azure/Standard_NC96ads_A100_v4"),
        ("--max-model-len", "\\--max-model-len"),
        ("", ""),
    ],
)
def test_plain_names_are_not_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("text", ["https://evil.example", "ftp://evil.example", "see www.evil.example", "MAILTO:a@b.c"])
def test_bare_addresses_are_broken_up_for_linkifiers(text: str) -> None:
    line = plain(text)
    assert "://" not in line.replace("\\:", "") and "www." not in line and "mailto:" not in line.lower()

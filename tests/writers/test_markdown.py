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
    "&#60;b&#62; &#x3c; &copy;",
    "a<b>c</b> <?php ?> </x> <a@b.example> <http://x.example>",
    ">quote",
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


def test_the_brief_is_the_requests_sentences_and_two_tables(page: Page) -> None:
    asked = page_of(3, ask="llama-3.1-70b").request
    text = markdown_of(page_of(3, ask="llama-3.1-70b"))
    assert text.startswith(f"# {page.title}\n") and text.endswith("\n") and "\n\n\n" not in text
    assert text.count("\n| --- |") == 2 and len(text) < 4000
    assert "–" not in text.split("\n\n")  # no paragraph without words
    told = [*asked.serves, *asked.risks, *asked.warnings, asked.finding, asked.basis, asked.sentence, asked.excluded]
    told += [part for option in asked.options for part in (option.name, option.price, *option.told, option.rent)]
    told += [part for way in asked.ways for part in (way.rent, way.monthly, way.commits, way.gives_up)]
    assert [str(text_) for text_ in told if plain(str(text_)) not in text] == []
    of_three = markdown_of(page)
    assert page.request is not None and str(page.request.sentence) in of_three and of_three.count("\n| --- |") == 1
    assert all(f"| {card.model} | {card.monthly} a month |" in of_three for card in page.cards)


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
    first = page.request.options[0]._replace(name=text, rent=text)
    asked = replace(page.request, options=(first, *page.request.options[1:]), basis=text)
    hostile = replace(page, title=text, request=asked)
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
        ("W&B Inference", "W&B Inference"),
        ("max_model_len < 16384 > 8", "max_model_len < 16384 > 8"),
        ("", ""),
    ],
)
def test_plain_names_are_not_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("text", ["https://evil.example", "ftp://evil.example", "see www.evil.example", "MAILTO:a@b.c"])
def test_bare_addresses_are_broken_up_for_linkifiers(text: str) -> None:
    line = plain(text)
    assert "://" not in line.replace("\\:", "") and "www." not in line and "mailto:" not in line.lower()

"""templates/words.md holds what is written and drawn: no phrase of its last column stands where a reader looks."""

from __future__ import annotations

import ast
import dataclasses
import html
import io
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
import yaml
from answers import page_for
from books import book_bytes
from pages import markdown_of, text_of

from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.mail.message import Letter, bodies
from sheetgen.question.sheet_question import ask
from sheetgen.report.page import Page
from sheetgen.writers.pdf import lay_out

ROOT = Path(__file__).parents[1]
WORDS = ROOT / "templates" / "words.md"


def phrases(column: str = "Never") -> list[str]:
    head, _, *rows = [line for line in WORDS.read_text("utf-8").splitlines() if line.startswith("|")]
    place = [word.strip() for word in head.split("|")].index(column)
    return [phrase.strip() for row in rows for phrase in row.split("|")[place].split("·")]


@cache
def never() -> re.Pattern[str]:
    """Every phrase, in any case, its words whole and whatever white stands between them; a number for a number."""
    alike = (r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases())
    either = "|".join(alike).replace("5x", r"(?:\d+|{\w*})\s?[x×]")
    return re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE)


def found(text: str) -> list[str]:
    """Phrases that must not be, each with what stands around it."""
    return [" ".join(text[max(0, m.start() - 40) : m.end() + 40].split()) for m in never().finditer(text)]


def without_code(text: str) -> str:
    """Markdown without its code, where keys and options stand."""
    return re.sub(r"```.*?```|`[^`]*`", "`", text, flags=re.DOTALL)


DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
TEMPLATES = sorted(file for kind in ("j2", "toml") for file in (ROOT / "templates").glob(f"**/*.{kind}"))
CATALOGS = [file for file in sorted((ROOT / "catalogs").glob("**/*.yaml")) if "models" not in file.parts]
CODE = sorted((ROOT / "sheetgen").glob("**/*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", DOCS, ids=name)
def test_docs(path: Path) -> None:
    assert found(without_code(path.read_text("utf-8"))) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_templates(path: Path) -> None:
    text = re.sub(r"{#.*?#}|{%.*?%}|<[^>]*>", "\n", path.read_text("utf-8"), flags=re.DOTALL)
    assert found(re.sub(r'{{[^}"]*}}', "{}", text)) == []


def strings_of(value: object) -> Iterator[str]:
    """The words of a catalog: its values, not its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from () if key in ("signatures", "patterns") else strings_of(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from strings_of(entry)


@pytest.mark.parametrize("path", CATALOGS, ids=name)
def test_catalogs(path: Path) -> None:
    assert found("\n".join(strings_of(yaml.safe_load(path.read_text("utf-8"))))) == []


def texts_of(tree: ast.Module) -> Iterator[str]:
    """The strings of a module that may be shown: those with a space, and docstrings where `explain` and --help read
    them; not what else the code says of itself, nor patterns of logs."""
    silent: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            read = isinstance(node, ast.FunctionDef) and any(
                re.match(r"formula\b|.*\bcommand\b|.*\bgroup\b", ast.unparse(decorator))
                for decorator in node.decorator_list
            )
            if not read and isinstance(node.body[0], ast.Expr):
                silent.add(node.body[0].value)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            silent.update(node.args)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            silent.update(node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent:
            yield from [node.value] if " " in node.value.strip() else []


@pytest.mark.parametrize("path", CODE, ids=name)
def test_code(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert [word for text in texts_of(tree) for word in found(text)] == []


@pytest.fixture(scope="module")
def solved() -> Solution:
    """An answer set by a target, one by memory, loads that something holds and others, and a rate's words beside."""
    chosen = {"models": "8b,70b,gemma-3-27b", "tiers": "1,32,1024", "headline": "rag:32", "as_of": "2026-11-20"}
    return solve(ask(Catalog(), chosen | {"instances": "aws/g6e.xlarge,aws/p4de.24xlarge,aws/p5.48xlarge"}))


@pytest.fixture(scope="module")
def page(solved: Solution) -> Page:
    return page_for(solved)


def drawn(page: Page) -> Iterator[str]:
    """All that shows of a page, and its mail."""
    yield markdown_of(page)
    letter = Letter(page, "sheet")
    yield letter.subject()
    yield from (re.sub(r"<[^>]*>", "\n", html.unescape(body)) for body in bodies(letter, ROOT / "templates"))
    yield text_of(lay_out(page, templates=ROOT / "templates").pdf())


@pytest.mark.long
def test_the_page_and_its_mail(page: Page) -> None:
    assert {cell.status for block in page.matrix for row in block.rows for cell in row.cells} >= {"fits"}
    assert [word for text in drawn(page) for word in found(text)] == []
    cards = (dataclasses.replace(page.cards[0], model="Room for 33"), *page.cards[1:])  # as the subject names it
    request = dataclasses.replace(page.request, sentence="Room for 33")  # which stands in all the others
    assert all(found(text) for text in drawn(dataclasses.replace(page, cards=cards, request=request)))


def strings_of_workbook(data: bytes) -> str:
    """Every text of a workbook's parts: cells, formulas, notes, charts, messages of a validation."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        parts = [book.read(name).decode() for name in book.namelist() if name.endswith((".xml", ".vml"))]
    texts = (re.findall(r">([^<]+)<|(?:prompt|error)\w*=\"([^\"]*)", part) for part in parts)
    return html.unescape("\n".join(member for of_part in texts for pair in of_part for member in pair))


@pytest.mark.long
def test_the_workbook(solved: Solution) -> None:
    text = strings_of_workbook(book_bytes(solved))
    assert "sure" in text and found(text) == []


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def test_help() -> None:
    texts = [command.get_help(click.Context(command, info_name=" ".join(path))) for path, command in commands(main)]
    assert len(texts) > 8 and [word for text in texts for word in found(text)] == []


def test_a_planted_phrase_is_found() -> None:
    assert len(phrases()) == len(set(phrases())) and len(phrases()) > 30
    for phrase in phrases():
        assert found(f"It says: {phrase.title()}, here"), phrase
    assert found("sized\n  by   speed") and found("then 12x L40S") and not found("airtight, billed")
    assert found("\n".join(texts_of(ast.parse('said = f"room for {n} of them"')))) == ["room for {} of them"]

"""The option --long, the order of the files, and what every test's file may rely on.

Lets the helpers explain a failed assert (pyproject.toml puts their folders on the path); says what tests counted.
"""

from __future__ import annotations

import functools
import gc
import os
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from sheetgen.catalog import Catalog, base, default_folder, load
from sheetgen.readback import compared_facts, pulled

pytest.register_assert_rewrite("recalculation", "books", "money_cells", "agreement")

# What a test holds is seldom garbage, and to look for it as often as Python does takes a fifth of the time.
gc.set_threshold(50_000, 20, 20)

# Thousands of tests open the shipped catalogs anew: what a file of them says is worked out once a process.
_read_text = base.read_text
_kept_text = functools.lru_cache(512)(_read_text)
base.read_text = lambda text, where, repeated=None: (
    _kept_text(text, where) if repeated is None else _read_text(text, where, repeated)
)


@functools.lru_cache(512)
def _entry(document: ById, schema: type[base.Entry]) -> base.Entry:
    return base.validate(document.it, schema)


class ById:
    """A document as the key of a cache: two are the same where they are one object."""

    def __init__(self, it: base.Document) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


load.validate = lambda document, schema: _entry(ById(document), schema)

# The fingerprint of the shipped catalogs, which each of these tests' questions has, reads all their files.
_sha256 = Catalog.catalog_sha256
_sha256_shipped = functools.cache(lambda: _sha256(Catalog()))


def _kept_sha256(catalog: Catalog) -> str:
    is_shipped = [folder.path for folder in catalog.folders] == [default_folder()] and not catalog._imported
    return _sha256_shipped() if is_shipped else _sha256(catalog)


Catalog.catalog_sha256 = _kept_sha256

# Most workbooks that tests pull were built as one that another test pulls: what `build` makes of its options is kept.
_build_anew = pulled._build_anew


@functools.lru_cache(6)
def _as_built(catalog: Catalog, options: tuple[tuple[str, object], ...]) -> pulled.Built:
    return _build_anew(catalog, dict(options))


def _kept_as_built(
    catalog: Catalog, options: Mapping[str, object], baseline: Mapping[str, object] | None = None
) -> pulled.Built:
    if baseline is None and all(isinstance(value, str) for value in options.values()):
        return _as_built(catalog, tuple(options.items()))
    return _build_anew(catalog, options, baseline)


pulled._build_anew = _kept_as_built

# `diff` reads the workbook that all tests of a file edit again and again, and an edited one for each form of output.
compared_facts.read_workbook_bytes = functools.lru_cache(4)(compared_facts.read_workbook_bytes)

# With one file after the other on each of two processes, those that take longest come first, or one waits at the end.
LONGEST_FIRST = (
    "plan/test_plan_documents.py", "pull/test_pull_workbook.py", "workbook_read/test_diff_command.py",
    "writers/test_pdf_page.py", "mail/test_mail_command.py", "workbook/test_recalculates.py",
    "test_choice_brute_force.py", "workbook/test_edits.py", "workbook_read/test_read_after_libreoffice.py",
    "pdf/test_standards.py", "pull/test_pull_command.py", "plan/test_plan_sheets.py", "workbook/test_money_sheet.py",
    "fuzz/test_fuzz.py", "sheet/test_build_page.py", "levers/test_levers.py", "sizing/test_speed_properties.py",
    "workbook/test_what_if.py", "test_docs.py", "workbook/test_looks.py", "sheet/test_ask.py", "test_every_number.py",
    "workbook_read/test_hostile_workbooks.py", "pull/test_pull_libreoffice.py", "workbook/test_headline.py",
    "pull/test_pull_catalog.py",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also more seeds, books and edits of what is tested without")


def pytest_configure(config: pytest.Config) -> None:
    in_long = config.getoption("--long")
    if in_long:
        os.environ["SHEETGEN_TESTS"] = "long"
    settings.register_profile("gate", max_examples=25, derandomize=True, database=None, deadline=None)
    settings.register_profile("long", max_examples=500, deadline=None, print_blob=True)
    settings.load_profile("long" if in_long else "gate")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")] + list(_more_of_some(items))
        left = set(left_out)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left_out)
    first = {Path(__file__).parent / name: i for i, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: first.get(item.path, len(first)))


def _more_of_some(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of a test marked `some(n)` all cases but n, drawn by its name: always the same, and no parameter has its turn."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, of_it in cases.items():
        (n,) = of_it[0].get_closest_marker("some").args
        drawn = random.Random(name).sample(range(len(of_it)), min(n, len(of_it)))
        yield from (item for i, item in enumerate(of_it) if i not in drawn)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests recorded as `counted` ends the run, from every process of it."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "counted":
                terminalreporter.write_line(text)

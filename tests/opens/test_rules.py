"""Faults that no schema names and Excel repairs: the rules hold for our workbooks, and each can fail."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faults_cells
import faults_features
import faults_package
import pytest
import rules_cells
import rules_features
import rules_package
import rules_workbook
from damage import Fault
from package import Package

FAULTS = (*faults_package.FAULTS, *faults_cells.FAULTS, *faults_features.FAULTS)
RULES = (*rules_package.RULES, *rules_workbook.RULES, *rules_cells.RULES, *rules_features.RULES)


@pytest.mark.some(1)
def test_excel_has_nothing_to_repair(book: Path) -> None:
    package = Package.read(book)
    problems = {rule.__name__: list(rule(package)) for rule in RULES}
    wrong = {name: (len(faults), faults[:3]) for name, faults in problems.items() if faults}
    assert not wrong, wrong


@pytest.fixture(scope="module")
def as_built(least_parts: dict[str, bytes]) -> Callable[[Any], list[Any]]:
    """The findings of a rule in the workbook before it is damaged: a rule has several faults."""
    return functools.cache(lambda rule: list(rule(Package(least_parts))))


@pytest.mark.some(70)
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_every_rule_finds_what_it_is_for(
    fault: Fault, least_parts: dict[str, bytes], as_built: Callable[[Any], list[Any]]
) -> None:
    parts, before = dict(least_parts), as_built(fault.rule)
    fault.damage(parts)
    after = list(fault.rule(Package(parts)))
    assert len(after) > len(before), f"nothing found: {before[:1]}"


def test_every_rule_has_a_fault() -> None:
    assert {fault.rule for fault in FAULTS} == set(RULES)


def test_a_part_that_stands_twice_is_found(least_parts: dict[str, bytes]) -> None:
    assert list(rules_package.names_are_unique(Package(least_parts, twice=("xl/workbook.xml",))))

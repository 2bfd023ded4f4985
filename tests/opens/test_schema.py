"""The Open XML SDK, Microsoft's own schemas and semantic checks of the format, has nothing to say of our workbooks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faults_schema import FAULTS, LAST
from opened_books import BOOKS
from package import Package
from readers import OFFICE_VERSIONS, needs_sdk, validated


@pytest.mark.some(2)
@needs_sdk
@pytest.mark.parametrize(
    "book", [pytest.param(key, marks=pytest.mark.long) if key == "large" else key for key in BOOKS], indirect=True
)
def test_the_open_xml_sdk_finds_nothing(book: Path) -> None:
    assert not validated(book)


@pytest.mark.long
@needs_sdk
def test_nothing_is_newer_than_excel_2007(least: Path) -> None:
    assert not validated(least, OFFICE_VERSIONS[0])


@pytest.fixture(scope="module")
def said(least_parts: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[str]]:
    """The validator's words on a file with all faults but one; and on that one, after which it reads no further."""
    folder, told = tmp_path_factory.mktemp("damaged"), {}
    for last in (False, True):
        parts = dict(least_parts)
        for name, (damage, _) in FAULTS.items():
            if (name == LAST) == last:
                damage(parts)
        faults = validated(Package(parts).write(folder / f"{last}.xlsx"))
        told[last] = [f"{fault.part} {fault.place} {fault.description}" for fault in faults]
    return told


@needs_sdk
@pytest.mark.parametrize("what", FAULTS)
def test_the_open_xml_sdk_finds_what_is_broken(what: str, said: dict[bool, list[str]]) -> None:
    words = FAULTS[what][1]
    assert [line for line in said[what == LAST] if re.search(words, line)], said

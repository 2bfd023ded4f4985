"""The Open XML SDK, Microsoft's own schemas and semantic checks of the format, has nothing to say of our workbooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults_schema import FAULTS
from package import Package
from readers import OFFICE_VERSIONS, needs_sdk, validated


@needs_sdk
def test_the_open_xml_sdk_finds_nothing(book: Path) -> None:
    assert not validated(book)


@needs_sdk
def test_nothing_is_newer_than_excel_2007(least: Path) -> None:
    assert not validated(least, OFFICE_VERSIONS[0])


@needs_sdk
@pytest.mark.parametrize("what", FAULTS)
def test_the_open_xml_sdk_finds_what_is_broken(what: str, least_parts: dict[str, bytes], tmp_path: Path) -> None:
    parts = dict(least_parts)
    FAULTS[what](parts)
    found = validated(Package(parts).write(tmp_path / "damaged.xlsx"))
    assert found, what
    print(what, "->", found[0].part, found[0].description[:120])

"""The workbooks that have to open: several sizes, families and papers, and one of hostile names."""

from __future__ import annotations

from pathlib import Path

import pytest
from opened_books import BOOKS, build
from package import Package
from test_hostile import hostile_book  # noqa: F401  # a fixture


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The workbooks built so far, by their key in OPTIONS."""
    return {"": tmp_path_factory.mktemp("opens")}


@pytest.fixture(params=BOOKS)
def book(request: pytest.FixtureRequest, built: dict[str, Path]) -> Path:
    """Each workbook in turn."""
    if request.param == "hostile":
        path, _ = request.getfixturevalue("hostile_book")
        assert isinstance(path, Path)
        return path
    return build(built, request.param)


@pytest.fixture(scope="session")
def least(built: dict[str, Path]) -> Path:
    """The smallest workbook."""
    return build(built, "least")


@pytest.fixture(scope="session")
def three_models(built: dict[str, Path]) -> Path:
    return build(built, "three models")


@pytest.fixture(scope="session")
def least_parts(least: Path) -> dict[str, bytes]:
    return dict(Package.read(least).parts)

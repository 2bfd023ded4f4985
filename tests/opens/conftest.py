"""The workbooks that have to open: several sizes, families and papers, and one of hostile names."""

from __future__ import annotations

from pathlib import Path

import books
import pytest
from package import Package
from test_hostile import hostile_book  # noqa: F401  # a fixture

LEAST = {"models": "8b", "workloads": "chat", "tiers": "1", "headline": "chat:1", "instances": "aws/p5.4xlarge"}
OPTIONS = {
    "least": LEAST,
    "three models": {"models": books.DEFAULT},
    "five families": {"models": books.FAMILIES, "instances": books.INSTANCES},
    "letter": {"models": "8b", "paper": "letter", "workloads": "chat,rag"},
}
BOOKS = (*OPTIONS, "hostile")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The workbooks built so far, by their key in OPTIONS."""
    return {"": tmp_path_factory.mktemp("opens")}


def build(built: dict[str, Path], key: str) -> Path:
    if key not in built:
        options = {"as_of": books.AS_OF, **OPTIONS[key]}
        built[key] = books.build(built[""], key.replace(" ", "-"), options)[0]
    return built[key]


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

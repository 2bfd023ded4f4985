from __future__ import annotations

from pathlib import Path

import books
import pytest
from amounts import IN_LONG
from cells_of import FEW

from sheetgen.question.sheet_question import Question


@pytest.fixture(scope="session")
def default_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workbook of the main job: three models, all workloads and tiers; in the gate of few instances."""
    options = books.USUAL if IN_LONG else {**books.USUAL, "instances": FEW}
    return books.build(tmp_path_factory.mktemp("default"), "default", options)[0]


@pytest.fixture(scope="session")
def families_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five models of different families: dense, windowed, recurrent, experts with windows, latent attention; on few
    instances, as other formulas take more models, not more candidates."""
    more = {} if IN_LONG else {"workloads": "chat,long-doc", "tiers": "32", "instances": FEW}
    options = {"models": books.FAMILIES, "instances": books.INSTANCES, "as_of": books.AS_OF, **more}
    return books.build(tmp_path_factory.mktemp("families"), "families", options)[0]


@pytest.fixture(scope="session")
def small_book(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Question]:
    """A small workbook with all its sheets, and its question; in the gate of two tiers and few instances."""
    fewer = {} if IN_LONG else {"tiers": "1,32", "instances": FEW}
    return books.build(tmp_path_factory.mktemp("small"), "small", {**books.SMALL, **fewer})


@pytest.fixture(scope="session")
def lean_book(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Question]:
    """The small workbook without its Decision sheet."""
    return books.build(tmp_path_factory.mktemp("lean"), "lean", books.SMALL, with_decision=False)


@pytest.fixture(scope="session")
def least_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest workbook, of one load, without its Decision sheet."""
    return books.build(tmp_path_factory.mktemp("least"), "least", books.LEAST, with_decision=False)[0]


@pytest.fixture(scope="session")
def experts_book(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Question]:
    """A workbook of two mixtures of experts, one of which spans machines, without its Decision sheet."""
    return books.build(tmp_path_factory.mktemp("experts"), "experts", books.EXPERTS, with_decision=False)

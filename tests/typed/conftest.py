"""Puts the workbooks' helpers (tests/workbook) on the path."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "workbook"))
pytest.register_assert_rewrite("books", "money_cells")

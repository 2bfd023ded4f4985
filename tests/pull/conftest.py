"""Puts the helpers of other folders on the path: workbooks, typed values, edits in LibreOffice."""

import sys
from pathlib import Path

import pytest

for folder in ("workbook", "typed", "workbook_read"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
pytest.register_assert_rewrite("books", "money_cells")

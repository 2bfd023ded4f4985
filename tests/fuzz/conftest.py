"""Puts the workbooks' helpers (tests/workbook) on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "workbook"))

"""Lets these tests use the sample pages of tests/writers and the workbooks of tests/workbook."""

import sys
from pathlib import Path

for folder in ("writers", "workbook"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

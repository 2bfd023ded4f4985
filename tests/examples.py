"""examples/edited-sheet.xlsx: a small workbook of the command, in which somebody changed two inputs.

python tests/examples.py     writes it anew
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from click.testing import CliRunner
from recalculation import edit_and_recalculate
from workbook_cells import CellValue

from sheetgen.cli import main

EXAMPLES = Path(__file__).parents[1] / "examples"
BUILT = [
    "build", "--models", "70b", "--workloads", "rag", "--tiers", "32", "--as-of", "2026-11-20", "--format", "xlsx",
    "--instances", "aws/p5.48xlarge,aws/p5en.48xlarge,gcp/a3-highgpu-8g", "--name", "edited-sheet", "--out",
]  # fmt: skip
TYPED: dict[str, CellValue] = {"in_context_rag": 32_768, "in_kv_cache_dtype": "fp8"}


def make() -> None:
    with tempfile.TemporaryDirectory() as folder:
        result = CliRunner().invoke(main, [*BUILT, folder])
        assert result.exit_code == 0, result.output
        built, edited = Path(folder, "edited-sheet.xlsx"), Path(folder, "edited.xlsx")
        edit_and_recalculate(built, edited, TYPED)
        with (
            zipfile.ZipFile(edited) as archive,
            zipfile.ZipFile(EXAMPLES / built.name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as small,
        ):
            for entry in archive.infolist():
                small.writestr(entry, archive.read(entry), compresslevel=9)


if __name__ == "__main__":
    make()

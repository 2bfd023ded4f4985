"""How large workbooks are: people mail them, and open them on phones."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO

import books
import pytest
from workbook_cells import sheet_parts

from sheetgen.recommend import solve
from sheetgen.scenario.question import ask

MIXTURES = "deepseek-v3,gpt-oss-120b"


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "models,providers,n_columns,at_most_formulas,at_most_bytes",
    [
        (books.DEFAULT, None, 170, 45_000, 606_000),
        # The models of this autumn and the residuals of speed are 21 KB more than the goal of 550 KB had; the shares of
        # stages of models whose layers differ, any of which What-if may show, 5 KB; layouts of 8 GPUs over two trays of
        # a rack 3 KB; entries of FP8 latents by GPU, of What-if, 4 KB and 1,100 formulas; steps before a prompt by its
        # chunks 5 KB and 800 formulas; the load on the first sheet, which may be any number, a row more of Workings and
        # Candidates for each model, 10 KB and 1,250 formulas, and its place among the others 3 KB and 70 formulas; the
        # replicas of an instance, without which each load's formula has 7,900 characters and LibreOffice takes three
        # times as long to open the file, 3 KB and 3,600 short formulas; what Money says of each price and month 12 KB
        # and 480 formulas; discounts by provider and purchase class, yellow cells, 3 KB and 150 formulas;
        # values of the build that are a dash once an input is changed, and links to each price, 4 KB; blocks beside
        # those of a hybrid model's layers, and instances by the names that the page has, 2 KB.
        # A tenth of all four is what XlsxWriter's own compression, by zlib, and its list of defined names take.
        (f"{MIXTURES},8b", None, 300, 52_000, 684_000),
        (f"{MIXTURES},llama-4-scout", None, 300, 54_400, 702_000),
        (f"{books.DEFAULT},qwen3-32b,mixtral-8x7b", "azure", 100, 60_000, 686_000),
    ],
)
def test_a_workbook_is_small(
    models: str, providers: str | None, n_columns: int, at_most_formulas: int, at_most_bytes: int
) -> None:
    """n_columns: of candidates, up to which this is promised."""
    solved = solve(ask(books.catalog(), {"models": models, "providers": providers, "as_of": books.AS_OF}))
    package = books.book_bytes(solved)
    spare_columns = 3 * len(solved.question.layouts)  # three rows for instances of one's own
    assert 50 < len(solved.offers) + spare_columns <= n_columns
    with zipfile.ZipFile(BytesIO(package)) as parts:
        n_formulas = sum(len(re.findall(rb"<f[\s>/]", parts.read(part))) for part in sheet_parts(parts).values())
    print(f"{models} on {providers}: {n_formulas:,} formulas, {len(package):,} bytes")
    assert n_formulas <= at_most_formulas
    assert len(package) <= at_most_bytes

"""How large workbooks are: people mail them, and open them on phones."""

from __future__ import annotations

import zipfile
import zlib
from io import BytesIO

import books
import pytest

from sheetgen.recommend import solve
from sheetgen.scenario.question import TENSOR_PARALLEL_SIZES, ask
from sheetgen.writers.xlsx_zip import packed

AT_MOST = 100  # candidate columns of the workbooks that these sizes are promised for
LOCAL_HEADER, CENTRAL_HEADER = 30, 46  # bytes of a zip file for each part, beside its name


@pytest.mark.parametrize(
    "models,providers,at_most_bytes",
    [
        (books.DEFAULT, "aws", 400_000),
        (books.DEFAULT, "gcp", 400_000),
        (f"{books.DEFAULT},qwen3-32b,mixtral-8x7b", "aws", 600_000),
    ],
)
def test_a_workbook_is_small(models: str, providers: str, at_most_bytes: int) -> None:
    solved = solve(ask(books.catalog(), {"models": models, "providers": providers, "as_of": books.AS_OF}))
    package = books.book_bytes(solved)
    spare_columns = 3 * len(TENSOR_PARALLEL_SIZES)  # three rows for instances of one's own
    assert 50 < len(solved.slots) + spare_columns <= AT_MOST
    with zipfile.ZipFile(BytesIO(package)) as parts:
        by_zlib = sum(len(zlib.compress(parts.read(n), 6)) - 6 for n in parts.namelist())
        heads = sum(LOCAL_HEADER + CENTRAL_HEADER + 2 * len(n) for n in parts.namelist())
    print(f"{models} on {providers}: {len(package):,} bytes; by zlib {by_zlib + heads:,}")
    assert len(package) <= at_most_bytes
    assert len(package) < 0.92 * (by_zlib + heads)  # or libdeflate was not asked


def test_the_parts_are_those_of_the_library() -> None:
    made = BytesIO()
    parts = {"a.xml": b"<a/>" * 5_000, "empty.xml": b"", "folder/b.bin": bytes(range(256))}
    with zipfile.ZipFile(made, "w") as out:
        for name, data in parts.items():
            out.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    with zipfile.ZipFile(BytesIO(packed(made.getvalue()))) as again:
        assert again.testzip() is None and [i.filename for i in again.infolist()] == list(parts)
        assert {i.filename: again.read(i) for i in again.infolist()} == parts
        assert {i.date_time for i in again.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert all(i.compress_type == zipfile.ZIP_DEFLATED and not i.flag_bits for i in again.infolist())

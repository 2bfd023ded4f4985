"""Pack a workbook more tightly: the same parts, in a file a tenth smaller."""

from __future__ import annotations

import io
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import deflate

LEVEL = 10  # of libdeflate's 12; the next is a hundredth smaller and takes half as long again
THREADS = 2


class _Whole:
    """A compressor of the kind that zipfile calls, for a part that is compressed already."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def compress(self, data: bytes) -> bytes:
        return b""

    def flush(self) -> bytes:
        return self.packed


def packed(package: bytes) -> bytes:
    """The zip file `package` with its parts compressed by libdeflate, in their order and with their dates."""
    with zipfile.ZipFile(io.BytesIO(package)) as given:
        parts = [(info, given.read(info)) for info in given.infolist()]
    with ThreadPoolExecutor(THREADS) as threads:
        smaller = list(threads.map(_smaller, (data for _, data in parts)))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for (info, data), of_part in zip(parts, smaller, strict=True):
            again = zipfile.ZipInfo(info.filename, info.date_time)
            again.compress_type, again.external_attr = zipfile.ZIP_DEFLATED, info.external_attr
            with made.open(again, "w") as part:
                # zipfile takes no other compressor, but this attribute is where it keeps its own. Were it to ignore
                # ours, the file would only be larger, and the test of the sizes would tell.
                part._compressor = _Whole(of_part)  # type: ignore[attr-defined]
                part.write(data)
    return out.getvalue()


def _smaller(data: bytes) -> bytes:
    return cast(bytes, deflate.deflate_compress(data, LEVEL))

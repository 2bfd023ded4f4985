"""Checked entries of the shipped catalogs, kept as Python keeps bytecode: in this room's `__pycache__`, where and when
Python writes bytecode.

Reading and checking a file takes ten times as long as fetching its entry. A kept entry counts only with the hash of
itself, its file's bytes, and the code and libraries that checked it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path

import pydantic

from sheetgen.catalog.base import E
from sheetgen.version import VERSION

_DIGEST = hashlib.sha256().digest_size
_ROOM = Path(__file__).parent


def kept(path: Path, relative: str, check: Callable[[], E]) -> E:
    """The entry of a shipped file: the kept one where it still counts, else what `check` returns, which is kept."""
    try:
        raw = path.read_bytes()
    except OSError:
        return check()  # which says what is wrong
    name = relative.replace("/", ".")
    place = Path(cache_from_source(__file__)).parent / f"{name}.{sys.implementation.cache_tag}.entry"
    with contextlib.suppress(OSError):
        data = place.read_bytes()
        if data[:_DIGEST] == _digest(raw, data[_DIGEST:]):
            entry: E = pickle.loads(data[_DIGEST:])
            return entry
    entry = check()
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError):
            _keep(place, raw, pickle.dumps(entry, pickle.HIGHEST_PROTOCOL))
    return entry


def _keep(place: Path, raw: bytes, pickled: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    half = place.with_suffix(f".{os.getpid()}.part")
    half.write_bytes(_digest(raw, pickled) + pickled)
    half.replace(place)


def _digest(raw: bytes, pickled: bytes) -> bytes:
    return hashlib.sha256(b"\0".join((_checker(), hashlib.sha256(raw).digest(), pickled))).digest()


@functools.cache
def _checker() -> bytes:
    """The code that checks entries, as bytecode knows its source: by size and time; and pydantic's version."""
    sources = (*sorted(_ROOM.glob("*.py")), *(_ROOM.parent / name for name in ("errors.py", "units.py")))
    known = [f"{source.name} {(status := source.stat()).st_size} {status.st_mtime_ns}" for source in sources]
    return "\n".join((VERSION, pydantic.VERSION, *known)).encode()

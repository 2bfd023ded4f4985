"""A file that a user names is opened here alone: within bounds, and waited for only where the user named it.

Where the command line names a file, a pipe serves as well (`<(cat plan.yaml)`, /dev/stdin, a FIFO), and is waited for
as `cat` waits. A file that another file names, or that lies in a folder of catalogs, must be a regular one.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sheetgen.errors import ScenarioError, shown, unreadable

_PIECE = 1 << 20  # read at once: a read sets aside as much memory as it is asked for
_MOST_KEPT = 64_000_000  # bytes of a pipe; a larger one is read once only
_WITHOUT_WAITING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_KEPT: list[dict[tuple[int, int], bytes]] = []  # by device and inode, of the command that runs


class TooLargeError(ValueError):
    """A file has more bytes than are read of its kind."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"is larger than {most_bytes:,} bytes, the most that is read")


@contextlib.contextmanager
def pipes_kept() -> Iterator[None]:
    """Inside it what was read of a pipe is kept, so that a command can read it again."""
    _KEPT.append({})
    try:
        yield
    finally:
        _KEPT.pop()


def is_pipe(path: Path) -> bool:
    """True for a pipe or a device; False for a file, for a folder, and where there is nothing."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def open_input(path: Path, pipes: bool = False, hint: str = "") -> BinaryIO:
    """The bytes of a regular file; with `pipes` also of a pipe or a device.

    Raises ValueError where it cannot be opened; `hint` is added to the message on a folder and on what is no file.
    """
    try:
        status = path.stat()
        kept = _KEPT[-1].get((status.st_dev, status.st_ino)) if _KEPT else None
        is_other = stat.S_ISDIR(status.st_mode) or stat.S_ISSOCK(status.st_mode)
        if kept is None and (stat.S_ISREG(status.st_mode) or (pipes and not is_other)):
            return path.open("rb") if pipes else os.fdopen(os.open(str(path), _WITHOUT_WAITING), "rb")
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise ValueError(unreadable(error)) from error
    if kept is None:
        problem = "is a folder" if stat.S_ISDIR(status.st_mode) else "is not a file"
        raise ValueError(f"{problem}. {hint}" if hint else problem)
    if len(kept) > _MOST_KEPT:
        raise TooLargeError(_MOST_KEPT)
    return io.BytesIO(kept)


def read_bounded(path: Path, most_bytes: int, hint: str = "", pipes: bool = False) -> bytes:
    """All bytes of what `open_input` opens. Raises ValueError where there are more than `most_bytes`, and where they
    cannot be read."""
    with open_input(path, pipes, hint) as file:
        try:
            is_kept = pipes and bool(_KEPT) and is_pipe(path)
            data = _read(file, max(most_bytes, _MOST_KEPT) if is_kept else most_bytes)
            if is_kept:
                status = path.stat()
                _KEPT[-1][status.st_dev, status.st_ino] = data
        except (OSError, ValueError) as error:
            raise ValueError(unreadable(error)) from error
    if len(data) > most_bytes:
        raise TooLargeError(most_bytes)
    return data


def beside(file: Path, name: str) -> str:
    """The path of a file that `file` names: from its folder, or from here where it is a descriptor, as /dev/stdin is.

    Raises ScenarioError for a pipe: who wrote `file` could make its reader wait.
    """
    path = (Path() if _is_descriptor(file) else file.parent) / name
    if is_pipe(path):
        raise ScenarioError(f"{shown(path, 200)}: is not a file. {shown(file, 200)} names it.")
    return str(path)


def ending_of(path: Path) -> str:
    """The ending of a file's name in small letters; of a pipe without one, such as /dev/stdin, the ending that its
    content should have: .xlsx, .json or .yaml."""
    if path.suffix or not _KEPT or not (is_pipe(path) or _is_descriptor(path)):
        return path.suffix.lower()
    try:
        data = read_bounded(path, _MOST_KEPT, pipes=True)
    except ValueError:
        return ""
    if data.startswith(b"PK"):
        return ".xlsx"
    return ".json" if data[:1000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[") else ".yaml"


def _is_descriptor(path: Path) -> bool:
    return any(map(path.is_relative_to, ("/dev", "/proc")))  # /dev/stdin, /dev/fd/63, /proc/self/fd/11


def _read(file: BinaryIO, most_bytes: int) -> bytes:
    """At most one byte more than `most_bytes`, whatever size the file says it has: that of /proc/cpuinfo is 0."""
    data = bytearray()
    while len(data) <= most_bytes and (piece := file.read(min(_PIECE, most_bytes + 1 - len(data)))):
        data += piece
    return bytes(data)

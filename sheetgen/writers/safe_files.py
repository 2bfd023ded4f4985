"""A set of files is written whole or not at all, even where the process is stopped.

Each file is written under a name of its own beside its target, with this machine and process in it; those of processes
that are no more are swept by the next run.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import os
import platform
import re
import signal
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType

from sheetgen.errors import ScenarioError, shown
from sheetgen.input_files import read_bounded
from sheetgen.writers.hand_edits import kept_as

STOPS = tuple(s for s in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, s))
FINISHED: list[Path] = []  # the files that this command has put in place
_HELD: list[bool] = []  # not empty while files are put in place
_STOP: list[int] = []  # the signal that came
_OF = re.compile(r"\..*\.([0-9a-f]{8})-(\d{1,10})-\w{8}\.part")


class Stopped(KeyboardInterrupt):
    """A signal ends the command; unfinished files are removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def stops_cleanly() -> Iterator[None]:
    """Inside it SIGINT, SIGTERM and SIGHUP raise Stopped once; a signal that is ignored, as under nohup, stays
    ignored. Where Python drops the exception, as it drops all that a destructor raises, it is raised again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for name in STOPS if (number := getattr(signal, name))}

    def stop(number: int, frame: FrameType | None) -> None:
        for signal_number in before:  # the clearing up is not stopped in turn
            signal.signal(signal_number, signal.SIG_IGN)
        _STOP.append(number)
        if not _HELD:
            raise Stopped(number)

    def dropped(lost: sys.UnraisableHookArgs) -> None:
        if isinstance(lost.exc_value, Stopped):
            signal.signal(lost.exc_value.number, stop)
            _thread.start_new_thread(_signal_again, (lost.exc_value.number,))
        else:
            report_dropped(lost)

    report_dropped = sys.unraisablehook
    _STOP.clear()
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, stop)
        sys.unraisablehook = dropped
        yield
    finally:
        sys.unraisablehook = report_dropped
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _signal_again(number: int) -> None:
    time.sleep(0.01)  # until the destructor has ended; if it has not, this is done again
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)  # wakes it where it waits
    else:
        _thread.interrupt_main(signal.Signals(number))


def stopped_by() -> int | None:
    """The signal that stopped the command; None where none did."""
    return _STOP[0] if _STOP else None


@contextlib.contextmanager
def _signals_held_back() -> Iterator[None]:
    """Signals wait until the files are in place: only a kill can leave a set half written. The thread's mask is not
    used: another thread of the process would take the signal, and Python would handle it here all the same."""
    _HELD.append(True)
    try:
        yield
    finally:
        _HELD.pop()
    if _STOP:
        raise Stopped(_STOP[0])


def part_of(target: Path) -> Path:
    """A name beside a target that no other process uses. It is known before the file exists, so that it can be
    removed."""
    here, pid = zlib.crc32(platform.node().encode(errors="replace")), os.getpid()
    return target.parent / f".{target.name[:80]}.{here:08x}-{pid}-{os.urandom(4).hex()}.part"


def put_in_place(parts: Mapping[Path, Path]) -> dict[Path, Path]:
    """Rename every part to its target, and before that a target that was changed by hand to the name under which it is
    kept; these by target. Raises OSError; files before the failing one are renamed by then."""
    kept: dict[Path, Path] = {}
    with _signals_held_back():
        for part, target in parts.items():
            if other := kept_as(target):
                kept[target] = target.replace(other)
            part.replace(target)
            FINISHED.append(target)
    return kept


def sweep(folder: Path) -> None:
    """Remove what ended processes left in a folder."""
    for path in folder.glob(".*"):
        if (parts := _OF.fullmatch(path.name)) and _is_dead(parts[1], int(parts[2])):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_dead(machine: str, pid: int) -> bool:
    if os.name != "posix" or machine != f"{zlib.crc32(platform.node().encode(errors='replace')):08x}":
        return False  # elsewhere nobody can ask whether a process runs
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def may_be_written(target: Path, data: bytes) -> bool:
    """True where nothing is lost by writing a file: there is none, or the same one; or its place cannot be looked at,
    which is told where it is written."""
    try:
        if not target.exists():
            return True
    except OSError:
        return True
    try:
        return read_bounded(target, len(data)) == data
    except ValueError:
        return False


CHANGE = "Choose another place with --out."


def check_places(targets: Iterable[Path], change: str = CHANGE) -> None:
    """Refuse targets that cannot be written, before the work that they are to hold. Raises ScenarioError as
    `write_files` does, which finds out for certain."""
    for target in targets:
        try:
            place = _written_to(target)
            folder = next(parent for parent in place.absolute().parents if parent.exists())
            if not folder.is_dir():
                raise NotADirectoryError
            if not os.access(folder, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except (OSError, ValueError) as error:
            raise _unwritable(target, error, change) from error


def _written_to(target: Path) -> Path:
    """The file that is written for a target. Raises OSError where it is none."""
    target = followed(target)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder")
    return target


def _unwritable(target: Path, error: Exception, change: str) -> ScenarioError:
    is_below_a_file = isinstance(error, (FileExistsError, NotADirectoryError))
    reason = "its folder is a file" if is_below_a_file else getattr(error, "strerror", None) or str(error)
    return ScenarioError(f"{shown(target, 200)}: cannot be written ({reason}). {change}")


def write_files(files: Mapping[Path, bytes], change: str = CHANGE) -> dict[Path, Path]:
    """Write all files or none: each into a temporary file beside its target, then all are renamed together. A workbook
    or document there that somebody changed by hand is kept under another name; these by target.

    Raises ScenarioError with the path and the reason where a target cannot be written.
    """
    written: dict[Path, Path] = {}
    target, swept = Path(), list[Path]()
    try:
        for target, data in files.items():
            target = _written_to(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.parent not in swept:
                swept.append(target.parent)
                sweep(target.parent)
            part = part_of(target)
            written[part] = target
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # otherwise each rename would wait for the disk, with the set half in place
        return put_in_place(written)
    except (OSError, ValueError) as error:
        raise _unwritable(target, error, change) from error
    finally:
        for part in written:
            with contextlib.suppress(OSError, ValueError):
                part.unlink(missing_ok=True)


def followed(target: Path) -> Path:
    """The target of a link, so that the link stays. Raises OSError where it leads nowhere, or to a device."""
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    if place.is_symlink():
        raise OSError(40, "is a link that leads to itself")
    if place.exists() and not (place.is_file() or place.is_dir()):
        raise OSError(22, "is not a file")
    return place

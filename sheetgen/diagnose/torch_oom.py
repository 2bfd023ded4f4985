"""The amounts of PyTorch's out-of-memory line, in all its wordings, in bytes."""

from __future__ import annotations

import re

from sheetgen.units import GIB, MIB

_AMOUNT = r"(\d{1,9}(?:\.\d{1,4})?) (bytes|KiB|MiB|GiB|KB|MB|GB)"
_UNITS = {"bytes": 1, "KiB": 1024, "KB": 1024, "MiB": MIB, "MB": MIB, "GiB": GIB, "GB": GIB}
_WORDINGS = (
    ("tried_bytes", rf"Tried to allocate {_AMOUNT}"),
    ("gpu_memory_bytes", rf"total capaci?ty of {_AMOUNT}"),
    ("gpu_memory_bytes", rf"{_AMOUNT} total capacity"),
    ("free_bytes", rf"of which {_AMOUNT} is free"),
    ("free_bytes", rf"; {_AMOUNT} free"),
    ("in_use_bytes", rf"this process has {_AMOUNT} memory in use"),
    ("allocated_bytes", rf"{_AMOUNT} is allocated by PyTorch"),
    ("allocated_bytes", rf"{_AMOUNT} already allocated"),
    ("private_pool_bytes", rf"{_AMOUNT} allocated in private pools"),
    ("reserved_bytes", rf"{_AMOUNT} reserved in total"),
    ("reserved_unallocated_bytes", rf"{_AMOUNT} is reserved by PyTorch but unallocated"),
)
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _WORDINGS)
_PROCESS = re.compile(rf"Process (\d{{1,10}}) has {_AMOUNT}")
_CONTEXT = 2 * GIB  # of a rank that has only begun
_GPU = re.compile(r"GPU (\d{1,4})(?: has|;)")


def amounts(text: str) -> dict[str, float]:
    """Every amount of the line; `other_bytes` is what processes but this one hold, where the line lets one tell."""
    found: dict[str, float] = {}
    for name, pattern in _PATTERNS:
        if name not in found and (match := pattern.search(text)):
            found[name] = float(match[1]) * _UNITS[match[2]]
    if "reserved_bytes" in found and "allocated_bytes" in found:
        kept = found["reserved_bytes"] - found["allocated_bytes"]
        found.setdefault("reserved_unallocated_bytes", max(0.0, kept))
    sizes = [float(m[2]) * _UNITS[m[3]] for m in _PROCESS.finditer(text)]
    if sizes:
        found["n_processes"] = len(sizes) + ("in_use_bytes" in found)
    if gpu := _GPU.search(text):
        found["gpu"] = float(gpu[1])
    others = _others(found, sizes)
    if others is not None and not _of_one_job(found, sizes):
        found["other_bytes"] = others
    return found


def _of_one_job(found: dict[str, float], sizes: list[float]) -> bool:
    """Several processes of the same small size beside this one: contexts of its own ranks, not somebody else's."""
    alike = len(sizes) > 1 and max(sizes) - min(sizes) <= 0.01 * max(sizes)
    return alike and "in_use_bytes" in found and max(sizes) < _CONTEXT


def _others(found: dict[str, float], sizes: list[float]) -> float | None:
    """What is in use and not by this process. A container sees its own process by another number."""
    least = found.get("allocated_bytes", 0.0)
    own = found.get("in_use_bytes")
    if own is not None and own < least:  # a container that cannot see itself: "this process has 0 bytes"
        return None
    if own is None and len(sizes) > 1:
        own = min((size for size in sizes if size >= least), default=max(sizes))
        return sum(sizes) - own
    if own is not None and {"gpu_memory_bytes", "free_bytes"} <= found.keys():
        return max(0.0, found["gpu_memory_bytes"] - found["free_bytes"] - own)
    return None

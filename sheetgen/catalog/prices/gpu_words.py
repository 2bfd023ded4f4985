"""Which GPU a price list means: by the words of its name, its memory and its form. Never by likeness."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sheetgen.catalog.hardware import Gpu

# A list and a catalog count the memory of one GPU differently (what is sold, what is left: 192 and 180 for a
# B200); 40 and 48, or 80 and 94, are two GPUs.
MEMORY_TOLERANCE = 0.1

_MEMORY = re.compile(r"\b([0-9]{2,3}) ?gb?\b")
_SPARE = {"nvidia", "amd", "intel", "google", "aws", "hgx", "geforce", "tesla", "blackwell", "edition", "hbm3", "hbm3e"}
_FORMS = ({"sxm", "pcie", "nvl"}, {"server", "workstation"})  # of each, a GPU is one
_SAME = {"se": "server", "ws": "workstation", "we": "workstation"}


@dataclass(frozen=True)
class GpuWords:
    """A GPU's name taken apart: `NVIDIA A100 SXM4 80GB` is {a100}, {sxm}, 80."""

    core: frozenset[str]
    forms: frozenset[str]
    memory_gb: float | None


def words(name: str, interconnect: str = "", memory_gb: float | None = None) -> GpuWords:
    """The words of a name, with the form and the memory that other columns state."""
    low = re.sub(r"[-_]", " ", name.lower())
    stated = _MEMORY.search(low)
    parts = {_SAME.get(w, w) for w in re.findall(r"[a-z0-9.]+", _MEMORY.sub(" ", low))}
    parts = {"sxm" if re.fullmatch(r"sxm[0-9]?", w) else w for w in parts} - _SPARE
    forms = parts & set().union(*_FORMS)
    bus = interconnect.lower()
    return GpuWords(
        core=frozenset(parts - forms),
        forms=frozenset(forms | ({bus} & _FORMS[0] if not forms & _FORMS[0] else set())),
        memory_gb=float(stated[1]) if stated else memory_gb,
    )


def could_be(found: GpuWords, gpu: Gpu) -> bool:
    """Whether nothing that `found` states of form and memory speaks against `gpu`."""
    own = words(gpu.id).forms | words(gpu.form_factor).forms
    for group in _FORMS:
        asked, has = found.forms & group, own & group
        if asked and has and not asked & has:
            return False
    if not found.memory_gb:
        return True
    return abs(found.memory_gb / gpu.memory.marketed_gb - 1) <= MEMORY_TOLERANCE


def by_core(gpus: Iterable[Gpu]) -> dict[frozenset[str], list[Gpu]]:
    """The GPUs of the catalogs by the words that every one of their names leads to."""
    found: dict[frozenset[str], list[Gpu]] = {}
    for gpu in gpus:
        for core in {words(name).core for name in (gpu.id, gpu.name, gpu.short_name, *gpu.aliases)}:
            found.setdefault(core, []).append(gpu)
    return found


def gpus_named(found: GpuWords, known: dict[frozenset[str], list[Gpu]]) -> list[Gpu]:
    """All GPUs that these words may mean: one, where they are enough."""
    return [gpu for gpu in known.get(found.core, ()) if could_be(found, gpu)]

"""GPU names as tools print them (nvidia-smi, torch, ROCm, labels of Kubernetes nodes, price lists), parsed into core
words, form, memory and MIG profile; and the GPUs of the catalogs that a name may mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sheetgen.catalog.hardware import Gpu

# Sources state the memory of one GPU differently (as sold, or as usable: 192 and 180 GB for a B200); 40 and 48 GB, or
# 80 and 94, are two GPUs.
MEMORY_TOLERANCE = 0.1

_MEMORY = re.compile(r"\b([0-9]{2,3}) ?gb?\b")
_PROFILE = re.compile(r"\b(?:mig )?([1-7]g\.[0-9]{1,3}gb)(?:[+.]me)?\b")
# Text that tools put around a name: an identity in brackets, the key of a list or a node's label, a file's ending.
_AROUND = (r"\((?:uuid|gfx)[^)]*\)", r"^.*[:=]\s*(?=\S)", r"^\S+\.com/", r"\.json$", r"[\"']")
_SPARE = {
    "nvidia", "amd", "intel", "google", "aws", "hgx", "geforce", "tesla", "blackwell", "instinct", "oam", "vf",
    "edition", "generation", "gpu", "tensor", "core", "hbm2", "hbm2e", "hbm3", "hbm3e", "ac", "mega",
}  # fmt: skip
_FORMS = ({"sxm", "pcie", "nvl"}, {"server", "workstation"})  # a GPU has at most one of each set
_SAME = {"se": "server", "ws": "workstation", "we": "workstation"}


@dataclass(frozen=True)
class GpuWords:
    """A parsed GPU name: `NVIDIA A100-SXM4-80GB MIG 1g.10gb` is {a100}, {sxm}, 80 and 1g.10gb."""

    core: frozenset[str]
    forms: frozenset[str]
    memory_gb: float | None
    mig_profile: str | None = None


def bare(name: str) -> str:
    """A GPU's name without the text that tools put around it: `GPU 0: NVIDIA L4 (UUID: GPU-0a)` is `nvidia l4`."""
    low = name.strip().lower()
    for around in _AROUND:
        low = re.sub(around, "", low).strip()
    return low


def words(name: str, interconnect: str = "", memory_gb: float | None = None) -> GpuWords:
    """The parsed name; form and memory that it does not state come from `interconnect` and `memory_gb`."""
    low = re.sub(r"[-_]", " ", bare(name))
    low = re.sub(r"\brtx(?=[0-9a])", "rtx ", low)
    profile = _PROFILE.search(low)
    low = _PROFILE.sub(" ", low)
    stated = _MEMORY.search(low)
    parts = {_SAME.get(w, w) for w in re.findall(r"[a-z0-9.]+", _MEMORY.sub(" ", low))}
    parts = {"sxm" if re.fullmatch(r"sxm[0-9]?", w) else w for w in parts} - _SPARE
    forms = parts & set().union(*_FORMS)
    if not forms & _FORMS[0]:
        forms |= {interconnect.lower()} & _FORMS[0]
    memory = float(stated[1]) if stated else memory_gb
    return GpuWords(frozenset(parts - forms), frozenset(forms), memory, profile[1] if profile else None)


def without_profile(name: str) -> str:
    """The name of a MIG slice without its profile, which is that of the whole GPU."""
    return _PROFILE.sub(" ", re.sub(r"[-_]", " ", bare(name)))


def could_be(asked: GpuWords, gpu: Gpu) -> bool:
    """True unless form, memory or MIG profile of `asked` contradict `gpu`."""
    own = words(gpu.id).forms | words(gpu.form_factor).forms
    for group in _FORMS:
        stated, has = asked.forms & group, own & group
        if stated and has and not stated & has:
            return False
    if asked.mig_profile and not (gpu.mig and asked.mig_profile in gpu.mig.slices):
        return False
    return not asked.memory_gb or abs(asked.memory_gb / gpu.memory.marketed_gb - 1) <= MEMORY_TOLERANCE


def by_core(gpus: Iterable[Gpu]) -> dict[frozenset[str], list[Gpu]]:
    """The GPUs by the core words of each of their names."""
    named: dict[frozenset[str], list[Gpu]] = {}
    for gpu in gpus:
        for core in {words(name).core for name in (gpu.id, gpu.name, gpu.short_name, *gpu.aliases, *gpu.device_names)}:
            named.setdefault(core, []).append(gpu)
    return named


def gpus_named(asked: GpuWords, by_words: Mapping[frozenset[str], list[Gpu]]) -> list[Gpu]:
    """All GPUs that these words may mean; `by_words` is from `by_core`."""
    return [gpu for gpu in by_words.get(asked.core, ()) if could_be(asked, gpu)]


def usual_one(asked: GpuWords, gpus: list[Gpu]) -> list[Gpu]:
    """The one of several GPUs with an alias that states no more than the name does; all of them if not exactly one."""

    def is_called_so(gpu: Gpu) -> bool:
        own = map(words, gpu.aliases)
        return any(
            w.core == asked.core and w.forms <= asked.forms and w.memory_gb in (None, asked.memory_gb) for w in own
        )

    usual = [gpu for gpu in gpus if is_called_so(gpu)]
    return usual if len(usual) == 1 else gpus

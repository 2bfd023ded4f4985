"""How a name that people write finds its entry: ids, aliases, Hugging Face ids, quantized checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model

SPARE_WORDS = {"meta", "instruct", "chat", "it", "hf", "base"}  # parts of a name that name no other shape

# The end of a checkpoint's name, and the precision of its weights. First match wins.
_SUFFIXES = tuple((re.compile(rf"[-_.]({pattern})$"), dtype) for pattern, dtype in (
    (r"fp8[-_](dynamic|static|block|kv|tensor)", "fp8"), (r"(quantized\.)?w8a8[-_]fp8", "fp8"), (r"fp8", "fp8"),
    (r"nvfp4(a16)?([-_](kv|v\d+))?|fp4", "nvfp4"), (r"mxfp4", "mxfp4"),
    (r"gptq[-_](int8|8bit)|(quantized\.)?(w8a8|w8a16)([-_](int8|g128))?|int8|8bit", "int8"),
    (r"(quantized\.)?w4a16([-_]g128)?", "int4"), (r"(awq|gptq|autoround)([-_](int4|4bit|g128|w4a16|marlin))*", "int4"),
    (r"(unsloth[-_])?bnb[-_]4bit|int4([-_](awq|gptq|autoround))?|4bit", "int4"), (r"bf16", "bf16"), (r"fp16", "fp16"),
))  # fmt: skip


def stem(name: str) -> str:
    """The catalog id that a Hugging Face name asks for: no organisation, no spare words, lower case."""
    last = name.strip().lower().rsplit("/", 1)[-1].replace("_", ".")
    parts = last.split("-")
    return "-".join(part for part in parts if part not in SPARE_WORDS) or last


def without_precision(name: str) -> tuple[str, str] | None:
    """`x-FP8-dynamic` as (`x`, `fp8`); nothing where the name ends in no known precision."""
    low = name.strip().lower()
    for pattern, dtype in _SUFFIXES:
        if match := pattern.search(low):
            return low[: match.start()], dtype
    return None


def is_path(name: str) -> bool:
    """A `.json` file, or a folder: a model of the user's own, not a name in the catalogs."""
    if name.lower().endswith(".json") or name.startswith(("/", "./", "../", "~", ".\\")) or "\\" in name:
        return True
    try:
        return (Path(name) / "config.json").is_file()
    except (OSError, ValueError):  # too long, or no file name at all
        return False


def model_names(model: Model) -> Iterator[tuple[str, bool]]:
    """Every name of a model, and whether it is its own (true) or only follows from one (false)."""
    own = [model.id, *model.aliases, *model.same_architecture]
    own += [model.hf_id] if model.hf_id else []
    for name in own:
        yield name.lower(), True
    yield model.name.lower(), False  # as workbooks and pages call it
    for name in own:
        yield stem(name), False
        shorter = without_precision(name)
        if shorter and shorter[1] == "bf16":
            yield stem(shorter[0]), False
    for checkpoint in model.checkpoints:
        if checkpoint.hf_id:
            yield checkpoint.hf_id.lower(), False


def gpu_names(gpu: Gpu) -> Iterator[tuple[str, bool]]:
    for name in (gpu.id, *gpu.aliases):
        yield name, True
    yield gpu_key(gpu.id.removeprefix(f"{gpu.vendor}-")), False
    yield gpu_key(gpu.name), False
    yield gpu_key(gpu.short_name), False


def device_names(gpu: Gpu) -> Iterator[tuple[str, bool]]:
    """Every name that drivers and engines print for a GPU; all are its own."""
    for name in gpu.device_names:
        yield name, True


class Devices:
    """The GPUs that a text names as drivers and engines print them.

    words: a text without any of them names no device.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        makers = sorted({name.split()[0] for name in names})
        self.words = tuple(f"{maker}{end}" for maker in makers for end in (" ", "_"))
        longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        # A size or letter behind it, a `Ti` or a laptop's GPU is another device.
        self._pattern = re.compile(rf"(?<![A-Za-z])({longest_first})(?!\w| (?:Ti|D|Laptop)\b)")

    def find(self, text: str) -> tuple[str, str] | None:
        """The GPU that `text` names, as the catalog calls it and as it stands there; `_` counts as a blank."""
        if not any(word in text for word in self.words):
            return None
        match = self._pattern.search(text.replace("_", " "))
        return (self._names[match[1]], match[1]) if match else None


def gpu_key(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())


def table(entries: Iterable[tuple[str, Iterable[tuple[str, bool]]]]) -> tuple[dict[str, str], list[str]]:
    """Name to id for all entries, and the names that two entries call their own.

    An own name beats one that only follows; a name that follows from several leads to all of them, with
    spaces between, so that a message can name the candidates.
    """
    own: dict[str, str] = {}
    follows: dict[str, list[str]] = {}
    clashes: list[str] = []
    for entry_id, names in entries:
        for name, is_own in names:
            if not is_own:
                if entry_id not in follows.setdefault(name, []):
                    follows[name].append(entry_id)
            elif own.setdefault(name, entry_id) != entry_id:
                clashes.append(f"{name} names both {own[name]} and {entry_id}")
    merged = {name: " ".join(ids) for name, ids in follows.items()} | own
    return dict(sorted(merged.items())), clashes

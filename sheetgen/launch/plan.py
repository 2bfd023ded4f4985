"""What one engine's command is written from, and what writing it gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sheetgen.catalog.model import Model
from sheetgen.catalog.stacks import Input, Launcher
from sheetgen.launch.served import Served
from sheetgen.launch.trial import Trial


@dataclass(frozen=True)
class Plan:
    """One point that holds under one engine, and the checkpoints that its command names."""

    trial: Trial
    launcher: Launcher
    served: Served
    draft: Served | None
    speculative_tokens: int

    def value(self, name: str) -> Any:
        """An input of the point, as it was sized."""
        return self.trial.answer[name]

    @property
    def n_gpus(self) -> int:
        sizes = (self.value(f"{one}_parallel_size") for one in ("tensor", "pipeline", "data"))
        return int(next(sizes) * next(sizes) * next(sizes))

    @property
    def shares_experts(self) -> bool:
        """Whether data-parallel ranks divide the experts between them: where the model has any."""
        return self.value("data_parallel_size") > 1 and self.trial.known["n_params_routed"] > 0

    @property
    def default_block_size(self) -> int:
        return self.trial.names.engine.block_size

    @property
    def cache_word(self) -> str:
        """The engine's word for the precision of the cache."""
        return self.launcher.kv_cache_dtypes.get(self.value("kv_cache_dtype"), "auto")

    @property
    def prefixes(self) -> bool:
        return bool(self.value("enable_prefix_caching"))

    def flags(self, names: Iterable[Input]) -> dict[str, Any]:
        """The engine's flag and the point's value for each input; sizes of 1 that change nothing are left out."""
        found: dict[str, Any] = {}
        for name in names:
            value = self.value(name)
            if name == "block_size" and value == self.default_block_size:
                continue
            if name.endswith("parallel_size") and value == 1 and name != "tensor_parallel_size":
                continue
            found[self.launcher.flags[name]] = round(value, 4) if isinstance(value, float) else value
        return found

    def dtype_flag(self) -> dict[str, Any]:
        """How 16- or 32-bit weights are to be read where that is not the checkpoint's own way."""
        return {self.launcher.flags["dtype"]: self.served.dtype} if self.served.dtype else {}


@dataclass
class Written:
    """A command and its parts.

    groups: words by line. settings: every flag with its value, also those in files and in the environment. files:
    text by name. other: further commands by name, each with its settings.
    """

    groups: list[tuple[str, ...]]
    settings: dict[str, Any]
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    other: dict[str, Written] = field(default_factory=dict)


def is_eagle(draft: Model) -> bool:
    """Whether a draft is an EAGLE head, which reads the target's hidden states, and no model of its own."""
    return "eagle" in draft.id


def paired(words: Iterable[str]) -> dict[str, Any]:
    """Words of a launcher (`--quantization fp8`) as flags with their values."""
    found: dict[str, Any] = {}
    flag = ""
    for word in words:
        if word.startswith("--"):
            flag, found[word] = word, True
        else:
            found[flag] = word
    return found

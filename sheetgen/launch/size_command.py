"""The `sheetgen size` command of a replica as it is started, which predicts the figures of its log."""

from __future__ import annotations

from sheetgen.catalog.base import RawMapping
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import Launcher
from sheetgen.launch.commands import quoted
from sheetgen.launch.flag_check import Trial, trials
from sheetgen.question.deployment import DEFAULTS

REQUIRED = ("model", "gpu", "tensor_parallel_size", "context_tokens", "concurrent_requests")  # always shown
_LEFT_OUT_TOGETHER = {"output_tokens": ("input_tokens", "output_tokens")}  # each follows from the other


def size_command(typed: RawMapping, trial: Trial, launcher: Launcher, catalog: Catalog) -> str:
    """The command for a replica on one line, without options that `size` would choose itself.

    typed: the inputs with the user's own names.
    """
    given = {name: trial.answer[name] for name, usual in DEFAULTS.items() if trial.answer[name] not in (None, usual)}
    given |= {name: trial.answer[name] for name in REQUIRED}
    given |= {name: typed[name] for name in ("model", "draft_model") if typed.get(name)}
    optional = [name for name in given if name not in REQUIRED]
    rows = [{k: v for k, v in given.items() if k not in _LEFT_OUT_TOGETHER.get(name, (name,))} for name in optional]
    tried = trials(rows, [launcher] * len(rows), catalog, needed=()) if rows else []
    usual = {
        name
        for name, without in zip(optional, tried, strict=True)
        if without is not None and without.answer[name] == trial.answer[name]
    }
    gpu = trial.names.gpu
    given["gpu"] = min(gpu.id, *gpu.aliases, key=len)
    words = ["sheetgen", "size"]
    for name in (*REQUIRED, *optional):
        if name not in usual:
            words += [f"--{name.removesuffix('_tokens') if name == 'context_tokens' else name}".replace("_", "-")]
            words += [quoted(str(given[name]))]
    return " ".join(words)

"""`sheetgen size` for a replica as it is started: the command that says what its log is to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import Launcher
from sheetgen.launch.commands import quoted
from sheetgen.launch.flag_check import Trial, trials
from sheetgen.question.deployment import DEFAULTS

SAID = ("model", "gpu", "tensor_parallel_size", "context_tokens", "concurrent_requests")  # what a reader looks for
_WITH = {"output_tokens": ("input_tokens", "output_tokens")}  # left out together: without it each follows the other


def size_command(typed: Mapping[str, Any], trial: Trial, launcher: Launcher, catalog: Catalog) -> str:
    """The command for a replica, in a line: what `size` takes by itself is left out. typed: the inputs as they were
    asked for, with the user's names."""
    given = {name: trial.answer[name] for name, usual in DEFAULTS.items() if trial.answer[name] not in (None, usual)}
    given |= {name: trial.answer[name] for name in SAID}
    given |= {name: typed[name] for name in ("model", "draft_model") if typed.get(name)}
    optional = [name for name in given if name not in SAID]
    rows = [{k: v for k, v in given.items() if k not in _WITH.get(name, (name,))} for name in optional]
    tried = trials(rows, [launcher] * len(rows), catalog, needed=()) if rows else []
    usual = {
        name
        for name, one in zip(optional, tried, strict=True)
        if one is not None and one.answer[name] == trial.answer[name]
    }
    gpu = trial.names.gpu
    given["gpu"] = min(gpu.id, *gpu.aliases, key=len)
    words = ["sheetgen", "size"]
    for name in (*SAID, *optional):
        if name not in usual:
            words += [f"--{name.removesuffix('_tokens') if name == 'context_tokens' else name}".replace("_", "-")]
            words += [quoted(str(given[name]))]
    return " ".join(words)

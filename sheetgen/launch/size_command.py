"""The `sheetgen size` commands of replicas as they are started, which predict the figures of their logs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import Launcher
from sheetgen.launch.commands import quoted
from sheetgen.launch.flag_check import Trial, trials
from sheetgen.question.deployment import DEFAULTS

REQUIRED = ("model", "gpu", "tensor_parallel_size", "context_tokens", "concurrent_requests")  # always shown
_LEFT_OUT_TOGETHER = {"output_tokens": ("input_tokens", "output_tokens")}  # each follows from the other


class Replica(NamedTuple):
    """A replica as it is started. typed: its inputs with the user's own names."""

    typed: RawMapping
    trial: Trial
    launcher: Launcher

    @property
    def given(self) -> RawRecord:
        """The inputs of which the command may be made."""
        answer = self.trial.answer
        given = {name: answer[name] for name, usual in DEFAULTS.items() if answer[name] not in (None, usual)}
        given |= {name: answer[name] for name in REQUIRED}
        return given | {name: self.typed[name] for name in ("model", "draft_model") if self.typed.get(name)}


def size_commands(replicas: Sequence[Replica], catalog: Catalog) -> list[str]:
    """The command for each replica on one line, without options that `size` would choose itself: all are tried at
    once."""
    every = [replica.given for replica in replicas]
    left_out = [(i, name) for i, given in enumerate(every) for name in given if name not in REQUIRED]
    rows = [
        {k: v for k, v in every[i].items() if k not in _LEFT_OUT_TOGETHER.get(name, (name,))} for i, name in left_out
    ]
    tried = trials(rows, [replicas[i].launcher for i, _ in left_out], catalog, needed=()) if rows else []
    usual = {
        (i, name)
        for (i, name), without in zip(left_out, tried, strict=True)
        if without is not None and without.answer[name] == replicas[i].trial.answer[name]
    }
    return [
        _written(given | {"gpu": min((gpu := replica.trial.names.gpu).id, *gpu.aliases, key=len)}, i, usual)
        for i, (replica, given) in enumerate(zip(replicas, every, strict=True))
    ]


def _written(given: RawRecord, i: int, usual: Collection[tuple[int, str]]) -> str:
    """A command with what is given of the replica `i`, without what is usual."""
    words = ["sheetgen", "size"]
    for name in (*REQUIRED, *(name for name in given if name not in REQUIRED)):
        if (i, name) not in usual:
            words += [f"--{name.removesuffix('_tokens') if name == 'context_tokens' else name}".replace("_", "-")]
            words += [quoted(str(given[name]))]
    return " ".join(words)

"""What the levers read of the catalogs beside a solved question: words, sizes of changes, links, what engines run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sheetgen.catalog.engines import Engine
from sheetgen.catalog.levers import LeverFile, LeverWords, NotRun
from sheetgen.catalog.stacks import Launcher
from sheetgen.scenario.question import Question


@dataclass(frozen=True)
class Facts:
    """The catalogs' part; fractions are those of assumptions.yaml."""

    file: LeverFile
    words: Mapping[str, LeverWords]
    prefix_hit_fraction: float
    context_fraction: float
    fewer_users_fraction: float
    like_size_fraction: float
    launcher: Launcher | None
    not_run: NotRun | None

    @classmethod
    def of(cls, question: Question) -> Facts:
        """The facts for a question's engine. Raises CatalogError where the catalogs lack one."""
        reference, engine = question.reference, question.engine
        known, file = reference.assumption, reference.levers
        return cls(
            file=file,
            words={one.id: one for one in file.levers},
            prefix_hit_fraction=known("lever_prefix_cache_hit_fraction"),
            context_fraction=known("lever_context_fraction"),
            fewer_users_fraction=known("lever_fewer_users_fraction"),
            like_size_fraction=known("lever_like_size_fraction"),
            launcher=next((one for one in reference.launchers if one.engine == engine.engine), None),
            not_run=next((one for one in file.not_run if one.engine == engine.engine), None),
        )

    def engine_lacks(self, engine: Engine, what: str, dtype: str) -> str:
        """Why an engine does not run weights or a KV cache of a precision, or nothing where it does.

        An engine that the catalogs say nothing of is taken to run it.
        """
        if self.launcher is not None:
            runs = self.launcher.kv_cache_dtypes if what == "KV cache" else self.launcher.weight_dtypes
            return "" if dtype in runs else f"{engine.name} does not run {_named(what, dtype)}"
        known = self.not_run
        if known is None or dtype not in (known.kv_cache_dtypes if what == "KV cache" else known.weight_dtypes):
            return ""
        return f"{engine.name} does not run {_named(what, dtype)}: {known.instead}"


def _named(what: str, dtype: str) -> str:
    return f"a KV cache in {dtype}" if what == "KV cache" else f"{dtype} weights"

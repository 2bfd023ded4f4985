"""A log in which nothing failed: the prediction beside what was measured, and the limit that is met first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.diagnose.verdict import Verdict
from sheetgen.errors import SheetgenError
from sheetgen.recommend import short_tokens
from sheetgen.startup.compare import Compared, compare
from sheetgen.startup.read import StartupLog

_COMPARED = ("weights_bytes_per_gpu", "activation_bytes_per_gpu", "kv_pool_bytes_per_gpu", "kv_tokens")


@dataclass(frozen=True)
class Health:
    """`first_limit` is one sentence; `compared` has predicted and measured by quantity."""

    first_limit: str
    compared: dict[str, tuple[float | int, float | int]]
    not_compared_because: tuple[str, ...] = ()


def health(startup: StartupLog, verdict: Verdict, options: Mapping[str, Any], catalog: Catalog) -> Health | None:
    """What a healthy log says of its room; None where it states no pool."""
    try:
        compared = compare(startup, options, catalog)
    except SheetgenError as error:
        return Health(_limit(startup, None, options), {}, error.problems)
    pairs = {
        name: (predicted, compared.measured.figures[name].value)
        for name in _COMPARED
        if (predicted := compared.predicted.get(name)) is not None and name in compared.measured.figures
    }
    return Health(_limit(startup, compared, options), pairs, compared.unsized)


def _limit(startup: StartupLog, compared: Compared | None, options: Mapping[str, Any]) -> str:
    """The user that waits first, at the longest context and at half of it: by memory or by the engine's own cap."""
    from sheetgen.scenario import parse
    from sheetgen.startup.read import measure

    measured = compared.measured if compared else measure(startup)
    tokens = measured.figures.get("kv_tokens")
    arguments = {name: one.value for name, one in startup.arguments.items()}
    stated = compared.inputs.get("max_model_len") if compared else None
    each = startup.figures.get("tokens_per_request", {})
    length = stated or next((f.value for f in each.values()), None)
    asked = options.get("context_tokens") or options.get("max_model_len")
    if asked is not None:
        length = parse.tokens(asked, "context")
    if tokens is None:
        return ""
    if not length:
        return f"the pool is {tokens.value:,.0f} tokens; max_model_len is not in the log. Add --context 16k"
    held = int(tokens.value // length)
    cap = (compared.inputs.get("max_num_seqs") if compared else None) or arguments.get("max_num_seqs")
    at = short_tokens(int(length))
    if isinstance(cap, int) and 0 < cap <= held:
        return f"user {cap + 1:,} waits for a free place (max_num_seqs {cap:,}); the pool would hold {held:,} at {at}"
    if held < 1:
        return f"one request of {at} does not fit in the pool of {tokens.value:,.0f} tokens"
    return f"user {held + 1:,} at {at}: the pool of {tokens.value:,.0f} tokens holds {held:,}"

"""Workings: a row per load (model x workload x tier) with its context and requests, and then the choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sheetgen.sheet.book.catalogs import LABELS
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, titled
from sheetgen.sheet.book.words import load_words
from sheetgen.sheet.model import Range, Sheet
from sheetgen.sizing import admission, parallelism
from sheetgen.sizing.admission import short_tokens
from sheetgen.units import PLAIN, TEXT, WHOLE

_OF_MODEL = ("max_context_tokens", "n_heads", "full_kv_heads", "windowed_kv_heads")


def build_loads(
    wiring: Wiring, workloads: Sequence[str], loads: Sequence[tuple[int, int, int]], name: str = "Workings",
    names: Sequence[str] = (),
) -> Sheet:  # fmt: skip
    """The sheet with the load columns; `add_choices` fills in the rest once the matrices stand.

    loads: model, workload and tier of each, from 0. names: what each is called, where not by its workload.
    """
    sheet = titled(
        name,
        name,
        "A row per load: model, workload, tier, the tokens charged, and the cheapest hardware that holds it.",
        freeze=(HEAD_ROWS + 1, 4),
    )
    table = Table(sheet, HEAD_ROWS, 0, len(loads), key=f"{wiring.prefix}loads", names=wiring.names)
    wiring.tables["cells"] = table
    models = wiring.tables["models"]
    table.given("model_row", "Model row", [m + 1 for m, _, _ in loads], PLAIN, role="fixed", width=8)
    table.given("workload_row", "Workload row", [w + 1 for _, w, _ in loads], PLAIN, role="fixed", width=8)
    table.given("tier_row", "Tier row", [t + 1 for _, _, t in loads], PLAIN, role="fixed", width=8)

    table.given("pace_row", "Context row", [m * len(workloads) + w + 1 for m, w, _ in loads], PLAIN, role="fixed",
                width=8, note="Row of the model and workload on Contexts.")  # fmt: skip

    def look(name: str, label: str, refs: Range, key: str, display: Any = WHOLE, width: float = 14) -> None:
        table.picked(name, label, refs, key, display, width=width)

    look("model", "Model", models.range("model"), "model_row", TEXT, 24)
    table.given("workload", "Workload", names or [workloads[w] for _, w, _ in loads], TEXT, role="label", width=14)
    look("context_tokens", "Context", wiring.lists["contexts"], "workload_row")
    look("input_tokens", "Prompt", wiring.lists["prompts"], "workload_row")
    look("concurrent_requests", "In flight", wiring.lists["tiers"], "tier_row")
    for fact in _OF_MODEL:
        look(fact, LABELS[fact], models.range(fact), "model_row")
    table.computed(load_words, lambda i: {}, width=30)
    env = lambda i: {**wiring.inputs, "max_model_len": table.columns["context_tokens"][i]}  # noqa: E731
    table.computed(admission.charged_tokens, env)
    table.computed(parallelism.users, env)
    table.computed(parallelism.load_requests, env)
    table.computed(parallelism.within_limit, env)
    table.computed(short_tokens, lambda i: {**wiring.inputs, "tokens": table.columns["context_tokens"][i]},
                   name="context_words", label="Context in words")  # fmt: skip
    table.computed(short_tokens, lambda i: {**wiring.inputs, "tokens": table.columns["max_context_tokens"][i]},
                   name="limit_words", label="Model's limit in words")  # fmt: skip
    return sheet

"""Speed: every GPU beside the others at a load of the reader's choice; behind it, what each model has to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sheetgen.estimate import PACE
from sheetgen.formula import Expr, formula, is_number, join_text, where
from sheetgen.recommend import Solution
from sheetgen.recommend.solve import STRIDE
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.sheet.book.catalogs import LABELS
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, named, titled
from sheetgen.sheet.model import Cell, Range, Ref, Sheet, Source, Validation, lookup, pick, position
from sheetgen.sizing import admission, parallelism, steps, targets
from sheetgen.units import FACTOR, PLAIN, TEXT, WHOLE

_OF_MODEL = (
    "n_layers", "n_experts", "hidden_size", "window_tokens", "window_is_chunked", "n_state_layers",
    "attention_elements", "windowed_attention_elements", "n_params_active", "dense_read_bytes", "expert_read_bytes",
    "expert_miss_fraction", "active_expert_params", "n_growing_groups", "n_windowed_groups", "n_state_groups",
    "n_heads", "full_kv_heads", "windowed_kv_heads",
)  # fmt: skip
COMPARED = (
    "batch_requests", "untouched_fraction", "tpot_seconds", "service_ttft_seconds", "ttft_seconds",
    "output_tokens_per_second", "prefill_fraction", "bound_by",
)  # fmt: skip
# What a step on a profile takes from the blocks of Profiles.
PARTS = (
    "dense_seconds", "expert_seconds", "layer_overhead_seconds", "all_reduce_seconds", "token_link_seconds",
    "kv_read_seconds", "decode_compute_seconds", "prefill_seconds", "batch_limit",
)  # fmt: skip
SUMS = (steps.fixed_step_seconds, steps.request_step_seconds)  # of these
OF_PROFILE = ("wait_factor", "base_ttft_seconds", "steps_before_prefill")


@formula("Model and workload", TEXT)
def pace_words(model: Any, workload: Any) -> Any:
    """A model and a workload in words.

    Source: the rows of this sheet.
    """
    return join_text(model, ", ", workload)


def build_latency(wiring: Wiring, workloads: Sequence[str], name: str = "Contexts") -> Sheet:
    """Contexts: a row per model and workload, and to the right the batches that are tried."""
    n_models = len(wiring.tables["models"].columns["model"])
    sheet = titled(
        name,
        name,
        "A row per model and workload: the tokens charged, how long a token may take, and what the model has to do.",
        freeze=(HEAD_ROWS + 1, 1),
    )
    pairs = [(m, w) for m in range(n_models) for w in range(len(workloads))]
    table = Table(sheet, HEAD_ROWS, 0, len(pairs), key=f"{wiring.prefix}contexts", names=wiring.names)
    wiring.tables["paces"] = table
    models, here = wiring.tables["models"], sheet.name
    table.given("workload", "Workload", [workloads[w] for _, w in pairs], TEXT, role="label", width=20)

    def look(name: str, label: str, refs: Range, key: str, display: Any = WHOLE, width: float = 14) -> None:
        table.picked(name, label, refs, key, display, width=width)

    table.given("model_row", "Model row", [m + 1 for m, _ in pairs], PLAIN, role="fixed", width=14)
    table.given("workload_row", "Workload row", [w + 1 for _, w in pairs], PLAIN, role="fixed", width=14)
    look("model", "Model", models.range("model"), "model_row", TEXT, 24)
    look("context_tokens", "Context", wiring.lists["contexts"], "workload_row")
    look("max_context_tokens", "Longest context", models.range("max_context_tokens"), "model_row")
    look("input_tokens", "Prompt", wiring.lists["prompts"], "workload_row")
    look("output_tokens", "Answer", wiring.lists["answers"], "workload_row")
    for figure, label in (("tpot", "TPOT"), ("ttft", "TTFT")):
        asked = wiring.lists[f"{figure}_targets"]
        table.looked_up(
            f"{figure}_target_ms", f"{label} target, ms",
            lambda i, a=asked: _or_zero(a, table.columns["workload_row"][i], here), WHOLE,  # type: ignore[misc]
        )  # fmt: skip
        own = table.columns[f"{figure}_target_ms"]
        table.computed(
            targets.limit_seconds, lambda i, o=own: {**wiring.inputs, "target_ms": o[i]},  # type: ignore[misc]
            name=f"{figure}_limit_seconds", label=f"{label} in force, s",
        )  # fmt: skip
    for name in _OF_MODEL:
        look(name, LABELS[name], models.range(name), "model_row", width=18)
    table.computed(steps.prompt_attention_flops, lambda i: wiring.inputs, width=20)
    longest = lambda i: {**wiring.inputs, "max_model_len": table.columns["context_tokens"][i]}  # noqa: E731
    table.computed(admission.charged_tokens, longest)
    table.computed(parallelism.within_limit, longest)
    table.computed(pace_words, lambda i: {}, width=34)
    _tried(wiring, table, n_models)
    if not wiring.prefix:
        wiring.names["list_pace"] = table.range("pace_words")
    return sheet


def _tried(wiring: Wiring, latency: Table, n_models: int) -> None:
    """Batches that are tried, to the right: 1 to 64 requests, and as many strides, with the share of each model's
    experts that they leave alone."""
    sheet = latency.sheet
    tried = Table(sheet, latency.top, latency.next_column + 1, STRIDE, key=f"{wiring.prefix}tried", names=wiring.names)
    tried.given("steps", "Tried", list(range(1, STRIDE + 1)), PLAIN, role="fixed",
                note="Batches that are tried against the targets: so many requests, and so many strides.")  # fmt: skip
    tried.computed(
        stride_requests, lambda i: {**wiring.inputs, "one": tried.columns["steps"][i]}, label="Requests of the strides"
    )
    first = [next(r for r in range(latency.n_rows) if latency.columns["model_row"][r].value == m + 1)
             for m in range(n_models)]  # fmt: skip
    for m, row in enumerate(first):
        missed = latency.columns["expert_miss_fraction"][row]._replace(lock="both")
        for name, batch in (("untouched_by_request", "steps"), ("untouched_by_stride", "stride_requests")):
            tried.computed(
                steps.untouched_fraction,
                lambda i, q=missed, b=batch: {  # type: ignore[misc]
                    **wiring.inputs, "expert_miss_fraction": q, "batch_requests": tried.columns[b][i],
                },
                name=f"{name}_{m}",
                label=f"Experts left alone, model {m + 1}, {'strides' if batch != 'steps' else 'requests'}",
                width=14,
            )  # fmt: skip
    model = [r.value - 1 for r in latency.columns["model_row"]]
    wiring.ranges = {
        "steps": [tried.range("steps")] * latency.n_rows,
        **{n: [tried.range(f"{n}_{m}") for m in model] for n in ("untouched_by_request", "untouched_by_stride")},
    }


@formula("Requests of the strides")
def stride_requests(one: Any, requests_per_stride: Any) -> Any:
    """Requests of so many strides.

    Source: definition.
    """
    return one * requests_per_stride


def _or_zero(refs: Range, at: Ref, here: str) -> tuple[Any, Expr]:
    """A target, 0 where its cell holds no number."""
    value, expr = pick(refs, at, here)
    return value or 0, where(is_number(expr), expr, 0)


def build_comparison(solved: Solution, wiring: Wiring) -> Sheet:
    """Speed: every GPU and tensor-parallel size at one load, a row each."""
    latency, blocks = wiring.tables["paces"], wiring.blocks
    sheet = titled(
        "Speed",
        "Speed",
        "Every GPU beside the others at the load in the yellow cells. Times in seconds, as if memory held the "
        "requests: where it holds fewer, the others wait.",
        landscape=False,
        freeze=(HEAD_ROWS + 5, 2),
    )
    here, top = sheet.name, HEAD_ROWS
    question, cell = solved.question, _headline(solved)
    known = latency.range("pace_words").value
    words = question.overrides.input("speed_pace", known[question.pace(cell)])
    words = next((one for one in known if one.lower() == str(words).lower()), known[question.pace(cell)])
    sheet.text(top, 0, "Model and workload", "label")
    load = Validation("Load", "A model and workload of this workbook.", source="list_pace")
    chosen = sheet.put(top, 1, Cell(words, "input", TEXT, validation=load), "in_speed_pace")
    sheet.text(top + 1, 0, "Requests of a replica", "label")
    count = Validation("Requests", "A whole number from 1.", kind=BY_NAME["speed_requests"].kind)
    requests = sheet.put(top + 1, 1, Cell(question.overrides.input("speed_requests", cell.concurrent_requests), "input",
                         WHOLE, validation=count), "in_speed_requests")  # fmt: skip
    wiring.names |= {"in_speed_pace": chosen, "in_speed_requests": requests}
    sheet.text(top + 2, 0, "Its row on Contexts", "label")
    at, expr = position(latency.range("pace_words"), chosen, here)
    row = sheet.formula(top + 2, 1, at, expr, PLAIN)
    sheet.text(top + 3, 0, "Its model's row on Models", "label")
    model = sheet.formula(top + 3, 1, *pick(latency.range("model_row"), row, here), PLAIN)
    profiles, n = wiring.tables["profiles"], len(solved.profiles)
    parts = Table(sheet, top + 4, 4 + len(COMPARED), n)  # to the right of what they make up
    parts.given("profile", "Column on Profiles", list(range(1, n + 1)), PLAIN, role="fixed", width=13)

    def of_head(table: Table, name: str, label: str, display: Any, width: float) -> None:
        refs = profiles.range(name)
        table.looked_up(name, label, lambda i: pick(refs, parts.columns["profile"][i], here), display, width=width)

    def of_block(table: Table, name: str, label: str, rows: Sequence[Sequence[Ref]]) -> None:
        block = named(wiring.names, f"tbl_profiles_{name}", (rows[0][0], rows[-1][-1]))
        which = model if name in wiring.by_model else row

        def find(i: int) -> tuple[Any, Expr]:
            place = parts.columns["profile"][i]
            text = f"INDEX({block.expr(here).text},{which.expr(here).text},{place.expr(here).text})"
            return rows[int(which.value) - 1][i].value, Expr(text)

        table.looked_up(name, label, find, FACTOR if name.endswith("seconds") else WHOLE, width=13)

    shared: dict[str, Source] = {
        **wiring.inputs, "concurrent_requests": requests, "running_requests": requests,
        "queue_seconds": wiring.inputs["no_queue_seconds"],
        "pipeline_parallel_size": wiring.inputs["data_parallel_size"],  # 1, too
        **{k: lookup(latency.range(k), row) for k in ("output_tokens", "expert_miss_fraction")},
    }  # fmt: skip
    for name in PARTS:
        of_block(parts, name, name.replace("_", " ").capitalize(), blocks[name])
    for one in SUMS:
        parts.computed(one, lambda i: {}, width=13)
    for name in OF_PROFILE:
        of_head(parts, name, name.replace("_", " ").capitalize(), FACTOR, 13)
    table = Table(sheet, top + 4, 0, n)
    of_head(table, "gpu_name", "GPU", TEXT, 26)
    of_head(table, "tensor_parallel_size", "TP", PLAIN, 38)
    for f in PACE:
        if f.name in COMPARED:
            table.computed(f, lambda i: {**shared, **parts.row(i)}, width=13)
    of_block(table, "sequences", "Requests that memory holds", blocks["sequences"])
    table.looked_up(
        "limit", "Most requests within the targets",
        lambda i: (parts.columns["batch_limit"][i].value, parts.columns["batch_limit"][i].expr(here)), WHOLE, width=13,
    )  # fmt: skip
    return sheet


def _headline(solved: Solution) -> Any:
    w, t = solved.question.headline
    return next(c for c in solved.question.loads if (c.model, c.workload, c.tier) == (0, w, t))

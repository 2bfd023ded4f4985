"""The answer as JSON: what was asked, the candidates, every cell with its choice and the reasons against others.

Same question, same bytes: keys in a fixed order, numbers as they are, no time but `as_of`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sheetgen import cost
from sheetgen.levers import EveryLever, Lever, Offload
from sheetgen.levers.best import in_order
from sheetgen.recommend import Choice, Solution, why_not
from sheetgen.scenario.candidates import DEFAULT_PROVIDERS, Candidate
from sheetgen.scenario.inputs import BY_OPTION, asked_in
from sheetgen.scenario.question import Question
from sheetgen.writers import json_money

if TYPE_CHECKING:
    from sheetgen.sheet.page import Page
    from sheetgen.writers.formats import Options

SCHEMA_VERSION = 1

Record = dict[str, Any]
# Settings that the JSON has elsewhere.
NESTED = ("kv_reserved", "hybrid_kv_manager", *(one.name for one in asked_in("money")))
# What a terminal could obey, or no UTF-8 file can hold: JSON may spell these by their numbers.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")


def text(value: Any) -> str:
    """Any record as the JSON text that all commands print: no NaN, no escapes of plain letters."""
    plain_text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", plain_text) + "\n"


def write_json(page: Page, options: Options) -> bytes:
    """The answer behind the page."""
    return text(options.record()).encode()


def document(
    solved: Solution,
    fingerprints: Sequence[Mapping[str, Any]] = (),
    levers: EveryLever = (),
) -> Record:
    """The whole answer as plain values; what does not apply is None. `levers` are those of each cell."""
    question = solved.question
    return {
        "schema_version": SCHEMA_VERSION,
        "as_of": question.as_of.isoformat(),
        "inputs": inputs(question),
        "candidates": [_candidate(c, question.settings.discount_fraction) for c in question.candidates],
        "cells": [
            {**_cell(solved, row), **_levers(levers[row] if levers else ())} for row in range(len(question.loads))
        ],
        "fingerprints": [plain(f) for f in fingerprints],
        "sources": sources(question),
    }


def plain(value: Any) -> Any:
    """A nested value with lists for tuples, as it will be when it is read back."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def inputs(question: Question) -> Record:
    """Every input, the defaults used among them."""
    settings, filters = question.settings, question.filters
    workload, tier = question.headline
    return {
        "models": [m.model.id for m in question.models],
        "workloads": [
            {
                "id": w.id,
                "context_tokens": w.context_tokens,
                "input_tokens": w.input_tokens,
                "output_tokens": w.output_tokens,
                "tpot_target_ms": w.tpot_target_ms,
                "ttft_target_ms": w.ttft_target_ms,
            }
            for w in question.workloads
        ],
        "tiers": list(question.tiers),
        "engine": question.engine.engine,
        "engine_version": question.engine.default_version,
        **{k: v for k, v in vars(settings).items() if k not in NESTED},
        "kv_allocation": BY_OPTION["kv_allocation"].words[settings.kv_reserved],
        "hybrid_kv_manager": bool(settings.hybrid_kv_manager),
        "providers": list(filters.providers or (() if filters.instances else DEFAULT_PROVIDERS)),
        "gpus": list(filters.gpus),
        "instances": list(filters.instances),
        "region": filters.region or None,
        **json_money.inputs(question),
        "headline": f"{question.workloads[workload].id}:{question.tiers[tier]}",
        "left_out": [{"rows": count, "reason": reason} for reason, count in question.left_out],
        "catalog_sha256": question.catalog_sha256,
        "typed": question.overrides.data() or None,
    }


def _candidate(one: Candidate, discount_fraction: float) -> Record:
    """An instance at what is paid for it."""
    return {
        "instance": one.instance,
        "provider": one.provider,
        "gpu": one.gpu.id,
        "gpu_count": one.gpu_count,
        "purchase": one.purchase,
        "hourly_usd": cost.discounted_usd_per_hour(one.usd_per_hour, discount_fraction),
        "price_as_of": one.price_as_of,
        "region": one.region,
        "assumed_shape": one.assumed_shape,
    }


def _cell(solved: Solution, row: int) -> Record:
    question = solved.question
    cell, choice = question.loads[row], solved.choices[row]
    model = question.models[cell.model]
    return {
        "model": model.model.id,
        "workload": question.workloads[cell.workload].id,
        "tier": question.tiers[cell.tier],
        "context_tokens": cell.context_tokens,
        "concurrent_requests": cell.concurrent_requests,
        "weight_dtype": model.weight_dtype,
        "kv_cache_dtype": model.kv_cache_dtype,
        "weights_bytes": int(solved.models["weights_bytes"][cell.model]),
        "kv_bytes": int(solved.cells["kv_bytes"][row]),
        "verdict": choice.verdict,
        **_chosen(solved, choice),
        **_speed(choice),
        "without_targets": _without_targets(solved, choice),
        **json_money.cell(solved, row),
        "runner_up": _runner_up(solved, choice, row),
        "why_not": [{"instance": i, "reason": r.words} for i, r in why_not(solved, row)],
    }


def _without_targets(solved: Solution, choice: Choice) -> Record | None:
    """What memory alone would take, where the targets of speed make it dearer or impossible."""
    if choice.without_targets is None:
        return None
    offer, count, usd = choice.without_targets
    return {"instance": solved.candidate(offer).instance, "n_instances": count, "monthly_usd": usd}


def _speed(choice: Choice) -> Record:
    """What users get of the recommendation, with 80 % bands, and what asked for the replicas."""
    if choice.offer is None:
        return dict.fromkeys(SPEED)
    found: Record = {name: getattr(choice, name) for name in ("sized_by", "bound_by", "requests_per_replica")}
    for name, (low, high) in zip(TIMES, choice.bands, strict=True):
        found |= {name: getattr(choice, name), f"{name}_low": low, f"{name}_high": high}
    return found


TIMES = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
SPEED = (
    "sized_by", "bound_by", "requests_per_replica",
    *(f"{name}{end}" for name in TIMES for end in ("", "_low", "_high")),
)  # fmt: skip


def _chosen(solved: Solution, choice: Choice) -> Record:
    """The recommendation of a cell, all None where nothing holds it."""
    if choice.offer is None:
        return dict.fromkeys(CHOSEN)
    candidate = solved.candidate(choice.offer)
    size = solved.tensor_parallel_size(choice.offer)
    values = (
        candidate.instance,
        candidate.gpu.id,
        candidate.purchase,
        size,
        choice.pipeline_parallel_size,
        choice.sequences_per_replica,
        choice.n_replicas,
        choice.n_replicas * size * choice.pipeline_parallel_size,
        choice.n_instances,
        choice.hourly_usd,
        choice.monthly_usd,
        choice.headroom_fraction,
        choice.sure_headroom_fraction,
    )
    return dict(zip(CHOSEN, values, strict=True))


CHOSEN = (
    "instance", "gpu", "purchase", "tensor_parallel_size", "pipeline_parallel_size", "sequences_per_replica",
    "n_replicas", "n_gpus", "n_instances", "hourly_usd", "monthly_usd", "headroom_fraction",
    "sure_headroom_fraction",
)  # fmt: skip


def _runner_up(solved: Solution, choice: Choice, row: int) -> Record | None:
    if choice.runner_up is None:
        return None
    candidate, costs = solved.candidate(choice.runner_up), solved.costs
    at = (row, choice.runner_up)
    size = solved.tensor_parallel_size(choice.runner_up)
    stages, replicas = int(costs["pipeline_stages"][at]), int(costs["n_replicas"][at])
    return {
        "instance": candidate.instance,
        "provider": candidate.provider,
        "gpu": candidate.gpu.id,
        "tensor_parallel_size": size,
        "pipeline_parallel_size": stages,
        "n_replicas": replicas,
        "n_gpus": replicas * size * stages,
        "n_instances": int(costs["n_instances"][at]),
        "hourly_usd": float(costs["hourly_usd"][at]),
        "monthly_usd": choice.runner_up_monthly_usd,
    }


def _levers(levers: Sequence[Lever]) -> Record:
    """A cell's levers that have a price, those that save most first, and the indication for host memory.

    saved_usd is None where nothing holds the load without the change.
    """
    priced = [(one, one.after) for one in in_order(levers)]
    return {
        "levers": [
            {
                "lever": one.id,
                "words": one.words,
                "changed": one.changed,
                "instance": after.candidate.instance,
                "n_instances": after.n_instances,
                "n_gpus": after.n_gpus,
                "monthly_usd": after.monthly_usd,
                "saved_usd": one.saved_usd,
                "saved_fraction": one.saved_fraction,
                "note": one.note,
            }
            for one, after in priced
            if after is not None
        ],
        "host_memory": next((_offload(one.offload, one.note) for one in levers if one.offload), None),
    }


def _offload(found: Offload, note: str) -> Record:
    """Weights in host memory, as an indication; bytes are whole numbers."""
    values = {k: round(v) if "bytes" in k and "second" not in k else v for k, v in vars(found).items()}
    return {**values, "note": note}


def sources(question: Question) -> list[Record]:
    """Where the figures come from: one entry per model, GPU, recommended-from instance, workload and engine."""
    found: list[tuple[str, str, str, str | None]] = [
        ("model", m.model.id, m.model.source, m.model.checked_on) for m in question.models
    ]
    found += [("gpu", g.id, f"memory: {g.memory.source}; {g.source}", g.checked_on) for g in question.gpus]
    found += [("instance", c.instance, c.source, c.price_as_of) for c in question.candidates]
    found += [("workload", w.id, w.source, None) for w in question.workloads]
    engine = question.engine
    found += [
        ("engine", f"{engine.engine} {part}", source, engine.checked_on)
        for part, source in (
            ("accounting", engine.accounting_source),
            ("activations", engine.activation_source),
            ("non-torch memory", engine.non_torch_source),
            ("CUDA graphs", engine.cuda_graph_source),
            ("batch limits", engine.batch_defaults_source),
        )
    ]
    return [{"kind": k, "id": i, "source": s, "date": d} for k, i, s, d in found]

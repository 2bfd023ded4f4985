"""The KV budget that settings of trtllm-build or NIM ask for, and whether a GPU holds it beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import StackFile
from sheetgen.errors import ScenarioError
from sheetgen.launch.check import Trial, kv_ceiling_bytes, sequences_in_tokens, trials
from sheetgen.launch.settings import Settings, read_settings
from sheetgen.scenario import parse
from sheetgen.units import GIB


@dataclass(frozen=True)
class KvBudget:
    """settings as read; trial: the point with every sequence at its full length.

    budget_tokens and budget_bytes are what the limits let the cache become; full_sequences those that fit in the pool.
    """

    settings: Settings
    trial: Trial
    n_sequences: int
    budget_tokens: int
    budget_bytes: int
    full_sequences: int
    holds: bool
    verdict: str


def inputs_of(text: str, requested: Mapping[str, Any], catalog: Catalog) -> tuple[Settings, dict[str, Any]]:
    """The settings, and the inputs of the point that they and the typed options describe; typed ones win.

    Context and requests are the limits where they were not typed. Raises ScenarioError or CatalogError.
    """
    settings = read_settings(text, catalog.file(StackFile))
    typed = {name: value for name, value in requested.items() if value is not None}
    given = {"engine": settings.engine, **settings.inputs, **typed}
    settings.notes += [
        f"{name} {typed[name]} was typed, and wins over {value}"
        for name, value in settings.inputs.items()
        if name in typed and str(typed[name]) != str(value)
    ]
    model = catalog.model(str(given.get("model")))
    if settings.n_layers is not None and settings.n_layers != model.n_layers:
        raise ScenarioError(
            f"the engine of kv_budget has {settings.n_layers:,} layers, {model.id} has {model.n_layers:,}."
            " Name the model that it was built for."
        )
    if "max_model_len" not in given:
        given["max_model_len"] = model.max_context_tokens
        longest = f"{model.max_context_tokens:,}"
        settings.notes.append(f"the full length is not stated: the model's {longest} tokens were taken")
    if "max_num_seqs" not in given:
        settings.notes.append("the number of sequences is not stated: the engine's default was taken")
    else:
        given["max_num_seqs"] = parse.whole(given["max_num_seqs"], "max_num_seqs") * settings.beams
        given.setdefault("concurrent_requests", given["max_num_seqs"])
    given.setdefault("context_tokens", given["max_model_len"])
    return settings, given


def budget(settings: Settings, given: Mapping[str, Any], point: Mapping[str, Any], catalog: Catalog) -> KvBudget:
    """`given`: the inputs of `inputs_of`; `point`: their record, with the defaults filled in."""
    launcher = catalog.file(StackFile).launcher(str(point["engine"]))
    n = point["max_num_seqs"] * (1 if "max_num_seqs" in given else settings.beams)
    length = point["max_model_len"]
    full = {
        **given, "max_num_seqs": n, "concurrent_requests": n * point["data_parallel_size"], "context_tokens": length,
        "max_model_len": length, "input_tokens": None, "output_tokens": None, "prefix_cache_hit_fraction": 0,
        "average_context_fraction": 1,
    }  # fmt: skip
    trial = trials([full], launcher, catalog)[0]
    assert trial is not None
    limit = settings.max_tokens
    if settings.sequence_lengths is not None:
        limit = max(length, int(settings.sequence_lengths * length))
    known = {**trial.known, "n_sequences": n * point["data_parallel_size"], "max_model_len": length}
    held = int(known["sequences_in_pool"] * point["data_parallel_size"])
    tokens, holds = known["n_sequences"] * length, trial.fits
    needed = n * known["kv_bytes_per_sequence_per_gpu"]
    if limit is not None and limit < tokens:
        tokens = limit
        within = int(sequences_in_tokens.of({**known, "limit_tokens": limit}))
        held = min(held, within)
        needed = tokens * known["kv_bytes_per_token_per_gpu"]
        holds = trial.runs and needed <= known["kv_budget_bytes_per_gpu"] and within >= 1
    ceiling = kv_ceiling_bytes(1, tokens, known["kv_bytes_per_token"])
    verdict = _verdict(trial, needed, held, holds, limit)
    return KvBudget(settings, trial, int(known["n_sequences"]), int(tokens), int(ceiling), held, holds, verdict)


def _verdict(trial: Trial, needed: float, held: int, holds: bool, limit: int | None) -> str:
    point, known = trial.answer, trial.known
    length = f"{point['max_model_len']:,} tokens"
    if not trial.runs:
        return trial.verdict
    if limit is not None and limit < point["max_model_len"]:
        return (
            f"does not hold: the pool is to take {limit:,} tokens, less than one sequence of {length}; the engine does"
            " not start."
        )
    pool, weights = known["kv_pool_bytes_per_gpu"] / GIB, known["loaded_weights_bytes_per_gpu"] / GIB
    each = f"{pool:,.2f} GiB are left on it beside {weights:,.2f} GiB of weights"
    if holds:
        return f"holds: {needed / GIB:,.2f} GiB of each GPU, and {each}; {held:,} full sequences of {length} fit."
    requested = f"{needed / GIB:,.2f} GiB of each GPU are asked for"
    return f"does not hold: {requested}, and {each}; {held:,} full sequences of {length} fit."


def budget_record(one: KvBudget) -> dict[str, Any]:
    """The budget as plain values; bytes are whole."""
    answer = one.trial.answer
    sized = {name: answer[name] for name in ("kv_bytes", "weights_bytes_per_gpu", "kv_pool_bytes_per_gpu")}
    return {
        "engine": answer["engine"], "engine_version": answer["engine_version"], "settings": one.settings.read,
        "max_num_seqs": answer["max_num_seqs"] // one.settings.beams, "max_beam_width": one.settings.beams,
        "max_model_len": answer["max_model_len"], "n_sequences": one.n_sequences,
        "kv_cache_dtype": answer["kv_cache_dtype"], "kv_bytes_per_token": answer["kv_bytes_per_token"],
        "budget_tokens": one.budget_tokens, "budget_bytes": one.budget_bytes, **sized, "holds": one.holds,
        "full_sequences_that_fit": one.full_sequences, "verdict": one.verdict, "notes": one.settings.notes,
    }  # fmt: skip

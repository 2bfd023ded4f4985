"""`decode`: a claim read back, as one record of plain values. Its keys are a contract."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sheetgen.api import Catalogs, _catalog
from sheetgen.catalog.load import Catalog
from sheetgen.decode.analysis import Analysis, Scaled, analyse, fastest, scaled, verdict
from sheetgen.decode.readings import Reading, Way, contenders, nearest
from sheetgen.decode.words import cautions, context_words, length_words, longest_context, pace, verdict_words

Record = dict[str, Any]
SCHEMA_VERSION = 1
RATES = (*(f"output_tokens_per_second{end}" for end in ("", "_low", "_high")), "ceiling_tokens_per_second")
TIMES = tuple(f"{name}_seconds{end}" for name in ("tpot", "ttft") for end in ("", "_low", "_high"))
SPEEDS = ("running_requests", "waiting_requests", *TIMES, *RATES, "bound_by", "speed_scope")  # none without a speed


def decode(*, catalogs: Catalogs = (), **options: Any) -> Record:
    """Read a benchmark claim back: `decode(model="70b", gpu="h100", n_gpus=8, tokens_per_second=12000,
    concurrency=512, context="16k", users=200)`, or with `claim="12,000 tok/s at concurrency 512 on 8x H100"`.

    Options are those of `sheetgen decode --help` with underscores (n_gpus for --gpus). Returns what fits, what each
    shape would give with its 80 % band, whether the claim can be true, and what it comes to at your context. Raises
    ScenarioError or CatalogError with every problem found.
    """
    return decoded(options, _catalog(catalogs))


def decoded(options: Mapping[str, Any], catalog: Catalog) -> Record:
    """The same with catalogs that are open already."""
    analysis = analyse(options, catalog)
    one = analysis.nearest
    return {
        "schema_version": SCHEMA_VERSION, "claim": _claim(analysis), "per_user": _per_user(analysis),
        "verdict": analysis.overall, "verdict_words": verdict_words(analysis),
        "nearest": None if one is None else reading(one, analysis.claim.tokens_per_second),
        "longest_context_tokens": {one: longest_context(analysis, one) or None for one in analysis.kv_dtypes},
        "longest_context_words": length_words(analysis), "capacity": [_capacity(one) for one in analysis.capacity],
        "shapes": [_shape(analysis, shape) for shape in analysis.shapes], "at_context": _at_context(analysis),
        "cautions": [{"kind": kind, "words": words} for kind, words in cautions(analysis)],
    }  # fmt: skip


def reading(one: Reading, tokens_per_second: float | None) -> Record:
    """One reading; speeds are None where it does not hold, or its GPU's speed is not known."""
    way, answer = one.way, one.answer
    speeds: Record = dict.fromkeys(SPEEDS)
    if one.counts:
        rates = dict(zip(RATES, map(_figure, (one.rate, one.low, one.high, one.ceiling)), strict=True))
        running = {"running_requests": one.running, "waiting_requests": one.waiting}
        speeds = {name: (answer | running | rates)[name] for name in SPEEDS}
    return {
        **_layout(way), "weight_dtype": way.weight_dtype, "kv_cache_dtype": way.kv_cache_dtype,
        **{name: answer[name] for name in ("context_tokens", "input_tokens", "output_tokens")},
        "concurrent_requests": way.n_requests, "holds": one.holds,
        "reason": None if one.holds else answer["verdict"], "requests_that_fit": one.fit, **speeds,
        "verdict": None if tokens_per_second is None else verdict([one], tokens_per_second),
    }  # fmt: skip


def _layout(way: Way) -> Record:
    of = way.layout
    return {"layout": of.words, "tensor_parallel_size": of.tensor_parallel_size,
            "data_parallel_size": of.data_parallel_size, "n_replicas": of.n_replicas}  # fmt: skip


def _claim(analysis: Analysis) -> Record:
    claim, names = analysis.claim, analysis.names
    return {
        "model": names.model.id, "gpu": names.gpu.id, "n_gpus": claim.n_gpus,
        "stated_tokens_per_second": claim.stated_tokens_per_second, "stated_per": claim.per or "all",
        "tokens_per_second": _figure(claim.tokens_per_second),
        "tokens_per_second_per_gpu": _figure(claim.tokens_per_second / claim.n_gpus),
        "concurrency": claim.concurrency, "input_tokens": claim.input_tokens, "output_tokens": claim.output_tokens,
        "weight_dtype": names.weight_dtype, "kv_cache_dtypes": list(analysis.kv_dtypes),
        "tensor_parallel_size": claim.tensor_parallel_size,
        "gpu_memory_utilization": analysis.capacity[0].answer["gpu_memory_utilization"],
        "gpu_memory_utilization_is_raised": analysis.has_raised_share, "engine": names.engine.engine,
        "engine_version": names.engine.default_version, "text": claim.text, "read_from_text": claim.read,
    }  # fmt: skip


def _per_user(analysis: Analysis) -> Record:
    rate = analysis.claim.tokens_per_second_of_a_user
    kind, words = pace(rate)
    return {"tokens_per_second": _figure(rate), "seconds_per_token": _figure(1 / rate), "pace": kind, "words": words}


def _capacity(one: Reading) -> Record:
    """What a layout holds with the cache in a precision, whatever it is used for."""
    answer, longest = one.answer, int(one.answer["max_context_tokens_that_fit"]) if one.runs else 0
    return {
        **_layout(one.way), "kv_cache_dtype": one.way.kv_cache_dtype,
        "kv_pool_bytes_per_gpu": answer["kv_pool_bytes_per_gpu"], "requests_per_replica": answer["concurrent_requests"],
        "longest_context_tokens": longest, "full_context_tokens": answer["context_tokens"],
        "requests_at_full_context": one.fit, "reason": answer["verdict"] if longest == 0 else None,
    }  # fmt: skip


def _shape(analysis: Analysis, shape: tuple[int, int]) -> Record:
    claim, readings = analysis.claim, analysis.shapes[shape]
    claimed, considered = claim.tokens_per_second, contenders(readings)
    of_dtypes = ([one for one in considered if one.way.kv_cache_dtype == kv] for kv in analysis.kv_dtypes)
    near = (nearest(each, claimed, analysis.own_dtype) for each in of_dtypes)
    fit_in = {one.way.kv_cache_dtype for one in readings if one.fit >= claim.concurrency}
    return {
        "input_tokens": shape[0], "output_tokens": shape[1], "stated": claim.states_lengths,
        "verdict": analysis.verdict(shape), "all_fit_in": [kv for kv in analysis.kv_dtypes if kv in fit_in],
        "nearest": [reading(one, claimed) for one in near if one is not None],
        "readings": [{**reading(one, claimed), "considered": one in considered} for one in readings],
    }  # fmt: skip


def _at_context(analysis: Analysis) -> Record | None:
    if not analysis.at_context:
        return None
    predicted, by_claim = fastest(analysis), scaled(analysis)
    best = by_claim.reading if by_claim else predicted
    rates = map(_figure, (best.rate, best.low, best.high)) if best else (None, None, None)
    return {
        "context_tokens": analysis.claim.context_tokens, "users": analysis.claim.users or analysis.claim.concurrency,
        **dict(zip(RATES[:3], rates, strict=True)), "words": context_words(analysis, predicted, by_claim),
        "predicted": None if predicted is None else reading(predicted, None),
        "scaled_by_claim": None if by_claim is None else _scaled(by_claim),
        "readings": [reading(one, None) for one in analysis.at_context],
    }  # fmt: skip


def _scaled(one: Scaled) -> Record:
    predicted = one.basis.rate
    rates = {"factor": one.factor, "claimed_tokens_per_second": one.factor * predicted}
    rates["predicted_tokens_per_second"] = predicted
    return {name: _figure(value) for name, value in rates.items()} | reading(one.reading, None)


def _figure(value: float) -> float | None:
    """A number to 12 digits: more would be noise. None for no number."""
    return float(f"{value:.12g}") if math.isfinite(value) else None

"""`decode`: a claim read back, as one record of plain values. Its keys are a contract."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sheetgen.api import Catalogs, _catalog
from sheetgen.catalog.load import Catalog
from sheetgen.decode.cautions import cautions
from sheetgen.decode.found import Found, find, verdict
from sheetgen.decode.readings import Reading, contenders, nearest
from sheetgen.decode.words import length_words, longest_context, pace, verdict_words, yours_words
from sheetgen.decode.yours import Scaled, best, scaled

Record = dict[str, Any]
SCHEMA_VERSION = 1
TIMES = tuple(f"{name}_seconds{end}" for name in ("tpot", "ttft") for end in ("", "_low", "_high"))


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
    found = find(options, catalog)
    one = found.nearest
    return {
        "schema_version": SCHEMA_VERSION,
        "claim": _claim(found),
        "per_user": _per_user(found),
        "verdict": found.overall,
        "verdict_words": verdict_words(found),
        "nearest": None if one is None else reading(one, found.claim.tokens_per_second),
        "longest_context_tokens": {one: longest_context(found, one) or None for one in found.kv_dtypes},
        "longest_context_words": length_words(found),
        "capacity": [_capacity(found, one) for one in found.capacity],
        "shapes": [_shape(found, shape) for shape in found.shapes],
        "at_context": _at_context(found),
        "cautions": [{"kind": kind, "words": words} for kind, words in cautions(found)],
    }


def reading(one: Reading, tokens_per_second: float | None) -> Record:
    """One reading; speeds are None where it does not hold, or its GPU's speed is not known."""
    way, answer, counts = one.way, one.answer, one.counts
    rates = {"": one.rate, "_low": one.low, "_high": one.high}
    return {
        "layout": way.layout.words,
        "tensor_parallel_size": way.layout.tensor_parallel_size,
        "data_parallel_size": way.layout.data_parallel_size,
        "n_replicas": way.layout.n_replicas,
        "weight_dtype": way.weight_dtype,
        "kv_cache_dtype": way.kv_cache_dtype,
        "context_tokens": answer["context_tokens"],
        "input_tokens": answer["input_tokens"],
        "output_tokens": answer["output_tokens"],
        "concurrent_requests": way.n_requests,
        "holds": one.holds,
        "reason": None if one.holds else answer["verdict"],
        "requests_that_fit": one.fit,
        "running_requests": one.running if counts else None,
        "waiting_requests": one.waiting if counts else None,
        **{name: answer[name] if counts else None for name in TIMES},
        **{f"output_tokens_per_second{end}": _figure(rate) if counts else None for end, rate in rates.items()},
        "ceiling_tokens_per_second": _figure(one.ceiling) if counts else None,
        "bound_by": answer["bound_by"] if counts else None,
        "speed_scope": answer["speed_scope"] if counts else None,
        "verdict": None if tokens_per_second is None else verdict([one], tokens_per_second),
    }


def _claim(found: Found) -> Record:
    claim, names = found.claim, found.names
    return {
        "model": names.model.id,
        "gpu": names.gpu.id,
        "n_gpus": claim.n_gpus,
        "stated_tokens_per_second": claim.stated_tokens_per_second,
        "stated_per": claim.per or "all",
        "tokens_per_second": _figure(claim.tokens_per_second),
        "tokens_per_second_per_gpu": _figure(claim.tokens_per_second / claim.n_gpus),
        "concurrency": claim.concurrency,
        "input_tokens": claim.input_tokens,
        "output_tokens": claim.output_tokens,
        "weight_dtype": names.weight_dtype,
        "kv_cache_dtypes": list(found.kv_dtypes),
        "tensor_parallel_size": claim.tensor_parallel_size,
        "gpu_memory_utilization": found.capacity[0].answer["gpu_memory_utilization"],
        "gpu_memory_utilization_is_raised": found.has_raised_share,
        "engine": names.engine.engine,
        "engine_version": names.engine.default_version,
        "text": claim.text,
        "read_from_text": claim.read,
    }


def _per_user(found: Found) -> Record:
    rate = found.claim.tokens_per_second_of_a_user
    kind, words = pace(rate)
    return {"tokens_per_second": _figure(rate), "seconds_per_token": _figure(1 / rate), "pace": kind, "words": words}


def _capacity(found: Found, one: Reading) -> Record:
    """What a layout holds with the cache in a precision, whatever it is used for."""
    longest = int(one.answer["max_context_tokens_that_fit"]) if one.runs else 0
    return {
        "layout": one.way.layout.words,
        "tensor_parallel_size": one.way.layout.tensor_parallel_size,
        "data_parallel_size": one.way.layout.data_parallel_size,
        "n_replicas": one.way.layout.n_replicas,
        "kv_cache_dtype": one.way.kv_cache_dtype,
        "kv_pool_bytes_per_gpu": one.answer["kv_pool_bytes_per_gpu"],
        "requests_per_replica": one.answer["concurrent_requests"],
        "longest_context_tokens": longest,
        "full_context_tokens": one.answer["context_tokens"],
        "requests_at_full_context": one.fit,
        "reason": one.answer["verdict"] if longest == 0 else None,
    }


def _shape(found: Found, shape: tuple[int, int]) -> Record:
    claimed, considered = found.claim.tokens_per_second, contenders(found.shapes[shape])
    of_dtypes = ([one for one in considered if one.way.kv_cache_dtype == kv] for kv in found.kv_dtypes)
    near = (nearest(each, claimed, found.own_dtype) for each in of_dtypes)
    return {
        "input_tokens": shape[0],
        "output_tokens": shape[1],
        "stated": found.claim.states_lengths,
        "verdict": found.verdict(shape),
        "all_fit_in": [one for one in found.kv_dtypes if any(
            r.fit >= found.claim.concurrency for r in found.shapes[shape] if r.way.kv_cache_dtype == one
        )],
        "nearest": [reading(one, claimed) for one in near if one is not None],
        "readings": [{**reading(one, claimed), "considered": one in considered} for one in found.shapes[shape]],
    }  # fmt: skip


def _at_context(found: Found) -> Record | None:
    if not found.yours:
        return None
    fastest, by_claim = best(found), scaled(found)
    shown = by_claim.reading if by_claim else fastest
    return {
        "context_tokens": found.claim.context_tokens,
        "users": found.claim.users or found.claim.concurrency,
        "output_tokens_per_second": _figure(shown.rate) if shown else None,
        "output_tokens_per_second_low": _figure(shown.low) if shown else None,
        "output_tokens_per_second_high": _figure(shown.high) if shown else None,
        "words": yours_words(found, fastest, by_claim),
        "predicted": None if fastest is None else reading(fastest, None),
        "scaled_by_claim": None if by_claim is None else _scaled(by_claim),
        "readings": [reading(one, None) for one in found.yours],
    }


def _scaled(one: Scaled) -> Record:
    return {
        "factor": _figure(one.factor),
        "claimed_tokens_per_second": _figure(one.factor * one.basis.rate),
        "predicted_tokens_per_second": _figure(one.basis.rate),
        **reading(one.reading, None),
    }


def _figure(value: float) -> float | None:
    """A number to 12 digits: more would be noise. None for no number."""
    return float(f"{value:.12g}") if math.isfinite(value) else None

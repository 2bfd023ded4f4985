"""`decode`: a claim read back, as one record of plain values and sentences. Its keys are a contract."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sheetgen.api import Catalogs, _catalog
from sheetgen.catalog.load import Catalog
from sheetgen.decode.claim import GPUS_OF_A_NODE
from sheetgen.decode.readings import Analysis, Reading, Shape, Way, analyse, contenders, nearest, scaled, verdict
from sheetgen.units import DTYPES, count, listed

# Tokens a second that one user gets at least, the kind of pace, and why. MLPerf Inference v5.1 allows 40 ms a token
# where users interact (Llama 2 70B interactive), and 200 ms where they read along (server).
PACES = (
    (25, "fast", "fast: at least the 25 tokens/s that MLPerf asks of an interactive service"),
    (5, "readable", "readable: faster than people read, slower than the 25 tokens/s of an interactive service"),
    (0, "slow", "slow: below the 5 tokens/s at which people read along"),
)
NARROWER = ("fp8", "nvfp4")  # weights that vendors benchmark with
CACHED_FRACTION = 0.95  # of a prompt, where all requests of a benchmark share it
MOST_SPECULATIVE_GAIN = 3.0  # times; EAGLE-3 (arXiv:2503.01840): up to 6.5 at batch 1, 1.38 at batch 64
SHORT_TOKENS = 256  # prompt and answer together
Cautions = dict[str, str]  # by kind, in plain words


def verdict_words(analysis: Analysis) -> str:
    """One sentence or two: whether the claim can be true, and of which requests."""
    overall, claimed = analysis.overall, analysis.claim.tokens_per_second
    rate, counting, at = f"{claimed:,.10g} tokens/s", analysis.contenders, analysis.nearest
    of = {shape: analysis.verdict(shape) for shape in analysis.shapes}
    if overall == "unknown":
        gpu = analysis.names.gpu.name
        return f"unknown: the speed of {gpu} is not published in full, so that nothing is predicted."
    if at is None:
        every = [one for each in analysis.shapes.values() for one in each]
        return f"not possible: {lacks_least(every).reason}"
    if overall == "consistent" and "consistent" not in of.values():
        slow = shapes_words([shape for shape in of if of[shape] == "slower"])
        fast = shapes_words([shape for shape in of if of[shape] != "slower"])
        return f"consistent with lengths between: {rate} is less than expected of {slow} tokens, more than of {fast}."
    if overall == "consistent":
        like = shapes_words([shape for shape in of if of[shape] == "consistent"])
        others = [shape for shape in of if of[shape] != "consistent"]
        more = f" It is not of {shapes_words(others)}." if others else ""
        return f"consistent with {like} tokens: {rate} lies in the {_band(analysis, at)}.{more}"
    if overall == "slower":
        return f"possible, but slower than predicted: {rounded(at.rate)} tokens/s, {_band(analysis, at)}."
    if overall == "unlikely":
        highest = max(counting, key=lambda one: (one.ceiling >= claimed, one.high))
        times, band = claimed / highest.rate, _band(analysis, highest)
        return f"unlikely as stated: {rate} is {times:,.1f} times the prediction, above every {band}."
    best = max(counting, key=lambda one: one.ceiling)
    rest = f"({_run(analysis, best)}; one token a step, no prompt cached)."
    return f"not possible as stated: {rate} is above {rounded(best.ceiling)}, what perfect software would reach {rest}"


def _band(analysis: Analysis, one: Reading) -> str:
    return f"80 % band, {rounded(one.low)} to {rounded(one.high)} ({_run(analysis, one)})"


def _run(analysis: Analysis, one: Reading) -> str:
    """How a reading runs, with its lengths where there are several."""
    shape = one.answer["input_tokens"], one.answer["output_tokens"]
    return f"{shapes_words([shape])}, {way_words(one)}" if len(analysis.shapes) > 1 else way_words(one)


def lacks_least(readings: list[Reading]) -> Reading:
    """The way that is short of the fewest bytes of each GPU."""
    return min(readings, key=lambda one: (one.answer["short_by_bytes"] or 0) * one.way.layout.n_replicas)


def length_words(analysis: Analysis, longest: Mapping[str, int]) -> str:
    """One sentence: the longest context that each request can have had, by precision of the cache; 0 where none can."""
    limit, n = analysis.names.model.max_context_tokens, analysis.claim.concurrency
    if not any(longest.values()):
        return f"No layout of these GPUs holds {n:,} at once, however short."
    parts = [f"{count:,} tokens in {name}" if count else f"none in {name}" for name, count in longest.items()]
    reached = " (the model's own limit)" if max(longest.values()) == limit else ""
    return f"At concurrency {n:,} each request can have had at most {', '.join(parts)}{reached}."


def context_words(analysis: Analysis, one: Reading | None, factor: float | None) -> str:
    """One sentence: what the claim comes to at the requested context; `factor` is what the claim scaled it by."""
    claim = analysis.claim
    users = claim.users or claim.concurrency
    where = f"at {claim.context_tokens:,} tokens and {count(users, 'user')}"
    claimed = f"The claim's {claim.tokens_per_second:,.10g} tokens/s"
    if one is None:
        holds = any(reading.holds for reading in analysis.at_context)
        why = "its speed is not predicted." if holds else lacks_least(analysis.at_context).answer["verdict"]
        return f"{claimed} has no counterpart {where}: {why}"
    how = f"80 % band {rounded(one.low)} to {rounded(one.high)}; {way_words(one)}"
    if factor is not None:
        how += f"; the prediction times {factor:.2f}, as the claim has it"
    if analysis.overall == "impossible":
        return f"Whatever the claim, these GPUs give about {rounded(one.rate)} tokens/s {where} ({how})."
    return f"{claimed} becomes about {rounded(one.rate)} {where} ({how})."


def way_words(one: Reading) -> str:
    return f"{one.way.layout.words}, KV in {one.way.kv_cache_dtype}"


def shapes_words(shapes: list[Shape]) -> str:
    """`1,024 + 1,024 or 8,192 + 1,024`."""
    return listed([f"{prompt:,} + {answer:,}" for prompt, answer in shapes], " or ")


def rounded(figure: float) -> str:
    """A rate with the digits that a prediction deserves: three."""
    if figure >= 1_000:
        figure = float(f"{figure:.3g}")
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:,.1f}"


def cautions(analysis: Analysis) -> Cautions:
    said = _always(analysis)
    for dtype in _narrower(analysis) if not analysis.contenders else ():
        other = analysis.variant(weight_dtype=dtype)
        if other.contenders:  # the first that fits, and what the claim is with it
            again = f"read it again with --weight-dtype {dtype}."
            said["narrower_weights"] = f"Weights in {dtype} fit, and the claim is then {other.overall}: {again}"
            break
    if analysis.contenders and analysis.overall in ("unlikely", "impossible"):
        said |= _above(analysis)
    elif analysis.contenders and analysis.overall == "slower":
        said |= _below(analysis)
    return said


def _always(analysis: Analysis) -> Cautions:
    claim, shapes, said = analysis.claim, list(analysis.shapes), Cautions()
    counting = {shape: each for shape in shapes if (each := contenders(analysis.shapes[shape]))}
    queued = [shape for shape, each in counting.items() if all(one.waiting for one in each)]
    if queued and len(shapes) == 1:
        one = min(counting[queued[0]], key=lambda one: one.waiting)
        said["offline"] = (
            f"At most {one.running:,} of the {claim.concurrency:,} can run at once, {one.waiting:,} wait: such figures"
            " are of a queue that is worked off (offline), and a first token takes about"
            f" {one.answer['ttft_seconds']:,.1f} s."
        )
    elif queued:
        said["offline"] = f"With {shapes_words(queued)} tokens, part of the {claim.concurrency:,} would wait."
    rates = sorted(max(one.rate for one in each) for each in counting.values())
    if not claim.states_lengths and len(rates) > 1:
        said["unstated_lengths"] = (
            "The length of prompts or answers is not stated: by it alone the prediction goes from"
            f" {rounded(rates[0])} to {rounded(rates[-1])} tokens/s."
        )
    matching = [shape for shape in shapes if analysis.verdict(shape) == "consistent"]
    if len(shapes) > 1 and matching and all(sum(shape) <= SHORT_TOKENS for shape in matching):
        said["short_requests"] = f"Only the shortest requests match it: {shapes_words(matching)} tokens."
    elif len(shapes) == 1 and sum(shapes[0]) <= SHORT_TOKENS:
        short, wanted = sum(shapes[0]), claim.context_tokens or 0
        longer = f"; yours are {wanted / short:,.0f} times as long" if wanted >= 2 * short else ""
        said["short_requests"] = f"It is of requests of only {short:,} tokens{longer}."
    return said


def _above(analysis: Analysis) -> Cautions:
    claim, rate, said = analysis.claim, analysis.claim.tokens_per_second, Cautions()
    if shapes := _would_match(analysis, lambda one: rate * _answered(one)):
        answered = rate * _answered(analysis.shapes[shapes[0]][0])
        said["total_tokens"] = (
            f"It would match if input tokens are counted: {rate:,.0f} tokens/s of prompts and answers are"
            f" {answered:,.0f} of answers ({shapes_words(shapes)} tokens)."
        )
    if claim.per == "gpu" and claim.n_gpus > 1 and (shapes := _would_match(analysis, lambda one: rate / claim.n_gpus)):
        of_all = f"all {claim.n_gpus:,} GPUs, not of each"
        said["all_gpus"] = f"It would match if the figure is of {of_all} ({shapes_words(shapes)} tokens)."
    for dtype in _narrower(analysis):
        if shapes := _would_match(analysis.variant(weight_dtype=dtype), lambda one: rate):
            instead = f"weights in {dtype} instead of {analysis.names.weight_dtype}"
            said["narrower_weights"] = f"It would match with {instead} ({shapes_words(shapes)} tokens)."
            break
    if shapes := _would_match(analysis.variant(prefix_cache_hit_fraction=CACHED_FRACTION), lambda one: rate):
        said["cached_prompts"] = (
            f"It would match if {CACHED_FRACTION:.0%} of each prompt comes from a prefix cache, as when all requests"
            f" share a prompt ({shapes_words(shapes)} tokens)."
        )
    fastest = max(analysis.contenders, key=lambda one: one.rate)
    gain = rate / fastest.rate
    if gain <= MOST_SPECULATIVE_GAIN and fastest.answer["bound_by"] in ("bandwidth", "KV reads", "communication"):
        said["speculative_decoding"] = (
            f"Speculative decoding could explain it: {gain:.1f} times the prediction, where a step waits for"
            " memory rather than for arithmetic. It gains less on text that is hard to guess, and under more load."
        )
    if analysis.overall == "impossible" and rate <= max(one.sparse_ceiling for one in analysis.contenders):
        said["sparsity"] = (
            "Only peaks with 2:4 sparsity, twice the dense ones, would allow it; few checkpoints have such weights."
        )
    return said


def _narrower(analysis: Analysis) -> Iterator[str]:
    """Precisions of weights that the GPU computes in, and that take less than the ones read."""
    own = DTYPES[analysis.names.weight_dtype].linear_bytes
    runs = analysis.names.gpu.weights_run
    return (one for one in NARROWER if runs.get(one) == "native" and DTYPES[one].linear_bytes < own)


def _below(analysis: Analysis) -> Cautions:
    claim, rate, said = analysis.claim, analysis.claim.tokens_per_second, Cautions()
    tries = (
        ("per_gpu", claim.n_gpus, "each GPU, not of all"),
        ("per_node", claim.n_gpus / GPUS_OF_A_NODE, "each node of 8 GPUs"),
        ("per_user", claim.concurrency, "one user, not of all"),
    )
    for kind, times, whose in tries if not claim.per else ():
        shapes = [shape for shape in analysis.shapes if analysis.verdict(shape, rate * times) == "consistent"]
        if times > 1 and shapes:
            said[kind] = f"It would match if the figure is of {whose} ({shapes_words(shapes)} tokens)."
    return said


def _would_match(analysis: Analysis, of: Callable[[Reading], float]) -> list[tuple[int, int]]:
    return [shape for shape, each in analysis.shapes.items() if any(one.matches(of(one)) for one in contenders(each))]


def _answered(one: Reading) -> float:
    prompt, answer = one.answer["input_tokens"], one.answer["output_tokens"]
    return float(answer / (prompt + answer))


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
    one, rate = analysis.nearest, analysis.claim.tokens_per_second / analysis.claim.concurrency
    pace, words = next((kind, words) for least, kind, words in PACES if rate >= least)
    longest = dict.fromkeys(analysis.kv_dtypes, 0)  # at which all requests fit at once, in the best layout
    for each in analysis.capacity:
        if each.runs:
            fits, kv = int(each.answer["max_context_tokens_that_fit"]), each.way.kv_cache_dtype
            longest[kv] = max(longest[kv], fits)
    of_user = {"tokens_per_second": _figure(rate), "seconds_per_token": _figure(1 / rate), "pace": pace, "words": words}
    return {
        "schema_version": SCHEMA_VERSION,
        "claim": _claim(analysis),
        "per_user": of_user,
        "verdict": analysis.overall,
        "verdict_words": verdict_words(analysis),
        "nearest": None if one is None else reading(one, analysis.claim.tokens_per_second),
        "longest_context_tokens": {name: count or None for name, count in longest.items()},
        "longest_context_words": length_words(analysis, longest),
        "capacity": [_capacity(one) for one in analysis.capacity],
        "shapes": [_shape(analysis, shape) for shape in analysis.shapes],
        "at_context": _at_context(analysis),
        "cautions": [{"kind": kind, "words": words} for kind, words in cautions(analysis).items()],
    }


def reading(one: Reading, tokens_per_second: float | None) -> Record:
    """One reading; speeds are None where it does not hold, or its GPU's speed is not known."""
    way, answer = one.way, one.answer
    speeds: Record = dict.fromkeys(SPEEDS)
    if one.counts:
        rates = dict(zip(RATES, map(_figure, (one.rate, one.low, one.high, one.ceiling)), strict=True))
        running = {"running_requests": one.running, "waiting_requests": one.waiting}
        speeds = {name: (answer | running | rates)[name] for name in SPEEDS}
    return {
        **_layout(way),
        "weight_dtype": way.weight_dtype,
        "kv_cache_dtype": way.kv_cache_dtype,
        **{name: answer[name] for name in ("context_tokens", "input_tokens", "output_tokens")},
        "concurrent_requests": way.n_requests,
        "holds": one.holds,
        "reason": None if one.holds else answer["verdict"],
        "requests_that_fit": one.fit,
        **speeds,
        "verdict": None if tokens_per_second is None else verdict([one], tokens_per_second),
    }


def _layout(way: Way) -> Record:
    return {"layout": way.layout.words, **vars(way.layout)}


def _claim(analysis: Analysis) -> Record:
    claim, names = analysis.claim, analysis.names
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
        "kv_cache_dtypes": list(analysis.kv_dtypes),
        "tensor_parallel_size": claim.tensor_parallel_size,
        "gpu_memory_utilization": analysis.capacity[0].answer["gpu_memory_utilization"],
        "gpu_memory_utilization_is_raised": analysis.has_raised_share,
        "engine": names.engine.engine,
        "engine_version": names.engine.default_version,
        "text": claim.text,
        "read_from_text": claim.read,
    }


def _capacity(one: Reading) -> Record:
    """What a layout holds with the cache in a precision, whatever it is used for."""
    answer, longest = one.answer, int(one.answer["max_context_tokens_that_fit"]) if one.runs else 0
    return {
        **_layout(one.way),
        "kv_cache_dtype": one.way.kv_cache_dtype,
        "kv_pool_bytes_per_gpu": answer["kv_pool_bytes_per_gpu"],
        "requests_per_replica": answer["concurrent_requests"],
        "longest_context_tokens": longest,
        "full_context_tokens": answer["context_tokens"],
        "requests_at_full_context": one.fit,
        "reason": answer["verdict"] if longest == 0 else None,
    }


def _shape(analysis: Analysis, shape: tuple[int, int]) -> Record:
    claim, readings = analysis.claim, analysis.shapes[shape]
    claimed, considered = claim.tokens_per_second, contenders(readings)
    of_dtypes = ([one for one in considered if one.way.kv_cache_dtype == kv] for kv in analysis.kv_dtypes)
    near = (nearest(each, claimed, analysis.names.kv_cache_dtype) for each in of_dtypes)
    fit_in = {one.way.kv_cache_dtype for one in readings if one.fit >= claim.concurrency}
    return {
        "input_tokens": shape[0],
        "output_tokens": shape[1],
        "stated": claim.states_lengths,
        "verdict": analysis.verdict(shape),
        "all_fit_in": [kv for kv in analysis.kv_dtypes if kv in fit_in],
        "nearest": [reading(one, claimed) for one in near if one is not None],
        "readings": [{**reading(one, claimed), "considered": one in considered} for one in readings],
    }


def _at_context(analysis: Analysis) -> Record | None:
    if not analysis.at_context:
        return None
    # The fastest layout; with the cache in the stated or the model's own precision where that holds, else in any.
    counting, by_claim = contenders(analysis.at_context), scaled(analysis)
    own = [one for one in counting if one.way.kv_cache_dtype == analysis.names.kv_cache_dtype]
    predicted = max(own or counting, key=lambda one: one.rate, default=None)
    best, factor, of_claim = predicted, None, None
    if by_claim is not None:
        basis, best = by_claim
        factor = analysis.claim.tokens_per_second / basis.rate
        of_claim = {
            "factor": _figure(factor),
            "claimed_tokens_per_second": _figure(factor * basis.rate),
            "predicted_tokens_per_second": _figure(basis.rate),
            **reading(best, None),
        }
    rates = map(_figure, (best.rate, best.low, best.high)) if best else (None, None, None)
    return {
        "context_tokens": analysis.claim.context_tokens,
        "users": analysis.claim.users or analysis.claim.concurrency,
        **dict(zip(RATES[:3], rates, strict=True)),
        "words": context_words(analysis, best, factor),
        "predicted": None if predicted is None else reading(predicted, None),
        "scaled_by_claim": of_claim,
        "readings": [reading(one, None) for one in analysis.at_context],
    }


def _figure(value: float) -> float | None:
    """A number to 12 digits: more would be noise. None for no number."""
    return float(f"{value:.12g}") if math.isfinite(value) else None

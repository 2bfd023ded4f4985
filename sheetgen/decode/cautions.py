"""What a claim may leave unsaid, as far as its numbers suggest it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sheetgen.decode.found import Found
from sheetgen.decode.layouts import GPUS_OF_A_NODE
from sheetgen.decode.readings import Reading, contenders
from sheetgen.decode.words import rounded, shapes_words
from sheetgen.units import DTYPES

NARROWER = ("fp8", "nvfp4")  # weights that vendors benchmark with
CACHED_FRACTION = 0.95  # of a prompt, where all requests of a benchmark share it
MOST_SPECULATIVE_GAIN = 3.0  # times; EAGLE-3 (arXiv:2503.01840): up to 6.5 at batch 1, 1.38 at batch 64
SHORT_TOKENS = 256  # prompt and answer together


def cautions(found: Found) -> list[tuple[str, str]]:
    """Kind and plain words of everything that the numbers suggest."""
    said = list(_always(found))
    if not found.contenders:
        said += _too_heavy(found)
    elif found.overall in ("unlikely", "impossible"):
        said += _above(found)
    elif found.overall == "slower":
        said += _below(found)
    return said


def _always(found: Found) -> Iterator[tuple[str, str]]:
    claim = found.claim
    counting = {shape: contenders(each) for shape, each in found.shapes.items()}
    queued = {
        shape: min(each, key=lambda one: one.waiting)
        for shape, each in counting.items()
        if each and all(one.waiting for one in each)
    }
    if queued and len(found.shapes) == 1:
        one = next(iter(queued.values()))
        yield (
            "offline",
            f"At most {one.running:,} of the {claim.concurrency:,} can run at once, {one.waiting:,} wait: such figures"
            f" are of a queue that is worked off (offline), and a first token takes {_seconds(one)}.",
        )
    elif queued:
        yield "offline", f"With {shapes_words(list(queued))} tokens, part of the {claim.concurrency:,} would wait."
    if not claim.states_lengths:
        rates = sorted(max(map(_rate, each)) for each in counting.values() if each)
        if len(rates) > 1:
            yield (
                "unstated_lengths",
                "The length of prompts or answers is not stated: by it alone the prediction goes from"
                f" {rounded(rates[0])} to {rounded(rates[-1])} tokens/s.",
            )
    matching = [shape for shape in found.shapes if found.verdict(shape) == "consistent"]
    if len(found.shapes) > 1 and matching and all(sum(shape) <= SHORT_TOKENS for shape in matching):
        yield "short_requests", f"Only the shortest requests match it: {shapes_words(matching)} tokens."
    elif len(found.shapes) == 1 and sum(next(iter(found.shapes))) <= SHORT_TOKENS:
        shape = next(iter(found.shapes))
        yours = claim.context_tokens or 0
        longer = f"; yours are {yours / sum(shape):,.0f} times as long" if yours >= 2 * sum(shape) else ""
        yield "short_requests", f"It is of requests of only {sum(shape):,} tokens{longer}."


def _above(found: Found) -> Iterator[tuple[str, str]]:
    claim, rate = found.claim, found.claim.tokens_per_second
    if shapes := _would_match(found, lambda one: rate * _answered(one)):
        of = found.shapes[shapes[0]][0]
        yield (
            "total_tokens",
            f"It would match if input tokens are counted: {rate:,.0f} tokens/s of prompts and answers are"
            f" {rate * _answered(of):,.0f} of answers ({shapes_words(shapes)} tokens).",
        )
    if claim.per == "gpu" and claim.n_gpus > 1 and (shapes := _would_match(found, lambda one: rate / claim.n_gpus)):
        of_all = f"all {claim.n_gpus:,} GPUs, not of each"
        yield "all_gpus", f"It would match if the figure is of {of_all} ({shapes_words(shapes)} tokens)."
    for dtype in _narrower(found):
        if shapes := _would_match(found.variant(weight_dtype=dtype), lambda one: rate):
            instead = f"weights in {dtype} instead of {found.names.weight_dtype}"
            yield "narrower_weights", f"It would match with {instead} ({shapes_words(shapes)} tokens)."
            break
    if shapes := _would_match(found.variant(prefix_cache_hit_fraction=CACHED_FRACTION), lambda one: rate):
        yield (
            "cached_prompts",
            f"It would match if {CACHED_FRACTION:.0%} of each prompt comes from a prefix cache, as when all requests"
            f" share a prompt ({shapes_words(shapes)} tokens).",
        )
    fastest = max(found.contenders, key=_rate)
    gain = rate / fastest.rate
    if gain <= MOST_SPECULATIVE_GAIN and fastest.answer["bound_by"] in ("bandwidth", "KV reads", "communication"):
        yield (
            "speculative_decoding",
            f"Speculative decoding could explain it: {gain:.1f} times the prediction, where a step waits for"
            " memory rather than for arithmetic. It gains less on text that is hard to guess, and under more load.",
        )
    if found.overall == "impossible" and rate <= max(one.sparse_ceiling for one in found.contenders):
        yield (
            "sparsity",
            "Only peaks with 2:4 sparsity, twice the dense ones, would allow it; few checkpoints have such weights.",
        )


def _too_heavy(found: Found) -> Iterator[tuple[str, str]]:
    """The first narrower weights that fit, and what the claim is with them."""
    for dtype in _narrower(found):
        other = found.variant(weight_dtype=dtype)
        if other.contenders:
            yield (
                "narrower_weights",
                f"Weights in {dtype} fit, and the claim is then {other.overall}: read it again with"
                f" --weight-dtype {dtype}.",
            )
            return


def _narrower(found: Found) -> Iterator[str]:
    """Precisions of weights that the GPU computes in, and that take less than the ones read."""
    own = DTYPES[found.names.weight_dtype].linear_bytes
    runs = found.names.gpu.weights_run
    return (one for one in NARROWER if runs.get(one) == "native" and DTYPES[one].linear_bytes < own)


def _below(found: Found) -> Iterator[tuple[str, str]]:
    claim, rate = found.claim, found.claim.tokens_per_second
    tries: list[tuple[str, float, str]] = []
    if not claim.per:
        tries += [("per_gpu", claim.n_gpus, "each GPU, not of all")]
        tries += [("per_node", claim.n_gpus / GPUS_OF_A_NODE, "each node of 8 GPUs")]
        tries += [("per_user", claim.concurrency, "one user, not of all")]
    for kind, times, whose in tries:
        shapes = [shape for shape in found.shapes if found.verdict(shape, rate * times) == "consistent"]
        if times > 1 and shapes:
            yield kind, f"It would match if the figure is of {whose} ({shapes_words(shapes)} tokens)."


def _would_match(found: Found, of: Callable[[Reading], float]) -> list[tuple[int, int]]:
    return [shape for shape, each in found.shapes.items() if any(one.matches(of(one)) for one in contenders(each))]


def _answered(one: Reading) -> float:
    """The share of a request's tokens that are its answer."""
    prompt, answer = one.answer["input_tokens"], one.answer["output_tokens"]
    return float(answer / (prompt + answer))


def _rate(one: Reading) -> float:
    return one.rate


def _seconds(one: Reading) -> str:
    return f"about {one.answer['ttft_seconds']:,.1f} s"

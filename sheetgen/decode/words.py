"""What a decoded claim comes to, in sentences."""

from __future__ import annotations

from sheetgen.decode.found import Found, Shape
from sheetgen.decode.readings import Reading
from sheetgen.decode.yours import Scaled

# Tokens a second that one user gets. MLPerf Inference v5.1 allows 40 ms a token where users interact (Llama 2 70B
# interactive), and 200 ms where they read along (server).
FAST_TOKENS_PER_SECOND, READING_TOKENS_PER_SECOND = 25, 5


def pace(tokens_per_second: float) -> tuple[str, str]:
    """`fast`, `readable` or `slow`, and why."""
    if tokens_per_second >= FAST_TOKENS_PER_SECOND:
        return "fast", "fast: at least the 25 tokens/s that MLPerf asks of an interactive service"
    if tokens_per_second >= READING_TOKENS_PER_SECOND:
        return "readable", "readable: faster than people read, slower than the 25 tokens/s of an interactive service"
    return "slow", "slow: below the 5 tokens/s at which people read along"


def verdict_words(found: Found) -> str:
    """One sentence or two: whether the claim can be true, and of which requests."""
    rate = f"{found.claim.tokens_per_second:,.10g} tokens/s"
    by = {kind: [s for s in found.shapes if found.verdict(s) == kind] for kind in ("consistent", "slower")}
    counting, at = found.contenders, found.nearest
    if found.overall == "unknown":
        return f"unknown: the speed of {found.names.gpu.name} is not published in full, so that nothing is predicted."
    if at is None:
        return f"not possible: {_why_not(found)}"
    if found.overall == "consistent" and not by["consistent"]:
        slow, fast = shapes_words(by["slower"]), shapes_words([s for s in found.shapes if s not in by["slower"]])
        return f"consistent with lengths between: {rate} is less than expected of {slow} tokens, more than of {fast}."
    if found.overall == "consistent":
        others = [s for s in found.shapes if s not in by["consistent"]]
        more = f" It is not of {shapes_words(others)}." if others else ""
        return f"consistent with {shapes_words(by['consistent'])} tokens: {rate} lies in the {_band(found, at)}.{more}"
    if found.overall == "slower":
        return f"possible, but slower than predicted: {rounded(at.rate)} tokens/s, {_band(found, at)}."
    rate_claimed = found.claim.tokens_per_second
    highest = max(counting, key=lambda one: (one.ceiling >= rate_claimed, one.high))
    ceiling = max(counting, key=lambda one: one.ceiling)
    if found.overall == "unlikely":
        times = found.claim.tokens_per_second / highest.rate
        return f"unlikely as stated: {rate} is {times:,.1f} times the prediction, above every {_band(found, highest)}."
    return (
        f"not possible as stated: {rate} is above {rounded(ceiling.ceiling)}, what perfect software would reach"
        f" ({_run(found, ceiling)}; one token a step, no prompt cached)."
    )


def _band(found: Found, one: Reading) -> str:
    return f"80 % band, {rounded(one.low)} to {rounded(one.high)} ({_run(found, one)})"


def _run(found: Found, one: Reading) -> str:
    """How a reading runs, with its lengths where there are several."""
    shape = one.answer["input_tokens"], one.answer["output_tokens"]
    return f"{shapes_words([shape])}, {way_words(one)}" if len(found.shapes) > 1 else way_words(one)


def _why_not(found: Found) -> str:
    """Why no layout holds even one request: what the one lacks that lacks least."""
    return lacks_least([one for each in found.shapes.values() for one in each]).removeprefix("does not fit: ")


def lacks_least(readings: list[Reading]) -> str:
    """The verdict of `size` on the way that is short of the fewest bytes of each GPU."""
    least = min(readings, key=lambda one: (one.answer["short_by_bytes"] or 0) * one.way.layout.n_replicas)
    return str(least.answer["verdict"])


def length_words(found: Found) -> str:
    """One sentence: the longest context that each request can have had, by precision of the cache."""
    longest = [(one, longest_context(found, one)) for one in found.kv_dtypes]
    if not any(count for _, count in longest):
        return f"No layout of these GPUs holds {found.claim.concurrency:,} requests at once, however short."
    parts = [f"{count:,} tokens in {name}" if count else f"none in {name}" for name, count in longest]
    limit = found.names.model.max_context_tokens
    reached = " (the model's own limit)" if max(count for _, count in longest) == limit else ""
    return f"At concurrency {found.claim.concurrency:,} each request can have had at most {', '.join(parts)}{reached}."


def longest_context(found: Found, kv_cache_dtype: str) -> int:
    """Tokens of the longest context at which all requests fit at once, in the best layout; 0 where none do."""
    of_dtype = [one for one in found.capacity if one.way.kv_cache_dtype == kv_cache_dtype and one.runs]
    return max((int(one.answer["max_context_tokens_that_fit"]) for one in of_dtype), default=0)


def yours_words(found: Found, best: Reading | None, scaled: Scaled | None) -> str | None:
    """One sentence: what the claim comes to at the asker's context; None where none was given."""
    claim = found.claim
    if not found.yours:
        return None
    users = claim.users or claim.concurrency
    where = f"at {claim.context_tokens:,} tokens and {users:,} user{'' if users == 1 else 's'}"
    claimed = f"The claim's {claim.tokens_per_second:,.10g} tokens/s"
    one = scaled.reading if scaled else best
    if one is None:
        return f"{claimed} has no counterpart {where}: {_nothing(found)}"
    how = f"80 % band {rounded(one.low)} to {rounded(one.high)}; {way_words(one)}"
    if scaled is not None:
        how += f"; the prediction times {scaled.factor:.2f}, as the claim has it"
    if found.overall == "impossible":
        return f"Whatever the claim, these GPUs give about {rounded(one.rate)} tokens/s {where} ({how})."
    return f"{claimed} becomes about {rounded(one.rate)} {where} ({how})."


def _nothing(found: Found) -> str:
    return "its speed is not predicted." if any(one.holds for one in found.yours) else lacks_least(found.yours)


def way_words(one: Reading) -> str:
    return f"{one.way.layout.words}, KV in {one.way.kv_cache_dtype}"


def shapes_words(shapes: list[Shape]) -> str:
    """`1,024 + 1,024 or 8,192 + 1,024`."""
    texts = [f"{prompt:,} + {answer:,}" for prompt, answer in shapes]
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if texts[1:] else texts)


def rounded(figure: float) -> str:
    """A rate with the digits that a prediction deserves: three."""
    if figure >= 1_000:
        figure = float(f"{figure:.3g}")
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:,.1f}"

"""What the same GPUs give at the asker's own context, by prediction and set right by the claim."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sheetgen.decode.found import Found
from sheetgen.decode.readings import Reading, contenders, nearest
from sheetgen.scenario.inputs import BY_NAME


@dataclass(frozen=True)
class Scaled:
    """A prediction set right by the claim. factor: claimed over predicted at the claim's own shape, in `basis`."""

    factor: float
    basis: Reading
    reading: Reading


def best(found: Found, kv_cache_dtype: str | None = None) -> Reading | None:
    """The fastest layout at the asker's context; with the cache in the stated or the model's own precision where that
    holds, else in any."""
    counting = contenders(found.yours)
    wanted = [one for one in counting if one.way.kv_cache_dtype == (kv_cache_dtype or found.own_dtype)]
    return max(wanted or ([] if kv_cache_dtype else counting), key=lambda one: one.rate, default=None)


def scaled(found: Found) -> Scaled | None:
    """The prediction at the asker's context, scaled by what the claim is over its own prediction: the same layout and
    precision, both times multiplied alike. None where the claim's lengths were not stated, where it cannot be true,
    or where no layout holds both.

    Source: one measured point of a configuration takes a third off the error (docs/speed.md); here the claim is it.
    """
    claim = found.claim
    if not claim.states_lengths or found.overall in ("impossible", "unknown"):
        return None
    there = {(one.way.layout, one.way.kv_cache_dtype): one for one in found.yours if one.counts}
    bases = [one for one in found.contenders if (one.way.layout, one.way.kv_cache_dtype) in there]
    basis = nearest(bases, claim.tokens_per_second, found.own_dtype)
    if basis is None:
        return None
    factor = claim.tokens_per_second / basis.rate
    kind = BY_NAME["speed_factor"].kind
    if not kind.low <= 1 / factor <= kind.high:
        return None
    way = there[basis.way.layout, basis.way.kv_cache_dtype].way
    return Scaled(factor, basis, found.reader.read([replace(way, speed_factor=1 / factor)])[0])

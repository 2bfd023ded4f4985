"""Targets of speed where none is stated: they grow smoothly with the load, so that no token more jumps a step."""

from __future__ import annotations

from sheetgen.formula import Quantity, formula, largest, power
from sheetgen.units import WHOLE

# Judgements that the defaults read, each an entry of assumptions.yaml.
ASSUMED = (
    "default_tpot_ms",
    "default_tpot_tokens",
    "default_tpot_growth",
    "default_ttft_ms",
    "default_ttft_ms_per_token",
)


@formula("Default target of a token, ms", WHOLE)
def default_tpot_target_ms(
    context_tokens: Quantity,
    default_tpot_ms: Quantity,
    default_tpot_tokens: Quantity,
    default_tpot_growth: Quantity,
) -> Quantity:
    """Milliseconds that a token may take where no target is stated: constant up to a context, beyond it growing with a
    power of the context.

    Source: INTERFACE (targets). Check: 50 ms at 16,384 tokens, 100 ms at 131,072.
    """
    return default_tpot_ms * power(largest(1, context_tokens / default_tpot_tokens), default_tpot_growth)


@formula("Default target of the first token, ms", WHOLE)
def default_ttft_target_ms(
    input_tokens: Quantity,
    cached_fraction: Quantity,
    default_ttft_ms: Quantity,
    default_ttft_ms_per_token: Quantity,
) -> Quantity:
    """Milliseconds to the first token where no target is stated: a constant, and so much for each prompt token that no
    cache holds.

    Source: INTERFACE (targets). Check: 2,229 ms for 3,072 prompt tokens, 7,144 for 15,360, 52,610 for 129,024.
    """
    return default_ttft_ms + default_ttft_ms_per_token * input_tokens * (1 - cached_fraction)


DEFAULTS = (default_tpot_target_ms, default_ttft_target_ms)

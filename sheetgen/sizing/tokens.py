"""Token counts as people write them."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, formula, join_text, remainder, where
from sheetgen.units import TEXT

TOKENS_PER_K = 1024


@formula("Short form of a token count", TEXT)
def short_tokens(tokens: Quantity, tokens_per_k: Quantity) -> Any:
    """131,072 as 128k; a number that is no multiple of 1,024 as it is.

    Source: 1k is 1,024 tokens.
    """
    return where(remainder(tokens, tokens_per_k) == 0, join_text(tokens / tokens_per_k, "k"), join_text(tokens))

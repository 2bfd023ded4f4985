"""A recommendation's money in a few lines, for `recommend`."""

from __future__ import annotations

from sheetgen.recommend import Solution


def money_lines(solved: Solution, row: int) -> list[str]:
    """Purchase classes, a user, a million tokens, owning; what is not known is said in one word or left out."""
    from sheetgen.sheet.money import facts_of
    from sheetgen.sheet.wording import NONE

    if solved.choices[row].offer is None:
        return []
    facts = facts_of(solved, row)
    priced = [f"{name} {usd}" for name, usd in facts.classes if usd != NONE]
    unpriced = [name for name, usd in facts.classes if usd == NONE]
    lines = [f"a month: {', '.join(priced)}" + (f"; no price for {', '.join(unpriced)}" if unpriced else "")]
    lines.append("; ".join(t for t in (facts.per_year, facts.per_user, facts.per_million_tokens) if t != NONE))
    if facts.budget != NONE:
        lines.append(f"budget: {facts.budget}")
    if facts.owned != NONE:
        old = ", an old price" if facts.capex_is_old else ""
        lines.append(f"{facts.owned}{old}; {facts.break_even}" if facts.break_even != NONE else f"{facts.owned}{old}")
    else:
        lines.append("own: no street price of this GPU is known; give yours with --capex-usd-per-gpu")
    return lines

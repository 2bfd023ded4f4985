"""What changed between two sheets as a short Markdown block, to paste into a planning document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from sheetgen.cli.diff_kinds import by_kind
from sheetgen.cli.diff_text import parts
from sheetgen.workbook.bridge import LOAD, PRICES, SETTINGS
from sheetgen.workbook.budget import budget_words
from sheetgen.workbook.change import Bridge, Change
from sheetgen.workbook.compare import Comparison
from sheetgen.workbook.sheet_facts import SheetFacts
from sheetgen.workbook.words import ARROW, signed_usd, usd
from sheetgen.writers.markdown import plain, table

SHOWN = 6  # changes of a kind
CAUSES = (PRICES, LOAD, SETTINGS)
NOT_KNOWN = "–"


def block_text(found: Comparison, bridge: Sequence[Bridge]) -> str:
    """The block: a bridge of dollars per model, what is rented, and what changed, in a few lines each."""
    a, b = found.a, found.b
    parts_of_it = [
        f"### What changed since {a.as_of or 'the sheet before'}",
        f"{plain(PurePath(a.path).name)} (as of {a.as_of or 'no date'}) against {plain(PurePath(b.path).name)} "
        f"(as of {b.as_of or 'no date'}).",
    ]
    if found.is_equal:
        return "\n\n".join([*parts_of_it, "Nothing changed."])
    parts_of_it += [_money(bridge), "\n".join(_remarks(bridge, b)), "\n".join(_changes(found))]
    parts_of_it += ["\n".join(f"- Not compared: {plain(reason)}." for reason in found.not_compared)]
    return "\n\n".join(part for part in parts_of_it if part)


def _money(bridge: Sequence[Bridge]) -> str:
    """Dollars a month at the headline: before, what each cause did, after."""
    others = tuple(dict.fromkeys(s.cause for one in bridge for s in one.steps if s.cause not in CAUSES))
    heads = ("Model, load", "Before", *(c.capitalize() for c in (*CAUSES, *others)), "After")
    rows = [
        (f"{one.name}, {one.load}".replace(ARROW, " → "), _usd(one.before_usd), *_steps(one, (*CAUSES, *others)),
         _usd(one.after_usd))
        for one in bridge
    ]  # fmt: skip
    return table(heads, rows, right=range(1, len(heads)))


def _usd(amount: float | None) -> str:
    return "nothing fits" if amount is None else usd(amount)


def _steps(one: Bridge, causes: Sequence[str]) -> Iterator[str]:
    did = {step.cause: step.usd for step in one.steps}
    for cause in causes:
        if cause in did or one.steps or one.how == "unchanged":
            yield _signed(did.get(cause, 0.0))
        else:
            yield NOT_KNOWN


def _signed(amount: float) -> str:
    """A change of dollars with a true minus, which Markdown takes for no list."""
    return signed_usd(amount).lstrip("+").replace("-", "−") if amount else "$0"


def _remarks(bridge: Sequence[Bridge], b: SheetFacts) -> Iterator[str]:
    if any(one.how == "solved again" for one in bridge):
        yield "- Dollars a month; solved again cause by cause, in the order of the columns, on which the parts depend."
    budgets = [f"{one.name} {words}" for one in bridge if (words := budget_words(b, one.after_usd))]
    if budgets:
        yield f"- As budgeted, a month: {plain('; '.join(budgets))}."
    for one in bridge:
        if one.how == "not separated":
            yield f"- {plain(one.name)}: {plain(parts(one))}."


def _changes(found: Comparison) -> Iterator[str]:
    """The hardware, then what changed of the prices, the load, and the rest, the first ones of each."""
    sections = found.sections
    for change in sections["recommendation"]:
        yield f"- **Hardware** {_line(change)}"
    for kind, changes in by_kind(found).items():
        for change in changes[:SHOWN]:
            yield f"- **{kind}** {_line(change)}"
        if len(changes) > SHOWN:
            yield f"- **{kind}** and {len(changes) - SHOWN:,} more"
    yield f"- **All loads** {len(sections['results']):,} of {len(found.pairing.loads()):,} have another answer"


def _line(change: Change) -> str:
    return plain(str(change).replace(ARROW, " → "))

"""What changed between two sheets, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sheetgen.errors import escaped
from sheetgen.workbook.budget import budget_words
from sheetgen.workbook.change import SECTIONS, Bridge, Change
from sheetgen.workbook.compare import Comparison
from sheetgen.workbook.sheet_facts import SheetFacts
from sheetgen.workbook.words import signed_usd, usd

SHOWN = 12  # changes of a section, unless all are asked for


def text(found: Comparison, bridge: Sequence[Bridge], show_all: bool, quiet: bool = False) -> str:
    """Both files, then each section that has changes; one line each."""
    lines = [f"A  {_side(found.a)}", f"B  {_side(found.b)}", ""]
    if found.is_equal:
        lines.append("nothing changed")
    for name, changes in found.sections.items():
        if changes:
            lines += [SECTIONS[name].upper(), *_limited(changes, show_all)]
            lines += ["", "DOLLARS A MONTH", *(f"  {_bridge(one, found.b)}" for one in bridge)] * (
                name == "recommendation"
            )
            lines.append("")
    if not quiet:
        lines += [f"not compared: {reason}." for reason in found.not_compared]
        lines += [f"note: {side.path}: {note}" for side in (found.a, found.b) for note in side.notes]
    return "\n".join(map(escaped, lines)).rstrip()


def _side(side: SheetFacts) -> str:
    made = f", sheetgen {side.version}" if side.version else ""
    return f"{side.path} ({side.kind} as of {side.as_of or 'no date'}{made}, catalog {side.catalog_sha256[:8]})"


def _limited(changes: Sequence[Change], show_all: bool) -> list[str]:
    """The changes, those of dates alone in one line, the first ones unless all are asked for."""
    told = list(changes) if show_all else [c for c in changes if c.more.get("what") != "date"]
    dated = len(changes) - len(told)
    limit = len(told) if show_all else SHOWN
    lines = [f"  {change}" for change in told[:limit]]
    if len(told) > limit:
        lines.append(f"  and {len(told) - limit:,} more: --all shows them")
    if dated:
        lines.append(f"  {dated:,} price{'s were' if dated > 1 else ' was'} read on another day and did not change")
    return lines


def _bridge(one: Bridge, b: SheetFacts) -> str:
    """`Llama 3.1 70B, RAG at 32: $40,179; prices -$4,409, load +$35,770; now $71,540`, and what is budgeted for it."""
    before, after = (usd(v) if v is not None else "nothing fits" for v in (one.before_usd, one.after_usd))
    budget = budget_words(b, one.after_usd)
    return f"{one.name}, {one.load}: {before}; {parts(one)}; now {after}" + (
        f", as budgeted {budget}" if budget else ""
    )


def parts(one: Bridge) -> str:
    """What each cause did, or that it is not known."""
    if one.how == "unchanged":
        return "unchanged"
    if one.steps:
        return ", ".join(_steps(one))
    causes = f"by {' and '.join(one.causes)} together" if one.causes else "by nothing that the files say"
    return causes + (f" ({one.why})" if one.why else "")


def _steps(one: Bridge) -> Iterator[str]:
    for step in one.steps:
        yield f"{step.cause} {signed_usd(step.usd) if step.usd else '$0'}"

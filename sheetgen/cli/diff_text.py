"""What changed between two sheets in words: for a terminal, as a Markdown block to paste, and in a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from sheetgen.errors import escaped
from sheetgen.mail.message import Changes, Money
from sheetgen.workbook.bridge import LOAD, NO_EFFECT, OF_BUDGET, PRICES, SETTINGS, Bridge, bridges
from sheetgen.workbook.compare import ARROW, SECTIONS, Change, Comparison, budget_words, compare, signed_usd, usd
from sheetgen.workbook.facts import OF_PRICES, SheetFacts, facts_of_workbook, read_sheet
from sheetgen.workbook.read import read_workbook_bytes
from sheetgen.writers.markdown import plain, table

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

SHOWN = 12  # changes of a section, without --all
SHOWN_IN_BLOCK = 6  # changes of a kind
SHOWN_IN_MAIL = 5  # of each kind, so that many prices do not hide a setting
CAUSES = (PRICES, LOAD, SETTINGS)
NOT_KNOWN = "–"


def text(found: Comparison, bridge: Sequence[Bridge], show_all: bool, quiet: bool = False) -> str:
    """Both files, then each section that has changes; one line each."""
    lines = [f"A  {_side(found.a)}", f"B  {_side(found.b)}", ""]
    if found.is_equal:
        lines.append("nothing changed")
    for name, changes in found.sections.items():
        if changes:
            lines += [SECTIONS[name].upper(), *_limited(changes, show_all)]
            if name == "recommendation":
                lines += ["", "DOLLARS A MONTH", *(f"  {_bridge(one, found.b)}" for one in bridge)]
            lines.append("")
    if not quiet:
        lines += [f"not compared: {reason}." for reason in found.not_compared]
        lines += [f"note: {side.path}: {note}" for side in (found.a, found.b) for note in side.notes]
    return "\n".join(map(escaped, lines)).rstrip()


def _side(side: SheetFacts) -> str:
    made = f", sheetgen {side.version}" if side.version else ""
    return f"{side.path} ({side.kind} as of {side.as_of or 'no date'}{made}, catalog {side.catalog_sha256[:8]})"


def _limited(changes: Sequence[Change], show_all: bool) -> list[str]:
    """The changes, those of dates alone in one line, the first ones without --all."""
    listed = list(changes) if show_all else [c for c in changes if c.more.get("what") != "date"]
    dated = len(changes) - len(listed)
    limit = len(listed) if show_all else SHOWN
    lines = [f"  {change}" for change in listed[:limit]]
    if len(listed) > limit:
        lines.append(f"  and {len(listed) - limit:,} more: --all shows them")
    if dated:
        lines.append(f"  {dated:,} price{'s were' if dated > 1 else ' was'} read on another day and did not change")
    return lines


def _bridge(one: Bridge, b: SheetFacts) -> str:
    """`Llama 3.1 70B, RAG at 32: $40,179; prices -$4,409, load +$35,770; now $71,540`, and what is budgeted for it."""
    budget = budget_words(b, one.after_usd)
    budgeted = f", as budgeted {budget}" if budget else ""
    return f"{one.name}, {one.load}: {_usd(one.before_usd)}; {parts(one)}; now {_usd(one.after_usd)}{budgeted}"


def parts(one: Bridge) -> str:
    """What each cause did, or that it is not known."""
    if one.how == "unchanged":
        return "unchanged"
    if one.steps:
        return ", ".join(f"{step.cause} {signed_usd(step.usd) if step.usd else '$0'}" for step in one.steps)
    causes = f"by {' and '.join(one.causes)} together" if one.causes else "by nothing that the files say"
    return causes + (f" ({one.why})" if one.why else "")


def _usd(amount: float | None) -> str:
    return "nothing fits" if amount is None else usd(amount)


def _arrows(text: str) -> str:
    return text.replace(ARROW, " → ")


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
    parts_of_it += [_money_table(bridge), "\n".join(_remarks(bridge, b)), "\n".join(_changes(found))]
    parts_of_it += ["\n".join(f"- Not compared: {plain(reason)}." for reason in found.not_compared)]
    return "\n\n".join(part for part in parts_of_it if part)


def _money_table(bridge: Sequence[Bridge]) -> str:
    """Dollars a month at the headline: before, what each cause did, after."""
    others = tuple(dict.fromkeys(s.cause for one in bridge for s in one.steps if s.cause not in CAUSES))
    heads = ("Model, load", "Before", *(c.capitalize() for c in (*CAUSES, *others)), "After")
    steps = [_steps(one, (*CAUSES, *others)) for one in bridge]
    rows = [
        (_arrows(f"{one.name}, {one.load}"), _usd(one.before_usd), *did, _usd(one.after_usd))
        for one, did in zip(bridge, steps, strict=True)
    ]
    return table(heads, rows, right=range(1, len(heads)))


def _steps(one: Bridge, causes: Sequence[str]) -> Iterator[str]:
    did = {step.cause: step.usd for step in one.steps}
    is_known = one.steps or one.how == "unchanged"
    yield from (_signed(did.get(cause, 0.0)) if is_known else NOT_KNOWN for cause in causes)


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
    yield from (f"- **Hardware** {_line(change)}" for change in sections["recommendation"])
    for kind, changes in _by_kind(found).items():
        yield from (f"- **{kind}** {_line(change)}" for change in changes[:SHOWN_IN_BLOCK])
        if len(changes) > SHOWN_IN_BLOCK:
            yield f"- **{kind}** and {len(changes) - SHOWN_IN_BLOCK:,} more"
    yield f"- **All loads** {len(sections['results']):,} of {len(found.pairing.loads()):,} have another answer"


def _line(change: Change) -> str:
    return plain(_arrows(str(change)))


def _by_kind(found: Comparison) -> dict[str, list[Change]]:
    """Prices, load, facts and settings. Dates alone and What-if, which moves no answer, stay out."""
    sections = found.sections
    market = [c for c in sections["inputs"] if c.name in OF_PRICES]
    hidden = {*OF_PRICES, *NO_EFFECT} - {*OF_BUDGET}
    rest = [c for c in sections["inputs"] if c.name not in hidden]
    prices = [c for c in sections["prices"] if c.more.get("what") != "date"]
    facts = [*sections["models"], *sections["gpus"], *sections["precisions"]]
    return {
        "Prices": [*market, *sorted(prices, key=lambda c: _weight(c, found))],
        "Load": [*sections["load"]],
        "Facts and settings": [*rest, *facts],
    }


def _weight(change: Change, found: Comparison) -> int:
    """Prices of what either sheet recommends at the headline first, those of other purchase classes last."""
    if change.more.get("purchase", found.b.purchase) != found.b.purchase:
        return 2
    recommended = (side["instance"] for one in found.sections["recommendation"] for side in (one.before, one.after))
    return 0 if change.more.get("instance") in recommended else 1


def changes_since(before: str, workbook: bytes, name: str, catalog: Catalog) -> Changes:
    """From the sheet in the file `before` (workbook or JSON) to the workbook that is sent. Raises WorkbookError."""
    found = compare(read_sheet(before), facts_of_workbook(read_workbook_bytes(workbook, name)))
    kinds = [list(filter(_says_something, changes)) for changes in _by_kind(found).values()]
    return Changes(
        since=f"{PurePath(found.a.path).name}, as of {found.a.as_of or 'no date'}",
        money=() if found.is_equal else tuple(_money(one, found) for one in bridges(found, catalog)),
        lines=tuple(map(_arrows, _lines(found, kinds))),
        more=sum(max(len(changes) - SHOWN_IN_MAIL, 0) for changes in kinds),
    )


def _money(one: Bridge, found: Comparison) -> Money:
    """A model's dollars before and now, what is rented where that is another, and what moved them."""
    rented = (c for c in found.sections["recommendation"] if c.more.get("model") == one.model)
    words = [f"{c.before['words']} → {c.after['words']}" for c in rented if c.before["words"] != c.after["words"]]
    load, why = _arrows(f"{one.name}, {one.load}"), "; ".join([*words, parts(one)])
    return Money(load, _usd(one.before_usd), _usd(one.after_usd), why)


def _says_something(change: Change) -> bool:
    """Inputs and facts that one of the sheets alone has, and leaves blank, say nothing; a removed line does."""
    return "what" in change.more or not (change.before is None is change.after)


def _lines(found: Comparison, kinds: list[list[Change]]) -> Iterator[str]:
    """First what is not known, for it puts the rest in its place."""
    yield from (f"not compared: {reason}" for reason in found.not_compared)
    for changes in kinds:
        yield from map(str, changes[:SHOWN_IN_MAIL])

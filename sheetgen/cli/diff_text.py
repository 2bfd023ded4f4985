"""The changes between two sheets: for a terminal, as JSON, as a Markdown block to paste, and in a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import TYPE_CHECKING

from sheetgen.errors import escaped
from sheetgen.mail.message import Changes, Money
from sheetgen.readback.compare import ARROW, SECTIONS, Change, Comparison, budget_words, compare, signed_usd, usd
from sheetgen.readback.compared_facts import OF_PRICES, SheetFacts, facts_now, read_sheet
from sheetgen.readback.month_bridge import LOAD, NO_EFFECT, OF_BUDGET, PRICES, SETTINGS, Bridge, bridges
from sheetgen.readback.read_book import read_workbook_bytes
from sheetgen.report.in_currency import amount_in
from sheetgen.report.page import Column, table
from sheetgen.report.wording import money as money_cell
from sheetgen.writers.markdown import plain, table_text

if TYPE_CHECKING:
    from sheetgen.answer.answer_record import Json
    from sheetgen.catalog import Catalog
    from sheetgen.plan.bridge import Bridge as PlanBridge
    from sheetgen.plan.schema import Head

DIFF_SCHEMA = 1
SHOWN = 12  # changes of a section, without --all
SHOWN_IN_BLOCK = 6  # changes of a kind
SHOWN_IN_MAIL = 5  # of each kind, so that many prices do not hide a setting
CAUSES = (PRICES, LOAD, SETTINGS)
TO_APPROVE, OF_ALL_QUARTERS = "To approve, all quarters", "Spend of all quarters at p50"


def document(comparison: Comparison, bridge: Sequence[Bridge] = (), quality: Sequence[str] = ()) -> Json:
    """The changes, as JSON."""

    def side(facts: SheetFacts) -> Json:
        return {
            "file": facts.path,
            "kind": facts.kind,
            "as_of": facts.as_of.isoformat() if facts.as_of else None,
            "version": facts.version or None,
            "catalog_sha256": facts.catalog_sha256,
        }

    return {
        "schema_version": DIFF_SCHEMA,
        "a": side(comparison.a),
        "b": side(comparison.b),
        "equal": comparison.is_equal,
        **{name: [change.data() for change in changes] for name, changes in comparison.sections.items()},
        "bridge": list(map(asdict, bridge)),
        "quality": list(quality),
        "not_compared": list(comparison.not_compared),
        "notes": [f"{facts.path}: {note}" for facts in (comparison.a, comparison.b) for note in facts.notes],
    }


def quality_words(comparison: Comparison, catalog: Catalog) -> tuple[str, ...]:
    """The loss of answer quality for each narrower precision that a setting or a model has now."""
    from sheetgen.catalog.stacks import LeverFile

    changed = (*comparison.sections["inputs"], *comparison.sections["models"])
    to = {(c.name.rpartition(".")[2], dtype) for c in changed for dtype in ("fp8", "fp4") if dtype in str(c.after)}
    weights, kv = ("weight_dtype", "fp8") in to, ("kv_cache_dtype", "fp8") in to
    ids = {
        "fp8-both": weights and kv,
        "fp8-weights": weights and not kv,
        "fp8-kv-cache": kv and not weights,
        "fp4-weights": ("weight_dtype", "fp4") in to,
    }
    return tuple(
        f"{lever.words}: {lever.cost}. {lever.more}." for lever in catalog.file(LeverFile).levers if ids.get(lever.id)
    )


def text(
    comparison: Comparison,
    bridge: Sequence[Bridge],
    show_all: bool,
    quiet: bool = False,
    quality: Sequence[str] = (),
) -> str:
    """Both files, then each section that has changes; one line each."""
    lines = []
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        made = f", sheetgen {side.version}" if side.version else ""
        about = f"{side.kind} as of {side.as_of or 'no date'}{made}, catalog {side.catalog_sha256[:8]}"
        lines.append(f"{name}  {side.path} ({about})")
    lines += ["", *(["nothing changed"] if comparison.is_equal else [])]
    for name, changes in comparison.sections.items():
        if changes:
            lines += [SECTIONS[name].upper(), *_change_lines(changes, show_all)]
            if name == "recommendation":
                lines += ["", "DOLLARS A MONTH", *(f"  {_bridge(month, comparison.b)}" for month in bridge)]
            lines.append("")
    lines += ["QUALITY", *(f"  {remark}" for remark in quality), ""] if quality else []
    if not quiet:
        lines += [f"not compared: {reason}." for reason in comparison.not_compared]
        lines += [f"note: {side.path}: {note}" for side in (comparison.a, comparison.b) for note in side.notes]
    return "\n".join(map(escaped, lines)).rstrip()


def _change_lines(changes: Sequence[Change], show_all: bool) -> list[str]:
    """The changes, those of dates alone in one line; only the first ones without --all."""
    listed = list(changes) if show_all else [c for c in changes if c.more.get("what") != "date"]
    shown, dated = listed if show_all else listed[:SHOWN], len(changes) - len(listed)
    lines = [f"  {change}" for change in shown]
    if len(listed) > len(shown):
        lines.append(f"  and {len(listed) - len(shown):,} more: --all shows them")
    if dated:
        lines.append(f"  {dated:,} price{'s were' if dated > 1 else ' was'} read on another day and did not change")
    return lines


def _bridge(month: Bridge, b: SheetFacts) -> str:
    """`Llama 3.1 70B, RAG at 32: $40,179; prices -$4,409, load +$35,770; now $71,540`, and what is budgeted for it."""
    budget = budget_words(b, month.after_usd)
    budgeted = f", as budgeted {budget}" if budget else ""
    now = f"{_usd(month.after_usd)}{budgeted}"
    return f"{month.name}, {month.load}: {_usd(month.before_usd)}; {parts(month)}; now {now}"


def parts(month: Bridge) -> str:
    """The dollars of each cause, or that they are not known."""
    if month.how == "unchanged":
        return "unchanged"
    if month.steps:
        return ", ".join(f"{step.cause} {signed_usd(step.usd) if step.usd else '$0'}" for step in month.steps)
    causes = f"by {' and '.join(month.causes)} together" if month.causes else "by nothing that the files say"
    return causes + (f" ({month.why})" if month.why else "")


def _usd(amount: float | None) -> str:
    return "nothing fits" if amount is None else usd(amount)


def _arrows(text: str) -> str:
    return text.replace(ARROW, " → ")


def block_text(comparison: Comparison, bridge: Sequence[Bridge], quality: Sequence[str] = ()) -> str:
    """The block to paste: what dollars became and why, then what changed, in a few lines each."""
    since = comparison.a.as_of or "the sheet before"
    files = (
        f"{plain(PurePath(side.path).name)} (as of {side.as_of or 'no date'})" for side in (comparison.a, comparison.b)
    )
    blocks = [f"### What changed since {since}", f"{' against '.join(files)}."]
    if comparison.is_equal:
        return "\n\n".join([*blocks, "Nothing changed."])
    blocks += _sheet_blocks(comparison, bridge, quality)
    blocks.append("\n".join(f"- Not compared: {plain(reason)}." for reason in comparison.not_compared))
    return "\n\n".join(filter(None, blocks))


def _sheet_blocks(comparison: Comparison, bridge: Sequence[Bridge], quality: Sequence[str]) -> Iterator[str]:
    """A bridge of dollars per model with its remarks, then what is rented, and what changed."""
    remarks = []
    if any(month.how == "solved again" for month in bridge):
        remarks.append(
            "- Dollars a month; solved again cause by cause, in the order of the columns, on which the parts depend."
        )
    if budgets := [
        f"{month.name} {words}" for month in bridge if (words := budget_words(comparison.b, month.after_usd))
    ]:
        remarks.append(f"- As budgeted, a month: {plain('; '.join(budgets))}.")
    remarks += [f"- {plain(month.name)}: {plain(parts(month))}." for month in bridge if month.how == "not separated"]
    lines = [("Hardware", str(change)) for change in comparison.sections["recommendation"]]
    for kind, changes in _by_kind(comparison).items():
        lines += _first(kind, changes)
    lines += [("Quality", remark) for remark in quality]
    lines.append(("All loads", _n_changed(len(comparison.sections["results"]), len(comparison.pairing.loads()))))
    yield from (_money_table(bridge), "\n".join(remarks), _list(lines))


def _first(kind: str, changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """The first changes of a kind, and how many more there are."""
    yield from ((kind, str(change)) for change in changes[:SHOWN_IN_BLOCK])
    if len(changes) > SHOWN_IN_BLOCK:
        yield kind, f"and {len(changes) - SHOWN_IN_BLOCK:,} more"


def _list(lines: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- **{kind}** {plain(_arrows(words))}" for kind, words in lines)


def _n_changed(count: int, n_loads: int) -> str:
    """The number of answers that changed: all 36 answers changed, 3 of 36 answers changed."""
    if count in (0, n_loads):
        return f"{'all' if count else 'none of the'} {n_loads:,} answers changed"
    return f"{count:,} of {n_loads:,} answers changed"


def _money_table(bridge: Sequence[Bridge]) -> str:
    """Dollars a month at the headline: before, what each cause did, after."""
    causes = tuple(dict.fromkeys((*CAUSES, *(step.cause for month in bridge for step in month.steps))))
    heads = ("Model, load", "Before", *(cause.capitalize() for cause in causes), "After")
    rows = []
    for month in bridge:
        did = {step.cause: step.usd for step in month.steps}
        is_known = month.steps or month.how == "unchanged"
        signed = [_signed(did.get(cause, 0.0)) if is_known else "–" for cause in causes]
        rows.append((_arrows(f"{month.name}, {month.load}"), _usd(month.before_usd), *signed, _usd(month.after_usd)))
    return table_text(table("", (heads[0], *(Column(head, right=True) for head in heads[1:])), rows))


def _signed(amount: float) -> str:
    """A change in dollars with a true minus sign, which Markdown does not take for a list."""
    return signed_usd(amount).replace("-", "−") if amount else "$0"


def _by_kind(comparison: Comparison) -> dict[str, list[Change]]:
    """Prices, load, facts and settings. Dates alone and Decision, which moves no answer, stay out."""
    sections, b = comparison.sections, comparison.b
    hidden = {*OF_PRICES, *NO_EFFECT} - {*OF_BUDGET}
    recommended = [side["instance"] for change in sections["recommendation"] for side in (change.before, change.after)]

    def weight(change: Change) -> int:
        """The rank of a price: instances that either sheet recommends at the headline first, prices of other purchase
        classes last."""
        if change.more.get("purchase", b.purchase) != b.purchase:
            return 2
        return 0 if change.more.get("instance") in recommended else 1

    prices = sorted((c for c in sections["prices"] if c.more.get("what") != "date"), key=weight)
    market = [c for c in sections["inputs"] if c.name in OF_PRICES]
    rest = [c for c in sections["inputs"] if c.name not in hidden]
    return {
        "Prices": [*market, *prices],
        "Load": [*sections["load"]],
        "Facts and settings": [*rest, *sections["models"], *sections["gpus"], *sections["precisions"]],
    }


def changes_since(before: str, workbook: bytes, name: str, catalog: Catalog) -> Changes:
    """From the sheet in the file `before` (workbook or JSON) to the workbook that is sent. Raises WorkbookError."""
    comparison = compare(read_sheet(before, catalog), facts_now(read_workbook_bytes(workbook, name), catalog))
    money = []
    for month in () if comparison.is_equal else bridges(comparison, catalog):
        rented = (c for c in comparison.sections["recommendation"] if c.more.get("model") == month.model)
        words = [f"{c.before['words']} → {c.after['words']}" for c in rented if c.before["words"] != c.after["words"]]
        load, why = _arrows(f"{month.name}, {month.load}"), "; ".join([*words, parts(month)])
        money.append(Money(load, _usd(month.before_usd), _usd(month.after_usd), why))
    # What one of the sheets alone has, and leaves blank, says nothing; a removed line does.
    telling = (
        [c for c in changes if "what" in c.more or not (c.before is None is c.after)]
        for changes in _by_kind(comparison).values()
    )
    return _in_a_message(comparison, money, telling, quality_words(comparison, catalog))


def plan_changes_since(file: str, as_of: str, bridge: PlanBridge, head: Head) -> Changes:
    """The differences since the last plan, which is of that file and day, by their causes; in the currency of a plan
    with this head."""

    def amount(usd: float) -> str:
        return str(amount_in(money_cell(usd), head.currency, head.fx_rate))

    money, whole = [], bridge.in_whole(head.fx_rate)
    for name, steps in ((TO_APPROVE, whole.asked), (OF_ALL_QUARTERS, whole.p50)):
        parts = ", ".join(f"{factor} {'+' * (part > 0)}{amount(part)}" for factor, part in steps.parts.items())
        if parts:
            money.append(Money(name, amount(steps.last_usd), amount(steps.usd), parts))
    return Changes(f"{PurePath(file).name}, as of {as_of}", tuple(money), per="")


def _in_a_message(
    comparison: Comparison,
    money: Sequence[Money],
    groups: Iterable[Sequence[Change]],
    last: Iterable[str] = (),
) -> Changes:
    """The parts that were not compared, which put the rest in place; the first changes of each group; and the `last`
    lines."""
    lines, more = [f"not compared: {reason}" for reason in comparison.not_compared], 0
    for changes in groups:
        lines += map(str, changes[:SHOWN_IN_MAIL])
        more += max(len(changes) - SHOWN_IN_MAIL, 0)
    since = f"{PurePath(comparison.a.path).name}, as of {comparison.a.as_of or 'no date'}"
    return Changes(since, tuple(money), tuple(map(_arrows, (*lines, *last))), more)

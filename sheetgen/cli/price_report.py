"""What price lists do to the catalogs, in words: for `catalog prices`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sheetgen.cli.output import table
from sheetgen.errors import shown

if TYPE_CHECKING:
    from sheetgen.catalog.prices import Change, Refresh
    from sheetgen.catalog.prices.rows import What

MOST_ROWS = 40  # of the table of changes; --json has all
MOST_NAMES = 4  # of one reason
LARGE = 2.0  # a price that moved by more than this factor is worth a look: a wrong unit, a wrong column

_SAID: dict[What, str] = {
    "changed": "changed",
    "added": "new for a row that had none",
    "moved": "of another region than before",
    "confirmed": "the same at a later date",
    "unchanged": "unchanged",
}


def report(found: Refresh, add_new: bool) -> Iterator[str]:
    """The lists, the prices that change, how many do not, and what prices no row."""
    for one in found.lists:
        empty = f", {one.n_without_price:,} without a price" if one.n_without_price else ""
        broken = f", {len({f.line for f in one.faults}):,} broken" if one.faults else ""
        yield f"{one.where}: {one.format.title}, {count(one.n_lines, 'line')}{empty}{broken}."
    yield ""
    shown_changes = [one for one in found.changes if one.what in ("changed", "added", "moved")]
    if shown_changes:
        yield _table(shown_changes[:MOST_ROWS])
        if len(shown_changes) > MOST_ROWS:
            yield f"and {len(shown_changes) - MOST_ROWS:,} more; --json has all"
        yield ""
    yield from _counts(found, shown_changes)
    if found.new:
        names = _some([f"{row.id} ({row.gpu_count}x {row.gpu})" for row in found.new])
        yield f"{count(len(found.new), 'new row')}{' added' if add_new else ', which --add-new adds'}: {names}."
    yield from _left(found)


def _table(changes: Iterable[Change]) -> str:
    heads = ("instance", "purchase", "old $/h", "new $/h", "change", "old date", "new date")
    rows = []
    for one in changes:
        old, new = (f" {one.old_region}", f" {one.new_region}") if one.what == "moved" else ("", "")
        prices = _usd(one.old_usd), _usd(one.new_usd), _percent(one.share)
        rows.append((one.instance, one.purchase, *prices, (one.old_as_of or "–") + old, one.new_as_of + new))
    return table(heads, rows, right=(2, 3, 4))


def _counts(found: Refresh, shown_changes: Sequence[Change]) -> Iterator[str]:
    n_of = Counter(one.what for one in found.changes)
    said = [f"{n_of[what]:,} {words}" for what, words in _SAID.items() if n_of[what]]
    yield f"Prices: {', '.join(said) or 'none for a row of the catalogs'}."
    older = [one for one in found.changes if one.what == "older"]
    if older:
        known = sum(not one.touches_row for one in older)
        already = f" ({known:,} there already)" if known else ""
        names = _some([f"{one.instance} {one.purchase} {_usd(one.new_usd)} of {one.new_as_of}" for one in older])
        yield f"{count(len(older), 'price')} older than the catalog's, which stays; kept as history{already}: {names}."
    far = [one for one in shown_changes if one.what == "changed" and one.old_usd]
    far = [one for one in far if not 1 / LARGE <= one.new_usd / (one.old_usd or 1) <= LARGE]
    if far:
        names = _some([f"{one.instance} {one.purchase} {_percent(one.share)}" for one in far])
        yield f"More than {LARGE:g} times dearer or cheaper, so look at the unit and the column: {names}."
    if found.dropped:
        yield f"{count(len(found.dropped), 'price')} of the old region dropped from moved rows: {_some(found.dropped)}."
    if found.n_other_regions:
        yield f"{count(found.n_other_regions, 'line')} of other regions than the catalog's rows."
    if found.not_in_lists:
        yield f"{count(len(found.not_in_lists), 'catalog row')} not in the lists: {_some(found.not_in_lists)}."


def _left(found: Refresh) -> Iterator[str]:
    """What prices no row, by reason."""
    by_why: dict[str, list[str]] = {}
    for one in found.left:
        by_why.setdefault(one.why, []).append(f"{one.provider or one.offer.provider} {one.offer.name}")
    if by_why:
        yield "Not matched, and left alone:"
    reasons = sorted(by_why.items(), key=lambda pair: -len(pair[1]))
    for why, names in reasons[:MOST_ROWS]:
        yield f"  {count(len(names), 'line')}: {why} ({_some(list(dict.fromkeys(names)))})"
    if len(reasons) > MOST_ROWS:
        yield f"  and {len(reasons) - MOST_ROWS:,} more reasons; --json has all"


def _usd(value: float | None) -> str:
    return "–" if value is None else f"{value:,.10g}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:+.1%}"


def count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(shown(name, 80) for name in names[:MOST_NAMES]) + more

"""Compare two plans, section by section, with the words and signs of compared sheets."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.errors import SheetgenError
from sheetgen.plan.bridge import Bridge, bridge, is_record, last_of
from sheetgen.workbook.cells import is_number
from sheetgen.workbook.compare import ARROW, Change, change_fraction, from_to, growth, signed_usd, usd, usd_change
from sheetgen.workbook.facts import same
from sheetgen.workbook.package import read_file

SECTIONS = {
    "money": "Money by quarter", "decisions": "Decisions", "services": "Services", "inputs": "Inputs",
    "prices": "Prices", "checks": "Checks",
}  # fmt: skip
NO_EFFECT = ("plan.as_of", "plan.since")  # inputs that say when it was made, and from what
Record = Mapping[str, Any]


@dataclass(frozen=True)
class PlanFacts:
    """The JSON of a plan, and what stands in its head."""

    path: str
    record: Record
    kind: str = "plan"
    notes: tuple[str, ...] = ()

    @property
    def as_of(self) -> datetime.date:
        return datetime.date.fromisoformat(self.record["as_of"])

    @property
    def version(self) -> str:
        return str(self.record.get("version", ""))

    @property
    def catalog_sha256(self) -> str:
        return str(self.record.get("catalog_sha256", ""))


@dataclass(frozen=True)
class PlanComparison:
    """All that changed from one plan to the other. `bridge` is None where one of them cannot be worked out again."""

    a: PlanFacts
    b: PlanFacts
    sections: Mapping[str, tuple[Change, ...]]
    bridge: Bridge | None
    not_compared: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        return not any(self.sections.values())


def is_plan(path: str) -> bool:
    """Whether a file holds the JSON of a plan; false where it cannot be read, which others say."""
    try:
        return is_record(read_file(Path(path)))
    except SheetgenError:
        return False


def compare_records(before: str, old: Record, after: str, new: Record, catalog: Catalog) -> PlanComparison:
    """What changed between two plans that were read."""
    found = with_bridge(before, old, after, new, None)
    if found.is_equal:
        return found
    try:
        last, this = last_of(old, before, catalog), last_of(new, after, catalog)
        return replace(found, bridge=bridge(last, this.plan, this.said_usd))
    except SheetgenError as error:
        return replace(found, not_compared=(f"what made the difference in spend: {error.problems[0]}",))


def with_bridge(before: str, old: Record, after: str, new: Record, known: Bridge | None) -> PlanComparison:
    """The same where it is known what made the difference in spend."""
    found = {
        "money": _money(old, new),
        "decisions": _decisions(old, new),
        "services": _services(old, new),
        "inputs": _inputs(old["inputs"], new["inputs"]),
        "prices": _prices(old, new),
        "checks": _checks(old, new),
    }
    sections = {name: tuple(found[name]) for name in SECTIONS}
    parts = known if any(sections.values()) else None
    return PlanComparison(PlanFacts(before, old), PlanFacts(after, new), sections, parts, ())


def parts_words(one: Bridge) -> str:
    """`users +$12,000, price -$3,000`."""
    return ", ".join(f"{name} {signed_usd(usd)}" for name, usd in one.parts.items()) or "unchanged"


def _keyed(rows: Iterable[Record], *names: str) -> dict[tuple[Any, ...], Record]:
    return {tuple(row[name] for name in names): row for row in rows}


def _pairs(
    old: Iterable[Record], new: Iterable[Record], *names: str
) -> Iterator[tuple[tuple[Any, ...], Record | None, Record | None]]:
    """Rows with the same key in the new order, then those that are no more."""
    a, b = _keyed(old, *names), _keyed(new, *names)
    for key in (*b, *(one for one in a if one not in b)):
        yield key, a.get(key), b.get(key)


def _alone(name: str, label: str, said: str, before: Record | None, after: Record | None) -> Change:
    """What one of the plans alone has."""
    return Change(name, label, f"{said}{' ' if said else ''}{'removed' if after is None else 'added'}", before, after)


def _money(old: Record, new: Record) -> Iterator[Change]:
    for (quarter,), was, now in _pairs(old["money"], new["money"], "quarter"):
        if was is None or now is None:
            one = was or now or {}
            said = f"{usd(one['p50_usd'])} at p50,"
            yield _alone(f"{quarter}.p50_usd", quarter, said, was and was["p50_usd"], now and now["p50_usd"])
            continue
        for name, label in (("p50_usd", "p50"), ("p90_usd", "p90"), ("budget_usd", "budget")):
            before, after = was.get(name), now.get(name)
            if not same(before, after):
                words = usd_change(before, after) + growth(before, after)
                more = {"change_fraction": change_fraction(before, after)}
                if is_number(before) and is_number(after):
                    more["change_usd"] = after - before
                yield Change(f"{quarter}.{name}", f"{quarter} {label}", words, before, after, more)
        before, after = was.get("verdict"), now.get("verdict")
        if before != after:
            yield Change(f"{quarter}.verdict", f"{quarter} budget holds", f"{before}{ARROW}{after}", before, after)


def _due(one: Record) -> str:
    price = f", {usd(one['usd'])}" if is_number(one["usd"]) else ""
    return f"{one['n_instances']:g} by {one['order_by']}{' (late)' if one['late'] else ''}{price}"


def _decisions(old: Record, new: Record) -> Iterator[Change]:
    for key, was, now in _pairs(old["decisions"], new["decisions"], "what", "instance", "needed_from", "purchase"):
        what, instance, first, _ = key
        name, label = ".".join(map(str, key)), f"{what} {instance} from {first}"
        if was is None or now is None:
            yield _alone(name, label, f"{_due(was or now or {})},", was, now)
        elif (before := _due(was)) != (after := _due(now)):
            yield Change(name, label, f"{before}{ARROW}{after}", was, now, {"instance": instance})


def _served(one: Record) -> str:
    if one["instance"] is None:
        return str(one.get("verdict", "not served"))
    return f"{one['n_replicas']:g} replicas on {one['n_instances']:.4g} x {one['instance']}"


def _services(old: Record, new: Record) -> Iterator[Change]:
    """At the quantile that the new plan buys."""
    at = new["plan_at"]
    a, b = ([one for one in record["services"] if one["quantile"] == at] for record in (old, new))
    for (name, quarter), was, now in _pairs(a, b, "id", "quarter"):
        key, label = f"{name}.{quarter}", f"{name} in {quarter}"
        if was is None or now is None:
            yield _alone(key, label, f"{_served(was or now or {})},", was, now)
        elif (before := _served(was)) != (after := _served(now)):
            yield Change(key, label, f"{before}{ARROW}{after}", was, now, {"instance": now["instance"]})


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of a document with its path; an entry of a list goes by its id, its quarter or its place."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _flat(one, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for i, one in enumerate(value):
            known = one if isinstance(one, Mapping) else {}
            name = next((known[key] for key in ("id", "from", "type") if isinstance(known.get(key), str)), i + 1)
            yield from _flat(one, f"{path}.{known['id'] if path == 'services' and 'id' in known else name}")
    else:
        yield path, ", ".join(map(str, value)) if isinstance(value, list) else value


def _inputs(old: Record, new: Record) -> Iterator[Change]:
    a, b = dict(_flat(old)), dict(_flat(new))
    for path in (*b, *(one for one in a if one not in b)):
        before, after = a.get(path), b.get(path)
        if path in NO_EFFECT or same(before, after):
            continue
        if path not in a or path not in b:
            yield _alone(path, path, str(after if path in b else before), before, after)
        else:
            yield Change(
                path, path, from_to(before, after), before, after, {"change_fraction": change_fraction(before, after)}
            )


def _prices(old: Record, new: Record) -> Iterator[Change]:
    """Of the instances that both could choose."""
    for instance, classes in new["prices"].items():
        for purchase, after in classes.items():
            before = old["prices"].get(instance, {}).get(purchase)
            if before is not None and not same(before, after):
                words = f"{usd_change(before, after, 2)} an hour{growth(before, after)}"
                more = {"instance": instance, "purchase": purchase, "change_fraction": change_fraction(before, after)}
                yield Change(f"{instance}.{purchase}", f"{instance} {purchase}", words, before, after, more)


def _checks(old: Record, new: Record) -> Iterator[Change]:
    for (name,), was, now in _pairs(old["checks"], new["checks"], "check"):
        if was is not None and now is not None and was["ok"] != now["ok"]:
            words = f"holds{ARROW}no: {'; '.join(now['found'])}" if was["ok"] else f"no{ARROW}holds"
            yield Change(name, name, words, was["ok"], now["ok"])

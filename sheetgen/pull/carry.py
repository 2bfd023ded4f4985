"""From what a workbook says to a question for `build`: options where there is one, `typed` for all else."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sheetgen.catalog.reader import Loc
from sheetgen.errors import ScenarioError, shown
from sheetgen.pull.changes import HEADLINE, Built, Change, first_place, headline, paired, whole
from sheetgen.scenario.inputs import BY_NAME, BY_OPTION, asked_in
from sheetgen.scenario.kinds import name_part, plain
from sheetgen.scenario.override_kinds import TABLES, input_kind
from sheetgen.scenario.overrides import Written
from sheetgen.workbook import Snapshot
from sheetgen.workbook.outline import Place

TARGETS = tuple(one.name for one in asked_in("targets"))
NO_PRICE = "price_usd_per_hour"


@dataclass
class Carried:
    """Options and typed values as plain data, and where each of them stands in the workbook."""

    options: dict[str, Any]
    overrides: dict[str, Any]
    places: dict[Loc, Place] = field(default_factory=dict)  # of typed values
    option_places: dict[str, Place] = field(default_factory=dict)

    def question(self, where: str) -> dict[str, Any]:
        """The options for `ask`; `where` is how messages name the workbook."""

        def at(loc: Loc) -> str:
            while loc and loc not in self.places:
                loc = loc[:-1]
            return f"{where}: {self.places[loc]}" if loc else where

        return {**self.options, "typed": Written(self.overrides, at)} if self.overrides else self.options

    def placed(self, problem: str, where: str) -> str:
        """A problem with an option, and where its cell stands."""
        for option, place in self.option_places.items():
            if problem.startswith((f"{option} ", f"{option[:-1]} ")):
                return f"{where}: {place}: {problem}"
        return problem if problem.startswith(where) else f"{where}: {problem}"


def option_of(name: str) -> str | None:
    """The option that an input belongs to; nothing where it has none."""
    if name == HEADLINE:
        return name
    if input_kind(name) is not None:
        return None
    if name in BY_NAME:
        return BY_NAME[name].asked_as
    for stem, option in (("context_", "contexts"), ("tier_", "tiers"), *((f"{t}_", t) for t in TARGETS)):
        if name.startswith(stem):
            return option
    return None


def carry(before: Carried, built: Built, found: Snapshot, differ: Iterable[Change]) -> Carried:
    """`before`, the options behind `built`, with all that differs from it.

    Raises ScenarioError for an input that was emptied.
    """
    options, overrides = dict(before.options), plain(before.overrides)
    after = Carried(options, overrides, dict(before.places), dict(before.option_places))
    blank: list[str] = []
    for change in differ:
        if change.part == "inputs":
            _input(after, built, found, change, blank)
        elif change.row is None:
            continue  # the reader's own rows, which are taken together
        elif change.name:
            _set(after, (change.part, change.row, change.name), change.new, change.place)
        elif change.part == "instances":  # a row that is gone: it cannot be rented
            _set(after, (change.part, change.row, NO_PRICE), None, None)
        elif change.part != "gpus" or found.catalog_sha256 == built.question.catalog_sha256:
            blank.append(f"{shown(change.row)} is no longer a row of {change.part}. Put it back.")
    if blank:
        raise ScenarioError(*blank)
    if {"tiers", HEADLINE} & after.option_places.keys():
        after.options[HEADLINE] = _option(HEADLINE, built, found, None)
    tier = found.inputs.get("headline_tier")
    if tier is not None and tier not in [found.inputs.get(f"tier_{i}") for i, _ in enumerate(built.question.tiers, 1)]:
        _set(after, ("inputs", "headline_tier"), whole(tier), None)  # the dropdown did not follow its list
    _own_rows(after, built, found)
    return after


def _set(after: Carried, loc: tuple[str, ...], value: Any, place: Place | None) -> None:
    part: dict[str, Any] = after.overrides
    for one in loc[:-1]:
        part = part.setdefault(one, {})
    part[loc[-1]] = plain(value)
    if place is not None:
        after.places[loc] = place


def _input(after: Carried, built: Built, found: Snapshot, change: Change, blank: list[str]) -> None:
    option = option_of(change.name)
    if option is None:
        _set(after, ("inputs", change.name), change.new, change.place)
        return
    if change.new is None and option not in TARGETS:
        blank.append(f"{change.place}: {change.label} (in_{change.name}) is blank. Type a value.")
        return
    after.options[option] = _option(option, built, found, change.new)
    if change.place is not None:
        after.option_places[option] = change.place


def _option(option: str, built: Built, found: Snapshot, value: Any) -> str:
    """The option as text, out of all the inputs that it is made of."""
    question, inputs = built.question, found.inputs
    parts = {w.id: name_part(w.id) for w in question.workloads}
    if option == "contexts":
        return ",".join(f"{w}={_text(inputs[f'context_{part}'])}" for w, part in parts.items())
    if option in TARGETS:
        targets = {w: inputs[f"{option}_{part}"] for w, part in parts.items()}
        return ",".join(f"{w}={'off' if ms is None else _text(ms)}" for w, ms in targets.items())
    if words := BY_OPTION[option].words:
        return dict(enumerate(words)).get(value, _text(value))
    tiers = [_text(inputs[f"tier_{i}"]) for i, _ in enumerate(question.tiers, 1)]
    if option == "tiers":
        return ",".join(tiers)
    if option == HEADLINE:
        workload, tier = headline(built, found)
        return f"{question.workloads[workload].id}:{tiers[tier]}"
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _own_rows(after: Carried, built: Built, found: Snapshot) -> None:
    """All rows of the reader's own, in the order of their sheet."""
    for part in ("instances", "models"):
        table = found.tables[part]
        order, pairs = paired(built, table)
        of_catalog = {pairs[row.name] for row in built.tables[part] if row.key is not None}
        rows: list[dict[str, Any]] = []
        for key in (one for one in order if one not in of_catalog):
            row = {c: v for c, v in table[key].items() if c in TABLES[part]}
            for column in row:
                after.places[f"own_{part}", len(rows), column] = table.place(key, column)
            after.places[f"own_{part}", len(rows)] = first_place(table, key)
            rows.append({c: plain(whole(v)) for c, v in row.items() if v is not None})
        after.overrides.pop(f"own_{part}", None)
        if rows:
            after.overrides[f"own_{part}"] = rows

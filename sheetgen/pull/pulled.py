"""An edited workbook carried back: what it asks, the sheet that this gives, and what differs from it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import Loc
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import is_path
from sheetgen.errors import CatalogError, Problems, ScenarioError, SheetgenError, did_you_mean, shown
from sheetgen.pull.audit import Audit, agree, audit
from sheetgen.pull.changes import HEADLINE, Built, Change, build_anew, changes, first_place, headline, paired, whole
from sheetgen.recommend import Solution
from sheetgen.scenario import parse
from sheetgen.scenario.inputs import BY_NAME, BY_OPTION, asked_in
from sheetgen.scenario.overrides import TABLES, Written, input_kind
from sheetgen.scenario.parse import name_part, plain
from sheetgen.scenario.question import OPTIONS, SHEET_OPTIONS, ask
from sheetgen.sheet.book.change_log import values_as_built
from sheetgen.workbook.package import Place, naming
from sheetgen.workbook.read import Snapshot, Table, read_every_cell, read_workbook

TARGETS = tuple(one.name for one in asked_in("targets"))
NO_PRICE = "price_usd_per_hour"


@dataclass
class Carried:
    """Options and typed values as plain data, and where each of them stands in the workbook."""

    options: dict[str, Any]
    overrides: dict[str, Any]
    places: dict[Loc, Place] = field(default_factory=dict)  # of typed values
    option_places: dict[str, Place] = field(default_factory=dict)

    def question(self) -> dict[str, Any]:
        """The options for `ask`."""

        def at(loc: Loc) -> str:
            while loc and loc not in self.places:
                loc = loc[:-1]
            return f"{self.places[loc]}: " if loc else ""

        return {**self.options, "typed": Written(self.overrides, at)} if self.overrides else self.options

    def type_over(self, loc: tuple[str, ...], value: Any, place: Place | None) -> None:
        """A value in place of that of the catalogs."""
        part = self.overrides
        for one in loc[:-1]:
            part = part.setdefault(one, {})
        part[loc[-1]] = plain(value)
        if place is not None:
            self.places[loc] = place


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
        option = option_of(change.name) if change.part == "inputs" else None
        if option is not None and change.new is None and option not in TARGETS:
            blank.append(f"{change.place}: {change.label} (in_{change.name}) is blank. Type a value.")
        elif option is not None:
            options[option] = _option(option, built, found, change.new)
            if change.place is not None:
                after.option_places[option] = change.place
        elif change.part == "inputs":
            after.type_over(("inputs", change.name), change.new, change.place)
        elif change.row is None:
            continue  # the reader's own rows, which are taken together
        elif change.name:
            after.type_over((change.part, change.row, change.name), change.new, change.place)
        elif change.part == "instances":  # a row that is gone: it cannot be rented
            after.type_over((change.part, change.row, NO_PRICE), None, None)
        elif change.part != "gpus" or found.catalog_sha256 == built.question.catalog_sha256:
            blank.append(f"{shown(change.row)} is no longer a row of {change.part}. Put it back.")
    if blank:
        raise ScenarioError(*blank)
    if {"tiers", HEADLINE} & after.option_places.keys():
        options[HEADLINE] = _option(HEADLINE, built, found, None)
    tier = found.inputs.get("headline_tier")
    if tier is not None and tier not in [found.inputs.get(f"tier_{i}") for i, _ in enumerate(built.question.tiers, 1)]:
        after.type_over(("inputs", "headline_tier"), whole(tier), None)  # the dropdown did not follow its list
    for part in ("instances", "models"):
        _own_rows(after, part, built, found.tables[part])
    return after


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


def _own_rows(after: Carried, part: str, built: Built, table: Table) -> None:
    """All rows of the reader's own, in the order of their sheet."""
    order, pairs = paired(built, table)
    of_catalog = {pairs[name] for name, row in built.tables[part].items() if row.key is not None}
    rows: list[dict[str, Any]] = []
    for key in (one for one in order if one not in of_catalog):
        row = {c: v for c, v in table[key].items() if c in TABLES[part]}
        after.places |= {(f"own_{part}", len(rows), column): table.place(key, column) for column in row}
        after.places[f"own_{part}", len(rows)] = first_place(table, key)
        rows.append({c: plain(whole(v)) for c, v in row.items() if v is not None})
    after.overrides.pop(f"own_{part}", None)
    if rows:
        after.overrides[f"own_{part}"] = rows


ROUNDS = 3  # an option may move what an input holds by default, which then is carried by itself
NARROWED_BY = ("providers", "gpus", "region")


@dataclass(frozen=True)
class Pulled:
    """What was read, what of it differs from the sheet as built, and the sheet that it gives.

    `audit` is nothing where today's catalog makes a sheet of another form: its formulas cannot be compared.
    """

    found: Snapshot
    before: Built
    changed: tuple[Change, ...]
    fixed: tuple[Change, ...]  # figures that nobody is meant to change; they are not carried
    options: Mapping[str, Any]
    overrides: Mapping[str, Any]
    after: Built
    audit: Audit | None
    notes: tuple[str, ...]

    @property
    def other_results(self) -> tuple[tuple[str, Any, Any], ...]:
        """Named results that the workbook shows otherwise than Python: name, its value, Python's."""
        both = ((name, self.found.results.get(name), now) for name, now in self.after.results.items())
        compared = (one for one in both if one[0] in self.found.results)
        return tuple(one for one in compared if not agree(one[2], one[1]))

    @property
    def solved(self) -> Solution:
        return self.after.solved

    @property
    def other_catalog(self) -> bool:
        """Whether the workbook was built with another catalog than today's."""
        return self.found.catalog_sha256 != self.before.question.catalog_sha256


def pull(path: Path | str, catalog: Catalog, models: str | None = None) -> Pulled:
    """Read, compare and solve a workbook. `models` are named anew where it was built from files.

    Raises WorkbookError, ScenarioError or CatalogError, each problem with the file and the cell.
    """
    found = read_workbook(path)
    start = _start(found, catalog, models, shown(path, 200))
    with naming(path, ScenarioError):
        before = _build(catalog, start, start)
        if models is not None:
            _check_models(before, found)
        lacks = [n for n in before.inputs if n.startswith(("context_", "tier_")) and n not in found.inputs]
        if lacks:
            raise ScenarioError(f"has no in_{lacks[0]}, as the sheet that it was built with has. Build it anew.")
        same_catalog = found.catalog_sha256 == before.question.catalog_sha256
        if not same_catalog and before.tables["instances"].keys() != found.tables["instances"].keys():
            start = _with_instances_of(found, start, catalog)
            before = _build(catalog, start, start)
        differ = list(changes(before, found))
        # A workbook of another catalog was built with values that nobody has any more.
        baseline = values_as_built(before.book) if same_catalog else None
        carried, after, rest = start, before, [one for one in differ if not one.is_fixed]
        for _ in range(ROUNDS):
            if not rest:
                break
            carried = carry(carried, after, found, rest)
            after = _build(catalog, carried, start, baseline)
            rest = [one for one in changes(after, found) if not one.is_own and not one.is_fixed]
    # The rows of a sheet of today are those that the workbook was built with, or its cells are not compared.
    areas = {name: table.areas.values() for name, table in found.tables.items()}
    same_form = all(max(area.n_rows for area in areas[name]) == n for name, n in before.n_rows.items())
    compared = None
    if same_catalog or same_form:
        compared = audit(before.book, after.book, read_every_cell(path), same_catalog=same_catalog)
    changed, fixed = (tuple(one for one in differ if one.is_fixed is fixed) for fixed in (False, True))
    # What a scenario keeps: not a dropdown that did not follow its list, which another sheet need not repeat.
    inputs = {name: value for name, value in carried.overrides.get("inputs", {}).items() if name != "headline_tier"}
    kept = {name: part for name, part in {**carried.overrides, "inputs": inputs}.items() if part}
    notes = (*found.notes, *_notes(before, after, found, rest))
    return Pulled(found, before, changed, fixed, carried.options, kept, after, compared, notes)


def _start(found: Snapshot, catalog: Catalog, models: str | None, where: str) -> Carried:
    """The options that the workbook was built with, as far as they are any."""
    known = {*OPTIONS, *SHEET_OPTIONS}
    plain = {n: v for n, v in found.options.items() if isinstance(v, (str, int, float)) and not isinstance(v, bool)}
    options: dict[str, Any] = {name: str(value) for name, value in plain.items() if name in known}
    if models is not None:
        options["models"] = models
    elif files := [one for one in parse.words(options.get("models")) if is_path(one)]:
        cure = "Name its models with --models, in the same order."
        raise ScenarioError(f"{where}: was built from the file {shown(files[0])}. {cure}")
    if "instances" in options:  # some may have left the catalog since; their rows are carried as the reader's own
        options["instances"] = ",".join(one for one in parse.words(options["instances"]) if _known(catalog, one))
    works = {w.id: f"context_{name_part(w.id)}" for w in catalog.workloads()}
    if "workloads" not in options:  # today's catalog may have others
        options["workloads"] = ",".join(w for w, name in works.items() if name in found.inputs)
    tiers = [found.inputs[name] for name in map("tier_{}".format, range(1, 5)) if name in found.inputs]
    if "tiers" not in options and len(tiers) != len(catalog.tiers()):
        options["tiers"] = ",".join(f"{n:g}" for n in tiers if isinstance(n, (int, float)))
    overrides = found.options.get("typed")
    return Carried(options, dict(overrides) if isinstance(overrides, Mapping) else {})


def _check_models(before: Built, found: Snapshot) -> None:
    """Models that were named anew must be those of the workbook, or its figures would stand under other names."""
    named = [m.model.id for m in before.question.models]
    held = list(found.tables["models"])[: len(named)]
    if named != held:
        raise ScenarioError(
            f"is of {shown(', '.join(held))}, and models names {shown(', '.join(named))}. "
            "Leave --models out: it is for a workbook whose models are files."
        )


def _known(catalog: Catalog, instance: str) -> bool:
    try:
        catalog.instance(instance)
    except CatalogError:
        return False
    return True


def _build(catalog: Catalog, carried: Carried, start: Carried, baseline: Mapping[str, Any] | None = None) -> Built:
    """The sheet of what was carried. A problem that one option has alone is raised with the place of its cell."""
    try:
        return build_anew(catalog, carried.question(), baseline)
    except SheetgenError as error:
        places: dict[str, Place] = {}
        for option, place in carried.option_places.items():
            alone = Problems()
            alone.attempt(ask, catalog, {**start.options, option: carried.options[option]})
            places = dict.fromkeys(alone, place) | places
        placed = (f"{places[one]}: {one}" if one in places else one for one in error.problems)
        raise ScenarioError(*placed) from error


def _with_instances_of(found: Snapshot, start: Carried, catalog: Catalog) -> Carried:
    """Today's catalog chooses other instances: ask for those of the workbook, as far as it still has them."""
    known = {row.id for row in catalog.instances()}
    named = dict.fromkeys(key.split(" x")[0] for key in found.tables["instances"])
    options = {name: value for name, value in start.options.items() if name not in NARROWED_BY}
    return replace(start, options={**options, "instances": ",".join(one for one in named if one in known)})


def _notes(before: Built, after: Built, found: Snapshot, rest: Sequence[Change]) -> Iterator[str]:
    """Remarks for the reader: what was read, but has no effect or not the whole."""
    gpus = [g.id for g in after.question.gpus]
    table = found.tables["instances"]
    counts = {
        name: row.cells.get("gpu_count") for name, row in before.tables["instances"].items() if row.key is not None
    }
    for key, row in table.items():
        gpu, count = row.get("instance_gpu"), row.get("gpu_count")
        if gpu is not None and str(gpu).lower() not in (one.lower() for one in gpus):
            near = did_you_mean(str(gpu), gpus)
            place = table.place(key, "instance_gpu")
            yield f"{place}: {shown(gpu)} is no GPU of this sheet: {shown(key)} cannot be rented.{near}"
        built = counts.get(key)
        if isinstance(count, (int, float)) and isinstance(built, (int, float)) and count > built:
            yield (
                f"{table.place(key, 'gpu_count')}: {shown(key)} has {count:g} GPUs; it was built with {built:g}, and "
                "the workbook does not try what only more can hold. A sheet built anew does."
            )
    for key in (one for one in found.tables["gpus"] if one not in after.tables["gpus"]):
        yield f"{shown(key)} on GPUs is the GPU of no instance of this sheet today, and was left out."
    for one in rest:
        yield f"{one.place or one.part}: {one.label} could not be carried: it is {shown(one.new)}."

"""An edited workbook carried back: what it asks, the sheet that this gives, and what differs from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.names import is_path
from sheetgen.errors import CatalogError, ScenarioError, SheetgenError, did_you_mean, shown
from sheetgen.pull.audit import Audit, agree, audit
from sheetgen.pull.carry import Carried, carry
from sheetgen.pull.changes import Built, Change, build_anew, changes
from sheetgen.recommend import Solution
from sheetgen.scenario import parse
from sheetgen.scenario.kinds import name_part
from sheetgen.scenario.question import OPTIONS, SHEET_OPTIONS
from sheetgen.sheet.book.change_log import values_as_built
from sheetgen.workbook import Snapshot
from sheetgen.workbook.read import read_every_cell, read_workbook

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
    where = shown(path, 200)
    found = read_workbook(path)
    start = _start(found, catalog, models, where)
    before = _build(catalog, start, where)
    if models is not None:
        _check_models(before, found, where)
    _check_loads(before, found, where)
    same_catalog = found.catalog_sha256 == before.question.catalog_sha256
    if not same_catalog and {row.name for row in before.tables["instances"]} != set(found.tables["instances"]):
        start = _with_instances_of(found, start, catalog)
        before = _build(catalog, start, where)
    differ = list(changes(before, found))
    # A workbook of another catalog was built with values that nobody has any more.
    baseline = values_as_built(before.book) if same_catalog else None
    carried, after, rest = start, before, [one for one in differ if not one.is_fixed]
    for _ in range(ROUNDS):
        if not rest:
            break
        try:
            carried = carry(carried, after, found, rest)
        except SheetgenError as error:
            raise ScenarioError(*(f"{where}: {problem}" for problem in error.problems)) from error
        after = _build(catalog, carried, where, baseline)
        rest = [one for one in changes(after, found) if not one.is_own and not one.is_fixed]
    compared = None
    if same_catalog or _same_form(before, found):
        compared = audit(before.book, after.book, read_every_cell(path), same_catalog=same_catalog)
    changed, fixed = (tuple(one for one in differ if one.is_fixed is fixed) for fixed in (False, True))
    return Pulled(
        found, before, changed, fixed, carried.options, _kept(carried.overrides), after, compared,
        (*found.notes, *_notes(before, after, found, rest)),
    )  # fmt: skip


def _start(found: Snapshot, catalog: Catalog, models: str | None, where: str) -> Carried:
    """The options that the workbook was built with, as far as they are any."""
    known = {*OPTIONS, *SHEET_OPTIONS}
    plain = {n: v for n, v in found.options.items() if isinstance(v, (str, int, float)) and not isinstance(v, bool)}
    options: dict[str, Any] = {name: str(value) for name, value in plain.items() if name in known}
    if models is not None:
        options["models"] = models
    elif files := [one for one in parse.words(options.get("models")) if is_path(one)]:
        raise ScenarioError(
            f"{where}: was built from the file {shown(files[0])}. Name its models with --models, in the same order."
        )
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


def _kept(overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a scenario keeps: not a dropdown that did not follow its list, which another sheet need not repeat."""
    inputs = {name: value for name, value in overrides.get("inputs", {}).items() if name != "headline_tier"}
    return {name: part for name, part in {**overrides, "inputs": inputs}.items() if part}


def _check_models(before: Built, found: Snapshot, where: str) -> None:
    """Models that were named anew must be those of the workbook, or its figures would stand under other names."""
    named = [m.model.id for m in before.question.models]
    held = list(found.tables["models"])[: len(named)]
    if named != held:
        raise ScenarioError(
            f"{where}: is of {shown(', '.join(held))}, and models names {shown(', '.join(named))}. "
            "Leave --models out: it is for a workbook whose models are files."
        )


def _check_loads(before: Built, found: Snapshot, where: str) -> None:
    """Refuse a workbook whose workloads or tiers are not those of the sheet built anew."""
    lacks = [name for name in before.inputs if name.startswith(("context_", "tier_")) and name not in found.inputs]
    if lacks:
        raise ScenarioError(f"{where}: has no in_{lacks[0]}, as the sheet that it was built with has. Build it anew.")


def _known(catalog: Catalog, instance: str) -> bool:
    try:
        catalog.instance(instance)
    except CatalogError:
        return False
    return True


def _build(catalog: Catalog, carried: Carried, where: str, baseline: Mapping[str, Any] | None = None) -> Built:
    try:
        return build_anew(catalog, carried.question(where), baseline)
    except SheetgenError as error:
        raise ScenarioError(*(carried.placed(problem, where) for problem in error.problems)) from error


def _with_instances_of(found: Snapshot, start: Carried, catalog: Catalog) -> Carried:
    """Today's catalog chooses other instances: ask for those of the workbook, as far as it still has them."""
    known = {row.id for row in catalog.instances()}
    named = dict.fromkeys(key.split(" x")[0] for key in found.tables["instances"])
    options = {name: value for name, value in start.options.items() if name not in NARROWED_BY}
    return replace(start, options={**options, "instances": ",".join(one for one in named if one in known)})


def _same_form(before: Built, found: Snapshot) -> bool:
    """Whether the sheet built today has the rows that the workbook was built with."""
    areas = {name: table.areas.values() for name, table in found.tables.items()}
    return all(max(a.bottom - a.top + 1 for a in areas[name]) == n for name, n in before.n_rows.items())


def _notes(before: Built, after: Built, found: Snapshot, rest: Sequence[Change]) -> Iterator[str]:
    """Remarks for the reader: what was read, but has no effect or not the whole."""
    gpus = [g.id for g in after.question.gpus]
    table = found.tables["instances"]
    counts = {row.name: row.cells.get("gpu_count") for row in before.tables["instances"] if row.key is not None}
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
    for key in (one for one in found.tables["gpus"] if one not in {row.name for row in after.tables["gpus"]}):
        yield f"{shown(key)} on GPUs is the GPU of no instance of this sheet today, and was left out."
    for one in rest:
        yield f"{one.place or one.part}: {one.label} could not be carried: it is {shown(one.new)}."

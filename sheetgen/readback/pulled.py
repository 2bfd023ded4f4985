"""An edited workbook carried back: the question it asks, the sheet that this gives, and every changed cell."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from sheetgen.answer.answer_record import Record
from sheetgen.answer.recording import record_of
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.book import build_book
from sheetgen.book.carried import KEY_COLUMNS, formula_digests
from sheetgen.book.change_log import values_as_built
from sheetgen.book.decision_choices import AS_TYPED, decision, headline_choices
from sheetgen.book.sheets import AND_AUTO, NONE, PRECISIONS, Book, Range, Ref
from sheetgen.catalog.base import Loc
from sheetgen.catalog.load import Catalog
from sheetgen.errors import Problems, ScenarioError, SheetgenError, did_you_mean, shown
from sheetgen.importer.model_names import is_path
from sheetgen.question import discounts, parse
from sheetgen.question.inputs import ASKS, BY_NAME, BY_OPTION, BY_WORKLOAD, asked_in
from sheetgen.question.overrides import TABLES, Written, class_columns, input_kind
from sheetgen.question.parse import Raw, name_part, plain
from sheetgen.question.sheet_question import ASKED, MEASURED, OF_ASKED, OPTIONS, SHEET_OPTIONS, Question, ask
from sheetgen.question.stated_load import RATE, STATED, stated_kind
from sheetgen.readback.audit import Audit, agree, audit
from sheetgen.readback.file_cells import Grid, is_number
from sheetgen.readback.package import Place, naming
from sheetgen.readback.read_book import (
    OF_DECISION,
    Snapshot,
    Table,
    input_that_follows,
    read_every_cell,
    read_workbook,
    still_holds,
    unlike,
)
from sheetgen.report.build_page import build_page
from sheetgen.sizing import targets
from sheetgen.units import DTYPE_ALIASES, DTYPES, PLAIN_LAYOUTS, PURCHASES, number_text

T = TypeVar("T", Ref, Range)
HEADLINE = "headline"
MOST_LISTED = 12  # entries of a list that a message names
NOT_COMPARED = ("headline_workload", "headline_tier")  # read together, as a load


class BuiltRow(NamedTuple):
    """A filled row of a table: the key under which `typed` has it, None for one of the reader's own, and its cells."""

    key: str | None
    cells: Mapping[str, Raw]


@dataclass(frozen=True)
class Built:
    """A sheet as `build` makes it from some options."""

    solved: Solution
    record: Record
    book: Book
    inputs: Mapping[str, Raw]
    fixed: frozenset[str]  # inputs that no reader is meant to change
    worked_out: frozenset[str]  # inputs whose cells hold a formula until somebody types over it
    tables: Mapping[str, Mapping[str, BuiltRow]]  # rows by what they are called
    n_rows: Mapping[str, int]  # of each table, the blank ones too
    results: Mapping[str, Raw]

    @property
    def question(self) -> Question:
        return self.solved.question


def _build_anew(
    catalog: Catalog, options: Mapping[str, Raw], baseline: Mapping[str, Raw] | None, currency: str
) -> Built:
    """The sheet from these options, which marks its differences from `baseline` and shows its amounts in a currency.

    Raises ScenarioError or CatalogError where the question cannot be put.
    """
    solved = solve(ask(catalog, options))
    no_levers = ((),) * len(solved.question.loads)  # they stand on sheets of their own, and decide nothing
    record = record_of(solved, no_levers)
    page = build_page(record, solved.question)
    book = build_book(solved, record, page, no_levers, decision(solved), baseline, currency)
    inputs, results = _by_name(book, "in_", Ref), _by_name(book, "rec_", Ref)
    of_sheet = {sheet.name: sheet.cells for sheet in book.sheets}
    cells = {name: of_sheet[ref.sheet].get((ref.row, ref.column)) for name, ref in inputs.items()}
    yellow = {name: cell for name, cell in cells.items() if cell is not None and cell.role == "input"}
    columns = {name: _by_name(book, f"cat_{name}_", Range) for name in KEY_COLUMNS}
    keys = {"instances": [c.instance for c in solved.question.rows], **row_keys(solved.question)}
    return Built(
        solved,
        record,
        book,
        {n: r.value for n, r in inputs.items()},
        frozenset(inputs.keys() - yellow.keys()),
        frozenset(name for name, cell in yellow.items() if cell.formula is not None),
        {name: _rows(name, columns[name], keys[name]) for name in KEY_COLUMNS},
        {name: len(columns[name][KEY_COLUMNS[name]].refs) for name in KEY_COLUMNS},
        {n: r.value for n, r in results.items()},
    )


def row_keys(question: Question) -> dict[str, list[str]]:
    """By table, the keys under which the overrides have its rows, in the order of the sheet."""
    models, gpus = [m.model.id for m in question.models], [g.id for g in question.gpus]
    return {"models": models, "gpus": gpus, "precisions": list(DTYPES)}


def _by_name(book: Book, prefix: str, kind: type[T]) -> dict[str, T]:
    """The cells or ranges of the book's names with a prefix, by the rest of the name."""
    return {n.removeprefix(prefix): r for n, r in book.names.items() if n.startswith(prefix) and isinstance(r, kind)}


def _rows(table: str, columns: Mapping[str, Range], keys: Sequence[str]) -> dict[str, BuiltRow]:
    filled: dict[str, BuiltRow] = {}
    for i, ref in enumerate(columns[KEY_COLUMNS[table]].refs):
        value = ref.value
        if value is None and table == "models":
            value = columns["model"].refs[i].value  # a reader's own row has only a name
        if value not in (None, NONE):
            cells = {column: refs.refs[i].value for column, refs in columns.items() if column != KEY_COLUMNS[table]}
            filled[unlike(str(value), filled)] = BuiltRow(keys[i] if i < len(keys) else None, cells)
    return filled


@dataclass(frozen=True)
class Change:
    """One cell that does not hold what it was built with.

    `part` is inputs, or a table; `row` its row as `typed` has it, and `name` an input or a column. A row that is gone
    has the name "" and no place; one that is the reader's own has the row None and all its cells as `new`.
    """

    part: str
    row: str | None
    name: str
    old: Raw
    new: Raw
    label: str
    unit: str = ""
    number_format: str = ""
    place: Place | None = None
    is_fixed: bool = False  # a figure that nobody is meant to change


def _changes(built: Built, snapshot: Snapshot) -> Iterator[Change]:
    """Every difference, in the order of the sheets, those of fixed figures included."""
    inputs, passed_over = snapshot.inputs, (*NOT_COMPARED, *_uncounted_statements(snapshot))
    for name, old in built.inputs.items():
        if name in inputs and name not in passed_over and not still_holds(old, inputs[name]):
            cell, new = snapshot.cells[f"in_{name}"], _whole(inputs[name])
            yield Change(
                "inputs",
                None,
                name,
                old,
                new,
                cell.label or name,
                cell.unit,
                cell.number_format,
                cell.place,
                name in built.fixed,
            )
    workload, tier = built.question.headline
    was, now = (workload, built.question.numbers[tier]), _headline(built, snapshot)
    if was != now:
        names = [w.name for w in built.question.workloads]
        old, new = (f"{names[workload]}, {RATE if tier is None else tier}" for workload, tier in (was, now))
        cell = snapshot.cells[f"in_{NOT_COMPARED[was[0] == now[0]]}"]
        yield Change("inputs", None, HEADLINE, old, new, "Headline", place=cell.place)
    for name in TABLES:
        yield from _table(built, snapshot.tables[name])


def _uncounted_statements(snapshot: Snapshot) -> tuple[str, ...]:
    """The statements of the load that do not count, as another one does: people come first, then statements by the
    day."""
    return tuple(name for name in STATED if name != stated_kind(snapshot.inputs))


def _not_listed(before: Built, after: Built, snapshot: Snapshot) -> Iterator[str]:
    """A problem for each dropdown that was set to a value that is not on its list. A dropdown that nobody touched may
    have lost its entry to an edit elsewhere: a list follows edits, a dropdown does not."""
    sheets = {sheet.name: sheet for sheet in after.book.sheets}
    for name, value in snapshot.inputs.items():
        ref = after.book.names.get(f"in_{name}")
        if not isinstance(ref, Ref) or still_holds(before.inputs.get(name), value):
            continue
        check = sheets[ref.sheet].cells[ref.row, ref.column].validation
        listed = after.book.names.get(check.source or "") if check is not None else None
        if not isinstance(listed, Range) or (check and check.source in (PRECISIONS, AND_AUTO)):  # of many spellings
            continue
        entries = [str(_whole(ref.value)) for ref in listed.refs if ref.value not in (None, NONE)]
        if str(_whole(value)).lower() in map(str.lower, entries):
            continue
        cell, n_more = snapshot.cells[f"in_{name}"], len(entries) - MOST_LISTED
        holds = "blank" if value is None else repr(shown(value))
        allowed = ", ".join(entries[:MOST_LISTED]) + (f" and {n_more} more in its list" if n_more > 0 else "")
        near = "" if value is None else did_you_mean(str(value), entries)
        yield f"{cell.place}: {cell.label or name} is {holds}. Allowed: {allowed}.{near}"


def _headline(built: Built, snapshot: Snapshot) -> tuple[int, Raw]:
    """The position of the headline's workload, as built where the cell names none; and its requests at once as typed,
    None for the rate."""
    workload, tier = (snapshot.inputs.get(name) for name in NOT_COMPARED)
    name, names = str(workload).lower(), [w.name.lower() for w in built.question.workloads]
    is_rate = built.question.rate is not None and str(tier).lower() == RATE
    position = names.index(name) if name in names else built.question.headline[0]
    return position, None if is_rate else _whole(tier or 0)


def _table(built: Built, table: Table) -> Iterator[Change]:
    order, pairs = _paired(built, table)
    for called, row in built.tables[table.name].items():
        key = pairs[called]
        if key is not None:
            yield from _row(built, table, called, row, key)
        else:
            yield Change(table.name, row.key, "", row.cells if row.key is None else called, None, called)
    for key in (row_key for row_key in order if row_key not in pairs.values()):
        yield Change(table.name, None, "", None, _filled(table[key]), key, place=_first_place(table, key))


def _filled(cells: Mapping[str, Raw]) -> dict[str, Raw]:
    return {column: _whole(value) for column, value in cells.items() if value is not None}


def _paired(built: Built, table: Table) -> tuple[list[str], dict[str, str | None]]:
    """The rows in the order of the sheet; and for each row's name as built its name there, None where the row is gone.

    A row whose name was typed over still stands between the same neighbours: where as many rows of unknown names
    stand between two known ones as are missing there, they are those. All others are the reader's own.
    """
    in_sheet, names = sorted(table, key=lambda key: table.positions[key]), built.tables[table.name]
    pairs: dict[str, str | None] = {name: name if name in table else None for name in names}
    places = {name: i for i, name in enumerate(in_sheet)}
    gap: list[str] = []
    after = -1
    for name in (*names, None):
        if name is not None and pairs[name] is None:
            gap.append(name)
            continue
        until = len(in_sheet) if name is None else places[name]
        between = [row_name for row_name in in_sheet[after + 1 : until] if row_name not in pairs]
        if name is None:  # the reader's own rows stand below
            between = between[: len(gap)]
        if len(between) == len(gap):
            pairs.update(zip(gap, between, strict=True))
        gap, after = [], until
    return in_sheet, pairs


def _first_place(table: Table, key: str) -> Place:
    return min((table.place(key, column) for column in table.areas), key=lambda place: place.column)


def _row(built: Built, table: Table, called: str, row: BuiltRow, key_now: str) -> Iterator[Change]:
    """Changes of the cells of one row; a reader's own row is one change."""
    columns = [column for column in row.cells if column in TABLES[table.name]]
    pairs = {c: (row.cells[c], _canonical(built, table.name, c, table[key_now].get(c))) for c in columns}
    differ = {column: pair for column, pair in pairs.items() if not still_holds(*pair)}
    title = table.names.get(key_now) or key_now
    if row.key is None and differ:
        place = table.place(key_now, next(iter(differ)))
        yield Change(table.name, None, "", row.cells, _filled(table[key_now]), title, place=place)
    elif row.key is not None:
        for column, (old, new) in differ.items():
            label = f"{called if table.name == 'instances' else title}, {table.heads.get(column) or column}"
            yield Change(
                table.name,
                row.key,
                column,
                old,
                _whole(new),
                label,
                "",
                table.formats.get(column, ""),
                table.place(key_now, column),
            )


def _canonical(built: Built, table: str, column: str, value: Raw) -> Raw:
    """A name as the catalogs spell it: a spreadsheet's look-up ignores capital letters."""
    if not isinstance(value, str):
        return value
    if TABLES[table][column].what == "dtype":
        return DTYPE_ALIASES.get(value.strip().lower(), value.strip().lower())
    if column == "instance_gpu":
        return next((g.id for g in built.question.gpus if g.id.lower() == value.lower()), value)
    return value


def _whole(value: Raw) -> Raw:
    """A number without a fraction as an int: spreadsheets keep floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


TARGETS = tuple(asked.name for asked in asked_in("targets"))


@dataclass
class Carried:
    """Options and typed values as plain data, and the place of each of them in the workbook."""

    options: dict[str, Raw]
    overrides: dict[str, Raw]
    places: dict[Loc, Place] = field(default_factory=dict)  # of typed values
    option_places: dict[str, Place] = field(default_factory=dict)

    def question(self) -> dict[str, Raw]:
        """The options for `ask`."""

        def at(loc: Loc) -> str:
            while loc and loc not in self.places:
                loc = loc[:-1]
            return f"{self.places[loc]}: " if loc else ""

        return {**self.options, "typed": Written(self.overrides, at)} if self.overrides else self.options

    def type_over(self, loc: tuple[str, ...], value: Raw, place: Place | None) -> None:
        """Type a value over that of the catalogs."""
        part = self.overrides
        for key in loc[:-1]:
            part = part.setdefault(key, {})
        part[loc[-1]] = plain(value)
        if place is not None:
            self.places[loc] = place


def option_of(name: str) -> str | None:
    """The option that an input belongs to; None where it has none."""
    if name == HEADLINE:
        return name
    if input_kind(name) is not None:
        return None
    if name in BY_NAME:
        return BY_NAME[name].asked_as
    if name == f"context_{ASKED}":
        return "context_tokens"
    stems = {discounts.CELL: discounts.OPTION, "context_": "contexts", "tier_": "tiers"}
    stems |= {f"{option}_": option for option in BY_WORKLOAD}
    return next((option for stem, option in stems.items() if name.startswith(stem)), None)


def _carry(before: Carried, built: Built, snapshot: Snapshot, differ: Iterable[Change], follows: Set[str]) -> Carried:
    """`before`, the options behind `built`, changed by everything that differs from it.

    follows: the inputs that nobody states. Raises ScenarioError for an input that was emptied.
    """
    options, overrides = dict(before.options), plain(before.overrides)
    after = Carried(options, overrides, dict(before.places), dict(before.option_places))
    blank: list[str] = []
    for change in differ:
        option = option_of(change.name) if change.part == "inputs" else None
        may_be_blank = option in TARGETS or change.name.startswith(discounts.CELL)  # no target, no discount of its own
        if option == HEADLINE and snapshot.inputs.get("headline_tier") is None:
            cell = snapshot.cells["in_headline_tier"]
            blank.append(f"{cell.place}: {cell.label} is empty. Type a whole number from 1.")
        elif option is not None and change.new is None and not may_be_blank:
            blank.append(f"{change.place}: {change.label} (in_{change.name}) is blank. Type a value.")
        elif change.name == "currency" and change.new != "USD" and snapshot.inputs.get("fx_rate") == 1:
            where = snapshot.cells["in_fx_rate"].place
            blank.append(
                f"{change.place}: {change.label} is {shown(change.new)}, and its rate in {where} is still 1. "
                f"Type there how many {shown(change.new)} one US dollar is."
            )
        elif option is not None:
            options[option] = _option(option, built, snapshot, change.new, follows)
            if not options[option]:  # no target is stated: each follows from its context
                del options[option]
            if change.place is not None:
                after.option_places[option] = change.place
        elif change.part == "inputs":
            after.type_over(("inputs", change.name), change.new, change.place)
        elif change.row is None:
            continue  # the reader's own rows, which are taken together
        elif change.name:
            after.type_over((change.part, change.row, change.name), change.new, change.place)
        elif change.part == "instances":  # a deleted row cannot be rented
            for purchase in PURCHASES:
                after.type_over((change.part, change.row, class_columns(purchase)["price"]), None, None)
        elif change.part != "gpus" or snapshot.catalog_sha256 == built.question.catalog_sha256:
            blank.append(f"{shown(change.row)} is no longer a row of {change.part}. Put it back.")
    if blank:
        raise ScenarioError(*blank)
    if "requests_per_second" in snapshot.inputs:  # by the second or by the day, whichever counts
        for name in _uncounted_statements(snapshot):
            options.pop(name, None)
        name = stated_kind(snapshot.inputs)
        options[name] = _option(name, built, snapshot, snapshot.inputs[name], follows)
    if options.get("together") == "yes":  # the total is what is asked for, whatever it was built with
        options.pop("ask", None)
    if {"tiers", HEADLINE} & after.option_places.keys():
        options[HEADLINE] = _option(HEADLINE, built, snapshot, None, follows)
    for part in ("instances", "models"):
        _own_rows(after, part, built, snapshot.tables[part])
    return after


def _inputs_that_follow(before: Built, snapshot: Snapshot) -> frozenset[str]:
    """The targets whose cells still hold the formula by which they follow their workload's lengths, and the utilization
    by which it follows the rate: the cell has the formula's value or, in a workbook that was not recalculated, the
    value it was built with."""
    inputs, reference = snapshot.inputs, before.question.reference
    assumed = {name: reference.assumption(name) for name in targets.ASSUMED}
    parts = {workload.name: name_part(workload.id) for workload in before.question.workloads}
    names: set[str] = set()
    of_workloads = itertools.product(TARGETS, before.question.workloads)
    follow = [f"{option}_{name_part(workload.id)}" for option, workload in of_workloads]
    of_load = ("utilization",) if before.question.is_use_of_load else ()
    for name in (*follow, *(f"{OF_DECISION}{option}" for option in TARGETS), *of_load):
        cell = snapshot.cells.get(f"in_{name}")
        if cell is None or not cell.is_formula:
            continue
        held = input_that_follows(name, {**inputs, **assumed}, parts), before.inputs[name]
        if any(still_holds(value, inputs[name]) for value in held):
            names.add(name)
    return frozenset(names)


def _option(option: str, built: Built, snapshot: Snapshot, value: Raw, follows: Set[str]) -> str:
    """The option as text, from all the inputs that it consists of."""
    question, inputs = built.question, snapshot.inputs
    parts = {w.id: name_part(w.id) for w in question.workloads}
    if option == "contexts":
        return ",".join(f"{w}={_whole(inputs[f'context_{part}'])}" for w, part in parts.items())
    if option == "context_tokens":
        return str(_whole(value))
    if option in BY_WORKLOAD:
        names = {w: f"{option}_{part}" for w, part in parts.items()}
        stated = {w: inputs[name] for w, name in names.items() if name not in follows}
        return ",".join(f"{w}={'off' if ms is None else _whole(ms)}" for w, ms in stated.items())
    if option == discounts.OPTION:
        providers = dict.fromkeys(row.provider for row in question.rows)
        cells = {key: (name, inputs.get(name)) for name, key in discounts.cell_names(providers)}
        typed = {key: value for key, (_, value) in cells.items() if value is not None}
        not_here = {
            key: discount for key, discount in question.discounts.items() if cells.get(key, ("",))[0] not in inputs
        }
        return discounts.option_text(inputs.get(option, question.settings.discount_fraction), {**typed, **not_here})
    if words := BY_OPTION[option].words:
        return dict(enumerate(words)).get(value, str(_whole(value)))
    tiers = [_whole(inputs[f"tier_{i}"]) for i, _ in enumerate(question.tiers, 1)]
    if option == "tiers":
        return ",".join(str(tier) for tier in tiers if is_number(tier))
    if option == HEADLINE:
        workload, number = _headline(built, snapshot)
        workload_id = question.workloads[workload].id
        return workload_id if number is None else f"{workload_id}:{number}"
    return str(_whole(value))


def _own_rows(after: Carried, part: str, built: Built, table: Table) -> None:
    """All of the reader's own rows, in the order of their sheet."""
    order, pairs = _paired(built, table)
    of_catalog = {pairs[name] for name, row in built.tables[part].items() if row.key is not None}
    rows: list[dict[str, Raw]] = []
    for key in (row_key for row_key in order if row_key not in of_catalog):
        row = {c: v for c, v in table[key].items() if c in TABLES[part]}
        after.places |= {(f"own_{part}", len(rows), column): table.place(key, column) for column in row}
        after.places[f"own_{part}", len(rows)] = _first_place(table, key)
        rows.append({c: plain(_whole(v)) for c, v in row.items() if v is not None})
    after.overrides.pop(f"own_{part}", None)
    if rows:
        after.overrides[f"own_{part}"] = rows


ROUNDS = 3  # an option may move the default of an input, which is then carried by itself
NARROWED_BY = ("providers", "vendors", "gpus", "region")


@dataclass(frozen=True)
class Pulled:
    """A workbook as it was read, its differences from the sheet as built, and the sheet that it gives.

    `audit` is nothing where the formulas were not compared: today's catalog may make a sheet of another form, and
    another build of sheetgen other formulas. n_lost: of such a workbook, the formulas that stand there no more.
    """

    snapshot: Snapshot
    before: Built
    changed: tuple[Change, ...]
    fixed: tuple[Change, ...]  # figures that nobody is meant to change; they are not carried
    options: Mapping[str, Raw]
    overrides: Mapping[str, Raw]
    after: Built
    notes: tuple[str, ...]
    audit: Audit | None = None
    is_of_another_build: bool = False
    n_lost: int = 0

    @property
    def asked_apart(self) -> tuple[str, ...]:
        """The yellow cells by which Decision asks another question than the page, such as `Decision!B7, People 400`."""
        return tuple(_asked_apart(self.after, self.overrides, self.snapshot))

    @property
    def other_results(self) -> tuple[tuple[str, Raw, Raw], ...]:
        """Named results for which the workbook and Python differ: name, the workbook's value, Python's."""
        both = ((name, self.snapshot.results.get(name), now) for name, now in self.after.results.items())
        compared = (result for result in both if result[0] in self.snapshot.results)
        return tuple(result for result in compared if not agree(result[2], result[1]))

    @property
    def solved(self) -> Solution:
        return self.after.solved

    @property
    def other_catalog(self) -> bool:
        """True where the workbook was built with another catalog than today's."""
        return self.snapshot.catalog_sha256 != self.before.question.catalog_sha256


def pull(path: Path | str, catalog: Catalog, models: str | None = None) -> Pulled:
    """Read, compare, solve and audit a workbook. `models` are named anew where it was built from files.

    Raises WorkbookError, ScenarioError or CatalogError, each problem with the file and the cell.
    """
    pulled = ask_anew(read_workbook(path), catalog, models)
    same_catalog, tables = not pulled.other_catalog, pulled.snapshot.tables
    if same_catalog and _is_of_another_build(pulled):
        return replace(pulled, is_of_another_build=True, n_lost=_n_lost(pulled.snapshot, read_every_cell(path)))
    # Cells are compared only where a sheet of today has the rows that the workbook was built with.
    areas = {name: table.areas.values() for name, table in tables.items()}
    same_form = all(max(area.n_rows for area in areas[name]) == n for name, n in pulled.before.n_rows.items())
    if not (same_catalog or same_form):
        return pulled
    return replace(pulled, audit=audit(pulled.before.book, pulled.after.book, read_every_cell(path), same_catalog))


def _is_of_another_build(pulled: Pulled) -> bool:
    """True where sheets that both have are written with other formulas than the workbook was built with."""
    built, now = pulled.snapshot.record.formulas, formula_digests(pulled.before.book.sheets)
    return any(built[name] != now[name] for name in built.keys() & now.keys())


def _n_lost(snapshot: Snapshot, every: Mapping[str, Grid]) -> int:
    """How many formulas of a workbook stand there no more, but for those of inputs that follow others."""
    held = {name: sum(cell.formula is not None for cell in grid.values()) for name, grid in every.items()}
    for name, cell in snapshot.cells.items():
        if name.startswith("in_") and cell.is_formula and cell.place is not None:
            held[cell.place.sheet] -= 1
    return sum(max(0, n - held.get(name, 0)) for name, n in snapshot.record.n_formulas.items())


def ask_anew(snapshot: Snapshot, catalog: Catalog, models: str | None = None) -> Pulled:
    """The question of a workbook now, and the sheet that this gives; the workbook's formulas are not read. Raises as
    `pull` does."""
    start = _options_as_built(snapshot, catalog, models, shown(snapshot.path, 200))
    with naming(snapshot.path, ScenarioError):
        before = _build(catalog, start, start)
        named = [m.model.id for m in before.question.models]
        held = list(snapshot.tables["models"])[: len(named)]
        if models is not None and named != held:  # its figures would stand under other names
            raise ScenarioError(
                f"is of {shown(', '.join(held))}, and models names {shown(', '.join(named))}. "
                "Leave --models out: it is for a workbook whose models are files."
            )
        lacks = [n for n in before.inputs if n.startswith(("context_", "tier_")) and n not in snapshot.inputs]
        if lacks:
            raise ScenarioError(f"has no in_{lacks[0]}, as the sheet that it was built with has. Build it anew.")
        same_catalog = snapshot.catalog_sha256 == before.question.catalog_sha256
        if not same_catalog and before.tables["instances"].keys() != snapshot.tables["instances"].keys():
            start = _with_instances_of(snapshot, start, catalog)
            before = _build(catalog, start, start)
        follows = _inputs_that_follow(before, snapshot)
        stated = {f"{name}_{name_part(w)}" for name in TARGETS for w in before.question.stated[name]}
        differ = [change for change in _changes(before, snapshot) if change.name not in follows - stated]

        def still(built: Built) -> Set[str]:
            """The targets that follow in the workbook, and, those on Decision, in what is built of it too."""
            return follows - ({f"{OF_DECISION}{name}" for name in TARGETS} - built.worked_out)

        # A workbook of another catalog was built with values that are gone.
        baseline = values_as_built(before.book) if same_catalog else None
        carried, after, rest = start, before, [change for change in differ if not change.is_fixed]
        for _ in range(ROUNDS):
            if not rest:
                break
            carried = _carry(carried, after, snapshot, rest, follows)
            after = _build(catalog, carried, start, baseline)
            left = (c for c in _changes(after, snapshot) if not c.is_fixed and c.name not in still(after))
            rest = [change for change in left if change.part == "inputs" or change.row]
        if problems := list(_not_listed(before, after, snapshot)):
            raise ScenarioError(*problems)
    changed, fixed = (tuple(change for change in differ if change.is_fixed is fixed) for fixed in (False, True))
    kept = {name: part for name, part in carried.overrides.items() if part}
    notes = (*snapshot.notes, *_notes(before, after, snapshot, rest))
    apart = list(_asked_apart(after, kept, snapshot))
    if apart and ("ask" in carried.options or any(change.name.startswith(OF_DECISION) for change in changed)):
        notes += (f"Decision asks a question of its own ({'; '.join(apart)}): page and PDF answer that of Inputs.",)
    return Pulled(snapshot, before, changed, fixed, carried.options, kept, after, notes)


def _options_as_built(snapshot: Snapshot, catalog: Catalog, models: str | None, where: str) -> Carried:
    """The options with which the workbook was built, as far as they are still options."""
    options: dict[str, Raw] = {
        name: str(value)
        for name, value in snapshot.options.items()
        if name in (*OPTIONS, *SHEET_OPTIONS, *OF_ASKED) and (isinstance(value, str) or is_number(value))
    }
    if points := _points_as_built(snapshot.options.get(MEASURED)):
        options[MEASURED] = points
    if models is not None:
        options["models"] = models
    elif files := [name for name in parse.words(options.get("models")) if is_path(name)]:
        cure = "Name its models with --models, in the same order."
        raise ScenarioError(f"{where}: was built from the file {shown(files[0])}. {cure}")
    if "instances" in options:  # some may have left the catalog since; their rows are carried as the reader's own
        named = parse.words(options["instances"])
        options["instances"] = ",".join(name for name in named if Problems().attempt(catalog.instance, name))
    inputs, workload_ids = snapshot.record.answer.inputs, [workload.id for workload in catalog.workloads()]
    if "workloads" not in options and "context_tokens" not in options:  # today's catalog may have others
        options["workloads"] = ",".join(workload.id for workload in inputs.workloads if workload.id in workload_ids)
    if "tiers" not in options and len(inputs.tiers) != len(catalog.tiers()):
        options["tiers"] = ",".join(map(str, inputs.tiers))
    overrides = snapshot.options.get("typed")
    return Carried(options, dict(overrides) if isinstance(overrides, Mapping) else {})


def _points_as_built(written: Raw) -> list[str]:
    """The measured points of a workbook, each written out; no file that somebody wrote in their place is read."""
    points = [point for point in written if isinstance(point, str)] if isinstance(written, list) else []
    return [point for point in points if "," in point and "=" in point.partition(",")[0]]


def _build(catalog: Catalog, carried: Carried, start: Carried, baseline: Mapping[str, Raw] | None = None) -> Built:
    """The sheet from what was carried. A problem with one option alone is raised with the place of its cell."""
    try:
        currency = BY_NAME["currency"].parse(start.options.get("currency"))  # in which the workbook was built
        return _build_anew(catalog, carried.question(), baseline, str(currency))
    except SheetgenError as error:
        places: dict[str, Place] = {}
        for option, place in carried.option_places.items():
            alone = Problems()
            alone.attempt(ask, catalog, {**start.options, option: carried.options[option]})
            places = dict.fromkeys(alone, place) | places
        placed = (f"{places[problem]}: {problem}" if problem in places else problem for problem in error.problems)
        raise ScenarioError(*placed) from error


def _with_instances_of(snapshot: Snapshot, start: Carried, catalog: Catalog) -> Carried:
    """Ask for the workbook's instances, as far as it still has them, where today's catalog would choose others."""
    instance_ids = {row.id for row in catalog.instances()}
    named = dict.fromkeys(key.split(" x")[0] for key in snapshot.tables["instances"])
    options = {name: value for name, value in start.options.items() if name not in NARROWED_BY}
    return replace(start, options={**options, "instances": ",".join(name for name in named if name in instance_ids)})


def _asked_apart(after: Built, overrides: Mapping[str, Raw], snapshot: Snapshot) -> Iterator[str]:
    """The yellow cells that count by which Decision asks another question than the page, with what they hold."""
    usual, typed = headline_choices(after.solved), overrides.get("inputs", {})
    chosen = {name: after.inputs.get(f"{OF_DECISION}{name}") for name in usual}
    unused = {"concurrent_requests" if chosen["users"] else ASKS}
    if chosen["workload"] != AS_TYPED:
        unused |= {ASKS, "context_tokens", "answer_tokens"}
    for name, value in chosen.items():
        if f"{OF_DECISION}{name}" in typed and name not in unused and not still_holds(usual[name], value):
            cell = snapshot.cells[f"in_{OF_DECISION}{name}"]
            yield f"{cell.place}, {cell.label} {number_text(value) if is_number(value) else shown(value, 80)}"


def _notes(before: Built, after: Built, snapshot: Snapshot, rest: Sequence[Change]) -> Iterator[str]:
    """Remarks for the reader: what was read but has no effect, or only a partial one."""
    gpus, gpu_names = [g.id for g in after.question.gpus], {gpu_name.lower() for gpu_name in snapshot.tables["gpus"]}
    table = snapshot.tables["instances"]
    counts = {n: row.cells.get("gpu_count") for n, row in before.tables["instances"].items() if row.key is not None}
    for key, row in table.items():
        gpu, count = row.get("instance_gpu"), row.get("gpu_count")
        if gpu is not None and str(gpu).lower() not in gpu_names:
            is_known = str(gpu).lower() in (gpu_name.lower() for gpu_name in gpus)
            near = " A sheet built anew rents it." if is_known else did_you_mean(str(gpu), gpus)
            place = table.place(key, "instance_gpu")
            yield f"{place}: {shown(gpu)} is no GPU of this sheet: {shown(key)} cannot be rented.{near}"
        built = counts.get(key)
        if is_number(count) and is_number(built) and count > built:
            yield (
                f"{table.place(key, 'gpu_count')}: {shown(key)} has {count:g} GPUs; it was built with {built:g}, and "
                "the workbook does not try what only more can hold. A sheet built anew does."
            )
    if len(after.question.layouts) > len(PLAIN_LAYOUTS):
        linked, now_linked = (
            {gpu.id for gpu in sheet.question.gpus if sheet.question.overrides.shares_experts(gpu)}
            for sheet in (before, after)
        )
        for key in (gpu_id for gpu_id in snapshot.tables["gpus"] if gpu_id in now_linked - linked):
            place = snapshot.tables["gpus"].place(key, "interconnect_bytes_per_second")
            yield (
                f"{place}: so {shown(key)} may share experts over data-parallel ranks, which the workbook does not try "
                "on it. A sheet built anew does."
            )
    for key in (gpu_id for gpu_id in snapshot.tables["gpus"] if gpu_id not in after.tables["gpus"]):
        yield f"{shown(key)} on GPUs is the GPU of no instance of this sheet today, and was left out."
    for change in rest:
        yield f"{change.place or change.part}: {change.label} could not be carried: it is {shown(change.new)}."

"""What was typed over a sheet beside its options: constants, facts of models, GPUs and instances, rows of one's own.

A workbook's reader types it into yellow cells, `pull` carries it back, and a scenario file keeps it under `typed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sheetgen.catalog.base import Loc
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.scenario.kinds import Kind, plain
from sheetgen.scenario.override_kinds import TABLES, input_kind

Row = Mapping[str, Any]
MOST_OWN_ROWS = 20
NAMED_BY = {"own_instances": ("provider", "type"), "own_models": ("model",)}
OWN = tuple(NAMED_BY)


@dataclass(frozen=True)
class Overrides:
    """Values in place of those that options and catalogs give; empty where nothing was typed.

    Inputs by their name, tables by row and column: models, GPUs and instances by catalog id, precisions by name.
    An instance without a price above 0, or of a GPU that the sheet does not have, cannot be rented.
    """

    inputs: Row = field(default_factory=dict)
    models: Mapping[str, Row] = field(default_factory=dict)
    gpus: Mapping[str, Row] = field(default_factory=dict)
    instances: Mapping[str, Row] = field(default_factory=dict)
    precisions: Mapping[str, Row] = field(default_factory=dict)
    own_instances: tuple[Row, ...] = ()
    own_models: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))

    def value(self, table: str, key: str, column: str, otherwise: Any) -> Any:
        """What was typed into a table's cell (None: it was emptied), or `otherwise`."""
        row: Row = getattr(self, table).get(key, {})
        return row.get(column, otherwise)

    def input(self, name: str, otherwise: Any) -> Any:
        """What was typed into an input's cell, or `otherwise`."""
        return self.inputs.get(name, otherwise)

    def spelled(self, gpus: Iterable[str], instances: Iterable[str]) -> Overrides:
        """The same with GPUs and providers spelled as the sheet's first row of them: capital letters tell no name from
        another in a spreadsheet."""
        known = {gpu.lower(): gpu for gpu in gpus}
        providers: dict[str, str] = {}

        def row(one: Row, instance: str = "/") -> Row:
            provider = one.get("provider") or instance.partition("/")[0]
            spelled = providers.setdefault(provider.lower(), provider)
            named: dict[str, Any] = {"provider": spelled} if "provider" in one else {}
            if gpu := one.get("instance_gpu"):
                named["instance_gpu"] = known.get(gpu.lower(), gpu)
            return {**one, **named}

        rows = {name: row(self.instances.get(name, {}), name) for name in instances}
        overrides = {**self.instances, **{name: one for name, one in rows.items() if one}}
        return replace(self, instances=overrides, own_instances=tuple(row(one) for one in self.own_instances))

    def data(self) -> dict[str, Any]:
        """The same as a scenario file and JSON have it: what is empty is left out, dates are text."""
        return {one.name: plain(getattr(self, one.name)) for one in fields(self) if getattr(self, one.name)}


@dataclass(frozen=True)
class Written:
    """A `typed` as it stands in a file, and where each part of it stands, for messages."""

    data: Any
    at: Callable[[Loc], str]


def _nowhere(loc: Loc) -> str:
    return "typed" + "".join(f" {shown(part)}" for part in loc)


def read_overrides(given: Any) -> tuple[Overrides, Callable[[Loc], str]]:
    """`typed` of a scenario, checked but for the keys of its rows, and how to say where a part of it stands.

    Raises ScenarioError with every problem: an unknown table, column or input, and a value out of range.
    """
    if isinstance(given, Overrides) or given is None:
        return given or Overrides(), _nowhere
    written = given if isinstance(given, Written) else Written(given, _nowhere)
    problems: list[str] = []
    found = dict(_parts(written, problems))
    if problems:
        raise ScenarioError(*problems)
    return Overrides(**found), written.at


def _parts(written: Written, problems: list[str]) -> Iterator[tuple[str, Any]]:
    names = [one.name for one in fields(Overrides)]
    for part, data in _items(written, (), written.data, problems, "the parts " + ", ".join(names)):
        if part not in names:
            problems.append(f"{written.at((part,))}: unknown part {shown(part)}.{did_you_mean(part, names)}")
        elif part == "inputs":
            yield part, dict(_inputs(written, data, problems))
        elif part in OWN:
            yield part, tuple(_own(written, part, data, problems))
        else:
            rows = _items(written, (part,), data, problems, "rows")
            yield part, {str(key): dict(_row(written, (part, key), row, problems)) for key, row in rows}


def _items(written: Written, loc: Loc, data: Any, problems: list[str], what: str) -> Iterable[tuple[str, Any]]:
    """The items of a mapping; a problem where it is none."""
    if isinstance(data, Mapping):
        return data.items()
    if data is not None:
        problems.append(f"{written.at(loc)}: {shown(loc[-1] if loc else 'typed')} must hold {what} by name.")
    return ()


def _inputs(written: Written, data: Any, problems: list[str]) -> Iterator[tuple[str, Any]]:
    for name, value in _items(written, ("inputs",), data, problems, "inputs"):
        kind = input_kind(str(name))
        if kind is None:
            problems.append(f"{written.at(('inputs', name))}: unknown input {shown(name)}.")
        else:
            yield from _value(written, ("inputs", name), kind, value, problems)


def _row(written: Written, loc: Loc, data: Any, problems: list[str]) -> Iterator[tuple[str, Any]]:
    known = TABLES[str(loc[0]).removeprefix("own_")]
    for column, value in _items(written, loc, data, problems, "columns"):
        kind = known.get(str(column))
        if kind is None:
            at = written.at((*loc, column))
            problems.append(f"{at}: unknown column {shown(column)} of {loc[0]}.{did_you_mean(str(column), known)}")
        else:
            yield from _value(written, (*loc, column), kind, value, problems)


def _own(written: Written, part: str, data: Any, problems: list[str]) -> Iterator[Row]:
    rows = data if isinstance(data, (list, tuple)) else []
    if rows is not data or len(rows) > MOST_OWN_ROWS:
        problems.append(f"{written.at((part,))}: {part} must be a list of at most {MOST_OWN_ROWS} rows.")
        return
    for i, row in enumerate(rows):
        found = dict(_row(written, (part, i), row, problems))
        lacks = [name for name in NAMED_BY[part] if not found.get(name)]
        if lacks:
            at = written.at((part, i))
            problems.append(f"{at}: {part} has a row without {' and '.join(lacks)}. Name it, or take it out.")
        yield found


def _value(written: Written, loc: Loc, kind: Kind, value: Any, problems: list[str]) -> Iterator[tuple[str, Any]]:
    name = str(loc[-1])
    try:
        yield name, kind.read(value, shown(name) if len(loc) < 3 else f"{shown(name)} of {shown(loc[-2])}")
    except ScenarioError as error:
        problems += [f"{written.at(loc)}: {problem}" for problem in error.problems]


def unknown_keys(overrides: Overrides, known: Mapping[str, Iterable[str]], at: Callable[[Loc], str]) -> Iterator[str]:
    """A line for each row and input that the sheet does not have; `known` has them by part."""
    for part, allowed in known.items():
        names = tuple(allowed)
        for key in getattr(overrides, part):
            if key not in names:
                what = "an input" if part == "inputs" else f"a row of {part}"
                yield f"{at((part, key))}: {shown(key)} is not {what} on this sheet.{did_you_mean(key, names)}"

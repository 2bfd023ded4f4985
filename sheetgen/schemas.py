"""JSON Schemas of what commands print with --json, made from the types of their records.

A plan's record is written key by key: templates/plan.schema.json is kept by hand, and a test holds plans to it. Keys
may be added without a new schema_version, so that no schema forbids further ones.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import GenerateJsonSchema

from sheetgen.answer.answer_record import CellRecord, Json, Record, printed
from sheetgen.api import FRACTIONS, RESOLVED, RESULTS, TEXTS
from sheetgen.diagnose.diagnosis import DiagnosisRecord
from sheetgen.explain import quantities
from sheetgen.question.deployment import DEFAULTS, NAMES
from sheetgen.question.inputs import BY_OPTION
from sheetgen.readback.compare import SECTIONS, ChangeRecord, ComparedRecord
from sheetgen.readback.month_bridge import Bridge
from sheetgen.writers.formats import templates_folder

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PLAN = "plan.schema.json"  # of the templates
_STARTED = {"launch": list[str], "flags": dict[str, Any], "stack": dict[str, Any]}  # what `launch` fills in on request
_AS_NAMED = ConfigDict(protected_namespaces=())  # `model_id` is a key like any other


@cache
def _model_of(part: type) -> type[BaseModel]:
    """The printed keys of a dataclass of the record, as a model; a flat part's keys are among them, and may be null."""
    return create_model(part.__name__, __config__=_AS_NAMED, __doc__=part.__doc__, **_keys_of(part))


def _keys_of(part: type) -> dict[str, Any]:
    """The type of each printed key of a dataclass."""
    hints, keys = typing.get_type_hints(part), dict[str, Any]()
    flat = dict(printed(part))
    for entry in dataclasses.fields(part):
        if not entry.metadata.get("printed", True):
            continue
        if (inner := flat[entry.name]) is None:
            keys[entry.name] = (_as_printed(hints[entry.name]), ...)
        elif inner is dict:
            keys |= {name: (hint | None, None) for name, hint in _STARTED.items()}
        else:
            keys |= {name: (hint | None, ...) for name, (hint, _) in _keys_of(inner).items()}
    return keys


def _as_printed(hint: Any) -> Any:
    """The type of a value in JSON: a model for a dataclass, a list for a tuple; NaN is null."""
    arguments = typing.get_args(hint)
    if hint is float:
        return float | None
    if dataclasses.is_dataclass(hint):
        return _model_of(hint)  # type: ignore[arg-type]
    if typing.is_typeddict(hint) or hasattr(hint, "_fields"):  # also a named tuple is printed by its names
        may_lack = getattr(hint, "__optional_keys__", ())
        named: dict[str, Any] = {
            name: (_as_printed(inner), None if name in may_lack else ...)
            for name, inner in typing.get_type_hints(hint).items()
        }
        return create_model(str(hint.__name__), __doc__=str(hint.__doc__), **named)
    match typing.get_origin(hint):
        case types.UnionType | typing.Union:
            return typing.Union[tuple(map(_as_printed, arguments))]  # noqa: UP007  # of types known when it runs
        case origin if origin is tuple:
            return list[_as_printed(arguments[0])]  # type: ignore[misc]
        case origin if origin in (dict, Mapping):
            return dict[str, _as_printed(arguments[1])]  # type: ignore[misc]
    return hint


def _size() -> type[BaseModel]:
    """The record of `size`: every input with the default that was used, and every result."""
    about = {name: summary for name, _, summary in quantities()}
    keys: dict[str, Any] = {}
    for name in (*DEFAULTS, *RESOLVED, *RESULTS):
        option = BY_OPTION[name].option if name in BY_OPTION else None
        words = option.help if option else about.get(name)
        keys[name] = (_type_of(name), Field(description=words or None))
    return create_model("Size", __config__=_AS_NAMED, __doc__="One deployment, part by part.", **keys)


def _type_of(name: str) -> Any:
    """The type of an input or a result of `size`, as its record has it."""
    if name == "fits":
        return bool | None
    if name in NAMES or name in TEXTS:
        return str | None
    may_be_fraction = name in FRACTIONS or name.endswith("_fraction") or name == "concurrent_requests"  # of a rate
    return (float if may_be_fraction else int) | None


def _recommend() -> type[BaseModel]:
    """The record of `recommend`: that of a sheet of one cell, whose keys stand at the top as well."""
    keys = {**_keys_of(CellRecord), **_keys_of(Record)}
    return create_model("Recommend", __config__=_AS_NAMED, __doc__="The cheapest machines for one load.", **keys)


def _diff() -> type[BaseModel]:
    """The record of `diff`."""
    changes = _as_printed(tuple[ChangeRecord, ...])
    keys: dict[str, Any] = {
        "schema_version": (int, ...),
        "a": (compared := _as_printed(ComparedRecord), ...),
        "b": (compared, ...),
        "equal": (bool, ...),
        **{name: (changes, Field(description=title)) for name, title in SECTIONS.items()},
        "bridge": (_as_printed(tuple[Bridge, ...]), ...),
        "quality": (list[str], ...),
        "not_compared": (list[str], ...),
        "notes": (list[str], ...),
    }
    return create_model("Diff", __doc__="What changed from sheet A to sheet B.", **keys)


class _Untitled(GenerateJsonSchema):
    """Without a title for each key, which would be its name in capitals."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema(model: type[BaseModel]) -> Json:
    return {"$schema": DIALECT, **model.model_json_schema(schema_generator=_Untitled)}


SCHEMAS: Mapping[str, Callable[[], Json]] = {
    "size": lambda: _schema(_size()),
    "recommend": lambda: _schema(_recommend()),
    "build": lambda: _schema(_model_of(Record)),
    "plan": lambda: json.loads((templates_folder() / PLAN).read_text(encoding="utf-8")),
    "diagnose": lambda: _schema(_as_printed(DiagnosisRecord)),
    "diff": lambda: _schema(_diff()),
}

"""Hold a document against its schema; every fault becomes one line with file, line and a way out."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sheetgen.catalog.base import Entry
from sheetgen.catalog.reader import Document, Loc
from sheetgen.errors import CatalogError, did_you_mean, shown

E = TypeVar("E", bound=Entry)

_KINDS = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of fields",
    "model_type": "must be a mapping of fields",
    "model_attributes_type": "must be a mapping of fields",
    "union_tag_not_found": "needs a kind",
    "too_short": "must not be empty",
}


def validate(document: Document, schema: type[E]) -> E:
    """`document` as `schema`, or a CatalogError with all its problems."""
    try:
        entry = schema.model_validate(document.data)
    except ValidationError as error:
        raise CatalogError(*_lines(document, schema, error)) from None
    found = [f"{document.at(loc)}: {what}." for loc, what in entry.problems()]
    if found:
        raise CatalogError(*found)
    return entry


def _lines(document: Document, schema: type[Entry], error: ValidationError) -> list[str]:
    out: list[tuple[int, str]] = []
    for fault in error.errors(include_url=False, include_context=True):
        loc = _in_data(document.data, fault["loc"])
        at = document.at(loc)
        line = int(at.rsplit(":", 1)[1])
        message = f"{at}: {_sentence(schema, fault, loc)}"
        if (line, message) not in out:
            out.append((line, message))
    return [message for _, message in sorted(out, key=lambda pair: pair[0])]


def _sentence(schema: type[Entry], fault: Any, loc: Loc) -> str:
    kind = fault["type"]
    name = shown(loc[-1] if loc and isinstance(loc[-1], str) else _item(loc))
    if kind == "extra_forbidden":
        return f"unknown field {name}.{did_you_mean(str(loc[-1]), allowed_fields(schema, fault['loc'][:-1]))}"
    if kind == "missing":
        return f"field {shown(fault['loc'][-1])} is missing."
    value = shown(fault["input"])
    if kind == "value_error":
        return f"{name} {value!r} {str(fault['ctx']['error']).rstrip('.')}."
    if kind in ("literal_error", "union_tag_invalid"):
        allowed = fault["ctx"].get("expected") or fault["ctx"]["expected_tags"]
        given = fault["ctx"].get("tag", fault["input"])
        options = [word.strip(" '") for word in str(allowed).replace(" or ", ", ").split(",")]
        near = did_you_mean(str(given), options)
        where = "kind" if kind == "union_tag_invalid" else name
        return f"{where} is {shown(given)!r}, but must be one of {', '.join(options)}.{near}"
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"):
        return f"{name} is {value}, but {fault['msg'].lower().removeprefix('input ')}."
    if kind in _KINDS:
        return f"{name} is {value!r}, but {_KINDS[kind]}."
    return f"{name} is {value!r}: {fault['msg'].lower()}."


def _item(loc: Loc) -> str:
    return f"item {int(loc[-1]) + 1} of {loc[-2]}" if len(loc) > 1 else "the file"


def _in_data(data: Any, loc: tuple[str | int, ...]) -> Loc:
    """pydantic's place without what is not in the file: names of union members, fields that are missing."""
    out: list[str | int] = []
    for part in loc:
        in_list = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if in_list or (isinstance(data, dict) and part in data):
            data = data[part]
            out.append(part)
    return tuple(out)


def allowed_fields(schema: Any, loc: tuple[str | int, ...]) -> list[str]:
    """Names that may stand at `loc` of a schema: for `Did you mean ...?`."""
    found: set[str] = set()
    for member in _members(schema):
        if isinstance(member, type) and issubclass(member, BaseModel):
            if not loc:
                found.update(member.model_fields)
            elif loc[0] in member.model_fields:
                found.update(allowed_fields(member.model_fields[str(loc[0])].annotation, loc[1:]))
            elif _has_kind(member, loc[0]):
                found.update(allowed_fields(member, loc[1:]))
        elif get_origin(member) in (tuple, list) and loc:
            found.update(allowed_fields(get_args(member)[0], loc[1:]))
    return sorted(found)


def _has_kind(member: type[BaseModel], tag: str | int) -> bool:
    kind = member.model_fields.get("kind")
    return kind is not None and get_origin(kind.annotation) is Literal and tag in get_args(kind.annotation)


def _members(schema: Any) -> Iterator[Any]:
    origin = get_origin(schema)
    if origin is Annotated:
        yield from _members(get_args(schema)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(schema):
            yield from _members(member)
    else:
        yield schema

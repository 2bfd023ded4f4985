"""What all catalog entries have in common: strict, frozen, text that is safe on a page, faults with a way out."""

from __future__ import annotations

import datetime
import re
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sheetgen.catalog.reader import Document, Loc
from sheetgen.errors import CatalogError, did_you_mean, shown
from sheetgen.units import DTYPE_ALIASES, DTYPES

T = TypeVar("T")

_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_DATE = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?")
_LINK = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|\b(javascript|vbscript|data):(?=\S)", re.IGNORECASE)


def _text(value: str) -> str:
    """Text for a page: no spreadsheet formula, no link but to the web."""
    if not value.strip():
        raise ValueError("is empty")
    if value.startswith(("=", "+", "-", "@", "{", "\t", "|")):
        raise ValueError("starts with a character that a spreadsheet reads as a formula (= + - @ { |)")
    for match in _LINK.finditer(value):
        if (match.group(1) or match.group(2)).lower() not in ("http", "https"):
            raise ValueError("holds a link that is neither http nor https")
    return value


def _label(value: str) -> str:
    if "\n" in _text(value) or "<" in value or ">" in value:
        raise ValueError("holds a line break or one of < >, which a name may not")
    if len(value) > 120:
        raise ValueError(f"has {len(value)} characters; a name may have 120")
    return value


def _id(value: str) -> str:
    if not _ID.fullmatch(value) or len(value) > 100 or ".." in value:
        raise ValueError("is no id: lower case letters, digits, dot, dash and underscore")
    return value


def _date(value: str) -> str:
    if not _DATE.fullmatch(value):
        raise ValueError("is no date: write YYYY, YYYY-MM or YYYY-MM-DD")
    year, *rest = (int(part) for part in value.split("-"))
    try:
        datetime.date(year, *[*rest, 1, 1][:2])
    except ValueError:
        raise ValueError("is no day of the calendar") from None
    if not 2000 <= year <= 2100:
        raise ValueError("is not between 2000 and 2100")
    return value


def _dtype(value: str) -> str:
    name = DTYPE_ALIASES.get(value, value)
    if name not in DTYPES:
        raise ValueError(f"is not one of {', '.join(DTYPES)}.{did_you_mean(value, DTYPES)}".rstrip("."))
    return name


Text = Annotated[str, AfterValidator(_text)]
Label = Annotated[str, AfterValidator(_label)]
Id = Annotated[str, AfterValidator(_id)]
Date = Annotated[str, AfterValidator(_date)]
DtypeName = Annotated[str, AfterValidator(_dtype)]
Count = Annotated[int, Field(gt=0, le=10**18)]
CountOrZero = Annotated[int, Field(ge=0, le=10**18)]
Many = Annotated[tuple[T, ...], Field(strict=False)]  # a YAML list, kept as a tuple


class Entry(BaseModel):
    """A part of a catalog file. Nothing is converted, nothing unknown passes, nothing changes later."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)
    id_field: ClassVar[str] = "id"  # the field that says the file's name

    def problems(self) -> Iterator[tuple[Loc, str]]:
        """What is wrong although every field by itself is right: where, and one sentence."""
        yield from ()


E = TypeVar("E", bound=Entry)


def twice(keys: Iterable[Any], place: Callable[[int], Loc], called: str) -> Iterator[tuple[Loc, str]]:
    """A problem for every key that stands in the list before; `called` says what it is, with {} for the key."""
    seen: set[Any] = set()
    for i, key in enumerate(keys):
        if key in seen:
            yield place(i), f"{called.format(key)} is given twice. Keep one"
        seen.add(key)


_KINDS = {
    "int_type": "must be a whole number", "int_from_float": "must be a whole number", "float_type": "must be a number",
    "string_type": "must be text", "bool_type": "must be true or false", "tuple_type": "must be a list",
    "list_type": "must be a list", "dict_type": "must be a mapping of fields",
    "model_type": "must be a mapping of fields", "model_attributes_type": "must be a mapping of fields",
    "union_tag_not_found": "needs a kind", "too_short": "must not be empty",
}  # fmt: skip


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

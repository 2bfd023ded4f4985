"""The strict YAML loader of all catalog files, with the line of every field, and the base class of their schemas.

PyYAML splits the text into events; the values are built here, so that nothing is guessed: `no`, `12:30`,
`1_000` and `2026-11-20` stay text, `8e9` is a number, `010` is ten. Duplicate keys, anchors and aliases, tags,
control characters, very long strings, deep and large files are refused with file and line.
Entries are strict and frozen, their text is safe on a page, and every error message says what to do.
"""

from __future__ import annotations

import datetime
import functools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn, TypeAlias, TypeVar, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sheetgen.errors import CatalogError, did_you_mean, shown, shown_key
from sheetgen.input_files import read_bounded
from sheetgen.units import DTYPE_ALIASES, DTYPES

MAX_FILE_BYTES = 1_000_000
MAX_STRING = 2_000
MAX_DEPTH = 20
MOST_FIELDS = 24  # that a message names

Loc = tuple[str | int, ...]  # ("attention", 0, "n_kv_heads")
Problem = tuple[Loc, str]  # the field, and one sentence; those of `Entry.problems` have no full stop

RawValue: TypeAlias = Any  # a value of YAML or JSON: dict, list, str, int, float, bool or None
RawMapping: TypeAlias = Mapping[str, Any]
RawRecord: TypeAlias = dict[str, Any]
_Event: TypeAlias = Any  # an event of PyYAML's parser: all have a mark, though its type stubs give none to some
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/()+-]*")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # Unicode categories that do not show on a page


@dataclass(frozen=True)
class Document:
    """One file as plain data, and the line of every field."""

    where: str
    data: RawValue
    lines: dict[Loc, int] = field(repr=False)

    def at(self, loc: Loc) -> str:
        """`file:line` of a field, or of the nearest enclosing field that the file has.

        Without line numbers, as for an imported config, the file alone.
        """
        return f"{self.where}:{self.line(loc)}" if self.lines else self.where

    def line(self, loc: Loc) -> int:
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc, 1)


def with_home(name: str) -> Path:
    """The path of a name that may begin with ~; unchanged where that user has no home."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def is_file(name: str) -> bool:
    try:
        return with_home(name).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def read_document(
    path: Path, where: str | None = None, repeated: list[Problem] | None = None, pipes: bool = False
) -> Document:
    """The file at `path` as plain data; messages call it `where`. With `pipes` it may be a pipe.

    Raises CatalogError at the first duplicate key, or appends all of them to `repeated` where that is given.
    """
    name = shown(where if where is not None else path, 300)
    try:
        raw = read_bounded(path, MAX_FILE_BYTES, pipes=pipes)
    except ValueError as error:
        raise CatalogError(f"{name}: {error}.") from error
    return read_text(decoded(raw, name), name, repeated)


def decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CatalogError(f"{name}:{line}: is not UTF-8 text. Save it as UTF-8.") from error


def read_text(text: str, where: str, repeated: list[Problem] | None = None) -> Document:
    """The same as `read_document` for text that has been read already."""
    builder = _Builder(where, repeated)
    try:
        data = builder.document(_LOADER(text))
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1 if isinstance(error.position, int) else 1
        raise CatalogError(f"{where}:{line}: holds a control character. Take it out.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = mark.line + 1 if mark is not None else 1
        problem = getattr(error, "problem", None) or error
        raise CatalogError(f"{where}:{line}: is not valid YAML ({shown(problem, 100)}).") from error
    return Document(where, data, builder.lines)


def plain_value(text: str) -> RawValue:
    """The value of an unquoted scalar by YAML 1.2's core schema, less its octal, hex, inf and nan."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) >= 40:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) < float("inf") else text
    return text


def scalar(value: object, plain: re.Pattern[str] = _PLAIN) -> str:
    """YAML text that reads back as this value; text that matches `plain` needs no quotes."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    if plain.fullmatch(text) and isinstance(plain_value(text), str) and text == text.strip():
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def _line(event: _Event) -> int:
    return event.start_mark.line + 1  # type: ignore[no-any-return]


class _Builder:
    """Builds plain data from parser events, and records the line of each field."""

    def __init__(self, where: str, repeated: list[Problem] | None) -> None:
        self.where = where
        self.repeated = repeated
        self.lines: dict[Loc, int] = {(): 1}

    def document(self, loader: Any) -> RawValue:
        data = None
        n_documents = 0
        self.next: Callable[[], _Event] = loader.get_event
        while (event := self.next()) is not None:
            if isinstance(event, yaml.DocumentStartEvent):
                n_documents += 1
                if n_documents > 1:
                    self.refuse(event, "starts a second document (---). One file holds one entry")
            elif not isinstance(event, (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent)):
                data = self.node(event, ())
        return data

    def refuse(self, event: _Event, problem: str) -> NoReturn:
        raise CatalogError(f"{self.where}:{_line(event)}: {problem}.")

    def node(self, event: _Event, loc: Loc) -> RawValue:
        kind = type(event)
        if kind is yaml.AliasEvent or event.anchor:
            self.refuse(event, "uses an anchor or alias (& or *). Write the value out")
        if event.tag:
            self.refuse(event, "uses a tag (!). Write a plain value")
        if len(loc) > MAX_DEPTH:
            self.refuse(event, f"is nested deeper than {MAX_DEPTH} levels")
        if kind is yaml.ScalarEvent:
            return self.text(event) if event.style else plain_value(self.text(event))
        return self.sequence(loc) if kind is yaml.SequenceStartEvent else self.mapping(loc)

    def sequence(self, loc: Loc) -> list[RawValue]:
        items: list[RawValue] = []
        while type(event := self.next()) is not yaml.SequenceEndEvent:
            item_loc = (*loc, len(items))
            self.lines[item_loc] = _line(event)
            items.append(self.node(event, item_loc))
        return items

    def mapping(self, loc: Loc) -> RawRecord:
        mapping: RawRecord = {}
        while type(event := self.next()) is not yaml.MappingEndEvent:
            if type(event) is not yaml.ScalarEvent or event.anchor or event.tag:
                self.refuse(event, "has a key that is not plain text")
            key = self.text(event)
            key_loc = (*loc, key)
            if key in mapping:
                twice = f"{shown(key)} is given twice (first on line {self.lines[key_loc]}). Keep one"
                if self.repeated is None:
                    self.refuse(event, twice)
                self.repeated.append((key_loc, f"{twice}."))
            self.lines[key_loc] = _line(event)
            mapping[key] = self.node(self.next(), key_loc)
        return mapping

    def text(self, event: _Event) -> str:
        text: str = event.value
        if len(text) > MAX_STRING:
            self.refuse(event, f"holds a string of {len(text):,} characters; {MAX_STRING:,} is the most")
        if not text.isprintable() and any(unicodedata.category(c) in _HIDDEN and c not in "\n\t" for c in text):
            self.refuse(event, "holds a control character. Take it out")
        return text


T = TypeVar("T")

_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_DATE = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?")
_LINK = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|\b(javascript|vbscript|data):(?=\S)", re.IGNORECASE)


def _text(value: str) -> str:
    """Text that is safe on a page: no spreadsheet formula, no link but http and https."""
    if not value.strip():
        raise ValueError("is empty")
    if value.startswith(("=", "+", "-", "@", "{", "\t", "|")):
        raise ValueError("starts with a character that a spreadsheet reads as a formula (= + - @ { |)")
    for match in _LINK.finditer(value) if ":" in value else ():
        if (match.group(1) or match.group(2)).lower() not in ("http", "https"):
            raise ValueError("holds a link that is neither http nor https")
    return value


def _label(value: str) -> str:
    if "\n" in _text(value) or "<" in value or ">" in value:
        raise ValueError("holds a line break or one of < >, which a name may not")
    if len(value) > 120:
        raise ValueError(f"has {len(value)} characters; a name may have 120")
    return value


@functools.lru_cache(2**12)  # most dates are those of many entries
def _date(value: str) -> str:
    if not _DATE.fullmatch(value):
        raise ValueError("is no date: write YYYY, YYYY-MM or YYYY-MM-DD")
    try:
        day = datetime.date.fromisoformat(first_day(value))
    except ValueError:
        raise ValueError("is no day of the calendar") from None
    if not 2000 <= day.year <= 2100:
        raise ValueError("is not between 2000 and 2100")
    return value


def first_day(as_of: str | None) -> str:
    """The first day of a date such as 2026, 2026-01 or 2026-01-20, for comparison; None sorts before all dates."""
    return f"{as_of}-01-01"[:10] if as_of else ""


def must(holds: Callable[[str], object], complaint: str) -> AfterValidator:
    """A validator that refuses a text unless `holds` is true of it; the message is the field, its text, `complaint`."""

    def check(value: str) -> str:
        if not holds(value):
            raise ValueError(complaint)
        return value

    return AfterValidator(check)


def among(names: Collection[str], complaint: str) -> AfterValidator:
    """A validator that refuses a text that is none of `names`, and suggests the nearest of them."""

    def check(value: str) -> str:
        if value not in names:
            raise ValueError(f"{complaint}.{did_you_mean(value, names)}")
        return value

    return AfterValidator(check)


def is_id(value: str) -> bool:
    """True if a text may be the id of an entry, and so the name of its file."""
    return _ID.fullmatch(value) is not None and len(value) <= 100 and ".." not in value


Text = Annotated[str, AfterValidator(_text)]
Label = Annotated[str, AfterValidator(_label)]
Id = Annotated[str, must(is_id, "is no id: lower case letters, digits, dot, dash and underscore")]
Date = Annotated[str, AfterValidator(_date)]
_Named = Annotated[str, AfterValidator(lambda value: DTYPE_ALIASES.get(value, value))]
DtypeName = Annotated[_Named, among(DTYPES, f"is not one of {', '.join(DTYPES)}")]
Count = Annotated[int, Field(gt=0, le=10**18)]
CountOrZero = Annotated[int, Field(ge=0, le=10**18)]
Many = Annotated[tuple[T, ...], Field(strict=False)]  # a YAML list, kept as a tuple
Some = Annotated[tuple[T, ...], Field(strict=False, min_length=1)]


class Entry(BaseModel):
    """A part of a catalog file: values are not converted, unknown fields are refused, instances are frozen.

    Modules of such schemas do without `from __future__ import annotations`: pydantic would evaluate the text of every
    annotation again at each start, which takes half of their time to load.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)
    id_field: ClassVar[str] = "id"  # the field that says the file's name
    file_name: ClassVar[str]  # set by schemas that have one file in each catalog folder

    def problems(self) -> Iterator[Problem]:
        """Contradictions between fields that are each valid by themselves."""
        yield from ()

    def twice(self, part: str, key: str, called: str = "") -> Iterator[Problem]:
        """A problem for every entry of a list that repeats the `key` of an earlier one, whatever the case.

        called: the entry in the message, with {} for the key's value.
        """
        seen: set[object] = set()
        for i, entry in enumerate(getattr(self, part)):
            value = getattr(entry, key)
            low = value.lower() if isinstance(value, str) else value
            if low in seen:
                yield (part, i, key), f"{(called or f'{key} {{}}').format(value)} is given twice. Keep one"
            seen.add(low)


E = TypeVar("E", bound=Entry)


_WHOLE = "must be a whole number"
_KINDS = {
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
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


def validate(document: Document, schema: type[E], repeats_values: bool = True) -> E:
    """`document` as `schema`. Raises CatalogError with all its problems, in the order of their lines.

    repeats_values: whether messages may quote values of the file; false for a file that the user did not choose.
    """
    entry, problems = checked(document.data, schema, repeats_values=repeats_values)
    if problems:
        raise CatalogError(*by_line(document, problems))
    assert entry is not None
    return entry


def by_line(document: Document, problems: Iterable[Problem]) -> Iterator[str]:
    """The problems of a document as sentences with file and line, in the order of the lines, without repetition."""
    in_order = sorted(problems, key=lambda problem: document.line(problem[0]))
    yield from dict.fromkeys(f"{document.at(loc)}: {problem}" for loc, problem in in_order)


def checked(
    data: RawValue, schema: type[E], place: Loc = (), repeats_values: bool = True
) -> tuple[E | None, list[Problem]]:
    """`data`, found at `place` of a document, as `schema`, and its problems as whole sentences.

    The entry is None where a field has a wrong type or value.
    """
    try:
        entry = schema.model_validate(data)
    except ValidationError as error:
        faults = [(_in_data(data, fault["loc"]), fault) for fault in error.errors(include_url=False)]
        return None, [
            ((*place, *loc), _sentence(schema, fault, loc or place, repeats_values))
            for loc, fault in _once(faults, schema)
        ]
    return entry, [(loc, f"{problem}.") for loc, problem in _all_problems(entry, place)]


def first_fault(error: ValidationError, schema: type[BaseModel]) -> str:
    """The first of pydantic's errors as a sentence, with the path of its key; its value is quoted."""
    return next(every_fault(error, schema))


def every_fault(error: ValidationError, schema: type[BaseModel]) -> Iterator[str]:
    """pydantic's errors as sentences, each with the path of its key; their values are quoted."""
    for fault in error.errors(include_url=False):
        path = ".".join(map(str, fault["loc"]))
        is_missing = fault["type"] == "missing"
        yield f"{shown(path)} is missing." if is_missing else _sentence(schema, fault, (path,) if path else (), True)


def _once(faults: list[tuple[Loc, Any]], schema: type[Entry]) -> Iterator[tuple[Loc, Any]]:
    """pydantic's errors without doubles: a misspelt field is not reported as missing too, and the errors of all members
    of a union become one."""
    misspelt = {
        (loc[:-1], did_you_mean(str(loc[-1]), allowed_fields(schema, fault["loc"][:-1])))
        for loc, fault in faults
        if fault["type"] == "extra_forbidden"
    }
    kinds: dict[Loc, list[str]] = {}  # by field, the types that the members of a union accept
    for loc, fault in faults:
        if fault["type"] in _KINDS and len(fault["loc"]) > len(loc):
            kinds.setdefault(loc, []).append(_KINDS[fault["type"]])
    for loc, fault in faults:
        if fault["type"] == "missing" and (loc, f" Did you mean {fault['loc'][-1]}?") in misspelt:
            continue
        if fault["type"] == "too_short" and any(other[: len(loc)] == loc != other for other, _ in faults):
            continue  # what is wrong in it was counted as none
        if fault["type"] in _KINDS and (words := kinds.get(loc)):
            within = sum(other[: len(loc)] == loc for other, _ in faults)
            if len(words) == within:  # no member accepts its type; else one did, and its own errors say more
                words = [word for word in dict.fromkeys(words) if word != _WHOLE or _KINDS["float_type"] not in words]
                both = " or ".join([words[0], *(word.removeprefix("must be ") for word in words[1:])])
                yield loc, {**fault, "says": both}
            kinds[loc] = []
        elif fault["type"] not in _KINDS or loc not in kinds:
            yield loc, fault


def _all_problems(entry: Entry, place: Loc = ()) -> Iterator[Problem]:
    """The problems of an entry, found at `place`, and of the entries inside it."""
    yield from (((*place, *loc), problem) for loc, problem in entry.problems())
    for name in type(entry).model_fields:
        value = getattr(entry, name)
        if isinstance(value, Entry):
            yield from _all_problems(value, (*place, name))
        for i, part in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(part, Entry):
                yield from _all_problems(part, (*place, name, i))


def _sentence(schema: type[BaseModel], fault: Any, loc: Loc, repeats_values: bool) -> str:
    """One of pydantic's errors as a sentence for the user."""
    kind = fault["type"]
    last = loc[-1] if loc else "the file"
    name = shown(last if isinstance(last, str) else f"item {last + 1} of {loc[-2]}")
    if kind == "extra_forbidden":
        return unknown_field(loc[-1], allowed_fields(schema, fault["loc"][:-1]))
    if kind == "missing":
        return f"field {shown(fault['loc'][-1])!r} is missing."
    if kind == "union_tag_not_found" and isinstance(fault["input"], Mapping):
        tag = fault["ctx"]["discriminator"].strip("'")
        misspelt = [key for key in fault["input"] if did_you_mean(str(key), [tag])]
        return unknown_field(misspelt[0], [tag]) if misspelt else f"field {tag!r} is missing."
    if not repeats_values or not loc:  # a file that is no mapping is not a catalog file: its text is not quoted
        is_message = kind == "value_error"
        return f"{name} {_with_stop(fault['ctx']['error'] if is_message else _KINDS.get(kind, 'cannot be that'))}"
    value, is_key = shown(fault["input"]), fault["loc"][-1:] == ("[key]",)  # which is its own name
    if kind == "value_error":
        problem = _with_stop(fault["ctx"]["error"])
        if problem.startswith("must ") and not is_key:
            return f"{name} is {value!r}. It {problem}"
        return f"{'' if is_key else f'{name} '}{value!r} {problem}"
    if kind in ("literal_error", "union_tag_invalid"):
        allowed = fault["ctx"].get("expected") or fault["ctx"]["expected_tags"]
        given = fault["ctx"].get("tag", fault["input"])
        options = [word.strip(" '") for word in str(allowed).replace(" or ", ", ").split(",")]
        near = did_you_mean(str(given), options)
        where = "kind" if kind == "union_tag_invalid" else name
        stated = repr(where) if is_key else f"{where} is {shown(given)!r}, but"
        return f"{stated} must be one of {', '.join(options)}.{near}"
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"):
        return f"{name} is {value}, but {fault['msg'].lower().removeprefix('input ')}."
    if kind in _KINDS:
        return f"{name} is {value!r}, but {fault.get('says', _KINDS[kind])}."
    return f"{name} is {value!r}: {fault['msg'].lower()}."


def _with_stop(problem: object) -> str:
    """A message that ends as a sentence does."""
    text = str(problem)
    return text if text.endswith(("?", ".")) else f"{text}."


def unknown_field(key: object, fields: Sequence[str]) -> str:
    """The refusal of a key: the nearest that is allowed, and all of them where they are not too many."""
    listing = f" Known: {', '.join(fields)}." if len(fields) <= MOST_FIELDS else ""
    return f"unknown field {shown_key(key)}.{did_you_mean(str(key), fields)}{listing}"


def _in_data(data: RawValue, loc: tuple[str | int, ...]) -> Loc:
    """pydantic's location without the parts that the file lacks: names of union members, missing fields."""
    out: list[str | int] = []
    for part in loc:
        in_list = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if in_list or (isinstance(data, dict) and part in data):
            data = data[part]
            out.append(part)
    return tuple(out)


def allowed_fields(schema: Any, loc: tuple[str | int, ...]) -> list[str]:
    """The fields that a schema allows at `loc`, for `Did you mean ...?`."""
    models = list(_models(schema))
    for part in loc:  # a field, or the kind of a union's member; all else is a place in a list or mapping
        fields = [model.model_fields[part].annotation for model in models if part in model.model_fields]
        of_kind = [
            model
            for model in models
            if "kind" in model.model_fields and part in get_args(model.model_fields["kind"].annotation)
        ]
        models = [inner for annotation in fields for inner in _models(annotation)] or of_kind or models
    return sorted({field.alias or name for model in models for name, field in model.model_fields.items()})


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every pydantic model in an annotation: list items and union members too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)

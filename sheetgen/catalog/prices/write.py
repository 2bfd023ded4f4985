"""A provider's rows as the YAML text of its catalog file, in the form of the shipped ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sheetgen.catalog.hardware import InstanceFile, InstancePrice, InstanceRow
from sheetgen.catalog.reader import MAX_FILE_BYTES, plain_value, read_text
from sheetgen.catalog.validate import validate
from sheetgen.errors import CatalogError

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/;@%+-]*")


def file_text(provider: str, order: int, rows: Sequence[InstanceRow], where: str) -> str:
    """Text that reads back as these rows, and that `sheetgen check` accepts; held to it here.

    Raises CatalogError, under the name `where`, for more than a catalog file may hold.
    """
    lines = [f"provider: {_scalar(provider)}", f"order: {order}", "instances:" if rows else "instances: []"]
    for row in rows:
        lines += _row(row)
    text = "\n".join(lines) + "\n"
    if len(text.encode()) > MAX_FILE_BYTES:
        raise CatalogError(f"{where}: would be larger than {MAX_FILE_BYTES:,} bytes, the most a catalog file may have.")
    back = validate(read_text(text, where), InstanceFile)
    assert [row.model_dump() for row in back.instances] == [_fields(row) for row in rows]
    return text


def _fields(row: InstanceRow) -> dict[str, object]:
    """What a file says of a row: an `Instance` has its provider besides."""
    return row.model_dump(include=set(InstanceRow.model_fields))


def _row(row: InstanceRow) -> Iterator[str]:
    start = "  - "
    for name in InstanceRow.model_fields:
        value = getattr(row, name)
        if name == "prices":
            yield f"{start}prices:" if value else f"{start}prices: []"
            for price in value:
                yield from _price(price)
        elif name == "notes":
            yield f"{start}notes:" if value else f"{start}notes: []"
            yield from (f"      - {_scalar(note)}" for note in value)
        else:
            yield f"{start}{name}: {_scalar(value)}"
        start = "    "


def _price(price: InstancePrice) -> Iterator[str]:
    """A line; with a history a block, and under it a line for every earlier price."""
    fields: dict[str, object] = {"purchase": price.purchase, "usd_per_hour": price.usd_per_hour, "as_of": price.as_of}
    if price.kind is not None:
        fields["kind"] = price.kind
    if not price.history:
        yield f"      - {_flow(fields)}"
        return
    start = "      - "
    for name, value in fields.items():
        yield f"{start}{name}: {_quoted_date(name, value)}"
        start = "        "
    yield f"{start}history:"
    for past in price.history:
        before: dict[str, object] = {"usd_per_hour": past.usd_per_hour, "as_of": past.as_of}
        yield f"          - {_flow(before | ({'source': past.source} if past.source else {}))}"


def _flow(fields: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}: {_quoted_date(name, value)}" for name, value in fields.items()) + "}"


def _quoted_date(name: str, value: object) -> str:
    return f"'{value}'" if name == "as_of" and value is not None else _scalar(value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, (int, float)):
        return repr(value).removesuffix(".0")
    text = str(value)
    if _PLAIN.fullmatch(text) and isinstance(plain_value(text), str) and text == text.strip():
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'

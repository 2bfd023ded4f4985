"""The record as JSON. The same question gives the same bytes: keys in a fixed order, and no time but `as_of`."""

from __future__ import annotations

from sheetgen.answer.answer_record import Record, as_json
from sheetgen.catalog.base import RawMapping
from sheetgen.writers.formats import Options, json_text


def write_json(record: Record | RawMapping, options: Options) -> bytes:
    return json_text(as_json(record)).encode()

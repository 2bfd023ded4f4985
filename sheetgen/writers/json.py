"""The record as JSON. Same question, same bytes: keys in a fixed order, numbers as they are, no time but `as_of`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.answer.answer_record import Record, as_json
from sheetgen.writers.formats import Options, json_text


def write_json(record: Record | Mapping[str, Any], options: Options) -> bytes:
    return json_text(as_json(record)).encode()

"""Any record as the JSON text that all commands print."""

from __future__ import annotations

import json
import re
from typing import Any

# What a terminal could obey, or no UTF-8 file can hold: JSON may spell these by their numbers.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")


def text(value: Any) -> str:
    """Any record as the JSON text that all commands print: no NaN, no escapes of plain letters."""
    plain_text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", plain_text) + "\n"

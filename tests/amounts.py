"""How much is tried: enough for each kind of fault in the gate, more of the same in `./run test --long`."""

from __future__ import annotations

import os

IN_LONG = os.environ.get("SHEETGEN_TESTS") == "long"  # conftest.py sets it for --long


def amount(in_gate: int, in_long: int) -> int:
    return in_long if IN_LONG else in_gate

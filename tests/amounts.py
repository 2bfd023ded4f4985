"""How much is tried: enough for each kind of fault in the gate, more of the same in `./run test --long`."""

from __future__ import annotations

import os
import sys

# By the command line too: a conftest.py of a folder that is named there is read before the options are.
IN_LONG = "--long" in sys.argv or os.environ.get("SHEETGEN_TESTS") == "long"


def amount(in_gate: int, in_long: int) -> int:
    return in_long if IN_LONG else in_gate

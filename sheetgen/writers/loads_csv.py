"""Every load as a line of CSV: what was requested, what to rent for it, its memory, money and speed.

Names, units and values are those of the JSON's `cells`. docs/formats.md says what each column is.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from sheetgen.sheet.page import Page
from sheetgen.writers.formats import Options
from sheetgen.writers.json import SPEED

ASKED = "model", "workload", "tier", "context_tokens", "concurrent_requests", "weight_dtype", "kv_cache_dtype"
ANSWER = (
    "verdict", "instance", "gpu", "purchase", "n_instances", "n_gpus", "tensor_parallel_size",
    "pipeline_parallel_size", "n_replicas", "sequences_per_replica", "hourly_usd", "monthly_usd", "weights_bytes",
    "kv_bytes", "headroom_fraction", "sure_headroom_fraction",
)  # fmt: skip
MONEY = (
    "annual_usd", "three_year_usd", "usd_per_user_per_month", "usd_per_million_input_tokens",
    "usd_per_million_output_tokens", "usd_per_million_tokens",
)  # fmt: skip
RUNNER_UP = {f"runner_up_{key}": key for key in ("instance", "n_instances", "monthly_usd")}
COLUMNS = (*ASKED, *ANSWER, *SPEED, *MONEY, *RUNNER_UP)
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # how a spreadsheet knows a formula in a text


def write_loads(page: Page, options: Options) -> bytes:
    """The lines with their head; a field is empty where there is nothing to say."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for cell in options.record()["cells"]:
        second = cell["runner_up"] or {}
        line = {**cell, **{name: second.get(key) for name, key in RUNNER_UP.items()}}
        writer.writerow([_field(line[name]) for name in COLUMNS])
    return out.getvalue().encode()


def _field(value: Any) -> Any:
    """A value as it is; a text that a spreadsheet would run gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

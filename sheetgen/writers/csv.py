"""CSV: the loads of a sheet, one per line, with the names, units and values of the JSON's `cells` (docs/formats.md
explains the columns)."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from sheetgen.answer.answer_record import ChosenRecord, Record, as_json, keys_of
from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.writers.formats import Options

ASKED = (
    "model", "workload", "tier", "context_tokens", "users", "requests_per_second", "requests_per_hour",
    "concurrent_requests", "weight_dtype", "kv_cache_dtype",
)  # fmt: skip
ANSWER = (
    "verdict", "instance", "gpu", "purchase", "n_instances", "n_gpus", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "spans_machines", "n_replicas", "sequences_per_replica",
    "served_at_target", "memory_holds", "hourly_usd", "monthly_usd", "chance", "weights_bytes", "kv_bytes",
    "headroom_fraction",
)  # fmt: skip
MONEY = (
    "annual_usd", "three_year_usd", "usd_per_user_per_month", "usd_per_million_input_tokens",
    "usd_per_million_output_tokens", "usd_per_million_tokens",
)  # fmt: skip
SPEED = keys_of(ChosenRecord)[keys_of(ChosenRecord).index("sized_by") :]
RUNNER_UP = {f"runner_up_{key}": key for key in ("instance", "n_instances", "monthly_usd")}
BUDGET = {f"budget_{key}": key for key in ("currency", "monthly", "annual", "three_year")}  # with contingency
COLUMNS = (*ASKED, *ANSWER, *SPEED, *MONEY, *RUNNER_UP, *BUDGET)
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # first characters by which a spreadsheet reads a text as a formula


def write_loads(record: Record, options: Options) -> bytes:
    """The sheet's loads as CSV with a header; fields without a value are empty."""
    return lines_of(COLUMNS, (cell | _beside(cell) for cell in as_json(record.cells)))


def _beside(cell: RawMapping) -> RawRecord:
    """The columns of a load that its cell nests: the runner-up, and the totals in the budget's currency."""
    second, budget = cell["runner_up"] or {}, cell["budget"] or {}
    sums = {name: budget.get(key) for name, key in BUDGET.items()}
    totals = {name: amount["total"] if isinstance(amount, Mapping) else amount for name, amount in sums.items()}
    return {name: second.get(key) for name, key in RUNNER_UP.items()} | totals


def lines_of(heads: Iterable[str], rows: Iterable[RawMapping]) -> bytes:
    """CSV with a header line and one line per row."""
    out = io.StringIO()
    writer = csv.DictWriter(out, tuple(heads), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: field(value) for name, value in row.items()} for row in rows)
    return out.getvalue().encode()


_DIGITS = 12  # significant digits of a number; further ones are noise of binary fractions
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def field(value: object) -> object:
    """A value as a CSV field: floats in _DIGITS digits; a text that a spreadsheet would run as a formula gets an
    apostrophe before it."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{Decimal(f'{value:.{_DIGITS}g}'):f}"
    is_run = isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value)
    return f"'{value}" if is_run else value

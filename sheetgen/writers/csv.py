"""CSV: the loads of a sheet, one per line, with the names, units and values of the JSON's `cells` (docs/formats.md
explains the columns); and sized rows, also as plain records."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from sheetgen.answer.answer_record import ChosenRecord, Record, as_json, keys_of
from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.question.deployment import DEFAULTS
from sheetgen.writers.formats import Options

if TYPE_CHECKING:
    import pandas

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


_INT64 = 2.0**63


def write_csv(sized: pandas.DataFrame, overrides: pandas.DataFrame) -> bytes:
    """`sized` as UTF-8 CSV: whole numbers without a decimal point, missing values empty.

    A row with an error keeps its inputs as typed (`overrides`). The user's own columns are kept; texts that a
    spreadsheet would run are escaped.
    """
    given = _as_given(sized, overrides)
    for name in given.select_dtypes(object):
        given[name] = given[name].map(field)
    text = given.rename(columns=field).to_csv(index=False, lineterminator="\n")
    return text.encode(errors="backslashreplace")


def records(sized: pandas.DataFrame, overrides: pandas.DataFrame) -> list[RawRecord]:
    """One mapping per row, with None for missing values; inputs of a row with an error as typed (`overrides`)."""
    out = _as_given(sized, overrides).astype(object)
    return [{str(k): v for k, v in row.items()} for row in out.where(out.notna(), None).to_dict("records")]


def _as_given(sized: pandas.DataFrame, overrides: pandas.DataFrame) -> pandas.DataFrame:
    """The rows with whole numbers as nullable integers, and failed rows' inputs as typed, with blanks as None."""
    out = sized.copy()
    failed = sized["error"].notna()
    for name in out.columns:
        echo = name in DEFAULTS and name in overrides and bool(failed.any())
        column = out[name].mask(failed) if echo else out[name]
        if column.dtype == float and failed.any():
            column = column.mask(failed & (column.abs() >= _INT64))  # results of absurd inputs
        if column.dtype == float and (column.dropna() % 1 == 0).all():
            if (column.dropna().abs() < _INT64).all():
                column = column.astype("Int64")
            else:
                column = column.map(lambda v: None if v != v else int(v)).astype(object)
        elif name == "concurrent_requests":  # not whole if it follows from a rate
            whole, column = column % 1 == 0, column.astype(object)
            column[whole] = [int(v) for v in column[whole]]
        if echo:
            column = column.astype(object)
            column[failed] = overrides.loc[failed, name].replace("", None)
        out[name] = column
    return out

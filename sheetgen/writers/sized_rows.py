"""Rows that `size --batch` sized, as CSV, as Parquet and as plain records."""

from __future__ import annotations

import pandas

from sheetgen.catalog.base import RawRecord
from sheetgen.question.deployment import DEFAULTS
from sheetgen.writers.csv import field

_INT64 = 2.0**63


def write_csv(sized: pandas.DataFrame, overrides: pandas.DataFrame, failed: pandas.Series[bool]) -> bytes:
    """`sized` as UTF-8 CSV: whole numbers without a decimal point, missing values empty.

    A row that `failed` keeps its inputs as typed (`overrides`). The user's own columns are kept; texts that a
    spreadsheet would run are escaped.
    """
    given = _as_given(sized, overrides, failed)
    for name in given.select_dtypes(object):
        given[name] = given[name].map(field)
    text = given.rename(columns=field).to_csv(index=False, lineterminator="\n")
    return text.encode(errors="backslashreplace")


def records(sized: pandas.DataFrame, overrides: pandas.DataFrame, failed: pandas.Series[bool]) -> list[RawRecord]:
    """One mapping per row, with None for missing values; inputs of a row that `failed` as typed (`overrides`)."""
    out = _as_given(sized, overrides, failed).astype(object)
    return [{str(k): v for k, v in row.items()} for row in out.where(out.notna(), None).to_dict("records")]


def _as_given(sized: pandas.DataFrame, overrides: pandas.DataFrame, failed: pandas.Series[bool]) -> pandas.DataFrame:
    """The rows with whole numbers as nullable integers, and failed rows' inputs as typed, with blanks as None."""
    out = sized.copy()
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


def write_parquet(sized: pandas.DataFrame) -> bytes:
    """`sized` as Parquet: numbers as float64, texts as strings and `fits` as a boolean, whatever the values; null where
    one is missing. Needs pyarrow."""
    types = {name: "boolean" if name == "fits" else "string" for name in sized if sized[name].dtype != float}
    return sized.astype(types).to_parquet(index=False)

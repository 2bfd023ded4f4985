"""Sized rows as CSV, or as plain records for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sheetgen.scenario.amounts import DEFAULTS

if TYPE_CHECKING:
    import pandas

_INT64 = 2.0**63


def write_csv(sized: pandas.DataFrame, overrides: pandas.DataFrame) -> bytes:
    """`sized` as UTF-8 CSV: whole numbers without a point, nothing where there is none.

    A row with an error keeps its inputs as they were `typed`.
    """
    text = _as_given(sized, overrides).to_csv(index=False, lineterminator="\n")
    return text.encode(errors="backslashreplace")


def records(sized: pandas.DataFrame, overrides: pandas.DataFrame) -> list[dict[str, Any]]:
    """One mapping per row, with None where there is nothing; inputs of a row with an error as `typed`."""
    out = _as_given(sized, overrides).astype(object)
    return [{str(k): v for k, v in row.items()} for row in out.where(out.notna(), None).to_dict("records")]


def _as_given(sized: pandas.DataFrame, overrides: pandas.DataFrame) -> pandas.DataFrame:
    """Whole numbers as integers that may be missing, and the inputs of failed rows as `typed`, blanks as None."""
    out = sized.copy()
    failed = sized["error"].notna()
    for name in out.columns:
        echo = name in DEFAULTS and name in overrides and bool(failed.any())
        column = out[name].mask(failed) if echo else out[name]
        if column.dtype == float and failed.any():
            column = column.mask(failed & (column.abs() >= _INT64))  # what followed from an absurd input
        if column.dtype == float and (column.dropna() % 1 == 0).all():
            small = bool((column.dropna().abs() < _INT64).all())
            column = column.astype("Int64") if small else column.map(_integer).astype(object)
        if echo:
            column = column.astype(object)
            column[failed] = overrides.loc[failed, name].replace("", None)
        out[name] = column
    return out


def _integer(value: float) -> int | None:
    return None if value != value else int(value)

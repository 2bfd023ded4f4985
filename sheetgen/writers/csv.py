"""Sized rows as CSV, or as plain records for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


def write_csv(sized: pandas.DataFrame, typed: pandas.DataFrame) -> bytes:
    """`sized` as UTF-8 CSV: whole numbers without a point, nothing where there is none.

    A row with an error keeps its inputs as they were `typed`.
    """
    out = _whole(sized)
    failed = sized["error"].notna()
    if failed.any():
        for name in typed.columns:
            out[name] = out[name].astype(object)
            out.loc[failed, name] = typed.loc[failed, name]
    return out.to_csv(index=False, lineterminator="\n").encode()


def records(sized: pandas.DataFrame) -> list[dict[str, Any]]:
    """One mapping per row, with None where there is nothing."""
    out = _whole(sized).astype(object)
    return [{str(k): v for k, v in row.items()} for row in out.where(out.notna(), None).to_dict("records")]


def _whole(sized: pandas.DataFrame) -> pandas.DataFrame:
    """Columns of whole numbers as integers that may be missing."""
    out = sized.copy()
    for name in out.columns:
        column = out[name]
        if column.dtype == float and (column.dropna() % 1 == 0).all():
            out[name] = column.astype("Int64")
    return out

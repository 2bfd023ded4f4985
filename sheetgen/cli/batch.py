"""`sheetgen size --batch`: a CSV in, the same rows with all results out."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.output import note, print_json, write_files
from sheetgen.errors import ScenarioError, shown

if TYPE_CHECKING:
    import pandas


def run_batch(
    source: Path, target: Path | None, asked: Mapping[str, Any], as_json: bool, catalogs: Sequence[str], quiet: bool
) -> None:  # fmt: skip
    """Size every row of `source`; `asked` stands in for columns that it lacks."""
    from sheetgen.api import size_frame
    from sheetgen.writers.csv import records, write_csv

    frame = _read(source)
    for name, value in asked.items():
        if value is not None and name not in frame:
            frame[name] = str(value)
    if "model" not in frame:
        raise ScenarioError(f"{shown(source)}: has no column model. Add one, or name the model with --model.")
    sized = size_frame(frame, catalogs=catalogs)
    if as_json:
        print_json(records(sized))
    elif target is None:
        click.echo(write_csv(sized, frame).decode(), nl=False)
    else:
        write_files({target: write_csv(sized, frame)})
    failed = int(sized["error"].notna().sum())
    note(f"{len(sized):,} rows" + (f", {failed:,} of them with an error" if failed else ""), quiet)


def _read(source: Path) -> pandas.DataFrame:
    """The file as text, cell by cell as typed; only a blank is a blank."""
    import pandas

    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            head = next(csv.reader(file), [])
        twice = sorted({name for name in head if head.count(name) > 1})
        if twice:
            raise ScenarioError(*(f"{shown(source)}: column {shown(n)!r} stands twice. Keep one." for n in twice))
        return pandas.read_csv(
            source,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            index_col=False,
            on_bad_lines="error",
        )
    except OSError as error:
        raise ScenarioError(f"{shown(source)}: cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{shown(source)}: is not UTF-8 text. Save it as UTF-8.") from error
    except (
        pandas.errors.EmptyDataError,
        pandas.errors.ParserError,
        pandas.errors.ParserWarning,
        csv.Error,
    ) as error:
        raise ScenarioError(f"{shown(source)}: is no CSV table ({shown(error, 100)}).") from error

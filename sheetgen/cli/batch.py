"""`sheetgen size --batch`: size every row of a CSV and write it with its results."""

from __future__ import annotations

import csv
import importlib.util
import io
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click
import pandas

from sheetgen.api import RESOLVED, RESULTS, SHORT_SPELLINGS, size_frame
from sheetgen.catalog import Catalog
from sheetgen.cli.options import in_either_number
from sheetgen.cli.output import note, print_json, say
from sheetgen.errors import ELSEWHERE, ScenarioError, shown, unreadable
from sheetgen.input_files import open_input
from sheetgen.question import parse
from sheetgen.question.deployment import DEFAULTS
from sheetgen.question.parse import Options
from sheetgen.units import count
from sheetgen.writers.safe_files import check_places, write_files
from sheetgen.writers.sized_rows import records, write_csv, write_parquet

PARQUET = ".parquet"
LONGEST_LINE = 1_000_000  # characters
MOST_LINES = 2_000_000
MOST_PROBLEMS = 20  # of a header that are named one by one


def run_batch(
    source: Path,
    target: Path | None,
    columns: str | None,
    requested: Options,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
) -> None:
    """Size every row of `source`; `requested` fills in for columns that it lacks, and its measured points apply to all
    rows. `columns`: those that are written, by default all.

    All rows are written, also where some cannot be sized; then the exit status is 1.
    """
    is_parquet = target is not None and target.suffix.lower() == PARQUET
    if is_parquet and importlib.util.find_spec("pyarrow") is None:
        cure = f"{sys.executable} -m pip install pyarrow"
        raise ScenarioError(f"{shown(target)}: Parquet needs pyarrow, which is missing. {cure}. Or name a .csv.")
    if target is not None and target.exists() and source.exists() and target.samefile(source):
        raise ScenarioError(f"{shown(target)}: is the input. Name another file with --out.")
    check_places(() if target is None else [target])
    frame, too_long = _read(source, (*DEFAULTS, *SHORT_SPELLINGS))
    measured = requested.get("measured")
    for name, value in requested.items():
        if value is not None and name != "measured" and name not in frame:
            frame[name] = str(value)
    if "model" not in frame:
        raise ScenarioError(f"{shown(source)}: has no column model. Add one, or name the model with --model.")
    wanted = None if columns is None else parse.words(columns)
    sized = size_frame(frame, columns=wanted and (*wanted, "error"), catalogs=catalog, measured=measured)
    for name in (*RESOLVED, *RESULTS) if too_long else ():
        if name in sized:
            sized.loc[list(too_long), name] = list(too_long.values()) if name == "error" else None
    failed = sized["error"].notna()
    if wanted is not None:
        sized = sized[[*dict.fromkeys(wanted)]]
    if as_json:
        print_json(records(sized, frame, failed))
    elif target is None:
        print_csv(write_csv(sized, frame, failed))
    else:
        write_files({target: write_parquet(sized) if is_parquet else write_csv(sized, frame, failed)})
    if n_failed := int(failed.sum()):
        why = "column error says why" if "error" in sized else "error among --columns says why"
        say(f"{n_failed:,} of {count(len(sized), 'row')} cannot be sized: {why}.", err=True)
        raise SystemExit(1)
    note(count(len(sized), "row"), quiet)


def print_csv(data: bytes) -> None:
    """Print a CSV: byte by byte into a file or a pipe, without characters that a terminal would obey on one."""
    if sys.stdout is not None and sys.stdout.isatty():
        say(data.decode().removesuffix("\n"), verbatim=True)
    else:
        click.echo(data, nl=False)


def _read(source: Path, columns_read: Sequence[str]) -> tuple[pandas.DataFrame, dict[int, str]]:
    """The file as text, cell by cell as typed, and the problems of rows that have more cells than the header."""
    try:
        with io.TextIOWrapper(open_input(source, pipes=True), "utf-8-sig", newline="") as file:
            rows = list(filter(None, csv.reader(_lines(file))))
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{shown(source)}: is not UTF-8 text. Save it as UTF-8.") from error
    except csv.Error as error:
        raise ScenarioError(f"{shown(source)}: is no CSV table ({shown(error, 100)}).") from error
    except OSError as error:
        raise ScenarioError(f"{shown(source)}: {unreadable(error)}.") from error
    except ValueError as error:
        raise ScenarioError(f"{shown(source)}: {error}.") from error
    if not rows:
        raise ScenarioError(f"{shown(source)}: is no CSV table (it is empty).")
    head, too_long = rows.pop(0), {}
    if problems := [f"{shown(source)}: {problem}" for problem in _head_problems(head, columns_read)]:
        raise ScenarioError(*problems)
    width = len(head)
    for i, row in enumerate(rows):
        if len(row) == width:
            continue
        if any(cell.strip() for cell in row[width:]):
            cells = f"{len(row)} cells and the header {width}: {shown(','.join(row[width:]))!r}"
            too_long[i] = f"the row has {cells} has no column. Quote a cell that holds a comma."
        row[width:] = []
        row += [""] * (width - len(row))
    return pandas.DataFrame(rows, columns=head, dtype=object), too_long


def _lines(file: TextIO) -> Iterator[str]:
    """The lines of a table. Raises ValueError where they are too long or too many."""
    for number in range(1, MOST_LINES + 1):
        line = file.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise ValueError(f"line {number:,} has more than {LONGEST_LINE:,} characters, so it is no table of loads")
        yield line
    if file.read(1):
        raise ValueError(f"has more than {MOST_LINES:,} lines, the most that is read at once. Split it")


def _head_problems(head: Sequence[str], columns_read: Sequence[str]) -> Iterator[str]:
    """Problems of the header because of which a column would be ignored silently."""
    twice = sorted(name for name, n in Counter(head).items() if n > 1)
    for name in twice[:MOST_PROBLEMS]:
        yield f"column {shown(name)!r} stands twice. Keep one."
    if len(twice) > MOST_PROBLEMS:
        yield f"{len(twice) - MOST_PROBLEMS:,} columns more stand twice."
    for mark, called in ((";", "';'"), ("\t", "tabs")):
        if len(head) == 1 and any(_plain(part) in columns_read for part in head[0].split(mark)[1:]):
            yield f"the header is {shown(head[0])!r}. Is it separated by {called}? Separate the cells by commas."
            return
    for name in (name for name in head if name not in columns_read):
        meant = in_either_number(_plain(name), columns_read) or ELSEWHERE.get(_plain(name), "")
        if meant in columns_read and meant not in head:
            yield f"column {shown(name)!r} is not read. Did you mean {meant}?"


def _plain(name: str) -> str:
    """A column's name in the spelling of the inputs: small letters, with underscores."""
    return "_".join(name.strip().lower().replace("-", " ").split())

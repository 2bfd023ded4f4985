"""`sheetgen size`: one deployment bill by bill, or a CSV of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import DEPLOYMENT, PACE, command, common, load_options, rows_of, text_options
from sheetgen.cli.output import note, print_json, say, write_files
from sheetgen.errors import ScenarioError, shown

if TYPE_CHECKING:
    import pandas


@command()
@click.option("--model", metavar="NAME", help="Model by catalog id, alias, Hugging Face id, or path of a config.json.")
@load_options
@text_options(*DEPLOYMENT)
@click.option("--flags", metavar="ENGINES", help="Launch flags: vllm, sglang, tensorrt-llm, nim, lmdeploy, all.")
@click.option("--kv-budget", metavar="SETTINGS", help="KV budget of trtllm-build or NIM settings, or of their file.")
@click.option("--from-log", metavar="FILE", help="Size what a start-up log says, beside what the engine measured.")
@click.option("--batch", metavar="IN.csv", help="Size every row of a CSV whose columns are these options.")
@click.option("--out", metavar="OUT.csv", help="Where --batch writes; default stdout.")
@common
def size(
    model: str | None, from_log: str | None, batch: str | None, out: str | None, as_json: bool,
    catalogs: tuple[str, ...], quiet: bool, flags: str | None, kv_budget: str | None, **inputs: Any,
) -> None:  # fmt: skip
    """One deployment, bill by bill: weights, activations, overhead, KV cache, whether the load fits; and its speed.

    What does not fit is an answer, not an error. In a batch, columns have the long names with underscores
    (context_tokens), unknown columns stay, and a row that cannot be sized has its reason in `error`.

    \b
    Examples:
      sheetgen size --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --users 32
      sheetgen size --model gpt-oss-120b --gpu h200 --kv-cache-dtype fp8 --json
      sheetgen size --model 8b --users 64 --anchor concurrent_requests=32,input_tokens=1k,output_tokens=1k,tpot_ms=9.8
      sheetgen size --batch in.csv --out out.csv
      sheetgen size --from-log startup.log
      sheetgen size --model 8b --gpu l40s --context 8k --users 16 --flags vllm
      sheetgen size --model 8b --gpu spark --kv-budget max_batch_size=8,max_seq_len=4096,kv_cache_dtype=fp8
    """
    requested = {"model": model, **inputs}
    if (flags is not None or kv_budget is not None) and (from_log is not None or batch is not None):
        raise click.UsageError("--flags and --kv-budget do not go with --from-log or --batch.")
    if from_log is not None:
        if batch is not None or out is not None:
            raise click.UsageError("--from-log does not go with --batch or --out.")
        _refuse_speed(requested)
        from sheetgen.cli.from_log import run_from_log

        run_from_log(from_log, requested, as_json, catalogs)
        return
    if batch is not None:
        run_batch(Path(batch), Path(out) if out else None, requested, as_json, catalogs, quiet)
        return
    if out is not None:
        raise click.UsageError("--out goes with --batch.")
    if model is None:
        raise click.UsageError("Missing option '--model'.")
    from sheetgen.api import record, sized_point
    from sheetgen.catalog import Catalog

    catalog, extras = Catalog(*catalogs), None
    if flags is not None or kv_budget is not None:
        from sheetgen.cli.flags import Extras

        extras = Extras.of(requested, flags, kv_budget, catalog)
    sized = sized_point(extras.requested if extras else requested, catalog)
    answer = record(sized)
    if as_json:
        print_json(answer | (extras.record(answer) if extras else {}))
        return
    from sheetgen.cli.bills import bills

    say(bills(sized) + (extras.text(answer) if extras else ""))


def _refuse_speed(requested: dict[str, Any]) -> None:
    """Inputs of speed alone would be accepted and ignored: a start-up log is compared in memory."""
    given = [f"--{name.replace('_', '-')}" for name, *_ in rows_of(*PACE) if requested.get(name) is not None]
    if given:
        raise click.UsageError(f"{', '.join(given)} does not go with --from-log, which compares memory.")


def run_batch(
    source: Path, target: Path | None, requested: Mapping[str, Any], as_json: bool, catalogs: Sequence[str], quiet: bool
) -> None:  # fmt: skip
    """Size every row of `source`; `requested` stands in for columns that it lacks, and its anchor is of all rows."""
    from sheetgen.api import RESOLVED, RESULTS, SHORT_SPELLINGS, size_frame
    from sheetgen.scenario.deployment import DEFAULTS
    from sheetgen.writers.csv import records, write_csv

    if target is not None and target.exists() and source.exists() and target.samefile(source):
        raise ScenarioError(f"{shown(target)}: is the input. Name another file with --out.")
    frame, too_long = _read(source, (*DEFAULTS, *SHORT_SPELLINGS))
    anchor = requested.get("anchor")
    for name, value in requested.items():
        if value is not None and name != "anchor" and name not in frame:
            frame[name] = str(value)
    if "model" not in frame:
        raise ScenarioError(f"{shown(source)}: has no column model. Add one, or name the model with --model.")
    sized = size_frame(frame, catalogs=catalogs, anchor=anchor)
    for name in (*RESOLVED, *RESULTS) if too_long else ():
        sized.loc[list(too_long), name] = list(too_long.values()) if name == "error" else None
    if as_json:
        print_json(records(sized, frame))
    elif target is None:
        click.echo(write_csv(sized, frame), nl=False)
    else:
        write_files({target: write_csv(sized, frame)})
    failed = int(sized["error"].notna().sum())
    note(f"{len(sized):,} rows" + (f", {failed:,} of them with an error" if failed else ""), quiet)


def _read(source: Path, known: Sequence[str]) -> tuple[pandas.DataFrame, dict[int, str]]:
    """The file as text, cell by cell as typed, and what is wrong with rows that have more cells than the head."""
    import csv

    import pandas

    if source.exists() and not source.is_file():
        raise ScenarioError(f"{shown(source)}: is not a file.")
    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise ScenarioError(f"{shown(source)}: cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{shown(source)}: is not UTF-8 text. Save it as UTF-8.") from error
    except csv.Error as error:
        raise ScenarioError(f"{shown(source)}: is no CSV table ({shown(error, 100)}).") from error
    if not rows:
        raise ScenarioError(f"{shown(source)}: is no CSV table (it is empty).")
    head = rows.pop(0)
    problems = [*_head_problems(head, known)]
    if problems:
        raise ScenarioError(*(f"{shown(source)}: {problem}" for problem in problems))
    width = len(head)
    too_long = {}
    for i, row in enumerate(rows):
        if any(cell.strip() for cell in row[width:]):
            lost = shown(",".join(row[width:]))
            too_long[i] = (
                f"the row has {len(row)} cells and the header {width}: {lost!r} has no column. "
                "Quote a cell that holds a comma."
            )
        row[width:] = []
        row += [""] * (width - len(row))
    return pandas.DataFrame(rows, columns=head, dtype=object), too_long


def _head_problems(head: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    """What would make a column be passed over without a word."""
    for name in sorted({name for name in head if head.count(name) > 1}):
        yield f"column {shown(name)!r} stands twice. Keep one."
    for mark, called in ((";", "';'"), ("\t", "tabs")):
        if len(head) == 1 and any(_plain(part) in known for part in head[0].split(mark)[1:]):
            yield f"the header is {shown(head[0])!r}. Is it separated by {called}? Separate the cells by commas."
            return
    for name in head:
        meant = _plain(name)
        if name not in known and meant in known and meant not in head:
            yield f"column {shown(name)!r} is not read. Did you mean {meant}?"


def _plain(name: str) -> str:
    return "_".join(name.strip().lower().replace("-", " ").split())

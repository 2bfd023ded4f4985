"""`sheetgen build`, `pull` and `diff`: sheets of options, of a workbook that somebody edited, and two compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sheetgen.cli.options import (
    SHEET,
    brand_option,
    command,
    common,
    flags_option,
    scenario_option,
    text_options,
    with_scenario,
)
from sheetgen.cli.output import folded, note, print_json, say, say_measured, step, warn, warn_of_letters, write_drawn
from sheetgen.errors import ScenarioError, shown
from sheetgen.sheet_files import (
    PULL_SCHEMA,
    brand_of,
    draw,
    formats_named,
    launched_answer,
    order_of,
    place_of,
    question_of_sheet,
)
from sheetgen.units import count
from sheetgen.writers.formats import FORMATS
from sheetgen.writers.safe_files import check_places

if TYPE_CHECKING:
    from sheetgen.answer.answer_record import Record
    from sheetgen.catalog import Catalog
    from sheetgen.question.parse import Raw
    from sheetgen.question.sheet_question import Question
    from sheetgen.readback.month_bridge import Bridge


SCENARIO = "scenario.yaml"  # the ending of the file that builds a pulled workbook again


@command()
@text_options(*SHEET)
@click.option("--format", metavar="NAMES", help=f"Any of {','.join(FORMATS)}. Default xlsx,pdf.")
@click.option("--attach", is_flag=True, default=None, help="Put the workbook inside the PDF.")
@click.option("--out", metavar="DIR", help="Folder to write to. Default output.")
@click.option("--name", metavar="NAME", help="Name of the files, without an ending. Default sizing-sheet.")
@scenario_option
@flags_option
@brand_option
@common
def build(as_json: bool, catalog: Catalog, quiet: bool, scenario: str | None, **options: Raw) -> None:
    """The sizing sheet: a live workbook and a one-page PDF for models x workloads x requests at once.

    Files of an earlier build are replaced. One that was changed by hand since, a workbook or a PDF, is kept beside the
    new one as NAME.edited.xlsx or NAME.edited.pdf; `pull` reads what was typed into it.

    \b
    Examples:
      sheetgen build --models 8b,70b,405b
      sheetgen build --models 70b --users 200 --workloads chat --ask 70b --owner "Ann Lee" --approver "VP Engineering"
      sheetgen build --models 70b --workloads rag --tiers 8,64 --weight-dtype fp8 --kv-cache-dtype fp8
      sheetgen build --scenario fleet.yaml --format xlsx,pdf,json --out sheets --name fleet
    """
    asked = with_scenario(scenario, options)
    if not asked.get("models"):
        raise click.UsageError("Missing option '--models'. Name some, such as --models 8b,70b,405b.")
    order = order_of(asked)
    from sheetgen.answer.answer_record import as_json as plain_record
    from sheetgen.api import answered

    question = question_of_sheet(order, catalog)
    step(f"working out {count(len(question.loads), 'load')} on {count(len(question.candidates), 'instance')}")
    answer = answered(question)
    warn(answer.question, quiet)
    answer, launched = launched_answer(answer, order.flags, catalog)
    question, record = answer.question, answer.record
    step(f"drawing {', '.join(order.formats)}")
    files, missing = draw(answer, order.formats, catalog, order.brand, order.archive, launched)
    targets = order.targets(files)
    write_drawn(targets, missing)
    warn_of_letters(question, files, order.brand, quiet)
    if as_json:
        print_json(plain_record(record))
    elif not quiet:
        lines_by_row = headlines(record, question)
        say("\n".join([*(f"wrote {target}" for target in targets), *lines_by_row.values()]))
        say_measured(question, record.cells)
        for row, launch in launched.items():
            from sheetgen.cli.extras import flag_lines

            stack = folded(f"Stack: {launch.advice.line}") if launch.advice else ""
            say("\n".join(["", folded(lines_by_row[row]), *flag_lines(launch.flags), "", stack]), verbatim=True)
    note(f"{len(question.loads)} loads on {len(question.candidates)} instances", quiet)
    if missing and order.is_named:
        raise SystemExit(1)


@command()
@click.argument("edited", metavar="EDITED.xlsx")
@click.option(
    "--format", "formats", metavar="NAMES", help=f"Beside the PDF and the scenario: any of {','.join(FORMATS)}."
)
@click.option("--out", metavar="DIR", help="Folder to write to. Default output.")
@click.option("--name", metavar="NAME", help="Name of the files, without an ending. Default: the workbook's own.")
@click.option("--models", metavar="NAMES", help="The models anew, in their order, where it was built from files.")
@brand_option
@common
def pull(
    edited: str,
    formats: str | None,
    out: str | None,
    name: str | None,
    models: str | None,
    brand: str | None,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
) -> None:
    """Carry an edited workbook back: what was changed, the PDF of it, and a scenario file that builds it again.

    Every yellow cell is read by its name, so rows may have moved; rows filled below a table take part. What the
    workbook says wins over the catalogs. Python works all of it out anew and compares: it says where the workbook was
    not recalculated, and which formulas were overwritten. The workbook itself is never touched.

    Of a plan's workbook it writes a plan.yaml with what was typed, and the plan's documents, all worked out anew.

    \b
    Examples:
      sheetgen pull sizing-sheet.xlsx
      sheetgen pull ~/Downloads/q3-finance.xlsx --out sheets --name q3 --format pdf,xlsx
      sheetgen build --scenario sheets/q3.scenario.yaml
      sheetgen pull capacity-plan.xlsx --format xlsx,docx
    """
    from sheetgen.readback.plan_book import is_plan_book

    if is_plan_book(edited):
        from sheetgen.cli.plan_commands import pull_book

        pull_book(edited, formats, out, name, brand, as_json, catalog, quiet)
        return
    requested, drawn_with = formats_named(formats), brand_of(brand)
    place = place_of(out, Path(edited).stem if name is None else name)
    kinds = tuple(dict.fromkeys(("pdf", *requested)))
    check_places(Path(f"{place}.{kind}") for kind in (*kinds, SCENARIO))
    from sheetgen import __version__
    from sheetgen.answer.answer_record import as_json as plain_record
    from sheetgen.api import answer_of
    from sheetgen.readback.pulled import pull as read_back
    from sheetgen.readback.pulled_words import data, lines, scenario_text

    step(f"reading {shown(edited)}, and working it out anew")
    pulled = read_back(edited, catalog, models)
    answer = answer_of(pulled.solved)
    step(f"drawing {', '.join(kinds)}")
    drawn, missing = draw(answer, kinds, catalog, drawn_with)
    scenario = scenario_text(pulled.options, pulled.overrides, Path(pulled.snapshot.path).name, __version__)
    files = {**drawn, SCENARIO: scenario.encode()}
    targets = {Path(f"{place}.{name}"): content for name, content in files.items()}
    write_drawn(targets, missing, spared=Path(edited))
    warn_of_letters(answer.question, drawn, drawn_with, quiet)
    if as_json:
        paths, sheet = list(map(str, targets)), plain_record(answer.record)
        print_json({"schema_version": PULL_SCHEMA, **data(pulled), "files": paths, "sheet": sheet})
    elif not quiet:
        wrote = (f"wrote {target}" for target in targets)
        say("\n".join([*lines(pulled), *wrote, *headlines(answer.record, answer.question).values()]))
    note(f"{len(answer.question.loads)} loads worked out anew", quiet)
    if missing and "pdf" in requested:
        raise SystemExit(1)


@command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option(
    "--block",
    type=click.Choice(["md"]),
    help="A short block to paste: what changed since A, with a money bridge per model.",
)
@click.option("--all", "show_all", is_flag=True, help="Every change, not the first ones of each section.")
@click.option("--exit-code", is_flag=True, help="Exit 1 where something changed, as git diff does.")
@common
def diff(
    before: str,
    after: str,
    block: str | None,
    show_all: bool,
    exit_code: bool,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
) -> None:
    """What changed from sheet A to sheet B: load, inputs, prices, facts of models and GPUs, results.

    Each is a workbook of `sheetgen build`, edited or not, or the JSON of `build --format json` or `recommend --json`;
    of two kinds, what both say is compared. A workbook carries its record, which is compared; where yellow cells were
    changed since it was built, it is answered anew, as pull does. Rows may have moved. Numbers that are equal to 1e-9
    are equal.

    --json has a, b (file, kind, as_of, version, catalog_sha256), equal; then a list each for recommendation, load,
    inputs, prices, models, gpus, precisions, results (of loads), decision, every entry with name, label, before, after,
    words and, where it applies, change_fraction, change_usd, instance, purchase, row, column, tier; bridge (by model:
    load, before_usd, after_usd, steps of cause and usd, causes, how, why); quality (what a narrower precision costs in
    it); not_compared; notes.

    Of plans `sheetgen plan PLAN.yaml --since LAST` says what changed.

    How a bridge came about (how): "solved again" (each cause by itself: prices, then load, then facts and settings),
    "one cause", "unchanged", or "not separated", with the causes named and no figures made up.

    \b
    Examples:
      sheetgen diff last-quarter.xlsx this-quarter.xlsx
      sheetgen diff output/sizing-sheet.json edited.xlsx --json
      sheetgen diff q3.xlsx q4.xlsx --block md
    """
    if as_json and block:
        raise click.UsageError("--json and --block do not go together.")
    from sheetgen.cli import diff_text
    from sheetgen.readback.compare import compare
    from sheetgen.readback.compared_facts import read_sheets
    from sheetgen.readback.month_bridge import bridges
    from sheetgen.readback.plan_book import is_plan

    for file in (before, after):
        if is_plan(file):
            raise ScenarioError(
                f"{shown(file, 200)}: is a plan. `sheetgen plan PLAN.yaml --since LAST` says what changed since that."
            )
    comparison = compare(*read_sheets(catalog, before, after))
    bridge: Sequence[Bridge] = () if comparison.is_equal else bridges(comparison, catalog)
    quality = diff_text.quality_words(comparison, catalog)
    if as_json:
        print_json(diff_text.document(comparison, bridge, quality))
    elif block:
        say(diff_text.block_text(comparison, bridge, quality), verbatim=True)
    else:
        say(diff_text.text(comparison, bridge, show_all, quiet, quality))
    if exit_code and not comparison.is_equal:
        raise SystemExit(1)


def headlines(record: Record, question: Question) -> dict[int, str]:
    """One line per model: its answer at the headline load, by that."""
    from sheetgen.cli.answer_text import as_published_words, headline
    from sheetgen.report.answer_lines import load_of

    name = question.workloads[question.headline[0]].name
    return {
        cell.row: f"{question.model_of(cell.row).model.name}, {name} at {load_of(question, cell)}: "
        f"{headline(question, cell)}"
        + (f"; weights {cell.weight_dtype}, as published {as_published_words(cell)}" if cell.as_published else "")
        for cell in record.headline_cells
    }

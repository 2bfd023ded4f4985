"""`sheetgen pull`: a workbook that somebody edited, as a PDF and a scenario file."""

from __future__ import annotations

from pathlib import Path

import click

from sheetgen.cli.build import FILES, brand_of, check_name, document_of, draw, formats_named, headlines
from sheetgen.cli.options import brand_option, common
from sheetgen.cli.output import note, print_json, say, write_files
from sheetgen.errors import ScenarioError, shown
from sheetgen.writers.formats import FORMATS

PULL_SCHEMA = 1
ALWAYS = "pdf"


@click.command()
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
    edited: str, formats: str | None, out: str | None, name: str | None, models: str | None, brand: str | None,
    as_json: bool, catalogs: tuple[str, ...], quiet: bool,
) -> None:  # fmt: skip
    """Carry an edited workbook back: what was changed, the PDF of it, and a scenario file that builds it again.

    Every yellow cell is read by its name, so rows may have moved; rows filled below a table take part. What the
    workbook says wins over the catalogs. Python works all of it out anew and compares: it says where the workbook was
    not recalculated, and which formulas were overwritten. The workbook itself is never touched.

    \b
    Examples:
      sheetgen pull sizing-sheet.xlsx
      sheetgen pull ~/Downloads/q3-finance.xlsx --out sheets --name q3 --format pdf,xlsx
      sheetgen build --scenario sheets/q3.scenario.yaml
    """
    requested, drawn_with = formats_named(formats), brand_of(brand)
    stem = Path(edited).stem if name is None else name
    check_name(stem)
    if out is not None and not out.strip():
        raise ScenarioError("out is blank. Name a folder, or leave it out.")
    from sheetgen import __version__
    from sheetgen.catalog import Catalog
    from sheetgen.pull.pulled import pull as read_back
    from sheetgen.pull.words import data, lines, scenario_text

    note(f"reading {shown(edited)}, and working it out anew ...", quiet)
    pulled = read_back(edited, Catalog(*catalogs), models)
    kinds = tuple(dict.fromkeys((ALWAYS, *requested)))
    drawn, missing = draw(pulled.solved, kinds, required=ALWAYS in requested, brand=drawn_with)
    scenario = scenario_text(pulled.options, pulled.overrides, Path(pulled.found.path).name, __version__)
    files = {**drawn, "scenario.yaml": scenario.encode()}
    targets = {Path(out or FILES["out"]) / f"{stem}.{ending}": content for ending, content in files.items()}
    for target in targets:  # the workbook itself is spared
        if target.resolve() == Path(edited).resolve():
            raise ScenarioError(f"{shown(target, 200)}: is the edited workbook. Choose another --out or --name.")
    write_files(targets)
    if missing:
        say(missing, err=True)
    if as_json:
        paths = [str(target) for target in targets]
        answer = document_of(pulled.solved)
        print_json({"schema_version": PULL_SCHEMA, **data(pulled), "files": paths, "sheet": answer})
    elif not quiet:
        for line in (*lines(pulled), *(f"wrote {target}" for target in targets), *headlines(pulled.solved)):
            say(line)
    note(f"{len(pulled.solved.question.loads)} loads worked out anew", quiet)

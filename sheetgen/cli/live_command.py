"""`sheetgen live`: the page that answers in the browser, in one file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sheetgen.cli.options import command, common, text_options
from sheetgen.cli.output import print_json, say, step
from sheetgen.writers.safe_files import check_places, write_files

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

EVERY = "all"
DEFAULT_OUT = "output/live.html"


@command()
@click.option("--models", metavar="NAMES", default=EVERY, help="Models that the page answers for. Default all.")
@click.option("--out", metavar="FILE", default=DEFAULT_OUT, help=f"The file to write. Default {DEFAULT_OUT}.")
@text_options(("as_of", "DATE", "The day of the page, from which prices of hosts are counted. Default today."))
@common
def live(models: str, out: str, as_of: str | None, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """A page that answers as `recommend` does, in any browser: one file with every model and price, no network.

    Open it from a disk, or put it on any static host. Its address holds the question, by the names of the options of
    `recommend`, so that a link is an answer: live.html#model=70b&users=640&input_tokens=15360&output_tokens=1024.

    \b
    Examples:
      sheetgen live
      sheetgen live --models 8b,70b,405b --out sizing.html
      sheetgen live --catalogs our-prices --out output/ours.html
    """
    from sheetgen.live.live_facts import facts_of_catalog
    from sheetgen.live.live_page import write_live
    from sheetgen.question import parse
    from sheetgen.writers.formats import Options

    names = () if models.strip().lower() == EVERY else parse.words(models)
    check_places([Path(out)])
    step("gathering models, machines and prices")
    data = write_live(facts_of_catalog(catalog, names, as_of), Options())
    write_files({Path(out): data})
    zipped = len(gzip.compress(data))
    if as_json:
        print_json({"file": out, "bytes": len(data), "gzip_bytes": zipped})
    elif not quiet:
        say(f"wrote {out}: {len(data) / 1000:,.0f} KB, {zipped / 1000:,.0f} KB gzipped; open it in a browser")

"""`sheetgen catalog prices`: the prices of the catalogs from price lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import common
from sheetgen.cli.output import note, print_json, say, write_files
from sheetgen.cli.price_report import count, report
from sheetgen.errors import CatalogError

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog
    from sheetgen.catalog.prices import Refresh


@click.command()
@click.argument("lists", nargs=-1, required=True, metavar="FILE_OR_URL...")
@click.option(
    "--to", metavar="DIR", help="Write the rows that change into a catalog folder: DIR/instances/PROVIDER.yaml."
)
@click.option("--as-of", metavar="DATE", help="Day when the prices were read, for lists that do not say one.")
@click.option("--region", metavar="REGION", help="Price rows in this region. Default: each row in its own.")
@click.option(
    "--add-new", is_flag=True, help="Add what the catalogs do not have, where a list says its GPU and how many."
)
@click.option(
    "--skip-broken", is_flag=True, help="Leave out lines that are broken, and say which. Default: refuse all."
)
@click.option("--dry-run", is_flag=True, help="Write nothing, even with --to.")
@common
def prices(
    lists: tuple[str, ...],
    to: str | None,
    as_of: str | None,
    region: str | None,
    add_new: bool,
    skip_broken: bool,
    dry_run: bool,
    as_json: bool,
    catalogs: tuple[str, ...],
    quiet: bool,
) -> None:
    """Refresh instance prices from price lists, and show what changes. Writes only with --to.

    A list is a CSV file, or a web address that is fetched when named here (http or https), in one of four
    forms, known by its columns: AWS on demand, Azure on demand, GCP accelerators, neocloud offerings. A line
    prices the catalog's row of that type and region, or of that provider and GPU; what is not certain is
    listed, never guessed. The price that is replaced stays in the row as history (`sheetgen show ID`); one
    that is older than the catalog's becomes history itself.

    \b
    Columns that a list must have:
      AWS       region, instance_type, on_demand_usd_hr, accelerator_count, accelerator_name
      Azure     region, instance_type, on_demand_usd_hr
      GCP       region, machine_type, on_demand_usd_hr, spot_usd_hr, month_1y_cud_usd, month_3y_cud_usd
      neocloud  provider_id, gpu_model, vram_gb, interconnect, tier, is_spot, price_usd_hour

    \b
    Examples:
      sheetgen catalog prices aws.csv --as-of 2026-11-20
      sheetgen catalog prices aws.csv gcp.csv --as-of 2026-11-20 --to my-catalogs
      sheetgen catalog prices https://example.com/neocloud.csv --to my-catalogs --add-new
      sheetgen catalog prices aws.csv --as-of 2026-11-20 --region us-gov-west-1 --to gov-catalogs
    """
    from sheetgen.catalog.prices import files, read_lists, refresh
    from sheetgen.scenario.parse import as_of_date

    if to is not None and not to.strip():
        raise CatalogError("to is blank. Name a catalog folder.")
    day = as_of_date(as_of).isoformat() if as_of is not None else None
    if day is not None and day > as_of_date(None).isoformat():
        note(f"--as-of {day} is after today: until then, prices read earlier will not replace these.", quiet)
    catalog = _catalog(catalogs, Path(to) if to else None)
    if n_addresses := sum("://" in place for place in lists):
        note(f"fetching {count(n_addresses, 'price list')} ...", quiet)
    found = refresh(catalog, read_lists(lists), day, region, skip_broken)
    for fault in found.skipped:
        say(f"{fault} {'Both lines skipped' if fault.is_pair else 'Skipped'}.", err=True)
    rows = [*found.changed, *(found.new if add_new else ())]
    written = files(catalog, Path(to), rows) if to else {}
    lost = [path for path, text in written.items() if _n_comments(path) > text.count("\n#") + text.startswith("#")]
    if to and not dry_run:
        write_files({path: text.encode() for path, text in written.items()}, "Choose another folder with --to.")
    if as_json:
        print_json(_json(found, add_new, [] if dry_run else [str(path) for path in written]))
    elif not (quiet and to):
        for line in report(found, add_new):
            say(line)
        say(_ending(to, [str(path) for path in written], dry_run))
        for path in lost:
            say(f"{path}: the comments below its first lines are not kept.")


def _catalog(catalogs: tuple[str, ...], to: Path | None) -> Catalog:
    """The catalogs with the target folder over them: what it has from an earlier run is what changes."""
    from sheetgen.catalog import Catalog, default_folder

    known = {Path(folder).resolve() for folder in catalogs} | {default_folder().resolve()}
    over = [to] if to is not None and to.is_dir() and to.resolve() not in known else []
    return Catalog(*catalogs, *over)


def _n_comments(path: Path) -> int:
    """Lines of comment in a file that is to be written anew."""
    text = path.read_text(encoding="utf-8-sig") if path.is_file() else ""
    return sum(line.lstrip().startswith("#") for line in text.splitlines())


def _ending(to: str | None, written: Sequence[str], dry_run: bool) -> str:
    from sheetgen.cli.catalog import next_step

    if to is None:
        return "Nothing was written. --to DIR writes the rows that change into a folder for --catalogs."
    if not written:
        return "Nothing to write."
    if dry_run:
        return f"Nothing was written (--dry-run). Without it: {', '.join(written)}."
    return f"{', '.join(written)}: written.{next_step(Path(to))}"


def _json(found: Refresh, add_new: bool, written: list[str]) -> dict[str, Any]:
    """All of it, whatever its length."""
    return {
        "lists": [
            {
                "list": one.where,
                "format": one.format.title,
                "n_lines": one.n_lines,
                "n_without_price": one.n_without_price,
            }
            for one in found.lists
        ],
        "changes": [
            {
                "instance": one.instance,
                "purchase": one.purchase,
                "what": one.what,
                "old_usd_per_hour": one.old_usd,
                "new_usd_per_hour": one.new_usd,
                "change_fraction": one.share,
                "old_as_of": one.old_as_of,
                "new_as_of": one.new_as_of,
                "old_region": one.old_region,
                "region": one.new_region,
                "at": one.at,
            }
            for one in found.changes
            if one.what != "unchanged"
        ],
        "n_unchanged": sum(one.what == "unchanged" for one in found.changes),
        "dropped": list(found.dropped),
        "n_other_regions": found.n_other_regions,
        "not_in_lists": list(found.not_in_lists),
        "new": [{"id": row.id, "added": add_new, **row.model_dump(mode="json")} for row in found.new],
        "not_matched": [
            {
                "provider": one.provider or one.offer.provider,
                "name": one.offer.name,
                "at": one.offer.at,
                "reason": one.why,
            }
            for one in found.left
        ],
        "skipped": [str(fault) for fault in found.skipped],
        "written": written,
    }

"""`sheetgen catalog`: new entries for the catalogs, and new prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sheetgen.cli.options import Group, common
from sheetgen.cli.output import note, print_json, say, table
from sheetgen.errors import CatalogError, shown
from sheetgen.units import count
from sheetgen.writers.safe_files import may_be_written, write_files

if TYPE_CHECKING:
    from sheetgen.answer.answer_record import Json
    from sheetgen.catalog import Catalog
    from sheetgen.catalog.hardware import Instance
    from sheetgen.catalog.hosted import HostedPrice
    from sheetgen.catalog.prices.hosted_list import HostedRefresh
    from sheetgen.catalog.prices.refresh import Refresh
    from sheetgen.catalog.prices.rows import Change, What

MOST_ROWS = 40  # of the table of changes; --json has all
MOST_NAMES = 4  # of one reason
ACCEPT = "--accept-large-changes"

_WORDS_OF_CHANGE: dict[What, str] = {
    "changed": "changed", "added": "new for a row that had none", "moved": "of another region than before",
    "confirmed": "the same at a later date", "unchanged": "unchanged",
}  # fmt: skip
_ADDED = {True: " added", False: ", which --add-new adds"}


def _left_out_by_default(rows: Sequence[Instance], catalog: Catalog) -> Iterator[str]:
    """The user's own rows that take no part by default, and the option that includes them."""
    from sheetgen.catalog.prices.rows import ANY_REGION
    from sheetgen.question.market import DEFAULT_VENDORS, LEAST_MEMORY_BYTES

    by_option: dict[str, list[str]] = {}
    for row in rows:
        gpu = catalog.gpu(row.gpu)
        if not gpu.data_center or gpu.memory.engine_bytes < LEAST_MEMORY_BYTES:
            by_option.setdefault(f"--gpus {(gpu.aliases or (gpu.id,))[0]}", []).append(row.id)
        elif gpu.vendor not in DEFAULT_VENDORS:
            by_option.setdefault(f"--vendors {gpu.vendor}", []).append(row.id)
    for option, ids in by_option.items():
        yield f"Asked only with {option}: {_names(ids)}."
    unplaced = [row.region for row in rows if not catalog.regions.areas_of(row.provider, row.region)]
    if unplaced := [region for region in dict.fromkeys(unplaced) if region != ANY_REGION]:
        how = "Write the country too, as in Frankfurt, Germany"
        yield f"No --region of an area, such as eu, finds what stands in {_names(unplaced)}. {how}."


def report(refreshed: Refresh, add_new: bool, catalog: Catalog) -> Iterator[str]:
    """The price lists, the prices that change, how many stay, and the prices that match no row."""
    for read in refreshed.lists:
        which = _names([f"{number}" for number in read.without_price])
        empty = f", {len(read.without_price):,} without a price (line {which})" if which else ""
        broken = f", {len({fault.line for fault in read.faults}):,} broken" if read.faults else ""
        yield " ".join([f"{read.where}: {read.title}, {count(read.n_lines, 'line')}{empty}{broken}.", *read.notes])
    yield ""
    yield from _changes(refreshed.changes, ("instance",))
    if (counted := _counts(refreshed.changes)) or not refreshed.brought:
        yield f"Prices: {counted or 'none for a row of the catalogs'}."
    if older := [change for change in refreshed.changes if change.what == "older"]:
        n_known = sum(not change.touches_row for change in older)
        already = f" ({n_known:,} there already)" if n_known else ""
        names = _names(
            [f"{change.instance} {change.purchase} {_usd(change.new_usd)} of {change.new_as_of}" for change in older]
        )
        yield f"{count(len(older), 'price')} older than the catalog's, which stays; kept as history{already}: {names}."
    if refreshed.dropped:
        n_dropped = count(len(refreshed.dropped), "price")
        yield f"{n_dropped} of the old region dropped from moved rows: {_names(refreshed.dropped)}."
    if refreshed.n_other_regions:
        yield f"{count(refreshed.n_other_regions, 'line')} of other regions than --region names."
    of_pairs = [change for change in refreshed.of_regions if add_new or not change.is_new_pair]
    if of_pairs:
        yield ""
        yield from _changes(of_pairs, ("instance", "region"))
        n_older = sum(change.what == "older" for change in of_pairs)
        older_too = [f"{n_older:,} older than the catalog's, which stays"] * (n_older > 0)
        yield f"Prices of other regions than a row's own: {', '.join(filter(None, [_counts(of_pairs), *older_too]))}."
    if pairs := dict.fromkeys(
        (change.instance, change.new_region) for change in refreshed.of_regions if change.is_new_pair
    ):
        names = _names([f"{instance} in {region}" for instance, region in pairs])
        yield f"{count(len(pairs), 'new pair')} of type and region{_ADDED[add_new]}: {names}."
    if refreshed.not_in_lists:
        yield f"{count(len(refreshed.not_in_lists), 'catalog row')} not in the lists: {_names(refreshed.not_in_lists)}."
    for rows_found, added in ((refreshed.brought, " of your own"), (refreshed.new, _ADDED[add_new])):
        if rows_found:
            names = _names([f"{row.id} ({row.gpu_count}x {row.gpu}, {row.region})" for row in rows_found])
            yield f"{count(len(rows_found), 'new row')}{added}: {names}."
    yield from _left_out_by_default(refreshed.brought, catalog)
    by_why: dict[str, list[str]] = {}  # what prices no row, by reason
    for left in refreshed.left:
        name = f"{left.provider or left.offer.provider} {left.named or left.offer.name}"
        by_why.setdefault(left.why, []).append(name)
    if by_why:
        yield "Not matched, and left alone:"
    reasons = sorted(by_why.items(), key=lambda pair: -len(pair[1]))
    for why, lines in reasons[:MOST_ROWS]:
        yield f"  {count(len(lines), 'line')}: {why} ({_names(list(dict.fromkeys(lines)))})"
    if len(reasons) > MOST_ROWS:
        yield f"  and {len(reasons) - MOST_ROWS:,} more reasons; --json has all"


def _changes(changes: Sequence[Change], names: tuple[str, ...]) -> Iterator[str]:
    """A table of the prices that changed, and an empty line; nothing where none did."""
    other = [change for change in changes if change.what in ("changed", "added", "moved")]
    if not other:
        return
    rows = [(*names, "purchase", "old $/h", "new $/h", "change", "old date", "new date")]
    for change in other[:MOST_ROWS]:
        old, new = (f" {change.old_region}", f" {change.new_region}") if change.what == "moved" else ("", "")
        place = (change.instance, change.new_region)[: len(names)]
        prices = _usd(change.old_usd), _usd(change.new_usd), _percent(change.share)
        rows.append((*place, change.purchase, *prices, (change.old_as_of or "–") + old, change.new_as_of + new))
    yield table(rows, right=tuple(range(len(names) + 1, len(names) + 4)), optional=(len(names) + 4, len(names) + 5))
    if len(other) > MOST_ROWS:
        yield f"and {len(other) - MOST_ROWS:,} more; --json has all"
    yield ""


def _counts(changes: Sequence[Change]) -> str:
    """The number of prices for each kind of change."""
    n_of = Counter(change.what for change in changes)
    return ", ".join(f"{n_of[kind]:,} {words}" for kind, words in _WORDS_OF_CHANGE.items() if n_of[kind])


def _usd(value: float | None) -> str:
    return "–" if value is None else f"{value:,.10g}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:+.1%}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(shown(name, 80) for name in names[:MOST_NAMES]) + more


@click.group(cls=Group)
def catalog() -> None:
    """Make entries for the catalogs, and refresh their prices.

    \b
    Examples:
      sheetgen catalog import config.json
      sheetgen catalog import Qwen3-8B/ --to my-catalogs
      sheetgen catalog prices aws.csv --as-of 2026-11-20 --to my-catalogs
    """


@catalog.command("import")
@click.argument("config", metavar="CONFIG")
@click.option("--id", "model_id", metavar="ID", help="Id of the entry. Default: from the name.")
@click.option("--name", metavar="NAME", help="Name of the model. Default: that of the file, folder or repository.")
@click.option("--out", metavar="FILE", help="Write the entry to this file.")
@click.option("--to", metavar="DIR", help="Write it into a catalog folder: DIR/models/ID.yaml.")
@click.option("--force", is_flag=True, help="Overwrite the file if there is one.")
@common
def import_model(
    config: str,
    model_id: str | None,
    name: str | None,
    out: str | None,
    to: str | None,
    force: bool,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
) -> None:
    """A model entry from a Hugging Face config, as YAML on stdout.

    CONFIG is a config.json, a folder with one, or ORG/NAME on Hugging Face (needs huggingface_hub; only
    config.json and hf_quant_config.json are fetched). No code of the model is run. What cannot be counted is named and
    refused.

    \b
    Examples:
      sheetgen catalog import config.json
      sheetgen catalog import ./Qwen3-8B --to my-catalogs
      sheetgen catalog import Qwen/Qwen3-8B --out qwen3-8b.yaml
    """
    from sheetgen.catalog.families import FamilyFile
    from sheetgen.importer.config_reader import fetch_config, is_hub_id
    from sheetgen.importer.model_entry import import_config, import_file, write_yaml

    if out and to:
        raise click.UsageError("--out and --to exclude each other.")
    if model_id is None and out is not None and Path(out).suffix == ".yaml":
        model_id = Path(out).stem
    families = catalog.file(FamilyFile)
    if is_hub_id(config):
        fields, beside = fetch_config(config)
        name = name or config.split("/")[1]
        model = import_config(
            fields, name=name, hf_id=config, model_id=model_id, where=config, beside=beside, families=families
        )
    else:
        model = import_file(config, name=name, model_id=model_id, families=families, pipes=True)[0]
    target = Path(to, "models", f"{model.id}.yaml") if to else Path(out) if out else None
    text = write_yaml(model)
    if model.id in catalog.ids("models"):
        note(f"{model.id} is in the catalogs already. In a folder of --catalogs this entry takes its place.", quiet)
    if target is not None:
        if not (force or may_be_written(target, text.encode())):
            raise CatalogError(f"{shown(target, 200)}: is there already, and other. Overwrite it with --force.")
        write_files({target: text.encode()})
    if as_json:
        print_json(model.model_dump(mode="json"))
    elif target is None:
        say(text.rstrip("\n"), verbatim=True)
    elif not quiet:
        say(f"{target}: written.{_next_step(to, ' Now write the index anew: sheetgen check --write-index.')}")


def _next_step(to: str | None, in_shipped: str = "") -> str:
    """The sentence on what to do with a file that was written into the folder `to`; `in_shipped`: that sentence where
    the folder is of the shipped catalogs."""
    from sheetgen.catalog import default_folder

    if to is None:
        return ""
    return in_shipped if Path(to).resolve() == default_folder().resolve() else f" Use it with --catalogs {to}."


@catalog.command()
@click.argument("lists", nargs=-1, required=True, metavar="FILE_OR_URL...")
@click.option(
    "--to",
    metavar="DIR",
    help="Write what changes into a catalog folder: DIR/instances/PROVIDER.yaml and DIR/regions/PROVIDER.yaml.",
)
@click.option("--as-of", metavar="DATE", help="Day when the prices were read, for lists that do not say one.")
@click.option("--provider", metavar="NAME", help="Whose prices they are, of a list of your own that does not say.")
@click.option(
    "--usd-per",
    multiple=True,
    metavar="CURRENCY=RATE",
    help="Your rate of another currency: the US dollars for one unit of it, EUR=1.09 where 1 EUR is 1.09 US dollars "
    "(--fx-rate of an answer is the other way). Kept in the source of each price.",
)
@click.option("--sheet", metavar="NAME", help="The sheet of an Excel workbook with prices on several.")
@click.option(
    "--region",
    metavar="REGION",
    help="Move rows to this region and leave others out. Default: each row in its own, other regions in their file.",
)
@click.option(
    "--add-new",
    is_flag=True,
    help="Add what the catalogs do not have: types, where a list says their GPU and how many; types in more regions.",
)
@click.option(
    "--skip-broken", is_flag=True, help="Leave out lines that are broken, and say which. Default: refuse all."
)
@click.option(
    ACCEPT, is_flag=True, help="Take implausible prices: far from those before, or from what any provider takes."
)
@click.option("--dry-run", is_flag=True, help="Write nothing, even with --to.")
@common
def prices(
    lists: tuple[str, ...],
    to: str | None,
    as_of: str | None,
    region: str | None,
    provider: str | None,
    usd_per: tuple[str, ...],
    sheet: str | None,
    add_new: bool,
    skip_broken: bool,
    accept_large_changes: bool,
    dry_run: bool,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
) -> None:
    """Refresh prices of instances, or of hosted tokens, from price lists, and show what changes. Writes only with --to.

    A list is a CSV, Excel (.xlsx) or JSON file, or a web address that is fetched when named here (http or https), in
    one of six forms, known by its columns: AWS on demand, Azure on demand, GCP accelerators, neocloud offerings, AWS
    Capacity Blocks, commitments; or a list of your own. A line prices the catalog's row of that type and region, or of
    that provider and GPU; what is not certain is listed, never guessed. The price that is replaced stays in the row as
    history (`sheetgen show ID`); one that is older than the catalog's becomes history itself. A line of another region
    than the row's goes to the provider's file of regions, where --region of recommend finds it; there the newest price
    holds, without history. A type in a region where the catalogs have no price of it comes in only by --add-new:
    public lists price machines that are not there.

    \b
    Columns that a list must have:
      AWS       region, instance_type, on_demand_usd_hr, accelerator_count,
                accelerator_name
      Azure     region, instance_type, on_demand_usd_hr
      GCP       region, machine_type, on_demand_usd_hr, spot_usd_hr,
                month_1y_cud_usd, month_3y_cud_usd
      neocloud  provider_id, gpu_model, vram_gb, interconnect, tier, is_spot,
                price_usd_hour
      Capacity Blocks   region, instance_type, capacity_block_usd_hr
      commitments       provider, instance_type, region, purchase,
                usd_per_hour, kind
      your own  provider, instance type, gpu, gpu count, region, price per
                hour, currency, date

    source and source_date, the day when a line was read, are taken from a list that has them.

    Columns of a list of your own may have other names (API name, accelerator, Anzahl GPUs, $/GPU/hr, spot price, price
    per month), stand under a title, and be parted by commas, semicolons or tabs; 1.234,56 € is an amount. What a title
    says of all prices (per GPU and month, in EUR) is read; what it cannot be read as is refused. A type of the catalogs
    needs no GPU, and --provider stands for its column. An unknown provider is created. Other currencies need
    your rate (--usd-per). Such rows take part in every answer with --catalogs, without --providers.

    A list of hosted tokens (model, provider, input_usd_per_token, output_usd_per_token; where it has them
    cache_read_usd_per_token, max_input_tokens, source, deprecation_date, and source_date, the day when a line was
    read) stands alone and takes the place of hosted.yaml. A name counts where it reads like one model of the catalogs,
    or hosted.yaml says what it means. No answer names a host without a source page.

    \b
    Examples:
      sheetgen catalog prices aws.csv --as-of 2026-11-20
      sheetgen catalog prices aws.csv gcp.csv --as-of 2026-11-20 --to my-catalogs
      sheetgen catalog prices https://example.com/neocloud.csv --to my-catalogs --add-new
      sheetgen catalog prices aws.csv --as-of 2026-11-20 --region us-gov-west-1 --to gov-catalogs
      sheetgen catalog prices offer.xlsx --usd-per EUR=1.1 --as-of 2026-11-20 --to my-catalogs
      sheetgen catalog prices hosted.csv --as-of 2026-11-28 --to my-catalogs
    """
    from sheetgen.catalog.prices.hosted_list import (
        HostedRefresh,
        hosted_report,
        hosted_text,
        read_hosted,
        refresh_hosted,
    )
    from sheetgen.catalog.prices.own_list import Stated, usd_per_currency
    from sheetgen.catalog.prices.refresh import files, read_lists, refresh
    from sheetgen.catalog.prices.region_files import region_files
    from sheetgen.question.parse import as_of_date

    day = as_of_date(as_of).isoformat() if as_of is not None else None
    if day is not None and day > as_of_date(None).isoformat():
        note(f"--as-of {day} is after today: until then, prices read earlier will not replace these.", quiet)
    target = None if to is None else Path(to)
    laid_over = [folder.path.resolve() for folder in catalog.folders]
    if target and target.is_dir() and target.resolve() not in laid_over:
        catalog.lay_over(target)  # what it has from an earlier run is what changes
    if n_addresses := sum("://" in place for place in lists):
        note(f"fetching {count(n_addresses, 'price list')} ...", quiet)
    stated = Stated((provider or "").strip(), sheet, usd_per_currency(usd_per))
    hosted, read = read_hosted(lists, sheet)
    refreshed: Refresh | HostedRefresh
    if hosted is not None:
        refreshed = refresh_hosted(catalog, hosted, day, skip_broken)
        written, doubts = hosted_text(refreshed.file, target) if target else {}, refreshed.doubts
    else:
        refreshed = refresh(catalog, read_lists(lists, stated, read), day, region, skip_broken)
        rows = [*refreshed.changed, *refreshed.brought, *(refreshed.new if add_new else ())]
        of_regions = [change for change in refreshed.of_regions if add_new or not change.is_new_pair]
        written = files(catalog, target, rows) | region_files(catalog, target, of_regions) if target else {}
        doubts = (*refreshed.doubts, *(refreshed.new_doubts if add_new else ()))
    for fault in refreshed.skipped:
        say(f"{fault} {'Both lines skipped' if fault.is_pair else 'Skipped'}.", err=True)
    if doubts and target and not accept_large_changes:
        n = count(len(doubts), "implausible price")
        look = f"{n}: look at the unit and the column. Nothing was written. {ACCEPT} takes them."
        raise CatalogError(*(f"{doubt}." for doubt in doubts[:MOST_ROWS]), look)
    paths = list(map(str, written))
    lost = [path for path, text in written.items() if path.is_file() and _n_comments(path) > _n_comments(text)]
    if not dry_run:
        write_files({path: text.encode() for path, text in written.items()}, "Choose another folder with --to.")
    if as_json:
        of_list = _hosted_json(refreshed) if isinstance(refreshed, HostedRefresh) else _json(refreshed, add_new)
        print_json({**of_list, "large_changes": list(doubts), "written": [] if dry_run else paths})
        return
    if quiet and target:
        return
    for line in (
        hosted_report(refreshed) if isinstance(refreshed, HostedRefresh) else report(refreshed, add_new, catalog)
    ):
        say(line)
    if doubts:
        taken = "taken as they are" if accept_large_changes else f"taken with {ACCEPT} alone"
        say(f"{count(len(doubts), 'implausible price')}, {taken}:")
        say(
            "\n".join(
                [
                    *(f"  {doubt}" for doubt in doubts[:MOST_ROWS]),
                    *([f"  and {len(doubts) - MOST_ROWS:,} more; --json has all"] * (len(doubts) > MOST_ROWS)),
                ]
            )
        )
    if target is None:
        say("Nothing was written. --to DIR writes the rows that change into a folder for --catalogs.")
    elif not paths:
        say("Nothing to write.")
    elif dry_run:
        say(f"Nothing was written (--dry-run). Without it: {', '.join(paths)}.")
    else:
        say(f"{', '.join(paths)}: written.{_next_step(to)}")
    for path in lost:
        say(f"{path}: the comments below its first lines are not kept.")


def _n_comments(text: Path | str) -> int:
    """The number of comment lines in a file, or in a text that is to be written."""
    text = text.read_text(encoding="utf-8-sig") if isinstance(text, Path) else text
    return sum(line.lstrip().startswith("#") for line in text.splitlines())


_OF_CHANGE = {  # keys of --json, and what each has of a change
    "instance": "instance", "purchase": "purchase", "what": "what", "old_usd_per_hour": "old_usd",
    "new_usd_per_hour": "new_usd", "change_fraction": "share", "old_as_of": "old_as_of", "new_as_of": "new_as_of",
    "old_region": "old_region", "region": "new_region", "at": "at",
}  # fmt: skip


def _hosted_json(refreshed: HostedRefresh) -> Json:
    def record(model: str, price: HostedPrice) -> Json:
        return {"model": model, **price.model_dump(mode="json")}

    return {
        "list": refreshed.where,
        "n_lines": refreshed.n_lines,
        "n_matched": refreshed.n_matched,
        "read_on": refreshed.file.read_on,
        "changed": [
            {"before": before.model_dump(mode="json"), **record(model, now)} for model, before, now in refreshed.changed
        ],
        "new": [record(*hosted_price) for hosted_price in refreshed.added],
        "gone": [record(*hosted_price) for hosted_price in refreshed.gone],
        "left_out": {reason: list(names) for reason, names in refreshed.left_out.items()},
        "skipped": [str(fault) for fault in refreshed.skipped],
    }


def _change_data(change: Change) -> Json:
    return {key: getattr(change, name) for key, name in _OF_CHANGE.items()}


def _json(refreshed: Refresh, add_new: bool) -> Json:
    changes = [change for change in refreshed.changes if change.what != "unchanged"]
    return {
        "lists": [
            {
                "list": read.where,
                "format": read.title,
                "n_lines": read.n_lines,
                "n_without_price": len(read.without_price),
            }
            for read in refreshed.lists
        ],
        "changes": [_change_data(change) for change in changes],
        "n_unchanged": len(refreshed.changes) - len(changes),
        "dropped": list(refreshed.dropped),
        "regions": [
            {**_change_data(change), "is_new_pair": change.is_new_pair}
            for change in refreshed.of_regions
            if change.what != "unchanged"
        ],
        "n_other_regions": refreshed.n_other_regions,
        "not_in_lists": list(refreshed.not_in_lists),
        "new": [
            {"id": row.id, "added": added, **row.model_dump(mode="json")}
            for rows, added in ((refreshed.brought, True), (refreshed.new, add_new))
            for row in rows
        ],
        "not_matched": [
            {
                "provider": left.provider or left.offer.provider,
                "name": left.offer.name,
                "at": left.offer.at,
                "reason": left.why,
            }
            for left in refreshed.left
        ],
        "skipped": [str(fault) for fault in refreshed.skipped],
    }

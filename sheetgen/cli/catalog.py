"""`sheetgen catalog`: new entries for the catalogs, and new prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sheetgen.cli.catalog_prices import prices
from sheetgen.cli.options import common
from sheetgen.cli.output import note, print_json, say, write_files
from sheetgen.errors import CatalogError, shown

if TYPE_CHECKING:
    from sheetgen.catalog import Model


@click.group()
def catalog() -> None:
    """Make entries for the catalogs, and refresh their prices.

    \b
    Examples:
      sheetgen catalog import config.json
      sheetgen catalog import Qwen3-8B/ --to my-catalogs
      sheetgen catalog prices aws.csv --as-of 2026-11-20 --to my-catalogs
    """


catalog.add_command(prices)


@catalog.command("import")
@click.argument("config", metavar="CONFIG")
@click.option("--id", "model_id", metavar="ID", help="Id of the entry. Default: from the name.")
@click.option("--name", metavar="NAME", help="Name of the model. Default: that of the file, folder or repository.")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write the entry to this file.")
@click.option(
    "--to", metavar="DIR", type=click.Path(path_type=Path), help="Write it into a catalog folder: DIR/models/ID.yaml."
)
@click.option("--force", is_flag=True, help="Overwrite the file if there is one.")
@common
def import_model(
    config: str,
    model_id: str | None,
    name: str | None,
    out: Path | None,
    to: Path | None,
    force: bool,
    as_json: bool,
    catalogs: tuple[str, ...],
    quiet: bool,
) -> None:
    """A model entry from a Hugging Face config, as YAML on stdout.

    CONFIG is a config.json, a folder with one, or ORG/NAME on Hugging Face (needs huggingface_hub; only
    config.json is fetched). No code of the model is run. What cannot be counted is named and refused.

    \b
    Examples:
      sheetgen catalog import config.json
      sheetgen catalog import ./Qwen3-8B --to my-catalogs
      sheetgen catalog import Qwen/Qwen3-8B --out qwen3-8b.yaml
    """
    from sheetgen.catalog import Catalog
    from sheetgen.catalog.huggingface import write_yaml

    if out and to:
        raise click.UsageError("--out and --to exclude each other.")
    if model_id is None and out is not None and out.suffix == ".yaml":
        model_id = out.stem
    model = _read(config, name, model_id)
    target = to / "models" / f"{model.id}.yaml" if to else out
    text = write_yaml(model)
    if Catalog(*catalogs).has_model(model.id):
        note(f"{model.id} is in the catalogs already. In a folder of --catalogs this entry takes its place.", quiet)
    if target is not None:
        if target.exists() and not force:
            raise CatalogError(f"{shown(target, 200)}: is there already. Overwrite it with --force.")
        write_files({target: text.encode()})
    if as_json:
        print_json(model.model_dump(mode="json"))
    elif target is None:
        say(text.rstrip("\n"))
    elif not quiet:
        say(f"{target}: written.{next_step(to)}")


def _read(config: str, name: str | None, model_id: str | None) -> Model:
    from sheetgen.catalog.huggingface import fetch_config, import_config, import_file, is_hub_id

    if not is_hub_id(config):
        return import_file(config, name=name, model_id=model_id)[0]
    fields, where = fetch_config(config)
    return import_config(fields, name=name or config.split("/")[1], hf_id=config, model_id=model_id, where=where)


def next_step(to: Path | None) -> str:
    if to is None:
        return ""
    if (to / "index.yaml").is_file():
        return " Now write the index anew: sheetgen check --write-index."
    return f" Use it with --catalogs {to}."

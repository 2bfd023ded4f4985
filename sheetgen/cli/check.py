"""`sheetgen check`: every problem in the catalogs, with file and line."""

from __future__ import annotations

from pathlib import Path

import click

from sheetgen.cli.catalog import count
from sheetgen.cli.options import common
from sheetgen.cli.output import print_json, say
from sheetgen.errors import CatalogError, shown

PARTS = ("models", "gpus", "instances", "engines")


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--write-index", is_flag=True, help="First write the catalogs' index of names anew.")
@common
def check(paths: tuple[str, ...], write_index: bool, as_json: bool, catalogs: tuple[str, ...], quiet: bool) -> None:
    """Validate catalogs: all of them, or only the folders and files named. Exits 1 where there is a problem.

    \b
    Examples:
      sheetgen check
      sheetgen check my-catalogs/
      sheetgen check catalogs/models/llama-3.1-70b.yaml
      sheetgen check --write-index          after adding or renaming a model or GPU
    """
    if write_index:
        from sheetgen.catalog import default_folder
        from sheetgen.catalog import write_index as write

        write(default_folder())
    problems = list(dict.fromkeys(p for path in paths or (None,) for p in _problems(path, catalogs)))
    files = {p.split(":", 1)[0] for p in problems}
    if as_json:
        print_json({"problems": problems, "n_files": len(files)})
    else:
        for problem in problems:
            say(problem, err=True)
    if problems:
        if not as_json:
            say(f"{count(len(problems), 'problem')} in {count(len(files), 'file')}.", err=True)
        raise SystemExit(1)
    if not as_json and not quiet:
        say("No problem found in " + (", ".join(paths) if paths else "the catalogs") + ".")


def _problems(path: str | None, catalogs: tuple[str, ...]) -> list[str]:
    """The problems of all catalogs, or of the one folder or file at `path`."""
    from sheetgen.catalog import Catalog, default_folder
    from sheetgen.catalog.check import problems_of

    if path is None:
        return problems_of(Catalog(*catalogs))
    target = Path(path)
    folder = _catalog_of(target)
    shipped = folder.resolve() == default_folder().resolve()
    catalog = Catalog(*catalogs) if shipped else Catalog(*catalogs, folder)
    inside = target.resolve().relative_to(folder.resolve()).as_posix()
    prefix = "/".join(("catalogs" if shipped else str(folder).rstrip("/"), *((inside,) if inside != "." else ())))
    return [p for p in problems_of(catalog) if p.startswith((prefix + ":", prefix + "/"))]


def _catalog_of(target: Path) -> Path:
    """The catalog folder that `target` is, or is in."""
    if not target.exists():
        raise CatalogError(f"{shown(target)}: does not exist. Name a catalog folder or a file in one.")
    folder = target if target.is_dir() else target.parent
    if folder.resolve().name in PARTS:
        folder = folder.resolve().parent if folder.is_absolute() else folder.parent
    holds = any((folder / part).is_dir() for part in PARTS) or any(folder.glob("*.yaml"))
    if not holds or (target.is_file() and target.suffix != ".yaml"):
        raise CatalogError(f"{shown(target)}: is no catalog. Name a folder like catalogs/ or a .yaml file in one.")
    return folder

"""`sheetgen list`, `show` and `check`: what the catalogs hold, and every problem in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import command, common, in_either_number
from sheetgen.cli.output import answer, columns, note, print_json, say, table
from sheetgen.errors import CatalogError, UnknownNameError, did_you_mean, shown, unreadable
from sheetgen.units import count, number_text

if TYPE_CHECKING:
    from sheetgen.answer.answer_record import Json

    Listed = tuple[Json, list[str]]  # an entry, and its cells
    from sheetgen.catalog import Catalog

# By kind, the columns of a table without --wide, at any width of the terminal; and how their numbers and names are
# written.
SHOWN_COLUMNS = {
    "models": ("id", "n_params", "max_context_tokens", "weight_dtype"),
    "gpus": ("id", "memory_gib", "bandwidth_gb_per_second"),
    "instances": ("id", "gpu_count", "gpu", "on_demand_usd_per_hour"),
    "regions": ("id", "country", "areas", "n_types"),
    "workloads": ("id", "context_tokens", "input_tokens", "output_tokens", "name"),
    "engines": ("id", "default_version", "gpu_memory_utilization", "block_size", "vendors"),
    "hosts": ("model", "host", "input_usd_per_million", "output_usd_per_million", "read_on", "deprecation_date"),
}
SHORTER: dict[str, Callable[[Any], str]] = {
    "n_params": lambda count: f"{count / 1e9:,.2f} B",
    "gpu": lambda name: name.partition("-")[2],  # without its vendor
}


class Kind(click.Choice[str]):
    """A kind of entries, in the plural or the singular."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(in_either_number(value, self.choices) or value, param, ctx)


@command("list")
@click.argument("kind", type=Kind(tuple(SHOWN_COLUMNS)))
@click.argument("words", nargs=-1)
@click.option("--wide", is_flag=True, help="Every column, however wide the table is; --json has every one, too.")
@common
def list_entries(kind: str, words: tuple[str, ...], wide: bool, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """Models, GPUs, instances, regions, workloads, engines, or hosts of models; only rows that contain every one of
    WORDS. Of a region: the areas that --region takes, and how many types have a price there.

    \b
    Examples:
      sheetgen list models llama 70b
      sheetgen list gpus nvidia --json
      sheetgen list instances aws h100
      sheetgen list regions eu
      sheetgen list hosts llama-3.1-70b
    """
    listed = [(row, [_cell(value) for value in row.values()]) for row in _rows(kind, catalog)]
    matching = _with_words(listed, words)
    if words and not matching:  # which may name an entry as answers and other tools do: verda/B200 SXM6 x2
        matching = _with_words(listed, [_id_of(kind, word, catalog) for word in words])
    if as_json:
        print_json([row for row, _ in matching])
    elif not matching:
        say(f"No {kind} with {' and '.join(words)}." if words else f"No {kind}.")
    else:
        rows = [row for row, _ in matching]
        head = [name.replace("_", " ") for name in rows[0]]
        if wide:
            drawn, more = table([head, *(cells for _, cells in matching)], _numbers(rows, rows[0]), folds=False), ""
        else:
            drawn, more = _narrow_table(rows, SHOWN_COLUMNS[kind]), f"; --wide has {len(head)} columns"
        say(drawn, verbatim=wide)
        note(f"{len(matching)} {kind}{more}", quiet)


def _with_words(listed: list[Listed], words: Iterable[str]) -> list[Listed]:
    return [(row, cells) for row, cells in listed if all(word.lower() in " ".join(cells).lower() for word in words)]


def _id_of(kind: str, word: str, catalog: Catalog) -> str:
    """The id of the entry of a kind that a word names; the word itself where it names none."""
    entries = {"models": "model", "hosts": "model", "gpus": "gpu", "instances": "instance"}
    try:
        return str(_entry(entries[kind], word, catalog)[1]["id"])
    except (CatalogError, KeyError):
        return word


def _numbers(rows: list[Json], names: Iterable[str]) -> list[int]:
    """The columns among these that hold numbers."""
    return [i for i, name in enumerate(names) if any(isinstance(row[name], (int, float)) for row in rows)]


def _narrow_table(rows: list[Json], names: tuple[str, ...]) -> str:
    """A table of these columns with their headers in several lines; an id that leaves no room stands on a line of its
    own."""
    import textwrap

    cells = [[SHORTER.get(name, _cell)(row[name]) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    words = [name.split("_") for name in names]
    heads = [textwrap.wrap(" ".join(w), max(width, *map(len, w))) for w, width in zip(words, widths, strict=True)]
    height = max(map(len, heads))
    lines = [*zip(*([""] * (height - len(head)) + head for head in heads), strict=True), *cells]
    place = columns() - sum(max(len(line[i]) for line in lines) + 2 for i in range(1, len(names)))
    alone = {i: line[0] for i, line in enumerate(lines) if len(line[0]) > place}
    aligned = table([("" if i in alone else line[0], *line[1:]) for i, line in enumerate(lines)], _numbers(rows, names))
    drawn = aligned.split("\n")
    return "\n".join(text for i, line in enumerate(drawn) for text in ([alone[i]] if i in alone else []) + [line])


def _rows(kind: str, catalog: Catalog) -> Iterator[Json]:
    """Every entry of a kind as the columns of its table."""
    from sheetgen.catalog.engines import load_engine
    from sheetgen.units import GB, GIB, ON_DEMAND

    def fields(entry: object, *names: str) -> Json:
        return {name: getattr(entry, name) for name in names}

    if kind == "models":
        for model in catalog.models():
            yield {
                **fields(model, "id", "name", "aliases"),
                "n_params": model.params.total,
                "n_params_active": model.params.active,
                **fields(model, "max_context_tokens", "weight_dtype", "kind", "confidence"),
            }
    elif kind == "gpus":
        for gpu in catalog.gpus():
            yield {
                **fields(gpu, "id", "name", "aliases", "vendor"),
                "memory_bytes": gpu.memory.engine_bytes,
                "memory_gib": round(gpu.memory.engine_bytes / GIB, 2),
                "memory_basis": gpu.memory.basis,
                "bandwidth_gb_per_second": round(gpu.memory_bandwidth_bytes_per_second / GB, 1),
            }
    elif kind == "instances":
        for instance in catalog.instances():
            price = instance.price(ON_DEMAND)
            yield {
                **fields(instance, "id", "gpu", "gpu_count", "unit", "region"),
                "on_demand_usd_per_hour": price and price.usd_per_hour,
                "price_as_of": price and price.as_of,
                "other_prices": [other.purchase for other in instance.prices if other != price],
            }
    elif kind == "regions":
        for provider, by_region in catalog.regions.by_provider.items():
            for region, types in sorted(by_region.items()):
                listed = catalog.regions.listed(provider, region)
                yield {
                    "id": f"{provider}/{region}",
                    "country": listed and listed.country,
                    "areas": listed.areas if listed else (),
                    "n_types": len(types),
                }
    elif kind == "workloads":
        for load in catalog.workloads():
            yield fields(load, "id", "name", "context_tokens", "input_tokens", "output_tokens", "about")
    elif kind == "hosts":
        from sheetgen.catalog.hosted import HostedPrice, hosted_file

        file = hosted_file(catalog)
        for hosted in file.models:
            for offer in hosted.prices:
                facts = fields(offer, *HostedPrice.model_fields)
                yield {"model": hosted.model, **facts, "read_on": file.day_of(offer)}
    else:
        for engine in (load_engine(catalog, name) for name in sorted(catalog.ids("engines"))):
            yield {
                "id": engine.engine,
                **fields(engine, "name", "default_version"),
                "rules_change_from": [version.from_version for version in engine.versions],
                **fields(engine, "gpu_memory_utilization", "block_size", "vendors"),
            }


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


@command()
@click.argument("name", metavar="ID")
@common
def show(name: str, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """One model, GPU, instance, workload or engine, as its file has it. ID may be any of its names.

    \b
    Examples:
      sheetgen show 70b
      sheetgen show h100
      sheetgen show aws/p5.48xlarge --json
    """
    near = ""
    for kind in ("model", "gpu", "workload", "engine", "instance"):
        try:
            file, entry = _entry(kind, name, catalog)
            break
        except UnknownNameError as error:
            near = near or error.near
    else:
        listed = "`sheetgen list models` (gpus, instances, ...) has all."
        raise CatalogError(f"{shown(name)!r} is in no catalog.{near} {listed}")
    where = catalog.read_document(file).where
    lines = (f"{kind}, in {where}", "", *_field_lines(entry))
    answer(as_json, {"kind": kind, "file": where, **entry}, lambda: "\n".join(lines))


def _entry(kind: str, name: str, catalog: Catalog) -> tuple[str, Json]:
    """The file and the fields of an entry. Raises UnknownNameError where there is none of that kind."""
    key = name.strip().lower()
    if kind == "model":
        from sheetgen.importer.model_names import resolve_model
        from sheetgen.question.deployment import model_columns
        from sheetgen.sizing.kv_cache import kv_bytes_per_token, state_bytes_per_sequence

        model = resolve_model(name, catalog)[0]
        columns = model_columns(model, model.weight_dtype, model.kv_cache_dtype)
        derived = {
            f"kv_bytes_per_token at {model.kv_cache_dtype}": kv_bytes_per_token.of(columns),
            "state_bytes_per_sequence": state_bytes_per_sequence.of(columns),
        }
        return f"models/{model.entry_id}.yaml", {**model.model_dump(mode="json"), "derived": derived}
    if kind == "gpu":
        gpu = catalog.gpu(name)
        return f"gpus/{gpu.entry_id}.yaml", gpu.model_dump(mode="json")
    if kind == "workload":
        loads = {load.id: load for load in catalog.workloads()}
        if key not in loads:
            raise UnknownNameError(f"workload {shown(name)!r} is not in the catalogs.", did_you_mean(name, loads))
        return "workloads.yaml", loads[key].model_dump(mode="json")
    if kind == "engine":
        from sheetgen.catalog.engines import load_engine

        if key not in catalog.ids("engines"):
            raise UnknownNameError(f"engine {shown(name)!r} is not in the catalogs.", "")
        engine = load_engine(catalog, key).model_dump(mode="json")
        return f"engines/{key}.yaml", {**engine, "speed": _speed(key, catalog)}
    instance = catalog.instance(name)
    return f"instances/{instance.provider}.yaml", {"id": instance.id, **instance.model_dump(mode="json")}


def _speed(engine: str, catalog: Catalog) -> Json:
    """The constants of an engine's speed by generation of GPUs, and those for all other GPUs."""
    from sheetgen.catalog.engines import SpeedFile

    speed = catalog.file(SpeedFile)
    name = speed.same_as.get(engine, engine)
    constants: Json = {"file": catalog.read_document(SpeedFile.file_name).where}
    if name != engine:
        constants["as"] = f"{name}: {speed.same_as_source}"
    for cell in (c for c in speed.cells if c.engine == name):
        measured = {
            "n_rows": cell.n_rows,
            "n_configurations": cell.n_configurations,
            "measured_gpus": list(cell.measured_gpus),
        }
        constants[cell.generation] = {**measured, **cell.constants.model_dump(mode="json")}
    constants["other GPUs"] = {"source": speed.default_source, **speed.default.model_dump(mode="json")}
    return constants


def _field_lines(value: Any, indent: str = "") -> Iterator[str]:
    """Nested fields, a line each; within a list, a mapping of plain values stands on one line."""
    for key, item in value.items() if isinstance(value, dict) else ((None, v) for v in value):
        label = f"{indent}{key}: " if key is not None else f"{indent}- "
        if (isinstance(item, dict) and item and key is not None) or (
            isinstance(item, list) and any(isinstance(x, (dict, str)) and len(str(x)) > 40 for x in item)
        ):
            yield label.rstrip()
            yield from _field_lines(item, indent + "  ")
        else:
            past = item.get("history", ()) if isinstance(item, dict) else ()  # of a price: what it was before
            yield label + _plain({k: v for k, v in item.items() if k != "history"} if isinstance(item, dict) else item)
            for price in past:
                yield f"{indent}  before: {_plain({k: v for k, v in price.items() if v is not None})}"


def _plain(value: object) -> str:
    if value is None or value == {} or value == []:
        return "–"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_plain(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value)
    return f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)


@command()
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--write-index", "index_first", is_flag=True, help="First write the catalogs' index of names anew.")
@partial(common, checks=False)
def check(paths: tuple[str, ...], index_first: bool, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """Validate catalogs: all of them, or only the folders and files named. Exits 1 where there is a problem.

    \b
    Examples:
      sheetgen check
      sheetgen check my-catalogs/
      sheetgen check catalogs/models/llama-3.1-70b.yaml
      sheetgen check --write-index    after adding or renaming a model or GPU
    """
    if index_first:
        from sheetgen.catalog import default_folder, write_index

        write_index(default_folder())
    problems: dict[str, str] = {}
    remarks: dict[str, str] = {}
    for path in paths or (None,):
        faults, doubts = _problems(path, catalog)
        problems |= faults
        remarks |= doubts
    n_files = len(set(problems.values()))
    if not (as_json or quiet or problems):
        for remark in remarks:
            say(remark, err=True)
    if as_json:
        print_json({"problems": list(problems), "n_files": n_files, "remarks": list(remarks)})
    elif problems:
        say("\n".join([*problems, f"{count(len(problems), 'problem')} in {count(n_files, 'file')}."]), err=True)
    elif not quiet:
        say(f"No problem found in {', '.join(paths) if paths else 'the catalogs'}.")
    if problems:
        raise SystemExit(1)


def _problems(path: str | None, catalog: Catalog) -> tuple[dict[str, str], dict[str, str]]:
    """The problems of all catalogs, or of the one folder or file at `path`, each with its file; and where there is none
    the implausible prices."""
    from sheetgen.catalog import default_folder
    from sheetgen.catalog.check import faults_of, remarks_of
    from sheetgen.catalog.load import PARTS

    catalog, chosen, inside = copy(catalog), None, "."
    catalog.folders = [*catalog.folders]
    if path is not None:
        target = Path(path)
        try:
            target.stat()
        except OSError as error:
            raise CatalogError(f"{shown(target)}: {unreadable(error)}.") from error
        folder = target if target.is_dir() else target.parent
        if folder.resolve().name in PARTS:
            folder = folder.resolve().parent if folder.is_absolute() else folder.parent
        holds = any((folder / part).is_dir() for part in PARTS) or any(folder.glob("*.yaml"))
        if not holds or (target.is_file() and target.suffix != ".yaml"):
            raise CatalogError(f"{shown(target)}: is no catalog. Name a folder like catalogs/ or a .yaml file in one.")
        shipped = folder.resolve() == default_folder().resolve()
        chosen = catalog.folders[0] if shipped else catalog.lay_over(folder)
        # A link to a file elsewhere is the file of its own name here.
        place = target.resolve() if target.is_dir() else target.parent.resolve() / target.name
        inside = place.relative_to(folder.resolve()).as_posix()
    faults = faults_of(catalog)
    problems, remarks = (
        {
            problem: f"{folder_read.shown_as}/{file}"
            for folder_read, file, problem in many
            if chosen is None or (folder_read is chosen and (inside == "." or f"{file}/".startswith(f"{inside}/")))
        }
        for many in (faults, () if faults else remarks_of(catalog))
    )
    return problems, remarks

"""`sheetgen explain`: how a number came about, with the values put in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import DEPLOYMENT, common, load_options, text_options
from sheetgen.cli.output import print_json

if TYPE_CHECKING:
    from sheetgen.explain import Step


@click.command()
@click.argument("quantity", required=False)
@click.option("--model", metavar="NAME", help="Model by catalog id, alias or Hugging Face id.")
@load_options
@text_options(*DEPLOYMENT)
@common
def explain(
    quantity: str | None, model: str | None, as_json: bool, catalogs: tuple[str, ...], quiet: bool, **inputs: Any
) -> None:  # fmt: skip
    """The derivation of any quantity of `size`: formula, values, result, and where every input is from.

    Without QUANTITY it lists all quantities, in the order in which they come about.

    \b
    Examples:
      sheetgen explain
      sheetgen explain kv_bytes_per_token --model 70b
      sheetgen explain weights_bytes_per_gpu --model 405b --weight-dtype fp8 --tensor-parallel-size 8 --json
    """
    from sheetgen import explain as engine

    if quantity is None:
        _list_all(as_json)
        return
    name = engine.find(quantity)
    if model is None:
        raise click.UsageError("Missing option '--model'.")
    from sheetgen.api import sized_point
    from sheetgen.catalog import Catalog

    catalog = Catalog(*catalogs)
    asked = {"model": model, **inputs}
    step = engine.Derivation(sized_point(asked, catalog), asked, catalog).step(name)
    if as_json:
        print_json(dataclasses.asdict(step))
        return
    click.echo("\n".join(_text(step)))


def _list_all(as_json: bool) -> None:
    from sheetgen.cli.output import table
    from sheetgen.explain import quantities

    rows = quantities()
    if as_json:
        print_json([{"name": n, "label": label, "summary": s} for n, label, s in rows])
        return
    shortened = [(n, label, s if len(s) <= 90 else s[:89].rsplit(" ", 1)[0] + " …") for n, label, s in rows]
    click.echo(table(("QUANTITY", "LABEL", "WHAT IT IS"), shortened))


def _text(step: Step) -> Iterator[str]:
    yield f"{step.label} ({step.name})"
    yield step.about
    if step.reading:
        yield f"({step.reading})"
    yield ""
    if step.formula:
        yield f"  = {step.formula}"
        yield f"  = {step.with_values}"
    yield f"  = {_value(step)}"
    told = Told(set(), {})
    if step.inputs:
        yield ""
        yield "FROM"
        for one in step.inputs:
            yield from told.inputs(one, "  ", step.reading)
    if not step.formula:
        yield f"  [{step.origin}] {step.about}"
        told.note(step)
    yield ""
    if step.formula and step.source:
        yield f"Source of the formula: {step.source}"
    for source, places in told.sources.items():
        yield f"{', '.join(dict.fromkeys(places))}: {source}"


@dataclasses.dataclass
class Told:
    """What was said already: quantities by name and reading, and the places that each source stands behind."""

    seen: set[tuple[str, str]]
    sources: dict[str, list[str]]

    def note(self, step: Step) -> None:
        """Keep a given number's source for the end, once for all numbers that have it."""
        if step.source and not step.formula:
            place = step.about.split(",")[0]
            self.sources.setdefault(step.source, []).append(
                place.rsplit(":", 1)[0] if ":" in place else place
            )

    def inputs(self, step: Step, indent: str, reading: str) -> Iterator[str]:
        """An input and, below it, what it was computed from; told once."""
        head = f"{indent}{step.name} = {_value(step)}"
        key = (step.name, step.reading)
        if key in self.seen:
            yield f"{head}  [{step.origin}, see above]"
            return
        self.seen.add(key)
        self.note(step)
        if step.formula:
            other = f", {step.reading}" if step.reading and step.reading != reading else ""
            yield f"{head}  [computed{other}] = {step.formula}"
        else:
            yield f"{head}  [{step.origin}] {step.about}"
        for one in step.inputs:
            yield from self.inputs(one, indent + "  ", step.reading or reading)


def _value(step: Step) -> str:
    value = step.value
    if value != value:
        return "none"
    text = f"{value:,}" + (f" {step.unit}" if step.unit else "")
    if step.unit == "bytes" and value >= 2**20:
        text += f" ({value / 2**30:,.2f} GiB)"
    return text

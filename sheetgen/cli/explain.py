"""How a number came about as `sheetgen explain` prints it: with the values put in, or as a table of all quantities."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from sheetgen.api import ONE_LOAD, recommended, sized_point
from sheetgen.catalog import Catalog
from sheetgen.cli.options import MARKET, rows_of
from sheetgen.cli.output import number_text, table
from sheetgen.errors import ScenarioError
from sheetgen.explain import CHOICE_QUANTITIES, ChoiceDerivation, Derivation, Step, elsewhere, quantities
from sheetgen.scenario.question import OPTIONS


def derivation(name: str, options: Mapping[str, Any], catalog: Catalog) -> Step:
    """How `name` comes about. Raises ScenarioError for inputs that would be accepted and ignored, too."""
    if name in CHOICE_QUANTITIES:
        renamed = {{"gpu": "gpus"}.get(k, k): v for k, v in options.items()}
        ignored = [n for n in renamed if n not in OPTIONS and n not in ONE_LOAD]
        why = "is of a recommendation, which chooses by itself:"
    else:
        ignored = [n for n, *_ in rows_of(*MARKET) if n in options]
        why = "is of one deployment and does not depend on"
    if ignored:
        raise ScenarioError(f"{name} {why} {', '.join(ignored)}. Leave it out.")
    if name in CHOICE_QUANTITIES:
        return ChoiceDerivation(recommended(renamed, catalog), renamed).step(name)
    return Derivation(sized_point(options, catalog), options).step(name)


def every_quantity() -> str:
    rows = [(n, label, s if len(s) <= 90 else s[:89].rsplit(" ", 1)[0] + " …") for n, label, s in quantities()]
    return table([("QUANTITY", "LABEL", "WHAT IT IS"), *rows])


def record(top: Step) -> dict[str, Any]:
    """A derivation as plain values. What stands above, or belongs to another question, stands without its inputs;
    `see` then says where they are."""
    seen, others = set[tuple[str, str]](), elsewhere(top.name)
    shown = [one.name for one in dataclasses.fields(Step) if one.name not in ("inputs", "file")]

    def one_record(step: Step) -> dict[str, Any]:
        key = (step.name, step.reading)
        see = "above" if key in seen else f"sheetgen explain {step.name}" if step.name in others else ""
        see = see if step.inputs else ""
        seen.add(key)
        inputs = [] if see else [one_record(one) for one in step.inputs]
        value = None if step.value != step.value else step.value  # NaN is no JSON
        return {**{name: getattr(step, name) for name in shown}, "value": value, "see": see, "inputs": inputs}

    return one_record(top)


def text(top: Step) -> str:
    """The formula, the same with the values put in, what each input was computed from, and the sources."""
    seen, others = set[tuple[str, str]](), elsewhere(top.name)
    given: list[Step] = []  # numbers from elsewhere: their sources stand at the end, once for all that have it

    def inputs(step: Step, indent: str, reading: str) -> Iterator[str]:
        """An input and, below it, what it was computed from; once."""
        head, key = f"{indent}{step.name} = {_value(step)}", (step.name, step.reading)
        if key in seen:
            yield f"{head}  [{step.origin}, see above]"
            return
        seen.add(key)
        if step.name in others:
            yield f"{head}  [{step.origin}; sheetgen explain {step.name}]"
            return
        given.append(step)
        if step.formula:
            other = f", {step.reading}" if step.reading and step.reading != reading else ""
            yield f"{head}  [computed{other}] = {step.formula}"
        else:
            yield f"{head}  [{step.origin}] {step.about}"
        for one in step.inputs:
            yield from inputs(one, indent + "  ", step.reading or reading)

    lines = [f"{top.label} ({top.name})", top.about, *([f"({top.reading})"] if top.reading else []), ""]
    if top.formula:
        lines += [f"  = {top.formula}", f"  = {top.with_values}"]
    lines.append(f"  = {_value(top)}")
    if top.inputs:
        lines += ["", "FROM", *(line for one in top.inputs for line in inputs(one, "  ", top.reading))]
    if not top.formula:
        lines.append(f"  [{top.origin}] {top.about}")
        given.append(top)
    lines.append("")
    if top.formula and top.source:
        lines.append(f"Source of the formula: {top.source}")
    places: dict[str, dict[str, None]] = {}
    for step in given:
        if step.source and not step.formula:
            places.setdefault(step.source, {})[step.file] = None
    return "\n".join([*lines, *(f"{', '.join(files)}: {source}" for source, files in places.items())])


def _value(step: Step) -> str:
    value = step.value
    if value is None or value != value:
        return "none"
    if isinstance(value, str):
        return value
    text = number_text(value) + (f" {step.unit}" if step.unit else "")
    if step.unit == "bytes" and value >= 2**20:
        text += f" ({value / 2**30:,.2f} GiB)"
    if step.unit == "seconds" and 0 < value < 1:
        text += f" ({number_text(float(f'{1000 * value:.4g}'))} ms)"
    return text

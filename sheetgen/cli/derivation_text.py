"""How a number came about as `sheetgen explain` prints it: with the values put in, or as a table of all quantities."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from sheetgen.answer.answer_record import Json
from sheetgen.api import ONE_LOAD, recommended, sized_point
from sheetgen.catalog import Catalog
from sheetgen.cli.options import MARKET
from sheetgen.cli.output import columns, table
from sheetgen.errors import ScenarioError
from sheetgen.explain import CHOICE_QUANTITIES, ChoiceDerivation, Derivation, Step, elsewhere, quantities
from sheetgen.question.inputs import asked_in
from sheetgen.question.parse import Options
from sheetgen.question.sheet_question import OPTIONS
from sheetgen.units import number_text


def derivation(name: str, options: Options, catalog: Catalog) -> Step:
    """The derivation of `name`. Raises ScenarioError also for inputs that would be accepted and ignored."""
    if name in CHOICE_QUANTITIES:
        renamed = {{"gpu": "gpus"}.get(k, k): v for k, v in options.items()}
        ignored = [n for n in renamed if n not in OPTIONS and n not in ONE_LOAD]
        why = "is of a recommendation, which chooses by itself:"
    else:
        ignored = [option.asked_as for option in asked_in(*MARKET) if option.asked_as in options]
        why = "is of one deployment and does not depend on"
    if ignored:
        raise ScenarioError(f"{name} {why} {', '.join(ignored)}. Leave it out.")
    if name in CHOICE_QUANTITIES:
        return ChoiceDerivation(recommended(renamed, catalog), renamed).step(name)
    return Derivation(sized_point(options, catalog), options).step(name)


LEAST_SUMMARY = 40  # columns
DEPTH = 2  # of a text: the inputs, and what each follows from


def every_quantity() -> str:
    """Name, label and summary of every quantity; the label before the summary where the terminal lacks the width."""
    rows = [("QUANTITY", "LABEL", "WHAT IT IS"), *quantities()]
    name, label = (max(len(row[i]) for row in rows) for i in (0, 1))
    is_wide = columns() >= name + label + LEAST_SUMMARY
    return table(rows if is_wide else [(n, f"{words}: {about}") for n, words, about in rows])


def record(top: Step, depth: int | None = None) -> Json:
    """A derivation as plain values, to any depth where none is given. A quantity that was shown above, belongs to
    another question or is too deep stands without its inputs; `see` then says where they are."""
    seen, others = set[tuple[str, str]](), elsewhere(top.name)
    shown = [key.name for key in dataclasses.fields(Step) if key.name not in ("inputs", "file")]

    def one_record(step: Step, level: int) -> Json:
        key = (step.name, step.reading)
        see = f"sheetgen explain {step.name}" if step.name in others else "above" if key in seen else ""
        see = see or ("" if depth is None or level < depth else f"--depth {level + 1}")
        see = see if step.inputs else ""
        if not see.startswith("--depth"):
            seen.add(key)
        inputs = [] if see else [one_record(input_step, level + 1) for input_step in step.inputs]
        value = None if step.value != step.value else step.value  # NaN is no JSON
        return {**{name: getattr(step, name) for name in shown}, "value": value, "see": see, "inputs": inputs}

    return one_record(top, 0)


def text(top: Step, depth: int = DEPTH) -> str:
    """The formula, the same with the values put in, `depth` levels of what each input was computed from, and the
    sources."""
    seen, others = set[tuple[str, str]](), elsewhere(top.name)
    deeper: list[tuple[str, str]] = []  # what was met where its inputs would be too deep
    given: list[Step] = []  # numbers from elsewhere: their sources stand at the end, once for all that have it

    def inputs(step: Step, level: int, reading: str) -> Iterator[str]:
        """An input and, below it, what it was computed from; each once."""
        indent = "  " * level
        head, key = f"{indent}{step.name} = {_value(step)}", (step.name, step.reading)
        if key in seen:
            yield f"{head}  [{step.origin}, see above]"
            return
        is_cut = level >= depth and bool(step.inputs)
        if not is_cut:
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
        if is_cut:
            deeper.append(key)
            return
        for input_step in step.inputs:
            yield from inputs(input_step, level + 1, step.reading or reading)

    lines = [f"{top.label} ({top.name})", top.about, *([f"({top.reading})"] if top.reading else []), ""]
    if top.formula:
        lines += [f"  = {top.formula}", f"  = {top.with_values}"]
    lines.append(f"  = {_value(top)}")
    if top.inputs and depth:
        lines += ["", "FROM", *(line for input_step in top.inputs for line in inputs(input_step, 1, top.reading))]
    if not top.formula:
        lines.append(f"  [{top.origin}] {top.about}")
        given.append(top)
    if hidden := ", ".join(dict.fromkeys(key[0] for key in deeper if key not in seen)):
        lines += ["", f"Not shown: what {hidden} came from; --depth {depth + 1} goes on."]
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
    unit = re.sub(r"^([A-Za-z]+)s\b", r"\1", step.unit) if value == 1 else step.unit  # 1 request
    text = number_text(value) + (f" {unit}" if unit else "")
    if step.unit == "bytes" and value >= 2**20:
        text += f" ({value / 2**30:,.2f} GiB)"
    if step.unit == "seconds" and 0 < value < 1:
        text += f" ({number_text(float(f'{1000 * value:.4g}'))} ms)"
    return text

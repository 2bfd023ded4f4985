"""`sheetgen explain`: how a number came about, with the values put in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import DEPLOYMENT, MARKET, command, common, load_options, rows_of, text_options
from sheetgen.cli.output import number_text, print_json, say
from sheetgen.errors import ScenarioError

if TYPE_CHECKING:
    from sheetgen.explain import Step


@command()
@click.argument("quantity", required=False)
@click.option("--model", metavar="NAME", help="Model by catalog id, alias, Hugging Face id, or path of a config.json.")
@load_options
@text_options(*DEPLOYMENT, *MARKET, without="gpus")
@common
def explain(
    quantity: str | None, model: str | None, as_json: bool, catalogs: tuple[str, ...], quiet: bool, **inputs: Any
) -> None:
    """The derivation of any quantity: formula, values, result, and where every input is from.

    Quantities are those of `size`, or of `recommend` (n_replicas, n_instances, monthly_usd ...). Without
    QUANTITY it lists all of them, in the order in which they come about.

    \b
    Examples:
      sheetgen explain
      sheetgen explain kv_bytes_per_token --model 70b
      sheetgen explain weights_bytes_per_gpu --model 405b --weight-dtype fp8 --tensor-parallel-size 8 --json
      sheetgen explain tpot_seconds --model deepseek-r1 --gpu h200 --tensor-parallel-size 8 --users 64
      sheetgen explain monthly_usd --model 70b --context 16k --users 200
    """
    from sheetgen.explain import find
    from sheetgen.explain_choice import CHOICE_QUANTITIES

    if quantity is None:
        _list_all(as_json)
        return
    name = find(quantity, CHOICE_QUANTITIES)
    if model is None:
        raise click.UsageError("Missing option '--model'.")
    options = {k: v for k, v in {"model": model, **inputs}.items() if v is not None}
    step = (_of_choice if name in CHOICE_QUANTITIES else _of_point)(name, options, catalogs)
    if as_json:
        print_json(_record(step, set(), _elsewhere(step.name)))
        return
    say("\n".join(_text(step)))


def _of_point(name: str, options: dict[str, Any], catalogs: tuple[str, ...]) -> Step:
    from sheetgen.api import sized_point
    from sheetgen.catalog import Catalog
    from sheetgen.explain import Derivation

    of_a_choice = [n for n, *_ in rows_of(*MARKET) if n in options]
    _refuse(of_a_choice, f"{name} is of one deployment and does not depend on")
    return Derivation(sized_point(options, Catalog(*catalogs)), options).step(name)


def _of_choice(name: str, options: dict[str, Any], catalogs: tuple[str, ...]) -> Step:
    from sheetgen.api import ONE_LOAD, recommended
    from sheetgen.catalog import Catalog
    from sheetgen.explain_choice import ChoiceDerivation
    from sheetgen.scenario.question import OPTIONS

    renamed = {{"gpu": "gpus", "concurrent_requests": "users"}.get(k, k): v for k, v in options.items()}
    own = [n for n in renamed if n not in OPTIONS and n not in ONE_LOAD]
    _refuse(own, f"{name} is of a recommendation, which chooses by itself:")
    return ChoiceDerivation(recommended(renamed, Catalog(*catalogs)), renamed).step(name)


def _refuse(names: list[str], why: str) -> None:
    """Inputs that would be accepted and ignored are refused."""
    if names:
        raise ScenarioError(f"{why} {', '.join(names)}. Leave it out.")


def _list_all(as_json: bool) -> None:
    from sheetgen.cli.output import table
    from sheetgen.explain import quantities
    from sheetgen.explain_choice import CHOICE_QUANTITIES, FORMULAS

    chosen = (FORMULAS[name] for name in CHOICE_QUANTITIES)
    rows = [*quantities(), *((f.name, f.label, f.summary) for f in chosen)]
    if as_json:
        print_json([{"name": n, "label": label, "summary": s} for n, label, s in rows])
        return
    shortened = [(n, label, s if len(s) <= 90 else s[:89].rsplit(" ", 1)[0] + " …") for n, label, s in rows]
    say(table(("QUANTITY", "LABEL", "WHAT IT IS"), shortened))


def _record(step: Step, seen: set[tuple[str, str]], elsewhere: frozenset[str]) -> dict[str, Any]:
    """A derivation as plain values. What stands above, or belongs to another question, stands without its inputs;
    `see` then says where they are."""
    key = (step.name, step.reading)
    see = "above" if key in seen else f"sheetgen explain {step.name}" if step.name in elsewhere else ""
    see = see if step.inputs else ""
    seen.add(key)
    plain = {one.name: getattr(step, one.name) for one in dataclasses.fields(step) if one.name != "inputs"}
    inputs = [] if see else [_record(one, seen, elsewhere) for one in step.inputs]
    return {**plain, "see": see, "inputs": inputs}


def _elsewhere(name: str) -> frozenset[str]:
    """What a derivation does not go into: under speed, how the memory's quantities came about."""
    from sheetgen import estimate
    from sheetgen.explain import DESCRIBED, READ_AGAIN, SPEED, SPEED_BANDS

    of_speed = name in (*(f.name for f in SPEED), *SPEED_BANDS, *DESCRIBED)
    return frozenset((*(f.name for f in estimate.POINT), *READ_AGAIN)) if of_speed else frozenset()


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
    written = Written(set(), {}, _elsewhere(step.name))
    if step.inputs:
        yield ""
        yield "FROM"
        for one in step.inputs:
            yield from written.inputs(one, "  ", step.reading)
    if not step.formula:
        yield f"  [{step.origin}] {step.about}"
        written.note(step)
    yield ""
    if step.formula and step.source:
        yield f"Source of the formula: {step.source}"
    for source, places in written.sources.items():
        yield f"{', '.join(dict.fromkeys(places))}: {source}"


@dataclasses.dataclass
class Written:
    """What stands on the page already: quantities by name and reading, and the places that each source stands behind;
    `elsewhere` are those that are not gone into."""

    seen: set[tuple[str, str]]
    sources: dict[str, list[str]]
    elsewhere: frozenset[str]

    def note(self, step: Step) -> None:
        """Keep a given number's source for the end, once for all numbers that have it."""
        if step.source and not step.formula:
            place = step.about.split(",")[0]
            self.sources.setdefault(step.source, []).append(place.rsplit(":", 1)[0] if ":" in place else place)

    def inputs(self, step: Step, indent: str, reading: str) -> Iterator[str]:
        """An input and, below it, what it was computed from; once."""
        head = f"{indent}{step.name} = {_value(step)}"
        key = (step.name, step.reading)
        if key in self.seen:
            yield f"{head}  [{step.origin}, see above]"
            return
        self.seen.add(key)
        if step.name in self.elsewhere:
            yield f"{head}  [{step.origin}; sheetgen explain {step.name}]"
            return
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

"""docs/reference/: every command with its options, every input, every quantity with its formula and source, every key
of a plan, and the JSON Schemas of what commands print.

python tests/reference_pages.py     writes them
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import annotated_types
import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Id
from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.guidance import assumptions
from sheetgen.cli import main
from sheetgen.cli.options import HEADINGS, SHORT, Command
from sheetgen.explain import CHOICE_FORMULAS, QUANTITIES, quantities, spaced, unit_of
from sheetgen.formula import Expr, Formula
from sheetgen.plan import schema
from sheetgen.plan.profile import SHARES
from sheetgen.question.inputs import INPUTS, Input
from sheetgen.question.parse import FLAG, Kind
from sheetgen.schemas import SCHEMAS
from sheetgen.units import DTYPES
from sheetgen.writers.formats import json_text

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE = "Made by `python tests/reference_pages.py`; held to the code by `tests/test_docs.py`."
ANY_COMMAND = ("--json", "--catalogs DIR", "-q, --quiet", "-h, --help")
OF_ANY = (*ANY_COMMAND, "--help")  # so named where click was asked for a command alone
CELLS = "Cells of the workbook, and what its readers note"


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(*head: str, rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join([row(*head), row(*("---" for _ in head)), *(row(*row_cells) for row_cells in rows)])


# Commands.


def tree(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from tree(command, f"{path} {name}")


def about(command: click.Command) -> Iterator[str]:
    """The words of a command's help as Markdown: what is laid out stays so, examples can be pasted."""
    for part in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):  # Python 3.13 takes the margin off itself
        lines = part.splitlines()
        if lines[0].strip() != "\b":
            yield " ".join(line.strip() for line in lines)
        elif lines[1].strip() == "Examples:":
            yield "\n".join(["```sh", *(line.strip() for line in lines[2:]), "```"])
        else:
            yield "\n".join(["```text", *lines[1:], "```"])


def records(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str, str]]:
    """Heading, option and help of what is this command's own."""
    if isinstance(command, Command):
        sections = command.sections(ctx)
    else:
        sections = {"Output": [r for param in command.params if (r := param.get_help_record(ctx))]}
    for heading, rows in sections.items():
        for option, words in rows:
            if words and option not in OF_ANY:  # newer releases of click list arguments, without words
                yield heading, option, words


def commands_document() -> str:
    parts = []
    for path, command in tree(main, "sheetgen"):
        ctx = click.Context(command, info_name=path)
        usage = " ".join([path, *command.collect_usage_pieces(ctx)])
        parts += [f"## {path}", *([code(usage)] if "DEFAULT" not in usage else []), *about(command)]
        own = list(records(command, ctx))
        several = len({heading for heading, *_ in own}) > 1
        for heading in HEADINGS:
            if rows := [(code(option), words) for heading_, option, words in own if heading_ == heading]:
                parts.append(table(heading if several else "Option", "", rows=rows))
    return (
        "\n\n".join(
            [
                "# Commands",
                f"Every command has these: `{'`, `'.join(ANY_COMMAND[:3])}` (where it has a result, reads "
                "catalogs, says "
                "more than its result) and `-h, --help`. What each input takes, and its default: "
                "[inputs](inputs.md). The "
                "examples name files of yours.",
                *parts,
                MADE,
            ]
        )
        + "\n"
    )


# Inputs.

GROUPS = {
    "sheet": "A sheet: what it is of, and what its page says", "market": "What may be rented", "people": "The load",
    "at_once": "The load", "active": "The load", "rate": "The load", "load": "The load", "split": "The load",
    "targets": "Targets of speed", "chance": "Targets of speed", "headroom": "Headroom and losses",
    "billing": "Money", "money": "Money", "precision": "Precision", "engine": "The engine", "caches": "The engine",
    "limits": "The engine", "gpu": "One deployment", "parallel": "One deployment", "pace": "Measured speed",
    "factors": "Measured speed", "measured": "Measured speed",
}  # fmt: skip


DEFAULT = re.compile(r" ?Default:? (.+?)\.(?= |$)")


def allowed(kind: Kind, words: tuple[str, ...]) -> str:
    match kind.what:
        case "word" | "whole" if given := kind.words or words:
            text = ", ".join(given)
        case "auto dtype":
            text = f"auto, {', '.join(DTYPES)}"
        case "currency":
            text = "three letters, such as EUR"
        case "text":
            return "text"
        case "tokens":
            text = f"{kind}; 16k is 16,384"
        case _:
            also = "; 200k, too" if kind.decimal else "; 20% is 0.2" if kind.what == "share" else ""
            text = "0 or 1" if kind == FLAG else f"{kind}{also}"
    return text + (", or blank" if kind.blank else "")


def default(setting: Input, catalog: Catalog) -> str:
    """As the table has it, of an engine's field the value of vLLM, else as its help says."""
    if setting.engine:
        return f"the engine's; vLLM: {float(getattr(load_engine(catalog, 'vllm'), setting.engine)):g}"
    if setting.words:
        return setting.words[int(setting.default)]
    if setting.default not in (None, ""):
        return str(setting.default) if isinstance(setting.default, str) else f"{setting.default:,g}"
    if judged := assumptions(catalog).get(setting.name):
        return str(judged.value)
    match = DEFAULT.search(setting.option.help) if setting.option else None
    return match[1] if match else ""


def input_rows(catalog: Catalog) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Heading and row of each input, in the order of the table; those of a numbered line or case once."""
    seen = set()
    for setting in (setting for setting in INPUTS if setting.name != "model"):  # its option stands with each command
        name = re.sub(r"^log_\d+_", "log_<line>_", re.sub(r"^(case_\w+)_(low|base|high)$", r"\1_<case>", setting.name))
        if name in seen:
            continue
        seen.add(name)
        option, row = setting.option, setting.row
        typed = SHORT.get(setting.name, f"--{setting.asked_as.replace('_', '-')}") if option else ""
        words = DEFAULT.sub("", option.help).strip() if option else row.note if row else ""
        label, unit = (row.label if row.section else "", row.unit) if row else ("", "")
        yield (
            GROUPS[option.group] if option else CELLS,
            (
                code(name),
                code(typed),
                label,
                words or name.replace("_", " "),
                unit,
                default(setting, catalog),
                allowed(setting.kind, setting.words),
            ),
        )


def inputs_document(catalog: Catalog) -> str:
    rows = list(input_rows(catalog))
    parts = []
    for heading in [*dict.fromkeys(GROUPS.values()), CELLS]:
        own = [row for where, row in rows if where == heading]
        parts += [
            f"## {heading}",
            table("name", "option", "row of Inputs", "what it is", "unit", "default", "allowed", rows=own),
        ]
    return (
        "\n\n".join(
            [
                "# Inputs",
                "An input may be changed by its option; in Python under the option's name with underscores; "
                "one of `build` "
                "in a scenario file under the option's name; and where it has a row of Inputs, in its yellow "
                "cell of the "
                "workbook. An input without a default follows from others, or is left out.",
                *parts,
                MADE,
            ]
        )
        + "\n"
    )


# Quantities.


def entry(formula: Formula) -> str:
    text = spaced(formula.function(*map(Expr, formula.inputs)).text)
    unit = unit_of(formula.name)
    head = f"{formula.label}{f', {unit}' if unit else ''}. {formula.summary}"
    return "\n\n".join([f"### {formula.name}", head, f"```text\n{text}\n```", f"Source: {formula.source}"])


def quantities_document() -> str:
    of_choice = [formula for name, formula in CHOICE_FORMULAS.items() if name not in QUANTITIES]
    formulas = {*QUANTITIES, *CHOICE_FORMULAS}
    others = [(code(name), words) for name, _, words in quantities() if name not in formulas]
    return (
        "\n\n".join(
            [
                "# Quantities",
                "In the order in which they come about. The formula is that of Python and of the workbook, "
                "one function "
                "read twice; `sheetgen explain NAME` prints it with the values put in.",
                "## Of a deployment",
                *map(entry, QUANTITIES.values()),
                "## Of an answer: replicas, machines, money",
                *map(entry, of_choice),
                "## By no one formula",
                table("quantity", "what it is", rows=others),
                MADE,
            ]
        )
        + "\n"
    )


# Keys of a plan.

KEYS = Path(__file__).with_name("plan_keys.toml")
SECTIONS: dict[str, tuple[str, str, type[BaseModel]]] = {
    "plan": ("plan", "Once.", schema.Head),
    "policy": ("policy", "For all services.", schema.Policy),
    "redundancy": ("Redundancy", "Of `policy` and of a service.", schema.Redundancy),
    "services": ("services", "A list.", schema.Service),
    "demand": ("Demand", "Exactly one of these, each a number, a band or a mapping.", schema.Demand),
    "users": ("Users", "`people` or `dau`, and the keys beside it.", schema.Users),
    "requests": ("Requests", "One of the first three.", schema.Requests),
    "tokens": ("Tokens", "One of the amounts, and `of`.", schema.TokenRate),
    "growth": ("Growth", "One of `per_quarter`, `steps`, `series`.", schema.Growth),
    "request": ("Request", "Both lengths, or the context.", schema.Request),
    "model": ("Model", "A list, by `from`; a name alone is its `id`.", schema.Served),
    "targets": ("Targets", "", schema.Targets),
    "engine": ("Engine", "", schema.EngineOf),
    "allowed": ("Allowed", "Of `supply` and of a service.", schema.Allowed),
    "supply": ("supply", "", schema.Supply),
    "owned": ("Owned", "A list of `supply`.", schema.Owned),
    "committed": ("Committed", "A list of `supply`.", schema.Committed),
    "ordered": ("Ordered", "A list of `supply`.", schema.Ordered),
    "quota": ("Quota", "A list of `supply`.", schema.Quota),
    "prices": ("prices", "", schema.Prices),
}  # fmt: skip
KINDS: list[tuple[Any, str]] = [
    (schema.Line, "text"),
    (schema.StatedPoint, "text"),
    (schema.Day, "a day: 2027-01-31"),
    (schema.InQuarter, "a quarter: 2027-Q1"),
    (schema.Tokens, "tokens; 16k is 16,384"),
    (schema.LengthOf, "tokens, or {mean, p95}"),
    (schema.Milliseconds, f"{schema.LEAST_MS:g} to {schema.MOST_MS:,}, or off"),
    (schema.AmountBand, "above 0, or a band"),
    (schema.ChangeBand, "above -1, or a band"),
    (schema.DayBand, "0 or more, or a band"),
    (Id, "lower case letters, digits, dot, dash, underscore"),
]
MOST_STATED = 10**9  # limits from which on a number is as good as unlimited
BY_NAME_OF_KEY = {
    "currency": "three letters",
    "profile": f"{', '.join(SHARES)}, or 24 shares",
    "time_zone": "a name such as Europe/Berlin",
}


def plan_keys() -> dict[str, dict[str, tuple[str, str, str]]]:
    """By section and key its unit, its meaning and an example."""
    return tomllib.loads(KEYS.read_text("utf-8"))


def key_of(name: str, field: FieldInfo) -> str:
    return field.alias or name


def bounds(marks: Iterable[Any]) -> str:
    """The limits of a number in words: 0 to 1."""
    low = high = ""
    for mark in marks:
        match mark:
            case annotated_types.Ge(ge=least):
                low = f"{least:g}"
            case annotated_types.Gt(gt=least):
                low = f"above {least:g}"
            case annotated_types.Le(le=int() | float() as most) if most < MOST_STATED:
                high = f"{most:,.10g}"
            case FieldInfo(metadata=inner):
                return bounds(inner)
    return f"{low} to {high}" if high and low else f"{low} or more" if low else ""


def allowed_of(kind: Any) -> str:
    """The values of an annotation in words."""
    for kind_, text in KINDS:
        if kind == kind_:
            return text
    if get_origin(kind) is Literal:
        return ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        within = bounds(marks)
        return f"{'whole, ' if inner is int else ''}{within}" if within else allowed_of(inner)
    if get_origin(kind) is tuple:
        return f"a list: {allowed_of(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return f"by {allowed_of(get_args(kind)[0])}: {allowed_of(get_args(kind)[1])}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "a mapping"
    parts = [allowed_of(part) for part in get_args(kind) if part is not type(None)]
    return ", ".join(dict.fromkeys(filter(None, parts)))


def default_of(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "must be given"
    if isinstance(value, schema.Band):
        return f"{value.p50:g}"
    return "" if value in (None, "", (), {}) or isinstance(value, BaseModel) else str(value)


def plan_document() -> str:
    meanings = plan_keys()
    parts = [
        "# Keys of a plan",
        "Of plan.yaml, which `sheetgen plan` reads; [how to write one](../how-to/plan-a-quarter.md), "
        "[how it is worked out](../plan.md). A band is {p10, p50, p90}: in one of ten cases it is at most p10, in nine "
        "of ten at most p90; one number has no band. A key that is not here is refused, with its line.",
    ]
    for section, (title, about_it, model) in SECTIONS.items():
        hints = get_type_hints(model, include_extras=True)
        names, rows = {key_of(name, field): name for name, field in model.model_fields.items()}, []
        for key, (unit, meaning, example) in meanings[section].items():
            name, field = names[key], model.model_fields[names[key]]
            kinds = BY_NAME_OF_KEY.get(key) or allowed_of(hints[name])
            rows.append((code(key), meaning, unit, default_of(field), kinds, code(example)))
        heads = ("key", "what it is", "unit", "default", "allowed", "example")
        parts += [f"## {title}", about_it, table(*heads, rows=rows)]
    parts += [
        "## budget",
        "By quarter, in the plan's currency: `budget: {2027-Q1: 1400000, 2027-Q2: 1400000}`. It is for all that a "
        "quarter costs: what is bought, with its contingency, and what is committed and owned. A quarter without one "
        "is not compared.",
        MADE,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def schema_document(name: str) -> str:
    return json_text(SCHEMAS[name]())


DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "commands.md": commands_document,
    "inputs.md": lambda: inputs_document(Catalog()),
    "quantities.md": quantities_document,
    "plan.md": plan_document,
    **{f"schemas/{name}.json": partial(schema_document, name) for name in SCHEMAS},
}


def write() -> None:
    """Write the pages of docs/reference/ anew."""
    for file, document in DOCUMENTS.items():
        (FOLDER / file).parent.mkdir(exist_ok=True)
        (FOLDER / file).write_text(document(), "utf-8")


if __name__ == "__main__":
    write()

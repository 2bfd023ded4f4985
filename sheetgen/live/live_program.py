"""The program of the live page: the tables of an answer, money and load, and the sentences, as JavaScript."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from sheetgen.answer.replica_bills import PRINTED
from sheetgen.answer.ways_to_pay import HOSTED_TOKENS, OF_OWNING, UNIT_COSTS
from sheetgen.explain import spaced, unit_of
from sheetgen.formula import Formula
from sheetgen.program.declared import Program, Table, by_name
from sheetgen.program.javascript import print_function, print_programs
from sheetgen.program.quantities import CHARGE
from sheetgen.program.sheet_program import (
    AGAIN,
    ANSWERED,
    CHOICE,
    CHOSEN,
    PEOPLE_READ,
    READ,
    SHEET,
    WAITS,
    sheet_program,
)
from sheetgen.report.live_words import SENTENCES
from sheetgen.report.templates import Template
from sheetgen.sizing import certainty, cost, people, rates, speed, targets

LONGEST = 1500  # characters of a formula's text; a longer one is not shown
PARTS = ("answer", "other_loads", "started", "derivation", "request_words")
ANSWER = tuple(Path(__file__).with_name(f"{name}.js") for name in PARTS)
FILES = {
    "INTERFACE": "the rules of this calculation",
    "docs/speed.md": "the page on speed",
    "docs/fidelity.md": "the page on memory",
    "catalogs/speed.yaml": "the catalog of speed",
    "catalogs/engines": "the catalog of engines",
    "catalogs/instances": "the catalog of machines",
    "reference models.md": "the notes on models",
    "reference engine_rules.md": "the notes on engines",
}  # files that sources name, in words for a reader who has the page alone
CASE = ("case",)  # the axis of programs that are evaluated for one load


def _program(*tables: Table) -> Program:
    return Program(SHEET.axes, tables)


def _of_case(name: str, *formulas: Formula) -> Program:
    return _program(Table(name, CASE, formulas))


def _of_chosen(name: str) -> Formula:
    """A formula as the program of the chosen hardware has it."""
    tables = (table for table in CHOSEN.tables if isinstance(table, Table))
    return next(formula for table in tables for quantity, formula in by_name(table.quantities) if quantity == name)


PROGRAMS: Mapping[str, Program] = {
    "choice": _program(CHOICE),
    "chosen": CHOSEN,
    "answered": _program(ANSWERED, READ),
    "waits": _program(WAITS),
    "peopleRead": _program(PEOPLE_READ),
    "again": AGAIN,
    "started": _program(Table("full", ("chosen",), CHARGE), Table("printed", ("chosen",), PRINTED)),
    "targets": _of_case("targets", speed.cached_fraction, *targets.DEFAULTS),
    "rate": _of_case("rate", people.day_requests, rates.peak_requests_per_second),
    "units": _of_case("units", *UNIT_COSTS),
    "first": _of_case("first", _of_chosen(speed.service_ttft_seconds.name)),
    "chanceWaits": _of_case("chance_waits", rates.mean_wait_seconds, rates.few_wait_seconds),
    "cleared": _of_case("cleared", rates.cleared_per_second),
    "level": _of_case("level", certainty.confidence_z),
    "owning": _of_case("owning", *OF_OWNING),
    "hostedTokens": _of_case("hosted_tokens", *HOSTED_TOKENS),
    "hosted": _of_case("hosted", cost.hosted_monthly_usd, cost.hosted_monthly_cents),
}


def live_program(has_draft: bool = False) -> str:
    """The JavaScript of the live page: the programs, the sentences, the explanations of quantities, and the files
    written by hand that answer a question with them. has_draft: a draft model serves beside the models."""
    programs = {"sheet": sheet_program(has_draft), **PROGRAMS}
    answer = (path.read_text(encoding="utf-8") for path in ANSWER)
    return "\n".join((print_programs(programs), _print_sentences(SENTENCES), _print_explained(programs), *answer))


def _print_explained(programs: Mapping[str, Program]) -> str:
    """Statements that declare EXPLAINED, by quantity its formula's label, summary, source and text with names (blank if
    over LONGEST); and UNIT_OF, the units of these quantities and of their inputs."""
    explained, units = {}, dict[str, str]()
    for program in (programs["sheet"], programs["chosen"], programs["answered"]):
        for table in (table for table in program.tables if isinstance(table, Table)):
            for name, formula in by_name(table.quantities):
                text = spaced(formula.text_of_names(formula.inputs))
                source = plain_source(formula.source)
                explained[name] = [formula.label, formula.summary, source, text if len(text) <= LONGEST else ""]
                units |= {quantity: unit for quantity in (name, *formula.inputs) if (unit := unit_of(quantity))}
    for entry in explained.values():  # "as tpot_residual."
        if like := re.match(r"as (\w+)\.", entry[2]):
            label = explained.get(like[1], [like[1].replace("_", " ")])[0]
            entry[2] = f"as {label.lower()}{entry[2][like.end() - 1 :]}"
    return f"const EXPLAINED={_json(explained)};\nconst UNIT_OF={_json(units)};\n"


def plain_source(source: str) -> str:
    """The source of a formula with words in place of the names of files."""
    for file, words in FILES.items():
        source = source.replace(file, words)
    return source


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _print_sentences(sentences: Mapping[str, Template | Formula]) -> str:
    """A statement that declares SENTENCES: by name the quantities that a sentence reads, and the function."""
    entries = []
    for name, sentence in sentences.items():
        formula = sentence.formula(name, name) if isinstance(sentence, Template) else sentence
        entries.append(f"{name}:{{inputs:{list(formula.inputs)!r},say:{print_function(formula)}}}")
    return "const SENTENCES={\n" + ",\n".join(entries) + "\n};\n"

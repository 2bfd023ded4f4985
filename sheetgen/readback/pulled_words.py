"""Edits that were pulled from a workbook: in words, as JSON, and as a scenario file that builds the same sheet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import yaml

from sheetgen.catalog.base import plain_value
from sheetgen.errors import shown
from sheetgen.question.parse import Raw, plain
from sheetgen.readback.audit import Audit
from sheetgen.readback.compare import change_fraction, from_to, shown_value
from sheetgen.readback.pulled import Change, Pulled
from sheetgen.units import count

MOST = 40  # changes that are listed one by one; --json has all
MOST_FORMULAS = 12
SHOWN_OF_OWN = {"gpu_count": "GPUs", "instance_gpu": "GPU", "price_usd_per_hour": "$ per hour"}
_SIMPLE = re.compile(r"[A-Za-z][\w./-]*( [\w./-]+)*")  # a text that needs no quotes in YAML
VERDICTS = {
    "agrees": "the workbook agrees: {n:,} formulas hold what Python works out of its inputs",
    "not calculated": "the workbook was never calculated: its formulas hold no values. The results here are Python's",
    "not recalculated": "the workbook was not recalculated since: {wrong:,} of {n:,} formulas hold what they were "
    "built with. The results here are Python's; open and save it once to see them there",
    "differs": "the workbook says otherwise: {wrong:,} of {n:,} formulas hold other values than Python works out of "
    "its inputs, the first in {first}. The results here are Python's; recalculate it, and mend overwritten formulas",
}


def lines(pulled: Pulled) -> Iterator[str]:
    """Lines for a person: what was changed, whether formulas were, and whether the workbook agrees."""
    snapshot, today = pulled.snapshot, pulled.before.question
    if pulled.other_catalog:
        rest = f"what the workbook says was taken, {count(len(pulled.changed), 'value')} of it otherwise than today's"
        yield f"built with the catalog {snapshot.catalog_sha256[:8]}, today's is {today.catalog_sha256[:8]}: {rest}"
    elif not pulled.changed:
        yield "nothing was changed since the workbook was built"
    else:
        yield f"{count(len(pulled.changed), 'change')} since the workbook was built:"
    for change in pulled.changed[:MOST]:
        yield f"  {change_words(change, pulled.other_catalog)}"
    if len(pulled.changed) > MOST:
        yield f"  and {len(pulled.changed) - MOST:,} more; --json has all"
    for change in pulled.fixed:
        yield f"a fixed figure was overwritten, and is not followed: {change_words(change)}"
    if pulled.is_of_another_build:
        yield another_build(pulled)
    else:
        yield from _audit_lines(pulled.audit)
    if pulled.other_results and not (pulled.audit and pulled.audit.verdict == "not calculated"):
        differ = f"{len(pulled.other_results):,} of {len(pulled.snapshot.results):,}"
        name, was, now = pulled.other_results[0]
        yield f"{differ} results differ: rec_{name} is {shown_value(_safe(was))} there, {shown_value(_safe(now))} here"
    yield from pulled.notes


def another_build(pulled: Pulled) -> str:
    """That another build of sheetgen made the workbook; and how many of its formulas are gone."""
    lost = f"; {count(pulled.n_lost, 'formula')} of it stand there no more" if pulled.n_lost else ""
    return f"another build of sheetgen made it: its inputs were read, its formulas not compared with today's{lost}"


def change_words(change: Change, other_catalog: bool = False) -> str:
    """`Chat (Inputs!B5): 4,096 -> 8,192 tokens (+100 %)`."""
    place = f" ({change.place})" if change.place else ""
    if change.part != "inputs" and not change.name:
        row = "a row of the reader's own" if change.row is None else "the row"
        if change.new is None:
            gone = "is in today's catalog alone, and was left out" if other_catalog else f"{row} was taken out"
            return f"{shown(change.label)}: {gone}"
        became = "changed" if change.old is not None else "added"
        came = "is not in today's catalog, and was kept" if other_catalog else f"{row} was {became}"
        return f"{shown(change.label)}{place}: {came}: {_row_words(change.new)}"
    shown_as = "percent" if "%" in change.number_format else "number"
    old, new = (_safe(v) for v in (change.old, change.new))
    return f"{shown(change.label, 120)}{place}: {from_to(old, new, shown_as, change.unit)}"


def _safe(value: Raw) -> Raw:
    return shown(value, 120) if isinstance(value, str) else value


def _row_words(cells: Mapping[str, Raw]) -> str:
    named = [f"{head} {shown_value(_safe(cells[name]))}" for name, head in SHOWN_OF_OWN.items() if name in cells]
    return ", ".join(named) or count(len(cells), "cell")


def _audit_lines(audited: Audit | None) -> Iterator[str]:
    if audited is None:
        yield "formulas were not compared: today's catalog makes a sheet of another form"
        return
    for name in audited.missing:
        yield f"the sheet {name!r} is gone"
    for cell in audited.overwritten[:MOST_FORMULAS]:
        label = f" ({shown(cell.label, 100)})" if cell.label else ""
        now = cell.now if isinstance(cell.now, str) and cell.now.startswith("=") else shown_value(_safe(cell.now))
        yield f"{cell.place}{label}: the formula was overwritten by {shown(now, 120)}; it was ={shown(cell.was, 120)}"
    if len(audited.overwritten) > MOST_FORMULAS:
        yield f"and {len(audited.overwritten) - MOST_FORMULAS:,} more formulas were overwritten; --json has all"
    first = audited.wrong[0] if audited.wrong else ""
    yield VERDICTS[audited.verdict].format(n=audited.n_formulas, wrong=len(audited.wrong), first=first)


def data(pulled: Pulled) -> dict[str, Raw]:
    """All of it as JSON has it, except the answer itself."""
    snapshot, audited = pulled.snapshot, pulled.audit
    return {
        "file": snapshot.path,
        "version": snapshot.record.version,
        "catalog_sha256": snapshot.catalog_sha256,
        "catalog_sha256_today": pulled.before.question.catalog_sha256,
        "changes": [_change(change, change_words(change, pulled.other_catalog)) for change in pulled.changed],
        "fixed_figures": [_change(change, change_words(change)) for change in pulled.fixed],
        "recalculation": audited.verdict if audited else "not compared",
        "is_of_another_build": pulled.is_of_another_build,
        "n_lost": pulled.n_lost,
        "n_formulas": audited.n_formulas if audited else None,
        "n_wrong": len(audited.wrong) if audited else None,
        "overwritten": [cell.data() for cell in (audited.overwritten if audited else ())],
        "other_results": [
            {"name": f"rec_{name}", "workbook": plain(was), "python": plain(now)}
            for name, was, now in pulled.other_results
        ],
        "missing_sheets": list(audited.missing if audited else ()),
        "notes": list(pulled.notes),
        "options": dict(pulled.options),
        "typed": plain(pulled.overrides),
    }


def _change(change: Change, words: str) -> dict[str, Raw]:
    return {
        "part": change.part,
        "row": change.row,
        "name": change.name,
        "label": change.label,
        "before": plain(change.old),
        "after": plain(change.new),
        "change_fraction": change_fraction(change.old, change.new),
        "place": str(change.place) if change.place else None,
        "words": words,
    }


class _Dumper(yaml.SafeDumper):
    """Quotes every text that the strict reader could take for something else; writes nothing twice by reference."""

    def ignore_aliases(self, data: Raw) -> bool:
        return True

    def text(self, value: str) -> yaml.ScalarNode:
        is_plain = _SIMPLE.fullmatch(value) and plain_value(value) == value
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=None if is_plain else '"')


_Dumper.add_representer(str, _Dumper.text)


def yaml_text(data: Mapping[str, Raw]) -> str:
    """Plain values as YAML that the strict reader reads back unchanged."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000)


def scenario_text(options: Mapping[str, Raw], overrides: Mapping[str, Raw], origin: str, version: str) -> str:
    """Options as a scenario file, lists as lists, typed values under `typed`; the first lines say where it is from."""
    data: dict[str, Raw] = {
        name: value if isinstance(value, list) else text.split(",") if "," in (text := str(value)) else text
        for name, value in options.items()
    }
    if overrides:
        data["typed"] = overrides
    body = yaml_text(data)
    head = f"# What {shown(origin, 100)} asks, as sheetgen {version} read it.\n# sheetgen build --scenario THIS.yaml"
    return f"{head} builds the same sheet.\n{body}"

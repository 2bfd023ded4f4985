"""An edited plan's workbook carried back: what was typed, and the plan.yaml that says the same."""

from __future__ import annotations

import copy
import datetime
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sheetgen.catalog.base import Document, Loc
from sheetgen.catalog.load import Catalog
from sheetgen.errors import shown
from sheetgen.plan.bridge import document_of
from sheetgen.plan.findings import findings
from sheetgen.plan.flat_book import build_plan_book
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.question.parse import Raw, plain
from sheetgen.readback.audit import Overwritten, audit
from sheetgen.readback.compare import shown_value
from sheetgen.readback.file_cells import Grid, is_number
from sheetgen.readback.plan_book import Edit, PlanBook, edits_of, read_plan_book
from sheetgen.readback.pulled_words import MOST_FORMULAS, yaml_text
from sheetgen.readback.read_book import read_every_cell
from sheetgen.units import USD, count
from sheetgen.version import VERSION


@dataclass(frozen=True)
class PulledPlan:
    """The workbook, what was typed into it, and the plan as built and with what was typed."""

    book: PlanBook
    edits: tuple[Edit, ...]
    built: Plan
    plan: Plan
    notes: tuple[str, ...]
    every: Mapping[str, Grid] | None  # all its cells; none where another catalog or version built it

    @cached_property
    def overwritten(self) -> tuple[Overwritten, ...]:
        """Formulas that differ from those of the same plan built anew; empty where the workbook is of another catalog
        or version, so that nothing is known."""
        if self.every is None:
            return ()
        findings_as_built = findings(solved_plan(self.built))
        anew = build_plan_book(findings_as_built, plan_page(findings_as_built), self.book.record)
        return audit(anew, anew, self.every, same_catalog=True).overwritten

    @property
    def record_as_built(self) -> Mapping[str, Raw] | None:
        """The plan as JSON has it, where nothing was typed since it was built."""
        return None if self.edits else self.book.record


def pull_plan(path: str, catalog: Catalog) -> PulledPlan:
    """The plan that an edited workbook asks for. Raises WorkbookError with every cell whose content is not allowed, and
    ScenarioError where the plan cannot be worked out any more."""
    book = read_plan_book(path)
    where = shown(path, 200)
    built = plan_of(document_of(book.record, where), catalog)
    edits = edits_of(book, built)
    data = with_edits(built.data, edits)
    plan = plan_of(Document(where, data, {}), catalog) if edits else built
    every = read_every_cell(book.path) if _is_of_today(book, catalog) else None
    return PulledPlan(book, edits, built, plan, tuple(_notes(book, catalog)), every)


SHORT = {"users": "people", "requests": "peak_per_second", "tokens": "peak_per_second", "growth": "per_quarter"}


def with_edits(data: Mapping[str, Raw], edits: Sequence[Edit]) -> dict[str, Raw]:
    """A plan as it was written, with the typed values put in."""
    written = copy.deepcopy(dict(data))
    typed = {edit.cell.name: edit.new for edit in edits}
    for edit in edits:
        place, value = edit.cell.place, edit.new
        if edit.row.is_band:  # all three, as a band needs
            for name, of_quantile, built in edit.row.cells:
                number = typed.get(name, built)
                _put(written, of_quantile, int(number) if float(number).is_integer() else number)
        elif place[:2] == ("supply", "lead_time_days"):
            _put_lead_time(written, place, value)
        else:
            _put(written, place, value.isoformat() if isinstance(value, datetime.date) else value)
    return written


def _put(data: dict[str, Raw], place: Loc, value: Raw) -> None:
    """Write a value into a plan; a short form is written out where that is needed."""
    part: Raw = data
    for key, following in itertools.pairwise(place):
        inner = part.get(key) if isinstance(part, dict) else part[key]
        if not isinstance(inner, dict | list):
            inner = part[key] = _written_out(str(key), inner, following)
        elif isinstance(inner, dict) and following not in QUANTILES and {*inner} & {*QUANTILES}:
            inner = part[key] = {SHORT[str(key)]: inner}
        part = inner
    if value is None:
        part.pop(place[-1], None)
    else:
        part[place[-1]] = value


def _written_out(key: str, value: Raw, following: Raw) -> dict[str, Raw]:
    """A number, or nothing, as the mapping that it is the short form of."""
    if following in QUANTILES:
        return {} if value is None else dict.fromkeys(QUANTILES, value)
    return {} if value is None else {SHORT[key]: value}


def _put_lead_time(data: dict[str, Raw], place: Loc, value: Raw) -> None:
    """Write the days within which nine of ten orders arrive; the other quantiles are at most that."""
    band = ((data.get("supply") or {}).get("lead_time_days") or {}).get(place[2])
    if not isinstance(band, dict):
        _put(data, place[:3], value)
        return
    for name, days in band.items():
        band[name] = value if name == place[3] else min(days, value)


def _is_of_today(book: PlanBook, catalog: Catalog) -> bool:
    return (book.version, book.catalog_sha256) == (VERSION, catalog.catalog_sha256())


def _notes(book: PlanBook, catalog: Catalog) -> Iterator[str]:
    formulas = [str(typed.place) for typed in book.typed.values() if typed.cell.formula is not None]
    if formulas:
        yield f"{', '.join(formulas[:4])}: a formula stands there; the value of the last recalculation is taken."
    if not _is_of_today(book, catalog):
        yield "its formulas were not compared: another sheetgen, or another catalog, built it"
    today = catalog.catalog_sha256()
    if book.catalog_sha256 != today:
        yield (
            f"built with the catalog {shown(book.catalog_sha256[:8])}, today's is {today[:8]}: hardware and prices "
            "are today's"
        )


def lines(pulled: PulledPlan, usd: Mapping[str, float]) -> Iterator[str]:
    """Lines for a person: what was typed, and what the workbook said of it. usd: the plan's spend by quantile, worked
    out anew."""
    if not pulled.edits:
        yield "nothing was changed since the workbook was built"
    else:
        yield f"{count(len(pulled.edits), 'change')} since the workbook was built:"
    for edit in pulled.edits:
        yield f"  {edit.label} ({edit.place}): {_shown(edit.cell.value)} -> {_shown(edit.new)}"
    for cell in pulled.overwritten[:MOST_FORMULAS]:
        held = cell.now if isinstance(cell.now, str) else shown_value(cell.now)
        yield f"{cell.place} ({shown(cell.label, 100)}): the formula was overwritten by {shown(held, 120)}"
    if (more := len(pulled.overwritten) - MOST_FORMULAS) > 0:
        yield f"and {more:,} more formulas were overwritten; --json has all"
    yield from pulled.notes
    built = sum(quarter["p50_usd"] for quarter in pulled.book.record["money"])
    spent = [pulled.book.results.get(f"{name}_usd") for name in SAID]
    if None in spent:
        yield "the workbook was never calculated: it holds no spend"
    elif pulled.edits and is_number(spent[0]) and math.isclose(float(spent[0]), built, rel_tol=SAME):
        yield "its spend at p50 is that of the build: it was not recalculated, or nothing that was typed moves it"
    elif pulled.edits and all(map(is_number, spent)):
        spend = " and ".join(
            f"{USD.text(spent_usd)} at {name} (anew {USD.text(usd[name])})"
            for spent_usd, name in zip(spent, SAID, strict=True)
        )
        yield f"on the hardware that it was built with it says {spend}"


SAID, SAME = ("p50", "p90"), 1e-9


def _shown(value: Raw) -> str:
    return "none" if value is None else str(shown_value(shown(value) if isinstance(value, str) else value))


def data(pulled: PulledPlan) -> dict[str, Raw]:
    """The same as JSON has it."""
    return {
        "file": pulled.book.path,
        "version": pulled.book.version,
        "catalog_sha256": pulled.book.catalog_sha256,
        "changes": [
            {
                "name": edit.cell.name,
                "label": edit.label,
                "place": str(edit.place),
                "before": plain(edit.cell.value),
                "after": plain(edit.new),
            }
            for edit in pulled.edits
        ],
        "overwritten": [cell.data() for cell in pulled.overwritten],
        "notes": list(pulled.notes),
    }


def plan_text(pulled: PulledPlan, version: str) -> str:
    """The plan as YAML, which builds the same documents; its first lines say where it is from."""
    origin = shown(Path(pulled.book.path).name, 100)
    head = f"# The plan of {origin}, as sheetgen {version} read it.\n# sheetgen plan THIS.yaml works it out.\n"
    return head + yaml_text(pulled.plan.data)

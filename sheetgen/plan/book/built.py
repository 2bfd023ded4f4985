"""The sheets of the plan's workbook with values of the build: Commitments, Bands, Bridge, Actuals; and the record."""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen.formula import both, formula, is_number, number_where, where
from sheetgen.plan.answer import CASE
from sheetgen.plan.book.pages import Pages, added_up, shown_value
from sheetgen.plan.charts import Waterfall
from sheetgen.plan.draws import quantiles
from sheetgen.plan.findings import Findings, inputs_sha256
from sheetgen.plan.pages import PlanPage
from sheetgen.plan.schema import QUANTILES
from sheetgen.scenario.parse import Kind
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, titled
from sheetgen.sheet.model import Cell, Chart, Lookup, Range, Ref, Sheet, Validation
from sheetgen.sheet.page import Table
from sheetgen.units import EXACT_PERCENT, PLAIN, TEXT, USD, WHOLE

LINES = 60  # of what was spent, to be pasted
IN_A_CELL = 30_000  # characters; a cell holds 32,767
SCHEMA = 1
RECORD = "meta_plan_record_"  # of the names of its cells, with a number behind


@formula("Plan over spent, less 1", EXACT_PERCENT)
def off_by(planned_usd: Any, actual_usd: Any) -> Any:
    """How far the plan's p50 is above what was spent; none where nothing was.

    Source: definition.
    """
    return number_where(actual_usd > 0, planned_usd / where(actual_usd > 0, actual_usd, 1) - 1)


@formula("Within the band", TEXT)
def in_band(low_usd: Any, high_usd: Any, actual_usd: Any) -> Any:
    """Whether what was spent is between the plan's p10 and p90."""
    said = where(both(actual_usd >= low_usd, actual_usd <= high_usd), "yes", "no")
    return where(both(is_number(actual_usd), actual_usd > 0), said, "-")


def put_table(sheet: Sheet, row: int, of: Table, n_columns: int = 0) -> int:
    """A table of a page as values under its title; gives the row below it."""
    width = max(n_columns, len(of.columns))
    sheet.texts(row, 0, (of.title, *[""] * (width - 1)), "section")
    sheet.texts(row + 1, 0, [one.head for one in of.columns])
    for at, values in enumerate(of.rows, row + 2):
        for column, one in enumerate(values):
            value, display = shown_value(one)
            is_text = isinstance(value, str)
            sheet.put(at, column, Cell(value, "wrapped" if is_text and len(value) > 30 else "fixed", display))
    return row + 3 + len(of.rows)


def tables_named(page: PlanPage, *starts: str) -> list[Table]:
    return [one for one in page.tables if one.title.startswith(starts)]


def put_state_of_values(sheet: Sheet, wiring: Wiring) -> None:
    """In the frozen rows whether the values are still of these inputs."""
    row = HEAD_ROWS - 1
    sheet.text(row, 0, "values of the build:", "label")
    sheet.link(row, 1, wiring.ref("chk_values")._replace(name="chk_values"), TEXT, "light")
    sheet.status_cells.append((row, 1))


def commitments(page: PlanPage, wiring: Wiring) -> Sheet:
    sheet = titled(
        "Commitments",
        "Commitments",
        "Values of the build: how much to commit, for how long, against "
        "buying what is missing (newsvendor over the joint draws); and what would change our mind.",
        freeze=(HEAD_ROWS, 0),
    )
    sheet.widths = dict(enumerate((34, 46, *[13] * 8)))
    put_state_of_values(sheet, wiring)
    row, found = HEAD_ROWS, tables_named(page, "Commitments", "What would change our mind")
    for one in sorted(found, key=lambda one: one.title):
        row = put_table(sheet, row, one, 10)
    if not any(one.title.startswith("Commitments") for one in found):
        sheet.text(row, 0, "No commitment is expected to save anything.", "text")
    return sheet


def bands(found: Findings, page: PlanPage, pages: Pages, wiring: Wiring) -> Sheet:
    """Live sums of the three quantiles beside the joint draws of all services."""
    answer, draws = found.answer, found.draws
    sheet = titled(
        "Bands",
        "Bands",
        "Of all services together: where each is at its own quantile (live; of one "
        "service exact), and by joint draws of demand and prices (values of the build).",
        freeze=(HEAD_ROWS, 1),
    )
    sheet.widths = dict(enumerate((24, *[16] * 9)))
    put_state_of_values(sheet, wiring)
    heads = (
        "Quarter",
        "All at p10 (live)",
        "All at p50 (live)",
        "All at p90 (live)",
        *(f"{name} of all together (build)" for name in QUANTILES),
        *(f"GPUs, {name} of all together (build)" for name in QUANTILES),
    )
    sheet.texts(HEAD_ROWS, 0, ("Spend by quarter, US dollars; contingency apart", *[""] * 9), "section")
    sheet.texts(HEAD_ROWS + 1, 0, heads)
    sheet.heights[HEAD_ROWS + 1] = 46
    first = HEAD_ROWS + 2
    live = [list[Ref]() for _ in CASE]
    for q, quarter in enumerate(answer.plan.quarters):
        sheet.text(first + q, 0, str(quarter), "label")
        for z, refs in enumerate(live):
            refs.append(sheet.link(first + q, 1 + z, pages._usd("spend_usd", q, z), USD))
        for left, values, display in ((4, draws.spend_usd[:, q], USD), (7, draws.n_gpus[:, q], WHOLE)):
            for k, value in enumerate(quantiles(values).values()):
                sheet.put(first + q, left + k, Cell(value, "fixed", display))
    last = first + len(answer.plan.quarters)
    sheet.text(last, 0, "all quarters", "light")
    for z, refs in enumerate(live):
        sheet.link(last, 1 + z, added_up(refs), USD, "total")
    for k, value in enumerate(quantiles(draws.spend_usd.sum(axis=1)).values()):
        sheet.put(last, 4 + k, Cell(value, "total", USD))
    for at, (label, fact) in enumerate(
        (
            ("Joint draws", draws.n),
            ("Seed", draws.seed),
            ("Correlation of the demand between services", answer.plan.policy.correlation),
            ("Mean of all quarters, $", float(draws.spend_usd.sum(axis=1).mean())),
            ("SHA-256 of the inputs, as built", inputs_sha256(answer)),
        ),
        last + 2,
    ):
        display = TEXT if isinstance(fact, str) else USD if "$" in label else WHOLE if label == "Joint draws" else PLAIN
        display = EXACT_PERCENT if label.startswith("Correlation") else display
        sheet.text(at, 0, label, "label")
        sheet.put(at, 3, Cell(fact, "left_number" if not isinstance(fact, str) else "text", display))
    for one in tables_named(page, "What moves the money"):
        put_table(sheet, last + 8, one, 10)
    return sheet


STEPS = (("before it", "#FFFFFF"), ("more", "#8F1D16"), ("less", "#0E7490"), ("plan", "#475569"))  # colours of bars


def _waterfall(sheet: Sheet, row: int, of: Waterfall) -> None:
    """Each part as a bar that begins where the one before ended: what stands below it is white."""
    ends = [*itertools.accumulate((usd for _, usd in of.parts), initial=of.last_usd)]
    bars = [("last plan", 0.0, 0.0, 0.0, of.last_usd)]
    for (name, usd), (before, after) in zip(of.parts, itertools.pairwise(ends), strict=True):
        bars.append((name, min(before, after), max(usd, 0.0), max(-usd, 0.0), 0.0))
    bars.append(("this plan", 0.0, 0.0, 0.0, of.usd))
    sheet.texts(row, 0, ("What the chart draws, $", *(name for name, _ in STEPS)))
    columns: list[list[Ref]] = [[] for _ in range(len(STEPS) + 1)]
    for at, (name, *values) in enumerate(bars, row + 1):
        columns[0].append(sheet.text(at, 0, name, "label"))
        for column, value in enumerate(values, 1):
            columns[column].append(sheet.put(at, column, Cell(value, "fixed", USD)))
    low, high = min(*ends, of.usd), max(*ends, of.usd)
    step = 10.0 ** (len(str(int(high - low))) - 1)  # the axis begins at a round number
    names, *series = [(refs[0], refs[-1]) for refs in columns]
    sheet.charts.append(
        Chart(
            row + len(bars) + 2,
            0,
            "From the last plan's spend to this one's, US dollars at p50",
            "A bar for each part of the difference, where the one before it ended.",
            names,
            [(name, *refs, ink) for (name, ink), refs in zip(STEPS, series, strict=True)],
            680,
            300,
            "US dollars",
            least=max(0.0, (low - (high - low) / 2) // step * step),
        )
    )


def bridge(page: PlanPage, wiring: Wiring) -> Sheet:
    sheet = titled(
        "Bridge",
        "Bridge",
        "Values of the build: what changed since the last plan, in US dollars; the parts sum to the difference.",
        freeze=(HEAD_ROWS, 0),
    )
    sheet.widths = {0: 34, **dict.fromkeys(range(1, 5), 18)}
    put_state_of_values(sheet, wiring)
    sheet.texts(HEAD_ROWS, 0, (page.since, *[""] * 4), "section")  # as wide as the texts, which are cut where it ends
    for one in tables_named(page, "What changed since the last plan"):
        row = put_table(sheet, HEAD_ROWS + 2, one)
        if page.waterfall is not None:
            _waterfall(sheet, row, page.waterfall)
    return sheet


def actuals(found: Findings, page: PlanPage, pages: Pages) -> Sheet:
    """By quarter the plan beside what was spent, from lines that are pasted below."""
    plan = found.answer.plan
    sheet = titled(
        "Actuals",
        "Actuals",
        "Paste what was spent into the yellow lines (`sheetgen plan actuals` reads "
        "FOCUS columns): it stands beside the plan. It is no part of plan.yaml.",
        freeze=(HEAD_ROWS, 0),
    )
    sheet.widths = dict(enumerate((22, 24, 16, 16, 16, 16, 14)))
    n = len(plan.quarters)
    top = HEAD_ROWS + n + 4
    for one in tables_named(page, "Measured"):
        top = put_table(sheet, top, one, 7)
    lines = range(top + 2, top + 2 + LINES)
    quarters, usd = (Range((Ref(sheet.name, lines[0], c, None), Ref(sheet.name, lines[-1], c, None))) for c in (0, 2))
    sheet.texts(HEAD_ROWS, 0, ("By quarter, US dollars", *[""] * 6), "section")
    sheet.texts(
        HEAD_ROWS + 1,
        0,
        ("Quarter", "Plan p10", "Plan p50", "Plan p90", "Spent", "Plan / spent - 1", "Within p10 to p90"),
    )
    sheet.heights[HEAD_ROWS + 1] = 32
    for q, quarter in enumerate(plan.quarters):
        at = HEAD_ROWS + 2 + q
        name = sheet.text(at, 0, str(quarter), "label")
        planned = [sheet.link(at, 1 + z, pages._usd("spend_usd", q, z), USD) for z in CASE.values()]
        spent = sheet.link(at, 4, Lookup.of(0, "SUMIFS({0},{1},{2})", usd, quarters, name), USD)
        sheet.compute(at, 5, off_by, {"planned_usd": planned[1], "actual_usd": spent})
        sheet.compute(at, 6, in_band, {"low_usd": planned[0], "high_usd": planned[2], "actual_usd": spent})
    sheet.texts(top, 0, ("What was spent: paste here", *[""] * 6), "section")
    sheet.texts(top + 1, 0, ("Quarter", "Service", "$"))
    amount = Validation.of(Kind("number", -1e12, 1e12, blank=True), "US dollars")
    text = Validation.of(Kind("text", blank=True), "Quarter or service", "A quarter such as 2027-Q1.")
    for at in lines:
        for column, check, display in ((0, text, TEXT), (1, text, TEXT), (2, amount, USD)):
            sheet.put(at, column, Cell(None, "input", display, validation=check))
    return sheet


def record_sheet(record: Mapping[str, Any], version: str, catalog_sha256: str, wiring: Wiring) -> Sheet:
    """The plan as JSON, packed, as `sheetgen pull` and `--since` read it."""
    about = "The plan as built, which sheetgen pull and plan --since read. Leave it as it is."
    sheet = titled("Record", "Record", about)
    sheet.widths = {0: 30, 1: 60}
    packed = packed_record(record)
    rows = [
        ("meta_plan_schema", "Layout of the workbook", SCHEMA, PLAIN),
        ("meta_version", "sheetgen", version, TEXT),
        ("meta_catalog_sha256", "Catalog, SHA-256", catalog_sha256, TEXT),
        *((f"{RECORD}{i}", f"The plan, part {i}", part, TEXT) for i, part in enumerate(packed, 1)),
    ]
    for row, (name, label, value, display) in enumerate(rows, HEAD_ROWS):
        wiring.names[name] = sheet.put(row, 1, Cell(value, "off_page", display), name, label=label)
    return sheet


def packed_record(record: Mapping[str, Any]) -> Sequence[str]:
    """A plan as JSON has it, in texts that fit into cells."""
    text = base64.b64encode(zlib.compress(json.dumps(record).encode(), 9)).decode()
    return [text[i : i + IN_A_CELL] for i in range(0, len(text), IN_A_CELL)]

"""The example of a plan, worked out once a process, and its workbook."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from sheetgen.catalog import Catalog
from sheetgen.plan.findings import Findings, findings
from sheetgen.plan.flat_book import build_plan_book
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import read_plan
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import CASE
from sheetgen.writers.formats import templates_folder
from sheetgen.writers.xlsx import write_xlsx


def spend_usd(plan: Plan) -> float:
    """The cost of all quarters at p50."""
    return float(solved_plan(plan, timed=False).money["spend_usd"][:, CASE["p50"]].sum())


@functools.cache
def example() -> Findings:
    return findings(solved_plan(read_plan(templates_folder() / "plan.yaml", Catalog())))


@functools.cache
def example_record() -> dict[str, Any]:
    return record_of(example())


def example_retiring(folder: Path, quarter: str) -> dict[str, Any]:
    """The example's record where its last service is served until that quarter begins."""
    text, n = re.subn(r"(?<=retire: )\S+", quarter, (templates_folder() / "plan.yaml").read_text())
    assert n == 1
    (folder / "plan.yaml").write_text(text)
    return record_of(findings(solved_plan(read_plan(folder / "plan.yaml", Catalog()))))


@functools.cache
def example_workbook() -> bytes:
    return workbook_of(example())


def workbook_of(findings: Findings) -> bytes:
    return write_xlsx(build_plan_book(findings, plan_page(findings), record_of(findings)))


def decided(decision: dict[str, Any]) -> str:
    """A decision of the JSON as the documents word it."""
    return f"{decision['what']}{' to' * (decision['what'] == 'raise quota')} {decision['n_instances']} x"

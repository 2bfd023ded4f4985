"""The example of a plan, worked out once a process, and its workbook."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from amounts import IN_LONG

from sheetgen.catalog import Catalog
from sheetgen.plan import findings as findings_module
from sheetgen.plan.findings import Findings, findings
from sheetgen.plan.flat_book import build_plan_book
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import read_plan
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.readback import pulled_plan
from sheetgen.writers.formats import templates_folder
from sheetgen.writers.xlsx import write_xlsx


def spend_usd(plan: Plan) -> float:
    """The cost of all quarters at p50."""
    return float(solved_plan(plan, timed=False).money["spend_usd"][:, CASE["p50"]].sum())


@contextlib.contextmanager
def without_levers() -> Iterator[None]:
    """Plans are worked out but for the changes that cost less: each solves the plan anew, together they take three
    quarters of the time. With --long they are there."""
    if IN_LONG:
        yield
        return
    anew = inspect.unwrap(findings)  # nothing of it is kept
    with (
        mock.patch.multiple(findings_module, cheaper=lambda trials: (), findings=anew),
        mock.patch.object(pulled_plan, "findings", anew),
    ):
        yield


def findings_without_levers(answer: Answer) -> Findings:
    with without_levers():
        return findings_module.findings(answer)


class PlanRecord(dict[str, Any]):
    """The record of a plan, whose changes that cost less are worked out when a test reads them."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(record_of(findings_without_levers(answer)))
        del self["cheaper"], self["closing"]
        self._answer = answer

    def __missing__(self, key: str) -> Any:
        if key not in ("cheaper", "closing"):
            raise KeyError(key)
        self.update(record_of(findings(self._answer)))
        return self[key]


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
    return PlanRecord(solved_plan(read_plan(folder / "plan.yaml", Catalog())))


@functools.cache
def example_workbook() -> bytes:
    return workbook_of(example())


def workbook_of(findings: Findings) -> bytes:
    return write_xlsx(build_plan_book(findings, plan_page(findings), record_of(findings)))


def decided(decision: dict[str, Any]) -> str:
    """A decision of the JSON as the documents word it."""
    return f"{decision['what']}{' to' * (decision['what'] == 'raise quota')} {decision['n_instances']} x"


def plan_that_moves_within_a_quarter() -> dict[str, Any]:
    """One machine serves `small`, and two of the larger type serve `large`; four of these are committed from 16 May
    2027 on."""
    small, large = "azure/Standard_NC40ads_H100_v5", "azure/Standard_NC80adis_H100_v5"
    committed = {
        "id": "c",
        "type": large,
        "count": 4,
        "purchase": "reserved-1yr",
        "usd_per_hour": 9,
        "from": "2027-05-16",
        "until": "2028-12-31",
    }
    return {
        "plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"},
        "policy": {"near_tie_fraction": 0, "move_days": 20},
        "supply": {"allowed": {"instances": [small, large]}, "committed": [committed]},
        "services": [
            {"id": "small", "demand": {"at_once": 60}, "model": "8b"},
            {"id": "large", "demand": {"at_once": 200}, "model": "qwen3-32b"},
        ],
    }

"""Fifty services over twelve quarters, in every format: in half a minute of one core, and below 1 GB; two hundred over
six in a minute."""

from __future__ import annotations

import resource
import time

import pytest
from pages import TEMPLATES

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.findings import findings
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.writers.docx import write_plan_docx
from sheetgen.writers.formats import Options
from sheetgen.writers.plan_page import write_plan_pdf
from sheetgen.writers.plan_text import plan_csv, plan_markdown

MODELS = (
    "llama-3.1-8b",
    "llama-3.3-70b",
    "gpt-oss-120b",
    "qwen3-235b-a22b",
    "deepseek-v3",
    "gpt-oss-20b",
    "mixtral-8x22b-v0.1",
    "phi-4",
    "gemma-3-27b",
    "llama-3.1-405b",
)
MOST_KIB = 2**20


@pytest.mark.long
@pytest.mark.parametrize(("n", "quarters", "seconds"), [(50, 12, 30), (200, 6, 60)])
def test_many_services_over_some_quarters(n: int, quarters: int, seconds: int) -> None:
    services = [
        {
            "id": f"s{i}",
            "model": MODELS[i % len(MODELS)],
            "growth": {"per_quarter": {"p10": 0, "p50": 0.1, "p90": 0.2}},
            "request": {"input_tokens": 1000 + 50 * i, "output_tokens": 300 + i},
            "demand": {"requests": {"p10": 1, "p50": 3 + i % 5, "p90": 12}} if i % 2 else {"at_once": 60 + i},
        }
        for i in range(n)
    ]
    data = {
        "plan": {"start": "2027-Q1", "quarters": quarters, "as_of": "2026-11-26"},
        "services": services,
        "policy": {"redundancy": {"survive": "replica"}, "release_after_quarters": 1, "moving_cost_usd": 20000},
        "supply": {
            "owned": [{"id": "o", "gpu": "h100", "count": 64, "cost_per_quarter": 300000}],
            "committed": [
                {"id": "c", "type": "aws/p5.48xlarge", "count": 6, "until": "2028-06-30", "usd_per_hour": 40}
            ],
        },
    }
    began = time.process_time()  # of this process alone, however busy the machine is
    whole = findings(solved_plan(plan_of(Document("plan.yaml", data, {}), Catalog())))
    record, page, options = record_of(whole), plan_page(whole), Options(TEMPLATES)
    written = [write(page, options) for write in (write_plan_pdf, write_plan_docx)]
    written += [plan_markdown(page, Options()), plan_csv(record, Options())]
    assert time.process_time() - began < seconds
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MOST_KIB
    (services,) = [section.table for section in page.behind if section.title.startswith("Services")]
    assert all(written) and services and len(services.rows) == n + 2
    assert len(record["services"]) == n * quarters * 3
    assert all(check["ok"] for check in record["checks"] if check["check"] != "nothing is late")

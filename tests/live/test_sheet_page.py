"""The page of a build opens at its headline and answers there as the build does, with all options that it was given."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from live_questions import OF_WAY, catalog, differences, fields_of, in_node, program_of, values_of
from option_values import Options

from sheetgen.answer.levers import levers_of_sheet
from sheetgen.answer.recording import record_of
from sheetgen.answer.solve import solve
from sheetgen.live.live_facts import facts_of_sheet
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.sheet_question import Question, ask

LOG = Path(__file__).parents[1] / "startup" / "logs" / "vllm-0.31.0.log"
POINT = "gpu=h100,tp=4,concurrent_requests=32,input_tokens=7k,output_tokens=1k,tpot_ms=40,ttft_ms=2000"
AS_OF = {"as_of": "2026-08-01"}
BUILDS: dict[str, Options] = {
    "usual": {"models": "8b,70b"},
    "people": {"models": "70b", "users": "300", "requests_per_user_per_day": "60", "workloads": "chat,rag"},
    "rate": {"models": "8b", "requests_per_day": "200k", "workloads": "chat"},
    "own load": {
        "models": "8b",
        "context_tokens": "16k",
        "input_tokens": "3000",
        "output_tokens": "500",
        "users": "90",
    },
    "market": {"models": "70b", "providers": "aws,lambda", "region": "us-east-1", "purchase": "reserved-1yr"},
    "other GPUs": {"models": "70b", "gpus": "a100,l40s", "vendors": "nvidia,amd", "headline": "chat:100"},
    "instances": {"models": "8b", "instances": "aws/g6e.xlarge,aws/p5.48xlarge"},
    "engine": {"models": "8b,deepseek-v3", "engine": "sglang", "gpu_memory_utilization": "0.85", "survive": "machine"},
    "shares of memory": {"models": "8b", "engine": "sglang", "gpus": "l4,h200"},
    "money": {"models": "70b", "discount_fraction": "0.05,aws=0.2,azure:reserved-1yr=0.3", "hours_per_month": "700"},
    "targets": {"models": "70b", "tpot_ms": "40,rag=off", "ttft_ms": "3000", "confidence": "0.9"},
    "agents": {
        "models": "70b",
        "workloads": "agent",
        "history_hit_fraction": "0.8",
        "prefix_cache_hit_fraction": "0.1",
    },
    "precision": {"models": "gpt-oss-120b,70b", "ask": "70b", "weight_dtype": "int4", "kv_cache_dtype": "fp8"},
    "checkpoint": {"models": "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8"},
    "draft": {"models": "70b", "draft_model": "8b"},
    "measured": {"models": "70b", "measured": POINT, "headline": "chat:32"},
    "measured pool": {"models": "8b", "weight_dtype": "published", "gpus": "a100", "measured": f"{LOG},gpu=a100"},
    "typed": {
        "models": "70b",
        "typed": {
            "gpus": {"nvidia-h100-sxm5-80gb": {"memory_bandwidth_bytes_per_second": 4e12}},
            "instances": {"aws/p5.48xlarge": {"price_usd_per_hour": 20.0}},
            "inputs": {"output_rag": 700},
        },
    },
}


@functools.cache
def question_of(name: str) -> Question:
    return ask(catalog(), {**BUILDS[name], **AS_OF})


def opened(facts: Any) -> dict[str, Any]:
    """The page's question when it is opened: texts read as numbers where the page reads numbers."""
    asked: Options = {"providers": []}
    for name, text in facts["opened"].items():
        if name == "providers":
            asked[name] = [part for part in text.split(",") if part]
        elif name in facts["inputs"]:
            asked[name] = 0 if text == "off" else float(text)
        else:
            asked[name] = text
    return asked


@pytest.mark.some(7)
@pytest.mark.parametrize("name", BUILDS)
def test_the_page_opens_with_the_builds_answer(name: str) -> None:
    question = question_of(name)
    facts = json.loads(json.dumps(facts_of_sheet(question)))
    [page] = in_node([opened(facts)], program_of(facts))
    assert "error" not in page and "refused" not in page, page
    solved = solve(question)
    cell = record_of(solved, levers_of_sheet(solved)).headline_cells[question.ask or 0]
    python = values_of(cell)
    if page["declined"]:  # a build answers in the class that it was asked for
        assert page["purchase"] != question.settings.purchase
        return
    assert list(differences(python, page)) == []
    ways = [fields_of(way, *OF_WAY) for way in cell.pay_less] if cell.chosen else None
    assert list(differences(ways, page["pay_less"])) == []
    assert set(facts["command"]) <= set(BY_NAME) | {"engine", "engine_version", "measured", "draft_model"}

"""Why an instance of the same price was not chosen: by what breaks ties, in its order."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import sheetgen
from sheetgen.answer.reasons import why_not
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.catalog.model import Model
from sheetgen.question.sheet_question import ask

USD_PER_HOUR = {
    "aws/p5.48xlarge": 8.0, "gcp/a3-highgpu-8g": 8.0, "aws/p5.4xlarge": 0.8, "azure/Standard_ND96isr_H100_v5": 10.0,
}  # fmt: skip


def reasons(model: str, gpus: str, requests: int, usd_per_hour: dict[str, float]) -> tuple[str, dict[str, str]]:
    """The instance chosen at these prices, and why the others were not."""
    load = {"models": model, "workloads": "chat", "tiers": str(requests)}
    asked = {**load, "gpus": gpus, "tpot_ms": "off", "weight_dtype": "published", "confidence": "0.5"}
    question = ask(Catalog(), {**asked, "instances": ",".join(usd_per_hour)})
    priced = tuple(replace(one, usd_per_hour=usd_per_hour[one.instance]) for one in question.candidates)
    solved = solve(replace(question, candidates=priced))
    offer = solved.choices[0].offer
    assert offer is not None
    return solved.candidate(offer).instance, {one: reason.words for one, reason in why_not(solved, 0)}


def test_more_instances_and_the_order_of_the_catalog() -> None:
    chosen, others = reasons("8b", "h100", 1024, USD_PER_HOUR)
    assert chosen == "aws/p5.48xlarge"
    assert others["aws/p5.4xlarge"] == "same price, but 10 instances, not 1"
    assert others["gcp/a3-highgpu-8g"] == "same price, but later in the list"
    assert others["azure/Standard_ND96isr_H100_v5"] == "$7,300 a month, 25% more"


def test_a_larger_tp() -> None:
    chosen, others = reasons("qwen3-32b", "h100,l40s", 1, {"aws/g6e.48xlarge": 5.0, "aws/p5.4xlarge": 5.0})
    assert chosen == "aws/p5.4xlarge"
    assert others == {"aws/g6e.48xlarge": "same price, but TP 2, not 1"}


@pytest.mark.parametrize("typed, chosen", [(None, "aws/p5en.48xlarge"), (1, "aws/p4de.24xlarge")])
def test_hardware_without_a_kernel_for_the_models_attention(typed: int | None, chosen: str) -> None:
    """vLLM runs DeepSeek V4 on no A100, unless the reader's does."""
    instances = ["aws/p4de.24xlarge", "aws/p5en.48xlarge"]
    asked = {"models": "deepseek-v4-flash", "instances": ",".join(instances), "workloads": "chat", "tiers": "1"}
    rows = {"gpus": {"nvidia-a100-sxm4-80gb": {"runs_sparse_attention": typed}}}
    solved = solve(ask(Catalog(), asked if typed is None else {**asked, "typed": rows}))
    assert solved.choices[0].offer is not None and solved.candidate(solved.choices[0].offer).instance == chosen
    words = [reason.words for _, reason in why_not(solved, 0)]
    assert words == ["vLLM has no kernel for its sparse attention on A100 80GB SXM"] or typed


@pytest.mark.some(30)
@pytest.mark.parametrize("model", [m for m in Catalog().models() if m.kind == "model"], ids=lambda one: one.id)
def test_which_models_have_sparse_attention(model: Model) -> None:
    """Those that read a part of their cache (an indexer, compressed entries) and no others need its kernels."""
    sparse = any(group.kind in ("indexer", "compressed") for group in model.attention)
    said = sheetgen.size(model=model.id, gpu="a100", context="1k")["verdict"]
    assert ("has no kernel for the sparse attention" in said) == sparse


def test_no_reason_at_the_confidence_in_use_says_less_than_nothing() -> None:
    """What is short or too slow is so at the level at which the choice is made: 70 % sure."""
    answer = sheetgen.recommend(model="70b", context="16k", concurrent_requests=32)
    reasons = [one["reason"] for one in answer["why_not"] if "short" in one["reason"] or "slow" in one["reason"]]
    amounts = [float(re.search(r"(-?[\d,.]+) (?:GiB|ms)", reason)[1].replace(",", "")) for reason in reasons]  # type: ignore[index]
    assert len(reasons) > 10 and min(amounts) > 0 and not any("a little over" in reason for reason in reasons)

"""Why an instance of the same price was not chosen: by what breaks ties, in its order."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from answers import recommend_text
from option_values import Options

import sheetgen
from sheetgen.answer.reasons import why_not
from sheetgen.answer.solve import solve
from sheetgen.api import recommended, sheet_record
from sheetgen.catalog import Catalog
from sheetgen.catalog.model import Model
from sheetgen.question.sheet_question import ask

AS_OF = "2026-11-20"
USD_PER_HOUR = {
    "aws/p5.48xlarge": 8.0, "gcp/a3-highgpu-8g": 8.0, "aws/p5.4xlarge": 0.8, "azure/Standard_ND96isr_H100_v5": 10.0,
}  # fmt: skip


def reasons(
    model: str, gpus: str, requests: int, usd_per_hour: dict[str, float], weight_dtype: str = "published"
) -> tuple[str, dict[str, str]]:
    """The instance chosen at these prices, and why the others were not."""
    load = {"models": model, "workloads": "chat", "tiers": str(requests)}
    asked = {**load, "gpus": gpus, "tpot_ms": "off", "weight_dtype": weight_dtype, "confidence": "0.5"}
    question = ask(Catalog(), {**asked, "instances": ",".join(usd_per_hour)})
    priced = tuple(
        replace(candidate, usd_per_hour=usd_per_hour[candidate.instance]) for candidate in question.candidates
    )
    solved = solve(replace(question, candidates=priced))
    offer = solved.choices[0].offer
    assert offer is not None
    [cell] = sheet_record(solved, levers=()).cells
    return solved.candidate(offer).instance, {other.instance: other.reason for other in cell.why_not}


def test_more_gpus_and_the_order_of_the_catalog() -> None:
    chosen, others = reasons("8b", "h100", 1024, USD_PER_HOUR)
    assert chosen == "aws/p5.48xlarge"
    assert others["aws/p5.4xlarge"].endswith("10 GPUs, not 8")
    assert others["gcp/a3-highgpu-8g"].endswith("later in the list")
    assert others["azure/Standard_ND96isr_H100_v5"] == "$7,300 a month, 25% more"


def test_more_gpus_than_the_cheapest() -> None:
    chosen, others = reasons("qwen3-32b", "h100,l40s", 1, {"aws/g6e.48xlarge": 5.0, "aws/p5.4xlarge": 5.0})
    assert chosen == "aws/p5.4xlarge"
    assert others == {"aws/g6e.48xlarge": "same price, but 8 GPUs, not 1"}


@pytest.mark.parametrize("typed, chosen", [(None, "aws/p5en.48xlarge"), (1, "aws/p4de.24xlarge")])
def test_hardware_without_a_kernel_for_the_models_attention(typed: int | None, chosen: str) -> None:
    """vLLM runs DeepSeek V4 on no A100, unless the reader's does."""
    instances = ["aws/p4de.24xlarge", "aws/p5en.48xlarge"]
    asked = {"models": "deepseek-v4-flash", "instances": ",".join(instances), "workloads": "chat", "tiers": "1"}
    rows = {"gpus": {"nvidia-a100-sxm4-80gb": {"runs_sparse_attention": typed}}}
    solved = solve(ask(Catalog(), asked if typed is None else {**asked, "typed": rows}))
    assert solved.choices[0].offer is not None and solved.candidate(solved.choices[0].offer).instance == chosen
    words = [reason.words for _, reason in why_not(solved, 0)]
    assert [line for line in words if "sparse attention" in line and "A100" in line] or typed


@pytest.mark.some(30)
@pytest.mark.parametrize("model", [m for m in Catalog().models() if m.kind == "model"], ids=lambda model: model.id)
def test_which_models_have_sparse_attention(model: Model) -> None:
    """Those that read a part of their cache (an indexer, compressed entries) and no others need its kernels."""
    sparse = any(group.kind in ("indexer", "compressed") for group in model.attention)
    verdict = sheetgen.size(model=model.id, gpu="a100", context="1k")["verdict"]
    assert ("sparse attention" in verdict) == sparse


def test_no_reason_at_the_confidence_in_use_says_less_than_nothing() -> None:
    """Hardware that is short or too slow is so at the level at which the choice is made: 70 % sure."""
    answer = sheetgen.recommend(model="70b", context="16k", concurrent_requests=32)
    reasons = [
        reason["reason"] for reason in answer["why_not"] if "short" in reason["reason"] or "slow" in reason["reason"]
    ]
    amounts = [float(re.search(r"(-?[\d,.]+) (?:GiB|ms)", reason)[1].replace(",", "")) for reason in reasons]  # type: ignore[index]
    assert len(reasons) > 10 and min(amounts) > 0 and not any("a little over" in reason for reason in reasons)


PASSED_OVER: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"model": "gemma-2-9b", "context": "8k", "users": 500}, "aws/p5.4xlarge", "served"),
    ({"model": "gemma-2-9b", "context": "8k", "users": 500}, "aws/g7e.2xlarge", "machines"),
    ({"model": "qwen3-32b", "context": "16k", "concurrent_requests": 8}, "aws/p5.4xlarge", "served"),
)


@pytest.mark.parametrize("load, instance, lost_by", PASSED_OVER)
def test_what_costs_no_more_than_the_answer_says_why_it_lost(load: Options, instance: str, lost_by: str) -> None:
    """By the rule that decided, with what it and the answer have of that: as it answers where it alone takes part."""
    answer = sheetgen.recommend(**load, as_of=AS_OF)
    alone = sheetgen.recommend(**load, as_of=AS_OF, instances=instance)
    [other] = [other for other in answer["passed_over"] if other["instance"] == instance]
    assert (other["n_instances"], other["lost_by"]) == (alone["n_instances"], lost_by)
    assert other["monthly_usd"] == pytest.approx(alone["monthly_usd"]) and other["monthly_usd"] <= answer["monthly_usd"]
    decided = {"served": "served_at_target", "machines": "n_instances"}[lost_by]
    assert other["has"] == pytest.approx(alone[decided]) and other["answer_has"] == pytest.approx(answer[decided])
    assert (other["has"] < other["answer_has"]) == (lost_by == "served")
    assert answer["passed_over"] == sorted(answer["passed_over"], key=lambda other: other["monthly_usd"])


def test_the_same_sentence_says_why_what_was_measured_and_the_cheapest_lost() -> None:
    solved = recommended({**PASSED_OVER[0][0], "as_of": AS_OF}, Catalog())
    told = " ".join(recommend_text(solved, True).split())
    answer, measured, cheapest = (
        re.search(words, told).groups()  # type: ignore[union-attr]
        for words in (
            r"1x azure/Standard_NC40ads_H100_v5, \$([\d,]+) a month",
            r"cheapest that was: \$([\d,]+), 1x aws/p5.4xlarge, \d+% sure, (\d+)% less: serves ([\d.]+) requests a "
            r"second, not ([\d.]+)\.",
            r"The cheapest, \$([\d,]+): 2x aws/g7e.2xlarge, (\d+)% less: (2) instances, not (1)\.",
        )
    )
    [usd] = (float(month.replace(",", "")) for month in answer)
    for month, share, *_ in (measured, cheapest):
        assert int(share) == round(100 * (1 - float(month.replace(",", "")) / usd)) > 0
    assert float(measured[2]) < float(measured[3])


def test_hardware_that_only_keeps_the_precision_loses_by_it() -> None:
    """At like prices, the same machines and counts: an A100 keeps FP8 weights, and does not compute in FP8."""
    chosen, others = reasons("8b", "h100,a100-80gb", 1, {"gcp/a2-ultragpu-1g": 0.99, "aws/p5.4xlarge": 1.0}, "fp8")
    assert chosen == "aws/p5.4xlarge"
    assert others == {"gcp/a2-ultragpu-1g": "$723 a month, 1% less, but does not compute in FP8"}

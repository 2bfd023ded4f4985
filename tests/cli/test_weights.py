"""The weights in outputs: whose they are, and the answer with those that were published."""

from __future__ import annotations

from pathlib import Path

import pytest

import sheetgen


@pytest.mark.long
def test_every_format_says_whose_weights_and_what_the_published_ones_cost(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    asked = ("--model", "70b", "--context", "16k", "--concurrent-requests", "16", "--weight-dtype", "recommended")
    text = run("recommend", *asked).stdout
    asked_alone = {"model": "70b", "context": "16k", "concurrent_requests": 16, "weight_dtype": "recommended"}
    published = sheetgen.recommend(**asked_alone)["as_published"]
    rented = f"{published['n_instances']}x {published['instance']}"
    assert f"published  ${published['monthly_usd']:,.0f} in BF16: {rented}." in text
    run("build", "--models", "70b,gpt-oss-120b", "--weight-dtype", "recommended", "--workloads", "rag", "--tiers", "16",
        "--format", "json", "--out", str(tmp_path))  # fmt: skip
    record = (tmp_path / "sizing-sheet.json").read_text(encoding="utf-8")
    assert "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8" in record and '"as_published"' in record

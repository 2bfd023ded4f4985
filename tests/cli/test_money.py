"""What `recommend` and `build` say of money, their options and the same words in a scenario file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

P5 = (
    "recommend",
    "--model",
    "70b",
    "--context",
    "16k",
    "--concurrent-requests",
    "32",
    "--instances",
    "aws/p5.48xlarge",
    "--details",
    "--as-of",
    "2026-11-20",
)


def test_recommend_in_words(run) -> None:  # type: ignore[no-untyped-def]
    text = run(*P5).output
    assert "\n1x aws/p5.48xlarge, $40,179 a month, $482,150 a year\n" in text
    assert "\n  reserved-3yr: 1x aws/p5.48xlarge, $17,357 a month\n" in text
    assert "\n  capacity-block: 1x aws/p5.48xlarge, $30,315 a month\n" in text
    assert "\n  no price, or none that holds it: reserved-1yr, spot\n" in text
    assert "  $87.35 per user and month; $" in text  # 460 people
    assert "answer per million tokens at 70% utiliz" in text
    above = "cheaper than renting on demand above 24% of the hours (22% to 29%)\n"
    assert f"own 8× H100 SXM: $8,640 to $11,720 a month; {above}" in text
    assert "  less than the best commitment, reserved-3yr at $17,357 a month, used in every hour\n" in text
    assert "  cash in the first 3 years $495,829: " in text
    assert "budget:" not in text


def test_contingency_and_currency(run) -> None:  # type: ignore[no-untyped-def]
    more = ("--contingency-fraction", "0.1", "--currency", "eur", "--fx-rate", "0.92", "--fx-date", "2026-11-19")
    text = run(*P5, *more).output
    assert "budget: EUR 40,661 a month, EUR 487,936 a year, with 10% contingency (1 USD = 0.92 EUR)" in text
    assert "€36,965 a month, €443,578 a year; as budgeted EUR 40,661, with 10% c" in " ".join(text.split())
    answer = json.loads(run(*P5, *more, "--json").output)
    assert answer["inputs"]["money"]["fx_date"] == "2026-11-19"
    assert round(answer["budget"]["monthly"]["total"]) == 40_661


def test_utilization_and_a_quote(run) -> None:  # type: ignore[no-untyped-def]
    half, full = (json.loads(run(*P5, "--utilization", u, "--json").output) for u in ("0.5", "1"))
    for key in ("usd_per_million_input_tokens", "usd_per_million_output_tokens", "usd_per_million_tokens"):
        assert abs(half[key] / full[key] - 2) < 1e-9
    quoted = run(*P5, "--capex-usd-per-gpu", "h100=39375", "--kw-per-gpu", "1.5", "--owned-years", "3").output
    assert "own 8× H100 SXM: $11,790 a month; cheaper than renting on demand above 29% of the hours\n" in quoted


def test_an_old_purchase_price_is_said(run) -> None:  # type: ignore[no-untyped-def]
    later = (*P5[:-1], "2027-03-01")
    assert "a month, an old price; cheaper than renting on demand above" in run(*later).output
    assert "an old price" not in run(*later, "--capex-usd-per-gpu", "30000").output


def test_a_gpu_that_nobody_sells_a_price_of(run) -> None:  # type: ignore[no-untyped-def]
    text = run(*P5[:-5], "--instances", "azure/Standard_NC80adis_H100_v5", "--details", "--as-of", "2026-11-20").output
    assert "own: no street price of this GPU is known; give yours with --capex-usd-per-gpu\n" in text
    assert "own 1" not in text and "cash in" not in text


def test_the_same_words_in_a_scenario_file(run, here: Path) -> None:  # type: ignore[no-untyped-def]
    Path("money.yaml").write_text(
        "models: 8b\nworkloads: chat\nutilization: 0.5\ncontingency-fraction: 0.05\ncurrency: EUR\nfx-rate: 0.92\n"
        "fx-date: 2026-11-01\ncapex_usd_per_gpu: [h100=39375, l4=3000]\nowned-years: 4\nusd-per-kwh: 0.2\npue: 1.2\n"
        "colo-usd-per-kw-month: 150\nas-of: 2026-11-20\n"
    )
    result = run("build", "--scenario", "money.yaml", "--format", "json", "--name", "m", "--pue", "1.3")
    assert result.exit_code == 0, result.output
    asked = json.loads((here / "output" / "m.json").read_text())["inputs"]
    assert asked["money"] == {
        "currency": "EUR",
        "fx_rate": 0.92,
        "fx_date": "2026-11-01",
        "utilization": 0.5,
        "contingency_fraction": 0.05,
    }
    assert asked["owning"]["capex_usd_per_gpu"] == {"nvidia-h100-sxm5-80gb": 39_375, "nvidia-l4-24gb": 3000}
    assert (asked["owning"]["owned_years"], asked["owning"]["usd_per_kwh"], asked["owning"]["pue"]) == (4, 0.2, 1.3)


def test_nothing_is_half_written(run, here: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("build", "--models", "8b", "--currency", "EUR", "--format", "xlsx,json")
    assert result.exit_code == 1 and "currency is 'EUR', but no fx_rate" in result.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("as_of,is_old", [("2027-01-16", False), ("2027-01-17", True)])
def test_an_old_price_is_marked(as_of: str, is_old: bool, run) -> None:  # type: ignore[no-untyped-def]
    """180 days after 2026-07-20 it is not yet."""
    options = (
        "--model",
        "70b",
        "--context",
        "16k",
        "--concurrent-requests",
        "32",
        "--gpus",
        "h100",
        "--providers",
        "aws",
    )
    said = run("recommend", *options, "--as-of", as_of).stdout
    assert f", us-east-1, 2026-07-20{' (old)' if is_old else ''}.\n" in said

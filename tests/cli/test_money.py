"""Money in `recommend` and `build`, their options and the same words in a scenario file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import LOAD

P5 = ("recommend", *LOAD, "--instances", "aws/p5.48xlarge", "--details", "--as-of", "2026-11-20")


def test_recommend_in_words(run) -> None:  # type: ignore[no-untyped-def]
    text = run(*P5).output
    figures = ("$40,179", "$482,150", "$17,357", "$30,315", "$8,640", "$11,720", "24%", "22%", "29%", "$495,829")
    assert [figure for figure in figures if figure not in text] == []
    assert "$87.35" in text  # of 460 people
    assert "budget:" not in text


def test_contingency_and_currency(run) -> None:  # type: ignore[no-untyped-def]
    more = ("--contingency-fraction", "0.1", "--currency", "eur", "--fx-rate", "0.92", "--fx-date", "2026-11-19")
    text = run(*P5, *more).output
    assert "EUR 40,661" in text and "EUR 487,936" in text and "1 USD = 0.92 EUR" in text
    assert "€36,965" in text and "€443,578" in text
    answer = json.loads(run(*P5, *more, "--json").output)
    assert answer["inputs"]["money"]["fx_date"] == "2026-11-19"
    assert round(answer["budget"]["monthly"]["total"]) == 40_661


def test_utilization_and_a_quote(run) -> None:  # type: ignore[no-untyped-def]
    half, full = (json.loads(run(*P5, "--utilization", u, "--json").output) for u in ("0.5", "1"))
    for key in ("usd_per_million_input_tokens", "usd_per_million_output_tokens", "usd_per_million_tokens"):
        assert abs(half[key] / full[key] - 2) < 1e-9
    quoted = run(*P5, "--capex-usd-per-gpu", "h100=39375", "--kw-per-gpu", "1.5", "--owned-years", "3").output
    assert "$11,790" in quoted and "above 29%" in quoted


def test_an_old_purchase_price_is_said(run) -> None:  # type: ignore[no-untyped-def]
    later = (*P5[:-1], "2027-03-01")
    assert "an old price" in run(*later).output
    assert "an old price" not in run(*later, "--capex-usd-per-gpu", "30000").output


def test_a_gpu_that_nobody_sells_a_price_of(run) -> None:  # type: ignore[no-untyped-def]
    text = run(*P5[:-5], "--instances", "azure/Standard_NC80adis_H100_v5", "--details", "--as-of", "2026-11-20").output
    assert "--capex-usd-per-gpu" in text
    assert "own 1" not in text and "cash in" not in text


def test_the_same_words_in_a_scenario_file(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    Path("money.yaml").write_text(
        "models: 8b\nworkloads: chat\nutilization: 0.5\ncontingency-fraction: 0.05\ncurrency: EUR\nfx-rate: 0.92\n"
        "fx-date: 2026-11-01\ncapex_usd_per_gpu: [h100=39375, l4=3000]\nowned-years: 4\nusd-per-kwh: 0.2\npue: 1.2\n"
        "colo-usd-per-kw-month: 150\nas-of: 2026-11-20\n"
    )
    result = run("build", "--scenario", "money.yaml", "--format", "json", "--name", "m", "--pue", "1.3")
    assert result.exit_code == 0, result.output
    asked = json.loads((workdir / "output" / "m.json").read_text())["inputs"]
    assert asked["money"] == {
        "currency": "EUR",
        "fx_rate": 0.92,
        "fx_date": "2026-11-01",
        "utilization": 0.5,
        "contingency_fraction": 0.05,
    }
    assert asked["owning"]["capex_usd_per_gpu"] == {"nvidia-h100-sxm5-80gb": 39_375, "nvidia-l4-24gb": 3000}
    assert (asked["owning"]["owned_years"], asked["owning"]["usd_per_kwh"], asked["owning"]["pue"]) == (4, 0.2, 1.3)


def test_nothing_is_half_written(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("build", "--models", "8b", "--currency", "EUR", "--format", "xlsx,json")
    assert result.exit_code == 1 and "'EUR', but no fx_rate" in result.stderr
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("as_of,is_old", [("2027-01-16", False), ("2027-01-17", True)])
def test_an_old_price_is_marked(as_of: str, is_old: bool, run) -> None:  # type: ignore[no-untyped-def]
    """180 days after 2026-07-20 it is not yet."""
    options = (*LOAD, "--gpus", "h100", "--providers", "aws")
    stdout = run("recommend", *options, "--as-of", as_of).stdout
    assert f", us-east-1, 2026-07-20{' (old)' if is_old else ''}.\n" in stdout

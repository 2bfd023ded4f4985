"""One discount on every rental price: in `recommend`, `explain` and `build`, by flag and in a scenario file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import LOAD

P5 = (*LOAD, "--instances", "aws/p5.48xlarge", "--as-of", "2026-11-20")
OFF = ("--discount-fraction", "0.2")


def test_recommend_counts_what_is_paid_and_says_so(run) -> None:  # type: ignore[no-untyped-def]
    text = run("recommend", *P5, *OFF, "--details").output
    assert [figure for figure in ("$32,143", "less 20%", "$13,886", "$8,640", "above 30%") if figure not in text] == []
    listed = run("recommend", *P5).output
    assert listed == run("recommend", *P5, "--discount-fraction", "0").output and "less 20%" not in listed


def test_json_says_the_discount_and_prices_less_it(run) -> None:  # type: ignore[no-untyped-def]
    listed, less = (json.loads(run("recommend", *P5, *off, "--json").output) for off in ((), OFF))
    assert (listed["inputs"]["discount_fraction"], less["inputs"]["discount_fraction"]) == (0, 0.2)
    assert less["hourly_usd"] == pytest.approx(0.8 * 55.04) and less["monthly_usd"] == pytest.approx(0.8 * 40_179.20)
    assert less["candidates"][0]["hourly_usd"] == pytest.approx(0.8 * 55.04)
    assert less["purchase_classes"][0]["hourly_usd"] == less["hourly_usd"]
    assert less["budget"]["monthly"]["usd"] == less["monthly_usd"]


def test_explain_shows_the_list_price_the_discount_and_what_is_paid(run) -> None:  # type: ignore[no-untyped-def]
    text = run("explain", "hourly_usd", *P5, "--discount-fraction", "0.25").output
    assert "price_usd_per_hour = 41.28  [computed]" in text
    assert "listed_usd_per_hour = 55.04  [catalog]" in text
    assert "discount_fraction = 0.25  [given]" in text
    plain = run("explain", "hourly_usd", *P5).output
    assert "price_usd_per_hour = 55.04  [catalog]" in plain and "discount" not in plain


def test_the_same_in_a_scenario_file_and_a_flag_wins(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    Path("mine.yaml").write_text("models: 8b\nworkloads: chat\ntiers: [32]\ndiscount-fraction: 0.2\n")
    usd = []
    for n, more in enumerate(((), ("--discount-fraction", "0.5"), ("--discount-fraction", "0"))):
        result = run("build", "--scenario", "mine.yaml", "--format", "json,md", "--name", f"s{n}", *more)
        assert result.exit_code == 0, result.output
        usd.append(json.loads((workdir / "output" / f"s{n}.json").read_text())["cells"][0]["monthly_usd"])
    assert usd[0] == pytest.approx(0.8 * usd[2]) and usd[1] == pytest.approx(0.5 * usd[2])
    assert "less 20%" in (workdir / "output" / "s0.md").read_text()
    assert "less 20%" not in (workdir / "output" / "s2.md").read_text()


@pytest.mark.parametrize("value", ["20", "1.5", "1", "-0.1", "many", "100%"])
def test_what_is_no_share_is_refused(value: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("build", "--models", "8b", f"--discount-fraction={value}")
    assert result.exit_code == 1 and list(workdir.iterdir()) == []
    assert result.stderr.startswith(f"discount_fraction is '{value}'. ")

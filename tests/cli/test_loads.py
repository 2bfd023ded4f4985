"""What commands say of a load: people, requests in flight, or a rate; and which options exclude each other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

RECOMMEND = ("recommend", "--model", "70b", "--context", "16k")
SIZE = ("size", "--model", "70b", "--gpu", "h100", "--tensor-parallel-size", "4", "--context", "16k")


@pytest.mark.parametrize("command", [RECOMMEND, SIZE])
@pytest.mark.parametrize(
    "load,said",
    [
        (("--users", "20"), "20 users, all active at once, at 16,384 tokens (15,360 "),
        (("--users", "0.2k", "--active-fraction", "0.1"), "200 users, 10 % active at once: 20 in flight, at 16,384"),
        (("--concurrent-requests", "20"), "20 in flight, at 16,384 tokens"),
        (("--requests-per-second", "0.25"), "0.25 requests/s at peak: "),
        (
            ("--requests-per-day", "5k", "--peak-hour-share", "0.1", "--burst-factor", "2"),
            "0.28 requests/s at peak (5,000 a day x 0.1 in the peak hour / 3,600 x 2): ",
        ),
    ],
)
def test_what_a_load_means_is_said(command: tuple[str, ...], load: tuple[str, ...], said: str, run: Any) -> None:
    result = run(*command, *load)
    assert result.exit_code == 0 and said in " ".join(result.stdout.split())


def test_how_the_answer_s_length_sets_the_price_is_said(run: Any) -> None:
    loop = " ".join(run(*RECOMMEND, "--users", "32").stdout.split())
    per_second = float(re.findall(r"That is ([\d.]+) requests/s; shorter answers", loop)[0])
    answer = json.loads(run(*RECOMMEND, "--users", "32", "--json").stdout)
    assert per_second == pytest.approx(32 / (answer["ttft_seconds"] + 1023 * answer["tpot_seconds"]), rel=0.01)
    half = json.loads(run(*RECOMMEND, "--users", "32", "--output-tokens", "512", "--json").stdout)
    assert half["monthly_usd"] > answer["monthly_usd"]  # the prompts of a full house
    rates = ("--requests-per-second", "4.5", "--json")
    long, short = (json.loads(run(*RECOMMEND, *more, *rates).stdout) for more in ((), ("--output-tokens", "512")))
    assert short["monthly_usd"] <= long["monthly_usd"] and short["concurrent_requests"] < long["concurrent_requests"]


@pytest.mark.parametrize(
    "arguments,said",
    [
        ((*RECOMMEND, "--users", "3", "--requests-per-second", "1"), "--users and --requests-per-second"),
        ((*RECOMMEND, "--requests-per-day", "3", "--concurrent-requests", "1"), "--concurrent-requests and --requests"),
        ((*SIZE, "--users", "3", "--concurrent-requests", "3"), "--users and --concurrent-requests"),
    ],
)
def test_a_load_is_one_of_them(arguments: tuple[str, ...], said: str, run: Any) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and result.stdout == ""
    assert said in result.stderr and "each is a load by itself. Keep one." in result.stderr


def test_more_that_wait_than_asked_are_said_plainly(run: Any) -> None:
    answer = json.loads(run(*RECOMMEND, "--requests-per-second", "0.01", "--json").stdout)
    most = run(*RECOMMEND, "--requests-per-second", str(answer["served_at_target"]), "--instances", answer["instance"])
    assert "% requested: the square-root rule is not exact" in " ".join(most.stdout.split())
    assert "above the 5 %" in " ".join(most.stdout.split())


def test_a_sheet_of_a_rate_in_every_format(run: Any, tmp_path: Path) -> None:
    scenario = tmp_path / "rate.yaml"
    scenario.write_text("models: 8b\nworkloads: [chat, rag]\nrequests-per-day: 200k\ntiers: 8\n")
    result = run("build", "--scenario", str(scenario), "--format", "json,md,html,csv", "--out", str(tmp_path))
    assert result.exit_code == 0 and "RAG at 8.67 requests/s at peak (200,000 a day" in result.stdout
    cells = json.loads((tmp_path / "sizing-sheet.json").read_text())["cells"]
    assert [cell["tier"] for cell in cells] == [8, None, 8, None]
    for cell in cells:
        rate = cell["requests_per_second"]
        assert (rate is None) is (cell["tier"] == 8) and (cell["wait_fraction"] is None) is (rate is None)
        if rate:
            turn = cell["ttft_seconds"] + 1023 * cell["tpot_seconds"]
            assert cell["concurrent_requests"] == pytest.approx(rate * turn, rel=1e-9)
    assert "**RAG (16k tokens), 8.67 requests/s**" in (tmp_path / "sizing-sheet.md").read_text()

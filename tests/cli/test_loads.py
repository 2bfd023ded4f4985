"""Words of commands for a load: people, requests at once, or a rate; and which options exclude each other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_lines import REPLICA, Run

RECOMMEND = ("recommend", "--model", "70b", "--context", "16k")
SIZE = ("size", *REPLICA)


@pytest.mark.some(2)
@pytest.mark.parametrize("command", [RECOMMEND, SIZE])
@pytest.mark.parametrize(
    "load,words",
    [
        (("--users", "200"), r"200 people who ask 20 times a day \(0\.17 "),
        (
            ("--users", "200", "--requests-per-user-per-day", "6", "--peak-hour-share", "0.2"),
            r"200 people who ask 6 times a day \(0\.0867 ",
        ),
        (
            ("--users", "0.2k", "--active-fraction", "0.1"),
            r"200 people, 10 % of them waiting at the same moment[:,] 20 (requests )?at once",
        ),
        (("--concurrent-requests", "20"), r"\b20 (requests )?at once, .*16,384 tokens"),
        (("--requests-per-second", "0.25"), r"0\.25 requests(/s| a second) at peak"),
        (("--tokens-per-day", "82M"), r"82,000,000 tokens a day \(0\.22 "),
        (
            ("--requests-per-day", "5k", "--peak-hour-share", "0.1", "--burst-factor", "2"),
            r"5,000 requests a day \(0\.28 ",
        ),
    ],
)
def test_what_a_load_means_is_said(command: tuple[str, ...], load: tuple[str, ...], words: str, run: Run) -> None:
    result = run(*command, *load)
    assert result.exit_code == 0 and re.search(words, " ".join(result.stdout.split()))


@pytest.mark.long
def test_how_the_answer_s_length_sets_the_price_is_said(run: Run) -> None:
    asked = (*RECOMMEND, "--confidence", "0.5", "--weight-dtype", "published", "--ttft-ms", "5000")
    loop = run(*asked, "--concurrent-requests", "32", "--details").stdout
    per_second = float(re.findall(r"That is ([\d.]+) requests/s; shorter answers", loop)[0])
    answer = json.loads(run(*asked, "--concurrent-requests", "32", "--json").stdout)
    assert per_second == pytest.approx(32 / (answer["ttft_seconds"] + 1023 * answer["tpot_seconds"]), rel=0.01)
    half = json.loads(run(*asked, "--concurrent-requests", "32", "--output-tokens", "512", "--json").stdout)
    assert half["monthly_usd"] > answer["monthly_usd"]  # the prompts of a full house
    rates = ("--requests-per-second", "4.5", "--json")
    long, short = (json.loads(run(*asked, *more, *rates).stdout) for more in ((), ("--output-tokens", "512")))
    assert short["monthly_usd"] <= long["monthly_usd"] and short["concurrent_requests"] < long["concurrent_requests"]


@pytest.mark.parametrize(
    "arguments,words",
    [
        ((*RECOMMEND, "--users", "3", "--requests-per-second", "1"), "--users and --requests-per-second"),
        ((*RECOMMEND, "--requests-per-day", "3", "--concurrent-requests", "1"), "--concurrent-requests and --requests"),
        ((*SIZE, "--users", "3", "--concurrent-requests", "3"), "--concurrent-requests and --users"),
        ((*SIZE, "--users", "3", "--tokens-per-day", "3"), "--users and --tokens-per-day"),
        ((*SIZE, "--users", "3", "--requests-per-second", "1"), "--users and --requests-per-second"),
        ((*SIZE, "--concurrent-requests", "3", "--requests-per-day", "9"), "--concurrent-requests and --requests"),
    ],
)
def test_a_load_is_one_of_them(arguments: tuple[str, ...], words: str, run: Run) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and result.stdout == ""
    assert words in result.stderr


@pytest.mark.long
def test_more_that_wait_than_asked_are_said_plainly(run: Run) -> None:
    answer = json.loads(run(*RECOMMEND, "--requests-per-second", "0.01", "--json").stdout)
    rate = ("--requests-per-second", str(answer["served_at_target"]))
    most = run(*RECOMMEND, *rate, "--instances", answer["instance"], "--details")
    assert "square-root rule" in " ".join(most.stdout.split())
    assert "above the 5 %" in " ".join(most.stdout.split())


@pytest.mark.parametrize(
    "arguments,words",
    [
        ((*RECOMMEND, "--requests-per-second", "1", "--active-fraction", "0.1"), "active_fraction is of users"),
        ((*SIZE, "--requests-per-day", "9k", "--active-fraction", "0.1"), "active_fraction is of users, and the load"),
        ((*RECOMMEND, "--zones", "2", "--survive", "machine"), "zones is given, and counts only with survive zone."),
    ],
)
def test_what_would_be_ignored_is_refused(arguments: tuple[str, ...], words: str, run: Run) -> None:
    result = run(*arguments)
    assert result.exit_code == 1 and result.stdout == "" and words in result.stderr


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "load,head",
    [
        (("--users", "20"), "per user and month"),
        (("--concurrent-requests", "20"), "per user and month"),
        (("--concurrent-requests", "20", "--ttft-ms", "off"), "per request at once and month"),
        (("--requests-per-second", "0.25"), "per user and month"),
    ],
)
def test_money_is_per_user_unless_no_target_says_how_many_there_are(load: tuple[str, ...], head: str, run: Run) -> None:
    answer = json.loads(run(*RECOMMEND, *load, "--json").stdout)
    people = answer["users"] if "user" in head else answer["concurrent_requests"]
    assert (answer["usd_per_user_per_month"] is None) is (answer["users"] is None) is ("user" not in head)
    matches = re.findall(r"\$([\d,.]+) " + head, run(*RECOMMEND, *load, "--details").stdout)
    assert [float(amount.replace(",", "")) for amount in matches] == [
        pytest.approx(answer["monthly_usd"] / people, abs=0.51)
    ]


@pytest.mark.long
def test_a_rate_has_no_band_of_tokens(run: Run) -> None:
    arguments = (*RECOMMEND, "--requests-per-day", "20k")
    answer, text = json.loads(run(*arguments, "--json").stdout), run(*arguments, "--details").stdout
    [rate] = re.findall(r"serves +up to ([\d.]+) requests a second", text)
    assert float(rate) == pytest.approx(answer["served_at_target"], abs=0.01)
    assert re.search(r"\d tokens/s; every speed", text) and not re.search(r"tokens/s \(", text)
    assert re.search(r"tokens/s \(", run(*RECOMMEND, "--concurrent-requests", "8", "--details").stdout)
    size = run(*SIZE, "--requests-per-second", "0.2").stdout
    assert re.search(r", the replica +\d+ +of the rate\n", size)
    assert re.search(r", the replica +[\d,.]+ +[\d,.]+ to", run(*SIZE, "--concurrent-requests", "2").stdout)


def test_waits_that_nobody_sees_have_no_digits(run: Run) -> None:
    lean = ("--instances", "aws/p5.48xlarge", "--requests-per-second", "0.01")
    text = run("recommend", "--model", "8b", *lean, "--details").stdout
    (line,) = (line for line in text.split("\n") if "would wait for one to end" in line)
    assert "under 0.01%" in line and "e-" not in line


@pytest.mark.parametrize("tokens", [0, 1])
def test_hosts_of_a_load_that_writes_next_to_nothing(tokens: int, run: Run) -> None:
    arguments = ("recommend", "--model", "8b", "--concurrent-requests", "2", "--output-tokens", tokens, "--details")
    text = run(*arguments).stdout
    assert "none a prompt of" not in text and ("without answer tokens" in text) is (tokens == 0)
    assert "That is 0 requests/s" not in text
    assert tokens == 0 or re.search(r"\$[\d.]+ \(precision unknown\).*; prices read \d{4}-\d\d-\d\d from litellm", text)


def test_a_budget_is_rent_and_says_what_is_budgeted_for_it(run: Run) -> None:
    arguments = (*RECOMMEND, "--budget-usd", "50000")
    plain, more = (run(*arguments, *extra).stdout for extra in ((), ("--contingency-fraction", "0.1")))
    assert "contingency" not in plain and "10% contingency" in more
    [rent, budgeted] = re.findall(r"  1x .*?\$([\d,]+) a month, as budgeted USD ([\d,]+)", more)[0]
    assert int(budgeted.replace(",", "")) == pytest.approx(1.1 * int(rent.replace(",", "")), abs=1)
    assert f"${rent} a month" in plain  # the same rent


def test_a_sheet_of_a_rate_in_every_format(run: Run, tmp_path: Path) -> None:
    scenario = tmp_path / "rate.yaml"
    scenario.write_text("models: 8b\nworkloads: [chat, rag]\nrequests-per-day: 200k\ntiers: 8\n")
    result = run("build", "--scenario", str(scenario), "--format", "json,md,csv", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert re.search(r"200,000 requests a day \(8\.67 ", result.stdout)
    cells = json.loads((tmp_path / "sizing-sheet.json").read_text())["cells"]
    assert [cell["tier"] for cell in cells] == [8, None, 8, None]
    for cell in cells:
        rate = cell["requests_per_second"]
        assert (cell["wait_fraction"] is None) is (cell["tier"] == 8)
        if cell["tier"] is None:
            turn = cell["ttft_seconds"] + 1023 * cell["tpot_seconds"]
            assert cell["concurrent_requests"] == pytest.approx(rate * turn, rel=1e-9)


def test_build_takes_a_load_of_ones_own(run, tmp_path) -> None:  # type: ignore[no-untyped-def]
    own = ("build", "--models", "8b", "--context", "10200", "--input-tokens", "1800", "--output-tokens", "350")
    result = run(*own, "--tiers", "4,64", "--format", "json", "--out", str(tmp_path), "--json")
    cells = json.loads(result.output)["cells"]
    assert [(cell["workload"], cell["context_tokens"], cell["tier"]) for cell in cells] == [
        ("asked", 10200, 4),
        ("asked", 10200, 64),
    ]
    assert {
        cell["tier"]
        for cell in json.loads(run(*own, "--format", "json", "--out", str(tmp_path), "--json").output)["cells"]
    } == {1, 32, 128, 1024}
    for wrong, says in (
        (("--context", "8k", "--workloads", "rag"), "workloads is given with context_tokens"),
        (("--input-tokens", "1800"), "whose context_tokens are not given"),
    ):
        refused = run("build", "--models", "8b", *wrong, "--out", str(tmp_path))
        assert (refused.exit_code, says in refused.output) == (1, True)


@pytest.mark.long
def test_a_page_of_one_large_rate_has_room_for_what_to_rent(run, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Its head with the rate, and a region's long name, took the place of the name of what to rent."""
    run(
        "build",
        "--models",
        "llama-3.3-70b",
        "--providers",
        "azure",
        "--weight-dtype",
        "fp8",
        "--requests-per-second",
        "67.4270514237",
        "--format",
        "pdf",
        "--out",
        str(tmp_path),
    )
    assert (tmp_path / "sizing-sheet.pdf").is_file()

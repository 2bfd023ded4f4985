"""A load at hosts of the same model: what the three cheapest take, and above which utilization renting is cheaper."""

from __future__ import annotations

import datetime
import functools
import json
import math
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from answers import cell_of
from hypothesis import given
from hypothesis import strategies as st
from option_values import Options

import sheetgen
from sheetgen.answer.hosts import by_host, hosted, hosts_of
from sheetgen.answer.solution import Solution
from sheetgen.api import answer_of, recommended
from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.hosted import HostedPrice, hosted_file
from sheetgen.importer.model_names import resolve_model
from sheetgen.report.host_words import hosted_facts
from sheetgen.sheet_files import draw
from sheetgen.sizing import cost


def n_hosts(solved: Solution) -> int:
    return len({price.host for price in solved.question.live_hosts(solved.model_of(0).model)})


def live(model: str, as_of: str = "2026-11-28") -> tuple[HostedPrice, ...]:
    return hosted_file(catalog()).live(model, datetime.date.fromisoformat(as_of), 90)


@functools.cache
def catalog() -> Catalog:
    return Catalog()


def asked(**options: object) -> dict[str, Any]:
    cell: dict[str, Any] = sheetgen.recommend(**options, as_of="2026-11-24")["cells"][0]
    return cell


# 1,000 million prompt tokens and 100 million answer tokens a month, prompts of 8,000 tokens. By hand from the list,
# tests/data/prices/hosted_litellm_1.110.2.csv, which has dollars a token: x 10^6 is dollars a million; lines with a
# source page alone.
BY_HAND = {
    "llama-3.1-8b": [
        ("deepinfra", 24.0),  # ...-8B-Instruct-Turbo 2e-08, 4e-08: 1000 x 0.02 + 100 x 0.04 = 20 + 4
        ("nebius", 26.0),  # 2e-08, 6e-08: 20 + 6; novita's 25 has no source page
        ("nscale", 33.0),  # 3e-08, 3e-08: 30 + 3
    ],
    "llama-3.1-70b": [
        ("nebius", 170.0),  # 1.3e-07, 4e-07: 130 + 40
        ("deepinfra", 440.0),  # 4e-07, 4e-07: 400 + 40
        ("ovhcloud", 737.0),  # 6.7e-07, 6.7e-07: 670 + 67; cerebras' 660 has no source page
    ],
    "llama-3.1-405b": [
        ("nebius", 1300.0),  # 1e-06, 3e-06: 1000 + 300
        ("fireworks", 3300.0),  # 3e-06, 3e-06: 3000 + 300
        ("vertex", 6600.0),  # 5e-06, 1.6e-05: 5000 + 1600; together's prompts end at 4,096 tokens
    ],
    "gpt-oss-120b": [
        ("wandb", 47.0),  # 3e-08, 1.7e-07: 30 + 17
        ("deepinfra", 54.0),  # 3.7e-08, 1.7e-07: 37 + 17
        ("ovhcloud", 120.0),  # 8e-08, 4e-07: 80 + 40; novita's 75 has no source page
    ],
    "deepseek-v3.2": [
        ("deepinfra", 298.0),  # 2.6e-07, 3.8e-07: 260 + 38
        ("friendli", 650.0),  # 5e-07, 1.5e-06: 500 + 150; novita's 309 has no source page
        ("fireworks", 728.0),  # 5.6e-07, 1.68e-06: 560 + 168
    ],
}


@pytest.mark.parametrize("model", BY_HAND)
def test_the_three_cheapest_hosts_of_five_models_by_hand(model: str) -> None:
    hosts = by_host(live(model), 1000, 100, 8000)[:3]
    assert [(price.host, pytest.approx(usd)) for usd, price in hosts] == BY_HAND[model]


def test_hosts_that_take_the_same_rank_by_name_whatever_rounding_leaves() -> None:
    """3 x $0.10 is 0.30000000000000004 and 1 x $0.30 is 0.3: the first of the two by name comes first."""
    hosted = next(price for price in hosted_file(catalog()).of("llama-3.1-70b") if price.host == "deepinfra")
    first, second = (
        hosted.model_copy(update={"host": host, "input_usd_per_million": prompt, "output_usd_per_million": answer})
        for host, prompt, answer in (("a", 0.1, 0.0), ("b", 0.0, 0.3))
    )
    for prices in ((first, second), (second, first)):
        assert [price.host for _, price in by_host(prices, 3, 1, 8000)] == ["a", "b"]


def test_of_several_prices_of_a_host_the_lowest_for_the_load_counts() -> None:
    """A million prompt tokens and three of answers: 1 x 2 + 3 x 1 is $5, 1 x 1 + 3 x 3 is $10."""
    hosted = next(price for price in hosted_file(catalog()).of("llama-3.1-70b") if price.host == "deepinfra")
    prices = [
        hosted.model_copy(update={"input_usd_per_million": prompt, "output_usd_per_million": answer})
        for prompt, answer in ((2.0, 1.0), (1.0, 3.0))
    ]
    for listed in (prices, prices[::-1]):
        assert [(usd, price.output_usd_per_million) for usd, price in by_host(listed, 1, 3, 8000)] == [(5.0, 1.0)]


def test_a_host_that_is_cheaper_at_any_use_has_no_utilization_to_beat() -> None:
    price = hosted_file(catalog()).of("llama-3.1-70b")[0]
    shares = {"on-demand": 1.0, "reserved-1yr": 1.5, "reserved-3yr": 0.4}
    above = hosted(price, "2026-11-28", 100.0, shares).cheaper_above
    assert above == {"on-demand": 1.0, "reserved-1yr": None, "reserved-3yr": 0.4}


def test_hits_of_the_prefix_cache_cost_the_cached_price_by_hand() -> None:
    """Half of the prompt in the cache: Azure's 3.1e-07 for such a token brings its dearer price before Fireworks'."""
    hosts = by_host(live("deepseek-v3.2"), 1000, 100, 8000, 0.5)[:3]
    assert [(price.host, pytest.approx(usd)) for usd, price in hosts] == [
        ("deepinfra", 233.0),  # 500 x 0.26 + 500 x 0.13 + 38
        ("friendli", 525.0),  # 500 x 0.50 + 500 x 0.25 + 150
        ("azure", 650.0),  # 500 x 0.62 + 500 x 0.31 + 185; its 0.58 without such a price takes 580 + 168
    ]
    # A host without such a price takes its full one.
    llama = live("llama-3.1-70b")
    assert by_host(llama, 1000, 100, 8000, 0.5)[0][0] == by_host(llama, 1000, 100, 8000)[0][0] == pytest.approx(170)


def test_a_host_that_does_not_take_the_prompt_is_no_host_of_the_load() -> None:
    hosts = [price.host for _, price in by_host(live("llama-3.1-8b"), 1000, 100, 20_000)]
    assert hosts[:3] == ["deepinfra", "nebius", "nscale"]
    assert "together" not in hosts  # whose prompts end at 16,384 tokens
    assert "together" in [price.host for _, price in by_host(live("llama-3.1-8b"), 1000, 100, 16_000)]


LOAD = {"context": "16k", "concurrent_requests": 32}


@pytest.mark.some(2)
@pytest.mark.parametrize("model", BY_HAND)
def test_the_answer_prices_the_tokens_that_the_load_has(model: str) -> None:
    """The month's tokens of the people whom it is enough for, and each host's bill from its own prices."""
    cell = asked(model=model, **LOAD)
    assert cell["users"] == 460
    answers = 460 * 20 * 1024 * 730 / 24 / 1e6
    prompts = answers * (16384 - 1024) / 1024
    assert len(cell["hosted"]) == 3
    for host in cell["hosted"]:
        bill = prompts * host["input_usd_per_million"] + answers * host["output_usd_per_million"]
        assert host["monthly_usd"] == pytest.approx(bill, rel=1e-12), host["host"]
    assert [host["monthly_usd"] for host in cell["hosted"]] == sorted(host["monthly_usd"] for host in cell["hosted"])


def test_a_host_takes_the_same_of_so_many_people_however_the_load_is_stated() -> None:
    """32 at once are enough for 460 people, whose month costs $673 at Nebius; busy 70% of all hours it was $3,460."""
    at_once, of_people = asked(model="70b", **LOAD), asked(model="70b", context="16k", users=460)
    for cell in (at_once, of_people):
        assert cell["hosted"][0]["monthly_usd"] == pytest.approx(673.39, abs=0.01)
        assert next(way for way in cell["pay_less"] if way["kind"] == "hosted")["monthly_usd"] == pytest.approx(
            673.39, abs=0.01
        )
    for use in (0.2, 1.0):
        hosts = asked(model="70b", **LOAD, utilization=use)["hosted"]
        assert [host["monthly_usd"] for host in hosts] == [host["monthly_usd"] for host in at_once["hosted"]]


# Without targets nobody knows how many people a load is: a host is paid for the utilization.
DEAR = {
    "tpot_ms": "off",
    "ttft_ms": "off",
    "model": "nvidia-nemotron-nano-12b-v2",
    "context": "16k",
    "concurrent_requests": 256,
}  # hosted at $0.20 and more


@pytest.mark.some(1)
@pytest.mark.parametrize("options", [DEAR, DEAR | {"prefix_cache_hit_fraction": 0.3}, DEAR | {"hours_per_month": 300}])
def test_asked_at_the_break_even_both_cost_the_same(options: Options) -> None:
    n_checked = 0
    for place, host in enumerate(asked(**options)["hosted"]):
        for purchase, above in host["cheaper_above"].items():
            if above is not None and above >= 0.01:  # the least that may be asked
                again = asked(**options, utilization=above)
                rent = again["by_purchase"][purchase]["monthly_usd"]
                assert again["hosted"][place]["monthly_usd"] == pytest.approx(rent, rel=1e-12), purchase
                assert again["hosted"][place]["cheaper_above"][purchase] == pytest.approx(above, rel=1e-12)
                n_checked += 1
    assert n_checked >= 2, "the load is to have break-evens"


def test_below_its_break_even_a_class_costs_more_than_the_host_and_above_it_less() -> None:
    above = asked(**DEAR)["hosted"][0]["cheaper_above"]["reserved-1yr"]
    for utilization, is_cheaper in ((above * 0.99, False), (above * 1.01, True)):
        cell = asked(**DEAR, utilization=utilization)
        assert (cell["by_purchase"]["reserved-1yr"]["monthly_usd"] < cell["hosted"][0]["monthly_usd"]) is is_cheaper


def test_where_renting_is_never_cheaper_there_is_no_utilization() -> None:
    cell = asked(model="70b", **LOAD, tpot_ms="off", ttft_ms="off", utilization=1.0)
    for host in cell["hosted"]:
        for purchase, above in host["cheaper_above"].items():
            rent = cell["by_purchase"][purchase]["monthly_usd"]
            assert (above is None) is (rent > host["monthly_usd"]), f"{host['host']}, {purchase}"
    assert any(above is None for host in cell["hosted"] for above in host["cheaper_above"].values())


@pytest.mark.some(1)
@pytest.mark.parametrize("utilization", [0.2, 0.7, 1.0])
def test_a_break_even_does_not_depend_on_the_utilization_asked_at(utilization: float) -> None:
    above = asked(**DEAR, utilization=utilization)["hosted"][0]["cheaper_above"]["reserved-1yr"]
    assert above == pytest.approx(asked(**DEAR)["hosted"][0]["cheaper_above"]["reserved-1yr"], rel=1e-12)


def test_a_model_that_nobody_hosts_says_so() -> None:
    solved = recommended({"model": "llama-7b", "context": "2k", "concurrent_requests": 4}, catalog())
    assert asked(model="llama-7b", context="2k", concurrent_requests=4)["hosted"] == []
    assert n_hosts(solved) == 0
    assert (
        str(hosted_facts(solved.question, cell_of(solved)).hosts) == "nobody in our list of 2026-11-28 hosts this model"
    )


def test_hosts_that_take_no_such_prompt_are_counted() -> None:
    solved = recommended(
        {"model": "mixtral-8x7b-v0.1", "context": "32k", "concurrent_requests": 4, "output_tokens": 1}, catalog()
    )
    hosts = hosts_of(solved, 0)
    text = str(hosted_facts(solved.question, cell_of(solved)).hosts)
    assert n_hosts(solved) > len(hosts)
    assert f"{n_hosts(solved)} hosts serve it" in text if not hosts else "a month" in text


@pytest.mark.long
def test_a_name_with_marks_of_its_own_stands_as_it_is(tmp_path: Path) -> None:
    """Braces are no pattern, an ampersand no markup; what begins a formula is refused (test_hosted_prices)."""
    text, odd, name = (default_folder() / "hosted.yaml").read_text(), "A&B {0.value} {} %s \"quoted\" 'too'", "x{0}&y"
    for old, new in (("Nebius", odd.replace("'", "''")), ("nebius/meta-llama/Meta-Llama-3.1-70B-Instruct", name)):
        assert f"name: {old}" in text
        text = text.replace(f"name: {old}", f"name: '{new}'", 1)
    (tmp_path / "hosted.yaml").write_text(text)
    own = Catalog(tmp_path)
    solved = recommended({"model": "70b", "instances": "aws/g6e.12xlarge,aws/p5.48xlarge", **LOAD}, own)
    assert odd in str(hosted_facts(solved.question, cell_of(solved)).hosts)
    files, _ = draw(answer_of(solved), ("md", "xlsx"), own)
    (tmp_path / "book.xlsx").write_bytes(files["xlsx"])
    hosts = openpyxl.load_workbook(tmp_path / "book.xlsx", read_only=True)["Hosts"]
    texts = [str(cell.value) for row in hosts for cell in row if cell.value]
    assert f"{odd}, precision unknown" in texts and name in texts


def test_an_answer_names_live_hosts_alone_by_hand() -> None:
    """70B on the list: Cerebras and Fireworks without a source page, Bedrock until 2027-03-30, read on 2026-11-28."""
    sourced = {"nebius", "deepinfra", "ovhcloud", "oci", "bedrock"}
    listed = {price.host for price in hosted_file(catalog()).of("llama-3.1-70b")}
    assert listed == sourced | {"cerebras", "fireworks"}
    for as_of, hosts in (
        ("2026-11-24", sourced),  # before the list was read
        ("2026-11-28", sourced),
        ("2027-02-26", sourced),  # 90 days later
        ("2027-02-27", set()),
    ):
        assert {price.host for price in live("llama-3.1-70b", as_of)} == hosts, as_of
    file = hosted_file(catalog())
    read_later = file.model_copy(update={"read_on": "2027-03-20"})
    for as_of, is_live in (("2027-03-29", True), ("2027-03-30", False), ("2027-03-31", False)):
        hosts = {price.host for price in read_later.live("llama-3.1-70b", datetime.date.fromisoformat(as_of), 90)}
        assert hosts == (sourced if is_live else sourced - {"bedrock"}), as_of


@pytest.mark.some(2)
@pytest.mark.parametrize("model", BY_HAND)
def test_every_host_of_an_answer_says_how_live_it_is(model: str) -> None:
    for host in asked(model=model, **LOAD)["hosted"]:
        assert host["source"] and host["read_on"] == "2026-11-28" and "deprecation_date" in host


@pytest.mark.long
def test_where_no_host_is_live_the_answer_says_so_and_the_workbook_has_none(tmp_path: Path) -> None:
    text = (default_folder() / "hosted.yaml").read_text()
    (tmp_path / "hosted.yaml").write_text(text.replace("read_on: 2026-11-28", "read_on: 2026-08-20"))
    own = Catalog(tmp_path)
    solved = recommended({"model": "70b", **LOAD, "as_of": "2026-11-24"}, own)  # 96 days
    record = answer_of(solved)
    assert cell_of(solved).hosted == () and not any(way.kind == "hosted" for way in cell_of(solved).pay_less)
    expected = (
        "7 hosts on our list have it, none to be named: each is retired, without a source page, or was read more than"
    )
    assert str(hosted_facts(solved.question, cell_of(solved)).hosts) == f"{expected} 90 days before"
    files, _ = draw(record, ("json", "xlsx"), own)
    assert not any("hosted prices" in source["kind"] for source in json.loads(files["json"])["sources"])
    (tmp_path / "book.xlsx").write_bytes(files["xlsx"])
    texts = {
        cell.value for row in openpyxl.load_workbook(tmp_path / "book.xlsx", read_only=True)["Hosts"] for cell in row
    }
    assert not any("ebius" in str(text) for text in texts)


CONFIG = Path(__file__).parent / "data" / "quantized" / "Llama-3.1-70B-Instruct-FP8" / "config.json"


@pytest.mark.parametrize(
    ("folder", "changes", "model"),
    [
        ("Meta-Llama-3.1-70B-Instruct", {"_name_or_path": ""}, "llama-3.1-70b"),
        ("my-weights", {"_name_or_path": "/mnt/ckpts/Llama-3.1-70B-Instruct/"}, "llama-3.1-70b"),
        ("my-weights", {"_name_or_path": "meta-llama/Llama-3.3-70B-Instruct"}, "llama-3.3-70b"),
        ("my-weights", {"_name_or_path": "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF"}, "llama-3.1-nemotron-70b"),
        ("my-weights", {"_name_or_path": ""}, ""),
        ("my-weights", {"_name_or_path": None}, ""),
        (
            "Llama-3.1-70B-Instruct-dpo-2511",
            {"_name_or_path": "meta-llama/Llama-3.1-70B"},
            "",
        ),  # its own name says a tune
        ("Llama-3.1-70B-Instruct", {"num_hidden_layers": 60}, ""),  # pruned: no host serves it
        ("Llama-3.1-8B-Instruct", {}, ""),  # another shape than the name's
    ],
)
def test_a_path_has_the_hosts_of_the_name_that_it_goes_by(
    tmp_path: Path, folder: str, changes: Options, model: str
) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "config.json").write_text(json.dumps(json.loads(CONFIG.read_text()) | changes))
    assert resolve_model(str(tmp_path / folder), Catalog())[0].hosted_id == model


def test_a_path_that_no_name_is_known_of_has_no_host(tmp_path: Path) -> None:
    config = json.loads(CONFIG.read_text())
    named = asked(model=str(CONFIG.parent), **LOAD)["hosted"]
    assert [host["host"] for host in named] == [host for host, _ in BY_HAND["llama-3.1-70b"]]
    (tmp_path / "config.json").write_text(json.dumps(config | {"_name_or_path": ""}))
    assert asked(model=str(tmp_path), **LOAD)["hosted"] == []


def test_a_load_that_nothing_holds_has_no_hosts() -> None:
    cell = asked(model="405b", context="16k", concurrent_requests=32, gpus="l4")
    assert cell["instance"] is None and cell["hosted"] == []


@given(
    millions=st.floats(0.001, 1e6),
    answers=st.floats(0.001, 1e6),
    hit=st.floats(0, 1),
    prompt=st.floats(0.01, 100),
    answer=st.floats(0.01, 100),
    rent=st.floats(1, 1e7),
    utilization=st.floats(0.01, 1),
)
def test_the_bill_grows_with_the_tokens_and_the_rent_does_not(
    millions: float, answers: float, hit: float, prompt: float, answer: float, rent: float, utilization: float
) -> None:
    def bill(share: float) -> float:
        return float(
            cost.hosted_monthly_usd(millions * share, answers * share, 100, hit, prompt, prompt / 2, answer, math.nan)
        )

    for used in (utilization, utilization / 3):  # the tokens of the people are any part of those of the hardware
        tokens = answers * used, answers * utilization
        even = float(cost.hosted_break_even_utilization(rent, bill(used), utilization, *tokens))
        assert bill(even) == pytest.approx(rent, rel=1e-9)
    assert math.isnan(float(cost.hosted_monthly_usd(millions, answers, 100, hit, prompt, math.nan, answer, 99)))

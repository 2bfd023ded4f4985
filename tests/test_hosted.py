"""A load at hosts of the same model: what the three cheapest take, and above which utilization renting is cheaper."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from answers import cell_of, page_for
from hypothesis import given
from hypothesis import strategies as st

import sheetgen
from sheetgen.answer.hosts import by_host, hosted, hosts_of
from sheetgen.answer.solution import Solution
from sheetgen.api import answer_of, recommended
from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.hosted import hosted_file
from sheetgen.cli.drawing import draw
from sheetgen.report.host_words import hosted_facts
from sheetgen.sizing import cost


def n_hosts(solved: Solution) -> int:
    return len({one.host for one in hosted_file(catalog()).of(solved.model_of(0).model.id)})


@functools.cache
def catalog() -> Catalog:
    return Catalog()


def asked(**options: Any) -> dict[str, Any]:
    found: dict[str, Any] = sheetgen.recommend(**options, as_of="2026-11-24")["cells"][0]
    return found


# 1,000 million prompt tokens and 100 million answer tokens a month, prompts of 8,000 tokens. By hand from the list,
# tests/data/prices/hosted_litellm_1.109.1.csv, which has dollars a token: x 10^6 is dollars a million.
BY_HAND = {
    "llama-3.1-8b": [
        ("deepinfra", 24.0),  # ...-8B-Instruct-Turbo 2e-08, 4e-08: 1000 x 0.02 + 100 x 0.04 = 20 + 4
        ("novita", 25.0),  # 2e-08, 5e-08: 20 + 5
        ("nebius", 26.0),  # 2e-08, 6e-08: 20 + 6
    ],
    "llama-3.1-70b": [
        ("hyperbolic", 150.0),  # 1.2e-07, 3e-07: 120 + 30
        ("lambda", 150.0),  # the same, fp8
        ("nebius", 170.0),  # 1.3e-07, 4e-07: 130 + 40
    ],
    "llama-3.1-405b": [  # hyperbolic's 1.2e-07, 3e-07 has no source page, and is a fifth of the next
        ("lambda", 880.0),  # 8e-07, 8e-07: 800 + 80
        ("nebius", 1300.0),  # 1e-06, 3e-06: 1000 + 300
        ("bedrock", 2640.0),  # 2.4e-06, 2.4e-06: 2400 + 240; together's prompts end at 4,096 tokens
    ],
    "gpt-oss-120b": [
        ("wandb", 47.0),  # 3e-08, 1.7e-07: 30 + 17
        ("deepinfra", 54.0),  # 3.7e-08, 1.7e-07: 37 + 17
        ("novita", 75.0),  # 5e-08, 2.5e-07: 50 + 25
    ],
    "deepseek-v3.2": [
        ("deepinfra", 298.0),  # 2.6e-07, 3.8e-07: 260 + 38
        ("novita", 309.0),  # 2.69e-07, 4e-07: 269 + 40
        ("deepseek", 320.0),  # 2.8e-07, 4e-07: 280 + 40
    ],
}


@pytest.mark.parametrize("model", BY_HAND)
def test_the_three_cheapest_hosts_of_five_models_by_hand(model: str) -> None:
    found = by_host(hosted_file(catalog()).of(model), 1000, 100, 8000)[:3]
    assert [(price.host, pytest.approx(usd)) for usd, price in found] == BY_HAND[model]


def test_hosts_that_take_the_same_rank_by_name_whatever_rounding_leaves() -> None:
    """3 x $0.10 is 0.30000000000000004 and 1 x $0.30 is 0.3: the first of the two by name comes first."""
    one = next(price for price in hosted_file(catalog()).of("llama-3.1-70b") if price.host == "deepinfra")
    first, second = (
        one.model_copy(update={"host": host, "input_usd_per_million": prompt, "output_usd_per_million": answer})
        for host, prompt, answer in (("a", 0.1, 0.0), ("b", 0.0, 0.3))
    )
    for prices in ((first, second), (second, first)):
        assert [price.host for _, price in by_host(prices, 3, 1, 8000)] == ["a", "b"]


def test_of_several_prices_of_a_host_the_lowest_for_the_load_counts() -> None:
    """A million prompt tokens and three of answers: 1 x 2 + 3 x 1 is $5, 1 x 1 + 3 x 3 is $10."""
    one = next(price for price in hosted_file(catalog()).of("llama-3.1-70b") if price.host == "deepinfra")
    prices = [
        one.model_copy(update={"input_usd_per_million": prompt, "output_usd_per_million": answer})
        for prompt, answer in ((2.0, 1.0), (1.0, 3.0))
    ]
    for listed in (prices, prices[::-1]):
        assert [(usd, price.output_usd_per_million) for usd, price in by_host(listed, 1, 3, 8000)] == [(5.0, 1.0)]


def test_a_host_that_is_cheaper_at_any_use_has_no_utilization_to_beat() -> None:
    price = hosted_file(catalog()).of("llama-3.1-70b")[0]
    shares = {"on-demand": 1.0, "reserved-1yr": 1.5, "reserved-3yr": 0.4}
    found = hosted(price, 100.0, shares).cheaper_above
    assert found == {"on-demand": 1.0, "reserved-1yr": None, "reserved-3yr": 0.4}


def test_hits_of_the_prefix_cache_cost_the_cached_price_by_hand() -> None:
    """Half of the prompt in the cache: DeepSeek's own 2.8e-08 for such a token makes it the cheapest."""
    found = by_host(hosted_file(catalog()).of("deepseek-v3.2"), 1000, 100, 8000, 0.5)[:3]
    assert [(price.host, pytest.approx(usd)) for usd, price in found] == [
        ("deepseek", 194.0),  # 500 x 0.28 + 500 x 0.028 + 100 x 0.40 = 140 + 14 + 40
        ("deepinfra", 233.0),  # 500 x 0.26 + 500 x 0.13 + 38
        ("novita", 241.75),  # 500 x 0.269 + 500 x 0.1345 + 40
    ]
    # A host without such a price takes its full one.
    llama = hosted_file(catalog()).of("llama-3.1-70b")
    assert by_host(llama, 1000, 100, 8000, 0.5)[0][0] == by_host(llama, 1000, 100, 8000)[0][0] == pytest.approx(150)


def test_a_host_that_does_not_take_the_prompt_is_no_host_of_the_load() -> None:
    prices = hosted_file(catalog()).of("llama-3.1-8b")
    hosts = [price.host for _, price in by_host(prices, 1000, 100, 20_000)]
    assert hosts[:3] == ["deepinfra", "nebius", "lambda"]  # Novita's prompts end at 16,384 tokens
    assert "novita" not in hosts


LOAD = {"context": "16k", "concurrent_requests": 32}


@pytest.mark.some(2)
@pytest.mark.parametrize("model", BY_HAND)
def test_the_answer_prices_the_tokens_that_the_load_has(model: str) -> None:
    """The month's tokens from the answer's own speed, and each host's bill from its own prices."""
    cell = asked(model=model, **LOAD)
    answers = cell["output_tokens_per_second"] * 3600 * 730 * 0.7 / 1e6
    prompts = answers * (16384 - 1024) / 1024
    assert len(cell["hosted"]) == 3
    for one in cell["hosted"]:
        bill = prompts * one["input_usd_per_million"] + answers * one["output_usd_per_million"]
        assert one["monthly_usd"] == pytest.approx(bill, rel=1e-12), one["host"]
    assert [one["monthly_usd"] for one in cell["hosted"]] == sorted(one["monthly_usd"] for one in cell["hosted"])


DEAR = {
    "model": "nvidia-nemotron-nano-12b-v2",
    "context": "16k",
    "concurrent_requests": 256,
}  # hosted at $0.20 and more


@pytest.mark.some(1)
@pytest.mark.parametrize("options", [DEAR, DEAR | {"prefix_cache_hit_fraction": 0.3}, DEAR | {"hours_per_month": 300}])
def test_asked_at_the_break_even_both_cost_the_same(options: dict[str, Any]) -> None:
    n_checked = 0
    for place, one in enumerate(asked(**options)["hosted"]):
        for purchase, above in one["cheaper_above"].items():
            if above is not None and above >= 0.01:  # the least that may be asked
                again = asked(**options, utilization=above)
                rent = again["by_purchase"][purchase]["monthly_usd"]
                assert again["hosted"][place]["monthly_usd"] == pytest.approx(rent, rel=1e-12), purchase
                assert again["hosted"][place]["cheaper_above"][purchase] == pytest.approx(above, rel=1e-12)
                n_checked += 1
    assert n_checked >= 2, "the load is to have break-evens"


def test_below_its_break_even_a_class_costs_more_than_the_host_and_above_it_less() -> None:
    above = asked(**DEAR)["hosted"][0]["cheaper_above"]["on-demand"]
    for utilization, is_cheaper in ((above * 0.99, False), (above * 1.01, True)):
        cell = asked(**DEAR, utilization=utilization)
        assert (cell["by_purchase"]["on-demand"]["monthly_usd"] < cell["hosted"][0]["monthly_usd"]) is is_cheaper


def test_where_renting_is_never_cheaper_there_is_no_utilization() -> None:
    cell = asked(model="70b", **LOAD, utilization=1.0)
    for one in cell["hosted"]:
        for purchase, above in one["cheaper_above"].items():
            rent = cell["by_purchase"][purchase]["monthly_usd"]
            assert (above is None) is (rent > one["monthly_usd"]), f"{one['host']}, {purchase}"
    assert any(above is None for one in cell["hosted"] for above in one["cheaper_above"].values())


@pytest.mark.some(1)
@pytest.mark.parametrize("utilization", [0.2, 0.7, 1.0])
def test_a_break_even_does_not_depend_on_the_utilization_asked_at(utilization: float) -> None:
    found = asked(**DEAR, utilization=utilization)["hosted"][0]["cheaper_above"]["on-demand"]
    assert found == pytest.approx(asked(**DEAR)["hosted"][0]["cheaper_above"]["on-demand"], rel=1e-12)


def test_a_model_that_nobody_hosts_says_so() -> None:
    solved = recommended({"model": "llama-7b", "context": "2k", "concurrent_requests": 4}, catalog())
    assert asked(model="llama-7b", context="2k", concurrent_requests=4)["hosted"] == []
    assert n_hosts(solved) == 0
    assert (
        str(hosted_facts(solved.question, cell_of(solved)).hosts) == "nobody in our list of 2026-11-23 hosts this model"
    )


@pytest.mark.parametrize(
    ("model", "said"), [("70b", ", cheapest of "), ("c4ai-command-r-08-2024", ", the only host we")]
)
def test_the_host_named_says_of_how_many_it_is_the_cheapest(model: str, said: str) -> None:
    solved = recommended({"model": model, **LOAD}, catalog())
    assert (n_hosts(solved) > 1) is ("cheapest" in said)
    assert said in str(hosted_facts(solved.question, cell_of(solved)).hosted)


def test_hosts_that_take_no_such_prompt_are_counted() -> None:
    solved = recommended(
        {"model": "mixtral-8x7b-v0.1", "context": "32k", "concurrent_requests": 4, "output_tokens": 1}, catalog()
    )
    found = hosts_of(solved, 0)
    said = str(hosted_facts(solved.question, cell_of(solved)).hosts)
    assert n_hosts(solved) > len(found)
    assert f"{n_hosts(solved)} hosts serve it" in said if not found else "a month" in said


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
    page = page_for(solved)
    files, _ = draw(answer_of(solved), ("html", "md", "xlsx"), own)
    assert odd in str(page.cards[0].hosts)
    html = files["html"].decode()
    assert "A&amp;B {0.value} {} %s &#34;quoted&#34; &#39;too&#39;" in html and "A&B {0" not in html
    (tmp_path / "book.xlsx").write_bytes(files["xlsx"])
    hosts = openpyxl.load_workbook(tmp_path / "book.xlsx")["Hosts"]
    texts = [str(cell.value) for row in hosts for cell in row if cell.value]
    assert f"{odd}, precision unknown" in texts and name in texts


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

    even = float(cost.hosted_break_even_utilization(rent, bill(utilization), utilization))
    assert bill(even) == pytest.approx(rent, rel=1e-9)
    assert math.isnan(float(cost.hosted_monthly_usd(millions, answers, 100, hit, prompt, math.nan, answer, 99)))

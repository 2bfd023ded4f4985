"""The terminal text of `recommend`: the answer and labelled sentences, of the JSON's figures; more by --details."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from amounts import amount
from answers import recommend_json, recommend_text
from option_values import Options

from sheetgen.answer.solution import Solution
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.cli.output import folded

MOST_LINES = {80: 24, 100: 18}  # by width: a screen of the narrowest terminal, and that of the docs
LABELS = [
    "sure", "serves", "hardware", "class", "pay less", "target", "published", "if", "measure", "hosted", "more",
]  # fmt: skip
ALWAYS = {"sure", "serves", "hardware"}
HEADINGS = [
    "CERTAINTY", "LOAD AND SPEED", "EVERY WAY TO PAY LESS", "NEXT CHEAPEST", "WEIGHTS", "WHAT ONE CHANGE BUYS",
    "NOT REQUESTED",
    "OTHER WAYS TO PAY", "OWNING", "HOSTED", "WHY NOT THE OTHERS", "WHO TOOK PART",
]  # fmt: skip
KINDS = [
    "less_sure",
    "fp8_weights",
    "kv_fp8",
    "four_bits",
    "hours",
    "term",
    "provider",
    "unbound",
    "own",
    "hosted",
]  # mildest first
ELSEWHERE = {"provider", "unbound"}  # which stand after what the providers requested offer
QUESTIONS: tuple[Options, ...] = (
    {"model": "8b"}, {"model": "8b", "context": "16k", "concurrent_requests": 1024},
    {"model": "8b", "context": "8k", "requests_per_second": 20}, {"model": "8b", "requests_per_day": "200k"},
    {"model": "8b", "users": 1000, "active_fraction": 0.1}, {"model": "8b", "gpus": "l40s", "users": 1600},
    {"model": "8b", "context": "2k", "input_tokens": 100, "output_tokens": 1900, "concurrent_requests": 9},
    {"model": "70b", "context": "16k", "concurrent_requests": 200},
    {"model": "70b", "context": "16k", "concurrent_requests": 32},
    {"model": "70b", "context": "16k", "concurrent_requests": 200, "tpot_ms": 2},
    {"model": "70b", "tpot_ms": "off", "ttft_ms": 20},
    {"model": "70b", "context": "16k", "concurrent_requests": 32, "purchase": "spot"},
    {"model": "70b", "context": "16k", "concurrent_requests": 32, "purchase": "reserved-3yr", "discount_fraction": 0.2},
    {"model": "70b", "context": "16k", "concurrent_requests": 32, "survive": "machine", "currency": "EUR",
     "fx_rate": 0.92, "contingency_fraction": 0.125},
    {"model": "70b", "context": "4k", "concurrent_requests": 1024, "survive": "zone"},
    {"model": "70b", "draft_model": "llama-3.2-1b"},
    {"model": "70b", "context": "16k", "concurrent_requests": 32, "vendors": "amd"},
    {"model": "70b", "context": "16k", "concurrent_requests": 32, "vendors": "all", "providers": "all"},
    {"model": "70b", "context": "16k", "concurrent_requests": 1000, "instances": "azure/Standard_NC80adis_H100_v5"},
    {"model": "405b", "context": "128k", "concurrent_requests": 32},
    {"model": "405b", "context": "128k", "concurrent_requests": 1024},
    {"model": "405b", "context": "16k", "requests_per_second": 0.5, "weight_dtype": "fp8"},
    {"model": "405b", "instances": "aws/g5.xlarge"},
    {"model": "deepseek-v3", "context": "16k", "concurrent_requests": 128},
    {"model": "deepseek-v3", "concurrent_requests": 4, "gpus": "l4"},
    {"model": "kimi-k2", "concurrent_requests": 8, "gpus": "h100"},
    {"model": "kimi-k2", "concurrent_requests": 1, "region": "eastus", "providers": "azure", "span_machines": "never"},
    {"model": "gpt-oss-120b", "context": "16k", "concurrent_requests": 20},
    {"model": "gemma-3-27b", "context": "32k", "concurrent_requests": 16},
    {"model": "nemotron-nano-12b-v2", "context": "16k", "concurrent_requests": 256, "near_tie_fraction": 0.2},
)  # fmt: skip
of_each = pytest.mark.parametrize(
    "index", range(0, len(QUESTIONS), amount(5, 1)), ids=lambda i: "-".join(map(str, QUESTIONS[i].values()))
)


@functools.cache
def catalog() -> Catalog:
    return Catalog()


@functools.cache
def solved(index: int) -> Solution:
    return recommended({"as_of": "2026-11-20", **QUESTIONS[index]}, catalog())


@functools.cache
def record(index: int) -> dict[str, Any]:
    return recommend_json(solved(index))


@functools.cache
def text_of(index: int, details: bool = False) -> str:
    return recommend_text(solved(index), details, False)


def lines(index: int, *, details: bool = False) -> list[str]:
    """As they are printed at the terminal's width."""
    text = recommend_text(solved(index), details, False)
    return [part for line in text.split("\n") for part in folded(line).split("\n")]


@of_each
def test_the_answer_is_a_screen_of_sentences(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for width, most in MOST_LINES.items():
        monkeypatch.setenv("COLUMNS", str(width))
        text = lines(index)
        assert len(text) <= most and max(map(len, text)) <= width, "\n".join(text)
    question, answer = re.split(r"(?<=:)\n+", text_of(index), maxsplit=1)
    confidence = 0.5 if "impossible" in record(index)["measure_first"] else record(index)["inputs"]["confidence"]
    assert f", at least {confidence:.0%} sure" in question
    rows = re.findall(r"^(\S.*?) {2,}(.*(?:\n .*)*)", answer.partition("\n")[2], re.M)
    labels = [label for label, _ in rows]
    if solved(index).choices[0].offer is None:
        assert labels[0] == "why" and labels[-2:] == ["searched", "more"]
        return
    assert labels == [label for label in LABELS if label in labels] and set(labels) >= ALWAYS
    assert "more" in labels or len(text) == most
    assert all(told.endswith(".") for label, told in rows if label not in ("pay less", "more"))
    assert "if" in labels or not record(index)["by_requests_per_day"]
    assert "hosted" in labels or not record(index)["hosted"]
    assert "pay less" in labels or not {way["kind"] for way in record(index)["pay_less"]} - {"less_sure", "hosted"}


@of_each
def test_no_line_gives_way_to_another(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the record has of the first screen is there, in a screen: 0.9's price, the published weights, all at
    once, a measurement."""
    monkeypatch.setenv("COLUMNS", "80")
    (cell,) = record(index)["cells"]
    text, money = " ".join(text_of(index).split()), cell_money(index)
    if cell["instance"] is None:
        return
    sure = next((level for level in cell["by_confidence"] if level and level["confidence"] == 0.9), None)
    if cell["chance"] < 0.9:
        assert money(sure["monthly_usd"]) in text if sure else re.search("[Nn]othing is (90|70)% sure", text)
    if cell["as_published"]:
        assert re.search(r"(?:published|weights) ", text)
    every = cell["all_at_once"]
    if every and every["concurrent_requests"] > 1:
        asked = "the same" if every["monthly_usd"] == cell["monthly_usd"] else money(every["monthly_usd"])
        assert f"all {every['concurrent_requests']:,} at once: {asked}" in text
    assert re.search("for a day, |a day for ", text)


PAY_LESS = re.compile(r"^pay less.*\n(?: .*\n)*", re.M)


def numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


@of_each
def test_every_sum_of_money_and_count_is_in_the_json(index: int) -> None:
    """To the last digit that is shown, as `served` is rounded down; a time is in seconds there."""
    numbers_, text = set(numbers(record(index))), " ".join(text_of(index).split())
    money = record(index)["inputs"]["money"]
    numbers_ |= {number * money["fx_rate"] for number in numbers_}  # amounts are in the currency of the budget
    figures = re.findall(r"(?:\$|€|EUR )([\d,.]*\d)([kM]?)", text)
    assert figures or solved(index).choices[0].offer is None
    figures += [(match, "") for match in re.findall(r"([\d,]+) (?:replica|GPUs? at work|place|machine)", text)]
    figures += [(member, "") for pair in re.findall(r"up to ([\d,.]+).*?holds ([\d,]+)", text) for member in pair]
    for shown, unit in figures:
        number, places = float(shown.replace(",", "")), len(shown.partition(".")[2])
        scale = {"k": 1e3, "M": 1e6}.get(unit, 1)
        assert [number_ for number_ in numbers_ if abs(number_ / scale - number) < 10**-places], (
            f"{shown}{unit} of: {text}"
        )


@of_each
def test_details_begin_with_the_answer_and_go_on_under_headings(index: int) -> None:
    short = [line for line in text_of(index).split("\n") if line and not line.startswith("more ")]
    whole = list(filter(None, text_of(index, True).split("\n")))
    assert whole[:2] == short[:2]
    figures = [set(re.findall(r"[$€][\d,]+\d", "\n".join(lines))) for lines in (short, whole)]
    assert figures[0] <= figures[1]
    headings = [line for line in whole if line.isupper() and line[0] != " "]
    expected = (
        HEADINGS if solved(index).choices[0].offer is not None else ["WHAT ONE CHANGE BUYS", "WHY NOT", HEADINGS[-1]]
    )
    assert headings == [heading for heading in expected if heading in headings] and any(
        heading in headings for heading in expected[-2:]
    )


@of_each
def test_details_have_every_other_answer_of_the_json(index: int) -> None:
    (cell,) = record(index)["cells"]
    text = " ".join(" ".join(lines(index, details=True)).split())
    others = [*cell["not_asked"], *filter(None, (cell["by_purchase"] or {}).values())]
    others += [rental for rental in (cell["fp8"], cell["runner_up"], cell["cheapest"]) if rental]
    money = cell_money(index)
    for other in others:
        n, instance, month = other["n_instances"], other["instance"], money(other["monthly_usd"])
        as_dear = rf"{re.escape(instance)} +(same price|{re.escape(month)} a month, .*), but {n:,} instances"
        assert (f"{n:,}x {instance}" in text or re.search(as_dear, text)) and month in text, other
    for host in cell["hosted"]:
        assert money(host["monthly_usd"], 2) in text or money(host["monthly_usd"]) in text
    shown = text.replace("1 USD = ", "")
    assert not re.search(r"\$\d", shown) or record(index)["inputs"]["money"]["currency"] == "USD"
    if cell["n_replicas"]:
        for figure in (cell["weights_bytes"], cell["kv_bytes"]):
            assert f"{figure / 2**30:,.1f} GiB of" in text
        assert f"{cell['output_tokens_per_second']:,.0f} tokens/s" in text and f"bound by {cell['bound_by']}" in text


def cell_money(index: int) -> Callable[..., str]:
    """How the text says an amount: in the currency of the budget, a half up."""
    money = record(index)["inputs"]["money"]

    def shown(usd: float, decimals: int = 0) -> str:
        amount = Decimal(repr(usd * money["fx_rate"])).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
        return f"{'€' if money['currency'] == 'EUR' else '$'}{amount:,}"

    return shown


@of_each
def test_ways_to_pay_less_are_mildest_first_and_each_saves(index: int) -> None:
    (cell,) = record(index)["cells"]
    ways = cell["pay_less"] or []
    kinds = [way["kind"] for way in ways]
    assert kinds == sorted(set(kinds), key=KINDS.index)
    assert all(way["monthly_usd"] <= 0.98 * cell["monthly_usd"] for way in ways)
    assert not [way["kind"] for way in ways if way["gives_up"].startswith("nothing")]  # which would be the mildest
    block = PAY_LESS.search(text_of(index))
    shown = " ".join(block[0].split()) if block else ""
    money = cell_money(index)
    amounts = {money(way["monthly_usd"]): way["kind"] for way in ways if way["kind"] != "hosted"}
    of_shown = [kind for amount, kind in amounts.items() if f"{amount}: " in shown]
    is_told = cell["measure_first"] and cell["measure_first"][0] in ("asked_dear", "one_each")
    decider = cell["measure"]["decider"] if "\nmeasure " in text_of(index) else None
    is_told = is_told or (decider and [way["kind"] for way in ways if way["monthly_usd"] == decider["monthly_usd"]])
    told = [kind for kind in amounts.values() if kind != "less_sure" or not is_told]  # which is said elsewhere
    mildest = [kind for kind in told if kind not in ELSEWHERE]
    assert {*mildest[:1], *({"term", *ELSEWHERE} & set(told))} <= set(of_shown) <= set(told)
    others = [kind for kind in mildest if kind != "term"]
    assert [kind for kind in of_shown if kind in others] == others[: len([kind for kind in of_shown if kind in others])]
    places = [shown.index(f"{amount}: ") for amount, kind in amounts.items() if kind in of_shown and kind in mildest]
    assert places == sorted(places)


FULL_SCREENS: tuple[Options, ...] = (
    {"model": "glm-4.5", "context": "8k", "users": 50, "requests_per_user_per_day": 100, "weight_dtype": "int4"},
    {
        "model": "phi-4",
        "input_tokens": 12_000,
        "output_tokens": 2_000,
        "users": 10_000,
        "requests_per_user_per_day": 40,
        "weight_dtype": "int4",
        "gpus": "l40s",
        "history_hit_fraction": 0.8,
    },
    {"model": "glm-5.3", "input_tokens": 200, "output_tokens": 200, "concurrent_requests": 500, "providers": "gcp"},
)


@pytest.mark.parametrize("asked", FULL_SCREENS, ids=lambda asked: str(asked["model"]))
def test_however_full_the_screen_it_has_the_day_the_measured_machine_and_the_ways_that_matter(
    asked: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mildest way, the best commitment, and what was not requested; in the lines of a screen."""
    monkeypatch.setenv("COLUMNS", "100")
    answer = recommended({**asked, "as_of": "2026-11-29"}, Catalog())
    cell, text = recommend_json(answer), recommend_text(answer)
    words = " ".join(text.split())
    assert sum(folded(line).count("\n") + 1 for line in text.split("\n")) <= MOST_LINES[100]
    assert cell["price_as_of"] in words
    measured = cell["measure"]["decider"] or cell["measure"]
    if "measure " in text and measured["instance"] != cell["instance"]:
        assert f"1x {measured['instance']} for a day" in words
    mildest = [way for way in cell["pay_less"] if way["kind"] not in ("less_sure", "provider", "hosted")]
    told = (mildest[0], *(way for way in cell["pay_less"] if way["kind"] in ("term", "provider")))
    assert [f"${way['monthly_usd']:,.0f}: " in words for way in told] == [True] * len(told) and len(told) == 3


def test_spot_stands_beside_its_price_on_demand_and_every_commitment_below_it() -> None:
    answer = recommended({"model": "70b", "context": "4k", "requests_per_second": 0.5, "purchase": "spot"}, Catalog())
    cell, text = recommend_json(answer), " ".join(recommend_text(answer).split())
    below = [rental for kind, rental in cell["by_purchase"].items() if kind.startswith("reserved")]
    assert len(below) == 2 and all(rental["monthly_usd"] < 0.98 * cell["monthly_usd"] for rental in below)
    for rental in (*below, cell["by_purchase"]["on-demand"]):
        assert f"${rental['monthly_usd']:,.0f}" in text


def test_all_has_every_reason_and_the_details() -> None:
    text, few = recommend_text(solved(7), False, True), recommend_text(solved(7), True, False)
    assert "more: --all shows them" in few and "--all" not in text and "OWNING" in text
    assert len(text.split("\n")) > len(few.split("\n"))


def labels_of(options: Options) -> list[str]:
    """Labels of the lines of an answer."""
    text = recommend_text(recommended(options, Catalog()))
    return re.findall(r"^([a-z]+(?: [a-z]+)?) {2,}\S", text, re.MULTILINE)


def test_a_history_that_memory_loses_before_the_person_asks_again_is_said() -> None:
    seldom = {"model": "llama-3.3-70b", "input_tokens": 24_000, "output_tokens": 50, "users": 500}
    history = {"history_hit_fraction": 0.8}
    assert "history" in labels_of({**seldom, **history, "requests_per_user_per_day": 3})
    assert "history" not in labels_of(seldom)
    assert "history" not in labels_of({**seldom, **history, "input_tokens": 500, "users": 3})


def test_a_lost_history_has_what_the_load_takes_where_it_is_read_anew() -> None:
    """It is the load of the same question without a history; 2 places free at 0.17 a second are 10 s."""
    asked: Options = {"model": "qwen2.5-72b", "input_tokens": 12_000, "output_tokens": 50, "users": 200}
    kept, anew = (
        recommend_json(recommended({**asked, **more}, Catalog())) for more in ({"history_hit_fraction": 0.8}, {})
    )
    history = kept["history"]
    assert history["read_anew"] == {key: anew[key] for key in history["read_anew"]}
    assert {"instance", "monthly_usd", "chance", "ttft_seconds", "served_at_target"} < history["read_anew"].keys()
    assert history["read_anew"]["monthly_usd"] > kept["monthly_usd"] and anew["history"] is None
    free = kept["memory_holds"] - kept["concurrent_requests"]
    assert history["kept_seconds"] == pytest.approx(free / kept["requests_per_second"])
    assert history["asks_again_seconds"] == pytest.approx(200 / kept["requests_per_second"])


def test_vendors_are_no_filter_where_a_gpu_is_named() -> None:
    load = {"model": "8b", "concurrent_requests": 4, "providers": "oci", "vendors": "amd"}
    named, plain = (recommend_text(recommended({**load, **more}, Catalog())) for more in ({"gpus": "h200"}, {}))
    assert "GPUs of amd" in plain and "GPUs of amd" not in named


def test_speed_is_that_of_the_replicas_that_are_enough() -> None:
    load = {"model": "8b", "concurrent_requests": 4, "instances": "aws/p5.48xlarge"}
    solved = recommended(load, Catalog())
    chosen = recommend_json(solved)
    text = " ".join(recommend_text(solved).split())
    assert chosen["n_replicas"] == 1 and "with 1 of the 2 replicas busy" in text

"""`sheetgen diff` names what changed, all of it and nothing else, in words and as JSON."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import books
import pytest
from amounts import IN_LONG, amount
from answers import document, recommend_json
from command_lines import RunOfSome
from markdown_it import MarkdownIt
from packages import TINY, area_of, cell_of, with_cell
from recalculation import Changes, edit, edit_and_recalculate
from workbook_cells import Values

from sheetgen.answer.solve import solve
from sheetgen.api import recommended
from sheetgen.question.sheet_question import ask
from sheetgen.readback.compare import SECTIONS, signed_usd
from sheetgen.readback.compared_facts import SheetFacts, read_sheet
from sheetgen.writers.formats import json_text

Edited = Callable[..., Path]
HERE = "aws/p5.48xlarge"


@functools.cache
def facts_of(path: Path) -> SheetFacts:
    """The facts of a workbook, kept: most tests here edit the same one."""
    return read_sheet(path, books.catalog())


@pytest.fixture(scope="module")
def whole(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workbook with its Decision sheet."""
    return books.build(tmp_path_factory.mktemp("whole"), "tiny", TINY)[0]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("book"), "tiny", TINY, with_decision=IN_LONG)[0]


@pytest.fixture(scope="module")
def json_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes the JSON of a sheet with some options changed."""
    folder = tmp_path_factory.mktemp("json")

    def make(**options: object) -> Path:
        path = folder / f"{len(list(folder.iterdir()))}.json"
        path.write_text(json_text(document(solve(ask(books.catalog(), {**TINY, **options})))))
        return path

    return make


@pytest.fixture
def edited(book: Path, tmp_path: Path) -> Edited:
    """Copies the workbook with cells typed into it. Its answers are worked out anew when it is read; it is recalculated
    only where yellow cells follow a typed one, as the targets of a context do."""

    def make(changes: Changes, path: Path = book) -> Path:
        write = edit_and_recalculate if any("context" in name for name in changes) else edit
        return write(path, tmp_path / f"{len(list(tmp_path.iterdir()))}.xlsx", changes)

    return make


def at(book: Path, table: str, column: str, key: str) -> tuple[str, str]:
    facts = facts_of(book)
    rows = list(facts.offers if table == "instances" else facts.tables[table])
    return area_of(book, f"cat_{table}_{column}")[rows.index(key)]


def _in_12_digits(number: str) -> float:
    return float(f"{float(number):.12g}")


def diff(sheetgen: RunOfSome, a: Path, b: Path) -> dict[str, Any]:
    ran = sheetgen("diff", a, b, "--json")
    assert ran.code == 0, ran.err
    data = json.loads(ran.out)
    assert isinstance(data, dict)
    return data


def names(record: Mapping[str, Any]) -> dict[str, list[str]]:
    return {s: [c["name"] for c in record[s]] for s in SECTIONS if record[s]}


# What changed, and nothing else -----------------------------------------------------------------------------


def test_the_same_sheet_twice(sheetgen: RunOfSome, book: Path, json_of: Callable[..., Path]) -> None:
    for path in (book, json_of()):
        compared = diff(sheetgen, path, path)
        assert (
            compared["equal"] and names(compared) == {} and compared["bridge"] == [] and compared["not_compared"] == []
        )
        ran = sheetgen("diff", path, path)
        assert "nothing changed" in ran.out and ran.err == ""
        assert sheetgen("diff", path, path, "--exit-code").code == 0
        assert sheetgen("diff", path, path, "--block", "md").out.rstrip().endswith("Nothing changed.")


def test_a_price_a_tier_and_a_setting(sheetgen: RunOfSome, book: Path, edited: Edited) -> None:
    price = at(book, "instances", "price_usd_per_hour", HERE)
    b = edited({"in_tier_2": 64, "in_headline_tier": 64, "in_gpu_memory_utilization": 0.95, price: 49.0})
    compared = diff(sheetgen, book, b)
    assert {s: n for s, n in names(compared).items() if s not in ("recommendation", "results", "decision")} == {
        "load": ["tier_2"],
        "inputs": ["gpu_memory_utilization"],
        "prices": [f"{HERE}.on-demand"],
    }
    (tier,), (setting,), (price_change,) = compared["load"], compared["inputs"], compared["prices"]
    assert (tier["before"], tier["after"], tier["change_fraction"]) == (32, 64, 1.0)
    assert tier["words"].endswith(": 32 -> 64 (+100 %)")
    assert setting["words"].endswith(": 92 % -> 95 %")
    assert price_change["words"].startswith(f"{HERE}: $55.04 -> $49.00 ")
    assert (price_change["before"], price_change["after"]) == (55.04, 49.0)
    assert compared["results"] and all(r["before"] != r["after"] for r in compared["results"])
    ran = sheetgen("diff", book, b)
    for line in ("at once, tier 2: 32 -> 64 (+100 %)", "GPU memory utilization: 92 % -> 95 %", price_change["words"]):
        assert f"  {line}\n" in ran.out
    assert sheetgen("diff", book, b, "--exit-code").code == 1 and sheetgen("diff", book, b).code == 0


ONE_CHANGE: dict[str, tuple[Any, str, str, str]] = {  # what is typed, the section, the change's name, its words
    "KV heads": (
        ("models", "full_kv_heads", "llama-3.1-8b", 4),
        "models",
        "llama-3.1-8b.full_kv_heads",
        "Llama 3.1 8B, KV heads (full): 8 -> 4 (-50 %)",
    ),
    "parameters": (
        ("models", "n_params_active", "llama-3.1-8b", 7e9),
        "models",
        "llama-3.1-8b.n_params_active",
        "Llama 3.1 8B, parameters active: 8,030,261,248 -> 7,000,000,000 (-13 %)",
    ),
    "memory": (
        ("gpus", "gpu_memory_bytes", "nvidia-l4-24gb", 24e9),
        "gpus",
        "nvidia-l4-24gb.gpu_memory_bytes",
        "L4, Memory, bytes: ",
    ),
    "precision": (
        ("precisions", "kv_dtype_bytes", "int4", 0.625),
        "precisions",
        "int4.kv_dtype_bytes",
        "int4, element: 0.5 -> 0.625 (+25 %)",
    ),
    "GPUs": (("instances", "gpu_count", HERE, 4), "prices", f"{HERE}.gpu_count", f"{HERE}, GPUs: 8 -> 4 (-50 %)"),
    "a price gone": (
        ("instances", "price_usd_per_hour", HERE, None),
        "prices",
        f"{HERE}.on-demand",
        f"{HERE}: price removed, $55.04 an hour",
    ),
    "a date": (
        ("instances", "price_date", HERE, 46300),
        "prices",
        f"{HERE}.on-demand",
        f"{HERE}: still $55.04 an hour, price of 2026-07-20 -> 2026-10-05",
    ),
    "another class": (
        ("instances", "price_reserved_3yr", HERE, 20.0),
        "prices",
        f"{HERE}.reserved-3yr",
        f"{HERE}, reserved-3yr: $23.78 -> $20.00 an hour (-16 %)",
    ),
    "context": ("in_context_chat", 8192, "load", "context_chat", "context of Chat: 4,096 -> 8,192 tokens (+100 %)"),
    "answer": ("in_output_chat", 2048, "load", "output_chat", "answer of Chat: 1,024 -> 2,048 tokens (+100 %)"),
    "KV dtype": ("in_kv_cache_dtype", "fp8", "inputs", "kv_cache_dtype", "KV cache precision: auto -> fp8"),
    "a target off": ("in_tpot_ms_chat", None, "inputs", "tpot_ms_chat", "Chat: time per output token: 50 -> blank"),
    "date": ("in_as_of", 46400, "inputs", "as_of", "Sheet's date: 2026-11-20 -> 2027-01-13"),
    "headline": (
        "in_headline_workload",
        "Long document",
        "load",
        "headline",
        "headline: Chat at 32 -> Long document at 32",
    ),
    "a name": (
        ("instances", "type", HERE, "mine"),
        "prices",
        "aws/mine",
        "aws/mine: added (8x nvidia-h100-sxm5-80gb), $55.04 an hour",
    ),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ONE_CHANGE)
def test_one_change_is_the_one_that_is_named(kind: str, sheetgen: RunOfSome, book: Path, edited: Edited) -> None:
    *typed, section, name, words = ONE_CHANGE[kind]
    if isinstance(typed[0], tuple):
        table, column, key, value = typed[0]
        changes: Values = {at(book, table, column, key): value}
    else:
        changes = {typed[0]: typed[1]}
    compared = diff(sheetgen, book, edited(changes))
    others = {s: n for s, n in names(compared).items() if s not in ("recommendation", "results", "decision")}
    want = {section: [name, HERE] if kind == "a name" else [name]}
    if kind == "context":
        want["inputs"] = ["ttft_ms_chat"]  # the target of the first token follows the prompt
    assert others == want
    assert compared[section][0]["words"].startswith(words), compared[section][0]["words"]


@pytest.mark.long
def test_numbers_that_are_equal_to_a_billionth_are_equal(sheetgen: RunOfSome, book: Path, edited: Edited) -> None:
    nearly = edited({"in_gpu_memory_utilization": 0.92 * (1 + 1e-12)})
    assert diff(sheetgen, book, nearly)["equal"]
    assert not diff(sheetgen, book, edited({"in_gpu_memory_utilization": 0.92 * (1 + 1e-6)}))["equal"]


@pytest.mark.long
def test_a_spare_row_that_was_filled_is_an_instance_added(sheetgen: RunOfSome, book: Path, edited: Edited) -> None:
    n = len(facts_of(book).offers)
    typed = {
        "type": "box.1",
        "provider": "acme",
        "instance_gpu": "nvidia-h100-sxm5-80gb",
        "gpu_count": 8,
        "price_usd_per_hour": 3.25,
    }
    compared = diff(sheetgen, book, edited({area_of(book, f"cat_instances_{c}")[n]: v for c, v in typed.items()}))
    (added,) = compared["prices"]
    assert added["words"].startswith("acme/box.1: added (8x nvidia-h100-sxm5-80gb), $3.25")
    assert names(compared).keys() <= {"prices", "recommendation", "results", "decision"}
    assert all(isinstance(result["after"], dict) for result in compared["results"]), "a load's answer is an object"
    assert compared["results"][0]["after"]["instance"] == "acme/box.1"


# Builds against each other ----------------------------------------------------------------------------------


def test_models_workloads_and_tiers_are_matched_by_what_they_are(
    sheetgen: RunOfSome, json_of: Callable[..., Path]
) -> None:
    a = json_of(models="8b,70b", workloads="chat,rag", tiers="1,32,128", headline="chat:32")
    b = json_of(models="70b,405b", workloads="rag,long-doc", tiers="32,200", headline="rag:32")
    compared = diff(sheetgen, a, b)
    words = [c["words"] for c in compared["load"]]
    added = next(c for c in json.loads(b.read_text())["cells"] if (c["model"], c["tier"]) == ("llama-3.1-405b", 32))
    usd = f"${added['monthly_usd']:,.0f}"
    assert words == [
        "model llama-3.1-8b: removed",
        f"model llama-3.1-405b: added, {added['n_instances']}x {added['instance']}, {usd} a month at the headline",
        "workload chat: removed",
        "workload long-doc: added",
        "at once, tier 1: 1 removed",
        "at once, tier 3: 128 removed",
        "at once, tier 2: 200 added",
        "headline: chat at 32 -> rag at 32",
    ]
    assert compared["results"] == [] and [x["how"] for x in compared["bridge"]] == ["unchanged"]


@pytest.mark.parametrize("kinds", ("book json", "json book"))
def test_a_workbook_and_the_json_of_the_same_sheet_say_the_same(
    kinds: str, sheetgen: RunOfSome, book: Path, json_of: Callable[..., Path]
) -> None:
    compared = diff(sheetgen, *({"book": book, "json": json_of()}[k] for k in kinds.split()))
    assert compared["equal"] and names(compared) == {}
    assert any(line.startswith("facts of models") for line in compared["not_compared"])


def test_a_workbook_and_the_json_of_another_sheet(
    sheetgen: RunOfSome, book: Path, json_of: Callable[..., Path]
) -> None:
    other = json_of(
        tiers="1,128",
        headline="chat:128",
        kv_cache_dtype="fp8",
        kv_allocation="reserved",
        currency="EUR",
        fx_rate=0.9,
        tpot_ms="chat=40",
        contexts="long-doc=64k",
        usd_per_kwh=0.2,
    )
    compared = diff(sheetgen, book, other)
    assert sorted(names(compared)["inputs"]) == [
        "currency",
        "fx_rate",
        "kv_cache_dtype",
        "kv_reserved",
        "tpot_ms_chat",
        "tpot_ms_long_doc",  # the targets that nobody states follow the context
        "ttft_ms_long_doc",
        "usd_per_kwh",
    ]
    assert names(compared)["load"] == ["context_long_doc", "tier_2"]
    assert [c["label"] for c in compared["recommendation"]] == [
        "Llama 3.1 8B, Chat at 32 -> 128",
        "Llama 3.1 70B, Chat at 32 -> 128",
    ]
    longer = [c["label"] for c in compared["results"] if "Long document" in c["label"]]
    assert longer and all("Long document 128k -> 64k at " in label for label in longer)
    assert [words.partition(":")[0] for words in compared["quality"]] == ["FP8 KV cache"]
    assert all(b["how"] == "solved again" for b in compared["bridge"])


def test_recommend_against_the_load_of_a_sheet(sheetgen: RunOfSome, book: Path, tmp_path: Path) -> None:
    """The one load of `recommend` is the sheet's load of the same lengths."""
    options = {
        "model": "70b",
        "context": "4k",
        "concurrent_requests": 32,
        "as_of": books.AS_OF,
        "instances": TINY["instances"],
    }
    path = tmp_path / "one.json"
    path.write_text(json_text(recommend_json(recommended(options, books.catalog()))))
    compared = diff(sheetgen, path, book)
    assert compared["results"] == [] and compared["recommendation"] == []
    assert {c["name"] for c in compared["load"]} == {"model_llama-3.1-8b", "tier_1", "workload_long_doc"}


# The bridge -------------------------------------------------------------------------------------------------


def bridge_of(record: Mapping[str, Any], model: str) -> dict[str, float]:
    bridge = next(b for b in record["bridge"] if b["model"] == model)
    assert bridge["how"] == "solved again", bridge
    steps = {s["cause"]: s["usd"] for s in bridge["steps"]}
    assert abs(bridge["before_usd"] + sum(steps.values()) - bridge["after_usd"]) < 1e-6
    return steps


def test_each_cause_has_the_figure_of_a_sheet_in_which_it_alone_was_changed(
    sheetgen: RunOfSome, book: Path, edited: Edited
) -> None:
    """Prices, then load, then facts: each step against the workbook itself with those cells typed in."""
    rented = facts_of(book).answers["llama-3.1-70b", "chat", 2].instance
    prices = {at(book, "instances", "price_usd_per_hour", str(rented)): 1.25}
    load = {"in_tier_2": 640, "in_headline_tier": 640, "in_context_chat": 16_000}
    memory = at(book, "gpus", "gpu_memory_bytes", "nvidia-h100-sxm5-80gb")
    heads = at(book, "models", "full_kv_heads", "llama-3.1-70b")
    facts = {
        "in_kv_cache_dtype": "fp8",
        heads: 4,
        memory: 75e9,
        "in_cuda_graph_base_bytes": 5e9,
        "in_weight_dtype": "fp8",
    }
    stages = [book, edited(prices), edited({**prices, **load}), edited({**prices, **load, **facts})]
    answers = [facts_of(p).answers["llama-3.1-70b", "chat", 2].monthly_usd for p in stages]
    assert len(set(answers)) == 4 and None not in answers
    steps = bridge_of(diff(sheetgen, book, stages[-1]), "llama-3.1-70b")
    want = [b - a for a, b in itertools.pairwise(answers)]  # type: ignore[operator]
    assert list(steps) == ["prices", "load", "facts and settings"]
    assert list(steps.values()) == pytest.approx(want, rel=1e-9)
    back = bridge_of(diff(sheetgen, stages[-1], book), "llama-3.1-70b")
    assert sum(back.values()) == pytest.approx(-sum(want))


@pytest.mark.long
def test_a_single_cause_has_all_of_it(sheetgen: RunOfSome, book: Path, edited: Edited) -> None:
    compared = diff(sheetgen, book, edited({"in_tier_2": 64, "in_headline_tier": 64}))
    for step in compared["bridge"]:
        assert step["how"] == "one cause"
        assert step["steps"] == [{"cause": "load", "usd": pytest.approx(step["after_usd"] - step["before_usd"])}]


def test_a_result_that_was_overwritten_is_not_read(sheetgen: RunOfSome, book: Path, tmp_path: Path) -> None:
    """Only yellow cells are read: an answer typed over its formula is reported by `pull`, and is no input."""
    path = with_cell(book, tmp_path / "over.xlsx", "rec_llama_3_1_70b_chat_2_monthly_usd", '<c r="{r}"><v>1234</v></c>')
    assert diff(sheetgen, book, path)["equal"]


def test_an_edited_workbook_says_what_a_build_of_its_inputs_says(
    sheetgen: RunOfSome, book: Path, tmp_path: Path
) -> None:
    """Not recalculated, and saved by a program that drops what formulas gave: its answers are worked out anew."""
    import openpyxl

    price = at(book, "instances", "price_usd_per_hour", HERE)
    typed = {"in_tier_1": 64, "in_context_chat": 8192, "in_kv_cache_dtype": "fp8", "in_cuda_graph_base_bytes": 4e9}
    if IN_LONG:  # Decision asks a question of its own, which a build begins with that of the headline
        typed |= {"in_decision_context_tokens": 8192, "in_decision_kv_cache_dtype": "fp8"}
    path, edited = tmp_path / "bare.xlsx", openpyxl.load_workbook(book)
    for (sheet, cell), value in {**{cell_of(book, n): v for n, v in typed.items()}, price: 49.0}.items():
        edited[sheet][cell].value = value
    edited.save(path)
    overrides = {
        "inputs": {"cuda_graph_base_bytes": 4e9},
        "instances": {HERE: {"price_usd_per_hour": 49.0}},
    }
    asked = {"tiers": "64,32", "contexts": "chat=8192", "kv_cache_dtype": "fp8", "typed": overrides}
    fresh = books.build(tmp_path, "fresh", {**TINY, **asked}, with_decision=IN_LONG)[0]
    for before, after in ((book, path), (path, book), (path, fresh))[: amount(1, 3)]:
        compared = diff(sheetgen, before, after)
        want = diff(sheetgen, *(fresh if path_ == path else path_ for path_ in (before, after)))
        # An input that follows others is worked out of the edited workbook, and read from the other: the last digits.
        of_edited, of_fresh = (
            json.loads(json.dumps({k: v for k, v in record.items() if k not in ("a", "b")}), parse_float=_in_12_digits)
            for record in (compared, want)
        )
        assert of_edited == of_fresh
    assert diff(sheetgen, path, fresh)["equal"]


def test_an_edit_that_nobody_can_answer_is_told_with_its_cell(sheetgen: RunOfSome, book: Path, tmp_path: Path) -> None:
    ran = sheetgen("diff", book, edit(book, tmp_path / "wrong.xlsx", {"in_gpu_memory_utilization": 1.5}))
    assert ran.code == 1 and ran.out == ""
    (line,) = ran.err.splitlines()
    assert "wrong.xlsx: Inputs!B" in line and "gpu_memory_utilization is '1.5'" in line


# What finance reads, and how much a message holds - ---------------------------------------------------------


def budgeted(book: Path) -> Values:
    """A price, the load, a precision and the budget typed over; and Decision and the log, which move none."""
    return {
        at(book, "instances", "price_usd_per_hour", HERE): 1.5,
        "in_tier_2": 64,
        "in_headline_tier": 64,
        "in_kv_cache_dtype": "fp8",
        "in_contingency_fraction": 0.15,
        "in_currency": "EUR",
        "in_fx_rate": 0.92,
        "in_case_users_high": 3,
        "in_decision_users": 99,
        "in_decision_provider": "aws",
        "in_log_1_what": "x",
    }


@pytest.mark.long
def test_what_is_budgeted_is_told_in_its_currency(sheetgen: RunOfSome, whole: Path, edited: Edited) -> None:
    b = edited(budgeted(whole), whole)
    ran, block = sheetgen("diff", whole, b).out, sheetgen("diff", whole, b, "--block", "md").out
    for step in diff(sheetgen, whole, b)["bridge"]:
        total = (
            f"EUR {step['after_usd'] * 1.15 * 0.92:,.0f}, with 15% contingency (1 USD = 0.92 EUR; 1 EUR = 1.087 USD)"
        )
        assert f"; now ${step['after_usd']:,.0f}, as budgeted {total}\n" in ran
        assert f"{step['name']} {total}" in block
    assert "as budgeted" not in sheetgen("diff", b, whole).out + sheetgen("diff", b, whole, "--block", "md").out
    assert "Decision" not in block and "Change log" not in block


@pytest.mark.long
def test_contingency_alone_moves_no_dollars(sheetgen: RunOfSome, book: Path, edited: Edited) -> None:
    compared = diff(sheetgen, book, edited({"in_contingency_fraction": 0.15}))
    assert {step["how"] for step in compared["bridge"]} == {"unchanged"}


def is_the_discount_alone(record: Mapping[str, Any]) -> None:
    (change,) = record["inputs"]
    assert (change["name"], change["before"], change["after"]) == ("discount_fraction", 0, 0.2)
    assert change["words"].endswith("prices: 0 % -> 20 %") and not record["prices"]
    for step in record["bridge"]:
        assert step["after_usd"] == pytest.approx(0.8 * step["before_usd"]) and step["how"] == "one cause"


@pytest.mark.long
def test_a_discount_is_one_setting_and_no_change_of_every_price(
    sheetgen: RunOfSome, book: Path, edited: Edited
) -> None:
    b = edited({"in_discount_fraction": 0.2})
    is_the_discount_alone(diff(sheetgen, book, b))
    ran = sheetgen("diff", book, b).out
    assert "prices: 0 % -> 20 %" in ran
    assert "prices: 0 % → 20 %\n" in sheetgen("diff", book, b, "--block", "md").out
    assert diff(sheetgen, b, b)["equal"]


@pytest.mark.long
def test_a_discount_in_json_is_no_change_of_prices(
    sheetgen: RunOfSome, book: Path, edited: Edited, json_of: Callable[..., Path]
) -> None:
    """JSON has prices as paid; beside them the discount, so that the list prices are known."""
    less = json_of(discount_fraction="0.2")
    assert json.loads(less.read_text())["candidates"][0]["hourly_usd"] == pytest.approx(
        0.8 * json.loads(json_of().read_text())["candidates"][0]["hourly_usd"]
    )
    is_the_discount_alone(diff(sheetgen, book, less))
    compared = diff(sheetgen, json_of(), less)
    assert names(compared)["inputs"] == ["discount_fraction"] and not compared["prices"]
    assert {step["how"] for step in compared["bridge"]} == {"one cause"}
    assert not diff(sheetgen, edited({"in_discount_fraction": 0.2}), less)["prices"]


@pytest.mark.long
def test_discounts_by_provider_and_class_are_named_in_a_workbook_and_in_json(
    sheetgen: RunOfSome, book: Path, edited: Edited, json_of: Callable[..., Path]
) -> None:
    b = edited({"in_discount_of_aws": 0.2, "in_discount_of_aws_spot": 0.4})
    less = json_of(discount_fraction="aws=0.2,aws:spot=0.4")
    for record in (diff(sheetgen, book, b), diff(sheetgen, book, less), diff(sheetgen, json_of(), less)):
        assert names(record)["inputs"] == ["discount_of_aws", "discount_of_aws_spot"] and not record["prices"]
        assert {step["how"] for step in record["bridge"]} == {"one cause"}
    assert "of aws spot: added, 40 %" in sheetgen("diff", book, b).out
    assert diff(sheetgen, b, b)["equal"] and not diff(sheetgen, b, less)["inputs"]


@pytest.mark.long
def test_a_discount_and_a_load_are_told_apart(sheetgen: RunOfSome, book: Path, edited: Edited) -> None:
    """Solved again: prices, the discount among them, make their own step."""
    b = edited({"in_discount_fraction": 0.2, "in_tier_2": 64, "in_headline_tier": 64})
    for bridge in diff(sheetgen, book, b)["bridge"]:
        assert bridge["how"] == "solved again", bridge
        steps = {step["cause"]: step["usd"] for step in bridge["steps"]}
        assert steps["prices"] == pytest.approx(-0.2 * bridge["before_usd"])
        assert bridge["before_usd"] + sum(steps.values()) == pytest.approx(bridge["after_usd"])


@pytest.mark.long
def test_no_name_of_a_program_is_told(sheetgen: RunOfSome, whole: Path, edited: Edited) -> None:
    """Decision's figures have names that stand nowhere on its page, and a sheet of workings behind it."""
    b = edited(budgeted(whole), whole)
    told = sheetgen("diff", whole, b, "--all").out
    assert not re.search(r"\b(decision|case (low|base|high)|monthly usd|n instances|Decision loads)\b", told), told
    assert ", factor: 2 -> 3 (+50 %)\n" in told
    assert re.search(r", \$ per month: \$[\d,]+ -> \$[\d,]+ \(", told)
    assert "line 1, what: blank -> x\n" in told


@pytest.mark.long
def test_a_message_tells_what_counts_first(whole: Path, edited: Edited) -> None:
    """Prices, load, settings and the budget; Decision moves no answer, and the answer itself stands above."""
    from sheetgen.cli.diff_text import changes_since

    b = edited(budgeted(whole), whole)
    changes = changes_since(str(whole), b.read_bytes(), "b.xlsx", books.catalog())
    assert changes.lines == (
        f"{HERE}: $55.04 → $1.50 an hour (-97 %)",
        "at once, tier 2: 32 → 64 (+100 %)",
        "KV cache precision: auto → fp8",
        "Contingency: 0 % → 15 %",
        "Currency of the budget: USD → EUR",
        "Exchange rate: 1 → 0.92 (-8 %)",
        "FP8 KV cache: 8 bits lose little. Calibrate its scales, and test on your prompts.",
    )
    assert changes.more == 0 and len(changes.money) == 2
    assert all(f" → 1x {HERE}; prices " in change.why or change.why.startswith("prices ") for change in changes.money)
    assert any(f" → 1x {HERE}; prices " in change.why for change in changes.money)


@pytest.mark.long
def test_many_prices_hide_no_setting(book: Path, edited: Edited) -> None:
    from sheetgen.cli.diff_text import SHOWN_IN_MAIL, changes_since

    offers = list(facts_of(book).offers)
    prices = {at(book, "instances", "price_usd_per_hour", offer): 30.0 + i for i, offer in enumerate(offers)}
    b = edited({**prices, at(book, "instances", "price_usd_per_hour", HERE): 0.5, "in_kv_cache_dtype": "fp8"})
    changes = changes_since(str(book), b.read_bytes(), "b.xlsx", books.catalog())
    n = SHOWN_IN_MAIL
    assert len(offers) > n + 2 and len(changes.lines) == n + 2 and changes.more == len(offers) - n
    assert changes.lines[-2].endswith(": auto → fp8") and changes.lines[-1].startswith("FP8 KV cache: 8 bits")
    assert any(line.startswith(f"{HERE}: ") for line in changes.lines), "the one that is rented now is among the first"


# The block, and hostile text --------------------------------------------------------------------------------


def test_the_block_is_short_markdown_with_a_bridge(sheetgen: RunOfSome, book: Path, edited: Edited) -> None:
    b = edited(
        {
            "in_tier_2": 64,
            "in_headline_tier": 64,
            at(book, "instances", "price_usd_per_hour", HERE): 49.0,
            "in_kv_cache_dtype": "fp8",
        }
    )
    block = sheetgen("diff", book, b, "--block", "md").out
    assert re.match(f"### .+ {books.AS_OF}\n", block)
    assert len(block.splitlines()) < 30
    html = MarkdownIt("commonmark").enable("table").render(block)
    assert html.count("<tr>") == 3 and html.count("<table>") == 1
    cells = [re.sub("<[^>]*>", "", c) for c in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", html)]
    assert cells[:6] == ["Model, load", "Before", "Prices", "Load", "Facts and settings", "After"]
    assert all(c[0] in "+−" or c == "$0" for c in cells[8:11]), "what a cause did has a sign"
    assert "Quality FP8 KV cache: " in re.sub("<[^>]*>", "", html)
    money = [float(c.replace("−", "-").replace("$", "").replace(",", "")) for c in cells[7:12]]
    assert abs(sum(money[:4]) - money[4]) <= 2  # each is rounded to a dollar
    for words in ("at once, tier 2: 32 → 64 (+100 %)", "KV cache precision: auto → fp8"):
        assert words in re.sub("<[^>]*>", "", html)
    assert sheetgen("diff", book, b, "--block", "md", "--json").code == 2


HOSTILE = (
    "\x1b[31mred",
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "a|b|c",
    "# head",
    "\u202egpj.exe",
    "**bold** `code` ![i](http://e.vil/i.png)",
    "=cmd()",
    "a\nb",
    "&lt;i&gt;",
)


@pytest.mark.some(1)
@pytest.mark.parametrize("evil", HOSTILE)
def test_hostile_names_are_text_wherever_they_are_told(
    evil: str, sheetgen: RunOfSome, book: Path, edited: Edited, tmp_path: Path
) -> None:
    if not evil.isprintable():  # `pull` refuses such a name, and so what it asks is not answered
        changes = {at(book, "instances", "type", HERE): evil.replace("\x1b", "_x001B_")}
        ran = sheetgen("diff", book, edit(book, tmp_path / "evil.xlsx", changes))
        assert ran.code == 1 and "control character" in ran.err and evil not in ran.err
        return
    changes = {at(book, "instances", "type", HERE): evil, "in_log_1_what": evil}
    b = edit(book, tmp_path / "evil.xlsx", changes)
    plain = sheetgen("diff", book, b).out
    assert all(c.isprintable() or c == "\n" for c in plain)
    assert not any(line.startswith("b") for line in plain.splitlines())
    json.loads(sheetgen("diff", book, b, "--json").out)
    block = sheetgen("diff", book, b, "--block", "md").out
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(block)
    tags = set(re.findall(r"<(/?\w+)", html))
    allowed = ("h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "strong")
    assert tags <= {t for name in allowed for t in (name, f"/{name}")}, tags
    assert html.count("<h3>") == 1 and html.count("<strong>") == block.count("\n- **")


# What cannot be compared ------------------------------------------------------------------------------------


def test_both_files_are_told_in_one_run(sheetgen: RunOfSome, tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_text("text")
    ran = sheetgen("diff", tmp_path / "a.xlsx", tmp_path / "none.json")
    assert ran.code == 1 and ran.out == "" and len(ran.err.splitlines()) == 2
    assert "is no workbook" in ran.err and "cannot be read" in ran.err


NO_JSON = {
    "a list": ("[]", "is no JSON of a sheet"),
    "another object": ('{"a": 1}', "is no JSON of a sheet"),
    "cut short": ('{"schema_version": 1, "inputs": {', "is no JSON that can be read"),
    "no finite number": ('{"schema_version": 1e999}', "1e999 is no number"),
    "NaN": ('{"schema_version": NaN}', "NaN is no number"),
    "deep": ("[" * 200_000, "is no JSON that can be read"),
    "newer": ('{"schema_version": 2, "inputs": {}, "cells": []}', "schema_version is '2'"),
    "a wrong type": ('{"schema_version": 1, "inputs": {}, "cells": 3, "candidates": [], "as_of": "x"}', "inputs"),
    "digits": ('{"schema_version": ' + "9" * 10_000 + "}", "is no JSON that can be read"),
    "large": ('{"a": "' + "x" * 10_100_000 + '"}', "MB of JSON"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_JSON)
def test_json_that_is_no_sheet_is_one_line(kind: str, sheetgen: RunOfSome, book: Path, tmp_path: Path) -> None:
    data, message = NO_JSON[kind]
    path = tmp_path / "sheet.json"
    path.write_text(data)
    ran = sheetgen("diff", path, book)
    assert ran.code == 1 and ran.out == ""
    (line,) = ran.err.splitlines()
    assert line.startswith(str(path)) and message in line and len(line) < 600


def test_less_than_a_dollar_is_not_made_one() -> None:
    amounts = 40_178.6, 1.0, 0.6, -0.6, 0.004
    assert [signed_usd(amount) for amount in amounts] == ["+$40,179", "+$1", "+$0.60", "-$0.60", "+$0.0040"]

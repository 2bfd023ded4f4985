"""The offers that took part, those that were not asked for and are cheaper, and what a region, a class or so many
machines leave."""

from __future__ import annotations

import functools
import json
import math
import re
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from answers import document, recommend_text

import sheetgen
from sheetgen.answer.market_notes import not_asked
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve, were_measured
from sheetgen.api import recommended, sheet_record
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.question.market import DEFAULT_PROVIDERS
from sheetgen.question.sheet_question import ask
from sheetgen.report.pay_less_words import other_words
from sheetgen.report.wording import provider_of, sure

LOADS = [
    ("70b", "4k", 32), ("70b", "16k", 32), ("70b", "16k", 200), ("70b", "16k", 1024), ("70b", "128k", 32),
    ("8b", "4k", 1), ("8b", "16k", 1024), ("405b", "4k", 1), ("deepseek-v3", "16k", 128), ("gpt-oss-120b", "16k", 8),
]  # fmt: skip
NEUTRAL = "ever measured by us"


@functools.cache
def catalog() -> Catalog:
    return Catalog()


@functools.cache
def solved(model: str = "70b", context: str = "16k", users: int = 32, **more: object) -> Solution:
    options = {"model": model, "context": context, "concurrent_requests": users, "as_of": "2026-11-20", **more}
    return recommended(options, catalog())


def cell(solution: Solution) -> dict[str, Any]:
    return document(solution)["cells"][0]


def vendors(solution: Solution) -> set[str]:
    return {c.gpu.vendor for c in solution.question.candidates}


def problem(**options: object) -> str:
    with pytest.raises(ScenarioError) as raised:
        solved(**options)
    return "\n".join(raised.value.problems)


@functools.cache
def list_price_providers() -> str:
    """Providers outside the default that let whole instances at list prices."""
    whole = (i.provider for i in catalog().instances() if i.unit == "instance" and i.offer == "list")
    return ",".join(p for p in dict.fromkeys(whole) if p not in DEFAULT_PROVIDERS)


@pytest.mark.long
def test_vendors_by_default_by_name_and_all() -> None:
    assert vendors(solved()) == {"nvidia"} == vendors(solved(vendors="NVIDIA"))
    assert vendors(solved(vendors="amd")) == {"amd"} and vendors(solved(vendors="nvidia,amd")) == {"nvidia", "amd"}
    assert vendors(solved(vendors="all")) >= {"nvidia", "amd"}
    assert vendors(solved(gpus="mi300x")) == {"amd"} == vendors(solved(gpus="mi300x", vendors="nvidia"))
    assert sheetgen.recommend(model="70b", vendors=["nvidia", "amd"])["inputs"]["vendors"] == ["nvidia", "amd"]
    inputs = document(solved())["inputs"]
    assert inputs["vendors"] == ["nvidia"] and document(solved(gpus="h100"))["inputs"]["vendors"] == []


def test_a_vendor_that_is_none_is_told_with_what_it_may_mean() -> None:
    words = problem(vendors="nvida,amd,foo")
    vendors = ", ".join(["all", *sorted({gpu.vendor for gpu in catalog().gpus()})])
    assert "'nvida'" in words and vendors in words
    assert "vendor 'foo'" in words and "vendor 'amd'" not in words
    assert "Did you mean azure?" in problem(providers="azzure")


def test_a_vendor_that_the_engine_does_not_run_on_is_a_reason() -> None:
    assert "TensorRT-LLM" in problem(vendors="amd", engine="tensorrt-llm")


def test_vendors_in_a_scenario_file(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "s.yaml").write_text("models: 8b\nvendors: [nvidia, amd]\nworkloads: rag\ntiers: 8\n")
    result = run("build", "--scenario", "s.yaml", "--format", "csv", "--json")
    assert result.exit_code == 0 and '"vendors": [\n      "nvidia",\n      "amd"\n    ]' in result.stdout


@pytest.mark.some(2)
@pytest.mark.parametrize("load", LOADS, ids=str)
def test_what_was_not_asked_is_what_asking_for_it_gives(load: tuple[str, str, int]) -> None:
    """Asked for by --vendors or --providers, it is the answer; named only where a tenth cheaper."""
    mine = cell(solved(*load))
    expected = []
    for kind, more in (("vendor", {"vendors": "amd"}), ("provider", {"providers": list_price_providers()})):
        other = cell(solved(*load, **more))
        if other["verdict"] == "fits" and other["monthly_usd"] < 0.9 * mine["monthly_usd"]:
            gpu = catalog().gpu(other["gpu"])
            keys = ("instance", "n_instances", "monthly_usd", "measured")
            expected.append({"vendor": gpu.vendor, "kind": kind, **{key: other[key] for key in keys}})
    assert [dict(sorted(rental.items())) for rental in mine["not_asked"]] == [
        dict(sorted(row.items())) for row in expected
    ]


def test_some_loads_have_something_cheaper_and_some_have_not() -> None:
    vendors = [{rental["vendor"] for rental in cell(solved(*load))["not_asked"]} for load in LOADS]
    assert set() in vendors and {"nvidia", "amd"} in vendors


def test_a_sheet_is_told_of_every_load_as_it_would_be_alone() -> None:
    asked = {"models": "8b,70b", "workloads": "rag", "tiers": "1,32,1024", "as_of": "2026-11-20"}
    sheet = solve(ask(catalog(), asked))
    for load, others in zip(sheet.question.loads, not_asked(sheet), strict=True):
        model = ("8b", "70b")[load.model]
        (alone,) = not_asked(solved(model, "16k", load.concurrent_requests))
        assert [(o.instance, o.n_instances) for o in others] == [(o.instance, o.n_instances) for o in alone]


def test_what_is_told_of_is_what_one_more_option_lets_take_part() -> None:
    for more, kinds in (
        ({"instances": "aws/p5.48xlarge"}, {"vendor", "gpu"}),
        ({"gpus": "h100"}, {"vendor", "provider", "gpu"}),
        ({"gpus": "h100", "providers": "aws"}, {"cloud", "provider", "gpu"}),
        ({"vendors": "nvidia", "providers": "aws"}, {"cloud", "provider"}),  # which has no GPUs of AMD
        ({"providers": "azure"}, {"vendor", "cloud", "provider"}),
    ):
        told = cell(solved(**more))["not_asked"]
        took_part = {candidate.instance for candidate in solved(**more).question.candidates}
        assert {offer["kind"] for offer in told} <= kinds and not took_part & {offer["instance"] for offer in told}, (
            more
        )
        assert told or "instances" in more, more


def test_where_gpus_are_named_others_at_the_same_providers_are_sought_priced_by_the_gpu_and_of_another_vendor() -> None:
    """Each is what one more option would let take part: GPUs that a named provider prices one by one do, and AMD's."""
    for named, kind, gpu in (
        ({"gpus": "h200", "providers": "nebius,aws"}, "gpu", "b200"),
        ({"gpus": "a100", "providers": "azure"}, "vendor", "mi300x"),
    ):
        load = ("llama-4-scout-17b-16e", "64k", 200)
        by_kind = {rental["kind"]: rental for rental in cell(solved(*load, **named))["not_asked"]}
        asked_for = cell(solved(*load, **{**named, "gpus": gpu}))
        for key in ("instance", "n_instances", "monthly_usd"):
            assert by_kind[kind][key] == asked_for[key], named


def test_what_nothing_asked_for_holds_is_named_where_something_else_does() -> None:
    """In a region without the racks of GB200, which hold it."""
    answer = cell(solved("kimi-k2", "4k", 1, providers="azure", region="francecentral", span_machines="never"))
    assert answer["verdict"] == "nothing fits" and answer["monthly_usd"] is None
    assert [rental["instance"] for rental in answer["not_asked"]] == ["azure/Standard_ND96isr_MI300X_v5"]


@pytest.mark.parametrize("load", [("70b", "16k", 32, {}), ("70b", "16k", 32, {"gpus": "h100"})], ids=str)
def test_what_was_not_requested_is_said_by_its_gpu_and_provider(load: tuple[str, str, int, dict[str, str]]) -> None:
    answer = solved(*load[:3], **load[3])
    (way,) = (way for way in sheet_record(answer).cells[0].pay_less if way.kind == "provider")
    gpu = next(c.gpu for group in answer.question.beyond for c in group if c.instance == way.instance)
    names = [provider_of(str(way.instance)), gpu.short_name]
    assert all(name in way.what for name in names) and "another" not in way.what
    assert ("AMD" in way.what) == (gpu.vendor == "amd")


@pytest.mark.parametrize("survive", ["none", "zone"])
def test_where_nothing_serves_the_question_says_what_loss_was_to_be_survived(survive: str) -> None:
    [question, *_] = recommend_text(solved(tpot_ms=2, survive=survive)).split("\n")
    assert ("after the loss of a zone" in question) == (survive == "zone")


def test_in_a_region_what_is_priced_by_the_gpu_is_told_of_with_its_place() -> None:
    answer = solved("gpt-oss-120b", "16k", 7, region="eu")
    other, *_ = (other for other in sheet_record(answer).cells[0].not_asked if other.kind == "provider")
    alone = cell(solved("gpt-oss-120b", "16k", 7, region="eu", providers=other.instance.split("/")[0]))
    assert (other.instance, other.monthly_usd) == (alone["instance"], alone["monthly_usd"])
    assert " x" in other.instance and other.region in other_words(other)


def test_only_whole_instances_at_list_prices_are_told_of() -> None:
    rows = {row.id: row for row in catalog().instances()}
    for candidate in (c for group in solved().question.beyond for c in group):
        row = rows[candidate.instance]
        assert row.unit == "instance" and row.offer == "list" and not candidate.assumed_shape
        assert (row.provider in DEFAULT_PROVIDERS) == (candidate.gpu.vendor != "nvidia")


def test_a_region_that_leaves_nothing_names_those_there_are() -> None:
    words = problem(region="us-est-1")
    assert "region 'us-est-1'. Areas: " in words
    assert "Did you mean us-" in words and "Canada" not in words  # of the providers asked for
    assert "US/Canada/Norway" in problem(region="mars", providers="hyperstack")


NO_BLOCKS = {"purchase": "capacity-block", "providers": "azure"}
NO_SPOT = {"purchase": "spot", "providers": "azure,aws", "region": "us-east-1", "gpus": "l4"}


def test_a_sheet_of_a_class_that_leaves_nothing_names_those_with_prices() -> None:
    for where, options in (("", NO_BLOCKS), (" in region 'us-east-1'", NO_SPOT)):
        with pytest.raises(ScenarioError) as raised:
            ask(catalog(), {"models": "8b", **options})
        asked = options["purchase"]
        assert f"{where} with a price for {asked}. " in str(raised.value)


@pytest.mark.parametrize("options", [NO_BLOCKS, NO_SPOT])
def test_one_load_in_a_class_that_leaves_nothing_is_answered_on_demand(options: dict[str, str]) -> None:
    asked, plain = solved("8b", "8k", 1, **options), solved("8b", "8k", 1, **{**options, "purchase": "on-demand"})
    own, usual = cell(asked), cell(plain)
    n, purchase = len(plain.question.candidates), options["purchase"]
    assert own["declined"] == {
        "purchase": purchase, "reason": "unsold", "monthly_usd": None, "unpriced": n, "instances": n
    }  # fmt: skip
    assert {**own, "declined": None} == usual
    words = " ".join(recommend_text(asked, False, False).split())
    assert f"{purchase} was requested: none of {n} " in words


def test_more_than_eight_machines_need_a_reservation() -> None:
    few, many = solved(), solved("405b", "128k", 1024)
    assert cell(few)["needs_reservation"] is False and few.choices[0].n_instances <= 8
    assert cell(many)["needs_reservation"] is True and many.choices[0].n_instances > 8
    assert "Ask for capacity: " in recommend_text(many, False, False)
    assert "Ask for capacity" not in recommend_text(few, True, False)


def test_what_was_never_measured_says_so() -> None:
    ranks = solved("deepseek-v3", "4k", 128, confidence="0.5")
    plain, other = solved(gpus="h100"), solved(gpus="mi300x")
    assert cell(plain)["measured"] is True
    assert NEUTRAL not in recommend_text(plain, True, False).split("NOT REQUESTED")[0]
    assert cell(ranks)["data_parallel_size"] > 1 and cell(ranks)["measured"] is False
    assert cell(other)["measured"] is False and f"N{NEUTRAL}" in " ".join(recommend_text(other, False, False).split())
    offer = plain.choices[0].offer
    assert offer is not None
    staged = plain.grid.again({"pipeline_parallel_size": 2})
    for grid, has_runs in ((plain.grid, True), (staged, False)):
        assert were_measured(grid.along("chosen", {"load": [0], "offer": [offer]})) == [has_runs]
    nothing = cell(solved("405b", "4k", 1, instances="aws/g5.xlarge"))
    assert nothing["measured"] is None and nothing["needs_reservation"] is False


def test_what_was_not_requested_and_never_measured_says_so() -> None:
    told = set[bool]()
    for load in LOADS:
        text = recommend_text(solved(*load), True, False)
        for rental in cell(solved(*load))["not_asked"]:
            line = f"{rental['instance']}, ${rental['monthly_usd']:,.0f} a month"
            assert (f"{line}, n{NEUTRAL}\n" in text) != rental["measured"] and line in text
            told.add(rental["measured"])
    assert told == {True, False}


def test_recommend_says_who_took_part_and_what_did_not() -> None:
    text = recommend_text(solved(), True, False)
    n_candidates = len(solved().question.candidates)
    assert f"{n_candidates} instances " in text and "AWS, GCP and Azure" in text
    every = recommend_text(solved(providers="all", vendors="all"), True, False)
    assert re.search(r"took part, of [^.]* and \d+ other\s+providers, with GPUs of NVIDIA and AMD\.", every)


@pytest.mark.long
def test_the_order_of_providers_changes_nothing(run) -> None:  # type: ignore[no-untyped-def]
    asked = ("recommend", "--model", "8b", "--gpus", "l4,a10", "--as-of", "2026-11-20", "--json", "--providers")
    text, *others = (run(*asked, names).stdout for names in ("aws,azure", "azure,aws", "azure, aws,azure"))
    assert [other == text for other in others] == [True, True] and '"aws"' in text


def test_the_order_of_providers_changes_nothing_of_what_a_workbook_keeps() -> None:
    options = [ask(Catalog(), {"models": "8b", "providers": names}).options for names in ("gcp,aws", "aws,gcp")]
    assert options[0] == options[1] and options[0]["providers"] == "aws,gcp"


def test_what_is_not_sold_in_the_class_is_no_candidate_whatever_its_list_price() -> None:
    """A list price stands beside GCP's A4, A3 Ultra, A3 Mega and parts of A3 High; nobody can rent them by the hour."""
    listed = {f"gcp/{name}" for name in ("a4-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g", "a3-highgpu-4g")}
    assert all(catalog().instance(name).price("on-demand") for name in listed)
    on_demand, spot = (document(solved("8b", purchase=purchase)) for purchase in ("on-demand", "spot"))
    offered, at_spot = (
        {candidate["instance"]: candidate["sold_as"] for candidate in answer["candidates"]}
        for answer in (on_demand, spot)
    )
    assert not listed & set(offered) and all("on-demand" in classes for classes in offered.values())
    assert at_spot["gcp/a4-highgpu-8g"] == ["reserved-1yr", "reserved-3yr", "spot"]
    left_out = {reason["reason"]: reason["rows"] for reason in on_demand["inputs"]["left_out"]}
    providers = [row for row in catalog().instances() if row.provider in DEFAULT_PROVIDERS and row.sold_as]
    assert left_out["not sold on-demand, whatever price is listed"] == len(providers) >= 11
    assert "reserved-1yr" in problem(instances="gcp/a4-highgpu-8g")


def test_of_what_was_not_requested_the_other_clouds_go_first() -> None:
    """They are bought from as the answer is; what is cheaper still is told beside them."""
    answer = sheetgen.recommend(model="70b", context="16k", users=200, providers="gcp", as_of="2026-11-20")
    by_kind = {rental["kind"]: rental for rental in answer["not_asked"]}
    assert {"cloud", "provider"} <= set(by_kind)
    (way,) = (way for way in answer["pay_less"] if way["kind"] == "provider")
    assert (way["instance"], way["monthly_usd"]) == tuple(by_kind["cloud"][key] for key in ("instance", "monthly_usd"))
    assert way["instance"].partition("/")[0] in DEFAULT_PROVIDERS
    cheapest = by_kind["provider"]
    assert cheapest["monthly_usd"] < way["monthly_usd"] and f"${cheapest['monthly_usd']:,.0f}" in way["gives_up"]


@pytest.mark.long
def test_the_workbook_says_the_region_of_each_class(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    """p4d on demand is cheapest in eu-north-1, which has no price for a year: that is of eu-west-1."""
    asked = (
        "--models",
        "70b",
        "--workloads",
        "rag",
        "--tiers",
        "8",
        "--region",
        "eu",
        "--instances",
        "aws/p4d.24xlarge",
    )
    assert run("build", *asked, "--as-of", "2026-11-20", "--format", "xlsx").exit_code == 0
    sheet = openpyxl.load_workbook(next(workdir.rglob("*.xlsx")), data_only=True)["Prices and hardware"]
    head = next(row for row in sheet.iter_rows() if any(cell.value == "Region, on-demand" for cell in row))
    places = {cell.value: cell.column for cell in head}
    names = ("Region, on-demand", "Region, reserved-1yr", "Region in use")
    below = [sheet.cell(head[0].row + 1, places[name]).value for name in names]
    assert below == ["eu-north-1", "eu-west-1", "eu-north-1"]


def test_regions_are_listed_with_the_number_of_their_types(run) -> None:  # type: ignore[no-untyped-def]
    rows = {row["id"]: row for row in json.loads(run("list", "regions", "--json").stdout)}
    milan = {"id": "gcp/europe-west8", "country": "Italy", "areas": ["eu", "europe"], "n_types": 4}  # of G4
    assert rows["gcp/europe-west8"] == milan
    assert rows["azure/swedencentral"]["areas"] == ["eu", "europe"] and rows["aws/us-east-1"]["n_types"] > 50
    assert "aws/eu-central-1" in run("list", "regions", "eu").stdout


BOARDS = {
    "a100": 4, "h100": 4, "h200": 4, "b200": 8, "mi300x": 8, "mi355x": 8, "gb200": 72,
    "l40s": 1, "a100-pcie": 1, "h100-nvl": 1, "gh200": 1, "gaudi3": 1,
}  # fmt: skip


@pytest.mark.parametrize("gpu", BOARDS)
def test_what_is_sold_by_the_board_is_bought_by_it(gpu: str) -> None:
    """NVIDIA's HGX boards: of 4 or 8 up to H200, of 8 from B200; OAM modules come on base boards of 8."""
    assert Catalog().gpu(gpu).sold_together == BOARDS[gpu]


@pytest.mark.parametrize("options, board", [({"vendors": "amd"}, 8), ({"gpus": "l40s"}, 1)])
def test_owning_buys_whole_boards(options: dict[str, str], board: int) -> None:
    answer = sheetgen.recommend(model="gemma-3-27b", context="16k", concurrent_requests=64, **options)
    owned = answer["owned"]
    assert owned["n_gpus"] == math.ceil(answer["n_gpus"] / board) * board
    assert (owned["n_gpus"] > answer["n_gpus"]) == (board > 1)
    base = owned["base"]
    assert base["owned_capex_usd"] == pytest.approx(owned["n_gpus"] * base["installed_usd_per_gpu"])
    for way in answer["pay_less"]:
        assert way["kind"] != "own" or f"owning {owned['n_gpus']}x " in way["what"]


@pytest.mark.parametrize("model", ["deepseek-v2-lite", "llama-3.3-70b", "llama-3.1-8b"])
def test_no_way_to_pay_less_names_a_checkpoint_of_another_model(model: str) -> None:
    """Of DeepSeek-V2-Lite only an FP8 checkpoint of its sister for code is known."""
    entry = Catalog().model(model)
    others = {checkpoint.hf_id for checkpoint in entry.checkpoints if checkpoint.of}
    answer = sheetgen.recommend(model=model, context="16k", concurrent_requests=48, weight_dtype="published")
    words = (word for way in answer["pay_less"] if "_" in way["kind"] for word in way["what"].split(", "))
    named = {word for word in words if "/" in word}
    assert others and not named & others
    assert named <= {checkpoint.hf_id for checkpoint in entry.checkpoints if checkpoint.of is None}
    assert bool(named) == (model != "deepseek-v2-lite")


@pytest.mark.parametrize("contingency", [0.0, 0.1])
def test_a_month_in_another_currency_is_said_once(contingency: float) -> None:
    """The budget stands beside it only where it differs: by the contingency."""
    money = {"currency": "EUR", "fx_rate": 0.92, "contingency_fraction": contingency}
    told = recommend_text(recommended({"model": "70b", "context": "16k", "users": 200, **money}, Catalog()))
    [line] = re.findall(r"^\d+x \S+, .*", told, re.M)
    months = [int(month.replace(",", "")) for month in re.findall(r"(?:€|EUR )([\d,]+)", line)]
    assert ("as budgeted EUR" in line) == bool(contingency) and len(months) == len(set(months)) == 2 + bool(contingency)
    assert months[-1] == pytest.approx(months[0] * (1 + contingency), abs=1) or not contingency
    assert "1 USD = 0.92 EUR" in line


def test_a_way_to_pay_less_is_as_sure_as_the_answer_that_takes_it() -> None:
    """A way that is less sure than the answer says so: another precision, a commitment."""
    asked = {"model": "llama-3.3-70b", "context": "16k", "concurrent_requests": 64, "weight_dtype": "published"}
    answer = sheetgen.recommend(**asked)
    ways = {way["kind"]: way for way in answer["pay_less"]}
    for kind, change in {"fp8_weights": {"weight_dtype": "fp8"}, "term": {"purchase": "reserved-3yr"}}.items():
        way, other = ways[kind], sheetgen.recommend(**asked | change)
        assert (other["instance"], other["n_instances"]) == (way["instance"], way["n_instances"])
        assert way["chance"] == pytest.approx(other["chance"], rel=1e-9)
    assert ways["fp8_weights"]["chance"] < answer["chance"]
    for kind in ("fp8_weights", "term"):
        way = ways[kind]
        assert way["what"].endswith(f", {sure(way['chance'])}") == (sure(way["chance"]) != sure(answer["chance"]))


BY_GPU = "verda/B200 SXM6"  # a row that is priced by the GPU


def test_a_machine_of_a_row_priced_by_the_gpu_is_named_as_answers_name_it() -> None:
    answer = solved("70b", "4k", 100, providers="verda", gpus="b200")
    shapes = {c.instance for c in answer.question.candidates}
    assert shapes == {f"{BY_GPU} x{n}" for n in (1, 2, 4, 8)}
    named = solved("70b", "4k", 100, instances=f"{BY_GPU} x2,{BY_GPU.lower()} X4")
    assert {c.instance for c in named.question.candidates} == {f"{BY_GPU} x2", f"{BY_GPU} x4"}
    rented = cell(answer)["instance"]
    assert cell(solved("70b", "4k", 100, instances=rented))["monthly_usd"] == cell(answer)["monthly_usd"]
    every = solved("70b", "4k", 100, instances=BY_GPU)
    assert {c.instance for c in every.question.candidates} == shapes
    assert problem(instances=f"{BY_GPU} x3,aws/p5.48xlarge x2").count("is not in the catalogs") == 1
    assert "is not in the catalogs" in problem(instances="aws/p5.48xlarge x2")

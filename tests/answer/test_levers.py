"""Each lever's answer is that of a question asked anew with that one option, and says what it costs."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest
from asked import FAMILIES, THREE, alone, answered, catalog, every, load, of_load, same
from option_values import Options

from sheetgen.answer.levers import Lever, best, in_order, levers_of_sheet
from sheetgen.answer.levers import lever as asking
from sheetgen.answer.levers.lever import saved_usd
from sheetgen.answer.solve import solve, tables
from sheetgen.catalog import guidance
from sheetgen.catalog.stacks import LeverId
from sheetgen.report.wording import saving

LOADS = [("8b", "16k", 32), ("70b", "16k", 32), ("70b", "4k", 3), ("gemma-3-27b", "128k", 8), ("405b", "16k", 40)]


def options_of(lever: Lever, model: str, context: str, users: int) -> dict[str, Any] | None:
    """The options of a question that asks for what a lever changes; nothing where no option does."""
    tokens = {"4k": 4096, "16k": 16384, "128k": 131072}[context]
    usual = {"model": model, "context": tokens, "concurrent_requests": users, "output_tokens": 1024}
    if context == "128k":  # a lever leaves the answer's length and the targets as they are
        usual |= {"tpot_ms": 100, "ttft_ms": 53019.2}
    number = int(float(lever.words.split()[0].replace(",", ""))) if lever.words[0].isdigit() else 0
    after = int(lever.changed.split(" to ")[1].split()[0].replace(",", "")) if lever.family == "context" else 0
    return {
        "fp8-kv-cache": {**usual, "kv_cache_dtype": "fp8"},
        "fp8-weights": {**usual, "weight_dtype": "fp8"},
        "fp8-both": {**usual, "kv_cache_dtype": "fp8", "weight_dtype": "fp8"},
        "fp4-weights": {**usual, "weight_dtype": lever.words.split()[0].lower()},
        "prefix-cache": {**usual, "prefix_cache_hit_fraction": 0.35},
        "half-context": {**usual, "context": tokens // 2},
        "shorter-context": {**usual, "context": after},
        "fewer-users": {**usual, "concurrent_requests": number},
        "users-for-less": {**usual, "concurrent_requests": number},
        "more-of-memory": {**usual, "gpu_memory_utilization": 0.95},
        "leaner-model": {**usual, "model": model_id(lever) if lever.id == "leaner-model" else model},
    }.get(lever.id)


def model_id(lever: Lever) -> str:
    name = lever.words.removesuffix(" instead")
    return next(m.id for m in catalog().models() if m.name == name)


@pytest.mark.some(1)
@pytest.mark.parametrize("model,context,users", LOADS)
def test_a_lever_is_the_answer_to_a_question_of_its_own(model: str, context: str, users: int) -> None:
    asked = 0
    for lever in of_load(model, context, users).values():
        options = options_of(lever, model, context, users) if lever.after is not None else None
        if options:
            assert same(lever, alone(**options)), lever.id
            asked += 1
    assert asked >= 6


def test_a_machine_that_lacks_little_memory_is_priced_at_the_most_that_the_engine_may_take() -> None:
    """8x RTX PRO 6000 lack some GiB for DeepSeek-R1 in FP8; 70B is held by far less at its own share."""
    near, far = of_load("deepseek-r1", "4k", 1)["more-of-memory"], of_load("8b", "16k", 32)["more-of-memory"]
    assert near.after is not None and "RTX PRO 6000" in near.after.candidate.gpu.short_name
    assert same(near, alone(model="deepseek-r1", context=4096, concurrent_requests=1, gpu_memory_utilization=0.95))
    assert near.saved_fraction is not None and near.saved_fraction > 0.1 and far.why_not


@pytest.mark.some(1)
@pytest.mark.parametrize("options", [{}, {"gpus": "h100,h200"}, {"kv_allocation": "reserved"}])
def test_a_sheet_has_the_levers_of_each_of_its_loads(options: Options) -> None:
    solved = answered("70b", workloads="rag", tiers="1,32", **options)
    together = levers_of_sheet(solved)
    assert [levers_of_sheet(solved, (row,))[row] for row in range(2)] == list(together)


@pytest.mark.some(1)
@pytest.mark.parametrize("models", [THREE, FAMILIES])
def test_asking_for_less_never_costs_more(models: str) -> None:
    less = ("half-context", "shorter-context", "fewer-users", "users-for-less", "prefix-cache")
    kept = [lever for levers in every(models) for lever in levers if lever.id in less and lever.after is not None]
    assert len(kept) > 100
    assert not [(lever.words, lever.saved_usd) for lever in kept if (lever.saved_usd or 0) < 0]


@pytest.mark.parametrize("models", [THREE, FAMILIES])
def test_an_fp8_cache_never_needs_more_hardware_than_16_bits(models: str) -> None:
    """On every candidate whose GPU runs it, at as many pipeline stages: the fewest that hold one request are taken,
    so that a smaller cache may leave a candidate with a stage less, and room for fewer requests."""
    solved = answered(models)
    kept = tuple(dataclasses.replace(m, kv_cache_dtype="fp8") for m in solved.question.models)
    eight = solve(dataclasses.replace(solved.question, models=kept))
    runs = [i for i, _ in enumerate(solved.offers) if "fp8" in solved.candidate(i).gpu.kv_run]
    assert len(runs) > 100
    (stages, before), (fewer, after) = (
        (solution.costs["pipeline_stages"][:, runs], solution.costs["n_instances"][:, runs])
        for solution in (solved, eight)
    )
    held = (stages == fewer) & (before > 0)
    assert held.sum() > 1000 and (after[held] <= before[held]).all()
    for levers in every(models):
        assert all((lever.saved_usd or 0) >= 0 for lever in levers if lever.id == "fp8-kv-cache")


@pytest.mark.parametrize("models", [THREE, FAMILIES])
def test_the_next_step_down_is_the_largest_that_costs_less(models: str) -> None:
    solved = answered(models)
    checked = 0
    for row, levers in enumerate(every(models)):
        cell = solved.question.loads[row]
        for lever in levers:
            if lever.id == "users-for-less" and lever.after is not None and lever.before:
                number = int(lever.words.split()[0].replace(",", ""))
                more, same_month = asking.Loads(solved).ask(
                    [asking.Change(row, requests=number + 1), asking.Change(row, requests=number)]
                )
                assert same_month == lever.after and lever.saved_usd and more is not None
                assert saved_usd(lever.before, more) == 0
                assert number < cell.concurrent_requests
                checked += 1
    assert checked > 10


def test_every_lever_of_the_catalog_stands_for_each_load_once_but_for_further_steps() -> None:
    facts = catalog().read_document("levers.yaml").data
    ids = [lever["id"] for lever in facts["levers"]]
    for levers in every(THREE):
        assert [lever.id for lever in levers if not lever.further] == ids
        assert {lever.id for lever in levers if lever.further} <= {"slower-tokens"}
        assert all(bool(lever.why_not) != (lever.after is not None or lever.offload is not None) for lever in levers)
        assert all(lever.words and (lever.why_not or (lever.note and lever.cost)) for lever in levers)


def test_savings_say_what_they_are() -> None:
    for levers in every(THREE):
        for lever in in_order(levers):
            words, usd = str(saving(lever)), lever.saved_usd
            assert lever.after is not None
            if usd == 0:
                same_month = lever.after.monthly_usd == pytest.approx(lever.before.monthly_usd)  # type: ignore[union-attr]
                assert words == ("no change" if same_month else "near tie")
            elif usd is not None and lever.before is not None:
                assert usd == lever.before.monthly_usd - lever.after.monthly_usd
                assert lever.saved_fraction == usd / lever.before.monthly_usd
                assert (" more (+" in words) == (usd < 0) and f"${abs(usd):,.0f}" in words


def test_a_small_load_saves_nothing_and_says_so() -> None:
    levers = of_load("8b", "4k", 1, gpus="h100", providers="aws")
    assert saving(levers["fp8-kv-cache"]) == saving(levers["half-context"]) == "no change"
    assert levers["users-for-less"].why_not == "no smaller number of requests costs less"
    assert levers["shorter-context"].why_not == "no shorter context costs less"
    assert levers["fewer-users"].why_not == "one request at once is the least"
    assert levers["bigger-gpus"].why_not == "no candidate's GPU has more memory than the H100 SXM"
    shown = [lever for _, lever in best({0: in_order(levers.values())}, 3)]
    assert [saving(lever) for lever in shown] == ["no change"] * 3 and shown[0].family == "precision"


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "options,lever,why",
    [
        ({"kv_cache_dtype": "fp8"}, "fp8-kv-cache", "the KV cache is fp8 already"),
        ({"weight_dtype": "fp8"}, "fp8-weights", "the weights are fp8 already"),
        ({"weight_dtype": "int4"}, "fp8-weights", "the weights are int4 already"),
        ({"weight_dtype": "fp8"}, "fp8-both", "the weights are fp8 already"),
        ({"kv_allocation": "reserved"}, "prefix-cache", "reserved KV keeps"),
        ({"prefix_cache_hit_fraction": 0.5}, "prefix-cache", "50% hits are counted already"),
        ({"engine": "llama.cpp"}, "fp8-kv-cache", "llama.cpp does not run a KV cache in fp8"),
        ({"engine": "llama.cpp"}, "fp4-weights", "llama.cpp does not run nvfp4 weights"),
        ({"engine": "llama.cpp"}, "prefix-cache", "requests share no cache on llama.cpp"),
        ({"engine": "lmdeploy"}, "fp8-kv-cache", "LMDeploy does not run a KV cache in fp8"),
        ({"gpus": "t4", "weight_dtype": "fp16", "kv_cache_dtype": "fp16"}, "fp8-kv-cache", "no candidate's GPU keeps"),
    ],
)
def test_why_a_lever_does_not_apply(options: Options, lever: str, why: str) -> None:
    the_lever = of_load("8b", "16k", 8, **options)[lever]
    assert the_lever.why_not.startswith(why) and the_lever.after is None and the_lever.saved_usd is None


def test_what_makes_a_load_fit_is_said_to() -> None:
    levers = of_load("70b", "4k", 1, instances="aws/p5.4xlarge")  # one H100, which its weights in FP8 leave room on
    assert levers["fp8-weights"].before is None and levers["fp8-weights"].now_fits
    fitting = [lever for lever in levers.values() if lever.now_fits]
    assert fitting and all(saving(lever) == "now fits" and lever.saved_usd is None for lever in fitting)


def test_a_load_over_the_models_limit_has_no_levers() -> None:
    solved = answered("llama-2-7b,8b", workloads="rag", tiers="32")
    levers = levers_of_sheet(solved)
    assert levers[0] == () and {lever.id for lever in levers[1]} == set(get_args(LeverId))


def test_a_gpu_that_computes_in_more_bits_than_it_keeps_is_named() -> None:
    lever = of_load("70b", "16k", 32, gpus="a100")["fp8-weights"]
    assert lever.note.startswith("A100 80GB SXM keeps fp8 and computes in 16 bits. ")
    assert "computes in" not in of_load("70b", "16k", 32, gpus="h100")["fp8-weights"].note


def test_bigger_gpus_are_the_cheapest_of_those_with_more_memory() -> None:
    solved = load("70b")
    (row,) = [i for i, _ in enumerate(solved.choices)]
    lever = of_load("70b")["bigger-gpus"]
    offer = solved.choices[row].offer
    assert offer is not None and lever.after is not None
    chosen = solved.candidate(offer).gpu.memory.engine_bytes
    dearest = [
        solved.costs["monthly_usd"][row, i]
        for i, _ in enumerate(solved.offers)
        if solved.candidate(i).gpu.memory.engine_bytes > chosen
    ]
    assert lever.after.monthly_usd == min(usd for usd in dearest if usd == usd)
    assert lever.after.candidate.gpu.short_name in lever.words and (lever.saved_usd or 0) <= 0


def test_another_model_is_of_like_size_and_named_with_its_own_numbers() -> None:
    share = guidance.number(guidance.assumptions(catalog()), "lever_like_size_fraction")
    for name in ("8b", "70b", "gpt-oss-120b", "deepseek-v3"):
        lever = of_load(name)["leaner-model"]
        if lever.after is None:
            continue
        other, model = catalog().model(model_id(lever)), catalog().model(name)
        assert abs(other.params.total / model.params.total - 1) <= share and other.id != model.id
        assert f"{other.params.total / 1e9:,.1f} B" in lever.changed and "GiB of KV a request" in lever.changed
        assert other.confidence in ("sourced", "partly_derived") and (other.max_context_tokens or 0) >= 16384
        assert lever.note.endswith("quality not compared")


def test_the_best_are_one_of_each_family_and_load_and_never_another_model() -> None:
    by_row = dict(enumerate(map(in_order, every(THREE))))
    shown = best(by_row, 10_000)
    assert len({(row, lever.family) for row, lever in shown}) == len(shown)
    assert "model" not in {lever.family for _, lever in shown} and "offload" not in {lever.family for _, lever in shown}
    for row, levers in by_row.items():
        saved = [round(lever.saved_usd or 0, 6) for index, lever in shown if index == row]
        assert saved == sorted(saved, reverse=True) and min(saved) >= 0
        open_ones = [lever for lever in levers if lever.after is not None and not lever.further]
        for best_lever in (lever for index, lever in shown if index == row):
            assert best_lever.saved_usd == max(
                other.saved_usd or 0 for other in open_ones if other.family == best_lever.family
            )


def test_each_load_has_its_best_before_any_has_its_second() -> None:
    """The sheet's three models have a row each, a model alone has its three best; of two, one has its second."""
    by_row = {row: in_order(every(THREE)[row]) for row in (5, 17, 29)}
    of_all = {row: [lever for _, lever in best({row: levers}, 99)] for row, levers in by_row.items()}
    first = best(by_row, 3)
    assert {row for row, _ in first} == set(by_row)
    assert all(lever == of_all[row][0] for row, lever in first)
    saved = [lever.saved_usd or 0 for _, lever in first]
    assert saved == sorted(saved, reverse=True)
    assert [lever for _, lever in best({29: by_row[29]}, 3)] == of_all[29][:3]
    two = best({row: by_row[row] for row in (17, 29)}, 3)
    assert {row for row, _ in two[:2]} == {17, 29} and two[2][1] == of_all[two[2][0]][1]


def test_where_levers_tie_eight_bits_come_first() -> None:
    levers = of_load("8b", "4k", 1, gpus="h100", providers="aws")
    assert [lever.id for _, lever in best({0: in_order(levers.values())}, 1)] == ["fp8-kv-cache"]


def test_a_discount_changes_no_order() -> None:
    whole, less = (
        [[lever.id for lever in in_order(levers_of_row)] for levers_of_row in every(discount_fraction=d)]
        for d in (0, 0.2)
    )
    assert whole == less and len(whole) == 36


def test_a_sheet_of_36_loads_is_worked_out_a_few_times_only(
    monkeypatch: pytest.MonkeyPatch, nothing_is_kept: None
) -> None:
    """And each model and workload once, whatever the requests at once and the GPUs that are allowed."""
    solved, calls = answered(THREE), []

    def counted(question: Any) -> Any:
        assert len({(cell.model, cell.workload) for cell in question.loads}) == len(question.loads)
        calls.append(len(question.loads))
        return tables(question)

    monkeypatch.setattr(asking, "tables", counted)
    levers_of_sheet(solved)
    assert 0 < len(calls) <= 15 + len(solved.question.models) and sum(calls) < 36 * 18
    calls.clear()
    loads = asking.Loads(solved)
    other = dataclasses.replace(solved.question.models[0], weight_dtype="fp8")
    fewer = [asking.Change(row, model=model, requests=3) for row in range(12) for model in (None, other)]
    bigger = [asking.Change(row, memory_above=80 * 2**30) for row in range(36)]
    questions = loads.ask([*fewer, *bigger])
    assert calls == [3] and loads.ask([*fewer, *bigger]) == questions and calls == [3]

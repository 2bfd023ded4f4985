"""How sure an answer is: properties, the ceiling of prompts, what nothing serves at the confidence asked for, words."""

from __future__ import annotations

import itertools
import math
import random
import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import books
import pytest
from amounts import IN_LONG, amount
from answers import recommend_json, recommend_text, record_for
from option_values import Options
from recalculation import (
    compare,
    edit,
    needs_libreoffice,
    poison,
    recalculate,
    recalculate_with_formualizer,
    values_after,
)
from workbook_cells import values

import sheetgen
from sheetgen.answer.solve import solve
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import MODEL_KINDS, SPEED_FIGURES, Scope, SpeedFile
from sheetgen.question.deployment import speed_band_columns
from sheetgen.question.sheet_question import ask
from sheetgen.report import sentences
from sheetgen.report.wording import sure
from sheetgen.sizing import certainty
from sheetgen.units import CHANCE_STEP, ENDS

LEVELS = (0.3, 0.5, 0.7, 0.9)
MODELS = ("8b", "70b", "gpt-oss-120b", "gemma-3-27b", "qwen3-235b-a22b", "deepseek-v3", "qwen3-next-80b-a3b")
EMBEDDINGS = {
    "model": "qwen3-embedding-8b", "input_tokens": 512, "output_tokens": 1, "tpot_ms": "off", "ttft_ms": 500,
    "instances": "aws/p5.4xlarge",
}  # fmt: skip
ALMOST = 1 - 1e-9


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def random_load(draw: random.Random) -> dict[str, Any]:
    load = {"model": draw.choice(MODELS), "context": draw.choice((2048, 8192, 16_384, 65_536))}
    load["context"] = min(load["context"], Catalog().model(load["model"]).max_context_tokens or load["context"])
    if draw.random() < 0.5:
        return load | {"requests_per_second": round(10 ** draw.uniform(-2, 2), 3)}
    return load | {"concurrent_requests": draw.choice((1, 4, 32, 200, 1000))}


def test_more_confidence_is_never_cheaper_and_every_answer_is_as_sure_as_it_was_asked_to_be() -> None:
    draw, n_dearer = random.Random(34), 0
    for _ in range(amount(1, 300)):
        load = random_load(draw)
        answers = {level: sheetgen.recommend(**load, confidence=level) for level in LEVELS}
        months = {
            level: answer["cheapest"]["monthly_usd"] if "impossible" not in answer["measure_first"] else math.inf
            for level, answer in answers.items()
            if answer["verdict"] == "fits"
        }
        for low, high in itertools.pairwise(months):
            assert months[high] >= months[low] * ALMOST, (load, low, high)
            n_dearer += months[high] > months[low] / ALMOST
        for level, answer in answers.items():
            if level in months and months[level] < math.inf:
                assert answer["chance"] >= level - 1e-12, (load, level)
                assert answer["chance"] <= min(answer["chance_of"].values()) + 1e-9, (load, level)
            levels = [level for level in answer["by_confidence"] if level]
            assert [level["confidence"] for level in levels] == sorted(level["confidence"] for level in levels)
            assert all(a["monthly_usd"] <= b["monthly_usd"] / ALMOST for a, b in itertools.pairwise(levels)), load
            for step in levels:
                if step["confidence"] in months and months[step["confidence"]] < math.inf:
                    assert step["monthly_usd"] == pytest.approx(months[step["confidence"]], rel=1e-12), (load, level)
    assert n_dearer > amount(0, 1), "confidence moved hardly an answer"


def test_prompts_fill_no_more_of_a_replica_than_they_may() -> None:
    rate = 866.7
    answer = sheetgen.recommend(**EMBEDDINGS, requests_per_second=rate)
    assert answer["sized_by"] == "prefill"
    model = Catalog().gpu(answer["gpu"])
    flops = 2 * 7.5e9 * 512 * rate / answer["n_instances"]  # two operations a parameter and token
    assert flops < 0.8 * (model.peak_flops_for("bf16") or 0), "more than a GPU's published peak"
    served = sheetgen.recommend(**EMBEDDINGS, requests_per_second=answer["served_at_target"] * ALMOST)
    assert served["n_instances"] == answer["n_instances"]
    more = sheetgen.recommend(**EMBEDDINGS, requests_per_second=answer["served_at_target"] * 1.001)
    assert more["n_instances"] == answer["n_instances"] + 1
    half = sheetgen.recommend(**EMBEDDINGS, requests_per_second=rate, max_prefill_utilization=0.4)
    assert half["n_instances"] == pytest.approx(2 * answer["n_instances"], abs=1)


def test_what_nothing_serves_at_the_confidence_is_answered_at_an_even_chance() -> None:
    load = {"model": "70b", "context": "16k", "concurrent_requests": 8, "tpot_ms": 10, "ttft_ms": 1500}
    even = sheetgen.recommend(**load, confidence=0.5)
    sure = sheetgen.recommend(**load, confidence=0.95)
    assert even["verdict"] == "fits" and even["chance"] < 0.95
    assert sure["measure_first"][0] == "impossible" and "impossible" not in even["measure_first"]
    same = ("instance", "n_instances", "monthly_usd", "sequences_per_replica", "served_at_target", "chance")
    assert {name: sure[name] for name in same} == {name: even[name] for name in same}
    assert sure["by_confidence"][-1] is None and sure["by_confidence"][0]["confidence"] == 0.5


@pytest.mark.parametrize(
    ("level", "factor", "pool"), [(0.5, 1, 0), (0.9, 1.6, -2), (0.1, 0.8, 1), (0.7, 1.6 ** (0.5244 / 1.2816), -0.8184)]
)
def test_a_level_is_between_the_ends_of_the_band(level: float, factor: float, pool: float) -> None:
    """To four digits, as 1.2816 has five."""
    z = float(certainty.confidence_z(level))
    assert certainty.level_factor(z, 0.8, 1.6, 1.2816) == pytest.approx(factor, rel=1e-4)
    assert certainty.pool_level_bytes(z, -2, 1, 1.2816) == pytest.approx(pool, rel=1e-4, abs=1e-12)


def test_a_chance_is_that_at_which_the_time_is_its_target() -> None:
    for seconds in (0.02, 0.045, 0.05, 0.06, 0.2):
        z = float(certainty.time_z(0.05, seconds, 0.8, 1.6, 1.2816))
        assert seconds * certainty.level_factor(z, 0.8, 1.6, 1.2816) == pytest.approx(0.05, rel=1e-12)


APART: tuple[Scope, ...] = ("other", "ranks", "stages")  # of what was not measured


def _allowance() -> float:
    """Square roots of the load to leave free for 5 % that wait, of the square-root form of Erlang-C, by halving."""
    normal, low, high = statistics.NormalDist(), 0.0, 9.0
    for _ in range(60):
        z = (low + high) / 2
        low, high = (z, high) if 1 / (1 + z * normal.cdf(z) / normal.pdf(z)) > 0.05 else (low, z)
    return low


@pytest.mark.parametrize(
    "model, gpu, context, rate",
    [("qwen3-32b", "l40s", 2000, 0.1), ("qwen3-32b", "l40s", 5000, 0.02), ("qwen3-14b", "l4", 3000, 0.02)],
)
def test_the_chance_of_memory_at_a_rate_is_that_of_the_requests_that_are_there(
    model: str, gpu: str, context: int, rate: float
) -> None:
    """As of the same machine with as many at once as run at peak, with allowance for chance; not with every place
    taken."""
    load = {"model": model, "gpus": gpu, "context": context, "tpot_ms": "off", "ttft_ms": "off", "confidence": 0.5}
    load |= {"providers": "aws,gcp", "as_of": "2026-11-20"}
    at_rate = sheetgen.recommend(**load, requests_per_second=rate)
    mean = at_rate["concurrent_requests"]
    there = math.ceil(mean + _allowance() * math.sqrt(mean))
    at_once = sheetgen.recommend(**load, concurrent_requests=there, instances=at_rate["instance"])
    assert (at_once["n_instances"], at_once["n_replicas"]) == (at_rate["n_instances"], at_rate["n_replicas"]) == (1, 1)
    assert at_rate["chance_of"]["memory"] == pytest.approx(at_once["chance_of"]["memory"], rel=1e-12)
    assert there <= at_rate["n_places"] and 0.5 < at_rate["chance_of"]["memory"] < 0.95


def test_memory_with_far_more_places_than_requests_is_not_what_is_least_sure() -> None:
    """Of embeddings thousands fit and few are there: it is the rate that machines keep up with, which a run proves."""
    load = {"model": "qwen3-embedding-4b", "context": "8k", "output_tokens": 1, "tpot_ms": "off"}
    recommended_cell = recommended(
        {**load, "requests_per_second": 300, "as_of": "2026-11-20", "providers": "all"}, Catalog()
    )
    answer, told = recommend_json(recommended_cell), " ".join(recommend_text(recommended_cell).split())
    assert answer["n_places"] > 50 * answer["concurrent_requests"] and answer["chance_of"]["memory"] > 0.99
    assert answer["chance"] < 0.9 and min(answer["chance_of"].values()) > answer["chance"] + 0.01
    assert "Least sure: how many requests a second they serve." in " ".join(
        recommend_text(recommended_cell, True).split()
    )
    assert "start-up log" not in told and "large and fast" not in told


@pytest.mark.some(3)
@pytest.mark.parametrize("confidence", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("load", [{"users": 200}, {"concurrent_requests": 32}], ids=["rate", "at once"])
def test_what_is_least_sure_is_said_at_every_confidence(load: Options, confidence: float) -> None:
    """The part whose chance is the answer's; of a rate a time with its load, as those beside it are means."""
    asked = {"model": "70b", "context": "16k", "confidence": confidence, "as_of": "2026-11-20", **load}
    recommended_cell = recommended(asked, Catalog())
    answer, told = recommend_json(recommended_cell), " ".join(recommend_text(recommended_cell, details=True).split())
    [(match, load_words)] = re.findall(r"Least sure: ([^.]*?)( with [\d,]+ at once(?: a machine)?)?\.", told)
    least = min(answer["chance_of"], key=answer["chance_of"].get)
    words = {"memory": "memory", "tpot": "time per token", "ttft": "first token"}
    assert bool(load_words) == ("users" in load and match in (words["tpot"], words["ttft"]))
    is_part = answer["chance_of"][least] <= answer["chance"] + 0.01
    assert match == (words[least] if is_part else "how many requests a second they serve")
    assert is_part or "users" in load


def test_what_was_not_measured_on_a_gpu_is_known_no_better_than_what_was() -> None:
    """In every scope but that of measured points; so no time within its target is surer, and none beyond it less so."""
    catalog = Catalog()
    speed = catalog.file(SpeedFile)
    of_gpus = {band.gpu: catalog.gpu(band.gpu) for band in speed.bands if band.gpu}
    assert len(of_gpus) >= 4
    for gpu, engine, kind, figure in itertools.product(
        of_gpus.values(), ("vllm", "sglang", "tensorrt-llm", "nim", "llama.cpp"), MODEL_KINDS, SPEED_FIGURES
    ):
        own = speed_band_columns(speed, "fitted", kind, engine, gpu)
        for scope in APART:
            ends = speed_band_columns(speed, scope, kind, engine, gpu)
            (low, high), (own_low, own_high) = (
                [columns[f"{figure}_band_{end}_{name}"] for end in ENDS]
                for columns, name in ((ends, scope), (own, "fitted"))
            )
            assert low <= own_low and own_high <= high, (gpu.id, engine, kind, figure, scope)
            for seconds in (0.02, 0.049, 0.051, 0.2):
                z, own_z = (
                    certainty.time_z(0.05, seconds, *band, 1.2816) for band in ((low, high), (own_low, own_high))
                )
                assert abs(z) <= abs(own_z) + 1e-12


def test_a_draft_makes_no_answer_surer_nor_nine_in_ten_cheaper() -> None:
    """A draft's speed-up is not counted: its times are those without it, but for the memory that it takes."""
    asked: Options = {"model": "70b", "context": "16k", "concurrent_requests": 32, "as_of": "2026-11-20"}
    plain = sheetgen.recommend(**asked)
    drafted = sheetgen.recommend(**asked, draft_model="eagle3-llama-3.x-70b")
    assert drafted["instance"] == plain["instance"] and drafted["chance"] <= plain["chance"]
    assert drafted["by_confidence"][-1]["monthly_usd"] >= plain["by_confidence"][-1]["monthly_usd"]


@pytest.mark.parametrize(
    ("chance", "words"),
    [(0.01, "under 5% sure"), (0.05, "5% sure"), (0.697, "65% sure"), (0.88, "85% sure"), (0.951, "over 95% sure")],
)
def test_a_chance_is_said_to_a_twentieth(chance: float, words: str) -> None:
    values: Mapping[str, float] = {"chance": chance, "chance_step": CHANCE_STEP}
    assert sentences.sure.fill(**values) == words


def test_no_chance_is_said_as_a_level_that_it_does_not_reach() -> None:
    """Of every chance to a ten-thousandth and the levels that are asked for; 0.0003 is what two decimals of a step of
    0.05 leave for the last digits of a level worked out from itself."""
    for level in (0.5, 0.7, 0.9, 0.95):
        at_level = str(sure(level))
        assert at_level == f"{level:.0%} sure" == str(sure(math.nextafter(level, 0)))
        for n in range(10_001):
            if n / 10_000 < level - 0.0003:
                assert str(sure(n / 10_000)) != at_level, n


@needs_libreoffice
def test_the_workbook_at_another_confidence_is_what_python_says(tmp_path: Path) -> None:
    """LibreOffice, in the gate formualizer, works the chances, and what they move, out anew."""
    path, _ = books.build(tmp_path, "small", books.SMALL, with_decision=IN_LONG)
    typed = {"in_confidence": 0.9}
    solved = solve(ask(books.catalog(), {**books.SMALL, "confidence": 0.9}))
    if IN_LONG:
        poison(edit(path, tmp_path / "edited.xlsx", typed), tmp_path / "poisoned.xlsx")
        values_ = values(recalculate(tmp_path / "poisoned.xlsx", tmp_path / "out"))
    else:
        values_ = values_after(path, typed)
    n, wrong = books.differences(values_, books.Sheets(path), solved)
    assert n > 300 and not wrong, wrong[:5]
    base = solve(ask(books.catalog(), books.SMALL))
    assert books.expected(solved) != books.expected(base)


@pytest.mark.long
def test_a_workbook_answers_at_an_even_chance_what_nothing_serves_at_the_confidence(tmp_path: Path) -> None:
    """Beside loads that are served at it; recalculated from poisoned caches."""
    asked = {"models": "70b,8b", "gpus": "l40s", "workloads": "chat", "tiers": "32", "as_of": books.AS_OF}
    solved, built, poisoned = solve(ask(books.catalog(), asked)), tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    built.write_bytes(books.book_bytes(solved))
    results = values(built)
    months = [results[f"rec_{name}_chat_1_monthly_usd"] for name in ("llama_3_1_70b", "llama_3_1_8b")]
    assert months == [choice.monthly_usd for choice in solved.choices]
    assert 0.5 <= solved.choices[0].chance < 0.7 <= solved.choices[1].chance
    poison(built, poisoned)
    assert not compare(built, recalculate_with_formualizer(poisoned, tmp_path / "c.xlsx")).mismatches


def test_the_same_machines_are_as_sure_wherever_they_stand() -> None:
    """The surer answer for a long document is the same machine as an answer asked for there: in one layout."""
    question = ask(Catalog(), {"models": "70b", "workloads": "long-doc", "tiers": "8"})
    (cell,) = record_for(solve(question)).headline_cells
    for level in filter(None, cell.by_confidence):
        alone = sheetgen.recommend(
            model="70b", context=cell.context_tokens, output_tokens=cell.output_tokens, concurrent_requests=8,
            confidence=level.confidence, instances=level.instance, near_tie_fraction=0,
        )  # fmt: skip
        assert (alone["n_instances"], alone["chance"]) == (level.n_instances, pytest.approx(level.chance, rel=1e-9))
    sure_level = cell.at_level(0.9)
    assert sure_level is not None and str(sure(sure_level.chance)) == "over 95% sure"

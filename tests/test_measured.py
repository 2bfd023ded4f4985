"""Measured points set the times of their deployment, there only; files of benchmarks are read as their tools wrote
them."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from answers import never_measured, page_for, recommend_json, recommend_text
from option_values import Options

import sheetgen
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.api import recommended, sheet_record
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.measured.measured_point import KEYS, MeasuredPoint, Unusable
from sheetgen.measured.read_measured import TOOLS, StatedMeasurement, measured_beside, read_measured, written_out
from sheetgen.question.measurements import REQUEST_FACTORS
from sheetgen.question.sheet_question import ask
from sheetgen.report import wording
from sheetgen.report.answer_lines import Shown, answer_lines
from sheetgen.report.measured_words import measured_lines

CATALOG = Catalog()
RESULTS = Path(__file__).parent / "data" / "measured" / "results"
FILES = sorted(RESULTS.iterdir())
R1 = {"model": "deepseek-r1", "gpu": "h200", "tensor_parallel_size": 8}
POINT = "concurrent_requests=64,input_tokens=1k,output_tokens=1024,tpot_ms=22.4"
THERE = {"concurrent_requests": 64, "context_tokens": 2048, "input_tokens": 1024, "output_tokens": 1024}


# Files ----------------------------------------------------------------------------------------------------------------


# By file: model, GPU, requests at once, tokens in and out, ms a token and to the first; None of a run that is not used.
# Worked out by hand of the files' own figures: requests at once of a rate are the rate times the seconds of a request.
READ: dict[str, list[tuple[Any, ...] | None]] = {
    "aiperf-qwen3.6-35b-a3b-rtx-5090.json": [("nvidia/Qwen3.6-35B-A3B-NVFP4", None, 16, 3761, 544, 11.85, 230.1)],
    "guidellm-qwen3-30b-a3b.json": [("Qwen/Qwen3-30B-A3B", None, 1, 92, 1024, 38.65, 59.99)],
    "sglang-llama-3.3-70b-h200.jsonl": [
        (None, None, 1.00547 * 7.81126, 509, 534, 14.486, 82.87),
        (None, None, 4.04320 * 12.7512, 513, 507, 25.015, 103.34),
        None,
    ],
    "vllm-gemma-4-e4b-spark.json": [("google/gemma-4-E4B-it", None, 0.285946 * 29.0922, 4073, 485, 58.35, 941.6)],
    "vllm-llama-3-8b-h100-pcie-1-a-second.json": [
        ("meta-llama/Meta-Llama-3-8B-Instruct", "NVIDIA-H100-PCIe", 1.05147 * 2.15545, 206, 202, 10.636, 20.60)
    ],
    "vllm-llama-3-8b-h100-pcie-16-a-second.json": [None],
    "vllm-llama-3-8b-h100-pcie-4-a-second.json": [
        ("meta-llama/Meta-Llama-3-8B-Instruct", "NVIDIA-H100-PCIe", 3.83193 * 2.22632, 206, 202, 10.980, 21.65)
    ],
    "vllm-minimax-m2.5.json": [("MiniMaxAI/MiniMax-M2.5", None, 8, 1024, 1024, 16.393, 148.0)],
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_benchmarks_file_is_read_as_its_tool_wrote_it(file: Path) -> None:
    for reading, expected in zip(read_measured([file], CATALOG), READ[file.name], strict=True):
        assert file.name in reading.source
        if expected is None:
            assert isinstance(reading, Unusable) and "its load was not steady" in reading.reason
            continue
        assert isinstance(reading, MeasuredPoint)
        model, gpu, at_once, prompt, answer, tpot_ms, ttft_ms = expected
        assert (reading.model, reading.gpu, reading.input_tokens) == (model, gpu, prompt)
        assert reading.output_tokens == answer
        # To the digits with which the figures stand above.
        assert reading.concurrent_requests == pytest.approx(at_once, rel=1e-4)
        assert 1000 * reading.tpot_seconds == pytest.approx(tpot_ms, rel=1e-3)
        assert 1000 * (reading.ttft_seconds or 0) == pytest.approx(ttft_ms, rel=1e-3)


def test_each_file_is_told_by_its_keys_alone() -> None:
    tools = {"vllm": "vllm bench serve", "sglang": "SGLang's bench_serving", "guidellm": "GuideLLM", "aiperf": "AIPerf"}
    for file in FILES:
        document = json.loads(file.read_text().splitlines()[0])
        assert [tool.name for tool in TOOLS if tool.wrote(document)] == [tools[file.name.split("-")[0]]]


def test_what_stands_behind_the_file_wins() -> None:
    [point] = read_measured(
        [f"{RESULTS / 'vllm-minimax-m2.5.json'},gpu=mi355x,tp=8,engine=sglang,weight-dtype=fp8"], CATALOG
    )
    assert isinstance(point, MeasuredPoint)
    assert (point.gpu, point.tensor_parallel_size, point.engine, point.weight_dtype) == ("mi355x", 8, "sglang", "fp8")


def test_metadata_of_a_result_says_what_served(tmp_path: Path) -> None:
    document = json.loads((RESULTS / "vllm-minimax-m2.5.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**document, "gpu": "h100", "tp": "4", "more": [1]}))
    [point] = read_measured([tmp_path / "result.json"], CATALOG)
    assert isinstance(point, MeasuredPoint)
    assert (point.gpu, point.tensor_parallel_size, point.data_parallel_size) == ("h100", 4, None)


def _with(document: Any, path: tuple[str | int, ...], value: object) -> Any:
    """A document with another value at a path."""
    if not path:
        return value
    copied = list(document) if isinstance(document, list) else dict(document)
    copied[path[0]] = _with(copied[path[0]] if len(path) > 1 else None, path[1:], value)  # type: ignore[index]
    return copied


# By file: the path of a key, values that nobody measures, and what the message says is allowed.
WRONG = [
    ("vllm-minimax-m2.5.json", ("completed",), (-1, 0, 1e13, "80", True, None, [80]), "completed is "),
    ("vllm-minimax-m2.5.json", ("max_concurrency",), ("64", -1, True, [64], 1e300), "max_concurrency is "),
    ("vllm-minimax-m2.5.json", ("tp",), ("two", 1.5, 0, -1, "1e400", "١٢", True), "It must be a whole number above 0"),
    ("sglang-llama-3.3-70b-h200.jsonl", ("server_info",), ("x", 3, [1]), "server_info is "),
    ("sglang-llama-3.3-70b-h200.jsonl", ("median_ttft_ms",), (None, 0), "has neither mean_ttft_ms nor median_ttft_ms"),
    (
        "guidellm-qwen3-30b-a3b.json",
        ("benchmarks", 0, "metrics", "request_concurrency", "successful", "mean"),
        (-1, "x", None, 0),
        "metrics.request_concurrency.successful.mean is ",
    ),
    ("guidellm-qwen3-30b-a3b.json", ("benchmarks", 0, "config"), (7, None, []), ""),
    ("aiperf-qwen3.6-35b-a3b-rtx-5090.json", ("inter_token_latency", "unit"), ("MB", ""), "is no unit of time, one of"),
    ("aiperf-qwen3.6-35b-a3b-rtx-5090.json", ("input_config", "phases"), ("x", {"a": 1}, [3]), "phases"),
    ("aiperf-qwen3.6-35b-a3b-rtx-5090.json", ("was_cancelled",), ("yes", 1), "was_cancelled is "),
]


@pytest.mark.parametrize(("file", "path", "values", "words"), WRONG, ids=[f"{row[1][-1]}" for row in WRONG])
def test_a_value_that_nobody_measures_is_refused_by_its_key(
    file: str, path: tuple[str | int, ...], values: tuple[object, ...], words: str, tmp_path: Path
) -> None:
    document = json.loads((RESULTS / file).read_text().splitlines()[0])
    for value in values:
        (tmp_path / "result.json").write_text(json.dumps(_with(document, path, value)))
        if not words:  # it says no more than is read
            assert read_measured([tmp_path / "result.json"], CATALOG)
            continue
        with pytest.raises(ScenarioError) as error:
            read_measured([tmp_path / "result.json"], CATALOG)
        [problem] = error.value.problems
        assert "result.json (" in problem and words in problem and "\n" not in problem


def test_a_rate_without_limit_and_a_time_without_tokens_are_not_stated(tmp_path: Path) -> None:
    """bench_serving writes Infinity for a rate without limit, and NaN for a time that it has nothing to measure of."""
    document = json.loads((RESULTS / "sglang-llama-3.3-70b-h200.jsonl").read_text().splitlines()[0])
    document |= {"request_rate": float("inf"), "max_concurrency": 8, "mean_tpot_ms": float("nan")}
    (tmp_path / "result.json").write_text(json.dumps(document))
    [point] = read_measured([tmp_path / "result.json"], CATALOG)
    assert isinstance(point, MeasuredPoint) and point.concurrent_requests == 8
    tokens = document["total_output_tokens"] / document["completed"]
    seconds = (document["mean_e2e_latency_ms"] - document["median_ttft_ms"]) / 1000
    assert point.tpot_seconds == pytest.approx(seconds / (tokens - 1), rel=1e-12)


def test_a_stated_point_has_a_schema_of_every_field() -> None:
    assert set(StatedMeasurement.model_fields) == set(KEYS)


def test_a_point_written_out_reads_as_the_same() -> None:
    for file in FILES:
        points = [point for point in read_measured([file], CATALOG) if isinstance(point, MeasuredPoint)]
        again = read_measured(written_out(points), CATALOG)
        # Its times are written to 12 digits; its source may hold no comma.
        for point, other in zip(points, again, strict=True):
            assert isinstance(other, MeasuredPoint)
            assert (point.model, point.input_tokens, point.source) == (other.model, other.input_tokens, other.source)
            assert point.tpot_seconds == pytest.approx(other.tpot_seconds, rel=1e-11)
    assert measured_beside(RESULTS, POINT) == POINT


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_cut_or_broken_file_is_refused_in_a_line(file: Path, tmp_path: Path) -> None:
    """Cut anywhere, or with a value replaced by another kind, a file is read or refused by name, and nothing else."""
    text, draw = file.read_text(), random.Random(file.name)
    broken = [text[: draw.randrange(len(text))] for _ in range(40)]
    document = json.loads(text.splitlines()[0])
    for value in (None, "x", [], {}, True, -1, 1e300, float("nan"), [[[]]]):
        for key in document:
            broken.append(json.dumps({**document, key: value}))
    target = tmp_path / "result.json"
    for content in broken:
        target.write_text(content)
        try:
            readings = read_measured([target], CATALOG)
        except ScenarioError as error:
            assert all("result.json" in problem and "\n" not in problem for problem in error.problems)
        else:
            assert readings and all("result.json" in reading.source for reading in readings)


def test_what_is_no_benchmark_is_refused(tmp_path: Path) -> None:
    for content, words in (
        ("{}", "its keys are of no benchmark that is read"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1', "is not valid JSON"),
        ("models: [8b]\n", "is not valid JSON"),
        ("", "is not valid JSON"),
    ):
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(ScenarioError, match=words):
            read_measured([tmp_path / "x.json"], CATALOG)
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="is not UTF-8 text"):
        read_measured([tmp_path / "x.json"], CATALOG)
    with pytest.raises(ScenarioError, match="is a folder"):
        read_measured([tmp_path], CATALOG)


REFUSED = {
    "unknown key": (POINT.replace("tpot_ms", "tpot"), "unknown key 'tpot'. Did you mean tpot_ms?"),
    "missing": (POINT.split(",tpot")[0], "measured: tpot_ms is missing."),
    "missing two": ("output_tokens=9,tpot_ms=8", "concurrent_requests, input_tokens are missing"),
    "twice": (POINT + ",tpot_ms=3", "tpot_ms is given twice"),
    "zero": (POINT.replace("22.4", "0"), "tpot_ms is '0'. It must be a number above 0."),
    "infinite": (POINT.replace("22.4", "inf"), "tpot_ms is 'inf'"),
    "Arabic digits": (POINT.replace("=64", "=٦٤"), "concurrent_requests is '٦٤'. It must be a number above 0."),
    "a flag of 2": ("kv_pool_gib=30,hybrid_kv_manager=2", "hybrid_kv_manager is '2'. It must be 0 or 1."),
    "half a token": (POINT.replace("1024", "10.5"), "output_tokens is '10.5'. It must be a whole number above 0."),
    "one token": (POINT.replace("output_tokens=1024", "output_tokens=1"), "from 2 on"),
    "no pair": (POINT + ",h100", "measured has 'h100'. Write key=value"),
    "no file": ("nowhere.json", "nowhere.json: cannot be read"),
    "blank": ("", "measured is blank"),
    "a number": (22.4, "measured is 22.4"),
    "another unit": (POINT.replace("22.4", "0.0224"), "Check its unit, and what served."),
    "too long": (POINT.replace("1k", "1000k"), "over the 163,840"),
    "unknown GPU": (POINT + ",gpu=h1000", "'h1000' is not in the catalogs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_sentence(case: str) -> None:
    measured, expected = REFUSED[case]
    with pytest.raises(ScenarioError) as error:
        sheetgen.size(**R1, measured=[measured])
    assert len(error.value.problems) == 1 and expected in str(error.value)


def test_what_nobody_says_is_named() -> None:
    result = str(RESULTS / "vllm-minimax-m2.5.json")
    with pytest.raises(ScenarioError, match=r"its gpu and tensor parallel size\."):
        ask(Catalog(), {"models": "minimax-m2.5", "as_of": "2026-11-20", "measured": [result]})
    with pytest.raises(ScenarioError, match="speed_factor is given"):
        sheetgen.size(**R1, speed_factor=1.1, measured=POINT)


# One deployment -------------------------------------------------------------------------------------------------------


def test_the_point_itself_is_met() -> None:
    plain, answer = sheetgen.size(**R1, **THERE), sheetgen.size(**R1, **THERE, measured=f"{POINT},ttft_ms=310")
    # Its factors are rounded to 12 digits.
    assert answer["tpot_seconds"] == pytest.approx(0.0224, rel=1e-11)
    assert answer["ttft_seconds"] == pytest.approx(0.31, rel=1e-11)
    assert (plain["speed_scope"], answer["speed_scope"]) == ("fitted", "anchored")
    assert answer["kv_bytes"] == plain["kv_bytes"] and answer["verdict"] == plain["verdict"]
    only = sheetgen.size(**R1, **THERE, measured=POINT)
    assert only["ttft_seconds"] == plain["ttft_seconds"]


def test_other_loads_change_by_the_same_factor() -> None:
    for load in ({"concurrent_requests": 8}, {"concurrent_requests": 900, "context_tokens": "16k"}):
        plain, answer = sheetgen.size(**R1, **load), sheetgen.size(**R1, **load, measured=POINT)
        [used] = answer["measured"]["used"]
        # Requests that wait for a turn would bring their own: none does here.
        assert answer["tpot_seconds"] == pytest.approx(used["measured_tpot_factor"] * plain["tpot_seconds"], rel=1e-11)


@pytest.mark.parametrize("factors", [(1.3, 1.0), (0.8, 1.35), (1.1, 0.75)])
def test_two_points_are_both_met(factors: tuple[float, float]) -> None:
    """Runs of a deployment whose parts are so much slower than predicted give these two factors, and their times."""
    whole, request = factors
    loads = [{**THERE, "concurrent_requests": n} for n in (8, 256)]
    plain = [sheetgen.size(**R1, **load)["tpot_seconds"] for load in loads]
    none = [_without_requests(load) for load in loads]
    measured = [whole * (base + request * (all_of_it - base)) for base, all_of_it in zip(none, plain, strict=True)]
    points = [
        POINT.replace("=64", f"={load['concurrent_requests']}").replace("22.4", f"{1000 * seconds!r}")
        for load, seconds in zip(loads, measured, strict=True)
    ]
    for load, seconds in zip(loads, measured, strict=True):
        answer = sheetgen.size(**R1, **load, measured=points)
        used = answer["measured"]["used"][0]
        # 12 digits of each factor; the least squares lose some more.
        assert answer["tpot_seconds"] == pytest.approx(seconds, rel=1e-8)
        assert used["measured_tpot_factor"] == pytest.approx(whole, rel=1e-6)
        assert used["measured_request_factor"] == pytest.approx(request, rel=1e-6)


def _without_requests(load: Options) -> float:
    """The time per token if requests added nothing to a step, by hand from two predictions: it is linear in what they
    add, and a request factor of 2 adds it once more."""
    from sheetgen.api import sized_point
    from sheetgen.program.row_program import ROW, evaluate_deployments

    grid = sized_point({**R1, **load}, Catalog()).points.grid
    times = []
    for factor in (1.0, 2.0):
        again = grid.again({"measured_request_factor": factor})
        evaluate_deployments(again)
        times.append(float(again.spread("tpot_seconds", ROW)[0]))
    return 2 * times[0] - times[1]


def test_what_requests_add_stays_within_bounds() -> None:
    """Runs that differ more than the bounds let the factors tell are met as nearly as these allow."""
    points = [POINT.replace("=64", f"={n}").replace("22.4", f"{ms}") for n, ms in ((8, 10), (256, 200))]
    for measured in (points, [points[0].replace("=8,", "=256,"), points[1].replace("=256,", "=8,")]):
        used = sheetgen.size(**R1, measured=measured)["measured"]["used"][0]
        assert used["measured_request_factor"] in REQUEST_FACTORS


def test_a_point_that_waits_gives_its_tpot_alone() -> None:
    load = {**THERE, "concurrent_requests": 5000}
    answer = sheetgen.size(**R1, **load, measured=POINT.replace("=64", "=5000") + ",ttft_ms=9000")
    [used] = answer["measured"]["used"]
    assert answer["tpot_seconds"] == pytest.approx(0.0224, rel=1e-11)
    assert answer["queue"] and used["measured_ttft_factor"] == 0


def test_other_deployments_keep_their_prediction() -> None:
    for other in ({"gpu": "b200"}, {"tensor_parallel_size": 4}, {"model": "deepseek-v2"}, {"engine": "sglang"}):
        asked = {**R1, **other}
        plain = sheetgen.size(**asked)
        answer = sheetgen.size(**asked, measured=f"{POINT},model=deepseek-r1,gpu=h200,tp=8,engine=vllm")
        unused = answer.pop("measured")["unused"]
        assert answer == plain and next(iter(other.values())) and len(unused) == 1


# A sheet --------------------------------------------------------------------------------------------------------------

SHEET = {
    "models": "8b,70b",
    "weight_dtype": "published",
    "workloads": "chat,rag",
    "tiers": "8,64",
    "as_of": "2026-11-20",
    "gpus": "h100,l40s",
}


def solved(**options: object) -> Solution:
    return solve(ask(Catalog(), {**SHEET, **options}))


def point_of(plain: Solution, row: int, slower: float = 1.0) -> str:
    """A measured point of the hardware chosen for a load, at its fullest replica, so much slower than predicted."""
    choice, load = plain.choices[row], plain.question.loads[row]
    assert choice.offer is not None
    layout, workload = plain.layout(choice.offer), plain.question.workload_of(row)
    return (
        f"model={plain.question.model_of(row).model.id},gpu={plain.candidate(choice.offer).gpu.id},"
        f"tp={layout.tensor_parallel_size},dp={layout.data_parallel_size},"
        f"concurrent_requests={choice.requests_per_replica},"
        f"input_tokens={load.input_tokens},output_tokens={workload.output_tokens},"
        f"tpot_ms={1000 * slower * choice.tpot_seconds!r},ttft_ms={1000 * slower * choice.ttft_seconds!r}"
    )


def test_a_point_equal_to_the_prediction_changes_no_choice() -> None:
    """At an even chance; above it the band of what was measured decides, too."""
    plain = solved(confidence=0.5)
    for row in range(len(plain.choices)):
        solution = solved(confidence=0.5, measured=[point_of(plain, row)])
        for before, after in zip(plain.choices, solution.choices, strict=True):
            assert (before.offer, before.n_instances, before.monthly_usd) == (
                after.offer,
                after.n_instances,
                after.monthly_usd,
            )
            assert after.tpot_seconds == pytest.approx(before.tpot_seconds, rel=1e-9)
        # The band is the narrower one of measured deployments, of that load's.
        assert solution.choices[row].bands[0] != plain.choices[row].bands[0]


def test_a_point_twice_as_slow_doubles_times_there_only() -> None:
    plain, row = solved(ttft_ms="off", tpot_ms="off"), 0
    choice = plain.choices[row]
    assert choice.offer is not None
    solution = solved(ttft_ms="off", tpot_ms="off", measured=[point_of(plain, row, 2.0)])
    there = plain.offers[choice.offer].profile
    model = plain.question.loads[row].model
    for load, before, after in zip(plain.question.loads, plain.choices, solution.choices, strict=True):
        assert before.offer is not None and (before.offer, before.monthly_usd) == (after.offer, after.monthly_usd)
        is_there = (load.model, plain.offers[before.offer].profile) == (model, there)
        factor = 2 if is_there else 1
        assert after.tpot_seconds == pytest.approx(factor * before.tpot_seconds, rel=1e-9)
        assert after.ttft_seconds == pytest.approx(factor * before.ttft_seconds, rel=1e-9)


def test_the_answer_says_which_points_it_used_and_why_not_others() -> None:
    result = f"{RESULTS / 'vllm-minimax-m2.5.json'},gpu=h100,tp=8"
    point = f"{POINT},model=70b,gpu=h100,tp=4"
    fp8 = f"{point},weight_dtype=fp8".replace("22.4", "18")
    solution = solved(measured=[point, fp8, result, str(RESULTS / "vllm-llama-3-8b-h100-pcie-16-a-second.json")])
    measurements = solution.question.measurements
    assert [deployment.served.weight_dtype for deployment in measurements.deployments] == ["bf16", "fp8"]
    reasons = " / ".join(measurement.reason for measurement in measurements.unused)
    assert "its load was not steady" in reasons and "fp8, not bf16" in reasons
    assert "minimax-m2.5" in reasons
    # What a sheet carries needs no file.
    again = ask(Catalog(), {**SHEET, "measured": solution.question.options["measured"]})
    assert [deployment.served for deployment in again.measurements.deployments] == [
        deployment.served for deployment in measurements.deployments
    ]


def test_fp8_of_a_sheet_takes_the_points_of_fp8() -> None:
    point = f"{POINT},model=70b,gpu=h100,tp=2,weight_dtype=fp8"
    solution, plain = (solved(weight_dtype="fp8", measured=measured) for measured in ([point], None))
    [measured] = solution.question.measurements.deployments
    factors = solution.grid.read("measured_tpot_factor", ("model", "profile"))
    [[model, profile]] = [*zip(*factors.nonzero(), strict=True)]
    layout = solution.profiles[profile].layout
    assert solution.question.models[model].model.id == "llama-3.1-70b" and layout.tensor_parallel_size == 2
    assert factors[model, profile] == measured.tpot_factor and plain.question.measurements.deployments == ()


# What a measurement is worth -----------------------------------------------------------------------------------------


def test_a_measurement_is_a_day_on_one_replica() -> None:
    answer = sheetgen.recommend(model="405b", context="16k", concurrent_requests=64, as_of="2026-11-20")
    measure, n_gpus = answer["measure"], answer["tensor_parallel_size"] * answer["pipeline_parallel_size"]
    count = next(
        candidate["gpu_count"] for candidate in answer["candidates"] if candidate["instance"] == answer["instance"]
    )
    hourly_usd = answer["hourly_usd"] / answer["n_instances"]
    assert measure["instance"] == answer["instance"] and measure["hours"] == 24
    assert measure["usd"] == pytest.approx(24 * hourly_usd * -(-n_gpus // count), rel=1e-12)


@pytest.mark.parametrize("purchase", ["reserved-3yr", "spot", "capacity-block"])
def test_a_day_is_priced_on_demand_where_it_is_sold_so(purchase: str) -> None:
    """Nobody sells a day of a commitment: it is 24 hours of the same GPUs on demand, or spot, which is said."""
    load: Options = {"model": "70b", "context": "16k", "concurrent_requests": 32, "as_of": "2026-11-20"}
    record = recommended({**load, "purchase": purchase}, CATALOG)
    answer, text = recommend_json(record), " ".join(recommend_text(record, True, False).split())
    run = answer["measure"]["decider"] or answer["measure"]
    rented = record.question.instances[run["instance"]]
    by_the_day = rented.class_price("on-demand") or rented.class_price("spot")
    assert by_the_day and run["purchase"] == by_the_day.purchase
    assert run["usd"] == pytest.approx(24 * run["n_instances"] * by_the_day.usd_per_hour, rel=1e-12)
    chosen = record.question.instances[answer["instance"]]
    assert run is not answer["measure"] or (rented.gpu, rented.gpu_count) == (chosen.gpu, chosen.gpu_count)
    words = f"for a day, ${run['usd']:,.0f}{'' if run['purchase'] == 'on-demand' else ' (spot)'}:"
    assert words in text or "\nmeasure" not in recommend_text(record)
    assert answer["purchase"] == purchase


LOADS: tuple[Options, ...] = (
    {"model": "70b", "context": "16k", "users": 200},  # cheaper on other hardware, if that is fast enough
    {"model": "8b", "context": "8k", "concurrent_requests": 62, "gpus": "a100", "tpot_ms": "off", "ttft_ms": "off"},
    {"model": "8b", "context": "16k", "concurrent_requests": 30, "gpus": "h100", "tpot_ms": "off", "ttft_ms": "off"},
    {"model": "405b", "context": "16k", "concurrent_requests": 16},  # cheaper, within the near tie
    {"model": "70b", "context": "16k", "users": 200, "confidence": 0.5},
    {"model": "qwen3-32b", "context": "32k", "concurrent_requests": 32, "tpot_ms": "off", "ttft_ms": "off"},
    {"model": "405b", "context": "128k", "concurrent_requests": 32},
    {
        "model": "70b",
        "context": "32k",
        "concurrent_requests": 32,
        "tpot_ms": "off",
    },  # where prompts are read soon enough
)


@pytest.mark.some(4)
@pytest.mark.parametrize("load", LOADS, ids=lambda load: "-".join(map(str, load.values())))
def test_the_measurement_that_decides_is_of_what_would_be_rented(load: Options) -> None:
    """The run, its hardware, and the months that hang on it; by the chance that is least, a run or a start-up log."""
    record = recommended({"as_of": "2026-11-20", **load}, CATALOG)
    [cell] = sheet_record(record).cells
    answer, text = recommend_json(record), " ".join(recommend_text(record, details=True).split())
    even, sure = answer["by_confidence"][0], answer["by_confidence"][-1]
    decider, month = answer["measure"]["decider"], answer["monthly_usd"]
    least = min(answer["chance_of"], key=answer["chance_of"].get)
    assert (decider is None) == (1.05 * even["monthly_usd"] >= month)
    run, limit = (answer["measure"], least) if decider is None else (decider, decider["limit"])
    holds = "its start-up log shows that the load fits" if limit == "memory" else "it meets the targets"
    if decider is not None:
        assert (run["instance"], run["monthly_usd"]) == (even["instance"], even["monthly_usd"])
        level = cell.at_level(0.5)
        assert level is not None
        fails = f"; if not up to ${sure['monthly_usd']:,.0f}" if sure and sure["monthly_usd"] > month else ""
        hangs = f"if {holds}, now {wording.sure(level.chance)}, ${even['monthly_usd']:,.0f} a month{fails}"
    elif sure["monthly_usd"] > month:
        hangs = f"unless {holds}, ${sure['monthly_usd']:,.0f} a month"
    else:
        hangs = "no money hangs on it"
    prices = {candidate.instance: candidate.class_price("on-demand") for candidate in record.question.candidates}
    on_demand = prices[run["instance"]]
    assert on_demand and run["usd"] == pytest.approx(24 * run["n_instances"] * on_demand.usd_per_hour, rel=1e-12)
    texts = [line.text for line in answer_lines(record.question, cell, Shown()) if line.label == "measure"]
    if texts:
        advice = "yes" if answer["measure"]["is_worth_it"] else "no"
        assert texts == [f"{advice}: {run['n_instances']}x {run['instance']} for a day, ${run['usd']:,.0f}: {hangs}."]
        assert f" measure {texts[0]}" in text
    else:  # it stands beside the certainty
        assert f" ${run['usd']:,.0f}" in text and decider is not None
        assert f"costs ${even['monthly_usd']:,.0f} a month, on " in text
    doubt = {"memory": "memory", "tpot": "time per token", "ttft": "first token"}[least]
    full = r" with [\d,]+ at once( a (machine|replica))?" if "users" in load and least != "memory" else ""
    assert re.search(rf"Least sure: {doubt}{full}\.", text)
    assert ("large and fast enough" in text) == (least == "memory")


def test_loads_of_that_test_have_every_kind() -> None:
    answers = [sheetgen.recommend(as_of="2026-11-20", **load) for load in LOADS]
    deciders = [answer["measure"]["decider"] for answer in answers]
    assert {decider["limit"] for decider in deciders if decider} == {"memory", "tpot", "ttft"} and None in deciders
    assert any(
        decider and decider["instance"] != answer["instance"] for decider, answer in zip(deciders, answers, strict=True)
    )
    assert any(answer["chance"] < 0.9 and answer["chance_of"]["memory"] == answer["chance"] for answer in answers)


def test_hardware_that_was_measured_is_said_to_be() -> None:
    """H100 NVL is in none of the runs of the fit; a run of one's own on it is what others lack."""
    asked = {"model": "70b", "users": 200, "as_of": "2026-11-20", "gpus": "h100-nvl"}
    plain = sheetgen.recommend(**asked)
    load = f"concurrent_requests=8,input_tokens=3072,output_tokens=1024,tpot_ms=20,tp={plain['tensor_parallel_size']}"
    mine = sheetgen.recommend(**asked, measured=[f"{load},engine=vllm,weight_dtype={plain['weight_dtype']}"])
    assert (plain["measured"], mine["measured"]) == (False, True)
    assert mine["tensor_parallel_size"] == plain["tensor_parallel_size"]


@pytest.mark.parametrize(("tp", "is_said"), [(None, True), (2, False), (4, False)])
def test_the_request_says_never_measured_of_no_hardware_that_a_run_is_of(tp: int | None, is_said: bool) -> None:
    """A run of one's own on the GPU is enough, of whatever layout."""
    run = f"concurrent_requests=8,input_tokens=3072,output_tokens=1024,tpot_ms=20,tp={tp},gpu=h100-nvl,engine=vllm"
    sheet = {"models": "70b", "weight_dtype": "fp8", "gpus": "h100-nvl", "as_of": "2026-11-20"}
    page = page_for(solve(ask(CATALOG, {**sheet, **({"measured": [f"{run},weight_dtype=fp8"]} if tp else {})})))
    assert any(never_measured() in str(risk) for risk in page.request.risks) == is_said
    assert [str(text) for text in page.as_measured] == (
        [f"Times of Llama 3.1 70B (fp8) on {tp}× H100 NVL as measured: the point given."] if tp else []
    )


def test_what_no_answer_rents_is_said_so_and_weights_that_were_not_requested_with_their_option() -> None:
    """Measured hardware that the answer rents, and such that it does not; weights as published beside FP8."""
    load = "gpu=h100,engine=vllm,concurrent_requests=32,input_tokens=7k,output_tokens=1k,tpot_ms=20,tp="
    asked = {"model": "70b", "context": "8k", "concurrent_requests": 64, "as_of": "2026-11-20", "gpus": "h100"}
    size = sheetgen.recommend(**asked)["tensor_parallel_size"]
    for tp in (2, 4, 8):
        answer = recommended({**asked, "measured": [f"{load}{tp},weight_dtype=fp8"]}, CATALOG)
        [cell] = sheet_record(answer).cells
        [measured_line] = [
            line for line in measured_lines(answer.question.measurements, [cell]) if "measured there" in line
        ]
        assert ("which no answer here rents" in measured_line) == (cell.answer.tensor_parallel_size != tp)
    bf16 = recommended({**asked, "measured": [f"{load}{size},weight_dtype=bf16"]}, CATALOG)
    measured_line = list(measured_lines(bf16.question.measurements))[-1]
    assert "; --weight-dtype bf16 " in measured_line


@pytest.mark.parametrize(("code", "rate", "told"), [("EUR", "1.08", "0.9259"), ("EUR", "0.92", "1.087")])
def test_a_rate_is_said_both_ways(code: str, rate: str, told: str) -> None:
    answer = recommended({"model": "8b", "as_of": "2026-11-20", "currency": code, "fx_rate": rate}, CATALOG)
    text = " ".join(recommend_text(answer, False, False).split())
    assert f"(1 USD = {rate} {code}; 1 {code} = {told} USD)" in text

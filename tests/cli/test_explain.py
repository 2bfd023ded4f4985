"""`explain`: the formula with the values put in gives the value that is shown, for every quantity."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from option_values import Options
from peaks import without_a_peak

from sheetgen.api import RESULTS, recommended, sized_point
from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import SpeedConstants
from sheetgen.explain import (
    CHOICE_QUANTITIES,
    QUANTITIES,
    READ_AGAIN,
    ChoiceDerivation,
    Derivation,
    Step,
    find,
    quantities,
    spaced,
)

ROOT = Path(__file__).parent.parent.parent

DEPLOYMENTS: dict[str, Options] = {
    "dense": {"model": "70b", "tensor_parallel_size": 4, "context_tokens": "16k", "concurrent_requests": 32},
    "windows": {"model": "gemma-3-27b", "tensor_parallel_size": 2, "context_tokens": 30_000, "max_model_len": "64k"},
    "mla": {"model": "deepseek-v3", "gpu": "h200", "tensor_parallel_size": 8, "kv_cache_dtype": "fp8"},
    "states": {"model": "qwen3.6-27b", "gpu": "b200", "pipeline_parallel_size": 3, "concurrent_requests": 7},
    "draft": {"model": "70b", "draft_model": "eagle3-llama-3.x-70b", "tensor_parallel_size": 8},
    "experts": {
        "model": "gpt-oss-120b",
        "data_parallel_size": 2,
        "engine_version": "0.22.0",
        "kv_allocation": "reserved",
    },
    "queue": {
        "model": "70b", "engine": "sglang", "tensor_parallel_size": 4, "context_tokens": "16k",
        "concurrent_requests": 200, "requests_per_second": 50,
    },
    "measured": {
        "model": "gpt-oss-120b", "gpu": "b200", "concurrent_requests": 64, "engine": "tensorrt-llm",
        "measured": "concurrent_requests=32,input_tokens=1024,output_tokens=1024,tpot_ms=7.5,ttft_ms=90",
    },
    "no room": {"model": "405b", "gpu": "l4", "engine": "nim", "data_parallel_size": 2, "weight_dtype": "fp8"},
    "other engine": {"model": "8b", "gpu": "mi300x", "engine": "llama.cpp", "concurrent_requests": 3},
}  # fmt: skip


def derivation(inputs: Options) -> Derivation:
    catalog = Catalog()
    return Derivation(sized_point(inputs, catalog), inputs)


def worked_out(text: str) -> Any:
    """An Excel formula of numbers, by Python: its own reading, not sheetgen's. Text where its result is text."""
    code = re.sub(r"(?<![<>])=", "==", text).replace("<>", "!=")
    vocabulary = {
        "IF": lambda condition, a, b: a if condition else b,
        "MIN": min,
        "MAX": max,
        "INT": numpy.floor,
        "ROUND": lambda x, digits: numpy.floor(x + 0.5),
        "ROUNDUP": lambda x, digits: numpy.ceil(numpy.round(x, 6)),
        "NUMBER": numpy.float64,
        "AND": lambda *all_of: all(all_of),
        "OR": lambda *any_of: any(any_of),
        "MOD": lambda x, n: x % n,
        "POWER": lambda x, n: x**n,
        "IFERROR": lambda x, _: x,
        "ISNUMBER": lambda x: x == x,
        "NORMSDIST": lambda z: math.erfc(-z / math.sqrt(2)) / 2,
        "NONE": numpy.float64("nan"),
        "TRUE": True,
        "FALSE": False,
    }
    code = re.sub(r"(?<![\w.])(\d+(\.\d+)?)", r"NUMBER(\1)", code.replace('"-"', "NONE"))
    with numpy.errstate(all="ignore"):  # IF(0 = 0, 0, x / 0): Excel does not look at the last part, Python does
        value = eval(code, {"__builtins__": {}}, vocabulary)
        return value if isinstance(value, str) else float(value)


def steps_of(step: Step, seen: set[int] | None = None) -> Iterator[Step]:
    """Every step of a derivation, each once."""
    seen = set() if seen is None else seen
    if id(step) not in seen:
        seen.add(id(step))
        yield step
        for step_ in step.inputs:
            yield from steps_of(step_, seen)


@pytest.mark.some(3)
@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_values_put_in_give_the_value(deployment: str) -> None:
    every = derivation(DEPLOYMENTS[deployment])
    seen = 0
    for name in QUANTITIES:
        for step in steps_of(every.step(name)):
            if step.formula:
                agrees = step.value if isinstance(step.value, str) else pytest.approx(step.value, rel=1e-12)
                assert worked_out(step.with_values) == agrees, (name, step)
                seen += 1
    assert seen > 5 * len(QUANTITIES)


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_every_result_can_be_explained_and_agrees_with_size(deployment: str) -> None:
    sized = sized_point(DEPLOYMENTS[deployment], Catalog())
    every = derivation(DEPLOYMENTS[deployment])
    left = {"verdict", "error", "fits", "short_by_bytes", "band_scope"}
    for name in (*(n for n in RESULTS if n not in left), *READ_AGAIN):
        step = every.step(find(name))
        result = sized.results[name][0] if name in sized.results else sized.known[name][0]
        if isinstance(result, str) or result is None:
            assert step.value == result or (name == "bound_by" and every.grows), name
        elif not math.isnan(result):
            assert step.value == pytest.approx(result, rel=1e-9), name
        assert all(
            s.origin in ("given", "default", "catalog", "assumption", "computed", "search") for s in steps_of(step)
        )


CHOICES: dict[str, Options] = {
    "one instance": {"model": "8b"},
    "replicas": {"model": "70b", "context_tokens": "16k", "concurrent_requests": 200, "survive": "machine"},
    "stages": {
        "model": "deepseek-v3",
        "concurrent_requests": 20,
        "gpus": "h100",
        "providers": "aws",
        "weight_dtype": "bf16",
    },
    "windows": {"model": "gpt-oss-120b", "context_tokens": "100k", "users": 300, "active_fraction": 0.5},
    "draft": {"model": "70b", "context_tokens": "16k", "concurrent_requests": 20, "draft_model": "llama-3.2-1b"},
}


@pytest.mark.some(3)
@pytest.mark.parametrize("choice", CHOICES)
def test_a_recommendations_values_put_in_give_the_value(choice: str) -> None:
    solved = recommended(CHOICES[choice], Catalog())
    every = ChoiceDerivation(solved, CHOICES[choice])
    chosen = solved.choices[0]
    assert (chosen.pipeline_parallel_size > 1) is (choice == "stages")
    for name in CHOICE_QUANTITIES:
        for step in steps_of(every.step(name)):
            assert step.origin in ("given", "default", "catalog", "assumption", "computed")
            if step.formula:
                expected = math.nan if step.value is None else step.value
                approximately = pytest.approx(expected, rel=1e-12, nan_ok=True)
                assert worked_out(step.with_values) == approximately, (name, step.name)
            elif step.origin == "computed":
                named = (
                    *("tensor_parallel_size", "concurrent_requests", "kv_reserved", "is_committed", "batch_limit"),
                    *("data_parallel_size", "held_inside", "stage_overhead_bytes"),
                )
                assert step.name in named, step.name
            if step.name in ("gpu_count", "network_gbps"):
                assert step.about.startswith(f"catalogs/instances/{every.candidate.provider}.yaml, "), step.about
    assert every.step("monthly_usd").value == pytest.approx(chosen.monthly_usd, rel=1e-12)
    for name in ("n_instances", "n_replicas", "served_at_target", "memory_holds"):
        assert every.step(name).value == getattr(chosen, name) and every.step(name).formula, name
    assert every.step("headroom_fraction").value == pytest.approx(chosen.headroom_fraction)


def test_inputs_that_would_be_ignored_are_refused(run) -> None:  # type: ignore[no-untyped-def]
    for arguments in (
        ("monthly_usd", "--model", "8b", "--tensor-parallel-size", "2"),
        ("weights_bytes", "--model", "8b", "--providers", "aws"),
        ("monthly_usd", "--model", "405b", "--instances", "aws/g5.xlarge"),
    ):
        result = run("explain", *arguments)
        assert result.exit_code == 1 and len(result.stderr.splitlines()) == 1 and result.stdout == ""


def test_a_tampered_formula_would_be_noticed() -> None:
    step = derivation(DEPLOYMENTS["dense"]).step("kv_bytes_per_token")
    assert worked_out(step.with_values) == step.value == 327_680
    assert worked_out(step.with_values.replace("2 * 0", "2 * 1")) != step.value


def test_text_of_the_70b(run) -> None:  # type: ignore[no-untyped-def]
    text = run("explain", "kv_bytes_per_token", "--model", "70b").output
    assert "= 80 * 8 * (256 * 2 + 2 * 0) + " in text
    assert "= n_full_layers * full_kv_heads * (" in text
    assert "= 327,680 bytes" in text
    assert re.search(r"n_full_layers = 80  \[catalog\] catalogs/models/llama-3\.1-70b\.yaml:\d+", text)
    assert "the checkpoint's own" in text and "arXiv:2305.13245" in text
    assert "catalogs/models/llama-3.1-70b.yaml: github:" in text


def test_where_inputs_are_from(run) -> None:  # type: ignore[no-untyped-def]
    arguments = ("explain", "kv_pool_bytes_per_gpu", "--model", "8b", "--gpu-memory-utilization", "0.85", "--json")
    top = json.loads(run(*arguments).output)
    assert top["name"] == "kv_pool_bytes_per_gpu" and top["unit"] == "bytes" and top["value"] > 0

    def find_step(step: dict[str, Any], name: str) -> dict[str, Any] | None:
        if step["name"] == name:
            return step
        return next((inner for input_ in step["inputs"] if (inner := find_step(input_, name))), None)

    expected = {
        "gpu_memory_utilization": ("given", "typed: 0.85"),
        "tensor_parallel_size": ("default", "the default of sheetgen"),
        "gpu_memory_bytes": ("catalog", "catalogs/gpus/nvidia-h100-sxm5-80gb.yaml:"),
        "sampler_bytes_per_logit": ("assumption", "catalogs/engines/vllm.yaml"),
        "max_num_seqs": ("default", "catalogs/engines/vllm.yaml, the engine's own"),
        "memory_budget_bytes": ("computed", "Memory of one GPU that the engine may take"),
    }
    for name, (origin, about) in expected.items():
        step = find_step(top, name)
        assert step is not None and step["origin"] == origin and step["about"].startswith(about), name


def step_called(step: Step, name: str) -> Step:
    return next(inner for inner in steps_of(step) if inner.name == name)


SPEED = {"model": "deepseek-r1", "gpu": "h200", "tensor_parallel_size": 8, "concurrent_requests": 64}


def line_at(place: str) -> str:
    """The line of the repository that `file:line` names."""
    file, line = place.split(",")[0].rsplit(":", 1)
    return (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_where_constants_of_speed_are_from() -> None:
    constants = SpeedConstants.model_fields
    for inputs, words in (
        (SPEED, "fitted on 413 runs of vllm on Hopper"),
        ({**SPEED, "engine": "nim"}, "runs of vllm on Hopper, which stand in for "),
        ({**SPEED, "engine": "llama.cpp"}, "default: no runs of llama.cpp on Hopper"),
        ({**SPEED, "gpu": "mi300x"}, "fitted on 40 runs of vllm on CDNA"),
        ({**SPEED, "gpu": "a100"}, "default: no runs of vLLM on Ampere GA100"),
    ):
        top = derivation(inputs).step("output_tokens_per_second")
        for name in constants:
            step = step_called(top, name)
            assert step.origin == "catalog" and step.source and words in step.about, (name, step.about)
            assert step.about.startswith("catalogs/speed.yaml:") and f"{name}: " in line_at(step.about)
            assert float(line_at(step.about).split(f"{name}: ")[1].rstrip("},")) == pytest.approx(step.value)


@pytest.mark.parametrize(
    ("gpu", "dtype", "field", "words"),
    [
        ("h200", "fp8", "fp8", "the dense fp8 peak"),
        ("h200", "bf16", "bf16", "the dense bf16 peak"),
        ("h200", "int4", "bf16", "the dense bf16 peak"),
        ("h200", "int8", "int8", "the dense int8 peak"),
        ("a100", "fp8", "bf16", "the dense bf16 peak"),
        ("b200", "nvfp4", "fp4", "the dense fp4 peak"),
        ("b200", "mxfp4", "fp8", "the dense fp8 peak"),
        ("t4", "bf16", "fp16", "the dense fp16 peak"),
        ("spark", "fp8", "fp4", "half of the dense fp4 peak"),
        ("spark", "bf16", "fp4", "a quarter of the dense fp4 peak"),
    ],
)
def test_which_peak_is_meant(gpu: str, dtype: str, field: str, words: str) -> None:
    every = derivation({"model": "8b", "gpu": gpu, "weight_dtype": dtype})
    step = step_called(every.step("tpot_seconds"), "peak_flops")
    peak = getattr(Catalog().gpu(gpu).peak_dense_flops, field)
    assert words in step.about and f"for {dtype} weights" in step.about and step.unit == "operations per second"
    assert step.value == peak // (4 if "quarter" in words else 2 if "half" in words else 1)
    assert "peak_dense_flops" in line_at(step.about)


def test_rates_and_bands_name_their_lines() -> None:
    every = derivation(SPEED)
    link = step_called(every.step("tpot_seconds"), "interconnect_bytes_per_second")
    assert "interconnect_bytes_per_second: 450000000000" in line_at(link.about) and link.unit == "bytes per second"
    low = every.step("tpot_seconds_low")
    assert low.formula == "tpot_seconds * tpot_band_low" and low.unit == "seconds"
    band = step_called(low, "tpot_band_low")
    assert "figure: tpot, scope: fitted, kind: any, gpu: nvidia-h200" in line_at(band.about)
    assert f"low: {band.value}," in line_at(band.about)
    other = derivation({**SPEED, "model": "70b", "gpu": "a100"}).step("ttft_seconds_high")
    assert "figure: ttft, scope: other, kind: dense" in line_at(step_called(other, "ttft_band_high").about)
    units = {"max_requests_per_second": "requests per second", "output_tokens_per_second": "tokens per second"}
    assert {name: every.step(name).unit for name in units} == units


def test_where_factors_are_from() -> None:
    top = derivation({**SPEED, "speed_factor": 1.2}).step("ttft_seconds")
    typed = derivation({**SPEED, "speed_factor": 1.2}).step("tpot_seconds")
    assert step_called(typed, "speed_factor").about == "typed: 1.2" and typed.value == pytest.approx(
        1.2 * derivation(SPEED).step("tpot_seconds").value
    )
    assert step_called(top, "ttft_factor").about == "the default of sheetgen"
    point = "concurrent_requests=64,input_tokens=1024,output_tokens=1024,tpot_ms=22.4"
    step = step_called(derivation({**SPEED, "measured": point}).step("tpot_seconds"), "measured_tpot_factor")
    assert step.origin == "given" and "1,024 + 1,024 tokens" in step.about
    measured, predicted = re.findall(r"([\d.]+) ms (?:measured|predicted)", step.about)
    assert step.value == pytest.approx(float(measured) / float(predicted), rel=1e-5)


def test_a_full_pool_is_another_reading() -> None:
    every = derivation(SPEED)
    most = every.step("max_requests_per_second")
    assert most.inputs[0].name == "full_house" and "full_house" in most.reading
    assert most.inputs[0].value > every.step("running_requests").value == 64
    assert step_called(most, "tpot_seconds").value > every.step("tpot_seconds").value
    assert step_called(most, "prefill_seconds").reading == ""


def test_speed_without_a_peak(tmp_path: Path) -> None:
    folder = without_a_peak(tmp_path)
    catalog, inputs = Catalog(folder), {"model": "8b", "gpu": "t4"}
    every = Derivation(sized_point(inputs, catalog), inputs)
    peak = step_called(every.step("tpot_seconds"), "peak_flops")
    bandwidth = step_called(every.step("tpot_seconds"), "memory_bandwidth_bytes_per_second")
    assert peak.origin == "assumption" and "no peak is published" in peak.about and bandwidth.origin == "catalog"
    assert peak.value == float(re.search(r"(\d+) operations a byte", peak.about)[1]) * bandwidth.value
    inputs = {"model": "8b", "gpu": "trainium1", "tensor_parallel_size": 2}
    link = step_called(derivation(inputs).step("tpot_seconds"), "interconnect_bytes_per_second")
    assert link.origin == "assumption" and "none is published" in link.about


def test_a_queue_without_end_is_said() -> None:
    every = derivation({**SPEED, "requests_per_second": 1000})
    assert every.step("grows").value == 1 and every.step("queue").value.startswith("the queue grows without bound")
    assert "grows without bound" in every.step("ttft_seconds").about
    assert "grows without bound" not in derivation(SPEED).step("ttft_seconds").about


@pytest.mark.some(6)
@pytest.mark.parametrize(
    "name",
    [
        "tpot_seconds",
        "ttft_seconds",
        "output_tokens_per_second",
        "bound_by",
        "prefill_seconds",
        "kv_read_seconds",
        "running_capacity",
        "speed_scope",
        "queue",
        "output_tokens_per_second_per_gpu",
        "ttft_seconds_high",
        "grows",
        "filled_kv_blocks_per_sequence",
    ],
)
def test_speed_in_words(name: str, run) -> None:  # type: ignore[no-untyped-def]
    arguments = (
        "--model",
        "deepseek-r1",
        "--gpu",
        "h200",
        "--tensor-parallel-size",
        "8",
        "--concurrent-requests",
        "64",
    )
    text = run("explain", name, *arguments).output
    answer = json.loads(run("explain", name, *arguments, "--json").output)
    assert f"({name})" in text and not re.search(r"\de-\d", text)
    assert answer["value"] is None or answer["unit"] in text
    if name.endswith("_seconds") and answer["value"] < 1:
        assert re.search(r"^  = 0\.\d+ seconds \([\d.]+ ms\)$", text, re.M)
    if name in ("bound_by", "speed_scope"):
        assert f"\n  = {answer['value']}\n" in text
    if name != "filled_kv_blocks_per_sequence":  # how memory came about is another question
        assert "checkpoint_bytes" not in text and len(text.splitlines()) < 200


@pytest.mark.parametrize("name", ["max_requests_per_second", "kv_pool_bytes_per_gpu"])
def test_json_tells_each_derivation_once(name: str, run) -> None:  # type: ignore[no-untyped-def]
    arguments = (
        "--model",
        "deepseek-r1",
        "--gpu",
        "h200",
        "--tensor-parallel-size",
        "8",
        "--concurrent-requests",
        "64",
        "--json",
    )
    text = run("explain", name, *arguments).output
    assert len(text) < 200_000
    whole: dict[tuple[str, str], int] = {}
    cut: set[tuple[str, str]] = set()

    def walk(step: dict[str, Any]) -> None:
        key = (step["name"], step["reading"])
        whole[key] = whole.get(key, 0) + bool(step["inputs"])
        if step["see"] == "above":
            cut.add(key)
        assert not (step["see"] and step["inputs"])
        for inner in step["inputs"]:
            walk(inner)

    walk(json.loads(text))
    assert cut and all(whole[key] == 1 for key in cut) and max(whole.values()) == 1


def test_json_of_a_value_that_is_not_known_is_null(run) -> None:  # type: ignore[no-untyped-def]
    """SGLang has no error bands: their ends are NaN, which is no JSON."""
    result = run("explain", "weights_bytes_per_gpu_high", "--model", "8b", "--engine", "sglang", "--json")
    assert json.loads(result.stdout)["value"] is None and "NaN" not in result.stdout


def test_the_list_of_quantities(run) -> None:  # type: ignore[no-untyped-def]
    listed = json.loads(run("explain", "--json").output)
    names = [row["name"] for row in listed]
    assert names == [n for n, _, _ in quantities()] and len(set(names)) == len(names) > 40
    assert all(row["summary"] for row in listed)
    text = run("explain").output
    assert all(name in text for name in names)


def test_spaces() -> None:
    assert spaced("IF(a<=b,-1,c-2)*(x<>y)") == "IF(a <= b, -1, c - 2) * (x <> y)"
    assert spaced('IF(a="x,y",1,2)') == 'IF(a = "x,y", 1, 2)'


def test_a_price_of_another_region_is_cited_from_its_file(run) -> None:  # type: ignore[no-untyped-def]
    asked = ("explain", "monthly_usd", "--model", "70b", "--users", "200")
    place = "catalogs/regions/azure.yaml, azure/Standard_NC80adis_H100_v5, in uksouth, on-demand, read 2026-06-18"
    assert f"= 17.45 [catalog] {place}" in " ".join(run(*asked, "--region", "uk").stdout.split())
    plain = " ".join(run(*asked).stdout.split())
    assert "= 13.96 [catalog] catalogs/instances/azure.yaml" in plain

"""`explain`: the formula with the values put in gives the value that is shown, for every quantity."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from sheetgen.api import RESULTS, recommended, sized_point
from sheetgen.catalog import Catalog
from sheetgen.explain import QUANTITIES, READ_AGAIN, Derivation, Step, find, quantities, spaced
from sheetgen.explain_choice import CHOICE_QUANTITIES, ChoiceDerivation

DEPLOYMENTS: dict[str, dict[str, Any]] = {
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
}


def derivation(inputs: dict[str, Any]) -> Derivation:
    catalog = Catalog()
    return Derivation(sized_point(inputs, catalog), inputs, catalog)


def worked_out(text: str) -> float:
    """An Excel formula of numbers, by Python: its own reading, not sheetgen's."""
    code = re.sub(r"(?<![<>])=", "==", text).replace("<>", "!=")
    vocabulary = {
        "IF": lambda condition, a, b: a if condition else b,
        "MIN": min,
        "MAX": max,
        "INT": numpy.floor,
        "ROUNDUP": lambda x, digits: numpy.ceil(numpy.round(x, 6)),
        "NUMBER": numpy.float64,
        "AND": lambda *all_of: all(all_of),
        "OR": lambda *any_of: any(any_of),
        "MOD": lambda x, n: x % n,
        "ISNUMBER": lambda x: x == x,
        "NONE": numpy.float64("nan"),
        "TRUE": True,
        "FALSE": False,
    }
    code = re.sub(r"(?<![\w.])(\d+(\.\d+)?)", r"NUMBER(\1)", code.replace('"-"', "NONE"))
    with numpy.errstate(all="ignore"):  # IF(0 = 0, 0, x / 0): Excel does not look at the last part, Python does
        return float(eval(code, {"__builtins__": {}}, vocabulary))


def steps_of(step: Step, seen: set[int] | None = None) -> Iterator[Step]:
    """Every step of a derivation, each once."""
    seen = set() if seen is None else seen
    if id(step) not in seen:
        seen.add(id(step))
        yield step
        for one in step.inputs:
            yield from steps_of(one, seen)


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_values_put_in_give_the_value(deployment: str) -> None:
    every = derivation(DEPLOYMENTS[deployment])
    seen = 0
    for name in QUANTITIES:
        for step in steps_of(every.step(name)):
            if step.formula:
                assert worked_out(step.with_values) == pytest.approx(step.value, rel=1e-12), (name, step)
                seen += 1
    assert seen > 5 * len(QUANTITIES)


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_every_result_can_be_explained_and_agrees_with_size(deployment: str) -> None:
    sized = sized_point(DEPLOYMENTS[deployment], Catalog())
    every = derivation(DEPLOYMENTS[deployment])
    left = {"verdict", "error", "fits", "short_by_bytes", "ttft_seconds", "tpot_seconds", "bound_by", "band_scope"}
    left |= {"output_tokens_per_second", "output_tokens_per_second_per_gpu"}
    for name in (*(n for n in RESULTS if n not in left), *READ_AGAIN):
        step = every.step(find(name))
        if name in sized.results and not math.isnan(sized.results[name][0]):
            assert step.value == pytest.approx(sized.results[name][0], rel=1e-9), name
        assert all(
            s.origin in ("given", "default", "catalog", "assumption", "computed", "search") for s in steps_of(step)
        )


CHOICES: dict[str, dict[str, Any]] = {
    "one instance": {"model": "8b"},
    "replicas": {"model": "70b", "context_tokens": "16k", "users": 200, "spare_replicas": 1},
    "stages": {"model": "deepseek-v3", "users": 20, "gpus": "h100", "providers": "aws", "weight_dtype": "bf16"},
    "windows": {"model": "gpt-oss-120b", "context_tokens": "100k", "users": 300, "active_fraction": 0.5},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_recommendations_values_put_in_give_the_value(choice: str) -> None:
    catalog = Catalog()
    solved = recommended(CHOICES[choice], catalog)
    every = ChoiceDerivation(solved, CHOICES[choice], catalog)
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
                assert step.name in ("tensor_parallel_size", "concurrent_requests", "kv_reserved"), step.name
    assert every.step("monthly_usd").value == pytest.approx(chosen.monthly_usd, rel=1e-12)
    assert every.step("n_instances").value == chosen.n_instances
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
    assert "= n_full_layers * full_kv_heads * (full_kv_width * kv_dtype_bytes + 2 * kv_scale_bytes)" in text
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
        return next((found for one in step["inputs"] if (found := find_step(one, name))), None)

    expected = {
        "gpu_memory_utilization": ("given", "typed: 0.85"),
        "tensor_parallel_size": ("default", "the default of sheetgen"),
        "gpu_memory_bytes": ("catalog", "catalogs/gpus/nvidia-h100-sxm5-80gb.yaml:"),
        "sampler_bytes_per_logit": ("assumption", "catalogs/engines/vllm.yaml"),
        "max_num_seqs": ("default", "catalogs/engines/vllm.yaml, the engine's own"),
        "memory_budget_bytes": ("computed", "What the engine may take"),
    }
    for name, (origin, about) in expected.items():
        step = find_step(top, name)
        assert step is not None and step["origin"] == origin and step["about"].startswith(about), name


def test_the_list_of_quantities(run) -> None:  # type: ignore[no-untyped-def]
    listed = json.loads(run("explain", "--json").output)
    names = [row["name"] for row in listed]
    assert names == [*(n for n, _, _ in quantities()), *CHOICE_QUANTITIES] and len(set(names)) == len(names) > 40
    assert all(row["summary"] for row in listed)
    text = run("explain").output
    assert all(name in text for name in names)


def test_spaces() -> None:
    assert spaced("IF(a<=b,-1,c-2)*(x<>y)") == "IF(a <= b, -1, c - 2) * (x <> y)"
    assert spaced('IF(a="x,y",1,2)') == 'IF(a = "x,y", 1, 2)'

"""A recommended replica, sized by itself, holds the sequences that the recommendation counts with."""

from __future__ import annotations

import itertools

import pytest

from sheetgen.api import recommended, sized_point
from sheetgen.catalog import Catalog

MODELS = ("8b", "70b", "405b", "gemma-3-27b", "qwen3.6-27b", "deepseek-v3", "gpt-oss-120b", "llama-4-scout-17b-16e")
ENGINES = (("vllm", "0.19.0"), ("vllm", "0.24.0"), ("vllm", "0.12.0"), ("sglang", None), ("tensorrt-llm", None))
LOADS = [
    (model, context, users, *engine)
    for (model, engine), (context, users) in zip(
        itertools.product(MODELS, ENGINES), itertools.cycle(((4096, 1), (16384, 40), (100_000, 7))), strict=False
    )
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


@pytest.mark.parametrize("model,context,users,engine,version", LOADS)
def test_sequences_are_those_of_size(
    catalog: Catalog, model: str, context: int, users: int, engine: str, version: str | None
) -> None:
    asked = {"model": model, "context_tokens": context, "engine": engine, "engine_version": version}
    solved = recommended({**asked, "users": users}, catalog)
    choice = solved.choices[0]
    assert choice.slot is not None
    point = sized_point(
        asked
        | {
            "gpu": solved.candidate(choice.slot).gpu.id,
            "tensor_parallel_size": solved.tensor_parallel_size(choice.slot),
            "pipeline_parallel_size": choice.pipeline_parallel_size,
            "gpu_memory_utilization": solved.question.settings.gpu_memory_utilization,
        },
        catalog,
    )
    assert int(point.known["sequences_per_replica"][0]) == choice.sequences_per_replica

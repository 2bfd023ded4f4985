"""CUDA graphs and the image encoder's peak: the sizes that the engine lists, and what logs print."""

from __future__ import annotations

import pytest

import sheetgen
from sheetgen.catalog import Catalog
from sheetgen.question.deployment import DEFINITIONS
from sheetgen.sizing.memory import captured_sizes
from sheetgen.units import GIB

STEP, LARGEST = 8, 512


def listed(most_requests: int) -> int:
    """As vLLM lists them (config/vllm.py): 1, 2, 4, multiples of 8 below 256, and of 16 from there."""
    largest = min(most_requests, LARGEST)
    sizes = [size for size in (1, 2, 4) if size <= largest]
    sizes += range(STEP, min(largest + 1, 256), STEP)
    sizes += range(256, largest + 1, 2 * STEP)
    return len(sizes)


@pytest.mark.parametrize("most_requests", [1, 2, 4, 5, 8, 16, 31, 32, 64, 128, 255, 256, 300, 512, 1024])
def test_sizes_are_those_that_the_engine_lists(most_requests: int) -> None:
    names = ("largest_graph", "largest_dense_graph", "graph_step")
    assert captured_sizes(most_requests, *(DEFINITIONS[name] for name in names)) == listed(most_requests)


# Logs: 51 and 35 sizes at 256 requests, 11 and 7 at 32, 35 and 19 at 128, 51 and 51 at 1,024.
@pytest.mark.parametrize(("requests", "mixed", "decode"), [(256, 51, 35), (32, 11, 7), (128, 35, 19), (1024, 51, 51)])
def test_sizes_are_those_that_logs_print(requests: int, mixed: int, decode: int) -> None:
    assert (listed(2 * requests), listed(requests)) == (mixed, decode)


def of(model: str, gpu: str, **more: object) -> dict[str, object]:
    return sheetgen.size(model=model, gpu=gpu, engine_version="0.30.0", context=8192, **more)


def gib(answer: dict[str, object], part: str) -> float:
    return float(answer[f"{part}_bytes_per_gpu"]) / GIB  # type: ignore[arg-type]


def test_graphs_follow_layers_batch_sizes_and_cards() -> None:
    small, large = of("qwen2.5-7b", "h100"), of("qwen2.5-32b", "h100")
    assert gib(large, "cuda_graph") - 0.05 == pytest.approx((gib(small, "cuda_graph") - 0.05) * 64 / 28, rel=1e-6)
    few = of("qwen2.5-32b", "h100", max_num_seqs=1)
    assert gib(few, "cuda_graph") < 0.1 < gib(large, "cuda_graph")
    assert gib(of("qwen2.5-32b", "l40s"), "cuda_graph") == pytest.approx(1.59, rel=0.15)  # a log without its card
    pair = of("minimax-m2.7", "spark", tensor_parallel_size=2, max_num_seqs=1024, weight_dtype="int4")
    assert gib(pair, "cuda_graph") == pytest.approx(5.1, rel=0.15)  # eugr/spark-vllm-docker#396
    eager = of("qwen2.5-32b", "h100", enforce_eager=1)
    assert gib(eager, "cuda_graph") == 0


def test_an_image_is_the_peak_of_a_small_batch() -> None:
    """A log of Qwen3.5-9B at 0.19 on an L40S (public file 51781852921): 2.03 GiB beside weights and pool."""
    asked = {"model": "qwen3.5-9b", "gpu": "l40s", "engine_version": "0.19.0", "max_num_batched_tokens": 8192}
    seen = sheetgen.size(**asked, context=8192)
    assert gib(seen, "activation") == pytest.approx(2.03 - 0.23, abs=0.06)  # and cuBLAS' 0.04
    text = sheetgen.size(**asked, context=8192, skip_mm_profiling=1)
    assert gib(text, "activation") < gib(seen, "activation") - 0.3
    halved = sheetgen.size(**asked, context=8192, tensor_parallel_size=2)
    assert 0.4 < gib(halved, "activation") / gib(seen, "activation") < 1


def test_every_encoder_of_known_width_has_its_patches() -> None:
    for model in Catalog().models():
        if model.encoder and model.encoder.hidden_size:
            assert model.encoder.max_item_patches == 4 * model.encoder.max_item_tokens, model.id  # merged two by two
            assert model.encoder.intermediate_size > model.encoder.hidden_size, model.id

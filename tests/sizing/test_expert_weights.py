"""The weights of a mixture on data-parallel ranks: all but the routed experts whole, and of these a share each."""

from __future__ import annotations

import numpy
import pytest

import sheetgen
from sheetgen.api import size_columns
from sheetgen.catalog import Catalog
from sheetgen.catalog.model import Model
from sheetgen.units import DTYPES

RANKS = (1, 2, 4, 8)


def all_but_experts(model: Model, dtype: str) -> float:
    """Bytes of everything that is no routed expert, counted from the catalog's parameters."""
    part, weights = model.params, DTYPES[dtype]
    quantized = part.body - part.unquantized
    return quantized * weights.linear_bytes + (part.total - part.routed_experts - quantized) * weights.other_bytes


@pytest.mark.parametrize("tensor_parallel_size", [1, 2])
def test_a_rank_keeps_attention_and_its_share_of_the_experts(tensor_parallel_size: int) -> None:
    catalog = Catalog()
    mixtures = [m for m in catalog.models() if m.params.routed_experts and m.kind == "model"]
    assert len(mixtures) > 50
    rows = [(m, ranks) for m in mixtures for ranks in RANKS]
    inputs = {
        "model": [m.id for m, _ in rows],
        "data_parallel_size": [ranks for _, ranks in rows],
        "gpu": ["b200"] * len(rows),
        "weight_dtype": [m.weight_dtype for m, _ in rows],
        "tensor_parallel_size": [tensor_parallel_size] * len(rows),
    }
    sized = size_columns(inputs, len(rows), catalog)
    errors = [error for error in sized.points.errors if error is not None]
    assert not errors, errors[:3]
    kept, loaded = (
        numpy.asarray(sized.known[n], float).reshape(-1, len(RANKS))
        for n in (
            "weights_bytes_per_gpu",
            "loaded_weights_bytes",
        )
    )
    for model, bytes_, (checkpoint, *_) in zip(mixtures, kept, loaded, strict=True):
        rest = all_but_experts(model, model.weight_dtype)
        experts = model.params.routed_experts * DTYPES[model.weight_dtype].linear_bytes
        experts = min(experts, checkpoint - rest)  # what the checkpoint has left for them, where that is less
        copied = bytes_[0] - experts / tensor_parallel_size
        for ranks, share in zip(RANKS, bytes_, strict=True):
            assert share * ranks == pytest.approx(bytes_[0] + (ranks - 1) * copied, abs=2 * ranks), (model.id, ranks)
            assert share >= rest / tensor_parallel_size, (model.id, ranks)


@pytest.mark.parametrize(("gpu", "ranks", "expected"), [("h200", 8, 27_870_179_405), ("b200", 2, 84_406_410_025)])
def test_fp4_experts_in_an_fp8_checkpoint_are_what_it_leaves_them(gpu: str, ranks: int, expected: int) -> None:
    # All else: (6,247,777,879 - 390,432,343) x 1 + (390,432,343 + 2 x 529,530,880) x 2 = 8,756,333,742 bytes; rotary
    # tables 268,435,456; experts (159,519,615,396 - 8,756,333,742) / ranks.
    rest, tables = 8_756_333_742, 268_435_456
    assert expected - 1 < rest + tables + (159_519_615_396 - rest) / ranks <= expected
    answer = sheetgen.size(model="deepseek-v4-flash", gpu=gpu, data_parallel_size=ranks)
    assert answer["weights_bytes_per_gpu"] == expected


def test_a_step_reads_all_else_of_such_a_checkpoint() -> None:
    sized = size_columns({"model": ["deepseek-v4-flash"], "gpu": ["b200"]}, 1, Catalog())
    read, experts = (float(sized.known[name][0]) for name in ("dense_read_bytes", "routed_bytes"))
    assert (read, experts) == (8_756_333_742 - 2 * 529_530_880, 150_763_281_654)  # but for the embedding's table

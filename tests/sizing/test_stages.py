"""Pipeline stages of a model whose layers differ: the order of its layers says what each keeps."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path

import pytest

from sheetgen.api import size
from sheetgen.catalog import Catalog

GIB = 2**30
CONFIGS = Path(__file__).parents[1] / "data" / "configs"


def parameters_by_block(model_id: str) -> list[int]:
    """Of each block, counted from the config alone."""
    config = json.loads((CONFIGS / f"{model_id}.json").read_text())
    hidden = config["hidden_size"]
    out = []
    for block in config["block_configs"]:
        attention, ffn = block["attention"], block["ffn"]
        n = 0
        if not attention["no_op"]:
            n += 2 * hidden * hidden + 2 * hidden * hidden // attention["n_heads_in_group"] + hidden
        if not ffn["no_op"]:
            width = ffn.get("intermediate_size") or 256 * -(-int(2 * ffn["ffn_mult"] * hidden / 3) // 256)
            n += 3 * hidden * width + hidden
        out.append(n)
    return out


@pytest.mark.parametrize("model_id", ["llama-3_3-nemotron-super-49b-v1", "llama-3_1-nemotron-ultra-253b-v1"])
def test_the_heaviest_half_is_as_its_blocks_add_up(model_id: str) -> None:
    blocks = parameters_by_block(model_id)
    first = list(accumulate(blocks))[len(blocks) // 2 - 1]
    model = Catalog().model(model_id)
    heaviest = max(first, sum(blocks) - first)
    assert sum(run.n * run.params for run in model.layers_in_order) == sum(blocks)
    found = size(model=model_id, gpu="b300", pipeline_parallel_size=2, context=4096)["weights_bytes_per_gpu"]
    ends = 2 * model.vocab_size * model.hidden_size
    of_no_layer = found - 2 * heaviest - ends - 2 * model.rope_table_elements  # the last norm
    assert 0 <= of_no_layer < 2**20


def test_nemotron_super_at_two_stages_is_62_gib() -> None:
    """Halves of the layers would be 46: 37 of the 49 layers with attention, and the wide FFNs, are in the first."""
    at = {pp: size(model="49b", gpu="h200", pipeline_parallel_size=pp, context=8192) for pp in (1, 2)}
    assert round(at[2]["weights_bytes_per_gpu"] / GIB, 1) == 62.4
    assert at[2]["kv_bytes_per_token_per_gpu"] * 49 == at[1]["kv_bytes_per_token_per_gpu"] * 37


def test_equal_layers_are_divided_as_before() -> None:
    at = {pp: size(model="70b", gpu="h200", pipeline_parallel_size=pp, context=8192) for pp in (2, 4)}
    assert at[2]["kv_bytes_per_token_per_gpu"] == 2 * at[4]["kv_bytes_per_token_per_gpu"]

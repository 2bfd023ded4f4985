"""Pipeline stages of a model whose layers differ: the order of its layers says what each keeps."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path

import pytest

from sheetgen.api import recommend, size
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
    weights = size(model=model_id, gpu="b300", pipeline_parallel_size=2, context=4096)["weights_bytes_per_gpu"]
    ends = 2 * model.vocab_size * model.hidden_size
    of_no_layer = weights - 2 * heaviest - ends - 2 * model.rope_table_elements  # the last norm
    assert 0 <= of_no_layer < 2**20


def test_nemotron_super_at_two_stages_is_62_gib() -> None:
    """Halves of the layers would be 46: 37 of the 49 layers with attention, and the wide FFNs, are in the first."""
    answers = {pp: size(model="49b", gpu="h200", pipeline_parallel_size=pp, context=8192) for pp in (1, 2)}
    assert round(answers[2]["weights_bytes_per_gpu"] / GIB, 1) == 62.4
    assert answers[2]["kv_bytes_per_token_per_gpu"] * 49 == answers[1]["kv_bytes_per_token_per_gpu"] * 37


def test_equal_layers_are_divided_as_before() -> None:
    answers = {pp: size(model="70b", gpu="h200", pipeline_parallel_size=pp, context=8192) for pp in (2, 4)}
    assert answers[2]["kv_bytes_per_token_per_gpu"] == 2 * answers[4]["kv_bytes_per_token_per_gpu"]


def test_a_draft_stands_whole_on_each_stage_divided_over_its_ranks() -> None:
    inputs = {"model": "405b", "gpu": "h100", "tensor_parallel_size": 8, "pipeline_parallel_size": 2, "context": 16384}
    alone, drafted = size(**inputs), size(**inputs, draft_model="llama-3.2-3b")
    weights = size(model="llama-3.2-3b", gpu="h100")["weights_bytes"]
    assert alone["kv_pool_bytes_per_gpu"] - drafted["kv_pool_bytes_per_gpu"] == weights / 8
    load = {"model": "405b", "context": "16k", "concurrent_requests": 2, "instances": "aws/p5.48xlarge"}
    asked = {**load, "weight_dtype": "published", "confidence": 0.5}
    for values, more in ((alone, {}), (drafted, {"draft_model": "llama-3.2-3b"})):
        answer = recommend(**asked, **more)["cells"][0]
        assert answer["pipeline_parallel_size"] == 2
        assert answer["memory_holds"] == int(values["max_concurrency"])


MIB = 2**20


@pytest.mark.parametrize(
    ("model", "version", "batches"),
    [  # at 1, 2, 3 and 4 stages
        ("gemma-3-27b", "0.25.1", (1, 1, 1, 1)),  # one batch, whatever is under way
        ("gemma-3-27b", "0.28.0", (2, 3, 4, 5)),  # dense: on Model Runner V2
        ("gpt-oss-120b", "0.28.0", (2, 2, 3, 4)),  # experts: on V1, which does not overlap steps on stages
        ("gpt-oss-120b", "0.33.0", (2, 3, 4, 5)),
    ],
)
def test_windows_are_charged_the_batches_that_stages_have_under_way(
    model: str, version: str, batches: tuple[int, ...]
) -> None:
    asked = {"model": model, "gpu": "h100", "context": 131_072, "engine_version": version}
    charged = [size(**asked, pipeline_parallel_size=pp)["kv_bytes_per_sequence"] for pp in range(1, 5)]
    # A batch of 8,192 tokens in blocks of 16; a block is 10 layers of 16 heads, or 18 of 8, of keys and values of 128,
    # or 64: 1.25 MiB in 6 groups, 0.5625 in one.
    batch = 512 * (6 * 1.25 if model == "gemma-3-27b" else 0.5625) * MIB
    assert [round((charge - charged[0]) / batch + batches[0], 6) for charge in charged] == list(batches)
    kept = [size(**asked, pipeline_parallel_size=pp)["kv_bytes_per_sequence_steady"] for pp in (1, 2)]
    assert kept[0] == kept[1]  # a request decodes once for each turn through the stages


@pytest.mark.parametrize(("gpu", "context"), [("h100", 32_768), ("l40s", 65_536)])
def test_what_is_rented_on_stages_holds_what_size_says(gpu: str, context: int) -> None:
    load = {"model": "trinity-large", "context_tokens": context, "concurrent_requests": 4, "gpus": gpu}
    asked = {**load, "weight_dtype": "published", "confidence": 0.5}  # at which `size` counts the pool
    cell = recommend(**asked, tpot_ms="off", ttft_ms="off")["cells"][0]
    stages, held = cell["pipeline_parallel_size"], cell["sequences_per_replica"]
    assert stages > 1
    sizes = {name: cell[name] for name in ("gpu", "tensor_parallel_size", "data_parallel_size")}
    inputs = {"model": "trinity-large", "context": context, **sizes}
    alike = [size(**inputs, pipeline_parallel_size=stages, concurrent_requests=n)["fits"] for n in (held, held + 1)]
    assert alike == [True, False]
    assert not size(**inputs, pipeline_parallel_size=stages - 1, concurrent_requests=1)["fits"]

"""A model's own layer for multi-token prediction as its draft: its weights, its cache, states ahead, the commands."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from option_values import Options

import sheetgen
from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.errors import ScenarioError
from sheetgen.units import GIB

# Start-ups of Qwen3.8-27B in NVFP4 on an RTX 5090 with an NVFP4 cache, three tokens drafted by its own layer and a pool
# that is set, of public repositories: pool, sequences, tokens.
STARTS = ((5.0, 3, 202_950), (5.5, 4, 221_976), (6.0, 4, 243_117))
# What a drafted token adds to a convolution (2 % of a state) is not counted, and a pool holds 96 to 115 blocks of them.
NEAR = 0.015


@pytest.mark.parametrize(("pool_gib", "n_seqs", "tokens"), STARTS)
def test_tokens_of_hybrids_that_draft_themselves(pool_gib: float, n_seqs: int, tokens: int) -> None:
    asked = {"model": "qwen3.6-27b", "gpu": "rtx-5090", "weight_dtype": "nvfp4", "kv_cache_dtype": "nvfp4"}
    asked |= {"engine_version": "0.32.0", "max_num_seqs": n_seqs, "max_num_batched_tokens": 5760}
    asked |= {"kv_cache_memory_bytes": int(pool_gib * GIB), "max_model_len": 131_072, "context_tokens": 131_072}
    assert sheetgen.size(**asked, draft_model="mtp")["kv_tokens"] == pytest.approx(tokens, rel=NEAR)
    assert sheetgen.size(**asked)["kv_tokens"] > 1.1 * tokens, "without the states of drafted tokens"


@pytest.mark.parametrize(
    ("model", "dtype", "token", "weights"),
    [
        ("deepseek-v3", "fp8", 576 * 2, 11_610_067_968),  # a latent; an FP8 layer
        ("glm-4.5", "bf16", 2 * 8 * 128 * 2, 5_539_976_512 * 2),
        ("glm-4.5", "fp8", 2 * 8 * 128 * 2, 5_539_976_512),
    ],
)
def test_what_the_layer_adds(model: str, dtype: str, token: int, weights: int) -> None:
    """The shape of one layer, and the parameters that the checkpoint has beside the model (config.json of each)."""
    asked: Options = {"model": model, "gpu": "b300", "tensor_parallel_size": 8, "weight_dtype": dtype}
    plain, drafting = sheetgen.size(**asked), sheetgen.size(**asked, draft_model="mtp")
    assert drafting["kv_bytes_per_token"] - plain["kv_bytes_per_token"] == token
    assert plain["kv_pool_bytes_per_gpu"] - drafting["kv_pool_bytes_per_gpu"] == pytest.approx(weights / 8, abs=1)


@pytest.mark.parametrize(
    ("models", "why"),
    [
        ("8b", "no layers for multi-token prediction of llama-3.1-8b are known"),
        ("deepseek-v3.2", "keeps a window or index keys, too, which is not sized"),
    ],
)
def test_models_without_such_a_layer_are_refused(models: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        sheetgen.size(model=models, gpu="h200", draft_model="mtp")


def test_several_models_have_no_draft_of_their_own() -> None:
    ran = CliRunner().invoke(main, ["build", "--models", "glm-4.5,deepseek-v3", "--draft-model", "mtp"])
    assert ran.exit_code == 1 and "is of one model" in ran.output


def test_commands_name_the_method() -> None:
    asked = ["size", "--model", "glm-4.5-air", "--gpu", "h200", "--tensor-parallel-size", "4", "--draft-model", "mtp"]
    ran = CliRunner().invoke(main, [*asked, "--flags", "vllm,sglang,tensorrt-llm"])
    assert ran.exit_code == 0, ran.output
    words = shlex.split(ran.output.replace("\\\n", " "), comments=True, posix=False)
    drafting = json.loads(words[words.index("--speculative-config") + 1].strip("'"))
    assert drafting == {"method": "mtp", "num_speculative_tokens": 3}
    assert (
        words[words.index("--speculative-algorithm") + 1] == "NEXTN" and "--speculative-draft-model-path" not in words
    )
    assert "decoding_type: MTP" in ran.output


def test_every_model_with_such_layers_is_sized_or_refused_by_name() -> None:
    catalog = Catalog()
    own = [model for model in catalog.models() if model.params.mtp_extra]
    sized = 0
    for model in own:
        try:
            sheetgen.size(model=model.id, gpu="b300", tensor_parallel_size=4, draft_model="mtp")
            sized += 1
        except ScenarioError as error:
            assert "index keys" in str(error) and any(group.kind == "indexer" for group in model.attention)
    assert sized >= len(own) - 5


LOG = """\
INFO 05-06 22:27:57 [utils.py:233] non-default args: {'model': 'qwen3.6-27b', 'max_model_len': 262144, \
'quantization': 'autoround', 'kv_cache_dtype': 'fp8_e5m2', 'max_num_batched_tokens': 4096, 'max_num_seqs': 4, \
'tensor_parallel_size': 2, 'speculative_config': {'method': 'mtp', 'num_speculative_tokens': %d}}
INFO 05-06 22:28:36 [core.py:109] Initializing a V1 LLM engine (v0.20.1) with config: model='qwen3.6-27b'
INFO 05-06 22:32:00 [kv_cache_utils.py:1] GPU KV cache size: 619,479 tokens
"""


@pytest.mark.parametrize("drafted", [3, 2])
def test_a_log_that_drafts_by_its_own_layers_is_sized_so(drafted: int, tmp_path: Path) -> None:
    """Two RTX 3090 of a public log: 619,479 tokens; without the layer they would be 13 % more."""
    log = tmp_path / "server.log"
    log.write_text(LOG % drafted, encoding="utf-8")
    asked = ["size", "--from-log", str(log), "--gpu", "rtx-3090", "--weight-dtype", "int4", "--json"]
    data = json.loads(CliRunner().invoke(main, asked).output)
    assert data["inputs"]["draft_model"] == "mtp"
    assert data["predicted"]["kv_tokens"] == pytest.approx(619_479, rel=0.03)
    assert any(note.startswith("2 tokens are drafted") and "3" in note for note in data["notes"]) == (drafted == 2)

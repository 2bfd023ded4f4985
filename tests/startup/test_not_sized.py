"""Figures of a vLLM 0.33 start-up log that the prediction does not have: told by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import sheetgen
from sheetgen.cli import main
from sheetgen.errors import ScenarioError
from sheetgen.units import KV_ALIASES, KV_NOT_SIZED, SAME_SIZE

LOG = """\
INFO 11-03 10:00:00 [api_server.py:1] vLLM API server version 0.33.0
INFO 11-03 10:00:00 [utils.py:1] non-default args: {'model': '%s', 'max_model_len': 8192, %s}
INFO 11-03 10:00:10 [kv_cache_utils.py:1] GPU KV cache size: 49,152 tokens
"""


def read(folder: Path, model: str, arguments: str) -> dict[str, Any]:
    log = folder / "server.log"
    log.write_text(LOG % (model, arguments), encoding="utf-8")
    ran = CliRunner().invoke(main, ["size", "--from-log", str(log), "--gpu", "b200", "--json"])
    assert ran.exit_code == 0, ran.output
    record: dict[str, Any] = json.loads(ran.output)
    return record


@pytest.mark.parametrize("dtype", KV_NOT_SIZED)
def test_kv_precisions_are_refused_by_name(dtype: str, tmp_path: Path) -> None:
    for asked in (sheetgen.size, sheetgen.recommend):
        with pytest.raises(ScenarioError, match=f"{dtype} is not sized: "):
            asked(
                model="8b",
                context=8192,
                concurrent_requests=1,
                kv_cache_dtype=dtype,
                **({"gpu": "b200"} if asked is sheetgen.size else {}),
            )
    prediction = read(tmp_path, "meta-llama/Llama-3.1-8B-Instruct", f"'kv_cache_dtype': '{dtype}'")
    if dtype in SAME_SIZE:  # a log is sized all the same
        assert prediction["inputs"]["kv_cache_dtype"] == SAME_SIZE[dtype]
    else:
        assert [note for note in prediction["notes"] if f"'{dtype}' in the log" in note]


@pytest.mark.parametrize(("word", "dtype"), KV_ALIASES.items())
def test_the_engines_words_are_read(word: str, dtype: str, tmp_path: Path) -> None:
    prediction = read(tmp_path, "meta-llama/Llama-3.1-8B-Instruct", f"'kv_cache_dtype': '{word}'")
    assert prediction["inputs"]["kv_cache_dtype"] == dtype
    text = f"1}}\nINFO 11-03 10:00:03 [cache.py:478] Using {word} data type to store kv cache. It\n# {{"
    by_line = read(tmp_path, "meta-llama/Llama-3.1-8B-Instruct", f"'data_parallel_size': {text}")
    assert by_line["inputs"]["kv_cache_dtype"] == dtype
    asked = {"model": "8b", "gpu": "b200"}
    by_word, by_name = (sheetgen.size(**asked, kv_cache_dtype=dtype)["kv_tokens"] for dtype in (word, dtype))
    assert by_word == by_name


def test_what_else_takes_of_the_pool_is_said(tmp_path: Path) -> None:
    model = "meta-llama/Llama-3.1-8B-Instruct"
    assert [
        n for n in read(tmp_path, model, "'mm_ipc_gpu_memory_gb': 4.0")["notes"] if "mm_ipc_gpu_memory_gb is 4" in n
    ]
    hot = "'attention_config': {'hisparse_config': {'host_pool_gib': 64}}"
    assert [n for n in read(tmp_path, model, hot)["notes"] if n.startswith("HiSparse ")]
    assert not [n for n in read(tmp_path, model, "'max_num_seqs': 64")["notes"] if "HiSparse" in n or "mm_ipc" in n]


def test_a_draft_that_was_served_alone(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text((LOG % ("eagle3-deepseek-v3", "'max_num_seqs': 64")).replace("'max_model_len': 8192, ", ""), "utf-8")
    for command in (["size", "--from-log", str(log), "--gpu", "b200"], ["diagnose", str(log), "--gpu", "b200"]):
        ran = CliRunner().invoke(main, command)
        assert ran.exit_code == 0 and "is a draft of another model" in " ".join(ran.output.split()), ran.output


def test_auto_of_a_log_is_what_its_checkpoint_states(tmp_path: Path) -> None:
    named, asked = (
        read(tmp_path, "nvidia/Qwen3-14B-NVFP4", f"'kv_cache_dtype': '{dtype}'")["inputs"]
        for dtype in ("auto", "bfloat16")
    )
    assert (named["weight_dtype"], named["kv_cache_dtype"]) == ("nvfp4", "fp8")
    assert asked["kv_cache_dtype"] == "bf16"


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("zai-org/GLM-5.2", "Using fp8 kv-cache for GlmMoeDsaForCausalLM on SM10x"),
        ("zai-org/GLM-5.3-Flash", "Using fp8 KV cache for GLM-5.3-Flash"),
    ],
)
def test_a_log_says_where_the_engine_took_fp8(model: str, line: str, tmp_path: Path) -> None:
    """Lines of the wheels of 0.32 and 0.33, model_executor/models/config.py."""
    spoken, silent = (
        read(tmp_path, model, f"'tensor_parallel_size': 8}}{more}\n# {{")["inputs"]["kv_cache_dtype"]
        for more in (f"\nINFO 11-03 10:00:01 [config.py:1] {line}", "")
    )
    assert (spoken, silent) == ("fp8", "bf16")

"""The KV cache that a checkpoint states: `auto` follows it where the engine does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sheetgen

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
QWEN3_14B = 2 * 40 * 8 * 128  # elements of a token


def bytes_per_token(model: str, engine: str, version: str | None, **asked: str) -> float:
    sized = sheetgen.size(model=model, gpu="b200", context=8192, engine=engine, engine_version=version, **asked)
    return float(sized["kv_bytes_per_token"])


@pytest.mark.parametrize(
    ("engine", "version", "element_bytes"),
    [
        ("vllm", "0.12.0", 2),
        ("vllm", "0.19.0", 1),
        ("vllm", None, 1),
        ("sglang", None, 1),
        ("tensorrt-llm", None, 1),
        ("lmdeploy", None, 2),
    ],
)
def test_a_named_checkpoint_keeps_its_own(engine: str, version: str | None, element_bytes: int) -> None:
    checkpoint = "nvidia/Qwen3-14B-NVFP4"
    assert bytes_per_token(checkpoint, engine, version) == QWEN3_14B * element_bytes
    assert bytes_per_token(checkpoint, engine, version, kv_cache_dtype="bf16") == QWEN3_14B * 2
    # The precision alone names no checkpoint.
    assert bytes_per_token("qwen3-14b", engine, version, weight_dtype="nvfp4") == QWEN3_14B * 2


def test_the_checkpoint_of_an_autumn_log_keeps_fp8() -> None:
    """Nemotron 3.5 Lightning in NVFP4: 6 layers of 2 heads of 256. With 16 bits its log on GB10 was 32 % off."""
    name = "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4"
    assert bytes_per_token(name, "vllm", None) == 6 * 2 * 256
    assert bytes_per_token("nemotron-3.5-lightning", "vllm", None) == 6 * 2 * 256 * 2


def test_a_sheet_has_it_too() -> None:
    cell = sheetgen.recommend(model="poolside/Laguna-XS.2-FP8", context=8192, concurrent_requests=8)["cells"][0]
    assert (cell["weight_dtype"], cell["kv_cache_dtype"]) == ("fp8", "fp8")
    cell = sheetgen.recommend(model="laguna-xs.2", context=8192, concurrent_requests=8, weight_dtype="fp8")["cells"][0]
    assert (cell["weight_dtype"], cell["kv_cache_dtype"]) == ("fp8", "bf16")


@pytest.mark.parametrize(("version", "kv_bytes"), [("0.19.0", 2), ("0.20.0", 0.5625)])
def test_nvfp4_of_a_config_of_ones_own(tmp_path: Path, version: str, kv_bytes: float) -> None:
    config = json.loads((CONFIGS / "llama-3.1-8b.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert bytes_per_token(str(path), "vllm", version) == 2 * 32 * 8 * 128 * kv_bytes

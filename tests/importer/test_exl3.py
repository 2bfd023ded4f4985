"""EXL3 checkpoints by their bits: sizes that their publisher states, and engines that load none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sheetgen
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.importer.model_names import resolve_model
from sheetgen.importer.quantization import Stored
from sheetgen.units import GIB

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
# turboderp/ERNIE-4.5-300B-A47B-PT-exl3, "size of .safetensors files excluding embedding layer", printed in GiB as GB.
STATED = ((2.0, 70.2), (3.0, 104.9), (4.0, 139.5))
ROUNDED = 0.05  # GiB: half of the last digit printed


def checkpoint(folder: Path, model: str, bits: float) -> str:
    config: dict[str, Any] = json.loads((CONFIGS / f"{model}.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "exl3", "version": "0.0.1", "bits": bits, "head_bits": 6}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(("bits", "gib"), STATED)
def test_files_are_as_large_as_published(bits: float, gib: float, tmp_path: Path) -> None:
    model = resolve_model(checkpoint(tmp_path, "ernie-4.5-300b-a47b-pt", bits), Catalog())[0]
    without_embedding = model.checkpoint_bytes(model.weight_dtype) - 2 * model.params.embedding
    assert without_embedding / GIB == pytest.approx(gib, abs=ROUNDED)


def test_a_matrix_is_as_large_as_in_a_published_file() -> None:
    """layers.0.self_attn.q_proj of UnstableLlama/Qwen3.6-35B-A3B-DFlash-exl3-3.50bpw (quantization_config.json): a
    trellis of 4,194,304 bytes, suh of 4,096 and svh of 8,192; without the 4 bytes of its multiplier."""
    stored = Stored("int4", 4, 0, scale_bytes=2, order_bytes=2)
    assert stored.bytes_of(2048, 4096) == 4_194_304 + 4_096 + 8_192


def test_engines_that_load_none_say_so(tmp_path: Path) -> None:
    model = checkpoint(tmp_path, "llama-3.1-8b", 3.5)
    for engine in ("vllm", "sglang", "lmdeploy"):
        sized = sheetgen.size(model=model, gpu="rtx-4090", engine=engine)
        assert not sized["fits"] and "no exl3 of 3.5 bits" in sized["verdict"]
    with pytest.raises(ScenarioError, match=r"no exl3 of 3.5 bits"):
        sheetgen.recommend(model=model, context=8192, concurrent_requests=1)

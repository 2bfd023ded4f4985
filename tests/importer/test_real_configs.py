"""Published configs against the entries of the catalog, part by part. What differs is listed with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sheetgen.catalog import Catalog, Model
from sheetgen.catalog.base import read_text, validate
from sheetgen.errors import CatalogError
from sheetgen.importer.model_entry import import_config, write_yaml

FOLDER = Path(__file__).parents[1] / "data" / "configs"
FILES = sorted(FOLDER.glob("*.json"))
PARAMS = ("total", "embedding", "body", "routed_experts", "lm_head", "vision", "per_layer_embedding", "active")
FIELDS = ("n_layers", "hidden_size", "n_heads", "vocab_size", "weight_dtype", "kv_cache_dtype", "parallel_hybrid")

# Entry -> the facts in which the config differs, and why.
KNOWN: dict[str, tuple[set[str], str]] = {
    **dict.fromkeys(
        ("falcon-7b", "falcon-40b", "falcon-180b"),
        ({"total", "lm_head", "active"}, "the entry counts the checkpoint's second copy; transformers and vLLM tie it"),
    ),
    **dict.fromkeys(
        ("gemma-4-12b", "exaone-4.5-33b"),
        ({"total", "vision"}, "the config is the text part's; what reads images is counted by transformers"),
    ),
    "tencent-hunyuan-large": ({"total", "body", "active"}, "the entry leaves the query and key norms out"),
    **dict.fromkeys(
        ("eagle3-deepseek-v3", "eagle3-llama-3.x-70b", "llama-3.1-8b-speculator.eagle3"),
        ({"weight_dtype", "kv_cache_dtype"}, "the entry gives the target's 16-bit type"),
    ),
    **dict.fromkeys(
        (
            "glm-5.3",
            "glm-5.3-flash",
            "ministral-3-3b-2512",
            "ministral-3-8b-2512",
            "ministral-3-14b-2512",
            "mistral-large-3-675b-2512",
        ),
        ({"weight_dtype"}, "the copy of its config leaves out that the files are in FP8"),
    ),
}
# Config -> why it is refused: its model_type is not counted, or a needed key is not in it.
REFUSED = {
    "kimi-k3": "model_type is 'kimi_k3'",  # latent experts and full-rank gates, which no public class has
    "deepseek-vl2": "model_type is 'deepseek_vl_v2'",
    "dots.ocr": "model_type is 'dots_ocr'",
    "ernie-4.5-vl-28b-a3b-pt": "model_type is 'ernie4_5_vl_moe'",
    "falcon-mamba-7b": "model_type is 'falcon_mamba'",
    "grok-1": "model_type is 'grok-1'",
    "grok-2": "model_type is 'git'",
    "phi-3-small-8k": "model_type is 'phi3small'",
    "phi-3.5-vision": "model_type is 'phi3_v'",
    "phi-4-multimodal": "model_type is 'phi4_multimodal'",
    "qwen2-audio-7b": "model_type is 'qwen2_audio'",
    "qwen2.5-omni-7b": "model_type is 'qwen2_5_omni'",
    "snowflake-arctic": "model_type is 'arctic'",
    "zamba2-2.7b": "model_type is 'zamba2'",
    "zamba2-7b": "model_type is 'zamba2'",
}


@pytest.fixture(params=FILES, ids=[file.stem for file in FILES])
def file(request: pytest.FixtureRequest) -> Path:
    return request.param  # type: ignore[no-any-return]


def entry_of(catalog: Catalog, file: Path) -> Model | None:
    return catalog.model(file.stem) if file.stem in {m.id for m in catalog.models()} else None


def facts(model: Model) -> dict[str, Any]:
    out = {part: getattr(model.params, part) for part in PARAMS} | {name: getattr(model, name) for name in FIELDS}
    out["experts"] = model.experts
    out["attention"] = sorted(str(group.model_dump()) for group in model.attention)
    return out


def test_equals_its_entry(catalog: Catalog, file: Path) -> None:
    entry = entry_of(catalog, file)
    config = json.loads(file.read_text())
    try:
        model = import_config(config, name=file.stem, where=file.name)
    except CatalogError as error:
        assert error.problems[0].startswith(f"{file.name}: ")
        assert REFUSED.get(file.stem, "(is not to be refused)") in error.problems[0]
        return
    assert file.stem not in REFUSED
    if entry is None:
        return
    read, expected = facts(model), facts(entry)
    differing = {key for key in read if read[key] != expected[key]}
    assert differing == KNOWN.get(file.stem, (set(), ""))[0], {k: (read[k], expected[k]) for k in differing}


def test_most_entries_have_a_config(catalog: Catalog) -> None:
    ids = {m.id for m in catalog.models()}
    with_config = ids & {file.stem for file in FILES}
    assert len(with_config) >= 129
    assert ids >= set(KNOWN)


@pytest.mark.some(100)
def test_its_yaml_reads_back(file: Path) -> None:
    try:
        model = import_config(json.loads(file.read_text()), name=file.stem, where=file.name)
    except CatalogError:
        return
    assert validate(read_text(write_yaml(model), "entry.yaml"), Model) == model
    p = model.params
    assert p.copied <= p.body and p.unquantized <= p.body

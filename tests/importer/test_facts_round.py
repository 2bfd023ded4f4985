"""Facts of the catalog -> a config -> import -> the same facts.

What an entry knows is written into a config; only what it does not hold (widths of heads, recurrences, towers,
quantization) is taken from the published one. Layers are listed in another order than the model has them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_real_configs import FOLDER, KNOWN, REFUSED, facts

from sheetgen.catalog import Catalog, Model, default_folder
from sheetgen.importer.model_entry import import_config

Config = dict[str, Any]
IDS = sorted(path.stem for path in (default_folder() / "models").glob("*.yaml"))
# What an entry has no place for: two of its layers are one of the config; latents of two widths.
SAID_OTHERWISE = ("longcat-flash", "mistral-large-4-1t-a52b")
WITH_CONFIG = [i for i in IDS if (FOLDER / f"{i}.json").is_file() and i not in REFUSED]
# How families that do not write the common names call them.
NAMES = {
    "mpt": {"hidden_size": "d_model", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"},
    "dbrx": {"hidden_size": "d_model", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"},
}
WORDS = {"full": "full_attention", "windowed": "sliding_attention", "recurrent": "linear_attention"}
# Where each layer's place says more than its kind: shared caches, parts of a layer, experts by place.
ORDERED = ("gemma3n_text", "gemma4_text", "nemotron_h", "granitemoehybrid", "laguna", "lfm2", "lfm2_moe")


def written(model: Model, published: Config) -> Config:
    """The published config with every fact of the entry written over it."""
    config = json.loads(json.dumps(published))
    text = config.get("text_config") or config.get("llm_config") or config
    names = NAMES.get(text.get("model_type", ""), {})
    put = {
        "num_hidden_layers": model.n_layers,
        "hidden_size": model.hidden_size,
        "num_attention_heads": model.n_heads,
        "vocab_size": model.vocab_size,
    }
    for key, value in put.items():
        text[names.get(key, key)] = value
    for group in model.attention:
        _write_group(group, text, model)
    _write_layer_types(model, text)
    _write_experts(model, text)
    text["tie_word_embeddings"] = config["tie_word_embeddings"] = model.params.lm_head == 0
    if not any(part.get(key) for part in (config, text) for key in ("quantization_config", "compression_config")):
        text["torch_dtype"] = config["torch_dtype"] = "float16" if model.weight_dtype == "fp16" else "bfloat16"
    return config  # type: ignore[no-any-return]


def _write_group(group: Any, text: Config, model: Model) -> None:
    if group.kind == "mla":
        text["kv_lora_rank"] = group.latent_width - text["qk_rope_head_dim"]
    if group.kind == "windowed" and "sliding_window" in text:
        text["sliding_window"] = group.window_tokens
    if group.kind == "chunked":
        text["attention_chunk_size"] = group.window_tokens
    uniform = len({getattr(g, "n_kv_heads", group.n_kv_heads if group.kind == "full" else 0) for g in model.attention})
    if group.kind == "full" and uniform == 1 and text.get("num_key_value_heads") is not None:
        text["num_key_value_heads"] = group.n_kv_heads


def _write_layer_types(model: Model, text: Config) -> None:
    """All layers of one kind, then all of the next."""
    kinds = [g for g in model.attention if g.kind in WORDS]
    if text.get("layer_types") and text["model_type"] not in ORDERED and len(kinds) > 1:
        if "chunked" in {g.kind for g in model.attention}:
            return
        text["layer_types"] = [WORDS[g.kind] for g in kinds for _ in range(g.n_layers)]


def _write_experts(model: Model, text: Config) -> None:
    if model.experts is None:
        return
    for key in ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"):
        if key in text:
            text[key] = model.experts.n
    for key in ("num_experts_per_tok", "num_experts_per_token", "moe_k"):
        if key in text:
            text[key] = model.experts.top_k


@pytest.mark.some(100)
@pytest.mark.parametrize("model_id", [i for i in WITH_CONFIG if i not in SAID_OTHERWISE])
def test_facts_come_back(catalog: Catalog, model_id: str) -> None:
    entry = catalog.model(model_id)
    config = written(entry, json.loads((FOLDER / f"{model_id}.json").read_text()))
    read, expected = facts(import_config(config, name=model_id, where=model_id)), facts(entry)
    differing = {key for key in read if read[key] != expected[key]}
    assert differing <= KNOWN.get(model_id, (set(), ""))[0], {key: (read[key], expected[key]) for key in differing}


def test_nearly_every_entry_is_written_down() -> None:
    """All that were there with their configs; one that is entered since needs none here."""
    assert len(WITH_CONFIG) >= 367

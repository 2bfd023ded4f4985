"""Small random configs of every family against what transformers counts (scripts/make_huggingface_oracle.py)."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from sheetgen.catalog import Model
from sheetgen.importer.model_entry import import_config

ORACLE = Path(__file__).parents[1] / "data" / "huggingface_oracle.csv"
with ORACLE.open(newline="") as file:
    ROWS = list(csv.DictReader(file))
PARTS = ("total", "embedding", "routed_experts", "lm_head", "vision", "per_layer_embedding")
KV_COPIED_TO_HEADS = "falcon_new"  # its class copies keys and values to every query head; engines do not
KEYS_AND_WEIGHTS = "glm5_next"  # its class keeps the weight of each index key and a mark beside it
ONE_STATE = ("lfm2", "lfm2_moe", "lfm3")  # their convolution is all their state, and the entry has it as state


@pytest.fixture(params=ROWS, ids=[row["name"] for row in ROWS])
def row(request: pytest.FixtureRequest) -> dict[str, str]:
    return request.param  # type: ignore[no-any-return]


def imported(row: dict[str, str]) -> Model:
    return import_config(json.loads(row["config"]), name=row["name"], where=row["name"])


def test_the_oracle_holds_many_configs_of_many_families() -> None:
    families = {json.loads(row["config"])["model_type"] for row in ROWS}
    assert len(ROWS) >= 180
    assert len(families) >= 80


def test_parameters_by_part(row: dict[str, str]) -> None:
    model = imported(row)
    assert {part: getattr(model.params, part) for part in PARTS} == {part: int(row[part]) for part in PARTS}
    assert model.params.body == int(row["total"]) - sum(int(row[part]) for part in PARTS[1:])


def test_cache(row: dict[str, str]) -> None:
    if not row["growing"]:
        assert "vision_config" in row["config"] or row["name"].rsplit("-", 1)[0] in (
            "llama4_text",
            "gpt_neo",
            "deepseek_v4",
            "minimax",
        ), "the oracle has no cache for this one"
        return
    cache = cache_of(imported(row))
    expected = {key: int(row[key]) for key in cache}
    name = row["name"].rsplit("-", 1)[0]
    if name == KV_COPIED_TO_HEADS:
        config = json.loads(row["config"])
        expected["growing"] = expected["growing"] * config["num_kv_heads"] // config["num_attention_heads"]
    if name == KEYS_AND_WEIGHTS:
        width = json.loads(row["config"])["text_config"]["index_head_dim"]
        expected["indexer"] = expected["indexer"] // (2 * width + 1) * width
    if name in ONE_STATE:
        expected = {**expected, "conv": 0, "state": expected["conv"]}
    assert cache == expected


def cache_of(model: Model) -> dict[str, int]:
    """Elements a token of growing layers, of windows and of index keys; and of the state."""
    out = dict.fromkeys(("growing", "windowed", "indexer", "conv", "state"), 0)
    for group in model.attention:
        g: Any = group
        if g.kind in ("full", "windowed"):
            key = "growing" if g.kind == "full" else "windowed"
            out[key] += g.n_layers * g.n_kv_heads * (g.key_width + g.value_width)
        elif g.kind == "mla":
            out["growing"] += g.n_layers * g.latent_width
        elif g.kind == "indexer":
            out["indexer"] += g.n_layers * g.width
        elif g.kind == "recurrent":
            out["conv"] += g.n_layers * g.conv_elements
            out["state"] += g.n_layers * g.state_elements
    return out

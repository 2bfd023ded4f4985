"""Rope tables, images, copies and precision: what vLLM does with a config beside its parameters and cache."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from option_values import Options
from test_real_configs import FOLDER

from sheetgen.catalog import Catalog, Model
from sheetgen.catalog.families import FamilyFile
from sheetgen.catalog.load import default_folder
from sheetgen.errors import CatalogError
from sheetgen.importer.model_entry import import_config
from sheetgen.importer.model_names import resolve_model

SMALL: Options = {
    "model_type": "qwen3_moe",
    "hidden_size": 64,
    "intermediate_size": 128,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}


def of(name: str) -> Model:
    return import_config(json.loads((FOLDER / f"{name}.json").read_text()), name=name)


def small(**change: object) -> Model:
    return import_config({**SMALL, **change}, name="small")


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("llama-3.1-70b", 131072 * 128),  # llama3 scaling does not lengthen the table
        ("qwen3-8b", 40960 * 128),
        ("gemma-3-27b", 131072 * 128 + 131072 * 8 * 128),  # local, and global with linear scaling
        ("gemma-4-31b", 262144 * 256 + 262144 * 512),  # local, and global over the whole head
        ("qwen3-vl-8b", 4 * 262144 * 128),  # mrope
        ("qwen3.6-27b", 4 * 262144 * 64),  # mrope over a quarter of the head
        ("qwen3-next-80b-a3b", 262144 * 64),
        ("deepseek-v3", 4096 * 40 * 64),
        ("deepseek-v3.2", 2 * 4096 * 40 * 64),  # the indexer rotates in its own style
        ("gpt-oss-120b", 4096 * 32 * 64),
        ("phi-3.5-mini", (131072 + 4096) * 96),  # long and short
        ("llama-4-scout-17b-16e", 10485760 * 128),
        ("glm-4.5", 131072 * 64),
        ("minimax-text-01", 10240000 * 64),
        ("nvidia-nemotron-nano-9b-v2", 0),
        ("ai21-jamba-1.5-mini", 0),
        ("mpt-7b", 0),
    ],
)
def test_rope_tables(name: str, elements: int) -> None:
    assert of(name).rope_table_elements == elements


@pytest.mark.parametrize(
    ("scaling", "rows"),
    [
        (None, 4096),
        ({}, 4096),
        ({"rope_type": "default"}, 4096),
        ({"type": "linear", "factor": 4}, 16384),
        ({"type": "dynamic", "factor": 2.0}, 8192),
        ({"type": "dynamic", "alpha": 1000.0}, 4096),
        ({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 2048}, 16384),
        ({"rope_type": "yarn", "factor": 4.0}, 16384),
        ({"rope_type": "longrope", "original_max_position_embeddings": 1024}, 5120),
        ({"rope_type": "default", "mrope_section": [2, 3, 3]}, 16384),
        ({"type": "mrope", "mrope_section": [2, 3, 3]}, 16384),
    ],
)
def test_rope_types(scaling: dict[str, Any] | None, rows: int) -> None:
    model = small(rope_scaling=scaling)
    assert model.rope_table_elements == rows * 16
    is_yarn = (scaling or {}).get("rope_type") == "yarn"
    assert model.max_context_tokens == (16384 if is_yarn else 4096)


@pytest.mark.parametrize(
    ("name", "tokens", "elements"),
    [
        ("gemma-3-27b", 256, 3 * 896 * 896),
        ("gemma-3-4b", 256, 3 * 896 * 896),
    ],
)
def test_the_largest_image(name: str, tokens: int, elements: int) -> None:
    encoder = of(name).encoder
    assert encoder is not None
    assert (encoder.max_item_tokens, encoder.max_item_elements) == (tokens, elements)


def test_images_of_other_towers() -> None:
    text = {key: value for key, value in SMALL.items() if "exp" not in key} | {"model_type": "mistral"}
    vision = {"model_type": "pixtral", "image_size": 1540, "patch_size": 14}
    mistral = import_config(
        {"model_type": "mistral3", "text_config": text, "vision_config": vision, "spatial_merge_size": 2}, name="x"
    ).encoder
    assert mistral is not None and (mistral.max_item_tokens, mistral.max_item_elements) == (55 * 55, 3 * 1540 * 1540)
    clip = {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}
    llava = {"model_type": "llava_next", "text_config": text, "vision_config": clip}
    tiles = import_config({**llava, "image_grid_pinpoints": [[336, 672], [672, 672]]}, name="x").encoder
    assert tiles is not None and (tiles.max_item_tokens, tiles.max_item_elements) == (2928, 5 * 3 * 336 * 336)
    unknown = of("qwen3-vl-8b")
    assert unknown.encoder is None and any("largest image" in note for note in unknown.notes)


def test_what_ranks_copy() -> None:
    norms = 2 * (2 * 64 + 2 * 16) + 64
    routers = 2 * 8 * 64
    model = small()
    assert model.params.copied == model.params.unquantized == norms + routers
    with_bias = small(attention_bias=True).params
    assert with_bias.copied == norms + routers + 2 * 64  # the output's bias is whole on every rank
    assert with_bias.unquantized == norms + routers + 2 * (4 + 2 * 2) * 16 + 2 * 64
    v3 = of("deepseek-v3").params
    downs = 61 * (7168 * 1536 + 7168 * 576)
    assert v3.copied == v3.unquantized + downs


@pytest.mark.parametrize(
    ("quantization", "weights", "kv"),
    [
        ({"quant_method": "fp8", "fmt": "e4m3"}, "fp8", "bf16"),
        ({"quant_method": "mxfp4"}, "mxfp4", "bf16"),
        ({"quant_method": "awq", "bits": 4}, "int4", "bf16"),
        ({"quant_method": "awq", "w_bit": 4}, "int4", "bf16"),
        ({"quant_method": "gptq", "bits": 8}, "int8", "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8", "bf16"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "fp8", "fp8"),
        ({"quant_algo": "NVFP4"}, "nvfp4", "bf16"),
        (
            {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}},
            "nvfp4",
            "fp8",
        ),
        (
            {
                "quant_method": "modelopt",
                "quantization": {"quant_algo": "NVFP4", "kv_cache_scheme": {"type": "float", "num_bits": 4}},
            },
            "nvfp4",
            "nvfp4",
        ),
    ],
)
def test_precision(quantization: dict[str, Any], weights: str, kv: str) -> None:
    model = small(quantization_config=quantization)
    assert (model.weight_dtype, model.kv_cache_dtype) == (weights, kv)


@pytest.mark.parametrize(
    ("kind", "bits", "form", "dtype"),
    [
        ("float", 8, "float-quantized", "fp8"),
        ("int", 8, "int-quantized", "int8"),
        ("int", 4, "pack-quantized", "int4"),
        ("float", 4, "nvfp4-pack-quantized", "nvfp4"),
        ("float", 4, "mxfp4-pack-quantized", "mxfp4"),
    ],
)
def test_compressed_tensors(kind: str, bits: int, form: str, dtype: str) -> None:
    group = {"targets": ["Linear"], "weights": {"type": kind, "num_bits": bits}}
    quantization = {"quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": group}}
    assert small(quantization_config=quantization).weight_dtype == dtype
    assert small(compression_config=quantization).weight_dtype == dtype
    other = {"targets": ["re:.*self_attn.*"], "weights": {"type": "int", "num_bits": 4 if dtype != "int4" else 8}}
    mixed = {**quantization, "config_groups": {"a": group, "b": other}}
    assert small(quantization_config=mixed).weight_dtype == dtype  # that of most weights


def test_parts_that_a_quantization_leaves_alone() -> None:
    plain = small().params
    attention = small(quantization_config={"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["self_attn"]})
    weights = 2 * (64 * 64 * 2 + 2 * 64 * 32)
    group = {"weights": {"type": "float", "num_bits": 8}}
    fp8 = {"quant_method": "compressed-tensors", "config_groups": {"all": group}}
    assert attention.params.unquantized == plain.unquantized + weights
    by_matrix = {**fp8, "ignore": [f"re:.*\\.self_attn\\.{letter}_proj$" for letter in "qkvo"]}
    assert small(quantization_config=by_matrix).params.unquantized == attention.params.unquantized
    one_matrix = {**fp8, "ignore": ["re:.*\\.self_attn\\.k_proj$"]}
    assert small(quantization_config=one_matrix).params.unquantized == plain.unquantized + 2 * 64 * 32
    everything = small(quantization_config={"quant_method": "mxfp4"}).params
    assert everything.unquantized == everything.body
    one_layer = {"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["model.layers.0.self_attn"]}
    assert small(quantization_config=one_layer).params.unquantized == plain.unquantized + weights // 2
    bomb = {"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["re:(a+)+$" * 1000]}
    with pytest.raises(CatalogError, match="a pattern that is not read"):
        small(quantization_config=bomb)


def test_layers_of_multi_token_prediction() -> None:
    """Equal to published totals less the rest: GLM-4.6 but for 90 x 160 router biases, Qwen3.6 and Nemotron exactly."""
    assert of("glm-4.6").params.mtp_extra == 3_988_084_032 - 90 * 160
    assert of("qwen3.6-27b").params.mtp_extra == 424_699_392
    assert of("nvidia-nemotron-3-super-120b-a12b-bf16").params.mtp_extra == 2_942_324_736
    assert of("qwen3.6-27b").params.total == 27_356_728_560  # they are outside the total


def test_multi_query_is_the_default_of_gpt_bigcode() -> None:
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128, "vocab_size": 100}
    kv = {
        model_type: import_config({"model_type": model_type, **sizes}, name="x").shape()["full_kv_heads"]
        for model_type in ("gpt_bigcode", "gpt2")
    }
    assert kv == {"gpt_bigcode": 1, "gpt2": 4}


@pytest.mark.parametrize("model_type", ["deepseek_v41", "zamba2", "qwen3_omni_moe", "inkling2"])
def test_what_is_known_and_not_counted_says_why(model_type: str, catalog: Catalog) -> None:
    with pytest.raises(CatalogError) as caught:
        import_config({"model_type": model_type, "hidden_size": 64}, name="x", where="c.json")
    reason = catalog.file(FamilyFile).reasons[model_type]
    assert caught.value.problems == (f"c.json: model_type is '{model_type}', which sheetgen does not count: {reason}.",)


def test_families_of_a_folder_count_its_configs(tmp_path: Path) -> None:
    shipped = (default_folder() / FamilyFile.file_name).read_text()
    (tmp_path / FamilyFile.file_name).write_text(shipped.replace("types: [llama]", "types: [llama, of_mine]"))
    config = json.loads((FOLDER / "llama-3.1-8b.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "of_mine"}))
    with pytest.raises(CatalogError, match="cannot count"):
        resolve_model(str(tmp_path), Catalog())
    assert resolve_model(str(tmp_path), Catalog(tmp_path))[0].params.total == 8_030_261_248


def test_a_family_with_an_unknown_rule_is_a_fault_with_its_line(tmp_path: Path) -> None:
    shipped = (default_folder() / FamilyFile.file_name).read_text()
    (tmp_path / FamilyFile.file_name).write_text(
        shipped.replace("{types: [qwen3], like", "{types: [qwen3], norm: l2, like")
    )
    line = 1 + shipped[: shipped.index("{types: [qwen3], like")].count("\n")
    with pytest.raises(CatalogError) as caught:
        Catalog(tmp_path).file(FamilyFile)
    (problem,) = caught.value.problems
    assert f"families.yaml:{line}: norm is 'l2'" in problem


@pytest.mark.parametrize(
    ("name", "change", "refusal"),
    [
        ("laguna-xs.2", {"gating": "per-element"}, "gating is 'per-element', but must be true or per-head."),
        ("laguna-xs.2", {"gating": False}, "gating is 'False', but must be true or per-head."),
        ("mpt-7b", {"no_bias": False}, "no_bias is false, and biases are not counted."),
        ("mpt-7b", {"attn_config": {"alibi": False}}, "attn_config.alibi is false, and positions of another kind"),
        (
            "glm-5.2",
            {"indexer_types": None, "index_topk_pattern": "FS"},
            "index_topk_pattern is not read: indexer_types must say",
        ),
        ("exaone-4.0-32b", {"layer_types": None}, "sliding_window_pattern is 'LLLG', but must be a whole number."),
        ("llama-3.1-8b", {"hidden_size": 4096.0}, "hidden_size is 4096.0, but must be a whole number."),
    ],
)
def test_a_variant_that_no_published_config_has_is_refused(name: str, change: dict[str, Any], refusal: str) -> None:
    config = json.loads((FOLDER / f"{name}.json").read_text())
    with pytest.raises(CatalogError, match=re.escape(f"config.json: {refusal}")):
        import_config({**config, **change}, name=name)


@pytest.mark.parametrize(
    ("name", "change", "refusal"),
    [
        ("gemma-4-31b", {"sliding_window": None}, "sliding_window is missing"),
        ("gemma-3n-e4b", {"sliding_window": None}, "sliding_window is missing"),
        ("muse-spark-open-816b-a42b", {"num_local_experts": None}, "num_local_experts leaves layers without experts"),
        ("step-3.7-flash", {"share_expert_dim": None}, "share_expert_dim is missing"),
    ],
)
def test_a_needed_key_set_to_null_is_refused(name: str, change: dict[str, Any], refusal: str) -> None:
    config = json.loads((FOLDER / f"{name}.json").read_text())
    if "text_config" in config:
        change = {"text_config": {**config["text_config"], **change}}
    with pytest.raises(CatalogError, match=refusal):
        import_config({**config, **change}, name=name)


def test_a_block_with_an_ffn_width_of_its_own_is_refused() -> None:
    config = json.loads((FOLDER / "llama-3_3-nemotron-super-49b-v1.json").read_text())
    config["block_configs"][0]["ffn"]["intermediate_size"] = 1024
    with pytest.raises(CatalogError, match=r"block_configs\[0\]\.ffn\.intermediate_size is set"):
        import_config(config, name="x")


def test_a_latent_of_two_widths_counts_at_their_mean(catalog: Catalog) -> None:
    """Mistral Large 4: 54 layers of 576, 18 of 512."""
    shape = catalog.model("mistral-large-4-1t-a52b").shape()
    assert shape["n_mla_layers"] == 72 and shape["mla_width"] == 560
    assert shape["n_mla_layers"] * shape["mla_width"] == 54 * 576 + 18 * 512


def test_rows_of_an_ngram_table_are_no_work_of_a_step(catalog: Catalog) -> None:
    """Qwen3.8-Flash-Next: 51 billion of 177 are looked up; some 7 billion are multiplied by."""
    params = catalog.model("qwen3.8-flash-next").params
    assert params.per_layer_embedding == 51_200_245_760
    assert 7.2e9 < params.active < 7.4e9

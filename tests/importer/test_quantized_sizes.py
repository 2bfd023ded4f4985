"""Quantized checkpoints against the published sizes of their files: every list of exceptions, every scale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from test_real_configs import FILES, FOLDER

import sheetgen
from sheetgen.catalog import Catalog, Model
from sheetgen.errors import CatalogError
from sheetgen.importer.config_reader import Fields
from sheetgen.importer.layers import NOTHING
from sheetgen.importer.model_entry import decoder_of, import_config, import_file
from sheetgen.units import GIB

QUANTIZED = FOLDER.parent / "quantized"  # folders with the files as they were published
KAITO = "github:kaito-project/kaito model_catalog.yaml: all files together, rounded to 0.01 GiB"
LLMFIT = "element counts of github:AlexsJones/llmfit hf_models.json"


class Published(NamedTuple):
    """The size of a checkpoint's files. `folder` is in QUANTIZED, `config` in FOLDER; a quantization is given where the
    config is that of the model as published."""

    hf_id: str
    size_bytes: float
    source: str
    folder: str = ""
    config: str = ""
    quantization: dict[str, Any] | None = None
    beside: dict[str, Any] | None = None
    kv: str = "bf16"
    within: float = 0.001


BLOCKS = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}
FP8_STATIC = {"quant_method": "fp8", "activation_scheme": "static", "modules_to_not_convert": ["lm_head"]}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "modules_to_not_convert": None}
_LEFT = ("attn", "shared_expert", "mtp", "visual")
GPTQ = {
    "quant_method": "gptq",
    "bits": 4,
    "group_size": 128,
    "desc_act": False,
    "sym": True,
    "dynamic": {"lm_head": {}, "model.language_model.embed_tokens": {}, **{f"-:.*{word}.*": {} for word in _LEFT}},
}


def compressed(weights: dict[str, Any], *ignore: str, **more: object) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": list(ignore), **more}


def nvfp4(*exclude: str) -> dict[str, Any]:
    stated = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": list(exclude)}
    return {"quantization": stated}


CHANNELS = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}
GROUPS_OF_16 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
NVFP4_EXPERTS = {
    "quant_method": "modelopt",
    "quant_algo": "NVFP4",
    "group_size": 16,
    "exclude_modules": ["lm_head", "*self_attn*", "*.mlp.*", "*block_sparse_moe.gate", "vision_tower*"],
}
_EIGHT = {"num_bits": 8, "type": "float", "group_size": 32, "strategy": "group", "scale_dtype": "torch.uint8"}
MXFP4_AND_8 = {
    "quant_method": "compressed-tensors",
    "format": "mixed-precision",
    "ignore": ["lm_head"],
    "config_groups": {
        "experts": {
            "targets": ["re:.*block_sparse_moe.experts.*"],
            "weights": {"num_bits": 4, "type": "float", "group_size": 32},
        },
        "rest": {
            "targets": ["re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|down)_proj"],
            "weights": _EIGHT,
        },
    },
}
_RED_HAT = ("lm_head", r"re:.*mlp.gate$", r"re:.*mlp.shared_expert_gate$", r"re:.*linear_attn.*", r"re:.*visual.*")

PUBLISHED = [
    # As published, with the lists of their own.
    Published("nvidia/Llama-3.1-70B-Instruct-FP8", 72_656_371_712, LLMFIT, "Llama-3.1-70B-Instruct-FP8", kv="fp8"),
    Published("nvidia/Gemma-4-31B-IT-NVFP4", 32_633_248_864, LLMFIT, "Gemma-4-31B-IT-NVFP4", kv="fp8"),
    Published("nvidia/MiniMax-M2.5-NVFP4", 134_401_312_768, LLMFIT, "MiniMax-M2.5-NVFP4", kv="fp8"),
    Published("zai-org/GLM-5-FP8", 756_131_584_896, LLMFIT, "GLM-5-FP8"),
    Published("zai-org/GLM-5.2-FP8", 703.75 * GIB, KAITO, "GLM-5.2-FP8"),
    Published("Qwen/Qwen3-235B-A22B-FP8", 236_445_455_360, LLMFIT, "Qwen3-235B-A22B-FP8"),
    Published(
        "wafer-ai/Kimi-K2.6-NVFP4",
        590e9,
        "its model card: ~590 GB, with the exceptions of nvidia/Kimi-K2.5-NVFP4",
        "Kimi-K2.5-NVFP4",
        kv="fp8",
        within=0.01,
    ),
    Published(
        "lukealonso/GLM-5.1-NVFP4",
        434 * GIB,
        "its model card: 434 GB, which are GiB; the exceptions of nvidia/GLM-5.1-NVFP4",
        "GLM-5.1-NVFP4",
        kv="fp8",
        within=0.01,
    ),
    Published("moonshotai/Kimi-K2.5", 554.32 * GIB, KAITO, config="kimi-k2.5"),
    Published("moonshotai/Kimi-K2.7-Code", 554.32 * GIB, KAITO, config="kimi-k2.7-code"),
    Published("deepseek-ai/DeepSeek-R1-0528", 641.30 * GIB, KAITO, config="deepseek-r1"),
    Published("deepseek-ai/DeepSeek-V3-0324", 641.30 * GIB, KAITO, config="deepseek-v3"),
    Published("deepseek-ai/DeepSeek-V3.2", 642.14 * GIB, KAITO, config="deepseek-v3.2"),
    Published("deepseek-ai/DeepSeek-V4-Pro", 805.34 * GIB, KAITO, config="deepseek-v4-pro", kv="fp8"),
    Published(
        "deepseek-ai/DeepSeek-V4-Flash",
        148.66 * GIB,
        "logs of github:vllm-project/vllm issues 40778, 40802 and 40821 (checkpoint size, 46 shards)",
        config="deepseek-v4-flash",
        kv="fp8",
    ),
    Published("MiniMaxAI/MiniMax-M2.7", 214.34 * GIB, KAITO, config="minimax-m2.7"),
    Published("mistralai/Mistral-Small-4-119B-2603", 112.63 * GIB, KAITO, config="mistral-small-4-119b-2603"),
    Published("openai/gpt-oss-120b", 65_248_815_744, LLMFIT, config="gpt-oss-120b"),
    Published("openai/gpt-oss-20b", 13_761_264_768, LLMFIT, config="gpt-oss-20b"),
    # The model's config, with the quantization as its publisher writes it.
    Published("Qwen/Qwen3-8B-AWQ", 5.68 * GIB, KAITO, config="qwen3-8b", quantization=AWQ),
    Published("Qwen/Qwen3.5-397B-A17B-GPTQ-Int4", 219.56 * GIB, KAITO, config="qwen3.5-397b-a17b", quantization=GPTQ),
    Published("Qwen/Qwen3.5-122B-A10B-GPTQ-Int4", 73.47 * GIB, KAITO, config="qwen3.5-122b-a10b", quantization=GPTQ),
    Published("Qwen/Qwen3.6-35B-A3B-FP8", 34.90 * GIB, KAITO, config="qwen3.5-35b-a3b", quantization=BLOCKS),
    Published("Qwen/Qwen3.5-27B-FP8", 30_869_678_304, LLMFIT, config="qwen3.5-27b", quantization=BLOCKS),
    Published(
        "Qwen/Qwen3-Next-80B-A3B-Instruct-FP8", 82_032_869_120, LLMFIT, config="qwen3-next-80b-a3b", quantization=BLOCKS
    ),
    Published(
        "Qwen/Qwen3-VL-235B-A22B-Instruct-FP8",
        237_598_232_032,
        LLMFIT,
        config="qwen3-vl-235b-a22b",
        quantization=BLOCKS,
    ),
    Published(
        "mistralai/Ministral-3-14B-Instruct-2512",
        14.65 * GIB,
        KAITO,
        config="ministral-3-14b-2512",
        quantization=FP8_STATIC,
    ),
    Published(
        "mistralai/Ministral-3-8B-Instruct-2512",
        9.70 * GIB,
        KAITO,
        config="ministral-3-8b-2512",
        quantization=FP8_STATIC,
    ),
    Published(
        "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic",
        9_083_953_152,
        LLMFIT,
        config="llama-3.1-8b",
        quantization=compressed(CHANNELS, "lm_head"),
    ),
    Published(
        "RedHatAI/Qwen3.6-35B-A3B-NVFP4",
        23.32 * GIB,
        "a public log of vLLM 0.20.0 (checkpoint size)",
        config="qwen3.5-35b-a3b",
        quantization=compressed(GROUPS_OF_16, *_RED_HAT, r"re:.*mtp.*", format="nvfp4-pack-quantized"),
    ),
    Published("nvidia/Qwen3-8B-NVFP4", 6_396_930_048, LLMFIT, config="qwen3-8b", beside=nvfp4("lm_head"), kv="fp8"),
    Published("nvidia/Qwen3-14B-NVFP4", 10_544_281_600, LLMFIT, config="qwen3-14b", beside=nvfp4("lm_head"), kv="fp8"),
    Published("nvidia/Qwen3-32B-NVFP4", 20_666_165_248, LLMFIT, config="qwen3-32b", beside=nvfp4("lm_head"), kv="fp8"),
    Published(
        "nvidia/Qwen3-30B-A3B-NVFP4",
        18_087_309_312,
        LLMFIT,
        config="qwen3-30b-a3b",
        beside=nvfp4("lm_head", *(f"model.layers.{i}.mlp.gate" for i in range(48))),
        kv="fp8",
    ),
    Published(
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5-NVFP4",
        31_072_485_376,
        LLMFIT,
        config="llama-3_3-nemotron-super-49b-v1",
        beside=nvfp4("lm_head"),
        kv="fp8",
    ),
    Published(
        "CortexLM/GLM-5.1-NVFP4-MTP",
        441e9,
        "its model card: ~441 GB, all linear layers but lm_head and the MTP layer, which is in BF16",
        config="glm-5",
        beside=nvfp4("lm_head", "model.layers.78*"),
        kv="fp8",
    ),
    Published(
        "Mapika/MiniMax-M3-NVFP4",
        256e9,
        "its model card: ~256 GB, experts in NVFP4, all else in BF16",
        config="minimax-m3",
        quantization=NVFP4_EXPERTS,
        within=0.01,  # its tower is not counted
    ),
    Published(
        "olka-fi/MiniMax-M3-MXFP4",
        221 * GIB,
        "its model card: ~221 GiB, experts in MXFP4, attention and dense parts in MXFP8",
        config="minimax-m3",
        quantization=MXFP4_AND_8,
        within=0.01,
    ),
]


def sized(row: Published, tmp_path: Path) -> Model:
    if row.folder:
        return import_file(QUANTIZED / row.folder)[0]
    config = json.loads((FOLDER / f"{row.config}.json").read_text())
    if row.quantization is not None:
        config["quantization_config"] = row.quantization
    (tmp_path / "config.json").write_text(json.dumps(config))
    if row.beside is not None:
        (tmp_path / "hf_quant_config.json").write_text(json.dumps(row.beside))
    return import_file(tmp_path)[0]


@pytest.mark.parametrize("row", PUBLISHED, ids=[row.hf_id for row in PUBLISHED])
def test_its_files_have_the_published_size(row: Published, tmp_path: Path) -> None:
    """Within a thousandth: headers of files and sizes that were rounded; a hundredth where a card says "about"."""
    model = sized(row, tmp_path)
    (checkpoint,) = model.checkpoints
    assert checkpoint.size_bytes == pytest.approx(row.size_bytes, rel=row.within), row.source
    assert model.weight_dtype == checkpoint.weight_dtype
    assert model.checkpoint_bytes(model.weight_dtype) == checkpoint.size_bytes  # what sizing reads
    assert model.kv_cache_dtype == row.kv


def elements_of_v4_flash() -> int:
    """All elements that the files of DeepSeek-V4-Flash store, by hand."""
    routed = 44 * 256 * 3 * 4096 * 2048  # 43 layers, and one of multi-token prediction
    packed = routed // 2 + routed // 32
    model = import_config(json.loads((FOLDER / "deepseek-v4-flash.json").read_text()), name="x")
    body = model.params.body + model.params.mtp_extra - 256 * 3 * 4096 * 2048
    in_fp8 = model.params.body - model.params.unquantized
    mtp_in_fp8 = 106_954_752 + 3 * 4096 * 2048 + 2 * 4096**2  # attention, shared expert, the two joining matrices
    scales = in_fp8 // 128**2 + mtp_in_fp8 // 128**2
    hashed = 3 * 129_280 * 6 + 40 * 256 + 256  # ids of experts in three layers, and the others' corrections
    return packed + body + scales + hashed + model.params.embedding + model.params.lm_head


def test_deepseek_v4_flash_to_the_element() -> None:
    """The 167 GB that some lists give are those of the release -0731, with three such layers."""
    assert elements_of_v4_flash() == 158_069_433_298  # github:AlexsJones/llmfit@4d3ab0e5015f hf_models.json


@pytest.mark.some(100)
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_every_quantizable_element_is_in_a_named_matrix(file: Path) -> None:
    """Else an exception could not be read against it."""
    try:
        decoder = decoder_of(Fields(json.loads(file.read_text()), file.name))[0]
    except CatalogError:
        return
    body = sum((layer.body for layer in decoder.layers), NOTHING) + decoder.rest
    assert sum(m.n_in * m.n_out * m.n for m in body.matrices) == body.total - body.unquantized
    for layer in decoder.layers:
        experts = sum(m.n_in * m.n_out * m.n for m in layer.experts)
        assert experts <= layer.routed <= experts * 1.01  # the rest are biases
    assert all(m.name for m in body.matrices)


BASE: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 256,
    "intermediate_size": 512,
    "moe_intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "mlp_only_layers": [0],
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
ATTENTION = 2 * 256 * 256 + 2 * 256 * 128  # of a layer
DENSE, ROUTED = 3 * 256 * 512, 4 * 3 * 256 * 128
HEAD = 256 * 1000
LINEARS = 3 * ATTENTION + DENSE + 2 * ROUTED


def size_of(quantization: dict[str, Any], beside: dict[str, Any] | None = None, **change: object) -> int:
    config = {**BASE, **change, "quantization_config": quantization}
    (checkpoint,) = import_config(config, name="x", beside=beside).checkpoints
    return checkpoint.size_bytes


PLAIN = 2 * import_config(BASE, name="x").params.total
MXFP4_BITS, NVFP4_BITS = 4 + 8 / 32, 4 + 8 / 16


def saved(n: int, bits: float) -> float:
    """Bytes that so many elements save at so many bits, scales counted in."""
    return n * (2 - bits / 8)


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        (compressed(GROUPS_OF_16, "lm_head"), saved(LINEARS, NVFP4_BITS)),
        (compressed(GROUPS_OF_16), saved(LINEARS + HEAD, NVFP4_BITS)),  # nothing leaves the output matrix alone
        (compressed(GROUPS_OF_16, "lm_head", "re:.*self_attn.*"), saved(LINEARS - 3 * ATTENTION, NVFP4_BITS)),
        (compressed(GROUPS_OF_16, "lm_head", "model.layers.1.self_attn.q_proj"), saved(LINEARS - 256**2, NVFP4_BITS)),
        (compressed(GROUPS_OF_16, "lm_head", r"re:.*layers\.(0|2)\..*"), saved(ATTENTION + ROUTED, NVFP4_BITS)),
        (
            compressed(GROUPS_OF_16, "lm_head", r"re:.*experts\.[13]\.down_proj$"),
            saved(LINEARS - 2 * 2 * 256 * 128, NVFP4_BITS),
        ),
        ({**BLOCKS, "modules_to_not_convert": ["model.layers.0"]}, saved(ATTENTION * 2 + 2 * ROUTED, 8 + 32 / 128**2)),
        ({**AWQ, "modules_to_not_convert": ["mlp"]}, saved(3 * ATTENTION, 4 + 20 / 128)),
        ({**AWQ, "group_size": 32}, saved(LINEARS, 4 + 20 / 32)),
        ({**AWQ, "bits": 8}, saved(LINEARS, 8 + 24 / 128)),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["self_attn"]}, saved(2 * ROUTED, MXFP4_BITS)),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            saved(LINEARS, 4 + (8 + 32 / 256) / 64),
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
                "model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4", "group_size": 16},
                "model.layers.1.self_attn.o_proj": {"quant_algo": "MXFP8"},
                "lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
            }},
            saved(256 * 512 + HEAD, NVFP4_BITS) + saved(256 * 256, 8 + 8 / 32),
        ),
        (
            {"quant_method": "quark", "exclude": ["lm_head", "re:.*self_attn.*"], "global_quant_config": {
                "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}}},
            saved(LINEARS - 3 * ATTENTION, MXFP4_BITS),
        ),
    ],
)  # fmt: skip
def test_bytes_by_hand(quantization: dict[str, Any], expected: float) -> None:
    assert size_of(quantization) == pytest.approx(PLAIN - expected, abs=64)  # scales of whole matrices


def test_index_keys_of_minimax_m3_have_16_bits() -> None:
    """57 of 60 layers keep 128 elements beside 4 heads of keys and values."""
    shape = import_config(json.loads((FOLDER / "minimax-m3.json").read_text()), name="x").shape()
    kept = shape["n_full_layers"] * shape["full_kv_heads"] * shape["full_kv_width"] * 2 + shape["other_bytes_per_token"]
    assert kept == 137_472


def test_experts_listed_one_by_one_are_as_those_listed_together() -> None:
    fp8 = {"quant_algo": "FP8"}
    together = {f"model.layers.{i}.mlp.experts": fp8 for i in (1, 2)}
    single = {
        f"model.layers.{i}.mlp.experts.{e}.{part}_proj": fp8
        for i in (1, 2)
        for e in range(4)
        for part in ("gate", "up", "down")
    }
    sizes = [
        size_of({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
        for layers in (together, single, {k: v for k, v in single.items() if ".experts.3." not in k})
    ]
    assert sizes[0] == sizes[1]
    assert sizes[2] == sizes[1] + 2 * (3 * 256 * 128 - 3 * 4)  # the last expert's bytes, without its scales


def test_several_groups_with_targets() -> None:
    group = {"targets": [r"re:.*self_attn\.(q|k|v|o)_proj$"], "weights": {"num_bits": 8, "type": "float"}}
    other = {"targets": ["re:.*experts.*"], "weights": GROUPS_OF_16}
    quantization = {"quant_method": "compressed-tensors", "config_groups": {"a": group, "b": other}}
    expected = PLAIN - saved(3 * ATTENTION, 8) - saved(2 * ROUTED, NVFP4_BITS)
    assert size_of(quantization) == pytest.approx(expected, abs=64)
    model = import_config({**BASE, "quantization_config": quantization}, name="x")
    assert model.weight_dtype == "nvfp4"  # of most weights


def test_gptq_says_what_differs_for_some() -> None:
    """Zero points and the order of inputs are stored whatever the config says of them."""
    bytes_of = {bits: bits / 8 + 2 / 128 + bits / 8 / 128 for bits in (4, 8)}
    order = 4 * (3 * (3 * 256 + 256) + (2 * 256 + 512) + 2 * 4 * (2 * 256 + 128))
    quantization = {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {r"+:.*self_attn.*": {"bits": 8}}}
    expected = 3 * ATTENTION * bytes_of[8] + (LINEARS - 3 * ATTENTION) * bytes_of[4] + order
    assert size_of(quantization) == pytest.approx(PLAIN - 2 * LINEARS + expected, abs=64)


def test_the_other_file_says_what_config_json_leaves_out() -> None:
    """And of two that disagree, neither is guessed to be right."""
    both = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
    model = import_config({**BASE, "quantization_config": both}, name="x", beside=nvfp4("lm_head"))
    assert (model.kv_cache_dtype, model.weight_dtype) == ("fp8", "nvfp4")
    with pytest.raises(CatalogError, match=r"quant_algo is 'FP8', but .*'NVFP4'"):
        size_of({**both, "quant_algo": "FP8"}, nvfp4("lm_head"))
    string = {"quant_algo": "FP8", "kv_cache_scheme": "FP8", "ignore": ["lm_head"]}
    assert import_config({**BASE, "quantization_config": string}, name="x").kv_cache_dtype == "fp8"


@pytest.mark.parametrize(
    ("quantization", "told"),
    [
        ({**AWQ, "modules_to_not_convert": ["model.layers.1.strange_part"]}, "names 'model.layers.1.strange_part'"),
        ({**AWQ, "modules_to_not_convert": ["re:(a+)+$"]}, "a pattern that is not read"),
        ({**AWQ, "modules_to_not_convert": [7]}, "must be names of modules"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "put the hf_quant_config.json"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP5"}, "quant_algo is 'NVFP5'"),
        (compressed({"num_bits": 3, "type": "int"}), "num_bits is 3 with type int"),
        (compressed(GROUPS_OF_16, sparsity_config={"format": "sparse-24-bitmask"}), "sparsity_config.format is"),
        (compressed(GROUPS_OF_16, format="marlin-24"), "whose sparsity is not counted"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {
                "a": {"targets": ["Linear"], "weights": GROUPS_OF_16},
                "b": {"targets": ["Linear"], "weights": CHANNELS}}},
            "has a second format for all Linear layers",
        ),
        ({"quant_method": "hqq"}, "quant_method is 'hqq'"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(quantization: dict[str, Any], told: str) -> None:
    with pytest.raises(CatalogError) as caught:
        import_config({**BASE, "quantization_config": quantization}, name="x", where="c.json")
    (line,) = caught.value.problems
    assert line.startswith("c.json: quantization_config") and told in line


def test_by_name_and_by_path_alike(catalog: Catalog, tmp_path: Path) -> None:
    """A checkpoint of the catalog has the bytes and the KV cache of its own files, whichever other one is listed."""
    listed = {c.hf_id for m in catalog.models() for c in m.checkpoints}
    both = [row for row in PUBLISHED if row.hf_id in listed]
    assert len(both) >= 25
    for i, row in enumerate(both):
        named, dtype = catalog.resolve_model(row.hf_id)
        (folder := tmp_path / str(i)).mkdir()
        ours = sized(row, folder)
        assert (dtype or named.weight_dtype) == ours.weight_dtype, row.hf_id
        assert named.checkpoint_bytes(ours.weight_dtype) == ours.checkpoint_bytes(ours.weight_dtype), row.hf_id
        assert named.kv_cache_dtype == ours.kv_cache_dtype == row.kv, row.hf_id


TWELVE = (
    "nvidia/Llama-3.1-70B-Instruct-FP8",
    "nvidia/Gemma-4-31B-IT-NVFP4",
    "deepseek-ai/DeepSeek-V4-Flash",
    "moonshotai/Kimi-K2.5",
    "nvidia/MiniMax-M2.5-NVFP4",
    "zai-org/GLM-5-FP8",
    "Qwen/Qwen3-235B-A22B-FP8",
    "deepseek-ai/DeepSeek-V3.2",
    "MiniMaxAI/MiniMax-M2.7",
    "mistralai/Mistral-Small-4-119B-2603",
    "openai/gpt-oss-120b",
    "openai/gpt-oss-20b",
)


@pytest.mark.some(3)
@pytest.mark.parametrize("hf_id", TWELVE)
def test_by_name_and_by_path_at_the_same_price(hf_id: str, tmp_path: Path) -> None:
    """Bytes, KV cache, machine and month of twelve checkpoints, which are named by their id and by their folder."""
    row = next(row for row in PUBLISHED if row.hf_id == hf_id)
    sized(row, tmp_path)
    folder = QUANTIZED / row.folder if row.folder else tmp_path
    load = {"context": 8192, "concurrent_requests": 8, "as_of": "2026-11-20"}
    by_name, by_path = (sheetgen.recommend(model=str(model), **load)["cells"][0] for model in (hf_id, folder))
    same = ("weight_dtype", "kv_cache_dtype", "weights_bytes", "kv_bytes", "instance", "n_instances", "monthly_usd")
    assert {name: by_path[name] for name in same} == {name: by_name[name] for name in same}
    assert by_name["monthly_usd"] > 0 and by_name["weights_bytes"] == pytest.approx(row.size_bytes, rel=0.02)

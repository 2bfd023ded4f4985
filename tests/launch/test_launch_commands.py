"""The printed commands: parsed back with shlex, compared with the point, and sized again from their own words."""

from __future__ import annotations

from typing import Any

import pytest
from points import ENGINES, POINTS, flags_of, model_named, read_back, speculation, words, written

import sheetgen
from sheetgen.catalog import Catalog

CASES = [(name, engine) for name in POINTS for engine in ENGINES]
REFUSED = {  # what the engine cannot be told, and why
    ("r1-dp", "lmdeploy"): "no expert parallelism",
    ("8b-pp-dp", "lmdeploy"): "no pipeline stages",
    ("70b-fp8", "lmdeploy"): "keeps no KV cache in fp8",
}
IDS = {
    "8b": "meta-llama/Llama-3.1-8B-Instruct",
    "70b-fp8": "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8",
    "gpt-oss": "openai/gpt-oss-120b",
    "r1": "deepseek-ai/DeepSeek-R1",
    "qwen3-235b": "Qwen/Qwen3-235B-A22B",
}


@pytest.mark.some(20)
@pytest.mark.parametrize(("name", "engine"), CASES)
def test_a_command_says_what_was_sized_and_holds(name: str, engine: str) -> None:
    flags, _ = written((engine,), **POINTS[name])
    flags_ = flags[engine]
    if (name, engine) in REFUSED:
        assert flags_.written is None and REFUSED[name, engine] in flags_.checked.verdict
        assert flags_.checked.verdict.startswith("does not run: ") and not flags_.checked.fits
        return
    printed = flags_.checked.printed
    assert printed is not None and printed.holds, flags_.checked.verdict
    assert printed.answer["max_num_seqs"] <= printed.quantities["sequences_in_pool"]
    settings = read_back(engine, flags_)
    ranks = printed.answer["data_parallel_size"]
    if engine == "sglang" and "--enable-dp-attention" in words(flags_):
        assert int(settings["tensor_parallel_size"]) == ranks and int(settings["max_num_seqs"]) % ranks == 0
        settings["tensor_parallel_size"] = int(settings["tensor_parallel_size"]) // ranks
        settings["max_num_seqs"] = int(settings["max_num_seqs"]) // ranks
    if engine == "tensorrt-llm" and settings.pop("data_parallel_size", None) is True:
        assert int(settings["tensor_parallel_size"]) == ranks
        settings |= {"tensor_parallel_size": 1, "data_parallel_size": ranks}
    if engine in ("tensorrt-llm", "lmdeploy"):  # so many servers of their own, or ranks that were read above
        settings.setdefault("data_parallel_size", ranks)
    for key, value in settings.items():
        expected = printed.answer[key]
        if key == "kv_cache_dtype":
            assert value == expected or {value, expected} == {"bf16", "fp16"}
        elif key != "engine":
            assert float(value) == pytest.approx(expected, abs=1e-4), key
    asked = {k: v for k, v in POINTS[name].items() if k not in ("block_size",)}
    again = sheetgen.size(**{**asked, **settings, "expert_parallel_size": 1})
    assert again["kv_pool_bytes_per_gpu"] == printed.answer["kv_pool_bytes_per_gpu"]
    assert again["kv_tokens"] == printed.answer["kv_tokens"]
    if flags_.checked.fits:
        assert again["fits"] is True, again["verdict"]


@pytest.mark.parametrize(("name", "engine"), [(n, e) for n, e in CASES if n in IDS and (n, e) not in REFUSED])
def test_the_checkpoint_of_the_precision_is_named(name: str, engine: str) -> None:
    flags, _ = written((engine,), **POINTS[name])
    assert model_named(engine, flags[engine]).removeprefix("hf://") == IDS[name]


def test_vllm_word_for_word() -> None:
    flags, _ = written(("vllm",), **POINTS["70b"])
    vllm = flags["vllm"]
    assert vllm.written is not None
    assert vllm.text(vllm.written) == (
        "vllm serve meta-llama/Llama-3.1-70B-Instruct \\\n"
        "  --tensor-parallel-size 4 \\\n"
        "  --max-model-len 16384 \\\n"
        "  --max-num-seqs 20 \\\n"
        "  --max-num-batched-tokens 8192 \\\n"
        "  --gpu-memory-utilization 0.92 \\\n"
        "  --kv-cache-dtype auto \\\n"
        "  --enable-prefix-caching"
    )


@pytest.mark.parametrize("name", POINTS)
def test_trtllm_build_has_the_same_limits(name: str) -> None:
    flags, _ = written(("tensorrt-llm",), **POINTS[name])
    tensorrt = flags["tensorrt-llm"]
    assert tensorrt.written is not None and tensorrt.checked.printed is not None
    answer = tensorrt.checked.printed.answer
    build = tensorrt.written.other.get("trtllm-build")
    if name in ("gpt-oss", "r1-dp"):
        assert build is None and any("no trtllm-build" in note for note in tensorrt.notes)
        return
    assert build is not None
    settings = build.settings
    assert (
        settings["--max_batch_size"] == answer["max_num_seqs"] and settings["--max_seq_len"] == answer["max_model_len"]
    )
    assert settings["--max_num_tokens"] == answer["max_num_batched_tokens"] and settings["--kv_cache_type"] == "paged"
    assert ("--use_fp8_context_fmha" in settings) == (name == "70b-fp8")
    if "--use_fp8_context_fmha" in settings:
        assert settings["--use_paged_context_fmha"] == "enable"


def test_a_cache_in_fp8_without_weights_in_fp8_has_no_fp8_attention_in_a_compiled_engine() -> None:
    flags, _ = written(("tensorrt-llm",), **{**POINTS["8b"], "kv_cache_dtype": "fp8"})
    written_ = flags["tensorrt-llm"].written
    assert written_ is not None
    build = written_.other["trtllm-build"]
    assert not {"--use_fp8_context_fmha", "--use_paged_context_fmha"} & set(build.settings)
    assert "--kv_cache_dtype fp8" in build.notes[0] and "reuses no blocks" in build.notes[-1]


def test_long_prompts_are_chunked_where_the_engine_would_refuse_them() -> None:
    for context, chunked in (("8k", False), ("16k", True)):
        flags, _ = written(("tensorrt-llm",), model="8b", gpu="h100", context_tokens=context)
        tensorrt = flags["tensorrt-llm"].written
        assert tensorrt is not None and tensorrt.settings["enable_chunked_prefill"] is chunked


def test_prefix_caching_off_in_each_engines_words() -> None:
    flags, _ = written(**{**POINTS["8b"], "enable_prefix_caching": 0})
    written_ = {engine: words(flags) for engine, flags in flags.items()}
    assert "--no-enable-prefix-caching" in written_["vllm"] and "--disable-radix-cache" in written_["sglang"]
    assert "--enable-prefix-caching" not in written_["lmdeploy"]
    assert "--no-enable-prefix-caching" in " ".join(written_["nim"])
    trt = flags["tensorrt-llm"].written
    assert trt is not None and trt.settings["kv_cache_config.enable_block_reuse"] is False


def test_the_kv_manager_is_turned_off_only_where_it_would_do_something() -> None:
    for model, expected in (("gemma-3-12b", True), ("8b", False)):
        flags, _ = written(("vllm",), model=model, gpu="h100", hybrid_kv_manager=0)
        assert ("--disable-hybrid-kv-cache-manager" in words(flags["vllm"])) is expected


@pytest.mark.parametrize(
    ("dtype", "engine", "expected"),
    [
        ("fp8", "vllm", {"--kv-cache-dtype": "fp8"}),
        ("fp8_e5m2", "vllm", {"--kv-cache-dtype": "fp8_e5m2"}),
        ("fp8", "sglang", {"--kv-cache-dtype": "fp8_e4m3"}),
        ("fp8_e5m2", "sglang", {"--kv-cache-dtype": "fp8_e5m2"}),
        ("int8", "lmdeploy", {"--quant-policy": "8"}),
        ("int4", "lmdeploy", {"--quant-policy": "4"}),
        ("bf16", "lmdeploy", {"--quant-policy": "0"}),
        ("auto", "sglang", {"--kv-cache-dtype": "auto"}),
    ],
)
def test_precision_of_the_cache(dtype: str, engine: str, expected: dict[str, str]) -> None:
    flags, _ = written((engine,), **{**POINTS["8b"], "kv_cache_dtype": dtype})
    assert expected.items() <= flags_of(words(flags[engine])).items()
    assert flags[engine].checked.fits


@pytest.mark.parametrize(
    ("gpu", "model", "cache", "needed"),
    [
        ("a100", "qwen3-30b-a3b", "auto", {"--moe-backend": "marlin"}),  # vllm-project/vllm#54318
        ("a100", "qwen3-8b", "auto", {}),  # no experts
        ("h100", "qwen3-30b-a3b", "fp8", {}),
        ("rtx-3090", "qwen3-8b", "fp8", {"--attention-backend": "FLASHINFER"}),  # syv-ai/qwen38-27b-rtx3090#153
        ("a100", "qwen3-30b-a3b", "fp8_e5m2", {"--moe-backend": "marlin", "--attention-backend": "FLASHINFER"}),
    ],
)
def test_backends_that_ampere_needs(gpu: str, model: str, cache: str, needed: dict[str, str]) -> None:
    point = {"model": model, "gpu": gpu, "weight_dtype": "fp8", "kv_cache_dtype": cache, "context_tokens": 4096}
    flags, _ = written(("vllm",), **point)
    backends = {k: v for k, v in flags_of(words(flags["vllm"])).items() if k.endswith("-backend")}
    assert backends == needed and len([note for note in flags["vllm"].notes if "On Ampere" in note]) == len(needed)


def test_eight_bit_integers_came_to_vllm_later() -> None:
    point = {**POINTS["8b"], "kv_cache_dtype": "int8"}
    assert written(("vllm",), **point, engine_version="0.19.0")[0]["vllm"].checked.verdict.count(", 0.20.0 does.") == 1
    later = written(("vllm",), **point)[0]["vllm"]
    assert flags_of(words(later))["--kv-cache-dtype"] == "int8_per_token_head" and later.checked.fits


def test_sparse_attention_asks_for_its_sixteen_bits() -> None:
    flags, _ = written(("vllm",), model="deepseek-v3.2", gpu="b200", tensor_parallel_size=8)
    assert flags_of(words(flags["vllm"]))["--kv-cache-dtype"] == "bfloat16"


@pytest.mark.parametrize(
    ("gpu", "version", "word"),
    [
        ("b200", "0.33.0", "bfloat16"),
        ("b300", "0.33.0", "bfloat16"),
        ("h200", "0.33.0", "auto"),
        ("b200", "0.32.0", "auto"),
    ],
)
def test_a_cache_that_the_engine_would_keep_in_fp8(gpu: str, version: str, word: str) -> None:
    point = {"model": "glm-5.3-flash", "gpu": gpu, "tensor_parallel_size": 8, "context_tokens": 8192}
    flags, _ = written(("vllm",), **point, engine="vllm", engine_version=version)
    assert flags_of(words(flags["vllm"]))["--kv-cache-dtype"] == word


def test_a_draft_in_each_engines_words() -> None:
    flags, _ = written(**POINTS["8b"], draft_model="eagle3-llama-3.1-8b")
    draft = "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3"
    assert speculation(flags["vllm"]) == {"method": "eagle3", "model": draft, "num_speculative_tokens": 3}
    settings = flags_of(words(flags["sglang"]))
    assert settings["--speculative-algorithm"] == "EAGLE3" and settings["--speculative-draft-model-path"] == draft
    assert int(settings["--speculative-num-draft-tokens"]) == int(settings["--speculative-num-steps"]) + 1
    trt = flags["tensorrt-llm"].written
    assert trt is not None and trt.settings["speculative_config.speculative_model_dir"] == draft
    assert draft in " ".join(words(flags["nim"]))
    assert "no draft model" in flags["lmdeploy"].checked.verdict
    whole = written(("vllm", "sglang"), model="70b", gpu="h200", tensor_parallel_size=4, draft_model="8b")[0]
    assert speculation(whole["vllm"])["method"] == "draft_model"
    assert flags_of(words(whole["sglang"]))["--speculative-algorithm"] == "STANDALONE"


def test_a_draft_without_an_id_is_to_be_named() -> None:
    flags, _ = written(("vllm",), model="70b", gpu="h200", tensor_parallel_size=4, draft_model="eagle3-llama-3.x-70b")
    assert speculation(flags["vllm"])["model"] == "CHECKPOINT-OF-EAGLE3-LLAMA-3.X-70B"
    assert any("has no id here" in note for note in flags["vllm"].notes)


@pytest.mark.parametrize(
    ("model", "width", "cut"),
    [
        ("qwen3-coder-480b-a35b", 2560, {8: True, 4: False}),  # 320 wide at TP 8, vllm-project/vllm#17569
        ("qwen3-235b-a22b", 1536, {8: True, 4: False}),
        ("deepseek-v3", 2048, {8: False, 16: False}),
        ("llama-3.1-70b", None, {8: False}),
    ],
)
def test_experts_whose_blocks_would_be_cut_are_dealt_out_whole(
    model: str, width: int | None, cut: dict[int, bool]
) -> None:
    """Widths are `moe_intermediate_size` of the published configs."""
    assert Catalog().model(model).expert_width == width
    for tensor_parallel_size, is_cut in cut.items():
        asked = {"model": model, "weight_dtype": "fp8", "gpu": "b200", "tensor_parallel_size": tensor_parallel_size}
        flags, _ = written(("vllm",), **asked, context_tokens=4096)
        assert ("--enable-expert-parallel" in words(flags["vllm"])) == is_cut, tensor_parallel_size


def test_other_weights_of_an_architecture_are_dealt_out_as_its_own() -> None:
    """A name of `same_architecture` has the experts, and where it is published in its precision the blocks, of the
    entry: MiniMax-M2 at TP 8 is 192 wide, which vLLM refuses to cut into blocks of 128."""
    catalog, n_whole = Catalog(), 0
    for entry in catalog.models():
        stored = [
            checkpoint
            for checkpoint in entry.own_checkpoints
            if "blocks of 128" in checkpoint.format and (entry.expert_width or 0) % 1024
        ]
        for name in entry.same_architecture if stored else ():
            dtype, other = stored[0].weight_dtype, catalog.resolve_model(name)[0]
            published = other.checkpoint(dtype)
            assert other.splits_scale_blocks(published.hf_id if published else other.hf_id, dtype, 8), name
            n_whole += 1
    assert n_whole > 3
    asked = {"weight_dtype": "fp8", "gpu": "b200", "tensor_parallel_size": 8, "context_tokens": 4096}
    for name in ("MiniMaxAI/MiniMax-M2", "minimax-m2", "Qwen/Qwen3-235B-A22B-Instruct-2507"):
        assert "--enable-expert-parallel" in words(written(("vllm",), model=name, **asked)[0]["vllm"]), name


def test_data_parallel_ranks() -> None:
    flags, _ = written(**POINTS["r1-dp"])
    vllm, sglang = flags_of(words(flags["vllm"])), flags_of(words(flags["sglang"]))
    assert vllm["--data-parallel-size"] == "8" and "--enable-expert-parallel" in vllm and vllm["--max-num-seqs"] == "8"
    assert sglang["--tp-size"] == sglang["--dp-size"] == sglang["--ep-size"] == "8"
    assert sglang["--max-running-requests"] == "64"  # of all ranks
    dense, _ = written(**{**POINTS["8b"], "data_parallel_size": 2})
    assert "--enable-expert-parallel" not in words(dense["vllm"])
    assert "--enable-dp-attention" not in words(dense["sglang"])
    for engine in ("tensorrt-llm", "lmdeploy"):
        assert any(note.startswith("start it 2 times") for note in dense[engine].notes)
    mixed, _ = written(("tensorrt-llm",), **{**POINTS["r1-dp"], "tensor_parallel_size": 2})
    assert "ranks of one GPU each alone" in mixed["tensorrt-llm"].checked.verdict


def test_nim_mounts_a_folder_and_passes_secrets_by_name(tmp_path: Any) -> None:
    flags, _ = written(("nim",), **POINTS["8b"])
    words_ = words(flags["nim"])
    assert words_[:3] == ["docker", "run", "--rm"] and words_[-1].endswith(":2.0.3")
    assert [words_[i + 1] for i, w in enumerate(words_) if w == "-e" and "=" not in words_[i + 1]] == [
        "NGC_API_KEY",
        "HF_TOKEN",
    ]
    env = flags["nim"].written
    assert env is not None and env.env["NIM_MAX_MODEL_LEN"] == "8192" and env.env["NIM_KVCACHE_PERCENT"] == "0.9"


def test_words_of_another_engine_are_not_taken_over() -> None:
    point = {**POINTS["8b"], "engine": "vllm", "engine_version": "0.19.1", "gpu_memory_utilization": 0.7}
    flags, _ = written(**point)
    assert flags_of(words(flags["vllm"]))["--gpu-memory-utilization"] == "0.7"
    assert flags["vllm"].name == "vLLM 0.19.1"
    assert flags_of(words(flags["sglang"]))["--mem-fraction-static"] == "0.834"
    assert any(note.startswith("gpu_memory_utilization 0.7 ") and "0.834" in note for note in flags["sglang"].notes)
    everywhere, _ = written(**{k: v for k, v in point.items() if not k.startswith("engine")})
    assert flags_of(words(everywhere["sglang"]))["--mem-fraction-static"] == "0.7"


def test_a_pool_in_bytes_in_each_engines_words() -> None:
    """6 GiB are 49,152 tokens of 128 KiB: in bytes, tokens, or blocks of 64."""
    flags, _ = written(**{**POINTS["8b"], "kv_cache_dtype": "bf16", "kv_cache_memory_bytes": 6 << 30})
    assert flags_of(words(flags["vllm"]))["--kv-cache-memory-bytes"] == str(6 << 30)
    assert flags_of(words(flags["sglang"]))["--max-total-tokens"] == "49152"
    assert flags_of(words(flags["lmdeploy"]))["--cache-max-entry-count"] == "768"
    nim = flags["nim"].written
    assert nim is not None and f"--kv-cache-memory-bytes {6 << 30}" in nim.env["NIM_PASSTHROUGH_ARGS"]

"""Which checkpoint a command names, and hostile names of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from points import ENGINES, flags_of, model_named, words, written

from sheetgen.errors import ScenarioError

CONFIG = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8,
    "num_key_value_heads": 2, "intermediate_size": 2816, "vocab_size": 32000, "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16", "architectures": ["LlamaForCausalLM"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"model": "8b"}, "meta-llama/Llama-3.1-8B-Instruct"),
        ({"model": "meta-llama/llama-3.1-70b"}, "meta-llama/Llama-3.1-70B"),
        ({"model": "8b", "weight_dtype": "fp8"}, "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic"),
        (
            {"model": "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic"},
            "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic",
        ),
        ({"model": "qwen3-235b", "weight_dtype": "fp8"}, "Qwen/Qwen3-235B-A22B-FP8"),
        ({"model": "8b", "weight_dtype": "int4"}, "INT4-CHECKPOINT-OF-Llama-3.1-8B-Instruct"),
        ({"model": "100b", "gpu": "b200", "weight_dtype": "fp8"}, "FP8-CHECKPOINT-OF-reference-100b"),
        # a quantized checkpoint of Llama 3.1 is none of the distilled model's
        (
            {"model": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "weight_dtype": "int4"},
            "INT4-CHECKPOINT-OF-DeepSeek-R1-Distill-Llama-8B",
        ),
    ],
)
def test_the_model_named(asked: dict[str, str], expected: str) -> None:
    flags, _ = written(("vllm",), **{"gpu": "h200", "tensor_parallel_size": 4, **asked})
    vllm = flags["vllm"]
    assert model_named("vllm", vllm) == expected
    assert any("in place of" in note for note in vllm.notes) == ("CHECKPOINT-OF" in expected)


def test_sixteen_bits_of_the_other_kind() -> None:
    for engine, flag, word in (("vllm", "--dtype", "float16"), ("sglang", "--dtype", "float16")):
        flags, _ = written((engine,), model="8b", gpu="h100", weight_dtype="fp16")
        assert flags_of(words(flags[engine]))[flag] == word
    trt = written(("tensorrt-llm",), model="8b", gpu="h100", weight_dtype="fp16")[0]["tensorrt-llm"].written
    assert trt is not None and trt.settings["dtype"] == "float16"


def test_an_engine_quantizes_while_it_loads_where_the_sixteen_bits_pass_through() -> None:
    fits, _ = written(("vllm", "tensorrt-llm"), model="yi-1.5-9b", gpu="h100", weight_dtype="fp8")
    assert flags_of(words(fits["vllm"]))["--quantization"] == "fp8"
    assert model_named("vllm", fits["vllm"]) == "01-ai/Yi-1.5-9B-Chat"
    assert model_named("tensorrt-llm", fits["tensorrt-llm"]) == "FP8-CHECKPOINT-OF-Yi-1.5-9B-Chat"
    large, _ = written(("vllm",), model="kimi-dev-72b", gpu="h200", weight_dtype="fp8")
    assert "--quantization" not in words(large["vllm"]) and model_named("vllm", large["vllm"]).startswith("FP8-CHECK")


def test_four_bits_for_turbomind() -> None:
    flags, _ = written(("lmdeploy",), model="Qwen/Qwen2.5-7B-Instruct-AWQ", gpu="l4")
    assert flags_of(words(flags["lmdeploy"]))["--model-format"] == "awq"
    assert written(("lmdeploy",), model="gpt-oss-20b", gpu="l40s")[0]["lmdeploy"].written is not None


@pytest.mark.some(8)
@pytest.mark.parametrize(
    "name", ["plain", "a b", "it's; rm -rf $HOME", "$(reboot)`id`", "--gpu", 'quo"te,comma', "-x", "日本"]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_folders_are_one_word(name: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps(CONFIG))
    for typed in (str(tmp_path / name), f"./{name}", str(tmp_path / name / "config.json")):
        flags = written((engine,), model=typed, gpu="l40s")[0][engine]
        assert flags.written is not None
        parts = words(flags)
        if engine == "nim":
            mount = parts[parts.index("--mount") + 1]
            assert (tmp_path / name).name.replace('"', '""') in mount and "NIM_MODEL_PATH=/opt/model" in parts
            continue
        named = model_named(engine, flags)
        assert not named.startswith("-") and Path(named).resolve() == (tmp_path / name).resolve()
        assert flags.text(flags.written).replace("\n", "").isprintable()


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["new\nline", "esc\x1b[31m", "bidi\u202e", "ta\tb"])
def test_characters_that_do_not_show_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(ScenarioError, match="holds a control character") as raised:
        written(("vllm",), model=str(tmp_path / name), gpu="l40s")
    assert str(raised.value).isprintable()


def test_a_listed_name_is_no_folder_whatever_lies_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "8b").mkdir()
    (tmp_path / "8b" / "config.json").write_text(json.dumps(CONFIG))
    flags, _ = written(("vllm",), model="8b", gpu="h100")
    assert model_named("vllm", flags["vllm"]) == "meta-llama/Llama-3.1-8B-Instruct"


def test_an_id_of_a_stranger_is_quoted() -> None:
    flags, _ = written(("vllm", "nim"), model="$(reboot)/Llama-3.1-8B-Instruct", gpu="h100")
    assert model_named("vllm", flags["vllm"]) == "$(reboot)/Llama-3.1-8B-Instruct"
    nim = flags["nim"]
    assert nim.written is not None
    assert "'NIM_MODEL_PATH=hf://$(reboot)/Llama-3.1-8B-Instruct'" in nim.text(nim.written)

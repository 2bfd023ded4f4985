"""Which model a name means, and in which precision."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.model import stem
from sheetgen.errors import CatalogError, UnknownNameError
from sheetgen.input_files import read_bounded

RESOLVED = """
8b                                                    llama-3.1-8b
70b                                                   llama-3.1-70b
405b                                                  llama-3.1-405b
49b                                                   llama-3_3-nemotron-super-49b-v1
100b                                                  reference-100b
LLAMA-3.1-8B                                          llama-3.1-8b
meta-llama/Meta-Llama-3.1-8B-Instruct                 llama-3.1-8b
meta-llama/Llama-3.1-8B                               llama-3.1-8b
unsloth/Meta-Llama-3.1-8B                             llama-3.1-8b
meta-llama/Llama-2-7b-chat-hf                         llama-2-7b
meta-llama/Meta-Llama-3-8B-Instruct                   llama-3-8b
google/gemma-3-12b-it                                 gemma-3-12b
Qwen/Qwen2.5-7B-Instruct                              qwen2.5-7b
Qwen/Qwen3-8B-Base                                    qwen3-8b
mistralai/Mistral-Small-24B-Instruct-2501             mistral-small-24b-2501
deepseek-ai/DeepSeek-R1-Distill-Llama-8B              llama-3.1-8b
deepseek-ai/DeepSeek-R1-0528                          deepseek-r1            fp8
nvidia/Llama-3_3-Nemotron-Super-49B-v1_5              llama-3_3-nemotron-super-49b-v1
openai/gpt-oss-120b                                   gpt-oss-120b
moonshotai/Kimi-K2.5                                  kimi-k2.5
eagle3-llama-3.x-70b                                  eagle3-llama-3.x-70b
RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic       llama-3.1-8b           fp8
redhatai/meta-llama-3.1-70b-instruct-fp8-dynamic      llama-3.1-70b          fp8
neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w8a8 llama-3.1-8b           int8
RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16       llama-3.3-70b          int4
RedHatAI/Qwen3-8B-quantized.w8a16                     qwen3-8b               int8
nvidia/Llama-3.1-405B-Instruct-FP8                    llama-3.1-405b         fp8
amd/Llama-3.1-405B-Instruct-FP8-KV                    llama-3.1-405b         fp8
nvidia/Llama-3.3-70B-Instruct-NVFP4                   llama-3.3-70b          nvfp4
nvidia/DeepSeek-R1-0528-NVFP4-v2                      deepseek-r1            nvfp4
nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8             nvidia-nemotron-3-nano-30b-a3b-bf16 fp8
Qwen/Qwen2.5-72B-Instruct-AWQ                         qwen2.5-72b            int4
Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4                    qwen2.5-7b             int4
Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8                    qwen2.5-7b             int8
hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4  llama-3.1-405b         int4
TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ              mixtral-8x7b-v0.1      int4
unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit           llama-3.1-8b           int4
amd/Llama-3.3-70B-Instruct-MXFP4                      llama-3.3-70b          mxfp4
Qwen/Qwen3.6-27B-FP8                                  qwen3.6-27b            fp8
8b-fp8                                                llama-3.1-8b           fp8
"""


@pytest.mark.parametrize("line", RESOLVED.strip().splitlines(), ids=lambda line: line.split()[0])
def test_resolved(catalog: Catalog, line: str) -> None:
    name, model_id, *dtype = line.split()
    model, weight_dtype = catalog.resolve_model(name)
    assert (model.entry_id, weight_dtype) == (model_id, dtype[0] if dtype else None)
    assert catalog.model(f"  {name} ") == model


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lama-3.1-8b", ["'lama-3.1-8b' is not in the catalogs", "llama-3.1-8b"]),
        ("mistral-small", ["mistral-small-2409", "mistral-small-24b-2501"]),
        ("qwen3", ["qwen3-8b", "and others"]),
        ("falcon-40", ["Did you mean falcon-40b?"]),
        ("zzzz", ["is not in the catalogs. One of your own is read with --catalogs DIR.", "sheetgen list models"]),
        ("", ["is not in the catalogs"]),
        ("no/such-model", ["There is no such file or folder either."]),
        (__file__, ["The file is no config.json."]),
        ("x/" + "x" * 10_000, ["There is no such file or folder either."]),
        ("x" * 10_000, ["is not in the catalogs", "…"]),
        ("a\x00b\x1b[31m", ["\\x00", "\\x1b"]),
        ("file:///etc/passwd", ["is not in the catalogs"]),
    ],
)
def test_not_resolved(catalog: Catalog, name: str, words: list[str]) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.model(name)
    assert len(caught.value.problems) == 1
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_context_follows_the_name(catalog: Catalog) -> None:
    assert catalog.model("qwen3-235b-a22b").max_context_tokens == 40_960
    for name in ("Qwen/Qwen3-235B-A22B-Instruct-2507", "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8"):
        assert catalog.model(name).max_context_tokens == 262_144


def test_one_model_reads_two_files(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def counting(path: Path, most_bytes: int, pipes: bool) -> bytes:
        opened.append(path.name)
        return read_bounded(path, most_bytes, pipes=pipes)

    monkeypatch.setattr("sheetgen.catalog.base.read_bounded", counting)
    fresh = Catalog()
    assert opened == []
    fresh.model("8b")
    assert opened == ["index.yaml", "llama-3.1-8b.yaml"]
    fresh.model("8b")
    fresh.gpu("h100")
    assert opened == ["index.yaml", "llama-3.1-8b.yaml", "nvidia-h100-sxm5-80gb.yaml"]


def test_models_of_a_size_are_read_alone(tmp_path: Path) -> None:
    shipped = default_folder() / "models" / "llama-3.1-70b.yaml"
    (tmp_path / "models").mkdir()
    own = shipped.read_text(encoding="utf-8").replace("id: llama-3.1-70b", "id: acme-70b")
    own = re.sub(r"(?ms)^(aliases|hf_id|same_architecture|checkpoints):.*?(?=^\w|\Z)", "", own)
    (tmp_path / "models" / "acme-70b.yaml").write_text(own, encoding="utf-8")
    fresh = Catalog(tmp_path)
    total = fresh.model("70b").params.total
    near = [model.id for model in fresh.models_of_size(total, 0.35)]
    assert near == [model.id for model in Catalog(tmp_path).models() if abs(model.params.total / total - 1) <= 0.35]
    assert near[-1] == "acme-70b" and len(near) < len(fresh.ids("models")) / 5


@pytest.mark.parametrize(
    ("name", "smaller"),
    [
        ("gpt-oss-120b", "gpt-oss-20b"),
        ("405b", "llama-3.1-70b"),
        ("8b", None),  # a draft of a series is no smaller model of it
        ("llama-2-7b", None),
        ("deepseek-v3", None),
    ],
)
def test_the_next_smaller_model_of_a_series(catalog: Catalog, name: str, smaller: str | None) -> None:
    model = catalog.next_smaller(catalog.model(name))
    assert (model and model.id) == smaller


def test_checkpoint_sizes(catalog: Catalog) -> None:
    model = catalog.model("8b")
    assert (
        model.checkpoint_bytes("fp8") == 9_083_953_152
    )  # RedHatAI's before nvidia's, which has scales of the KV cache
    assert model.checkpoint_bytes("int4") == 5_727_854_592
    assert model.checkpoint_bytes("nvfp4") == 0
    assert catalog.model("gpt-oss-120b").checkpoint_bytes("mxfp4") == 65_248_815_744
    assert catalog.model("qwen3-8b").checkpoint_bytes("fp8") == 9_437_399_040


@pytest.mark.parametrize(
    "name",
    ["mimo-v2.5-pro", "poolside/Laguna-M.1", "nvidia/DeepSeek-V4.1-Flash-NVFP4", "inclusionAI/Ling-2.6-1T"],
)
def test_a_model_known_by_its_size_alone_is_refused_with_the_reason(catalog: Catalog, name: str) -> None:
    if catalog.lists_model(stem(name)):
        pytest.skip("has been entered")
    with pytest.raises(UnknownNameError) as caught:
        catalog.resolve_model(name)
    problem = caught.value.problems[0]
    assert f"model '{name}' is not in the catalogs: Published by size" in problem
    counted = name.startswith(("poolside", "inclusionAI"))  # their families are: a config.json would do
    assert ("catalog import" in problem) == counted

"""The precision that one deploys: what `recommended` stands for, what is launched, and the answer as published."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from answers import document, recommend_text
from option_values import Options

import sheetgen
from sheetgen.answer.answer_record import Record
from sheetgen.answer.recording import record_of
from sheetgen.api import recommended, sheet_record, size_columns
from sheetgen.api import record as point_record
from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.engines import load_engine
from sheetgen.errors import ScenarioError
from sheetgen.launch.flags import flags_for
from sheetgen.launch.recommended import launches
from sheetgen.question.deployment import DEFAULTS
from sheetgen.question.precision import has_deployed, recommended_weights
from sheetgen.question.sheet_question import ask
from sheetgen.report.precision_words import weights_reason
from sheetgen.report.wording import weights_name
from sheetgen.units import DEFAULT_WEIGHTS, rate_text

# Models of 16 bits with an FP8 checkpoint, of all families that the catalogs have; and some that have none.
DEPLOYED = (
    "8b", "70b", "405b", "gemma-3-27b", "qwen3-235b", "qwen3-next-80b-a3b", "qwen3.5-35b-a3b", "glm-4.5-air",
    "llama-4-scout", "phi-4", "nvidia-nemotron-nano-9b-v2", "laguna-s-2.1",
)  # fmt: skip
AS_IS = ("deepseek-v3", "gpt-oss-120b", "seed-oss-36b")


@functools.cache
def catalog() -> Catalog:
    return Catalog()


@functools.cache
def answer(model: str, weight_dtype: str = "recommended", **more: object) -> dict[str, Any]:
    asked = {"model": model, "context": "16k", "concurrent_requests": 16, "as_of": "2026-11-20", **more}
    return sheetgen.recommend(**asked, weight_dtype=weight_dtype)


def entries() -> Iterator[dict[str, Any]]:
    """The models' files as they are written."""
    for path in sorted((default_folder() / "models").glob("*.yaml")):
        yield yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


def test_the_rule_over_the_whole_catalog() -> None:
    """FP8 where the weights have 16 bits and an FP8 checkpoint of these weights is listed; 17 models of 352 had one
    before the list of those that are deployed was entered."""
    engine, h100 = load_engine(catalog(), "vllm", None), catalog().gpu("h100")
    expected, wide = set(), 0
    for entry in entries():
        if entry["weight_dtype"] in ("bf16", "fp16"):
            wide += 1
            checkpoints = [
                checkpoint
                for checkpoint in entry.get("checkpoints") or ()
                if checkpoint["weight_dtype"] == "fp8" and checkpoint["hf_id"]
            ]
            expected |= {entry["id"]} if any("of" not in checkpoint for checkpoint in checkpoints) else set()
    models = set()
    for model in catalog().models():
        dtype = recommended_weights(model, model.weight_dtype, engine, (h100,), catalog())
        if dtype != model.weight_dtype:
            assert dtype == "fp8"
            models.add(model.id)
    assert models == expected
    assert len(models) >= 123 and wide >= 346


def test_only_what_runs_and_loads_is_recommended() -> None:
    model = catalog().model("8b")
    vllm, llama_cpp = (load_engine(catalog(), name, None) for name in ("vllm", "llama.cpp"))

    def command_of(engine: Any, *gpus: str) -> str:
        return recommended_weights(model, "bf16", engine, [catalog().gpu(name) for name in gpus], catalog())

    assert command_of(vllm, "a100") == "fp8", "weights alone"
    assert command_of(vllm, "t4") == "bf16" and command_of(vllm, "t4", "l4") == "fp8"
    assert command_of(llama_cpp, "h100") == "bf16"


def test_a_derivative_has_its_own_checkpoint_or_none() -> None:
    """A checkpoint of Llama 3.3 is none of the model distilled into its shape."""
    for name, expected in (
        ("Qwen/Qwen3.6-35B-A3B", "Qwen/Qwen3.6-35B-A3B-FP8"),
        ("qwen3.6-35b-a3b", "Qwen/Qwen3.6-35B-A3B-FP8"),
        ("qwen3.5-35b-a3b", "Qwen/Qwen3.5-35B-A3B-FP8"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "RedHatAI/DeepSeek-R1-Distill-Llama-70B-FP8-dynamic"),
        ("NousResearch/Hermes-3-Llama-3.1-70B", None),
        ("meta-llama/Llama-3.3-70B-Instruct", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"),
    ):
        model = catalog().model(name)
        checkpoint = model.checkpoint("fp8")
        if expected == "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic":
            assert checkpoint is not None and checkpoint.of is None
        else:
            assert (checkpoint and checkpoint.hf_id) == expected


def test_size_takes_what_was_published_and_auto_is_its_old_name() -> None:
    sized = [sheetgen.size(model="70b", gpu="h100", **more)["weight_dtype"] for more in (
        {}, {"weight_dtype": "auto"}, {"weight_dtype": "published"}, {"weight_dtype": "recommended"})]  # fmt: skip
    assert sized == ["bf16", "bf16", "bf16", "fp8"]
    assert ask(catalog(), {"models": "8b"}).settings.weight_dtype == DEFAULT_WEIGHTS
    assert ask(catalog(), {"models": "8b", "weight_dtype": "auto"}).settings.weight_dtype == "published"
    with pytest.raises(ScenarioError, match="Allowed: auto, bf16"):
        ask(catalog(), {"models": "8b", "kv_cache_dtype": "recommended"})


@pytest.mark.some(2)
@pytest.mark.parametrize("model", (*DEPLOYED, *AS_IS))
def test_beside_it_stands_the_answer_as_published(model: str) -> None:
    """As if the question were asked with the published weights."""
    recommended, published = answer(model), answer(model, "published")
    assert published["as_published"] is None and published["weight_dtype"] == catalog().model(model).weight_dtype
    assert recommended["kv_cache_dtype"] == published["kv_cache_dtype"], "weights alone"
    if model in AS_IS:
        assert recommended["as_published"] is None
        assert (recommended["weight_dtype"], recommended["monthly_usd"]) == (
            published["weight_dtype"],
            published["monthly_usd"],
        )
        return
    assert recommended["weight_dtype"] == "fp8"
    expected = {name: published[name] for name in ("weight_dtype", "instance", "n_instances", "monthly_usd")}
    assert recommended["as_published"] == expected
    assert recommended["weights_bytes"] < 0.75 * published["weights_bytes"]


@pytest.mark.some(2)
@pytest.mark.parametrize("model", (*DEPLOYED, *AS_IS))
def test_the_launch_names_the_checkpoint_and_sets_sixteen_bits_outright(model: str) -> None:
    record, command = launched(model)
    cell = record.cells[0]
    assert command[:3] == ("vllm", "serve", cell.checkpoint)
    position = command.index("--kv-cache-dtype")
    chooses_fp8 = "deepseek-v3.2" in model
    assert command[position + 1] == ("auto" if model in AS_IS and not chooses_fp8 else "bfloat16")
    listed = {checkpoint.hf_id: checkpoint for checkpoint in record.models[0].checkpoints}
    assert model in AS_IS or listed[cell.checkpoint].weight_dtype == "fp8"


def launched(model: str, **more: object) -> tuple[Record, tuple[str, ...]]:
    """The record of an answer, and the words of its command."""
    asked = {"model": model, "context": "16k", "concurrent_requests": 16, "weight_dtype": "recommended", **more}
    solved = recommended({**asked, "as_of": "2026-11-20"}, catalog())
    record = record_of(solved)
    flags = launches(record, solved.question, ("vllm",), catalog())[0].flags["vllm"]
    assert flags.written is not None
    return record, tuple(word for group in flags.written.groups for word in group)


def test_every_recommended_checkpoint_is_what_is_launched() -> None:
    """Of every model of the catalog that is recommended in FP8, on GPUs that hold it."""
    asked, expected = [], []
    for entry in entries():
        model = catalog().model(entry["id"])
        if has_deployed(model, model.weight_dtype):
            checkpoint = model.checkpoint("fp8")
            assert checkpoint is not None
            expected.append(checkpoint.hf_id)
            asked.append({"model": model.id, "gpu": "b300", "tensor_parallel_size": 4, "weight_dtype": "recommended"})
    assert len(asked) >= 123
    columns = {name: [row.get(name) for row in asked] for name in ("model", "gpu", *DEFAULTS)}
    sized = size_columns(columns, len(asked), catalog())
    sound = [i for i in range(len(asked)) if sized.points.errors[i] is None]
    assert len(sound) >= 45, "all but those whose heads four GPUs cannot share"
    flags = flags_for(("vllm",), [(asked[i], point_record(sized, i)) for i in sound], catalog())
    words = [by_engine["vllm"].checkpoint.word for by_engine, _ in flags]
    assert words == [expected[i] for i in sound]
    for by_engine, _ in flags:
        written = by_engine["vllm"].written
        assert written is None or written.settings["--kv-cache-dtype"] == "bfloat16"


def test_only_a_named_checkpoint_keeps_its_own_cache() -> None:
    """Laguna's FP8 checkpoint states an FP8 cache: chosen by its precision it is served with 16 bits."""
    record, command = launched("laguna-s-2.1")
    assert (record.cells[0].kv_cache_dtype, record.cells[0].checkpoint) == ("bf16", "poolside/Laguna-S-2.1-FP8")
    named, words = launched("poolside/Laguna-S-2.1-FP8")
    assert (named.cells[0].kv_cache_dtype, named.cells[0].as_published) == ("fp8", None)
    caches = [words[words.index("--kv-cache-dtype") + 1] for words in (command, words)]
    assert caches == ["bfloat16", "fp8"] and words[2] == command[2]


def test_a_checkpoint_without_scales_goes_first() -> None:
    for model in catalog().models():
        checkpoints = [
            checkpoint
            for checkpoint in model.checkpoints
            if checkpoint.weight_dtype == "fp8" and checkpoint.hf_id and checkpoint.of is None
        ]
        first = model.checkpoint("fp8")
        if first is not None and any(checkpoint.kv_cache_dtype is None for checkpoint in checkpoints):
            assert first.kv_cache_dtype is None, model.id


def test_sizes_by_precision() -> None:
    """Published figures: Llama 3.1 70B keeps 327,680 bytes a token in 16 bits, and weighs 141,107,412,992 bytes."""
    asked = {"model": "70b", "context": "16k", "concurrent_requests": 16, "weight_dtype": "recommended"}
    record = document(recommended({**asked, "as_of": "2026-11-20"}, catalog()))
    [model], [cell] = record["models"], record["cells"]
    assert model["weights_bytes"]["bf16"] == 141_107_412_992
    assert model["weights_bytes"]["fp8"] == cell["weights_bytes"]
    assert model["kv_bytes_per_token"] == {"bf16": 327_680, "fp8": 163_840}
    assert cell["kv_bytes_by_dtype"] == {"bf16": cell["kv_bytes"], "fp8": cell["kv_bytes"] // 2}
    assert cell["kv_bytes"] == 16 * 16_384 * 327_680


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "model,context,at_once",
    [("70b", "16k", 32), ("gemma-3-27b", "32k", 8), ("deepseek-v3", "16k", 32), ("qwen3-next-80b-a3b", "16k", 32),
     ("gpt-oss-120b", "16k", 16), ("kimi-k3", "16k", 1)],
)  # fmt: skip
def test_the_log_is_that_of_one_replica(model: str, context: str, at_once: int) -> None:
    """As `size` has it of a replica started for all that it serves within the targets: full attention, windows,
    latents, states."""
    asked = {"model": model, "context": context, "weight_dtype": "published"}
    answer = sheetgen.recommend(**asked, concurrent_requests=at_once)
    sizes = {name: answer[name] for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")}
    ranks = sizes["tensor_parallel_size"] * sizes["data_parallel_size"] if sizes["data_parallel_size"] > 1 else 1
    sized = sheetgen.size(
        **asked,
        gpu=answer["gpu"],
        concurrent_requests=answer["requests_per_replica"],
        max_num_seqs=int(answer["served_at_target"]) // answer["n_replicas"] // sizes["data_parallel_size"],
        expert_parallel_size=ranks,
        **sizes,
    )
    assert answer["log"] == {name: sized[name] for name in ("kv_pool_bytes_per_gpu", "kv_tokens", "max_concurrency")}


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "model,asked",
    [
        ("8b", {"context": "4k", "requests_per_second": 20, "confidence": 0.7}),
        ("gemma-3-27b", {"context": "16k", "users": 200}),
        ("70b", {"context": "16k", "concurrent_requests": 32, "purchase": "spot", "survive": "machine"}),
    ],
)
def test_as_published_at_rates_confidences_and_in_other_classes(model: str, asked: Options) -> None:
    recommended, published = (
        sheetgen.recommend(model=model, weight_dtype=w, **asked) for w in ("recommended", "published")
    )
    expected = {name: published[name] for name in ("weight_dtype", "instance", "n_instances", "monthly_usd")}
    assert recommended["as_published"] == expected and recommended["monthly_usd"] <= published["monthly_usd"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"model": "70b", "concurrent_requests": 32, "gpus": "l40s"}, "memory holds it, and nothing meets the targets"),
        ({"model": "405b", "concurrent_requests": 4, "instances": "aws/p5.48xlarge"}, "no memory holds it"),
    ],
)
def test_what_fails_as_published_is_said(asked: Options, words: str) -> None:
    """Four L40S hold Llama 3.1 70B in BF16 and a request of 16k (`size`); 8 H100 do not hold 405B in BF16."""
    solved = recommended({"context": "16k", "as_of": "2026-11-20", "span_machines": "never", **asked}, catalog())
    gpu, count = ("l40s", 4) if "gpus" in asked else ("h100", 8)
    fits = sheetgen.size(model=asked["model"], gpu=gpu, tensor_parallel_size=count, context_tokens=16384)["fits"]
    assert fits == words.startswith("memory") and words in recommend_text(solved)


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("model", "weight_dtype", "ways"),
    [
        ("qwen3-32b", "int4", "test the quality"),
        ("olmo-2-1124-13b", "fp8", "the engine's own FP8"),
        ("kimi-k2", "nvfp4", "test the quality"),
        ("deepseek-v3", "bf16", "convert it"),
        ("qwen3-8b", "int4", None),  # an AWQ checkpoint is known
        ("8b", "recommended", None),
        ("8b", "fp16", None),  # of 16 bits, which engines read as any
        ("100b", "int4", None),  # no real model
    ],
)
def test_the_question_says_where_no_checkpoint_of_a_precision_is_known(
    model: str, weight_dtype: str, ways: str | None
) -> None:
    asked = {"model": model, "concurrent_requests": 2, "weight_dtype": weight_dtype, "as_of": "2026-11-20"}
    answer = recommended(asked, catalog())
    [question, *_] = recommend_text(answer).split("\n")
    [cell] = record_of(answer).cells
    assert ("none in our catalog" in question) == (ways is not None) and (ways or "") in question
    if ways:
        assert cell.checkpoint is None


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("model", "weight_dtype", "name"),
    [
        ("deepseek-v4-flash", "fp8", "FP4 experts, FP8 rest"),
        ("deepseek-v4-pro", "fp8", "FP4 experts, FP8 rest"),
        ("gpt-oss-120b", "mxfp4", "MXFP4 experts, BF16 rest"),
        ("gpt-oss-120b", "fp8", "FP8"),  # of which no checkpoint mixes two
        ("kimi-k2.5", "int4", "INT4 experts, BF16 rest"),
        ("deepseek-v3", "fp8", "FP8"),
    ],
)
def test_a_checkpoint_that_mixes_precisions_is_called_by_both(model: str, weight_dtype: str, name: str) -> None:
    entry = catalog().model(model)
    assert weights_name(entry, weight_dtype) == name
    asked = {"model": model, "concurrent_requests": 2, "weight_dtype": weight_dtype, "as_of": "2026-11-20"}
    [question, *_] = recommend_text(recommended(asked, catalog())).split("\n")
    assert name in question


def test_every_published_checkpoint_with_experts_of_their_own_precision_states_the_mix() -> None:
    """By its format in words, of which no name is made."""
    listed = [checkpoint for entry in catalog().models() for checkpoint in entry.checkpoints]
    assert len([checkpoint for checkpoint in listed if checkpoint.mix]) >= 9
    assert [checkpoint.hf_id for checkpoint in listed if "experts" in checkpoint.format and not checkpoint.mix] == []


@pytest.mark.parametrize(
    ("model", "gpu", "kept"),
    [
        ("deepseek-v3", "a100", False),  # latents below SM89: vllm-project/vllm pull request 47060
        ("kimi-k2", "a100", False),
        ("kimi-linear-48b-a3b", "rtx-3090", False),
        ("kimi-linear-48b-a3b", "l40s", True),
        ("deepseek-v3", "h100", True),
        ("70b", "a100", True),  # keys and values of heads
    ],
)
def test_fp8_latents_are_kept_from_sm89_on(model: str, gpu: str, kept: bool) -> None:
    for dtype in ("fp8", "fp8_e5m2"):
        why = load_engine(catalog(), "vllm", None).no_kv(catalog().gpu(gpu), dtype, catalog().model(model))
        assert (why is None) == kept, why
    sized = sheetgen.size(model=model, gpu=gpu, kv_cache_dtype="fp8", weight_dtype="int4", tensor_parallel_size=8)
    assert ("no latents in fp8" in sized["verdict"]) != kept


def test_an_fp8_cache_is_no_way_to_pay_less_where_latents_are_not_kept_so() -> None:
    asked = {"model": "deepseek-v3", "weight_dtype": "int4", "context": "32k", "concurrent_requests": 256}
    levers = {
        gpu: {lever["lever"] for lever in sheetgen.recommend(**asked, gpus=gpu, as_of="2026-11-20")["levers"]}
        for gpu in ("a100", "h100")
    }
    assert "fp8-kv-cache" not in levers["a100"] and "fp8-kv-cache" in levers["h100"]


def test_what_the_recommended_weights_buy_at_the_same_price() -> None:
    """Of the same machines they serve more requests, and more surely, as a question for the published weights says."""
    asked = {"model": "70b", "users": 20, "input_tokens": 15_360, "output_tokens": 1024, "as_of": "2026-11-30"}
    solved = recommended(asked, catalog())
    [cell] = sheet_record(solved).cells
    published, [as_asked] = (
        cell.as_published,
        sheet_record(recommended({**asked, "weight_dtype": "published"}, catalog())).cells,
    )
    assert published is not None and published.monthly_usd == as_asked.answer.monthly_usd == cell.answer.monthly_usd
    assert published.served_at_target == pytest.approx(as_asked.answer.served_at_target, rel=1e-9)
    assert published.served_at_target < cell.answer.served_at_target
    reason = weights_reason(solved.question, cell)
    for served in (cell.answer.served_at_target, published.served_at_target):
        assert rate_text(served) in reason

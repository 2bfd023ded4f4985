"""A command that does not fit is told, with the flag values that would: each of them sized, none guessed."""

from __future__ import annotations

import pytest
from option_values import Options
from points import ENGINES, POINTS, catalog, flags_of, words, written

import sheetgen
from sheetgen.launch.flag_check import left_outside_bytes_per_gpu, needed_outside_bytes_per_gpu
from sheetgen.launch.flag_check import sequences_in_tokens as in_tokens
from sheetgen.launch.flags import Flags, flags_record

TIGHT = {"model": "70b", "gpu": "h100", "tensor_parallel_size": 4, "context_tokens": "16k", "concurrent_requests": 32}


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_too_many_requests(engine: str) -> None:
    flags = written((engine,), **TIGHT)[0][engine]
    assert not flags.checked.fits
    printed = flags.checked.printed
    assert printed is not None and printed.holds
    n = printed.answer["max_num_seqs"]
    assert 20 < n < 32
    more = sheetgen.size(**{**TIGHT, "engine": engine, "max_num_seqs": n + 1, "concurrent_requests": n + 1})
    assert more["fits"] is False  # one more would not hold: the number is the largest
    held = sheetgen.size(**{**TIGHT, "engine": engine, "max_num_seqs": n, "concurrent_requests": n})
    assert held["fits"] is True


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_value_that_is_offered_fits(engine: str) -> None:
    flags = written((engine,), **TIGHT)[0][engine]
    offered = {offer.setting: offer.value for offer in flags.checked.remedies}
    assert {"max_num_seqs", "max_model_len", "tensor_parallel_size"} <= set(offered)
    for setting, value in offered.items():
        if setting == "max_num_seqs":
            continue
        asked: Options = {**TIGHT, "engine": engine, "max_num_seqs": 32, setting: value}
        if setting == "max_model_len":
            asked["context_tokens"] = value
        if (engine, setting) == ("lmdeploy", "kv_cache_dtype"):
            assert value == "int8"  # which TurboMind keeps whatever the GPU, and the catalog's GPU does not
            continue
        assert sheetgen.size(**asked)["fits"] is True, (setting, value)


def test_the_longest_context_offered_is_the_longest() -> None:
    vllm = written(("vllm",), **TIGHT)[0]["vllm"]
    longest = next(o.value for o in vllm.checked.remedies if o.setting == "max_model_len")
    over = {**TIGHT, "max_num_seqs": 32, "context_tokens": longest + 16}
    assert sheetgen.size(**over)["fits"] is False


def test_a_larger_share_is_the_smallest_that_fits_and_stays_under_the_ceiling() -> None:
    point = {"model": "8b", "gpu": "h100", "context_tokens": "8k", "concurrent_requests": 57}
    vllm = written(("vllm",), **point)[0]["vllm"]
    share = next(o.value for o in vllm.checked.remedies if o.setting == "gpu_memory_utilization")
    assert 0.92 < share <= 0.95
    for utilization, fits in ((share, True), (share - 0.01, False)):
        again = sheetgen.size(**point, max_num_seqs=57, gpu_memory_utilization=round(utilization, 2))
        assert again["fits"] is fits


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_no_command_where_the_engine_would_not_start(engine: str) -> None:
    flags = written((engine,), model="405b", gpu="h100", tensor_parallel_size=8)[0][engine]
    assert flags.written is None and flags.checked.printed is None
    assert "the weights alone need" in flags.checked.verdict
    record = flags_record({engine: flags})[engine]
    assert record["command"] is None and record["settings"] == {} and record["checked"]["holds"] is False
    assert record["checked"]["kv_pool_bytes_per_gpu"] is None
    offered = {offer.setting for offer in flags.checked.remedies}
    assert "n_gpus" in offered and "max_num_seqs" not in offered


def test_a_limit_that_was_typed_is_kept_or_lowered_with_a_word() -> None:
    kept = written(("vllm",), **POINTS["8b"], max_num_seqs=48)[0]["vllm"]
    assert flags_of(words(kept))["--max-num-seqs"] == "48"
    lowered = written(("vllm",), **POINTS["8b"], max_num_seqs=500)[0]["vllm"]
    n = int(flags_of(words(lowered))["--max-num-seqs"])
    assert 32 < n < 500 and lowered.checked.fits
    assert any(f" {n} of max_num_seqs 500 " in note for note in lowered.notes)


@pytest.mark.parametrize(
    ("engine", "point", "why"),
    [
        ("tensorrt-llm", {"gpu": "mi300x"}, "TensorRT-LLM does not run on AMD Instinct MI300X"),
        ("lmdeploy", {"pipeline_parallel_size": 2}, "LMDeploy has no pipeline stages"),
        ("lmdeploy", {"weight_dtype": "nvfp4", "gpu": "b200"}, "LMDeploy loads no nvfp4 weights"),
        ("sglang", {"kv_cache_dtype": "int8"}, "SGLang keeps no KV cache in int8"),
        ("vllm", {"weight_dtype": "fp32"}, "keeps the cache of 32-bit weights in 32 bits"),
    ],
)
def test_what_an_engine_cannot_be_told(engine: str, point: Options, why: str) -> None:
    flags = written((engine,), **{"model": "8b", "gpu": "h100", **point})[0][engine]
    assert flags.checked.verdict.startswith("does not run: ") and why in flags.checked.verdict
    assert flags.written is None and not flags.checked.fits


def test_a_gpu_that_keeps_no_such_cache() -> None:
    vllm = written(("vllm",), model="8b", gpu="v100-sxm2-32gb", weight_dtype="fp16", kv_cache_dtype="fp8")[0]["vllm"]
    assert "keeps no KV cache in fp8" in vllm.checked.verdict and vllm.written is None


def test_what_an_engine_does_not_count_is_said() -> None:
    def noted(flags: Flags) -> list[str]:
        return [note for note in flags.notes if note.startswith("beside the pool")]

    small = written(("vllm",), model="8b", gpu="rtx-4090", tensor_parallel_size=8)[0]["vllm"]
    large = written(("vllm",), model="8b", gpu="h100")[0]["vllm"]
    assert len(noted(small)) == 1 and noted(large) == []


def test_the_record_has_every_key_and_plain_values() -> None:
    flags, _ = written(**TIGHT)
    for engine, record in flags_record(flags).items():
        assert set(record) == {"command", "settings", "files", "env", "checked", "notes", "other_commands"}
        checked = record["checked"]
        assert checked["engine"] == engine and checked["fits"] is False and checked["holds"] is True
        assert (
            isinstance(checked["kv_pool_bytes_per_gpu"], int)
            and checked["sequences_in_pool"] >= checked["max_num_seqs"]
        )
        assert all({"setting", "value", "flag", "holds"} == set(check) for check in checked["would_fit"])
        inputs = {k.removesuffix("_id"): v for k, v in checked["inputs"].items() if v is not None}
        again = sheetgen.size(**inputs)
        assert again["kv_pool_bytes_per_gpu"] == checked["kv_pool_bytes_per_gpu"]


def test_room_adds_up() -> None:
    printed = written(("vllm",), **POINTS["8b"])[0]["vllm"].checked.printed
    assert printed is not None
    quantities = printed.quantities
    share = quantities["gpu_memory_bytes"] - quantities["memory_budget_bytes"]
    assert printed.left_outside_bytes == pytest.approx(share, abs=1)
    assert left_outside_bytes_per_gpu(100, 5, 40, 10, 30) == 15
    assert needed_outside_bytes_per_gpu(7, 3, 0, 0, 2) == 12 and needed_outside_bytes_per_gpu(7, 3, 1, 1, 0) == 0
    assert in_tokens(24000, 2048, 64) == 11 and in_tokens(2047, 2048, 64) == 0


def test_the_catalog_has_a_launcher_for_every_writer() -> None:
    from sheetgen.catalog.stacks import StackFile
    from sheetgen.launch.commands import WRITERS

    assert set(WRITERS) == {launcher.engine for launcher in catalog().file(StackFile).launchers}

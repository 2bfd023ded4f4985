"""KV budgets of trtllm-build and NIM: published figures, files of both, and settings that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from option_values import Options
from points import catalog

import sheetgen
from sheetgen.api import record, sized_point
from sheetgen.catalog.stacks import StackFile
from sheetgen.errors import SheetgenError
from sheetgen.launch.kv_budget import KvBudget, budget, budget_record, inputs_of, read_settings

FIGURES = yaml.safe_load((Path(__file__).parent.parent / "data" / "figures.yaml").read_text(encoding="utf-8"))
BUILT = {  # what trtllm-build writes beside an engine
    "version": "0.16.0",
    "pretrained_config": {
        "architecture": "LlamaForCausalLM", "dtype": "bfloat16", "num_hidden_layers": 32, "num_key_value_heads": 8,
        "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "mapping": {"world_size": 2, "tp_size": 2},
    },
    "build_config": {
        "max_input_len": 3072, "max_seq_len": 4096, "max_batch_size": 8, "max_beam_width": 1, "max_num_tokens": 4096,
        "kv_cache_type": "PAGED", "strongly_typed": True, "plugin_config": {"tokens_per_block": 64},
    },
}  # fmt: skip


def read(text: str, **asked: object) -> KvBudget:
    settings, inputs = inputs_of(text, {"model": "8b", "gpu": "spark", **asked}, catalog())
    return budget(settings, inputs, record(sized_point(inputs, catalog())), catalog())


@pytest.mark.parametrize(
    "row",
    [r for r in FIGURES["kv_cache_bytes"] if r.get("exact") and "layers" not in r],
    ids=lambda r: str(r["stated"]),
)
def test_published_figures(row: dict[str, Any]) -> None:
    text = f"max_batch_size={row['users']},max_seq_len={row['context']}"
    kv_budget = read(text, model=row["model"], kv_cache_dtype=row["kv_dtype"])
    assert kv_budget.budget_bytes == row["exact"]


def test_eight_by_4096_in_fp8_holds_on_a_spark() -> None:
    kv_budget = read("max_batch_size=8,max_seq_len=4096,kv_cache_dtype=fp8")
    assert kv_budget.budget_bytes == kv_budget.trial.answer["kv_bytes"] == 2_147_483_648 and kv_budget.holds
    assert kv_budget.verdict.startswith("holds: 2.00 GiB of each GPU") and kv_budget.full_sequences > 300


def test_128_by_32768_in_fp8_is_refused_by_a_machine_of_128_gb() -> None:
    kv_budget = read("max_batch_size=128,max_seq_len=32768,kv_cache_dtype=fp8")
    assert kv_budget.budget_bytes == 274_877_906_944 and not kv_budget.holds and 40 < kv_budget.full_sequences < 50
    assert not kv_budget.holds and " 256.00 GiB " in kv_budget.verdict
    assert f"{kv_budget.full_sequences} full sequences" in kv_budget.verdict


def test_the_bytes_are_the_sizings_own() -> None:
    for model, dtype in (("8b", "bf16"), ("deepseek-r1", "fp8"), ("gpt-oss-120b", "bf16")):
        kv_budget = read("max_batch_size=4,max_seq_len=8192", model=model, gpu="b200", kv_cache_dtype=dtype)
        sized = sheetgen.size(
            model=model,
            gpu="b200",
            engine="tensorrt-llm",
            kv_cache_dtype=dtype,
            context=8192,
            concurrent_requests=4,
            max_num_seqs=4,
        )
        assert kv_budget.budget_bytes == 4 * 8192 * sized["kv_bytes_per_token"]
        assert kv_budget.trial.answer["kv_bytes"] == sized["kv_bytes"]
        assert kv_budget.trial.answer["kv_pool_bytes_per_gpu"] == sized["kv_pool_bytes_per_gpu"]


@pytest.mark.parametrize(
    ("text", "engine", "expected"),
    [
        ("max_batch_size=8, max_seq_len=4k", "tensorrt-llm", {"max_num_seqs": 8, "max_model_len": 4096}),
        ("--max_batch_size=8 --max-seq-len=4096", "tensorrt-llm", {"max_num_seqs": 8, "max_model_len": 4096}),
        (
            "max_num_tokens=16384;free_gpu_memory_fraction=0.8",
            "tensorrt-llm",
            {"max_num_batched_tokens": 16384, "gpu_memory_utilization": 0.8},
        ),
        ("kv_cache_free_gpu_mem_fraction=0.5", "tensorrt-llm", {"gpu_memory_utilization": 0.5}),
        ("max_input_len=3072,max_output_len=1024", "tensorrt-llm", {"input_tokens": 3072, "max_model_len": 4096}),
        ("kv_cache_type=continuous", "tensorrt-llm", {"kv_allocation": "reserved"}),
        (
            "quant_algo=W4A16_AWQ,kv_cache_quant_algo=INT8",
            "tensorrt-llm",
            {"weight_dtype": "int4", "kv_cache_dtype": "int8"},
        ),
        ("NIM_MAX_MODEL_LEN=8192,NIM_MAX_BATCH_SIZE=16", "nim", {"max_model_len": 8192, "max_num_seqs": 16}),
        ("nim_kvcache_percent=0.6", "nim", {"gpu_memory_utilization": 0.6}),
        (
            "NIM_MAX_MODEL_LEN=4096 NIM_PASSTHROUGH_ARGS='--max-num-seqs 4 --max-model-len 8192 --kv-cache-dtype fp8'",
            "nim",
            {"max_model_len": 8192, "max_num_seqs": 4, "kv_cache_dtype": "fp8"},
        ),
    ],
)
def test_settings_as_text(text: str, engine: str, expected: Options) -> None:
    settings = read_settings(text, catalog().file(StackFile))
    assert settings.engine == engine and settings.inputs == expected


def test_beams_and_limits_of_tokens() -> None:
    beams = read("max_batch_size=8,max_seq_len=4096,max_beam_width=4")
    assert beams.n_sequences == 32 and beams.budget_tokens == 32 * 4096
    limited = read("max_batch_size=64,max_seq_len=2048,max_tokens_in_paged_kv_cache=24000")
    assert limited.budget_tokens == 24_000 and limited.full_sequences == 11 and limited.holds
    assert limited.budget_bytes == 24_000 * 131_072
    short = read("max_batch_size=64,max_seq_len=4096,max_tokens_in_paged_kv_cache=2560")
    assert not short.holds and " 4,096 tokens; " in short.verdict
    lengths = read("NIM_MAX_MODEL_LEN=8192,NIM_NUM_KV_CACHE_SEQ_LENS=3,NIM_MAX_NUM_SEQS=64")
    assert lengths.budget_tokens == 3 * 8192 and lengths.full_sequences == 3


def test_what_is_not_stated_is_said() -> None:
    kv_budget = read("max_num_tokens=8192")
    assert kv_budget.trial.answer["max_model_len"] == 131_072 and kv_budget.n_sequences == 2048 and not kv_budget.holds
    assert [note.split(" is not stated")[0] for note in kv_budget.settings.notes] == [
        "the full length",
        "the number of sequences",
    ]


@pytest.mark.parametrize("setting", ["NIM_KVCACHE_PERCENT=0.75", "free_gpu_memory_fraction=0.75"])
def test_a_share_alone_is_a_pool_to_fill(setting: str) -> None:
    """It sets no number of sequences: the engine's default of them at the model's full length is nobody's load."""
    kv_budget = read(setting)
    pool = kv_budget.trial.answer["kv_pool_bytes_per_gpu"]
    assert kv_budget.is_pool and kv_budget.holds and kv_budget.verdict.startswith("a pool to fill: ")
    assert kv_budget.n_sequences == kv_budget.full_sequences == pool // (131_072 * 131_072)
    assert (
        kv_budget.budget_tokens == kv_budget.trial.answer["kv_tokens"]
        and 0 <= pool - kv_budget.budget_bytes < 64 * 131_072
    )
    assert not read(f"{setting},max_batch_size=8" if "free" in setting else f"{setting},NIM_MAX_NUM_SEQS=8").is_pool
    assert not read(setting, max_num_seqs=8).is_pool
    small = read(setting.replace("0.75", "0.1"))
    assert small.is_pool and not small.holds and small.full_sequences == 0 and "does not start" in small.verdict


def test_typed_options_win_over_settings() -> None:
    kv_budget = read("max_batch_size=8,max_seq_len=4096,kv_cache_dtype=fp8", kv_cache_dtype="bf16", engine="vllm")
    assert kv_budget.budget_bytes == 8 * 4096 * 131_072 and kv_budget.trial.answer["engine"] == "vllm"
    assert [note.split()[:2] for note in kv_budget.settings.notes] == [["kv_cache_dtype", "bf16"]]


def test_a_built_engine(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BUILT, indent="\t"))
    kv_budget = read(str(tmp_path / "config.json"), gpu="l40s")
    answer = kv_budget.trial.answer
    assert kv_budget.budget_bytes == 2_147_483_648 and kv_budget.holds
    assert (answer["tensor_parallel_size"], answer["weight_dtype"], answer["block_size"]) == (2, "fp8", 64)
    assert answer["kv_cache_dtype"] == "fp8" and answer["max_num_batched_tokens"] == 4096
    with pytest.raises(SheetgenError, match=r" 32 layers, llama-3.1-70b has 80"):
        read(str(tmp_path / "config.json"), model="70b")


def test_files_of_options_and_of_variables(tmp_path: Path) -> None:
    options, variables = tmp_path / "options.yaml", tmp_path / "nim.env"
    options.write_text(
        "max_batch_size: 8\nmax_seq_len: 4096\nkv_cache_config:\n  dtype: fp8\n  enable_block_reuse: true\n"
    )
    assert read(str(options)).budget_bytes == 2_147_483_648
    variables.write_text(
        "# a NIM\nexport NIM_MAX_MODEL_LEN='4096'\n-e NIM_MAX_NUM_SEQS=8 \\\nNIM_LOG_LEVEL=INFO\n"
        'NIM_PASSTHROUGH_ARGS="--kv-cache-dtype fp8 --gpu-memory-utilization 0.8"\nNIM_MAX_MODEL_LENGTH=1\n'
    )
    kv_budget = read(str(variables))
    assert kv_budget.budget_bytes == 2_147_483_648 and kv_budget.trial.answer["gpu_memory_utilization"] == 0.8
    assert [note.split()[0] for note in kv_budget.settings.notes] == ["NIM_MAX_MODEL_LENGTH"]


def test_flags_of_tensorrt_llm_are_read_back(tmp_path: Path) -> None:
    from points import POINTS, written

    flags, _ = written(("tensorrt-llm",), **{**POINTS["8b"], "kv_cache_dtype": "fp8"})
    tensorrt = flags["tensorrt-llm"].written
    printed = flags["tensorrt-llm"].checked.printed
    assert tensorrt is not None and printed is not None
    settings = tensorrt.settings
    text = (
        f"max_batch_size={settings['--max_batch_size']},max_seq_len={settings['--max_seq_len']},"
        f"max_num_tokens={settings['--max_num_tokens']},kv_cache_dtype={settings['kv_cache_config.dtype']},"
        f"free_gpu_memory_fraction={settings['kv_cache_config.free_gpu_memory_fraction']}"
    )
    back = read(text, gpu="h100")
    assert back.holds and back.trial.answer["kv_pool_bytes_per_gpu"] == printed.answer["kv_pool_bytes_per_gpu"]
    assert back.trial.answer["kv_bytes"] == printed.answer["kv_bytes"]


BAD = {
    "max_batch=8": "kv_budget has 'max_batch', which is no setting of trtllm-build or NIM. Did you mean max_batch_s",
    "NIM_MAX_MODEL_LENGTH=8": "Did you mean NIM_MAX_MODEL_LEN?",
    "max_batch_size=-3": "max_batch_size is '-3'. It must be a whole number from 1",
    "max_batch_size=0": "max_batch_size is '0'.",
    "max_batch_size=nan": "max_batch_size is 'nan'.",
    "max_batch_size=1e9": "max_batch_size is '1e9'.",
    "max_batch_size=8,max_batch_size=9": "kv_budget sets max_num_seqs twice, to 8 and by max_batch_size to 9.",
    "max_seq_len=long": "max_seq_len is 'long'. Write a number of tokens",
    "max_seq_len=200k,max_batch_size=1": "over the 131,072 that llama-3.1-8b allows",
    "NIM_KVCACHE_PERCENT=92": "NIM_KVCACHE_PERCENT is '92'. It must be a number above 0 and up to 1.",
    "kv_cache_dtype=fp7": "kv_cache_dtype is 'fp7'. Known: auto,",
    "kv_cache_type=disabled": "kv_cache_type is disabled: such an engine keeps no cache",
    "kv_cache_type=page": "Did you mean paged?",
    "max_input_len=9000,max_seq_len=4096": "max_input_len is 9,000, over the 4,096 tokens of max_seq_len.",
    "max_batch_size=8,NIM_MAX_MODEL_LEN=8": "kv_budget mixes settings of tensorrt-llm and nim.",
    "max_batch_size": "max_batch_size: cannot be read (No such file or directory). Settings are written name=value.",
    "max_batch_size=8 9": "kv_budget has '9'. Write name=value",
    "max_batch_size='8": "a quote is not closed",
    "=8": "kv_budget has '=8'. Write name=value",
    "nowhere/config.json": "nowhere/config.json: cannot be read (No such file or directory).",
    "a\0b": "embedded null",  # byte, or other words of a newer Python
    ".": ".: is a folder.",
    "x" * 5000: "cannot be read (File name too long)",
    "max_batch_size=8\x1b[31m": r"max_batch_size is '8\x1b[31m'",
    "enable_block_reuse=perhaps": "enable_block_reuse is 'perhaps'. It must be true or false.",
    " ": "kv_budget is blank.",
    "max_batch_size=,": "kv_budget: holds no setting of trtllm-build or NIM",
    "max_batch_size=" + "9" * 30_000: "characters; 20,000 are the most",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:40]))
def test_one_clear_line(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SheetgenError) as raised:
        read(text)
    assert BAD[text] in raised.value.problems[0]
    assert all(line.isprintable() and len(line) < 500 for line in raised.value.problems)


FILES = {
    "none.json": (b"{}", "holds no setting of trtllm-build or NIM"),
    "broken.json": (b'{"build_config": ', "is not valid JSON"),
    "deep.json": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested deeper"),
    "list.yaml": (b"- 1\n- 2\n", "is neither an engine's config.json, nor YAML options, nor lines of NAME=value."),
    "text.yaml": (b"just words", "is neither"),
    "anchors.yaml": (b"a: &x 1\nmax_batch_size: *x\n", "uses an anchor or alias"),
    "bytes.bin": (b"\xff\xfe\x00", "is not UTF-8 text."),
    "huge.json": (b" " * 1_000_001, "is larger than 1,000,000 bytes"),
    "bad.yaml": (b"max_batch_size: [8", "is not valid YAML"),
    "empty.env": (b"\n\n", "is neither"),
    "model.json": (b'{"model_type": "llama", "num_hidden_layers": 32}', "holds no setting"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_none(name: str, tmp_path: Path) -> None:
    data, expected = FILES[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SheetgenError) as raised:
        read(str(tmp_path / name))
    assert len(raised.value.problems) == 1 and expected in raised.value.problems[0] and name in raised.value.problems[0]


def test_a_draft_is_refused() -> None:
    with pytest.raises(SheetgenError, match="eagle3-deepseek-v3 is a draft"):
        read("max_batch_size=8", model="eagle3-deepseek-v3")


def test_every_problem_in_one_run() -> None:
    with pytest.raises(SheetgenError) as raised:
        read("max_batch=8,max_seq_len=long,max_beam_width=0")
    assert len(raised.value.problems) == 3


def test_the_record() -> None:
    record = budget_record(read("max_batch_size=8,max_seq_len=4096,kv_cache_dtype=fp8"))
    assert (
        record["budget_bytes"] == 2_147_483_648 and record["kv_bytes_per_token"] == 65_536 and record["holds"] is True
    )
    assert record["settings"] == {"max_batch_size": "8", "max_seq_len": "4096", "kv_cache_dtype": "fp8"}
    assert json.loads(json.dumps(record)) == record

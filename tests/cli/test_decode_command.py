"""`sheetgen decode`: claims as people write them, what is printed, and what is refused in one line."""

from __future__ import annotations

import json

import pytest

import sheetgen
from sheetgen.catalog import Catalog
from sheetgen.decode.claim import statements_of

MODEL = ("decode", "--model", "70b", "--weight-dtype", "fp8")
ARGUMENTS = (*MODEL, "--gpu", "h100", "--gpus", "8", "--concurrency", "512")
CLAIM = (*ARGUMENTS, "--tokens-per-second", "12000")
TEXT = (*MODEL, "--claim")
GPU_WORDS = Catalog().gpu_words()


def test_json_is_what_python_gives(run) -> None:  # type: ignore[no-untyped-def]
    options = ("--input-tokens", "1k", "--output-tokens", "1024", "--context", "16k", "--users", "200")
    answer = json.loads(run(*CLAIM, *options, "--json").output)
    assert answer == sheetgen.decode(
        model="70b",
        gpu="h100",
        n_gpus=8,
        weight_dtype="fp8",
        concurrency=512,
        tokens_per_second=12_000,
        input_tokens=1024,
        output_tokens=1024,
        context="16k",
        users=200,
    )
    assert answer["verdict"] == "consistent"


def test_text(run) -> None:  # type: ignore[no-untyped-def]
    arguments = (*CLAIM, "--context", "16k", "--users", "200")
    answer, text = json.loads(run(*arguments, "--json").output), run(*arguments).output
    assert f"VERDICT  {answer['verdict_words']}" in text
    assert answer["longest_context_words"] in text and answer["at_context"]["words"] in text
    assert all(one["words"] in text for one in answer["cautions"])
    for one in answer["capacity"]:
        begins = [*one["layout"].split(), one["kv_cache_dtype"]]
        row = next(line for line in text.splitlines() if line.split()[:-6] == begins)
        assert row.split()[-6:] == [
            f"{one['longest_context_tokens']:,}",
            *(
                f"{r['requests_that_fit']:,}"
                for s in answer["shapes"]
                for r in s["readings"]
                if (r["layout"], r["kv_cache_dtype"]) == (one["layout"], one["kv_cache_dtype"])
            ),
            f"{one['requests_at_full_context']:,}",
        ]
    assert text.count("predicted") == sum(one["holds"] for one in answer["at_context"]["readings"])


def test_the_text_of_a_claim_is_the_same_claim(run) -> None:  # type: ignore[no-untyped-def]
    typed = json.loads(run(*CLAIM, "--json").output)
    stated = json.loads(run(*TEXT, "12,000 tok/s at concurrency 512 on 8x H100", "--json").output)
    assert stated["claim"].pop("text") == "12,000 tok/s at concurrency 512 on 8x H100"
    assert stated["claim"].pop("read_from_text") == {
        "tokens_per_second": "12000",
        "n_gpus": "8",
        "gpu": "h100",
        "concurrency": "512",
    }
    assert typed["claim"].pop("text") is None and typed["claim"].pop("read_from_text") == {}
    assert stated == typed


def test_options_win_over_the_text(run) -> None:  # type: ignore[no-untyped-def]
    text = "12,000 tok/s per GPU or 9,000 tok/s at concurrency 512 or 64 users on 8x H100, 4x A100"
    given = ("--tokens-per-second", "3,000", "--concurrency", "32", "--gpus", "2", "--gpu", "h200")
    claim = json.loads(run(*TEXT, text, *given, "--json").output)["claim"]
    assert (claim["tokens_per_second"], claim["concurrency"], claim["n_gpus"]) == (3000, 32, 2)
    assert claim["gpu"] == "nvidia-h200-sxm5-141gb" and claim["stated_per"] == "all"


def test_rates_per_gpu_node_and_user(run) -> None:  # type: ignore[no-untyped-def]
    for text, total in (
        ("1,500 tok/s/GPU at concurrency 512 on 8x H100", 12_000),
        ("1.5k tokens per second per H100, 512 users, 8 GPUs", 12_000),
        ("12k tokens/s per node, batch size 512, 2x DGX H100", 24_000),
        ("23.5 tok/s/user with 512 concurrent users on HGX H100", 12_032),
        ("12,000 tok/s (1,500 tok/s per GPU, 23.4 tok/s/user) @512, 8xH100", 12_000),
    ):
        answer = json.loads(run(*TEXT, text, "--gpu", "h100", "--json").output)
        assert answer["claim"]["tokens_per_second"] == total, text
    assert json.loads(run(*ARGUMENTS, "--tokens-per-second", "1500", "--per-gpu", "--json").output) == json.loads(
        run(*ARGUMENTS, "--tokens-per-second", "1,500", "--per-gpu", "--json").output
    )
    each = run(*ARGUMENTS, "--tokens-per-second", "1500", "--per-gpu").output
    assert "1,500 tokens/s of each GPU, 12,000 in all" in each


HEARD = {
    "12,000 tok/s at concurrency 512 on 8x H100": "tokens_per_second 12000, n_gpus 8, gpu h100, concurrency 512",
    "12.5k tps with 256 concurrent users on DGX B200": "tokens_per_second 12500, n_gpus 8, gpu b200, concurrency 256",
    "900 tokens a second, bs=16, single L40S": "tokens_per_second 900, n_gpus 1, gpu l40s, concurrency 16",
    "1.2M t/s": "tokens_per_second 1200000",
    "128 concurrent, 8x H100": "n_gpus 8, gpu h100, concurrency 128",
    "8×MI300X, 64 requests in flight": "n_gpus 8, gpu mi300x, concurrency 64",
    "38.8 tok/s, 1 user, 1x DGX Spark": "tokens_per_second 38.8, n_gpus 1, gpu dgx spark, concurrency 1",
    "two users? no: 2 users on a single dgx-spark": "n_gpus 1, gpu dgx-spark, concurrency 2",
    "4x RTX PRO 6000 WS 96GB": "n_gpus 4, gpu rtx pro 6000 ws 96gb",
    "8x NVIDIA H100s": "n_gpus 8, gpu h100",
    "8x H100 NVL": "n_gpus 8, gpu h100 nvl",
    "8x H100-XYZ": "n_gpus 8, gpu h100-xyz",
    "16 B200s in FP4 with FP8 KV cache": "n_gpus 16, gpu b200, kv_cache_dtype fp8, weight_dtype nvfp4",
    "TP8, TRT-LLM": "tensor_parallel_size 8, engine tensorrt-llm",
    "ISL 8k OSL 1,024": "input_tokens 8k, output_tokens 1024",
    "1k/1k at batch of 64": "input_tokens 1k, output_tokens 1k, concurrency 64",
    "1024 in and 512 out": "input_tokens 1024, output_tokens 512",
    "prompts of 2000 tokens, output length 200": "input_tokens 2000, output_tokens 200",
    "512 in flight": "concurrency 512",
    "8 concurrent requests, concurrency 8": "concurrency 8",
    "up to 10,000-12,000 tok/s": "",
    "1e30 tok/s": "",
    "٣ tok/s at concurrency ٤": "",
    "12,000 tokens per minute": "",
    "concurrency 512k on 8x8": "",
}


@pytest.mark.parametrize("text", HEARD)
def test_what_is_stated(text: str) -> None:
    stated = statements_of(text, GPU_WORDS)
    assert ", ".join(f"{name} {value}" for name, value in stated.found.items() if "per_gpu" not in name) == HEARD[text]
    assert not stated.unclear


def test_what_can_be_read_in_two_ways_is_not_guessed() -> None:
    for text, name in (
        ("12.000 tok/s", "tokens_per_second"),
        ("12 000 tok/s", "tokens_per_second"),
        ("9,000 tok/s, later 12,000 tok/s", "tokens_per_second"),
        ("64 users, batch size 512", "concurrency"),
        ("8x H100 and 4x A100", "n_gpus"),
        ("fp8 or bf16", "weight_dtype"),
    ):
        assert name in statements_of(text, GPU_WORDS).unclear and name not in statements_of(text, GPU_WORDS).found, text


ONE_LINE = {
    "nothing said": ((*TEXT, "very fast"), "claim says no tokens per second, no concurrency, no number of GPUs and"),
    "no rate": ((*TEXT, "fast at concurrency 512 on 8x H100"), "claim says no tokens per second: 'fast at"),
    "no GPUs": ((*TEXT, "100 tok/s at concurrency 5 on H100"), "claim says no number of GPUs"),
    "two rates": ((*TEXT, "5 tok/s, 6 tok/s, 8x H100, batch 4"), "claim gives tokens_per_second as 5 and 6. Say which"),
    "unclear rate": ((*TEXT, "12.000 tok/s, 8x H100, batch 4"), "12.000, thousands or a fraction"),
    "negative rate": ((*TEXT, "-12,000 tok/s, 8x H100, batch 4"), "tokens_per_second is '-12000'"),
    "zero rate": ((*ARGUMENTS, "--tokens-per-second", "0"), "tokens_per_second is '0'. It must be a number above 0"),
    "nan rate": ((*ARGUMENTS, "--tokens-per-second", "nan"), "tokens_per_second is 'nan'"),
    "huge rate": ((*ARGUMENTS, "--tokens-per-second", "1e30"), "tokens_per_second is '1e30'"),
    "comma for a point": ((*ARGUMENTS, "--tokens-per-second", "1,5"), "tokens_per_second is '1,5'"),
    "zero concurrency": ((*CLAIM, "--concurrency", "0"), "concurrency is '0'"),
    "half a GPU": ((*CLAIM, "--gpus", "0.5"), "n_gpus is '0.5'"),
    "TP": ((*CLAIM, "--tensor-parallel-size", "16"), "tensor_parallel_size is 16, which does not divide the 8 GPUs"),
    "context": ((*CLAIM, "--context", "200k"), "over the 131,072 that llama-3.1-70b allows"),
    "users alone": ((*CLAIM, "--users", "5"), "users is given without context_tokens"),
    "gpu": ((*CLAIM, "--gpu", "h1000"), "Did you mean h100?"),
    "gpu in the text": ((*TEXT, "5 tok/s, 8x h1000, batch 4"), "Did you mean h100?"),
    "model": (("decode", "--model", "71bb", "--claim", "5 tok/s, 8x h100, batch 4"), "model '71bb' is not in"),
    "engine": ((*CLAIM, "--engine", "vlm"), "Did you mean vllm?"),
    "dtype": ((*CLAIM, "--kv-cache-dtype", "fp9"), "Did you mean fp8?"),
    "blank claim": ((*TEXT, " "), "claim is blank"),
    "long claim": ((*TEXT, "1" * 5000), "claim has 5,000 characters"),
    "control characters": ((*TEXT, "a\x1b[31m\nb"), r"'a\x1b[31m\nb'"),
    "catalogs": ((*CLAIM, "--catalogs", "nowhere"), "nowhere: is no folder"),
}


@pytest.mark.parametrize("case", ONE_LINE)
def test_one_line_and_exit_1(case: str, run, here) -> None:  # type: ignore[no-untyped-def]
    arguments, expected = ONE_LINE[case]
    result = run(*arguments)
    assert result.exit_code == 1 and result.stdout == "" and expected in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stderr.strip().endswith((".", "?"))
    assert "\x1b" not in result.stderr and len(result.stderr) < 400 and list(here.iterdir()) == []


def test_all_problems_in_one_run(run) -> None:  # type: ignore[no-untyped-def]
    bad = ("--model", "71b", "--gpu", "h1000", "--gpus", "0", "--tokens-per-second", "x", "--concurrency", "-1")
    assert len(run("decode", *bad).stderr.splitlines()) == 5
    assert run("decode").exit_code == 2 and run("decode", "--model", "8b", "--batch", "4").exit_code == 2


def test_a_text_made_to_be_slow_is_read_at_once() -> None:
    for text in ("1," * 999, "12,000 " * 280, "output " * 280, "1k/" * 600, "8x" * 999, "tok" * 660, "per " * 499):
        statements_of(text, GPU_WORDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--model", "405b", "--claim", "3,000 tok/s at concurrency 64 on 8x H100", "--context", "8k"),
        ("--model", "deepseek-r1", "--claim", "20k tok/s, 1,024 users, 8x H200, 1k/1k, sglang", "--context", "32k"),
        ("--model", "8b", "--claim", "900 tok/s, concurrency 1, 3x L40S"),
        ("--model", "8b", "--claim", "100 tok/s, 8 users, 1x T4", "--context", "2k"),
        ("--model", "gemma-3-27b", "--claim", "1 tok/s, 1000000 users, 16x MI300X", "--context", "1"),
        ("--model", "llama-2-7b", "--claim", "5 tok/s, 2 users, 1x A100", "--users", "1", "--context", "4k"),
    ],
)
def test_verdicts_exit_0(arguments: tuple[str, ...], run) -> None:  # type: ignore[no-untyped-def]
    result = run("decode", *arguments)
    assert result.exit_code == 0 and "VERDICT  " in result.output and "nan" not in result.output.lower()
    assert json.loads(run("decode", *arguments, "--json").output)["verdict_words"] in result.output


def test_help_has_examples_and_keys(run) -> None:  # type: ignore[no-untyped-def]
    text = run("decode", "--help").output
    assert "Examples:" in text and "decode" in run("--help").output
    for key in sheetgen.decode(model="8b", claim="3,000 tok/s, 32 users, 1x H100"):
        assert key == "schema_version" or key in text, key

"""`sheetgen size --flags` and `--kv-budget`: what is printed below the bills, the JSON beside them, bad input."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from command_lines import POINT

import sheetgen

ENGINES = ("vllm", "sglang", "tensorrt-llm", "nim", "lmdeploy")


def test_bills_first_then_the_command(run) -> None:  # type: ignore[no-untyped-def]
    bills = run("size", *POINT).output
    text = run("size", *POINT, "--flags", "vllm").output
    assert text.startswith(bills.rstrip("\n"))
    command = text[text.index("vllm serve") : text.index("\n\nSTACK")]
    words = shlex.split(command.replace("\\\n", ""))
    assert words[:3] == ["vllm", "serve", "meta-llama/Llama-3.1-70B-Instruct"]
    flags = dict(zip(words[3:-1:2], words[4::2], strict=False))
    assert flags["--tensor-parallel-size"] == "4" and flags["--max-model-len"] == "16384"
    n = int(flags["--max-num-seqs"])
    assert f" {n} sequences: KV pool " in text and f"--max-num-seqs {n} ({n} " in text
    record = json.loads(run("size", *POINT, "--flags", "vllm", "--json").output)
    checked = record["flags"]["vllm"]["checked"]
    assert (
        not checked["fits"] and f"# vLLM 0.33.0: {checked['verdict']}" in text and ": --tensor-parallel-size 8" in text
    )
    assert "\nSTACK\n  vLLM: " in text


@pytest.mark.parametrize("word", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_the_flags_of_an_engine_can_be_pasted(word: str, run) -> None:  # type: ignore[no-untyped-def]
    """A precision in the words of PyTorch, and a switch without a value, mean what ours mean."""
    ours = {"bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8_e5m2"}[word]
    theirs = ("--enable-prefix-caching", "--enforce-eager", "--kv-cache-dtype", word)
    as_ours = ("--enable-prefix-caching", "1", "--enforce-eager", "1", "--kv-cache-dtype", ours)
    pasted, typed = (json.loads(run("size", *POINT, *flags, "--json").output) for flags in (theirs, as_ours))
    assert pasted == typed and pasted["kv_cache_dtype"] == ours and pasted["enforce_eager"] == 1
    assert run("explain", "kv_bytes_per_token", "--model", "8b", *theirs).output


def test_all_engines_and_their_order(run) -> None:  # type: ignore[no-untyped-def]
    text = run("size", *POINT, "--flags", "all").output
    starts = (
        "vllm serve",
        "python -m sglang.launch_server",
        "trtllm-serve",
        "trtllm-build",
        "docker run",
        "lmdeploy serve",
    )
    places = [text.index(f"\n{start} ") for start in starts]
    assert places == sorted(places)
    some = run("size", *POINT, "--flags", "sglang, vllm").output
    assert some.index("sglang.launch_server") < some.index("vllm serve") and "docker run" not in some


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_printed_text_is_a_script_that_a_shell_reads(engine: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    text = run("size", *POINT, "--flags", engine).output
    script = text[text.index("\n# ") : text.index("\n\nSTACK")]
    names = ("vllm", "python", "trtllm-serve", "trtllm-build", "docker", "lmdeploy")
    stubs = "".join(f'{name}() {{ printf "%s\\n" {name} "$@"; }}\n' for name in names)
    image = "NIM_LLM_MODEL_FREE_IMAGE='a b'\n"
    done = subprocess.run(["bash", "-euc", image + stubs + script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    flag = json.loads(run("size", *POINT, "--flags", engine, "--json").output)["flags"][engine]
    commands = [flag["command"], *(command["command"] for command in flag["other_commands"].values())]
    expected = [
        word for command in commands for word in shlex.split(command.replace("${NIM_LLM_MODEL_FREE_IMAGE}", "a b"))
    ]
    assert done.stdout.splitlines() == expected
    assert [p.name for p in workdir.iterdir()] == (["llm_api_options.yaml"] if engine == "tensorrt-llm" else [])


def test_json_has_the_usual_keys_and_flags(run) -> None:  # type: ignore[no-untyped-def]
    answer = json.loads(run("size", *POINT, "--flags", "all", "--json").output)
    flags, stack = answer.pop("flags"), answer.pop("stack")
    assert answer == sheetgen.size(
        model="70b", gpu="h100", tensor_parallel_size=4, context="16k", concurrent_requests=32
    )
    assert tuple(flags) == ENGINES and stack["engine"] in ENGINES and stack["sources"]
    for engine, flag in flags.items():
        assert shlex.split(flag["command"]) and flag["checked"]["engine"] == engine
        assert flag["checked"]["fits"] is False and flag["checked"]["holds"] is True
        assert flag["settings"] and isinstance(flag["notes"], list)
    assert list(flags["tensorrt-llm"]["files"]) == ["llm_api_options.yaml"]
    assert flags["tensorrt-llm"]["other_commands"]["trtllm-build"]["settings"]["--kv_cache_type"] == "paged"
    assert flags["nim"]["env"]["NIM_MAX_MODEL_LEN"] == "16384"


def test_plain_size_is_what_it_was(run) -> None:  # type: ignore[no-untyped-def]
    assert not {"flags", "stack", "kv_budget"} & set(json.loads(run("size", *POINT, "--json").output))


def test_no_command_is_printed_for_what_does_not_start(run) -> None:  # type: ignore[no-untyped-def]
    text = run("size", "--model", "405b", "--gpu", "h100", "--flags", "all").output
    assert not any(word in text for word in ("vllm serve", "launch_server", "trtllm-serve", "docker run", "api_server"))
    assert text.count("# No command: ") == 5
    assert "STACK\n  no stack: " in text


def test_kv_budget_in_words_and_json(run) -> None:  # type: ignore[no-untyped-def]
    settings = "max_batch_size=8,max_seq_len=4096,kv_cache_dtype=fp8"
    text = run("size", "--model", "8b", "--gpu", "spark", "--kv-budget", settings).output
    assert ": max_batch_size 8, max_seq_len 4096, kv_cache_dtype fp8" in text
    assert "2.00 GiB, 2,147,483,648 bytes" in text and "\n  holds: 2.00 GiB" in text
    answer = json.loads(run("size", "--model", "8b", "--gpu", "spark", "--kv-budget", settings, "--json").output)
    assert answer["kv_budget"]["budget_bytes"] == 2_147_483_648 == answer["kv_bytes"]
    assert (answer["engine"], answer["context_tokens"], answer["concurrent_requests"]) == ("tensorrt-llm", 4096, 8)
    large = "max_batch_size=128,max_seq_len=32768,kv_cache_dtype=fp8"
    refused = json.loads(run("size", "--model", "8b", "--gpu", "spark", "--kv-budget", large, "--json").output)[
        "kv_budget"
    ]
    assert refused["budget_bytes"] == 274_877_906_944 and refused["holds"] is False
    assert refused["full_sequences_that_fit"] < 128


def test_both_together(run) -> None:  # type: ignore[no-untyped-def]
    arguments = ("--model", "8b", "--gpu", "h100", "--kv-budget", "max_batch_size=16,max_seq_len=8192")
    text = run("size", *arguments, "--flags", "tensorrt-llm").output
    assert text.index("KV BUDGET") < text.index("LAUNCH FLAGS") and "--max_batch_size 16" in text


BAD = {
    "engine": (("--flags", "vlm"), "flags has 'vlm'. They are kept for vllm, sglang, tensorrt-llm, nim, lmdeploy"),
    "engine without flags": (("--flags", "tgi"), "flags has 'tgi'."),
    "blank": (("--flags", ""), "flags is blank."),
    "hostile engine": (("--flags", "a\x1b[31mb"), r"flags has 'a\x1b[31mb'."),
    "setting": (("--kv-budget", "max_batch=8"), "Did you mean max_batch_size?"),
    "negative": (("--kv-budget", "max_batch_size=-1"), "max_batch_size is '-1'."),
    "absent file": (("--kv-budget", "nowhere.json"), "nowhere.json: cannot be read"),
    "no budget": (("--kv-budget", ""), "kv_budget is blank."),
    "over the limit": (("--kv-budget", "max_batch_size=1,max_seq_len=200k"), "over the 131,072"),
    "share": (("--kv-budget", "free_gpu_memory_fraction=2"), "free_gpu_memory_fraction is '2'."),
}


@pytest.mark.parametrize("case", BAD)
def test_one_line_and_exit_1(case: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    arguments, expected = BAD[case]
    result = run("size", "--model", "8b", *arguments)
    assert result.exit_code == 1 and result.stdout == "" and expected in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stderr.strip().isprintable()
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("option", [("--flags", "vllm"), ("--kv-budget", "max_batch_size=1")])
@pytest.mark.parametrize("other", [("--batch", "in.csv"), ("--from-log", "a.log")])
def test_usage(option: tuple[str, str], other: tuple[str, str], run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("size", *option, *other)
    assert result.exit_code == 2 and "--from-log or --batch" in result.stderr


def test_a_broken_catalog_is_told_with_its_line(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "c").mkdir()
    (workdir / "c" / "stacks.yaml").write_text("checked_on: soon\n")
    result = run("size", "--model", "8b", "--flags", "vllm", "--catalogs", "c")
    assert result.exit_code == 1 and "c/stacks.yaml:1: checked_on 'soon'" in result.stderr

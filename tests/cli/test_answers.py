"""The output of `size`, `recommend`, `list`, `show` and `check`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_lines import LOAD, POINT

import sheetgen


def test_size_bill_by_bill(run) -> None:  # type: ignore[no-untyped-def]
    text = run("size", *POINT).output
    answer = sheetgen.size(model="70b", gpu="h100", tensor_parallel_size=4, context="16k", concurrent_requests=32)
    assert answer["verdict"] in text
    for name in ("weights_bytes_per_gpu", "kv_pool_bytes_per_gpu", "kv_bytes", "kv_bytes_per_token", "kv_tokens"):
        assert f"{answer[name]:,}" in text, name
    assert re.search(r"KV of all requests +160\.00 +171,798,691,840", text)
    assert json.loads(run("size", *POINT, "--json").output) == answer


def test_size_exits_0_where_it_does_not_fit(run) -> None:  # type: ignore[no-untyped-def]
    result = run("size", "--model", "405b", "--gpu", "t4")
    sized = sheetgen.size(model="405b", gpu="t4")
    assert result.exit_code == 0 and not sized["fits"] and sized["verdict"] in result.output


def test_recommend_in_words(run) -> None:  # type: ignore[no-untyped-def]
    arguments = (
        "recommend",
        "--model",
        "70b",
        "--context",
        "16k",
        "--concurrent-requests",
        "200",
        "--as-of",
        "2026-11-20",
    )
    answer = json.loads(run(*arguments, "--json").output)
    text = run(*arguments, "--details").output
    year = f"${12 * answer['monthly_usd']:,.0f} a year"
    rented = f"{answer['n_instances']}x {answer['instance']}, ${answer['monthly_usd']:,.0f} a month"
    assert f"\n\n{rented}, {year}\n" in text
    assert answer["runner_up"]["instance"] in text and f"TP {answer['tensor_parallel_size']}" in text
    shown = text.split("WHY NOT THE OTHERS\n")[1].split("\n  and ")[0].splitlines()
    assert len(shown) == 8 and "more: --all shows them" in text
    prices = [int(re.findall(r"\$([\d,]+)", line)[0].replace(",", "")) for line in shown]
    assert prices == sorted(prices)
    everything = run(*arguments, "--all").output
    assert all(w["instance"] in everything and w["reason"] in everything for w in answer["why_not"])


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "arguments",
    [
        ("8b",),
        ("deepseek-v3", "--context", "32k"),
        ("gemma-3-27b", "--context", "16k", "--concurrent-requests", "200"),
    ],
)
def test_one_is_not_plural(arguments: tuple[str, ...], run) -> None:  # type: ignore[no-untyped-def]
    assert " 1 GPUs" not in run("recommend", "--model", *arguments).output


def test_one_is_not_plural_elsewhere(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    for arguments in (
        ("size", "--model", "8b", "--kv-budget", "max_batch_size=1"),
        ("explain", "load_requests", "--model", "8b"),
        ("explain", "n_instances", "--model", "8b"),
        ("recommend", "--model", "8b", "--have", "h100:1"),
        ("recommend", "--model", "8b", "--gpus", "l4", "--details"),
    ):
        output = run(*arguments).output
        noun = "(?:full )?(?:GPU|request|machine|replica|sequence|instance|block)s"
        assert not re.findall(rf"(?<![\w.,-])1 {noun}\b(?!/)", output)


@pytest.mark.long
def test_quiet_is_the_answer_alone(run) -> None:  # type: ignore[no-untyped-def]
    asked = ("recommend", "--model", "8b", "--gpus", "h100")
    whole = run(*asked).stdout
    (line,) = run(*asked, "-q").stdout.splitlines()
    rent, _, chance = line.rpartition(", ")
    assert f"\n{rent}, " in whole and rent.endswith("a month") and whole.count("\n") > 10
    assert chance.endswith("% sure") and f" {chance} that these machines" in whole
    assert run(*asked, "--details", "-q").stdout == run(*asked, "--details").stdout


def test_a_missing_choice_is_listed_without_tabs(run) -> None:  # type: ignore[no-untyped-def]
    stderr = run("list").stderr
    assert "Choose from:\n  models,\n  gpus," in stderr and "\\t" not in stderr and "\t" not in stderr
    assert "a\\tb" in run("size", "--model", "a\tb").stderr


@pytest.mark.some(1)
@pytest.mark.parametrize("model", ["gemma-3-27b", "gpt-oss-120b", "llama-4-scout-17b-16e", "mistral-7b-v0.1"])
def test_recommend_says_what_the_gate_of_0_19_asks_of_windows(model: str, run) -> None:  # type: ignore[no-untyped-def]
    def names_the_flag(model: str, *more: str) -> bool:
        output = run("recommend", "--model", model, "--context", "16k", "--gpus", "h200", "--details", *more).output
        return "--no-scheduler-reserve-full-isl" in output

    old = ("--engine-version", "0.19")
    assert names_the_flag(model, *old) and not names_the_flag("8b", *old)
    assert not names_the_flag(model, "--engine-version", "0.20.0") and not names_the_flag(model)


@pytest.mark.parametrize(
    ("model", "gpu", "options", "is_said"),
    [
        ("glm-5.2", "b200", (), True),
        ("glm-5.3-flash", "b300", ("--kv-cache-dtype", "auto"), True),
        ("glm-5.2", "b200", ("--kv-cache-dtype", "fp8"), False),
        ("glm-5.2", "b200", ("--engine-version", "0.31.0"), False),
        ("glm-5.2", "h200", (), False),
        ("8b", "b200", (), False),
        ("glm-5.2", "b200", ("--quiet",), False),
    ],
)
def test_size_says_where_the_engine_keeps_fp8(
    model: str, gpu: str, options: tuple[str, ...], is_said: bool, run
) -> None:  # type: ignore[no-untyped-def]
    asked = ("size", "--model", model, "--gpu", gpu, "--tensor-parallel-size", "8", *options)
    assert ("--kv-cache-dtype fp8" in run(*asked).stderr) == is_said


@pytest.mark.long
def test_recommend_says_where_the_engine_keeps_fp8(run) -> None:  # type: ignore[no-untyped-def]
    asked = ("recommend", "--model", "glm-5.2", "--gpus", "h200,b200,b300", "--json")
    words = "vLLM 0.33.0 keeps the KV cache of GLM-5.2 in FP8 on B200 SXM, B300 SXM unless told otherwise"
    assert run(*asked).stderr.startswith(words)
    assert run(*asked, "--kv-cache-dtype", "fp8").stderr == run(*asked, "--quiet").stderr == ""


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine-version", "99.0"), "vLLM 99.0: the newest rules known, those since 0.33.0, are used."),
        (
            ("--engine", "lmdeploy", "--engine-version", "1.0"),
            "LMDeploy 1.0: the newest rules known, those since 0.18.0, are used.",
        ),
        (
            ("--engine", "llama.cpp", "--engine-version", "b9999"),
            "llama.cpp b9999: the newest rules known, those since b7500, are used.",
        ),
        (("--as-of", "2020-01-01"), "as_of 2020-01-01 is before every price was read, the first on 20"),
        (("--as-of", "2090-01-01"), "as_of 2090-01-01 is after today, "),
    ],
)
def test_what_lies_beyond_the_known_is_said_on_stderr(options: tuple[str, ...], words: str, run) -> None:  # type: ignore[no-untyped-def]
    result = run("recommend", "--model", "8b", "--gpus", "h100", "--json", *options)
    assert result.stderr.startswith(words) and len(result.stderr.splitlines()) == 1
    assert json.loads(result.stdout)["n_instances"] >= 1
    assert run("recommend", "--model", "8b", "--gpus", "h100", "--quiet", *options).stderr == ""


def test_size_says_whose_rules_a_later_version_is_sized_by(run) -> None:  # type: ignore[no-untyped-def]
    assert "those since 0.33.0" in run("size", "--model", "8b", "--engine-version", "99.0").stderr
    assert run("size", "--model", "8b", "--engine-version", "0.33.0").stderr == ""


@pytest.mark.parametrize("text", ["2020", "20260101", "2026-W47", "2026-1-1"])
def test_as_of_is_a_full_date(text: str, run) -> None:  # type: ignore[no-untyped-def]
    result = run("recommend", "--model", "8b", "--as-of", text)
    assert result.exit_code == 1 and f"as_of is '{text}'. " in result.stderr


@pytest.mark.some(1)
@pytest.mark.parametrize("model", ["gpt-oss-120b", "deepseek-v3", "kimi-k2"])
def test_recommend_prints_only_changes_that_buy_something(run, model: str) -> None:  # type: ignore[no-untyped-def]
    arguments = (
        "recommend",
        "--model",
        model,
        "--context",
        "16k",
        "--concurrent-requests",
        "64",
        "--as-of",
        "2026-11-20",
    )
    levers = json.loads(run(*arguments, "--json").output)["levers"]
    useless = [
        lever["words"] for lever in levers if lever["monthly_usd"] is not None and not (lever["saved_usd"] or 0) > 0
    ]
    changes = run(*arguments, "--details").output.partition("WHAT ONE CHANGE BUYS")[2].partition("\n\n")[0]
    assert useless, "a lever that buys nothing"
    assert [words for words in useless if words in changes] == []


@pytest.mark.some(1)
@pytest.mark.parametrize(("model", "printed"), [("c4ai-command-a-03-2025", 1), ("70b", 0)])
def test_recommend_prints_fp8_where_it_rents_something_else(run, model: str, printed: int) -> None:  # type: ignore[no-untyped-def]
    arguments = (
        "recommend",
        "--model",
        model,
        "--context",
        "4k",
        "--concurrent-requests",
        "1",
        "--as-of",
        "2026-11-20",
    )
    answer = json.loads(run(*arguments, "--json").output)
    same = all(answer["fp8"][name] == answer[name] for name in ("instance", "n_instances"))
    assert same == (printed == 0), "the model of this case"
    assert run(*arguments, "--details").output.count("\n  FP8 weights and KV cache: ") == printed


def test_recommend_where_nothing_fits(run) -> None:  # type: ignore[no-untyped-def]
    result = run("recommend", "--model", "405b", "--instances", "aws/g5.xlarge")
    assert result.exit_code == 0 and "nothing fits" in result.output and "GiB short" in result.output


@pytest.mark.parametrize(
    ("kind", "count"), [("models", 130), ("gpus", 47), ("instances", 200), ("workloads", 3), ("engines", 7)]
)
def test_list(kind: str, count: int, run) -> None:  # type: ignore[no-untyped-def]
    rows = json.loads(run("list", kind, "--json").output)
    text = run("list", kind, "--wide").output
    assert len(rows) >= count and len(text.splitlines()) == len(rows) + 1
    assert len({row["id"] for row in rows}) == len(rows) and all(row["id"] in text for row in rows)


def test_list_filters_by_every_word(run) -> None:  # type: ignore[no-untyped-def]
    rows = json.loads(run("list", "instances", "aws", "H100", "--json").output)
    assert rows and all("aws" in row["id"] and "h100" in row["gpu"] for row in rows)
    assert run("list", "models", "no-such-thing").output == "No models with no-such-thing.\n"


@pytest.mark.parametrize(
    ("kind", "name", "entry"),
    [
        ("instances", "verda/B200 SXM6 x2", "verda/B200 SXM6"),
        ("instances", "NC40ads H100 v5", "azure/Standard_NC40ads_H100_v5"),
        ("models", "meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("gpus", "NVIDIA H100 80GB HBM3", "nvidia-h100-sxm5-80gb"),
    ],
)
def test_an_entry_is_listed_and_shown_by_any_name_that_an_answer_or_a_tool_prints(
    kind: str, name: str, entry: str, run
) -> None:  # type: ignore[no-untyped-def]
    (row,) = json.loads(run("list", kind, name, "--json").output)
    assert row["id"] == entry == json.loads(run("show", name, "--json").output)["id"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("70b", "model, in catalogs/models/llama-3.1-70b.yaml"),
        ("meta-llama/Llama-3.1-70B-Instruct", "kv_bytes_per_token at bf16: 327,680"),
        ("h100", "engine_bytes: 85,029,615,043"),
        ("aws/p5.48xlarge", "instance, in catalogs/instances/aws.yaml"),
        ("rag", "workload, in catalogs/workloads.yaml"),
        ("vllm", "engine, in catalogs/engines/vllm.yaml"),
    ],
)
def test_show(name: str, expected: str, run) -> None:  # type: ignore[no-untyped-def]
    text = run("show", name).output
    assert expected in text and "source" in text
    assert json.loads(run("show", name, "--json").output)["kind"] == text.split(",")[0]


def test_check(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    assert run("check").exit_code == 0
    (workdir / "c" / "models").mkdir(parents=True)
    (workdir / "c" / "models" / "a.yaml").write_text("id: a\nnome: A\n")
    (workdir / "c" / "models" / "b.yaml").write_text("id: [\n")
    for arguments in (("check", "c"), ("check", "--catalogs", "c"), ("check", "c/models")):
        result = run(*arguments)
        assert result.exit_code == 1 and "c/models/a.yaml:2: unknown field nome" in result.stderr
        assert re.fullmatch(r"\d+ problems in 2 files\.", result.stderr.splitlines()[-1])
    checked = run("check", "c/models/b.yaml", "--json")
    assert checked.exit_code == 1 and json.loads(checked.stdout)["n_files"] == 1
    assert run("check", "catalogs/none").exit_code == 1 and run("check", ".").exit_code == 1


def test_nearly_all_and_nearly_nothing() -> None:
    from sheetgen.cli.answer_text import dearer

    changes = ["the same price", "less than 1% more", "less than 1% less", "+12%", "-4%"]
    assert [dearer(s) for s in (0, 0.001, -0.001, 0.12, -0.04)] == changes


@pytest.mark.parametrize("targets", [(), ("--tpot-ms", "off", "--ttft-ms", "off")])
def test_what_is_served_and_held(targets: tuple[str, ...], run) -> None:  # type: ignore[no-untyped-def]
    arguments = ("recommend", *LOAD, "--gpus", "h100", *targets)
    answer = json.loads(run(*arguments, "--json").output)
    served, held = answer["served_at_target"], answer["memory_holds"]
    text = " ".join(run(*arguments).output.split())
    assert f" {served:,} at once; " in text and f" {held:,} at once. " in text
    assert 32 <= served <= held and (served == held) is bool(targets)


def test_the_bytes_of_a_token_are_told_in_a_unit_that_is_read(run) -> None:  # type: ignore[no-untyped-def]
    """0.000305 GiB is nobody's figure of a token: 327,680 bytes are 320.0 KiB."""
    text = run("size", "--model", "70b", "--gpu", "h100", "--tensor-parallel-size", "8").output
    assert re.search(r"^  KV per token +320\.0 KiB +327,680$", text, re.M)
    assert not re.search(r" 0\.00\d+ ", text)

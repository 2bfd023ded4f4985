"""The SPEED section of `size`: its figures are those of the record, and it says what they rest on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas
import pytest
from command_lines import Run
from peaks import without_a_peak

import sheetgen
from sheetgen.catalog import Catalog

R1 = ("size", "--model", "deepseek-r1", "--gpu", "h200", "--tensor-parallel-size", "8", "--concurrent-requests", "64")
POINT = "concurrent_requests=64,input_tokens=1024,output_tokens=1024,tpot_ms=22.4"


def speed(run: Run, *arguments: object) -> str:
    """The section, up to the end, with what is said before its table."""
    result = run(*arguments)
    assert result.exit_code == 0 and result.stderr == ""
    return str(result.output.partition("fewest of these GPUs")[2].partition("\n\n")[2].strip())


def figures(text: str, label: str) -> list[float]:
    """The figure of a line and both ends of its band, in seconds or a second."""
    line = next(line for line in text.splitlines() if line.startswith(f"  {label}  "))
    numbers = [float(match.replace(",", "")) for match in re.findall(r"[\d,]*\.?\d+", line.removeprefix(f"  {label}"))][
        :3
    ]
    return [number / 1000 for number in numbers] if " ms " in line else numbers


def test_the_figures_are_those_of_the_record(run) -> None:  # type: ignore[no-untyped-def]
    text, answer = speed(run, *R1), json.loads(run(*R1, "--json").output)
    near = {"rel": 0.006}
    for label, name in (
        ("time per output token", "tpot_seconds"),
        ("time to first token", "ttft_seconds"),
        ("output tokens/s, the replica", "output_tokens_per_second"),
    ):
        ends = [answer[name], answer[f"{name}_low"], answer[f"{name}_high"]]
        assert figures(text, label) == pytest.approx(ends, **near)
        assert ends[1] < ends[0] < ends[2]
    each_gpu = figures(text, "output tokens/s, each GPU")
    assert each_gpu[0] == pytest.approx(answer["output_tokens_per_second_per_gpu"], **near)
    assert each_gpu[2] == pytest.approx(answer["output_tokens_per_second_high"] / 8, **near)
    user = [1 / answer[f"tpot_seconds{end}"] for end in ("", "_high", "_low")]
    assert figures(text, "tokens/s of one user") == pytest.approx(user, **near)
    assert re.search(rf"bound by +{answer['bound_by']}\n", text) and "requests running    " in text
    assert re.search(r"requests running +64 of 64\n", text) and "indicative under load" in text
    assert re.search(r"of \d{3} runs on H200", text) and "docs/speed.md" in text
    assert text.startswith("SPEED ") and "Beyond" not in text


def test_one_request_is_not_indicative(run) -> None:  # type: ignore[no-untyped-def]
    assert "indicative" not in speed(run, "size", "--model", "8b")


def test_who_waits(run) -> None:  # type: ignore[no-untyped-def]
    answer = sheetgen.size(model="deepseek-r1", gpu="h200", tensor_parallel_size=8, concurrent_requests=1000)
    text = speed(run, *R1[:-1], "1000")
    assert f"{answer['queue']}.\n" in text and re.search(r"bound by +queue\n", text)
    assert re.search(rf" {answer['running_requests']} of 1,000\n", text)
    slow, fast = (speed(run, *R1[:-2], "--requests-per-second", rate) for rate in ("0.5", "1e3"))
    assert re.search(r" 0.50 arrive\n", slow) and "grows" not in slow
    assert " no end " in fast and " 1,000 requests a second arrive" in fast


def test_what_was_not_measured(run) -> None:  # type: ignore[no-untyped-def]
    expected = {
        ("--engine", "tgi"): "none of TGI on H100 SXM was measured",
        ("--gpu", "l40s"): "none of vLLM on L40S was measured",
        ("--pipeline-parallel-size", "2"): "Beyond what was measured: no run had pipeline stages.",
        ("--prefix-cache-hit-fraction", "0.5"): "Beyond what was measured: no run had prefix-cache hits.",
        ("--tensor-parallel-size", "8", "--data-parallel-size", "2", "--prefix-cache-hit-fraction", "1"): (
            "no run had more than 8 GPUs or prefix-cache hits."
        ),
        ("--tensor-parallel-size", "16"): "Bands: the widest of all; no run had pipeline stages, or more GPUs than a",
        ("--draft-model", "llama-3.1-8b-speculator.eagle3"): "What a draft model gains and costs in time is not",
        ("--gpu", "t4"): "Speed as if it ran: NVIDIA T4 does not run bf16 weights.",
        ("--max-num-seqs", "1", "--concurrent-requests", "9"): "8 of 9 requests ",
    }
    for options, words in expected.items():
        assert words in speed(run, "size", "--model", "8b", *options), options
    short = speed(run, "size", "--model", "405b")
    assert "\nSPEED " in short and not short.startswith("SPEED ")
    tight = ("size", "--model", "70b", "--tensor-parallel-size", "4", "--context", "16k", "--concurrent-requests", "28")
    assert " 15,872 tokens" in speed(run, *tight)


def test_what_a_measured_point_did(run) -> None:  # type: ignore[no-untyped-def]
    text = speed(run, *R1, "--measured", POINT)
    answer = json.loads(run(*R1, "--measured", POINT, "--json").output)
    [used] = answer["measured"]["used"]
    assert answer["speed_scope"] == "anchored" and used["measured_ttft_factor"] == 0
    assert "64 requests of 1,024 + 1,024 tokens" in text and "TPOT 22.4 ms" in text
    assert f"TPOT x {used['measured_tpot_factor']:.4g}." in text and "its band may be wider" in text
    both = speed(run, *R1, "--measured", POINT + ",ttft_ms=310")
    assert "its band may be wider" not in both and "docs/speed.md" in both
    crowd = speed(run, *R1, "--measured", POINT.replace("=64", "=5000"))
    assert re.search(r"; [\d,]+ of them wait", crowd)
    typed = speed(run, *R1, "--speed-factor", "1.25")
    assert "TPOT x 1.25, TTFT x 1." in typed


def test_options_that_would_be_ignored(run) -> None:  # type: ignore[no-untyped-def]
    result = run("size", "--from-log", "x.log", "--measured", POINT, "--requests-per-second", "3")
    assert result.exit_code == 2 and "--requests-per-second, --measured" in result.stderr


def test_assumed_peaks_are_said(run, tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = speed(run, "size", "--model", "8b", "--gpu", "t4", "-q", "--catalogs", without_a_peak(tmp_path))
    assert "peak of arithmetic of NVIDIA T4" in text
    linked = speed(run, "size", "--model", "8b", "--gpu", "trainium1", "--tensor-parallel-size", "2")
    assert "links between GPUs" in linked


def test_every_gpu_and_engine_has_a_speed() -> None:
    gpus = [gpu.id for gpu in Catalog().gpus()]
    for engine in ("vllm", "sglang", "tensorrt-llm", "nim", "tgi", "lmdeploy", "llama.cpp"):
        frame = pandas.DataFrame(
            {"model": "8b", "gpu": gpus, "engine": engine, "tensor_parallel_size": 2, "concurrent_requests": 5}
        )
        sized = sheetgen.size_frame(frame)
        for name in ("tpot_seconds_low", "ttft_seconds_high", "output_tokens_per_second", "max_requests_per_second"):
            assert (sized[name] > 0).all(), (engine, name)
        assert sized["bound_by"].isin(["bandwidth", "KV reads", "compute", "communication", "queue"]).all()


def test_the_explanation_gives_the_figures_of_the_docs() -> None:
    root = Path(__file__).parents[2]
    docs, explained = ((root / "docs" / name).read_text(encoding="utf-8") for name in ("speed.md", "explanation.md"))
    held_out = docs.split("## Whole configurations held out")[1].split("##")[0]
    anchored = docs.split("## With one measured point")[1].split("##")[0]
    rows = re.findall(r"\| (TPOT|TTFT|output tokens/s) \| ([\d.]+)", held_out)
    medians = {figure: round(float(median)) for figure, median in rows}
    words = f"{medians['TPOT']} % for the time per output token, {medians['TTFT']} % for the time to the first, "
    assert f"{words}{medians['output tokens/s']} % for tokens a second" in explained
    runs, configurations = re.findall(r"fitted on ([\d,]+) measured runs of (\d+) configurations", docs)[0]
    assert f"{runs} public runs" in explained and f"({configurations} " in explained
    point = re.findall(r"TPOT \| ([\d.]+)", anchored)[0]
    assert f"to {round(float(point))} %" in explained


def test_constants_of_an_engine(run) -> None:  # type: ignore[no-untyped-def]
    text = run("show", "vllm").output
    assert "\nspeed:\n  file: catalogs/speed.yaml\n" in text and not re.search(r"\de-\d", text)
    speed = json.loads(run("show", "nim", "--json").output)["speed"]
    assert speed["as"].startswith("vllm: ") and speed["Hopper"]["n_rows"] == 413
    assert 0 < speed["Hopper"]["weight_bandwidth_efficiency"] <= 1 and "source" in speed["other GPUs"]
    assert list(json.loads(run("show", "llama.cpp", "--json").output)["speed"]) == ["file", "other GPUs"]

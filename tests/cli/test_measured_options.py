"""The commands that take measured points, and what an answer says a measurement takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answers import never_measured
from command_lines import Run

RESULTS = Path(__file__).parents[1] / "data" / "measured" / "results"
LOGS = Path(__file__).parents[1] / "startup" / "logs"
POINT = "gpu=h100,tp=4,concurrent_requests=32,input_tokens=7k,output_tokens=1k,tpot_ms=40,ttft_ms=2000"


def test_the_benchmark_is_at_the_fullest_replicas_load(run: Run, workdir: Path) -> None:
    for engine, tool in (("vllm", "vllm bench serve"), ("sglang", "python -m sglang.bench_serving")):
        asked = ("recommend", "--model", "70b", "--context", "8k", "--concurrent-requests", "64", "--engine", engine)
        answer = json.loads(run(*asked, "--json").output)
        measure, words = answer["measure"], answer["measure"]["bench"].split()
        assert measure["bench"].startswith(tool) and words[words.index("--model") + 1] in measure["serve"]
        given = {flag: words[words.index(flag) + 1] for flag in ("--max-concurrency", "--num-prompts")}
        requests = answer["requests_per_replica"]
        assert given == {"--max-concurrency": str(requests), "--num-prompts": str(10 * requests)}
        assert words[words.index("--random-input-len") + 1] == str(answer["context_tokens"] - 1024)


@pytest.mark.long
def test_the_metadata_of_our_benchmark_names_the_deployment(run: Run, workdir: Path) -> None:
    """A result of the benchmark that an answer proposes needs nothing beside it."""
    asked = ("recommend", "--model", "70b", "--context", "8k", "--concurrent-requests", "64")
    answer = json.loads(run(*asked, "--json").output)
    words = answer["measure"]["bench"].split()
    metadata = dict(word.split("=") for word in words[words.index("--metadata") + 1 :])
    document = json.loads((RESULTS / "vllm-minimax-m2.5.json").read_text())
    load = {"completed": 10, "total_input_tokens": 71680, "total_output_tokens": 10240, "max_concurrency": 32}
    result = {**document, "model_id": "meta-llama/Llama-3.1-70B-Instruct", **load, **metadata}
    Path("result.json").write_text(json.dumps(result))
    record = json.loads(run(*asked, "--json", "--measured", "result.json").output)
    assert len(record["inputs"]["measured"]["used"]) == 1 and record["inputs"]["measured"]["unused"] == []


def test_every_command_says_what_it_used(run: Run, workdir: Path) -> None:
    asked = ("--model", "70b", "--context", "8k", "--concurrent-requests", "64", "--measured", POINT)
    text = " ".join(run("recommend", *asked).stdout.split())
    assert "32 requests of 7,168 + 1,024" in text and "TPOT 40.0 ms" in text
    unused = " ".join(run("recommend", *asked, "--gpus", "l40s").stdout.split())
    assert "nvidia-h100-sxm5-80gb, not nvidia-l40s-48gb" in unused
    result = run("build", "--models", "70b", "--measured", POINT, "--format", "json", "--out", ".")
    assert "Measured, the point given" in " ".join(result.output.split())
    (workdir / "result.json").write_text((RESULTS / "vllm-minimax-m2.5.json").read_text())
    (workdir / "s.yaml").write_text("models: [70b]\nmeasured: ['result.json,gpu=h100,tp=8']\nformat: json\nout: .\n")
    again = " ".join(run("build", "--scenario", "s.yaml").output.split())
    assert "minimax-m2.5, not llama-3.1-70b" in again


def test_a_plan_carries_its_measured_points(run: Run, workdir: Path) -> None:
    (workdir / "result.json").write_text((RESULTS / "vllm-minimax-m2.5.json").read_text())
    service = "{id: chat, demand: {at_once: 40}, model: minimax-m2.5, request: {context_tokens: 2k}"
    engine = "engine: {measured: ['result.json,gpu=h100,tp=8']}}"
    (workdir / "plan.yaml").write_text(
        f"plan: {{start: 2027-Q1, quarters: 1, as_of: 2026-11-20}}\nservices: [{service}, {engine}]\n"
    )
    assert run("plan", "plan.yaml", "--format", "json,md", "--out", ".").exit_code == 0
    (workdir / "result.json").unlink()
    record = json.loads((workdir / "capacity-plan.json").read_text())
    [point] = record["inputs"]["services"][0]["engine"]["measured"]
    assert "model=MiniMaxAI/MiniMax-M2.5" in point and "tpot_ms=16.39" in point
    again = run("plan", "capacity-plan.json", "--format", "json", "--out", ".", "--name", "again")
    assert again.exit_code == 0 and json.loads((workdir / "again.json").read_text()) == record
    refused = run("plan", "capacity-plan.json", "--measured", POINT)
    assert refused.exit_code == 1 and "goes with the plan's YAML" in refused.stderr


def test_a_plan_says_what_it_did_not_use(run: Run, workdir: Path) -> None:
    """Runs of no steady load, files of other deployments, given in the file or beside it; and start-up logs it used."""
    unsteady = RESULTS / "vllm-llama-3-8b-h100-pcie-16-a-second.json"
    log, other = LOGS / "vllm-0.31.0.log", LOGS / "vllm-0.22.0.log"
    (workdir / "plan.yaml").write_text(
        "plan: {start: 2027-Q1, quarters: 1, as_of: 2026-11-20}\n"
        f"policy: {{measured: ['{log},gpu=a100', '{unsteady}']}}\n"
        "services: [{id: chat, demand: {at_once: 40}, model: 8b, request: {context_tokens: 2k}}]\n"
    )
    asked = ("plan", "plan.yaml", "--format", "json,md", "--out", ".", "--measured", f"{other},gpu=l40s")
    text = " ".join(run(*asked).output.split())
    assert f"{unsteady} (vllm bench serve): " in text
    assert f"{other} (a start of vLLM 0.22.0): " in text and "qwen2.5-7b, not llama-3.1-8b" in text
    assert f"Read and not used, {log}" not in text
    page = (workdir / "capacity-plan.md").read_text()
    assert f"{log} (a start of vLLM 0.31.0)" in page
    assert "its load was not steady" in page and "it is of model qwen2.5-7b" in page
    points = json.loads((workdir / "capacity-plan.json").read_text())["inputs"]["policy"]["measured"]
    assert len(points) == 2 and all("kv_pool_gib=" in point for point in points)


def test_a_start_up_log_is_said_with_its_pool(run: Run, workdir: Path) -> None:
    log = LOGS / "vllm-0.31.0.log"
    asked = ("--context", "16k", "--concurrent-requests", "28", "--measured", f"{log},gpu=a100")
    size = " ".join(run("size", "--model", "8b", "--gpu", "a100", *asked).stdout.split())
    recommend = run("recommend", "--model", "8b", "--weight-dtype", "bf16", "--gpus", "a100", *asked)
    for text in (size, " ".join(recommend.stdout.split())):
        assert f"{log} (a start of vLLM 0.31.0): " in text and "56.21 GiB (460,496 tokens)" in text
        assert "+0.06 GiB a GPU" in text
    assert "as measured 56.21" in size and "start-up logs" in size
    measured = json.loads(run("recommend", "--model", "8b", *asked, "--json").output)["inputs"]["measured"]
    assert measured["used"] == [] and measured["unused"][0]["reason"].startswith("it is of weights bf16")
    explained = " ".join(
        run("explain", "kv_pool_bytes_per_gpu", "--model", "8b", "--gpu", "a100", *asked).stdout.split()
    )
    assert "56.21 GiB printed, 56.16" in explained
    build = ("build", "--models", "8b", "--weight-dtype", "published", "--gpus", "a100", "--format", "md")
    page = run(*build, *asked[4:])
    assert page.exit_code == 0
    text = (workdir / "output" / "sizing-sheet.md").read_text(encoding="utf-8")
    assert f"56.2 GiB a GPU, {log.name}" in text
    assert never_measured() in text  # in speed, of which a start says nothing

"""stacks.yaml: its schema, its rules on real points, and the line that names facts with numbers."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from option_values import Options
from points import POINTS, catalog, launchers, written

from sheetgen.api import size
from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.check import faults_of
from sheetgen.catalog.stacks import FACTS, TEXT_FACTS, Rule, Run, StackFile
from sheetgen.errors import CatalogError
from sheetgen.launch.flags import advice_record, facts_of, shown_facts

MEASURED = Path(__file__).parents[1] / "data" / "measured"
TEXT = (default_folder() / "stacks.yaml").read_text(encoding="utf-8")


def test_every_rule_and_launcher_has_its_source_and_names_engines_that_are_sized() -> None:
    file, ids = catalog().file(StackFile), set(catalog().ids("engines"))
    assert file.checked_on == "2026-11-21"
    for launcher in file.launchers:
        assert launcher.engine in ids and launcher.flags_source and launcher.kv_cache_source and launcher.weight_source
    for rule in file.rules:
        assert rule.sources and len(rule.reason) > 20 and set(rule.suits) <= ids
    for setting in file.settings:
        assert setting.engine in ids


def test_facts_are_those_that_rules_may_name() -> None:
    flags, _ = written(("vllm",), **POINTS["8b"])
    facts = facts_of(flags["vllm"].checked.requested)
    assert tuple(sorted(facts)) == tuple(sorted(FACTS)) and set(shown_facts(facts)) == set(FACTS)
    assert {name for name, value in facts.items() if isinstance(value, str)} == set(TEXT_FACTS)


@pytest.mark.parametrize(
    ("point", "rule", "engines", "numbers"),
    [
        ({"model": "8b", "gpu": "mi300x"}, "other-vendor", ("vllm", "sglang"), ("MI300X",)),
        (
            {"model": "8b", "gpu": "rtx-4090", "kv_cache_dtype": "int8"},
            "kv-eight-bit-integers",
            ("lmdeploy",),
            ("int8",),
        ),
        (
            {"model": "8b", "gpu": "h100", "context_tokens": "16k", "prefix_cache_hit_fraction": 0.4},
            "shared-prefix",
            ("sglang", "vllm"),
            ("40%", "6,144", "15,360"),
        ),
        ({**POINTS["gpt-oss"]}, "windows", ("vllm", "tensorrt-llm", "nim"), ("18 of 36", "128 tokens", "32,768")),
        (
            {"model": "qwen3-next-80b-a3b", "gpu": "h200", "tensor_parallel_size": 2},
            "recurrent-states",
            ("nim",),
            ("36 of 48",),  # its vLLM keeps a state once, not twice
        ),
        ({**POINTS["r1"]}, "latent-copied", ("sglang", "vllm", "tensorrt-llm"), ("61 layers", "TP 8")),
        ({**POINTS["r1-dp"]}, "latent-shared-out", ("sglang", "vllm", "tensorrt-llm"), ("8 data-parallel", "68.6 KiB")),
        ({"model": "8b", "gpu": "rtx-4090"}, "small-gpu", ("lmdeploy",), ("RTX 4090", "128.0 KiB a token")),
        ({**POINTS["70b-fp8"]}, "one-shape-for-long", ("tensorrt-llm",), ("80 layers", "1,904")),
        (
            {**POINTS["70b-fp8"], "gpu": "b200", "weight_dtype": "nvfp4"},
            "blackwell-four-bits",
            ("tensorrt-llm",),
            ("B200", "nvfp4", "5,188"),
        ),
        (
            {"model": "gpt-oss-20b", "gpu": "spark", "prefix_cache_hit_fraction": 0.5},
            "dgx-spark",
            ("vllm",),
            ("DGX Spark", "208"),
        ),
        ({**POINTS["8b"]}, "nothing-special", ("vllm",), ("32 layers", "128.0 KiB a token")),
        ({"model": "405b", "gpu": "t4"}, None, (None,), ("no stack",)),
    ],
)
def test_the_line(point: Options, rule: str | None, engines: tuple[str | None, ...], numbers: tuple[str, ...]) -> None:
    flags, advice = written(**point)
    assert (advice.rule.id if advice.rule else None) == rule and advice.engine in engines
    assert all(number in advice.line for number in numbers), advice.line
    assert "\n" not in advice.line and "{" not in advice.line
    if advice.engine:
        assert flags[advice.engine].checked.printed is not None  # never one that would not start
        held = int(flags[advice.engine].checked.printed.quantities["sequences_in_pool"])  # type: ignore[union-attr]
        assert f"its pool holds {held * point.get('data_parallel_size', 1):,} request" in advice.line
        record = advice_record(advice)
        assert record["engine"] == advice.engine and record["sources"] and record["sequences_held"][advice.engine] > 0


def runs() -> list[Any]:
    return [pytest.param(rule, run, id=f"{rule.id}-{run.engine}") for rule in rules() for run in rule.runs]


def rules() -> tuple[Rule, ...]:
    return catalog().file(StackFile).rules


@pytest.mark.parametrize(("rule", "run"), runs())
def test_size_predicts_every_run_that_the_advice_cites(rule: Rule, run: Run) -> None:
    """Within the 80 % band, in one of the precisions of the cache where the run does not state it."""
    n_replicas = run.n_gpus // run.tensor_parallel_size
    deployment = run.model_dump(exclude={"source", "n_gpus", "concurrency", "tokens_per_second"}, exclude_none=True)
    deployment |= {"concurrent_requests": run.concurrency // n_replicas}
    deployment |= {"context": run.input_tokens + run.output_tokens}
    kv_cache_dtypes = [run.kv_cache_dtype] if run.kv_cache_dtype else ["bf16", "fp8"]
    sized = [size(**{**deployment, "kv_cache_dtype": dtype}, catalogs=catalog()) for dtype in kv_cache_dtypes]
    bands = [(s["output_tokens_per_second_low"], s["output_tokens_per_second_high"]) for s in sized]
    assert any(low * n_replicas <= run.tokens_per_second <= high * n_replicas for low, high in bands), bands
    assert f"{run.tokens_per_second:,}" in rule.says and rule.sources


def test_every_rate_that_a_rule_names_is_of_a_run() -> None:
    for rule in rules():
        rates = re.findall(r"([\d,]+) (?:tokens/s|\(vLLM\)|\(SGLang\))", rule.says)
        assert sorted(rates) == sorted(f"{run.tokens_per_second:,}" for run in rule.runs), rule.id
    assert any(rule.runs for rule in rules())


def test_the_runs_are_those_of_the_measured_files() -> None:
    """All tokens of all requests over the time of one; the run on DGX Spark is in no table here."""
    with (MEASURED / "throughput_serving.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    cited = [(run, rows[run.source.split(", ")[1]]) for rule in rules() for run in rule.runs if run.gpu != "spark"]
    for run, row in cited:
        seconds = (float(row["ttft_ms"]) + (run.output_tokens - 1) * float(row["tpot_ms"])) / 1000
        assert round(run.concurrency * run.output_tokens / seconds) == run.tokens_per_second
        for name in ("engine", "gpu", "weight_dtype", "n_gpus", "tensor_parallel_size", "input_tokens"):
            assert row[name] == str(getattr(run, name))
        assert (row["output_tokens"], row["concurrent_requests"]) == (str(run.output_tokens), str(run.concurrency))
    assert len(cited) == 4


def test_rooms_that_are_about_equal_leave_the_rules_order() -> None:
    flags, advice = written(**{**POINTS["qwen3-235b"], "context_tokens": "4k"})
    held = {e: f.checked.printed.quantities["sequences_in_pool"] for e, f in flags.items() if f.checked.printed}
    assert max(held.values()) != held["vllm"] and held["vllm"] >= 0.95 * max(held.values())
    assert advice.engine == "vllm"


def test_windows_are_no_pattern_where_they_are_kept() -> None:
    _, advice = written(**POINTS["gpt-oss"], hybrid_kv_manager=0)
    assert advice.rule is not None and advice.rule.id != "windows"


def overlay(folder: Path, text: str) -> Catalog:
    (folder / "stacks.yaml").write_text(text, encoding="utf-8")
    return Catalog(folder)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("fact: vendor, is_not", "fact: vendr, is_not", "is not a fact of a point. Did you mean vendor?"),
        ("{gpu} is no NVIDIA", "{gpu.__class__} is no NVIDIA", "which is not a fact"),
        ("{gpu} is no NVIDIA", "{gpu!r} is no NVIDIA", "which is not a fact"),
        ("{gpu} is no NVIDIA", "{gpu is no NVIDIA", "brace"),
        ("suits: [vllm, sglang]\n    says: '{gpu} is", "suits: [vlm, sglang]\n    says: '{gpu} is", "no launcher here"),
        ("{fact: vendor, is_not: nvidia}", "{fact: vendor, at_least: 1}", "vendor needs is_not or is_one_of"),
        ("{fact: is_moe, at_most: 0}", "{fact: is_moe, is_not: x}", "is_moe needs at_least or at_most"),
        ("--tensor-parallel-size", "'--tp; reboot'", "is no flag or word of one"),
        ("{name: max_seq_len,", "{name: max_batch_size,", "max_batch_size is given twice"),
        ("fp8: fp8_e4m3", "fp9: fp8_e4m3", "is not one of bf16"),
        ("    when: []\n    suits", "    when: [{fact: is_moe, at_least: 1}]\n    suits", "the last rule must hold"),
        ("speculative_tokens: 3", "speculative_token: 3", "Did you mean speculative_tokens?"),
    ],
)
def test_a_broken_file_is_told_with_its_line(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert old in TEXT
    broken = overlay(tmp_path, TEXT.replace(old, new, 1))
    with pytest.raises(CatalogError) as raised:
        broken.file(StackFile)
    assert any(problem in line and "stacks.yaml:" in line for line in raised.value.problems), raised.value.problems
    assert any(problem in line for *_, line in faults_of(broken))


def test_check_reads_it(tmp_path: Path) -> None:
    shutil.copy(default_folder() / "stacks.yaml", tmp_path)
    assert faults_of(Catalog(tmp_path)) == []


def test_an_engine_without_a_launcher() -> None:
    with pytest.raises(CatalogError, match=r"flags are kept for vllm, .*, not for 'tgi'"):
        catalog().file(StackFile).launcher("tgi")
    assert set(launchers()) == {"vllm", "sglang", "tensorrt-llm", "nim", "lmdeploy"}

"""The deaths of a deployment: the catalog's facts, with this sheet's numbers, checked against `size`."""

from __future__ import annotations

import dataclasses
import re

import pytest
from answers import record_for
from solved_pages import FIVE, MEMORY, THREE, answered

from sheetgen.answer.replica_bills import subject
from sheetgen.answer.solution import headline_rows
from sheetgen.api import size
from sheetgen.catalog import guidance
from sheetgen.report.fingerprints import Fingerprint, Fix, fingerprints_of
from sheetgen.report.page import FingerprintRow as Row
from sheetgen.report.page import formatted

RUNNING = ["Long completion", "Concurrency spike", "Long prompt"]


def deaths(models: str = THREE, **options: object) -> dict[str, Fingerprint]:
    solved = answered(models, **options)
    return {f.label: f for f in fingerprints_of(record_for(solved, ()), solved.question)}


def test_the_four_rows_of_the_guide_the_last_by_bill() -> None:
    fingerprints = list(deaths().values())
    assert [f.where for f in fingerprints] == RUNNING + ["At start"] * 4
    assert len({f.bill for f in fingerprints}) == 7 and {f.label for f in fingerprints} <= set(guidance.LABELS)
    for f in fingerprints:
        assert f.fixes and f.sources and f.log_lines and f.here
        assert all(s.url and s.url.startswith("https://github.com/") for s in f.sources)
        assert all(fix.reason and fix.cost for fix in f.fixes)
        of_engine = [fix for fix in f.fixes if fix.direction not in ("add", "rent")]
        assert all(fix.flag.startswith("--") for fix in of_engine), "every fix has a vLLM flag"


def test_the_profile_run_has_a_row_of_its_own() -> None:
    """Of vLLM alone, with the flag that frees what a step takes; the row of CUDA graphs keeps its own fixes."""
    solved = answered("70b")
    rows = [
        (f.bill, f.case, [fix.flag for fix in f.fixes])
        for f in fingerprints_of(record_for(solved, ()), solved.question)
    ]
    (place,) = (i for i, (_, case, _) in enumerate(rows) if case)
    bill, case, flags = rows[place]
    assert (bill, case, flags[0]) == ("Activations of the profile run", "profile", "--max-num-batched-tokens")
    assert rows[place + 1][0] == "Workspace and CUDA graphs" and "--max-num-batched-tokens" not in rows[place + 1][2]
    solved = answered("70b", engine="sglang")
    assert not [f for f in fingerprints_of(record_for(solved, ()), solved.question) if f.case]


def test_a_step_that_frees_nothing_is_not_said() -> None:
    """A replica started for few requests: fewer of them free less than a tenth of a GiB, and what helps is said."""
    solved = answered("70b")
    record, started = record_for(solved, ()), {"max_num_seqs": 12, "sampler_bytes": 5e7}
    numbers = {**record.of_replica, **started, "sampler_bytes_at_fewer_sequences": 3e7}
    fingerprints = fingerprints_of(dataclasses.replace(record, of_replica=numbers), solved.question)
    (sampler,) = (f for f in fingerprints if f.label == "sampler_logits_peak")
    assert [fix.flag for fix in sampler.fixes] == ["--gpu-memory-utilization"]
    assert "1,024 by default: " in sampler.here


@pytest.mark.parametrize(
    "label,flag,direction",
    [
        ("concurrency_spike", "--gpu-memory-utilization", "raise"),
        ("startup_kv_pool_too_small", "--gpu-memory-utilization", "raise"),
        ("long_completion", "--gpu-memory-utilization", "raise"),
        ("prefill_long_prompt", "--gpu-memory-utilization", "lower"),
        ("startup_workspace_or_cuda_graph", "--gpu-memory-utilization", "lower"),
        ("sampler_logits_peak", "--gpu-memory-utilization", "lower"),
        ("prefill_long_prompt", "--max-num-batched-tokens", "lower"),
        ("sampler_logits_peak", "--max-num-seqs", "lower"),
        ("startup_workspace_or_cuda_graph", "--enforce-eager", "set"),
    ],
)
def test_the_same_flag_turns_either_way(label: str, flag: str, direction: str) -> None:
    assert {f.flag: f.direction for f in deaths()[label].fixes}[flag] == direction
    weights = [f.flag for f in deaths()["startup_weights_do_not_fit"].fixes]
    assert "--gpu-memory-utilization" not in weights and "--kv-cache-dtype" not in weights


def started(models: str, fit_on: dict[str, str], **numbers: object) -> dict[str, Fingerprint]:
    """The deaths of a replica with some of its numbers as it is started."""
    solved = answered(models, **fit_on)
    record = record_for(solved, ())
    fingerprints = fingerprints_of(
        dataclasses.replace(record, of_replica={**record.of_replica, **numbers}), solved.question
    )
    return {f.label: f for f in fingerprints}


def test_more_gpus_are_advised_only_where_the_machine_has_them() -> None:
    only = {"gpus": "h100-nvl", "providers": "azure"}
    solved = answered("70b", **only)
    numbers = record_for(solved, ()).of_replica
    machine = solved.question.instances[str(numbers["instance"])]
    for size_of, is_left in ((machine.gpu_count, False), (machine.gpu_count - 1, machine.gpu_count > 1)):
        fixes = started("70b", only, tensor_parallel_size=size_of)["startup_weights_do_not_fit"].fixes
        assert ("--tensor-parallel-size" in [fix.flag for fix in fixes]) == is_left
    everywhere = answered("70b", users="300")
    record = record_for(everywhere, ())
    [cell] = record.headline_cells
    instances, rented = everywhere.question.instances, everywhere.question.instances[cell.answer.instance]
    memory = {name: machine.gpu_count * machine.gpu.memory.engine_bytes for name, machine in instances.items()}
    # The months of the cell's own reasons: those that are too slow or too small have none.
    months = {rejected.instance: re.match(r"\$([\d,]+) a month", rejected.reason) for rejected in cell.why_not}
    larger = {
        name: float(month[1].replace(",", ""))
        for name, month in months.items()
        if month and memory[name] > memory[rented.instance]
    }
    fixes = started("70b", {"users": "300"}, tensor_parallel_size=rented.gpu_count)["startup_weights_do_not_fit"].fixes
    [offer] = [fix.flag for fix in fixes if fix.direction == "rent"]
    least = min(larger, key=lambda name: larger[name])
    assert f"${larger[least]:,.0f} a month" in offer and instances[least].gpu.short_name in offer
    slow = {rejected.instance for rejected in cell.why_not if "too slow" in rejected.reason}
    assert any(memory[name] > memory[rented.instance] for name in slow), "no machine holds it and is too slow"


def test_the_length_limit_is_named_as_it_is_started() -> None:
    """The start command has the load's own length: a lower value than that is the fix, with and without its number."""
    fixes = deaths("70b")["startup_kv_pool_too_small"].fixes
    [limit] = [fix for fix in fixes if fix.flag == "--max-model-len"]
    context = int(deaths("70b")["startup_kv_pool_too_small"].numbers["context_tokens"])
    assert (limit.direction, limit.below, limit.lasting) == ("lower", str(context), "lower max_model_len")
    assert limit.in_words == f"lower max_model_len below {context}" and limit.short == f"max_model_len < {context}"


def test_a_limit_of_requests_is_no_want_of_memory() -> None:
    """The next request waits while the pool has more: no flag of memory helps, a further replica does."""
    capped = started("70b", {}, max_num_seqs=1)["concurrency_spike"]
    assert [fix.direction for fix in capped.fixes] == ["add"] and "waits" in capped.here
    full = started("70b", {}, max_num_seqs=100_000)["concurrency_spike"]
    assert "--gpu-memory-utilization" in [fix.flag for fix in full.fixes]


def test_what_the_length_limit_refuses_is_no_risk_of_memory() -> None:
    n = deaths("70b")["long_completion"].numbers
    context, model_limit = n["context_tokens"], n["max_context_tokens"]
    beyond = started("70b", {}, longest_tokens_at_load=(int(context) + int(model_limit)) // 2)["long_completion"]
    assert "refused over" in beyond.here
    within = started("70b", {}, longest_tokens_at_load=int(context) - 1)["long_completion"]
    assert "refused" not in within.here


def test_the_subject_is_the_largest_model_without_stages() -> None:
    for models in (THREE, FIVE):
        for options, largest in (({**MEMORY, "gpus": "h100"}, "llama-3.1-70b"), ({}, "llama-3.1-405b")):
            solved = answered(models, **options)
            fit = subject(solved)
            assert fit is not None and fit.solved.question.models[fit.model].model.id == largest
            whole = [row for row in headline_rows(solved) if solved.choices[row].pipeline_parallel_size == 1]
            models_of = [solved.question.loads[row].model for row in whole]
            assert fit.model == max(models_of, key=lambda model: solved.models["weights_bytes"][model])
    assert subject(answered("405b", **MEMORY)) is not None and subject(answered("405b")) is not None
    assert subject(answered("qwen3.8-2.4t-a95b", gpus="l4")) is None


@pytest.mark.parametrize(
    "models,gpu,asked",
    [
        (THREE, "nvidia-b200-sxm6-180gb", MEMORY),
        (THREE, "", {}),
        ("70b", "nvidia-h100-sxm5-80gb", {"gpus": "h100"}),
        ("gemma-3-27b", "nvidia-h100-sxm5-80gb", {"gpus": "h100"}),
        ("70b", "nvidia-h100-sxm5-80gb", {"gpus": "h100", "tpot_ms": "20"}),
    ],
)
def test_the_numbers_are_those_of_size(models: str, gpu: str, asked: dict[str, str]) -> None:
    n = deaths(models, **asked)["concurrency_spike"].numbers
    fit = subject(answered(models, **asked))
    assert fit is not None and gpu in fit.candidate.gpu.id
    load = {
        "model": n["model"],
        "gpu": fit.candidate.gpu.id,
        "tensor_parallel_size": n["tensor_parallel_size"],
        "context": n["context_tokens"],
    }
    assert n["pipeline_parallel_size"] == 1 and n["next_request"] == n["sequences_held"] + 1
    held = size(**load, concurrent_requests=n["sequences_held"])
    assert held["fits"] and held["kv_pool_bytes_per_gpu"] == n["kv_pool_bytes_per_gpu"]
    assert held["weights_bytes_per_gpu"] == n["weights_bytes_per_gpu"]
    assert held["activation_bytes_per_gpu"] == n["activation_bytes_per_gpu"]
    assert not size(**load, concurrent_requests=n["next_request"])["fits"] or n["next_request"] > n["max_num_seqs"]
    longest = n["longest_tokens_at_load"]
    load.pop("context")
    assert size(**load, context=longest, concurrent_requests=n["requests_per_replica"])["fits"]
    if longest < n["max_context_tokens"]:
        assert not size(**load, context=longest + 16, concurrent_requests=n["requests_per_replica"])["fits"]
    fewer = size(**load, context=2048, max_num_batched_tokens=2048)["activation_bytes_per_gpu"]
    assert fewer == n["activation_bytes_at_fewer_tokens"]


@pytest.mark.parametrize("asked,model", [(MEMORY, "Llama 3.1 405B"), ({}, "Llama 3.1 405B")])
def test_the_sentences_say_the_numbers(asked: dict[str, str], model: str) -> None:
    by_label, fit = deaths(**asked), subject(answered(THREE, **asked))
    n = by_label["concurrency_spike"].numbers
    assert fit is not None
    gpus = f"{fit.layout.tensor_parallel_size}× {fit.candidate.gpu.short_name}"
    assert gpus == "8× B200 SXM"
    assert by_label["concurrency_spike"].here == (
        f"{model}: at 16k {gpus} hold {n['sequences_held']}; request {n['next_request']} does not fit"
    )
    assert by_label["long_completion"].here.count(f" {n['longest_tokens_at_load']:,} tokens") == 1
    rows = formatted(tuple(f.on_page(named=i == 0) for i, f in enumerate(by_label.values())))
    assert rows[0].here.startswith(f"{model}: ") and not rows[1].here.startswith("Llama")
    assert all(isinstance(row, Row) and len(row.here) <= 80 and len(row.change) <= 60 for row in rows)
    gb = deaths("70b", units="gb")
    assert "141.1 GB in bf16" in gb["startup_weights_do_not_fit"].here


def test_stages_are_counted_on_the_fullest_one() -> None:
    numbers = deaths("405b", gpus="h100", **MEMORY)["concurrency_spike"].numbers
    fit = subject(answered("405b", gpus="h100", **MEMORY))
    assert fit is not None and numbers["pipeline_parallel_size"] == 2
    assert numbers["sequences_held"] == int(
        numbers["kv_pool_bytes_per_gpu"] // numbers["kv_bytes_per_sequence_per_gpu"]
    )
    total = sum(numbers[k] for k in ("weights_bytes_per_gpu", "kv_pool_bytes_per_gpu"))
    overhead = fit["stage_overhead_bytes"]
    assert total + overhead == pytest.approx(numbers["memory_budget_bytes"], rel=1e-9)


@pytest.mark.parametrize(
    "fix,words",
    [
        (Fix("--max-model-len", "lower", None, "r", "c"), "max_model_len ↓"),
        (Fix("--max-num-seqs", "lower", "256", "r", "c"), "max_num_seqs ↓ 256"),
        (Fix("--gpu-memory-utilization", "lower", "by 0.01 to 0.05", "r", "c"), "gpu_memory_utilization ↓"),
        (Fix("--kv-cache-dtype", "set", "fp8", "r", "c"), "kv_cache_dtype fp8"),
        (Fix("--enforce-eager", "set", None, "r", "c"), "enforce_eager"),
        (Fix("--swap-space", "unset", None, "r", "c"), "without swap_space"),
        (Fix("end the other process", "free", None, "r", "c"), "end the other process"),
    ],
)
def test_a_fix_in_short(fix: Fix, words: str) -> None:
    assert fix.short == words


def test_what_a_workbook_advises_names_no_machine_and_no_number_that_an_edit_changes() -> None:
    rented = {death.label: death for death in started("70b", {"providers": "azure"}).values()}
    weights = rented["startup_weights_do_not_fit"]
    assert weights.fixes[0].direction in ("rent", "raise") and weights.fixes[0].lasting == "give each replica more GPUs"
    assert all(
        not re.search(r"[$\d]", fix.lasting.replace("fp8", ""))
        for fingerprint in rented.values()
        for fix in fingerprint.fixes
    )
    assert all("is_of_gpus" not in fix for fingerprint in rented.values() for fix in fingerprint.record()["fixes"])


def test_a_length_limit_helps_below_the_length_that_is_started() -> None:
    def advised(**asked: str) -> dict[str, list[str]]:
        return {
            label: [fix.below for fix in deaths("70b", **asked)[label].fixes if "max-model-len" in fix.flag]
            for label in ("long_completion", "startup_kv_pool_too_small")
        }

    assert set(map(tuple, advised().values())) == {("16384",)}
    assert not any(advised(headline="long-doc:1").values())  # as long as the model's own limit

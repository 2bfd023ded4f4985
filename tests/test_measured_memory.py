"""Start-up logs set the KV pool of their deployment, there only; public logs, and their pairs of one deployment."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import books
import pandas
import pytest
from amounts import IN_LONG
from measured_rows import h100_rows, log_rows, predict
from option_values import Options
from recalculation import edit, needs_libreoffice, poison, recalculate, values_after
from workbook_cells import areas, values

import sheetgen
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog, guidance
from sheetgen.errors import ScenarioError
from sheetgen.measured.measured_point import MeasuredPool, Unusable
from sheetgen.measured.read_measured import read_measured, written_out
from sheetgen.question.sheet_question import ask
from sheetgen.sizing import certainty
from sheetgen.units import GIB

CATALOG = Catalog()
LOGS = Path(__file__).parent / "startup" / "logs"
LOG = LOGS / "vllm-0.31.0.log"
A100 = f"{LOG},gpu=a100"  # whose memory is an H100's, too, to 1 %
ITS_OWN = {"model": "8b", "gpu": "a100", "engine_version": "0.31.0", "context": 131072}
# By log what served, as its lines say it, and what was told: the pool in GiB, its tokens.
READ: dict[str, tuple[dict[str, Any], float | None, int]] = {
    "vllm-0.31.0": (
        {"model": "llama-3.1-8b", "gpu": "a100", "max_model_len": 131072, "gpu_memory_utilization": 0.92},
        56.21,
        460_496,
    ),
    "vllm-0.22.0": ({"model": "qwen2.5-7b", "gpu": "l40s", "gpu_memory_utilization": 0.95}, 26.32, 492_912),
    "vllm-0.10.2": ({"model": "qwen3-next-80b-a3b", "gpu": "h200", "tensor_parallel_size": 2}, 44.59, 973_760),
    "vllm-0.27-tp4": (
        {"model": "qwen3-235b-a22b-2507", "gpu": "rtx-pro-6000-server", "tensor_parallel_size": 4, "max_num_seqs": 32},
        27.85,
        621_392,
    ),
    "vllm-0.8.3": ({"model": "deepseek-r1-distill-qwen-1.5b", "gpu": "rtx-4090"}, None, 426_448),
    "sglang-0.4.3": ({"model": "qwq-32b", "gpu": "l4", "tensor_parallel_size": 4}, 2.84, 46_611),
    "sglang-0.5": ({"model": "qwen3-8b", "gpu": "b200", "engine": "sglang"}, 136.36, 992_896),
}


def pool_of(log: str) -> MeasuredPool:
    [pool] = read_measured([LOGS / f"{log}.log"], CATALOG)
    assert isinstance(pool, MeasuredPool)
    return pool


@pytest.mark.parametrize("log", READ)
def test_a_log_is_read_as_its_engine_wrote_it(log: str) -> None:
    told, gib, tokens = READ[log]
    pool = pool_of(log)
    for name, value in told.items():
        assert getattr(pool, name) in (value, None) if name == "gpu" else getattr(pool, name) == value
    assert pool.kv_tokens == tokens
    # Some print bytes, too.
    assert gib is None or (pool.kv_pool_bytes_per_gpu or 0) / GIB == pytest.approx(gib, abs=0.0051)
    [again] = read_measured(written_out([pool]), CATALOG)
    assert isinstance(again, MeasuredPool) and again.settings == pool.settings
    # Its figures are written to 12 digits.
    assert (again.kv_pool_bytes_per_gpu or 0) == pytest.approx(pool.kv_pool_bytes_per_gpu or 0, rel=1e-11)


def test_a_log_is_read_however_it_was_kept(tmp_path: Path) -> None:
    """Packed, or each line in a JSON of a container's logger, as `size --from-log` reads it."""
    plain = pool_of("vllm-0.22.0")
    text = (LOGS / "vllm-0.22.0.log").read_text()
    (tmp_path / "packed.log.gz").write_bytes(gzip.compress(text.encode()))
    lines = (json.dumps({"log": f"{line}\n", "stream": "stderr"}) for line in text.splitlines())
    (tmp_path / "container.log").write_text("\n".join(lines))
    for name in ("packed.log.gz", "container.log"):
        [pool] = read_measured([tmp_path / name], CATALOG)
        assert isinstance(pool, MeasuredPool) and name in pool.source
        assert replace(pool, source=plain.source) == plain


@pytest.mark.parametrize("log", READ)
def test_the_pool_is_the_logs_at_its_own_settings(log: str) -> None:
    told, gib, tokens = READ[log]
    pool = pool_of(log)
    given = {"engine": pool.engine, "weight_dtype": pool.weight_dtype, **pool.settings, **told}
    given["context"] = given["max_model_len"]
    answer = sheetgen.size(**given, measured=f"{LOGS / f'{log}.log'}")
    assert answer["kv_tokens"] == tokens
    if gib:  # as printed, to 0.01 GiB: by SGLang keys and values apart, each to that
        assert answer["kv_pool_bytes_per_gpu"] / GIB == pytest.approx(gib, abs=0.0101)
    [start] = answer["measured"]["memory"]
    assert start["kv_pool_bytes_per_gpu"] == pytest.approx(answer["kv_pool_bytes_per_gpu"], abs=1)
    assert start["predicted_kv_pool_bytes_per_gpu"] == sheetgen.size(**given)["kv_pool_bytes_per_gpu"]


def test_a_difference_holds_at_other_settings() -> None:
    """In bytes, whatever the engine may take and however long requests are; nothing of it where the pool is set."""
    [start] = sheetgen.size(**ITS_OWN, measured=A100)["measured"]["memory"]
    more = start["kv_pool_bytes_per_gpu"] - start["predicted_kv_pool_bytes_per_gpu"]
    assert more > 0.05 * GIB  # the log is not what is predicted: 0.057 GiB more
    for other in ({"gpu_memory_utilization": 0.5}, {"context": "4k"}, {"max_num_seqs": 64}, {"kv_cache_dtype": "fp8"}):
        plain, answer = sheetgen.size(**ITS_OWN | other), sheetgen.size(**ITS_OWN | other, measured=A100)
        # Both are rounded to whole bytes.
        assert answer["kv_pool_bytes_per_gpu"] - plain["kv_pool_bytes_per_gpu"] == pytest.approx(more, abs=2)
    outright = {**ITS_OWN, "kv_cache_memory_bytes": 20 * GIB}
    answer = sheetgen.size(**outright, measured=A100)
    assert answer["kv_pool_bytes_per_gpu"] == answer["kv_pool_bytes_per_gpu_low"] == 20 * GIB


OTHERS: tuple[Options, ...] = (
    {"gpu": "h100"}, {"model": "qwen3-8b"}, {"weight_dtype": "fp8"}, {"tensor_parallel_size": 2},
    {"pipeline_parallel_size": 2}, {"data_parallel_size": 2}, {"engine": "sglang", "engine_version": None},
    {"draft_model": "llama-3.2-1b"},
)  # fmt: skip


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_other_deployments_keep_their_prediction(other: Options) -> None:
    asked = {**ITS_OWN, "context": "16k", **other}
    plain = sheetgen.size(**asked)
    answer = sheetgen.size(**asked, measured=f"{A100},model=8b")
    measured = answer.pop("measured")
    assert answer == plain and measured["memory"] == [] and len(measured["unused"]) == 1


def test_the_band_is_narrower_and_the_chance_follows() -> None:
    """Of a pool that fills its requests to a few hundred MiB: by hand from the band's end, 1.2816 deviations off."""
    load = {**ITS_OWN, "context": "16k", "concurrent_requests": 28}  # 2 GiB each
    for version, gib in (("0.31.0", 0.1), ("0.30.0", 0.2)):
        asked = {**load, "engine_version": version}
        plain, answer = sheetgen.size(**asked), sheetgen.size(**asked, measured=A100)
        pool = answer["kv_pool_bytes_per_gpu"]
        for end, sign in (("low", -1), ("high", 1)):
            # Ends and pool are whole bytes.
            assert answer[f"kv_pool_bytes_per_gpu_{end}"] == pytest.approx(pool + sign * gib * GIB, abs=2)
            assert abs(plain[f"kv_pool_bytes_per_gpu_{end}"] - plain["kv_pool_bytes_per_gpu"]) > 0.3 * GIB
        free = pool - 56 * GIB
        assert answer["chance"] == pytest.approx(NormalDist().cdf(1.2816 * free / (gib * GIB)), rel=1e-6)
        assert answer["band_scope"] == plain["band_scope"] and answer["tpot_seconds"] == plain["tpot_seconds"]
    assert plain["chance"] < 0.55 and sheetgen.size(**load, measured=A100)["chance"] > 0.95


def test_a_band_is_never_wider_than_the_predictions() -> None:
    """On H100 with vLLM 0.19, whose constants are set on such runs, the band of the prediction is not symmetric."""
    asked = {"model": "8b", "gpu": "h100", "engine_version": "0.19.0", "context": "8k"}
    point = "gpu=h100,model=8b,engine_version=0.19.0,gpu_memory_utilization=0.9,kv_pool_gib=54"
    plain, answer = sheetgen.size(**asked), sheetgen.size(**asked, measured=point)
    for end in ("low", "high"):
        halves = [
            abs(answer[f"kv_pool_bytes_per_gpu_{end}"] - answer["kv_pool_bytes_per_gpu"]) for answer in (plain, answer)
        ]
        assert halves[1] == pytest.approx(min(halves[0], 0.1 * GIB), abs=2)


def test_memory_of_the_host_keeps_its_band() -> None:
    """Free memory of a GPU whose memory is the host's, too, moves with all that runs there."""
    asked = {"model": "8b", "gpu": "spark", "context": "8k"}
    plain = sheetgen.size(**asked)
    gib = plain["kv_pool_bytes_per_gpu"] / GIB + 2
    answer = sheetgen.size(**asked, measured=f"gpu=spark,tp=1,kv_pool_gib={gib:.12g}")
    for name in ("kv_pool_bytes_per_gpu", "kv_pool_bytes_per_gpu_low", "kv_pool_bytes_per_gpu_high"):
        assert answer[name] - plain[name] == pytest.approx(2 * GIB, abs=2)


def test_the_fewest_gpus_are_those_that_hold_it_as_measured() -> None:
    """Of a size that a log says does not hold the load, as its prediction does, or the other way round."""
    load = {**ITS_OWN, "context": "16k", "concurrent_requests": 28}
    for gib, held in ((55.9, False), (56.1, True)):
        point = f"gpu=a100,tp=1,engine_version=0.31.0,kv_pool_gib={gib},max_model_len=16384"
        answer = sheetgen.size(**load, measured=point)
        assert answer["fits"] is held and answer["min_gpus"] == (1 if held else 2)


def broken(text: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


NO_POOL = (("Available KV cache memory: 56.21 GiB", "-"), ("GPU KV cache size: 460,496 tokens", "-"))
ARGUMENTS = "--model meta-llama/Llama-3.1-8B-Instruct"
UNUSED = {
    "no pool": (NO_POOL, "it does not say how large the KV pool is"),
    "eager": (((ARGUMENTS, f"{ARGUMENTS} --enforce-eager"),), "keeps no CUDA graphs, which the prediction may err on"),
    "adapters": (((ARGUMENTS, f"{ARGUMENTS} --enable-lora"),), "adapters are not in the prediction"),
    "draft": (((ARGUMENTS, f'{ARGUMENTS} --speculative-config \'{{"method": "eagle3"}}\''),), "the draft is not in"),
    "set outright": (((ARGUMENTS, f"{ARGUMENTS} --kv-cache-memory-bytes 9000000000"),), "its pool was set outright"),
}


@pytest.mark.parametrize("case", UNUSED)
def test_a_start_whose_memory_is_another_is_read_and_not_used(case: str, tmp_path: Path) -> None:
    changes, expected = UNUSED[case]
    (tmp_path / "startup.log").write_text(broken(LOG.read_text(), *changes))
    [reading] = read_measured([tmp_path / "startup.log"], CATALOG)
    assert isinstance(reading, Unusable) and expected in reading.reason and "startup.log" in reading.source
    answer = sheetgen.size(**ITS_OWN, measured=str(tmp_path / "startup.log"))
    assert answer["measured"]["memory"] == [] and len(answer["measured"]["unused"]) == 1


REFUSED = {
    "another GPU": ((), ",gpu=l40s", "the engine saw 79.25 GiB, and nvidia-l40s-48gb has"),
    "other weights": ((), ",gpu=a100,model=70b", "the weights of llama-3.1-70b are 131.45 GiB a GPU as sized"),
    "no such model": ((), ",model=nobody", "nobody"),
    "of a run": ((), ",concurrent_requests=3", "concurrent_requests does not go with a start-up log."),
    "too many ranks": ((), ",gpu=a100,tp=7", "which does not divide"),
    "another share": (
        (("56.21 GiB", "30.00 GiB"), ("460,496", "245,776"), ("utilization is (0.92, 72.91", "utilization is (72.91")),
        ",gpu=a100",
        "it does not say its gpu_memory_utilization, at whose default 56.16 GiB are predicted for its KV pool of 30.00",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_a_sentence_that_names_the_file(case: str, tmp_path: Path) -> None:
    changes, beside, expected = REFUSED[case]
    (tmp_path / "startup.log").write_text(broken(LOG.read_text(), *changes))
    with pytest.raises(ScenarioError) as error:
        sheetgen.size(**ITS_OWN, measured=f"{tmp_path / 'startup.log'}{beside}")
    assert len(error.value.problems) == 1 and "startup.log" in str(error.value) and expected in str(error.value)


def test_what_neither_log_nor_question_names_is_asked_for(tmp_path: Path) -> None:
    asked = {"models": "8b,qwen3-8b", "weight_dtype": "published", "as_of": "2026-11-20", "gpus": "a100,h100"}
    unnamed = broken(LOG.read_text(), ("meta-llama/Llama-3.1-8B-Instruct", "/models/mine"))
    (tmp_path / "startup.log").write_text(unnamed)
    with pytest.raises(ScenarioError, match=r"startup\.log.*: .*model and gpu\."):
        ask(CATALOG, {**asked, "measured": [str(tmp_path / "startup.log")]})
    named = sheetgen.size(**ITS_OWN, measured=str(tmp_path / "startup.log"))  # as `size --from-log --model 8b`
    assert len(named["measured"]["memory"]) == 1
    beside = ask(CATALOG, {**asked, "measured": [f"{tmp_path / 'startup.log'},model=8b,gpu=a100"]})
    assert [deployment.served.model for deployment in beside.measurements.deployments] == ["llama-3.1-8b"]


# A sheet --------------------------------------------------------------------------------------------------------------

SHEET = {
    "models": "8b",
    "weight_dtype": "published",
    "workloads": "rag,chat",
    "tiers": "27,28,64",
    "as_of": "2026-11-20",
    "gpus": "a100,l40s",
    "span_machines": "auto",
    "tpot_ms": "5000",  # memory decides
    "ttft_ms": "600000",
}


def solved(**options: object) -> Solution:
    return solve(ask(CATALOG, {**SHEET, **options}))


def test_a_sheet_counts_on_the_pool_as_measured() -> None:
    """28 requests of 2 GiB each: 56.16 GiB predicted and 56.21 printed, of which 0.1 and more is sure to 70 %."""
    plain, solution = solved(), solved(measured=[A100])
    model_profile = ("model", "profile")
    more = solution.grid.spread("kv_budget_bytes_per_gpu", model_profile) - plain.grid.spread(
        "kv_budget_bytes_per_gpu", model_profile
    )
    [[_, profile]] = [*zip(*more.nonzero(), strict=True)]
    profile_ = solution.profiles[profile]
    assert solution.question.gpus[profile_.gpu].id == "nvidia-a100-sxm4-80gb" and profile_.layout == (1, 1)
    assert more[0, profile] == pytest.approx(60_817_957, abs=1)
    held = [
        solution.grid.spread("sequences", ("load", "profile"))[:, profile].tolist() for solution in (plain, solution)
    ]
    rag, chat = held[0].index(27), held[0].index(110)  # of 2 GiB, and of half a GiB
    assert [held[1][rag], held[1][chat]] == [28, 112]
    again = ask(CATALOG, {**SHEET, "measured": solution.question.options["measured"]})
    assert again.measurements == solution.question.measurements  # what a sheet carries needs no file


def test_pipeline_stages_keep_their_prediction() -> None:
    """A log is of a deployment without stages: loads that need some have as many places as without it, and as sure."""
    asked = {"models": "70b", "gpus": "l4", "workloads": "chat,rag", "tiers": "1", "gpu_memory_utilization": "0.97"}
    plain = solved(**asked)
    gib = plain.grid.spread("kv_budget_bytes_per_gpu", ("model", "profile"))[0, -1] / GIB + 0.05
    answer = solved(**asked, measured=[f"tp=8,kv_pool_gib={gib:.12g},gpu_memory_utilization=0.97"])
    (stages, of_log), (held, held_of_log) = (
        [answer.grid.spread(name, axes)[:, -1].tolist() for answer in (plain, answer)]
        for name, axes in (("pipeline_stages", ("pace", "profile")), ("sequences", ("load", "profile")))
    )
    assert stages == of_log == [1, 2]
    assert held[1] == held_of_log[1] > 0
    errors = {"kv_pool_error_bytes_low": -2.0 * GIB, "kv_pool_error_bytes_high": 1.0 * GIB, "band_end_z": 1.2816}
    for room in (0.3, -0.3):
        values = {**errors, "pool_room_bytes": room * GIB, "measured_pool_error_bytes": 0.1 * GIB}
        lone, staged = (certainty.memory_z.of({**values, "pipeline_stages": n}) for n in (1, 2))
        unmeasured = certainty.memory_z.of({**values, "pipeline_stages": 1, "measured_pool_error_bytes": 0.0})
        assert staged == unmeasured and lone == pytest.approx(1.2816 * room / 0.1)


@needs_libreoffice
def test_the_workbook_is_what_python_says(tmp_path: Path) -> None:
    """With a log, as it was built and at another confidence, which its band decides: in formualizer, and in --long from
    poisoned caches in LibreOffice."""
    options = {**SHEET, "measured": [A100]}
    path, _ = books.build(tmp_path, "measured", options)
    assert "lst_measured_pools_error_bytes" in areas(path)
    for confidence in (0.7, 0.95):
        typed = {"in_confidence": confidence}
        readings = [values_after(path, typed)]
        if IN_LONG:
            poison(edit(path, tmp_path / "edited.xlsx", typed), tmp_path / "poisoned.xlsx")
            readings.append(values(recalculate(tmp_path / "poisoned.xlsx", tmp_path / f"out-{confidence}")))
        at_level = solved(measured=[A100], confidence=confidence)
        for reading in readings:
            n, wrong = books.differences(reading, books.Sheets(path), at_level)
            assert n > 100 and not wrong, wrong[:5]
        assert books.expected(at_level) != books.expected(solved(confidence=confidence))


# How far a log holds --------------------------------------------------------------------------------------------------


def pairs() -> Iterator[tuple[str, bool, float, float]]:
    """Of two starts of a deployment in the public logs the deployment, whether their release is the same, and by how
    many GiB the pool of the second is off what the first one says: by its difference, and by its factor."""
    parts = []
    for rows in (h100_rows(), log_rows()):
        kept = rows[rows["use"].isin(("pool", "both"))] if "use" in rows else rows
        kept = kept[kept["kv_pool_gib_per_gpu"].notna()]
        parts.append(kept.assign(predicted=predict(kept, CATALOG)["kv_pool_bytes_per_gpu"] / GIB))
    stated = pandas.concat(parts, ignore_index=True)
    shared = stated["gpu"].map(lambda name: CATALOG.gpu(name).memory.shared_with_host)
    stated = stated[~shared & (stated["pipeline_parallel_size"].fillna(1) == 1)]
    stated = stated.assign(
        model=stated["model"].map(lambda name: CATALOG.resolve_model(name)[0].id),
        gpu=stated["gpu"].map(lambda name: CATALOG.gpu(name).id),
        quantized=stated["model"].str.contains("quantized"),
        release=stated["engine_version"].str.extract(r"^(\d+\.\d+)", expand=False),
        **{name: stated[name].fillna(1) for name in ("tensor_parallel_size", "data_parallel_size")},
    )
    names = ["model", "gpu", "weight_dtype", "quantized", "tensor_parallel_size", "data_parallel_size"]
    for key, rows in stated.groupby(names):
        for first, second in itertools.combinations(rows.itertuples(), 2):
            logged, predicted = (
                [getattr(frame, name) for frame in (first, second)] for name in ("kv_pool_gib_per_gpu", "predicted")
            )
            off = abs(logged[1] - predicted[1] - (logged[0] - predicted[0]))
            by_factor = abs(logged[1] - predicted[1] * logged[0] / predicted[0])
            yield str(key), first.release == second.release, off, by_factor


def test_public_starts_of_one_deployment_lie_within_the_band() -> None:
    """Four of five deployments at least, each by the worst of its pairs."""
    assumed, pairs_ = guidance.assumptions(CATALOG), list(pairs())
    for is_same, name in ((True, "measured_pool_error_gib"), (False, "measured_pool_error_elsewhere_gib")):
        worst: dict[str, float] = {}
        for key, same, off, _ in pairs_:
            if same is is_same:
                worst[key] = max(off, worst.get(key, 0))
        print(name, worst)
        assert len(worst) >= 3
        assert sum(off <= guidance.number(assumed, name) for off in worst.values()) >= 0.8 * len(worst)
    # A difference says more than a factor: the median and the worst pair that is not of equal settings.
    differ = sorted((off, by_factor) for _, _, off, by_factor in pairs_ if off + by_factor > 0)
    assert sum(off for off, _ in differ) < sum(by_factor for _, by_factor in differ)


def test_starts_that_differ_are_no_surer_than_their_difference() -> None:
    point = "gpu=h100,model=8b,weight_dtype=bf16,tp=1,engine=vllm,gpu_memory_utilization=0.9,kv_pool_gib="
    asked = {"model": "8b", "gpu": "h100", "weight_dtype": "bf16", "context": "8k"}
    answer = sheetgen.size(**asked, measured=[f"{point}53", f"{point}51"])
    pool = answer["kv_pool_bytes_per_gpu"]
    plain = sheetgen.size(**asked)
    for end, sign in (("low", -1), ("high", 1)):
        own = abs(plain[f"kv_pool_bytes_per_gpu_{end}"] - plain["kv_pool_bytes_per_gpu"])
        assert answer[f"kv_pool_bytes_per_gpu_{end}"] == pytest.approx(pool + sign * min(own, GIB), abs=2)


def test_a_pool_that_the_memory_cannot_hold_is_refused() -> None:
    point = "gpu=h100,model=8b,weight_dtype=bf16,tp=1,engine=vllm,gpu_memory_utilization=0.9,kv_pool_gib=79"
    with pytest.raises(ScenarioError, match=r"79.00 GiB is more than the 56\.\d\d"):
        sheetgen.size(model="8b", gpu="h100", weight_dtype="bf16", context="8k", measured=point)

"""Speed on every profile: how many requests meet the targets, and how fast the chosen hardware answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy

from sheetgen.catalog.speed import Scope
from sheetgen.estimate import PACE, STEP, WORK, evaluate
from sheetgen.recommend.solution import Choice, Columns, Profile, Solution
from sheetgen.scenario.deployment import SPEED_DEFINITIONS, SPEED_FIGURES, speed_band_columns, speed_columns
from sheetgen.scenario.question import Question
from sheetgen.sizing import speed, targets
from sheetgen.sizing.steps import untouched_fraction
from sheetgen.units import DTYPES

STRIDE = 64  # requests; 64 strides of it are more than any engine runs in a batch
MILLISECONDS_PER_SECOND = 1000
NO_LIMIT_SECONDS = 100_000  # a target that is off
TARGETS = (targets.strides_within_targets, targets.batch_limit)
BAND_SCOPES: tuple[Scope, ...] = ("fitted", "other")  # a sheet has no anchor
_SHARD = (
    "shard_kv_bytes_per_token", "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer",
)  # fmt: skip


def speed_inputs(question: Question) -> Columns:
    """What all of a sheet's speeds read alike."""
    return {
        "nvlink_gpus": float(question.speed.nvlink_gpus),
        "all_reduce_growth": question.speed.all_reduce_growth,
        **{name: float(value) for name, value in SPEED_DEFINITIONS.items()},
        "data_parallel_size": 1.0,
        "requests_per_stride": float(STRIDE),
        "milliseconds_per_second": float(MILLISECONDS_PER_SECOND),
        "no_limit_seconds": float(NO_LIMIT_SECONDS),
    }


def speed_of_gpus(question: Question) -> Columns:
    """By GPU: bandwidth, links, the engine's constants, the peak for each precision, whether runs were measured."""
    known = question.speed
    rows = [speed_columns(known, question.engine, gpu, "bf16") for gpu in question.gpus]
    out = {k: numpy.array([r[k] for r in rows], float) for k in rows[0] if k != "peak_flops"}
    for dtype in DTYPES:
        peaks = [speed_columns(known, question.engine, gpu, dtype)["peak_flops"] for gpu in question.gpus]
        out[f"peak_flops_{dtype}"] = numpy.array(peaks, float)
    scopes = [known.scope(question.engine.engine, gpu) for gpu in question.gpus]
    return {**out, "speed_is_fitted": numpy.array([float(s == "fitted") for s in scopes])}


def solve_paces(
    question: Question, profiles: tuple[Profile, ...], inputs: Columns, models: Columns, shards: Columns, gpus: Columns
) -> tuple[Columns, Columns]:
    """By model and workload its prompt, answer and targets; and on each profile the parts of a step, and the largest
    batch within the targets. `shards` is [model, profile]."""
    pairs = [(m, w) for m in range(len(question.models)) for w in question.workloads]
    of_model = numpy.array([m for m, _ in pairs])
    models = evaluate(WORK, models)
    latency: Columns = {
        **inputs,
        **{k: v[of_model] for k, v in models.items() if getattr(v, "ndim", 0) == 1},
        "input_tokens": numpy.array([w.input_tokens for _, w in pairs], float),
        "output_tokens": numpy.array([w.output_tokens for _, w in pairs], float),
    }
    for figure in ("tpot", "ttft"):
        asked = [getattr(w, f"{figure}_target_ms") or 0 for _, w in pairs]
        latency[f"{figure}_target_ms"] = numpy.array(asked, float)
        latency[f"{figure}_limit_seconds"] = targets.limit_seconds.of(
            {**latency, "target_ms": latency[f"{figure}_target_ms"]}
        )
    gpu = numpy.array([p.gpu for p in profiles])
    wide = {k: v[:, None] if getattr(v, "ndim", 0) == 1 else v for k, v in latency.items()}
    wide |= {k: v[gpu][None, :] for k, v in gpus.items()}
    wide |= {k: shards[k][of_model] for k in _SHARD}
    wide["tensor_parallel_size"] = numpy.array([[p.tensor_parallel_size for p in profiles]], float)
    dtypes = [question.models[m].weight_dtype for m, _ in pairs]
    wide["peak_flops"] = numpy.array([gpus[f"peak_flops_{d}"][gpu] for d in dtypes])
    one_by_one = numpy.arange(1.0, STRIDE + 1)
    missed = wide["expert_miss_fraction"][None]
    wide["steps"] = one_by_one
    for name, size in (("untouched_by_request", 1), ("untouched_by_stride", STRIDE)):
        batch = {**wide, "expert_miss_fraction": missed, "batch_requests": one_by_one[:, None, None] * size}
        wide[name] = untouched_fraction.of(batch)
    steps = evaluate((*STEP, *TARGETS), wide)
    full = numpy.ones((len(pairs), len(profiles)))
    return latency, {k: v * full for k, v in steps.items() if getattr(v, "ndim", 0) == 2}


def with_paces(solved: Solution, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The choices with what users get of them: times, tokens, bands, and what asked for the replicas."""
    rows = [i for i, c in enumerate(choices) if c.offer is not None]
    if not rows:
        return choices
    question = solved.question
    offer = numpy.array([choices[i].offer for i in rows])
    profile = numpy.array([s.profile for s in solved.offers])[offer]
    pace = numpy.array([question.pace(question.loads[i]) for i in rows])
    stages = numpy.array([float(choices[i].pipeline_parallel_size) for i in rows])
    at: Columns = {k: v[pace, profile] for k, v in solved.steps.items()}
    at |= {k: v for k, v in solved.latency.items() if getattr(v, "ndim", 0) == 0}
    at["output_tokens"] = solved.latency["output_tokens"][pace]
    at["expert_miss_fraction"] = solved.latency["expert_miss_fraction"][pace]
    at["load_requests"] = solved.cells["load_requests"][rows]
    at["n_replicas"] = numpy.array([float(choices[i].n_replicas) for i in rows])
    at["pipeline_parallel_size"] = stages
    at["requests_per_replica"] = targets.requests_per_replica.of(at)
    at["running_requests"] = at["concurrent_requests"] = at["requests_per_replica"]
    at = evaluate(PACE, at)
    # All replicas together serve the load: the fullest one's times hold for every request.
    at["output_tokens_per_second"] = speed.output_tokens_per_second.of(
        {**at, "concurrent_requests": at["load_requests"]}
    )
    out = list(choices)
    for n, i in enumerate(rows):
        cell = question.loads[i]
        bands = _bands(solved, cell.model, int(profile[n]), stages[n])
        figures = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
        times: dict[str, Any] = {name: float(at[name][n]) for name in figures}
        held, limit = choices[i].sequences_per_replica, solved.steps["batch_limit"][pace[n], profile[n]] * stages[n]
        by = str(targets.sized_by(at["load_requests"][n], held, limit))
        out[i] = replace(
            choices[i],
            sized_by=by,
            replicas_by=by,
            requests_per_replica=int(at["requests_per_replica"][n]),
            prefill_fraction=float(at["prefill_fraction"][n]),
            bound_by=str(at["bound_by"][n]),
            bands=tuple(
                (float(speed.at_speed_band(times[name], low)), float(speed.at_speed_band(times[name], high)))
                for name, (low, high) in zip(figures, bands, strict=True)
            ),
            **times,
        )
    return tuple(out)


def _bands(solved: Solution, model: int, profile: int, stages: float) -> list[tuple[float, float]]:
    """Both ends of the bands of TPOT, TTFT and tokens a second, as factors."""
    question = solved.question
    fitted = solved.gpus["speed_is_fitted"][solved.profiles[profile].gpu] == 1 and stages == 1
    is_moe = solved.models["n_experts"][model] > 0
    scope, kind = "fitted" if fitted else "other", "moe" if is_moe else "dense"
    columns = speed_band_columns(question.speed, "fitted" if fitted else "other", bool(is_moe))
    columns = {name: question.overrides.input(f"{name}_{scope}_{kind}", v) for name, v in columns.items()}
    return [(columns[f"{f}_band_low"], columns[f"{f}_band_high"]) for f in SPEED_FIGURES]

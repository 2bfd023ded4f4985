"""The columns that a question puts into its sheet's program, each on its axes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy

from sheetgen.answer.solution import Offer, Profile
from sheetgen.catalog.engines import (
    MODEL_KINDS,
    OF_ANY_KIND,
    RESIDUALS,
    Engine,
    ModelKind,
    Scope,
    SpeedFile,
    band_names,
)
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model
from sheetgen.program.declared import Axes
from sheetgen.program.grid import Column, Columns, Grid
from sheetgen.program.sheet_program import OF_MEASUREMENTS
from sheetgen.question import deployment
from sheetgen.question.deployment import objects
from sheetgen.question.inputs import OF_WORKLOAD
from sheetgen.question.market import LEAST_LINK_BYTES_PER_SECOND, Candidate
from sheetgen.question.overrides import limits_of, own_utilization
from sheetgen.question.sheet_question import MAX_PIPELINE_PARALLEL_SIZE, Question
from sheetgen.sizing import cost, rates
from sheetgen.units import DTYPES, ENDS, GBPS, GIB

STRIDE = 64  # requests; 64 strides of it are more than any engine runs in a batch
MILLISECONDS_PER_SECOND = 1000
NO_LIMIT_SECONDS = 100_000  # a target that is off
BY_WEIGHTS = ("linear_bytes", "other_bytes", "activation_copy_bytes")
PRECISIONS = list(DTYPES)


def grid_of(question: Question, profiles: Sequence[Profile], offers: Sequence[Offer]) -> Grid:
    """The facts of a question on their axes; nothing is worked out yet."""
    layouts = question.layouts
    sizes, ranks = (list(dict.fromkeys(widths)) for widths in zip(*layouts, strict=True))
    kinds = [deployment.model_kind(model.model) for model in question.models]
    grid = Grid.over(
        weight_dtype=len(DTYPES),
        kv_dtype=len(DTYPES),
        kind=len(MODEL_KINDS),
        gpu=len(question.gpus),
        tp=len(sizes),
        dp=len(ranks),
        workload=len(question.workloads),
        step=STRIDE,
        measurement=len(question.measurements.deployments),
    )
    grid = grid.along(
        "model",
        {
            "weight_dtype": [PRECISIONS.index(model.weight_dtype) for model in question.models],
            "kv_dtype": [PRECISIONS.index(model.kv_cache_dtype) for model in question.models],
            "kind": [MODEL_KINDS.index(kind) for kind in kinds],
        },
    )
    grid = grid.along(
        "layout",
        {
            "tp": [sizes.index(layout.tensor_parallel_size) for layout in layouts],
            "dp": [ranks.index(layout.data_parallel_size) for layout in layouts],
        },
    )
    grid = grid.along(
        "profile",
        {
            "gpu": [profile.gpu for profile in profiles],
            "layout": [layouts.index(profile.layout) for profile in profiles],
        },
    )
    grid = grid.along("pace", {"model": [m for m, _ in question.paces], "workload": [w for _, w in question.paces]})
    grid = grid.along("load", {"pace": [question.pace(load) for load in question.loads]})
    _put_inputs(grid, question)
    _put_models(grid, question)
    _put_gpus(grid, question)
    grid.put(("tp",), {"tensor_parallel_size": numpy.array(sizes, float)})
    grid.put(("dp",), {name: numpy.array(ranks, float) for name in ("data_parallel_size", "busy_ranks")})
    _put_loads(grid, question)
    _put_measurements(grid, question)
    return with_offers(grid, question, question.candidates, offers)


def with_offers(grid: Grid, question: Question, candidates: Sequence[Candidate], offers: Sequence[Offer]) -> Grid:
    """The grid with these candidates, at the prices of their class less the contract's discount."""
    grid = grid.along("instance", {}, len(candidates))
    grid.put(
        ("instance",),
        {
            "gpu_count": [machine.gpu_count for machine in candidates],
            "network_gbps": [machine.network_gbps for machine in candidates],
            "nvlink_domain_gpus": [machine.nvlink_domain_gpus for machine in candidates],
            "listed_usd_per_hour": [machine.usd_per_hour for machine in candidates],
            "discount_fraction": [question.discount(machine.provider, machine.purchase) for machine in candidates],
        },
    )
    places = {"instance": [offer.candidate for offer in offers], "profile": [offer.profile for offer in offers]}
    return grid.along("offer", places)


def settings_of(question: Question) -> Columns:
    """Constants, and the settings that are numbers."""
    settings = {k: float(v) for k, v in vars(question.settings).items() if isinstance(v, (int, float))}
    return {**cost.CONSTANTS, **settings, "is_committed": question.settings.is_committed}


def closed_loop(question: Question) -> int:
    """1 where some load is stated as requests at once, 0 where all are rates."""
    return int(not all(load.requests_per_second for load in question.loads))


def _put_inputs(grid: Grid, question: Question) -> None:
    """Put in the inputs of the whole sheet: settings, constants and what was typed."""
    inputs: Columns = {
        **question.engine.columns(),
        **settings_of(question),
        "usual_utilization": question.engine.gpu_memory_utilization,
        "max_pipeline_parallel_size": MAX_PIPELINE_PARALLEL_SIZE,
        "least_link_bytes_per_second": LEAST_LINK_BYTES_PER_SECOND,
        **{name: float(getattr(question.speed, name)) for name in deployment.OF_EVERY_SPEED},
        "bytes_per_gigabit": float(GBPS),
        **{name: float(value) for name, value in deployment.DEFINITIONS.items()},
        **(deployment.draft_columns(question.draft) if question.draft else {}),
        "requests_per_stride": float(STRIDE),
        "closed_loop": closed_loop(question),
        "among": True,  # the offers among which the choice is: all, except for other questions
        "wait_z": rates.z_of(question.settings.max_wait_fraction),
        "milliseconds_per_second": float(MILLISECONDS_PER_SECOND),
        "no_limit_seconds": float(NO_LIMIT_SECONDS),
    }
    gpu, engine = question.gpus[0], question.engine.engine  # these bands are the same for all
    for scope in OF_ANY_KIND:
        inputs |= deployment.band_columns_of_any_kind(question.speed, scope)
    typed = {name: float(value) for name, value in question.overrides.inputs.items() if name in inputs}
    grid.put((), inputs | typed)
    anchored = [deployment.speed_band_columns(question.speed, "anchored", k, engine, gpu) for k in MODEL_KINDS]
    by_kind = {
        name: [question.overrides.input(f"{name}_{k}", row[name]) for k, row in zip(MODEL_KINDS, anchored, strict=True)]
        for name in anchored[0]
    }
    grid.put(("kind",), by_kind)
    grid.put(("step",), {"steps": numpy.arange(1.0, STRIDE + 1)})


def _put_models(grid: Grid, question: Question) -> None:
    """Shapes of the models, and the bytes of an element in each precision, which may have been typed over."""
    rows = [
        {
            **model.model.shape(),
            **model.model.stage_shares(),
            "is_mixture": int(model.model.experts is not None),
            "checkpoint_bytes": model.model.checkpoint_bytes(model.weight_dtype),
            "plain_fp8_latent": 0,  # until a GPU is named
        }
        for model in question.models
    ]
    grid.put(("model",), {name: [row[name] for row in rows] for name in rows[0]})
    typed = question.overrides.precisions

    def by_dtype(name: str, field: str) -> list[float]:
        return [typed.get(dtype, {}).get(name, getattr(DTYPES[dtype], field)) for dtype in PRECISIONS]

    grid.put(("weight_dtype",), {name: by_dtype(name, name) for name in BY_WEIGHTS})
    kv = {"kv_dtype_bytes": "kv_bytes", "kv_scale_bytes": "kv_scale_bytes"}
    grid.put(("kv_dtype",), {name: by_dtype(name, field) for name, field in kv.items()})


def _put_gpus(grid: Grid, question: Question) -> None:
    """Put in an engine's columns for each GPU, and for each precision and kind of model on it."""
    for axes, columns in _columns_on_axes(_of_gpus(question)):
        grid.put(axes, columns)
    models = [(dtype, _kept_in(question, dtype)) for dtype in PRECISIONS]
    kept = [[question.engine.runs_kv(gpu, dtype, of_dtype) for dtype, of_dtype in models] for gpu in question.gpus]
    grid.put(("gpu", "kv_dtype"), {"runs_kv": numpy.array(kept)})


@functools.lru_cache(8)  # the tables of a question's levers and moves are of the same GPUs
def _columns_on_axes(same: _Same) -> list[tuple[Axes, Columns]]:
    """The columns of `gpu_columns`, each on its axes."""
    columns, gpus = _gpu_columns(same), same[0]
    everywhere = {*deployment.OF_EVERY_SPEED, *deployment.DEFINITIONS}
    other_bands = band_names("other")
    stems = ("peak_flops_", "tpot_of_", "ttft_of_", *other_bands)
    by_place = {name for name in columns if name.startswith(stems)} - {"peak_flops_16_bit"}

    def side_by_side(name: str, positions: Sequence[str]) -> Column:
        return numpy.stack([columns[f"{name}_{position}"] for position in positions], axis=1)

    of_dtype = {name: side_by_side(name, PRECISIONS) for name in ("peak_flops", "tpot_of_dtype", "ttft_of_dtype")}
    runs = [[runs_weights(gpu, dtype) for dtype in PRECISIONS] for gpu in gpus]
    of_kind = ("tpot_of_kind", "ttft_of_kind", *other_bands)
    return [
        (("gpu",), {k: v for k, v in columns.items() if k not in by_place and k not in everywhere}),
        (("gpu", "weight_dtype"), {**of_dtype, "runs_weights": numpy.array(runs)}),
        (("gpu", "kind"), {name: side_by_side(name, MODEL_KINDS) for name in of_kind}),
    ]


def _put_loads(grid: Grid, question: Question) -> None:
    """Prompts, answers and targets of the workloads; requests at once, or a second, of the loads."""
    workloads, loads = question.workloads, question.loads
    own = ("context_tokens", "input_tokens", "output_tokens", *OF_WORKLOAD)
    grid.put(("workload",), {name: [getattr(workload, name) for workload in workloads] for name in own})
    grid.put(("workload",), {"max_model_len": [workload.context_tokens for workload in workloads]})
    targets = ("tpot_target_ms", "ttft_target_ms")
    grid.put(("workload",), {name: [getattr(workload, name) or 0 for workload in workloads] for name in targets})
    grid.put(("load",), {"concurrent_requests": [load.concurrent_requests for load in loads]})
    grid.put(("load",), {"stated_users": [load.users or 0 for load in loads]})
    if any(load.requests_per_second for load in loads):
        grid.put(("load",), {"requests_per_second": [load.requests_per_second for load in loads]})


def _put_measurements(grid: Grid, question: Question) -> None:
    """Put in the measured deployments, by the names that a workbook shows, and the corrections that their runs and logs
    set."""
    if not question.measurements.deployments:
        grid.put((), {name: float(value) for name, value in deployment.UNMEASURED.items()})
        return
    grid.put(("model",), {"model_name": objects(model.model.name for model in question.models)})
    grid.put(("gpu",), {"gpu_name": objects(gpu.short_name for gpu in question.gpus)})
    grid.put(("weight_dtype",), {"weight_dtype_row": numpy.arange(1.0, len(PRECISIONS) + 1)})
    grid.put(("measurement",), measured_columns(question))


def measured_columns(question: Question) -> Columns:
    """For each measured deployment its names, sizes and corrections, as `speed.of_measurements` reads them."""
    models = {model.model.id: model.model.name for model in question.models}
    gpus = {gpu.id: gpu.short_name for gpu in question.gpus}
    measured = question.measurements.deployments
    served = [deployment.served for deployment in measured]
    return {
        "measured_models": objects(models.get(row.model, row.model) for row in served),
        "measured_gpus": objects(gpus.get(row.gpu, row.gpu) for row in served),
        "measured_weight_dtypes": numpy.array([1.0 + PRECISIONS.index(row.weight_dtype) for row in served]),
        "measured_tensor_parallel_sizes": numpy.array([float(row.tensor_parallel_size) for row in served]),
        "measured_data_parallel_sizes": numpy.array([float(row.data_parallel_size) for row in served]),
        **{
            column: numpy.array([deployment.columns[name] for deployment in measured])
            for name, column in OF_MEASUREMENTS.items()
        },
    }


def runs_weights(gpu: Gpu, dtype: str) -> int:
    """2 where a GPU computes in that precision of weights, 1 where it only stores weights in it, 0 for neither."""
    return {"native": 2, "weight_only": 1}.get(gpu.weights_run.get(dtype, ""), 0)


def runs_kv(question: Question, gpu: Gpu, dtype: str) -> int:
    """How the engine keeps a KV cache in a precision on a GPU, as Engine.runs_kv counts."""
    return question.engine.runs_kv(gpu, dtype, _kept_in(question, dtype))


def _kept_in(question: Question, dtype: str) -> list[Model]:
    """The models that were asked for with a KV cache in a precision; where none was, all, as a workbook may ask for it
    later."""
    asked = [model.model for model in question.models if model.kv_cache_dtype == dtype]
    return asked or [model.model for model in question.models]


class _Same(tuple[Any, ...]):
    """The key of a cache: two are the same where they hold the same objects."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.ids() == other.ids()

    def __hash__(self) -> int:
        return hash(self.ids())

    def ids(self) -> tuple[int, ...]:
        return tuple(map(id, self))


def gpu_columns(question: Question) -> Columns:
    """Columns by GPU: memory, limits of a batch, error bands, speed; figures by precision and kind side by side."""
    return dict(_gpu_columns(_of_gpus(question)))


def _of_gpus(question: Question) -> _Same:
    """All of a question that columns by GPU follow from."""
    of_gpus = question.gpus, question.engine, question.speed, question.overrides
    return _Same((*of_gpus, bool(question.draft), question.has_latent_entries))


@functools.lru_cache(8)
def _gpu_columns(same: _Same) -> Columns:
    gpus, engine, speed, overrides, has_draft, has_latent_entries = same
    limits = [limits_of(engine, g) for g in gpus]
    figures = [deployment.speed_columns(speed, engine, g, "bf16") for g in gpus]
    residuals = [speed.residuals(engine.engine, g) for g in gpus]
    bands = [_bands_of_gpu(speed, engine.engine, g) for g in gpus]
    columns: dict[str, list[float]] = {
        "gpu_memory_bytes": [g.memory.engine_bytes for g in gpus],
        "max_num_seqs": [seqs for seqs, _ in limits],
        "max_num_batched_tokens": [batched for _, batched in limits],
        **{
            f"pool_error_bytes_{runs}_{end}": [_pool_error(engine, scope_of(g), end) for g in gpus]
            for runs, scope_of in (("measured", engine.band_scope), ("elsewhere", engine.scope_elsewhere))
            for end in ENDS
        },
        **{name: [row[name] for row in figures] for name in figures[0] if name != "peak_flops"},
        **{f"peak_flops_{d}": [deployment.peak_flops(g, d) for g in gpus] for d in DTYPES},
        **{name: [row[name] for row in residuals] for name in RESIDUALS},
        **{name: [row[name] for row in bands] for name in bands[0]},
        "measured_kinds": [0 if has_draft else speed.measured_kinds(engine.engine, g) for g in gpus],
        "own_utilization": [own_utilization(engine, g) for g in gpus],
        "is_older_gpu": [engine.is_older(g.architecture) for g in gpus],
        "has_heavier_graphs": [engine.has_heavier_graphs(g.architecture) for g in gpus],
        "shares_host_memory": [g.memory.shared_with_host for g in gpus],
        "runs_sparse_attention": [engine.runs_sparse_attention(g.architecture) for g in gpus],
        "plain_fp8_latent": [engine.keeps_plain_fp8_latents(g.architecture) for g in gpus],
    }
    for g, gpu in enumerate(gpus):
        for name, value in overrides.gpus.get(gpu.id, {}).items():
            if name in columns:
                columns[name][g] = value
    if not has_latent_entries:  # one typed over a model's is taken as on the first GPU, as the workbook has it
        columns["plain_fp8_latent"] = columns["plain_fp8_latent"][:1] * len(gpus)
    return {name: numpy.array(column, float) for name, column in columns.items()}


def _pool_error(engine: Engine, scope: str, end: str) -> float:
    """One end of the pool's error band, in bytes; 0 where no band is known."""
    band = engine.band("kv_pool", scope)
    return getattr(band, end) * GIB if band else 0.0


def _bands_of_gpu(speed: SpeedFile, engine: str, gpu: Gpu) -> Columns:
    """The bands of speed that differ by GPU: the GPU's own, and those of others by kind of model."""

    def ends(scope: Scope, kind: ModelKind) -> Columns:
        return deployment.speed_band_columns(speed, scope, kind, engine, gpu)

    others = {f"{name}_{kind}": end for kind in MODEL_KINDS for name, end in ends("other", kind).items()}
    return {**ends("fitted", MODEL_KINDS[0]), **others}

"""The constants of catalogs/speed.yaml, fitted from tests/data/measured/throughput_serving.csv, its second part and
throughput_found.csv.

Robust least squares on the logarithm of time to first token and time per output token. Every constant has one value
for all engines, drawn to a start value, and for each engine and generation of GPUs a factor on it, drawn to 1: a cell
with few configurations stays near the others. What is left then is pooled by engine, generation, kind of model and
precision, drawn to none. The formulas are those of sizing/speed.py.

Whatever is chosen, is chosen in inner folds and judged in outer ones; a fold holds whole configurations.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy
import pandas
from measured_rows import DATA, Columns, Flags, Floats, deployment
from numpy.typing import NDArray

from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import MODEL_KINDS
from sheetgen.formula import Formula
from sheetgen.program.grid import evaluate
from sheetgen.program.quantities import PACE, STEP
from sheetgen.question.deployment import DEFAULTS, complete
from sheetgen.sizing import speed

Index = NDArray[numpy.int64] | Flags  # of runs: their numbers, or whether each is one of them

CSV = DATA / "throughput_serving.csv"
LATER = DATA / "throughput_serving_2.csv"  # other configurations
FOUND = DATA / "throughput_found.csv"  # of other hands, most of AMD GPUs; they were predicted before they were fitted
GENERATIONS = {
    "Hopper": ("Hopper", "Grace Hopper"),
    "Blackwell": ("Blackwell", "Blackwell Ultra", "Grace Blackwell"),
    "CDNA": ("CDNA3 gfx942", "CDNA4 gfx950", "CDNA 5"),
}
FIGURES = {  # figure: formula, words
    "tpot": ("tpot_seconds", "TPOT"),
    "ttft": ("ttft_seconds", "TTFT"),
    "output_tokens_per_second": ("output_tokens_per_second", "output tokens/s"),
}
CONFIGURATION = ["architecture", "gpu", "engine", "weight_dtype", "n_gpus"]
REPEATED = [
    "model", "gpu", "engine", "weight_dtype", "tensor_parallel_size", "data_parallel_size", "input_tokens",
    "output_tokens", "concurrent_requests",
]  # fmt: skip
ARCHITECTURES = {  # one, of which runs stand under two names
    "deepseek-ai/DeepSeek-R1": "deepseek-ai/DeepSeek-V3",
    "deepseek-r1": "deepseek-v3",
    "minimax-m2.7": "minimax-m2.5",
}
# InferenceX draws prompts and answers evenly from 0.8 to 1.0 of the lengths that it states: --random-range-ratio 0.8
# (README of InferenceMAX, benchmark client configuration). Its runs by their ids.
# What was looked at anew (_gap_) repeats some of them, rounded.
INFERENCEX, MEAN_LENGTH = r"_cfg\d|^20\d\d_\d\d_\d\d_|_gap_", 0.9
# Where all start together, with prompts and answers of one length, and the engine reads prompts in steps of their own,
# all end together too: each round is a wave, in which half of the others' prompts come before one's own.
WAVES, HALF_OF_WAVE = ("NVIDIA", "sglang"), 0.5
# Who measured: InferenceX and NVIDIA by the ids of the sample, the others by their sources.
PUBLISHERS = {
    "cook": "LMSYS", "rocm": "AMD", "recip": "AMD", "tt": "others", "mill": "others", "kimi": "others",
    "tune": "others",
}  # fmt: skip
RUNS_OF_CELL = 20  # of an engine on a generation of GPUs: fewer make no constants
WANTED = {"tpot_seconds": 10, "ttft_seconds": 22, "output_tokens_per_second": 10.5}  # median errors, percent
INNER_FOLDS = 5


UNSTATED = "0.19.0"  # of vLLM runs that state no release: the newest that others state, whatever the default is now


@dataclass(frozen=True)
class Constant:
    """The start of a constant, how far a cell may lie from the others (in logarithms), and its physical limit.

    engines: it is 0 for all others.
    """

    start: float
    spread: float
    limit: float
    engines: tuple[str, ...] = ()
    shared: bool = False  # one value for all cells

    def holds(self, engine: str) -> bool:
        return not self.engines or engine in self.engines


# Starts: reference throughput.md section 4. No efficiency above what tuned kernels reach of the published peak; of
# attention 740 of 989 TFLOPS (FlashAttention-3 on H100, arXiv:2407.08608).
CONSTANTS = {
    "weight_bandwidth_efficiency": Constant(0.8, 0.09, 0.92),
    "expert_bandwidth_efficiency": Constant(0.7, 0.12, 0.92),
    "kv_bandwidth_efficiency": Constant(0.6, 0.18, 0.92),
    "decode_compute_efficiency": Constant(0.6, 0.18, 0.95),
    "expert_decode_factor": Constant(0.45, 0.18, 1),
    "prefill_compute_efficiency": Constant(0.6, 0.18, 0.95),
    "expert_prefill_factor": Constant(0.45, 0.18, 1),
    "attention_compute_efficiency": Constant(0.4, 0.18, 0.75),
    "prefill_weight_reads": Constant(0.5, 0.18, 10),
    "seconds_per_layer": Constant(60e-6, 0.3, 1),
    "seconds_per_all_reduce": Constant(12e-6, 0.25, 1),
    "link_efficiency": Constant(0.6, 0.18, 0.95),
    "wait_factor": Constant(0.2, 0.25, 1),
    "seconds_per_request": Constant(20e-6, 0.4, 1),
    "base_ttft_seconds": Constant(0.015, 0.3, 10),
    "busy_ttft_seconds": Constant(0.02, 0.4, 10),
    "steps_before_prefill": Constant(1.0, 0.25, 30),
    "gather_steps": Constant(10.0, 0.5, 100, ("tensorrt-llm",)),
    "expert_kernels": Constant(0.3, 0.02, 5, shared=True),
    "state_kernels": Constant(0.5, 0.02, 5, shared=True),
    "sparse_kernels": Constant(0.5, 0.02, 5, shared=True),
}
NAMES = tuple(CONSTANTS)
SHARED = tuple(name for name, constant in CONSTANTS.items() if constant.shared)
OF_CELLS = tuple(name for name in NAMES if name not in SHARED)
GLOBAL_SPREAD = 0.7  # of a constant's common value around its start, in logarithms
TIMES = ("tpot_seconds", "ttft_seconds")
TIMED = (speed.kernel_layers, *STEP, *PACE[: PACE.index(speed.output_tokens_per_second) + 1])


def _following(names: Sequence[str]) -> tuple[Formula, ...]:
    """The formulas of both times that read any of these constants, or what follows from them."""
    read, formulas = set(names), []
    for formula in TIMED[: TIMED.index(speed.ttft_seconds) + 1]:
        if not read.isdisjoint(formula.inputs):
            read.add(formula.name)
            formulas.append(formula)
    return tuple(formulas)


AFTER, FOLLOWS = _following(NAMES), {name: _following([name]) for name in NAMES}
BEFORE = tuple(formula for formula in TIMED[: TIMED.index(speed.ttft_seconds)] if formula not in AFTER)
DIFFERENCE = 1e-7  # of a constant's logarithm, downwards, to see how predictions follow it
STEPS = 100  # at most; it settles in 15 to 40
DAMPING, MOST_DAMPING, FURTHER = 1e-2, 1e8, 10  # of a step, as a share of each square: at first, at most, times
ENOUGH = 1e-6  # of what is made small: steps that gain less end the fit
RANKS_WEIGHT = 0.2  # of runs with data-parallel attention: enough for its own constant, and the others stay theirs
OTHERS_WEIGHT = 0.1  # of other hands' times per token on GPUs of the sample, whose engines they did not tune
TPOT_SCALE, TTFT_SCALE, TTFT_WEIGHT = 0.1, 0.2, 1.6
SLOWER = {"tpot_seconds": 2.5, "ttft_seconds": 1.0}  # what slower runs count in what is left
# Two requests take three to five times the time per token of one, and more of them no longer: no engine that runs
# them in one batch does. They are judged and fit nothing.
UNBATCHED = "Qwen/Qwen3-32B gb200 tensorrt-llm bf16 2"


@dataclass(frozen=True)
class Runs:
    """Measured runs, what the formulas read for each but for the constants, and each run's cell."""

    rows: pandas.DataFrame
    values: Columns
    cells: tuple[tuple[str, str], ...]
    cell: NDArray[numpy.int64]

    def part(self, index: Index) -> Runs:
        """Some of the runs."""
        values = {k: v[index] for k, v in self.values.items()}
        return Runs(self.rows.iloc[index].reset_index(drop=True), values, self.cells, self.cell[index])

    @cached_property
    def in_waves(self) -> Flags:
        """Which runs start together and end together."""
        return ((self.rows["publisher"] == WAVES[0]) & (self.rows["engine"] == WAVES[1])).to_numpy()

    def by(self, chunks_power: float) -> Runs:
        """The same, where the steps before a prompt grow with its chunks to this power."""
        return replace(self, values={**self.values, "chunks_power": numpy.full(len(self.rows), chunks_power)})


def serving_runs(catalog: Catalog, paths: Sequence[Path] = (CSV, LATER)) -> Runs:
    """The runs of these files, each once, completed as `size --batch` completes them, with the mean of their lengths,
    and of FOUND those whose engine has enough of them on a generation of GPUs."""
    rows = pandas.concat([pandas.read_csv(p, dtype={"engine_version": str}).assign(file=p.name) for p in paths])
    rows = rows[~is_repeated(rows).to_numpy()].reset_index(drop=True)
    by_inferencex = rows["id"].str.contains(INFERENCEX)
    rows["publisher"] = numpy.where(by_inferencex, "InferenceX", "NVIDIA")
    share = numpy.where(by_inferencex, MEAN_LENGTH, 1)
    for name in ("input_tokens", "output_tokens"):
        rows[name] = numpy.round(share * rows[name]).astype(int)
    rows = pandas.concat([rows, found_rows()], ignore_index=True)
    rows["context_tokens"] = rows["input_tokens"] + rows["output_tokens"]
    return runs_of(rows, catalog)


def is_repeated(rows: pandas.DataFrame) -> pandas.Series:
    """Which runs are one above, written down again: the same deployment, load and times to a hundredth of a
    millisecond, which no two runs have. Some stand under both names of a model, some as they were looked at anew."""
    times = {name: rows[name].round(2) for name in ("ttft_ms", "tpot_ms")}
    return rows[[*REPEATED, *times]].assign(model=rows["model"].replace(ARCHITECTURES), **times).duplicated()


def found_rows() -> pandas.DataFrame:
    """The runs of FOUND in the columns of the others. Of a static batch the time per token is that of the whole answer;
    of a wave, where all start at once, the time to first token is left out."""
    rows = pandas.read_csv(FOUND, dtype={"engine_version": str})
    per_token = 1e3 * rows["concurrent_requests"] / rows["output_tokens_per_second"]
    rows["tpot_ms"] = rows["tpot_ms"].where(rows["load"] != "static", per_token)
    rows["ttft_ms"] = rows["ttft_ms"].where(rows["load"] == "closed")
    rows["n_gpus"] = rows["tensor_parallel_size"] * rows["data_parallel_size"]
    columns = [
        "id", "engine", "engine_version", "model", "gpu", "weight_dtype", "n_gpus", "tensor_parallel_size",
        "data_parallel_size", "concurrent_requests", "input_tokens", "output_tokens", "ttft_ms", "tpot_ms",
    ]  # fmt: skip
    return rows[columns].assign(file=FOUND.name, publisher=rows["source"].map(PUBLISHERS), expert_parallel_size=1)


def runs_of(rows: pandas.DataFrame, catalog: Catalog) -> Runs:
    """Rows in the columns of `size --batch`, all of which must be answered."""
    stated = rows["engine_version"] if "engine_version" in rows else pandas.Series(None, rows.index, dtype=object)
    rows = rows.assign(engine_version=stated.where(stated.notna() | (rows["engine"] != "vllm"), UNSTATED))
    given = {name: rows[name].to_numpy() for name in DEFAULTS if name in rows}
    points = complete(given, len(rows), catalog)
    refused = [e for e in points.errors if e]
    if refused:
        raise ValueError(f"{len(refused)} rows are refused: {refused[0]}")
    points_deployed = deployment(points.values)
    values = {k: numpy.broadcast_to(numpy.asarray(v), (len(rows),)) for k, v in points_deployed.items()}
    rows = rows.assign(
        generation=[_generation(name.gpu.architecture) for name in points.names],
        architecture=rows["model"].replace(ARCHITECTURES),
        gpu_id=[name.gpu.id for name in points.names],
        is_moe=values["n_experts"] > 0,
        kind=[MODEL_KINDS[int(kind) - 1] for kind in values["speed_kind"]],
    )
    # A configuration is named as the first of its runs is, whatever others call its model and GPU.
    models = [ARCHITECTURES.get(name.model.entry_id, name.model.entry_id) for name in points.names]
    ours = rows.assign(architecture=models, gpu=rows["gpu_id"])[CONFIGURATION].astype(str).agg(" ".join, axis=1)
    rows = rows.assign(configuration=rows[CONFIGURATION].astype(str).agg(" ".join, axis=1))
    rows["configuration"] = rows.groupby(ours)["configuration"].transform("first")
    enough = rows.groupby(["engine", "generation"])["id"].transform("size") >= RUNS_OF_CELL
    use = numpy.flatnonzero(enough | (rows.get("file") != FOUND.name))
    names = list(zip(rows["engine"].iloc[use], rows["generation"].iloc[use], strict=True))
    cells = tuple(sorted(set(names)))
    every = Runs(rows, values, cells, numpy.zeros(len(rows), int)).part(use)
    return replace(every, cell=numpy.array([cells.index(n) for n in names]))


def _generation(architecture: str) -> str:
    return next((g for g, names in GENERATIONS.items() if architecture in names), architecture)


def predict(runs: Runs, constants: Floats, residuals: Residuals | None = None) -> Columns:
    """TPOT, TTFT [s] and tokens a second of every run, with `constants` [cells, constants]."""
    of_run = dict(zip(NAMES, _of_each(runs, numpy.asarray(constants)), strict=True))
    values = evaluate(TIMED, {**runs.values, **of_run, **of_runs(runs, residuals or {})})
    return {name: values[name] for name in (*TIMES, "output_tokens_per_second")}


def _of_each(runs: Runs, constants: Floats) -> Floats:
    """The constants of every run's cell [constants, runs]; in waves half of the others' prompts are waited for."""
    own = constants[runs.cell].T
    wait = NAMES.index("wait_factor")
    own[wait] = numpy.where(runs.in_waves, HALF_OF_WAVE, own[wait])
    return own


def measured(runs: Runs) -> Columns:
    """The same figures as they were measured; tokens a second follow from the two times."""
    tpot, ttft = runs.rows["tpot_ms"].to_numpy() / 1e3, runs.rows["ttft_ms"].to_numpy() / 1e3
    values = {**runs.values, "tpot_seconds": tpot, "ttft_seconds": ttft}
    rate = speed.output_tokens_per_second.of(values)
    return {"tpot_seconds": tpot, "ttft_seconds": ttft, "output_tokens_per_second": rate}


def fit(runs: Runs, near: tuple[Floats, Floats] | None = None) -> tuple[Floats, Floats]:
    """The constants of every cell [cells, constants], and those for cells without runs [constants].

    near: those of most of the runs, to begin at.

    Levenberg and Marquardt's steps on their logarithms: `own` of each cell, drawn to `common`, which is drawn to the
    starts. A run follows the constants of its own cell alone, so that the square matrix of all unknowns falls apart.
    """
    n_cells, n_names = len(runs.cells), len(NAMES)
    starts, limits = (numpy.log([getattr(c, end) for c in CONSTANTS.values()]) for end in ("start", "limit"))
    firm, firm_common = numpy.array([c.spread for c in CONSTANTS.values()]) ** -2.0, GLOBAL_SPREAD**-2.0
    seen = numpy.log([measured(runs)[name] for name in TIMES])
    scale, weight = numpy.array([[TPOT_SCALE], [TTFT_SCALE]]), _weights(runs)
    weight[1] *= TTFT_WEIGHT / numpy.sqrt(_root_of_configuration(runs))
    weight, seen = weight * ~numpy.isnan(seen), numpy.nan_to_num(seen)  # a time that was not measured counts nothing
    of_cell = [numpy.flatnonzero(runs.cell == c) for c in range(n_cells)]
    fixed = evaluate(BEFORE, runs.values | of_runs(runs, {}))

    def of_run(own: Floats) -> Floats:
        return _of_each(runs, _limited(numpy.exp(own), runs.cells))

    def work_out(own: Floats, common: Floats) -> tuple[float, Columns, Floats]:
        """The objective of the fit: the loss of both times and the priors; all quantities; the times' errors."""
        values = evaluate(AFTER, fixed | dict(zip(NAMES, of_run(own), strict=True)))
        error = (numpy.log([values[name] for name in TIMES]) - seen) / scale
        prior = (firm * (own - common) ** 2).sum() + firm_common * ((common - starts) ** 2).sum()
        return (weight**2 * _losses(error)).sum() + prior, values, error

    def slopes(own: Floats, values: Columns, error: Floats) -> Floats:
        """Of the errors by every constant of their cell [constants, times, runs]."""
        moved, columns = of_run(own - DIFFERENCE), numpy.empty((n_names, *error.shape))
        for k, name in enumerate(NAMES):
            then = evaluate(FOLLOWS[name], values | {name: moved[k]})
            columns[k] = (error - (numpy.log([then[time] for time in TIMES]) - seen) / scale) / DIFFERENCE
        return columns

    own, common, damping = numpy.tile(starts, (n_cells, 1)), starts, DAMPING
    if near is not None:
        own, common = (numpy.log(numpy.where(log > 0, log, numpy.exp(starts))) for log in near)
    cost, fit_known, error = work_out(own, common)
    for _ in range(STEPS):
        before, slope, trust = cost, slopes(own, fit_known, error), weight**2 * _trust(error)
        steep = slope * numpy.sqrt(trust)  # by errors that count as they do now, as Gauss takes it
        square = numpy.array([_square(steep[:, :, c].reshape(n_names, -1)) for c in of_cell])
        pulls = slope * trust * error
        down = numpy.array([pulls[:, :, c].sum((1, 2)) for c in of_cell])
        ends = -down - firm * (own - common), (firm * (own - common)).sum(0) - firm_common * (common - starts)
        free = (own < limits) | (ends[0] < 0)
        while damping < MOST_DAMPING:
            ways = _step(square, firm, firm_common, *ends, free, damping)
            tried = numpy.minimum(own + ways[0], limits), common + ways[1]
            now = work_out(*tried)
            if now[0] < cost:
                (own, common), (cost, fit_known, error), damping = tried, now, damping / FURTHER
                break
            damping *= FURTHER
        if before - cost <= ENOUGH * cost:
            break
    own[:, [constant.shared for constant in CONSTANTS.values()]] = common[[NAMES.index(name) for name in SHARED]]
    return _limited(numpy.exp(own), runs.cells), _limited(numpy.exp(common), [("", "")])[0]


def _square(slopes: Floats) -> Floats:
    return slopes @ slopes.T


def _step(
    square: Floats, firm: Floats, firm_common: float, ends: Floats, common_ends: Floats, free: Flags, damping: float
) -> tuple[Floats, Floats]:
    """A step of own and common constants: each cell's are solved for first, by what the common ones leave to them."""
    eye = numpy.eye(len(firm))
    own = (square + eye * firm) * (free[:, :, None] & free[:, None])
    own += eye * (damping * own + ~free[:, None])
    drawn = eye * firm * free[:, :, None]
    through = numpy.linalg.solve(own, numpy.concatenate([drawn, (ends * free)[:, :, None]], axis=2))
    common = eye * (1 + damping) * (len(square) * firm + firm_common)
    ways = numpy.linalg.solve(
        common - (drawn.transpose(0, 2, 1) @ through[:, :, :-1]).sum(0),
        common_ends + (drawn.transpose(0, 2, 1) @ through[:, :, -1:]).sum(0)[:, 0],
    )
    return through[:, :, -1] + through[:, :, :-1] @ ways, ways


def _losses(error: Floats) -> Floats:
    """The loss of errors [times, runs]: near a scale their square; far beyond it a time per token's by its logarithm
    (Cauchy), a first token's by itself (pseudo-Huber), since it waits for others now and then."""
    square = error**2
    return numpy.array([numpy.log1p(square[0]), 2 * (numpy.sqrt(1 + square[1]) - 1)])


def _trust(error: Floats) -> Floats:
    """How much of its square each of these errors counts."""
    square = error**2
    return numpy.array([1 / (1 + square[0]), 1 / numpy.sqrt(1 + square[1])])


def _weights(runs: Runs) -> Floats:
    """The weight of each run [times, runs]."""
    of_ranks = numpy.where(runs.rows["data_parallel_size"] > 1, RANKS_WEIGHT, 1)
    unbatched = (runs.rows["configuration"] == UNBATCHED) & (runs.rows["concurrent_requests"] > 1)
    others = by_other_hands(runs)
    of_times: Floats = numpy.array([numpy.where(others, OTHERS_WEIGHT, 1), numpy.ones(len(others))])
    return numpy.where(unbatched, 0, of_ranks) * of_times


def by_other_hands(runs: Runs) -> Flags:
    """Which runs are not of the sample, though it has their GPUs' generation."""
    return ((runs.rows["file"] == FOUND.name) & (runs.rows["generation"] != "CDNA")).to_numpy()


def _root_of_configuration(runs: Runs) -> Floats:
    """By run, the root of how many its configuration has."""
    n_runs: Floats = runs.rows.groupby("configuration")["id"].transform("size").to_numpy(float)
    return numpy.sqrt(n_runs)


def _limited(constants: Floats, cells: Sequence[tuple[str, str]]) -> Floats:
    """Within what is possible, and 0 where an engine has no such thing."""
    holds: Flags = numpy.array([[c.holds(engine) for c in CONSTANTS.values()] for engine, _ in cells])
    limits: Floats = numpy.array([c.limit for c in CONSTANTS.values()])
    limited: Floats = numpy.minimum(constants, limits) * holds
    return limited


# What the formulas leave ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Structure:
    """How the steps before a prompt grow with its chunks, and how what the formulas leave is pooled: by cell and each
    of `fields`, drawn to none as by `strength` more runs that show nothing, a configuration's runs counting as their
    root."""

    fields: tuple[str, ...] = ()
    strength: float = 1
    chunks_power: float = 0

    @property
    def words(self) -> str:
        pooled = f"{' and '.join(LEFT[f] for f in self.fields)}, drawn by {self.strength:g}"
        return f"{pooled if self.fields else 'nothing'}, power {self.chunks_power:g}"


LEFT = {"of_kind": "kind of model", "of_dtype": "precision"}
COLUMN = {"of_kind": "kind", "of_dtype": "weight_dtype"}
POWER = 0.5  # the best of 0, 0.5 and 1 in inner folds of the sample
STRUCTURES = tuple(Structure(tuple(LEFT)[:n], strength, POWER) for n, strength in itertools.product((1, 2), (3, 6)))
# What the outer folds chose, and last of all what all runs do: to choose anew takes most of the time of all fits.
CHOSEN = tuple(
    Structure(("of_kind", "of_dtype")[:n], strength, POWER)
    for n, strength in ((2, 6), (2, 3), (2, 3), (1, 6), (2, 6), (2, 6), (2, 3), (2, 6), (2, 3))
)
Residuals = dict[tuple[int, str, str], tuple[float, float]]  # by cell, field and entry: of both times
ROUNDS = 15  # of reweighting; it settles in about ten


def left(runs: Runs, constants: Floats, structure: Structure) -> Residuals:
    """Residuals of both times, by cell and what `structure` says: ridge regression on their logarithms,
    robust as the fit is, all factors at once. Runs that wait for memory say nothing of it."""
    if not structure.fields:
        return {}
    runs = runs.part(numpy.flatnonzero(runs.values["running_requests"] >= runs.values["concurrent_requests"]))
    keys = [(f, list(zip(runs.cell.tolist(), runs.rows[COLUMN[f]], strict=True))) for f in structure.fields]
    names = [(f, *key) for f, of_run in keys for key in dict.fromkeys(of_run)]
    places = {name: i for i, name in enumerate(names)}
    positions = numpy.array(
        [[places[f, *factor] for factor in of_run] for f, of_run in keys]
    )  # which factors each run has
    pairs = (positions[:, None] * len(names) + positions).reshape(-1, positions.shape[1])
    drawn = structure.strength * numpy.eye(len(names))
    weights = _weights(runs) / _root_of_configuration(runs)
    seen, predicted, both = measured(runs), predict(runs, constants), []
    for own, name, scale in zip(weights, TIMES, (TPOT_SCALE, TTFT_SCALE), strict=True):
        error, x = numpy.log(seen[name] / predicted[name]), numpy.zeros(len(names))
        seen_at_all, error = ~numpy.isnan(error), numpy.nan_to_num(error)
        for _ in range(ROUNDS):
            rest = (error - x[positions].sum(0)) / scale
            weight = seen_at_all * own * numpy.where(rest > 0, SLOWER[name], 1) / numpy.sqrt(1 + rest**2)
            square = numpy.sum([numpy.bincount(pair, weight, len(names) ** 2) for pair in pairs], axis=0)
            side = numpy.sum([numpy.bincount(position, weight * error, len(names)) for position in positions], axis=0)
            x = numpy.linalg.solve(square.reshape(len(names), -1) + drawn, side)
        both.append(numpy.exp(x))
    return {(cell, f, name): (float(both[0][i]), float(both[1][i])) for i, (f, cell, name) in enumerate(names)}


def of_runs(runs: Runs, residuals: Residuals) -> Columns:
    """The factors of every run, under the names that the formulas read."""
    columns: Columns = {}
    for f, column in COLUMN.items():
        pairs = numpy.ones((len(runs.rows), len(TIMES)))
        if residuals:
            pairs_ = zip(runs.cell.tolist(), runs.rows[column].tolist(), strict=True)
            pairs = numpy.array([residuals.get((cell, f, run), (1.0, 1.0)) for cell, run in pairs_])
        columns |= dict(zip((f"tpot_{f}", f"ttft_{f}"), pairs.T, strict=True))
    return columns


# Held out ---------------------------------------------------------------------------------------------


def parts_of(runs: Runs, folds: int, seed: int = 0) -> list[Flags]:
    """Which runs each fold holds out: whole configurations; those that only other hands measured are dealt out beside,
    so that folds of the others stay what they were."""
    is_found = runs.rows["file"] == FOUND.name
    sample = numpy.unique(runs.rows["configuration"][~is_found])
    others = numpy.setdiff1d(runs.rows["configuration"], sample)
    dealt = []
    for names in (sample, others):
        numpy.random.default_rng(seed).shuffle(names)
        dealt.append(numpy.array_split(names, folds))
    return [runs.rows["configuration"].isin(numpy.concatenate(parts)).to_numpy() for parts in zip(*dealt, strict=True)]


def trials(runs: Runs, structures: Sequence[Structure], folds: int, seed: int = 0) -> list[Columns]:
    """By structure, every run predicted without any run of its configuration."""
    predictions = [{name: numpy.empty(len(runs.rows)) for name in measured(runs)} for _ in structures]
    of_all = {power: fit(runs.by(power)) for power in {structure.chunks_power for structure in structures}}
    for out in parts_of(runs, folds, seed):
        within, without = (runs.part(numpy.flatnonzero(use)) for use in (~out, out))
        constants = {power: fit(within.by(power), near)[0] for power, near in of_all.items()}
        for prediction, structure in zip(predictions, structures, strict=True):
            for name, column in _predicted(within, without, constants[structure.chunks_power], structure).items():
                prediction[name][out] = column
    return predictions


def _predicted(within: Runs, without: Runs, constants: Floats, structure: Structure) -> Columns:
    """Runs without any of those `within`, which the constants and all that is pooled come from."""
    power = structure.chunks_power
    return predict(without.by(power), constants, left(within.by(power), constants, structure))


def choose(runs: Runs) -> Structure:
    """The structure that predicts held-out runs best, its three median errors as parts of what is wanted added up."""
    seen = measured(runs)
    scores = [
        sum(numpy.nanmedian(abs(trial[name] / seen[name] - 1)) / wanted for name, wanted in WANTED.items())
        for trial in trials(runs, STRUCTURES, INNER_FOLDS)
    ]
    return STRUCTURES[int(numpy.argmin(scores))]


def held_out(
    runs: Runs, folds: int = 8, seed: int = 0, structures: Sequence[Structure] = ()
) -> tuple[Columns, Columns, list[Structure]]:
    """Every run predicted without any run of its configuration, which chose no structure either; the same without
    any pooling or growth with chunks; and what each fold chose. structures: what they chose before; the first alone
    chooses anew."""
    predicted, plain = ({name: numpy.empty(len(runs.rows)) for name in measured(runs)} for _ in range(2))
    chosen: list[Structure] = []
    for out in parts_of(runs, folds, seed):
        within, without = (runs.part(numpy.flatnonzero(use)) for use in (~out, out))
        chosen.append(structures[len(chosen)] if structures and chosen else choose(within))
        for into, structure in ((predicted, chosen[-1]), (plain, Structure())):
            constants, _ = fit(within.by(structure.chunks_power))
            for name, column in _predicted(within, without, constants, structure).items():
                into[name][out] = column
    return predicted, plain, chosen


def by_publisher(runs: Runs, structure: Structure) -> Columns:
    """Every run predicted without any run of its publisher."""
    predicted = {name: numpy.empty(len(runs.rows)) for name in measured(runs)}
    for publisher in sorted(set(runs.rows["publisher"])):
        out = (runs.rows["publisher"] == publisher).to_numpy()
        within, without = (runs.part(numpy.flatnonzero(use)) for use in (~out, out))
        constants, _ = fit(within.by(structure.chunks_power))
        for name, column in _predicted(within, without, constants, structure).items():
            predicted[name][out] = column
    return predicted


def other_cells(runs: Runs) -> Columns:
    """Every run predicted by the constants for cells without runs, fitted without any run of its cell."""
    predicted = {name: numpy.empty(len(runs.rows)) for name in measured(runs)}
    near = fit(runs)
    for cell in range(len(runs.cells)):
        out = runs.cell == cell
        _, common = fit(runs.part(numpy.flatnonzero(~out)), near)
        constants = numpy.tile(common, (len(runs.cells), 1))
        for name, column in predict(runs.part(numpy.flatnonzero(out)), constants).items():
            predicted[name][out] = column
    return predicted

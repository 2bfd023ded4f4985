"""How near sheetgen comes to measured speed, whole configurations held out; and the constants, fitted anew.

python tests/speed.py            prints the report and writes docs/speed.md
python tests/speed.py --fit      first fits the constants and writes catalogs/speed.yaml
python tests/speed.py --results  writes nothing, and pickles the results to stdout, for the tests
"""

from __future__ import annotations

import os

# The fit's matrices are small: several threads wait for each other, and the longer the busier the machine is.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pickle
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy
import pandas
from measured_rows import Columns, Flags, Floats, tuples
from speed_bands import (
    FIFTHS,
    LEVELS,
    MANY_RUNS,
    RANKS,
    RUNS_OF_BAND,
    TIMES,
    Bands,
    Reliability,
    agrees,
    catalog_rows,
    draw,
    error_table,
    holding,
    nested,
)
from speed_fit import (
    CHOSEN,
    CSV,
    FIGURES,
    FOUND,
    GENERATIONS,
    INNER_FOLDS,
    LATER,
    OF_CELLS,
    OTHERS_WEIGHT,
    SHARED,
    SLOWER,
    STRUCTURES,
    UNBATCHED,
    Index,
    Residuals,
    Runs,
    Structure,
    by_publisher,
    choose,
    fit,
    held_out,
    left,
    measured,
    other_cells,
    predict,
    serving_runs,
)
from speed_public import errors_by_publisher, section, served

from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import MODEL_KINDS, SpeedBand, SpeedFile

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs" / "speed.md"
CATALOG = ROOT / "catalogs" / SpeedFile.file_name
# Aims: median, nine of ten; percent.
GATES: dict[str, tuple[float, float | None]] = {"TPOT": (10, 33), "TTFT": (22, None), "output tokens/s": (10.5, 33)}
N_WRITTEN = 2403  # lines of the sample
PUBLISHER_AIMS = "TPOT 13 and 37, TTFT 24, output tokens/s 12.5"
SMALL_EXPERTS = 7e9  # parameters active
EAGER_SECONDS = 0.00021
EAGER_SOURCE = (
    "Llama 3.1 8B on H100 8.4 ms a token for 5.1 (cloudai.pt, CUDA graphs), Qwen2.5-Omni 7B on A800 22 for 13"
    " (vllm-project/vllm-omni issue 7960): 94 and 464 microseconds a layer beside the reads of weights; the geometric"
    " mean"
)
LEAST_STEP_SECONDS = 0.00228
LEAST_STEP_SOURCE = (
    "the shortest time per token of all runs that the constants are fitted to is 2.29 ms: gpt-oss-120b in MXFP4 on 8"
    " B200, TensorRT-LLM, 4 requests at once"
)
KERNELS_SOURCE = "fitted, one value for all engines; a plain layer is 1"


@dataclass(frozen=True)
class Results:
    """All that is fitted anew: predictions of every run, and the constants of all runs together."""

    held_out: Columns
    plain: Columns  # the same folds, nothing pooled, and steps before a prompt whatever its chunks
    chosen: list[Structure]  # by each of those folds
    before: Columns  # runs of the second file, by constants of the first one's, nothing pooled
    elsewhere: Columns
    publishers: Columns  # without any run of their publisher
    constants: Floats
    common: Floats
    structure: Structure
    residuals: Residuals
    nested: Reliability | None  # what a chance is worth, where the inner folds were predicted, too


def work_out(runs: Runs, structures: Sequence[Structure] = ()) -> Results:
    """Every fit that the report and the catalog rest on: nested folds, each cell left out, each publisher, all runs.

    known: what the folds chose before; the first alone chooses anew."""
    first, second = (runs.part(numpy.flatnonzero(runs.rows["file"] == path.name)) for path in (CSV, LATER))
    before = predict(second.by(0), fit(first.by(0))[0])
    structure = structures[-1] if structures else choose(runs)
    own = runs.by(structure.chunks_power)
    constants, common = fit(own)
    outer, plain, chosen = held_out(runs, structures=structures)
    return Results(
        outer,
        plain,
        chosen,
        before,
        other_cells(own),
        by_publisher(runs, structure),
        constants,
        common,
        structure,
        left(own, constants, structure),
        None if structures else nested(runs, outer, chosen, served(Catalog())),
    )


def error_tables(runs: Runs, results: Results) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Errors of runs predicted without their configuration, and without their engine's generation of GPUs."""
    return error_table(runs, results.held_out), error_table(runs, results.elsewhere)


def all_bands(runs: Runs, results: Results, outside: pandas.DataFrame) -> list[SpeedBand]:
    """The bands of the catalog: of held-out runs, those beyond GPUs with runs widened until they hold 80 % of the runs
    outside the fit.

    outside: lines of `served`, predicted by the catalog's constants.
    """
    own, of_cells = error_tables(runs, results)
    one_point, points = anchored(runs, results.held_out)
    tried = error_table(runs, one_point)[~points]
    of_points: Bands = {}
    of_gpus = own[own["key"].str.startswith("fitted ")]
    n_rows = Counter(own["key"].tolist())
    n_rows.update("generation " + of_gpus["generation"] + " " + of_gpus["kind"])
    n_rows.update("other " + own["kind"])
    n_rows.update("other " + own["engine"] + " " + own["kind"])
    for kind in MODEL_KINDS:
        part = tried[(tried["kind"] == kind) & (tried["key"] != RANKS)]
        of_points[f"anchored {kind}"] = {figure: holding(numpy.exp(part[figure])) for figure in FIGURES}
        n_rows[f"anchored {kind}"] = len(part)
    return catalog_rows(draw(own, of_cells, outside), of_points, n_rows)


def anchored(runs: Runs, columns: Columns) -> tuple[Columns, Flags]:
    """Predictions set right by one measured run of their configuration, that of middle concurrency, and which runs
    those are (they are exact and prove nothing)."""
    seen, rows = measured(runs), runs.rows
    points = numpy.zeros(len(rows), bool)
    factors = {name: numpy.ones(len(rows)) for name in ("tpot_seconds", "ttft_seconds")}
    for _, group in rows.groupby("configuration"):
        middle = group["concurrent_requests"].sort_values(kind="stable").index[len(group) // 2]
        points[middle] = True
        for name, factor in factors.items():
            factor[group.index] = seen[name][middle] / columns[name][middle]
    out = {name: columns[name] * factors[name] for name in factors}
    rate = measured(
        Runs(
            rows.assign(tpot_ms=out["tpot_seconds"] * 1e3, ttft_ms=out["ttft_seconds"] * 1e3),
            runs.values,
            runs.cells,
            runs.cell,
        )
    )
    return {**out, "output_tokens_per_second": rate["output_tokens_per_second"]}, points


def errors(runs: Runs, columns: Columns, use: Index | None = None) -> pandas.DataFrame:
    """Per figure the median and the 90th percentile of the absolute error, and the median signed one, in percent."""
    seen = measured(runs)
    lines = []
    for name, label in FIGURES.values():
        error = 100 * (columns[name] / seen[name] - 1)
        error = error if use is None else error[use]
        error = error[~numpy.isnan(error)]  # a time that was not measured is not judged
        size = abs(error)
        if not len(size):
            lines.append((label, numpy.nan, numpy.nan, numpy.nan, 0))
            continue
        lines.append((label, numpy.median(size), numpy.quantile(size, 0.9), numpy.median(error), len(error)))
    return pandas.DataFrame(lines, columns=["figure", "median", "p90", "bias", "runs"])


def shipped(runs: Runs) -> Floats:
    """The constants of the catalog, as `predict` takes them."""
    file = Catalog().file(SpeedFile)
    shared = [getattr(file, n) for n in SHARED]
    table = {(c.engine, c.generation): [*(getattr(c.constants, n) for n in OF_CELLS), *shared] for c in file.cells}
    return numpy.array([table[cell] for cell in runs.cells])


def shipped_residuals(runs: Runs) -> Residuals:
    """The residuals of its constants that the catalog has pooled."""
    cells = {(c.engine, c.generation): c for c in Catalog().file(SpeedFile).cells}
    return {
        (i, field, name): (factor.tpot, factor.ttft)
        for i, cell in enumerate(runs.cells)
        for field in ("of_kind", "of_dtype")
        for name, factor in getattr(cells[cell], field).items()
    }


def write_catalog(runs: Runs, results: Results, bands: list[SpeedBand]) -> None:
    """catalogs/speed.yaml, constants to three digits."""
    constants, common = results.constants, results.common
    lines = [
        "# Constants of speed by engine and generation of GPUs. Written by: python tests/speed.py --fit",
        "# What each one is: sizing/speed.py. How near they come: docs/speed.md.",
        "checked_on: 2026-11-24",
        "source: >-",
        f"  {(runs.rows['file'] != FOUND.name).sum():,} measured runs at fixed concurrency of aiconfigurator 0.12.0",
        "  (origin InferenceX):",
        "  vLLM 0.11 to 0.19,",
        f"  SGLang 0.5.1 to 0.5.10, TensorRT-LLM 1.0 to 1.3; tests/data/measured/{CSV.name} and {LATER.name};",
        f"  {(runs.rows['file'] == FOUND.name).sum():,} of other hands, most of AMD GPUs: {FOUND.name}",
        "licence: Apache-2.0",
        "nvlink_gpus: 8",
        "all_reduce_growth: 0.3",
        "all_reduce_source: 'latency of an all-reduce over 2, 4 and 8 GPUs; 0.3 fitted best of 0, 0.3 and 1'",
        f"chunks_power: {results.structure.chunks_power:g}",
        "chunks_source: 'steps before a prompt grow with its chunks to this power; of 0, 0.5 and 1 the best in inner"
        " folds'",
        *(f"{name}: {float(f'{common[len(OF_CELLS) + i]:.3g}'):g}" for i, name in enumerate(SHARED)),
        f"kernels_source: '{KERNELS_SOURCE}'",
        f"eager_seconds_per_layer: {EAGER_SECONDS}",
        f"eager_source: '{EAGER_SOURCE}'",
        f"least_step_seconds: {LEAST_STEP_SECONDS}",
        f"least_step_source: '{LEAST_STEP_SOURCE}'",
        f"longest_prompt_tokens: {runs.rows['input_tokens'].max()}",
        "network_hop_seconds: 0.000035",
        "network_source: 'ncclSend and ncclRecv of up to 8 KB between two machines: 31 to 34 microseconds"
        " (NVIDIA/nccl-tests issue 214); fi_pingpong over EFA 26 to 38 (ComputeCanada/puppet-magic_castle 331)'",
        f"default: {_flow(common)}",
        "default_source: the common value of all cells, for engines and GPUs without runs",
        "cells:",
    ]
    for i, (engine, generation) in enumerate(runs.cells):
        mine = runs.rows[runs.cell == i]
        gpus = ", ".join(sorted(mine["gpu_id"].unique()))
        lines += [
            f"  - engine: {engine}",
            f"    generation: {generation}",
            f"    architectures: [{', '.join(GENERATIONS[generation])}]",
            f"    measured_gpus: [{gpus}]",
            f"    kinds: [{', '.join(k for k in MODEL_KINDS if (mine['kind'] == k).sum() >= MANY_RUNS)}]",
            f"    n_rows: {len(mine)}",
            f"    n_configurations: {mine['configuration'].nunique()}",
            f"    constants: {_flow(constants[i])}",
        ]
        for field in results.structure.fields:
            lines.append(f"    {field}:")
            lines += [
                f"      {name}: {{tpot: {tpot:.3f}, ttft: {ttft:.3f}}}"
                for (cell, group, name), (tpot, ttft) in sorted(results.residuals.items())
                if (cell, group) == (i, field)
            ]
    lines += [
        "same_as: {nim: vllm, tgi: vllm, lmdeploy: vllm}",
        "same_as_source: NIM's default backend is vLLM; TGI and LMDeploy were not measured and share its kernels'"
        " makers",
        "bands:",
        "  # Factors of the prediction, of both times together (docs/speed.md), n_rows of the fit. fitted: a GPU's",
        "  # own runs, whole configurations held out. other with a generation: those of a generation and kind; without",
        "  # one: whole cells held out, at least as wide; with an engine: its own cells alone, where it has 20",
        "  # configurations of the kind. ranks: data-parallel attention, at least as wide as any GPU's; stages: the",
        "  # widest. All but the first hold 80 % of the runs outside the fit. anchored: held out but for one",
        "  # run of the configuration. On a GPU with a band of its own no other but that is narrower.",
    ]
    for band in bands:
        stated = {name: end for name, end in band.model_dump().items() if end is not None}
        lines.append(f"  - {{{', '.join(f'{name}: {_plain(end)}' for name, end in stated.items())}}}")
    lines += ["bands_source: docs/speed.md", ""]
    CATALOG.write_text("\n".join(lines), encoding="utf-8")


def _plain(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _flow(constants: Floats) -> str:
    own = zip(OF_CELLS, constants[: len(OF_CELLS)], strict=True)
    pairs = [f"{n}: {float(f'{v:.3g}'):.10f}".rstrip("0").rstrip(".") for n, v in own]
    return "\n      {" + ",\n       ".join(pairs) + "}"


def report(runs: Runs, results: Results) -> str:
    """The report as markdown."""
    held_out, elsewhere = results.held_out, results.elsewhere
    one_point, points = anchored(runs, held_out)
    n_sample = int((runs.rows["file"] != FOUND.name).sum())
    lines = [
        "# Speed: predictions beside measurements",
        "",
        "Written by `python tests/speed.py`. The formulas are those of `sheetgen/sizing/speed.py`; their",
        f"constants, in `catalogs/speed.yaml`, are fitted on {len(runs.rows):,} measured runs of"
        f" {runs.rows['configuration'].nunique()} configurations (model, GPU, engine, precision, number of GPUs;"
        " DeepSeek-R1 and V3, of which some runs stand under both names, are one model) in",
        f"`tests/data/measured/{CSV.name}`, `{LATER.name}` and `{FOUND.name}`. All runs are answered. InferenceX draws"
        " lengths evenly",
        "from 0.8 to 1.0 of those stated: its runs are predicted at 0.9 of them. What the formulas leave of both times",
        "is pooled by engine and generation, by kind of model and by precision, drawn to none.",
        "",
        "## Whole configurations held out, nested",
        "",
        "Each run is predicted by constants that were fitted, and a structure that was chosen, without any run of its",
        f"configuration: 8 outer folds, in each of which 5 inner ones choose among {len(STRUCTURES)} structures:",
        "pooling by kind, or kind and precision, drawn by 3 or 6; the steps before a prompt grow with the root of its",
        "chunks, its tokens over the engine's tokens a step (of powers 0, 0.5 and 1 the best). The outer figure is",
        "printed, in percent of what was measured. Other shapes of the wait for a first token (prompts of one pass;",
        "the share of time in prompts, also as it grows without bound; a power of the requests; steps of the prompts",
        "waited for; steps whatever the chunks beside those that follow them; whole chunks; a floor of launches for a",
        "prompt; a factor on one's own prompt; weights read once for all prompts of a step, or not at all beside",
        "answers; links of a prompt apart from those of a step) were tried in single folds, not nested, and were no",
        "better; nor were kernels of latent attention, effects of engines and generations apart, and seconds for each",
        "expert that a step touches.",
        "The kernels of layers, a request's own seconds and those beside others were found on such folds, too, and so",
        "was what runs count: first tokens by the root of the root of their configuration's runs; other hands' times",
        f"per token on GPUs of the sample {OTHERS_WEIGHT:g}, since these runs are of untuned engines; in what is left,",
        f"times per token that are slower than predicted {SLOWER['tpot_seconds']:g}, since both times shall hold",
        "together.",
        "",
        f"Of {N_WRITTEN:,} lines of the sample {N_WRITTEN - n_sample} are runs that stand there twice, under two names",
        "of a model or rounded; each run counts once. NVIDIA's runs of SGLang have prompts and answers of one length,",
        "so that all start and end together, and SGLang reads prompts in steps of their own: half of the others'",
        f"prompts come before one's own. {UNBATCHED.split('/')[1]}: two requests take three to five times the time",
        "per token of one; those with more than one are judged and fit nothing.",
        "",
        "The folds chose:",
        f"{_counted(results.chosen)}. On all runs: {results.structure.words}, which ships.",
        "",
        "The sample of aiconfigurator:",
        "",
        *_table(errors(runs, held_out, (runs.rows["file"] != FOUND.name).to_numpy()), GATES),
        "",
        "With the runs found later, of other hands, most of AMD GPUs, small mixtures and single requests:",
        "",
        *_table(errors(runs, held_out)),
        "",
        "The same configuration measured again differs by 7 to 10 % (nine of ten), across engine versions by 17 to"
        " 20 %.",
        "",
        *_before_and_after(runs, results),
        *_publishers(runs, results),
        *_as_found(),
        *_ranks(runs, held_out),
        *_reliability(results.nested),
        "## With one measured point of the configuration (`--measured`)",
        "",
        *_table(errors(runs, one_point, ~points)),
        "",
        "## Engines and GPUs without runs",
        "",
        "Each cell (engine and generation) predicted by the common constants of the others: what to expect of the",
        "`default` constants.",
        "",
        *_table(errors(runs, elsewhere)),
        "",
        "## Fitted on all runs (what ships)",
        "",
        *_table(errors(runs, predict(runs, shipped(runs), shipped_residuals(runs)))),
        "",
        *section(Catalog()),
        "",
        "## Held out, by engine, generation and model",
        "",
        "| engine | GPUs | model | weights | runs | TPOT median | bias | TTFT median | bias |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    groups = runs.rows.groupby(["engine", "generation", "model", "weight_dtype"]).indices
    for name, index in groups.items():
        engine, generation, model, dtype = cast(tuple[str, str, str, str], name)
        e = errors(runs, held_out, numpy.asarray(index)).set_index("figure")[["median", "bias"]].to_dict("index")
        lines.append(
            f"| {engine} | {generation} | {model.split('/')[-1]} | {dtype} | {len(index)}"
            f" | {e['TPOT']['median']:.0f} | {e['TPOT']['bias']:+.0f}"
            f" | {e['TTFT']['median']:.0f} | {e['TTFT']['bias']:+.0f} |"
        )
    return "\n".join([*lines, ""]).replace(" +nan |", " |").replace(" nan |", " |")


def _counted(chosen: list[Structure]) -> str:
    words = [log.words for log in chosen]
    return "; ".join(f"{words.count(word)} x {word}" for word in sorted(set(words)))


def _before_and_after(runs: Runs, results: Results) -> list[str]:
    """Median errors, and what nine of ten are below, of the outer folds without a structure and with it, by scope."""
    ranks = ((runs.rows["data_parallel_size"] > 1) & runs.rows["is_moe"]).to_numpy()
    second, every = (runs.rows["file"] == LATER.name).to_numpy(), numpy.ones(len(ranks), bool)
    of_kind = {kind: ~ranks & (runs.rows["kind"] == kind).to_numpy() for kind in MODEL_KINDS}
    few_active = runs.values["n_params_active"] < SMALL_EXPERTS
    scopes = {
        "all": every,
        "the sample of aiconfigurator": (runs.rows["file"] != FOUND.name).to_numpy(),
        **{f"fitted, {kind}": use for kind, use in of_kind.items()},
        "ranks": ranks,
        "small experts": runs.rows["is_moe"].to_numpy() & few_active,
        "AMD": (runs.rows["generation"] == "CDNA").to_numpy(),
        "B300": runs.rows["gpu_id"].str.contains("b300").to_numpy(),
        "one request": (runs.rows["concurrent_requests"] == 1).to_numpy(),
    }
    lines = [
        "By scope, the median error of the same outer folds, before with power 0 and nothing pooled; in brackets what"
        " nine of ten are below.",
        f"The first line: runs of {LATER.name}, by constants of {CSV.name} alone and nothing pooled, and in the outer"
        f" folds. Small experts: fewer than {SMALL_EXPERTS / 1e9:g} billion parameters active.",
        "",
        "| scope | runs | " + " | ".join(f"{label} before | after" for _, label in FIGURES.values()) + " |",
        "| --- | ---: |" + " ---: | ---: |" * len(FIGURES),
    ]
    tried = [("runs of the second file", second, results.before)]
    tried += [
        (scope, use, {name: column[use] for name, column in results.plain.items()}) for scope, use in scopes.items()
    ]
    for scope, use, before in tried:
        part = runs.part(numpy.flatnonzero(use))
        pair = [errors(part, columns) for columns in (before, {k: v[use] for k, v in results.held_out.items()})]
        cells = [f"{e.median:.1f} ({e.p90:.0f})" for both in zip(*map(tuples, pair), strict=True) for e in both]
        lines.append(f"| {scope} | {use.sum():,} | {' | '.join(cells)} |")
    return [*lines, ""]


def _publishers(runs: Runs, results: Results) -> list[str]:
    """Errors of runs that were predicted without any run of their publisher."""
    lines = [
        "## Whole publishers held out",
        "",
        "Runs of one hand resemble each other: engines, versions, clients. Here each run is predicted by constants that"
        " were fitted without any run of its publisher: InferenceX and NVIDIA are the two of the sample, LMSYS and AMD"
        " those of the runs found later; runs of the last three lines took no part in any fit. The median error, in"
        " brackets the bias and what nine of ten are below. Without InferenceX hardly a run on Blackwell is left but 26"
        " of NVIDIA with TensorRT-LLM.",
        "",
        "| publisher | runs | " + " | ".join(label for _, label in FIGURES.values()) + " |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    publishers = runs.rows["publisher"]
    uses = {name: (publishers == name).to_numpy() for name in sorted(set(publishers))}
    uses |= {"all of these but InferenceX": (publishers != "InferenceX").to_numpy(), "all of these": publishers.notna()}
    for name, use in uses.items():
        cells = [f"{e.median:.1f} ({e.bias:+.0f}; {e.p90:.0f})" for e in tuples(errors(runs, results.publishers, use))]
        lines.append(f"| {name} | {use.sum():,} | {' | '.join(cells)} |")
    return [*lines, *errors_by_publisher(Catalog()), "", *_unknowable(runs, results, uses)]


def _unknowable(runs: Runs, results: Results, uses: dict[str, Flags]) -> list[str]:
    """How much of these errors a factor is that only the publisher's own runs can tell."""
    columns = {
        "as predicted": None,
        "factor of publisher": ["publisher"],
        "of its engines and generations": ["publisher", "engine", "generation"],
        "and kinds of models": ["publisher", "engine", "generation", "kind"],
        "of its configurations": ["publisher", "configuration"],
    }
    lines = [
        f"Wanted of all these: {PUBLISHER_AIMS}. What is left of their errors if the publisher's own runs set one"
        " factor on each figure, the best in hindsight (median error, in brackets what nine of ten are below; TPOT,"
        " TTFT, output tokens/s):",
        "",
        f"| publisher | {' | '.join(columns)} |",
        "| --- |" + " ---: |" * len(columns),
    ]
    for name in ("InferenceX", "NVIDIA", "all of these"):
        cells = []
        for groups in columns.values():
            publishers = results.publishers if groups is None else _with_best_factors(runs, results.publishers, groups)
            cells.append(
                "; ".join(f"{e.median:.1f} ({e.p90:.0f})" for e in tuples(errors(runs, publishers, uses[name])))
            )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [
        *lines,
        "",
        "A factor for each engine and generation, which no other publisher's runs can tell, is about half of what a"
        " time per token misses, and without it the medians of a time per token and of tokens a second would just be"
        " what is wanted; the tuning of each kind of model is most of the rest, and that of each configuration of a"
        " first token. One measured point (`--measured`) tells it. Less pooling is nearer here, and farther by"
        " configuration. Before December 2026 this table had 20.0 for a time per token: 50 runs of InferenceX stood"
        " among NVIDIA's, 49 of them written down again, so that constants that were to be without them knew them.",
        "",
    ]


def _with_best_factors(runs: Runs, columns: Columns, groups: list[str]) -> Columns:
    """Predictions over the median of predicted / measured of their group."""
    seen, keys = measured(runs), [runs.rows[name] for name in groups]
    ratios = {name: pandas.Series(columns[name] / seen[name]) for name in columns}
    return {name: columns[name] / ratio.groupby(keys).transform("median").to_numpy() for name, ratio in ratios.items()}


def _as_found() -> list[str]:
    """How the runs found later were predicted before any fit knew them, and as they are now by those columns."""
    rows = pandas.read_csv(FOUND)
    alive = rows["ttft_ms"] + (rows["output_tokens"] - 1) * rows["tpot_ms"]
    rates = rows["output_tokens_per_second"].fillna(1e3 * rows["concurrent_requests"] * rows["output_tokens"] / alive)
    seen = {"TPOT": rows["tpot_ms"], "TTFT": rows["ttft_ms"], "output tokens/s": rates}
    before = {"TPOT": "predicted_tpot_ms", "TTFT": "predicted_ttft_ms"}
    cells = []
    for label, figure in seen.items():
        error = 100 * (rows[before.get(label, "predicted_output_tokens_per_second")] / figure - 1).dropna()
        cells.append(f"{label} {error.abs().median():.0f} ({error.median():+.0f}; {error.abs().quantile(0.9):.0f})")
    return [
        f"The {len(rows)} runs of `{FOUND.name}` were looked up in November 2026 and predicted by the constants of that"
        f" day before any of them took part in a fit, as its columns say: {', '.join(cells)}; most are of AMD GPUs,"
        " which had no constants, and of single requests.",
        "",
    ]


def _ranks(runs: Runs, columns: Columns) -> list[str]:
    """The same of runs with data-parallel attention, by model: what they were predicted as, in parts of what was
    measured."""
    seen = measured(runs)
    ratios = pandas.DataFrame({name: columns[name] / seen[name] for name in seen}).assign(
        of=runs.rows["engine"] + ", " + runs.rows["model"].str.split("/").str[-1]
    )[runs.rows["data_parallel_size"] > 1]
    lines = [
        "Of these, runs with data-parallel attention: predicted / measured, the median; in brackets the median error"
        " in percent.",
        "",
        "| runs with data-parallel attention | runs | " + " | ".join(label for _, label in FIGURES.values()) + " |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for figure, part in (*ratios.groupby("of"), ("all", ratios)):
        cells = (f"{part[n].median():.2f} ({100 * abs(part[n] - 1).median():.0f})" for n, _ in FIGURES.values())
        lines.append(f"| {figure} | {len(part)} | {' | '.join(cells)} |")
    return [*lines, ""]


CHANCE = "## How far a chance is right"


def _reliability(reliability: Reliability | None) -> list[str]:
    """Stated and observed shares; without the nested folds the heading alone."""
    if reliability is None:
        return [CHANCE, ""]
    table = reliability.table
    heads = " | ".join(f"{lowest:.1f} to {lowest + 1 / FIFTHS:.1f}" for lowest in numpy.arange(FIFTHS) / FIFTHS)
    text = " | ".join(f"{level:.2f}" for level, _ in reliability.by_fifth())
    uses: list[tuple[str, Flags]] = [("all", numpy.ones(len(table), bool))]
    for name in ("gpu_id", "kind"):
        uses += [(value, (table[name] == value).to_numpy()) for value in sorted(set(table[name]))]
    uses.append(("data-parallel attention", (table["key"] == RANKS).to_numpy()))
    uses.append(("other hands", (table["counts"] < 1).to_numpy()))

    def line(label: str, use: Flags, held: Flags | None = None) -> str:
        n, happened = table[use]["configuration"].nunique(), [share for _, share in reliability.by_fifth(use, held)]
        cells = " | ".join(f"{share:.2f}" for share in happened)
        return f"| {label} | {use.sum():,} | {n} | {cells} | {reliability.over_all(use, held)[1]:.2f} |"

    inside = [f"{FIGURES[figure][1]} {100 * reliability.inside([figure]):.0f}" for figure in FIGURES]
    return [
        CHANCE,
        "",
        "At a level c of confidence every time is exp(z s) times what is predicted, z the normal quantile of c, s from"
        " the end of its band: ln(high / predicted) / 1.2816 above one half, ln(predicted / low) / 1.2816 below. The"
        " chance of a limit is the level at which it just holds, that of two the smaller one.",
        "",
        f"Bands are by GPU where that has {RUNS_OF_BAND} runs, all engines and kinds of models together, each"
        " configuration weighing one. Their high ends are the least share of each time's errors at which, over the"
        " levels from one half up, both times hold as often as is said; their low ends leave both times of one"
        " configuration in ten below; both as for one configuration more than were seen (conformal prediction)."
        " Tried in nested folds, cut in four ways, with ends at nine of ten: bands by engine and GPU (4 to 16"
        " configurations each; half as wide again for a time per token, what happened 0.02 nearer), by kind of model"
        " alone (a third wider, no nearer), and a factor of each GPU on the times (what happened over all levels"
        " changed by at most 0.01). So times have no factor by GPU, and one half stays what is predicted. GPUs of a"
        " generation without as many runs take the band of its runs of the same kind of model, or, where these are of"
        " fewer than 20 configurations, of all kinds; all others that of whole engines and generations held out.",
        "",
        "Said and seen: both limits at the same level, for levels from 0.05 to 0.95; each configuration weighs one,"
        f" of other hands on GPUs of the sample {OTHERS_WEIGHT:g}, as in the fit: their line is the last."
        f" Nested: the bands of each of 8 outer folds are drawn from errors of {INNER_FOLDS} inner folds of the other"
        " runs. Both times within what was predicted is rarer than one half (two times, each right half of the time),"
        " so that a chance near one half says more than happens, one above it less.",
        "",
        f"| | runs | configurations | {heads} | all |",
        "| --- | ---: | ---: |" + " ---: |" * (FIFTHS + 1),
        f"| said | | | {text} | {LEVELS.mean():.2f} |",
        *(line(name, use) for name, use in uses),
        *(line(f"{FIGURES[figure][1]} alone", uses[0][1], reliability.alone[figure]) for figure in TIMES),
        "",
        "Outside a tenth of what was said and outside the 90 % binomial interval: "
        f"{_missed(reliability, uses) or 'none'}. One limit alone holds more often than is said: "
        "the bands are those of both.",
        "",
        f"Of these runs {', '.join(inside)} % lie inside the band of a figure alone; of both times together"
        f" {100 * reliability.inside(TIMES):.0f} % have neither both below the low ends nor one above its high end.",
        "",
    ]


def _missed(reliability: Reliability, uses: Sequence[tuple[str, Flags]]) -> str:
    """Place, fifth, and what was said and seen, of a miss."""
    return "; ".join(
        f"{label}, {level:.2f} said, {happened:.2f} seen"
        for label, use in uses
        for level, happened in reliability.by_fifth(use)
        if not agrees(level, happened, reliability.table[use]["configuration"].nunique())
    )


def _table(frame: pandas.DataFrame, gates: dict[str, tuple[float, float | None]] | None = None) -> list[str]:
    head = "| figure | median | nine of ten below | bias | runs |" + (" wanted |" if gates else "")
    lines = [head, "| --- | ---: | ---: | ---: | ---: |" + (" --- |" if gates else "")]
    for row in tuples(frame):
        line = f"| {row.figure} | {row.median:.1f} | {row.p90:.1f} | {row.bias:+.1f} | {row.runs:,} |"
        if gates:
            median, p90 = gates[row.figure]
            line += f" median at most {median}" + (f", nine of ten below {p90}" if p90 else "") + " |"
        lines.append(line)
    return lines


def main(arguments: list[str]) -> None:
    runs = serving_runs(Catalog())
    results = work_out(runs, CHOSEN if "--as-chosen" in arguments else ())
    if "--results" in arguments:
        sys.stdout.buffer.write(pickle.dumps(vars(results)))
        return
    if "--fit" in arguments:
        for _ in range(2):  # the runs outside the fit are predicted by the constants just written
            write_catalog(runs, results, all_bands(runs, results, served(Catalog())))
    text = report(serving_runs(Catalog()), results)  # with the constants just written
    DOCS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Predictions beside public measurements that took no part in the fit: the section of docs/speed.md about them.

What is compared depends on how the requests came (column `load` of throughput_public.csv):
closed, rate, burst   what `size` prints
wave                  the same, but all requests of a wave start together: half of the others' prompts come first
static                no scheduler: one step of the batch, and the prompts of the whole batch in one prefill
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy
import pandas
from measured_rows import DATA, Columns, Floats, deployment, tuples
from speed_fit import FIGURES, HALF_OF_WAVE

from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import MODEL_KINDS, Scope
from sheetgen.question.deployment import DEFAULTS, SPEED_SCOPES, Resolved, complete, model_kind
from sheetgen.sizing import speed

PUBLIC = DATA / "throughput_public.csv"
FIRST_BUILDS = "ixtp"  # up to ten times slower than the engine a few weeks later: they draw no band
HELD = 0.795  # of the runs, which is 80 % as it is printed
FEW = 3  # runs of a GPU in a source: fewer stand together
PUBLISHER = {"nim1": "NIM", "nimdoc": "NIM", "trt09": "vendors", "trtov09": "vendors", "lmdep": "vendors"}
SOURCES = {
    "nim1": "NIM 1.0 of 2024, fixed lengths",
    "nimdoc": "NIM 1.8",
    "spark": "vLLM 0.26 on DGX Spark, waves",
    "cloudrift": "vLLM of October 2025, 4-bit and FP8, bursts",
    "ixtp": "InferenceX by token position: vLLM's first builds for new models",
    "vultr": "vLLM 0.16",
    "iog": "vLLM 0.8.5, ShareGPT, Poisson arrivals",
    "mush": "vLLM",
    "jm": "vLLM 0.23",
    "trt09": "TensorRT-LLM 0.9 of 2024, static",
    "trtov09": "TensorRT-LLM 0.9 of 2024, static, its overview",
    "lmdep": "LMDeploy 0.2 of 2024, static",
    "dstack": "vLLM 0.6.3, Llama 3.1 405B, static",
    "anl": "vLLM and TensorRT-LLM of 2024, static",
    "xjd": "llama.cpp, one stream",
}


def public_rows() -> pandas.DataFrame:
    """The measurements. Tokens a second of a wave follow from its two times."""
    rows = pandas.read_csv(PUBLIC)
    rows["tpot_seconds"], rows["ttft_seconds"] = rows["tpot_ms"] / 1e3, rows["ttft_ms"] / 1e3
    seconds = rows["ttft_seconds"] + (rows["output_tokens"] - 1) * rows["tpot_seconds"]
    wave = rows["concurrent_requests"] * rows["output_tokens"] / seconds
    rows["output_tokens_per_second"] = rows["output_tokens_per_second"].where(rows["load"] != "wave", wave)
    return rows


def compare(rows: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    """One line for each row and figure: measured, predicted, error, and the band that `size` prints. Raises ValueError
    where a row is refused."""
    per_replica = (rows["concurrent_requests"] / rows["n_replicas"]).to_numpy()
    given = {name: rows[name].to_numpy() for name in DEFAULTS if name in rows}
    given["context_tokens"] = (rows["input_tokens"] + rows["output_tokens"]).to_numpy()
    given["concurrent_requests"] = numpy.ceil(per_replica)
    points = complete(given, len(rows), catalog)
    refused = [f"{name}: {error}" for name, error in zip(rows["id"], points.errors, strict=True) if error]
    if refused:
        raise ValueError("rows that are refused:\n" + "\n".join(refused))
    wave = (rows["load"] == "wave").to_numpy()
    waits = numpy.where(wave, HALF_OF_WAVE, points.values["wait_factor"])
    values = deployment({**points.values, "wait_factor": waits})
    predicted = {name: values[name] for name, _ in FIGURES.values()}
    predicted["output_tokens_per_second"] = predicted["output_tokens_per_second"] * numpy.minimum(
        rows["n_replicas"], rows["concurrent_requests"]
    )
    static = (rows["load"] == "static").to_numpy()
    for name, column in _of_batch(values, rows).items():
        predicted[name] = numpy.where(static, column, predicted[name])
    about = rows[["id", "source", "quality", "load", "gpu"]]
    scopes = [SPEED_SCOPES[int(scope)] for scope in values["speed_scope"]]
    keys = numpy.array([_key(*names) for names in zip(points.names, scopes, strict=True)])
    return lines_of(
        about, {name: rows[name].to_numpy() for name, _ in FIGURES.values()}, predicted, {**values, "band": keys}
    )


def _key(names: Resolved, scope: Scope) -> str:
    """The name of the band in force, as in speed_bands.py."""
    band = names.speed.drawn_band("tpot", scope, model_kind(names.model), names.engine.engine, names.gpu)
    if band.generation:
        return f"generation {band.generation} {band.kind}"
    return " ".join(filter(None, (band.scope, band.engine, band.gpu or band.kind)))


def lines_of(
    about: pandas.DataFrame, seen: Mapping[str, Floats], predicted: Mapping[str, Floats], values: Mapping[str, Floats]
) -> pandas.DataFrame:
    """A line for each row of `about` and each figure that was measured."""
    parts = []
    for figure, (name, label) in FIGURES.items():
        part = about.assign(
            figure=label,
            moe=values["n_experts"] > 0,
            kind=numpy.array(MODEL_KINDS)[values["speed_kind"].astype(int) - 1],
            scope=numpy.array(SPEED_SCOPES)[values["speed_scope"].astype(int)],
            band=values["band"],
            measured=seen[name],
            predicted=predicted[name],
            low=values[f"{figure}_band_low"],
            high=values[f"{figure}_band_high"],
        )
        parts.append(part[part["measured"].notna()])
    lines = pandas.concat(parts, ignore_index=True)
    lines["error"] = lines["predicted"] / lines["measured"] - 1
    lines["ratio"] = lines["measured"] / lines["predicted"]
    lines["inside"] = (lines["ratio"] >= lines["low"]) & (lines["ratio"] <= lines["high"])
    return lines


def _of_batch(values: Columns, rows: pandas.DataFrame) -> Columns:
    """A static batch: all of its prompts in one prefill, then one step for each further token."""
    batch = rows["concurrent_requests"].to_numpy(float)
    values = {
        **values,
        "batch_requests": batch,
        "concurrent_requests": batch,
        "output_tokens": rows["output_tokens"].to_numpy(),
    }
    values["untouched_fraction"] = speed.untouched_fraction.of(values)
    together = {name: batch * values[name] for name in ("input_tokens", "prompt_attention_flops")}
    times = {
        "tpot_seconds": speed.step_seconds.of(values),
        "ttft_seconds": speed.prefill_seconds.of({**values, **together}),
    }
    return {**times, "output_tokens_per_second": speed.output_tokens_per_second.of({**values, **times})}


def summary(lines: pandas.DataFrame) -> str:
    """Median size of the error, its bias (median) and what nine of ten are below, in percent; "" without runs."""
    error = 100 * lines["error"]
    return f"{error.abs().median():.0f} ({error.median():+.0f}; {error.abs().quantile(0.9):.0f})" if len(lines) else ""


def errors_by_publisher(catalog: Catalog) -> list[str]:
    """Lines of a table: errors of the runs outside the fit, first builds and llama.cpp aside, by who published them."""
    lines = compare(public_rows(), catalog)
    lines = lines[~lines["source"].isin([FIRST_BUILDS, "xjd"])]
    labels = [label for _, label in FIGURES.values()]
    out = []
    for name, part in lines.groupby(lines["source"].map(PUBLISHER).fillna("others, outside")):
        cells = [_summary_to_tenths(part[part["figure"] == label]) for label in labels]
        out.append(f"| {name} | {part['id'].nunique()} | {' | '.join(cells)} |")
    return out


def _summary_to_tenths(lines: pandas.DataFrame) -> str:
    error = 100 * lines["error"]
    return f"{error.abs().median():.1f} ({error.median():+.0f}; {error.abs().quantile(0.9):.0f})"


def served(catalog: Catalog) -> pandas.DataFrame:
    """Lines of all runs outside the fit, as they are served: static batches aside."""
    lines = compare(public_rows(), catalog)
    lines = lines[lines["load"] != "static"].reset_index(drop=True)
    early = lines["source"] == FIRST_BUILDS
    return lines.assign(
        scope=lines["scope"].mask(early, "first builds"), band=lines["band"].mask(early, "first builds")
    )


def band_shares(lines: pandas.DataFrame) -> pandas.DataFrame:
    """By band, kind of model and figure: the share of the runs inside the printed band."""
    columns = ["scope", "band", "kind", "figure"]
    rows = [
        (*cast(tuple[str, ...], key), len(part), part["inside"].mean(), part["low"].iloc[0], part["high"].iloc[0])
        for key, part in lines.groupby(columns, sort=False)
    ]
    table = pandas.DataFrame(rows, columns=[*columns, "runs", "inside", "low", "high"])
    return table.sort_values(["scope", "band", "kind"], kind="stable")


def section(catalog: Catalog) -> list[str]:
    """Lines of docs/speed.md."""
    rows = public_rows()
    lines = compare(rows, catalog)
    labels = [label for _, label in FIGURES.values()]
    out = [
        "## Data that took no part in the fit",
        "",
        f"{len(rows)} public measurements of {rows['source'].nunique()} sources, in `tests/data/measured/{PUBLIC.name}`"
        " (at most 60 of a source, by a fixed stride). Many are of engines of 2024, older than those of the fit.",
        "Runs as they are served are compared with what `size` prints; of waves, where all requests start together,"
        " half of the others' prompts come before one's own; static batches, without a scheduler, with one step and"
        " with one prefill of all prompts. Each cell: median error, in brackets the bias and what nine of ten are"
        " below, in percent. Stated: A is everything that matters, B is not (versions, arguments, loads).",
        "The first builds of InferenceX by token position are slow: MiniMax-M2.5 on 8 H200 (4 requests, 1,024 tokens)"
        " took 477 ms and then 13.6 ms a token there, and 106 and 8.0 ms among the runs of the fit (vLLM 0.18).",
        "",
        "| source | GPU | stated | band | runs | " + " | ".join(labels) + " |",
        "| --- | --- | --- | --- | ---: |" + " --- |" * len(labels),
    ]
    for source, name in SOURCES.items():
        mine = lines[lines["source"] == source]
        few = (mine["gpu"].map(mine.groupby("gpu")["id"].nunique()) < FEW) & (mine["gpu"].nunique() > 1)
        for (gpu, scope), part in mine.groupby([mine["gpu"].mask(few, "single GPUs"), "scope"]):
            cells = [summary(part[part["figure"] == label]) for label in labels]
            run_facts = f"{part['quality'].iloc[0]} | {scope} | {part['id'].nunique()}"
            out.append(f"| {name} | {gpu} | {run_facts} | {' | '.join(cells)} |")
    lines = served(catalog)
    shares = band_shares(lines)
    short = [
        f"{b.band}, {b.kind}, {b.figure} ({b.runs} runs: {100 * b.inside:.0f} %)"
        for b in tuples(shares[shares["inside"] < HELD])
    ]
    out += [
        "",
        "Of these runs, static batches aside, by band and kind of model: the share inside. The bands of generations, of"
        " others, of ranks and of stages are widened until they hold 80 %, and on a GPU with runs of its own none of"
        " them is narrower than that GPU's, nor, where no run was of a kind of model on a GPU, that of ranks than that"
        " of one rank there; those of GPUs with runs are of the fit's"
        " engines, of 2025 and 2026, alone, and many of these runs are of 2024. fitted: the engine was measured on this"
        " GPU with models of this kind; ranks: data-parallel attention; stages: pipeline stages or more than a node;"
        " generation: this GPU has no runs, others of its generation have; else other. The first builds of InferenceX"
        " draw no band.",
        "Sparse attention: public runs of DeepSeek-V3.2 and GLM-5.2 on 8 H200 under SGLang gave a third to a half of"
        " the predicted tokens a second; the bands reach there.",
        f"Below 80 %: {'; '.join(short)}. The first builds draw no band, nor do fewer than 10 runs.",
        "",
        "| band | models | figure | runs | inside, % | printed |",
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    out += [
        f"| {b.band} | {b.kind} | {b.figure} | {b.runs} | {100 * b.inside:.0f} | {b.low:.2f} to {b.high:.2f} |"
        for b in tuples(shares)
    ]
    return out

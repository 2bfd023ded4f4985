"""How near sheetgen comes to what engines measured and printed: predictions beside logs, in-sample and held out.

python tests/fidelity.py     writes docs/fidelity.md and docs/engines.md
"""

from __future__ import annotations

import math
import re
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy
import pandas
from fidelity_fit import engine_with, fit
from measured_rows import h100_rows, log_rows, predict, predict_tokens

from sheetgen.catalog import Catalog
from sheetgen.units import GIB

DOCS = Path(__file__).parent.parent / "docs" / "fidelity.md"
# Figure: column of the log, column of the prediction, unit in bytes (1 for counts).
FIGURES = {
    "weights": ("weights_gib_per_gpu", "loaded_weights_bytes_per_gpu", GIB),
    "activations": ("activation_peak_gib", "activation_bytes_per_gpu", GIB),
    "non-torch": ("non_torch_gib", "non_torch_bytes_per_gpu", GIB),
    "CUDA graphs": ("cuda_graph_gib", "cuda_graph_bytes_per_gpu", GIB),
    "KV pool": ("kv_pool_gib_per_gpu", "kv_pool_bytes_per_gpu", GIB),
    "KV tokens": ("kv_tokens", "kv_tokens", 1),
    "KV blocks": ("num_gpu_blocks", "printed_blocks", 1),
    "max concurrency": ("max_concurrency", "max_concurrency", 1),
}
BYTES = ("weights", "activations", "non-torch", "CUDA graphs", "KV pool")
OF_LOGGED_STAGE = ("activation_bytes_per_gpu", "kv_pool_bytes_per_gpu")
BANDED = {"weights": True, "activations": False, "non-torch": False, "KV pool": False}  # relative?
BAND_SHARE, FEWEST_ROWS = 0.8, 0.75
TOKENS_WITHIN = 0.01
SHARED_WITH_HOST = ("nvidia-gb10-dgx-spark-128gb",)


def compare(rows: pandas.DataFrame, seen: pandas.DataFrame) -> pandas.DataFrame:
    """One line a row and figure: what was logged, what is predicted, error (predicted less logged), relative error.

    The runs with pipeline stages logged the memory of a stage without the output head: there activations and pool
    are those of such a stage. Tokens, blocks and concurrency follow from the smallest stage, and are compared so.
    """
    seen = seen.assign(printed_blocks=numpy.floor(seen["n_kv_blocks"] / seen["n_kv_groups"]))
    staged = rows["pipeline_parallel_size"].fillna(1) > 1
    parts = []
    for figure, (logged, predicted, unit) in FIGURES.items():
        if logged not in rows:
            continue
        ours = seen[predicted] / unit
        if predicted in OF_LOGGED_STAGE:
            ours = ours.where(~staged, seen[f"headless_{predicted}"] / unit)
        part = rows[["id", "model_id", "family", "gpu_id", "system"]].assign(
            figure=figure, logged=rows[logged].astype(float), predicted=ours.astype(float)
        )
        parts.append(part[part["logged"].notna()])
    lines = pandas.concat(parts, ignore_index=True)
    lines["error"] = lines["predicted"] - lines["logged"]
    lines["relative"] = lines["error"] / lines["logged"]
    return lines


def _described(rows: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    """Rows with the catalog's model and GPU, the family of the model, and the system that ran them."""
    unused = rows["use"] == "none" if "use" in rows else pandas.Series(False, rows.index)
    models = ["" if no else catalog.model(name).id for name, no in zip(rows["model"], unused, strict=True)]
    families = [re.match(r"[a-z]+", name)[0] if name else "" for name in models]  # type: ignore[index]
    gpus = [catalog.gpu(name).id for name in rows["gpu"]]
    versions = rows["engine_version"].map(lambda v: _version_group(v) if v == v and v else "not stated")
    system = rows["engine"].where(rows["engine"] != "vllm", "vllm " + versions)
    return rows.assign(model_id=models, family=families, gpu_id=gpus, system=system)


def _version_group(version: str) -> str:
    minor = int(version.split(".")[1])
    for first, name in (
        (29, "0.29 and later"), (25, "0.25 to 0.28"), (20, "0.20 to 0.24"), (17, "0.17 to 0.19"),
        (11, "0.11 to 0.16"), (9, "0.9 and 0.10"),
    ):  # fmt: skip
        if minor >= first:
            return name
    return "0.6 to 0.8"


@dataclass(frozen=True)
class Fidelity:
    """All comparisons, with one set of catalogs. Everything is worked out once, when it is asked for."""

    catalog: Catalog

    @cached_property
    def h100(self) -> pandas.DataFrame:
        return _described(h100_rows(), self.catalog)

    @cached_property
    def logs(self) -> pandas.DataFrame:
        return _described(log_rows(), self.catalog)

    @cached_property
    def constants(self) -> dict[str, float]:
        """The fit on all runs."""
        return fit(self.h100, self.catalog)

    @cached_property
    def in_sample(self) -> pandas.DataFrame:
        return compare(self.h100, predict(self.h100, self.catalog))

    @cached_property
    def held_out(self) -> pandas.DataFrame:
        """Each model's runs with constants fitted without that model."""
        parts = []
        with tempfile.TemporaryDirectory() as folder:
            for model in self.h100["model_id"].unique():
                rows = self.h100[self.h100["model_id"] == model]
                without = fit(self.h100[self.h100["model_id"] != model], self.catalog)
                catalog = engine_with(without, Path(folder) / model, self.catalog)
                parts.append(compare(rows, predict(rows, catalog)))
        return pandas.concat(parts, ignore_index=True)

    @cached_property
    def smallest_stage(self) -> pandas.DataFrame:
        """Runs with pipeline stages: the pool that the logged tokens take, and ours on the stage with the head."""
        rows = self.h100[self.h100["pipeline_parallel_size"] > 1]
        seen = predict(rows, self.catalog)
        logged = rows["kv_tokens"] * seen["kv_bytes_per_token_per_gpu"] / GIB
        ours = seen["kv_pool_bytes_per_gpu"] / GIB
        return rows[["id"]].assign(logged=logged, predicted=ours, relative=ours / logged - 1)

    @cached_property
    def tokens(self) -> pandas.DataFrame:
        """Tokens that sheetgen prints for the pools of the public logs."""
        rows = self.logs[self.logs["use"].isin(("tokens", "both"))]
        seen = predict_tokens(rows, self.catalog)
        lines = rows[["id", "system", "family", "gpu_id", "notes", "kv_tokens"]].assign(predicted=seen["kv_tokens"])
        return lines.assign(relative=lines["predicted"] / lines["kv_tokens"] - 1)

    @cached_property
    def pools(self) -> pandas.DataFrame:
        """Weights, activations, non-torch memory and pool of the logs whose arguments are known."""
        rows = self.logs[self.logs["use"].isin(("pool", "both", "whole"))]
        seen = predict(rows, self.catalog)
        # Where the log prints tokens and no pool, the pool that they take.
        of_tokens = rows["kv_tokens"] * seen["kv_pool_bytes_per_gpu"] / seen["kv_tokens"] / GIB
        pool = rows["kv_pool_gib_per_gpu"].where(rows["use"] != "whole", of_tokens)
        lines = compare(rows.assign(kv_pool_gib_per_gpu=pool), seen)
        return lines[lines["figure"].isin(BANDED)]

    @cached_property
    def misses(self) -> pandas.DataFrame:
        return self.tokens[self.tokens["relative"].abs() > TOKENS_WITHIN]


@dataclass(frozen=True)
class Band:
    """Where a measured figure lies around the prediction (measured less predicted): 80 % of models, by weight."""

    low: float
    high: float
    n_rows: int
    n_models: int
    held: float  # share of rows inside


def bands(found: Fidelity) -> dict[str, dict[str, Band]]:
    """For each figure the error bands in two scopes: `like` the calibration runs (held out), and `other` logs.

    Bytes for pool, activations and non-torch; a share of the prediction for weights. But for weights, GPUs whose
    memory is the host's are left out: what is free there moves by gigabytes with all that runs on the machine.
    """
    shared = found.pools["gpu_id"].isin(SHARED_WITH_HOST) & (found.pools["figure"] != "weights")
    scopes = {"like": found.held_out, "other": found.pools[~shared]}
    return {
        scope: {
            figure: band(lines[lines["figure"] == figure], relative=relative) for figure, relative in BANDED.items()
        }
        for scope, lines in scopes.items()
    }


def band(lines: pandas.DataFrame, *, relative: bool) -> Band:
    """The shortest interval that holds 80 % of the models (one with many rows counts once) and 75 % of the rows,
    and the prediction itself."""
    short = lines["logged"] - lines["predicted"]
    errors = (short / lines["predicted"] if relative else short * GIB).to_numpy()
    weights = (1 / lines.groupby("model_id")["id"].transform("count")).to_numpy()
    order = numpy.argsort(errors, kind="stable")
    errors, weights = errors[order], weights[order]
    before = numpy.concatenate([[0], numpy.cumsum(weights)])
    wanted, fewest = BAND_SHARE * before[-1] - 1e-9, math.ceil(FEWEST_ROWS * len(errors))
    found = []
    for first in range(len(errors)):
        last = max(int(numpy.searchsorted(before, before[first] + wanted)) - 1, first + fewest - 1)
        if last < len(errors):
            found.append((errors[last] - errors[first], errors[first], errors[last]))
    _, low, high = min(found)
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    held = float(numpy.mean((errors >= low) & (errors <= high)))
    return Band(low, high, len(errors), int(lines["model_id"].nunique()), held)


def summary(errors: pandas.Series) -> dict[str, float]:
    """Bias (mean), median of the size, mean of the size, worst."""
    size = errors.abs()
    return {
        "n": len(errors),
        "bias": errors.mean(),
        "median": size.median(),
        "mae": size.mean(),
        "worst": errors.iloc[size.argmax()],
    }


if __name__ == "__main__":
    from engines_page import ENGINES_DOCS, engines_document
    from fidelity_page import document

    of_now = Fidelity(Catalog())
    DOCS.write_text(document(of_now), encoding="utf-8")
    ENGINES_DOCS.write_text(engines_document(of_now), encoding="utf-8")

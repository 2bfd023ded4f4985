"""How near sheetgen comes to what engines measured and printed: predictions beside logs, in-sample and held out.

python tests/fidelity.py     writes docs/fidelity.md and docs/engines.md
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy
import pandas
from fidelity_fit import engine_with, fit
from fidelity_left_out import catalog_without, moves, source_of
from measured_rows import h100_rows, log_rows, predict, predict_tokens

from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import load_engine, release_of
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
BAND_SHARE, FEWEST_GROUPS, FEWEST_ROWS = 0.8, 4, 8
WIDENING_STEPS = 20  # of the width
TOKENS_WITHIN = 0.01
SHOWN = "case-"  # of an id: logs shown after the constants were set, on which nothing is


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


def _tokens(logs: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    rows = logs[logs["use"].isin(("tokens", "both"))]
    if rows.empty:
        return pandas.DataFrame()
    columns = ["id", "system", "family", "gpu_id", "notes", "kv_tokens"]
    seen = predict_tokens(rows, catalog)["kv_tokens"]
    return rows[columns].assign(predicted=seen, relative=seen / rows["kv_tokens"] - 1)


def _pools(logs: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    rows = logs[logs["use"].isin(("pool", "both", "whole"))]
    if rows.empty:
        return pandas.DataFrame()
    seen = predict(rows, catalog)
    # Where the log prints tokens and no pool, the pool that they take.
    of_tokens = rows["kv_tokens"] * seen["kv_pool_bytes_per_gpu"] / seen["kv_tokens"] / GIB
    pool = rows["kv_pool_gib_per_gpu"].where(rows["use"] != "whole", of_tokens)
    lines = compare(rows.assign(kv_pool_gib_per_gpu=pool), seen)
    source = lines["id"].map(rows.set_index("id")["source"]).map(source_of)
    return lines[lines["figure"].isin(BANDED)].assign(source=source)


def _fits(logs: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    """True where the pool that is predicted holds one request of the longest length."""
    rows = logs[logs["use"].isin(("pool", "both", "whole"))]
    if rows.empty:
        return pandas.DataFrame()
    # The errors of a start ask for one request of max_model_len, whichever way the tokens are counted.
    return rows[["id"]].assign(fits=predict(rows, catalog)["max_concurrency"] >= 1)


def _described(rows: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    """Rows with the catalog's model and GPU, the family of the model, and the system that ran them."""
    unused = rows["use"] == "none" if "use" in rows else pandas.Series(False, rows.index)
    models = ["" if no else catalog.model(name).entry_id for name, no in zip(rows["model"], unused, strict=True)]
    families = [re.match(r"[a-z]+", name)[0] if name else "" for name in models]  # type: ignore[index]
    gpus = [catalog.gpu(name).id for name in rows["gpu"]]
    versions = rows["engine_version"].map(lambda v: _version_group(v) if v == v and v else "not stated")
    system = rows["engine"].where(rows["engine"] != "vllm", "vllm " + versions)
    return rows.assign(model_id=models, family=families, gpu_id=gpus, system=system)


def _version_group(version: str) -> str:
    minor = int(version.split(".")[1])
    for first, name in (
        (29, "0.29 and later"),
        (25, "0.25 to 0.28"),
        (20, "0.20 to 0.24"),
        (17, "0.17 to 0.19"),
        (11, "0.11 to 0.16"),
        (9, "0.9 and 0.10"),
    ):
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
    def releases(self) -> pandas.Series:
        """The engine's version by the id of a run or log."""
        return pandas.concat([self.h100, self.logs]).set_index("id")["engine_version"]

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
        return _tokens(self.logs, self.catalog)

    @cached_property
    def pools(self) -> pandas.DataFrame:
        """Weights, activations, non-torch memory and pool of the logs whose arguments are known."""
        return _pools(self.logs, self.catalog)

    @cached_property
    def left_out(self) -> tuple[pandas.DataFrame, pandas.DataFrame]:
        """Tokens and pools again, each source's logs with all that was calibrated on logs set without that source."""
        return self._each_without_its_source(_tokens, self.tokens), self._each_without_its_source(_pools, self.pools)

    @cached_property
    def left_out_verdicts(self) -> pandas.DataFrame:
        """The verdicts on each log's start, its source left out likewise: true where one request is predicted to
        fit."""
        return self._each_without_its_source(_fits, _fits(self.logs, self.catalog))

    def _each_without_its_source(
        self, compared: Callable[[pandas.DataFrame, Catalog], pandas.DataFrame], whole: pandas.DataFrame
    ) -> pandas.DataFrame:
        source = self.logs["source"].map(source_of)
        with tempfile.TemporaryDirectory() as folder:
            for i, move in enumerate(moves(self.logs, sorted(set(source)))):
                rows = self.logs[source == move]
                catalog = catalog_without(move, self.logs, Path(folder) / str(i), self.catalog)
                whole = pandas.concat([whole[~whole["id"].isin(rows["id"])], compared(rows, catalog)])
        return whole.sort_index()

    @cached_property
    def misses(self) -> pandas.DataFrame:
        return self.tokens[self.tokens["relative"].abs() > TOKENS_WITHIN]


@dataclass(frozen=True)
class Band:
    """The place of a measured figure around the prediction (measured less predicted).

    inside: rows that a band holds which was made without their model (of the runs) or source (of the logs), and as much
    wider; plain: the same before widening.
    """

    low: float
    high: float
    n_rows: int
    n_groups: int
    wider: float  # at each end, as a share of the width
    plain: int
    inside: int
    releases: tuple[str, str]  # the oldest and the newest


def bands(fidelity: Fidelity) -> dict[str, dict[str, Band]]:
    """For each figure the error bands in three scopes: `calibrated`, the runs, each predicted without its model; of all
    other logs of vLLM that name their release, each predicted without its source, `shared`, on GPUs whose memory is
    the host's, too (what is free there moves by gigabytes with all that runs on the machine), `cards`, on those without
    HBM, and `other`.

    Bytes for pool, activations and non-torch; a share of the prediction for weights. None where too few rows print it.
    """
    return {
        scope: {
            figure: band(part, fidelity.releases, relative=relative)
            for figure, relative in BANDED.items()
            if (part := rows[rows["figure"] == figure])["source"].nunique() >= FEWEST_GROUPS
            and len(part) >= FEWEST_ROWS
        }
        for scope, rows in _by_scope(fidelity, fidelity.left_out[1]).items()
    }


def _by_scope(fidelity: Fidelity, lines: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """The runs, and of the logs those that bands are made of, by scope."""
    is_known = (fidelity.logs["engine"] == "vllm") & fidelity.logs["engine_version"].notna()
    lines = lines[lines["id"].isin(fidelity.logs["id"][is_known]) & ~lines["id"].str.startswith(SHOWN)]
    engine = load_engine(fidelity.catalog, "vllm")
    scope = lines["gpu_id"].map(lambda name: engine.scope_elsewhere(fidelity.catalog.gpu(name)))
    runs = fidelity.held_out.assign(source=fidelity.held_out["model_id"])
    return {"calibrated": runs, **{name: lines[scope == name] for name in ("shared", "cards", "other")}}


def inside_of_bands(fidelity: Fidelity) -> pandas.DataFrame:
    """Runs and logs whose pool is banded, and whether the band of their scope holds it that was made without their
    model or source."""
    parts = []
    made = bands(fidelity)
    for scope, lines in _by_scope(fidelity, fidelity.left_out[1]).items():
        pools = lines[lines["figure"] == "KV pool"]
        parts.append(pools.assign(inside=_held(_errors(pools, relative=False), made[scope]["KV pool"].wider)))
    return pandas.concat(parts, ignore_index=True)


def band(lines: pandas.DataFrame, releases: pandas.Series, *, relative: bool) -> Band:
    """The interval of most models, made wider by the least share of its width at which 80 % of the rows lie in the band
    that is made without their source."""
    errors = _errors(lines, relative=relative)
    steps = (step / WIDENING_STEPS for step in itertools.count())
    wider = next(share for share in steps if _held(errors, share).sum() >= round(BAND_SHARE * len(errors)))
    low, high = _wider(*interval(errors), wider)
    seen = sorted(set(lines["id"].map(releases)), key=lambda text: release_of(text) or ())
    plain, inside = (int(_held(errors, share).sum()) for share in (0, wider))
    return Band(low, high, len(errors), errors["source"].nunique(), wider, plain, inside, (seen[0], seen[-1]))


def _errors(lines: pandas.DataFrame, *, relative: bool) -> pandas.DataFrame:
    short = lines["logged"] - lines["predicted"]
    return lines[["model_id", "source"]].assign(error=short / lines["predicted"] if relative else short * GIB)


def _held(errors: pandas.DataFrame, wider: float) -> numpy.ndarray:
    """Of each row whether the band holds it that is made without its source, and so much wider."""
    others = {
        source: _wider(*interval(errors[errors["source"] != source]), wider) for source in errors["source"].unique()
    }
    ends = [others[source] for source in errors["source"]]
    return numpy.array([low <= e <= high for e, (low, high) in zip(errors["error"], ends, strict=True)], bool)


def _wider(low: float, high: float, share: float) -> tuple[float, float]:
    return low - share * (high - low), high + share * (high - low)


def interval(lines: pandas.DataFrame) -> tuple[float, float]:
    """From the tenth to the ninetieth of a hundred models (one with many rows counts once), and the prediction itself.

    Tails of one size: the shortest interval jumps from side to side with a single row of so few.
    """
    weights = (1 / lines.groupby("model_id")["error"].transform("count")).to_numpy()
    errors = lines["error"].to_numpy()
    order = numpy.argsort(errors, kind="stable")
    errors, before = errors[order], numpy.cumsum(weights[order])
    tail = (1 - BAND_SHARE) / 2 * before[-1]
    low, high = (errors[numpy.searchsorted(before, share + 1e-9)] for share in (tail, before[-1] - tail - 2e-9))
    return min(float(low), 0.0), max(float(high), 0.0)


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

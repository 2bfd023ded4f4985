"""The bands of catalogs/speed.yaml, drawn from runs that were predicted without their configuration; and how far a
chance that follows from them is right (docs/speed.md).

A level of confidence multiplies both times of an answer, so that the ends of a GPU's bands are those of both times
together, and what is said of them holds where both have a limit.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import cast

import numpy
import pandas
from measured_rows import Columns, Flags, Floats
from speed_fit import (
    FIGURES,
    INNER_FOLDS,
    OTHERS_WEIGHT,
    Runs,
    Structure,
    by_other_hands,
    measured,
    other_cells,
    parts_of,
    trials,
)

from sheetgen.catalog.engines import MODEL_KINDS, SpeedBand

TIMES = ("tpot", "ttft")  # the figures that a chance is of
RATE = "output_tokens_per_second"
TENTH = (0.1, 0.9)
END_Z = NormalDist().inv_cdf(TENTH[1])
MANY_RUNS = 20  # of a kind of model in a cell: fewer, of one configuration, do not make it a measured one
RUNS_OF_BAND = 100  # of a GPU, or of a generation and a kind of model, with a band of its own
MANY_CONFIGURATIONS = 20  # of a generation and kind: fewer take those of all kinds
FEW_RUNS = 10  # outside the fit: fewer draw no band
LEVELS, HALF = numpy.round(numpy.arange(0.05, 0.951, 0.01), 2), 0.5
FIFTHS = 5
HIGH_SHARES = numpy.arange(0.6, 1.0001, 0.005)  # of a figure's errors, where its band's high end may be
ROUNDING = 1e-12
WITHIN, WITHIN_KIND, TOO_MUCH = 0.1, 0.15, 0.03  # of what was said: by fifth and GPU, by kind of model, in all
# Public runs of DeepSeek-V3.2 and GLM-5.2 on 8 H200 under SGLang gave a third to a half of the predicted tokens.
REPORTED = {
    (RATE, "other sparse"): [(math.log(0.33), 0.0)],
    ("tpot", "other sparse"): [(0.0, math.log(3))],
}
RANKS, STAGES = "ranks any", "stages any"
Key = str  # of a band: its scope, and the GPU, the generation and kind, or the kind that it is of
Ends = dict[str, tuple[float, float]]  # by figure, logarithms of factors
Bands = dict[Key, Ends]


# Errors of runs ---------------------------------------------------------------------------------------


def keys_of(runs: Runs) -> list[Key]:
    """The band that the program judges each run by."""
    rows = runs.rows
    of_gpu = rows.groupby("gpu_id")["id"].transform("size") >= RUNS_OF_BAND
    of_kind = rows.groupby(["generation", "kind"])["id"].transform("size") >= RUNS_OF_BAND
    is_measured = rows.assign(cell=runs.cell).groupby(["cell", "kind"])["id"].transform("size") >= MANY_RUNS
    ranks = (rows["data_parallel_size"] > 1) & rows["is_moe"]
    keys: list[Key] = []
    names = zip(*(rows[name] for name in ("engine", "gpu_id", "generation", "kind")), strict=True)
    for i, (engine, gpu, generation, kind) in enumerate(names):
        if ranks[i]:
            keys.append("ranks any")
        elif is_measured[i] and of_gpu[i]:
            keys.append(f"fitted {gpu}")
        elif is_measured[i] and of_kind[i]:
            keys.append(f"generation {generation} {kind}")
        else:
            keys.append(f"other {engine} {kind}")
    return keys


def error_table(runs: Runs, predicted: Mapping[str, Floats]) -> pandas.DataFrame:
    """A line a run: what it is of, its band's key, and by figure the logarithm of measured / predicted."""
    seen = measured(runs)
    table = runs.rows[["configuration", "engine", "generation", "kind", "gpu_id"]].copy()
    table["key"], table["counts"] = keys_of(runs), numpy.where(by_other_hands(runs), OTHERS_WEIGHT, 1)
    for figure, (name, _) in FIGURES.items():
        table[figure] = numpy.log(seen[name] / predicted[name])
    return table


def weights_of(table: pandas.DataFrame) -> Floats:
    """By run: each configuration weighs one, of other hands what its times per token count in the fit."""
    size = table.groupby("configuration")["kind"].transform("size")
    return (table.get("counts", 1) / size).to_numpy()


# Drawing bands ----------------------------------------------------------------------------------------


def quantile(values: Floats, weights: Floats, level: float) -> float:
    """The least of the values that a share of `level` of the weights does not exceed."""
    order = numpy.argsort(values, kind="stable")
    reached = numpy.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(numpy.searchsorted(reached, level - 1e-12)), len(values) - 1)])


def _shares_below(values: Floats, weights: Floats) -> Floats:
    """By run the share of the weights whose values do not exceed its own."""
    order, below = numpy.argsort(values, kind="stable"), numpy.empty(len(values))
    below[order] = numpy.cumsum(weights[order]) / weights.sum()
    return below


def ends_of(table: pandas.DataFrame) -> Ends:
    """The ends of the bands of both times together, each at the same share of its own errors; and of tokens a second
    alone.

    Low: a tenth of the configurations have both times below. High: the least share at which, over the levels from one
    half up, as much happens as is said. Both as they hold for one configuration more than were seen (conformal
    prediction): each level is one of n + 1.
    """
    weights, n = weights_of(table), table["configuration"].nunique()
    more = (n + 1) / n
    below = [_shares_below(table[figure].to_numpy(), weights) for figure in TIMES]

    def at(figure: str, share: float) -> float:
        return quantile(table[figure].to_numpy(), weights, share)

    def highs_at(share: float) -> dict[str, float]:
        return {figure: max(0.0, at(figure, share)) for figure in TIMES}

    def as_much_happens(share: float) -> bool:
        highs = highs_at(share)
        held = within([table[figure].to_numpy() for figure in TIMES], [(0, highs[figure]) for figure in TIMES])
        happened = weights @ held[:, LEVELS >= HALF].mean(axis=1) / weights.sum()
        return bool(happened >= more * LEVELS[LEVELS >= HALF].mean())

    low_share = quantile(numpy.max(below, axis=0), weights, TENTH[0] * more)
    lows = {figure: min(0.0, at(figure, low_share)) for figure in TIMES}
    least = bisect.bisect_left(HIGH_SHARES, True, key=as_much_happens)  # wider bands hold more
    highs = highs_at(HIGH_SHARES[min(least, len(HIGH_SHARES) - 1)])
    ends = {figure: (lows[figure], highs[figure]) for figure in TIMES}
    low, high = (at(RATE, min(1.0, level * more)) for level in TENTH)
    return {**ends, RATE: (min(0.0, low), max(0.0, high))}


def within(errors: Sequence[Floats], ends: Sequence[tuple[float | Floats, float | Floats]]) -> Flags:
    """By run and level of chance, whether all of its times were within limits that stand at this level of their bands:
    logarithms of measured / predicted, and of the ends."""
    z = numpy.array([NormalDist().inv_cdf(level) for level in LEVELS]) / END_Z
    held = numpy.ones((len(errors[0]), len(LEVELS)), bool)
    for error, (low, high) in zip(errors, ends, strict=True):
        low, high = (numpy.reshape(end, (-1, 1)) for end in (low, high))
        held &= error[:, None] <= numpy.where(z >= 0, z * high, -z * low) + ROUNDING
    return held


def holding(ratios: pandas.Series) -> tuple[float, float]:
    """The ends, logarithms, between which at least 80 % lie, a tenth on each side."""
    low, high = ratios.quantile(TENTH[0], "lower"), ratios.quantile(TENTH[1], "higher")
    return math.log(low), math.log(high)


def draw(own: pandas.DataFrame, of_cells: pandas.DataFrame, outside: pandas.DataFrame) -> Bands:
    """The bands of all scopes but that of measured points.

    own: errors of runs predicted without their configuration; of_cells: without their engine and generation of GPUs.
    outside: lines of runs that took no part in the fit, with figure, band and ratio.
    """
    of_outside = {key: part for key, part in outside.groupby(["figure", "band"])["ratio"]}
    own, of_cells = (table.dropna(subset=list(FIGURES)) for table in (own, of_cells))

    def as_wide(key: Key, parts: Sequence[pandas.DataFrame], more: pandas.DataFrame, others: Iterable[Ends]) -> Ends:
        """The ends of both times together, of some runs or, where these have few configurations, of `more`; those that
        hold 80 % of each figure of the runs; and those of other bands."""
        many = (part if part["configuration"].nunique() >= MANY_CONFIGURATIONS else more for part in parts)
        drawn = [*others, *map(ends_of, many)]
        wide: Ends = {}
        for figure, (_, label) in FIGURES.items():
            public = of_outside.get((label, key), pandas.Series(dtype=float))
            few = 1 if key == STAGES else FEW_RUNS
            ratios = [*(numpy.exp(part[figure]) for part in parts), *([public] if len(public) >= few else [])]
            ends = [ends[figure] for ends in drawn] + [holding(ratio) for ratio in ratios]
            lows, highs = zip(*ends, *REPORTED.get((figure, key), ()), strict=True)
            wide[figure] = min(0.0, *lows), max(0.0, *highs)
        return wide

    measured_gpus = own[own["key"].str.startswith("fitted ")]
    bands = {str(key): ends_of(part) for key, part in measured_gpus.groupby("key")}
    of_gpus = list(bands.values())
    for names, part in measured_gpus.groupby(["generation", "kind"]):
        names_ = cast(tuple[str, str], names)
        if len(part) >= RUNS_OF_BAND:
            key = " ".join(("generation", *names_))
            bands[key] = as_wide(key, [part], measured_gpus[measured_gpus["generation"] == names_[0]], [])

    def of_generations(kind: str) -> list[Ends]:
        return [ends for key, ends in bands.items() if key.startswith("generation ") and key.endswith(f" {kind}")]

    for kind in MODEL_KINDS:
        key, part = f"other {kind}", of_cells[of_cells["kind"] == kind]
        bands[key] = as_wide(key, [part], of_cells, of_generations(kind))
    of_all = list(bands.values())
    for names, part in of_cells.groupby(["engine", "kind"]):
        key = " ".join(("other", *cast(tuple[str, str], names)))
        if part["configuration"].nunique() >= MANY_CONFIGURATIONS:
            bands[key] = as_wide(key, [part], part, of_generations(key.split()[-1]))
    bands[RANKS] = as_wide(RANKS, [own[own["key"] == RANKS]], own, of_gpus)
    bands[STAGES] = as_wide(STAGES, [], own, [*of_all, bands[RANKS]])
    return bands


def catalog_rows(bands: Bands, of_points: Bands, n_rows: Mapping[Key, int]) -> list[SpeedBand]:
    """The rows of the catalog: factors to three digits, outwards."""
    rows = []
    for key, band in {**bands, **of_points}.items():
        scope, *names = key.split()
        more = {"kind": "any" if scope == "fitted" else names[-1]}
        if scope == "other" and len(names) > 1:
            more["engine"] = names[0]
        if scope == "fitted":
            more["gpu"] = names[0]
        if scope == "generation":
            scope, more["generation"] = "other", names[0]
        for figure, ends in band.items():
            low, high = (round(1000 * math.exp(end), 3) for end in ends)  # 330, not 329.9999
            row = {
                "figure": figure,
                "scope": scope,
                **more,
                "low": math.floor(low) / 1000,
                "high": math.ceil(high) / 1000,
            }
            rows.append(SpeedBand.model_validate({**row, "n_rows": n_rows.get(key, 0)}))
    return rows


# How far a chance is right ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Reliability:
    """Runs predicted, and judged by bands, without their configuration.

    table: their errors; held: by run and level of chance whether both times were within limits at that level; alone:
    the same of one time with a limit; ends: by figure both ends of each run's band."""

    table: pandas.DataFrame
    ends: Columns
    held: Flags
    alone: dict[str, Flags]

    @classmethod
    def of(cls, table: pandas.DataFrame, ends: Columns) -> Reliability:
        """Runs judged by the ends of their bands."""

        def held(figures: Sequence[str]) -> Flags:
            return within([table[figure].to_numpy() for figure in figures], [tuple(ends[figure]) for figure in figures])

        return cls(table, ends, held(TIMES), {figure: held([figure]) for figure in TIMES})

    def judged_again(self, table: pandas.DataFrame) -> Reliability:
        """The same bands, of other errors of the same runs."""
        return self.of(table, self.ends)

    def by_fifth(self, use: Flags | None = None, held: Flags | None = None) -> list[tuple[float, float]]:
        """For every fifth of the levels what was said and what happened, each configuration weighing one."""
        use = numpy.ones(len(self.table), bool) if use is None else numpy.asarray(use)
        weights = weights_of(self.table[use])
        happened = weights @ (self.held if held is None else held)[use] / weights.sum()
        fifth = numpy.minimum((FIFTHS * LEVELS + 1e-9).astype(int), FIFTHS - 1)
        return [(float(LEVELS[fifth == n].mean()), float(happened[fifth == n].mean())) for n in range(FIFTHS)]

    def over_all(self, use: Flags | None = None, held: Flags | None = None) -> tuple[float, float]:
        """Stated and observed shares over all levels."""
        use = numpy.ones(len(self.table), bool) if use is None else numpy.asarray(use)
        weights = weights_of(self.table[use])
        happened = (self.held if held is None else held)[use].mean(axis=1)
        return float(LEVELS.mean()), float(weights @ happened / weights.sum())

    def inside(self, figures: Sequence[str]) -> float:
        """The share of runs whose figures lie inside their bands: not all below the low ends, none above."""
        errors = self.table[list(figures)].to_numpy()
        lows, highs = (numpy.stack([self.ends[figure][end] for figure in figures], axis=1) for end in (0, 1))
        good = ~(errors < lows).all(axis=1) & (errors <= highs).all(axis=1)
        weights = weights_of(self.table)
        return float(weights @ good / weights.sum())


def agrees(level: float, happened: float, n_configurations: int) -> bool:
    """Within a tenth, as two digits have it, or inside the 90 % binomial interval for so many configurations."""
    low, high = binomial_interval(level, n_configurations)
    return round(abs(happened - level), 2) <= WITHIN or low <= happened <= high


def binomial_interval(chance: float, n: int) -> tuple[float, float]:
    """The shares of n between which nine of ten draws lie, a twentieth on each side."""
    reached, low, high = 0.0, 0, n
    for hits in range(n + 1):
        before = reached
        reached += math.comb(n, hits) * chance**hits * (1 - chance) ** (n - hits)
        low = hits if before <= 0.05 else low
        if reached >= 0.95:
            high = hits
            break
    return low / n, high / n


def _judged(parts: Iterable[tuple[pandas.DataFrame, Bands]]) -> Reliability:
    """Runs of some folds, each with bands that its runs took no part in."""
    parts = [(part.dropna(subset=list(FIGURES)), bands) for part, bands in parts]
    table = pandas.concat([part for part, _ in parts], ignore_index=True)

    def of(bands: Bands, key: Key, gpu: str, figure: str) -> tuple[float, float]:
        """As `SpeedFile.band` has it: no narrower than the GPU's own."""
        drawn = bands.get(key) or bands[f"other {key.split()[-1]}"]
        (low, high), (own_low, own_high) = (ends[figure] for ends in (drawn, bands.get(f"fitted {gpu}", drawn)))
        return min(low, own_low), max(high, own_high)

    ends = {
        figure: numpy.array(
            [of(bands, *row, figure) for part, bands in parts for row in zip(part["key"], part["gpu_id"], strict=True)]
        ).T
        for figure in FIGURES
    }
    return Reliability.of(table, ends)


def nested(
    runs: Runs, held_out: Mapping[str, Floats], chosen: Sequence[Structure], outside: pandas.DataFrame, folds: int = 8
) -> Reliability:
    """In each outer fold, bands of errors that inner folds of the other runs have, and the fold's own runs by them."""
    parts = []
    for out, structure in zip(parts_of(runs, folds), chosen, strict=False):
        within = runs.part(numpy.flatnonzero(~out))
        keys = numpy.array(keys_of(runs))[~out]
        [inner] = trials(within, [structure], INNER_FOLDS)
        own, of_cells = (
            error_table(within, predicted).assign(key=keys)
            for predicted in (inner, other_cells(within.by(structure.chunks_power)))
        )
        parts.append((error_table(runs, held_out)[out], draw(own, of_cells, outside)))
    return _judged(parts)


def crossed(runs: Runs, own: pandas.DataFrame, of_cells: pandas.DataFrame, outside: pandas.DataFrame) -> Reliability:
    """The same by folds that share their predictions: the bands of each are drawn from the errors of the others, whose
    constants saw its runs."""
    return _judged((own[out], draw(own[~out], of_cells[~out], outside)) for out in parts_of(runs, 8, seed=1))

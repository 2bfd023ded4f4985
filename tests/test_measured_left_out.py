"""How near the factors of two measured points come to runs that were left out: public runs at fixed concurrency."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy
import pytest
from speed_fit import Runs, serving_runs

from sheetgen.catalog import Catalog
from sheetgen.question.measurements import both_factors

Errors = dict[str, numpy.ndarray]
MOST_PAIRS = 6  # of a run that is left out


@pytest.fixture(scope="module")
def errors() -> Errors:
    """By way of setting predictions right, the size of the error of each run that was left out, in percent."""
    errors: dict[str, list[float]] = {"one point": [], "mean of two": [], "two constants": []}
    for way, error in _left_out(serving_runs(Catalog())):
        errors[way].append(100 * abs(error))
    return {way: numpy.array(sizes) for way, sizes in errors.items()}


def _left_out(runs: Runs) -> Iterator[tuple[str, float]]:
    """The relative error of each run of a configuration, predicted from two others at different concurrency: of up to
    so many pairs, drawn by a seed."""
    values, draw = runs.values, numpy.random.default_rng(0)
    predicted, measured = values["tpot_seconds"], runs.rows["tpot_ms"].to_numpy() / 1000
    added = values["tpot_residual"] * values["request_step_seconds"] * values["batch_requests"]
    at_once = runs.rows["concurrent_requests"].to_numpy()
    for _, group in runs.rows.groupby("configuration"):
        places = group.index.to_numpy()
        for left in places:
            others = places[places != left]
            pairs = [pair for pair in combinations(others, 2) if at_once[pair[0]] != at_once[pair[1]]]
            for i in draw.permutation(len(pairs))[:MOST_PAIRS]:
                two = numpy.array(pairs[i])
                ratios, share = measured[two] / predicted[two], predicted[left] / measured[left]
                whole, request = both_factors(predicted[two] - added[two], added[two], measured[two])
                yield "one point", ratios[0] * share - 1
                yield "mean of two", numpy.exp(numpy.log(ratios).mean()) * share - 1
                yield "two constants", whole * (predicted[left] + (request - 1) * added[left]) / measured[left] - 1


def test_two_constants_are_nearer_than_one_factor(errors: Errors) -> None:
    """As docs/how-to/measure-it.md says."""
    medians = {way: float(numpy.median(sizes)) for way, sizes in errors.items()}
    worst = {way: float(numpy.quantile(sizes, 0.9)) for way, sizes in errors.items()}
    for figures in (medians, worst):
        assert figures["two constants"] < figures["mean of two"] < figures["one point"]
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "measure-it.md").read_text(encoding="utf-8")
    words = f"{medians['one point']:.0f} % off (median; nine of ten within {worst['one point']:.0f} %)"
    assert words in page, words
    words = f"{medians['two constants']:.0f} % ({worst['two constants']:.0f} %)"
    assert words in page, words

"""Predictions beside measured runs and public logs: fails when they get worse than they are."""

from __future__ import annotations

import copy
from pathlib import Path

import pandas
import pytest
import yaml
from engines_page import ENGINES_DOCS, engines_document
from fidelity import BAND_SHARE, BANDED, DOCS, TOKENS_WITHIN, Fidelity, bands, summary
from fidelity_fit import shipped
from fidelity_left_out import refit, stated
from fidelity_page import document, reasons, worst
from fidelity_scoreboard import scores
from measured_rows import log_rows

from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import load_engine
from sheetgen.units import GIB

EXPLAINED = 20  # characters: a reason, not a word
# What is promised of the held-out runs on H100: mean size of the relative error.
PROMISED = {"weights": 0.005, "KV pool": 0.006, "KV tokens": 0.015, "max concurrency": 0.010}
# What was reached, and a little slack: a change that costs more has to be meant.
REACHED = {
    "weights": 0.001,
    "activations": 0.012,
    "KV pool": 0.002,
    "KV tokens": 0.002,
    "KV blocks": 0.002,
    "max concurrency": 0.002,
}
ROW_OFF = (0.03, 0.2)  # no row is off by both this share and this many GiB
TOKENS_SHARE, TOKENS_MISSES, TOKENS_MEDIAN = 0.95, 5, 0.0006
POOL_MEDIAN = 0.03
BAND_HOLDS = (0.75, 0.87)
WIDEST = 0.25  # of its width: what bands of so few logs were found to lack
MISSED_ON_BOARD = {"called fitting and refused": 1}
SET_BY_HAND = 0.021  # GiB: TensorRT-LLM's 1.63 stands between its runs and a laptop's


@pytest.fixture(scope="module")
def fidelity() -> Fidelity:
    return Fidelity(Catalog())


def far_off(lines: pandas.DataFrame) -> list[str]:
    """Runs whose weights or pool are off by both limits."""
    share, gib = ROW_OFF
    part = lines[lines["figure"].isin(("weights", "KV pool"))]
    return list(part["id"][(part["relative"].abs() > share) & (part["error"].abs() > gib)])


def over(lines: pandas.DataFrame, limits: dict[str, float]) -> dict[str, float]:
    """Figures whose mean error is over its limit."""
    means = {f: summary(lines[lines["figure"] == f]["relative"])["mae"] for f in limits}
    return {figure: mean for figure, mean in means.items() if not mean <= limits[figure]}


def test_every_run_is_predicted(fidelity: Fidelity) -> None:
    assert len(fidelity.h100) == 34
    assert len(fidelity.held_out) == len(fidelity.in_sample) == 34 * 8
    assert fidelity.held_out["relative"].notna().all()


def test_held_out_runs_keep_the_promise(fidelity: Fidelity) -> None:
    assert over(fidelity.held_out, PROMISED) == {}
    assert far_off(fidelity.held_out) == []


def test_held_out_runs_are_no_worse_than_they_were(fidelity: Fidelity) -> None:
    assert over(fidelity.held_out, REACHED) == {}


def test_the_stage_with_the_head_explains_the_tokens(fidelity: Fidelity) -> None:
    assert fidelity.smallest_stage["relative"].abs().max() < 0.001


def test_the_shipped_constants_are_the_fit(fidelity: Fidelity) -> None:
    stated = shipped(fidelity.catalog)
    rounded = {name: round(fidelity.constants[name], _places(value)) for name, value in stated.items()}
    assert rounded == stated


def _places(value: float) -> int:
    return len(repr(float(value)).split(".")[1])


# Public logs


def test_every_log_is_used_or_says_why_not(fidelity: Fidelity) -> None:
    rows = log_rows()
    assert len(rows) == 141  # 126 public ones, 7 found for single charges, 8 cases shown since
    assert set(rows["use"]) == {"tokens", "pool", "both", "whole", "none"}
    assert (rows["use"] == "none").sum() <= 17
    for row in rows[rows["use"] != "both"].itertuples():
        assert len(str(row.reason)) >= 10, row.id
    countable = rows[rows["kv_pool_gib_per_gpu"].notna() & rows["kv_tokens"].notna()]
    left_out = countable[~countable["use"].isin(("tokens", "both"))]
    assert set(left_out["id"]) == {
        "file-68969270797-a",
        "file-68969270797-b",
        "vllm-13061",
        "club3090-46",
        "club3090-1084",
        "file-63390294774",
        "file-59875247307",
    }


def test_tokens_follow_from_the_logged_pool(fidelity: Fidelity) -> None:
    assert len(fidelity.tokens) >= 98
    assert fidelity.tokens["relative"].notna().all()
    assert len(fidelity.misses) <= TOKENS_MISSES
    assert len(fidelity.misses) <= (1 - TOKENS_SHARE) * len(fidelity.tokens)
    assert fidelity.tokens["relative"].abs().median() <= TOKENS_MEDIAN
    explained = reasons()
    for row in fidelity.misses.itertuples():
        assert len(explained[row.id]) > EXPLAINED


def test_pools_of_logs_are_near(fidelity: Fidelity) -> None:
    pools = fidelity.pools[fidelity.pools["figure"] == "KV pool"]
    assert len(pools) >= 52
    assert pools["relative"].abs().median() <= POOL_MEDIAN


def test_the_scoreboard_is_no_worse_than_it_was(fidelity: Fidelity) -> None:
    """All logs, each without its own source, are held to what is wanted; what is missed is missed by no more than it
    was."""
    missed = {score.name: score.value for score in scores(fidelity) if not score.is_met}
    assert missed.keys() <= MISSED_ON_BOARD.keys()
    for name, value in missed.items():
        assert value <= MISSED_ON_BOARD[name], name


def test_the_worst_rows_are_explained(fidelity: Fidelity) -> None:
    explained = reasons()
    for row in worst(fidelity).itertuples():
        assert len(explained.get(row.id, "")) > EXPLAINED, row.id


def test_bands_hold_80_percent_of_what_they_were_made_without(fidelity: Fidelity) -> None:
    assert {scope: set(by_figure) for scope, by_figure in bands(fidelity).items()} == {
        "calibrated": set(BANDED),
        "shared": {"weights", "KV pool"},
        "cards": {"weights", "activations", "KV pool"},
        "other": set(BANDED),
    }
    for scope, by_figure in bands(fidelity).items():
        for figure, band in by_figure.items():
            assert band.low <= 0 <= band.high
            # The rows of a source come in together: of 18, the step from 13 is to 16.
            most = max(BAND_HOLDS[1] * band.n_rows, round(BAND_SHARE * band.n_rows) + 2)
            assert BAND_HOLDS[0] * band.n_rows <= band.inside <= most, (scope, figure)
            assert band.wider <= WIDEST, (scope, figure)


def test_what_is_calibrated_on_logs_follows_from_them(fidelity: Fidelity) -> None:
    for (engine, constant), value in refit(fidelity.logs).items():
        assert value == pytest.approx(stated(fidelity.catalog, engine, constant), abs=SET_BY_HAND), (engine, constant)


def test_the_targets_hold_without_the_source_of_each_log(fidelity: Fidelity) -> None:
    tokens, pools = fidelity.left_out
    assert len(tokens) == len(fidelity.tokens) and len(pools) == len(fidelity.pools)
    assert (tokens["relative"].abs() <= TOKENS_WITHIN).mean() >= TOKENS_SHARE
    whole = pools[pools["figure"] == "KV pool"].set_index("id")["relative"]
    assert whole.abs().median() <= POOL_MEDIAN
    plain = fidelity.pools[fidelity.pools["figure"] == "KV pool"].set_index("id")["relative"]
    moved = whole.index[(whole - plain[whole.index]).abs() > 1e-9]
    assert set(moved) == {
        "shaamil-llama70b-a",
        "file-3706561278",
        "vllm-13061",
        "eugr-396",
        "eugr-396-b",
        "file-57935131721",
        *(f"autumn-{name}" for name in ("glm47flash", "gptoss20b", "hermes14b", "lightning", "qwen3-30b")),
        *(f"autumn-{name}" for name in ("qwen36-35b", "qwen38-27b")),
        "wayne-llama8b-fp8-0.90",
        "wayne-llama8b-fp8-0.80",
        "wayne-llama8b-fp8-0.95-OOM",
    }
    explained = reasons()
    for name in moved:
        assert len(explained.get(f"{name} left out", "")) > EXPLAINED, name


# Twins that must fail


@pytest.mark.long
def test_a_doubled_sampler_fails(tmp_path: Path) -> None:
    wrong = copy.deepcopy(Catalog().read_document("engines/vllm.yaml").data)
    for part in (wrong, *wrong["versions"]):
        if "sampler_bytes_per_logit" in part:
            part["sampler_bytes_per_logit"] = 2 * part["sampler_bytes_per_logit"] + 2  # and the model's own 2
    twin = Fidelity(_overlaid(tmp_path, "engines/vllm.yaml", wrong))
    assert {"activations", "KV pool"} <= set(over(twin.in_sample, REACHED))
    assert "KV pool" in over(twin.held_out, PROMISED)
    assert far_off(twin.held_out)


def test_wrong_heads_fail(tmp_path: Path) -> None:
    wrong = copy.deepcopy(Catalog().read_document("models/llama-3.1-8b.yaml").data)
    wrong["attention"][0]["n_kv_heads"] = 4
    twin = Fidelity(_overlaid(tmp_path, "models/llama-3.1-8b.yaml", wrong))
    assert "max concurrency" in over(twin.in_sample, PROMISED)
    assert len(twin.misses) > TOKENS_MISSES


def _overlaid(folder: Path, name: str, document: object) -> Catalog:
    target = folder / name
    target.parent.mkdir(parents=True)
    target.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return Catalog(folder)


def test_the_docs_are_fresh(fidelity: Fidelity) -> None:
    assert DOCS.read_text(encoding="utf-8") == document(fidelity), "old: python tests/fidelity.py"
    assert ENGINES_DOCS.read_text(encoding="utf-8") == engines_document(fidelity), "old: python tests/fidelity.py"


def test_the_shipped_bands_are_these(fidelity: Fidelity) -> None:
    engine = load_engine(Catalog(), "vllm")
    names = {"weights": "weights", "activations": "activation", "non-torch": "non_torch", "KV pool": "kv_pool"}
    made = {
        (names[figure], scope): band
        for scope, by_figure in bands(fidelity).items()
        for figure, band in by_figure.items()
    }
    assert {(band.figure, band.scope) for band in engine.bands} == set(made)
    for one in engine.bands:
        band = made[one.figure, one.scope]
        unit, step = (1, 1e-4) if one.figure == "weights" else (GIB, 1e-3)
        assert (one.n_rows, one.from_version, one.to_version) == (band.n_rows, *band.releases), one
        # The file rounds outwards to one step.
        for gap in (band.low / unit - one.low, one.high - band.high / unit):
            assert -1e-9 <= gap <= step, one

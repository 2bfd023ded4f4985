"""The bytes that SGLang keeps of a token and of a request's states are those sized, or differs by a named rule that
holds."""

from __future__ import annotations

import pandas
import pytest
from sglang_oracle import FIGURES, PAGE, RULES, compare, oracle_page, rules

from sheetgen.catalog import Catalog

LEAST_MODELS = 60
KINDS = ("full", "full + windowed", "chunked + full", "mla", "indexer + mla", "full + recurrent", "windowed")


@pytest.fixture(scope="module")
def rows() -> pandas.DataFrame:
    return compare(Catalog())


def test_no_row_differs_without_a_rule(rows: pandas.DataFrame) -> None:
    theirs = rows[~rows["equal"] & (rows["rule"] == "")]
    assert theirs.empty, f"{len(theirs)} rows, such as\n{theirs.head(8).T}"


def test_every_rule_explains_a_row(rows: pandas.DataFrame) -> None:
    assert set(rows["rule"]) - {""} == set(rules()["rule"]), f"{RULES.name} has rules that no row needs, or lacks some"


def test_models_of_every_kind_were_asked(rows: pandas.DataFrame) -> None:
    assert rows["model"].nunique() >= LEAST_MODELS and set(KINDS) <= set(rows["kind"])
    assert {1, 2, 4, 8} == set(rows["tensor_parallel_size"]) and {"auto", "fp8"} == set(rows["kv_cache_dtype"])
    assert {"DefaultPoolConfigurator", "HybridSWAPoolConfigurator"} == set(rows["configurator"])


def test_a_faulty_figure_would_be_told(rows: pandas.DataFrame) -> None:
    """A byte more is no rounding: of all that a row keeps something is 1 byte in 10^9 or more."""
    for name in FIGURES:
        kept = rows[rows["equal"] & (rows[name] > 0)]
        assert len(kept) and (abs((kept[name] + 1) / kept[f"sized_{name}"] - 1) > 1e-9).all()


def test_the_page_is_of_these_rows(rows: pandas.DataFrame) -> None:
    assert PAGE.read_text(encoding="utf-8") == oracle_page(rows)

"""Every plan that vLLM made of its own model classes is sheetgen's, too, or differs by a named rule that holds."""

from __future__ import annotations

import numpy
import pytest
from vllm_oracle import FIGURES, PAGE, RULES, Compared, compare, oracle_page, read_rules

from sheetgen.catalog import Catalog

LEAST_MODELS = 60
KINDS = ("full", "full + windowed", "chunked + full", "mla", "indexer + mla", "full + recurrent", "windowed")


@pytest.fixture(scope="module")
def compared() -> Compared:
    return compare(Catalog())


def test_no_plan_differs_without_a_rule(compared: Compared) -> None:
    columns = ["model", "tensor_parallel_size", "kv_cache_dtype", "max_model_len", *FIGURES]
    theirs = compared.unexplained[columns]
    assert theirs.empty, f"{len(theirs)} rows, such as\n{theirs.head(8)}\n{compared.sized.loc[theirs.index].head(8)}"


def test_every_rule_explains_a_plan(compared: Compared) -> None:
    used = set(compared.rows["rule"]) - {""}
    assert used == set(read_rules()), f"{RULES.name} has rules that no row needs, or lacks some"


def test_models_of_every_kind_were_asked(compared: Compared) -> None:
    published = compared.rows[compared.rows["config"] == "published"]
    assert published["model"].nunique() >= LEAST_MODELS
    assert set(KINDS) <= set(published["kind"])
    assert {1, 2, 4, 8} <= set(published["tensor_parallel_size"]) and set(published["kv_cache_dtype"]) == {
        "auto",
        "fp8",
    }
    assert (published.groupby("model")["max_model_len"].nunique() >= 1).all()


def test_a_faulty_figure_would_be_told(compared: Compared) -> None:
    """One block of a request more is no rounding: neither equal nor explained."""
    rows = compared.rows[compared.rows["equal"]]
    one_more = rows["blocks_per_request"] + 1
    assert not numpy.isclose(one_more, compared.sized.loc[rows.index, FIGURES["blocks_per_request"]], rtol=1e-9).any()


def test_the_page_is_of_these_plans(compared: Compared) -> None:
    assert PAGE.read_text(encoding="utf-8") == oracle_page(compared)

"""Every plan that vLLM made of its own model classes is sheetgen's, too, or differs by a named rule that holds."""

from __future__ import annotations

import numpy
import pandas
import pytest
from vllm_oracle import (
    FIGURES,
    KV_ORACLE,
    PAGE,
    PAGES,
    RULES,
    Compared,
    compare,
    engine_plans,
    equal_plans,
    oracle_page,
    read_rules,
    sized_plans,
)

from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import load_engine
from sheetgen.sizing.kv_cache import shard_kv_bytes_per_token
from sheetgen.units import DTYPES, KV_ALIASES, SAME_SIZE

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


COPIED_GROUPS = ("falcon-h1-7b", "granite-4.0-h-tiny")  # of Mamba-2, which vLLM copies where ranks outnumber them
AS_NEAR = 0.02  # their state is so much larger there, which blocks of fewer bytes round away less


def test_plans_of_other_kv_precisions_are_the_engines() -> None:
    plans = engine_plans(KV_ORACLE)
    made = plans[plans["specs"] != "refused"].reset_index(drop=True)
    assert {*KV_ALIASES, *SAME_SIZE} - {"nvfp4_4over6"} | {"nvfp4"} == set(made["kv_cache_dtype"])
    sized = sized_plans(made, Catalog())
    copied = made["model"].isin(COPIED_GROUPS) & (made["tensor_parallel_size"] > 1)
    assert equal_plans(made, sized)[~copied].all() and (~copied).sum() > 250
    near = (made["bytes_per_request"] / sized["kv_bytes_per_sequence_per_gpu"] - 1).abs()
    assert near[copied].max() < AS_NEAR


def test_what_the_engine_refuses_of_kv_precisions() -> None:
    """It makes a plan where sheetgen says that the cache is kept, and none where sheetgen says that it is not."""
    catalog = Catalog()
    engine, gpu = load_engine(catalog, "vllm", "0.33.0"), catalog.gpu("h100")
    for row in engine_plans(KV_ORACLE).itertuples():
        dtype = str(row.kv_cache_dtype)
        asked = KV_ALIASES.get(dtype, SAME_SIZE.get(dtype, dtype))
        why = engine.no_kv(gpu, asked, catalog.model(str(row.model)))
        assert (why is not None) == (row.specs == "refused"), (row.model, dtype, why)


def test_bytes_of_a_page_are_the_engines() -> None:
    """Those of one layer at every width of heads: no model brings a rounding of its own."""
    pages = pandas.read_csv(PAGES)
    for row in pages.itertuples():
        name = {"bfloat16": "bf16"}.get(str(row.kv_cache_dtype), str(row.kv_cache_dtype))
        dtype = DTYPES[KV_ALIASES.get(name, SAME_SIZE.get(name, name))]
        token = shard_kv_bytes_per_token(
            1, row.n_kv_heads, 2 * int(str(row.head_dim)), 0, 0, 0, 0, 0, 0, dtype.kv_bytes, dtype.kv_scale_bytes
        )
        assert token * row.block_size == row.page_bytes, row

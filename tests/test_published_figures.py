"""Published worked examples: those that are right are reproduced, those that are not are explained."""

from __future__ import annotations

from functools import cache

import pytest
from published_figures import DOCS, FIGURES, document, figures

from sheetgen.api import size

ENTRIES = [entry for kind, many in FIGURES.items() if kind != "rules" for entry in many]
RIGHT, WRONG = ([i for i, entry in enumerate(ENTRIES) if entry["agrees"] is agrees] for agrees in (True, False))
EXPLAINED = 20  # characters: a reason, not a word
rows = cache(figures)  # worked out by the process that tests them


def test_every_entry_is_here() -> None:
    assert len(rows()) == len(ENTRIES) == 51
    assert [row.agrees for row in rows()] == [entry["agrees"] for entry in ENTRIES]


@pytest.mark.parametrize("place", RIGHT)
def test_what_is_right_is_reproduced(place: int) -> None:
    row = rows()[place]
    assert row.published is not None
    if row.exact is not None:
        assert row.ours == pytest.approx(row.exact, rel=0 if row.exact > 10 else 1e-3)
    if row.tolerance:
        assert row.ours == pytest.approx(row.published, rel=row.tolerance)
    else:
        assert row.ours == row.published


@pytest.mark.parametrize("place", WRONG)
def test_what_is_wrong_is_explained(place: int) -> None:
    row = rows()[place]
    assert row.exact is not None and row.published is not None
    assert row.ours == pytest.approx(row.exact, rel=2e-3)
    assert abs(row.ours - row.published) > 0.02 * max(abs(row.published), 1e-9)
    assert len(row.why) > EXPLAINED


def test_a_cache_larger_than_the_machine_is_refused() -> None:
    sized = size(model="8b", gpu="spark", kv_cache_dtype="fp8", context=32768, concurrent_requests=128)
    assert sized["kv_bytes"] == 256 * 2**30 and sized["fits"] is False and sized["short_by_bytes"] > 0


# The four rules


def test_paged_kv_rounds_up_to_the_block_and_reserved_kv_takes_the_longest_context() -> None:
    token = 131072
    assert size(model="8b", context=1000)["kv_bytes"] == 1008 * token
    assert size(model="8b", context=1000, block_size=1)["kv_bytes"] == 1000 * token
    reserved = size(model="8b", context=4096, max_model_len=8192, kv_allocation="reserved")["kv_bytes"]
    assert reserved == 2 * size(model="8b", context=4096, max_model_len=8192)["kv_bytes"]


@pytest.mark.parametrize("hit", [0.3, 0.4])
def test_a_prefix_cache_hit_lowers_the_bill_of_the_prompt(hit: float) -> None:
    load = {"model": "70b", "context": 16384, "input_tokens": 15360, "concurrent_requests": 32}
    without, with_hit = (size(**load, prefix_cache_hit_fraction=h)["kv_bytes"] for h in (0.0, hit))
    saved = 32 * 15360 * hit * 327680
    assert without - with_hit == pytest.approx(saved, abs=32 * 16 * 327680)  # to the block


def test_fp8_weights_do_not_imply_fp8_kv() -> None:
    base, lighter = (size(model="70b", weight_dtype=dtype, context=8192) for dtype in ("bf16", "fp8"))
    assert lighter["weights_bytes"] < 0.55 * base["weights_bytes"]
    assert lighter["kv_bytes"] == base["kv_bytes"] and lighter["kv_cache_dtype"] == "bf16"


def test_speculative_decoding_adds_weights_and_kv() -> None:
    alone = size(model="8b", context=8192)
    drafted = size(model="8b", context=8192, draft_model="llama-3.1-8b-speculator.eagle3")
    assert drafted["kv_pool_bytes_per_gpu"] < alone["kv_pool_bytes_per_gpu"]
    assert drafted["kv_bytes_per_token"] == alone["kv_bytes_per_token"] + 4096


def test_a_draft_s_cache_is_in_the_target_s_precision_with_its_scales() -> None:
    """One layer of 8 heads: keys and values of 128 bytes in int8, and for each a scale of 4."""
    load = {"model": "8b", "context": 8192, "kv_cache_dtype": "int8"}
    alone, drafted = size(**load), size(**load, draft_model="llama-3.1-8b-speculator.eagle3")
    assert drafted["kv_bytes_per_token"] == alone["kv_bytes_per_token"] + 8 * (2 * 128 + 2 * 4)


def test_the_docs_are_fresh() -> None:
    assert DOCS.read_text(encoding="utf-8") == document(), "old: python tests/published_figures.py"

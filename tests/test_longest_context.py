"""The longest context that fits is exact: it fits, and one token more does not, whatever scales the charge."""

import random

import pytest

import sheetgen
from sheetgen.errors import CatalogError, ScenarioError

MODELS = ("8b", "70b", "gemma-3-27b", "gpt-oss-20b", "qwen3.6-27b", "deepseek-v2-lite", "mistral-7b-v0.1")


def _point(seed: int) -> dict:
    pick = random.Random(seed)
    return {
        "model": pick.choice(MODELS),
        "gpu": pick.choice(("l40s", "h100", "b200")),
        "tensor_parallel_size": pick.choice((1, 2, 4)),
        "concurrent_requests": pick.choice((1, 7, 32, 200)),
        # One of the two at a time: hits above the average fill would make a longer context cheaper.
        **pick.choice(({"average_context_fraction": 0.31}, {"prefix_cache_hit_fraction": 0.4}, {})),
        "kv_allocation": pick.choice(("paged", "reserved")),
        "output_tokens": 16,
    }


@pytest.mark.some(16)
@pytest.mark.parametrize("seed", range(40))
def test_it_fits_and_one_more_does_not(seed):
    given = _point(seed)
    longest = sheetgen.size(**given, context=1024)["max_context_tokens_that_fit"]
    if longest >= 16:
        assert sheetgen.size(**given, context=longest)["short_by_bytes"] in (None, 0), given
    try:
        more = sheetgen.size(**given, context=max(longest, 16) + 1)
    except ScenarioError as error:
        assert "over the" in str(error)  # the model itself allows no more
        return
    if longest >= 16:
        assert (more["short_by_bytes"] or 0) > 0, given


def test_a_draft_with_windows_is_refused():
    with pytest.raises(ScenarioError, match=r"gemma-3-1b has 22 layers"):
        sheetgen.size(model="70b", draft_model="gemma-3-1b")


def test_a_draft_brings_weights_and_cache():
    alone = sheetgen.size(model="70b", tensor_parallel_size=4)
    both = sheetgen.size(model="70b", tensor_parallel_size=4, draft_model="llama-3.2-1b")
    assert both["kv_bytes_per_token"] - alone["kv_bytes_per_token"] == 32_768  # 16 layers x 8 heads x 64 x 2 x 2 B
    assert alone["kv_pool_bytes_per_gpu"] - both["kv_pool_bytes_per_gpu"] == -(-1_235_814_400 * 2 // 4)


@pytest.mark.parametrize("version", ["0.19=cmd()", "0.19\x1b[31m", "the latest", "<script>", "-latest", "latest-"])
def test_an_engine_version_is_a_version(version):
    with pytest.raises((CatalogError, ScenarioError), match="is not a version"):
        sheetgen.size(model="8b", engine_version=version)


@pytest.mark.parametrize("build", ["latest", "nightly", "nightly-20260216-d3bae71e"])
def test_a_build_is_sized_as_the_newest_release(build):
    answer, newest = (sheetgen.size(model="8b", engine_version=version) for version in (build, "999999.0.0"))
    assert answer.pop("engine_version") == build and newest.pop("engine_version") == "999999.0.0"
    assert answer == newest

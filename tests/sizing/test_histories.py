"""Tokens found in the prefix cache are of two kinds: shared by all requests, or each request's own history."""

from __future__ import annotations

import pytest

import sheetgen

AGENTS = {
    "model": "qwen3-coder-480b-a35b", "weight_dtype": "fp8", "gpu": "b200", "tensor_parallel_size": 8,
    "context": "101k", "concurrent_requests": 32,
}  # fmt: skip


def test_a_history_saves_the_prefill_and_no_memory() -> None:
    plain, history, shared = (
        sheetgen.size(**AGENTS, **more)
        for more in ({}, {"history_hit_fraction": 0.9}, {"prefix_cache_hit_fraction": 0.9})
    )
    for name in ("kv_bytes", "kv_bytes_per_sequence", "fits", "max_context_tokens_that_fit", "running_requests"):
        assert history[name] == plain[name] != (shared[name] if name == "kv_bytes" else None)
    assert history["ttft_seconds"] < plain["ttft_seconds"] / 4
    # The prompts that are computed are as many, whoever shares the rest; a step reads the same.
    alone = {"concurrent_requests": 1}
    first, other = (
        sheetgen.size(**{**AGENTS, **alone}, **{name: 0.9})
        for name in ("history_hit_fraction", "prefix_cache_hit_fraction")
    )
    assert first["ttft_seconds"] == other["ttft_seconds"] and first["tpot_seconds"] == other["tpot_seconds"]


def test_both_together_are_no_more_than_the_prompt() -> None:
    all_of_it = sheetgen.size(**AGENTS, history_hit_fraction=1)
    more = sheetgen.size(**AGENTS, history_hit_fraction=1, prefix_cache_hit_fraction=0.001)
    assert more["ttft_seconds"] == pytest.approx(all_of_it["ttft_seconds"], rel=0.01)


def test_the_average_context_is_what_a_step_reads() -> None:
    """Half of the cache is read in half of the time: what is left of a step does not depend on it."""
    usual = {"model": "70b", "gpu": "h100", "tensor_parallel_size": 4, "context": "16k", "concurrent_requests": 20}
    full, half, none = (
        sheetgen.size(**usual, average_context_fraction=share)["tpot_seconds"] for share in (1, 0.5, 1e-9)
    )
    assert full - half == pytest.approx(half - none, rel=1e-6)
    assert none < half < full
    reserved = sheetgen.size(**usual, average_context_fraction=0.5, kv_allocation="reserved")
    assert reserved["tpot_seconds"] == half and reserved["kv_bytes"] == sheetgen.size(**usual)["kv_bytes"]

"""fingerprints.yaml and assumptions.yaml: what they must hold, and that code and catalog agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from solved_pages import catalog

from sheetgen.catalog import Catalog, guidance
from sheetgen.catalog.engines import load_engine
from sheetgen.errors import CatalogError
from sheetgen.question import market, sheet_question
from sheetgen.question.sheet_question import settings_of
from sheetgen.units import GIB, TENSOR_PARALLEL_SIZES


def test_settings_and_assumptions_are_equal() -> None:
    assumptions, settings = guidance.assumptions(catalog()), settings_of({}, load_engine(catalog(), "vllm"))
    same = [name for name in assumptions if hasattr(settings, name)]
    assert {
        "peak_hour_share",
        "burst_factor",
        "average_context_fraction",
        "prefix_cache_hit_fraction",
        "extra_headroom_fraction",
        "survive",
        "hours_per_month",
        "gpu_memory_utilization",
        "utilization",
        "contingency_fraction",
    } == set(same)
    for name in same:
        assert assumptions[name].value == getattr(settings, name), name
    assert assumptions["tensor_parallel_sizes"].value == TENSOR_PARALLEL_SIZES
    assert assumptions["max_pipeline_parallel_size"].value == sheet_question.MAX_PIPELINE_PARALLEL_SIZE
    assert guidance.number(assumptions, "least_gpu_memory_gib") * GIB == market.LEAST_MEMORY_BYTES
    assert guidance.number(assumptions, "max_candidates") == market.MAX_CANDIDATES
    assert guidance.number(assumptions, "stale_after_days") == 180


def test_every_assumption_has_a_reason() -> None:
    for assumption in guidance.assumptions(catalog()).values():
        assert len(assumption.reason) > 30 and assumption.source and assumption.unit, assumption.id


def overlay(folder: Path, name: str, text: str) -> Catalog:
    (folder / name).write_text(text, encoding="utf-8")
    return Catalog(folder)


ENTRY = """checked_on: 2026-11-20
fingerprints:
  - label: {label}
    where: here
    bill: KV
    looks_like: dead
    symptom: dead
    log_lines: {{vllm: ['{line}']}}
    fixes:
      - {{what: it, flags: {{vllm: '{flag}'}}, direction: {direction}, reason: because, cost: some}}
    sources: [{{text: a thread, url: '{url}'}}]
"""
GOOD = {
    "label": "long_completion", "line": "x", "flag": "--max-model-len", "direction": "lower", "url": "https://a.b/c",
}  # fmt: skip


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    (fingerprint,) = guidance.fingerprints(overlay(tmp_path, "fingerprints.yaml", ENTRY.format(**GOOD)))
    assert fingerprint.fixes[0].flags == {"vllm": "--max-model-len"}


@pytest.mark.parametrize(
    "key,value,words",
    [
        ("label", "long_completions", "Did you mean long_completion?"),
        ("direction", "up", "must be one of raise, lower, set, unset, free"),
        ("flag", "=cmd()", "is no flag"),
        ("flag", "-- rm -rf /", "is no flag"),
        ("url", "file:///etc/passwd", "neither http nor https"),
        ("url", "javascript:alert(1)", "neither http nor https"),
        ("line", "x" * 300, "longer than 240"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, key: str, value: str, words: str) -> None:
    with pytest.raises(CatalogError, match=r"fingerprints\.yaml:\d+: ") as caught:
        guidance.fingerprints(overlay(tmp_path, "fingerprints.yaml", ENTRY.format(**{**GOOD, key: value})))
    assert words in str(caught.value)


def test_a_missing_judgement_is_told(tmp_path: Path) -> None:
    text = "checked_on: 2026-11-20\nassumptions:\n  - {id: a, value: x, unit: u, reason: r, source: s}\n"
    assumptions = guidance.assumptions(overlay(tmp_path, "assumptions.yaml", text))
    with pytest.raises(CatalogError, match="clearly_cheaper_fraction is missing"):
        guidance.number(assumptions, "clearly_cheaper_fraction")
    with pytest.raises(CatalogError, match="not a number"):
        guidance.number(assumptions, "a")

"""owning.yaml: what it must hold, and that `sheetgen check` says where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.check import faults_of
from sheetgen.errors import CatalogError
from sheetgen.units import OWNING_TERMS as TERMS

SHIPPED = (default_folder() / "owning.yaml").read_text()


def overlay(folder: Path, old: str, new: str) -> Catalog:
    assert old in SHIPPED, old
    (folder / "owning.yaml").write_text(SHIPPED.replace(old, new, 1), encoding="utf-8")
    return Catalog(folder)


def test_every_figure_has_a_source_and_a_day() -> None:
    file = Catalog().owning()
    assert {term.id for term in file.terms} == set(TERMS)
    for term in file.terms:
        assert term.source and len(term.reason) > 30, term.id
        assert term.as_of is not None or term.value == 0, f"{term.id} is a figure without a day"
    gpus = [owned for owned in file.gpus if owned.capex_usd]
    assert len(gpus) >= 10
    for owned in gpus:
        assert owned.capex_usd and owned.capex_usd.low <= owned.capex_usd.base <= owned.capex_usd.high
        assert owned.confidence == "low", f"no maker publishes a price, yet {owned.gpu} is sure of one"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("low: 8000, base: 8565", "low: 9000, base: 8565", "are not in this order"),
        ("price_of: module", "price_of: card", "must be one of module, installed"),
        ("kw: 1.73", "kw: -1", "should be greater than 0"),
        ("kw: 1.73", "kw: .nan", "must be a number"),
        ("low: 25000", "low: '25000'", "must be a number"),
        ("gpu: nvidia-h100-sxm5-80gb", "gpu: nvidia-h100-sxm5-81gb", "Did you mean nvidia-h100-sxm5-80gb?"),
        ("gpu: nvidia-h200-sxm5-141gb", "gpu: nvidia-h100-sxm5-80gb", "is given twice"),
        ("id: pue", "id: puee", "is no term of owning. Did you mean pue?"),
        ("id: pue", "id: usd_per_kwh", "the term pue is missing"),
        ("value: 5\n", "value: 0\n", "owned_years is 0, but must be from 1 to 20"),
        ("as_of: '2026-06'", "as_of: soon", "is no date"),
        ("source: 'aiinframap", "source: '=cmd()|aiinframap", "reads as a formula"),
        ("confidence: medium", "confidence: sure", "must be one of high, medium, low"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    catalog = overlay(tmp_path, old, new)
    with pytest.raises(CatalogError, match=r"owning\.yaml:\d+: ") as caught:
        catalog.owning()
    assert words in str(caught.value)
    assert any(words in problem for *_, problem in faults_of(catalog))


def test_a_file_of_your_own_replaces_the_shipped_one(tmp_path: Path) -> None:
    catalog = overlay(tmp_path, "value: 0.08", "value: 0.2")
    assert next(t.value for t in catalog.owning().terms if t.id == "usd_per_kwh") == 0.2
    assert faults_of(catalog) == []

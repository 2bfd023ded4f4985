"""The page of models is of these catalogs; every model of this autumn is entered, or refused by its name."""

from __future__ import annotations

import pytest
from models_page import MODELS_DOCS, models_document, proofs

from sheetgen.catalog import Catalog
from sheetgen.catalog.model import stem
from sheetgen.errors import CatalogError

ENTERED = (
    "Qwen3.8-Flash-Next", "GLM-5.3-Flash", "Mistral-Large-4-1T-A52B", "Hy4-preview", "Beam-1.0-501B-A23B", "Inkling",
    "Muse-Spark-Open-816B-A42B", "command-a-plus-05-2026", "K-EXAONE-236B", "EXAONE-4.5-33B", "Solar-Open-100B",
    "LongCat-Flash", "Mistral-Large-3-675B", "Ling-3.0-flash", "Step-3.7-Flash", "Trinity-Large-Thinking", "dots3-note",
    "gemma-4-12B-it", "Laguna-XS.2-FP8", "Hermes-4-14B", "GLM-4.7-Flash", "Qwen3.6-35B", "Qwen3.8-27B", "Kimi-K3",
)  # fmt: skip
REFUSED = (
    "DeepSeek-V4.1-Flash", "Inkling-2-Small", "Inkling-Small", "MiMo-V2.5-Pro", "MiMo-V2.5", "Mistral-Medium-3.5-128B",
    "Ling-2.6-1T", "Laguna-M.1",
)  # fmt: skip


def test_what_the_page_says_of_a_model_the_catalogs_say(catalog: Catalog) -> None:
    """A model may be entered before the page is written anew (python tests/models_page.py)."""
    rows = [line for line in MODELS_DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(rows) > 300 and set(rows) <= set(models_document(catalog).splitlines())


def test_most_are_held_to_transformers(catalog: Catalog) -> None:
    proved = proofs(catalog.models())
    assert sum(proof == "to the unit" for proof in proved.values()) >= 230
    assert {proved[i] for i in ("trinity-large", "gemma-4-12b", "exaone-4.5-33b", "laguna-xs.2")} == {"to the unit"}
    assert proved["kimi-k3"] == "derived"


@pytest.mark.parametrize("name", ENTERED)
def test_models_of_this_autumn_are_entered(catalog: Catalog, name: str) -> None:
    assert catalog.model(name).params.total > 1e9


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_known_is_refused_by_name(catalog: Catalog, name: str) -> None:
    if catalog.lists_model(stem(name)):
        pytest.skip("has been entered")
    with pytest.raises(CatalogError, match="Published by size"):
        catalog.model(name)

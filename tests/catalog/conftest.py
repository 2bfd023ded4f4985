from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sheetgen.catalog import Catalog, default_folder, write_index


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return Catalog()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A catalog folder of one model, one GPU, one provider: small enough to break at will."""
    shipped = default_folder()
    for name in (
        "models/llama-3.1-8b.yaml",
        "gpus/nvidia-h100-sxm5-80gb.yaml",
        "workloads.yaml",
        "tiers.yaml",
        "levers.yaml",
        "left_out.yaml",
    ):
        target = tmp_path / "c" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped / name, target)
    (tmp_path / "c" / "instances").mkdir()
    (tmp_path / "c" / "instances" / "acme.yaml").write_text(
        "provider: acme\n"
        "instances:\n"
        "  - type: one\n"
        "    gpu: h100\n"
        "    gpu_count: 1\n"
        "    unit: instance\n"
        "    region: here\n"
        "    prices:\n"
        "      - {purchase: on-demand, usd_per_hour: 2.5, as_of: '2026-11'}\n"
        "    source: a price list\n"
        "    confidence: high\n"
        "    checked_on: 2026-11-20\n"
    )
    write_index(tmp_path / "c")
    return tmp_path / "c"

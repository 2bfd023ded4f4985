"""Checked entries of the shipped catalogs are kept: the same entries, and none for another file, code or a damaged
copy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sheetgen.catalog import Catalog, load
from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Tier, TierFile
from sheetgen.catalog.kept_entries import kept


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "cache"


def test_kept_entries_equal_those_of_the_files(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entries() -> list[object]:
        catalog = Catalog()
        engines = list(catalog.folders[0].entries("engines", Engine))
        return [*engines, *catalog.gpus(), *catalog.instances(), catalog.model("deepseek-v3"), catalog.owning()]

    read = entries()
    assert len(list(cache.rglob("*.entry"))) > 90
    monkeypatch.delattr(load, "read_document")
    assert entries() == read


def test_what_is_kept_counts_only_for_the_same_file(cache: Path, tmp_path: Path) -> None:
    checked: list[TierFile] = []

    def check() -> TierFile:
        checked.append(TierFile(tiers=(Tier(name="one", requests=len(checked) + 1, reason="a test"),)))
        return checked[-1]

    file = tmp_path / "tiers.yaml"
    file.write_text("one")
    assert kept(file, file.name, check) == kept(file, file.name, check) == checked[0] and len(checked) == 1
    file.write_text("two")
    assert kept(file, file.name, check) == checked[1]
    [entry] = cache.rglob("*.entry")
    for damaged in (entry.read_bytes()[:-1], b"", bytes(40)):
        entry.write_bytes(damaged)
        assert kept(file, file.name, check) == checked[-1]
    assert len(checked) == 5


def test_nothing_is_kept_where_python_keeps_no_bytecode(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    Catalog().gpus()
    Catalog(base=load.default_folder()).gpus()
    assert not cache.exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    Catalog(base=load.default_folder()).gpus()  # any other folder
    assert not cache.exists()

"""What an answer's page, workbook, levers and derivations read of the catalogs beside the question itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from sheetgen.catalog.base import Document
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model

if TYPE_CHECKING:
    from sheetgen.catalog.guidance import Assumption, Fingerprint

_ALL_MODELS: dict[str, tuple[Model, ...]] = {}  # by the catalogs' hash, the last one only: to read them takes long


class Reference:
    """The catalogs that a question was put to. Every part is read when it is first needed, and once.

    Each raises CatalogError where its file is missing or wrong.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    @cached_property
    def sha256(self) -> str:
        return self.catalog.catalog_sha256()

    @cached_property
    def assumptions(self) -> Mapping[str, Assumption]:
        from sheetgen.catalog import guidance

        return guidance.assumptions(self.catalog)

    def assumption(self, name: str) -> float:
        """The value of an assumption that is a number."""
        from sheetgen.catalog import guidance

        return guidance.number(dict(self.assumptions), name)

    @cached_property
    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Those of the page."""
        from sheetgen.catalog import guidance

        return guidance.fingerprints(self.catalog)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """Every model that can serve: drafts of others are left out."""
        if self.sha256 not in _ALL_MODELS:
            _ALL_MODELS.clear()
            _ALL_MODELS[self.sha256] = tuple(m for m in self.catalog.models() if m.kind != "draft")
        return _ALL_MODELS[self.sha256]

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """Every GPU whose memory is known."""
        return tuple(g for g in self.catalog.gpus() if g.memory.engine_bytes)

    def document(self, relative: str) -> Document:
        """A file of the catalogs, which knows where each of its fields stands."""
        return self.catalog.read_document(relative)

"""Catalogs: models, GPUs, instances and prices as checked data. Knows nothing of sizing."""

from sheetgen.catalog.base import read_document, validate
from sheetgen.catalog.hardware import Gpu, Instance
from sheetgen.catalog.load import Catalog, default_folder, write_index
from sheetgen.catalog.model import Model

__all__ = ["Catalog", "Gpu", "Instance", "Model", "default_folder", "read_document", "validate", "write_index"]

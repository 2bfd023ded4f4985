"""A Hugging Face config.json as a catalog entry. Only its fields are read: no weights, no code, no network."""

from sheetgen.catalog.huggingface.config import fetch_config, is_hub_id
from sheetgen.catalog.huggingface.entry import import_config, import_file, write_yaml

__all__ = ["fetch_config", "import_config", "import_file", "is_hub_id", "write_yaml"]

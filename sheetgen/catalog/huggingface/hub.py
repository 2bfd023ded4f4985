"""The config.json of a Hugging Face repository, and nothing else of it. Only `catalog import ORG/NAME` comes here."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from sheetgen.catalog.huggingface.read import read_config
from sheetgen.errors import CatalogError, shown

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_hub_id(name: str) -> bool:
    """`org/name`, where no file or folder has that name."""
    return bool(_ID.fullmatch(name)) and not name.lower().endswith(".json") and not Path(name).exists()


def fetch_config(hf_id: str) -> tuple[dict[str, Any], str]:
    """The config, and its name for messages. The library's own cache is used, and its own login."""
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise CatalogError(
            f"{shown(hf_id, 200)}: is no file or folder here. To fetch its config.json from Hugging Face, install"
            " huggingface_hub (pip install huggingface_hub), or download the file and name it."
        ) from None
    try:
        path = hub.hf_hub_download(repo_id=hf_id, filename="config.json")
    except Exception as error:  # the library raises its own, its HTTP client's and the system's errors
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise CatalogError(
            f"{shown(hf_id, 200)}: its config.json cannot be fetched ({shown(reason, 150)})."
            " Download the file, and name it."
        ) from error
    config, _ = read_config(path)
    return config, hf_id

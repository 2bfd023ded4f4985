"""sheetgen: what it takes to serve a language model, as a workbook and a page. See `sheetgen --help`.

From Python: `size(model="70b", ...)`, `size_frame(DataFrame)` and `recommend(model="70b", ...)`. They load when they
are first used, so that importing sheetgen costs nothing.
"""

from __future__ import annotations

from sheetgen.version import VERSION as __version__

TYPE_CHECKING = False  # typing's, which takes a while to load
if TYPE_CHECKING:
    from typing import Any

    from sheetgen.api import recommend, size, size_frame

__all__ = ["__version__", "recommend", "size", "size_frame"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        import importlib

        return getattr(importlib.import_module("sheetgen.api"), name)
    raise AttributeError(f"module 'sheetgen' has no attribute {name!r}")

"""sheetgen: what it takes to serve a language model, as a workbook and a page. See `sheetgen --help`.

From Python: `size(model="70b", ...)`, `size_frame(DataFrame)`, `recommend(model="70b", ...)` and `build(models="70b")`.
They load when they are first used, so that importing sheetgen costs nothing.
"""

from __future__ import annotations

from sheetgen.version import VERSION as __version__

TYPE_CHECKING = False  # typing's, which takes a while to load
if TYPE_CHECKING:
    from typing import Any

    from sheetgen.api import recommend, size, size_frame
    from sheetgen.built_sheet import build

__all__ = ["__version__", "build", "recommend", "size", "size_frame"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        import importlib

        module = "sheetgen.built_sheet" if name == "build" else "sheetgen.api"
        return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'sheetgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

"""A workbook that somebody edited, carried back: what was changed, what follows from it, and whether it agrees."""

from sheetgen.pull.pulled import Pulled, pull

__all__ = ["Pulled", "pull"]

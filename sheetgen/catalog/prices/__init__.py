"""Price lists (files or web addresses, four formats) against the catalogs' rows. Knows nothing of the command line."""

from sheetgen.catalog.prices.refresh import Refresh, files, read_lists, refresh
from sheetgen.catalog.prices.rows import Change

__all__ = ["Change", "Refresh", "files", "read_lists", "refresh"]

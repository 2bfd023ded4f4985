"""What is wrong with a file that was to be read back."""

from __future__ import annotations

from sheetgen.errors import SheetgenError


class WorkbookError(SheetgenError):
    """A workbook, or the JSON of a sheet, that cannot be read: the file, what is wrong, what to do."""

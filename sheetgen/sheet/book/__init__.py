"""The workbook's sheets, one file each: inputs, catalogs, workings, the one page, guide, checks, notes."""

from __future__ import annotations

from sheetgen.sheet.book.build import build_book

__all__ = ["build_book"]

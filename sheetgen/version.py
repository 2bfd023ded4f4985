"""The version of sheetgen, which every output carries."""

VERSION = "1.0.0"

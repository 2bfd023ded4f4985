"""A company's template: name, logo, colours and a footer line, from one small file, for workbook and PDF."""

from sheetgen.brand.colors import Colors
from sheetgen.brand.logo import Logo
from sheetgen.brand.read import Brand, read_brand

__all__ = ["Brand", "Colors", "Logo", "read_brand"]

"""Faults that a schema finds: each in another kind of part."""

from __future__ import annotations

from damage import STRINGS, STYLES, Damage, put, put_cell, put_name, swap
from package import WORKBOOK

FAULTS: dict[str, Damage] = {
    "elements in disorder": put("<cols><col min='1' max='1' width='9'/></cols>"),
    "a cell of an unknown type": put_cell("<v>1</v>", ' t="number"'),
    "a place that is none": put('<mergeCells count="1"><mergeCell ref="1A:2B"/></mergeCells>', "<pageMargins"),
    "a colour that is none": swap(STYLES, 'rgb="[0-9A-F]{8}"', 'rgb="blue"'),
    "a sheet's number twice": swap(WORKBOOK, 'sheetId="2"', 'sheetId="1"'),
    "an unknown attribute of a name": put_name("in_x", "Inputs!$A$1", ' scope="all"'),
    "a note without a place": swap("xl/comments1.xml", '<comment ref="[^"]*"', "<comment"),
    "a chart's bar of no direction": swap("xl/charts/chart1.xml", r'<c:barDir val="\w+"/>', '<c:barDir val="up"/>'),
    "a drawing without an anchor": swap("xl/drawings/drawing1.xml", "<xdr:to>.*?</xdr:to>", ""),
    "a string without a text": swap(STRINGS, "<si>", "<si><text/></si><si>"),
    "a property of no type": swap("docProps/custom.xml", "<vt:lpwstr>", "<vt:lpwstr><x/>"),
    "a relation of no part": swap("xl/_rels/workbook.xml.rels", "styles.xml", "style.xml"),
}  # fmt: skip

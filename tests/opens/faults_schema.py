"""Faults that a schema finds, each in another kind of part, and what the Open XML SDK says of it."""

from __future__ import annotations

from damage import STRINGS, STYLES, Damage, put, put_cell, put_name, sheet_part, swap
from package import WORKBOOK, Parts


def _merged_without_a_place(parts: Parts) -> None:
    """The place of a sheet's merged cells in the schema's order."""
    merged = '<mergeCells count="1"><mergeCell/></mergeCells>'
    swap(sheet_part(parts, "Money"), r"(<sheetProtection [^>]*/>)", rf"\1{merged}")(parts)


LAST = "a relation of no part"  # the SDK opens nothing then
FAULTS: dict[str, tuple[Damage, str]] = {
    "elements in disorder": (put("<cols><col min='1' max='1' width='9'/></cols>"), "unexpected child element .*:cols"),
    "a cell of an unknown type": (put_cell("<v>1</v>", ' t="number"'), "'t' has invalid value 'number'"),
    "merged cells without a place": (_merged_without_a_place, "worksheets/.* attribute 'ref' is missing"),
    "a colour that is none": (swap(STYLES, 'rgb="[0-9A-F]{8}"', 'rgb="blue"'), "'rgb' has invalid value 'blue'"),
    "a sheet's number twice": (swap(WORKBOOK, 'sheetId="2"', 'sheetId="1"'), "'sheetId' should have unique value"),
    "an unknown attribute of a name": (
        put_name("in_x", "Inputs!$A$1", ' scope="all"'),
        "'scope' attribute is not declared",
    ),
    "a note without a place": (
        swap("xl/comments1.xml", '<comment ref="[^"]*"', "<comment"),
        "comments1.* attribute 'ref' is missing",
    ),
    "a chart's bar of no direction": (
        swap("xl/charts/chart1.xml", r'<c:barDir val="\w+"/>', '<c:barDir val="up"/>'),
        "invalid value 'up'",
    ),
    "a drawing without an anchor": (
        swap("xl/drawings/drawing1.xml", "<xdr:to>.*?</xdr:to>", ""),
        "drawing1.* unexpected child element",
    ),
    "a string without a text": (swap(STRINGS, "<si>", "<si><text/></si><si>"), "sharedStrings.*:text"),
    "a property of no type": (swap("docProps/custom.xml", "<vt:lpwstr>", "<vt:lpwstr><x/>"), "cannot contain children"),
    LAST: (swap("xl/_rels/workbook.xml.rels", "styles.xml", "style.xml"), "/xl/style.xml doesn't exist"),
}

"""Faults of a package, of its workbook and its styles, each with the rule that has to find it."""

from __future__ import annotations

import rules_package as parts
import rules_workbook as book
from damage import (
    STRINGS,
    STYLES,
    TYPE,
    Fault,
    conditional,
    drop,
    put,
    put_cell,
    put_name,
    put_part,
    put_relation,
    swap,
)
from package import CONTENT_TYPES, WORKBOOK

OUTSIDE = ' TargetMode="External"'
MACRO = "application/vnd.ms-office.vbaProject"

FAULTS = [
    Fault(parts.xml_is_well_formed, "a tag that does not close", swap(WORKBOOK, "</workbook>", "")),
    Fault(parts.xml_is_well_formed, "a document type", swap(STYLES, "<styleSheet", "<!DOCTYPE x><styleSheet")),
    Fault(parts.names_are_unique, "two parts in other case", lambda p: p.update({WORKBOOK.upper(): b"<x/>"})),
    Fault(parts.every_part_has_an_allowed_type, "no type", swap(CONTENT_TYPES, "/xl/styles.xml", "/xl/style.xml")),
    Fault(parts.every_part_has_an_allowed_type, "a part that is gone", drop(STYLES)),
    Fault(
        parts.every_part_has_an_allowed_type, "a macro", put_part("xl/vbaProject.bin", "x", MACRO, kind="vbaProject")
    ),
    Fault(
        parts.every_part_has_an_allowed_type,
        "a link to another workbook",
        put_part(
            "xl/externalLinks/externalLink1.xml", "<x/>", f"{TYPE}spreadsheetml.externalLink+xml", kind="externalLink"
        ),
    ),
    Fault(
        parts.every_part_has_an_allowed_type,
        "an OLE object",
        put_part("xl/embeddings/oleObject1.bin", "x", f"{TYPE}oleObject", kind="oleObject"),
    ),
    Fault(
        parts.every_part_has_an_allowed_type,
        "a data connection",
        put_part("xl/connections.xml", "<x/>", f"{TYPE}spreadsheetml.connections+xml", kind="connections"),
    ),
    Fault(
        parts.every_part_has_an_allowed_type,
        "a workbook with macros by type",
        swap(CONTENT_TYPES, r"[^\"]*sheet\.main\+xml", "application/vnd.ms-excel.sheet.macroEnabled.main+xml"),
    ),
    Fault(
        parts.every_part_is_reached,
        "an orphan",
        put_part("xl/tables/table1.xml", "<x/>", f"{TYPE}spreadsheetml.table+xml"),
    ),
    Fault(parts.every_relation_holds, "a part that is gone", drop(STRINGS)),
    Fault(parts.every_relation_holds, "a file outside", put_relation(WORKBOOK, "image", "file:///etc/passwd", OUTSIDE)),
    Fault(
        parts.every_relation_holds,
        "a link to a file",
        put_relation("", "hyperlink", "file:///etc/passwd", OUTSIDE, "Inputs"),
    ),
    Fault(parts.every_relation_holds, "one id twice", put_relation(WORKBOOK, "theme", "theme/theme1.xml", id="rId1")),
    Fault(parts.every_relation_holds, "an id of nothing", swap(WORKBOOK, 'r:id="rId1"', 'r:id="rId999"')),
    Fault(parts.the_root_names_the_workbook, "no workbook", swap("_rels/.rels", "xl/workbook.xml", "xl/styles.xml")),
    Fault(book.sheet_names, "32 characters", swap(WORKBOOK, 'sheet name="[^"]*"', f'sheet name="{"A" * 32}"')),
    *(
        Fault(book.sheet_names, f"a {sign}", swap(WORKBOOK, 'sheet name="[^"]*"', f'sheet name="a{sign}b"'))
        for sign in "[]:*?/"
    ),
    Fault(book.sheet_names, "an empty one", swap(WORKBOOK, 'sheet name="[^"]*"', 'sheet name=""')),
    Fault(book.sheet_names, "two alike", swap(WORKBOOK, 'sheet name="[^"]*"', 'sheet name="iNPUTS"')),
    Fault(book.sheet_names, "one number twice", swap(WORKBOOK, 'sheetId="2"', 'sheetId="1"')),
    Fault(book.defined_names, "one twice", put_name("IN_AS_OF", "Inputs!$A$1")),
    Fault(book.defined_names, "one like a cell", put_name("in2026", "Inputs!$A$1")),
    Fault(book.defined_names, "one like a row and column", put_name("R1C1", "Inputs!$A$1")),
    Fault(book.defined_names, "one with a space", put_name("in as_of", "Inputs!$A$1")),
    Fault(book.defined_names, "one of 256 characters", put_name("a" * 256, "Inputs!$A$1")),
    Fault(book.defined_names, "one of no sheet", put_name("in_x", "Nowhere!$A$1")),
    Fault(book.defined_names, "one of a deleted cell", put_name("in_x", "#REF!")),
    Fault(book.defined_names, "one of a sheet beyond the last", put_name("in_x", "Inputs!$A$1", ' localSheetId="99"')),
    Fault(
        book.print_areas_and_titles,
        "of another sheet",
        put_name("_xlnm.Print_Area", "Models!$A$1", ' localSheetId="1"'),
    ),
    Fault(
        book.print_areas_and_titles,
        "titles of cells",
        put_name("_xlnm.Print_Titles", "Inputs!$A$1:$B$2", ' localSheetId="1"'),
    ),
    Fault(book.styles, "a cell of no style", put_cell("<v>1</v>", ' s="65000"')),
    Fault(
        book.styles,
        "more than 65,490 formats",
        swap(STYLES, "</cellXfs>", '<xf numFmtId="0" fontId="0" fillId="0" borderId="0"/>' * 65_490 + "</cellXfs>"),
    ),
    Fault(
        book.styles,
        "a format of no font",
        swap(STYLES, "</cellXfs>", '<xf numFmtId="0" fontId="999" fillId="0" borderId="0"/></cellXfs>'),
    ),
    Fault(
        book.styles,
        "a number format of 256 characters",
        swap(STYLES, 'formatCode="[^"]*"', f'formatCode="{"0" * 256}"'),
    ),
    Fault(book.styles, "a conditional format of no style", put(conditional("A1", "A1", style=999))),
    Fault(book.shared_strings, "32,768 characters", swap(STRINGS, "<t>[^<]+</t>", f"<t>{'A' * 32_768}</t>")),
    Fault(book.shared_strings, "a wrong count", swap(STRINGS, 'uniqueCount="\\d+"', 'uniqueCount="1"')),
    Fault(book.sizes, "a wide column", put('<cols><col min="1" max="1" width="256"/></cols>')),
    Fault(
        book.sizes,
        "columns that overlap",
        put('<cols><col min="1" max="3" width="9"/><col min="2" max="4" width="9"/></cols>'),
    ),
    Fault(book.sizes, "a high row", put('<row r="9001" ht="410"/>', "</sheetData>")),
]

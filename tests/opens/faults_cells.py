"""Faults of cells and formulas, each with the rule that has to find it."""

from __future__ import annotations

import rules_cells as cells
from damage import Fault, put, put_cell, put_date, put_formula, put_shared

FAULTS = [
    Fault(cells.places, "a row before its place", put('<row r="1"><c r="A1"/></row>', "</sheetData>")),
    Fault(cells.places, "a cell in another row", put('<row r="9001"><c r="A9000"/></row>', "</sheetData>")),
    Fault(cells.places, "cells in disorder", put('<row r="9001"><c r="B9001"/><c r="A9001"/></row>', "</sheetData>")),
    Fault(cells.places, "a column beyond the last", put('<row r="9001"><c r="XFE9001"/></row>', "</sheetData>")),
    *(
        Fault(cells.values, f"the number {text}", put_cell(f"<v>{text}</v>"))
        for text in ("nan", "inf", "", "1_0", "12:30")
    ),
    Fault(cells.values, "text as a number", put_cell("<v>none fits</v>")),
    Fault(cells.values, "text without its type", put_cell("<f>1</f><v>-</v>")),
    Fault(cells.values, "a text beside no formula", put_cell("<v>-</v>", ' t="str"')),
    Fault(cells.values, "an empty text of a formula", put_cell("<f>1</f><v></v>", ' t="str"')),
    Fault(cells.values, "a formula's 32,768 characters", put_cell(f"<f>1</f><v>{'A' * 32_768}</v>", ' t="str"')),
    Fault(cells.values, "no cached value", put_cell("<f>1</f>")),
    Fault(cells.values, "a shared string of none", put_cell("<v>99999</v>", ' t="s"')),
    Fault(cells.values, "a truth value of 2", put_cell("<v>2</v>", ' t="b"')),
    Fault(cells.values, "an unknown error", put_cell("<v>Err:509</v>", ' t="e"')),
    Fault(cells.values, "a dynamic array", put_cell("<v>1</v>", ' cm="1"')),
    Fault(cells.values, "a date beyond 9999", put_date(2_958_466)),
    Fault(cells.formulas, "8,193 characters", put_formula("1" + "+1" * 4_096)),
    Fault(cells.formulas, "a text of 256 characters", put_formula(f'IF(1,"{"A" * 256}",1)')),
    Fault(cells.formulas, "a sign of equality", put_formula("=1")),
    Fault(cells.formulas, "65 levels", put_formula("IF(" * 65 + "1" + ",1,1)" * 65)),
    Fault(cells.formulas, "256 arguments", put_formula("SUM(" + "1," * 255 + "1)")),
    Fault(cells.formulas, "a bracket that does not close", put_formula("SUM(1")),
    Fault(cells.formulas, "a bracket that nothing opened", put_formula("SUM(1))")),
    Fault(cells.formulas, "a text that does not close", put_formula('SUM(1)&amp;"a')),
    Fault(cells.formulas, "a newer function", put_formula("_xlfn.XLOOKUP(1,A1:A2,B1:B2)")),
    Fault(cells.formulas, "a filter", put_formula("_xlfn._xlws.FILTER(A1:A2,B1:B2)")),
    *(
        Fault(cells.formulas, f"the volatile {name}", put_formula(f"{name}(A1,1,1)"))
        for name in ("OFFSET", "INDIRECT", "NOW", "TODAY", "RAND", "RANDBETWEEN", "CELL", "INFO")
    ),
    *(
        Fault(cells.formulas, f"the outgoing {name}", put_formula(f'{name}("x")'))
        for name in ("WEBSERVICE", "HYPERLINK")
    ),
    Fault(cells.formulas, "another workbook", put_formula("[1]Inputs!A1")),
    Fault(cells.formulas, "a DDE call", put_formula("cmd|'/C calc'!A0")),
    Fault(cells.formulas, "a deleted cell", put_formula("#REF!+1")),
    Fault(cells.formulas, "a sheet that is gone", put_formula("Nowhere!A1")),
    Fault(cells.formulas, "a name that is gone", put_formula("in_nothing+1")),
    Fault(cells.formulas, "a row beyond the last", put_formula("A1048577")),
    Fault(cells.formulas, "an array over two cells", put_cell('<f t="array" ref="A9001:A9002">1</f><v>1</v>')),
    Fault(
        cells.shared_formulas, "another sheet", put_shared('<f t="shared" ref="A9001:B9001" si="9">Models!$Q$5+A1</f>')
    ),
    Fault(
        cells.shared_formulas, "an array constant", put_shared('<f t="shared" ref="A9001:B9001" si="9">SUM({1,2})</f>')
    ),
    Fault(
        cells.shared_formulas,
        "a range of functions",
        put_shared('<f t="shared" ref="A9001:B9001" si="9">SUM(INDEX(A1:A9,1):INDEX(A1:A9,2))</f>'),
    ),
    Fault(cells.shared_formulas, "a follower out of reach", put_shared('<f t="shared" ref="A9001" si="9">A1</f>')),
    Fault(
        cells.shared_formulas,
        "a follower of nothing",
        put_shared('<f t="shared" ref="A9001:B9001" si="9">A1</f>', '<f t="shared" si="999"/>'),
    ),
    Fault(
        cells.shared_formulas,
        "a first cell that is not the corner",
        put_shared('<f t="shared" ref="A9000:B9001" si="9">A1</f>'),
    ),
    Fault(
        cells.shared_formulas,
        "one number twice",
        put_shared('<f t="shared" ref="A9001" si="9">A1</f>', '<f t="shared" ref="B9001" si="9">A1</f>'),
    ),
    Fault(
        cells.shared_formulas,
        "areas that overlap",
        put_shared('<f t="shared" ref="A9001:B9001" si="9">A1</f>', '<f t="shared" ref="B9001" si="10">A1</f>'),
    ),
]

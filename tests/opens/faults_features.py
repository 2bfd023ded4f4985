"""Faults of what lies over the cells, each with the rule that has to find it."""

from __future__ import annotations

import rules_features as features
from damage import Fault, both, conditional, put, put_pane, put_table, swap, validation

FAULTS = [
    Fault(
        features.merged_cells,
        "an overlap",
        put('<mergeCells><mergeCell ref="A1:B2"/><mergeCell ref="B2:C3"/></mergeCells>'),
    ),
    Fault(features.merged_cells, "a place that is none", put('<mergeCells><mergeCell ref="1A:2B"/></mergeCells>')),
    Fault(features.merged_cells, "one cell", put('<mergeCells><mergeCell ref="A1"/></mergeCells>')),
    Fault(features.data_validations, "a list of 256 characters", put(validation("Z1", f'"{"a," * 128}"'))),
    Fault(features.data_validations, "a list of nothing", put(validation("Z1", "in_nothing"))),
    Fault(features.data_validations, "no place", put(validation("", '"a,b"'))),
    Fault(
        features.data_validations,
        "two of one cell",
        both(put(validation("Z1:Z3", '"a"')), put(validation("Z2", '"a"'))),
    ),
    Fault(features.data_validations, "a long message", put(validation("Z1", '"a"', f' prompt="{"A" * 256}"'))),
    Fault(features.data_validations, "a long title", put(validation("Z1", '"a"', f' errorTitle="{"A" * 33}"'))),
    Fault(
        features.data_validations, "a wrong count", put(validation("Z1", '"a"', count=2), sheet="Sources and checks")
    ),
    Fault(features.conditional_formats, "no place", put(conditional("A0", "A1"))),
    Fault(features.conditional_formats, "another sheet", put(conditional("A1", "Models!$A$1"))),
    Fault(features.conditional_formats, "one priority twice", put(conditional("A1", "1") + conditional("A2", "1"))),
    Fault(features.conditional_formats, "a deleted cell", put(conditional("A1", "#REF!"))),
    Fault(features.notes, "a note with no shape", swap("xl/drawings/vmlDrawing1.vml", "<v:shape .*?</v:shape>", "")),
    Fault(features.notes, "a shape with no note", swap("xl/comments1.xml", "<comment .*?</comment>", "")),
    Fault(features.notes, "a note of no author", swap("xl/comments1.xml", 'authorId="0"', 'authorId="7"')),
    Fault(features.notes, "an empty note", swap("xl/comments1.xml", "<t[^>]*>[^<]+</t>", "<t></t>")),
    Fault(features.notes, "a drawing for none", put('<legacyDrawing r:id="rId1"/>')),
    Fault(
        features.heads_and_feet,
        "256 characters",
        put(f"<headerFooter><oddFooter>{'A' * 256}</oddFooter></headerFooter>"),
    ),
    Fault(
        features.heads_and_feet, "an unknown code", put("<headerFooter><oddFooter>R&amp;d</oddFooter></headerFooter>")
    ),
    Fault(features.panes, "one that scrolls into the frozen part", put_pane(0, 4, "A2", "bottomLeft", "frozen")),
    Fault(features.panes, "another pane at work", put_pane(0, 4, "A5", "topRight", "frozen")),
    Fault(features.panes, "a split that is not frozen", put_pane(1200, 900, "B5", "bottomRight", "split")),
    Fault(features.links, "to no sheet", put('<hyperlinks><hyperlink ref="A1" location="Nowhere!A1"/></hyperlinks>')),
    Fault(
        features.links,
        "65,531 of them",
        put("<hyperlinks>" + '<hyperlink ref="A1" location="in_as_of"/>' * 65_531 + "</hyperlinks>"),
    ),
    Fault(
        features.charts,
        "a series of no sheet",
        swap("xl/charts/chart1.xml", "<c:f>[^<]*</c:f>", "<c:f>Nowhere!$A$1</c:f>"),
    ),
    Fault(
        features.charts,
        "more cached values than cells",
        swap("xl/charts/chart1.xml", "</c:numCache>", '<c:pt idx="9"><c:v>1</c:v></c:pt>' * 9 + "</c:numCache>"),
    ),
    Fault(features.folds, "of a protected sheet", put('<sheetProtection sheet="1"/>')),
    Fault(features.filters_and_tables, "a filter of one cell", put('<autoFilter ref="A1"/>')),
    Fault(features.filters_and_tables, "a table whose heads read otherwise", put_table("one", "two")),
    Fault(features.filters_and_tables, "a table with a name that is taken", put_table("one", "two", "in_as_of")),
]

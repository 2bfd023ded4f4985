"""Excel's rules for what lies over the cells: merges, validations, formats, notes, print, panes, links, charts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from package import CHART, MAIN, REL, VML_EXCEL, WORKBOOK, Box, Element, Package, Sheet, box, sheet_of
from rules_cells import formula_fault
from rules_workbook import MOST_CHARACTERS, split_areas

MOST_OF_A_LIST, MOST_OF_A_MESSAGE, MOST_OF_A_TITLE, MOST_OF_A_FOOTER = 255, 255, 32, 255
MOST_LINKS = 65_530
VML_SHAPE = "{urn:schemas-microsoft-com:vml}shape"


def merged_cells(package: Package) -> Iterator[str]:
    for sheet in package.sheets:
        areas: list[Box] = []
        for element in sheet.root.iter(f"{MAIN}mergeCell"):
            area = box(element.get("ref", ""))
            if area is None or area.is_cell:
                yield f"{sheet.name}: merges {element.get('ref')}"
            else:
                yield from (f"{sheet.name}: two merges share {element.get('ref')}" for a in areas if a.overlaps(area))
                areas.append(area)


def _areas(sqref: str | None) -> list[Box] | None:
    places = [box(part) for part in (sqref or "").split()]
    return None if not places or None in places else [p for p in places if p]


def data_validations(package: Package) -> Iterator[str]:
    sheets, names = _known(package)
    for sheet in package.sheets:
        taken: list[Box] = []
        for element in sheet.root.iter(f"{MAIN}dataValidation"):
            place = f"{sheet.name}!{element.get('sqref')}"
            areas = _areas(element.get("sqref"))
            if areas is None:
                yield f"{place}: a validation of no place"
                continue
            if any(a.overlaps(b) for a in areas for b in taken):
                yield f"{place}: two validations of one cell"
            taken += areas
            for key, most in (("prompt", MOST_OF_A_MESSAGE), ("error", MOST_OF_A_MESSAGE)):
                if len(element.get(key, "")) > most or len(element.get(f"{key}Title", "")) > MOST_OF_A_TITLE:
                    yield f"{place}: a message longer than Excel's"
            for formula in element:
                yield from (f"{place}: {fault}" for fault in _validation_faults(formula.text or "", sheets, names))
        counted = sheet.root.find(f"{MAIN}dataValidations")
        if counted is not None and counted.get("count") not in (None, str(len(counted))):
            yield f"{sheet.name}: {counted.get('count')} validations are counted, of {len(counted)}"


def _validation_faults(text: str, sheets: frozenset[str], names: frozenset[str]) -> Iterator[str]:
    literal = re.fullmatch(r'"((?:[^"]|"")*)"', text)
    if len(literal[1] if literal else text) > MOST_OF_A_LIST:
        yield f"a list of {len(text)} characters"
    elif not literal and not re.fullmatch(r"-?[0-9.]+(?:[eE][-+]?[0-9]+)?", text):
        fault = formula_fault(text, sheets, names)
        if fault:
            yield f"{fault} in {text[:60]!r}"


def _known(package: Package) -> tuple[frozenset[str], frozenset[str]]:
    names = frozenset(n.get("name", "").lower() for n in package.xml(WORKBOOK).iter(f"{MAIN}definedName"))
    return frozenset(s.name for s in package.sheets), names


def conditional_formats(package: Package) -> Iterator[str]:
    """Places, priorities, and formulas without what Excel does not take there: other sheets, unions."""
    sheets, names = _known(package)
    for sheet in package.sheets:
        priorities = [r.get("priority", "") for r in sheet.root.iter(f"{MAIN}cfRule")]
        if len(set(priorities)) != len(priorities) or any(not p.isdigit() or p == "0" for p in priorities):
            yield f"{sheet.name}: the priorities of its conditional formats"
        for element in sheet.root.iter(f"{MAIN}conditionalFormatting"):
            place = f"{sheet.name}!{element.get('sqref')}"
            if _areas(element.get("sqref")) is None:
                yield f"{place}: a conditional format of no place"
            for formula in element.iter(f"{MAIN}formula"):
                text = formula.text or ""
                fault = formula_fault(text, sheets, names) or ("another sheet" if "!" in text else "")
                if fault:
                    yield f"{place}: {fault} in ={text[:60]}"


def notes(package: Package) -> Iterator[str]:
    """Every note has its shape in the old drawing beside it, and every shape its note."""
    for sheet in package.sheets:
        parts = package.related(sheet.part, "comments")
        listed = [c for part in parts for c in package.xml(part).iter(f"{MAIN}comment")]
        authors = sum(len(package.xml(part).findall(f"{MAIN}authors/*")) for part in parts)
        places = [c.get("ref", "") for c in listed]
        yield from (f"{sheet.name}!{p}: two notes" for p in set(places) if places.count(p) > 1)
        for entry in listed:
            text = "".join(t.text or "" for t in entry.iter(f"{MAIN}t"))
            if not entry.get("authorId", "").isdigit() or int(entry.get("authorId", "")) >= authors:
                yield f"{sheet.name}!{entry.get('ref')}: a note of author {entry.get('authorId')}"
            if not 0 < len(text) <= MOST_CHARACTERS:
                yield f"{sheet.name}!{entry.get('ref')}: a note of {len(text)} characters"
        shapes = list(_note_shapes(package, sheet))
        if sorted(shapes) != sorted(places):
            yield f"{sheet.name}: {len(places)} notes, {len(shapes)} shapes: {set(places) ^ set(shapes)}"
        if bool(parts) != (sheet.root.find(f"{MAIN}legacyDrawing") is not None):
            yield f"{sheet.name}: notes and no drawing for them, or a drawing for none"


def _note_shapes(package: Package, sheet: Sheet) -> Iterator[str]:
    for part in package.related(sheet.part, "vmlDrawing"):
        for shape in package.xml(part).iter(VML_SHAPE):
            data = shape.find(f"{VML_EXCEL}ClientData")
            if data is not None and data.get("ObjectType") == "Note":
                row, column = (int(data.findtext(f"{VML_EXCEL}{key}", "0")) for key in ("Row", "Column"))
                yield f"{_letters(column + 1)}{row + 1}"


def _letters(column: int) -> str:
    head, last = divmod(column - 1, 26)
    return (_letters(head) if head else "") + chr(65 + last)


def heads_and_feet(package: Package) -> Iterator[str]:
    for sheet in package.sheets:
        for element in sheet.root.iter():
            if re.search(r"\}(odd|even|first)(Header|Footer)$", element.tag):
                text = element.text or ""
                if len(text) > MOST_OF_A_FOOTER:
                    yield f"{sheet.name}: a footer or header of {len(text)} characters"
                if re.search(r"&(?![&LCRPNDTFAZGBIUSEXYHO+\-\"0-9K])", text.replace("&&", "")):
                    yield f"{sheet.name}: an unknown code in {text!r}"


def panes(package: Package) -> Iterator[str]:
    for sheet in package.sheets:
        selected = [v.get("tabSelected") for v in sheet.root.iter(f"{MAIN}sheetView")]
        if len(selected) != 1:
            yield f"{sheet.name}: {len(selected)} views"
        for pane in sheet.root.iter(f"{MAIN}pane"):
            across, down = float(pane.get("xSplit", "0")), float(pane.get("ySplit", "0"))
            corner = box(pane.get("topLeftCell", "A1"))
            expected = "bottomRight" if across and down else "topRight" if across else "bottomLeft"
            frozen = pane.get("state") in ("frozen", "frozenSplit") and (across or down)
            beyond = corner is not None and corner.left > across and corner.top > down
            whole = across.is_integer() and down.is_integer()
            if not (frozen and beyond and whole) or pane.get("activePane") != expected:
                yield f"{sheet.name}: a pane of {across} by {down} at {pane.get('topLeftCell')}"


def links(package: Package) -> Iterator[str]:
    sheets, names = _known(package)
    for sheet in package.sheets:
        listed = list(sheet.root.iter(f"{MAIN}hyperlink"))
        if len(listed) > MOST_LINKS:
            yield f"{sheet.name}: {len(listed)} links"
        for entry in listed:
            cell_place, location = f"{sheet.name}!{entry.get('ref')}", entry.get("location")
            if box(entry.get("ref", "")) is None or len(entry.get("tooltip", "")) > 255:
                yield f"{cell_place}: a link of no place, or a tip longer than Excel's"
            if entry.get(f"{REL}id") is None:
                to, place = sheet_of(location or "")
                if not (to in sheets and box(place)) and (location or "").lower() not in names:
                    yield f"{cell_place}: a link to {location}"


def charts(package: Package) -> Iterator[str]:
    """A chart's series lie on sheets that are there, with a cached value for each cell."""
    sheets, _ = _known(package)
    for name in package.parts:
        if not re.fullmatch(r"xl/charts/chart\d+\.xml", name):
            continue
        for element in package.xml(name).iter():
            formula = element.find(f"{CHART}f")
            if formula is None:
                continue
            for area in split_areas(formula.text or ""):
                sheet, place = sheet_of(area)
                corner = box(place)
                if sheet not in sheets or corner is None:
                    yield f"{name}: a series of {formula.text}"
                elif not _cached(element) <= (corner.right - corner.left + 1) * (corner.bottom - corner.top + 1):
                    yield f"{name}: {_cached(element)} cached values of {formula.text}"


def _cached(series: Element) -> int:
    return len(list(series.iter(f"{CHART}pt")))


def filters_and_tables(package: Package) -> Iterator[str]:
    """A filter or a table covers its own heads: a table's column names are its cells' texts, all different."""
    texts = package.strings()
    seen = {n.get("name", "").lower() for n in package.xml(WORKBOOK).iter(f"{MAIN}definedName")}
    for sheet in package.sheets:
        filtered = sheet.root.find(f"{MAIN}autoFilter")
        if filtered is not None and (box(filtered.get("ref", "")) or Box(1, 1, 1, 1)).is_cell:
            yield f"{sheet.name}: a filter over {filtered.get('ref')}"
        taken: list[Box] = []
        for part in package.related(sheet.part, "table"):
            table = package.xml(part)
            area, name = box(table.get("ref", "")), table.get("displayName", "").lower()
            columns = [c.get("name", "") for c in table.iter(f"{MAIN}tableColumn")]
            if area is None or name in seen or any(area.overlaps(a) for a in taken):
                yield f"{sheet.name}: table {name} over {table.get('ref')}"
                continue
            seen.add(name)
            taken.append(area)
            cells = {c.get("r"): c for c in sheet.root.iter(f"{MAIN}c")}
            heads = [cells.get(f"{_letters(i)}{area.top}") for i in range(area.left, area.right + 1)]
            shown = [
                texts[int(h.findtext(f"{MAIN}v", "0"))] if h is not None and h.get("t") == "s" else "" for h in heads
            ]
            if columns != shown or len({c.lower() for c in columns}) != len(columns):
                yield f"{sheet.name}: table {name} has columns {columns}, and its heads are {shown}"


def folds(package: Package) -> Iterator[str]:
    """Rows that are folded away: the sheet says how deep, and nothing opens a fold of a protected one."""
    for sheet in package.sheets:
        levels = [int(row.get("outlineLevel", "0")) for row in sheet.root.iter(f"{MAIN}row")]
        sheet_format = sheet.root.find(f"{MAIN}sheetFormatPr")
        deepest = 0 if sheet_format is None else int(sheet_format.get("outlineLevelRow", "0"))
        if max(levels, default=0) != deepest:
            yield f"{sheet.name}: rows are folded to level {max(levels, default=0)}, the sheet says {deepest}"
        if deepest and sheet.root.find(f"{MAIN}sheetProtection") is not None:
            yield f"{sheet.name}: folded and protected"


RULES = (
    merged_cells,
    data_validations,
    conditional_formats,
    notes,
    heads_and_feet,
    panes,
    links,
    charts,
    filters_and_tables,
    folds,
)

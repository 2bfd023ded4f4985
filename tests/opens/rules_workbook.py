"""Excel's rules for a workbook's sheets, defined names, styles and shared strings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from package import MAIN, ROWS, WORKBOOK, Package, box, sheet_of

MOST_CELL_FORMATS, MOST_FONTS = 65_490, 1_024
MOST_CHARACTERS = 32_767  # of a cell's text
BUILT_IN_FORMATS = 164  # numbers below are Excel's own
NAME = re.compile(r"[A-Za-z_\\][A-Za-z0-9_.\\]{0,254}")
CELL_LIKE = re.compile(r"[A-Za-z]{1,3}[0-9]{1,7}|[Rr][0-9]*|[Cc][0-9]*|[Rr][0-9]*[Cc][0-9]*|TRUE|FALSE", re.IGNORECASE)
PRINT_AREA, PRINT_TITLES = "_xlnm.Print_Area", "_xlnm.Print_Titles"
BUILT_IN_NAMES = {PRINT_AREA, PRINT_TITLES, "_xlnm._FilterDatabase"}


def sheet_names(package: Package) -> Iterator[str]:
    listed = list(package.xml(WORKBOOK).iter(f"{MAIN}sheet"))
    for entry in listed:
        name = entry.get("name", "")
        if not 1 <= len(name) <= 31:
            yield f"sheet {name!r}: {len(name)} characters"
        if re.search(r"[\[\]:*?/\\\x00-\x1f]", name) or name.startswith("'") or name.endswith("'"):
            yield f"sheet {name!r}: a character that Excel does not allow"
        if name.lower() == "history":
            yield f"sheet {name!r}: Excel keeps this name to itself"
    for key in ("name", "sheetId"):
        values = [s.get(key, "").lower() for s in listed]
        yield from (f"two sheets have the {key} {v!r}" for v in set(values) if values.count(v) > 1)
    if all(s.get("state", "visible") != "visible" for s in listed):
        yield "no sheet is visible"
    if len(package.sheets) != len(listed):
        yield "a sheet has no part"


def defined_names(package: Package) -> Iterator[str]:
    sheets = {s.name for s in package.sheets}
    seen = set()
    for element in package.xml(WORKBOOK).iter(f"{MAIN}definedName"):
        name, scope = element.get("name", ""), element.get("localSheetId")
        if (name.lower(), scope) in seen:
            yield f"the name {name} is defined twice"
        seen.add((name.lower(), scope))
        legal = name in BUILT_IN_NAMES or (NAME.fullmatch(name) and not CELL_LIKE.fullmatch(name))
        if not legal:
            yield f"{name!r} is no name in Excel"
        if scope is not None and not (scope.isdigit() and int(scope) < len(package.sheets)):
            yield f"the name {name} belongs to sheet {scope}, which is not there"
        for part in split_areas(element.text or ""):
            sheet, place = sheet_of(part)
            if sheet not in sheets or box(place) is None:
                yield f"the name {name} stands for {part!r}"


def split_areas(text: str) -> list[str]:
    """The areas of a reference, parted by commas outside quotes."""
    return [m[0] for m in re.finditer(r"(?:'(?:[^']|'')*'|[^,'])+", text)] or [""]


def print_areas_and_titles(package: Package) -> Iterator[str]:
    for element in package.xml(WORKBOOK).iter(f"{MAIN}definedName"):
        name, scope = element.get("name", ""), element.get("localSheetId")
        if name not in (PRINT_AREA, PRINT_TITLES):
            continue
        if scope is None or not scope.isdigit() or int(scope) >= len(package.sheets):
            yield f"{name}: belongs to no sheet"
            continue
        own = package.sheets[int(scope)]
        for part in split_areas(element.text or ""):
            sheet, place = sheet_of(part)
            if sheet != own.name:
                yield f"{own.name}: {name} is {part}, on another sheet"
            elif name == PRINT_TITLES and not re.fullmatch(r"\$[A-Z]+:\$[A-Z]+|\$\d+:\$\d+", place):
                yield f"{own.name}: {name} is {part}, neither whole rows nor whole columns"


def styles(package: Package) -> Iterator[str]:
    root = package.xml("xl/styles.xml")
    counts = {kind: len(root.findall(f"{MAIN}{kind}/*")) for kind in ("fonts", "fills", "borders", "cellXfs", "dxfs")}
    if counts["cellXfs"] > MOST_CELL_FORMATS or counts["fonts"] > MOST_FONTS:
        yield f"{counts['cellXfs']} cell formats and {counts['fonts']} fonts"
    formats = {f.get("numFmtId") for f in root.iter(f"{MAIN}numFmt")}
    for form in root.findall(f"{MAIN}cellXfs/*"):
        for key, kind in (("fontId", "fonts"), ("fillId", "fills"), ("borderId", "borders")):
            if int(form.get(key, "0")) >= counts[kind]:
                yield f"a cell format uses {key} {form.get(key)}, of {counts[kind]}"
        number = form.get("numFmtId", "0")
        if int(number) >= BUILT_IN_FORMATS and number not in formats:
            yield f"a cell format uses number format {number}, which is not there"
    yield from (
        f"a number format of {len(f.get('formatCode', ''))} characters"
        for f in root.iter(f"{MAIN}numFmt")
        if not 1 <= len(f.get("formatCode", "")) <= 255
    )
    for sheet, cell in package.cells():
        if int(cell.get("s", "0")) >= counts["cellXfs"]:
            yield f"{sheet.name}!{cell.get('r')}: style {cell.get('s')} of {counts['cellXfs']}"
    for sheet in package.sheets:
        for rule in sheet.root.iter(f"{MAIN}cfRule"):
            if int(rule.get("dxfId", "0")) >= max(1, counts["dxfs"]):
                yield f"{sheet.name}: a conditional format uses style {rule.get('dxfId')} of {counts['dxfs']}"


def shared_strings(package: Package) -> Iterator[str]:
    texts = package.strings()
    for text in texts:
        # Excel counts in UTF-16.
        if len(text.encode("utf-16-le")) // 2 > MOST_CHARACTERS:
            yield f"a text of {len(text)} characters: {text[:30]!r}"
    if len(set(texts)) != len(texts):
        yield "a shared string stands there twice"
    uses = sum(cell.get("t") == "s" for _, cell in package.cells())
    if texts:
        table = package.xml("xl/sharedStrings.xml")
        if table.get("uniqueCount") != str(len(texts)) or table.get("count") != str(uses):
            counts = f"{table.get('count')} uses of {table.get('uniqueCount')}"
            yield f"the shared strings say {counts}, and are {uses} uses of {len(texts)}"


def sizes(package: Package) -> Iterator[str]:
    for sheet in package.sheets:
        last = 0
        for column in sheet.root.iter(f"{MAIN}col"):
            first, end, width = (
                int(column.get("min", "0")),
                int(column.get("max", "0")),
                float(column.get("width", "0")),
            )
            if not last < first <= end <= 16_384 or not 0 <= width <= 255:
                yield f"{sheet.name}: columns {first} to {end} of width {width}"
            last = end
        for row in sheet.root.iter(f"{MAIN}row"):
            if not 0 <= float(row.get("ht", "0")) <= 409.5:
                yield f"{sheet.name}: row {row.get('r')} is {row.get('ht')} points high"
        for breaks in ("rowBreaks", "colBreaks"):
            breaks_ = [int(b.get("id", "0")) for b in sheet.root.findall(f"{MAIN}{breaks}/*")]
            if len(breaks_) > 1_026 or breaks_ != sorted(set(breaks_)) or any(not 0 < i < ROWS for i in breaks_):
                yield f"{sheet.name}: {breaks} at {breaks_[:5]}"


RULES = (sheet_names, defined_names, print_areas_and_titles, styles, shared_strings, sizes)

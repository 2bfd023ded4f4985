"""Excel's rules for cells: places in order, values of their type, formulas that it can read."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator

from package import MAIN, WORKBOOK, Box, Element, Package, Sheet, box
from recalculation import ALLOWED_FUNCTIONS
from rules_workbook import MOST_CHARACTERS

MOST_OF_A_FORMULA, MOST_OF_A_LITERAL, MOST_LEVELS, MOST_ARGUMENTS = 8_192, 255, 64, 255
LAST_DAY = 2_958_465  # 9999-12-31
ERRORS = {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"}
_STRING, _SHEET = re.compile(r'"(?:[^"]|"")*"'), re.compile(r"('(?:[^']|'')+'|[A-Za-z_][\w.]*)!")
_WORD = re.compile(r"(?<![\w.$!])[A-Za-z_\\][\w.\\]*(?![\w.(!])")
_REFERENCE = re.compile(r"(?<![\w.])\$?[A-Z]{1,3}\$?[0-9]+(?::\$?[A-Z]{1,3}\$?[0-9]+)?(?![\w(])")


def places(package: Package) -> Iterator[str]:
    for sheet in package.sheets:
        last_row = 0
        for row in sheet.root.iter(f"{MAIN}row"):
            number, last_column = int(row.get("r", "0")), 0
            if number <= last_row:
                yield f"{sheet.name}: row {number} after row {last_row}"
            last_row = number
            for cell in row:
                place = box(cell.get("r", ""))
                if place is None or not place.is_cell or place.top != number or place.left <= last_column:
                    yield f"{sheet.name}: cell {cell.get('r')} in row {number}, after column {last_column}"
                else:
                    last_column = place.left


def values(package: Package) -> Iterator[str]:
    n_strings, dated = len(package.strings()), _date_styles(package)
    for sheet, cell in package.cells():
        wrong = _value_fault(cell, n_strings, dated)
        if wrong:
            yield f"{sheet.name}!{cell.get('r')}: {wrong}"
        if cell.get("cm") or cell.get("vm"):
            yield f"{sheet.name}!{cell.get('r')}: a dynamic array or a rich value, unknown to Excel 2016"


def _date_styles(package: Package) -> set[str]:
    """The cell formats that show a number as a date."""
    root = package.xml("xl/styles.xml")
    codes = {f.get("numFmtId"): f.get("formatCode", "") for f in root.iter(f"{MAIN}numFmt")}
    dated = {i for i, code in codes.items() if re.search(r"[ymd]", re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", code))}
    dated |= {str(i) for i in (*range(14, 23), *range(45, 48))}
    return {str(i) for i, form in enumerate(root.findall(f"{MAIN}cellXfs/*")) if form.get("numFmtId") in dated}


def _value_fault(cell: Element, n_strings: int, dated: set[str]) -> str:
    kind, text, formula = cell.get("t", "n"), cell.findtext(f"{MAIN}v"), cell.find(f"{MAIN}f")
    if text is None:
        return "a formula without a cached value" if formula is not None else ""
    if kind == "n":
        try:
            number = float(text)
        except ValueError:
            return f"the number is {text[:40]!r}"
        if not math.isfinite(number) or not re.fullmatch(r"[-+0-9.eE]+", text):
            return f"the number is {text!r}"
        if cell.get("s") in dated and not 0 <= number <= LAST_DAY:
            return f"the date is day {text}"
    elif kind == "s":
        if formula is not None or not text.isdigit() or int(text) >= n_strings:
            return f"shared string {text!r} of {n_strings}"
    elif kind == "b":
        return "" if text in ("0", "1") else f"the truth value is {text!r}"
    elif kind == "e":
        return "" if text in ERRORS else f"the error is {text!r}"
    elif kind != "str" or formula is None:
        return f"a cell of type {kind}"
    elif len(text) > MOST_CHARACTERS or text == "":
        return f"a formula's text of {len(text)} characters"
    return ""


def formulas(package: Package) -> Iterator[str]:
    sheets = frozenset(s.name for s in package.sheets)
    names = frozenset(n.get("name", "").lower() for n in package.xml(WORKBOOK).iter(f"{MAIN}definedName"))
    for sheet, cell in package.cells():
        formula = cell.find(f"{MAIN}f")
        if formula is None or (formula.get("t") == "shared" and formula.text is None):
            continue
        wrong = formula_fault(formula.text or "", sheets, names)
        if wrong:
            yield f"{sheet.name}!{cell.get('r')}: {wrong} in ={(formula.text or '')[:120]}"
        if formula.get("t") not in (None, "shared", "array"):
            yield f"{sheet.name}!{cell.get('r')}: a formula of type {formula.get('t')}"
        if formula.get("t") == "array" and formula.get("ref") != cell.get("r"):
            yield f"{sheet.name}!{cell.get('r')}: an array formula over {formula.get('ref')}"


@functools.lru_cache(maxsize=100_000)
def formula_fault(text: str, sheets: frozenset[str], names: frozenset[str]) -> str:
    """The fault of one formula, or ""."""
    if not text or text.startswith("=") or len(text) > MOST_OF_A_FORMULA:
        return f"{len(text)} characters, or a sign of equality"
    if any(len(s) - 2 > MOST_OF_A_LITERAL for s in _STRING.findall(text)):
        return f"a text of more than {MOST_OF_A_LITERAL} characters"
    bare = _STRING.sub('""', text)
    for sheet in _SHEET.findall(bare):
        if sheet.strip("'").replace("''", "'") not in sheets:
            return f"no sheet {sheet}"
    bare = _SHEET.sub("", bare)
    if re.search(r"[\[\]{}#@]|_xl", bare):
        return "a link outside, an array constant, an error or a newer function"
    unknown = set(re.findall(r"[A-Za-z_][\w.]*(?=\()", bare)) - ALLOWED_FUNCTIONS
    if unknown:
        return f"the function {min(unknown)}"
    if any(box(reference) is None for reference in _REFERENCE.findall(bare)):
        return "a place that no sheet has"
    for word in _WORD.findall(_REFERENCE.sub("", bare)):
        if word.lower() not in names and word not in ("TRUE", "FALSE") and not re.fullmatch(r"[eE]\d*", word):
            return f"the name {word}"
    return _shape_fault(re.sub(r"[^(),\"]+", "x", bare))


@functools.cache
def _shape_fault(skeleton: str) -> str:
    """Brackets that do not close, too many levels or arguments. One skeleton stands for many formulas."""
    arguments, deepest = [0], 0
    for sign in skeleton:
        if sign == "(":
            arguments.append(1)
        elif sign == ")":
            arguments.pop()
        elif sign == ",":
            arguments[-1] += 1
        if not arguments or arguments[-1] > MOST_ARGUMENTS:
            return "too many arguments, or a bracket that nothing opened"
        deepest = max(deepest, len(arguments) - 1)
    if len(arguments) != 1 or deepest > MOST_LEVELS:
        return f"{deepest} levels of brackets, or a bracket that nothing closes"
    return "a text that does not close" if skeleton.count('"') % 2 else ""


def shared_formulas(package: Package) -> Iterator[str]:
    """A first cell with the text, followers with its number in its area; nothing that Excel refuses to share.

    Excel knows no reference to another sheet in a shared formula, absolute or not: newer versions call such a
    workbook corrupt (EPPlus issues 213 and 253, ImportExcel 906), older ones fail when it is saved (EPPlus 92).
    [MS-XLSB] 2.5.98.98 forbids it, and unions, intersections, array constants and errors.
    """
    for sheet in package.sheets:
        yield from (f"{sheet.name}: {fault}" for fault in _shared_faults(sheet))


def _shared_faults(sheet: Sheet) -> Iterator[str]:
    areas: dict[str, Box] = {}
    for cell in sheet.root.iter(f"{MAIN}c"):
        formula = cell.find(f"{MAIN}f")
        if formula is None or formula.get("t") != "shared":
            continue
        place, number, text = box(cell.get("r", "")), formula.get("si", ""), formula.text
        if place is None or not number.isdigit():
            yield f"{cell.get('r')} shares formula {number!r}"
            continue
        if text is not None:
            area = box(formula.get("ref", ""))
            if number in areas or area is None or (area.left, area.top) != (place.left, place.top):
                yield f"{cell.get('r')} starts shared formula {number} over {formula.get('ref')}"
            elif any(area.overlaps(other) for other in areas.values()):
                yield f"shared formula {number} lies over another one"
            areas[number] = area or place
            bare = _STRING.sub('""', text)
            if re.search(r"[!\[\]{}#]|\)\s*:|:\s*[A-Z]+\(|[\w)]\s+[\w(]", bare):
                yield f"{cell.get('r')} shares what Excel cannot share: ={text[:120]}"
        elif number not in areas or not areas[number].holds(place.left, place.top):
            yield f"{cell.get('r')} follows shared formula {number}, which does not reach it"


RULES = (places, values, formulas, shared_formulas)

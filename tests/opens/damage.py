"""Tools to damage a workbook in one way, in the text of its parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from package import CONTENT_TYPES, OFFICE_TYPE, WORKBOOK, Package, Parts

Damage = Callable[[Parts], None]
STYLES, STRINGS = "xl/styles.xml", "xl/sharedStrings.xml"
TYPE = "application/vnd.openxmlformats-officedocument."
MAIN_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


class Fault(NamedTuple):
    """One way to damage a workbook, and the rule that has to find it."""

    rule: Any
    description: str
    damage: Damage

    def __str__(self) -> str:
        return f"{self.rule.__name__}: {self.description}"


def swap(part: str, old: str, new: str) -> Damage:
    """The first place of `part` that the pattern finds, replaced."""

    def damage(parts: Parts) -> None:
        text, n = re.subn(old, new, parts[part].decode(), count=1, flags=re.DOTALL)
        assert n == 1 and text != parts[part].decode(), f"{part} holds no {old!r} to damage"
        parts[part] = text.encode()

    return damage


def sheet_part(parts: Parts, sheet: str = "Inputs") -> str:
    return next(s.part for s in Package(parts).sheets if s.name == sheet)


def put(xml: str, before: str = "</worksheet>", sheet: str = "Inputs") -> Damage:
    """Something more on a sheet."""

    def damage(parts: Parts) -> None:
        swap(sheet_part(parts, sheet), re.escape(before), (xml + before).replace("\\", "\\\\"))(parts)

    return damage


def put_cell(inside: str, attributes: str = "") -> Damage:
    """One more cell, far below the others, with this inside."""
    return put(f'<row r="9001"><c r="A9001"{attributes}>{inside}</c></row>', "</sheetData>")


def put_formula(text: str) -> Damage:
    return put_cell(f"<f>{text}</f><v>1</v>")


def put_shared(first: str, second: str = '<f t="shared" si="9"/>') -> Damage:
    """Two cells that share a formula."""
    return put(f'<row r="9001"><c r="A9001">{first}<v>1</v></c><c r="B9001">{second}<v>1</v></c></row>', "</sheetData>")


def put_part(name: str, data: str, content_type: str = "", owner: str = WORKBOOK, kind: str = "") -> Damage:
    """One more part, with its type and who refers to it."""

    def damage(parts: Parts) -> None:
        parts[name] = data.encode()
        if content_type:
            swap(CONTENT_TYPES, "</Types>", f'<Override PartName="/{name}" ContentType="{content_type}"/></Types>')(
                parts
            )
        if kind:
            put_relation(owner, kind, f"/{name}")(parts)

    return damage


def put_relation(owner: str, kind: str, target: str, mode: str = "", of_sheet: str = "", id: str = "rId901") -> Damage:
    def damage(parts: Parts) -> None:
        folder, _, base = (sheet_part(parts, of_sheet) if of_sheet else owner).rpartition("/")
        rels = f"{folder}/_rels/{base}.rels"
        relation = f'<Relationship Id="{id}" Type="{OFFICE_TYPE}{kind}" Target="{target}"{mode}/>'
        empty = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"></Relationships>'
        parts.setdefault(rels, empty.encode())
        swap(rels, "</Relationships>", f"{relation}</Relationships>")(parts)

    return damage


def drop(name: str) -> Damage:
    def damage(parts: Parts) -> None:
        del parts[name]

    return damage


def both(*damages: Damage) -> Damage:
    def damage(parts: Parts) -> None:
        for damage in damages:
            damage(parts)

    return damage


def put_name(name: str, text: str, more: str = "") -> Damage:
    return swap(WORKBOOK, "</definedNames>", f'<definedName name="{name}"{more}>{text}</definedName></definedNames>')


def put_table(first: str, second: str, name: str = "Table1") -> Damage:
    """A table with these columns over cells of Inputs that read otherwise."""
    columns = f'<tableColumn id="1" name="{first}"/><tableColumn id="2" name="{second}"/>'
    table = (
        f'<table xmlns="{MAIN_NAMESPACE}" id="1" name="{name}" displayName="{name}" ref="A4:B9">'
        f'<tableColumns count="2">{columns}</tableColumns></table>'
    )

    def damage(parts: Parts) -> None:
        put_part("xl/tables/table1.xml", table, f"{TYPE}spreadsheetml.table+xml", sheet_part(parts), "table")(parts)

    return damage


def put_pane(across: int, down: int, corner: str, active: str, state: str) -> Damage:
    """Another pane on Checks."""
    pane = f'<pane xSplit="{across}" ySplit="{down}" topLeftCell="{corner}" activePane="{active}" state="{state}"/>'

    def damage(parts: Parts) -> None:
        view = r"<sheetView ([^>]*?)/?>(.*?</sheetView>)?"
        swap(sheet_part(parts, "Sources and checks"), view, rf"<sheetView \1>{pane}</sheetView>")(parts)

    return damage


def put_date(day: int) -> Damage:
    """A cell that shows this day as a date."""

    def damage(parts: Parts) -> None:
        formats = re.findall("<cellXfs.*</cellXfs>", parts[STYLES].decode(), re.DOTALL)[0].count("<xf ")
        swap(STYLES, "</cellXfs>", '<xf numFmtId="14"/></cellXfs>')(parts)
        put_cell(f"<v>{day}</v>", f' s="{formats}"')(parts)

    return damage


def validation(place: str, formula: str, more: str = "", kind: str = "list", count: int = 1) -> str:
    """The XML of a data validation."""
    rule = f'<dataValidation type="{kind}" sqref="{place}"{more}><formula1>{formula}</formula1></dataValidation>'
    return f'<dataValidations count="{count}">{rule}</dataValidations>'


def conditional(place: str, formula: str, priority: int = 901, style: int = 0) -> str:
    """The XML of a conditional format."""
    rule = f'<cfRule type="expression" dxfId="{style}" priority="{priority}"><formula>{formula}</formula></cfRule>'
    return f'<conditionalFormatting sqref="{place}">{rule}</conditionalFormatting>'

"""Rules of a package: every part known, typed and reached, nothing that runs, embeds or calls outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from package import CONTENT_TYPES, REL, WORKBOOK, Package

# All that our workbook is made of. Macros, external links, OLE objects, ActiveX, data connections, query tables,
# custom XML and embedded files have other types.
_OPEN, _SHEET = "application/vnd.openxmlformats-officedocument.", "spreadsheetml."
ALLOWED_TYPES = {
    "application/vnd.openxmlformats-package.relationships+xml",
    "application/vnd.openxmlformats-package.core-properties+xml",
    *(f"{_OPEN}{name}+xml" for name in ("extended-properties", "custom-properties", "theme", "drawing")),
    *(f"{_OPEN}{_SHEET}{name}+xml" for name in ("sheet.main", "worksheet", "styles", "sharedStrings", "comments")),
    f"{_OPEN}{_SHEET}table+xml",
    f"{_OPEN}drawingml.chart+xml",
    f"{_OPEN}vmlDrawing",
    *("image/png", "image/jpeg", "image/gif"),  # a company's logo
}
MOST_OF_AN_ADDRESS = 2079  # characters of a link's address


def xml_is_well_formed(package: Package) -> Iterator[str]:
    for name, data in package.parts.items():
        if not name.endswith((".xml", ".rels", ".vml")):
            continue
        try:
            ElementTree.fromstring(data)
        except ElementTree.ParseError as error:
            yield f"{name}: {error}"
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            yield f"{name}: declares a document type"


def names_are_unique(package: Package) -> Iterator[str]:
    lower = [name.lower() for name in package.parts]
    yield from (f"{name}: stands twice in the zip" for name in package.twice)
    yield from (f"{name}: differs from another part in case only" for name in set(lower) if lower.count(name) > 1)


def every_part_has_an_allowed_type(package: Package) -> Iterator[str]:
    for name in package.parts:
        kind = package.content_type(name)
        if name != CONTENT_TYPES and kind not in ALLOWED_TYPES:
            yield f"{name}: the content type is {kind}"
    for name in package.content_types[1]:
        if name not in package.parts:
            yield f"{CONTENT_TYPES}: no part {name}"


def every_part_is_reached(package: Package) -> Iterator[str]:
    reached, open_ends = {CONTENT_TYPES}, [""]
    while open_ends:
        name = open_ends.pop()
        folder, _, base = name.rpartition("/")
        reached.update((name, f"{folder}/_rels/{base}.rels".lstrip("/")))
        open_ends += [r.target for r in package.relations(name) if not r.external and r.target not in reached]
    yield from (f"{name}: no part refers to it" for name in package.parts if name not in reached)


def every_relation_holds(package: Package) -> Iterator[str]:
    for name in ("", *package.parts):
        relations = package.relations(name)
        ids = [r.id for r in relations]
        yield from (f"{name}: two relations called {i}" for i in set(ids) if ids.count(i) > 1)
        for relation in relations:
            if relation.external:
                plain = relation.kind == "hyperlink" and re.match(r"https?://", relation.target)
                if not plain or len(relation.target) > MOST_OF_AN_ADDRESS:
                    yield f"{name}: a {relation.kind} to {relation.target[:80]}"
            elif relation.target not in package.parts:
                yield f"{name}: no part {relation.target}"
        if name.endswith(".xml"):
            used = {value for e in package.xml(name).iter() for key, value in e.items() if key.startswith(REL)}
            yield from (f"{name}: refers to relation {i}, which it has not" for i in used - set(ids))


def the_root_names_the_workbook(package: Package) -> Iterator[str]:
    if package.related("", "officeDocument") != [WORKBOOK]:
        yield f"the package's document is {package.related('', 'officeDocument')}"


RULES = (
    xml_is_well_formed,
    names_are_unique,
    every_part_has_an_allowed_type,
    every_part_is_reached,
    every_relation_holds,
    the_root_names_the_workbook,
)

"""What a PDF carries beside its page: its standard, its metadata (XMP), the workbook.

Every PDF is tagged and says that it conforms to PDF/UA-1; a PDF/A says both.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from sheetgen.errors import ScenarioError, did_you_mean, shown

ACCESSIBLE = "pdf/ua-1"  # the variant where none is named
VARIANTS = (ACCESSIBLE, "pdf/a-2a", "pdf/a-2u", "pdf/a-3a", "pdf/a-3u")  # WeasyPrint's names, of those we validate
HOLD_A_WORKBOOK = (ACCESSIBLE, "pdf/a-3a", "pdf/a-3u")  # a PDF/A-2 holds no file but a PDF/A
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
NAMESPACE = "urn:sheetgen:pdf:1#"
_UNDATED = datetime.datetime(1980, 1, 1)  # of a workbook without a day: never the clock's, the bytes would differ


@dataclass(frozen=True)
class Archive:
    """The variant; the name of the workbook's file where that is to be attached, and its bytes; the catalogs' hash."""

    variant: str = ACCESSIBLE
    name: str = ""
    workbook: bytes = b""
    catalog_sha256: str = ""

    def attachments(self, day: str | None) -> list[Any]:
        """The workbook as WeasyPrint takes it, of `day` (ISO)."""
        if not self.name:
            return []
        from weasyprint import Attachment

        when = datetime.datetime.fromisoformat(day) if day else _UNDATED
        about = "The live workbook of this sheet"
        return [
            Attachment(
                string=self.workbook, name=self.name, description=about, created=when, modified=when,
                relationship="Source",
            )
        ]  # fmt: skip

    def xmp(self, version: str) -> bytes:
        """What is added to the metadata: sheetgen's version, the catalogs' hash; in a PDF/A also that it is a PDF/UA,
        and what the added names mean."""
        from html import escape

        in_pdf_a = self.variant != ACCESSIBLE
        ours = {"Version": version} | ({"CatalogSHA256": self.catalog_sha256} if self.catalog_sha256 else {})
        fields = "".join(f"<sheetgen:{name}>{escape(value)}</sheetgen:{name}>" for name, value in ours.items())
        parts = [f'<rdf:Description rdf:about="" xmlns:sheetgen="{NAMESPACE}">{fields}</rdf:Description>']
        if in_pdf_a:
            parts.append(
                f'<rdf:Description rdf:about="" xmlns:pdfuaid="{_UA}"><pdfuaid:part>1</pdfuaid:part></rdf:Description>'
            )
            parts.append(_SCHEMAS)
        return "\n".join(parts).encode()


def variant_named(name: str | None, *, attach: bool) -> str:
    """The variant requested, by WeasyPrint's name in any case. Raises ScenarioError."""
    if name is None:
        return ACCESSIBLE
    found = name.strip().lower()
    if found not in VARIANTS:
        allowed = ", ".join(VARIANTS)
        raise ScenarioError(f"pdf_variant is {shown(name)!r}. Allowed: {allowed}.{did_you_mean(found, VARIANTS)}")
    if attach and found not in HOLD_A_WORKBOOK:
        raise ScenarioError(f"attach: a {found} file cannot hold a workbook. Use {' or '.join(HOLD_A_WORKBOOK[1:])}.")
    return found


_UA = "http://www.aiim.org/pdfua/ns/id/"


def _schema(uri: str, prefix: str, about: str, fields: tuple[tuple[str, str, str], ...]) -> str:
    """A namespace that PDF/A does not know, explained as it asks."""
    properties = "".join(
        '<rdf:li rdf:parseType="Resource">'
        f"<pdfaProperty:name>{name}</pdfaProperty:name><pdfaProperty:valueType>{kind}</pdfaProperty:valueType>"
        "<pdfaProperty:category>internal</pdfaProperty:category>"
        f"<pdfaProperty:description>{words}</pdfaProperty:description></rdf:li>"
        for name, kind, words in fields
    )
    return (
        '<rdf:li rdf:parseType="Resource">'
        f"<pdfaSchema:schema>{about}</pdfaSchema:schema><pdfaSchema:namespaceURI>{uri}</pdfaSchema:namespaceURI>"
        f"<pdfaSchema:prefix>{prefix}</pdfaSchema:prefix>"
        f"<pdfaSchema:property><rdf:Seq>{properties}</rdf:Seq></pdfaSchema:property></rdf:li>"
    )


_FIELDS = (
    ("Version", "Text", "Version of sheetgen that drew the sheet"),
    ("CatalogSHA256", "Text", "Hash of the catalogs that its figures rest on"),
)
_SCHEMAS = (
    '<rdf:Description rdf:about="" xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/"'
    ' xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#"'
    ' xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#"><pdfaExtension:schemas><rdf:Bag>'
    + _schema(_UA, "pdfuaid", "PDF/UA identification", (("part", "Integer", "Part of ISO 14289"),))
    + _schema(NAMESPACE, "sheetgen", "sheetgen", _FIELDS)
    + "</rdf:Bag></pdfaExtension:schemas></rdf:Description>"
)

"""XML from a user's file: small, without a document type (which all entity tricks need), and well formed."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.parsers import expat

from sheetgen.errors import shown
from sheetgen.workbook.error import WorkbookError

MOST_DEPTH = 64
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/"
SAVE_ANEW = "Open it in Excel or LibreOffice, save it as .xlsx and try again."
_ROW, _CELL, _FORMULA, _INLINE = (f"{MAIN} {name}" for name in ("row", "c", "f", "is"))
_DATA = f"{MAIN} sheetData"
_IN_DATA = frozenset(  # what rows are made of; their order is the reader's business
    f"{MAIN} {name}"
    for name in (
        "row", "c", "f", "v", "is", "t", "r", "rPr", "rPh", "phoneticPr", "rFont", "charset", "family", "b", "i",
        "strike", "outline", "shadow", "condense", "extend", "color", "sz", "u", "vertAlign", "scheme",
    )
)  # fmt: skip


class _Refusal(Exception):
    """Why a part is not read."""


class Checked:
    """A part that was read through, so that nothing in it can keep the next reader busy without end."""

    def __init__(self, data: bytes, part: str, where: str, most_elements: int, most_inline: int = 0) -> None:
        """Raises WorkbookError where the part is not well formed, declares a document type, or is too large."""
        self.data, self.elements, self.inline = data, 0, 0
        self._depth, self._most, self._most_inline = 0, most_elements, most_inline
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.XmlDeclHandler = self._declaration
        try:
            if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise _Refusal(f"is not written in UTF-8. {SAVE_ANEW}")
            self.parser.Parse(data, True)
        except _Refusal as refusal:
            raise WorkbookError(f"{where}: its part {shown(part)} {refusal}") from None
        except (expat.ExpatError, ValueError, LookupError) as error:  # the last two: an unknown encoding
            raise WorkbookError(
                f"{where}: its part {shown(part)} is not well-formed XML ({shown(error)}). {SAVE_ANEW}"
            ) from error

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        self._depth += 1
        if self.elements > self._most:
            raise _Refusal("holds far more than sheetgen writes. Take out the rows that sheetgen did not write.")
        if self._depth > MOST_DEPTH:
            raise _Refusal(f"is nested more than {MOST_DEPTH} deep. {SAVE_ANEW}")

    def _end(self, name: str) -> None:
        self._depth -= 1

    def _doctype(self, *declared: object) -> None:
        raise _Refusal("declares a document type (DOCTYPE), as no workbook does. It is not read.")

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
            raise _Refusal(f"is not written in UTF-8. {SAVE_ANEW}")


class CheckedSheet(Checked):
    """A worksheet: which of its cells hold a formula, and where its rows stand in the bytes."""

    def __init__(self, data: bytes, part: str, where: str, most_elements: int, most_inline: int) -> None:
        self.formulas = set[str]()
        self._cell = ""
        self._root = self._first_child = self._begin = self._stop = -1
        super().__init__(data, part, where, most_elements, most_inline)

    def rows_alone(self) -> bytes:
        """The sheet with nothing in it but its rows: no views, validations or formats for a reader to work on."""
        if self._begin < 0 or self._stop < 0:
            return f'<worksheet xmlns="{MAIN}"><sheetData/></worksheet>'.encode()
        root = self.data[self._root : self._first_child]
        name = re.match(rb"<([^\s/>]+)", root)
        closing = b"</" + name[1] + b">" if name else b""
        return root + self.data[self._begin : self._stop] + closing

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        super()._start(name, attributes)
        if self._depth <= 2:
            self._first(name)
        elif self._begin >= 0 and self._stop < 0:
            self._in_data(name, attributes)

    def _first(self, name: str) -> None:
        at = self.parser.CurrentByteIndex
        if self._depth == 1:
            self._root = at
        elif self._first_child < 0:
            self._first_child = at
        if name == _DATA and self._depth == 2:
            if self._begin >= 0:
                raise _Refusal(f"has its rows in two places. {SAVE_ANEW}")
            self._begin = at

    def _in_data(self, name: str, attributes: dict[str, str]) -> None:
        if name not in _IN_DATA:
            raise _Refusal(f"holds {shown(name.rpartition(' ')[2])!r} among its rows, as no sheet does. {SAVE_ANEW}")
        if name == _CELL:
            self._cell = attributes.get("r", "")
            if not self._cell:
                raise _Refusal(f"has cells that do not say where they stand. {SAVE_ANEW}")
        elif name == _FORMULA:
            self.formulas.add(self._cell)
        elif name == _INLINE:
            self.inline += 1
            if self.inline > self._most_inline:
                raise _Refusal(f"holds too many texts of its own. {SAVE_ANEW}")

    def _end(self, name: str) -> None:
        if name == _DATA and self._depth == 2:
            # A closing tag of its own begins here; an empty element has ended before.
            tag = self.data.find(b">", self.parser.CurrentByteIndex)
            self._stop = tag + 1
        super()._end(name)


def parse_xml(data: bytes, part: str, where: str, most_elements: int) -> ElementTree.Element:
    """The checked tree of a small part. Raises WorkbookError."""
    Checked(data, part, where, most_elements)
    return ElementTree.fromstring(data)

"""Words for a reader who does not see the page: the heads of every cell, bookmarks, metadata."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pypdf
import pytest
from pypdf.generic import DictionaryObject
from sheets import DEFAULT, EIGHT, TWO, page_of, pdf_of

from sheetgen.writers.formats import Archive, templates_folder
from sheetgen.writers.pdf import NAMESPACE

TEMPLATES = templates_folder()

HASH = "0123456789abcdef" * 4


def _reader(pdf: bytes) -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(pdf))


def _walk(element: Any) -> list[DictionaryObject]:
    """All structure elements below this one, in reading order."""
    element = element.get_object()
    if not isinstance(element, DictionaryObject):
        return []
    kids = element.get("/K", [])
    kids = kids.get_object() if hasattr(kids, "get_object") else kids
    below = [node for kid in (kids if isinstance(kids, list) else [kids]) for node in _walk(kid)]
    return ([element] if "/S" in element else []) + below


def _heads_of_cells(pdf: bytes) -> list[tuple[list[str], int]]:
    """For each data cell the kinds of its heads, and how many of them are found by their names."""
    reader = _reader(pdf)
    root = reader.trailer["/Root"]["/StructTreeRoot"]
    names = root["/IDTree"]["/Names"]
    by_name = {str(names[i]): names[i + 1].get_object() for i in range(0, len(names), 2)}
    elements = []
    for element in _walk(root["/K"][0]):
        if element["/S"] == "/TD":
            heads = [str(head) for head in element["/A"].get("/Headers", [])]
            elements.append(([by_name[head]["/A"]["/Scope"] for head in heads], len(heads)))
    return elements


@pytest.mark.parametrize(
    "models", [TWO, *(pytest.param(models, marks=pytest.mark.long) for models in (DEFAULT, EIGHT))]
)
def test_every_load_has_the_heads_of_its_row_and_its_columns(models: str) -> None:
    heads = _heads_of_cells(pdf_of(models))
    page = page_of(models)
    n_loads = 0
    for block in page.matrix:
        for cells in zip(*(row.cells for row in block.rows), strict=True):
            n_loads += 1 if all(cell.why for cell in cells) else len(cells)  # what no load of a row may be is said once
    full = [scopes for scopes, _ in heads if scopes.count("/Column") and scopes.count("/Row") >= 2]
    # A load has its model, the requests at once and the workload that leads its block.
    assert len(full) >= n_loads
    assert all(scope in ("/Column", "/Row") for scopes, _ in heads for scope in scopes)


def test_every_head_has_a_scope_and_every_picture_words() -> None:
    for element in _walk(_reader(pdf_of(TWO, "letter", "8b")).trailer["/Root"]["/StructTreeRoot"]["/K"][0]):
        if element["/S"] == "/TH":
            assert element["/A"]["/Scope"] in ("/Column", "/Row")
        if element["/S"] == "/Figure":
            assert len(str(element["/Alt"])) > 10


@pytest.mark.long
def test_bookmarks_name_the_sections() -> None:
    top, first, engineers, behind = _reader(pdf_of()).outline
    assert (top["/Title"], engineers["/Title"]) == (str(page_of().finding), "For engineers")
    names = [mark["/Title"] for mark in (*first, *behind)]
    of_engineers = re.findall(r'<h2 data-name="([^"]+)"', (TEMPLATES / "engineers.html.j2").read_text())
    assert len(of_engineers) > 5 and [name for name in of_engineers if name not in names] == []
    assert len(first) > 2
    assert all(len(name) < 40 for name in names)


@pytest.mark.long
def test_the_metadata_say_which_catalogs_and_which_version() -> None:
    stream = _reader(pdf_of("8b", archive=Archive(catalog_sha256=HASH))).trailer["/Root"]["/Metadata"]
    import xml.etree.ElementTree as ElementTree

    tree = ElementTree.fromstring(stream.get_data().decode())
    assert tree.findtext(f".//{{{NAMESPACE}}}CatalogSHA256") == HASH
    assert tree.findtext(f".//{{{NAMESPACE}}}Version") == page_of().version
    assert len(tree.findall("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF")) == 1


@pytest.mark.long  # in the gate writers/test_pdf_page holds a PDF, workbook/test_bytes a workbook
def test_the_same_bytes_with_a_workbook_whatever_the_machine(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from sheets import pdf_of; from sheetgen.writers.formats import *;"
        "Path(sys.argv[1]).write_bytes(pdf_of('8b', archive=Archive('a.xlsx', b'book', 'ff')))"
    )
    file = tmp_path / "a.pdf"
    here = Path(__file__).parent
    path = os.pathsep.join(map(str, (here, here.parent, here.parent.parent)))
    environment = {**os.environ, "PYTHONHASHSEED": "31337", "TZ": "Asia/Tokyo", "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", program, str(file)], check=True, env=environment)
    assert file.read_bytes() == pdf_of("8b", archive=Archive("a.xlsx", b"book", "ff"))

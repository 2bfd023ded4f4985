"""A workbook's package taken apart and put together otherwise."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import books
from amounts import IN_LONG

from sheetgen.book.carried import packed, unpacked

# In the gate on the fewest instances that these tests need: others are more rows of the same formulas.
FEW = (
    "aws/g6.xlarge,aws/g6.12xlarge,aws/g6e.xlarge,aws/g6e.12xlarge,aws/p5.4xlarge,aws/p5.48xlarge,gcp/a3-highgpu-8g,"
    "azure/Standard_NC80adis_H100_v5"
)
TINY = {
    **books.SMALL,
    "models": "8b,70b",
    "tiers": "1,32",
    "headline": "chat:32",
    "instances": books.INSTANCES if IN_LONG else FEW,
}
Change = Callable[[bytes], bytes | None]


def rewritten(
    path: Path,
    out: Path,
    changes: Mapping[str, Change],
    added: Mapping[str, bytes] | None = None,
    how: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """A copy in which `changes` give each named part's new bytes (None leaves it out), and parts are added."""
    left = set(changes)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w", how) as copy:
        for item in source.infolist():
            data: bytes | None = source.read(item)
            if item.filename in changes:
                left.discard(item.filename)
                data = changes[item.filename](data or b"")
            if data is not None:
                copy.writestr(item.filename, data)
        for name, data in (added or {}).items():
            copy.writestr(name, data)
    assert not left, f"no such part: {left}"
    return out


def replaced(old: str, new: str, count: int = 1) -> Change:
    """Text replaced in a part; it must be there."""

    def change(data: bytes) -> bytes:
        text = data.decode()
        assert old in text, f"no {old!r} there"
        return text.replace(old, new, count).encode()

    return change


def part_of(path: Path, sheet: str) -> str:
    """The part that holds a sheet."""
    with zipfile.ZipFile(path) as package:
        book = package.read("xl/workbook.xml").decode()
        relations = package.read("xl/_rels/workbook.xml.rels").decode()
    match = re.search(rf'<sheet name="{sheet}"[^>]*r:id="(\w+)"', book)
    assert match, sheet
    for relation in re.findall(r"<Relationship [^>]*>", relations):
        if f'Id="{match[1]}"' in relation:
            return "xl/" + re.search(r'Target="([^"]+)"', relation)[1].removeprefix("/xl/")  # type: ignore[index]
    raise AssertionError(sheet)


def name_of(path: Path, name: str) -> str:
    """The text of a defined name."""
    with zipfile.ZipFile(path) as package:
        match = re.search(rf'<definedName name="{name}"[^>]*>([^<]*)<', package.read("xl/workbook.xml").decode())
    assert match, name
    return match[1]


def cell_of(path: Path, name: str) -> tuple[str, str]:
    """Sheet and address of a named cell."""
    sheet, _, cell = name_of(path, name).partition("!")
    return sheet.strip("'"), cell.replace("$", "")


def with_cell(path: Path, out: Path, name: str, xml: str) -> Path:
    """The named cell's XML replaced; `{r}` in it stands for its address."""
    sheet, address = cell_of(path, name)

    def change(data: bytes) -> bytes:
        new, n = re.subn(
            rf'<c r="{address}"[^>]*?(?:/>|>.*?</c>)', xml.replace("{r}", address), data.decode(), flags=re.DOTALL
        )
        assert n == 1, f"{name} is there {n} times"
        return new.encode()

    return rewritten(path, out, {part_of(path, sheet): change})


def with_options(path: Path, out: Path, options: Mapping[str, object]) -> Path:
    """The options that a workbook says it was built with, replaced in its record."""
    with zipfile.ZipFile(path) as package:
        texts = re.findall(r"<t>(/Td6WFo[^<]*)</t>", package.read("xl/sharedStrings.xml").decode())
    (text,) = packed({**unpacked(texts), "options": options})
    return with_cell(path, out, "meta_record_1", f'<c r="{{r}}" t="str"><v>{text}</v></c>')


def area_of(path: Path, name: str) -> list[tuple[str, str]]:
    """The cells of a named column."""
    match = re.fullmatch(r"(.*)!\$([A-Z]+)\$(\d+):\$[A-Z]+\$(\d+)", name_of(path, name))
    assert match, name
    sheet, column, first, last = match.groups()
    return [(sheet.strip("'"), f"{column}{row}") for row in range(int(first), int(last) + 1)]

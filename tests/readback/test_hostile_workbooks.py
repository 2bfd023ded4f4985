"""Whatever file is given, it is one clear line, in little time and memory, or it is read."""

from __future__ import annotations

import base64
import io
import json
import lzma
import re
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from packages import cell_of, name_of, part_of, replaced, rewritten, with_cell

from sheetgen.book.carried import packed
from sheetgen.readback.package import WorkbookError
from sheetgen.readback.read_book import read_workbook

MOST_SECONDS, MOST_MB = 5.0, 500
Make = Callable[[Path, Path], Path]


def lines(path: Path) -> tuple[str, ...]:
    with pytest.raises(WorkbookError) as caught:
        read_workbook(path)
    for line in caught.value.problems:
        assert "\n" not in line and line.isprintable() and len(line) < 600, repr(line)
        assert line.startswith(str(path)), f"does not name the file: {line}"
        assert line.rstrip().endswith(".") and ". " in line, f"does not say what to do: {line}"
    return caught.value.problems


def one_line(path: Path, *words: str) -> None:
    (line,) = lines(path)
    for text in words:
        assert text in line, line


# Files that are no workbook ---------------------------------------------------------------------------------

CFB = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def utf16(*names: str) -> bytes:
    return b"".join(name.encode("utf-16-le") + b"\0\0" for name in names)


def zipped(**parts: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in parts.items():
            package.writestr(name.replace("__", "/"), data)
    return out.getvalue()


ODS = zipped(mimetype=b"application/vnd.oasis.opendocument.spreadsheet", **{"content.xml": b"<a/>"})
XLSB = zipped(**{"[Content_Types].xml": b"<Types/>", "xl__workbook.bin": b"x"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"model,gpu\n8b,h100\n", "is no ZIP archive, as an .xlsx is. Give the one that sheetgen built."),
        (b"\x1b[31mred", "is no ZIP archive"),
        (b"<html><body>not found</body></html>", "is no ZIP archive"),
        (b"%PDF-1.7\n%\xf0\x9f\x96\xa4\n5 0 obj\n", "is a PDF, not a workbook. Give the .xlsx"),
        (CFB + utf16("EncryptionInfo", "EncryptedPackage"), "protected with a password"),
        (CFB + utf16("Workbook", "SummaryInformation"), "Excel 97-2003 (.xls)"),
        (CFB + utf16("WordDocument"), "old Office file"),
        (ODS, "OpenDocument"),
        (XLSB, ".xlsb"),
        (zipped(**{"a.txt": b"a"}), "no workbook"),
        (zipped(**{"inner.zip": zipped(**{"a.txt": bytes(1_000_000)})}), "no workbook"),
        (zipped(**{"[Content_Types].xml": b"<Types/>", "word__document.xml": b"<w/>"}), "no workbook"),
        (b"PK\x03\x04 and then nothing", "damaged or cut short"),
    ],
)
def test_a_file_that_is_no_workbook(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    path.write_bytes(data)
    one_line(path, message)


def test_a_folder_a_missing_file_and_a_device(tmp_path: Path) -> None:
    one_line(tmp_path, "is a folder")
    one_line(tmp_path / "none.xlsx", "cannot be read (No such file")
    one_line(Path("/dev/zero"), "is larger than 64,000,000 bytes")


@pytest.mark.some(2)
@pytest.mark.parametrize("share", (0.001, 0.1, 0.5, 0.9, 0.9999))
def test_a_download_that_was_cut_short(share: float, book: Path, tmp_path: Path) -> None:
    data = book.read_bytes()
    path = tmp_path / "cut.xlsx"
    path.write_bytes(data[: int(len(data) * share)])
    one_line(path, "damaged or cut short")


def test_a_workbook_with_macros(book: Path, tmp_path: Path) -> None:
    one_line(rewritten(book, tmp_path / "a.xlsx", {}, {"xl/vbaProject.bin": b"x"}), "holds macros")
    types = replaced("sheet.main+xml", "sheet.macroEnabled.main+xml").__call__
    path = rewritten(book, tmp_path / "b.xlsx", {"[Content_Types].xml": types})
    one_line(path, "holds macros")


def test_a_strict_workbook(book: Path, tmp_path: Path) -> None:
    strict = replaced(
        "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main"
    )
    one_line(rewritten(book, tmp_path / "s.xlsx", {"xl/workbook.xml": strict}), "Strict Open XML")


# Archives that are bombs ------------------------------------------------------------------------------------


def lying(path: Path, out: Path) -> Path:
    """The size of a part that the list of members states is far below what it unpacks to."""
    bomb = rewritten(path, out, {"xl/styles.xml": lambda _: bytes(300_000_000)})
    data = bytearray(bomb.read_bytes())
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        position = data.find(signature)
        while position >= 0:
            if struct.unpack_from("<I", data, position + offset)[0] == 300_000_000:
                struct.pack_into("<I", data, position + offset, 10)
            position = data.find(signature, position + 4)
    out.write_bytes(bytes(data))
    return out


def many_members(path: Path, out: Path) -> Path:
    return rewritten(path, out, {}, {f"xl/media/{i}": b"" for i in range(3_000)})


def long_directory(path: Path, out: Path) -> Path:
    """A list of members of more than 1 MB."""
    with zipfile.ZipFile(out, "w") as package:
        for i in range(25_000):
            package.writestr(zipfile.ZipInfo(f"{i}"), b"")
    return out


def bomb(size: int) -> Make:
    return lambda path, out: rewritten(path, out, {"xl/theme/theme1.xml": lambda _: bytes(size)})


def entity_bomb(path: Path, out: Path) -> Path:
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    doctype = f'<!DOCTYPE sst [<!ENTITY l0 "lol">{laughs}]>'

    def change(data: bytes) -> bytes:
        text = data.decode()
        index = text.index("<sst")
        return (text[:index] + doctype + re.sub("<t>[^<]*</t>", "<t>&l9;</t>", text[index:], count=1)).encode()

    return rewritten(path, out, {"xl/sharedStrings.xml": change})


def external_entity(path: Path, out: Path) -> Path:
    def change(data: bytes) -> bytes:
        text = data.decode()
        index = text.index("<workbook")
        return (text[:index] + '<!DOCTYPE workbook [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + text[index:]).encode()

    return rewritten(path, out, {"xl/workbook.xml": change})


def rows(n: int, cell: str = '<c r="A{r}"><v>1</v></c>') -> str:
    return "".join(f'<row r="{r}">{cell.replace("{r}", str(r))}</row>' for r in range(1000, 1000 + n))


def with_more(part: str, before: str, more: str) -> Make:
    """More XML before a closing tag of a part. It is stored as it is: compressed, it would be told as a bomb."""

    def make(path: Path, out: Path) -> Path:
        name = part if "/" in part else part_of(path, part)
        return rewritten(path, out, {name: replaced(before, more + before)}, how=zipfile.ZIP_STORED)

    return make


def sheet_with(sheet: str, more: str) -> Make:
    """More XML after the rows of one of our sheets."""
    return with_more(sheet, "</sheetData>", more)


def million_rows_of_ours(path: Path, out: Path) -> Path:
    more = replaced("</sheetData>", rows(1_000_000) + "</sheetData>")
    return rewritten(path, out, {part_of(path, "Inputs"): more})


def million_rows_of_its_own(path: Path, out: Path) -> Path:
    """A sheet of a million rows, added beside ours."""
    sheet = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    data = (sheet + rows(1_000_000) + "</sheetData></worksheet>").encode()
    book = replaced("</sheets>", '<sheet name="Data" sheetId="99" r:id="rId99"/></sheets>')
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    relation = f'<Relationship Id="rId99" Type="{kind}" Target="worksheets/data.xml"/></Relationships>'
    changes = {"xl/workbook.xml": book, "xl/_rels/workbook.xml.rels": replaced("</Relationships>", relation)}
    return rewritten(path, out, changes, {"xl/worksheets/data.xml": data})


def far_away(path: Path, out: Path) -> Path:
    """A million rows inserted above the inputs: the names stand under them."""
    where = name_of(path, "in_tier_1")
    return rewritten(path, out, {"xl/workbook.xml": replaced(f">{where}<", ">Inputs!$B$1000010<")})


def large_file(path: Path, out: Path) -> Path:
    with out.open("wb") as file:
        file.truncate(200_000_000)
    return out


NAME = '<definedName name="in_x">Inputs!$B$5</definedName>'


def row_of(cell: str, n: int, row: int = 900) -> str:
    return f'<row r="{row}">{cell * n}</row>'


def validations(n: int) -> str:
    return "<dataValidations>" + '<dataValidation sqref="A1"/>' * n + "</dataValidations>"


HEAVY: dict[str, tuple[Make, str]] = {
    "a zip bomb": (bomb(260_000_000), "unpacks to 1,0"),
    "a smaller zip bomb": (bomb(50_000_000), "times its size"),
    "a zip that lies about sizes": (lying, "its part xl/styles.xml is damaged"),
    "three thousand members": (many_members, "holds 3,0"),
    "a long list of members": (long_directory, "far more parts"),
    "an entity bomb": (entity_bomb, "DOCTYPE"),
    "an external entity": (external_entity, "DOCTYPE"),
    "a million rows in a sheet of ours": (million_rows_of_ours, "more than 200,000 rows"),
    "a million rows in a sheet beside ours": (million_rows_of_its_own, "'Data' has more than 200,000 rows"),
    "names a million rows down": (far_away, "too far out"),
    "many rows, under the limit": (sheet_with("Inputs", rows(150_000)), "far more than sheetgen writes"),
    "a wide row": (sheet_with("Models", row_of('<c r="A900"/>', 400_000)), "far more"),
    "blank cells to the limit": (sheet_with("GPUs", row_of('<c r="A900"/>', 250_000)), ""),
    "numbers to the limit": (sheet_with("GPUs", row_of('<c r="A900"><v>1</v></c>', 130_000)), ""),
    "cells before ours": (with_more("Inputs", '<row r="5"', row_of('<c r="A4"><v>1</v></c>', 130_000, 4)), ""),
    "many strings": (with_more("xl/sharedStrings.xml", "</sst>", "<si><t>a</t></si>" * 100_000), "far more"),
    "strings to the limit": (with_more("xl/sharedStrings.xml", "</sst>", "<si><t>a</t></si>" * 28_000), ""),
    "many styles": (with_more("xl/styles.xml", "</cellXfs>", "<xf/>" * 100_000), "far more"),
    "styles to the limit": (with_more("xl/styles.xml", "</cellXfs>", "<xf/>" * 19_000), ""),
    "many names": (with_more("xl/workbook.xml", "</definedNames>", NAME * 100_000), "far more"),
    "deep XML": (with_more("xl/sharedStrings.xml", "</sst>", "<si>" * 20_000 + "</si>" * 20_000), "nested"),
    "validations": (with_more("Inputs", "<pageMargins", validations(200_000)), ""),
    "columns": (with_more("Inputs", "<sheetData", "<cols>" + '<col min="1" max="1"/>' * 200_000 + "</cols>"), ""),
    "validations among the rows": (sheet_with("Inputs", validations(100_000)), "among its rows"),
    "rich texts": (
        sheet_with("Inputs", row_of('<c r="A900" t="inlineStr"><is><t>a</t></is></c>', 60_000)),
        "too many texts",
    ),
    "a file of 200 MB": (large_file, "is larger than"),
}

_MEASURE = """
import json, resource, sys, time
begun = time.monotonic()
from sheetgen.readback.package import WorkbookError
from sheetgen.readback.read_book import read_workbook
try:
    read_workbook(sys.argv[1]); said = []
except WorkbookError as error:
    said = list(error.problems)
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([said, used.ru_utime + used.ru_stime, peak / 1024, time.monotonic() - begun]))
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", HEAVY)
def test_a_heavy_file_takes_little_time_and_memory(kind: str, book: Path, tmp_path: Path) -> None:
    make, text = HEAVY[kind]
    path = make(book, tmp_path / "heavy.xlsx")
    done = subprocess.run([sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True)
    message, seconds, megabytes, wall = json.loads(done.stdout)
    print(f"{kind}: {seconds:.1f} s of processor, {wall:.1f} s, {megabytes:.0f} MB: {message}")
    assert seconds < MOST_SECONDS and megabytes < MOST_MB
    assert len(message) <= 1 and (not text or text in message[0])
    assert all(len(line) < 600 and line.isprintable() and line.startswith(str(path)) for line in message)


@pytest.mark.long
def test_formulas_that_libreoffice_writes_out_are_read(book: Path, tmp_path: Path) -> None:
    """Its Candidates of three models have 50 MB: each formula stands in full in every cell."""
    long = "+".join(map(str, range(10_000_000, 12_900_000)))
    path = sheet_with("Inputs", row_of(f'<c r="A900"><f>{long}</f><v>1</v></c>', 1))(book, tmp_path / "long.xlsx")
    assert read_workbook(path).inputs == read_workbook(book).inputs


# Names and sheets that are broken ---------------------------------------------------------------------------


def named(name: str, text: str) -> Make:
    """A defined name that points elsewhere."""
    return lambda path, out: rewritten(
        path, out, {"xl/workbook.xml": replaced(f'name="{name}">{name_of(path, name)}<', f'name="{name}">{text}<')}
    )


def without_name(name: str) -> Make:
    return lambda path, out: rewritten(
        path,
        out,
        {"xl/workbook.xml": replaced(f'<definedName name="{name}">{name_of(path, name)}</definedName>', "")},
    )


def without_sheet(path: Path, out: Path) -> Path:
    """A sheet taken out of the package, its names left behind."""
    drop = lambda data: re.sub(rb'<sheet name="GPUs"[^>]*/>', b"", data)  # noqa: E731
    return rewritten(path, out, {"xl/workbook.xml": drop, part_of(path, "GPUs"): lambda _: None})


def with_name(xml: str) -> Make:
    return lambda path, out: rewritten(
        path, out, {"xl/workbook.xml": replaced("</definedNames>", xml + "</definedNames>")}
    )


BROKEN: dict[str, tuple[Make, tuple[str, ...]]] = {
    "a missing name": (without_name("in_kv_cache_dtype"), ("lacks the defined name in_kv_cache_dtype.",)),
    "a missing column": (without_name("cat_gpus_gpu_memory_bytes"), ("lacks the defined name cat_gpus_gpu_memory",)),
    "a missing tier": (without_name("in_tier_2"), ("lacks the defined name in_tier_2.",)),
    "a missing context": (without_name("in_context_chat"), ("lacks the defined name in_context_chat.",)),
    "a missing record": (without_name("meta_record_1"), ("carries no record of what it was built with.",)),
    "a missing answer": (without_name("in_output_chat"), ("lacks the defined name in_output_chat",)),
    "a missing schema": (without_name("meta_schema"), ("lacks the defined name meta_schema",)),
    "a missing sheet": (without_sheet, ("points to the sheet 'GPUs', which is not in the workbook", "more)")),
    "a deleted cell": (named("in_tier_1", "Inputs!#REF!"), ("in_tier_1 points to a cell that was deleted (#REF!)",)),
    "another file": (named("in_tier_1", "[1]Inputs!$B$10"), ("in_tier_1 points to another file",)),
    "another path": (named("in_tier_1", "'file:///tmp/x.xlsx'#$Inputs.$B$10"), ("points to another file",)),
    "a whole column": (named("cat_gpus_max_num_seqs", "GPUs!$F:$F"), ("points to whole rows or columns",)),
    "a whole row": (named("in_tier_1", "Inputs!$10:$10"), ("points to whole rows or columns",)),
    "a formula": (named("in_tier_1", "OFFSET(Inputs!$B$10,0,0)"), ("points to no plain cells",)),
    "several cells": (named("in_tier_1", "Inputs!$B$10:$B$12"), ("in_tier_1 points to more cells than one",)),
    "two columns": (named("cat_gpus_max_num_seqs", "GPUs!$F$5:$G$9"), ("points to more columns than one",)),
    "too many rows": (named("cat_gpus_max_num_seqs", "GPUs!$F$5:$F$49000"), ("points to 48,996 rows",)),
    "other rows": (named("cat_gpus_max_num_seqs", "GPUs!$F$6:$F$9"), ("cat_gpus_max_num_seqs does not span the same",)),
    "a name twice": (
        with_name('<definedName name="in_tier_1">Inputs!$B$11</definedName>'),
        ("in_tier_1 stands twice",),
    ),
    "a name of one sheet": (
        lambda path, out: rewritten(
            path, out, {"xl/workbook.xml": replaced('name="in_tier_1"', 'name="in_tier_1" localSheetId="1"')}
        ),
        ("in_tier_1 is defined for the sheet '",),
    ),
}


@pytest.mark.some(8)
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_name_or_sheet_is_told_by_name(kind: str, book: Path, tmp_path: Path) -> None:
    make, message = BROKEN[kind]
    one_line(make(book, tmp_path / "broken.xlsx"), *message)


def test_a_name_that_is_local_to_a_copied_sheet_does_no_harm(book: Path, tmp_path: Path) -> None:
    """A sheet that was copied has names of its own beside those of the workbook."""
    local = '<definedName name="in_tier_1" localSheetId="2">Models!$A$1</definedName>'
    path = with_name(local)(book, tmp_path / "copied.xlsx")
    assert read_workbook(path).inputs == read_workbook(book).inputs


def test_names_of_others_do_no_harm(book: Path, tmp_path: Path) -> None:
    others = (
        '<definedName name="budget">[2]Plan!$A$1</definedName><definedName name="x">#REF!</definedName>'
        '<definedName name="_xlnm.Print_Area" localSheetId="0">\'Sizing sheet\'!$A:$C</definedName>'
    )
    path = with_name(others)(book, tmp_path / "others.xlsx")
    assert read_workbook(path).inputs == read_workbook(book).inputs


@pytest.mark.parametrize(
    ("value", "message"),
    [("99", "newer sheetgen"), ("1", "older sheetgen"), ("x", "its layout is 'x'"), ("1e999", "newer")],
)
def test_another_layout_is_told_before_names_are_missed(value: str, message: str, book: Path, tmp_path: Path) -> None:
    properties = lambda data: re.sub(  # noqa: E731
        rb'(name="sheetgen.schema"[^>]*><vt:\w+>)[^<]*', rb"\g<1>" + value.encode(), data
    )
    path = rewritten(book, tmp_path / "schema.xlsx", {"docProps/custom.xml": properties})
    one_line(path, message)
    cell = f'<c r="{{r}}"><v>{value}</v></c>' if value.isdigit() else '<c r="{r}" t="str"><v>x</v></c>'
    no_properties = rewritten(book, tmp_path / "bare.xlsx", {"docProps/custom.xml": lambda _: None})
    if value != "1e999":
        one_line(with_cell(no_properties, tmp_path / "cell.xlsx", "meta_schema", cell), message)


def test_a_workbook_of_another_program(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active["A1"] = "a budget"  # type: ignore[index]
    book.save(tmp_path / "budget.xlsx")
    one_line(tmp_path / "budget.xlsx", "was not made by sheetgen")


# Cells that hold what they cannot ---------------------------------------------------------------------------

BAD_CELLS = [
    ("in_tier_1", '<c r="{r}"><f>1+1</f></c>', ("a formula without a value", "save it once")),
    ("in_tier_1", '<c r="{r}"><f>1+1</f><v/></c>', ("a formula without a value", "save it once")),
    ("in_tier_1", '<c r="{r}" t="e"><v>#REF!</v></c>', ("holds the error #REF!",)),
    ("in_tier_1", '<c r="{r}" t="e"><f>NA()</f><v>#N/A</v></c>', ("holds the error #N/A",)),
    ("in_tier_1", '<c r="{r}" t="str"><v>many</v></c>', ("holds the text 'many', where a number belongs",)),
    ("in_tier_1", '<c r="{r}" t="str"><v>32</v></c>', ("holds the text '32', where a number belongs",)),
    ("in_tier_1", '<c r="{r}" t="b"><v>1</v></c>', ("where a number belongs",)),
    ("in_tier_1", '<c r="{r}"><v>1e999</v></c>', ("which is no number",)),
    ("in_tier_1", f'<c r="{{r}}"><v>{"9" * 400}</v></c>', ("which is no number",)),
    ("in_kv_cache_dtype", '<c r="{r}" t="b"><v>1</v></c>', ("where a text belongs",)),
    ("in_as_of", '<c r="{r}" t="str"><v>soon</v></c>', ("where a date belongs",)),
    ("in_as_of", '<c r="{r}" t="str"><v>1&#10;2</v></c>', ("where a date belongs", "\\n")),
    ("in_currency", '<c r="{r}" t="str"><v>a_x0007_b</v></c>', ("control character", "\\x07")),
    ("in_currency", '<c r="{r}" t="str"><v>a\x9bb</v></c>', ("control character",)),
]


@pytest.mark.some(7)
@pytest.mark.parametrize(("name", "xml", "messages"), BAD_CELLS)
def test_a_cell_that_no_input_can_hold_is_told_with_its_place(
    name: str, xml: str, messages: tuple[str, ...], book: Path, tmp_path: Path
) -> None:
    sheet, cell = cell_of(book, name)
    one_line(with_cell(book, tmp_path / "cell.xlsx", name, xml), f"{name} ({sheet}!{cell})", *messages)


def test_a_control_character_that_no_xml_holds(book: Path, tmp_path: Path) -> None:
    path = with_cell(book, tmp_path / "cell.xlsx", "in_currency", '<c r="{r}" t="str"><v>\x07</v></c>')
    one_line(path, "is not well-formed XML")


def test_every_wrong_cell_is_told_at_once_those_of_one_fault_together(book: Path, tmp_path: Path) -> None:
    path = book
    for i, name in enumerate(("in_tier_1", "in_tier_2", "in_block_size")):
        path = with_cell(path, tmp_path / f"{i}.xlsx", name, '<c r="{r}" t="e"><v>#REF!</v></c>')
    path = with_cell(path, tmp_path / "last.xlsx", "in_as_of", '<c r="{r}" t="str"><v>soon</v></c>')
    first, second = sorted(lines(path), key=len, reverse=True)
    assert all(name in first for name in ("in_tier_1 (", "in_tier_2 (", "in_block_size ("))
    assert "in_as_of" in second


# A record that is not as built ------------------------------------------------------------------------------


def of_record(text: str) -> str:
    return f'<c r="{{r}}" t="str"><v>{text}</v></c>'


def packed_alone(record: object) -> str:
    (text,) = packed(record)  # type: ignore[arg-type]
    return of_record(text)


def compressed(data: bytes) -> str:
    return of_record(base64.b64encode(lzma.compress(data, preset=0)).decode())


BAD_RECORDS: dict[str, str | Callable[[], str]] = {
    "blank": '<c r="{r}"/>',
    "a number": '<c r="{r}"><v>7</v></c>',
    "a formula": '<c r="{r}"><f>1+1</f><v>2</v></c>',
    "no base 64": of_record("no record"),
    "cut short": of_record(packed({"answer": "x" * 90})[0][:60]),
    "no archive": of_record("A" * 400),
    "a bomb": lambda: compressed(bytes(60_000_000)),
    "no JSON": compressed(b"[" * 100_000),
    "a list": packed_alone([1, 2]),
    "another object": packed_alone({"version": "1", "options": {}, "answer": {"cells": 3}}),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("kind", BAD_RECORDS)
def test_a_record_that_was_tampered_with_is_told(kind: str, book: Path, tmp_path: Path) -> None:
    cell = BAD_RECORDS[kind]
    path = with_cell(book, tmp_path / "record.xlsx", "meta_record_1", cell() if callable(cell) else cell)
    one_line(path, "the record that it carries is damaged (", "Start from a fresh build.")


@pytest.mark.long
def test_a_letter_of_the_record_cannot_be_changed_unseen(book: Path, tmp_path: Path) -> None:
    (text,) = re.findall(r"<t>(/Td6WFo[^<]*)</t>", zipfile.ZipFile(book).read("xl/sharedStrings.xml").decode())
    for position in range(20, len(text), len(text) // 7):
        other = text[:position] + ("A" if text[position] != "A" else "B") + text[position + 1 :]
        path = rewritten(book, tmp_path / "letter.xlsx", {"xl/sharedStrings.xml": replaced(text, other)})
        one_line(path, "the record that it carries is damaged (")


# Damage at random -------------------------------------------------------------------------------------------


def test_random_damage_is_told_or_does_no_harm(book: Path, tmp_path: Path) -> None:
    """Bytes changed in the archive, and in the XML within it: nothing but a WorkbookError, and each soon."""
    import random

    rng, whole, told = random.Random(7), book.read_bytes(), 0
    parts = [
        "xl/workbook.xml",
        "xl/sharedStrings.xml",
        "xl/styles.xml",
        *map(lambda s: part_of(book, s), ("Inputs", "GPUs")),
    ]
    begun = time.process_time()
    for i in range(40):
        path = tmp_path / "damaged.xlsx"
        if i % 2:
            data = bytearray(whole)
            for _ in range(rng.choice((1, 3, 30))):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path.write_bytes(bytes(data))
        else:

            def damage(data: bytes) -> bytes:
                position, n = rng.randrange(len(data)), rng.choice((0, 1, 5, 60))
                return (
                    data[:position] + rng.choice((b"", b"<", b"&", b'"', b"9", b"<c/>", b"\xff")) + data[position + n :]
                )

            rewritten(book, path, {rng.choice(parts): damage})
        try:
            read_workbook(path)
        except WorkbookError as error:
            told += 1
            assert all("\n" not in line and line.isprintable() for line in error.problems)
    print(f"40 damaged files, {told} refused, {time.process_time() - begun:.1f} s")
    assert told > 15

"""Recalculate a workbook with another engine, and compare every formula with the value written beside it.

LibreOffice trusts the cached values of a file, and would hand back our own numbers unread. So its profile
forces recalculation, `poison` makes every cached value wrong first, the number of compared cells must be the
number of formulas, and `tamper` makes a twin that has to fail.

Cells are edited as text inside the package, so that all the rest of a workbook stays as its writer made it.
"""

from __future__ import annotations

import atexit
import datetime
import functools
import io
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar
from xml.sax.saxutils import escape, unescape

import pytest
from workbook_cells import (
    CellValue,
    ErrorValue,
    Place,
    Values,
    cells,
    column_and_row,
    formulas,
    names,
    sheet_parts,
)

Test = TypeVar("Test", bound=Callable[..., object])
# Values by (sheet, cell) or by defined name; None empties a cell.
Changes = Mapping[Place, CellValue] | Mapping[str, CellValue] | Mapping[Place | str, CellValue]

POISON_NUMBER, POISON_TEXT = -987654321, "poison"

# Excel 2007's vocabulary, as far as Excel 2016 to 365, LibreOffice, Gnumeric and Google Sheets share it.
ALLOWED_FUNCTIONS = {
    *("INDEX", "MATCH", "CHOOSE", "SMALL", "IF", "AND", "OR", "IFERROR", "ISNUMBER", "ISERROR", "TEXT", "POWER"),
    *("SUBSTITUTE", "PROPER", "FIXED"),
    *(
        "SUM",
        "MIN",
        "MAX",
        "COUNT",
        "COUNTA",
        "COUNTIFS",
        "SUMIFS",
        "SUMPRODUCT",
        "MOD",
        "INT",
        "ROUND",
        "ROUNDUP",
        "CEILING",
    ),
    *("LN", "NORMSDIST", "NORMDIST", "NORMSINV"),  # the allowance for chance of a rate; how sure an answer is
    "EXP",  # the quantiles of a plan's demand
    *("DAY", "MONTH"),  # whether a price's date shows its day
}

XLSX = "xlsx"
CSV_AS_SHOWN = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true"  # the text that a reader sees


# LibreOffice --------------------------------------------------------------------------------------------


def soffice() -> str:
    """The path of LibreOffice's program, or "" where it is not installed."""
    return shutil.which("soffice") or shutil.which("libreoffice") or ""


def needs_libreoffice(test: Test) -> Test:
    """Mark a test that recalculates; without LibreOffice it is skipped, or fails where CI requires it."""
    required = os.environ.get("SHEETGEN_REQUIRE_LIBREOFFICE") == "1"
    absent = pytest.mark.skipif(not soffice() and not required, reason="LibreOffice is not installed")
    marked: Test = pytest.mark.libreoffice(absent(test))
    return marked


@functools.cache
def _profile(attempt: int) -> str:
    """A private LibreOffice profile that recalculates on load: one per process (it locks), new on retry."""
    folder = tempfile.mkdtemp(prefix=f"sheetgen-soffice-{attempt}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    user = Path(folder) / "user"
    user.mkdir()
    (user / "registrymodifications.xcu").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<oor:items xmlns:oor="http://openoffice.org/2001/registry">'
        '<item oor:path="/org.openoffice.Office.Calc/Formula/Load">'
        '<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item></oor:items>\n'
    )
    return Path(folder).as_uri()


def convert(path: Path, workdir: Path, target: str = XLSX, timeout: float = 300) -> Path:
    """`path` loaded, recalculated and saved by LibreOffice as `target`; a crash or a hang is retried once."""
    return convert_all([path], workdir, target, timeout)[0]


def convert_all(paths: Sequence[Path], workdir: Path, target: str = XLSX, timeout: float = 300) -> list[Path]:
    """The same for several files in one run of LibreOffice, whose start takes longer than a small workbook."""
    program = soffice()
    assert program, "LibreOffice is required here (SHEETGEN_REQUIRE_LIBREOFFICE=1) and not installed"
    folder = workdir / "libreoffice"
    outs = [folder / f"{path.stem}.{target.split(':')[0]}" for path in paths]
    assert len(set(outs)) == len(outs), "two files of one name would overwrite each other"
    for out in outs:
        out.unlink(missing_ok=True)
    text = ""
    for attempt in (0, 1):
        command = [program, f"-env:UserInstallation={_profile(attempt)}", "--headless", "--norestore"]
        command += ["--convert-to", target, "--outdir", str(folder), *map(str, paths)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            text, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # soffice is a script: its children have to go too
            text, _ = process.communicate()
        if process.returncode == 0 and all(out.exists() for out in outs):
            return outs
    names = ", ".join(path.name for path in paths)
    raise AssertionError(f"LibreOffice did not convert {names}: {text.strip() or 'it said nothing'}")


def recalculate(path: Path, workdir: Path) -> Path:
    """A copy of the workbook with every formula calculated anew by LibreOffice."""
    return convert(path, workdir)


def recalculate_with_formualizer(path: Path, out: Path) -> Path:
    """The same by formualizer, much faster: only the cached values change. (Its own way from file to file
    takes six times as long as to load one and ask for each value.)"""
    _with_values(path, out, values_after(path, {}))
    return out


_ERRORS = {"Value": "#VALUE!", "Div": "#DIV/0!", "Na": "#N/A", "Ref": "#REF!", "Name": "#NAME?", "Num": "#NUM!"}
_DAY_ZERO = datetime.date(1899, 12, 30)


class LiveWorkbook:
    """A workbook that stays open in formualizer: typing into it calculates what hangs on the cells, in a sixth of the
    time that a file takes. Every value is formualizer's own: the file has none beside a formula."""

    def __init__(self, path: Path) -> None:
        import formualizer

        self._book = formualizer.Workbook.load_path(str(path))
        self._names, self._cells = names(path), {cell.place: cell for cell in cells(path)}
        self._inputs = _inputs(self._names)
        self._formulas = [(place, _spot(place)) for place, cell in self._cells.items() if cell.is_formula]
        self._typed: dict[Place, CellValue] = {}
        self._typed_over: dict[Place, str] = {}  # formulas of inputs that follow others until they are typed over
        self._book.evaluate_all()

    def values_after(self, changes: Changes) -> Values:
        """Every value, as `workbook_cells.values` has them, with these changes alone (named as for `edit`)."""
        typed = {self._names[key] if isinstance(key, str) else key: value for key, value in changes.items()}
        for place in self._typed.keys() | typed.keys():
            cell = self._cells.get(place)
            is_formula = cell is not None and cell.is_formula
            assert not is_formula or place in self._inputs, f"{place} is a formula, not an input"
            if is_formula and place not in self._typed:
                self._typed_over[place] = self._book.get_formula(*_spot(place)) or ""
            if is_formula and place not in typed:
                self._book.set_formula(*_spot(place), self._typed_over[place])
            else:
                self._book.set_value(*_spot(place), typed.get(place, cell and cell.value))
        self._typed = typed
        self._book.evaluate_all()
        values = {place: cell.value for place, cell in self._cells.items() if not cell.is_formula}
        values |= {place: _as_in_a_file(value) for place, value in typed.items()}
        values |= {place: _as_in_a_file(self._book.get_value(*spot)) for place, spot in self._formulas}
        return values | {name: values.get(place) for name, place in self._names.items()}

    def value_of(self, place: tuple[str, str], formula: str) -> CellValue:
        """The value of a cell with another formula."""
        spot = _spot(place)
        right = self._book.get_formula(*spot)
        self._book.set_formula(*spot, f"={formula}")
        value = self._book.evaluate_cell(*spot)
        self._book.set_formula(*spot, right or "")
        return _as_in_a_file(value)


def _inputs(named: Mapping[str, tuple[str, str]]) -> set[tuple[str, str]]:
    """The cells that a reader may type into, a formula of theirs too."""
    return {place for name, place in named.items() if name.startswith("in_")}


def _spot(place: tuple[str, str]) -> tuple[str, int, int]:
    column, row = column_and_row(place[1])
    return place[0], row, column


def _as_in_a_file(value: CellValue | dict[str, str]) -> CellValue:
    if isinstance(value, dict):
        return ErrorValue(_ERRORS[value["kind"]])
    if isinstance(value, datetime.date):
        return float((value - _DAY_ZERO).days)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def values_after(path: Path, changes: Changes) -> Values:
    """Every value after typing into a workbook, calculated by formualizer, which keeps the last few workbooks open:
    each once, in whatever folder it lies and whatever stands beside its formulas."""
    return _live(path).values_after(changes)


def _live(path: Path) -> LiveWorkbook:
    return _live_of(_bare(path.read_bytes()))


@functools.lru_cache(4)
def _live_of(bare: bytes) -> LiveWorkbook:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bare.xlsx"
        path.write_bytes(bare)
        return LiveWorkbook(path)


# Reading --------------------------------------------------------------------------------------------------


def functions_used(path: Path) -> set[str]:
    """The functions that the workbook calls: in cells, conditional formats, validations, defined names."""
    texts = []
    with zipfile.ZipFile(path) as package:
        for member in ("xl/workbook.xml", *sheet_parts(package).values()):
            xml = package.read(member).decode()
            texts += re.findall(r"<(?:f|formula[12]?|definedName)(?:\s[^>]*)?>([^<]+)<", xml)
    quoted = re.compile(r'"[^"]*"|\'[^\']*\'')
    bare = (quoted.sub("", unescape(text, {"&quot;": '"', "&apos;": "'"})) for text in texts)
    return {name for text in bare for name in re.findall(r"[A-Za-z_][\w.]*(?=\()", text)}


# Changing -----------------------------------------------------------------------------------------------

_CELL = re.compile(r"<c\s([^>]*?)(?:/>|>(.*?)</c>)", re.DOTALL)
_FORMULA = re.compile(r"<f\b[^>]*?(?:/>|>.*?</f>)", re.DOTALL)


def _attribute(attributes: str, name: str) -> str:
    match = re.search(rf'(?:^|\s){name}="([^"]*)"', attributes)
    return match[1] if match else ""


def _rewrite(
    path: Path, out: Path, change: Callable[[str, str, str, str], str | None], only: Set[str] | None = None
) -> int:
    """Copy a workbook; `change(sheet, cell, attributes, inside)` gives a cell's new XML, None keeps it.

    only: the sheets that may change; all of them where None.
    """
    changed = 0
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as copy:
        sheets = {member: sheet for sheet, member in sheet_parts(source).items() if only is None or sheet in only}

        for item in source.infolist():
            data = source.read(item)
            if item.filename in sheets:
                sheet = sheets[item.filename]

                def one(match: re.Match[str], sheet: str = sheet) -> str:
                    nonlocal changed
                    new = change(sheet, _attribute(match[1], "r"), match[1], match[2] or "")
                    changed += new is not None
                    return match[0] if new is None else new

                data = _CELL.sub(one, data.decode()).encode()
            copy.writestr(item, data)
    return changed


def _with_value(attributes: str, formula: str, value: CellValue) -> str:
    """The XML of a cell of this value, behind its formula if it has one."""
    kept = re.sub(r'\s*\bt="[^"]*"', "", attributes)
    if value is None:
        return f"<c {kept}>{formula}</c>"
    if isinstance(value, ErrorValue):
        return f'<c {kept} t="e">{formula}<v>{value}</v></c>'
    if isinstance(value, str) and formula:
        return f'<c {kept} t="str">{formula}<v xml:space="preserve">{escape(value)}</v></c>'
    if isinstance(value, str):
        return f'<c {kept} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c {kept} t="b">{formula}<v>{value:d}</v></c>'
    return f"<c {kept}>{formula}<v>{value}</v></c>"


def _with_values(path: Path, out: Path, values: Mapping[Place | str, CellValue]) -> None:
    """Copy a workbook with these values, by (sheet, cell), beside its formulas, and no others."""

    def change(sheet: str, cell: str, attributes: str, inside: str) -> str | None:
        formula = _FORMULA.search(inside)
        return formula and _with_value(attributes, formula[0], values.get((sheet, cell)))

    _rewrite(path, out, change)


_CALCULATED = re.compile(
    rb'<c ([^>]*?)(?: t="\w+")?>(<f\b[^>]*?(?:/>|>[^<]*</f>))(?:<v(?:/>|[^>]*>[^<]*</v>))?</c>'
)  # t stands last, as XlsxWriter and these edits write it


@functools.lru_cache(8)
def _bare(data: bytes) -> bytes:
    """A workbook without values beside its formulas."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as copy:
        members = set(sheet_parts(source).values())
        for name in source.namelist():
            part = source.read(name)
            if name in members:
                n_formulas = len(re.findall(rb"<f[ />]", part))
                part, n_bare = _CALCULATED.subn(rb"<c \1>\2</c>", part)
                assert n_bare == n_formulas, f"{name} has formulas that are written otherwise"
            copy.writestr(zipfile.ZipInfo(name), part)  # of no time: the same workbook gives the same bytes
    return out.getvalue()


def poison(path: Path, out: Path) -> int:
    """Make every formula's cached value wrong, its type kept. Returns how many."""

    def change(sheet: str, cell: str, attributes: str, inside: str) -> str | None:
        formula = _FORMULA.search(inside)
        if not formula:
            return None
        kind = _attribute(attributes, "t")
        is_true = re.search(r"<v>(1|true)</v>", inside)
        wrong = {"str": POISON_TEXT, "b": "0" if is_true else "1", "e": "#NULL!"}.get(kind, POISON_NUMBER)
        return f"<c {attributes}>{formula[0]}<v>{wrong}</v></c>"

    return _rewrite(path, out, change)


def edit(path: Path, out: Path, changes: Changes) -> Path:
    """Type values into input cells, named by (sheet, cell) or by defined name; None empties one."""
    named = names(path)
    inputs = _inputs(named)
    left = {named[key] if isinstance(key, str) else key: value for key, value in changes.items()}

    def change(sheet: str, cell: str, attributes: str, inside: str) -> str | None:
        if (sheet, cell) not in left:
            return None
        is_formula = _FORMULA.search(inside) is not None
        assert not is_formula or (sheet, cell) in inputs, f"{sheet}!{cell} is a formula, not an input"
        return _with_value(attributes, "", left.pop((sheet, cell)))

    _rewrite(path, out, change, {sheet for sheet, _ in left})
    assert not left, f"no such cell to edit: {sorted(left)}"
    return out


def edit_and_recalculate(path: Path, out: Path, changes: Changes) -> Path:
    """The same, and beside every formula what formualizer gives it then: it keeps the workbook open, so that only what
    hangs on the edits is calculated."""
    named, values = names(path), values_after(path, changes)
    left = {named[key] if isinstance(key, str) else key: value for key, value in changes.items()}

    def change(sheet: str, cell: str, attributes: str, inside: str) -> str | None:
        if (sheet, cell) in left:
            return _with_value(attributes, "", left.pop((sheet, cell)))
        formula = _FORMULA.search(inside)
        return _with_value(attributes, formula[0], values.get((sheet, cell))) if formula else None

    _rewrite(path, out, change)
    assert not left, f"no such cell to edit: {sorted(left)}"
    return out


_SLIPS = (("*", "+"), ("/", "*"), ("-", "+"), ("+", "-"), ("MIN(", "MAX("), ("<", ">"))


def tamper(path: Path, out: Path, spared: re.Pattern[str] | None = None) -> tuple[str, str, str, str]:
    """Slip one wrong sign into one numeric formula whose value it changes: (sheet, cell, right, wrong).

    spared: formulas that are left alone, such as those of values as built, which no edit is compared by."""
    sheet, cell, right, wrong = _slip(path, path.stat().st_mtime_ns, spared)
    _replace_formula(path, out, sheet, cell, wrong)
    return sheet, cell, right, wrong


@functools.lru_cache(3)
def _slip(path: Path, _version: int, spared: re.Pattern[str] | None) -> tuple[str, str, str, str]:
    book = _live(path)
    book.values_after({})
    for sign, other in _SLIPS:
        for cell in formulas(path):
            right = cell.formula
            if spared and spared.search(right):
                continue
            if isinstance(cell.value, float) and sign in re.sub(r'"[^"]*"|\'[^\']*\'', "", right):
                wrong = right.replace(sign, other)
                got = book.value_of(cell.place, wrong)
                if isinstance(got, float) and not same(cell.value, got):
                    return cell.sheet, cell.cell, right, wrong
    raise AssertionError(f"no formula of {path} could be tampered with")


def _replace_formula(path: Path, out: Path, sheet: str, cell: str, text: str) -> None:
    def change(a_sheet: str, a_cell: str, attributes: str, inside: str) -> str | None:
        if (a_sheet, a_cell) != (sheet, cell):
            return None
        new = re.sub(r"(<f\b[^>]*>).*?</f>", lambda m: f"{m[1]}{escape(text)}</f>", inside, flags=re.DOTALL)
        return f"<c {attributes}>{new}</c>"

    _rewrite(path, out, change, {sheet})


# Comparing ----------------------------------------------------------------------------------------------


class Mismatch(NamedTuple):
    sheet: str
    cell: str
    formula: str
    expected: CellValue
    got: CellValue


@dataclass(frozen=True)
class Comparison:
    n_formulas: int
    n_compared: int
    mismatches: list[Mismatch]
    n_poisoned: int  # recalculated cells that still hold the poison

    def __str__(self) -> str:
        head = f"{self.n_compared} of {self.n_formulas} formulas compared, {len(self.mismatches)} mismatches"
        lines = [f"{m.sheet}!{m.cell} ={m.formula} wrote {m.expected!r}, got {m.got!r}" for m in self.mismatches]
        return "\n".join([head, *lines[:20]])


def same(expected: CellValue, got: CellValue) -> bool:
    """Equal in type and value; an error or an infinite number equals nothing. Next to a 0, 1e-12 counts as 0."""
    if type(expected) is not type(got) or isinstance(expected, ErrorValue) or expected is None:
        return False
    if isinstance(expected, float) and isinstance(got, float):
        nothing = 1e-12 if expected == 0 or got == 0 else 0.0
        return math.isfinite(expected) and math.isclose(expected, got, rel_tol=1e-9, abs_tol=nothing)
    return bool(expected == got)


def half_percent(
    sheet: str, formula: str, expected: CellValue, got: CellValue, values: Mapping[Place, CellValue]
) -> bool:
    """True where two texts differ by one percent alone, of a share that is half a percent to 15 digits: 9 instances
    cost 12.5 % more than 8, which double numbers hold as 0.12499999999999997, and programs round that either way."""
    if not (isinstance(expected, str) and isinstance(got, str)):
        return False
    percents = [int(x) for text in (expected, got) for x in re.findall(r"(\d+)%", text)]
    shares = [
        values.get((sheet, cell.replace("$", ""))) for cell in re.findall(r"TEXT\((?:MAX\()?([$A-Z0-9]+),", formula)
    ]
    half = any(isinstance(s, float) and abs(100 * s % 1 - 0.5) < 1e-9 for s in shares)
    same_words = re.sub(r"\d+%", "", expected) == re.sub(r"\d+%", "", got)
    return half and same_words and len(percents) == 2 and abs(percents[0] - percents[1]) == 1


def compare(original: Path, recalculated: Path) -> Comparison:
    """The value written beside every formula of `original` against the one found in `recalculated`."""
    values = {c.place: c.value for c in cells(recalculated)}
    n_compared, poisoned, mismatches = 0, 0, []
    with zipfile.ZipFile(original) as package:
        n_formulas = sum(len(re.findall(rb"<f[\s>/]", package.read(m))) for m in sheet_parts(package).values())
    for cell in formulas(original):
        got = values.get(cell.place)
        n_compared += got is not None
        poisoned += got == POISON_TEXT or (isinstance(got, float) and got == POISON_NUMBER)
        if not same(cell.value, got) and not half_percent(cell.sheet, cell.formula, cell.value, got, values):
            mismatches.append(Mismatch(cell.sheet, cell.cell, cell.formula, cell.value, got))
    return Comparison(n_formulas, n_compared, mismatches, poisoned)


def assert_recalculates(path: Path, workdir: Path) -> Comparison:
    """Every formula, its cache poisoned, comes out of LibreOffice as the value that was written beside it."""
    poisoned = workdir / f"{path.stem}-poisoned.xlsx"
    n_poisoned = poison(path, poisoned)
    return assert_recalculated(path, recalculate(poisoned, workdir), n_poisoned)


def assert_recalculated(path: Path, recalculated: Path, n_poisoned: int) -> Comparison:
    """The same of a workbook that LibreOffice recalculated already."""
    result = compare(path, recalculated)
    assert n_poisoned == result.n_formulas > 0, f"poisoned {n_poisoned} of {result.n_formulas} formulas"
    assert result.n_poisoned == 0, f"LibreOffice kept {result.n_poisoned} poisoned values: it did not recalculate"
    assert not result.mismatches, str(result)
    assert result.n_compared == result.n_formulas, str(result)
    return result
